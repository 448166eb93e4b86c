"""Checks of lengths in the loop form: ops whose outcome is their first operand, if it is legal."""

from __future__ import annotations

from ...ir.graph import Value
from .ops import nonempty_length_op, same_length_op, supposed_length_op

CHECKS = (same_length_op, nonempty_length_op, supposed_length_op)


def compared(n: Value) -> set[Value]:
    """The values that `n`, the outcome of checks, was compared from."""
    if n.op is not None and n.op.record in CHECKS:
        return {n}.union(*map(compared, n.op.inputs))
    return {n}


def unchecked(n: Value) -> Value:
    """The operand of the check whose outcome is `n`."""
    while n.op is not None and n.op.record.returns is not None:
        n = n.op.inputs[n.op.record.returns]
    return n


def is_same_number(n: Value, m: Value) -> bool:
    """Whether two integers are equal computations on the same values, ignoring checks."""
    n, m = unchecked(n), unchecked(m)
    if n is m or type(n.constant) is int and n.constant == m.constant:
        return True
    one, other = n.op, m.op
    if (one is None or other is None or one.record is not other.record or one.blocks
            or not one.record.pure or one.attrs != other.attrs or one.name == "getitem"):
        return False
    return (len(one.inputs) == len(other.inputs) > 0
            and all(map(is_same_number, one.inputs, other.inputs)))
