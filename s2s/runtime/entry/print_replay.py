"""How much a run has printed, so that running it again prints only the rest.

Where compiled code raises, the interpreted form runs on the same arguments (runtime/call/native_function.py, Note [Where an error
came from]); what compiled code has printed by then is not printed twice.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lines = threading.local()


def printed() -> int:
    """How often compiled code has printed in this thread."""
    return getattr(_lines, "count", 0)


def counted(*args, **keywords) -> None:
    """`print`, as compiled code calls it."""
    _lines.count = printed() + 1
    builtins.print(*args, **keywords)


@contextmanager
def without(count: int) -> Iterator[None]:
    """Inside this, `rest` leaves out its first `count` calls in this thread."""
    before, _lines.left = left(), count
    try:
        yield
    finally:
        _lines.left = before


def left() -> int:
    """How many calls `rest` is yet to leave out in this thread."""
    return getattr(_lines, "left", 0)


def rest(*args, **keywords) -> None:
    """`print`, as the interpreted form calls it that runs after compiled code."""
    if left():
        _lines.left -= 1
    else:
        builtins.print(*args, **keywords)
