"""Matrix decompositions: eigh, svd, qr; and ops for matrices of any shape: pinv, lstsq, powers.

A decomposition is one op with several results. Considered: an op for each factor, as slogdet has,
which would factorise once for each factor that is read; composing the factors from differentiable
ops, which would be neither NumPy's bits nor as fast. The rules are those of Giles, An extended
collection of matrix derivative results for forward and reverse mode AD (2008), and Seeger et al.,
Auto-differentiating linear algebra (2017); that of the pseudo-inverse is due to Golub and Pereyra
(1973).

Note [Singular values of 0]
In a matrix that is not square, the vectors of a singular value of 0 (but for rounding) may be any
of a complement, as those of two values that coincide may be any of a plane, and quotients by such
values are treated as coinciding_values.py does it. In a square matrix there is no complement, and
the vectors of a single value of 0 have a derivative.

Note [Squares of singular values]
s_j ** 2 - s_i ** 2 may overflow or underflow where the values do not. So quotients are divided by
s_j - s_i and by s_j + s_i, one after the other, and a numerator with a factor s_i or s_j is divided
by the sum first.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent
from ...ir.graph import MISSING, Value
from ...ir.types import Array, Type
from ...lazy_import import Named
from ..arrays.axes import expand_dims
from ..arrays.concatenate import concatenate_record
from ..arrays.create import eye, zeros_like
from ..arrays.index import put, take
from ..arrays.norms import zero_or_quotient
from ..arrays.products import check_inner, matmul, matrix_transposed, product_dtype
from ..arrays.reduce import as_array, is_complex, sum_record
from ..arrays.selection import diagonal, tril
from ..core.array_raise_conditions import is_not_finite_somewhere
from ..core.elementwise import conjugate, equal, min_, where
from ..core.elementwise import real as real_part
from ..core.kinks import Kink, kinked
from ..core.raise_conditions import Raises
from ..core.record import define, dtype_of, numpy_function, rank, static, value
from ..core.shape import length, shaped_like
from .coinciding_values import coincide, over_gaps, real_of, rounding_error, zero_if_rounding
from .matrix_equations import one_matrix, scipy_call, scipys
from .solve import completed, inv, linalg_call, onto_triangle, real_dtype, solve, square_dims

t = matrix_transposed


def _matrix(a, what: str, real: bool = True) -> Value:
    """`a`, checked to be one matrix, of real numbers unless `real` is False."""
    a = one_matrix(a, what)
    if real and is_complex(a):
        raise UnsupportedError(f"{what} of a complex matrix", current().line,
                               "split it into its real and imaginary parts")
    return a


def is_zero(bar: Value) -> bool:
    """Whether a cotangent is zero because nothing reads its value."""
    return (bar.op is not None
            and (bar.op.name in ("zeros", "zeros_like")
                 or bar.constant is not MISSING and bar.constant == 0))


def _conjugate(x: Value) -> Value:
    return conjugate(x) if is_complex(x) else x


def _adjoint(x: Value) -> Value:
    """The conjugate transpose."""
    return t(_conjugate(x))


def _real(x: Value) -> Value:
    return real_part(x) if is_complex(x) else x


def _size_dtype(dtype: str | None) -> str | None:
    """The dtype of eigenvalues of Hermitian matrices, and of singular values."""
    return real_of(real_dtype(dtype))


# --------------------------------------------------------------------------------------------- eigh


def _infer_eigh(a: Value, **triangle) -> list[Type]:
    dims = square_dims(a, "np.linalg.eigh")
    dtype = dtype_of(a.type)
    return [Array(_size_dtype(dtype), dims[:1]), Array(real_dtype(dtype), dims)]


def _vjp_eigh(bars, ys, a, *, upper, of_scipy):
    (w_bar, v_bar), (w, v) = bars, ys
    if is_zero(v_bar):
        return (onto_triangle(matmul(_conjugate(v) * w_bar, t(v)), upper),)
    inner = over_gaps(matmul(t(v), v_bar), w)
    if not is_zero(w_bar):
        inner = inner + eye(length(w, axis=0)) * w_bar
    return (onto_triangle(matmul(matmul(_conjugate(v), inner), t(v)), upper),)


def _jvp_eigh(dots, ys, a, *, upper, of_scipy):
    if dots[0] is None:
        return None
    w, v = ys
    inner = matmul(matmul(_adjoint(v), completed(dots[0], upper)), v)
    return _real(diagonal(inner)), matmul(v, over_gaps(inner, w))


def _eigh_syntax(a: ast.expr, *, upper: bool, of_scipy: bool) -> ast.expr:
    """np.linalg.eigh(a), np.linalg.eigh(a, "U"), scipy.linalg.eigh(a), scipy.linalg.eigh(a,
    lower=False)
    """
    if not of_scipy:
        return linalg_call("eigh", a, *[ast.Constant("U")] * upper)
    call = scipy_call("eigh", a)
    call.keywords = [ast.keyword("lower", ast.Constant(False))] * upper
    return call


# why both rules are stated
SOME_RESULTS = "a result without a cotangent leaves out terms that a transpose would compute"
OF_DIAGONAL = "the cotangent of a diagonal scales vectors, without a diagonal matrix"
eigh_record = define(
    # of one triangle: solve.py, Note [Which triangle is read]; SciPy asks another routine of
    # LAPACK, whose vectors have other signs
    "eigh",
    evaluate=lambda a, *, upper, of_scipy: tuple(
        scipys("eigh")(a, lower=not upper) if of_scipy else np.linalg.eigh(a, "LU"[upper])),
    infer=_infer_eigh,
    vjp=_vjp_eigh,
    jvp=_jvp_eigh,
    states_both=SOME_RESULTS,
    syntax=_eigh_syntax,
)


def _is_upper(UPLO) -> bool:  # noqa: N803  NumPy's own name
    half = static(UPLO, "UPLO=")
    if half not in ("L", "U", "l", "u"):
        raise TypeMismatchError("UPLO argument must be 'L' or 'U'", current().line,
                                "say which half holds the matrix")
    return half in "Uu"


@numpy_function(np.linalg.eigh, fields="eigenvalues eigenvectors")
def eigh(a, UPLO="L") -> Value:  # noqa: N803  NumPy's own name
    """np.linalg.eigh of one symmetric or Hermitian matrix: eigenvalues and eigenvectors."""
    return value(eigh_record(_matrix(a, "np.linalg.eigh", real=False), upper=_is_upper(UPLO),
                             of_scipy=False))


@numpy_function(Named("s2s.library.scipy_functions", "eigh_of_one"))
def _eigh_of_scipy(a, upper) -> Value:
    """scipy.linalg.eigh of one matrix, of which one triangle is read."""
    return value(eigh_record(_matrix(a, "scipy.linalg.eigh", real=False),
                             upper=static(upper, "lower="), of_scipy=True))


def _vjp_eigenvalues(bar, y, a, *, upper):
    v = eigh_record(a, upper=upper, of_scipy=False)[1]
    return (onto_triangle(matmul(_conjugate(v) * bar, t(v)), upper),)


def _jvp_eigenvalues(dots, y, a, *, upper):
    if dots[0] is None:
        return None
    v = eigh_record(a, upper=upper, of_scipy=False)[1]
    return _real(diagonal(matmul(matmul(_adjoint(v), completed(dots[0], upper)), v)))


eigenvalues = define(
    "eigenvalues",  # of one triangle, too
    evaluate=lambda a, *, upper: np.linalg.eigvalsh(a, "LU"[upper]),
    infer=lambda a, *, upper: _infer_eigh(a)[0],
    vjp=_vjp_eigenvalues,
    jvp=_jvp_eigenvalues,
    states_both=OF_DIAGONAL,
    syntax=lambda a, *, upper: linalg_call("eigvalsh", a, *[ast.Constant("U")] * upper),
)


@numpy_function(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L") -> Value:  # noqa: N803  NumPy's own name
    """np.linalg.eigvalsh of one symmetric or Hermitian matrix."""
    return eigenvalues(_matrix(a, "np.linalg.eigvalsh", real=False), upper=_is_upper(UPLO))


# ---------------------------------------------------------------------------------------------- svd


def _shorter(a: Value):
    """The extent min(m, n) of a matrix."""
    m, n = a.type.dims
    return (m if m == n else min(m, n) if isinstance(m, int) and isinstance(n, int) else 1
            if 1 in (m, n) else fresh_extent())


def _infer_svd(a: Value) -> list[Type]:
    (m, n), k, dtype = a.type.dims, _shorter(a), real_dtype(dtype_of(a.type))
    return [Array(dtype, (m, k)), Array(_size_dtype(dtype), (k,)), Array(dtype, (k, n))]


def _shares(s: Value) -> tuple[Value, Value]:
    """s_j / (s_j + s_i) and s_i / (s_j + s_i), halves for two zeros: Note [Squares of singular
    values].
    """
    row, column = expand_dims(s, 0), expand_dims(s, 1)
    total = row + column
    none = equal(total, 0.0)
    total = where(none, 1.0, total)
    return where(none, 0.5, row / total), where(none, 0.5, column / total)


def _over(s: Value) -> Value:
    """1 / s, and 0 for a singular value of 0, whose vectors have phases of their own."""
    none = equal(zero_if_rounding(s, s), 0.0)
    return where(none, 0.0, 1.0 / where(none, 1.0, s))


def _from_complement(x: Value, basis: Value, s: Value) -> Value | None:
    """The components of columns `x` in the complement of the `basis`, over the singular values:
    Note [Singular values of 0]. None if the basis is known to have no complement.
    """
    m, k = basis.type.dims
    if m == k:
        return None
    rest = x - matmul(basis, matmul(_adjoint(basis), x))
    if not (isinstance(m, int) and isinstance(k, int)):  # rounding errors are not divided by zeros
        rest = where(equal(length(basis, axis=0), length(basis, axis=1)), 0.0, rest)
    return zero_or_quotient(rest, expand_dims(zero_if_rounding(s, s), 0))


def _vjp_svd(bars, ys, a):
    (u_bar, s_bar, vt_bar), (u, s, vt) = bars, ys
    v_bar, v, uc, vc = _adjoint(vt_bar), _adjoint(vt), _conjugate(u), _conjugate(vt)
    total = None if is_zero(s_bar) else matmul(uc * s_bar, vc)
    row, column = _shares(s)

    def add(term: Value) -> Value:
        return term if total is None else total + term

    if not is_zero(u_bar):
        turned = matmul(t(u), u_bar)
        inner = over_gaps(turned * row, s) - over_gaps(_adjoint(turned) * row, s)
        if is_complex(a):  # the phases, applied to u
            inner = inner + eye(length(s, axis=0)) * (0.5 * (turned - _conjugate(turned))
                                                      * _over(s))
        total = add(matmul(matmul(uc, inner), vc))
        rest = _from_complement(u_bar, uc, s)
        total = total if rest is None else total + matmul(rest, vc)
    if not is_zero(vt_bar):
        turned = matmul(t(v), v_bar)
        inner = over_gaps(turned * column, s) - over_gaps(_adjoint(turned) * column, s)
        total = add(matmul(matmul(uc, inner), vc))
        rest = _from_complement(v_bar, _conjugate(v), s)
        total = total if rest is None else total + matmul(uc, _adjoint(rest))
    return (total,)


def _jvp_svd(dots, ys, a):
    if dots[0] is None:
        return None
    u, s, vt = ys
    dot, v, (row, column) = dots[0], _adjoint(vt), _shares(s)
    inner = matmul(matmul(_adjoint(u), dot), v)
    turn = over_gaps(inner * row, s) + over_gaps(column * _adjoint(inner), s)
    if is_complex(a):
        turn = turn + eye(length(s, axis=0)) * (0.5 * (inner - _conjugate(inner)) * _over(s))
    u_dot, rest = matmul(u, turn), _from_complement(matmul(dot, v), u, s)
    u_dot = u_dot if rest is None else u_dot + rest
    v_dot = matmul(v, (over_gaps(column * inner, s) + over_gaps(_adjoint(inner) * row, s)))
    rest = _from_complement(matmul(_adjoint(dot), u), v, s)
    v_dot = v_dot if rest is None else v_dot + rest
    return u_dot, _real(diagonal(inner)), _adjoint(v_dot)


def _lengths_of_svd(length: Callable, a: Value) -> list[tuple]:
    n, m = length(a, 0), length(a, 1)
    k = min_(n, m)
    return [(n, k), (k,), (k, m)]


svd_record = define(
    "svd",
    evaluate=lambda a: tuple(np.linalg.svd(a, full_matrices=False)),
    infer=_infer_svd,
    vjp=_vjp_svd,
    jvp=_jvp_svd,
    states_both=SOME_RESULTS,
    syntax=lambda a: _svd_call(a, full_matrices=False),
    lengths=_lengths_of_svd,
)
singular_values = define(
    "singular_values",
    evaluate=lambda a: np.linalg.svd(a, compute_uv=False),
    infer=lambda a: Array(_size_dtype(dtype_of(a.type)), (_shorter(a),)),
    vjp=lambda bar, y, a: (_through_svd(bar, a),),
    jvp=lambda dots, y, a: None if dots[0] is None else _along_svd(dots[0], a),
    states_both=OF_DIAGONAL,
    syntax=lambda a: _svd_call(a, compute_uv=False),
    lengths=lambda length, a: _lengths_of_svd(length, a)[1:2],
)
NO_SIZE = "a singular value of 0: the derivative is that along the vectors that LAPACK gives"
eigh_record.spectrum, svd_record.spectrum = eigenvalues, singular_values
NO_VECTORS = ("a singular value of 0 of a matrix that is not square, so that its vectors have no "
              "derivative: where what depends on them is 0, so is the derivative, else it is NaN")
COINCIDE = ("{} coincide, so that their vectors have no derivative: where what depends on them is "
            "0, so is the derivative, else it is NaN")
EACH_ALONG = "{} coincide: each has the derivative along the vector that LAPACK gives for it"


def vanish(s):
    """Which singular values are 0, but for rounding."""
    return s <= rounding_error(s)


for _record in (eigh_record, eigenvalues):
    kinked(_record, Kink(EACH_ALONG.format("eigenvalues"), lambda ys, a, **of: coincide(
        ys[0] if isinstance(ys, (list, tuple)) else ys), through=(0,)))
kinked(svd_record, Kink(EACH_ALONG.format("singular values"), lambda ys, a: coincide(ys[1]),
                        through=(1,)))
kinked(singular_values, Kink(EACH_ALONG.format("singular values"), lambda y, a: coincide(y)))
kinked(eigh_record, Kink(COINCIDE.format("eigenvalues"), lambda ys, a, **of: coincide(ys[0]),
                         through=(1,), always=True))
kinked(svd_record, Kink(COINCIDE.format("singular values"), lambda ys, a: coincide(ys[1]),
                        through=(0, 2), always=True))
kinked(svd_record, Kink(
    NO_VECTORS, lambda ys, a: vanish(ys[1]) & (np.shape(a)[0] != np.shape(a)[1]), through=(0, 2),
    always=True))
kinked(svd_record, Kink(NO_SIZE, lambda ys, a: vanish(ys[1])))
kinked(singular_values, Kink(NO_SIZE, lambda y, a: vanish(y)))


def _through_svd(bar: Value, a: Value) -> Value:
    u, _, vt = svd_record(a)
    return matmul(_conjugate(u) * bar, _conjugate(vt))


def _along_svd(dot: Value, a: Value) -> Value:
    u, _, vt = svd_record(a)
    return _real(diagonal(matmul(matmul(_adjoint(u), dot), _adjoint(vt))))


def _svd_call(a: ast.expr, **keywords) -> ast.expr:
    call = linalg_call("svd", a)
    call.keywords = [ast.keyword(key, ast.Constant(x)) for key, x in keywords.items()]
    return call


@numpy_function(np.linalg.svd, fields="U S Vh")
def svd(a, full_matrices=True, compute_uv=True, hermitian=False) -> Value:
    """np.linalg.svd of one matrix, with full_matrices=False unless it is square."""
    a = _matrix(a, "np.linalg.svd", real=False)
    if static(hermitian):
        raise UnsupportedError("np.linalg.svd with hermitian=", current().line,
                               "leave it out, or use np.linalg.eigh")
    if not static(compute_uv):
        return singular_values(a)
    if static(full_matrices) and a.type.dims[0] != a.type.dims[1]:
        raise UnsupportedError("np.linalg.svd with all of U and V", current().line,
                               "pass full_matrices=False")
    return value(svd_record(a))


if hasattr(np.linalg, "svdvals"):
    numpy_function(np.linalg.svdvals)(lambda x: singular_values(_matrix(x, "np.linalg.svdvals",
                                                                        real=False)))

# ----------------------------------------------------------------------------------------------- qr


def _infer_qr(a: Value) -> list[Type]:
    (m, n), k, dtype = a.type.dims, _shorter(a), real_dtype(dtype_of(a.type))
    return [Array(dtype, (m, k)), Array(dtype, (k, n))]


# Of a matrix with more columns than rows, a = [x, y] with a square x, r is [u, v], and [q, u] the
# factors of x; v = q.T @ y.


def _may_be_wide(a: Value) -> bool:
    """Whether a matrix may have more columns than rows."""
    m, n = a.type.dims
    return not (m == n or n == 1 or isinstance(m, int) and isinstance(n, int) and m >= n)


def _vjp_qr(bars, ys, a):
    (q_bar, r_bar), (q, r) = bars, ys
    if not _may_be_wide(a):
        return (_vjp_tall_qr(q_bar, r_bar, q, r),)
    count = length(q, axis=1)
    first, rest = (slice(None), slice(None, count)), (slice(None), slice(count, None))
    rest_bar = take(r_bar, rest)
    x_bar = _vjp_tall_qr(q_bar + matmul(take(a, rest), t(rest_bar)), take(r_bar, first), q,
                         take(r, first))
    return (shaped_like(concatenate_record(x_bar, matmul(q, rest_bar), axis=1), a),)


def _vjp_tall_qr(q_bar, r_bar, q, r):
    middle = matmul(r, t(r_bar)) - matmul(t(q_bar), q)
    inner = q_bar + matmul(q, tril(middle) + t(tril(middle, -1)))
    return t(solve(r, t(inner)))


def _jvp_qr(dots, ys, a):
    if dots[0] is None:
        return None
    dot, (q, r) = dots[0], ys
    if not _may_be_wide(a):
        return _jvp_tall_qr(dot, q, r)
    count = length(q, axis=1)
    first, rest = (slice(None), slice(None, count)), (slice(None), slice(count, None))
    q_dot, u_dot = _jvp_tall_qr(take(dot, first), q, take(r, first))
    v_dot = matmul(t(q_dot), take(a, rest)) + matmul(t(q), take(dot, rest))
    return shaped_like(q_dot, q), shaped_like(concatenate_record(u_dot, v_dot, axis=1), r)


def _jvp_tall_qr(dot, q, r):
    moved = t(solve(t(r), t(dot)))  # of a @ inv(r)
    inner = matmul(t(q), moved)
    turn = tril(inner, -1) - t(tril(inner, -1))
    return matmul(q, turn) + moved - matmul(q, inner), matmul(inner - turn, r)


qr_record = define(
    # its derivative: where the first columns, as many as there are rows at the most, are
    # independent
    "qr",
    evaluate=lambda a: tuple(np.linalg.qr(a)),
    infer=_infer_qr,
    vjp=_vjp_qr,
    jvp=_jvp_qr,
    states_both="the cotangents of q and r are added before the only solve",
    syntax=lambda a: linalg_call("qr", a),
    lengths=lambda length, a: _lengths_of_svd(length, a)[::2],
)


@numpy_function(np.linalg.qr, fields="Q R")
def qr(a, mode="reduced") -> Value:
    """np.linalg.qr of one matrix, reduced."""
    if static(mode) != "reduced":
        raise UnsupportedError(f"np.linalg.qr with mode={static(mode)!r}", current().line,
                               "leave the mode out")
    return value(qr_record(_matrix(a, "np.linalg.qr")))


# -------------------------------------------------------------------- pseudo-inverse, least squares


def _vjp_pinv(bar, y, a):
    across = matmul(t(bar), matmul(y, t(y)))
    along = matmul(matmul(t(y), y), t(bar))
    return (across - matmul(a, matmul(y, across)) + along - matmul(matmul(along, y), a)
            - matmul(matmul(t(y), bar), t(y)),)


def _jvp_pinv(dots, y, a):
    if dots[0] is None:
        return None
    dot = dots[0]
    across, along = matmul(matmul(y, t(y)), t(dot)), matmul(t(dot), matmul(t(y), y))
    return (across - matmul(matmul(across, a), y) + along - matmul(y, matmul(a, along))
            - matmul(matmul(y, dot), y))


pinv_record = define(
    "pinv",  # its derivative: where the rank does not change
    evaluate=np.linalg.pinv,
    infer=lambda a: Array(real_dtype(dtype_of(a.type)), a.type.dims[::-1]),
    vjp=_vjp_pinv,
    jvp=_jvp_pinv,
    states_both="the products of three matrices are bracketed otherwise in each mode",
    syntax=lambda a: linalg_call("pinv", a),
)
SAME_RANK = "columns depend on one another: the derivative is that along which they still do"
kinked(pinv_record,
       Kink(SAME_RANK, lambda y, a: np.linalg.matrix_rank(a) < min(np.shape(a))))


@numpy_function(np.linalg.pinv)
def pinv(a) -> Value:
    """np.linalg.pinv of one matrix."""
    return pinv_record(_matrix(a, "np.linalg.pinv"))


def _infer_lstsq(a: Value, b: Value) -> list[Type]:
    check_inner(a.type.dims[0], b.type.dims[0], "np.linalg.lstsq")
    dtype = real_dtype(product_dtype(a, b))
    x = Array(dtype, (a.type.dims[1], *b.type.dims[1:]))
    return [x, Array(dtype, (fresh_extent(),)), value(0).type,
            Array(real_dtype(dtype_of(a.type)), (_shorter(a),))]


def _columns(b: Value, x: Value) -> tuple[Value, Value]:
    """Vectors as matrices of one column."""
    return (b, x) if rank(b) == 2 else (expand_dims(b, 1), expand_dims(x, 1))


def _vector(x: Value) -> Value:
    return take(x, (slice(None), 0))


def _vjp_lstsq(bars, ys, a, b):
    y, (right, x), (bar, _) = pinv_record(a), _columns(b, ys[0]), _columns(bars[0], ys[0])
    b_bar, left = matmul(t(y), bar), matmul(t(y), x)
    rest = right - matmul(a, x)
    a_bar = (matmul(rest, t(matmul(y, b_bar))) + matmul(left, t(bar - matmul(y, matmul(a, bar))))
             - matmul(b_bar, t(x)))
    if not is_zero(bars[1]):  # of the sums of squares, if any
        weights = put(zeros_like(take(x, 0)), slice(None, length(ys[1], axis=0)), bars[1])
        turned = 2.0 * weights * rest
        a_bar, b_bar = a_bar - matmul(turned, t(x)), b_bar + turned
    if not is_zero(bars[3]):
        a_bar = a_bar + _through_svd(bars[3], a)
    return a_bar, b_bar if rank(b) == 2 else _vector(b_bar)


def _jvp_lstsq(dots, ys, a, b):
    if dots[0] is None and dots[1] is None:
        return None
    y, (right, x), moved = pinv_record(a), _columns(b, ys[0]), []
    rest = right - matmul(a, x)
    if dots[1] is not None:
        of_right = dots[1] if rank(b) == 2 else expand_dims(dots[1], 1)
        moved.append(matmul(y, of_right))
        rest_dot = of_right
    if dots[0] is not None:
        dot, turned = dots[0], matmul(t(dots[0]), matmul(t(y), x))
        moved.append(matmul(matmul(y, t(y)), matmul(t(dot), rest)))
        moved.append(turned - matmul(y, matmul(a, turned)) - matmul(y, matmul(dot, x)))
        rest_dot = -matmul(dot, x) if dots[1] is None else of_right - matmul(dot, x)
    total = reduce(operator.add, moved)
    # none where NumPy has none
    sums = take(sum_record(2.0 * rest * rest_dot, axis=0, keepdims=False),
                slice(None, length(ys[1], axis=0)))
    return (total if rank(b) == 2 else _vector(total), sums, None,
            None if dots[0] is None else _along_svd(dots[0], a))


lstsq_record = define(
    "lstsq",  # the derivatives are those where the rank does not change
    evaluate=lambda a, b: tuple(np.linalg.lstsq(a, b)),
    infer=_infer_lstsq,
    vjp=_vjp_lstsq,
    jvp=_jvp_lstsq,
    states_both=SOME_RESULTS,
    syntax=lambda a, b: linalg_call("lstsq", a, b),
    # whether there are residuals, only the rank tells
    lengths=lambda length, a, b: [None, None, None, *_lengths_of_svd(length, a)[1:2]],
)
kinked(lstsq_record,
       Kink(SAME_RANK, lambda ys, a, b: ys[2] < min(np.shape(a)), of=(0,), through=(0, 1)))


@numpy_function(np.linalg.lstsq)
def lstsq(a, b, rcond=None) -> Value:
    """np.linalg.lstsq: the solution, the residual sums of squares, the rank (without derivative),
    and the singular values.
    """
    if static(rcond) is not None:
        raise UnsupportedError("np.linalg.lstsq with rcond=", current().line, "leave it out")
    a, b = _matrix(a, "np.linalg.lstsq"), as_array(b)
    if rank(b) not in (1, 2):
        raise TypeMismatchError(f"np.linalg.lstsq with {b.type} on the right", current().line,
                                "give it a vector or a matrix")
    return value(lstsq_record(a, b))


# ------------------------------------------------------------------------------------------- powers


@numpy_function(np.linalg.matrix_power)
def matrix_power(a, n) -> Value:
    """np.linalg.matrix_power for a static exponent, multiplied as NumPy does."""
    a, n = as_array(a), operator.index(static(n, "the exponent"))
    square_dims(a, "np.linalg.matrix_power")
    if n == 0:
        return eye(length(a, axis=-1), dtype=value(np.dtype(dtype_of(a.type)))) + a * 0
    if n < 0:
        a, n = inv(a), -n
    if n <= 3:
        return reduce(matmul, [a] * n)
    square = power = None
    while n:
        square = a if square is None else matmul(square, square)
        n, bit = divmod(n, 2)
        if bit:
            power = square if power is None else matmul(power, square)
    return power

for _record in (svd_record, singular_values, pinv_record):
    _record.raises = (Raises(np.linalg.LinAlgError, is_not_finite_somewhere,
                             (np.full((2, 2), np.nan),), natively=False),)
lstsq_record.raises = (Raises(np.linalg.LinAlgError, is_not_finite_somewhere,
                              (np.full((2, 2), np.nan), np.ones(2)), operands=(0,),
                              natively=False),)
