"""Names and imports of the classes and functions outside the module that generated code refers to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from ...ir.graph import Function, Op, walk
from ...ops.program.opaque_call import called, home_of, objects_named, printed_op
from ...ops.program.outside_writes import write_outside


class Classes:
    """The classes that functions of one module need; `named` are those that have names already.

    What the module itself defines is called as in `taken`.
    """

    def __init__(self, functions: list[Function], named: Mapping[str, type] = MappingProxyType({}),
                 taken: Iterable[str] = ()):
        self.objects = {id(cls): cls for cls in named.values()}
        # by the object's id: it may be unhashable
        self.names: dict[int, str] = {id(cls): name for name, cls in named.items()}
        self.taken = frozenset(taken)
        self.built: set[int] = set()  # the classes that only stand where one is built
        for function in functions:
            for op in walk(function.block):
                form = op.attrs.get("form")
                if form is not None and form.kind != "list" and form.cls is not dict:
                    self._add(form.cls)
                    self.built.add(id(form.cls))
                    if form.factory is not None and form.factory.__module__ != "builtins":
                        self._add(form.factory)
                if op.record is write_outside:
                    self._add(op.attrs["write"].owner, op.attrs["write"].name)
                for x in objects_called(op):
                    self._add(x)
                if op.name == "constant" and isinstance(op.attrs["value"], Enum):
                    self._add(type(op.attrs["value"]))

    def _add(self, cls, named: str = "") -> None:
        if id(cls) not in self.names:
            own = named or called(cls)
            name, k = own, 0
            while name in self.names.values() or name in self.taken:
                k += 1
                name = f"{own}_{k}"
            self.objects[id(cls)], self.names[id(cls)] = cls, name

    def rename(self, words: Iterable[ast.Name]) -> None:
        """Rename the classes among `words` to their names in this module."""
        for word in words:
            if hasattr(word, "cls"):
                word.id = self.names[id(word.cls)]

    def renamed(self, source: str, helper) -> str:
        """The text of a helper with the objects it calls renamed to their names in this module."""
        for x in getattr(helper, "calls", ()):
            source = re.sub(rf"\b{called(x)}\b", self.names[id(x)], source)
        return source

    def imports(self, used: Container[str]) -> Iterator[str]:
        """The import statements for those of them that can be imported, classes that may be built
        only if they are `used`.
        """
        found: dict[str, list[str]] = {}
        for cls, name in zip(self.objects.values(), self.names.values()):
            if home_of(cls) is not None and (name in used or id(cls) not in self.built):
                renamed = "" if name == called(cls) else f" as {name}"
                found.setdefault(home_of(cls), []).append(f"{called(cls)}{renamed}")
        for module, names in found.items():
            yield f"from {module} import {', '.join(names)}"

    def unreachable(self) -> dict[str, object]:
        """The objects that cannot be imported: they are passed to the module when it runs."""
        return {name: cls for cls, name in zip(self.objects.values(), self.names.values())
                if home_of(cls) is None}


def objects_called(op: Op) -> list:
    """The functions, and their fixed arguments, that the text of `op` names."""
    if op.name == "call":
        op = printed_op(op) or op
    if op.record.calls_by_name:
        return objects_named(op)
    if op.record is write_outside:
        return op.attrs["write"].objects()
    return list(getattr(op.record.helper, "calls", ()))  # made by back/lower/library_calls.py
