"""Lists of numbers or arrays as one array, and arrays as the lists of their rows.

    list_stack(xs)      np.array(xs)      list_concatenate(xs)     np.concatenate(xs)
    list_unstack(a)     list(a)           list_cut(y_bar, xs)      the transpose of that

Numba has neither of all kinds of items, so each has native forms, which are loops.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent
from ...ir.graph import Value
from ...ir.types import NONE, UNDEFINED, Array, Extent, List, Scalar, Type, Unknown
from ..core.dependence_rules import anything
from ..core.record import array_type, define, no_jvp, no_vjp
from ..core.shape import numpy_call, shaped_like
from .list_ops import call_syntax


def _fresh_dims(dims: tuple) -> tuple:
    return tuple(replace(fresh_extent(), symbol_may_be_one=d.may_be_one)
                 if isinstance(d, Extent) and d.accepts_any else d for d in dims)


def _infer_stack(xs: Value) -> Type:
    match xs.type.item:
        case Scalar(dtype):
            return Array(dtype, (fresh_extent(),)) if dtype is not None else Unknown()
        case Array(dtype, dims):
            return Array(dtype, (fresh_extent(), *_fresh_dims(dims)))
        case Unknown():
            return Unknown()
        case List() as inner:
            match inner.item:
                case Scalar(dtype):
                    return Array(dtype, (fresh_extent(), fresh_extent()))
    if xs.type.item == UNDEFINED:
        return Array("float64", (0,))
    raise UnsupportedError(f"an array of a {xs.type}", current().line,
                           "put numbers or arrays of one shape into the list")


def stacked(xs):
    """np.array(xs) of a list of arrays of one shape, as loops."""
    if len(xs) == 0:
        raise ValueError("need at least one array to stack")
    first = xs[0]
    y = np.empty((len(xs),) + first.shape, first.dtype)
    for k in range(len(xs)):
        if xs[k].shape != first.shape:
            raise ValueError("arrays that are stacked have one shape")
        y[k] = xs[k]
    return y


def _vjp_stack(bar, y, xs):
    return (list_unstack(bar, depth=2 if isinstance(xs.type.item, List) else 1),)


list_stack = define(
    "list_stack",
    evaluate=lambda xs: np.array(xs),
    infer=_infer_stack,
    syntax=lambda xs: numpy_call("array", xs),
    vjp=_vjp_stack,
    linear=(0,),
    moves=(0,),
)


def check_shapes(xs):
    if len(xs) == 0:
        raise ValueError("vmap over no lanes, and only a lane tells the shape of its result")
    for k in range(len(xs)):
        if xs[k].shape != xs[0].shape:
            raise ValueError("lanes of vmap make arrays of different shapes")


one_shape = define("one_shape", evaluate=check_shapes, infer=lambda xs: NONE, helper=check_shapes,
                   syntax=lambda xs: call_syntax("check_shapes", xs), pure=False, vjp=no_vjp,
                   jvp=no_jvp, depends=anything)


def stacked_lists(xs):
    """np.array(xs) of a list of lists of one length, as loops."""
    y = np.empty((len(xs), len(xs[0]) if len(xs) > 0 else 0))
    for k in range(len(xs)):
        for j in range(len(xs[k])):
            y[k, j] = xs[k][j]
    return y


native_nested = define("native_nested", evaluate=stacked_lists, infer=_infer_stack,
                       syntax=lambda xs: call_syntax("stacked_lists", xs), helper=stacked_lists)


def array_of(xs):
    """np.array(xs), where Numba does not see how the list was made, of which it makes wrong guesses."""
    return np.array(xs)


native_array = define("native_array", evaluate=array_of, infer=_infer_stack,
                      syntax=lambda xs: call_syntax("array_of", xs), helper=array_of)
native_stack = define(
    "native_stack",  # the same, where Numba knows no np.array of it
    evaluate=stacked,
    infer=_infer_stack,
    syntax=lambda xs: call_syntax("stacked", xs),
    helper=stacked,
)


def _infer_unstack(a: Value, *, depth: int) -> Type:
    match a.type:
        case Array(dtype, dims):
            if len(dims) < depth:
                raise TypeMismatchError("a list of the items of a number", current().line,
                                        "pass an array")
            inner = array_type(dtype, dims[depth:])
            for _ in range(depth):
                inner = List(inner)
            return inner
        case Unknown(_, dtype) if depth == 1:
            return List(Unknown(dtype=dtype))
    raise TypeMismatchError(f"a list of {a.type}", current().line, "pass an array")


def _unstack_syntax(a: ast.expr, *, depth: int) -> ast.expr:
    if depth == 1:
        return call_syntax("list", a)
    row = ast.Name("row", ast.Load())
    return ast.ListComp(call_syntax("list", row),
                        [ast.comprehension(ast.Name("row", ast.Store()), a, [], 0)])


list_unstack = define(
    "list_unstack",
    evaluate=lambda a, *, depth: list(a) if depth == 1 else [list(row) for row in a],
    infer=_infer_unstack,
    syntax=_unstack_syntax,
    vjp=lambda bar, y, a, *, depth: (shaped_like(list_stack(bar), a),),
    linear=(0,),
    views=(0,),
    moves=(0,), contiguous="operands",
)


def rows_of(a):
    """list(a) of rows that lie in one piece, as far as Numba sees."""
    return [a[k] for k in range(len(a))]


def rows_of_each(a):
    """[list(row) for row in a], as rows_of does it."""
    return [[a[k, j] for j in range(a.shape[1])] for k in range(len(a))]


native_unstack = define("native_unstack", evaluate=rows_of,
                        infer=lambda a: _infer_unstack(a, depth=1),
                        syntax=lambda a: call_syntax("rows_of", a), helper=rows_of, views=(0,))
native_unstack_each = define(
    "native_unstack_each", evaluate=rows_of_each, infer=lambda a: _infer_unstack(a, depth=2),
    syntax=lambda a: call_syntax("rows_of_each", a), helper=rows_of_each, views=(0,))


def joined_end_to_end(xs):
    """np.concatenate(xs) of a list of arrays of one or more axes, as loops."""
    count = 0
    for x in xs:
        count += x.shape[0]
    first = xs[0]
    y = np.empty((count,) + first.shape[1:], first.dtype)
    start = 0
    for x in xs:
        y[start:start + x.shape[0]] = x
        start += x.shape[0]
    return y


def cut_like(y_bar, xs):
    """The parts of an array that are as long as the items of `xs`."""
    parts = []
    start = 0
    for x in xs:
        parts.append(y_bar[start:start + x.shape[0]])
        start += x.shape[0]
    return parts


def _infer_concatenated(xs: Value) -> Type:
    match xs.type.item:
        case Array(dtype, dims):
            return Array(dtype, (fresh_extent(), *_fresh_dims(dims[1:])))
        case Unknown():
            return Unknown()
    raise TypeMismatchError(f"np.concatenate of a {xs.type}", current().line,
                            "put arrays into the list, or use np.array")


list_concatenate = define(
    "list_concatenate",
    evaluate=lambda xs: np.concatenate(xs),
    infer=_infer_concatenated,
    syntax=lambda xs: numpy_call("concatenate", xs),
    vjp=lambda bar, y, xs: (list_cut(bar, xs),),
    linear=(0,),
    moves=(0,),
)
native_concatenate = define(
    "native_concatenate",
    evaluate=joined_end_to_end,
    infer=_infer_concatenated,
    syntax=lambda xs: call_syntax("joined_end_to_end", xs),
    helper=joined_end_to_end,
)
list_cut = define(
    "list_cut",  # (y_bar, xs): the transpose of concatenate
    evaluate=cut_like,
    infer=lambda bar, xs: List(xs.type.item),
    syntax=lambda bar, xs: call_syntax("cut_like", bar, xs),
    helper=cut_like,
    vjp=lambda bar, y, y_bar, xs: (shaped_like(list_concatenate(bar), y_bar), None),
    linear=(0,),
    views=(0,),
    moves=(0,), contiguous="operands",
)
