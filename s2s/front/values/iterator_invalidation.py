"""What an iterator of the program reads, and whether that was written into since.

Python's iterators read when they are run over.  Here some of them are worked out at once (`filter`,
`accumulate`, a generator expression with an `if`), and all of them know their lengths at once; that
is the same as long as nothing that they read changes in between, and refused where it does.
"""

from __future__ import annotations

from ...ir.graph import Value
from ...ir.types import List
from ..domain.frame import Frame
from ..domain.functions import Local, Made
from ..domain.heap import Container
from ..syntax.liveness import read_names


class State(dict):
    """How far an iterator of the program is (front/control/iterators.py), which is a dict of the
    program's to what joins branches and loops.
    """


class Watch:
    """What some bindings lead to, as it is now."""

    def __init__(self, frame: Frame, bindings):
        bindings = list(bindings)
        self.contents, self.names = {}, []
        for binding in bindings:
            for cell in frame.cells_held(binding):
                for root in cell.roots:
                    if not is_state(root):
                        self.contents[root] = frame.heap.contents.get(root)
            self._look(binding)

    def _look(self, binding, seen=()) -> None:
        if not isinstance(binding, Made) or binding in seen:
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
        """The same, as it is now."""
        new = Watch(frame, ())
        new.contents = {root: frame.heap.contents.get(root) for root in self.contents}
        new.names = [(at, name, at.env.get(name)) for at, name, _ in self.names]
        return new

    def joined(self, others) -> Watch:
        """This and those of others."""
        for other in others:
            self.contents = {**other.contents, **self.contents}
            self.names += other.names
        return self

    def changed(self, frame: Frame) -> bool:
        """Whether anything of it was written into since, or bound anew."""
        return (any(_differs(then, frame.heap.contents.get(root))
                    for root, then in self.contents.items())
                or any(at.env.get(name) is not then for at, name, then in self.names))

    def resized(self, frame: Frame) -> bool:
        """Whether one of the lists may have another length since."""
        return any(
            _length_differs(then, frame.heap.contents.get(root))
            for root, then in self.contents.items())


def is_state(root) -> bool:
    """Whether a container only says how far an iterator is."""
    return isinstance(root, Container) and root.cls is State


def acted(frame: Frame, before: dict) -> bool:
    """Whether something wrote into what was there `before`, the heap's contents then."""
    return any(not is_state(root) and _differs(then, frame.heap.contents.get(root))
               for root, then in before.items())


def _differs(then, now) -> bool:
    return now is not then and not _is_packed(then, now)


def _is_packed(then, now) -> bool:
    """Whether a list of known length has only become one of run-time length."""
    return (isinstance(then, tuple) and isinstance(now, Value) and now.op is not None
            and now.op.name == "list_of" and len(now.op.inputs) == len(then))


def _length_differs(then, now) -> bool:
    if isinstance(then, dict):
        return len(then) != len(now)
    if isinstance(then, tuple) and isinstance(now, tuple):
        return len(then) != len(now)
    if not isinstance(now, Value) or not isinstance(now.type, List):
        return False
    while now is not then and now.op is not None and now.op.name == "list_set":
        now = now.op.inputs[0]
    return _differs(then, now)
