"""Flattening of containers around native code, which takes and returns numbers and arrays alone.

    f(p, x) -> {"w": w, "b": b}    becomes    f(p_w, p_b, x) -> (w, b)

What takes apart and puts together is written for the containers of one kind of call, so that a leaf
costs a look-up and no more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.builder import Builder
from ..ir.graph import Block, Function
from ..ir.reemit import emit_block
from ..ir.treedef import Form, with_attributes
from ..ir.types import Scalar, Static, Tuple, Type
from ..ops.core.control import container_syntax, member_syntax
from ..ops.program.pytree import leaf_types, leaves_of, parameter_tree
from ..runtime.call.type_guards import MANY, Names


def has_containers(function: Function) -> bool:
    """Test whether `function` takes or returns a container, or takes a non-numeric argument."""
    return (any(isinstance(p.type, (Tuple, Static)) for p in function.params)
            or any(isinstance(y.type, Tuple) for y in function.results))


def spread(function: Function) -> Function:
    """Flatten the arguments and results of `function` to leaves; non-numeric ones are left out."""
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


@dataclass(eq=False)
class Compiled:
    """Native code with the structure of its arguments and results: a function of the arguments of
    `function`.

    `native` takes their leaves, and returns those of the results.
    """

    native: Callable
    function: Function

    def __post_init__(self):
        self.__name__ = self.function.name
        self.whole = (around(self.native, self.function) if has_containers(self.function)
                      else self.native)

    def __call__(self, *args):
        return self.whole(*args)


def around(native: Callable, function: Function) -> Callable:
    """Wrap `native` to a function of the arguments of `function`: it is passed their leaves, and
    the results are built from its leaves.
    """
    return _around(native, function, lambda run, names: result_expression(run, function, names))


def taking_apart(native: Callable, function: Function) -> Callable:
    """Wrap `native` to a function of the arguments of `function` that returns its result leaves."""
    return _around(native, function, lambda run, names: ([], run))


def _around(native: Callable, function: Function, result: Callable) -> Callable:
    names = Names()
    params = [f"a{k}" for k in range(len(function.params))]
    leaves = [leaf for name, p in zip(params, function.params)
              for leaf in _readers(ast.Name(name, ast.Load()), p.type)]
    for leaf in leaves:
        for node in ast.walk(leaf):
            if (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
                    and type(node.slice.value) not in (str, int)):
                node.slice = ast.Name(names.given(node.slice.value, "key"), ast.Load())
    before, found = result(
        f"{names.given(native, 'native')}({', '.join(map(ast.unparse, leaves))})", names)
    lines = "\n".join(f"    {line}" for line in [*before, f"return {found}"])
    exec(compile(f"def call({', '.join(params)}):\n{lines}\n", f"<s2s call of {function.name}>",
                 "exec"), names.content)
    return names.content["call"]


def _readers(container: ast.expr, type: Type) -> list[ast.expr]:
    """Return the expression that reads each leaf that is data."""
    if not isinstance(type, Tuple):
        return [] if isinstance(type, Static) else [container]
    return [leaf for k, t in enumerate(type.items)
            for leaf in _readers(member_syntax(container, type.form, k), t)]


def result_expression(run: str, function: Function, names: Names,
                      narrow: bool = False) -> tuple[list[str], str]:
    """Return statements, and an expression after them, that build the results of `function` from
    the expression `run`.

    That is one leaf, or a tuple of all.  With `narrow`, numbers among them, which are Python's, are
    given their dtypes.
    """
    types = [y.type for y in function.results]
    if has_containers(function):
        types = [t for type in types for t in leaf_types(type) if not isinstance(t, Static)]
        alone = len(types) == 1
    else:
        alone = not function.tupled
        if not (narrow and any(map(is_narrow, types))):
            return [], run
    leaves = Leaves(run, types, alone, narrow, names)
    made = [_maker(y.type, leaves, names) for y in function.results]
    body = ast.Tuple(made, ast.Load()) if function.tupled else made[0]
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and hasattr(node, "cls"):
            node.id = names.given(node.cls, node.id)
    return leaves.before, ast.unparse(ast.fix_missing_locations(body))


class Leaves:
    """Expressions for the leaves that `run` returns, one after the other, or many at once; `before`
    are the statements needed first.
    """

    def __init__(self, run: str, types: Sequence[Type], alone: bool, narrow: bool, names: Names):
        self.names, self.next = names, 0
        self.whole = names.new("y") if len(types) >= MANY else None
        found = [run] if alone else [f"{self.whole}[{k}]" if self.whole else names.new("y")
                                     for k in range(len(types))]
        target = self.whole or "".join(f"{y}, " for y in found) or "_"
        self.before = [] if alone else [f"{target} = {run}"]
        self.is_narrow = [narrow and is_narrow(t) for t in types]
        self.texts = [f"{names.given(np.dtype(t.dtype).type, t.dtype)}({y})" if narrows else y
                      for y, t, narrows in zip(found, types, self.is_narrow)]

    def one(self) -> ast.expr:
        self.next += 1
        return ast.parse(self.texts[self.next - 1], mode="eval").body

    def row(self, items: Sequence[Type], form: Form | None) -> ast.expr | None:
        """Build a container of `form` from the next leaves, one for each of `items`, if they are
        many and need no conversion.
        """
        end = self.next + len(items)
        if (self.whole is None or len(items) < MANY
                or any(isinstance(t, (Tuple, Static)) for t in items)
                or any(self.is_narrow[self.next:end])):
            return None
        is_all = (self.next, end) == (0, len(self.texts))
        taken = self.whole if is_all else f"{self.whole}[{self.next}:{end}]"
        match form and form.kind:
            case None:
                text = f"({taken})"
            case "list":
                text = f"[*{taken}]"
            case "dict" if form.cls is dict:  # a copy is preallocated for all of them
                text = self.names.new("made")
                self.before.append(f"{text} = "
                                   f"{self.names.given(dict.fromkeys(form.keys), 'empty')}.copy()")
                self.before.append(f"{text}.update({self.names.given(zip, 'zip')}("
                                   f"{self.names.given(form.keys, 'keys')}, {taken}))")
            case _:
                return None
        self.next = end
        return ast.parse(text, mode="eval").body


def is_narrow(type: Type) -> bool:
    """Test whether a leaf of `type` is a number of a dtype that Python's numbers do not have, as
    which native code returns it.
    """
    return isinstance(type, Scalar) and type.dtype not in ("bool", "int64", "float64", "complex128")


def _maker(type: Type, leaves: Leaves, names: Names) -> ast.expr:
    """Return an expression that builds a result from the next leaves; `names` are those that it
    uses.
    """
    match type:
        case Tuple(items, form):
            if (row := leaves.row(items, form)) is not None:
                return row
            tree = container_syntax(*(_maker(t, leaves, names) for t in items), form=form)
            if isinstance(tree, ast.Dict):
                tree.keys = [ast.Constant(key) if key.__class__ in (str, int)
                             else ast.Name(names.given(key, "key"), ast.Load())
                             for key in form.keys]
            if (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
                    and tree.func.id == with_attributes.__name__):
                tree.func.id = names.given(with_attributes, with_attributes.__name__)
            return tree
        case Static(content):
            return ast.Name(names.given(content, "c"), ast.Load())
    return leaves.one()
