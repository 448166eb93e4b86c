"""The functions of library/containers.py on hash tables and sets, each of which is an op.

A hash table is a Cell, as a list is, whose content is a Value from its creation on.
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from ...ir.builder import current, emit
from ...ir.graph import OPERATORS, Value
from ...library import containers
from ...ops.core.record import value
from ...ops.program.hash_tables import (
    hash_find,
    hash_keys,
    hash_last,
    hash_len,
    hash_of,
    hash_places,
    hash_put,
    hash_remove,
    set_add,
    set_contains,
    set_discard,
    set_of,
)
from ..domain.frame import Frame
from ..domain.heap import Cell
from ..values.dict_views import KeyedView
from ..values.dicts import RuntimeKeys, is_key_type, may_be_key
from ..values.lists import new_list


def _key(frame: Frame, table: Cell, key) -> Value:
    found = frame.value(key) if may_be_key(key) else None
    if found is None or not is_key_type(found.type):
        what = "this" if found is None else found.type
        error = RuntimeKeys(
            f"{what} as a key of a dict, or in a set, that depends on run-time data",
            current().line, "use integers, or tuples of them, as keys")
        error.site = table.site
        raise error
    return found


def _asks(record) -> Callable:
    """The meaning of a function that looks for a key."""
    def look(frame: Frame, node: gast.AST, table: Cell, key) -> Value:
        content = frame.heap.read(table)
        if record is hash_find and may_be_key(key):
            place = frame.session.key_places.get((content, key))
            if place is not None:
                return place
        return record(content, _key(frame, table, key))

    return look


def _compares(compare: Callable, if_known: bool) -> Callable:
    """The meaning of a function that asks whether a key has been found at a place."""
    def look(frame: Frame, node: gast.AST, place) -> Value | bool:
        is_known = any(place is x for x in frame.session.key_places.values())
        return if_known if is_known else compare(value(place), value(0))

    return look


def _writes(record) -> Callable:
    """The meaning of a function that puts a key in, or takes it out."""
    def change(frame: Frame, node: gast.AST, table: Cell, key, *place) -> None:
        frame.live |= frame.pending
        frame.write(table, record(frame.heap.read(table), _key(frame, table, key),
                                  *map(frame.value, place)))

    return change


def _keys(frame: Frame, node: gast.AST, table: Cell) -> Cell:
    found = hash_keys(frame.heap.read(table))
    if found.op.name == "list_of":  # they are known
        return new_list(frame, map(frame.wrap, found.op.inputs))
    return frame.heap.new(found)


def _copied(frame: Frame, node: gast.AST, table: Cell) -> Cell:
    made = frame.heap.new(frame.heap.read(table))
    made.site = table.site
    return made


FUNCTIONS_OF_TABLES: dict[Callable, Callable] = {
    containers.new_table: lambda frame, node: frame.heap.new(emit(hash_of)),
    containers.find: _asks(hash_find),
    containers.is_there: _compares(OPERATORS["greater_equal"], True),
    containers.is_missing: _compares(OPERATORS["less"], False),
    containers.put: _writes(hash_put),
    containers.remove: _writes(hash_remove),
    containers.new_set: lambda frame, node: frame.heap.new(emit(set_of)),
    containers.is_in: _asks(set_contains),
    containers.add: _writes(set_add),
    containers.discard: _writes(set_discard),
    containers.copied: _copied,
    containers.count_keys: lambda frame, node, table: hash_len(frame.heap.read(table)),
    containers.keys_in: _keys,
    containers.last_in: lambda frame, node, table: frame.wrap(hash_last(frame.heap.read(table))),
    containers.places_in: lambda frame, node, table: frame.heap.new(
        hash_places(frame.heap.read(table))),
    containers.view: lambda frame, node, of, listed: KeyedView(of, listed),
    containers.in_any_order: lambda frame, node, source: source,  # which is a list by then
}
