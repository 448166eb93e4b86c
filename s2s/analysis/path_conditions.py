"""Decide what conditions imply: which others hold where they do, and which values are zero there.

    if c:                       where d holds, c is false and e holds; where d is false, y is zero
        d, y = False, 0.0
    else:
        d, y = e, x if e else 0.0

A condition that is an array is meant element by element.
"""

from __future__ import annotations

from ..ir.graph import MISSING, Block, Function, Value
from ..ops.core.elementwise import (
    and_,
    bitwise_and,
    bitwise_or,
    logical_and,
    logical_or,
    negative,
    or_,
    strong_both,
    strong_product,
)
from ..ops.core.record import dtype_of
from ..ops.core.shape import shaped_like

Facts = dict[Value, bool]  # conditions, and whether they hold
EITHER, BOTH = (or_, bitwise_or, logical_or), (and_, bitwise_and, logical_and)
MOST = 200  # values to look at, behind one of which it is asked whether it is zero
DEEPEST = 20  # the most branches to follow behind a value


def assume(facts: Facts, condition: Value, holds: bool) -> Facts | None:
    """Return `facts` with this one, and what follows from it; None if that contradicts them."""
    found, pending = dict(facts), [(condition, holds)]
    while pending:
        while pending:
            v, truth = pending.pop()
            if v.constant is not MISSING:
                if bool(v.constant) != truth:
                    return None
            elif v in found:
                if found[v] != truth:
                    return None
            else:
                found[v] = truth
        for v, truth in found.items():
            pending += [(x, true) for x, true in _consequences(v, truth, found)
                        if found.get(x, x.constant) is not true]
    return found


def _consequences(v: Value, truth: bool, facts: Facts) -> list[tuple[Value, bool]]:
    """Return conditions with what they must be if `v` is `truth`."""
    op = v.op
    if op is None or dtype_of(v.type) != "bool":
        return []
    if op.name == "if":
        k, condition = op.outputs.index(v), op.inputs[0]
        for arm, block in enumerate(op.blocks):
            if facts.get(condition) is (arm == 0):
                return [(block.yields[k], truth)]
            excluded = block.yields[k]
            if (excluded.op is not None and excluded.op.name == "undefined"
                    or excluded.constant is not MISSING and bool(excluded.constant) != truth):
                return [(condition, arm != 0), (op.blocks[1 - arm].yields[k], truth)]
        return []
    if any(dtype_of(x.type) != "bool" for x in op.inputs):
        return []
    if op.record.negates:
        return [(op.inputs[0], not truth)]
    if op.record in EITHER or op.record in BOTH:
        decisive = op.record in EITHER  # whatever the other operand is
        if truth is not decisive:
            return [(x, truth) for x in op.inputs]
        left = [x for x in op.inputs if facts.get(x, x.constant) is not (not decisive)]
        return [(left[0], truth)] if len(left) == 1 else []
    return []


def is_zero(v: Value, facts: Facts) -> bool:
    """Test whether `v` is 0 wherever `facts` hold."""
    left = MOST  # values to look at: a value may be reached on many ways

    def test(v: Value, facts: Facts) -> bool:
        nonlocal left
        if v.constant is not MISSING:
            return type(v.constant) in (int, float) and v.constant == 0
        op = v.op
        left -= 1
        if op is None or left < 0:
            return False
        if op.record.fill == 0:
            return True
        if op.name == "if" or op.record.selects:
            k = op.outputs.index(v)
            sides = [block.yields[k] for block in op.blocks] or op.inputs[1:]
            return all(there is None or test(side, there) for side, there in
                       zip(sides, (assume(facts, op.inputs[0], holds) for holds in (True, False))))
        if op.record is strong_both:
            return any(test(x, facts) for x in op.inputs)
        if op.record.is_sum:
            return all(test(x, facts) for x in op.inputs)
        return (op.record in (shaped_like, negative, strong_product)
                and test(op.inputs[0], facts))

    return test(v, facts)


def facts_by_block(function: Function) -> dict[Block, Facts]:
    """Return for each block the conditions of the branches around it."""
    found: dict[Block, Facts] = {}

    def visit(block: Block, facts: Facts) -> None:
        found[block] = facts
        for op in block.ops:
            for arm, inner in enumerate(op.blocks):
                there = assume(facts, op.inputs[0], arm == 0) if op.name == "if" else facts
                visit(inner, facts if there is None else there)

    visit(function.block, {})
    return found


def is_bound(v: Value, facts: Facts, depth: int = 0) -> bool:
    """Test whether `v`, the result of a branch, is defined wherever `facts` hold."""
    if v.op is None or v.op.name != "if" or depth == DEEPEST:
        return v.op is not None and v.op.name != "undefined" and not v.op.blocks
    k = v.op.outputs.index(v)
    for arm, block in enumerate(v.op.blocks):
        there = assume(facts, v.op.inputs[0], arm == 0)
        if there is not None and not is_bound(block.yields[k], there, depth + 1):
            return False
    return True
