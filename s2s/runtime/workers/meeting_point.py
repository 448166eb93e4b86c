"""The place where workers meet: a barrier on words of memory that all of them have, in native code.

Each worker has a row of words of its own, `Worker`: its number, how many there are, and the address
of the words they share:

    ARRIVED     how many wait at the barrier
    TURN        how often it has opened
    LEFT        how many workers have ended, in whatever way
    OFFERS      for each worker a line: what it shows the others (exchange.py)

A worker that waits for one that has left waits in vain: so the barrier fails, and the worker ends,
too.  It spins for a while, if each worker has a core, then gives way to other threads, and at last
sleeps between looks.  Which row is that of a thread, Python's thread-specific storage knows; a
thread without any is alone.

Considered: Python's threading.Barrier, which takes 30 us and the lock; a futex, which other systems
than Linux lack, and which wakes no sooner than 50 us after it is asked to.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import binding

# words of a worker's row
NUMBER, COUNT, SHARED, PATIENCE = range(4)
# words that workers share, a cache line each
LINE = 8
ARRIVED, TURN, LEFT, OFFERS = range(0, 4 * LINE, LINE)
SPINS = 1000  # 10 to 50 us: a pause takes 40 cycles of some processors, 140 of others
TEAM, MEET = "s2s_worker", "s2s_meet"  # symbols in native code



class Parted(Exception):
    """A worker goes on without others: it is none of the program's errors."""


class WorkersDisagree(Parted):
    """Other workers are elsewhere in the program, or hold arrays of another shape."""


class LeftAlone(Parted):
    """A worker that this one waits for has ended."""


_python = ctypes.pythonapi
_python.PyThread_tss_alloc.restype = ctypes.c_void_p
_python.PyThread_tss_create.argtypes = [ctypes.c_void_p]
_python.PyThread_tss_set.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_python.PyThread_tss_get.argtypes = [ctypes.c_void_p]
_python.PyThread_tss_get.restype = ctypes.c_void_p
_key = _python.PyThread_tss_alloc()
_python.PyThread_tss_create(_key)
_compiling = threading.Lock()
_kept: list = []

TEXT = """
define i64 @{team}() {{
  %get = inttoptr i64 {get} to ptr
  %key = inttoptr i64 {key} to ptr
  %row = call ptr %get(ptr %key)
  %address = ptrtoint ptr %row to i64
  ret i64 %address
}}

define i64 @{meet}(i64 %shared, i64 %count, i64 %patience) {{
entry:
  %arrived = inttoptr i64 %shared to ptr
  %turn = getelementptr i64, ptr %arrived, i64 {turn}
  %left = getelementptr i64, ptr %arrived, i64 {left}
  %give.way = inttoptr i64 {give_way} to ptr
  %sleep = inttoptr i64 {sleep} to ptr
  %late = add i64 %patience, 20000
  %now = load atomic i64, ptr %turn seq_cst, align 8
  %before = atomicrmw add ptr %arrived, i64 1 seq_cst
  %number = add i64 %before, 1
  %last = icmp eq i64 %number, %count
  br i1 %last, label %open, label %wait
open:
  store atomic i64 0, ptr %arrived seq_cst, align 8
  %opened = atomicrmw add ptr %turn, i64 1 seq_cst
  ret i64 0
wait:
  %looks = phi i64 [ 0, %entry ], [ %more, %again ]
  %gone = load atomic i64, ptr %left seq_cst, align 8
  %then = load atomic i64, ptr %turn seq_cst, align 8
  %is.open = icmp ne i64 %then, %now
  br i1 %is.open, label %go.on, label %stay
go.on:
  ret i64 0
stay:
  %is.in.vain = icmp ne i64 %gone, 0
  br i1 %is.in.vain, label %give.up, label %pause
give.up:
  ret i64 1
pause:
  %more = add i64 %looks, 1
  {pause}
  %is.long = icmp sgt i64 %more, %patience
  br i1 %is.long, label %yield, label %again
yield:
  %is.late = icmp sgt i64 %more, %late
  br i1 %is.late, label %rest, label %let
let:
  call i32 %give.way()
  br label %again
rest:
  call i32 %sleep(i32 {nap})
  br label %again
again:
  br label %wait
}}
"""


def ready() -> None:
    """Define the symbols of the barrier for native code; the first call compiles it, in
    milliseconds.
    """
    with _compiling:
        if _kept:
            return
        if os.name == "nt":
            system = ctypes.windll.kernel32
            give_way, sleep, nap = system.SwitchToThread, system.Sleep, 1
        else:
            system = ctypes.CDLL(None)
            give_way, sleep, nap = system.sched_yield, system.usleep, 50
        is_x86 = platform.machine().lower() in ("x86_64", "amd64")
        pause = "call void @llvm.x86.sse2.pause()" if is_x86 else ""
        text = TEXT.format(team=TEAM, meet=MEET, get=_address(_python.PyThread_tss_get), key=_key,
                           turn=TURN, left=LEFT, give_way=_address(give_way),
                           sleep=_address(sleep), nap=nap, pause=pause)
        text += "declare void @llvm.x86.sse2.pause()" if is_x86 else ""
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(opt=2)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
        engine.finalize_object()
        _kept.append(engine)
        for symbol in (TEAM, MEET):
            binding.add_symbol(symbol, engine.get_function_address(symbol))


def address_of(symbol: str) -> int:
    """Return the address of the native function of this name."""
    ready()
    return _kept[0].get_function_address(symbol)


def _address(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value


class Team:
    """The words of `count` workers, which all have `cores` cores: those in `shared`, if that is
    given.
    """

    def __init__(self, count: int, cores: int, shared: np.ndarray | None = None):
        self.shared = np.zeros(OFFERS + LINE * count, np.int64) if shared is None else shared
        self.rows = np.zeros((count, LINE), np.int64)
        self.rows[:, NUMBER], self.rows[:, COUNT] = range(count), count
        self.rows[:, SHARED] = self.shared.ctypes.data
        self.rows[:, PATIENCE] = SPINS if count <= cores else 0

    def enter(self, k: int) -> None:
        """Make this thread worker `k`."""
        _python.PyThread_tss_set(_key, self.rows[k].ctypes.data)

    def leave(self) -> None:
        """Make this thread no worker any more, for which the others do not wait."""
        _python.PyThread_tss_set(_key, None)
        self.shared[LEFT] += 1


def is_worker() -> bool:
    """Whether this thread is one of several workers."""
    return _python.PyThread_tss_get(_key) is not None


@contextmanager
def by_itself() -> Iterator[None]:
    """Let this thread be no worker for a while, though it is one of several."""
    row = _python.PyThread_tss_get(_key)
    _python.PyThread_tss_set(_key, None)
    try:
        yield
    finally:
        _python.PyThread_tss_set(_key, row)
