"""Bind variables that may be unbound on some path, but are copied there, to placeholders.

if c:                           the IR may hand the undefined y on to a variable that is read only
    y = 2.0                     where c held; Python refuses to read it, so there the other branch
...                             binds it to something: y = 0.0
z = y
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ...analysis.definite_assignment import maybe_unbound, moves_of
from ...analysis.path_conditions import facts_by_block, is_bound
from ...ir.graph import Function, Value
from ...ir.types import Array, HashSet, HashTable, List, Scalar, Type, Unknown
from ..loops.type_empty_lists import spelled

# ops that copy a value without needing it
HANDED_ON = frozenset({"tape_push", "setitem", "tuple", "call", "copy"})


def must_be_bound(
    function: Function,
    leaves: Callable[[Value], Iterable[Value]],
    variable: Callable[[Value], object],
) -> set:
    """The variables that may be unbound where their value is copied."""
    found = maybe_unbound(function)
    if not found:
        return set()
    read: list[Value] = []
    # what the forward sweep passes to the reverse sweep, on paths that do not read it
    if len(function.block.yields) > 1:
        read += [leaf for x in function.block.yields for leaf in leaves(x)]
    facts = facts_by_block(function)
    for op, known in ((op, facts[block]) for block in facts for op in block.ops):
        if op.name in HANDED_ON or op.record.asks_extents:
            read += [leaf for x in op.inputs for leaf in leaves(x)
                     if leaf in found and not is_bound(leaf, known)]
        for target, value, there in (
                ((y, block.yields[k], facts[block]) for k, y in enumerate(op.outputs)
                 for block in op.blocks) if op.name == "if"
                else ((*move, known) for move in moves_of(op))):
            read += [leaf for leaf in leaves(value) if variable(leaf) is not variable(target)
                     and leaf in found and not is_bound(leaf, there)]
    return {variable(x) for x in read if x in found}


def placeholder(type: Type, native: bool = False) -> ast.expr:
    """A value of `type` that nobody reads, though its length may be read."""
    match type:
        case HashTable() if not native:
            return ast.Dict([], [])
        case HashSet() if not native:
            return ast.parse("set()", mode="eval").body
        case List():
            return ast.parse(spelled(type) if native else "[]", mode="eval").body
        case Scalar(dtype):
            return ast.Constant({"b": False, "f": 0.0, "c": 0j}.get(dtype[0], 0))
        case Array(dtype, dims):
            # native code may copy it, element by element: its length is the one in its type
            shape = tuple(d if native and isinstance(d, int) else 0 for d in dims)
            wanted = "" if dtype == "float64" else f", np.{'bool_' if dtype == 'bool' else dtype}"
            text = f"np.empty({shape[0] if len(shape) == 1 and not wanted else shape}{wanted})"
            return ast.parse(text, mode="eval").body
        case Unknown():
            return ast.parse("np.empty(0)", mode="eval").body
    return ast.Constant(None)
