"""Searches for each element of an array are loops; bins are NumPy's, whichever way they go."""

import numpy as np
import pytest

import s2s
from s2s.back.arrays.binary_search import digitized

RNG = np.random.default_rng(3)
UP = np.array([-1.0, 0.0, 0.0, 0.5, 2.0])


@pytest.mark.parametrize("right", (False, True))
@pytest.mark.parametrize(
    "bins",
    (UP, UP[::-1].copy(), UP[:1], UP[1:3], np.array([3, 1, -2]), np.array([2.0, 2.0, -1.0])),
    ids=("up", "down", "one", "equal", "integers", "equal, then down"),
)
def test_bins_are_numpys(bins, right):
    x = np.concatenate((bins, bins + 0.25, [-9.0, 9.0, np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(digitized(x, bins, right), np.digitize(x, bins, right))


def test_bins_that_go_both_ways_are_refused():
    for bins in ([0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]):
        with pytest.raises(ValueError, match="monotonic"):
            digitized(UP, np.array(bins), False)
        with pytest.raises(ValueError, match="monotonic"):
            np.digitize(UP, np.array(bins))


def in_bins(x, bins):
    return np.sum(np.digitize(x, bins) * x**2) + np.digitize(x[0, 0], bins, right=True) * x[0, 1]


def of_a_table(x, at):
    return np.sum(np.interp(x, at, np.sin(at)) ** 2) + np.sum(
        np.searchsorted(at, x, side="right") * x
    )


@pytest.mark.parametrize("f", (in_bins, of_a_table))
def test_gradients(f):
    x, at = RNG.uniform(-1.2, 2.5, size=(3, 4)), np.sort(RNG.uniform(-1.0, 2.0, size=6))
    d, h = RNG.normal(size=x.shape), 1e-6
    along = (f(x + h * d, at) - f(x - h * d, at)) / (2 * h)
    for gradient in (s2s.grad(f), loops_of_gradient(f, x, at)):
        np.testing.assert_allclose(np.sum(gradient(x, at) * d), along, rtol=1e-6)


def loops_of_gradient(f, *args):
    """The loop form of a gradient, run by Python."""
    module = {}
    exec(s2s.jit(s2s.grad(f)).lower(*args).loops, module)
    return module[f"{f.__name__}_grad"]


@pytest.mark.compile
@pytest.mark.parametrize("f", (in_bins, of_a_table))
def test_compiled(f):
    for x in (
        RNG.uniform(-1.2, 2.5, size=(3, 4)),
        RNG.uniform(-1.2, 2.5, size=(2, 5)).astype(np.float32),
    ):
        at = np.sort(RNG.uniform(-1.0, 2.0, size=6))
        for g in (f, s2s.grad(f)):
            np.testing.assert_allclose(
                s2s.jit(g)(x, at), g(x, at), rtol=1e-5 if x.dtype == np.float32 else 1e-12
            )
    np.testing.assert_allclose(
        s2s.jit(in_bins)(x, at[::-1].copy()), in_bins(x, at[::-1]), rtol=1e-5
    )
    with pytest.raises(ValueError, match="monotonic"):
        s2s.jit(in_bins)(x, np.array([0.0, 2.0, 1.0]))


def test_what_is_searched_for_is_used_in_the_same_loop():
    x, at = RNG.uniform(size=9), np.sort(RNG.uniform(size=5))
    loops = s2s.jit(s2s.grad(of_a_table)).lower(x, at).loops
    assert (
        loops.count("for i in range(len(x)):") == 1
        and "np.empty(len(x), dtype=np.int64)" not in loops
    )
