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

from collections.abc import Collection, Sequence

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
    for_lane,
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
        self.host_values: set[Value] = set()  # that lengths may be
        self.depth = 0  # how many ops with blocks are around
        self.is_filling = False  # inside of an op after which the count is compared
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
        # the same for arrays whose last axis is that of the lanes
        self.columns_of: dict[Value, Value] = {}
        # by version of such an array, or of a row of it: the array now, the index of the row, and
        # the length, if each lane has its own
        self.placed: dict[Value, tuple[Value, tuple[Value, ...], Value | None]] = {}

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
                array = self.columns[op.output]
                if self.depth:  # a loop inside begins a new one in each trip
                    array = emit(for_lane, array)
                    array.name = op.output.name
                self.version(op.output, op.output, (array, value(0)))
            case "tape_push":
                pushed = self.push(*self.tapes[op.inputs[0]], self.env[op.inputs[1]])
                self.version(op.output, self.made[op.inputs[0]], pushed)
                if not self.is_filling:
                    self.say_needed(self.tapes[op.output][1])
            case "tape_pop":
                array, count = self.tapes[op.inputs[0]]
                count = count - 1
                self.version(op.outputs[0], self.made[op.inputs[0]], (array, count))
                index = count  # what an earlier kernel has saved is all there
                if self.made[op.inputs[0]] in self.columns:
                    index = RECORDS["min_"](count, self.capacity - 1)
                self.env[op.outputs[1]] = RECORDS["getitem"](array, index, self.lane,
                                                             pattern=("i", "i"))
                self.env[op.outputs[1]].name = op.outputs[1].name
            case "tape_len":
                self.env[op.output] = self.tapes[op.inputs[0]][1]
            case _ if len(op.outputs) == 1 and op.output in self.columns_of:
                own = None
                if is_growing(op, self.host_values):
                    own = self.env.get(op.inputs[0], op.inputs[0])
                    self.say_needed(own)
                self.placed[op.output] = self.filled(op, own), (), own
            case _ if len(op.outputs) == 1 and op.output in self.rooms:
                self.env[op.output] = self.filled(op)
            case "length" if op.inputs[0] in self.placed:
                array, row, own = self.placed[op.inputs[0]]
                self.env[op.output] = own or length(array, axis=op.attrs["axis"] + len(row))
            case _ if op.inputs and op.inputs[0] in self.placed and op.record.indices is not None:
                self.in_column(op)
            case "additem" if op.inputs[0] in self.gathered:
                target = self.env[op.inputs[0]]
                emit(atomic_add, target, *(self.env[x] for x in op.inputs[1:]))
                self.env[op.output] = target
                self.gathered.add(op.output)
            case "for" | "while" | "if":
                only_fills = not self.is_filling and _growths(op) == {1}
                self.is_filling |= only_fills
                self.control(op)
                self.is_filling &= not only_fills
                for out in op.outputs if only_fills else ():
                    if isinstance(out.type, Tape):
                        self.say_needed(self.tapes[out][1])
            case _:
                emit_op(op, self.env, respell)

    def in_column(self, op: Op) -> None:
        """Read or write an element, or take a row, of an array that has the lanes last."""
        array, row, own = self.placed[op.inputs[0]]
        values = [self.env.get(x, x) for x in op.inputs[1:op.record.indices]]
        index = *row, *(self.env.get(x, x) for x in op.inputs[op.record.indices:])
        if isinstance(op.output.type, Array) and op.record.writes is None:
            self.placed[op.output] = array, index, None
            return
        if own is not None:  # there may be too little room
            index = (RECORDS["min_"](index[0], self.capacity - 1),)
        result = op.record(array, *values, *index, self.lane, pattern=("i",) * (len(index) + 1))
        result.name = op.output.name
        if op.record.writes is None:
            self.env[op.output] = result
        else:
            self.placed[op.output] = result, row, own

    def filled(self, op: Op, own: Value | None = None) -> Value:
        """The array that `op` allocates, in memory that the kernel is given for each lane; of this
        length, if it is the lane's `own`.
        """
        lane = (self.lane,) if op.output in self.columns_of else ()
        array = self.columns_of[op.output] if lane else self.rooms[op.output]
        is_row = not lane and len(array.type.dims) > len(op.output.type.dims)
        array = emit(lane_row, array, self.lane) if is_row else emit(for_lane, array)
        array.name = op.output.name
        if op.name == "buffer" and not op.attrs["zero"]:
            return array
        rank = len(op.output.type.dims)
        source = op.inputs[0] if op.name == "copy" else None
        pattern = ("i",) * (rank + len(lane))

        def fill(array: Value, index: tuple[Value, ...]) -> Value:
            if len(index) < rank:
                count = (length(array, axis=len(index)) if own is None
                         else RECORDS["min_"](own, self.capacity))
                return for_loop(0, count, 1, [array],
                                lambda i, inner: [fill(inner, (*index, i))], names=[array.name])[0]
            x = value(0.0) if source is None else self.element(source, index)
            return RECORDS["setitem"](array, x, *index, *lane, pattern=pattern)

        return fill(array, ())

    def element(self, array: Value, index: tuple[Value, ...]) -> Value:
        """Read an element of an array of the lane."""
        if array in self.placed:
            array, row, _ = self.placed[array]
            index = *row, *index, self.lane
        else:
            array = self.env.get(array, array)
        return RECORDS["getitem"](array, *index, pattern=("i",) * len(index))

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
        count = low - high if not forwards else high if low.constant == 0 else high - low
        inits = [self.env.get(x, x) for x in op.inputs[3:]]
        starts = [x if isinstance(role, str) else identity_value(role, x.type.dtype)
                  for x, role in zip(inits, roles)]
        for param, role in zip(body.params[1:], roles):
            if role == "gather":
                self.gather_into(Trip(body), param)
        team.is_apart = True

        def step(index: Value, *carries: Value) -> list[Value]:
            self.env[body.params[0]] = (low - index if not forwards else index
                                        if low.constant == 0 else low + index)
            return self.block(Block(body.params[1:], body.ops, body.yields), carries)

        outs = for_loop(team.thread, count, team.size, starts, step,
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

    def say_needed(self, count: Value) -> None:
        """Tell the host that this lane needs room for `count` numbers, if there is too little."""
        def say() -> list[Value]:
            emit(atomic_max, self.needed, count)
            return []

        if_(count > self.capacity, say, list, [])

    def control(self, op: Op) -> None:
        """Emit an op with blocks; a tape that it carries is carried as two values."""
        self.depth += 1
        self.control_in(op)
        self.depth -= 1

    def control_in(self, op: Op) -> None:
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
        """Tapes as their two values, and arrays that have the lanes last as these."""
        found: list[Value] = []
        for new, old in zip(news, olds):
            found += (self.tapes[old] if isinstance(old.type, Tape)
                      else [self.placed[old][0]] if old in self.placed else [new])
        return found

    def gather(self, olds: Sequence[Value], news: Sequence[Value],
               sources: Sequence[Value]) -> None:
        """The inverse: what was a version of a source is a later one."""
        rest = list(news)
        for old, source in zip(olds, sources):
            if isinstance(old.type, Tape):
                self.version(old, self.made[source], (rest.pop(0), rest.pop(0)))
            elif source in self.placed:
                self.placed[old] = rest.pop(0), (), self.placed[source][2]
            else:
                self.env[old] = rest.pop(0)


def _growths(op: Op) -> set[int]:
    """By how much the ops inside `op` make tapes longer: 1 and -1."""
    return {inner.record.growth for block in op.blocks for inner in walk(block)
            if inner.record.on_tapes and inner.record.growth}


def arrays_made(body: Block) -> list[Op]:
    """The allocations of a lane."""
    return [op for op in body.ops if op.record in (buffer, copy_record)
            and isinstance(op.output.type, Array)]


def placeable(body: Block, made: list[Op]) -> set[Op]:
    """The allocations among `made` whose arrays never change places with others."""
    group: dict[Value, Value] = {}

    def find(x: Value) -> Value:
        while x in group:
            x = group[x]
        return x

    def join(xs: Sequence[Value]) -> None:
        first = find(xs[0])
        for x in xs[1:]:
            if find(x) is not first:
                group[find(x)] = first

    versions: set[Value] = set()  # results of writes, branches and loops, and what these carry
    for op in walk(body):
        count = len(op.outputs)
        for k, y in enumerate(op.outputs):
            if not isinstance(y.type, Array):
                continue
            if op.blocks:
                carried = [] if op.name == "if" else [b.params[k - count] for b in op.blocks]
                ends = [b.yields[k - count] for b in op.blocks if len(b.yields) >= count]
                join([y, *carried, *ends, *([] if op.name == "if" else [op.inputs[k - count]])])
                versions.update((y, *carried))
            elif op.record.writes is not None:
                join([y, op.inputs[op.record.writes]])
                versions.add(y)
    own = {op.output for op in made}
    mixed = {find(x) for x in [*group, *group.values()] if x not in versions and x not in own}
    mixed.update(find(y) for y in body.yields)
    return {op for op in made if find(op.output) not in mixed}


def lengths_outside(op: Op, body: Block) -> list[Value | int | tuple[Value, int]] | None:
    """The lengths of a lane's array in terms of the host's values: numbers, or axes of arrays."""
    outside = free_values(body)
    if op.name == "buffer":
        known = [x if x.constant is MISSING else x.constant for x in op.inputs]
        return known if all(isinstance(x, int) or x in outside for x in known) else None
    found: list[Value | int | tuple[Value, int]] = []
    for d in op.output.type.dims:
        if isinstance(d, int):
            found.append(d)
            continue
        axes = [(x, x.type.dims.index(d)) for x in outside if isinstance(x.type, Array)
                and d in x.type.dims]
        if not axes:
            return None
        found.append(axes[0])
    return found


def growing_arrays(body: Block) -> set[Op]:
    """The allocations of arrays of a lane for which the host finds out how long they are."""
    outside, in_columns = set(free_values(body)), placeable(body, arrays_made(body))
    return {op for op in in_columns if is_growing(op, outside)}


def is_growing(op: Op, outside: Collection[Value]) -> bool:
    """Whether `op` allocates an array of one axis, whose length each lane computes for itself."""
    return (op.record is buffer and len(op.inputs) == 1 and op.inputs[0].constant is MISSING
            and op.inputs[0] not in outside)


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
    """Whether a kernel can run the trips: numbers, and arrays whose lengths are known outside, or
    for which the host finds out how long they are.
    """
    made = arrays_made(body)
    unknown = {op for op in made if lengths_outside(op, body) is None}
    return (not any(isinstance(v.type, Tape) for v in free_values(body))
            and is_device_code(Block(body.params, [op for op in body.ops if op not in made]))
            and (not unknown or unknown <= growing_arrays(body)))
