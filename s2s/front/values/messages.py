"""Output and errors of a program: `print`, `warnings.warn`, loggers, `raise`, `assert`, and
formatted strings.

A string with run-time data is a Text, an exception created and not yet raised a ExceptionObject:
both are bindings with Values at their leaves, as tuples are.  `print` and `raise` lay out those
leaves as the inputs of one op and keep the rest as a template (ops/program/effects.py).

A `raise` ends its path: PathEnded unwinds to the enclosing branch or loop, which continues with the
state of the other arm.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import gast

from ...errors import library_refusal
from ...ir.builder import current, emit
from ...ir.graph import MISSING, Value
from ...ir.types import List, Static, Tuple
from ...ops.core.control import item
from ...ops.program.effects import (
    Either,
    Field,
    Filled,
    Joined,
    Made,
    Operand,
    Pairs,
    Plain,
    Several,
    is_builtin,
    is_exception,
    print_record,
    raise_record,
)
from ..domain.frame import ExceptionObject, Frame, Object, PathEnded, Text
from ..domain.functions import FunctionValue as Function
from ..domain.heap import Cell, Container
from ..domain.warning_filters import is_ignored
from ..syntax.captures import Fixed
from ..syntax.dependencies import Enabled, note_dependency
from .exceptions import is_caught, throw
from .strings import Choice, FormatCall, Piece, Word, freeze, spelled_out

LITERALS = (str, bytes, bool, int, float, complex, type(None), type(Ellipsis))


# ---------------------------------------------------------------------------------------- templates


@dataclass
class Layout:
    """The inputs of an op, and the templates that refer to them by number."""

    frame: Frame
    node: gast.AST
    inputs: list[Value]

    def template(self, binding, shown: bool = False):
        """The template of a binding; with `shown`, only its str() counts."""
        match binding:
            case Text((FormatCall() | Choice() | Word() as part,)):
                return self.part(part).content
            case Text(parts):
                return self.filled(parts)
            case ExceptionObject(kind, args, keywords):
                return Made(kind, tuple(map(self.template, args)),
                            tuple((name, self.template(x)) for name, x in keywords.items()))
            case tuple() | list() if type(binding) in (tuple, list):
                return Several(type(binding), tuple(map(self.template, binding)))
            case dict() if type(binding) is dict:
                return Pairs(tuple(binding), tuple(map(self.template, binding.values())))
            case Cell() if self.frame.heap.items(binding) is not None:
                return Several(list, tuple(map(self.template, self.frame.heap.items(binding))))
            case Cell() if self.frame.heap.items(binding) is not None:
                return self.template(self.frame.heap.items(binding))
            case Cell():
                return self.operand(self.frame.heap.read(binding))
            case Container():
                if binding.cls is dict:
                    return self.template(binding.members)
                raise self.frame.refuse(f"a {binding.cls.__name__} as text", self.node,
                                        "print its members one by one")
            case Value():
                return self.operand(self.frame.value(binding))
            case Function():
                raise self.frame.refuse("a function as text", self.node, "print its name")
            case Object():
                raise self.frame.refuse(f"a {type(binding.content).__name__} as text", self.node,
                                        "print its number and array attributes one by one")
        if type(binding) in LITERALS:
            return Plain(binding)
        if shown:
            return Plain(str(binding))
        raise self.frame.refuse(f"a {type(binding).__name__} in what is printed or raised",
                                self.node, "use numbers, arrays, strings, and tuples of them")

    def operand(self, x: Value):
        """The template of a Value."""
        match x.type:
            case Static(content):
                return self.template(content)
            case Tuple(items, None):
                return Several(tuple,
                               tuple(self.operand(item(x, index=k)) for k in range(len(items))))
            case List():
                raise self.frame.refuse("a list that grows, as text", self.node,
                                        "print its members, or its length")
        if x.constant is not MISSING and type(x.constant) in LITERALS:
            return Plain(x.constant)
        self.inputs.append(x)
        return Operand(len(self.inputs) - 1)

    def filled(self, parts: tuple):
        """The parts of a Text with operands in place of Values."""
        return Joined(tuple(self.part(part) for part in parts))

    def part(self, part):
        match part:
            case Piece(content, conversion, spec):
                return Field(self.template(content, shown=True), conversion,
                             None if spec is None else self.filled(spec))
            case FormatCall(text, method, items, keywords):
                return Field(
                    Filled(text, method, tuple(map(self.template, items)),
                           tuple((name, self.template(x)) for name, x in keywords.items())))
            case Word():
                return self.part(spelled_out(Text((part,))).parts[0])
            case Choice(test, first, second):
                return Field(Either(self.operand(test), self.template(first),
                                    self.template(second)))
        return part


# --------------------------------------------------------------------------------------------- acts


def print_(frame: Frame, node: gast.Call, *args, **keywords) -> None:
    """`print(...)`: executed once, in the forward pass."""
    layout = Layout(frame, node, [])
    if unknown := set(keywords) - {"sep", "end", "flush", "file"}:
        raise frame.refuse(f"print with the argument {sorted(unknown)[0]}", node,
                           "use sep, end and flush")
    file = keywords.pop("file", None)
    if file is not None and file is not sys.stdout:
        raise frame.refuse("print to a file", node,
                           "return what is to be written, and write it after the call")
    items = tuple(layout.template(x, shown=True) for x in args)
    named = tuple((name, layout.template(x)) for name, x in keywords.items())
    emit(print_record, *layout.inputs, items=items, keywords=named)


def warn(frame: Frame, node: gast.Call, message, category=UserWarning, stacklevel=1) -> None:
    """`warnings.warn(...)`: executed once, in the forward pass."""
    category, layout = frame.static(category, "the category of a warning",
                                    node), Layout(frame, node, [])
    kind = UserWarning if category is None else category
    if not (isinstance(kind, type) and issubclass(kind, Warning) and is_builtin(kind)):
        raise frame.refuse("a warning of a class of the program's own", node,
                           "use one of Python's: UserWarning, RuntimeWarning")
    if is_ignored(frame.session.filters, kind, message if isinstance(message, str) else None):
        return
    items = (layout.template(message,
                             shown=True), *([] if kind is UserWarning else [Made(kind, bare=True)]))
    keywords = () if stacklevel == 1 else (("stacklevel", layout.template(stacklevel)),)
    emit(print_record, *layout.inputs, items=items, keywords=keywords, function="warnings.warn")


LOGGED = {"debug", "info", "warning", "error", "critical", "log", "exception", "isEnabledFor",
          "getLogger"}


def logger(function) -> str | None:
    """The spelling in generated code of a message function of `logging`, or of such a method of a
    logger; None for other functions.  Also of the functions that give a logger, and ask one.
    """
    logging, name = sys.modules.get("logging"), getattr(function, "__name__", None)
    if logging is None or name not in LOGGED:
        return None
    if getattr(logging, name, None) is function:
        return f"logging.{name}"
    owner = getattr(function, "__self__", None)
    if isinstance(owner, logging.Logger) and logging.getLogger(owner.name) is owner:
        return f"logging.getLogger({owner.name!r}).{name}"
    return None


def log(frame: Frame, node: gast.Call, function: str, called, args: list, keywords: dict):
    """`logging.info(...)`, `logger.info(...)`: executed once, in the forward pass.

    `logging.getLogger(...)` gives the logger now, and what `logger.isEnabledFor(...)` says is a
    condition on the code.
    """
    name = called.__name__
    if name in ("getLogger", "isEnabledFor"):
        given = [frame.static(x, "the name of a logger, and a level,", node)
                 for x in (*args, *keywords.values())]
        if name == "getLogger":
            found = called(*given)
            return Object(found, Fixed(found), "logger")
        enabled = Enabled(called.__self__, *given)
        note_dependency(enabled, enabled())
        return enabled()
    if name == "exception" or keywords.get("exc_info", False) is not False:
        raise frame.refuse("a traceback in a message for a logger", node,
                           "log what the exception says: logger.error(...)")
    layout = Layout(frame, node, [])
    items = tuple(layout.template(x) for x in args)
    named = tuple((key, layout.template(x)) for key, x in keywords.items())
    emit(print_record, *layout.inputs, items=items, keywords=named, function=function)
    return None


def raise_(frame: Frame, node: gast.AST, thrown: ExceptionObject,
           cause: ExceptionObject | None = None, bare: bool = False) -> None:
    """Emit `raise thrown from cause` and end the path."""
    layout = Layout(frame, node, [])
    made = layout.template(thrown)
    if bare:
        made = Made(made.kind, bare=True)
    cause = None if cause is None else layout.template(cause)
    emit(raise_record, *layout.inputs, thrown=made, cause=cause)
    raise PathEnded


def thrown_of(frame: Frame, binding, node: gast.AST) -> tuple[ExceptionObject, bool]:
    """The exception that `raise binding` raises, and whether only its class was given."""
    if isinstance(binding, ExceptionObject):
        return binding, False
    if is_exception(binding):
        return ExceptionObject(binding, (), {}), True
    if isinstance(binding, BaseException):
        return ExceptionObject(type(binding), binding.args, {}), False
    raise frame.refuse("raise of something that is no exception", node,
                       "raise an exception, as ValueError(...)")


def run_raise(frame: Frame, stmt: gast.Raise, evaluate) -> None:
    """The statement `raise exception from cause`."""
    if stmt.exc is None:
        if not frame.session.handling:
            raise frame.refuse("`raise` without an exception", stmt,
                               "name the exception that is raised")
        frame.session.handling[-1](stmt)
        return
    thrown, bare = thrown_of(frame, evaluate(frame, stmt.exc), stmt)
    cause = None
    if stmt.cause is not None:
        binding = evaluate(frame, stmt.cause)
        cause = None if binding is None else thrown_of(frame, binding, stmt)[0]
    refusal = None
    if thrown.kind is NotImplementedError and all(isinstance(x, str) for x in thrown.args):
        refusal = library_refusal(NotImplementedError(*thrown.args), current().line)
    if refusal is None and is_caught(frame, thrown.kind):  # NumPy would not have raised it
        throw(frame, thrown)
        return
    if refusal is not None and current().block is frame.session.block:
        raise refusal  # for any arguments; in a branch, it is raised when that is taken
    raise_(frame, stmt, thrown, cause, bare)


def run_assert(frame: Frame, stmt: gast.Assert, evaluate) -> None:
    """Raise the AssertionError of a failed assertion."""
    args = () if stmt.msg is None else (evaluate(frame, stmt.msg),)
    raise_(frame, stmt, ExceptionObject(AssertionError, args, {}))


def make_exception(frame: Frame, kind: type, args: list, keywords: dict) -> ExceptionObject:
    """`ValueError(...)`, with the current values of its arguments."""
    return ExceptionObject(kind, tuple(freeze(frame, x) for x in args), {
        k: freeze(frame, x)
        for k, x in keywords.items()
    })
