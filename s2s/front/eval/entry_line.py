"""Where a function begins: the place of what is wrong with its arguments, rather than with one of
its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...errors import Line, S2SError
from ..syntax.find_source import definition_of
from .unwrap_callable import target_of


def beginning(function: Callable) -> Line | None:
    """The line with the `def` of a function, None where its source is not found."""
    try:
        return definition_of(target_of(function).function).source.begins
    except S2SError:
        return None


@contextmanager
def placed(function: Callable) -> Iterator[None]:
    """Errors raised inside that name no line of the program name the one where `function` begins.
    """
    try:
        yield
    except S2SError as error:
        if error.line is None:
            error.line = beginning(function)
        raise
