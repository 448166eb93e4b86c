"""Lanes that Python runs in processes, against lanes that are threads, and when one fails."""

import os
import threading
import time

import named_axes
import numpy as np
import pytest
from lanes_in_threads import Lanes, with_modules
from named_axes import PROGRAMS

import s2s
from s2s import lax
from s2s.errors import ShapeMismatchError, TypeMismatchError, UnboundAxisError, UnsupportedError
from s2s.runtime.workers.lanes_in_python import LanesDisagreeError

ONE_AXIS = [name for name, (_, _, _, grid, _) in PROGRAMS.items() if not grid]
X = np.arange(5.0)


def over(f, count, **options):
    return s2s.pmap(f, "i", workers=("processes", count), **options)


@pytest.mark.lengthy
def test_collectives():
    """All of `s2s.lax`, of the programs that vmap is tested with; lanes of one process."""
    for name in ONE_AXIS:
        f, args, in_axes, _, _ = PROGRAMS[name]
        lanes = Lanes({"i": named_axes.N})
        plain = with_modules(named_axes.__file__, np, lanes).PROGRAMS[name][0]
        axes = [in_axes] * len(args) if isinstance(in_axes, int) else in_axes
        expected = lanes.run(plain, args, axes)
        found = over(f, 1, in_axes=in_axes)(*args)
        for a, b in zip(s2s.tree.leaves(found), s2s.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)


def exchanged(x, k):
    for _ in range(k):
        x = np.sin(x) + lax.psum(x, "i") * 0.25 + lax.ppermute(x, "i", [(0, 1), (1, 4), (4, 0)])
    return {"x": x, "all": lax.all_gather(x, "i"), "process": os.getpid()}


@pytest.mark.lengthy
def test_all_processes_have_the_bits_of_one():
    rows = np.random.default_rng(0).normal(size=(5, 3))
    one = over(exchanged, 1, in_axes=(0, None))(rows, 3)
    for count in (2, 7):
        found = over(exchanged, count, in_axes=(0, None))(rows, 3)
        np.testing.assert_array_equal(found["x"], one["x"])
        np.testing.assert_array_equal(found["all"], one["all"])
        assert len({*found["process"]}) == min(count, 5) and found["process"][0] == os.getpid()


def test_more_than_a_slab():
    rows = np.random.default_rng(0).normal(size=(2, 200_001))
    found = over(lambda x: lax.psum(x, "i"), 2, out_axes=None)(rows)
    np.testing.assert_array_equal(found, rows[0] + rows[1])


def test_derivatives_inside():
    found = over(s2s.grad(lambda x: np.sin(x) * x), 2)(X)
    np.testing.assert_allclose(found, np.cos(X) * X + np.sin(X), rtol=1e-13)
    with pytest.raises(UnsupportedError, match="with processes, inside a program"):
        s2s.grad(lambda x: np.sum(over(np.sin, 2)(x)))(X)


# ------------------------------------------------------------------------------------------- faults


def raising(x):
    if x > 3:
        raise KeyError("too large")
    return lax.psum(x, "i")


def killed(x):
    if x > 3:
        os.kill(os.getpid(), 9)
    return lax.psum(x, "i")


def elsewhere(x):
    return lax.psum(x, "i") if x < 3 else lax.pmax(x, "i")


def longer(x):
    return lax.psum(np.ones(3 if x > 3 else 2), "i")


def early(x):
    return x if x > 3 else lax.psum(x, "i")


@pytest.mark.parametrize("f, error, message", [
    (raising, KeyError, "too large"),
    (killed, RuntimeError, "worker 1 has been killed"),
    (elsewhere, LanesDisagreeError, r"calls psum of float64\[\] \(test_worker_processes.py, line "
     r"\d+\), and lane \d calls pmax of float64\[\] \(test_worker_processes.py, line \d+\)"),
    (longer, LanesDisagreeError, r"psum of float64\[2\] .* and lane 4 calls psum of float64\[3\]"),
    (early, UnsupportedError, "a collective that not all lanes reach: psum, test_worker_proc"),
])
def test_a_lane_that_fails_ends_the_call(f, error, message):
    start = time.monotonic()
    with pytest.raises(error, match=message):
        over(f, 2)(X)
    assert time.monotonic() - start < 2


def test_the_traceback_of_another_process_is_shown():
    with pytest.raises(KeyError) as caught:
        over(raising, 2)(X)
    assert 'raise KeyError("too large")' in str(caught.value.__cause__)


@pytest.mark.slow  # another Python starts, and imports s2s
def test_processes_are_spawned_where_a_thread_runs():
    """A fork would copy its locks as they are."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with pytest.raises(UnsupportedError, match="processes started by spawn: .*pickle"):
            over(lambda x: x, 2)(X)
        np.testing.assert_array_equal(over(exchanged, 2, in_axes=(0, None))(X, 1)["x"],
                                      over(exchanged, 1, in_axes=(0, None))(X, 1)["x"])
    finally:
        release.set()
        thread.join()


def test_what_does_not_fit():
    with pytest.raises(UnboundAxisError, match="unbound axis name 'j'"):
        over(lambda x: lax.psum(x, "j"), 1)(X)
    with pytest.raises(UnboundAxisError, match="unbound axis name 'i'"):
        lax.psum(1.0, "i")
    with pytest.raises(ShapeMismatchError, match="the numbers of lanes 4, 5"):
        over(np.add, 2)(X, X[1:])
    with pytest.raises(TypeMismatchError, match="differs from lane to lane and has out_axes None"):
        over(np.sin, 2, out_axes=None)(X)
    with pytest.raises(TypeMismatchError, match='"processes", or'):
        s2s.pmap(np.sin, workers="threads")
