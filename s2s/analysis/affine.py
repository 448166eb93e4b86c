"""Affine indices: the base and constant offset of an index, and lower bounds from the loops around
it.

A negative index means an element from the end: only of indices that are known not to be negative is
it known that those with other offsets from one base name other elements.
"""

from __future__ import annotations

from ..ir.graph import Op, Value
from ..ops.core.identities import base_offset
from ..ops.core.signs import Least, Walk, sure_least


def indices_differ(i: Value, j: Value, counters: dict[Value, Op]) -> bool:
    """Prove that two indices into one axis name different elements, if possible."""
    (base, m), (other, n) = base_offset(i), base_offset(j)
    if base is not other:
        return is_below(i, j, counters) or is_below(j, i, counters)
    if m == n:
        return False
    low = 0 if base is None else lower_bound(base, counters)
    return low is not None and min(low + m, low + n) >= 0


def is_below(i: Value, j: Value, counters: dict[Value, Op]) -> bool:
    """Prove 0 <= i < j from a loop of which one of them is the counter and the other a bound, if
    possible.
    """
    (base, m), (other, n) = base_offset(i), base_offset(j)
    low = lower_bound(i, counters)
    if low is None or low < 0:
        return False
    if base in counters:
        lo, hi, step = counters[base].inputs[:3]
        if isinstance(step.constant, int):
            end, offset = base_offset(hi if step.constant > 0 else lo)
            if end is other and offset - (step.constant > 0) + m < n:
                return True
    if other in counters:
        lo, hi, step = counters[other].inputs[:3]
        if isinstance(step.constant, int):
            end, offset = base_offset(lo if step.constant > 0 else hi)
            return end is base and m < offset + (step.constant < 0) + n
    return False


def lower_bound(i: Value, counters: dict[Value, Op]) -> int | None:
    """Return a lower bound of the integer `i`, None where none is known: what the ops say that
    compute it (ops/core/signs.py), and the loops around it of their counters.

    `counters` maps the counter of each `for` to its op, which may say itself what its counter is at
    `least` (back/loops/split_at_wraparound.py).
    """
    def of_counter(x: Value, bound: Walk) -> Least | None:
        if x not in counters:
            return None
        if "least" in counters[x].attrs:
            return Least(counters[x].attrs["least"])
        lo, hi, step = counters[x].inputs[:3]
        if not isinstance(step.constant, int):
            return None
        low = bound(lo if step.constant > 0 else hi)
        return None if low is None else Least(low.number + (step.constant < 0))

    return sure_least(i, of_counter)
