"""Find array elements read in loops that are never overwritten afterwards: the reverse sweep reads
them from the finished array.

    for i in range(n):                                for i in range(n):
        for j in range(i):                                for j in range(i):
            x_tape.append(x[j])                               b[i] -= L[i, j] * x[j]
            b[i] -= L[i, j] * x[j]         becomes        x[i] = b[i] / L[i, i]
        x[i] = b[i] / L[i, i]                         ...
    ...                                                   for j in range(i - 1, -1, -1):
        for j in range(i - 1, -1, -1):                        L_bar[i, j] -= b_bar[i] * x[j]
            L_bar[i, j] -= b_bar[i] * x_tape.pop()

A table that is filled (`d[i, j] = ... d[i - 1, j] ...`), a triangular system, a factorisation in
place: what is read has come to stay.  So it is in the finished array, and needs no tape.
Note [Written no more]

An element that is read, or has been written, is kept if no write that comes later is to the same
one.  All writes to the array in the outermost loop are known, each at one element, or row, of which
the indices are sums of counters, numbers and what no trip changes.  A write is later than a read in
a later trip of a loop around both, or further on in the text in the same trip of all of them.  Of
each case one axis is to be found in which the indices differ: the least of their difference is that
of the counters, which are between the ends of their loops, where a later trip's is further on than
that of the read.  Counters are replaced by these bounds from the innermost out, since inner loops'
ends depend on outer counters.  What `if i != j` says is used, too: an index at most as large as one
that it does not equal is less.  Indices must be proved not to be negative, since those count from
the end.

Considered: to compare offsets of the same counters alone, which does for tables, but not where a
loop inside reads what earlier trips of the loops around have made.  To ask an integer solver: what
loops that people write need is found by substitution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..ir.graph import MISSING, Block, Function, Op, Value, blocks_of, defined_values, walk
from ..ir.types import Array, Scalar
from .affine import lower_bound

MOST = 4_000  # the most pairs of an access and a write to examine in one loop


@dataclass(frozen=True)
class FinalElement:
    """The location of a value after the loops: an element (or a row) of a finished array."""

    array: Value
    indices: tuple[Value, ...]


def final_elements(function: Function) -> dict[Value, FinalElement]:
    """Return the values inside the loops of `function` that can be read from an array after them.
    """
    counters = {op.blocks[0].params[0]: op for op in walk(function.block) if op.name == "for"}
    found: dict[Value, FinalElement] = {}
    for op in function.block.ops:
        if op.name == "for":
            for k, out in enumerate(op.outputs):
                if isinstance(out.type, Array):
                    found.update(_final_in(op, k, counters))
    return found


def _final_in(outer: Op, k: int, counters: dict[Value, Op]) -> dict[Value, FinalElement]:
    """Return the values that can be read from the carry `k` of an outermost loop."""
    uses, later = Uses.of(outer, k), LaterWrites(outer, counters)
    if (uses is None or not uses.writes or (len(uses.reads) + len(uses.writes)) * len(uses.writes)
            > MOST or not all(map(later.is_natural, uses.writes))):
        return {}
    array, found = outer.outputs[k], {}

    def is_kept(access: Access) -> bool:
        return not any(later.meets(access, write) for write in uses.writes)

    for write in uses.writes:
        v, block = write.op.inputs[1], write.steps[-1].block
        if (write.op.name == "setitem" and (v in block.params or v.op in block.ops)
                and _fills(v, array.type, len(write.indices)) and is_kept(write)):
            found[v] = FinalElement(array, tuple(write.indices))
    for read in uses.reads:
        if later.is_natural(read) and is_kept(read):
            found[read.op.output] = FinalElement(array, tuple(read.indices))
    return found


def _fills(v: Value, array: Array, count: int) -> bool:
    """Test whether writing `v` at `count` indices stores exactly `v`: no cast, no broadcast."""
    dims = v.type.dims if isinstance(v.type, Array) else ()
    return (isinstance(v.type, (Scalar, Array)) and v.type.dtype == array.dtype
            and dims == array.dims[count:] and v.constant is MISSING)


# ----------------------------------------------------------------------------------------- accesses


@dataclass(frozen=True)
class Step:
    """One step on the path to an access: the op that is or contains it, and its position."""

    op: Op
    block: Block
    place: int


@dataclass(frozen=True)
class Access:
    """An op that reads or writes one element, or row, of the array, and the path to it from the
    outermost loop's body.
    """

    op: Op
    indices: Sequence[Value]
    steps: tuple[Step, ...]


@dataclass
class Uses:
    """The accesses of a loop body to one of its carries."""

    reads: list[Access] = field(default_factory=list)  # versions of the array at that point
    writes: list[Access] = field(default_factory=list)
    versions: set[Value] = field(default_factory=set)

    @classmethod
    def of(cls, outer: Op, k: int) -> Uses | None:
        """Collect the accesses to the carry `k` of `outer`; None if not all of them are known."""
        uses, (body,) = cls(), outer.blocks
        end = uses.block(body, body.params[1 + k], ())
        return uses if end is not None and isinstance(outer.inputs[2].constant,
                                                      int) and end is _yielded(outer, k) else None

    def block(self, block: Block, now: Value, steps: tuple[Step, ...]) -> Value | None:
        """Record the accesses of `block` to the array, whose version at its start is `now`; return
        the version at its end, None if it is not known.
        """
        self.versions.add(now)
        for place, op in enumerate(block.ops):
            after = self.next(op, now, (*steps, Step(op, block, place)))
            if after is None:
                return None
            self.versions.add(after)
            now = after
        return now

    def next(self, op: Op, now: Value, steps: tuple[Step, ...]) -> Value | None:
        """Return the version of the array after `op`."""
        mine = [n for n, x in enumerate(op.inputs) if x in self.versions]
        match op.name:
            case "for":
                return self.loop(op, mine, now, steps)
            case "if":
                return None if mine else self.branch(op, now, steps)
            case "while":
                return None if mine or any(self.block(block, now, steps) is not now
                                           for block in op.blocks) else now
            case _ if mine and op.record.writes_elements:
                if mine != [0] or op.inputs[0] is not now or not _is_at_one_place(op):
                    return None
                self.writes.append(Access(op, op.inputs[2:], steps))
                return op.output
            case "getitem" if mine:
                if mine == [0] and op.inputs[0] is now and _is_at_one_place(op):
                    self.reads.append(Access(op, op.inputs[1:], steps))
                return now if mine == [0] else None
            case _ if mine and all(n in op.record.shapes for n in mine):
                return now
        return None if mine or op.blocks and not all(self.block(block, now, steps) is now
                                                     for block in op.blocks) else now

    def loop(self, op: Op, mine: list[int], now: Value, steps: tuple[Step, ...]) -> Value | None:
        (body,) = op.blocks
        if not mine:
            return now if self.block(body, now, steps) is now else None
        if (len(mine) > 1 or mine[0] < 3 or op.inputs[mine[0]] is not now
                or not isinstance(op.inputs[2].constant, int)):
            return None
        k = mine[0] - 3
        return (op.outputs[k] if self.block(body, body.params[1 + k], steps) is _yielded(op, k)
                else None)

    def branch(self, op: Op, now: Value, steps: tuple[Step, ...]) -> Value | None:
        ends = [self.block(block, now, steps) for block in op.blocks]
        if None in ends:
            return None
        handed = [k for k in range(len(op.outputs))
                  if any(block.yields[k] in self.versions for block in op.blocks)]
        if not handed:
            return now if all(end is now for end in ends) else None
        whole = all(block.yields[handed[0]] is end for block, end in zip(op.blocks, ends))
        return op.outputs[handed[0]] if len(handed) == 1 and whole else None


def _yielded(loop: Op, k: int) -> Value:
    return loop.blocks[0].yields[k + (1 if loop.attrs["breaks"] else 0)]


def _is_at_one_place(op: Op) -> bool:
    """Test whether `op` reads or writes at a single index in each axis that it names."""
    indices = op.inputs[1:] if op.name == "getitem" else op.inputs[2:]
    return set(op.attrs["pattern"]) == {"i"} and all(isinstance(i.type, Scalar)
                                                     and i.type.dtype != "bool" for i in indices)


# -------------------------------------------------------------------------------- index comparisons

Counted = tuple[Value, bool]  # a value, and whether it is that at the time of the later write
SAME = -1  # the trip of all loops around both


@dataclass
class Affine:
    """An affine form: a constant plus multiples of values."""

    number: int
    terms: dict[Counted, int]

    def plus(self, other: Affine, times: int = 1) -> Affine:
        terms = dict(self.terms)
        for x, n in other.terms.items():
            terms[x] = terms.get(x, 0) + n * times
        return Affine(self.number + other.number * times, {x: n for x, n in terms.items() if n})


class LaterWrites:
    """The test whether a later write, in the loop `outer`, may overwrite the element of an access.
    """

    def __init__(self, outer: Op, counters: dict[Value, Op]):
        self.outer, self.counters = outer, counters
        # of loop-invariant arrays: one number, though queried in several places
        self.lengths: dict[tuple, Value] = {}
        self.inside = {v for body in outer.blocks for block in blocks_of(body)
                       for v in defined_values(block)}

    def meets(self, access: Access, write: Access) -> bool:
        """Test whether `write` may come later than `access`, and be to the same element."""
        shared, n = [self.outer], 0
        while n < min(len(access.steps), len(write.steps)) and access.steps[n] == write.steps[n]:
            shared += [access.steps[n].op] if access.steps[n].op.name == "for" else []
            n += 1
        if not all(self.differ(access, write, shared, k) for k in range(len(shared))):
            return True
        if n == len(access.steps) or access.steps[n].block is not write.steps[n].block:
            return False  # the same op, or in different arms of a branch
        return (access.steps[n].place < write.steps[n].place
                and not self.differ(access, write, shared, SAME))

    def differ(self, access: Access, write: Access, shared: list[Op], trip: int) -> bool:
        """Prove that the indices differ, for `write` in a later trip of the loop that is
        `shared[trip]`, and the same trips of those around.
        """
        changed = shared[trip:] if trip != SAME else []
        own = [step.op for step in write.steps if step.op.name == "for" and step.op not in shared]
        moved = {loop.blocks[0].params[0] for loop in (*changed, *own)}
        order = [*(Trip(loop, True, changed[:1] == [loop]) for loop in reversed((*changed, *own))),
                 *self.trips_around(access)]
        for i, j in zip(access.indices, write.indices):
            a, b = self.affine(i), self.affine(j, moved)
            if a is None or b is None:
                continue
            for difference in (a.plus(b, -1), b.plus(a, -1)):
                least = self.least(difference, order, moved)
                if (least is not None
                        and (least > 0 or least == 0
                             and (is_known_nonzero(difference, access, self.affine)
                                  or is_known_nonzero(difference, write,
                                                      lambda x: self.affine(x, moved))))):
                    return True
        return False

    def affine(self, x: Value, moved: set[Value] = frozenset()) -> Affine | None:
        """Return the affine form of `x`; counters of loops that have `moved` on are shifted."""
        if type(x.constant) is int:
            return Affine(x.constant, {})
        if x.op is not None and x.op.name == "length" and x.op.inputs[0] not in self.inside:
            x = self.lengths.setdefault((x.op.inputs[0], x.op.attrs["axis"]), x)
            return Affine(0, {(x, False): 1})
        if (x.op is not None and (x.op.record.is_sum or x.op.name == "multiply")
                and isinstance(x.type, Scalar) and x.type.dtype == "int64"):
            a, b = (self.affine(y, moved) for y in x.op.inputs)
            if x.op.name != "multiply" and a is not None and b is not None:
                return a.plus(b, x.op.record.signs[1])
            if a is not None and b is not None and not (a.terms and b.terms):
                return (Affine(0, {}).plus(a, b.number) if not b.terms
                        else Affine(0, {}).plus(b, a.number))
        return (Affine(0, {(x, x in moved): 1}) if x in self.counters or x not in self.inside
                else None)

    def trips_around(self, access: Access) -> list[Trip]:
        """Return the loops around `access`, from the innermost out."""
        return [Trip(loop, False)
                for loop in reversed((self.outer,
                                      *(step.op for step in access.steps
                                        if step.op.name == "for")))]

    def is_natural(self, access: Access) -> bool:
        """Prove that the indices of `access` are not negative."""
        trips = self.trips_around(access)
        return all((low := lower_bound(i, self.counters)) is not None and low >= 0
                   or (x := self.affine(i)) is not None
                   and (low := self.least(x, trips)) is not None and low >= 0
                   for i in access.indices)

    def least(self, x: Affine, trips: Sequence[Trip],
              moved: set[Value] = frozenset()) -> int | None:
        """Return a lower bound of `x`, None where there is none: counters are replaced by bounds
        from the innermost out.
        """
        for n, trip in enumerate(trips):
            times = x.terms.get(trip.counter, 0)
            if times:
                rest, found = x.plus(Affine(0, {trip.counter: 1}), -times), []
                bounds = [self.bound(trip, times > 0, moved),
                          *(self.implied_bound(inner, trip.counter, moved) for inner in trips[:n]
                            if times > 0 and inner.is_moved == trip.is_moved)]
                for bound in bounds:
                    if (bound is not None
                            and (least := self.least(rest.plus(bound, times), trips[n + 1:], moved))
                            is not None):
                        found.append(least)
                return max(found, default=None)
        number = x.number
        for (v, _), times in x.terms.items():
            low = lower_bound(v, self.counters) if times > 0 and v not in self.counters else None
            if low is None:
                return None
            number += low * times
        return number

    def ends(self, trip: Trip, moved: set[Value]) -> tuple[Affine | None, Affine | None]:
        """Return bounds of the counter in any trip of the loop."""
        lo, hi, step = trip.loop.inputs[:3]
        if not isinstance(step.constant, int) or step.constant == 0:
            return None, None
        first, end = (self.affine(x, moved if trip.is_moved else frozenset()) for x in (lo, hi))
        last = None if end is None else end.plus(Affine(-1 if step.constant > 0 else 1, {}))
        return (first, last) if step.constant > 0 else (last, first)

    def bound(self, trip: Trip, below: bool, moved: set[Value]) -> Affine | None:
        """Return a lower or upper bound of the counter in `trip`."""
        step = trip.loop.inputs[2].constant
        if trip.is_further and isinstance(step, int) and step != 0 and below == (step > 0):
            return Affine(step, {(trip.counter[0], False): 1})
        return self.ends(trip, moved)[0 if below else 1]

    def implied_bound(self, inner: Trip, counter: Counted, moved: set[Value]) -> Affine | None:
        """Return a lower bound of `counter` implied by an inner loop that counts up to it and makes
        a trip.
        """
        low, high = self.ends(inner, moved)
        if low is None or high is None or high.terms.get(counter) != 1 or counter in low.terms:
            return None
        return low.plus(high.plus(Affine(0, {counter: 1}), -1), -1)


@dataclass(frozen=True)
class Trip:
    """A trip of one loop: that of the access, or that of the later write, which may be further on
    in this loop.
    """

    loop: Op
    is_moved: bool
    is_further: bool = False

    @property
    def counter(self) -> Counted:
        return self.loop.blocks[0].params[0], self.is_moved


def is_known_nonzero(difference: Affine, access: Access,
                     affine: Callable[[Value], Affine | None]) -> bool:
    """Test whether a branch around `access` implies that `difference` is not 0."""
    for outer, inner in zip(access.steps, access.steps[1:]):
        asked = outer.op.inputs[0].op if outer.op.name == "if" else None
        if (asked is not None and asked.record.is_equality
                and outer.op.blocks.index(inner.block) == (asked.name == "equal")):
            a, b = map(affine, asked.inputs)
            if (a is not None and b is not None
                    and any(difference.plus(a, n).plus(b, -n) == Affine(0, {}) for n in (1, -1))):
                return True
    return False
