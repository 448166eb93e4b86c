"""Python's sum() of floats that are listed one by one in the program.

From Python 3.12 on it is compensated (Neumaier 1974, in Python/bltinmodule.c): for three or more
Python floats it is more accurate than a + b + c. There it is an op of its own that prints as sum();
before 3.12, and for NumPy's numbers, it is a chain of + (front/eval/sequence_calls.py). Compiled,
it is a chain everywhere, like the sum() of a list: a few last bits away.
"""

from __future__ import annotations

import ast
import functools
import operator
import sys

from ...ir.graph import Value
from ...ir.types import FLOAT, Scalar
from ..core.cast import float_
from ..core.chain_rule import jvp_by_partial, vjp_by_partial
from ..core.record import define


def plain_sum(*terms: Value) -> Value:
    """The sum of the terms from left to right."""
    return functools.reduce(operator.add, terms)


compensated_sum = define(
    "compensated_sum",  # (*terms)
    evaluate=lambda *terms: sum(terms),
    infer=lambda *terms: FLOAT,
    syntax=lambda *terms: ast.Call(
        ast.Name("sum", ast.Load()), [ast.Tuple(list(terms), ast.Load())], []),
    partial=lambda y, x: 1, vjp=vjp_by_partial, jvp=jvp_by_partial,
    batch=lambda flags, *terms: plain_sum(*terms),
    lower=lambda op, *terms: float_(plain_sum(*terms)),
    cheap=True,
)


def is_compensated(terms: list) -> bool:
    """Whether Python's sum() of these differs from a chain of +."""
    types = [getattr(x, "type", None) for x in terms]
    return (sys.version_info >= (3, 12) and len(terms) > 2 and FLOAT in types
            and all(isinstance(t, Scalar) and t.weak and t.dtype in ("float64", "int64", "bool")
                    for t in types))
