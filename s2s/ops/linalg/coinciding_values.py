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
from ..arrays.reduce import amax
from ..core.batch_rules import on_all_lanes
from ..core.cast import as_dtype
from ..core.dependence_rules import anything
from ..core.elementwise import absolute, less_equal, sqrt, where
from ..core.record import define, dtype_of, no_jvp, no_vjp, rank, value
from ..core.shape import length


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
