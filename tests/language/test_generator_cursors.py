"""Generators that never end: they run in turns with their consumers."""

from __future__ import annotations

from itertools import count, islice, takewhile

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.3, 1.2, 0.7, -0.4])


def weighted(x):
    k = 0
    while True:
        yield x[k % len(x)] * (k + 1)
        k += 1


def lcg(state):
    while True:
        state = (1103515245 * state + 12345) % 2147483648
        yield state / 2147483648


def newton(a):
    z = a
    yield z
    while True:
        z = 0.5 * (z + 2.0 / z)
        yield z


def averager():
    total, n, mean = 0.0, 0, None
    while True:
        v = yield mean
        total += v
        n += 1
        mean = total / n


def beside_a_range_and_then_alone(x):
    items, total = weighted(x), 0.0
    for k, v in zip(range(len(x) + 2), items):
        total += v * v * k
    for v in items:
        total += v
        if total > 4.0:
            break
    return total * next(items) + list(islice(items, 3))[1]


def asked_on_some_paths(x):
    random, total = lcg(42), 0.0
    for v in x:
        if v > 0.5:
            total += v**2 * next(random)
    return total * next(random)


def left_when_it_converges(x):
    before = 9.0
    for z in newton(x[1]):
        if abs(z - before) < 1e-6:
            return z * x[0] + before
        before = z


def sent_values(x):
    mean = averager()
    next(mean)
    total = 0.0
    for v in x:
        total += mean.send(v) ** 2
    return total


def squares(source):
    for v in source:
        yield v * v


def one_over_another(x):
    inner = squares(squares(weighted(x)))
    total = sum(next(inner) for _ in range(len(x)))
    return total + sum(takewhile(lambda v: v < 3.0, (abs(v) for v in weighted(x))))


def several_yields_and_branches(x):
    def items():
        k, a, v = 0, 1.0, 0.0
        yield a
        while True:
            v = x[k % 4]
            k += 1
            if v > 0.5:
                yield v * a
                a = a * v + 1.0
            elif k > 2:
                yield -v
                k += 1
            a = a * 0.9

    return sum(v * (k + 1) for k, v in zip(range(9), items()))


class Stream:
    def __init__(self, items):
        self.items = items

    def step(self):
        return next(self.items)


def held_by_an_object_and_seeing_writes(x):
    w = x.copy()

    def items():
        buffer = np.zeros(4)
        for k in count():
            buffer[k % 4] += w[0] * x[k % 4]
            yield buffer

    stream, total = Stream(items()), 0.0
    for _ in range(6):
        total += np.sum(stream.step() ** 2)
        w[0] = w[0] * 1.1
    return total


PROGRAMS = [
    beside_a_range_and_then_alone,
    asked_on_some_paths,
    left_when_it_converges,
    sent_values,
    one_over_another,
    several_yields_and_branches,
    held_by_an_object_and_seeing_writes,
]


@pytest.mark.lengthy
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_run_in_turns_with_their_consumers(f):
    judge(f, X, second=f is beside_a_range_and_then_alone)


def all_of_them(x):
    return sent_values(x) + several_yields_and_branches(x) * asked_on_some_paths(x)


@pytest.mark.compile
def test_native_code_runs_them_in_turns():
    judge(all_of_them, X, compiled=True, second=False)


def told_before_and_after(x):
    def items():
        k = 0
        while True:
            k += 1
            print("item", k)
            yield x * k

    for k, v in zip(range(2), items()):
        print("use", k)
        x = x + v
    return x


def test_effects_come_in_their_order(capsys):
    s2s.grad(told_before_and_after)(0.5)
    assert capsys.readouterr().out.split("\n")[:-1] == ["item 1", "use 0", "item 2", "use 1"]


def a_list_of_all(x):
    return sum(list(squares(weighted(x))))


def filtered(x):
    return next(filter(lambda v: v > 0.5, weighted(x)))


def one_more_than_used(x):
    items = weighted(x)
    total = sum(v for v, k in zip(items, range(3)))
    return total + next(items)


def read_before_it_is_asked(x):
    w = x.copy()

    def items(a):
        s = a[0]
        while True:
            yield s
            s += a[1]

    made = items(w)
    w[0] = 5.0
    return next(made)


def kept_while_it_is_written(x):
    def items():
        k = 0
        while True:
            if k == 0:
                buffer = np.zeros(4)
            buffer[k % 4] += x[k % 4]
            yield buffer
            k += 1

    made = items()
    first = next(made).copy()
    return first[0] + np.sum(list(takewhile(lambda b: np.sum(b) < 2.0, made))[0])


def from_an_inner_loop(x):
    def items():
        while True:
            for v in x:
                yield v

    return sum(islice(items(), 6))


def first_set_in_its_loop(x):
    def items():
        total = 0.0
        while True:
            v = x[0] + total
            yield v
            total += v

    return sum(v for _, v in zip(range(len(x)), items()))


def sent_too_early(x):
    return averager().send(x[0])


def in_pairs(x):
    return sum(islice(weighted(x), 1, 5))


@pytest.mark.parametrize(
    "f, message",
    [
        (a_list_of_all, "a list of what has no end"),
        (filtered, "a list of what has no end"),
        (one_more_than_used, "asked again after zip, which took one more item of it"),
        (read_before_it_is_asked, "reads what changes before it is first asked"),
        (kept_while_it_is_written, "may or may not share memory"),
        (from_an_inner_loop, "goes on for ever, and yields in an inner loop"),
        (first_set_in_its_loop, "a generator that reads v after a `yield`, and had not set it"),
        (sent_too_early, "can't send non-None value to a just-started generator"),
        (in_pairs, "leaving out, or taking twice, what a generator yields"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_refused_with_a_line_and_a_remedy(f, message):
    with pytest.raises(S2SError) as caught:
        s2s.grad(f)(X)
    text = str(caught.value)
    assert message in text and "^" in text and "Instead: " in text and __file__ in text
