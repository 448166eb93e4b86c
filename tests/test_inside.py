"""Transformations used inside programs that are transformed themselves."""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s import passes


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
CASES = [
    (grad_inside, 2.0),
    (jvp_inside, 2.0),
    (vjp_inside, 2.0),
    (value_and_grad_inside, VECTOR),
    (grad_of_a_lambda, 2.0),
    (grad_of_a_nested_function_in_a_loop, 0.3),
    (hvp_inside, VECTOR),
    (vmap_inside, VECTOR),
    (jacobians_inside, VECTOR),
    (hessian_inside, VECTOR),
    (newton, VECTOR / 10),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("function, x", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_derivative_of_a_program_with_transformations(function, x):
    with passes.checked():
        s2s.check_grads(s2s.api.as_transformed(function), (x,), order=2)


# ---------------------------------------------------------------- pullbacks and pushforwards inside


def settled(x):
    while np.sum(x * x) > 0.3:
        x = np.tanh(x) * 0.9
    return np.exp(x)


def writes_after(x):
    """What the second halves read is what there was, whatever is written into it before they are
    called.
    """
    x = x * 1.0
    y, pull = s2s.vjp(lambda z: np.exp(z) * z, x)
    value, push = s2s.linearize(settled, x)
    x[:] = 0.5
    y[0], value[1] = 3.0, 4.0
    return np.sum(pull(y)[0] * push(value) * x)


def several_calls(x):
    y, pull = s2s.vjp(settled, x)
    return np.sum(pull(y)[0] * pull(x)[0] + pull(np.sin(y))[0])


def pushed_in_a_loop(x):
    y, push = s2s.linearize(settled, x)
    v = y
    for _ in range(3):
        v = push(v) + x
    return np.sum(v)


def handed_on(x):
    def solve(matvec, b):
        d = b * 0.1
        for _ in range(3):
            d = d + 0.1 * (b - matvec(d))
        return d

    y, push = s2s.linearize(s2s.grad(squares), x)
    return np.sum(solve(push, y) + solve(lambda v: s2s.hvp(squares, (x,), (v,)), y))


def batched_inside(x):
    _, pull = s2s.vjp(settled, x)
    _, push = s2s.linearize(settled, x)
    return np.sum(s2s.vmap(pull)(np.eye(3))[0] * s2s.vmap(push)(np.eye(3)))


def beside(x):
    y, pull, more = s2s.vjp(lambda z: (np.sum(z * z * x), {"n": z * x}), x, has_aux=True)
    slope, rest = s2s.grad(lambda z: (np.sum(z**3), z * z), has_aux=True)(x)
    _, y_dot, same = s2s.jvp(lambda z: (np.sum(z**2), z * 2.0), (x,), (x,), has_aux=True)
    return np.sum(more["n"] * pull(y)[0] + slope * rest + y_dot * same)


def in_one_branch(x):
    y, pull = s2s.vjp(settled, x)
    slope = x
    if y[0] < 1.5:
        slope = pull(y)[0]
        if y[1] > 3.0:
            slope = slope + pull(x)[0]
    return np.sum(slope * y)


HALVES = [
    writes_after,
    several_calls,
    in_one_branch,
    pushed_in_a_loop,
    handed_on,
    batched_inside,
    beside,
]


@pytest.mark.lengthy
@pytest.mark.parametrize("function", HALVES, ids=lambda f: f.__name__)
def test_second_halves_inside_a_program(function):
    x = np.array([0.4, -0.3, 0.6])
    with passes.checked():
        t = s2s.api.as_transformed(function)
        np.testing.assert_allclose(t(x), function(x), rtol=1e-12)
        s2s.check_grads(t, (x,), order=2, rtol=1e-3)


def test_a_second_half_is_printed_once():
    text = s2s.api.as_transformed(several_calls).lower(VECTOR).source
    assert text.count("def settled_fwd(") == text.count("def settled_bwd") == 1
    assert text.count("settled_bwd(") == 4


@pytest.mark.lengthy
def test_gradients_of_containers_in_functions_that_are_called():
    def task(p, x):
        s = p[0]
        for _ in range(3):
            s = np.sin(s) * x + p[1]
        return np.sum(s)

    def inner(p, x):
        g = s2s.grad(task)(p, x)
        return p[0] - 0.1 * g[0], p[1] - 0.1 * g[1]

    def outer(p, x):
        return task(inner(inner(p, x), x), x)

    p = np.array([0.3, 0.4]), np.array([0.5, 0.6])
    np.testing.assert_allclose(
        s2s.vmap(outer, in_axes=(None, 0))(p, np.array([0.7, 0.3])),
        [outer(p, 0.7), outer(p, 0.3)],
        rtol=1e-14,
    )


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "read",
    [
        lambda y: np.sum(y, axis=1),
        lambda y: np.sum(y, axis=-1),
        lambda y: y.T,
        lambda y: y[0, 1:],
        len,
    ],
)
def test_a_number_for_each_element_meets_an_array_of_more_axes(read):
    """The derivative of a sum is a number spread over a shape, which need not be that of what it is
    multiplied by.
    """
    b, table = np.ones(3), np.arange(1.0, 13.0).reshape(4, 3)

    def f(c, b, table):
        spread = s2s.grad(lambda b: c * np.sum(b))(b)
        return np.sum(read(spread * table) ** 2) * c

    def plain(c, b, table):
        return np.sum(read(np.full(b.shape, c) * table) ** 2) * c

    for argnums in (0, 2):
        for t in (s2s.grad, lambda f, argnums: s2s.jacfwd(f, argnums), s2s.hessian):
            np.testing.assert_allclose(
                t(f, argnums)(2.0, b, table), t(plain, argnums)(2.0, b, table), rtol=1e-12
            )
    assert s2s.value_and_grad(f)(2.0, b, table)[0] == plain(2.0, b, table)


AXES, WHICH, AUX = (0, None), (1,), True


def options_from_outside(axes):
    def f(x):
        which = 0, None
        y = s2s.vmap(lambda a, b: a * b, axes)(x, 2.0) + s2s.vmap(
            lambda a, b: a * b, in_axes=which
        )(x, 3.0)
        (slope,) = s2s.grad(lambda a, b: np.sum(a * b * b), argnums=WHICH)(2.0, y)
        _, y_dot, _ = s2s.jvp(
            lambda y: (np.sum(y * y), 1.0), primals=(y,), tangents=(slope,), has_aux=AUX
        )
        return y_dot + np.sum(
            s2s.hvp(lambda a, y: np.sum(a * y**3), (2.0, y), (0.0, slope), WHICH[0])
        )

    return f


@pytest.mark.lengthy
def test_options_may_be_what_the_program_reads_from_outside(monkeypatch):
    x = np.array([0.5, -1.0, 2.0])  # y = 5 x, slope = 20 x, y_dot = 200 x² and 12 y slope = 1200 x²
    f = options_from_outside([0, None])
    np.testing.assert_allclose(s2s.grad(f)(x), 2 * 1400 * x)
    gradient = s2s.grad(options_from_outside(AXES))
    np.testing.assert_allclose(gradient(x), 2 * 1400 * x)
    monkeypatch.setitem(globals(), "AUX", False)
    with pytest.raises(ValueError, match="values to unpack"):
        options_from_outside(AXES)(x)
    with pytest.raises(s2s.S2SError):
        gradient(x)


def with_defaults(x, y, p=2.0, n=3, mode="double", w=None, v=(1.0, 2.0), *, q=0.5):
    if mode == "double":
        x = x * v[1]
    if w is not None:
        x = x * w
    for _ in range(n):
        x = np.sin(x * p) + y * q
    return np.sum(x * x)


def forwards_along(x, y):
    return s2s.jvp(with_defaults, (x, y), (y, x))


def curved_along(x, y):
    return s2s.hvp(with_defaults, (x, y), (y, x))


def pulled_back(x, y):
    value, pull = s2s.vjp(with_defaults, x, y)
    return value, pull(1.0)


def pushed(x, y):
    value, push = s2s.linearize(with_defaults, x, y)
    return value, push(y, x)


def of_a_local_one(x, y):
    total = np.sum(y)

    def local(z, c=total, n=2):
        for _ in range(n):
            z = z * c + y
        return np.sum(z * z)

    return s2s.jvp(local, (x,), (y,)), s2s.hvp(local, (x,), (y,)), s2s.vjp(local, x)[1](1.0)


@pytest.mark.parametrize("f", [forwards_along, curved_along, pulled_back, pushed, of_a_local_one])
def test_parameters_may_be_left_to_their_defaults(f):
    """They ended in a ValueError or an IndexError of the compiler's own."""
    x, y = np.array([0.5, -1.0, 2.0]), np.array([0.3, 0.1, -0.4])
    expected = s2s.tree.leaves(f(x, y))
    weights = [
        np.cos(1.0 + k + np.arange(np.size(e))).reshape(np.shape(e)) for k, e in enumerate(expected)
    ]

    def inside(x, y):
        return sum([np.sum(a * b) for a, b in zip(s2s.tree.leaves(f(x, y)), weights)])

    inside_value, slope = s2s.value_and_grad(inside)(x, y)
    np.testing.assert_allclose(inside_value, sum(np.sum(a * b) for a, b in zip(expected, weights)))
    step = 1e-6 * np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(
        slope @ step * 2, inside(x + step, y) - inside(x - step, y), rtol=1e-5
    )
