"""Assignment: to names, elements and attributes; augmented, and in place; deletion."""

from __future__ import annotations

import gast
import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import at, current
from ...ir.graph import Value
from ...ir.types import Array, Extent, Unknown
from ...library.containers import Keyed
from ...ops.core.record import (
    RECORDS,
    dims_of,
    rank,
)
from ..control.join import with_either
from ..domain.frame import REST, Frame
from ..domain.functions import (
    ConditionalObject,
)
from ..domain.heap import Cell, Container, SharedError
from ..values.captured_writes import (
    augment_attribute,
    augment_item,
    is_array_of,
    is_list_outside,
    is_outside,
    write_method,
)
from ..values.dicts import delete_entry
from ..values.lists import (
    exchange,
    extend_in_place,
    is_array,
    is_list,
    is_tuple,
    repeat_in_place,
)
from ..values.maybe_unbound import read_name
from ..values.numpy_views import set_shape
from ..values.objects import write as write_attribute
from ..values.overloads import NOTHING, apply_in_place_operator, call_special
from ..values.python_operators import BINARY, SYMBOLS
from ..values.subscript import put, unpack
from ..values.unwrap import demand
from .apply import apply, apply_method

# functions that are indexed
from .attributes import attribute
from .expressions import evaluate, item_of, key_of, place_by_key, place_of
from .operators import binary


def assign(frame: Frame, target: gast.AST, binding, node: gast.AST) -> None:
    """`target = binding`."""
    match target:
        case gast.Name():
            frame.bind(target.id, binding)
        case gast.Tuple() | gast.List():
            binding = demand(frame, binding, getattr(node, "value", None))
            stars = [k for k, item in enumerate(target.elts) if isinstance(item, gast.Starred)]
            with at(frame.line(node)):
                items = unpack(frame, binding, len(target.elts), stars[0] if stars else None)
            frame.live |= frame.pending  # live for later targets
            around = frame.env.get(REST, ())
            for k, item in enumerate(target.elts):
                frame.env[REST] = (around, tuple(items[k + 1:]))
                assign(frame, item.value if isinstance(item, gast.Starred) else item, items[k],
                       item)
            frame.env[REST] = around
        case gast.Subscript():
            base, key = place_of(frame, target.value), key_of(frame, target.slice)
            with at(frame.line(node)):
                put(frame, base, key, binding)
        case gast.Attribute(value=owner, attr=name):
            owner = evaluate(frame, owner)
            with at(frame.line(node)):
                if name == "shape" and is_array(frame, owner) and isinstance(owner, Cell):
                    set_shape(frame, owner, binding)
                else:
                    _assign_attribute(frame, owner, name, binding, target)
        case _:
            raise frame.refuse("this kind of assignment", target, "assign to names and elements")


def _assign_attribute(frame: Frame, owner, name: str, binding, target: gast.Attribute) -> None:
    """`owner.name = binding`."""
    if isinstance(owner, ConditionalObject):
        return with_either(frame, owner,
                           lambda x: _assign_attribute(frame, x, name, binding, target))
    write_attribute(frame, owner, name, binding, target)


def exchange_items(frame: Frame, targets: list, items: list) -> bool:
    """`xs[i], xs[j] = xs[j], xs[i]` of one list with run-time indices; returns False, and does
    nothing, for other targets.
    """
    nodes = [*targets, *items]
    if len(targets) != 2 or not all(
            isinstance(node, gast.Subscript) and isinstance(node.value, gast.Name)
            and _is_arithmetic(node.slice) for node in nodes):
        return False
    first, second, *taken = [gast.dump(node.slice) for node in nodes]
    if len({node.value.id for node in nodes}) > 1 or taken != [second, first]:
        return False
    xs = evaluate(frame, targets[0].value)
    if not is_list(frame, xs) or frame.session.tries:
        return False
    keys = [key_of(frame, node.slice) for node in targets]
    if (any(isinstance(key, slice) for key in keys)
        or frame.heap.items(xs) is not None and all(map(frame.is_static, keys))):
        return False
    with at(frame.line(targets[0])):
        exchange(frame, xs, *keys)
    return True


def _is_arithmetic(node: gast.AST) -> bool:
    """Whether an expression may be evaluated twice."""
    return all(
        isinstance(n, (gast.Name, gast.Constant, gast.BinOp, gast.UnaryOp, gast.operator,
                       gast.unaryop, gast.expr_context)) for n in gast.walk(node))


def delete_item(frame: Frame, base, key, node: gast.AST) -> bool:
    """`del base[key]`; False if `base` supports no deletion."""
    if isinstance(base, Container) and base.is_dict:
        delete_entry(frame, base, key)
    elif isinstance(base, Container) and issubclass(base.cls, Keyed):
        apply(frame, attribute(frame, base, "pop", node), [key], {}, node)
    elif is_list(frame, base) and not isinstance(key, slice):
        apply_method(frame, base, "pop", [key], {}, node)
    elif is_list(frame, base) and frame.heap.items(base) is not None and frame.is_static(key):
        items = list(frame.heap.items(base))
        del items[frame.static(key, "this slice")]
        apply_method(frame, base, "clear", [], {}, node)
        apply_method(frame, base, "extend", [tuple(items)], {}, node)
    else:
        return call_special(frame, base, "__delitem__", [key], node) is not NOTHING
    return True


def augment(frame: Frame, node: gast.AugAssign) -> None:
    """`target op= value`."""
    match node.target:
        case gast.Name(id=name):
            old, v = read_name(frame, name, node.target), evaluate(frame, node.value)
            if is_list_outside(old) and isinstance(node.op, gast.Add):
                write_method(old, "extend")(frame, node, v)
                return
            old = frame.contents_of(old)
            _augment_name(frame, name, old, v, node)
        case gast.Subscript():
            base, key = place_of(frame, node.target.value), key_of(frame, node.target.slice)
            if is_outside(base):
                v = evaluate(frame, node.value)
                augment_item(frame, base, key, SYMBOLS[BINARY[type(node.op)][0]], v,
                             lambda old: _augmented_member(frame, old, v, node), node)
                return
            base, key = place_by_key(frame, base, key, node)
            old = item_of(frame, base, key)
            if isinstance(base, Container) or is_list(frame, base):
                new = _augmented_member(frame, old, evaluate(frame, node.value), node)
                if new is not old:
                    put(frame, base, key, new)
                return
            new = binary(frame, node.op, old, evaluate(frame, node.value), node)
            if isinstance(old, Cell) and frame.value(old).type != frame.value(new).type:
                new = _in_place(frame.value(old), frame.value(new))
            put(frame, base, key, new)
        case gast.Attribute(value=owner, attr=name):
            _augment_attribute(frame, evaluate(frame, owner), name, node)
        case _:
            raise frame.refuse("this kind of assignment", node.target,
                               "assign to names and elements")


def _augment_attribute(frame: Frame, owner, name: str, node: gast.AugAssign) -> None:
    """`owner.name op= value`."""
    if isinstance(owner, ConditionalObject):
        return with_either(frame, owner, lambda x: _augment_attribute(frame, x, name, node))
    if is_outside(owner) and not is_array_of(owner, name):
        v = evaluate(frame, node.value)
        augment_attribute(frame, owner, name, SYMBOLS[BINARY[type(node.op)][0]], v,
                          lambda old: _augmented_member(frame, old, v, node), node)
        return
    old = attribute(frame, owner, name, node.target)
    new = _augmented_member(frame, old, evaluate(frame, node.value), node)
    if new is not old:
        write_attribute(frame, owner, name, new, node.target)


def _augmented_member(frame: Frame, old, v, node: gast.AugAssign):
    """The content of a member after `old op= v`: an array is written in place and stays the member.
    """
    old = frame.contents_of(old)
    if (is_list(frame, old) and isinstance(node.op, gast.Add) and not is_array(frame, v)
            and not is_tuple(frame, old)):
        extend_in_place(frame, old, v)
        return old
    found = apply_in_place_operator(frame, BINARY[type(node.op)][0], old, v, node)
    if found is not NOTHING:
        return found
    if is_list(frame, old):
        new = binary(frame, node.op, old, v, node)
        if not is_list(frame, new) or is_tuple(frame, old):
            return new
        repeat_in_place(frame, old, new, node)
        return old
    if not isinstance(old, Cell) or isinstance(frame.heap.read(old).type, Unknown):
        return binary(frame, node.op, old, v, node)
    if old.doubtful:
        _refuse_shared(frame, "this", old, node)
        return binary(frame, node.op, old, v, node)
    before, after = frame.heap.read(old), frame.value(binary(frame, node.op, old, v, node))
    if after.type != before.type:
        after = RECORDS["setitem"](before, _in_place(before, after), pattern=(...,))
    frame.write(old, after)
    return old


def _augment_name(frame: Frame, name: str, old, v, node: gast.AugAssign) -> None:
    if (is_list(frame, old) and isinstance(node.op, gast.Add) and not is_array(frame, v)
            and not is_tuple(frame, old)):
        extend_in_place(frame, old, v)
        return
    found = apply_in_place_operator(frame, BINARY[type(node.op)][0], old, v, node)
    if found is not NOTHING:
        frame.bind(name, found)
        return
    new = binary(frame, node.op, old, v, node)
    if is_list(frame, old) and is_list(frame, new) and not is_tuple(frame, old):
        repeat_in_place(frame, old, new, node)
        return
    if not isinstance(old, Cell) or is_list(frame, old):
        frame.bind(name, new)
        return
    before, after = frame.heap.read(old), frame.value(new)
    if isinstance(before.type, Unknown) or old.doubtful:
        _refuse_shared(frame, name, old, node)
        frame.bind(name, new)
        return
    if after.type == before.type:
        frame.write(old, after)
    elif old.index is not None:  # write at once into the array of which it is a part
        put(frame, old, ..., _in_place(before, after))
    else:
        frame.write(old, RECORDS["setitem"](before, _in_place(before, after), pattern=(...,)))
    content = frame.heap.read(old)
    if not content.name:
        content.name = frame.label(name)


def _refuse_shared(frame: Frame, name: str, old: Cell, node: gast.AugAssign) -> None:
    """Refuse `name op= value` where `old` may be either a number or an array with other references.
    """
    others = [
        n for n, cell in frame.reachable()
        if n != name and (cell.family() | cell.root.held) & old.family()
    ]
    if others and (name != "this" or len(others) > 1):  # a member belongs to one container
        place = "x[k]" if name == "this" else name
        raise SharedError(
            f"{name} may be a number or an array, and {others[0]} may share its memory",
            frame.line(node),
            f"write `{place} = {place} {SYMBOLS[BINARY[type(node.op)][0]]} ...` if a new value is "
            "meant"
        )


def _in_place(before: Value, after: Value) -> Value:
    """The new content of `before` in an in-place update: the operands are broadcast to its shape,
    else NumPy raises.

    NumPy refuses to write floats into integers in place, and arrays of higher rank than the target,
    whatever their lengths.
    """
    if (isinstance(before.type, Array) and isinstance(after.type, Array)
        and after.type.rank > before.type.rank):
        raise TypeMismatchError(
            f"a value of {after.type.rank} axes cannot be written in place into an array of "
            f"{before.type.rank}",
            current().line,
            "index or reshape it to the axes of that array, or make a new one: `x = x + ...`")
    old, new = getattr(before.type, "dtype", None), getattr(after.type, "dtype", None)
    if old is not None and new is not None and not np.can_cast(new, old, "same_kind"):
        raise TypeMismatchError(f"{new} values cannot be written into an array of {old} in place",
                                current().line,
                                "make the array of the wider dtype first, with .astype")
    dims = list(zip(dims_of(before.type), dims_of(after.type)))
    is_known = (len(dims) == rank(before) == rank(after)
                and all(m == n or isinstance(m, Extent) and isinstance(n, Extent) for m, n in dims))
    return RECORDS["shaped_like"](after, before) if is_known else after
