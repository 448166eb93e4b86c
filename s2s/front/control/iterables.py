"""Iterables of a `for`: ranges, arrays, tuples, and enumerate, zip and reversed of those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import gast

from ...errors import TypeMismatchError
from ...ir.graph import Value
from ...ir.types import Extent, List, Scalar
from ...library.containers import Keyed, ListedTally, Set
from ...library.records import Records
from ...ops.core.control import tape_len, tape_pop
from ...ops.core.record import value
from ...ops.core.shape import length
from ...ops.program.checkpoint import Plan
from ..domain.frame import Frame, Object
from ..domain.functions import FunctionValue, Generator, Method
from ..domain.heap import Cell, Container
from ..syntax.find_source import definition_of
from ..syntax.liveness import inside
from ..values.captured_lists import outside_items
from ..values.dict_views import KeyedView, guard_of
from ..values.dicts import Entries, entries_of
from ..values.list_views import item_of_list
from ..values.lists import length_of_list, take_item
from ..values.objects import method_of
from ..values.subscript import take
from .member_tables import table_of

ENDLESS = 2 ** 62  # the trip count of an endless loop


@dataclass
class Iterable:
    """The iteration space of a `for`: the number of trips, and the binding of trip `k`."""

    get: Callable  # index -> binding
    bounds: tuple = ()  # (lo, hi, step) of the index
    trips: int | None = None  # set where the loop is to be unrolled
    held: tuple = ()  # the bindings that it reads
    is_range: bool = False
    extent: object = None  # the extent of the axis that it runs along, where known
    of: Cell | None = None  # the array, or the list of run-time length, whose members these are
    plan: Plan | None = None  # the checkpointing plan for the reverse sweep
    # of one of known trips: () -> the same with an index of the run, or None if there is none
    tabulate: Callable | None = None

    @property
    def is_endless(self) -> bool:
        return self.trips is None and self.bounds[1] is ENDLESS

    def index_name(self, frame: Frame) -> str:
        used = {*frame.locals, *frame.env}
        return next(name for name in ("i", "j", "k", "index")
                    if name not in used or name == "index")


def iterable(frame: Frame, binding, node: gast.AST) -> Iterable:
    """The Iterable of `binding`."""
    if isinstance(binding, KeyedView):
        return _through_view(frame, binding)
    binding = frame.contents_of(binding)
    match binding:
        case Iterable():
            return binding
        case Generator():
            return binding.iterate()
        case Entries():
            return known_members(frame, lambda k: _entry(frame, binding, k, node), len(binding),
                                 binding)
        case tuple() | list():
            return known_members(frame, lambda k: binding[k], len(binding), binding)
        case Container() if binding.is_dict:
            return iterable(frame, entries_of(binding, dict.keys), node)
        case Container() if issubclass(binding.cls, Set):
            return _over_set(frame, binding, node)
        case Container() if binding.cls.__module__ == Set.__module__:
            return iterable(frame, members_of(frame, binding, node), node)
        case Container() if binding.cls is Records:
            take_row, count = (method_of(binding, name) for name in ("__getitem__", "__len__"))
            call = frame.session.call
            return Iterable(lambda k: call(frame, Method(take_row, binding), [k], {}, node),
                            (0, call(frame, Method(count, binding), [], {}, node), 1),
                            held=(binding,))
        case Container() if (function := method_of(binding, "__iter__")) is not None:
            found = frame.session.call(frame, Method(function, binding), [], {}, node)
            if isinstance(found, Container) and method_of(found, "__next__") is not None:
                cursor = ObjectCursor(frame, found, node)
                return Iterable(lambda k: cursor.next(frame.session.active or frame, node),
                                (0, ENDLESS, 1), held=(cursor,))
            return iterable(frame, found, node)
        case str():
            return Iterable(lambda k: binding[k], trips=len(binding))
        case range():
            return range_over(binding.start, binding.stop, binding.step)
        case Cell() if frame.heap.items(binding) is not None:
            return known_members(frame, lambda k: take_item(frame, binding, k),
                                 len(frame.heap.items(binding)), binding)
        case Cell() if binding.parts is not None:
            return Iterable(lambda k: item_of_list(frame, binding, k),
                            (0, length_of_list(frame, binding), 1), held=(binding,), of=binding)
        case Cell() if isinstance(frame.heap.read(binding).type, List):
            return Iterable(lambda k: take_item(frame, binding, k),
                            (0, length_of_list(frame, binding), 1), held=(binding,), of=binding)
        case Cell():
            content = frame.heap.read(binding)
            extent = content.type.dims[0] if hasattr(content.type, "dims") else None
            return Iterable(lambda k: take(frame, binding, k), (0, length(content, axis=0), 1),
                            held=(binding,), extent=extent, of=binding)
        case Value(type=Scalar()):
            raise TypeMismatchError("a loop over a number", frame.line(node), "loop over range(n)")
    kind = type(binding.content if isinstance(binding, Object) else binding).__name__
    raise frame.refuse(f"a loop over a {kind}", node, "loop over a range, an array or a tuple")


class ObjectCursor(FunctionValue):
    """An object of the program's with a `__next__` that never ends, where something runs over it.
    """

    def __init__(self, frame: Frame, iterator: Container, node: gast.AST):
        self.iterator = iterator
        definition = definition_of(method_of(iterator, "__next__")).node
        if any(isinstance(x, gast.Raise) or isinstance(x, gast.Call) and getattr(
                x.func, "id", getattr(x.func, "attr", "")) in ("next", "__next__")
               for stmt in definition.body for x in inside(stmt)):
            raise frame.refuse(
                f"a loop over a {iterator.cls.__name__}, whose __next__ may end it", node,
                "write its __iter__ with `yield`, or call next() in a `while` loop")

    def held(self) -> Iterator:
        yield self.iterator

    def next(self, frame: Frame, node: gast.AST | None):
        """Its next item."""
        step = Method(method_of(self.iterator, "__next__"), self.iterator)
        return frame.session.call(frame, step, [], {}, node)

    def spend(self, frame: Frame) -> None:
        """Refuse a consumer that takes one more item than it uses."""
        raise frame.refuse("zip, which takes one more item of an iterator than it uses", None,
                           "let the range come first: zip(range(n), ...)")


def _through_view(frame: Frame, view: KeyedView) -> Iterable:
    """The iterable of what a view shows: the keys of now, and values as they are in each trip."""
    of = view.of
    keys = KeyedView(of, "listed_keys").shown(frame)
    table = None if issubclass(of.cls, ListedTally) else frame.heap.read(of.members["_places"])
    places = None
    if of.members.get("_has_gaps", False) is not False:
        places = frame.session.call(frame, Method(of.cls.listed_places, of), [], {}, None)

    def place_at(k):
        return k if places is None else take_item(frame, places, k)

    def key_at(k):
        key = take_item(frame, keys, k)
        if table is not None and isinstance(k, Value):
            frame.session.key_places[table, key] = place_at(k)
        return key

    def value_at(k):
        return take_item(frame, of.members["_values"], place_at(k))

    get = {"listed_keys": key_at, "listed_values": value_at}.get(
        view.listed, lambda k: (key_at(k), value_at(k)))
    count = frame.session.call(frame, Method(of.cls.__len__, of), [], {}, None)
    held = guard_of(frame, of), *(x for x in (keys, places) if x is not None)
    if isinstance(known := _known(count), int):
        return Iterable(get, trips=known, held=held)
    return Iterable(get, (0, count, 1), held=held)


def _over_set(frame: Frame, binding: Container, node: gast.AST) -> Iterable:
    members = members_of(frame, binding, node)
    known = frame.members(members)

    def guarded(source: Iterable) -> Iterable:
        return replace(source, held=(*source.held, guard_of(frame, binding, tuple(known or ()))),
                       tabulate=source.tabulate and (lambda: mapped(guarded, source)))

    return guarded(iterable(frame, members, node))


def known_members(frame: Frame, get: Callable, count: int, binding) -> Iterable:
    """The iterable of `count` members of `binding`, which can be a table."""
    def tabulate() -> Iterable | None:
        outside = getattr(binding, "outside", None)
        items = None if outside is None else outside_items(frame, outside)
        xs = table_of(frame, get if items is None else items.__getitem__, count)
        return None if xs is None else Iterable(
            lambda k: take_item(frame, xs, k), (0, count, 1), held=(binding, xs), extent=count)

    return Iterable(get, trips=count, held=(binding,), tabulate=tabulate)


def tabulated(*sources: Iterable) -> list[Iterable] | None:
    """These iterables with an index of the run; None if one of them has none."""
    made = []
    for source in sources:
        if source.trips is not None:
            source = source.tabulate and source.tabulate()
        if source is None:
            return None
        made.append(source)
    return made


def mapped(change: Callable, *sources: Iterable) -> Iterable | None:
    """`change` of these iterables with an index of the run; None if one of them has none."""
    made = tabulated(*sources)
    return None if made is None else change(*made)


def members_of(frame: Frame, binding: Container, node: gast.AST, anyhow: bool = False):
    """The members of a set, deque or dict of library/containers.py as a list, in Python's order (or
    any order, if `anyhow`); any other object unchanged.
    """
    if binding.cls.__module__ != Set.__module__:
        return binding
    if issubclass(binding.cls, Keyed):
        return KeyedView(binding, "listed_keys")
    if not issubclass(binding.cls, Set):
        return binding.members["_items"]
    items = frame.session.call(frame, Method(binding.cls.members, binding), [], {}, node)
    if anyhow:
        return items
    if frame.is_static(items) and all(isinstance(x, int) for x in frame.static(items, "a set")):
        return tuple(set(frame.static(items, "a set")))
    if len(frame.heap.items(items) or (1, 1)) > 1:
        raise frame.refuse("the order of a set that is not known when code is generated", node,
                           "use a list, or loop over sorted(...)")
    return items


def _entry(frame: Frame, entries: Entries, k: int, node: gast.AST):
    now = entries.now()
    if len(now) != len(entries):
        raise frame.refuse("a dict that changes its size while a loop runs over it", node,
                           "loop over a copy, e.g. list(d.items())")
    return now[k]


def range_over(lo, hi, step) -> Iterable:
    """range(lo, hi, step)."""
    return Iterable(lambda k: k, (lo, hi, step), is_range=True)


def normalised_range(frame: Frame, source: Iterable, node: gast.AST) -> Iterable:
    """The same range, normalised to an index that counts from 0 by 1."""
    if source.trips is not None:
        return source
    lo, hi, step = source.bounds
    if not source.is_range and _known(step) == -1:  # backwards, down to its start
        return Iterable(lambda k: source.get(lo - k), (0, lo + 1, 1), held=source.held,
                        extent=source.extent)
    if not source.is_range:
        return source
    if (lo, step) == (0, 1) or (_known(lo) == 0 and _known(step) == 1):
        return Iterable(source.get, source.bounds)
    if all(isinstance(_known(b), int) for b in source.bounds):
        return Iterable(lambda k: lo + k * step, (0, len(range(*map(_known, source.bounds))), 1))
    if _known(step) == 1:
        return Iterable(lambda k: k + lo, (0, value(hi) - lo, 1))
    if isinstance(by := _known(step), int) and by != 0:
        ahead = value(hi) - lo if by > 0 else value(lo) - hi
        trips = ahead if by == -1 else (ahead + (abs(by) - 1)) // abs(by)
        return Iterable(lambda k: value(k) * by + lo if by != -1 else value(lo) - k, (0, trips, 1))
    raise frame.refuse("a range with a step of a run inside zip, enumerate or reversed", node,
                       "loop over range(n) and compute the index")


def _known(bound):
    return bound.constant if isinstance(bound, Value) else bound


def enumerate_(frame: Frame, source: Iterable, start, node: gast.AST) -> Iterable:
    """enumerate(source, start)."""
    plan = source.plan
    source = normalised_range(frame, source, node)
    count = (lambda k: k) if _known(start) == 0 else (lambda k: k + start)

    def counted(source: Iterable) -> Iterable:
        return replace(source, get=lambda k: (count(k), source.get(k)), is_range=False, plan=plan,
                       tabulate=lambda: mapped(counted, source))

    return counted(source)


def zip_(frame: Frame, sources: list[Iterable], shortest: Callable, node: gast.AST) -> Iterable:
    """zip(*sources); `shortest(a, b)` is the smaller of two run-time lengths."""
    plan = next((source.plan for source in sources if source.plan is not None), None)
    sources = [normalised_range(frame, source, node) for source in sources]
    held = tuple(h for source in sources for h in source.held)

    def get(k):
        return tuple(source.get(k) for source in sources)

    if all(source.trips is not None for source in sources):
        count = min((source.trips for source in sources), default=0)
        return Iterable(get, trips=count, held=held, tabulate=lambda: mapped(
            lambda *made: zip_(frame, made, shortest, node), *sources))
    if any(source.trips is not None for source in sources):
        raise frame.refuse("zip of a tuple with an array", node,
                           "index the tuple, or make it an array")
    length_of_all, extent = sources[0].bounds[1], sources[0].extent
    for source in sources[1:]:
        if extent is None or source.extent != extent or not isinstance(extent, (Extent, int)):
            length_of_all, extent = shortest(length_of_all, source.bounds[1]), None
    return Iterable(get, (0, length_of_all, 1), held=held, extent=extent, plan=plan)


def reversed_(frame: Frame, source: Iterable, node: gast.AST) -> Iterable:
    """reversed(source)."""
    return replace(_reversed(frame, source, node), plan=source.plan)


def _reversed(frame: Frame, source: Iterable, node: gast.AST) -> Iterable:
    if source.trips is not None:
        return Iterable(lambda k: source.get(source.trips - 1 - k), trips=source.trips,
                        held=source.held,
                        tabulate=lambda: mapped(lambda made: _reversed(frame, made, node), source))
    if source.is_range:
        lo, hi, step = source.bounds
        if _known(step) == 1:
            return range_over(value(hi) - 1, value(lo) - 1, -1)
        if all(isinstance(_known(b), int) for b in source.bounds):
            back = range(*map(_known, source.bounds))[::-1]
            return range_over(back.start, back.stop, back.step)
        raise frame.refuse("reversed(range) with a step", node, "write the range backwards")
    lo, hi, step = source.bounds
    return Iterable(source.get, (value(hi) - 1, -1, -1), held=source.held, extent=source.extent)


def pop_tape(frame: Frame, cell: Cell) -> Iterable:
    """reversed(tape), as in printed derivatives: each trip pops the last item of a tape of its own.
    """
    own = frame.heap.new(frame.heap.read(cell))

    def pop(_):
        tape, last = tape_pop(frame.heap.read(own))
        frame.write(own, tape)
        return frame.wrap(last)

    return Iterable(pop, (0, tape_len(frame.heap.read(own)), 1), held=(own,))
