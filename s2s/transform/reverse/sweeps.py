"""Emission of the forward sweep with its tapes, and of the backward sweep that reads them.

The forward sweep is the primal plus the writes to the tapes; the backward sweep is the adjoint plus
the reads, and plus what is recomputed.  tape.py decides between saving and recomputing; this module
emits both sweeps, and threads the tapes through the loops and branches between the writes and the
reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...analysis.bit_exact import bit_exact_values
from ...analysis.exit_conditions import carry_of
from ...analysis.final_elements import final_elements
from ...analysis.propagate import loop_parts
from ...analysis.side_effects import maybe_unbound, without_shape
from ...ir.builder import Builder, add_op, at, emit, join_types
from ...ir.graph import MISSING, Block, Function, Op, Value, blocks_of, walk
from ...ir.reemit import emit_op
from ...ir.types import Array, List, Scalar, Static, Tuple, Type, Unknown, has_unknown
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.core.cast import complex_, float_, int_
from ...ops.core.control import (
    Known,
    at_least_zero,
    call,
    for_loop,
    if_record,
    longer_by,
    make_undefined,
    packed,
    tape_len,
    tape_new,
    tape_pop,
    tape_push,
    tape_reversed,
    while_loop,
)
from ...ops.core.record import dtype_of, value
from ...ops.core.shape import NARROW, length
from ...ops.program.list_ops import list_of
from .adjoint import Adjoint
from .shape_only_reads import replace_shape_only_reads, sliced
from .tape import Region, cut, is_short, known_trips, operands, unstable_values
from .whole_array_tapes import read_throughout, reread_arrays

DECIDED = ("saved", "recomputed", "outer", "once", "lasts", "again", "ends")  # of a region
# ops that convert to Python numbers
PYTHONS = {"int64": int_, "float64": float_, "complex128": complex_}
MANY = 100  # the assumed number of trips of a loop, and of elements of an axis, if unknown


class Sweeps:
    """The emitter of the forward sweep with its tapes and the backward sweep that reads them, as
    one function.

    `apart`, other code runs between them: what the function's own block saves is handed across
    (tape.py, Note [What crosses a call]).
    """

    def __init__(self, adjoint: Adjoint, apart: bool = False):
        self.adjoint, self.primal, self.apart = adjoint, adjoint.function, apart
        self.home = adjoint.home
        root = adjoint.regions[self.primal.block]
        self.lengths = replace_shape_only_reads(root.adjoint, self.home, self.primal)
        self.measured = {n for lengths in self.lengths.values() for n in lengths}
        reached = set(blocks_of(root.adjoint))
        self.regions = {b: region for b, region in adjoint.regions.items()
                        if region.adjoint in reached}
        self.by_adjoint = {region.adjoint: region for region in self.regions.values()}
        self.stable = reread_arrays(self.primal)
        self.unstable, self.made_again = (unstable_values(self.primal.block, stable=self.stable),
                                          adjoint.made_again)
        self.firm = bit_exact_values(self.primal, root.adjoint, self.made_again)
        self.kept = final_elements(self.primal)
        self.shapeless = without_shape(self.primal.block, maybe_unbound(self.primal))
        # values saved by a branch, in scope around it
        self.stand_ins: dict[tuple[Region, Value], Value] = {}
        # trip counts of enclosing loops, computed before them all
        self.sizes: dict[Region, list[Value]] = {}
        self.tapes: dict[tuple[Region, Value], Value] = {}  # the current versions of the tapes
        self.kinds: dict[tuple[Region, Value], str] = {}
        self.env: dict[Value, Value] = {}
        for region in self.regions.values():
            if region.trips is not None:
                self.home[region.trips] = region.parent.primal
        for op in walk(root.adjoint):
            if op.name == "if" and op.inputs[0] in adjoint.leaving:
                leaving = op.blocks[adjoint.leaving[op.inputs[0]][1]]
                if leaving in self.by_adjoint:
                    self.by_adjoint[leaving].leaves = self.left_if(op.inputs[0])

    def left_if(self, condition: Value) -> list[Region]:
        """Return the loops that were left where a condition holds as in the trip that leaves,
        innermost first.
        """
        region, otherwise = self.adjoint.leaving[condition]
        then = condition.op.inputs[-1]  # of `is_last and then`, or of `not ...`
        if condition.op.name == "not_":
            return self.left_if(then)
        around = self.adjoint.leaving.get(then)
        return [region,
                *(self.left_if(then) if around is not None and around[1] is otherwise else [])]

    # deciding

    def plan(self) -> None:
        """Decide what to save, with or without whole-array tapes, whichever takes fewer bytes.
        whole_array_tapes.py

        Of what is saved whole, no elements need be saved beside it, and of several slices that
        leave out few the array is less.
        """
        # read by the adjoint, before any decision
        self.asked = {region: dict(region.lasts) for region in self.regions.values()}
        self.decide(self.regions[self.primal.block])
        self.decide_if_available(read_throughout(self.primal))
        self.decide_if_available({v for (_, v), kind in self.kinds.items()
                           if kind in ("array", "stack", "end") and isinstance(v.type, Array)})

        self.decide_if_available({v.op.inputs[0] for (_, v), kind in self.kinds.items()
                           if kind in ("array", "stack") and leaves_out_few(v)})

    def decide_if_available(self, more: set[Value]) -> None:
        """Decide what to save as if these array versions were available, and keep that if it takes
        fewer bytes.
        """
        if not more & self.unstable:
            return
        decided, before, unstable, stable = self.decided(), self.bytes(), self.unstable, self.stable
        self.restore({region: Region(region.primal, lasts=dict(asked))
                      for region, asked in self.asked.items()}, {}, {})
        self.stable = stable | more
        self.unstable = unstable_values(self.primal.block, stable=self.stable)
        self.decide(self.regions[self.primal.block])
        if self.bytes() >= before:
            self.unstable, self.stable = unstable, stable
            self.restore(*decided)

    def decided(self) -> tuple[dict[Region, Region], dict, dict]:
        return ({region: replace(region) for region in self.regions.values()}, self.kinds,
                self.stand_ins)

    def restore(self, regions: dict[Region, Region], kinds: dict, stand_ins: dict) -> None:
        self.kinds, self.stand_ins = kinds, stand_ins
        for region, was in regions.items():
            for name in DECIDED:
                setattr(region, name, getattr(was, name))

    def bytes(self) -> int:
        """Estimate the size of all tapes; an unknown length counts as MANY."""
        total = 0
        for (region, v), kind in self.kinds.items():
            if kind in ("array", "stack"):
                sizes = [*(known_trips(r.op) for r in region.path() if r.is_loop),
                         *(n if isinstance(n, int) else None for n in getattr(v.type, "dims", ()))]
                size = (np.dtype(v.type.dtype).itemsize if isinstance(v.type, (Array, Scalar))
                        else MANY)
                total += size * math.prod(MANY if n is None else n for n in sizes)
        return total

    def cut(self, region: Region, needed: list[Value], **more) -> tuple[list[Value], list[Value]]:
        return cut(region, needed, self.unstable, self.kept, self.made_again, firm=self.firm,
                   **more)

    def decide(self, region: Region) -> None:
        """Decide, innermost regions first, what to save of each region and what that needs of the
        regions around it.
        """
        children = [r for r in self.regions.values() if r.parent is region]
        for child in children:
            self.decide(child)
        needed = dict.fromkeys(self.reads(region.adjoint))
        once = {v: n for v, n in self.last_trip_reads(region.adjoint).items() if v not in needed
                and v in self.home}
        own, outer = [], []
        for v in needed:
            if v in self.home:
                (own if self.home[v] is region.primal else outer).append(v)
        if region.parent is None:
            if self.apart:
                self.decide_handed(region, list(dict.fromkeys(
                    [*own, *(v for v in once if self.home[v] is region.primal)])))
            return
        own_once = [v for v in once if self.home[v] is region.primal]
        region.once = {v: n for v, n in once.items() if v not in own_once}
        if region.is_loop:
            self.decide_last_trip(region, own, own_once, once)
        else:
            own += own_once
            region.saved, region.recomputed = self.cut(region, own)
        region.outer = dict.fromkeys(outer)
        for v in region.recomputed:
            region.outer.update(dict.fromkeys(x for x in operands(v, self.kept)
                                              if self.home[x] is not region.primal))
        if region.is_loop and region.op.name == "for" and region.trips is not None:
            region.outer.update(dict.fromkeys(v
                                              for v in (region.op.inputs[0], region.op.inputs[2])))
        if region.is_loop:
            region.outer.update(dict.fromkeys(v for v, n in region.once.items() if n == 1))
            region.once = {v: n - 1 for v, n in region.once.items() if n > 1}
        if region.leaves:
            region.once |= dict.fromkeys(region.outer, len(region.leaves))
            region.outer = {}
        for v in region.saved:
            self.choose_tape(region, v)
        if region.is_loop:
            self.share_tapes(region)

    def decide_handed(self, region: Region, needed: list[Value]) -> None:
        """Decide what the forward half hands to the backward half: tape.py,
        Note [What crosses a call].
        """
        region.saved, region.recomputed = self.cut(region, needed)
        params = set(region.primal.params)
        if params.issuperset(region.saved) or self.kinds:
            return
        again = {op for op in region.primal.ops if op not in self.made_again and is_short(op)}
        again = {*self.made_again, *(op for op in again if self.firm == bit_exact_values(
            self.primal, region.adjoint, {*self.made_again, op}))}
        decided = cut(region, needed, self.unstable, self.kept, again, firm=self.firm)
        if params.issuperset(decided[0]):
            region.saved, region.recomputed = decided

    def decide_last_trip(self, region: Region, own: list[Value], once: list[Value],
                     loops_left: dict[Value, int]) -> None:
        """Decide what a loop saves in each trip, and what of the last trip only: tape.py,
        Note [The trip that leaves].
        """
        direct = [r for r in self.regions.values() if r.leaves and r.leaves[0] is region]
        while True:
            region.saved, region.recomputed = self.cut_of_loop(region, own)
            known, lasts = {*region.saved, *region.recomputed}, []
            for branch in direct:
                read = [v for v in once if v in self.read_by(branch) and v not in known]
                saved, branch.again = self.cut(region, read, given=known)
                lasts += saved
            lasts += [v for v in once if v not in known
                      and not any(v in self.read_by(branch) for branch in direct)]
            costly = [v for v in lasts if not isinstance(v.type, Scalar)
                      and carry_of(region.op, {}, v) is None]
            if not costly:
                break
            own += costly
        for v in dict.fromkeys(lasts):
            last = region.last(v)
            self.home[last] = region.parent.primal
            region.once[last] = loops_left.get(v) or min(loops_left[x] for x in once)
        for branch in direct:
            for x in (x for v in branch.again for x in operands(v, self.kept)
                      if self.home[x] is not region.primal):
                region.once[x] = min(region.once.get(x, len(branch.leaves)), len(branch.leaves))

    def cut_of_loop(self, region: Region, own: list[Value]) -> tuple[list[Value], list[Value]]:
        """Compute the `cut` of a loop, which recomputes nothing that is saved as the start of the
        next trip.

        See tape.py, Note [What a trip begins with and ends with].
        """
        saved, recomputed = self.cut(region, own)
        begins = {end: param for param, end in self.shareable(region) if param in saved
                  and end in recomputed}
        if not begins:
            return saved, recomputed
        return self.cut(region, list(dict.fromkeys([*own, *begins.values()])), handed_on=begins)

    def read_by(self, branch: Region) -> dict[Value, int]:
        """Return what a block that runs where a loop is left needs of the blocks around it."""
        return branch.once | dict.fromkeys((s for key, s in self.stand_ins.items()
                                            if key[0] is branch), len(branch.leaves))

    def reads(self, block: Block):
        """Return the primal values that a block of the adjoint reads, and those that its nested
        regions need in each trip.
        """
        for op in block.ops:
            yield from op.inputs
            for inner in op.blocks:
                region = self.by_adjoint.get(inner)
                if region is None:
                    yield from self.reads(inner)
                    yield from inner.yields
                elif not region.leaves:
                    yield from region.outer
                    yield from (s for key, s in self.stand_ins.items() if key[0] is region)
        yield from block.yields

    def last_trip_reads(self, block: Block) -> dict[Value, int]:
        """Return what the regions inside a block of the adjoint need only where loops were left,
        and how many they are.
        """
        found: dict[Value, int] = {}
        for inner in (inner for op in block.ops for inner in op.blocks):
            region = self.by_adjoint.get(inner)
            more = (self.last_trip_reads(inner) if region is None else self.read_by(region)
                    if region.leaves else region.once)
            found |= {v: min(n, found.get(v, n)) for v, n in more.items()}
        return found

    def choose_tape(self, region: Region, v: Value) -> None:
        """Choose the kind of tape for `v` of `region`."""
        kind = self.kinds[region, v] = self.kind_of_tape(region, v)
        if kind == "result":
            stand_in = self.stand_ins[region, v] = Value(v.type, v.name, region.op)
            self.home[stand_in] = region.parent.primal

    def kind_of_tape(self, region: Region, v: Value) -> str:
        """Return the kind of tape that `v` of `region` would take: tape.py,
        Note [Two kinds of tape].
        """
        if v in self.measured and self.is_hoisted(*v.op.inputs, **v.op.attrs):
            return "hoisted"
        loops = [r for r in region.path() if r.is_loop]
        is_array = isinstance(v.type, (Array, Unknown, List))
        if not region.is_loop and (not loops or not is_array):
            return "result"
        if (isinstance(v.type, (Scalar, Array)) and all(r.trips is None for r in loops)
                and self.hoistable_sizes(loops)
                and (not is_array or v not in self.shapeless
                     and all(self.hoisted_length(v, k) for k in range(len(v.type.dims))))):
            return "array"
        return "stack"

    def share_tapes(self, region: Region) -> None:
        """Share one tape between the start and end states of trips: tape.py,
        Note [What a trip begins with and ends with].
        """
        for param, end in self.shareable(region):
            if all(self.kinds.get((region, v)) == "array" for v in (param, end)):
                region.ends[end] = param
                self.kinds[region, end] = "end"

    def shareable(self, region: Region) -> list[tuple[Value, Value]]:
        """Return the pairs of start and end states of a loop's trips that one tape could hold."""
        _, params, ends, _ = loop_parts(region.op)
        return [(param, end) for param, end in zip(params, ends) if end not in params
                and end.type == param.type
                and self.kind_of_tape(region, param) == self.kind_of_tape(region, end) == "array"]

    # sizes that are known before the outermost loop

    def hoistable_sizes(self, loops: list[Region]) -> bool:
        return all(self.hoistable(x) for r in loops for x in r.op.inputs[:3])

    def hoistable(self, x: Value) -> bool:
        """Test whether the integer `x`, read inside loops, is invariant and known before the
        outermost one.
        """
        if self.home[x] is self.primal.block:
            return True
        if x.op is None or x.op.blocks or x not in x.op.outputs:
            return False
        if x.op.name == "length":
            return self.hoisted_length(x.op.inputs[0], x.op.attrs["axis"]) is not None
        return (x.op.record.elementwise and all(map(self.hoistable, x.op.inputs))
                or x.constant is not MISSING)

    def hoisted_length(self, x: Value, axis: int):
        """Return a value outside all loops with the extent of this axis of `x`, which axis of it,
        and by how much it is longer; or None.
        """
        if not isinstance(x.type, Array):
            return (x, axis) if self.home[x] is self.primal.block else None
        extent = x.type.dims[axis]
        if isinstance(extent, int):
            return extent
        before = self.path_ops(x)
        for v in self.primal.params:
            if isinstance(v.type, Array) and extent in v.type.dims:
                return v, v.type.dims.index(extent)
        if extent.offset:
            whole = replace(extent, offset=0)
            for v in self.primal.params:
                if isinstance(v.type, Array) and whole in v.type.dims:
                    return v, v.type.dims.index(whole), extent.offset
        for op in self.primal.block.ops:
            if op in before:
                break
            for v in op.outputs:
                if isinstance(v.type, Array) and extent in v.type.dims and v not in self.shapeless:
                    return v, v.type.dims.index(extent)
        return (x, axis) if self.home[x] is self.primal.block and x.op not in before else None

    def is_hoisted(self, x: Value, axis: int) -> bool:
        """Test whether the length of this axis of `x`, computed in each trip, is known outside all
        loops.
        """
        return not x.type.dims[axis].accepts_any and self.hoisted_length(x, axis) is not None

    def path_ops(self, x: Value) -> set[Op]:
        """Return the op of the function's own block inside which `x` is defined."""
        home = self.home[x]
        return {op for op in self.primal.block.ops for inner in op.blocks
                if home in set(blocks_of(inner))}

    def hoist(self, x: Value) -> Value:
        """Emit `x` before the outermost loop."""
        if x in self.env and self.home[x] is self.primal.block:
            return self.env[x]
        if x.constant is not MISSING:
            return value(x.constant)
        if x.op.name == "length":
            return self.emit_length(x.op.inputs[0], x.op.attrs["axis"])
        return x.op.record(*map(self.hoist, x.op.inputs), **x.op.attrs)

    def emit_length(self, x: Value, axis: int) -> Value:
        found = self.hoisted_length(x, axis)
        if isinstance(found, int):
            return value(found)
        v, own, *offset = found
        return longer_by(length(self.env[v], axis=own), *offset)

    # emitting

    def function(self) -> Function:
        """Emit both sweeps as one function."""
        block, count = self.emit()
        primal = self.primal
        data = len(primal.params) - len(primal.captures)
        seeds = block.params[data + len(primal.captures):]
        block.params = [*block.params[:data], *seeds,
                        *block.params[data:data + len(primal.captures)]]
        return primal.remade(block, name=f"{primal.name}_vjp", tupled=True)

    def emit(self) -> tuple[Block, int]:
        """Emit one block with both sweeps; return it, and how many of its ops are the forward one.
        """
        primal = self.primal
        self.plan()
        names = {p.name for p in primal.params}
        params = [Value(p.type, p.name) for p in primal.params]
        seeds = [Value(s.type, s.name if s.name and s.name not in names else "y_bar")
                 for s in self.adjoint.seeds]
        incoming = [Value(s.type, s.name) for s in self.adjoint.incoming.values()]
        block = Block([*params, *seeds, *incoming])
        root = self.regions[primal.block]
        with Builder(block):
            results = self.forward(primal.block, params)
            for y, seed in zip(self.adjoint.seeded, seeds):
                seed.type = self.env[y].type  # its extents have other names now
            count = len(block.ops)
            self.recompute(root.recomputed)
            if self.adjoint.forwards:  # the oldest item is read first
                for key, tape in self.tapes.items():
                    self.tapes[key] = tape_reversed(tape) if self.kinds[key] == "stack" else tape
            for region in self.regions.values():
                if region.trips is not None and not self.is_counted(region):
                    self.env[region.trips] = tape_len(self.tapes[self.own_stacks(region)[0]])
            self.env.update(zip([*self.adjoint.seeds, *self.adjoint.incoming.values()],
                                [*seeds, *incoming]))
            block.yields = results + self.backward(root.adjoint, [])
        return block, count

    def tapes_inside(self, op: Op) -> list[tuple[Region, Value]]:
        """Return the tapes written by the regions of `op`, at any depth."""
        inside = {b for inner in op.blocks for b in blocks_of(inner)}
        return [key for key in self.kinds if self.kinds[key] in ("array", "stack")
                and key[0].primal in inside]

    def forward(self, block: Block, args: Sequence[Value]) -> list[Value]:
        """Emit a primal block again, with the writes to the tapes of its region."""
        self.env.update(zip(block.params, args, strict=True))
        region = self.regions.get(block)
        for param in block.params:
            self.save(region, param)
            self.measure(param, region)
        for op in block.ops:
            with at(op.line):
                self.forward_op(op)
                for out in op.outputs:
                    self.save(region, out)
                    self.measure(out, region)
                if region is not None:
                    for v in region.saved:
                        if v.op is op and v not in op.outputs:
                            self.save(region, v)
        return [self.env[y] for y in block.yields]

    def measure(self, x: Value, region: Region | None) -> None:
        """Emit the lengths of `x` that the adjoint reads (shape_only_reads.py), and write them to
        their tapes.
        """
        for n in self.lengths.get(x, ()):
            emit_op(n.op, self.env)
            self.save(region, n)

    def forward_op(self, op: Op) -> None:
        if op in self.adjoint.calls:
            return self.forward_call(op, *self.adjoint.calls[op])
        if op in self.adjoint.reruns:
            rerun, kept = self.adjoint.reruns[op]
            outs, found = rerun.forward([self.env[x] for x in rerun.inputs])
            self.env.update(zip(kept, found))
            return self.rename(op, outs)
        regions = [self.regions[b] for b in op.blocks if b in self.regions]
        if not regions:
            return emit_op(op, self.env)
        tapes = self.tapes_inside(op)
        if regions[0].parent.parent is None:
            self.allocate(tapes)
        inputs = [self.env[x] for x in op.inputs]
        if op.name == "if":
            self.rename(op, self.forward_if(op, inputs, tapes, regions[0].parent))
        else:
            counter = (regions[0].trips if regions[0].trips is not None
                       and self.is_counted(regions[0]) else None)
            self.rename(op, self.forward_loop(op, inputs, tapes, counter))

    def forward_call(self, op: Op, forward: Function, kept: list[Value]) -> None:
        """Emit a call of the forward part, which also returns the residuals for the backward part.
        """
        inputs = [self.env[x] for x in op.inputs]
        if op in self.adjoint.pairs:
            outs = emit(call, *inputs, *(emit(tape_new) for _ in kept), callee=forward)
        else:
            outs = emit(call, *inputs, callee=Known(forward))
        outs = outs if isinstance(outs, tuple) else (outs,)
        self.rename(op, outs[:len(op.outputs)])
        self.env.update(zip(kept, outs[len(op.outputs):]))

    def rename(self, op: Op, outputs: Sequence[Value]) -> None:
        """Record what the outputs of `op` have become."""
        for old, new in zip(op.outputs, outputs, strict=True):
            if old.name and not new.name and new.op is not None:
                new.name = old.name
            self.env[old] = new

    def forward_if(self, op: Op, inputs: list[Value], tapes: list, around: Region) -> list[Value]:
        """Emit an `if` whose branches also write tapes, or return what they save."""
        extra = [key for key in self.stand_ins if key[0].op is op]
        before = dict(self.tapes)
        blocks, in_loop = [], any(r.is_loop for r in around.path())
        for branch in op.blocks:
            block = Block()
            self.tapes = dict(before)
            with Builder(block):
                yields = self.forward(branch, [])
                for region, v in extra:
                    if region.primal is branch:
                        yields.append(self.env[v])
                    else:
                        # a count may size a tape of the next derivative, which is allocated around
                        # the `if`
                        counts = isinstance(v.type, Scalar) and v.type.dtype == "int64"
                        # the next derivative reads the members of zeros like a tuple
                        has_members = isinstance(v.type, Tuple) and not has_unknown(v.type)
                        yields.append(zero_of_type(v.type) if in_loop or counts or has_members
                                      else make_undefined())
                block.yields = yields + [self.tapes[key] for key in tapes]
            blocks.append(block)
        self.tapes = before
        types = [join_types(a.type, b.type)
                 for a, b in zip(blocks[0].yields, blocks[1].yields, strict=True)]
        names = ([o.name for o in op.outputs] + [v.name for _, v in extra]
                 + [tape_name(v) for _, v in tapes])
        outs = add_op(if_record, [inputs[0]], {}, types, blocks, names).outputs
        count = len(op.outputs)
        for key, out in zip(extra, outs[count:]):
            self.env[self.stand_ins[key]] = out
        self.tapes.update(zip(tapes, outs[count + len(extra):]))
        return outs[:count]

    def forward_loop(self, op: Op, inputs: list[Value], tapes: list,
                     trips: Value | None) -> Sequence[Value]:
        """Emit a loop whose body also writes tapes, and counts its trips where the adjoint needs
        the count.
        """
        _, params, _, body = loop_parts(op)
        skip, breaks = (3 if op.name == "for" else 0), op.attrs["breaks"]
        count = len(params)
        counted = [value(0)] if trips is not None else []
        for param in self.regions[body].ends.values():
            key, first = (self.regions[body], param), inputs[skip + params.index(param)]
            self.tapes[key] = put(self.tapes[key],
                                  (*self.slot(self.regions[body].parent), value(0)), first)
            self.tapes[key].name = tape_name(param)
        starts = [*inputs[skip:], *counted, *(self.tapes[key] for key in tapes)]
        lasts = {v: last for v, last in self.regions[body].lasts.items() if last not in op.outputs}
        starts[count + len(counted):count + len(counted)] = (zero_of_type(v.type) for v in lasts)
        names = ([p.name for p in params] + ["trips"] * len(counted) + [v.name for v in lasts]
                 + [tape_name(v) for _, v in tapes])
        before, after = dict(self.tapes), count + len(counted) + len(lasts)

        def step(*args: Value) -> list[Value]:
            index, carries = (args[:1], args[1:]) if skip else ((), args)
            self.tapes.update(zip(tapes, carries[after:]))
            more = [n + 1 for n in carries[count:count + len(counted)]]
            ends = self.forward(body, [*index, *carries[:count]])
            return [*ends, *more, *(self.env[v] for v in lasts),
                    *(self.tapes[key] for key in tapes)]

        if op.name == "for":
            outs = for_loop(*inputs[:3], starts, step, breaks, names, body.params[0].name)
        else:
            outs = while_loop(starts, lambda *c: self.forward(op.blocks[0], c[:count])[0], step,
                              breaks, names)
        self.tapes = before
        if trips is not None:
            self.env[trips] = outs[count]
        self.env.update(zip(lasts.values(), outs[count + len(counted):]))
        self.tapes.update(zip(tapes, outs[after:]))
        return outs[:count]

    def is_counted(self, region: Region) -> bool:
        """Test whether a loop's trips need a counter: a tape that it alone fills counts them too.
        """
        return region.parent.parent is not None or not self.own_stacks(region)

    def own_stacks(self, region: Region) -> list[tuple[Region, Value]]:
        return [key for key in self.kinds if key[0] is region and self.kinds[key] == "stack"]

    # tapes

    def allocate(self, tapes: list[tuple[Region, Value]]) -> None:
        """Create the tapes that the outermost loop about to be emitted writes to."""
        for region, v in tapes:
            if self.kinds[region, v] == "stack":
                self.tapes[region, v] = emit(tape_new)
            else:
                loops = [r for r in region.path() if r.is_loop]
                sizes = [self.trip_count(r) for r in loops]
                if v in region.ends.values():
                    sizes[-1] = sizes[-1] + 1
                if isinstance(v.type, Array):
                    sizes += [self.emit_length(v, k) for k in range(len(v.type.dims))]
                self.tapes[region, v] = empty(value(tuple(sizes)), dtype=v.type.dtype)
            self.tapes[region, v].name = tape_name(v)

    def trip_count(self, region: Region) -> Value:
        """Return the trip count of a counted loop, computed before the outermost loop around it."""
        lo, hi, step = (self.hoist(x) for x in region.op.inputs[:3])
        step = step.constant
        span = hi - lo if step > 0 else lo - hi
        count = span if abs(step) == 1 else (span + (abs(step) - 1)) // abs(step)
        return at_least_zero(count)

    def slot(self, region: Region) -> list[Value]:
        """Return the index in its array tape of the current trip of the loops around `region`."""
        found = []
        for r in region.path():
            if r.is_loop:
                index, (lo, _, step) = self.env[r.primal.params[0]], r.op.inputs[:3]
                lo = self.hoist(lo)
                offset = index - lo if step.constant > 0 else lo - index
                found.append(offset if abs(step.constant) == 1 else offset // abs(step.constant))
        return found

    def slot_after(self, region: Region) -> tuple[Value, ...]:
        """Return the index of a trip's end state in the tape of its start state."""
        *around, own = self.slot(region)
        return *around, own + 1

    def save(self, region: Region | None, v: Value) -> None:
        """Write `v` to its tape, if it has one."""
        kind = self.kinds.get((region, v))
        if kind == "end":
            begin = region.ends[v]
            self.tapes[region, begin] = put(self.tapes[region, begin], self.slot_after(region),
                                            self.env[v])
            self.tapes[region, begin].name = tape_name(begin)
        if kind == "array" and v in region.ends.values():  # the trip before saved it
            return
        if kind == "stack":
            self.tapes[region, v] = tape_push(self.tapes[region, v], self.env[v])
        elif kind == "array":
            self.tapes[region, v] = put(self.tapes[region, v], tuple(self.slot(region)),
                                        self.env[v])
        if kind in ("stack", "array"):
            self.tapes[region, v].name = tape_name(v)

    def load(self, region: Region) -> None:
        """Read, at the start of a region's adjoint, what was saved, and recompute what was not."""
        if region.is_loop and region.trips is not None and region.op.name == "for":
            lo, _, step = region.op.inputs[:3]
            k = self.env[region.primal.params[0]]
            self.env[region.primal.params[0]] = self.env[lo] + k * self.env[step]
        for v in region.saved:
            key = region, v
            match self.kinds[key]:
                case "result":
                    self.env[v] = self.env[self.stand_ins[key]]
                    continue
                case "stack":
                    self.tapes[key], loaded = tape_pop(self.tapes[key])
                    self.tapes[key].name = tape_name(v)
                case "hoisted":
                    loaded = self.emit_length(*v.op.inputs, **v.op.attrs)
                case "end":
                    loaded = take(self.tapes[region, region.ends[v]], self.slot_after(region))
                case _:
                    loaded = take(self.tapes[key], tuple(self.slot(region)))
            loaded = self.pythons(loaded, v)
            if not loaded.name:
                loaded.name = v.name
            self.env[v] = loaded
        self.env.update((v, self.env[last]) for v, last in region.lasts.items() if last in self.env)
        self.recompute(region.recomputed)

    def pythons(self, loaded: Value, v: Value) -> Value:
        """Convert what was read of an array to a Python number where `v` was one: NumPy's would
        promote single precision.
        """
        if not self.is_narrow or not (isinstance(v.type, Scalar) and v.type.weak
                                      and v.type.dtype in PYTHONS):
            return loaded
        if not isinstance(loaded.type, Scalar) or loaded.type.weak:
            return loaded
        return PYTHONS[v.type.dtype](loaded)

    @cached_property
    def is_narrow(self) -> bool:
        """Whether any value has single precision or less."""
        values = (v for block in blocks_of(self.primal.block)
                  for v in [*block.params, *(v for op in block.ops for v in op.outputs)])
        return any(dtype_of(v.type) in NARROW for v in values)

    def recompute(self, values: Sequence[Value]) -> None:
        """Emit the ops of these values again."""
        again: set[Op] = set()  # calls give several values
        for v in values:
            with at(v.op.line.reversed(again=True) if v.op is not None and v.op.line else None):
                if v in self.kept:
                    found = take(self.env[self.kept[v].array],
                                 tuple(self.env[i] for i in self.kept[v].indices))
                    found = self.pythons(found, v)
                    found.name = found.name or v.name
                    self.env[v] = found
                elif v.op not in again:
                    emit_op(v.op, self.env)
                    again.add(v.op)

    # the backward sweep

    def backward(self, block: Block, args: Sequence[Value]) -> list[Value]:
        """Emit a block of the adjoint, reading the primal through the tapes."""
        self.env.update(zip(block.params, args, strict=True))
        region = self.by_adjoint.get(block)
        if region is not None and region.parent is not None:
            if region.is_loop and region.op.name == "for":
                self.env[region.primal.params[0]] = self.env[block.params[0]]
            self.recompute(region.again)
            self.load(region)
        for op in block.ops:
            with at(op.line):
                self.backward_op(op)
        return [self.env[y] for y in block.yields]

    def backward_op(self, op: Op) -> None:
        inside = (op.blocks if any(b in self.by_adjoint for b in op.blocks)
                  else [b for arm in op.blocks for b in blocks_of(arm)])
        regions = [self.by_adjoint[b] for b in inside if b in self.by_adjoint]
        if not regions:
            return emit_op(op, self.env)
        stacks = [key for r in regions for key in self.tapes_inside(r.op)
                  if self.kinds[key] == "stack"]
        stacks = list(dict.fromkeys(stacks))
        if op.name == "if":
            self.rename(op, self.backward_if(op, stacks))
        else:
            self.rename(op, self.backward_loop(op, stacks))

    def backward_if(self, op: Op, stacks: list) -> Sequence[Value]:
        before, blocks = dict(self.tapes), []
        for branch in op.blocks:
            block = Block()
            self.tapes = dict(before)
            with Builder(block):
                # analysis/zero_cotangents.py: what is swept back in the other arm alone leaves its
                # tapes as it would have
                if stacks and not any(inner in self.by_adjoint for inner in blocks_of(branch)):
                    self.backward(next(arm for arm in op.blocks if arm is not branch), [])
                block.yields = [*self.backward(branch, []), *(self.tapes[key] for key in stacks)]
            blocks.append(block)
        self.tapes = before
        types = [join_types(a.type, b.type)
                 for a, b in zip(blocks[0].yields, blocks[1].yields, strict=True)]
        names = [o.name for o in op.outputs] + [tape_name(v) for _, v in stacks]
        outs = add_op(if_record, [self.env[op.inputs[0]]], {}, types, blocks, names).outputs
        self.tapes.update(zip(stacks, outs[len(op.outputs):]))
        return outs[:len(op.outputs)]

    def backward_loop(self, op: Op, stacks: list) -> Sequence[Value]:
        (body,) = op.blocks
        starts = [*(self.env[x] for x in op.inputs[3:]), *(self.tapes[key] for key in stacks)]
        names = [p.name for p in body.params[1:]] + [tape_name(v) for _, v in stacks]
        count, before = len(op.outputs), dict(self.tapes)

        def step_back(index: Value, *carries: Value) -> list[Value]:
            self.tapes.update(zip(stacks, carries[count:]))
            return [*self.backward(body, [index, *carries[:count]]),
                    *(self.tapes[key] for key in stacks)]

        outs = for_loop(*(self.env[x] for x in op.inputs[:3]), starts, step_back, names=names,
                        index=body.params[0].name)
        self.tapes = before
        self.tapes.update(zip(stacks, outs[count:]))
        return outs[:count]


def leaves_out_few(v: Value) -> bool:
    """Test whether `v` is a slice that is shorter by a constant in each axis of an array of the
    same rank: x[1:-1].
    """
    if (not isinstance(v.type, Array) or v.op is None or v.op.name != "getitem"
            or getattr(v.op.inputs[0].type, "rank", None) != v.type.rank):
        return False
    return all(isinstance(n, int) and isinstance(m, int) or sliced(v, k) is not None
               for k, (n, m) in enumerate(zip(v.type.dims, v.op.inputs[0].type.dims)))


def tape_name(v: Value) -> str:
    """Name the tape of `v`."""
    return f"{v.name or 't'}_tape"


def zero_of_type(type: Type) -> Value:
    """Emit a placeholder of this type, to save in the branch that does not compute it."""
    match type:
        case Tuple(items):
            return packed([empty((0,) * len(x.dims), x.dtype) if isinstance(x, Array)
                           else zero_of_type(x) for x in items], type.form)
        case List(item):
            return emit(list_of, item=item)
        case Static(known):
            return value(known)
    return value({"bool": False}.get(type.dtype, 0 if "int" in type.dtype else 0.0))
