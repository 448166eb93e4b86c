"""Lower indices that contain arrays, `x[rows, 1:, cols]`, element by element (gather).

The elements of such an index are data, of which nothing is known, so each is checked where it is
read (`place_in`), and the inner loops, over the rest of the index, know that it is in range. The
rest of the function need not check its indices for that (analysis/index_ranges.py); Numba's
boundscheck, which applies to a whole function, took four times as long in a convolutional network.

Where each element of `table[k, l]` needs the elements of k and l at the same index, the nest that
computes k and l reads the table, too (`in_step`): interpolation would otherwise store all that it
computes before it knows its indices. This is not done beside exp and the like, which would be
vectorised: ops that may raise prevent that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.graph import Block, Op, Value, free_values
from ...ir.types import Array, Extent, Scalar, may_be_one
from ...ops.arrays.index_pattern import expand, is_advanced, paired
from ...ops.core.elementwise import select
from ...ops.core.record import value
from ..loopir.elements import stride
from ..loopir.loop_builder import multiply, op_named
from ..loopir.ops import as_dtype, broadcast_length_op, place_in_op

NONE: Mapping[Value, Value] = {}


def is_gather(op: Op) -> bool:
    """Whether `op` reads an array at indices given by integer arrays."""
    return (op.name == "getitem" and is_advanced(op.attrs["pattern"], op.inputs[1:])
            and all(x.type.dtype != "bool" for x in op.inputs[1:]
                    if isinstance(x.type, (Array, Scalar))))


def in_step(op: Op) -> bool:
    """Whether gathered elements need the elements of the index arrays at their own index only."""
    dims = op.output.type.dims
    return is_gather(op) and set(op.attrs["pattern"]) == {"i"} and all(
        not isinstance(x.type, Array) or x.type.dims == dims for x in op.inputs[1:]) and not any(
        d == 1 or isinstance(d, Extent) and (d.may_be_one or d.accepts_any) for d in dims)


def column_gathers(block: Block) -> set[Op]:
    """The gathers of rows of which only single columns are read; these read the columns directly.

    `c = cameras[which]` with `c[:, 0]`, `c[:, 1]` is `cameras[which[i], 0]`, `cameras[which[i],
    1]`: no row is copied.
    """
    found = {op.output: op for op in block.ops if is_gather(op) and op.output not in block.yields}
    for op in block.ops:
        for k, x in enumerate(op.inputs):
            if x in found and k not in op.record.shapes and not (k == 0 and reads_column(op)):
                del found[x]
        for inner in op.blocks:
            for x in free_values(inner):
                found.pop(x, None)
    return set(found.values())


def reads_column(op: Op) -> bool:
    """Whether `op` reads `x[:, 0]`, one element of each row."""
    return op.name == "getitem" and not is_gather(op) and op.attrs["pattern"][-1] == "i" \
        and isinstance(op.inputs[-1].constant, int)


def gather_parts(op: Op) -> list:
    """The entries of an index with arrays: what each axis, old or new, is indexed by."""
    x = op.inputs[0]
    return list(paired(expand(op.attrs["pattern"], x.type.rank), op.inputs[1:]))


def gather_lengths(scope, op: Op) -> list[Value]:
    """The lengths of `x[rows, 1:, cols]`."""
    return index_lengths(scope, scope.elements(op.inputs[0]).lengths, gather_parts(op))


def index_lengths(scope, own: Sequence[Value], parts: list) -> list[Value]:
    """The lengths of the result of such an index of an array of lengths `own`."""
    basic, advanced, places, axis = [], [], [], 0
    for p, operand in parts:
        if p is None:
            basic.append(value(1))
            continue
        n = own[axis]
        axis += 1
        if p == "i":
            places.append(len(basic))
            if isinstance(operand.type, Array):
                advanced.append(list(zip(operand.type.dims, scope.lengths(operand))))
        else:
            bounds = (None, None, None) if p == "..." else scope.numbers(operand)
            basic.append(stride(n, *bounds).length)
    rank = max(map(len, advanced))
    shape = []
    for k in range(-rank, 0):
        (d, n), *others = (axes[k] for axes in advanced if len(axes) >= -k)
        for e, m in others:
            if may_be_one(d) or may_be_one(e):
                d, n = (e, m) if d == 1 else (d, n) if e == 1 else (d, broadcast_length_op(n, m))
            else:
                n = scope.same(n, m)
        shape.append(n)
    first = places[0] if len(set(places)) == 1 else 0
    return [*basic[:first], *shape, *basic[first:]]


def gather(scope, op: Op, index, places: Sequence[Value] | None = None) -> Value:
    """One element of `x[rows, 1:, cols]`; `places` are the elements of rows and cols, if known."""
    source, parts = scope.elements(op.inputs[0]), gather_parts(op)
    if places is None:
        places = checked_indices(scope, source.lengths, parts, index)
    return source.at(gathered_index(scope, source.lengths, parts, index, places))


def span(parts: list) -> tuple[int, int]:
    """The first axis of the index arrays in the result's index, and the end of them."""
    places, basics, rank = [], 0, 0
    for p, o in parts:
        if p == "i":
            places.append(basics)
            rank = max(rank, o.type.rank if isinstance(o.type, Array) else 0)
        else:
            basics += 1
    first = places[0] if len(set(places)) == 1 else 0
    return first, first + rank


def checked_indices(scope, lengths: Sequence[Value], parts: list,
              index: Sequence[Value], numbers: Mapping[Value, Value] = NONE,
              known: dict[tuple[Value, Value], Value] | None = None) -> list[Value]:
    """The integers of the index arrays at `index`, each checked unless it is among `known`.

    `numbers` are those that are not in memory.
    """
    first, last = span(parts)
    common, found, axis, known = index[first:last], [], 0, {} if known is None else known
    for p, o in parts:
        if p == "i" and isinstance(o.type, Array):
            k = numbers[o] if o in numbers else scope.elements(o).at(
                [value(0) if step == 0 else i if step == 1 else multiply(i, step)
                 for step, i in zip(steps_of(scope, o, parts),
                                    common[last - first - o.type.rank:])])
            # NumPy converts too large elements of arrays, too
            k, n = as_dtype(k, "int64"), lengths[axis]
            if (k, n) not in known:
                known[k, n] = k if scope.asked is None else place_in_op(k, n)
            found.append(known[k, n])
        axis += p is not None
    return found


def steps_of(scope, operand: Value, parts: list) -> list[Value | int]:
    """Steps through an index array for each axis of the result: 1, or 0 where it is broadcast.

    Where only the run knows whether it is broadcast, a test is emitted before the loops.
    """
    found: list[Value | int] = []
    arrays = [o for p, o in parts if p == "i" and isinstance(o.type, Array)]
    for k, d in enumerate(operand.type.dims, -operand.type.rank):
        others = {o.type.dims[k] for o in arrays if o.type.rank >= -k} - {1, d}
        if d == 1:
            found.append(0)
        elif not others or not may_be_one(d):
            found.append(1)
        else:
            with scope.builder:
                found.append(select(op_named("equal", scope.lengths(operand)[k], 1), value(0),
                                    value(1)))
    return found


def gathered_index(scope, lengths: Sequence[Value], parts: list, index: Sequence[Value],
                   places: Sequence[Value]) -> list[Value]:
    """The index in the source array of element `index` of the result, from known `places`."""
    first, last = span(parts)
    found, rest = iter(places), [*index[:first], *index[last:]]
    full = []
    axis = 0
    for p, o in parts:
        if p is None:
            rest.pop(0)
            continue
        n = lengths[axis]
        axis += 1
        if p == "i":
            full.append(next(found) if isinstance(o.type, Array) else scope.env[o])
        else:
            full.append(stride(n, *((None, None, None) if p == "..."
                                    else scope.numbers(o)))(rest.pop(0)))
    return full
