"""The tests of `match` patterns on their subject.

front/syntax/desugar.py writes a pattern as calls of these functions; `QUESTIONS` implements each.
NumPy's arrays are no sequences to `match`, as in Python.
"""

from __future__ import annotations

from ...errors import TypeMismatchError
from ...ir.graph import OPERATORS
from ...library.match_markers import has_key, is_mapping, is_sequence, member, others_of
from ...ops.core.control import tape_len
from ..control.iterables import Iterable
from ..domain.frame import Frame, Object
from ..domain.heap import Cell, Container
from ..values.dicts import new_dict
from ..values.lists import is_list
from ..values.objects import read

# `float(x)` captures a number
CAPTURE_THEMSELVES = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)


def _is_sequence(frame: Frame, node, subject, count, more):
    subject = frame.contents_of(subject)
    if frame.members(subject) is not None:
        return (len(frame.members(subject)) >= count if more
                else len(frame.members(subject)) == count)
    if isinstance(subject, Cell) and is_list(frame, subject):
        length = tape_len(frame.heap.read(subject))
        return OPERATORS["greater_equal" if more else "equal"](length, count)
    if isinstance(subject, (Iterable, range)):
        raise frame.refuse("a sequence pattern for a range", node, "make it a tuple first")
    return False


def _is_mapping(frame: Frame, node, subject):
    subject = frame.contents_of(subject)
    return isinstance(subject, Container) and subject.is_dict


def _has_key(frame: Frame, node, subject, key):
    return frame.static(key, "this key", node) in frame.contents_of(subject).members


def _others_of(frame: Frame, node, subject, keys):
    subject = frame.contents_of(subject)
    taken = {frame.static(key, "this key", node) for key in keys}
    return new_dict(frame, {
        key: binding
        for key, binding in subject.members.items() if key not in taken
    })


def _member(frame: Frame, node, subject, kind, k):
    if kind in CAPTURE_THEMSELVES and k == 0:
        return subject
    names = getattr(kind, "__match_args__", ())
    if k >= len(names):
        raise TypeMismatchError(f"{kind.__name__} accepts {len(names)} positional patterns",
                                frame.line(node), "name the attributes")
    return (frame.attribute_of(subject, names[k]) if isinstance(subject, Object)
            else read(frame, subject, names[k], node))


QUESTIONS = {
    is_sequence: _is_sequence,
    is_mapping: _is_mapping,
    has_key: _has_key,
    others_of: _others_of,
    member: _member
}
