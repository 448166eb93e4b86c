"""Prove that loop counters index within bounds; insert checks before loops where no proof exists.

    for i in range(n):                     for i in range(stays_inside(n, n, len(x))):
        y[i] = x[i] + 1.0     becomes          y[i] = x[i] + 1.0

where nothing says that x has n elements. Lowering takes the trip count of a nest from one operand
and reads the others at the same index; later passes move reads from loop to loop, and drop loops
together with the checks in their bounds. Each may rely on equal lengths that only a run knows, so
the loops are checked last, in the form that is compiled: the largest value of every affine index is
compared with the length of the axis (bounds-check elimination and hoisting). What cannot be proved
is checked once, before the outermost loop where both are known; where the check fails, native code
raises and the interpreted form answers (runtime/call/native_function.py).

A proof uses the bounds of the enclosing loops, the lengths that arrays were allocated with, the
checks before it, and the requirements on the arguments of a call (analysis/index_ranges.py). A
check that a proof needs, but whose outcome is neither a bound nor a length that the access depends
on, is pinned to its place: the printer might write it behind the loop, or a later pass drop it with
another loop. Indices that are data are checked where they are read (back/arrays/index_checks.py,
back/lower/gather.py), and counters that are carried belong to an algorithm whose buffer is large
enough for all of them; both are left alone.

Considered: the types. An extent's symbol says that two lengths are equal if the program has not
raised, and a derivative may lack the op that would have raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...ir.builder import Builder
from ...ir.graph import MISSING, Block, Function, Op, Value
from ...ir.types import Array
from ...ops.arrays.index_pattern import expand, is_basic, paired
from ...ops.core.cast import int_
from ...ops.core.control import at_least_zero
from ...ops.core.elementwise import add, multiply, subtract
from ...ops.core.record import value
from ...ops.core.shape import length
from ..loopir.elements import stride
from ..loopir.ops import buffer, needs_length_op, stays_inside_op, supposed_alike_op
from .bound_proofs import FACTS, NAMES_OF_FACTS, Proof, carry, unique_ops
from .index_sums import Affine, Atom, alone, number, replaced

# the same checks, which no pass may move or drop
PINNED = {record: replace(record, pure=False, only_raises=True) for record in FACTS}


@dataclass(eq=False)
class Level:
    """An enclosing block: its owner, and the values defined in it so far."""

    owner: Op | None
    block: Block
    defined: set[Value]
    ops: list[Op] = field(default_factory=list)


class Gap(NamedTuple):
    """An access that is not proved to be in bounds."""

    op: Op
    axis: int
    is_checked: bool  # by an emitted check; else its index is data, or a carried counter


def check_loops(function: Function) -> Function:
    """Insert, in place, bounds checks before the loops of `function`, a loop form."""
    check_unproved(function)
    return function


def check_unproved(function: Function) -> list[Gap]:
    """Insert, in place, a bounds check for each access of `function` that is not proved, if its
    index is affine in a counter; return these accesses.

    What the function requires of its arguments is assumed.
    """
    bounds = Bounds(function)
    bounds.visit(function.block, None)
    return bounds.gaps


class Bounds:
    """A walk over a loop form that collects facts about its integers."""

    def __init__(self, function: Function):
        self.function = function
        self.levels: list[Level] = []
        self.gaps: list[Gap] = []
        self.loops: dict[Value, Op] = {}  # by counter
        self.atoms: dict[tuple, Atom] = {}
        # by name of a carried array: the loop, and the number of the carry
        self.carried: dict[Value, tuple[Op, int]] = {}
        self.known: dict[Value, Affine] = {}
        self.shapes: dict[Value, tuple[Affine, ...]] = {}
        self.facts_of: dict[Value, tuple[Op, ...]] = {}
        # those before the current op, in its block or in the enclosing ones
        self.checks: list[Op] = []
        self.asked: list[Affine] = []  # not negative: requirements on the arguments
        # lengths of arguments that effectful checks have compared
        self.alike: dict[Atom, Affine] = {}
        self.done: set[tuple] = set()
        self.varying: set[Value] = set()  # carried arrays whose length may change from trip to trip
        for op in function.block.ops:
            if op.record is needs_length_op:
                self.record_length(op.inputs[0], op.attrs["axis"], number(op.attrs["needed"]))
            elif op.record is supposed_alike_op:
                (x, y), (j, k) = op.inputs, op.attrs["axes"]
                self.record_length(y, k, self.lengths(x)[j])
        self.find_varying()
        for r in function.required:
            small, large = (self.of_argument(function, b) for b in (r.small, r.large))
            if small is not None and large is not None:
                self.asked.append(large.plus(small, -1))

    def of_argument(self, function: Function, bound) -> Affine | None:
        """A bound of analysis/index_ranges.py as a sum: a constant, an argument, or an extent."""
        if bound.symbol is None:
            return number(bound.offset)
        for k, p in enumerate(function.params):
            if bound.symbol == f"a{k}":
                return self.affine(p).plus(number(bound.offset))
            for axis, d in enumerate(p.type.dims if isinstance(p.type, Array) else ()):
                if getattr(d, "symbol", None) == bound.symbol and not d.offset:
                    return self.lengths(p)[axis].plus(number(bound.offset))
        return None

    # the walk

    def visit(self, block: Block, owner: Op | None) -> None:
        level = Level(owner, block, set(block.params))
        self.levels.append(level)
        count = len(self.checks)
        for op in block.ops:
            if op.name in NAMES_OF_FACTS:
                self.checks.append(op)
            if op.record.indices is not None:
                self.access(op)
            if op.name == "for":
                self.loops[op.blocks[0].params[0]] = op
            for inner in op.blocks:
                self.visit(inner, op)
            level.ops.append(op)
            level.defined.update(op.outputs)
        block.ops = level.ops
        del self.checks[count:]
        self.levels.pop()

    def record_length(self, array: Value, axis: int, n: Affine) -> None:
        """Record a length that an effectful check at the function's start establishes."""
        if array in self.function.params and self.own(array)[axis] != n:
            self.alike[self.axis(array, axis)] = n
            self.shapes.clear()
            self.known.clear()

    def access(self, op: Op) -> None:
        """Prove each index of `op`, one for each axis, in bounds, or check it."""
        array, index = op.inputs[0], op.inputs[op.record.indices:]
        if not isinstance(array.type, Array) or op.attrs["pattern"] != ("i",) * array.type.rank:
            return
        for axis, (i, n) in enumerate(zip(index, self.lengths(array))):
            if isinstance(i.type, Array):
                return
            found = self.affine(i)
            if not self.is_affine_in_counter(found):
                continue
            # not negative for an index that counts from the end
            from_end = n.plus(found)
            for goals in ((n.plus(found, -1).plus(number(-1)),), (found, from_end)):
                if not any(self.is_proved(goal, array) for goal in goals):
                    self.gaps.append(Gap(op, axis, self.emit(op, goals[-1])))

    def is_affine_in_counter(self, index: Affine) -> bool:
        """Whether an index depends on the counter of an enclosing loop."""
        return any(atom.value in self.loops if atom.kind == "value"
                   else any(map(self.is_affine_in_counter, atom.operands))
                   for atom, _ in index.terms)

    def is_proved(self, goal: Affine, array: Value) -> bool:
        """Whether goal >= 0 is proved; the checks that the proof uses are pinned."""
        if Proof(self, ()).search(goal) is not None:
            return True
        near = self.facts_for(array)
        if near and Proof(self, near).search(goal) is not None:
            return True
        others = [op for op in self.checks if op not in near]
        used = Proof(self, [*near, *others]).search(goal) if others else None
        self.pin(op for op in used or () if op not in near)
        return used is not None or Proof(self, near, for_long=True).search(goal) is not None

    # integers as sums

    def affine(self, x: Value) -> Affine:
        """The integer `x` as a sum of multiples of atoms."""
        if x not in self.known:
            self.known[x] = self.find_affine(x)
        return self.known[x]

    def find_affine(self, x: Value) -> Affine:
        if type(x.constant) is int or type(x.constant) is bool:
            return number(int(x.constant))
        op = x.op
        if op is None or op.blocks or op.record.writes is not None:
            return alone(self.atom("value", x))
        if op.record.signs:
            total = number(0)
            for sign, term in zip(op.record.signs, op.inputs):
                total = total.plus(self.affine(term), sign)
            return total
        if ((op.record.converts or op.record is int_)
                and "int" in (getattr(op.inputs[0].type, "dtype", None) or "")):
            return self.affine(op.inputs[0])
        match op.name:
            case "multiply":
                a, b = map(self.affine, op.inputs)
                for one, other in ((a, b), (b, a)):
                    if not one.terms:
                        return number(0).plus(other, one.number)
                return alone(self.atom("multiply", x, operands=(a, b) if a.rank() <= b.rank()
                                       else (b, a)))
            case "length":
                return self.lengths(op.inputs[0])[op.attrs["axis"]]
            case "on_tape":
                return self.affine(op.inputs[0])
        if op.record.returns is not None:
            return self.affine(op.inputs[op.record.returns])
        if op.record.pure and op.inputs and all(getattr(v.type, "dtype", None) in ("int64", "bool")
                                                and not isinstance(v.type, Array)
                                                for v in op.inputs) and not op.attrs:
            return alone(self.atom(op.name, x, operands=tuple(map(self.affine, op.inputs))))
        return alone(self.atom("value", x))

    def atom(self, kind: str, value: Value | None = None, axis: int = 0,
             operands: tuple[Affine, ...] = ()) -> Atom:
        """The unique atom of this kind for a value, axis or operands; `value` is an instance."""
        key = kind, value if kind in ("value", "axis") else None, axis, operands
        if key not in self.atoms:
            self.atoms[key] = Atom(len(self.atoms), kind, value, axis, operands)
        return self.atoms[key]

    def axis(self, array: Value, axis: int) -> Atom:
        """The atom for the length of an axis that is known from the array only."""
        return self.atom("axis", array, axis)

    def lengths(self, array: Value) -> tuple[Affine, ...]:
        """The lengths of an array, as written at its allocation."""
        if array not in self.shapes:
            # a carried array has its initial lengths, if the lengths after a trip follow from them
            self.shapes[array] = self.own(array)
            self.shapes[array] = self.find_lengths(array)
        return self.shapes[array]

    def own(self, array: Value) -> tuple[Affine, ...]:
        """The lengths of an array of which nothing is known."""
        axes = (self.axis(array, k) for k in range(array.type.rank))
        return tuple(number(d) if isinstance(d, int) else self.alike.get(axis) or alone(axis)
                     for axis, d in zip(axes, array.type.dims))

    def find_lengths(self, array: Value) -> tuple[Affine, ...]:
        if array in self.carried and array not in self.varying:
            return self.lengths(carry(*self.carried[array])[0])
        op = array.op
        if op is None:
            return self.own(array)
        if op.record is buffer:
            return tuple(map(self.affine, op.inputs))
        if op.record.same_shape is not None:
            like = op.inputs[op.record.same_shape]
            if isinstance(like.type, Array) and like.type.rank == array.type.rank:
                return self.lengths(like)
        match op.name:
            case "if":
                k = op.outputs.index(array)
                found = {self.lengths(block.yields[k]) if isinstance(block.yields[k].type, Array)
                         else None for block in op.blocks}
                return found.pop() if len(found) == 1 and None not in found else self.own(array)
            case "matmul" if array.type.rank == 2 and all(x.type.rank == 2 for x in op.inputs):
                return self.lengths(op.inputs[0])[0], self.lengths(op.inputs[1])[1]
            case "matmul" if array.type.rank == 1 and sum(x.type.rank for x in op.inputs) == 3:
                matrix = op.inputs[0] if op.inputs[0].type.rank == 2 else op.inputs[1]
                return (self.lengths(matrix)[0 if matrix is op.inputs[0] else 1],)
            case "reshape":
                return tuple(self.affine(n) if n.constant is MISSING or n.constant >= 0 else own
                             for n, own in zip(op.inputs[1:], self.own(array)))
            case "solve" if op.inputs[0].type.rank == 2:
                return self.lengths(op.inputs[1])
            case "transpose" if op.attrs["axes"] is None:
                return self.lengths(op.inputs[0])[::-1]
            case "transpose":
                own = self.lengths(op.inputs[0])
                return tuple(own[k] for k in op.attrs["axes"])
            case "getitem" if is_basic(op.attrs["pattern"], op.inputs[1:]):
                return self.lengths_of_view(op)
        return self.own(array)

    def lengths_of_view(self, op: Op) -> tuple[Affine, ...]:
        """The lengths of `x[i, a:b, None]`, as lowering spells them."""
        found, whole = [], op.inputs[0]
        axis = 0
        with Builder(Block()):
            for p, operand in paired(expand(op.attrs["pattern"], whole.type.rank), op.inputs[1:]):
                if p is None:
                    found.append(number(1))
                    continue
                if p == "...":
                    found.append(self.lengths(whole)[axis])
                elif p != "i":
                    sliced = stride(length(whole, axis=axis), *operand)
                    found.append(self.own(op.output)[len(found)] if sliced is None
                                 else self.affine(sliced.length))
                axis += 1
        return tuple(found)

    def find_varying(self) -> None:
        """Find carried arrays whose lengths may change; all others keep their initial lengths.

        A fixed point: assume first that none changes, until no trip contradicts that.
        """
        before: dict[Op, tuple[Op, ...]] = {}

        def note(block: Block, checks: tuple[Op, ...]) -> None:
            for op in block.ops:
                if op.name in NAMES_OF_FACTS:
                    checks = *checks, op
                if op.name in ("for", "while"):
                    before[op] = checks
                    for k in range(len(op.outputs)):
                        start, names, end = carry(op, k)
                        # else it is unbound on some path
                        if all(isinstance(x.type, Array) for x in (start, *names, end)):
                            self.carried.update((x, (op, k)) for x in names)
                for inner in op.blocks:
                    note(inner, checks)

        note(self.function.block, ())
        found = True
        while found:
            found = set()
            for op, k in dict.fromkeys(self.carried.values()):
                start, names, end = carry(op, k)
                if (names[0] not in self.varying
                        and not (isinstance(end.type, Array)
                                 and all(self.are_equal(n, m, before[op], self.facts_of_array(end))
                                         for n, m in zip(self.lengths(start), self.lengths(end))))):
                    found.update(names)
            self.varying |= found
            self.shapes.clear()
            self.known.clear()

    def are_equal(self, n: Affine, m: Affine, checks: Sequence[Op], near: Sequence[Op]) -> bool:
        """Whether two lengths are equal by checks; those that are not near are pinned."""
        if n == m:
            return True
        used = [Proof(self, [*near, *checks]).search(goal)
                for goal in (n.plus(m, -1), m.plus(n, -1))] if checks or near else [None]
        if None in used:
            return False
        self.pin(op for op in used[0] | used[1] if op not in near)
        return True

    def pin(self, checks: Iterable[Op]) -> None:
        """Make checks immovable."""
        for op in checks:
            op.record = PINNED.get(op.record, op.record)

    # facts about integers

    def facts(self, x: Value) -> tuple[Op, ...]:
        """The checks that the number `x` is the outcome of."""
        if x not in self.facts_of:
            self.facts_of[x] = ()
            if (x.op is not None and not x.op.blocks and not isinstance(x.type, Array)
                    and x.op.record.indices is None):
                own = (x.op,) if x.op.name in NAMES_OF_FACTS else ()
                self.facts_of[x] = unique_ops(*(self.facts(v) for v in x.op.inputs
                                              if not isinstance(v.type, Array)), own)
        return self.facts_of[x]

    def facts_for(self, array: Value) -> tuple[Op, ...]:
        """The checks before the allocation of the array, and before the enclosing loops."""
        loops = [level.owner for level in self.levels if level.owner is not None
                 and level.owner.name == "for"]
        return unique_ops(self.facts_of_array(array),
                        *(self.facts(x) for loop in reversed(loops) for x in loop.inputs[:3]))

    def facts_of_array(self, array: Value) -> tuple[Op, ...]:
        """The checks before the allocation of the array."""
        while array.op is not None or array in self.carried:
            if array in self.carried:
                if array in self.varying:
                    break
                array = carry(*self.carried[array])[0]
            elif array.op.record is buffer:
                return unique_ops(*map(self.facts, array.op.inputs))
            elif array.op.record.same_shape is not None:
                array = array.op.inputs[array.op.record.same_shape]
            else:
                break
        return ()

    def ends(self, op: Op) -> list[tuple[Affine, Affine]]:
        """Lower and upper bounds of a loop's counter, if the loop makes trips."""
        lo, hi, step = op.inputs[:3]
        if type(step.constant) is not int or not step.constant:
            return []
        start, stop = self.affine(lo), self.affine(hi)
        stops = [stop]
        if len(stop.terms) == 1:  # in a loop that makes trips, max(n, 0) is n
            ((atom, k),) = stop.terms
            if (k == 1 and atom.record is at_least_zero and stop.number <= 0 and not start.terms
                    and start.number >= 0):
                stops.append(atom.operands[0].plus(number(stop.number)))
        if step.constant > 0:
            return [(start, stop.plus(number(-1))) for stop in stops]
        return [(stop.plus(number(1)), start) for stop in stops]

    # checks

    def emit(self, op: Op, goal: Affine) -> bool:
        """Emit a check of goal >= 0 before an enclosing loop; return whether that is possible."""
        place = self.place_of(goal)
        if place is None:
            return False
        at, owner, least = place
        key = owner, least
        if key not in self.done:
            self.done.add(key)
            level = self.levels[at]
            with Builder(Block(), op.line) as builder:
                large, small = (Affine(frozenset((atom, k * sign) for atom, k in least.terms
                                                 if k * sign > 0), max(least.number * sign, 0))
                                for sign in (1, -1))
                self.bound(owner, self.emit_sum(small, at), self.emit_sum(large, at))
            level.ops += builder.block.ops
            level.defined.update(y for each in builder.block.ops for y in each.outputs)
        return True

    def place_of(self, goal: Affine) -> tuple[int, Op, Affine] | None:
        """The level at which goal >= 0 can be checked, the loop behind it, and the smallest value
        of the goal over all trips.

        The goal must be linear in a counter and in values known before the loop. Of several
        counters only the innermost loop's is replaced by its bound: the bounds of all together may
        exceed every value that occurs.
        """
        least, place = None, None
        for at in reversed(range(1, len(self.levels))):
            owner = self.levels[at].owner
            if place is not None and (owner.name != "for" or owner.attrs["breaks"]):
                break  # control may not reach the loop
            if least is None:
                counter = owner.blocks[0].params[0] if owner.name == "for" else None
                k = goal.factor(self.atom("value", counter)) if counter is not None else 0
                if not k:
                    continue
                if not (ends := self.ends(owner)):
                    return None
                least = replaced(goal, self.atom("value", counter), ends[0][k < 0])
            if not self.is_known(least, at - 1):
                break
            place = at - 1, owner, least
        return place

    def bound(self, loop: Op, small: Value, large: Value) -> None:
        """Make the check part of the loop's bound; a loop known to make no trip is not checked."""
        lo, hi, step = loop.inputs[:3]
        if step.constant > 0 and Proof(self, ()).search(self.affine(lo)) is not None:
            loop.inputs[1] = stays_inside_op(hi, small, large)
        elif step.constant < 0 and hi.constant == -1:
            loop.inputs[0] = subtract(stays_inside_op(add(lo, value(1)), small, large), value(1))
        else:
            loop.inputs[1] = add(subtract(hi, value(1)), stays_inside_op(value(1), small, large))

    def is_known(self, x: Affine, at: int) -> bool:
        """Whether all atoms of the sum are defined at this level or an enclosing one."""
        return all(self.where(atom, at) is not None for atom, _ in x.terms)

    def where(self, atom: Atom, at: int) -> Value | None:
        """A value, defined at this level or an enclosing one, that gives the atom."""
        return atom.value if any(atom.value in level.defined
                                 for level in self.levels[:at + 1]) else None

    def emit_sum(self, x: Affine, at: int) -> Value:
        """Emit ops that compute the sum."""
        total = None
        for atom, k in sorted(x.terms, key=lambda term: (term[1] < 0, term[0].number)):
            found = self.where(atom, at)
            found = length(found, axis=atom.axis) if atom.kind == "axis" else found
            term = found if abs(k) == 1 else multiply(found, value(abs(k)))
            total = ((term if k > 0 else multiply(term, value(-1))) if total is None
                     else (add if k > 0 else subtract)(total, term))
        if total is None:
            return value(x.number)
        return (add(total, value(x.number)) if x.number > 0 else subtract(total, value(-x.number))
                if x.number else total)
