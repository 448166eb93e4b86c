"""Replace containers by plain tuples, for native code, which has no classes.

    xs.append(Wave(height=h, phase=p))    becomes    xs.append((h, p))
    xs[i].phase                                      xs[i][1]

Where a container's members are all known it has vanished long before; what is left are the items of
lists that grow at run time.  Two other designs were weighed: to give Numba the classes (namedtuples
it knows, dataclasses not, and dicts only of one type of member), and to hold one list for each
member (an item is then no value, and every op on lists would have to know it).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

from ...ir.graph import Function, Value, walk
from ...ir.types import Tuple, Type


def erase_classes(function: Function) -> Function:
    """Replace the containers in `function` by plain tuples, in place.

    >>> show(erase_classes(read('''
    ... def f(x: 'float64'):
    ...     xs = []
    ...     for i in range(3):
    ...         xs.append({'u': x, 'v': i})
    ...     return xs[1]['v']
    ... ''')))
    def f(x):
        xs = []
        for i in range(3):
            xs.append((x, i))
        return xs[1][1]
    """

    def retype(values: list[Value]) -> None:
        for x in values:
            x.type = without_classes(x.type)

    retype(function.params)
    for op in walk(function.block):
        retype(op.outputs)
        for inner in op.blocks:
            retype(inner.params)
        if "form" in op.attrs:
            op.attrs = {name: x for name, x in op.attrs.items() if name != "form"}
        op.attrs = {name: without_classes(x) if isinstance(x, Type) else _kind(x) if name == "kind"
                    else x for name, x in op.attrs.items()}
    return function


def without_classes(type: Type) -> Type:
    """Return `type` with plain tuples for its containers."""
    if isinstance(type, Tuple):
        return Tuple(tuple(map(without_classes, type.items)))
    inner = {f.name: getattr(type, f.name) for f in fields(type)} if is_dataclass(type) else {}
    changed = {name: without_classes(x) for name, x in inner.items() if isinstance(x, Type)}
    return replace(type, **changed) if changed else type


def _kind(kind):
    """Return the kind of a cotangent (see kind_of_item) without container classes."""
    match kind:
        case ("members", _, *inner):
            return ("members", None, *map(_kind, inner))
        case ("list", inner):
            return ("list", _kind(inner))
    return kind
