"""Emit the body of a loop for one thread of a kernel.

    x_tape = []                        x_tape_count = 0
    while ...:                         while ...:
        x_tape.append(x)     becomes       if x_tape_count < capacity:
        ...                                    x_tape[x_tape_count, lane] = x
                                           x_tape_count += 1
                                           ...

A kernel allocates nothing. The host passes what a lane would allocate: the tapes of all lanes are
the columns of one array, and a lane's local array is a row of an array that has a row for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import UnsupportedError
from ...ir.builder import emit
from ...ir.graph import MISSING, Block, Op, Value, free_values, walk
from ...ir.reemit import emit_op
from ...ir.types import Array, Scalar, Tape, Undefined
from ...ops.core.control import for_loop, if_, make_undefined, while_loop
from ...ops.core.copy import copy_record
from ...ops.core.record import RECORDS, value
from ...ops.core.shape import length
from ..loopir.ops import buffer
from .device_ops import atomic_add, atomic_max, lane_row, respell


class Body:
    """Emits a lane's ops for a kernel; a growing tape becomes a column of an array and a count."""

    def __init__(self, env: dict[Value, Value]):
        self.env = env
        self.lane: Value | None = None
        self.capacity: Value | None = None  # of a tape
        self.needed: Value | None = None  # an array of one: the largest count of all lanes
        # by result of tape_new: the array of all lanes' tapes
        self.columns: dict[Value, Value] = {}
        self.tapes: dict[Value, tuple[Value, Value]] = {}  # that array now, and this lane's count
        # by tape: the result of tape_new that it is a version of
        self.made: dict[Value, Value] = {}
        self.latest: dict[Value, Value] = {}  # the inverse: the last version of the array
        self.gathered: set[Value] = set()  # arrays that lanes scatter-add to
        # by local array of a lane: the array of all lanes' such arrays
        self.rooms: dict[Value, Value] = {}

    def block(self, block: Block, args: Sequence[Value] = ()) -> list[Value]:
        self.env.update(zip(block.params, args))
        for op in block.ops:
            self.op(op)
        return [self.env.get(y, y) for y in block.yields]

    def op(self, op: Op) -> None:
        match op.name:
            case "tape_new":
                self.version(op.output, op.output, (self.columns[op.output], value(0)))
            case "tape_push":
                pushed = self.push(*self.tapes[op.inputs[0]], self.env[op.inputs[1]])
                self.version(op.output, self.made[op.inputs[0]], pushed)
            case "tape_pop":
                array, count = self.tapes[op.inputs[0]]
                count = count - 1
                self.version(op.outputs[0], self.made[op.inputs[0]], (array, count))
                index = RECORDS["min_"](count, self.capacity - 1)
                self.env[op.outputs[1]] = RECORDS["getitem"](array, index, self.lane,
                                                             pattern=("i", "i"))
                self.env[op.outputs[1]].name = op.outputs[1].name
            case "tape_len":
                self.env[op.output] = self.tapes[op.inputs[0]][1]
            case _ if not self.rooms.keys().isdisjoint(op.outputs):
                self.env[op.output] = self.lane_array(op)
            case "additem" if op.inputs[0] in self.gathered:
                target = self.env[op.inputs[0]]
                emit(atomic_add, target, *(self.env[x] for x in op.inputs[1:]))
                self.env[op.output] = target
                self.gathered.add(op.output)
            case "for" | "while" | "if":
                self.control(op)
                for out in op.outputs:
                    if isinstance(out.type, Tape) and _pushes(op):
                        emit(atomic_max, self.needed, self.tapes[out][1])
            case _:
                emit_op(op, self.env, respell)

    def lane_array(self, op: Op) -> Value:
        """The array that `op` allocates, in memory that the kernel is given for each lane."""
        row = emit(lane_row, self.rooms[op.output], self.lane)
        row.name = op.output.name
        if op.name == "buffer" and not op.attrs["zero"]:
            return row
        source = self.env[op.inputs[0]] if op.name == "copy" else None

        def filled(row: Value, index: tuple[Value, ...]) -> Value:
            if len(index) < len(row.type.dims):
                return for_loop(0, length(row, axis=len(index)), 1, [row],
                                lambda i, inner: [filled(inner, (*index, i))], names=[row.name])[0]
            pattern = ("i",) * len(index)
            x = value(0.0) if source is None else RECORDS["getitem"](source, *index,
                                                                     pattern=pattern)
            return RECORDS["setitem"](row, x, *index, pattern=pattern)

        return filled(row, ())

    def version(self, tape: Value, made: Value, parts: tuple[Value, Value]) -> None:
        """Record the parts of `tape`, a version of the tape `made`."""
        self.tapes[tape], self.made[tape], self.latest[made] = parts, made, parts[0]

    def push(self, array: Value, count: Value, x: Value) -> tuple[Value, Value]:
        """Push if there is room; count in any case, so that the host learns the room needed."""
        (array,) = if_(
            count < self.capacity,
            lambda: [RECORDS["setitem"](array, x, count, self.lane, pattern=("i", "i"))],
            lambda: [array], [array.name])
        return array, count + 1

    def control(self, op: Op) -> None:
        """Emit an op with blocks; a tape that it carries is carried as two values."""
        if op.name == "if":
            outs = if_(self.env.get(op.inputs[0], op.inputs[0]),
                       lambda: self.spread(self.block(op.blocks[0]), op.blocks[0].yields),
                       lambda: self.spread(self.block(op.blocks[1]), op.blocks[1].yields),
                       self.names(op.outputs))
            return self.gather(op.outputs, outs, op.blocks[0].yields)
        skip = 3 if op.name == "for" else 0
        body = op.blocks[-1]
        params, breaks = body.params[1 if skip else 0:], op.attrs["breaks"]
        starts = self.spread([self.env.get(x) for x in op.inputs[skip:]], op.inputs[skip:])

        def step(*args: Value) -> list[Value]:
            index, carries = (args[:1], args[1:]) if skip else ((), args)
            self.env.update(zip(body.params[:1] if skip else (), index))
            self.gather(params, carries, op.inputs[skip:])
            for inner in body.ops:
                self.op(inner)
            stops = 1 if breaks else 0
            return [self.env.get(y, y) for y in body.yields[:stops]] + self.spread(
                [self.env.get(y, y) for y in body.yields[stops:]], body.yields[stops:])

        if skip:
            bounds = [self.env.get(x, x) for x in op.inputs[:3]]
            outs = for_loop(*bounds, starts, step, breaks, self.names(params), body.params[0].name)
        else:
            head = op.blocks[0]

            def test(*carries: Value) -> Value:
                self.gather(head.params, carries, op.inputs[skip:])
                for inner in head.ops:
                    self.op(inner)
                return self.env.get(head.yields[0], head.yields[0])

            outs = while_loop(starts, test, step, breaks, self.names(params))
        self.gather(op.outputs, outs, op.inputs[skip:])

    def names(self, olds: Sequence[Value]) -> list[str]:
        return [n for v in olds for n in ([v.name, f"{v.name or 'tape'}_count"]
                                          if isinstance(v.type, Tape) else [v.name])]

    def spread(self, news: Sequence[Value], olds: Sequence[Value]) -> list[Value]:
        """Tapes as their two values."""
        found: list[Value] = []
        for new, old in zip(news, olds):
            found += self.tapes[old] if isinstance(old.type, Tape) else [new]
        return found

    def gather(self, olds: Sequence[Value], news: Sequence[Value],
               sources: Sequence[Value]) -> None:
        """Two values as a tape, a version of the same one as its source."""
        rest = list(news)
        for old, source in zip(olds, sources):
            if isinstance(old.type, Tape):
                self.version(old, self.made[source], (rest.pop(0), rest.pop(0)))
            else:
                self.env[old] = rest.pop(0)


def _pushes(op: Op) -> bool:
    return any(inner.name == "tape_push" for block in op.blocks for inner in walk(block))


def arrays_made(body: Block) -> list[Op]:
    """The allocations of a lane."""
    return [op for op in body.ops if op.record in (buffer, copy_record)
            and isinstance(op.output.type, Array)]


def lengths_outside(op: Op, body: Block) -> list[Value | tuple[Value, int]] | None:
    """The lengths of a lane's array in terms of the host's values: numbers, or axes of arrays."""
    outside = free_values(body)
    if op.name == "buffer":
        return list(op.inputs) if all(x in outside or x.constant is not MISSING
                                      for x in op.inputs) else None
    found: list[Value | tuple[Value, int]] = []
    for d in op.output.type.dims:
        if isinstance(d, int):
            found.append(value(d))
            continue
        axes = [(x, x.type.dims.index(d)) for x in outside if isinstance(x.type, Array)
                and d in x.type.dims]
        if not axes:
            return None
        found.append(axes[0])
    return found


def is_argument(v: Value) -> bool:
    """Whether the host has to pass `v`: it is neither a constant nor unbound."""
    return v.constant is MISSING and not isinstance(v.type, Undefined)


def known(v: Value) -> Value:
    """Emit again a value that is no argument."""
    return make_undefined() if isinstance(v.type, Undefined) else value(v.constant)


def item_of(block: Block, tape: Value) -> Scalar:
    """The item type of a tape."""
    for op in walk(block):
        if tape in op.inputs and (op.blocks or op.name == "tape_push"):
            item = op.outputs[op.inputs.index(tape) - len(op.inputs) + len(op.outputs) if op.blocks
                              else 0].type.item
            if isinstance(item, Scalar):
                return item
    raise UnsupportedError("a tape of arrays in a CUDA kernel", tape.op.line,
                           "let each lane save numbers")
