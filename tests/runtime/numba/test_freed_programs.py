"""Compiled programs that are dropped are freed: their machine code, modules, texts and syntax
trees.
"""

import ctypes
import gc
import linecache
import sys
import weakref

import numpy as np
import pytest

import s2s
from s2s.runtime.debug import load_source
from s2s.runtime.numba import native_module

pytestmark = [pytest.mark.compile, pytest.mark.machine_code]


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    """The last programs would stay for a while."""
    monkeypatch.setattr(native_module, "_recent", Nowhere())


class Nowhere:
    def append(self, module) -> None:
        pass


def function(k: int, text: str):
    """A new function of this text."""
    return s2s.from_source(text.format(k=k), {"np": np})


def heap() -> int:
    """The bytes that this process has allocated from glibc's heap; 0 for other allocators."""
    class Blocks(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t)
                    for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
                                "fordblks keepcost".split()]
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return 0
    mallinfo.restype = Blocks
    return mallinfo().uordblks


def engine_of(dispatcher) -> weakref.ref:
    return weakref.ref(dispatcher.py_func.__globals__["__s2s_codegen__"]._engine._ee)


LOOP = ("def f{k}(x):\n    total = 0.0\n    for i in range(len(x)):\n"
        "        total += np.sin(x[i] * {k}.5)\n    return total\n")
SCALAR = "def g{k}(x):\n    return x * x + {k}.25\n"


def test_a_dropped_program_is_freed_whole():
    x = np.linspace(0.0, 1.0, 9)
    fast = s2s.jit(s2s.grad(function(1, LOOP)), cache=False)
    for y in (x, x[::-1]):  # the second by an adapter, which refers to the code
        np.testing.assert_allclose(fast(y), 1.5 * np.cos(1.5 * y), rtol=1e-12)
    mine = [entry for entry in native_module._entries if entry.py_func.__name__ == "f1_grad"]
    assert len(mine) == 2
    gone = [weakref.ref(entry) for entry in mine] + [engine_of(entry) for entry in mine] \
        + [weakref.ref(code.library) for entry in mine for code in entry.overloads.values()]
    files = {entry.py_func.__code__.co_filename for entry in mine}
    assert files <= set(linecache.cache) and files <= set(load_source._taken)
    compiled = native_module.statistics()
    del mine, fast
    gc.collect()
    assert [each() for each in gone] == [None] * len(gone)
    assert not files & set(linecache.cache) and not files & set(load_source._taken)
    assert native_module.statistics() == compiled  # what it compiled still counts


def test_what_is_in_use_stays():
    """Code runs as long as something refers to it: a dispatcher's entry point, or the adapter of a
    layout.
    """
    x = np.linspace(0.0, 1.0, 9)
    fast = s2s.jit(s2s.grad(function(2, LOOP)), cache=False)
    fast(x), fast(x[::2])
    (entry,) = [
        entry
        for entry in native_module._entries
        if entry.py_func.__name__ == "f2_grad" and len(entry.overloads) == 2
    ]
    points = [code.entry_point for code in entry.overloads.values()]
    del entry, fast
    gc.collect()
    for point, y in zip(points, (x, x[::2]), strict=True):
        np.testing.assert_allclose(point(y), 2.5 * np.cos(2.5 * y), rtol=1e-12)


def test_the_cache_on_disk_loads_what_can_be_freed(tmp_path, monkeypatch):
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path))
    x, gone, before = np.linspace(0.0, 1.0, 9), [], native_module.statistics()
    for _ in range(2):
        fast = s2s.jit(s2s.grad(function(3, LOOP)))
        np.testing.assert_allclose(fast(x), 3.5 * np.cos(3.5 * x), rtol=1e-12)
        gone += [
            engine_of(entry)
            for entry in native_module._entries
            if entry.py_func.__name__ == "f3_grad"
        ]
        del fast
        gc.collect()
    after = native_module.statistics()
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1) and [each() for each in gone] == [
        None,
        None,
    ]


@pytest.mark.slow
def test_300_recompilations_leave_no_more_than_30():
    """Of modules, generated texts, dispatchers and engines; and of memory but for what caches of a
    fixed size take up.
    """
    def left() -> tuple[int, ...]:
        gc.collect()
        return (
            heap(),
            len(sys.modules),
            len(load_source._taken),
            len(native_module._entries.references),
        )

    engines = []

    def compile_and_drop(first: int, last: int) -> None:
        for k in range(first, last):
            fast = s2s.jit(function(k, SCALAR), cache=False)
            assert fast(2.0) == 4.25 + k
            engines.append(engine_of(native_module._entries[-1]))

    compile_and_drop(0, 30)
    after_30 = left()
    compile_and_drop(30, 300)
    after_300 = left()
    assert [engine() for engine in engines] == [None] * 300
    assert after_300[1:] == after_30[1:]
    # 2 KB for each program are left, LLVM's context's; it was 220 KB
    assert after_300[0] - after_30[0] < 270 * 10_000
