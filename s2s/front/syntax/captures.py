"""Values from outside a function: closures, globals, attributes of objects.

Modules, functions, strings, None are resolved when code is generated.  Numbers and arrays are data:
they become trailing parameters of the function, each with a getter that reads the value at every
call.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import UnsupportedError
from ...ir.treedef import form_of
from ...ir.types import GENERATOR, Array, Scalar, Static, Tuple, Type, dims_of_argument
from ...ops.core.record import type_of_constant

PROTOCOLS = ("__array_ufunc__", "__array_function__", "__array_wrap__", "__array_prepare__",
             "__getattribute__")
HARMLESS = {  # what says how an array is made, shown and kept, and computes nothing
    "__array_finalize__", "__array_priority__", "__class_getitem__", "__copy__", "__deepcopy__",
    "__del__", "__dict__", "__dir__", "__doc__", "__format__", "__getstate__", "__init__",
    "__init_subclass__", "__module__", "__new__", "__reduce__", "__reduce_ex__", "__repr__",
    "__setattr__", "__setstate__", "__sizeof__", "__slots__", "__str__", "__weakref__", "copy"
}


@dataclass(frozen=True, eq=False)
class Global:
    """Reads a global variable."""

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
    """Reads a closure cell."""

    cell: types.CellType

    def __call__(self):
        return self.cell.cell_contents

    def __eq__(self, other) -> bool:
        return isinstance(other, Closed) and self.cell is other.cell

    def __hash__(self) -> int:
        return hash(id(self.cell))


@dataclass(frozen=True)
class Member:
    """Reads an attribute of an object that another getter reads."""

    owner: Callable
    name: str

    def __call__(self):
        return getattr(self.owner(), self.name)


@dataclass(frozen=True)
class Item:
    """Reads an item of a dict or list that another getter reads."""

    owner: Callable
    key: object

    def __call__(self):
        return self.owner()[self.key]


@dataclass(frozen=True)
class Length:
    """Reads the length of a dict or list that another getter reads."""

    owner: Callable

    def __call__(self):
        return len(self.owner())


@dataclass(frozen=True)
class Super:
    """Reads an object that another getter reads, as one of the classes above `kind`."""

    owner: Callable
    kind: type

    def __call__(self):
        return super(self.kind, self.owner())


@dataclass(frozen=True)
class Keys:
    """Reads the keys of a dict that another getter reads."""

    owner: Callable

    def __call__(self):
        return tuple(self.owner())


@dataclass(frozen=True, eq=False)
class Fixed:
    """Reads the same object each time."""

    content: object

    def __call__(self):
        return self.content

    def __eq__(self, other) -> bool:
        return isinstance(other, Fixed) and self.content is other.content

    def __hash__(self) -> int:
        return hash(id(self.content))


@dataclass(frozen=True, eq=False)
class Saved(Fixed):
    """Reads what one half of a derivative has saved for the other, which nobody else has and
    nothing changes.
    """


def is_data(x) -> bool:
    """Whether `x` is a number, an array or a tuple of such: something a program computes with."""
    match x:
        case bool() | int() | float() | complex() | np.generic() | np.ndarray():
            return not isinstance(x, (np.str_, np.bytes_, np.object_))
        case np.random.Generator():
            return True
        case tuple():
            return bool(x) and all(map(is_data, x))
    return False


@functools.cache
def overridden(kind: type) -> str:
    """A name by which a subclass of ndarray does not do as an array does; "" where it only carries
    more than one.

    NumPy's own memmap and recarray are arrays with another home or other names for their fields.
    """
    own = [
        cls for cls in kind.__mro__[:kind.__mro__.index(np.ndarray)]
        if cls not in (np.memmap, np.recarray)
    ]
    return next((name for cls in own for name in vars(cls)
                 if (hasattr(np.ndarray, name) or name in PROTOCOLS) and name not in HARMLESS), "")


def require_plain(x: np.ndarray, name: str) -> None:
    """Raise UnsupportedError where `x` is of a subclass of ndarray that computes in its own way."""
    if type(x) is not np.ndarray and (changed := overridden(type(x))):
        raise UnsupportedError(
            f"{name} is a {type(x).__name__}, whose arithmetic is its own ({changed})", None,
            "make it an array with np.asarray, and a mask or a unit a value beside it")


def type_of_data(x, name: str) -> Type:
    """The type of a run-time object; `name` is what its extents are called after."""
    match x:
        case np.random.Generator():
            return GENERATOR
        case np.ndarray() if x.ndim:
            require_plain(x, name)
            return Array(x.dtype.name, dims_of_argument(x.shape, name))
        case np.ndarray():
            return Scalar(x.dtype.name)
        case tuple():
            return Tuple(tuple(type_of_data(item, f"{name}.{k}") for k, item in enumerate(x)),
                         form_of(x))
        case bool() | int() | float() | complex() | np.generic():
            return type_of_constant(x)
    return Static(x)
