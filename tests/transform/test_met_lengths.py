"""Two arrays that meet have one length, and so have the same slices of them: nothing is asked,
saved or summed for that.
"""

import numpy as np
import pytest
from judge import judge

import s2s

U, V = np.random.default_rng(0).normal(size=(2, 7))


def wave(u0, v0, c, dt):
    u, v = u0.copy(), v0.copy()
    for s in range(4):
        bend = np.zeros_like(u)
        bend[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
        v = v + dt * c**2 * bend
        u = u + dt * v
        u[0] = 0.0
        u[-1] = 0.0
    return 0.5 * np.sum(v**2)


def predator_and_prey(u0, v0, c, dt):
    u, v = u0.copy(), v0.copy()
    for s in range(3):
        meet = u * v * v
        spread = np.zeros_like(u)
        spread[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
        follow = np.zeros_like(v)
        follow[1:-1] = v[2:] - 2 * v[1:-1] + v[:-2]
        u, v = u + dt * (c * spread - meet), v + dt * (follow + meet)
    return np.sum(u * v)


def never_together(x, y, apart):
    if apart:
        return np.sum(x[1:-1] * y[1:-1]) + np.sum(x[1:-1])
    return np.sum(x * y)


def written_from_a_view(x, y):
    a = np.zeros(len(x))
    view = y[1:-1]
    a[1:-1] = view
    a[1:-1] += view * x[1:-1]
    a[:-2] += view
    b = a[2:]
    a[1:-1] = b
    a[1:-1] += b
    return np.sum(a * a * x)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [wave, predator_and_prey], ids=lambda f: f.__name__)
def test_slices_of_what_met(f):
    judge(f, U, V, 0.7, 0.1)
    assert "sum_to_shape" not in s2s.grad(f, argnums=(0, 1, 2)).lower(U, V, 0.7, 0.1).source


def test_only_the_bend_is_saved():
    lowered = s2s.grad(wave, argnums=(0, 1, 2)).lower(U, V, 0.7, 0.1)
    assert lowered.memory == 4 * 7 * 8


@pytest.mark.compile
@pytest.mark.parametrize("f", [wave, predator_and_prey], ids=lambda f: f.__name__)
def test_slices_of_what_met_compiled(f):
    judge(f, U, V, 0.7, 0.1, compiled=True)
    loops = s2s.jit(s2s.grad(f, argnums=(0, 1))).lower(U, V, 0.7, 0.1).loops
    assert "* t_" not in loops.split("backwards")[-1] and "spread_length" not in loops


@pytest.mark.compile
def test_slices_of_what_never_met_may_still_be_spread():
    x, y = U[:3], V[:6]
    gradient = s2s.grad(never_together, argnums=(0, 1))
    np.testing.assert_allclose(
        s2s.jit(never_together)(x, y, True), never_together(x, y, True), rtol=1e-14
    )
    for found, expected in zip(s2s.jit(gradient)(x, y, True), gradient(x, y, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    for f in (never_together, gradient):
        with pytest.raises(ValueError, match="broadcast"):
            s2s.jit(f)(x, y, False)


@pytest.mark.compile
def test_views_are_written_from_in_place():
    judge(written_from_a_view, U, V, compiled=True)
