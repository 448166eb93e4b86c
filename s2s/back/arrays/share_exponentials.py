"""Share one exponential between a logistic loss and its derivative, instead of three.

    y = np.logaddexp(0.0, z)              e = np.exp(-np.abs(z - 0.0))
    p = np.exp(z - y)         becomes     y = np.maximum(z, 0.0) + np.log1p(e)
                                          p = np.where(z >= 0.0, 1.0, e) / (1 + e)

The second line is the derivative of the first (ops/core/elementwise.py). As written it has an
exponential of its own, and where z is large it has the rounding error of a difference of large
numbers; p, on the right, has neither.

Only for a finite number c in place of 0.0: of two infinities, z - c would be NaN. Considered: this
form of the derivative itself. Its source would then be three lines, or call SciPy, and a derivative
that needs y alone would have to compute e again.
"""

from __future__ import annotations

import math

from ...ir.graph import Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ops.core.elementwise import absolute, exp, greater_equal, log1p, maximum, where


def share_exponentials(function: Function) -> Function:
    """`function` with the pairs above rewritten."""
    chosen = {op.inputs[0].op.inputs[1].op for op in walk(function.block) if is_slope(op)}
    if not chosen:
        return function
    # for each logaddexp: where the derivative is above a half, and e
    found: dict[Op, tuple[Value, Value]] = {}

    def rule(op: Op, inputs: list[Value]):
        if op in chosen:
            z, c = inputs if is_finite(op.inputs[1]) else inputs[::-1]
            e = exp(-absolute(z - c))
            found[op] = greater_equal(z, c), e
            return [maximum(z, c) + log1p(e)]
        if is_slope(op):
            above, e = found[op.inputs[0].op.inputs[1].op]
            return [where(above, 1.0, e) / (1 + e)]
        return None

    return rebuild(function, rule=rule)


def is_finite(x: Value) -> bool:
    return isinstance(x.constant, (int, float)) and math.isfinite(x.constant)


def is_slope(op: Op) -> bool:
    """Whether `op` is exp(z - y) for y = logaddexp(c, z), all of double precision."""
    difference = op.inputs[0].op if op.name == "exp" else None
    if difference is None or difference.name != "subtract":
        return False
    z, y = difference.inputs
    return (y.op is not None and y.op.name == "logaddexp" and z in y.op.inputs
            and any(map(is_finite, y.op.inputs)) and not is_finite(z)
            and op.output.type == y.type == z.type and op.output.type.dtype == "float64")
