"""Numbers that a loop makes arrays of, compiled: they begin as arrays there
(front/domain/rank_promotion.py).
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s

X = np.arange(12.0).reshape(4, 3) / 5 + 0.1
DIRECTION = np.cos(np.arange(12.0)).reshape(4, 3)


def outer_products(x):
    total = 0
    for i in range(len(x)):
        total = total + np.outer(x[i], x[i]) * i
    return np.trace(total) + np.sum(total**2)


def added_in_place(x):
    total = 1.5
    for row in x:
        total += row**2
    return np.sum(total**2)


def of_a_generator(x):
    return np.sum(sum(np.outer(row, row) for row in x) ** 2)


def scatter_within_classes(x):
    labels = np.array([0, 0, 1, 1])
    means = np.stack([x[labels == c].mean(axis=0) for c in range(2)])
    within = sum((x[labels == c] - m).T @ (x[labels == c] - m) for c, m in enumerate(means))
    return np.linalg.slogdet(within + np.eye(3))[1]


def from_a_number_that_varies(x):
    t = x[0, 0]
    for i in range(len(x)):
        t = t * 0.5 + x[i]
    return np.sum(t * t)


def loops_in_loops(x):
    total = 0
    for i in range(len(x)):
        inner = 0
        for j in range(i + 1):
            inner = inner + x[j] * j
        total = total + inner * x[i]
    return np.sum(total)


PROGRAMS = [
    outer_products,
    added_in_place,
    of_a_generator,
    scatter_within_classes,
    from_a_number_that_varies,
    loops_in_loops,
]


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled(f):
    step = 1e-6
    slope = (f(X + step * DIRECTION) - f(X - step * DIRECTION)) / (2 * step)
    np.testing.assert_allclose(s2s.jit(f)(X), f(X), rtol=1e-12)
    found = s2s.jit(s2s.grad(f))(X)
    np.testing.assert_allclose(np.sum(found * DIRECTION), slope, rtol=1e-6)
    np.testing.assert_allclose(found, s2s.grad(f)(X), rtol=1e-11)


@pytest.mark.compile
def test_a_loop_without_a_trip_raises():
    f = s2s.jit(outer_products)
    f(X)
    with pytest.raises(ValueError, match="makes no trip, and total stays a number"):
        f(X[:0])


@pytest.mark.compile
def test_code_is_generated_once():
    gradient = s2s.jit(s2s.grad(outer_products))
    for _ in range(3):
        gradient(X)
    assert [len(found) for found in gradient.specialised.values()] == [1]


def test_in_python_it_is_a_number():
    assert s2s.value_and_grad(added_in_place)(X[:0])[0] == added_in_place(X[:0]) == 2.25
    assert "total = 1.5" in s2s.grad(added_in_place).source
