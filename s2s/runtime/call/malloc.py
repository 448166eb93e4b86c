"""Tell the allocator to keep freed memory up to a limit, so that the next call need not fetch it
from the system page by page.

A gradient makes arrays at each call and frees them at its end.  glibc gives large ones back to the
system at once, and the next call waits while the system clears each page again: in the gradient of
a convolutional network, 20 ms of 39.  Reusing the arrays of the call before was considered, and is
what `out=` does for results; of what lives within a call s2s would have to keep its own heap, with
the same questions of when to let go that the allocator has answered already.  So the allocator is
told to be patient.  Elsewhere than with glibc, and where the user has set the limits, nothing is
done.

What is asked of the system anew at each call is the price of one page after another, more than that
of all arithmetic on what is in them: a tape of 56 MB took half of a gradient's time.  So arrays are
kept up to half of what may lie free.  Huge pages (`madvise`) were considered: they are cleared as
well, and not every system has them.
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt's names of the limits
# bytes from which arrays are mmapped; before 2.35, glibc allows at most the second
ARRAYS = (128 << 20, 32 << 20)
KEPT = 256 << 20  # free bytes allowed at the end of the heap
SET_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory; return whether it accepted."""
    if any(name in os.environ for name in SET_BY_USER):
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  other C libraries have no such function
        return (any(library.mallopt(MMAP_THRESHOLD, size) for size in ARRAYS)
                and bool(library.mallopt(TRIM_THRESHOLD, KEPT)))
    except (OSError, AttributeError, TypeError):
        return False
