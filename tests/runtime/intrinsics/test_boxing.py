"""Arrays that native code returns: whose memory they are, and when it is freed."""

import gc
import sys

import numpy as np
import pytest

import s2s
from s2s.runtime.intrinsics import boxing

pytestmark = pytest.mark.compile
resource = pytest.importorskip("resource")


def made(x, y):
    twice = x * 2.0
    return (
        twice,
        np.outer(x, y),
        y,
        twice.T,
        x.astype(np.float32),
        x[1:],
        np.zeros((0, 3)),
        np.outer(x, y).T,
        x > 1.0,
        1j * x,
    )


@pytest.fixture(params=["ours", "Numba's"])
def way(request, monkeypatch):
    """A function that returns arrays of every kind, boxed by ourselves and by Numba."""
    if request.param == "ours":
        assert boxing.is_known()
    else:
        monkeypatch.setattr(boxing, "is_known", lambda: False)
    return s2s.jit(made, cache=False)


def test_arrays_of_every_kind(way):
    x, y = np.arange(4.0), np.arange(3.0)
    for _ in range(3):
        for ours, theirs in zip(way(x, y), made(x, y), strict=True):
            assert (
                type(ours) is np.ndarray
                and ours.dtype == theirs.dtype
                and ours.shape == theirs.shape
            )
            assert ours.flags.writeable and ours.flags.aligned and ours.flags.behaved
            np.testing.assert_array_equal(ours, theirs)


def test_each_holds_its_memory_until_it_goes(way):
    x, y = np.arange(4.0), np.arange(3.0)
    kept = [way(x, y) for _ in range(100)]
    del kept[::2]
    gc.collect()
    others = [np.full(4, -1.0) for _ in range(1000)]  # on the heap, where something was freed
    for results in kept:
        np.testing.assert_array_equal(results[0], 2.0 * x)
        np.testing.assert_array_equal(results[1], np.outer(x, y))
    assert len(others) == 1000
    view = way(x, y)[1][1:]
    np.testing.assert_array_equal(view, np.outer(x, y)[1:])


def test_nothing_is_left_behind(way):
    x, y = np.arange(1000.0), np.arange(100.0)  # a megabyte and a half a call
    held = np.dtype(float), np.dtype(np.float32), np.ndarray, way(x, y)[0].base.__class__
    way(x, y)
    gc.collect()
    before, counts = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        [sys.getrefcount(each) for each in held],
    )
    for _ in range(300):
        way(x, y)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
    assert all(
        abs(sys.getrefcount(each) - count) < 10 for each, count in zip(held, counts, strict=True)
    )


def test_a_loaded_function_makes_its_arrays_too(tmp_path):
    """What machine code from the cache calls is there in a process that has compiled nothing."""
    import os
    import subprocess

    (tmp_path / "program.py").write_text("import numpy as np, s2s\n"
                                         "def f(x): return x * 2.0, x + 1.0\ng = s2s.jit(f)\n"
                                         "for _ in range(3): a, b = g(np.arange(4.0))\n"
                                         "print(a.tolist(), b.tolist(), a.base is not None)\n")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            env={**os.environ, "S2S_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert done.stdout.strip() == "[0.0, 2.0, 4.0, 6.0] [1.0, 2.0, 3.0, 4.0] True", done.stderr
