"""Reshaping: the same elements, in the same order, in another shape."""

from __future__ import annotations

import ast
import math

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, emit, fresh_extent, fresh_shape
from ...ir.graph import Value
from ...ir.types import Array, Extent, Scalar, Type, Unknown
from ..core.array_raise_conditions import RESHAPE
from ..core.batch_rules import batched_over
from ..core.copy import copy
from ..core.record import (
    RECORDS,
    array_type,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    rank,
    same_shape,
    static,
    value,
)
from ..core.shape import (
    extent_of,
    is_array,
    length,
    lengths_of,
    named_extent,
    numpy_call,
    said_by,
    shape_giver,
    shape_source,
    shape_syntax,
)
from .index import take


def rearranged(x: Value, dims: tuple) -> Type:
    """An array of x's dtype with these dims."""
    return array_type(dtype_of(x.type), dims)


def unknown_like(x: Value) -> Unknown:
    """A value of unknown rank, of x's dtype."""
    return Unknown(fresh_shape(), dtype_of(x.type))


def only(entries: list) -> ast.expr:
    """A single expression as it is, several as a tuple."""
    return entries[0] if len(entries) == 1 else ast.Tuple(list(entries), ast.Load())


def product_extent(dims: tuple):
    """The extent of the merged axes `dims`: the same for the same dims."""
    number = math.prod(d for d in dims if isinstance(d, int))
    extents = sorted((d for d in dims if isinstance(d, Extent)), key=str)
    if not extents or number == 0:
        return number
    if len(extents) == 1 and number == 1:
        return extents[0]
    one = number == 1 and any(e.may_be_one for e in extents)
    return Extent("*".join([str(number)] * (number != 1) + [f"({e})" for e in extents]), 0, one)


def _infer_reshape(x: Value, *sizes: Value) -> Type:
    dims = [extent_of(n) for n in sizes]
    if dims.count(-1) > 1 or any(isinstance(d, int) and d < -1 for d in dims):
        raise TypeMismatchError(
            "a shape that leaves more than one length open", current().line, "write -1 once"
        )
    known = rank(x) is not None
    whole = product_extent(dims_of(x.type)) if known else None
    if -1 in dims:
        dims[dims.index(-1)] = (
            _open_extent(whole, [d for d in dims if d != -1], dims_of(x.type))
            if known
            else fresh_extent()
        )
    elif (isinstance(whole, int) and isinstance(product_extent(tuple(dims)), int)
          and whole != product_extent(tuple(dims))):
        raise TypeMismatchError(
            f"{whole} elements do not fill the shape {tuple(dims)}",
            current().line,
            "reshape to a shape with as many elements",
        )
    return rearranged(x, tuple(dims))


def _open_extent(whole, others: list, dims: tuple):
    """The length that replaces -1."""
    rest = product_extent(tuple(others))
    if rest == 1:
        return whole
    if isinstance(whole, int) and isinstance(rest, int):
        if rest == 0 or whole % rest:
            raise TypeMismatchError(
                f"{whole} elements do not divide into rows of {rest}",
                current().line,
                "reshape to a shape with as many elements",
            )
        return whole // rest
    left = list(dims)
    for d in others:
        if d in left:
            left.remove(d)
        elif d != 1:
            return named_extent(("-1", dims, tuple(others)))
    return product_extent(tuple(left))


def _fold_reshape(x: Value, *sizes: Value):
    if x.op is not None and x.op.record.reshapes:
        return reshape(x.op.inputs[0], *sizes)
    if (
        isinstance(x.type, (Scalar, Array))
        and len(sizes) == rank(x)
        and _infer_reshape(x, *sizes) == x.type
    ):
        return x
    if not sizes and isinstance(x.type, Scalar):
        return x
    if not sizes and isinstance(x.type, Array) and all(d == 1 for d in x.type.dims):
        return take(x, (0,) * rank(x))
    return None


def _batch_reshape(flags, x: Value, *sizes: Value):
    return reshape(x, length(x, axis=0), *sizes) if flags[0] and not any(flags[1:]) else None


reshape = define(
    "reshape",  # (x, *sizes)
    evaluate=lambda x, *sizes: np.reshape(x, sizes),
    infer=_infer_reshape,
    fold=_fold_reshape,
    vjp=lambda bar, y, x, *sizes: (reshape_like(bar, x), *(None for _ in sizes)),
    linear=(0,),
    syntax=lambda x, *sizes: numpy_call("reshape", x, only(list(sizes))),
    raises=RESHAPE,
    cheap=True,
    views=(0,),
    moves=(0,), reshapes=True,
    batch=_batch_reshape,
)


def like_shape(x: Value, like: Value, *, known: bool = False) -> Type:
    """The type of x's elements in the shape of another value."""
    match like.type:
        case Unknown(shape):
            return Unknown(shape, dtype_of(x.type))
    return rearranged(x, dims_of(like.type))


def _fold_reshape_like(x: Value, like: Value, *, known: bool = False):
    if same_shape(x.type, like.type):
        return x
    if x.op is not None and x.op.record.reshapes:
        return reshape_like(x.op.inputs[0], like)
    if shape_source(like) is not like:
        return reshape_like(x, shape_source(like))
    if is_array(like) and all(isinstance(d, int) for d in like.type.dims):
        return reshape(x, *map(value, like.type.dims))
    if (lengths := said_by(like)) is not None:
        return reshape(x, *lengths)
    if rank(like) == 1 and rank(x) is not None:
        return emit(reshape_like, x, like, known=True) if not known else None
    return emit(reshape_like, x, like, known=True) if is_array(like) and not known else None


def _batch_reshape_like(flags, x: Value, like: Value, *, known: bool = False):
    if all(flags):
        return reshape_like(x, like)
    if not flags[0]:
        x = batched_over(x, length(like, axis=0))
    return reshape(x, length(x, axis=0),
                   *(length(like, axis=k) for k in range(flags[1], rank(like))))


reshape_like = define(
    "reshape_like",  # x in the shape of another value
    evaluate=lambda x, like, *, known=False: np.reshape(x, np.shape(like)),
    infer=like_shape,
    fold=_fold_reshape_like,
    vjp=lambda bar, y, x, like, *, known=False: (reshape_like(bar, x), None),
    linear=(0,),
    syntax=lambda x, like, *, known=False: numpy_call("reshape", x, shape_syntax(like, known)),
    cheap=True,
    views=(0,),
    shapes=(1,), same_shape=1,
    moves=(0,), reshapes=True,
    batch=_batch_reshape_like,
)


@numpy_function(np.reshape, view="contiguous", always_array=True)
def reshape_(x: Value, shape, order="C", *, copy=None) -> Value:
    """np.reshape; Fortran order as the transpose of the reshaped transpose."""
    x, giver, sizes = value(x), shape_giver(shape), lengths_of(shape)
    if _is_of_fortran(order):
        if giver is not None and rank(giver) is not None:
            sizes = [length(giver, axis=k) for k in range(rank(giver))]
        if sizes is None or rank(x) is None:
            raise UnsupportedError("reshape with order='F' of arrays or to shapes of unknown rank",
                                   current().line,
                                   "call the function once, or write the lengths one by one")
        return _turned(reshape(_turned(x), *reversed(sizes)))
    if giver is not None:
        return reshape_like(x, giver)
    if sizes is None:
        raise UnsupportedError(
            "a shape of unknown length", current().line, "write its members one by one"
        )
    return reshape(x, *sizes)


def _is_of_fortran(order) -> bool:
    """Whether the order is Fortran's, with the first index fastest."""
    if static(order) not in ("C", "F"):
        raise UnsupportedError(f"reshape with order={static(order)!r}", current().line,
                               "say 'C' or 'F'")
    return static(order) == "F"


def _turned(x: Value) -> Value:
    return RECORDS["transpose"](x, axes=None) if rank(x) > 1 else x


@numpy_function(method="reshape", view="contiguous", always_array=True)
def reshape_method(x: Value, *shape, order="C") -> Value:
    """x.reshape(n, m) or x.reshape((n, m))."""
    return reshape_(x, shape[0] if len(shape) == 1 else shape, order)


def _infer_ravel(x: Value) -> Type:
    if rank(x) is None:
        return Array(
            dtype_of(x.type),
            (fresh_extent() if x.type.shape is None else named_extent(("ravel", x.type.shape)),),
        )
    return Array(dtype_of(x.type), (product_extent(dims_of(x.type)),))


ravel = define(
    "ravel",
    evaluate=np.ravel,
    infer=_infer_ravel,
    fold=lambda x: x if rank(x) == 1 else reshape(x, value(1)) if rank(x) == 0 else None,
    vjp=lambda bar, y, x: (reshape_like(bar, x),),
    linear=(0,),
    syntax=lambda x: numpy_call("ravel", x),
    cheap=True,
    views=(0,),
    moves=(0,),
    batch=lambda flags, x: reshape(x, length(x, axis=0), value(-1)),
)


@numpy_function(np.ravel, method="ravel", view="contiguous")
def ravel_(x: Value, order="C") -> Value:
    """np.ravel; Fortran order as that of the transpose."""
    x = value(x)
    if not _is_of_fortran(order):
        return ravel(x)
    if rank(x) is None:
        raise UnsupportedError("ravel with order='F' of an array of unknown rank", current().line,
                               "call the function once, or annotate the parameter")
    return ravel(_turned(x))


@numpy_function(method="flatten", copies=True)
def flatten(x: Value, order="C") -> Value:
    """x.flatten(): always a copy."""
    return copy(ravel_(x, order))
