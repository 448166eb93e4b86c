"""Thread pool of parallel loops, and the native code that distributes the parts.

A parallel loop is a kernel `kernel(context, part, start, stop)` and a number of parts
(parallel_for.py).  The thread that comes to it takes parts, and so do the pool's workers, each the
next one that nobody has taken, until none is left.  Which thread makes which part has no influence
on any result.

Three designs were weighed.  Numba's prange takes a second to compile, and its workqueue ends the
process when two threads use it at once, its OpenMP after a fork.  A ThreadPoolExecutor needs Python
between any two loops, the lock for each hand-over (up to 5 ms where another thread computes in
Python), and cannot help a loop inside a loop that must run in order.  So workers are Python threads
that wait inside native code, without the lock, on Python's own thread locks, which every platform
has: waking one costs a few microseconds, from wherever compiled code is.

* The pool serves one loop at a time.  Whoever finds it taken, another caller or a loop inside a
  part, runs all its parts itself: nobody ever waits for a worker that is busy elsewhere.
* A worker that wakes after all parts are taken goes back to sleep, and is not waited for: on a
  loaded machine the loop takes as long as it does on one core, not longer.
* A fork leaves the child without workers, which start again when they are first wanted.

The state is an array of 64-bit words, which native code (pool_native.py) changes by atomic
instructions:

    TAKEN       1 while a loop has the pool
    DOOR        how many workers are in the loop that has it, plus CLOSED once no part is left
    NEXT        the next part;  FAILED: whether some part raised, after which none is begun
    BED[k]      1 while worker k sleeps on its lock, KEY[k]
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from itertools import product
from pathlib import Path

import numpy as np

MOST = 128  # threads
CLOSED = 1 << 32
# spins before a thread sleeps until the last worker has left: about 10 us
PATIENCE = 4000
# one cache line each
(TAKEN, DOOR, NEXT, PARTS, TRIPS, KERNEL, CONTEXT, FAILED, WANTED, WORKERS, ALONE, GET_BLAS,
 SET_BLAS) = range(0, 8 * 13, 8)
BED, KEY = 8 * 13, 8 * 13 + MOST
WORDS = 8 * 13 + 2 * MOST

state = np.zeros(WORDS, np.int64)
python = ctypes.pythonapi
python.PyThread_allocate_lock.restype = ctypes.c_void_p
python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
kept: list = []  # the native worker, and what native code refers to

# --------------------------------------------------------------------------------- how many threads


def usual_threads() -> int:
    """S2S_THREADS, or the number of cores that this process may use."""
    try:
        return max(1, int(os.environ["S2S_THREADS"]))
    except (KeyError, ValueError):
        pass
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def set_threads(n: int | None) -> int:
    """Let compiled loops run on at most `n` threads, including the calling one; return the previous
    number.

    None means the initial number: S2S_THREADS, or the cores that this process may use.  It applies
    to the process, from the next loop on.  Results do not depend on it, not even in the last bit.
    Raises ValueError for n < 1.
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
        raise ValueError(
            f"set_threads: the number of threads is a positive integer or None, not {n!r}")
    before = threads()
    state[WANTED] = min(usual_threads() if n is None else int(n), MOST)
    return before


def threads() -> int:
    """The number of threads that compiled loops may use."""
    return int(state[WANTED])


# ------------------------------------------------------------------------------------------ workers


def _new_lock() -> int:
    """The address of a new lock, acquired."""
    lock = python.PyThread_allocate_lock()
    python.PyThread_acquire_lock(lock, 0)
    return lock


def start_workers() -> None:
    """Start the missing workers; called by native code while it owns the pool."""
    while state[WORKERS] < state[WANTED] - 1:
        k = int(state[WORKERS])
        state[KEY + k] = _new_lock()
        thread = threading.Thread(target=kept[0], args=(k,), name=f"s2s-{k + 1}", daemon=True)
        try:
            thread.start()
        # no more threads, or shutdown: continue with the existing ones
        except RuntimeError:
            state[WANTED] = k + 1
            return
        state[WORKERS] = k + 1


def _without_workers() -> None:
    """Reset the pool to its initial state, as in the child of a fork."""
    state[[TAKEN, WORKERS]] = 0
    state[BED:BED + MOST] = 0
    state[DOOR] = CLOSED
    state[ALONE] = _new_lock()


def blas_controls() -> tuple[int, int]:
    """The addresses of the functions that get and set the thread count of SciPy's OpenBLAS; 0 if
    there are none.
    """
    found = importlib.util.find_spec("scipy")
    root = Path(found.origin).parent if found is not None and found.origin else None
    folders = [root.parent / "scipy.libs", root / ".dylibs"] if root is not None else []
    for file in sorted(file for folder in folders for file in folder.glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for prefix, suffix in product(("scipy_", ""), ("", "64_")):
            names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                kept.append(library)
                get, set_ = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value
                             for name in names)
                return get, set_
    return 0, 0


_without_workers()
set_threads(None)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_workers)
