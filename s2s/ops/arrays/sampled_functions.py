"""Functions given by samples: np.trapezoid, np.gradient, np.interp, np.convolve, np.correlate,
np.ediff1d, np.unwrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent
from ...ir.graph import Op, Value
from ...ir.types import Array, Type, is_inexact
from ..core import array_raise_conditions
from ..core.axis_numbers import static_axis
from ..core.cast import as_dtype
from ..core.chain_rule import like_operand
from ..core.complex_parts import of_parts
from ..core.define_elementwise import builtin_syntax, elementwise, is_none
from ..core.dependence_rules import follows, spread_as
from ..core.elementwise import (
    absolute,
    bitwise_and,
    bitwise_or,
    clip,
    conjugate,
    equal,
    greater,
    imag,
    isinf,
    isnan,
    less,
    max_,
    min_,
    quotient,
    real,
    remainder,
    strong_product,
    where,
)
from ..core.record import RECORDS, Record, define, dtype_of, numpy_function, rank, static, value
from ..core.shape import length, numpy_call, of_length, shaped_like
from .axes import expand_dims, flip, moveaxis
from .concatenate import along
from .create import empty_like
from .cumulative import cumsum_
from .index import put, take
from .products import product_dtype
from .reduce import as_array, sum_record
from .reshape import ravel
from .search import searchsorted
from .selection import diff

# ------------------------------------------------------------------------ integrals and derivatives


@numpy_function(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1) -> Value:
    """np.trapezoid, with sample points along the axis, or of y's shape."""
    y, axis = as_array(y), static_axis(axis)
    if rank(y) == 0:
        raise TypeMismatchError("np.trapezoid of a number", current().line,
                                "give it an array of samples")
    if is_none(x):
        width = value(dx)
    else:
        x = as_array(x)
        width = diff(x, 1, -1 if rank(x) == 1 else axis)
        if rank(x) == 1 and rank(y) is not None and (behind := rank(y) - 1 - axis % rank(y)):
            width = expand_dims(width, tuple(range(1, 1 + behind)))
    ends = take(y, along(axis, slice(1, None))) + take(y, along(axis, slice(None, -1)))
    if rank(y) is None and rank(width) == 1 and axis != -1:
        # laid out as `ends`, so that they are summed in NumPy's order
        areas = moveaxis(width * moveaxis(ends, axis, -1), -1, axis)
    else:
        areas = width * ends
    return sum_record(areas / 2.0, axis=None if rank(y) == 1 else axis, keepdims=False)


@numpy_function(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1) -> Value:
    """np.gradient along one axis, with uniform spacing."""
    f, axis = as_array(f), static_axis(axis)
    order = static(edge_order)
    if order not in (1, 2) or len(varargs) > 1 or (varargs and rank(value(varargs[0])) != 0):
        raise UnsupportedError("np.gradient of samples at unequal distances, or of higher order",
                               current().line, "write the differences with slices")
    if rank(f) != 1 and axis is None:
        raise UnsupportedError("np.gradient along all axes", current().line,
                               "call it for each axis, with axis=")
    axis = -1 if axis is None else axis
    step = value(varargs[0]) if varargs else value(1.0)
    if not is_inexact(dtype_of(f.type)) and dtype_of(f.type) != "bool":  # which has no differences
        f = as_dtype(f, "float64")
    inner = ((take(f, along(axis, slice(2, None))) - take(f, along(axis, slice(None, -2))))
             / (2.0 * step))
    slopes = put(empty_like(f), along(axis, slice(1, -1)), inner)
    for end, inwards in ((0, 1), (-1, -1)):
        first, second, *third = (take(f, along(axis, end + k * inwards)) for k in range(order + 1))
        if order == 1:
            slope = (second - first if inwards == 1 else first - second) / step
        else:
            slope = (first * (-1.5 * inwards / step) + second * (2.0 * inwards / step)
                     + third[0] * (-0.5 * inwards / step))
        slopes = put(slopes, along(axis, end), slope)
    return slopes


@numpy_function(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None) -> Value:
    """np.ediff1d: differences of neighbours in the flattened array."""
    if not is_none(to_end) or not is_none(to_begin):
        raise UnsupportedError("np.ediff1d with ends", current().line, "concatenate them")
    return diff(ravel(as_array(ary)), 1, -1)


# (x, start, stop, low, high): what np.interp makes of x between two samples, `low` at `start` and
# `high` at `stop`.  At `start` it is `low`, whatever `high` is; where the line from the left is
# NaN, because something is infinite, it is that from the right, and where that is NaN, too, but the
# samples are equal, these.


def interpolated(x, start, stop, low, high):
    with np.errstate(all="ignore"):
        slope = (high - low) / (stop - start)
        y = slope * (x - start) + low
        y = np.where(np.isnan(y), slope * (x - stop) + high, y)
        return np.where((x == start) | np.isnan(y) & (low == high) & (x == x), low, y)[()]


def interpolated_part(x, start, stop, low, high):
    with np.errstate(all="ignore"):
        slope = (high - low) * (1 / (stop - start))
        y = slope * (x - start) + low
        y = np.where(np.isnan(y), slope * (x - stop) + high, y)
        return np.where((x == start) | np.isnan(y) & (low == high) & (x == x), low, y)[()]


def share_of_next(x, start, stop):
    with np.errstate(all="ignore"):
        share = (x - start) / (stop - start)
        return np.where(np.isinf(start), (x > start) & (stop < np.inf), share)[()]


def slope_between(start, stop, low, high):
    with np.errstate(all="ignore"):
        return np.where(low == high, 0.0, (high - low) / (stop - start))[()]


def _interpolation(function: Callable, slope: Callable) -> Record:
    """Define the op (x, start, stop, low, high); `slope` is how NumPy computes that of the line."""

    def lower(op: Op, x: Value, start: Value, stop: Value, low: Value, high: Value) -> Value:
        steep = slope(high - low, stop - start)
        y = steep * (x - start) + low
        y = where(isnan(y), steep * (x - stop) + high, y)
        alike = bitwise_and(bitwise_and(isnan(y), equal(low, high)), equal(x, x))
        return where(bitwise_or(equal(x, start), alike), low, y)

    return elementwise(
        function.__name__,
        lambda y, x, start, stop, low, high: slope_record(start, stop, low, high),
        lambda y, x, start, stop, low, high: ((share(x, start, stop) - 1)
                                              * slope_record(start, stop, low, high)),
        lambda y, x, start, stop, low, high: -strong_product(share(x, start, stop),
                                                             slope_record(start, stop, low, high)),
        lambda y, x, start, stop, low, high: 1 - share(x, start, stop),
        lambda y, x, start, stop, low, high: share(x, start, stop),
        evaluate=function, syntax=builtin_syntax(function.__name__), helper=function, lower=lower,
        slope="finite")


interpolation = _interpolation(interpolated, quotient)
part_interpolation = _interpolation(interpolated_part,
                                    lambda rise, width: rise * quotient(1.0, width))

share = elementwise(
    # (x, start, stop): the weight of the sample at `stop`, and 1 less that of the other one
    "share_of_next",
    lambda y, x, start, stop: quotient(1.0, stop - start),
    lambda y, x, start, stop: quotient(y - 1, stop - start),
    lambda y, x, start, stop: quotient(-y, stop - start),
    evaluate=share_of_next, syntax=builtin_syntax("share_of_next"), helper=share_of_next,
    lower=lambda op, x, start, stop: where(isinf(start), where(
        bitwise_and(greater(x, start), less(stop, math.inf)), 1.0, 0.0),
        quotient(x - start, stop - start)),
    slope="finite")

slope_record = elementwise(
    # (start, stop, low, high): of the line, and 0 between equal samples, be they infinite
    "slope_between",
    lambda y, start, stop, low, high: quotient(y, stop - start),
    lambda y, start, stop, low, high: quotient(-y, stop - start),
    lambda y, start, stop, low, high: quotient(-1.0, stop - start),
    lambda y, start, stop, low, high: quotient(1.0, stop - start),
    evaluate=slope_between, syntax=builtin_syntax("slope_between"), helper=slope_between,
    lower=lambda op, start, stop, low, high: where(equal(low, high), 0.0,
                                                   quotient(high - low, stop - start)),
    slope="finite")

@numpy_function(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None) -> Value:
    """np.interp; the derivative in x is one-sided, from the right, at a sample point, and 0 beyond
    the ends.

    `xp` must increase, as NumPy asks without looking: of points out of order NumPy makes what its
    search happens to find, which depends on the points asked before, and s2s makes something else.

        np.interp(0.5, np.array([0.0, 1.0]), np.array([2.0, 4.0]))  # 3.0
    """
    if not is_none(period):
        raise UnsupportedError("np.interp with a period", current().line,
                               "take x modulo the period, and repeat the samples")
    x, xp = (as_dtype(as_array(each), "float64") for each in (x, xp))
    fp = as_array(fp)
    fp = as_dtype(fp, "complex128" if is_complex(fp) else "float64")
    fp = of_length(fp, xp, 0, 0, "np.interp") if rank(xp) == rank(fp) == 1 else fp
    k = clip(searchsorted(xp, x, "right") - 1, 0, length(xp, axis=0) - 2)
    ends = take(xp, k), take(xp, k + 1)
    low, high = take(fp, k), take(fp, k + 1)
    if is_complex(fp):
        parts = (part_interpolation(x, *ends, real(low), real(high)),
                 part_interpolation(x, *ends, imag(low), imag(high)))
        between = of_parts(parts[0], where(isnan(x), 0.0, parts[1]))
    else:
        between = interpolation(x, *ends, low, high)
    left, right = (take(fp, k) if is_none(end) else as_dtype(value(end), fp.type.dtype)
                   if rank(x) == 0 else value(end) for k, end in ((0, left), (-1, right)))
    last = take(xp, -1)
    # one sample is the result even where x is NaN
    at_last = bitwise_or(equal(x, last), equal(length(xp, axis=0), 1))
    beyond = where(greater(x, last), right, where(at_last, take(fp, -1), between))
    return where(less(x, take(xp, 0)), left, beyond)


@numpy_function(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi) -> Value:
    """np.unwrap of floats along one axis: the derivative is 1, because the added multiples are
    constant.
    """
    if not is_none(discont):
        raise UnsupportedError("np.unwrap with discont=", current().line, "leave it out")
    p, axis, period = as_array(p), static_axis(axis), static(period)
    step = diff(p, 1, axis)  # of integers, in integers
    p = p if isinstance(period, int) or is_inexact(dtype_of(p.type)) else as_dtype(p, "float64")
    low = -period / 2
    wrapped = remainder(step - low, period) + low
    wrapped = where(bitwise_and(equal(wrapped, low), greater(step, 0)), -low, wrapped)
    jump = where(less(absolute(step), period / 2), 0, wrapped - step)
    return put(put(empty_like(p), along(axis, slice(None, 1)),
                   take(p, along(axis, slice(None, 1)))), along(axis, slice(1, None)),
               take(p, along(axis, slice(1, None))) + cumsum_(jump, axis=axis))


# ------------------------------------------------------------------------------------- convolutions


def _infer_convolve(a: Value, v: Value) -> Type:
    if rank(a) != 1 or rank(v) != 1:
        raise UnsupportedError("np.convolve of something else than two vectors", current().line,
                               "call the function once, or convolve row by row")
    return Array(product_dtype(a, v), (fresh_extent(),))


def _vjp_convolve(bar, y, a, v):
    """y[k] = sum of a[i] * v[k - i], so a_bar[i] = sum of y_bar[i + j] * v[j]."""
    return _like(_correlated(bar, v), a), _like(_correlated(bar, a), v)


def _vjp_correlate(bar, y, a, v, *, conj):
    """y[k] = sum of a[k + j] * v[j], so a_bar[i] = sum of y_bar[k] * v[i - k], v_bar[j] = sum of
    a[k + j] * y_bar[k].
    """
    return _like(convolve_record(bar, v), a), _like(_correlated(a, bar), v)


def _like(x: Value, operand: Value) -> Value:
    return like_operand(shaped_like(x, operand), operand)


def _correlated(a: Value, v: Value) -> Value:
    """The valid correlation of a with a shorter or equally long v, np.convolve(a, v[::-1],
    "valid"), in as many steps as products.
    """
    return correlate_record(a, v, conj=is_complex(v))


def is_complex(x: Value) -> bool:
    return np.dtype(x.type.dtype).kind == "c"


@follows(0, 1)
def _depends_convolve(unions, y, deps, a, b):
    """Rule: element n of elements k of the first and n - k of the second."""
    places = np.add.outer(np.arange(np.size(a)), np.arange(np.size(b))).ravel()
    left = np.repeat(spread_as(deps[0], np.ravel(a)), np.size(b))
    right = np.tile(spread_as(deps[1], np.ravel(b)), np.size(a))
    return unions.grouped(np.concatenate([places, places]), np.concatenate([left, right]),
                          np.size(y))


@follows(0, 1)
def _depends_correlate(unions, y, deps, a, b, **attrs):
    """Rule: element n of elements n + k of the first and k of the second."""
    places = np.subtract.outer(np.arange(np.size(a)), np.arange(np.size(b))).ravel()
    inside = (places >= 0) & (places < np.size(y))
    left = np.repeat(spread_as(deps[0], np.ravel(a)), np.size(b))[inside]
    right = np.tile(spread_as(deps[1], np.ravel(b)), np.size(a))[inside]
    return unions.grouped(np.concatenate([places[inside], places[inside]]),
                          np.concatenate([left, right]), np.size(y))


convolve_record = define(
    "convolve",  # full convolution
    evaluate=np.convolve,
    infer=_infer_convolve,
    vjp=_vjp_convolve,
    syntax=lambda a, v: numpy_call("convolve", a, v),
    depends=_depends_convolve,
    lengths=lambda length, a, v: [(length(a, 0) + length(v, 0) - 1,)],
    multilinear=(0, 1), raises=array_raise_conditions.OF_SOME,
)

correlate_record = define(
    # in valid mode; NumPy conjugates the second, which `conj` undoes
    "correlate",
    evaluate=lambda a, v, *, conj: np.correlate(a, np.conj(v) if conj else v),
    infer=lambda a, v, *, conj: _infer_convolve(a, v),
    fold=lambda a, v, *, conj: correlate_record(a, v, conj=False) if conj and not is_complex(v)
        else None,
    vjp=_vjp_correlate,
    syntax=lambda a, v, *, conj: numpy_call("correlate", a, numpy_call("conj", v) if conj else v),
    depends=_depends_correlate,
    lengths=lambda length, a, v, *, conj: [(
        max_(length(a, 0), length(v, 0)) - min_(length(a, 0), length(v, 0)) + 1,)],
    multilinear=(0, 1),
)


def _cut(full: Value, a: Value, v: Value, mode: str,
         begins: Callable[[Value, Value], Value]) -> Value:
    """The part of a full convolution that the mode keeps; `begins` is where that of the longer
    operand's length starts.
    """
    n, m = length(a, axis=0), length(v, axis=0)
    shorter, longer = RECORDS["min_"](n, m), RECORDS["max_"](n, m)
    match mode:
        case "full":
            return full
        case "same":
            return take(full, slice(begins(n, m), begins(n, m) + longer))
        case "valid":
            return take(full, slice(shorter - 1, longer))
    raise UnsupportedError(f"np.convolve with mode={mode!r}", current().line,
                           "use 'full', 'same' or 'valid'")


@numpy_function(np.convolve)
def convolve(a, v, mode="full") -> Value:
    """np.convolve."""
    a, v = as_array(a), as_array(v)
    return _cut(convolve_record(a, v), a, v, static(mode),
                lambda n, m: (RECORDS["min_"](n, m) - 1) // 2)


@numpy_function(np.correlate)
def correlate(a, v, mode="valid") -> Value:
    """np.correlate: if the second is longer, NumPy swaps the two and reverses the result, including
    its middle.
    """
    a, v = as_array(a), as_array(v)
    turned = flip(conjugate(v) if is_complex(v) else v)
    return _cut(convolve_record(a, turned), a, v, static(mode),
                lambda n, m: RECORDS["min_"](n, m - 1) // 2)


