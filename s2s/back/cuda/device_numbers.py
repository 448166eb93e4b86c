"""Find the numbers that stay on the device: those that no branch, bound or library call asks for.

    total = number(parts.sum())                total = parts.sum()
    scale = 1.0 / total            becomes     scale = 1.0 / total
    scale_kernel[...](n, x, scale)             scale_kernel[...](n, x, scale.reshape(1))

To read a number is to wait until the device has computed it. Arrays of rank 0 wait for nobody:
kernels read them, CuPy computes with them, and calls return them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.types import Scalar
from ...ops.core.record import Record
from ..loopir.ops import buffer


def device_numbers(function: Function, is_kernel: Callable[[Op], bool],
                   is_made_there: Callable[[Op], bool]) -> set[Value]:
    """The numbers of `function`, a loop form, that its host leaves on the device: those that come
    from kernels, or from ops that are made there, and floats that follow from them.
    """
    found: set[Value] = set()
    asked: set[Value] = set()  # on the host
    together: list[list[Value]] = []  # as branches and loops yield the one or the other
    sums: list[Op] = []  # arithmetic
    pending: list[Block] = [function.block]
    for block in pending:
        for op in block.ops:
            numbers = [x for x in op.inputs if is_number(x)]
            if is_kernel(op):
                found.update(filter(is_number, op.outputs))
                asked.update(x for x in bounds_in(op) if is_number(x))
            elif op.blocks:
                asked.update(op.inputs[:3] if op.name == "for" else ())
                pending += op.blocks
                together += merged(op)
            elif is_made_there(op):
                found.update(filter(is_number, op.outputs))
                asked.update(numbers)
            elif op.record.writes_elements and is_number(op.inputs[1]):
                asked.update(x for x in numbers if x is not op.inputs[1] or x in op.inputs[2:])
            elif len(op.outputs) == 1 and is_float(op.output) and is_arithmetic(op):
                sums.append(op)
            else:
                asked.update(numbers)
    size = -1
    while len(found) + len(asked) > size:
        size = len(found) + len(asked)
        for values in together:
            if not asked.isdisjoint(values) or not all(map(is_number, values)):
                asked.update(values)
            if not found.isdisjoint(values):
                found.update(values)
        for op in sums:
            if op.output in asked:
                asked.update(filter(is_number, op.inputs))
            if op.output.type.dtype == "float32":  # Python's floats would make it float64 there
                asked.update(x for x in op.inputs if x.type.dtype != "float32")
            if not found.isdisjoint(op.inputs):
                found.add(op.output)
    return found - asked


def bounds_in(kernel: Op) -> list[Value]:
    """The bounds of a loop, of those in it, and lengths of arrays: what the host computes with."""
    return [x for op in walk(Block(ops=[kernel]))
            for x in (op.inputs[:3] if op.name == "for" else op.inputs if op.record is buffer
                      else ())]


def is_number(x: Value) -> bool:
    return is_float(x) or isinstance(x.type, Scalar) and x.type.dtype == "int64"


def is_float(x: Value) -> bool:
    return isinstance(x.type, Scalar) and (x.type.dtype == "float64"
                                           or x.type == Scalar("float32"))


def merged(op: Op) -> list[list[Value]]:
    """Of each number that `op`, a branch or a loop, ends with, the values that it may be."""
    count, found = len(op.outputs), []
    for k, y in enumerate(op.outputs):
        ends = [block.yields[k - count] for block in op.blocks if len(block.yields) >= count]
        if op.name == "while":
            ends = [op.blocks[-1].yields[k - count]]
        carried = [] if op.name == "if" else [op.inputs[k - count],
                                              *(block.params[k - count] for block in op.blocks)]
        if isinstance(y.type, Scalar):
            found.append([y, *ends, *carried])
    return found


def is_arithmetic(op: Op) -> bool:
    """Whether the spelling of `op` means the same of arrays of rank 0."""
    if not op.record.elementwise or any(not isinstance(x.type, Scalar) for x in op.inputs):
        return False
    return is_ufunc(op.record, len(op.inputs), op.attrs)


def is_ufunc(record: Record, count: int, attrs: dict) -> bool:
    """Whether an op on so many numbers is printed as an operator, or as a call of a ufunc."""
    match record.syntax(*(ast.Name("x", ast.Load()) for _ in range(count)), **attrs):
        case ast.BinOp() | ast.UnaryOp(ast.USub()):
            return True
        case ast.Call(ast.Attribute(ast.Name("np"), name)):
            return isinstance(getattr(np, name, None), np.ufunc)
    return False
