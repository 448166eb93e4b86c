"""Strings with run-time data: f-strings, `%`, str.format, str(), and strings chosen by conditions.

A static string is a str, concatenated at compile time.  Any other is a Text, which holds the
current Values and is laid out where it is printed or raised (messages.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import FunctionType

import gast

from ...ir.graph import MISSING, OPERATORS, Value
from ...ops.arrays.create import array
from ...ops.arrays.index import getitem
from ...ops.core.control import if_
from ...ops.core.record import value
from ..domain.frame import ExceptionObject, Frame, Text
from ..domain.heap import Cell, Container


class Part:
    """A part of a Text other than a str."""


@dataclass(frozen=True, eq=False)
class Piece(Part):
    """`{x!r:>8}`; `spec` are the parts of one."""

    content: object
    conversion: int = -1
    spec: tuple | None = None


@dataclass(frozen=True, eq=False)
class FormatCall(Part):
    """`text % items[0]`, or `text.format(*items, **keywords)`."""

    text: str
    method: str
    items: tuple
    keywords: dict


@dataclass(frozen=True, eq=False)
class Choice(Part):
    """One text or another, chosen by a run-time condition."""

    test: object  # a Value
    first: object
    second: object


@dataclass(frozen=True, eq=False)
class Word(Part):
    """One of several words, by its number: a string, or a member of an enum, that a run chooses."""

    code: object  # a Value
    words: tuple


MOST_WORDS = 400  # that parts of a text make together
MOST_TESTS = 3  # of a number, rather than a look into a table
CONVERSIONS: dict[int, Callable] = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}


def format_fstring(frame: Frame, node: gast.JoinedStr, evaluate: Callable) -> str | Text:
    """The binding of an f-string."""
    return text(_parts(frame, node, evaluate))


def text(parts: tuple) -> str | Text:
    """The parts concatenated to a str, if all are static."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else Text(parts)


def _parts(frame: Frame, node: gast.JoinedStr, evaluate: Callable) -> tuple:
    parts: list = []
    for each in node.values:
        match each:
            case gast.Constant():
                parts.append(each.value)
            case gast.FormattedValue():
                spec = (None
                        if each.format_spec is None else _parts(frame, each.format_spec, evaluate))
                parts += shown(frame, evaluate(frame, each.value), each.conversion, spec)
    return tuple(parts)


def shown(frame: Frame, content, conversion: int = -1, spec: tuple | None = None) -> tuple:
    """The parts that format `content`."""
    if conversion in (-1, 115) and not spec:
        if isinstance(content, Text):
            return content.parts
        if isinstance(content, ExceptionObject) and is_shown_by_argument(content):
            return shown(frame, content.args[0], 115)
    if frame.is_static(content) and all(isinstance(part, str) for part in spec or ()):
        known = CONVERSIONS[conversion](frame.static(content, "this"))
        return (format(known, "".join(spec or ())),)
    return (Piece(freeze(frame, content), conversion, spec),)


def is_shown_by_argument(thrown: ExceptionObject) -> bool:
    """Whether str() of an exception is str() of its only argument."""
    kind = thrown.kind
    return (kind.__str__ is BaseException.__str__ and not isinstance(kind.__init__, FunctionType)
            and len(thrown.args) == 1 and not thrown.keywords)


def freeze(frame: Frame, binding):
    """A snapshot of `binding`: an array in a text may be written into before the text is printed.
    """
    match binding:
        case Cell() if frame.heap.items(binding) is not None:
            return [freeze(frame, x) for x in frame.heap.items(binding)]
        case Cell():
            return frame.heap.read(binding)
        case Container() if binding.cls is dict:
            return {key: freeze(frame, x) for key, x in binding.members.items()}
        case tuple() | list() if type(binding) in (tuple, list):
            return type(binding)(freeze(frame, x) for x in binding)
        case dict() if type(binding) is dict:
            return {key: freeze(frame, x) for key, x in binding.items()}
    return binding


# -------------------------------------------------------------------------- functions and operators


def str_(frame: Frame, node, x="") -> str | Text:
    return text(shown(frame, x, ord("s")))


def repr_(frame: Frame, node, x) -> str | Text:
    return text(shown(frame, x, ord("r")))


def format_(frame: Frame, node, x, spec="") -> str | Text:
    return text(shown(frame, x, -1, (spec,)))


def method(frame: Frame, node, base: str, name: str, args: list, keywords: dict) -> str | Text:
    """`"{}".format(x)` and `", ".join(xs)`, of run-time data."""
    if name == "format":
        filled = FormatCall(base, name, freeze(frame, tuple(args)), freeze(frame, keywords))
        return Text((filled,))
    items = frame.heap.items(args[0]) if isinstance(args[0], Cell) else args[0]
    if name != "join" or len(args) != 1 or not isinstance(items, (tuple, list)):
        raise frame.refuse(f"the method {name} of a string, given run-time data", node,
                           "use a formatted string")
    parts: tuple = ()
    for k, x in enumerate(items):
        if not isinstance(x, (str, Text)):
            raise frame.refuse("join of what is no string", node, "make strings of them with str()")
        parts = (*parts, *([base] if k else []), *shown(frame, x))
    return text(parts)


def operator(frame: Frame, name: str, a, b, node) -> str | Text | None:
    """`a + b` and `a % b` on strings with run-time data; None for other operators."""
    if name == "remainder" and isinstance(a, str):
        return Text((FormatCall(a, "%", (freeze(frame, b),), {}),))
    if name == "add" and isinstance(a, (str, Text)) and isinstance(b, (str, Text)):
        return text((*shown(frame, a), *shown(frame, b)))
    if isinstance(a, Text) or isinstance(b, Text):
        raise frame.refuse("this operator on a text that shows run-time data", node,
                           "use a formatted string")
    return None


# ---------------------------------------------------------------------------- one string or another


def choices(text) -> list[Value] | None:
    """The conditional strings of a text; None if it shows anything else."""
    match text:
        case str():
            return []
        case Text((Choice(test, first, second),)):
            inner = choices(first), choices(second)
            return None if None in inner else [test, *inner[0], *inner[1]]
    return None


def is_equal(frame: Frame, a, b, node) -> Value:
    """Whether two strings are equal, at least one of which is conditional."""
    if (isinstance(a, Text) and isinstance(b, Text)
            and None not in (found := (words_of(a), words_of(b)))):
        words = tuple(dict.fromkeys((*found[0], *found[1])))
        return OPERATORS["equal"](code_of(a, words), code_of(b, words))
    if isinstance(b, Text):
        a, b = b, a
    if isinstance(b, Text) or not isinstance(b, (str, Enum, type(None))) or words_of(a) is None:
        raise frame.refuse("comparing a text that shows run-time data", node, "compare the data")
    return _is(a, b)


def _is(a, b) -> Value:
    match a:
        case Text((Word(code, words),)):
            return OPERATORS["equal"](code, value(words.index(b))) if b in words else value(False)
        case Text((Choice(test, first, second),)):
            return if_(test, lambda: [_is(first, b)], lambda: [_is(second, b)])[0]
    return value(a == b)


def words_of(binding) -> tuple[str, ...] | None:
    """The possible strings of a text, or the possible members of an enum; None for anything else.
    """
    match binding:
        case str():
            return (binding,)
        case Enum() if is_member(binding):
            return (binding,)
        case Text((Word(_, words),)):
            return words
        case Text((Choice(_, first, second),)):
            found = words_of(first), words_of(second)
            return None if None in found else tuple(dict.fromkeys((*found[0], *found[1])))
        case Text(parts) if len(parts) > 1:
            found = joined_words(parts)
            return found and tuple(dict.fromkeys(found))
    return None


def joined_words(parts: tuple) -> list[str] | None:
    """What a text of these parts may be, in the order of the numbers of its parts."""
    several = [words_of(text((part,))) for part in parts]
    if None in several or math.prod(map(len, several)) > MOST_WORDS:
        return None
    return ["".join(map(str, each)) for each in itertools.product(*several)]


def words_or_none(binding) -> tuple | None:
    """The possible strings or members, None among them: a name may hold None before one is chosen.
    """
    return (None,) if binding is None else words_of(binding)


def common_words(a, b) -> tuple[str, ...] | None:
    """The possible strings of both texts, ordered so that the numbers of their Words stay valid."""
    found = words_or_none(a), words_or_none(b)
    if None in found:
        return None
    words = tuple(dict.fromkeys((*found[0], *found[1])))
    if is_word(b) and words[:len(found[1])] != found[1]:
        words = tuple(dict.fromkeys((*found[1], *found[0])))
    return words if not is_word(a) or words[:len(found[0])] == found[0] else None


def is_member(binding) -> bool:
    """Whether a binding is a member of an enum that is no number and no string."""
    return isinstance(binding, Enum) and not isinstance(binding, (int, str))


def is_word(text) -> bool:
    """Whether a text is one of several words by number."""
    return isinstance(text, Text) and len(text.parts) == 1 and isinstance(text.parts[0], Word)


def looked_up(numbers: list[int], code: Value) -> Value:
    """The number at this place of a table: an array, which is made before all loops."""
    return getitem(array(tuple(map(value, numbers))), code, pattern=("i",))


def code_of(binding, words: tuple[str, ...]) -> Value:
    """The number of a text among the words."""
    match binding:
        case Text((Word(code, own),)):
            if words[:len(own)] == own:
                return code
            if len(own) > MOST_TESTS:
                return looked_up([words.index(each) for each in own], code)
            number = value(words.index(own[-1]))
            for k in range(len(own) - 2, -1, -1):
                rest, found = number, value(words.index(own[k]))
                number = if_(OPERATORS["equal"](code, value(k)), lambda f=found: [f],
                             lambda r=rest: [r], [""])[0]
            return number
        case Text((Choice(test, first, second),)):
            return if_(test, lambda: [code_of(first, words)], lambda: [code_of(second, words)],
                       [""])[0]
        case Text(parts) if len(parts) > 1:
            number = value(0)
            for each in (text((part,)) for part in parts):
                own = words_of(each)
                number = number * value(len(own)) + code_of(each, own)
            return looked_up([words.index(each) for each in joined_words(parts)], number)
    return value(words.index(binding))


def word(code: Value, words: tuple[str, ...]) -> Text:
    """The word of this number."""
    return Text((Word(code, words),))


def spelled_out(text: Text) -> Text:
    """The same, as a conditional string."""
    (part,) = text.parts
    words = list(map(str, part.words))
    found = words[-1]
    for k in range(len(words) - 2, -1, -1):
        found = Text((Choice(OPERATORS["equal"](part.code, value(k)), words[k], found),))
    return found


def conditional_text(test: Value, first, second):
    """`first` if `test` else `second`."""
    if test.constant is not MISSING:
        return first if test.constant else second
    return Text((Choice(test, first, second),))


def with_conditions(text, tests: Iterator[Value]):
    """A text of conditional strings, with its conditions replaced by these."""
    match text:
        case Text((Choice(_, first, second),)):
            return conditional_text(next(tests), with_conditions(first, tests),
                                    with_conditions(second, tests))
    return text
