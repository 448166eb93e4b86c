"""The reverse sweep of a function (its adjoint): its ops in reverse order, each replaced by its
adjoint.

It is emitted as if every value of the primal were in scope.  For a loop it is a loop over the same
indices in the opposite order, whose carries are the cotangents of the loop's carries and of
whatever the body reads from outside; for an `if` it is an `if` on the same condition.  `sweeps.py`
then makes the primal values available where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from ...analysis.activity import active_values
from ...analysis.discarded_entries import DISCARDED, MASKED, Discarded, multiplies
from ...analysis.elementwise_blocks import is_elementwise, may_be_infinite
from ...analysis.exit_conditions import exit_conditions
from ...analysis.propagate import loop_parts
from ...analysis.side_effects import reachable_values
from ...analysis.zero_cotangents import Unreached, Way
from ...errors import DerivativeError
from ...ir.builder import Builder, add_op, at, current, emit, join_types
from ...ir.graph import (
    MISSING,
    Block,
    Function,
    Op,
    Value,
    blocks_of,
    free_values,
    op_free_values,
    walk,
)
from ...ir.reemit import emit_block
from ...ir.substitute import substitute
from ...ir.types import INT, Array, List, Scalar, Tape, Tuple, Type, Unknown, carries_derivative
from ...ops.arrays.axes import expand_dims
from ...ops.arrays.repeat import broadcast_to_record
from ...ops.core.cast import astype
from ...ops.core.chain_rule import (
    chosen_by_a_term,
    like_operand,
    strong_sum,
    strong_zeros,
    times,
    where_chosen,
)
from ...ops.core.control import Known, call, for_loop, if_record, tape_copy, types_for_caller
from ...ops.core.derivative_rules import cotangents_of, has_reverse_rule
from ...ops.core.elementwise import (
    and_,
    bitwise_and,
    bitwise_or,
    equal,
    invert,
    logical_not,
    multiply,
    negative,
    not_,
    or_,
)
from ...ops.core.record import RECORDS, value
from ...ops.core.shape import kind_of_item, shaped_like, spread, zeros_of
from ...ops.program.checkpoint import Rerun, is_plain
from ...ops.program.effects import has_effects
from ...ops.program.list_cotangents import sum_of
from ...ops.program.recursive_callee import Recursive
from .checkpoint_adjoint import Rerunning, rerun_vjp
from .tape import AXIS, Region, calls_made_again, is_few, price

LITTLE_MORE = 1.25  # so much more work may a backward part be that several calls share


class Adjoint:
    """The reverse sweep of `function`, reading primal values wherever they are defined.

    `split(callee, wrt, seeded, ...)` gives the two halves of the derivative of a function that is
    called, and `whole(function, wrt, summed)` both as one function.  The cotangents of the
    parameters in `summed` so far are handed in: their sums start from `incoming`.  Given `seeded`,
    only the results with these numbers have a cotangent, and only the parameters that one reaches
    get one: `reached`.
    """

    forwards = False  # it runs through loops from their last trip to the first

    def __init__(self, function: Function, wrt: list[Value], split: Callable, whole: Callable,
                 summed: Sequence[Value] = (), seeded: Sequence[int] | None = None,
                 alone: bool = True, partial: Sequence[int] = (), doubted: bool = False):
        self.function, self.wrt, self.split, self.whole = function, wrt, split, whole
        self.active = active_values(function, wrt, seeded)
        self.discarded = Discarded(function, self.active, [function.results[k] for k in partial],
                                   doubted)
        self.home = {v: block for block in blocks_of(function.block)
                     for v in [*block.params, *(v for op in block.ops for v in op.outputs)]}
        self.made_again = calls_made_again(function, alone)
        self.regions: dict[Block, Region] = {}  # by primal block
        self.bars: dict[Value, Value] = {}
        # retyped cotangents -> the originals
        self.shaped: dict[Value, Value] = {}
        self.calls: dict[Op, tuple[Function, list[Value]]] = {}  # forward part, and its residuals
        self.pairs: dict[Op, object] = {}  # call of a recursive function -> its pair
        # calls of backward parts under construction: the call, and the pair
        self.backs: dict[Op, tuple[Op, object]] = {}
        # checkpointed loops, and their residuals
        self.reruns: dict[Op, tuple[Rerunning, list[Value]]] = {}
        # cotangents from branches -> whether the branch contributed
        self.parts: dict[Value, Value] = {}
        self.unreached = Unreached(self.home)
        self.stops: set[Value] = set()  # exit conditions of loops
        # conditions that hold in the trip that left a loop, or in the others -> which
        self.leaving: dict[Value, tuple[Region, bool]] = {}
        self.incoming = {x: Value(x.type, bar_name(x)) for x in summed}
        self.seeded = (differentiable_results(function) if seeded is None
                       else [function.results[k] for k in seeded])
        self.seeds = [Value(y.type, bar_name(y)) for y in self.seeded]
        root = self.regions[function.block] = Region(function.block)
        root.adjoint = Block()
        self.bars.update(self.incoming)
        with Builder(root.adjoint, above=self.home):
            for y, seed in zip(self.seeded, self.seeds):
                self.add(y, seed)
            self.run_backwards(function.block)
            self.reached = [x for x in wrt if seeded is None or x in self.bars]
            root.adjoint.yields = [in_kind(self.take(x), x, firm=True) for x in self.reached]
        substitute(root.adjoint, self.shaped)
        drop_unread(root.adjoint)

    # cotangents

    def add(self, x: Value, contribution) -> None:
        """Add to the cotangent of `x`, in its dtype; a function takes what there is so far and
        returns the sum.
        """
        if contribution is None or x not in self.active:
            return
        old = self.bars.get(x)
        if isinstance(contribution, Value):
            contribution = in_kind(contribution, x)
            self.bars[x] = contribution if old is None else total(old, contribution)
        else:
            self.bars[x] = in_kind(contribution(old), x)

    def take(self, x: Value) -> Value:
        """Take the finished cotangent of `x`; zeros where nothing contributed."""
        bar = self.bars.pop(x, None)
        if bar is None:
            bar = zeros_of(x)
        if not bar.name and bar.op is not None and bar.constant is MISSING and bar not in self.home:
            bar.name = bar_name(x)
        return self.as_shaped(x, bar)

    def take_masked(self, x: Value) -> Value:
        """Take the finished cotangent of `x`, masked by np.where where parts of `x` that may be
        infinite were not used, or only on some paths.
        """
        bar = self.take(x)
        part = self.part_of(x, bar)
        return bar if part is None else where_chosen(part, bar)

    def part_of(self, x: Value, bar: Value) -> Value | None:
        """Return the mask of where values computed from `x`, whose cotangent is `bar`, contribute
        to the result; None if everywhere, as far as is known.

        Note [Masks stay outermost], for what `x[mask]` did not pick, and for what branches did not
        read.
        """
        # its rules handle that themselves
        if (x not in self.infinite or not isinstance(bar.type, (Scalar, Array))
                or chosen_by_a_term(bar) is not None):
            return None
        part = self.part(bar)
        return part if part is not None and (isinstance(part.type, Scalar)
                                             or broadcasts(part.type, bar.type)) else None

    def part(self, bar: Value) -> Value | None:
        """Return the mask of where a cotangent has received a contribution: for sums the union over
        the terms, as in `chosen_by_a_term`.
        """
        if bar in self.parts:
            return self.parts[bar]
        if bar.op is None or bar.op.record in (shaped_like, spread):
            return None if bar.op is None else self.part(bar.op.inputs[0])
        if bar.op.record.is_sum:
            return either(*map(self.part, bar.op.inputs))
        mask = mask_of(bar.op)
        if mask is None:
            return chosen_by_a_term(bar)
        if not broadcasts(mask.type, bar.type):  # the lengths agree, or the program has raised
            mask = self.as_long(mask, bar)
        before = bar.op.inputs[0]
        if bar.op.name == "additem" and before.op is not None and before.op.name == "zeros_like":
            return mask
        rest = self.part(before)
        if bar.op.name == "additem":
            return either(rest, mask)
        if bar.op.inputs[1].constant != 0:
            return None
        return logical_not(mask) if rest is None else bitwise_and(rest, logical_not(mask))

    def as_long(self, mask: Value, bar: Value) -> Value:
        """Retype `mask` with the lengths of `bar` on axes that are not of length 1: see
        `as_shaped`.
        """
        dims = tuple(1 if m == 1 else n for m, n in zip(mask.type.dims, bar.type.dims))
        made = add_op(shaped_like, [mask, bar], {}, [Array("bool", dims)]).output
        self.shaped[made] = mask
        return made

    @cached_property
    def infinite(self) -> set[Value]:
        """The values of the function that may be infinite or NaN, or have such slopes, for finite
        inputs.
        """
        steep = {y for op in walk(self.function.block) if not op.blocks and may_be_infinite([op])
                 for y in op.outputs} | self.discarded.products
        return reachable_values(self.function.block, steep, through=True) if steep else steep

    def as_shaped(self, x: Value, bar: Value) -> Value:
        """Retype `bar`, the cotangent of `x`, with the shape of `x`.

        Of two lengths that met, the types of `x` and of its cotangent may each name another.  Then
        rules would ask, and save, shapes where there is nothing to ask, and loops would think that
        what they carry changes its shape.
        """
        if (not (isinstance(bar.type, Array) and isinstance(x.type, Array)
                 and bar.type.rank == x.type.rank)
                or (bar.type.dims == x.type.dims or bar.op is not None
                    and bar.op.record in (spread, broadcast_to_record)
                    or any(getattr(d, "accepts_any", False)
                           for d in (*bar.type.dims, *x.type.dims)))):
            return bar
        made = add_op(shaped_like, [bar, x], {}, [Array(bar.type.dtype, x.type.dims)],
                      names=[bar.name]).output
        self.shaped[made] = bar
        return made

    # blocks and ops

    def run_backwards(self, block: Block) -> None:
        for op in reversed(sink_copies(block.ops)):
            if any(out in self.active for out in op.outputs):
                with at(op.line.reversed() if op.line else None):
                    match op.name:
                        case "for" | "while" if "plan" in op.attrs:
                            self.rerun(op)
                        case "for" | "while":
                            self.loop(op)
                        case "if":
                            self.branch(op)
                        case "call":
                            self.call(op)
                        case _:
                            self.simple(op)
            for out in op.outputs:
                self.bars.pop(out, None)

    def simple(self, op: Op) -> None:
        """Apply the adjoint rule of an op without blocks."""
        if not any(out in self.bars for out in op.outputs):
            return
        if not has_reverse_rule(op.record):
            raise DerivativeError(f"{op.name} has no derivative", op.line,
                                  "keep what is differentiated out of its arguments with "
                                  "s2s.stop_gradient")
        bars = tuple(self.take_masked(out) if op.record.elementwise else self.take(out)
                     for out in op.outputs)
        single = len(op.outputs) == 1
        with strong_zeros(self.discarded.asks_strong_zeros(op)):
            contributions = cotangents_of(op.record, bars[0] if single else bars, op.output
                                          if single else tuple(op.outputs), *op.inputs,
                                          **op.attrs)
        if single and not op.record.elementwise and multiplies(op):
            contributions = self.chosen_by_branches(op.output, bars[0], contributions)
        together: dict[Value, object] = {}  # x * x gives its two contributions to x at once
        for x, contribution in zip(op.inputs, contributions, strict=True):
            if isinstance(contribution, Value) and isinstance(together.get(x), Value):
                together[x] = total(together[x], contribution)
            elif x in together:
                self.add(x, contribution)
            else:
                together[x] = contribution
        for x, contribution in together.items():
            self.add(x, contribution)

    def chosen_by_branches(self, y: Value, bar: Value, contributions: Sequence) -> Sequence:
        """Return `contributions`, made of the cotangent `bar` of `y` by an op that mixes elements,
        as choices of the paths on which `y` contributes.
        """
        part = self.part_of(y, bar)
        if part is None or not isinstance(part.type, Scalar):
            return contributions
        return [where_chosen(part, x)
                if isinstance(x, Value) and isinstance(x.type, (Scalar, Array)) else x
                for x in contributions]

    def call(self, op: Op) -> None:
        """Emit a call of the callee's backward part, with the residuals of its forward part."""
        if not any(out in self.bars for out in op.outputs):
            return
        callee = op.attrs["callee"]
        wrt = [k for k, x in enumerate(op.inputs) if x in self.active]
        if isinstance(callee, Recursive):
            return self.recursive_call(op, self.split(callee, tuple(wrt)))
        if isinstance(callee, Rerun):
            return self.call_again(op, wrt)
        seeded = tuple(k for k, out in enumerate(op.outputs) if out in self.bars)
        function = callee.function_for(op.inputs)
        unbounded = self.discarded.factors | self.discarded.unbounded
        doubted = not unbounded.isdisjoint((*op.inputs, *op.outputs))
        partial = (self.partial(op, seeded)
                   if doubted or may_be_infinite(function.block.ops) else ())
        wrt += [k for k in self.wanted.get(function, ()) if k not in wrt and is_few(op.inputs[k])]

        def halves(wrt: Sequence[int]):
            return self.split(function, tuple(sorted(wrt)), seeded, op in self.made_again, partial,
                              doubted and bool(partial))

        pair, more = halves(wrt), {*wrt, *self.wanted.get(function, ())}
        if len(more) > len(wrt) and (work(halves(more).backward.block)
                                     <= LITTLE_MORE * work(pair.backward.block)):
            pair = halves(more)
        if not pair.wrt:
            return
        kept = pair.residuals_for(op)
        self.home.update((v, self.home[op.outputs[0]]) for v in kept)
        if kept:
            self.calls[op] = pair.forward, kept
        seeds = [self.take_masked(op.outputs[k]) for k in seeded]
        ways = self.unreached.ways(seeds)

        def again() -> Sequence[Value]:
            bars = call(*(op.inputs[k] for k in pair.arguments), *kept, *seeds,
                        callee=Known(pair.backward))
            return bars if isinstance(bars, tuple) else (bars,)

        bars = guard_unreached(ways, again, lambda: [zeros_of(op.inputs[k]) for k in pair.wrt])
        ends = {op.outputs[k]: seed for k, seed in zip(seeded, seeds)}
        self.record_unused(bars, ways)
        parts = self.used_mask(op, ends, [op.inputs[k] for k in pair.wrt])
        for k, bar in zip(pair.wrt, bars, strict=True):
            chosen = unguarded_mask(ways, parts[op.inputs[k]])
            self.add(op.inputs[k], bar if chosen is None else where_chosen(chosen, bar))

    @cached_property
    def wanted(self) -> dict[Function, set[int]]:
        """The arguments of which some call of a function wants a cotangent: those of numbers, and
        others that are little more work, are computed for all calls, which then share one backward
        part.
        """
        found: dict[Function, set[int]] = {}
        for op in walk(self.function.block):
            if (op.name == "call" and is_plain(op.attrs["callee"])
                    and not self.active.isdisjoint(op.outputs)):
                found.setdefault(op.attrs["callee"].function_for(op.inputs), set()).update(
                    k for k, x in enumerate(op.inputs) if x in self.active)
        return found

    def partial(self, op: Op, seeded: Sequence[int]) -> tuple[int, ...]:
        """Return those of the `seeded` outputs of a call whose cotangents are 0 in parts, for
        reasons that the callee cannot see.

        A scalar condition that all of them share decides whether the backward part is called.
        """
        outs = [op.outputs[k] for k in seeded]
        ways = self.unreached.ways(self.bars[y] for y in outs)
        parts = [unguarded_mask(ways, self.part_of(y, self.bars[y])) for y in outs]
        unseen = (differ(parts)
                  or any(part is not None and isinstance(part.type, Array) for part in parts))
        return tuple(k for k, y in zip(seeded, outs)
                     if self.discarded.level_in_loops(y) == DISCARDED
                     or unseen and self.discarded.level(y) == MASKED)

    def used_mask(self, op: Op, ends: dict[Value, Value],
                     xs: Sequence[Value]) -> dict[Value, Value | None]:
        """Return the mask of where the cotangents `ends` of outputs of `op` contribute to those of
        `xs`; None if everywhere, as far as is known.

        Note [Masks stay outermost], for what a loop or a call does element by element.
        """
        chosen = (chosen_by_a_term(*ends.values()) if self.may_be_infinite
                  and any(isinstance(x.type, (Scalar, Array)) for x in xs) else None)

        def of(x: Value) -> Value | None:
            if (chosen is None or isinstance(chosen.type, Scalar)
                    and isinstance(x.type, (Scalar, Array))):
                return chosen
            return (chosen if isinstance(x.type, Array) and chosen.type.dims == x.type.dims
                    and is_elementwise(op, x, list(ends)) else None)

        return {x: of(x) for x in xs}

    @cached_property
    def may_be_infinite(self) -> bool:
        """Whether some slope in the function may be infinite or NaN."""
        return may_be_infinite(self.function.block.ops) or bool(self.discarded.products)

    def call_again(self, op: Op, wrt: list[int]) -> None:
        """Emit both sweeps of a checkpointed call, from its arguments."""
        again = rerun_vjp(op, wrt, self.whole)
        drawn = []
        if again.drawn:
            types = types_for_caller(again.forward, op, again.drawn)
            drawn = [Value(type, z.name, op) for type, z in zip(types, again.drawn)]
            self.home.update((z, self.home[op.outputs[0]]) for z in drawn)
            self.calls[op] = again.forward, drawn
        seeds = [self.take(out) for out in op.outputs if carries_derivative(out.type)]
        bars = call(*op.inputs, *drawn, *seeds, callee=again.backward)
        for k, bar in zip(wrt, bars if isinstance(bars, tuple) else (bars,)):
            self.add(op.inputs[k], bar)

    def recursive_call(self, op: Op, pair) -> None:
        """Emit the backward call of a recursive function: cotangents of arrays are passed in and
        returned.
        """
        self.pairs[op] = pair
        seeds = [self.take(out) for out in op.outputs if carries_derivative(out.type)]
        sums: dict[int, Value] = {}
        for k in pair.summed:
            x = op.inputs[k]
            sums[k] = self.bars.pop(x) if x in self.bars and x in self.active else zeros_of(x)
        kept = []
        if pair.sketch is None:
            kept = [Value(Tape(type), name, op) for name, type in pair.tapes]
            self.home.update((v, self.home[op.outputs[0]]) for v in kept)
        self.calls[op] = pair.forward, kept
        bars = call(*(op.inputs[k] for k in pair.arguments), *kept, *seeds, *sums.values(),
                    callee=pair.sketch or pair.backward)
        bars = bars if isinstance(bars, tuple) else (bars,)
        if pair.sketch is not None:
            self.backs[bars[0].op] = op, pair
        for k, bar in zip(pair.wrt, bars):
            bar.name = bar_name(op.inputs[k])
            self.add(op.inputs[k], bar)

    def branch(self, op: Op) -> None:
        """Emit the adjoint of an `if`: the same branch is taken again, backwards."""
        bars = [(k, self.take(out)) for k, out in enumerate(op.outputs) if out in self.bars]
        outside, ends = self.bars, []
        for branch in op.blocks:
            self.bars = dict(outside)
            self.open(branch, op)
            region = self.regions[branch]
            region.adjoint = Block()
            with Builder(region.adjoint):
                for k, bar in bars:
                    self.add(branch.yields[k], bar)
                self.run_backwards(branch)
            ends.append(self.bars)
        changed = [x for x in dict.fromkeys([*ends[0], *ends[1]])
                   if any(end.get(x) is not outside.get(x) for end in ends)]
        blocks, parts = [self.regions[branch].adjoint for branch in op.blocks], []
        for block, end in zip(blocks, ends):
            with Builder(block):
                block.yields = [in_kind(end[x] if x in end else self.zeros_left(x, op), x,
                                        firm=True) for x in changed]
                parts.append([self.part_on_path(end.get(x)) if x in self.infinite
                              and isinstance(x.type, (Scalar, Array)) else value(True)
                              for x in changed])
        self.bars = outside
        if changed:
            asked = [k for k, both in enumerate(zip(*parts))
                     if any(part.constant is MISSING for part in both)]
            for block, found in zip(blocks, parts):
                block.yields += [found[k] for k in asked]
            types = [join_types(a.type, b.type) for a, b in zip(blocks[0].yields, blocks[1].yields)]
            outs = add_op(if_record, [op.inputs[0]], {}, types, blocks,
                          [bar_name(x) for x in changed] + [""] * len(asked)).outputs
            self.record_unreached(op, bars, dict(zip(changed, outs)), ends)
            self.bars.update(zip(changed, outs))
            self.parts.update((outs[k], part) for k, part in zip(asked, outs[len(changed):]))
            for out, first, second in zip(outs, *parts):
                if (first.constant, second.constant) in ((True, False), (False, True)):
                    self.parts[out] = op.inputs[0] if first.constant else not_(op.inputs[0])

    def zeros_left(self, x: Value, branch: Op) -> Value:
        """Zeros for the cotangent of `x` in an arm of `branch` that does not read it.

        A tape that only the other arm empties is full in this one: zeros for each item of a copy,
        as the tape itself is emptied in place.
        """
        if not isinstance(x.type, Tape):
            return zeros_of(x)
        block = self.home[branch.outputs[0]]
        with Builder(Block(), above=self.home) as builder:
            copied = emit(tape_copy, x)
        at = block.ops.index(branch)
        block.ops[at:at] = builder.block.ops
        self.home[copied] = block
        return RECORDS["list_zeros"](copied, kind=kind_of_item(x.type))

    def record_unreached(self, op: Op, bars: list[tuple[int, Value]], outs: dict[Value, Value],
                      ends: list[dict[Value, Value]]) -> None:
        """Record on which paths the cotangents `outs`, results of the branch `op`, are zero; `ends`
        are the cotangents at the end of each arm.

        Of what leaves a loop only the last trip is one for which the loops before have nothing to
        do.
        """
        always = self.unreached.ways(bar for _, bar in bars)
        is_way = op.inputs[0].constant is MISSING and op.inputs[0] not in self.stops
        for x, out in outs.items():
            before = self.unreached.also(always, self.bars[x]) if x in self.bars else always
            self.unreached.say(out,
                               [*before,
                                *((op.inputs[0], k == 0) for k, end in enumerate(ends) if is_way
                                  and x not in end)])

    def record_unused(self, bars: Sequence[Value], ways: Sequence[Way]) -> None:
        """Record that `bars`, results of a loop or a call, are zero on these paths and contribute
        nothing there.
        """
        for bar in bars:
            self.unreached.say(bar, ways)
        if ways:
            condition, holds = ways[0]
            self.parts.update(dict.fromkeys(bars, not_(condition) if holds else condition))

    def part_on_path(self, bar: Value | None) -> Value:
        """Return whether a path contributes to a value, whose cotangent there is `bar`; a branch
        inside the path may decide that.
        """
        part = self.part(bar) if bar is not None else value(False)
        return part if part is not None and isinstance(part.type, Scalar) else value(True)

    def loop(self, op: Op) -> None:
        """Emit the adjoint of a loop: the same trips in reverse order.

        The carries of the adjoint are the cotangents of the active carries, and those of the active
        values that the body reads from outside, accumulated over the trips.
        """
        inits, params, ends, body = loop_parts(op)
        carried = [k for k, param in enumerate(params) if param in self.active]
        if not any(op.outputs[k] in self.bars for k in carried):
            return
        read = [x for x in free_values(body) if x in self.active]
        given = {y: self.bars[y] for y in (op.outputs[k] for k in carried) if y in self.bars}
        parts = {y: self.part_of(y, bar) for y, bar in given.items()}
        given = {y: bar if parts[y] is None else where_chosen(parts[y], bar)
                 for y, bar in given.items()}
        starts = [self.take(op.outputs[k]) for k in carried]
        may_be_left_out = not calls_recursive(body)
        ways = self.unreached.ways(given.values()) if may_be_left_out else ()
        chosen = {x: unguarded_mask(ways, part)
                  for x, part in self.used_mask(op, given,
                                                   (*read, *(inits[k] for k in carried))).items()}
        if may_be_left_out and not ways and (mask := mask_of_arrays(chosen)) is not None:
            ways = (way_without(mask),)
            chosen = {x: unguarded_mask(ways, part) for x, part in chosen.items()}
        if differ([unguarded_mask(ways, part) for part in parts.values()]):
            self.discarded.blind.add(op)
        starts += [self.bars[x] if x in self.bars and chosen[x] is None else zeros_of(x)
                   for x in read]
        starts = [in_kind(start, x, firm=True)
                  for start, x in zip(starts, [*(op.outputs[k] for k in carried), *read])]
        outside = self.bars
        self.open(body, op)
        region = self.regions[body]

        lo, hi, step = self.reversed_range(op, region)

        def backwards(trip: Value, *bars: Value) -> list[Value]:
            self.bars = dict(zip(read, bars[len(carried):]))
            for k, bar in zip(carried, bars):
                self.add(ends[k], bar)
            region.adjoint = current().block
            answers = self.answers(op, region, trip, lo)
            self.stops.update(answers)
            self.run_backwards(body)
            substitute(region.adjoint, answers)
            return [in_kind(self.take(params[k]), params[k], firm=True)
                    for k in carried] + [self.bars[x] for x in read]

        names = [bar_name(params[k]) for k in carried] + [bar_name(x) for x in read]
        index = body.params[0].name if op.name == "for" else "k"
        outs = guard_unreached(
            ways, lambda: for_loop(lo, hi, step, starts, backwards, names=names, index=index),
            lambda: [*(zeros_of(inits[k]) for k in carried), *starts[len(carried):]])
        self.record_unused(outs[:len(carried)], ways)
        for out, start in zip(outs[len(carried):], starts[len(carried):]):
            self.record_unused([out], self.unreached.also(ways, start))
        self.bars = outside
        # an accumulated cotangent includes its initial value, so it replaces it; that of the
        # initial value of a carry is added
        for x, out in zip(read, outs[len(carried):]):
            if chosen[x] is None:
                self.bars[x] = out
            else:
                self.add(x, where_chosen(chosen[x], out))
        for k, out in zip(carried, outs):
            mask = chosen[inits[k]]
            self.add(inits[k], out if mask is None else where_chosen(mask, out))

    def answers(self, op: Op, region: Region, trip: Value, last: Value) -> dict[Value, Value]:
        """Return the values of a loop's exit conditions in a trip: known in all but the last
        (analysis/exit_conditions.py).
        """
        if not op.attrs["breaks"]:
            return {}
        body, found = op.blocks[-1], {}
        asked = exit_conditions(body, body.yields[0])
        is_last = equal(trip, last) if asked else None
        for v, of in asked.items():
            then = region.last(of.of, asked)
            self.home[then] = region.parent.primal
            found[v] = or_(not_(is_last), then) if of.otherwise else and_(is_last, then)
            self.leaving[found[v]] = region, of.otherwise
            if of.opposite:
                found[v] = not_(found[v])
                self.leaving[found[v]] = region, True
        return found

    def rerun(self, op: Op) -> None:
        """Emit the adjoint of a checkpointed loop, whose trips are rerun (checkpoint_adjoint.py).
        """
        _, params, ends, body = loop_parts(op)
        carried = [k for k, param in enumerate(params) if param in self.active]
        if not any(op.outputs[k] in self.bars for k in carried):
            return
        around = self.regions[self.home[op.outputs[0]]]
        rerun = Rerunning(op, any(region.is_loop for region in around.path()))
        with Builder(Block(), above=self.home):
            _, kept = rerun.forward(rerun.inputs)
        kept = [Value(v.type, v.name, op) for v in kept]
        self.home.update((v, self.home[op.outputs[0]]) for v in kept)
        self.reruns[op] = rerun, kept
        step = rerun.step.remade(Block(rerun.step.params, rerun.step.block.ops,
                                       [rerun.step.results[k] for k in carried]))
        inner = dict(zip(rerun.free, step.params[len(body.params):]))
        read = [x for x in rerun.free if x in self.active]
        wrt = [step.params[len(body.params) - len(params) + k] for k in carried]
        vjp = self.whole(step, [*wrt, *(inner[x] for x in read)], [inner[x] for x in read])
        starts = [self.take(op.outputs[k]) for k in carried]
        starts += [self.bars[x] if x in self.bars else zeros_of(x) for x in read]

        def adjoint(trip: list[Value], *bars: Value) -> list[Value]:
            seeds = [in_kind(bar, ends[k]) for k, bar in zip(carried, bars)]
            return emit_block(vjp.block, [*trip, *seeds, *bars[len(carried):]], {})[len(carried):]

        names = [bar_name(params[k]) for k in carried] + [bar_name(x) for x in read]
        outs = rerun.backward(rerun.inputs, kept, starts, names, adjoint)
        self.bars.update(zip(read, outs[len(carried):]))
        for k, out in zip(carried, outs):
            self.add(op.inputs[rerun.skip + k], out)

    def reversed_range(self, op: Op, region: Region) -> tuple:
        """Return the range over which the adjoint of a loop counts."""
        if region.trips is not None:
            return region.trips - 1, -1, -1
        lo, hi, step = op.inputs[:3]
        if step.constant == 1:
            return hi - 1, lo - 1, -1
        if step.constant == -1:
            return hi + 1, lo + 1, 1
        step = step.constant
        if step > 0:
            return lo + (hi - lo - 1) // step * step, lo - 1, -step
        return lo - (lo - hi - 1) // -step * -step, lo + 1, -step

    def open(self, block: Block, op: Op) -> None:
        """Record that the adjoint runs through `block`; count the trips of loops whose trip count
        is not known.
        """
        if block in self.regions:
            return
        region = self.regions[block] = Region(block, op, self.regions[self.home[op.outputs[0]]])
        counted = (op.name == "for" and not op.attrs["breaks"]
                   and isinstance(op.inputs[2].constant, int))
        if region.is_loop and not counted:
            region.trips = Value(INT, "trips", op)


def work(block: Block) -> int:
    """Estimate how many numbers the ops of `block` compute; a loop has AXIS trips."""
    total = 0
    for op in block.ops:
        made = op.outputs if op.record.writes is None else op.inputs[1:2]
        total += sum(map(price, made))
        total += sum(map(work, op.blocks)) * (1 if op.name == "if" else AXIS)
        if op.name == "call" and not isinstance(op.attrs["callee"], Recursive):
            total += work(op.attrs["callee"].function_for(op.inputs).block)
    return total


def guard_unreached(ways: Sequence[Way], make: Callable[[], Sequence[Value]],
                    zeros: Callable[[], Sequence[Value]]) -> Sequence[Value]:
    """Emit `make` guarded by the paths that need it, `zeros` where a branch took the first of
    `ways`, on which there is nothing to do.  analysis/zero_cotangents.py
    """
    if not ways:
        return make()
    condition, holds = ways[0]
    with Builder(Block()) as swept:
        swept.block.yields = list(make())
    with Builder(Block()) as left_out:
        left_out.block.yields = [of_precision(zero, bar)
                                 for zero, bar in zip(zeros(), swept.block.yields, strict=True)]
    blocks = [left_out.block, swept.block] if holds else [swept.block, left_out.block]
    types = [join_types(a.type, b.type) for a, b in zip(*(block.yields for block in blocks))]
    return add_op(if_record, [condition], {}, types, blocks,
                  [bar.name for bar in swept.block.yields]).outputs


def mask_of_arrays(chosen: dict[Value, Value | None]) -> Value | None:
    """Return the condition by which whole arrays are to be selected, as max(total, 0.0) selects the
    sum of a preceding loop.

    Running the loop's reverse sweep only where the condition holds saves its work, where selecting
    afterwards takes arrays of zeros for each cotangent.  Numbers are selected afterwards: that
    costs nothing, and enclosing loops can still be vectorised.
    """
    masks = [part for x, part in chosen.items() if part is not None
             and isinstance(part.type, Scalar) and isinstance(x.type, Array)]
    return masks[0] if masks else None


def way_without(chosen: Value) -> Way:
    """Return the path on which a value that contributes where `chosen` holds does not contribute.
    """
    is_not = chosen.op is not None and chosen.op.record.negates
    return (chosen.op.inputs[0], True) if is_not else (chosen, False)


def differ(parts: Iterable[Value | None]) -> bool:
    """Test whether these masks of contribution are not all the same condition."""
    return len({part if part is None else way_without(part) for part in parts}) > 1


def unguarded_mask(ways: Sequence[Way], chosen: Value | None) -> Value | None:
    """Return `chosen`, the mask of contribution; None where it is equivalent to the condition that
    `guard_unreached` tests for the first of `ways`.
    """
    return None if ways and chosen is not None and way_without(chosen) == ways[0] else chosen


def calls_recursive(block: Block) -> bool:
    """Test whether `block` calls a recursive function: skipping its tapes takes as long as sweeping
    it back.
    """
    return any(op.name == "call" and isinstance(op.attrs["callee"], Recursive)
               for op in walk(block))


def of_precision(zero: Value, bar: Value) -> Value:
    """Convert `zero` to NumPy's single precision where `bar` is: the dtype on both paths must
    agree.
    """
    is_single = (isinstance(bar.type, Scalar) and not bar.type.weak
                 and bar.type.dtype not in (None, "float64", "complex128"))
    return (astype(zero, dtype=bar.type.dtype) if is_single and isinstance(zero.type, Scalar)
            and zero.type.weak else zero)


def in_kind(bar: Value, x: Value, firm: bool = False) -> Value:
    """Convert `bar` to a cotangent of `x`: real where `x` is, and of its dtype; with `firm` also if
    `bar` is a Python number.
    """
    numbers = (Scalar, Array, Unknown)
    return (like_operand(bar, x, firm) if isinstance(bar.type, numbers)
            and isinstance(x.type, numbers) else bar)


def total(a: Value, b: Value) -> Value:
    """Emit a + b; 2 * a where both are the same product, as in the adjoint of x * x."""
    if isinstance(a.type, (List, Tuple)):
        return sum_of(a, b)
    if a is b:
        return times(a, 2)
    if (product := strong_sum(a, b, total)) is not None:
        return product
    if (a.op is None or b.op is None or a.op.record is not b.op.record
            or a.op.record not in (multiply, negative)):
        return a + b
    if a.op.record is negative:
        return -total(a.op.inputs[0], b.op.inputs[0])
    if any(x is not y for x, y in zip(a.op.inputs, b.op.inputs)):
        return a + b
    return a.op.record(times(a.op.inputs[0], 2), *a.op.inputs[1:])


def mask_of(op: Op) -> Value | None:
    """Return the mask by which `op` writes into an array, with the array's rank; None for other
    ops.
    """
    if not op.record.writes_elements or op.attrs["pattern"] != ("i",):
        return None
    x, mask = op.inputs[0].type, op.inputs[2]
    if not (isinstance(mask.type, Array) and mask.type.dtype == "bool" and isinstance(x, Array)):
        return None
    return (mask if x.rank == mask.type.rank
            else expand_dims(mask, axis=tuple(range(mask.type.rank, x.rank))))


def broadcasts(mask: Type, type: Type) -> bool:
    """Test whether each axis of an array of type `mask` has length 1 or the length of that of
    `type`.
    """
    return (isinstance(type, Array) and len(mask.dims) == len(type.dims)
            and all(m in (1, n) for m, n in zip(mask.dims, type.dims)))


def either(a: Value | None, b: Value | None) -> Value | None:
    """Emit the disjunction of two masks; None (everywhere) if one of them is None, or is the
    negation of the other.
    """
    if a is None or b is None or any(x.op is not None
                                     and (x.op.record.negates or x.op.record is invert)
                                     and x.op.inputs[0] is y for x, y in ((a, b), (b, a))):
        return None
    return a if a is b else bitwise_or(a, b)


def sink_copies(ops: Sequence[Op]) -> list[Op]:
    """Sink each copy in `ops` to just before its first reader.

    The cotangent of `new` in `new = u.copy()` then becomes that of u at once, and what else reads u
    adds to it in place, where otherwise it would begin with zeros.
    """
    order = list(ops)
    for op in ops:
        if op.name == "copy":
            order.remove(op)
            place = next((k for k, other in enumerate(order) if op.output in op_free_values(other)),
                         None)
            order.insert(len(order) if place is None else place, op)
    return order


def drop_unread(block: Block) -> None:
    """Remove, in place, effect-free ops that nothing reads, so that nothing is saved for them."""
    read: set[Value] = set()

    def sweep(block: Block) -> None:
        read.update(block.yields)
        for op in reversed(block.ops):
            if any(out in read for out in op.outputs) or has_effects(op):
                read.update(op.inputs)
                for inner in op.blocks:
                    sweep(inner)
            else:
                dropped.add(op)
        block.ops = [op for op in block.ops if op not in dropped]

    dropped: set[Op] = set()
    sweep(block)


def bar_name(x: Value) -> str:
    """Name the cotangent of `x`."""
    return f"{x.name}_bar" if x.name else ""


def differentiable_results(function: Function) -> list[Value]:
    """Return the results that have a cotangent: those whose type carries a derivative."""
    return [y for y in function.results if carries_derivative(y.type)]
