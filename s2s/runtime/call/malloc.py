"""`keep_freed_memory`: tell the allocator to keep freed memory up to a limit, so that the next call
need not fetch it from the system page by page.

It changes the allocator of the whole process, so s2s never calls it by itself.

A gradient allocates arrays in each call and frees them at its end. glibc returns large ones to the
system at once, and the next call waits while the system clears each page again: in the gradient of
a convolutional network, 20 ms of 39. Considered: reusing the arrays of the previous call, which
`out=` does for results; for temporaries s2s would need its own heap, and the same policy for
shrinking it that the allocator has already. So glibc's thresholds are raised where the program asks
for it.

Memory that is fetched anew in each call costs one page fault after another, more than all
arithmetic on it: a tape of 56 MB took half of a gradient's time. So arrays of up to half of the
free-memory limit are kept. Huge pages (`madvise`) were considered: they are cleared as well, and
not every system has them.
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
    """Let this process keep up to 256 MB of freed memory for later arrays, which makes calls with
    large temporaries faster; return whether the allocator accepted.

    It is glibc's `mallopt`, and lasts as long as the process.  Nothing is changed with other
    allocators, and where the environment sets glibc's limits.
    """
    if any(name in os.environ for name in SET_BY_USER):
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  other C libraries have no such function
        return (any(library.mallopt(MMAP_THRESHOLD, size) for size in ARRAYS)
                and bool(library.mallopt(TRIM_THRESHOLD, KEPT)))
    except (OSError, AttributeError, TypeError):
        return False
