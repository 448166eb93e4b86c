"""The forward rule of an op: the one that its record states, or the one that follows from what the
op is linear in.

    y = op(x, v, i)    linear in x and v:    y_dot = op(x_dot, v_dot, i)

So an op that is linear states its transpose, `vjp`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from ...ir.graph import Value
from ...ir.types import Array, Unknown
from .chain_rule import like_tangent
from .record import Record
from .shape import shaped_like, zeros_of


def has_forward_rule(record: Record) -> bool:
    """Whether tangents pass through the op."""
    return record.jvp is not None or bool(record.linear or record.multilinear)


def tangent_of(record: Record, dots: Sequence, y, *xs, **attrs):
    """The tangent of the result y of the op, or those of its results; None if it has none."""
    if record.jvp is not None:
        return record.jvp(dots, y, *xs, **attrs)
    rule = _multilinear if record.multilinear else _linear
    y_dot = rule(record, dots, y, xs, attrs)
    return like_tangent(y_dot, y) if record.elementwise and y_dot is not None else y_dot


def _multilinear(record: Record, dots: Sequence, y, xs: Sequence, attrs: dict):
    """The sum of the op on one tangent at a time."""
    terms = (record(*xs[:k], dot, *xs[k + 1:], **attrs) for k, dot in enumerate(dots)
             if dot is not None and k in record.multilinear)
    first = next(terms, None)
    return None if first is None else reduce(add, terms, first)


def _linear(record: Record, dots: Sequence, y, xs: Sequence, attrs: dict):
    """The op on the tangents of what it is linear in."""
    if all(dot is None or k not in record.linear for k, dot in enumerate(dots)):
        return None
    if record.accumulates and dots[1] is None:
        return dots[0]
    operands = [x if k not in record.linear else _zeros(record, k, x) if dot is None else dot
                for k, (dot, x) in enumerate(zip(dots, xs, strict=True))]
    found = record(*operands, **attrs)
    is_new_shape = isinstance(y, Value) and isinstance(y.type, (Array, Unknown))
    return shaped_like(found, y) if is_new_shape else found


def _zeros(record: Record, k: int, x: Value) -> Value | float:
    """The tangent of an operand that has none: a number, where the op broadcasts it."""
    return 0.0 if record.elementwise or k in record.stretches else zeros_of(x)
