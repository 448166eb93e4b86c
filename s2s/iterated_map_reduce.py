"""Training by batches: each batch is split over workers, what they make of it is added up, and a
new state follows.

    for i, batch in enumerate(batches):
        parts = [map(i, state, part) for part in workers' rows of batch]      at the same time
        state = update(i, sum(parts), state)
"""

from __future__ import annotations

import itertools
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from . import tree
from .api import jit
from .errors import ShapeMismatchError, TypeMismatchError, UnsupportedError
from .ops.program.workers import part_of_worker, total_of_parts
from .runtime.debug.progress import is_watched
from .runtime.threads.pool import threads

END = object()  # behind the last batch


class NotCompiledWarning(UserWarning):
    """Warning that workers run functions in Python that were to be compiled."""


def iterated_map_reduce(init, map: Callable, update: Callable, batches: Iterable,
                        workers: int | None = None, checkpoint: str | Path | None = None,
                        every: int = 1, progress: bool | None = None):
    """Return the state after all `batches`, from `init`: each batch is split over workers, and
    `state = update(i, total, state)`, where `total` is the sum of `map(i, state, part)` over the
    parts.

    `init` is a tree of numbers and arrays, `map` returns a tree that can be added, and each batch
    is a tree of arrays of one length, whose first axes are split: each of `workers` threads, by
    default `s2s.threads()`, takes as many rows as the others, or one more.  Parts are added up in
    order, so that two runs with equally many workers have the same bits.  Both functions are
    compiled, as by `jit`; what s2s refuses to read is run in Python, with a warning.

    The next batch is fetched while one is worked on.  `progress` says whether batches are counted
    on stderr; by default they are at a terminal.

    With `checkpoint`, a file, the state is saved there each `every` batches and at the end; where
    the file is there, a run goes on from what it holds, with as many workers, as if it had never
    ended, bit for bit: batches that it has had are left out, by their number if `batches` is a
    sequence, else by fetching them.  The file is replaced as a whole, and is read by pickle.

    Raises TypeMismatchError for a batch that has a number in it, or for another number of workers
    than that of the checkpoint, ShapeMismatchError for arrays of different lengths.

        def gradient(i, w, batch):
            x, y = batch
            return s2s.grad(loss)(w, x, y)

        w = s2s.iterated_map_reduce(w, gradient, lambda i, g, w: w - 0.1 * g, batches)
    """
    path = None if checkpoint is None else Path(checkpoint)
    done, state, count = 0, init, workers
    if path is not None and path.exists():
        done, state, count = pickle.loads(path.read_bytes())
        if workers not in (None, count):
            raise TypeMismatchError(f"the checkpoint {path} is of {count} workers, not of "
                                    f"{workers}", None, f"give workers={count}, or another file")
    count = threads() if count is None else count
    step = in_steps(map, update, count)
    saved = done
    counter = Counter(progress, batches, done)
    for i, batch in enumerate(prefetched(rest_of(batches, done)), done):
        require_rows(batch)
        state = step(i, state, batch)
        done = i + 1
        if path is not None and done % every == 0:
            saved = save(path, done, state, count)
        counter.show(done)
    if path is not None and saved != done:
        save(path, done, state, count)
    counter.end()
    return state


def in_steps(map: Callable, update: Callable, workers: int) -> Callable:
    """Return the function (i, state, batch) -> state: compiled, or where that is refused, run in
    Python.
    """
    def step(i, state, batch):
        part = part_of_worker(batch, workers)
        total = total_of_parts(map(i, state, part), len(tree.leaves(batch)[0]), workers)
        return update(i, total, state)

    compiled, refused = jit(step), []

    def run(i, state, batch):
        if not refused:
            try:
                return compiled(i, state, batch)
            except UnsupportedError as error:
                warnings.warn(f"iterated_map_reduce runs in Python: {error}", NotCompiledWarning,
                              stacklevel=3)
                refused.append(error)
        return update(i, in_python(map, i, state, batch, workers), state)

    return run


def in_python(map: Callable, i: int, state, batch, workers: int):
    """Return the sum of what `map` makes of the parts, by threads that run Python."""
    n = len(tree.leaves(batch)[0])
    busy = max(1, min(workers, n))
    parts = [tree.map(lambda x, k=k: x[k * n // busy:(k + 1) * n // busy], batch)
             for k in range(busy)]
    with ThreadPoolExecutor(busy) as pool:
        first, *others = pool.map(lambda part: map(i, state, part), parts)
    for other in others:
        first = tree.map(lambda a, b: a + b, first, other)
    return first


def require_rows(batch) -> None:
    """Refuse a batch whose arrays are not equally long."""
    lengths = {np.shape(x)[:1] for x in tree.leaves(batch) if x is not None}
    if () in lengths or not lengths:
        raise TypeMismatchError("a batch has a number in it, or no array", None,
                                "make it of arrays with a row for each case; what all cases share "
                                "is part of the state")
    if len(lengths) > 1:
        raise ShapeMismatchError("the arrays of a batch have the lengths "
                                 f"{', '.join(str(n) for n, in sorted(lengths))}", None,
                                 "give each a row for each case")


def rest_of(batches: Iterable, done: int) -> Iterator:
    """Return an iterator of the batches after so many."""
    if isinstance(batches, Sequence):
        return (batches[k] for k in range(done, len(batches)))
    return itertools.islice(iter(batches), done, None)


def prefetched(found: Iterator) -> Iterator:
    """Yield what `found` yields, the next of which a thread fetches meanwhile."""
    with ThreadPoolExecutor(1, "s2s-batches") as pool:
        ahead = pool.submit(next, found, END)
        while (batch := ahead.result()) is not END:
            ahead = pool.submit(next, found, END)
            yield batch


def save(path: Path, done: int, state, workers: int) -> int:
    """Replace the checkpoint, and return how many batches it holds: a run that is killed meanwhile
    leaves the one before.
    """
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        pickle.dump((done, state, workers), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    return done


class Counter:
    """The line on stderr that counts batches."""

    def __init__(self, wanted: bool | None, batches: Iterable, done: int):
        self.wanted = is_watched() if wanted is None else wanted
        self.of = f" of {len(batches)}" if isinstance(batches, Sequence) else ""
        self.begun, self.before, self.shown, self.done = time.monotonic(), done, 0.0, done

    def show(self, done: int, last: bool = False) -> None:
        now, self.done = time.monotonic(), done
        if self.wanted and (last or now - self.shown > 0.2) and done > self.before:
            self.shown, each = now, (now - self.begun) / (done - self.before)
            sys.stderr.write(f"\rbatch {done}{self.of}, {each:.3g} s each")
            sys.stderr.flush()

    def end(self) -> None:
        if self.wanted and self.done > self.before:
            self.show(self.done, last=True)
            sys.stderr.write("\n")
