"""Batching rules of indexing.

An index that is the same in every lane gets a full slice in front, one that differs the number of
the lane: `x[arange(lanes), i]`.  NumPy then puts the axes of arrays of indices in front, before
those of slices, and they are moved to where they stand in one lane.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from ...ir.graph import Op, Value
from ...ir.types import Array
from ..core.batch_rules import align, batched_over, lane_count
from ..core.record import FUNCTIONS, RECORDS, Record, dtype_of, rank, shared
from .index_pattern import Pattern, expand


def _entries(pattern: Pattern, flags, operands) -> list[tuple]:
    """Each entry of an index with its operands, and whether each of them is batched."""
    rest = list(zip(operands, flags))
    counts = [1 if p == "i" else p.count("x") if isinstance(p, str) else 0 for p in pattern]
    return [(p, [rest.pop(0) for _ in range(n)]) for p, n in zip(pattern, counts)]


def _is_ragged(entries) -> bool:
    """Whether lanes differ in a slice bound or in a mask."""
    return any(flag for p, part in entries
               for o, flag in part if p != "i" or dtype_of(o.type) == "bool")


def is_ragged(op: Op, batched: Set[Value]) -> bool:
    """Whether lanes read parts of different lengths, because a `batched` operand determines the
    length.
    """
    if op.name != "getitem" or not isinstance(op.inputs[0].type, Array):
        return False
    operands = op.inputs[1:]
    return _is_ragged(_entries(op.attrs["pattern"], [o in batched for o in operands], operands))


class _Index:
    """An index into an array with `own` axes per lane: where each of its axes comes from."""

    def __init__(self, flags, operands, pattern: Pattern, own: int):
        entries = _entries(pattern, flags, operands)
        ints = [part[0] for p, part in entries if p == "i"]
        # a mask indexes all its axes, and gives one
        masks = [rank(o) - flag for o, flag in ints if dtype_of(o.type) == "bool"]
        self.pattern = expand(pattern, own - sum(n - 1 for n in masks))
        self.entries = _entries(self.pattern, flags, operands)
        self.places = [k for k, p in enumerate(self.pattern) if p == "i"]
        self.most = max((1 if dtype_of(o.type) == "bool" else rank(o) - flag for o, flag in ints),
                        default=0)
        self.fixed = len(self.pattern) - len(self.places)
        together = (not self.places
                    or self.places == list(range(self.places[0], self.places[-1] + 1)))
        self.together = together or not self.most
        self.place = self.places[0] if self.places and together else 0
        self.differs = any(flags)
        self.ragged = _is_ragged(entries)

    def aligned(self) -> list[Value]:
        """The operands, with lane axes aligned."""
        return [align(o, rank(o) - flag, self.most, flag) if p == "i" else o
                for p, part in self.entries for o, flag in part]

    def after_lanes(self, count: Value) -> tuple[Pattern, list[Value]]:
        """The index into the array of all lanes."""
        if self.together and not self.differs:
            return ("...", *self.pattern), [o for _, part in self.entries for o, _ in part]
        return self.in_rows(FUNCTIONS[np.arange](count))

    def in_rows(self, lane: Value) -> tuple[Pattern, list[Value]]:
        """The index into the rows that `lane` numbers."""
        return (("i", *self.pattern),
                [align(lane, 0, self.most) if self.most else lane, *self.aligned()])

    def is_moved(self) -> bool:
        """Whether index-array axes come first in such an index, and do not in a lane."""
        return bool(self.most and self.place and self.differs)

    def moved(self, x: Value, first: int, back: bool) -> Value:
        """`x` with its index axes, from `first` on, moved to the front as in a lane, or `back`."""
        front, own = (tuple(range(k, k + self.most)) for k in (first, first + self.place))
        return FUNCTIONS[np.moveaxis](x, *((front, own) if back else (own, front)))


@shared
def batch_getitem(getitem: Record, flags, x: Value, *operands: Value, pattern: Pattern):
    """Batch x[...]; None, without a rule, if the lanes' results may differ in length."""
    if not isinstance(x.type, Array):
        return None
    index = _Index(flags[1:], operands, pattern, rank(x) - flags[0])
    if index.ragged:
        return None
    if not flags[0]:
        part = getitem(x, *index.aligned(), pattern=index.pattern)
        return FUNCTIONS[np.moveaxis](part, index.place, 0)
    pattern, operands = index.after_lanes(RECORDS["length"](x, axis=0))
    part = getitem(x, *operands, pattern=pattern)
    return index.moved(part, 1, True) if index.is_moved() else part


def getitem_in_rows(x: Value, lane: Value, flags, *operands: Value, pattern: Pattern):
    """`x[lane[k]][...]` for each k: index rows of `x` with `operands`, of which the flagged differ
    with k; None, without a rule, as above.
    """
    if not isinstance(x.type, Array):
        return None
    index = _Index(flags, operands, pattern, rank(x) - 1)
    if index.ragged:
        return None
    index.differs = True
    pattern, operands = index.in_rows(lane)
    while pattern[-1] == "...":
        pattern = pattern[:-1]
    part = RECORDS["getitem"](x, *operands, pattern=pattern)
    return index.moved(part, 1, True) if index.is_moved() else part


@shared
def batch_written(record: Record, flags, x: Value, v: Value, *operands: Value, pattern: Pattern):
    """Batch x[...] = v and x[...] += v."""
    count = lane_count(flags, (x, v, *operands))
    x = x if flags[0] else batched_over(x, count)
    index = _Index(flags[2:], operands, pattern, rank(x) - 1)
    if index.ragged or rank(v) is None or rank(v) - flags[1] > index.most + index.fixed:
        return None
    own, named = rank(v) - flags[1], index.most + index.fixed
    pattern, operands = index.after_lanes(count)
    if index.is_moved() and own > index.fixed - index.place:
        if flags[1]:
            v = align(v, own, named)
        elif own < named:
            v = RECORDS["expand_dims"](v, axis=tuple(range(named - own)))
        v = index.moved(v, int(flags[1]), False)
    else:
        v = align(v, own, named, flags[1])
    return record(x, v, *operands, pattern=pattern)
