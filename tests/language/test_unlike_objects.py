"""One object or another, of unlike classes, chosen at run time: what is done with it is done in a
branch, and what is written to it is written to the one that it is.
"""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

HERE, THERE = np.array([0.3, 1.2, 0.9]), np.array([0.7, -0.2, 0.45])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


class Disc:
    def __init__(self, r):
        self.r = r

    def area(self):
        return self.r**2

    def grow(self, d):
        self.r = self.r + d


class Box:
    def __init__(self, w, h):
        self.w, self.h = w, h

    def area(self):
        return self.w * self.h

    def grow(self, d):
        self.w += d


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def area(self):
        return self.left.area() * self.right.area()

    def grow(self, d):
        self.left.grow(d)
        self.right.grow(2 * d)


class Weighed:
    def weighed(self):
        return self.factor * self.area()


class Ring(Weighed):
    factor = 2.0

    def __init__(self, r):
        self.r = np.array([r, 2 * r])

    def area(self):
        return self.r @ self.r

    def __add__(self, other):
        return self.area() + other.area()

    def __call__(self, y):
        return self.area() * y

    def __bool__(self):
        return False

    @property
    def side(self):
        return self.r


class Bar(Weighed):
    factor = 3.0

    def __init__(self, r, q):
        self.r, self.q = r, q

    def area(self):
        return self.r + self.q

    def __add__(self, other):
        return self.area() * other.area()

    def __call__(self, y):
        return self.area() + y

    @property
    def side(self):
        return np.array([self.r, self.q])


class Holder:
    def __init__(self, inner):
        self.inner = inner


class Counter:
    def __init__(self, inner, n):
        self.inner, self.n = inner, n


def disc_or_box(x):
    disc, box = Disc(x[0]), Box(x[1], 2.0)
    return disc, box, disc if x[1] < x[0] else box


def ring_or_bar(x, k):
    if x[k] > 0.5:
        return Ring(x[k])
    return Bar(x[k], x[0])


@program
def the_greatest(x):
    shapes = [Disc(x[0]), Box(x[1], 2.0), Disc(x[2])]
    best, which = -10.0, None
    for shape in shapes:
        if shape.area() > best:
            best, which = shape.area(), shape
    return which.area() ** 2


@program
def the_least_grows(x):
    shapes = [Disc(x[0]), Box(x[1], 2.0), Disc(x[2])]
    for _ in range(4):
        least = min(shapes, key=lambda s: s.area())
        least.grow(0.3)
    return sum([s.area() ** 2 for s in shapes])


@program
def taken_by_index(x):
    shapes = [Disc(x[0]), Box(x[1], 2.0), Disc(x[2])]
    k = int(np.argmax([s.area() for s in shapes]))
    shapes[k].grow(x[0])
    return sum([s.area() ** 2 for s in shapes])


@program
def made_in_the_branch(x):
    if x[1] > 0:
        shape = Disc(x[0])
        kept = [shape]
    else:
        shape = Box(x[0], x[1])
        kept = [shape]
    area = Disc(x[0]).area if x[2] > 0.5 else Box(x[0], x[2]).area
    shape.grow(x[2])
    return kept[0].area() * area()


@program
def grown_in_a_loop(x):
    disc, box, chosen = disc_or_box(x)
    for k in range(len(x)):
        chosen.grow(x[k])
    return disc.area() + box.area() * chosen.area()


@program
def operators(x):
    s = Ring(x[0]) if x[1] > 1 else Bar(x[0], x[1])
    t = Ring(x[2]) if x[1] < 1 else Bar(x[2], x[1])
    y = s.weighed() + (s + t) + s(x[2]) + (1.0 if s else 2.0) * x[0]
    return y + np.sum(s.side) * t.side[0] + isinstance(t, Ring) * x[1]


@program
def returned(x):
    s, t = ring_or_bar(x, 0), ring_or_bar(x, 1)
    s.r *= 2.0
    t.r = x[0] * s.side
    return s.weighed() + t.weighed() if isinstance(t, Ring) else s.weighed()


@program
def perhaps_none(x):
    s = None
    for k in range(3):
        if x[k] > 0.5:
            s = Ring(x[k])
        elif x[k] < 0.1:
            s = Bar(x[k], 1.0)
    return s.area() if s is not None else x[0]


@program
def in_other_objects(x):
    disc, box = Disc(x[0]), Box(x[1], 2.0)
    t = Pair(disc, box) if x[1] < x[0] else box
    t.grow(0.5)
    u = Pair(t, disc)
    u.grow(x[2])
    return u.area() + disc.area()


@program
def holding_what_was_there(x):
    disc, items, named = Disc(x[0]), [x[0], x[1]], {"a": x[2]}
    held = [Holder(y) if x[0] > 0.5 else Counter(y, 2) for y in (disc, items, named)]
    held[0].inner.r = 5 * x[1]
    held[1].inner[0] = x[2] ** 2
    held[2].inner["a"] *= x[0]
    return disc.r * items[0] + named["a"]


@program
def which_it_is(x):
    disc, box, chosen = disc_or_box(x)
    return (x[0] if chosen is disc else x[1]) * chosen.area()


@program
def an_object_that_may_be_none_holds_what_was_there(x):
    """It held a copy: the value was wrong."""
    disc, items = Disc(x[0]), [x[0], x[1]]
    held, more = None, None
    if x[0] > 0:
        held, more = Holder(disc), Holder(items)
    if held is not None:
        held.inner.r = 5 * x[1]
        more.inner[0] = x[2] ** 2
    return disc.area() * items[0]


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs(f):
    for x in HERE, THERE:
        judge(f, x, second=False)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_compiled(f):
    for x in HERE, THERE:
        judge(f, x, compiled=True, second=False)


@pytest.mark.parametrize("f, message", [
    (lambda x: sum([s.area() for s in [ring_or_bar(x, k % 3) for k in range(int(x[0] * 9))]]),
     "a list of objects of unlike classes whose length depends on run-time data"),
    (lambda x: ring_or_bar(x, 0), "an object of one class or another is stored, or returned"),
])
def test_refused(f, message):
    with pytest.raises(S2SError, match=message):
        s2s.grad(f)(HERE)


def last_of_a_run_time_loop(x, n):
    chosen = Disc(x[0])
    for k in range(n):
        if x[k] > 0.5:
            chosen = Box(x[k], 2.0)
    return chosen.area()


def test_a_loop_of_run_time_length_does_not_carry_them():
    with pytest.raises(S2SError, match="chosen is .* before the loop and .* after a trip"):
        s2s.grad(lambda x: last_of_a_run_time_loop(x, int(x[0] * 9)))(HERE)


def test_the_trips_of_a_loop_over_an_argument_are_known_for_each_length():
    def over(x):
        chosen = Disc(x[0])
        for k in range(len(x)):
            if x[k] > 0.5:
                chosen = Box(x[k], 2.0)
        return chosen.area() + sum(s.area() for s in [ring_or_bar(x, k) for k in range(len(x))])

    gradient = s2s.grad(over)
    for x in HERE, THERE, np.concatenate([HERE, THERE[:1]]):
        expected = [(over(x + e) - over(x - e)) / 2e-6 for e in 1e-6 * np.eye(len(x))]
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6, atol=1e-8)
