"""What lives outside a function: lists, dicts and tuples of numbers, arrays, texts and functions
that it closes over.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import s2s
from tests.judge import judge

WEIGHTS = [np.array([[0.5, -0.2], [0.1, 0.3]]), np.array([[0.2, 0.4], [-0.6, 0.7]])]
SCALES = [1.5, 2.5, -0.5]
TABLE = {"gain": 2.0, "bias": np.array([0.1, 0.2]), "name": "table"}
ROWS = [[1.0, 2.0], [3.0]]
MIXED = ("text", np.array([1.0, 2.0]), [0.5, 0.25], np.sin)
LAYERS = [
    {"w": np.array([[0.3, 0.1], [0.2, -0.4]]), "act": np.tanh},
    {"w": np.array([[1.0, 0.5]]), "act": np.sin},
]


class Model:
    orders = {"first": 2.0, "second": 3.0}
    steps = [0.5, 0.25]

    def __init__(self):
        self.parts = [np.array([1.0, 2.0]), np.array([[3.0]])]

    def energy(self, x):
        total = 0.0
        for part in self.parts:
            total = total + np.sum(part) * x
        for step in self.steps:
            total = total * (1.0 + step * x)
        return total ** self.orders["first"]


def layers(x):
    for w in WEIGHTS:
        x = np.tanh(w @ x)
    return np.sum(x)


def network(x):
    for layer in LAYERS:
        x = layer["act"](layer["w"] @ x)
    return x[0]


def indexed(x):
    total = 0.0
    for i in range(len(SCALES)):
        total += SCALES[i] * x ** i
    return total


def rows(x):
    total = 0.0
    for k in range(2):
        for j in range(len(ROWS[k])):
            total += ROWS[k][j] * x
    return total ** 2


def items(x):
    total = 0.0
    for name, member in TABLE.items():
        if name != "name":
            total += np.sum(member) * x
    return total * sum(SCALES) + max(SCALES) * x * ("gain" in TABLE)


def unpacked(x):
    a, *rest = SCALES
    p = {**TABLE, "gain": x}
    return (
        a * p["gain"]
        + rest[1] * x**2
        + np.array(SCALES) @ np.array([x, x, 1.0])
        + (SCALES + [x])[3]
    )


def matched(x):
    match SCALES, TABLE:
        case [a, b, _], {"gain": gain, **rest}:
            return a * b * gain * x ** len(rest)
    return 0.0


def mixed(x):
    return MIXED[3](x) * MIXED[1][0] + MIXED[2][1] * x * len(MIXED[0])


def copied(x):
    own = list(SCALES)
    own.append(x)
    own[0] = x
    named = dict(TABLE)
    named["gain"] = x * x
    return sum(own) * named["gain"]


STEPS = [lambda x: x * 0.9, lambda x: x * x, np.sin]


def stepped(x):
    y = STEPS[len(STEPS) - 1](x)
    for step in STEPS[:2]:
        y = step(y)
    for step in STEPS[1:len(STEPS) - 1]:
        y += step(x)
    return s2s.switch(int(x * 2), STEPS, x) * y + sum(SCALES[1:]) * x


def joined(x):
    padded = np.concatenate([[0.0], x, SCALES])
    return (
        np.sum(padded[1:] * padded[:-1])
        + np.sum(np.vstack([x, [1.0, 2.0]]) ** 2)
        + np.sum(np.hstack(([x[0]], x)) ** 3)
    )


X = np.array([0.4, 0.7])
PROGRAMS = [
    (layers, X),
    (network, X),
    (indexed, 0.7),
    (rows, 0.7),
    (items, 0.7),
    (unpacked, 0.7),
    (matched, 0.7),
    (mixed, 0.7),
    (copied, 0.7),
    (stepped, 0.7),
    (joined, X),
    (Model().energy, 0.7),
]


@pytest.mark.parametrize("f, x", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_programs(f, x):
    judge(f, x)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, x", [(network, X), (rows, 0.7), (joined, X)], ids=lambda x: getattr(x, "__name__", "")
)
def test_compiled(f, x):
    judge(f, x, compiled=True)


def closed(content):
    def f(x):
        return x * np.sum(content[-1]) if len(content) < 3 else x
    return f


CHANGES = [
    ([1.0, 2.0], lambda c: c.__setitem__(1, 5.0)),
    ([1.0, 2.0], lambda c: c.append(7.0)),
    ([1.0, 2.0], lambda c: c.__setitem__(0, "stop")),
    (("text", np.array([1.0, 2.0])), lambda c: c[1].__setitem__(0, 5.0)),
    ((np.sin, [1.0, 2.0]), lambda c: c[1].append(5.0)),
    ([np.sin, 1.0], lambda c: c.append(5.0)),
]


@pytest.mark.parametrize("content, change", CHANGES)
def test_changes_are_seen(content, change):
    f = closed(content)
    g = s2s.value_and_grad(f)
    assert g(2.0)[0] == f(2.0)
    change(content)
    assert g(2.0)[0] == f(2.0)


def test_changes_of_what_a_class_holds_are_seen():
    class Scaled:
        powers = {"of": 2.0}
        factors = [1.0, 2.0]

    def f(x):
        return (
            x ** Scaled.powers["of"]
            * sum(Scaled.factors)
            * (3.0 if 5.0 in Scaled.factors else 1.0)
            * (1.0 if Scaled.factors else 0.0)
        )

    g = s2s.value_and_grad(f)
    for change in (
        lambda: Scaled.powers.update(of=3.0),
        lambda: Scaled.factors.append(5.0),
        Scaled.factors.clear,
        lambda: setattr(Scaled, "factors", [7.0]),
    ):
        assert g(2.0)[0] == f(2.0)
        change()
    assert g(2.0)[0] == f(2.0)


def found(x):
    words = ["a", x, None]
    return (
        x * (1.0 if "a" in words else 2.0)
        + x * x * (2.0 if x in words else 3.0)
        + ("b" in words)
        + (None in words) * x
    )


def test_texts_among_numbers_are_found():
    judge(found, 0.7)


def sorts_a_row(x):
    for row in ROWS:
        row.sort()
    return x


def removes(x):
    SCALES.remove(x)
    return x


@pytest.mark.parametrize("f", [sorts_a_row, removes])
def test_lists_outside_are_not_put_in_order(f):
    with pytest.raises(
        s2s.UnsupportedError,
        match=r"this writes into \w+, which lives outside the function\n"
        r"Instead: pass the list as an argument and return it, or take a copy first",
    ):
        s2s.grad(f)(2.0)


def test_vectors_of_trees_made_outside():
    """The way to an optimiser: the vector outside, and a tree of it inside what is
    differentiated.
    """
    tree = {"w": np.arange(4.0).reshape(2, 2), "b": (1.5, [np.ones(3), None])}
    start, unravel = s2s.ravel_pytree(tree)

    def cost(v):
        p = unravel(v)
        return np.sum(p["w"] ** 3) + p["b"][0] * np.sum(p["b"][1][0] ** 2)

    judge(cost, start)


def test_a_structure_is_what_flatten_returns():
    def f(x):
        return s2s.tree.unflatten("abc", [x])

    with pytest.raises(s2s.UnsupportedError, match="tree.unflatten of a str\n"
                                                   "Instead: give it what tree.flatten returns"):
        s2s.grad(f)(2.0)


def test_a_deque_outside_is_read_at_each_call():
    recent = deque([1.0, 2.0], maxlen=3)

    def f(x):
        return sum(recent) * x + recent[-1] * len(recent)

    slope = s2s.value_and_grad(f)
    for k in range(4):
        assert slope(2.0) == (f(2.0), sum(recent))
        recent.append(5.0 + k)
    assert slope(2.0) == (f(2.0), sum(recent))


def test_a_set_outside_is_read_at_each_call():
    allowed, seen = {"plain"}, {1}

    def f(x, mode="plain"):
        return (len(seen) if mode in allowed else 0.5) * x + sum(i for i in sorted(seen)) * x

    slope = s2s.grad(f)
    for k in range(3):
        assert slope(2.0) == len(seen) + sum(seen)
        seen.add(5 + k)
    allowed.clear()
    assert slope(2.0) == 0.5 + sum(seen)
