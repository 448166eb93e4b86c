"""NumPy's functions that are said in Python (library/numpy_functions.py): their numbers are
NumPy's, their derivatives its differences.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from differences import check, check_compiled

import s2s
from s2s.errors import S2SError

A = np.array([0.5, 1.5, 2.5])
M = np.arange(6.0).reshape(2, 3) + 1
RANK_OF_NOTHING = np.lib.NumpyVersion(np.__version__) >= "2.3.0"
S = M[:, :2] + np.array([[0.3, 0.1], [-0.2, 0.5]])
N = np.array([0.5, np.nan, 2.5, 0.1])
CUBE = np.arange(24.0).reshape(2, 3, 4) / 9
STACK = np.array([[[4.0, 1.0], [1.0, 3.0]], [[5.0, -0.4], [-0.4, 2.0]]])
HERMITIAN = np.array([[2.0, 0.3 - 1j, 0.5j], [0.3 + 1j, 3.0, 0.2], [-0.5j, 0.2, 1.0]])
EYE6 = (np.eye(6) + np.arange(36.0).reshape(6, 6) / 70).reshape(2, 3, 2, 3)
NEW = hasattr(np, "vecmat")  # NumPy 2.2
C = [1.0, 0.4, -2.0, 0.3, 0.7]


def svd_of_square(x):
    u, s, vt = np.linalg.svd(S * x + np.diag(S[0]))
    return np.abs(u[0, 0] * vt[0, 1]) + s[1]


def _of_complex_parts(a):
    u, s, vt = np.linalg.svd(a[:, :2], full_matrices=False)
    return (
        np.sum(np.abs(u.conj().T @ a * s[:, None]) ** 2 * A)
        + np.sum(np.abs(vt @ HERMITIAN[:2]) ** 4)
        + np.real(np.sum((u * s**2) @ vt * a[:, 1:]))
    )


def _filled(y, v):
    y[:] = v
    return np.sum(y**2)


FUNCTIONS = {
    "add.outer": lambda x: np.sum(np.add.outer(A * x, M) ** 2),
    "power.outer": lambda x: np.sum(np.power.outer(A * x, [1.0, 2.0])),
    "subtract.outer": lambda x: np.sum(np.subtract.outer(A * x, x) ** 2),
    "logaddexp.reduce": lambda x: np.sum(np.logaddexp.reduce(M * x)),
    "logaddexp.reduce, axis": lambda x: np.sum(np.logaddexp.reduce(M * x, axis=1) ** 2),
    "accumulate": lambda x: (
        np.sum(np.maximum.accumulate([x, 0.5, x * x + 1.0]) ** 2)
        + np.sum(np.minimum.accumulate(np.sin(M * x), axis=1) ** 2 * A)
        + np.sum(np.add.accumulate(M * x, axis=-1) ** 2)
    ),
    "vectorize of a function in the program": lambda x: np.sum(
        np.vectorize(lambda a, b: a * b if a > 0.5 else b)(A * x, x) ** 2
    ),
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
    "windows of one and none": lambda x: (
        x
        * (
            np.sum(np.hanning(1))
            + np.sum(np.hamming(0))
            + np.sum(np.kaiser(1, 2.0))
            + len(np.blackman(-2))
        )
    ),
    "block": lambda x: np.sum(
        np.block([[M * x, M], [np.zeros((1, 3)), x * np.ones((1, 3))]]) ** 2 * np.arange(6)
    ),
    "block, one list": lambda x: np.sum(np.block([A * x, 2.0, A]) ** 2 * np.arange(7)),
    "block of vectors": lambda x: np.sum(np.block([[A * x], [A]]) ** 2 * A),
    "indices": lambda x: np.sum(np.indices((2, 3))[1] * M * x),
    "fromfunction": lambda x: np.sum(np.fromfunction(lambda i, j: np.cos(x * i + j), (2, 3))),
    "piecewise": lambda x: np.sum(
        np.piecewise(A * x, [A < 1, A > 2], [lambda t: t * t, 2.0, lambda t: 3 * t])
    ),
    "piecewise, no rest": lambda x: np.sum(np.piecewise(A * x, [A < 1, A >= 1], [np.sin, np.cos])),
    "along rows": lambda x: np.sum(np.apply_along_axis(lambda v: v * v / np.sum(v), 1, M * x) * M),
    "along columns": lambda x: np.sum(
        np.apply_along_axis(lambda v: v * v / np.sum(v), 0, M * x) * M
    ),
    "sums of columns": lambda x: np.sum(np.apply_along_axis(np.sum, 0, M * x) ** 2),
    "along a vector": lambda x: np.sum(np.apply_along_axis(np.cumsum, 0, A * x) ** 2),
    "sliding windows": lambda x: np.max(
        np.lib.stride_tricks.sliding_window_view(A * x, 2).mean(axis=1)
    ),
    "sliding windows of two axes": lambda x: np.sum(
        np.lib.stride_tricks.sliding_window_view(M * x, (2, 2)) ** 3 * np.arange(2)
    ),
    "sliding windows along the last axis": lambda x: np.sum(
        np.lib.stride_tricks.sliding_window_view(M * x, 2, axis=-1) ** 3 * np.arange(2)
    ),
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
    "norm of vectors": lambda x: (
        np.linalg.norm(A * x - 0.9, 3)
        + np.linalg.norm(A * x - 0.9, -np.inf)
        + np.linalg.norm(A * x - 0.9, 1.5)
    ),
    "norm along an axis": lambda x: np.sum(np.linalg.norm(M * x - 0.3, 3, axis=1)),
    "cov of two": lambda x: (
        np.sum(np.cov(A * x * x, A**2)) + np.sum(np.cov(M * x, M**2 * x, rowvar=False) ** 2)
    ),
    "corrcoef of two": lambda x: np.corrcoef(A * x + A * A, A)[0, 1],
    "r_": lambda x: np.sum(np.r_[x, A * x, 1:4, 0:1:5j, [x, 2.0]] * np.arange(14)),
    "r_ of matrices": lambda x: np.sum(np.r_[M * x, M] ** 2 * A),
    "c_ of vectors": lambda x: np.sum(np.c_[A * x, A, A**2 * x] ** 2 * np.arange(9).reshape(3, 3)),
    "c_ of a matrix": lambda x: np.sum(np.c_[M * x, np.ones(2)] ** 2 * np.arange(4)),
    "mgrid": lambda x: np.sum(np.sin(np.mgrid[0:3, 0:2:0.5] * x)[1]) + np.sum(np.mgrid[:3] * x),
    "ogrid": lambda x: np.sum(np.sin(x * np.ogrid[-1:1:3j, :4][0]) * np.ogrid[-1:1:3j, :4][1]),
    "allclose": lambda x: (
        x**2 if np.allclose(A * x, A * x + 1e-12) and not np.allclose([1.0, 2.0], [1.0, x]) else x
    ),
    "array_equal": lambda x: (
        x**2
        if np.array_equal(A, A) and not np.array_equal(A, M) and not np.array_equal(A * x, A[:2])
        else x
    ),
    "divmod": lambda x: np.divmod(A * x, 0.3)[1].sum() + np.divmod(A * x, 0.3)[0][0] * x,
    "float_power": lambda x: np.sum(np.float_power(A * x, [2, 3, 1])),
    "ldexp": lambda x: np.sum(np.ldexp(A * x, [1, 2, 3])),
    "modf": lambda x: np.sum(np.modf(A * x)[0]) + np.modf(x)[0],
    "diagflat": lambda x: np.sum(np.diagflat(M * x) ** 2),
    "indices of triangles": lambda x: (
        np.sum((M * x)[np.tril_indices_from(M)] ** 2)
        + np.sum((M * x)[np.triu_indices_from(M, 1)] ** 2)
    ),
    "indices of the diagonal": lambda x: np.sum(
        np.outer(A, A * x)[np.diag_indices_from(np.outer(A, A))] ** 2
    ),
    "quantiles without NaN": lambda x: (
        np.nanmedian(N + x) + np.nanquantile(N + x, 0.3) ** 2 + np.nanpercentile(N + x, 20)
    ),
    "places without NaN": lambda x: (N + x)[np.nanargmax(N + x)] * (N + x)[np.nanargmin(N)],
    "broadcast_arrays": lambda x: (
        np.sum(np.broadcast_arrays(A * x, M)[0] ** 2) + np.sum(np.broadcast_arrays(x, A)[0])
    ),
    "polyadd": lambda x: (
        np.sum(np.polyadd(A * x, [1.0, 2.0, 3.0, x]) ** 2) + np.sum(np.polysub([x], A * x) ** 2)
    ),
    "polymul": lambda x: np.sum(np.polymul(A * x, A) ** 2),
    "polyder": lambda x: (
        np.sum(np.polyder(A * x * x) ** 2) + np.sum(np.polyder([x, 2.0, 3.0, x], 2) ** 2)
    ),
    "polyint": lambda x: np.sum(np.polyint(A * x) ** 2),
    "polymul of what begins with 0": lambda x: (
        np.sum(np.polymul((A - 0.5) * x, A * x) ** 2)
        + np.sum(np.polymul([0.0, 0.0], A * x))
        + np.sum(np.polymul([0.0, x], A)) ** 2
    ),
    "polymul of nothing": lambda x: (
        np.sum(np.polymul((A * x)[A > 9], A * x)) + np.sum(np.polymul((A * x)[A > 1], A * x) ** 2)
    ),
    "polyval of nothing": lambda x: (
        np.sum(np.polyval((A * x)[A > 9], A * x))
        + np.sum(np.polyval((A * x)[A > 1], A * x))
        + np.polyval((A * x)[A > 1], x)
    ),
    "histogram of nothing": lambda x: (
        np.sum(np.histogram((A * x)[A > 9], 4)[1] * x)
        + np.sum(np.histogram((A * x)[A > 1], 4)[1] ** 2)
        + np.sum(np.histogram((A * x)[A > 2], 4)[1] ** 2)
    ),
    "matrix_rank of nothing": lambda x: (
        # an error in NumPy before 2.3
        x * (np.linalg.matrix_rank((M * x)[:, A > 9]) if RANK_OF_NOTHING else 0)
        + x * x * np.linalg.matrix_rank((M * x)[:, A > 1])
    ),
    "tensorsolve of one": lambda x: np.linalg.tensorsolve(np.array([3.0 * x]), np.array([2.0]))[0],
    "shapes that are vectors": lambda x: (
        np.sum(np.tile(A * x, np.array([2, 1])) ** 2 * A)
        + np.sum(np.full(np.array([2, 3]), x) ** 2 * M)
        + np.sum(np.reshape(A * x, np.array([3, 1])) ** 2 * A)
        + np.sum(np.broadcast_to(A * x, np.array(M.shape)) * M)
    ),
    "poly": lambda x: np.sum(np.poly(A * x) ** 2),
    "matrix_rank": lambda x: x * np.linalg.matrix_rank(np.outer(A, A) * x),
    "unravel_index": lambda x: (M * x)[np.unravel_index(np.argmax(M * x), M.shape)],
    "unravel_index of a list": lambda x: (
        (M * x)[np.unravel_index(4, (2, 3))] + np.unravel_index([1, 5], (2, 3))[1].sum() * x
    ),
    "ravel_multi_index": lambda x: np.ravel(M * x)[np.ravel_multi_index((1, 2), (2, 3))],
    "compress": lambda x: (
        np.sum(np.compress([1, 0, 2], A * x) ** 2)
        + np.sum((A * x).compress([1, 0, 1]) ** 2)
        + np.sum((M * x).compress(A > 1, axis=1) ** 2 * np.array([1.0, 2.0]))
    ),
    "item": lambda x: (M * x).item(4) * (M * x).item(1, 2) + (A * x)[:1].item(),
    "in Fortran's order": lambda x: (
        np.sum(np.reshape(M * x, (3, 2), order="F") ** 2 * M.T)
        + np.sum((M * x).ravel("F") * np.arange(6) ** 2)
        + np.sum((M * x).flatten(order="F")[:2])
        + np.sum((M * x).reshape(-1, order="F")[1:3] ** 2)
    ),
    "rollaxis": lambda x: (
        np.sum(np.rollaxis(M * x, 1)[0] ** 2) + np.sum(np.rollaxis(M * x, 0, 2)[1] ** 3)
    ),
    "gradient": lambda x: (
        np.sum(np.gradient(M * x * M)[1] ** 2)
        + np.sum(np.gradient(M * x, 0.5, A)[1] ** 2)
        + np.sum(np.gradient(A**2 * x, A * x) ** 2 * A)
        + np.sum(np.gradient(A**3 * x, 0.1, edge_order=2) * A)
    ),
    "vander of any length": lambda x: (
        np.sum(np.vander(A[A > 0] * x) ** 2 * A)
        + np.sum(np.vander(A[A > 0] * x, increasing=True)[1])
    ),
    "roots": lambda x: np.sum(np.abs(np.roots([1.0, -3 * x, x, 0.4, 0.0])) ** 2),
    "choose": lambda x: np.sum(np.choose([0, 2, 1], [A * x, x, A**2 * x]) ** 2),
    "take": lambda x: (
        np.sum(np.take(A * x, [-1, 4, 1], mode="wrap") ** 2 * A)
        + np.sum((M * x).take([[-5, 1], [9, 0]], axis=1, mode="clip") ** 2)
    ),
    "resize": lambda x: np.sum(np.resize(A * x, (2, 4)) ** 2 * np.arange(4)),
    "add.reduceat": lambda x: (
        np.sum(np.add.reduceat(A * x, [0, 2, 1]) ** 2)
        + np.sum(np.maximum.reduceat(M * x, [0, 1])[0])
    ),
    "einsum of axes": lambda x: (
        np.sum(np.einsum(M * x, [0, 1], A, [1], [0]) ** 2)
        + np.einsum(M * x, [0, ...], M, [0, ...], [...])[1]
    ),
    "fix": lambda x: np.sum(np.fix(A * x) * x),
    "kron of any axes": lambda x: (
        np.sum(np.kron(A * x, M) ** 2 * np.arange(9))
        + np.sum(np.kron(x, A))
        + np.sum(np.kron(M[None] * x, M)[0, 3])
    ),
    "cross along an axis": lambda x: (
        np.sum(np.cross(M.T * x, M.T**2, axis=0) * M.T)
        + np.sum(np.cross(M.T * x, M**2, axisa=0, axisc=0)[1] ** 2)
    ),
    "diff with ends": lambda x: (
        np.sum(np.diff(A * x, prepend=0.0, append=x) ** 2)
        + np.sum(np.diff(M * x, axis=0, append=M[:1]) ** 2)
    ),
    "linspace with its step": lambda x: (
        np.linspace(x, 3.0, 5, retstep=True)[1]
        + np.sum(np.linspace(0.0, x, 4, False, True)[0] ** 2)
    ),
    "pad with pairs": lambda x: (
        np.sum(np.pad(A * x, 2, constant_values=(3.0, x)) ** 2)
        + np.sum(np.pad(A * x, (1, 0), constant_values=(x,)) ** 2)
        + np.sum(np.pad(M * x, 1, constant_values=((x, 2.0), (3.0, 4.0))) ** 2 * np.arange(5))
    ),
    "stable argsort": lambda x: (
        np.sum(np.array([2.0, x, 2.0])[np.argsort([2.0, 1.0, 2.0], kind="stable")] * np.arange(3))
        + np.sort(A * x, kind="stable")[0]
    ),
    "parts in a list": lambda x: sum(
        [
            np.sum(part**2) * k
            for k, part in enumerate(np.split(M * x, 3, axis=1) + np.array_split(A * x, 2))
        ]
    ),
    "histogram between least and largest": lambda x: (
        np.sum(np.histogram(A * x, 4)[1] ** 2)
        + np.sum(np.histogram(A, 3, weights=A * x)[0] ** 2)
        + np.histogram([x, x], 2)[1][0]
    ),
    "norms of matrices": lambda x: (
        np.sum(np.linalg.norm(STACK * x, "nuc", axis=(0, 2)) ** 2)
        + np.sum(np.linalg.norm(STACK * x, axis=(2, 1)))
        + np.linalg.norm(STACK * x, 1, axis=(1, 2), keepdims=True)[1, 0, 0]
        + np.linalg.norm(M * x, "fro")
    ),
    "each of a stack": lambda x: (
        np.sum(np.linalg.eigvalsh(STACK * x)[1] ** 3)
        + np.sum(np.abs(np.linalg.eigh(STACK * x, UPLO="U")[1]) * STACK)
        + np.sum(np.linalg.svd(STACK * x, compute_uv=False) ** 3)
        + np.sum(np.abs(np.linalg.svd(STACK + x, full_matrices=False)[0]) * STACK)
        + np.sum(np.abs(np.linalg.qr(STACK + x)[0]) * STACK)
        + np.sum(np.abs(np.linalg.qr(STACK[0] * x, "r")))
        + np.sum(np.linalg.pinv(STACK + x))
    ),
    "Hermitian matrices": lambda x: (
        np.sum(np.linalg.eigvalsh(HERMITIAN * x + np.diag(A)) ** 3)
        + np.sum(
            np.abs(np.linalg.eigh(HERMITIAN + np.diag(A) * x, "U")[1].conj().T @ (HERMITIAN + 1))
            ** 2
            * A
        )
    ),
    "complex matrices": lambda x: (
        np.sum(np.linalg.svd(HERMITIAN * 1j + x, compute_uv=False) ** 3)
        + _of_complex_parts(HERMITIAN + 0.3j * np.diag(A) * x)
    ),
    "cholesky of the upper half": lambda x: (
        np.sum(np.linalg.cholesky(STACK[1] * x, upper=True) * STACK[0]) if NEW else x
    ),
    "tensors": lambda x: (
        np.sum(np.linalg.tensorsolve(EYE6 * x + EYE6**2, M) ** 2)
        + np.sum(np.linalg.tensorinv(EYE6 * x)[0, 1] ** 2)
    ),
    "ndarray": lambda x: _filled(np.ndarray(3, dtype=np.float64), A * x),
    "logaddexp2": lambda x: np.sum(np.logaddexp2(A * x, A * x * x)),
    "insert along an axis": lambda x: (
        np.sum(np.insert(M * x, -1, M[:, 0] * x, axis=1) ** 2 * np.arange(4))
        + np.sum(np.insert(M * x, 1, x, axis=0) ** 2 * M[[0, 1, 0]])
        + np.sum(np.insert(M * x, 3, [[x], [2.0]], axis=1)[1] ** 2 * np.arange(5))
    ),
    "insert at places": lambda x: (
        np.sum(np.insert(M * x, [1, 1], M[:, :2] ** 2, axis=1) ** 2 * np.arange(5))
        + np.sum(np.insert(A * x, [3, -2, 0], [x, 2.0, 4.0]) ** 2 * np.arange(6))
        + np.sum(np.insert(M * x, [-2], A * x, axis=0) ** 2 * M[[0, 1, 0]])
        + np.sum(np.insert(M * x, [2, 5], x) ** 2 * np.arange(8))
    ),
    "nan_to_num with numbers": lambda x: (
        np.sum(np.nan_to_num(N * x, nan=x * x))
        + np.sum(np.nan_to_num(np.array([np.inf, -np.inf, x, np.nan]), posinf=x**3, neginf=2.0))
    ),
    "interp with a period": lambda x: np.sum(
        np.interp(np.arange(-2.0, 7.0) * x, A[::-1], A * x, period=2.6) ** 2
    ),
    "cond in other norms": lambda x: (
        np.linalg.cond(S * x + np.eye(2), 1)
        + np.sum(np.linalg.cond(STACK + x, "fro") * C[:2])
        + np.linalg.cond(STACK[0] * x + S, -2)
        + np.linalg.cond(S * x + np.eye(2), np.inf)
    ),
    "multi_dot of four": lambda x: (
        np.sum(np.linalg.multi_dot([M * x, M.T, M * x, A]))
        + np.linalg.multi_dot([A * x, M.T, M, M.T])[1]
    ),
    "tri with a dtype": lambda x: (
        np.sum(np.tri(3, dtype=bool) * A * x) + np.sum(np.tri(2, 3, -1, dtype=np.float32) * M * x)
    ),
    "stacks of systems": lambda x: np.sum(np.linalg.solve(STACK + x, M * x) ** 2 * A) if NEW else x,
    "a number's own index": lambda x: np.sum(A * x)[()] ** 2 + (A * x)[()][1],
}
if hasattr(np, "vecmat"):  # NumPy 2.2
    FUNCTIONS.update(
        {
            "of the last axes": lambda x: (
                np.sum(np.linalg.trace(CUBE * x) ** 2)
                + np.sum(np.linalg.diagonal(CUBE * x, offset=1) ** 2)
                + np.sum(np.linalg.matrix_norm(CUBE * x, keepdims=True)[1])
                + np.linalg.vector_norm(CUBE * x, keepdims=True)[0, 0, 0]
                + np.sum(np.cumulative_sum(A * x) ** 2)
            ),
            "vecdot": lambda x: np.sum(np.vecdot(M * x, M)),
            "matvec": lambda x: np.sum(np.matvec(M * x, A)),
            "vecmat": lambda x: np.sum(np.vecmat(A, M.T * x)),
            "np.linalg's names": lambda x: (
                np.linalg.matrix_norm(M * x)
                + np.linalg.vector_norm(M * x)
                + np.sum(np.linalg.vector_norm(M * x, axis=1))
                + np.sum(np.linalg.outer(A * x, A))
                + np.linalg.trace(M * x)
                + np.sum(np.linalg.matmul(M * x, M.T))
                + np.sum(np.linalg.matrix_transpose(M * x)[0])
                + np.sum(np.linalg.cross(A * x, A**2) ** 2)
                + np.sum(np.linalg.diagonal(M * x) ** 2)
                + np.sum(np.linalg.tensordot(M * x, M.T, axes=1))
            ),
        }
    )
COMPILED = [
    "divmod",
    "modf",
    "places without NaN",
    "unravel_index",
    "poly",
    "r_",
    "c_ of vectors",
    "mgrid",
    "allclose",
    "array_equal",
    "add.outer",
    "logaddexp.reduce",
    "polyval",
    "legval",
    "hanning",
    "block",
    "fromfunction",
    "piecewise",
    "along columns",
    "compress",
    "in Fortran's order",
    "gradient",
    "add.reduceat",
    "each of a stack",
    "parts in a list",
    "sliding windows",
    "svd",
    "norm 2",
    "norm along an axis",
    "cov of two",
    "logaddexp2",
    "insert along an axis",
    "insert at places",
    "nan_to_num with numbers",
    "interp with a period",
    "stacks of systems",
]
# NumPy has written these in more than one order
ROUNDED = (
    "legval",
    "insert at places",
    "legval, two",
    "polyfit",
    "Hermitian matrices",
    "each of a stack",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check(FUNCTIONS[name], exactly=1e-13 if name in ROUNDED else 0)


@pytest.mark.compile
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    check_compiled(FUNCTIONS[name])


WIDTHS = {0: 1, -1: (0, 2)}


def test_widths_of_axes_come_from_a_captured_dict():
    def f(x):
        return np.sum(np.pad(M * x, WIDTHS, constant_values=3.0) ** 2)

    # what NumPy reads from such a dict, from 2.3 on
    expected = np.sum(np.pad(M * 0.7, ((1, 1), (0, 2)), constant_values=3.0) ** 2)
    assert s2s.value_and_grad(f)(0.7) == (expected, pytest.approx(2 * 0.7 * np.sum(M**2)))


def test_norms_need_no_types_before_a_call():
    for f in (
        lambda x: np.linalg.norm(x),
        lambda x: np.einsum(x, [0], x, [0]),
        lambda x: np.sum(np.r_[x, x]),
        lambda x: np.linalg.multi_dot([x, x, x, x]),
    ):
        assert "def" in s2s.grad(f).source


def test_norms_of_zeros_have_a_slope():
    zeros = np.zeros((2, 2, 2))
    for f in (
        lambda a: np.sum(np.linalg.norm(a, axis=(1, 2))),
        lambda a: np.sum(np.linalg.norm(a, "fro", axis=(0, 1))),
    ):
        np.testing.assert_array_equal(s2s.grad(f)(zeros), zeros)


def test_parts_stand_in_a_list():
    parts = s2s.jvp(lambda x: np.split(x, 3), (A,), (A,))[0]
    assert isinstance(parts, list) and len(parts) == 3


def test_exponents_beyond_those_of_numbers():
    f = lambda x: np.ldexp(np.array([x, 1e-300]), [-1030, 1030])  # noqa: E731
    np.testing.assert_array_equal(s2s.vjp(f, 0.7)[0], f(0.7))


@pytest.mark.parametrize("of", [lambda t: t, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_no_line_goes_through_nothing(of):
    for f in (
        lambda x: np.sum(np.polyfit((A * x)[A > 9], (A * x)[A > 9], 1)),
        lambda x: x * np.sum(np.polyfit([], [], 1)),
    ):
        with pytest.raises(TypeError, match="expected non-empty vector for x"):
            of(s2s.grad(f))(0.7)


@pytest.mark.parametrize("place, axis", [(4, 1), (-4, 1), ([0, 3], 0), ([-3, 0], 0)])
def test_places_beyond_the_ends_stop(place, axis):
    f = s2s.grad(lambda x: np.sum(np.insert(M * x, place, 2.0, axis=axis)))
    with pytest.raises(IndexError, match="out of bounds"):
        f(0.7)


def test_all_of_u_and_v_need_a_square_matrix():
    f = s2s.grad(lambda a: np.sum(np.linalg.svd(a)[0]))
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        f(M)


def test_handlers_do_not_catch_what_numpy_would_not_raise():
    def f(a, k):
        try:
            y = np.linalg.svd(a[:k])[1][0]
        except NotImplementedError:
            y = np.sum(a)
        return y

    np.testing.assert_allclose(s2s.value_and_grad(f)(S, 2)[0], f(S, 2))
    with pytest.raises(NotImplementedError, match="all of U and V"):
        s2s.grad(f)(S, 1)


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda x: np.sum(np.block([[[A * x]]])), "lists 3 deep"),
        (lambda x: np.sum(np.block([M * x, M])), "more axes than lists"),
        (lambda x: np.sum(np.polyval(M * x, x)), "a polynomial of an array of 2 axes"),
        (
            lambda x: np.sum(np.logaddexp.reduce(A * x, keepdims=True)),
            "reduce called like this: got an unexpected keyword argument 'keepdims'",
        ),
        (lambda x: np.polyval([1.0, x]), "polyval called like this: missing a required argument"),
        (lambda x: np.sum(np.apply_along_axis(np.sort, 5, M * x)), "axis 5 of an array of 2 axes"),
        (lambda x: np.unravel_index(x, (2, 3))[0] * x, "numbers that are no integers"),
        (
            lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(A * x, 2, axis=1)),
            "axis 1 of an array of 1 axes",
        ),
        (
            lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(M * x, (2, 2), axis=0)),
            "windows of 2 axes along 1",
        ),
        (lambda x: np.sum(np.linalg.multi_dot([S * x])), "fewer than two matrices"),
        (
            lambda x: np.sum(np.insert(A * x, np.array([True, False, True]), x)),
            "np.insert at truth values",
        ),
        (
            lambda x: np.sum(np.tile(A * x, np.flatnonzero(A > 1))),
            "np.tile with counts of unknown length",
        ),
        (lambda x: np.sum(np.zeros(np.flatnonzero(A > 1)) + x), "a shape of unknown length"),
        (
            lambda x: np.sum(np.abs(np.ldexp(A * x * 1j, 2))),
            "ldexp is not defined for complex128 and int",
        ),
        (
            lambda x: np.sum(np.insert(A * x, 1, M)),
            "np.insert at truth values, or of arrays with more axes",
        ),
    ],
)
def test_what_is_left_is_refused(f, text):
    with pytest.raises(S2SError, match=text):
        s2s.grad(f)(0.7)


@pytest.mark.parametrize("of", [lambda t: t, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_averages_of_no_weight_stop(of):
    x = np.arange(4.0).reshape(2, 2)
    for f, w in (
        (lambda x, w: np.average(x, weights=w), x - x[::-1]),
        (lambda x, w: np.average(x, axis=0, weights=w)[0], np.array([1.0, -1.0])),
        (lambda x, w: np.average(x, axis=1, weights=w)[0], np.array([[1.0, 2.0], [1.0, -1.0]])),
    ):
        with pytest.raises(ZeroDivisionError, match="Weights sum to zero, can't be normalized"):
            of(s2s.grad(f))(x, w)
        np.testing.assert_allclose(of(s2s.value_and_grad(f))(x, w + 1.0)[0], f(x, w + 1.0))
    np.testing.assert_allclose(
        s2s.vmap(lambda w: np.average(x[0], weights=w))(x + 1.0),
        [np.average(x[0], weights=w) for w in x + 1.0],
    )


@pytest.mark.parametrize("p", [None, 1, -1, np.inf, -np.inf, "fro", 2, -2])
def test_the_condition_of_a_singular_matrix_is_infinite(p):
    def f(a):
        return np.linalg.cond(a, p)

    regular = np.array([[2.0, 1.0], [1.0, 4.0]])
    for a in (
        np.zeros((2, 2)),
        np.array([regular, 0 * regular]),
        np.ones((2, 2)),
        1e-100 * regular,
        regular.astype("float32"),
    ):
        with np.errstate(all="ignore"):
            found, wanted = s2s.vjp(f, a)[0], f(a)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-15)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
    with np.errstate(all="ignore"):
        assert p in (None, 2, -2) or not np.any(np.isfinite(s2s.grad(f)(np.ones((2, 2)))))


STACKS = {
    "svd": lambda a: np.linalg.svd(a, compute_uv=False),
    "svd, u": lambda a: np.linalg.svd(a, full_matrices=False)[0],
    "eigvalsh": lambda a: np.linalg.eigvalsh(a),
    "eigh": lambda a: np.linalg.eigh(a)[1] ** 2,
    "qr": lambda a: np.linalg.qr(a)[1],
    "pinv": lambda a: np.linalg.pinv(a),
    "norm": lambda a: np.linalg.norm(a, 2, axis=(-2, -1)),
}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_matrices_keep_their_precision_and_integers_are_floats(name, dtype):
    f, a = STACKS[name], np.array([[[2, 1], [1, 4]], [[5, 2], [2, 3]], [[1, 0], [0, 2]]], dtype)

    def scaled(c, a):
        return np.sum(f(a) * c)

    wanted = f(a)
    np.testing.assert_allclose(s2s.grad(scaled)(1.0, a), np.sum(wanted), rtol=1e-5)
    if dtype == "float32":
        found = s2s.vjp(f, a)[0]
        assert found.dtype == wanted.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_integers_are_not_cut_off():
    np.testing.assert_allclose(
        s2s.vjp(lambda v: np.unwrap(v), np.array([0, 10, 20]))[0], np.unwrap([0, 10, 20])
    )
    np.testing.assert_array_equal(
        s2s.vjp(lambda v: np.unwrap(v, period=7), np.array([0, 10, 20]))[0],
        np.unwrap([0, 10, 20], period=7),
    )
    small = np.array([200, 100, 200, 100], "uint8")
    np.testing.assert_array_equal(
        s2s.vjp(lambda v: np.add.reduceat(v, [0, 2]), small)[0], [300, 300]
    )


def test_bins_of_what_is_not_finite_raise():
    for x in (np.array([1.0, np.nan]), np.array([np.inf, 1.0])):
        for f in (
            lambda x: np.sum(np.histogram(x)[1]),
            lambda x: np.histogram(x, 3, weights=x)[0][0],
        ):
            for run in (f, s2s.grad(f), lambda x: s2s.vmap(f)(x[None])):  # noqa: B023
                with pytest.raises(ValueError, match="finite|infs or NaNs"):
                    run(x)


def test_weights_of_another_rank_need_an_axis():
    x, w = np.ones((2, 3)), np.array([1.0, 2.0, 3.0])
    for run in (
        lambda: np.average(x, weights=w),
        lambda: s2s.grad(lambda x: np.average(x, weights=w))(x),
    ):
        with pytest.raises(TypeError, match="xis must be specified when shapes of a and weights "
                                            "differ"):
            run()
    assert s2s.grad(lambda x: np.sum(np.average(x, axis=1, weights=w)))(x)[0, 1] == 2 / 6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_without_numbers_are_nan():
    for x in (np.full(3, np.nan), np.zeros(0)):
        for f in (
            lambda x: np.nanpercentile(x, 30.0),
            lambda x: np.nanquantile(x, 0.3),
            lambda x: np.nanmedian(x),
        ):
            value, slopes = s2s.value_and_grad(f)(x)
            assert np.isnan(f(x)) and np.isnan(value) and np.array_equal(slopes, np.zeros(len(x)))


PLACES = np.array([[0, 5, 11], [7, 3, 2]])
FLAT = {
    "unravel_index": lambda x, k: np.unravel_index(k, (3, 4)),
    "unravel_index of three axes": lambda x, k: np.unravel_index(k, (2, 3, 2)),
    "unravel_index, first axis fastest": lambda x, k: np.unravel_index(k, (2, 3, 2), order="F"),
    "unravel_index of a vector": lambda x, k: np.unravel_index(k, 12),
    "unravel_index of an array's shape": lambda x, k: np.unravel_index(k, x.shape),
    "ravel_multi_index": lambda x, k: np.ravel_multi_index((k // 4, k % 4), (3, 4)),
    "ravel_multi_index of one axis": lambda x, k: np.ravel_multi_index((k,), (12,)),
    "ravel_multi_index, first axis fastest": lambda x, k: np.ravel_multi_index(
        (k // 4, k % 4), (3, 4), order="F"
    ),
}
ANYWHERE = {
    "wrap": lambda x, k: np.ravel_multi_index((k, k - 3), (3, 4), mode="wrap"),
    "clip": lambda x, k: np.ravel_multi_index((k, k - 3), (3, 4), mode="clip"),
    "clip and wrap": lambda x, k: np.ravel_multi_index((k, k), (3, 4), ("clip", "wrap"), "F"),
}


@pytest.mark.parametrize("of", [lambda f: s2s.vmap(f, in_axes=(None, 1), out_axes=-1),
                                pytest.param(s2s.jit, marks=pytest.mark.compile)])
@pytest.mark.parametrize("name", [*FLAT, *ANYWHERE])
def test_places_in_flat_arrays(name, of):
    f, x = {**FLAT, **ANYWHERE}[name], np.full((3, 4), 0.5)
    wanted = f(x, PLACES)
    np.testing.assert_array_equal(of(f)(x, PLACES), wanted)
    one = lambda x, k: np.sum(np.array(f(x, k)) * x[0, 0])  # noqa: E731
    for k in (0, 7, 11) if name in FLAT else (0, 7, 11, -1, -9, 40):
        slope = s2s.grad(one)(x, k)
        assert slope[0, 0] == np.sum(f(x, k)) and np.sum(np.abs(slope)) == abs(slope[0, 0])
        assert s2s.jvp(one, (x, k), (x, 0))[1] == 0.5 * slope[0, 0]


@pytest.mark.parametrize("of", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
@pytest.mark.parametrize("name", FLAT)
def test_places_out_of_bounds_are_refused(name, of):
    x = np.full((3, 4), 0.5)
    f = lambda x, k: np.sum(np.array(FLAT[name](x, k)) * x[0, 0])  # noqa: E731
    for k in (-1, 12, np.array([3, 12]), np.array([-1, 3])):
        if name.startswith("ravel") and np.any(k == -1):
            k = -4
        for g in (f, of(s2s.grad(f)), of(s2s.value_and_grad(f))):
            with pytest.raises(ValueError, match="out of bounds for array|invalid entry in coord"):
                g(x, k)


@pytest.mark.lengthy
@pytest.mark.parametrize("of", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_quantiles_out_of_range_are_refused(of):
    for f, most, message in (
        (np.quantile, 1, r"Quantiles must be in the range \[0, 1\]"),
        (np.percentile, 100, r"Percentiles must be in the range \[0, 100\]"),
    ):
        one, several = lambda x, q: f(x, q) + 0.0, lambda x, q: np.sum(f(x, [q, 0.5]))  # noqa: B023
        for g in (one, several):
            grad = of(s2s.grad(g))
            assert np.sum(grad(A, 1.0 * most)) == pytest.approx(1 if g is one else 2)
            for q in (1.1 * most, -0.1, np.nan, np.inf):
                for h in (g, grad, s2s.vmap(g, in_axes=(None, 0))):
                    with pytest.raises(ValueError, match=message):
                        h(A, np.array([0.5, q]) if h not in (g, grad) else q)


EXPONENTS = [0, 3, -3, 60, -60, 1000, 1001, 1023, 1024, 1900, 2046, 2047, 2097, 2098, 4000, -1000]
EXPONENTS += [-1022, -1074, -1075, -1100, -2046, -2047, -2070, -2071, -2090, -2098, -4000]
MANTISSAS = np.array([0.0, -0.0, 1.0, 0.7, -3.3, 5e-324, 3e-310, 1e-300, 1.7e308, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("of", [s2s.vmap, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_products_with_powers_of_two_are_rounded_once(of, dtype):
    """np.ldexp and its slope, for exponents of which 2.0 ** n is no number."""
    with np.errstate(all="ignore"):
        x, n = np.meshgrid(MANTISSAS.astype(dtype), EXPONENTS)
    f = of(lambda x, n: np.ldexp(x, n))
    back = of(s2s.grad(lambda x, n, bar: np.sum(np.ldexp(x, n) * bar)))
    forth = of(lambda x, n, dot: s2s.jvp(np.ldexp, (x, n), (dot, 0 * n))[1])
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x, n)
        for y in (f(x, n), back(np.ones_like(x), n, x), forth(np.ones_like(x), n, x)):
            assert y.dtype == dtype
            np.testing.assert_array_equal(y, wanted)
            np.testing.assert_array_equal(np.signbit(y), np.signbit(wanted))


@pytest.mark.parametrize("of", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_math_ldexp_is_pythons(of):
    g = of(s2s.value_and_grad(lambda x, n: math.ldexp(x, n) + 0.0))
    f = lambda x, n: g(x, n)[0]  # noqa: E731
    for x in MANTISSAS.tolist():
        for n in EXPONENTS:
            try:
                wanted = math.ldexp(x, n) + 0.0
            except OverflowError:
                with pytest.raises(OverflowError):
                    f(x, n)
            else:
                np.testing.assert_array_equal(f(x, n), wanted)


@pytest.mark.parametrize("window, x", [(9, np.ones(3)), ((1, 4), np.ones((3, 3)))])
def test_windows_that_are_too_long_raise(window, x):
    def f(x):
        return np.sum(np.lib.stride_tricks.sliding_window_view(x, window))

    with pytest.raises(ValueError, match="window shape cannot be larger than input array shape"):
        s2s.grad(f)(x)
