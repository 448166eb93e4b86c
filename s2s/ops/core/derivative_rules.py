"""The derivative rules of an op: those that its record states, or those that follow from what the
op is linear in, or from what it is differentiated as.

    y = op(x, v, i)    linear in x and v:    y_dot = op(x_dot, v_dot, i)

So an op that is linear states its transpose, `vjp`, and nothing else.  One that is differentiated
as another op has both rules of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from ...ir.graph import Value
from ...ir.types import Array, List, Unknown
from .chain_rule import like_tangent
from .record import Record
from .shape import shaped_like, zeros_of


def has_forward_rule(record: Record) -> bool:
    """Whether tangents pass through the op."""
    return bool(record.jvp or record.linear or record.multilinear or record.differentiated_as)


def has_reverse_rule(record: Record) -> bool:
    """Whether cotangents pass through the op."""
    return bool(record.vjp or record.differentiated_as)


def tangent_of(record: Record, dots: Sequence, y, *xs, **attrs):
    """The tangent of the result y of the op, or those of its results; None if it has none."""
    if record.jvp is not None:
        return record.jvp(dots, y, *xs, **attrs)
    if record.differentiated_as is not None:
        return _tangent_as(record, dots, y, xs, attrs)
    rule = _multilinear if record.multilinear else _linear
    y_dot = rule(record, dots, y, xs, attrs)
    return like_tangent(y_dot, y) if record.elementwise and y_dot is not None else y_dot


def cotangents_of(record: Record, bar, y, *xs, **attrs) -> Sequence:
    """The contributions of the cotangent of y, the result of the op or its results, to those of the
    operands.
    """
    if record.vjp is not None:
        return record.vjp(bar, y, *xs, **attrs)
    same = record.differentiated_as(_first(y), *xs, **attrs)
    if isinstance(same, Value):
        inputs, bars = (same,), (_first(bar),)
    else:
        op, inputs, its = same
        bars = cotangents_of(op, _first(bar), _first(y), *inputs, **its)
    places = [_place(x, xs) for x in inputs]
    return tuple(bars[places.index(k)] if k in places else None for k in range(len(xs)))


def _tangent_as(record: Record, dots: Sequence, y, xs: Sequence, attrs: dict):
    """The tangent of what the op is differentiated as; of several results, that of the first."""
    same = record.differentiated_as(_first(y), *xs, **attrs)
    if isinstance(same, Value):
        y_dot = dots[_place(same, xs)]
    else:
        op, inputs, its = same
        places = [_place(x, xs) for x in inputs]
        inner = [None if k is None else dots[k] for k in places]
        y_dot = tangent_of(op, inner, _first(y), *inputs, **its)
    return [y_dot, *[None] * (len(y) - 1)] if isinstance(y, tuple) else y_dot


def _first(y):
    return y[0] if isinstance(y, tuple) else y


def _place(x, xs: Sequence) -> int | None:
    """The first place of `x` among `xs`."""
    return next((k for k, other in enumerate(xs) if other is x), None)


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
    y_dot = record(*operands, **attrs)
    # the type of a list does not tell the lengths of an array made of it
    is_of_list = isinstance(y, Value) and isinstance(y.type, (Array, Unknown)) and any(
        isinstance(xs[k].type, List) for k in range(len(xs)) if k in record.linear)
    return shaped_like(y_dot, y) if is_of_list else y_dot


def _zeros(record: Record, k: int, x: Value) -> Value | float:
    """The tangent of an operand that has none: a number, where the op broadcasts it."""
    return 0.0 if record.elementwise or k in record.stretches else zeros_of(x)
