"""Type queries of a program on its own values: isinstance, type, hasattr, getattr, callable,
np.isscalar, np.iterable.

    def loss(w, rate):
        step = rate(0) if callable(rate) else rate
        return step * (np.sum(w) if hasattr(w, "shape") else w)

All of them depend on one fact, the class of a binding's value at run time (`classes_of`), which
follows from its type.  Where two classes are possible, as for a truth value, which is Python's or
NumPy's, both must lead to the same answer; else the query is refused.
"""

from __future__ import annotations

import numbers
import types
from collections.abc import Callable

import gast
import numpy as np

from ...ir.graph import MISSING, Value
from ...ir.types import Array, Scalar, Type, Unknown
from ...library.containers import STANDS_FOR
from ..domain.frame import ExceptionObject, Frame, Object, Text
from ..domain.functions import FunctionValue, Generator
from ..domain.heap import UNSURE, Cell, Container, unsure_attribute
from ..syntax.captures import Fixed, Member
from ..syntax.dependencies import Present, note_dependency
from ..values.lists import is_list, is_tuple, kinds_of_list
from ..values.objects import class_of, found_in
from ..values.strings import words_of

UNSET = object()  # the default is missing
OF_NUMBERS = {"int64": int, "float64": float, "complex128": complex}
NUMBERS = (np.ndarray, float, int)  # candidate classes where nothing is known
ALL_NUMBERS = (*NUMBERS, bool, complex, *{kind for kind in np.sctypeDict.values()
                                          if issubclass(kind, (np.number, np.bool_))})


def classes_of(frame: Frame, binding) -> tuple[type, ...] | None:
    """The classes that the value of a binding may have; None if only a call determines it."""
    if is_list(frame, binding):
        return tuple(kinds_of_list(binding))
    match binding:
        case tuple() | list():
            return (type(binding),)
        case Container():
            return (STANDS_FOR.get(binding.cls, binding.cls),)
        case Object():
            return (type(binding.content),)
        case Text():
            return tuple(dict.fromkeys(map(type, words_of(binding) or ("",))))
        case Generator():
            return (types.GeneratorType,)
        case FunctionValue():
            return (types.FunctionType,)
        case ExceptionObject():
            return (binding.kind,)
        case Value() | Cell():
            return _classes_of_data(frame, binding)
    return (type(binding),)


def _type_of_data(frame: Frame, binding: Value | Cell) -> Type:
    return frame.heap.type_of(binding) if isinstance(binding, Cell) else binding.type


def _classes_of_data(frame: Frame, binding: Value | Cell) -> tuple[type, ...] | None:
    match _type_of_data(frame, binding):
        case Array():
            return (np.ndarray,)
        case Scalar() if isinstance(binding, Cell) and not binding.doubtful:
            return (np.ndarray,)
        case Scalar("bool"):
            return (bool, np.bool_)
        case Scalar(dtype, weak) if dtype is not None:
            return (OF_NUMBERS[dtype] if weak else np.dtype(dtype).type,)
    return None


def defines(kind: type, name: str) -> bool:
    """Whether instances of a class (or the class itself, for a class of classes) have this
    attribute.
    """
    return any(name in each.__dict__ for each in kind.__mro__)


def answer(frame: Frame, node: gast.AST, binding, question: Callable[[type], bool],
           what: str) -> bool:
    """The common answer to `question` over the possible classes of a binding."""
    found = classes_of(frame, binding)
    if found is None:
        if isinstance(_type_of_data(frame, binding), Unknown):
            if all(map(question, NUMBERS)):
                return True
            if not any(map(question, ALL_NUMBERS)):
                return False
        raise frame.refuse(f"{what} of a value whose type is known only at a call", node,
                           "call the function first, or annotate the parameter")
    answers = {bool(question(kind)) for kind in found}
    if len(answers) > 1:
        if list in found:
            is_tuple(frame, binding)  # which says so
        raise frame.refuse(f"{what} of a truth value", node,
                           "ask for what bool and np.bool_ both are")
    return answers.pop()


def is_instance(frame: Frame, node: gast.AST, binding, kinds) -> bool:
    """isinstance(binding, kinds)."""
    kinds = frame.static(kinds, "what isinstance asks for", node)
    return answer(frame, node, binding, lambda kind: issubclass(kind, kinds), "isinstance")


def type_of(frame: Frame, node: gast.AST, binding) -> type:
    """type(binding)."""
    found = classes_of(frame, binding)
    if found is None:
        raise frame.refuse("the type of a value that is known only at a call", node,
                           "call the function first, or annotate the parameter")
    if list in found:
        is_tuple(frame, binding)
    if len(found) > 1:
        raise frame.refuse("the type of a truth value, which is Python's or NumPy's", node,
                           "ask with isinstance, for both bool and np.bool_")
    return found[0]


def has_attribute(frame: Frame, node: gast.AST, base, name) -> bool:
    """hasattr(base, name)."""
    name, cls = frame.static(name, "the name of an attribute", node), class_of(base)
    if cls is not None:
        owner, defined = found_in(cls, name)
        if getattr(base, "members", {}).get(name) is UNSURE:
            raise unsure_attribute(name, base)
        return (name in getattr(base, "members", ())
                or owner is not None and not isinstance(defined, types.MemberDescriptorType))
    if isinstance(base, type) and base.__module__ not in ("builtins", "numpy"):
        base = Object(base, Fixed(base), base.__name__)
    if isinstance(base, Object):
        present = hasattr(base.content, name)
        note_dependency(Present(base.getter, name), present)
        kept = frame.kept_outside(Member(base.getter, name), f"{base.name}_{name}")
        return present or kept is not MISSING
    if isinstance(base,
                  (Value, Cell, Container, tuple, list, Text, FunctionValue, ExceptionObject)):
        return answer(frame, node, base, lambda kind: defines(kind, name), "hasattr")
    return hasattr(base, name)


def get_attribute(frame: Frame, node: gast.AST, base, name, default=UNSET):
    """getattr(base, name, default)."""
    name = frame.static(name, "the name of an attribute", node)
    if default is not UNSET and not has_attribute(frame, node, base, name):
        return default
    return frame.session.attribute(frame, base, name, node)


def is_callable(frame: Frame, node: gast.AST, binding) -> bool:
    """callable(binding)."""
    if isinstance(binding, (Value, Cell, Container, tuple, list, Text, ExceptionObject)):
        return answer(frame, node, binding, lambda kind: defines(kind, "__call__"), "callable")
    return (isinstance(binding, FunctionValue)
            or callable(binding.content if isinstance(binding, Object) else binding))


def is_scalar(frame: Frame, node: gast.AST, element) -> bool:
    """np.isscalar(element)."""
    return answer(
        frame, node, element,
        lambda kind: issubclass(kind, (np.generic, str, bytes, memoryview, numbers.Number)),
        "np.isscalar")


def is_iterable(frame: Frame, node: gast.AST, y) -> bool:
    """np.iterable(y)."""
    if isinstance(y, Cell) and isinstance(_type_of_data(frame, y), Scalar) and not y.doubtful:
        return False  # an array of rank 0
    return answer(frame, node, y, lambda kind: defines(kind, "__iter__"), "np.iterable")


ABOUT_CLASSES = {
    isinstance: is_instance,
    type: type_of,
    hasattr: has_attribute,
    getattr: get_attribute,
    callable: is_callable,
    np.isscalar: is_scalar,
    np.iterable: is_iterable
}
