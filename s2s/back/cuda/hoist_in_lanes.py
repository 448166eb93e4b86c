"""Hoist buffers out of the loops of a lane, and of loops that the host runs, not out of lanes.

    for lane in range(n):                        for lane in range(n):
        for k in range(m):                           t = np.empty(3)
            t = np.empty(3)           becomes        for k in range(m):
            ...                                          ...

All lanes run at once, each with a buffer of its own.
"""

from __future__ import annotations

from ...ir.graph import Function, Op
from ..loops.hoist_buffers import hoist_in_block
from .lane_tapes import mark_lane_tapes
from .nests import Roles


def hoist_in_lanes(function: Function) -> Function:
    """Hoist buffers of `function`, a loop form, in place."""
    roles = Roles(mark_lane_tapes(function, is_final=False))
    lanes: set[Op] = set()
    pending = [function.block]
    for block in pending:
        for op in block.ops:
            if op.name == "for" and roles.of(op) is not None:
                lanes.add(op)
            else:
                pending += op.blocks
    hoist_in_block(function.block, lanes.__contains__)
    return function
