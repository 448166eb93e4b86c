"""Evaluate statement lists; lower early exits (return, break, continue) to flags and moved
statements.

`return`, `break` and `continue` set flags.  Where an `if` may leave, the statements after it move
into the side that goes on, so that the flags of each side are known; only where both sides may go
on or leave is the flag tested at run time.
"""

from __future__ import annotations

import gast

from ...errors import S2SError
from ...ir.builder import at, current, emit
from ...ir.graph import MISSING, Value
from ...ops.core.control import tape_new
from ..control.iterables import Iterable
from ..control.iterators import OneShotIterator
from ..control.join import branch, unless_left
from ..control.try_statement import run_try
from ..domain.frame import EXIT, RESULT, RETURNED, STOP, Frame, Object
from ..domain.functions import FunctionValue, NeedsInlining
from ..domain.heap import Container, insider
from ..syntax.liveness import may_fall_through, may_leave
from ..syntax.one_raise_per_statement import split
from ..values.context_managers import enter
from ..values.exceptions import Leave, Point, guard, is_caught, throw
from ..values.lists import as_list
from ..values.maybe_unbound import note_bound, read_name
from ..values.messages import run_assert, run_raise
from ..values.objects import delete as delete_attribute
from .assignment import assign, augment, delete_item, exchange_items
from .expressions import condition, evaluate, evaluate_any, key_of, place_of
from .functools_calls import apply_decorators
from .loops import run_for, run_out, run_while
from .operators import negation


def execute(frame: Frame, body: list, live: frozenset, tail: bool = True) -> None:
    """Run statements; `live` are the names read after them, `tail` means that no statement follows
    them in this function or loop trip.
    """
    for k, stmt in enumerate(body):
        rest = body[k + 1:]
        guarded = bool(frame.session.tries)
        parts = split(frame.outline, stmt) if guarded else [stmt]
        if parts != [stmt]:
            execute(frame, [*parts, *rest], live, tail)
            return
        if isinstance(stmt, gast.If) and (guarded or may_leave([stmt])):
            if _run_leaving_if(frame, stmt, rest, live, tail):
                return
        elif guarded:
            if _run_guarded(frame, stmt, rest, live, tail):
                return
        else:
            _run(frame, stmt)
        leaving = frame.env[EXIT]
        if leaving is True:
            return
        if leaving is not False:
            if rest:
                _run_unless(frame, leaving, rest, live, tail)
            return


def _run_unless(frame: Frame, leaving: Value, rest: list, live: frozenset, tail: bool) -> None:
    """Run `rest` unless the flag of an early exit is set."""
    with at(frame.line(rest[0])):
        unless_left(frame, leaving, lambda: _arm(frame, rest, live, tail),
                    live.union(*frame.kept[-1:]))


SIMPLE = (gast.Assign, gast.AugAssign, gast.AnnAssign, gast.Expr, gast.Return, gast.Assert,
          gast.Raise, gast.Delete)


def _run_guarded(frame: Frame, stmt: gast.AST, rest: list, live: frozenset, tail: bool,
                 passed: int = 0) -> bool:
    """A statement that may raise a caught exception, past its first guards; returns whether `rest`
    has been run with it.
    """
    session, before, assumed = frame.session, frame.snapshot(), dict(frame.session.assumed)
    around, session.point = session.point, (Point(current().block, passed)
                                            if isinstance(stmt, SIMPLE) else None)
    try:
        _run(frame, stmt)
        return False
    except Leave as leave:
        condition, thrown = leave.condition, leave.thrown
    finally:
        session.point = around
    frame.restore(before)
    session.assumed = assumed

    def go_on() -> None:
        if not _run_guarded(frame, stmt, rest, live, tail, passed + 1):
            leaving = frame.env[EXIT]
            if leaving is False:
                execute(frame, rest, live, tail)
            elif leaving is not True and rest:
                _run_unless(frame, leaving, rest, live, tail)
        if tail:
            frame.env[EXIT] = False

    with at(frame.line(stmt)):
        branch(frame, condition, lambda: throw(frame, thrown), go_on, live.union(*frame.kept[-1:]),
               assumes=False)  # the statement is run again, and must emit the same tests
    return True


def _run_leaving_if(frame: Frame, stmt: gast.If, rest: list, live: frozenset, tail: bool) -> bool:
    """An `if` with an early exit in an arm; returns whether `rest` has been run with it."""
    with at(frame.line(stmt.test)):
        _enter(frame, stmt)
        test, sides = _decision(frame, stmt)
        if test.constant is not MISSING:
            execute(frame, sides[0 if test.constant else 1] + rest, live, tail)
            return True
        going_on = [may_fall_through(side) for side in sides]
        if rest and all(going_on):
            after = frame.liveness.after[id(stmt)].union(*frame.kept[-1:])
            branch(frame, test, lambda: execute(frame, sides[0], after, False),
                   lambda: execute(frame, sides[1], after, False), after)
            return False
        arms = [side + rest if goes_on else side for side, goes_on in zip(sides, going_on)]
        branch(frame, test, lambda: _arm(frame, arms[0], live, tail),
               lambda: _arm(frame, arms[1], live, tail), live.union(*frame.kept[-1:]))
        return True


def _arm(frame: Frame, body: list, live: frozenset, tail: bool) -> None:
    execute(frame, body, live, tail)
    if tail:
        frame.env[EXIT] = False  # no reader follows


def _enter(frame: Frame, stmt: gast.AST) -> None:
    # a `break` in them makes live what is live at the loop's end
    arms = frame.liveness.arms.get(id(stmt), frozenset())
    frame.live = frame.liveness.after[id(stmt)] | frame.liveness.always | arms
    frame.pending = frame.liveness.reads[id(stmt)]


def _run(frame: Frame, stmt: gast.AST) -> None:
    """One statement without an early exit, or with an unconditional one."""
    with at(frame.line(stmt)):
        try:
            _enter(frame, stmt)
            _dispatch(frame, stmt)
        except S2SError as error:
            if error.line is None:
                error.line = frame.line(stmt)
            raise


def _dispatch(frame: Frame, stmt: gast.AST) -> None:
    STATEMENTS.get(type(stmt), _refuse)(frame, stmt)


def _assign(frame: Frame, stmt: gast.Assign) -> None:
    match stmt:
        case gast.Assign(targets=[gast.Tuple(elts=targets)], value=gast.Tuple(elts=items)):
            if exchange_items(frame, targets, items):
                return
    binding = evaluate_any(frame, stmt.value)
    for target in stmt.targets:
        assign(frame, target, binding, stmt)


def _assign_annotated(frame: Frame, stmt: gast.AnnAssign) -> None:
    if stmt.value is not None:
        assign(frame, stmt.target, _annotated(frame, stmt, evaluate_any(frame, stmt.value)), stmt)


def _return(frame: Frame, stmt: gast.Return) -> None:
    result = evaluate_any(frame, stmt.value) if stmt.value is not None else None
    if frame.caller is None:
        _returnable(frame, result, stmt)
    frame.env[RESULT] = result
    frame.env[EXIT] = frame.env[RETURNED] = True
    frame.env[STOP] = bool(frame.kept)


def _break(frame: Frame, stmt: gast.Break) -> None:
    if getattr(stmt, "ran_out", False):
        run_out(frame)
    frame.env[EXIT] = frame.env[STOP] = True


def _continue(frame: Frame, stmt: gast.Continue) -> None:
    frame.env[EXIT] = True


def _global(frame: Frame, stmt: gast.Global) -> None:
    if frame.locals.intersection(stmt.names):
        raise frame.refuse("writing to a global variable", stmt, "return the new value")


def _define(frame: Frame, stmt: gast.FunctionDef) -> None:
    frame.env[stmt.name] = apply_decorators(frame, stmt)
    note_bound(frame, stmt.name)


def _with(frame: Frame, stmt: gast.With) -> None:
    enter(frame, stmt, evaluate, assign)


def _annotated(frame: Frame, stmt: gast.AnnAssign, binding):
    """The value of an annotated assignment; dumps of IR annotate tapes and run-time lists so."""
    kind = stmt.annotation.value if isinstance(stmt.annotation, gast.Constant) else ""
    if isinstance(kind, str) and kind.startswith(
        ("tape of", "list of")) and frame.heap.items(binding) is not None:
        if kind.startswith("tape of"):
            return frame.heap.new(emit(tape_new))
        as_list(frame, binding)
    return binding


def _run_if(frame: Frame, stmt: gast.If) -> None:
    test, sides = _decision(frame, stmt)
    after = frame.liveness.after[id(stmt)]
    branch(frame, test, lambda: execute(frame, sides[0], after, False),
           lambda: execute(frame, sides[1], after, False), after)


def _decision(frame: Frame, stmt: gast.If) -> tuple[Value, list]:
    """The condition of an `if`, and its arms; `not` exchanges the two."""
    test, sides = stmt.test, [stmt.body, stmt.orelse]
    while isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
        test, sides = test.operand, sides[::-1]
    return condition(frame, test), sides


def _returnable(frame: Frame, binding, stmt: gast.Return) -> None:
    """Refuse a result that cannot leave the program; calls inside a program inline the function
    then.
    """
    if frame.members(binding) is not None:
        for item in frame.members(binding):
            _returnable(frame, item, stmt)
    elif isinstance(binding, Container):
        frame.session.leaving = frame.session.leaving or insider(binding)
        for member in binding.members.values():
            _returnable(frame, member, stmt)
    elif isinstance(binding, OneShotIterator):
        raise NeedsInlining("returning an iterator", frame.line(stmt),
                            "return a list of what is in it: list(...)")
    elif isinstance(binding, FunctionValue):
        raise NeedsInlining(
            "a function defined inside this one cannot be returned to outside the program",
            frame.line(stmt), "call it here, and return what it computes")
    elif isinstance(binding, Object):
        frame.value(binding)
    elif isinstance(binding, slice) and not frame.is_static(binding):
        raise NeedsInlining("returning a slice", frame.line(stmt),
                            "return its bounds, or what it takes of an array")
    elif isinstance(binding, Iterable) or (callable(binding) and not isinstance(binding, type)):
        raise NeedsInlining(f"returning a {type(binding).__name__}", frame.line(stmt),
                            "return numbers, arrays and tuples of them")


def _delete(frame: Frame, stmt: gast.Delete) -> None:
    for target in stmt.targets:
        match target:
            case gast.Subscript():
                base, key = place_of(frame, target.value), key_of(frame, target.slice)
                with at(frame.line(target)):
                    if delete_item(frame, base, key, target):
                        continue
            case gast.Attribute():
                delete_attribute(frame, evaluate(frame, target.value), target.attr, target)
                continue
        if not isinstance(target, gast.Name):
            raise frame.refuse("deleting part of something", target, "build a new one")
        read_name(frame, target.id, target)
        frame.env.pop(target.id, None)


def _assert(frame: Frame, stmt: gast.Assert) -> None:
    test = condition(frame, stmt.test)
    if is_caught(frame, AssertionError):
        message = () if stmt.msg is None else (evaluate(frame, stmt.msg),)
        guard(frame, AssertionError, lambda: negation(test), *message)
        return
    branch(frame, test, lambda: None, lambda: run_assert(frame, stmt, evaluate),
           frame.liveness.after[id(stmt)])


def _refuse(frame: Frame, stmt: gast.AST) -> None:
    what, remedy = {
        "TryStar": ("`except*`", "use `except`"),
        "ClassDef": ("a class inside a function", "define it at module level"),
        "Import": ("an import of what is not there", "install it, or do without"),
        "ImportFrom": ("an import of what is not there", "install it, or do without"),
        "AsyncFunctionDef": ("a coroutine", "use a plain `def`"),
        "AsyncFor": ("a coroutine", "use a plain `for`"),
        "AsyncWith": ("a coroutine", "use plain statements"),
    }.get(
        type(stmt).__name__,
        (f"the statement {type(stmt).__name__}", "write it with plain statements"))
    raise frame.refuse(what, stmt, remedy)


STATEMENTS = {
    gast.Assign: _assign,
    gast.AugAssign: augment,
    gast.AnnAssign: _assign_annotated,
    gast.Expr: lambda frame, stmt: evaluate_any(frame, stmt.value),
    gast.Return: _return,
    gast.If: _run_if,
    gast.For: run_for,
    gast.While: run_while,
    gast.Break: _break,
    gast.Continue: _continue,
    gast.Pass: lambda frame, stmt: None,
    gast.Nonlocal: lambda frame, stmt: None,
    gast.Global: _global,
    gast.FunctionDef: _define,
    gast.Delete: _delete,
    gast.Try: lambda frame, stmt: run_try(frame, stmt, evaluate),
    gast.With: _with,
    gast.Assert: _assert,
    gast.Raise: lambda frame, stmt: run_raise(frame, stmt, evaluate),
}
