"""Calls through a list or tuple of functions with a run-time index: `steps[k](x)`."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import OPERATORS
from ...ops.core.control import if_
from ...ops.core.record import value
from ..control.join import branch, is_function
from ..domain.frame import ExceptionObject, Frame
from ..domain.functions import ConditionalFunction
from ..values.lists import index_of
from ..values.messages import raise_
from .operators import decide


def functions_in(frame: Frame, base) -> Sequence | None:
    """The functions in a list or tuple of nothing but functions; else None."""
    members = frame.members(base)
    return members if members and all(map(is_function, members)) else None


def function_at(frame: Frame, functions: Sequence, key) -> ConditionalFunction:
    """`functions[key]` of a run-time key: a conditional function, dispatched where it is called."""
    k, count = index_of(frame, key), len(functions)
    k = if_(OPERATORS["less"](k, value(0)), lambda: [OPERATORS["add"](k, value(count))],
            lambda: [k], [""])[0]
    outside = decide(frame, False, OPERATORS["less"](k, value(0)),
                     lambda: OPERATORS["greater_equal"](k, value(count)), None, True)
    branch(
        frame, outside,
        lambda: raise_(frame, None, ExceptionObject(IndexError, ("list index out of range",), {})),
        lambda: None, frame.live | frame.pending)
    found = functions[-1]
    for n in range(count - 2, -1, -1):
        found = ConditionalFunction(OPERATORS["equal"](k, value(n)), (functions[n], found))
    return found
