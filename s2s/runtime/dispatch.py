"""Is this call like the last one?  The question that every call of a transformed function asks first.

Most calls pass arguments of the same kinds as the call before.  `matcher(args)` is a function, written for
just these kinds, that says so for other arguments in a few attribute reads, with no dictionary and no tuple:

    def matches(a0, a1):
        return type(a0) is float and type(a1) is ndarray and a1.dtype is float64 and a1.ndim == 2 and 1 not in a1.shape

Which extents are 1 is part of the kind (ir/types.py, Note [Which extents are 1]); other lengths are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from ..ir.forms import form_of, is_container, is_fixed

MOST_CONDITIONS = 20_000  # of an expression that Python compiles quickly
PLAIN = (float, int, bool, complex)


def matcher(args: Sequence, agreed: Sequence[str] = ()) -> Callable[..., bool] | None:
    """Whether other arguments are of the same kinds as `args`; None for kinds that take a longer look.

    `agreed` are more conditions on `a0`, `a1`, ..., which hold of calls that are in order.
    """
    names: dict[str, object] = {"ndarray": np.ndarray}
    conditions = []
    for k, x in enumerate(args):
        if not _describe(x, f"a{k}", conditions, names):
            return None
    if len(conditions) > MOST_CONDITIONS:
        return None
    conditions += [f"({text})" for text in agreed]
    parameters = ", ".join(f"a{k}" for k in range(len(args)))
    return eval(f"lambda {parameters}: {' and '.join(conditions) or 'True'}", names)


def _describe(x, place: str, conditions: list[str], names: dict[str, object]) -> bool:
    """Add what must hold of the value that stands at `place`; False for kinds that take a longer look."""

    def named(content) -> str:
        names[f"c{len(names)}"] = content
        return f"c{len(names) - 1}"

    kind = type(x)
    if kind in PLAIN:
        conditions.append(f"type({place}) is {kind.__name__}")
    elif kind is np.ndarray and x.ndim and x.dtype.kind in "biufc":
        conditions.append(f"type({place}) is ndarray and {place}.dtype is {named(x.dtype)} and {place}.ndim == {x.ndim}")
        ones = [n == 1 for n in x.shape]
        if any(ones):
            conditions += [f"{place}.shape[{axis}] {'==' if one else '!='} 1" for axis, one in enumerate(ones)]
        else:
            conditions.append(f"1 not in {place}.shape")
    elif isinstance(x, np.generic) and x.dtype.kind in "biufc":
        conditions.append(f"type({place}) is {named(kind)}")
    elif kind is np.random.Generator:
        conditions.append(f"type({place}) is {named(kind)}")
    elif x is None:
        conditions.append(f"{place} is None")
    elif kind is str:
        conditions.append(f"type({place}) is str and {place} == {named(x)}")
    elif is_container(x):
        form = form_of(x)
        conditions.append(f"type({place}) is {named(kind)}")
        if form is None or form.kind == "list":
            conditions.append(f"len({place}) == {len(x)}")
            return all(_describe(member, f"{place}[{k}]", conditions, names) for k, member in enumerate(x))
        if form.kind == "dict":
            conditions.append(f"[*{place}] == {named(list(x))}")
            return kind is not defaultdict and all(
                _describe(member, f"{place}[{named(key)}]", conditions, names) for key, member in x.items())
        if form.kind == "attributes":
            if any(is_fixed(x, name) for name in form.keys) or not all(map(str.isidentifier, form.keys)):
                return False
            if hasattr(x, "__dict__"):
                conditions.append(f"{place}.__dict__.keys() == {named(x.__dict__.keys() | set())}")
        return all(_describe(getattr(x, name), f"{place}.{name}", conditions, names) for name in form.keys)
    else:
        return False
    return True
