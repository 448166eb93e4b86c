"""Subscripting, `x[key]`, for reads and writes; basic indexing yields views tied to their base."""

from __future__ import annotations

from collections import deque

import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Value
from ...ir.types import Array, List, Scalar, Tuple, Unknown
from ...ops.arrays.create import array
from ...ops.arrays.index import getitem, setitem, within
from ...ops.arrays.index_pattern import index_operands, is_advanced, parse_index
from ...ops.core.control import if_, item
from ...ops.core.record import FUNCTIONS, value
from ...ops.core.shape import length
from ...ops.program.numpy_of_lists import OF_LISTS
from ..domain.frame import Frame, Object
from ..domain.functions import Method
from ..domain.heap import Cell, Container, is_shared
from ..domain.view_composition import TransposeIndex, compose_index
from ..syntax.captures import Length
from ..syntax.dependencies import note_dependency
from .captured_lists import outside_items
from .captured_writes import is_outside, write_item
from .dicts import entry, set_entry
from .exceptions import guard
from .lists import (
    as_list,
    is_list,
    length_of_list,
    new_list,
    put_item,
    raise_if_counted,
    take_item,
    unpack_list,
)
from .objects import class_of, method_of
from .raise_guards import guard_index, guard_list_index, guarding
from .unpacking import require_length

IndexExpression = type(np.s_)


def take(frame: Frame, base, key):
    """The binding of `base[key]`."""
    if not frame.is_static(key) or isinstance(key, slice):
        base = frame.contents_of(base, through=not frame.is_static(key))
        if getattr(base, "outside", None) is not None and not isinstance(key, slice) and (
                items := outside_items(frame, base.outside)) is not None:
            base = new_list(frame, items)
    if isinstance(base, (tuple, list, str)):
        return _member(frame, base, key)
    if class_of(base) is not None and not isinstance(base, tuple):
        return special(frame, base, "__getitem__", [key])
    if is_list(frame, base):
        if frame.session.tries:
            guard_list_index(frame, base, key)
        return take_item(frame, base, key)
    if isinstance(base, Container) and base.is_dict:
        return entry(frame, base, key)
    if isinstance(base, Value) and isinstance(base.type, Scalar):
        # a NumPy number is an array of rank 0 here
        if key == () and isinstance(key, tuple) and not base.type.weak:
            return base
        raise TypeMismatchError(f"{base.name or 'this'} is a number and cannot be indexed",
                                current().line, "index an array")
    if isinstance(base, Object):
        return frame.item_of(base, frame.static(key, "this key"))
    if isinstance(base, IndexExpression):  # np.s_[1:, 0]
        return (key,) if base.maketuple and not isinstance(key, tuple) else key
    if isinstance(base, Cell):
        return _take_from_array(frame, base, key)
    try:
        if frame.is_static(base):
            return base[_static_key(frame, key)]
    except (TypeError, AttributeError):
        pass
    raise frame.refuse(f"indexing a {type(base).__name__}", None, "index arrays and tuples")


def _take_from_array(frame: Frame, base: Cell, key):
    """The binding of `base[key]` for an array."""
    if base.base is None and base.choice is None:
        content = frame.heap.read(base)
        if content.op is not None and content.op.name == "shape":
            axis = key.constant if isinstance(key, Value) else key
            if isinstance(axis, int) and not isinstance(axis, bool):
                return length(content.op.inputs[0], axis=axis)
    # an array of rank 0: its number, and itself
    if key in ((), ...) and isinstance(frame.heap.type_of(base), Scalar):
        return base if key is ... else frame.heap.read(base)
    pattern, operands = _parse_index(frame, key)
    if frame.session.tries:
        guard_index(frame, frame.heap.read(base), pattern, operands)
    cell, *index = _compose_view_index(frame, base, pattern, operands)
    with guarding(frame, in_brackets=True):
        if frame.heap.is_current(base) and not _is_read_through(frame, base, cell, index):
            result = getitem(frame.heap.read(base), *operands, pattern=pattern)
        else:
            result = _read_part(frame, cell, *index)
    if not is_shared(result.type) and ... not in pattern:  # x[..., 0] is a view even of one number
        return frame.wrap(result)
    if any(isinstance(x.type, Unknown) for p, x in index_operands(pattern, operands)):
        return frame.heap.new(result, cell.family())  # an array index copies, an integer views
    if is_advanced(pattern, operands) or base.flat:
        return frame.heap.new(result)
    return view_of_part(frame, cell, result, *index)


# Note [Reads through views]
# `row = a[i]` ... `row[j]` is read as a[i, j], whether `a` has been written into since or not. Read
# as row[j] it would have to be read anew after each write, and its cotangent would be a whole row
# for each element read, which is quadratic in a loop.  Redirecting the cotangent alone, in the
# reverse sweep, would leave tapes of rows; and writes go to a[i, j] already, so both are seen to be
# the same element.  Not so where the composed index is no plain one (`place_within`, `i // m`) or
# lengths would be lost (a slice of a slice): there an up-to-date view is read itself, whose
# cotangent is made once, if the view is made outside the loops.


def _is_read_through(frame: Frame, view: Cell, cell: Cell, index: tuple) -> bool:
    """Whether to read `index` of `cell` directly rather than through an up-to-date view of it: one
    element, or part of a row.
    """
    if cell.choice is not None:
        return _is_made_in_loop(frame, view)
    if cell is view:
        return False
    if view.index is not None and set(view.index[0]) <= {"i"}:
        return True
    pattern, operands = index
    plain = isinstance(view.place, TransposeIndex) or view.index is not None and all(
        x.op is None or x.op.record is not within for x in operands)
    return set(pattern) <= {"i"} and (plain or _is_made_in_loop(frame, view))


def _is_made_in_loop(frame: Frame, view: Cell) -> bool:
    return bool(frame.session.loops) and view not in frame.session.loops[0]


def _read_part(frame: Frame, cell: Cell, pattern, operands) -> Value:
    """cell[pattern], read from the arrays themselves: of a conditional array, from the one or the
    other.
    """
    cell, pattern, operands = _compose_view_index(frame, cell, pattern, operands)
    if cell.choice is None or frame.heap.is_current(cell) and not _is_made_in_loop(frame, cell):
        return getitem(frame.heap.read(cell), *operands, pattern=pattern)
    condition, *arms = cell.choice
    holds = frame.session.assumed.get(condition)
    if holds is not None:
        return _read_part(frame, arms[0 if holds else 1], pattern, operands)

    def read(arm: Cell) -> list[Value]:
        with frame.heap.apart():
            return [_read_part(frame, arm, pattern, operands)]

    return if_(condition, lambda: read(arms[0]), lambda: read(arms[1]))[0]


def view_of_part(frame: Frame, base: Cell, content: Value, pattern, operands) -> Cell:
    """A cell for base[pattern], with current Value `content`."""
    cell = part_of(base, pattern, operands)
    cell.doubtful = set(pattern) <= {"i"} and isinstance(content.type, Unknown)
    frame.heap.seen[cell] = (frame.heap.read(base), content)
    return cell


def part_of(base: Cell, pattern, operands) -> Cell:
    """A cell for base[pattern], an index of integers, slices and new axes."""
    return Cell(base, lambda x: getitem(x, *operands, pattern=pattern),
                lambda x, y: setitem(x, y, *operands, pattern=pattern), (pattern, operands))


def put(frame: Frame, base, key, new) -> None:
    """`base[key] = new`."""
    if class_of(base) is not None and not isinstance(base, tuple):
        return special(frame, base, "__setitem__", [key, new])
    if is_list(frame, base):
        if frame.session.tries:
            guard_list_index(frame, base, key)
        return put_item(frame, base, key, new)
    if isinstance(base, Container) and base.is_dict:
        return set_entry(frame, base, key, new)
    if is_outside(base):
        return write_item(frame, base, key, new)
    v = frame.value(new)
    if not isinstance(base, Cell):
        what = {tuple: "a tuple", list: "a list", str: "a string"}.get(type(base), "this")
        raise TypeMismatchError(f"{what} cannot be written into here",
                                current().line, "write into a NumPy array")
    if isinstance(v.type, (Tuple, List)) and isinstance(new, (tuple, list, Cell)):
        v = OF_LISTS[np.array](v) if isinstance(v.type, List) else array(v)  # `x[i] = a, b`
    pattern, operands = _parse_index(frame, key)
    if frame.session.tries:
        guard_index(frame, frame.heap.read(base), pattern, operands)
    cell, pattern, operands = _compose_view_index(frame, base, pattern, operands)
    check_kind(frame.heap.read(cell), v)

    def update(x: Value) -> Value:
        return setitem(x, v, *operands, pattern=pattern)

    with guarding(frame, in_brackets=True):
        written = update(frame.heap.read(cell))
    frame.write(cell, written, base, update)


def check_kind(array: Value, v: Value) -> None:
    """Refuse complex numbers in a real array: NumPy raises, or discards their imaginary parts."""
    own, given = (getattr(x.type, "dtype", None) or "" for x in (array, v))
    if given.startswith("complex") and own and not own.startswith("complex"):
        raise TypeMismatchError(f"{given} values are written into an array of {own}",
                                current().line, "write their .real, or make the array complex")


def special(frame: Frame, base, name: str, args: list):
    """Call the special method for indexing or length that the class of `base` defines."""
    function = method_of(base, name)
    if function is None:
        what = "has no len()" if name == "__len__" else "cannot be indexed"
        raise TypeMismatchError(f"a {base.cls.__name__} {what}", current().line, f"define {name}")
    return frame.session.call(frame, Method(function, base), args, {}, None)


def length_of(frame: Frame, binding):
    """len(binding)."""
    match binding:
        case tuple() | list() | str() | range():
            return len(binding)
        case Cell() if is_list(frame, binding):
            return length_of_list(frame, binding)
        case Container() if binding.is_dict:
            return len(binding.members)
        case Container():
            return special(frame, binding, "__len__", [])
        case Object(content) if isinstance(content, (dict, list, deque, set)):
            # code is being generated for its functions
            if any(map(callable, content.values() if isinstance(content, dict) else content)):
                note_dependency(Length(binding.getter), len(content))
                return len(content)
            return frame.outside(len(content), Length(binding.getter), f"{binding.name}_length")
        case Cell():
            content = frame.heap.read(binding)
            if content.op is not None and content.op.name == "shape":
                return None
            return length(content, axis=0)
        case Value(type=Scalar()):
            raise TypeMismatchError(f"{binding.name or 'this'} is a number and has no len()",
                                    current().line, "pass an array")
    return None


def unpack(frame: Frame, binding, count: int, star: int | None):
    """The `count` bindings of `a, b, *c = binding`; `star` is the position of the starred one."""
    binding = frame.contents_of(binding)
    if frame.heap.items(binding) is not None:
        binding = frame.heap.items(binding)
    if isinstance(binding, Cell) and is_list(frame, binding):
        require_length(frame, length_of_list(frame, binding), count - (star is not None),
                       or_more=star is not None)
        return unpack_list(frame, binding, count, star)
    if isinstance(binding, Cell):
        return _unpack_array(frame, binding, count, star)
    if isinstance(binding, (str, range)):
        binding = tuple(binding)
    if isinstance(binding, Container) and binding.is_dict:
        binding = tuple(binding.members)
    if not isinstance(binding, (tuple, list)):
        members = frame.session.listed(frame, binding)
        if members is not binding:  # `a, b = (f(x) for x in xs)`
            return unpack(frame, members, count, star)
        raise TypeMismatchError("only tuples and arrays can be unpacked",
                                current().line, "return or build a tuple")
    if star is None:
        if len(binding) != count:
            raise TypeMismatchError(f"{len(binding)} values for {count} names",
                                    current().line, "use as many names as there are values")
        return list(binding)
    if len(binding) < count - 1:
        raise TypeMismatchError(f"{len(binding)} values for {count} names",
                                current().line, "use as many names as there are values")
    after = count - 1 - star
    end = len(binding) - after
    return [*binding[:star], new_list(frame, binding[star:end]), *binding[end:]]


def _unpack_array(frame: Frame, cell: Cell, count: int, star: int | None):
    content = frame.heap.read(cell)
    if star is not None:
        return _unpack_starred(frame, cell, content, count, star)
    if content.op is not None and content.op.name == "shape":
        return [length(content.op.inputs[0], axis=k) for k in range(count)]
    if (isinstance(content.type, Array) and isinstance(content.type.dims[0], int)
            and content.type.dims[0] != count):
        require_length(frame, content.type.dims[0], count)
        raise TypeMismatchError(f"an array of length {content.type.dims[0]} for {count} names",
                                current().line, "use as many names as there are rows")
    if isinstance(content.type, Unknown):
        return [frame.heap.new(item(content, index=k), cell.family()) for k in range(count)]
    require_length(frame, length(content, axis=0), count)
    return [take(frame, cell, k) for k in range(count)]


def _unpack_starred(frame: Frame, cell: Cell, content: Value, count: int, star: int) -> list:
    """Unpacking with a starred name, which receives a list of the remaining members."""
    after = count - 1 - star
    ends = [*range(star), *range(-after, 0)]
    if isinstance(content.type, Array) and isinstance(content.type.dims[0], int):
        extent = content.type.dims[0]
        if extent < len(ends):
            raise TypeMismatchError(f"an array of length {extent} for {count} names",
                                    current().line, "use as many names as there are rows")
        middle = [take(frame, cell, k) for k in range(star, extent - after)]
    else:
        require_length(frame, length(content, axis=0), len(ends), or_more=True)
        middle = frame.session.listed(frame,
                                      take(frame, cell, slice(star, -after if after else None)))
    items = [take(frame, cell, k) for k in ends]
    return [*items[:star], middle, *items[star:]]


def _member(frame: Frame, base, key):
    """A member or slice of a tuple, list or string."""
    if (frame.is_static(key) and not isinstance(key, slice) or isinstance(key, slice)
            and all(map(frame.is_static, (key.start, key.stop, key.step)))):
        try:
            return base[_static_key(frame, key)]
        except (IndexError, TypeError) as error:
            guard(frame, type(error), lambda: True, *error.args)
            raise TypeMismatchError(str(error), current().line, "index within the tuple") from None
    if isinstance(key, slice):
        return base[frame.static(key, "a bound of a slice of a tuple or string")]
    raise_if_counted(frame, base, key)
    listed = new_list(frame, base)
    guard_list_index(frame, listed, key)
    return take_item(frame, listed, key)


def _static_key(frame: Frame, key):
    if isinstance(key, slice):
        return slice(*(frame.static(b, "this index") for b in (key.start, key.stop, key.step)))
    return frame.static(key, "this index")


def _parse_index(frame: Frame, key):
    """Pattern and operands of an index whose parts are bindings."""
    parts = key if isinstance(key, tuple) else (key,)
    return parse_index(tuple(_part(frame, part) for part in parts))


def _part(frame: Frame, part):
    part = frame.contents_of(part)
    match part:
        case _ if getattr(part, "is_range", False):
            return FUNCTIONS[np.arange](*map(value, part.bounds))
        case slice():
            return slice(*(None if b is None else frame.value(b)
                           for b in (part.start, part.stop, part.step)))
        case None:
            return None
        case _ if part is ...:
            return part
        case Cell() if is_list(frame, part):
            return (OF_LISTS[np.array](as_list(frame, part))
                    if frame.heap.items(part) is None else array(frame.value(part)))
        case list() | tuple():
            return FUNCTIONS[np.array](frame.value(part))
        case bool() | int():
            return value(part)
        case float():
            raise TypeMismatchError("a float as an index",
                                    current().line, "index with integers, slices or arrays")
    return frame.value(part)


def _compose_view_index(frame: Frame, cell: Cell, pattern, operands):
    """`a[i][j]` as `a[i, j]`: array, pattern and operands of the composed index into a view, as far
    as one index can express it.
    """
    while cell.index is not None or cell.place is not None:
        base, counters = frame.heap.read(cell.base), frame.session.counters
        index = (compose_index(base, cell.index, (pattern, operands), counters)
                 if cell.index is not None else cell.place(base, (pattern, operands), counters))
        if index is None:
            break
        cell, (pattern, operands) = cell.base, index
    return cell, pattern, operands
