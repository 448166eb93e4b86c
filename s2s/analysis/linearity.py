"""Linearity analysis: find the values that are linear in the differentiated inputs, and those whose
tangents meet slopes that may be infinite.

    z = x[:, None] - x    linear: where its tangent is 0, z does not change in this direction, nor
                          does anything computed from it
    u = z * z             not linear: its tangent is 0 where z is 0, too
    d = np.sqrt(u)        d_dot = 0 where z_dot is 0, whatever the slope of the root is

So forward mode has strong zeros where it has them by right (Note [Strong zeros],
ops/core/chain_rule.py): of directions that do not touch an entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Function, Op, Value, walk
from ..ir.types import Array, Scalar
from ..ops.arrays.norms import as_if, complex_as_if
from .discarded_entries import Discarded
from .propagate import propagate


def linear_values(function: Function, varied: set[Value], given: set[Value]) -> set[Value]:
    """Return the `varied` values that are linear in the values `given`."""
    facts = {x: True for x in varied
             if not isinstance(x.type, (Scalar, Array)) or x in function.params and x not in given}

    def computed(op: Op) -> Iterator[tuple[Value, bool]]:
        if not _is_linear(op, varied) or any(x in facts for x in op.inputs):
            yield from ((y, True) for y in op.outputs if y in varied)

    return varied - set(propagate(function.block, facts, computed, accepts=varied.__contains__))


def _is_linear(op: Op, varied: set[Value]) -> bool:
    places = [k for k, x in enumerate(op.inputs) if x in varied]
    if op.record.multilinear:
        return len(places) == 1
    return (op.record.structural or op.record.indices is not None
            or all(k in op.record.linear for k in places))


class Untouched:
    """The tangents in which a 0 means that the direction does not involve an entry, for ops that
    depend on it.

    They do where a finite value may have an infinite slope, and in the chain of ops of one operand
    that changes that leads there.  Where the value is infinite itself (log, 1 / x) there is nothing
    to be told of it but that it was thrown away, and then its tangent is, too.
    """

    def __init__(self, function: Function, varied: set[Value], given: set[Value]):
        self.discarded = Discarded(function, varied)
        self.linear: set[Value] = set()
        self.awaited: set[Value] = set()
        # differentiated as another expression
        replaced = {op.inputs[0] for op in walk(function.block)
                    if op.record in (as_if, complex_as_if)}
        self.steep = {op for op in walk(function.block) if self.discarded.slope(op) == "steep"
                      and replaced.isdisjoint(op.outputs)}
        for op in reversed(list(walk(function.block))):
            if (op in self.steep or op.record.elementwise
                    and any(y in self.awaited for y in op.outputs)):
                changing = {x for x in op.inputs if x in varied}
                if len(changing) == 1 or op in self.steep:
                    self.awaited |= changing
        if self.awaited:
            self.linear = linear_values(function, varied, given)

    def asks_strong_zeros(self, op: Op) -> bool:
        """Test whether an elementwise op begins, or belongs to, a chain with a slope that may be
        infinite.
        """
        leads = (op in self.steep or op.record.elementwise
                 and any(y in self.awaited for y in op.outputs))
        return (leads and any(x in self.awaited for x in op.inputs)
                and any(y not in self.linear for y in op.outputs))

    def masks(self, op: Op) -> tuple[int, int] | None:
        """Return the inputs of a product that are a mask and the masked value, whose tangent may be
        infinite.
        """
        if op.name != "multiply" or not self.awaited:
            return None
        for k, x in enumerate(op.inputs):
            if x in self.discarded.steep and self.discarded.scales(op.inputs[1 - k]):
                return 1 - k, k
        return None
