"""Fuse loops over the same range that pass rows to one another (loop fusion).

    for i in range(n):                      for i in range(n):
        z[i] = 0.0                              z[i] = 0.0
        for j in range(m):                      for j in range(m):
            z[i] += X[i, j] * w[j]                  z[i] += X[i, j] * w[j]
    for i in range(n):           becomes        r[i] = f(z[i])
        r[i] = f(z[i])                          for j in range(m):
    for i in range(n):                              w_bar[j] += r[i] * X[i, j]
        for j in range(m):
            w_bar[j] += r[i] * X[i, j]

A nest holds only ops that visit one index space; what it leaves in memory for the next is often
used by the same trip of the next one's outer loop. After fusion, X passes through memory once, and
an array that lives within one trip needs no axis for the trips (contract_arrays.py). The bodies are
fused in the same way.

Considered: forming groups of ops level by level before anything is emitted. Then everything that
emits loops (gathers, scatters and scans too) would have to emit halves of them. On the loop form,
fusion is one rule on one kind of op, and it fuses loops of the program as well as those that
lowering emitted.

Note [Legality of fusion]
Trip k of the second loop comes to run before trip k + 1 of the first. That is legal if each array
that one loop writes and the other touches is touched by both only at the index of the trip, `a[i,
...]`, or at one constant distance from it, or is only accumulated into by both; and if the second
loop reads no number that the first ends with. A loop that calls exp is not fused with the nest that
follows it: as an innermost loop it is vectorised, which is worth more than saving an array of
numbers for the nest. For the same reason it is not fused with a loop whose trips are sequential. A
strip-mined loop (distribute_gathers.py) may be fused with one that only scatters. Ops between the
two that depend on the first are moved behind; if the second depends on them as well, the loops are
not fused. Nothing moves before an op that may end the run.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...analysis.alias import Memory
from ...analysis.dependence import Trip, counts_from_zero
from ...ir.graph import Block, Function, Op, Value, free_values, op_free_values, walk
from ...ir.types import INT, Array, Scalar
from ...ops.arrays.index import getitem
from ...ops.core.control import for_record
from ...ops.core.identities import base_offset
from ...ops.program.effects import has_effects
from ..loopir.length_checks import CHECKS, compared
from ..loopir.ops import place_in_op, same_length_op
from ..loopir.vector_support import is_extreme, is_long
from .contract_arrays import (
    contract_arrays,
    hoist_checks,
    replace_uses,
    resolved,
    scalarise_arrays,
)
from .distribute_gathers import dependents, is_simple, plan_distribution

COUNTER = object()  # base of an index: the loop's counter
# How many earlier loops are tried with each loop, and how many ops back they are looked for: this
# keeps the pass linear.
FARTHEST, WINDOW = 12, 80


def fuse_loops(function: Function) -> Function:
    """Fuse the loops of `function`, a loop form, in place."""
    drop_unchanged(function.block)
    Fusion(function).block(function.block, Lengths())
    return function


def drop_unchanged(block: Block) -> None:
    """Drop carries of the loops of `block` that no trip changes."""
    new: dict[Value, Value] = {}
    for op in walk(block):
        if op.name != "for" or op.attrs["breaks"]:
            continue
        (body,) = op.blocks
        for k in reversed(range(len(op.outputs))):
            if body.yields[k] is body.params[1 + k]:
                new[body.params[1 + k]] = new[op.outputs[k]] = op.inputs[3 + k]
                del op.inputs[3 + k], op.outputs[k], body.params[1 + k], body.yields[k]
    replace_uses(block, new)


class Lengths:
    """Lengths that are checked to be equal, and the lengths that each check compares."""

    def __init__(self, outer: Lengths | None = None):
        self.parent: dict[Value, Value] = dict(outer.parent) if outer is not None else {}

    def note(self, ops: Iterable[Op]) -> None:
        """Record the checks among `ops`."""
        for op in ops:
            if op.record in CHECKS:
                first, *others = map(self.find, (*op.inputs, op.output))
                self.parent.update({x: first for x in others if x is not first})

    def find(self, n: Value) -> Value:
        while n in self.parent:
            n = self.parent[n]
        return n

    def equal(self, n: Value, m: Value) -> bool:
        n, m = self.find(n), self.find(m)
        return n is m or isinstance(n.constant, int) and n.constant == m.constant


class Fusion:
    """The fusion of the loops of one function."""

    keeps_rows = False  # of arrays that a trip uses a row of

    def __init__(self, function: Function):
        self.memory = Memory(function)
        self.facts: dict[Op, Facts] = {}

    def block(self, block: Block, lengths: Lengths) -> None:
        """Fuse the loops of `block`, and of the blocks inside it."""
        lengths = Lengths(lengths)
        lengths.note(block.ops)
        position = 0
        while position < len(block.ops):
            if block.ops[position].name == "for":
                position = self.join(block, position, lengths)
            position += 1
        for op in block.ops:
            if op.name == "for":
                self.share_reads(op)
        # After fusion, inner loops name the elements they use by their own index.
        contract_arrays(block, self.keeps_rows)
        scalarise_arrays(block)
        for op in list(block.ops):
            for inner in op.blocks:
                self.block(inner, lengths)
            if op.name == "for":
                place = block.ops.index(op)
                block.ops[place:place] = hoist_checks(op)

    def share_reads(self, loop: Op) -> None:
        """Share index reads and their checks among the bodies fused into `loop`."""
        (body,), found, new = loop.blocks, {}, {}
        changed: set | None = None
        for op in body.ops if any(op.record is place_in_op for op in body.ops) else ():
            if op.record is getitem and isinstance(op.output.type, Scalar):
                changed = Facts(loop, self.memory).destroyed if changed is None else changed
                if not changed.isdisjoint(sites(self.roots(op.inputs[:1]))):
                    continue
            elif op.record is not place_in_op and (not op.record.is_sum
                                                   or op.output.type.dtype != "int64"):
                continue
            key = (op.record, op.attrs.get("pattern"), *(resolved(x, new) for x in op.inputs))
            if found.setdefault(key, op.output) is not op.output:
                new[op.output] = found[key]
        if new:
            body.ops = [op for op in body.ops if not any(y in new for y in op.outputs)]
            replace_uses(body, new)

    def join(self, block: Block, position: int, lengths: Lengths) -> int:
        """Fuse the loop at `position` with earlier ones where legal; return its new position."""
        tried = 0
        for k in range(position - 1, max(position - WINDOW, 0) - 1, -1):
            first, second = block.ops[k], block.ops[position]
            if first.name != "for" or not have_same_trips(first, second, lengths):
                continue
            tried += 1
            if tried > FARTHEST:
                break
            later = self.dependents_of(first, block.ops[k + 1:position])
            if later is None or any(self.must_follow(second, op)
                                    for op in later) or not self.may_fuse(first, second, block):
                continue
            checks, loop = fuse_pair(first, second)
            lengths.note(checks)
            for y in loop.outputs:
                self.memory.roots.setdefault(y, self.memory.of(y))
            between = [op for op in block.ops[k + 1:position] if op not in later]
            behind = [op for op in block.ops[k + 1:position] if op in later]
            block.ops[k:position + 1] = [*between, *checks, loop, *behind]
            position = k + len(between) + len(checks)
        return position

    def dependents_of(self, first: Op, ops: list[Op]) -> set[Op] | None:
        """The `ops` that depend on `first`; None if one of them has effects or may end the run."""
        found: list[Op] = []
        for op in ops:
            if any(self.must_follow(op, other) for other in (first, *found)):
                if has_effects(op):
                    return None
                found.append(op)
        return set(found)

    def must_follow(self, op: Op, other: Op) -> bool:
        """Whether `op`, which stands after `other`, depends on it."""
        a, b = self.facts_of(other), self.facts_of(op)
        return not b.reads.isdisjoint(other.outputs) or not a.destroyed.isdisjoint(b.touched) \
            or not b.destroyed.isdisjoint(a.touched)

    def facts_of(self, op: Op) -> Facts:
        if op not in self.facts:
            self.facts[op] = Facts(op, self.memory)
        return self.facts[op]

    def may_fuse(self, first: Op, second: Op, block: Block) -> bool:
        """Whether fusion of both loops is legal and worthwhile. Note [Legality of fusion]"""
        a, b = self.facts_of(first), self.facts_of(second)
        handed = [y for y in first.outputs if y in b.reads]
        before = [x for x in second.inputs[3:] if isinstance(x.type, Array) and x in a.reads]
        if any(not isinstance(y.type, Array) for y in handed):
            return False
        if any(x in b.reads for x in first.inputs[3:] if isinstance(x.type, Array)):
            return False  # it reads the array as it was before the first loop
        if not (handed or before or any(isinstance(x.type, Array) for x in a.reads & b.reads)):
            return False
        if not (self.is_worthwhile(first, second, handed)
                and self.share_only(first, second, handed, before)):
            return False
        one, other = Trip(first.blocks[0]), Trip(second.blocks[0])
        if not all(one.becomes(one.body.params[1 + k], one.body.yields[k])
                   for k in map(first.outputs.index, handed)):
            return False  # it may alias an array that `share_only` does not check
        if not all(other.becomes(other.body.params[1 + k], other.body.yields[k])
                   for k, x in enumerate(second.inputs[3:]) if x in handed or x in before):
            return False
        return (all(self.may_hand_on(y, first, second, one, other, block) for y in handed)
                and all(may_read_before(x, second, one, other) for x in before))

    def is_worthwhile(self, first: Op, second: Op, handed: list[Value]) -> bool:
        """Whether the fused loop is quicker than both."""
        return keeps_vector_math(first, second, handed)

    def share_only(self, first: Op, second: Op, handed: list[Value], before: list[Value]) -> bool:
        """Whether memory that one loop overwrites and the other holds is that of these arrays, and
        is accessed under these names only.

        Nests that pass on an array's value from the previous trip are not fused: threads may share
        the one that does not.
        """
        a, b = self.facts_of(first), self.facts_of(second)
        memory = sites if has_loops(first) or has_loops(second) else set
        roots = memory(self.roots((*handed, *before)))
        if not (memory(a.overwritten) & memory(b.held) | memory(b.overwritten)
                & memory(a.held)) <= roots:
            return False
        known = {*handed, *before, *(first.inputs[3 + first.outputs.index(y)] for y in handed)}
        return all(x in known or not isinstance(x.type, Array)
                   or memory(self.roots([x])).isdisjoint(roots) for x in a.reads | b.reads)

    def may_hand_on(self, y: Value, first: Op, second: Op, one: Trip, other: Trip,
                    block: Block) -> bool:
        """Whether each trip of the second loop may take `y`, a result of the first, as the same
        trip of the first leaves it.
        """
        k = first.outputs.index(y)
        starts = [j for j, x in enumerate(second.inputs[3:]) if x is y]
        is_used = bool(starts) and (y in free_values(other.body)
                                    or self.used_elsewhere(y, second, block))
        if (len(starts) == 1 and not is_used and one.only_adds(one.body.params[1 + k])
                and other.only_adds(other.body.params[1 + starts[0]])):
            if has_loops(first) or has_loops(second) or not (is_vector_loop(first)
                                                             and is_vector_loop(second)):
                return True
            ways = map(along_trips, places(one, one.body.params[1 + k])
                       | places(other, other.body.params[1 + starts[0]]))
            return len(set(ways)) <= 1
        return len(starts) <= 1 and not is_used and stay_in_step(
            (one, one.body.params[1 + k]), (other, y),
            *((other, other.body.params[1 + j]) for j in starts))

    def used_elsewhere(self, y: Value, reader: Op, block: Block) -> bool:
        """Whether an op other than `reader` uses `y`."""
        return y in block.yields or any(op is not reader and y in self.facts_of(op).reads
                                        for op in block.ops)

    def roots(self, values: Iterable[Value]) -> set:
        return {root for x in values for root in self.memory.of(x)}


def keeps_vector_math(first: Op, second: Op, handed: list[Value]) -> bool:
    """Whether a loop that LLVM makes vectors of stays one when these loops are fused."""
    nested = has_loops(first) or has_loops(second)
    if has_vector_math(first) and not has_loops(first) and has_loops(second):
        return False
    if (is_vector_loop(first) != is_vector_loop(second) and not nested
            and not (may_raise_anyway(first) and may_raise_anyway(second))
            and not only_scatters(first, second, handed)):
        return False
    return not any(has_vector_math(one) and not (has_loops(one) or is_sequential(one))
                   and is_sequential(other) for one, other in ((first, second), (second, first)))


def may_read_before(x: Value, second: Op, one: Trip, other: Trip) -> bool:
    """Whether the second loop may start from `x`, which the first reads, trip by trip."""
    j = second.inputs[3:].index(x)
    return (second.inputs.count(x) == 1 and x not in free_values(other.body)
            and stay_in_step((one, x), (other, other.body.params[1 + j])))


class Facts:
    """Values an op and its blocks read from outside, and the memory it touches and overwrites."""

    def __init__(self, op: Op, memory: Memory):
        inside = [op, *(inner for block in op.blocks for inner in walk(block))]
        self.reads: set[Value] = set(op_free_values(op))
        self.held = {root for x in self.reads for root in memory.of(x)}
        self.overwritten = {root for inner in inside for k in memory.written(inner)
                            for root in memory.of(inner.inputs[k])} & self.held
        self.touched, self.destroyed = sites(self.held), sites(self.overwritten)


def sites(roots: Iterable[tuple]) -> set:
    """The allocation sites of memory, whatever the trip."""
    return {site for site, _ in roots}


def have_same_trips(first: Op, second: Op, lengths: Lengths) -> bool:
    """Whether both loops have the same trip count and only compute numbers and arrays."""
    if not (lengths.equal(first.inputs[0], second.inputs[0])
            and lengths.equal(first.inputs[1], second.inputs[1])):
        return False
    for loop in (first, second):
        if loop.attrs["breaks"] or "plan" in loop.attrs or loop.inputs[2].constant != 1:
            return False
        if any(not isinstance(y.type, (Array, Scalar)) for y in loop.outputs):
            return False
    if not (counts_from_zero(first) and counts_from_zero(second)):
        return False  # an index from the end belongs to another trip, too
    # checked last because it visits everything inside
    return not (has_effects(first) or has_effects(second))


def has_loops(loop: Op) -> bool:
    return any(op.blocks and op.name != "if" for op in walk(loop.blocks[0]))


def has_vector_math(loop: Op) -> bool:
    """Whether the loop calls exp or the like, so is vectorised alone (vectorise_calls.py)."""
    return any(map(is_long, walk(loop.blocks[0])))


def is_sequential(loop: Op) -> bool:
    """Whether an innermost loop carries a number that is no sum, as np.cumprod does."""
    (body,) = loop.blocks
    trip = Trip(body)
    return not has_loops(loop) and any(isinstance(p.type, Scalar)
                                       and trip.role(p, y) is None and not is_extreme(trip, p, y)
                                       for p, y in zip(body.params[1:], body.yields))


def may_raise_anyway(loop: Op) -> bool:
    """Whether trips may raise, so run one at a time anyway: Note [Legality of fusion]."""
    return not has_vector_math(loop) and any(op.record is place_in_op
                                             for op in walk(loop.blocks[0]))


def only_scatters(first: Op, second: Op, handed: list[Value]) -> bool:
    """Whether `second` only scatters what `first`, a strip-mined loop, passes to it.

    The indices of the scatter must not come from `first`. The fused loop is then strip-mined as
    well, with the scatter as its third stage, and what is passed on is saved for one strip instead
    of for all trips.
    """
    (body,) = second.blocks
    dear = dependents(body.ops, handed)
    return (all(op.record in CHECKS or is_simple(op) for op in body.ops)
            and plan_distribution(first) is not None
            and not any(x in dear for op in body.ops if op.record.writes_elements
                        for x in op.inputs[2:]))


def is_vector_loop(loop: Op) -> bool:
    """Whether trips can be vectorised: each writes only at a fixed distance from its counter."""
    index = loop.blocks[0].params[0]
    return all(any(base_offset(x)[0] is index for x in op.inputs[2:])
               for op in walk(loop.blocks[0]) if op.record.writes_elements)


def stay_in_step(*arrays: tuple[Trip, Value]) -> bool:
    """Whether loops access this array, in step, at one place only.

    The loops count from zero; a place is `array[i, ...]`, `array[i + 1, ...]`, or `array[k, i]`.
    """
    distances = {trip.distance(op, k) for trip, x in arrays
                 for op, k in trip.touching(trip.versions(x))}
    if len(distances) <= 1 and all(d is not None and d >= 0 for d in distances):
        return True
    return (len(found := set().union(*(places(*each) for each in arrays))) == 1
            and any(base is COUNTER and d >= 0 for base, d in found.pop()))


def places(trip: Trip, array: Value) -> set[tuple]:
    """The indices at which a trip touches the array, as pairs of base and offset.

    A base is the loop's COUNTER or a value that no trip changes. Any other place is a unique one.
    """
    own = {*trip.body.params[1:], *(p for inner in trip.owner for p in inner.params)}

    def place(op: Op, k: int) -> tuple:
        if k != 0 or op.record.indices is None or op.attrs["pattern"] != ("i",) * array.type.rank:
            return ((op, 0),)
        found = [base_offset(x) for x in op.inputs[1 if op.name == "getitem" else 2:]]
        if any(isinstance(base, Value) and (isinstance(base.type, Array) or base in own
                                            or base.op in trip.home) for base, _ in found):
            return ((op, 0),)
        return tuple((COUNTER if base is trip.body.params[0] else base, offset)
                     for base, offset in found)

    return {place(op, k) for op, k in trip.touching(trip.versions(array))}


def along_trips(place: tuple) -> tuple:
    """The position along the axis that the loop traverses, if the other axes are known.

    Trips that run several at a time may add to a[i, 0] and a[i, 1], not to a[i] and a[i + 1], nor
    to a[k, i] and a[k + 1, i].
    """
    found = tuple((axis, offset) for axis, (base, offset) in enumerate(place) if base is COUNTER)
    return found if found and all(base is COUNTER or base is None for base, _ in place) else place


def fuse_pair(first: Op, second: Op) -> tuple[list[Op], Op]:
    """Fuse two loops into one; return it, and the check of the trip count that it needs."""
    (one,), (other,) = first.blocks, second.blocks
    lo, hi, step = first.inputs[:3]
    checks: list[Op] = []
    if second.inputs[1] is not hi:
        hi, checks = checked_length(hi, second.inputs[1], second)
    new = {other.params[0]: one.params[0], **dict(zip(first.outputs, one.yields))}
    inits, params, yields, outputs = (first.inputs[3:], one.params[1:], list(one.yields),
                                      list(first.outputs))
    for k, (init, param, y, output) in enumerate(zip(second.inputs[3:], other.params[1:],
                                                     other.yields, second.outputs)):
        if init in first.outputs:
            j = first.outputs.index(init)
            new[param] = one.yields[j]
            yields[j], outputs[j] = y, output
        else:
            if isinstance(param.type, Array):
                replace_uses(one, {init: param})
                yields = [param if v is init else v for v in yields]
            inits, params, yields, outputs = ([*inits, init], [*params, param], [*yields, y],
                                              [*outputs, output])
    replace_uses(other, new)
    yields = [resolved(v, new) for v in yields]
    body = Block([one.params[0], *params], [*one.ops, *other.ops], yields)
    loop = Op(for_record, [lo, hi, step, *inits], dict(first.attrs), [body], outputs, second.line)
    for y in outputs:
        y.op = loop
    return checks, loop


def checked_length(n: Value, m: Value, at: Op) -> tuple[Value, list[Op]]:
    """The common length of `n` and `m`, and the check of it unless one is the outcome of such."""
    if isinstance(n.constant, int) and n.constant == m.constant:
        return n, []
    if compared(n) <= compared(m):
        return m, []
    if compared(m) <= compared(n):
        return n, []
    check = Op(same_length_op, [n, m], {}, [], [], at.line)
    check.outputs.append(Value(INT, "", check))
    return check.output, [check]
