"""The lock under which threads take turns at generating and compiling code.

Builders stand on one stack, and functions are shared between the stages that read them.  Threads
that call a function for the first time together wait for one of them to generate and compile its
code, which then serves all.  Calls of what is there already do not wait.

Generating code creates many small objects that refer to each other.  Python's collector scans the
young ones after every 700 allocations, which took a seventh of the time of generating code: while
somebody has the turn it scans less often, and then once at the end, which takes 2 to 10 ms; objects
from the first turns of a process are counted as old without a scan, for most of them stay.
Considered: to disable it, which would keep the garbage of the rest of the process from being
collected.

Note [Where frames are kept]
From 3.11 on Python keeps the frames of functions in chunks of 16 KiB, which it asks the system for,
and gives back as soon as the first frame in one is left.  Where a loop calls a function from the
end of a chunk, each call costs 8 microseconds, and whether one does is a matter of how deep the
caller stands: 10,000 such calls were 80 ms of a convolutional network's first call.  So code is
generated and compiled below a function that says it needs half a megabyte for its own: the chunk
that it gets is twice that, and the other half is enough for all that is called from there.

Note [Faults]
Whatever generates code takes a turn, so here is the one place where an exception that is no
refusal, a fault of s2s, is made one that names the program's line and says what to do (errors.py).

A fork waits as well, as `logging` has it: a child in which a lock is held by a thread that it does
not have would wait for ever.  To give the child new locks would leave it what that thread had half
done, in LLVM as well.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable

from ..errors import fault

ROOM = 1 << 16  # the frame size to reserve, in words
YOUNG = 200_000  # the collection threshold while generating
FIRST = 400_000  # so many objects are not scanned when a turn ends
# Python 3.12 begins with some 400 frozen objects; a program that freezes its own has 4,000 at the
# least
FROZEN = 1_000

_lock = threading.RLock()


class Turn:
    """A context in which no other thread generates or compiles.  Turns may be nested."""

    depth = 0  # the nesting depth of turns in the thread that has the lock
    unseen = 0  # objects that were not scanned when a turn ended

    def __enter__(self) -> None:
        _lock.acquire()
        if Turn.depth == 0:
            Turn.threshold = gc.get_threshold()
            if 0 < Turn.threshold[0] < YOUNG:  # 0: the program has disabled collection
                gc.set_threshold(YOUNG, *Turn.threshold[1:])
        Turn.depth += 1

    def __exit__(self, kind, error, place) -> None:
        Turn.depth -= 1
        # nobody else has changed it meanwhile
        if Turn.depth == 0 and gc.get_threshold()[0] == YOUNG:
            # the next object would be one too many, and have old ones looked through if it is their
            # turn: 50 ms
            if (young := gc.get_count()[0]) > Turn.threshold[0]:
                age_young_objects(young)
            gc.set_threshold(*Turn.threshold)
        _lock.release()
        # Note [Faults]
        if error is not None and Turn.depth == 0 and (own := fault(error)) is not None:
            raise own from error


def age_young_objects(young: int) -> None:
    """Let Python's garbage collector count from 0, and treat the objects created so far as old."""
    # objects that the program has frozen stay frozen
    if Turn.unseen + young < FIRST and gc.get_freeze_count() < FROZEN:
        Turn.unseen += young
        gc.freeze()
        gc.unfreeze()  # young objects become old
    else:
        gc.collect(0)


def taking_turns() -> Turn:
    """Hold the turn inside `with taking_turns():`."""
    return Turn()


def with_frames(function: Callable, *args, **kwargs):
    """Call `function` with a fresh chunk of frames.  Note [Where frames are kept]"""
    return function(*args, **kwargs)


if sys.version_info >= (3, 11) and sys.implementation.name == "cpython":
    with_frames.__code__ = with_frames.__code__.replace(co_stacksize=ROOM)


def in_turn(function: Callable) -> Callable:
    """Decorate `function`, which generates code, to run only while no other thread does."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        with Turn():
            return (function(*args, **kwargs) if Turn.depth > 1
                    else with_frames(function, *args, **kwargs))

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
