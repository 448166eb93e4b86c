"""Places of what is in run-time lists: `r = xs[i]`, through which the program then writes.

An item of a run-time list is a part of one Value, so that `xs[i]` can be read, and no other name of
it be kept up to date.  Where a write asks for more, an item is a view of the list: an array, or a
list in it, is a cell that has the list for its base, and a dict or an object a container that has a
place in it, whose members are read and written there.

    r = xs[i]; r[0] += v         xs[i][0] += v
    body = bodies[i]             body is bodies[i]: a tuple of (x, v, m)
    body.m = 2 * body.m          bodies[i] = (bodies[i].x, bodies[i].v, 2 * bodies[i].m)

A place is an index, so the items of the list must stay where they are while it is in use: to change
their order is refused (Heap.write), appending is not.

Considered: to make all items such views.  Most are only read, and then the item is shorter and as
right; so this is done where an item is read for a write that has been refused (build, in
front/eval/build.py), as with choices of arrays (front/control/one_of.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Static, Tuple
from ...ops.core.control import item, packed
from ...ops.program.list_ops import list_get, list_set


@dataclass(frozen=True)
class Place:
    """A part of the item `index` of the run-time list `xs`; `path` are positions in tuples."""

    xs: Any  # its cell
    index: Value
    is_fixed: bool  # whether it is the same item when the list has grown: not counted from the end
    path: tuple[int, ...] = ()

    def inside(self, k: int) -> Place:
        """Return the place of the member `k` of the tuple that lies here."""
        return replace(self, path=(*self.path, k))

    def read(self, content: Value) -> Value:
        """Return what lies here, in a list of this content."""
        return self._values(content)[-1]

    def written(self, content: Value, new: Value) -> Value:
        """Return the content of the list with `new` here."""
        for k, whole in reversed(list(zip(self.path, self._values(content)))):
            form = whole.type.form
            new = packed([new if n == k else item(whole, index=n)
                          for n in range(len(whole.type.items))], form)
        return list_set(content, new, self.index)

    def _values(self, content: Value) -> list[Value]:
        """Return the item, what lies in it at the first step of the path, and so on."""
        found = [list_get(content, self.index)]
        for k in self.path:
            found.append(item(found[-1], index=k))
        return found


    def members(self, whole: Value) -> Iterator[tuple[Place, Value]]:
        """Yield the places and the Values of the members of the tuple `whole`, which lies here."""
        for k in range(len(whole.type.items)):
            yield self.inside(k), item(whole, index=k)


def line_site(what: str) -> tuple:
    """Return what stands for the current line in all runs of the program, as one that reads an item
    of a list, say.
    """
    line = current().line
    return what, line.source.filename, line.number


def has_places(type) -> bool:
    """Test whether all that is mutable in an item of this type can have a place: lists of known
    length within tuples cannot.
    """
    if isinstance(type, Tuple):
        is_list = type.form is not None and type.form.kind == "list"
        return not is_list and all(map(has_places, type.items))
    return not (isinstance(type, Static) and hasattr(type.value, "__dict__"))
