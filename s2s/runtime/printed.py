"""How much a run has printed, so that running it again prints only the rest.

Where compiled code raises, the interpreted form runs on the same arguments (compile.py, Note [Where an error
came from]); what compiled code has printed by then is not printed twice.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable

_lines = threading.local()


def printed() -> int:
    """How often compiled code has printed in this thread."""
    return getattr(_lines, "count", 0)


def counted(*args, **keywords) -> None:
    """`print`, as compiled code calls it."""
    _lines.count = printed() + 1
    builtins.print(*args, **keywords)


def after(count: int) -> Callable:
    """`print` without its first `count` calls."""
    left = [count]

    def rest(*args, **keywords) -> None:
        if left[0]:
            left[0] -= 1
        else:
            builtins.print(*args, **keywords)

    return rest
