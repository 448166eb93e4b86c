"""Move reshapes off elementwise chains and sums, so that these fuse into one nest.

    np.reshape(a @ b + c, (n, m, k))            np.reshape(a @ b, (n, m, k)) + c
    np.sum(np.reshape(x, (n * m, k)), axis=0)   np.sum(x, axis=(0, 1))

where c has k elements, and x, in an adjoint, the shape (n, m, k).

A layer of a network is often a product of matrices whose rows are places or positions, reshaped
after the bias is added. A reshape ends a nest: its operand is written to memory. A product is in
memory anyway, contiguous, and reshaping it is free. The sums, over the same elements in the same
order, are the cotangent of the bias.

Considered: nests over the axes of both sides of a reshape, which would have to divide to find each
element. Or moving reshapes before the program is differentiated, which would give the same loops,
but a gradient in which readers do not recognise their program.
"""

from __future__ import annotations

from ...ir.builder import Builder, add_op, at
from ...ir.graph import Block, Function, Op, Readers, Value, blocks_of, readers_of, walk
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import Array, Scalar, may_be_one


def move_reshapes(function: Function) -> Function:
    """`function` with reshapes moved up to products, and sums moved before reshapes."""
    if not any(op.record.reshapes for op in walk(function.block)):
        return function
    function = clone(function)
    readers, same = readers_of(function.block), {}
    for block in blocks_of(function.block):
        ops: list[Op] = []
        for op in block.ops:
            with Builder(Block()) as result, at(op.line):
                new = _move(op, readers, block)
            ops += result.block.ops or [op]
            if new is not None:
                same[op.output] = new
        block.ops = ops
    substitute(function.block, same)
    return function


def _move(op: Op, readers: Readers, block: Block) -> Value | None:
    """The new result of `op`, emitted now; None to leave it alone."""
    if op.record.reshapes and isinstance(op.output.type, Array):
        y = op.inputs[0]
        if (isinstance(y.type, Array) and y.op is not None and y.op.record.elementwise
                and _trailing_axes(y, op, readers, block)):
            return _reshape_operands(y, op)
    elif op.name == "sum" and _is_of_adjoint(op.inputs[0]):
        x = op.inputs[0].op.inputs[0]
        axes = _axes_before(op, x)
        if axes is not None:
            return add_op(op.record, [x, *op.inputs[1:]], {**op.attrs, "axis": axes},
                          [op.output.type], names=[op.output.name]).output
    return None


def common_trailing_axes(x: Value, y: Value) -> int:
    """The number of trailing axes that `x` and `y` have in common."""
    if not (isinstance(x.type, Array) and isinstance(y.type, Array)):
        return 0
    count = 0
    for a, b in zip(reversed(x.type.dims), reversed(y.type.dims)):
        if a != b or getattr(a, "accepts_any", False):
            break
        count += 1
    return count


def _trailing_axes(y: Value, reshape: Op, readers: Readers, block: Block) -> int:
    """The trailing axes that `reshape` leaves alone if moved to the products below `y`; else 0.

    `y` depends on them elementwise, neither it nor the ops between have other uses, and all other
    operands have these trailing axes only.
    """
    if y.op is not None and y.op.name == "matmul":
        return common_trailing_axes(y, reshape.output)
    if (y.op not in block.ops or not y.op.record.elementwise or len(y.op.outputs) > 1
            or len(readers[y]) > 1):
        return 0
    rank, others, kept = len(y.type.dims), 0, len(y.type.dims)
    for x in y.op.inputs:
        if isinstance(x.type, Array) and len(x.type.dims) == rank:
            kept = min(kept, _trailing_axes(x, reshape, readers, block))
            pairs = list(zip(x.type.dims, y.type.dims))
            if any(a != b for a, b in pairs[:rank - kept]) or any(a != b and may_be_one(a)
                                                                  for a, b in pairs[rank - kept:]):
                return 0  # one row or column, broadcast
        elif isinstance(x.type, Array):
            others = max(others, len(x.type.dims))
        elif not isinstance(x.type, Scalar):
            return 0
    return kept if others <= kept < rank else 0


def _reshape_operands(y: Value, reshape: Op) -> Value:
    """`y` after `reshape`, computed from reshaped products."""
    type = Array(y.type.dtype, reshape.output.type.dims)
    if y.op.name == "matmul":
        return add_op(reshape.record, [y, *reshape.inputs[1:]], dict(reshape.attrs), [type]).output
    with at(y.op.line):
        inputs = [_reshape_operands(x, reshape) if isinstance(x.type, Array)
                  and len(x.type.dims) == len(y.type.dims) else x for x in y.op.inputs]
        return add_op(y.op.record, inputs, dict(y.op.attrs), [type], names=[y.name]).output


def _is_of_adjoint(x: Value) -> bool:
    """Whether `x` is an adjoint's reshape, which fits: the program's own may raise."""
    return (x.op is not None and x.op.name == "reshape_like" and x.op.line is not None
            and x.op.line.backwards and isinstance(x.type, Array))


def _axes_before(op: Op, x: Value) -> tuple[int, ...] | None:
    """The axes of `x` to sum over, if `op` sums a reshape of `x` over all axes it makes."""
    axis, y = op.attrs.get("axis"), op.inputs[0]
    kept = common_trailing_axes(x, y)
    if kept == 0 or axis is None or op.attrs.get("keepdims"):
        return None
    rank, before = len(y.type.dims), len(x.type.dims)
    if before == kept:  # the others have length 1
        return None
    axes = [a % rank for a in (axis if isinstance(axis, tuple) else (axis,))]
    if not set(range(rank - kept)) <= set(axes):
        return None
    return (*range(before - kept), *sorted(a - rank + before for a in axes if a >= rank - kept))
