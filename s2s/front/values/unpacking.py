"""Unpacking of a run-time number of members, `a, b = x`, with the ValueError that Python raises for
a wrong length.
"""

from __future__ import annotations

from ...ir.builder import emit
from ...ir.graph import MISSING, OPERATORS, Value
from ...ops.core.control import if_
from ...ops.core.record import value
from ...ops.program.effects import Either, Field, Joined, Made, Operand, Plain, raise_record
from ..domain.frame import Frame, Text
from .exceptions import guard, is_caught
from .strings import Piece


def require_length(frame: Frame, length: Value, count: int, or_more: bool = False) -> None:
    """Raise the ValueError of unpacking `length` members into `count` names, the starred one not
    counted.
    """
    length = value(length)
    many = f"too many values to unpack (expected {count})"
    few = f"not enough values to unpack (expected {'at least ' if or_more else ''}{count}, got "
    is_few = OPERATORS["less"](length, value(count))
    guard(frame, ValueError, lambda: is_few, Text((few, Piece(length), ")")))
    fewer = Joined((few, Field(Operand(0)), ")"))
    if or_more:
        _raise_if(frame, is_few, fewer, length)
        return
    is_many = OPERATORS["greater"](length, value(count))
    guard(frame, ValueError, lambda: is_many, many)
    _raise_if(frame, OPERATORS["not_equal"](length, value(count)),
              Either(Operand(1), Plain(many), fewer), length, is_many)


def _raise_if(frame: Frame, condition: Value, text, *operands: Value) -> None:
    if is_caught(frame, ValueError) or condition.constant is not MISSING and not condition.constant:
        return

    def fail() -> tuple:
        emit(raise_record, *operands, thrown=Made(ValueError, (text,)), cause=None)
        return ()

    if_(condition, fail, lambda: ())
