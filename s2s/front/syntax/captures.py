"""Captured values: closure cells, globals, attributes of objects, each with a getter.

Modules, functions, strings, None are resolved when code is generated.  Numbers and arrays are data:
they become trailing parameters of the function, each with a getter that reads the value at every
call.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ...errors import UnsupportedError
from ...ir.treedef import form_of, has_members, is_container
from ...ir.types import (
    GENERATOR,
    RANDOM_STATE,
    Array,
    Scalar,
    Static,
    Tuple,
    Type,
    dims_of_argument,
)
from ...ops.core.record import type_of_constant

HEAP_TYPE = 1 << 9  # the flag of classes that a program defines
PROTOCOLS = ("__array_ufunc__", "__array_function__", "__array_wrap__", "__array_prepare__",
             "__getattribute__")
HARMLESS = {  # attributes for creation, display and storage of arrays, which compute nothing
    "__array_finalize__", "__array_priority__", "__class_getitem__", "__copy__", "__deepcopy__",
    "__del__", "__dict__", "__dir__", "__doc__", "__format__", "__getstate__", "__init__",
    "__init_subclass__", "__module__", "__new__", "__reduce__", "__reduce_ex__", "__repr__",
    "__setattr__", "__setstate__", "__sizeof__", "__slots__", "__str__", "__weakref__", "copy"
}


@dataclass(frozen=True, eq=False)
class Global:
    """A getter of a global variable."""

    namespace: dict
    name: str

    def __call__(self):
        return self.namespace[self.name]

    def __eq__(self, other) -> bool:
        return (isinstance(other, Global) and self.namespace is other.namespace
                and self.name == other.name)

    def __hash__(self) -> int:
        return hash((id(self.namespace), self.name))


@dataclass(frozen=True, eq=False)
class Closed:
    """A getter of a closure cell."""

    cell: types.CellType

    def __call__(self):
        return self.cell.cell_contents

    def __eq__(self, other) -> bool:
        return isinstance(other, Closed) and self.cell is other.cell

    def __hash__(self) -> int:
        return hash(id(self.cell))


@dataclass(frozen=True)
class Member:
    """A getter of an attribute of the object that another getter reads."""

    owner: Callable
    name: str

    def __call__(self):
        return getattr(self.owner(), self.name)


@dataclass(frozen=True)
class Item:
    """A getter of an item of the dict or list that another getter reads."""

    owner: Callable
    key: object

    def __call__(self):
        return self.owner()[self.key]


@dataclass(frozen=True)
class Length:
    """A getter of the length of the dict or list that another getter reads."""

    owner: Callable

    def __call__(self):
        return len(self.owner())


@dataclass(frozen=True)
class Super:
    """A getter of the object that another getter reads, seen as a base class of `kind`."""

    owner: Callable
    kind: type

    def __call__(self):
        return super(self.kind, self.owner())


@dataclass(frozen=True)
class Keys:
    """A getter of the keys of the dict that another getter reads."""

    owner: Callable

    def __call__(self):
        return tuple(self.owner())


@dataclass(frozen=True, eq=False)
class Fixed:
    """A getter of a fixed object."""

    content: object

    def __call__(self):
        return self.content

    def __eq__(self, other) -> bool:
        return isinstance(other, Fixed) and self.content is other.content

    def __hash__(self) -> int:
        return hash(id(self.content))


@dataclass(frozen=True, eq=False)
class Saved(Fixed):
    """A getter of residuals that one half of a derivative has saved for the other: private and
    immutable.
    """


def is_structured(x) -> bool:
    """Whether `x` is a structured array."""
    return isinstance(x, np.ndarray) and x.dtype.names is not None


def is_data(x) -> bool:
    """Whether `x` is a number, an array or a tuple of those: run-time data of a program."""
    match x:
        case Enum():  # a constant, also where it is a number
            return False
        case bool() | int() | float() | complex() | np.generic() | np.ndarray():
            return not isinstance(x, (np.str_, np.bytes_, np.object_))
        case np.random.Generator() | np.random.RandomState():
            return True
        case tuple():
            return bool(x) and all(map(is_data, x))
    return False


@functools.cache
def overridden(kind: type) -> str:
    """A name of the array interface that a subclass of ndarray overrides; "" if it only adds
    attributes.

    NumPy's own memmap and recarray are arrays with another home or other names for their fields.
    """
    own = [
        cls for cls in kind.__mro__[:kind.__mro__.index(np.ndarray)]
        if cls not in (np.memmap, np.recarray)
    ]
    return next((name for cls in own for name in vars(cls)
                 if (hasattr(np.ndarray, name) or name in PROTOCOLS) and name not in HARMLESS), "")


def require_plain(x: np.ndarray, name: str) -> None:
    """Refuse `x` if it is of a subclass of ndarray with arithmetic of its own."""
    if type(x) is not np.ndarray and (changed := overridden(type(x))):
        raise UnsupportedError(
            f"{name} is a {type(x).__name__}, whose arithmetic is its own ({changed})", None,
            "make it an array with np.asarray, and a mask or a unit a value beside it")


def is_table(x) -> bool:
    """Whether `x` is data throughout, in lists, tuples and dataclasses: a table of a program."""
    if is_data(x):
        return True
    form = form_of(x) if is_container(x) and not isinstance(x, dict) else None
    return (form is not None and bool(form.keys) or type(x) is tuple and bool(x)) and all(
        map(is_table, x if form is None else form.members(x)))


@dataclass(frozen=True)
class Opened:
    """A getter of the list of objects that another getter reads, with plain namespaces of their
    attributes for the objects.
    """

    owner: Callable

    def __call__(self):
        return [types.SimpleNamespace(**vars(x)) for x in self.owner()]


def is_table_of_objects(xs: list) -> bool:
    """Whether the items of a list are objects of one user's class, whose attributes are tables."""
    cls = type(xs[0]) if xs else object
    return (all(type(x) is cls for x in xs) and type(cls) is type
            and cls.__flags__ & HEAP_TYPE != 0 and not is_container(xs[0])
            and not isinstance(xs[0], (Enum, np.ndarray)) and not callable(xs[0])
            and not any(hasattr(cls, name) for name in ("__getattr__", "__slots__", "__array__"))
            and cls.__getattribute__ is object.__getattribute__
            and all(getattr(x, "__dict__", None) and vars(x).keys() == vars(xs[0]).keys()
                    for x in xs)
            and all(name.isidentifier() and is_table(member)
                    for x in xs for name, member in vars(x).items()))


def has_equal_shapes(x) -> bool | None:
    """Whether arrays that stand in the same place of the items of lists have the same shapes; None
    if there are no arrays.
    """
    found: dict[str, set] = {}
    for path, leaf in leaves_by_place(x):
        if isinstance(leaf, np.ndarray):
            found.setdefault(path, set()).add(leaf.shape)
    return all(len(shapes) == 1 for shapes in found.values()) if found else None


def leaves_by_place(x, path: str = "") -> Iterator[tuple[str, object]]:
    """The leaves in a container, in order, each with its place: the same for all items of a list.
    """
    if not is_container(x):
        yield path, x
        return
    form = form_of(x)
    for k, member in enumerate(x if form is None else form.members(x)):
        yield from leaves_by_place(member, f"{path}.{0 if type(x) is list else k}")


def type_of_data(x, name: str, equal: bool = False) -> Type:
    """The type of a run-time object; its extents are named after `name`.  With `equal`, the arrays
    in the items of lists have the same: see `has_equal_shapes`.
    """
    match x:
        case np.random.Generator():
            return GENERATOR
        case np.random.RandomState():
            return RANDOM_STATE
        case np.ndarray() if x.ndim:
            require_plain(x, name)
            return Array(x.dtype.name, dims_of_argument(x.shape, name))
        case np.ndarray():
            return Scalar(x.dtype.name)
        case tuple():
            return Tuple(tuple(type_of_data(item, f"{name}.{k}", equal)
                               for k, item in enumerate(x)), form_of(x))
        case list():
            return Tuple(tuple(type_of_data(item, f"{name}.{0 if equal else k}", equal)
                               for k, item in enumerate(x)), form_of(x))
        case bool() | int() | float() | complex() | np.generic():
            return type_of_constant(x)
    if has_members(type(x)):
        form = form_of(x)
        return Tuple(tuple(type_of_data(member, f"{name}.{k}", equal)
                           for k, member in enumerate(form.members(x))), form)
    return Static(x)
