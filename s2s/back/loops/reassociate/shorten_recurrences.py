"""Reassociate an adjoint's sums so that the value from the previous trip is added last.

    for k in range(n - 1, -1, -1):                      for k in range(n - 1, -1, -1):
        t = x_bar + a * p[k] + b * q[k]      becomes        t = x_bar + (a * p[k] + b * q[k])
        x_bar = t * d                                       x_bar = t * d

A trip cannot compute what reads x_bar before the previous trip has ended, and each addition takes
four cycles: on the left two of them are on the critical path of the recurrence, on the right one,
and the others run ahead. In an adjoint that is most of the time: that of a Newton iteration of
scalar loops took 1.3 times as long.

The contributions to a cotangent have no order of their own, so theirs is chosen here; the user's
sums stay as they are written. Considered: LLVM's flag `reassoc` on these additions. It orders by
rank, not by recurrence, and splits sums into lanes, which short loops pay for.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....ir.builder import Builder, at
from ....ir.graph import Block, Function, Op, Value, blocks_of, op_free_values
from ....ir.types import Scalar
from ....ops.core.elementwise import add, subtract

DTYPES = ("float64", "float32")


def shorten_chains(function: Function) -> Function:
    """Reorder the adjoint's sums in the loops of `function`, a loop form, in place."""
    for block in list(blocks_of(function.block)):
        for op in block.ops:
            if op.name == "for" and not op.attrs["breaks"]:
                _body(op.blocks[0])
    return function


def _body(body: Block) -> None:
    carried = body.params[1:]
    if not any(is_float(p) for p in carried):
        return
    behind = carries_behind(body)
    cycles = _cycles(carried, body.yields, behind)
    reached = _ends_reached(body, carried)
    uses = uses_in(body)
    sums = [op for op in body.ops if is_sum(op)]
    summed = {x for op in sums for x in op.inputs}
    inner = {op for op in sums if uses.get(op.output) == 1 and op.output in summed}
    for root in [op for op in sums if op not in inner]:
        terms = terms_of(root, inner)
        late = [t for t in terms if any(q in reached.get(root.output, ())
                                        for p in behind.get(t.x, ()) for q in cycles[p])]
        if late and len(late) < len(terms) and len(late) < max(t.depth for t in late):
            _rewrite(body, root, [t for t in terms if t not in late], late)


def uses_in(body: Block) -> dict[Value, int]:
    """The number of uses of each value in `body`; an op with blocks uses a value once."""
    uses: dict[Value, int] = {}
    for op in body.ops:
        for x in op_free_values(op) if op.blocks else op.inputs:
            uses[x] = uses.get(x, 0) + 1
    for y in body.yields:
        uses[y] = uses.get(y, 0) + 1
    return uses


def is_float(x: Value) -> bool:
    return isinstance(x.type, Scalar) and x.type.dtype in DTYPES


def is_sum(op: Op) -> bool:
    """Whether `op` is an adjoint's sum or difference of numbers of one dtype."""
    return op.record in (add, subtract) and is_of_adjoint(op)


def is_of_adjoint(op: Op) -> bool:
    """Whether `op` is an adjoint's arithmetic on numbers of one dtype."""
    return (op.line is not None and op.line.backwards and not op.line.again and is_float(op.output)
            and all(x.type == op.output.type for x in op.inputs))


@dataclass(frozen=True, eq=False)
class Term:
    """A term of a sum with its sign, and its depth in the chain of additions."""

    x: Value
    added: bool
    depth: int


def terms_of(op: Op, inner: set[Op], added: bool = True, depth: int = 1) -> list[Term]:
    """The terms of the sum `op`, in order."""
    found: list[Term] = []
    for x, sign in zip(op.inputs, op.record.signs):
        its = added == (sign > 0)
        found += terms_of(x.op, inner, its, depth + 1) if x.op in inner else [Term(x, its, depth)]
    return found


def carries_behind(body: Block) -> dict[Value, frozenset[Value]]:
    """The carried numbers that each value of the body depends on."""
    behind = {p: frozenset((p,)) for p in body.params[1:] if is_float(p)}
    for op in body.ops:
        found = frozenset().union(*(behind.get(x, ()) for x in op_free_values(op)))
        behind.update(dict.fromkeys(op.outputs, found))
    return behind


def _cycles(carried: list[Value], yields: list[Value],
            behind: dict[Value, frozenset[Value]]) -> dict[Value, frozenset[Value]]:
    """For each carried number, the ones in its dependence cycle, itself included."""
    needs = {p: set(behind.get(y, ())) for p, y in zip(carried, yields) if p in behind}
    changed = True
    while changed:
        changed = False
        for found in needs.values():
            more = set().union(*(needs[q] for q in found)) - found
            found |= more
            changed = changed or bool(more)
    return {p: frozenset(q for q in needs if q in needs[p] and p in needs[q]) for p in needs}


def _ends_reached(body: Block, carried: list[Value]) -> dict[Value, set[Value]]:
    """For each value of the body, the carried numbers that it contributes to."""
    reached: dict[Value, set[Value]] = {}
    for p, y in zip(carried, body.yields):
        reached.setdefault(y, set()).add(p)
    for op in reversed(body.ops):
        ends = set().union(*(reached.get(y, ()) for y in op.outputs))
        for x in op_free_values(op) if ends else ():
            reached.setdefault(x, set()).update(ends)
    return reached


def _rewrite(body: Block, root: Op, first: list[Term], late: list[Term]) -> None:
    """Make `root` sum the early terms `first`, then the late ones; its result keeps its name."""
    place = body.ops.index(root)
    after, body.ops = body.ops[place:], body.ops[:place]
    added = any(t.added for t in first)  # a - b - c, where a is late, is a - (b + c)
    with Builder(body), at(root.line):
        total = _sum_of([Term(t.x, t.added or not added, 1)
                           for t in sorted(first, key=lambda t: not t.added)])
        terms = [*late[:1], Term(total, added, 1), *late[1:]]
        *some, last = sorted(terms, key=lambda t: not t.added) if not late[0].added else terms
        total = _sum_of(some)
    root.record, root.inputs = add if last.added else subtract, [total, last.x]
    body.ops += after


def _sum_of(terms: list[Term]) -> Value:
    """The sum of `terms`, of which the first is added."""
    total = terms[0].x
    for t in terms[1:]:
        total = (add if t.added else subtract)(total, t.x)
    return total
