"""Operator overloading: operators of user classes and of dicts.

An operator asks the class of its left operand, then that of its right one, as Python does.
"""

from __future__ import annotations

import dataclasses

import gast

from ...errors import UnsupportedError
from ...ir.builder import current
from ...ir.graph import OPERATORS, Value
from ...library.containers import Set
from ...ops.core.record import RECORDS
from ..domain.frame import Frame, Object
from ..domain.functions import Method
from ..domain.heap import Cell, Container
from .dicts import merge, store
from .objects import MIRRORED, class_of, found_in, method_of
from .python_operators import OPERATOR_METHODS

NOTHING = object()  # no class defines the operator


def call_special(frame: Frame, binding, name: str, args: list, node: gast.AST):
    """`binding.name(*args)` of a special method defined by its class; NOTHING if it defines none.
    """
    function = method_of(binding, name)
    if function is None:
        return NOTHING
    result = frame.session.call(frame, Method(function, binding), args, {}, node)
    return NOTHING if result is NotImplemented else result


def apply_operator(frame: Frame, name: str, a, b, node: gast.AST):
    """`a op b` by a class or a dict that defines it; NOTHING otherwise."""
    if (isinstance(a, Container) and a.is_dict and isinstance(b, Container) and b.is_dict
            and name == "bitwise_or"):
        return merge(frame, a, b)
    if class_of(a) is None and class_of(b) is None and not isinstance(a, Object) and not isinstance(
            b, Object):
        return NOTHING
    method = OPERATOR_METHODS[name]
    result = call_special(frame, a, f"__{method}__", [b], node)
    if result is NOTHING:
        mirrored = f"__{MIRRORED[method]}__" if method in MIRRORED else f"__r{method}__"
        result = call_special(frame, b, mirrored, [a], node)
    return result


def apply_in_place_operator(frame: Frame, name: str, a, b, node: gast.AST):
    """The new binding after `a op= b`; NOTHING if no class or dict defines it."""
    if (isinstance(a, Container) and a.is_dict and name == "bitwise_or"
            and isinstance(b, Container) and b.is_dict):
        store(frame, a, {**a.members, **b.members})
        return a
    if class_of(a) is None and not isinstance(a, Object):
        return NOTHING
    return call_special(frame, a, f"__i{OPERATOR_METHODS[name]}__", [b], node)


def memberwise_operands(name: str, a, b):
    """(members of `a`, members of `b`) if Python compares the objects or dicts memberwise; True or
    False if the result is static; else NOTHING.
    """
    is_equality = RECORDS[name].is_equality
    if isinstance(a, Container) and isinstance(b, Container):
        if a.is_dict and b.is_dict and is_equality:
            if set(a.members) != set(b.members):
                return name == "not_equal"
            return tuple(a.members.values()), tuple(b.members[key] for key in a.members)
        owner, _ = found_in(a.cls, "__eq__")
        if a.cls is b.cls and dataclasses.is_dataclass(a.cls) and owner is not object:
            names = [f.name for f in dataclasses.fields(a.cls) if f.compare]
            return tuple(a.members[n] for n in names), tuple(b.members[n] for n in names)
    if (isinstance(a, Container) or isinstance(b, Container)) and is_equality:
        known = isinstance(a, Container) and isinstance(b, Container)
        if known and a is not b and not (a.family() & b.family()) or not known:
            return name == "not_equal"
        if a is b:
            return name == "equal"
    return NOTHING


def is_same(a, b) -> bool | Value | None:
    """Whether two containers are identical; None if unknown."""
    if a is b:
        return True
    places = getattr(a, "place", None), getattr(b, "place", None)
    if (None not in places and places[0].xs is places[1].xs and not places[0].xs.root.alike
        and all(place.is_fixed for place in places)):
        return (places[0].path == places[1].path
                and OPERATORS["equal"](places[0].index, places[1].index))
    for x, other in ((a, b), (b, a)):
        if isinstance(x, Container) and isinstance(other, Object) and (
                x.heap.captured in x.family()):
            return None
    if isinstance(a, Container) and isinstance(b, Container):
        return None if a.family() & b.family() else False
    return False if isinstance(a, (Container, Cell)) or isinstance(b, (Container, Cell)) else None


def matches(items: tuple | None, x) -> list[bool] | None:
    """For each of the items of a list, whether it is equal to `x`, an object of a class that does
    not define equality; None for other things.  `items` are None where they are known at run time.
    """
    if not _is_compared_by_identity(x):
        return None
    found = None if items is None else [
        is_same(item, x) if _is_compared_by_identity(item) or isinstance(item, Object) else
        None if isinstance(item, (Container, Value, Cell)) else False for item in items]
    if found is None or not all(isinstance(same, bool) for same in found) or any(
            getattr(item, "parameter_of", x.parameter_of) is not x.parameter_of for item in items):
        raise UnsupportedError(f"which item of a list is this {x.cls.__name__}", current().line,
                               "compare what they hold, or give the class an __eq__")
    return found


def _is_compared_by_identity(x) -> bool:
    return (isinstance(x, Container) and not x.is_dict and x.cls.__module__ != Set.__module__
            and found_in(x.cls, "__eq__")[0] in (None, object))
