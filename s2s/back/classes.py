"""The classes whose instances generated code makes: what they are called there, and how it gets at them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from ..ir.graph import Function, walk
from ..ops.acts import is_importable


class Classes:
    """The classes that some functions, printed in one module, need; `named` are those that have their names already."""

    def __init__(self, functions: list[Function], named: Mapping[str, type] = MappingProxyType({})):
        self.names: dict[object, str] = {cls: name for name, cls in named.items()}
        for function in functions:
            for op in walk(function.block):
                form = op.attrs.get("form")
                if form is not None and form.kind != "list" and form.cls is not dict:
                    self._add(form.cls)
                    if form.factory is not None and form.factory.__module__ != "builtins":
                        self._add(form.factory)
                if op.name == "constant" and isinstance(op.attrs["value"], Enum):
                    self._add(type(op.attrs["value"]))

    def _add(self, cls) -> None:
        if cls not in self.names:
            name, k = cls.__name__, 0
            while name in self.names.values():
                k += 1
                name = f"{cls.__name__}_{k}"
            self.names[cls] = name

    def rename(self, tree: ast.AST) -> None:
        """Spell the classes in `tree`, whose nodes say which they mean, by the names that they have here."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and hasattr(node, "cls"):
                node.id = self.names[node.cls]

    def imports(self) -> Iterator[str]:
        """The statements that import those of them that can be imported."""
        for cls, name in self.names.items():
            if is_importable(cls):
                renamed = "" if name == cls.__name__ else f" as {name}"
                yield f"from {cls.__module__} import {cls.__name__}{renamed}"

    def unreachable(self) -> dict[str, object]:
        """Those that cannot be imported: the module is given them when it is run."""
        return {name: cls for cls, name in self.names.items() if not is_importable(cls)}


