"""Turn a function with one loop into a kernel whose threads share the trips (grid-stride loop).

Works on printed syntax trees. Trips are counted in unsigned 32-bit integers: signed ones cost ten
times the instructions.
"""

from __future__ import annotations

import ast

from ..print.statement_writer import negated
from ..syntax.ast_names import nodes_in


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


def spread_over_threads(tree: ast.FunctionDef, kernel,
                        parts: list[tuple[int, str]]) -> ast.FunctionDef:
    """Distribute the loop over the threads of the grid, and add up its sums block by block."""
    tree = append_array_arguments(tree, kernel)
    place = next(k for k, s in enumerate(tree.body) if isinstance(s, ast.For))
    loop = tree.body[place]
    taken = {node.id for node in nodes_in(tree)
             if isinstance(node, ast.Name)} | {a.arg for a in tree.args.args}
    index, count = loop.target.id, tree.args.args[0].arg
    as_index = _only_indexes(loop.body, index)
    thread = index if as_index else _unused("thread", taken)
    stride = _unused("stride", taken)
    inner = _without_continue(loop.body)
    if not as_index:
        inner = [*_parse(f"{index} = int64({thread})"), *inner]
    tree.body[place:place + 1] = [
        *_parse(f"{count} = uint32({count})\n{thread} = uint32(cuda.grid(1))\n"
                f"{stride} = uint32(cuda.gridsize(1))"),
        ast.While(_expression(f"{thread} < {count}"),
                  [*inner, *_parse(f"{thread} = uint32({thread} + {stride})")], []),
    ]
    results = tree.body.pop().value.elts
    if parts:
        t = _unused("t", taken)
        tree.body += _parse(f"{t} = cuda.threadIdx.x")
        for (_, dtype), result in zip(parts, results):
            tree.body += _block_sum(result.id, dtype, t, taken, tree)
    return tree


def _block_sum(total: str, dtype: str, t: str, taken: set[str],
               tree: ast.FunctionDef) -> list[ast.stmt]:
    """A tree reduction of the threads' sums in shared memory."""
    shared, half, into = _unused(f"{total}_shared",
                                 taken), _unused("half", taken), _unused(f"{total}_parts", taken)
    taken.discard(half)
    tree.args.args.append(ast.arg(into))
    return _parse(f"""
{shared} = cuda.shared.array(THREADS, {dtype})
{shared}[{t}] = {total}
cuda.syncthreads()
{half} = THREADS // 2
while {half} > 0:
    if {t} < {half}:
        {shared}[{t}] += {shared}[{t} + {half}]
    cuda.syncthreads()
    {half} //= 2
if {t} == 0:
    {into}[cuda.blockIdx.x] = {shared}[0]
""")


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
