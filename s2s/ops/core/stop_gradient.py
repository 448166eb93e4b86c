"""`stop_gradient`: the identity, with derivative 0."""

from __future__ import annotations

from ...ir.graph import Value
from ...ir.types import Tuple
from .batch_rules import on_all_lanes
from .control import item, packed
from .record import define, no_jvp, no_vjp, numpy_function

barrier = define(
    "stop_gradient",
    evaluate=lambda x: x,
    infer=lambda x: x.type,
    fold=lambda x: x if x.op is not None and x.op.record is barrier else None,
    partials=(None,),
    vjp=no_vjp,
    jvp=no_jvp,
    syntax=lambda x: x,
    cheap=True,
    views=(0,),
    moves=(0,), batch=on_all_lanes, native="compiled", same_shape=0, same_elements=True,
)


def stop_gradient(x):
    """Return `x`, treated as a constant by derivatives."""
    return x


@numpy_function(stop_gradient, view="maybe")
def stopped(x: Value) -> Value:
    """`x` as a Value without a derivative: tuples member by member."""
    if isinstance(x.type, Tuple):
        return packed([stopped(item(x, index=k)) for k in range(len(x.type.items))], x.type.form)
    return barrier(x)


aside = define(
    # what is returned beside a number that is differentiated: constant for that derivative, and for
    # no other
    "aside",
    evaluate=lambda x: x,
    infer=lambda x: x.type,
    partials=(None,),
    vjp=no_vjp,
    jvp=no_jvp,
    syntax=lambda x: x,
    cheap=True,
    views=(0,),
    moves=(0,),
)


def put_aside(x: Value) -> Value:
    """`x` as a Value without a derivative until `taken_back`: tuples member by member."""
    if isinstance(x.type, Tuple):
        return packed([put_aside(item(x, index=k)) for k in range(len(x.type.items))], x.type.form)
    return aside(x)


def taken_back(x: Value) -> Value:
    """The value that was put aside, or `x` itself."""
    return x.op.inputs[0] if x.op is not None and x.op.record is aside else x
