"""Store the result of a nest into an array that the nest reads for the last time.

    z = x @ W                                    z = x @ W
    y = np.empty((n, m))                         for i in range(n):
    for i in range(n):                               for j in range(m):
        for j in range(m):          becomes              z[i, j] = np.tanh(z[i, j])
            y[i, j] = np.tanh(z[i, j])           return z @ V
    return y @ V

Fresh memory costs more than arithmetic: the system hands out its pages and clears them, which was
half of the time of the gradient of a layer. So a buffer is replaced by an array that dies in the
nest, if it is as long in each axis, if the function allocated it, and if each of its elements is
read only in the trip that writes there. A result keeps memory of its own: the caller may provide it
(runtime/entry/out_argument.py).

In the IR the loop then carries the array in place of the buffer, and reads what it carries: the
transformation is valid by the semantics of the IR alone, and back/print/insert_copies.py, which
finds a write to an array that is dead afterwards, prints it in place. Considered: a pool of freed
blocks. It saves clearing pages, not passes through memory.
"""

from __future__ import annotations

from ...analysis.dependence import Trip, counts_from_zero
from ...ir.graph import Block, Function, Op, Value, blocks_of, op_free_values, walk
from ...ir.types import Array, Extent
from ...ops.arrays.products import matmul
from ..loopir.only_reads import only_reads
from ..loopir.ops import buffer


def reuse_dying_buffers(function: Function) -> Function:
    """Replace new arrays in the loops of `function`, a loop form, by dying ones, in place."""
    returned = memory_of_results(function)
    for block in list(blocks_of(function.block)):
        buffers = {op.output for op in block.ops if op.record is buffer and not op.attrs["zero"]}
        if not buffers:
            continue
        users: dict[Value, list[Op]] = {}
        for op in block.ops:
            for x in op_free_values(op):
                users.setdefault(x, []).append(op)
        for loop in [op for op in block.ops if op.name == "for"]:
            for k, allocation in enumerate(loop.inputs[3:]):
                if (allocation not in buffers or users[allocation] != [loop]
                        or loop.inputs.count(allocation) != 1 or loop.outputs[k] in returned):
                    continue
                write = only_write(loop, k)
                array = (None if write is None
                         else dying_array(loop, write, allocation, block, users))
                if array is not None:
                    replace_buffer(array, loop, k, write)
    return function


def memory_of_results(function: Function) -> set[Value]:
    """The arrays that may share memory with results, through writes, views, loops and branches."""
    found: set[Value] = set()
    pending = list(function.block.yields)
    while pending:
        x = pending.pop()
        op = x.op
        if x in found or op is None:
            continue
        found.add(x)
        k = op.outputs.index(x)
        if op.blocks:
            pending += [block.yields[k - len(op.outputs)] for block in op.blocks
                        if len(block.yields) >= len(op.outputs)]
            if op.name != "if":
                pending.append(op.inputs[k - len(op.outputs)])
        else:
            pending += [y for j, y in enumerate(op.inputs) if op.record.writes == j
                        or j in op.record.views or op.name == "tuple"]
    return found


def only_write(loop: Op, k: int) -> Op | None:
    """The only write to carry `k` of a nest, if it is indexed by all counters."""
    at, carry, counters = loop, k, []
    while True:
        (body,) = at.blocks
        if at.attrs["breaks"] or not counts_from_zero(at):
            return None
        counters.append(body.params[0])
        param, end = body.params[1 + carry], body.yields[carry]
        if end.op is None or end.op.name != "for":
            break
        at, carry = end.op, end.op.outputs.index(end)
        if at.inputs[3 + carry] is not param or at not in body.ops:
            return None
    write = end.op
    if (write is None or write.name != "setitem" or write not in body.ops
            or write.inputs[0] is not param or write.inputs[2:] != counters
            or write.attrs["pattern"] != ("i",) * param.type.rank):
        return None
    (outer,) = loop.blocks
    versions = set(Trip(outer).versions(outer.params[1 + k]))
    if any(op is not write and not (op.name == "getitem" and op.inputs[0] is write.output)
           for op in walk(outer) if not op.blocks and not versions.isdisjoint(op.inputs)):
        return None
    return write


def dying_array(loop: Op, write: Op, allocation: Value, block: Block,
              users: dict[Value, list[Op]]) -> Value | None:
    """An array, dead after the loop, that can replace `allocation`, which `write` fills."""
    for array in op_free_values(loop):
        if (array not in loop.inputs and array.type == allocation.type
                and is_made_in(array, block) and array not in block.yields
                and not any(d.accepts_any for d in array.type.dims if isinstance(d, Extent))
                and users[array][-1] is loop and all(only_reads(op, array) for op in users[array])
                and reads_where_it_writes(loop, array, write)):
            return array
    return None


def is_made_in(array: Value, block: Block) -> bool:
    """Whether `array` is allocated in `block`, and is as contiguous as a buffer."""
    if not isinstance(array.type, Array) or array.op is None or array.op not in block.ops:
        return False
    while array.op.name == "for":
        array = array.op.inputs[3 + array.op.outputs.index(array)]
        if array.op is None or array.op not in block.ops:
            return False
    return array.op.record in (matmul, buffer)


def reads_where_it_writes(loop: Op, array: Value, write: Op) -> bool:
    """Whether a trip of `loop` reads of `array` only the element that `write` then overwrites."""
    inside = next(inner for inner in blocks_of(loop.blocks[0]) if write in inner.ops)
    before = inside.ops[:inside.ops.index(write)]
    reads = [op for op in walk(loop.blocks[0]) if array in op.inputs]
    return all(op in before and op.name == "getitem" and op.attrs["pattern"]
               == write.attrs["pattern"] and op.inputs[1:] == write.inputs[2:] for op in reads)


def replace_buffer(array: Value, loop: Op, k: int, write: Op) -> None:
    """Initialise carry `k` of `loop` with `array` instead of a new buffer."""
    for op in walk(loop.blocks[0]):
        op.inputs[:] = [write.inputs[0] if x is array else x for x in op.inputs]
    loop.inputs[3 + k] = array
