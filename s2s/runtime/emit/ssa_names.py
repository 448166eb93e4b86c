"""Divide a function's names into SSA values and stack slots, and find the last use of each value.

    for i in range(n):
        t = x[i] * y          # a value: whatever reads it stands below it, in its block
        if t > 0.0:
            total = t         # a slot: uses below the `if` may get this, or the previous value

A value needs no memory: it is an LLVM value whose definition dominates all its uses. A slot is
memory on the stack, which LLVM promotes to phi nodes at joins.

The mentions of a name are visited in execution order. If the first mention in a block is a
definition by that block itself, no later use is reached from outside; nested blocks before that
definition must satisfy this by themselves. From one definition in the block to the next the name is
a value, unless a nested block defines it, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from numba import NumbaError

from ...back.syntax.ast_names import nodes_in

# of blocks, from the function's to the innermost, and of statements in them
Path = tuple[tuple[int, int], ...]
# the place of names bound before the first statement of a block: parameters, the counter of a
# loop
FIRST = -1


class NotDirect(NumbaError):
    """Raised for code that is left to Numba's own passes."""

    def __init__(self, what: str = ""):
        super().__init__(what)


class Mention(NamedTuple):
    """A use or definition of a name by a statement."""

    node: ast.AST
    name: str
    binds: bool
    path: Path


class Bindings:
    """The bindings of a function that are SSA `values`, and the values that end with each statement
    of a block.

    Names are `over` after a statement if their values are dead, unless they are bound again.  At
    joins all other names are visited, so in a function of thousands of statements most should be
    over.
    """

    def __init__(self, function: ast.FunctionDef):
        self.values: set[int] = set()  # by the node that binds
        self.ends: dict[tuple[int, int], list[int]] = {}
        self.over: dict[tuple[int, int], list[str]] = {}
        found: dict[str, list[Mention]] = {}
        mentions = [Mention(a, a.arg, True, ((id(function.body), FIRST),))
                    for a in function.args.args]
        for each in [*mentions, *mentions_of(function.body, ())]:
            found.setdefault(each.name, []).append(each)
        self.names = {name for name, several in found.items() if any(m.binds for m in several)}
        for name in self.names:
            chosen: list[tuple[int, list[Mention]]] = []
            if webs(found[name], 0, chosen):
                for depth, several in chosen:
                    self.divide(several, depth)
            self.over.setdefault((id(function.body), max(m.path[0][1] for m in found[name])),
                                 []).append(name)

    def divide(self, mentions: list[Mention], depth: int) -> None:
        """Mark as values the bindings made directly by the block at this depth."""
        parts: list[list[Mention]] = []
        for each in mentions:
            if is_direct(each, depth):
                parts.append([each])
            else:
                parts[-1].append(each)
        for (first, *others), following in zip(parts, [*parts[1:], None]):
            if not any(m.binds for m in others):
                self.values.add(id(first.node))
                place = max((m.path[depth] for m in (first, *others)), key=lambda at: at[1])
                self.ends.setdefault(place, []).append(id(first.node))
                # which rebinds the name
                if following is None or following[0].path[depth] != place:
                    self.over.setdefault(place, []).append(first.name)


def is_direct(mention: Mention, depth: int) -> bool:
    """Whether the block at this depth itself binds the name."""
    return mention.binds and len(mention.path) == depth + 1


def webs(mentions: list[Mention], depth: int, found: list[tuple[int, list[Mention]]]) -> bool:
    """Whether no use in these mentions, all of one block, is reached by an outer definition; the
    mentions from each definition on are appended to `found`.
    """
    inside: dict[int, list[Mention]] = {}
    for k, each in enumerate(mentions):
        if is_direct(each, depth):
            found.append((depth, mentions[k:]))
            break
        if len(each.path) == depth + 1:
            return False
        inside.setdefault(each.path[depth + 1][0], []).append(each)
    return all(webs(several, depth + 1, found) for several in inside.values())


def mentions_of(body: list[ast.stmt], outer: Path) -> Iterator[Mention]:
    """The uses and definitions in the statements of a block, in execution order."""
    for k, stmt in enumerate(body):
        path = (*outer, (id(body), k))
        match stmt:
            case ast.For(target, counted, inner):
                if not isinstance(target, ast.Name):
                    raise NotDirect
                yield from read(counted, path)
                yield Mention(target, target.id, True, (*path, (id(inner), FIRST)))
                yield from mentions_of(inner, path)
            case ast.While(test, inner):
                yield from read(test, path)
                yield from mentions_of(inner, path)
            case ast.If(test, inner, others):
                yield from read(test, path)
                yield from mentions_of(inner, path)
                yield from mentions_of(others, path)
            case ast.AugAssign(ast.Name(name) as target, _, value):
                yield Mention(target, name, False, path)
                yield from read(value, path)
                yield Mention(target, name, True, path)
            case _:
                bound = []
                for node in nodes_in(stmt):
                    if isinstance(node, ast.Name):
                        if isinstance(node.ctx, ast.Store):
                            bound.append(Mention(node, node.id, True, path))
                        else:
                            yield Mention(node, node.id, False, path)
                yield from bound


def read(node: ast.expr, path: Path) -> Iterator[Mention]:
    """The names used in an expression."""
    return (Mention(each, each.id, False, path)
            for each in nodes_in(node) if isinstance(each, ast.Name))
