"""The NaN trap: with S2S_CHECK=nan, generated code stops at the first NaN or inf that it produces,
forwards or backwards.

The assigned values are inspected after each assignment of interpreted code. The FloatingPointError
names the statement that produced the NaN, and its operands; the user's line is added as for any
error (load_source.py). An inf that was there before, as an operand or as `np.inf` in the statement,
does not stop the program.

Compiled code inspects its assignments, too, and raises (nan_trap_native.py); the interpreted form
then runs on the same arguments and reports statement and operands (runtime/call/native_function.py,
Note [Where an error came from]).
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

import numpy as np

from ...back.syntax.ast_builders import call
from ...check_flags import is_requested

STOP, REMEMBER, BEFORE, RESULT = "__s2s_stop", "__s2s_remember", "__s2s_before", "__s2s_result"
LOCALS = "__s2s_locals"  # locals(), under a name that no program uses
# uninitialised until they are written
ALLOCATIONS = ("np.empty", "np.empty_like", "unshared_empty")
FEW = 6  # array elements shown in a message


def is_checking() -> bool:
    """Whether S2S_CHECK asks for the trap."""
    return is_requested("nan")


# --------------------------------------------------------------------------------- interpreted code


class Trap(ast.NodeTransformer):
    """Insert calls before and after each assignment that inspect the values."""

    def visit_Assign(self, node: ast.Assign):
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ALLOCATIONS:
            return node
        return self.watched(node, node.targets[0])

    def visit_AugAssign(self, node: ast.AugAssign):
        return self.watched(node, node.target)

    def visit_Return(self, node: ast.Return):
        if node.value is None or isinstance(node.value, (ast.Name, ast.Constant)):
            return node
        given = ast.copy_location(ast.Assign([ast.Name(RESULT, ast.Store())], node.value), node)
        node = ast.copy_location(ast.Return(ast.Name(RESULT, ast.Load())), node)
        return [*self.watched(given, given.targets[0]), node]

    def watched(self, node: ast.stmt, target: ast.expr) -> list[ast.stmt]:
        """The statement between two inspecting calls; of an indexed target only the written
        elements are inspected.
        """
        elements = [ast.unparse(target)] if isinstance(target, ast.Subscript) else []
        names = elements or [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
        here = call(LOCALS)
        remember = ast.Assign([ast.Name(BEFORE, ast.Store())],
                              call(REMEMBER, here, *map(ast.Constant, elements)))
        stop = ast.Expr(call(STOP, ast.Constant(ast.unparse(node)), ast.Constant(tuple(names)),
                              here, ast.Name(BEFORE, ast.Load())))
        return [ast.copy_location(remember, node), node, ast.copy_location(stop, node)]


def remember(names: dict, *elements: str) -> dict:
    """Record the current variables; `elements` are about to be overwritten."""
    kept = {name: x for name, x in names.items() if name != BEFORE}
    for text in elements:
        try:
            kept[text] = np.copy(eval(text, sys._getframe(1).f_globals, names))[()]
        except Exception:  # noqa: S112 - the statement itself will raise it
            continue
    return kept


def stop(statement: str, targets: tuple[str, ...], now: dict, before: dict) -> None:
    """Raise FloatingPointError if one of the `targets` holds a NaN, or an inf that `statement`
    produced.
    """
    scope = sys._getframe(1).f_globals
    for target in targets:
        x = now[target] if target in now else eval(target, scope, now)
        bad = first_bad(x)
        if bad is None:
            continue
        place, number = bad
        operands = list(_operands(statement, scope, before))
        if _is_old(number, [y for _, y in operands]):
            continue
        name = "the result" if target == RESULT else target
        made = statement.replace(f"{RESULT} = ", "return ")
        values = ", ".join(_shown(text, y, np.shape(x), place)
                           for text, y in operands if not _is_spelled(text))
        raise FloatingPointError(f"{name}{_index(place)} becomes {number}\n    {made}"
                                 + (f"\n    where {values}" if values else ""))


def first_bad(x) -> tuple[tuple[int, ...], float] | None:
    """The index and the value of the first NaN, or else the first inf, in a number or array."""
    if isinstance(x, (tuple, list)):
        return next(filter(None, map(first_bad, x)), None)
    if not (isinstance(x, (float, complex, np.inexact))
            or (isinstance(x, np.ndarray) and x.dtype.kind in "fc")):
        return None
    for test in (np.isnan, np.isinf):
        found = np.argwhere(test(np.asarray(x)))
        if len(found):
            place = tuple(map(int, found[0]))
            number = np.asarray(x)[place].item()
            return place, number
    return None


def _is_old(number, operands: list) -> bool:
    """Whether the value was there before: an inf among the operands, a NaN spelled in the
    statement.
    """
    if np.isnan(number):
        return any(isinstance(y, float) and y != y and y is np.nan for y in operands)
    return any(bool(np.any(np.isinf(y)))
               for y in operands
               if isinstance(y, (float, complex, np.inexact, np.ndarray))
               and np.asarray(y).dtype.kind in "fc")


def _operands(statement: str, scope: dict, before: dict) -> Iterator[tuple[str, object]]:
    """The names read by the right-hand side of `statement`, and their values."""
    (tree,) = ast.parse(statement).body
    read = list(_leaves(tree.value))
    if isinstance(tree, ast.AugAssign):
        read.insert(0, ast.unparse(tree.target))
    for text in dict.fromkeys(read):
        try:
            yield text, before[text] if text in before else eval(text, scope, before)
        except Exception:  # noqa: S112 - it was not evaluated, or not under this name
            continue


def _leaves(tree: ast.expr) -> Iterator[str]:
    match tree:
        case ast.Name(name):
            if not hasattr(builtins, name):
                yield name
        case ast.Subscript():
            yield ast.unparse(tree)
        case ast.Attribute(ast.Name("np" | "math"), "inf" | "nan"):
            yield ast.unparse(tree)
        case ast.Call(ast.Attribute(ast.Name("np" | "math" | "scipy"), _), args):
            for arg in args:
                yield from _leaves(arg)
        case ast.Call(function, args):
            for arg in (*([function.value] if isinstance(function, ast.Attribute) else []), *args):
                yield from _leaves(arg)
        case _:
            for child in ast.iter_child_nodes(tree):
                if isinstance(child, ast.expr):
                    yield from _leaves(child)


def _is_spelled(text: str) -> bool:
    return text.startswith(("np.", "math."))


def _index(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""


def _shown(text: str, y, shape: tuple[int, ...], place: tuple[int, ...]) -> str:
    """Text such as `x = 2.0`; of an array shaped like the result, the element at the bad index."""
    if isinstance(y, np.ndarray) and y.ndim:
        if y.shape == shape:
            return f"{text}{_index(place)} = {y[place].item()!r}"
        if y.size > FEW and y.dtype.kind in "iuf":
            return f"{text} = {y.dtype}{list(y.shape)} from {y.min()!s} to {y.max()!s}"
        return f"{text} = {np.array2string(y, threshold=FEW)}"
    return f"{text} = {y.item() if isinstance(y, (np.generic, np.ndarray)) else y!r}"


# ------------------------------------------------------------------------------------ compiled code


def watching(text: str) -> dict[int, str]:
    """The calls to insert into compiled code, by line."""
    added: dict[int, str] = {}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Assign([target], value) if not (isinstance(value, ast.Call)
                                                     and ast.unparse(value.func) in ALLOCATIONS):
                pass
            case ast.AugAssign(target):
                pass
            case _:
                continue
        looked = [ast.unparse(target)] if isinstance(target, ast.Subscript) else [
            n.id for n in ast.walk(target) if isinstance(n, ast.Name) and n.id != "_"]
        added[node.end_lineno] = "; ".join(f"trapped({name})" for name in looked)
        added[node.end_lineno] = " " * node.col_offset + added[node.end_lineno]
    return added
