"""State outside: places of captured objects that the program writes to, such as `self.nfev` or
`history`.

A write is carried out by an op (ops/program/outside_writes.py).  What is written and read by one
call is also a binding of the program, so that it carries derivatives and is joined where paths
meet: the members of one Container that every activation can reach.  Which places these are is
known once the program has been run on abstract values; then it is run again with them.

Considered: to make all of a captured object one of the program's.  Its every array would be an
argument of each call.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import ModuleType

from ..syntax.captures import Closed, Global, Item, Keys, Length, Member

ALL = object()  # the key of a place: any item of a list, dict or set
PROPERTIES = (0, "properties")  # stands for all that properties of objects outside may read


class NeedsTracking(Exception):
    """Signal that a place is both read and written, and its binding has to be kept."""

    def __init__(self, place: tuple, getter: Callable, name: str):
        super().__init__(name)
        self.place, self.getter, self.name = place, getter, name


def nothing_there():
    """The getter of PROPERTIES, which stand for other places and hold nothing."""
    raise LookupError("properties")


def home(owner) -> int:
    """The identity of what holds a place: a module is the dict of its variables."""
    return id(vars(owner) if isinstance(owner, ModuleType) else owner)


def place_of(getter: Callable) -> tuple[int, Hashable] | None:
    """The place that a getter reads; None if no program can write to it."""
    match getter:
        case Member(owner, name):
            return home(owner()), name
        case Item(owner, key):
            return place_of_item(owner(), key)
        case Length(owner) | Keys(owner):
            return home(owner()), ALL
        case Global(namespace, name):
            return id(namespace), name
        case Closed(cell):
            return id(cell), "cell_contents"
    return None


def place_of_item(owner, key) -> tuple[int, Hashable]:
    """The place of `owner[key]`; counted from the end it may be any item: it has two keys."""
    from_end = isinstance(owner, (list, deque)) and isinstance(key, int) and key < 0
    return home(owner), ALL if from_end else key


def module_of(namespace: dict) -> ModuleType | None:
    """The module whose variables these are."""
    module = sys.modules.get(namespace.get("__name__"))
    return module if module is not None and vars(module) is namespace else None


def meet(places: set[tuple], others) -> bool:
    """Whether some of `places` are among others; ALL stands for any item of an object."""
    return any(owner == other and (key == another or ALL in (key, another))
               for owner, key in places for other, another in others)


@dataclass(eq=False)
class Outside:
    """The places that one build reads and writes."""

    # place -> its getter and name: their bindings are kept
    tracked: dict[tuple, tuple[Callable, str]] = field(default_factory=dict)
    read: dict[tuple, tuple[Callable, str]] = field(default_factory=dict)
    written: set[tuple] = field(default_factory=set)
    asked: set[tuple] = field(default_factory=set)  # those of which it asks whether they are there
    bound: set[tuple] = field(default_factory=set)  # those written that are bound anew
    inner: set[tuple] = field(default_factory=set)  # those that transformed callees write to
    properties: bool = False  # whether it reads properties of objects
    state: object = None  # the Container of the bindings of what is tracked

    def note_property(self) -> bool:
        """Record that the program reads a property of an object outside; whether it is run as a
        part of the program, which writes to what it may read.
        """
        self.properties = True
        return bool(self.written) or PROPERTIES in self.tracked

    def note_read(self, place: tuple, getter: Callable, name: str) -> bool:
        """Record that the program reads a place; whether it is refused, as it writes to some item
        there.
        """
        self.read.setdefault(place, (getter, name))
        if meet({place}, self.inner):
            return True
        if place in self.written and place not in self.tracked and place[1] is not ALL:
            raise NeedsTracking(place, getter, name)
        return self._meets(place, self.written)

    def note_write(self, place: tuple) -> bool:
        """Record that the program writes to a place; whether it is refused, as it reads all items
        there, or some.
        """
        self._add(place)
        if place in self.read and place not in self.tracked and place[1] is not ALL:
            raise NeedsTracking(place, *self.read[place])
        return self._meets(place, self.read)

    def note_array(self, getter: Callable, name: str) -> None:
        """Record that the program writes into the captured array that `getter` reads."""
        place = place_of(getter)
        self._add(place)
        if place not in self.tracked:
            raise NeedsTracking(place, getter, name)

    def _add(self, place: tuple) -> None:
        self.written.add(place)
        if self.properties and PROPERTIES not in self.tracked:
            raise NeedsTracking(PROPERTIES, nothing_there, "properties")

    def _meets(self, place: tuple, others) -> bool:
        """Whether a place is among others, one of which means all items."""
        return (place[0], ALL) in others or place[1] is ALL and any(
            owner == place[0] for owner, _ in others)
