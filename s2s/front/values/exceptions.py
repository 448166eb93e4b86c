"""Exceptions that the program itself catches: control leaves for the handler as `break` leaves a
loop.

Where a `try` around may catch what an operation raises, the operation is guarded: `guard` unwinds
to the statement (`Leave`), which becomes an `if`: on one side the exception is thrown, on the other
the statement is run again, past that guard, and the rest follows.  A statement has one operation
that may raise (front/syntax/one_raise_per_statement.py), so nothing has happened before it.

Throwing sets flags: RAISED, and CODE, the number of the exception among the program's. The run-time
data of the exception goes through branches and loops under names of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace

from ...ir.builder import current, emit
from ...ir.graph import MISSING, Block, Value
from ...ops.core.control import if_
from ...ops.core.record import RECORDS, value
from ...ops.program.effects import Made, Plain, raise_record
from ..domain.frame import (
    CODE,
    EXIT,
    OUT,
    RAISED,
    RESULT,
    RETURNED,
    STOP,
    UNBOUND,
    ExceptionObject,
    Frame,
    Text,
)
from .strings import Part

HELD = "<thrown {} {}>"
FLAGS = (EXIT, STOP, OUT, RETURNED, RESULT, RAISED, CODE)


@dataclass(eq=False)
class Try:
    """An active `try`: the classes that it catches, and the exceptions thrown in it so far."""

    kinds: tuple[type, ...]
    codes: dict[int, None] = field(default_factory=dict)

    def catches(self, kind: type) -> bool:
        return issubclass(kind, self.kinds)


@dataclass
class Point:
    """The current statement, and the number of its guards that have been passed."""

    block: Block
    passed: int
    seen: int = 0


class Leave(Exception):
    """Signal that the current statement raises if `condition` holds."""

    def __init__(self, condition: Value, thrown: ExceptionObject):
        self.condition, self.thrown = condition, thrown


def is_caught(frame: Frame, kind: type) -> bool:
    """Whether an enclosing `try` catches exceptions of this class."""
    return any(each.catches(kind) for each in frame.session.tries)


def guard(frame: Frame, kind: type, condition: Callable, *args) -> None:
    """Guard the next operation, which raises kind(*args) where `condition()` holds."""
    session = frame.session
    if not session.tries or not is_caught(frame, kind):
        return
    raises = value(condition())
    if raises.constant is not MISSING and not raises.constant:
        return
    point = session.point
    if point is not None:
        point.seen += 1
        if point.seen <= point.passed:
            return
    require_statement(frame)
    raise Leave(raises, ExceptionObject(kind, args, {}))


def raise_unless(frame: Frame, flag: Value, kind: type, text: str) -> None:
    """Raise kind(text) at run time unless `flag` is set."""
    def fail() -> tuple:
        emit(raise_record, thrown=Made(kind, (Plain(text),)), cause=None)
        return ()

    guard(frame, kind, lambda: RECORDS["not_"](flag), text)
    if not is_caught(frame, kind):
        if_(flag, lambda: (), fail)


def require_statement(frame: Frame) -> None:
    """Refuse an operation that may raise in a place that no statement can leave."""
    if frame.session.point is None or frame.session.point.block is not current().block:
        raise frame.refuse(
            "this may raise what a `try` around catches, in the middle of a comprehension or of a "
            "function that is passed on", None, "write it as a loop of statements")


# ----------------------------------------------------------------------------------------- throwing


def throw(frame: Frame, thrown: ExceptionObject) -> None:
    """Leave for the handler of `thrown` in an enclosing `try`."""
    session = frame.session
    code = _code_of(session.thrown, thrown)
    for k, leaf in enumerate(leaves_of(thrown)):
        frame.env[HELD.format(code, k)] = leaf
    note(frame, code)
    frame.env[CODE] = code
    frame.env[RAISED] = frame.env[EXIT] = frame.env[RETURNED] = True
    frame.env[STOP] = bool(frame.kept)


def note(frame: Frame, code: int) -> None:
    """Record the exception in the enclosing `try`s, up to the one that catches it."""
    kind = frame.session.thrown[code - 1][1].kind
    for each in reversed(frame.session.tries):
        each.codes[code] = None
        if each.catches(kind):
            return


def _code_of(known: list, thrown: ExceptionObject) -> int:
    """The code of an exception; exceptions that differ in run-time data alone share one."""
    key = thrown.kind, repr(map_leaves((thrown.args, thrown.keywords),
                                       lambda leaf: type(leaf.type)))
    for code, (other, _) in enumerate(known, 1):
        if other == key:
            return code
    known.append((key, thrown))
    return len(known)


def thrown_by(frame: Frame, code: int) -> ExceptionObject:
    """The exception of that code with its run-time data at this point."""
    k = iter(range(10 ** 9))
    return map_leaves(frame.session.thrown[code - 1][1],
                      lambda leaf: frame.env.get(HELD.format(code, next(k)), leaf))


def hand_over(inner: Frame) -> None:
    """Pass the exception in flight from an activation that has ended to its caller."""
    raised, frame = inner.env[RAISED], inner.caller
    if raised is False:
        return
    require_statement(frame)
    frame.env[RAISED] = frame.env[EXIT] = frame.env[RETURNED] = raised
    frame.env[STOP] = raised if frame.kept else False
    frame.env[CODE] = inner.env[CODE]
    frame.env.update(held_names(inner))


def held_names(frame: Frame) -> dict[str, object]:
    """The names that store the data of exceptions in flight."""
    return {name: binding for name, binding in frame.env.items() if name.startswith(HELD[:8])}


def is_flag(name: str) -> bool:
    """Whether a name is a control-flow flag rather than one of the program's."""
    return name in FLAGS or name.startswith(HELD[:8])


def forget(frame: Frame) -> None:
    """Clear the state: no exception is in flight."""
    for name in held_names(frame):
        del frame.env[name]
    frame.env[RAISED], frame.env[CODE] = False, 0


def in_flight(frame: Frame) -> dict[str, object]:
    """The names that a loop which may raise carries for exceptions, and their initial values."""
    if frame.env[RAISED] is False:
        return {}
    return {RAISED: False, CODE: 0, **dict.fromkeys(held_names(frame), UNBOUND)}


# ----------------------------------------------------------------------------- what exceptions hold


def leaves_of(binding) -> Iterator[Value]:
    """The run-time data in an exception."""
    found: list = []
    map_leaves(binding, lambda leaf: found.append(leaf) or leaf)
    return iter(found)


def map_leaves(binding, change: Callable):
    """`binding` with each run-time leaf changed."""
    match binding:
        case Value() if binding.constant is MISSING:
            return change(binding)
        case ExceptionObject(kind, args, keywords):
            return ExceptionObject(kind, map_leaves(args, change), map_leaves(keywords, change))
        case Text(parts):
            return Text(map_leaves(parts, change))
        case tuple() | list() if type(binding) in (tuple, list):
            return type(binding)(map_leaves(x, change) for x in binding)
        case dict() if type(binding) is dict:
            return {key: map_leaves(x, change) for key, x in binding.items()}
    if isinstance(binding, Part):
        return replace(
            binding, **{
                field.name: map_leaves(getattr(binding, field.name), change)
                for field in fields(binding)
            })
    return binding
