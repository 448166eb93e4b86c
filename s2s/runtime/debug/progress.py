"""Tell a user at a terminal or in a notebook that code is being compiled."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds until the user is told
# this thread's last task: name, seconds, end time
_spent = threading.local()


def is_watched() -> bool:
    """Whether stderr is a terminal or a notebook, and S2S_PROGRESS is not 0."""
    if os.environ.get("S2S_PROGRESS", "1") in ("", "0"):
        return False
    try:
        return type(sys.stderr).__module__.startswith("ipykernel") or sys.stderr.isatty()
    except (AttributeError, ValueError):  # stderr is missing or closed
        return False


@contextmanager
def telling(name: str) -> Iterator[None]:
    """Context manager: show a line on stderr while its body takes more than a second, then erase
    it.

    Time that the same thread spent on the same `name` just before counts, too: generating, then
    compiling.
    """
    if not is_watched():
        yield
        return
    stream, done = sys.stderr, threading.Event()
    last, seconds, ended = getattr(_spent, "last", ("", 0.0, 0.0))
    now = time.monotonic()
    before = seconds if last == name and now - ended < 0.1 else 0.0
    teller = threading.Thread(target=_tell,
                              args=(stream, f"s2s: compiling {name}", done, now - before),
                              daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        ended = time.monotonic()
        _spent.last = name, before + ended - now, ended


def _tell(stream, text: str, done: threading.Event, began: float) -> None:
    """Write `text` and the seconds since `began` to `stream`, over and over, until `done`."""
    shown = ""
    wait = max(began + PATIENCE - time.monotonic(), 0.0)
    while not done.wait(wait):
        shown = f"{text} ({time.monotonic() - began:.0f} s)"
        if not _wrote(stream, f"\r{shown}"):
            return
        wait = 1.0
    if shown:
        _wrote(stream, f"\r{' ' * len(shown)}\r")


def _wrote(stream, text: str) -> bool:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):  # the stream is closed
        return False
    return True
