"""Context managers: objects with `__enter__` and `__exit__`, functions made by
`contextlib.contextmanager`, and those without an effect on results (np.errstate, nullcontext).

Warnings that a function ignores anywhere are ignored in all code generated from that function:
`@np.errstate(divide="ignore")` above its printed form (back/print/printer.py).  Considered: a
`with` around the statements that stem from those inside the user's.  Passes move them out of loops,
share them, and put the adjoint of one beside that of another; each would have to preserve a block
without a meaning to it, and the text would hold several for one of the user's.

A manager is left with `__exit__(None, None, None)`, however its statements end, and not at all
where an exception leaves the program: what `__exit__` does then, nobody sees.  One that looks at
the exception, or may swallow it, is refused where that could be seen.

    @contextmanager                        def timed_before(name):
    def timed(name):                           t = time.perf_counter()
        t = time.perf_counter()                return None, (name, t)
        yield                becomes
        print(name, time.perf_counter() - t)   def timed_after(name, t):
                                                   print(name, time.perf_counter() - t)
"""

from __future__ import annotations

import contextlib
import copy
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import gast
import numpy as np

from ...errors import ERRORS
from ...library.with_markers import leave
from ..domain.frame import Frame
from ..domain.functions import FunctionValue, Local, Method
from ..domain.warning_filters import Filter, silenced_kinds
from ..syntax.desugar import copy_position
from ..syntax.find_source import definition_of
from ..syntax.liveness import bound_names, inside, parameter_names, read_names
from .objects import is_users, method_of

REMEDY = "do what it does outside the function"
_HELPER = contextlib.contextmanager(lambda: None).__code__
_parts: WeakKeyDictionary[gast.FunctionDef, tuple] = WeakKeyDictionary()


@dataclass(frozen=True)
class Context:
    """The manager of such a `with`: `entered` is bound by `as`."""

    entered: object = None
    filters: tuple | None = None  # of warnings, from before catch_warnings


def _errstate(frame: Frame, node, **settings):
    for kind, setting in settings.items():
        does = frame.static(setting, "what np.errstate does", node)
        if does not in ("ignore", "warn", None):
            raise frame.refuse(
                f"np.errstate({kind}={setting!r})", node,
                "test for the condition; generated code ignores these errors or warns")
        if does == "ignore":
            _silence(frame, ERRORS if kind == "all" else (kind,))
    return Context()


def _silence(frame: Frame, kinds) -> None:
    """Ignore these errors in the functions that do so, and that enter a manager which does."""
    for source in (frame.source, *(each.source for each in frame.session.entering)):
        source.silent.update(kinds)


def _nullcontext(frame: Frame, node, enter_result=None):
    return Context(enter_result)


@dataclass(eq=False)
class GeneratorManager(FunctionValue):
    """A call of a function made by `contextlib.contextmanager`, which `with` enters."""

    function: types.FunctionType | Local
    args: list
    keywords: dict

    def held(self) -> Iterator:
        if isinstance(self.function, Local):
            yield self.function
        yield from (*self.args, *self.keywords.values())


@dataclass(eq=False)
class MakesManager(FunctionValue):
    """What contextlib.contextmanager makes of a function of the program."""

    function: Local

    def held(self) -> Iterator:
        yield self.function


def generator_of(function) -> types.FunctionType | Local | None:
    """The generator function of which contextlib.contextmanager made `function`; else None."""
    if isinstance(function, MakesManager):
        return function.function
    is_made = isinstance(function, types.FunctionType) and function.__code__ is _HELPER
    return function.__wrapped__ if is_made else None


def enter(frame: Frame, stmt: gast.With, evaluate, assign) -> None:
    """Enter the manager of a `with`, whose statements follow, and what leaves it."""
    item, *kept = stmt.items
    manager = item.context_expr
    if isinstance(manager, gast.Call) and not _is_manager(evaluate(frame, manager.func)):
        raise frame.refuse("a `with` statement", manager, REMEDY)
    binding = evaluate(frame, manager)
    entered, left = _entered(frame, binding, manager)
    if item.optional_vars is not None:
        assign(frame, item.optional_vars, entered, item.optional_vars)
    for each in kept:
        assign(frame, each.optional_vars, left, each.optional_vars)


def _is_manager(function) -> bool:
    """Whether a call of this may return a context manager that s2s can enter."""
    return (function in (np.errstate, contextlib.nullcontext, warnings.catch_warnings)
            or isinstance(function, (FunctionValue, types.FunctionType, types.MethodType))
            or isinstance(function, type) and is_users(function))


def _entered(frame: Frame, manager, node: gast.AST) -> tuple:
    """What `as` binds, and what leaves the manager."""
    if isinstance(manager, Context):
        return manager.entered, manager
    if isinstance(manager, GeneratorManager):
        if frame.session.tries:
            raise frame.refuse("a generator that is a context manager, inside `try`", node,
                               "write the `try` inside the `with`")
        before, after = _split(frame, manager.function, node)
        frame.session.entering.append(frame)
        entered, variables = frame.session.part(frame, manager.function, before, manager.args,
                                                manager.keywords, node)
        frame.session.entering.pop()
        frame.session.filters = frame.session.filters_left
        return entered, (manager, after, variables)
    own, end = method_of(manager, "__enter__"), method_of(manager, "__exit__")
    if own is None or end is None:
        raise frame.refuse("a `with` statement", node, REMEDY)
    definition = definition_of(end).node
    if any(isinstance(x, gast.Return) and not _is_false(x.value)
           for statement in definition.body for x in inside(statement)):
        raise frame.refuse("an __exit__ that may swallow exceptions", node,
                           "let it return None, and write a `try` where it is used")
    if frame.session.tries and not read_names(definition.body).isdisjoint(
            parameter_names(definition)[1:]):
        raise frame.refuse("an __exit__ that looks at an exception, inside `try`", node,
                           "write a `try` where it is used")
    return frame.session.call(frame, Method(own, manager), [], {}, node), manager


def _context_manager(frame: Frame, node, function):
    if not isinstance(function, Local):
        raise frame.refuse("contextlib.contextmanager of this", node, "decorate a function")
    return MakesManager(function)


def _catch_warnings(frame: Frame, node, *, record=False, module=None, action=None,
                    category=Warning, lineno=0, append=False):
    if frame.static(record, "record=", node) or module is not None:
        raise frame.refuse("warnings.catch_warnings with these arguments", node,
                           "catch warnings outside the function")
    before = frame.session.filters
    if action is not None:
        _simple_filter(frame, node, action, category, lineno, append)
    return Context(filters=before)


def _simple_filter(frame: Frame, node, action, category=Warning, lineno=0, append=False):
    _filter_warnings(frame, node, action, "", category, "", lineno, append)


def _filter_warnings(frame: Frame, node, action, message="", category=Warning, module="",
                     lineno=0, append=False):
    does, text, kind, *where = (frame.static(x, "a filter of warnings", node) for x in (
        action, message, category, module, lineno, append))
    if does not in ("ignore", "default", "once", "always", "module"):
        raise frame.refuse(f"warnings that {does!r} makes errors of", node,
                           "test for the condition; generated code ignores warnings or gives them")
    if any(where) and does == "ignore":
        raise frame.refuse("warnings that are ignored in some module or line, or at last", node,
                           "ignore them by their class, or by what they say")
    made = Filter(does, kind, text)
    _silence(frame, silenced_kinds(made))
    frame.session.filters = made, *frame.session.filters


def _is_false(value: gast.AST | None) -> bool:
    return value is None or isinstance(value, gast.Constant) and not value.value


def _leave(frame: Frame, node, manager) -> None:
    match manager:
        case Context(filters=filters):
            if filters is not None:
                frame.session.filters = filters
        case (GeneratorManager(function=function), after, variables):
            frame.session.part(frame, function, after, list(variables), {}, node)
        case _:
            end = Method(method_of(manager, "__exit__"), manager)
            frame.session.call(frame, end, [None, None, None], {}, node)


def _split(frame: Frame, function, node: gast.AST) -> tuple:
    """The definitions of what a generator with one `yield` does before it, and after."""
    definition = (function.node if isinstance(function, Local) else definition_of(function).node)
    if definition not in _parts:
        found = _around_yield(definition.body)
        if found is None:
            raise frame.refuse("a context manager with several `yield`s, or one in a branch", node,
                               "give it one `yield`, and `try: ... finally:` at most around that")
        first, item, then = copy.deepcopy(found)
        names = [*parameter_names(definition), *bound_names(first)]
        used = [name for name in dict.fromkeys(names) if name in read_names(then)]
        variables = [gast.Name(name, gast.Load(), None, None) for name in used]
        parameters = [gast.Name(name, gast.Param(), None, None) for name in used]
        result = gast.Tuple([item or gast.Constant(None, None), gast.Tuple(variables, gast.Load())],
                            gast.Load())
        before, after = copy.copy(definition), copy.copy(definition)
        before.body = [*first, copy_position(gast.Return(result), definition)]
        after.body = then or [copy_position(gast.Pass(), definition)]
        after.args = copy_position(gast.arguments(parameters, [], None, [], [], None, []),
                                   definition)
        _parts[definition] = before, after
    return _parts[definition]


def _around_yield(body: list) -> tuple[list, gast.AST | None, list] | None:
    """The statements before the only `yield`, what it yields, and those after it."""
    places = [k for k, statement in enumerate(body)
              if any(isinstance(x, (gast.Yield, gast.YieldFrom)) for x in inside(statement))]
    if len(places) != 1:
        return None
    (k,) = places
    match body[k]:
        case gast.Expr(value=gast.Yield(value=item)):
            return body[:k], item, body[k + 1:]
        case gast.Try(handlers=[], orelse=[]):
            found = _around_yield(body[k].body)
            if found is not None:
                first, item, then = found
                return [*body[:k], *first], item, [*then, *body[k].finalbody, *body[k + 1:]]
    return None


def _suppress(frame: Frame, node, *kinds) -> tuple:
    """contextlib.suppress(*kinds), in the place of the classes to catch: front/syntax/desugar.py.
    """
    return kinds


CONTEXTS = {
    np.errstate: _errstate,
    contextlib.nullcontext: _nullcontext,
    contextlib.suppress: _suppress,
    contextlib.contextmanager: _context_manager,
    warnings.catch_warnings: _catch_warnings,
    warnings.simplefilter: _simple_filter,
    warnings.filterwarnings: _filter_warnings,
    leave: _leave
}
