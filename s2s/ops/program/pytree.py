"""Pytrees of Values: flatten containers to leaves, and rebuild them."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.graph import Value
from ...ir.types import Tuple, Type
from ..core.control import item, packed


def parameter_tree(type, name: str, params: list[Value]):
    """A tree of new parameters, one per leaf of `type`, appended to `params`."""
    if isinstance(type, Tuple):
        return packed([parameter_tree(t, member_name(name, type, k), params)
                       for k, t in enumerate(type.items)], type.form)
    params.append(Value(type, name))
    return params[-1]


def result_tree(type, rest: Iterator[Value]):
    """A tree with the structure of `type` from the next values of `rest`."""
    if not isinstance(type, Tuple):
        return next(rest)
    return packed([result_tree(t, rest) for t in type.items], type.form)


def member_name(name: str, type: Tuple, k: int) -> str:
    """The name of member `k` of a tuple or dict called `name`."""
    key = k if type.form is None else type.form.keys[k]
    return f"{name}_{key}" if f"{name}_{key}".isidentifier() else f"{name}_{k}"


def leaf_types(type: Type) -> list[Type]:
    """The types of the leaves of a tuple, in order."""
    return ([t for inner in type.items for t in leaf_types(inner)] if isinstance(type, Tuple)
            else [type])


def leaves_of(x: Value) -> list[Value]:
    """The leaves of a tuple, in order; a value that is no tuple is its own leaf."""
    if not isinstance(x.type, Tuple):
        return [x]
    found = []
    for k in range(len(x.type.items)):
        member = item(x, index=k)
        if x.name:
            member.name = member.name or member_name(x.name, x.type, k)
        found += leaves_of(member)
    return found
