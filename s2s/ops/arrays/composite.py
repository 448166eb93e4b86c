"""Array builders composed of other ops: np.kron, np.cross, np.rot90, np.dstack, np.meshgrid,
np.vander, np.tri and triangle indices, np.pad.
"""

from __future__ import annotations

import operator

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ..core.copy import copy
from ..core.define_elementwise import is_none
from ..core.elementwise import clip, remainder, where
from ..core.record import FUNCTIONS, dims_of, numpy_function, rank, static, value
from ..core.shape import length, members
from .axes import expand_dims, flip, moveaxis, swapaxes
from .concatenate import along, arrays, concatenate_record
from .create import arange, ones
from .index import take
from .products import check_inner, product_with_number
from .reduce import as_array
from .repeat import broadcast_to
from .reshape import reshape
from .search import nonzero
from .selection import taken, tril, triu


@numpy_function(np.kron)
def kron(a, b) -> Value:
    """np.kron: each axis of the result is the product of an axis of `a` (outer) and one of `b`
    (inner).
    """
    a, b = as_array(a), as_array(b)
    if None in (rank(a), rank(b)):
        raise UnsupportedError("np.kron of an array of unknown rank", current().line,
                               "call the function once, or annotate the parameter")
    axes = max(rank(a), rank(b))
    if 0 in (rank(a), rank(b)):
        return product_with_number(a, b)
    a, b = (expand_dims(x, tuple(range(axes - rank(x)))) if rank(x) < axes else x for x in (a, b))
    sizes = [length(a, axis=k) * length(b, axis=k) for k in range(axes)]
    return reshape(expand_dims(a, tuple(range(1, 2 * axes, 2)))
                   * expand_dims(b, tuple(range(0, 2 * axes, 2))), *sizes)


@numpy_function(np.rot90, view="maybe")
def rot90(m, k=1, axes=(0, 1)) -> Value:
    """np.rot90."""
    m, k, (a, b) = as_array(m), operator.index(static(k)) % 4, static(axes)
    match k:
        case 0:
            return m
        case 1:
            return swapaxes(flip(m, b), a, b)
        case 2:
            return flip(flip(m, a), b)
    return flip(swapaxes(m, a, b), b)


@numpy_function(np.dstack)
def dstack(tup) -> Value:
    """np.dstack."""
    members = [FUNCTIONS[np.atleast_3d](x) for x in arrays(tup)]
    return concatenate_record(*members, axis=2)


@numpy_function(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy") -> Value:  # noqa: A002  NumPy's own names
    """np.meshgrid of vectors, or of numbers, taken as vectors of one element."""
    xs, order = [FUNCTIONS[np.atleast_1d](as_array(x)) for x in xi], list(range(len(xi)))
    if static(indexing) == "xy" and len(xs) > 1:
        order[:2] = 1, 0
    lengths: list = [None] * len(xs)
    grids = []
    for x, axis in zip(xs, order):
        lengths[axis] = length(x, axis=0)
        grids.append(expand_dims(x, tuple(k for k in range(len(xs)) if k != axis)) if len(xs) > 1
                     else x)
    if not static(sparse):
        grids = [own(broadcast_to(grid, tuple(lengths))) for grid in grids]
    return value(tuple(grids))


def own(x: Value) -> Value:
    """`x` in memory of its own."""
    return copy(x)


@numpy_function(np.tri)
def tri(N, M=None, k=0, dtype=float) -> Value:  # noqa: N803  NumPy's own names
    """np.tri."""
    return tril(ones((N, N if is_none(M) else M), dtype), k)


@numpy_function(np.tril_indices)
def tril_indices(n, k=0, m=None) -> Value:
    """np.tril_indices."""
    return nonzero(tri(n, n if m is None else m, k))


@numpy_function(np.triu_indices)
def triu_indices(n, k=0, m=None) -> Value:
    """np.triu_indices."""
    return nonzero(triu(ones((n, n if m is None else m)), k))


@numpy_function(np.diag_indices)
def diag_indices(n, ndim=2) -> Value:
    """np.diag_indices."""
    return value((arange(n),) * static(ndim))


def _cross(a: Value, b: Value) -> Value:
    a, b = ([take(x, along(-1, k)) for k in range(3)] for x in map(_in_space, (a, b)))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return (FUNCTIONS[np.stack](tuple(parts), axis=-1) if rank(parts[0])
            else FUNCTIONS[np.array](tuple(parts)))


def _in_space(x: Value) -> Value:
    """`x` with a last axis of length 3: if that is known only at run time, a reshape raises as
    NumPy does.
    """
    *others, last = dims_of(x.type)
    check_inner(last, 3, "np.cross")
    return x if last == 3 else reshape(x, *(length(x, axis=k) for k in range(len(others))), 3)


@numpy_function(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None) -> Value:
    """np.cross of vectors of length 3."""
    axes = [static(k if is_none(axis) else axis, "an axis") for k in (axisa, axisb, axisc)]
    a, b = (x if k == -1 else moveaxis(x, k, -1) for x, k in zip((as_array(a), as_array(b)), axes))
    found = _cross(a, b)
    return found if axes[2] == -1 or rank(found) == 1 else moveaxis(found, -1, axes[2])


@numpy_function(np.pad)
def pad(array, pad_width, mode="constant", constant_values=0) -> Value:
    """np.pad with mode constant, edge, wrap, reflect or symmetric."""
    x, mode = as_array(array), static(mode)
    widths = np.broadcast_to(static(pad_width, "pad_width"), (rank(x), 2))
    constants = _constants(constant_values, rank(x)) if mode == "constant" else [()] * rank(x)
    for axis, ((before, after), constant) in enumerate(zip(widths.tolist(), constants)):
        if before or after:
            n = length(x, axis=axis)
            x = _padded(x, n, axis, before, after, mode, constant)
    return x


def _constants(given, axes: int) -> list[tuple]:
    """The padding values of each axis, before and after, from a number, a pair, or a pair per axis.
    """
    pair = members(given)
    if pair is None:
        return [(given, given)] * axes
    pairs = [members(x) for x in pair]
    if all(p is None for p in pairs) and len(pair) in (1, 2):
        return [(pair[0], pair[-1])] * axes
    if None in pairs or len(pairs) not in (1, axes) or any(len(p) not in (1, 2) for p in pairs):
        raise UnsupportedError(
            "np.pad with other constants than one, a pair, or a pair for each axis", current().line,
            "write the pairs out")
    return [(p[0], p[-1]) for p in (pairs * axes if len(pairs) == 1 else pairs)]


def _padded(x: Value, n: Value, axis: int, before: int, after: int, mode: str,
            constants: tuple) -> Value:
    if mode == "constant":
        def block(width: int, constant) -> list[Value]:
            sizes = tuple(width if k == axis else length(x, axis=k) for k in range(rank(x)))
            return ([FUNCTIONS[np.full](sizes, constant, value(np.dtype(x.type.dtype)))] if width
                    else [])

        return concatenate_record(*block(before, constants[0]), x, *block(after, constants[1]),
                                  axis=axis)
    places = arange(-before, n + after)
    match mode:
        case "edge":
            places = clip(places, 0, n - 1)
        case "wrap":
            places = remainder(places, n)
        case "reflect":
            places = remainder(places, 2 * n - 2)
            places = where(places < n, places, 2 * n - 2 - places)
        case "symmetric":
            places = remainder(places, 2 * n)
            places = where(places < n, places, 2 * n - 1 - places)
        case _:
            raise UnsupportedError(f"np.pad with mode={mode!r}", current().line,
                                   "use constant, edge, wrap, reflect or symmetric")
    return taken(x, axis, places)
