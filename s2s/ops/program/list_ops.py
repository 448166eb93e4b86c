"""Lists that grow at run time: operations besides append, pop and len (for these see
ops/core/control.py).

    list_of(*items)           [a, b, c]            list_get(xs, i)        xs[i]
    list_set(xs, v, i)        xs[i] = v            list_add(xs, v, i)     xs[i] += v
    list_insert(xs, v, i)     xs.insert(i, v)      list_pop_at(xs, i)     xs.pop(i), and the new xs
    list_full(x, n)           [x] * n              list_slice(xs, ...)    xs[lo:hi:step]
    list_join(a, b)           a + b                list_stack(xs)         np.array(xs)
    list_unstack(a)           list(a)              list_sum(xs)           sum(xs)

The cotangent of a list is a list of the same length, whose items are the cotangents of its items.
So append and pop are each other's adjoints, and so are insert and pop(i), a stack and the list of
its rows. An op that writes returns a new list in the IR, and prints as Python's in-place operation.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, emit, fresh_extent, join_types
from ...ir.graph import MISSING, Value
from ...ir.types import (
    BOOL,
    FLOAT,
    INT,
    UNDEFINED,
    Array,
    Extent,
    List,
    Scalar,
    Static,
    Tape,
    Tuple,
    Type,
    Unknown,
    carries_derivative,
)
from ..arrays.create import as_dtype
from ..core import raise_conditions
from ..core.axis_numbers import normal_axis, static_axis
from ..core.control import (
    container_syntax,
    for_loop,
    item,
    item_type,
    made_of,
    member_syntax,
    members_of,
    packed,
    tape_copy,
    tape_len,
    tape_pop,
    tape_push,
)
from ..core.dependence_rules import anything, follows, nothing, spread_as
from ..core.kinks import COMPARED, Kink, kinked
from ..core.record import (
    ALL,
    FUNCTIONS,
    WITH_ARGUMENTS,
    Record,
    array_type,
    becomes,
    define,
    no_jvp,
    no_vjp,
    rank,
    value,
)
from ..core.shape import NARROW, float_dtype, kind_of_item, numpy_call, shaped_like, zeros_of


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _method(base: ast.expr, name: str, *args: ast.expr) -> ast.expr:
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

list_full = define(
    "list_full",  # (x, n): [x] * n
    evaluate=lambda x, n: [x] * n,
    infer=lambda x, n: List(x.type),
    syntax=lambda x, n: ast.BinOp(ast.List([x], ast.Load()), ast.Mult(), n),
    vjp=lambda bar, y, x, n: (total_of(bar, x), None),
    linear=(0,),
    views=(0,),
    moves=(0,), native="compiled", contiguous="operands",
)


def total_of(xs: Value, like: Value) -> Value:
    """The sum of the items of `xs`, which are all of the kind of `like`."""
    match like.type:
        case Scalar():
            return list_sum(xs)
        case Array() | Unknown():
            return shaped_like(list_total(xs, zeros_of(like)), like)
    raise UnsupportedError(f"the derivative of a repeated {like.type}", current().line,
                           "append the items one by one")


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
            return _union(unions, found, added)
        found = list(found)
        found[indices[0]] = at(found[indices[0]], indices[1:])
        return found

    return at(spread_as(deps[0], xs), indices)


def _union(unions, a, b):
    """The union of dependences of lists of equal nesting, item by item."""
    if isinstance(a, list):
        return [_union(unions, m, n) for m, n in zip(a, b)]
    return unions.union(a, b)


list_add = define(
    "list_add",  # `kind`: kind of the added value
    evaluate=lambda xs, v, *indices, kind: _with(xs, lambda x: _plus(kind, x, v), *indices),
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


native_pop_at = replace(list_pop_at, syntax=lambda xs, i: _call("taken_out", xs, i),
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
    syntax=lambda i, n: _call("insertion_place", i, n),
    helper=insertion_place,
    partials=(None, None),
    vjp=no_vjp,
    jvp=no_jvp,
    cheap=True,
    depends=anything,
)


# -------------------------------------------------------------------------------------- whole lists


def _zero(kind, x):
    match kind:
        case ("list", inner):
            return [_zero(inner, y) for y in x]
        case ("members", form, *inner):
            return made_of(map(_zero, inner, members_of(x)), form)
        case "number":
            return 0.0
        case ("number", dtype):
            return 0j if dtype == "complex128" else np.dtype(dtype).type(0)
        case ("array", dtype):
            return np.zeros(np.shape(x), dtype)
        case "fixed":
            return x
    return np.zeros(np.shape(x))


def _zero_syntax(kind, x: ast.expr, depth: int = 0) -> ast.expr:
    match kind:
        case ("list", "number" | ("number", _)):
            return ast.BinOp(ast.List([_zero_syntax(kind[1], x)], ast.Load()), ast.Mult(),
                             _call("len", x))
        case ("list", inner):
            name = "x" if depth == 0 else f"x_{depth}"
            element = _zero_syntax(inner, ast.Name(name, ast.Load()), depth + 1)
            return ast.ListComp(element, [ast.comprehension(ast.Name(name, ast.Store()), x, [], 0)])
        case ("members", form, *inner):
            return container_syntax(*(_zero_syntax(k, member_syntax(x, form, n), depth)
                                      for n, k in enumerate(inner)), form=form)
        case "number":
            return ast.Constant(0.0)
        case ("number", "complex128"):
            return ast.Constant(0j)
        case ("number", dtype):
            return numpy_call(dtype, ast.Constant(0.0))
        case ("array", dtype):
            return numpy_call("zeros", numpy_call("shape", x),
                              ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load()))
        case "fixed":
            return x
    return numpy_call("zeros", numpy_call("shape", x))


def _plus(kind, x, y):
    match kind:
        case ("list", inner):
            return [_plus(inner, a, b) for a, b in zip(x, y)]
        case ("members", form, *inner):
            return made_of(map(_plus, inner, members_of(x), members_of(y)), form)
        case "fixed":
            return x
    return x + y


def plus_syntax(kind, x: ast.expr, y: ast.expr, depth: int = 0) -> ast.expr:
    match kind:
        case ("list", inner):
            a, b = ("a", "b") if depth == 0 else (f"a_{depth}", f"b_{depth}")
            element = plus_syntax(inner, ast.Name(a, ast.Load()), ast.Name(b, ast.Load()),
                                  depth + 1)
            pair = ast.Tuple([ast.Name(a, ast.Store()), ast.Name(b, ast.Store())], ast.Store())
            return ast.ListComp(element, [ast.comprehension(pair, _call("zip", x, y), [], 0)])
        case ("members", form, *inner):
            return container_syntax(*(plus_syntax(k, member_syntax(x, form, n),
                                                  member_syntax(y, form, n), depth)
                                      for n, k in enumerate(inner)), form=form)
        case "fixed":
            return x
    return ast.BinOp(x, ast.Add(), y)


def _cotangent_type(type: Type) -> Type:
    match type:
        case Tape(item):
            return Tape(_cotangent_type(item))
        case List(item):
            return List(_cotangent_type(item))
        case Tuple(items, form):
            return Tuple(tuple(map(_cotangent_type, items)), form)
        case Scalar(dtype):
            dtype = dtype if dtype is None else float_dtype(type)
            return Scalar(dtype, dtype not in NARROW)
        case Array(dtype, dims):
            return Array(dtype if carries_derivative(type) else "float64", dims)
    return type


def _fold_zeros(xs: Value, *, kind):
    """Fold zeros for a new list, item by item."""
    if xs.op is not None and xs.op.record is list_of:
        attrs = {name: _cotangent_type(item) for name, item in xs.op.attrs.items()}
        return emit(list_of, *map(zeros_of, xs.op.inputs), **attrs)
    if xs.op is not None and xs.op.record is list_full:
        return list_full(zeros_of(xs.op.inputs[0]), xs.op.inputs[1])
    return None


list_zeros = define(
    "list_zeros",  # (xs): a zero cotangent
    evaluate=lambda xs, *, kind: _zero(kind, xs),
    infer=lambda xs, *, kind: _cotangent_type(xs.type),
    fold=_fold_zeros,
    syntax=lambda xs, *, kind: _zero_syntax(kind, xs),
    vjp=no_vjp,
    jvp=no_jvp,
    depends=nothing,
    fill=0,
)

@follows(0, 1)
def _depends_plus(unions, y, deps, a, b, **attrs):
    return _union(unions, spread_as(deps[0], a), spread_as(deps[1], b))


list_plus = define(
    "list_plus",  # (a, b): the sum of two cotangents, item by item
    evaluate=lambda a, b, *, kind: _plus(kind, a, b),
    infer=lambda a, b, *, kind: join_types(a.type, b.type, "a cotangent"),
    syntax=lambda a, b, *, kind: plus_syntax(kind, a, b),
    # each empties its own
    vjp=lambda bar, y, a, b, *, kind: (bar, tape_copy(bar) if isinstance(bar.type, Tape) else bar),
    linear=(0, 1),
    depends=_depends_plus,
)


def sum_of(a: Value, b: Value) -> Value:
    """The sum of two cotangents of one value."""
    match a.type:
        case Scalar() if a.constant == 0.0:  # for a container whose other members have one
            return b
        case Scalar() if b.constant == 0.0:
            return a
        case List():
            return list_plus(a, b, kind=kind_of_item(a.type))
        case Tuple(items):
            return packed([sum_of(item(a, index=k), item(b, index=k)) for k in range(len(items))],
                          a.type.form)
        case Static():
            return a
    return a + b


def _into_member(bar: Value, t: Value, index: int):
    """Add the cotangent of a member to that of a tuple read from a list."""
    if isinstance(t.type, Unknown):
        raise UnsupportedError(
            f"whether {t.name or 'what is taken apart'} is a tuple or an array "
            "is known only at a call",
            current().line, WITH_ARGUMENTS)

    def enter(old):
        whole = zeros_of(t) if old is None else old
        members = [item(whole, index=k) for k in range(len(t.type.items))]
        members[index] = bar if old is None else sum_of(members[index], bar)
        return packed(members, t.type.form)

    return enter


item.vjp = lambda bar, y, t, *, index: (_into_member(bar, t, index),)

# ----------------------------------------------------------------------------- slices, joined lists


def _bounds(flags, operands):
    rest = iter(operands)
    return slice(*(next(rest) if flag else None for flag in flags))


def _slice_syntax(flags, operands):
    rest = iter(operands)
    lower, upper, step = (next(rest) if flag else None for flag in flags)
    return ast.Slice(lower, upper, step)


def added_to_slice(xs, values, lower, upper, step):
    """A list like `xs`, to whose slice the values have been added."""
    ys = [x for x in xs]
    start, stop, stride = slice(lower, upper, step).indices(len(ys))
    k = 0
    for i in range(start, stop, stride):
        ys[i] = ys[i] + values[k]
        k += 1
    return ys


def with_slice(xs, values, lower, upper, step):
    """A list like `xs`, whose slice is these values."""
    ys = [x for x in xs]
    start, stop, stride = slice(lower, upper, step).indices(len(ys))
    k = 0
    for i in range(start, stop, stride):
        ys[i] = values[k]
        k += 1
    return ys


def _vjp_slice(bar, y, xs, *operands, flags):
    is_nested = isinstance(xs.type.item, (List, Tuple))

    def entering(old):
        old = zeros_of(xs) if old is None else old
        if not is_nested:
            return slice_plus(old, bar, *operands, flags=flags)
        total = sum_of(list_slice(old, *operands, flags=flags), bar)
        return slice_replaced(old, total, *operands, flags=flags)

    return (entering, *(None for _ in operands))


list_slice = define(
    "list_slice",  # (xs, *bounds; which of the three are given)
    evaluate=lambda xs, *operands, flags: xs[_bounds(flags, operands)],
    infer=lambda xs, *operands, flags: List(xs.type.item),
    syntax=lambda xs, *operands, flags: ast.Subscript(xs, _slice_syntax(flags, operands),
                                                      ast.Load()),
    vjp=_vjp_slice,
    linear=(0,),
    views=(0,),
    moves=(0,),
)


def _given_bounds(flags, operands):
    rest = iter(operands)
    return [next(rest) if flag else None for flag in flags]


@follows(0, 1)
def _depends_slice_plus(unions, y, deps, xs, values, *bounds, flags):
    return anything(unions, y, deps)


def _define_slice_write(name: str, helper, vjp):
    return define(
        name,  # (xs, values, *bounds)
        evaluate=lambda xs, values, *operands, flags: helper(
            xs, values, *_given_bounds(flags, operands)),
        infer=lambda xs, values, *operands, flags: xs.type,
        syntax=lambda xs, values, *operands, flags: _call(
            helper.__name__, xs, values,
            *(ast.Constant(None) if b is None else b for b in _given_bounds(flags, operands))),
        helper=helper,
        vjp=lambda bar, y, xs, values, *operands, flags: (
            vjp(bar, values, operands, flags), list_slice(bar, *operands, flags=flags),
            *(None for _ in operands)),
        linear=(0, 1),
        views=(0, 1),
        depends=_depends_slice_plus,
    )


slice_plus = _define_slice_write("slice_plus", added_to_slice,
                                 lambda bar, values, operands, flags: bar)
# what an adjoint adds to a slice of lists, tuples or objects
slice_replaced = _define_slice_write(
    "slice_replaced", with_slice, lambda bar, values, operands, flags: slice_replaced(
        bar, zeros_of(values), *operands, flags=flags))


def _vjp_join(bar, y, a, b):
    if not isinstance(bar.type, List):
        raise UnsupportedError("the derivative of a list that holds lists, to depths that a run "
                               "decides", current().line,
                               "put the numbers into one list, and the places of what belongs to "
                               "them into lists of integers")
    n = tape_len(a)
    return (list_slice(bar, n, flags=(False, True, False)),
            list_slice(bar, n, flags=(True, False, False)))


list_join = define(
    "list_join",
    evaluate=operator.add,
    infer=lambda a, b: join_types(a.type, b.type, "an item of a list"),
    syntax=lambda a, b: ast.BinOp(a, ast.Add(), b),
    vjp=_vjp_join,
    linear=(0, 1),
    views=(0, 1),
    moves=(0, 1),
    stores=True,
)

def copy_syntax(type: List | Tuple, x: ast.expr, depth: int = 0) -> ast.expr:
    """The expression that copies a list with its inner lists, or a tuple with its members."""
    if isinstance(type, Tuple):
        return container_syntax(*(_copied(t, member_syntax(x, type.form, k), depth)
                                  for k, t in enumerate(type.items)), form=type.form)
    if not _holds_lists(type.item):
        return _method(x, "copy")
    name = "row" if depth == 0 else f"row_{depth}"
    return ast.ListComp(copy_syntax(type.item, ast.Name(name, ast.Load()), depth + 1),
                        [ast.comprehension(ast.Name(name, ast.Store()), x, [], 0)])


def _copied(type: Type, x: ast.expr, depth: int) -> ast.expr:
    """The expression that copies a member of a tuple, if it needs copying."""
    if isinstance(type, (List, Tuple)):
        return copy_syntax(type, x, depth)
    return _method(x, "copy") if isinstance(type, Array) else x


def _holds_lists(type: Type) -> bool:
    """Whether the type contains a list."""
    return isinstance(type, List) or isinstance(type, Tuple) and any(map(_holds_lists, type.items))


list_copy = define(
    "list_copy",
    evaluate=list,
    infer=lambda xs: List(xs.type.item),
    syntax=lambda xs: _method(xs, "copy"),
    vjp=lambda bar, y, xs: (bar,),
    linear=(0,),
    views=(0,),
    moves=(0,),
)


# --------------------------------------------------------------------------------- lists and arrays


def _fresh_dims(dims: tuple) -> tuple:
    return tuple(replace(fresh_extent(), symbol_may_be_one=d.may_be_one)
                 if isinstance(d, Extent) and d.accepts_any else d for d in dims)


def _infer_stack(xs: Value) -> Type:
    match xs.type.item:
        case Scalar(dtype):
            return Array(dtype, (fresh_extent(),)) if dtype is not None else Unknown()
        case Array(dtype, dims):
            return Array(dtype, (fresh_extent(), *_fresh_dims(dims)))
        case Unknown():
            return Unknown()
        case List() as inner:
            match inner.item:
                case Scalar(dtype):
                    return Array(dtype, (fresh_extent(), fresh_extent()))
    if xs.type.item == UNDEFINED:
        return Array("float64", (0,))
    raise UnsupportedError(f"an array of a {xs.type}", current().line,
                           "put numbers or arrays of one shape into the list")


def stacked(xs):
    """np.array(xs) of a list of arrays of one shape, as loops."""
    if len(xs) == 0:
        raise ValueError("need at least one array to stack")
    first = xs[0]
    y = np.empty((len(xs),) + first.shape, first.dtype)
    for k in range(len(xs)):
        if xs[k].shape != first.shape:
            raise ValueError("arrays that are stacked have one shape")
        y[k] = xs[k]
    return y


def _vjp_stack(bar, y, xs):
    return (list_unstack(bar, depth=2 if isinstance(xs.type.item, List) else 1),)


list_stack = define(
    "list_stack",
    evaluate=lambda xs: np.array(xs),
    infer=_infer_stack,
    syntax=lambda xs: numpy_call("array", xs),
    vjp=_vjp_stack,
    linear=(0,),
    moves=(0,),
)


def stacked_lists(xs):
    """np.array(xs) of a list of lists of one length, as loops."""
    y = np.empty((len(xs), len(xs[0]) if len(xs) > 0 else 0))
    for k in range(len(xs)):
        for j in range(len(xs[k])):
            y[k, j] = xs[k][j]
    return y


native_nested = define("native_nested", evaluate=stacked_lists, infer=_infer_stack,
                       syntax=lambda xs: _call("stacked_lists", xs), helper=stacked_lists)


def array_of(xs):
    """np.array(xs), where Numba does not see how the list was made, of which it makes wrong guesses."""
    return np.array(xs)


native_array = define("native_array", evaluate=array_of, infer=_infer_stack,
                      syntax=lambda xs: _call("array_of", xs), helper=array_of)
native_stack = define(
    "native_stack",  # the same, where Numba knows no np.array of it
    evaluate=stacked,
    infer=_infer_stack,
    syntax=lambda xs: _call("stacked", xs),
    helper=stacked,
)


def _infer_unstack(a: Value, *, depth: int) -> Type:
    match a.type:
        case Array(dtype, dims):
            if len(dims) < depth:
                raise TypeMismatchError("a list of the items of a number", current().line,
                                        "pass an array")
            inner = array_type(dtype, dims[depth:])
            for _ in range(depth):
                inner = List(inner)
            return inner
        case Unknown(_, dtype) if depth == 1:
            return List(Unknown(dtype=dtype))
    raise TypeMismatchError(f"a list of {a.type}", current().line, "pass an array")


def _unstack_syntax(a: ast.expr, *, depth: int) -> ast.expr:
    if depth == 1:
        return _call("list", a)
    row = ast.Name("row", ast.Load())
    return ast.ListComp(_call("list", row),
                        [ast.comprehension(ast.Name("row", ast.Store()), a, [], 0)])


list_unstack = define(
    "list_unstack",
    evaluate=lambda a, *, depth: list(a) if depth == 1 else [list(row) for row in a],
    infer=_infer_unstack,
    syntax=_unstack_syntax,
    vjp=lambda bar, y, a, *, depth: (shaped_like(list_stack(bar), a),),
    linear=(0,),
    views=(0,),
    moves=(0,), contiguous="operands",
)


def rows_of(a):
    """list(a) of rows that lie in one piece, as far as Numba sees."""
    return [a[k] for k in range(len(a))]


def rows_of_each(a):
    """[list(row) for row in a], as rows_of does it."""
    return [[a[k, j] for j in range(a.shape[1])] for k in range(len(a))]


native_unstack = define("native_unstack", evaluate=rows_of,
                        infer=lambda a: _infer_unstack(a, depth=1),
                        syntax=lambda a: _call("rows_of", a), helper=rows_of, views=(0,))
native_unstack_each = define(
    "native_unstack_each", evaluate=rows_of_each, infer=lambda a: _infer_unstack(a, depth=2),
    syntax=lambda a: _call("rows_of_each", a), helper=rows_of_each, views=(0,))


def joined_end_to_end(xs):
    """np.concatenate(xs) of a list of arrays of one or more axes, as loops."""
    count = 0
    for x in xs:
        count += x.shape[0]
    first = xs[0]
    y = np.empty((count,) + first.shape[1:], first.dtype)
    start = 0
    for x in xs:
        y[start:start + x.shape[0]] = x
        start += x.shape[0]
    return y


def cut_like(y_bar, xs):
    """The parts of an array that are as long as the items of `xs`."""
    parts = []
    start = 0
    for x in xs:
        parts.append(y_bar[start:start + x.shape[0]])
        start += x.shape[0]
    return parts


def _infer_concatenated(xs: Value) -> Type:
    match xs.type.item:
        case Array(dtype, dims):
            return Array(dtype, (fresh_extent(), *_fresh_dims(dims[1:])))
        case Unknown():
            return Unknown()
    raise TypeMismatchError(f"np.concatenate of a {xs.type}", current().line,
                            "put arrays into the list, or use np.array")


list_concatenate = define(
    "list_concatenate",
    evaluate=lambda xs: np.concatenate(xs),
    infer=_infer_concatenated,
    syntax=lambda xs: numpy_call("concatenate", xs),
    vjp=lambda bar, y, xs: (list_cut(bar, xs),),
    linear=(0,),
    moves=(0,),
)
native_concatenate = define(
    "native_concatenate",
    evaluate=joined_end_to_end,
    infer=_infer_concatenated,
    syntax=lambda xs: _call("joined_end_to_end", xs),
    helper=joined_end_to_end,
)
list_cut = define(
    "list_cut",  # (y_bar, xs): the transpose of concatenate
    evaluate=cut_like,
    infer=lambda bar, xs: List(xs.type.item),
    syntax=lambda bar, xs: _call("cut_like", bar, xs),
    helper=cut_like,
    vjp=lambda bar, y, y_bar, xs: (shaped_like(list_concatenate(bar), y_bar), None),
    linear=(0,),
    views=(0,),
    moves=(0,), contiguous="operands",
)


# ----------------------------------------------------------------------------------- what lists say


def _infer_sum(xs: Value) -> Type:
    match xs.type.item:
        case Scalar("bool"):
            return INT
        case Scalar() | Array() | Unknown() as type:
            return item_type(List(type))
    if xs.type.item == UNDEFINED:
        return INT
    raise TypeMismatchError(f"sum of a {xs.type}", current().line,
                            "put numbers or arrays into the list")


def _vjp_sum(bar, y, xs):
    return (list_full(bar, tape_len(xs)),)


list_sum = define(
    "list_sum",
    evaluate=sum,
    infer=_infer_sum,
    syntax=lambda xs: _call("sum", xs),
    vjp=_vjp_sum,
    linear=(0,),
    depends=anything, from_zero=True, native="compiled",
)
FSUM = ast.Attribute(ast.Name("math", ast.Load()), "fsum", ast.Load())
sum_overflows = define(
    "sum_overflows",  # whether math.fsum raises OverflowError, because a partial sum overflows
    evaluate=lambda xs: raise_conditions.overflows(math.fsum, xs),
    infer=lambda xs: BOOL,
    syntax=lambda xs: _call("overflows", FSUM, xs),
    helper=raise_conditions.overflows,
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)
exact_sum = define(
    "exact_sum",  # math.fsum
    evaluate=math.fsum,
    infer=lambda xs: FLOAT,
    syntax=lambda xs: ast.Call(
        ast.Attribute(ast.Name("math", ast.Load()), "fsum", ast.Load()), [xs], []),
    differentiated_as=lambda y, xs: (list_sum, (xs,), {}),
    raises=(raise_conditions.Raises(OverflowError, lambda xs: sum_overflows(xs), ([1e308, 1e308],),
                                    natively=False),),
    depends=anything,
)


def parts_of_sum(xs):
    """Three sums of `xs`: of the finite ones, of the others, and of the infinite ones among these.

    The first is given in parts, numbers whose bits do not overlap (Shewchuk 1997).  The last part
    is infinite where the sum overflows on the way; what comes after that is passed over.
    """
    parts = [0.0][:0]
    special, infinite = 0.0, 0.0
    for x in xs:
        x = float(x)
        if not math.isfinite(x):
            special += x
            if math.isinf(x):
                infinite += x
            del parts[0:]
            continue
        count = 0
        for k in range(len(parts)):
            y = parts[k]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                parts[count] = low
                count += 1
            x = high
        del parts[count:]
        parts.append(x)
        if not math.isfinite(x):
            break
    return parts, special, infinite


def overflows_on_the_way(xs):
    """Whether math.fsum(xs) raises OverflowError, as loops."""
    parts, _, _ = parts_of_sum(xs)
    return len(parts) > 0 and not math.isfinite(parts[-1])


def summed_exactly(xs):
    """math.fsum as loops, which round the sum once."""
    parts, special, infinite = parts_of_sum(xs)
    if len(parts) > 0 and not math.isfinite(parts[-1]):
        raise OverflowError("intermediate overflow in fsum")
    if special != 0.0:
        if math.isnan(infinite):
            raise ValueError("-inf + inf in fsum")
        return special
    high, low = 0.0, 0.0
    while len(parts) > 0 and low == 0.0:
        x = high
        y = parts.pop()
        high = x + y
        low = y - (high - x)
    if len(parts) > 0 and (low < 0.0 and parts[-1] < 0.0 or low > 0.0 and parts[-1] > 0.0):
        y = low * 2.0
        x = high + y
        if y == x - high:
            high = x
    return high


exact_sum.lower = becomes(define(
    "native_exact_sum", evaluate=summed_exactly, infer=lambda xs: FLOAT,
    syntax=lambda xs: _call("summed_exactly", xs), helper=summed_exactly))
sum_overflows.lower = becomes(define(
    "native_sum_overflows", evaluate=overflows_on_the_way, infer=lambda xs: BOOL,
    syntax=lambda xs: _call("overflows_on_the_way", xs), helper=overflows_on_the_way))
list_total = define(
    "list_total",  # (xs, start): sum(xs, start) of arrays
    evaluate=sum,
    infer=lambda xs, start: start.type,
    syntax=lambda xs, start: _call("sum", xs, start),
    vjp=lambda bar, y, xs, start: (list_full(bar, tape_len(xs)), bar),
    linear=(0, 1),
    depends=anything, native="compiled", contiguous="operands",
)


def summed_arrays(xs):
    """sum(xs) of arrays, in native code."""
    if len(xs) == 0:
        raise ValueError("the sum of no arrays is a number, which compiled code has no rank for")
    total = 0 + xs[0]
    for k in range(1, len(xs)):
        total = total + xs[k]
    return total


def summed_to(xs, start):
    """sum(xs, start) of arrays, in native code."""
    total = start.copy()
    for x in xs:
        total = total + x
    return total


def _native_sum(name: str, function: Callable, infer: Callable) -> Record:
    return define(name, evaluate=function, infer=infer, helper=function,
                  syntax=lambda *xs: _call(function.__name__, *xs))


native_sum = _native_sum("native_sum", summed_arrays, _infer_sum)
native_total = _native_sum("native_total", summed_to, lambda xs, start: start.type)


def _is_of_arrays(xs: Value) -> bool:
    return isinstance(xs.type.item, Array)


list_sum.lower = lambda op, xs: native_sum(xs) if _is_of_arrays(xs) else None
list_total.lower = lambda op, xs, start: (
    native_total(xs, start)
    if _is_of_arrays(xs) and start.type == op.output.type and isinstance(start.type, Array)
    else None)


def _extreme(name: str, function) -> Record:
    """Define max(xs) or min(xs): the first extreme item."""
    return define(
        name,
        evaluate=function,
        infer=lambda xs: item_type(xs.type),
        syntax=lambda xs: _call(function.__name__, xs),
        differentiated_as=lambda y, xs: (list_get, (xs, list_index(xs, y)), {}),
        raises=raise_conditions.EXTREME_OF_LIST,
        depends=anything,
    )


list_max, list_min = _extreme("list_max", max), _extreme("list_min", min)
for _each in (list_max, list_min):
    kinked(_each,
           Kink("a tie: the first of the items gets the derivative",
                lambda y, xs: list(xs).count(y) > 1))

list_contains = define(
    "list_contains",
    evaluate=lambda x, xs: x in xs,
    infer=lambda x, xs: BOOL,
    syntax=lambda x, xs: ast.Compare(x, [ast.In()], [xs]),
    vjp=no_vjp,
    jvp=no_jvp,
    cheap=True,
    depends=anything,
)
kinked(list_contains, Kink(COMPARED, lambda y, x, xs: y))


def _question(name: str) -> Record:
    """Define xs.index(x) or xs.count(x)."""
    return define(
        f"list_{name}",
        evaluate=lambda xs, x: getattr(xs, name)(x),
        infer=lambda xs, x: INT,
        syntax=lambda xs, x: _method(xs, name, x),
        vjp=no_vjp,
        jvp=no_jvp,
        depends=anything,
    )


list_index, list_count = _question("index"), _question("count")
for _each in (list_index, list_count):
    kinked(_each, Kink(COMPARED, lambda y, xs, x: x in xs))
list_index.raises, list_pop_at.raises, tape_pop.raises = (raise_conditions.FIND,
                                                          raise_conditions.POP,
                                                          raise_conditions.POP_LAST)


def sorting_order(keys, reverse):
    """The indices that sort `keys`, equal ones in the order in which they stand.

    Where NaN is among the keys, nothing but Python's own comparisons says where they come to stand.
    """
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def native_order(keys, reverse):
    """sorting_order without NaN, with which it raises, so that Python sorts."""
    array = np.array(keys)
    if np.any(array != array):
        raise ArithmeticError("the order of NaN")
    if reverse:
        n = len(keys)
        return [n - 1 - k for k in np.argsort(array[::-1], kind="mergesort")][::-1]
    return [k for k in np.argsort(array, kind="mergesort")]


list_order = define(
    "list_order",  # (keys; reverse): a list of indices
    evaluate=lambda keys, *, reverse: sorting_order(keys, reverse),
    infer=lambda keys, *, reverse: List(Scalar("int64")),
    syntax=lambda keys, *, reverse: _call("sorting_order", keys, ast.Constant(reverse)),
    helper=sorting_order,
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)
list_order.lower = becomes(define(
    "native_list_order",
    evaluate=lambda keys, *, reverse: native_order(keys, reverse),
    infer=lambda keys, *, reverse: List(Scalar("int64")),
    syntax=lambda keys, *, reverse: _call("native_order", keys, ast.Constant(reverse)),
    helper=native_order,
))
kinked(list_order,
       Kink("a tie: equal items stay in the order in which they stand",
            lambda y, keys, *, reverse: len(set(keys)) < len(keys)))


def scattered(values, order, xs):
    """The items of `values` at the places of `order`."""
    ys = xs.copy()
    for k in range(len(order)):
        ys[order[k]] = values[k]
    return ys


def _pick_syntax(xs: ast.expr, order: ast.expr) -> ast.expr:
    """The expression `[xs[k] for k in order]`, with a name `k` that is not used in `xs`."""
    taken = {node.id for node in ast.walk(xs) if isinstance(node, ast.Name)}
    k = "k"
    while k in taken:
        k += "_"
    return ast.ListComp(ast.Subscript(xs, ast.Name(k, ast.Load()), ast.Load()),
                        [ast.comprehension(ast.Name(k, ast.Store()), order, [], 0)])


list_pick = define(
    "list_pick",  # (xs, order): [xs[k] for k in order], where each place occurs once
    evaluate=lambda xs, order: [xs[k] for k in order],
    infer=lambda xs, order: List(xs.type.item),
    syntax=_pick_syntax,
    vjp=lambda bar, y, xs, order: (list_put(bar, order), None),
    linear=(0,),
    views=(0,),
    moves=(0,),
)
list_put = define(
    "list_put",  # the transpose of list_pick
    evaluate=lambda values, order: scattered(values, order, values),
    infer=lambda values, order: values.type,
    syntax=lambda values, order: _call("scattered", values, order, values),
    helper=scattered,
    vjp=lambda bar, y, values, order: (list_pick(bar, order), None),
    linear=(0,),
    views=(0,),
    moves=(0,),
)


# ----------------------------------------------------------------- NumPy's functions of such a list


def _array(xs: Value, dtype=None, copy=True) -> Value:
    return as_dtype(list_stack(xs), dtype)


def _stack(xs: Value, axis=0) -> Value:
    axis = static_axis(axis)
    y = list_stack(xs)
    return y if axis == 0 else FUNCTIONS[np.moveaxis](y, 0, axis)


def _concatenate(xs: Value, axis=0) -> Value:
    if static_axis(axis) == 0:
        return list_concatenate(xs)
    inner = rank(list_get(xs, value(0)))
    if inner is None:
        raise UnsupportedError("np.concatenate of a list of arrays of unknown rank", current().line,
                               "use np.stack")
    axis = normal_axis(static_axis(axis), inner)
    turned = list_concatenate(_each(xs, lambda x: FUNCTIONS[np.moveaxis](x, axis, 0)))
    return FUNCTIONS[np.moveaxis](turned, 0, axis)


def _each(xs: Value, function) -> Value:
    """The list [function(x) for x in xs]."""
    n = tape_len(xs)
    (ys,) = for_loop(0, n, 1, [emit(list_of)],
                     lambda i, ys: [tape_push(ys, function(list_get(xs, i)))])
    return ys


def _vstack(xs: Value) -> Value:
    return list_stack(xs) if rank(list_get(xs, value(0))) == 1 else list_concatenate(xs)


def _hstack(xs: Value) -> Value:
    inner = rank(list_get(xs, value(0)))
    return list_stack(xs) if inner == 0 else _concatenate(xs, 0 if inner == 1 else 1)


def _column_stack(xs: Value) -> Value:
    if rank(list_get(xs, value(0))) == 2:
        return _concatenate(xs, 1)
    return FUNCTIONS[np.transpose](list_stack(xs))


def _sum(xs: Value, start=0) -> Value:
    start = value(start)
    if start.constant is not MISSING and type(start.constant) is int and start.constant == 0:
        return list_sum(xs)
    y = list_sum(xs) + start  # the type of the result
    if isinstance(start.type, Scalar) and isinstance(y.type, Scalar):
        start = (FUNCTIONS[float](start)
                 if y.type.dtype == "float64" and start.type.dtype == "int64" else start)
    return list_total(xs, start)


# NumPy's and Python's functions of a run-time list; all others get np.array(xs)
OF_LISTS = {
    np.array: _array,
    np.asarray: _array,
    np.stack: _stack,
    np.concatenate: _concatenate,
    np.vstack: _vstack,
    np.hstack: _hstack,
    np.column_stack: _column_stack,
    sum: _sum,
    max: list_max,
    min: list_min,
    len: tape_len,
}


def new_list(*items) -> Value:
    """A list of these items."""
    return emit(list_of, *map(value, items))
