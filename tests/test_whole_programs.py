"""Whole programs of `tests/whole`, as their authors would write them: values and gradients against
Python and differences.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
import whole

import s2s

STEP = 1e-6
MODULES = [importlib.import_module(f"whole.{name}")
           for name in sorted(module.name for module in pkgutil.iter_modules(whole.__path__))]


def cases(compiled: bool) -> list:
    """All programs; compiled, those that take more than ten seconds to compile are slow."""
    return [
        pytest.param(f, x, id=f"{module.__name__.split('.')[-1]}.{f.__name__}",
                     marks=[pytest.mark.slow] if compiled and f in getattr(module, "LONG", ())
                     else [])
        for module in MODULES for f, x in module.PROGRAMS
    ]


def differences(f: Callable, x: np.ndarray) -> np.ndarray:
    """Central differences of `f` at `x`, with a step for each element."""
    found = np.zeros(x.shape)
    for k in np.ndindex(x.shape):
        step = STEP * max(1.0, abs(x[k]))
        up, down = x.copy(), x.copy()
        up[k] += step
        down[k] -= step
        found[k] = (f(up) - f(down)) / (up[k] - down[k])
    return found


def check(f: Callable, x: np.ndarray, value: float, slope: np.ndarray, rtol: float) -> None:
    expected = differences(f, x)
    np.testing.assert_allclose(value, f(x.copy()), rtol=rtol)
    scale = max(1.0, abs(value), np.max(np.abs(expected)))
    np.testing.assert_allclose(slope, expected, rtol=2e-5, atol=1e-8 * scale)
    assert np.any(slope != 0), "a program whose result does not depend on its argument"


@pytest.mark.lengthy
@pytest.mark.parametrize("f, x", cases(compiled=False))
def test_gradient_is_that_of_differences(f, x):
    given = copy.deepcopy(x)
    value, slope = s2s.value_and_grad(f)(given)
    check(f, x, value, slope, rtol=1e-13)
    np.testing.assert_array_equal(given, x)


@pytest.mark.compile
@pytest.mark.parametrize("f, x", cases(compiled=True))
def test_compiled_gradient_is_that_of_differences(f, x):
    value, slope = s2s.jit(s2s.value_and_grad(f))(x.copy())
    check(f, x, value, slope, rtol=1e-9)
