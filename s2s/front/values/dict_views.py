"""Views of dicts with run-time keys, d.keys(), d.values() and d.items(), and what loops over dicts
and sets check after each trip: that they have neither grown nor shrunk.

A view shows the dict as it is when it is read; a loop over one fixes the keys, and reads each value
when its turn comes, as Python does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import gast

from ...ir.graph import OPERATORS
from ...library.containers import HashSet, Keyed, ListedTally, Set
from ...ops.core.record import RECORDS, value
from ..domain.frame import ExceptionObject, Frame
from ..domain.functions import FunctionValue, Method
from ..domain.heap import Container
from .dicts import Entries
from .exceptions import is_caught, throw
from .messages import raise_

RESIZED = "{} changed size during iteration"
REPLACED = "dictionary keys changed during iteration"


@dataclass(eq=False)
class KeyedView(FunctionValue):
    """What d.keys(), d.values() or d.items() is, of a dict with run-time keys."""

    of: Container
    listed: str  # the method that lists what it shows

    def held(self) -> Iterator:
        yield self.of

    def shown(self, frame: Frame):
        """The list of what it shows now."""
        return _call(frame, self.of, self.listed)


def _call(frame: Frame, of: Container, method: str, *args):
    frame = frame.session.active or frame
    return frame.session.call(frame, Method(getattr(of.cls, method), of), list(args), {}, None)


@dataclass(eq=False)
class SizeGuard(FunctionValue):
    """A dict or set that a loop runs over, whose size is compared after each trip."""

    of: Container
    size: object  # when the loop began; of a dict with run-time keys, with the number of places
    members: tuple = ()  # those of a set

    def held(self) -> Iterator:
        yield self.of

    def content(self, frame: Frame):
        """What is another object once something has been put in or taken out."""
        names = [name for cls, name in ((ListedTally, "_keys"), (Keyed, "_places"),
                                        (HashSet, "_members"), (Set, "_items"))
                 if issubclass(self.of.cls, cls)]
        return frame.heap.contents.get(self.of.members[names[0]].root)

    def failures(self, frame: Frame) -> Iterator[tuple]:
        """(flag, message) of what may have gone wrong in a trip that has changed the content."""
        unlike, size = OPERATORS["not_equal"], self.size
        if not issubclass(self.of.cls, Keyed):
            resized = RESIZED.format("Set")
            yield unlike(value(_call(frame, self.of, "__len__")), value(size)), resized
            for x in self.members:
                yield RECORDS["not_"](value(_call(frame, self.of, "__contains__", x))), resized
            return
        size, places = size
        yield (unlike(value(_call(frame, self.of, "__len__")), value(size)),
               RESIZED.format("dictionary"))
        if places is not None and self.of.members["_has_gaps"] is not False:
            yield unlike(value(_call(frame, self.of, "count_places")), value(places)), REPLACED


def guard_of(frame: Frame, of: Container, members: tuple = ()) -> SizeGuard:
    """The guard for a loop that begins to run over a dict with run-time keys, or a set."""
    size = _call(frame, of, "__len__")
    if issubclass(of.cls, Keyed):
        has_places = not issubclass(of.cls, ListedTally)
        size = size, _call(frame, of, "count_places") if has_places else None
    return SizeGuard(of, size, members)


class TripCheck:
    """What has to be checked after a trip of a loop over these bindings."""

    def __init__(self, frame: Frame, held: tuple):
        self.contents = {x: x.content(frame) for x in held if isinstance(x, SizeGuard)}
        self.keys = {id(x): (x, x.keys()) for x in held if isinstance(x, Entries)}

    def __bool__(self) -> bool:
        return bool(self.contents or self.keys)

    def run(self, frame: Frame, node: gast.AST, live: frozenset, branch) -> None:
        """Raise what Python raises if a dict or set has grown or shrunk in the trip."""
        for entries, keys in self.keys.values():
            now = entries.keys()
            if len(now) != len(keys):
                _raise(frame, node, RESIZED.format("dictionary"))
            elif now != keys:
                raise frame.refuse("a dict whose keys are replaced while a loop runs over it", node,
                                   "loop over a copy, e.g. list(d.items())")
        for guard, content in self.contents.items():
            if guard.content(frame) is content:
                continue
            for failed, message in guard.failures(frame):
                branch(frame, failed, lambda text=message: _raise(frame, node, text),
                       lambda: None, live)


def _raise(frame: Frame, node: gast.AST, text: str) -> None:
    thrown = ExceptionObject(RuntimeError, (text,), {})
    if is_caught(frame, RuntimeError):
        throw(frame, thrown)
    else:
        raise_(frame, node, thrown)
