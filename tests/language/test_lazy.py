"""Iterators read when they are run over: what changes in between is seen as Python sees it, or
refused.
"""

# ruff: noqa: B007, C400, C416

from __future__ import annotations

import itertools

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.7, -1.3, 2.1, 0.4, 1.9, -0.6])
RIGHT, REFUSED = [], []


def right(f):
    RIGHT.append(f)
    return f


def refused(f):
    REFUSED.append(f)
    return f


@right
def views_of_a_dict_show_it_now(x):
    d = {"a": x[0], "b": x[1]}
    keys, values, first = d.keys(), d.values(), iter(d.items())
    d["a"] = x[1] * x[2]
    found = next(first)[1]
    d["c"] = x[3]
    return sum(values) * len(keys) + found + len(values)


@right
def a_tuple_is_a_copy(x):
    xs = []
    for v in x:
        xs.append(v)
    t = tuple(xs)
    xs[0] = 9.0
    ys = list(t)
    ys[1] = 8.0
    total = 0.0
    for v in tuple(xs):
        xs[1] = v * 3
        total = total * 2 + v
    return sum(t) + 10 * sum(xs) + 100 * sum(ys) + total


class Scale:
    def __init__(self, w):
        self.w, self.slope = w, np.zeros_like(w)

    def forward(self, x):
        self.x = x
        return x * self.w

    def backward(self, y_bar):
        self.slope += y_bar * self.x
        return y_bar * self.w


@right
def layers_are_written_into_while_they_are_run_over_backwards(x):
    layers, y = (Scale(x[:2]), Scale(x[2:4])), x[4:]
    for layer in layers:
        y = layer.forward(y)
    for layer in reversed(layers):
        y = layer.backward(y)
    return sum(np.sum(layer.slope) for layer in layers)


@right
def what_is_read_backwards_is_read_late(x):
    xs, total = [x[0], x[1], x[2]], 0.0
    backwards = reversed(xs)
    xs[1] = 2 * x[3]
    for v in backwards:
        xs[0] = total
        total = total * 2 + v**2
    return total


@right
def members_are_read_when_their_turn_comes(x):
    xs = [x[0], x[1], x[2]]
    z, m, g = zip(xs, xs), map(lambda v: v * 2, xs), (v * v for v in xs)
    xs[0] = 9 * x[5]
    total = 0.0
    for v in (w * 2 for w in xs):
        xs[2] = x[1] * v
        total = total * 2 + v
    return total + sum(a * b for a, b in z) + sum(m) + sum(g)


class Level:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v

    __hash__ = None


@right
def unequal_is_not_equal(x):
    a, b = Level(x[0]), Level(x[0])
    return x[1] * ((a == b) + 2 * (a != b) + 4 * (a != Level(x[2])) + 8 * (not a != a))


@refused
def filtered_then_written(x):
    xs = [x[0], x[1], x[2]]
    r = filter(lambda v: v > 0, xs)
    xs[0] = -9 * x[5]
    return sum(r)


@right
def reversed_then_written(x):
    xs = [x[0], x[1], x[2]]
    r = reversed(xs)
    xs[0] = 9 * x[5]
    return sum(r)


@refused
def grown_after_map(x):
    xs = [x[0], x[1], x[2]]
    r = map(lambda v: v * 2, xs)
    xs.append(x[3])
    return sum(r)


@refused
def grown_after_a_generator_at_run_time(x):
    xs = []
    for v in x:
        xs.append(v)
    r = (v * 2 for v in xs)
    xs.append(9 * x[0])
    return sum(r)


@refused
def counted_by_a_filter(x):
    log = []

    def test(v):
        log.append(v)
        return v > 0

    r = filter(test, [x[0], x[1], x[2]])
    n = len(log)
    return sum(r) + 10 * n


@refused
def written_while_a_filter_runs(x):
    y, total = x.copy(), 0.0
    for v in (w * 2 for w in y if w > 0):
        y[2] = -5 * x[1]
        total = total * 2 + v
    return total


@refused
def bound_anew_while_a_filter_runs(x):
    total, c = 0.0, 1.0
    for v in (w * c for w in x if w > 0):
        c = c + v
        total = total * 2 + v
    return total


@refused
def written_while_sums_run(x):
    y, total = x.copy(), 0.0
    for a in itertools.accumulate(y):
        y[2] = a * 3
        total = total * 2 + a
    return total


@refused
def written_while_pairs_run(x):
    xs, total = [x[0], x[1], x[2]], 0.0
    for a, b in itertools.product(xs, [1.0, 2.0]):
        xs[2] = 5 * x[3]
        total = total * 1.1 + a * b
    return total


@refused
def counted_while_written(x):
    """enumerate and zip read what they are given no earlier than they are read themselves."""
    y, total = x.copy(), 0.0
    for k, v in enumerate(v * 2 for v in y if v < 10):
        total = total + v * v
        if k < 2:
            y[k + 1] = v * 3
    return total


@refused
def paired_while_written(x):
    y, total = x.copy(), 0.0
    for k, v in zip(range(3), filter(lambda v: v < 10, y)):
        total = total + v * v
        if k < 2:
            y[k + 1] = v * 3
    return total


def doubled(y):
    for k in range(3):
        yield y[k] * 2


@refused
def counted_before_it_is_written(x):
    y = x.copy()
    counted = enumerate(doubled(y))
    y[1] = 7 * x[0]
    return sum(k * v for k, v in counted)


@refused
def yielded_while_written(x):
    y, total = x.copy(), 0.0
    for k, v in enumerate(doubled(y)):
        total = total + v * v
        if k < 2:
            y[k + 1] = v * 3
    return total


@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_what_is_read_late_is_right(f):
    judge(f, X)


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_was_read_early_is_refused(f):
    with pytest.raises(S2SError, match="reads changes before it is run over to its end") as caught:
        s2s.grad(f)(X)
    assert "^" in str(caught.value) and "make a list of it first: list(...)" in str(caught.value)


def test_a_dict_that_grows_under_a_loop():
    def f(x):
        d, total = {"a": x, "b": 2 * x}, 0.0
        for k in d:
            d[k + "x"] = 1.0
            total += d[k]
        return total

    with pytest.raises(RuntimeError, match="dictionary changed size during iteration"):
        s2s.grad(f)(1.5)
