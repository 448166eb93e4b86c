"""Value numbering: keys that are equal for ops that compute the same."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..ir.graph import Op, Value
from ..ops.program.effects import has_effects


def key_of(op: Op, same: Mapping[Value, Value] = MappingProxyType({})) -> tuple | None:
    """Return a key that is equal for ops that compute the same; None for ops that are not to be
    shared.
    """
    if op.blocks or has_effects(op) or op.record.writes is not None:
        return None
    inputs = [id(same.get(x, x)) for x in op.inputs]
    if op.record.commutes:
        inputs.sort()
    try:
        key = (op.record.name, tuple(inputs),
               tuple((k, frozen(op.attrs[k])) for k in sorted(op.attrs)))
        hash(key)
    except TypeError:
        return None
    return key


def frozen(x) -> object:
    """Return a hashable form of `x` in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    match x:
        case tuple():
            return tuple(map(frozen, x))
        case bool() | int() | float() | complex():
            return type(x), repr(x)
    return type(x), x
