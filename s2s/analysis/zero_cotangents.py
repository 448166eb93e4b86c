"""Find the paths on which a cotangent is zero because a branch discarded its value.

    for k in range(n):
        total = total + f(k, rate)
    step = total / n
    if step > limit:            # what the loop has summed has no part in the result
        step = limit

In the reverse sweep the branch contributes nothing to the cotangent of `step` where `step > limit`,
and the loop has nothing to do there: it is swept back only where the branch went the other way, as
one would write it by hand.  Nor may it be swept there: the discarded values may have been infinite,
or have infinite slopes, and zeros times those would be NaN (ops/core/chain_rule.py,
Note [Masks stay outermost]).

Considered: to ask at run time whether the cotangents are zero, which would leave out what is NaN by
right; and to find such loops in the finished function, where a loop of the program's own, whose
trips add zeros, looks like one of its derivative.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.graph import MISSING, Value
from ..ops.core.chain_rule import FIRST_OF
from ..ops.core.shape import shaped_like

Way = tuple[Value, bool]  # a path through a branch: its condition, and the value of that
DEEPEST = 50  # the most ops to follow behind a cotangent


class Unreached:
    """The paths through earlier branches on which cotangents are zero, as recorded for the results
    of branches and loops.
    """

    def __init__(self, primal: dict):
        self.primal = primal  # not a cotangent
        self.said: dict[Value, tuple[Way, ...]] = {}

    def say(self, bar: Value, ways: Iterable[Way]) -> None:
        """Record that `bar`, a result of a branch or a loop, is zero on each of these paths."""
        if ways := tuple(dict.fromkeys(ways)):
            self.said[bar] = ways

    def ways(self, bars: Iterable[Value]) -> tuple[Way, ...]:
        """Return the paths on which all of `bars` are zero; none where they always are."""
        return self._all(bars, 0) or () if self.said else ()

    def also(self, ways: Iterable[Way], bar: Value) -> list[Way]:
        """Return those of `ways` on which `bar` is zero as well."""
        found = self._of(bar, 0)
        return [way for way in ways if found is None or way in found]

    def _all(self, bars: Iterable[Value], depth: int) -> tuple[Way, ...] | None:
        """Return the paths on which all of `bars` are zero; None if they always are."""
        common = None
        for bar in bars:
            found = self._of(bar, depth)
            if found is not None:
                common = found if common is None else tuple(way for way in common if way in found)
            if common == ():
                break
        return common

    def _of(self, bar: Value, depth: int) -> tuple[Way, ...] | None:
        if bar in self.said:
            return self.said[bar]
        op = bar.op
        if op is None or op.blocks or bar in self.primal or depth == DEEPEST:
            return ()
        if op.record.fill == 0:
            return None
        if bar.constant is not MISSING:
            return None if type(bar.constant) in (int, float, complex) and bar.constant == 0 else ()
        if op.name == "multiply":
            found = [self._of(x, depth + 1) for x in op.inputs]
            return None if None in found else tuple(way for ways in found for way in ways)
        if op.name in FIRST_OF or op.record is shaped_like:
            return self._of(op.inputs[0], depth + 1)
        if op.record.is_sum or op.record.selects:
            return self._all(op.inputs[op.record.selects:], depth + 1)
        return (self._all((x for k, x in enumerate(op.inputs) if k in op.record.linear), depth + 1)
                if op.record.linear else ())
