"""The op `copy(x)`: x in memory of its own.

The IR has value semantics, so only the printer needs this op: it inserts one before an array is
overwritten that may still be read. Such a copy keeps the element order in memory ("K" in NumPy),
because the program would have written into the array itself, and np.sum of its transpose, say,
would add in another order and round differently. The method x.copy() does not keep it ("C"),
np.copy(x) does.
"""

from __future__ import annotations

import ast

import numpy as np

from ...ir.builder import add_op
from ...ir.graph import Value
from ...ir.types import Array, Scalar, Type, Unknown
from .batch_rules import on_all_lanes
from .record import define, value

# ops whose results are in C order
MADE_IN_ORDER = {"full", "arange", "linspace", "eye", "array", "outer"}
# ops whose results are ordered as their arguments are
ORDERED_LIKE = {"full_like", "zeros_like", "copy"}


def _evaluate(x, *, order: str):
    return np.array(x, order=order) if isinstance(x, np.ndarray) else x


def _syntax(x: ast.expr, *, order: str) -> ast.expr:
    if order == "K":
        return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "copy", ast.Load()), [x], [])
    keywords = [] if order == "C" else [ast.keyword("order", ast.Constant(order))]
    return ast.Call(ast.Attribute(x, "copy", ast.Load()), [], keywords)


copy_record = define(
    "copy",
    evaluate=_evaluate,
    infer=lambda x, *, order: x.type,
    fold=lambda x, *, order: x if isinstance(x.type, Scalar) else None,
    syntax=_syntax,
    vjp=lambda bar, y, x, *, order: (bar,),
    linear=(0,),
    cheap=True,
    moves=(0,), batch=on_all_lanes, native="compiled", same_shape=0,
)


def copy(x: Value, order: str = "C") -> Value:
    """A copy of `x` in C order, or in the element order of `x`: "K"."""
    x = value(x)
    return copy_record(x, order=order_for(x.type, order))


def copy_again(x: Value) -> Value:
    """A copy of `x` that the program did not ask for, in the element order of `x`."""
    ordered = not isinstance(x.type, (Array, Unknown)) or is_made_in_order(x)
    return add_op(copy_record, [x], {"order": "C" if ordered else order_for(x.type, "K")},
                  [x.type]).output


def order_for(type: Type, order: str) -> str:
    """Normalise the order: an array of one axis has one order only."""
    return "C" if isinstance(type, Array) and type.rank <= 1 else order


def is_made_in_order(x: Value) -> bool:
    """Whether the op that made `x` always returns a C-contiguous array."""
    left, seen = [x], set()
    while left:
        y = left.pop()
        if y in seen or isinstance(y.type, Scalar):
            continue
        seen.add(y)
        sources = _order_from(y)
        if sources is None:
            return False
        left += sources
    return True


def _order_from(x: Value) -> list[Value] | None:
    """The Values that must be C-contiguous for `x` to be; None if it may not be even then."""
    op = x.op
    if op is None:
        return None
    if op.name in MADE_IN_ORDER or (is_copy(x) and op.attrs["order"] == "C"):
        return []
    if op.record.writes is not None:
        return [op.inputs[op.record.writes]]
    if op.record.views or op.blocks or op.name == "call":
        return None
    if isinstance(x.type, Array) and x.type.rank == 1:
        return []
    return op.inputs if op.record.elementwise or op.name in ORDERED_LIKE else None


def is_copy(x: Value) -> bool:
    """Whether `x` is a copy of another value."""
    return x.op is not None and x.op.record is copy_record
