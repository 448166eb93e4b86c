"""A loop whose trips add to elements that other trips add to, computed first and added afterwards, a strip at a time.

    for i in range(n):                                for s in range((n + 255) // 256):
        x_bar[-1 - i] += np.tanh(x[i])                    m = min(256, n - s * 256)
                                                          for j in range(m):
                                             becomes          t[j] = np.tanh(x[s * 256 + j])
                                                          for j in range(m):
                                                              x_bar[-1 - (s * 256 + j)] += t[j]

The adjoint of a loop that reads an array in two places adds in both.  Neither we nor LLVM can tell that trips do not meet there,
so nothing of the loop would become vector instructions: an exp then costs ten times what it costs in the function.  Of the
two loops the first does, and the second only adds, in the order in which the one loop would have.

Considered: a loop for each place that is added to.  It needs no memory, but computes everything as often as there are places.
Or one array for each trip's numbers: a loop of many trips that adds to few elements would take more memory than anything else.
Strips stay in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder, add_op
from ..ir.graph import MISSING, Block, Function, Op, Value
from ..ir.substitute import substitute
from ..ir.types import Array, Scalar
from ..ops.index import getitem
from ..ops.record import value
from .access import op_named
from .buffers import new_buffer
from .counted import loop, put
from .independent import Trip
from .vector import REAL, SHORT, is_extreme, is_of_reals, may_be_vectorised

STRIP = 256  # trips: numbers that stay in the nearest cache, and are many for a vector


def add_in_strips(function: Function) -> Function:
    """`function`, a loop form that nobody else has, with its loops that compute and add apart, where that pays."""
    kept: list[Op] = []
    same: dict[Value, Value] = {}
    for op in function.block.ops:
        plan = planned(op)
        if plan is None:
            kept.append(op)
            continue
        with Builder(Block(), op.line) as builder:
            same.update(zip(op.outputs, in_strips(op, plan)))
        kept += builder.block.ops
    function.block.ops = kept
    substitute(function.block, same)
    return function


@dataclass(frozen=True)
class Plan:
    """Of a loop: which carries are arrays that are added to, what is computed for that, and what computes it."""

    added: list[int]
    computed: list[Value]
    first: list[Op]
    second: list[Op]


def planned(op: Op) -> Plan | None:
    """How to run a loop in strips; None where it cannot be, or need not."""
    if op.name != "for" or op.attrs["breaks"] or op.inputs[2].constant not in (1, -1):
        return None
    (body,), (lo, hi) = op.blocks, (x.constant for x in op.inputs[:2])
    if MISSING not in (lo, hi) and abs(hi - lo) < SHORT or not all(map(_is_simple, body.ops)):
        return None
    if not any(each.record.vector and is_of_reals(each) for each in body.ops) or may_be_vectorised(op):
        return None
    trip, added = Trip(body), []
    for k, (param, end) in enumerate(zip(body.params[1:], body.yields)):
        if isinstance(param.type, Array):
            versions = list(trip.versions(param))
            if end not in versions or not all(user.name == "additem" and at == 0 for user, at in trip.touching(versions)):
                return None
            added.append(k)
        elif trip.role(param, end) != "sum" and not is_extreme(trip, param, end):
            return None
    adds = [each for each in body.ops if each.name == "additem"]
    slow = _behind(body, [each for each in body.ops if each.record.vector and is_of_reals(each)])
    if any(x in slow for each in adds for x in each.inputs[2:]):
        return None
    computed: dict[Value, None] = {}
    second: set[Op] = set(adds)
    pending = [x for each in adds for x in each.inputs[1:]]
    while pending:
        x = pending.pop(0)
        if x in slow and x.op.name != "negative":
            computed[x] = None
        elif x.op in body.ops and x.op not in second:
            second.add(x.op)
            pending += x.op.inputs
    if any(x.type.dtype not in REAL for x in computed):
        return None
    return Plan(added, list(computed), [each for each in body.ops if each not in adds],
                [each for each in body.ops if each in second])


def _is_simple(op: Op) -> bool:
    """Whether `op` makes numbers of numbers and elements, or adds to an element."""
    numbers = op.outputs if op.name != "additem" else op.inputs[1:]
    return op.record.pure and not op.blocks and op.name not in ("call", "setitem") and all(
        isinstance(x.type, Scalar) for x in numbers)


def _behind(body: Block, ops: Sequence[Op]) -> set[Value]:
    """What of a straight line depends on the results of these."""
    found = {op.output for op in ops}
    for op in body.ops:
        if any(x in found for x in op.inputs):
            found.update(op.outputs)
    return found


def in_strips(op: Op, plan: Plan) -> list[Value]:
    """Emit the loop in strips; returns what its carries become."""
    body, (lo, hi, step) = op.blocks[0], op.inputs[:3]
    params, others = body.params[1:], [k for k in range(len(op.outputs)) if k not in plan.added]
    trips = op_named("subtract", hi, lo) if step.constant > 0 else op_named("subtract", lo, hi)
    strips = op_named("floor_divide", op_named("add", trips, value(STRIP - 1)), value(STRIP))

    def run(ops: list[Op], j: Value, start: Value, env: dict[Value, Value]) -> dict[Value, Value]:
        env[body.params[0]] = op_named("add" if step.constant > 0 else "subtract", lo, op_named("add", start, j))
        for each in ops:
            again = add_op(each.record, [env.get(x, x) for x in each.inputs], each.attrs, [o.type for o in each.outputs],
                           names=[o.name for o in each.outputs])
            env.update(zip(each.outputs, again.outputs))
        return env

    def repeat(length: Value, ks: list[int], carries: Sequence[Value], more: Sequence[Value], step_of) -> list[Value]:
        starts = [*carries, *more]
        return loop([length], starts, [x.type for x in starts], [*(params[k].name for k in ks), *("" for _ in more)],
                    lambda index, inner: step_of(index[0], inner), ("i",))

    def strip(index: list[Value], carries: list[Value]) -> list[Value]:
        start = op_named("multiply", index[0], value(STRIP))
        length = op_named("min_", op_named("subtract", trips, start), value(STRIP))
        buffers = [new_buffer(x.type.dtype, (STRIP,), [value(STRIP)]) for x in plan.computed]

        def compute(j: Value, inner: list[Value]) -> list[Value]:
            env = run(plan.first, j, start, dict(zip((params[k] for k in others), inner)))
            ends = [env.get(body.yields[k], body.yields[k]) for k in others]
            return [*ends, *(put(b, env[x], [j]) for b, x in zip(inner[len(others):], plan.computed))]

        found = repeat(length, others, [carries[k] for k in others], buffers, compute)

        def add(j: Value, inner: list[Value]) -> list[Value]:
            env = dict(zip((params[k] for k in plan.added), inner))
            env.update((x, getitem(b, j, pattern=("i",))) for x, b in zip(plan.computed, found[len(others):]))
            env = run(plan.second, j, start, env)
            return [env.get(body.yields[k], body.yields[k]) for k in plan.added]

        sums = repeat(length, plan.added, [carries[k] for k in plan.added], [], add)
        ends = dict(zip([*others, *plan.added], [*found[:len(others)], *sums]))
        return [ends[k] for k in range(len(carries))]

    return loop([strips], op.inputs[3:], [o.type for o in op.outputs], [p.name for p in params], strip)
