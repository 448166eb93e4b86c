"""`import` statements inside functions, as assignments of modules known at compile time.

Python looks up the module at each call, so the result is recorded as a dependency
(dependencies.py): the module may have been reloaded.

Each becomes an assignment, `np = <the module>`, so that scopes, branches and loops treat it like
any other.  Considered: a statement of its own, which all of those would have to know.  An import
that fails is left as it is, and refused where it is reached.
"""

from __future__ import annotations

import importlib.util
import types

import gast

from .dependencies import Imported


class Imports(gast.NodeTransformer):
    """Rewrite imports as assignments; relative ones are relative to `package`."""

    def __init__(self, package: str | None):
        self.package = package
        self.found: dict[Imported, types.ModuleType] = {}

    def module(self, name: str) -> types.ModuleType:
        """The module of this absolute name."""
        getter = Imported(name)
        return self.found.setdefault(getter, getter())

    def bound(self, name: str, whole: bool) -> types.ModuleType:
        """The module `a.b.c`, or `a`, which `import a.b.c` binds."""
        module = self.module(name)
        return module if whole else self.module(name.partition(".")[0])

    def visit_Import(self, node: gast.Import):  # noqa: N802  gast's name
        try:
            modules = [(alias.asname
                        or alias.name.partition(".")[0], self.bound(alias.name, bool(alias.asname)))
                       for alias in node.names]
        except Exception:  # importing may raise anything
            return node
        return [_assigned(node, name, gast.Constant(module, None)) for name, module in modules]

    def visit_ImportFrom(self, node: gast.ImportFrom):  # noqa: N802
        try:
            module = self.module(
                importlib.util.resolve_name("." * node.level + (node.module or ""), self.package))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{module.__name__}.{alias.name}")
        except Exception:
            return node
        return [
            _assigned(node, alias.asname or alias.name,
                      gast.Attribute(gast.Constant(module, None), alias.name, gast.Load()))
            for alias in node.names
        ]


def _assigned(node: gast.AST, name: str, value: gast.AST) -> gast.Assign:
    made = gast.Assign([gast.Name(name, gast.Store(), None, None)], value, None)
    for part in gast.walk(made):
        gast.copy_location(part, node)
    return made
