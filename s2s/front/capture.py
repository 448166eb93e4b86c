"""Values from outside a function: closures, globals, attributes of objects.

Modules, functions, strings, None are resolved when code is generated.  Numbers and arrays are data: they
become trailing parameters of the function, each with a getter that reads the value at every call.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import UnsupportedError
from ..ir.forms import form_of
from ..ir.types import GENERATOR, Array, Scalar, Static, Tuple, Type, dims_of_argument
from ..ops.record import type_of_constant


@dataclass(frozen=True, eq=False)
class Global:
    """Reads a global variable."""

    namespace: dict
    name: str

    def __call__(self):
        return self.namespace[self.name]

    def __eq__(self, other) -> bool:
        return isinstance(other, Global) and self.namespace is other.namespace and self.name == other.name

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
    """Reads what one half of a derivative has saved for the other, which nobody else has and nothing changes."""


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


def type_of_data(x, name: str) -> Type:
    """The type of a run-time object; `name` is what its extents are called after."""
    match x:
        case np.random.Generator():
            return GENERATOR
        case np.matrix() | np.ma.MaskedArray():
            raise UnsupportedError(f"{name} is a {type(x).__name__}, whose arithmetic is its own", None,
                                   "make it an array with np.asarray, and a mask an array beside it")
        case np.ndarray() if x.ndim:
            return Array(x.dtype.name, dims_of_argument(x.shape, name))
        case np.ndarray():
            return Scalar(x.dtype.name)
        case tuple():
            return Tuple(tuple(type_of_data(item, f"{name}.{k}") for k, item in enumerate(x)), form_of(x))
        case bool() | int() | float() | complex() | np.generic():
            return type_of_constant(x)
    return Static(x)
