"""Choose one of several functions, or of several objects of unlike classes, by a run-time index:
`steps[k](x)`, `shapes[k].area()`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import OPERATORS
from ...ops.core.control import if_
from ...ops.core.record import value
from ..control.join import branch, is_function
from ..domain.frame import ExceptionObject, Frame
from ..domain.functions import ConditionalFunction, ConditionalObject
from ..domain.heap import Container
from ..values.lists import counting, index_of, known_range
from ..values.messages import raise_
from .operators import decide


def choices_in(frame: Frame, base, key) -> Sequence | None:
    """The members of a list or tuple of nothing but functions, or of nothing but objects of unlike
    classes whose index no short loop counts; else None.
    """
    members = frame.members(base)
    if not members or all(map(is_function, members)):
        return members or None
    if (all(isinstance(x, Container) and not x.is_dict for x in members)
        and len({x.cls for x in members}) > 1
        and all(known_range(bounds) is None for bounds in counting(frame, key))):
        return members
    return None


def choice_at(frame: Frame, members: Sequence, key) -> ConditionalFunction | ConditionalObject:
    """`members[key]` of a run-time key, dispatched where it is used."""
    kind = ConditionalObject if isinstance(members[0], Container) else ConditionalFunction
    k, count = index_of(frame, key), len(members)
    k = if_(OPERATORS["less"](k, value(0)), lambda: [OPERATORS["add"](k, value(count))],
            lambda: [k], [""])[0]
    outside = decide(frame, False, OPERATORS["less"](k, value(0)),
                     lambda: OPERATORS["greater_equal"](k, value(count)), None, True)
    branch(
        frame, outside,
        lambda: raise_(frame, None, ExceptionObject(IndexError, ("list index out of range",), {})),
        lambda: None, frame.live | frame.pending)
    found = members[-1]
    for n in range(count - 2, -1, -1):
        found = kind(OPERATORS["equal"](k, value(n)), (members[n], found))
    return found
