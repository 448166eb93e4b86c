"""Which indices are proved to lie inside their arrays, so that compiled code need not check them.

    for i in range(1, len(u) - 1):
        u[i - 1] + u[i + 1]            proved: 1 <= i <= len(u) - 2

An integer is bounded below by a number and above by an extent plus a number: all that loops over `range`
need.  What is not proved is checked when it runs, and raises IndexError.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import Array, Extent, Scalar
from ..ops.index import _paired, expand

INFINITE = None


@dataclass(frozen=True)
class Range:
    """low <= x, and x < symbol + high (or x < high where there is no symbol)."""

    low: int | None = None
    symbol: str | None = None
    high: int | None = None


def indices_are_proved(function: Function) -> bool:
    """Whether no index that the program writes out can leave its array."""
    return _proved(function.block, extents_named(function.block))


def extents_named(block: Block) -> dict[Value, Range]:
    """Numbers that arrays were made as long as: after `np.empty(n)`, n is that array's extent."""
    known: dict[Value, Range] = {}
    for op in walk(block):
        if op.name in ("zeros", "ones", "empty") and isinstance(op.output.type, Array):
            for n, dim in zip(op.inputs, op.output.type.dims):
                if isinstance(dim, Extent) and not dim.offset and n.op is not None and n.op.name != "length":
                    known[n] = Range(None, dim.symbol, 1)
                elif isinstance(dim, Extent) and not dim.offset and n.op is None:
                    known[n] = Range(None, dim.symbol, 1)
    return known


def _proved(block: Block, known: dict[Value, Range]) -> bool:
    for op in block.ops:
        if op.name in ("getitem", "setitem", "additem") and not _index_proved(op, known):
            return False
        if op.name == "call":
            if not indices_are_proved(op.attrs["callee"].function_for(op.inputs)):
                return False
        if op.name == "for":
            known[op.blocks[0].params[0]] = _counter(op, known)
        if not all(_proved(inner, known) for inner in op.blocks):
            return False
    return True


def _index_proved(op: Op, known: dict[Value, Range]) -> bool:
    array = op.inputs[0]
    if not isinstance(array.type, Array):
        return False
    operands = op.inputs[1 if op.name == "getitem" else 2:]
    dims = list(array.type.dims)
    for p, operand in _paired(expand(op.attrs["pattern"], len(dims)), operands):
        if p is None:
            continue
        if p == "i" and isinstance(operand.type, Array) and operand.type.dtype == "bool":
            for _ in operand.type.dims:
                dims.pop(0)
            continue
        dim = dims.pop(0)
        if p == "i" and not (isinstance(operand.type, Scalar) and _inside(range_of(operand, known), dim)):
            return False
    return True


def _inside(r: Range, dim) -> bool:
    """0 <= x < dim."""
    if r.low is None or r.low < 0 or r.high is None:
        return False
    if isinstance(dim, int):
        return r.symbol is None and r.high <= dim
    return not dim.accepts_any and r.symbol == dim.symbol and r.high <= dim.offset


def range_of(x: Value, known: dict[Value, Range]) -> Range:
    """What is known of the integer `x`."""
    if x in known:
        return known[x]
    if type(x.constant) is int:
        return Range(x.constant, None, x.constant + 1)
    op = x.op
    if op is None:
        return Range()
    if op.name in ("add", "subtract") and type(op.inputs[1].constant) is int:
        shift = op.inputs[1].constant * (1 if op.name == "add" else -1)
        return _shifted(range_of(op.inputs[0], known), shift)
    if op.name == "length" and isinstance(op.inputs[0].type, Array):
        dim = op.inputs[0].type.dims[op.attrs["axis"]]
        if isinstance(dim, Extent) and not dim.accepts_any:
            return Range(0, dim.symbol, dim.offset + 1 if dim.offset >= 0 else None)
    return Range()


def _end(x: Value, known: dict[Value, Range]) -> Range:
    """What is known of the end of a loop's range, where a negative number is as good as 0."""
    if x.op is not None and x.op.name == "at_least_zero":
        return _end(x.op.inputs[0], known)
    if x.op is not None and x.op.name == "length" and isinstance(x.op.inputs[0].type, Array):
        dim = x.op.inputs[0].type.dims[x.op.attrs["axis"]]
        if isinstance(dim, Extent) and not dim.accepts_any:
            return Range(None, dim.symbol, dim.offset + 1)
    return range_of(x, known)


def _shifted(r: Range, by: int) -> Range:
    return Range(None if r.low is None else r.low + by, r.symbol, None if r.high is None else r.high + by)


def _counter(op: Op, known: dict[Value, Range]) -> Range:
    """The values that a loop's counter takes."""
    lo, hi, step = op.inputs[:3]
    first, last = range_of(lo, known), range_of(hi, known)
    if type(step.constant) is not int or step.constant == 0:
        return Range()
    if step.constant > 0:  # lo <= i <= hi - 1
        last = _end(hi, known)
        return Range(first.low, last.symbol, None if last.high is None else last.high - 1)
    low = None if last.low is None else last.low + 1  # hi + 1 <= i <= lo
    return Range(low, first.symbol, first.high)
