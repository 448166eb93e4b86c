"""Threads take turns at generating and compiling code.

Builders stand on one stack, and functions are shared between the stages that read them.  Threads that call a function
for the first time together wait for one of them to generate and compile its code, which then serves all.  Calls of what is there
already do not wait.

A fork waits as well, as `logging` has it: a child in which a lock is held by a thread that it does not have would wait for
ever.  To give the child new locks would leave it what that thread had half done, in LLVM as well.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable

_lock = threading.RLock()


def taking_turns() -> threading.RLock:
    """`with taking_turns():` no other thread generates or compiles."""
    return _lock


def in_turn(function: Callable) -> Callable:
    """`function`, which generates code: it runs when no other thread does."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        with _lock:
            return function(*args, **kwargs)

    return run


_held: list = []  # by the thread that is forking


def _before() -> None:
    numba = sys.modules.get("numba.core.compiler_lock")
    found = [_lock] if numba is None else [_lock, numba.global_compiler_lock]
    for lock in found:
        lock.acquire()
    _held.extend(found)


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
