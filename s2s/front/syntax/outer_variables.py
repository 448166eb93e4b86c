"""Variables of the module and of an enclosing function that has returned, which a function writes:
they become attributes, of the module and of the cell.

    global n                 <module>.n = <module>.n + 1
    n = n + 1

So the front end knows one kind of state outside (front/domain/outside.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import gast

from .liveness import bound_names, parameter_names

OWN_MODULE, CELL = "<module>", "<cell>"  # names that no program can have


def outer_as_attributes(definition: gast.AST) -> gast.AST:
    """The definition of a function with the outer variables that it writes as attributes, in place.
    """
    return _Attributes().visit(definition)


def _own_nodes(nodes: list) -> Iterator[gast.AST]:
    """The nodes of a function's body, without those of functions inside it."""
    for node in nodes:
        yield node
        if not isinstance(node, (gast.FunctionDef, gast.Lambda)):
            yield from _own_nodes([*gast.iter_child_nodes(node)])


class _Attributes(gast.NodeTransformer):

    def __init__(self):
        self.made: frozenset[str] = frozenset()  # the variables of the enclosing functions
        self.cells: frozenset[str] = frozenset()  # those of functions that have returned
        self.module: frozenset[str] = frozenset()

    def visit_FunctionDef(self, node: gast.FunctionDef) -> gast.AST:
        node.decorator_list = [self.visit(x) for x in node.decorator_list]
        node.args = self.visit(node.args)
        own = [*_own_nodes(node.body)]
        stored = {n.id for n in own
                  if isinstance(n, gast.Name) and isinstance(n.ctx, (gast.Store, gast.Del))}
        outer, module = (
            {name for n in own if isinstance(n, kind) for name in n.names}
            for kind in (gast.Nonlocal, gast.Global))
        bound = {*parameter_names(node), *bound_names(node.body), *stored} - outer - module
        around = self.made, self.cells, self.module
        self.cells = self.cells - bound - module | (outer & stored) - self.made
        self.module = frozenset(module & stored)
        self.made = self.made | bound
        node.body = [self.visit(stmt) for stmt in node.body]
        self.made, self.cells, self.module = around
        return node

    def visit_Lambda(self, node: gast.Lambda) -> gast.AST:
        around = self.cells, self.module
        self.cells, self.module = self.cells - {*parameter_names(node)}, frozenset()
        self.generic_visit(node)
        self.cells, self.module = around
        return node

    def _without(self, node: gast.Global | gast.Nonlocal, taken: frozenset) -> gast.AST:
        names = [name for name in node.names if name not in taken]
        new = type(node)(names) if names else gast.Pass()
        return gast.copy_location(new, node)

    def visit_Global(self, node: gast.Global) -> gast.AST:
        return self._without(node, self.module)

    def visit_Nonlocal(self, node: gast.Nonlocal) -> gast.AST:
        return self._without(node, self.cells)

    def visit_Name(self, node: gast.Name) -> gast.AST:
        if node.id in self.module:
            owner, name = OWN_MODULE, node.id
        elif node.id in self.cells:
            owner, name = CELL + node.id, "cell_contents"
        else:
            return node
        inner = gast.copy_location(gast.Name(owner, gast.Load(), None, None), node)
        return gast.copy_location(gast.Attribute(inner, name, node.ctx), node)
