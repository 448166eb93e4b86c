"""Reductions along axes: sums, extremes, any/all, and statistics built on them.

Where several elements are the maximum, each gets an equal share of its cotangent, as in JAX.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_shape
from ...ir.graph import Op, Value
from ...ir.types import Array, Scalar, Static, Tuple, Type, Unknown, is_inexact, may_be_one
from ...lazy_import import Named
from ..core.array_raise_conditions import EXTREME
from ..core.axis_numbers import normal_axes, static_axis
from ..core.batch_rules import over_axes, over_one_axis
from ..core.cast import as_dtype, dtype_name
from ..core.control import item
from ..core.copy import copy
from ..core.define_elementwise import builtin_syntax, is_none
from ..core.dependence_rules import along_axes
from ..core.elementwise import (
    absolute,
    add,
    equal,
    exp,
    imag,
    isfinite,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    not_equal,
    power,
    real,
    sign,
    where,
)
from ..core.kinks import ASKED, Kink, asked_of_zero, kinked, ties_of_extreme, ties_of_place
from ..core.record import (
    RECORDS,
    array_type,
    define,
    dims_of,
    dtype_of,
    is_static,
    numpy_function,
    rank,
    runs_backwards,
    static,
    value,
)
from ..core.shape import length, literal, numpy_call, size_of, spread
from ..core.signs import moved, of_elements
from ..core.stop_gradient import barrier
from . import stablehlo_arrays
from .axes import expand_dims, moveaxis
from .concatenate import concatenate_record
from .create import asarray, full
from .norms import norm_of, root
from .reshape import ravel

# ---------------------------------------------------------------------------------------- in common


def reduced(x: Value, axis, keepdims: bool, dtype: str | None) -> Type:
    """The type of a reduction of `x` along `axis`."""
    count = rank(x)
    if axis is None and not keepdims:
        # before a call the dtype may not be known; it does not show in rank-generic code
        return Scalar(dtype or "float64")
    if count is None:
        return Unknown(fresh_shape(), dtype)
    axes = normal_axes(axis, count)
    dims = [1 if k in axes else d for k, d in enumerate(dims_of(x.type))]
    return array_type(dtype, tuple(d for k, d in enumerate(dims) if keepdims or k not in axes))


def result_dtype(function: Callable) -> Callable:
    """The dtype of `function` on arrays of this dtype."""
    return lambda dtype: None if dtype is None else function(np.ones(1, dtype)).dtype.name


def reduction(name: str, function: Callable, dtype: Callable | None = None,
              fold: Callable | None = None, **fields):
    """Define a reduction (x; axis, keepdims) like np.sum."""
    dtype = dtype or result_dtype(function)

    def folded(x: Value, *, axis, keepdims: bool) -> Value | None:
        """Along no axis, `axis=()`, a reduction returns its operand; `fold` has further identities.
        """
        if (axis == () and isinstance(x.type, Array) and x.type.dtype is not None
            and not name.startswith("arg")):
            made = dtype(x.type.dtype)
            return copy(x) if made == x.type.dtype else as_dtype(x, made)
        return fold(x, axis=axis, keepdims=keepdims) if fold is not None else None

    return define(
        name,
        evaluate=lambda x, *, axis, keepdims: function(x, axis=axis, keepdims=keepdims),
        infer=lambda x, *, axis, keepdims: reduced(x, axis, keepdims, dtype(dtype_of(x.type))),
        syntax=lambda x, *, axis, keepdims: numpy_call(
            name, x, axis=literal(axis), keepdims=literal(keepdims or None)
        ),
        fold=folded,
        **{"batch": over_axes, "depends": along_axes} | fields,
    )


def _reduce(record, x, axis, keepdims) -> Value:
    """Apply `record` to arguments from the front end."""
    return record(as_array(x), axis=static_axis(axis), keepdims=builtins.bool(static(keepdims)))


def as_array(x) -> Value:
    """A tuple or list of numbers as an array."""
    x = value(x)
    return asarray(x) if isinstance(x.type, (Tuple, Static)) else x


def _members(x: Value) -> list[Value]:
    return [item(x, index=k) for k in range(len(x.type.items))]


def refuse(**arguments) -> None:
    """Refuse unsupported arguments."""
    for name, argument in arguments.items():
        if argument is not None and not (is_static(argument) and static(argument) is None):
            raise UnsupportedError(
                f"the argument {name}= of a reduction", current().line, "leave it out"
            )


chosen = where  # under another name: reductions have an argument `where`


def is_given(argument) -> bool:
    """Whether an argument is present and not None."""
    return argument is not None and not (is_static(argument) and static(argument) is None)


def where_only(x: Value, where, otherwise) -> Value:
    """`x`, with the neutral element `otherwise` where the mask excludes it."""
    return chosen(as_array(where), x, otherwise) if is_given(where) else x


def in_dtype(x: Value, dtype) -> Value:
    """`x` converted as NumPy sums or multiplies in `dtype`: modulo 2**32, the conversion gives what
    wider integers give; booleans become numbers first.
    """
    if not is_none(dtype) and dtype_name(dtype) == "bool":
        raise UnsupportedError("a sum or product with dtype=bool", current().line,
                               "use np.any or np.all, or np.logical_or.accumulate")
    return as_dtype(x, dtype)


def counted(x: Value, axis, where) -> Value:
    """The number of elements that a reduction combines."""
    if not is_given(where):
        return count_along(x, axis)
    count = sum_record(chosen(as_array(where), spread(value(1.0), x), 0.0), axis=axis,
                       keepdims=False)
    return (as_dtype(count, "float32") if dtype_of(x.type) in ("float16", "float32", "complex64")
            else count)


def begun(x: Value, axis, keepdims, initial) -> tuple[Value, int | None]:
    """`x` with `initial` as an extra element along the axis (so an empty reduction gives it), and
    the axis.
    """
    x, axis = as_array(x), static_axis(axis)
    if (rank(x) is None or isinstance(axis, tuple)
        or axis is None and static(keepdims) and rank(x) > 1):
        raise UnsupportedError(
            "the argument initial= of a reduction along several axes, "
            "or of an array of unknown rank", current().line,
            "use np.maximum or np.minimum of the result")
    if axis is None:
        x, axis = ravel(x), 0 if rank(x) == 1 and static(keepdims) else None
    along = (axis or 0) % rank(x)
    more = full(tuple(value(1) if k == along else length(x, axis=k) for k in range(rank(x))),
                as_dtype(value(initial), dtype_of(x.type)))
    return concatenate_record(x, more, axis=along), axis


def over(reduced_value: Value, axis, keepdims: bool) -> Value:
    """A reduction's result (or cotangent) with its reduced axes restored with length 1."""
    if axis is None or keepdims:
        return reduced_value
    return expand_dims(reduced_value, axis)


# -------------------------------------------------------------------------------------------- sums


def _fold_sum(x: Value, *, axis, keepdims: bool):
    """The sum of a broadcast number is a product; in an adjoint, signs and divisors move out of a
    sum.
    """
    if runs_backwards() and x.op is not None and x.op.name == "negative":
        return -sum_record(x.op.inputs[0], axis=axis, keepdims=keepdims)
    if runs_backwards() and x.op is not None and x.op.name in ("divide", "quotient"):
        dividend, divisor = x.op.inputs
        if (isinstance(divisor.type, Scalar)
            and dtype_of(dividend.type) == dtype_of(x.type) in ("float64", "complex128")):
            return sum_record(dividend, axis=axis, keepdims=keepdims) / divisor
    if axis is None and not keepdims and x.op is not None and x.op.name == "spread":
        s, like = x.op.inputs
        if isinstance(s.type, Scalar) and dtype_of(s.type) in ("float64", "complex128"):
            return s * size_of(like)
    return None


sum_record = reduction(
    "sum",
    np.sum,
    stablehlo=stablehlo_arrays.combined("add", 0),
    warns="overflow",
    fold=_fold_sum,
    linear=(0,),
    vjp=lambda bar, y, x, *, axis, keepdims: (spread(over(bar, axis, keepdims), x),),
    total=True, least=of_elements,
)


@numpy_function(np.sum, method="sum")
def sum_(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.sum."""
    refuse(out=out)
    total = in_dtype(_reduce(sum_record, where_only(as_dtype(as_array(x), dtype), where, 0), axis,
                             keepdims), dtype)
    return total + as_dtype(value(initial), dtype_of(total.type)) if is_given(initial) else total


def _infer_added_up(x: Value, *, axis) -> Type:
    if rank(x) == 0:
        raise TypeMismatchError(f"sum of a number, {x.type}", current().line,
                                "give it an array or a list")
    dtype = dtype_of(x.type)
    return reduced(x, axis, False, dtype and (0 + np.ones(1, dtype)[0]).dtype.name)


def _batch_added_up(flags, x: Value, *, axis):
    return added_up_lanes(moveaxis(x, 1, 0), axis=0)


# Python's sum, one element (or row) after another, where np.sum adds in pairs of pairs
added_up = define(
    "added_up",
    evaluate=lambda x, *, axis: builtins.sum(x),
    infer=_infer_added_up,
    linear=(0,),
    vjp=lambda bar, y, x, *, axis: (spread(over(bar, axis, False), x),),
    syntax=lambda x, *, axis: builtin_syntax("sum")(x),
    depends=along_axes,
    batch=_batch_added_up,
    from_zero=True, least=of_elements,
)


def sum_rows(x):
    """Python's sum of the rows of an array; zeros for none."""
    return sum(x, 0 + np.zeros(x.shape[1:], x.dtype))


added_up_lanes = define(  # of the elements of each lane, along the first axis
    "added_up_lanes",
    evaluate=lambda x, *, axis: sum_rows(x),
    infer=_infer_added_up,
    linear=(0,),
    depends=along_axes,
    batch=_batch_added_up,
    vjp=lambda bar, y, x, *, axis: (spread(over(bar, axis, False), x),),
    syntax=lambda x, *, axis: ast.Call(ast.Name("sum_rows", ast.Load()), [x], []),
    helper=sum_rows, least=of_elements,
)


@numpy_function(builtins.sum)
def builtin_sum(x, start=0) -> Value:
    """sum(x): over the members of a tuple, or along the first axis of an array."""
    x, start = value(x), value(start)
    if isinstance(x.type, Tuple):
        for member in _members(x):
            start = start + member
        return start
    total = added_up(x, axis=0 if rank(x) != 1 else None)
    return total if start.constant == 0 else start + total


def count_along(x: Value, axis) -> Value:
    """The number of elements that a reduction along `axis` combines."""
    if axis is None:
        return size_of(x)
    count = value(1)
    for a in axis if isinstance(axis, tuple) else (axis,):
        count = count * length(x, axis=a)
    return count


@numpy_function(np.mean, method="mean")
def mean(x, axis=None, dtype=None, out=None, keepdims=False, where=None) -> Value:
    """np.mean: the sum divided by the number of elements."""
    refuse(out=out)
    x, axis, keepdims = (as_dtype(as_array(x), dtype), static_axis(axis),
                         builtins.bool(static(keepdims)))
    # their sum may overflow their dtype
    if getattr(x.type, "dtype", None) in ("int64", "uint64"):
        x = as_dtype(x, np.float64)
    total = sum_record(where_only(x, where, 0), axis=axis, keepdims=keepdims)
    count = counted(x, axis, where)
    found = total / (over(count, axis, not keepdims) if is_given(where) else count)
    return as_dtype(found, dtype)  # integer dtype truncates the mean


def _as_long_as(weights: Value, x: Value, axes: tuple[int, ...]) -> Value:
    """`weights`, checked to have the length of `x` along `axes`: a product would broadcast a length
    of 1.
    """
    pairs = [(d, dims_of(x.type)[axis]) for d, axis in zip(dims_of(weights.type), axes)]
    if all(d == e or not (may_be_one(d) or may_be_one(e)) for d, e in pairs):
        return weights
    return RECORDS["reshape"](weights, *(length(x, axis=axis) for axis in axes))


@numpy_function(np.average)
def average(x, axis=None, weights=None, returned=False, *, keepdims=False) -> Value:
    """np.average, with weights of x's shape, or along one axis."""
    if static(returned):
        raise UnsupportedError(
            "np.average(returned=True)", current().line, "sum the weights yourself"
        )
    if weights is None or (isinstance(weights, Value) and weights.constant is None):
        return mean(x, axis, keepdims=keepdims)
    x, weights, axis, keepdims = as_array(x), as_array(weights), static_axis(axis), static(keepdims)
    if isinstance(axis, int) and rank(weights) == 1 and rank(x) not in (None, 1):
        count = rank(x)
        weights = _as_long_as(weights, x, (axis % count,))
        weights = expand_dims(weights, tuple(k for k in range(count) if k != axis % count))
        total = sum_record(weights, axis=None, keepdims=False)
    else:
        if axis is None and None not in (rank(x), rank(weights)) and rank(x) != rank(weights):
            raise TypeMismatchError(
                "np.average, axis must be specified when shapes of a and weights differ",
                current().line, "give axis=, or weights of the array's shape")
        if rank(weights) == rank(x) and rank(x):
            weights = _as_long_as(weights, x, tuple(range(rank(x))))
        total = sum_record(weights, axis=axis, keepdims=keepdims)
    return sum_record(x * weights, axis=axis, keepdims=keepdims) / total


@numpy_function(np.var, method="var")
def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> Value:
    """np.var; for complex numbers the mean squared distance from the mean."""
    refuse(out=out)
    x, dtype, axis, keepdims = (*_of_precision(x, dtype), static_axis(axis),
                                builtins.bool(static(keepdims)))
    if is_given(where):
        found = _squares_where(x, axis, ddof, where, dtype)[0]
        return as_dtype(_with_axes(found, axis, x) if keepdims else found, dtype)
    return as_dtype(_squares(x, axis, ddof, keepdims, dtype)[0], dtype)


def _of_precision(x, dtype) -> tuple[Value, str | None]:
    """The array `x` of a variance, and the precision of its mean and sum of squares (None: that of
    `x`).

    NumPy rounds neither `x` nor the squared terms to it: for 1e8 + x in single precision only the
    mean is rounded to 1e8.
    """
    x = as_array(x)
    if is_none(dtype):
        return x, None
    if not dtype_name(dtype).startswith("float") or is_complex(x):
        raise UnsupportedError(
            f"a variance of {dtype_of(x.type)} with dtype={dtype_name(dtype)}", current().line,
            "give real numbers and a real dtype, such as np.float64, and convert the result")
    return x, None if dtype_name(dtype) == dtype_of(x.type) else dtype_name(dtype)


def _with_axes(found: Value, axis, x: Value) -> Value:
    """The reduction of x with all axes kept."""
    return expand_dims(found, tuple(range(rank(x))) if axis is None else axis)


def _squares(x: Value, axis, ddof, keepdims: bool,
             dtype: str | None = None) -> tuple[Value, Value, list[Value]]:
    """The variance, the divisor of its sum of squares, and the squared terms."""
    count = count_along(x, axis)
    centre = as_dtype(sum_record(as_dtype(x, dtype), axis=axis, keepdims=axis is not None) / count,
                      dtype)
    parts = _parts(x - centre)
    squares = sum_record(as_dtype(functools.reduce(add, [part * part for part in parts]), dtype),
                         axis=axis, keepdims=keepdims)
    count = count if value(ddof).constant == 0 else RECORDS["max_"](count - value(ddof), 0)
    return squares / count, count, parts


def _squares_where(x: Value, axis, ddof, where,
                   dtype: str | None = None) -> tuple[Value, Value, list[Value]]:
    """The same with a mask."""
    count = counted(x, axis, where)
    centre = as_dtype(sum_record(where_only(as_dtype(x, dtype), where, 0), axis=axis,
                                 keepdims=False) / count, dtype)
    parts = _parts(where_only(x - over(centre, axis, False), where, 0))
    squares = sum_record(as_dtype(functools.reduce(add, [part * part for part in parts]), dtype),
                         axis=axis, keepdims=False)
    count = maximum(count - value(ddof), 0)
    return squares / count, count, parts


@numpy_function(np.std, method="std")
def std(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> Value:
    """np.std."""
    refuse(out=out)
    x, dtype, axis, keepdims = (*_of_precision(x, dtype), static_axis(axis),
                                builtins.bool(static(keepdims)))
    if is_given(where):
        squares, count, parts = _squares_where(x, axis, ddof, where, dtype)
        found = root(squares, count, *parts, axis=axis, keepdims=False)
        return as_dtype(_with_axes(found, axis, x) if keepdims else found, dtype)
    squares, count, parts = _squares(x, axis, ddof, keepdims, dtype)
    return as_dtype(root(squares, count, *parts, axis=axis, keepdims=keepdims), dtype)


@numpy_function(np.count_nonzero)
def count_nonzero(x, axis=None, *, keepdims=False) -> Value:
    """np.count_nonzero."""
    return _reduce(sum_record, not_equal(as_array(x), 0), axis, keepdims)


# ----------------------------------------------------------------------------------------- extremes


def _share(x: Value, y: Value, axis, keepdims: bool) -> tuple[Value, Value]:
    """A mask of the extreme `y` in `x`, and its count, in the precision of x, which integers would
    widen.
    """
    hit = equal(x, over(y, axis, keepdims))
    count = sum_record(hit, axis=axis, keepdims=keepdims)
    return (hit,
            as_dtype(count, dtype_of(x.type)) if dtype_of(x.type) in ("float16", "float32")
            else count)


def _vjp_extreme(bar, y, x, *, axis, keepdims):
    hit, count = _share(x, y, axis, keepdims)
    return (where(hit, over(bar / count, axis, keepdims), 0.0),)


def _jvp_extreme(dots, y, x, *, axis, keepdims):
    if dots[0] is None:
        return None
    hit, count = _share(x, y, axis, keepdims)
    return sum_record(where(hit, dots[0], 0.0), axis=axis, keepdims=keepdims) / count


def _same_dtype(dtype: str | None) -> str | None:
    return dtype


def extreme(name: str, function: Callable):
    """Define a reduction like np.max."""
    return reduction(name, function, _same_dtype, vjp=_vjp_extreme, jvp=_jvp_extreme,
                     states_both="ties divide a cotangent before it spreads, a tangent after",
                     raises=EXTREME, chooses=True, least=moved,
                     stablehlo=stablehlo_arrays.extreme(name))


def _extreme(record, x, axis, out, keepdims, initial, where) -> Value:
    refuse(out=out)
    if is_given(initial):
        x = where_only(as_array(x), where, as_dtype(value(initial), dtype_of(as_array(x).type)))
        x, axis = begun(x, axis, keepdims, initial)
    elif is_given(where):
        raise TypeMismatchError(f"np.{record.name} with where= and without initial=",
                                current().line, "say what it is of nothing, with initial=")
    return _reduce(record, x, axis, keepdims)


max_record, min_record = extreme("max", np.max), extreme("min", np.min)


@numpy_function(np.max, np.amax, method="max")
def amax(x, axis=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.max."""
    return _extreme(max_record, x, axis, out, keepdims, initial, where)


@numpy_function(np.min, np.amin, method="min")
def amin(x, axis=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.min."""
    return _extreme(min_record, x, axis, out, keepdims, initial, where)


@numpy_function(np.ptp)
def ptp(x, axis=None, out=None, keepdims=False) -> Value:
    """np.ptp: maximum minus minimum."""
    return amax(x, axis, out, keepdims) - amin(x, axis, out, keepdims)


def _boolean(dtype: str | None) -> str:
    return "bool"


def _position(dtype: str | None) -> str:
    return np.dtype(np.intp).name


def _place_in_number(op: Op, x: Value) -> Value | None:
    """A number is the extreme of itself."""
    return value(np.int64(0)) if isinstance(x.type, Scalar) else None


any_record = reduction("any", np.any, _boolean, partials=(None,),
                       stablehlo=stablehlo_arrays.combined("or", False))
all_record = reduction("all", np.all, _boolean, partials=(None,),
                       stablehlo=stablehlo_arrays.combined("and", True))
argmax_record = reduction("argmax", np.argmax, _position, partials=(None,), raises=EXTREME,
                          batch=over_one_axis, lower=_place_in_number,
                          stablehlo=stablehlo_arrays.first_extreme("maximum"))
argmin_record = reduction("argmin", np.argmin, _position, partials=(None,), raises=EXTREME,
                          batch=over_one_axis, lower=_place_in_number,
                          stablehlo=stablehlo_arrays.first_extreme("minimum"))
for _each in (max_record, min_record):
    kinked(_each,
           Kink("a tie: each of the elements gets an equal share of the derivative",
                ties_of_extreme))
for _each in (argmax_record, argmin_record):
    _each.finds = True
    kinked(_each, Kink("a tie: the first of the elements is taken", ties_of_place))
for _each in (any_record, all_record):
    kinked(_each, Kink(ASKED, asked_of_zero))


@numpy_function(np.any, method="any")
def any_(x, axis=None, out=None, keepdims=False, *, where=None) -> Value:
    """np.any."""
    refuse(out=out)
    return _reduce(any_record, logical_and(as_array(where), as_array(x)) if is_given(where) else x,
                   axis, keepdims)


@numpy_function(np.all, method="all")
def all_(x, axis=None, out=None, keepdims=False, *, where=None) -> Value:
    """np.all."""
    refuse(out=out)
    return _reduce(all_record,
                   logical_or(logical_not(as_array(where)), as_array(x)) if is_given(where) else x,
                   axis, keepdims)


@numpy_function(np.argmax, method="argmax")
def argmax(x, axis=None, out=None, *, keepdims=False) -> Value:
    """np.argmax, without derivative."""
    refuse(out=out)
    return _reduce(argmax_record, x, axis, keepdims)


@numpy_function(np.argmin, method="argmin")
def argmin(x, axis=None, out=None, *, keepdims=False) -> Value:
    """np.argmin, without derivative."""
    refuse(out=out)
    return _reduce(argmin_record, x, axis, keepdims)


# ------------------------------------------------------------------------------- norms and the like


def is_complex(x: Value) -> bool:
    """Whether `x` has a complex dtype."""
    return (dtype_of(x.type) or "").startswith("complex")


def _parts(x: Value) -> list[Value]:
    """Real and imaginary parts; real numbers as they are."""
    return [real(x), imag(x)] if is_complex(x) else [x]


@numpy_function(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False) -> Value:
    """np.linalg.norm: vector norms, and for matrices the Frobenius norm (the others:
    library/numpy_functions.py).
    """
    x, ord, axis, keepdims = as_array(x), static(ord, "ord"), static_axis(axis), static(keepdims)
    vector = rank(x) == 1 or isinstance(axis, int)
    if vector and isinstance(ord, str):
        raise TypeMismatchError(f"np.linalg.norm of a vector with ord={ord!r}", current().line,
                                "leave ord= out: it is the root of the sum of squares")
    if ord is not None and not vector and not (ord == "fro" and rank(x) in (2, None)):
        raise UnsupportedError(
            f"np.linalg.norm of a matrix with ord={ord!r}",
            current().line,
            "use ord=None, or give the axis of a vector",
        )
    match ord:
        case None | 2 | "fro":
            if (axis is None and not keepdims and rank(x) is not None
                and is_inexact(dtype_of(x.type))):
                parts = _parts(RECORDS["ravel"](x))
                # as NumPy does, bit for bit
                squares = functools.reduce(add, [RECORDS["matmul"](part, part) for part in parts])
                return root(squares, 1, *parts, axis=None, keepdims=False)
            parts = _parts(x)
            squares = sum_record(functools.reduce(add, [part * part for part in parts]), axis=axis,
                                 keepdims=keepdims)
            return root(squares, 1, *parts, axis=axis, keepdims=keepdims)
        case 1:
            return sum_record(absolute(x), axis=axis, keepdims=keepdims)
        case float() if ord == np.inf:
            return max_record(absolute(x), axis=axis, keepdims=keepdims)
        case float() if ord == -np.inf:
            return min_record(absolute(x), axis=axis, keepdims=keepdims)
        case int() | float() if ord > 1:
            sizes = absolute(x)
            total = sum_record(power(sizes, ord), axis=axis, keepdims=keepdims)
            return norm_of(total, sizes, ord=ord, axis=axis, keepdims=keepdims)
        case int() | float() if ord != 0:
            return power(sum_record(power(absolute(x), ord), axis=axis, keepdims=keepdims), 1 / ord)
    raise UnsupportedError(
        f"np.linalg.norm with ord={ord!r}", current().line, "use a number that is not 0"
    )


def _finite(top: Value) -> Value:
    """A maximum, with 0 in place of infinities, without derivative."""
    return barrier(where(isfinite(top), top, 0.0))


def below_maximum(x, axis) -> tuple[Value, Value]:
    """x minus its finite maximum, which counts as constant, and the sum of the exponentials, with
    all axes kept.
    """
    x, axis = as_array(x), static_axis(axis)
    below = x - _finite(max_record(x, axis=axis, keepdims=True))
    return below, sum_record(exp(below), axis=axis, keepdims=True)


@numpy_function(Named("scipy.special", "logsumexp"))
def logsumexp(x, axis=None, b=None, keepdims=False, return_sign=False) -> Value:
    """scipy.special.logsumexp, shifted by the finite maximum, which counts as constant; where all
    are -inf the derivative is 0, as for logaddexp.
    """
    x, axis, keepdims = as_array(x), static_axis(axis), static(keepdims)
    if is_none(b):
        if static(return_sign):
            raise UnsupportedError("logsumexp with return_sign= and without b=", current().line,
                                   "leave it out: the sign is 1")
        top = _finite(max_record(x, axis=axis, keepdims=keepdims))
        total = sum_record(exp(x - over(top, axis, keepdims)), axis=axis, keepdims=keepdims)
        none = equal(total, 0.0)
        return where(none, -np.inf, log(where(none, 1.0, total)) + top)
    b = as_array(b)
    counts = not_equal(b, 0)
    top = _finite(max_record(where(counts, x, -np.inf), axis=axis, keepdims=keepdims))
    total = sum_record(b * exp(where(counts, x - over(top, axis, keepdims), 0.0)), axis=axis,
                       keepdims=keepdims)
    return (value((log(absolute(total)) + top, sign(total))) if static(return_sign)
            else log(total) + top)
