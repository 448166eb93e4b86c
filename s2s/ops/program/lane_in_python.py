"""The lane that a thread of Python runs, whose collectives are called in Python.

A function that is run as it is, lane by lane (runtime/workers/lanes_in_python.py), calls
`s2s.lax.psum` itself, and not code that s2s has made of it; then the lane of this thread answers.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable

from ...errors import UnboundAxisError

here = threading.local()  # `lane`: what answers in this thread


# what collectives are over no axis
NO_NAMES = {**dict.fromkeys(("psum", "pmean", "pmax", "pmin"), lambda x: x),
            "axis_size": lambda: 1, "axis_index": lambda: 0}


def called(collective: str, axis_name, *args):
    """Return what `collective` is for the lane of this thread; UnboundAxisError if it has none, or
    no axis of that name.
    """
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    if names == () and collective in NO_NAMES:
        return NO_NAMES[collective](*args)
    lane = getattr(here, "lane", None)
    if lane is None or names != (lane.axis_name,):
        raise unbound(axis_name)
    return getattr(lane, collective)(*args)


def unbound(name: Hashable) -> UnboundAxisError:
    return UnboundAxisError(f"unbound axis name {name!r}", None,
                            f"call the function under s2s.vmap(..., axis_name={name!r})")
