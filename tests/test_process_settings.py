"""s2s changes nothing in the process that imports it and compiles with it: settings are read before
and after, in a process of its own.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
import warnings

import llvmlite.binding
import numba
import numpy as np
import scipy.special

def mapped():
    '''Whether the allocator still maps arrays of 64 MB apart, as it does unless told otherwise.'''
    class Blocks(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in (
            "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split())]
    try:
        mallinfo = ctypes.CDLL(None).mallinfo
    except (OSError, AttributeError):
        return None
    mallinfo.restype = Blocks
    before = mallinfo().hblks
    array = np.empty(8_000_000)
    return mallinfo().hblks - before

def settings():
    return {  # not sys.meta_path: six, which another package imports, adds to it
        "gc": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), len(gc.callbacks)),
        "threads": (sys.getswitchinterval(), threading.stack_size(), threading.excepthook),
        "python": (sys.getrecursionlimit(), sys.excepthook, sys.displayhook, sys.gettrace(),
                   sys.getprofile(), len(sys.path), len(sys.path_hooks), faulthandler.is_enabled()),
        "warnings": (list(warnings.filters), warnings.showwarning, warnings.formatwarning),
        "environment": dict(os.environ),
        "signals": [signal.getsignal(s) for s in signal.valid_signals()],
        "numpy": (np.geterr(), np.get_printoptions()),
        "numba": {name: x for name, x in vars(numba.config).items() if name.isupper()},
        "allocator": mapped(),
        "modules": [name for name in sys.modules if name.startswith("s2s_")],
    }

before = settings()
import s2s
imported = settings()

def f(x):
    total = 0.0
    for i in range(len(x)):
        total += np.sin(x[i]) * x[i]
    return total

x = np.linspace(0.0, 1.0, 20)
for cache in (False, True):
    fast = s2s.jit(s2s.grad(f), cache=cache)
    assert np.allclose(fast(x), np.sin(x) + x * np.cos(x))
    assert np.allclose(fast(x[::-1]), (np.sin(x) + x * np.cos(x))[::-1])
s2s.dump(s2s.grad(f), sys.argv[1], x)
after = settings()
for later in (imported, after):
    for name in before:
        assert later[name] == before[name], (name, before[name], later[name])
if before["allocator"] is not None:
    assert before["allocator"] == 1
    if s2s.keep_freed_memory():  # what the program asks for, it gets
        assert mapped() == 0
"""


@pytest.mark.compile
def test_nothing_is_changed_at_import_and_by_compiling(tmp_path, monkeypatch):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "S2S_DUMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(file), str(tmp_path / "stages")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "stages").iterdir())
