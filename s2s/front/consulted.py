"""What names, attributes, items and code stood for while code was generated: what the generated code depends on.

Data that a program captures is read at each call.  What it resolves instead (functions, strings, modules, the code of
a function) is noted here, by getter, and whoever keeps what was generated asks `is_current` before using it again.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..ir.lengths import ask, asking
from .capture import Fixed, Member

LIBRARIES = ("numpy", "scipy", "math", "cmath", "functools", "itertools", "operator")
LENGTHS = Fixed("lengths")  # consulted where code depends on which axes are long: ir/lengths.py, Note [Long axes]
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


@contextmanager
def consulting() -> Iterator[dict[Callable, object]]:
    """getter -> content for what is consulted inside; who consults around has consulted it, too."""
    found: dict[Callable, object] = {}
    token = _found.set(found)
    try:
        with asking() as asked:
            yield found
    finally:
        _found.reset(token)
        if asked.about_lengths:
            found[LENGTHS] = LENGTHS.content
        consulted_too(found)


def consulted(getter: Callable, content) -> None:
    """Note that code is being generated for `content`, which `getter` reads."""
    found = _found.get()
    if found is not None and not _is_library(content) and not (isinstance(getter, Member) and _is_library(getter.owner())):
        found[getter] = content


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
            now = getter()
            if now is not content and not is_same(now, content):
                return False
    except Exception:  # a property of the user's, a name that is gone
        return False
    return True


def is_same(a, b) -> bool:
    """Whether two objects are one to a program, and made anew each time: methods, strings, the keys of a dict, lengths."""
    return type(a) is type(b) and isinstance(a, (types.MethodType, tuple, str, int)) and bool(a == b)
