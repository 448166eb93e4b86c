"""Branches in a row that ask the same are one branch.

    >>> show(merge(read('''
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

What leaves a loop or a `try` is a flag until here, set in one branch and asked in the next.  With the flag gone, the
two are what the user wrote; and the reverse sweep has one decision to repeat.  A branch inside one that has asked the
same already is no branch.
"""

from __future__ import annotations

from ..ir.graph import Block, Function, Op, Value
from ..ir.rebuild import clone
from ..ir.substitute import substitute


def merge(function: Function) -> Function:
    """`function` with adjacent `if`s on one condition made one, and those inside it decided."""
    function = clone(function)
    same: dict[Value, Value] = {}
    _merge(function.block, {}, same)
    substitute(function.block, same)
    return function


def _merge(block: Block, known: dict[Value, int], same: dict[Value, Value]) -> None:
    """`known` are conditions that have been asked around this block, and which arm they chose; `same`, what results stand for."""
    kept: list[Op] = []
    pending = list(reversed(block.ops))
    while pending:
        op = pending.pop()
        last = kept[-1] if kept else None
        if op.name != "if":
            kept.append(op)
        elif op.inputs[0] in known:
            arm = op.blocks[known[op.inputs[0]]]
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


def _join(first: Op, second: Op) -> None:
    """Append the arms of `second` to those of `first`."""
    for arm, more in zip(first.blocks, second.blocks):
        substitute(more, dict(zip(first.outputs, arm.yields)))
        arm.ops += more.ops
        arm.yields += more.yields
    for output in second.outputs:
        output.op = first
    first.outputs += second.outputs
