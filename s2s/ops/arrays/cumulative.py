"""Cumulative ops (scans) along an axis: cumsum, cumprod; and prod, whose rule is of the same kind.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Array, Scalar, Type, Unknown
from ..core.axis_numbers import normal_axes, static_axis
from ..core.batch_rules import over_one_axis
from ..core.cast import as_dtype
from ..core.control import for_loop
from ..core.dependence_rules import follows, spread_as
from ..core.record import RECORDS, define, dtype_of, numpy_function, rank, static, value
from ..core.shape import float_dtype, length, literal, numpy_call, shaped_like, zeros_of
from ..core.signs import of_elements
from . import stablehlo_arrays
from .axes import flip, moveaxis, squeeze, transpose_record
from .create import empty_like, ones, ones_like, zeros
from .index import put, take
from .reduce import (
    as_array,
    in_dtype,
    is_given,
    reduction,
    refuse,
    result_dtype,
    sum_record,
    where_only,
)
from .reshape import ravel, reshape, reshape_like

# ------------------------------------------------------------------------------------- running sums


def _fold_running(record: str) -> Callable:
    """Drop the axis argument for a vector."""

    def fold(x: Value, *, axis: int | None):
        if rank(x) != 1 or axis is None:
            return None
        normal_axes(axis, 1)
        return RECORDS[record](x, axis=None)

    return fold


def _infer_running(function: Callable) -> Callable:
    dtype = result_dtype(function)

    def infer(x: Value, *, axis: int | None) -> Type:
        if isinstance(x.type, Scalar):
            raise TypeMismatchError(
                f"a running sum of a number, {x.type}", current().line, "give it an array"
            )
        if isinstance(x.type, Unknown):
            return Unknown(x.type.shape, dtype(x.type.dtype))
        normal_axes(axis, rank(x))
        return Array(dtype(x.type.dtype), x.type.dims)

    return infer


def _vjp_cumsum(bar, y, x, *, axis):
    return (shaped_like(flip(cumsum(flip(bar, axis), axis=axis), axis), x),)


@follows(0)
def _depends_running(unions, y, deps, x, *, axis):
    """Rule: all previous elements along an axis."""
    found = spread_as(deps[0], x)
    found = np.moveaxis(found.ravel() if axis is None else found, -1 if axis is None else axis,
                        0).copy()
    for k in range(1, len(found)):
        found[k] = unions.union(found[k - 1], found[k])
    return found if axis is None else np.moveaxis(found, 0, axis)


cumsum = define(
    "cumsum",  # axis None: of a vector
    evaluate=lambda x, *, axis: np.cumsum(x, axis=axis),
    infer=_infer_running(np.cumsum),
    fold=_fold_running("cumsum"),
    vjp=_vjp_cumsum,
    linear=(0,),
    syntax=lambda x, *, axis: numpy_call("cumsum", x, axis=literal(axis)),
    depends=_depends_running, batch=over_one_axis, warns="overflow", least=of_elements,
    stablehlo=stablehlo_arrays.running("add", 0),
)


@numpy_function(np.cumsum, method="cumsum")
def cumsum_(x, axis=None, dtype=None, out=None) -> Value:
    """np.cumsum."""
    refuse(out=out)
    x, axis = as_dtype(as_array(x), dtype), static_axis(axis)
    return in_dtype(cumsum(ravel(x), axis=0) if axis is None else cumsum(x, axis=axis), dtype)


# ----------------------------------------------------------------------------------------- products
#
# Note [Derivatives of products]
# The derivative of a product by one factor is the product of the others; dividing the product by
# the factor fails where the factor is 0.  So each rule is a loop along the axis, over the elements
# before and after each element, made of ordinary ops, which have derivatives of their own:
#
#     prod       x_bar[k] = y_bar * before[k] * after[k]
#     cumprod    x_bar[k] = before[k] * s[k],   s[k] = y_bar[k] + x[k + 1] * s[k + 1]


def _before(x: Value) -> Value:
    """The exclusive cumulative product along the first axis."""
    n = length(x, axis=0)

    def step(k, before, product):
        return [put(before, k, product), product * take(x, k)]

    inits = [empty_like(x), _filled_like_element(x, 1.0)]
    return for_loop(0, n, 1, inits, step, names=["before", "product"], index="k")[0]


def _filled_like_element(x: Value, number: float) -> Value:
    """An array of `number` in the shape of x[0]; x may be empty."""
    if rank(x) == 1:
        return value(number)
    if rank(x) is None:
        return (ones_like if number else zeros_of)(take(x, 0))
    return (ones if number else zeros)(tuple(length(x, axis=k) for k in range(1, rank(x))),
                                       dtype=float_dtype(x.type))


def _on_first_axis(rule: Callable) -> Callable:
    """Turn a rule along the first axis into a rule along any axis: `rule(bar, x) -> x_bar`."""

    def vjp(bar, y, x, *, axis, keepdims=None):
        if keepdims:
            bar = squeeze(bar, axis)
        if isinstance(axis, tuple):
            return (_as_one_axis(rule, bar, x, normal_axes(axis, rank(x))),)
        if axis is None:  # raveled, a vector is itself
            return (reshape_like(rule(bar, ravel(x)), x),)
        if axis == 0:
            return (rule(bar, x),)
        if keepdims is None:  # a running product has the axis too
            bar = moveaxis(bar, axis, 0)
        return (shaped_like(moveaxis(rule(bar, moveaxis(x, axis, 0)), 0, axis), x),)

    return vjp


def _as_one_axis(rule: Callable, bar: Value, x: Value, axes: tuple[int, ...]) -> Value:
    """Turn a rule along the first axis into a rule along several, which are moved to the front and
    merged.
    """
    others = tuple(k for k in range(rank(x)) if k not in axes)
    front = transpose_record(x, axes=(*axes, *others))
    size = value(1)
    for k in axes:
        size = size * length(x, axis=k)
    x_bar = rule(bar, reshape(front, size, *(length(x, axis=k) for k in others)))
    back = tuple(sorted(range(rank(x)), key=(*axes, *others).__getitem__))
    return shaped_like(transpose_record(reshape_like(x_bar, front), axes=back), x)


def _prod_bar(bar: Value, x: Value) -> Value:
    before = _before(x)

    def step(k, x_bar, after):
        return [put(x_bar, k, after * take(before, k)), after * take(x, k)]

    last = length(x, axis=0) - 1
    start = bar if rank(x) == 1 else bar * _filled_like_element(x, 1.0)
    inits = [empty_like(x), start]
    return for_loop(last, -1, -1, inits, step, names=["x_bar", "after"], index="k")[0]


def _cumprod_bar(bar: Value, x: Value) -> Value:
    before = _before(x)

    def step(k, x_bar, s):
        s = s + take(bar, k)
        return [put(x_bar, k, s * take(before, k)), s * take(x, k)]

    last = length(x, axis=0) - 1
    return for_loop(last, -1, -1, [empty_like(x), _filled_like_element(x, 0.0)], step,
                    names=["x_bar", "s"], index="k")[0]


_prod_vjp, _cumprod_vjp = _on_first_axis(_prod_bar), _on_first_axis(_cumprod_bar)


def _jvp_prod(dots, y, x, *, axis, keepdims):
    if dots[0] is None:
        return None
    ones = ones_like(y) if rank(y) != 0 else value(1.0)
    (slopes,) = _prod_vjp(ones, y, x, axis=axis, keepdims=keepdims)
    return sum_record(slopes * dots[0], axis=axis, keepdims=keepdims)


def _jvp_cumprod(dots, y, x, *, axis):
    """y_dot[k] = y_dot[k - 1] * x[k] + y[k - 1] * x_dot[k]."""
    if dots[0] is None:
        return None
    x, x_dot, y = (v if not axis else moveaxis(v, axis, 0) for v in (x, dots[0], y))

    def step(k, y_dot, product, slope):
        slope = slope * take(x, k) + product * take(x_dot, k)
        return [put(y_dot, k, slope), product * take(x, k), slope]

    inits, names = ([empty_like(y), _filled_like_element(x, 1.0), _filled_like_element(x, 0.0)],
                    ["y_dot", "product", "slope"])
    y_dot = for_loop(0, length(x, axis=0), 1, inits, step, names=names, index="k")[0]
    return y_dot if not axis else shaped_like(moveaxis(y_dot, 0, axis), dots[0])


TWO_PRODUCTS = "cotangents need the products of what comes after, tangents of what came before"
prod_record = reduction("prod", np.prod, vjp=_prod_vjp, jvp=_jvp_prod,
                        states_both=TWO_PRODUCTS, warns="overflow",
                        least=of_elements, stablehlo=stablehlo_arrays.combined("multiply", 1))
cumprod = define(
    "cumprod",
    evaluate=lambda x, *, axis: np.cumprod(x, axis=axis),
    infer=_infer_running(np.cumprod),
    fold=_fold_running("cumprod"),
    vjp=_cumprod_vjp,
    jvp=_jvp_cumprod,
    states_both=TWO_PRODUCTS,
    syntax=lambda x, *, axis: numpy_call("cumprod", x, axis=literal(axis)),
    depends=_depends_running,
    batch=over_one_axis,
    least=of_elements,
    stablehlo=stablehlo_arrays.running("multiply", 1),
)


@numpy_function(np.prod, method="prod")
def prod(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.prod."""
    refuse(out=out)
    x = where_only(as_array(x), where, 1)
    if is_given(initial):
        found = prod(x, axis, dtype, keepdims=keepdims)
        return found * as_dtype(value(initial), dtype_of(found.type))
    x, axis = as_dtype(as_array(x), dtype), static_axis(axis)
    if isinstance(axis, tuple) and len(axis) < 2:
        if not axis:
            return in_dtype(x * 1, dtype)
        (axis,) = axis
    return in_dtype(prod_record(x, axis=axis, keepdims=builtins.bool(static(keepdims))), dtype)


@numpy_function(np.cumprod, method="cumprod")
def cumprod_(x, axis=None, dtype=None, out=None) -> Value:
    """np.cumprod."""
    refuse(out=out)
    x, axis = as_dtype(as_array(x), dtype), static_axis(axis)
    return in_dtype(cumprod(ravel(x), axis=0) if axis is None else cumprod(x, axis=axis), dtype)
