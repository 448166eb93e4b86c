"""Writes to objects that the program has captured: `self.nfev += 1`, `history.append(loss)`,
`counts[k] = n`, `buffer[i] = x`.

A statement is one op, which carries it out.  What an array holds is stored when the function ends:
until then, it is an array of the program.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CellType, FunctionType, ModuleType, SimpleNamespace

import gast
import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import emit
from ...ir.graph import Block, Value, walk
from ...ir.types import Array, List
from ...ops.core.copy import copy_record
from ...ops.program.effects import Operand, Plain
from ...ops.program.outside_writes import (
    Attribute,
    Copied,
    Elements,
    Item,
    Method,
    Named,
    Write,
    write_outside,
    writes_in,
)
from ..domain.frame import Frame, Object
from ..domain.functions import FunctionValue
from ..domain.heap import Cell, Container, stored_error
from ..domain.outside import ALL, home, meet, module_of, place_of, place_of_item
from ..syntax.captures import Closed, Fixed, Global, Member
from ..syntax.captures import Item as ItemOf
from ..syntax.dependencies import note_dependency
from .messages import Layout

STATE = "<outside>"  # a name that no program can have
LISTS, DICTS = (list, deque), (dict, OrderedDict, defaultdict)
# the methods that write and return nothing
METHODS = {list.append, list.extend, list.insert, list.clear, deque.append, deque.appendleft,
           deque.extend, deque.extendleft, deque.clear, dict.update, dict.clear,
           OrderedDict.update, OrderedDict.clear, set.add, set.update, set.discard, set.clear}


@dataclass
class Stored(Layout):
    """The templates of what is stored outside: arrays are copied."""

    copies: bool = True

    def template(self, binding, shown: bool = False):
        if isinstance(binding, Container) and binding.cls is not dict:
            raise self.refuse(f"a {binding.cls.__name__} that the function has made")
        if isinstance(binding, FunctionValue):
            raise self.refuse("a function defined inside this one")
        if isinstance(binding, Object):
            return Named(binding.content)
        if not isinstance(binding, (Value, Cell)) and _is_named(binding):
            return Named(binding)
        return super().template(binding, shown)

    def operand(self, x: Value):
        while self.copies and x.op is not None and x.op.record is copy_record:
            x = x.op.inputs[0]
        if isinstance(x.type, List):
            raise self.refuse("a list that grows at run time")
        found = super().operand(x)
        return (Copied(found.index) if self.copies and isinstance(found, Operand)
                and not _is_number(x) else found)

    def refuse(self, what: str):
        return self.frame.refuse(f"{what} is stored outside the function", self.node,
                                 "store numbers, arrays, and tuples, lists and dicts of them")


def _is_number(x: Value) -> bool:
    return not isinstance(x.type, Array)


def _is_named(x) -> bool:
    """Whether an object is one that the program has by name: a class, a function, a module."""
    return isinstance(x, (type, ModuleType)) or callable(x)


# --------------------------------------------------------------------------------- the statements


def is_outside(binding) -> bool:
    """Whether `binding` is an object from outside whose attributes or items can be written."""
    return isinstance(binding, Object) or isinstance(binding, (deque, set)) or (
        isinstance(binding, type) and "__dict__" in dir(binding)
        and binding.__module__ not in ("builtins", "numpy"))


def is_list_outside(binding) -> bool:
    """Whether `binding` is a list from outside, which `+=` extends."""
    return isinstance(binding, Object) and isinstance(binding.content, LISTS)


def is_array_of(base, name: str) -> bool:
    """Whether an attribute is an array, which `op=` writes into."""
    content = getattr(_content(base), name, None)
    return isinstance(content, np.ndarray) and content.ndim > 0


def _content(base):
    return base.content if isinstance(base, Object) else base


def write_attribute(frame: Frame, base, name: str, binding, node: gast.AST) -> None:
    """`base.name = binding`, of an object outside."""
    owner = _owner_of_attribute(frame, base, name, node)
    _write(frame, base, Attribute(name), (home(owner), name), binding, node)


def augment_attribute(frame: Frame, base, name: str, operator: str, binding, again: Callable,
                      node: gast.AST) -> None:
    """`base.name op= binding`, of an object outside; `again` computes the new binding from the old
    one.
    """
    owner = _owner_of_attribute(frame, base, name, node)
    _augment(frame, base, Attribute(name), (home(owner), name), operator, binding, again, node)


def _owner_of_attribute(frame: Frame, base, name: str, node: gast.AST):
    """The object whose attribute is written; refused where that runs code of the class."""
    owner = _content(base)
    _note(base)
    if isinstance(owner, (ModuleType, CellType)):
        return owner
    cls = owner if isinstance(owner, type) else type(owner)
    own = next((vars(each)[name] for each in cls.__mro__ if name in vars(each)), None)
    if isinstance(cls.__setattr__, FunctionType) and not isinstance(owner, type) or (
            hasattr(own, "__set__") and type(own).__name__ != "member_descriptor"):
        raise frame.refuse(f"writing to the attribute {name} of a {cls.__name__}, whose class says "
                           "what that does", node, "write to plain attributes")
    return owner


def _note(base) -> None:
    """Record that the code depends on which object this is."""
    if isinstance(base, Object) and not isinstance(base.getter, Fixed):
        note_dependency(base.getter, base.content)


def write_item(frame: Frame, base: Object, key, binding, node: gast.AST | None = None) -> None:
    """`base[key] = binding`, of a list or dict outside."""
    _write(frame, base, *_item(frame, base, key, node), binding, node)


def augment_item(frame: Frame, base: Object, key, operator: str, binding, again: Callable,
                 node: gast.AST) -> None:
    """`base[key] op= binding`, of a list or dict outside."""
    _augment(frame, base, *_item(frame, base, key, node), operator, binding, again, node)


def _item(frame: Frame, base: Object, key, node) -> tuple:
    owner = _content(base)
    if not isinstance(owner, (*LISTS, *DICTS)):
        raise frame.refuse(f"writing to an item of a {type(owner).__name__} outside the function",
                           node, "make it inside, or pass it as an argument and return what "
                           "changes")
    _note(base)
    if frame.is_static(key) and not isinstance(key, slice):
        known = frame.static(key, "this key")
        return Item(Plain(known)), place_of_item(owner, known)
    return key, (id(owner), ALL)


def write_method(base, name: str) -> Callable | None:
    """What runs the method `name` of a list, dict or set outside that changes it, as a function of
    (frame, node, *args); None for other methods.
    """
    owner = _content(base)
    if type(owner) not in (*LISTS, *DICTS, set) or getattr(type(owner), name, None) not in METHODS:
        return None

    def run(frame: Frame, node: gast.AST, *args, **keywords) -> None:
        if keywords and type(owner) not in DICTS:
            raise frame.refuse(f"{name} called with keywords", node, "pass its arguments in order")
        _note(base)
        _touch(frame, (id(owner), ALL), base)
        given = list(args)
        if keywords:
            given = [*given, frame.heap.new_container(dict, keywords)]
        layout = Stored(frame, node, [])
        items = tuple(map(layout.template, given))
        _note_stored(frame, given)
        emit(write_outside, *layout.inputs,
             write=Write(owner, Method(name), items, name=name_of(base)))

    return run


def _touch(frame: Frame, place: tuple, base) -> None:
    if frame.session.outside.note_write(place):
        raise frame.refuse_both(getattr(base, "name", "this"))


def name_of(base) -> str:
    """The name of an object outside in generated code; "" for its own, or the one of its class."""
    content = _content(base)
    if isinstance(content, CellType):
        return f"{base.name}_cell"
    if isinstance(base, Object) and base.name != "self" and not isinstance(content, ModuleType):
        return base.name
    return ""


def _write(frame: Frame, base, place, key: tuple, binding, node) -> None:
    if frame.session.outside.note_write(key):
        raise frame.refuse_both(getattr(place, "name", "a list or dict"))
    frame.session.outside.bound.add(key)
    layout = Stored(frame, node, [])
    place = _with_key(layout, place)
    items = (layout.template(binding),)
    _note_stored(frame, binding)
    emit(write_outside, *layout.inputs,
         write=Write(_content(base), place, items, name=name_of(base)))
    keep(frame, key, binding)


def _augment(frame: Frame, base, place, key: tuple, operator: str, binding, again: Callable,
             node) -> None:
    state = frame.session.outside
    if state.note_write(key):
        raise frame.refuse_both(getattr(place, "name", "a list or dict"))
    layout = Stored(frame, node, [], copies=False)
    place = _with_key(layout, place)
    items = (layout.template(binding),)
    _note_stored(frame, frame.members(binding) or ())
    emit(write_outside, *layout.inputs,
         write=Write(_content(base), place, items, operator, name=name_of(base)))
    if key in state.tracked:
        if key not in state.state.members:
            raise TypeMismatchError(
                f"{place.name if isinstance(place, Attribute) else 'the item'} has no value yet",
                frame.line(node), "set it before the call")
        keep(frame, key, again(state.state.members[key]))


def _note_stored(frame: Frame, binding) -> None:
    """Record that what a binding holds is stored outside, as copies: nothing may write into it."""
    for cell in frame.reachable_cells(binding):
        if any(root.getter is not None and place_of(root.getter) in frame.session.outside.written
               for root in cell.roots):
            raise stored_error("array")
        frame.heap.stored |= cell.family()


def _with_key(layout: Layout, place):
    """A place, with its key, which is a binding, as a template."""
    return place if isinstance(place, (Attribute, Item)) else Item(layout.template(place))


def keep(frame: Frame, key: tuple, binding) -> None:
    """Bind what is tracked anew."""
    state = frame.session.outside.state
    if state is not None and key in frame.session.outside.tracked:
        frame.heap.store(state, {**state.members, key: binding}, list(frame.reachable()))


def bind_state(frame: Frame) -> None:
    """Bind what is tracked to what it is before the program runs."""
    members, outside = {}, frame.session.outside
    if not outside.tracked:
        return
    for place, (getter, name) in outside.tracked.items():
        try:
            content = getter()
        except (AttributeError, LookupError, ValueError):
            continue  # the program makes it
        members[place] = frame.outside(content, getter, name)
    outside.state = frame.env[STATE] = frame.heap.new_container(SimpleNamespace, members)


def mark_carried(block: Block, read: Iterable[Callable], asked: Iterable[tuple]) -> None:
    """Mark the writes to places of which the program reads, by `read`, what they are before the
    call, or asks, of those `asked`, whether they are there.
    """
    places = {place for getter in read if (place := place_of(getter)) is not None} | {*asked}
    for op in walk(block):
        if op.record is write_outside and written_place(op.attrs["write"]) in places:
            op.attrs["write"].carries = True


def written_by_callee(frame: Frame, function) -> set[tuple]:
    """The places to which a transformed function writes, which the program calls; refused where it
    would read there what was before.
    """
    outside = frame.session.outside
    reads = {place for getter in function.captures.values()
             if (place := place_of(getter)) is not None}
    if meet(reads, outside.inner):
        raise frame.refuse_both(function.name)
    writes = {written_place(write) or (home(write.owner), ALL) for write in writes_in(function)}
    if meet(writes, outside.tracked) or frame.in_loop() and meet(writes, reads | {*outside.read}):
        raise frame.refuse_both(function.name)
    return writes


def written_place(write: Write) -> tuple | None:
    """The place that a write changes; None for any item of a list or dict."""
    match write.place:
        case Attribute(name) | Elements(Attribute(name)):
            return home(write.owner), name
        case Item(Plain(key)) | Elements(Item(Plain(key))):
            return place_of_item(write.owner, key)
    return None


# ------------------------------------------------------------------------------------------ arrays


def store_arrays(frame: Frame) -> None:
    """Store what the captured arrays hold now that the function ends."""
    for getter, (param, binding) in frame.session.captures.items():
        if not isinstance(binding, Cell) or frame.heap.contents.get(binding, param) is param:
            continue
        _refuse_other_names(frame, getter)
        if place_of(getter) in frame.session.outside.bound:
            raise frame.refuse(f"this function writes into the array {param.name} outside, and "
                               "binds its name to another", None,
                               "do one of them: `a = a + x` instead of `a += x`")
        owner, place, name = located(getter, param.name)
        note_dependency(getter.owner if hasattr(getter, "owner") else getter, owner)
        content = frame.heap.read(binding)
        emit(write_outside, content,
             write=Write(owner, Elements(place), (Operand(0),), name=name))


def located(getter: Callable, called: str) -> tuple:
    """The object that holds what `getter` reads, where, and its name in generated code, in which
    the array is `called` so.
    """
    match getter:
        case Member(owner, name):
            return owner(), Attribute(name), ""
        case ItemOf(owner, key):
            return owner(), Item(Plain(key)), called.removesuffix(f"_{key}")
        case Closed(cell):
            return cell, Attribute("cell_contents"), f"{called}_cell"
        case Global(namespace, name):
            module = module_of(namespace)
            return ((namespace, Item(Plain(name)), "variables") if module is None
                    else (module, Attribute(name), ""))
    raise AssertionError(getter)


def _refuse_other_names(frame: Frame, written: Callable) -> None:
    """Refuse the write where another captured array shares memory with it."""
    array = written()
    for getter, (_, binding) in frame.session.captures.items():
        if getter is not written and isinstance(binding, Cell):
            other = getter()
            note_dependency(getter, other)
            if isinstance(other, np.ndarray) and np.shares_memory(array, other):
                raise frame.refuse("this function writes into an array outside that it knows by "
                                   "two names", None, "use one of them, or pass it as an argument")
