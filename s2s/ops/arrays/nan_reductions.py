"""NaN-ignoring reductions: np.nansum and its family.  NaN elements have no influence, and
derivative 0.

Each computes what NumPy does, bit for bit: sums of `np.where(np.isnan(x), 0, x)`, counts of
elements that are not NaN; and extremes, which are ops of their own because they return NaN only if
all elements are NaN.
"""

from __future__ import annotations

import builtins

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import is_inexact
from ..core.axis_numbers import static_axis
from ..core.cast import as_dtype
from ..core.elementwise import greater, isnan, logical_not, sqrt
from ..core.elementwise import where as where_
from ..core.kinks import Kink, kinked, ties_of_extreme
from ..core.record import dtype_of, numpy_function, static, value
from .cumulative import cumprod_, cumsum_, prod
from .norms import root
from .reduce import as_array, extreme, mean, refuse, sum_record, var


def _filled(x: Value, number: float) -> Value:
    """`x` with NaN replaced by `number`."""
    return where_(isnan(x), number, x) if is_inexact(dtype_of(x.type)) else x


def _count(x: Value, axis, keepdims: bool) -> Value:
    return sum_record(logical_not(isnan(x)), axis=axis, keepdims=keepdims)


def _arguments(x, axis, keepdims) -> tuple:
    return as_array(x), static_axis(axis), builtins.bool(static(keepdims))


@numpy_function(np.nansum)
def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.nansum."""
    refuse(dtype=dtype, out=out, initial=initial, where=where)
    x, axis, keepdims = _arguments(a, axis, keepdims)
    return sum_record(_filled(x, 0.0), axis=axis, keepdims=keepdims)


@numpy_function(np.nanprod)
def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.nanprod."""
    refuse(dtype=dtype, initial=initial, where=where)
    return prod(_filled(as_array(a), 1.0), axis, None, out, keepdims)


@numpy_function(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None) -> Value:
    """np.nancumsum."""
    return cumsum_(_filled(as_array(a), 0.0), axis, dtype, out)


@numpy_function(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None) -> Value:
    """np.nancumprod."""
    return cumprod_(_filled(as_array(a), 1.0), axis, dtype, out)


@numpy_function(np.nanmean)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None) -> Value:
    """np.nanmean: nan, with NumPy's warning about the division, if all elements are NaN."""
    refuse(dtype=dtype, out=out, where=where)
    x, axis, keepdims = _arguments(a, axis, keepdims)
    if not is_inexact(dtype_of(x.type)):
        return mean(x, axis, keepdims=keepdims)
    return as_dtype(sum_record(_filled(x, 0.0), axis=axis, keepdims=keepdims)
                    / _count(x, axis, keepdims), dtype_of(x.type))


@numpy_function(np.nanvar)
def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> Value:
    """np.nanvar of real numbers: nan, too, if too few elements are left."""
    refuse(dtype=dtype, out=out, where=where)
    x, axis, keepdims = _arguments(a, axis, keepdims)
    if not is_inexact(dtype_of(x.type)):
        return var(x, axis, ddof=ddof, keepdims=keepdims)
    if str(dtype_of(x.type)).startswith("complex"):
        raise UnsupportedError("np.nanvar of complex numbers", current().line,
                               "add up those of the real and the imaginary parts")
    return _squares(x, axis, ddof, keepdims)[0]


def _squares(x: Value, axis, ddof, keepdims: bool) -> tuple[Value, Value, Value]:
    """The variance, the divisor of its sum of squares, and the squared terms."""
    centre = as_dtype(sum_record(_filled(x, 0.0), axis=axis, keepdims=axis is not None)
                      / _count(x, axis, axis is not None), dtype_of(x.type))
    centred = where_(isnan(x), 0.0, x - centre)
    left = _count(x, axis, keepdims) - ddof
    left = left if value(ddof).constant == 0 else where_(greater(left, 0), left, np.nan)
    found = sum_record(centred * centred, axis=axis, keepdims=keepdims) / left
    return as_dtype(found, dtype_of(x.type)), left, centred


@numpy_function(np.nanstd)
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> Value:
    """np.nanstd of real numbers."""
    refuse(dtype=dtype, out=out, where=where)
    x, axis, keepdims = _arguments(a, axis, keepdims)
    if not is_inexact(dtype_of(x.type)) or str(dtype_of(x.type)).startswith("complex"):
        return sqrt(nanvar(x, axis, ddof=ddof, keepdims=keepdims))
    squares, count, centred = _squares(x, axis, ddof, keepdims)
    return root(squares, count, centred, axis=axis, keepdims=keepdims)


nanmax_record, nanmin_record = extreme("nanmax", np.nanmax), extreme("nanmin", np.nanmin)
for _each in (nanmax_record, nanmin_record):
    kinked(_each,
           Kink("a tie: each of the elements gets an equal share of the derivative",
                ties_of_extreme))


@numpy_function(np.nanmax)
def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.nanmax."""
    refuse(out=out, initial=initial, where=where)
    x, axis, keepdims = _arguments(a, axis, keepdims)
    return nanmax_record(x, axis=axis, keepdims=keepdims)


@numpy_function(np.nanmin)
def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.nanmin."""
    refuse(out=out, initial=initial, where=where)
    x, axis, keepdims = _arguments(a, axis, keepdims)
    return nanmin_record(x, axis=axis, keepdims=keepdims)
