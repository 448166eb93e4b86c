"""SciPy functions as plain Python, which the front end inlines.

SciPy's linear algebra is NumPy's with triangles and other defaults, and its densities are formulas
of scipy.special, whose derivatives are known; arguments that only tune SciPy's algorithms
(`overwrite_a`) are accepted and ignored.  Numbers agree with SciPy's to rounding.  The densities
are those of Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions", as SciPy
parametrises them; outside of its support a density is 0 and its logarithm -inf.  Parameters that no
distribution has, a negative scale, say, give NaN, as in SciPy: each becomes NaN before it is used,
and the tests for the support are written (z < 0, not ~(z >= 0)) so that a NaN counts as inside, and
propagates.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from .declarations import implements

# ----------------------------------------------------------------------------------- linear algebra


def adjoint(a):
    """Return the conjugate transpose of each matrix."""
    turned = np.swapaxes(a, -1, -2)
    return np.conj(turned) if np.iscomplexobj(a) else turned


def completed(a, lower):
    """Return the symmetric matrix of which one triangle is read."""
    if lower:
        return np.tril(a) + np.swapaxes(np.tril(a, -1), -1, -2)
    return np.triu(a) + np.swapaxes(np.triu(a, 1), -1, -2)


def hermitian(a, lower):
    """Return the Hermitian matrix of which one triangle is read, and of its diagonal the real part.
    """
    if not np.iscomplexobj(a):
        return completed(a, lower)
    half = 0.5 * (np.tril(a) + np.tril(a, -1) if lower else np.triu(a) + np.triu(a, 1))
    return half + adjoint(half)


def diagonal_of(a, k=0):
    """Return a diagonal of each matrix."""
    return np.diagonal(a, k, -2, -1)


def checked(a, check_finite):
    """Return an array, which SciPy refuses unless all of it is finite."""
    return np.asarray_chkfinite(a) if check_finite else np.asarray(a)


def structure_of(assume_a):
    """Return SciPy's name for the structure of a matrix."""
    for name, short in (("general", "gen"), ("symmetric", "sym"), ("hermitian", "her"),
                        ("positive definite", "pos")):
        if assume_a is None or assume_a in (name, short):
            return "general" if assume_a is None else name
    if assume_a not in ("diagonal", "tridiagonal", "banded", "upper triangular",
                        "lower triangular"):
        raise ValueError(f"{assume_a} is not a recognized matrix structure")
    return assume_a


@implements("scipy.linalg:solve")
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None,
          transposed=False):
    """scipy.linalg.solve: of a matrix with a structure the parts are read that SciPy reads."""
    structure = structure_of(assume_a)
    a, b = checked(a, check_finite), checked(b, check_finite)
    if transposed and (np.iscomplexobj(a) or np.iscomplexobj(b)):
        raise NotImplementedError("scipy.linalg.solve can currently not solve a^T x = b or a^H x = "
                                  "b for complex matrices.")
    if structure == "diagonal":
        if a.shape[-1] != a.shape[-2]:
            raise ValueError("Expected square matrix")
        # which would be spread
        if np.ndim(b) == 0 or b.shape[0 if np.ndim(b) == 1 else -2] != a.shape[-1]:
            raise ValueError("incompatible shapes")
        d = diagonal_of(a)
        if np.any(d == 0):
            raise np.linalg.LinAlgError("A singular matrix detected.")
        return b / d if np.ndim(b) == 1 else b / d[..., None]
    if structure == "positive definite":
        L = np.linalg.cholesky(a if lower else adjoint(a))  # noqa: N806
        return np.linalg.solve(adjoint(L), np.linalg.solve(L, b))
    if structure == "symmetric":
        return np.linalg.solve(completed(a, lower), b)
    if structure == "hermitian":
        return np.linalg.solve(hermitian(a, lower), b)
    a = (np.tril(a) if structure == "lower triangular" else np.triu(a)
         if structure == "upper triangular" else a)
    if structure == "tridiagonal":
        a = np.triu(np.tril(a, 1), -1)
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, b)


@implements("scipy.linalg:inv")
def inverse(a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False):
    """scipy.linalg.inv."""
    a, structure = checked(a, check_finite), structure_of(assume_a)
    if structure in ("diagonal", "tridiagonal", "banded"):
        raise NotImplementedError("s2s: scipy.linalg.inv of a matrix with diagonals: leave "
                                  "assume_a out, or divide by the diagonal")
    if structure == "symmetric":
        return np.linalg.inv(completed(a, lower))
    if structure in ("hermitian", "positive definite"):
        return np.linalg.inv(hermitian(a, lower))
    return np.linalg.inv(np.tril(a) if structure == "lower triangular" else np.triu(a)
                         if structure == "upper triangular" else a)


@implements("scipy.linalg:det")
def determinant(a, overwrite_a=False, check_finite=True):
    """scipy.linalg.det."""
    y = np.linalg.det(checked(a, check_finite))
    return (y.astype(np.float64) if y.dtype == np.float32 else y.astype(np.complex128)
            if y.dtype == np.complex64 else y)


@implements("scipy.linalg:norm")
def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    """scipy.linalg.norm."""
    a = checked(a, check_finite)
    return np.linalg.norm(a if a.dtype.kind in "fc" else a.astype(np.float64), ord, axis, keepdims)


@implements("scipy.linalg:pinv")
def pseudo_inverse(a, check_finite=True):
    """scipy.linalg.pinv."""
    return np.linalg.pinv(checked(a, check_finite))


@implements("scipy.linalg:cholesky")
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """scipy.linalg.cholesky: the upper triangle is read, and given, unless `lower`."""
    a = checked(a, check_finite)
    return (np.linalg.cholesky(a) if lower
            else np.swapaxes(np.linalg.cholesky(np.swapaxes(a, -1, -2)), -1, -2))


@implements("scipy.linalg:cho_factor")
def cholesky_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """scipy.linalg.cho_factor, with zeros in the triangle that SciPy leaves as it was."""
    return cholesky(a, lower, check_finite=check_finite), lower


@implements("scipy.linalg:cho_solve")
def solve_by_cholesky(c_and_lower, b, overwrite_b=False, check_finite=True):
    """scipy.linalg.cho_solve."""
    c, lower = c_and_lower
    b, c = checked(b, check_finite), checked(c, check_finite)
    if lower:
        return solve_triangular(c, solve_triangular(c, b, 0, True, check_finite=False), 2, True,
                                check_finite=False)
    return solve_triangular(c, solve_triangular(c, b, 2, check_finite=False), check_finite=False)


@implements("scipy.linalg:solve_triangular")
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False,
                     check_finite=True):
    """scipy.linalg.solve_triangular: the other triangle is not read."""
    a, b = checked(a, check_finite), checked(b, check_finite)
    if unit_diagonal:
        one = np.tril(np.triu(np.ones_like(a)))
        a = np.tril(a, -1) + one if lower else np.triu(a, 1) + one
    else:
        a = np.tril(a) if lower else np.triu(a)
    if trans in (2, "C"):
        return np.linalg.solve(adjoint(a), b)
    return np.linalg.solve(a if trans in (0, "N") else np.swapaxes(a, -1, -2), b)


@implements("scipy.linalg:eigh")
def eigh(a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, type=1,
         check_finite=True, subset_by_index=None):
    """scipy.linalg.eigh."""
    if subset_by_index is None:
        return eigenvalues_and_vectors(a, b, lower, eigvals_only, type, check_finite)
    if not eigvals_only:
        raise NotImplementedError("s2s: scipy.linalg.eigh of some eigenvectors: take them from "
                                  "all, v[:, first:last + 1]")
    first, last = subset_by_index
    return eigenvalues_and_vectors(a, b, lower, True, type, check_finite)[..., first:last + 1]


def eigenvalues_and_vectors(a, b, lower, eigvals_only, type, check_finite):
    """scipy.linalg.eigh of all; of two matrices as LAPACK's sygvd does it, with a Cholesky factor
    of the second.
    """
    a = checked(a, check_finite)
    if b is None:
        if eigvals_only:
            return np.linalg.eigvalsh(a) if lower else np.linalg.eigvalsh(a, "U")
        return eigh_of_triangle(a, False) if lower else eigh_of_triangle(a, True)
    b = checked(b, check_finite)
    if a.shape[-1] != a.shape[-2] or a.shape[-1] != b.shape[-1]:  # which would be spread
        raise ValueError('expected square "a" matrix, and b as large')
    L = np.linalg.cholesky(b if lower else adjoint(b))  # noqa: N806
    a = hermitian(a, lower)
    inner = np.linalg.solve(L, adjoint(np.linalg.solve(L, a))) if type == 1 else adjoint(L) @ a @ L
    if eigvals_only:
        return np.linalg.eigvalsh(inner)
    w, v = np.linalg.eigh(inner) if lower else np.linalg.eigh(inner, "U")
    return w, L @ v if type == 3 else np.linalg.solve(adjoint(L), v)


def eigh_of_one(a, upper):
    """scipy.linalg.eigh of one matrix, of which one triangle is read: an op."""
    return scipy.linalg.eigh(a, lower=not upper)


def eigh_of_triangle(a, upper):
    """scipy.linalg.eigh of one matrix, or of each of a stack."""
    if np.ndim(a) == 2:
        return eigh_of_one(a, upper)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError("expected square matrix")
    count = 1
    for n in a.shape[:-2]:
        count = count * n
    flat = np.reshape(a, (count, a.shape[-2], a.shape[-1]))
    w, v = np.zeros(flat.shape[:2], np.real(a * 1.0).dtype), np.zeros(flat.shape, (a * 1.0).dtype)
    for k in range(len(flat)):
        w[k], v[k] = eigh_of_one(flat[k], upper)
    return np.reshape(w, a.shape[:-1]), np.reshape(v, a.shape)


@implements("scipy.linalg:eigvalsh")
def eigvalsh(a, b=None, *, lower=True, overwrite_a=False, overwrite_b=False, type=1,
             check_finite=True, subset_by_index=None):
    """scipy.linalg.eigvalsh."""
    return eigh(a, b, lower=lower, eigvals_only=True, type=type, check_finite=check_finite,
                subset_by_index=subset_by_index)


@implements("scipy.linalg:svd")
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True):
    """scipy.linalg.svd."""
    return np.linalg.svd(checked(a, check_finite), full_matrices, compute_uv)


@implements("scipy.linalg:svdvals")
def svdvals(a, overwrite_a=False, check_finite=True):
    """scipy.linalg.svdvals."""
    return np.linalg.svd(checked(a, check_finite), compute_uv=False)


@implements("scipy.linalg:qr")
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """scipy.linalg.qr without pivots, in economic mode, or of a square matrix."""
    if pivoting or mode not in ("full", "economic"):
        raise NotImplementedError("s2s: scipy.linalg.qr with pivoting, or in this mode: pass "
                                  "mode='economic'")
    if mode == "full" and a.shape[0] != a.shape[1]:
        raise NotImplementedError("s2s: all of Q of a matrix that is not square: pass "
                                  "mode='economic'")
    return np.linalg.qr(checked(a, check_finite))


@implements("scipy.linalg:expm")
def exponential(A):  # noqa: N803  SciPy's own name
    """scipy.linalg.expm of one matrix: scaling, a Pade approximation of degree 13, and squaring
    (Higham, 2005).
    """
    size, halvings = np.linalg.norm(A, 1), 0
    while size > 5.371920351148152 and halvings < 1023:
        size, halvings = size / 2, halvings + 1
    a, one = A / 2.0**halvings, np.eye(len(A))
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = (a6 @ (a6 + 16380.0 * a4 + 40840800.0 * a2) + 33522128640.0 * a6 + 10559470521600.0 * a4
           + 1187353796428800.0 * a2)
    odd = a @ (odd + 32382376266240000.0 * one)
    even = (a6 @ (182.0 * a6 + 960960.0 * a4 + 1323241920.0 * a2) + 670442572800.0 * a6
            + 129060195264000.0 * a4)
    even = even + 7771770303897600.0 * a2 + 64764752532480000.0 * one
    y = np.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        y = y @ y
    return y


@implements("scipy.linalg:block_diag")
def block_diag(*arrays):
    """scipy.linalg.block_diag."""
    blocks = [np.atleast_2d(a) for a in arrays]
    dtype = np.concatenate([np.ravel(a) for a in blocks]).dtype
    y = np.zeros((sum([len(a) for a in blocks]), sum([a.shape[1] for a in blocks])), dtype)
    row = column = 0
    for a in blocks:
        y[row:row + len(a), column:column + a.shape[1]] = a
        row, column = row + len(a), column + a.shape[1]
    return y


@implements("scipy.linalg:toeplitz")
def toeplitz(c, r=None):
    """scipy.linalg.toeplitz; without a first row that of a Hermitian matrix."""
    c = np.asarray(c)
    r = np.conj(c) if r is None else np.asarray(r)
    # which SciPy flattened until 1.17, and takes for stacks since
    if np.ndim(c) != 1 or np.ndim(r) != 1:
        raise NotImplementedError("s2s: scipy.linalg.toeplitz of other than vectors: call it for "
                                  "each row, or flatten them")
    both = np.concatenate((c[::-1], r[1:]))
    return both[len(c) - 1 - np.arange(len(c))[:, None] + np.arange(len(r))]


@implements("scipy.linalg:circulant")
def circulant(c):
    """scipy.linalg.circulant."""
    c = np.asarray(c)
    if np.ndim(c) != 1:
        raise NotImplementedError("s2s: scipy.linalg.circulant of other than a vector: call it for "
                                  "each row")
    return c[(np.arange(len(c))[:, None] - np.arange(len(c))) % len(c)]


# ---------------------------------------------------------------------------------------- integrals


@implements("scipy.integrate:trapezoid")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """scipy.integrate.trapezoid."""
    return np.trapezoid(y, x, dx, axis)


def along_last(y, x, axis):
    """Samples, and where they are taken if that is given, along the last axis."""
    y = np.moveaxis(y, axis, -1)
    if x is not None:
        x = np.asarray(x)
        x = x if np.ndim(x) < 2 else np.moveaxis(x, axis, -1)
    return y, x


@implements("scipy.integrate:cumulative_trapezoid")
def running_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """scipy.integrate.cumulative_trapezoid."""
    y, x = along_last(y, x, axis)
    steps = dx if x is None else np.diff(x)
    found = np.cumsum(steps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        found = np.concatenate((np.full((*y.shape[:-1], 1), initial), found), axis=-1)
    return np.moveaxis(found, -1, axis)


def over(a, b):
    """Return a / b, and 0 where b is 0."""
    return np.where(b == 0, 0.0, a / np.where(b == 0, 1.0, b))


def pairs_of_steps(y, x, dx):
    """Simpson's rule (1743) along the last axis, of an odd number of samples, in unequal steps if x
    is given.
    """
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if x is None:
        return np.sum(first + 4.0 * middle + last, axis=-1) * (dx / 3.0)
    h = np.diff(x)
    before, after = h[..., ::2], h[..., 1::2]
    both, ratio = before + after, over(before, after)
    return np.sum(both / 6.0
                  * (first * (2.0 - over(1.0, ratio)) + middle * (both * over(both, before * after))
                     + last * (2.0 - ratio)), axis=-1)


def last_step(y, x, dx):
    """The integral over the last step of the parabola through the last three samples: Cartwright,
    Simpson's rule cumulative integration (2017).
    """
    before = dx if x is None else x[..., -2] - x[..., -3]
    h = dx if x is None else x[..., -1] - x[..., -2]
    at_last = over(2 * h**2 + 3 * before * h, 6 * (h + before))
    at_middle, at_first = (over(h**2 + 3.0 * before * h, 6 * before),
                           over(h**3, 6 * before * (before + h)))
    return at_last * y[..., -1] + at_middle * y[..., -2] - at_first * y[..., -3]


@implements("scipy.integrate:simpson")
def simpson(y, x=None, *, dx=1.0, axis=-1):
    """scipy.integrate.simpson; of an even number of samples the last step is that of a parabola of
    its own.
    """
    y, x = along_last(y, x, axis)
    if y.shape[-1] % 2 == 1:
        return pairs_of_steps(y, x, dx)
    if y.shape[-1] == 2:
        return 0.5 * (dx if x is None else x[..., -1] - x[..., -2]) * (y[..., -1] + y[..., -2])
    return pairs_of_steps(y[..., :-1], None if x is None else x[..., :-1], dx) + last_step(y, x, dx)


# ------------------------------------------------------------------------------------------ signals


@implements("scipy.signal:convolve")
def convolve(in1, in2, mode="full", method="auto"):
    """scipy.signal.convolve, and fftconvolve, of vectors."""
    if np.ndim(in1) != 1 or np.ndim(in2) != 1 or (mode == "same" and len(in1) < len(in2)):
        raise NotImplementedError("s2s: scipy.signal.convolve of other than vectors, the longer "
                                  "one first: write it with NumPy")
    return np.convolve(in1, in2, mode)


@implements("scipy.signal:fftconvolve")
def fast_convolve(in1, in2, mode="full"):
    """scipy.signal.fftconvolve of vectors."""
    return convolve(in1, in2, mode)


@implements("scipy.signal:lfilter")
def filtered(b, a, x):
    """scipy.signal.lfilter along a vector, which begins at rest."""
    if np.ndim(x) != 1:
        raise (NotImplementedError("s2s: scipy.signal.lfilter of other than vectors: filter each "
                                   "row"))
    y = np.zeros(len(x))
    for n in range(len(x)):
        total = 0.0
        for k in range(min(len(b), n + 1)):
            total += b[k] * x[n - k]
        for k in range(1, min(len(a), n + 1)):
            total -= a[k] * y[n - k]
        y[n] = total / a[0]
    return y


# ---------------------------------------------------------------------------------------- distances


def distances_between(x, y, metric, p=2):
    """The distances of the vectors along the last axes of two arrays."""
    if metric == "sqeuclidean":
        return np.sum((x - y) ** 2, axis=-1)
    if metric == "euclidean" or metric == "minkowski" and p == 2:
        return np.sqrt(np.sum((x - y) ** 2, axis=-1))
    if metric == "cityblock":
        return np.sum(np.abs(x - y), axis=-1)
    if metric == "chebyshev":
        return np.max(np.abs(x - y), axis=-1)
    if metric == "minkowski":
        return np.sum(np.abs(x - y) ** p, axis=-1) ** (1.0 / p)
    if metric == "braycurtis":
        return np.sum(np.abs(x - y), axis=-1) / np.sum(np.abs(x + y), axis=-1)
    if metric == "canberra":
        sizes = np.abs(x) + np.abs(y)
        return np.sum(np.where(sizes == 0, 0.0, np.abs(x - y) / np.where(sizes == 0, 1.0, sizes)),
                      axis=-1)
    if metric == "correlation":
        x, y = x - np.mean(x, axis=-1, keepdims=True), y - np.mean(y, axis=-1, keepdims=True)
    if metric == "cosine" or metric == "correlation":
        return (1.0 - np.sum(x * y, axis=-1)
                / (np.sqrt(np.sum(x * x, axis=-1)) * np.sqrt(np.sum(y * y, axis=-1))))
    raise NotImplementedError("s2s: this metric of scipy.spatial.distance: write it with NumPy")


def of_width(x, y, what):
    """The matrix x, which has as many columns as y: an op, as far as a run has to ask."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"{what} of {x.shape[-1]} and {y.shape[-1]} columns")
    return x


@implements("scipy.spatial.distance:pdist")
def pair_distances(X, metric="euclidean", *, p=2):  # noqa: N803  SciPy's own name
    """scipy.spatial.distance.pdist."""
    i, j = np.triu_indices(len(X), 1)
    return distances_between(X[i], X[j], metric, p)


@implements("scipy.spatial.distance:cdist")
def distances(XA, XB, metric="euclidean", *, p=2):  # noqa: N803  SciPy's own names
    """scipy.spatial.distance.cdist."""
    XA = of_width(XA, XB, "scipy.spatial.distance.cdist")  # noqa: N806  one column would be spread
    return distances_between(XA[:, None], XB[None], metric, p)


@implements("scipy.spatial.distance:euclidean")
def distance(u, v):
    """scipy.spatial.distance.euclidean."""
    return np.linalg.norm(np.subtract(u, v))


@implements("scipy.stats:zscore")
def zscore(a, axis=0, ddof=0):
    """scipy.stats.zscore."""
    return ((a - np.mean(a, axis=axis, keepdims=True))
            / np.std(a, axis=axis, ddof=ddof, keepdims=True))


@implements("scipy.special:comb")
def combinations(N, k, *, exact=False, repetition=False):  # noqa: N803  SciPy's own name
    """scipy.special.comb of two integers."""
    found = math.comb(N + k - 1 if repetition else N, k)
    return found if exact else float(found)


@implements("scipy.special:factorial")
def factorial(n, exact=False):
    """scipy.special.factorial of an integer."""
    return math.factorial(n) if exact else float(math.factorial(n))


@implements("scipy.special:multigammaln")
def multigammaln(a, d):
    """scipy.special.multigammaln: the logarithm of the gamma function of d dimensions."""
    total = d * (d - 1) * 0.25 * math.log(math.pi)
    for j in range(d):
        total = total + scipy.special.gammaln(a - 0.5 * j)
    return total


# -------------------------------------------------------------------------------------- polynomials
#
# Of a degree that is an integer: the recurrences that SciPy runs, of the differences of neighbours
# (legendre, laguerre, jacobi), or Clenshaw's.


def degree(n):
    """Return a degree, which must be an integer."""
    if not isinstance(n, (int, np.integer)):
        raise NotImplementedError("s2s: polynomials of scipy.special of a degree that is no "
                                  "integer: write the degree as an integer")
    return n


@implements("scipy.special:eval_jacobi")
def eval_jacobi(n, alpha, beta, x):
    """scipy.special.eval_jacobi."""
    d = 0.0 * x
    p = d + 1.0
    for k in range(degree(n)):
        if k == 0:
            d = (alpha + beta + 2.0) * (x - 1.0) / (2.0 * (alpha + 1.0))
        else:
            t = 2.0 * k + alpha + beta
            d = ((t * (t + 1.0) * (t + 2.0) * (x - 1.0) * p + 2.0 * k * (k + beta) * (t + 2.0) * d)
                 / (2.0 * (k + alpha + 1.0) * (k + alpha + beta + 1.0) * t))
        p = d + p
    return scipy.special.binom(n + alpha, n) * p


@implements("scipy.special:eval_legendre")
def eval_legendre(n, x):
    """scipy.special.eval_legendre."""
    d = 0.0 * x
    p = d + 1.0
    for k in range(degree(n)):
        d = (2.0 * k + 1.0) / (k + 1.0) * (x - 1.0) * p + k / (k + 1.0) * d
        p = d + p
    return p


@implements("scipy.special:eval_gegenbauer")
def eval_gegenbauer(n, alpha, x):
    """scipy.special.eval_gegenbauer."""
    before = 0.0 * x
    y = before + 1.0
    for k in range(degree(n)):
        before, y = y, (2.0 * (k + alpha) * x * y - (k + 2.0 * alpha - 1.0) * before) / (k + 1.0)
    return y


@implements("scipy.special:eval_genlaguerre")
def eval_genlaguerre(n, alpha, x):
    """scipy.special.eval_genlaguerre."""
    d = 0.0 * x
    p = d + 1.0
    for k in range(degree(n)):
        d = -x / (k + alpha + 1.0) * p + k / (k + alpha + 1.0) * d
        p = d + p
    return scipy.special.binom(n + alpha, n) * p


@implements("scipy.special:eval_laguerre")
def eval_laguerre(n, x):
    """scipy.special.eval_laguerre."""
    return eval_genlaguerre(n, 0.0, x)


@implements("scipy.special:eval_chebyt")
def eval_chebyt(n, x):
    """scipy.special.eval_chebyt."""
    return (0.5 * (eval_chebyu(n, x) - eval_chebyu(n - 2, x)) if degree(n) > 1 else x if n == 1
            else 0.0 * x + 1.0)


@implements("scipy.special:eval_chebyu")
def eval_chebyu(n, x):
    """scipy.special.eval_chebyu."""
    before = 0.0 * x
    y = before + 1.0
    for _ in range(degree(n)):
        before, y = y, 2.0 * x * y - before
    return y


@implements("scipy.special:eval_hermitenorm")
def eval_hermitenorm(n, x):
    """scipy.special.eval_hermitenorm."""
    before = 0.0 * x
    y = before + 1.0
    for k in range(degree(n)):
        before, y = y, x * y - k * before
    return y


@implements("scipy.special:eval_hermite")
def eval_hermite(n, x):
    """scipy.special.eval_hermite."""
    before = 0.0 * x
    y = before + 1.0
    for k in range(degree(n)):
        before, y = y, 2.0 * (x * y - k * before)
    return y


# ------------------------------------------------------------------------------------ distributions


def positive(parameter):
    """Return a positive parameter of a distribution: NaN where it is not positive, which propagates
    to all results.
    """
    return np.where(np.greater(parameter, 0), parameter, np.nan)


def standard(x, loc, scale):
    """Return x in units of the scale, in double precision as in SciPy; NaN where there is no such
    distribution.
    """
    x = np.multiply(x, np.float64(1.0)) if np.asarray(x).dtype == np.float32 else x
    return np.subtract(x, loc) / positive(scale)


@implements("scipy.stats:norm.logpdf")
def norm_logpdf(x, loc=0, scale=1):
    z = standard(x, loc, scale)
    return -0.5 * z**2 - 0.5 * math.log(2 * math.pi) - np.log(scale)


@implements("scipy.stats:norm.pdf")
def norm_pdf(x, loc=0, scale=1):
    z = standard(x, loc, scale)
    return np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) / scale


@implements("scipy.stats:norm.cdf")
def norm_cdf(x, loc=0, scale=1):
    return scipy.special.ndtr(standard(x, loc, scale))


@implements("scipy.stats:norm.sf")
def norm_sf(x, loc=0, scale=1):
    return scipy.special.ndtr(-standard(x, loc, scale))


@implements("scipy.stats:norm.logcdf")
def norm_logcdf(x, loc=0, scale=1):
    return scipy.special.log_ndtr(standard(x, loc, scale))


@implements("scipy.stats:norm.logsf")
def norm_logsf(x, loc=0, scale=1):
    return scipy.special.log_ndtr(-standard(x, loc, scale))


@implements("scipy.stats:norm.ppf")
def norm_ppf(q, loc=0, scale=1):
    return scipy.special.ndtri(q) * positive(scale) + loc


@implements("scipy.stats:expon.logpdf")
def expon_logpdf(x, loc=0, scale=1):
    z = standard(x, loc, scale)
    return np.where(z < 0, -np.inf, -z - np.log(scale))


@implements("scipy.stats:expon.pdf")
def expon_pdf(x, loc=0, scale=1):
    z = standard(x, loc, scale)
    return np.where(z < 0, 0.0, np.exp(-np.where(z < 0, 0.0, z)) / scale)


@implements("scipy.stats:expon.cdf")
def expon_cdf(x, loc=0, scale=1):
    return -np.expm1(-np.maximum(standard(x, loc, scale), 0.0))


@implements("scipy.stats:uniform.cdf")
def uniform_cdf(x, loc=0, scale=1):
    return np.clip(standard(x, loc, scale), 0.0, 1.0)


@implements("scipy.stats:logistic.cdf")
def logistic_cdf(x, loc=0, scale=1):
    return scipy.special.expit(standard(x, loc, scale))


@implements("scipy.stats:cauchy.cdf")
def cauchy_cdf(x, loc=0, scale=1):
    return 0.5 + np.arctan(standard(x, loc, scale)) / math.pi


@implements("scipy.stats:uniform.logpdf")
def uniform_logpdf(x, loc=0, scale=1):
    z = standard(x, loc, scale)
    return np.where((z < 0) | (z > 1), -np.inf, 0.0 * z - np.log(scale))


@implements("scipy.stats:laplace.logpdf")
def laplace_logpdf(x, loc=0, scale=1):
    return -np.abs(standard(x, loc, scale)) - math.log(2.0) - np.log(scale)


@implements("scipy.stats:laplace.pdf")
def laplace_pdf(x, loc=0, scale=1):
    return 0.5 * np.exp(-np.abs(standard(x, loc, scale))) / scale


@implements("scipy.stats:logistic.logpdf")
def logistic_logpdf(x, loc=0, scale=1):
    z = -np.abs(standard(x, loc, scale))
    return z - 2.0 * np.log1p(np.exp(z)) - np.log(scale)


@implements("scipy.stats:cauchy.logpdf")
def cauchy_logpdf(x, loc=0, scale=1):
    z = standard(x, loc, scale)
    return -math.log(math.pi) - np.log1p(z * z) - np.log(scale)


@implements("scipy.stats:t.logpdf")
def t_logpdf(x, df, loc=0, scale=1):
    """Use the series of the quotient of gamma functions of large numbers, which loses no digits;
    for infinitely many degrees of freedom the normal density.
    """
    z, df = standard(x, loc, scale), np.minimum(positive(df), 1e300)
    many = df > 2000.0
    few, large = np.where(many, 1.0, df), np.where(many, df, 1.0)
    ends = np.where(many, -0.25 / large * (1.0 - 1.0 / (6.0 * large * large))
                    - 0.5 * math.log(2 * math.pi),
                    scipy.special.gammaln(0.5 * (few + 1)) - scipy.special.gammaln(0.5 * few)
                    - 0.5 * np.log(np.pi * few))
    return ends - 0.5 * (df + 1) * np.log1p(z**2 / df) - np.log(scale)


@implements("scipy.stats:gamma.logpdf")
def gamma_logpdf(x, a, loc=0, scale=1):
    z, a = standard(x, loc, scale), positive(a)
    outside = z < 0
    z = np.where(outside, 1.0, z)
    return np.where(outside & (a > 0), -np.inf,
                    scipy.special.xlogy(a - 1.0, z) - z - scipy.special.gammaln(a) - np.log(scale))


@implements("scipy.stats:chi2.logpdf")
def chi2_logpdf(x, df, loc=0, scale=1):
    z, df = standard(x, loc, scale), positive(df)
    outside = z < 0
    z = np.where(outside, 1.0, z)
    inside = (scipy.special.xlogy(0.5 * df - 1.0, 0.5 * z) - 0.5 * z
              - scipy.special.gammaln(0.5 * df) - math.log(2.0) - np.log(scale))
    return np.where(outside & (df > 0), -np.inf, inside)


@implements("scipy.stats:beta.logpdf")
def beta_logpdf(x, a, b, loc=0, scale=1):
    z, a, b = standard(x, loc, scale), positive(a), positive(b)
    outside = (z < 0) | (z > 1)
    z = np.where(outside, 0.5, z)
    inside = (scipy.special.xlogy(a - 1.0, z) + scipy.special.xlog1py(b - 1.0, -z)
              - scipy.special.betaln(a, b) - np.log(scale))
    return np.where(outside & (a > 0) & (b > 0), -np.inf, inside)


@implements("scipy.stats:lognorm.logpdf")
def lognorm_logpdf(x, s, loc=0, scale=1):
    z, s = standard(x, loc, scale), positive(s)
    outside = z <= 0
    logarithm = np.log(np.where(outside, 1.0, z))
    inside = (-0.5 * (logarithm / s) ** 2 - logarithm - np.log(s) - 0.5 * math.log(2 * math.pi)
              - np.log(scale))
    return np.where(outside & (s > 0), -np.inf, inside)


@implements("scipy.stats:poisson.logpmf")
def poisson_logpmf(k, mu, loc=0):
    k, mu = np.subtract(k, loc), np.where(np.greater_equal(mu, 0), mu, np.nan)
    outside = (k < 0) | (np.floor(k) < k)
    k = np.where(outside, 0.0, k)
    return np.where(outside & (mu >= 0), -np.inf,
                    scipy.special.xlogy(k, mu) - scipy.special.gammaln(k + 1.0) - mu)


def probability(p):
    """Return a parameter that is a probability, or NaN."""
    return np.where(np.greater_equal(p, 0) & np.less_equal(p, 1), p, np.nan)


def successes(k, n, p):
    """Return the logarithm of the probability of k successes in n trials, where there are such
    numbers.
    """
    outside = (k < 0) | (k > n) | (np.floor(k) < k)
    k = np.where(outside, 0.0, k)
    chosen = (scipy.special.gammaln(n + 1.0) - scipy.special.gammaln(k + 1.0)
              - scipy.special.gammaln(n - k + 1.0))
    return np.where(outside & (n >= 0) & (p >= 0), -np.inf,
                    chosen + scipy.special.xlogy(k, p) + scipy.special.xlog1py(n - k, -p))


@implements("scipy.stats:binom.logpmf")
def binom_logpmf(k, n, p, loc=0):
    n = np.where(np.greater_equal(n, 0) & np.equal(np.floor(n), n), n, np.nan)
    return successes(np.subtract(k, loc), n, probability(p))


@implements("scipy.stats:bernoulli.logpmf")
def bernoulli_logpmf(k, p, loc=0):
    return successes(np.subtract(k, loc), 1.0, probability(p))


@implements("scipy.stats:multivariate_normal.logpdf")
def multivariate_normal_logpdf(x, mean, cov):
    """Support one mean and a regular covariance, at one or several x."""
    L = np.linalg.cholesky(cov)  # noqa: N806
    z = np.linalg.solve(L, np.transpose(np.subtract(x, mean)))
    return (-0.5 * np.sum(z * z, axis=0) - np.sum(np.log(np.diag(L))) - 0.5 * math.log(2 * math.pi)
            * len(L))


@implements("scipy.stats:dirichlet.logpdf")
def dirichlet_logpdf(x, alpha):
    alpha = positive(np.asarray(alpha))
    return (scipy.special.gammaln(np.sum(alpha)) - np.sum(scipy.special.gammaln(alpha))
            + np.sum(scipy.special.xlogy(alpha - 1.0, x)))


@implements("scipy.stats:t.pdf")
def t_pdf(x, df, loc=0, scale=1):
    return np.exp(t_logpdf(x, df, loc, scale))


@implements("scipy.stats:gamma.pdf")
def gamma_pdf(x, a, loc=0, scale=1):
    """Start with a power, whose slope is known: that of the logarithm is infinite there."""
    z = standard(x, loc, scale)
    begins = (np.where(z == 0, z, 1.0) ** (a - 1.0)
              * np.exp(-scipy.special.gammaln(positive(a))) / scale)
    return np.where(z == 0, begins, np.exp(gamma_logpdf(x, a, loc, scale)))


@implements("scipy.stats:chi2.pdf")
def chi2_pdf(x, df, loc=0, scale=1):
    return gamma_pdf(x, 0.5 * np.asarray(df), loc, 2.0 * np.asarray(scale))


@implements("scipy.stats:beta.pdf")
def beta_pdf(x, a, b, loc=0, scale=1):
    """Start with powers at both ends, as in gamma_pdf."""
    z, ends = standard(x, loc, scale), -scipy.special.betaln(positive(a), positive(b))
    edge = (z == 0) | (z == 1)
    left, right = np.where(edge, z, 0.5) ** (a - 1.0), np.where(edge, 1.0 - z, 0.5) ** (b - 1.0)
    return np.where(edge, left * right * np.exp(ends) / scale,
                    np.exp(beta_logpdf(x, a, b, loc, scale)))


@implements("scipy.stats:lognorm.pdf")
def lognorm_pdf(x, s, loc=0, scale=1):
    return np.exp(lognorm_logpdf(x, s, loc, scale))


@implements("scipy.stats:logistic.pdf")
def logistic_pdf(x, loc=0, scale=1):
    return np.exp(logistic_logpdf(x, loc, scale))


@implements("scipy.stats:cauchy.pdf")
def cauchy_pdf(x, loc=0, scale=1):
    return np.exp(cauchy_logpdf(x, loc, scale))


@implements("scipy.stats:uniform.pdf")
def uniform_pdf(x, loc=0, scale=1):
    return np.exp(uniform_logpdf(x, loc, scale))


@implements("scipy.stats:multivariate_normal.pdf")
def multivariate_normal_pdf(x, mean, cov):
    return np.exp(multivariate_normal_logpdf(x, mean, cov))


@implements("scipy.stats:dirichlet.pdf")
def dirichlet_pdf(x, alpha):
    return np.exp(dirichlet_logpdf(x, alpha))


@implements("scipy.stats:poisson.pmf")
def poisson_pmf(k, mu, loc=0):
    return np.exp(poisson_logpmf(k, mu, loc))


@implements("scipy.stats:binom.pmf")
def binom_pmf(k, n, p, loc=0):
    return np.exp(binom_logpmf(k, n, p, loc))


@implements("scipy.stats:bernoulli.pmf")
def bernoulli_pmf(k, p, loc=0):
    return np.exp(bernoulli_logpmf(k, p, loc))


# ------------------------------------------------------------------------------ Rosenbrock's valley


@implements("scipy.optimize:rosen")
def rosen(x):
    """scipy.optimize.rosen: the sum of 100 (x[i + 1] - x[i]**2)**2 + (1 - x[i])**2."""
    x = 1.0 * np.asarray(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2, axis=0)


@implements("scipy.optimize:rosen_der")
def rosen_der(x):
    """scipy.optimize.rosen_der, the gradient."""
    x = 1.0 * np.asarray(x)
    slope = np.zeros_like(x)
    slope[1:-1] = (200 * (x[1:-1] - x[:-2] ** 2) - 400 * (x[2:] - x[1:-1] ** 2) * x[1:-1]
                   - 2 * (1 - x[1:-1]))
    slope[0] = -400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0])
    slope[-1] = 200 * (x[-1] - x[-2] ** 2)
    return slope


def rosen_curvature(x):
    """Return the diagonal of the Hessian; beside it stand -400 x[:-1]."""
    diagonal = np.zeros_like(x)
    diagonal[0] = 1200 * x[0] ** 2 - 400 * x[1] + 2
    diagonal[-1] = 200.0
    diagonal[1:-1] = 202 + 1200 * x[1:-1] ** 2 - 400 * x[2:]
    return diagonal


@implements("scipy.optimize:rosen_hess")
def rosen_hess(x):
    """scipy.optimize.rosen_hess, the Hessian."""
    x = 1.0 * np.asarray(x)
    beside = -400 * x[:-1]
    return np.diag(beside, 1) + np.diag(beside, -1) + np.diag(rosen_curvature(x))


@implements("scipy.optimize:rosen_hess_prod")
def rosen_hess_prod(x, p):
    """scipy.optimize.rosen_hess_prod, the Hessian times `p`."""
    x, p = np.atleast_1d(1.0 * np.asarray(x)), 1.0 * np.asarray(p)
    product = rosen_curvature(x) * p
    product[:-1] += -400 * x[:-1] * p[1:]
    product[1:] += -400 * x[:-1] * p[:-1]
    return product
