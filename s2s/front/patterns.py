"""What the patterns of `match` ask of their subject.

plain.py writes a pattern as calls of these functions; `QUESTIONS` says what each call means.  NumPy's arrays
are no sequences to `match`, as in Python.
"""

from __future__ import annotations

from ..errors import TypeMismatchError
from ..ir.graph import OPERATORS
from ..ops.control import tape_len
from .alias import Cell, Container
from .containers import new_dict
from .frame import Frame, Object
from .iterables import Iterable
from .lists import is_list
from .objects import read

CAPTURE_THEMSELVES = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)  # `float(x)` captures a number


def is_sequence(subject, count: int, more: bool):
    """Whether a sequence pattern of `count` members, or of `more`, may fit."""


def is_mapping(subject):
    """Whether a mapping pattern may fit."""


def has_key(subject, key):
    """Whether a mapping has a key."""


def others_of(subject, keys):
    """A dict without some of its keys."""


def member(subject, kind, k: int):
    """What the k-th positional pattern of a class is matched against."""


def _is_sequence(frame: Frame, node, subject, count, more):
    subject = frame.opened(subject)
    if frame.members(subject) is not None:
        return len(frame.members(subject)) >= count if more else len(frame.members(subject)) == count
    if isinstance(subject, Cell) and is_list(frame, subject):
        length = tape_len(frame.heap.read(subject))
        return OPERATORS["greater_equal" if more else "equal"](length, count)
    if isinstance(subject, (Iterable, range)):
        raise frame.refuse("a sequence pattern for a range", node, "make it a tuple first")
    return False


def _is_mapping(frame: Frame, node, subject):
    subject = frame.opened(subject)
    return isinstance(subject, Container) and subject.is_dict


def _has_key(frame: Frame, node, subject, key):
    return frame.static(key, "this key", node) in frame.opened(subject).members


def _others_of(frame: Frame, node, subject, keys):
    subject = frame.opened(subject)
    taken = {frame.static(key, "this key", node) for key in keys}
    return new_dict(frame, {key: binding for key, binding in subject.members.items() if key not in taken})


def _member(frame: Frame, node, subject, kind, k):
    if kind in CAPTURE_THEMSELVES and k == 0:
        return subject
    names = getattr(kind, "__match_args__", ())
    if k >= len(names):
        raise TypeMismatchError(f"{kind.__name__} accepts {len(names)} positional patterns", frame.line(node),
                                "name the attributes")
    return frame.attribute_of(subject, names[k]) if isinstance(subject, Object) else read(frame, subject, names[k], node)


QUESTIONS = {is_sequence: _is_sequence, is_mapping: _is_mapping, has_key: _has_key, others_of: _others_of,
             member: _member}
