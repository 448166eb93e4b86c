"""Which NumPy functions return memory of their argument.

A transpose is a view for certain, so a write through it is a write to its base.  A reshape is one if the
array happens to be contiguous: the result may share memory, and a write that would have to be seen on the
other side is refused.  Everything else is taken at its record's word.
"""

from __future__ import annotations

import numpy as np

from ..ir.graph import Value
from ..ops.record import FUNCTIONS, METHODS
from .alias import Cell, cells_in
from .frame import Frame

TRANSPOSES = {"T", "transpose", "swapaxes", "mT", "matrix_transpose"}
SAME = {"asarray", "asanyarray"}  # the argument itself, where it is an array of that dtype already
MAYBE = {"reshape", "ravel", "squeeze", "expand_dims", "ascontiguousarray", "atleast_1d", "atleast_2d",
         "atleast_3d", "broadcast_to", "broadcast_arrays", "diagonal", "diag", "real", "imag", "flip", "fliplr", "flipud", "rot90",
         "permute_dims", "moveaxis", "rollaxis", "split", "array_split", "hsplit", "vsplit", "dsplit", "view", "unstack",
         "stop_gradient"}
COPIES = {"array", "copy", "flatten", "astype"}


def shared_result(frame: Frame, result, name: str, args: list, named: dict, cells: dict[Value, Cell]):
    """The binding of what the op `name` made of `args`; `cells` are those behind its arguments."""
    binding = frame.wrap(result)
    if not isinstance(binding, (Cell, tuple)) or not cells:
        return binding
    first = args[0] if args and isinstance(args[0], Cell) else None
    if isinstance(binding, Cell) and first is not None:
        if name in SAME and frame.heap.read(first) is frame.heap.read(binding):
            return first
        if name in TRANSPOSES:
            return _transpose(frame, name, first, frame.heap.read(binding), args[1:], named)
    if name in COPIES and named.get("copy", True):
        return binding
    families = frozenset().union(*(cell.family() for cell in cells.values()))
    for cell in cells_in(binding):
        content = frame.heap.read(cell)
        if name in MAYBE or name in SAME or (content not in cells and _views(content, cells)):
            cell.origins |= families
    return binding


def _views(content: Value, cells: dict[Value, Cell]) -> bool:
    """Whether the ops that made `content` hand on the memory of one of the values."""
    if content in cells:
        return True
    if content.op is None or not content.op.record.views or content.op.record.writes is not None:
        return False
    inputs = content.op.inputs
    return any(_views(inputs[k], cells) for k in content.op.record.views if k < len(inputs))


def _transpose(frame: Frame, name: str, base: Cell, content: Value, args: list, named: dict) -> Cell:
    """A view with its axes in another order."""
    fixed = [frame.value(a) for a in args]

    def again(x: Value) -> Value:
        return METHODS[name](x, *fixed, **named) if name in METHODS else FUNCTIONS[getattr(np, name)](x, *fixed, **named)

    if name in ("T", "mT"):
        function = FUNCTIONS[np.transpose if name == "T" else np.matrix_transpose]
        return frame.heap.new_view(base, content, function, lambda x, y: function(y))
    if name == "swapaxes" or name == "matrix_transpose" or (name == "transpose" and not args and not named):
        return frame.heap.new_view(base, content, again, lambda x, y: again(y))
    return frame.heap.new(content, base.family())
