"""Detect iterator invalidation: writes into what an iterator of the program reads, between its
creation and its use.

Python's iterators read lazily.  Here some of them are evaluated at once (`filter`, `accumulate`, a
generator expression with an `if`), and all of them fix their lengths at once; that is equivalent as
long as their sources do not change in between, and refused where they do.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.graph import MISSING, Value
from ...ir.types import List
from ..domain.frame import Frame
from ..domain.functions import FunctionValue, Local
from ..domain.heap import Cell, Container, Progress
from ..syntax.liveness import read_names


class State(dict):
    """The progress of an iterator of the program (front/control/iterators.py), as a dict that
    branches and loops join.
    """


class Watch:
    """A snapshot of the contents reachable from some bindings."""

    def __init__(self, frame: Frame, bindings):
        bindings = list(bindings)
        self.contents, self.names = {}, []
        for binding in bindings:
            for cell in frame.reachable_cells(binding):
                for root in cell.roots:
                    if not is_state(root):
                        self.contents[root] = frame.heap.contents.get(root)
            self._look(binding)

    def _look(self, binding, seen=()) -> None:
        if not isinstance(binding, FunctionValue) or binding in seen:
            return
        if isinstance(binding, Local):
            frame = binding.frame
            while frame is not None:
                self.names += [(frame, name, frame.env[name])
                               for name in sorted(read_names([binding.node])) if name in frame.env]
                frame = frame.lexical
        for inner in binding.held():
            self._look(inner, (*seen, binding))

    def again(self, frame: Frame) -> Watch:
        """A new snapshot of the same."""
        new = Watch(frame, ())
        new.contents = {root: frame.heap.contents.get(root) for root in self.contents}
        new.names = [(at, name, at.env.get(name)) for at, name, _ in self.names]
        return new

    def joined(self, others) -> Watch:
        """The union with other snapshots."""
        for other in others:
            self.contents = {**other.contents, **self.contents}
            self.names += other.names
        return self

    def changed(self, frame: Frame) -> bool:
        """Whether anything in it has been written into, or rebound, since."""
        return (any(_differs(then, frame.heap.contents.get(root))
                    for root, then in self.contents.items())
                or any(at.env.get(name) is not then for at, name, then in self.names))

    def resized(self, frame: Frame) -> bool:
        """Whether the length of one of the lists may have changed since."""
        return any(
            _length_differs(then, frame.heap.contents.get(root))
            for root, then in self.contents.items())


def is_state(root) -> bool:
    """Whether a container is the progress state of an iterator."""
    return isinstance(root, Container) and root.cls in (State, Progress)


def was_written(frame: Frame, before: dict) -> bool:
    """Whether something in the heap contents `before` has been written into since."""
    return any(not is_state(root) and _differs(then, frame.heap.contents.get(root))
               for root, then in before.items())


def _differs(then, now) -> bool:
    return now is not then and not _is_packed(then, now, _is_item)


def _is_packed(then, now, is_item: Callable) -> bool:
    """Whether a list of known length has only been converted to a run-time list, on all paths."""
    if not isinstance(then, tuple) or not isinstance(now, Value) or now.op is None:
        return False
    if now.op.name == "if":
        place = now.op.outputs.index(now)
        return all(_is_packed(then, block.yields[place], is_item) for block in now.op.blocks)
    return (now.op.name == "list_of" and len(now.op.inputs) == len(then)
            and all(map(is_item, then, now.op.inputs)))


def _is_item(item, x: Value) -> bool:
    """Whether `x` is what a list holds for this item; what is in a cell is compared as its content.
    """
    match item:
        case Value():
            return x is item
        case Cell() | Container():
            return True
        case tuple():
            return (x.op is not None and x.op.name == "tuple" and len(x.op.inputs) == len(item)
                    and all(map(_is_item, item, x.op.inputs))) or x.constant == item
    return x.constant is not MISSING and type(x.constant) is type(item) and x.constant == item


def _length_differs(then, now) -> bool:
    if isinstance(then, dict):
        return len(then) != len(now)
    if isinstance(then, tuple) and isinstance(now, tuple):
        return len(then) != len(now)
    if not isinstance(now, Value) or not isinstance(now.type, List):
        return False
    while now is not then and now.op is not None and now.op.name == "list_set":
        now = now.op.inputs[0]
    return now is not then and not _is_packed(then, now, lambda item, x: True)
