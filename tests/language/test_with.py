"""`with`: objects with `__enter__` and `__exit__`, generators that are context managers."""

# ruff: noqa: B018, SIM117

from __future__ import annotations

import contextlib
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([1.5, 0.7])


class Timer:
    total = 0.0

    def __enter__(self):
        self.began = time.perf_counter()
        return self

    def __exit__(self, *exception):
        self.total += time.perf_counter() - self.began


class Nested:
    """How deep it is entered, and what is noted in it."""

    def __init__(self):
        self.log, self.depth = [], 0

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, kind, error, trace):
        self.depth -= 1
        return False

    def note(self, **values):
        for k, v in values.items():
            self.log.append((k, v * self.depth))


OUTSIDE = Nested()


def entered_again(x):
    nested = Nested()
    with Timer() as timer, nested:
        nested.note(a=x[0])
        with nested as same:
            same.note(b=x[1], c=2.0)
    assert timer.total >= 0
    return sum(k * v for k, (_, v) in enumerate(nested.log, 1)) + nested.depth * x[0]


def left_by_break_and_return(x):
    nested = Nested()

    def chosen(v):
        with nested:
            if v > 1:
                return v * v * nested.depth
        return v * (1 + nested.depth)

    total = 0.0
    for i in range(4):
        with nested, OUTSIDE as outside:
            if i == 1:
                continue
            if i == 3:
                break
            total += x[0] * i * nested.depth * outside.depth
    return total * (1 + nested.depth) + chosen(x[0]) * chosen(x[1])


@contextmanager
def scaled(xs, k):
    xs[0] *= k
    try:
        yield xs[0]
    finally:
        xs[0] /= k


class Model:
    def __init__(self, w):
        self.w, self.gain = w, 1.0

    @contextmanager
    def evaluating(self, gain=0.5):
        old, self.gain = self.gain, gain
        yield self
        self.gain = old

    def __call__(self, x):
        return self.w * x * self.gain


def changed_for_a_while(x):
    @contextmanager
    def offset(k):
        yield k * x[0]

    xs, model = [x[0], x[1]], Model(x[1])
    with scaled(xs, 3.0) as first, offset(2.0) as b:
        y = first * xs[0] * b
    with model.evaluating() as same, model.evaluating(gain=3.0):
        z = same(x[0]) * model(2.0)
    return y + xs[0] * z * model(1.0)


def without_effect(x):
    with warnings.catch_warnings(), contextlib.nullcontext(x[0]) as y:
        warnings.simplefilter("ignore")
        return y * np.log(x[1])


def raised_inside(x):
    nested, s = Nested(), 0.0
    try:
        with nested:
            if x[0] > 1:
                raise ValueError("large")
            s = x[1]
    except ValueError:
        s = x[0] * 2
    return s * (1 + nested.depth)


PROGRAMS = [entered_again, left_by_break_and_return, changed_for_a_while, without_effect,
            raised_inside]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_with(f):
    judge(f, X)


@pytest.mark.compile
def test_with_compiled():
    judge(left_by_break_and_return, X, compiled=True, second=False)


class Swallows:
    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        return kind is ValueError


class Looks:
    ended = 0.0

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.ended = 1.0


@contextmanager
def either(x):
    if x > 0:
        yield x
    else:
        yield -x


def swallowed(x):
    with Swallows():
        return x[0]


def looked_at(x):
    looks = Looks()
    try:
        with looks:
            if x[0] > 1:
                raise ValueError
    except ValueError:
        pass
    return looks.ended


def in_a_branch(x):
    with either(x[0]) as y:
        return y


@pytest.mark.parametrize("f, message", [
    (swallowed, "an __exit__ that may swallow exceptions"),
    (looked_at, "an __exit__ that looks at an exception, inside `try`"),
    (in_a_branch, "a context manager with several `yield`s, or one in a branch"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_refused(f, message):
    with pytest.raises(S2SError) as caught:
        s2s.grad(f)(X)
    assert message in str(caught.value) and "^" in str(caught.value)
