"""Attributes of bindings: of objects and classes, modules, arrays and strings."""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection

import gast

from ...errors import TypeMismatchError
from ...ir.graph import Value
from ...ir.types import Generator as Draws
from ...ops.core.record import (
    ATTRIBUTES,
    METHODS,
    MemberTuple,
)
from ..control.generator_cursors import ITS_METHODS
from ..control.introspection import type_of
from ..control.iterators import OneShotIterator
from ..control.join import with_either
from ..domain.frame import ExceptionObject, Frame, Object, Text
from ..domain.functions import (
    ConditionalObject,
    FunctionValue,
    Intrinsic,
    Method,
)
from ..domain.heap import Cell, Container
from ..syntax.captures import Fixed, is_data
from ..values.captured_writes import (
    is_outside,
    write_method,
)
from ..values.dicts import DICT_METHODS
from ..values.exceptions import map_leaves
from ..values.lists import (
    LIST_METHODS,
    is_list,
)
from ..values.numpy_views import shared_result
from ..values.objects import (
    Super,
    class_of,
    found_in,
    is_users,
    of_class,
    read,
    read_of_exception,
    read_super,
)
from ..values.strings import is_member, words_of
from ..values.words import UNKNOWN, by_word
from .apply import apply_method

STATIC_MODULES = ("numpy", "math", "scipy", "builtins", "cmath")


def _of_members(frame: Frame, base, name: str, node: gast.AST):
    """The member of a tuple to which NumPy gives this name."""
    if isinstance(base, OneShotIterator) and base.cursor is not None and name in ITS_METHODS:
        return Intrinsic(lambda frame, node, *args: base.cursor.asked(frame, node, name, *args))
    if isinstance(base, MemberTuple) and name in base.names:
        return base[base.names.index(name)]
    kind = tuple if isinstance(base, MemberTuple) else type(base)
    raise frame.refuse(f"the attribute {name} of a {kind.__name__}", node, "unpack it first")


def _of_object(frame: Frame, base: Object, name: str, node: gast.AST):
    """`base.name`, of an object outside."""
    cls = type(base.content)
    defined = inspect.getattr_static(cls, name, None)
    if (isinstance(defined, property) and isinstance(defined.fget, types.FunctionType)
            and cls.__module__.split(".")[0] not in STATIC_MODULES
            and frame.session.outside.note_property()):
        return of_class(frame, base, cls, defined, name, node)
    try:
        return frame.attribute_of(base, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node), "set it before the call") from None


def attribute(frame: Frame, base, name: str, node: gast.AST):
    """`base.name`."""
    if isinstance(base, ConditionalObject):
        return with_either(frame, base, lambda x: attribute(frame, x, name, node))
    if class_of(base) is not None:
        return read(frame, base, name, node)
    if isinstance(base, Super):
        return read_super(frame, base, name, node)
    if name == "__class__" and isinstance(base, (Value, Cell, Container, tuple, list, Text)):
        return type_of(frame, node, base)
    if isinstance(base, type) and is_users(base):
        owner, defined = found_in(base, name)
        if isinstance(defined, classmethod):
            return Method(defined.__func__, base)
    written = write_method(base, name) if is_outside(base) else None
    if written is not None:
        return Intrinsic(written)
    if isinstance(base, Object):
        return _of_object(frame, base, name, node)
    if isinstance(base, ExceptionObject):
        if name != "args":
            return read_of_exception(frame, base, name, node)
        return map_leaves(base.args, frame.wrap)
    if isinstance(base, types.ModuleType):
        return _of_module(frame, base, name, node)
    if isinstance(base, Value) and isinstance(base.type, Draws):
        return Intrinsic(lambda frame, node, *args, **keywords: apply_method(
            frame, base, name, args, keywords, node))
    if isinstance(base, Text):
        return _of_text(frame, base, name, node)
    if name in _methods_of(frame, base):
        return Intrinsic(
            lambda frame, node, *args, **keywords: apply_method(
                frame, base, name, list(args), keywords, node), (base,))
    if isinstance(base, (Value, Cell)):
        if name not in ATTRIBUTES:
            raise frame.refuse(f"the attribute {name}", node,
                               "use the attributes and functions that s2s knows")
        content = frame.value(base)
        return shared_result(frame, ATTRIBUTES[name](content), name, [base], {},
                             {content: base} if isinstance(base, Cell) else {}, ATTRIBUTES[name],
                             True)
    if isinstance(base, (tuple, list, FunctionValue, Container)):
        return _of_members(frame, base, name, node)
    try:
        content = getattr(base, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node)) from None
    if ((is_data(content) or isinstance(content, (tuple, list, dict))) and isinstance(base, type)
        and base.__module__.split(".")[0] not in STATIC_MODULES):
        return frame.attribute_of(Object(base, Fixed(base), base.__name__), name)
    return content


def _methods_of(frame: Frame, base) -> Collection[str]:
    """A bound method of a list, dict or array as a function: `key=d.get`, `add = xs.append`."""
    if isinstance(base, Container):
        return DICT_METHODS
    if is_list(frame, base):
        return LIST_METHODS
    return METHODS.keys() - ATTRIBUTES.keys() if isinstance(base, (Value, Cell)) else ()


def _of_module(frame: Frame, module: types.ModuleType, name: str, node: gast.AST):
    try:
        content = getattr(module, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node)) from None
    if is_data(content) and module.__name__.split(".")[0] in STATIC_MODULES:
        return content
    return frame.attribute_of(Object(module, Fixed(module),
                                     module.__name__.rpartition(".")[2]), name)


def _of_text(frame: Frame, base: Text, name: str, node: gast.AST):
    """`base.name`, of a string or a member of an enum that a run chooses."""
    words = words_of(base)
    if words is not None and all(map(is_member, words)):
        found = by_word(frame, lambda member: getattr(member, name), base)
        if found is not UNKNOWN:
            return found
    elif words is not None and hasattr(str, name):
        return Intrinsic(
            lambda frame, node, *args, **keywords: apply_method(
                frame, base, name, list(args), keywords, node), (base,))
    raise frame.refuse(f"the attribute {name} of a text", node,
                       "print it or raise it, and nothing else")
