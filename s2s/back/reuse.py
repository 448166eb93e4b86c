"""Buffers that a loop fills anew on each trip are allocated once, before the loop.

    for t in range(n):                      work = np.empty(m)
        work = np.empty(m)                  for t in range(n):
        for i in range(m):         becomes      for i in range(m):
            work[i] = ...                           work[i] = ...
        total += work[0]                        total += work[0]

In the IR the loop carries the buffer from trip to trip.  That is right where nothing of it outlives the
trip: every use is an element read or written, a matrix product, or a loop that carries it on.
"""

from __future__ import annotations

from ..ir.builder import Builder
from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import Array
from .buffers import same_length_op
from .counted import loop, put
from .elimination import BY_ELIMINATION
from .reductions import zero_of

ARITHMETIC = frozenset({"constant", "length", "add", "subtract", "multiply", "at_least_zero"})  # of lengths
WRITERS = frozenset({"setitem", "additem", *BY_ELIMINATION})
READERS = frozenset({"getitem", "matmul", "length"})


def reuse_buffers(function: Function) -> Function:
    """`function`, a loop form, with its buffers moved out of the loops that reuse them; it is changed."""
    _block(function.block)
    return function


def _block(block: Block) -> None:
    position = 0
    while position < len(block.ops):
        op = block.ops[position]
        for inner in op.blocks:
            _block(inner)
        if op.name == "for":
            moved = _moved_out(op)
            block.ops[position:position] = moved
            position += len(moved)
        position += 1


def _moved_out(around: Op) -> list[Op]:
    """Move what can be moved out of the body of the loop `around`; returns the ops to put before it."""
    body = around.blocks[0]
    inside = {v for v in body.params} | {v for op in walk(body) for v in op.outputs}
    moved: list[Op] = []
    for op in list(body.ops):
        if op.name != "buffer":
            continue
        own_lengths = [_outside(n, inside) for n in op.inputs]
        lengths = _invariant(own_lengths, inside)
        last = None if lengths is None else _last_version(op.output, body)
        if last is None:
            continue
        op.inputs = own_lengths
        for x in lengths:
            body.ops.remove(x)
        place = body.ops.index(op)
        body.ops.remove(op)
        moved += [*lengths, op]
        inside -= {v for x in (*lengths, op) for v in x.outputs}
        param = start = Value(op.output.type, op.output.name)
        if op.attrs["zero"]:  # each trip begins with zeros
            op.attrs = {**op.attrs, "zero": False}
            filling, start = _zeros(param, op)
            body.ops[place:place] = filling
        inside |= {param, start, *(v for x in body.ops[place:] for v in x.outputs)}
        _replace(body, op.output, start)
        body.params.append(param)
        body.yields.append(start if last is op.output else last)
        around.inputs.append(op.output)
        around.outputs.append(Value(op.output.type, op.output.name, around))
    return moved


def _zeros(array: Value, made: Op) -> tuple[list[Op], Value]:
    """A loop that sets each element of `array`, as long as the buffer that `made` makes, to zero; and what it is then."""
    dtype = array.type.dtype
    with Builder(Block(), made.line) as builder:
        (filled,) = loop(made.inputs, [array], [array.type], [array.name],
                         lambda index, carries: [put(carries[0], zero_of(dtype), index)])
    return builder.block.ops, filled


def _outside(n: Value, inside: set[Value]) -> Value:
    """A length from outside the loop that each trip checks `n` to be equal to; else `n` itself."""
    if n in inside and n.op is not None and n.op.record is same_length_op:
        return next((m for m in (_outside(m, inside) for m in n.op.inputs) if m not in inside), n)
    return n


def _invariant(own_lengths: list[Value], inside: set[Value]) -> list[Op] | None:
    """The ops that compute the lengths of a buffer, to be moved along with it; None if a length changes."""
    along: dict[Op, None] = {}

    def visit(n: Value) -> bool:
        if n not in inside:
            return True
        if n.op is None or n.op.name not in ARITHMETIC or not all(map(visit, n.op.inputs)):
            return False
        along[n.op] = None
        return True

    return list(along) if all(map(visit, own_lengths)) else None


def _last_version(buffer: Value, body: Block) -> Value | None:
    """What `buffer` has become at the end of a trip, if nothing else of it is left then."""
    current, last = [buffer], buffer
    while current:
        version = current.pop()
        following = _successor(version, body)
        if following is False:
            return None
        if following is not None:
            current.append(following)
            last = following
    return last


def _successor(version: Value, body: Block) -> Value | None | bool:
    """The value that takes the place of `version` in `body`; None if none does, False if it is used otherwise."""
    if version in body.yields:
        return False
    found = None
    for op in body.ops:
        if op.name in WRITERS and op.inputs[0] is version and version not in op.inputs[1:]:
            next_one = op.output
        elif op.name == "for" and version in op.inputs[3:]:
            if op.inputs.count(version) != 1 or not _only_read(version, op.blocks):
                return False
            next_one = op.outputs[op.inputs.index(version) - 3]
            if not _carried_on(op, op.inputs.index(version) - 3):
                return False
        else:
            if version in op.inputs and (op.name not in READERS or isinstance(op.output.type, Array)
                                         and op.name == "getitem"):
                return False
            if not _only_read(version, op.blocks):
                return False
            continue
        if found is not None:
            return False
        found = next_one
    return found


def _carried_on(around: Op, k: int) -> bool:
    """Whether the k-th carry of the loop `around` is the same memory from trip to trip, and nothing else gets hold of it."""
    body = around.blocks[0]
    skip = len(body.yields) - len(around.outputs)
    version, end = body.params[1 + k], body.yields[skip + k]
    while version is not end:
        if body.yields.count(version):
            return False
        following = _successor(version, body)
        if following is None or following is False:
            return False
        version = following
    return body.yields.count(end) == 1


def _only_read(version: Value, blocks: list[Block]) -> bool:
    """Whether `blocks` do nothing with `version` but read elements of it."""
    for block in blocks:
        if version in block.yields:
            return False
        for op in walk(block):
            if version in op.inputs and (op.name not in READERS or isinstance(op.output.type, Array)
                                         and op.name == "getitem"):
                return False
            if any(version in inner.yields for inner in op.blocks):
                return False
    return True


def _replace(block: Block, old: Value, new: Value) -> None:
    """Read `new` wherever `block`, or a block in it, reads `old`."""
    for op in walk(block):
        op.inputs[:] = [new if x is old else x for x in op.inputs]
        for inner in op.blocks:
            inner.yields[:] = [new if y is old else y for y in inner.yields]
    block.yields[:] = [new if y is old else y for y in block.yields]
