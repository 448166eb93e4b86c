"""Native code takes and returns numbers and arrays alone: containers are taken apart before, and put together after.

    f(p, x) -> {"w": w, "b": b}    becomes    f(p_w, p_b, x) -> (w, b)

Both adapters are written for the containers of one kind of call, so that a leaf costs a look-up and no more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from .ir.builder import Builder
from .ir.forms import with_attributes
from .ir.graph import Block, Function
from .ir.rebuild import emit_block
from .ir.types import Static, Tuple, Type
from .ops.control import container_syntax, member_syntax
from .ops.trees import leaf_types, leaves_of, parameter_tree


def has_containers(function: Function) -> bool:
    """Whether `function` takes or returns a container."""
    return any(isinstance(x.type, Tuple) for x in (*function.params, *function.results))


def spread(function: Function) -> Function:
    """`function`, whose arguments and results are leaves, one by one; what is no data is left out."""
    if not has_containers(function):
        return function
    params: list = []
    block = Block(params)
    with Builder(block):
        args = [parameter_tree(p.type, p.name, params) for p in function.params]
        leaves = [leaf for y in emit_block(function.block, args, {}) for leaf in leaves_of(y)]
        block.yields = [y for y in leaves if not isinstance(y.type, Static)]
    params[:] = [p for p in params if not isinstance(p.type, Static)]
    return Function(function.name, block, function.source, function.doc, len(block.yields) != 1)


def around(native: Callable, function: Function) -> Callable:
    """A function of the arguments of `function` that calls `native` with their leaves."""
    results = putting_together([y.type for y in function.results], function.tupled)
    call = taking_apart(native, results, [p.type for p in function.params])
    call.__name__ = function.name
    return call


def taking_apart(native: Callable, results: Callable, types: Sequence[Type]) -> Callable:
    """A function of containers that calls `native` with their leaves, and `results` with what it returns."""
    names = [f"a{k}" for k in range(len(types))]
    leaves = [leaf for name, type in zip(names, types) for leaf in _readers(ast.Name(name, ast.Load()), type)]
    keys: dict[str, object] = {"native": native, "results": results}
    for leaf in leaves:
        for node in ast.walk(leaf):
            if isinstance(node, ast.Subscript) and type(node.slice.value) not in (str, int):
                keys[f"key{len(keys)}"] = node.slice.value
                node.slice = ast.Name(f"key{len(keys) - 1}", ast.Load())
    text = f"lambda {', '.join(names)}: results(native({', '.join(map(ast.unparse, leaves))}))"
    return eval(text, keys)


def _readers(container: ast.expr, type: Type) -> list[ast.expr]:
    """What reads each leaf that is data."""
    if not isinstance(type, Tuple):
        return [] if isinstance(type, Static) else [container]
    return [leaf for k, t in enumerate(type.items) for leaf in _readers(member_syntax(container, type.form, k), t)]


def putting_together(types: Sequence[Type], tupled: bool) -> Callable:
    """A function of the leaves, as native code returns them, that makes the results."""
    count = sum(not isinstance(t, Static) for type in types for t in leaf_types(type))
    names: dict[str, object] = {with_attributes.__name__: with_attributes}
    leaves = iter([ast.Subscript(ast.Name("found", ast.Load()), ast.Constant(k), ast.Load()) for k in range(count)]
                  if count != 1 else [ast.Name("found", ast.Load())])
    made = [_maker(type, leaves, names) for type in types]
    body = ast.Tuple(made, ast.Load()) if tupled else made[0]
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and hasattr(node, "cls"):
            node.id = _named(node.cls, names)
    tree = ast.Expression(ast.Lambda(ast.arguments([], [ast.arg("found")], None, [], [], None, []), body))
    return eval(compile(ast.fix_missing_locations(tree), "<s2s results>", "eval"), names)


def _maker(type: Type, leaves: Iterator[ast.expr], names: dict[str, object]) -> ast.expr:
    """What makes a result of the next leaves; `names` are those that it uses."""
    match type:
        case Tuple(items, form):
            tree = container_syntax(*(_maker(t, leaves, names) for t in items), form=form)
            if isinstance(tree, ast.Dict):
                tree.keys = [ast.Name(_named(key, names), ast.Load()) for key in form.keys]
            return tree
        case Static(content):
            return ast.Name(_named(content, names), ast.Load())
    return next(leaves)


def _named(content, names: dict[str, object]) -> str:
    names[f"c{len(names)}"] = content
    return f"c{len(names) - 1}"
