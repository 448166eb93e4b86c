"""max and min of two numbers in native code: a comparison and a select.

Numba's own are Python functions that are compiled anew for each pair of types, in 30 ms or more,
and nearly every loop form asks for the trips of a range with `max(n, 0)`.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from numba import types
from numba.extending import intrinsic

from ..numba_internals import signature

NUMBERS = (types.Integer, types.Float, types.Boolean)
SHADOWED = {"max": "larger", "min": "smaller"}


def _extreme(name: str, condition: str):
    def of(typingctx, a, b):
        a, b = types.unliteral(a), types.unliteral(b)
        kind = typingctx.unify_types(a, b) if all(isinstance(t, NUMBERS) for t in (a, b)) else None
        if not isinstance(kind, NUMBERS):
            return None

        def emit(context, builder, sig, args):
            first, second = (context.cast(builder, x, t, kind) for x, t in zip(args, sig.args))
            if isinstance(kind, types.Float):
                better = builder.fcmp_ordered(condition, second, first)
            elif isinstance(kind, types.Integer) and kind.signed:
                better = builder.icmp_signed(condition, second, first)
            else:
                better = builder.icmp_unsigned(condition, second, first)
            return builder.select(better, second, first)

        return signature(kind, a, b), emit

    of.__name__ = of.__qualname__ = name
    of.__doc__ = f"Python's {'max' if condition == '>' else 'min'}(a, b)."
    return intrinsic(of)


larger, smaller = _extreme("larger", ">"), _extreme("smaller", "<")


def nodes_on(lines: Sequence[int], tree: ast.AST) -> Iterator[ast.AST]:
    """Like `ast.walk`, but skip statements and expressions on none of these (sorted) lines."""
    ahead = [tree]
    for node in ahead:
        for child in ast.iter_child_nodes(node):
            first = getattr(child, "lineno", None)
            if (first is None
                or (k := bisect_left(lines, first)) < len(lines) and lines[k] <= child.end_lineno):
                ahead.append(child)
        yield node


def shadowing(text: str) -> list[str]:
    """Import statements that redefine `max` and `min` in a module of this text, if all its calls
    have two arguments.
    """
    found: dict[str, list[ast.Call]] = {name: [] for name in SHADOWED if f"{name}(" in text}
    lines = [number
             for number, line in enumerate(text.split("\n"), 1)
             if any(f"{name}(" in line for name in found)]
    for node in nodes_on(lines, ast.parse(text)) if found else ():
        match node:
            case ast.Call(ast.Name(name)) if name in found:
                found[name].append(node)
    return [f"from {__name__} import {SHADOWED[name]} as {name}"
            for name, calls in found.items()
            if calls
            and all(len(c.args) == 2 and not c.keywords
                    and not any(isinstance(x, ast.Starred) for x in c.args) for c in calls)]
