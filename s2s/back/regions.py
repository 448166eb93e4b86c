"""Writing a region: `a[1:-1] = v`, `a[i] += v`, `a[rows, 1:] = v` as loops over what is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.graph import Op, Value
from ..ir.types import Array, Extent, Scalar
from ..ops.elementwise import select
from ..ops.pattern import expand, index_dims, paired
from ..ops.record import value
from .access import in_memory, multiply, op_named, stride
from .buffers import spread_length_op
from .counted import loop
from .gather import gathered_index, index_lengths


def write_region(scope, op: Op) -> bool:
    """`a[1:-1] = v`, `a[rows] += v` as a loop over what is written; False if NumPy has to do it."""
    a, v, *operands = op.inputs
    if not isinstance(a.type, Array):
        return False
    if any(isinstance(x.type, (Array, Scalar)) and x.type.dtype == "bool" for x in operands):
        return False
    array = scope.whole(a)
    here = in_memory(array, scope.lengths(a), a.type)
    parts = list(paired(expand(op.attrs["pattern"], a.type.rank), operands))
    advanced = any(p == "i" and isinstance(o.type, Array) for p, o in parts)
    lengths, targets, axis = [], [], 0
    if advanced:
        return scatter(scope, op, array, here.lengths, parts)
    for p, o in parts:
        if p is None:
            lengths.append(value(1))
            targets.append(None)
            continue
        n = here.lengths[axis]
        axis += 1
        if p == "i":
            targets.append(scope.env[o])
        else:
            sliced = stride(n, *((None, None, None) if p == "..." else scope.numbers(o)))
            if sliced is None:
                return False
            lengths.append(sliced.length)
            targets.append(sliced)
    if not lengths:  # one element
        write = op.record(array, scope.whole(v), *[scope.env[o] for o in operands],
                          pattern=op.attrs["pattern"])
        write.name = write.name or op.output.name
        scope.define(op.output, write, here.lengths)
        return True
    dims = index_dims(a, operands, op.attrs["pattern"])
    lengths = [scope.extents.get(d, n) if isinstance(d, Extent) else n for d, n in zip(dims, lengths)]
    read_v = source_reader(scope, v, lengths, dims)

    def body(index, carries):
        rest, full = list(index), []
        for target in targets:
            if target is None:
                rest.pop(0)
            elif isinstance(target, Value):
                full.append(target)
            else:
                full.append(target(rest.pop(0)))
        return [op.record(carries[0], read_v(index), *full, pattern=("i",) * len(full))]

    (result,) = loop(lengths, [array], [array.type], [op.output.name or a.name], body, scope.counters)
    scope.define(op.output, result, here.lengths)
    return True


def scatter(scope, op: Op, array: Value, own: Sequence[Value], parts: list) -> bool:
    """`a[rows, 1:] = v` and `a[rows, cols] += v`: one element after the other, as often as an index occurs."""
    a, v, *operands = op.inputs
    dims = index_dims(a, operands, op.attrs["pattern"])
    lengths = index_lengths(scope, own, parts)
    read_v = source_reader(scope, v, lengths, dims)

    def body(index, carries):
        full = gathered_index(scope, own, parts, index)
        return [op.record(carries[0], read_v(index), *full, pattern=("i",) * len(full))]

    (result,) = loop(lengths, [array], [array.type], [op.output.name or a.name], body, scope.counters)
    scope.define(op.output, result, own)
    return True


def source_reader(scope, v: Value, lengths: list[Value], dims: tuple) -> Callable:
    """How to read `v`, broadcast to a region of these lengths; checks once, before the loop."""
    if not isinstance(v.type, Array):
        number = scope.env[v]
        return lambda index: number
    elements = scope.elements(v)
    if elements.value is None and not elements.generated:
        elements = in_memory(scope.whole(v), elements.lengths, v.type)
    rank = len(lengths)
    extra = v.type.rank - rank  # NumPy drops leading axes of length 1
    maps: list = [None] * max(extra, 0)
    for k, (d, m) in enumerate(zip(v.type.dims[max(extra, 0):], elements.lengths[max(extra, 0):])):
        axis = k + max(-extra, 0)
        if d == 1:
            maps.append(None)
        elif d == dims[axis]:
            maps.append(axis)
        elif isinstance(d, Extent) and d.may_be_one and m is not lengths[axis]:
            lengths[axis] = spread_length_op(lengths[axis], m)
            maps.append((axis, select(op_named("equal", m, 1), value(0), value(1))))
        else:
            lengths[axis] = scope.same(lengths[axis], m)
            maps.append(axis)
    return lambda index: elements.at([value(0) if a is None else multiply(index[a[0]], a[1])
                                      if isinstance(a, tuple) else index[a] for a in maps])
