"""Scatter-add columns of gathered rows directly, without materialising the rows.

    c_bar = np.zeros_like(c)
    c_bar[:, 0] = u_bar                          np.add.at(x_bar, (which, 0), u_bar)
    c_bar[:, 2] += v_bar              becomes    np.add.at(x_bar, (which, 2), v_bar)
    np.add.at(x_bar, which, c_bar)

This is the adjoint of `c = x[which]` where the program reads `c[:, 0]` and `c[:, 2]`: the end of an
edge, a camera's angles, a particle's neighbour. Gathers read such columns in place
(back/lower/gather.py, `column_gathers`); their cotangents needed an array of all gathered rows,
which was zeroed, filled a column at a time, and read again. To the other columns zero was added.

Considered: rewriting the program to `x[which, 0]` before it is differentiated. The loops would be
the same; but the gradient would have a scatter for each column where the program has one gather,
and NumPy, which runs it where nothing is compiled, looks up each index as often.
"""

from __future__ import annotations

from ...analysis.alias import versions
from ...ir.builder import Builder, add_op
from ...ir.graph import Block, Function, Op, Readers, Value, blocks_of, op_free_values, readers_of
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import Array, Scalar
from ...ops.arrays.index_pattern import expand, index_dims
from ...ops.core.record import value

FULL = "..."  # a full slice


def scatter_columns(function: Function) -> Function:
    """`function` with columns of rows added to the array that the rows came from."""
    if not any(map(adds_rows, _ops(function))):
        return function
    function = clone(function)
    readers, same = readers_of(function.block), {}
    for block in blocks_of(function.block):
        changed: set[Value] | None = None
        ops: list[Op] = []
        for op in block.ops:
            columns = _columns(op, readers, block) if adds_rows(op) and _are_as_many(op) else None
            if columns:
                changed = _overwritten(block) if changed is None else changed
            if not columns or any(v in changed for x in columns.values() for v in versions(x)):
                ops.append(op)
                continue
            with Builder(Block(), op.line) as made:
                same[op.output] = _scatter(op, columns)
            ops += made.block.ops
        block.ops = ops
    substitute(function.block, same)
    return function


def _ops(function: Function):
    return (op for block in blocks_of(function.block) for op in block.ops)


def adds_rows(op: Op) -> bool:
    """Whether `op` scatter-adds the rows of an array allocated for it."""
    if op.name != "additem" or set(op.attrs["pattern"]) != {"i"}:
        return False
    a, rows, *picked = op.inputs
    return (isinstance(a.type, Array) and isinstance(rows.type, Array)
            and rows.type.dtype == a.type.dtype
            and rows.op is not None and rows.op.record.writes_elements
            and len(picked) < a.type.rank and any(isinstance(x.type, Array) for x in picked)
            and all(x.type.dtype != "bool" for x in picked))


def _are_as_many(op: Op) -> bool:
    """Whether the rows that `op` adds are not broadcast."""
    a, rows, *picked = op.inputs
    with Builder(Block()):
        return rows.type.dims == index_dims(a, picked, op.attrs["pattern"])


def _columns(op: Op, readers: Readers, block: Block) -> dict[int, Value] | None:
    """The columns that `op` adds, if its rows are zero elsewhere and not used otherwise."""
    links, rows = [], op.inputs[1]
    while rows.op in block.ops and len(readers[rows]) == 1 and rows not in block.yields:
        link = rows.op
        if link.record.fill == 0:
            break
        if (not link.record.writes_elements or not _is_column(link)
                or link.inputs[1].type.dtype != rows.type.dtype):
            return None
        links.append(link)
        rows = link.inputs[0]
    else:
        return None
    columns: dict[int, Value] = {}
    for link in reversed(links):
        _, v, k = link.inputs
        if (not isinstance(k.constant, int) or k.constant < 0 or link.name == "additem"
                and k.constant in columns):
            return None
        columns[k.constant] = v
    return columns


def _is_column(write: Op) -> bool:
    """Whether `write` is to `a[..., k]`."""
    *others, last = expand(write.attrs["pattern"], write.inputs[0].type.rank)
    return last == "i" and set(others) <= {FULL} and isinstance(write.inputs[-1].type, Scalar)


def _overwritten(block: Block) -> set[Value]:
    """Values that the ops of `block` may overwrite: later reads of them are not equivalent."""
    found = {v for op in block.ops if op.record.writes is not None
             for v in versions(op.inputs[op.record.writes])}
    found.update(x for op in block.ops if op.blocks for x in op_free_values(op))
    return found


def _scatter(op: Op, columns: dict[int, Value]) -> Value:
    """Emit the scatter-add of each of the `columns` in place of `op`."""
    a, _, *picked = op.inputs
    pattern = (*expand(op.attrs["pattern"], a.type.rank)[:-1], "i")
    for k, x in sorted(columns.items()):
        a = add_op(op.record, [a, x, *picked, value(k)], {**op.attrs, "pattern": pattern}, [a.type],
                   names=[op.output.name]).output
    return a
