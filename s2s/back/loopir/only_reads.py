"""Test whether an op of the loop form uses an array for nothing but its numbers and its lengths.

Then what becomes of the array's memory afterwards does not matter to the op, nor to its results.
"""

from __future__ import annotations

from ...ir.graph import Op, Value
from ...ir.types import Array
from ...ops.arrays.index import getitem
from ...ops.arrays.products import matmul
from ...ops.core.shape import length


def only_reads(op: Op, array: Value) -> bool:
    """Whether `op`, with its blocks, only reads elements of `array`, and keeps no view of it."""
    waiting = [op]
    while waiting:
        op = waiting.pop()
        if array in op.inputs and not (op.record in (matmul, length) or op.record is getitem
                                       and not isinstance(op.output.type, Array)):
            return False
        for block in op.blocks:
            if array in block.yields:
                return False
            waiting += block.ops
    return True
