"""Print `raise` and `assert`, and their form in compiled code.

Compiled code raises one of Python's own classes, with the run-time data unformatted: Numba passes
those to the exception, and reports the line. From both, runtime/call/user_exception.py builds the
user's exception.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ...errors import UnsupportedError
from ...ir.graph import Function, Op, walk
from ...ops.program.effects import (
    Filled,
    Joined,
    Made,
    Plain,
    builtin_base,
    is_builtin,
    print_record,
    spelled_class,
    within,
)
from ...ops.program.outside_writes import write_outside
from ..syntax.ast_builders import Body, negated


def raise_statement(op: Op, inputs: Sequence[ast.expr], native: bool) -> ast.stmt:
    """The statement for a `raise` op."""
    thrown, cause = op.attrs["thrown"], op.attrs["cause"]
    if native:
        statement = _native(thrown, inputs)
        statement.raises = op
        return statement
    cause = (None if cause is None else ast.Constant(None) if isinstance(cause, Plain)
             else cause.spell(inputs))
    return ast.Raise(thrown.spell(inputs), cause)


def _native(thrown: Made, inputs: Sequence[ast.expr]) -> ast.stmt:
    """`raise ValueError("x is {}", x)`: a text with gaps, and the data that fill them."""
    text = next((x.spell(inputs) for x in within(thrown) if isinstance(x, (Joined, Filled)) or (
        isinstance(x, Plain) and isinstance(x.content, str))), None)
    match text:
        case ast.JoinedStr(parts):
            text = ast.Constant("".join(p.value if isinstance(p, ast.Constant) else "{}"
                                        for p in parts))
        case ast.Constant() | None:
            pass
        case _:
            text = ast.Constant(next(x.text for x in within(thrown) if isinstance(x, Filled)))
    base = spelled_class(builtin_base(thrown.kind))
    if thrown.bare:
        return ast.Raise(base, None)
    return ast.Raise(ast.Call(base, [*([] if text is None else [text]), *inputs], []), None)


def _templates(op: Op) -> tuple:
    if op.name == "raise":
        return tuple(x for x in (op.attrs["thrown"], op.attrs["cause"]) if x is not None)
    if op.record is write_outside:
        return op.attrs["write"].items
    return op.attrs.get("items", ())


def classes_raised(functions: Iterable[Function]) -> list[type]:
    """The classes of exceptions that `functions` raise, in order of appearance."""
    return list(dict.fromkeys(x.kind for function in functions for op in walk(function.block)
                              for each in _templates(op)
                              for x in within(each) if isinstance(x, Made)))


def named_classes(functions: Iterable[Function]) -> dict[str, type]:
    """The user's own classes among those that `functions` raise, by name."""
    found: dict[str, type] = {}
    for kind in classes_raised(functions):
        if not is_builtin(kind) and found.setdefault(kind.__name__, kind) is not kind:
            raise UnsupportedError(f"two classes of exceptions that are called {kind.__name__}",
                                   None, "rename one")
    return found


def names_acted_with(functions: Sequence[Function]) -> frozenset[str]:
    """The names that `print` and `raise` need, which no variable may have."""
    names = {kind.__name__ for kind in classes_raised(functions)}
    names |= {op.attrs.get("function", "print").partition(".")[0] for function in functions
              for op in walk(function.block) if op.record is print_record}
    return frozenset(names)


def restore_asserts(body: Body) -> Body:
    """`if not c: raise AssertionError(text)` as `assert c, text`."""
    match body:
        case [ast.If(test, [ast.Raise(ast.Call(ast.Name("AssertionError"), arguments, []), None)],
                     [])] if len(arguments) <= 1:
            made = ast.Assert(negated(test), *arguments)
            made.msg = arguments[0] if arguments else None
            return [made]
    return body


