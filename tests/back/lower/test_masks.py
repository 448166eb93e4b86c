"""Loops over a mask of the first axes of an array."""

import numpy as np
import pytest
import split

import s2s

X = np.random.default_rng(0).normal(size=(3, 4, 2))


def cubes(x):
    return np.sum(x[x[:, :, 0] > 0] ** 3)


def one_number(x):
    y = x * 2.0
    y[x[:, :, 0] > 0] = 0.5
    return np.sum(y * x)


def the_same_row(x):
    y = x * 2.0
    y[x[:, :, 0] > 0] = x[0, 1]
    return np.sum(y * x)


def changed_rows(x):
    y, m = x * 2.0, x[:, :, 1] < 0.3
    y[m] = y[m] * x[m]
    y[x[:, 0, 0] > -9.0] += x[2]
    return np.sum(y * x)


PROGRAMS = [cubes, one_number, the_same_row, changed_rows]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_rows_where_a_mask_is_true(f):
    gradient = s2s.value_and_grad(f)
    value, x_bar = gradient(X)
    steps = 1e-6 * np.eye(X.size).reshape(-1, *X.shape)
    np.testing.assert_allclose(
        x_bar.ravel(), [(f(X + d) - f(X - d)) / 2e-6 for d in steps], rtol=1e-6, atol=1e-8
    )
    for x in (X, X - 10.0) if f in (the_same_row, changed_rows) else (X, X - 10.0, X[:0], X[:, :0]):
        whole, parts = split.modules(s2s.jit(gradient), x)
        for each in (whole, parts):
            assert split.is_same(split.run(each, x), gradient(x)), each.text


@pytest.mark.compile
def test_compiled_rows_where_a_mask_is_true():
    gradient = s2s.grad(changed_rows)
    np.testing.assert_allclose(s2s.jit(gradient)(X), gradient(X), rtol=1e-13)


@pytest.mark.compile
def test_as_many_values_as_are_true_of_a_single_place():
    def f(x, mask, v):
        y = x * 1.0
        y[mask] = v
        return y

    compiled, x, true = s2s.jit(f), np.ones(1), np.array([True])
    np.testing.assert_array_equal(
        [compiled(x, true, x + 1.0), compiled(x, ~true, x + 1.0)], [[2.0], [1.0]]
    )
    for mask in (true, ~true):
        with pytest.raises(ValueError, match="cannot assign 2 input values"):
            compiled(x, mask, np.ones(2))


@pytest.mark.compile
def test_as_many_rows_as_are_true():
    def f(x, v):
        y = x * 1.0
        y[x[:, :, 0] > 0] = v
        return y

    fast, count = s2s.jit(f), int(np.sum(X[:, :, 0] > 0))
    for rows in (1, count):
        v = np.arange(2.0 * rows).reshape(rows, 2)
        np.testing.assert_array_equal(fast(X, v), f(X, v))
    with pytest.raises(ValueError):
        fast(X, np.ones((count + 1, 2)))


@pytest.mark.compile
@pytest.mark.parametrize(
    "made",
    [
        "np.eye(n, dtype=bool)",
        "np.ones(n, dtype=bool)",
        "np.zeros((2, n), dtype=bool)",
        "np.full(n, True)",
    ],
)
def test_what_a_mask_that_is_made_leaves(made):
    """Its elements are written as Python's truth values, and ~True is -2 in Python."""
    f = s2s.from_source(f"def f(n):\n    e = {made}\n"
                        f"    return ~e, np.where(~e, 1.0, 2.0), np.sum(np.invert(e)), ~e | e\n")
    for found, expected in zip(s2s.jit(f)(3), f(3)):
        np.testing.assert_array_equal(found, expected)
