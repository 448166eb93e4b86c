"""Definite assignment: find values that are undefined on some path."""

from __future__ import annotations

from ..ir.graph import Function, Op, Value, walk

Move = tuple[Value, Value]  # target, value


def moves_of(op: Op) -> list[Move]:
    """Return the assignments that an `if` or a loop makes to its results and carries."""
    if op.name == "if":
        return [(y, block.yields[k]) for k, y in enumerate(op.outputs) for block in op.blocks]
    if op.name not in ("for", "while"):
        return []
    body, count = op.blocks[-1], len(op.outputs)
    params = body.params[len(body.params) - count :]
    moves = [
        *zip(params, op.inputs[len(op.inputs) - count :]),
        *zip(params, body.yields[len(body.yields) - count :]),
    ]
    for k, y in enumerate(op.outputs):
        moves += [(y, params[k]), *((head.params[k], params[k]) for head in op.blocks[:-1])]
    return moves


def maybe_unbound(function: Function) -> set[Value]:
    """Return the values that are undefined on some path."""
    moves = [move for op in walk(function.block) for move in moves_of(op)]
    found = {y for op in walk(function.block) if op.name == "undefined" for y in op.outputs}
    grown = bool(found)
    while grown:
        new = {target for target, value in moves if value in found} - found
        found |= new
        grown = bool(new)
    return found
