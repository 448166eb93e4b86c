"""Checkpointing of loops: rerun the trips from few saved states (snapshots) in the reverse sweep.

The forward sweep saves snapshots, the state (the loop's carries) before some of its trips, on a
stack.  The reverse sweep takes the trips from the last to the first.  For each it resumes from the
last snapshot up to the state before the trip, saving further snapshots on the way while there is
room; then it reruns the trip, and runs its adjoint; then it drops the snapshot, if there was one of
this very trip.

    x_kept, i_kept = np.empty(20), np.empty(20, int)     # forward
    for i in range(n):
        if i == stop: ...                                # x_kept[used], i_kept[used] = x, i
        x = step(i, x)                                   # used += 1: a snapshot
    for k in range(n - 1, -1, -1):                       # backward
        x = x_kept[used - 1]
        for i in range(i_kept[used - 1], k):
            if i == stop: ...
            x = step(i, x)
        x_bar = step_vjp(k, x, x_bar)
        if i_kept[used - 1] == k: used -= 1

Where snapshots stand is `gap` of ops/program/checkpoint.py, which makes this Revolve (binomial
checkpointing).

Considered: a recursive function, as in treeverse (the schedule is the call tree, but the state and
everything that the body reads become its parameters, and GPU kernels have no recursion); two levels
of sqrt(n) trips each (one more loop, but never less memory than 2 sqrt(n) states, which few whole
grids may already exceed); a table of actions computed before the loop (an interpreter in the
generated code, which nobody can read).

Note [Loops that do not say how often they run]
Where to leave snapshots depends on the number of trips.  A `while`, and a `for` that may be left,
only count them; the state before the first is saved, and the first snapshots are left when the
reverse sweep goes from there to the last trip: the trips are run once more than they would be.  So
it is done with a loop inside another that is not checkpointed, too: of each of its runs only the
state at the start is kept, and the snapshots of one run at a time.

Note [What acts does so once]
What runs again prints nothing, and raises nothing that has not been raised.  Drawing again would
draw other numbers, and native code cannot put a generator back: so what is drawn is kept, for each
trip, and read from there.  That is done for draws in the body itself and in functions that it
calls; those inside its own loops and branches are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from ...analysis.propagate import loop_parts
from ...errors import UnsupportedError
from ...ir.builder import emit
from ...ir.graph import MISSING, Block, Function, Op, Value, free_values, walk
from ...ir.reemit import clone, emit_block
from ...ir.types import Array, List, Scalar, Undefined
from ...ops.arrays.create import empty, zeros
from ...ops.arrays.index import put, take
from ...ops.core.cast import bool_, complex_, float_, int_
from ...ops.core.control import (
    Known,
    at_least_zero,
    for_loop,
    if_,
    tape_new,
    tape_pop,
    tape_push,
    while_loop,
)
from ...ops.core.copy import copy
from ...ops.core.elementwise import equal, max_, min_, sqrt
from ...ops.core.record import value
from ...ops.core.shape import length
from ...ops.program.checkpoint import Outlined, Rerun, gap_record
from ...ops.program.effects import acts, raise_record
from ...ops.program.list_ops import list_get
from ...ops.program.random import first_draw
from ...ops.program.recursive_callee import Recursive
from ..cleanup.inline import inline_draws


class Rerunning:
    """Both sweeps of one checkpointed loop: `forward` is emitted in place of the loop, `backward`
    in its adjoint.

    `inputs` is what both are given: the loop's own inputs, then what its body reads from outside,
    constants last.
    """

    def __init__(self, op: Op, inside_a_loop: bool = False):
        self.op, self.plan = op, op.attrs["plan"]
        self.inits, self.params, self.ends, self.body = loop_parts(op)
        self.skip = 3 if op.name == "for" else 0
        found = dict.fromkeys(x for block in op.blocks for x in free_values(block))
        self.free = [x for x in found if x.constant is MISSING]
        constants = [x for x in found if x.constant is not MISSING]
        self.inputs = [*op.inputs, *self.free, *constants]
        self.says = (op.name == "for" and not op.attrs["breaks"]
                     and isinstance(op.inputs[2].constant, int))
        self.leaves = self.says and not inside_a_loop  # snapshots, in the forward sweep
        block = Block([*self.body.params, *self.free], [*(x.op for x in constants), *self.body.ops],
                      self.body.yields)
        self.whole = inline_draws(Function("step", block, tupled=True))
        self.draws = draws_in(self.whole, op)
        ends = self.whole.results[1 if op.attrs["breaks"] else 0:]
        self.step = without_effects(
            without_draws(self.whole.remade(Block(self.whole.params, self.whole.block.ops, ends)),
                          self.draws))

    # emitting

    def bounds(self, args: Sequence[Value]) -> tuple[Value, Value]:
        """The first position and the one past the last: the loop counter itself where it counts by
        1, else trip numbers from 0.
        """
        lo, hi, step = args[:3]
        if step.constant == 1:
            return lo, hi
        span = hi - lo if step.constant > 0 else lo - hi
        size = abs(step.constant)
        return value(0), at_least_zero(span if size == 1 else (span + (size - 1)) // size)

    def counter(self, args: Sequence[Value], place: Value) -> list[Value]:
        """Emit the loop counter of the trip at `place`."""
        if not self.skip:
            return []
        lo, _, step = args[:3]
        return [place if self.says and step.constant == 1 else lo + place * step]

    def read(self, args: Sequence[Value]) -> Sequence[Value]:
        """The values from outside that the body reads."""
        first = len(self.op.inputs)
        return args[first:first + len(self.free)]

    def drawn(self, args: Sequence[Value], tapes: Sequence[Value], place: Value) -> list[Value]:
        """Read the random numbers that the trip at `place` has drawn."""
        number = self.number(args, place)
        return [list_get(tape, number) if isinstance(tape.type, List) else take(tape, number)
                for tape in tapes]

    def number(self, args: Sequence[Value], place: Value) -> Value:
        """Emit the number of the trip at `place`, counted from 0."""
        return place - args[0] if self.says and args[2].constant == 1 else place

    def tapes(self, args: Sequence[Value]) -> list[Value]:
        """Allocate tapes for random draws: arrays where the draws are numbers and the trip count is
        known.
        """
        if not self.draws:
            return []
        lo, hi = self.bounds(args) if self.says else (None, None)
        return [empty(value((at_least_zero(hi - lo),)), dtype=draw.output.type.dtype) if self.says
                and isinstance(draw.output.type, Scalar) else emit(tape_new) for draw in self.draws]

    def first_run(self, args: Sequence[Value], params: Sequence[Value], place: Value,
                  tapes: Sequence[Value]) -> list[Value]:
        """Emit the first run of a trip: its yields, then the tapes of its draws."""
        env: dict[Value, Value] = {}
        ends = emit_block(self.whole.block, [*params, *self.read(args)], env)
        drawn = [env[draw.output] for draw in self.draws]
        number = self.number(args, place) if self.draws else None
        return [*ends, *(tape_push(tape, z) if isinstance(tape.type, List) else put(tape, number, z)
                         for tape, z in zip(tapes, drawn))]

    def forward(self, args: Sequence[Value]) -> tuple[Sequence[Value], list[Value]]:
        """Emit the loop; return its results, and the values that the backward sweep needs."""
        inits = args[self.skip:len(self.op.inputs)]
        outside = dict(zip(self.inputs, args))
        if not self.leaves:
            return self.count(args, outside)
        lo, hi = self.bounds(args)
        stack = Stack(self, args, hi - lo)
        inits, tapes = stack.bound(inits), self.tapes(args)
        count, size = len(inits), len(stack.now)

        def trip(place: Value, *carries: Value) -> list[Value]:
            state, stop = carries[:count], carries[-1]
            stack.enter(carries[count + len(tapes):-1])
            stop = stack.push_at(place, hi, stop, state)
            ends = self.first_run(args, [*self.counter(args, place), *state], place,
                                  carries[count:count + len(tapes)])
            return [*ends, *stack.now, stop]

        outs = for_loop(lo, hi, 1, [*inits, *tapes, *stack.now, lo], trip,
                        names=[*self.names, *self.tape_names, *stack.names, "stop"],
                        index=self.index)
        return outs[:count], [*outs[-1 - size:-1], *outs[count:-1 - size]]

    def count(self, args: Sequence[Value], outside: dict) -> tuple[Sequence[Value], list[Value]]:
        """Emit the loop together with its trip count, where that is not known before it."""
        op, starts, tapes = self.op, list(args[self.skip:len(self.op.inputs)]), self.tapes(args)
        count, names = len(starts), [*self.names, *self.tape_names]
        first = count + (1 if self.skip else 0)
        starts += tapes
        if not self.says:
            starts, names = [*starts, value(0)], [*names, "trips"]

        def trip(*params: Value) -> list[Value]:
            kept, trips = params[first:first + len(tapes)], params[first + len(tapes):]
            place = trips[0] if trips else params[0]
            if self.says and args[2].constant != 1:
                place = (params[0] - args[0]) // args[2]
            return [*self.first_run(args, params[:first], place, kept), *(n + 1 for n in trips)]

        if self.skip:
            outs = for_loop(*args[:3], starts, trip, op.attrs["breaks"], names, self.index)
        else:
            outs = while_loop(starts,
                              lambda *params: emit_block(op.blocks[0], params[:first],
                                                         dict(outside))[0], trip,
                              op.attrs["breaks"], names)
        return outs[:count], [*outs[count + len(tapes):], *outs[count:count + len(tapes)]]

    def backward(self, args: Sequence[Value], kept: Sequence[Value], bars: Sequence[Value],
                 names: Sequence[str], adjoint: Callable) -> Sequence[Value]:
        """Propagate `bars` backwards through all trips; `adjoint(parameters of step, *bars)` emits
        one of them.
        """
        inits = args[self.skip:len(self.op.inputs)]
        kept, tapes = kept[:len(kept) - len(self.draws)], kept[len(kept) - len(self.draws):]
        lo, hi = self.bounds(args) if self.says else (value(0), kept[0])
        if self.leaves:
            stack = Stack(self, args, hi - lo, kept)
        else:
            stack = Stack(self, args, hi - lo)
            stack.push(lo, stack.bound(inits))

        def given(place: Value, state: Sequence[Value]) -> list[Value]:
            return [*self.counter(args, place), *state, *self.read(args),
                    *self.drawn(args, tapes, place)]

        def back(k: Value, *carries: Value) -> list[Value]:
            count = len(bars)
            stack.enter(carries[count:])
            first, state = stack.last()
            stop = first + gap_record(k + 1 - first, stack.slots - stack.used)

            def trip(place: Value, *inner: Value) -> list[Value]:
                state, rest = inner[:len(inits)], inner[len(inits):]
                stack.enter(rest[:-1])
                stop = stack.push_at(place, k + 1, rest[-1], state)
                return [*emit_block(self.step.block, given(place, state), {}), *stack.now, stop]

            outs = for_loop(first, k, 1, [*state, *stack.now, stop], trip,
                            names=[*self.names, *stack.names, "stop"], index=self.index)
            stack.enter(outs[len(inits):-1])
            found = adjoint(given(k, outs[:len(inits)]), *carries[:count])
            stack.drop(k)
            return [*found, *stack.now]

        outs = for_loop(hi - 1, lo - 1, -1, [*bars, *stack.now], back, names=[*names, *stack.names],
                        index="k")
        return outs[:len(bars)]

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.params]

    @property
    def tape_names(self) -> list[str]:
        return [f"{draw.output.name or 't'}_tape" for draw in self.draws]

    @property
    def index(self) -> str:
        """The name of the counter: it is read, even where the loop does not."""
        name = self.body.params[0].name if self.skip else ""
        return "i" if name in ("", "_") else name


class Stack:
    """The current state of the snapshots: where they are, what they hold, and which is the last.

    What has a known size has an array; anything else (a list, an array whose length changes) goes
    to a growing tape.
    """

    def __init__(self, loop: Rerunning, args: Sequence[Value], trips: Value,
                 kept: Sequence[Value] | None = None):
        self.loop = loop
        inits = args[loop.skip:len(loop.op.inputs)]
        self.sizes = [sizes_of(p, x) for p, x in zip(loop.params, inits)]
        if kept is not None:
            self.now = list(kept)
            self.slots = loop.plan.snapshots or length(kept[1], axis=0)
        else:
            self.slots = slots = self.room(trips)
            made = [emit(tape_new) if sizes is None
                    else empty(value((slots, *sizes)), dtype=p.type.dtype)
                    for p, sizes in zip(loop.params, self.sizes)]
            self.now = [value(0), empty(value((slots,)), dtype="int64"), *made]
        self.narrow = is_narrow(loop.body)

    @property
    def names(self) -> list[str]:
        return ["used", f"{self.loop.index}_kept",
                *(f"{p.name or 't'}_kept" for p in self.loop.params)]

    @property
    def used(self) -> Value:
        """The number of snapshots in use."""
        return self.now[0]

    def room(self, trips: Value):
        """The capacity of the snapshot stack."""
        plan = self.loop.plan
        if plan.snapshots is not None:
            return plan.snapshots
        if plan.memory is None:
            return int_(sqrt(2.0 * trips)) + 1
        each = value(8)
        for p, sizes in zip(self.loop.params, self.sizes):
            if sizes is None:
                raise UnsupportedError("checkpoint with memory=, of a loop that carries "
                                       f"{p.name or 'a value'}, whose size is "
                                       "not known before the loop", self.loop.op.line,
                                       "give a number of snapshots")
            size = value(np.dtype(p.type.dtype).itemsize)
            for n in sizes:
                size = n * size
            each = each + size
        return max_(min_(plan.memory // each, trips), 1)

    def bound(self, inits: Sequence[Value]) -> list[Value]:
        """Return the initial state, with zeros for carries not yet bound, which no trip reads
        before binding them.
        """
        return [x if sizes is None or not isinstance(x.type, Undefined)
                else zeros(value(tuple(sizes)), dtype=p.type.dtype) if sizes
                else value(np.dtype(p.type.dtype).type(0).item())
                for x, p, sizes in zip(inits, self.loop.params, self.sizes)]

    def enter(self, values: Sequence[Value]) -> None:
        """Set the current values of the stack, in a block that carries it."""
        self.now = list(values)

    def push(self, place: Value, state: Sequence[Value]) -> None:
        """Save a snapshot of `state`, before the trip at `place`."""
        used, at, *kept = self.now
        kept = [tape_push(xs, x) if sizes is None else put(xs, used, x)
                for xs, x, sizes in zip(kept, state, self.sizes)]
        self.now = [used + 1, put(at, used, place), *kept]

    def push_at(self, place: Value, end: Value, stop: Value, state: Sequence[Value]) -> Value:
        """Save a snapshot if `place` is `stop`; return the position of the next one, before `end`.
        """
        before = self.now

        def leave() -> list[Value]:
            self.enter(before)
            free = self.slots - 1 - self.used
            self.push(place, state)
            return [*self.now, place + gap_record(end - place, free)]

        *now, stop = if_(equal(place, stop), leave, lambda: [*before, stop], [*self.names, "stop"])
        self.now = now
        return stop

    def last(self) -> tuple[Value, list[Value]]:
        """Read the position and state of the last snapshot."""
        used, at, *kept = self.now
        state = []
        for k, (p, sizes) in enumerate(zip(self.loop.params, self.sizes)):
            if sizes is None:
                rest, x = tape_pop(kept[k])
                self.now[2 + k] = tape_push(rest, x)
            elif sizes:
                x = copy(take(kept[k], used - 1))
            else:
                x = take(kept[k], used - 1)
                if self.narrow and p.type.weak:
                    x = python_number(x)
            state.append(x)
        return take(at, used - 1), state

    def drop(self, k: Value) -> None:
        """Pop the last snapshot, if it is of the trip at `k`, which has been reversed."""
        used, at, *kept = self.now
        tapes = [n for n, sizes in enumerate(self.sizes) if sizes is None]

        def less() -> list[Value]:
            return [used - 1, *(tape_pop(kept[n])[0] for n in tapes)]

        used, *found = if_(equal(take(at, used - 1), k), less,
                           lambda: [used, *(kept[n] for n in tapes)],
                           ["used", *(self.names[2 + n] for n in tapes)])
        for n, tape in zip(tapes, found):
            kept[n] = tape
        self.now = [used, at, *kept]


def has_size(p: Value, x: Value) -> bool:
    """Test whether a carry that starts as `x` has a size known before the loop and equal in all
    trips.
    """
    if isinstance(p.type, Array) and isinstance(x.type, Undefined):
        return all(isinstance(d, int) for d in p.type.dims)
    return (isinstance(p.type, Scalar) or isinstance(p.type, Array) and isinstance(x.type, Array)
            and p.type.dims == x.type.dims)


def sizes_of(p: Value, x: Value) -> list[Value] | None:
    """Return the axis lengths of a carry that starts as `x`; None where they are not known."""
    if not has_size(p, x):
        return None
    if isinstance(p.type, Scalar):
        return []
    return (list(map(value, p.type.dims)) if isinstance(x.type, Undefined)
            else [length(x, axis=k) for k in range(p.type.rank)])


NUMBERS = {"b": bool_, "i": int_, "f": float_, "c": complex_}
WIDE = ("float64", "complex128", "int64", "bool")


def python_number(x: Value) -> Value:
    """Convert a number read from an array back to a Python number: NumPy's own would promote single
    precision.
    """
    return NUMBERS[np.dtype(x.type.dtype).kind](x)


def is_narrow(block: Block) -> bool:
    """Test whether `block` has values of another precision than Python's numbers."""
    values = [*block.params, *(v for op in walk(block) for v in (*op.inputs, *op.outputs))]
    return any(getattr(v.type, "dtype", None) not in (None, *WIDE) for v in values)


# ---------------------------------------------------------------------------------- rerun functions


@dataclass(frozen=True)
class BackwardRerun:
    """The backward part of a checkpointed call, `backward(*xs, *drawn, *y_bars) -> x_bars`, which
    reruns it and is checkpointed too.

    `forward(*xs) -> (*ys, *drawn)`, where it draws.
    """

    forward: Function | None
    backward: Rerun
    drawn: list[Value]


_vjps: WeakKeyDictionary[Function, dict[tuple[int, ...], BackwardRerun]] = WeakKeyDictionary()


def rerun_vjp(op: Op, wrt: Sequence[int], whole: Callable) -> BackwardRerun:
    """Split a checkpointed call into its parts for the two sweeps."""
    function = op.attrs["callee"].function_for(op.inputs)
    known = _vjps.setdefault(function, {})
    if tuple(wrt) not in known:
        inlined = inline_draws(function.remade(function.block, captures={}, defaults={}))
        draws = draws_in(inlined, op)
        made = without_effects(without_draws(inlined, draws))
        made = whole(made, [made.params[k] for k in wrt])
        made.block.yields = made.block.yields[len(function.results):]
        where = f"{function.name}{function.source.place if function.source is not None else ''}"
        made.doc, made.tupled = (f"The cotangents of the arguments of {where}, which runs again.",
                                 len(wrt) != 1)
        forward = None
        if draws:
            block = Block(inlined.params, inlined.block.ops,
                          [*inlined.results, *(draw.output for draw in draws)])
            forward = clone(inlined.remade(block, name=f"{function.name}_fwd", tupled=True,
                                           doc=f"{where}, and what it has drawn."))
        known[tuple(wrt)] = BackwardRerun(forward, Rerun(Outlined(made)),
                                          [draw.output for draw in draws])
    return known[tuple(wrt)]


def without_effects(function: Function) -> Function:
    """Copy `function` without its effects, for a rerun."""
    function = clone(function)
    drop_effects(function.block)
    return function


def drop_effects(block: Block) -> None:
    """Drop the effects of a block that is run again, in place."""
    ops = []
    for op in block.ops:
        for inner in op.blocks:
            drop_effects(inner)
        if op.record is raise_record or op.record.outward:
            continue
        if op.name == "call":
            op.attrs = {**op.attrs, "callee": callee_without_effects(op)}
        ops.append(op)
    block.ops = ops


def callee_without_effects(op: Op):
    """Return the callee of a `call` without its effects."""
    callee = op.attrs["callee"]
    if not acts(callee.function_for(op.inputs)):
        return callee
    if isinstance(callee, Recursive):
        raise UnsupportedError(f"{callee.name}, which calls itself and prints, raises or draws, in "
                               "what is checkpointed", op.line, "leave the checkpoint away, or do "
                               "it outside")
    made = Known(without_effects(callee.function_for(op.inputs)))
    return Rerun(made) if isinstance(callee, Rerun) else made


def draws_in(function: Function, op: Op) -> list[Op]:
    """Return the ops of `function` that draw from generators it did not create; refuse draws inside
    its loops and branches.
    """
    made = {out for inner in walk(function.block) if inner.name == "default_rng"
            for out in inner.outputs}

    def draws(inner: Op) -> bool:
        if inner.name == "call":
            return first_draw(inner.attrs["callee"].function_for(inner.inputs)) is not None
        return inner.name.startswith("rng.") and not any(x in made for x in inner.inputs)

    found = [inner for inner in function.block.ops if draws(inner)]
    for inner in walk(function.block):
        if draws(inner) and (inner not in found or inner.name == "call"):
            raise UnsupportedError("a draw in a loop or a branch of what is checkpointed, which "
                                   "runs again", inner.line or op.line, "draw before, into an "
                                   "array, and read that")
    return found


def without_draws(function: Function, draws: Sequence[Op]) -> Function:
    """Rewrite `function` to take its random draws as trailing arguments."""
    block = function.block
    return function.remade(Block([*block.params, *(draw.output for draw in draws)],
                                 [op for op in block.ops if op not in draws], block.yields))
