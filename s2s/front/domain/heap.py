"""The abstract heap: mutable arrays, lists and objects as cells with immutable contents, and which
cells alias.

Values never change; Python's arrays do.  An array that the user's program can name is a `Cell`; the
heap says which Value each cell holds now.  `y = x` binds a second name to the same cell, so a write
through either is seen by both.  A view is a cell that has a base: it is read through the base, and
a write to it is a write to the base.

An array chosen by a branch, `c = a if s else b`, is a cell that has a choice: it is read as one or
the other, and a write to it is a write to one or the other, decided again by the condition.

Where two names may or may not share memory (an array carried around a loop, a reshape that may have
copied), the cells say so in `origins`, and a write that the other would have to see is refused: see
`Heap.write`.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ...errors import RankError, UnsupportedError
from ...ir.builder import Builder, current
from ...ir.graph import Block, Value
from ...ir.treedef import Form, form_of, list_form
from ...ir.types import Array, List, Static, Tuple, Type, Unknown
from ...library.containers import STANDS_FOR
from ...ops.arrays.index import setitem
from ...ops.core.control import if_, packed, tape_push
from ...ops.core.elementwise import not_
from ...ops.core.record import value
from ...ops.program.list_ops import new_list
from ...ops.program.list_slices import list_join
from .item_places import Place
from .optional import Maybe, optional_error


class SharedError(RankError):
    """A write whose effect on another name cannot be decided; unless the argument `in_order` is
    C-contiguous.
    """

    in_order: object = None


@dataclass(eq=False)
class Cell:
    """One array (or growing list) of the user's program."""

    base: Cell | None = None  # the base of a view
    view: Callable | None = None  # base's Value -> its own
    write_back: Callable | None = None  # (base's Value, its own new Value) -> base's new Value
    # (pattern, operands), where it is base[integers, slices and new axes]
    index: tuple | None = None
    # (base's Value, index into it, counters) -> the index into its base, or None
    place: Callable | None = None
    # perhaps an array, perhaps a number: an element of an array of unknown rank, or path-dependent
    doubtful: bool = False
    reads: tuple = ()  # Values that `view` and `write_back` read
    # (condition, the cell where it holds, the cell elsewhere)
    choice: tuple | None = None
    origins: frozenset = frozenset()  # cells that may share memory with it
    owner: str = ""  # the activation that owns the array, if not this function's
    getter: Callable | None = None  # of a captured array
    outside: object = None  # the captured list whose items it has
    made: Value | tuple | None = None  # the initial content
    # whether it is C-contiguous, once that has been asked
    contiguous: bool | None = None
    # the argument that it is a view of if that is C-contiguous, as only a call can tell
    view_in_order_of: Cell | None = None
    flat: bool = False  # x.flat: parts of it are copies
    is_tuple: bool = False  # a tuple of run-time length, which nothing changes
    held: frozenset = frozenset()  # of a list: cells that its items may share memory with
    parts: object = None  # of a list that is a view: front/values/list_views.py
    # of a list: cells that two of its items may both share memory with
    alike: frozenset = frozenset()
    # the loops, each with a name that it carries, that have bound it: front/control/one_of.py
    carriers: frozenset = frozenset()
    site: object = None  # of a hash table: where in the program it was created
    # the activation of a recursive function of which it is an argument, in a copy
    parameter_of: object = None

    @property
    def root(self) -> Cell:
        return self if self.base is None else self.base.root

    @property
    def bases(self) -> list[Cell]:
        """The cell itself, the cell it is a view of, and so on."""
        return [self] if self.base is None else [self, *self.base.bases]

    @property
    def roots(self) -> tuple[Cell, ...]:
        """The arrays that it is, or is a view of: one, or several if a condition chooses."""
        root = self.root
        if root.choice is None:
            return (root,)
        return tuple(dict.fromkeys(cell for arm in root.choice[1:] for cell in arm.roots))

    def hold(self, cells: frozenset) -> None:
        """Note that the items of this list may share memory with these."""
        root = self.root
        root.alike |= cells & (root.held | {root})
        root.held |= cells

    def family(self) -> frozenset:
        """The cells that may share memory with it, itself included."""
        return frozenset().union(*(root.origins | {root} for root in self.roots))


@dataclass(eq=False)
class Container:
    """One dict or object of the user's program; the heap holds the current bindings of its members.
    """

    heap: Heap
    cls: type
    factory: Callable | None = None  # of a defaultdict
    origins: frozenset = frozenset()  # containers that may be the same object
    owner: str = ""
    held: frozenset = frozenset()
    alike: frozenset = frozenset()
    initial: dict = field(default_factory=dict)  # its members at its creation
    site: object = None  # where in the program a dict was created
    is_blank: bool = False  # a placeholder: nothing is bound to it yet
    # where it lies in a run-time list, which then has its members; `initial` has the cells of those
    # that have been read
    place: Place | None = None
    # (condition, the container where it holds, the container elsewhere), which have its members
    choice: tuple | None = None
    carriers: frozenset = frozenset()  # as of cells
    parameter_of: object = None  # as of cells

    mirrors: Container | None = None  # the object of which it is the __dict__
    base, index, made, doubtful, getter, is_tuple = None, None, None, False, None, False
    outside, parts = None, None

    @property
    def root(self) -> Cell | Container:
        if self.mirrors is not None:
            return self.mirrors.root
        return self if self.place is None else self.place.xs.root

    @property
    def bases(self) -> list[Cell | Container]:
        """As of cells."""
        outer = self.mirrors.bases if self.mirrors is not None else []
        return [self, *outer, *(() if self.place is None else self.place.xs.bases)]

    @property
    def roots(self) -> tuple[Cell | Container, ...]:
        """The containers that it is, one or several if a condition chooses; or the list in which
        it lies.
        """
        if self.mirrors is not None:
            return self.mirrors.roots
        if self.choice is not None:
            return tuple(dict.fromkeys(root for arm in self.choice[1:] for root in arm.roots))
        return (self,) if self.place is None else self.place.xs.roots

    def family(self) -> frozenset:
        """The containers that may be the same object, itself included."""
        if self.mirrors is not None:
            return self.mirrors.family()
        if self.choice is not None:
            return self.choice[1].family() | self.choice[2].family()
        return self.origins | {self} if self.place is None else self.place.xs.family()

    @property
    def members(self) -> dict:
        """The current members: keys or names of attributes, and bindings.  Never mutated: see
        Heap.store.
        """
        if self.mirrors is not None:
            return self.mirrors.members
        if self.choice is not None:
            return self.heap.chosen_members(self)
        if self.place is not None:
            return self.heap.members_in_place(self)
        return self.heap.contents.get(self, self.initial)

    @property
    def is_dict(self) -> bool:
        return issubclass(self.cls, dict)

    @property
    def form(self) -> Form:
        return self.form_with(self.members)

    def form_with(self, members: dict) -> Form:
        """Its structure with these members."""
        return Form("dict" if self.is_dict else "attributes", tuple(members), self.cls,
                    self.factory)


class Variables:
    """The class of the objects that hold the variables of an activation: syntax/cell_variables.py.
    """


class Progress(Variables):
    """The class of the objects that hold where a generator is: nobody else reads them."""


class Unsure:
    """Stands for an attribute of an object that some paths have made, and others have not.

    It may be written, and then is there; nobody can ask for it, or whether it is there.
    """

    def __repr__(self) -> str:
        return "an attribute that some paths have not made"


UNSURE = Unsure()


def require_sure(container: Container) -> None:
    """Refuse to look at all attributes of an object of which one may not be there."""
    for name, binding in container.members.items():
        if binding is UNSURE:
            raise unsure_attribute(name, container)


def unsure_attribute(name: str, container: Container) -> UnsupportedError:
    """The error for an attribute, or a variable, that may not be there."""
    if issubclass(container.cls, Progress):
        return UnsupportedError(
            f"a generator that reads {name} after a `yield`, and had not set it before the loop "
            "that asks it", current().line, f"set it before its own loop: {name} = ...")
    if issubclass(container.cls, Variables):
        return UnsupportedError(
            f"the variable {name}, which an inner function writes, is bound by a branch, or by a "
            "loop that may have no trips",
            current().line, f"bind it before: {name} = ...")
    return UnsupportedError(
        f"the attribute {name} is made by a branch, or by a loop that may have no trips",
        current().line, f"set it before, in __init__: self.{name} = ...")


def insider(container: Container) -> UnsupportedError | None:
    """The error for an object of a class of library/containers.py or library/records.py that would
    leave the program, or go into a list; None for other containers.
    """
    stands_for = STANDS_FOR.get(container.cls)
    if stands_for is None:
        return None
    name, remedy = {
        set: ("set", "make a list of it: sorted(s)"),
        deque: ("deque", "make a list of it: list(q)"),
        np.ndarray: ("structured array", "take its fields one by one"),
        np.void: ("record", "take its fields one by one"),
        np.dtype: ("structured dtype", "take its names"),
    }.get(stands_for, ("dict whose keys depend on run-time data",
                       "make a list of what is in it: list(d.values())"))
    return UnsupportedError(
        f"a {name} is an operand, or is returned, or put into a list that grows at run time",
        current().line, remedy)


def carriers_of(*families: Iterable[Cell | Container]) -> frozenset:
    """Return the names, carried by loops, behind these cells."""
    return frozenset().union(*(cell.carriers for family in families for cell in family))


def place_of_view(cell: Cell) -> Place | None:
    """Return where the array or list lies in a run-time list, of which it is a view; None if it is
    no such view.
    """
    place = getattr(cell.view, "__self__", None)
    return place if isinstance(place, Place) else None


def cells_in(binding) -> Iterator[Cell | Container]:
    """The cells and containers that a binding holds, nested ones included."""
    return _held(binding, set())


def _held(binding, seen: set) -> Iterator[Cell | Container]:
    match binding:
        case Cell():
            yield binding
        case tuple() | list():
            for item in binding:
                yield from _held(item, seen)
        case Container() if binding not in seen:
            seen.add(binding)
            yield binding
            if binding.choice is not None:
                for arm in binding.choice[1:]:
                    yield from _held(arm, seen)
            elif binding.place is None:
                for member in binding.members.values():
                    yield from _held(member, seen)


def flat_choice(condition: Value, x: Cell | Container, y: Cell | Container) -> tuple:
    """Return the choice of `x` where the condition holds, and of `y` elsewhere.

        c, d = (p, q) if s else (q, p)        c = p if s else q
        c = c if t else d                     c = p if (s if t else not s) else q

    Where both may be one of the same cells, one condition for each of these decides: the choices
    of a name that is swapped again and again would otherwise nest, and double each time.
    """
    first, second = members_of_choice(x), members_of_choice(y)
    members = list(dict.fromkeys([*first, *second]))
    if len(members) == len(first) + len(second) or len(members) == 1:
        return condition, x, y
    rest = members[-1]
    for member in reversed(members[:-1]):
        holds = if_(condition, lambda: [_chooses(x, member)], lambda: [_chooses(y, member)])[0]
        choice = holds, member, rest
        rest = (Cell(choice=choice) if isinstance(x, Cell)
                else Container(x.heap, x.cls, x.factory, choice=choice))
    return choice


def members_of_choice(cell: Cell | Container) -> list[Cell | Container]:
    """Return the cells, each once, of which `cell` is one: itself, if no condition chooses it."""
    if cell.choice is None:
        return [cell]
    return list(dict.fromkeys(x for arm in cell.choice[1:] for x in members_of_choice(arm)))


def _chooses(cell: Cell | Container, member: Cell | Container) -> Value:
    """Return whether a cell that may be a choice is `member`."""
    if member not in members_of_choice(cell) or cell.choice is None:
        return value(cell is member)
    condition, first, second = cell.choice
    if first is member and member not in members_of_choice(second):
        return condition
    if second is member and member not in members_of_choice(first):
        return not_(condition)
    return if_(condition, lambda: [_chooses(first, member)],
               lambda: [_chooses(second, member)])[0]


class Heap:
    """The current content of each cell."""

    def __init__(self):
        # of a list of known length, the bindings of its items; of a container, those of its members
        # by key
        self.contents: dict[Cell | Container, Value | tuple | dict] = {}
        # view -> (base's Value at the last read, its own)
        self.seen: dict[Cell, tuple[Value, Value]] = {}
        self.written: set | None = None  # the roots that the current generator writes into
        self.written_in: set[Cell] = set()  # the lists into whose items something was written
        self.stored: set[Cell | Container] = set()  # a copy of each is stored outside the function
        # what lies in captured lists that are one parameter may be each other, or what is captured
        # besides: this is among the origins of all of it
        self.captured = Cell()

    def new(self, content: Value | tuple, origins: Iterable[Cell] = (), owner: str = "") -> Cell:
        """A cell for a fresh array."""
        cell = Cell(origins=frozenset(origins), owner=owner, made=content)
        self.contents[cell] = content
        return cell

    def new_container(self, cls: type, members: dict, factory: Callable | None = None) -> Container:
        """A new dict or object of class `cls`, with these members."""
        made = Container(self, cls, factory, initial=dict(members))
        self.contents[made] = made.initial
        return made

    def fill(self, blank: Cell | Container, content: tuple | dict) -> None:
        """Set the items, or members, of a list or object that is being made."""
        self.contents[blank] = content
        if isinstance(blank, Container):
            blank.initial = content
        else:
            blank.made = content

    def store(self, container: Container, members: dict,
              reachable: Iterable[tuple[str, Cell]]) -> None:
        """Set the members of `container`; see `write`."""
        container = container.mirrors or container
        self.write(container, members, reachable, container)

    def new_view(self, base: Cell, content: Value, view: Callable, write_back: Callable,
                 index: tuple | None = None, reads: tuple = ()) -> Cell:
        """A cell for a view of `base`, with current Value `content`."""
        cell = Cell(base, view, write_back, index, reads=reads)
        self.seen[cell] = (self.read(base), content)
        return cell

    def in_place(self, place: Place, content: Value, known=None):
        """The binding of what lies at `place`, of this content; `known` is what it was before."""
        if not isinstance(content.type, Tuple):
            if isinstance(content.type, Static):
                return content.type.value
            if known is not None or not is_shared(content.type):
                return content if known is None else known
            return self.new_view(place.xs, content, place.read, place.written, reads=(place.index,))
        form = content.type.form
        if form is None or form.kind == "namedtuple":
            members = [self.in_place(inner, y) for inner, y in place.members(content)]
            return tuple(members) if form is None else form.cls._make(members)
        return known or Container(self, form.cls, form.factory, place=place,
                                  initial=dict.fromkeys(form.keys))

    def members_in_place(self, container: Container) -> dict:
        """The members of a container that lies in a run-time list."""
        place = container.place
        base = self.read(place.xs)
        if container not in self.seen or self.seen[container][0] is not base:
            parts = zip(container.initial.items(), place.members(place.read(base)))
            members = {key: self.in_place(inner, y, known) for (key, known), (inner, y) in parts}
            container.initial.update((key, x) for key, x in members.items()
                                     if isinstance(x, (Cell, Container)))
            self.seen[container] = base, members
        return self.seen[container][1]

    def chosen_members(self, container: Container) -> dict:
        """The members of a container that is one of two."""
        condition, *arms = container.choice
        first, second = (arm.members for arm in arms)
        kept = self.seen.get(container)
        if kept is None or kept[0][0] is not first or kept[0][1] is not second:
            if list(first) != list(second):
                raise self._chooses_between_unlike()
            members = {key: self.chosen(condition, x, second[key]) for key, x in first.items()}
            self.seen[container] = (first, second), members
        return self.seen[container][1]

    def chosen(self, condition: Value, x, y):
        """The binding that is `x` where the condition holds, and `y` elsewhere."""
        if x is y:
            return x
        if isinstance(x, Container) and isinstance(y, Container) and x.cls is y.cls:
            return Container(self, x.cls, x.factory, choice=flat_choice(condition, x, y))
        if isinstance(x, Cell) and isinstance(y, Cell):
            if all(isinstance(self.type_of(cell), Array) for cell in (x, y)):
                return Cell(choice=flat_choice(condition, x, y))
        elif isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y):
            items = [self.chosen(condition, a, b) for a, b in zip(x, y)]
            return x._make(items) if hasattr(x, "_make") else tuple(items)
        elif all(isinstance(z, (Value, bool, int, float, complex)) for z in (x, y)):
            return if_(condition, lambda: [value(x)], lambda: [value(y)])[0]
        elif type(x) is type(y) and isinstance(x, (str, type(None))) and x == y:
            return x
        raise self._chooses_between_unlike()

    def _chooses_between_unlike(self) -> UnsupportedError:
        return UnsupportedError("a run chooses one of two objects whose attributes are not alike",
                                current().line, "give both the same attributes: numbers, arrays or "
                                "objects, but no lists")

    def choose(self, condition: Value, a: Cell, b: Cell, content: Value) -> Cell:
        """A cell for `a if condition else b`, with current Value `content`."""
        cell = Cell(choice=flat_choice(condition, a, b))
        self.seen[cell] = (self._state(cell), content)
        return cell

    def _state(self, cell: Cell) -> tuple:
        """The Values that determine whether the last read of a chosen array is still current."""
        return tuple(self.contents.get(root) for root in cell.roots)

    def is_current(self, cell: Cell) -> bool:
        """Whether `cell` can be read without a new op."""
        if cell.choice is not None:
            return (cell in self.seen
                    and all(map(operator.is_, self.seen[cell][0], self._state(cell))))
        return cell.base is None or (self.is_current(cell.base) and cell in self.seen
                                     and self.seen[cell][0] is self.read(cell.base))

    def read(self, cell: Cell) -> Value:
        """The current Value of `cell`."""
        if isinstance(cell, Container) and cell.place is not None:
            return cell.place.read(self.read(cell.place.xs))
        if isinstance(cell, Container) and cell.choice is not None:
            return packed(list(map(self._leaf, cell.members.values())), cell.form)
        if cell.choice is not None:
            if not self.is_current(cell):
                self.seen[cell] = (self._state(cell), self._read_chosen(cell))
            return self.seen[cell][1]
        if cell.base is None:
            content = self.contents[cell]
            if isinstance(content, dict):
                if (error := insider(cell)) is not None:
                    raise error
                require_sure(cell)
                return packed(list(map(self._leaf, content.values())), cell.form)
            return (packed(list(map(self._leaf, content)), list_form(len(content)))
                    if isinstance(content, tuple)
                    else content)
        base = self.read(cell.base)
        if cell not in self.seen or self.seen[cell][0] is not base:
            name = self.seen[cell][1].name if cell in self.seen else ""
            content = cell.view(base)
            if not content.name:
                content.name = name
            self.seen[cell] = (base, content)
        return self.seen[cell][1]

    def type_of(self, cell: Cell) -> Type:
        """The type of the content of `cell`, without emitting a read of a stale view."""
        return (self.seen[cell][1] if cell in self.seen else self.read(cell)).type

    def is_list(self, cell: Cell) -> bool:
        """Whether a cell may be a list: False if it is known to hold, or have held, an array."""
        content = self.contents.get(cell, cell.made)
        return not isinstance(content, Value) or isinstance(content.type, List)

    def items(self, cell) -> tuple | None:
        """The bindings of the items of a list of known length; else None."""
        content = self.contents.get(cell) if isinstance(cell, Cell) else None
        return content if isinstance(content, tuple) else None

    def list_value(self, items: tuple, whole: bool = True) -> Value:
        """Items of a list as Values, nested lists as run-time lists; with `whole`, as one list."""
        values = []
        for item in items:
            if isinstance(item, Maybe):
                raise optional_error("a list of run-time length", current().line)
            if isinstance(item, Container):
                if (error := insider(item)) is not None:
                    raise error
                require_sure(item)
            inner = self.items(item)
            values.append(
                self.list_value(inner) if inner is not None else
                packed([self.list_value((x,), False)
                        for x in item], form_of(item)) if isinstance(item, tuple) else
                packed([self.list_value((x,), False) for x in item.members.values()], item.form
                       ) if isinstance(item, Container) else self._leaf(item))
        return new_list(*values) if whole else values[0]

    def _leaf(self, binding) -> Value:
        if isinstance(binding, (Cell, Container)):
            return self.read(binding)
        return (packed(list(map(self._leaf, binding)), form_of(binding))
                if isinstance(binding, tuple)
                else value(binding))

    def _read_chosen(self, cell: Cell) -> Value:
        condition, *arms = cell.choice
        name = self.seen[cell][1].name if cell in self.seen else ""

        def read(arm: Cell) -> list[Value]:
            with self.apart():
                return [self.read(arm)]

        return if_(condition, lambda: read(arms[0]), lambda: read(arms[1]), [name])[0]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A context in which reads of views emit ops that do not outlive it: those of an arm."""
        seen, self.seen = self.seen, dict(self.seen)
        try:
            yield
        finally:
            self.seen = seen

    def write(self, cell: Cell, content: Value | tuple, reachable: Iterable[tuple[str, Cell]],
              through: Cell, update: Callable | None = None) -> None:
        """Set the content of `cell`; `reachable` are the cells of live names.

        `through` is the cell that the program names in the statement that writes: `cell`, or a view
        of it. `update` is the statement's effect on any array in its place.
        """
        if cell.root is not cell and cell.parts is not None:
            raise UnsupportedError("this changes a list of parts of something that is written into "
                                   "through it", current().line,
                                   "put copies (`.copy()`) of the parts into the list")
        named = through.bases
        if self.written is not None:
            self.written.update(cell.roots)
        if through is not cell.root:
            self.written_in.update(root for root in cell.roots
                                   if isinstance(root, Cell) and self.is_list(root))
        for root in cell.roots:
            kind = (root.cls.__name__
                    if isinstance(root, Container)
                    else "list"
                    if self.is_list(root)
                    else "array")
            if not self.stored.isdisjoint(root.family()):
                raise stored_error(kind)
            outside = [own for own in root.family() if own is self.captured
                       or own.owner and own.getter is None]
            if outside:
                name = min((own.owner for own in outside if own.owner), default="an object")
                raise UnsupportedError(
                    f"this writes into {root.owner or name}, which lives outside the function",
                    current().line,
                    f"pass the {kind} as an argument and return it, or take a copy first")
            family = root.origins | {root} | (root.held if through is not root else frozenset())
            alike = root.alike if through is not root else frozenset()
            # the items of the list are not written into
            if isinstance(content, Value) and isinstance(content.type, List):
                family, alike = (frozenset(own for own in cells if self.is_list(own))
                                 for cells in (family, alike))
            for name, other in reachable:
                if through is root and not self._stays(root, content, other):
                    raise SharedError(
                        f"this changes the order of a list of which {name} is an item",
                        current().line, f"take a copy (`copy.copy({name})`) of the item first")
                unsure = any(own is not root and family & (own.origins | {own} | own.held)
                             for own in other.roots)
                unsure = unsure or (root in other.roots
                                    and any(c.doubtful and c not in named for c in other.bases))
                if not unsure and not alike:
                    continue
                what = ("an array" if isinstance(content, Value) else
                        "a list" if not isinstance(root, Container) else f"a {kind}")
                ways = ("share memory with", ".copy()") if not isinstance(root, Container) else (
                    "be the same as", "copy.copy(...)")
                error = (SharedError(
                    f"this writes into {what} that may or may not {ways[0]} {name}",
                    current().line, f"take a copy (`{ways[1]}`) of one of the two first")
                    if unsure else SharedError(
                        "this writes into an item of a list, and may or may not write into another "
                        "item of it, too",
                        current().line, "put copies (`.copy()`) of them into the list"))
                error.in_order = root.view_in_order_of if isinstance(root, Cell) else None
                error.carriers = carriers_of(family, named, *(own.family() | own.held
                                                              for own in (*other.roots, other)))
                raise error
        self._store(cell, content, update or (lambda x: setitem(x, content, pattern=(...,))))

    def _stays(self, root: Cell, content: Value | tuple, other: Cell | Container) -> bool:
        """Whether `other`, if it is an item of the run-time list `root`, is the same item of its
        new content.
        """
        place = other.place if isinstance(other, Container) else place_of_view(other)
        if (isinstance(content, Value) and isinstance(content.type, List) and root in other.roots
                and any(each.parts is not None for each in other.bases)):
            return False
        if (place is None or root not in other.roots or not isinstance(content, Value)
            or content.op is None):
            return True
        grows = content.op.record in (tape_push, list_join) and (
            content.op.inputs[0] is self.read(root))
        return grows and place.is_fixed

    def _store(self, cell: Cell, content: Value | tuple, update: Callable) -> None:
        if isinstance(cell, Container) and cell.choice is not None:
            self._store_chosen_members(cell, content)
        elif isinstance(cell, Container) and cell.place is not None:
            self._store_in_place(cell, content)
        elif cell.choice is not None:
            self._store_chosen(cell, update)
        elif cell.base is None:
            self.contents[cell] = content
        elif cell.root.choice is not None:
            self._store(cell.base, content, lambda x: cell.write_back(x, update(cell.view(x))))
        else:
            self._store(cell.base, cell.write_back(self.read(cell.base), content), update)
            self.seen[cell] = (self.read(cell.base), content)

    def _store_chosen_members(self, container: Container, members: dict) -> None:
        """Set the members of whichever of the two containers the condition chooses."""
        condition, *arms = container.choice
        before = container.members
        if list(members) != list(before):
            raise self._chooses_between_unlike()
        # one after the other: both may be, or choose, the same object
        for k, arm in enumerate(arms):
            old = arm.members
            self._store(arm, {
                key: old[key] if new is before[key] else
                self.chosen(condition, *((new, old[key]) if k == 0 else (old[key], new)))
                for key, new in members.items()}, None)

    def _store_in_place(self, container: Container, members: dict) -> None:
        """Set the members of a container that lies in a run-time list."""
        place, before = container.place, container.members
        if list(members) != list(before):
            raise UnsupportedError(
                f"an attribute or a key that the other items of the list do not have: "
                f"{', '.join(map(str, members.keys() ^ before.keys()))}",
                current().line, "give it to all of them, before they are put into the list")
        for key, binding in members.items():
            for cell in cells_in(binding) if binding is not before[key] else ():
                place.xs.hold(cell.family() | cell.root.held)
        new = packed([self.list_value((binding,), whole=False) for binding in members.values()],
                     container.form_with(members))
        content = place.written(self.read(place.xs), new)
        self._store(place.xs, content, lambda x: content)

    def _store_chosen(self, cell: Cell, update: Callable) -> None:
        """Write into whichever of the two arrays the condition chooses."""
        condition, *arms = cell.choice
        contents, seen = self.contents, self.seen
        blocks, after = [Block(), Block()], []
        for arm, block in zip(arms, blocks):
            self.contents, self.seen = dict(contents), dict(seen)
            with Builder(block):
                self._store(arm, update(self.read(arm)), update)
            after.append(self.contents)
        self.contents, self.seen = contents, seen
        changed = [
            c for c, content in contents.items() if any(state[c] is not content for state in after)
        ]

        def splice(k: int) -> list[Value]:
            current().block.ops.extend(blocks[k].ops)
            return [after[k][c] for c in changed]

        names = [contents[c].name for c in changed]
        self.contents.update(
            zip(changed, if_(condition, lambda: splice(0), lambda: splice(1), names)))


def stored_error(kind: str) -> UnsupportedError:
    """The error for a write into what is also stored outside, where the program would see it."""
    kind = "object" if kind == "SimpleNamespace" else kind
    return UnsupportedError(
        f"the function writes into this {kind}, and stores it outside", current().line,
        "write first and store it when it is finished, or store a copy (`.copy()`)")


def is_shared(type) -> bool:
    """Whether values of this type are, or may be, mutable objects: arrays, lists."""
    return isinstance(type, (Array, List, Unknown))
