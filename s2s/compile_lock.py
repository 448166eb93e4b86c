"""The lock under which threads take turns at generating and compiling code.

Builders stand on one stack, and functions are shared between the stages that read them.  Threads
that call a function for the first time together wait for one of them to generate and compile its
code, which then serves all.  Calls of what is there already do not wait.

Nothing of the process is changed meanwhile.

Considered: to scan less often for garbage while code is generated (`gc.set_threshold`), for
Python's collector scans the young objects after every 700 allocations, which takes a seventh of the
time of generating code; and to give the frames a chunk of their own, for where a loop calls a
function from the end of one of Python's chunks, each call costs 8 microseconds. The threshold
belongs to the program, whose other threads would be scanned less often, too.

Note [Faults]
Whatever generates code takes a turn, so here is the one place where an exception that is no
refusal, a fault of s2s, is made one that names the program's line and says what to do (errors.py).

A fork waits as well, as `logging` has it: a child in which a lock is held by a thread that it does
not have would wait for ever.  To give the child new locks would leave it what that thread had half
done, in LLVM as well.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable

from .errors import fault

_lock = threading.RLock()


class Turn:
    """A context in which no other thread generates or compiles.  Turns may be nested."""

    depth = 0  # the nesting depth of turns in the thread that has the lock

    def __enter__(self) -> None:
        _lock.acquire()
        Turn.depth += 1

    def __exit__(self, kind, error, place) -> None:
        Turn.depth -= 1
        is_last = Turn.depth == 0
        _lock.release()
        # Note [Faults]
        if error is not None and is_last and (own := fault(error)) is not None:
            raise own from error


def taking_turns() -> Turn:
    """Hold the turn inside `with taking_turns():`."""
    return Turn()


def in_turn(function: Callable) -> Callable:
    """Decorate `function`, which generates code, to run only while no other thread does."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        with Turn():
            return function(*args, **kwargs)

    return run


class cached_in_turn:
    """A cached property whose first evaluation holds the turn.

    In some versions of Python, `functools.cached_property` has a lock of its own: a thread waiting
    for the turn while holding it would block the thread that has the turn, and a fork would not
    wait for it.
    """

    def __init__(self, make: Callable):
        self.make, self.__doc__ = make, make.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        name, found = self.make.__name__, vars(instance)
        with Turn():
            if name not in found:
                found[name] = self.make(instance)
        return found[name]


held_at_fork: list = [_lock]  # in this order; the runtime adds Numba's lock
_held: list = []  # held by the forking thread


def _before() -> None:
    found = list(held_at_fork)
    for lock in found:
        lock.acquire()
    _held.extend(found)


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
