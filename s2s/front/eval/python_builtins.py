"""Python's builtins that construct or query what is known at compile time: range, zip, len,
isinstance.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError
from ...ir.graph import Value
from ...ir.types import Array, Tape, is_listed
from ...lazy_import import Meanings
from ...ops.core.raise_conditions import equals
from ...ops.core.record import FUNCTIONS, value
from ...ops.program.checkpoint import checkpoint
from ...ops.program.list_arrays import list_unstack
from ...ops.program.list_ops import list_copy
from ..control.introspection import ABOUT_CLASSES
from ..control.iterables import (
    Iterable,
    enumerate_,
    iterable,
    pop_tape,
    range_over,
    reversed_,
    zip_,
)
from ..control.table_functions import FUNCTIONS_OF_TABLES
from ..domain.checkpoint_plans import plan_of
from ..domain.frame import Frame, Object
from ..domain.functions import CheckpointedFunction, FunctionValue, Generator
from ..domain.heap import Cell, Container
from ..values.context_managers import CONTEXTS
from ..values.exceptions import guard
from ..values.list_views import askable, is_asked, view_of_all
from ..values.lists import is_list, new_list, sharing_items
from ..values.messages import print_, warn
from ..values.objects import FUNCTIONS_OF_OBJECTS
from ..values.strings import format_, repr_, str_
from ..values.subscript import length_of, take
from .match_patterns import QUESTIONS

# longest array that becomes a list of known length; longer ones become run-time lists
MOST_MEMBERS = 64


def _range(frame: Frame, node, *bounds):
    bounds = [frame.static(b, "a bound") if frame.is_static(b) else b for b in bounds]
    if not 1 <= len(bounds) <= 3:
        raise TypeMismatchError(f"range of {len(bounds)} arguments", frame.line(node),
                                "pass one to three")
    lo, hi, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    for bound in (lo, hi, step):
        if isinstance(bound, float) or not isinstance(bound, (int, np.integer, Value, Cell)):
            raise TypeMismatchError("range of something other than integers", frame.line(node),
                                    "convert with int()")
        if (isinstance(bound, Value)
            and (getattr(bound.type, "dtype", None) or "int").startswith(("float", "complex"))):
            raise TypeMismatchError(f"range of a {bound.type}", frame.line(node),
                                    "convert with int()")
    bounds = [int(b) if isinstance(b, np.integer) else frame.value(b) if isinstance(b, Cell) else b
              for b in (lo, hi, step)]
    guard(frame, ValueError, lambda: value(equals(value(bounds[2]), 0)),
          "range() arg 3 must not be zero")
    if all(isinstance(b, int) for b in bounds) and bounds[2] == 0:
        raise TypeMismatchError("range with a step of 0", frame.line(node), "use another step")
    return range_over(*bounds)


def _checkpoint(frame: Frame, node, source, snapshots=None, memory=None):
    """`s2s.checkpoint` of a function, or of a loop's iterable."""
    content = source.content if isinstance(source, Object) else source
    if (isinstance(content, FunctionValue) and not isinstance(content, Generator)
            or callable(content)):
        if (snapshots, memory) != (None, None):
            checkpoint(print, snapshots, memory)  # refuse it as plain Python does
        return CheckpointedFunction(source)
    return replace(iterable(frame, source, node), plan=plan_of(frame, node, snapshots, memory))


def _slice(frame: Frame, node, *bounds):
    if not 1 <= len(bounds) <= 3:
        raise TypeMismatchError(f"slice of {len(bounds)} arguments", frame.line(node),
                                "pass one to three")
    return slice(*bounds)


def _enumerate(frame: Frame, node, source, start=0):
    return enumerate_(frame, iterable(frame, source, node), start, node)


def _zip(frame: Frame, node, *sources):
    return zip_(frame, [iterable(frame, s, node) for s in sources], lambda a, b: FUNCTIONS[min]
                (value(a), value(b)), node)


def _reversed(frame: Frame, node, source):
    if isinstance(source, Container) and source.is_dict:
        source = tuple(source.members)
    if (isinstance(source, Cell) and frame.members(source) is None
            and isinstance(frame.heap.read(source).type, Tape)):
        return pop_tape(frame, source)
    return reversed_(frame, iterable(frame, source, node), node)


def _len(frame: Frame, node, source):
    if isinstance(source, Iterable):
        raise frame.refuse("len of a range", node, "compute it from the bounds")
    length = length_of(frame, source)
    if length is not None:
        return length
    if isinstance(source, Cell):  # a shape
        measured = frame.heap.read(source).op.inputs[0]
        return FUNCTIONS[np.ndim](FUNCTIONS[np.asarray](measured) if is_listed(measured.type)
                                  else measured)
    if frame.is_static(source):
        return len(frame.static(source, "this"))
    raise frame.refuse("len of this", node, "use it on arrays and tuples")


def _members(frame: Frame, node, source=()):
    """The members of an iterable of known length."""
    if isinstance(source, Container) and source.is_dict:
        return list(source.members)
    if frame.members(source) is not None:
        return list(frame.members(source))
    if isinstance(source, Iterable):
        trips = source.trips
        if trips is None and all(isinstance(b, int) for b in source.bounds):
            return [source.get(k) for k in range(*source.bounds)]
        if trips is not None:
            return [source.get(k) for k in range(trips)]
    if isinstance(source, Cell):
        content = frame.heap.read(source)
        if isinstance(content.type, Array) and isinstance(content.type.dims[0], int):
            each = iterable(frame, source, node)
            return [each.get(k) for k in range(content.type.dims[0])]
        if content.op is not None and content.op.name == "shape":
            raise frame.refuse("the shape of an array of unknown rank as a tuple", node,
                               "call the function once, or "
                               "unpack the shape")
    error = frame.refuse("a tuple of run-time length", node, "use an array")
    error.extent = frame.run_time_length(source)
    raise error


def _tuple(frame: Frame, node, source=()):
    return tuple(_members(frame, node, source))


def _list(frame: Frame, node, source=()):
    if isinstance(source, Cell) and frame.heap.items(source) is None:
        if is_asked(frame) and (view := view_of_all(frame, source, take)) is not None:
            return view
        if is_list(frame, source):
            return askable(sharing_items(frame, source, list_copy(frame.heap.read(source))))
        content = frame.heap.read(source)
        if (isinstance(content.type, Array)
            and (not isinstance(n := content.type.dims[0], int) or n > MOST_MEMBERS)):
            items = frame.heap.new(list_unstack(content, depth=1))
            items.held = source.family() if content.type.rank > 1 else frozenset()
            return askable(items)
    return new_list(frame, _members(frame, node, source))


def refused(message: str, remedy: str) -> Callable:
    def refuse(frame: Frame, node, *args, **keywords):
        raise frame.refuse(message, node, remedy)

    return refuse


def _digits(function: Callable) -> Callable:
    """bin, oct and hex of a static number."""
    return lambda frame, node, number: function(
        frame.static(number, f"what {function.__name__} is of", node))


BUILTINS: dict[object, Callable] = Meanings()
BUILTINS.update({
    **QUESTIONS, **CONTEXTS, **FUNCTIONS_OF_OBJECTS, **FUNCTIONS_OF_TABLES,
    **ABOUT_CLASSES,
    range: _range, slice: _slice, enumerate: _enumerate, zip: _zip, reversed: _reversed, len: _len,
    tuple: _tuple, list: _list,
    checkpoint: _checkpoint,
    print: print_, warnings.warn: warn, str: str_, repr: repr_, format: format_,
    builtins.open: refused("opening a file", "read it before, and pass the data"),
    builtins.input: refused("input", "pass the data as an argument"),
    **{digits: _digits(digits) for digits in (bin, oct, hex)},
})
