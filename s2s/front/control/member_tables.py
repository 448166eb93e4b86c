"""Tables: the members that a loop of known length runs over, as one list of run-time index.

    for t in (0.5, 1.0, 1.5, 2.0):         for i in range(4):
        s += np.sin(t * x)                     s += np.sin([0.5, 1.0, 1.5, 2.0][i] * x)

Such a loop stays a loop in generated code, which is as long as its body.  Members can stand in a
table if they are alike: numbers of one type, arrays of one shape, and tuples, lists and objects of
such.  What the loop does with them decides as well: see `_run_tabulated` in front/eval/loops.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import S2SError
from ...ir.graph import MISSING, Value
from ...ir.types import Array, List, Scalar, Tuple, Type
from ..domain.frame import Frame
from ..domain.functions import FunctionValue
from ..domain.heap import Cell, Container
from ..values.lists import as_list, new_list

SHORTEST = 4  # least members of a table: fewer are written out
SHORTEST_COMPUTED = 8  # ... if the program computes them: they are put into the table one by one


def table_of(frame: Frame, get: Callable, count: int) -> Cell | None:
    """A list of its own of the members get(0), ..., get(count - 1); None if they are too few, or
    not alike.
    """
    if count < SHORTEST:
        return None
    items = [get(k) for k in range(count)]
    if not all(_is_plain(frame, item) for item in items):
        return None
    try:
        types = {frame.heap.list_value((item,), whole=False).type for item in items}
    except (S2SError, TypeError):
        return None
    if len(types) > 1 or not _has_data(*types):
        return None
    if count < SHORTEST_COMPUTED and not all(_is_given(frame, item) for item in items):
        return None
    made = new_list(frame, items)
    as_list(frame, made)
    return made


def _is_plain(frame: Frame, binding) -> bool:
    """Whether a member is nothing but data: numbers, arrays, and containers of such."""
    match binding:
        case tuple():
            return all(_is_plain(frame, item) for item in binding)
        case Container():  # the program's own would be built anew, for the table
            return (bool(binding.owner) or binding in frame.session.given) and all(
                _is_plain(frame, item) for item in binding.members.values())
        case Cell():
            items = frame.heap.items(binding)
            return items is None or all(_is_plain(frame, item) for item in items)
    return not isinstance(binding, FunctionValue)


def _is_given(frame: Frame, binding) -> bool:
    """Whether a member is a constant, or all or part of an argument."""
    match binding:
        case tuple():
            return all(_is_given(frame, item) for item in binding)
        case Container():
            return True
        case Cell() if (items := frame.heap.items(binding)) is not None:
            return all(_is_given(frame, item) for item in items)
        case Cell():
            binding = frame.heap.read(binding)
    while isinstance(binding, Value) and binding.op is not None and binding.op.name == "item":
        binding = binding.op.inputs[0]
    return not isinstance(binding, Value) or binding.op is None or binding.constant is not MISSING


def _has_data(type: Type) -> bool:
    """Whether members of this type differ at all, in what a table can hold."""
    match type:
        case Tuple(items):
            return any(map(_has_data, items))
    return isinstance(type, (Scalar, Array, List))
