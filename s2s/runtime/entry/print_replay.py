"""Count the prints of a failed run, so that rerunning it prints only the rest; and carry out what
a run has noted to be written outside, or forget it.

Where compiled code raises, the interpreted form runs on the same arguments
(runtime/call/native_function.py, Note [Where an error came from]); what compiled code has printed
by then is not printed twice.  What it would write into captured objects waits until it has ended
(ops/program/outside_writes.py).
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...ops.program.outside_writes import carry_out, drop, noted

_lines = threading.local()


def printed() -> int:
    """The number of prints by compiled code in this thread."""
    return getattr(_lines, "count", 0)


def counted(*args, **keywords) -> None:
    """`print`, as called by compiled code."""
    _lines.count = printed() + 1
    builtins.print(*args, **keywords)


def begun() -> tuple[int, int]:
    """The output and the notes of this thread before a run of compiled code."""
    return printed(), noted()


def carried_out(before: tuple[int, int]) -> None:
    """Write what compiled code has noted since `before`."""
    carry_out(before[1])


def given_up(before: tuple[int, int] | None) -> int:
    """Forget what compiled code has noted since `before`, as the interpreted form runs instead;
    return how many lines it has printed.
    """
    if before is None:
        return 0
    drop(before[1])
    return printed() - before[0]


@contextmanager
def without(count: int) -> Iterator[None]:
    """Context manager: `rest` skips its first `count` calls in this thread."""
    before, _lines.left = left(), count
    try:
        yield
    finally:
        _lines.left = before


def left() -> int:
    """The number of calls that `rest` has yet to skip in this thread."""
    return getattr(_lines, "left", 0)


def rest(*args, **keywords) -> None:
    """`print`, as called by the interpreted form that reruns after compiled code."""
    if left():
        _lines.left -= 1
    else:
        builtins.print(*args, **keywords)
