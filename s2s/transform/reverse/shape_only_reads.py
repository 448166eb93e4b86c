"""Replace shape-only reads in the adjoint by a live value of that shape, or by saved lengths.

The adjoint of `u[1:-1]` makes zeros like u, and u is a loop's carry, overwritten by the next trip:
to save it on a tape would cost an array a trip, for its length.  A cotangent of the same lengths is
at hand, and serves.

    t = np.concatenate((u, v))                          t = np.concatenate((u, v))
    total += np.sum(t)                                  n_tape[k] = len(t)
    ...                                 becomes         total += np.sum(t)
    t_bar = np.full(t.shape, total_bar)                 ...
                                                        t_bar = np.full(n_tape[k], total_bar)

Where none is, the adjoint asks the lengths, which are values of the primal like others: what is
cheapest is saved, a length, or what the value is computed from (tape.py, Note [The cut]).  In the
place of the value stands a number under a shape of these lengths, `np.broadcast_to(0.0, (n, m))`,
which the ops that read shapes see through; it needs no memory where they do not.

Not every cotangent does: that of a name which some path leaves unbound has zeros there like what
stands for the name, which has no elements, whatever its type says
(Note [What is not there has no shape]).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...analysis.side_effects import maybe_unbound, without_shape
from ...ir.builder import Builder, add_op
from ...ir.graph import MISSING, Block, Function, Value
from ...ir.substitute import substitute
from ...ir.types import INT, Array, Extent
from ...ops.arrays.repeat import broadcast_to_record
from ...ops.core.control import longer_by
from ...ops.core.record import value
from ...ops.core.shape import length, shape_source

# Note [What is not there has no shape]
#     if c:
#         y = np.tanh(m[0])
#     ...
#     if c:
#         s = np.sum(y)
#
# The adjoint of the second branch yields zeros like y where c does not hold, and y is not there.
# Nobody reads those zeros, so they may have any length; but what has their type must not take its
# own from them.  They are left out, and so is what is computed from them, although where y is bound
# they would do: then another value is read for its shape, or a shape is saved.


def replace_shape_only_reads(adjoint: Block, home: dict[Value, Block],
                             primal: Function) -> dict[Value, list[Value]]:
    """Redirect, in place, ops of `adjoint` that read only shapes to its own values or to lengths;
    return the lengths by the values they belong to.

    `home` maps each primal value to its block; values of the block of `primal` are in scope anyway.
    It is updated with the lengths.
    """
    top = primal.block
    wanted = read_as_values(adjoint)
    unbound = maybe_unbound(primal)
    shapeless, primal_shapeless = without_shape(adjoint, unbound), without_shape(top, unbound)
    lengths: dict[Value, list[Value]] = {}
    asked: dict[tuple[Value, int], Value] = {}
    said: dict[Value, Value] = {}

    def length_of(x: Value, axis: int) -> Value:
        if isinstance(x.type.dims[axis], int):
            return value(x.type.dims[axis])
        if ((found := sliced(x, axis)) is not None and home.get(found[0]) is home[x]
                and found[0] not in primal_shapeless):
            whole, of, offset = found
            return longer_by(length_of(whole, of), offset)
        source = shape_source(x, number=True)
        if source in primal_shapeless or source not in home:
            source = x
        if (source, axis) not in asked:
            with Builder(Block(), above=home):
                n = asked[source, axis] = add_op(length, [source], {"axis": axis}, [INT]).output
            lengths.setdefault(source, []).append(n)
            home[n] = home[source]
        return asked[source, axis]

    def visit(block: Block, known: dict[tuple, Value]) -> None:
        known = {**known,
                 **_arrays_by_lengths([v for v in block.params if v not in shapeless], home)}
        ops, block.ops = block.ops, []
        for op in ops:
            for k in op.record.shapes:
                x = op.inputs[k]
                if home.get(x, top) is top or x in wanted or not isinstance(x.type, Array):
                    continue
                if x.type.dims in known:
                    op.inputs[k] = known[x.type.dims]
                elif x in primal_shapeless:
                    continue
                else:
                    with Builder(Block(), op.line, above=home) as builder:
                        if op.name == "length":
                            said[op.output] = length_of(x, op.attrs["axis"])
                        else:
                            op.inputs[k] = broadcast_to_record(
                                value(0.0), *(length_of(x, axis) for axis in range(x.type.rank)))
                    block.ops += builder.block.ops
            if op.name == "length" and op.output in said:
                continue
            for inner in op.blocks:
                visit(inner, known)
            block.ops.append(op)
            known.update(_arrays_by_lengths([v for v in op.outputs if v not in shapeless], home))

    visit(adjoint, {})
    substitute(adjoint, said)
    return lengths


def sliced(x: Value, axis: int) -> tuple[Value, int, int] | None:
    """Return the array of which `x` is a slice along this axis, the axis there, and the difference
    of the slice's length from its length.
    """
    if (x.op is None or x.op.name != "getitem"
            or not isinstance((whole := x.op.inputs[0]).type, Array)):
        return None
    extents = [Extent(f"whole{k}") for k in range(whole.type.rank)]  # which no trip changes
    with Builder(Block(), above=[x, whole]):
        type = x.op.record.infer(Value(Array(whole.type.dtype, tuple(extents))), *x.op.inputs[1:],
                                 **x.op.attrs)
    of = ([k for k, d in enumerate(extents) if d == replace(type.dims[axis], offset=0)]
          if isinstance(type.dims[axis], Extent) else [])
    return (whole, of[0], type.dims[axis].offset) if of else None


def _arrays_by_lengths(values: list[Value], home: Mapping[Value, Block]) -> dict[tuple, Value]:
    """Index the arrays among `values` that the adjoint computes itself by the lengths in their
    types.
    """
    return {v.type.dims: v for v in values if v not in home and v.constant is MISSING
            and isinstance(v.type, Array)
            and not any(getattr(d, "accepts_any", False) for d in v.type.dims)}


def read_as_values(block: Block, through: bool = False) -> set[Value]:
    """Return the values whose elements, and not only their shapes, the ops of `block` read; with
    `through`, what nobody reads the elements of, such as a part of an array, reads none.
    """
    found = set(block.yields)
    for op in reversed(block.ops):
        for inner in op.blocks:
            found |= read_as_values(inner, through)
        unread = through and not op.blocks and found.isdisjoint(op.outputs)
        parts = range(len(op.inputs)) if op.record.elementwise else op.record.moves
        places = {*op.record.shapes, *(parts if unread else ())}
        found.update(x for k, x in enumerate(op.inputs) if k not in places)
    return found
