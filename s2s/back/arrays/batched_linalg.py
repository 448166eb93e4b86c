"""Linear algebra of a stack of matrices: a loop over them, in which each is one.

    x = np.linalg.solve(S, b)     becomes     x = np.empty(np.shape(b))
                                              for i in range(len(S)):
                                                  x[i] = np.linalg.solve(S[i], b[i])

What is done for one matrix is native: small ones are solved in place (small_linalg.py), others by
LAPACK (runtime/kernels/lapack.py). NumPy, which did it for all, is called from compiled code by way
of Python, which takes longer than fifty systems of four equations; and loops over the same matrices
may be joined with this one. A stack of one is that one for all; stacks that may be of one, and
others, stay NumPy's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...ir.graph import Op, Value
from ...ir.types import Array, may_be_one
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.core.control import for_loop
from ...ops.core.record import Record, rank, value
from ...ops.core.shape import length
from ...ops.linalg.determinant import inverse
from ...ops.linalg.determinant import one as cofactors
from ..loopir.ops import same_length_op

# whose matrices come last
OF_ONE = {"inverse_or_nan_of_each": inverse, "cofactors_of_each": cofactors}
OF_STACKS = frozenset({"inv", "solve", "det", "sign_of_det", "log_of_det", "cholesky", *OF_ONE})
NUMBERS = frozenset({"det", "sign_of_det", "log_of_det"})  # one of each matrix
FLOATS = ("float64", "float32")


def matrices(op: Op, inputs: Sequence[Value]) -> Value:
    """The stack of matrices among the inputs."""
    return inputs[-1 if op.name in OF_ONE else 0]


def one_by_one(op: Op, inputs: Sequence[Value],
               simpler: Callable[[Record, Sequence[Value]], Value]) -> Value | None:
    """What `op` gives of stacks, made of what it gives of each member, which `simpler(record,
    inputs)` emits; None where it is NumPy's.
    """
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
    record = OF_ONE.get(op.name, op.record) if rank(matrix) == 3 else op.record
    like = inputs[1] if op.name == "solve" else matrix
    own = [] if op.name in NUMBERS else [value(d) if isinstance(d, int) else length(like, axis=k)
                                         for k, d in enumerate(like.type.dims)][-2:]
    own = [*joined[1:], *own]

    def of_each(i: Value, made: Value) -> list[Value]:
        return [put(made, (i,),
                    simpler(record, [take(x, (i if x in stacks else 0,)) for x in inputs]))]

    start = empty(value((count, *own)), dtype=op.output.type.dtype)
    start.type = op.record.infer(*inputs)  # of lengths that are known elsewhere
    (made,) = for_loop(0, count, 1, [start], of_each)
    return made


def stack_axis(arrays: Sequence[Value], axis: int) -> Value | None:
    """How long the stacks of matrices together are along an axis; None if a run has to tell which
    of them are spread along it.
    """
    longer = [x for x in arrays if x.type.dims[axis] != 1]
    if len({x.type.dims[axis] for x in longer}) > 1 and any(may_be_one(x.type.dims[axis])
                                                            for x in longer):
        return None
    lengths = {x.type.dims[axis]: length(x, axis=axis) for x in longer}
    return functools.reduce(same_length_op, lengths.values()) if lengths else value(1)
