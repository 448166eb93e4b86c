"""Objects of the program with a `__next__`, asked by `next` and run over by loops."""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([1.5, 0.7])


class Walk:
    def __init__(self, x, v):
        self.x, self.v, self.steps = x, v, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.x = self.x + self.v
        self.v = self.v * 0.9
        self.steps += 1
        return self.x


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


def run_over(x):
    walk, total = Walk(*x), 0.0
    for y in walk:
        total += y * y
        if y > 4:
            break
    for i, y in zip(range(3), walk):
        total += i * y
    return total * walk.steps + sum(y for y in islice(walk, 2))


def asked(x):
    walk, total, weights = Walk(x[0], x[1]), 0.0, cycle([x[1], 2.0])
    again = iter(walk)
    first = next(again)
    for _ in range(3):
        total += next(walk) * next(weights)
    for i, y in enumerate(walk):
        total += i * y
        if i == 2:
            break
    return total * first * next(again) + walk.steps


def asked_to_its_end(x):
    down, total = Countdown(3), 0.0
    while True:
        try:
            k = next(down)
        except StopIteration:
            break
        total += (k + 1) * x[0] * x[1]
    return total


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [run_over, asked, asked_to_its_end], ids=lambda f: f.__name__)
def test_own_iterators(f):
    judge(f, X)


@pytest.mark.compile
def test_own_iterators_compiled():
    judge(run_over, X, compiled=True, second=False)


def loop_that_it_ends(x):
    return sum([x[0] * k for k in Countdown(3)])


def zip_that_takes_one_more(x):
    walk = Walk(x[0], x[1])
    return sum([y * i for y, i in zip(walk, range(3))]) + next(walk)


@pytest.mark.parametrize("f, message", [
    (loop_that_it_ends, "a loop over a Countdown, whose __next__ may end it"),
    (zip_that_takes_one_more, "zip, which takes one more item of an iterator than it uses"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_refused(f, message):
    with pytest.raises(S2SError) as caught:
        s2s.grad(f)(X)
    assert message in str(caught.value) and "^" in str(caught.value)
