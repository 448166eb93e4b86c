"""`nonlocal` variables: lent to the nested function that writes them, and returned to its caller.

While the nested function runs, it holds the variable as one of its own, so that its branches and
loops join it like any other; afterwards its caller gets it back.  The caller must be the function
that owns the variable, or one that holds it: on a path that only another function knows, the two
values would not be joined.
"""

from __future__ import annotations

import gast

from ..domain.frame import BOUND, Frame


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
            raise caller.refuse(
                f"writing to {name} in a call that the function it belongs to does not make itself",
                node, "return the new value, or call it in a `for` loop of that function")
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
        owner_of(caller, name).env[name] = caller.env[name]


def owner_of(frame: Frame, name: str) -> Frame | None:
    """The activation that owns the variable `name`."""
    around = frame.lexical
    while around is not None and name not in around.outline.own:
        around = around.lexical
    return around
