"""Three or more array tapes of a loop nest are printed as one list; fewer stay arrays."""

from __future__ import annotations

import numpy as np
import pytest
from differences import differences

import s2s

X = np.array([0.4, 1.3, -0.7, 0.9])


def recurrence(p, n=4):
    a, b, c = p[0], p[1], p[2]
    for k in range(2, 2 + n):
        a, b, c = np.sin(a * b), np.cos(b * c) + p[k % 4], a * c * k
    return a * b + c


def downwards(p):
    a, b, c = p[0], p[1], p[2]
    for k in range(3, -1, -1):
        a, b, c = np.sin(a * b), np.cos(b * c), a * c * p[k]
    return a * b + c


def in_a_nest(p):
    a, b, c = p[0], p[1], p[2]
    for i in range(3):
        for k in range(1, 4):
            a, b, c = np.sin(a * b), np.cos(b * c), a * c * p[k] + i
    return a * b + c


def in_a_triangle(p):
    a, b, c = p[0], p[1], p[2]
    for i in range(3):
        for k in range(i, 4):
            a, b, c = np.sin(a * b), np.cos(b * c), a * c * p[k]
    return a * b + c


def overwritten(p):
    x, y, z = p.copy(), p * p, np.sin(p)
    for k in range(3):
        x[k] = x[k + 1] * y[k] * z[k] + np.sum(x * x)
        y[:2] = np.sin(y[2:] * x[:2])
        z = z * np.sum(x * y * z)
    return np.sum(x * y * z)


def two(p):
    a, b = p[0], p[1]
    for k in range(4):
        a, b = np.sin(a * b), np.cos(b) * p[k]
    return a * b


@pytest.mark.parametrize("f, stacked", [
    (recurrence, True), (downwards, True), (in_a_nest, True), (in_a_triangle, None),
    (overwritten, None), (two, False)], ids=lambda x: getattr(x, "__name__", ""))
def test_gradients_are_differences(f, stacked):
    gradient = s2s.grad(f)
    np.testing.assert_allclose(gradient(X), differences(f, X), rtol=1e-6, atol=1e-7)
    if stacked is not None:
        assert ("saved.append((" in gradient.source) == stacked, gradient.source
        assert ("np.empty" in gradient.source) != stacked, gradient.source


def test_lists_of_the_program_grow_where_they_are_read():
    def f(p):
        seen, twice = [1.0], [0.5]
        for k in range(4):
            seen.append(seen[-1] * p[k])
            last = np.sin(seen[-1])
            twice.append(last * twice[-1])
        return twice[-1] * seen[-1]

    np.testing.assert_allclose(s2s.grad(f)(X), differences(f, X), rtol=1e-6, atol=1e-7)
