"""Loops over data outside the program, and over lists of known length: each is a loop in generated
code where its items are alike.  The oracles are Python itself and differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from differences import differences

import s2s

TIMES = [0.5, 1.0, 1.5, 2.0, 2.5]
PLACES = [2, 0, 3, 1, 1, 0]
MIXED = [1, 2.5, 3, 0.5, 2]
EMPTY: list = []
ONE = [0.7]
PAIRS = [(1.0, 2), (0.5, 0), (2.0, 1), (1.5, 3), (0.2, 2)]
GROUPS = [[1.0, 2.0], [0.5], [0.1, 0.2, 0.3], [2.0, 1.0, 0.5, 0.25], [3.0]]
ROWS = [np.array([0.1 * k, 0.2, -0.3 * k]) for k in range(5)]
RAGGED = [np.arange(1.0, k + 1) for k in range(1, 6)]
NAMES = ["sin", "cos", "sin", "exp", "cos"]
BY_NUMBER = {3: 0.5, 1: 2.0, 7: 1.5, 4: 0.1, 9: 1.0}
X = np.array([0.3, -0.4, 0.9, 1.2])


class Step(NamedTuple):
    width: float
    place: int


@dataclass
class Subject:
    time: float
    event: bool
    covariates: np.ndarray

    def risk(self, x):
        return np.exp(self.covariates @ x[:3])


@dataclass
class Group:
    weight: float
    members: list


STEPS = [Step(0.1 * k, k % 4) for k in range(6)]
SUBJECTS = [Subject(0.5 * k, k % 3 != 0, np.array([0.1 * k, -0.2, 0.3])) for k in range(1, 7)]
BY_EVENT = [Group(0.5, SUBJECTS[:1]), Group(1.0, SUBJECTS[1:4]), Group(2.0, SUBJECTS[2:]),
            Group(0.1, SUBJECTS[3:4])]


def floats(x):
    s = 0.0
    for t in TIMES:
        s += np.sin(t * x[0]) * x[1]
    return s


def integers_as_indices(x):
    h = 0.1
    for k in PLACES:
        h = np.tanh(h + x[k])
    return h


def integers_as_exponents(x):
    s = 0.0
    for k in PLACES:
        s += x[2] ** k / (k + 1)
    return s


def integer_division(x):
    s = 0.0
    for k in PLACES:
        s += x[k // 2] * (k % 2) + k / 4
    return s


def mixed(x):
    s = 0.0
    for t in MIXED:
        s += np.cos(t * x[0])
    return s


def empty(x):
    s = x[0] * 1.0
    for t in EMPTY:
        s += t * x[1]
    return s


def one(x):
    s = x[0] * 1.0
    for t in ONE:
        s += t * x[1]
    return s


def pairs(x):
    s = 0.0
    for t, k in PAIRS:
        s += np.sin(t * x[k])
    return s


def by_index(x):
    s = 0.0
    for i in range(1, len(PAIRS)):
        t, k = PAIRS[i]
        s += np.sin(t * x[k]) * PAIRS[i - 1][0] * TIMES[-i]
    return s


def nested_pairs(x):
    s = 0.0
    for t, k in PAIRS:
        for u, j in PAIRS:
            if j <= k:
                s += t * u * x[k] * x[j]
    return s


def ragged_lists(x):
    s = 0.0
    for k, group in enumerate(GROUPS):
        inner = 0.0
        for g in group:
            inner += np.exp(-g * x[0])
        s += inner ** 2 * x[1] / len(group) + k
    return s


def rows(x):
    h = np.zeros(3)
    for row in ROWS:
        h = np.tanh(row * x[:3] + 0.5 * h)
    return np.sum(h * h)


def ragged_arrays(x):
    s = 0.0
    for a in RAGGED:
        s += np.sum(np.sin(a * x[0])) * len(a)
    return s


def strings(x):
    s = 0.0
    for name in NAMES:
        if name == "sin":
            s += np.sin(x[0])
        elif name == "cos":
            s *= np.cos(x[1])
        else:
            s += np.exp(x[2])
    return s


def zipped(x):
    s = 0.0
    for t, k, (u, j) in zip(TIMES, PLACES, PAIRS):
        s += t * x[k] * u * x[j]
    return s


def neighbours(x):
    s = 0.0
    for a, b in zip(PLACES[:-1], PLACES[1:]):
        s += np.sin(x[a] - 2 * x[b])
    return s


def zipped_with_array(x):
    s = 0.0
    for t, v in zip(TIMES, x):
        s += np.sin(t * v)
    return s


def enumerated(x):
    s = 0.0
    for k, t in enumerate(TIMES, 1):
        s += np.sin(t * x[k % 4]) / k
    return s


def backwards(x):
    h = x[0]
    for t in reversed(TIMES):
        h = np.sin(h * t + x[1])
    return h


def in_order(x):
    h = x[0]
    for k in sorted(PLACES):
        h = np.sin(h + x[k])
    return h


def items_of_dict(x):
    s = 0.0
    for k, t in BY_NUMBER.items():
        s += np.sin(k * t * x[0])
    return s


def values_of_dict(x):
    s = 0.0
    for t in BY_NUMBER.values():
        s += np.sin(t * x[0])
    return s


def broken_off(x):
    s = 0.0
    for t in TIMES:
        if t * x[2] > 1.6:
            break
        s += t * x[0] ** 2
    else:
        s = -s
    return s


def run_to_its_end(x):
    s = 0.0
    for t in TIMES:
        if t * x[2] > 100.0:
            break
        s += t * x[0] ** 2
    else:
        s = -s * x[1]
    return s


def passed_over(x):
    s = 0.0
    for t, k in PAIRS:
        if k == 0:
            continue
        s += t * x[k]
    return s * s


def returned_from(x):
    for t in TIMES:
        if t * x[2] > 1.5:
            return np.sin(t * x[0])
    return x[1]


def last_item(x):
    for t, k in PAIRS:
        pass
    return t * x[k]


def summed(x):
    return sum(t * np.exp(x[k]) for t, k in PAIRS)


def summed_if(x):
    return sum(t * np.exp(x[k]) for t, k in PAIRS if t > 0.4)


def collected(x):
    made = [np.sin(t * x[0]) for t in TIMES]
    return made[0] * made[-1] + sum(made)


def appended(x):
    made = []
    for t in TIMES:
        made.append(np.sin(t * x[0]))
    a, *_, b = made
    return a * b + np.prod(made)


def named_tuples(x):
    s = 0.0
    for step in STEPS:
        s += step.width * x[step.place] ** 2
    return s


def subjects(x):
    s = 0.0
    for subject in SUBJECTS:
        at_risk = sum(other.risk(x) for other in SUBJECTS if other.time >= subject.time)
        if subject.event:
            s += np.log(at_risk) - subject.covariates @ x[:3]
    return s


def groups_of_subjects(x):
    s = 0.0
    for group in BY_EVENT:
        for subject in group.members:
            s += group.weight * subject.risk(x) * len(group.members)
    return s


def written_out(x):
    s = 0.0
    for t, k in ((0.5, 1), (1.0, 2), (2.0, 0), (0.1, 3)):
        s += np.sin(t * x[k])
    return s


def in_the_program(x):
    s = 0.0
    weights = [x[0], x[1] * x[2], x[3], x[0] ** 2, x[1]]
    for w in weights:
        s = np.sin(s + w) * w
    return s


def arrays_in_the_program(x):
    s = 0.0
    parts = [x * 2, np.sin(x), x * x, np.cos(x)]
    for part in parts:
        s += part @ x
    return s


def written_meanwhile(x):
    weights = [x[0], x[1], x[2], x[3], x[0]]
    s = 0.0
    for k, w in enumerate(weights):
        s += w * w
        if k + 1 < len(weights):
            weights[k + 1] = weights[k + 1] * w
    return s


def written_into(x):
    parts = [x * 1.0, x * 2.0, x * 3.0, x * 4.0]
    for part in parts:
        part[0] = part[1] * 2
    return sum(part @ x for part in parts)


class Particle:
    def __init__(self, place, speed):
        self.place, self.speed = place, speed


def objects_in_the_program(x):
    made = [Particle(x[k], x[3 - k]) for k in range(4)] + [Particle(x[0] * x[1], 1.0)]
    for _ in range(3):
        for p in made:
            p.speed = p.speed - 0.1 * np.sin(p.place)
        for p in made:
            p.place = p.place + 0.1 * p.speed
    return sum(p.place ** 2 for p in made)


def steps_over_data(x):
    h = x[:3]
    for _ in range(3):
        for row, t in zip(ROWS, TIMES):
            h = np.tanh(h * t + row)
    return h @ x[1:]


def defaults(x, times=(0.5, 1.5, 2.0, 1.0, 0.25), places=(0, 3, 1, 1, 2)):
    s = 0.0
    for t, k in zip(times, places):
        s = np.sin(s + t * x[k])
    return s


PROGRAMS = [
    floats, integers_as_indices, integers_as_exponents, integer_division, mixed, empty, one, pairs,
    by_index, nested_pairs, ragged_lists, rows, ragged_arrays, strings, zipped, neighbours,
    zipped_with_array, enumerated, backwards, in_order, items_of_dict, values_of_dict, broken_off,
    run_to_its_end, passed_over, returned_from, last_item, summed, summed_if, collected, appended,
    named_tuples, subjects, groups_of_subjects, written_out, in_the_program,
    arrays_in_the_program, written_meanwhile, written_into, objects_in_the_program,
    steps_over_data, defaults,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives_are_differences(f):
    y, grad = s2s.value_and_grad(f)(X)
    assert y == pytest.approx(f(X), rel=1e-14, abs=1e-14)
    np.testing.assert_allclose(grad, differences(f, X), rtol=1e-7, atol=1e-8)
    v = np.array([0.2, -0.5, 1.0, 0.3])
    y, y_dot = s2s.jvp(lambda x: f(x))(X, v)
    assert y == pytest.approx(f(X), rel=1e-14, abs=1e-14)
    assert y_dot == pytest.approx(grad @ v, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivatives_are_differences_of_the_first(f):
    v = np.array([0.2, -0.5, 1.0, 0.3])
    g = s2s.grad(f)
    found = s2s.hvp(lambda x: f(x))(X, v)
    np.testing.assert_allclose(found, (g(X + 1e-6 * v) - g(X - 1e-6 * v)) / 2e-6,
                               rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_lanes_are_calls(f):
    batch = np.array([X, X[::-1] * 0.5, X + 0.1])
    np.testing.assert_allclose(s2s.vmap(f)(batch), [f(x) for x in batch], rtol=1e-13)
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(batch),
                               [s2s.grad(f)(x) for x in batch], rtol=1e-11, atol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_native_code_does_the_same(f):
    y, grad = s2s.jit(s2s.value_and_grad(f))(X)
    assert y == pytest.approx(f(X), rel=1e-13, abs=1e-14)
    np.testing.assert_allclose(grad, s2s.grad(f)(X), rtol=1e-11, atol=1e-13)


def lines(f, *args) -> int:
    g = s2s.grad(f)
    g(*args)
    return len(g.source.splitlines())


@pytest.mark.parametrize("f, most", [
    (floats, 20), (integers_as_indices, 21), (pairs, 13), (nested_pairs, 22), (ragged_lists, 26),
    (rows, 37), (zipped, 16), (neighbours, 20), (subjects, 45), (named_tuples, 16), (defaults, 24),
])
def test_the_text_is_as_long_as_the_body(f, most):
    assert lines(f, X) <= most


def test_text_of_a_loop_over_captured_pairs():
    g = s2s.grad(pairs)
    g(X)
    assert "\n".join(g.source.splitlines()[-5:]) == """\
    x_bar = np.zeros_like(x)
    for i in range(4, -1, -1):
        t, k = PAIRS[i]
        x_bar[k] += np.cos(t * x[k]) * t
    return x_bar"""


# --------------------------------------------------------------------- data that changes outside


def over(data):
    def f(x):
        s = 0.0
        for t, k in data:
            s += np.sin(t * x[k])
        return s
    return f


@pytest.mark.lengthy
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_captured_lists_are_read_at_each_call(jit):
    data = [(1.0, 2), (0.5, 0), (2.0, 1), (1.5, 3)]
    f = over(data)
    g = s2s.jit(s2s.grad(f)) if jit else s2s.grad(f)

    def check():
        np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-7, atol=1e-8)

    check()
    data[2] = (3.0, 0)
    check()
    data.append((0.3, 3))
    check()
    del data[1:]
    check()
    data.clear()
    check()
    data += [(1, 2), (2, 2), (3, 1), (0, 0), (5, 3)]  # integers now
    check()
    data[1] = (0.5, 1)  # unlike the others
    check()
    data[:] = [(1.0, 2)] * 300
    check()


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_captured_objects_are_read_at_each_call(jit):
    people = [Subject(0.5 * k, k % 2 == 0, np.array([0.1 * k, -0.2, 0.3])) for k in range(1, 6)]

    def f(x):
        s = 0.0
        for person in people:
            if person.event:
                s += person.risk(x) * person.time
        return s

    g = s2s.jit(s2s.grad(f)) if jit else s2s.grad(f)

    def check():
        np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-7, atol=1e-8)

    check()
    people[0].event = True
    people[1].time = 4.0
    check()
    people[2].covariates = np.array([1.0, 0.0, 0.5])
    people[3].covariates[1] = 0.7
    check()
    people[3].time = 3  # an integer now
    check()
    people.pop()
    check()


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_arrays_in_captured_lists_may_change_their_lengths(jit):
    rows = [np.array([0.1 * k, 0.2]) for k in range(5)]

    def f(x):
        s = 0.0
        for row in rows:
            s += np.sum(np.sin(row)) * x[0] * len(row) + np.sum(row * row) * x[1]
        return s

    g = s2s.jit(s2s.grad(f)) if jit else s2s.grad(f)

    def check():
        np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-7, atol=1e-8)

    check()
    rows[:] = [np.array([0.1 * k, 0.2, 0.3]) for k in range(5)]
    check()
    rows[2] = np.array([0.5])
    check()
    rows[1] = np.array([0.5, 1.0, 2.0, 3.0])
    check()


def test_captured_lists_that_the_program_changes():
    history = [1.0, 2.0, 3.0, 4.0]

    def f(x):
        s = 0.0
        for h in history:
            s += h * x[0] ** 2
        return s

    def recorded(x):
        y = f(x)
        seen.append(y)
        return y

    seen: list = []
    assert s2s.grad(recorded)(X)[0] == pytest.approx(20 * X[0])
    assert len(seen) == 1


def test_captured_arrays_that_a_loop_writes_into():
    total = [np.zeros(3), np.ones(3), np.zeros(3), np.ones(3)]

    def f(x):
        for a in total:
            a[0] = a[0] + x[0]
        return sum(a[0] ** 2 for a in total)

    def g(x):
        kept = [a.copy() for a in total]
        y = f(x)
        for a, b in zip(total, kept):
            a[:] = b
        return y

    expected = differences(g, X)
    try:
        found = s2s.grad(f)(X)
    except s2s.S2SError:
        return
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_lists_as_arguments_keep_the_structure_of_their_derivatives():
    def f(ws, x):
        for w in ws:
            x = np.tanh(w * x)
        return np.sum(x)

    ws = [0.5, 1.5, -0.7, 2.0, 1.1]
    found = s2s.grad(f)(ws, X)
    assert type(found) is list and len(found) == 5
    for k in range(5):
        def at(w, k=k):
            return f([*ws[:k], w[0], *ws[k + 1:]], X)
        assert found[k] == pytest.approx(differences(at, np.array([ws[k]]))[0], rel=1e-7)


def test_layers_as_arguments():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(4, 4)), rng.normal(size=4)) for _ in range(5)]

    def f(layers, x):
        for W, b in layers:
            x = np.tanh(W @ x + b)
        return x @ x

    found = s2s.grad(f)(layers, X)
    assert len(found) == 5 and type(found[0]) is tuple
    for k, (W, b) in enumerate(layers):
        def at(z, k=k):
            own = [*layers[:k], (z[:16].reshape(4, 4), z[16:]), *layers[k + 1:]]
            return f(own, X)
        expected = differences(at, np.concatenate([W.ravel(), b]))
        np.testing.assert_allclose(np.concatenate([found[k][0].ravel(), found[k][1]]), expected,
                                   rtol=1e-6, atol=1e-8)


def test_python_numbers_stay_python_numbers():
    def f(x):
        s = np.float32(0.0)
        for t in TIMES:
            s = s + t * x
        return s

    y = s2s.value_and_grad(f)(np.float32(1.5))[0]
    assert y.dtype == f(np.float32(1.5)).dtype == np.float32


class Bond:
    frequency = 2

    def __init__(self, maturity, coupon, quote):
        self.flows = [(k / self.frequency, coupon + (k == 2 * maturity))
                      for k in range(1, 2 * maturity + 1)]
        self.quote = quote

    def price(self, rate):
        return sum(flow * np.exp(-t * rate) for t, flow in self.flows)

    @property
    def longest(self):
        return self.flows[-1][0]


BONDS = [Bond(1, 0.02, 0.99), Bond(2, 0.03, 1.0), Bond(3, 0.01, 0.9), Bond(2, 0.05, 1.1)]


def bonds(x):
    s = 0.0
    for k, bond in enumerate(BONDS):
        s += (bond.price(x[k]) - bond.quote) ** 2 / bond.longest
    return s


PROGRAMS.append(bonds)


@pytest.mark.lengthy
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_captured_objects_of_plain_classes_are_read_at_each_call(jit):
    own = [Bond(1, 0.02, 0.99), Bond(2, 0.03, 1.0), Bond(3, 0.01, 0.9), Bond(2, 0.05, 1.1)]

    class Other(Bond):
        frequency = 1

        def price(self, rate):
            return rate * self.quote

    def f(x):
        s = 0.0
        for bond in own:
            s += (bond.price(x[0]) - bond.quote) ** 2 / bond.longest
        return s

    g = s2s.jit(s2s.grad(f)) if jit else s2s.grad(f)

    def check():
        np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-7, atol=1e-8)

    check()
    own[2].quote = 2.0
    own[1].flows[0] = (0.3, 0.7)
    check()
    own[1].flows.append((3.0, 1.5))
    check()
    own.reverse()
    check()
    own[0] = Other(2, 0.1, 1.0)
    check()
    own[1].frequency = 3
    check()
    own[1].price = lambda rate: rate ** 2
    check()


def test_methods_of_a_captured_object_read_the_same_parameters():
    class Curve:
        def __init__(self):
            self.a, self.b = 0.5, 1.5

        def level(self, x):
            return self.a * x + self.b

        def slope(self, x):
            return self.a + self.level(x) * self.b

    curve = Curve()

    def f(x):
        return curve.level(x[0]) * curve.slope(x[1]) + curve.slope(x[0])

    g = s2s.grad(f)
    np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-7, atol=1e-8)
    curve.a = 2.0
    np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-7, atol=1e-8)
    assert len(g.lower(X).function.params) == 3
