"""Tuples and lists of unlike things indexed by the counter of a loop: the layers of a network, as
most programs have them.
"""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

RNG = np.random.default_rng(0)
SIZES = (4, 6, 5, 3)
LAYERS = tuple(
    (RNG.normal(size=(m, n)) / 2, RNG.normal(size=n) / 2) for m, n in zip(SIZES, SIZES[1:])
)
X = RNG.normal(size=(5, 4))
SQUASHED = ("tanh", "sin", "none")


def network(layers, x):
    for k in range(len(layers)):
        W, b = layers[k]
        x = x @ W + b
        if k < len(layers) - 1:
            x = np.tanh(x)
    return np.sum(x * x)


def named(layers, x):
    for k in range(1, 4):
        x = x @ layers[k - 1][0] + layers[k - 1][1]
        if SQUASHED[k - 1] == "tanh":
            x = np.tanh(x)
        elif SQUASHED[k - 1] == "sin":
            x = np.sin(x)
    return np.sum(x * x)


def backwards(layers, x):
    n = len(layers)
    for k in range(n - 1, -1, -1):
        W, b = layers[k]
        x = np.sum(W * W) * x + np.prod(b)
    return np.sum(x)


def pairs(layers, x):
    total = 0.0
    for i in range(len(layers)):
        for j in range(i):
            for _ in range(2):
                total = total + np.sum(layers[i][0]) * np.prod(layers[j][1])
    return total * x[0, 0]


def counted_by_hand(layers, x):
    total = 0.0
    for t in range(2):
        k = 0
        for _ in range(3):
            total = total + np.sum(layers[k][0] ** 2) * (t + 1)
            k += 1
    return total * x[0, 0]


def of_all_ranks(layers, x):
    found = [layers[0][1], layers[0][0], x[0, 0]]
    total = 0.0
    for k in range(3):
        total = total + np.sum(found[k] ** 2) * (k + 1)
    return total


def activations_kept(layers, x):
    kept = [x]
    for k in range(len(layers)):
        kept.append(np.tanh(kept[k] @ layers[k][0] + layers[k][1]))
    return sum(np.sum(h * h) for h in kept)


PROGRAMS = [network, named, backwards, pairs, counted_by_hand, of_all_ranks, activations_kept]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_tuples_indexed_by_counters(program):
    judge(program, LAYERS, X)


@pytest.mark.compile
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled(program):
    (expected, found) = s2s.grad(program)(LAYERS, X), s2s.jit(s2s.grad(program))(LAYERS, X)
    for pair in zip(found, expected):
        for x, y in zip(*pair):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


def in_turns(weights, x):
    for t in range(200):
        x = x * weights[t % 4]
    return np.sum(x)


def quadratic(weights, x):
    total = 0.0
    for i in range(4):
        for j in range(4):
            total = total + weights[i] * weights[j] * x[0, 0] / (1 + i + j)
    return total


def of_data(weights, x):
    return weights[np.argmax(x[:, 0]) % 4] * x[1, 1]


@pytest.mark.parametrize(
    "program, loop",
    [(in_turns, "in range(200)"), (quadratic, "in range(3, -1, -1)"), (of_data, "")],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_loops_over_numbers_stay_loops(program, loop):
    weights = (1.0, 0.99, 1.02, 1.01)
    judge(program, weights, X)
    gradient = s2s.grad(program)
    gradient(weights, X)
    assert loop in gradient.source


def test_a_run_time_number_is_no_place_in_unlike_things():
    with pytest.raises(S2SError, match="a run-time index into a list or tuple of unlike things"):
        s2s.grad(lambda layers, n: np.sum(layers[n][0]))(
            ((np.ones(3), 1.0), (2.0, 1.0, np.ones(2))), 1
        )
