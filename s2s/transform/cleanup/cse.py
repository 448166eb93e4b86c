"""Common-subexpression elimination (CSE): compute the same op on the same values once.

    >>> show(cse(read('''
    ... def f(x, n):
    ...     y = np.sin(x) * n
    ...     for i in range(3):
    ...         y = y + np.sin(x)
    ...     return y
    ... ''')))
    def f(x, n):
        t = np.sin(x)
        y = t * n
        for i in range(3):
            y = y + t
        return y

One table per block, in which the tables of the blocks around it are visible: what dominates is
shared, what stands in a sibling branch is not.  The first result takes the name of a later one only
if it has none and nothing has read it: `y_bar = np.sin(x)` where it is only the cotangent, `t =
np.sin(x)` where the value is needed as well.
"""

from __future__ import annotations

from collections import ChainMap

from ...analysis.side_effects import is_buffer, owned_buffers
from ...analysis.value_numbering import key_of
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.substitute import substitute
from ...ir.types import Array, Extent, Type


def cse(function: Function) -> Function:
    """Eliminate pure ops that repeat one whose result dominates them."""
    owned = owned_buffers(function)
    same: dict[Value, Value] = {}
    read = {x for op in walk(function.block) for x in op.inputs}
    _share(function.block, ChainMap(), same, owned, read)
    substitute(function.block, same)
    # what is computed from the second has the extents of the first from now on
    return rebuild(function) if any(x.type != y.type for x, y in same.items()) else function


def _share(block: Block, table: ChainMap, same: dict[Value, Value], owned: set[Value],
           read: set[Value]) -> None:
    kept = []
    for op in block.ops:
        key = key_of(op, same)
        first = table.get(key) if key is not None else None
        if first is not None and _may_be_one(op, first, owned):
            for old, new in zip(op.outputs, first.outputs):
                new.name = new.name or (old.name if new not in read else "")
                same[old] = new
            continue
        if key is not None:
            table[key] = op
        for inner in op.blocks:
            _share(inner, table.new_child(), same, owned, read)
        kept.append(op)
    block.ops = kept


def _may_be_one(op: Op, first: Op, owned: set[Value]) -> bool:
    """Test whether sharing leaves apart the buffers that the program writes into separately."""
    return all(_is_alike(a.type, b.type) for a, b in zip(op.outputs, first.outputs)) and not any(
        is_buffer(x.type) and (x in owned or y in owned) for x, y in zip(op.outputs, first.outputs))


def _is_alike(a: Type, b: Type) -> bool:
    """Test whether types are the same but for the names of extents: two reshapes to (-1, n)."""
    if not isinstance(a, Array) or not isinstance(b, Array) or len(a.dims) != len(b.dims):
        return a == b
    return a.dtype == b.dtype and all(m == n or isinstance(m, Extent) and isinstance(n, Extent)
                                      for m, n in zip(a.dims, b.dims))
