"""Higher-order functions that return functions: functools.partial, operator.itemgetter and its
kind, functools.wraps, decorators.
"""

from __future__ import annotations

import functools
import operator

import gast

from ...errors import TypeMismatchError
from ..domain.frame import Frame, Object
from ..domain.functions import Intrinsic, Partial
from ..syntax.captures import Fixed, Super
from ..syntax.liveness import parameter_names
from ..values import objects
from ..values.objects import class_of
from ..values.subscript import take
from .apply import apply, apply_method
from .attributes import attribute
from .expressions import evaluate, make_local
from .python_builtins import BUILTINS


def apply_decorators(frame: Frame, node: gast.FunctionDef):
    """The binding of a nested `def`: the function, passed through its decorators from the last to
    the first.
    """
    decorators = [evaluate(frame, decorator) for decorator in node.decorator_list]
    binding = make_local(frame, node)
    for decorator, place in zip(reversed(decorators), reversed(node.decorator_list)):
        binding = apply(frame, decorator, [binding], {}, place)
    return binding


def _partial(frame: Frame, node, function, *args, **keywords):
    return Partial(function, list(args), keywords)


def _wraps(frame: Frame, node, wrapped, *args, **keywords):
    # the attributes that it copies have no use in numerical programs
    return Intrinsic(lambda frame, node, wrapper: wrapper)


def _update_wrapper(frame: Frame, node, wrapper, wrapped, *args, **keywords):
    return wrapper


def _itemgetter(frame: Frame, node, *keys):
    def get(frame: Frame, node, base):
        items = tuple(take(frame, base, key) for key in keys)
        return items if len(items) > 1 else items[0]

    return Intrinsic(get)


def _attrgetter(frame: Frame, node, *names):
    names = [frame.static(name, "the name of an attribute", node) for name in names]

    def get(frame: Frame, node, base):
        items = tuple(
            functools.reduce(lambda b, part: attribute(frame, b, part, node), name.split("."), base)
            for name in names)
        return items if len(items) > 1 else items[0]

    return Intrinsic(get)


def _methodcaller(frame: Frame, node, name, *args, **keywords):
    def run(frame: Frame, node, base):
        return apply_method(frame, base, frame.static(name, "the name of a method", node),
                            list(args), keywords, node)

    return Intrinsic(run, (*args, *keywords.values()))


def _super(frame: Frame, node, *given):
    """super() in a method, and super(kind, object)."""
    kind, instance = given if len(given) == 2 else _around(frame, node)
    if class_of(instance) is not None:
        return objects.Super(instance, class_of(instance), kind)
    if not isinstance(kind, type) or not isinstance(instance, (Object, type)):
        raise frame.refuse("super() of this", node,
                           "use it in a method of an object that exists before the call")
    if isinstance(instance, type):
        return Object(super(kind, instance), Fixed(super(kind, instance)), instance.__name__)
    return Object(super(kind, instance.content), Super(instance.getter, kind), instance.name)


def _around(frame: Frame, node) -> tuple:
    """The class whose method the current function is, and its first parameter."""
    while frame.lexical is not None:
        frame = frame.lexical
    parameters = parameter_names(frame.node)
    if "__class__" not in frame.closure or not parameters:
        raise TypeMismatchError("super() outside a method", frame.line(node),
                                "write super(kind, object)")
    return frame.closure["__class__"].cell_contents, frame.lookup(parameters[0], node)


BUILTINS.update({
    super: _super,
    functools.partial: _partial,
    functools.wraps: _wraps,
    functools.update_wrapper: _update_wrapper,
    operator.itemgetter: _itemgetter,
    operator.attrgetter: _attrgetter,
    operator.methodcaller: _methodcaller,
})
