"""Running one activation of a function to its end, and what it returns."""

from __future__ import annotations

import gast

from ..errors import TypeMismatchError
from ..ir.builder import at, current
from .frame import RESULT, RETURNED, Ended, Frame
from .nonlocals import lend
from .raising import hand_over
from .scope import parameter_names

DEEPEST = 40  # activations run in place, one inside the other


class Diverges(Ended):
    """This path calls a function of which no path is known yet that returns: recursion.py."""


def run(inner: Frame, bindings: dict, node: gast.AST | None = None):
    """Run an activation to its end; returns the binding of its result."""
    caller, depth = inner.caller, 0
    frame = caller
    while frame is not None:
        frame, depth = frame.caller, depth + 1
    if depth > DEEPEST:
        if inner.session.tries:
            raise caller.refuse("recursion inside a `try`", node, "test before the call, and call it outside the `try`")
        raise caller.refuse("recursion", node, "write a loop")
    saved = None
    if caller is not None:
        saved, caller.live = caller.live, caller.live | caller.pending
        lend(caller)
    for name, binding in bindings.items():
        inner.env[name] = binding
    inner.session.taken.update(parameter_names(inner.node))
    try:
        with at(current().line):
            inner.session.execute(inner, inner.body, frozenset())
    finally:
        if caller is not None:
            caller.live = saved
    if caller is not None:
        hand_over(inner)
    return result_of(inner)


def result_of(frame: Frame):
    """What an activation that has ended returns."""
    returned = frame.env[RETURNED]
    if returned is False:
        return None
    result = frame.env.get(RESULT)
    if returned is not True and result is not None:
        raise TypeMismatchError("this function returns a value on some paths and nothing on others",
                                frame.line(frame.node), "end it with a `return` of the same kind")
    return result
