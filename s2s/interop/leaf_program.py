"""A program as a function of the leaves of its arguments, and its derivatives likewise.

    program.run(leaves)                    the leaves of the result
    program.pullback(wanted)               (*leaves, *y_bars) -> the x_bars of the wanted leaves
    program.tangent(wanted)                (*leaves, *x_dots of the wanted leaves) -> y_dots
    program.batched(axes)                  the same for many lanes, the first axis of all results

Each of these is such a program again, so that derivatives of any order need nothing new.  That is
what other systems ask of an operation (torch_function.py, jax_function.py).  Where the function is
compiled, all are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter

import numpy as np

from ..eval_shape import ShapeDtype, eval_shape
from ..ir.graph import MISSING
from ..ir.treedef import Form, form_of, is_container
from ..specialisation import members_of
from ..transformed import Transformed

MOST_SHAPES = 1024  # of arguments whose results' shapes a function keeps


@dataclass(frozen=True)
class Branch:
    """The structure of a container: its form, None for a plain tuple, and those of its members;
    None in the place of a leaf.
    """

    form: Form | None
    members: tuple[Branch | None, ...]


def flatten(x, leaves: list) -> Branch | None:
    """Append the leaves of `x` to `leaves`, in the order in which generated code has them; return
    its structure.
    """
    if not is_container(x):
        leaves.append(x)
        return None
    form, found = form_of(x), []
    for member, is_structure in members_of(x, form):
        if is_structure:  # one leaf, whatever it is
            leaves.append(member)
        found.append(None if is_structure else flatten(member, leaves))
    return Branch(form, tuple(found))


def unflatten(structure: Branch | None, leaves, plainly: bool = False):
    """Build the tree of this structure from the next of the iterator `leaves`; `plainly` of tuples
    alone.
    """
    if structure is None:
        return next(leaves)
    members = tuple([unflatten(member, leaves, plainly) for member in structure.members])
    return members if plainly or structure.form is None else structure.form.build(members)


class Family:
    """A function and the functions derived from it, each built once."""

    def __init__(self, t: Callable):
        self.transformed = t if isinstance(t, Transformed) else Transformed("value", t)
        self.named = [name for name, p in self.transformed.signature.parameters.items()
                      if p.kind is Parameter.KEYWORD_ONLY]
        self.derived: dict[tuple, Family] = {}
        self.shapes: dict[tuple, tuple] = {}  # see LeafProgram.shapes

    def derive(self, kind: str, **options) -> Family:
        """Return the family of this function, transformed; compiled if this one is."""
        key = kind, *options.values()
        if key not in self.derived:
            t = self.transformed
            is_native = t.kind == "jit"
            made = Transformed(kind, t.inner if is_native else t, options)
            self.derived[key] = Family(Transformed("jit", made, t.options) if is_native else made)
        return self.derived[key]

    def arguments(self, args: tuple, keywords: dict) -> tuple:
        """Return the arguments of a call in the order of the parameters."""
        if not keywords and len(args) == self.transformed.arity:
            return args
        return self.transformed.bound(args, keywords)

    def call(self, args: Sequence):
        """Run it on arguments that are all given by position."""
        if not self.named:
            return self.transformed(*args)
        own = len(args) - len(self.named)
        return self.transformed(*args[:own], **dict(zip(self.named, args[own:])))


@dataclass(eq=False)
class LeafProgram:
    """A function of some leaves of its arguments; the others are `fixed`.

    `fixed` has MISSING in the places of the leaves that are given, which are numbered among
    themselves everywhere here.
    """

    family: Family
    structure: Branch
    fixed: tuple

    @classmethod
    def of(cls, family: Family, args: tuple, arrays) -> tuple[LeafProgram, list]:
        """Return the program for arguments like these, and the leaves that are given to it: those
        of the class `arrays`, or of one of these classes.
        """
        leaves: list = []
        structure = flatten(args, leaves)
        fixed = tuple([MISSING if isinstance(x, arrays) else x for x in leaves])
        return cls(family, structure, fixed), [x for x in leaves if isinstance(x, arrays)]

    def args(self, given: Sequence) -> tuple:
        """Return the arguments of the function with these leaves in the places of those given."""
        rest = iter(given)
        return unflatten(self.structure,
                         iter([next(rest) if x is MISSING else x for x in self.fixed]))

    def run(self, given: Sequence) -> tuple[list, Branch | None]:
        """Return the leaves of the result for these, and its structure."""
        found: list = []
        structure = flatten(self.family.call(self.args(given)), found)
        return found, structure

    def shapes(self, given: Sequence[ShapeDtype]) -> tuple[list, Branch | None]:
        """Return the shape and dtype of each leaf of the result, and its structure."""
        known = self.family.shapes
        key = self.structure, (*given,), (*self.fixed,), (*map(type, self.fixed),)
        try:
            if key in known:
                return known[key]
        except TypeError:  # a leaf that is not hashable
            known, key = {}, None
        found: list = []
        structure = flatten(eval_shape(self.family.transformed, *self.args(given)), found)
        if len(known) >= MOST_SHAPES:
            known.clear()
        known[key] = found, structure
        return known[key]

    def derive(self, kind: str, wanted: Sequence[int], more: int) -> LeafProgram:
        places = [k for k, x in enumerate(self.fixed) if x is MISSING]
        family = self.family.derive(kind, count=len(self.structure.members),
                                    wanted=tuple([places[k] for k in wanted]))
        return LeafProgram(family, Branch(None, self.structure.members + (None,) * more),
                           self.fixed + (MISSING,) * more)

    def pullback(self, wanted: Sequence[int], results: int) -> LeafProgram:
        """Return the program of the cotangents of the leaves `wanted`, of a function of which that
        many `results` carry derivatives.
        """
        return self.derive("vjp of leaves", wanted, results)

    def tangent(self, wanted: Sequence[int]) -> LeafProgram:
        """Return the program of the tangents of the results, from those of the leaves `wanted`."""
        return self.derive("jvp of leaves", wanted, len(wanted))

    def batched(self, axes: Sequence[int | None]) -> LeafProgram:
        """Return the program for lanes along these axes of the leaves; results have them first."""
        rest = iter(axes)
        found = iter([next(rest) if x is MISSING else None for x in self.fixed])
        in_axes = unflatten(self.structure, found, plainly=True)
        family = self.family.derive("vmap", in_axes=in_axes, out_axes=0)
        return LeafProgram(family, self.structure, self.fixed)


def carries_derivative(dtype) -> bool:
    """Test whether numbers of a NumPy dtype carry derivatives."""
    return np.dtype(dtype).kind in "fc"
