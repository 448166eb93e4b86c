"""Arguments that NumPy's functions refuse with a ValueError: indices out of bounds, quantiles
beyond 1.

Ops of their own, `(x, is_inside)`: x, if the second holds everywhere. For all lanes of a batch that
is one test, and a loop needs no branch that raises.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np

from ...ir.graph import MISSING, Value
from ...ir.types import Array
from ...library.numpy_functions import index_within, within_axes, within_bounds
from ..core.define_elementwise import builtin_syntax
from ..core.elementwise import bitwise_and, less, less_equal
from ..core.raise_conditions import Raises
from ..core.record import FUNCTIONS, RECORDS, Record, define, dims_of, numpy_function, value
from ..core.shape import members, shape_giver


def within_one(q, is_inside):
    if not np.all(is_inside):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return q


def within_hundred(q, is_inside):
    if not np.all(is_inside):
        raise ValueError("Percentiles must be in the range [0, 100]")
    return q


def _is_violated(x, is_inside):
    """The condition under which a check raises."""
    return RECORDS["not_"](RECORDS["all"](is_inside, axis=None, keepdims=False)
                           if isinstance(is_inside.type, Array) else is_inside)


def _check(check: Callable) -> Record:
    record = define(
        check.__name__,
        evaluate=check,
        infer=lambda x, is_inside: x.type,
        fold=lambda x, is_inside: x if is_inside.constant is not MISSING
            and np.all(is_inside.constant) else None,
        helper=check,
        syntax=builtin_syntax(check.__name__),
        differentiated_as=lambda y, x, is_inside: x,
        batch=lambda flags, x, is_inside: record(x, is_inside) if flags[0] else None,
        cheap=True,
        views=(0,),
        moves=(0,),
        raises=(Raises(ValueError, _is_violated, (0, False), natively=False),),
    )
    return record


CHECKS = {check: _check(check)
          for check in (within_bounds, within_axes, within_one, within_hundred)}
FUNCTIONS.update(CHECKS)  # for calls of a check by its name


@numpy_function(index_within)
def _index_within(k: Value, dims: Value) -> Value:
    """k, an index of the flattened array of these lengths."""
    lengths = members(value(dims)) or []
    if _is_found_in(k, lengths):
        return k
    size = functools.reduce(operator.mul, lengths, 1)
    return CHECKS[within_bounds](k, bitwise_and(less_equal(0, k), less(k, size)))


def _is_found_in(k: Value, lengths: list[Value]) -> bool:
    """Whether a search has found this index in an array of these lengths."""
    op = k.op
    if op is None or not op.record.finds or op.attrs["axis"] is not None:
        return False
    x, giver = op.inputs[0], shape_giver(tuple(lengths))
    return giver is x or dims_of(x.type) == tuple(
        dims_of(giver.type) if giver is not None else [n.constant for n in lengths])
