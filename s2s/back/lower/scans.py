"""Lower ops that need a loop of their own: scans, argmax, concatenation, masks.

Each function takes the scope and the op, emits its loops into the current block, and defines its
result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.graph import Op, Value
from ...ir.types import Array, Scalar, is_inexact
from ...ops.core.axis_numbers import normal_axes
from ...ops.core.elementwise import complex_order, select
from ...ops.core.record import RECORDS, Record, value
from ..loopir.elements import Elements, Index, flat_index, read, unflat_index
from ..loopir.loop_builder import add, loop, op_named, put
from ..loopir.ops import (
    as_dtype,
    compute,
    count_of_op,
    new_buffer,
    nonempty_length_op,
    spread_length_op,
)
from ..loopir.reductions import start
from .masks import masked_read, masked_write

SCANS: dict[Record, Callable] = {}


def scan(scope, op: Op) -> bool:
    """Lower `op`, if it is one of these; return False to leave it to others."""
    found = SCANS.get(op.record)
    return found is not None and found(scope, op)


# those of which each step needs the one before
ORDERED: set[Record] = set()


def entry(*names: str, ordered: bool = False) -> Callable:
    def register(function: Callable) -> Callable:
        for name in names:
            SCANS[RECORDS[name]] = function
            if ordered:
                ORDERED.add(RECORDS[name])
        return function

    return register


entry("getitem")(masked_read)
entry("setitem", "additem")(masked_write)


def elements_of(scope, x: Value) -> Elements:
    """The elements of `x`; a number is an array of no axes."""
    if isinstance(x.type, Array):
        return scope.elements(x)
    return Elements(Array(x.type.dtype, ()), (), lambda index: scope.env[x], generated=True)


# -------------------------------------------------------------------------------------------- scans


@entry("cumsum", "cumprod", ordered=True)
def _running(scope, op: Op) -> bool:
    x, y = scope.elements(op.inputs[0]), op.output
    axis = (op.attrs["axis"] or 0) % y.type.rank
    step_op, first, name = ("add", 0,
                            "total") if op.name == "cumsum" else ("multiply", 1, "product")
    dtype = y.type.dtype
    array = new_buffer(dtype, y.type.dims, x.lengths)
    array.name = y.name
    others = [n for k, n in enumerate(x.lengths) if k != axis]

    def along(outer: Index, carries):
        def step(index: Index, inner):
            full = [*outer[:axis], index[-1], *outer[axis:]]
            total = compute(RECORDS[step_op], inner[1], as_dtype(x.at(full), dtype))
            return [put(inner[0], total, full), total]

        taken = (*scope.counters, *(i.name for i in outer))
        return loop([x.lengths[axis]], [carries[0], start(_number(first, dtype), dtype)],
                    [array.type, Scalar(dtype)], [y.name, name], step, taken)[:1]

    (array,) = loop(others, [array], [array.type], [y.name], along, scope.counters)
    scope.define(y, array, x.lengths)
    return True


def _number(x: int, dtype: str):
    """The number x, as Python writes it for this dtype."""
    return (float(x) if dtype.startswith("float") else complex(x) if dtype.startswith("complex")
            else x)


# -------------------------------------------------------------------------------- argmax and argmin


@entry("argmax", "argmin", ordered=True)
def _position(scope, op: Op) -> bool:
    """Lower argmax and argmin: the first extreme element, or the first NaN, if there is one."""
    x, y = scope.elements(op.inputs[0]), op.output
    rank, dtype, axis = x.type.rank, x.type.dtype, op.attrs["axis"]
    axes = normal_axes(axis, rank)
    better = "greater" if op.name == "argmax" else "less"
    inner = [nonempty_length_op(x.lengths[k]) for k in axes]
    outer = [x.lengths[k] for k in range(rank) if k not in axes]

    def merged(kept: Index, index: Index) -> list[Value]:
        rest, own = iter(kept), dict(zip(axes, index))
        return [own[k] if k in own else next(rest) for k in range(rank)]

    def find(kept: Index) -> Value:
        first = as_dtype(x.at(merged(kept, [value(0)] * len(axes))), dtype)

        def step(index: Index, carries):
            best, place = carries
            this = x.at(merged(kept, index))
            if dtype.startswith("complex"):
                wins = complex_order(RECORDS[better], this, best)
            else:
                wins = op_named(better, this, best)
            if is_inexact(dtype):
                is_nan, was_nan = op_named("not_equal", this,
                                           this), op_named("not_equal", best, best)
                wins = op_named("logical_and", op_named("logical_or", wins, is_nan),
                                op_named("logical_not", was_nan))
            return [select(wins, this, best), select(wins, flat_index(index, inner), place)]

        taken = (*scope.counters, *(i.name for i in kept))
        return loop(inner, [first, value(0)], [Scalar(dtype), Scalar("int64")],
                    ["best", y.name or "place"], step, taken)[1]

    if not isinstance(y.type, Array):
        scope.define(y, find([]))
        return True
    array = new_buffer(y.type.dtype, y.type.dims,
                       [value(1) if k in axes else n for k, n in enumerate(x.lengths)
                        if op.attrs["keepdims"] or k not in axes])
    array.name = y.name

    def each(kept: Index, carries):
        rest = iter(kept)
        where = [value(0) if k in axes else next(rest) for k in range(rank) if op.attrs["keepdims"]
                 or k not in axes]
        return [put(carries[0], find(kept), where)]

    (array,) = loop(outer, [array], [array.type], [y.name], each, scope.counters)
    scope.define(y, array)
    return True


# ------------------------------------------------------------------------------------ concatenation


@entry("array")
def _array(scope, op: Op) -> bool:
    """Lower np.array of numbers, or of arrays, in nested lists."""
    y, shape = op.output, op.attrs["shape"]
    if not isinstance(y.type, Array):
        return False
    leaves = [elements_of(scope, x) for x in op.inputs]
    inner = leaves[0].lengths if leaves else ()
    for leaf in leaves[1:]:
        inner = tuple(scope.same(n, m) for n, m in zip(inner, leaf.lengths))
    array = new_buffer(y.type.dtype, y.type.dims, [*map(value, shape), *inner])
    array.name = y.name
    places = [()]
    for n in shape:
        places = [(*place, k) for place in places for k in range(n)]
    for place, leaf in zip(places, leaves, strict=True):
        array = _copied(scope, array, leaf, [value(k) for k in place], y)
    scope.define(y, array)
    return True


def _copied(scope, array: Value, source: Elements, before: Sequence[Value], y: Value,
            shift: Callable[[Index], list[Value]] = list) -> Value:
    """Emit `array[*before, i, j, ...] = source[i, j, ...]` for all i, j, ..."""
    dtype = y.type.dtype

    def body(index: Index, carries):
        return [put(carries[0], as_dtype(source.at(index), dtype), [*before, *shift(index)])]

    return loop(source.lengths, [array], [array.type], [y.name], body, scope.counters)[0]


@entry("concatenate")
def _concatenate(scope, op: Op) -> bool:
    y = op.output
    sources = [scope.elements(x) for x in op.inputs]
    axis = op.attrs["axis"] % y.type.rank
    lengths = list(sources[0].lengths)
    for source in sources[1:]:
        lengths = [add(n, m) if k == axis else scope.same(n, m)
                   for k, (n, m) in enumerate(zip(lengths, source.lengths))]
    array = new_buffer(y.type.dtype, y.type.dims, lengths)
    array.name = y.name
    begin = value(0)
    for source in sources:
        array = _copied(scope, array, source, [], y, lambda index, begin=begin:
                        [add(i, begin) if k == axis else i for k, i in enumerate(index)])
        begin = add(begin, source.lengths[axis])
    scope.define(y, array, lengths)
    return True


@entry("repeat")
def _repeat(scope, op: Op) -> bool:
    """Lower np.repeat: each row as often as its count says."""
    x, counts, y = scope.elements(op.inputs[0]), scope.elements(op.inputs[1]), op.output
    axis = op.attrs["axis"] or 0
    n = scope.same(x.lengths[axis], counts.lengths[0])
    (total,) = loop(
        [n], [value(0)], [Scalar("int64")], ["count"],
        lambda index, carries: [add(carries[0], count_of_op(as_dtype(counts.at(index), "int64")))],
        scope.counters)
    lengths = [total if k == axis else m for k, m in enumerate(x.lengths)]
    array = new_buffer(y.type.dtype, y.type.dims, lengths)
    array.name = y.name
    others = [m for k, m in enumerate(x.lengths) if k != axis]

    def each(outer: Index, carries):
        def once(again: Index, written):
            taken = (*scope.counters, *(i.name for i in (*outer, *again)))
            array = loop(others, [written[0]], [array_type], [y.name],
                         lambda inner, state: [put(state[0],
                                                   x.at([*inner[:axis], outer[0], *inner[axis:]]),
                                                   [*inner[:axis], written[1],
                                                    *inner[axis:]])], taken)[0]
            return [array, add(written[1], 1)]

        return loop([as_dtype(counts.at(outer), "int64")], carries, types, [y.name, "k"], once,
                    (*scope.counters, outer[0].name))

    array_type = array.type
    types = [array_type, Scalar("int64")]
    array = loop([n], [array, value(0)], types, [y.name, "k"], each, scope.counters)[0]
    scope.define(y, array, lengths)
    return True


# ---------------------------------------------------------------------------------- sums to a shape


def _summed(scope, op: Op, lengths: Sequence[Value], target: Callable[[Index], list[Value]],
            trips: Sequence[Value] | None = None) -> bool:
    """Lower a scatter-add of all elements of the operand into a new array, at `target(index)`."""
    y, source = op.output, scope.elements(op.inputs[0])
    array = new_buffer(y.type.dtype, y.type.dims, lengths, zero=True)
    array.name = y.name

    def body(index: Index, carries):
        place = target(index)
        return [put(carries[0], compute(RECORDS["add"], read(carries[0], place), source.at(index)),
                    place)]

    (array,) = loop(source.lengths if trips is None else trips, [array], [array.type], [y.name],
                    body, scope.counters)
    scope.define(y, array, lengths)
    return True


@entry("sum_to")
def _sum_to(scope, op: Op) -> bool:
    """Lower sum_to: along axes of unknown broadcasting, index 0 takes the sum."""
    lengths, source = scope.lengths(op.inputs[1]), scope.elements(op.inputs[0])
    extra = op.inputs[0].type.rank - len(lengths)
    if not lengths:
        return False
    steps = [select(op_named("equal", n, 1), value(0), value(1)) for n in lengths]
    trips = [*source.lengths[:extra], *map(spread_length_op, source.lengths[extra:], lengths)]
    return _summed(scope, op, lengths, lambda index: [op_named("multiply", i, s)
                                                      for i, s in zip(index[extra:], steps)], trips)


@entry("unrepeat")
def _unrepeat(scope, op: Op) -> bool:
    lengths, count, axis = scope.lengths(op.inputs[1]), scope.env[op.inputs[2]], op.attrs["axis"]
    if not lengths:
        return False
    axis = axis if axis is None else axis % len(lengths)

    def once(index: Index) -> list[Value]:
        places = [op_named("floor_divide", i, count) if k == (axis or 0) else i
                  for k, i in enumerate(index)]
        return unflat_index(places[0], lengths) if axis is None else places

    return _summed(scope, op, lengths, once)


@entry("untile")
def _untile(scope, op: Op) -> bool:
    lengths = scope.lengths(op.inputs[1])
    if not lengths:
        return False
    extra = op.inputs[0].type.rank - len(lengths)
    return _summed(scope, op, lengths, lambda index: [op_named("remainder", i, n)
                                                      for i, n in zip(index[extra:], lengths)])
