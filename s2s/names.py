"""The functions that a program names, and whether its names still stand for them.

Numbers and arrays that a function names are read at each call.  A function that it names is looked into
when code is generated, so the code is out of date once the name is bound to another function.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .errors import SourceError
from .front.capture import is_data
from .front.target import target_of

MISSING = object()


@dataclass(frozen=True)
class Named:
    """A name that stood for `content` when code was generated."""

    read: Callable
    content: object


def functions_named(function: Callable) -> list[types.FunctionType]:
    """`function`, as a plain function, and the Python functions that it names, directly or through others."""
    found: dict[types.FunctionType, None] = {}

    def visit(function: Callable) -> None:
        while isinstance(function, (functools.partial, types.MethodType)):
            function = function.func if isinstance(function, functools.partial) else function.__func__
        function = getattr(function, "base", function)
        try:
            plain = target_of(function).function
        except (SourceError, AttributeError):
            return
        if plain not in found and not (plain.__module__ or "").startswith(("numpy", "scipy", "s2s.")):
            found[plain] = None
            for named in names_in(plain):
                if callable(named.content) and not isinstance(named.content, type):
                    visit(named.content)

    visit(function)
    return list(found)


def names_in(function: types.FunctionType) -> Iterator[Named]:
    """The names of what is not data that `function` reads from outside itself."""
    for name in sorted(global_names(function.__code__)):
        content = function.__globals__.get(name, MISSING)
        if content is not MISSING and not is_data(content) and not isinstance(content, types.ModuleType):
            yield Named(lambda g=function.__globals__, name=name: g.get(name, MISSING), content)
    for cell in function.__closure__ or ():
        content = read_cell(cell)
        if content is not MISSING and not is_data(content):
            yield Named(lambda cell=cell: read_cell(cell), content)


def global_names(code: types.CodeType) -> set[str]:
    """The names that `code`, with the functions inside it, may read from its module."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= global_names(constant)
    return found


def read_cell(cell: types.CellType):
    """What a closure cell holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING
