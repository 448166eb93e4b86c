"""Lengths that do not go together are refused at the call, whether or not the derivative needs the
op that would raise.
"""

import numpy as np
import pytest

import s2s
from s2s.errors import ShapeMismatchError, TypeMismatchError

A3, A4 = np.arange(3.0), np.arange(4.0)
OFFSET = np.arange(3.0)


def added(x, y):
    return np.sum(x + y)


def product(A, x):
    return np.sum(A @ x)


def overwritten(x, y):
    x = x.copy()
    x[1:] = y
    return x[0]


def inner(x, y):
    return np.sum(x[1:] + y)


def outer(a, b):
    return inner(a, b) * 2


def literal(x):
    return np.sum(x + np.array([1.0, 2.0, 3.0]))


def joined(a, b):
    return np.sum(np.concatenate([a, b], axis=1))


def captured(x):
    return np.sum(x - OFFSET)


def pair(p):
    return np.sum(p[0] + p[1])


CASES = [
    (added, (A3, A4), "x.shape[0] is 3 and y.shape[0] is 4", "return np.sum(x + y)"),
    (product, (np.ones((2, 3)), A4), "A.shape[1] is 3 and x.shape[0] is 4", "return np.sum(A @ x)"),
    (overwritten, (A4, A4), "max(x.shape[0]-1, 0) is 3 and y.shape[0] is 4", "x[1:] = y"),
    (outer, (A4, A4), "max(a.shape[0]-1, 0) is 3 and b.shape[0] is 4", "return inner(a, b) * 2"),
    (literal, (A4,), "x.shape[0] is 4, and 3 is needed", "np.array([1.0, 2.0, 3.0])"),
    (
        joined,
        (np.ones((2, 3)), np.ones((3, 3))),
        "a.shape[0] is 2 and b.shape[0] is 3",
        "np.concatenate([a, b], axis=1)",
    ),
    (captured, (A4,), "x.shape[0] is 4 and OFFSET.shape[0] is 3", "return np.sum(x - OFFSET)"),
    (pair, ((A3, A4),), "p[0].shape[0] is 3 and p[1].shape[0] is 4", "return np.sum(p[0] + p[1])"),
]


@pytest.mark.parametrize(
    ("f", "args", "message", "text"), CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_refused_with_the_line(f, args, message, text):
    with pytest.raises(ValueError):
        f(*args)
    with pytest.raises(ShapeMismatchError) as caught:
        s2s.grad(f)(*args)
    said = str(caught.value)
    assert message in said and text in said and "^" in said
    assert "Instead: pass arrays whose lengths go together" in said


@pytest.mark.compile
def test_refused_by_compiled_code_after_a_good_call():
    gradient = s2s.jit(s2s.grad(added))
    assert gradient(A3, A3).tolist() == [1.0, 1.0, 1.0]
    for x, y in ((A3, A4), (A4, A3)):
        with pytest.raises(ShapeMismatchError, match="is 3"):
            gradient(x, y)
    assert gradient(A4, A4).shape == (4,)


@pytest.mark.parametrize("n", [1, 2])
def test_a_slice_of_one_element_broadcasts(n):
    """x[1:] has one element where x has two, and then goes with any y."""
    assert s2s.grad(inner)(np.ones(n + 1), np.ones(4 if n == 1 else 2)).shape == (n + 1,)


def test_an_op_that_not_every_run_reaches_asks_nothing():
    def f(x, y, both):
        s = np.sum(x)
        if both:
            s = s + np.sum(x + y)
        return s

    assert s2s.grad(f)(A3, A4, False).tolist() == [1.0, 1.0, 1.0]


def test_batched():
    gradient = s2s.vmap(s2s.grad(added))
    assert gradient(np.ones((2, 3)), np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(ShapeMismatchError, match="is 3 and .* is 4"):
        gradient(np.ones((2, 3)), np.ones((2, 4)))


def test_tangents_are_as_long_as_their_primals():
    with pytest.raises(ShapeMismatchError, match=r"x.shape\[0\] is 3 and x_dot.shape\[0\] is 4"):
        s2s.jvp(added)(A3, A3, A4, A3)
    with pytest.raises(
        TypeMismatchError, match="the tangent of x_dot" if False else "the tangent of x, which is"
    ):
        s2s.jvp(added)(A3, A3, 1.0, A3)
