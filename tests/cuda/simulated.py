"""Run by test_simulator.py in a process of its own, where Numba's CUDA simulator is on: kernels
against NumPy.
"""

import threading

import numpy as np
import pytest
from differences import STEP
from examples import EXAMPLES, POSITIVE, X, fused, newton, slow
from lanes import LANES
from launch_counts import counts
from numba import config, cuda
from numba.cuda.simulator import kernelapi

import s2s
from s2s.runtime.cuda import HostWarning


class MadeOnce(dict):
    """The shared arrays of a block in the simulator, whose threads look whether there is one, and
    else make it: from the look to the making one thread at a time.

    Without, a thread has an array of its own now and then, and a sum comes out without its term.
    """

    def __init__(self):
        self.lock = threading.Lock()

    def get(self, place):
        self.lock.acquire()
        found = super().get(place)
        if found is not None:
            self.lock.release()
        return found

    def __setitem__(self, place, array):
        super().__setitem__(place, array)
        self.lock.release()


class Shared(kernelapi.FakeCUDAShared):
    def __init__(self, *args):
        super().__init__(*args)
        self._allocations = MadeOnce()


kernelapi.FakeCUDAShared = Shared


def agree(got, expected, tolerance):
    if isinstance(expected, tuple):
        assert isinstance(got, tuple) and len(got) == len(expected)
        for a, b in zip(got, expected):
            agree(a, b, tolerance)
    else:
        assert np.shape(got) == np.shape(expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_the_simulator_is_on():
    assert config.ENABLE_CUDASIM


@pytest.mark.parametrize("name", EXAMPLES)
def test_kernels_compute_what_numpy_does(name):
    f, args = EXAMPLES[name]
    kept = [np.copy(x) for x in args]
    got = s2s.jit(f, target="cuda", threads=8)(*args)
    agree(got, f(*args), 1e-5 if name == "single precision" else 1e-11)
    for given, copy in zip(args, kept):
        assert np.array_equal(given, copy), "an argument was changed"


def test_every_lane_makes_its_own_trips():
    a = np.array([1.0, 4.0, 2.0e6])
    agree(s2s.jit(s2s.vmap(newton, (0, None)), target="cuda", threads=2)(a, 1e-6), np.sqrt(a), 1e-6)


def slope(f, args: list, k: int):
    """The central differences of `f` in its argument `k`, a number or a vector."""
    def change(step):
        up, down = ([*args[:k], args[k] + s * step, *args[k + 1:]] for s in (1, -1))
        return (f(*up) - f(*down)) / (2 * STEP)

    return (change(STEP) if np.ndim(args[k]) == 0
            else np.array([change(e) for e in STEP * np.eye(len(args[k]))]))


@pytest.mark.parametrize("f, axes, args, wrt", LANES, ids=lambda x: getattr(x, "__name__", ""))
def test_lanes_are_threads_of_one_kernel(f, axes, args, wrt):
    over_lanes = s2s.vmap(f, axes)

    def total(*xs):
        return np.sum(over_lanes(*xs))

    lanes = [[x if axis is None else x[lane] for x, axis in zip(args, axes)]
             for lane in range(len(args[0]))]
    values = np.array([f(*lane) for lane in lanes])
    slopes = tuple(np.array([slope(f, lane, k) for lane in lanes]) for k in wrt)
    together = s2s.jit(s2s.vmap(s2s.value_and_grad(f, wrt), axes), target="cuda", threads=2)
    summed = s2s.jit(s2s.grad(total, wrt), target="cuda", threads=2)
    found, bars = together(*args)
    agree(found, values, 1e-12)
    agree(bars, slopes, 2e-7)
    agree(summed(*args), tuple(x if axes[k] == 0 else np.sum(x, axis=0)
                                for k, x in zip(wrt, slopes)), 1e-6)
    for compiled in (s2s.jit(over_lanes, target="cuda"), together, summed):
        found = counts(compiled.lower(*args).loops)
        assert found["launches"] == 1 and not found["one thread"], found


def test_lanes_keep_their_tapes_from_one_kernel_to_the_next():
    a = POSITIVE[:3] ** 4

    def loss(a, rate):
        return np.log(np.sum(s2s.vmap(slow, (0, None))(a, rate) ** 2))

    gradient = s2s.jit(s2s.grad(loss, (0, 1)), target="cuda", threads=2)
    text = gradient.lower(a, 0.97).loops
    assert counts(text)["launches"] <= 4 and "for lane in range" not in text.split("\ndef ")[-1]
    agree(gradient(a, 0.97), s2s.grad(loss, (0, 1))(a, 0.97), 1e-11)
    agree(gradient(a, 0.97), (slope(loss, [a, 0.97], 0), slope(loss, [a, 0.97], 1)), 1e-6)


def test_second_derivatives_of_lanes_are_one_kernel():
    def curved(x, rate):
        y = x * x
        while y > 1.0:
            y = y * rate - 0.001 * y * x
        return y * x

    slopes = s2s.vmap(s2s.grad(s2s.grad(curved)), (0, None))
    compiled = s2s.jit(slopes, target="cuda", threads=2)
    x = POSITIVE[:3]  # of which the first makes 69 trips
    agree(compiled(x, 0.98), np.array([slope(s2s.grad(curved), [v, 0.98], 0) for v in x]), 1e-6)
    found = counts(compiled.lower(x, 0.98).loops)
    assert found["launches"] == 1 and found["numbers"] == 1


def test_more_trips_than_threads_and_fewer():
    whole = s2s.jit(lambda x: np.exp(x), target="cuda", threads=1)
    agree(whole(X), np.exp(X), 1e-12)
    agree(whole(X[:1]), np.exp(X[:1]), 1e-12)
    agree(whole(X[:0]), np.exp(X[:0]), 1e-12)


def test_the_same_sum_every_time():
    total = s2s.jit(lambda x: np.sum(x), target="cuda", threads=4)
    assert total(X) == total(X)
    agree(total(X), np.sum(X), 1e-12)


def test_what_is_on_the_device_stays_there():
    gradient = s2s.jit(s2s.grad(fused), target="cuda", threads=8)
    result = gradient(cuda.to_device(X), cuda.to_device(POSITIVE))
    assert not isinstance(result, np.ndarray)
    agree(result.copy_to_host(), s2s.grad(fused)(X, POSITIVE), 1e-12)


def test_trees_go_to_the_device_and_back():
    def step(state, rate):
        return {"x": state["x"] - rate * state["v"], "v": (state["v"] * 2.0)}

    state = {"x": X, "v": POSITIVE}
    there = s2s.device_put(state)
    assert all(hasattr(x, "copy_to_host") for x in there.values())
    stepped = s2s.block_until_ready(s2s.jit(step, target="cuda", threads=8)(there, 0.5))
    assert all(hasattr(x, "copy_to_host") for x in stepped.values())
    back = s2s.device_get(stepped)
    agree((back["x"], back["v"]), (X - 0.5 * POSITIVE, 2.0 * POSITIVE), 1e-12)


def test_kernels_are_on_the_stream_that_is_given():
    f, args = EXAMPLES["softmax"]
    on_stream = s2s.jit(f, target="cuda", threads=8, stream=48)
    agree(on_stream(*args), f(*args), 1e-12)


def test_numbers_that_only_kernels_read_stay_on_the_device():
    def scaled(x):
        for _ in range(3):
            x = x / np.sum(x)
        return x

    compiled = s2s.jit(scaled, target="cuda", threads=8)
    agree(compiled(POSITIVE), scaled(POSITIVE), 1e-12)
    assert counts(compiled.lower(POSITIVE).loops)["numbers"] == 0


def test_a_loop_that_waits_for_the_device_is_named():
    def settle(x):
        while np.sum(x * x) > 1e-3:
            x = 0.5 * x
        return x

    with pytest.warns(HostWarning, match="np.sum(.|\n)*read from the device in each trip"):
        found = s2s.jit(settle, target="cuda", threads=8)(X)
    agree(found, settle(X), 1e-12)


def test_threads_must_be_a_power_of_two():
    with pytest.raises(s2s.UnsupportedError, match="3 threads in a block"):
        s2s.jit(newton, target="cuda", threads=3)(2.0, 1e-9)


def test_errors_of_the_program_are_raised_before_its_kernels():
    f, (starts, h, steps) = EXAMPLES["steps, lane by lane"]
    with pytest.raises(ValueError, match="expected 2"):
        s2s.jit(f, target="cuda", threads=2)(np.ones((4, 3)), h, steps)


def test_what_kernels_cannot_say_is_computed_by_numpy():
    sorted_sum = s2s.jit(lambda x: np.cumsum(np.exp(x)) * 2.0, target="cuda", threads=8)
    agree(sorted_sum(X), np.cumsum(np.exp(X)) * 2.0, 1e-12)
