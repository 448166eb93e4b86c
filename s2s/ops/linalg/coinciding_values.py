"""Eigenvalues and singular values that coincide, but for rounding errors.

Note [Values that coincide]
The derivatives of eigenvectors and singular vectors divide by the gaps between values, and where
two values coincide the derivative does not exist: the vectors span a plane in an arbitrary basis.
There, a quotient with numerator 0 is 0, because it is not needed; any other is NaN. Results that do
not depend on the choice of basis, such as f(w) between the vectors and their adjoints, have a
derivative without such quotients: matrix_function.py.

Values coincide if rounding alone may have parted them. LAPACK finds those of a matrix that is off
by p(n) eps ||A||, with a modest p(n), and the matrix was itself rounded: of diag(2, 2, 3) in
another basis, the first two come out up to 8 eps ||A|| apart, and their vectors are made of the
errors. Such errors add up as in a random walk (Higham and Mary, A new approach to probabilistic
rounding error analysis, 2019), so p(n) is c sqrt(n).  In matrices of 2 to 600 rows, whose values
were equal before they were rounded, gaps of up to 11 sqrt(n) eps ||A|| were measured; c is 16.  In
double precision, a gap of 1e-12 ||A|| is far from that.

Considered: n eps ||A||, which is too little for n < 40, and in single precision so much for large n
that neighbours coincide in any matrix. Gaps compared with the two values beside them, not with the
largest: LAPACK's errors are those of the largest.
"""

from __future__ import annotations

import ast

import numpy as np

from ...ir.graph import Value
from ...ir.types import Array, Scalar
from ..arrays.axes import expand_dims
from ..arrays.create import eye
from ..arrays.norms import zero_or_quotient
from ..arrays.products import matmul, matrix_transposed
from ..arrays.reduce import amax
from ..core.batch_rules import all_batched, on_all_lanes
from ..core.cast import as_dtype
from ..core.chain_rule import like_operand
from ..core.define_elementwise import elementwise
from ..core.dependence_rules import anything
from ..core.elementwise import absolute, equal, less_equal, sqrt, where
from ..core.record import define, dtype_of, no_jvp, no_vjp, rank, value
from ..core.shape import length, shaped_like, sum_to


def rounding_error(w):
    """How far rounding may part eigenvalues that are equal, or singular values."""
    return 16 * np.finfo(w.dtype).eps * w.shape[-1] ** 0.5 * np.max(np.abs(w), axis=-1, initial=0)


def real_of(dtype: str | None) -> str | None:
    """The dtype of the absolute values of numbers of this dtype."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _infer(w: Value):
    dtype = real_of(dtype_of(w.type))
    return Scalar(dtype) if rank(w) == 1 else Array(dtype, w.type.dims[:-1])


def _lower(op, w: Value) -> Value:
    """The same, of ops that Numba compiles."""
    eps, axis = float(np.finfo(dtype_of(w.type)).eps), rank(w) - 1
    largest = amax(absolute(w), axis=axis, initial=0.0)
    return as_dtype(16 * eps * sqrt(length(w, axis=axis)) * largest, real_of(dtype_of(w.type)))


rounding_record = define(
    "rounding_error",
    evaluate=rounding_error,
    infer=_infer,
    vjp=no_vjp,
    jvp=no_jvp,
    syntax=lambda w: ast.Call(ast.Name("rounding_error", ast.Load()), [w], []),
    helper=rounding_error,
    depends=anything,
    batch=on_all_lanes,
    lower=_lower,
)


def zero_if_rounding(x: Value, w: Value) -> Value:
    """`x`, but 0 where it may be a rounding error of the values `w` of a matrix."""
    return where(less_equal(absolute(x), rounding_record(w)), 0.0, x)


def over_gaps(x: Value, w: Value) -> Value:
    """x[i, j] / (w_j - w_i), with zeros on the diagonal: Note [Values that coincide]."""
    is_one = eye(length(w, axis=0), dtype=value(np.dtype(real_of(dtype_of(w.type)))))
    gaps = zero_if_rounding(expand_dims(w, 0) - expand_dims(w, 1), w)
    return zero_or_quotient(x * (1 - is_one), gaps + is_one)


def coincide(w):
    """Which of the values `w`, an array of NumPy, are equal to a following one but for rounding."""
    near = np.abs(w[:, None] - w) <= rounding_error(w)
    return np.any(np.triu(near, 1), axis=1)


# ------------------------------------------------------------------- products of selected vectors
#
# Vectors with a weight of 0 do not count, even if they have no derivative, NaN.  The derivatives of
# these products are such products again, so the weights may change from 0.


def weighted(x, weights):
    """x * weights, and 0 where the weights are, even if x is NaN."""
    return np.where(weights == 0, 0.0, x) * weights


def selected_product(u, c, v):
    """The sum of c[k] * np.outer(u[:, k], v[k]) where c is not 0; there, u and v may be NaN."""
    row, column = np.expand_dims(c, -2), np.expand_dims(c, -1)
    return (np.where(row == 0, 0.0, u) * row) @ np.where(column == 0, 0.0, v)


def _vjp_weighted(bar, y, x, weights):
    return (like_operand(sum_to(weighted_record(bar, weights), x), x),
            like_operand(sum_to(bar * x, weights), weights))


weighted_record = elementwise(
    "weighted", lambda y, x, weights: weights, lambda y, x, weights: x, evaluate=weighted,
    syntax=lambda *xs: ast.Call(ast.Name("weighted", ast.Load()), list(xs), []),
    helper=weighted, slope="finite", multilinear=(0, 1),
    lower=lambda op, x, weights: where(equal(weights, 0), 0.0, x) * weights)
weighted_record.vjp = _vjp_weighted
weighted_record.jvp = None  # products of tangents are products of selected vectors, too


def _infer_selected(u: Value, c: Value, v: Value):
    dtypes = [dtype_of(x.type) for x in (u, c, v)]
    dtype = None if None in dtypes else np.result_type(*dtypes).name
    return Array(dtype, (*u.type.dims[:-1], v.type.dims[-1]))


def _vjp_selected(bar, y, u, c, v):
    of_u, of_v = matmul(bar, matrix_transposed(v)), matmul(matrix_transposed(u), bar)
    return (like_operand(weighted_record(of_u, expand_dims(c, 0)), u),
            like_operand(shaped_like(sum_to(of_u * u, c), c), c),
            like_operand(weighted_record(of_v, expand_dims(c, 1)), v))


def _lower_selected(op, u: Value, c: Value, v: Value) -> Value:
    row, column = (expand_dims(c, rank(c) - k) for k in (1, 0))
    return matmul(where(equal(row, 0), 0.0, u) * row, where(equal(column, 0), 0.0, v))


selected = define(
    "selected_product",
    evaluate=selected_product,
    infer=_infer_selected,
    vjp=_vjp_selected,
    multilinear=(0, 1, 2),
    syntax=lambda *xs: ast.Call(ast.Name("selected_product", ast.Load()), list(xs), []),
    helper=selected_product,
    depends=anything,
    batch=lambda flags, *xs: selected(*all_batched(flags, xs)),
    lower=_lower_selected,
)
