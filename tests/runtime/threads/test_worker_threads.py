"""Workers that are threads, in native code: against the loop over lanes, bit for bit, and when one
of them fails.
"""

import os
import threading
import time

import numpy as np
import pytest

import s2s
from s2s import lax

pytestmark = pytest.mark.compile
RNG = np.random.default_rng(0)


def exchanged(x, k):
    for _ in range(k):
        x = np.sin(x) + lax.psum(x, "i") * 0.25 + lax.ppermute(x, "i", [(0, 1), (1, 4), (4, 0)])
    return x, lax.pmax(x, "i"), lax.all_gather(x, "i", axis=1), lax.psum_scatter(
        np.outer(np.arange(5.0), x), "i"), lax.psum(x > 0, "i")


def test_all_workers_have_the_bits_of_one():
    """Two workers have two lanes and three, three one or two, and of seven two have none."""
    X = RNG.normal(size=(5, 3))
    expected = s2s.vmap(exchanged, in_axes=(0, None), axis_name="i")(X, 4)
    one = s2s.pmap(exchanged, "i", in_axes=(0, None), workers=1)(X, 4)
    for a, b in zip(one, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for workers in (2, 3, 7):
        found = s2s.pmap(exchanged, "i", in_axes=(0, None), workers=workers)(X, 4)
        for a, b in zip(found, one, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_argument_stays_what_it_is():
    """Lanes are views of it."""
    def f(x):
        for _ in range(2):
            x = np.tanh(x + lax.psum(x, "i"))
        return x

    x = np.arange(3.0)
    s2s.pmap(f, "i", workers=2)(x)
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_sum_has_the_bits_of_the_loop_over_lanes():
    x = RNG.normal(size=41) * 10.0 ** RNG.integers(-3, 3, size=41)
    total = 0.0
    for each in x:
        total = total + each
    assert s2s.pmap(lambda v: lax.psum(v, "i"), "i", out_axes=None, workers=2)(x) == total


@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool"])
def test_sums_and_extremes_of_many_numbers(dtype):
    """Of so many that each worker adds up a part."""
    X = (100 * RNG.normal(size=(4, 10_001))).astype(dtype)
    total = s2s.pmap(lambda x: lax.psum(x, "i"), "i", out_axes=None, workers=3)
    expected = X[0] * 1 if dtype != "bool" else X[0].astype(np.int64)
    for row in X[1:]:
        expected = expected + row
    found = total(X)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if dtype == "float32":
        extremes = s2s.pmap(lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i")), "i", out_axes=None,
                            workers=3)
        np.testing.assert_array_equal(extremes(X), (np.max(X, axis=0), np.min(X, axis=0)))


def test_gradient_of_a_program_around():
    """All workers run a loop that trains; each has its lanes of the data."""
    def loss(w, x):
        return np.mean(np.tanh(x @ w) ** 2)

    over = s2s.pmap(loss, in_axes=(None, 0), workers=2)
    slope = s2s.value_and_grad(lambda w, X: np.sum(over(w, X)) * 0.25)

    def train(w, X, steps):
        for _ in range(steps):
            value, w_bar = slope(w, X)
            w = w - 0.1 * w_bar
        return w, value

    w, X = RNG.normal(size=3), RNG.normal(size=(4, 6, 3))
    found = s2s.jit(train)(w, X, 5)
    for _ in range(5):
        y = np.tanh(X @ w)
        value, w = np.mean(y ** 2), w - 0.1 * np.mean((2 * y * (1 - y * y))[..., None] * X,
                                                      axis=(0, 1))
    np.testing.assert_allclose(found[0], w, rtol=1e-12)
    np.testing.assert_allclose(found[1], value, rtol=1e-12)


def test_pmap_inside_of_pmap_and_of_vmap():
    def inside(row):
        return np.sum(s2s.pmap(lambda x: x * lax.psum(x, "j"), "j", workers=2)(row))

    X = RNG.normal(size=(3, 4))
    expected = np.sum(X, axis=1) ** 2
    np.testing.assert_allclose(s2s.pmap(inside, workers=2)(X), expected, rtol=1e-13)
    np.testing.assert_allclose(s2s.vmap(inside)(X), expected, rtol=1e-13)


# ------------------------------------------------------------------------------------------- faults


def refusing(x, k):
    if x < 0:
        raise ValueError(f"lane with {x}")
    return lax.psum(np.arange(4.0)[k] * x, "i")


together = s2s.pmap(refusing, "i", workers=2)
GOOD, PLACES = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 3])


def is_whole():
    np.testing.assert_array_equal(together(GOOD, PLACES), np.full(3, 11.0))


@pytest.mark.parametrize("x, k, error, message", [
    (np.array([1.0, 2.0, -3.0]), PLACES, ValueError, "lane with -3.0"),
    (np.array([-1.0, 2.0, 3.0]), PLACES, ValueError, "lane with -1.0"),
    (GOOD, np.array([0, 1, 4]), IndexError, "index 4 is out of bounds"),
])
def test_a_worker_that_raises_ends_the_call(x, k, error, message):
    is_whole()
    start = time.monotonic()
    with pytest.raises(error, match=message):
        together(x, k)
    assert time.monotonic() - start < 2
    is_whole()


def test_workers_that_hold_other_shapes():
    """They part, and one worker says what is wrong."""
    positive = s2s.pmap(lambda x: x[x > 0], workers=2)
    np.testing.assert_array_equal(positive(np.ones((4, 3))), np.ones((4, 3)))
    with pytest.raises(ValueError, match="lanes"):
        positive(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1.0, -1.0]]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_fork_after_workers():
    is_whole()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            is_whole()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_calls_from_several_threads():
    found = []
    threads = [threading.Thread(target=lambda k=k: found.append(together(GOOD + k, PLACES)[0]))
               for k in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [11.0 + 4.0 * k for k in range(5)]


def test_what_acts_outside_has_one_worker(capsys):
    def shown(x, rng):
        print(x)
        return x + rng.normal()

    f = s2s.pmap(shown, in_axes=(0, None), workers=2)
    expected = np.random.default_rng(1).normal(size=2) + [1.0, 2.0]
    np.testing.assert_array_equal(f(np.array([1.0, 2.0]), np.random.default_rng(1)), expected)
    assert capsys.readouterr().out == "1.0\n2.0\n"


def test_draws_from_the_global_state_have_one_worker():
    f = s2s.pmap(lambda x: x + np.random.normal(), workers=2)
    before = np.random.get_state()
    try:
        np.random.seed(1)
        found = f(np.array([1.0, 2.0]))
        np.random.seed(1)
        np.testing.assert_array_equal(found, np.array([1.0, 2.0]) + np.random.normal(size=2))
    finally:
        np.random.set_state(before)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "many"])
def test_what_is_no_number_of_workers(workers):
    with pytest.raises(s2s.TypeMismatchError, match="give the number of workers"):
        s2s.pmap(lambda x: x, workers=workers)
