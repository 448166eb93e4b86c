"""Captured lists of numbers, arrays, tuples and objects of them, as one parameter each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...ir.graph import MISSING
from ...ir.treedef import form_of, is_container
from ..domain.frame import Frame, Object
from ..syntax.captures import (
    Item,
    Member,
    Opened,
    has_equal_shapes,
    is_table,
    is_table_of_objects,
    type_of_data,
)
from ..syntax.dependencies import Classes, EqualShapes, note_dependency


def outside_items(frame: Frame, outside: Object) -> tuple | None:
    """The items of a captured list of data, as members of one parameter that is the list; None if
    it holds anything else, or if the program writes into it.
    """
    content, getter = outside.content, outside.getter
    if type(content) is not list or not frame.session.tables.allowed:
        return None
    cls = None
    if not is_table(content):
        if not is_table_of_objects(content):
            return None
        cls, getter = type(content[0]), Opened(getter)
    if not all(frame.kept_outside(*place) is MISSING
               for place in _places(content, outside.getter, outside.name)):
        return None
    if cls is not None:
        note_dependency(classes := Classes(outside.getter), classes())
        content = getter()
    equal = has_equal_shapes(content)
    if equal is not None:
        note_dependency(EqualShapes(getter), equal)
    frame.session.tables.used = True
    frame.session.tables.getters[outside.getter] = getter
    made = frame.captured(type_of_data(content, ""), getter, outside.name,
                          lambda _, name: type_of_data(content, name, equal is True))
    items = frame.heap.items(made)
    if cls is not None:
        items = tuple(frame.heap.new_container(cls, dict(item.members)) for item in items)
    for cell in frame.reachable_cells((made, items)):
        cell.owner = outside.name
        cell.origins |= {frame.heap.captured}
    return items


def _places(content, getter: Callable, name: str) -> Iterator[tuple[Callable, str]]:
    """The getters of all that is in a captured container, and names for them."""
    if type(content) is list:
        found = [(Item(getter, k), member) for k, member in enumerate(content)]
    elif is_container(content) and (form := form_of(content)) is not None:
        found = [(Member(getter, key), member)
                 for key, member in zip(form.keys, form.members(content))]
    else:
        found = [(Member(getter, key), member)
                 for key, member in getattr(content, "__dict__", {}).items()]
    for inner, member in found:
        yield inner, name
        yield from _places(member, inner, name)
