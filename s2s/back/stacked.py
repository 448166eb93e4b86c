"""Linear algebra of a stack of matrices: a loop over them, in which each is one.

    x = np.linalg.solve(S, b)     becomes     x = np.empty(np.shape(b))
                                              for i in range(len(S)):
                                                  x[i] = np.linalg.solve(S[i], b[i])

What is done for one matrix is native: small ones are solved in place (elimination.py), others by LAPACK (runtime/lapack.py).  NumPy, which did it for all,
is called from compiled code by way of Python, which takes longer than fifty systems of four equations; and loops over the same
matrices may be joined with this one.  A stack of one is that one for all; stacks that may be of one, and others, stay NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.graph import Op, Value
from ..ir.types import Array, may_be_one
from ..ops.control import for_loop
from ..ops.create import empty
from ..ops.determinant import inverse
from ..ops.determinant import one as cofactors
from ..ops.index import put, take
from ..ops.record import Record, rank, value
from ..ops.shape import length
from .buffers import same_length_op

OF_ONE = {"inverse_or_nan_of_each": inverse, "cofactors_of_each": cofactors}  # whose matrices come last
OF_STACKS = frozenset({"inv", "solve", "det", "sign_of_det", "log_of_det", "cholesky", *OF_ONE})
NUMBERS = frozenset({"det", "sign_of_det", "log_of_det"})  # one of each matrix
FLOATS = ("float64", "float32")


def matrices(op: Op, inputs: Sequence[Value]) -> Value:
    """The stack of matrices among the inputs."""
    return inputs[-1 if op.name in OF_ONE else 0]


def one_by_one(op: Op, inputs: Sequence[Value], simpler: Callable[[Record, Sequence[Value]], Value]) -> Value | None:
    """What `op` gives of stacks, made of what it gives of each member, which `simpler(record, inputs)` emits; None where it is NumPy's."""
    arrays = [x for x in inputs if isinstance(x.type, Array)]
    matrix = matrices(op, inputs)
    if len({x.type.dtype for x in arrays}) != 1 or matrix.type.dtype not in FLOATS:
        return None
    if op.name == "solve" and rank(inputs[0]) != rank(inputs[1]):
        return None
    single = [x for x in arrays if x.type.dims[0] == 1]
    stacks = [x for x in arrays if x not in single] or single
    firsts = [x.type.dims[0] for x in stacks]
    if any(d != firsts[0] and (may_be_one(d) or may_be_one(firsts[0])) for d in firsts):
        return None
    count = value(firsts[0]) if isinstance(firsts[0], int) else length(stacks[0], axis=0)
    for x, d in zip(stacks, firsts):
        if d != firsts[0]:
            count = same_length_op(count, value(d) if isinstance(d, int) else length(x, axis=0))
    record = OF_ONE.get(op.name, op.record) if rank(matrix) == 3 else op.record
    like = matrix if op.name in NUMBERS or op.name != "solve" else inputs[1]
    lengths = [value(d) if isinstance(d, int) else length(like, axis=k - rank(like)) for k, d in enumerate(like.type.dims)]
    own = lengths[-rank(op.output) + 1:] if op.name not in NUMBERS else lengths[1:-2]

    def of_each(i: Value, made: Value) -> list[Value]:
        return [put(made, (i,), simpler(record, [take(x, (i if x in stacks else 0,)) for x in inputs]))]

    start = empty(value((count, *own)), dtype=op.output.type.dtype)
    start.type = op.record.infer(*inputs)  # of lengths that are known elsewhere
    (made,) = for_loop(0, count, 1, [start], of_each)
    return made
