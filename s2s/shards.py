"""Arrays split over workers: `shard` makes lanes of parts of an array, `gather` the array of lanes.

s2s reads these as it reads the user's own functions: in generated code stands what they do.
"""

from __future__ import annotations

import numpy as np


def shard(x, workers: int, axis: int = 0):
    """Return the parts of `x`, as many as there are workers, along a new first axis: the lanes of a
    `pmap`.

    `x` of shape (..., n, ...), with n along `axis`, is cut in parts of n // workers, and the result
    has the shape (workers, ..., n // workers, ...).  Along axis 0 it is a view; along others each
    part is copied, so that it lies together in memory.

    Raises ValueError if n is no multiple of `workers`.

        parts = s2s.shard(A, 2)                        # blocks of rows
        product = s2s.gather(s2s.pmap(lambda rows, B: rows @ B, in_axes=(0, None))(parts, B))
    """
    n = np.shape(x)[axis]
    if n % workers != 0:
        raise ValueError(f"{n} rows are split over {workers} workers: as many for each are needed")
    front = np.moveaxis(x, axis, 0)
    parts = np.reshape(front, (workers, n // workers) + front.shape[1:])
    return np.ascontiguousarray(np.moveaxis(parts, 1, axis % np.ndim(x) + 1))


def gather(x, axis: int = 0):
    """Return the array whose parts along `axis` the lanes of `x` are: `gather(shard(x, n, axis),
    axis)` is `x`.

    `x` of shape (workers, ..., m, ...), with m along `axis` of each lane, becomes an array of shape
    (..., workers * m, ...).
    """
    parts = np.moveaxis(x, axis % (np.ndim(x) - 1) + 1, 1)
    front = np.reshape(parts, (parts.shape[0] * parts.shape[1],) + parts.shape[2:])
    return np.moveaxis(front, 0, axis % (np.ndim(x) - 1))
