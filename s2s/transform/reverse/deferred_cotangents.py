"""Compute elements of array cotangents in the trips that read them, instead of the whole array
before the loop.

    for i in range(n):                              for i in range(n):
        pred[i] = w * np.exp(-x[i])                     pred[i] = w * np.exp(-x[i])
    pred_bar = 2 / n * (pred - y)          becomes  for i in range(n - 1, -1, -1):
    for i in range(n - 1, -1, -1):                      t = 2 / n * (pred[i] - y[i])
        w_bar += pred_bar[i] * np.exp(-x[i])            w_bar += t * np.exp(-x[i])

Then the reverse sweep reads from the forward sweep only values of the same trip, and both loops
fuse (fuse_sweeps.py), without an array of predictions or of cotangents.  An element of an
elementwise result is computed from the operands' elements, where these have the same length: known
from types, or checked at the call.

Considered: to sum up the loss itself in the loop that fills `pred`, before anything is
differentiated.  Its value would then be added up in the order of the loop, where NumPy adds
pairwise.
"""

from __future__ import annotations

from collections.abc import Collection

from ...analysis.side_effects import values_of
from ...ir.builder import Builder, emit
from ...ir.graph import Block, Op, Value, blocks_of, op_free_values, walk
from ...ir.substitute import substitute
from ...ir.types import Array, Scalar
from ...ops.arrays.index import getitem


def deferrable_reads(forth: Op, back: Op, block: Block,
                     equal: Collection[frozenset]) -> tuple[list[Op], dict[Value, Op]] | None:
    """Find the ops of `back` that read elements of arrays computed between the two loops from
    `forth`'s results, and the ops that compute these; None if they must stay whole.

    `equal` are pairs of lengths whose equality is checked at each call.
    """
    between = block.ops[block.ops.index(forth) + 1:block.ops.index(back)]
    made = _computed_between(forth, between)
    found = {x for x in op_free_values(back) if x in made}
    if not found or found.intersection(back.inputs):
        return None
    readers = [op for op in walk(back.blocks[0]) if found.intersection(op.inputs)]
    if not all(op.name == "getitem" and set(op.attrs["pattern"]) == {"i"}
               and all(isinstance(k.type, Scalar) for k in op.inputs[1:]) for op in readers):
        return None
    if (not all(_has_elements(x, made, equal) for x in found)
            or _is_computed_twice(found, made, block, back)):
        return None
    if any(map(_is_expensive, _backward_slice(_reread_arrays(back, readers), made))):
        return None
    return readers, made


def take_elements(back: Op, readers: list[Op], made: dict[Value, Op]) -> None:
    """Compute in place the elements that the `readers` in `back` read of arrays `made` before it.
    """
    for inner in blocks_of(back.blocks[0]):
        for op in [op for op in inner.ops if op in readers]:
            with Builder(Block(), op.line) as builder:
                element = _element(op.inputs[0], op.inputs[1:], made, {})
            position = inner.ops.index(op)
            inner.ops[position:position + 1] = builder.block.ops
            substitute(back.blocks[0], {op.output: element})


def _computed_between(forth: Op, between: list[Op]) -> dict[Value, Op]:
    """Return what is computed elementwise from `forth`'s results, or from other arrays at
    negligible cost, and the ops that do.
    """
    made: dict[Value, Op] = {}
    behind = set(forth.outputs)
    for op in between:
        if op.record.elementwise and len(op.outputs) == 1 and isinstance(op.output.type, Array):
            if not behind.isdisjoint(op.inputs):
                behind.add(op.output)
            if op.output in behind or not _is_expensive(op):
                made[op.output] = op
    return made


def _has_elements(x: Value, made: dict[Value, Op], equal: Collection[frozenset]) -> bool:
    """Test whether each element of `x` is computed from the corresponding elements of arrays of its
    shape.
    """
    if x not in made:
        return True
    arrays = [y for y in made[x].inputs if isinstance(y.type, Array)]
    return all(len(y.type.dims) == len(x.type.dims)
               and all(d == e or frozenset((d, e)) in equal
                       for d, e in zip(x.type.dims, y.type.dims)) and _has_elements(y, made, equal)
               for y in arrays)


def _is_computed_twice(found: set[Value], made: dict[Value, Op], block: Block, back: Op) -> bool:
    """Test whether an expensive op, an exp say, would be computed in the trips in addition to its
    present place.
    """
    ops = _backward_slice(found, made)
    kept = ({x for op in block.ops if op not in ops and op is not back for x in op_free_values(op)}
            | set(block.yields))
    return any(op.output in kept and _is_expensive(op) for op in ops)


def _backward_slice(found: Collection[Value], made: dict[Value, Op]) -> set[Op]:
    """Return the ops that compute the arrays `found` (their backward slice)."""
    cone: set[Op] = set()
    pending = list(found)
    while pending:
        op = made.get(pending.pop())
        if op is not None and op not in cone:
            cone.add(op)
            pending += op.inputs
    return cone


def _reread_arrays(back: Op, readers: list[Op]) -> set[Value]:
    """Return the arrays of which `readers` read one element in several trips of a loop inside
    `back`.

    Considered: to compute the element before that loop, which reads it where a loop of no trips
    does not, and so needs a proof that the element is there.
    """
    found = set()
    for loop in [op for op in walk(back.blocks[0]) if op.name in ("for", "while")]:
        inside = set().union(*map(values_of, loop.blocks))
        found |= {op.inputs[0] for op in readers if op.output in inside
                  and inside.isdisjoint(op.inputs[1:])}
    return found


def _is_expensive(op: Op) -> bool:
    """Test whether `op` is expensive arithmetic: an exp, not a square or a maximum."""
    return (op.record.vector and not op.record.chooses
            and not (op.record.vector == "power" and type(op.inputs[1].constant) is int))


def _element(x: Value, index: list[Value], made: dict[Value, Op],
             done: dict[Value, Value]) -> Value:
    """Emit the element, or row, of `x` at `index`."""
    if not isinstance(x.type, Array):
        return x
    if x in done:
        return done[x]
    if x in made:
        done[x] = emit(made[x].record, *(_element(y, index, made, done) for y in made[x].inputs),
                       **made[x].attrs)
    else:
        done[x] = emit(getitem, x, *index, pattern=("i",) * len(index))
    return done[x]
