"""Functions of the user that are called as something that generated code calls."""

import numpy as np
import pytest

import s2s

X, Y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 4.0])


def sum_to_shape(x, y):
    return np.sum(x * y + np.sin(x))


def same_length(x, y):
    return np.sum(np.sin(x) * y + x)


def stacked(x, y):
    return np.sum(np.stack([x[:2], y[1:]]) ** 2)




def len(x):  # noqa: A001
    return np.sum(x * x)


def sizes(x, y):
    return len(x) * np.sum(y) + s2s.checkpoint(len)(y) * x[0]


FUNCTIONS = [sum_to_shape, same_length, stacked, sizes]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_names_of_helpers(f):
    for g in (f, s2s.checkpoint(f), lambda x, y: 2.0 * s2s.checkpoint(f)(x, y) - f(x, y)):
        value, (x_bar, _) = s2s.value_and_grad(g, argnums=(0, 1))(X, Y)
        assert value == pytest.approx(f(X, Y), rel=1e-14)
        for k, e in enumerate(np.eye(3)):
            assert x_bar[k] == pytest.approx(
                (f(X + 1e-6 * e, Y) - f(X - 1e-6 * e, Y)) / 2e-6, rel=1e-7
            )
    untyped = {}
    exec(s2s.grad(f).source, untyped)
    np.testing.assert_allclose(untyped[f"{f.__name__}_grad"](X, Y), s2s.grad(f)(X, Y), rtol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("f", FUNCTIONS)
def test_names_of_helpers_compiled(f):
    assert s2s.jit(f)(X, Y) == pytest.approx(f(X, Y), rel=1e-14)
    np.testing.assert_allclose(
        s2s.jit(s2s.vmap(f))(np.stack([X, Y]), np.stack([Y, X])), [f(X, Y), f(Y, X)], rtol=1e-14
    )
    np.testing.assert_allclose(
        s2s.jit(s2s.grad(s2s.checkpoint(f)))(X, Y), s2s.grad(f)(X, Y), rtol=1e-13
    )
