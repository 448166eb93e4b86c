"""Carry, from trip to trip, which of a few arrays or objects a name is bound to.

    cur = p                              which_cur = 0
    for i in range(n):                   for i in range(n):
        cur[0] += x[i]                       if which_cur == 0: p[0] += x[i], else q[0] += x[i]
        cur = q if i % 2 == 0 else p         which_cur = 1 if i % 2 == 0 else 0

A member is an array, a view or an object that exists before the loop; a part of one, `state[i]`, or
an item of a list, whose index is carried as well; or an array that trips make, and that nothing
else leads to at the end of a trip: that one's content is carried.  Inside the loop, and after it,
the name is bound to a cell that has a choice, by the carried number: which cells share memory is
known exactly, so nothing is refused, and what is written through the name is written to the member.

Considered: to carry such numbers for all names that trips bind to other arrays.  Most of these are
never written into, and their content alone is carried, which is shorter and as right; so a name is
carried like this once a write has been refused for what it may share memory with (build, in
front/eval/build.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ...ir.builder import current
from ...ir.graph import MISSING, OPERATORS, Value, walk
from ...ir.types import Array, List
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


@dataclass(frozen=True)
class Member:
    """One of the arrays or objects: `base`, or base[pattern][pattern]..., or one that trips make.
    """

    base: Cell | Container | None  # None for arrays that trips make
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

    def cell(self, heap: Heap, operands: Sequence[Value]) -> Cell | Container:
        """Return the cell at these carried operands; not of an array that trips make."""
        rest, cell = iter(operands), self.base
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
    blank: object = None  # what stands for the array of trips on entry

    @property
    def made(self) -> int | None:
        """The position of the member that trips make."""
        return next((k for k, m in enumerate(self.members) if m.base is None), None)

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
        if self.made is not None:
            yield self.blank, name

    def taken(self, frame: Frame, rest: list[Value], origins: frozenset,
              carrier: tuple) -> Entered:
        """Return the state that the next parameters, or results of the loop, stand for."""
        tag = rest.pop(0) if len(self.members) > 1 else value(0)
        indices = [[rest.pop(0) for _ in m.carried] for m in self.members]
        made = None if self.made is None else frame.heap.new(rest.pop(0), origins)
        if made is not None:
            made.carriers = frozenset((carrier,))
        cells = [made if m.base is None else m.cell(frame.heap, operands)
                 for m, operands in zip(self.members, indices)]
        cell = cells[-1]
        for k in range(len(cells) - 2, -1, -1):
            cell = frame.heap.chosen(OPERATORS["equal"](tag, value(k)), cells[k], cell)
        return Entered(cell, tag, indices, made)

    def yielded(self, frame: Frame, end, entered: Entered) -> list[Value]:
        """Return the Values at the end of a trip that leaves the name bound to `end`."""
        state = entered.state(frame)
        if _is_bound(end):
            state = self._state(frame, end, entered, state)
        return state[0 if len(self.members) > 1 else 1:]

    def _state(self, frame: Frame, end: Cell, entered: Entered, before: list[Value]) -> list[Value]:
        """Return the number of the member, the carried operands, and the content of the array that
        trips make, where the name is bound to `end`; `before` is that of the trip's start.
        """
        if end is entered.cell:
            return before
        member, operands = _decomposed(end)
        chosen = _position(self.members, member)
        if chosen is None and (arms := _arms(frame.heap, end)):
            condition = member.base.choice[0]
            states = [self._state(frame, arm, entered, before) for arm in arms]
            differ = [k for k, (a, b) in enumerate(zip(*states)) if not _is_same(a, b)]
            if differ:
                first, second = ([state[k] for k in differ] for state in states)
                joined = if_(condition, lambda: first, lambda: second, [x.name for x in first])
                for k, x in zip(differ, joined):
                    states[0][k] = x
            return states[0]
        after = list(before)
        if chosen is None:
            after[0], after[-1] = value(self.made), frame.heap.read(end)
            return after
        after[0] = value(chosen)
        first = 1 + sum(len(m.carried) for m in self.members[:chosen])
        for k, position in enumerate(self.members[chosen].carried):
            after[first + k] = operands[position]
        return after


@dataclass(frozen=True)
class Entered:
    """A name that is one of some members, at the start of a trip or after the loop."""

    cell: Cell | Container
    tag: Value
    indices: list[list[Value]]
    made: Cell | None

    def state(self, frame: Frame) -> list[Value]:
        """Return what is carried, as Values, with the number of the member in any case."""
        return [self.tag, *(x for operands in self.indices for x in operands),
                *(() if self.made is None else (frame.heap.read(self.made),))]


def one_of_itself(frame: Frame, cell: Cell | Container) -> OneOf | None:
    """Return the binding on entry of a name that every trip may leave as it is; None if `cell` is
    no array and no object.
    """
    if not _can_be_member(frame, cell):
        return None
    member, operands = _decomposed(cell)
    return OneOf(cell, (member.at(operands),))


def one_of(frame: Frame, binding, end: Cell | Container, known: set,
           blank: Callable) -> OneOf | None:
    """Return the binding on entry of a name, a OneOf or what stands for nothing, that a trip leaves
    bound to `end`; None if it is no choice of arrays.  `known` are the cells that existed before
    the loop, `blank` returns a placeholder for an array.
    """
    if not isinstance(binding, OneOf):
        binding = OneOf(binding, ())
    start, members = binding.start, list(binding.members)
    inside = {y for op in walk(current().block) for y in op.outputs} | set(current().block.params)
    made = None
    for cell in _ends(frame.heap, end, known):
        member, operands = _decomposed(cell)
        if member.base not in known:
            if (not _can_be_member(frame, cell) or isinstance(cell, Container)
                    or _is_shared(frame, cell, end)):
                return None
            if not any(m.base is None for m in members):
                members.append(Member(None))
            made = cell
            continue
        member = member.at(operands, inside)
        k = _position(members, member)
        if k is None:
            members.append(member)
        else:
            members[k] = members[k].joined(member)
        if not _can_be_member(frame, cell):
            return None
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
    return OneOf(start, tuple(members), at_first)


def _position(members: Sequence[Member], member: Member) -> int | None:
    return next((k for k, m in enumerate(members) if m.base is not None and m.is_like(member)),
                None)


def _is_bound(binding) -> bool:
    """Test whether a binding is an array or an object, and no placeholder for one."""
    return isinstance(binding, Cell) or isinstance(binding, Container) and not binding.is_blank


def _class_of(member: Member) -> tuple:
    """Return what members of one name have in common: arrays, or objects of one class."""
    part = member.patterns[-1] if member.patterns else None
    inside = part if isinstance(part, Item) else None
    return type(member.base) is Container, getattr(member.base, "cls", None), inside


def _decomposed(cell: Cell | Container) -> tuple[Member, list[Value]]:
    """Return a cell as a part, by indices, of another cell that is none; and its operands."""
    patterns, operands = [], []
    while True:
        place = cell.place if isinstance(cell, Container) else place_of_view(cell)
        if place is not None:
            patterns.insert(0, Item(place.path))
            operands.insert(0, place.index)
            cell = place.xs
        elif cell.index is not None:
            patterns.insert(0, cell.index[0])
            operands[:0] = cell.index[1]
            cell = cell.base
        else:
            break
    return Member(cell, tuple(patterns), (None,) * len(operands)), operands


def _ends(heap: Heap, cell: Cell | Container, known: set) -> Iterator[Cell | Container]:
    """Yield the cells that `cell` may be: itself, or those of its choice, or parts of these."""
    arms = () if _decomposed(cell)[0].base in known else _arms(heap, cell)
    for arm in arms:
        yield from _ends(heap, arm, known)
    if not arms:
        yield cell


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


def _is_shared(frame: Frame, cell: Cell, end: Cell) -> bool:
    """Test whether anything but the binding `end` of one name leads to an array made in a trip."""
    own = cell.family().union(*(root.held for root in cell.roots))
    if own & frame.session.given or cell.root.choice is not None:
        return True
    once = 0
    for _, other in frame.reachable():
        if other is end:
            once += 1
        elif any(own & (root.family() | root.held) for root in other.roots):
            return True
    return once > 1


def _is_same(a: Value, b: Value) -> bool:
    return a is b or (a.constant is not MISSING and b.constant is not MISSING
                      and type(a.constant) is type(b.constant) and a.constant == b.constant)


def _count(pattern) -> int:
    """Return how many operands a pattern has."""
    return sum(1 if entry == "i" else entry.count("x") for entry in pattern
               if isinstance(entry, str))
