"""Search and counting: ops whose results are indices or counts, of a length that depends on the
data.

    np.nonzero, np.flatnonzero, np.argwhere, np.where(c)      where something is true
    np.unique, np.isin, np.setdiff1d, np.union1d, ...         values as sets
    np.searchsorted, np.digitize, np.bincount, np.histogram   values among others

Positions and counts have no derivative; values selected by them do, and so have the weights of
counts. Results for the same condition have the same symbolic length, so `x[np.flatnonzero(c)] *
x[c]` needs no un-broadcasting.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Array, Scalar, Static, Type, Unknown, is_inexact
from ..core import array_raise_conditions
from ..core.cast import as_dtype
from ..core.chain_rule import like_operand
from ..core.define_elementwise import is_none
from ..core.dependence_rules import anything, follows, spread_as
from ..core.elementwise import (
    clip,
    equal,
    greater_equal,
    less_equal,
    logical_and,
    logical_not,
    where,
)
from ..core.kinks import (
    ASKED,
    COMPARED,
    IN_ORDER,
    ON_EDGE,
    Kink,
    among,
    at_zero,
    kinked,
    ties_of_keys,
)
from ..core.record import (
    RECORDS,
    array_type,
    common_dtype,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    promote,
    rank,
    static,
    value,
)
from ..core.shape import length, members, named_extent, numpy_call
from .axes import transpose_record
from .concatenate import along, concatenate_record, stack_record
from .create import array, linspace
from .finite import finite
from .index import getitem, take
from .index_pattern import parse_index
from .reduce import as_array, sum_record
from .reshape import ravel, reshape_like
from .selection import diff


def known_rank(x: Value, what: str) -> int:
    """The rank of `x`, which determines the number of results."""
    count = rank(x)
    if count is None:
        raise UnsupportedError(f"{what} of a number or an array of unknown rank", current().line,
                               "call the function once, or annotate the parameter")
    if count == 0:
        raise TypeMismatchError(f"{what} of a number", current().line, "give it an array")
    return count


# --------------------------------------------------------------------------------- where it is true


def _infer_nonzero(c: Value) -> list[Type]:
    return [Array("int64", (named_extent(("mask", c)),))] * known_rank(c, "np.nonzero")


nonzero_record = define(
    "nonzero",  # one array for each axis
    evaluate=lambda c: np.nonzero(c) if np.ndim(c) > 1 else np.flatnonzero(c),
    infer=_infer_nonzero,
    syntax=lambda c: numpy_call("nonzero", c),
    partials=(None,),
    native="search", contiguous="operands",
)
flatnonzero_record = define(
    "flatnonzero",  # of a vector
    evaluate=np.flatnonzero,
    infer=lambda c: Array("int64", (named_extent(("mask", c)),)),
    syntax=lambda c: numpy_call("flatnonzero", c),
    partials=(None,),
    distinct=True,
    native="search", contiguous="operands",
)
for _each in (nonzero_record, flatnonzero_record):
    kinked(_each, Kink(ASKED, at_zero))


@numpy_function(np.nonzero, method="nonzero")
def nonzero(c: Value) -> Value:
    """np.nonzero: a tuple of one array for each axis."""
    c = value(c)
    if known_rank(c, "np.nonzero") == 1:
        return value((flatnonzero_record(c),))
    return value(nonzero_record(c))


@numpy_function(np.flatnonzero)
def flatnonzero(c: Value) -> Value:
    """np.flatnonzero."""
    return flatnonzero_record(ravel(value(c)))


@numpy_function(np.argwhere)
def argwhere(c: Value) -> Value:
    """np.argwhere: one row of indices for each true element."""
    c = value(c)
    if known_rank(c, "np.argwhere") == 1:
        return take(flatnonzero_record(c), (slice(None), None))
    return transpose_record(stack_record(*nonzero_record(c), axis=0), axes=None)


@numpy_function(np.compress)
def compress(condition: Value, x: Value, axis=None, out=None) -> Value:
    """np.compress: the rows where the condition, which may be shorter, holds."""
    x, axis = value(x), None if is_none(axis) else static(axis, "an axis")
    condition = as_array(condition)
    if rank(condition) != 1:
        raise TypeMismatchError(f"np.compress with a condition that is {condition.type}",
                                current().line, "give it a vector")
    found = flatnonzero_record(condition)
    return take(ravel(x), found) if axis is None else take(x, along(axis, found))


@numpy_function(method="compress")
def compress_method(x: Value, condition: Value, axis=None, out=None) -> Value:
    """x.compress(condition), with the array first."""
    return compress(condition, x, axis, out)


@numpy_function(np.extract)
def extract(condition: Value, x: Value) -> Value:
    """np.extract."""
    return take(ravel(value(x)), flatnonzero(condition))


# --------------------------------------------------------------------------------- values as sets
#
# Note [Equal values]
# Of equal elements `np.unique` keeps the first, and the derivative goes to that one.


def _infer_unique(x: Value, *, index: bool, inverse: bool, counts: bool) -> Type | list[Type]:
    if dtype_of(x.type) is None:
        raise UnsupportedError("np.unique of values of unknown dtype", current().line,
                               "call the function once, or annotate the parameter")
    places = Array("int64", (named_extent(("unique", x)),))
    types = [Array(x.type.dtype, places.dims), *[places] * index,
             *[Array("int64", dims_of(x.type))] * inverse, *[places] * counts]
    return types if len(types) > 1 else types[0]


def _unique_syntax(x: ast.expr, *, index: bool, inverse: bool, counts: bool) -> ast.expr:
    flags = {"return_index": index, "return_inverse": inverse, "return_counts": counts}
    return numpy_call("unique", x,
                      **{name: ast.Constant(True) for name, flag in flags.items() if flag})


def _first_places(x: Value) -> Value:
    return unique_record(x, index=True, inverse=False, counts=False)[1]


def _as_gather(y, x: Value, **flags):
    """The values as those at the first places."""
    pattern, operands = parse_index(_first_places(x))
    return getitem, (x, *operands), {"pattern": pattern}


unique_record = define(
    "unique",  # (x), a vector: its values in order, and what the flags ask for
    evaluate=lambda x, *, index, inverse, counts: np.unique(x, index, inverse, counts),
    infer=_infer_unique, syntax=_unique_syntax, differentiated_as=_as_gather,
    contiguous="operands")
kinked(unique_record,
       Kink("a tie: the first of equal elements gets the derivative",
            lambda ys, x, **flags: np.size(np.unique(x)) < np.size(x)))


@numpy_function(np.unique)
def unique(x: Value, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
           equal_nan=True, sorted=True) -> Value:
    """np.unique of all elements."""
    if not is_none(axis) or not static(equal_nan):
        raise UnsupportedError("np.unique with axis= or equal_nan=False", current().line,
                               "compare the rows in a loop")
    x = as_array(x)
    flags = {"index": static(return_index), "inverse": static(return_inverse),
             "counts": static(return_counts)}
    # one array, or several
    found = unique_record(ravel(x), **{name: bool(flag) for name, flag in flags.items()})
    if not any(flags.values()):
        return found
    found = list(found)
    if flags["inverse"]:
        found[1 + bool(flags["index"])] = reshape_like(found[1 + bool(flags["index"])], x)
    return value(tuple(found))


def _elementwise_type(x: Value, dtype: str) -> Type:
    match x.type:
        case Unknown(shape):
            return Unknown(shape, dtype)
    return array_type(dtype, dims_of(x.type))


isin_record = define(
    "isin",
    evaluate=lambda x, among: np.isin(x, among)[()],
    infer=lambda x, among: _elementwise_type(x, "bool"),
    syntax=lambda x, among: numpy_call("isin", x, among),
    partials=(None, None),
    depends=anything, contiguous="operands",
)
kinked(isin_record, Kink(COMPARED, lambda y, x, among: y))


@numpy_function(np.isin)
def isin(element: Value, test_elements, assume_unique=False, invert=False) -> Value:
    """np.isin."""
    found = isin_record(value(element), as_array(test_elements))
    return logical_not(found) if static(invert) else found


@numpy_function(np.setdiff1d)
def setdiff1d(ar1: Value, ar2: Value) -> Value:
    """np.setdiff1d: the set difference."""
    values = unique(ar1)
    return take(values, logical_not(isin_record(values, as_array(ar2))))


@numpy_function(np.intersect1d)
def intersect1d(ar1: Value, ar2: Value) -> Value:
    """np.intersect1d: the set intersection, of the dtype of both together."""
    values, others = unique(ar1), as_array(ar2)
    return as_dtype(take(values, isin_record(values, others)),
                    common_dtype(dtype_of(values.type), dtype_of(others.type)))


@numpy_function(np.union1d)
def union1d(ar1: Value, ar2: Value) -> Value:
    """np.union1d: the set union; Python's numbers have the dtype of the other set."""
    sets = [as_array(ar1), as_array(ar2)]
    dtypes = [dtype_of(x.type) for x in sets]
    if any(isinstance(x.type, Scalar) for x in sets) and None not in dtypes:
        sets = [as_dtype(x, promote(*(each.type for each in sets))[0]) for x in sets]
    return unique(concatenate_record(*map(ravel, sets), axis=0))


# ----------------------------------------------------------------------------- values among others


def _infer_searchsorted(a: Value, v: Value, *, side: str) -> Type:
    if rank(a) not in (1, None):
        raise TypeMismatchError(f"np.searchsorted in {a.type}", current().line,
                                "search in a sorted vector")
    return _elementwise_type(v, "int64")


searchsorted_record = define(
    "searchsorted",
    evaluate=lambda a, v, *, side: np.searchsorted(a, v, side),
    infer=_infer_searchsorted,
    syntax=lambda a, v, *, side: numpy_call("searchsorted", a, v,
                                            side=None if side == "left" else ast.Constant(side)),
    partials=(None, None),
    depends=anything, native="search", contiguous="operands",
)
kinked(searchsorted_record,
       Kink(ON_EDGE, among))


@numpy_function(np.searchsorted, method="searchsorted")
def searchsorted(a: Value, v: Value, side="left", sorter=None) -> Value:
    """np.searchsorted: insertion points in a sorted vector."""
    if not is_none(sorter):
        raise UnsupportedError("np.searchsorted with sorter=", current().line,
                               "search in a[sorter]")
    return searchsorted_record(value(a), value(v), side=static(side))


digitize_record = define(
    "digitize",
    evaluate=lambda x, bins, *, right: np.digitize(x, bins, right),
    infer=lambda x, bins, *, right: _elementwise_type(x, "int64"),
    syntax=lambda x, bins, *, right: numpy_call("digitize", x, bins,
                                                right=ast.Constant(True) if right else None),
    partials=(None, None),
    depends=anything, native="search", contiguous="operands",
)
kinked(digitize_record, Kink(ON_EDGE,
                             lambda y, x, bins, **attrs: among(y, bins, x)))


@numpy_function(np.digitize)
def digitize(x: Value, bins: Value, right=False) -> Value:
    """np.digitize: the bin of each value."""
    return digitize_record(value(x), as_array(bins), right=bool(static(right)))


def _infer_bincount(x: Value, least: Value, *weights: Value) -> Type:
    if is_inexact(dtype_of(x.type)):
        raise TypeMismatchError(f"np.bincount of {x.type}", current().line, "count integers")
    for w in weights:
        if (dtype_of(w.type) or "").startswith("complex"):
            raise TypeMismatchError("np.bincount with complex weights", current().line,
                                    "count real and imaginary parts one by one")
    return Array("float64" if weights else "int64", (named_extent(("bincount", x, least)),))


def _bincount_syntax(x: ast.expr, least: ast.expr, *weights: ast.expr) -> ast.expr:
    none = isinstance(least, ast.Constant) and least.value == 0
    return numpy_call("bincount", x, *weights, minlength=None if none else least)


@follows(2)
def _depends_bincount(unions, y, deps, x, least, *weights):
    """Rule: the weights of each number."""
    return unions.grouped(x, spread_as(deps[2], weights[0]), y.size) if weights else 0


bincount_record = define(
    "bincount",  # (x, minlength, *weights)
    evaluate=lambda x, least, *weights: np.bincount(x, *weights, minlength=least),
    infer=_infer_bincount,
    syntax=_bincount_syntax,
    partials=(None, None, 1),
    vjp=lambda bar, y, x, least, *weights: (
        None, None, *(like_operand(take(bar, x), w) for w in weights)),
    linear=(2,),
    depends=_depends_bincount, native="search", raises=array_raise_conditions.COUNT_NUMBERS,
    contiguous="operands",
)


@numpy_function(np.bincount)
def bincount(x: Value, weights=None, minlength=0) -> Value:
    """np.bincount: the count of each number, or the sums of its weights, which have derivatives."""
    return bincount_record(as_array(x), value(minlength),
                           *([] if is_none(weights) else [as_array(weights)]))


def _infer_histogram(x: Value, edges: Value, *weights: Value) -> Type:
    if rank(edges) != 1:
        raise UnsupportedError("np.histogram without known edges", current().line,
                               "pass the edges as an array: np.linspace(lo, hi, bins + 1)")
    extent = edges.type.dims[0]
    if isinstance(extent, int):
        count = max(extent - 1, 0)
    else:
        count = (named_extent(("bins", extent)) if extent.accepts_any
                 else replace(extent, offset=extent.offset - 1))
    return Array(dtype_of(weights[0].type) if weights else "int64", (count,))


def _vjp_histogram(bar, y, x, edges, *weights):
    if not weights:
        return (None, None)
    bins = clip(searchsorted_record(edges, x, side="right") - 1, 0, length(y, axis=0) - 1)
    inside = logical_and(greater_equal(x, take(edges, 0)), less_equal(x, take(edges, -1)))
    return None, None, like_operand(where(inside, take(bar, bins), 0.0), weights[0])


histogram_record = define(
    "histogram",  # (x, edges, *weights): the counts
    evaluate=lambda x, edges, *weights: np.histogram(x, edges, None, None, *weights)[0],
    infer=_infer_histogram,
    syntax=lambda x, edges, *weights: ast.Subscript(
        numpy_call("histogram", x, edges, **({"weights": weights[0]} if weights else {})),
        ast.Constant(0), ast.Load()),
    partials=(None, None, 1),
    vjp=_vjp_histogram,
    linear=(2,),
    contiguous="operands",
)
kinked(histogram_record,
       Kink(ON_EDGE, lambda y, x, edges, *weights: among(y, edges, x), of=(0, 1)))


def _bounds(x: Value) -> tuple[Value, Value]:
    """The minimum and maximum, widened by half a unit each if they are equal.

    ValueError if they are not finite.
    """
    ends = finite(array(tuple(extreme(x, axis=None, keepdims=False)
                              for extreme in (RECORDS["min"], RECORDS["max"]))))
    lo, hi = take(ends, 0), take(ends, 1)
    alike = equal(lo, hi)
    return where(alike, lo - 0.5, lo), where(alike, hi + 0.5, hi)


@numpy_function(np.histogram)
def histogram(x: Value, bins=10, range=None, density=None, weights=None) -> Value:
    """np.histogram between given edges, or with equal bins between given bounds: (counts, edges).

    Counts have no derivative, weights and edges have.
    """
    edges, x = value(bins), as_array(x)
    if members(edges) is not None:
        edges = as_array(edges)
    if isinstance(edges.type, Static) and isinstance(edges.type.value, str):
        raise UnsupportedError("np.histogram whose number of bins NumPy chooses", current().line,
                               "say how many there are")
    if isinstance(edges.type, Scalar):
        lo, hi = _bounds(x) if is_none(range) else members(range)
        edges = linspace(lo, hi, edges + 1)
    counts = histogram_record(x, edges, *([] if is_none(weights) else [as_array(weights)]))
    if not is_none(density) and static(density):
        counts = counts / diff(edges) / sum_record(counts, axis=None, keepdims=False)
    return value((counts, edges))


def _infer_lexsort(*keys: Value) -> Type:
    if any(rank(k) != 1 for k in keys):
        raise UnsupportedError("np.lexsort of other than vectors", current().line,
                               "sort by vectors")
    return Array("int64", keys[0].type.dims)


lexsort_record = define(
    "lexsort",
    evaluate=lambda *keys: np.lexsort(keys),
    infer=_infer_lexsort,
    syntax=lambda *keys: numpy_call("lexsort", ast.Tuple(list(keys), ast.Load())),
    partials=(None,) * 64,
    depends=anything, contiguous="operands",
)
kinked(lexsort_record, Kink(IN_ORDER, ties_of_keys))


@numpy_function(np.lexsort)
def lexsort(keys: Value) -> Value:
    """np.lexsort: an indirect sort by several keys, the last one first."""
    found = members(keys)
    if found is None:
        raise UnsupportedError("np.lexsort of an array", current().line, "give a tuple of vectors")
    return lexsort_record(*found)
