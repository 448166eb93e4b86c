"""Turn a function with one loop into a kernel whose threads share the trips (grid-stride loop).

Works on printed syntax trees. Trips are counted in unsigned 32-bit integers: signed ones cost ten
times the instructions.
"""

from __future__ import annotations

import ast
import math

import numpy as np

from ..print.statement_writer import negated
from ..syntax.ast_names import nodes_in, stored_in
from .block_reductions import identity, name_of


def append_array_arguments(tree: ast.FunctionDef, kernel) -> ast.FunctionDef:
    """Append the arrays that the kernel is given to its arguments."""
    names = {}
    body = []
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("given"), [ast.Constant(key)])):
                names[key] = name
            case _:
                body.append(statement)
    kernel.writes = {key: v for key, v in kernel.writes.items() if key in names}
    tree.args.args += [ast.arg(names[key]) for key in kernel.writes]
    kernel.types += [v.type for v in kernel.writes.values()]
    tree.body = body
    tree.decorator_list = [ast.parse("cuda.jit", mode="eval").body]
    return tree


def spread_over_threads(tree: ast.FunctionDef, kernel, is_split: bool) -> ast.FunctionDef:
    """Distribute the loop over the threads of the grid, or the rows of its blocks if these are
    teams, and combine their numbers block by block; `is_split`: its index is of several loops.
    """
    tree = append_array_arguments(tree, kernel)
    place = next(k for k, s in enumerate(tree.body) if isinstance(s, ast.For))
    loop = tree.body[place]
    taken = {node.id for node in nodes_in(tree)
             if isinstance(node, ast.Name)} | {a.arg for a in tree.args.args}
    index, count = loop.target.id, tree.args.args[0].arg
    stored = set(stored_in(loop.body))  # names, which may be those of what is dead in a `for`
    as_index = is_split or _only_indexes(loop.body, index)
    thread = index if as_index and index not in stored else _unused("thread", taken)
    trips = count if count not in stored else _unused("trips", taken)
    stride = _unused("stride", taken)
    inner = _without_continue(loop.body)
    if thread != index:
        value = thread if is_split else f"int64({thread})"
        inner = [*_parse(f"{index} = {value}"), *inner]
    first, step = "cuda.grid(1)", "cuda.gridsize(1)"
    if kernel.shared:
        first = "cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y"
        step = "cuda.gridDim.x * cuda.blockDim.y"
    tree.body[place:place + 1] = [
        *_parse(f"{trips} = uint32({count})\n{thread} = uint32({first})\n"
                f"{stride} = uint32({step})"),
        ast.While(_expression(f"{thread} < {trips}"),
                  [*inner, *_parse(f"{thread} = uint32({thread} + {stride})")], []),
    ]
    if kernel.shared:
        tree = UnsignedCounters(tree, taken).visit(tree)
    results = tree.body.pop().value.elts
    if kernel.parts:
        t, size = _unused("t", taken), "cuda.blockDim.x"
        tree.body += _parse(f"{t} = cuda.threadIdx.x")
        if kernel.shared:
            size += " * cuda.blockDim.y"
            tree.body += _parse(f"{t} += cuda.blockDim.x * cuda.threadIdx.y")
        for (record, dtype), result in zip(kernel.parts.values(), results):
            total, into = result.id, _unused(f"{result.id}_parts", taken)
            if kernel.shared:  # all threads of a team have the same
                tree.body += _parse(f"if cuda.threadIdx.x > 0:\n"
                                    f"    {total} = {_number(identity(record, dtype))}")
            tree.body += _parse(f"{total} = {name_of(record, dtype)}({total}, {t}, {size})")
            tree.args.args.append(ast.arg(into))
        for argument, result in zip(tree.args.args[-len(kernel.parts):], results):
            tree.body += _parse(f"if {t} == 0:\n"
                                f"    {argument.arg}[cuda.blockIdx.x] = {result.id}")
    return tree


class UnsignedCounters(ast.NodeTransformer):
    """Count the trips of loops that a team shares in unsigned 32-bit integers.

        for j in range(lane, n, lanes):          j = uint32(lane)
            x[i, j] = 0.0                        stop = uint32(max(n, 0))
                                        becomes  while j < stop:
                                                     x[i, j] = 0.0
                                                     j = uint32(j + lanes)

    A signed counter with a step that is not known cost five times the instructions, a division
    among them: for the number of trips, by which LLVM unrolls the loop.
    """

    def __init__(self, tree: ast.FunctionDef, taken: set[str]):
        self.taken = taken
        self.sizes = {s.targets[0].id for s in tree.body if isinstance(s, ast.Assign)
                      and ast.unparse(s.value) == "cuda.blockDim.x"} | {"cuda.blockDim.x"}

    def visit_For(self, loop: ast.For) -> ast.For | list[ast.stmt]:
        loop.body = [new for s in loop.body for new in _listed(self.visit(s))]
        match loop.iter:
            case ast.Call(ast.Name("range"), [first, count, size]) if (
                    ast.unparse(size) in self.sizes):
                pass
            case _:
                return loop
        index, body = loop.target.id, _without_continue(loop.body)
        counter = index
        if not _only_indexes(body, index) or index in stored_in(body):
            counter = _unused("k", self.taken)
            body = [*_parse(f"{index} = int64({counter})"), *body]
        stop = _unused("stop", self.taken)
        return [*_parse(f"{counter} = uint32({ast.unparse(first)})\n"
                        f"{stop} = uint32(max({ast.unparse(count)}, 0))"),
                ast.While(_expression(f"{counter} < {stop}"),
                          [*body, *_parse(f"{counter} = uint32({counter} + {ast.unparse(size)})")],
                          [])]


def _listed(found: ast.stmt | list[ast.stmt]) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


def _number(x) -> str:
    """A number as kernels spell it."""
    if isinstance(x, float) and math.isinf(x):
        return "-np.inf" if x < 0 else "np.inf"
    return f"{x.dtype}({x})" if isinstance(x, np.generic) else repr(x)


def _parse(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _unused(name: str, taken: set[str]) -> str:
    unused, k = name, 1
    while unused in taken:
        unused, k = f"{name}_{k}", k + 1
    taken.add(unused)
    return unused


def _only_indexes(body: list[ast.stmt], index: str) -> bool:
    """Whether `index` is read only between brackets: arithmetic on it must not be unsigned."""
    inside: set[int] = set()
    for statement in body:
        for node in nodes_in(statement):
            if isinstance(node, ast.Subscript):
                entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                inside.update(id(e) for e in entries)
    return all(id(node) in inside for statement in body for node in nodes_in(statement)
               if isinstance(node, ast.Name) and node.id == index)


def _without_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    """Replace `continue`, which would skip the step to the next trip, by an else branch."""
    for k, statement in enumerate(body):
        match statement:
            case ast.If(test, [*first, ast.Continue()], []):
                rest = _without_continue(body[k + 1:])
                if not first:
                    return [*body[:k], ast.If(negated(test), rest, [])]
                return [*body[:k], ast.If(test, first, rest)]
    return body
