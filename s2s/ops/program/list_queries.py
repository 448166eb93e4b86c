"""What a list is asked: its extremes, what it contains and where, and the order that sorts it.

    list_max(xs)           max(xs)            list_contains(x, xs)   x in xs
    list_index(xs, x)      xs.index(x)        list_order(keys)       the indices that sort it
    list_pick(xs, order)   the items in that order
"""

from __future__ import annotations

import ast

import numpy as np

from ...ir.types import BOOL, INT, List, Scalar
from ..core import array_raise_conditions
from ..core.control import item_type, tape_pop
from ..core.dependence_rules import anything
from ..core.kinks import COMPARED, Kink, kinked
from ..core.record import Record, becomes, define, no_jvp, no_vjp
from .list_ops import call_syntax, list_get, list_pop_at, method_syntax


def _extreme(name: str, function) -> Record:
    """Define max(xs) or min(xs): the first extreme item."""
    return define(
        name,
        evaluate=function,
        infer=lambda xs: item_type(xs.type),
        syntax=lambda xs: call_syntax(function.__name__, xs),
        differentiated_as=lambda y, xs: (list_get, (xs, list_index(xs, y)), {}),
        raises=array_raise_conditions.EXTREME_OF_LIST,
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
    depends=anything,
)
kinked(list_contains, Kink(COMPARED, lambda y, x, xs: y))


def _question(name: str) -> Record:
    """Define xs.index(x) or xs.count(x)."""
    return define(
        f"list_{name}",
        evaluate=lambda xs, x: getattr(xs, name)(x),
        infer=lambda xs, x: INT,
        syntax=lambda xs, x: method_syntax(xs, name, x),
        vjp=no_vjp,
        jvp=no_jvp,
        depends=anything,
    )


list_index, list_count = _question("index"), _question("count")
for _each in (list_index, list_count):
    kinked(_each, Kink(COMPARED, lambda y, xs, x: x in xs))
list_index.raises, list_pop_at.raises, tape_pop.raises = (array_raise_conditions.FIND,
                                                          array_raise_conditions.POP,
                                                          array_raise_conditions.POP_LAST)


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
    syntax=lambda keys, *, reverse: call_syntax("sorting_order", keys, ast.Constant(reverse)),
    helper=sorting_order,
    vjp=no_vjp,
    jvp=no_jvp,
    depends=anything,
)
list_order.lower = becomes(define(
    "native_list_order",
    evaluate=lambda keys, *, reverse: native_order(keys, reverse),
    infer=lambda keys, *, reverse: List(Scalar("int64")),
    syntax=lambda keys, *, reverse: call_syntax("native_order", keys, ast.Constant(reverse)),
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
    syntax=lambda values, order: call_syntax("scattered", values, order, values),
    helper=scattered,
    vjp=lambda bar, y, values, order: (list_pick(bar, order), None),
    linear=(0,),
    views=(0,),
    moves=(0,),
)
