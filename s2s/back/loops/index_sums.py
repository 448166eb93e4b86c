"""Sums of integers that a program computes indices and lengths of: linear combinations of atoms.

    i * n + j - 1     two atoms, i * n and j, each once, and the number -1

Two sums are equal if they are the same object in all parts; what an atom is, only a proof asks
(bound_proofs.py).
"""

from __future__ import annotations

from typing import NamedTuple

from ...ir.graph import Value
from ...ops.core.record import RECORDS, Record


class Affine(NamedTuple):
    """A linear combination of atoms, which are opaque integers, plus a constant."""

    terms: frozenset  # pairs (atom, factor)
    number: int

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for atom, k in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * k
        return Affine(frozenset((atom, k) for atom, k in terms.items() if k),
                      self.number + factor * other.number)

    def rank(self) -> list[tuple[int, int]]:
        """A sort key for sums."""
        return sorted((atom.number, k) for atom, k in self.terms)

    def factor(self, atom: Atom) -> int:
        """The coefficient of this atom."""
        return next((k for other, k in self.terms if other == atom), 0)


def alone(atom: Atom) -> Affine:
    """The sum that consists of this atom."""
    return Affine(frozenset([(atom, 1)]), 0)


def replaced(x: Affine, atom: Atom, by: Affine) -> Affine:
    """Substitute a sum for an atom."""
    k = x.factor(atom)
    return x.plus(alone(atom), -k).plus(by, k)


def number(n: int) -> Affine:
    """A constant sum."""
    return Affine(frozenset(), n)


class Atom:
    """An opaque integer: a value, the length of an axis, or an op applied to sums."""

    def __init__(self, number: int, kind: str, value: Value | None = None, axis: int = 0,
                 operands: tuple[Affine, ...] = ()):
        self.number, self.kind, self.value, self.axis, self.operands = (
            number, kind, value, axis, operands)

    @property
    def record(self) -> Record | None:
        """The op that is applied to the operands, if it is one."""
        return RECORDS.get(self.kind)

    def __repr__(self) -> str:
        return ({"value": f"{self.value}",
                 "axis": f"{self.value}.shape[{self.axis}]"}.get(self.kind)
                or f"{self.kind}{self.operands}")
