"""Reductions along axes: sums, extremes and truth, and what is stated with them.

Where several elements are the maximum, each gets an equal share of its cotangent, as in JAX.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

import numpy as np
from scipy import special

from ..errors import TypeMismatchError, UnsupportedError
from ..ir.builder import current, fresh_shape
from ..ir.graph import Value
from ..ir.types import Array, Scalar, Static, Tuple, Type, Unknown
from .arrange import expand_dims, flip, moveaxis, ravel, reshape_like, squeeze
from .barrier import barrier
from .cast import as_dtype
from .control import for_loop, item
from .create import asarray, empty_like, ones_like
from .elementwise import absolute, equal, exp, log, not_equal, sqrt, where
from .index import put, take
from .record import (
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
from .shape import (
    length,
    literal,
    normal_axes,
    numpy_call,
    shaped_like,
    size_of,
    spread,
    static_axis,
    zeros_of,
)

# -------------------------------------------------------------------------------------------- in common


def reduced(x: Value, axis, keepdims: bool, dtype: str | None) -> Type:
    """The type of a reduction of `x` along `axis`."""
    count = rank(x)
    if axis is None and not keepdims:
        return Scalar(
            dtype or "float64"
        )  # of rank-generic code: the dtype does not show in its text
    if count is None:
        return Unknown(fresh_shape(), dtype)
    axes = normal_axes(axis, count)
    return array_type(
        dtype,
        tuple(
            1 if k in axes else d
            for k, d in enumerate(dims_of(x.type))
            if keepdims or k not in axes
        ),
    )


def result_dtype(function: Callable) -> Callable:
    """The dtype that `function` makes of arrays of a dtype."""
    return lambda dtype: None if dtype is None else function(np.ones(1, dtype)).dtype.name


def reduction(name: str, function: Callable, dtype: Callable | None = None, **fields):
    """Define an op (x; axis, keepdims) like np.sum."""
    dtype = dtype or result_dtype(function)
    return define(
        name,
        evaluate=lambda x, *, axis, keepdims: function(x, axis=axis, keepdims=keepdims),
        infer=lambda x, *, axis, keepdims: reduced(x, axis, keepdims, dtype(dtype_of(x.type))),
        syntax=lambda x, *, axis, keepdims: numpy_call(
            name, x, axis=literal(axis), keepdims=literal(keepdims or None)
        ),
        **fields,
    )


def _reduce(record, x, axis, keepdims) -> Value:
    """`record` on the arguments as the front end gives them."""
    return record(_array(x), axis=static_axis(axis), keepdims=builtins.bool(static(keepdims)))


def _array(x) -> Value:
    """A tuple or list of numbers as an array."""
    x = value(x)
    return asarray(x) if isinstance(x.type, (Tuple, Static)) else x


def _members(x: Value) -> list[Value]:
    return [item(x, index=k) for k in range(len(x.type.items))]


def _refuse(**arguments) -> None:
    """Arguments that are not supported must be absent."""
    for name, argument in arguments.items():
        if argument is not None and not (is_static(argument) and static(argument) is None):
            raise UnsupportedError(
                f"the argument {name}= of a reduction", current().line, "leave it out"
            )


def over(reduced_value: Value, axis, keepdims: bool) -> Value:
    """A reduction's result (or cotangent) with its reduced axes back, as axes of length 1."""
    if axis is None or keepdims:
        return reduced_value
    return expand_dims(reduced_value, axis)


# -------------------------------------------------------------------------------------------- sums


def _fold_sum(x: Value, *, axis, keepdims: bool):
    """The sum of one number spread over an array is a product; in an adjoint, a sign comes out of a sum."""
    if runs_backwards() and x.op is not None and x.op.name == "negative":
        return -sum_record(x.op.inputs[0], axis=axis, keepdims=keepdims)
    if axis is None and not keepdims and x.op is not None and x.op.name == "spread":
        s, like = x.op.inputs
        if isinstance(s.type, Scalar) and dtype_of(s.type) in ("float64", "complex128"):
            return s * size_of(like)
    return None


sum_record = reduction(
    "sum",
    np.sum,
    fold=_fold_sum,
    linear=(0,),
    vjp=lambda bar, y, x, *, axis, keepdims: (spread(over(bar, axis, keepdims), x),),
)


@numpy_function(np.sum, method="sum")
def sum_(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.sum."""
    _refuse(out=out, initial=initial, where=where)
    return _reduce(sum_record, as_dtype(_array(x), dtype), axis, keepdims)


@numpy_function(builtins.sum)
def builtin_sum(x, start=0) -> Value:
    """sum(x): of a tuple member by member, of an array along its first axis."""
    x, start = value(x), value(start)
    if isinstance(x.type, Tuple):
        for member in _members(x):
            start = start + member
        return start
    total = sum_record(x, axis=0 if rank(x) != 1 else None, keepdims=False)
    return total if start.constant == 0 else start + total


def count_along(x: Value, axis) -> Value:
    """How many elements a reduction along `axis` takes together."""
    if axis is None:
        return size_of(x)
    count = value(1)
    for a in axis if isinstance(axis, tuple) else (axis,):
        count = count * length(x, axis=a)
    return count


@numpy_function(np.mean, method="mean")
def mean(x, axis=None, dtype=None, out=None, keepdims=False, where=None) -> Value:
    """np.mean: the sum divided by the number of elements."""
    _refuse(out=out, where=where)
    x, axis = as_dtype(_array(x), dtype), static_axis(axis)
    return sum_record(x, axis=axis, keepdims=builtins.bool(static(keepdims))) / count_along(x, axis)


@numpy_function(np.average)
def average(x, axis=None, weights=None, returned=False, *, keepdims=False) -> Value:
    """np.average, with weights of x's shape, or along one axis."""
    if static(returned):
        raise UnsupportedError(
            "np.average(returned=True)", current().line, "sum the weights yourself"
        )
    if weights is None or (isinstance(weights, Value) and weights.constant is None):
        return mean(x, axis, keepdims=keepdims)
    x, weights, axis, keepdims = _array(x), _array(weights), static_axis(axis), static(keepdims)
    if isinstance(axis, int) and rank(weights) == 1 and rank(x) not in (None, 1):
        count = rank(x)
        weights = expand_dims(weights, tuple(k for k in range(count) if k != axis % count))
        total = sum_record(weights, axis=None, keepdims=False)
    else:
        total = sum_record(weights, axis=axis, keepdims=keepdims)
    return sum_record(x * weights, axis=axis, keepdims=keepdims) / total


@numpy_function(np.var, method="var")
def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> Value:
    """np.var of real numbers."""
    _refuse(out=out, where=where)
    x, axis = as_dtype(_array(x), dtype), static_axis(axis)
    count = count_along(x, axis)
    centred = x - sum_record(x, axis=axis, keepdims=axis is not None) / count
    squares = sum_record(centred * centred, axis=axis, keepdims=builtins.bool(static(keepdims)))
    return squares / (count - value(ddof))


@numpy_function(np.std, method="std")
def std(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None) -> Value:
    """np.std of real numbers."""
    return sqrt(var(x, axis, dtype, out, ddof, keepdims, where=where))


@numpy_function(np.count_nonzero)
def count_nonzero(x, axis=None, *, keepdims=False) -> Value:
    """np.count_nonzero."""
    return _reduce(sum_record, not_equal(_array(x), 0), axis, keepdims)


# ------------------------------------------------------------------------------------------ extremes


def _share(x: Value, y: Value, axis, keepdims: bool) -> tuple[Value, Value]:
    """Where `x` is its extreme `y`, and how often."""
    hit = equal(x, over(y, axis, keepdims))
    return hit, sum_record(hit, axis=axis, keepdims=keepdims)


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


max_record = reduction("max", np.max, _same_dtype, vjp=_vjp_extreme, jvp=_jvp_extreme)
min_record = reduction("min", np.min, _same_dtype, vjp=_vjp_extreme, jvp=_jvp_extreme)


@numpy_function(np.max, np.amax, method="max")
def amax(x, axis=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.max."""
    _refuse(out=out, initial=initial, where=where)
    return _reduce(max_record, x, axis, keepdims)


@numpy_function(np.min, np.amin, method="min")
def amin(x, axis=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.min."""
    _refuse(out=out, initial=initial, where=where)
    return _reduce(min_record, x, axis, keepdims)


@numpy_function(np.ptp)
def ptp(x, axis=None, out=None, keepdims=False) -> Value:
    """np.ptp: the maximum less the minimum."""
    return amax(x, axis, out, keepdims) - amin(x, axis, out, keepdims)


def _boolean(dtype: str | None) -> str:
    return "bool"


def _position(dtype: str | None) -> str:
    return np.dtype(np.intp).name


any_record = reduction("any", np.any, _boolean, partials=(None,))
all_record = reduction("all", np.all, _boolean, partials=(None,))
argmax_record = reduction("argmax", np.argmax, _position, partials=(None,))
argmin_record = reduction("argmin", np.argmin, _position, partials=(None,))


@numpy_function(np.any, method="any")
def any_(x, axis=None, out=None, keepdims=False, *, where=None) -> Value:
    """np.any."""
    _refuse(out=out, where=where)
    return _reduce(any_record, x, axis, keepdims)


@numpy_function(np.all, method="all")
def all_(x, axis=None, out=None, keepdims=False, *, where=None) -> Value:
    """np.all."""
    _refuse(out=out, where=where)
    return _reduce(all_record, x, axis, keepdims)


@numpy_function(np.argmax, method="argmax")
def argmax(x, axis=None, out=None, *, keepdims=False) -> Value:
    """np.argmax; it has no derivative."""
    _refuse(out=out)
    return _reduce(argmax_record, x, axis, keepdims)


@numpy_function(np.argmin, method="argmin")
def argmin(x, axis=None, out=None, *, keepdims=False) -> Value:
    """np.argmin; it has no derivative."""
    _refuse(out=out)
    return _reduce(argmin_record, x, axis, keepdims)


# ------------------------------------------------------------------------------------- norms and the like


@numpy_function(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False) -> Value:
    """np.linalg.norm: of vectors with ord None, 1, 2, inf; of matrices the Frobenius norm."""
    x, ord, axis, keepdims = _array(x), static(ord, "ord"), static_axis(axis), static(keepdims)
    vector = rank(x) == 1 or isinstance(axis, int)
    if ord is not None and not vector and not (ord == "fro" and rank(x) in (2, None)):
        raise UnsupportedError(
            f"np.linalg.norm of a matrix with ord={ord!r}",
            current().line,
            "use ord=None, or give the axis of a vector",
        )
    match ord:
        case None | 2 | "fro":
            squares = (
                x * x if not (dtype_of(x.type) or "").startswith("complex") else absolute(x) ** 2
            )
            return sqrt(sum_record(squares, axis=axis, keepdims=keepdims))
        case 1:
            return sum_record(absolute(x), axis=axis, keepdims=keepdims)
        case float() if ord == np.inf:
            return max_record(absolute(x), axis=axis, keepdims=keepdims)
    raise UnsupportedError(
        f"np.linalg.norm with ord={ord!r}", current().line, "use ord None, 1, 2 or np.inf"
    )


@numpy_function(special.logsumexp)
def logsumexp(x, axis=None, b=None, keepdims=False, return_sign=False) -> Value:
    """scipy.special.logsumexp of finite numbers: the maximum is taken out, and carries no derivative."""
    if b is not None and static(b) is not None or static(return_sign):
        raise UnsupportedError(
            "logsumexp with b= or return_sign=", current().line, "multiply before the logarithm"
        )
    x, axis, keepdims = _array(x), static_axis(axis), static(keepdims)
    top = barrier(max_record(x, axis=axis, keepdims=keepdims))
    return log(sum_record(exp(x - over(top, axis, keepdims)), axis=axis, keepdims=keepdims)) + top


# -------------------------------------------------------------------------------------------- running sums


def _fold_running(record: str) -> Callable:
    """Of a vector, the axis is not worth mentioning."""

    def fold(x: Value, *, axis: int | None):
        return (
            RECORDS[record](x, axis=None)
            if rank(x) == 1 and normal_axes(axis, 1) and axis is not None
            else None
        )

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


cumsum = define(
    "cumsum",  # axis None: of a vector
    evaluate=lambda x, *, axis: np.cumsum(x, axis=axis),
    infer=_infer_running(np.cumsum),
    fold=_fold_running("cumsum"),
    vjp=_vjp_cumsum,
    linear=(0,),
    syntax=lambda x, *, axis: numpy_call("cumsum", x, axis=literal(axis)),
)


@numpy_function(np.cumsum, method="cumsum")
def cumsum_(x, axis=None, dtype=None, out=None) -> Value:
    """np.cumsum."""
    _refuse(out=out)
    x, axis = as_dtype(_array(x), dtype), static_axis(axis)
    return cumsum(ravel(x), axis=0) if axis is None else cumsum(x, axis=axis)


# ----------------------------------------------------------------------------------------------- products
#
# Note [Derivatives of products]
# The derivative of a product by one factor is the product of the others; dividing the product by the factor
# fails where the factor is 0.  So each rule is a loop along the axis, over what precedes an element and what
# follows it, made of ordinary ops, with derivatives of their own:
#
#     prod       x_bar[k] = y_bar * before[k] * after[k]
#     cumprod    x_bar[k] = before[k] * s[k],   s[k] = y_bar[k] + x[k + 1] * s[k + 1]


def _before(x: Value) -> Value:
    """The products of the elements before each, along the first axis."""
    n = length(x, axis=0)

    def step(k, before, product):
        return [put(before, k, product), product * take(x, k)]

    first = _ones_like_element(x)
    return for_loop(0, n, 1, [empty_like(x), first], step, names=["before", "product"], index="k")[
        0
    ]


def _ones_like_element(x: Value) -> Value:
    return value(1.0) if rank(x) == 1 else ones_like(take(x, 0))


def _on_first_axis(rule: Callable) -> Callable:
    """A rule along the first axis, as a rule along any: `rule(bar, x) -> x_bar`."""

    def vjp(bar, y, x, *, axis, keepdims=None):
        if axis is None:
            return (
                reshape_like(rule(squeeze(bar) if keepdims else bar, ravel(x)), x),
            )  # raveled, a vector is itself
        if keepdims:
            bar = squeeze(bar, axis)
        if keepdims is None and axis != 0:
            bar = moveaxis(bar, axis, 0)
        return (
            rule(bar, x)
            if axis == 0
            else shaped_like(moveaxis(rule(bar, moveaxis(x, axis, 0)), 0, axis), x),
        )

    return vjp


def _prod_bar(bar: Value, x: Value) -> Value:
    before = _before(x)

    def step(k, x_bar, after):
        return [put(x_bar, k, after * take(before, k)), after * take(x, k)]

    last = length(x, axis=0) - 1
    start = bar if rank(x) == 1 else bar * ones_like(take(x, 0))
    return for_loop(
        last, -1, -1, [empty_like(x), start], step, names=["x_bar", "after"], index="k"
    )[0]


def _cumprod_bar(bar: Value, x: Value) -> Value:
    before = _before(x)

    def step(k, x_bar, s):
        s = s + take(bar, k)
        return [put(x_bar, k, s * take(before, k)), s * take(x, k)]

    last = length(x, axis=0) - 1
    start = value(0.0) if rank(x) == 1 else zeros_of(take(x, 0))
    return for_loop(last, -1, -1, [empty_like(x), start], step, names=["x_bar", "s"], index="k")[0]


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

    start = value(0.0) if rank(x) == 1 else zeros_of(take(x, 0))
    y_dot = for_loop(
        0,
        length(x, axis=0),
        1,
        [empty_like(y), _ones_like_element(x), start],
        step,
        names=["y_dot", "product", "slope"],
        index="k",
    )[0]
    return y_dot if not axis else shaped_like(moveaxis(y_dot, 0, axis), dots[0])


prod_record = reduction("prod", np.prod, vjp=_prod_vjp, jvp=_jvp_prod)
cumprod = define(
    "cumprod",
    evaluate=lambda x, *, axis: np.cumprod(x, axis=axis),
    infer=_infer_running(np.cumprod),
    fold=_fold_running("cumprod"),
    vjp=_cumprod_vjp,
    jvp=_jvp_cumprod,
    syntax=lambda x, *, axis: numpy_call("cumprod", x, axis=literal(axis)),
)


@numpy_function(np.prod, method="prod")
def prod(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None) -> Value:
    """np.prod."""
    _refuse(out=out, initial=initial, where=where)
    x, axis = as_dtype(_array(x), dtype), static_axis(axis)
    if isinstance(axis, tuple):
        raise UnsupportedError(
            "np.prod along several axes", current().line, "take the product along one after another"
        )
    return prod_record(x, axis=axis, keepdims=builtins.bool(static(keepdims)))


@numpy_function(np.cumprod, method="cumprod")
def cumprod_(x, axis=None, dtype=None, out=None) -> Value:
    """np.cumprod."""
    _refuse(out=out)
    x, axis = as_dtype(_array(x), dtype), static_axis(axis)
    return cumprod(ravel(x), axis=0) if axis is None else cumprod(x, axis=axis)
