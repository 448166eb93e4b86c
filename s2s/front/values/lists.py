"""Python's lists: methods, operators and indexing.

A list is a Cell.  While its length is known, the heap holds its items, each with its own binding,
and nothing of the list is left in generated code.  Where a run-time condition, trip or index
decides what it holds, it becomes a run-time list: one Value of type List.  Which of the two it is
changes nothing for the program.
"""

from __future__ import annotations

import functools

import gast

from ...errors import S2SError, TypeMismatchError
from ...ir.builder import current
from ...ir.graph import MISSING, OPERATORS, Value
from ...ir.types import UNDEFINED, Array, List, Scalar, Tuple, Unknown
from ...ops.core.control import tape_len, tape_pop, tape_push
from ...ops.core.define_elementwise import is_none
from ...ops.core.record import RECORDS, value
from ...ops.program.list_arrays import list_unstack
from ...ops.program.list_ops import list_copy, list_get, list_insert, list_pop_at, list_set
from ...ops.program.list_queries import list_contains
from ...ops.program.list_slices import list_join, list_slice
from ...ops.program.list_sums import list_full
from ..domain.frame import ExceptionObject, Frame, Text
from ..domain.functions import CarriesFunction, ConditionalObject, FunctionValue, MixedMembers
from ..domain.heap import Cell, Container, cells_in, is_shared, place_of_view
from ..domain.item_places import Place, has_places, line_site
from .exceptions import guard
from .list_views import askable, is_asked, view_of_items
from .messages import raise_
from .strings import is_member, looked_up, word

WRITES = ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort")
MOST_CHOSEN = 8  # items of a list, of which one is chosen at each read and write
COUNTED_AT_MOST = 64  # most trips of a loop that is unrolled because it indexes a tuple
METHODS = (*WRITES, "copy", "index", "count")


def new_list(frame: Frame, items) -> Cell:
    """A list of these bindings."""
    return frame.heap.new(tuple(items))


def is_list(frame: Frame, binding) -> bool:
    """Whether a binding is a list of the program's."""
    return isinstance(binding, Cell) and (frame.heap.items(binding) is not None
                                          or isinstance(frame.heap.type_of(binding), List))


def kinds_of_list(xs: Cell) -> set[type]:
    """The classes that a list may be of in Python: a tuple of run-time length is one here."""
    found, met = set(), list(xs.roots)
    known = set(met)
    for root in met:
        if root.is_tuple or not root.origins:
            found.add(tuple if root.is_tuple else list)
        else:  # the paths on which it is one of these, or a copy of them, meet here
            more = {other for cell in root.origins for other in cell.roots} - known
            met += more
            known |= more
    return found


def is_tuple(frame: Frame, binding) -> bool:
    """Whether a binding is a tuple of run-time length."""
    if not is_list(frame, binding):
        return False
    kinds = kinds_of_list(binding)
    if len(kinds) > 1:
        raise frame.refuse("what is a list on one path and a tuple on another", None,
                           "make it a list, or a tuple, on all paths")
    return tuple in kinds


def run_time_tuple(xs: Cell) -> Cell:
    """The same list, of which nobody has another, as a tuple."""
    xs.is_tuple = True
    return xs


def refuse_writing(frame: Frame, xs: Cell, how: str) -> None:
    """Refuse to change a tuple."""
    if is_tuple(frame, xs):
        raise TypeMismatchError(f"a tuple {how}", current().line, "make a list of it first")


def is_array(frame: Frame, binding) -> bool:
    """Whether a binding is an array, so that `xs += a` adds elementwise and does not extend xs."""
    if isinstance(binding, Value):
        return isinstance(binding.type, Array)
    return (isinstance(binding, Cell) and frame.heap.items(binding) is None
            and isinstance(frame.heap.type_of(binding), Array))


def as_list(frame: Frame, binding) -> Value:
    """A list, or what converts to one, as a Value of type List; the program's list is a run-time
    list from then on.
    """
    if isinstance(binding, Cell):
        items = frame.heap.items(binding)
        if items is None:
            content = frame.heap.read(binding)
            return content if isinstance(content.type, List) else list_unstack(content, depth=1)
        content = list_value(frame, items)
        binding.held = binding.alike = frozenset()
        share(frame, binding, items)
        frame.heap.contents[binding] = content
        return content
    if isinstance(binding, (tuple, list)):
        return list_value(frame, binding)
    raise TypeMismatchError("a list is needed", current().line, "pass a list")


def list_value(frame: Frame, items) -> Value:
    """The items of a list as one Value."""
    functions = [x for x in items if isinstance(x, FunctionValue)]
    if any(f is not functions[0] for f in functions):
        raise carries_functions(functions[0])
    return frame.heap.list_value(tuple(items))


def share(frame: Frame, xs: Cell, items) -> None:
    """Record that an item put into the list `xs` shares memory with what it holds."""
    for cell in frame.reachable_cells(tuple(items)):
        xs.hold(cell.family() | cell.root.held)


def hold_items(frame: Frame, xs: Cell, ys: Cell) -> None:
    """Record that `xs` holds the items of the run-time list `ys`, too, or rows of an array."""
    if isinstance(type := frame.heap.read(ys).type, Array):
        return xs.hold(ys.family() | ys.root.held) if type.rank > 1 else None
    if holds_shared(frame.heap.read(ys).type.item):
        ys.root.held |= {Cell()}
    xs.hold(ys.root.held)
    xs.root.alike |= ys.root.alike


# ----------------------------------------------------------------------------------------- elements


def take_item(frame: Frame, xs: Cell, key):
    """`xs[key]`."""
    items = frame.heap.items(xs)
    if isinstance(key, slice):
        return _slice(frame, xs, items, key)
    if (found := _item_of_view(frame, xs, key)) is not None:
        return found
    if items is not None and frame.is_static(key):
        return _member(frame, items, frame.static(key, "this index"))
    if items and all(isinstance(x, str) or is_member(x) for x in items):
        words = tuple(sorted(set(items), key=str))
        return word(looked_up([words.index(x) for x in items], index_of(frame, key)), words)
    if items is not None and not alike(frame, items):
        if not counting(frame, key) and (found := _member_by_member(frame, items, key)) is not None:
            return found
        raise MixedMembers("a run-time index into a list or tuple of unlike things",
                           current().line,
                           "keep numbers, or arrays of one rank, in a list of their own",
                           ranges=counting(frame, key))
    if items is not None and isinstance(list_value(frame, items).type.item, Unknown):
        raise_if_counted(frame, items, key)
    i = index_of(frame, key)
    is_place = line_site("item") in frame.session.one_of
    if items is not None and _is_one_of(frame, i, items):
        if frame.session.choosing or is_place:
            return conditional_item(frame, i, items)
        xs.carriers |= {line_site("item")}  # where it may be read otherwise
    content = as_list(frame, xs)
    if content.type.item == UNDEFINED:
        _outside(frame)
        raise TypeMismatchError("an item of a list into which nothing is put",
                                current().line, "append to it first")
    y = list_get(content, i)
    if is_place and xs.parts is None and holds_shared(y.type) and has_places(y.type):
        from_start = _counts_from_start(frame, i)
        if i.constant is not MISSING and not from_start:  # xs[-1] stays where it is now
            i, from_start = value(length_of_list(frame, xs)) + i, True
        return frame.heap.in_place(Place(xs, i, from_start), y)
    return binding_of_item(frame, xs, y)


def _member_by_member(frame: Frame, items: tuple, key):
    """items[key] of tuples of one length that no list holds, such as (name, number): each member
    of it by itself; None of other items.
    """
    kind, first = type(items[0]), items[0]
    if not all(isinstance(x, tuple) and type(x) is kind and len(x) == len(first) for x in items):
        return None
    members = [take_item(frame, new_list(frame, column), key) for column in zip(*items)]
    return kind._make(members) if hasattr(kind, "_make") else kind(members)


def _item_of_view(frame: Frame, xs: Cell, key):
    """`xs[key]` of a list that is a view (list_views.py); None of others, or if it is not known
    which item of the base that is.
    """
    if xs.parts is None or not xs.parts.is_open or isinstance(key, slice):
        return None
    i = index_of(frame, key)
    from_start = _counts_from_start(frame, i)
    return (xs.parts.item(frame, xs.base, i, from_start) if from_start or xs.parts.is_whole
            else None)


def _counts_from_start(frame: Frame, i: Value) -> bool:
    """Whether an index is certainly not negative."""
    if i.constant is not MISSING:
        return i.constant >= 0
    lo, _, step = map(value, frame.session.counters.get(i, (-1, 0, 0)))
    return MISSING not in (lo.constant, step.constant) and lo.constant >= 0 < step.constant


def raise_if_counted(frame: Frame, items: tuple, key) -> None:
    """Raise MixedMembers if the index into a tuple of arrays or tuples counts a short loop.

    When unrolled, such loops know the shape of each layer of a network; a list, which `items`
    become elsewhere, does not.
    """
    if all(isinstance(x, str) or is_member(x)
           or isinstance(x, Value) and isinstance(x.type, Scalar) for x in items):
        return
    ranges = [
        bounds for bounds in counting(frame, key)
        if (trips := known_range(bounds)) is not None and len(trips) <= COUNTED_AT_MOST
    ]
    if ranges:
        raise MixedMembers("a run-time index into a tuple",
                           current().line, "loop over the tuple", ranges=ranges)


def known_range(bounds: tuple) -> range | None:
    """The range of a loop's index; None if unknown."""
    known = [b.constant if isinstance(b, Value) else b for b in bounds]
    return range(*known) if all(isinstance(b, int) for b in known) else None


def counting(frame: Frame, key) -> list[tuple]:
    """The (lo, hi, step) of the loops on whose counters an index depends."""
    found, left = [], [key]
    while left:
        x = left.pop()
        if x in frame.session.counters:
            found.append(frame.session.counters[x])
        elif isinstance(x, Value) and x.op is not None:
            left.extend(x.op.inputs)
    return found


def _is_one_of(frame: Frame, i: Value, items: tuple) -> bool:
    """Whether `i` is provably an index of one of a few arrays, or objects of one class: t % 2 is 0
    or 1.
    """
    if not 2 <= len(items) <= MOST_CHOSEN:
        return False
    if not (all(isinstance(x, Cell) and isinstance(frame.heap.type_of(x), Array) for x in items)
            or all(isinstance(x, Container) and x.cls is getattr(items[0], "cls", None)
                   for x in items)):
        return False
    count = i.op.inputs[1].constant if i.op is not None and i.op.name == "remainder" else None
    return type(count) is int and 0 < count <= len(items)


def conditional_item(frame: Frame, i: Value, items: tuple) -> Cell | Container:
    """items[i] as a conditional array or object, chosen again at reads and writes: exact, where a
    run-time list would only know the candidates.
    """
    cell = items[-1]
    for k in reversed(range(len(items) - 1)):
        cell = frame.heap.chosen(OPERATORS["equal"](i, value(k)), items[k], cell)
    return cell


def binding_of_item(frame: Frame, xs: Cell, y: Value):
    """The binding of an item that is, or was, in a run-time list."""
    binding = frame.wrap(y)
    if (isinstance(binding, Value) and isinstance(y.type, Scalar)
        and any(map(_may_have_no_axes, xs.root.held))):
        binding = frame.heap.new(y)
        binding.doubtful = True
    site = line_site("item")
    for cell in cells_in(binding):
        cell.origins |= xs.root.held
        if frame.heap.captured in xs.root.held and is_list(frame, cell):
            cell.held |= xs.root.held
        cell.carriers |= {site}
        xs.root.held |= {cell}
    return binding


def binding_of_popped(frame: Frame, xs: Cell, y: Value):
    """The binding of an item that is in the run-time list no more."""
    if line_site("item") not in frame.session.one_of or xs.root.alike:
        return binding_of_item(frame, xs, y)
    # what it shares with others, which something leads to, but not with the items that are left
    found = {own for _, other in frame.reachable(True) for root in other.roots
             if root is not xs.root for own in root.origins | {root} | root.held}
    binding = frame.wrap(y)
    for cell in cells_in(binding):
        cell.origins |= xs.root.held & found
    return binding


def _may_have_no_axes(cell) -> bool:
    """Whether a cell may be an array of rank 0, which is typed as a number."""
    made = cell.made
    return isinstance(cell, Cell) and not (isinstance(made, tuple) or isinstance(
        made, Value) and isinstance(made.type, (Array, List)))


def place_in(frame: Frame, xs: Cell, key):
    """`xs[key]` as the target of an immediate write: a view of the list, if it is a run-time list.
    """
    items = frame.heap.items(xs)
    if getattr(xs, "parts", None) is not None:
        return _item_of_view(frame, xs, key)
    if (not is_list(frame, xs) or isinstance(key, slice)
            or items is not None and (frame.is_static(key) or not alike(frame, items))):
        return None
    i, site = index_of(frame, key), line_site("item")
    if items is not None and site in frame.session.one_of and _is_one_of(frame, i, items):
        return conditional_item(frame, i, items)
    y = list_get(as_list(frame, xs), i)
    if not is_shared(y.type):
        return None
    view = frame.heap.new_view(xs, y, lambda x: list_get(x, i), lambda x, v: list_set(x, v, i))
    view.carriers |= {site}
    return view


def put_item(frame: Frame, xs: Cell, key, new) -> None:
    """`xs[key] = new`."""
    refuse_writing(frame, xs, "cannot be written into")
    items = frame.heap.items(xs)
    if isinstance(key, slice):
        _put_slice(frame, xs, items, key, new)
        return
    if items is not None and frame.is_static(key):
        k = frame.static(key, "this index")
        _member(frame, items, k)
        frame.write(xs, (*items[:k % len(items)], new, *items[k % len(items) + 1:]))
        return
    if items is not None and not alike(frame, (*items, new)):
        raise MixedMembers("a run-time index into a list whose items are of another kind",
                           current().line,
                           "begin with items of the kind that is written, or append them",
                           ranges=counting(frame, key))
    i = index_of(frame, key)
    content = as_list(frame, xs)
    share(frame, xs, (new,))
    frame.write(xs, list_set(content, item_value(frame, new), i))


def _put_slice(frame: Frame, xs: Cell, items: tuple | None, key: slice, new) -> None:
    """`xs[lo:hi] = new`, of any length."""
    bounds = (key.start, key.stop, key.step)
    members = frame.members(new)
    if items is not None and members is not None and all(map(frame.is_static, bounds)):
        changed = list(items)
        try:
            changed[slice(*(frame.static(b, "a bound") for b in bounds))] = members
        except ValueError as error:
            raise TypeMismatchError(str(error),
                                    current().line, "give as many items as the slice has") from None
        if len(changed) != len(items):
            _not_run_over(frame, xs, None)
        frame.write(xs, tuple(changed))
        return
    if not (is_none(key.step)
            or frame.is_static(key.step) and frame.static(key.step, "a step") == 1):
        raise frame.refuse("writing into a slice of a list, with a step,", None,
                           "write the items one by one, or use an array")
    if members is None and not isinstance(new, Cell):
        raise TypeMismatchError("a slice of a list is to become what is no list",
                                current().line, "give it a list")
    _not_run_over(frame, xs, None)
    more = new if isinstance(new, Cell) else new_list(frame, members)
    content, added = as_list(frame, xs), as_list(frame, more)
    hold_items(frame, xs, more)
    lo, hi = (None if is_none(b) else frame.value(b) for b in bounds[:2])
    parts = [added]
    if lo is not None:
        parts.insert(0, list_slice(content, lo, flags=(False, True, False)))
    if hi is not None:
        if lo is not None and not _in_order(lo, hi):
            hi = tape_len(parts[0]) + tape_len(
                list_slice(content, lo, hi, flags=(True, True, False)))
        parts.append(list_slice(content, hi, flags=(True, False, False)))
    frame.write(xs, functools.reduce(list_join, parts))


def _in_order(lo: Value, hi: Value) -> bool:
    """Whether lo <= hi for lists of any length: both are counted from the same end."""
    a, b = lo.constant, hi.constant
    return type(a) is type(b) is int and (a < 0) == (b < 0) and a <= b


def exchange(frame: Frame, xs: Cell, key, other) -> None:
    """`xs[i], xs[j] = xs[j], xs[i]`: a swap aliases no two items that were distinct, as `xs[i] =
    xs[j]` alone would.
    """
    i, j = index_of(frame, key), index_of(frame, other)
    content = as_list(frame, xs)
    a, b = list_get(content, i), list_get(content, j)
    frame.write(xs, list_set(list_set(content, b, i), a, j))


def carries_functions(item: FunctionValue) -> CarriesFunction:
    """The error for a list of functions that a loop extends: where its trips are known, they are
    run one by one.
    """
    what = ("objects of unlike classes" if isinstance(item, ConditionalObject) else "functions")
    return CarriesFunction(f"a list of {what} whose length depends on run-time data",
                           current().line, "make it in a loop over a tuple, or over a range whose "
                           "bounds are known")


def item_value(frame: Frame, binding) -> Value:
    """An item for a run-time list, as a Value; lists in it become run-time lists."""
    if isinstance(binding, FunctionValue):
        raise carries_functions(binding)
    return frame.heap.list_value(
        (frame.session.demand(frame, binding, what="what is put into a list of numbers"),), False)


def index_of(frame: Frame, key) -> Value:
    i = frame.value(key)
    if (not isinstance(i.type, (Scalar, Unknown)) or (i.type.dtype or "int").startswith(
        ("float", "complex", "bool"))):
        raise TypeMismatchError(f"a list is indexed with {i.type}",
                                current().line, "index it with an integer or a slice")
    return i


def _member(frame: Frame, items: tuple, k):
    try:
        return items[k]
    except (IndexError, TypeError) as error:
        if isinstance(error, IndexError):
            _outside(frame)
        raise TypeMismatchError(
            str(error).replace("tuple", "list"),
            current().line, "index within the list") from None


def _outside(frame: Frame, message: str = "list index out of range") -> None:
    """Handle an index outside the currently known list: in a loop, an earlier trip may have
    appended there.

    The path ends, as in Python, if no trip has appended there; if one has, the loop is run again
    with that item.
    """
    guard(frame, IndexError, lambda: True, message)
    if frame.in_loop():
        raise_(frame, None, ExceptionObject(IndexError, (message,), {}))


def alike(frame: Frame, items) -> bool:
    """Whether a list of run-time length can hold all of these."""
    try:
        list_value(frame, items)
    except S2SError:
        return False
    return True


def _slice(frame: Frame, xs: Cell, items: tuple | None, key: slice) -> Cell:
    bounds = (key.start, key.stop, key.step)
    if items is not None and all(map(frame.is_static, bounds)):
        return new_list(frame, items[slice(*(frame.static(b, "a bound") for b in bounds))])
    if items is not None and not alike(frame, items):
        raise MixedMembers("a run-time slice of a list of unlike things", current().line,
                           "keep numbers, or arrays of one rank, in a list of their own",
                           ranges=[bounds for b in bounds for bounds in counting(frame, b)])
    content = as_list(frame, xs)
    if is_asked(frame) and (view := _slice_as_view(frame, xs, key)) is not None:
        return view
    given = [frame.value(b) for b in bounds if not is_none(b)]
    flags = tuple(not is_none(b) for b in bounds)
    part = sharing_items(frame, xs, list_slice(content, *given, flags=flags))
    return run_time_tuple(part) if is_tuple(frame, xs) else askable(part)


def _slice_as_view(frame: Frame, xs: Cell, key: slice) -> Cell | None:
    """A slice from a known start, by 1, as a view; None of others, and of tuples."""
    start = 0 if is_none(key.start) else frame.value(key.start).constant
    if type(start) is not int or start < 0 or not is_none(key.step) or is_tuple(frame, xs):
        return None
    return view_of_items(frame, xs, start, None if is_none(key.stop) else frame.value(key.stop))


def sharing_items(frame: Frame, xs: Cell, content: Value) -> Cell:
    """A new list of items of `xs`."""
    ys = frame.heap.new(content)
    if holds_shared(content.type.item):
        ys.held, ys.alike = xs.root.held | {Cell()}, xs.root.alike
        xs.root.held = ys.held
    return ys


def holds_shared(type) -> bool:
    """Whether values of this type may share memory: objects of nothing but numbers, too."""
    if not isinstance(type, Tuple):
        return is_shared(type)
    is_object = type.form is not None and type.form.kind in ("dict", "attributes")
    return is_object or any(map(holds_shared, type.items))


# ------------------------------------------------------------------------------------------ methods

RESIZING = {"append", "extend", "insert", "pop", "remove", "clear"}


def _may_be_one(a: Cell, b: Cell) -> bool:
    """Whether two lists may be the same list: of two parts of one list, those at the same place."""
    if a.root is not b.root or (a.base is None) is not (b.base is None):
        return False
    if (a.parts is None) is not (b.parts is None):
        return False  # an item of a list, and a slice of the list
    places = place_of_view(a), place_of_view(b)
    return None in places or places[0].xs is not places[1].xs or places[0].path == places[1].path


def _not_run_over(frame: Frame, xs: Cell, node: gast.AST | None) -> None:
    if any(_may_be_one(xs, other) for other in frame.session.run_over):
        raise frame.refuse("a list that changes its length while a loop runs over it", node,
                           "loop over a copy, xs[:], or say `while k < len(xs)`")


def apply_list_method(frame: Frame, xs: Cell, name: str, args: list, keywords: dict,
                      node: gast.AST):
    """`xs.name(*args)`."""
    if name not in ("index", "count"):
        refuse_writing(frame, xs, f"has no method {name}")
    if name not in METHODS:
        raise frame.refuse(f"the method {name} of a list", node,
                           "use append, pop, insert, extend and indices")
    if keywords:
        raise TypeMismatchError(f"list.{name}() takes no keyword arguments", frame.line(node),
                                "pass the arguments in order")
    least, most = {
        "append": (1, 1),
        "extend": (1, 1),
        "insert": (2, 2),
        "pop": (0, 1),
        "remove": (1, 1),
        "index": (1, 1),
        "count": (1, 1)
    }.get(name, (0, 0))
    if not least <= len(args) <= most:
        raise TypeMismatchError(f"list.{name}() is given {len(args)} arguments", frame.line(node),
                                "pass those that it takes")
    if name in RESIZING:
        _not_run_over(frame, xs, node)
    frame.live |= frame.pending
    items = frame.heap.items(xs)
    rule = (_STATIC[name]
            if items is not None and _stays_static(frame, xs, name, args) else _RUN_TIME.get(name))
    if rule is None:
        raise frame.refuse(f"the method {name} of a list that grows at run time", node,
                           "write it as a loop")
    return rule(frame, xs, items, *args)


def _stays_static(frame: Frame, xs: Cell, name: str, args: list) -> bool:
    match name:
        case "insert" | "pop":
            return all(map(frame.is_static, args[:1]))
        case "extend":
            return frame.members(args[0]) is not None
        case "remove" | "index" | "count":
            return frame.is_static(args[0]) and frame.is_static(xs)
    return True


def _pop_known(frame: Frame, xs: Cell, items: tuple, k=-1):
    k = frame.static(k, "this index")
    if not items:
        _outside(frame, "pop from empty list")
    popped = _member(frame, items, k)
    frame.write(xs, (*items[:k % len(items)], *items[k % len(items) + 1:]))
    return popped


def _insert_known(frame: Frame, xs: Cell, items: tuple, k, new) -> None:
    changed = list(items)
    changed.insert(frame.static(k, "this index"), new)
    frame.write(xs, tuple(changed))


def _ask_known(name: str):

    def ask(frame: Frame, xs: Cell, items: tuple, x):
        try:
            return getattr(frame.static(xs, "this list"), name)(frame.static(x, "this"))
        except ValueError as error:
            guard(frame, ValueError, lambda: True, *error.args)
            raise TypeMismatchError(str(error), current().line, "look for what it holds") from None

    return ask


def _remove_known(frame: Frame, xs: Cell, items: tuple, x) -> None:
    _pop_known(frame, xs, items, _ask_known("index")(frame, xs, items, x))


_STATIC = {
    "append": lambda frame, xs, items, new: frame.write(xs, (*items, new)),
    "extend": lambda frame, xs, items, more: frame.write(xs, (*items, *frame.members(more))),
    "insert": _insert_known,
    "pop": _pop_known,
    "remove": _remove_known,
    "clear": lambda frame, xs, items: frame.write(xs, ()),
    "reverse": lambda frame, xs, items: frame.write(xs, items[::-1]),
    "copy": lambda frame, xs, items: new_list(frame, items),
    "index": _ask_known("index"),
    "count": _ask_known("count"),
}


def _append(frame: Frame, xs: Cell, items, new) -> None:
    content = as_list(frame, xs)
    added = item_value(frame, new)
    share(frame, xs, (new,))
    frame.write(xs, tape_push(content, added))


def _extend(frame: Frame, xs: Cell, items, more) -> None:
    more = more if isinstance(more, Cell) else new_list(frame, more)
    content, added = as_list(frame, xs), as_list(frame, more)
    hold_items(frame, xs, more)
    frame.write(xs, list_join(content, added))


def _insert(frame: Frame, xs: Cell, items, i, new) -> None:
    content = as_list(frame, xs)
    added = item_value(frame, new)
    share(frame, xs, (new,))
    frame.write(xs, list_insert(content, added, index_of(frame, i)))


def _pop(frame: Frame, xs: Cell, items, i=None):
    content = as_list(frame, xs)
    if content.type.item == UNDEFINED:
        _outside(frame, "pop from empty list")
        raise TypeMismatchError("pop from a list into which nothing is put",
                                current().line, "append to it first")
    last = i is None or frame.is_static(i) and frame.static(i, "this index") == -1
    rest, popped = tape_pop(content) if last else list_pop_at(content, index_of(frame, i))
    frame.write(xs, rest)
    return binding_of_popped(frame, xs, popped)


def _copy(frame: Frame, xs: Cell, items) -> Cell:
    return sharing_items(frame, xs, list_copy(as_list(frame, xs)))


def _reverse(frame: Frame, xs: Cell, items) -> None:
    frame.write(xs, list_slice(as_list(frame, xs), value(-1), flags=(False, False, True)))


def _remove(frame: Frame, xs: Cell, items, x) -> None:
    _pop(frame, xs, items, RECORDS["list_index"](as_list(frame, xs), frame.value(x)))


def _ask(name: str):

    def ask(frame: Frame, xs: Cell, items, x):
        return RECORDS[f"list_{name}"](as_list(frame, xs), frame.value(x))

    return ask


_RUN_TIME = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "remove": _remove,
    "copy": _copy,
    "reverse": _reverse,
    "index": _ask("index"),
    "count": _ask("count"),
    "clear": lambda frame, xs, items: frame.write(
        xs, list_slice(as_list(frame, xs), value(0), flags=(False, True, False))),
}

LIST_METHODS = {*_STATIC, *_RUN_TIME, "sort"}


def put_in_order(frame: Frame, xs: Cell, ordered: Cell) -> None:
    """`xs.sort()`, given the sorted content."""
    frame.live |= frame.pending
    items = frame.heap.items(ordered)
    frame.write(xs, items if items is not None else frame.heap.read(ordered))


# ---------------------------------------------------------------------------------------- operators


def join_lists(frame: Frame, a: Cell, b: Cell) -> Cell:
    """`a + b`."""
    first, second = frame.heap.items(a), frame.heap.items(b)
    if first is not None and second is not None:
        return new_list(frame, (*first, *second))
    return _joined(frame, a, b)


def _joined(frame: Frame, *parts) -> Cell:
    """The concatenation of these lists or tuples as a run-time list."""
    parts = [part if isinstance(part, Cell) else new_list(frame, part) for part in parts]
    joined = frame.heap.new(
        functools.reduce(list_join, [as_list(frame, part) for part in parts]))
    for part in parts:
        hold_items(frame, joined, part)
    return joined


def repeat_list(frame: Frame, xs: Cell, count) -> Cell:
    """`xs * count`."""
    items = frame.heap.items(xs)
    if (items is not None and frame.is_static(count)
            and len(items) * max(frame.static(count, "a count"), 0) <= 256):
        return new_list(frame, items * frame.static(count, "a count"))
    if items is not None and len(items) > 1:
        return new_list(frame, items * frame.static(count, "how often a list of several items is "
                                                    "repeated"))
    if items is None or len(items) != 1:
        raise frame.refuse("a list of run-time length times a number", None,
                           "append the items in a loop")
    repeated = frame.heap.new(list_full(item_value(frame, items[0]), frame.value(count)))
    share(frame, repeated, items)
    repeated.alike = (repeated.held
                      if holds_shared(frame.heap.read(repeated).type.item) else frozenset())
    return repeated


def extend_in_place(frame: Frame, xs: Cell, more) -> None:
    """`xs += more`."""
    apply_list_method(frame, xs, "extend", [more], {}, None)


def repeat_in_place(frame: Frame, xs: Cell, repeated: Cell, node: gast.AST) -> None:
    """`xs *= count`, given `xs * count`."""
    _not_run_over(frame, xs, node)
    put_in_order(frame, xs, repeated)
    xs.hold(repeated.root.held)


def is_text(x) -> bool:
    """Whether a binding is a static text or None."""
    return x is None or isinstance(x, str)


def contains(frame: Frame, x, xs: Cell):
    """`x in xs`."""
    items = frame.heap.items(xs)
    if items is not None and (is_text(x) or any(map(is_text, items))):  # a text is not a number
        if any(isinstance(each, Text) for each in (x, *items)):
            raise frame.refuse("`in` with texts of a run", None, "compare with == and `or`")
        alike = [item for item in items if is_text(item) == is_text(x) or isinstance(item, Cell)]
        if all(map(is_text, (x, *alike))):
            return value(x in alike)
        xs = new_list(frame, alike)
    return list_contains(frame.value(x), as_list(frame, xs))


def length_of_list(frame: Frame, xs: Cell):
    """len(xs)."""
    items = frame.heap.items(xs)
    return len(items) if items is not None else tape_len(frame.heap.read(xs))


def unpack_list(frame: Frame, xs: Cell, count: int, star: int | None) -> list:
    """The bindings of `a, b, *c = xs`, for a run-time list."""
    after = 0 if star is None else count - 1 - star
    bindings = []
    for k in range(count):
        if k == star:
            bindings.append(take_item(frame, xs, slice(star, -after if after else None, None)))
        else:
            bindings.append(take_item(frame, xs, k if star is None or k < star else k - count))
    return bindings
