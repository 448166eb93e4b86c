"""Views in NumPy: which functions return memory of their argument.

A transpose, a flipped array, an axis added or removed is definitely a view: a write through it is a
write to its base.  A reshape is a view if the array is contiguous; where the program shows that it
is (it was created by np.zeros or .copy(), say), likewise; elsewhere the result may share memory or
not, and a write that would have to be visible on the other side is refused.  Results that NumPy
marks read-only cannot be written into.  All other ops alias as their records say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Array, Scalar
from ...ops.arrays.index import getitem, setitem
from ...ops.arrays.index_pattern import is_basic, paired, parse_index
from ...ops.arrays.reshape import reshape, reshape_like
from ...ops.core.complex_parts import of_parts
from ...ops.core.copy import is_made_in_order
from ...ops.core.record import (
    ALWAYS_ARRAYS,
    COPIES,
    FUNCTIONS,
    VIEWS,
    dtype_of,
    numpy_function,
    rank,
    value,
)
from ...ops.core.shape import length
from ..domain.frame import Frame
from ..domain.heap import Cell, cells_in, is_shared
from ..domain.view_composition import TransposeIndex, through_ravel, through_reshape
from .subscript import view_of_part


@numpy_function(attribute="flat", view="contiguous")
def flat(x: Value) -> Value:
    """x.flat, as an array."""
    return FUNCTIONS[np.ravel](x)


def shared_result(frame: Frame, result, name: str, args: list, named: dict,
                  cells: dict[Value, Cell],
                  again: Callable | None = None, method: bool = False, reads: tuple = ()):
    """The binding of the result of the op `name` on `args`; `cells` are the cells of its arguments.

    `again(x)` is the op on another first argument, and on the Values in `reads`; `method` means
    that it was called as x.name(...).
    """
    first = args[0] if args and isinstance(args[0], Cell) else None
    base = frame.heap.read(first) if first is not None else None
    is_complex = base is not None and (dtype_of(base.type) or "").startswith("complex")
    copied = (name in COPIES and named.get("copy", True) is True
              and not (name.startswith("conj") and method and not is_complex))
    if isinstance(result, Value) and first is not None and name in VIEWS and not copied:
        itself = result is base or (name == "real" and
                                    not (dtype_of(base.type) or "complex").startswith("complex"))
        if itself and (name not in ("ravel", "ascontiguousarray") or is_contiguous(frame, first)):
            return first
        view = (_view(frame, result, name, args, named, base, again, reads)
                if is_shared(result.type) or name in ALWAYS_ARRAYS else None)
        if view is not None:
            return view
    binding = frame.wrap(result)
    if (name in ALWAYS_ARRAYS and isinstance(binding, Value) and isinstance(binding.type, Scalar)
            and not (method and copied)):
        binding = frame.heap.new(FUNCTIONS[np.asarray](binding))  # no Python number any more
    if (isinstance(binding, Cell) and method and name in ("copy", "flatten") and not named
            and len(args) == 1):
        binding.contiguous = True
    if copied or not isinstance(binding, (Cell, tuple)) or not cells:
        return binding
    if VIEWS.get(name) == "parts" and isinstance(binding, tuple) and first is not None:
        return _parts(frame, binding, name, first, base, again)
    families = frozenset().union(*(cell.family() for cell in cells.values()))
    for cell in cells_in(binding):
        content = frame.heap.read(cell)
        if (name in VIEWS or (name == "einsum" and _picks(args))
                or (content not in cells and _views(content, cells))):
            cell.origins |= families
        if (VIEWS.get(name) == "contiguous" and first is not None and first is first.root
            and first in frame.session.given):
            cell.view_in_order_of = first
    return binding


def _picks(args: list) -> bool:
    """Whether an einsum sums nothing, so that its result is a view."""
    inputs, arrow, output = (args[0].replace(" ", "").partition("->")
                             if isinstance(args[0], str) else ("", "", ""))
    return not arrow or ("," not in inputs and set(inputs) <= set(output))


def _views(content: Value, cells: dict[Value, Cell]) -> bool:
    """Whether the ops of `content` pass on the memory of one of the values."""
    if content in cells:
        return True
    if content.op is None or not content.op.record.views or content.op.record.writes is not None:
        return False
    inputs = content.op.inputs
    return any(_views(inputs[k], cells) for k in content.op.record.views if k < len(inputs))


def _view(frame: Frame, content: Value, name: str, args: list, named: dict, base: Value,
          again: Callable | None, reads: tuple) -> Cell | None:
    """A cell for a definite view of the first argument; None if it may not be one."""
    cell, contiguous, index, place = args[0], None, None, None
    if again is None:
        return None
    known = isinstance(base.type, Array)
    if VIEWS.get(name) == "involution" or (name == "transpose" and len(args) == 1 and not named):
        if known and (index := _as_index(frame, name, args[1:], named, base.type.dims)) is None:
            place = _place_in_transpose(frame, name, args[1:], named, base.type.rank)

        def back(x, y):
            return again(y)
    elif not known:
        return None
    elif VIEWS.get(name) == "transpose":
        order = _order(frame, name, args[1:], named, base.type.rank)
        if order is None:
            return None
        inverse = tuple(int(k) for k in np.argsort(order))
        place = TransposeIndex(order)

        def back(x, y):
            return FUNCTIONS[np.transpose](
                y, None if inverse == tuple(range(len(inverse)))[::-1] else inverse)
    elif VIEWS.get(name) == "reshape" or (
            VIEWS.get(name) == "contiguous" and _is_view_if_reshaped(frame, name, cell, base)):
        contiguous = is_contiguous(frame, cell)
        if VIEWS.get(name) == "reshape":
            index = _as_index(frame, name, args[1:], named, base.type.dims)
        elif rank(content) == 1:
            place = through_ravel
        elif base.type.rank == 1 and isinstance(content.type, Array):
            lengths = [length(content, axis=k) for k in range(content.type.rank)]
            place, reads = through_reshape(lengths), (*reads, *lengths)

        def back(x, y):
            return reshape_like(y, x)
    elif (VIEWS.get(name) == "component"
          and (dtype_of(base.type) or "").startswith("complex")):

        def back(x, y):
            return (of_parts(y, FUNCTIONS[np.imag](x)) if name == "real" else
                    of_parts(FUNCTIONS[np.real](x), y))
    elif VIEWS.get(name) == "read-only" and not (name == "diag" and rank(base) == 1):
        back = _read_only
    else:
        return _part_of(frame, content, cell, base) if VIEWS.get(name) == "parts" else None
    made = frame.heap.new_view(cell, content, again, back, index, reads=reads)
    made.contiguous, made.flat, made.place = contiguous, name == "flat", place
    return made


def _read_only(x: Value, y: Value) -> Value:
    raise TypeMismatchError(
        "this writes into an array that NumPy marks read-only",
        current().line,
        "write into the array that it is a view of, or take a copy (`.copy()`) first")


def _place_in_transpose(frame: Frame, name: str, args: list, named: dict,
                        count: int) -> Callable | None:
    order = _order(frame, name, args, named, count)
    return None if order is None else TransposeIndex(order)


def _order(frame: Frame, name: str, args: list, named: dict, count: int) -> tuple | None:
    """The axes of a transpose of `count` axes in terms of its base's."""
    known = _known_axes(frame, args, named)
    if known is None:
        return None
    args, named = known
    sample = np.empty(tuple(range(2, count + 2)))
    match name:
        case "T":
            made = sample.T
        case "mT":
            made = np.swapaxes(sample, -1, -2)
        case "transpose" if not named:
            made = sample.transpose(*args)
        case _:
            made = getattr(np, name)(sample, *args, **named)
    return tuple(n - 2 for n in made.shape)


def _as_index(frame: Frame, name: str, args: list, named: dict, dims: tuple) -> tuple | None:
    """The index equivalent to a function that flips, adds or removes axes; None for another
    function.
    """
    known = _known_axes(frame, args, named)
    if known is None or not (name.startswith("flip") or VIEWS.get(name) == "reshape"):
        return None
    args, named = known
    sample = np.empty((2,) * len(dims))
    if name.startswith("flip"):
        made = getattr(np, name)(sample, *args, **named)
        key = [slice(None, None, -1) if step < 0 else slice(None) for step in made.strides]
    elif name == "squeeze":
        axes = (args or [named.get("axis")])[0]
        axes = ([k for k, n in enumerate(dims)
                 if n == 1] if axes is None else np.atleast_1d(axes) % len(dims))
        key = [0 if k in axes else slice(None) for k in range(len(dims))]
    else:
        key = [
            None if n == 1 else slice(None) for n in getattr(np, name)(sample, *args, **named).shape
        ]
    return parse_index(tuple(key))


def _known_axes(frame: Frame, args: list, named: dict) -> tuple[list, dict] | None:
    """Arguments that specify axes, as Python objects; None if they depend on run-time data."""
    if not all(map(frame.is_static, (*args, *named.values()))):
        return None
    return [frame.static(a, "an axis") for a in args], {
        k: frame.static(v, k)
        for k, v in named.items()
    }


def _parts(frame: Frame, parts: tuple, name: str, cell: Cell, base: Value,
           again: Callable | None) -> tuple:
    """The cells of the parts of a split array."""
    found, start = [], value(0)
    for k, part in enumerate(parts):
        content = frame.heap.read(part)
        axis = _axis_of_parts(content)
        view = _part_of(frame, content, cell, base)
        if view is None and axis is not None:
            count = length(content, axis=axis)
            key = parse_index((*(slice(None),) * axis, slice(start, start + count)))
            view = frame.heap.new_view(cell, content, lambda x, k=k: again(x).op.inputs[k],
                                       lambda x, y, key=key: setitem(x, y, *key[1], pattern=key[0]),
                                       key)
            start = start + count
        if view is None:
            part.origins |= cell.family()
        found.append(view or part)
    return tuple(found)


def _axis_of_parts(content: Value) -> int | None:
    """The axis of an np.split that was lowered to x.reshape(..., parts, length, ...)[..., k]."""
    op = content.op
    if (op is None or op.record is not getitem or "i" not in op.attrs["pattern"]
            or op.inputs[0].op is None):
        return None
    return op.attrs["pattern"].index("i") if op.inputs[0].op.record is reshape else None


def _part_of(frame: Frame, content: Value, cell: Cell, base: Value) -> Cell | None:
    """A cell for `content` if it is a slice of `base`."""
    op = content.op
    if op is None or op.record is not getitem or op.inputs[0] is not base or not is_basic(
            op.attrs["pattern"], op.inputs[1:]):
        return None
    return view_of_part(frame, cell, content, op.attrs["pattern"], list(op.inputs[1:]))


# --------------------------------------------------------------------------------------- contiguity


def _is_view_if_reshaped(frame: Frame, name: str, cell: Cell, base: Value) -> bool:
    """Whether a reshape of `cell` is definitely a view; x.flat writes to x in any layout."""
    return name == "flat" or is_contiguous(frame, cell) or (name == "reshape" and rank(base) == 1)


def is_contiguous(frame: Frame, cell: Cell) -> bool:
    """Whether an array is provably C-contiguous."""
    if cell.contiguous is None:
        if cell.choice is not None:
            cell.contiguous = all(is_contiguous(frame, arm) for arm in cell.choice[1:])
        elif cell.base is None:
            cell.contiguous = not cell.owner and not cell.origins and is_made_in_order(cell.made)
        else:
            cell.contiguous = (cell.index is not None and _is_block(*cell.index)
                               and is_contiguous(frame, cell.base))
    return cell.contiguous


def _is_block(pattern, operands) -> bool:
    """Whether an index selects a contiguous block of a contiguous array: a[i], a[i, lo:hi],
    a[lo:hi].
    """
    whole = False
    for p, operand in paired(pattern, operands):
        if (p is None or p is ...
                or (isinstance(p, str) and p != "i" and all(b is None for b in operand))):
            whole = whole or p is not None
        elif whole:
            return False
        elif p != "i":
            if operand[2] is not None and operand[2].constant not in (1, None):
                return False
            whole = True
    return True


def set_shape(frame: Frame, cell: Cell, shape) -> None:
    """`x.shape = shape`, of an array that no view is made of, in its own order of memory."""
    content = frame.heap.read(cell)
    parts = [name for name, other in frame.reachable() if other is not cell and cell in other.bases]
    in_order = getattr(content.type, "rank", None) == 1 or is_contiguous(frame, cell)
    if cell.base is not None or cell.choice is not None or parts or not in_order:
        raise frame.refuse(
            "setting the shape of an array that is a view, or has one, or may be in another order "
            "in memory", None, "make a new array: y = x.reshape(...)")
    frame.write(cell, FUNCTIONS[np.reshape](content, frame.value(shape)))
