"""The functions of library/containers.py on hash tables, each of which is an op.

A hash table is a Cell, as a list is, whose content is a Value from its creation on.
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from ...errors import TypeMismatchError
from ...ir.builder import current, emit
from ...ir.graph import Value
from ...ir.types import Scalar, Tuple, Type, Unknown
from ...library import containers
from ...ops.program.hash_tables import (
    hash_find,
    hash_keys,
    hash_len,
    hash_of,
    hash_places,
    hash_put,
    hash_remove,
)
from ..domain.frame import Frame
from ..domain.heap import Cell
from .lists import new_list


def _is_key(type: Type) -> bool:
    if isinstance(type, Tuple):
        return type.form is None and all(map(_is_key, type.items))
    return isinstance(type, (Scalar, Unknown))


def _key(frame: Frame, key) -> Value:
    found = frame.value(key)
    if not _is_key(found.type):
        raise TypeMismatchError(
            f"{found.type} as a key of a dict whose keys depend on run-time data", current().line,
            "use integers, or tuples of them, as keys")
    return found


def _new(frame: Frame, node: gast.AST) -> Cell:
    return frame.heap.new(emit(hash_of))


def _find(frame: Frame, node: gast.AST, table: Cell, key) -> Value:
    return hash_find(frame.heap.read(table), _key(frame, key))


def _put(frame: Frame, node: gast.AST, table: Cell, key, place) -> None:
    frame.live |= frame.pending
    frame.write(table, hash_put(frame.heap.read(table), _key(frame, key), frame.value(place)))


def _remove(frame: Frame, node: gast.AST, table: Cell, key) -> None:
    frame.live |= frame.pending
    frame.write(table, hash_remove(frame.heap.read(table), _key(frame, key)))


def _keys(frame: Frame, node: gast.AST, table: Cell) -> Cell:
    found = hash_keys(frame.heap.read(table))
    if found.op.name == "list_of":  # they are known
        return new_list(frame, map(frame.wrap, found.op.inputs))
    return frame.heap.new(found)


FUNCTIONS_OF_TABLES: dict[Callable, Callable] = {
    containers.new_table: _new,
    containers.find: _find,
    containers.put: _put,
    containers.remove: _remove,
    containers.count_keys: lambda frame, node, table: hash_len(frame.heap.read(table)),
    containers.keys_in: _keys,
    containers.places_in: lambda frame, node, table: frame.heap.new(
        hash_places(frame.heap.read(table))),
}
