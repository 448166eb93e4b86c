"""Lists that grow at run time: operations besides append, pop and len (for these see
ops/core/control.py).

    list_of(*items)           [a, b, c]            list_get(xs, i)        xs[i]
    list_set(xs, v, i)        xs[i] = v            list_add(xs, v, i)     xs[i] += v
    list_insert(xs, v, i)     xs.insert(i, v)      list_pop_at(xs, i)     xs.pop(i), and the new xs
    list_copy(xs)             xs.copy()

Their slices, sums, arrays and what they are asked stand in the files beside this one: list_slices,
list_sums, list_arrays, list_queries.

The cotangent of a list is a list of the same length, whose items are the cotangents of its items.
So append and pop are each other's adjoints, and so are insert and pop(i), a stack and the list of
its rows. An op that writes returns a new list in the IR, and prints as Python's in-place operation.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ...ir.builder import emit, join_types
from ...ir.graph import MISSING, Value
from ...ir.types import INT, UNDEFINED, Array, List, Scalar, Static, Tuple, Type, carries_derivative
from ..core.control import container_syntax, item_type, made_of, member_syntax, members_of, tape_len
from ..core.dependence_rules import anything, follows, spread_as
from ..core.record import ALL, define, no_jvp, no_vjp, value
from ..core.shape import kind_of_item, zeros_of


def call_syntax(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def method_syntax(base: ast.expr, name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(base, name, ast.Load()), list(args), [])


# ------------------------------------------------------------------------------------- making lists


def _infer_list(*items: Value, item: Type = UNDEFINED) -> Type:
    type = List(item)
    for x in items:
        type = join_types(type, List(x.type), "an item of a list")
    return type


list_of = define(
    "list_of",  # `item`: the later item type of an empty one
    evaluate=lambda *items, item=None: list(items),
    infer=_infer_list,
    syntax=lambda *items, item=None: ast.List(list(items), ast.Load()),
    vjp=lambda bar, y, *items, item=None: tuple(
        list_get(bar, value(k)) if carries_derivative(x.type) else None
        for k, x in enumerate(items)),
    linear=ALL,
    views=tuple(range(256)),
    moves=ALL, native="compiled", contiguous="operands",
)

listed = define(
    # a container of alike members, read as the list of them that it is in print
    "listed",
    evaluate=lambda xs, *, type: xs,
    infer=lambda xs, *, type: type,
    syntax=lambda xs, *, type: xs,
    vjp=None,
    cheap=True,
    views=(0,),
    moves=(0,), total=True,
)


# ----------------------------------------------------------------------------------------- elements


def _item(xs, indices):
    for i in indices:
        xs = xs[i]
    return xs


def _with(xs: list, change, i: int, *rest) -> list:
    """A copy of `xs` whose item at these indices is replaced by `change` of it."""
    ys = list(xs)
    ys[i] = _with(ys[i], change, *rest) if rest else change(ys[i])
    return ys


def _type_at(type: Type, indices: tuple) -> Type:
    for _ in indices:
        type = item_type(type)
    return type


def _nested(type: Type, count: int) -> Type:
    """The type of nested lists of `type`."""
    for _ in range(count):
        type = List(type)
    return type


def _added_at(bar: Value, xs: Value, *indices: Value):
    """Add the cotangent of `xs[i]` to that of `xs`."""
    return lambda old: list_add(zeros_of(xs) if old is None else old, bar, *indices,
                                kind=kind_of_item(bar.type))


def _fold_get(xs: Value, *indices: Value):
    """Fold xs[i][j] to an item of xs, or an item of a new list to its value."""
    if xs.op is not None and xs.op.record is list_get:
        return list_get(*xs.op.inputs, *indices)
    if (xs.op is not None and xs.op.record is list_of and len(indices) == 1
        and type(indices[0].constant) is int):
        items = xs.op.inputs
        if (-len(items) <= indices[0].constant < len(items)
            and items[indices[0].constant].type == item_type(xs.type)):
            return items[indices[0].constant]
    return None


list_get = define(
    "list_get",
    evaluate=lambda xs, *indices: _item(xs, indices),
    infer=lambda xs, *indices: _type_at(xs.type, indices),
    fold=_fold_get,
    syntax=lambda xs, *indices: _subscripts(xs, indices),
    vjp=lambda bar, y, xs, *indices: (_added_at(bar, xs, *indices), *(None for _ in indices)),
    linear=(0,),
    cheap=True,
    views=(0,),
    moves=(0,), native="compiled",
)


def _subscripts(xs: ast.expr, indices) -> ast.expr:
    for i in indices:
        xs = ast.Subscript(xs, i, ast.Load())
    return xs


def _infer_set(xs: Value, v: Value, *indices: Value) -> Type:
    return join_types(xs.type, _nested(v.type, len(indices)), "an item of a list")


def _fold_set(xs: Value, v: Value, *indices: Value):
    """Fold the writing back of a modified item to a write into it."""
    if v.op is None or v.op.record is not list_set:
        return None
    inner, new, *rest = v.op.inputs
    if inner.op is None or inner.op.record is not list_get or inner.op.inputs[0] is not xs:
        return None
    places = inner.op.inputs[1:]
    if (len(places) != len(indices)
        or any(a is not b and (a.constant is MISSING or a.constant != b.constant)
               for a, b in zip(places, indices))):
        return None
    return list_set(xs, new, *indices, *rest)


MOST_READ = 50  # values that one is computed from are looked at


def _vjp_set(bar, y, xs, v, *indices):
    v_bar = list_get(bar, *indices)  # read before being overwritten
    old = v if _is_as_long(_type_at(xs.type, indices), v.type) else _read_for(v, xs, indices)
    return list_set(bar, zeros_of(old), *indices), v_bar, *(None for _ in indices)


def _read_for(v: Value, xs: Value, indices: tuple) -> Value:
    """The item of `xs` that is replaced by `v`; that from which `v` is computed, where there is
    one, as a tape of it is shorter than one of the whole list.
    """
    left = [v]
    for x in left:
        if x.op is not None and x.op.record is list_get and (
                x.op.inputs[0] is xs and tuple(x.op.inputs[1:]) == indices):
            return x
        if x.op is not None and len(left) < MOST_READ:
            left += x.op.inputs
    return list_get(xs, *indices)


def _is_as_long(a: Type, b: Type) -> bool:
    """Whether all arrays and lists of two types are known to have the same lengths."""
    match a, b:
        case Tuple(), Tuple():
            return all(map(_is_as_long, a.items, b.items))
        case Array(), Array():
            return a.dims == b.dims
    return isinstance(a, (Scalar, Static)) and isinstance(b, (Scalar, Static))


list_set = define(
    "list_set",
    evaluate=lambda xs, v, *indices: _with(xs, lambda _: v, *indices),
    infer=_infer_set,
    fold=_fold_set,
    vjp=_vjp_set,
    linear=(0, 1),
    writes=0,
    views=(0, 1),
    moves=(0, 1), stores=True, contiguous="operands",
)

@follows(0, 1)
def _depends_add(unions, y, deps, xs, v, *indices, kind):
    added = spread_as(deps[1], v)

    def at(found, indices):
        if not indices:
            return union_by_item(unions, found, added)
        found = list(found)
        found[indices[0]] = at(found[indices[0]], indices[1:])
        return found

    return at(spread_as(deps[0], xs), indices)


def union_by_item(unions, a, b):
    """The union of dependences of lists of equal nesting, item by item."""
    if isinstance(a, list):
        return [union_by_item(unions, m, n) for m, n in zip(a, b)]
    return unions.union(a, b)


list_add = define(
    "list_add",  # `kind`: kind of the added value
    evaluate=lambda xs, v, *indices, kind: _with(xs, lambda x: plus_of_kind(kind, x, v), *indices),
    infer=lambda xs, v, *indices, kind: xs.type,
    vjp=lambda bar, y, xs, v, *indices, kind: (
        bar, list_get(bar, *indices), *(None for _ in indices)),
    linear=(0, 1),
    writes=0,
    views=(0,),
    depends=_depends_add, accumulates=True, contiguous="operands",
)

list_insert = define(
    "list_insert",
    evaluate=lambda xs, v, i: (lambda ys: (ys.insert(i, v), ys)[1])(list(xs)),
    infer=_infer_set,
    vjp=lambda bar, y, xs, v, i: (*list_pop_at(bar, place(xs, i)), None),
    linear=(0, 1),
    writes=0,
    views=(0, 1),
    moves=(0, 1), stores=True, growth=1, contiguous="operands",
)

list_pop_at = define(
    "list_pop_at",
    evaluate=lambda xs, i: (lambda ys: (ys, ys.pop(i)))(list(xs)),
    infer=lambda xs, i: [xs.type, item_type(xs.type)],
    vjp=lambda bars, y, xs, i: (list_insert(*bars, place(y[0], i, 1)), None),
    linear=(0,),
    writes=0,
    views=(0,),
    moves=(0,), growth=-1,
)


def taken_out(xs, i):
    """xs.pop(i) of items that have memory: after its own, Numba frees at the next append what is still in the list."""
    if i < 0:
        i += len(xs)
    if i < 0 or i >= len(xs):
        raise IndexError("pop index out of range")
    x = xs[i]
    for k in range(i + 1, len(xs)):
        xs[k - 1] = xs[k]
    xs.pop()
    return x


native_pop_at = replace(list_pop_at, syntax=lambda xs, i: call_syntax("taken_out", xs, i),
                        helper=taken_out)


def place(xs: Value, i: Value, more: int = 0) -> Value:
    """The index at which `xs.insert(i, v)` inserts v, counted from the start; `more`: where pop(i)
    on one more item took it.
    """
    return insertion(i, tape_len(xs) + more if more else tape_len(xs))


def insertion_place(i, n):
    """The index from the start at which insert(i, ...) puts something into a list of n items."""
    return max(i + n, 0) if i < 0 else min(i, n)


insertion = define(
    "insertion",
    evaluate=insertion_place,
    infer=lambda i, n: INT,
    fold=lambda i, n: i if isinstance(i.constant, int) and i.constant == 0 else None,
    syntax=lambda i, n: call_syntax("insertion_place", i, n),
    helper=insertion_place,
    partials=(None, None),
    vjp=no_vjp,
    jvp=no_jvp,
    cheap=True,
    depends=anything,
)


def plus_of_kind(kind, x, y):
    match kind:
        case ("list", inner):
            return [plus_of_kind(inner, a, b) for a, b in zip(x, y)]
        case ("members", form, *inner):
            return made_of(map(plus_of_kind, inner, members_of(x), members_of(y)), form)
        case "fixed":
            return x
    return x + y

def copy_syntax(type: List | Tuple, x: ast.expr, depth: int = 0) -> ast.expr:
    """The expression that copies a list with its inner lists, or a tuple with its members."""
    if isinstance(type, Tuple):
        return container_syntax(*(_copied(t, member_syntax(x, type.form, k), depth)
                                  for k, t in enumerate(type.items)), form=type.form)
    if not _holds_lists(type.item):
        return method_syntax(x, "copy")
    name = "row" if depth == 0 else f"row_{depth}"
    return ast.ListComp(copy_syntax(type.item, ast.Name(name, ast.Load()), depth + 1),
                        [ast.comprehension(ast.Name(name, ast.Store()), x, [], 0)])


def _copied(type: Type, x: ast.expr, depth: int) -> ast.expr:
    """The expression that copies a member of a tuple, if it needs copying."""
    if isinstance(type, (List, Tuple)):
        return copy_syntax(type, x, depth)
    return method_syntax(x, "copy") if isinstance(type, Array) else x


def _holds_lists(type: Type) -> bool:
    """Whether the type contains a list."""
    return isinstance(type, List) or isinstance(type, Tuple) and any(map(_holds_lists, type.items))


list_copy = define(
    "list_copy",
    evaluate=list,
    infer=lambda xs: List(xs.type.item),
    syntax=lambda xs: method_syntax(xs, "copy"),
    vjp=lambda bar, y, xs: (bar,),
    linear=(0,),
    views=(0,),
    moves=(0,),
)


def new_list(*items) -> Value:
    """A list of these items."""
    return emit(list_of, *map(value, items))
