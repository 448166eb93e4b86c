"""Insert bounds checks for indices of unknown range, hoisted out of loops that do not change them.

    for t in range(n):                                for t in range(n):
        o = observed[t]                                   o = observed[t]
        for j in range(m):               becomes          k = place_in(o, e.shape[1])
            s += a[j] * e[j, o]                           for j in range(m):
                                                              s += a[j] * e[j, k]

An index that is data, or counts a `while`, has no range (analysis/index_ranges.py). Numba's
boundscheck applies to a whole function: it tests every access to every array, tapes included, and
prevents vectorisation. The gradient of a hidden Markov model took 1.8 times as long with it.

A check is hoisted before the loops that do not define the index or the array, so it may raise for a
read that a loop of no trips would never have reached; then the interpreted form answers
(runtime/call/native_function.py), as for lengths. It stays inside `if` and `while`, whose condition
may test the index.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...analysis.index_ranges import Place, unproven_indices
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value
from ...ir.reemit import clone
from ...ir.types import Array
from ...ops.core.record import value
from ...ops.core.shape import length
from ..loopir.ops import checked_place


def check_indices(function: Function) -> Function:
    """`function` with bounds checks on the indices that are not proved to be in range."""
    if unproven_indices(function):
        function = clone(function)
        Checks(dict(unproven_indices(function))).block(function.block, None)
    return function


@dataclass(eq=False)
class Level:
    """An enclosing block: its owner, values defined so far, its ops, and their checks."""

    owner: Op | None
    defined: set[Value]
    ops: list[Op] = field(default_factory=list)
    done: dict[tuple, Value] = field(default_factory=dict)


class Checks:
    """A walk over a function that puts a check before each op that needs one."""

    def __init__(self, wanted: dict[Op, list[Place]]):
        self.wanted, self.levels = wanted, []

    def block(self, block: Block, owner: Op | None) -> None:
        level = Level(owner, set(block.params))
        self.levels.append(level)
        for op in block.ops:
            for place in self.wanted.get(op, ()):
                op.inputs[place.operand] = self.checked(op, place)
            for inner in op.blocks:
                self.block(inner, op)
            level.ops.append(op)
            level.defined.update(op.outputs)
        block.ops = level.ops
        self.levels.pop()

    def checked(self, op: Op, place: Place) -> Value:
        """The index of `op` at this place, checked at the outermost level that defines it."""
        index, array = op.inputs[place.operand], op.inputs[0]
        dim = array.type.dims[place.axis]
        known = isinstance(dim, int) or not dim.accepts_any
        key = (index, dim if known else (array, place.axis))
        for level in self.levels:
            if key in level.done:
                return level.done[key]
        at = len(self.levels) - 1
        while index not in self.levels[at].defined and _runs_once_at_least(self.levels[at].owner):
            outside = (array if isinstance(dim, int) else self.outside(array, place.axis, at)
                       if known else None)
            if outside is None:
                break
            array, at = outside, at - 1
        level = self.levels[at]
        with Builder(Block(), op.line) as builder:
            n = value(dim) if isinstance(dim, int) else length(array, axis=place.axis)
            level.done[key] = checked_place(index, n)
        level.ops += builder.block.ops
        return level.done[key]

    def outside(self, array: Value, axis: int, at: int) -> Value | None:
        """An array as long as `array` that is defined outside the level `at`."""
        level = self.levels[at]
        while array in level.defined:
            start = _made_of(array, level.owner)
            if (start is None or not isinstance(start.type, Array) or start.type.rank <= axis
                    or start.type.dims[axis] != array.type.dims[axis]):
                return None
            array = start
        return array


def _runs_once_at_least(owner: Op | None) -> bool:
    """Whether the block of `owner` runs at least once, unless the loop makes no trip."""
    return owner is not None and owner.name == "for" and not owner.attrs["breaks"]


def _made_of(array: Value, owner: Op) -> Value | None:
    """The array that `array` is a later version of."""
    op = array.op
    if op is None:
        params = owner.blocks[0].params[1:]
        return owner.inputs[3 + params.index(array)] if array in params else None
    if op.record.writes_elements:
        return op.inputs[0]
    return op.inputs[3 + op.outputs.index(array)] if op.name == "for" else None
