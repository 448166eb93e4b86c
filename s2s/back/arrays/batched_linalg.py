"""Expand linear algebra on a stack of matrices into a loop over the matrices.

    x = np.linalg.solve(S, b)     becomes     x = np.empty(np.shape(b))
                                              for i in range(len(S)):
                                                  x[i] = np.linalg.solve(S[i], b[i])

The op on one matrix is native: small ones are solved in place (small_linalg.py), others by LAPACK
(runtime/kernels/lapack.py). NumPy on the whole stack is called from compiled code through Python,
which takes longer than fifty systems of four equations; and the loop can be fused with others over
the same matrices. A stack of length 1 is broadcast; stacks whose length may or may not be 1 stay
NumPy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...ir.graph import Op, Value
from ...ir.types import Array, may_be_one
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.arrays.products import matmul
from ...ops.core.control import for_loop
from ...ops.core.record import Record, rank, value
from ...ops.core.shape import length
from ..loopir.ops import same_length_op

FLOATS = ("float64", "float32")


def is_of_stacks(op: Op) -> bool:
    """Whether native code has `op` for one matrix, of the stack that it may be of."""
    record = op.record
    return record.of_one is not None or record.native == "matrix" and record is not matmul


def matrices(op: Op, inputs: Sequence[Value]) -> Value:
    """The stack of matrices among the inputs: the last, of what else is computed of it before."""
    return inputs[0 if op.record.of_one is None else -1]


def expand_batch(op: Op, inputs: Sequence[Value],
               simpler: Callable[[Record, Sequence[Value]], Value]) -> Value | None:
    """`op` on stacks as a loop of `simpler(record, inputs)` on members; None leaves it to NumPy."""
    arrays = [x for x in inputs if isinstance(x.type, Array)]
    matrix = matrices(op, inputs)
    if len({x.type.dtype for x in arrays}) != 1 or matrix.type.dtype not in FLOATS:
        return None
    if op.name == "solve" and rank(inputs[0]) != rank(inputs[1]):
        return None
    axes = rank(matrix) - 2
    joined = [stack_axis(arrays, k) for k in range(axes)]
    if None in joined:
        return None
    stacks = [x for x in arrays if x.type.dims[0] != 1] or arrays
    count = joined[0]
    record = (op.record.of_one or op.record) if rank(matrix) == 3 else op.record
    like = inputs[1] if op.name == "solve" else matrix
    own = [] if rank(op.output) == axes else [  # one number for each matrix
        value(d) if isinstance(d, int) else length(like, axis=k)
        for k, d in enumerate(like.type.dims)][-2:]
    own = [*joined[1:], *own]

    def of_each(i: Value, result: Value) -> list[Value]:
        return [put(result, (i,),
                    simpler(record, [take(x, (i if x in stacks else 0,)) for x in inputs]))]

    start = empty(value((count, *own)), dtype=op.output.type.dtype)
    start.type = op.record.infer(*inputs)  # with lengths that other values have
    (result,) = for_loop(0, count, 1, [start], of_each)
    return result


def stack_axis(arrays: Sequence[Value], axis: int) -> Value | None:
    """The common stack length along an axis; None if broadcasting is known only at run time."""
    longer = [x for x in arrays if x.type.dims[axis] != 1]
    if len({x.type.dims[axis] for x in longer}) > 1 and any(may_be_one(x.type.dims[axis])
                                                            for x in longer):
        return None
    lengths = {x.type.dims[axis]: length(x, axis=axis) for x in longer}
    return functools.reduce(same_length_op, lengths.values()) if lengths else value(1)
