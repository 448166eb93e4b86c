"""Arguments that are one object, or share memory, where the program writes to one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import s2s
from s2s.errors import UnsupportedError

X = np.array([1.0, 2.0, 3.0])
Y = np.array([0.5, -1.0, 2.0])
Z = np.arange(6.0)


def first_set(a, b):
    a[0] = 2.0
    return np.sum(a * b)


def one_of_a_list(ps):
    ps[0][0] = ps[1][1] ** 2
    return np.sum(ps[0] * ps[1])


def one_in_a_dict(d, x):
    d["w"][1] = 3.0 * x[0]
    return np.sum(d["w"] * x)


@dataclass
class Point:
    v: float


def attribute_set(x, p, q):
    p.v = 2.0 * x
    return p.v * q.v


def captured_too(x):
    x[0] = 5.0
    return np.sum(X * x)


def only_read(a, b):
    return np.sum(a * b)


SHARED = [
    (first_set, (X, X), "a and b are the same, and a is written to"),
    (first_set, (Z[:3], Z[2:5]), "a and b share memory, and a is written to"),
    (one_of_a_list, ([X, X],), r"ps\[0\] and ps\[1\] are the same, and ps\[0\] is written to"),
    (one_in_a_dict, ({"w": X}, X), r"d\['w'\] and x are the same"),
    (attribute_set, (0.5, *2 * [Point(1.0)]), "p and q are the same, and p is written to"),
    (captured_too, (X,), "x and X are the same, and x is written to"),
]


@pytest.mark.parametrize("f, args, message", SHARED, ids=lambda x: getattr(x, "__name__", None))
def test_what_is_written_is_no_other_argument(f, args, message):
    for t in (s2s.grad(f), s2s.vjp, s2s.jit(f)):
        with pytest.raises(UnsupportedError, match=message) as caught:
            t(f, *args) if t is s2s.vjp else t(*args)
        assert "pass a copy as" in str(caught.value) and "^" in str(caught.value)


APART = [
    (first_set, (X, Y)),
    (first_set, (Z[::2], Z[1::2])),
    (one_of_a_list, ([X, Y],)),
    (one_in_a_dict, ({"w": X}, Y)),
    (attribute_set, (0.5, Point(1.0), Point(2.0))),
    (captured_too, (Y,)),
    (only_read, (X, X)),
]


@pytest.mark.parametrize("f, args", APART, ids=lambda x: getattr(x, "__name__", None))
def test_arguments_that_are_apart_are_let_through(f, args):
    grad = s2s.grad(f)
    expected = grad(*args)
    for _ in range(2):  # the second call takes the fast path
        for x, y in zip(s2s.tree.leaves(grad(*args)), s2s.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(x, y)


def test_the_fast_path_asks_as_well():
    grad = s2s.grad(first_set)
    for _ in range(3):
        np.testing.assert_array_equal(grad(X, Y), [0.0, -1.0, 2.0])
        with pytest.raises(UnsupportedError, match="a and b are the same"):
            grad(X, X)


@pytest.mark.compile
def test_native_code_is_asked_as_well():
    grad = s2s.jit(s2s.grad(first_set))
    for _ in range(3):
        np.testing.assert_array_equal(grad(X, Y), [0.0, -1.0, 2.0])
        with pytest.raises(UnsupportedError, match="a and b share memory"):
            grad(Z[:3], Z[1:4])


def test_a_tangent_may_be_the_argument():
    def f(x):
        x[0] = x[1] ** 2
        return np.sum(x**2)

    _, slope = s2s.jvp(f, (X,), (X,))
    np.testing.assert_allclose(slope, 4 * X[1] ** 4 + 2 * X[1] ** 2 + 2 * X[2] ** 2)
