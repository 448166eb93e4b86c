"""SciPy's matrix equations (ops/linalg/matrix_equations.py): Sylvester's, banded systems, square
roots of matrices; and the incomplete beta function.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg as la
import scipy.special as special
from differences import check, check_compiled

import s2s
from s2s.errors import S2SError
from s2s.runtime.call.native_function import InterpretedWarning

A = np.array([[2.0, 0.3, -0.4], [0.5, 1.5, 0.2], [-0.1, 0.7, 3.0]])
B = np.array([[1.0, 0.6], [-0.2, 2.0]])
Q = np.arange(6.0).reshape(3, 2) - 1.3
# one above, two below
AB = np.array(
    [[0.0, 0.3, -0.2, 0.1], [4.0, 5.0, 3.0, 2.5], [0.5, -0.3, 0.7, 0.0], [0.2, 0.4, 0.0, 0.0]]
)
V = np.array([0.5, -1.5, 2.5, 1.0])
W = np.stack((V, V**2), axis=1)

FUNCTIONS = {
    "solve_sylvester": lambda x: np.sum(la.solve_sylvester(A * x, B + x, Q * x**2) ** 2 * Q),
    "solve_continuous_lyapunov": lambda x: np.sum(
        la.solve_continuous_lyapunov(A * x + x**2, A) * A
    ),
    "sqrtm": lambda x: np.sum(la.sqrtm(A @ A.T + x * A) * A),
    "solve_banded": lambda x: np.sum(
        la.solve_banded((2, 1), AB * x + x**2 * np.sign(AB), V * x) ** 3
    ),
    "solve_banded, a matrix": lambda x: np.sum(
        la.solve_banded((2, 1), AB + x * AB**2, W) * W * V[:, None]
    ),
    "solve_banded, a triangle": lambda x: np.sum(
        la.solve_banded((0, 1), AB[:2] + x * AB[:2] ** 2, V) * V
    ),
    "betainc": lambda x: (
        special.betainc(2.0, 3.5, x) + np.sum(special.betaincc(0.5, 1.5, x * np.array([0.2, 1.0])))
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check(FUNCTIONS[name], x=0.6, exactly=1e-13, rtol=2e-7)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["solve_sylvester", "sqrtm", "solve_banded", "betainc"])
def test_compiled(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterpretedWarning)
        check_compiled(FUNCTIONS[name], x=0.6)


@pytest.mark.parametrize(
    "name", ["solve_sylvester", "sqrtm", "solve_banded", "solve_banded, a matrix", "betainc"]
)
def test_batched(name):
    xs = np.array([0.4, 0.6, 0.9])
    slope = s2s.grad(FUNCTIONS[name])
    np.testing.assert_allclose(s2s.vmap(slope)(xs), [slope(x) for x in xs], rtol=1e-11)


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda a, b, q: np.sum(la.solve_sylvester(a, b, q) ** 2), (A, B, Q)),
        (lambda a: np.sum(la.sqrtm(a) * A), (A @ A.T + A,)),
        (lambda ab, b: np.sum(la.solve_banded((2, 1), ab, b) ** 2), (AB, V)),
        (lambda ab, b: np.sum(la.solve_banded((2, 1), ab, b) ** 2 * W), (AB, W)),
    ],
)
def test_derivatives_in_every_argument(f, args):
    s2s.check_grads(f, args)


def test_complex_square_roots_are_asked_for():
    def f(a):
        return np.sum(np.abs(la.sqrtm(a)))

    with pytest.raises(TypeError, match="Cannot cast array data from dtype.'complex128'. to "
                                        "dtype.'float64'."):
        s2s.grad(f)(-A)
    assert s2s.jvp(lambda a: np.sum(np.abs(la.sqrtm(a.astype(complex)))), (-A,), (A,))[
        0
    ] == pytest.approx(f(-A))


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda x: np.sum(la.sqrtm(A[None] * x)), "sqrtm of something else than one matrix"),
        (
            lambda x: np.sum(la.solve_banded((1, 1), np.ones((4, 4)) * x, V)),
            "solve_banded of 4 diagonals, 1 below and 1 above the main one",
        ),
        (lambda x: special.betainc(x, 1.0, 0.3), "a parameter of betainc"),
    ],
)
def test_what_is_left_is_refused(f, text):
    with pytest.raises(S2SError, match=text):
        s2s.grad(f)(0.7)
