"""Where the adjoint asks a value only for its shape, it asks one that is there.

The adjoint of `u[1:-1]` makes zeros like u, and u is a loop's carry, overwritten by the next trip: to save it on a tape
would cost an array a trip, for its length.  A cotangent of the same type is at hand, and serves.

Not every cotangent does: that of a name which some path leaves unbound has zeros there like what stands for the name, which has
no elements, whatever its type says (Note [What is not there has no shape]).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.graph import MISSING, Block, Function, Value
from ..ir.types import Array, Type
from .effects import maybe_unbound, without_shape

# Note [What is not there has no shape]
# if c:                      the adjoint of the second branch yields zeros like y where c does not hold, and y is not there.
#     y = np.tanh(m[0])      Nobody reads those zeros, so they may have any length; but what has their type must not take its
# ...                        own from them.  They are left out, and what is made of them, although where y is bound they
# if c:                      would do: then something else is asked, or a shape is saved.
#     s = np.sum(y)


def ask_shapes_here(adjoint: Block, home: Mapping[Value, Block], primal: Function) -> None:
    """Let the ops of `adjoint` that read only shapes read values of its own, in place.

    `home` says of each primal value which block defines it; what the block of `primal` defines is there anyway.
    """
    top = primal.block
    wanted = read_as_values(adjoint)
    shapeless = without_shape(adjoint, maybe_unbound(primal))

    def visit(block: Block, known: dict[Type, Value]) -> None:
        known = {**known, **_like([v for v in block.params if v not in shapeless], home)}
        for op in block.ops:
            for k in op.record.shapes:
                x = op.inputs[k]
                if home.get(x, top) is not top and x not in wanted and x.type in known:
                    op.inputs[k] = known[x.type]
            for inner in op.blocks:
                visit(inner, known)
            known.update(_like([v for v in op.outputs if v not in shapeless], home))

    visit(adjoint, {})


def _like(values: list[Value], home: Mapping[Value, Block]) -> dict[Type, Value]:
    """The arrays among `values` that are the adjoint's own, by their types, which say shape and dtype."""
    return {v.type: v for v in values if v not in home and v.constant is MISSING and isinstance(v.type, Array)
            and not any(getattr(d, "accepts_any", False) for d in v.type.dims)}


def read_as_values(block: Block) -> set[Value]:
    """The values of which the ops of `block` read what they hold, and not their shape only."""
    found = set(block.yields)
    for op in block.ops:
        found.update(x for k, x in enumerate(op.inputs) if k not in op.record.shapes)
        for inner in op.blocks:
            found |= read_as_values(inner)
    return found
