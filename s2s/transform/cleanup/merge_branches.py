"""Merge consecutive branches on the same condition.

    >>> show(merge_branches(read('''
    ... def f(x: 'float64', c: 'bool'):
    ...     if c:
    ...         y = np.sin(x)
    ...     else:
    ...         y = x
    ...     if c:
    ...         y = y * 2
    ...     return y
    ... ''')))
    def f(x, c):
        if c:
            y = np.sin(x)
            y = y * 2
        else:
            y = x
        return y

What leaves a loop or a `try` is a flag until here, set in one branch and asked in the next.  With
the flag gone, the two are what the user wrote; and the reverse sweep has one decision to repeat.  A
branch inside one that has asked the same already is no branch; nor is one whose answer follows, for
integers: where `i > 0`, `i == 0` is false.
"""

from __future__ import annotations

from ...ir.graph import Block, Function, Op, Value
from ...ir.substitute import substitute
from ...ir.types import Scalar
from ...ops.core.record import Record


def merge_branches(function: Function) -> Function:
    """Merge adjacent `if`s on one condition, and resolve those nested inside it."""
    same: dict[Value, Value] = {}
    _merge(function.block, {}, same)
    substitute(function.block, same)
    return function


def _merge(block: Block, known: dict[Value, int], same: dict[Value, Value]) -> None:
    """Merge the branches of a block; `known` maps the conditions of enclosing branches to the arm
    taken, `same` maps dropped results to their replacements.
    """
    kept: list[Op] = []
    pending = list(reversed(block.ops))
    while pending:
        op = pending.pop()
        last = kept[-1] if kept else None
        if op.name != "if":
            kept.append(op)
        elif (side := _known_arm(op.inputs[0], known)) is not None:
            arm = op.blocks[side]
            pending += reversed(arm.ops)
            same.update(zip(op.outputs, arm.yields))
        elif last is not None and last.name == "if" and last.inputs == op.inputs:
            _join(last, op)
        else:
            kept.append(op)
    block.ops = kept
    for op in kept:
        for k, inner in enumerate(op.blocks):
            _merge(inner, {**known, op.inputs[0]: k} if op.name == "if" else known, same)


def _known_arm(condition: Value, known: dict[Value, int]) -> int | None:
    """Return the arm that `condition` takes, if the known conditions imply it: `i == 0` is false
    where `i > 0`.
    """
    if condition in known:
        return known[condition]
    asked = _bound_on(condition)
    if asked is None:
        return None
    facts = [(fact[1:], side) for c, side in known.items() if (fact := _bound_on(c)) is not None
             and fact[0] is asked[0]]
    bounds = {asked[2], *(bound for (_, bound), _ in facts)}
    answers = {asked[1](i, asked[2])
               for i in {bound + k for bound in bounds for k in (-1, 0, 1)}
               if all(compare(i, bound) == (side == 0) for (compare, bound), side in facts)}
    return (0 if answers.pop() else 1) if len(answers) == 1 else None


def _bound_on(condition: Value) -> tuple[Value, Record, int] | None:
    """Return (i, comparison, number), if `condition` compares an integer with a constant."""
    op = condition.op
    if op is None or not op.record.compares:
        return None
    i, bound = op.inputs
    if (isinstance(i.type, Scalar) and (i.type.dtype or "")[:3] == "int"
            and type(bound.constant) is int):
        return i, op.record, bound.constant
    return None


def _join(first: Op, second: Op) -> None:
    """Append the arms of `second` to those of `first`."""
    for arm, more in zip(first.blocks, second.blocks):
        substitute(more, dict(zip(first.outputs, arm.yields)))
        arm.ops += more.ops
        arm.yields += more.yields
    for output in second.outputs:
        output.op = first
    first.outputs += second.outputs
