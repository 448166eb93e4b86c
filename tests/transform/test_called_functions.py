"""Called functions, and the parts of their derivatives, are cleaned up as their callers are, and
know the lengths of what they are handed.
"""

import numpy as np
import pytest
from differences import STEP, differences

import s2s
from s2s.errors import VerifyError
from s2s.transform.cleanup import tables

X = np.array([0.3, 0.8, 1.4, 2.0, 2.9])


def bump(z):
    if z > 1e-6:
        s = np.sqrt(z)
        return (s - np.sin(s)) / s**3
    if z < -1e-6:
        return np.cosh(z) / 6
    return 1 / 6 - z / 120


def damped(a, n):
    scale = np.sqrt(a[0] * a[0] + 1.0)
    s = a[1]
    for _ in range(n):
        s = (s + bump(a[2]) * np.sin(s) * scale) / (1.0 + bump(a[2]) * scale)
    return s


def twice(a):
    return damped(a, 3) * np.sum(a)


def rates(U):
    rho, u = U[0], U[1] / U[0]
    return np.array([rho * u, rho * u * u + np.sqrt(rho)])


def between(UL, UR):
    FL, FR = rates(UL), rates(UR)
    rho = rates(UL)[0]
    return 0.5 * (FL + FR) - rho * (UR - UL)


def of_parts(q):
    U = np.outer(np.array([1.0, 0.4]), q) + 0.5
    left, right = U * 1.5, U * U
    return np.sum(between(left[:, 1:-1], right[:, 2:]) ** 2)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [twice, of_parts])
def test_derivatives_are_those_of_differences(f):
    expected = differences(f, X)
    np.testing.assert_allclose(s2s.grad(f)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(s2s.jacfwd(f)(X), expected, rtol=1e-6)
    second = np.array([(s2s.grad(f)(X + e) - s2s.grad(f)(X - e)) / (2 * STEP)
                       for e in STEP * np.eye(len(X))])
    np.testing.assert_allclose(s2s.hessian(f)(X), second, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(np.stack([X, X + 0.1])),
                               [expected, differences(f, X + 0.1)], rtol=1e-6)


@pytest.mark.compile
@pytest.mark.parametrize("f", [twice, of_parts])
def test_compiled_derivatives_are_those_of_differences(f):
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(X), differences(f, X), rtol=1e-6)


def test_a_called_function_computes_once_what_it_says_twice():
    gradient = s2s.grad(twice)
    gradient(X)
    forward = gradient.source.split("def damped_fwd")[1].split("\ndef ")[0]
    assert forward.count("bump(") + forward.count("bump_fwd(") == 1


def test_lengths_of_parts_are_known_where_they_are_handed_on():
    gradient = s2s.grad(of_parts)
    gradient(X)
    assert "between_bwd" in gradient.source
    assert "sum_to_shape" not in gradient.source
    forward = gradient.source.split("def between_fwd")[1].split("\ndef ")[0]
    assert forward.count("rates(") == 2  # of UL and UR


def test_each_pass_over_a_called_function_is_verified(monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "ir")

    def broken(function):
        function.block.ops = function.block.ops[1:]
        return function

    def called(x):
        y = np.sin(x)
        while y > 0.5:
            y = y * 0.5
        return y

    def f(x):
        return called(x) * called(x + 1.0)

    monkeypatch.setattr(tables, "PREPARE", tables.ordered(tables.Pass(broken, "for this test")))
    with pytest.raises(VerifyError, match="after broken"):
        s2s.grad(f)(0.3)


def test_the_same_reshape_twice_is_one_whatever_its_length_is_called():
    def f(x, w):
        rows = x.reshape(-1, 2)
        again = x.reshape(-1, 2)
        return np.sum(np.tanh(rows @ w) * (again @ w))

    gradient = s2s.grad(f, argnums=1)
    x, w = np.linspace(0, 1, 12).reshape(3, 4), np.array([0.3, -0.4])
    expected = [(f(x, w + e) - f(x, w - e)) / (2 * STEP) for e in STEP * np.eye(2)]
    np.testing.assert_allclose(gradient(x, w), expected, rtol=1e-6)
    assert gradient.source.count("reshape") == 1
