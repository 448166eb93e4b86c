"""Backward rank inference: find the parameters that must be numbers for a result to be one.

Before any call an unannotated parameter may be a scalar or an array of any rank.  But `grad` asks
for a result that is a number, a branch asks for a condition that is one, `math.sin` for an argument
that is one, and `range` for integers; an elementwise op gives a number only if it is given numbers.
Walking back from there through loops and branches finds the parameters that can only be numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.graph import Block, Function, Value, walk
from ..ir.types import Scalar, Type, Unknown
from ..ops.arrays.products import matmul
from ..ops.core.shape import length
from .propagate import loop_parts


def types_from_results(function: Function, scalars: Iterable[Value] = ()) -> list[Type]:
    """Return the types of the parameters of `function`, given that the values in `scalars` are
    numbers.
    """
    floats, integers = demanded_numbers(function, scalars)
    types = []
    for p in function.params:
        if not isinstance(p.type, Unknown):
            types.append(p.type)
        elif p in integers:
            types.append(Scalar("int64", weak=True))
        elif p in floats:
            types.append(Scalar("float64", weak=True))
        else:
            types.append(p.type)
    return types


def must_be_array(function: Function, y: Value) -> bool:
    """Test whether `y` would have to be a number computed from something that the program indexes.
    """
    numbers, _ = demanded_numbers(function, [y])
    return any(op.inputs[0] in numbers for op in walk(function.block)
               if op.record.indices is not None or op.record in (length, matmul))


def demanded_numbers(function: Function, scalars: Iterable[Value]) -> tuple[set[Value], set[Value]]:
    """Return the values that must be numbers, and those among them that must be integers."""
    numbers, integers = set(), set()
    pending: list[tuple[Value, bool]] = [(v, False) for v in scalars]
    carries: dict[Value, tuple[Value, ...]] = {}  # a loop's parameter -> its initial value
    for op in walk(function.block):
        match op.name:
            case "for" | "while":
                inits, params, yields, _ = loop_parts(op)
                for group in zip(inits, params, yields, op.outputs):
                    carries.update(dict.fromkeys(group[1:], group))
                if op.name == "for":
                    pending += [(x, True) for x in op.inputs[:3]]
                else:
                    for head, group in zip(op.blocks[0].params, zip(inits, params, yields)):
                        carries[head] = group
                    pending += [(y, False) for y in op.blocks[0].yields]
            case "if":
                pending.append((op.inputs[0], False))
            case "eye":
                pending += [(x, True) for x in op.inputs]
            case _ if op.record.of_numbers:
                pending += [(x, False) for x in op.inputs]
    while pending:
        value, integer = pending.pop()
        if value in (integers if integer else numbers):
            continue
        numbers.add(value)
        if integer:
            integers.add(value)
        pending += [(v, integer) for v in carries.get(value, ())]
        op = value.op
        if op is None:
            continue
        if op.name == "if":
            pending += [(_yield_of(block, op.outputs.index(value)), integer) for block in op.blocks]
        elif op.record.elementwise:
            keep = integer and op.record.integral
            pending += [(x, keep) for x in op.inputs]
    return numbers, integers


def _yield_of(block: Block, k: int) -> Value:
    return block.yields[k]
