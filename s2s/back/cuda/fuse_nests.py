"""Fuse nests whose trips are independent, so that one kernel runs them.

    for i in range(n):                      for i in range(n):
        s = 0.0                                 s = 0.0
        for j in range(m):                      for j in range(m):
            s += x[i, j]            becomes         s += x[i, j]
        t[i] = s                                for j in range(m):
    for i in range(n):                              y[i, j] = x[i, j] / s
        for j in range(m):
            y[i, j] = x[i, j] / t[i]

The rules are those of native code (back/loops/fuse.py), but for what is worthwhile: a launch costs
as much as the arithmetic of thousands of trips, and no loop is made vectors of.
"""

from __future__ import annotations

from ...analysis.dependence import Trip
from ...ir.graph import Block, Function, Op, Value
from ..loops.fuse import Fusion, Lengths, drop_unchanged
from ..print.insert_copies import insert_copies
from .align_nests import align_nests
from .interchange import interchange_loops
from .lane_tapes import sink_tapes
from .nests import Roles


class KernelFusion(Fusion):
    """The fusion of the nests of one function."""

    keeps_rows = True  # a kernel allocates nothing

    def __init__(self, function: Function):
        self.function = function
        self.renew()

    def renew(self) -> None:
        """Forget what was known of the loops."""
        super().__init__(self.function)
        self.roles = Roles(self.function)

    def is_worthwhile(self, first: Op, second: Op, handed: list[Value]) -> bool:
        return self.roles.of(first) is not None and self.roles.of(second) is not None

    def may_hand_on(self, y: Value, first: Op, second: Op, one: Trip, other: Trip,
                    block: Block) -> bool:
        """As in native code, but elements that both loops have of their own remain a trip's own:
        otherwise threads would add to them atomically.
        """
        if not super().may_hand_on(y, first, second, one, other, block):
            return False
        k = first.outputs.index(y)
        starts = [j for j, x in enumerate(second.inputs[3:]) if x is y]
        if not any(self.roles.of(first)[k] == self.roles.of(second)[j] == "own" for j in starts):
            return True
        (j,) = starts
        return any(len({trip.distance(op, place, axis)
                        for trip, v in ((one, one.body.params[1 + k]),
                                        (other, other.body.params[1 + j]))
                        for op, place in trip.touching(trip.versions(v))} | {None}) == 2
                   for axis in range(y.type.rank))


def fuse_nests(function: Function) -> Function:
    """Fuse the independent nests of `function`, a loop form."""
    function = sink_tapes(insert_copies(function, results=True, augmented=False))
    drop_unchanged(function.block)
    KernelFusion(function).block(function.block, Lengths())
    while interchange_loops(function) or align_nests(KernelFusion(function)):
        KernelFusion(function).block(function.block, Lengths())
    return function
