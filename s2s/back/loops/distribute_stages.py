"""Distribute a nest into stages over strips, so that arithmetic between inner loops is vectorised.

    for i in range(n):                              for s in range((n + 31) // 32):
        z = 0.0                                         m = min(n - s * 32, 32)
        for j in range(k):                              for i in range(m):
            z += x[i, j] * w[j]                             z = 0.0
        r = 1 / (1 + np.exp(-z))                            for j in range(k):
        for j in range(k):             becomes                  z += x[s * 32 + i, j] * w[j]
            w_bar[j] += r * x[i, j]                         z_s[i] = z
                                                        for i in range(m):
                                                            r_s[i] = 1 / (1 + np.exp(-z_s[i]))
                                                        for i in range(m):
                                                            r = r_s[i]
                                                            for j in range(k):
                                                                w_bar[j] += r * x[s * 32 + i, j]

LLVM vectorises innermost loops only. An exponential between two of them is computed one at a time,
which takes as long as a row of fifty products; in a loop of its own it is vectorised. This is
strip-mining and loop distribution: a strip's rows are still in the nearest cache when they are read
again.

It is legal where no trip reads what another writes (analysis/dependence.py) and each stage keeps
the order of its trips. An array or a number that trips accumulate into is accumulated in one stage,
so that the sums are the same to the last bit.

Values that one stage computes and another reads are saved for one strip. Indices, and elements that
no trip writes, are read again.

Considered: a loop over all trips for each stage, which needs no strips, but memory for all trips,
and loads the rows from memory twice; or calling BLAS for the rows of a strip, which requires them
contiguous, and one call takes as long as 32 short rows.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence

from ...analysis.dependence import Trip, least_index
from ...ir.builder import Builder, current
from ...ir.graph import MISSING, Block, Function, Op, Value, blocks_of, op_free_values, walk
from ...ir.substitute import substitute
from ...ir.types import Array
from ...ops.arrays.index import getitem
from ...ops.core.record import value
from ..loopir.loop_builder import loop, op_named, put
from ..loopir.ops import new_buffer
from ..loopir.reductions import sum_step
from ..loopir.vector_support import SHORT, is_extreme, is_long
from .distribute_gathers import dependents, emit_strip_loop, emit_trip, is_direct, is_simple

WIDTH = 32  # most trips of a strip: some vectors of them
# Numbers that fit the nearest caches: a strip has as many rows as do.
NEAR = 16_384
MOST = 9  # most stages
FEW = 16  # most ops to move along with one
KEPT = ("float64", "float32", "int64", "bool")


def distribute_stages(function: Function) -> Function:
    """Distribute the loops of `function`, a loop form, into stages where that pays, in place."""
    _distribute(function.block, {})
    return function


def _distribute(block: Block, counters: dict[Value, Op]) -> bool:
    """Distribute the loops in `block`; return whether there were any."""
    kept: list[Op] = []
    same: dict[Value, Value] = {}
    changed = False
    for op in block.ops:
        around = {**counters, op.blocks[0].params[0]: op} if op.name == "for" else counters
        if any([_distribute(inner, around) for inner in op.blocks]):
            changed = True
        elif (stages := stages_of(op, counters)) is not None:
            with Builder(Block(), op.line) as builder:
                same.update(zip(op.outputs, _emit(op, stages)))
            kept += builder.block.ops
            continue
        kept.append(op)
    block.ops = kept
    substitute(block, same)
    return changed or bool(same)


# ---------------------------------------------------------------------------------- grouping of ops


def stages_of(op: Op, counters: dict[Value, Op]) -> Stages | None:
    """The stages of the loop `op`; None to leave it alone."""
    if op.name != "for" or op.attrs["breaks"] or op.inputs[2].constant not in (1, -1):
        return None
    (body,), (lo, hi) = op.blocks, (x.constant for x in op.inputs[:2])
    if MISSING not in (lo, hi) and abs(hi - lo) < SHORT:
        return None
    if not any(each.name in ("for", "while")
               for each in body.ops) or not any(map(is_long, body.ops)):
        return None
    if not all(each.blocks or is_simple(each) for each in body.ops):
        return None
    if any(not each.record.pure or each.name == "call" for each in walk(body)):
        return None
    stages = Stages(body, Trip(body, least_index(op, counters)))
    return stages if stages.are_found() else None


class Stages:
    """The ops of a loop's body by stage number: even for loops, odd for vectorisable arithmetic."""

    def __init__(self, body: Block, trip: Trip):
        self.body = body
        self.root = _roots(body)
        roles = [trip.role(p, y)
                 or ("sum" if is_extreme(trip, p, y) else "gather" if trip.only_accumulates(p, y)
                     else None) for p, y in zip(body.params[1:], body.yields)]
        self.roles = dict(zip(body.params[1:], roles))
        self.varying = dependents(body.ops, body.params)
        self.cheap = self.read_again()
        self.ops = [op for op in body.ops if op not in self.cheap]
        # except carried values
        self.made = {x: op for op in self.ops for x in op.outputs if x not in self.root}
        self.needs = {op: op_free_values(op) for op in self.ops}
        self.read_by: dict[Value, list[Op]] = defaultdict(list)
        for op in self.ops:
            for x in self.needs[op]:
                self.read_by[x].append(op)
        self.touched = {op: dict.fromkeys(self.root[x] for k, x in self.reads(op) if x in self.root
                                          and k not in op.record.shapes) for op in self.ops}
        self.in_vectors = set(filter(self.may_be_in_vectors, self.ops))
        self.number = dict.fromkeys(self.ops, 0)

    def reads(self, op: Op) -> list[tuple[int, Value]]:
        """The operands of `op`, with their input numbers, or -1 for a use inside its blocks."""
        return [*enumerate(op.inputs), *((-1, x) for x in self.needs[op] if x not in op.inputs)]

    def read_again(self) -> set[Op]:
        """The ops that any stage may repeat: indices, and contiguous reads of unwritten arrays."""
        found: set[Op] = set()
        made = {x for op in self.body.ops for x in op.outputs}
        for op in self.body.ops:
            is_index = op.record.ring and op.output.type.dtype == "int64"
            is_element = (op.name == "getitem" and op.inputs[0] not in self.root
                          and is_direct(op, self.body.params[0], self.varying))
            if ((is_index or is_element or op.name == "constant") and op.output not in self.root
                    and all(x.op in found for x in op.inputs if x in made)):
                found.add(op)
        return found

    def may_be_in_vectors(self, op: Op) -> bool:
        """Whether `op` can be vectorised: no loop, check, gather, or ordered sum."""
        if op.blocks or op.record.helper is not None:
            return False
        if op.record.indices is not None and not is_direct(op, self.body.params[0], self.varying):
            return False
        return all(self.roles[x] == "own" or op.record is sum_step for x in self.touched[op])

    def are_found(self) -> bool:
        """Number the stages; return whether that is possible and one can be vectorised."""
        if None in self.roles.values() or any(
                self.root.get(y) is not p
                for p, y in zip(self.body.params[1:], self.body.yields)):
            return False
        if any(isinstance(x.type, Array) for x in self.made):
            return False
        together = [group for root, role in self.roles.items() if role != "own"
                    and (group := [op for op in self.ops if root in self.touched[op]])]
        before = None
        while before != self.number:
            before = dict(self.number)
            for group in together:  # in one stage, in their order
                if not self.in_vectors.issuperset(group):
                    self.in_vectors.difference_update(group)
            last: dict[Value, int] = {}
            for op in self.ops:
                least = max([self.number[op],
                             *(self.number[self.made[x]] for x in self.needs[op] if x in self.made),
                             *(last.get(x, 0) for x in self.touched[op])])
                wrong = 1 if op not in self.in_vectors else 0 if is_long(op) else None
                self.number[op] = least + (least % 2 == wrong)
                last.update(dict.fromkeys(self.touched[op], self.number[op]))
            for group in together:
                self.number.update(dict.fromkeys(group, max(self.number[op] for op in group)))
            if max(self.number.values()) >= MOST:
                return False
        self.postpone()
        return any(is_long(op) and op in self.in_vectors
                   for op in self.ops) and all(x.type.dtype in KEPT for x in self.crossing())

    def postpone(self) -> None:
        """Sink ops into the only later stage that uses them, if that saves at most one number."""
        for op in reversed(self.ops):
            readers = [self.number[each] for each in self.readers(op)]
            if (readers and self.may_go(op, min(readers))
                    and len(self.kept_for(op, min(readers), {op})) <= 1):
                self.number[op] = min(readers)

    def readers(self, op: Op) -> list[Op]:
        return [each for x in op.outputs for each in self.read_by[x]]

    def may_go(self, op: Op, stage: int) -> bool:
        return (not op.blocks and not is_long(op) and not self.touched[op]
                and (op in self.in_vectors or stage % 2 == 0))

    def kept_for(self, op: Op, stage: int, going: set[Op]) -> set[Value]:
        """The extra values to save if `op` moves to this stage.

        Ops needed only by it and by `going` move along.
        """
        found: set[Value] = set()
        for x in (x for x in op.inputs if x in self.made):
            source, others = self.made[x], [each for each in self.readers(self.made[x])
                                            if each not in going]
            if any(each not in going and self.number[each] >= stage for each in self.read_by[x]):
                continue
            if not others and len(going) < FEW and self.may_go(source, stage):
                found |= self.kept_for(source, stage, {*going, source})
            else:
                found.add(x)
        return found

    def in_order(self) -> list[list[Op]]:
        """The ops of each stage."""
        return [[op for op in self.ops if self.number[op] == k]
                for k in sorted(set(self.number.values()))]

    def crossing(self) -> list[Value]:
        """The numbers live from one stage to another."""
        return [x for x, op in self.made.items()
                if any(x in self.needs[each] and self.number[each] != self.number[op]
                       for each in self.ops)]


def _roots(body: Block) -> dict[Value, Value]:
    """The carry that each version of a carried value in the body belongs to."""
    found = {p: p for p in body.params[1:]}
    for op in body.ops:
        if op.name in ("for", "while"):
            first = len(op.inputs) - len(op.outputs)
            found.update((y, found[x]) for x, y in zip(op.inputs[first:], op.outputs) if x in found)
        elif not op.blocks:
            k = op.record.writes
            for x in op.inputs if k is None else [op.inputs[k]]:
                if x in found and isinstance(x.type, Array) == (k is not None):
                    found[op.output] = found[x]
    return found


# ---------------------------------------------------------------------------------------- the loops


def _emit(op: Op, stages: Stages) -> list[Value]:
    """Emit the loop in strips of stages; return the final values of its carries."""
    (body,) = op.blocks

    def strip(start: Value, length: Value, carries: list[Value]) -> list[Value]:
        now = dict(zip(body.params[1:], carries))  # carried values are used directly
        kept = {x: new_buffer(x.type.dtype, (WIDTH,), [value(WIDTH)]) for x in stages.crossing()}
        for ops in stages.in_order():
            _emit_stage(op, stages, ops, start, length, now, kept)
        return [now[p] for p in body.params[1:]]

    row = functools.reduce(lambda a, b: op_named("max_", a, b), _lengths(body), value(1))
    width = op_named("max_", op_named("min_", op_named("floor_divide", value(NEAR), row),
                                      value(WIDTH)), value(1))
    return emit_strip_loop(op, width, strip)


def _lengths(body: Block) -> list[Value]:
    """The known trip counts of loops in `body`: the lengths of the rows that a trip reads."""
    inside = {x for block in blocks_of(body)
              for x in (*block.params, *(y for op in block.ops for y in op.outputs))}
    found = {}
    for op in walk(body):
        ends = [x if x.constant is MISSING else value(x.constant) for x in op.inputs[:2]]
        if op.name == "for" and op.inputs[2].constant in (1, -1) and inside.isdisjoint(ends):
            lo, hi = ends if op.inputs[2].constant == 1 else ends[::-1]
            found.setdefault((lo, hi), op_named("subtract", hi, lo))
    return list(found.values())


def _emit_stage(op: Op, stages: Stages, ops: list[Op], start: Value, length: Value,
           now: dict[Value, Value], kept: dict[Value, Value]) -> None:
    """Emit the loop of one stage; update `now` and `kept`."""
    (body,) = op.blocks
    made = {x for each in ops for x in each.outputs}
    wanted = dict.fromkeys(x for each in ops for x in stages.needs[each])
    ends = {stages.root[x]: x for each in ops for x in each.outputs if x in stages.root}
    saved = [x for x in kept if x in made]
    first = _recomputed(wanted, stages.cheap, body)
    carries = [*(now[x] for x in ends), *(kept[x] for x in saved)]

    def trip(index: list[Value], inner: list[Value]) -> list[Value]:
        at_hand = {**now, **dict(zip(ends, inner))}
        env = {x: at_hand[root] for x, root in stages.root.items() if x not in made}
        for x in wanted:
            if x in kept and x not in made:
                env[x] = getitem(kept[x], index[0], pattern=("i",))
                env[x].name = x.name
        env = emit_trip(op, first, op_named("add", start, index[0]), env)
        for each in ops:
            each.inputs = [env.get(x, x) for x in each.inputs]
            for block in each.blocks:
                substitute(block, env)
            current().block.ops.append(each)
        rows = (put(row, x, index) for row, x in zip(inner[len(ends):], saved))
        return [*ends.values(), *rows]

    after = loop([length], carries, [x.type for x in carries],
                 [*(x.name for x in ends), *(x.name or "t" for x in saved)], trip, ("i",))
    now.update(zip(ends, after))
    kept.update(zip(saved, after[len(ends):]))


def _recomputed(values: Sequence[Value], cheap: set[Op], body: Block) -> list[Op]:
    """The ops that recompute these values, in order."""
    found, pending = set(), list(values)
    while pending:
        x = pending.pop()
        if x.op in cheap and x.op not in found:
            found.add(x.op)
            pending += x.op.inputs
    return [op for op in body.ops if op in found]
