"""Alias analysis within one trip, for loops that exchange buffers: `prev, cur = cur, prev`.

Over all trips, prev and cur each hold either array, so their sets of roots (alias.py) meet.  In one
trip they are two: if the arrays are disjoint before the loop, and the yields of a trip are disjoint
whenever its parameters are, then they are in every trip.  A *layer* records this for one loop: the
roots of its values in one trip, where each array parameter has a root of its own.  Two values share
memory only if their roots meet in all layers.
"""

from __future__ import annotations

from ..ir.graph import Function, Op, Value, walk
from ..ir.types import Array, Unknown


def layers(memory, function: Function) -> list[dict[Value, frozenset]]:
    """Return the layers of the loops that exchange arrays."""
    found = [_layer(memory, op) for op in walk(function.block) if op.name in ("for", "while")]
    return [layer for layer in found if layer is not None]


def parts(op: Op) -> tuple[int, list[Value], int]:
    """Return the positions of a loop's arrays: among its inputs, its parameters, and the yields of
    its body.
    """
    body = op.blocks[-1]
    return (3 if op.name == "for" else 0, body.params[op.name == "for":],
            len(body.yields) - len(op.outputs))


def _layer(memory, op: Op) -> dict[Value, frozenset] | None:
    first, params, _ = parts(op)
    entering = [memory.entering(op, first + k) for k in range(len(params))]
    group = [k for k, p in enumerate(params) if isinstance(p.type, (Array, Unknown))]
    if not _overlapping([memory.of(p) for p in params], group):
        return None  # they are disjoint over all trips already
    together = _overlapping(entering, group)
    while True:
        group = [k for k in group if k not in together]
        if len(group) < 2:
            return None
        trip, leaving = _trip_memory(memory, op, entering, group)
        together = _overlapping(leaving, group)
        if not together:
            return trip.roots


def _overlapping(roots: list[frozenset], group: list[int]) -> set[int]:
    """Return the arrays of the group that share memory with another of it."""
    return {k for k in group for j in group if j != k and roots[j] & roots[k]}


def _trip_memory(memory, op: Op, entering: list[frozenset], group: list[int]):
    """Return the memory of one trip, and the roots of its yields, assuming that each of the group
    enters with an array of its own.
    """
    _, params, skip = parts(op)
    body = op.blocks[-1]
    own = {k: ((params[k], "own"), False) for k in group}
    inside = {value for block in op.blocks for value in block.params}
    inside.update(y for inner in ops_inside(op)
                  for y in (*inner.outputs, *(p for b in inner.blocks for p in b.params)))
    trip = memory.alike()
    for value, roots in memory.roots.items():
        if value not in inside:
            trip.roots[value] = roots | {own[k] for k in group if roots & memory.of(params[k])}
    for k, param in enumerate(params):
        if k in own:
            trip.roots[param] = frozenset({own[k]})
        elif param in memory.roots:
            trip.roots[param] = entering[k] | {own[j] for j in group if entering[k] & entering[j]}
    while True:
        for head in op.blocks[:-1]:
            for k, param in enumerate(head.params):
                if params[k] in trip.roots:
                    trip.roots[param] = trip.roots[params[k]]
            trip.visit(head)
        trip.visit(body)
        leaving = [trip.leaving(body, skip + k) for k in range(len(params))]
        grown = {p: trip.roots[p] | _at_next_trip(leaving[k], leaving, own)
                 for k, p in enumerate(params) if k not in own and p in trip.roots}
        if all(trip.roots[p] == roots for p, roots in grown.items()):
            return trip, leaving
        trip.roots.update(grown)


def _at_next_trip(roots: frozenset, leaving: list[frozenset], own: dict) -> frozenset:
    """Translate this memory to the next trip: that of the parameters it is yielded to, or else
    memory of earlier trips.
    """
    found = set()
    for root in roots:
        targets = {own[k] for k in own if root in leaving[k]}
        if targets:
            found |= targets
        else:
            found.add(((root[0], "before"), True) if root in own.values() else root)
    return frozenset(found)


def ops_inside(op: Op):
    """Yield the ops inside a loop."""
    for block in op.blocks:
        yield from walk(block)
