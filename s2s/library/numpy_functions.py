"""Composite NumPy functions as plain Python, which the front end inlines.

Each takes NumPy's own steps, so that its numbers are NumPy's to the last bit; where NumPy's
documentation names an algorithm (Clenshaw, Horner), it is used.  The alternatives: an op of its
own, where the generated source is to call the function by name or its derivative is no composition
of others (ops/); a composition of Values, where types decide (ops/arrays/statistics.py).  Functions
with loops, calls of user functions, or lists are here.
"""

from __future__ import annotations

import numpy as np

from .declarations import implements


def may_be_empty(x, axis=0):
    """Test whether an axis may have length 0, for all that is known when code is generated, which
    decides whether a function below asks; front/eval/numpy_calls.py defines it.
    """


def outer(ufunc, a, b):
    """ufunc.outer."""
    return ufunc(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b)


def folded(ufunc, x):
    """ufunc.reduce, along the first axis."""
    total = x[0]
    for k in range(1, len(x)):
        total = ufunc(total, x[k])
    return total


def equal(a, b):
    """np.array_equal, of arrays of as many axes."""
    return a.shape == b.shape and bool(np.all(a == b))


def equal_with_nans(a, b):
    """np.array_equal with equal_nan=True."""
    return a.shape == b.shape and bool(np.all((a == b) | np.isnan(a) & np.isnan(b)))


@implements(np.array_equiv)
def equivalent(a1, a2):
    """np.array_equiv, of arrays that broadcast."""
    return bool(np.all(np.equal(a1, a2)))


@implements(np.divmod)
def quotient_and_rest(x1, x2):
    """np.divmod."""
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@implements(np.float_power)
def float_power(x1, x2):
    """np.float_power: in double precision at least."""
    return np.power(np.multiply(x1, np.float64(1.0)), x2)


@implements(np.modf, as_ufunc=True)
def fraction_and_whole(x):
    """np.modf."""
    x = np.multiply(x, 1.0) if np.asarray(x).dtype.kind in "iub" else x
    whole = np.trunc(x)
    return np.where(np.isinf(x), np.copysign(0.0, x), np.subtract(x, whole)), whole


@implements(np.diagflat)
def diagonal_matrix(v, k=0):
    """np.diagflat."""
    return np.diag(np.ravel(v), k)


@implements(np.tril_indices_from)
def lower_indices(arr, k=0):
    """np.tril_indices_from."""
    return np.tril_indices(arr.shape[0], k, arr.shape[1])


@implements(np.triu_indices_from)
def upper_indices(arr, k=0):
    """np.triu_indices_from."""
    return np.triu_indices(arr.shape[0], k, arr.shape[1])


@implements(np.diag_indices_from)
def diagonal_indices(arr):
    """np.diag_indices_from, of a matrix."""
    places = np.arange(len(arr))
    return places, places


def with_weight(total):
    """Refuse, as np.average does, weights that sum to 0."""
    if np.any(total == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")


def without_nans(a):
    """Return the numbers of an array that are not NaN; one NaN where there are none."""
    flat = np.ravel(a)
    found = flat[~np.isnan(flat)]
    return found if len(found) > 0 else np.full(1, np.nan, flat.dtype)


@implements(np.nanmedian)
def nanmedian(a):
    """np.nanmedian of all elements."""
    return np.median(without_nans(a))


@implements(np.nanquantile)
def nanquantile(a, q):
    """np.nanquantile of all elements."""
    return np.quantile(without_nans(a), q)


@implements(np.nanpercentile)
def nanpercentile(a, q):
    """np.nanpercentile of all elements."""
    return np.percentile(without_nans(a), q)


@implements(np.nanargmax)
def place_of_greatest(a):
    """np.nanargmax of all elements."""
    if np.all(np.isnan(a)):
        raise ValueError("All-NaN slice encountered")
    return np.argmax(np.where(np.isnan(a), -np.inf, a))


@implements(np.nanargmin)
def place_of_least(a):
    """np.nanargmin of all elements."""
    if np.all(np.isnan(a)):
        raise ValueError("All-NaN slice encountered")
    return np.argmin(np.where(np.isnan(a), np.inf, a))


@implements("numpy:vecdot", as_ufunc=True)
def dots_of_rows(x1, x2, axis=-1):
    """np.vecdot."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError("vecdot of vectors of different lengths")
    return np.sum(np.conj(x1) * x2, axis=axis)


@implements("numpy.linalg:vecdot")
def linalg_vecdot(x1, x2, *, axis=-1):
    """np.linalg.vecdot."""
    return np.vecdot(x1, x2, axis=axis)


@implements("numpy:matvec", as_ufunc=True)
def products_with_vectors(x1, x2):
    """np.matvec."""
    return np.matmul(x1, x2[..., None])[..., 0]


@implements("numpy:vecmat", as_ufunc=True)
def vectors_times_matrices(x1, x2):
    """np.vecmat."""
    return np.matmul(np.conj(x1)[..., None, :], x2)[..., 0, :]


@implements(np.broadcast_arrays)
def broadcast(*args):
    """np.broadcast_arrays, to be read."""
    zeros = 0.0
    for a in args:
        zeros = zeros + np.zeros(np.shape(a))
    return tuple([np.broadcast_to(a, zeros.shape) for a in args])


# -------------------------------------------------------------------------------------- polynomials


@implements(np.polyadd)
def sum_of_polynomials(a1, a2):
    """np.polyadd."""
    a1, a2 = np.atleast_1d(a1), np.atleast_1d(a2)
    more = len(a1) - len(a2)
    return (np.concatenate((np.zeros(max(-more, 0), a1.dtype), a1))
            + np.concatenate((np.zeros(max(more, 0), a2.dtype), a2)))


def difference_of_polynomials(a1, a2):
    """np.polysub."""
    return sum_of_polynomials(a1, np.negative(a2))


@implements(np.polymul)
def product_of_polynomials(a1, a2):
    """np.polymul."""
    return np.convolve(without_leading_zeros(a1), without_leading_zeros(a2))


def without_leading_zeros(a):
    """The coefficients from the first that is not 0, as NumPy's polynomials have them; of zeros,
    and of nothing, a single 0.
    """
    a = np.atleast_1d(a)
    if may_be_empty(a) and len(a) == 0:
        return np.zeros(1, a.dtype)
    if a[0] == 0:
        places = np.flatnonzero(a)
        return a[places[0] if len(places) > 0 else len(a) - 1:]
    return a


@implements(np.polyder)
def derivative_of_polynomial(p, m=1):
    """np.polyder."""
    p = np.asarray(p)
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@implements(np.polyint)
def integral_of_polynomial(p):
    """np.polyint, once, with the constant 0."""
    return np.concatenate((np.asarray(p) / np.arange(len(p), 0, -1), np.zeros(1)))


def polynomial_of_roots(roots, dtype):
    """np.poly of roots, computed in that dtype."""
    found = np.ones(1, dtype)
    for root in roots:
        found = np.convolve(found, np.asarray(np.array([1.0, -root]), dtype))
    return found


def polynomial(p, x):
    """np.polyval: Horner, the highest power first; of no coefficients it is 0."""
    if may_be_empty(p):
        y = np.zeros_like(x)
        for k in range(len(p)):
            y = y * x + p[k]
        return y
    y = np.zeros_like(x) * x + p[0]
    for k in range(1, len(p)):
        y = y * x + p[k]
    return y


def polynomial_rising(x, c):
    """np.polynomial.polynomial.polyval: Horner, the lowest power first."""
    y = c[-1] + x * 0
    for k in range(2, len(c) + 1):
        y = c[-k] + y * x
    return y


def _ends(x, c):
    """Return the initial values of Clenshaw's recurrences: the last two coefficients at each x."""
    zeros = np.zeros_like(x)
    return (c[-2] + zeros, c[-1] + zeros) if len(c) > 1 else (c[0] + zeros, zeros * c[0])


def chebyshev(x, c):
    """np.polynomial.chebyshev.chebval."""
    twice = 2 * x
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        c0, c1 = c[-k] - c1, c0 + c1 * twice
    return c0 + c1 * x


def legendre(x, c):
    """np.polynomial.legendre.legval."""
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - c1 * ((n - 1) / n), c0 + c1 * x * ((2 * n - 1) / n)
    return c0 + c1 * x


def hermite(x, c):
    """np.polynomial.hermite.hermval, of the physicists' polynomials."""
    twice = x * 2
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - c1 * (2 * (n - 1)), c0 + c1 * twice
    return c0 + c1 * twice


def hermite_e(x, c):
    """np.polynomial.hermite_e.hermeval, of the probabilists' polynomials."""
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - c1 * (n - 1), c0 + c1 * x
    return c0 + c1 * x


def laguerre(x, c):
    """np.polynomial.laguerre.lagval."""
    c0, c1 = _ends(x, c)
    for k in range(3, len(c) + 1):
        n = len(c) + 2 - k
        c0, c1 = c[-k] - (c1 * (n - 1)) / n, c0 + (c1 * ((2 * n - 1) - x)) / n
    return c0 + c1 * (1 - x)


# ------------------------------------------------------------------------------------------ windows


def _places(m):
    """Return the sample positions of a window of m points, symmetric about 0."""
    return np.arange(1 - m, m, 2)


@implements(np.hanning)
def hanning(M):  # noqa: N803  NumPy's own name
    """np.hanning."""
    return np.ones(max(M, 0)) if M < 2 else 0.5 + 0.5 * np.cos(np.pi * _places(M) / (M - 1))


@implements(np.hamming)
def hamming(M):  # noqa: N803
    """np.hamming."""
    return np.ones(max(M, 0)) if M < 2 else 0.54 + 0.46 * np.cos(np.pi * _places(M) / (M - 1))


@implements(np.blackman)
def blackman(M):  # noqa: N803
    """np.blackman."""
    if M < 2:
        return np.ones(max(M, 0))
    n = _places(M)
    return 0.42 + 0.5 * np.cos(np.pi * n / (M - 1)) + 0.08 * np.cos(2.0 * np.pi * n / (M - 1))


@implements(np.bartlett)
def bartlett(M):  # noqa: N803
    """np.bartlett."""
    if M < 2:
        return np.ones(max(M, 0))
    n = _places(M)
    return np.where(np.less_equal(n, 0), 1 + n / (M - 1), 1 - n / (M - 1))


@implements(np.kaiser)
def kaiser(M, beta):  # noqa: N803
    """np.kaiser."""
    if M < 2:
        return np.ones(max(M, 0))
    alpha = (M - 1) / 2.0
    return np.i0(beta * np.sqrt(1 - ((np.arange(0, M) - alpha) / alpha) ** 2.0)) / np.i0(beta)


# ------------------------------------------------------------------------- functions of the program


def grid(shape, dtype):
    """np.indices, one array for each axis."""
    return np.meshgrid(*[np.arange(n, dtype=dtype) for n in shape], indexing="ij")


def put_of_function(y, where, function, x):
    """A piece of np.piecewise."""
    y[where] = function(x[where])


def put_of_number(y, where, number):
    """A constant piece of np.piecewise."""
    y[where] = number


def of_each(function, *args):
    """np.vectorize(function), of arguments of which one is an array."""
    arrays = np.broadcast_arrays(*args)
    flat = [np.ravel(a) for a in arrays]
    return np.reshape(np.array([function(*[a[k] for a in flat]) for k in range(flat[0].size)]),
                      arrays[0].shape)


def along_rows(function, a):
    """np.apply_along_axis, along the last axis of two."""
    return np.stack([function(row) for row in a])


def along_columns(function, a):
    """np.apply_along_axis, along the first axis of two."""
    found = np.stack([function(column) for column in a.T])
    return found if found.ndim == 1 else np.moveaxis(found, 0, 1)


# ------------------------------------------------------------------------------------------ samples


def ends_of_samples(x):
    """The ends of the bins of np.histogram: the least and the largest number, half a unit
    apart from it if they are one, and 0 and 1 of nothing; ValueError if they are not finite.
    """
    if x.size == 0:
        return 0.0, 1.0
    lo, hi = np.asarray_chkfinite(np.array([np.min(x), np.max(x)]))
    alike = lo == hi
    return np.where(alike, lo - 0.5, lo), np.where(alike, hi + 0.5, hi)


# ----------------------------------------------------------------------------------------- matrices


def sliding_windows(x, window_shape):
    """np.lib.stride_tricks.sliding_window_view of one axis, to be read."""
    starts = len(x) - window_shape + 1
    if starts < 1:
        raise ValueError("window shape cannot be larger than input array shape")
    return x[np.arange(starts)[:, None] + np.arange(window_shape)]


def sliding_windows_along(x, window_shape, axes):
    """np.lib.stride_tricks.sliding_window_view, to be read: a window along each of `axes`."""
    for width, axis in zip(window_shape, axes):
        starts = np.shape(x)[axis] - width + 1
        if starts < 1:
            raise ValueError("window shape cannot be larger than input array shape")
        x = np.take(x, np.arange(starts)[:, None] + np.arange(width), axis=axis)
        x = np.moveaxis(x, axis + 1, -1)
    return x


@implements("numpy.linalg:matrix_norm")
def matrix_norm(x, keepdims=False, ord="fro"):
    """np.linalg.matrix_norm, of each of a stack."""
    return np.linalg.norm(x, ord, axis=(-2, -1), keepdims=keepdims)


@implements("numpy.linalg:vector_norm")
def vector_norm(x, axis=None, keepdims=False, ord=2):
    """np.linalg.vector_norm; along several axes the norm of all their elements, never a matrix
    norm.
    """
    if isinstance(axis, tuple):
        behind = np.moveaxis(x, axis, tuple(range(-len(axis), 0)))
        found = np.linalg.norm(np.reshape(behind, (*np.shape(behind)[:-len(axis)], -1)), ord,
                               axis=-1)
        return np.expand_dims(found, axis) if keepdims else found
    if axis is not None:
        return np.linalg.norm(x, ord, axis=axis, keepdims=keepdims)
    found = np.linalg.norm(np.ravel(x), ord)
    return np.reshape(found, [1] * np.ndim(x)) if keepdims else found


@implements(np.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):  # noqa: N803  NumPy's own name
    """np.linalg.matrix_rank, of each of a stack; of a vector whether it is not 0."""
    if np.ndim(A) < 2:
        return np.any(np.not_equal(A, 0)) * 1
    s = np.abs(np.linalg.eigvalsh(A)) if hermitian else np.linalg.svd(A, compute_uv=False)
    if may_be_empty(s, -1) and s.shape[-1] == 0:
        return np.count_nonzero(s, axis=-1)
    if tol is None:
        least = (np.finfo(s.dtype).eps * max(A.shape[-2:]) if rtol is None
                 else np.expand_dims(np.asarray(rtol), -1))
        least = np.max(s, axis=-1, keepdims=True) * least
    else:
        least = np.expand_dims(np.asarray(tol), -1)
    return np.count_nonzero(s > least, axis=-1)


def condition_number(x):
    """np.linalg.cond, by singular values."""
    s = np.linalg.svd(x, compute_uv=False)
    return (s[..., 0] + (s[..., 0] == 0)) / s[..., -1]  # infinite where all are 0


def svd_of_square(a):
    """np.linalg.svd, all of U and V."""
    if a.shape[0] != a.shape[1]:
        raise NotImplementedError("s2s: all of U and V of a matrix that is not square: pass "
                                  "full_matrices=False")
    return np.linalg.svd(a, full_matrices=False)


def root_of_squares(x):
    """np.linalg.norm of matrices with ord "fro"."""
    return np.linalg.norm(x, axis=(-2, -1))


def largest_sum(x, axis):
    """np.linalg.norm of matrices with ord 1 or inf."""
    return np.max(np.sum(np.abs(x), axis=axis), axis=-1)


def least_sum(x, axis):
    """np.linalg.norm of matrices with ord -1 or -inf."""
    return np.min(np.sum(np.abs(x), axis=axis), axis=-1)


def largest_value(x):
    """np.linalg.norm of matrices with ord 2."""
    return np.max(np.linalg.svd(x, compute_uv=False), axis=-1)


def least_value(x):
    """np.linalg.norm of matrices with ord -2."""
    return np.min(np.linalg.svd(x, compute_uv=False), axis=-1)


def sum_of_values(x):
    """np.linalg.norm of matrices with ord "nuc"."""
    return np.sum(np.linalg.svd(x, compute_uv=False), axis=-1)


def chain_of_three(a, b, c):
    """np.linalg.multi_dot of three matrices: in the cheaper of the two orders."""
    rows, inner = a.shape
    outer, columns = c.shape
    if rows * outer * (inner + columns) < inner * columns * (rows + outer):
        return np.dot(np.dot(a, b), c)
    return np.dot(a, np.dot(b, c))


def fitted(x, y, deg):
    """np.polyfit of equal weights, the highest power first."""
    if may_be_empty(x) and len(x) == 0:
        raise TypeError("expected non-empty vector for x")
    x, y = x + 0.0, y + 0.0
    lhs = np.vander(x, deg + 1)
    scale = np.sqrt((lhs * lhs).sum(axis=0))
    lhs = lhs / scale
    found = np.linalg.lstsq(lhs, y)[0]
    return (found.T / scale).T


def axis_rolled(a, axis, start=0):
    """np.rollaxis, of an axis and a place counted from 0."""
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


@implements("numpy:fix")
def truncated(x):
    """np.fix."""
    return np.trunc(x)


def gradient_between(f, x, axis):
    """np.gradient of samples at the places `x`, along an axis."""
    f = np.moveaxis(f, axis, -1)
    f = f.astype(np.float64) if f.dtype.kind in "iu" else f
    h = np.diff(x.astype(np.float64) if x.dtype.kind in "iu" else x)
    before, after = h[:-1], h[1:]
    slopes = np.zeros(f.shape, f.dtype)
    slopes[..., 1:-1] = (f[..., :-2] * (-after / (before * (before + after)))
                         + f[..., 1:-1] * ((after - before) / (before * after))
                         + f[..., 2:] * (before / (after * (before + after))))
    slopes[..., 0] = (f[..., 1] - f[..., 0]) / h[0]
    slopes[..., -1] = (f[..., -1] - f[..., -2]) / h[-1]
    return np.moveaxis(slopes, -1, axis)


def powers(x, count, increasing, is_complex):
    """np.vander with `count` columns; 1 * x is x, unless x is complex and infinite."""
    y = np.ones((len(x), count), dtype=int) * np.ones_like(x)[:, None]
    for k in range(1, count):
        y[:, k] = x if is_complex and k == 1 else y[:, k - 1] * x
    return y if increasing else y[:, ::-1]


def roots(p):
    """np.roots: the eigenvalues of the companion matrix, and zeros for the coefficients of 0 at the
    end.
    """
    places = np.flatnonzero(p)
    dtype = p.dtype if p.dtype.kind in "fc" else np.float64
    if len(places) == 0:
        return np.zeros(0, dtype) + 0j
    zeros = len(p) - 1 - places[-1]
    q = p[places[0]:places[-1] + 1]
    q = q if p.dtype.kind in "fc" else q.astype(dtype)
    if len(q) < 2:
        return np.zeros(zeros, dtype) + 0j
    a = np.diag(np.ones(len(q) - 2, dtype), -1)
    a[0] = -q[1:] / q[0]
    return np.concatenate((np.linalg.eigvals(a), np.zeros(zeros, dtype)))


def chosen(k, choices):
    """np.choose."""
    if np.any((k < 0) | (k >= len(choices))):
        raise ValueError("invalid entry in choice array")
    y = choices[0]
    for place in range(1, len(choices)):
        y = np.where(k == place, choices[place], y)
    return y


@implements(np.resize)
def resized(a, new_shape):
    """np.resize: the elements repeated."""
    flat = np.ravel(a)
    y = np.zeros(new_shape, flat.dtype)
    return np.reshape(flat[np.arange(y.size) % len(flat)], np.shape(y))


def folded_between(ufunc, x, indices):
    """ufunc.reduceat, along the first axis; sums and products of small integers are not small."""
    y = x[indices]
    if ufunc is np.add or ufunc is np.multiply:
        y = y.astype(np.sum(x).dtype)
    for k in range(len(indices)):
        end = indices[k + 1] if k + 1 < len(indices) else len(x)
        for i in range(indices[k] + 1, end):
            y[k] = ufunc(y[k], x[i])
    return y


def inexact(a):
    """Convert integers to floats, as NumPy's linear algebra does."""
    return a * 1.0


def real_of(a):
    """Convert to the dtype of singular values."""
    return np.real(inexact(a))


def matrices_of(a):
    """Return the matrices of a stack, one behind the other."""
    count = 1
    for n in a.shape[:-2]:  # -1 says nothing of matrices of no elements
        count = count * n
    return np.reshape(a, (count, a.shape[-2], a.shape[-1]))


def values_and_vectors_of_each(a, UPLO):  # noqa: N803  NumPy's own name
    """np.linalg.eigh of a stack of matrices."""
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    flat = matrices_of(a)
    w, v = np.zeros(flat.shape[:2], real_of(a).dtype), np.zeros(flat.shape, inexact(a).dtype)
    for k in range(len(flat)):
        w[k], v[k] = np.linalg.eigh(flat[k], UPLO)
    return np.reshape(w, a.shape[:-1]), np.reshape(v, a.shape)


def values_of_each(a, UPLO):  # noqa: N803
    """np.linalg.eigvalsh of a stack."""
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    flat = matrices_of(a)
    w = np.zeros(flat.shape[:2], real_of(a).dtype)
    for k in range(len(flat)):
        w[k] = np.linalg.eigvalsh(flat[k], UPLO)
    return np.reshape(w, a.shape[:-1])


def singular_parts_of_each(a):
    """np.linalg.svd of a stack, with full_matrices=False."""
    m, n = a.shape[-2:]
    r = min(m, n)
    flat = matrices_of(a)
    dtype = inexact(a).dtype
    u, s, vt = (np.zeros((len(flat), m, r), dtype), np.zeros((len(flat), r), real_of(a).dtype),
                np.zeros((len(flat), r, n), dtype))
    for k in range(len(flat)):
        u[k], s[k], vt[k] = np.linalg.svd(flat[k], full_matrices=False)
    above = a.shape[:-2]
    return np.reshape(u, (*above, m, r)), np.reshape(s, (*above, r)), np.reshape(vt, (*above, r, n))


def square_matrices(a):
    """A stack of matrices, which must be square."""
    if a.shape[-1] != a.shape[-2]:
        raise NotImplementedError("s2s: all of U and V of matrices that are not square: pass "
                                  "full_matrices=False")
    return a


def singular_values_of_each(a):
    """np.linalg.svd of a stack, with compute_uv=False."""
    m, n = a.shape[-2:]
    flat = matrices_of(a)
    s = np.zeros((len(flat), min(m, n)), real_of(a).dtype)
    for k in range(len(flat)):
        s[k] = np.linalg.svd(flat[k], compute_uv=False)
    return np.reshape(s, (*a.shape[:-2], min(m, n)))


def qr_of_each(a):
    """np.linalg.qr of a stack."""
    m, n = a.shape[-2:]
    k = min(m, n)
    flat = matrices_of(a)
    q, r = (np.zeros((len(flat), m, k), inexact(a).dtype),
            np.zeros((len(flat), k, n), inexact(a).dtype))
    for j in range(len(flat)):
        q[j], r[j] = np.linalg.qr(flat[j])
    return np.reshape(q, (*a.shape[:-2], m, k)), np.reshape(r, (*a.shape[:-2], k, n))


def pseudo_inverses_of_each(a):
    """np.linalg.pinv of a stack."""
    m, n = a.shape[-2:]
    flat = matrices_of(a)
    y = np.zeros((len(flat), n, m), inexact(a).dtype)
    for k in range(len(flat)):
        y[k] = np.linalg.pinv(flat[k])
    return np.reshape(y, (*a.shape[:-2], n, m))


@implements(np.linalg.tensorsolve)
def solution_of_tensors(a, b):
    """np.linalg.tensorsolve, of axes in their order."""
    n = b.size
    return np.reshape(np.linalg.solve(np.reshape(a, (n, n)), np.ravel(b)),
                      np.shape(a)[-(np.ndim(a) - np.ndim(b)):])  # all of it where it is that of b


@implements(np.linalg.tensorinv)
def inverse_of_tensor(a, ind=2):
    """np.linalg.tensorinv."""
    before, after = np.shape(a)[:ind], np.shape(a)[ind:]
    n = 1
    for length in before:
        n = n * length
    return np.reshape(np.linalg.inv(np.reshape(a, (n, n))), (*after, *before))


# -------------------------------------------------------------------------- insertion, replacement


def inserted(x, place, values):
    """np.insert of rows, an array or a number, at one place."""
    n = len(x)
    if place < -n or place > n:
        raise IndexError("index is out of bounds")
    i = place + n if place < 0 else place
    rows = np.broadcast_to(values, (len(values), *x.shape[1:])).astype(x.dtype)
    return np.concatenate((x[:i], rows, x[i:]))


def inserted_at(x, places, values):
    """np.insert at an array of positions: each value comes before the row of that number; of
    several at one position, the first comes first.
    """
    n, count = len(x), max(len(places), len(values))
    if np.any((places < -n) | (places > n)):
        raise IndexError("index is out of bounds")
    places = np.broadcast_to(np.where(places < 0, places + n, places), (count,))
    rows = np.broadcast_to(values, (count, *x.shape[1:])).astype(x.dtype)
    order = np.argsort(np.concatenate((2 * np.arange(n) + 1, 2 * places)), kind="stable")
    return np.concatenate((x, rows))[order]


def without_infinite(x, nan, posinf, neginf):
    """np.nan_to_num with given replacements."""
    return np.where(np.isnan(x), nan, np.where(
        x == np.inf, posinf, np.where(x == -np.inf, neginf, x))).astype(x.dtype)


def interpolated_around(x, xp, fp, period):
    """np.interp of samples of a periodic function."""
    if period == 0:
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    xp, fp = xp % period, fp - 0.0
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    return np.interp(x % period, np.concatenate((xp[-1:] - period, xp, xp[:1] + period)),
                     np.concatenate((fp[-1:], fp, fp[:1])))


def condition_in_norm(x, p):
    """np.linalg.cond in a norm other than the largest singular value: infinite for a singular
    matrix, with NaN slopes.
    """
    if p == "nuc":  # of which NumPy asks what raises
        return (np.linalg.norm(x, p, axis=(-2, -1))
                * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1)))
    size = np.linalg.slogdet(x)[1]
    inverse = np.linalg.inv(np.where(np.reshape(size > -np.inf, (*x.shape[:-2], 1, 1)), x,
                                     np.eye(x.shape[-1], dtype=x.dtype)))
    found, singular = (
        np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(inverse, p, axis=(-2, -1)),
        size == -np.inf)
    return np.where(singular, (found + singular) * np.inf, found)


def least_condition(x):
    """np.linalg.cond with p=-2."""
    s = np.linalg.svd(x, compute_uv=False)
    return (s[..., -1] + (s[..., 0] == 0)) / s[..., 0]
