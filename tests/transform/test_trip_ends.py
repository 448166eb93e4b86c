"""What a trip ends with is what the next begins with: the sweep back reads both from one tape."""

import numpy as np
import pytest
from judge import judge

import s2s

W = np.random.default_rng(0).normal(size=(3, 3)) / 2
XS = np.random.default_rng(1).normal(size=(4, 3))


def recurrent(W, xs):
    h = np.zeros(len(W))
    for t in range(len(xs)):
        h = np.tanh(xs[t] + W @ h)
    return np.sum(h)


def every_other_row_backwards(W, xs):
    h = np.ones(len(W))
    for t in range(len(xs) - 1, -1, -2):
        h = np.tanh(xs[t] * h) / np.sqrt(1.0 + (W @ h) ** 2)
    return np.sum(h)


def two_that_change_places(W, xs):
    a, b = np.zeros(len(W)), np.ones(len(W))
    for t in range(len(xs)):
        a, b = b, np.tanh(W @ a * xs[t] + b)
    return np.sum(a * b)


def loops_in_a_loop(W, xs):
    h = np.zeros(len(W))
    for t in range(len(xs)):
        for k in range(3):
            h = np.tanh(xs[t] * k + W @ h)
        h = h * np.exp(-h)
    return np.sum(h)


def left_early(W, xs):
    h = np.zeros(len(W))
    for t in range(len(xs)):
        h = np.tanh(xs[t] + W @ h)
        if np.sum(h) > 0.8:
            break
    return np.sum(h * h)


def another_shape_at_first(W, xs):
    h = xs[0] * 0.1
    for t in range(len(xs)):
        h = np.tanh(W @ h)
    return np.sum(h)


def in_a_branch(W, xs):
    h = np.zeros(len(W))
    if W[0, 0] > -10.0:
        for t in range(len(xs)):
            h = np.tanh(xs[t] + W @ h)
    return np.sum(h)


def scaled(W, xs):
    h = xs[-1]
    total = 0.0
    for t in range(1, len(xs)):
        raw = (h @ W) * xs[t]
        scale = 2.0 + np.sum(raw * raw)
        h = raw / scale
        total += np.log(scale)
    return total


def of_numbers(W, xs):
    x, y = 0.3, 0.2
    for t in range(len(xs) - 1, -1, -2):
        x, y = np.exp(-x * W[0, 1] + y), np.sqrt(1.0 + x * y * xs[t, 0] ** 2)
    return x * y


PROGRAMS = [
    scaled,
    of_numbers,
    recurrent,
    every_other_row_backwards,
    two_that_change_places,
    loops_in_a_loop,
    left_early,
    another_shape_at_first,
    in_a_branch,
]


@pytest.mark.lengthy
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives(f):
    judge(f, W, XS)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_no_trips(f):
    if f not in (scaled, another_shape_at_first):
        judge(f, W, XS[:0])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_lanes_and_linearize(f):
    lanes = np.stack([W, 0.5 * W])
    found = s2s.vmap(s2s.grad(f), in_axes=(0, None))(lanes, XS)
    np.testing.assert_allclose(found, [s2s.grad(f)(w, XS) for w in lanes], rtol=1e-12)
    _, tangent = s2s.linearize(lambda w: f(w, XS), W)
    np.testing.assert_allclose(tangent(np.ones_like(W)), np.sum(s2s.grad(f)(W, XS)), rtol=1e-12)


@pytest.mark.lengthy
def test_what_a_loop_inside_makes_shorter():
    def f(x, w, n):
        for i in range(n):
            for j in range(n):
                x = np.tanh(w @ x)
        return np.sum(x * x)

    judge(f, XS[0], W, 2)
    judge(f, XS[0], W[:2], 1)
    judge(f, XS[0, :2], W[:, :2], 1)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f",
    [recurrent, scaled, of_numbers, two_that_change_places, loops_in_a_loop],
    ids=lambda f: f.__name__,
)
def test_compiled(f):
    judge(f, W, XS, compiled=True)


def test_a_state_is_saved_once():
    lowered = s2s.grad(recurrent).lower(W, XS)
    assert lowered.memory == (len(XS) + 1) * len(W) * 8
    assert "h_tape[t + 1] = h" in lowered.source and "h_tape[0] = h" in lowered.source


def test_what_is_on_the_tape_is_not_computed_again():
    source = s2s.grad(scaled).lower(W, XS).source
    assert "h_tape[t] = h" in source and source.count("raw / scale") == 1
    lines = [
        line for line in s2s.grad(of_numbers).lower(W, XS).source.splitlines() if "#" not in line
    ]
    assert sum("np.exp" in line for line in lines) == sum("np.sqrt" in line for line in lines) == 1


def test_places_on_a_tape_are_not_checked():
    def f(x, xs):
        for t in range(1, len(xs)):
            x = np.exp(-x * x * xs[t])
        return x

    lowered = s2s.grad(f).lower(0.5, XS[:, 0])
    assert "x_tape[t] = x" in lowered.source
    assert "place_in" not in lowered.loops
