"""Buffers that a `while` loop fills anew on each trip are allocated once, before it."""

import numpy as np
import pytest

import s2s


def damped(x, r):
    t = 0.0
    while t < 1.0:
        k = np.array([x[1], -x[0] * r])
        z = x + 0.5 * k
        l = np.array([z[1], -z[0] * r])
        if np.max(np.abs(l - k)) > 0.1:
            x = x + 0.1 * (k + l)
            t += 0.15
        t += 0.05
    return np.sum(x * x)


def nested(x, r):
    while np.sum(x) > 0.5:
        y = x * r
        while np.sum(y) > 0.3:
            z = y * 0.5
            y = np.array([z[0] * 0.9, z[1] * 0.8 + 0.1 * z[0]])
        x = x * 0.8 + 0.01 * y
    return np.sum(x)


@pytest.mark.compile
@pytest.mark.parametrize("f", [damped, nested], ids=lambda f: f.__name__)
def test_what_compiled_loops_compute(f):
    x = np.array([1.0, 0.3])
    for t in (f, s2s.grad(f), s2s.grad(f, argnums=1)):
        np.testing.assert_allclose(s2s.jit(t)(x, 0.7), t(x, 0.7), rtol=1e-13)


def test_nothing_is_made_in_a_trip():
    text = s2s.jit(s2s.grad(damped)).lower(np.array([1.0, 0.3]), 0.7).loops
    loops = text[text.index("    while t < 1.0:\n"):]
    forth = loops[:loops.index("    # line 11, backwards")]
    assert "np.empty" not in forth and "np.zeros" not in forth
