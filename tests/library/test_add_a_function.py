"""A function of the library is a declaration and Python text: what CONTRIBUTING says under "Add a
function that is no op" is done here, and nothing else knows these functions.
"""

from __future__ import annotations

import numpy as np
import pytest
from differences import check

import s2s
from s2s.errors import S2SError
from s2s.front.eval.python_builtins import BUILTINS
from s2s.library.declarations import implements

A = np.array([0.5, 1.5, 2.5])
M = np.arange(6.0).reshape(2, 3) + 1


def smoothed(x, width=2, kind="mean", *more):
    """What users call, of another package; nothing reads its body."""
    raise AssertionError("not the function of the library")


def spread(x, axis=None):
    """What users call; nothing reads its body."""
    raise AssertionError("not the function of the library")


@pytest.fixture(autouse=True, scope="module")
def functions():
    """A function with variants, and one that leaves an op some arguments, declared after s2s has
    been imported and used.
    """
    s2s.grad(lambda x: x * x)(0.5)

    @implements(smoothed, arrays="x more", static="kind")
    def moving(x, width=2, kind="mean", *more):
        if np.ndim(x) != 1:
            raise NotImplementedError(f"s2s: smoothing of {np.ndim(x)} axes: smooth each row")
        for each in more:
            x = x + each
        windows = [x[k:len(x) - width + 1 + k] for k in range(width)]
        if kind == "mean":
            return sum(windows) / width
        return windows[0] * windows[-1]

    @implements(np.cumsum)
    def running_sums(a, axis=None):
        if np.ndim(a) < 2:
            return np.cumsum(a, axis)
        return np.stack([np.sum(a[:k + 1], axis=0) for k in range(len(a))])

    yield
    for function in (smoothed, np.cumsum):
        BUILTINS.pop(function)


PROGRAMS = {
    "a list is an array": lambda x: np.sum(smoothed([x, 2.0, x * x, 1.0]) ** 2),
    "a static argument": lambda x: np.sum(smoothed(A * x, 3, kind="product") * 2.0),
    "more lists": lambda x: np.sum(smoothed(A * x, 2, "mean", [x, 1.0, 2.0], A) ** 2),
}


def by_hand(name, x):
    return {
        "a list is an array": lambda: np.sum(
            ((np.array([x, 2.0, x * x]) + np.array([2.0, x * x, 1.0])) / 2) ** 2),
        "a static argument": lambda: 2.0 * (A[0] * x) * (A[2] * x),
        "more lists": lambda: np.sum(
            ((A * x + [x, 1.0, 2.0] + A)[:-1] + (A * x + [x, 1.0, 2.0] + A)[1:]) ** 2) / 4,
    }[name]()


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_inlined(name):
    found, slope = s2s.value_and_grad(PROGRAMS[name])(0.7)
    h = 1e-6
    np.testing.assert_allclose(found, by_hand(name, 0.7), rtol=1e-13)
    np.testing.assert_allclose(
        slope, (by_hand(name, 0.7 + h) - by_hand(name, 0.7 - h)) / (2 * h), rtol=1e-8)


@pytest.mark.compile
def test_native_code_has_it():
    f = PROGRAMS["more lists"]
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(0.7), s2s.grad(f)(0.7), rtol=1e-13)


def test_inside_its_own_function_it_is_the_op():
    for f, is_op in (
        (lambda x: np.sum(np.cumsum(A * x) ** 2), True),
        (lambda x: np.sum(np.cumsum(M * x, axis=0) ** 2), False),
    ):
        check(f)
        assert ("np.cumsum" in s2s.jit(f).lower(0.7).source) == is_op


def test_what_it_cannot_do_is_refused_where_it_is_called():
    with pytest.raises(S2SError, match="smoothing of 0 axes") as error:
        s2s.grad(lambda x: smoothed(x))(0.7)
    assert "smooth each row" in str(error.value) and __file__ in str(error.value)
    with pytest.raises(S2SError, match="kind= must be known when code is generated"):
        s2s.grad(lambda x: np.sum(smoothed(A * x, 2, x > 0)))(0.7)
    with pytest.raises(S2SError, match="smoothed called like this: got an unexpected keyword"):
        s2s.grad(lambda x: np.sum(smoothed(A * x, depth=2)))(0.7)
