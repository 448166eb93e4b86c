"""Batching rules of ops: the result of `vmap` on each.

A rule is `batch(flags, *xs, **attrs)`: the flagged xs have the lane axis in front, and so has the
result; None means that there is no rule for these operands, and the op runs lane by lane. The rule
of an elementwise op is `batch(*xs, **attrs)`, on operands with aligned axes; most need none.

The rules are in one file, apart from their ops, because they use one another's ops: a batched
product is a sum, a batched index needs `arange`, a batched concatenation broadcasts its parts over
the lanes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set

from ..ir.graph import MISSING, Op, Value
from ..ir.types import NONE, Array, Scalar
from .arrays.axes import (
    expand_dims,
    expand_dims_record,
    flip_record,
    moveaxis,
    squeeze_record,
    transpose_record,
)
from .arrays.concatenate import concatenate_record, stack_record
from .arrays.create import (
    arange,
    array_record,
    as_array,
    empty,
    full,
    full_like_record,
    full_record,
    linspace_record,
    zeros,
)
from .arrays.fft import fft, fitted_record, ifft, irfft, rfft
from .arrays.index import additem, getitem, put, setitem
from .arrays.index_pattern import Pattern, expand
from .arrays.products import matmul, outer_record
from .arrays.repeat import broadcast_to_record, tile_record
from .arrays.reshape import ravel, reshape, reshape_like
from .arrays.selection import diagonal_record
from .core.define_elementwise import IN_MATH
from .core.dependence_rules import anything
from .core.elementwise import (
    absolute,
    equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    round_,
    select,
    where,
)
from .core.record import RECORDS, define, dims_of, dtype_of, rank, value
from .core.shape import (
    as_long_as,
    length,
    matched,
    normal_axes,
    shaped_like,
    spread,
    spread_as,
    sum_to,
)
from .linalg.determinant import cofactors_of, inverse_of, second_of
from .linalg.solve import solve
from .math.cmath import OF_COMPLEX_NUMBERS

# ----------------------------------------------------------------------------------------- aligning


def align(x: Value, own: int, count: int, flag: bool = True) -> Value:
    """A value with `own` axes per lane, reshaped to broadcast against values with `count` axes per
    lane.
    """
    if not flag or own == count:
        return x
    return getitem(x, pattern=("...", *(None,) * (count - own), ...))


def align_all(flags: Sequence[bool], xs: Sequence[Value]) -> list[Value]:
    """All of `xs`, with their lane axes aligned."""
    ranks = [rank(x) - flag for x, flag in zip(xs, flags)]
    return [align(x, own, max(ranks), flag) for x, own, flag in zip(xs, ranks, flags)]


def lane_count(flags: Sequence[bool], xs: Sequence[Value]) -> Value:
    """The number of lanes, from operands of which at least one is batched."""
    return next(length(x, axis=0) for x, flag in zip(xs, flags) if flag)


def check_lanes(n, m):
    if n != m:
        raise ValueError("vmap over arguments of different lengths: each must have as many lanes")


same_lanes = define(
    "same_lanes", evaluate=check_lanes, infer=lambda n, m: NONE, helper=check_lanes, pure=False,
    fold=lambda n, m: value(None)
        if n is m or n.constant is not MISSING and n.constant == m.constant else None,
    vjp=lambda bar, y, n, m: (None, None), jvp=lambda dots, y, n, m: None,
    syntax=lambda n, m: ast.Call(ast.Name("check_lanes", ast.Load()), [n, m], []), depends=anything)


def batched_over(x: Value, count: Value, dtype: str | None = None) -> Value:
    """`x`, broadcast over `count` lanes."""
    dtype = dtype or dtype_of(x.type)
    shape = value((count, *(length(x, axis=k) for k in range(rank(x)))))
    match x.op.name if x.op is not None else "":
        case "zeros_like" | "zeros":
            return zeros(shape, dtype=dtype)
        case "empty" | "empty_like":
            return empty(shape, dtype=dtype)
    if isinstance(x.type, Scalar):
        return full(shape, x, dtype=dtype)
    return put(empty(shape, dtype=dtype), ..., x)


def _whole(flag: bool, x: Value, count: Value) -> Value:
    return x if flag else batched_over(x, count)


# ------------------------------------------------------------------- what numbers are in many lanes


def _complex_array(z: Value) -> Value:
    return z if dtype_of(z.type) == "complex128" else RECORDS["astype"](z, dtype="complex128")


def _define_array_twins() -> None:
    """Define array versions of Python's scalar functions: math.sin becomes np.sin, `a if c else b`
    np.where.
    """
    select.batch = where
    RECORDS["max_"].batch = lambda a, b: where(a < b, b, a)
    RECORDS["min_"].batch = lambda a, b: where(b < a, b, a)
    RECORDS["abs_"].batch = absolute
    RECORDS["not_"].batch, RECORDS["and_"].batch, RECORDS["or_"].batch = (logical_not, logical_and,
                                                                          logical_or)
    RECORDS["at_least_zero"].batch = lambda flags, n: maximum(n, 0)
    for of_arrays, of_numbers in IN_MATH.items():
        of_numbers.batch = of_arrays
    for name, dtype in (("float_", "float64"), ("int_", "int64"), ("bool_", "bool"),
                        ("complex_", "complex128")):
        RECORDS[name].batch = lambda x, dtype=dtype: RECORDS["astype"](x, dtype=dtype)
    RECORDS["convert"].batch = RECORDS["astype"]
    RECORDS["complex_of"].batch = lambda a, b: a + 1j * b
    RECORDS["round_to_int"].batch = lambda x: RECORDS["astype"](round_(x, 0), dtype="int64")
    # Python rounds decimals, NumPy binary fractions: lane by lane
    RECORDS["round_decimal"].batch = lambda x, n: None
    for of_number, of_arrays in OF_COMPLEX_NUMBERS.items():
        of_number.batch = lambda z, of_arrays=of_arrays: of_arrays(_complex_array(z))


_define_array_twins()

# ------------------------------------------------------------------------------- shapes as operands


def _batch_spread(flags, s: Value, x: Value, *, known=False, dtype=None):
    count, x_rank = lane_count(flags, (s, x)), rank(x) - flags[1]
    s = align(s, rank(s) - flags[0], x_rank, flags[0])
    if not flags[1]:
        shape = (count, *(length(x, axis=k) for k in range(x_rank)))
        return put(empty(value(shape), dtype=dtype or dtype_of(s.type)), ..., s)
    return spread_as(s, x, dtype)


def _batch_sum_to(flags, x_bar: Value, x: Value, *, known=False):
    """Batch un-broadcasting where ranks and extents of 1 are known; otherwise lane by lane."""
    if not flags[0]:
        return None
    own, part = dims_of(x_bar.type)[1:], dims_of(x.type)[flags[1]:]
    extra = len(own) - len(part)
    axes = [k for k, (n, m) in enumerate(zip(own[extra:], part)) if n != m]
    if any(part[k] != 1 and not isinstance(part[k], int) and part[k].may_be_one for k in axes):
        return None
    if extra:
        x_bar = _sum(x_bar, tuple(range(1, extra + 1)), False)
    axes = tuple(k + 1 for k in axes if part[k] == 1)
    return _sum(x_bar, axes, True) if axes else x_bar


def _sum(x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    return RECORDS["sum"](x, axis=axes[0] if len(axes) == 1 else axes, keepdims=keepdims)


def _batch_shaped_like(flags, x: Value, like: Value, *, leading=None):
    if leading is not None:
        return (shaped_like(x, like, leading=leading + 1) if all(flags) else x if flags[0]
                else batched_over(x, length(like, axis=0)))
    return shaped_like(x, like) if flags == (True, True) else x if flags[0] else spread(x, like)


def _batch_as_long_as(flags, x: Value, y: Value, *, axis, other):
    found = as_long_as(x, y, axis=axis + flags[0], other=other + flags[1])
    return found if flags[0] else batched_over(found, length(y, axis=0))


spread.batch, sum_to.batch, shaped_like.batch = _batch_spread, _batch_sum_to, _batch_shaped_like
as_long_as.batch = _batch_as_long_as
for _name in ("zeros_like", "ones_like", "empty_like"):
    if _name in RECORDS:
        RECORDS[_name].batch = lambda flags, x, record=RECORDS[_name], **attrs: record(x, **attrs)
for _name in ("copy", "stop_gradient"):
    if _name in RECORDS:
        RECORDS[_name].batch = lambda flags, x, record=RECORDS[_name], **attrs: record(x, **attrs)

# ----------------------------------------------------------------------------------------- indexing
#
# An index that is the same in every lane gets a full slice in front, one that differs the number of
# the lane: `x[arange(lanes), i]`.  NumPy then puts the axes of arrays of indices in front, before
# those of slices, and they are moved to where they stand in one lane.


def _entries(pattern: Pattern, flags, operands) -> list[tuple]:
    """Each entry of an index with its operands, and whether each of them is batched."""
    rest = list(zip(operands, flags))
    counts = [1 if p == "i" else p.count("x") if isinstance(p, str) else 0 for p in pattern]
    return [(p, [rest.pop(0) for _ in range(n)]) for p, n in zip(pattern, counts)]


def _is_ragged(entries) -> bool:
    """Whether lanes differ in a slice bound or in a mask."""
    return any(flag for p, part in entries
               for o, flag in part if p != "i" or dtype_of(o.type) == "bool")


class _Index:
    """An index into an array with `own` axes per lane: where each of its axes comes from."""

    def __init__(self, flags, operands, pattern: Pattern, own: int):
        entries = _entries(pattern, flags, operands)
        ints = [part[0] for p, part in entries if p == "i"]
        # a mask indexes all its axes, and gives one
        masks = [rank(o) - flag for o, flag in ints if dtype_of(o.type) == "bool"]
        self.pattern = expand(pattern, own - sum(n - 1 for n in masks))
        self.entries = _entries(self.pattern, flags, operands)
        self.places = [k for k, p in enumerate(self.pattern) if p == "i"]
        self.most = max((1 if dtype_of(o.type) == "bool" else rank(o) - flag for o, flag in ints),
                        default=0)
        self.fixed = len(self.pattern) - len(self.places)
        together = (not self.places
                    or self.places == list(range(self.places[0], self.places[-1] + 1)))
        self.together = together or not self.most
        self.place = self.places[0] if self.places and together else 0
        self.differs = any(flags)
        self.ragged = _is_ragged(entries)

    def aligned(self) -> list[Value]:
        """The operands, with lane axes aligned."""
        return [align(o, rank(o) - flag, self.most, flag) if p == "i" else o
                for p, part in self.entries for o, flag in part]

    def after_lanes(self, count: Value) -> tuple[Pattern, list[Value]]:
        """The index into the array of all lanes."""
        if self.together and not self.differs:
            return ("...", *self.pattern), [o for _, part in self.entries for o, _ in part]
        lane = arange(count)
        return (("i", *self.pattern),
                [align(lane, 0, self.most) if self.most else lane, *self.aligned()])

    def is_moved(self) -> bool:
        """Whether index-array axes come first in such an index, and do not in a lane."""
        return bool(self.most and self.place and self.differs)

    def moved(self, x: Value, first: int, back: bool) -> Value:
        """`x` with its index axes, from `first` on, moved to the front as in a lane, or `back`."""
        front, own = (tuple(range(k, k + self.most)) for k in (first, first + self.place))
        return moveaxis(x, *((front, own) if back else (own, front)))


def _batch_getitem(flags, x: Value, *operands: Value, pattern: Pattern):
    """Batch x[...]; None, without a rule, if the lanes' results may differ in length."""
    if not isinstance(x.type, Array):
        return None
    index = _Index(flags[1:], operands, pattern, rank(x) - flags[0])
    if index.ragged:
        return None
    if not flags[0]:
        return moveaxis(getitem(x, *index.aligned(), pattern=index.pattern), index.place, 0)
    pattern, operands = index.after_lanes(length(x, axis=0))
    part = getitem(x, *operands, pattern=pattern)
    return index.moved(part, 1, True) if index.is_moved() else part


def _batch_written(record):
    def batch(flags, x: Value, v: Value, *operands: Value, pattern: Pattern):
        count = lane_count(flags, (x, v, *operands))
        x = _whole(flags[0], x, count)
        index = _Index(flags[2:], operands, pattern, rank(x) - 1)
        if index.ragged or rank(v) is None or rank(v) - flags[1] > index.most + index.fixed:
            return None
        own, named = rank(v) - flags[1], index.most + index.fixed
        pattern, operands = index.after_lanes(count)
        if index.is_moved() and own > index.fixed - index.place:
            v = index.moved(align(v, own, named) if flags[1]
                            else expand_dims(v, tuple(range(named - own))) if own < named else v,
                            int(flags[1]), False)
        else:
            v = align(v, own, named, flags[1])
        return record(x, v, *operands, pattern=pattern)

    return batch


def is_ragged(op: Op, batched: Set[Value]) -> bool:
    """Whether lanes read parts of different lengths, because a `batched` operand determines the
    length.
    """
    if op.record is not getitem or not isinstance(op.inputs[0].type, Array):
        return False
    operands = op.inputs[1:]
    return _is_ragged(_entries(op.attrs["pattern"], [o in batched for o in operands], operands))


def _batch_diagonal(flags, x: Value, *, k: int):
    rows, columns = (length(x, axis=axis) for axis in (1, 2))
    square = dims_of(x.type)[1] == dims_of(x.type)[2] and k == 0
    places = arange(rows if square else maximum(minimum(rows + min(k, 0), columns - max(k, 0)), 0))
    return getitem(x, places + max(-k, 0), places + max(k, 0), pattern=("...", "i", "i"))


diagonal_record.batch = _batch_diagonal
getitem.batch = _batch_getitem
setitem.batch, additem.batch = _batch_written(setitem), _batch_written(additem)

# --------------------------------------------------------------------------------------- along axes


def _shifted(axis, own: int):
    """Axis numbers of one lane, as those of all lanes."""
    axes = tuple(k + 1 for k in normal_axes(axis, own))
    return axes[0] if len(axes) == 1 and not isinstance(axis, tuple) else axes


def _batch_reduction(record):
    def batch(flags, x: Value, *, axis, **attrs):
        own = rank(x) - 1
        if own:
            return record(x, axis=_shifted(axis, own), **attrs)
        # of one number: a truth value, a count
        dtype = dtype_of(record.infer(Value(Scalar(dtype_of(x.type))), axis=axis, **attrs))
        return x if dtype == dtype_of(x.type) else RECORDS["astype"](x, dtype=dtype)

    return batch


for _name in ("sum", "prod", "max", "min", "nanmax", "nanmin", "any", "all"):
    RECORDS[_name].batch = _batch_reduction(RECORDS[_name])


def _batch_root(record, reduced: int):
    """Reduce the first `reduced` operands, of which the first has all axes of the result, along the
    axes.
    """
    def batch(flags, *xs: Value, axis, keepdims):
        own, count = rank(xs[-1]) - flags[-1], rank(xs[0]) - 1
        if not flags[0]:
            return None
        first = [align(x, rank(x) - flag, count, flag) for x, flag in zip(xs[:reduced], flags)]
        rest = [x if flag else expand_dims(x, 0) for x, flag in zip(xs[reduced:], flags[reduced:])]
        return record(*first, *rest, axis=_shifted(axis, own) if own else (), keepdims=keepdims)

    return batch


for _name, _reduced in (("root", 2), ("root_forward", 4)):
    RECORDS[_name].batch = _batch_root(RECORDS[_name], _reduced)
RECORDS["added_up"].batch = RECORDS["added_up_lanes"].batch = (
    lambda flags, x, *, axis: RECORDS["added_up_lanes"](moveaxis(x, 1, 0), axis=0))


def _batch_along(record):
    """Batch an op along one axis; along all of them, flattened, only if there is only one."""
    def batch(flags, x: Value, *rest: Value, axis, **attrs):
        own = rank(x) - 1
        if any(flags[1:]) or not flags[0] or axis is None and own != 1:
            return None
        return record(x, *rest, axis=_shifted(axis or 0, own), **attrs)

    return batch


for _name in ("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort", "roll", "repeat"):
    if _name in RECORDS:
        RECORDS[_name].batch = _batch_along(RECORDS[_name])
fitted_record.batch = _batch_along(fitted_record)
flip_record.batch = lambda flags, x, *, axis: flip_record(x, axis=_shifted(axis, rank(x) - 1))



def _batch_transform(record):
    def batch(flags, x: Value, *lengths: Value, axes, **attrs):
        if not flags[0] or any(flags[1:]):
            return None
        from_end = axes is not None and max(axes if isinstance(axes, tuple) else (axes,)) < 0
        return record(x, *lengths, axes=axes if from_end else _shifted(axes, rank(x) - 1), **attrs)

    return batch


for _record in (fft, ifft, rfft, irfft):
    _record.batch = _batch_transform(_record)
for _name in ("dct", "dst"):
    RECORDS[_name].batch = _batch_along(RECORDS[_name])

# ------------------------------------------------------------------------------- other arrangements


def _batch_reshape(flags, x: Value, *sizes: Value):
    return reshape(x, length(x, axis=0), *sizes) if flags[0] and not any(flags[1:]) else None


def _batch_reshape_like(flags, x: Value, like: Value, *, known=False):
    if all(flags):
        return reshape_like(x, like)
    if not flags[0]:
        x = batched_over(x, length(like, axis=0))
    return reshape(x, length(x, axis=0),
                   *(length(like, axis=k) for k in range(flags[1], rank(like))))


def _batch_expand(flags, x: Value, *, axis, count=None):
    axes = axis if isinstance(axis, tuple) else (axis,)
    return expand_dims(x, tuple(k + 1 for k in normal_axes(axes, rank(x) - 1 + len(axes))))


def _batch_squeeze(flags, x: Value, *, axis, count=None):
    dims = dims_of(x.type)[1:]
    if axis is None and any(not isinstance(d, int) and d.may_be_one for d in dims):
        return None
    axes = (tuple(k for k, d in enumerate(dims) if d == 1) if axis is None
            else normal_axes(axis, len(dims)))
    return squeeze_record(x, axis=tuple(k + 1 for k in axes))


def _batch_transpose(flags, x: Value, *, axes):
    own = rank(x) - 1
    order = range(own)[::-1] if axes is None else normal_axes(axes, own)
    return transpose_record(x, axes=(0, *(k + 1 for k in order)))


def _batch_tile(flags, x: Value, *counts: Value):
    own = rank(x) - flags[0]
    if not flags[0] or any(flags[1:]):
        return None
    x = x if len(counts) <= own else expand_dims(x, tuple(range(1, len(counts) - own + 1)))
    return tile_record(x, value(1), *[value(1)] * (own - len(counts)), *counts)


def _batch_broadcast_to(flags, x: Value, *sizes: Value):
    if not flags[0] or any(flags[1:]):
        return None
    return broadcast_to_record(align(x, rank(x) - 1, len(sizes)), length(x, axis=0), *sizes)


reshape.batch, reshape_like.batch = _batch_reshape, _batch_reshape_like
ravel.batch = lambda flags, x: reshape(x, length(x, axis=0), value(-1))
expand_dims_record.batch, squeeze_record.batch = _batch_expand, _batch_squeeze
transpose_record.batch, tile_record.batch = _batch_transpose, _batch_tile
broadcast_to_record.batch = _batch_broadcast_to
as_array.batch = lambda flags, x, *, function: as_array(x, function=function)

# ------------------------------------------------------------------------------- making and joining


def _all_batched(flags, xs) -> list[Value]:
    count = lane_count(flags, xs)
    return [_whole(flag, x, count) for flag, x in zip(flags, xs)]


def _batch_concatenate(flags, *xs: Value, axis):
    xs = _all_batched(flags, xs)
    return concatenate_record(*xs, axis=normal_axes(axis, rank(xs[0]) - 1)[0] + 1)


def _batch_stack(flags, *xs: Value, axis):
    xs = _all_batched(flags, xs)
    return stack_record(*xs, axis=normal_axes(axis, rank(xs[0]))[0] + 1)


def _batch_array(flags, *leaves: Value, shape, dtype):
    leaves = _all_batched(flags, leaves)
    rows = stack_record(*leaves, axis=1)
    if len(shape) > 1:
        rest = (length(leaves[0], axis=k) for k in range(1, rank(leaves[0])))
        rows = reshape(rows, length(leaves[0], axis=0), *map(value, shape), *rest)
    return (rows if dtype is None or dtype == dtype_of(rows.type)
            else RECORDS["astype"](rows, dtype=dtype))


def _batch_full(flags, v: Value, *extents: Value):
    if any(flags[1:]):
        return None
    return full_record(align(v, rank(v) - 1, len(extents)), length(v, axis=0), *extents)


def _batch_full_like(flags, v: Value, x: Value):
    own = rank(x) - flags[1]
    v, count = align(v, rank(v) - flags[0], own, flags[0]), lane_count(flags, (v, x))
    return full_record(v, count, *(length(x, axis=k) for k in range(flags[1], rank(x))))


def _batch_linspace(flags, start: Value, stop: Value, num: Value, *, endpoint):
    if flags[2]:
        return None
    dtype = dtype_of(linspace_record.infer(*(Value(Scalar(x.type.dtype)) if flag else x
                                             for x, flag in zip((start, stop), flags)), num,
                                           endpoint=endpoint))
    start, stop = (align(x, 0, 1, flag) for x, flag in zip((start, stop), flags))
    k, last = expand_dims(arange(num), 0), num - 1 if endpoint else num
    parts = maximum(last, 1)
    if dtype in ("float32", "complex64"):
        k, parts = RECORDS["astype"](k, dtype="float32"), RECORDS["convert"](parts, dtype="float32")
    found = k * ((stop - start) / parts) + start  # as NumPy computes it
    return where(equal(k, 0), start, where(equal(k, last), stop, found)) if endpoint else found


concatenate_record.batch, stack_record.batch, array_record.batch = (_batch_concatenate,
                                                                    _batch_stack, _batch_array)
full_record.batch, full_like_record.batch, linspace_record.batch = (_batch_full, _batch_full_like,
                                                                    _batch_linspace)

# ----------------------------------------------------------------------------------- linear algebra
#
# Many products of one matrix with a vector are one product of two matrices.


def _batch_matmul(flags, a: Value, b: Value):
    # sums of products, which would broadcast an axis of length 1
    if all(flags) and 1 in (rank(a) - 1, rank(b) - 1):
        a = matched(a, b, -1, -1 if rank(b) == 2 else -2)
    match rank(a) - flags[0], rank(b) - flags[1]:
        case 1, 1:
            return (_sum(a * b, (1,), False) if all(flags) else matmul(a, b) if flags[0]
                    else matmul(b, a))
        case 2, 1 if flags == (False, True):
            return matmul(b, transpose_record(a, axes=None))
        case 2, 1 if all(flags):
            return _sum(a * expand_dims(b, 1), (2,), False)
        case 1, 2 if flags == (False, True):
            return matmul(a, b)
        case 1, 2 if all(flags):
            return _sum(expand_dims(a, 2) * b, (1,), False)
        case 1, own:
            return matmul(a, b) if not flags[0] or own == 2 else None  # of vectors and stacks
        case own, 1:
            return matmul(a, b) if not flags[1] else None
    return matmul(*align_all(flags, (a, b)))


def _batch_outer(flags, a: Value, b: Value):
    a = expand_dims(a, rank(a))
    return a * (expand_dims(b, 1) if flags[1] else b)


def _batch_solve(flags, a: Value, b: Value):
    own = rank(b) - flags[1]
    if flags == (False, True) and own == 1 and rank(a) == 2:
        return transpose_record(solve(a, transpose_record(b, axes=None)), axes=None)
    if flags[0] and not flags[1]:
        b = batched_over(b, length(a, axis=0))
    if own == 1:
        return squeeze_record(solve(a, expand_dims(b, 2)), axis=2)
    return solve(*align_all((flags[0], flags[0] or flags[1]), (a, b)))


for _name in ("tril", "triu"):
    RECORDS[_name].batch = lambda flags, x, *, k, record=RECORDS[_name]: record(x, k=k)
matmul.batch, outer_record.batch, solve.batch = _batch_matmul, _batch_outer, _batch_solve
for _name in ("inv", "det", "sign_of_det", "log_of_det", "cholesky"):
    RECORDS[_name].batch = lambda flags, x, record=RECORDS[_name]: record(x)


def _batch_of_matrix(rule: Callable) -> Callable:
    return lambda flags, det, a: rule(det, a) if all(flags) else None


def _batch_cofactors_along(flags, det: Value, a: Value, b: Value):
    """Batch many directions for one matrix, whose inverse is computed once."""
    if flags[0] != flags[1]:
        return None
    if not flags[2]:
        b = batched_over(b, length(a, axis=0))
    if not flags[1]:
        det, a = expand_dims(det, 0), expand_dims(a, 0)
    own = rank(b) - 1
    det, a = align(det, rank(det) - 1, own - 2), align(a, rank(a) - 1, own)
    return second_of(det, a, b)


RECORDS["cofactors"].batch = RECORDS["cofactors_of_each"].batch = _batch_of_matrix(cofactors_of)
RECORDS["inverse_or_nan"].batch = RECORDS["inverse_or_nan_of_each"].batch = _batch_of_matrix(
    inverse_of)
RECORDS["cofactors_along"].batch = RECORDS["cofactors_along_each"].batch = _batch_cofactors_along
