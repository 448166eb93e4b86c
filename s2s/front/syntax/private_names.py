"""Names with two leading underscores in the body of a class, which Python mangles: `self.__w` in a
class `Model` is `self._Model__w`.

The compiled code says what they have become, also where the class has another name now.
"""

from __future__ import annotations

import types
from collections.abc import Iterator

import gast


def mangled(definition: gast.AST, code: types.CodeType) -> gast.AST:
    """The definition with the names that `code` has for private ones, in place."""
    private = [node for node in gast.walk(definition) if any(map(_is_private, _names(node)))]
    if private:
        known = set(_names_in(code))
        for node in private:
            for field, name in node.__dict__.items():
                if isinstance(name, str) and _is_private(name) and field in FIELDS:
                    setattr(node, field, _full(name, known))
                elif isinstance(name, list) and field == "names" and all(
                        isinstance(each, str) for each in name):
                    node.names = [_full(each, known) for each in name]
    return definition


FIELDS = ("id", "attr", "name")  # keywords of calls are not mangled


def _is_private(name) -> bool:
    return isinstance(name, str) and name.startswith("__") and not name.endswith("__")


def _names(node: gast.AST) -> Iterator[object]:
    for field, content in node.__dict__.items():
        if field in FIELDS:
            yield content
        elif field == "names" and isinstance(content, list):
            yield from content


def _full(name: str, known: set[str]) -> str:
    """The one name in the code that ends with a private name; the name itself if it stands there,
    or if there is none, or several.
    """
    found = {each for each in known if each.startswith("_") and not each.startswith("__")
             and each.endswith(name)} if _is_private(name) and name not in known else set()
    return found.pop() if len(found) == 1 else name


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)
