"""Lower strong products to np.where, once no more derivatives are taken.  Note [Strong zeros],
ops/core/chain_rule.py

    z_bar = strong_product(d_bar, 0.5 / d)
becomes
    z_bar = np.where(d_bar != 0.0, 0.5 * d_bar / d, 0.0)
"""

from __future__ import annotations

from ...ir.builder import at, current
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.types import Scalar
from ...ops.core.chain_rule import times
from ...ops.core.elementwise import (
    and_,
    bitwise_and,
    not_equal,
    strong_both,
    strong_product,
    where,
)
from ...ops.core.record import deriving, dtype_of

STRONG = (strong_product, strong_both)


def lower_strong_products(function: Function) -> Function:
    """Replace strong products by products selected where their first factor, or neither factor, is
    0.
    """
    if not any(op.record in STRONG for op in walk(function.block)):
        return function
    # block -> value -> the mask of where the value is not 0
    asked: dict[tuple[Block, Value], Value] = {}
    # result of a np.where emitted here -> its mask, and its value there
    spelled: dict[Value, tuple[Value, Value]] = {}

    def counts(x: Value) -> Value:
        place = current().block, x
        if place not in asked:
            # a mask that the program multiplies by
            asked[place] = x if dtype_of(x.type) == "bool" else not_equal(x, 0.0)
        return asked[place]

    def rule(op: Op, inputs: list[Value]):
        if op.record not in STRONG:
            return None
        a, b = inputs
        condition, a = spelled[a] if a in spelled else (counts(a), a)
        if op.record is strong_both:
            both = and_ if all(isinstance(x.type, Scalar) for x in inputs) else bitwise_and
            condition = both(condition, counts(b))
        line = op.line
        with at(line.of_slope() if line is not None
                else None), deriving(op.record, op.output):
            # a mask that is a condition has been multiplied by: b is one of `strong_both` alone
            product = (b if dtype_of(a.type) == "bool"
                       else a if dtype_of(b.type) == "bool" and op.name == "strong_both"
                       else times(a, b, (a,)))
            chosen = where(condition, product, 0.0)
        spelled[chosen] = condition, product
        return chosen

    return rebuild(function, rule=rule)
