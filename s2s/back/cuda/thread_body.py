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

from ...analysis.alias import Memory
from ...analysis.dependence import Trip
from ...errors import UnsupportedError
from ...ir.builder import emit
from ...ir.graph import MISSING, Block, Op, Value, free_values, walk
from ...ir.reemit import emit_op
from ...ir.types import Array, Scalar, Tape, Undefined
from ...ops.core.control import (
    at_least_zero,
    for_loop,
    if_,
    make_undefined,
    undefined,
    while_loop,
)
from ...ops.core.copy import copy_record
from ...ops.core.record import RECORDS, constant, value
from ...ops.core.shape import length
from ..loopir.ops import buffer
from ..loops.fuse import Facts
from .block_reductions import identity, identity_value, name_of
from .device_ops import (
    atomic_add,
    atomic_max,
    combined,
    lane_row,
    meeting,
    of_team,
    respell,
    team_size,
    thread_of_team,
)


class Team:
    """Threads that share the loops of a trip, and what they have touched since they last met.

    All compute what is outside of these loops; the first of them writes it. What one has written
    another reads, or overwrites, only after both have met.
    """

    def __init__(self, loops: dict[Op, list], memory: Memory):
        self.loops, self.memory = loops, memory
        self.thread, self.size = emit(thread_of_team), emit(team_size)
        self.thread.name, self.size.name = "lane", "lanes"
        self.is_apart = False  # in a loop that the team shares
        self.touched: set = set()
        self.destroyed: set = set()

    def before(self, op: Op) -> None:
        """Meet if `op` touches what was written since, or overwrites what was touched."""
        facts = Facts(op, self.memory)
        if not (facts.destroyed.isdisjoint(self.touched)
                and facts.touched.isdisjoint(self.destroyed)):
            self.meet()
        self.touched |= facts.touched
        self.destroyed |= facts.destroyed

    def enter(self, op: Op) -> None:
        """Meet at the head of a block of `op`, which may be run again, if it writes."""
        if Facts(op, self.memory).destroyed:
            self.meet()

    def meet(self) -> None:
        emit(meeting)
        self.met()

    def met(self) -> None:
        self.touched, self.destroyed = set(), set()


class Body:
    """Emits a lane's ops for a kernel; a growing tape becomes a column of an array and a count."""

    def __init__(self, env: dict[Value, Value], team: Team | None = None):
        self.env = env
        self.team = team
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
        # by op that writes back the sum of an old element and a number: that number, and whether it
        # is subtracted
        self.added: dict[Op, tuple[Value, bool]] = {}
        self.skipped: set[Op] = set()  # what those have read and added
        # by local array of a lane: the array of all lanes' such arrays
        self.rooms: dict[Value, Value] = {}

    def block(self, block: Block, args: Sequence[Value] = ()) -> list[Value]:
        self.env.update(zip(block.params, args))
        for op in block.ops:
            self.op(op)
        return [self.env.get(y, y) for y in block.yields]

    def gather_into(self, trip: Trip, param: Value) -> None:
        """Let threads add atomically to the array `param` and its later versions."""
        self.gathered.update(trip.versions(param))
        for op, _ in trip.touching(trip.versions(param)):
            k = trip.old_term(op) if op.name == "setitem" else None
            if k is not None:
                total = op.inputs[1].op
                self.added[op] = total.inputs[1 - k], total.record.signs[1 - k] < 0
                self.skipped.update((total, total.inputs[k].op))

    def op(self, op: Op) -> None:
        if self.team is not None and not self.team.is_apart:
            self.team.before(op)
            if op in self.team.loops:
                return self.shared_loop(op)
            if op.record.writes_elements:
                return self.by_first_thread(op)
        self.plain(op)

    def plain(self, op: Op) -> None:
        if op in self.skipped:
            return
        match op.name:
            case "setitem" if op in self.added:
                (x, is_less), target = self.added[op], self.env[op.inputs[0]]
                x = self.env.get(x, x)
                emit(atomic_add, target, -x if is_less else x,
                     *(self.env.get(i, i) for i in op.inputs[2:]))
                self.env[op.output] = target
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

    # what a team shares

    def by_first_thread(self, op: Op) -> None:
        """A write outside of the loops that a team shares."""
        array = self.env[op.inputs[0]]

        def write() -> list[Value]:
            self.plain(op)
            return [self.env[op.output]]

        is_first = RECORDS["equal"](self.team.thread, value(0))
        (self.env[op.output],) = if_(is_first, write, lambda: [array], [array.name])

    def shared_loop(self, op: Op) -> None:
        """A loop of which each thread of the team makes every so many-th trip."""
        team, (body,), roles = self.team, op.blocks, self.team.loops[op]
        low, high = (self.env.get(x, x) for x in op.inputs[:2])
        forwards = op.inputs[2].constant == 1
        inits = [self.env.get(x, x) for x in op.inputs[3:]]
        starts = [x if isinstance(role, str) else identity_value(role, x.type.dtype)
                  for x, role in zip(inits, roles)]
        for param, role in zip(body.params[1:], roles):
            if role == "gather":
                self.gather_into(Trip(body), param)
        team.is_apart = True

        def step(index: Value, *carries: Value) -> list[Value]:
            self.env[body.params[0]] = index if forwards else low - index
            return self.block(Block(body.params[1:], body.ops, body.yields), carries)

        start = (team.thread if not forwards or low.constant == 0 else low + team.thread)
        outs = for_loop(start, high if forwards else low - high, team.size, starts, step,
                        names=[p.name for p in body.params[1:]], index=body.params[0].name or "j")
        team.is_apart = False
        for out, new, init, role in zip(op.outputs, outs, inits, roles):
            if not isinstance(role, str):
                new = emit(of_team, new, team.thread, team.size,
                           step=name_of(role, new.type.dtype))
                team.met()
                if init.constant is MISSING or init.constant != identity(role, init.type.dtype):
                    new = combined(role, init, new)
                new.name = out.name
            self.env[out] = new

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
        if self.team is not None and not self.team.is_apart:
            self.team.enter(op)
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
            if self.team is not None and not self.team.is_apart:
                self.team.enter(op)
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


def is_device_code(block: Block) -> bool:
    """Whether a kernel can run it: numbers, elements, control flow and tapes of numbers."""
    return all(op.blocks or op.record.elementwise
               or op.record in (constant, undefined, at_least_zero)
               or op.record.indices is not None and all(p == "i" for p in op.attrs["pattern"])
               and all(isinstance(x.type, Scalar) for x in op.inputs[1:])
               or op.name.startswith("tape_") for op in walk(block))


def is_lane_code(body: Block) -> bool:
    """Whether a kernel can run the trips: numbers, and arrays whose lengths are known outside."""
    made = arrays_made(body)
    return (not any(isinstance(v.type, Tape) for v in free_values(body))
            and is_device_code(Block(body.params, [op for op in body.ops if op not in made]))
            and all(lengths_outside(op, body) is not None for op in made))
