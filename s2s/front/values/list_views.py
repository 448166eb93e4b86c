"""Lists that are views: `rows = [r for r in g]` and `xs[1:]`, whose items are rows of an array, or
items of another list.

The list itself is new, but what its items are is known: where a write asks for it, such a list is a
cell that has the array, or the list, for its base, and an item is taken from there.

    rows = [r for r in g]                     rows[0][:2] *= 2        g[0][:2] *= 2
    for a, b in zip(xs, xs[1:]): b += a       b += a                  xs[k + 1] += xs[k]

So both names may be written through.  What is put into the view itself, or changes which items the
base has, is refused: an item could then be found no more.

Considered: to make all such lists views.  Most are only read, and then a list of their own is
shorter and as right; so this is done where a write into an item has been refused (build, in
front/eval/build.py), as with places of items (front/domain/item_places.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.graph import Value
from ...ir.types import Array, List
from ...ops.program.list_arrays import list_unstack
from ...ops.program.list_slices import list_slice
from ..domain.frame import Frame
from ..domain.heap import Cell
from ..domain.item_places import Place, has_places, line_site


@dataclass(frozen=True)
class Parts:
    """What the items of a list are."""

    item: Callable  # (frame, base, index, whether it counts from the start) -> an item's binding
    is_open: bool = True  # whether an index beyond the last item is beyond the end of the base, too
    is_whole: bool = True  # whether an index from the end is one from the end of the base, too


def is_asked(frame: Frame) -> bool:
    """Whether a write has asked for a list that the current line makes to be a view."""
    return line_site("list") in frame.session.one_of


def askable(made: Cell, site: tuple | None = None) -> Cell:
    """Return a new list of parts of something, which writes may ask to be a view; `site` stands for
    the line that makes it.
    """
    made.carriers |= {line_site("list") if site is None else site}
    return made


def list_view(frame: Frame, base: Cell, content: Callable, parts: Parts) -> Cell:
    """A list of parts of `base`, whose content is `content` of that of the base."""
    view = frame.heap.new_view(base, content(frame.heap.read(base)), content, None)
    view.parts = parts
    return view


def view_of_all(frame: Frame, base: Cell, row: Callable) -> Cell | None:
    """A list of the rows of an array, of which `row` takes one, or of the items of a list; None of
    numbers.
    """
    if not isinstance(type := frame.heap.read(base).type, Array):
        return view_of_items(frame, base, 0, None)
    if type.rank < 2:
        return None
    return list_view(frame, base, lambda x: list_unstack(x, depth=1),
                     Parts(lambda frame, base, i, _: row(frame, base, i)))


def view_of_items(frame: Frame, base: Cell, start: int, stop: Value | None) -> Cell | None:
    """A list of the items of another list from `start` to `stop`; None if these have no places."""
    content = frame.heap.read(base)
    if not isinstance(content.type, List) or not has_places(content.type.item):
        return None
    bounds, flags = ((start,), (True, False, False)) if stop is None else (
        (start, stop), (True, True, False))

    def item(frame: Frame, base: Cell, i, from_start: bool):
        return item_of_list(frame, base, i if start == 0 else i + start, from_start)

    return list_view(frame, base, lambda x: list_slice(x, *bounds, flags=flags),
                     Parts(item, stop is None, start == 0))


def item_of_list(frame: Frame, xs: Cell, i, from_start: bool = True):
    """The item `i` of a run-time list or a view of one."""
    if xs.parts is not None:
        return xs.parts.item(frame, xs.base, i, from_start)
    place = Place(xs, frame.value(i), from_start)
    return frame.heap.in_place(place, place.read(frame.heap.read(xs)))
