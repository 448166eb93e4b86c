"""What an exception of one's own class carries, read where it is caught."""

import numpy as np
import pytest
from differences import differences

import s2s
from s2s.errors import UnsupportedError

P = np.array([0.7, 0.4])


class NoConvergence(Exception):
    def __init__(self, count, best=None):
        super().__init__(f"not after {count} trips")
        self.count, self.best = count, best

    @property
    def score(self):
        return self.count * 2.0


class Diverged(NoConvergence):
    level = 3

    def __init__(self, count, x):
        NoConvergence.__init__(self, count, best=x * 2)
        self.states = np.array([x, x**2])


class Plain(Exception):
    pass


def iterated(f, x, n):
    for _ in range(n):
        y = f(x)
        if abs(y - x) < 1e-10:
            return y
        x = y
    raise NoConvergence(n, best=x)


def caught_from_a_helper(p):
    try:
        return iterated(lambda z: np.cos(z * p[0]), p[1], 3)
    except NoConvergence as error:
        return error.best * error.count + error.score


def of_a_subclass(p):
    try:
        if p[0] > 0:
            raise Diverged(4, p[1])
        return p[0]
    except NoConvergence as error:
        return error.best + error.level * np.sum(error.states)


PROGRAMS = [caught_from_a_helper, of_a_subclass]


@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f):
    for x in P, -P:
        np.testing.assert_allclose(s2s.grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(s2s.jacfwd(f)(x), differences(f, x), rtol=1e-6, atol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(P), differences(f, P), rtol=1e-6, atol=1e-8)


def test_an_attribute_that_no_init_sets_is_refused():
    def f(x):
        try:
            if x > 0:
                raise Plain(x)
            return x
        except Plain as error:
            return error.best

    with pytest.raises(UnsupportedError, match="the attribute best of an exception"):
        s2s.grad(f)(0.3)
