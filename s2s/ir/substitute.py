"""Substitution of values, after a pass has proved them equal."""

from __future__ import annotations

from .graph import Block, Value, walk


def substitute(block: Block, stands_for: dict[Value, Value]) -> None:
    """Replace, in `block` and the blocks inside it, each value that is a key by its substitute."""
    if not stands_for:
        return

    def final(value: Value) -> Value:
        while value in stands_for:
            value = stands_for[value]
        return value

    block.yields = [final(y) for y in block.yields]
    for op in walk(block):
        op.inputs = [final(x) for x in op.inputs]
        for inner in op.blocks:
            inner.yields = [final(y) for y in inner.yields]
