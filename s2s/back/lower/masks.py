"""Lower reads and writes by boolean masks to loops over the mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.builder import Builder, add_op
from ...ir.graph import Block, Op, Value
from ...ir.types import Array, Scalar
from ...ops.core.control import if_record
from ...ops.core.elementwise import select
from ...ops.core.record import value
from ..loopir.elements import Elements, Index, in_memory
from ..loopir.loop_builder import add, loop, put
from ..loopir.ops import asked_step, masked_step_op, new_buffer
from .slice_writes import source_reader


def _mask(op: Op, operands: Sequence[Value]) -> Value | None:
    """The mask, if the index is one mask of all axes or of the first ones."""
    pattern = op.attrs["pattern"]
    if (len(operands) != 1 or not isinstance(operands[0].type, Array)
            or operands[0].type.dtype != "bool"):
        return None
    if (not isinstance(op.inputs[0].type, Array) or pattern[0] != "i"
            or any(p not in ("...", ...) for p in pattern[1:])):
        return None
    return operands[0]


def masked_read(scope, op: Op) -> bool:
    """Emit `x[mask]`: count, allocate, fill."""
    mask = _mask(op, op.inputs[1:])
    if mask is None:
        return False
    x, chosen, y = scope.elements(op.inputs[0]), scope.elements(mask), op.output
    lengths = [scope.same(n, m) for n, m in zip(x.lengths, chosen.lengths)]
    rest = x.lengths[len(lengths):]
    count = _count_true(scope, chosen, lengths)
    array = new_buffer(y.type.dtype, y.type.dims, [count, *rest])
    array.name = y.name

    def body(index: Index, carries):
        def row() -> list[Value]:
            taken = (*scope.counters, *(i.name for i in index))
            (filled,) = loop(rest, carries[:1], [array_type], [y.name], lambda inner, state:
                             [put(state[0], x.at([*index, *inner]), [carries[1], *inner])], taken)
            return [filled, add(carries[1], 1)]

        return branch(chosen.at(index), row, carries)

    array_type = array.type
    array, _ = loop(lengths, [array, value(0)], [array_type, Scalar("int64")], [y.name, "k"], body,
                    scope.counters)
    scope.define(y, array, [count, *rest])
    return True


def _count_true(scope, chosen: Elements, lengths: Sequence[Value]) -> Value:
    (count,) = loop(lengths, [value(0)], [Scalar("int64")], ["count"],
                    lambda index, carries: [select(chosen.at(index), add(carries[0], 1),
                                                   carries[0])], scope.counters)
    return count


def masked_write(scope, op: Op) -> bool:
    """Emit `x[mask] = v`."""
    a, v, *operands = op.inputs
    if not isinstance(a.type, Array):
        return False
    array = scope.whole(a)
    lengths = scope.lengths(a)
    name = op.output.name or a.name
    mask = _mask(op, operands)
    if mask is not None and mask.type.rank < a.type.rank:
        return masked_rows(scope, op, mask)
    if mask is not None:
        chosen = scope.elements(mask)
        lengths = [scope.same(n, m) for n, m in zip(lengths, chosen.lengths)]
        source = None if not isinstance(v.type, Array) else scope.elements(v)
        step_of = asked_step if all(n.constant == 1 for n in lengths) else masked_step_op
        step = None if source is None else step_of(_count_true(scope, chosen, lengths),
                                                   source.lengths[-1])
        if source is not None and source.value is None and not source.generated:
            source = in_memory(scope.whole(v), source.lengths, v.type)

        def body(index: Index, carries):
            def write():
                x = scope.env[v] if source is None else source.at([carries[1]])
                return [op.record(carries[0], x, *index, pattern=("i",) * len(index)),
                        *([add(carries[1], step)] if source else [])]

            return branch(chosen.at(index), write, carries)

        inits = [array, value(0)] if source else [array]
        types = [array.type, Scalar("int64")] if source else [array.type]
        array = loop(lengths, inits, types, [name, "k"], body, scope.counters)[0]
        scope.define(op.output, array, scope.lengths(a))
        return True
    return False


def masked_rows(scope, op: Op, mask: Value) -> bool:
    """Emit `x[mask] = v` for a mask of the first axes."""
    a, v, *_ = op.inputs
    array, lengths, chosen = scope.whole(a), scope.lengths(a), scope.elements(mask)
    rank = mask.type.rank
    rows = [scope.same(n, m) for n, m in zip(lengths, chosen.lengths)]
    region, dims, step = [value(0), *lengths[rank:]], [0, *a.type.dims[rank:]], value(0)
    if isinstance(v.type, Array) and v.type.rank >= len(region):
        if v.type.rank > len(region):
            return False
        region[0], dims[0] = scope.lengths(v)[0], v.type.dims[0]
        step = masked_step_op(_count_true(scope, chosen, rows), region[0])
    read = source_reader(scope, a, v, region, tuple(dims))

    def body(index: Index, carries):
        def write() -> list[Value]:
            (written,) = loop(region[1:], carries[:1], [array.type], [name], lambda inner, state: [
                op.record(state[0], read([carries[1], *inner]), *index, *inner,
                          pattern=("i",) * (len(index) + len(inner)))],
                (*scope.counters, *(i.name for i in index)))
            return [written, add(carries[1], step)]

        return branch(chosen.at(index), write, carries)

    name = op.output.name or a.name
    array = loop(rows, [array, value(0)], [array.type, Scalar("int64")], [name, "k"], body,
                 scope.counters)[0]
    scope.define(op.output, array, lengths)
    return True


def branch(condition: Value, then: Callable[[], list[Value]],
           otherwise: list[Value]) -> list[Value]:
    """Emit an `if` whose other branch changes nothing."""
    first, second = Block(), Block(yields=list(otherwise))
    with Builder(first):
        first.yields = then()
    return add_op(if_record, [condition], {}, [x.type for x in otherwise], [first, second],
                  [x.name for x in otherwise]).outputs
