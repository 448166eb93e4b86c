"""Addresses of objects outside a program that are valid in another process.

    ("global", f, "helper")            Global(f.__globals__, "helper")
    ("code", ("read", that))           Code(helper)

A place is a tuple.  An object's place says how it is reached from the function that is called,
which is ("root",): by reading what a getter reads, or from a transformed function to the one
inside.  A getter's place says which getter it is, of an object at its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType, ModuleType

from ..front.syntax.captures import Closed, Fixed, Global, Item, Keys, Length, Member, Opened
from ..front.syntax.dependencies import (
    Absent,
    Classes,
    Code,
    Defaults,
    EqualShapes,
    Imported,
    Inside,
    Kind,
    Library,
    Present,
)
from ..ops.program.custom_rules import rules_given

ROOT = ("root",)
OF_FUNCTIONS = {"code": Code, "defaults": Defaults}
OF_GETTERS = {"length": Length, "keys": Keys, "kind": Kind, "library": Library, "inside": Inside,
              "equal shapes": EqualShapes, "opened": Opened, "classes": Classes}
WITH_NAMES = {"member": Member, "item": Item, "present": Present}


class NoAddress(Exception):
    """Raised for an object without an address that another process could resolve."""


class Places:
    """The addresses of the objects reachable from `root`, as far as they are `known`."""

    def __init__(self, root: Callable):
        self.objects: dict[int, tuple] = {}
        self.namespaces: dict[int, tuple] = {}
        self.cells: dict[int, tuple] = {}
        self.known: list = []  # keeps them alive, and with that their ids
        self.know(root, ROOT)

    def know(self, x, place: tuple) -> None:
        """Record that `x` is at this address, and what can be reached from it."""
        if id(x) in self.objects:
            return
        self.objects[id(x)] = place
        self.known.append(x)
        if isinstance(x, FunctionType):
            self.namespaces.setdefault(id(x.__globals__), place)
            for k, cell in enumerate(x.__closure__ or ()):
                self.cells.setdefault(id(cell), (place, k))
        elif is_transformed(x):
            self.know(x.inner, ("inner", place))

    def of_object(self, x) -> tuple:
        if isinstance(x, ModuleType) and sys.modules.get(x.__name__) is x:
            return "module", x.__name__
        return recorded_address(self.objects, x)

    def of_getter(self, getter: Callable) -> tuple:
        """Return the address of a getter; raise NoAddress where it reads something that cannot be
        reached yet.
        """
        for name, kind in OF_FUNCTIONS.items():
            if type(getter) is kind:
                return name, self.of_object(getter.function)
        for name, kind in OF_GETTERS.items():
            if type(getter) is kind:
                return name, self.of_getter(getter.of if hasattr(getter, "of") else getter.owner)
        match getter:
            case Global(namespace, name):
                return "global", recorded_address(self.namespaces, namespace), name
            case Absent(namespace, name):
                return "absent", recorded_address(self.namespaces, namespace), name
            case Closed(cell):
                return "closed", *recorded_address(self.cells, cell)
            case Member(owner, name) if type(getter) is Member:
                return "member", self.of_getter(owner), name
            case Present(owner, name):
                return "present", self.of_getter(owner), name
            case Item(owner, key) if type(key) in (int, str):
                return "item", self.of_getter(owner), key
            case Fixed(content) if type(getter) is Fixed:
                return "object", self.of_object(content)
            case Imported(name):
                return "imported", name
        if getter is rules_given:
            return ("rules",)
        raise NoAddress(repr(getter))


def recorded_address(places: dict[int, tuple], x) -> tuple:
    if id(x) not in places:
        raise NoAddress(type(x).__name__)
    return places[id(x)]


class Finder:
    """Resolution of addresses from `root` to objects and getters; raises for what does not exist
    any more.
    """

    def __init__(self, root: Callable):
        self.root = root
        self.getters: dict[tuple, Callable] = {}

    def object(self, place: tuple):
        match place:
            case ("root",):
                return self.root
            case ("inner", outer):
                return self.object(outer).inner
            case ("read", getter):
                return self.getter(getter)()
            case ("module", name):
                return sys.modules[name]
        raise NoAddress(place)

    def getter(self, place: tuple) -> Callable:
        if place not in self.getters:
            self.getters[place] = self._getter(place)
        return self.getters[place]

    def _getter(self, place: tuple) -> Callable:
        match place:
            case (name, function) if name in OF_FUNCTIONS:
                return OF_FUNCTIONS[name](self.object(function))
            case (name, getter) if name in OF_GETTERS:
                return OF_GETTERS[name](self.getter(getter))
            case (name, getter, key) if name in WITH_NAMES:
                return WITH_NAMES[name](self.getter(getter), key)
            case ("global", function, name):
                return Global(self.object(function).__globals__, name)
            case ("absent", function, name):
                return Absent(self.object(function).__globals__, name)
            case ("closed", function, k):
                return Closed(self.object(function).__closure__[k])
            case ("object", place):
                return Fixed(self.object(place))
            case ("imported", name):
                return Imported(name)
            case ("rules",):
                return rules_given
        raise NoAddress(place)


def is_transformed(x) -> bool:
    """Test whether `x` is a transformed function."""
    return hasattr(type(x), "function_for_types")
