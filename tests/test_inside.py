"""Transformations used inside programs that are transformed themselves."""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s import pipeline


def cube(x):
    return x * x * x


def squares(x):
    return np.sum(x * x)


def grad_inside(x):
    return s2s.grad(cube)(x) + 1.0


def jvp_inside(x):
    y, y_dot = s2s.jvp(cube, (x,), (1.0,))
    return y * y_dot


def vjp_inside(x):
    y, pull = s2s.vjp(cube, x)
    return y * pull(1.0)[0]


def value_and_grad_inside(x):
    value, g = s2s.value_and_grad(squares)(x)
    return np.sum(g * g) + value


def grad_of_a_lambda(x):
    g = s2s.grad(lambda z: z * z * x)
    return g(x)


def grad_of_a_nested_function_in_a_loop(x):
    for i in range(3):
        def energy(z):
            return z * z * (x + i)

        x = x - 0.1 * s2s.grad(energy)(x)
    return x


def hvp_inside(x):
    return np.sum(s2s.hvp(squares, (x,), (x,)) * x)


def vmap_inside(x):
    return np.sum(s2s.vmap(cube)(x))


VECTOR = np.array([1.0, 2.0, 3.0])
CASES = [(grad_inside, 2.0), (jvp_inside, 2.0), (vjp_inside, 2.0), (value_and_grad_inside, VECTOR),
         (grad_of_a_lambda, 2.0), (grad_of_a_nested_function_in_a_loop, 0.3), (hvp_inside, VECTOR),
         (vmap_inside, VECTOR)]


@pytest.mark.parametrize("function, x", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_derivative_of_a_program_with_transformations(function, x):
    with pipeline.checked():
        s2s.check_grads(s2s.api.as_transformed(function), (x,), order=2)


def test_jacobians_inside_are_refused():
    def f(x):
        return np.sum(s2s.jacrev(squares)(x))

    with pytest.raises(s2s.UnsupportedError, match="jacrev inside a function(.|\n)*use hvp, jvp or vjp"):
        s2s.grad(f)(VECTOR)
