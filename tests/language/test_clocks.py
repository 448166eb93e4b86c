"""Programs that measure how long they take."""

import logging
import time
from time import perf_counter

import numpy as np
import pytest

import s2s

LOG = logging.getLogger("s2s.test")


def timed(x):
    start = time.perf_counter()
    y = np.sin(x) * x
    took = perf_counter() - start
    LOG.info("took %.3f s", took)
    return y * (1.0 if took >= 0 else 2.0)


class Model:
    def __init__(self):
        self.elapsed = -1.0

    def value(self, x):
        start = time.time_ns()
        y = x**2
        self.elapsed = (time.time_ns() - start) * 1e-9
        return y


def test_a_clock_carries_no_derivative():
    assert s2s.value_and_grad(timed)(0.3) == pytest.approx(
        (timed(0.3), np.cos(0.3) * 0.3 + np.sin(0.3)))
    assert s2s.hessian(timed)(0.3) == pytest.approx(2 * np.cos(0.3) - 0.3 * np.sin(0.3))
    np.testing.assert_allclose(s2s.vmap(timed)(np.array([0.3, 0.4])), [timed(0.3), timed(0.4)])


def test_each_call_reads_the_clock():
    def now(x):
        return x + time.monotonic()

    run = s2s.value_and_grad(now)
    before = time.monotonic()
    first, second = run(0.0)[0], run(0.0)[0]
    assert before <= first < second <= time.monotonic()


def test_what_a_method_measures_is_stored():
    model = Model()
    assert s2s.grad(model.value)(3.0) == 6.0
    assert 0 <= model.elapsed < 10


@pytest.mark.compile
def test_compiled_code_reads_the_clock():
    def now(x):
        start = time.monotonic()
        y = np.sin(x)
        return y * (2.0 if time.monotonic() >= start > 0 else 0.0) + 0.0 * start

    with np.errstate(all="ignore"):
        assert s2s.jit(s2s.grad(now))(0.3) == pytest.approx(2 * np.cos(0.3))
