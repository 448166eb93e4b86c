"""Counted loops around a body: `for i in range(n): for j in range(m): ...`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.builder import Builder, add_op, emit
from ...ir.graph import Block, Value
from ...ir.types import INT
from ...ops.arrays.index import setitem
from ...ops.core.control import for_record
from ...ops.core.record import RECORDS, value

INDICES = "ijklmnpq"


def counter_name(taken: tuple[str, ...]) -> str:
    """The first of i, j, k, ... that no enclosing loop uses."""
    return next((name for name in INDICES if name not in taken), "i")


def loop(lengths: Sequence[Value], carries: Sequence[Value], types: Sequence, names: Sequence[str],
         body: Callable[[list[Value], list[Value]], Sequence[Value]],
         counters: tuple[str, ...] = (), index: tuple[Value, ...] = ()) -> list[Value]:
    """Emit `for i in ..: for j in ..: ...` around `body(index, carries) -> carries`."""
    if not lengths:
        return list(body(list(index), list(carries)))
    if lengths[0].constant == 1:
        return loop(lengths[1:], carries, types, names, body, counters, (*index, value(0)))
    params = [Value(INT, counter_name(counters)),
              *(Value(t, n) for t, n in zip(types, names))]
    block = Block(params=params)
    with Builder(block):
        block.yields = loop(lengths[1:], params[1:], types, names, body,
                            (*counters, params[0].name), (*index, params[0]))
    op = add_op(for_record, [value(0), lengths[0], value(1), *carries], {"breaks": False}, types,
                [block], names)
    return list(op.outputs)


def put(array: Value, x: Value, index: Sequence[Value]) -> Value:
    """Emit `array[index] = x`."""
    return setitem(array, x, *index, pattern=("i",) * len(index))


def op_named(name: str, *inputs, **attrs) -> Value:
    """Emit the op of this name."""
    return emit(RECORDS[name], *map(value, inputs), **attrs)


def add(a, b) -> Value:
    return op_named("add", a, b)


def subtract(a, b) -> Value:
    return op_named("subtract", a, b)


def multiply(a, b) -> Value:
    return op_named("multiply", a, b)
