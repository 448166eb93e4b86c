"""Unwrap an optional value (front/domain/optional.py) where a value is required."""

from __future__ import annotations

import gast

from ...ir.builder import emit
from ...ops.core.control import if_
from ...ops.core.record import RECORDS
from ...ops.program.effects import Made, Plain, raise_record
from ..domain.frame import Frame
from ..domain.optional import Maybe, assume, resolve_optional
from .exceptions import guard, is_caught


def demand(frame: Frame, binding, node: gast.AST | None = None, what: str = "this"):
    """The value of a Maybe; raises a TypeError if it is None at run time."""
    binding = resolve_optional(frame.session.assumed, binding)
    if not isinstance(binding, Maybe):
        return binding
    text = f"{node.id if isinstance(node, gast.Name) else what} is None"
    flag = binding.is_set

    def fail() -> tuple:
        emit(raise_record, thrown=Made(TypeError, (Plain(text),)), cause=None)
        return ()

    guard(frame, TypeError, lambda: RECORDS["not_"](flag), text)
    if not is_caught(frame, TypeError):
        if_(flag, lambda: (), fail)
    assume(frame.session.assumed, flag, True)
    return binding.content
