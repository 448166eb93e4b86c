"""Variables of a function that functions inside it write, after it has returned or in calls that
others make: they become attributes of an object that the activation and these functions share.

    def counter():                       def counter():
        n = 0                                <variables of counter>.n = 0
        def step():                          def step():
            nonlocal n            becomes
            n += 1                               <variables of counter>.n += 1
            return n                             return <variables of counter>.n
        return step                          return step

Python has a cell for each of them.  As an object it is carried by loops, joined by branches and
held by lists like any other.
"""

from __future__ import annotations

import gast

from .desugar import copy_tree
from .liveness import (
    COMPREHENSIONS,
    Outline,
    bound_names,
    inside,
    outer_names,
    parameter_names,
)

HOLDER = "<variables of {}>"  # a name that no program can have


def holder_of(node: gast.FunctionDef) -> str:
    """The name under which the variables of a function are held: one for each definition."""
    return HOLDER.format(f"{node.name} {node.lineno} {node.col_offset}")


def variables_written_inside(outline: Outline) -> frozenset[str]:
    """The variables of a function that functions inside it write; none if one of them is bound by
    `except ... as`, which binds names alone.
    """
    names = frozenset(outline.own.intersection(outline.written_inside))
    caught = {node.name.id for node in gast.walk(outline.node)
              if isinstance(node, gast.ExceptHandler) and node.name is not None}
    return frozenset() if names & caught else names


def with_held_variables(node: gast.FunctionDef, names: frozenset[str]) -> gast.FunctionDef:
    """A copy of the definition in which these variables of its are attributes."""
    new = copy_tree(node)
    rewrite = _Attributes(names, holder_of(node))
    new.body = rewrite.statements(new.body)
    return new


class _Attributes(gast.NodeTransformer):

    def __init__(self, names: frozenset[str], holder: str):
        self.names, self.holder = names, holder

    def statements(self, body: list) -> list:
        """The statements of a body, each visited."""
        found = [self.visit(stmt) for stmt in body]
        return [x for each in found for x in (each if isinstance(each, list) else [each])]

    def visit_Name(self, node: gast.Name) -> gast.AST:
        if node.id not in self.names:
            return node
        owner = gast.copy_location(gast.Name(self.holder, gast.Load(), None, None), node)
        return gast.copy_location(gast.Attribute(owner, node.id, node.ctx), node)

    def visit_Nonlocal(self, node: gast.Nonlocal) -> gast.AST:
        names = [name for name in node.names if name not in self.names]
        return gast.copy_location(gast.Nonlocal(names) if names else gast.Pass(), node)

    def visit_FunctionDef(self, node: gast.FunctionDef) -> gast.AST | list:
        made = self._definition(node)
        if node.name not in self.names:
            return made
        made_one, target = (
            gast.copy_location(gast.Name(node.name, context, None, None), node)
            for context in (gast.Load(), gast.Store()))
        return [made, gast.copy_location(gast.Assign([self.visit(target)], made_one, None), node)]

    def _definition(self, node: gast.FunctionDef) -> gast.AST:
        node.decorator_list = [self.visit(x) for x in node.decorator_list]
        self._visit_defaults(node.args)
        declared = outer_names(each for stmt in node.body for each in inside(stmt))
        stored = {each.id for stmt in node.body for each in inside(stmt)
                  if isinstance(each, gast.Name) and isinstance(each.ctx, (gast.Store, gast.Del))}
        bound = {*parameter_names(node), *bound_names(node.body), *stored} - {*declared}
        return self._inside(node, bound, lambda: self.statements(node.body))

    def visit_Lambda(self, node: gast.Lambda) -> gast.AST:
        self._visit_defaults(node.args)
        return self._inside(node, {*parameter_names(node)}, lambda: self.visit(node.body))

    def _visit_defaults(self, args: gast.arguments) -> None:
        args.defaults = [self.visit(x) for x in args.defaults]
        args.kw_defaults = [x and self.visit(x) for x in args.kw_defaults]

    def _inside(self, node: gast.AST, bound: set[str], visit) -> gast.AST:
        around, self.names = self.names, self.names - bound
        node.body = visit()
        self.names = around
        return node

    def visit(self, node: gast.AST) -> gast.AST:
        if not isinstance(node, COMPREHENSIONS):
            return super().visit(node)
        first = node.generators[0]
        first.iter = self.visit(first.iter)  # evaluated outside
        around = self.names
        self.names -= bound_names(part.target for part in node.generators).keys()
        for part in node.generators:
            if part is not first:
                part.iter = self.visit(part.iter)
            part.ifs = [self.visit(test) for test in part.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self.names = around
        return node
