"""Find the names that statements read and bind, from their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def exposed(body: Sequence[ast.stmt], names: set[str]) -> Iterator[str]:
    """The names, among `names`, that may be read before `body` assigns them."""
    found: dict[str, None] = {}

    def read(tree: ast.AST, assigned: set[str]) -> None:
        found.update((n, None) for n in loaded_in([tree]) if n in names and n not in assigned)

    def visit(body: Sequence[ast.stmt], assigned: set[str]) -> set[str] | None:
        """The names assigned at the end; None if the end is not reached."""
        for statement in body:
            match statement:
                case ast.For(target, iterator, inner):
                    read(iterator, assigned)
                    visit(inner, assigned | {target.id})
                case ast.While(test, inner):
                    read(test, assigned)
                    visit(inner, set(assigned))
                    if isinstance(test, ast.Constant) and test.value:
                        assigned = assigned | before_break(inner)
                case ast.If(test, first, second):
                    read(test, assigned)
                    ends = [end for end in (visit(first, set(assigned)),
                                            visit(second, set(assigned))) if end is not None]
                    if not ends:
                        return None
                    assigned = set.intersection(*ends)
                case ast.Continue() | ast.Break():
                    return None
                case ast.AugAssign(ast.Name(name), _, value):
                    read(value, assigned)
                    read(ast.Name(name, ast.Load()), assigned)
                    assigned = assigned | {name}
                case ast.Assign(targets, value):
                    read(value, assigned)
                    for target in targets:
                        for node in nodes_in(target):
                            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                                read(node, assigned)
                    assigned = assigned | set(stored_in([statement]))
                case _:
                    read(statement, assigned)
        return assigned

    visit(body, set())
    return iter(found)


def nodes_in(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of `ast.walk`, in its order, twice as fast: without the contexts of names."""
    ahead = [tree]
    for node in ahead:
        for name in node._fields:
            x = getattr(node, name, None)
            if isinstance(x, list):
                ahead += [each for each in x if isinstance(each, ast.AST)]
            elif isinstance(x, ast.AST) and name != "ctx":
                ahead.append(x)
        yield node


def before_break(body: Sequence[ast.stmt]) -> set[str]:
    """The names that a loop surely assigns before it can be left."""
    found: set[str] = set()
    for statement in body:
        if any(isinstance(node, (ast.Break, ast.Continue)) for node in nodes_in(statement)):
            break
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            found.update(stored_in([statement]))
    return found


def stored_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    return (node.id for s in body for node in nodes_in(s) if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store))


def loaded_in(trees: Sequence[ast.AST]) -> Iterator[str]:
    """The names that are read, in the order of the text."""
    ahead = list(reversed(trees))
    while ahead:
        tree = ahead.pop()
        if isinstance(tree, ast.Name):
            if isinstance(tree.ctx, ast.Load):
                yield tree.id
            continue
        for name in reversed(tree._fields):
            x = getattr(tree, name, None)
            if isinstance(x, list):
                ahead += [each for each in reversed(x) if isinstance(each, ast.AST)]
            elif isinstance(x, ast.AST) and name != "ctx":
                ahead.append(x)


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in nodes_in(tree) if isinstance(node, ast.Name)}


def unused_name(name: str, taken: set[str]) -> str:
    unused, k = name, 1
    while unused in taken:
        unused, k = f"{name}_{k}", k + 1
    return unused
