"""What names, attributes, items and code stood for while code was generated: what the generated
code depends on.

Data that a program captures is read at each call.  What it resolves instead (functions, strings,
modules, the code of a function) is noted here, by getter, and whoever keeps what was generated asks
`is_current` before using it again.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...ir.length_assumptions import ask, asking
from ...ir.types import Array, Scalar, Tuple, Type
from .captures import Fixed, Member, type_of_data

LIBRARIES = ("numpy", "scipy", "math", "cmath", "functools", "itertools", "operator")
# consulted where code depends on which axes are long: ir/length_assumptions.py, Note [Long axes]
LENGTHS = Fixed("lengths")
_found: ContextVar[dict[Callable, object] | None] = ContextVar("found", default=None)


@dataclass(frozen=True)
class Code:
    """Reads the code of a function, which tools that reload modules replace."""

    function: types.FunctionType

    def __call__(self):
        return self.function.__code__


@dataclass(frozen=True)
class Defaults:
    """Reads the defaults of a function."""

    function: types.FunctionType

    def __call__(self):
        return self.function.__defaults__


@dataclass(frozen=True)
class Imported:
    """Reads the module that an import inside a function names."""

    name: str

    def __call__(self):
        return importlib.import_module(self.name)


@dataclass(frozen=True)
class Defined:
    """Reads a method or a property of a class."""

    cls: type
    name: str

    def __call__(self):
        return getattr(self.cls, self.name)


@dataclass(frozen=True, eq=False)
class Called:
    """Reads what is run where an object is called, which its class may change, as the object its
    class.
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
    """Reads what code may be specialised on of the data that a getter reads: dtype, rank, which
    extents are 1 and which are long.

    Data that only decides what code is generated, `if A.ndim == 2`, is no argument of that code,
    which then asks nothing of it.
    """

    of: Callable

    def __call__(self):
        return kind_of(type_of_data(self.of(), ""))


@dataclass(frozen=True, eq=False)
class Absent:
    """Reads whether a name, of one of Python's own functions, is a global variable as well."""

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
class Noted:
    """Reads what `of` reads, of which a process need not be asked again; another process has to be
    (s2s/persist).
    """

    of: Callable

    def __call__(self):
        return self.of()


class Library(Noted):
    """A module that nobody changes while it is used."""


class Inside(Noted):
    """A list, a dict or an object, of which whatever is read is consulted by itself."""


def kind_of(type: Type) -> tuple:
    """What of the type of data outside a function code is generated for."""
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
def consulting() -> Iterator[dict[Callable, object]]:
    """getter -> content for what is consulted inside; who consults around has consulted it, too."""
    found: dict[Callable, object] = {}
    try:
        with asking() as asked:
            token = _found.set(found)
            try:
                yield found
            finally:
                _found.reset(token)
                if asked.about_lengths:
                    found[LENGTHS] = LENGTHS.content
    finally:
        consulted_too(found)


def consulted(getter: Callable, content) -> None:
    """Note that code is being generated for `content`, which `getter` reads."""
    found = _found.get()
    if found is not None and not (isinstance(getter, Member) and _is_library(getter.owner())):
        found[Library(getter) if _is_library(content) else getter] = content


def is_nested() -> bool:
    """Whether code is being generated now for which what is consulted counts."""
    return _found.get() is not None


def _is_library(content) -> bool:
    """Whether `content` is a module that nobody changes while it is used."""
    return isinstance(content, types.ModuleType) and content.__name__.partition(".")[0] in LIBRARIES


def consulted_too(found: Mapping[Callable, object]) -> None:
    """Note what was consulted for something that was kept and is used again."""
    around = _found.get()
    if around is not None:
        around.update(found)
    if LENGTHS in found:
        ask()


def is_current(found: Mapping[Callable, object]) -> bool:
    """Whether all that was consulted is still what it was."""
    try:
        for getter, content in found.items():
            if isinstance(getter, Noted):
                continue
            now = getter()
            if now is not content and not is_same(now, content):
                return False
    except Exception:  # a property of the user's, a name that is gone
        return False
    return True


def is_same(a, b) -> bool:
    """Whether two objects are one to a program, and made anew each time: methods, strings, the keys
    of a dict, lengths.
    """
    return (type(a) is type(b) and isinstance(a, (types.MethodType, tuple, str, int))
            and bool(a == b))
