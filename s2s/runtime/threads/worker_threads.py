"""Workers that are threads of this process: each runs the same native code, at the same time.

    run = in_workers(call, 2)        run(*args) is call(*args), by two threads at once

The caller is the first worker; the others are threads that wait between calls for their next one.
The result is that of the first worker that ends well, for all have the same.  One that raises ends
the call, with its error; one that goes on in Python, where a program is run once more to find the
line of an error, computes for all, and the others end.  Workers that disagree, as where one has
found lengths that others have not, leave the call to one.

A fork leaves the child without threads, and so without workers, until it asks for them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import queue
import threading
from collections.abc import Callable, Sequence

from ...lazy_import import later
from . import pool

meeting_point = later("s2s.runtime.workers.meeting_point")

_idle: list[Thread] = []  # threads that wait


class OneBlasThread:
    """Context manager: SciPy's BLAS uses one thread, that of the worker which calls it, as long as
    some call runs in workers.
    """

    def __init__(self):
        self.lock, self.inside, self.before = threading.Lock(), 0, 0

    @functools.cached_property
    def controls(self) -> tuple[Callable, Callable]:
        """The functions that get and set the number of threads."""
        get, set_ = pool.blas_controls()
        return ((ctypes.CFUNCTYPE(ctypes.c_int)(get), ctypes.CFUNCTYPE(None, ctypes.c_int)(set_))
                if get else (lambda: 1, lambda n: None))

    def __enter__(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                get, set_ = self.controls
                self.before = get()
                set_(1)

    def __exit__(self, *exc) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.controls[1](self.before)


one_blas_thread = OneBlasThread()


class Thread:
    """A thread that runs what it is handed, in a queue, until the process ends."""

    def __init__(self):
        self.tasks: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self.serve, name="s2s-worker", daemon=True).start()

    def serve(self) -> None:
        while True:
            self.tasks.get()()


def _without_threads() -> None:
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_threads)


def in_workers(call: Callable, wanted: int) -> Callable:
    """Return a function that runs `call` in so many workers; 0 are as many as `s2s.threads()`."""

    @functools.wraps(call, updated=())
    def run(*args):
        count = wanted or pool.threads()
        if count == 1:
            return call(*args)
        if meeting_point.is_worker():  # the others are not called
            with meeting_point.by_itself():
                return call(*args)
        return together(call, args, count)

    return run


def together(call: Callable, args: Sequence, count: int):
    """Run `call(*args)` in `count` workers, of which this thread is the first."""
    team = meeting_point.Team(count, pool.usual_threads())
    ended: queue.SimpleQueue = queue.SimpleQueue()
    results: list = [None] * count
    errors: list[BaseException | None] = [None] * count

    def work(k: int) -> None:
        team.enter(k)
        try:
            results[k] = call(*args)
        except BaseException as error:  # of any kind: it is raised where the call came from
            errors[k] = error
        finally:
            team.leave()

    def serve(k: int) -> None:
        try:
            work(k)
        finally:
            ended.put(k)

    try:
        threads = [_idle.pop() if _idle else Thread() for _ in range(count - 1)]
    except RuntimeError:  # no more threads
        return call(*args)
    with one_blas_thread:
        for k, thread in enumerate(threads, 1):
            thread.tasks.put(functools.partial(serve, k))
        work(0)
        for _ in threads:
            ended.get()
    _idle.extend(threads)
    return outcome(results, errors, lambda: call(*args))


def outcome(results: Sequence, errors: Sequence[BaseException | None], again: Callable):
    """Return the result of workers, or raise the error of the first that has one of its own."""
    for error in errors:
        if error is not None and not isinstance(error, meeting_point.Parted):
            raise error
    for result, error in zip(results, errors):
        if error is None:
            return result
    return again()
