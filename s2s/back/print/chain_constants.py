"""Assign one number to several variables in one line.

    a_bar = 0.0
    b_bar = 0.0        prints as        a_bar = b_bar = 0.0

Consecutive lines only, and those of one line of the user's.
"""

from __future__ import annotations

import ast

from ..syntax.ast_names import nodes_in
from .pack_saved import NAMES, WIDTH


def chain_constants(body: list[ast.stmt]) -> None:
    """Chain assignments of one number in these statements and those inside them, in place."""
    for statement in [*body]:
        for node in nodes_in(statement):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(inner := getattr(node, name, None), list):
                    _chain(inner)
    _chain(body)


def _chain(body: list[ast.stmt]) -> None:
    kept: list[ast.stmt] = []
    for statement in body:
        if kept and _is_one(kept[-1], statement):
            kept[-1].targets += statement.targets
        else:
            kept.append(statement)
    body[:] = kept


def _is_one(first: ast.stmt, second: ast.stmt) -> bool:
    """Test whether both assign one number to variables, and a line takes all of these."""
    match first, second:
        case ast.Assign(targets, ast.Constant(a)), ast.Assign([ast.Name()], ast.Constant(b)):
            targets = [*targets, *second.targets]
            return (all(isinstance(target, ast.Name) for target in targets)
                    and type(a) is type(b) in (bool, int, float) and repr(a) == repr(b)
                    and len(targets) <= NAMES
                    and sum(len(target.id) + 3 for target in targets) < WIDTH
                    and getattr(first, "line", None) == getattr(second, "line", None))
    return False
