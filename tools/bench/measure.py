"""Times and memory of one case, each library in a process of its own, all of them in turns.

A process that holds another library's tape or its pool of memory is a different machine (autograd's
fragmented the heap until a gradient of 0.4 ms took 26), so each library lives in one of its own and
waits while the others run.  A round asks each in turn for a few calls; what is reported is the
median over the rounds, so that a busy moment of the machine disturbs a round, not a library.  The
clock is the process's CPU time unless wall time is asked for: on a machine that does other work as
well it is the one that repeats, and with one thread for each library they agree.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ENOUGH = 0.02  # seconds that a round of one library should take
ROUNDS = 15
PATIENCE = 4.0  # seconds after which a slow library is not asked again
OP_BY_OP = ("torch", "autograd")  # compile nothing: their first call is like any other


def work(connection, name: str, library: str, size, one_thread: bool, clock: str) -> None:
    """What a library's process does: answers `("run", which, count)` with seconds per call, until
    told to stop.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import libraries

    if one_thread:
        libraries.limit_threads()
    now = {"cpu": time.process_time, "wall": time.perf_counter}[clock]
    try:
        module = libraries.case(name)
        args = module.arguments(module.SIZE if size is None else size)
        calls = libraries.calls(module, library, args, one_thread)
        if library == "s2s":
            import s2s  # noqa: F401  what it costs to import is not part of the first call
        began = now()
        result = libraries.leaves(calls["gradient"]())
        first = now() - began
        connection.send(("ready", first, result, list(calls)))
        del result
        if library not in OP_BY_OP or first < PATIENCE / 10:
            for call in calls.values():
                call()
        while True:
            request = connection.recv()
            if request[0] == "stop":
                return
            if request[0] == "peak":
                connection.send(peak(calls["gradient"]))
                continue
            call, count = calls[request[1]], request[2]
            began = now()
            for _ in range(count):
                call()
            connection.send((now() - began) / count)
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception as error:  # what a library cannot do is a row of the table
        connection.send(("failed", f"{type(error).__name__}: {error}"))


def peak(call) -> int | None:
    """By how many bytes the process grows at most while `call` runs; None where the system does not
    tell.
    """
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        return None

    def read(field: str) -> int:
        return next(1024 * int(line.split()[1]) for line in status.read_text().splitlines()
                    if line.startswith(field))

    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier calls left in the pool counts as free
    reset.write_text("5")
    before = read("VmRSS")
    call()
    return read("VmHWM") - before


class Library:
    """One library's process, from the outside."""

    def __init__(self, name: str, library: str, size, one_thread: bool, clock: str):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work,
                                       args=(theirs, name, library, size, one_thread, clock),
                                       daemon=True)
        self.process.start()
        theirs.close()
        self.library, self.failed, self.counts, self.times = library, None, {}, {}
        answer = self.ask()
        if answer[0] == "failed":
            self.failed = answer[1]
        else:
            _, self.first, self.result, self.which = answer

    def ask(self, *request):
        if request:
            self.connection.send(request)
        try:
            return self.connection.recv()
        except EOFError:
            return "failed", "its process ended"

    def round(self) -> None:
        for which in self.which:
            if sum(self.times.get(which, ())) > PATIENCE:  # of calls of which one is a round
                continue
            if which not in self.counts:
                seconds = self.seconds("run", which, 1)
                self.counts[which] = max(1, min(100_000, round(ENOUGH / max(seconds, 1e-7))))
                if self.counts[which] == 1:
                    self.times[which] = [seconds]
                    continue
            self.times.setdefault(which, []).append(self.seconds("run", which, self.counts[which]))

    def seconds(self, *request) -> float:
        answer = self.ask(*request)
        if isinstance(answer, tuple):
            raise RuntimeError(f"{self.library}: {answer[1]}")
        return answer

    def median(self, which: str = "gradient") -> float | None:
        return statistics.median(self.times[which]) if self.times.get(which) else None

    def close(self) -> None:
        if self.process.is_alive():
            self.connection.send(("stop",))
            self.process.join(10)
        self.connection.close()


def disagreement(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest error, relative to the largest element of each result."""
    if len(found) != len(expected) or any(a.shape != b.shape for a, b in zip(found, expected)):
        return float("inf")
    worst = 0.0
    for a, b in zip(found, expected):
        scale = float(np.max(np.abs(b), initial=0.0)) or 1.0
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / scale)
    return worst


def measured(name: str, which: list[str], size=None, rounds: int = ROUNDS, one_thread: bool = True,
             clock: str = "cpu", memory: bool = True) -> dict:
    """What is known of a case: for each library its median seconds, first call and error against
    the first that ran; the peaks of s2s and of what is written by hand.
    """
    running = [Library(name, library, size, one_thread, clock) for library in which]
    found: dict = {"case": name, "libraries": {}}
    try:
        alive = [library for library in running if library.failed is None]
        for _ in range(rounds):
            for library in alive:
                library.round()
        for library in running:
            if library.failed is not None:
                found["libraries"][library.library] = {"failed": library.failed}
                continue
            entry = {
                **{
                    which: library.median(which)
                    for which in library.which
                }, "first": library.first,
                "error": disagreement(library.result, alive[0].result)
            }
            if memory and library.library in ("s2s", "hand"):
                entry["peak"] = library.ask("peak")
            found["libraries"][library.library] = entry
    finally:
        for library in running:
            library.close()
    return found
