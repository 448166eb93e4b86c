"""The filters of warnings that the program has set at a place, and which warnings these ignore.

They hold for what warns of itself, `warnings.warn` and conversions of complex numbers to real ones;
those about floating-point numbers are ignored function by function: values/context_managers.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ...ir.graph import Function, walk
from ...ops.core.record import dtype_of

ComplexWarning = getattr(np, "exceptions", np).ComplexWarning
CAST = "Casting complex values to real discards the imaginary part"
FLOATING_POINT = {"divide": "divide by zero encountered", "over": "overflow encountered",
                  "under": "underflow encountered", "invalid": "invalid value encountered"}


@dataclass(frozen=True)
class Filter:
    """What is done with warnings of a class whose text begins as `message` says."""

    action: str
    category: type = Warning
    message: str = ""

    def applies(self, category: type, text: str | None) -> bool:
        """Whether it is about a warning; `text` is None if only a run knows it."""
        return issubclass(category, self.category) and (
            not self.message or text is not None and re.match(self.message, text, re.I) is not None)


def is_ignored(filters: tuple[Filter, ...], category: type, text: str | None = CAST) -> bool:
    """Whether the first of the filters that is about a warning ignores it."""
    return next((each.action == "ignore" for each in filters if each.applies(category, text)),
                False)


def silenced_kinds(filter: Filter) -> list[str]:
    """The kinds of floating-point errors about which a filter lets nobody know."""
    return [kind for kind, text in FLOATING_POINT.items() if filter.action == "ignore"
            and (filter.applies(RuntimeWarning, text)
                 or issubclass(RuntimeWarning, filter.category)
                 and filter.message.startswith(text))]


def warns_of(function: Function, filters: tuple[Filter, ...],
             seen: frozenset = frozenset()) -> bool:
    """Whether a function gives a warning of itself, or one that it calls does, which these filters
    are there to ignore.
    """
    for op in walk(function.block):
        callee = op.attrs.get("callee")
        if callee is not None:
            if callee not in seen and warns_of(callee.function_for(op.inputs), filters,
                                               seen | {callee}):
                return True
        elif op.attrs.get("function") == "warnings.warn" or (
                op.record.converts and is_ignored(filters, ComplexWarning)
                and str(dtype_of(op.inputs[0].type)).startswith("complex")):
            return any(each.action == "ignore" for each in filters)
    return False
