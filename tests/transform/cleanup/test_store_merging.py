"""Slices that an adjoint clears and adds to start as what is added; the user's own sums keep their
order.
"""

import numpy as np
import programs
import pytest
from judge import judge

import s2s

X = np.linspace(0.3, 1.9, 9)


def heat(u, k, steps):
    for _ in range(steps):
        new = u.copy()
        new[1:-1] = u[1:-1] + k * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = new
    return np.sum(np.sin(u))


def in_place(u, k, steps):
    for _ in range(steps):
        u = u.copy()
        u[2:] = u[2:] * u[1:-1] + k * u[:-2]
        u[:-1] = np.sin(u[1:]) * u[:-1]
    return np.sum(u * u)


def rows(u, k, steps):
    a = np.outer(u, u)
    for _ in range(steps):
        a[1:-1, 1:-1] = a[1:-1, 1:-1] + k * (a[2:, 1:-1] * a[1:-1, :-2] - a[:-2, 2:])
        a[:, 0] = k * a[:, 0] * a[:, -1]
    return np.sum(a * np.cos(a))


def stepped(u, k, steps):
    for _ in range(steps):
        v = u.copy()
        v[::2] = k * u[::2] + u[-1]
        v[1::2] = v[1::2] * v[:-1:2] + u[0]
        u = v
    return np.sum(u ** 3)


def one_row_of_many(u, k, steps):
    a = np.zeros((steps + 2, len(u)))
    a[0] = u
    for i in range(steps):
        a[i + 1, 1:] = a[i, :-1] * k + a[i, 1:] ** 2
        a[i, 1:] = a[i, 1:] * a[i + 1, 1:]
    return np.sum(a)


def seen_in_between(u, k, steps):
    total = 0.0
    for _ in range(steps):
        u = u.copy()
        u[1:-1] = k * u[1:-1] * u[2:]
        total += np.sum(u[1:-1]) * u[0]
        u[1:-1] += u[:-2]
    return total + u[3]


def summed_in_between(u, k, steps):
    """The adjoint of a window is one write less, and then u_bar is read by a sum, and written."""
    for _ in range(steps):
        u = u.copy()
        u[:] += k * np.sin(u[0])
        u[1:3] += np.sin(u[0])
    return np.sum(u * np.cos(u))


@pytest.mark.parametrize("f", [heat, in_place, rows, stepped, one_row_of_many, seen_in_between,
                               summed_in_between])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_slices_are_right(f, steps):
    judge(f, X, 0.21, steps, wrt=(0, 1))


@pytest.mark.compile
@pytest.mark.parametrize("f", [heat, in_place, rows])
def test_slices_are_right_compiled(f):
    judge(f, X, 0.21, 3, wrt=(0, 1), compiled=True)


def test_a_stencil_goes_back_as_one_writes_it():
    source = s2s.grad(heat, argnums=(0, 1)).lower(X, 0.1, 3).source
    assert "u_bar[1:-1] = t_2 - 2.0 * t_3\n" in source
    assert "u_bar[1:-1] = 0.0" not in source
    assert source.count(".copy()") == 1  # the program's own


@pytest.mark.lengthy
def test_what_the_program_adds_keeps_its_order():
    def added(x, big):
        y = np.zeros(4)
        y[1:3] = 0.0
        np.add.at(y, slice(0, 2), x[:2] * big)
        np.add.at(y, slice(1, 4), -x[1:4] * big)
        np.add.at(y, slice(1, 3), x[1:3])
        return y

    x = np.array([0.1, 0.7, 1.3, 0.2])
    np.testing.assert_array_equal(
        s2s.value_and_grad(lambda x: np.sum(added(x, 1e17)))(x)[0], np.sum(added(x, 1e17))
    )
    value, pullback = s2s.vjp(lambda x: added(x, 1e17), x)
    np.testing.assert_array_equal(value, added(x, 1e17))


@pytest.mark.lengthy
def test_strided_slices_of_lanes_are_one_loop():
    gradient = s2s.vmap(s2s.grad(programs.strided_slices, argnums=(0, 1)), (0, None))
    x = X[:8] + 0.1 * np.arange(3)[:, None]
    lowered = gradient.lower(x, 0.3)
    loops = [line for line in lowered.loops.splitlines() if line.startswith("    for ")]
    assert loops == ["    for i in range(n):"]
    for k, expected in enumerate(zip(*gradient(x, 0.3), strict=True)):
        for got, want in zip(
            s2s.grad(programs.strided_slices, argnums=(0, 1))(x[k], 0.3), expected, strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.compile
def test_strided_slices_of_lanes_compiled():
    gradient = s2s.vmap(s2s.grad(programs.strided_slices, argnums=(0, 1)), (0, None))
    x = X[:8] + 0.1 * np.arange(3)[:, None]
    for got, want in zip(s2s.jit(gradient)(x, 0.3), gradient(x, 0.3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_what_is_written_back_unchanged_is_left_out():
    def f(u, k):
        u = u.copy()
        t = u[0]
        u[1] = k * u[2]
        u[0] = t
        u[2] = u[2]
        return np.sum(u * u) * u[0]

    judge(f, X, 0.7)
    assert "    u[0] = " not in s2s.grad(f).lower(X, 0.7).source
