"""The printer: IR to a Python module that a person would have written.

`render(function)` copies arrays where writes ask for it (owners), decides which values stand inside
expressions (expressions), names the others (names), writes the statements (statements), and puts
the module together: imports, what the spelling of its ops needs, the functions it calls, the function.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import Line
from ..ir.graph import Function, walk
from .comments import with_comments
from .exits import with_returns
from .expressions import Layout
from .names import Names
from .owners import owned
from .prune import drop_dead, unpack_tuples
from .statements import Writer
from .unparse import Blank, Unparser


@dataclass(frozen=True)
class Module:
    """A complete module: its text, the function in it to call, and the user's line of each of its lines."""

    text: str
    entry: str
    lines: dict[int, Line] = field(default_factory=dict, repr=False)


def render(function: Function, annotate: bool = False, native: bool = False) -> Module:
    """`function`, and all that it calls, as the text of a module that needs NumPy only.

    With `annotate` the text is the IR itself: one op a line, with its type.  With `native` it keeps to what
    Numba knows: no `reversed`, and no variable that is first a number and then an array.
    """
    callees = _callees(function)
    helpers: dict[Callable, None] = {}
    definitions = []
    reserved = frozenset(f.name for f in (*callees, function))
    for called in (*callees, function):
        for op in walk(called.block):
            if op.record.helper is not None:
                helpers[op.record.helper] = None
        definitions.append(definition(called, annotate, native, reserved | {h.__name__ for h in helpers},
                                      entry=called is function))
    used = {node.id for tree in definitions for node in ast.walk(tree) if isinstance(node, ast.Name)}
    sources = [textwrap.dedent(inspect.getsource(helper)).rstrip() for helper in helpers]
    used |= {node.id for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    unparser = Unparser()
    for module, spelling in _IMPORTS:
        if module in used:
            unparser.fill(spelling)
    for source in sources:
        unparser.out += ["", "", *source.split("\n")]
    for tree in definitions:
        unparser.out += ["", ""]
        unparser.statement(tree)
    return _module(unparser, function.name)


_IMPORTS = [("math", "import math"), ("np", "import numpy as np"), ("scipy", "import scipy.special")]


def _module(unparser: Unparser, entry: str) -> Module:
    """The module's text, with its first empty lines taken off and its lines counted from 1."""
    lines = [line.rstrip() for line in unparser.out]
    skipped = 0
    while lines and not lines[0]:
        lines.pop(0)
        skipped += 1
    places = {number - skipped + 1: line for number, line in unparser.lines.items()}
    return Module("\n".join(lines) + "\n", entry, places)


def definition(function: Function, annotate: bool = False, native: bool = False,
               reserved: frozenset[str] = frozenset(), entry: bool = True) -> ast.FunctionDef:
    """`function` as a `def`."""
    function = owned(function, results=entry and not annotate, augmented=not annotate)
    unpack_tuples(function)
    drop_dead(function)
    layout = Layout(function, one_per_line=annotate)
    names = Names(layout, reserved, native)
    while not annotate and layout.inline_moved(names):
        names = Names(layout, reserved, native)
    writer = Writer(layout, names, native)
    body = writer.function_body(function.block, function.tupled)
    if not annotate:
        body = with_comments(with_returns(body), function)
    if function.doc:
        doc = ast.Expr(ast.Constant(function.doc))
        doc.docstring = True
        body.insert(0, doc)
    tree = ast.FunctionDef(function.name, _arguments(function, names, annotate), body or [ast.Pass()], [])
    return tree


def _arguments(function: Function, names: Names, annotate: bool) -> ast.arguments:
    args = [ast.arg(names[p], ast.Constant(str(p.type)) if annotate else None) for p in function.params]
    defaults = []
    for param, arg in zip(function.params, args):
        if param.name in function.defaults:
            defaults.append(ast.Constant(function.defaults[param.name]))
        elif defaults:
            defaults = []  # a default may not come before an argument without one
    return ast.arguments(posonlyargs=[], args=args, vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None,
                         defaults=defaults)


def _callees(function: Function) -> list[Function]:
    """The functions that `function` calls, directly or not, each after those it calls."""
    found: dict[str, Function] = {}
    active: set[str] = set()

    def visit(caller: Function) -> None:
        for op in walk(caller.block):
            if op.name == "call":
                callee = op.attrs["callee"].function_for(op.inputs)
                if callee.name not in found and callee.name not in active and callee.name != function.name:
                    active.add(callee.name)
                    visit(callee)
                    found[callee.name] = callee

    visit(function)
    return list(found.values())


__all__ = ["Module", "Blank", "render", "definition"]
