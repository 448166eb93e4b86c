"""Values and derivatives of a function against the function itself and its differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import s2s

STEP = 1e-6


def difference(f: Callable, x: float) -> float:
    """The central difference of `f` at `x`."""
    return (f(x + STEP) - f(x - STEP)) / (2 * STEP)


def differences(f: Callable, x: np.ndarray, *rest) -> np.ndarray:
    """The central differences of f(x, *rest) in each element of the vector `x`."""
    steps = STEP * np.eye(len(x))
    return np.array([(f(x + e, *rest) - f(x - e, *rest)) / (2 * STEP) for e in steps])


def check(
    f: Callable, x: float = 0.7, exactly: float = 0.0, rtol: float = 1e-7, atol: float = 1e-8
) -> None:
    """Assert of a function of a number that the value is Python's to within `exactly`, and that
    derivatives of both modes and orders are differences.
    """
    found, slope = s2s.value_and_grad(f)(x)
    np.testing.assert_allclose(found, f(x), rtol=exactly)
    np.testing.assert_allclose(slope, difference(f, x), rtol=rtol, atol=atol)
    np.testing.assert_allclose(s2s.jvp(f, (x,), (1.0,))[1], slope, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        s2s.grad(s2s.grad(f))(x), difference(s2s.grad(f), x), rtol=10 * rtol, atol=100 * atol
    )


def check_compiled(f: Callable, x: float = 0.7, rtol: float = 1e-11) -> None:
    """Assert that native code gives what Python gives."""
    np.testing.assert_allclose(
        s2s.jit(s2s.value_and_grad(f))(x), s2s.value_and_grad(f)(x), rtol=rtol
    )
