"""Shapes: queries, broadcasting, un-broadcasting, and their spelling.

`spread(s, x)` broadcasts a number or array to the shape of x; `sum_to(x_bar, x)` is its transpose,
which un-broadcasts a cotangent. Both are removed where types prove the shapes equal, and `sum_to`
becomes plain sums where ranks and extents of 1 are known.

Note [Shapes are asked of what lives]
A rule often needs a value only for its shape: the argument of a sum, say. If that is `y *
np.log(p)`, the shape of `y` is read instead, and the product is dead. Likewise the length of an
array that a loop carries is read before the loop, from the initial value of the carry, if the types
say that the loop does not change it. Records list in `shapes` the inputs of which only the shape is
read.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError, VerifyError
from ...ir.builder import current, emit, fresh_extent, meet
from ...ir.graph import OPERATORS, Value
from ...ir.types import (
    INT,
    UNKNOWN,
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
    may_be_one,
)
from ...lazy_import import Named
from .axis_numbers import normal_axis, static_axis
from .batch_rules import align, batched_over, filled, lane_count, on_all_lanes, sum_of_lanes
from .control import item, packed, tape_new
from .dependence_rules import gathered
from .identities import base_offset
from .record import (
    RECORDS,
    array_type,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    promote,
    rank,
    same_shape,
    static,
    value,
)


def numpy_call(name: str, *args: ast.expr, **keywords: ast.expr) -> ast.expr:
    """The expression np.name(*args, **keywords), without keywords that are None."""
    function = ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load())
    return ast.Call(
        function, list(args), [ast.keyword(k, v) for k, v in keywords.items() if v is not None]
    )


def literal(x) -> ast.expr | None:
    """A static attribute as an expression; None, a default, is left out."""
    return None if x is None else ast.parse(repr(x), mode="eval").body


def shape_syntax(x: ast.expr, known: bool) -> ast.expr:
    """The expression x.shape; np.shape(x) if x may be a Python number; the lengths if the shape is
    given by lengths.
    """
    if is_said_by_lengths(x):
        lengths = x.args[1]
        return lengths if isinstance(lengths, ast.Tuple) else ast.Tuple([lengths], ast.Load())
    return ast.Attribute(x, "shape", ast.Load()) if known else numpy_call("shape", x)


def is_said_by_lengths(x: ast.expr) -> bool:
    """Whether this is a number broadcast to lengths, of which only the shape matters:
    np.broadcast_to(0.0, (n, m)).
    """
    match x:
        case ast.Call(ast.Attribute(ast.Name("np"), "broadcast_to"), [ast.Constant(), _]):
            return True
    return False


def float_dtype(type: Type) -> str:
    """The dtype of a cotangent of a value of this type: inexact even for integers."""
    dtype = dtype_of(type)
    return dtype if dtype is not None and is_inexact(dtype) else "float64"


def is_array(x: Value) -> bool:
    """Whether `x` is certainly an array."""
    return isinstance(x.type, Array)


# -------------------------------------------------------------------------------- asking for shapes


def said_by(x: Value) -> tuple[Value, ...] | None:
    """The lengths, if `x` is a number broadcast to lengths: a stand-in for a value of which only
    the shape is read.
    """
    if x.op is None or x.op.name != "broadcast_to" or not isinstance(x.op.inputs[0].type, Scalar):
        return None
    return tuple(x.op.inputs[1:])


def shape_source(x: Value, number: bool = False) -> Value:
    """A cheaper value with the shape of `x`.  Note [Shapes are asked of what lives].

    With `number` set, only lengths are read, so types need not prove the shapes equal.
    """
    leaf, stack, seen = None, [x], {x}
    while stack:
        v = stack.pop()
        if v.op is None:
            return v
        found = [u for u in _of_equal_shape(v, number) if u not in seen]
        seen.update(found)
        if not found and leaf is None:
            leaf = v
        stack += found[::-1]
    return x if leaf is None else leaf


def _of_equal_shape(x: Value, number: bool) -> list[Value]:
    """The operands of the op that made `x` that are proved to have the shape of `x`."""
    match x.op.name:
        case _ if isinstance(x.type, Scalar):
            return []
        case "spread" | "reshape_like" | "shaped_like":
            found = x.op.inputs[1:]
        case "zeros_like" | "ones_like" | "empty_like" | "stop_gradient" | "again":
            found = x.op.inputs
        case "root" | "norm_of":
            found = x.op.inputs[:1]
        case _ if (lengths := said_by(x)) is not None:
            return [giver] if (giver := shape_giver((lengths,))) is not None else []
        case _ if x.op.record.elementwise:
            return [
                v
                for v in x.op.inputs
                if same_shape(v.type, x.type) or number and _fills(v.type, x.type)
            ]
        case _:
            found = []
    return [v for v in found if same_shape(v.type, x.type)]


def _fills(part: Type, whole: Type) -> bool:
    """Whether an operand of an elementwise op has the shape of its result, because it has no axis
    to broadcast.
    """
    return (
        isinstance(part, Array)
        and isinstance(whole, Array)
        and part.rank == whole.rank
        and not any(map(may_be_one, part.dims))
    )


def _before_loops(x: Value, same: Callable[[Type, Type], bool]):
    """(the initial value of the carry `x`, the builder around its loops), if that has the same
    shape.
    """
    builder, found = current(), None
    while builder is not None:
        if x in builder.inits:
            if not same(x.type, builder.inits[x].type):
                break
            x = builder.inits[x]
            found = builder.outer
        builder = builder.outer
    return (x, found) if found is not None else None


def _asked_outside(record, x: Value, same: Callable, **attrs):
    """`record` applied to the initial value of `x`, before the loops that carry it.  Note [Shapes
    are asked of what lives].
    """
    outside = _before_loops(x, same)
    if outside is None:
        return None
    start, builder = outside
    key = record, start, tuple(attrs.items())
    if key not in builder.asked:
        with builder:
            builder.asked[key] = emit(record, start, **attrs)
    return builder.asked[key]


def _fold_length(x: Value, *, axis: int):
    match x.type:
        case Tuple(items):
            return value(len(items))
        case Scalar():
            raise TypeMismatchError(
                f"{x.name or 'this'} is a number and has no length", current().line
            )
        case Array(_, dims):
            k = normal_axis(axis, len(dims))
            if isinstance(dims[k], int):
                return value(dims[k])
            if k != axis:
                return length(x, axis=k)
            if (lengths := said_by(x)) is not None:
                return lengths[k]
            if (source := shape_source(x, number=True)) is not x:
                return length(source, axis=k)
            if not dims[k].accepts_any:
                return _asked_outside(
                    length,
                    x,
                    lambda a, b: (
                        isinstance(b, Array)
                        and len(b.dims) == len(a.dims)
                        and a.dims[k] == b.dims[k]
                    ),
                    axis=k,
                )
        case Unknown():
            if shape_source(x) is not x:
                return length(shape_source(x), axis=axis)
            return _asked_outside(length, x, same_shape, axis=axis)
    return None


length = define(
    "length",  # of one axis
    evaluate=lambda x, *, axis: np.shape(x)[axis],
    infer=lambda x, *, axis: INT,
    fold=_fold_length,
    syntax=lambda x, *, axis: (
        ast.Call(ast.Name("len", ast.Load()), [x], [])
        if axis == 0
        else ast.Subscript(ast.Attribute(x, "shape", ast.Load()), ast.Constant(axis), ast.Load())
    ),
    partials=(None,),
    cheap=True,
    shapes=(0,),
    natural=True, asks_extents=True, total=True, native="compiled",
)


def _fold_shape(x: Value):
    match x.type:
        case Scalar():
            return value(())
        case Array(_, dims):
            return value(tuple(length(x, axis=k) for k in range(len(dims))))
    return None


shape_of = define(
    "shape",
    evaluate=np.shape,
    infer=lambda x: UNKNOWN,
    fold=_fold_shape,
    cheap=True,
    partials=(None,),
    shapes=(0,),
    syntax=lambda x: numpy_call("shape", x),
    asks_extents=True, native="compiled",
)


@numpy_function(np.shape, attribute="shape")
def shape(x: Value) -> Value:
    """The shape: a tuple of lengths, where the rank is known."""
    return shape_of(x)


@numpy_function(len)
def len_(x: Value) -> Value:
    """The length of the first axis, or of a tuple."""
    return length(x, axis=0)


def _fold_size(x: Value, *, known: bool = False):
    if rank(x) == 0:
        return value(1)
    if all(isinstance(d, int) for d in dims_of(x.type)) and is_array(x):
        return value(math.prod(x.type.dims))
    if (lengths := said_by(x)) is not None:
        return math.prod(lengths)
    if (source := shape_source(x, number=True)) is not x:
        return size_of(source)
    outside = _asked_outside(size_of, x, same_shape)
    if outside is None and is_array(x) and not known:
        return emit(size_of, x, known=True)
    return outside


size_of = define(
    "size",
    evaluate=lambda x, *, known=False: np.size(x),
    infer=lambda x, *, known=False: INT,
    cheap=True,
    fold=_fold_size,
    partials=(None,),
    shapes=(0,),
    syntax=lambda x, *, known=False: (
        ast.Attribute(x, "size", ast.Load()) if known else numpy_call("size", x)
    ),
    natural=True, asks_extents=True, total=True, native="compiled",
)


@numpy_function(np.size, attribute="size")
def size(x: Value, axis=None) -> Value:
    """The number of elements, or the length of an axis."""
    return size_of(x) if static(axis) is None else length(x, axis=static_axis(axis))


rank_of = define(
    "ndim",
    evaluate=np.ndim,
    infer=lambda x: INT,
    cheap=True,
    partials=(None,),
    shapes=(0,),
    fold=lambda x: None if rank(x) is None else value(rank(x)),
    syntax=lambda x: numpy_call("ndim", x),
    native="compiled",
)


@numpy_function(np.ndim, attribute="ndim")
def ndim(x: Value) -> Value:
    """The number of axes."""
    return rank_of(x)


@numpy_function(attribute="dtype")
def dtype(x: Value) -> Value:
    """The dtype, known when code is generated."""
    if dtype_of(x.type) is None:
        raise UnsupportedError(
            f"the dtype of {x.name or 'this'} is not known before a call",
            current().line,
            "call the function once, or name the dtype",
        )
    return value(np.dtype(dtype_of(x.type)))


# ----------------------------------------------------------------------------------- saying shapes


def extent_of(n: Value):
    """The extent for a length `n`: a constant, the extent of another axis, or a new symbol.

    The same `n` always gives the same extent, so `np.zeros(n) + np.ones(n)` needs no
    un-broadcasting.
    """
    if isinstance(n.constant, (int, np.integer)) and not isinstance(n.constant, bool):
        return int(n.constant)
    cut_off = n.op is not None and n.op.name == "at_least_zero"  # as an extent is
    base, offset = base_offset(n.op.inputs[0] if cut_off else n)
    if base is not None and base.op is not None and base.op.name == "length":
        dims = dims_of(base.op.inputs[0].type)
        if (
            dims
            and isinstance(extent := dims[base.op.attrs["axis"]], Extent)
            and not extent.accepts_any
        ):
            if not offset:
                return extent
            if extent.offset >= 0:
                return replace(extent, offset=extent.offset + offset)
    return named_extent(("number", n))


def named_extent(key) -> Extent:
    """The extent with this key: the same for the same key, else fresh."""
    extents = current().extents
    if key not in extents:
        extents[key] = fresh_extent()
    return extents[key]


def supposed_extent(key) -> Extent:
    """The extent with this key, assumed not to be 1: ir/length_assumptions.py, Note [Supposed
    lengths].
    """
    extents = current().extents
    if key not in extents:
        extents[key] = replace(fresh_extent("supposed"), symbol_may_be_one=False)
    return extents[key]


def members(x) -> list[Value] | None:
    """The members of a tuple that is known member by member, else None."""
    if isinstance(x, (tuple, list)):
        return [value(m) for m in x]
    if isinstance(x, Value) and x.op is not None and x.op.name == "tuple":
        return list(x.op.inputs)
    if isinstance(x, Value) and isinstance(x.type, Tuple):
        return [RECORDS["item"](x, index=k) for k in range(len(x.type.items))]
    if isinstance(x, Value) and isinstance(x.constant, (tuple, list)):
        return [value(m) for m in x.constant]
    return None


def lengths_of(shape) -> list[Value] | None:
    """A shape argument (an int, a tuple, one argument per axis, a vector) as one Value per axis;
    None if unknown.
    """
    shape = shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape
    found = members(shape)
    if found is not None:
        return found
    shape = value(shape)
    if rank(shape) == 1 and isinstance(shape.type.dims[0], int):
        return [OPERATORS["getitem"](shape, k) for k in range(shape.type.dims[0])]
    return None if isinstance(shape.type, (Unknown, Array, List)) else [shape]


def shape_giver(shape) -> Value | None:
    """x, if the shape argument is the whole shape of x."""
    shape = shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape
    if isinstance(shape, Value) and shape.op is not None and shape.op.name == "shape":
        return shape.op.inputs[0]
    found = members(shape) or []
    ops = [n.op for n in found]
    if found and all(
        op is not None and op.name == "length" and op.attrs["axis"] == k for k, op in enumerate(ops)
    ):
        givers = {op.inputs[0] for op in ops}
        if len(givers) == 1 and rank(x := givers.pop()) == len(found):
            return x
    return None


# ----------------------------------------------------------------------- spreading and summing back


# dtypes that a literal Python number does not have
NARROW = ("float16", "float32", "complex64")


def _narrow_dtype(s: Type, x: Type) -> str | None:
    """The dtype of `s` broadcast to the shape of `x`, if NumPy would make another of a Python
    number.

    A Python number takes the dtype of `x`, as in arithmetic (NEP 50).  The dtype of a typed number
    is named, too: if it is a seed, Python's 1.0 replaces it.
    """
    if not isinstance(s, Scalar) or s.dtype is None:
        return None
    own = dtype_of(x)
    found = (promote(s, Scalar(own))[0] if s.weak and own is not None and is_inexact(own)
             else s.dtype)
    return found if found in NARROW else None


def _infer_spread(s: Value, x: Value, *, known: bool = False, dtype: str | None = None) -> Type:
    dtype = dtype or dtype_of(s.type)
    match x.type:
        case Array(_, dims):
            return Array(dtype, dims)
        case Unknown(shape):
            return Unknown(shape, dtype)
    return s.type


def _fold_spread(s: Value, x: Value, *, known: bool = False, dtype: str | None = None):
    if same_shape(s.type, x.type):
        return (s if dtype in (None, dtype_of(s.type)) or not is_array(s)
                else RECORDS["astype"](s, dtype=dtype))
    if dtype is None and (dtype := _narrow_dtype(s.type, x.type)) is not None:
        return emit(spread, s, x, known=known, dtype=dtype)
    if shape_source(x) is not x:
        return spread_as(s, shape_source(x), dtype)
    attrs = {} if dtype is None else {"dtype": dtype}
    if is_array(x) and not known:
        return emit(spread, s, x, known=True, **attrs)
    return None


def spread_as(s, x, dtype: str | None):
    """`s` broadcast to the shape of `x`: a factor of a value of `dtype`, if NumPy would infer
    another one.
    """
    if dtype is not None and isinstance(s, Value):
        dtype = promote(s.type, Scalar(dtype))[0]
    return spread(s, x) if dtype is None else spread(s, x, dtype=dtype)


def _batch_spread(flags, s: Value, x: Value, *, known: bool = False, dtype: str | None = None):
    count, x_rank = lane_count(flags, (s, x)), rank(x) - flags[1]
    s = align(s, rank(s) - flags[0], x_rank, flags[0])
    if not flags[1]:
        shape = (count, *(length(x, axis=k) for k in range(x_rank)))
        return filled(value(shape), s, dtype or dtype_of(s.type))
    return spread_as(s, x, dtype)


spread = define(
    "spread",  # s, with the shape of x
    evaluate=lambda s, x, *, known=False, dtype=None: np.full(np.shape(x), s, dtype),
    infer=_infer_spread,
    fold=_fold_spread,
    vjp=lambda bar, y, s, x, *, known=False, dtype=None: (sum_to(bar, s), None),
    linear=(0,),
    syntax=lambda s, x, *, known=False, dtype=None: _full_syntax(
        x.args[1] if is_said_by_lengths(x) else shape_syntax(x, known), s, dtype
    ),
    cheap=True,
    shapes=(1,), same_shape=1,
    moves=(0,), batch=_batch_spread, total=True, same_elements=True, broadcasts=True,
    stablehlo=lambda text, op, s, x: text.tensor(s, op.output.type.dtype, np.shape(x)),
)


def _full_syntax(shape: ast.expr, s: ast.expr, dtype: str | None) -> ast.expr:
    """The expression np.full(shape, s), or np.ones(shape), with an explicit dtype if s does not
    imply it.
    """
    named = [] if dtype is None else [ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load())]
    if isinstance(s, ast.Constant) and type(s.value) is float and s.value == 1.0:
        return numpy_call("ones", shape, *named)
    return numpy_call("full", shape, s, *named)


def sum_to_shape(x_bar, shape):
    """x_bar summed over the axes along which an operand of this shape was broadcast."""
    x_bar = np.asarray(x_bar)
    extra = x_bar.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        k + extra for k, n in enumerate(shape) if n == 1 != x_bar.shape[k + extra]
    )
    return (np.sum(x_bar, axis=axes) if axes else x_bar).reshape(shape)


def _fold_sum_to(x_bar: Value, x: Value, *, known: bool = False):
    if same_shape(x_bar.type, x.type):
        return x_bar
    if (x_bar.op is not None and x_bar.op.record is shaped_like
        and same_shape(x_bar.op.inputs[0].type, x.type)):
        return x_bar.op.inputs[0]  # it is proved to have both shapes
    if rank(x_bar) is None or rank(x) is None:
        pass
    elif rank(x) == 0:
        return x_bar if rank(x_bar) == 0 else _sum(x_bar, None, False)
    elif (axes := _summed_axes(x_bar.type.dims, x.type.dims)) is not None:
        extra = rank(x_bar) - rank(x)
        if extra:
            x_bar = _sum(x_bar, 0 if extra == 1 else tuple(range(extra)), False)
        return _sum(x_bar, axes[0] if len(axes) == 1 else axes, True) if axes else x_bar
    if shape_source(x) is not x:
        return sum_to(x_bar, shape_source(x))
    return emit(sum_to, x_bar, x, known=True) if is_array(x) and not known else None


def _sum(x: Value, axis, keepdims: bool) -> Value:
    # by name: ops/arrays/reduce.py needs this module
    return RECORDS["sum"](x, axis=axis, keepdims=keepdims)


def _summed_axes(whole: tuple, part: tuple) -> tuple[int, ...] | None:
    """The axes of `part` along which it was broadcast to `whole`; None if known only at run time.
    """
    axes = []
    for k, (n, m) in enumerate(zip(whole[len(whole) - len(part) :], part)):
        if n == m:
            continue
        if m == 1:
            axes.append(k)
        elif isinstance(m, Extent) and m.may_be_one:
            return None
    return tuple(axes)


def _infer_sum_to(x_bar: Value, x: Value, *, known: bool = False) -> Type:
    match x.type:
        case Array(_, dims):
            return Array(dtype_of(x_bar.type), dims)
        case Unknown(shape):
            return Unknown(shape, dtype_of(x_bar.type))
        case Scalar():
            return Scalar(dtype_of(x_bar.type))
    raise TypeMismatchError(f"{x.type} has no shape", current().line)


def _batch_sum_to(flags, x_bar: Value, x: Value, *, known: bool = False):
    """Batch un-broadcasting where ranks and extents of 1 are known; otherwise lane by lane."""
    if not flags[0]:
        return None
    own, part = dims_of(x_bar.type)[1:], dims_of(x.type)[flags[1]:]
    extra = len(own) - len(part)
    axes = [k for k, (n, m) in enumerate(zip(own[extra:], part)) if n != m]
    if any(part[k] != 1 and not isinstance(part[k], int) and part[k].may_be_one for k in axes):
        return None
    if extra:
        x_bar = sum_of_lanes(x_bar, tuple(range(1, extra + 1)), False)
    axes = tuple(k + 1 for k in axes if part[k] == 1)
    return sum_of_lanes(x_bar, axes, True) if axes else x_bar


sum_to = define(
    "sum_to",  # x_bar, summed to the shape of x
    evaluate=lambda x_bar, x, *, known=False: sum_to_shape(x_bar, np.shape(x)),
    infer=_infer_sum_to,
    fold=_fold_sum_to,
    vjp=lambda bar, y, x_bar, x, *, known=False: (spread(bar, x_bar), None),
    linear=(0,),
    helper=sum_to_shape,
    syntax=lambda x_bar, x, *, known=False: ast.Call(
        ast.Name("sum_to_shape", ast.Load()), [x_bar, shape_syntax(x, known)], []
    ),
    shapes=(1,), same_shape=1,
    views=(0,),  # x_bar itself, where nothing is summed
    broadcasts=True,
    stablehlo=lambda text, op, x_bar, x: text.summed(x_bar, np.shape(x)),
    depends=gathered(lambda places, bar, x, **attrs: np.broadcast_to(places, np.shape(bar))),
    batch=_batch_sum_to,
)


def _infer_shaped(x: Value, like: Value, *, leading: int | None = None) -> Type:
    if leading is not None:
        return Array(x.type.dtype, (*dims_of(like.type)[:leading], *dims_of(x.type)[leading:]))
    if isinstance(x.type, Array) and isinstance(like.type, Array) and x.type.rank != like.type.rank:
        raise VerifyError(f"{x.type} is said to be shaped like {like.type}", current().line)
    match like.type:
        case Array(_, dims):
            return Array(dtype_of(x.type), dims)
        case Unknown(shape):
            return Unknown(shape, dtype_of(x.type))
    return Scalar(dtype_of(x.type))


def _needs_no_saying(type: Type, like: Type) -> bool:
    """Whether no un-broadcasting can be needed: equal shapes, or no axis of length 1."""
    return (
        same_shape(type, like)
        or isinstance(type, Scalar)
        or _fills(type, like)
        and _fills(like, type)
        # the value of one trip says nothing
        or any(getattr(d, "accepts_any", False) for d in dims_of(like))
    )


def _fold_shaped(x: Value, like: Value, *, leading: int | None = None):
    if leading is not None:
        return x if dims_of(x.type)[:leading] == dims_of(like.type)[:leading] else None
    return x if _needs_no_saying(x.type, like.type) else None


def _batch_shaped_like(flags, x: Value, like: Value, *, leading: int | None = None):
    if leading is not None:
        return (shaped_like(x, like, leading=leading + 1) if all(flags) else x if flags[0]
                else batched_over(x, length(like, axis=0)))
    return shaped_like(x, like) if flags == (True, True) else x if flags[0] else spread(x, like)


shaped_like = define(
    # declare that x has the shape of another value, or its `leading` axes: no
    # code, a better type
    "shaped_like",
    evaluate=lambda x, like, *, leading=None: x,
    infer=_infer_shaped,
    fold=_fold_shaped,
    vjp=lambda bar, y, x, like, *, leading=None: (bar, None),
    linear=(0,),
    syntax=lambda x, like, *, leading=None: x,
    cheap=True,
    views=(0,),
    shapes=(1,),
    moves=(0,), batch=_batch_shaped_like, same_elements=True,
)


# Note [Sums over two axes]
# A matrix product raises where the contracted axes differ in length; the elementwise product that
# replaces it, in a derivative or in native code, broadcasts a length of 1.  Lengths of two
# arguments are checked at the call (ir/graph.py, Meeting).  Others are known only at run time: the
# replacement has an `as_long_as`.  Considered: leaving a check where dead-code elimination removes
# the product; but each pair of slices would leave one, and most derivatives of slices raise by
# themselves.


def check_length(x, y, axis, other):
    """x, of which an axis has to be as long as one of y."""
    if x.shape[axis] != y.shape[other]:
        raise ValueError(f"axes that are summed over together have lengths {x.shape[axis]} and {y.shape[other]}")
    return x


def _infer_as_long(x: Value, y: Value, *, axis: int, other: int) -> Type:
    n, m = x.type.dims[axis], y.type.dims[other]
    dim = n if may_be_one(m) and not may_be_one(n) else m
    return replace(x.type, dims=(*x.type.dims[:axis], dim, *x.type.dims[axis + 1:]))


def _batch_as_long_as(flags, x: Value, y: Value, *, axis: int, other: int):
    found = as_long_as(x, y, axis=axis + flags[0], other=other + flags[1])
    return found if flags[0] else batched_over(found, length(y, axis=0))


as_long_as = define(
    "as_long_as",  # x, of which an axis is checked to be as long as one of y
    evaluate=lambda x, y, *, axis, other: check_length(x, y, axis, other),
    infer=_infer_as_long,
    fold=lambda x, y, *, axis, other: x if x.type.dims[axis] == y.type.dims[other] else None,
    vjp=lambda bar, y, x, like, *, axis, other: (shaped_like(bar, x), None),
    linear=(0,),
    helper=check_length,
    syntax=lambda x, y, *, axis, other: ast.Call(
        ast.Name("check_length", ast.Load()), [x, y, ast.Constant(axis), ast.Constant(other)], []),
    cheap=True,
    views=(0,),
    shapes=(1,),
    moves=(0,),
    batch=_batch_as_long_as,
)


def matched(x: Value, y: Value, axis: int, other: int) -> Value:
    """`x`, with a check that its axis is as long as one of `y`, unless both lengths are constant or
    checked at the call.  Note [Sums over two axes]

    Carries of loops are not checked either: trips that change their length pass them through the
    product itself.
    """
    axis, other = axis % x.type.rank, other % y.type.rank
    dims = x.type.dims[axis], y.type.dims[other]
    if any(isinstance(d, Extent) and d.accepts_any for d in dims):
        return x
    is_asked = (all(isinstance(d, int) or "." in d.symbol for d in dims)
                and not any(map(may_be_one, dims)))
    return x if is_asked else as_long_as(x, y, axis=axis, other=other)


def of_length(x: Value, y: Value, axis: int, other: int, what: str) -> Value:
    """`x`, with a check that its axis is as long as one of `y`, as the function `what` requires and
    its decomposition would not check.
    """
    n, m = x.type.dims[axis], y.type.dims[other]
    if isinstance(n, int) and isinstance(m, int) and n != m:
        raise TypeMismatchError(f"{what} of axes of lengths {n} and {m}", current().line,
                                "make the lengths equal")
    meet(n, m)
    return (as_long_as(x, y, axis=axis, other=other) if current().meetings is None
            else matched(x, y, axis, other))


@numpy_function(Named("s2s.library.scipy_functions", "of_width"))
def of_width(x: Value, y: Value, what) -> Value:
    """The matrix x, declared to have as many columns as y, for functions written in Python."""
    x, y = value(x), value(y)
    return of_length(x, y, -1, -1, static(what)) if rank(x) == rank(y) == 2 else x


# -------------------------------------------------------------------------------------------- zeros


def kind_of_item(type: Type):
    """The kind of a value as far as zeros and sums are concerned: "number", "array", "fixed", or
    the kinds of its members.

    Numbers and arrays of another dtype than float64 are ("number", dtype) and ("array", dtype).  A
    container is ("members", form, *kinds): its cotangent is one of the same form.
    """
    match type:
        case List(item_type):
            return ("list", kind_of_item(item_type))
        case Tuple(items, form):
            return ("members", form, *map(kind_of_item, items))
        case Scalar():
            return "number" if float_dtype(type) == "float64" else ("number", float_dtype(type))
        case Static():
            return "fixed"
    return "array" if float_dtype(type) == "float64" else ("array", float_dtype(type))


def zeros_of(x: Value) -> Value:
    """Zeros for the cotangent or tangent of `x`: its shape, an inexact dtype."""
    match x.type:
        case Scalar():
            return value(0.0)
        case Tuple(items):
            return packed([zeros_of(item(x, index=k)) for k in range(len(items))], x.type.form)
        case Static():
            return x
        case Tape():  # a tape is read to its end, so its cotangent starts empty
            return emit(tape_new)
        case List():
            return RECORDS["list_zeros"](x, kind=kind_of_item(x.type))
    return zeros_like(shape_source(x), dtype=float_dtype(x.type))


def _fold_zeros_like(x: Value, *, dtype: str):
    """Like an array that was given by lengths, if there is one."""
    if said_by(x) is None or shape_source(x) is x:
        return None
    return zeros_like(shape_source(x), dtype=dtype)


zeros_like = define(
    "zeros_like",
    evaluate=lambda x, *, dtype: np.zeros(np.shape(x), dtype),
    infer=lambda x, *, dtype: (
        Unknown(x.type.shape, dtype)
        if isinstance(x.type, Unknown)
        else array_type(dtype, dims_of(x.type))
    ),
    fold=_fold_zeros_like,
    partials=(None,),
    syntax=lambda x, *, dtype: numpy_call(
        "zeros",
        x.args[1] if is_said_by_lengths(x) else numpy_call("shape", x),
        *(
            []
            if dtype == "float64"
            else [ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load())]
        ),
    ),
    shapes=(0,), same_shape=0,
    batch=on_all_lanes,
    fill=0,
)
