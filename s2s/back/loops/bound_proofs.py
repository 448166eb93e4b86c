"""Prove that sums of indices and lengths are not negative.

    len(x) - 1 - i >= 0     in a loop `for i in range(n)`, after a check that n is len(x)

An atom of a sum is replaced by a bound of it, as long as that may help: the ends of its loop, what
a remainder, a quotient or a smaller of two can be, an equal length.  The search deepens step by
step, and gives up after so many substitutions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.graph import Op, Value
from ...ops.core.control import at_least_zero
from ...ops.core.elementwise import equal, floor_divide, multiply, remainder, select
from ..loopir.ops import (
    broadcast_length_op,
    place_in_op,
    same_length_op,
    slice_bound_op,
    spread_length_op,
)
from .index_sums import Affine, Atom, alone, number, replaced

DEPTH, BUDGET = 8, 600  # limits of a proof: nested substitutions, and substitutions in all
FACTS = (same_length_op, spread_length_op, broadcast_length_op)  # checks of two lengths
NAMES_OF_FACTS = frozenset(record.name for record in FACTS)
NO_CHECKS: frozenset[Op] = frozenset()


def unique_ops(*groups: Sequence[Op]) -> tuple[Op, ...]:
    """The ops of all groups without duplicates, in order."""
    return tuple(dict.fromkeys(op for group in groups for op in group))


def carry(loop: Op, k: int) -> tuple[Value, list[Value], Value]:
    """Initial value, names and final value of the k-th carry of a loop."""
    count = len(loop.outputs)
    names = [loop.outputs[k],
             *(block.params[len(block.params) - count:][k] for block in loop.blocks)]
    end = loop.blocks[-1]
    return loop.inputs[len(loop.inputs) - count:][k], names, end.yields[len(end.yields) - count:][k]


class Proof:
    """A proof search for the sign of a sum, by bounds of its atoms and by checks.

    `bounds`, those of loop_bounds.py, know the sum that a value is, and the loop of a counter.
    """

    def __init__(self, bounds, checks: Sequence[Op], for_long: bool = False):
        self.bounds, self.budget, self.for_long = bounds, BUDGET, for_long
        self.proved: dict[Affine, frozenset[Op]] = {}
        self.failed: dict[Affine, int] = {}  # goals that failed, with the depth tried
        self.spread: list[tuple[Affine, Affine, Op]] = []  # n, m: m is n, or 1
        self.equal: list[tuple[Affine, Op]] = []  # sums that are zero
        self.pairs: list[tuple[Affine, Affine, Op]] = []  # the sides of these equations
        self.classes: dict[Affine, list[tuple[Affine, frozenset[Op]]]] = {}
        for op in checks:
            a, b = map(bounds.affine, op.inputs)
            if op.name == same_length_op.name:
                self.equal.append((a.plus(b, -1), op))
                self.pairs.append((a, b, op))
            elif op.name == spread_length_op.name:
                self.spread.append((a, b, op))
            else:
                result = bounds.affine(op.output)
                self.spread += [(result, a, op), (result, b, op)]

    def search(self, goal: Affine) -> frozenset[Op] | None:
        """The checks that prove goal >= 0, by iterative deepening; None if no proof is found."""
        for depth in range(2, DEPTH + 1, 2):
            self.budget = BUDGET
            if (found := self.holds(goal, depth)) is not None:
                return found
        return None

    def holds(self, goal: Affine, depth: int) -> frozenset[Op] | None:
        """The checks that prove goal >= 0 within `depth` steps; None if it is not proved."""
        if goal.number >= 0 and all(k > 0 and self.is_natural(atom) for atom, k in goal.terms):
            return NO_CHECKS
        if goal in self.proved:
            return self.proved[goal]
        self.budget -= 1
        if depth <= self.failed.get(goal, 0) or self.budget < 0:
            return None
        self.failed[goal] = depth  # no circular proofs
        found = self.by_cases(goal, depth)
        if found is None:
            for other, by in self.smaller(goal):
                if (rest := self.holds(other, depth - 1)) is not None:
                    found = rest | by
                    break
        if found is not None:
            self.proved[goal] = found
        return found

    def equal_to(self, x: Affine) -> list[tuple[Affine, frozenset[Op]]]:
        """Sums equal to `x`, and the checks that prove each, by transitivity."""
        if x not in self.classes:
            found = {x: NO_CHECKS}
            waiting = [x]
            for y in waiting:
                for a, b, op in self.pairs:
                    for this, other in ((a, b), (b, a)):
                        if this == y and other not in found:
                            found[other] = found[y] | {op}
                            waiting.append(other)
            self.classes[x] = [(y, by) for y, by in found.items() if y != x]
        return self.classes[x]

    def proves(self, goal: Affine, depth: int = DEPTH // 2) -> bool:
        """Whether goal >= 0 by bounds alone."""
        return Proof(self.bounds, ()).holds(goal, depth) is not None

    def is_natural(self, atom: Atom) -> bool:
        return atom.kind == "axis" or atom.record is not None and atom.record.natural

    def smaller(self, goal: Affine) -> Iterator[tuple[Affine, frozenset[Op]]]:
        """Sums that are at most `goal`, and the checks that prove it; any of them >= 0 suffices."""
        terms = sorted(goal.terms, key=lambda term: (term[0].kind != "value", -term[0].number))
        for atom, k in terms:
            for bound, by in self.uppers(atom) if k < 0 else self.lowers(atom):
                yield replaced(goal, atom, bound), by
            for other, by in self.alike(atom):
                if goal.factor(other) * k < 0:
                    yield replaced(goal, atom, alone(other)), by
            if k < 0 and atom.record is floor_divide and not atom.operands[1].terms:
                c = atom.operands[1].number
                if c > 0 and k % c == 0:
                    yield goal.plus(alone(atom), -k).plus(atom.operands[0], k // c), NO_CHECKS
        for known in self.bounds.asked:
            if any(goal.factor(atom) * k > 0 for atom, k in known.terms):
                yield goal.plus(known, -1), NO_CHECKS

    def by_cases(self, goal: Affine, depth: int) -> frozenset[Op] | None:
        """The checks that prove a sum with a minimum or maximum >= 0, by cases."""
        for atom, k in sorted(goal.terms, key=lambda term: term[0].number):
            if atom.record is not None and atom.record.extreme * k < 0:
                cases = atom.operands
            elif atom.record is at_least_zero and k < 0:
                cases = *atom.operands, number(0)
            else:
                continue
            found = [self.holds(replaced(goal, atom, x), depth - 1) for x in cases]
            if None not in found:
                return frozenset().union(*found)
        return None

    def uppers(self, atom: Atom) -> Iterator[tuple[Affine, frozenset[Op]]]:
        """Upper bounds of the atom, with the checks that prove them."""
        if atom.value in self.bounds.loops:
            for _, high in self.bounds.ends(self.bounds.loops[atom.value]):
                yield high, NO_CHECKS
                for end, by in self.equal_to(high.plus(number(1))):
                    yield end.plus(number(-1)), by
        yield from self.equal_to(alone(atom))
        record = atom.record
        if record is not None and record.extreme < 0:
            for x in atom.operands:
                yield x, NO_CHECKS
        elif record is slice_bound_op:
            k, n = atom.operands
            yield n, NO_CHECKS
            if self.proves(k):
                yield k, NO_CHECKS
        elif record in (place_in_op, remainder):
            yield atom.operands[1].plus(number(-1)), NO_CHECKS
        elif record is select:
            if atom.operands[1:] == (number(0), number(1)):
                yield number(1), NO_CHECKS
        elif record is multiply:
            yield from self.uppers_of_step(atom)
            yield from self.uppers_of_strip(atom)
        elif record is floor_divide:  # i // c is at most n - 1, where i is below n * c
            i, c = atom.operands
            for product, n in self.products(c):
                if self.proves(product.plus(i, -1).plus(number(-1))):
                    yield n.plus(number(-1)), NO_CHECKS

    def uppers_of_step(self, atom: Atom) -> Iterator[tuple[Affine, frozenset[Op]]]:
        """Upper bounds of `i * (0 if m == 1 else 1)`: m - 1, where m is n or 1, and i below n."""
        for i, step in (atom.operands, atom.operands[::-1]):
            m = spread_of(step)
            if m is None:
                continue
            yield i, NO_CHECKS
            for n, other, op in self.spread:
                if other == m and (by := Proof(self.bounds, [op for _, op in self.equal]).holds(
                        n.plus(i, -1).plus(number(-1)), DEPTH // 2)) is not None:
                    yield m.plus(number(-1)), by | {op}
                    for atom_of_m, k in m.terms:
                        # and not 0, as there are trips
                        if m == alone(atom_of_m) and atom_of_m.record is at_least_zero:
                            yield atom_of_m.operands[0].plus(number(-1)), by | {op}

    def uppers_of_strip(self, atom: Atom) -> Iterator[tuple[Affine, frozenset[Op]]]:
        """Upper bounds of `s * size`, the start of a strip: n - 1, where s counts strips of n."""
        for s, size in (atom.operands, atom.operands[::-1]):
            for counter, k in s.terms:
                if (k == 1 and s == alone(counter) and counter.kind == "value"
                        and counter.value in self.bounds.loops):
                    for high, _ in self.bounds.affine(
                            self.bounds.loops[counter.value].inputs[1]).terms:
                        if high.kind == "strips_of" and high.operands[1] == size:
                            yield high.operands[0].plus(number(-1)), NO_CHECKS

    def alike(self, atom: Atom) -> Iterator[tuple[Atom, frozenset[Op]]]:
        """Atoms equal to this one because checks prove their operands equal."""
        for other in list(self.bounds.atoms.values()) if atom.operands and self.equal else ():
            if other.kind == atom.kind and other is not atom:
                by = [self.same(n, m) for n, m in zip(atom.operands, other.operands)]
                if None not in by:
                    yield other, frozenset().union(*by)

    def same(self, n: Affine, m: Affine) -> frozenset[Op] | None:
        """A check that proves two integers equal, if at most one is needed."""
        if n == m:
            return NO_CHECKS
        return next((frozenset([op]) for zero, op in self.equal
                     if zero in (n.plus(m, -1), m.plus(n, -1))), None)

    def products(self, c: Affine) -> Iterator[tuple[Affine, Affine]]:
        """The products with `c` among the atoms, and their other factors."""
        for atom in list(self.bounds.atoms.values()):
            if atom.record is multiply and c in atom.operands:
                yield alone(atom), atom.operands[1] if atom.operands[0] == c else atom.operands[0]

    def lowers(self, atom: Atom) -> Iterator[tuple[Affine, frozenset[Op]]]:
        """Lower bounds of the atom, with the checks that prove them."""
        if atom.value in self.bounds.loops:
            loop = self.bounds.loops[atom.value]
            for low, _ in self.bounds.ends(loop):
                yield low, NO_CHECKS
            if "least" in loop.attrs:  # split_at_wraparound.py
                yield number(loop.attrs["least"]), NO_CHECKS
        if atom.kind == "axis" and self.for_long and atom.value in self.bounds.function.params:
            yield number(least(atom.value.type.dims[atom.axis])), NO_CHECKS
        if self.is_natural(atom):
            yield number(0), NO_CHECKS
        yield from self.equal_to(alone(atom))
        record = atom.record
        if record is None:
            return
        if record.extreme > 0 or record is at_least_zero:
            for x in atom.operands:
                yield x, NO_CHECKS
        elif record is slice_bound_op:
            k, n = atom.operands
            if self.proves(n.plus(k, -1)):
                yield k, NO_CHECKS
        elif record in (remainder, select):  # the one with Python's sign
            if all(self.proves(x, 3) for x in atom.operands[1:]):
                yield number(0), NO_CHECKS
        elif record.extreme < 0 or record in (multiply, floor_divide):
            if all(self.proves(x, 3) for x in atom.operands):
                yield number(0), NO_CHECKS


def least(dim) -> int:
    """The least length of an axis of an argument: Note [Long axes] in ir/length_assumptions.py."""
    return dim if isinstance(dim, int) else dim.least


def spread_of(step: Affine) -> Affine | None:
    """The m of `0 if m == 1 else 1`; None for any other sum."""
    if len(step.terms) != 1 or step.number:
        return None
    ((choice, k),) = step.terms
    if k != 1 or choice.record is not select or choice.operands[1:] != (number(0), number(1)):
        return None
    condition = choice.operands[0]
    if len(condition.terms) != 1 or condition.number:
        return None
    ((asked, k),) = condition.terms
    if k != 1 or asked.record is not equal or number(1) not in asked.operands:
        return None
    return next((x for x in asked.operands if x != number(1)), None)
