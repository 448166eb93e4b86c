"""The line of a function's `def`, at which errors about its arguments are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...errors import Line, S2SError
from ..syntax.find_source import definition_of
from .unwrap_callable import target_of


def definition_line(function: Callable) -> Line | None:
    """The line of the `def` of a function; None if its source is not found."""
    try:
        return definition_of(target_of(function).function).source.begins
    except S2SError:
        return None


@contextmanager
def at_definition_line(function: Callable) -> Iterator[None]:
    """A context in which errors without a line of the program get the line of the `def` of
    `function`.
    """
    try:
        yield
    except S2SError as error:
        if error.line is None:
            error.line = definition_line(function)
        raise
