"""Hoist the allocation of buffers that a loop fills anew on each trip.

    for t in range(n):                      work = np.empty(m)
        work = np.empty(m)                  for t in range(n):
        for i in range(m):         becomes      for i in range(m):
            work[i] = ...                           work[i] = ...
        total += work[0]                        total += work[0]

In the IR the loop carries the buffer from trip to trip. That is legal where the buffer does not
outlive the trip: every use is an element read or write, a matrix product, or a loop that carries
it.

A buffer of one axis, or of known lengths, that a branch fills is first hoisted out of the branch,
and so may leave the loop, too: `if i != j: r = x[i] - x[j]` for a pair of particles needs three
numbers, and allocating them took longer than all else. Larger buffers stay: the branch may be there
because there is no room for them.

A short array that the next trip begins with is copied at the end of the trip into the array that
this trip began with:

    x = np.zeros(3)                         x, new = np.zeros(3), np.empty(3)
    for t in range(n):                      for t in range(n):
        new = np.empty(3)                       for i in range(3):
        for i in range(3):        becomes           new[i] = x[i] + ...
            new[i] = x[i] + ...                 for i in range(3):
        x = new                                     x[i] = new[i]

Allocating 4 numbers costs 15 ns, copying them 1: the gradient of a hidden Markov model of four
states took a fifth longer. Considered: two arrays that change places (double buffering), for any
length; LLVM then no longer sees that they do not alias, and longer arrays take longer to fill than
to allocate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...analysis.alias_in_trip import parts
from ...ir.builder import Builder
from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ops.core.control import at_least_zero
from ...ops.core.record import constant, dims_of, value
from ...ops.core.shape import length
from ..loopir.loop_builder import loop, op_named, put
from ..loopir.only_reads import only_reads
from ..loopir.ops import new_buffer, same_length_op
from ..loopir.reductions import zero_of

LOOPS = ("for", "while")
FEW = 32  # numbers that are copied faster than they are allocated


def hoist_buffers(function: Function) -> Function:
    """Hoist buffers of `function`, a loop form, out of the loops that reuse them; it is changed."""
    hoist_in_block(function.block)
    return function


def hoist_in_block(block: Block, is_left: Callable[[Op], bool] = lambda loop: False) -> None:
    """Hoist buffers out of the loops in `block`, but for those that `is_left` tells."""
    position = 0
    while position < len(block.ops):
        op = block.ops[position]
        for inner in op.blocks:
            hoist_in_block(inner, is_left)
        if op.name in LOOPS and not is_left(op):
            moved = [*(_copy_carried(op, block) if op.name == "for" else ()), *_hoist(op)]
            block.ops[position:position] = moved
            position += len(moved)
        position += 1


def _hoist(around: Op) -> list[Op]:
    """Hoist buffers out of the body of the loop `around`; return the ops to put before it."""
    body = around.blocks[-1]
    inside = {v for v in body.params} | {v for op in walk(body) for v in op.outputs}
    moved: list[Op] = []
    _before_branches(body, inside)
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
        for head in around.blocks[:-1]:  # the head of a `while`
            head.params.append(Value(param.type, param.name))
        body.yields.append(start if last is op.output else last)
        around.inputs.append(op.output)
        around.outputs.append(Value(op.output.type, op.output.name, around))
    return moved


def _copy_carried(around: Op, block: Block) -> list[Op]:
    """Copy short arrays that each trip of `around` allocates into the carried ones.

    Returns the ops to put before the loop.
    """
    body = around.blocks[0]
    before: list[Op] = []
    skip, place = len(body.yields) - len(around.outputs), block.ops.index(around)
    for k, start in enumerate(around.inputs[3:]):
        param, end = body.params[1 + k], body.yields[skip + k]
        if (not _is_short(param) or end.type != param.type or body.yields.count(end) != 1
                or _successor(param, body) is not None):
            continue
        if not _made_in(Block(body.params, body.ops, [y for y in body.yields if y is not end]),
                        end):
            continue
        later = [*block.ops[place + 1:], *body.ops]
        if (around.inputs.count(start) > 1 or start in block.yields
                or any(start in op.inputs or not _only_read(start, op.blocks) for op in later)
                or not _made_in(Block(ops=block.ops[:place]), start)):
            copies, around.inputs[3 + k] = _copy(start, None, around.line)
            before += copies
        copies, body.yields[skip + k] = _copy(end, param, around.line)
        body.ops += copies
        _rename_versions(end, _allocation(end).name or end.name)
    return before


def _allocation(array: Value) -> Value:
    """The allocation of the buffer that `array` is a version of."""
    while array.op.name != "buffer":
        array = _before(array)
    return array


def _before(array: Value) -> Value:
    """The version of a buffer before the op that defines `array`; for an `if`, an arm's last."""
    k = array.op.outputs.index(array)
    match array.op.name:
        case "for" | "while":
            return array.op.inputs[parts(array.op)[0] + k]
        case "if":
            return array.op.blocks[0].yields[k]
    return array.op.inputs[0]


def _rename_versions(array: Value, name: str) -> None:
    """Rename all versions of a buffer.

    Native code counts references to names, and the carried array is another.
    """
    while array.op is not None:
        array.name = name
        if array.op.name == "buffer":
            return
        k = array.op.outputs.index(array)
        if array.op.name in LOOPS:
            _, params, skip = parts(array.op)
            for param in (params[k], *(head.params[k] for head in array.op.blocks[:-1])):
                param.name = name
            _rename_versions(array.op.blocks[-1].yields[skip + k], name)
        if array.op.name == "if":
            _rename_versions(array.op.blocks[1].yields[k], name)
        array = _before(array)


def _is_short(array: Value) -> bool:
    dims = dims_of(array.type)
    return len(dims) > 0 and all(isinstance(d, int) for d in dims) and math.prod(dims) <= FEW


def _made_in(block: Block, array: Value) -> bool:
    """Whether `block` allocates the array, and nothing aliases it."""
    return any(op.name == "buffer" and op.output.type == array.type
               and _last_version(op.output, block) is array for op in block.ops)


def _copy(array: Value, into: Value | None, line: int | None) -> tuple[list[Op], Value]:
    """The ops that copy a short array into another or a new one, and the copy."""
    with Builder(Block(), line) as builder:
        lengths = list(map(value, dims_of(array.type)))
        target = new_buffer(array.type.dtype, array.type.dims, lengths) if into is None else into
        target.name = target.name or array.name
        (copy,) = loop(lengths, [target], [array.type], [target.name],
                       lambda index, carries: [put(carries[0],
                                                   op_named("getitem", array, *index,
                                                            pattern=("i",) * len(index)), index)])
    return builder.block.ops, copy


def _before_branches(body: Block, inside: set[Value]) -> None:
    """Hoist small buffers out of the branches of `body`, a loop's block whose ops are `inside`."""
    for place in reversed(range(len(body.ops))):
        branch = body.ops[place]
        for block in branch.blocks if branch.name == "if" else ():
            _before_branches(block, inside)
            for op in [op for op in block.ops if op.name == "buffer"]:
                lengths = [n if n.constant is MISSING else n.constant
                           for n in (_outside(n, inside) for n in op.inputs)]
                last = _last_version(op.output, block)
                if last is not None and _is_small(lengths, inside):
                    body.ops[place:place] = hoisted = _from_branch(branch, block, op, lengths, last)
                    inside.update(v for x in hoisted for v in x.outputs)


def _is_small(lengths: Sequence[Value | int], inside: set[Value]) -> bool:
    """Whether a buffer may be allocated before its branch: short lengths, or one axis.

    The length of the axis must be known not to be negative: the branch may not be taken.
    """
    if len(lengths) != 1 or isinstance(lengths[0], int):
        return all(isinstance(n, int) for n in lengths)
    (n,) = lengths
    return (n not in inside and n.op is not None
            and (n.op.record.natural or n.op.record is same_length_op))


def _from_branch(branch: Op, block: Block, buffer: Op, lengths: Sequence[Value | int],
                 last: Value) -> list[Op]:
    """The ops to put before `branch` to hoist the `buffer` of its `block`."""
    with Builder(Block(), buffer.line) as builder:
        buffer.inputs = list(map(value, lengths))
    place = block.ops.index(buffer)
    block.ops.remove(buffer)
    start = buffer.output
    if buffer.attrs["zero"]:
        buffer.attrs = {**buffer.attrs, "zero": False}
        filling, start = _zeros(buffer.output, buffer)
        _replace(block, buffer.output, start)
        block.ops[place:place] = filling
    for other in branch.blocks:
        other.yields.append(buffer.output if other is not block else start if last is buffer.output
                            else last)
    branch.outputs.append(Value(buffer.output.type, buffer.output.name, branch))
    return [*builder.block.ops, buffer]


def _zeros(array: Value, allocation: Op) -> tuple[list[Op], Value]:
    """A loop that fills `array` with zeros, with the lengths of `allocation`; and the result."""
    dtype = array.type.dtype
    with Builder(Block(), allocation.line) as builder:
        (filled,) = loop(allocation.inputs, [array], [array.type], [array.name],
                         lambda index, carries: [put(carries[0], zero_of(dtype), index)])
    return builder.block.ops, filled


def _outside(n: Value, inside: set[Value]) -> Value:
    """A loop-invariant length that each trip checks to equal `n`; else `n` itself."""
    if n in inside and n.op is not None and n.op.record is same_length_op:
        return next((m for m in (_outside(m, inside) for m in n.op.inputs) if m not in inside), n)
    return n


def _invariant(own_lengths: list[Value], inside: set[Value]) -> list[Op] | None:
    """The ops that compute a buffer's lengths, to hoist with it; None if a length varies."""
    along: dict[Op, None] = {}

    def visit(n: Value) -> bool:
        if n not in inside:
            return True
        if n.op is None or not _may_move(n.op) or not all(map(visit, n.op.inputs)):
            return False
        along[n.op] = None
        return True

    return list(along) if all(map(visit, own_lengths)) else None


def _may_move(op: Op) -> bool:
    """Whether lengths are computed by `op`, and it cannot raise where the loop makes no trip."""
    return op.record.ring or op.record in (constant, length, at_least_zero)


def _last_version(buffer: Value, body: Block) -> Value | None:
    """The last version of `buffer` in a trip, if no other version is live there."""
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
    """The next version of `version` in `body`; None for none, False if it is used otherwise."""
    if version in body.yields:
        return False
    found = None
    for op in body.ops:
        if not op.blocks and version not in op.inputs:  # as most
            continue
        if op.record.writes == 0 and op.inputs[0] is version and version not in op.inputs[1:]:
            next_one = op.output
        elif op.name in LOOPS and version in op.inputs[(first := parts(op)[0]):]:
            if op.inputs.count(version) != 1 or not _only_read(version, op.blocks):
                return False
            next_one = op.outputs[op.inputs.index(version) - first]
            if not _is_same_memory(op, op.inputs.index(version) - first):
                return False
        elif op.name == "if" and any(version in inner.yields for inner in op.blocks):
            k = next(inner.yields.index(version) for inner in op.blocks if version in inner.yields)
            if not all(_ends_with(version, inner, k) for inner in op.blocks):
                return False
            next_one = op.outputs[k]
        else:
            if not only_reads(op, version):
                return False
            continue
        if found is not None:
            return False
        found = next_one
    return found


def _ends_with(version: Value, branch: Block, k: int) -> bool:
    """Whether the last version in a block is its k-th result, and no other version is live."""
    end = branch.yields[k]
    while version is not end:
        following = _successor(version, branch)
        if following is None or following is False:
            return False
        version = following
    return branch.yields.count(end) == 1 and _reads(end, branch)


def _is_same_memory(around: Op, k: int) -> bool:
    """Whether the k-th carry of the loop `around` is one piece of memory that does not escape."""
    body = around.blocks[-1]
    _, params, skip = parts(around)
    if not all(_only_read(head.params[k], [head]) for head in around.blocks[:-1]):
        return False
    version, end = params[k], body.yields[skip + k]
    while version is not end:
        if body.yields.count(version):
            return False
        following = _successor(version, body)
        if following is None or following is False:
            return False
        version = following
    return body.yields.count(end) == 1 and _reads(end, body)


def _only_read(version: Value, blocks: list[Block]) -> bool:
    """Whether `blocks` only read elements of `version`."""
    return not any(version in block.yields
                   for block in blocks) and all(_reads(version, block) for block in blocks)


def _reads(version: Value, block: Block) -> bool:
    """Whether the ops of `block` only read elements of `version`."""
    return all(only_reads(op, version) for op in block.ops)


def _replace(block: Block, old: Value, new: Value) -> None:
    """Replace uses of `old` by `new` in `block` and the blocks in it."""
    for op in walk(block):
        for values in (op.inputs, *(inner.yields for inner in op.blocks)):
            if old in values:
                values[:] = [new if x is old else x for x in values]
    block.yields[:] = [new if y is old else y for y in block.yields]
