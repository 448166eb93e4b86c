"""Collapse nests of loops over contiguous memory into one loop (loop coalescing).

    for i in range(n):                                  for i in range(1 if whole else n):
        for j in range(m):                 ->               for j in range(n * m if whole else m):
            y[i, j] = x[i, j] * x[i, j]                         y[i, j] = x[i, j] * x[i, j]

where `whole` holds if a step of i equals m steps of j, in x as in y: then the element [0, i * m +
j] is the element [i, j]. A row of ten numbers is two vectors and a remainder of two, plus the
overhead of a loop: the gradient of `sum(maximum(A * B + A, 0) ** 2 * A)` took five times as long
for 30,000 rows of ten numbers as for one row of 300,000.

The trips run in the same order, so values they carry, exceptions and skips stay the same. The
strides are tested when the loop is reached, and the body is emitted once: only the trip counts
depend on them. A sum over rows, or a row that is broadcast (`b[j]`), keeps both loops.

Considered: one loop over reshaped arrays in the text, where layouts are known: they are not known
when the text is printed, and Python would have to run it on any layout; two versions of the nest,
one for contiguous arrays, which take LLVM twice as long.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ...back.syntax.ast_names import nodes_in


class Access(NamedTuple):
    """An array access; `axis` is the axis that the outermost loop of the nest indexes, the inner
    loops index the following ones.
    """

    array: str
    axis: int


class Nest(NamedTuple):
    """A perfect loop nest, outermost loop first, and the arrays whose elements it accesses."""

    loops: list[ast.For]
    accesses: list[Access]


def nests_of(body: Sequence[ast.stmt], found: dict[int, Nest] | None = None) -> dict[int, Nest]:
    """The nests in these statements that may run as one loop, by their outermost loops."""
    found = {} if found is None else found
    for stmt in body:
        if is_counted(stmt) and (nest := nest_of(stmt)) is not None:
            found[id(nest.loops[0])] = nest
        else:
            for inner in (getattr(stmt, "body", ()), getattr(stmt, "orelse", ())):
                nests_of(inner, found)
    return found


def nest_of(stmt: ast.For) -> Nest | None:
    """The perfect nest that starts at `stmt`, or one level further in."""
    loops = [stmt]
    while len(loops[-1].body) == 1 and is_counted(loops[-1].body[0]):
        loops.append(loops[-1].body[0])
    body = loops[-1].body
    nodes = [node for each in body for node in nodes_in(each)]
    if (len(loops) == 1
        or any(isinstance(node, (ast.For, ast.While, ast.Break, ast.Return)) for node in nodes)):
        return None
    changed = ({node.id
                for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
               | {each.target.id for each in loops})
    nest = None
    for outer in range(len(loops) - 2, -1, -1):
        if not has_fixed_range(loops[outer + 1], changed):
            break
        accesses = accesses_of([each.target.id for each in loops[outer:]], nodes)
        if accesses is None or any(each.array in changed for each in accesses):
            break
        nest = Nest(loops[outer:], accesses)
    return (nest
            if nest is not None
            and not all(isinstance(each.iter.args[-1], ast.Constant) for each in nest.loops)
            else None)


def is_counted(stmt: ast.stmt) -> bool:
    """Whether a statement is a `for` over a range."""
    return (isinstance(stmt, ast.For) and isinstance(stmt.target, ast.Name)
            and isinstance(stmt.iter, ast.Call) and bool(stmt.iter.args))


def has_fixed_range(loop: ast.For, changed: set[str]) -> bool:
    """Whether a loop runs from 0 to a bound that is known before the nest."""
    match loop.iter.args:
        case [ast.Name(name)]:
            return name not in changed
        case [ast.Constant()]:
            return True
    return False


def accesses_of(counters: list[str], nodes: list[ast.AST]) -> list[Access] | None:
    """The arrays indexed by the counters; None if a counter has another use, or indexes
    non-adjacent axes.
    """
    found, indices = {}, 0
    for node in nodes:
        if isinstance(node, ast.Subscript):
            index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            names = [x.id if isinstance(x, ast.Name) else None for x in index]
            if not any(name in counters for name in names):
                continue
            first = next(k for k, name in enumerate(names) if name in counters)
            if (names[first:first + len(counters)] != counters
                or not isinstance(node.value, ast.Name)):
                return None
            found[Access(node.value.id, first)] = None
            indices += len(counters)
    mentions = sum(isinstance(node, ast.Name) and node.id in counters for node in nodes)
    return list(found) if mentions == indices and found else None
