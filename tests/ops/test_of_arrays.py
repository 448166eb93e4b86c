"""NumPy's functions that are said in Python (front/said_of_arrays.py): their numbers are NumPy's, their derivatives its differences."""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, check_compiled

import s2s
from s2s.errors import S2SError

A = np.array([0.5, 1.5, 2.5])
M = np.arange(6.0).reshape(2, 3) + 1
S = M[:, :2] + np.array([[0.3, 0.1], [-0.2, 0.5]])
N = np.array([0.5, np.nan, 2.5, 0.1])
C = [1.0, 0.4, -2.0, 0.3, 0.7]


def svd_of_square(x):
    u, s, vt = np.linalg.svd(S * x + np.diag(S[0]))
    return np.abs(u[0, 0] * vt[0, 1]) + s[1]


FUNCTIONS = {
    "add.outer": lambda x: np.sum(np.add.outer(A * x, M) ** 2),
    "power.outer": lambda x: np.sum(np.power.outer(A * x, [1.0, 2.0])),
    "subtract.outer": lambda x: np.sum(np.subtract.outer(A * x, x) ** 2),
    "logaddexp.reduce": lambda x: np.sum(np.logaddexp.reduce(M * x)),
    "logaddexp.reduce, axis": lambda x: np.sum(np.logaddexp.reduce(M * x, axis=1) ** 2),
    "polyval": lambda x: np.sum(np.polyval([1.0, x, 2.0], A * x)),
    "polyval of a number": lambda x: np.polyval([x, 3.0, 2.0, 1.0], x),
    "rising": lambda x: np.sum(np.polynomial.polynomial.polyval(A * x, [1.0, x, 2.0])),
    "chebval": lambda x: np.sum(np.polynomial.chebyshev.chebval(A * x, [x, *C])),
    "chebval, one": lambda x: np.sum(np.polynomial.chebyshev.chebval(A * x, [x])),
    "legval": lambda x: np.sum(np.polynomial.legendre.legval(A * x, [x, *C])),
    "legval, two": lambda x: np.polynomial.legendre.legval(x, [x, 2.0]),
    "hermval": lambda x: np.sum(np.polynomial.hermite.hermval(A * x, [x, *C])),
    "hermeval": lambda x: np.sum(np.polynomial.hermite_e.hermeval(A * x, [x, *C])),
    "lagval": lambda x: np.sum(np.polynomial.laguerre.lagval(A * x, [x, *C])),
    "polyfit": lambda x: np.sum(np.polyfit(A, np.sin(A * x), 1) ** 2),
    "hanning": lambda x: np.sum(np.hanning(8) * x * np.arange(8)),
    "hamming": lambda x: np.sum(np.hamming(7) * x * np.arange(7)),
    "blackman": lambda x: np.sum(np.blackman(8) * x * np.arange(8)),
    "bartlett": lambda x: np.sum(np.bartlett(7) * x * np.arange(7)),
    "kaiser": lambda x: np.sum(np.kaiser(8, 14.0 * x) * np.arange(8)),
    "windows of one and none": lambda x: x * (np.sum(np.hanning(1)) + np.sum(np.hamming(0)) + np.sum(np.kaiser(1, 2.0)) + len(np.blackman(-2))),
    "block": lambda x: np.sum(np.block([[M * x, M], [np.zeros((1, 3)), x * np.ones((1, 3))]]) ** 2 * np.arange(6)),
    "block, one list": lambda x: np.sum(np.block([A * x, 2.0, A]) ** 2 * np.arange(7)),
    "block of vectors": lambda x: np.sum(np.block([[A * x], [A]]) ** 2 * A),
    "indices": lambda x: np.sum(np.indices((2, 3))[1] * M * x),
    "fromfunction": lambda x: np.sum(np.fromfunction(lambda i, j: np.cos(x * i + j), (2, 3))),
    "piecewise": lambda x: np.sum(np.piecewise(A * x, [A < 1, A > 2], [lambda t: t * t, 2.0, lambda t: 3 * t])),
    "piecewise, no rest": lambda x: np.sum(np.piecewise(A * x, [A < 1, A >= 1], [np.sin, np.cos])),
    "along rows": lambda x: np.sum(np.apply_along_axis(lambda v: v * v / np.sum(v), 1, M * x) * M),
    "along columns": lambda x: np.sum(np.apply_along_axis(lambda v: v * v / np.sum(v), 0, M * x) * M),
    "sums of columns": lambda x: np.sum(np.apply_along_axis(np.sum, 0, M * x) ** 2),
    "along a vector": lambda x: np.sum(np.apply_along_axis(np.cumsum, 0, A * x) ** 2),
    "sliding windows": lambda x: np.max(np.lib.stride_tricks.sliding_window_view(A * x, 2).mean(axis=1)),
    "cond": lambda x: np.linalg.cond(S * x + np.eye(2)),
    "multi_dot": lambda x: np.sum(np.linalg.multi_dot([M * x, M.T * x, M])),
    "multi_dot, the other order": lambda x: np.sum(np.linalg.multi_dot([M.T * x, M, M.T * x])),
    "svd": svd_of_square,
    "norm 1": lambda x: np.linalg.norm(M * x - 0.3, 1),
    "norm -1": lambda x: np.linalg.norm(M * x - 0.3, -1),
    "norm inf": lambda x: np.linalg.norm(M * x - 0.3, np.inf),
    "norm -inf": lambda x: np.linalg.norm(M * x - 0.3, ord=-np.inf),
    "norm 2": lambda x: np.linalg.norm(M * x - 0.3, 2),
    "norm -2": lambda x: np.linalg.norm(M * x - 0.3, -2),
    "nuclear norm": lambda x: np.linalg.norm(M * x - 0.3, "nuc"),
    "norm of vectors": lambda x: np.linalg.norm(A * x - 0.9, 3) + np.linalg.norm(A * x - 0.9, -np.inf) + np.linalg.norm(A * x - 0.9, 1.5),
    "norm along an axis": lambda x: np.sum(np.linalg.norm(M * x - 0.3, 3, axis=1)),
    "cov of two": lambda x: np.sum(np.cov(A * x * x, A**2)) + np.sum(np.cov(M * x, M**2 * x, rowvar=False) ** 2),
    "corrcoef of two": lambda x: np.corrcoef(A * x + A * A, A)[0, 1],
    "r_": lambda x: np.sum(np.r_[x, A * x, 1:4, 0:1:5j, [x, 2.0]] * np.arange(14)),
    "r_ of matrices": lambda x: np.sum(np.r_[M * x, M] ** 2 * A),
    "c_ of vectors": lambda x: np.sum(np.c_[A * x, A, A**2 * x] ** 2 * np.arange(9).reshape(3, 3)),
    "c_ of a matrix": lambda x: np.sum(np.c_[M * x, np.ones(2)] ** 2 * np.arange(4)),
    "mgrid": lambda x: np.sum(np.sin(np.mgrid[0:3, 0:2:0.5] * x)[1]) + np.sum(np.mgrid[:3] * x),
    "ogrid": lambda x: np.sum(np.sin(x * np.ogrid[-1:1:3j, :4][0]) * np.ogrid[-1:1:3j, :4][1]),
    "allclose": lambda x: x**2 if np.allclose(A * x, A * x + 1e-12) and not np.allclose([1.0, 2.0], [1.0, x]) else x,
    "array_equal": lambda x: x**2 if np.array_equal(A, A) and not np.array_equal(A, M) and not np.array_equal(A * x, A[:2]) else x,
    "divmod": lambda x: np.divmod(A * x, 0.3)[1].sum() + np.divmod(A * x, 0.3)[0][0] * x,
    "float_power": lambda x: np.sum(np.float_power(A * x, [2, 3, 1])),
    "ldexp": lambda x: np.sum(np.ldexp(A * x, [1, 2, 3])),
    "modf": lambda x: np.sum(np.modf(A * x)[0]) + np.modf(x)[0],
    "diagflat": lambda x: np.sum(np.diagflat(M * x) ** 2),
    "indices of triangles": lambda x: np.sum((M * x)[np.tril_indices_from(M)] ** 2) + np.sum((M * x)[np.triu_indices_from(M, 1)] ** 2),
    "indices of the diagonal": lambda x: np.sum(np.outer(A, A * x)[np.diag_indices_from(np.outer(A, A))] ** 2),
    "quantiles without NaN": lambda x: np.nanmedian(N + x) + np.nanquantile(N + x, 0.3) ** 2 + np.nanpercentile(N + x, 20),
    "places without NaN": lambda x: (N + x)[np.nanargmax(N + x)] * (N + x)[np.nanargmin(N)],
    "broadcast_arrays": lambda x: np.sum(np.broadcast_arrays(A * x, M)[0] ** 2) + np.sum(np.broadcast_arrays(x, A)[0]),
    "polyadd": lambda x: np.sum(np.polyadd(A * x, [1.0, 2.0, 3.0, x]) ** 2) + np.sum(np.polysub([x], A * x) ** 2),
    "polymul": lambda x: np.sum(np.polymul(A * x, A) ** 2),
    "polyder": lambda x: np.sum(np.polyder(A * x * x) ** 2) + np.sum(np.polyder([x, 2.0, 3.0, x], 2) ** 2),
    "polyint": lambda x: np.sum(np.polyint(A * x) ** 2),
    "poly": lambda x: np.sum(np.poly(A * x) ** 2),
    "matrix_rank": lambda x: x * np.linalg.matrix_rank(np.outer(A, A) * x),
    "unravel_index": lambda x: (M * x)[np.unravel_index(np.argmax(M * x), M.shape)],
    "unravel_index of a list": lambda x: (M * x)[np.unravel_index(4, (2, 3))] + np.unravel_index([1, 5], (2, 3))[1].sum() * x,
    "ravel_multi_index": lambda x: np.ravel(M * x)[np.ravel_multi_index((1, 2), (2, 3))],
    "logaddexp2": lambda x: np.sum(np.logaddexp2(A * x, A * x * x)),
}
if hasattr(np, "vecmat"):  # NumPy 2.2
    FUNCTIONS.update({
        "vecdot": lambda x: np.sum(np.vecdot(M * x, M)),
        "matvec": lambda x: np.sum(np.matvec(M * x, A)),
        "vecmat": lambda x: np.sum(np.vecmat(A, M.T * x)),
        "np.linalg's names": lambda x: np.linalg.matrix_norm(M * x) + np.linalg.vector_norm(M * x)
        + np.sum(np.linalg.vector_norm(M * x, axis=1)) + np.sum(np.linalg.outer(A * x, A)) + np.linalg.trace(M * x)
        + np.sum(np.linalg.matmul(M * x, M.T)) + np.sum(np.linalg.matrix_transpose(M * x)[0]) + np.sum(np.linalg.cross(A * x, A ** 2) ** 2)
        + np.sum(np.linalg.diagonal(M * x) ** 2) + np.sum(np.linalg.tensordot(M * x, M.T, axes=1)),
    })
COMPILED = ["divmod", "modf", "places without NaN", "unravel_index", "poly", "r_", "c_ of vectors", "mgrid", "allclose", "array_equal", "add.outer", "logaddexp.reduce", "polyval", "legval", "hanning", "block", "fromfunction", "piecewise", "along columns",
            "sliding windows", "svd", "norm 2", "norm along an axis", "cov of two", "logaddexp2"]
ROUNDED = ("legval", "legval, two", "polyfit")  # NumPy has written these in more than one order


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check(FUNCTIONS[name], exactly=1e-13 if name in ROUNDED else 0)


@pytest.mark.compile
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    check_compiled(FUNCTIONS[name])


def test_exponents_beyond_those_of_numbers():
    f = lambda x: np.ldexp(np.array([x, 1e-300]), [-1030, 1030])  # noqa: E731
    np.testing.assert_array_equal(s2s.vjp(f, 0.7)[0], f(0.7))


def test_polynomials_that_begin_with_zero_are_not_multiplied():
    with pytest.raises(NotImplementedError, match="begin with 0"):
        s2s.grad(lambda x: np.sum(np.polymul(A * x, [0.0, x])))(0.7)


def test_all_of_u_and_v_need_a_square_matrix():
    f = s2s.grad(lambda a: np.sum(np.linalg.svd(a)[0]))
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        f(M)


@pytest.mark.parametrize("f, text", [
    (lambda x: np.sum(np.block([[[A * x]]])), "lists 3 deep"),
    (lambda x: np.sum(np.block([M * x, M])), "more axes than lists"),
    (lambda x: np.sum(np.polyval(M * x, x)), "a polynomial of an array of 2 axes"),
    (lambda x: np.sum(np.logaddexp.reduce(A * x, keepdims=True)), "reduce called like this: got an unexpected keyword argument 'keepdims'"),
    (lambda x: np.polyval([1.0, x]), "polyval called like this: missing a required argument"),
    (lambda x: np.sum(np.apply_along_axis(np.sort, 5, M * x)), "axis 5 of an array of 2 axes"),
    (lambda x: np.unravel_index(x, (2, 3))[0] * x, "numbers that are no integers"),
    (lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(A * x, 2, axis=1)), "axis 1 of a vector"),
    (lambda x: np.linalg.cond(S * x, 1), "np.linalg.cond in another norm"),
    (lambda x: np.sum(np.linalg.multi_dot([S * x] * 4)), "other than two or three matrices"),
])
def test_what_is_left_is_refused(f, text):
    with pytest.raises(S2SError, match=text):
        s2s.grad(f)(0.7)


@pytest.mark.parametrize("of", [lambda t: t, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_averages_of_no_weight_stop(of):
    x = np.arange(4.0).reshape(2, 2)
    for f, w in ((lambda x, w: np.average(x, weights=w), x - x[::-1]), (lambda x, w: np.average(x, axis=0, weights=w)[0], np.array([1.0, -1.0])),
                 (lambda x, w: np.average(x, axis=1, weights=w)[0], np.array([[1.0, 2.0], [1.0, -1.0]]))):
        with pytest.raises(ZeroDivisionError, match="Weights sum to zero, can't be normalized"):
            of(s2s.grad(f))(x, w)
        np.testing.assert_allclose(of(s2s.value_and_grad(f))(x, w + 1.0)[0], f(x, w + 1.0))
    np.testing.assert_allclose(s2s.vmap(lambda w: np.average(x[0], weights=w))(x + 1.0), [np.average(x[0], weights=w) for w in x + 1.0])
