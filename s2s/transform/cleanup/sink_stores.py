"""Sink stores into captured arrays to the end of a function: what follows them may read what the
arrays held before.

    A *= x                              t = A * x
    return np.sum(A)        grad:       x_bar = np.sum(A)
                                        A[...] = t
                                        return x_bar
"""

from __future__ import annotations

from ...ir.builder import Builder
from ...ir.graph import Function, Op
from ...ir.types import Array
from ...ops.core.copy import copy
from ...ops.program.outside_writes import Elements, write_outside


def is_store(op: Op) -> bool:
    """Whether an op stores the elements of a captured array."""
    return op.record is write_outside and isinstance(op.attrs["write"].place, Elements)


def sink_stores(function: Function) -> Function:
    """Move stores into captured arrays behind all else that `function` computes, in place."""
    block = function.block
    stores = [op for op in block.ops if is_store(op)]
    if stores:
        block.ops = [op for op in block.ops if not is_store(op)]
        with Builder(block):
            # a result that may be the array, or a view of it, is one no more
            block.yields = [
                copy(y) if isinstance(y.type, Array) and (y.op is None or y.op.record.views) else y
                for y in block.yields]
        block.ops += stores
    return function
