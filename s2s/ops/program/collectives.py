"""Collectives: ops over a named axis, on which all lanes of `vmap(f, axis_name=...)` meet.

    psum(x, "i")    in a lane    becomes    np.sum(x, axis=0)    for all lanes

A program of one lane names the axis; whoever runs many lanes binds the name.  Each record says in
`across` what it is where the lanes lie along the leading axis of its operands, and in `alike`
whether all lanes get the same; where workers share the lanes of a `pmap`, `among` says what it is
for those of one, or else it is gathered (workers.py).  Names that nobody binds are refused where
code is generated (`unbound_name`).

Derivatives are those of all lanes together, as in JAX: what a lane's gradient holds is the
derivative of the sum of all lanes' results.  So a collective, which is a linear map from all lanes'
operands to all lanes' results, has the transposed map as its `vjp`: psum is its own, all_gather
has psum_scatter, ppermute the inverse permutation.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ...errors import TypeMismatchError, UnboundAxisError, UnsupportedError
from ...ir.builder import current, emit
from ...ir.graph import Function, Op, Value
from ...ir.types import NONE, Array, Extent, Scalar, Static, Tuple, Type, Unknown
from ...lazy_import import Named
from ..arrays.axes import moveaxis
from ..arrays.create import arange, array_record, asarray, zeros_like
from ..arrays.index import put, take
from ..arrays.reduce import amax, amin, any_, mean, sum_
from ..arrays.reshape import reshape_
from ..core.axis_numbers import normal_axis
from ..core.batch_rules import batched_over, on_all_lanes
from ..core.cast import as_dtype
from ..core.control import item, packed
from ..core.dependence_rules import anything, nothing
from ..core.elementwise import equal, strong_product, where
from ..core.record import (
    Record,
    array_type,
    define,
    dims_of,
    dtype_of,
    is_static,
    no_jvp,
    no_vjp,
    numpy_function,
    rank,
    static,
    value,
)
from ..core.shape import float_dtype, length
from .lane_in_python import called, unbound
from .workers import Share

# -------------------------------------------------------------------------------------------- names


def axis_extent(name: Hashable) -> Extent:
    """The number of lanes of the axis `name`."""
    return Extent(f"axis.{name}")


def is_over(op: Op, name: Hashable) -> bool:
    """Whether `op` is a collective over the axis `name`."""
    return op.record.across is not None and op.attrs["name"] == name


def first_collective(ops: Sequence[Op], name: Hashable | None = None) -> Op | None:
    """The first collective over the axis `name`, or over any, in `ops`, their blocks and the
    functions that they call.
    """
    pending, seen = list(ops), set()
    for op in pending:
        if op.record.across is not None and (name is None or is_over(op, name)):
            return op
        for block in op.blocks:
            pending.extend(block.ops)
        if op.name == "call" and (key := (op.attrs["callee"],
                                          tuple(x.type for x in op.inputs))) not in seen:
            seen.add(key)
            pending.extend(op.attrs["callee"].function_for(op.inputs).block.ops)
    return None


def require_bound(function: Function) -> None:
    """Refuse code in which an axis has a name and no lanes."""
    op = first_collective(function.block.ops)
    if op is not None:
        raise unbound_name(op)


def unbound_name(op: Op) -> UnboundAxisError:
    return UnboundAxisError(f"unbound axis name {op.attrs['name']!r}", op.line,
                            f"call the function under s2s.vmap(..., axis_name="
                            f"{op.attrs['name']!r})")


def _outside(*xs, name: Hashable, **attrs):
    raise unbound(name)


def names_of(axis_name) -> tuple[Hashable, ...]:
    """The names in an argument `axis_name`: of one axis, or of several."""
    found = static(axis_name, "axis_name")
    names = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    for name in names:
        if name is None or isinstance(name, (int, np.integer)):
            raise TypeMismatchError(f"axis_name is or has {name!r}", current().line,
                                    "give the name of an axis; along an axis of an array, call "
                                    "NumPy's function")
    return names


# ------------------------------------------------------------------------------------------ records


def _collective(name: str, **fields) -> Record:
    def syntax(*xs: ast.expr, name: Hashable, **attrs) -> ast.expr:
        keywords = [ast.keyword(k, ast.Constant(v)) for k, v in attrs.items()]
        return ast.Call(ast.Name(record.name, ast.Load()), [*xs, ast.Constant(name)], keywords)

    record = define(name, **{"evaluate": _outside, "syntax": syntax, "depends": anything} | fields)
    return record


def _same_shape(dtype: Callable = lambda d: d) -> Callable:
    def infer(x: Value, *others: Value, name: Hashable) -> Type:
        made = dtype_of(x.type) and dtype(dtype_of(x.type))
        match x.type:
            case Scalar(weak=weak):
                return Scalar(made, weak)
            case Array(dims=dims):
                return Array(made, dims)
            case Unknown(shape):
                return Unknown(shape, made)
        rank(x)  # raises
    return infer


def _counted(dtype: str) -> str:
    """The dtype of a sum: that of its operands; of truth values, an integer."""
    return "int64" if dtype == "bool" else dtype


def _averaged(dtype: str) -> str:
    return dtype if np.dtype(dtype).kind in "fc" else "float64"


def _sum_across(lanes: Value, flags, x: Value) -> Value:
    dtype = _counted(dtype_of(x.type))
    return as_dtype(sum_(x, axis=0), dtype) if flags[0] else as_dtype(x, dtype) * lanes


def _sum_among(share: Share, flags, x: Value) -> Value:
    dtype = _counted(dtype_of(x.type))
    return share.sum(as_dtype(x, dtype)) if flags[0] else as_dtype(x, dtype) * share.all


def _mean_among(share: Share, flags, x: Value) -> Value:
    x = as_dtype(x, _averaged(dtype_of(x.type)))
    return as_dtype(share.sum(x) / share.all, dtype_of(x.type)) if flags[0] else x


psum_record = _collective(
    "psum",
    infer=_same_shape(_counted),
    linear=(0,),
    vjp=lambda bar, y, x, *, name: (psum_record(value(bar), name=name),),
    across=_sum_across, among=_sum_among, alike=True, batch=on_all_lanes, same_shape=0,
)

pmean_record = _collective(
    "pmean",
    infer=_same_shape(_averaged),
    linear=(0,),
    vjp=lambda bar, y, x, *, name: (pmean_record(value(bar), name=name),),
    across=lambda lanes, flags, x: (mean(x, axis=0) if flags[0]
                                    else as_dtype(x, _averaged(dtype_of(x.type)))),
    among=_mean_among, alike=True, batch=on_all_lanes, same_shape=0,
)


def _share(y: Value, x: Value, name: Hashable) -> Value:
    """The part that this lane has in the derivative of an extreme `y`: lanes that tie share it."""
    hit = as_dtype(equal(x, y), float_dtype(x.type))
    return hit / psum_record(hit, name=name)


# what an extreme is, where it is differentiated: the sum over all lanes of their shares
shares_record = _collective(
    "psum_of_shares",
    infer=lambda x, share, *, name: x.type,
    fold=lambda x, share, *, name: psum_record(strong_product(share, x), name=name),
    linear=(0,),
    vjp=lambda bar, y, x, share, *, name: (
        strong_product(share, psum_record(value(bar), name=name)), None),
)


def _extreme(name: str, function: Callable, among: Callable) -> Record:
    return _collective(
        name,
        infer=_same_shape(),
        differentiated_as=lambda y, x, *, name: (shares_record, (x, _share(y, x, name)),
                                                 {"name": name}),
        across=lambda lanes, flags, x: function(x, axis=0) if flags[0] else x,
        among=lambda share, flags, x: among(share, x) if flags[0] else x,
        alike=True, batch=on_all_lanes, same_shape=0,
    )


pmax_record = _extreme("pmax", amax, Share.largest)
pmin_record = _extreme("pmin", amin, Share.smallest)


def _with_axis(x: Value, axis: int, dim) -> Type:
    if rank(x) is None:
        raise UnsupportedError("a collective that adds or removes an axis, of an array of unknown "
                               "rank", current().line, "call it with arguments first")
    dims = list(dims_of(x.type))
    if dim is None:
        del dims[axis]
    else:
        dims.insert(axis, dim)
    return array_type(dtype_of(x.type), tuple(dims))


def _spread(lanes: Value, flag: bool, x: Value) -> Value:
    """The operand of all lanes, also where it is the same in each."""
    return x if flag else batched_over(x, lanes)


def check_rows(n, m):
    if n != m:
        raise ValueError(f"{m} rows are handed out to {n} lanes: a row for each is needed")


as_many_rows = define(
    "as_many_rows", evaluate=check_rows, infer=lambda n, m: NONE, helper=check_rows, pure=False,
    fold=lambda n, m: value(None) if n is m else None, vjp=no_vjp, jvp=no_jvp,
    syntax=lambda n, m: ast.Call(ast.Name("check_rows", ast.Load()), [n, m], []), depends=anything)


def _of_each_lane(lanes: Value, x: Value) -> Value:
    """`x`, whose leading axis has to be as long as there are lanes."""
    as_many_rows(lanes, length(x, axis=0))
    return x


gather_record = _collective(
    "all_gather",  # puts a new axis, of all lanes, at `axis`
    infer=lambda x, *, name, axis: _with_axis(x, axis, axis_extent(name)),
    linear=(0,),
    vjp=lambda bar, y, x, *, name, axis: (scatter_record(bar, name=name, axis=axis),),
    across=lambda lanes, flags, x, *, axis: moveaxis(_spread(lanes, flags[0], x), 0, axis),
    alike=True,
    batch=lambda flags, x, *, name, axis: gather_record(x, name=name, axis=axis + 1),
)

scatter_record = _collective(
    "psum_scatter",  # each lane gets its row, along `axis`, of the sum of all
    infer=lambda x, *, name, axis: _with_axis(x, axis, None),
    linear=(0,),
    vjp=lambda bar, y, x, *, name, axis: (gather_record(value(bar), name=name, axis=axis),),
    across=lambda lanes, flags, x, *, axis: _of_each_lane(
        lanes, moveaxis(_sum_across(lanes, flags, x), axis, 0)),
    batch=lambda flags, x, *, name, axis: scatter_record(x, name=name, axis=axis + 1),
)


def _permute_across(lanes: Value, flags, x: Value, sources: Value, targets: Value) -> Value:
    """Rows that move from lane to lane; zeros where none arrives."""
    if any(flags[1:]):
        raise UnsupportedError("ppermute with a permutation that differs from lane to lane",
                               current().line, "use one that all lanes share, and all_gather for "
                               "what each lane chooses")
    x = _spread(lanes, flags[0], x)
    pairs = _constants(sources), _constants(targets)
    if None not in pairs and sorted(pairs[1]) == list(range(len(pairs[1]))):
        if lanes.constant == len(pairs[1]):
            order = dict(zip(reversed(pairs[1]), reversed(pairs[0])))
            return take(x, asarray(value(tuple(order[k] for k in sorted(order)))))
    empty = zeros_like(x)
    return put(empty, targets, take(x, sources))


def _constants(x: Value) -> tuple | None:
    """The numbers of an array that is written out, if they are known."""
    if x.op is None or x.op.record is not array_record:
        return None
    return static(value(tuple(x.op.inputs))) if all(map(is_static, x.op.inputs)) else None


permute_record = _collective(
    "ppermute",  # lane targets[k] gets what lane sources[k] has
    infer=_same_shape(),
    linear=(0,),
    vjp=lambda bar, y, x, sources, targets, *, name: (
        permute_record(value(bar), targets, sources, name=name), None, None),
    across=_permute_across,
    batch=lambda flags, x, *pairs, name: (None if any(flags[1:])
                                          else permute_record(x, *pairs, name=name)),
    same_shape=0,
)


def _exchange_across(lanes: Value, flags, x: Value, *, split: int, concat: int) -> Value:
    """Lane s gets row s, along `split`, of each lane, one after another along `concat`."""
    x = moveaxis(_spread(lanes, flags[0], x), split + 1, 0)
    return moveaxis(_of_each_lane(lanes, x), 1, concat + 1)


def _infer_exchange(x: Value, *, name: Hashable, split: int, concat: int) -> Type:
    without = Value(_with_axis(x, split, None))
    return _with_axis(without, concat, axis_extent(name))


exchange_record = _collective(
    "all_to_all",
    infer=_infer_exchange,
    linear=(0,),
    vjp=lambda bar, y, x, *, name, split, concat: (
        exchange_record(bar, name=name, split=concat, concat=split),),
    across=_exchange_across,
    batch=lambda flags, x, *, name, split, concat: exchange_record(
        x, name=name, split=split + 1, concat=concat + 1),
)

size_record = _collective(
    "axis_size", infer=lambda *, name: Scalar("int64", weak=True), vjp=no_vjp, jvp=no_jvp,
    depends=nothing, across=lambda lanes, flags: lanes, alike=True, natural=True,
)

index_record = _collective(
    "axis_index", infer=lambda *, name: Scalar("int64"), vjp=no_vjp, jvp=no_jvp,
    depends=nothing, across=lambda lanes, flags: arange(lanes), natural=True,
)

# ------------------------------------------------------------------------------- what programs call


def _of_leaves(x, rule: Callable[[Value], Value]) -> Value:
    """`x` with each number and array in it replaced by what `rule` makes of it."""
    x = value(x)
    if isinstance(x.type, Tuple):
        return packed([_of_leaves(item(x, index=k), rule) for k in range(len(x.type.items))],
                      x.type.form)
    return x if isinstance(x.type, Static) else rule(x)


def _require_no_groups(groups) -> None:
    if groups is not None and not (is_static(groups) and static(groups) is None):
        raise UnsupportedError("axis_index_groups", current().line,
                               "give the groups an axis of their own: reshape, and nest two vmaps")


def _over_all(record: Record, x, axis_name, groups) -> Value:
    _require_no_groups(groups)

    def rule(x: Value) -> Value:
        for name in reversed(names):
            x = record(x, name=name)
        return x

    names = names_of(axis_name)
    return _of_leaves(x, rule)


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum of `x` over all lanes of the axis `axis_name`, or of several; `x` may be a tree."""
    return called("psum", axis_name, x)


def pmean(x, axis_name, *, axis_index_groups=None):
    """The mean of `x` over all lanes of an axis, or of several; `x` may be a tree."""
    return called("pmean", axis_name, x)


def pmax(x, axis_name, *, axis_index_groups=None):
    """The largest `x` of all lanes, element by element; lanes that tie share its derivative."""
    return called("pmax", axis_name, x)


def pmin(x, axis_name, *, axis_index_groups=None):
    """The smallest `x` of all lanes, element by element; lanes that tie share its derivative."""
    return called("pmin", axis_name, x)


for _function, _record in ((psum, psum_record), (pmean, pmean_record), (pmax, pmax_record),
                           (pmin, pmin_record)):
    numpy_function(_function)(
        lambda x, axis_name, *, axis_index_groups=None, record=_record: _over_all(
            record, x, axis_name, axis_index_groups))


def axis_size(axis_name):
    """The number of lanes of an axis; of several, their product."""
    return called("axis_size", axis_name)


@numpy_function(axis_size)
def _axis_size(axis_name) -> Value:
    product = value(1)
    for name in names_of(axis_name):
        product = product * emit(size_record, name=name)
    return product


def axis_index(axis_name):
    """The number of this lane along an axis, from 0; of several axes, the last counts fastest."""
    return called("axis_index", axis_name)


@numpy_function(axis_index)
def _axis_index(axis_name) -> Value:
    found = value(0)
    for name in names_of(axis_name):
        found = found * emit(size_record, name=name) + emit(index_record, name=name)
    return found


def all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False):
    """The `x` of all lanes, stacked along a new axis `axis`; with `tiled` concatenated along it."""
    return called("all_gather", axis_name, x, axis, tiled)


@numpy_function(all_gather)
def _all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False) -> Value:
    _require_no_groups(axis_index_groups)
    names, tiled, axis = names_of(axis_name), static(tiled, "tiled"), static(axis, "axis")
    return _of_leaves(x, lambda x: _gathered(x, names, axis, tiled))


def _gathered(x: Value, names: Sequence[Hashable], axis: int, tiled: bool) -> Value:
    axis = normal_axis(axis, known_rank(x) + (not tiled))
    for name in reversed(names):
        x = gather_record(x, name=name, axis=axis)
    return merged(x, axis, len(names) + tiled)


def known_rank(x: Value) -> int:
    """The number of axes of `x`; UnsupportedError if it is unknown."""
    if rank(x) is None:
        raise UnsupportedError("a collective along an axis of an array of unknown rank",
                               current().line, "call the function with arguments first")
    return rank(x)


def merged(x: Value, axis: int, count: int) -> Value:
    """`x` with `count` axes from `axis` on made one."""
    if count == 1:
        return x
    lengths = [length(x, axis=k) for k in range(rank(x))]
    product = lengths[axis]
    for n in lengths[axis + 1:axis + count]:
        product = product * n
    return reshape_(x, value((*lengths[:axis], product, *lengths[axis + count:])))


def cut(x: Value, axis: int, counts: Sequence[Value]) -> Value:
    """`x` with an axis cut in as many as there are `counts`, and a last one of what is left."""
    lengths = [length(x, axis=k) for k in range(rank(x))]
    rest = lengths[axis]
    for n in counts:
        rest = rest // n
    return reshape_(x, value((*lengths[:axis], *counts, rest, *lengths[axis + 1:])))


def psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    """The sum over all lanes, of which each lane gets its part along `scatter_dimension`: a row, or
    with `tiled` as many rows as there are for each lane.
    """
    return called("psum_scatter", axis_name, x, scatter_dimension, tiled)


@numpy_function(psum_scatter)
def _psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None,
                  tiled=False) -> Value:
    _require_no_groups(axis_index_groups)
    names, tiled = names_of(axis_name), static(tiled, "tiled")
    axis = static(scatter_dimension, "scatter_dimension")
    return _of_leaves(x, lambda x: _scattered(x, names, axis, tiled))


def _scattered(x: Value, names: Sequence[Hashable], axis: int, tiled: bool) -> Value:
    axis = normal_axis(axis, known_rank(x))
    sizes = [emit(size_record, name=name) for name in names]
    if tiled or len(names) > 1:
        x = cut(x, axis, sizes if tiled else sizes[:-1])
    for name in names:
        x = scatter_record(x, name=name, axis=axis)
    return x


def all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False):
    """Hand row s of `x`, along `split_axis`, to lane s; what arrives is stacked along a new axis
    `concat_axis`, or with `tiled` concatenated along it.
    """
    return called("all_to_all", axis_name, x, split_axis, concat_axis, tiled)


@numpy_function(all_to_all)
def _all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None,
                tiled=False) -> Value:
    _require_no_groups(axis_index_groups)
    names, tiled = names_of(axis_name), static(tiled, "tiled")
    split, concat = static(split_axis, "split_axis"), static(concat_axis, "concat_axis")
    return _of_leaves(x, lambda x: _exchanged(x, names, split, concat, tiled))


def pswapaxes(x, axis_name, axis, *, axis_index_groups=None):
    """Exchange the axis `axis` of `x` with that of the lanes, which is as long."""
    return called("all_to_all", axis_name, x, axis, axis, False)


@numpy_function(pswapaxes)
def _pswapaxes(x, axis_name, axis, *, axis_index_groups=None) -> Value:
    return _all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _exchanged(x: Value, names: Sequence[Hashable], split: int, concat: int, tiled: bool) -> Value:
    split, concat = normal_axis(split, known_rank(x)), normal_axis(concat, known_rank(x))
    sizes = [emit(size_record, name=name) for name in names]
    if tiled or len(names) > 1:
        x = cut(x, split, sizes if tiled else sizes[:-1])
    for k, name in enumerate(names):
        x = exchange_record(x, name=name, split=split + k, concat=split + k)
    x = moveaxis(merged(x, split, len(names)), split, concat)
    return merged(x, concat, 2) if tiled else x


def ppermute(x, axis_name, perm):
    """`x` of another lane: for each (source, target) in `perm`, lane `target` gets what lane
    `source` has; zeros where nothing arrives.
    """
    return called("ppermute", axis_name, x, perm)


@numpy_function(Named("s2s.library.lane_functions", "move_lanes"))
def _move_lanes(x, axis_name, sources, targets) -> Value:
    names = names_of(axis_name)
    ends = tuple(as_dtype(asarray(lanes), "int64") for lanes in (sources, targets))
    if None not in map(_constants, ends):
        for what, lanes in zip(("source", "target"), map(_constants, ends)):
            if len(set(lanes)) < len(lanes) or min(lanes, default=0) < 0:
                raise TypeMismatchError(f"ppermute names a {what} twice, or a negative one",
                                        current().line, "name each lane at most once, from 0")
    else:
        once(*ends)
    if len(names) > 1:
        return _of_leaves(x, lambda x: _moved(x, names, *ends))
    return _of_leaves(x, lambda x: permute_record(x, *ends, name=names[0]))


def check_once(sources, targets):
    for lanes in (sources, targets):
        if len(np.unique(lanes)) < len(lanes) or len(lanes) > 0 and np.min(lanes) < 0:
            raise ValueError("ppermute names a lane twice, or a negative one")


once = define(
    "once", evaluate=check_once, infer=lambda sources, targets: NONE, helper=check_once, pure=False,
    vjp=no_vjp, jvp=no_jvp, depends=anything,
    syntax=lambda *ends: ast.Call(ast.Name("check_once", ast.Load()), list(ends), []))


def _moved(x: Value, names: Sequence[Hashable], sources: Value, targets: Value) -> Value:
    """What arrives in this lane of several axes, from among what all lanes have."""
    arrives = equal(targets, _axis_index(names))
    place = sum_(where(arrives, sources, 0))
    found = take(_gathered(x, names, 0, False), place)
    return where(any_(arrives), found, as_dtype(value(0), dtype_of(x.type)))


def pshuffle(x, axis_name, perm):
    """`x` of another lane: lane k gets what lane perm[k] has."""
    return called("ppermute", axis_name, x, [(source, k) for k, source in enumerate(perm)])


@numpy_function(pshuffle)
def _pshuffle(x, axis_name, perm) -> Value:
    order = asarray(perm)
    known = _constants(order)
    if known is not None and sorted(known) != list(range(len(known))):
        raise TypeMismatchError(f"perm of pshuffle is no permutation: {list(known)}",
                                current().line, "name each lane once")
    targets = arange(length(order, axis=0)) if known is None else value(tuple(range(len(known))))
    return _move_lanes(x, axis_name, order, targets)
