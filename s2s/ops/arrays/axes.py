"""Ops that insert, remove, permute or reverse axes.

All are linear; the transpose of each is the inverse rearrangement.
"""

from __future__ import annotations

import ast

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, emit
from ...ir.graph import Value
from ...ir.types import Extent, Scalar, Type
from ..core.axis_numbers import normal_axes, normal_axis, static_axis
from ..core.batch_rules import over_one_axis, shifted
from ..core.record import define, dims_of, numpy_function, rank, runs_backwards, static, value
from ..core.shape import is_array, literal, members, numpy_call
from .reshape import only, rearranged, reshape_like, unknown_like

# ----------------------------------------------------------------------------------------- new axes


def _subscript(x: ast.expr, axes: tuple[int, ...], count: int) -> ast.expr:
    """The expression x[:, None], with a new axis at each of `axes`."""
    entries = [ast.Constant(None) if k in axes else ast.Slice() for k in range(count)]
    return ast.Subscript(x, only(entries), ast.Load())


def _infer_expand(x: Value, *, axis, count: int | None = None) -> Type:
    if rank(x) is None:
        return unknown_like(x)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes, dims = normal_axes(axes, rank(x) + len(axes)), list(dims_of(x.type))
    for k in sorted(axes):
        dims.insert(k, 1)
    return rearranged(x, tuple(dims))


def _fold_expand(x: Value, *, axis, count: int | None = None):
    if axis == ():
        return x
    if isinstance(axis, tuple) and len(axis) == 1:
        return expand_dims(x, axis[0])
    if is_array(x) and count is None:
        extra = len(axis) if isinstance(axis, tuple) else 1
        return emit(expand_dims_record, x, axis=axis, count=rank(x) + extra)
    if x.op is not None and x.op.name == "squeeze" and x.op.attrs["axis"] == axis and is_array(x):
        return x.op.inputs[0]
    if runs_backwards() and x.op is not None and x.op.name == "negative":
        return -expand_dims(x.op.inputs[0], axis)
    return None


def _syntax_expand(x: ast.expr, *, axis, count: int | None = None) -> ast.expr:
    if count is not None:
        return _subscript(x, normal_axes(axis, count), count)
    return numpy_call("expand_dims", x, literal(axis))


def _batch_expand(flags, x: Value, *, axis, count: int | None = None):
    axes = axis if isinstance(axis, tuple) else (axis,)
    return expand_dims(x, tuple(k + 1 for k in normal_axes(axes, rank(x) - 1 + len(axes))))


expand_dims_record = define(
    "expand_dims",  # `count` is the rank of the result, where it is known
    evaluate=lambda x, *, axis, count=None: np.expand_dims(x, axis),
    infer=_infer_expand,
    fold=_fold_expand,
    vjp=lambda bar, y, x, *, axis, count=None: (squeeze_record(bar, axis=axis),),
    linear=(0,),
    syntax=_syntax_expand,
    cheap=True,
    views=(0,),
    moves=(0,),
    batch=_batch_expand,
)


def expand_dims(x: Value, axis) -> Value:
    """np.expand_dims."""
    return expand_dims_record(x, axis=static_axis(axis))


numpy_function(np.expand_dims, view="reshape")(expand_dims)


def _squeezed(x: Value, axis) -> tuple[int, ...]:
    """The axes that are removed: of length 1, statically or checked at run time."""
    dims = dims_of(x.type)
    if axis is None:
        if any(isinstance(d, Extent) and d.may_be_one for d in dims):
            raise UnsupportedError(
                "squeeze of an axis that may be of length 1", current().line, "name the axis"
            )
        return tuple(k for k, d in enumerate(dims) if d == 1)
    axes = normal_axes(axis, len(dims))
    for k in axes:
        if isinstance(dims[k], int) and dims[k] != 1:
            raise TypeMismatchError(
                f"squeeze of an axis of length {dims[k]}",
                current().line,
                "squeeze axes of length 1",
            )
    return axes


def _infer_squeeze(x: Value, *, axis, count: int | None = None) -> Type:
    if rank(x) is None:
        return unknown_like(x)
    gone = _squeezed(x, axis)
    return rearranged(x, tuple(d for k, d in enumerate(dims_of(x.type)) if k not in gone))


def _fold_squeeze(x: Value, *, axis, count: int | None = None):
    if rank(x) == 0 or axis == ():
        return x
    if rank(x) is None:
        return None
    gone = _squeezed(x, axis)
    if runs_backwards() and x.op is not None and x.op.name == "negative":
        return -squeeze(x.op.inputs[0], axis)
    if (
        x.op is not None
        and x.op.name == "sum"
        and x.op.attrs["keepdims"]
        and x.op.attrs["axis"] is not None
    ):
        if gone == tuple(sorted(normal_axes(x.op.attrs["axis"], rank(x)))):
            return x.op.record(x.op.inputs[0], axis=x.op.attrs["axis"], keepdims=False)
    if (
        x.op is not None
        and x.op.name == "expand_dims"
        and gone == normal_axes(x.op.attrs["axis"], rank(x))
    ):
        return x.op.inputs[0]
    if not gone:
        return x
    if count is None and all(dims_of(x.type)[k] == 1 for k in gone):
        return emit(squeeze_record, x, axis=gone, count=rank(x))
    return None


def _vjp_squeeze(bar, y, x, *, axis, count=None):
    return (reshape_like(bar, x) if axis is None else expand_dims(bar, axis),)


def _syntax_squeeze(x: ast.expr, *, axis, count: int | None = None) -> ast.expr:
    if count is None:
        return numpy_call("squeeze", x, axis=literal(axis))
    entries = [ast.Constant(0) if k in axis else ast.Slice() for k in range(max(axis) + 1)]
    return ast.Subscript(x, only(entries), ast.Load())


def _batch_squeeze(flags, x: Value, *, axis, count: int | None = None):
    dims = dims_of(x.type)[1:]
    if axis is None and any(not isinstance(d, int) and d.may_be_one for d in dims):
        return None
    axes = (tuple(k for k, d in enumerate(dims) if d == 1) if axis is None
            else normal_axes(axis, len(dims)))
    return squeeze_record(x, axis=tuple(k + 1 for k in axes))


squeeze_record = define(
    "squeeze",  # `count` is the rank of x if everything is static: then it is x[:, 0]
    evaluate=lambda x, *, axis, count=None: np.squeeze(x, axis),
    infer=_infer_squeeze,
    fold=_fold_squeeze,
    vjp=_vjp_squeeze,
    linear=(0,),
    syntax=_syntax_squeeze,
    cheap=True,
    views=(0,),
    moves=(0,),
    batch=_batch_squeeze,
)


@numpy_function(np.squeeze, method="squeeze", view="reshape", always_array=True)
def squeeze(x: Value, axis=None) -> Value:
    """np.squeeze."""
    return squeeze_record(value(x), axis=static_axis(axis))


def _at_least(name: str, function, least: int, new_axes):
    """Define an op that adds axes up to rank `least`; `new_axes` gives them by rank."""

    def fold(x: Value):
        if rank(x) is None:
            return None
        return x if rank(x) >= least else expand_dims(x, new_axes[rank(x)])

    record = define(
        name,
        evaluate=function,
        infer=unknown_like,
        fold=fold,
        vjp=lambda bar, y, x: (reshape_like(bar, x),),
        linear=(0,),
        syntax=lambda x: numpy_call(name, x),
        cheap=True,
        views=(0,),
        moves=(0,),
    )
    return numpy_function(function, view="reshape")(record)


atleast_1d = _at_least("atleast_1d", np.atleast_1d, 1, {0: 0})
atleast_2d = _at_least("atleast_2d", np.atleast_2d, 2, {0: (0, 1), 1: 0})
atleast_3d = _at_least("atleast_3d", np.atleast_3d, 3, {0: (0, 1, 2), 1: (0, 2), 2: 2})

# -------------------------------------------------------------------------------- order of the axes


def _infer_transpose(x: Value, *, axes) -> Type:
    if rank(x) is None:
        return unknown_like(x)
    dims = dims_of(x.type)
    if axes is None:
        return rearranged(x, dims[::-1])
    if len(axes) != len(dims):
        raise TypeMismatchError(
            f"a transpose of {len(axes)} axes, of an array of {len(dims)}",
            current().line,
            "name each axis once",
        )
    return rearranged(x, tuple(dims[k] for k in normal_axes(axes, len(dims))))


def _fold_transpose(x: Value, *, axes):
    count = rank(x)
    if count is None:
        return (
            x.op.inputs[0]
            if axes is None
            and x.op is not None
            and x.op.name == "transpose"
            and x.op.attrs["axes"] is None
            else None
        )
    order = tuple(range(count))[::-1] if axes is None else normal_axes(axes, count)
    if len(order) != count:
        return None
    if x.op is not None and x.op.name == "transpose":
        inner = x.op.attrs["axes"]
        inner = tuple(range(count))[::-1] if inner is None else normal_axes(inner, count)
        return transpose_record(x.op.inputs[0], axes=tuple(inner[k] for k in order))
    if order == tuple(range(count)):
        return x
    if order == tuple(range(count))[::-1] and axes is not None:
        return transpose_record(x, axes=None)
    return None


def _batch_transpose(flags, x: Value, *, axes):
    own = rank(x) - 1
    order = range(own)[::-1] if axes is None else normal_axes(axes, own)
    return transpose_record(x, axes=(0, *(k + 1 for k in order)))


transpose_record = define(
    "transpose",  # axes None: reverse all
    evaluate=lambda x, *, axes: np.transpose(x, axes),
    infer=_infer_transpose,
    fold=_fold_transpose,
    vjp=lambda bar, y, x, *, axes: (
        transpose_record(bar, axes=None if axes is None else _inverse(axes)),
    ),
    linear=(0,),
    syntax=lambda x, *, axes: (
        ast.Attribute(x, "T", ast.Load())
        if axes is None
        else numpy_call("transpose", x, literal(axes))
    ),
    cheap=True,
    views=(0,),
    moves=(0,),
    batch=_batch_transpose,
    total=True,
)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    axes = normal_axes(axes, len(axes))
    return tuple(axes.index(k) for k in range(len(axes)))


@numpy_function(np.transpose, np.permute_dims, view="transpose")
def transpose(x: Value, axes=None) -> Value:
    """np.transpose."""
    return transpose_record(value(x), axes=static_axis(axes))


@numpy_function(method="transpose", view="transpose")
def transpose_method(x: Value, *axes) -> Value:
    """x.transpose(), x.transpose(1, 0), x.transpose((1, 0))."""
    axes = static(axes[0]) if len(axes) == 1 else tuple(static(a) for a in axes) or None
    return transpose_record(x, axes=axes)


@numpy_function(attribute="T", view="involution")
def transposed(x: Value) -> Value:
    """x.T."""
    return transpose_record(x, axes=None)


@numpy_function(np.matrix_transpose, attribute="mT", view="involution")
def matrix_transpose(x: Value) -> Value:
    """np.matrix_transpose: swap the last two axes."""
    return swapaxes(x, -1, -2)


def _two_axes(name: str, function, order, undo):
    """Define an op (x; a, b) that permutes axes; for a known rank it is a transpose."""
    record = define(
        name,
        evaluate=lambda x, *, a, b: function(x, a, b),
        infer=lambda x, *, a, b: unknown_like(x),
        fold=lambda x, *, a, b: (
            None if rank(x) is None else transpose_record(x, axes=order(rank(x), a, b))
        ),
        vjp=lambda bar, y, x, *, a, b: (record(bar, **undo(a, b)),),
        linear=(0,),
        syntax=lambda x, *, a, b: numpy_call(name, x, literal(a), literal(b)),
        cheap=True,
        views=(0,),
        moves=(0,),
    )
    return record


def _swapped(count: int, a: int, b: int) -> tuple[int, ...]:
    order = list(range(count))
    a, b = normal_axis(a, count), normal_axis(b, count)
    order[a], order[b] = b, a
    return tuple(order)


def _moved(count: int, a, b) -> tuple[int, ...]:
    sources, targets = normal_axes(a, count), normal_axes(b, count)
    order = [k for k in range(count) if k not in sources]
    for target, source in sorted(zip(targets, sources)):
        order.insert(target, source)
    return tuple(order)


swapaxes_record = _two_axes("swapaxes", np.swapaxes, _swapped, lambda a, b: {"a": a, "b": b})
moveaxis_record = _two_axes("moveaxis", np.moveaxis, _moved, lambda a, b: {"a": b, "b": a})


@numpy_function(np.swapaxes, method="swapaxes", view="involution")
def swapaxes(a: Value, axis1, axis2) -> Value:
    """np.swapaxes."""
    return swapaxes_record(value(a), a=static_axis(axis1), b=static_axis(axis2))


@numpy_function(np.moveaxis, view="transpose")
def moveaxis(x: Value, source, destination) -> Value:
    """np.moveaxis."""
    return moveaxis_record(value(x), a=static_axis(source), b=static_axis(destination))


# ----------------------------------------------------------------------------------- turning around


def _same_type(x: Value, *rest: Value, axis) -> Type:
    if rank(x) is not None and axis is not None:
        normal_axes(axis, rank(x))
    return x.type


def _fold_flip(x: Value, *, axis):
    if rank(x) == 0:
        return x
    if x.op is not None and x.op.name == "flip" and x.op.attrs["axis"] == axis:
        return x.op.inputs[0]
    return None


flip_record = define(
    "flip",
    evaluate=lambda x, *, axis: np.flip(x, axis),
    infer=_same_type,
    fold=_fold_flip,
    vjp=lambda bar, y, x, *, axis: (flip_record(bar, axis=axis),),
    linear=(0,),
    syntax=lambda x, *, axis: numpy_call("flip", x, axis=literal(axis)),
    cheap=True,
    views=(0,),
    moves=(0,),
    batch=lambda flags, x, *, axis: flip_record(x, axis=shifted(axis, rank(x) - 1)),
)


@numpy_function(np.flip, view="involution")
def flip(x: Value, axis=None) -> Value:
    """np.flip."""
    return flip_record(value(x), axis=static_axis(axis))


@numpy_function(np.fliplr, view="involution")
def fliplr(x: Value) -> Value:
    """np.fliplr."""
    return flip(x, 1)


@numpy_function(np.flipud, view="involution")
def flipud(x: Value) -> Value:
    """np.flipud."""
    return flip(x, 0)


roll_record = define(
    "roll",  # (x, shift; axis)
    evaluate=lambda x, shift, *, axis: np.roll(x, shift, axis),
    infer=_same_type,
    fold=lambda x, shift, *, axis: x if shift.constant == 0 or rank(x) == 0 else None,
    vjp=lambda bar, y, x, shift, *, axis: (roll_record(bar, -shift, axis=axis), None),
    linear=(0,),
    syntax=lambda x, shift, *, axis: numpy_call("roll", x, shift, axis=literal(axis)),
    cheap=True,
    moves=(0,),
    batch=over_one_axis,
)


@numpy_function(np.roll)
def roll(x: Value, shift, axis=None) -> Value:
    """np.roll: for several axes, one after another."""
    axis, shifts = static_axis(axis), members(shift)
    shifts = [value(shift)] if shifts is None else shifts
    axes = axis if isinstance(axis, tuple) else (axis,)
    if (any(not isinstance(s.type, Scalar) for s in shifts)
        or 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes)):
        raise UnsupportedError("np.roll by these shifts", current().line,
                               "give an integer, or one for each of the axes")
    x, count = value(x), max(len(shifts), len(axes))
    for s, a in zip(shifts * (count if len(shifts) == 1 else 1),
                    axes * (count if len(axes) == 1 else 1)):
        x = roll_record(x, s, axis=a)
    return x
