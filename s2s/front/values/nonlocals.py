"""`nonlocal` variables: lent to the nested function that writes them, and returned to its caller.

While the nested function runs, it holds the variable as one of its own, so that its branches and
loops join it like any other; afterwards its caller gets it back.  The caller must be the function
that owns the variable, or one that holds it: on a path that only another function knows, the two
values would not be joined.  Elsewhere an object holds it (front/syntax/cell_variables.py).
"""

from __future__ import annotations

import gast

from ..domain.frame import BOUND, Frame, NeedsHolder
from ..syntax.liveness import Outline


def borrow(inner: Frame, node: gast.AST) -> list[str]:
    """Lend the `nonlocal` variables of `inner`, and those that its caller holds, to `inner`;
    returns their names.
    """
    caller = inner.caller
    for name in inner.outline.outer:
        owner = owner_of(inner, name)
        if owner is None:
            raise inner.refuse(f"writing to {name}, a variable of a function that has returned",
                               inner.node, "return the new value")
        if (name not in caller.borrowed and owner is not caller
                or caller.session.active not in (None, caller)):
            raise _unheld(caller, owner, name, node)
    held = [
        name for name in _written_inside(inner)
        if owner_of(inner, name) is caller or name in caller.borrowed
    ]
    held = [name for name in held if name in caller.env]
    held += [flag for flag in map(BOUND.format, held) if flag in caller.env]
    for name in held:
        inner.env[name] = caller.env[name]
    inner.borrowed = frozenset(held)
    return held


def require_holders(caller: Frame, lexical: Frame | None, outline: Outline,
                    node: gast.AST | None) -> None:
    """Require that objects hold the `nonlocal` variables of a function inside `lexical`."""
    for name in outline.outer:
        owner = lexical
        while owner is not None and name not in owner.outline.own:
            owner = owner.lexical
        if owner is not None:
            raise _unheld(caller, owner, name, node)


def _unheld(caller: Frame, owner: Frame, name: str, node: gast.AST | None) -> Exception:
    """What to raise where a variable is written in a call that its owner does not make itself."""
    if owner.holdable():
        return NeedsHolder(owner.definition)
    return caller.refuse(
        f"writing to {name} in a call that the function it belongs to does not make itself", node,
        "return the new value, or give the exceptions that are caught there another name")


def _written_inside(inner: Frame) -> list[str]:
    """The variables of enclosing functions that some nested function writes."""
    found, around = {}, inner.lexical
    while around is not None:
        found.update(
            dict.fromkeys(name for name in around.outline.written_inside
                          if name not in inner.outline.own))
        around = around.lexical
    return list(found)


def lend(caller: Frame) -> None:
    """Update the owners of the `nonlocal` variables that `caller` holds."""
    for name in caller.borrowed:
        variable = name.removeprefix(BOUND[:7]).removesuffix(BOUND[-1]) if name[0] == "<" else name
        owner_of(caller, variable).env[name] = caller.env[name]


def owner_of(frame: Frame, name: str) -> Frame | None:
    """The activation that owns the variable `name`."""
    around = frame.lexical
    while around is not None and name not in around.outline.own:
        around = around.lexical
    return around
