"""Arguments that must be known when code is generated, such as an axis, are static without being
said to be.
"""

from __future__ import annotations

import linecache

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import UndecidedError

M = np.arange(6.0).reshape(2, 3) + 1


def running(x, axis=0):
    return np.sum(np.cumsum(x, axis=axis) ** 2)


def turned(x, axes=(0, 1)):
    return np.sum(np.transpose(x, axes)[0] ** 2)


def powers(x, n):
    return np.sum(np.vander(x[0], n + 1)) + np.sum(np.linalg.matrix_power(x @ x.T, n))


def kept(x, *, keepdims=True, ord=2):
    return np.sum(np.sum(x, axis=1, keepdims=keepdims) * x[:, :1]) + np.linalg.norm(x[0], ord)


def expected(f, *more, **named):
    return s2s.grad(lambda x: f(x, *more, **named))(M)


CALLS = [
    (running, (), {}),
    (running, (1,), {}),
    (running, (), {"axis": 0}),
    (running, (-1,), {}),
    (turned, ((1, 0),), {}),
    (turned, (), {}),
    (powers, (2,), {}),
    (powers, (3,), {}),
    (kept, (), {}),
    (kept, (), {"keepdims": True, "ord": 3}),
]


@pytest.mark.parametrize(
    "wrap",
    [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)],
    ids=["python", "compiled"],
)
def test_each_value_has_code_of_its_own(wrap):
    gradients = {f: wrap(s2s.grad(f)) for f, _, _ in CALLS}
    for f, more, named in [*CALLS, *CALLS[:4]]:
        np.testing.assert_allclose(
            gradients[f](M, *more, **named), s2s.grad(_fixed(f, more, named))(M), rtol=1e-12
        )


def _fixed(f, more, named):
    """`f` of these literals."""
    parameters = [repr(a) for a in more] + [f"{k}={v!r}" for k, v in named.items()]
    space = {"f": f}
    text = f"def g(x):\n    return f({', '.join(['x', *parameters])})\n"
    filename = f"<fixed {f.__name__} {parameters}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), space)
    return space["g"]


def test_how_often_a_tuple_is_repeated():
    def corner(x, n):
        y = np.ones((2,) * n) * x.reshape(n * (2,))
        return np.sum(y ** 2) + 3 * y[n * (-1,)]

    gradient = s2s.grad(corner)
    for n in (3, 1, 2, 3):
        x = np.arange(2.0 ** n) + 1
        np.testing.assert_allclose(
            gradient(x, n), 2 * x + 3 * (np.arange(2**n) == 2**n - 1), rtol=1e-14
        )

    def told(x):
        return np.sum(np.ones((2,) * len(x)) * x[0])

    with pytest.raises(UndecidedError, match="how often a tuple is repeated must be known"):
        s2s.grad(told)(np.ones(3))


def test_inside_a_program():
    def inside(x, axis):
        return s2s.grad(running)(x, axis)[0, 0] + np.sum(
            s2s.vmap(running, in_axes=(0, None))(np.stack([x, 2 * x]), 1)
        )

    found = s2s.grad(inside)(M, 0)
    step = 1e-6
    for k in np.ndindex(M.shape):
        e = np.zeros(M.shape)
        e[k] = step
        np.testing.assert_allclose(
            found[k], (inside(M + e, 0) - inside(M - e, 0)) / (2 * step), rtol=1e-6
        )


def test_data_from_outside_is_read_again():
    settings = {"ord": np.inf, "axes": (0, 1)}

    def f(x):
        return np.linalg.norm(x - 0.3, settings["ord"]) + np.sum(
            np.transpose(x, settings["axes"])[0] ** 2
        )

    gradient = s2s.grad(f)
    direction, step = np.cos(M), 1e-6
    for settings["ord"], settings["axes"] in [
        (np.inf, (0, 1)),
        (1, (1, 0)),
        (-2, (0, 1)),
        (np.inf, (1, 0)),
    ]:
        slope = (f(M + step * direction) - f(M - step * direction)) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient(M) * direction), slope, rtol=1e-6)


def test_arrays_and_what_is_differentiated_are_not_made_static():
    with pytest.raises(UndecidedError, match="an axis must be known"):
        s2s.grad(running)(M, np.array(1))
    with pytest.raises(UndecidedError, match="an axis must be known"):
        s2s.grad(running, argnums=(0, 1))(M, 1.0)


def shifted(u, axis):
    return np.roll(u, 1, axis) + np.roll(u, -1, axis) - 2 * u


def smoothed(u):
    for _ in range(3):
        u = u + 0.1 * sum(shifted(u, axis) for axis in range(u.ndim)) - 0.01 * u**3
    for axis in range(1, 3):
        for step in range(2):
            u = u * (step + np.sum(u, axis=axis, keepdims=True))
    return np.mean(u * u)


@pytest.mark.lengthy
def test_counters_of_loops_are_axes():
    judge(smoothed, np.cos(np.arange(24.0)).reshape(2, 3, 4))


def test_a_loop_is_not_followed_for_an_axis_that_it_does_not_count():
    def f(u, k):
        for _ in range(3):
            for axis in range(2):
                u = u + np.sum(u, axis=int(np.sum(u)) + axis)
        return np.sum(u)

    with pytest.raises(UndecidedError, match="an axis must be known"):
        s2s.grad(f)(M, 1)


def test_of_forward_mode():
    assert s2s.jvp(running, (M, 1), (M, 0)) == s2s.jvp(lambda x: running(x, 1), (M,), (M,))
