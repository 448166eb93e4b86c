"""Find the Python functions that a program references, whose texts another process needs."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator

from ..errors import SourceError
from ..front.eval.unwrap_callable import target_of


def functions_named(function: Callable) -> list[types.FunctionType]:
    """Return `function`, as a plain function, and the Python functions that it references, directly
    or through others.
    """
    found: dict[types.FunctionType, None] = {}

    def visit(function: Callable) -> None:
        while isinstance(function, (functools.partial, types.MethodType)):
            function = (function.func if isinstance(function, functools.partial)
                        else function.__func__)
        function = getattr(function, "base", function)
        try:
            plain = target_of(function).function
        except (SourceError, AttributeError):
            return
        if plain not in found and not (plain.__module__
                                       or "").startswith(("numpy", "scipy", "s2s.")):
            found[plain] = None
            for content in named_by(plain):
                if callable(content) and not isinstance(content, type):
                    visit(content)

    visit(function)
    return list(found)


def all_names(code: types.CodeType) -> set[str]:
    """Return the global names and attributes in `code`, and in the functions inside it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= all_names(constant)
    return found


def named_by(function: types.FunctionType) -> Iterator[object]:
    """Return what `function` reads from outside itself, by name."""
    for name in sorted(all_names(function.__code__)):
        if name in function.__globals__:
            yield function.__globals__[name]
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
