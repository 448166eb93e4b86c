"""Unwrap an optional value (front/domain/optional.py) where a value is required."""

from __future__ import annotations

import gast

from ..domain.frame import Frame
from ..domain.optional import Maybe, assume, resolve_optional
from .exceptions import raise_unless


def demand(frame: Frame, binding, node: gast.AST | None = None, what: str = "this"):
    """The value of a Maybe; raises a TypeError if it is None at run time."""
    binding = resolve_optional(frame.session.assumed, binding)
    if not isinstance(binding, Maybe):
        return binding
    raise_unless(frame, binding.is_set, TypeError,
                 f"{node.id if isinstance(node, gast.Name) else what} is None")
    assume(frame.session.assumed, binding.is_set, True)
    return binding.content
