"""Workers that are processes, which run lanes in Python.

    run = in_processes(f, axis_name, count)      run(lanes) is [f(*args) for args in lanes]

This process starts the others, by a fork where that is safe: where the system has it, and no thread
runs here but the pools of s2s, which start anew in the child; else by `spawn`, for which `f` and
the arguments have to be pickled.  They meet at words of memory that all of them have
(meeting_point.py), and hand each other what their lanes show through a slab of memory for each,
piece by piece if it is longer.  One that raises sends its error; one that is killed is noticed, and
the others, who wait in vain, end.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Sequence
from multiprocessing import connection, shared_memory

import numpy as np

from ...errors import UnsupportedError
from ..workers import lanes_in_python, meeting_point
from ..workers.meeting_point import LEFT, LINE, OFFERS, PATIENCE, Team

SLAB = 1 << 20  # bytes that a worker shows at once


class WorkerDied(RuntimeError):
    """A process that runs lanes has ended without a word."""


class RemoteTraceback(Exception):
    """The traceback of an error in another process, as its text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Slabs:
    """The memory that `count` processes share: the words of their team, and a slab for each."""

    def __init__(self, count: int, cores: int, name: str | None = None):
        self.count, words = count, OFFERS + LINE * count
        self.memory = shared_memory.SharedMemory(name, name is None, 8 * words + SLAB * count)
        # by address: what refers to the memory itself would keep it from being closed
        start = np.frombuffer(self.memory.buf, np.uint8).ctypes.data
        shared = np.ctypeslib.as_array((ctypes.c_int64 * words).from_address(start))
        if name is None:
            shared[:] = 0
        self.team = Team(count, cores, shared)
        self.slabs = np.ctypeslib.as_array((ctypes.c_uint8 * (SLAB * count)).from_address(
            start + 8 * words)).reshape(count, SLAB)

    def others(self, k: int) -> Callable[[list], list]:
        """Return the function by which worker `k` learns what the lanes of all show."""
        lengths = self.team.shared[OFFERS::LINE]
        wait = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(
            meeting_point.address_of(meeting_point.MEET))
        row, shown_last = self.team.rows[k], [None]

        def meet() -> None:
            if wait(self.team.shared.ctypes.data, self.count, int(row[PATIENCE])):
                raise lanes_in_python.LaneEnded(f"{shown_last[0].call}, {shown_last[0].line}")

        def exchange(shown: list) -> list:
            shown_last[0] = shown[0]
            mine = np.frombuffer(pickle.dumps(shown, 5), np.uint8)
            lengths[k] = len(mine)
            pieces: list[list[bytes]] = [[] for _ in range(self.count)]
            start = 0
            while True:
                part = mine[start:start + SLAB]
                self.slabs[k, :len(part)] = part
                meet()
                longest = int(np.max(lengths))
                for other in range(self.count):
                    left = min(max(int(lengths[other]) - start, 0), SLAB)
                    pieces[other].append(self.slabs[other, :left].tobytes())
                meet()
                start += SLAB
                if start >= longest:
                    break
            return [each for found in pieces for each in pickle.loads(b"".join(found))]

        return exchange

    def close(self, last: bool) -> None:
        """Let go of the memory, and of all of it if this process is the last."""
        self.memory.close()
        if last:
            self.memory.unlink()


def work(k: int, f: Callable, lanes: Sequence[Sequence], first: int, n: int, axis_name: Hashable,
         slabs: Slabs) -> list:
    """Run the lanes of worker `k`, and leave the others."""
    try:
        return lanes_in_python.run_lanes(f, lanes, first, n, axis_name, slabs.others(k))
    finally:
        slabs.team.shared[LEFT] += 1


def serve(pipe, name: str, count: int, cores: int, task: bytes | tuple) -> None:
    """Be worker `k` in a process of its own, and send the results, or the error."""
    slabs = Slabs(count, cores, name)
    try:
        k, *given = pickle.loads(task) if isinstance(task, bytes) else task
        answer = (True, work(k, *given, slabs))
    except BaseException as error:  # of any kind: it is raised where the call came from
        answer = (False, (error, traceback.format_exc()))
    try:
        message = pickle.dumps(answer, 5)
        pickle.loads(message)
    except Exception as error:
        told = answer[1][1] if not answer[0] else repr(error)
        message = pickle.dumps((False, (RuntimeError(f"a worker's {told.splitlines()[-1]}"), told)))
    pipe.send_bytes(message)
    slabs.close(last=False)


def fork_is_safe() -> bool:
    """Whether a child has what it needs: no thread holds a lock here that it would wait for."""
    return (sys.platform == "linux" and hasattr(os, "fork")
            and all(thread is threading.current_thread() or thread.name.startswith("s2s-")
                    for thread in threading.enumerate()))


def run_in_processes(f: Callable, lanes: Sequence[Sequence], axis_name: Hashable, count: int,
                     cores: int) -> list:
    """Return f(*args) of all lanes, which so many processes share; this one is the first."""
    n = len(lanes)
    count = max(1, min(count, n))
    ends = [k * n // count for k in range(count + 1)]
    if count == 1:
        try:
            return lanes_in_python.run_lanes(f, lanes, 0, n, axis_name, lambda shown: shown)
        except lanes_in_python.LaneEnded as error:
            raise not_reached(error) from None
    meeting_point.ready()
    slabs = Slabs(count, cores)
    forks = fork_is_safe()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    processes, pipes = [], []
    try:
        for k in range(1, count):
            task = (k, f, lanes[ends[k]:ends[k + 1]], ends[k], n, axis_name)
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=serve, daemon=True, args=(
                sending, slabs.memory.name, count, cores, task if forks else pickled(task)))
            process.start()
            sending.close()
            processes.append(process)
            pipes.append(receiving)
        found = [None] * (count - 1)
        listener = threading.Thread(target=listen, args=(pipes, found, slabs), daemon=True,
                                    name="s2s-listener")
        listener.start()
        try:
            own = work(0, f, lanes[:ends[1]], 0, n, axis_name, slabs)
            error = None
        except BaseException as caught:  # of any kind: it may be another's fault
            own, error = [], caught
        listener.join()
        return own + results_of(found, error)
    finally:
        for process in processes:
            process.join(1)
            if process.is_alive():
                process.kill()
        slabs.close(last=True)


def pickled(task: tuple) -> bytes:
    """Return what a process that is not forked is given; UnsupportedError if it cannot be."""
    try:
        return pickle.dumps(task, 5)
    except Exception as error:
        raise UnsupportedError(f"workers that are processes started by spawn: {error}", None,
                               "define the function at the top of a module, or call it where no "
                               "other thread runs, so that processes are forked") from None


def listen(pipes: Sequence, found: list, slabs: Slabs) -> None:
    """Take what the processes send; one that ends without a word makes the others end, too."""
    waiting = {pipe: k for k, pipe in enumerate(pipes)}
    while waiting:
        for pipe in connection.wait(list(waiting)):
            k = waiting.pop(pipe)
            try:
                found[k] = pickle.loads(pipe.recv_bytes())
            except EOFError:
                slabs.team.shared[LEFT] += 1


def results_of(found: Sequence, error: BaseException | None) -> list:
    """Return the results of the processes, or raise the error of the first that has one of its own.
    """
    errors = [error]
    for k, answer in enumerate(found, 1):
        if answer is None:
            errors.append(WorkerDied(f"worker {k} has been killed, or has left its process"))
        elif not answer[0]:
            answer[1][0].__cause__ = RemoteTraceback(answer[1][1])
            errors.append(answer[1][0])
    for each in errors:
        if each is not None and not isinstance(each, lanes_in_python.LaneEnded):
            raise each
    for each in errors:
        if each is not None:
            raise not_reached(each)
    return [result for _, results in found for result in results]


def not_reached(error: lanes_in_python.LaneEnded) -> UnsupportedError:
    return UnsupportedError(f"a collective that not all lanes reach: {error}", None,
                            "call it where all lanes do alike")
