"""`try`: run the body, dispatch what was thrown to its handlers (front/values/exceptions.py), then
run `finally`.
"""

from __future__ import annotations

from collections.abc import Callable

import gast

from ...errors import UnsupportedError
from ...ir.graph import OPERATORS
from ...ops.core.record import value
from ...ops.program.effects import is_exception
from ..domain.frame import CODE, EXIT, RAISED, RETURNED, STOP, UNBOUND, ExceptionObject, Frame
from ..syntax.desugar import is_leaving
from ..syntax.liveness import inside, names_in, read_names
from ..values.exceptions import FLAGS, Try, forget, held_names, is_caught, note, throw, thrown_by
from ..values.maybe_unbound import note_bound
from ..values.messages import raise_
from .join import branch, clear_flags, has_left, unless_left


def run_try(frame: Frame, stmt: gast.Try, evaluate: Callable) -> None:
    """`try: ... except ...: ... else: ... finally: ...`."""
    if stmt.finalbody:
        _run_finally(frame, stmt, evaluate)
    else:
        _run_catching(frame, stmt, evaluate)


def _run_inside(frame: Frame, tried: Try, run: Callable) -> None:
    frame.session.tries.append(tried)
    try:
        run()
    finally:
        frame.session.tries.pop()


# ----------------------------------------------------------------------------------------- handlers


def _run_catching(frame: Frame, stmt: gast.Try, evaluate: Callable) -> None:
    """Run the body, the handlers and the `else`."""
    kinds = [_kinds(frame, handler, evaluate) for handler in stmt.handlers]
    tried = Try(tuple(kind for each in kinds for kind in each))
    live = frame.liveness.tries[id(stmt)].union(*frame.kept[-1:])
    _run_inside(frame, tried, lambda: frame.session.execute(frame, stmt.body, live, False))
    raised, after = frame.env[RAISED], frame.liveness.ends[id(stmt)].union(*frame.kept[-1:])

    def caught() -> None:
        clear_flags(frame)
        _dispatch(frame, _groups(frame, stmt, kinds, list(tried.codes)), after)

    def went_on() -> None:
        _clear_in_flight(frame, raised)
        leaving = frame.env[EXIT]
        if leaving is False:
            frame.session.execute(frame, stmt.orelse, after, False)
        elif leaving is not True and stmt.orelse:
            unless_left(frame, leaving,
                        lambda: frame.session.execute(frame, stmt.orelse, after, False), after)

    if raised is False:
        went_on()
    else:
        branch(frame, value(raised), caught, went_on, after)


def _kinds(frame: Frame, handler: gast.ExceptHandler, evaluate: Callable) -> tuple[type, ...]:
    """The exception classes that a handler catches."""
    if handler.type is None:
        return (BaseException,)
    binding = evaluate(frame, handler.type)
    kinds = binding if isinstance(binding, tuple) else (binding,)
    if not all(map(is_exception, kinds)):
        raise frame.refuse("`except` of something that is no class of exceptions", handler.type,
                           "name classes of exceptions")
    return kinds


def _clear_in_flight(frame: Frame, raised) -> None:
    """Clear the in-flight flags: no exception is in flight."""
    for flag in (EXIT, STOP, RETURNED):
        if frame.env[flag] is raised:
            frame.env[flag] = False
    forget(frame)


def _groups(frame: Frame, stmt: gast.Try, kinds: list, codes: list[int]) -> list[tuple]:
    """The exceptions that may be in flight, grouped by handler; None for those that no handler
    takes.
    """
    groups: list[tuple] = []
    for handler, classes in zip(stmt.handlers, kinds):
        taken = [
            code for code in codes if issubclass(frame.session.thrown[code - 1][1].kind, classes)
        ]
        codes = [code for code in codes if code not in taken]
        if handler.name is not None and names_in(handler.name)[0] in read_names(handler.body):
            groups += [(handler, [code]) for code in taken]
        elif taken:
            groups.append((handler, taken))
    return [*groups, (None, codes)] if codes else groups


def _dispatch(frame: Frame, groups: list[tuple], after: frozenset) -> None:
    """Run the handler of the exception in flight."""
    (handler, codes), *others = groups
    code = frame.env[CODE]

    def take() -> None:
        if handler is None:
            frame.env[RAISED] = frame.env[EXIT] = frame.env[RETURNED] = True
            frame.env[STOP] = bool(frame.kept)
        else:
            _run_handler(frame, handler, codes, code, after)

    if not others or isinstance(code, int):
        group = (next((g for g in groups if code in g[1]), groups[0]) if isinstance(code, int)
                 else groups[0])
        if group is groups[0]:
            take()
        else:
            _dispatch(frame, [group], after)
        return
    branch(frame, _is_one_of(code, codes), take, lambda: _dispatch(frame, others, after), after)


def _is_one_of(code, codes: list[int]):
    test = OPERATORS["equal"](value(code), value(codes[0]))
    for other in codes[1:]:
        test = OPERATORS["bitwise_or"](test, OPERATORS["equal"](value(code), value(other)))
    return test


def _run_handler(frame: Frame, handler: gast.ExceptHandler, codes: list[int], code,
                 after: frozenset) -> None:
    caught = {each: thrown_by(frame, each) for each in codes}
    forget(frame)
    if handler.name is not None:
        frame.env[names_in(handler.name)[0]] = caught[codes[0]]
        note_bound(frame, names_in(handler.name)[0])

    def again(stmt: gast.Raise) -> None:
        _throw_again(frame, caught, code, stmt, after)

    frame.session.handling.append(again)
    try:
        frame.session.execute(frame, handler.body, after, False)
    finally:
        frame.session.handling.pop()
    if handler.name is not None:
        frame.env.pop(names_in(handler.name)[0], None)


def _throw_again(frame: Frame, caught: dict[int, ExceptionObject], code, stmt: gast.AST,
                 after: frozenset) -> None:
    """Re-raise: `raise` without an exception, in a handler."""
    (first, thrown), *others = caught.items()

    def leave() -> None:
        if is_caught(frame, thrown.kind):
            throw(frame, thrown)
        else:
            raise_(frame, stmt, thrown)

    if not others:
        leave()
    else:
        branch(frame, _is_one_of(code, [first]), leave,
               lambda: _throw_again(frame, dict(others), code, stmt, after), after)


# ------------------------------------------------------------------------------------------ finally


def _run_finally(frame: Frame, stmt: gast.Try, evaluate: Callable) -> None:
    """Run everything but the `finally`; then the `finally`, with the pending exit put aside."""
    tried = Try(_seen_by(frame, stmt.finalbody))
    live = frame.liveness.tries[id(stmt)].union(*frame.kept[-1:])

    def rest() -> None:
        if stmt.handlers:
            _run_catching(frame, stmt, evaluate)
        else:
            frame.session.execute(frame, stmt.body, live, False)

    if tried.kinds or frame.session.tries:
        _run_inside(frame, tried, rest)
    else:
        rest()
    after = frame.liveness.after[id(stmt)].union(*frame.kept[-1:])
    flags = {name: frame.env.get(name, UNBOUND) for name in (*FLAGS, *held_names(frame))}
    clear_flags(frame)
    forget(frame)
    aside = {
        f"<aside {id(stmt)} {name}>": binding
        for name, binding in flags.items() if binding is not UNBOUND
    }
    frame.env.update(aside)
    frame.session.execute(frame, stmt.finalbody, after, False)

    def leave_as_before() -> None:
        for name in flags:
            binding = frame.env.get(f"<aside {id(stmt)} {name}>", UNBOUND)
            if binding is UNBOUND:
                frame.env.pop(name, None)
            else:
                frame.env[name] = binding

    left = frame.env[EXIT]
    if left is False:
        leave_as_before()
    elif left is not True:
        branch(frame, left, lambda: has_left(frame, left), leave_as_before, after)
    for name in aside:
        frame.env.pop(name, None)
    for code in tried.codes:
        note(frame, code)
    _raise_pending(frame, list(tried.codes), stmt, after)


def _seen_by(frame: Frame, body: list) -> tuple[type, ...]:
    """The exceptions of which a `finally` has an effect, as they propagate, that something sees: of
    the end of a `with`, nothing does if they leave the program.
    """
    if is_leaving(body):
        return tuple(dict.fromkeys(kind for tried in frame.session.tries for kind in tried.kinds))
    has_effect = any(
        isinstance(node, (gast.Return, gast.Break, gast.Continue, gast.Raise, gast.Call))
        for stmt in body for node in inside(stmt))
    return (BaseException,) if has_effect else ()


def _raise_pending(frame: Frame, codes: list[int], stmt: gast.AST, after: frozenset) -> None:
    """Raise the exception that the `finally` held back and that no enclosing `try` catches."""
    raised, code = frame.env[RAISED], frame.env[CODE]
    loose = [each for each in codes if not is_caught(frame, frame.session.thrown[each - 1][1].kind)]
    if raised is False or not loose:
        return
    if len(loose) < len(codes):
        raise UnsupportedError(
            "a `finally` through which exceptions pass that something around catches, and others",
            frame.line(stmt), "catch them all around it, or none")
    caught = {each: thrown_by(frame, each) for each in loose}
    branch(frame, value(raised), lambda: _throw_again(frame, caught, code, stmt, after),
           lambda: _clear_in_flight(frame, raised), after)
