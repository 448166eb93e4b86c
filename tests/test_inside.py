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


def mixed(x):
    return np.sin(x) * np.sum(x * x)


def jacobians_inside(x):
    return np.sum(s2s.jacfwd(mixed)(x) @ s2s.jacrev(mixed)(x) + s2s.jacobian(mixed)(x) ** 2)


def hessian_inside(x):
    return np.sum(s2s.hessian(squares)(x) * s2s.hessian(lambda z: np.sum(z**3) * x[0])(x))


def newton(x):
    for _ in range(3):
        x = x - np.linalg.solve(s2s.jacfwd(mixed)(x) + np.eye(len(x)), mixed(x))
    return np.sum(x)


VECTOR = np.array([1.0, 2.0, 3.0])
CASES = [(grad_inside, 2.0), (jvp_inside, 2.0), (vjp_inside, 2.0), (value_and_grad_inside, VECTOR),
         (grad_of_a_lambda, 2.0), (grad_of_a_nested_function_in_a_loop, 0.3), (hvp_inside, VECTOR),
         (vmap_inside, VECTOR), (jacobians_inside, VECTOR), (hessian_inside, VECTOR), (newton, VECTOR / 10)]


@pytest.mark.parametrize("function, x", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_derivative_of_a_program_with_transformations(function, x):
    with pipeline.checked():
        s2s.check_grads(s2s.api.as_transformed(function), (x,), order=2)
