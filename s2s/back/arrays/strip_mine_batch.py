"""Strip-mine the computation of a large batch: a few members at a time.

    P = x[:, rows, columns].reshape(-1, k)          for s in range(strips):
    h = np.maximum(P @ K, 0)                            x_s = x[s * m:(s + 1) * m]
    loss = np.sum(g(h))                     becomes     P = x_s[:, rows, columns].reshape(-1, k)
    h_bar = ...                                         h = np.maximum(P @ K, 0)
    K_bar = P.T @ h_bar                                 loss += np.sum(g(h))
                                                        h_bar = ...
                                                        K_bar += P.T @ h_bar

A derivative of a convolution written with patches builds matrices that are many times the batch,
writes them to memory and reads them back three times. A strip of the batch, forwards and at once
backwards, stays in the cache, and so does all that the gradient needs of it. `m` members take about
TARGET bytes, so a batch that fits is one strip.

Elements of different members may meet only in sums over all members, which the loop accumulates.
Ops that need such a sum come after the loop. Elements of an array belong to members by its first
axis (`Lane`), by several rows for each after a reshape, or by the second axis of a transposed
matrix.

Considered: loops over members in the loop form, fused like others (back/loops/fuse.py), with
products of BLAS as statements in them. That is what one writes by hand; but a product there is of
one member, too small for BLAS where members are small, reshapes block every fusion, and legality
must be proved op by op where here arrays stay arrays. Splitting single products where BLAS is
called leaves patches in memory, and takes threads from BLAS.

It pays where patches are gathered (an array indexed by arrays) and multiplied: elementwise chains
and products alone are bound by arithmetic, not memory, and a batch in one strip would add its sums
to zeros for nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...ir.builder import Builder, add_op, at, fresh_extent
from ...ir.graph import Block, Function, Op, Value, defined_values, walk
from ...ir.reemit import emit_op
from ...ir.types import INT, Array, Extent, Scalar, Type
from ...ops.arrays.index import additem, getitem, setitem
from ...ops.core.control import for_record
from ...ops.core.record import rank, value
from ..loopir.loop_builder import op_named
from ..loopir.ops import as_dtype, new_buffer, of_numbers, same_length_op
from ..loopir.reductions import SUM, zero_of
from .batch_axes import (
    Lane,
    Lengths,
    Plan,
    counts_elements,
    gathers_patches,
    lengths_read,
    product,
)

TARGET = 1 << 19  # bytes that a strip allocates: they fit the second-level cache
FEW = 4  # least ratio of these bytes to those of the sums, so that accumulating does not dominate


def strip_mine(function: Function) -> Function:
    """`function` with the computation of a batch strip-mined, where that pays."""
    if not _makes_patches(function.block):
        return function
    plans = [plan for e in _extents(function.params)
             if (plan := plan_strips(function, e)) is not None]
    best = max(plans, key=lambda plan: plan.products, default=None)
    return function if best is None else apply_plan(function, best)


def _makes_patches(block: Block) -> bool:
    return any(op.name == "matmul" for op in block.ops) and any(map(gathers_patches, block.ops))


def _extents(params: Sequence[Value]) -> list[Extent]:
    """The first lengths of the arrays among `params`."""
    return list(dict.fromkeys(p.type.dims[0] for p in params if isinstance(p.type, Array)
                              and isinstance(p.type.dims[0], Extent) and not p.type.dims[0].offset))


def plan_strips(function: Function, batch: Extent) -> Plan | None:
    """The plan to strip-mine a batch of this length; None if illegal or not worth it."""
    extents = {batch}
    while True:
        plan = Plan(function, extents, batch)
        if plan.aligned <= extents:
            break
        extents |= plan.aligned
    leaving = plan.leaving_values()
    if any(not each.record.pure for op in plan.after
           for each in (op, *(inner for b in op.blocks for inner in walk(b)))):
        return None  # effects and random draws keep their order
    can_leave = all(plan.lanes[x] == Lane() and plan.is_known(x.type.dims) for x in leaving)
    return plan if can_leave and plan.is_profitable() else None


def apply_plan(function: Function, plan: Plan) -> Function:
    """`function` strip-mined by `plan`."""
    block = Block(params=[Value(p.type, p.name) for p in function.params])
    with Builder(block, above=defined_values(function.block)):
        env = dict(zip(function.params, block.params))
        lengths = Lengths(plan, env)
        for op in plan.before:
            if counts_elements(op) and op.inputs[0] in plan.lanes:
                env[op.output] = product(lengths.all_of(lengths_read(op)))
            else:
                emit_again(op, env)
        with at(plan.inside[0].line):
            emit_loop(plan, lengths, env)
        for op in plan.after:
            emit_again(op, env)
        block.yields = [env[y] for y in function.results]
    return function.remade(block)


def emit_again(op: Op, env: dict[Value, Value]) -> None:
    """Emit the same op in the current block."""
    if op.blocks:
        emit_op(op, env)
        return
    with at(op.line):
        made = add_op(op.record, [env[x] for x in op.inputs], op.attrs,
                      [o.type for o in op.outputs], names=[o.name for o in op.outputs])
    env.update(zip(op.outputs, made.outputs))


def emit_loop(plan: Plan, lengths: Lengths, env: dict[Value, Value]) -> None:
    """Emit the loop over strips; add its results to `env`."""
    members = lengths.of(plan.batch)
    for d in sorted(plan.extents - {plan.batch}, key=str):
        members = same_length_op(members, lengths.of(d))
    sums = [op.output for op in plan.inside if op.output in plan.sums]
    leaving = plan.leaving_values()
    size = length_of_strip(plan, lengths, members, sums)
    strips = strips_of_op(members, size)
    types = {x: Scalar(SUM.accumulator(x.type.dtype)) if isinstance(x.type, Scalar)
             else x.type for x in (*sums, *leaving)}
    starts = [new_buffer(t.dtype, t.dims, lengths.all_of(t.dims), zero=x in plan.sums)
              if isinstance(t, Array) else zero_of(t.dtype) for x, t in types.items()]
    extents = {rows: fresh_extent()
               for rows in dict.fromkeys((None, *(lane.rows for lane in plan.lanes.values())))}

    def of_strip(x: Value) -> Type:
        """The type of a strip's part of `x`."""
        if x not in plan.lanes and x not in plan.sliced:
            return x.type
        lane = plan.lanes.get(x, Lane())
        dims = list(x.type.dims)
        dims[lane.axis] = extents[lane.rows]
        return Array(x.type.dtype, tuple(dims))

    body = Block(params=[Value(INT, "s"), *(Value(t, x.name) for x, t in types.items())])
    s, *carries = body.params
    with Builder(body):
        inner = dict(env)
        start = op_named("multiply", s, size)
        stop = op_named("min_", op_named("add", start, size), members)
        count = op_named("subtract", stop, start)
        for x in plan.sliced:
            inner[x] = add_op(getitem, [env[x], start, stop], {"pattern": ("xx.",)}, [of_strip(x)],
                              names=[x.name]).output
        for op in plan.indices():
            emit_again(op, inner)
        for op in plan.inside:
            inputs = [inner[x] for x in op.inputs]
            # the first of the given lengths is the members', though another may be as large
            if op.record.allocates is not None or op.name == "reshape":
                k = 1 if op.record.allocates is None else op.record.allocates
                inputs[k] = (count if op.output.type.dims[0] in plan.extents
                             else plan.in_strip(op.inputs[k], count, inner))
            with at(op.line):
                inner[op.output] = add_op(op.record, inputs, op.attrs, [of_strip(op.output)],
                                          names=[op.output.name]).output
        body.yields = [*(accumulate(carry, inner[x]) for carry, x in zip(carries, sums)),
                       *(setitem(carry, inner[x], start, stop, pattern=("xx.",))
                         for carry, x in zip(carries[len(sums):], leaving))]
    made = add_op(for_record, [value(0), strips, value(1), *starts], {"breaks": False},
                  [c.type for c in carries], [body], [c.name for c in carries])
    env.update((x, as_dtype(y, x.type.dtype)) for x, y in zip(types, made.outputs))


def accumulate(total: Value, x: Value) -> Value:
    """The sum so far plus a strip's, in place.

    So threads may have a sum each (back/parallel/outline_parallel.py).
    """
    return (additem(total, x, pattern=("...",) * rank(total)) if isinstance(total.type, Array)
            else op_named("add", total, as_dtype(x, total.type.dtype)))


def total_of(numbers: Sequence[Value]) -> Value:
    return functools.reduce(lambda a, b: op_named("add", a, b), numbers, value(0))


def length_of_strip(plan: Plan, lengths: Lengths, members: Value, sums: Sequence[Value]) -> Value:
    """The number of members of a strip, as a number of the program."""
    mine = [op.output for op in plan.inside
            if (op.name in ("getitem", "additem", "concatenate") or op.record.reshapes)
            and plan.lanes.get(op.output) == Lane() and plan.is_known(op.output.type.dims[1:])]
    each = total_of([lengths.bytes_of(x.type.dtype, x.type.dims[1:]) for x in mine])
    summed = total_of([lengths.bytes_of(t.type.dtype, t.type.dims)
                       for t in sums if isinstance(t.type, Array)])
    size = strip_length_op(members, each, op_named("max_", value(TARGET),
                                                   op_named("multiply", value(FEW), summed)))
    for x, sizes in plan.whole_rows:
        size = whole_rows_op(size, members, product(lengths.all_of(x.type.dims[1:])),
                             product([lengths.env[n] for n in sizes]))
    return size


def strip_length(members, each, least):
    return min(max(1, least // max(1, each)), max(1, members))


def whole_rows(size, members, own, row):
    return size if row > 0 and own % row == 0 else max(1, members)


def strips_of(members, size):
    return (members + size - 1) // size


strips_of_op = of_numbers(strips_of, lambda members, size: None, natural=True)
strip_length_op = of_numbers(strip_length, lambda members, each, least: None, natural=True)
whole_rows_op = of_numbers(whole_rows, lambda size, members, own, row: None, natural=True)
