"""Forward stored elements to later loads, and drop stores that are overwritten at once.

    q[j] = total                              t = -0.5 * total
    t = -0.5 * q[j]             becomes       q[j] = t
    q[j] = t                                  m = max(m, t)
    m = max(m, q[j])

This is store-to-load forwarding and dead store elimination. Fused loops pass elements on in this
way (fuse.py). LLVM would remove the loads; a reader of the loops should not have to.
"""

from __future__ import annotations

from ...ir.graph import Function, Op, Value, blocks_of, readers_of, walk
from ...ir.substitute import substitute


def forward_stores(function: Function) -> Function:
    """Forward stores to loads of the same element in `function`, a loop form, in place."""
    same: dict[Value, Value] = {}
    for op in walk(function.block):
        if (op.name == "getitem" and (store := previous_store(op)) is not None
                and store.inputs[1].type == op.output.type):
            same[op.output] = store.inputs[1]
    substitute(function.block, same)
    dropped = {y.op for y in same}
    readers = readers_of(function.block)
    for op in walk(function.block):
        while (op.name == "setitem" and (store := previous_store(op)) is not None
               and [reader for reader, _ in readers[store.output]
                    if reader not in dropped] == [op]):
            op.inputs[0] = store.inputs[0]
            dropped.add(store)
    for block in blocks_of(function.block) if dropped else ():
        block.ops = [op for op in block.ops if op not in dropped]
    return function


def previous_store(op: Op) -> Op | None:
    """The store that `op` reads from or overwrites, if it is of the same element."""
    store = op.inputs[0].op
    if (store is None or store.name != "setitem" or set(store.attrs["pattern"]) != {"i"}
            or store.attrs["pattern"] != op.attrs["pattern"]):
        return None
    return (store if all(map(is_same, store.inputs[store.record.indices:],
                              op.inputs[op.record.indices:]))
            else None)


def is_same(i: Value, k: Value) -> bool:
    return i is k or type(i.constant) is int and i.constant == k.constant
