"""math.hypot with any number of coordinates, and math.dist.

Python computes them more accurately than the root of a sum of squares, and without overflow, so
they are an op of their own; with two coordinates math.hypot is the twin of np.hypot
(ops/core/elementwise.py). Numba supports neither; compiled, they are nested hypots: as safe from
overflow, and a few last bits away.
"""

from __future__ import annotations

import functools
import math

from ...errors import TypeMismatchError
from ...ir.builder import current
from ...ir.graph import Op, Value
from ...ir.types import FLOAT, Array, Type
from ..core import elementwise as ew
from ..core.cast import float_
from ..core.chain_rule import jvp_by_partial, vjp_by_partial
from ..core.define_elementwise import IN_MATH, math_syntax
from ..core.kinks import SIZE, Kink, kinked, size_zero
from ..core.record import define, numpy_function, value


def _infer(*xs: Value) -> Type:
    if any(isinstance(x.type, Array) for x in xs):
        raise TypeMismatchError("math.hypot of an array", current().line, "use np.linalg.norm")
    return FLOAT


def _lower(op: Op, *xs: Value) -> Value:
    return (functools.reduce(IN_MATH[ew.hypot], xs) if len(xs) > 1
            else float_(ew.absolute(xs[0])))


hypotenuse = define(
    "hypotenuse",  # (*coordinates)
    evaluate=math.hypot,
    infer=_infer,
    syntax=math_syntax("hypot"),
    partial=lambda y, x: ew.slope_of_size(y, x), vjp=vjp_by_partial, jvp=jvp_by_partial,
    batch=lambda flags, *xs: functools.reduce(ew.hypot, xs),
    lower=_lower,
    cheap=True,
    size=True,
)
kinked(hypotenuse, Kink(SIZE, size_zero))


@numpy_function(math.hypot)
def hypot(*coordinates: Value) -> Value:
    """The Euclidean length of a vector, given its coordinates."""
    return (IN_MATH[ew.hypot] if len(coordinates) == 2 else hypotenuse)(*map(value, coordinates))
