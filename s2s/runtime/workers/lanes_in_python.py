"""Lanes that Python runs: a thread for each, which meets the others at collectives.

    results = run_lanes(f, arguments, first, n, "i", others)

A worker runs its lanes, of which `first` is the number of the first, and `n` that of all lanes.
`others(shown)` hands what its lanes show to the other workers, and returns what all lanes show, in
order.  What lanes show is where they are in the program, and a tree: if they are at different
collectives, or their trees or arrays differ in shape or dtype, each says so, with both lines.  A
lane that ends while others wait for it ends them, too.

A collective is computed by each lane of what all have, in the order of lanes, so that all have the
same bits.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ... import tree
from ...ops.program.lane_in_python import here

PACKAGE = str(Path(__file__).parents[2])


class LanesDisagreeError(ValueError):
    """Lanes are at different collectives, or hold arrays of different shape or dtype."""


class LaneEnded(Exception):
    """Another lane has ended, or raised, and never comes to where this one waits."""


@dataclass
class Shown:
    """What a lane shows at a collective: which, where, what it has, and of what kind that is."""

    call: str
    line: str
    kind: tuple
    content: object


class Meeting:
    """Where the lanes of one worker meet: the last to come hands what all show to the others."""

    def __init__(self, count: int, others: Callable[[list], list]):
        self.count, self.others = count, others
        self.shown: list = [None] * count
        self.turn, self.arrived, self.ended = 0, 0, False
        self.found: list = []
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    def all(self, k: int, shown: Shown) -> list[Shown]:
        """Return what all lanes show, of which lane `k` of this worker shows this."""
        with self.changed:
            self.shown[k], turn = shown, self.turn
            self.arrived += 1
            if self.arrived < self.count:
                while self.turn == turn and not self.ended:
                    self.changed.wait()
            else:
                try:
                    self.found, self.error = self.others([*self.shown]), None
                except BaseException as error:
                    self.error = error
                self.turn, self.arrived = self.turn + 1, 0
                self.changed.notify_all()
            if self.turn == turn:
                raise LaneEnded(f"{shown.call}, {shown.line}")
            if self.error is not None:
                raise self.error
            return self.found

    def end(self) -> None:
        """Note that a lane comes no more."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()


class Lane:
    """What answers in the thread of a lane: the functions of `s2s.lax`."""

    def __init__(self, meeting: Meeting, k: int, number: int, count: int, axis_name: Hashable):
        self.meeting, self.k, self.number, self.count = meeting, k, number, count
        self.axis_name = axis_name

    def all(self, call: str, x) -> list:
        """Return what all lanes have, each a tree of arrays like `x`."""
        kind = (str(tree.structure(x)), [(np.shape(leaf), np.asarray(leaf).dtype.str)
                                         for leaf in tree.leaves(x)])
        found = self.meeting.all(self.k, Shown(call, line_outside(), kind, x))
        for n, other in enumerate(found):
            if (other.call, other.kind) != (call, kind):
                raise LanesDisagreeError(
                    f"lane {self.number} calls {call} of {described(kind)} ({line_outside()}), and "
                    f"lane {n} calls {other.call} of {described(other.kind)} ({other.line})")
        return [other.content for other in found]

    def by_leaf(self, call: str, rule: Callable, x):
        return tree.map(lambda *leaves: rule(leaves), *self.all(call, x))

    def axis_size(self) -> int:
        return self.count

    def axis_index(self) -> np.int64:
        return np.int64(self.number)

    def psum(self, x):
        return self.by_leaf("psum", total, x)

    def pmean(self, x):
        return self.by_leaf("pmean", lambda xs: total(xs) / self.count, x)

    def pmax(self, x):
        return self.by_leaf("pmax", lambda xs: np.max(np.stack(xs), axis=0), x)

    def pmin(self, x):
        return self.by_leaf("pmin", lambda xs: np.min(np.stack(xs), axis=0), x)

    def all_gather(self, x, axis: int, tiled: bool):
        join = np.concatenate if tiled else np.stack
        return self.by_leaf("all_gather", lambda xs: join(xs, axis=axis), x)

    def psum_scatter(self, x, axis: int, tiled: bool):
        return self.by_leaf("psum_scatter", lambda xs: self.part(total(xs), axis, tiled), x)

    def all_to_all(self, x, split: int, concat: int, tiled: bool):
        join = np.concatenate if tiled else np.stack
        return self.by_leaf("all_to_all", lambda xs: join(
            [self.part(each, split, tiled) for each in xs], axis=concat), x)

    def ppermute(self, x, pairs: Sequence):
        sources = {int(target): int(source) for source, target in pairs}
        if len(sources) < len(pairs) or len({*sources.values()}) < len(pairs):
            raise ValueError("ppermute names a lane twice, or a negative one")
        source = sources.get(self.number)
        return self.by_leaf("ppermute", lambda xs: np.zeros_like(xs[0]) if source is None
                            else xs[source], x)

    def part(self, x, axis: int, tiled: bool):
        """Return this lane's part of `x` along an axis: a row, or as many as there are for each."""
        n = np.shape(x)[axis]
        if n % self.count or not tiled and n != self.count:
            raise ValueError(f"{n} rows are handed out to {self.count} lanes: a row for each is "
                             "needed")
        part = np.split(x, self.count, axis)[self.number]
        return part if tiled else np.squeeze(part, axis)


def total(xs: Sequence):
    """Return the sum, in order; truth values are counted."""
    first = np.asarray(xs[0])
    found = (first.astype(np.int64) if first.dtype == bool else first)[()]
    for x in xs[1:]:
        found = found + x
    return found


def described(kind: tuple) -> str:
    """Name the arrays of a tree."""
    return ", ".join(f"{np.dtype(dtype).name}{list(shape)}" for shape, dtype in kind[1]) or "none"


def line_outside() -> str:
    """Return the file and line of the program that calls this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"


def run_lanes(f: Callable, arguments: Sequence[Sequence], first: int, n: int, axis_name: Hashable,
              others: Callable[[list], list]) -> list:
    """Return f(*args) for each of the arguments, which are those of the lanes from `first` on."""
    meeting = Meeting(len(arguments), others)
    results: list = [None] * len(arguments)
    errors: list[BaseException | None] = [None] * len(arguments)

    def run(k: int, args: Sequence) -> None:
        here.lane = Lane(meeting, k, first + k, n, axis_name)
        try:
            results[k] = f(*args)
        except BaseException as error:  # of any kind: it is raised where the call came from
            errors[k] = error
        finally:
            here.lane = None
            meeting.end()

    threads = [threading.Thread(target=run, args=(k, args)) for k, args in enumerate(arguments)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in sorted(filter(None, errors), key=lambda error: isinstance(error, LaneEnded)):
        raise error  # one of the program's, if there is any
    return results
