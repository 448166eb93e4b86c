"""Compile-time dependencies of generated code: the names, attributes, items and code objects that
it was specialised on.

Captured data is read at each call.  Names resolved at compile time instead (functions, strings,
modules, the code of a function) are recorded here, by getter, and caches of generated code check
`is_current` before reuse.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...ir.length_assumptions import depend_on_long_axes, tracking_long_axes
from ...ir.types import Array, Scalar, Tuple, Type
from .captures import Fixed, Member, has_equal_shapes, type_of_data

LIBRARIES = ("numpy", "scipy", "math", "cmath", "functools", "itertools", "operator")
# key for code that depends on which axes are long: ir/length_assumptions.py, Note [Long axes]
LENGTHS = Fixed("lengths")
_found: ContextVar[dict[Callable, object] | None] = ContextVar("found", default=None)


@dataclass(frozen=True)
class Code:
    """A getter of the code of a function, which reloading tools replace."""

    function: types.FunctionType

    def __call__(self):
        return self.function.__code__


@dataclass(frozen=True)
class Defaults:
    """A getter of the defaults of a function."""

    function: types.FunctionType

    def __call__(self):
        return self.function.__defaults__


@dataclass(frozen=True)
class Imported:
    """A getter of the module that an import inside a function names."""

    name: str

    def __call__(self):
        return importlib.import_module(self.name)


@dataclass(frozen=True)
class Defined:
    """A getter of a method or a property of a class."""

    cls: type
    name: str

    def __call__(self):
        return getattr(self.cls, self.name)


@dataclass(frozen=True, eq=False)
class Called:
    """A getter of the `__call__` that an object's class defines now; the object's class may be
    replaced, too.
    """

    of: object

    def __call__(self):
        return type(self.of).__call__

    def __eq__(self, other) -> bool:
        return isinstance(other, Called) and self.of is other.of

    def __hash__(self) -> int:
        return hash(id(self.of))


@dataclass(frozen=True)
class Kind:
    """A getter of the specialised properties of the data that another getter reads: dtype, rank,
    extents that are 1 and extents that are long.

    Data that only selects the generated code, `if A.ndim == 2`, is no argument of that code, which
    then does not check it.
    """

    of: Callable

    def __call__(self):
        return kind_of(type_of_data(self.of(), ""))


@dataclass(frozen=True)
class EqualShapes:
    """A getter of whether arrays in the list that another getter reads have the same shapes."""

    of: Callable

    def __call__(self):
        return has_equal_shapes(self.of())


@dataclass(frozen=True)
class Classes:
    """A getter of the classes of the objects in the list that another getter reads."""

    of: Callable

    def __call__(self):
        return tuple(map(type, self.of()))


@dataclass(frozen=True)
class Present:
    """A getter of whether an object has an attribute."""

    of: Callable
    name: str

    def __call__(self):
        return hasattr(self.of(), self.name)


@dataclass(frozen=True)
class HasKey:
    """A getter of whether the dict that another getter reads has a key."""

    of: Callable
    key: object

    def __call__(self):
        return self.key in self.of()


@dataclass(frozen=True, eq=False)
class Absent:
    """A getter of whether a global variable shadows a builtin of this name."""

    namespace: dict
    name: str

    def __call__(self):
        return self.name in self.namespace

    def __eq__(self, other) -> bool:
        return (isinstance(other, Absent) and self.namespace is other.namespace
                and self.name == other.name)

    def __hash__(self) -> int:
        return hash((id(self.namespace), self.name))


@dataclass(frozen=True)
class Enabled:
    """A getter of whether a logger takes messages of a level."""

    of: object
    level: int

    def __call__(self):
        return self.of.isEnabledFor(self.level)


@dataclass(frozen=True)
class Noted:
    """A getter, `of`, that need not be checked again in this process, but in another one
    (s2s/persist).
    """

    of: Callable

    def __call__(self):
        return self.of()


class Library(Noted):
    """A module that is assumed not to change."""


class Inside(Noted):
    """A list, dict or object whose members are tracked individually."""


def kind_of(type: Type) -> tuple:
    """The properties of the type of captured data on which code is specialised."""
    match type:
        case Array(dtype, dims):
            return dtype, tuple(
                None if d == 1 else str(d) if isinstance(d, int) else d.symbol_is_long
                for d in dims)
        case Tuple(items, form):
            return form, tuple(map(kind_of, items))
        case Scalar(dtype, weak):
            return dtype, weak
    return (type,)


@contextmanager
def collect_dependencies() -> Iterator[dict[Callable, object]]:
    """Collect the dependencies recorded inside, as getter -> content; they are also recorded for
    enclosing collectors.
    """
    found: dict[Callable, object] = {}
    try:
        with tracking_long_axes() as asked:
            token = _found.set(found)
            try:
                yield found
            finally:
                _found.reset(token)
                if asked.about_lengths:
                    found[LENGTHS] = LENGTHS.content
    finally:
        note_dependencies(found)


def note_dependency(getter: Callable, content) -> None:
    """Record that the code being generated depends on `content`, which `getter` reads."""
    found = _found.get()
    if found is not None and not (isinstance(getter, Member) and _is_library(getter.owner())):
        found[Library(getter) if _is_library(content) else getter] = content


def is_nested() -> bool:
    """Whether dependencies are being collected."""
    return _found.get() is not None


def _is_library(content) -> bool:
    """Whether `content` is a module that is assumed not to change."""
    return isinstance(content, types.ModuleType) and content.__name__.partition(".")[0] in LIBRARIES


def note_dependencies(found: Mapping[Callable, object]) -> None:
    """Record the dependencies of a cached result that is used again."""
    around = _found.get()
    if around is not None:
        around.update(found)
    if LENGTHS in found:
        depend_on_long_axes()


def is_current(found: Mapping[Callable, object]) -> bool:
    """Whether every dependency is still what it was."""
    try:
        for getter, content in found.items():
            if isinstance(getter, Noted):
                continue
            now = getter()
            if now is not content and not is_same(now, content):
                return False
    except Exception:  # a user's property, or a deleted name
        return False
    return True


def is_same(a, b) -> bool:
    """Whether two objects count as one to a program although they are created anew: methods,
    strings, the keys of a dict, lengths.
    """
    return (type(a) is type(b) and isinstance(a, (types.MethodType, tuple, str, int))
            and bool(a == b))
