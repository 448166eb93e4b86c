"""Generate type guards: Python expressions that test whether an argument is of the kind that the
code was generated for, without look-ups.

    type(u) is ndarray and u.dtype is float64 and u.ndim == 2 and 1 not in u.shape
    type(p) is dict and [*p] == keys and type(x1 := p["w"]) is float

The kind includes which extents are 1 (ir/types.py, Note [Which extents are 1]), and for some
programs which are short (ir/length_assumptions.py, Note [Long axes]); other lengths are no part of
it. For arrays passed to native code, Numba's dispatcher checks dtype and rank, in C, and the code
itself checks the extents, except that short axes are short: code for short axes handles long ones
correctly, but slowly.

Note [Many leaves]
In a container of many leaves all types are checked at once, and its members are passed on as they
are, which takes two thirds of the time of reading, checking and naming each of them:

    type(p) is dict and [*p] == keys and [*map(type, x := [*p.values()])] == types        native(*x)

The members are read once, before the check: a concurrent change of the container by another thread
is not passed on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType

import numpy as np

from ...ir.length_assumptions import SHORT
from ...ir.treedef import form_of, is_container, is_fixed

MOST_CONDITIONS = 20_000  # conditions in an expression that Python compiles quickly
ANYTHING = object()  # kinds without conditions
PLAIN = (float, int, bool, complex)
MANY = 24  # members of a container from which they are checked at once


class Names:
    """The names in a text and the objects that they refer to."""

    def __init__(self, taken=()):
        self.taken = set(taken)
        self.content: dict[str, object] = {}
        self.known: dict[int, str] = {}
        self.rest = self.new("rest")

    def new(self, stem: str) -> str:
        """An unused name."""
        name, k = stem, 0
        while name in self.taken:
            k += 1
            name = f"{stem}{k}"
        self.taken.add(name)
        return name

    def given(self, content, stem: str) -> str:
        """The name of an object that the text uses."""
        if id(content) not in self.known:
            name = self.known[id(content)] = self.new(stem)
            self.content[name] = content  # which keeps it, and its id
        return self.known[id(content)]


class Kinds:
    """Conditions on (nested) arguments, and the names of their leaves, which the conditions bind on
    the way.

    Without `shapes`, dtypes, ranks and extents of arrays are checked elsewhere.  With `lengths`,
    short axes are distinguished.
    """

    def __init__(self, names: Names, shapes: bool = True, lengths: bool = False):
        self.names, self.shapes, self.lengths = names, shapes, lengths
        self.conditions: list[str] = []
        self.leaves: list[str] = []
        self.rows: dict[str, int] = {}  # the names of lists of leaves, and their lengths
        self.are_numbers = True  # all leaves are Python numbers

    def describe(self, x, place: str, read: str | None = None) -> bool:
        """Add the conditions under which the object at `place` is of the kind of `x`; False for
        kinds that need a slower check.

        `read` is the expression that reads it and binds it to `place`, if that is still to be done.
        """
        if len(self.conditions) > MOST_CONDITIONS:
            return False
        kind, read = type(x), read or place
        self.leaves.append(place)
        if kind in PLAIN:
            self.of_type(kind, read)
            return True
        are_numbers, self.are_numbers = self.are_numbers, False
        if kind is np.ndarray and x.ndim and x.dtype.kind in "biufc":
            self.of_type(kind, read)
            if self.shapes:
                self.conditions.append(
                    f"{place}.dtype is {self.names.given(x.dtype, 'dtype')}"
                    f" and {place}.ndim == {x.ndim}")
                ones = [n == 1 for n in x.shape]
                if any(ones):
                    self.conditions += [f"{place}.shape[{axis}] {'==' if one else '!='} 1"
                                        for axis, one in enumerate(ones)]
                else:
                    self.conditions.append(f"1 not in {place}.shape")
                if self.lengths and SHORT.isdisjoint(x.shape):
                    self.conditions.append(
                        f"{self.names.given(SHORT, 'short')}.isdisjoint({place}.shape)")
            if self.lengths and not SHORT.isdisjoint(x.shape):
                short = self.names.given(SHORT, "short")
                self.conditions += [
                    f"{place}.shape[{axis}] {'in' if n in SHORT else 'not in'} {short}"
                    for axis, n in enumerate(x.shape)]
        elif isinstance(x, np.generic) and x.dtype.kind in "biufc" or kind in (
                np.random.Generator, np.random.RandomState):
            self.of_type(kind, read)
        else:
            self.leaves.pop()
            self.are_numbers = are_numbers
            return self.describe_structure(x, place, read)
        return True

    def describe_structure(self, x, place: str, read: str) -> bool:
        """Add the conditions for a container."""
        kind = type(x)
        if x is ANYTHING:
            return True
        if x is None:
            self.conditions.append(f"{read} is None")
        elif kind is str:
            self.of_type(kind, read)
            self.conditions.append(f"{place} == {self.names.given(x, 'c')}")
        elif kind in (FunctionType, BuiltinFunctionType, type, np.ufunc):
            self.conditions.append(f"{read} is {self.names.given(x, 'c')}")
        elif is_container(x):
            self.of_type(kind, read)
            return self.describe_members(x, place)
        else:
            return False
        return True

    def arguments(self) -> str:
        """Argument list of `leaves`; the lists among them that are `rows` (name and length) are
        unpacked with a star.
        """
        return arguments(self.leaves, self.rows)

    def is_asked_by_type(self, x) -> bool:
        """Whether the type of the leaf `x` is the only condition on it."""
        kind = type(x)
        if kind is np.ndarray:
            return not self.shapes and not self.lengths and x.ndim > 0 and x.dtype.kind in "biufc"
        return kind in PLAIN or isinstance(x, np.generic) and x.dtype.kind in "biufc"

    def describe_row(self, members: list, read: str) -> bool:
        """Add the conditions for all `members`, read by `read`, at once; False if that is not
        possible.  Note [Many leaves]
        """
        if len(members) < MANY or not all(map(self.is_asked_by_type, members)):
            return False
        place = self.names.new("x")
        kinds = self.names.given(list(map(type, members)), "types")
        self.conditions.append(
            f"[*{self.builtin(map)}({self.builtin(type)}, ({place} := {read}))] == {kinds}")
        self.leaves += [f"{place}[{k}]" for k in range(len(members))]
        self.rows[place] = len(members)
        self.are_numbers = self.are_numbers and all(type(m) in PLAIN for m in members)
        return True

    def describe_members(self, x, place: str) -> bool:
        """Add the conditions for the members of a container."""
        kind, form = type(x), form_of(x)
        if form is None or form.kind == "list":
            if self.describe_row(list(x), f"[*{place}]"):
                return True
            self.conditions.append(f"{self.builtin(len)}({place}) == {len(x)}")
            return all(self.member(m, f"{place}[{k}]") for k, m in enumerate(x))
        if form.kind == "dict":
            self.conditions.append(f"[*{place}] == {self.names.given(list(x), 'c')}")
            return (kind is not defaultdict
                    and (kind is dict
                         and self.describe_row(list(x.values()), f"[*{place}.values()]")
                         or all(self.member(m,
                                            f"{place}[{key!r}]" if type(key) in (str, int)
                                            else f"{place}[{self.names.given(key, 'c')}]")
                                for key, m in x.items())))
        if form.kind == "attributes":
            if (any(is_fixed(x, name) for name in form.keys)
                or not all(map(str.isidentifier, form.keys))):
                return False
            if hasattr(x, "__dict__"):
                self.conditions.append(
                    f"{place}.__dict__.keys()"
                    f" == {self.names.given(x.__dict__.keys() | set(), 'c')}")
        return all(self.member(getattr(x, name), f"{place}.{name}") for name in form.keys)

    def member(self, x, read: str) -> bool:
        """Add the conditions for the member that `read` reads."""
        place = self.names.new("x")
        return self.describe(x, place, f"({place} := {read})")

    def of_type(self, kind: type, read: str) -> None:
        stem = kind.__name__ if kind.__name__.isidentifier() else "kind"
        self.conditions.append(f"{self.builtin(type)}({read}) is {self.names.given(kind, stem)}")

    def builtin(self, function) -> str:
        return self.names.given(function, function.__name__)


def arguments(leaves: Sequence[str], rows: Mapping[str, int]) -> str:
    """`leaves` as they stand in a call, or in a tuple: the lists among them that are `rows`, name
    and length, with a star.
    """
    found, k = [], 0
    while k < len(leaves):
        row, _, rest = leaves[k].partition("[")
        is_whole = (rest == "0]" and row in rows
                    and leaves[k + rows[row] - 1:k + rows[row]] == [f"{row}[{rows[row] - 1}]"])
        found.append(f"*{row}" if is_whole else leaves[k])
        k += rows[row] if is_whole else 1
    return ", ".join(found)
