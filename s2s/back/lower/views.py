"""Lower views and generated arrays to index arithmetic, without loops: one function for each op.

    x[1:-1], x.T, np.flip(x), x[:, None], x.reshape(n, m)      other ways to read x
    np.arange(n), np.zeros_like(x), np.full(n, s), np.eye(n)   numbers that follow from the index

Each function takes the scope and the op and returns the `Elements` of its result, or None where it
must be an array in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.builder import add_op, emit
from ...ir.graph import MISSING, Op, Value
from ...ir.types import Array, Extent
from ...ops.core.axis_numbers import normal_axes
from ...ops.core.elementwise import select
from ...ops.core.record import RECORDS, Record, constant, value
from ..loopir.elements import Elements, Index, basic_view, reshaped, transposed, unflat_index
from ..loopir.loop_builder import add, multiply, op_named, subtract
from ..loopir.ops import as_dtype, compute, contiguous, count_of_op, new_buffer, place_in_op
from .gather import gather, gather_lengths, is_gather

KINDS: dict[Record, Callable] = {}


def define_view(scope, op: Op) -> bool:
    """Define the result of `op` by index arithmetic; return False where that is impossible."""
    kind = KINDS.get(op.record)
    if (kind is None or len(op.outputs) != 1
            or not isinstance(op.output.type, Array) and op.name != "squeeze"):
        return False
    elements = kind(scope, op)
    if elements is None:
        return False
    if isinstance(op.output.type, Array):
        scope.set(op.output, elements)
    else:
        scope.env[op.output] = elements.at(())  # the only element
    return True


def entry(*names: str) -> Callable:
    """Register the decorated function, which returns `Elements`, for these ops."""

    def register(function: Callable) -> Callable:
        for name in names:
            KINDS[RECORDS[name]] = function
        return function

    return register


def whole_view(scope, op: Op, *, flat: bool = False) -> Callable[[], Value]:
    """NumPy's own view, for uses that need memory; `flat` needs the source contiguous."""

    def whole() -> Value:
        inputs = [scope.shape_giver(x) if k in op.record.shapes else scope.whole(x)
                  for k, x in enumerate(op.inputs)]
        if flat:
            inputs[0] = emit(contiguous, inputs[0])
        return add_op(op.record, inputs, op.attrs, [op.output.type], names=[op.output.name]).output

    return whole


# -------------------------------------------------------------------------------------------- views


@entry("getitem")
def _getitem(scope, op: Op) -> Elements | None:
    if is_gather(op):
        return Elements(op.output.type, tuple(gather_lengths(scope, op)),
                        lambda index: gather(scope, op, index))
    operands = [scope.env[x] for x in op.inputs[1:]]
    if any(isinstance(x, Elements) or x.type.dtype == "bool" for x in operands):
        return None
    return basic_view(scope.elements(op.inputs[0]), op, operands, whole_view(scope, op),
                      scope.loops, scope.asked is not None)


@entry("transpose")
def _transpose(scope, op: Op) -> Elements:
    count = op.output.type.rank
    axes = op.attrs["axes"]
    axes = tuple(range(count))[::-1] if axes is None else normal_axes(axes, count)
    return transposed(scope.elements(op.inputs[0]), op, axes, whole_view(scope, op))


@entry("expand_dims")
def _expand_dims(scope, op: Op) -> Elements:
    source, count = _source(scope, op), op.output.type.rank
    axes = normal_axes(op.attrs["axis"], count)
    rest = iter(source.lengths)
    lengths = tuple(value(1) if k in axes else next(rest) for k in range(count))
    return Elements(op.output.type, lengths,
                    lambda index: source.at([i for k, i in enumerate(index)
                                             if k not in axes]), whole_view(scope, op)
                    if isinstance(op.inputs[0].type, Array) else None)


@entry("squeeze")
def _squeeze(scope, op: Op) -> Elements | None:
    source = scope.elements(op.inputs[0])
    dims, axis = source.type.dims, op.attrs["axis"]
    axes = tuple(k for k, d in enumerate(dims)
                 if d == 1) if axis is None else normal_axes(axis, len(dims))
    if any(isinstance(dims[k], Extent) for k in axes):
        return None  # only NumPy can tell

    def at(index: Index) -> Value:
        rest = iter(index)
        return source.at([value(0) if k in axes else next(rest) for k in range(len(dims))])

    lengths = tuple(n for k, n in enumerate(source.lengths) if k not in axes)
    return Elements(op.output.type, lengths, at, whole_view(scope, op))


@entry("diagonal")
def _diagonal(scope, op: Op) -> Elements:
    """Element i of the k-th diagonal is at row i + max(-k, 0), column i + max(k, 0)."""
    source, k = scope.elements(op.inputs[0]), op.attrs["k"]
    (n, m), dims = source.lengths, source.type.dims
    if dims[0] == dims[1] and k == 0:
        count = n
    else:
        rows, columns = subtract(n, max(-k, 0)), subtract(m, max(k, 0))
        count = op_named("at_least_zero", select(op_named("less", rows, columns), rows, columns))
    return Elements(op.output.type, (count,),
                    lambda index: source.at([add(index[0], max(-k, 0)), add(index[0], max(k, 0))]))


@entry("triu", "tril")
def _triangle(scope, op: Op) -> Elements:
    """The elements on one side of the k-th diagonal, 0 on the other."""
    source, k, dtype = scope.elements(op.inputs[0]), op.attrs["k"], op.output.type.dtype
    kept = "greater_equal" if op.name == "triu" else "less_equal"
    return Elements(op.output.type, source.lengths, lambda index: select(
        op_named(kept, index[-1], add(index[-2], k)), source.at(index), number_of(0, dtype)))


@entry("flip")
def _flip(scope, op: Op) -> Elements:
    source = scope.elements(op.inputs[0])
    axes = normal_axes(op.attrs["axis"], source.type.rank)

    def at(index: Index) -> Value:
        return source.at([subtract(subtract(n, 1), i) if k in axes else i
                          for k, (i, n) in enumerate(zip(index, source.lengths))])

    return Elements(op.output.type, source.lengths, at)


@entry("roll")
def _roll(scope, op: Op) -> Elements | None:
    source, shift, axis = scope.elements(op.inputs[0]), scope.env[op.inputs[1]], op.attrs["axis"]
    if axis is None and source.type.rank != 1:
        return None
    axes = normal_axes(axis, source.type.rank)

    def at(index: Index) -> Value:
        return source.at([op_named("remainder", subtract(i, shift), n) if k in axes else i
                          for k, (i, n) in enumerate(zip(index, source.lengths))])

    return Elements(op.output.type, source.lengths, at)


@entry("repeat")
def _repeat(scope, op: Op) -> Elements | None:
    """Element i of the result is element i // count of the source."""
    if isinstance(op.inputs[1].type, Array):
        return None  # a count for each element: scans.py
    source, count, axis = (scope.elements(op.inputs[0]), count_of_op(scope.env[op.inputs[1]]),
                           op.attrs["axis"])
    if axis is None:
        total = source.lengths[0]
        for n in source.lengths[1:]:
            total = multiply(total, n)
        return Elements(op.output.type, (multiply(total, count),), lambda index: source.at(
            unflat_index(op_named("floor_divide", index[0], count), source.lengths)))
    axis %= source.type.rank
    lengths = tuple(multiply(n, count) if k == axis else n for k, n in enumerate(source.lengths))
    return Elements(op.output.type, lengths, lambda index: source.at(
        [op_named("floor_divide", i, count) if k == axis else i for k, i in enumerate(index)]))


@entry("delete")
def _delete(scope, op: Op) -> Elements | None:
    """Element i of the result is element i of the source, or i + 1 from the deleted one on."""
    if isinstance(op.inputs[1].type, Array):
        return None
    source, axis = scope.elements(op.inputs[0]), op.attrs["axis"] or 0
    gone = place_in_op(scope.env[op.inputs[1]], source.lengths[axis])
    lengths = tuple(subtract(n, 1) if k == axis else n for k, n in enumerate(source.lengths))
    return Elements(op.output.type, lengths,
                    lambda index: source.at([add(i, select(op_named("less", i, gone),
                                                           value(0), value(1))) if k == axis else i
                                             for k, i in enumerate(index)]))


@entry("tile")
def _tile(scope, op: Op) -> Elements:
    """Element i of the result is element i % n of the source."""
    source = _source(scope, op)
    counts = [scope.env[x] for x in op.inputs[1:]]
    rank = op.output.type.rank
    lengths = [value(1)] * (rank - source.type.rank) + list(source.lengths)
    counts = [value(1)] * (rank - len(counts)) + counts
    extra = rank - source.type.rank

    def at(index: Index) -> Value:
        return source.at([op_named("remainder", i, n)
                          for i, n in zip(index[extra:], source.lengths)])

    return Elements(op.output.type, tuple(multiply(n, c) for n, c in zip(lengths, counts)), at)


@entry("ravel")
def _ravel(scope, op: Op) -> Elements:
    source = scope.elements(op.inputs[0])
    total = source.lengths[0]
    for n in source.lengths[1:]:
        total = multiply(total, n)
    return reshaped(source, op, [total], whole_view(scope, op, flat=True))


@entry("reshape", "reshape_like")
def _reshape(scope, op: Op) -> Elements:
    """The reshaped source: index arithmetic for axes of length 1, NumPy's view otherwise."""
    y, x = op.output, op.inputs[0]
    whole = whole_view(scope, op, flat=True)
    if not isinstance(x.type, Array):
        return Elements(y.type, (value(1),) * y.type.rank,
                        lambda index: scope.env[x], generated=True)
    source = scope.elements(x)
    kept = [d for d in y.type.dims if d != 1]
    if kept == [d for d in x.type.dims if d != 1] and all(isinstance(d, int) or not d.may_be_one
                                                          for d in kept):
        rest = iter(n for n, d in zip(source.lengths, x.type.dims) if d != 1)
        lengths = tuple(value(1) if d == 1 else next(rest) for d in y.type.dims)

        def at(index: Index) -> Value:
            real = iter(i for i, d in zip(index, y.type.dims) if d != 1)
            return source.at([value(0) if d == 1 else next(real) for d in x.type.dims])

        return Elements(y.type, lengths, at, whole)
    array = whole()
    scope.define(y, array)
    return scope.elements(y)


# -------------------------------------------------------------------------------- the same elements


@entry("shaped_like", "stop_gradient", "as_array", "positive")
def _same(scope, op: Op) -> Elements | None:
    x = op.inputs[0]
    if not isinstance(x.type, Array):
        return None
    source = scope.elements(x)
    return Elements(op.output.type, source.lengths, source.at,
                    lambda: scope.whole(x), source.value, source.generated)


@entry("as_long_as")
def _as_long_as(scope, op: Op) -> Elements:
    """The same elements, with a check of the axis."""
    x, y = op.inputs
    source, axis, other = scope.elements(x), op.attrs["axis"], op.attrs["other"]
    lengths = list(source.lengths)
    lengths[axis] = scope.same(scope.lengths(y)[other], lengths[axis])
    return Elements(op.output.type, tuple(lengths), source.at,
                    lambda: scope.whole(x), source.value, source.generated)


@entry("copy")
def _copy(scope, op: Op) -> Elements:
    source = scope.elements(op.inputs[0])
    return Elements(op.output.type, source.lengths, source.at, whole_view(scope, op), None,
                    source.generated, source.value)


@entry("spread", "broadcast_to", "full", "full_like")
def _spread(scope, op: Op) -> Elements:
    """A number, or a broadcast array, with a given shape."""
    s, y = op.inputs[0], op.output.type
    if op.record.shapes or op.name == "full_like":
        lengths = scope.lengths(op.inputs[1])
    else:
        lengths = tuple(scope.env[n] for n in op.inputs[1:])
    if not isinstance(s.type, Array):
        return Elements(y, tuple(lengths), lambda index: scope.env[s], generated=True)
    source, shift = scope.elements(s), y.rank - s.type.rank
    maps = []
    for k, (d, m) in enumerate(zip(s.type.dims, source.lengths)):
        if d == 1:
            maps.append(lambda i: value(0))
        elif isinstance(d, Extent) and d != y.dims[k + shift] and d.may_be_one:
            step = select(op_named("equal", m, 1), value(0), value(1))
            maps.append(lambda i, step=step: multiply(i, step))
        else:
            maps.append(lambda i: i)
    return Elements(y, tuple(lengths),
                    lambda index: source.at([f(i) for f, i in zip(maps, index[shift:])]),
                    generated=source.generated or source.value is not None)


# --------------------------------------------------------------------------------- numbers by index


def number_of(x, dtype: str) -> Value:
    """The number x as Python would write it in an array of this dtype."""
    if dtype.startswith("float"):
        return emit(constant, value=float(x))
    if dtype.startswith("complex"):
        return emit(constant, value=complex(x))
    return emit(constant, value=bool(x) if dtype == "bool" else int(x))


def constant_array(op: Op, lengths: Sequence[Value], x) -> Elements:
    """An array of one number."""
    dtype, dims = op.output.type.dtype, op.output.type.dims

    def zeros() -> Value:
        array = new_buffer(dtype, dims, lengths, zero=True)
        array.name = op.output.name
        return array

    return Elements(op.output.type, tuple(lengths),
                    lambda index: number_of(x, dtype), zeros if x == 0 else None, generated=True)


def _source(scope, op: Op) -> Elements:
    """The operand's elements; a number is an array of no axes."""
    x = op.inputs[0]
    if isinstance(x.type, Array):
        return scope.elements(x)
    return Elements(Array(x.type.dtype, ()), (), lambda index: scope.env[x], generated=True)


@entry("zeros_like", "ones_like", "empty_like")
def _like(scope, op: Op) -> Elements:
    return constant_array(op, scope.lengths(op.inputs[0]), 1 if op.name == "ones_like" else 0)


@entry("zeros", "ones")
def _filled(scope, op: Op) -> Elements:
    return constant_array(op, [scope.env[n] for n in op.inputs], 1 if op.name == "ones" else 0)


@entry("empty")
def _empty(scope, op: Op) -> Elements:
    lengths = [scope.env[n] for n in op.inputs]
    array = new_buffer(op.output.type.dtype, op.output.type.dims, lengths)
    array.name = op.output.name
    scope.define(op.output, array, lengths)
    return scope.elements(op.output)


@entry("arange")
def _arange(scope, op: Op) -> Elements | None:
    start, stop, step = (scope.env[x] for x in op.inputs)
    dtype = op.output.type.dtype
    if step.constant == 1 and all("int" in x.type.dtype for x in (start, stop, step)):
        # unsigned numbers wrap, as in NumPy
        count, first = as_dtype(compute(RECORDS["subtract"], stop, start),
                                "int64"), as_dtype(start, "int64")
        return Elements(op.output.type, (op_named("at_least_zero", count),),
                        lambda index: as_dtype(add(index[0], first), dtype), generated=True)
    if step.constant not in (MISSING, 0) and all(x.type.dtype == "int64"
                                                 for x in (start, stop, step)):
        up, by = step.constant > 0, abs(step.constant)
        between = subtract(stop, start) if up else subtract(start, stop)
        return Elements(op.output.type,
                        (op_named("at_least_zero",
                                  op_named("floor_divide", add(between, by - 1), by)),),
                        lambda index: as_dtype((add if up
                                                else subtract)(start, multiply(by, index[0])),
                                               dtype), generated=True)
    if dtype != "float64" or any(x.type.dtype not in ("float64", "int64")
                                 for x in (start, stop, step)):
        return None
    count = as_dtype(op_named("ceil", op_named("divide", multiply(subtract(stop, start), 1.0),
                                               step)), "int64")
    second = multiply(add(start, step), 1.0)
    delta = subtract(second, start)

    def at(index: Index) -> Value:
        """NumPy computes the first two numbers, and continues with their difference."""
        return select(op_named("equal", index[0], 1), second, add(start, multiply(index[0], delta)))

    return Elements(op.output.type, (op_named("at_least_zero", count),), at, generated=True)


@entry("bin_numbers")
def _bin_numbers(scope, op: Op) -> Elements:
    n = scope.env[op.inputs[0]]
    if op.attrs["name"] == "rfftfreq":
        return Elements(op.output.type, (_bins(n),), lambda index: index[0], generated=True)
    middle = op_named("floor_divide", add(n, 1), 2)
    return Elements(op.output.type, (op_named("at_least_zero", n),), lambda index: select(
        op_named("less", index[0], middle), index[0], subtract(index[0], n)), generated=True)


@entry("bin_counts")
def _bin_counts(scope, op: Op) -> Elements:
    """1 for the bins 0 and n / 2, 2 for the others."""
    n, dtype = scope.env[op.inputs[0]], op.output.type.dtype

    def at(index: Index) -> Value:
        is_end = op_named("or_", op_named("equal", index[0], 0),
                          op_named("equal", multiply(index[0], 2), n))
        return as_dtype(select(is_end, value(1), value(2)), dtype)

    return Elements(op.output.type, (_bins(n),), at, generated=True)


def _bins(n: Value) -> Value:
    """The number of bins of np.fft.rfft of n numbers."""
    return add(op_named("floor_divide", n, 2), 1)


@entry("linspace")
def _linspace(scope, op: Op) -> Elements | None:
    start, stop, num = (scope.env[x] for x in op.inputs)
    if isinstance(start, Elements) or isinstance(stop, Elements):
        return None
    start, stop = (as_dtype(x, "float64") if x.type.dtype.startswith("uint") else x
                   for x in (start, stop))
    last = subtract(num, 1) if op.attrs["endpoint"] else num
    step = op_named("divide", subtract(stop, start), last)

    def at(index: Index) -> Value:
        i = index[0]
        x = add(multiply(i, step), start)
        if not op.attrs["endpoint"]:
            return x
        end = op_named("logical_and", op_named("equal", i, last), op_named("greater", i, 0))
        return select(end, op_named("multiply", stop, 1.0),
                      select(op_named("equal", i, 0), multiply(start, 1.0), x))

    return Elements(op.output.type, (num,), at, generated=True)


@entry("eye")
def _eye(scope, op: Op) -> Elements:
    n, m = (scope.env[x] for x in op.inputs)
    k, dtype = op.attrs["k"], op.output.type.dtype
    return Elements(op.output.type, (n, m),
                    lambda index: select(op_named("equal", index[1], add(index[0], k)),
                                         number_of(1, dtype), number_of(0, dtype)), generated=True)

