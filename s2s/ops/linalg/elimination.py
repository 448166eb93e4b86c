"""Linear systems as ops of arrays, for what has no LAPACK: StableHLO."""

from __future__ import annotations

from ...ir.graph import Value
from ..arrays.axes import expand_dims
from ..arrays.concatenate import concatenate_record
from ..arrays.create import arange
from ..arrays.index import put, take
from ..arrays.products import product_dtype
from ..arrays.reduce import argmax
from ..core.cast import as_dtype
from ..core.control import for_loop
from ..core.elementwise import absolute, equal, where
from ..core.record import rank
from ..core.shape import length


def by_elimination(a: Value, b: Value) -> Value | None:
    """Emit the solution of one system by Gauss-Jordan elimination with partial pivoting; None for
    stacks of systems.  A singular matrix gives infinities or NaN.
    """
    if rank(a) != 2 or rank(b) not in (1, 2):
        return None
    n = length(a, axis=0)
    rows = arange(n)

    def trip(k: Value, both: Value) -> list[Value]:
        column = take(both, (slice(None), k))
        pivot = argmax(where(rows >= k, absolute(column), -1.0))
        upper, lower = take(both, k), take(both, pivot)
        both = put(put(both, pivot, upper), k, lower / take(lower, k))
        others = where(equal(rows, k), 0.0, take(both, (slice(None), k)))
        return [both - expand_dims(others, 1) * take(both, k)]

    columns = b if rank(b) == 2 else expand_dims(b, 1)
    both = as_dtype(concatenate_record(a, columns, axis=1), product_dtype(a, b))
    (both,) = for_loop(0, n, 1, [both], trip)
    found = take(both, (slice(None), slice(n, None)))
    return found if rank(b) == 2 else take(found, (slice(None), 0))
