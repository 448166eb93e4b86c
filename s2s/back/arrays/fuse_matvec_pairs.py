"""Fuse two dependent matrix-vector products with one matrix into one pass over the matrix.

    z = X @ w                         for each row:  z_i = sum of X_ij * w_j
    r = f(z)             becomes                     r_i = f(z_i)
    g = r @ X                                        g_j += r_i * X_ij   for all j

A gradient of a function of `X @ w` has this form, and so has a Hessian-vector product. Two calls of
BLAS read X from memory twice, and memory bandwidth limits such products. So they are written as
sums, each of which is a loop over the rows, and those are fused (back/loops/fuse.py): the row is
still in the nearest cache when it is needed again. Where f needs all of z, as a softmax does,
nothing could be fused, and the products are left to BLAS.
"""

from __future__ import annotations

from ...ir.graph import Block, Function, Op, Value, ops_behind
from ...ir.reemit import rebuild
from ...ir.types import Array
from ...ops.arrays.axes import expand_dims
from ...ops.arrays.reduce import sum_record
from ...ops.core.record import rank
from ..loopir.ops import contiguous

REAL = ("float64", "float32")


def fuse_matvec_pairs(function: Function) -> Function:
    """`function` with such pairs of products as sums."""
    chosen = {op for first, second in _pairs(function.block) for op in (first, second)}
    if not chosen:
        return function
    in_rows: dict[Value, Value] = {}

    def rule(op: Op, inputs: list[Value]):
        if op not in chosen:
            return None
        a, b = inputs
        matrix = a if rank(a) == 2 else b
        if matrix not in in_rows:
            # a copy only if the matrix is stored by columns
            in_rows[matrix] = contiguous(matrix)
        rows = in_rows[matrix]
        if rank(a) == 2:
            return [sum_record(rows * b, axis=1, keepdims=False)]
        return [sum_record(expand_dims(a, 1) * rows, axis=0, keepdims=False)]

    return rebuild(function, rule=rule)


def _pairs(block: Block) -> list[tuple[Op, Op]]:
    """The products X @ w and v @ X of `block` where v depends on the first, element by element."""
    products = [op for op in block.ops if op.name == "matmul" and _is_plain(op)]
    return [(first, second) for first in products if rank(first.inputs[0]) == 2
            for second in products if rank(second.inputs[0]) == 1 and second.inputs[1]
            is first.inputs[0] and _follows(second.inputs[0], first.output, block)]


def _is_plain(op: Op) -> bool:
    """Whether `op` is the product of a matrix and a vector of the same kind of floats."""
    return ({rank(x) for x in op.inputs} == {1, 2}
            and len({x.type.dtype for x in (*op.inputs, op.output)}) == 1
            and op.output.type.dtype in REAL)


def _follows(v: Value, z: Value, block: Block) -> bool:
    """Whether each element of `v` depends on that of `z`, and no other."""
    behind = ops_behind(block, [z])
    pending, seen, found = [v], set(), False
    while pending:
        x = pending.pop()
        if x is z:
            found = True
        elif x not in seen and x.op in behind:
            if (not x.op.record.elementwise or not isinstance(x.type, Array)
                    or x.type.dims != z.type.dims):
                return False
            pending += x.op.inputs
        seen.add(x)
    return found
