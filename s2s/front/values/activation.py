"""Run one activation of a function to its end; its result."""

from __future__ import annotations

import gast

from ...ir.builder import at, current
from ...ops.core.control import if_
from ...ops.core.record import value
from ..domain.frame import RESULT, RETURNED, Frame, PathEnded
from ..domain.optional import Maybe, resolve_optional
from ..syntax.liveness import parameter_names
from .exceptions import hand_over
from .nonlocals import lend

DEEPEST = 40  # depth limit of inlined activations


class Diverges(PathEnded):
    """Signal that this path calls a function for which no returning path is known yet:
    front/control/recursion.py.
    """


def run(inner: Frame, bindings: dict, node: gast.AST | None = None):
    """Run an activation to its end; returns the binding of its result."""
    caller, depth = inner.caller, 0
    frame = caller
    while frame is not None:
        frame, depth = frame.caller, depth + 1
    if depth > DEEPEST:
        if inner.session.tries:
            raise caller.refuse("recursion inside a `try`", node,
                                "test before the call, and call it outside the `try`")
        raise caller.refuse("recursion", node, "write a loop")
    saved = None
    if caller is not None:
        saved, caller.live = caller.live, caller.live | caller.pending
        lend(caller)
    for name, binding in bindings.items():
        inner.env[name] = binding
    if inner.holder:
        inner.heap.fill(inner.env[inner.holder],
                        {name: x for name, x in bindings.items() if name in inner.held_names})
    if inner.place is not None:  # a function of s2s's own
        inner.foreign |= frozenset(inner.values_in(bindings.values()))
    inner.session.taken.update(parameter_names(inner.node))
    before, inner.session.active = inner.session.active, inner
    filters = inner.session.filters
    try:
        with at(current().line):
            inner.session.execute(inner, inner.body, frozenset())
    finally:
        inner.session.active = before
        inner.session.filters_left, inner.session.filters = inner.session.filters, filters
        if caller is not None:
            caller.live = saved
    if caller is not None:
        hand_over(inner)
    return result_of(inner)


def result_of(frame: Frame):
    """The result of an activation that has ended."""
    returned = frame.env[RETURNED]
    if returned is False:
        return None
    result = resolve_optional(frame.session.assumed, frame.env.get(RESULT))
    if returned is True or result is None:
        return result
    if not isinstance(result, Maybe):
        return Maybe(returned, result)
    return Maybe(
        if_(returned, lambda: [value(result.is_set)], lambda: [value(False)], [""])[0],
        result.content)
