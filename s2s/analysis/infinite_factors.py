"""Find the values that a program itself treats as possibly infinite or NaN: infinite constants, and
values that it tests for finiteness.

    residual = (model - data) ** 2               slope 2 * (model - data): NaN for missing data
    total = np.sum(residual[~np.isnan(data)])    some may be missing: 0 times NaN would be NaN

A value that is tested may not be finite, nor the values that it is computed from, nor those
computed from them.  Data that are not differentiated are tested by any comparison of arrays:
`weight < 5` leaves out infinite entries.

Considered: to treat all data as possibly infinite, which puts a selection into each product of data
with discarded entries; and all values that are compared, which most loops with branches do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ..ir.graph import Block, Op, Value, walk
from ..ir.types import Array, is_inexact
from ..ops.core.record import dtype_of
from .propagate import propagate
from .side_effects import reachable_values


def infinite_factors(block: Block, active: set[Value], given: Iterable[Value] = ()) -> set[Value]:
    """Return the values that may be infinite or NaN by what `block` says, or as those `given` may
    be; the `active` values are differentiated.
    """
    ops = list(walk(block))
    found = ({x for op in ops for x in op.inputs if _is_infinite(x)}
             | doubted_values(block, ops, active) | set(given))
    return reachable_values(block, found, through=_computes) if found else found


def doubted_values(block: Block, ops: list[Op], active: set[Value]) -> set[Value]:
    """Return the values that are tested for finiteness, and those that they are computed from."""
    answers = answers_that_discard(block, ops)
    found = {x for op in ops if op.record.elementwise and not answers.isdisjoint(op.outputs)
             for x in op.inputs if is_inexact(dtype_of(x.type))
             and (_asks_finite(op) or isinstance(x.type, Array) and x not in active)}
    facts = dict.fromkeys(found, True)

    def read(op: Op) -> Iterator[tuple[Value, bool]]:
        if _computes(op) and any(y in facts for y in op.outputs):
            yield from ((x, True) for x in op.inputs if is_inexact(dtype_of(x.type)))

    return set(propagate(block, facts, read, in_conditions=True, backwards=True) if facts else ())


def answers_that_discard(block: Block, ops: list[Op]) -> set[Value]:
    """Return the conditions that something is discarded by: all that any op reads but np.where,
    which masks cotangents by itself (Note [Masks stay outermost], ops/core/chain_rule.py), and
    arithmetic: infinity times a mask is NaN in the program itself.
    """
    found = {y for each in (block, *(inner for op in ops for inner in op.blocks))
             for y in each.yields if dtype_of(y.type) == "bool"}
    for op in reversed(ops):
        hands_on = bool(op.outputs) and all(dtype_of(y.type) == "bool" for y in op.outputs)
        is_arithmetic = op.record.elementwise and _computes(op)
        if not is_arithmetic and (not hands_on or not found.isdisjoint(op.outputs)):
            found.update(x for k, x in enumerate(op.inputs) if dtype_of(x.type) == "bool"
                         and not (k == 0 and op.record.selects))
    return found


def _asks_finite(op: Op) -> bool:
    """Test whether `op` tests whether its operand is finite, or a number, as `x != x` does."""
    return (op.record.tests_finite
            or len(op.inputs) == 2 and op.inputs[0] is op.inputs[1])


def _computes(op: Op) -> bool:
    return any(is_inexact(dtype_of(y.type)) for y in op.outputs)


def _is_infinite(x: Value) -> bool:
    return type(x.constant) is float and not math.isfinite(x.constant)
