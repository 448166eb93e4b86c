"""Slices of lists, and lists joined to one another.

    list_slice(xs, ...)   xs[lo:hi:step]        list_join(a, b)   a + b

A slice adds its cotangent to a part of that of the list.
"""

from __future__ import annotations

import ast
import operator

from ...errors import UnsupportedError
from ...ir.builder import current, join_types
from ...ir.types import List, Tuple
from ..core.control import tape_len
from ..core.dependence_rules import anything, follows
from ..core.record import define
from ..core.shape import zeros_of
from .list_cotangents import sum_of
from .list_ops import call_syntax


def _bounds(flags, operands):
    rest = iter(operands)
    return slice(*(next(rest) if flag else None for flag in flags))


def _slice_syntax(flags, operands):
    rest = iter(operands)
    lower, upper, step = (next(rest) if flag else None for flag in flags)
    return ast.Slice(lower, upper, step)


def added_to_slice(xs, values, lower, upper, step):
    """A list like `xs`, to whose slice the values have been added."""
    ys = [x for x in xs]
    start, stop, stride = slice(lower, upper, step).indices(len(ys))
    k = 0
    for i in range(start, stop, stride):
        ys[i] = ys[i] + values[k]
        k += 1
    return ys


def with_slice(xs, values, lower, upper, step):
    """A list like `xs`, whose slice is these values."""
    ys = [x for x in xs]
    start, stop, stride = slice(lower, upper, step).indices(len(ys))
    k = 0
    for i in range(start, stop, stride):
        ys[i] = values[k]
        k += 1
    return ys


def _vjp_slice(bar, y, xs, *operands, flags):
    is_nested = isinstance(xs.type.item, (List, Tuple))

    def entering(old):
        old = zeros_of(xs) if old is None else old
        if not is_nested:
            return slice_plus(old, bar, *operands, flags=flags)
        total = sum_of(list_slice(old, *operands, flags=flags), bar)
        return slice_replaced(old, total, *operands, flags=flags)

    return (entering, *(None for _ in operands))


list_slice = define(
    "list_slice",  # (xs, *bounds; which of the three are given)
    evaluate=lambda xs, *operands, flags: xs[_bounds(flags, operands)],
    infer=lambda xs, *operands, flags: List(xs.type.item),
    syntax=lambda xs, *operands, flags: ast.Subscript(xs, _slice_syntax(flags, operands),
                                                      ast.Load()),
    vjp=_vjp_slice,
    linear=(0,),
    views=(0,),
    moves=(0,),
)


def _given_bounds(flags, operands):
    rest = iter(operands)
    return [next(rest) if flag else None for flag in flags]


@follows(0, 1)
def _depends_slice_plus(unions, y, deps, xs, values, *bounds, flags):
    return anything(unions, y, deps)


def _define_slice_write(name: str, helper, vjp):
    return define(
        name,  # (xs, values, *bounds)
        evaluate=lambda xs, values, *operands, flags: helper(
            xs, values, *_given_bounds(flags, operands)),
        infer=lambda xs, values, *operands, flags: xs.type,
        syntax=lambda xs, values, *operands, flags: call_syntax(
            helper.__name__, xs, values,
            *(ast.Constant(None) if b is None else b for b in _given_bounds(flags, operands))),
        helper=helper,
        vjp=lambda bar, y, xs, values, *operands, flags: (
            vjp(bar, values, operands, flags), list_slice(bar, *operands, flags=flags),
            *(None for _ in operands)),
        linear=(0, 1),
        views=(0, 1),
        depends=_depends_slice_plus,
    )


slice_plus = _define_slice_write("slice_plus", added_to_slice,
                                 lambda bar, values, operands, flags: bar)
# what an adjoint adds to a slice of lists, tuples or objects
slice_replaced = _define_slice_write(
    "slice_replaced", with_slice, lambda bar, values, operands, flags: slice_replaced(
        bar, zeros_of(values), *operands, flags=flags))


def _vjp_join(bar, y, a, b):
    if not isinstance(bar.type, List):
        raise UnsupportedError("the derivative of a list that holds lists, to depths that a run "
                               "decides", current().line,
                               "put the numbers into one list, and the places of what belongs to "
                               "them into lists of integers")
    n = tape_len(a)
    return (list_slice(bar, n, flags=(False, True, False)),
            list_slice(bar, n, flags=(True, False, False)))


list_join = define(
    "list_join",
    evaluate=operator.add,
    infer=lambda a, b: join_types(a.type, b.type, "an item of a list"),
    syntax=lambda a, b: ast.BinOp(a, ast.Add(), b),
    vjp=_vjp_join,
    linear=(0, 1),
    views=(0, 1),
    moves=(0, 1),
    stores=True,
)
