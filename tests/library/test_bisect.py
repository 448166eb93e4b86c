"""The module bisect: where an item belongs in a sorted list or array."""

import bisect

import numpy as np
import pytest
from differences import differences

import s2s

EDGES = [0.0, 0.5, 0.5, 1.0, 2.0]
X = np.array([0.3, 0.5, 1.7])


class Line:
    """Straight pieces through given points."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __call__(self, t):
        k = max(0, min(bisect.bisect_right(self.x, t) - 1, len(self.x) - 2))
        share = (t - self.x[k]) / (self.x[k + 1] - self.x[k])
        return (1 - share) * self.y[k] + share * self.y[k + 1]


def of_a_class(y):
    line = Line(np.array([0.0, 0.6, 1.5]), y)
    return sum(line(t) ** 2 for t in (-0.3, 0.1, 0.6, 1.2, 2.0))


def of_captured(x):
    return sum(v * bisect.bisect_left(EDGES, v) + bisect.bisect(EDGES, v, 1, 4) for v in x)


def of_inserted(x):
    kept = [1.0]
    for v in x:
        bisect.insort(kept, v)
    bisect.insort_left(kept, x[0] + x[1])
    return sum(v * k**2 for k, v in enumerate(kept))


def by_key(x):
    pairs = [(0.1, 3.0), (0.6, 5.0), (1.8, 7.0)]
    k = bisect.bisect_left(pairs, x[0], key=lambda pair: pair[0])
    return pairs[k][1] * x[1] + x[2]


PROGRAMS = [of_a_class, of_captured, of_inserted, by_key]


@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f):
    x = X + 0.01
    assert s2s.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-14)
    np.testing.assert_allclose(s2s.grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    x = X + 0.01
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x), differences(f, x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", [bisect.bisect_left, bisect.bisect_right])
def test_places_are_pythons(function):
    def place(edges, v, lo, hi):
        return function(edges, v, lo, hi) * 1.0

    run = s2s.value_and_grad(place, argnums=1)
    for v in (-1.0, 0.0, 0.5, 0.7, 2.0, 3.0, np.nan):
        for lo, hi in ((0, 5), (1, 3), (2, 2)):
            assert run(np.array(EDGES), v, lo, hi)[0] == function(EDGES, v, lo, hi)
    with pytest.raises(ValueError, match="lo must be non-negative"):
        run(np.array(EDGES), 0.3, -1, 3)
