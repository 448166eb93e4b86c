"""Desugar comprehensions to loops in the syntax tree of a function, before names and types are
inferred.

    ys = [g(x) for x in xs]      becomes      items = xs
                                              found = []
                                              for k in range(len(items)):
                                                  x = items[k]
                                                  found.append(g(x))
                                              ys = found

So are those inside other expressions of a statement: generated code around them neither prints nor
changes what they read. Conditionally evaluated ones, in a branch of an expression, are left as they
are.
"""

from __future__ import annotations

import ast

from ...back.syntax.ast_names import nodes_in


def spread_out(function: ast.FunctionDef) -> ast.FunctionDef:
    """Replace the comprehensions in `function` by loops, in place."""
    if any(isinstance(node, ast.ListComp) for node in nodes_in(function)):
        Spreading(function).body(function.body)
    return function


class Spreading:
    def __init__(self, function: ast.FunctionDef):
        self.names = ({node.id for node in nodes_in(function) if isinstance(node, ast.Name)}
                      | {a.arg for a in function.args.args})

    def name(self, stem: str) -> str:
        """An unused name."""
        k = 1
        while f"{stem}_{k}" in self.names:
            k += 1
        self.names.add(f"{stem}_{k}")
        return f"{stem}_{k}"

    def body(self, statements: list[ast.stmt]) -> None:
        """Desugar the comprehensions in the statements, in place."""
        done: list[ast.stmt] = []
        for stmt in statements:
            if isinstance(stmt, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)):
                before: list[ast.stmt] = []
                ComprehensionReplacer(self, before).visit(stmt)
                self.body(before)
                done += before
            else:
                for inner in (getattr(stmt, "body", ()), getattr(stmt, "orelse", ())):
                    self.body(inner) if inner else None
            done.append(stmt)
        statements[:] = done


class ComprehensionReplacer(ast.NodeTransformer):
    """Replace each comprehension of a statement by a name; the loop that computes it is appended to
    `before`.
    """

    def __init__(self, spreading: Spreading, before: list[ast.stmt]):
        self.spreading, self.before = spreading, before

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        match node.generators:
            case [ast.comprehension(ast.Tuple(targets), ast.Call(ast.Name("zip"), sources, []), [],
                                    0)] if len(targets) == len(sources):
                pass
            case [ast.comprehension(target, source, [], 0)]:
                targets, sources = [target], [source]
            case _:
                return node
        if not all(isinstance(x, ast.Name) for x in targets):
            return node
        name, sources = self.spreading.name, [self.visit(x) for x in sources]
        found, names = name("found"), {x.id: name(x.id) for x in targets}
        made = Renamed(names).visit(node.elt)
        match sources:
            case [ast.Call(ast.Name("range"))]:
                (item,) = names.values()
                self.add(f"{found} = []\nfor {item} in counted:\n    {found}.append(made)",
                         made=made, counted=sources[0])
            case _:
                several, k, length = [name("items") for _ in sources], name("k"), ""
                for items, source in zip(several, sources):
                    self.add(f"{items} = source", made=made, source=source)
                    length = (f"(len({items}) if len({items}) < {length} else {length})" if length
                              else f"len({items})")
                bound = "".join(f"    {item} = {items}[{k}]\n"
                                for item, items in zip(names.values(), several))
                self.add(
                    f"{found} = []\nfor {k} in range({length}):\n{bound}    {found}.append(made)",
                    made=made)
        return ast.copy_location(ast.Name(found, ast.Load()), node)

    def add(self, text: str, **given: ast.expr) -> None:
        for stmt in ast.parse(text).body:
            self.before.append(Given(given).visit(stmt))
            for node in nodes_in(self.before[-1]):
                if isinstance(node, ast.stmt):
                    ast.copy_location(node, given["made"])


class Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.ListComp:
        """Desugar an inner comprehension, whose variable may have the same name."""
        bound = {n.id for each in node.generators
                 for n in nodes_in(each.target) if isinstance(n, ast.Name)}
        inner = Renamed({old: new for old, new in self.names.items() if old not in bound})
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        for each in node.generators[1:]:
            each.iter = inner.visit(each.iter)
        for each in node.generators:
            each.ifs = [inner.visit(x) for x in each.ifs]
        node.elt = inner.visit(node.elt)
        return node


class Given(ast.NodeTransformer):
    def __init__(self, given: dict[str, ast.expr]):
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given.get(node.id, node)
