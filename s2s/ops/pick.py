"""Parts of arrays picked by rule: along an axis, the diagonal, a triangle, in order of size, differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import TypeMismatchError, UnsupportedError
from ..ir.builder import current, fresh_shape
from ..ir.graph import Value
from ..ir.types import Array, Type, Unknown
from .arrange import expand_dims, ravel
from .create import arange, zeros
from .index import additem, parse_index, put, setitem, take
from .join import along
from .record import define, dims_of, dtype_of, numpy_function, rank, static, value
from .reduce import sum_record
from .shape import length, literal, named_extent, normal_axis, numpy_call, static_axis, zeros_of


def known_rank(x: Value, what: str) -> int:
    """The rank of `x`, which must be known."""
    if rank(x) is None:
        raise UnsupportedError(f"{what} of an array of unknown rank", current().line, "call the function once, or index it")
    return rank(x)


@numpy_function(np.take, method="take")
def take_(x: Value, indices, axis=None, out=None, mode="raise") -> Value:
    """np.take: along an axis, or of the raveled array."""
    x, axis = value(x), static_axis(axis)
    if static(mode) != "raise":
        raise UnsupportedError(f"np.take with mode={static(mode)!r}", current().line, "take remainders of the indices first")
    return take(ravel(x), indices) if axis is None else take(x, along(axis, indices))


@numpy_function(np.take_along_axis)
def take_along_axis(x: Value, indices, axis=-1) -> Value:
    """np.take_along_axis."""
    x, indices = value(x), value(indices)
    count = known_rank(x, "np.take_along_axis")
    axis = normal_axis(static_axis(axis), count)
    key = tuple(indices if k == axis else expand_dims(arange(length(indices, axis=k)), tuple(j for j in range(count) if j != k))
                for k in range(count))
    return take(x, key)


@numpy_function(np.sort)
def sort(x: Value, axis=-1) -> Value:
    """np.sort: the derivative goes where the elements went."""
    x, axis = value(x), static_axis(axis)
    if axis is None:
        x, axis = ravel(x), 0
    return take_along_axis(x, argsort(x, axis=axis), axis) if rank(x) != 1 else take(x, argsort(x, axis=-1))


argsort = define(
    "argsort",
    evaluate=lambda x, *, axis: np.argsort(x, axis=axis),
    infer=lambda x, *, axis: Unknown(x.type.shape, "int64") if rank(x) is None else Array("int64", dims_of(x.type)),
    syntax=lambda x, *, axis: numpy_call("argsort", x, axis=literal(axis) if axis != -1 else None),
    partials=(None,),
)


@numpy_function(np.argsort, method="argsort")
def argsort_(x: Value, axis=-1) -> Value:
    """np.argsort; it has no derivative."""
    axis = static_axis(axis)
    return argsort(ravel(value(x)), axis=0) if axis is None else argsort(value(x), axis=axis)


# ------------------------------------------------------------------------------------------ diagonals


def _infer_diagonal(x: Value, *, k: int) -> Type:
    if rank(x) is None:
        return Unknown(fresh_shape(), dtype_of(x.type))
    if rank(x) != 2:
        raise UnsupportedError(f"the diagonal of {x.type}", current().line, "take it of a matrix")
    n, m = dims_of(x.type)
    if isinstance(n, int) and isinstance(m, int):
        return Array(x.type.dtype, (max(0, min(n + min(k, 0), m - max(k, 0))),))
    return Array(x.type.dtype, (n if n == m and k == 0 else named_extent(("diagonal", n, m, k)),))


def _places(bar: Value, k: int) -> tuple[Value, Value]:
    """Rows and columns of the k-th diagonal, of which `bar` has the length."""
    along_it = arange(length(bar, axis=0))
    return (along_it + -k if k < 0 else along_it), (along_it + k if k > 0 else along_it)


def _vjp_diagonal(bar, y, x, *, k):
    pattern, operands = parse_index(_places(bar, k))

    def accumulate(x_bar):
        if x_bar is None:
            return setitem(zeros_of(x), bar, *operands, pattern=pattern)
        return additem(x_bar, bar, *operands, pattern=pattern)

    return (accumulate,)


diagonal_record = define(
    "diagonal",
    evaluate=lambda x, *, k: np.diagonal(x, k),
    infer=_infer_diagonal,
    vjp=_vjp_diagonal,
    linear=(0,),
    syntax=lambda x, *, k: numpy_call("diagonal", x, *([literal(k)] if k else [])),
    views=(0,),
)


@numpy_function(np.diagonal, method="diagonal")
def diagonal(x: Value, offset=0) -> Value:
    """np.diagonal of a matrix."""
    return diagonal_record(value(x), k=static(offset))


@numpy_function(np.diag)
def diag(x: Value, k=0) -> Value:
    """np.diag: the diagonal of a matrix, or the matrix with this diagonal."""
    x, k = value(x), static(k)
    if rank(x) != 1:
        return diagonal_record(x, k=k)
    n = length(x, axis=0) + abs(k)
    return put(zeros((n, n), dtype=value(np.dtype(dtype_of(x.type)))), _places(x, k), x)


@numpy_function(np.trace, method="trace")
def trace(x: Value, offset=0) -> Value:
    """np.trace of a matrix."""
    return sum_record(diagonal(x, offset), axis=None, keepdims=False)


def _triangle(name: str, function: Callable):
    record = define(
        name,
        evaluate=lambda x, *, k: function(x, k),
        infer=lambda x, *, k: _of_matrix(x, name),
        vjp=lambda bar, y, x, *, k: (record(bar, k=k),),
        linear=(0,),
        syntax=lambda x, *, k: numpy_call(name, x, *([literal(k)] if k else [])),
    )

    @numpy_function(function)
    def triangle(m: Value, k=0) -> Value:
        return record(value(m), k=static(k))

    return triangle


def _of_matrix(x: Value, what: str) -> Type:
    if rank(x) is not None and rank(x) < 2:
        raise TypeMismatchError(f"np.{what} of {x.type}", current().line, "give it a matrix")
    return x.type


triu, tril = _triangle("triu", np.triu), _triangle("tril", np.tril)

# ---------------------------------------------------------------------------------------- differences


@numpy_function(np.diff)
def diff(x: Value, n=1, axis=-1) -> Value:
    """np.diff, n times."""
    x, axis = value(x), static_axis(axis)
    for _ in range(static(n)):
        x = take(x, along(axis, slice(1, None))) - take(x, along(axis, slice(None, -1)))
    return x
