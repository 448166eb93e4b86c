"""Captured lists of numbers, arrays, tuples and dataclasses of them, as one parameter each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...ir.graph import MISSING
from ...ir.treedef import form_of, is_container
from ..domain.frame import Frame, Object
from ..syntax.captures import Item, Member, has_equal_shapes, is_table, type_of_data
from ..syntax.dependencies import EqualShapes, note_dependency


def outside_items(frame: Frame, outside: Object) -> tuple | None:
    """The items of a captured list of data, as members of one parameter that is the list; None if
    it holds anything else, or if the program writes into it.
    """
    content, getter = outside.content, outside.getter
    if type(content) is not list or not frame.session.tables.allowed or not is_table(content):
        return None
    if not all(frame.kept_outside(*place) is MISSING
               for place in _places(content, getter, outside.name)):
        return None
    equal = has_equal_shapes(content)
    if equal is not None:
        note_dependency(EqualShapes(getter), equal)
    frame.session.tables.used = True
    frame.session.tables.getters.add(getter)
    items = frame.captured(type_of_data(content, ""), getter, outside.name,
                           lambda _, name: type_of_data(content, name, equal is True))
    for cell in frame.reachable_cells(items):
        cell.owner = outside.name
    return frame.heap.items(items)


def _places(content, getter: Callable, name: str) -> Iterator[tuple[Callable, str]]:
    """The getters of all that is in a captured container, and names for them."""
    form = form_of(content) if is_container(content) else None
    if form is None:
        return
    for key, member in zip(form.keys, form.members(content)):
        inner = (Item if form.kind == "list" else Member)(getter, key)
        yield inner, name
        yield from _places(member, inner, name)
