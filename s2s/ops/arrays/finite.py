"""np.asarray_chkfinite(x): the identity, with a ValueError for NaN or infinities, as in SciPy's
`check_finite`.

An op of its own, not a branch that raises: for all lanes of a batch it is one test, and for integer
matrices it is removed.
"""

from __future__ import annotations

import numpy as np

from ...ir.graph import Value
from ...ir.types import Unknown, is_inexact
from ..core.array_raise_conditions import is_not_finite_somewhere
from ..core.batch_rules import on_all_lanes
from ..core.raise_conditions import Raises
from ..core.record import define, dtype_of, numpy_function, rank, value
from ..core.shape import numpy_call
from .reduce import as_array

finite = define(
    "finite",
    evaluate=np.asarray_chkfinite,
    infer=lambda x: x.type,
    fold=lambda x: None if isinstance(x.type, Unknown) or rank(x) and is_inexact(dtype_of(x.type))
        else x,
    syntax=lambda x: numpy_call("asarray_chkfinite", x),
    differentiated_as=lambda y, x: x,
    batch=on_all_lanes,
    cheap=True,
    views=(0,),
    raises=(Raises(ValueError, is_not_finite_somewhere, (np.array([np.nan]),), natively=False),),
    moves=(0,),
)


@numpy_function(np.asarray_chkfinite)
def asarray_chkfinite(a) -> Value:
    """np.asarray_chkfinite."""
    return finite(as_array(value(a)))
