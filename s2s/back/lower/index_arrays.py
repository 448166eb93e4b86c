"""Compute sums of ranges that are used only as indices by arithmetic instead of arrays.

    rows = np.arange(0, n, 2)[:, None] + np.arange(k)
    ... x[rows, :]                                          becomes        x[2 * i + j, l]

This applies where they are only used as indices, of one block: an array that is also read otherwise
may as well be in memory, and is computed in one loop with its other uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Block, Op, Value, free_values
from ...ir.types import Array, Scalar
from ...ops.arrays.axes import expand_dims_record, transpose_record
from ...ops.arrays.index import getitem
from ...ops.arrays.index_pattern import is_advanced
from ...ops.core.record import value
from ..loopir.elements import Elements
from ..loopir.loop_builder import op_named

# views that have a rule here as sums of ranges do
VIEWS = (getitem, expand_dims_record, transpose_record)


def index_sums(block: Block) -> set[Op]:
    """The sums and products of integer ranges in `block` that are used as indices only."""
    ranges: dict[Value, Op] = {}
    for op in block.ops:
        if len(op.outputs) == 1 and (is_range(op) or is_view(op) and op.inputs[0] in ranges
                                     or is_sum(op, ranges)):
            ranges[op.output] = op
    for y in [*block.yields, *(x for op in block.ops for inner in op.blocks
                               for x in free_values(inner))]:
        drop(y, ranges)
    for op in reversed(block.ops):  # uses follow definitions
        if len(op.outputs) == 1 and op.output in ranges:
            continue
        for k, x in enumerate(op.inputs):
            if k not in op.record.shapes and not is_index(op, k):
                drop(x, ranges)
    return {op for op in ranges.values() if op.record.ring}


def drop(x: Value, ranges: dict[Value, Op]) -> None:
    """Remove `x` and its operands from `ranges`."""
    op = ranges.pop(x, None)
    for y in op.inputs if op is not None else ():
        drop(y, ranges)


def is_range(op: Op) -> bool:
    """Whether `op` is np.arange of integers with a constant step."""
    return (op.name == "arange" and op.output.type.dtype == "int64"
            and all(x.type.dtype == "int64" for x in op.inputs)
            and type(op.inputs[2].constant) is int and op.inputs[2].constant != 0)


def is_view(op: Op) -> bool:
    """Whether `op` permutes the axes of an array, and adds axes of length 1."""
    return op.record in VIEWS and (op.record is not getitem or len(op.inputs) == 1
                                 and "i" not in op.attrs["pattern"])


def is_sum(op: Op, ranges: dict[Value, Op]) -> bool:
    """Whether `op` adds or multiplies ranges in `ranges` and numbers, with known broadcasting."""
    if (not op.record.ring or not isinstance(op.output.type, Array)
            or op.output.type.dtype != "int64"):
        return False
    dims = op.output.type.dims
    return all(x.type.dtype == "int64"
               and (isinstance(x.type, Scalar) or x in ranges
                    and all(d == 1 or d == n
                            for d, n in zip(x.type.dims, dims[len(dims) - x.type.rank:])))
               for x in op.inputs)


def is_index(op: Op, k: int) -> bool:
    """Whether input `k` of `op` is an index array."""
    first = op.record.indices
    return first is not None and k >= first and is_advanced(op.attrs["pattern"], op.inputs[first:])


def sum_of_indices(scope, op: Op) -> Elements:
    """The elements of one of the `index_sums`."""
    count = op.output.type.rank
    lengths: list[Value | None] = [value(1) if d == 1 else None for d in op.output.type.dims]
    arrays = {x: scope.elements(x) for x in op.inputs if isinstance(x.type, Array)}
    for x, elements in arrays.items():
        for axis, (d, n) in enumerate(zip(x.type.dims, elements.lengths), count - x.type.rank):
            if d != 1:
                lengths[axis] = n if lengths[axis] is None else scope.same(lengths[axis], n)

    def operand(x: Value, index: Sequence[Value]) -> Value:
        if x not in arrays:
            return scope.env[x]
        return arrays[x].at([value(0) if d == 1 else i
                             for d, i in zip(x.type.dims, index[count - x.type.rank:])])

    return Elements(op.output.type, tuple(lengths),
                    lambda index: op_named(op.name,
                                           *(operand(x, index) for x in op.inputs)), generated=True)
