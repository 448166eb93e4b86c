"""Array creation: from a shape, a range, numbers, or another array.

The extents of a shape are operands, so `np.zeros((n, m))` reads n and m, and its type says so:
arrays made with the same n have provably the same length.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...errors import ArrayNeededError, TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_extent
from ...ir.graph import Value
from ...ir.types import (
    Array,
    Extent,
    List,
    Scalar,
    Static,
    Tape,
    Tuple,
    Type,
    Unknown,
    is_inexact,
    is_listed,
)
from ..core import array_raise_conditions
from ..core.batch_rules import align, all_batched, lane_count, on_all_lanes
from ..core.cast import as_dtype, astype, convert, dtype_name, dtype_syntax
from ..core.chain_rule import like_operand
from ..core.control import item
from ..core.copy import copy
from ..core.define_elementwise import is_none, sampled
from ..core.dependence_rules import follows, nothing
from ..core.elementwise import equal, maximum, where
from ..core.identities import base_offset
from ..core.kinks import Kink, kinked
from ..core.record import (
    ALL,
    FUNCTIONS,
    RECORDS,
    Record,
    array_type,
    define,
    dims_of,
    dtype_of,
    no_jvp,
    no_vjp,
    numpy_function,
    rank,
    static,
    value,
)
from ..core.shape import extent_of, length, lengths_of, numpy_call, sum_to, zeros_of
from ..core.shape import zeros_like as zeros_like_record
from . import stablehlo_arrays
from .index import take

# ------------------------------------------------------------------------------- shapes as operands


def extents_of(shape) -> tuple[Value, ...]:
    """The extents in `shape`, a length or a tuple of lengths, as operands of the ops below.

    A shape of unknown rank is one operand.
    """
    extents = lengths_of(shape)
    if extents is None and isinstance(value(shape).type, (Array, List)):
        raise UnsupportedError("a shape of unknown length", current().line,
                               "write its members one by one")
    for n in extents or ():
        if not isinstance(n.type, (Scalar, Unknown)) or is_inexact(dtype_of(n.type) or "int64"):
            raise TypeMismatchError(f"a shape of type {n.type}", current().line,
                                    "use an integer or a tuple of integers")
    return (value(shape),) if extents is None else tuple(extents)


def shaped(dtype: str | None, extents: Sequence[Value]) -> Type:
    """The type of a new array with these extents."""
    if len(extents) == 1 and isinstance(extents[0].type, Unknown):
        op = extents[0].op
        known = op is not None and op.name == "shape" and isinstance(op.inputs[0].type, Unknown)
        return Unknown(op.inputs[0].type.shape if known else None, dtype)
    return array_type(dtype, tuple(map(extent_of, extents))) if dtype else Unknown()


def _shape(extents: Sequence):
    """The shape as NumPy takes it."""
    return extents[0] if len(extents) == 1 else tuple(extents)


def _shape_syntax(extents: Sequence[ast.expr]) -> ast.expr:
    """The shape in its simplest spelling: n, (n, m), x.shape."""
    return extents[0] if len(extents) == 1 else shape_tuple(extents)


def shape_tuple(extents: Sequence[ast.expr]) -> ast.expr:
    """The expression (n, m), or x.shape if these are the lengths of all axes of x, whose number the
    length expressions show.
    """
    match extents:
        case [ast.Call(ast.Name("len"), [x]), *rest] if (
                rest and getattr(rest[-1], "lengths", None) == len(extents)
                and all(ast.dump(n) == ast.dump(ast.Subscript(ast.Attribute(x, "shape", ast.Load()),
                                                              ast.Constant(k), ast.Load()))
                        for k, n in enumerate(rest, 1))):
            return ast.Attribute(x, "shape", ast.Load())
    return ast.Tuple(list(extents), ast.Load())


def _unless_float64(dtype: str) -> list[ast.expr]:
    return [] if dtype == "float64" else [dtype_syntax(dtype)]


def _filled(name: str, function: Callable, **facts) -> Record:
    return define(
        name,  # (*extents): as np.zeros(extents, dtype)
        evaluate=lambda *extents, dtype: function(_shape(extents), dtype),
        infer=lambda *extents, dtype: shaped(dtype, extents),
        syntax=lambda *extents, dtype: numpy_call(name, _shape_syntax(extents),
                                                  *_unless_float64(dtype)),
        vjp=no_vjp, jvp=no_jvp, cheap=name != "empty", raises=array_raise_conditions.COUNTS,
        allocates=0, **facts)


zeros_record = _filled("zeros", np.zeros, fill=0, exact=True)
ones_record = _filled("ones", np.ones, fill=1, exact=True)
empty_record = _filled("empty", np.empty, unwritten=True)


def _infer_full(v: Value, *extents: Value) -> Type:
    if not isinstance(v.type, (Scalar, Array, Unknown)):
        raise TypeMismatchError(f"np.full of {v.type}", current().line, "fill with a number")
    return shaped(dtype_of(v.type), extents)


def _batch_full(flags, v: Value, *extents: Value):
    if any(flags[1:]):
        return None
    return full_record(align(v, rank(v) - 1, len(extents)), length(v, axis=0), *extents)


full_record = define(
    "full",  # (v, *extents): as np.full(extents, v)
    evaluate=lambda v, *extents: np.full(_shape(extents), v),
    infer=_infer_full,
    syntax=lambda v, *extents: numpy_call("full", _shape_syntax(extents), v),
    vjp=lambda bar, y, v, *extents: (like_operand(sum_to(bar, v), v), *no_vjp(bar, y, *extents)),
    linear=(0,), cheap=True, raises=array_raise_conditions.COUNTS_AFTER_ONE, moves=(0,),
    batch=_batch_full, allocates=1,
    stablehlo=lambda text, op, v, *extents: text.tensor(v, op.output.type.dtype, extents))


def _dtype(dtype, default: str = "float64") -> str:
    return default if is_none(dtype) else dtype_name(dtype)


@numpy_function(np.zeros, always_array=True)
def zeros(shape, dtype=None) -> Value:
    return _as_scalar(zeros_record, 0, shape, _dtype(dtype))


@numpy_function(np.ones, always_array=True)
def ones(shape, dtype=None) -> Value:
    return _as_scalar(ones_record, 1, shape, _dtype(dtype))


@numpy_function(np.empty, always_array=True)
def empty(shape, dtype=None) -> Value:
    return _as_scalar(empty_record, 0, shape, _dtype(dtype))


def _as_scalar(record: Record, number: int, shape, dtype: str) -> Value:
    """Convert an array of rank 0 to a number."""
    extents = extents_of(shape)
    return record(*extents, dtype=dtype) if extents else value(np.dtype(dtype).type(number))


@numpy_function(np.full, always_array=True)
def full(shape, fill_value, dtype=None) -> Value:
    name = None if is_none(dtype) else dtype_name(dtype)
    v, extents = _as_number(_missing_as_nan(value(fill_value), name), dtype), extents_of(shape)
    return full_record(v, *extents) if extents else v


def _as_number(v: Value, dtype) -> Value:
    """`v` in that dtype; a Python number stays one if NumPy then converts it to that dtype."""
    if is_none(dtype):
        return v
    name = dtype_name(dtype)
    if (type(v.constant) in (bool, int, float)
        and name in ("bool", "int64", "float64", "complex128")):
        return value(np.dtype(name).type(v.constant).item())
    return as_dtype(v, name)


# ------------------------------------------------------------------------------------- like another


def _infer_like(x: Value, dtype: str | None) -> Type:
    match x.type:
        case Unknown(shape):
            return Unknown(shape, dtype)
        case Array() | Scalar():
            return array_type(dtype, dims_of(x.type))
    raise ArrayNeededError(x, current().line)


def _like(name: str, function: Callable, **facts) -> Record:
    return define(
        name,  # (x): the attribute dtype is None for the dtype of x
        evaluate=lambda x, *, dtype: function(x, dtype),
        infer=lambda x, *, dtype: _infer_like(x, dtype or dtype_of(x.type)),
        fold=lambda x, *, dtype: (value(function(0, dtype or x.type.dtype)[()])
                                  if isinstance(x.type, Scalar) else None),
        syntax=lambda x, *, dtype: numpy_call(name, x,
                                              *([] if dtype is None else [dtype_syntax(dtype)])),
        vjp=no_vjp, jvp=no_jvp, depends=nothing, batch=on_all_lanes, same_shape=0,
        stablehlo=stablehlo_arrays.of_its_shape, **facts)


ones_like_record = _like("ones_like", np.ones_like, fill=1)
empty_like_record = _like("empty_like", lambda x, dtype=None: np.empty_like(x, dtype),
                          unwritten=True)


def _batch_full_like(flags, v: Value, x: Value):
    own = rank(x) - flags[1]
    v, count = align(v, rank(v) - flags[0], own, flags[0]), lane_count(flags, (v, x))
    return full_record(v, count, *(length(x, axis=k) for k in range(flags[1], rank(x))))


full_like_record = define(
    "full_like",  # (v, x): v, spread over the shape of x, in the dtype of v
    evaluate=lambda v, x: np.full(np.shape(x), v),
    infer=lambda v, x: _infer_like(x, dtype_of(v.type)),
    fold=lambda v, x: v if isinstance(x.type, Scalar) and isinstance(v.type, Scalar) else None,
    syntax=lambda v, x: numpy_call("full", numpy_call("shape", x), v),
    vjp=lambda bar, y, v, x: (like_operand(sum_to(bar, v), v), None),
    linear=(0,), cheap=True, moves=(0,), batch=_batch_full_like,
    stablehlo=stablehlo_arrays.spread_over)


def _own_dtype(x: Value, dtype) -> str | None:
    """The dtype, or None if it is that of x itself."""
    name = None if is_none(dtype) else dtype_name(dtype)
    return None if name == dtype_of(x.type) else name


@numpy_function(np.zeros_like, always_array=True)
def zeros_like(a: Value, dtype=None) -> Value:
    rank(a)  # of an array, to which a list is converted
    dtype = _own_dtype(a, dtype) or dtype_of(a.type) or "float64"
    return (value(np.dtype(dtype).type(0)) if isinstance(a.type, Scalar)
            else zeros_like_record(a, dtype=dtype))


@numpy_function(np.ones_like, always_array=True)
def ones_like(a: Value, dtype=None) -> Value:
    rank(a)
    return ones_like_record(a, dtype=_own_dtype(a, dtype))


@numpy_function(np.empty_like, always_array=True)
def empty_like(prototype: Value, dtype=None) -> Value:
    return empty_like_record(prototype, dtype=_own_dtype(prototype, dtype))


@numpy_function(np.full_like, always_array=True)
def full_like(a: Value, fill_value, dtype=None) -> Value:
    dtype = _own_dtype(a, dtype) or dtype_of(a.type)
    return full_like_record(_as_number(value(fill_value), dtype), a)


# ------------------------------------------------------------------------------------------- ranges


def _infer_arange(start: Value, stop: Value, step: Value) -> Type:
    types = [x.type for x in (start, stop, step)]
    if any(isinstance(t, Array) for t in types):
        raise TypeMismatchError("np.arange of arrays", current().line, "use numbers")
    if any(dtype_of(t) is None for t in types):
        return Unknown()
    dtype = _type_of_arange(*(Scalar(t.dtype, isinstance(t, Scalar) and t.weak)
                              for t in types)).dtype
    return Array(dtype, (_range_extent(start, stop, step),))


_type_of_arange = sampled(lambda *numbers: np.arange(*numbers).dtype.type(0), "np.arange")


def _range_extent(start: Value, stop: Value, step: Value) -> int | Extent:
    known = [x.constant if type(x.constant) is int else None for x in (start, stop, step)]
    if None not in known:
        return len(range(*known))
    if known[0] is not None and known[0] >= 0 and known[2] == 1 and not is_inexact(stop.type.dtype):
        extent = extent_of(stop)
        if isinstance(extent, int):
            return max(extent - known[0], 0)
        return replace(extent, offset=extent.offset - known[0])
    if known[0] is not None and known[2] == 1 and isinstance(extent := _measured(stop), Extent):
        return replace(extent, offset=extent.offset - known[0])
    return fresh_extent()


def _measured(n: Value) -> int | Extent | None:
    """The extent of `n`, if that is an axis length or larger, and so not negative."""
    base, offset = base_offset(n)
    is_length = (offset >= 0 and base is not None and base.op is not None
                 and base.op.name == "length")
    return extent_of(n) if is_length and getattr(extent_of(base), "offset", -1) >= 0 else None


def _arange_syntax(start: ast.expr, stop: ast.expr, step: ast.expr) -> ast.expr:
    def is_literally(x: ast.expr, number: int) -> bool:
        return isinstance(x, ast.Constant) and type(x.value) is int and x.value == number

    if not is_literally(step, 1):
        return numpy_call("arange", start, stop, step)
    return (numpy_call("arange", stop) if is_literally(start, 0)
            else numpy_call("arange", start, stop))


def _vjp_arange(bar, y, start, stop, step):
    counts = arange_record(value(0), length(y, axis=0), value(1))
    return sum_to(bar, start), None, sum_to(bar * counts, step)


def _jvp_arange(dots, y, start, stop, step):
    start_dot, _, step_dot = dots
    if start_dot is None and step_dot is None:
        return None
    counts = arange_record(value(0), length(y, axis=0), value(1))
    slope = zeros_of(y) if step_dot is None else step_dot * counts
    return slope if start_dot is None else start_dot + slope


arange_record = define("arange", evaluate=np.arange, infer=_infer_arange, syntax=_arange_syntax,
                       vjp=_vjp_arange, jvp=_jvp_arange, cheap=True,
                       raises=array_raise_conditions.RANGE, of_numbers=True, exact=True,
                       distinct=True,
                       states_both="np.arange of tangents would have another length")
kinked(arange_record,
       Kink("a step: the derivative is that of as many numbers",
            lambda y, start, stop, step: np.equal((stop - start) / step,
                                                  np.round((stop - start) / step))))


@numpy_function(np.arange)
def arange(start, stop=None, step=1, dtype=None) -> Value:
    if is_none(stop):
        start, stop = 0, start
    return as_dtype(arange_record(value(start), value(stop), value(step)), dtype)


def _infer_linspace(start: Value, stop: Value, num: Value, *, endpoint: bool) -> Type:
    for x in (start, stop):
        if isinstance(x.type, Array):
            raise UnsupportedError("np.linspace between arrays", current().line,
                                   "a + (b - a) * np.linspace(0, 1, n)[:, None]")
    if dtype_of(start.type) is None or dtype_of(stop.type) is None:
        return Unknown()
    dtype = _type_of_linspace(*(Scalar(x.type.dtype, getattr(x.type, "weak", False))
                                for x in (start, stop))).dtype
    return Array(dtype, (extent_of(num),))


_type_of_linspace = sampled(lambda a, b: np.linspace(a, b, 2)[0], "np.linspace")


def _linspace_syntax(start, stop, num, *, endpoint):
    return numpy_call("linspace", start, stop, num,
                      **({} if endpoint else {"endpoint": ast.Constant(False)}))


def _weights(num: Value, endpoint: bool) -> Value:
    return linspace_record(value(0.0), value(1.0), num, endpoint=endpoint)


def _vjp_linspace(bar, y, start, stop, num, *, endpoint):
    w = _weights(num, endpoint)
    return sum_to(bar * (1 - w), start), sum_to(bar * w, stop), None


def _batch_linspace(flags, start: Value, stop: Value, num: Value, *, endpoint: bool):
    if flags[2]:
        return None
    dtype = dtype_of(linspace_record.infer(*(Value(Scalar(x.type.dtype)) if flag else x
                                             for x, flag in zip((start, stop), flags)), num,
                                           endpoint=endpoint))
    start, stop = (align(x, 0, 1, flag) for x, flag in zip((start, stop), flags))
    k, last = RECORDS["expand_dims"](arange(num), axis=0), num - 1 if endpoint else num
    parts = maximum(last, 1)
    if dtype in ("float32", "complex64"):
        k, parts = astype(k, dtype="float32"), convert(parts, dtype="float32")
    found = k * ((stop - start) / parts) + start  # as NumPy computes it
    return where(equal(k, 0), start, where(equal(k, last), stop, found)) if endpoint else found


@follows(0, 1)
def _depends_linspace(unions, y, deps, start, stop, num, **attrs):
    return np.broadcast_to(unions.union(deps[0], deps[1]), np.shape(y)).copy()


linspace_record = define("linspace",
                         evaluate=lambda start, stop, num, *, endpoint: np.linspace(
                             start, stop, num, endpoint=endpoint), infer=_infer_linspace,
                         syntax=_linspace_syntax, vjp=_vjp_linspace, linear=(0, 1),
                         raises=array_raise_conditions.COUNTS_AFTER_TWO, depends=_depends_linspace,
                         batch=_batch_linspace)


@numpy_function(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0) -> Value:
    start, stop, num, endpoint = value(start), value(stop), value(num), static(endpoint)
    if static(axis) != 0:
        raise UnsupportedError("np.linspace along another axis than the first", current().line,
                               "move the axis with np.moveaxis")
    found = as_dtype(linspace_record(start, stop, num, endpoint=endpoint), dtype)
    return (value((found, (stop - start) / (num - 1 if endpoint else num))) if static(retstep)
            else found)


def _eye_syntax(n: ast.expr, m: ast.expr, *, k: int, dtype: str) -> ast.expr:
    square = ast.dump(n) == ast.dump(m)
    keywords = {"k": ast.Constant(k)} if k else {}
    if dtype != "float64":
        keywords["dtype"] = dtype_syntax(dtype)
    return numpy_call("eye", n, *([] if square else [m]), **keywords)


eye_record = define(
    "eye",
    evaluate=lambda n, m, *, k, dtype: np.eye(n, m, k, dtype),
    infer=lambda n, m, *, k, dtype: Array(dtype, (extent_of(n), extent_of(m))),
    syntax=_eye_syntax, vjp=no_vjp, jvp=no_jvp, cheap=True, raises=array_raise_conditions.COUNTS,
    exact=True)


@numpy_function(np.eye)
def eye(N, M=None, k=0, dtype=None) -> Value:  # noqa: N803  NumPy's own names
    n = value(N)
    m = n if is_none(M) else value(M)
    return eye_record(n, m, k=static(k), dtype=_dtype(dtype))


@numpy_function(np.identity)
def identity(n, dtype=None) -> Value:
    return eye(n, dtype=dtype)


# ------------------------------------------------------------------------------------- from numbers


def _nested(leaves: Sequence, shape: tuple[int, ...], make: Callable):
    """Nested `make`s of `leaves`, in row-major order, in this shape."""
    if len(shape) == 1:
        return make(list(leaves))
    size = len(leaves) // shape[0]
    return make([_nested(leaves[k * size:(k + 1) * size], shape[1:], make)
                 for k in range(shape[0])])


def _infer_array(*leaves: Value, shape: tuple[int, ...], dtype: str | None) -> Type:
    if any(isinstance(x.type, Unknown) for x in leaves):
        return Unknown(dtype=dtype)
    dims = dims_of(leaves[0].type)
    for x in leaves:
        if len(dims_of(x.type)) != len(dims):
            raise TypeMismatchError(
                f"an array of rows of {len(dims)} and {len(dims_of(x.type))} axes", current().line,
                "give all rows the same shape")
        dims = tuple(m if isinstance(m, int) else n for m, n in zip(dims, dims_of(x.type)))
    for x in leaves:
        if dtype_of(x.type) is None:
            raise TypeMismatchError(
                f"an array of {x.type}", current().line,
                "say dtype=float, which makes NaN of None" if is_none(x)
                else "make arrays of numbers")
    return Array(dtype or np.result_type(*(x.type.dtype for x in leaves)).name, shape + dims)


def _array_syntax(*leaves: ast.expr, shape: tuple[int, ...], dtype: str | None) -> ast.expr:
    literal = _nested(leaves, shape, lambda row: ast.List(row, ast.Load()))
    return numpy_call("array", literal, *([] if dtype is None else [dtype_syntax(dtype)]))


def _vjp_array(bar, y, *leaves, shape, dtype):
    return tuple(like_operand(take(bar, index), x)
                 for index, x in zip(np.ndindex(shape), leaves, strict=True))


def _batch_array(flags, *leaves: Value, shape: tuple[int, ...], dtype: str | None):
    leaves = all_batched(flags, leaves)
    rows = RECORDS["stack"](*leaves, axis=1)
    if len(shape) > 1:
        rest = (length(leaves[0], axis=k) for k in range(1, rank(leaves[0])))
        rows = RECORDS["reshape"](rows, length(leaves[0], axis=0), *map(value, shape), *rest)
    return rows if dtype is None or dtype == dtype_of(rows.type) else astype(rows, dtype=dtype)


@follows()
def _depends_array(unions, y, deps, *leaves, shape, dtype):
    return np.array(list(deps), np.int64).reshape(shape)


array_record = define(
    "array",  # (*leaves): a nested list of this shape, of numbers or of arrays of one shape
    evaluate=lambda *leaves, shape, dtype: np.array(_nested(leaves, shape, list), dtype),
    infer=_infer_array, syntax=_array_syntax, vjp=_vjp_array, linear=ALL, cheap=True,
    depends=_depends_array, batch=_batch_array, exact=True,
    stablehlo=stablehlo_arrays.nested)


def _leaves(x: Value) -> tuple[list[Value], tuple[int, ...]]:
    """The members of nested tuples, in row-major order, and their shape."""
    if isinstance(x.type, Static) and isinstance(x.constant, (tuple, list)):
        x = value(_as_tuple(x.constant))
    if isinstance(x.type, List):  # of a length known only at run time
        return [RECORDS["list_stack"](x)], ()
    if not isinstance(x.type, Tuple):
        return [x], ()
    if not is_listed(x.type):
        raise TypeMismatchError(f"an array of {x.type}", current().line,
                                "make arrays of numbers, or of lists and tuples of them")
    rows = [_leaves(item(x, index=k)) for k in range(len(x.type.items))]
    shapes = {shape for _, shape in rows}
    if len(shapes) > 1:
        raise TypeMismatchError("a ragged array", current().line, "give all rows the same length")
    return ([leaf for leaves, _ in rows for leaf in leaves],
            (len(rows), *(shapes.pop() if shapes else ())))


def _as_tuple(x):
    return tuple(map(_as_tuple, x)) if isinstance(x, (tuple, list)) else x


def _from_members(x: Value, dtype) -> Value:
    leaves, shape = _leaves(x)
    if not leaves:
        return zeros(shape, dtype)
    name = None if is_none(dtype) else dtype_name(dtype)
    leaves = [_missing_as_nan(leaf, name) for leaf in leaves]
    return array_record(*leaves, shape=shape, dtype=name)


def _missing_as_nan(x: Value, dtype: str | None) -> Value:
    """`x`, and NaN for None, as NumPy has it in arrays of floats."""
    return value(np.nan) if is_none(x) and (dtype or "").startswith("float") else x


# ------------------------------------------------------------------------------- from another array


def _fold_as_array(x: Value, *, function: str):
    match x.type:
        case Scalar(dtype):
            return convert(x, dtype=dtype)
        case Array():
            return x if function == "asarray" else copy(x, "K")
    return None


as_array = define(
    "as_array",  # (x): np.array, np.copy or np.asarray of a value of unknown rank
    evaluate=lambda x, *, function: getattr(np, function)(x),
    infer=lambda x, *, function: x.type,
    fold=_fold_as_array,
    syntax=lambda x, *, function: numpy_call(function, x),
    vjp=lambda bar, y, x, *, function: (like_operand(bar, x),),
    linear=(0,), cheap=True, views=(0,), moves=(0,), batch=on_all_lanes)


@numpy_function(np.array, view="maybe", copies=True, always_array=True)
def array(object, dtype=None, copy=True) -> Value:
    x = value(object)
    if isinstance(x.type, (Tuple, Static)):
        return _from_members(x, dtype)
    if isinstance(x.type, Tape):
        raise UnsupportedError("an array of a list that grows at run time", current().line,
                               "fill an array in a `for` loop")
    return as_dtype(as_array(x, function="array" if static(copy) else "asarray"), dtype)


@numpy_function(np.asarray, np.asanyarray, view="maybe", always_array=True)
def asarray(a, dtype=None) -> Value:
    x = value(a)
    if isinstance(x.type, (Tuple, Static)):
        return _from_members(x, dtype)
    return as_dtype(as_array(x, function="asarray"), dtype)


@numpy_function(np.ascontiguousarray, view="maybe", always_array=True)
def ascontiguousarray(a, dtype=None) -> Value:
    """np.ascontiguousarray, which makes a vector of a number."""
    x = asarray(a, dtype)
    return FUNCTIONS[np.atleast_1d](x) if rank(x) == 0 else x


@numpy_function(np.copy, copies=True, always_array=True)
def copy_(a: Value) -> Value:
    return as_array(a, function="copy")


@numpy_function(method="copy", copies=True, always_array=True)
def copy_method(x: Value, order="C") -> Value:
    return copy(x, static(order, "the order of a copy"))


@numpy_function(method="view", view="parts")
def view_method(x: Value, dtype=None) -> Value:
    """x.view() without a dtype: the same array; reinterpreting the bytes is not supported."""
    if not is_none(dtype):
        raise UnsupportedError("the bytes of an array taken for another dtype", current().line,
                               "use x.astype(dtype), or x.real and x.imag")
    return x
