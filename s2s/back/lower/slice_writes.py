"""Lower writes to slices, `a[1:-1] = v`, `a[i] += v`, `a[rows, 1:] = v`, to loops over the region.

Note [Writes that join a nest]
Where `v` is computed in a nest over the same index space, the write is one more op of that nest,
and `v` is never stored. The array must not be read elsewhere in the nest, except at the index that
is written (`u[1:-1] *= 0.5`): a loop that shifts an array onto itself would read what it has just
written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...analysis.alias import versions
from ...ir.graph import MISSING, Op, Value
from ...ir.types import Array, Extent, Scalar
from ...ops.arrays.index_pattern import expand, index_dims, paired
from ...ops.core.elementwise import select
from ...ops.core.record import value
from ..loopir.elements import in_memory, stride
from ..loopir.extent_equalities import Equalities
from ..loopir.loop_builder import loop, multiply, op_named
from ..loopir.ops import spread_length_op
from ..loopir.vector_support import is_long
from .gather import checked_indices, gathered_index, in_step, index_lengths, is_gather, span


@dataclass(eq=False)
class Region:
    """The elements that a write by integers and slices touches.

    They are given by the array and its lengths, the lengths of the region, and its index map.
    """

    array: Value
    own: tuple[Value, ...]
    lengths: list[Value]
    dims: tuple
    targets: list

    def place(self, index: Sequence[Value]) -> list[Value]:
        """The index, in the array, of element `index` of the region."""
        rest, full = list(index), []
        for target in self.targets:
            if target is None:
                rest.pop(0)
            elif isinstance(target, Value):
                full.append(target)
            else:
                full.append(target(rest.pop(0)))
        return full


def region(scope, op: Op) -> Region | None:
    """The region that `op` writes; None for a slice whose step is known only at run time."""
    a, _, *operands = op.inputs
    array, own = scope.whole(a), scope.lengths(a)
    lengths, targets, axis = [], [], 0
    for p, o in paired(expand(op.attrs["pattern"], a.type.rank), operands):
        if p is None:
            lengths.append(value(1))
            targets.append(None)
            continue
        n = own[axis]
        axis += 1
        if p == "i":
            targets.append(scope.env[o])
        else:
            sliced = stride(n, *((None, None, None) if p == "..." else scope.numbers(o)))
            if sliced is None:
                return None
            lengths.append(sliced.length)
            targets.append(sliced)
    dims = index_dims(a, operands, op.attrs["pattern"])
    lengths = [scope.extents.get(d, n) if isinstance(d, Extent) else value(d)
               for d, n in zip(dims, lengths)]
    return Region(array, own, lengths, dims, targets)


def write_region(scope, op: Op) -> bool:
    """Emit `a[1:-1] = v`, `a[rows] += v` as a loop over the region; False leaves it to NumPy."""
    a, v, *operands = op.inputs
    if not isinstance(a.type, Array):
        return False
    if any(isinstance(x.type, (Array, Scalar)) and x.type.dtype == "bool" for x in operands):
        return False
    if any(isinstance(x.type, Array) for x in operands):
        return scatter(scope, op)
    found = region(scope, op)
    if found is None:
        return False
    if not found.lengths:  # one element
        write = op.record(found.array, scope.whole(v), *[scope.env[o] for o in operands],
                          pattern=op.attrs["pattern"])
        write.name = write.name or op.output.name
        scope.define(op.output, write, found.own)
        return True
    read_v = source_reader(scope, a, v, found.lengths, found.dims)

    def body(index, carries):
        full = found.place(index)
        return [op.record(carries[0], read_v(index), *full, pattern=("i",) * len(full))]

    (result,) = loop(found.lengths, [found.array], [found.array.type], [op.output.name or a.name],
                     body, scope.counters)
    scope.define(op.output, result, found.own)
    return True


def write_space(op: Op, equal: Equalities, computed: Callable[[Op], bool]) -> tuple | None:
    """The index space of a write that may join its value's nest. Note [Writes that join a nest]."""
    if not op.record.writes_elements:
        return None
    a, v, *operands = op.inputs
    if (not isinstance(a.type, Array) or not isinstance(v.type, Array) or v.op is None
            or not computed(v.op)):
        return None
    if any(not isinstance(x.type, Scalar) or x.type.dtype == "bool"
           for x in operands) or None in op.attrs["pattern"]:
        return None
    if any(isinstance(p, str) and p[-1] == "x" and o[2].constant not in (1, -1)
           for p, o in paired(op.attrs["pattern"], operands) if p != "i"):
        return None
    dims = equal.canonical(index_dims(a, operands, op.attrs["pattern"]))
    return dims if dims and dims == equal.canonical(v.type.dims) else None


def clashes(op: Op, others: Sequence[Op]) -> bool:
    """Whether fusing `op` with `others` breaks a dependence through memory."""
    ops = [op, *others]
    for other in ops:
        if is_gather(other) and any(x.op in ops for x in other.inputs if isinstance(x.type, Array)):
            if other.inputs[0].op in ops or not in_step(other) or any(map(is_long, ops)):
                return True  # it reads its operands at any index, so they must be in memory
    for write in ops:
        if write.record.writes is None:
            continue
        memory = set(versions(write.inputs[0]))
        if any(x.op in ops for x in memory if x.op is not write):
            return True  # the array is allocated in this very nest
        for other in ops:
            for k, x in enumerate(other.inputs):
                if (isinstance(x.type, Array) and k not in other.record.shapes
                        and not (other is write and k == 0)
                        and memory & set(versions(copied_from(x))) and not is_place_of(x, write)):
                    return True
    return False


def copied_from(x: Value) -> Value:
    """The source of `x`, a copy: a nest reads the source."""
    return copied_from(x.op.inputs[0]) if x.op is not None and x.op.name == "copy" else x


def is_place_of(x: Value, write: Op) -> bool:
    """Whether `x` is what `write` overwrites, or a copy: `u[1:-1]` in `u[1:-1] *= 0.5`."""
    x = copied_from(x)
    op = x.op
    if x is write.inputs[0]:
        return all(p == "..." or p is ... for p in write.attrs["pattern"])
    return (op is not None and op.name == "getitem" and op.inputs[0] is write.inputs[0]
            and op.attrs["pattern"] == write.attrs["pattern"]
            and all(m is n or (m.constant is not MISSING and m.constant == n.constant)
                    for m, n in zip(op.inputs[1:], write.inputs[2:])))


def scatter(scope, op: Op) -> bool:
    """Emit `a[rows, 1:] = v` or `a[rows, cols] += v` element by element, as indices may repeat."""
    a, v, *operands = op.inputs
    array, own = scope.whole(a), scope.lengths(a)
    parts = list(paired(expand(op.attrs["pattern"], a.type.rank), operands))
    dims = index_dims(a, operands, op.attrs["pattern"])
    lengths = index_lengths(scope, own, parts)
    read_v = source_reader(scope, a, v, lengths, dims)

    last, types, names = span(parts)[1], [array.type], [op.output.name or a.name]

    def rows(index, carries):  # the index of a row is looked up once for all its elements
        places = checked_indices(scope, own, parts, index)

        def body(index, carries):
            full = gathered_index(scope, own, parts, index, places)
            return [op.record(carries[0], read_v(index), *full, pattern=("i",) * len(full))]

        return loop(lengths[last:], carries, types, names, body,
                    (*scope.counters, *(i.name for i in index)), tuple(index))

    (result,) = loop(lengths[:last], [array], types, names, rows, scope.counters)
    scope.define(op.output, result, own)
    return True


def source_reader(scope, a: Value, v: Value, lengths: list[Value], dims: tuple) -> Callable:
    """How to read `v`, broadcast to a region of `a`; emits checks before the loop."""
    if not isinstance(v.type, Array):
        number = scope.env[v]
        return lambda index: number
    elements = scope.elements(v)
    is_view = elements.whole is not None and not set(versions(a)) & set(versions(v))
    if elements.value is None and not elements.generated and not is_view:
        elements = in_memory(scope.whole(v), elements.lengths, v.type)
    rank = len(lengths)
    extra = max(v.type.rank - rank, 0)
    places: list[Callable] = []  # for each axis of `v`, its index from that of the region
    for d, m in zip(v.type.dims[:extra], elements.lengths):  # NumPy drops leading axes of length 1
        first = value(0) if d == 1 else op_named("subtract", scope.same(value(1), m), 1)
        places.append(lambda index, first=first: first)
    for axis, (d, m) in enumerate(zip(v.type.dims[extra:], elements.lengths[extra:]),
                                  rank - (v.type.rank - extra)):
        if d == 1:
            places.append(lambda index: value(0))
            continue
        factor = None
        if d != dims[axis]:
            if (isinstance(d, Extent) and m is not lengths[axis]
                    and scope.equal.find(d) != scope.equal.find(dims[axis]) and d.may_be_one):
                lengths[axis] = spread_length_op(lengths[axis], m)
                factor = select(op_named("equal", m, 1), value(0), value(1))
            else:
                lengths[axis] = scope.same(lengths[axis], m)
        places.append(lambda index, axis=axis, factor=factor: index[axis] if factor is None
                      else multiply(index[axis], factor))
    return lambda index: elements.at([place(index) for place in places])
