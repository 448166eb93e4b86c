"""Axis numbers as NumPy's functions take them: negative ones count from the end, None names all."""

from __future__ import annotations

import operator

from ...errors import TypeMismatchError
from ...ir.builder import current
from .record import static


def normal_axis(axis: int, count: int) -> int:
    """`axis` counted from 0 among `count` axes."""
    if not -count <= axis < count:
        raise TypeMismatchError(
            f"axis {axis} of an array of {count} axes",
            current().line,
            f"name an axis from {-count} to {count - 1}"
            if count
            else "it is a number: drop the axis",
        )
    return axis % count


def normal_axes(axis, count: int) -> tuple[int, ...]:
    """The axes named by an `axis` argument, counted from 0; None names all."""
    if axis is None:
        return tuple(range(count))
    axes = tuple(normal_axis(a, count) for a in (axis if isinstance(axis, tuple) else (axis,)))
    if len(set(axes)) != len(axes):
        raise TypeMismatchError(f"axis {axis} names an axis twice", current().line)
    return axes


def static_axis(axis):
    """An `axis` argument as Python: None, an int or a tuple of ints."""
    axis = static(axis, "an axis")
    if isinstance(axis, (tuple, list)):
        return tuple(map(_as_axis, axis))
    return axis if axis is None else _as_axis(axis)


def _as_axis(axis) -> int:
    """The number of one axis; NumPy accepts integers only."""
    try:
        return operator.index(axis)
    except TypeError:
        raise TypeMismatchError(f"axis={axis!r}", current().line,
                                "name an axis by an integer") from None
