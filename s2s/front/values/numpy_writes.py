"""NumPy functions that write into an argument: `out=`, np.copyto, np.put, x.sort(), ufunc.at.

They are implemented in Python (below, by functions with the same signatures), and inlined on the
caller's arrays like a user's function; so views, aliases and derivatives need nothing of their own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import gast
import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Array, Scalar, Unknown
from ...ops.arrays.index import additem, setitem
from ...ops.arrays.index_pattern import parse_index
from ...ops.core.record import dtype_of, rank, same_shape
from ...ops.core.shape import of_length
from ..domain.frame import Frame
from ..domain.heap import Cell

Call = Callable  # (function, *arguments, **keywords) -> binding: a call of the user's program

# ----------------------------------------------------------------------------------- said in Python


def copy_where(dst, src, where):
    dst[...] = np.where(where, src, dst)


def fill_diagonal(a, val):
    k = np.arange(min(a.shape))
    a[k, k] = val


def fill_diagonal_in_turn(a, val):
    k = np.arange(min(a.shape))
    a[k, k] = val[k % len(val)]


def put(a, ind, v):
    a.flat[ind] = v


def put_in_turn(a, ind, v):
    a.flat[ind] = v[np.arange(len(ind)) % len(v)]


def place(arr, mask, vals):
    arr[mask] = vals


def place_in_turn(arr, mask, vals):
    arr[mask] = vals[np.arange(np.count_nonzero(mask)) % len(vals)]


def at_each(ufunc, a, indices, b):
    b = np.broadcast_to(b, a[indices].shape)
    for k in range(len(indices)):
        a[indices[k]] = ufunc(a[indices[k]], b[k])


def at_each_the_same(ufunc, a, indices, b):
    for k in range(len(indices)):
        a[indices[k]] = ufunc(a[indices[k]], b)


def at_each_alone(ufunc, a, indices):
    for k in range(len(indices)):
        a[indices[k]] = ufunc(a[indices[k]])


# --------------------------------------------------------------------------------------------- out=


def out_of(function, args: list, keywords: dict) -> tuple[list, dict, object]:
    """The arguments of a NumPy call without its output array, and that array or None."""
    if isinstance(function, np.ufunc):
        args, out = args[:function.nin], args[function.nin:]
        keywords = dict(keywords)
        out = out or keywords.pop("out", None)
        if isinstance(out, (tuple, list)) and len(out) == 1:
            out = out[0]
        return args, keywords, out
    place = _place_of_out(function) if len(args) > 1 or "out" in keywords else None
    if place is not None and len(args) > place:
        return args[:place], keywords, args[place]
    return args, {
        k: v
        for k, v in keywords.items() if k != "out"
    }, keywords.get("out") if place is not None else None


def _place_of_out(function) -> int | None:
    """The position of the output array among the parameters of a NumPy function; past the end if it
    is keyword-only.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if "out" not in parameters:
        return None
    return (sys.maxsize if parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY else
            list(parameters).index("out"))


def write_out(frame: Frame, call: Call, function, args: list, keywords: dict, out, node: gast.AST):
    """`function(*args, out=out, **keywords)`."""
    if not isinstance(out, Cell):
        what = ("several arrays" if isinstance(out, (tuple, list))
                else "something that is not an array")
        raise frame.refuse(f"out= with {what}", node, "assign the result instead")
    where = keywords.pop("where", True) if isinstance(function, np.ufunc) else True
    if where is not True:
        return _write_where(frame, call, function, args, keywords, out, where, node)
    new = frame.value(call(function, *args, **keywords))
    if not isinstance(function, np.ufunc) and function is not np.clip:
        new = _of_its_shape(function, new, frame.heap.read(out))
    write_whole(frame, out, new)
    return out


def _of_its_shape(function, new: Value, old: Value) -> Value:
    """The result of `function`, which is no ufunc, checked to have the shape of the output array.

    A ufunc broadcasts its result there as an assignment does; reductions and concatenations do not.
    And NumPy accumulates in the dtype of that array.
    """
    name = f"np.{function.__name__} with out="
    if isinstance(new.type, Unknown) or isinstance(old.type, Unknown):
        return new
    if rank(new) != rank(old):
        raise TypeMismatchError(
            f"{name} of {rank(old)} axes, where the result has {rank(new)}",
            current().line,
            "give an array of the shape of the result, or write y[...] = the result")
    if (dtype_of(new.type) != dtype_of(old.type)
            and "dtype" in inspect.signature(function).parameters):
        raise TypeMismatchError(
            f"{name} of {dtype_of(old.type)}, where the result is {dtype_of(new.type)}",
            current().line, "give an array of that dtype, or write y[...] = the result")
    for axis in range(rank(new)):
        new = of_length(new, old, axis, axis, name)
    return new


def _write_where(frame: Frame, call: Call, function, args: list, keywords: dict, out: Cell, where,
                 node: gast.AST):
    """Masked evaluation: out[where] = function(a[where], ...)."""
    if keywords:
        raise frame.refuse("where= along with other keywords", node, "write it in two steps")
    like = frame.heap.read(out)

    def fitted(x):
        """`x` broadcast to the shape of `out`; numbers unchanged."""
        content = frame.value(x)
        if isinstance(content.type, Scalar) or same_shape(content.type, like.type):
            return x
        return call(np.broadcast_to, x, call(np.shape, out))

    if not isinstance(where, Cell):
        raise frame.refuse("where= with a single truth value", node, "write an if")
    where = fitted(where)
    mask = parse_index(frame.value(where))
    parts = [
        call(_part, x, where) if isinstance(frame.value(x).type, Array) else x
        for x in map(fitted, args)
    ]
    new = frame.value(call(function, *parts))
    _same_kind(like, new)
    write(frame, out, setitem(frame.heap.read(out), new, *mask[1], pattern=mask[0]))
    return out


def _part(x, where):
    return x[where]


def write_whole(frame: Frame, cell: Cell, new: Value) -> None:
    """Overwrite every element of `cell` with NumPy's same-kind casting."""
    old = frame.heap.read(cell)
    if new.type != old.type:
        _same_kind(old, new)
        new = setitem(old, new, pattern=(...,))
    write(frame, cell, new)


def write(frame: Frame, cell: Cell, content: Value) -> None:
    """A write by a call, which may stand anywhere in its statement."""
    frame.live |= frame.pending  # the rest of the statement is still to be evaluated
    frame.write(cell, content)


def _same_kind(old: Value, new: Value) -> None:
    """Same-kind casting: NumPy's functions refuse to write floats into integers; an assignment does
    not.
    """
    a, b = dtype_of(old.type), dtype_of(new.type)
    if (isinstance(new.type, Scalar) and new.type.weak and a is not None
            and np.can_cast(b, np.result_type(a, 1.0))):
        b = a if b in ("bool", "int64") or np.dtype(a).kind in "fc" else b
    if None not in (a, b) and not np.can_cast(b, a, "same_kind"):
        raise TypeMismatchError(f"{b} values cannot be written into an array of {a} in place",
                                current().line,
                                "make the array of the wider dtype first, with .astype")


# ---------------------------------------------------------------------------- functions and methods


def _array(frame: Frame, binding, node: gast.AST, what: str) -> Value:
    if not isinstance(binding, Cell):
        raise frame.refuse(f"{what} of something that is not an array", node, "pass an array")
    return frame.heap.read(binding)


def _copyto(frame, call, node, dst, src, casting="same_kind", where=True):
    old = _array(frame, dst, node, "np.copyto")
    if casting != "same_kind":
        raise frame.refuse("np.copyto with casting=", node, "write dst[...] = src, which casts")
    _same_kind(old, frame.value(src))
    if where is True:
        write(frame, dst, setitem(old, frame.value(src), pattern=(...,)))
    else:
        call(copy_where, dst, src, where)


def _putmask(frame, call, node, a, mask, values):
    content, v = _array(frame, a, node, "np.putmask"), frame.value(values)
    if not isinstance(v.type, Scalar) and not same_shape(v.type, content.type):
        raise frame.refuse("np.putmask with values of another shape", node,
                           "write a[mask] = ... with as many values")
    call(copy_where, a, values, mask)


def _place(frame, call, node, arr, mask, vals):
    _array(frame, arr, node, "np.place")
    call(place if isinstance(frame.value(vals).type, Scalar) else place_in_turn, arr, mask,
         _as_array(frame, call, vals))


def _put(frame, call, node, a, ind, v, mode="raise"):
    _array(frame, a, node, "np.put")
    if mode != "raise":
        raise frame.refuse("np.put with mode=", node,
                           "put the index into range first, with % or np.clip")
    ind, v = _as_array(frame, call, ind), _as_array(frame, call, v)
    places, values = frame.value(ind).type, frame.value(v).type
    fits = isinstance(values, Scalar) or same_shape(places, values) or isinstance(places, Scalar)
    call(put if fits else put_in_turn, a, ind, v)


def _as_array(frame, call, x):
    return call(np.array, x) if frame.members(x) is not None else x


def _fill_diagonal(frame, call, node, a, val, wrap=False):
    content = _array(frame, a, node, "np.fill_diagonal")
    if wrap is not False or getattr(content.type, "rank", 2) != 2:
        raise frame.refuse("np.fill_diagonal of more than a matrix, or with wrap", node,
                           "write a[k, k] = val")
    val = _as_array(frame, call, val)
    call(fill_diagonal if isinstance(frame.value(val).type, Scalar) else fill_diagonal_in_turn, a,
         val)


def _put_along_axis(frame, call, node, arr, indices, values, axis=-1):
    content, places = _array(frame, arr, node, "np.put_along_axis"), frame.value(indices)
    rank = getattr(content.type, "rank", None)
    if rank is None or axis is None:
        raise frame.refuse("np.put_along_axis along no axis known", node, "pass an axis")
    axis = frame.static(axis, "axis") % rank
    key = []
    for k in range(rank):
        if k == axis:
            key.append(places)
        else:
            count = call(np.arange, call(_length, arr, k))
            key.append(
                frame.value(call(np.reshape, count,
                                 tuple(-1 if j == k else 1 for j in range(rank)))))
    pattern, operands = parse_index(tuple(key))
    write(frame, arr, setitem(content, frame.value(values), *operands, pattern=pattern))


def _length(x, axis):
    return x.shape[axis]


def _at(ufunc: np.ufunc) -> Callable:
    """ufunc.at: unbuffered in-place operation, which applies repeated indices repeatedly."""

    def at(frame, call, node, a, indices, b=None):
        content = _array(frame, a, node, f"np.{ufunc.__name__}.at")
        parts = indices if isinstance(indices, tuple) else (indices,)
        pattern, operands = parse_index(
            tuple(
                frame.value(_as_array(frame, call, p)) if not isinstance(p, slice) else p
                for p in parts))
        if b is not None:
            _same_kind(content, frame.value(b))
        if ufunc in (np.add, np.subtract):
            v = frame.value(b if ufunc is np.add else call(np.negative, b))
            write(frame, a, additem(content, v, *operands, pattern=pattern))
            return
        kinds = [getattr(o.type, "rank", 0) for o in operands]
        if pattern != ("i",) or kinds != [1] or operands[0].type.dtype == "bool":
            raise frame.refuse(
                f"np.{ufunc.__name__}.at with an index that is not one array of integers", node,
                "write the loop")
        indices = _as_array(frame, call, indices)
        if b is None:
            call(at_each_alone, ufunc, a, indices)
        elif isinstance(frame.value(b).type, Scalar):
            call(at_each_the_same, ufunc, a, indices, b)
        else:
            call(at_each, ufunc, a, indices, _as_array(frame, call, b))

    return at


WRITERS: dict[object, Callable] = {
    np.copyto: _copyto,
    np.putmask: _putmask,
    np.place: _place,
    np.put: _put,
    np.fill_diagonal: _fill_diagonal,
    np.put_along_axis: _put_along_axis,
}


def writer(function) -> Callable | None:
    """The implementation of a NumPy function that returns nothing: (frame, call, node, *args,
    **keywords) -> None.
    """
    if (getattr(function, "__name__", "") == "at"
            and isinstance(getattr(function, "__self__", None), np.ufunc)):
        return _at(function.__self__)
    try:
        return WRITERS.get(function)
    except TypeError:
        return None


def _fill(frame, call, node, x, v):
    write(frame, x, setitem(frame.heap.read(x), frame.value(v), pattern=(...,)))


def _sort(frame, call, node, x, axis=-1, **keywords):
    write(frame, x, frame.value(call(np.sort, x, axis, **keywords)))


METHOD_WRITERS: dict[str, Callable] = {"fill": _fill, "sort": _sort, "put": _put}
