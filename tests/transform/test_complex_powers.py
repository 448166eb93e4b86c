"""Derivatives of real functions through powers of Python's numbers that are complex."""

from __future__ import annotations

import numpy as np
import pytest

import s2s


def size(x):
    return abs((-x) ** 0.5)


def part(x):
    return ((-x) ** 1.5).imag


def through_a_loop(x):
    t = x - 9.0
    for k in range(2):
        t = t ** 0.75 * (1.0 - k)
        if k == 0:
            y = abs(t)
    return y


def exponent(x):
    return ((-2.0) ** x).imag


def squares(x):
    z = (-x) ** (2.0 / 3.0)
    return z.real**2 + z.imag**2


def given(x, p):
    return np.abs(x**p)


def as_complex(x):
    return abs(complex(-x) ** 0.5)


def slope(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


MODES = {
    "reverse": s2s.grad,
    "forward": s2s.jacfwd,
    "linearized": lambda f: lambda x: s2s.linearize(f, x)[1](1.0),
    "second": lambda f: s2s.grad(s2s.grad(f)),
    "compiled": lambda f: s2s.jit(s2s.grad(f)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [size, part, through_a_loop, exponent, squares])
def test_real_parts_of_complex_powers_are_refused(f, mode):
    assert isinstance(f(3.0), float)  # Python computes it
    with pytest.raises(ValueError, match="power of a negative number is complex.*write complex"):
        MODES[mode](f)(3.0)


@pytest.mark.parametrize("f", [size, squares])
@pytest.mark.parametrize("mode", ["reverse", "forward", "linearized", "compiled"])
def test_positive_bases_are_differentiated(f, mode):
    assert MODES[mode](f)(-3.0) == pytest.approx(slope(f, -3.0), rel=1e-8)


def test_whole_exponents_are_real():
    assert s2s.grad(given)(-3.0, 3.0) == pytest.approx(
        slope(lambda x: given(x, 3.0), -3.0), rel=1e-8
    )
    with pytest.raises(ValueError, match="write complex"):
        s2s.grad(given)(-3.0, 1.5)
    with pytest.raises(ValueError, match="write complex"):
        s2s.grad(given, 1)(-3.0, 3.0)


@pytest.mark.parametrize("mode", ["reverse", "forward", "linearized", "compiled"])
def test_the_remedy(mode):
    assert MODES[mode](as_complex)(3.0) == pytest.approx(slope(size, 3.0), rel=1e-8)


def test_lanes_are_numpys_and_nan():
    with np.errstate(invalid="ignore"):
        found = s2s.vmap(s2s.grad(size))(np.array([3.0, -3.0]))
    assert np.isnan(found[0]) and found[1] == pytest.approx(slope(size, -3.0), rel=1e-8)


def test_programs_without_sizes_are_not_tested():
    assert "raise" not in s2s.grad(lambda x: x**1.5).lower(2.0).source
    assert "raise" not in s2s.grad(lambda x: abs((1.0 + x * x) ** 0.5)).lower(2.0).source
