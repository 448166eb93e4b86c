"""Drop masks that select what is zero elsewhere anyway, or that the path has decided.

    >>> show(drop_redundant_masks(read('''
    ... def f(x: 'float64', c: 'bool'):
    ...     if c:
    ...         y = 0.0
    ...     else:
    ...         y = np.sin(x)
    ...     return np.where(not c, y, 0.0)
    ... ''')))
    def f(x, c):
        if c:
            y = 0.0
        else:
            y = np.sin(x)
        return y

The reverse sweep masks the cotangents that only some paths contribute to, so that infinite slopes
elsewhere do no harm (ops/core/chain_rule.py, Note [Masks stay outermost]).  It does so before it is
known which of these are computed on those paths only.
"""

from __future__ import annotations

from ...analysis.path_conditions import BOTH, EITHER, Facts, assume, is_zero
from ...ir.graph import Block, Function, Op, Value
from ...ir.substitute import substitute
from ...ops.core.record import dtype_of


def drop_redundant_masks(function: Function) -> Function:
    """Replace choices by one of their operands where conditions imply which, in place."""
    _visit(function.block, {}, same := {})
    substitute(function.block, same)
    return function


def _visit(block: Block, facts: Facts, same: dict[Value, Value]) -> None:
    for op in block.ops:
        op.inputs = [same.get(x, x) for x in op.inputs]
        found = _equal(op, facts) if len(op.outputs) == 1 and not op.blocks else None
        if found is not None and found.type == op.output.type:
            same[op.output] = found
            found.name = found.name or op.output.name
        for arm, inner in enumerate(op.blocks):
            there = assume(facts, op.inputs[0], arm == 0) if op.name == "if" else facts
            _visit(inner, facts if there is None else there, same)
            inner.yields = [same.get(y, y) for y in inner.yields]


def _equal(op: Op, facts: Facts) -> Value | None:
    """Return what `op` equals where `facts` hold."""
    if op.record.selects and dtype_of(op.inputs[0].type) == "bool":
        mask, *sides = op.inputs
        for k, holds in enumerate((True, False)):
            there = assume(facts, mask, holds)
            other = sides[1 - k]
            if there is None or is_zero(sides[k], facts) and is_zero(other, there):
                return other
            inner = sides[k].op
            if inner is not None and inner.record.selects:
                for side, way in zip(inner.inputs[1:], (False, True)):
                    if assume(there, inner.inputs[0], way) is None and side.type == sides[k].type:
                        op.inputs[1 + k] = sides[k] = side
    elif ((op.record in EITHER or op.record in BOTH)
          and all(x.type == op.output.type and dtype_of(x.type) == "bool" for x in op.inputs)):
        a, b = op.inputs
        for x, y in ((a, b), (b, a)):
            without = assume(facts, x, True)  # where x holds without y
            if without is None or assume(without, y, False) is None:
                return y if op.record in EITHER else x
    return None
