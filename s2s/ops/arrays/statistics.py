"""np.logspace, geomspace, vander, cov, corrcoef, composed in NumPy's own steps."""

from __future__ import annotations

import numpy as np

from ...errors import UnsupportedError
from ...ir.builder import current
from ...ir.graph import Value
from ..core.cast import as_dtype
from ..core.define_elementwise import is_none
from ..core.elementwise import clip, power, sign, sqrt
from ..core.record import FUNCTIONS, dims_of, dtype_of, numpy_function, rank, static, value
from ..core.shape import length
from .axes import expand_dims, flip
from .create import ones
from .index import put
from .products import matrix_transposed
from .reduce import as_array
from .reshape import reshape
from .selection import diagonal


def _refuse(what: str, remedy: str) -> UnsupportedError:
    return UnsupportedError(what, current().line, remedy)


@numpy_function(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0) -> Value:
    """np.logspace between two numbers."""
    return power(base, FUNCTIONS[np.linspace](start, stop, num, endpoint))


@numpy_function(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True) -> Value:
    """np.geomspace between two real numbers of one sign, at least two of them."""
    start, stop, count = (value(start), value(stop),
                          static(num, "how many numbers np.geomspace makes"))
    if rank(start) != 0 or rank(stop) != 0 or count < 2:
        raise _refuse("np.geomspace of less than two numbers, or between arrays", "write a loop")
    # as NumPy does
    start, stop = (as_dtype(x, "float64") if dtype_of(x.type) in ("float16", "float32") else x
                   for x in (start, stop))
    side, log10 = sign(start), FUNCTIONS[np.log10]
    start, stop = start / side, stop / side
    found = logspace(log10(start), log10(stop), num, endpoint)
    found = put(found, 0, start)
    return (put(found, -1, stop) if static(endpoint) else found) * side


@numpy_function(np.vander)
def vander(x, N=None, increasing=False) -> Value:  # noqa: N803  NumPy's own name
    """np.vander with a static number of columns."""
    x, count = as_array(x), dims_of(as_array(x).type)[0] if static(N) is None else static(N)
    if not isinstance(count, int) or count < 1:
        raise _refuse("np.vander with a number of columns that depends on run-time data",
                      "pass N, a number")
    columns = [ones(length(x, axis=0), dtype=value(np.dtype(x.type.dtype)))]
    for k in range(1, count):
        columns.append(x if k == 1 else columns[-1] * x)
    found = FUNCTIONS[np.stack](tuple(columns), axis=1)
    return found if static(increasing) else flip(found, 1)


@numpy_function(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None) -> Value:
    """np.cov of real samples with equal weights."""
    parts = [as_array(x) for x in (m, y) if not is_none(x)]
    if any(rank(x) not in (1, 2) or (x.type.dtype or "").startswith("complex") for x in parts):
        raise _refuse("np.cov of something else than real vectors or matrices",
                      "call the function once, or annotate the parameter")
    parts = [as_dtype(x, "float64") for x in parts]
    parts = [expand_dims(x, 0) if rank(x) == 1 else x if static(rowvar) else matrix_transposed(x)
             for x in parts]
    m = parts[0] if len(parts) == 1 else FUNCTIONS[np.concatenate](tuple(parts))
    less = (0 if static(bias) else 1) if is_none(ddof) else value(ddof)
    m = m - expand_dims(FUNCTIONS[np.mean](m, axis=1), 1)
    found = (FUNCTIONS[np.dot](m, matrix_transposed(m))
             * FUNCTIONS[np.divide](1, FUNCTIONS[np.maximum](length(m, axis=1) - less, 0)))
    return reshape(found) if dims_of(m.type)[0] == 1 else found


@numpy_function(np.corrcoef)
def corrcoef(x, y=None, rowvar=True) -> Value:
    """np.corrcoef of real samples."""
    found = cov(x, y, rowvar)
    if rank(found) == 0:
        return found / found
    spread = sqrt(diagonal(found))
    return clip(found / expand_dims(spread, 1) / expand_dims(spread, 0), -1, 1)
