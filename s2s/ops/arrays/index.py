"""Indexing: reading and writing elements and slices.

The index is a pattern and its operands (see index_pattern.py), which follow the array in the op's
inputs.

    getitem(x, *operands)      x[...]
    setitem(x, v, *operands)   a new array, equal to x except there; prints as `x[...] = v`
    additem(x, v, *operands)   likewise `x[...] += v`, with repeated indices added once each
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from ...errors import ArrayNeededError, TypeMismatchError, UnsupportedError
from ...ir.builder import current, fresh_shape, meet
from ...ir.graph import MISSING, OPERATORS, Value
from ...ir.types import (
    INT,
    Array,
    Scalar,
    Static,
    Tuple,
    Type,
    Unknown,
    carries_derivative,
    may_be_one,
)
from ..core import array_raise_conditions
from ..core.cast import astype
from ..core.chain_rule import like_operand
from ..core.dependence_rules import anything, follows, spread_as
from ..core.record import (
    RECORDS,
    WITH_ARGUMENTS,
    array_type,
    define,
    dims_of,
    dtype_of,
    rank,
    runs_backwards,
    same_shape,
    value,
)
from ..core.shape import sum_to, zeros_of
from . import stablehlo_arrays
from .batched_index import batch_getitem, batch_written
from .index_pattern import (
    Pattern,
    count_named,
    expand,
    index_dims,
    index_syntax,
    is_basic,
    is_integer,
    is_same_index,
    paired,
    parse_index,
    python_index,
)


def _infer_getitem(x: Value, *operands: Value, pattern: Pattern):
    match x.type:
        case Unknown(_, dtype):
            if any(isinstance(o.constant, str) for o in operands):
                raise UnsupportedError(
                    f"{x.name or 'this'} is indexed with a string, so it is a container, "
                    "and what it holds is known only at a call",
                    current().line,
                    WITH_ARGUMENTS,
                )
            return Unknown(fresh_shape(), dtype)
        case Array(dtype):
            if any(isinstance(o.type, Unknown) for o in operands):
                return Unknown(fresh_shape(), dtype)
            return array_type(dtype, index_dims(x, operands, pattern))
        case Tuple(items):
            if len(set(items)) == 1 and pattern == ("i",):
                return items[0]
            raise ArrayNeededError(x, current().line)
    raise TypeMismatchError(
        f"{x.name or 'this'} is {x.type} and cannot be indexed", current().line, "index an array"
    )


def _infer_setitem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    match x.type:
        case Unknown():
            return x.type
        case Array():
            if not any(isinstance(o.type, Unknown) for o in operands):
                _check_fits(v.type, index_dims(x, operands, pattern))
            return x.type
    raise TypeMismatchError(
        f"{x.name or 'this'} is {x.type} and cannot be written into",
        current().line,
        "write into an array",
    )


def _check_fits(type: Type, dims: tuple) -> None:
    """Check that a written value broadcasts to the indexed part."""
    if not isinstance(type, (Scalar, Array, Unknown)):
        raise TypeMismatchError(
            f"{type} cannot be an element of an array", current().line, "write numbers or arrays"
        )
    given = dims_of(type)
    extra = len(given) - len(dims)
    if any(isinstance(d, int) and d != 1 for d in given[: max(extra, 0)]) or any(
        isinstance(m, int) and m != 1 and isinstance(n, int) and m != n
        for m, n in zip(given[::-1], dims[::-1])
    ):
        raise TypeMismatchError(
            f"an array of shape {_shown(given)} does not fit a place of shape {_shown(dims)}",
            current().line,
            "write a number, or an array of that shape",
        )
    for m in given[: max(extra, 0)]:  # leading axes of length 1 are dropped
        meet(m, 1)
    for m, n in zip(given[::-1], dims[::-1]):
        if m not in (1, n):
            meet(n, m, broadcasts="second" if may_be_one(m) else False)


def _shown(dims: tuple) -> str:
    return f"({', '.join(map(str, dims))}{',' * (len(dims) == 1)})"


# --------------------------------------------------------------------------------------- identities


def _written(x: Value, operands, pattern: Pattern) -> Value | None:
    """The value that the op that made `x` wrote at this very index, if it did (store-to-load
    forwarding).
    """
    op = x.op
    if op is None or op.record is not setitem or not is_basic(pattern, operands):
        return None
    same = is_same_index(pattern, operands, op.attrs["pattern"], op.inputs[2:])
    return op.inputs[1] if same else None


def _stands_for_nothing(x: Value, pattern: Pattern) -> bool:
    """Whether the index has a redundant `...`: NumPy's x[..., 0] of a vector is a view of rank 0,
    not a number.
    """
    return (isinstance(x.type, Array) and any(p is ... for p in pattern)
            and count_named(pattern) == x.type.rank)


def _without_ellipsis(pattern: Pattern) -> Pattern:
    return tuple(p for p in pattern if p is not ...)


def _fold_getitem(x: Value, *operands: Value, pattern: Pattern):
    if _stands_for_nothing(x, pattern):
        return getitem(x, *operands, pattern=_without_ellipsis(pattern))
    made = x.op.name if x.op is not None else ""
    if isinstance(x.type, (Tuple, Static)):
        return _fold_member(x, operands, pattern)
    if made == "shape" and pattern == ("i",) and isinstance(operands[0].constant, int):
        return RECORDS["length"](x.op.inputs[0], axis=operands[0].constant)
    if isinstance(x.type, Array) and not operands and all(p == "..." or p is ... for p in pattern):
        return x if count_named(pattern) <= x.type.rank else None
    if isinstance(x.type, Array) and not operands and None in pattern:  # x[:, None]
        return RECORDS["expand_dims"](
            x, axis=tuple(k for k, p in enumerate(expand(pattern, x.type.rank)) if p is None)
        )
    v = _written(x, operands, pattern)
    if v is not None and dtype_of(v.type) is not None:
        type = _infer_getitem(x, *operands, pattern=pattern)
        if v.type == type:
            return v
        if (
            isinstance(type, Scalar)
            and v.constant is not MISSING
            and dtype_of(v.type) == type.dtype
        ):
            return _number(v.constant, type.dtype)
    if (
        made in ("zeros_like", "spread")
        and is_basic(pattern, operands)
        and isinstance(x.type, Array)
    ):
        type = _infer_getitem(x, *operands, pattern=pattern)
        if isinstance(type, Scalar) and made == "zeros_like":
            return _number(0, type.dtype)
        if isinstance(type, Scalar) and x.op.inputs[0].type == type:
            return x.op.inputs[0]
    if (x.op is not None and x.op.record.fill is not None
            and _is_certainly_inside(x, operands, pattern)):
        return _number(x.op.record.fill, dtype_of(x.type))
    return None


def _is_certainly_inside(x: Value, operands: Sequence[Value], pattern: Pattern) -> bool:
    """Whether the operands are numbers that index one element of `x`, of known shape."""
    return (isinstance(x.type, Array) and pattern == ("i",) * x.type.rank
            and all(type(i.constant) is type(dim) is int and -dim <= i.constant < dim
                    for i, dim in zip(operands, x.type.dims)))


def _number(k, dtype: str) -> Value:
    """A known element: a NumPy number for the user's lines, where 1 / 0 must not raise; a Python
    number in adjoints.
    """
    if dtype == "float64" and runs_backwards():
        return value(float(k))
    return value(np.dtype(dtype).type(k))


def _fold_member(x: Value, operands, pattern: Pattern):
    """Fold a member or slice of a tuple at literal indices."""
    if len(pattern) != 1 or not all(type(o.constant) is int for o in operands):
        return None
    key = python_index(pattern, [o.constant for o in operands])
    content = x.constant if isinstance(x.type, Static) else tuple(range(len(x.type.items)))
    if not isinstance(content, (tuple, list, str)) or key is ... or key is None:
        return None
    try:
        picked = content[key]
    except IndexError:
        raise TypeMismatchError(
            f"index {key} of a tuple of {len(content)}", current().line, "index within the tuple"
        ) from None
    if isinstance(x.type, Static):
        return value(tuple(picked) if isinstance(picked, list) else picked)
    if isinstance(key, slice):
        return value(tuple(RECORDS["item"](x, index=k) for k in picked))
    return RECORDS["item"](x, index=picked)


def _is_unread(x: Value) -> bool:
    """Whether nothing in the current block has read `x`, created there, so far.

    A fold that skips a version of an array must not skip one that is read: the previous version
    would have to outlive the write, that is, be copied.
    """
    for op in reversed(current().block.ops):
        if op is x.op:
            return True
        if x in op.inputs or op.blocks:
            return False
    return False


def _fold_setitem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    """Remove stores of the value already there, and stores overwritten at once; a store to an array
    of no axes is the number stored.
    """
    if isinstance(x.type, Scalar) and isinstance(v.type, Scalar) and pattern in ((), (...,)):
        return v if v.type == x.type else astype(v, dtype=x.type.dtype)
    if _stands_for_nothing(x, pattern):
        return setitem(x, v, *operands, pattern=_without_ellipsis(pattern))
    if (
        v.op is not None
        and v.op.record is getitem
        and v.op.inputs[0] is x
        and is_basic(pattern, operands)
    ):
        if is_same_index(pattern, operands, v.op.attrs["pattern"], v.op.inputs[1:]):
            return x
    if x.op is not None and x.op.record in (setitem, additem) and _is_unread(x):
        if is_same_index(pattern, operands, x.op.attrs["pattern"], x.op.inputs[2:]):
            return setitem(x.op.inputs[0], v, *operands, pattern=pattern)
    return None


def _written_elsewhere(x: Value, operands: Sequence[Value], pattern: Pattern) -> bool:
    """Whether `x` comes from a write to a provably different element: another constant index from
    the same end.
    """
    if (x.op is None or x.op.record not in (setitem, additem) or x.op.attrs["pattern"] != pattern
        or set(pattern) != {"i"}):
        return False
    pairs = [(a.constant, b.constant) for a, b in zip(operands, x.op.inputs[2:])]
    return any(type(a) is type(b) is int and a != b and (a < 0) == (b < 0) for a, b in pairs)


def _fold_additem(x: Value, v: Value, *operands: Value, pattern: Pattern):
    """In a reverse sweep, adding to zero is storing; elsewhere -0.0 forbids that."""
    if _stands_for_nothing(x, pattern):
        return additem(x, v, *operands, pattern=_without_ellipsis(pattern))
    if not runs_backwards() or x.op is None or not is_basic(pattern, operands):
        return None
    if not isinstance(x.type, Array) or not same_shape(
        v.type, _infer_getitem(x, *operands, pattern=pattern)
    ):
        return None
    before = x
    while _written_elsewhere(before, operands, pattern):
        before = before.op.inputs[0]
    if before.op is not None and before.op.name == "zeros_like":
        return setitem(x, v, *operands, pattern=pattern)
    if (
        _written(x, operands, pattern) is not None
        and x.op.inputs[1].constant == 0
        and _is_unread(x)
    ):
        return setitem(x.op.inputs[0], v, *operands, pattern=pattern)
    return None


# --------------------------------------------------------------------------------- as Python has it


def _set(x, v, *operands, pattern):
    result = np.array(x)
    result[python_index(pattern, operands)] = v
    return result


def _add(x, v, *operands, pattern):
    result = np.array(x)
    np.add.at(result, python_index(pattern, operands), v)
    return result


# -------------------------------------------------------------------------------------- derivatives
#
# Note [Writes that meet]
# Where an array of integers names an element twice, `x[i] = v` keeps the last write, so only that
# part of v has a derivative: `last_writes` computes it.  `x[i] += v` in the user's program is x[i]
# = x[i] + v, as in NumPy; `additem`, which is np.add.at, adds every one.


def _vjp_getitem(bar, y, x, *operands, pattern):
    def accumulate(x_bar):
        return additem(zeros_of(x) if x_bar is None else x_bar, bar, *operands, pattern=pattern)

    return accumulate, *(None for _ in operands)


def _vjp_setitem(bar, y, x, v, *operands, pattern):
    def restore(x_bar):
        rest = setitem(bar, 0.0, *operands, pattern=pattern)
        return rest if x_bar is None else x_bar + rest

    # nothing of the old value is left
    is_of_all = all(p == "..." or p is ... for p in pattern)
    return (None if is_of_all else restore, _part_of(bar, v, operands, pattern, written=True),
            *(None for _ in operands))


def _vjp_additem(bar, y, x, v, *operands, pattern):
    return bar, _part_of(bar, v, operands, pattern), *(None for _ in operands)


def _part_of(
    bar: Value, v: Value, operands, pattern: Pattern, written: bool = False
) -> Value | None:
    """The part of a cotangent that belongs to `v`."""
    if not carries_derivative(v.type):
        return None
    part = getitem(bar, *operands, pattern=pattern)
    if written and _may_repeat(pattern, operands):
        part = RECORDS["where"](is_last(bar, *operands, pattern=pattern), part, 0.0)
    extra = None if None in (rank(v), rank(part)) else rank(v) - rank(part)
    if extra and extra > 0:  # NumPy drops leading axes of length 1
        part = getitem(part, pattern=(None,) * extra + (...,))
    return like_operand(part if written and _was_as_long(v, part) else sum_to(part, v), v)


def _was_as_long(v: Value, part: Value) -> bool:
    """Whether writing `v` to `part` involved no broadcasting in either direction: `x += y` raises
    otherwise.

    It is computed from an operand of this shape, so its shape is that or a larger one, and it did
    fit.
    """
    return (
        v.op is not None
        and v.op.record.elementwise
        and isinstance(v.type, Array)
        and isinstance(part.type, Array)
        and v.type.rank == part.type.rank
        and any(same_shape(u.type, part.type) for u in v.op.inputs)
    )


def _may_repeat(pattern: Pattern, operands) -> bool:
    """Whether an index may name an element twice; a mask, or an array that counts up or says where
    a mask is true, does not.
    """
    arrays = [o for p, o in paired(pattern, operands) if p == "i" and not is_integer(o)]
    if any(isinstance(o.type, Unknown) for o in arrays):
        return True
    if all(rank(o) == 1 for o in arrays) and any(_counts(o) for o in arrays):
        return False
    return any(o.type.dtype != "bool" for o in arrays)


def _counts(x: Value) -> bool:
    """Whether `x` is np.arange or np.flatnonzero, plus or minus a number."""
    while (
        x.op is not None
        and x.op.name in ("add", "subtract")
        and isinstance(x.op.inputs[1].type, Scalar)
    ):
        x = x.op.inputs[0]
    return x.op is not None and x.op.record.distinct


def last_writes(shape, index):
    """Which parts of v remain after a[index] = v, for an array of this shape: those written last."""
    order = np.zeros(shape, np.int64)
    count = np.arange(order[index].size).reshape(order[index].shape)
    order[index] = count
    return order[index] == count


is_last = define(
    "is_last",
    evaluate=lambda x, *operands, pattern: last_writes(
        np.shape(x), python_index(pattern, operands)
    ),
    infer=lambda x, *operands, pattern: _with_dtype(
        _infer_getitem(x, *operands, pattern=pattern), "bool"
    ),
    helper=last_writes,
    syntax=lambda x, *operands, pattern: ast.Call(
        ast.Name("last_writes", ast.Load()),
        [ast.Attribute(x, "shape", ast.Load()), _index_as_object(pattern, operands)],
        [],
    ),
    partials=(None,),
    shapes=(0,),
    depends=anything,
)


def place_within(i, n, start, stop, step):
    """The index in x, of length n, of x[start:stop:step][i]."""
    first, end, stride = slice(start, stop, step).indices(n)
    count = len(range(first, end, stride))
    if not -count <= i < count:
        raise IndexError("an index is out of range for a slice")
    return first + (i if i >= 0 else i + count) * stride


within = define(
    "within",
    evaluate=place_within,
    infer=lambda i, n, start, stop, step: INT,
    helper=place_within,
    syntax=lambda *args: ast.Call(ast.Name("place_within", ast.Load()), list(args), []),
    partials=(None,),
    cheap=True,
    depends=anything,
)


def _with_dtype(type: Type, dtype: str) -> Type:
    return (
        Unknown(type.shape, dtype)
        if isinstance(type, Unknown)
        else array_type(dtype, dims_of(type))
    )


def _index_as_object(pattern: Pattern, operands) -> ast.expr:
    """The index as an argument, with its slices spelled out."""
    entries = []
    for p, entry in paired(pattern, operands):
        if p == "i":
            entries.append(entry)
        elif isinstance(p, str):
            bounds = [ast.Constant(None) if bound is None else bound for bound in entry]
            entries.append(ast.Call(ast.Name("slice", ast.Load()), bounds, []))
        else:
            entries.append(ast.Constant(p))
    return entries[0] if len(entries) == 1 else ast.Tuple(entries, ast.Load())


getitem = define(
    "getitem",
    evaluate=lambda x, *operands, pattern: x[python_index(pattern, operands)],
    infer=_infer_getitem,
    fold=_fold_getitem,
    syntax=lambda x, *operands, pattern: ast.Subscript(
        x, index_syntax(pattern, operands), ast.Load()
    ),
    vjp=_vjp_getitem,
    linear=(0,),
    cheap=True,
    views=(0,),
    moves=(0,), batch=batch_getitem, indices=1, leaves_out=True, native="compiled",
    stablehlo=stablehlo_arrays.read,
)


@follows(0, 1)
def _depends_set(unions, y, deps, x, v, *operands, pattern):
    found = np.array(spread_as(deps[0], x))
    found[python_index(pattern, operands)] = deps[1]
    return found


@follows(0, 1)
def _depends_add(unions, y, deps, x, v, *operands, pattern):
    return add_into(unions, np.array(spread_as(deps[0], x)), deps[1],
                    python_index(pattern, operands))


def add_into(unions, found: np.ndarray, deps, index):
    """`found`, with `deps` added at each element that `index` names, as often as it is named."""
    places = np.arange(found.size).reshape(found.shape)[index]
    if np.ndim(places) == 0:
        found[index] = unions.both(int(found[index]), int(deps))
        return found
    named, groups = np.unique(places, return_inverse=True)
    members = np.broadcast_to(deps, places.shape).ravel()
    all_groups = np.concatenate([np.arange(named.size), groups.ravel()])
    found.flat[named] = unions.grouped(all_groups, np.concatenate([found.flat[named], members]),
                                       named.size)
    return found


setitem = define(
    "setitem",
    evaluate=_set,
    infer=_infer_setitem,
    fold=_fold_setitem,
    vjp=_vjp_setitem,
    linear=(0, 1), stretches=(1,),
    writes=0,
    views=(0,),
    depends=_depends_set, batch=batch_written, indices=2, native="compiled", same_shape=0,
    stablehlo=stablehlo_arrays.written,
)
additem = define(
    "additem",
    evaluate=_add,
    infer=_infer_setitem,
    fold=_fold_additem,
    vjp=_vjp_additem,
    linear=(0, 1), stretches=(1,),
    writes=0,
    views=(0,),
    depends=_depends_add, batch=batch_written, indices=2, native="compiled", warns="overflow",
    same_shape=0, accumulates=True, stablehlo=stablehlo_arrays.added,
)
getitem.raises, setitem.raises, additem.raises = (array_raise_conditions.READ, array_raise_conditions.WRITE,
                                                  array_raise_conditions.WRITE)


def take(x: Value, key) -> Value:
    """The expression `x[key]` as a Value."""
    pattern, operands = parse_index(key)
    return getitem(x, *operands, pattern=pattern)


OPERATORS["getitem"] = take


def put(x: Value, key, v) -> Value:
    """The array `x` after `x[key] = v`."""
    pattern, operands = parse_index(key)
    return setitem(x, value(v), *operands, pattern=pattern)
