"""Print three or more tapes of a counted loop as one list of tuples instead of an array each.

    x_tape = np.empty(n)                            saved = []
    y_tape = np.empty(n)                            for k in range(n):
    z_tape = np.empty(n)                                saved.append((x, y, z))
    for k in range(n):                                  ...
        x_tape[k] = x               prints as       for x, y, z in reversed(saved):
        y_tape[k] = y                                   ...
        z_tape[k] = z
        ...
    for k in range(n - 1, -1, -1):
        x = x_tape[k]
        ...

Here they become growing tapes, one each, which pack_tapes.py makes one of.  Native code keeps its
arrays.  All are pushed where the last one is, so that what they save has names of its own: `d`,
`d_1` and `d_2` instead of one `d` after another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from ...analysis.dependence import access_position, runs_back
from ...ir.builder import Builder, at, emit
from ...ir.graph import Block, Function, Op, Value, blocks_of, readers_of
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import Array, Scalar, Tape
from ...ops.arrays.create import empty_record
from ...ops.core.control import tape_new, tape_pop, tape_push

FEWEST = 3  # tapes that are pushed together and popped together


@dataclass(frozen=True)
class ArrayTape:
    """An array that each trip of a loop nest writes an element of, and each trip of its reverse
    reads.
    """

    made: Op
    versions: tuple[Value, ...]  # all values that are this array
    store: Op
    reads: tuple[Op, ...]
    back: tuple[Op, ...]  # the loops of the reverse, outermost first


def stack_tapes(function: Function) -> Function:
    """Return `function`, or a copy in which array tapes that may be one list are growing tapes."""
    if not find_tapes(function) and not any(map(_scattered, blocks_of(function.block))):
        return function
    function = clone(function)
    for tape in find_tapes(function):
        replace(tape, function.block)
    for block in blocks_of(function.block):
        _push_together(block)
    return function


def _scattered(block: Block) -> list[Op]:
    """Return the pushes that may as well be where the last of them is, if there are others between.
    """
    pushes = [op for op in block.ops if op.record is tape_push and op.output in block.yields
              and isinstance(op.output.type, Tape)]
    if len(pushes) < 2:
        return []
    read = Counter(x for inner in blocks_of(block)
                   for op in inner.ops for x in op.inputs)
    read.update(y for inner in blocks_of(block) for y in inner.yields if inner is not block)
    pushes = [op for op in pushes if not read[op.output] and read[op.inputs[0]] == 1]
    written = {op.inputs[op.record.writes] for op in block.ops if op.record.writes is not None}
    pushes = [op for op in pushes if isinstance(op.inputs[1].type, Scalar)
              or _is_of_the_trip(op.inputs[1], block, written)]
    together = len(pushes) < 2 or (block.ops.index(pushes[-1]) - block.ops.index(pushes[0])
                                   == len(pushes) - 1)
    return [] if together else pushes


def _is_of_the_trip(x: Value, block: Block, written: Container[Value]) -> bool:
    """Test whether `x` is an array that `block` makes, and leaves as it is."""
    return (isinstance(x.type, Array) and x.op in block.ops and not x.op.blocks
            and not x.op.record.views and x not in written and x not in block.yields)


def _push_together(block: Block) -> None:
    """Move pushes to the last of them, in place: then their names differ."""
    if pushes := _scattered(block):
        last = block.ops.index(pushes[-1])
        before = [op for op in block.ops[:last] if op not in pushes]
        block.ops[:last + 1] = before + pushes


def find_tapes(function: Function) -> list[ArrayTape]:
    """Return the tapes that are to be stacked."""
    search = Search(function)
    together: dict[tuple, list[ArrayTape]] = {}
    for op in search.home:
        if op.record is empty_record and (tape := search.tape(op)) is not None:
            together.setdefault((search.home[tape.store], *tape.back), []).append(tape)
    return [tape for tapes in together.values() if len(tapes) >= FEWEST for tape in tapes]


class Search:
    """The search for the tapes of one function."""

    def __init__(self, function: Function):
        self.readers = readers_of(function.block)
        self.home = {op: block for block in blocks_of(function.block) for op in block.ops}
        self.owner = {inner: op for op in self.home for inner in op.blocks}

    def tape(self, made: Op) -> ArrayTape | None:
        """Return the tape that `made` allocates, if it is one."""
        versions, nest = [made.output], []
        while True:  # into the loops
            users = self.readers[versions[-1]]
            op = users[0][0] if len(users) == 1 else None
            if op is None or op.name == "setitem" and op.inputs[0] is versions[-1]:
                break
            if not _is_counted(op) or versions[-1] in op.inputs[:3]:
                return None
            k = op.inputs.index(versions[-1]) - 3
            nest.append((op, k))
            versions.append(op.blocks[0].params[1 + k])
        if op is None or not nest:
            return None
        store, saved = op, op.inputs[1]
        versions.append(store.output)
        for loop, k in nest[::-1]:  # and out again
            body = loop.blocks[0]
            if (self.readers[versions[-1]] != [(None, body)]
                    or body.yields.index(versions[-1]) != k):
                return None
            versions.append(loop.outputs[k])
        reads = [op for op, _ in self.readers[versions[-1]]]
        if not reads or not all(op is not None and op.name == "getitem"
                                and op.inputs[0] is versions[-1]
                                and _is_alike(op.output, saved) for op in reads):
            return None
        loops = [loop for loop, _ in nest]
        back = self.reverse(reads, loops)
        if (back is None or saved.type.dtype != made.output.type.dtype
                or not self.around(made) == self.around(loops[0]) == self.around(back[0])
                or not all(_is_same_place(store, read, loops, back) for read in reads)):
            return None
        return ArrayTape(made, tuple(versions), store, tuple(reads), back)

    def reverse(self, reads: Sequence[Op], loops: Sequence[Op]) -> tuple[Op, ...] | None:
        """Return the loops around `reads` that reverse these, if each trip of one runs the next."""
        inner = {next(iter(self.around(op)), None) for op in reads}
        op, back = inner.pop(), []
        for forth in loops[::-1]:
            if inner or op is None or not _is_counted(op) or not runs_back(forth, op):
                return None
            back.append(op)
            op = self.owner.get(self.home[op])
        return tuple(back[::-1])

    def around(self, op: Op) -> list[Op]:
        """Return the loops around `op`, innermost first."""
        found, block = [], self.home[op]
        while block in self.owner:
            op = self.owner[block]
            found += [op] * (op.name != "if")
            block = self.home[op]
        return found


def _is_counted(op: Op) -> bool:
    return op.name == "for" and not op.attrs["breaks"] and op.attrs.get("plan") is None


def _is_alike(read: Value, saved: Value) -> bool:
    """Test whether what is read may be what was saved itself."""
    if isinstance(saved.type, Array) and isinstance(read.type, Array):
        return (saved.type.dtype, saved.type.rank) == (read.type.dtype, read.type.rank)
    return isinstance(saved.type, Scalar) and read.type == saved.type


def _is_same_place(store: Op, read: Op, loops: Sequence[Op], back: Sequence[Op]) -> bool:
    """Test whether each trip reads what its counterpart has written, at a place of its own."""
    if not store.attrs["pattern"] == read.attrs["pattern"] == ("i",) * len(loops):
        return False
    for axis, pair in enumerate(zip(loops, back)):
        places = [access_position(op, 0, axis, loop.blocks[0].params[0])
                  for op, loop in zip((store, read), pair)]
        if None in places or places[0] != places[1] or places[0][0] not in (1, -1):
            return False
    return True


def replace(tape: ArrayTape, block: Block) -> None:
    """Push what `tape` saves on a growing tape, and pop it, in place."""
    saved = tape.store.inputs[1]
    type = Tape(saved.type)
    for version in tape.versions:
        version.type = type
    tape.made.record, tape.made.inputs, tape.made.attrs = tape_new, [], {}
    tape.store.record, tape.store.inputs, tape.store.attrs = (
        tape_push, [tape.store.inputs[0], saved], {})
    rest = tape.versions[-1]
    for loop in tape.back:
        loop.inputs.append(rest)
        rest = Value(type, rest.name)
        loop.blocks[0].params.append(rest)
    body = tape.back[-1].blocks[0]
    with Builder(Block()) as builder, at(tape.reads[0].line):
        rest, popped = emit(tape_pop, rest)
    popped.name = tape.reads[0].output.name or saved.name
    body.ops[:0] = builder.block.ops
    for loop in tape.back[::-1]:
        loop.blocks[0].yields.append(rest)
        rest = Value(type, rest.name, loop)
        loop.outputs.append(rest)
    for read in tape.reads:
        inner = next(each for each in blocks_of(body) if read in each.ops)
        inner.ops.remove(read)
    substitute(block, {read.output: popped for read in tape.reads})
