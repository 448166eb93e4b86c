"""Operators on bindings: arithmetic, comparison, truth, and short circuits.

What Python itself can compute now, it does; everything else becomes an op.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable

import gast
import numpy as np

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import MISSING, OPERATORS, Value
from ...ir.types import Array, List, Scalar
from ...library import sequences
from ...ops.arrays.create import array
from ...ops.core.record import RECORDS, value
from ...ops.program.list_arrays import list_stack
from ..control.join import NUMBERS, branch, with_either
from ..domain.frame import Frame, Object, Text
from ..domain.functions import ConditionalObject, FunctionValue
from ..domain.heap import Cell, Container, carriers_of, cells_in
from ..domain.optional import Maybe, has_maybe, is_given, is_none, optional_error, resolve_optional
from ..values.captured_dicts import has_key, is_captured_dict, is_key
from ..values.dicts import as_keyed, key_in
from ..values.lists import (
    contains,
    is_list,
    is_tuple,
    join_lists,
    new_list,
    repeat_list,
    run_time_tuple,
)
from ..values.overloads import (
    NOTHING,
    apply_operator,
    call_special,
    is_same,
    matches,
    memberwise_operands,
)
from ..values.python_operators import BINARY, COMPARE, OPERATOR_METHODS, UNARY
from ..values.raise_guards import guard_known, guarding
from ..values.strings import is_equal, is_member, words_or_none
from ..values.strings import operator as text_operator
from ..values.unwrap import demand
from ..values.words import UNKNOWN, by_word, same_words
from .apply import in_place

ORDERS = dict(COMPARE.values())  # the name of a comparison -> Python's

def binary(frame: Frame, op: gast.AST, a, b, node: gast.AST):
    """`a op b`."""
    name, compute = BINARY[type(op)]
    a, b = (frame.contents_of(demand(frame, x)) for x in (a, b))
    if isinstance(a, ConditionalObject):
        return with_either(frame, a, lambda x: binary(frame, op, x, b, node))
    if isinstance(b, ConditionalObject):
        return with_either(frame, b, lambda x: binary(frame, op, a, x, node))
    if _known(a) and _known(b):
        try:
            return compute(a, b)
        except ArithmeticError as error:
            guard_known(frame, error)  # otherwise raised at run time
        except TypeError as error:
            raise TypeMismatchError(str(error), frame.line(node),
                                    "use operands of one kind") from None
    found = apply_operator(frame, name, a, b, node)
    if found is not NOTHING:
        return found
    if is_list(frame, a) or is_list(frame, b):
        return _of_lists(frame, name, a, b, node)
    if isinstance(a, (str, Text)) or isinstance(b, Text):
        made = text_operator(frame, name, a, b, node)
        if made is not None:
            return made
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return _of_tuples(frame, name, a, b, node)
    return _operator(frame, name, a, b)


def _of_lists(frame: Frame, name: str, a, b, node: gast.AST):
    if name == "add" and (joined := _join(frame, a, b)) is not None:
        return joined
    xs, other = (a, b) if is_list(frame, a) else (b, a)
    content = frame.value(other) if isinstance(other, (Value, Cell, *NUMBERS)) else None
    if content is not None and not is_list(frame, other):
        if isinstance(content.type, Array) or _is_numpys(name, content):
            listed = frame.value(xs)
            made = list_stack(listed) if isinstance(listed.type, List) else array(listed)
            return _operator(frame, name, *(made if x is xs else x for x in (a, b)))
        if name == "multiply" and getattr(content.type, "dtype", "") in ("int64", "bool"):
            items = frame.heap.items(xs)
            if (items is not None and len(items) == 1 and isinstance(items[0], tuple)
                    and not frame.is_static(other) and next(cells_in(items[0]), None) is None):
                return in_place(frame, sequences.repeated, [items[0], other], {}, node,
                                current().line)
            return repeat_list(frame, xs, other)
    raise TypeMismatchError(f"{name} of a list", frame.line(node),
                            "use numbers and arrays; np.array makes one of a list")


def _join(frame: Frame, a, b) -> Cell | None:
    """`a + b` of two lists, or of two tuples of which one is of run-time length; else None."""
    if is_list(frame, a) and is_list(frame, b) and is_tuple(frame, a) == is_tuple(frame, b):
        joined = join_lists(frame, a, b)
        return run_time_tuple(joined) if is_tuple(frame, a) else joined
    if isinstance(a, tuple) and is_tuple(frame, b):
        return run_time_tuple(join_lists(frame, new_list(frame, a), b))
    if isinstance(b, tuple) and is_tuple(frame, a):
        return run_time_tuple(join_lists(frame, a, new_list(frame, b)))
    return None


def _is_numpys(name: str, x: Value) -> bool:
    """Whether a number is one of NumPy's, which takes a list for an array, but not to multiply."""
    return isinstance(x.type, Scalar) and not x.type.weak and name != "multiply"


def _operator(frame: Frame, name: str, *operands):
    if name not in OPERATORS:
        raise frame.refuse(f"the operator for {name}", None, "use the functions that s2s knows")
    values = list(map(frame.value, operands))
    with guarding(frame):
        result = OPERATORS[name](*values)
    return frame.wrap(result)


def _known(x) -> bool:
    """Whether `x` is a compile-time object with which Python itself can compute."""
    # int | None
    return x is None or isinstance(x, (bool, int, float, complex, str, type, types.UnionType))


def _of_tuples(frame: Frame, name: str, a, b, node: gast.AST):
    if name == "add" and (type(a) is type(b) or isinstance(a, tuple) and isinstance(b, tuple)):
        return a + b
    if name == "multiply":
        items, count = (a, b) if isinstance(a, (tuple, list)) else (b, a)
        if (isinstance(count, (int, Value))
            and getattr(frame.value(count).type, "dtype", "") in ("int64", "bool")):
            return items * frame.static(count, "how often a tuple is repeated", node)
    whole, other = (a, b) if isinstance(a, (tuple, list)) else (b, a)
    if isinstance(other, Cell) and name != "add":
        raise frame.refuse("arithmetic of an array with a tuple or list", node,
                           "make it an array with np.array")
    raise TypeMismatchError(f"{name} of a {type(whole).__name__}", frame.line(node),
                            "use numbers and arrays")


def unary(frame: Frame, op: gast.AST, x, node: gast.AST):
    """`op x`, except `not`."""
    x = demand(frame, x)
    if isinstance(x, ConditionalObject):
        return with_either(frame, x, lambda y: unary(frame, op, y, node))
    name, compute = UNARY[type(op)]
    if _known(x):
        try:
            return compute(x)
        except TypeError as error:
            raise TypeMismatchError(str(error), frame.line(node),
                                    "use a number or an array") from None
    found = call_special(frame, x, f"__{OPERATOR_METHODS[name]}__", [], node)
    return _operator(frame, name, x) if found is NOTHING else found


def truth(frame: Frame, binding, node: gast.AST | None = None) -> Value:
    """The truth value of `binding`, as a Value."""
    if isinstance(binding, ConditionalObject):
        return with_either(frame, binding, lambda x: truth(frame, x, node))
    if isinstance(binding, FunctionValue):
        return value(True)
    binding = frame.contents_of(resolve_optional(frame.session.assumed, binding))
    if isinstance(binding, Maybe):
        flag = is_given(frame.session.assumed, binding)
        return branch(frame, flag, lambda: truth(frame, binding.content, node),
                      lambda: value(False), frame.live | frame.pending)
    if isinstance(binding, (tuple, list, str)):
        return value(bool(binding))
    if frame.heap.items(binding) is not None:
        return value(bool(frame.heap.items(binding)))
    if isinstance(binding, Container):
        if binding.is_dict:
            return value(bool(binding.members))
        for name in ("__bool__", "__len__"):
            found = call_special(frame, binding, name, [], node)
            if found is not NOTHING:
                return truth(frame, found, node)
        return value(True)
    if isinstance(binding, Text):
        found = by_word(frame, bool, binding)
        if found is not UNKNOWN:
            return value(found)
        raise frame.refuse("the truth of a text that shows run-time data", node, "test the data")
    content = (binding
               if isinstance(binding, Value)
               else frame.heap.read(binding)
               if isinstance(binding, Cell)
               else None)
    if content is None:
        if isinstance(binding, np.ndarray):
            raise frame.refuse("the truth of an array", node, "use .any() or .all()")
        return value(bool(binding.content if isinstance(binding, Object) else binding))
    if content.constant is not MISSING:
        return value(bool(content.constant))
    match content.type:
        case Array():
            raise TypeMismatchError("the truth of an array is ambiguous",
                                    frame.line(node) if node else current().line,
                                    "use .any() or .all(), or np.where")
        case List():
            return RECORDS["tape_len"](content) > 0
        case Scalar(dtype) if dtype not in ("bool", None):
            return OPERATORS["not_equal"](content, value(0))
    return frame.value(content)


def negation(test: Value):
    """`not test`."""
    if test.constant is not MISSING:
        return not test.constant
    if test.op is not None and test.op.name == "not_":
        return test.op.inputs[0]
    return RECORDS["not_"](test)


def decide(frame: Frame, both: bool, first, rest: Callable, node: gast.AST, truth_only: bool):
    """`first and rest()` (both) or `first or rest()`; with `truth_only`, as a truth value."""
    test = truth(frame, first, node)
    if test.constant is not MISSING:
        return rest() if bool(test.constant) is both else first
    decided = not both if truth_only or test is first else first
    arms = (rest, lambda: decided) if both else (lambda: decided, rest)
    return branch(frame, test, *arms, frame.live | frame.pending)


def compare(frame: Frame, op: gast.AST, a, b, node: gast.AST):
    """`a op b`, for one comparison."""
    a, b = (resolve_optional(frame.session.assumed, x) for x in (a, b))
    found = _compare_optional(frame, op, a, b, node)
    if found is not NOTHING:
        return found
    a, b = demand(frame, a), demand(frame, b)
    if isinstance(a, ConditionalObject):
        return with_either(frame, a, lambda x: compare(frame, op, x, b, node))
    if isinstance(b, ConditionalObject):
        return with_either(frame, b, lambda x: compare(frame, op, a, x, node))
    if isinstance(op, (gast.Is, gast.IsNot)):
        same = _is(frame, a, b, node)
        if isinstance(op, gast.Is):
            return same
        return not same if isinstance(same, bool) else negation(same)
    if isinstance(op, (gast.In, gast.NotIn)) and is_captured_dict(b) and is_key(frame, a):
        return has_key(frame, b, frame.static(a, "this key")) is isinstance(op, gast.In)
    a, b = frame.contents_of(a), frame.contents_of(b)
    if isinstance(op, (gast.In, gast.NotIn)):
        inside = _is_in(frame, a, b, node)
        if isinstance(op, gast.In):
            return inside
        return not inside if isinstance(inside, bool) else negation(inside)
    name, _ = COMPARE[type(op)]
    found = _compare_overloaded(frame, name, a, b, node)
    if found is not NOTHING:
        return found
    found = memberwise_operands(name, a, b)
    if isinstance(found, bool):
        return found
    return _compare_contents(frame, op, *((a, b) if found is NOTHING else found), node)


def _compare_optional(frame: Frame, op: gast.AST, a, b, node: gast.AST):
    """The comparison of what may be None; NOTHING if it does not matter that it may."""
    if (isinstance(a, Maybe) and b is None or a is None and isinstance(b, Maybe)) and isinstance(
            op, (gast.Is, gast.IsNot, gast.Eq, gast.NotEq)):
        same = is_none(frame, a if b is None else b)
        return same if isinstance(op, (gast.Is, gast.Eq)) else negation(value(same))
    if (isinstance(op, (gast.In, gast.NotIn)) and isinstance(a, Maybe) and is_list(frame, b)
        and not has_maybe(frame.members(b))):
        inside = branch(frame, a.is_set,
                        lambda: truth(frame, compare(frame, gast.In(), a.content, b, node)),
                        lambda: value(False), frame.live | frame.pending)
        return inside if isinstance(op, gast.In) else negation(inside)
    if (isinstance(op, (gast.Is, gast.IsNot, gast.In, gast.NotIn, gast.Eq, gast.NotEq))
        and (has_maybe(a) or has_maybe(b))):
        raise optional_error("a comparison", frame.line(node))
    return NOTHING


def _is_in(frame: Frame, a, b, node: gast.AST):
    """`a in b`."""
    found = call_special(frame, b, "__contains__", [a], node)
    if found is not NOTHING:
        return truth(frame, found, node)
    if isinstance(b, Container) and b.is_dict:
        if not frame.is_static(a):
            found = by_word(frame, operator.contains, tuple(b.members), a)
            if found is not UNKNOWN:
                return found
            if (keyed := as_keyed(frame, b, a)) is not None:
                return truth(frame, call_special(frame, keyed, "__contains__", [a], node), node)
            key_in(frame, a, node, b)
        b = tuple(b.members)
    members = frame.members(b) if isinstance(b, tuple) or is_list(frame, b) else None
    if members is not None and any(isinstance(x, Text) for x in (a, *members)):
        found = same_words(frame, members, a)
        if found is not None:
            return functools.reduce(RECORDS["or_"], map(value, found), value(False))
    if isinstance(a, Text) or isinstance(b, Text):
        found = by_word(frame, operator.contains, b if members is None else tuple(members), a)
        if found is not UNKNOWN:
            return found
    found = matches(frame.members(b), a) if isinstance(b, tuple) or is_list(frame, b) else None
    if found is not None:
        return any(found)
    if frame.is_static(a) and frame.is_static(b):
        return frame.static(a, "this") in frame.static(b, "this")
    if isinstance(b, tuple):
        b = new_list(frame, b)
    if isinstance(b, Cell) and is_list(frame, b):
        return contains(frame, a, b)
    raise frame.refuse("`in` with run-time data", node, "compare with == and `or`")


def _compare_overloaded(frame: Frame, name: str, a, b, node: gast.AST):
    """The comparison of texts, or by a class's own method; NOTHING for other operands."""
    if isinstance(a, Text) or isinstance(b, Text):
        if not RECORDS[name].is_equality:
            found = by_word(frame, ORDERS[name], a, b)
            if found is not UNKNOWN:
                return value(found)
            raise frame.refuse("comparing texts by order", node, "compare the data that they show")
        same = is_equal(frame, a, b, node)
        return same if name == "equal" else negation(same)
    found = apply_operator(frame, name, a, b, node)
    if found is not NOTHING or name != "not_equal":
        return found
    found = apply_operator(frame, "equal", a, b, node)  # like object.__ne__
    return found if found is NOTHING else negation(truth(frame, found))


def _is_word(frame: Frame, a, b, node: gast.AST):
    """`a is b`, where a run chooses one of them among strings or members of an enum."""
    words = [words_or_none(x) or () for x in (a, b)]
    if a is None or b is None or any(all(map(is_member, each)) for each in words):
        # None, or a member, is itself alone, and equal to nothing else
        return is_equal(frame, a, b, node) if all(words) else False
    raise frame.refuse("`is` between strings", node, "use ==")


def _compare_contents(frame: Frame, op: gast.AST, a, b, node: gast.AST):
    """The comparison of lists, tuples, numbers and arrays."""
    name, compute = COMPARE[type(op)]
    is_equality = RECORDS[name].is_equality
    if is_list(frame, a) or is_list(frame, b):
        known = [frame.heap.items(x) for x in (a, b)]
        if not is_equality or None in known:
            raise frame.refuse("comparing a list", node,
                               "compare its items, or make it an array with np.array")
        return _compare_tuples(frame, name == "equal", *known, node)
    if not any(isinstance(x, (Value, Cell)) for x in (a, b)):
        if frame.is_static(a) and frame.is_static(b):
            return compute(frame.static(a, "this"), frame.static(b, "this"))
        if not (isinstance(a, tuple) and isinstance(b, tuple)):
            raise frame.refuse("comparing these by order", node, "compare their members")
        return (_compare_tuples(frame, name == "equal", a, b, node) if is_equality
                else _order_tuples(frame, op, a, b, node))
    if is_equality and (a is None or b is None or isinstance(a, (str, types.FunctionType))
                        or isinstance(b, str)):
        return name == "not_equal"
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        raise frame.refuse("comparing an array with a tuple", node,
                           "make it an array with np.array")
    return _operator(frame, name, a, b)


def _compare_tuples(frame: Frame, equal: bool, a: tuple, b: tuple, node: gast.AST):
    if len(a) != len(b):
        return not equal
    same = True
    for x, y in zip(a, b):
        def rest(x=x, y=y):
            return compare(frame, gast.Eq(), x, y, node)

        same = rest() if same is True else decide(frame, True, same, rest, node, True)
    return same if equal else negation(truth(frame, same, node))


def _order_tuples(frame: Frame, op: gast.AST, a: tuple, b: tuple, node: gast.AST):
    """`a < b` and the like of tuples: lexicographic order."""
    if not a or not b:
        return COMPARE[type(op)][1](len(a), len(b))
    same = truth(frame, compare(frame, gast.Eq(), a[0], b[0], node), node)
    return branch(frame, same, lambda: _order_tuples(frame, op, a[1:], b[1:], node),
                  lambda: compare(frame, op, a[0], b[0], node), frame.live | frame.pending)


def _is(frame: Frame, a, b, node: gast.AST) -> bool | Value:
    owners = [getattr(x, "parameter_of", None) for x in (a, b)]
    if owners[0] is not owners[1] and all(isinstance(x, (Cell, Container)) for x in (a, b)):
        raise frame.refuse("`is` between an argument of a function that calls itself and something "
                           "else", node, "pass both as arguments, or compare what they hold")
    if isinstance(a, Container) or isinstance(b, Container):
        same = is_same(a, b)
        if same is None:
            error = frame.refuse("`is` between objects that a branch or loop has chosen", node,
                                 "compare what they hold")
            error.carriers = carriers_of(*(x.family() for x in (a, b)
                                           if isinstance(x, (Cell, Container))))
            raise error
        return same
    if isinstance(a, Cell) and isinstance(b, Cell):
        if a is b:
            return True
        if is_list(frame, a) is not is_list(frame, b) or is_list(frame, a) and not (
                a.family() & b.family() or {a, b} <= frame.session.given):
            return False
        if not a.family() & b.family() and not all(map(frame.is_from_outside, (a, b))):
            return False
        raise frame.refuse("`is` between arrays", node, "compare what they hold")
    if isinstance(a, Text) or isinstance(b, Text):
        return _is_word(frame, a, b, node)
    for x, y in ((a, b), (b, a)):
        if y is None or y is ... or isinstance(y, (str, type)):
            return x is y
        if isinstance(y, bool) and not isinstance(x, (Value, Cell)):
            return x is y
        if isinstance(y, bool) and isinstance(x, Value) and isinstance(x.type, Scalar):
            if x.type.dtype != "bool" or not x.type.weak:
                return False  # np.bool_ is another type
            return x if y else negation(x)
    if frame.is_static(a) and frame.is_static(b):
        return frame.static(a, "this") is frame.static(b, "this")
    raise frame.refuse("`is` between numbers", node, "use ==")
