"""Activity analysis: find the values that depend on the differentiated inputs and on which a result
depends.

Note [Through calls]
A result depends on an argument of a call only if it does so in the callee.  This is not for speed
alone: the cotangent of a tape has an item for each that was pushed only if the items that are
popped carry a derivative (ops/core/control.py), so the two halves of a derivative, functions of
their own that push and pop, must agree on which tapes carry one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from ..errors import DerivativeError
from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import Type, carries_derivative
from ..ops.program.checkpoint import is_plain
from .alias import content_inputs
from .propagate import loop_parts, propagate


def varied_values(function: Function, wrt: Iterable[Value]) -> set[Value]:
    """Return the values that depend differentiably on those in `wrt`."""
    return _spread(function.block, {v for v in wrt if carries_derivative(v.type)})


def varied_in_conditions(function: Function, wrt: Iterable[Value]) -> set[Value]:
    """Return the varied values, those in the conditions of while loops too, which no derivative
    passes through.
    """
    varied = varied_values(function, wrt)
    for op in walk(function.block):
        if op.name == "while":
            condition, params = op.blocks[0], loop_parts(op)[1]
            varied.update(p for p, x in zip(condition.params, params) if x in varied)
            varied = _spread(condition, varied)
    return varied


def active_values(function: Function, wrt: Iterable[Value],
                  seeded: Sequence[int] | None = None) -> set[Value]:
    """Return the varied values on which a result of `function` depends: any, or one of those
    numbered in `seeded`.
    """
    varied = varied_values(function, wrt)
    results = function.results if seeded is None else [function.results[k] for k in seeded]
    return _gather(function.block, varied, [y for y in results if y in varied])


def influenced_values(function: Function, roots: Iterable[Value]) -> set[Value]:
    """Return the values that depend on those in `roots` in any way, through comparisons, branches
    and trip counts too.
    """
    facts = dict.fromkeys(roots, True)

    def computed(op: Op) -> Iterator[tuple[Value, bool]]:
        if any(x in facts for x in content_inputs(op)):
            yield from ((y, True) for y in op.outputs)

    return set(propagate(function.block, facts, computed, in_conditions=True, decided=True))


def passes_derivative(op: Op, k: int) -> bool:
    """Test whether a derivative can flow from input `k` of a simple op to its outputs.

    What is piecewise constant on the real numbers (`sign`) need not be so on the complex ones.
    """
    if k in op.record.shapes or _cancels(op):
        return False
    partials = op.record.partials
    if not partials or k >= len(partials) or partials[k] is not None:
        return True
    if op.record.elementwise and all(_is_complex(x.type) for x in (op.inputs[k], *op.outputs)):
        raise DerivativeError(f"{op.name} of complex numbers has no derivative", op.line,
                              "write it with abs and division, as x / abs(x)")
    return False


def _cancels(op: Op) -> bool:
    """Test whether this is x - x, which is 0 for all x, even where what is made of it is steep."""
    return op.record.is_sum and sum(op.record.signs) == 0 and op.inputs[0] is op.inputs[1]


def _is_complex(type: Type) -> bool:
    return (getattr(type, "dtype", None) or "").startswith("complex")


def _spread(block: Block, varied: set[Value]) -> set[Value]:
    """Return the values that depend differentiably on those in `varied`, and these."""
    facts, known = dict.fromkeys(varied, True), {}
    return set(propagate(block, facts, lambda op: ((y, True) for y in _reached(op, facts, known)),
                         accepts=lambda y: carries_derivative(y.type)))


def _reached(op: Op, varied: Container[Value], known: dict) -> list[Value]:
    """Return the outputs of `op` to which a derivative can flow from its varied inputs.
    Note [Through calls]

    `known`: by call and numbers of its varied inputs, what is found.
    """
    callee = op.attrs["callee"] if op.name == "call" else None
    if callee is None or not is_plain(callee):
        passes = any(x in varied and passes_derivative(op, k) for k, x in enumerate(op.inputs))
        return [out for out in op.outputs if carries_derivative(out.type)] if passes else []
    given = tuple(k for k, x in enumerate(op.inputs) if x in varied)
    if (op, given) not in known:
        function = callee.function_for(op.inputs)
        inside = varied_values(function, [function.params[k] for k in given])
        known[op, given] = [out for out, y in zip(op.outputs, function.results) if y in inside
                            and carries_derivative(out.type)]
    return known[op, given]


def _gather(block: Block, varied: set[Value], results: Iterable[Value]) -> set[Value]:
    """Return the varied values on which one of the `results` depends."""
    useful, known = dict.fromkeys(results, True), {}

    def read(op: Op) -> Iterator[tuple[Value, bool]]:
        if any(out in useful for out in op.outputs):
            reaching = _reaching(op, varied, useful, known)
            yield from ((x, True) for k, x in enumerate(op.inputs) if x in varied and k in reaching)

    return set(propagate(block, useful, read, accepts=varied.__contains__, backwards=True))


def _reaching(op: Op, varied: set[Value], useful: Container[Value], known: dict) -> set[int]:
    """Return the inputs of `op` from which a derivative can flow to its useful outputs.
    Note [Through calls]
    """
    callee = op.attrs["callee"] if op.name == "call" else None
    if callee is None or not is_plain(callee):
        return {k for k in range(len(op.inputs)) if passes_derivative(op, k)}
    seeded = tuple(k for k, out in enumerate(op.outputs) if out in useful)
    if (op, seeded) not in known:
        function = callee.function_for(op.inputs)
        active = active_values(function,
                               [p for p, x in zip(function.params, op.inputs) if x in varied],
                               seeded)
        known[op, seeded] = {k for k, p in enumerate(function.params) if p in active}
    return known[op, seeded]
