"""Carry, from trip to trip, which of a few arrays or objects a name is bound to.

    cur = p                              which_cur = 0
    for i in range(n):                   for i in range(n):
        cur[0] += x[i]                       if which_cur == 0: p[0] += x[i], else q[0] += x[i]
        cur = q if i % 2 == 0 else p         which_cur = 1 if i % 2 == 0 else 0

A member is an array, a view or an object that exists before the loop; a part of one, `state[i]`, or
an item of a list, whose index is carried as well; or an array that trips make, whose content is
carried.  Inside the loop, and after it, the name is bound to a cell that has a choice, by the
carried number: which cells share memory is known exactly, so nothing is refused, and what is
written through the name is written to the member.

    c = d = x * 1.0                      which_c = which_d = 0
    for i in range(n):                   for i in range(n):
        c = c * 0.5                          c, which_c = ... * 0.5, 1
        if i % 2: d = c                      which_d = 1 if i % 2 else ...
    d[1] += 1

Of the arrays that trips make, as many are in use at the end of a trip as names lead to them, so
each name has a place for one (a `MadeInTrips`).  The first name that leads to an array keeps it in
its place; for the others, that place is a member like any other array.  Which name that is may
change from trip to trip: where a name keeps an array that the one before it has left, the content
moves to its own place.

Considered: a place for each line that makes an array, with what it made last.  A name may keep the
array of an earlier trip while the line makes another, so there would have to be a second place, for
what is older, and of two older arrays nobody would know which is which.

Considered: to carry such numbers for all names that trips bind to other arrays.  Most of these are
never written into, and their content alone is carried, which is shorter and as right; so a name is
carried like this once a write has been refused for what it may share memory with (build, in
front/eval/build.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...ir.builder import current
from ...ir.graph import MISSING, OPERATORS, Value, walk
from ...ir.types import Array, List
from ...ops.arrays.index_pattern import paired
from ...ops.core.control import if_
from ...ops.core.record import value
from ..domain.frame import Frame
from ..domain.heap import Cell, Container, Heap, place_of_view
from ..domain.item_places import Place
from ..values.lists import MOST_CHOSEN
from ..values.subscript import part_of


@dataclass(frozen=True)
class Item:
    """A pattern that is no index of an array: a part of an item of a list."""

    path: tuple[int, ...]


@dataclass(eq=False)
class MadeInTrips:
    """Where one name keeps an array that trips make."""


@dataclass(frozen=True)
class Member:
    """One of the arrays or objects: `base`, or base[pattern][pattern]...
    """

    base: Cell | Container | MadeInTrips
    patterns: tuple = ()
    # the index operands of all patterns: constants, Values from before the loop, and None for those
    # that are carried
    operands: tuple[object, ...] = ()

    @property
    def carried(self) -> list[int]:
        """The positions of the operands that are carried."""
        return [k for k, x in enumerate(self.operands) if x is None]

    def is_like(self, other: Member) -> bool:
        """Test whether both are the same but for operands."""
        return self.base is other.base and self.patterns == other.patterns

    def joined(self, other: Member) -> Member:
        """Return the member that is either of two that are alike."""
        return replace(self, operands=tuple(a if type(a) is type(b) and a == b else None
                                            for a, b in zip(self.operands, other.operands)))

    def at(self, operands: Sequence[Value], inside: Collection[Value] = ()) -> Member:
        """Return the member with these operands, of which those computed `inside` are carried."""
        return replace(self, operands=tuple(x.constant if x.constant is not MISSING
                                            else None if x in inside else x for x in operands))

    def cell(self, heap: Heap, operands: Sequence[Value],
             made: Mapping[MadeInTrips, Cell] = MappingProxyType({})) -> Cell | Container:
        """Return the cell at these carried operands; `made` are the arrays that trips have made.
        """
        rest, cell = iter(operands), made.get(self.base, self.base)
        given = iter(next(rest) if x is None else value(x) for x in self.operands)
        for pattern in self.patterns:
            if isinstance(pattern, Item):
                place = Place(cell, next(given), False, pattern.path)
                cell = heap.in_place(place, place.read(heap.read(cell)))
            else:
                cell = part_of(cell, pattern, [next(given) for _ in range(_count(pattern))])
        return cell


@dataclass(frozen=True, eq=False)
class OneOf:
    """The binding on entry of a name that each trip binds to one of some members."""

    start: object  # what it is bound to: a cell, a placeholder, or UNBOUND
    members: tuple[Member, ...]
    place: MadeInTrips
    blank: object = None  # what stands for the array of trips on entry

    @property
    def keeps(self) -> bool:
        """Whether the name keeps an array that trips make."""
        return any(m.base is self.place for m in self.members)

    def leaves(self, name: str) -> Iterator[tuple]:
        """Yield what is carried, on entry, each with its name in generated code."""
        chosen, indices = 0, [[0] * len(m.carried) for m in self.members]
        if _is_bound(self.start):
            member, operands = _decomposed(self.start)
            chosen = next(k for k, m in enumerate(self.members) if m.is_like(member))
            indices[chosen] = [operands[k] for k in self.members[chosen].carried]
        if len(self.members) > 1:
            yield chosen, f"which_{name}" if name else ""
        for operands in indices:
            for x in operands:
                yield x, f"{name}_index" if name else ""
        if self.keeps:
            yield self.blank, name

    def taken(self, frame: Frame, rest: list[Value], origins: frozenset, carrier: tuple,
              made: dict[MadeInTrips, Cell]) -> Entered:
        """Return the state that the next parameters, or results of the loop, stand for; `made` are
        the arrays that the names before it keep, and then the one that this name keeps, too.
        """
        tag = rest.pop(0) if len(self.members) > 1 else value(0)
        indices = [[rest.pop(0) for _ in m.carried] for m in self.members]
        if self.keeps:
            kept = made[self.place] = frame.heap.new(rest.pop(0), origins)
            kept.carriers = frozenset((carrier,))
        cells = [m.cell(frame.heap, operands, made) for m, operands in zip(self.members, indices)]
        cell, conditions = cells[-1], []
        for k in range(len(cells) - 2, -1, -1):
            conditions.insert(0, OPERATORS["equal"](tag, value(k)))
            cell = frame.heap.chosen(conditions[0], cells[k], cell)
        return Entered(cell, tag, indices, made.get(self.place), conditions)

    def yielded(self, frame: Frame, ends: Ends) -> list[Value]:
        """Return the Values at the end of a trip that leaves the names bound as `ends` says."""
        end, entered = ends.of(self), ends.entered[self]
        state = entered.state(frame)
        if _is_bound(end) and not ends.is_as_entered(self):
            state = self._state(frame, end, ends, state, {})
        return state[0 if len(self.members) > 1 else 1:]

    def _state(self, frame: Frame, end: Cell, ends: Ends, before: list[Value],
               assumed: dict[Value, bool]) -> list[Value]:
        """Return the number of the member, the carried operands, and the content of the array that
        the name keeps, where it is bound to `end`; `before` is that of the trip's start, `assumed`
        are conditions that hold there or do not.
        """
        member, operands = _decomposed(end)
        if _position(self.members, member) is not None:
            return self._at(before, member, operands)
        if arms := _arms(frame.heap, end):
            return _either(member.base.choice[0], lambda holds: self._state(
                frame, arms[0 if holds else 1], ends, before,
                ends.assuming(assumed, member.base.choice[0], holds)), assumed)
        target, member, operands = ends.target(end)

        def kept(owners: Sequence[OneOf], assumed: dict) -> list[Value]:
            if not owners:
                state = self._at(before, replace(member, base=self.place), operands)
                return [*state[:-1], frame.heap.read(target)]
            leads = ends.leads(ends.of(owners[0]), target, assumed)
            return _by_condition(leads, lambda found, assumed: self._at(
                before, replace(member, base=owners[0].place), operands) if found
                else kept(owners[1:], assumed), assumed)

        return kept(ends.owners(self), assumed)

    def _at(self, before: list[Value], member: Member, operands: Sequence[Value]) -> list[Value]:
        """Return the state `before`, but for the number of the member, and its operands."""
        after, chosen = list(before), _position(self.members, member)
        after[0] = value(chosen)
        first = 1 + sum(len(m.carried) for m in self.members[:chosen])
        for k, position in enumerate(self.members[chosen].carried):
            after[first + k] = operands[position]
        return after


def _either(condition: Value, state: Callable, assumed: dict[Value, bool]) -> list[Value]:
    """Return state(True) where the condition holds, and state(False) elsewhere."""
    if condition in assumed:
        return state(assumed[condition])
    states = [state(True), state(False)]
    differ = [k for k, (a, b) in enumerate(zip(*states)) if not _is_same(a, b)]
    if differ:
        first, second = ([state[k] for k in differ] for state in states)
        joined = if_(condition, lambda: first, lambda: second, [x.name for x in first])
        for k, x in zip(differ, joined):
            states[0][k] = x
    return states[0]


def _by_condition(tree: bool | tuple, state: Callable, assumed: dict) -> list[Value]:
    """Return state(holds, conditions assumed) by a tree of conditions (see Ends.leads)."""
    if isinstance(tree, bool):
        return state(tree, assumed)
    condition, *arms = tree
    return _either(condition, lambda holds: _by_condition(
        arms[0 if holds else 1], state, {**assumed, condition: holds}), assumed)


@dataclass(frozen=True)
class Entered:
    """A name that is one of some members, at the start of a trip or after the loop."""

    cell: Cell | Container
    tag: Value
    indices: list[list[Value]]
    made: Cell | None  # the array that the name keeps
    conditions: list[Value]  # of its members but for the last

    def state(self, frame: Frame) -> list[Value]:
        """Return what is carried, as Values, with the number of the member in any case."""
        return [self.tag, *(x for operands in self.indices for x in operands),
                *(() if self.made is None else (frame.heap.read(self.made),))]


class Ends:
    """What a trip leaves the names bound to that are one of some members, in their order."""

    def __init__(self, frame: Frame, known: Collection, bound: dict[OneOf, object],
                 entered: dict[OneOf, Entered], elsewhere: Sequence[Cell | Container]):
        """`known` are the cells that existed before the loop; `elsewhere` is what is led to by
        anything but the names.
        """
        self.heap, self.known, self.bound, self.entered = frame.heap, known, bound, entered
        self.elsewhere = elsewhere
        self.leaves = {one: [leaf for leaf, _ in self.walk(end)] if _is_bound(end) else []
                       for one, end in bound.items()}

    def of(self, one: OneOf):
        """Return what the name is bound to."""
        return self.bound[one]

    def owners(self, one: OneOf) -> list[OneOf]:
        """Return the names before this one that keep arrays which trips make."""
        names = list(self.bound)
        return [name for name in names[:names.index(one)] if name.keeps]

    def is_as_entered(self, one: OneOf) -> bool:
        """Test whether the trip certainly leaves the name as it has found it, and what it refers
        to.
        """
        def is_unchanged(one: OneOf) -> bool:
            return self.bound[one] is self.entered[one].cell

        made, owners = self.entered[one].made, self.owners(one)
        places = {m.base for m in one.members}
        return (is_unchanged(one)
                and all(is_unchanged(other) for other in owners if other.place in places)
                and not any(self._is_at(leaf, made) for other in owners
                            for leaf in self.leaves[other]))

    def walk(self, cell: Cell | Container, assumed: dict | None = None) -> Iterator[tuple]:
        """Yield the cells that `cell` may be: itself, or those of its choice, or parts of these;
        each with the conditions that hold where it is that one.
        """
        assumed = assumed or {}
        arms = () if (base := _decomposed(cell)[0].base) in self.known else _arms(self.heap, cell)
        for arm, holds in zip(arms, (True, False)):
            if assumed.get(base.choice[0], holds) is holds:
                yield from self.walk(arm, self.assuming(assumed, base.choice[0], holds))
        if not arms:
            yield cell, assumed

    def assuming(self, assumed: dict, condition: Value, holds: bool) -> dict:
        """Return the conditions that are known where this one, too, holds or does not.

        Where a name is what another one keeps, that one is it as well.
        """
        assumed = {**assumed, condition: holds}
        for one in self.bound:
            entered = self.entered.get(one)
            if entered is not None and condition in entered.conditions:
                k = next((k for k, c in enumerate(entered.conditions) if assumed.get(c)), None)
                if k is None and all(assumed.get(c) is False for c in entered.conditions):
                    k = len(entered.conditions)
                for other in self.owners(one) if k is not None else ():
                    if other.place is one.members[k].base:
                        own = next(k for k, m in enumerate(other.members) if m.base is other.place)
                        for n, c in enumerate(self.entered[other].conditions[:own + 1]):
                            assumed[c] = n == own
        return assumed

    def target(self, cell: Cell) -> tuple[Cell, Member, list[Value]]:
        """Return the array to keep for `cell`, which trips make: itself, or the array of which it
        is a part if other names lead there, too; and which part of that it is.
        """
        member, operands = _decomposed(cell)
        if any(leaf is not cell and self._is_at(leaf, member.base)
               for leaves in self.leaves.values() for leaf in leaves):
            return member.base, member, operands
        return cell, Member(cell), []

    def leads(self, end, target: Cell, assumed: dict) -> bool | tuple:
        """Return whether `end` is, or is a part of, the array `target`: known now, or a tree
        (condition, answer where it holds, answer elsewhere).
        """
        if not _is_bound(end):
            return False
        base = _decomposed(end)[0].base
        arms = () if base in self.known else _arms(self.heap, end)
        if not arms:
            return self._is_at(end, target)
        condition = base.choice[0]
        found = [self.leads(arm, target, {**assumed, condition: holds})
                 for arm, holds in zip(arms, (True, False))
                 if assumed.get(condition, holds) is holds]
        return (condition, *found) if len(found) == 2 and (
            found[0] is not found[1]) else found[0]

    def families_made(self, names: Iterable[OneOf]) -> frozenset:
        """Return what may share memory with the arrays of these names that trips make."""
        return frozenset().union(*(leaf.family() for one in names for leaf in self.leaves[one]
                                   if _decomposed(leaf)[0].base not in self.known))

    def is_shared(self, frame: Frame, cell: Cell) -> bool:
        """Test whether anything but these names may lead to an array made in a trip."""
        root = _decomposed(cell)[0].base
        own = cell.family().union(*(root.held for root in cell.roots))
        if own & frame.session.given or cell.root.choice is not None:
            return True
        if any(own & (root.family() | root.held)
               for other in self.elsewhere for root in other.roots):
            return True
        # not known whether that is the same array
        return any(own & (leaf.family() | leaf.root.held) and _decomposed(leaf)[0].base is not root
                   for leaves in self.leaves.values() for leaf in leaves)

    def _is_at(self, leaf: Cell | Container, target: Cell | None) -> bool:
        return leaf is target or _decomposed(leaf)[0].base is target


def one_of_itself(frame: Frame, cell: Cell | Container) -> OneOf | None:
    """Return the binding on entry of a name that every trip may leave as it is; None if `cell` is
    no array and no object.
    """
    if not _can_be_member(frame, cell):
        return None
    member, operands = _decomposed(cell)
    return OneOf(cell, (member.at(operands),), MadeInTrips())


def nothing_yet(start) -> OneOf:
    """Return the binding on entry of a name with a placeholder, before a trip has bound it."""
    return OneOf(start, (), MadeInTrips())


def one_of(frame: Frame, binding: OneOf, ends: Ends, blank: Callable) -> OneOf | None:
    """Return the binding on entry of a name with what a trip leaves it bound to; None if that is no
    choice of arrays.  `blank` returns a placeholder for an array.
    """
    end, start, members = ends.of(binding), binding.start, list(binding.members)
    inside = {y for op in walk(current().block) for y in op.outputs} | set(current().block.params)
    made = None

    def add(member: Member) -> None:
        k = _position(members, member)
        if k is None:
            members.append(member)
        else:
            members[k] = members[k].joined(member)

    for cell, assumed in ends.walk(end):
        member, operands = _decomposed(cell)
        if not _can_be_member(frame, cell):
            return None
        if member.base in ends.known:
            add(member.at(operands, inside))
            continue
        target, part, operands = ends.target(cell)
        if (isinstance(cell, Container) or ends.is_shared(frame, cell)
            or not _can_be_member(frame, target)):
            return None
        part, known = part.at(operands, inside), assumed
        leads: bool | tuple = False
        for other in ends.owners(binding):
            leads = ends.leads(ends.of(other), target, known)
            if leads is not False:
                add(replace(part, base=other.place))
            if leads is True:
                break
        if leads is not True:
            add(replace(part, base=binding.place))
            made = target
    if len(members) > MOST_CHOSEN or len({_class_of(m) for m in members}) > 1:
        return None
    if len(members) > 1 and not isinstance(end, Container) and not isinstance(
            frame.heap.type_of(end), Array):
        return None  # of lists, only the place can be carried
    if tuple(members) == binding.members:
        return binding
    at_first = binding.blank
    if at_first is None and made is not None:
        at_first = (start if isinstance(start, Cell) and _is_alike(frame, start, made)
                    else blank(made))
    return OneOf(start, tuple(members), binding.place, at_first)


def _position(members: Sequence[Member], member: Member) -> int | None:
    return next((k for k, m in enumerate(members) if m.is_like(member)), None)


def _is_bound(binding) -> bool:
    """Test whether a binding is an array or an object, and no placeholder for one."""
    return isinstance(binding, Cell) or isinstance(binding, Container) and not binding.is_blank


def _class_of(member: Member) -> tuple:
    """Return what members of one name have in common: arrays, or objects of one class."""
    part = member.patterns[-1] if member.patterns else None
    inside = part if isinstance(part, Item) else None
    return type(member.base) is Container, getattr(member.base, "cls", None), inside


def _decomposed(cell: Cell | Container) -> tuple[Member, list[Value]]:
    """Return a cell as a part, by indices, of another cell that is none; and its operands.

    `r = r[::-1]` in each trip is a part of a part, as often as there are trips: two reversals are
    none, nor is `r[:]` a part.
    """
    indices: list[tuple] = []  # (pattern, operands), the last one first
    while True:
        place = cell.place if isinstance(cell, Container) else place_of_view(cell)
        if place is not None:
            indices.append((Item(place.path), [place.index]))
            cell = place.xs
        elif cell.index is not None:
            pattern, operands = cell.index
            steps = [entry if entry in ("...", ...) or entry == "..x" and x[2].constant == -1
                     else None for entry, x in paired(pattern, operands)]
            if None in steps:
                indices.append((pattern, operands))
            elif "..x" in steps:
                if indices and indices[-1][0] == pattern and all(
                        x.constant == -1 for x in indices[-1][1]):
                    indices.pop()
                else:
                    indices.append((pattern, operands))
            cell = cell.base
        else:
            break
    operands = [x for _, its in reversed(indices) for x in its]
    return Member(cell, tuple(pattern for pattern, _ in reversed(indices)),
                  (None,) * len(operands)), operands


def _arms(heap: Heap, cell: Cell | Container) -> list[Cell | Container]:
    """Return the two cells of which `cell` is one, decided by the choice of what it is a part of.
    """
    member, operands = _decomposed(cell)
    return [Member(arm, member.patterns, member.operands).cell(heap, operands)
            for arm in (member.base.choice or ())[1:]]


def _can_be_member(frame: Frame, cell: Cell | Container) -> bool:
    if isinstance(cell, Container):
        return not cell.is_blank and not cell.owner
    if place_of_view(cell) is not None:
        return isinstance(frame.heap.type_of(cell), (Array, List))
    return not cell.doubtful and not cell.flat and isinstance(frame.heap.type_of(cell), Array)


def _is_alike(frame: Frame, a: Cell, b: Cell) -> bool:
    first, second = (frame.heap.type_of(cell) for cell in (a, b))
    return first.dtype == second.dtype and first.rank == second.rank


def _is_same(a: Value, b: Value) -> bool:
    return a is b or (a.constant is not MISSING and b.constant is not MISSING
                      and type(a.constant) is type(b.constant) and a.constant == b.constant)


def _count(pattern) -> int:
    """Return how many operands a pattern has."""
    return sum(1 if entry == "i" else entry.count("x") for entry in pattern
               if isinstance(entry, str))
