"""Find the loop-carried variables of a loop by running its body until they settle; enter and leave
its trips.

A carried name is laid out as one parameter per leaf of its binding on entry; a carried cell is one
parameter.  What a trip alone can show (an alias written through another name, a tuple where nothing
was bound before, the type of a value that the first trip does not read) is recorded in
`LoopCarries`, and the loop is run `RunAgain`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import gast
import numpy as np

from ...ir.graph import MISSING, Value
from ...ir.types import UNDEFINED, Array, List, Scalar
from ...ops.core.control import make_undefined, packed
from ...ops.core.record import FUNCTIONS, value
from ...ops.core.shape import length
from ...ops.program.list_ops import new_list
from ..domain.disjoint_arrays import disjoint_cells
from ..domain.frame import (
    BOUND,
    RAISED,
    RESULT,
    RETURNED,
    STOP,
    UNBOUND,
    Frame,
    held_cells,
    like,
)
from ..domain.functions import CarriesFunction, ConditionalObject, UnstableCarry
from ..domain.heap import UNSURE, Cell, Container, carriers_of, is_shared, stored_error
from ..domain.optional import Maybe, resolve_optional
from ..values.dicts import unlike_keys
from ..values.exceptions import in_flight
from ..values.lists import as_list, is_list
from ..values.maybe_unbound import is_bound
from ..values.strings import code_of, word, words_of, words_or_none
from .join import NUMBERS, describe, is_function, may_be_none
from .one_of import Ends, Entered, MadeInTrips, OneOf, nothing_yet, one_of, one_of_itself

# A number that the body reads behind a condition, and that nothing binds before the first trip,
# starts as 0: a reverse sweep saves it in every trip, so there must be a value to save.
# front/values/maybe_unbound.py ensures that nothing else reads the 0.
PLACEHOLDERS = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}


class RunAgain(Exception):
    """Signal that the loop carries more than assumed: run the body again."""


@dataclass
class LoopCarries:
    """The loop-carried state found so far."""

    node: gast.AST  # the loop
    names: dict[str, object] = field(default_factory=dict)  # name -> binding on entry
    cells: dict[Cell, None] = field(default_factory=dict)
    # name, slot or list -> cells with which its arrays may share memory
    origins: dict[object, frozenset] = field(default_factory=dict)
    # two of these, or one -> the reason why they may share memory
    tokens: dict[frozenset, Cell] = field(default_factory=dict)
    breaks: bool = False
    settled_breaks: bool = False
    test_inside: bool = False
    is_counted: bool = False  # its trips are known, and so few that it may be unrolled
    # lists that a trip grows, or fills with items of another structure
    grow: dict[Cell, None] = field(default_factory=dict)
    # lists of known length, and the bindings with which they enter
    renewed: dict[Cell, tuple] = field(default_factory=dict)
    before: dict = field(default_factory=dict)  # the content of each cell on entry
    held: dict = field(default_factory=dict)  # what the lists were known to share on entry
    settled_held: bool = False
    exposed: frozenset = frozenset()  # names that a trip may read before it binds them
    # names that are unbound before the loop and bound by each trip
    bind_always: dict = field(default_factory=dict)
    supposed: int = 0  # how many of SUPPOSITIONS are made
    # names supposed to hold unaliased arrays in each trip
    apart: set = field(default_factory=set)
    # names that some trip leaves as no choice of arrays: one_of.py
    not_one_of: set = field(default_factory=set)
    before_one_of: dict = field(default_factory=dict)  # name -> its binding, carried as a whole
    entered: dict[OneOf, Entered] = field(default_factory=dict)
    # the arrays that trips have made, and names keep: at the start of a trip, or after the loop
    made_in_trips: dict[MadeInTrips, Cell] = field(default_factory=dict)
    # (name, where in its binding) -> what is carried there as a choice of arrays
    choices: dict[tuple, OneOf] = field(default_factory=dict)
    ends: Ends | None = None  # what the trip leaves these bound to
    known: frozenset = frozenset()  # the cells that existed before the loop
    only_changed: bool = False  # lists are carried only once a trip has been seen to change them
    # list -> what it shared before the first trip, and whether among its own items
    held_before: dict = field(default_factory=dict)
    parted: frozenset = frozenset()  # names that certainly hold such arrays after the loop


# Note [Suppositions]
# Where a write is in doubt because of what a loop carries, the loop is run again under one more
# supposition, which each trip must confirm: by induction it then holds in all of them.  Each trades
# a doubt for the proof; what a trip refutes is given up, name by name.


def suppose_apart(carried: LoopCarries) -> None:
    """Suppose that arrays without aliases before the loop (row = np.zeros(n)) have none at the
    start of each trip.
    """
    carried.apart = {name for name, binding in carried.names.items() if isinstance(binding, Cell)}


def suppose_same_arrays(carried: LoopCarries) -> None:
    """Suppose that names keep, in each trip, the very array that they hold before the loop."""
    for name, binding in list(carried.names.items()):
        if isinstance(binding, Cell):
            del carried.names[name]
            carried.cells.update(dict.fromkeys(binding.roots))


def suppose_chosen(carried: LoopCarries) -> None:
    """Suppose that an item of a list of two or three arrays, `b[t % 2]`, is one of those arrays,
    chosen again at each write: see front/values/lists.py.
    """


SUPPOSITIONS = (suppose_apart, suppose_same_arrays, suppose_chosen)


def is_supposed(carried: LoopCarries, supposition: Callable) -> bool:
    """Whether the loop is run under this supposition."""
    return supposition in SUPPOSITIONS[:carried.supposed]


def suppose_more(carried: LoopCarries) -> bool:
    """Make the next supposition; returns whether there was one."""
    if carried.supposed == len(SUPPOSITIONS):
        return False
    SUPPOSITIONS[carried.supposed](carried)
    carried.supposed += 1
    return True


def carrier(node: gast.AST, name: str | Slot | Cell) -> tuple:
    """Return what stands for a name that the loop `node` carries, in all runs of the program."""
    return node.lineno, node.col_offset, "" if isinstance(name, Cell) else str(name)


def _carriers(carried: LoopCarries, name: str | Slot | Cell) -> frozenset:
    """Return what may be asked for another reading of what the loop carries by this name: of the
    items of a list, where it was read as well.
    """
    read = name.carriers if isinstance(name, Cell) else frozenset()
    return read | {carrier(carried.node, name)}


def find_choices(frame: Frame, carried: LoopCarries, before: tuple) -> None:
    """Carry the names that may share memory as choices of arrays, once a write has asked for it."""
    if not asks_choices(frame, carried):
        return
    if _asks_lists(frame, carried):
        carried.only_changed = True
        for cell in [cell for cell in carried.cells if frame.heap.items(cell) is not None]:
            del carried.cells[cell]
    # what was found out before, about other names as well, holds no longer
    carried.not_one_of, carried.origins, carried.tokens = set(), {}, {}
    carried.before_one_of = _asked(frame, carried) | carried.before_one_of
    for name, binding in carried.before_one_of.items():
        carried.names[name] = map_cells(binding, lambda cell: one_of_itself(frame, cell) or cell)
    carried.known = _cells_before(before)


def asks_choices(frame: Frame, carried: LoopCarries) -> bool:
    """Test whether a write has asked for names that are not carried as choices of arrays yet."""
    return (_asks_lists(frame, carried)
            or not _asked(frame, carried).keys() <= carried.before_one_of.keys())


def _asks_lists(frame: Frame, carried: LoopCarries) -> bool:
    """Test whether a write has asked for lists of which trips change the items alone, `h` in
    `h[i % 2][0] += v`, not to be carried.
    """
    return not carried.only_changed and any(
        carrier(carried.node, cell) in frame.session.one_of for cell in carried.cells
        if frame.heap.items(cell) is not None)


def _asked(frame: Frame, carried: LoopCarries) -> dict:
    return {name: binding for name, binding in carried.names.items()
            if carrier(carried.node, name) in frame.session.one_of}


def map_cells(binding, f: Callable):
    """Return a binding with f(cell) for the arrays, lists and objects in it; those in lists stay.
    """
    if isinstance(binding, (Cell, Container)):
        return f(binding)
    if isinstance(binding, (tuple, list)):
        return like(binding, [map_cells(item, f) for item in binding])
    if isinstance(binding, Maybe):
        return Maybe(binding.is_set, map_cells(binding.content, f))
    return binding


def _cells_before(before: tuple) -> frozenset:
    """Return the cells of the state before a loop."""
    env, contents, seen = before
    held = [*env.values(), *(tuple(x.values()) if isinstance(x, dict) else x
                             for x in contents.values() if not isinstance(x, Value))]
    left = [*contents, *seen, *(cell for binding in held for cell in held_cells(binding))]
    found = set()
    while left:
        cell = left.pop()
        if cell not in found:
            found.add(cell)
            left += [] if cell.base is None else [cell.base]
            left += (cell.choice or ())[1:]
    return frozenset(found)


def _find_ends(frame: Frame, carried: LoopCarries, live: frozenset) -> dict:
    """Find what the trip leaves the names bound to that are carried as choices of arrays; returns
    their bindings on entry, with a Maybe where there may be nothing.
    """
    carried.choices, entries, bound_to = {}, {}, {}
    for name, binding in carried.names.items():
        if name in carried.before_one_of and name not in carried.not_one_of:
            end = bound(frame, name)
            entries[name] = with_maybes(frame, binding, end)
            for path, start, last in _choices(entries[name], end):
                one = start if isinstance(start, OneOf) else nothing_yet(start)
                carried.choices[name, path] = one
                bound_to[one] = last
    place = frame.live, frame.pending
    # what the next trip reads, and what comes after the loop
    frame.live, frame.pending = live | frame.liveness.always, frozenset()
    elsewhere = _led_to_elsewhere(frame, carried) if bound_to else []
    frame.live, frame.pending = place
    carried.ends = Ends(frame, carried.known, bound_to, carried.entered, elsewhere)
    return entries


def _led_to_elsewhere(frame: Frame, carried: LoopCarries) -> list[Cell | Container]:
    """Return what live names lead to otherwise than by being carried as choices of arrays."""
    def rest(binding, name, path: tuple = ()):
        if isinstance(binding, Maybe):
            return Maybe(binding.is_set, rest(binding.content, name, path))
        if isinstance(binding, (tuple, list)):
            return like(binding, [rest(x, name, (*path, k)) for k, x in enumerate(binding)])
        return None if isinstance(binding, Cell) and (name, path) in carried.choices else binding

    env, members = frame.env, Counter()
    reachable = {cell for _, cell in frame.reachable()}
    frame.env = dict(env)
    for name, path in carried.choices:
        if not isinstance(name, Slot):
            frame.env[name] = rest(env.get(name, UNBOUND), name)
        elif name.container in reachable and not path:
            members[id(bound(frame, name))] += 1
    found = []
    for _, cell in frame.reachable():
        if members[id(cell)]:
            members[id(cell)] -= 1
        else:
            found.append(cell)
    frame.env = env
    return found


def _choices(binding, end, path: tuple = ()) -> Iterator[tuple]:
    """Yield the choices in a binding, or what stands for one on entry: where it lies, itself, and
    what it is bound to at the end.
    """
    if isinstance(binding, Maybe):
        yield from _choices(binding.content, end.content if isinstance(end, Maybe) else
                            UNBOUND if end is None else end, path)
    elif isinstance(binding, (tuple, list)):
        is_like = type(binding) is type(end) and len(binding) == len(end)
        for k, (x, y) in enumerate(zip(binding, end if is_like else [UNBOUND] * len(binding))):
            yield from _choices(x, y, (*path, k))
    elif isinstance(binding, OneOf):
        yield path, binding, end
    elif isinstance(end, (Cell, Container)) and (
            isinstance(binding, BlankArray) or binding is UNBOUND
            or isinstance(binding, Container) and binding.is_blank):
        yield path, binding, end


def _with_choices(frame: Frame, carried: LoopCarries, binding, ends: Ends, name,
                  path: tuple = ()):
    """Return the binding on entry with the arrays that the trip leaves the name bound to."""
    if isinstance(binding, Maybe):
        content = _with_choices(frame, carried, binding.content, ends, name, path)
        return binding if content is binding.content else Maybe(binding.is_set, content)
    if isinstance(binding, (tuple, list)):
        items = [_with_choices(frame, carried, item, ends, name, (*path, k))
                 for k, item in enumerate(binding)]
        return binding if all(map(operator.is_, items, binding)) else like(binding, items)
    choice = carried.choices.get((name, path))
    end = UNBOUND if choice is None else ends.of(choice)
    if end is UNBOUND:
        return binding
    found = (one_of(frame, choice, ends, partial(placeholder, frame))
             if isinstance(end, (Cell, Container)) else None)
    if found is None:
        # perhaps because of what another name holds, here or in an inner loop
        family = _family(frame, end)
        others = carriers_of(family) | {
            carrier(carried.node, other) for other in carried.names
            if other not in carried.before_one_of and family & _family(frame, bound(frame, other))}
        if others <= frame.session.one_of:
            carried.not_one_of.add(name)
            carried.names[name] = carried.before_one_of[name]
        frame.session.one_of |= others
        raise RunAgain
    return found


def _is_exact(frame: Frame, carried: LoopCarries, name) -> bool:
    """Test whether all that a trip leaves a name bound to is carried as choices of arrays."""
    chosen = {id(carried.ends.of(one)) for (of, _), one in carried.choices.items() if of == name}

    def is_choice(end) -> bool:
        if isinstance(end, (tuple, list)):
            return all(map(is_choice, end))
        if isinstance(end, Maybe):
            return is_choice(end.content)
        return not isinstance(end, (Cell, Container)) or id(end) in chosen

    return (name in carried.before_one_of and name not in carried.not_one_of
            and is_choice(bound(frame, name)))


def enter_binding(frame: Frame, binding, rest: list[Value], carried: LoopCarries, name: str):
    """The binding of a carried name inside the loop, taken from the next parameters."""
    match binding:
        case tuple() | list():
            return like(binding,
                        [enter_binding(frame, item, rest, carried, name) for item in binding])
        case Container():
            members = {
                key: enter_binding(frame, item, rest, carried, name)
                for key, item in binding.members.items()
            }
            made = frame.heap.new_container(binding.cls, members, binding.factory)
            made.carriers = _carriers(carried, name)
            made.origins = binding.origins | carried.origins.get(name, frozenset())
            if not binding.is_blank:
                made.origins |= {binding}
            return made
        case OneOf():
            entered = binding.taken(frame, rest, carried.origins.get(name, frozenset()),
                                    carrier(carried.node, name), carried.made_in_trips)
            carried.entered[binding] = entered
            return entered.cell
    if not _is_carried(binding):
        return binding
    if isinstance(binding, CarriedWord):
        return word(rest.pop(0), binding.words)
    items = known_items(carried, binding)
    if items is not None:
        return frame.heap.new(
            tuple(enter_binding(frame, item, rest, carried, name) for item in items),
            binding.family())
    inside = frame.either(rest.pop(0), binding)
    if isinstance(inside, Cell):
        inside.doubtful = not is_shared(frame.heap.read(inside).type)  # a trip may leave a number
        inside.carriers = _carriers(carried, name)
        family = binding.family() if isinstance(binding, Cell) else frozenset()
        alone = name in carried.apart and carried.names.get(name) is binding
        inside.origins = frozenset() if alone else family | carried.origins.get(name, frozenset())
        if isinstance(binding, Cell):
            inside.held, inside.alike = binding.root.held, binding.root.alike
    return inside


def known_items(carried: LoopCarries, binding) -> tuple | None:
    """The items of a list on entry of the loop, if its length is known."""
    content = carried.before.get(binding) if isinstance(binding, Cell) else None
    return content if isinstance(content, tuple) else None


def enter_cell(frame: Frame, cell: Cell, rest: list[Value], carried: LoopCarries):
    """The content of a carried cell at the start of a trip."""
    items = known_items(carried, cell)
    if items is None:
        return rest.pop(0)
    return tuple(enter_binding(frame, item, rest, carried, cell) for item in items)


def cell_after(frame: Frame, cell: Cell, ends: dict, outputs: list[Value], carried: LoopCarries):
    """The content of a carried cell after the loop."""
    items = known_items(carried, cell)
    if items is None:
        return outputs.pop(0)
    return tuple(
        binding_after(frame, a, b, outputs, carried, cell)
        for a, b in zip(items, ends.get(cell, items)))


def leave(frame: Frame, carried: LoopCarries, before: tuple, entered: dict, ends: dict,
          live: frozenset) -> list[Value]:
    """The values that the body yields; raises Again if the loop turns out to carry more."""
    stop = frame.env[STOP]
    if carried.breaks and stop is False and not carried.settled_breaks:
        carried.breaks, carried.settled_breaks = False, True
        raise RunAgain
    if not carried.breaks and stop is not False:
        carried.breaks, carried.settled_breaks = True, True
        raise RunAgain
    thrown = in_flight(frame)
    if not thrown.keys() <= carried.names.keys():
        carried.names.update({
            name: carried.names.get(name, start)
            for name, start in thrown.items()
        })
        raise RunAgain
    _find_more(frame, carried, before, live)
    _find_unbound(frame, carried, before[0])
    yields = []
    entries = _find_ends(frame, carried, live)
    for name, binding in carried.names.items():
        end = bound(frame, name)
        if name in entries:
            entry = _with_choices(frame, carried, entries[name], carried.ends, name)
        else:
            entry = with_maybes(frame, binding, end)
        if entry is not binding:
            carried.names[name] = entry
            raise RunAgain
        end = as_entered(frame, binding, end)
        yields += _yielded(frame, binding, end, carried, name)
        ends[name] = _snapshot(end)
    for cell in carried.cells:
        content, items = frame.heap.contents[cell], known_items(carried, cell)
        if items is None:
            yields.append(frame.heap.list_value(content) if isinstance(content, tuple) else content)
        elif not isinstance(content, tuple) or len(content) != len(items):
            carried.grow[cell] = None
            raise RunAgain
        else:
            entry = with_maybes(frame, items, content)
            if entry is not items:
                carried.renewed[cell] = entry
                raise RunAgain
            content = as_entered(frame, items, content)
            ends[cell] = content
            yields += [
                y for a, b in zip(items, content)
                for y in _yielded(frame, a, b, carried, "an item of a list")
            ]
    grown = any((cell.held, cell.alike) != known for cell, known in carried.held.items())
    if grown and not carried.settled_held:
        carried.settled_held = True
        raise RunAgain
    _refuse_stored(frame, carried)
    _find_apart(frame, carried, before, live)
    _find_sharing(frame, carried, before, entered, ends)
    return [value(stop), *yields] if carried.breaks else yields


def _refuse_stored(frame: Frame, carried: LoopCarries) -> None:
    """Refuse to store outside what the next trip writes into."""
    for cell in (*carried.cells, *(name.container for name in carried.names
                                   if isinstance(name, Slot))):
        if not frame.heap.stored.isdisjoint(cell.family()):
            raise stored_error("object" if isinstance(cell, Container) else
                               "list" if frame.heap.is_list(cell) else "array")


def _find_more(frame: Frame, carried: LoopCarries, before: tuple, live: frozenset) -> None:
    env, contents, _ = before
    more = False
    for name in {**env, **frame.env}:
        if name not in carried.names and not name.startswith("<") and frame.is_live(name, live):
            if frame.env.get(name, UNBOUND) is not env.get(name, UNBOUND) and name in env:
                carried.names[name] = env[name]
                more = True
    reachable = {root for _, cell in frame.reachable(True) for root in cell.roots}
    for cell, content in contents.items():
        if isinstance(cell, Container):
            more |= _find_slots(frame, carried, cell, content, cell in reachable)
        elif (cell not in carried.cells and frame.heap.contents.get(cell, content) is not content
              and cell in reachable):
            carried.cells[cell] = None
            more = True
    if more:
        raise RunAgain


def _find_unbound(frame: Frame, carried: LoopCarries, env: dict) -> None:
    """Carry a flag for each name that a trip may leave unbound."""
    more = False
    for name in list(carried.names):
        flag = BOUND.format(name)
        if (isinstance(name, str) and not name.startswith("<") and flag not in carried.names
            and not frame.outline.is_dump):
            end = is_bound(frame.env, name)
            if end is not True and (end is not False or is_bound(env, name) is not False):
                carried.names[flag] = is_bound(env, name)
                carried.bind_always.pop(name, None)
                more = True
    if more:
        raise RunAgain


def _find_slots(frame: Frame, carried: LoopCarries, container: Container, before: dict,
                reachable: bool) -> bool:
    """Carry the members of `container` that the trip has rebound; returns whether there are any."""
    after = frame.heap.contents.get(container, before)
    if after is before or not reachable:
        return False
    if (list(after)[:len(before)] == list(before) != list(after) and not container.is_dict
            and not carried.is_counted):
        # made anew in each trip, and not there where the loop has none
        carried.renewed[container] = {**dict.fromkeys(after, UNSURE), **before}
        raise RunAgain
    outside = frame.session.outside
    if list(after) != list(before) and container is outside.state:
        first = next(outside.tracked[place][1] for place in after if place not in before)
        raise UnstableCarry(f"{first}, which lives outside the function, has no value before the "
                            "loop", None, "give it one before the call")
    if list(after) != list(before):
        raise UnstableCarry(
            f"{_name_of(frame, container)} is {container.form_with(before)} before the loop and "
            f"{container.form_with(after)} after a trip", None, "store all of them before the loop")
    new = [Slot(container, key) for key in before
           if after[key] is not before[key] and before[key] is not UNSURE]
    new = [slot for slot in new if slot not in carried.names]
    carried.names.update({slot: before[slot.key] for slot in new})
    return bool(new)


def _name_of(frame: Frame, container: Container) -> str:
    return next((n for n, b in frame.env.items() if b is container), f"a {container.cls.__name__}")


@dataclass(frozen=True)
class Slot:
    """A member of a container, carried like a name."""

    container: Container
    key: object

    def __str__(self) -> str:
        return str(self.key)

    @property
    def label(self) -> str:
        """The name of its value in generated code."""
        return str(self.key) if str(self.key).isidentifier() else ""

    def startswith(self, prefix: str) -> bool:
        """Whether its name starts so; names that are no identifiers do not."""
        return False


def bound(frame: Frame, name: str | Slot):
    """The current binding of a carried name or member."""
    if isinstance(name, Slot):
        return name.container.members.get(name.key, UNBOUND)
    if name.startswith(BOUND[:7]):
        return is_bound(frame.env, name[7:-1])
    return frame.env.get(name, UNBOUND)


def rebind(frame: Frame, name: str | Slot, binding) -> None:
    """Bind a carried name or member."""
    if isinstance(name, Slot):
        frame.heap.contents[name.container] = {**name.container.members, name.key: binding}
    else:
        frame.env[name] = binding


def label(frame: Frame, name: str | Slot) -> str:
    """The name of a carried name or member in generated code."""
    return name.label if isinstance(name, Slot) else frame.label(name)


def _yielded(frame: Frame, binding, end, carried: LoopCarries, name: str) -> list[Value]:
    """The Values of a carried name at the end of a trip, laid out as on entry."""
    if binding is UNBOUND and isinstance(end, (tuple, list, Container)):
        carried.names[name] = _unbound_like(end)
        raise RunAgain
    if isinstance(binding, Container):
        return _yielded_members(frame, binding, end, carried, name)
    if isinstance(binding, OneOf):
        return binding.yielded(frame, carried.ends)
    if isinstance(binding, (tuple, list)):
        if end is UNBOUND:
            end = _unbound_like(binding)
        if type(end) is not type(binding) or len(end) != len(binding):
            raise UnstableCarry(
                f"{_called(name)} is a {type(binding).__name__} of {len(binding)} before the loop "
                f"and {describe(end)} after a trip", None, "keep its length and kind the same")
        return [y for a, b in zip(binding, end) for y in _yielded(frame, a, b, carried, name)]
    if isinstance(binding, CarriedWord):
        if words_or_none(end) is None:
            raise UnstableCarry(
                f"{_called(name)} is a string before the loop and something else after a trip",
                None, "keep its kind the same")
        return [code_of(end, binding.words)]
    items = known_items(carried, binding)
    if items is not None:
        found = (UNBOUND,) * len(items) if end is UNBOUND else frame.heap.items(end)
        if found is None or len(found) != len(items):
            if not isinstance(end, Cell):
                raise UnstableCarry(
                    f"{_called(name)} is a list before the loop and something else after a trip",
                    None, "keep its kind the same")
            carried.grow[binding] = None
            raise RunAgain
        return [y for a, b in zip(items, found) for y in _yielded(frame, a, b, carried, name)]
    if not _is_carried(binding):
        if end is binding or (type(end) is type(binding) and end == binding):
            return []
        _refuse_functions(name, end)
        raise UnstableCarry(
            f"{_called(name)} is {binding!r} before the loop and something else after a trip", None,
            "give it a number or an array before the loop")
    if end is UNBOUND:
        return [make_undefined()]
    if binding is UNBOUND and words_of(end) is not None and carried.names.get(name) is UNBOUND:
        carried.names[name] = CarriedWord(UNBOUND, words_of(end))
        raise RunAgain
    if not _is_carried(end):
        _refuse_functions(name, end)
        raise UnstableCarry(
            f"{_called(name)} is a number or an array before the loop, or nothing, and "
            f"{end!r} after a trip", None, "give it one kind of value")
    leaf = leaf_value(frame, end)
    if (binding is UNBOUND and carried.names.get(name) is UNBOUND and name in carried.exposed
            and isinstance(leaf.type, (Scalar, Array))):
        carried.names[name] = placeholder(frame, leaf)
        raise RunAgain
    return [leaf]


def _yielded_members(frame: Frame, binding: Container, end, carried: LoopCarries,
                     name: str) -> list[Value]:
    start = (binding.members if binding.place is not None or binding.choice is not None
             else carried.before.get(binding, binding.initial))
    form = binding.form_with(start)
    if end is UNBOUND:
        end = _unbound_like(binding)
    if not isinstance(end, Container) or end.form != form:
        if end is binding and (error := unlike_keys(binding, start)) is not None:
            raise error
        raise UnstableCarry(
            f"{_called(name)} is {form} before the loop and {describe(end)} after a trip",
            None, "keep its class, and its keys or attributes in their order, the same")
    return [
        y for key, item in start.items()
        for y in _yielded(frame, item, end.members[key], carried, name)
    ]


def with_maybes(frame: Frame, binding, end):
    """The binding on entry, with a Maybe where only one of entry and end is None."""
    end = resolve_optional(frame.session.assumed, end)
    if binding is UNBOUND and end is None:
        return None
    if (isinstance(binding, CarriedWord)
            or words_of(end if binding is None else binding) is not None
            and end is not binding and end != binding):
        return _with_words(binding, end)
    if (isinstance(binding, Maybe) or isinstance(end, Maybe)
        or (binding is None) is not (end is None)):
        if end is UNBOUND or not (may_be_none(binding) and may_be_none(end)):
            return binding
        start = (binding if isinstance(binding, Maybe)
                 else Maybe(binding is not None and binding is not UNBOUND, binding))
        last = end.content if isinstance(end, Maybe) else UNBOUND if end is None else end
        content = start.content
        if content is None or content is UNBOUND:
            content = placeholder(frame, last)
        elif last is not UNBOUND:
            content = with_maybes(frame, content, last)
        if isinstance(binding, Maybe) and content is binding.content:
            return binding
        return Maybe(start.is_set, content)
    if (isinstance(binding, (tuple, list)) and type(binding) is type(end)
        and len(binding) == len(end)):
        items = [with_maybes(frame, a, b) for a, b in zip(binding, end)]
        return binding if all(map(operator.is_, items, binding)) else like(binding, items)
    return binding


@dataclass(frozen=True)
class CarriedWord:
    """A string on entry of a loop whose trips set it to one of these words."""

    start: object  # a str or a Text, or nothing yet
    words: tuple[str, ...]


def _with_words(binding, end):
    start, known = ((binding.start, binding.words) if isinstance(binding, CarriedWord) else
                    (binding, words_or_none(binding)))
    found = words_or_none(end)
    if found is None:
        return binding
    words = tuple(dict.fromkeys((*known, *found)))
    return (binding if isinstance(binding, CarriedWord) and words == known else CarriedWord(
        start, words))


def placeholder(frame: Frame, binding):
    """A placeholder of the type of `binding` where nothing is bound yet, since the reverse sweep
    saves a value in any case.
    """
    if isinstance(binding, (tuple, list)):
        return like(binding, [placeholder(frame, item) for item in binding])
    if isinstance(binding, Container):
        members = {key: placeholder(frame, b) for key, b in binding.members.items()}
        return Container(binding.heap, binding.cls, binding.factory, initial=members, is_blank=True)
    if isinstance(binding, ConditionalObject):
        _refuse_functions("this", binding)
    if binding is UNBOUND or not _is_carried(binding):
        return binding
    if is_list(frame, binding):
        return BlankArray(List(UNDEFINED))
    type = getattr(frame.peek(binding), "type", None)
    if isinstance(type, Scalar):
        return PLACEHOLDERS.get(np.dtype(type.dtype or "float64").kind, 0)
    if isinstance(type, Array):
        return BlankArray(type)
    return (PLACEHOLDERS["f"]
            if isinstance(binding, float)
            else 0
            if isinstance(binding, int)
            else UNBOUND)


@dataclass(frozen=True)
class BlankArray:
    """An array of zeros of this type, or an empty list, allocated before the loop."""

    type: Array | List


def _zeros(frame: Frame, type: Array) -> Value:
    """Zeros whose extents are taken from arrays known now; extents of none of them are 0."""
    known = {
        dim: (content, axis)
        for binding in frame.env.values()
        if isinstance(content := frame.peek(binding), Value) and isinstance(content.type, Array)
        for axis, dim in enumerate(content.type.dims)
    }
    shape = [
        dim if isinstance(dim, int) else
        length(known[dim][0], axis=known[dim][1]) if dim in known else 0 for dim in type.dims
    ]
    return FUNCTIONS[np.zeros](packed([*map(value, shape)], None), type.dtype or "float64")


def as_entered(frame: Frame, binding, end):
    """The state at the end of a trip, with Maybes where the binding on entry has them."""
    end = resolve_optional(frame.session.assumed, end)
    if isinstance(binding, Maybe):
        if end is None or end is UNBOUND:
            return Maybe(False, _dummy_number(frame, binding.content))
        last = end if isinstance(end, Maybe) else Maybe(True, end)
        return Maybe(last.is_set, as_entered(frame, binding.content, last.content))
    if (isinstance(binding, (tuple, list)) and type(binding) is type(end)
        and len(binding) == len(end)):
        return like(end, [as_entered(frame, a, b) for a, b in zip(binding, end)])
    return end


def _dummy_number(frame: Frame, binding):
    """A dummy number yielded by a trip that leaves the name unbound."""
    if isinstance(binding, Maybe):
        return Maybe(False, _dummy_number(frame, binding.content))
    if isinstance(binding, (tuple, list)):
        return like(binding, [_dummy_number(frame, item) for item in binding])
    return (binding if isinstance(binding, NUMBERS)
            else placeholder(frame, binding) if isinstance(binding, Value)
            else _unbound_like(binding))


def _refuse_functions(name: str, end) -> None:
    """Refuse a loop that carries a different function from trip to trip."""
    if isinstance(end, ConditionalObject):
        raise CarriesFunction(f"{_called(name)} is {describe(end)} after a trip", None,
                              "loop over a tuple, or over a range whose bounds are known")
    if is_function(end):
        raise CarriesFunction(f"{_called(name)} is a function that a loop makes anew in each trip",
                              None, "loop over a tuple, or over a range whose bounds are known")


def _called(name: str | Slot) -> str:
    return "the result" if name == RESULT else str(name)


def _snapshot(binding):
    """A snapshot of `binding`: its containers keep their current members."""
    if isinstance(binding, (tuple, list)):
        return like(binding, list(map(_snapshot, binding)))
    if isinstance(binding, Container):
        members = {key: _snapshot(b) for key, b in binding.members.items()}
        return Container(binding.heap, binding.cls, binding.factory, binding.family(),
                         initial=members)
    return binding


def _unbound_like(binding):
    if isinstance(binding, (tuple, list)):
        return like(binding, list(map(_unbound_like, binding)))
    if isinstance(binding, Container):
        members = {key: _unbound_like(b) for key, b in binding.members.items()}
        return Container(binding.heap, binding.cls, binding.factory, initial=members, is_blank=True)
    return UNBOUND if _is_carried(binding) else binding


def _find_apart(frame: Frame, carried: LoopCarries, before: tuple, live: frozenset) -> None:
    """Find the names whose arrays have no aliases before the loop and after each trip."""
    env, contents, _ = before
    pairs = {
        name: (env.get(name, UNBOUND), frame.env.get(name, UNBOUND))
        for name in {**env, **frame.env} if frame.is_live(name, live)
    }
    now = {cell: cell.held for cell in frame.heap.contents}
    found = disjoint_cells(frame, [*pairs.values()], (contents, frame.heap.contents), ({
        cell: held
        for cell, (held, _) in carried.held_before.items()
    }, now))
    arrays = {name: pair for name, pair in pairs.items() if all(isinstance(x, Cell) for x in pair)}
    named = Counter(arrays.values())  # of two names for one array, none is apart
    carried.parted = frozenset(name for name, pair in arrays.items()
                               if named[pair] == 1 and pair in found)
    if not carried.apart <= carried.parted:
        carried.apart &= carried.parted
        raise RunAgain


def _find_sharing(frame: Frame, carried: LoopCarries, before: tuple, entered: dict,
                  ends: dict) -> None:
    """Record which arrays of the next trip may share memory."""
    chosen = {entered.cell for entered in carried.entered.values()}
    inner = {
        root
        for binding in entered.values()
        for cell in frame.reachable_cells(binding)
        for root in cell.roots if root not in before[1] or cell not in chosen
    }
    others = {
        root
        for name, cell in frame.reachable() if name not in carried.names for root in cell.roots
        if root in before[1]
    } | {root for cell in chosen for root in cell.roots if root in before[1]}
    exact = {name for name in ends if _is_exact(frame, carried, name)}
    families = {name: _family(frame, end) for name, end in ends.items() if name not in exact}
    families |= {name: carried.ends.families_made(
        one for (of, _), one in carried.choices.items() if of == name) for name in exact}
    lists = {cell.root for _, cell in frame.reachable() if cell.root.held}
    more = False
    for name, family in families.items():
        shared = {cell for cell in family - inner if cell in others}
        if name not in exact and _share_among_them(frame, ends[name]):
            shared.add(_token(carried, name))
        for other, its in families.items():
            if other != name and family & its and not {name, other} <= exact:
                shared.add(_token(carried, name, other))
        for xs in lists:
            if xs.held & family:
                token = _token(carried, name, xs)
                shared.add(token)
                xs.held |= {token}
        known = carried.origins.get(name, frozenset())
        if shared - known - _family(frame, entered.get(name)):
            carried.origins[name] = known | shared
            more = True
    if more:
        raise RunAgain


def _token(carried: LoopCarries, *names) -> Cell:
    """Return the reason why the arrays of these names may share memory."""
    return carried.tokens.setdefault(
        frozenset(names), Cell(carriers=frozenset(carrier(carried.node, name) for name in names)))


def _share_among_them(frame: Frame, binding) -> bool:
    """Whether two of the arrays in a tuple, list or container may share memory."""
    seen: set[Cell] = set()
    for cell in frame.reachable_cells(binding):
        if not seen.isdisjoint(cell.family()):
            return True
        seen |= cell.family()
    return False


def _family(frame: Frame, binding) -> frozenset:
    return frozenset().union(*(cell.family() for cell in frame.reachable_cells(binding)))


def binding_after(frame: Frame, binding, end, outputs: list[Value], carried: LoopCarries,
                  name: str):
    if isinstance(binding, (tuple, list)):
        ends = end if isinstance(end, (tuple, list)) else [UNBOUND] * len(binding)
        return like(
            binding,
            [binding_after(frame, a, b, outputs, carried, name) for a, b in zip(binding, ends)])
    if isinstance(binding, Container):
        ends = (end.members if isinstance(end, Container)
                else dict.fromkeys(binding.members, UNBOUND))
        members = {
            key: binding_after(frame, a, ends[key], outputs, carried, name)
            for key, a in binding.members.items()
        }
        made = frame.heap.new_container(binding.cls, members, binding.factory)
        made.carriers = _carriers(carried, name)
        made.origins = carried.origins.get(name, frozenset()).union(
            *(x.family() for x in (binding, end) if isinstance(x, Container) and not x.is_blank))
        return made
    if isinstance(binding, OneOf):
        return binding.taken(frame, outputs, carried.origins.get(name, frozenset()),
                             carrier(carried.node, name), carried.made_in_trips).cell
    if not _is_carried(binding):
        return binding
    items = known_items(carried, binding)
    if items is not None:
        found = frame.heap.items(end) or (UNBOUND,) * len(items)
        families = [cell for x in (binding, end) if isinstance(x, Cell) for cell in x.family()]
        return frame.heap.new(
            tuple(binding_after(frame, a, b, outputs, carried, name) for a, b in zip(items, found)),
            families)
    result = outputs.pop(0)
    if isinstance(binding, CarriedWord):
        return word(result, binding.words)
    if name in (RETURNED, RAISED) and result.constant is not MISSING:
        return bool(result.constant)
    after = frame.either(result, binding, end)
    if isinstance(after, Cell):
        after.carriers = _carriers(carried, name)
    if isinstance(after, Cell) and name in carried.parted and carried.names.get(name) is binding:
        after.origins = frozenset()
        return after
    if isinstance(after, Cell):
        after.origins |= carried.origins.get(name, frozenset())
        for x in (binding, end):
            if isinstance(x, Cell):
                after.held, after.alike = after.held | x.root.held, after.alike | x.root.alike
    return after


def _is_carried(leaf) -> bool:
    """Whether a leaf is a run-time value, which a loop can carry."""
    return leaf is UNBOUND or isinstance(
        leaf, (Value, Cell, BlankArray, OneOf, CarriedWord, *NUMBERS))


def leaves(frame: Frame, binding, name: str = "", around: tuple = ()) -> Iterator[tuple]:
    """(leaf, its name in generated code) for each leaf of a binding called `name`, which lies in
    the lists and objects `around`.
    """
    if isinstance(binding, Maybe):
        yield binding.is_set, f"has_{name}" if name else ""
        yield from leaves(frame, binding.content, name, around)
        return
    if isinstance(binding, OneOf):
        yield from binding.leaves(name)
        return
    if isinstance(binding, (Cell, Container)):
        if binding in around:
            raise UnstableCarry("a loop carries an object that leads back to itself", None,
                                "keep what changes from trip to trip in numbers and arrays")
        around = (*around, binding)
    if isinstance(binding, Container) or isinstance(binding, tuple) and hasattr(binding, "_fields"):
        members = binding.members if isinstance(binding, Container) else binding._asdict()
        for key, item in members.items():
            yield from leaves(frame, item,
                              f"{name}_{key}" if name and f"{name}_{key}".isidentifier() else name,
                              around)
    elif frame.members(binding) is not None:
        for item in frame.members(binding):
            yield from leaves(frame, item, name, around)
    elif _is_carried(binding):
        yield binding, name


def leaf_value(frame: Frame, leaf) -> Value:
    if leaf is UNBOUND:
        return make_undefined()
    if isinstance(leaf, CarriedWord):
        return make_undefined() if leaf.start is UNBOUND else code_of(leaf.start, leaf.words)
    if isinstance(leaf, BlankArray):
        return new_list() if isinstance(leaf.type, List) else _zeros(frame, leaf.type)
    if frame.heap.items(leaf) is not None:
        return as_list(frame, leaf)
    return frame.heap.read(leaf) if isinstance(leaf, Cell) else value(leaf)
