"""Lower the ops of a block to scalar arithmetic in loops.

The ops are partitioned into groups that share an index space (back/lower/fusion_groups.py), and
each group is emitted as one nest (back/lower/nest.py).  Views and generated arrays are index
arithmetic (back/loopir/elements.py).  What a scope maps values to is in back/lower/scope.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builder import Builder, add_op, at, emit
from ...ir.graph import Block, Op, Value, walk
from ...ir.types import Array, List, Scalar
from ...ops.core.record import Record, value
from ...ops.core.shape import length, shaped_like
from ...ops.program.list_ops import list_get, list_set
from ..arrays.python_errors import check_counts, check_operands, check_result, implied_by_trips
from ..loopir.elements import Elements, in_memory
from ..loopir.loop_builder import op_named
from ..loopir.ops import PLAIN, as_dtype, compute, contiguous, in_range
from ..loopir.reductions import REDUCTIONS
from .fusion_groups import ReadAfter, last_reads, overwritten_views, partition
from .gather import column_gathers
from .index_arrays import index_sums, sum_of_indices
from .library_calls import is_native, is_opaque, outward_call, python_call
from .nest import emit_nest, ends_nest, index_space
from .scans import SCANS, scan
from .scope import Scope, fill
from .slice_writes import clashes, write_region
from .views import KINDS, define_view


def lower_block(scope: Scope, block: Block) -> list[Value]:
    """Emit the ops of `block` into the current builder; return the new values of its yields."""
    sums = index_sums(block)
    picked = column_gathers(block) | sums | set(filter(scope.left, block.ops))
    if scope.asked is None:  # for kernels: native code has checked the lengths of arguments
        picked.update(op for op in block.ops if op.record is shaped_like and op.inputs[0].op is None
                      and isinstance(op.output.type, Array))
    scope.equal = scope.equal.within(block.ops)
    groups = partition(block, lambda op: None if op in picked else index_space(op, scope.equal),
                       ends_nest, clashes)
    last = last_reads(groups, block)
    overwritten = overwritten_views(groups, last)
    scope.block = block
    for k, group in enumerate(groups):
        scope.alive = ReadAfter(last, k)
        with at(group.ops[0].line):
            take_views(scope, overwritten.get(k, ()))
        if scope.asked is not None:
            for op in group.ops:
                if op.record.raises and not op.record.elementwise:
                    with at(op.line):
                        check_counts(op, scope.whole, scope.asked)
        if group.dims is not None:
            emit_nest(scope, group, block)
        elif group.ops[0] in sums:
            with at(group.ops[0].line):
                scope.set(group.ops[0].output, sum_of_indices(scope, group.ops[0]))
        else:
            with at(group.ops[0].line):
                emit_one(scope, group.ops[0])
    return [scope.whole(y) for y in block.yields]


def take_views(scope: Scope, views: Sequence[Value]) -> None:
    """Materialise views of arrays that the next op overwrites, if they have later uses.

    `t = u[-1]` before `u[-1] = 0.0` is a row that has to be copied; index arithmetic on the old `u`
    would copy all of `u`. The copy is a loop like any other, which may be fused with its
    neighbours: it is contracted to a number where they read it in step.
    """
    for x in views:
        found = scope.env.get(x)
        if isinstance(found, Elements) and found.value is None and found.whole is not None:
            scope.define(x, fill(x, found, scope.counters), found.lengths)


def emit_one(scope: Scope, op: Op) -> None:
    """Emit an op that belongs to no nest."""
    match op.name:
        case "getitem" if read_element(scope, op):
            pass
        case "constant" | "undefined":
            outputs = add_op(op.record, [], op.attrs, [o.type for o in op.outputs]).outputs
            scope.env[op.output] = outputs[0]
        case "length":
            scope.env[op.output] = scope.lengths(op.inputs[0])[op.attrs["axis"]]
        case "size":
            scope.env[op.output] = product(scope.lengths(op.inputs[0]))
        case "if" | "for" | "while":
            emit_control(scope, op)
        case "shaped_like" if scope.env[op.inputs[0]].value is not None:
            found = scope.elements(op.inputs[0])
            scope.set(op.output, in_memory(found.value, found.lengths, op.output.type))
        case "contiguous":
            scope.define(op.output, emit(contiguous, scope.whole(op.inputs[0])))
        case _ if op.record.writes_elements and write_region(scope, op):
            pass
        case "list_add" if add_to_item(scope, op):
            pass
        case _ if scope.left(op):
            left = add_op(op.record, [scope.whole(x) for x in op.inputs], op.attrs,
                             [y.type for y in op.outputs], names=[y.name for y in op.outputs])
            scope.define(op.output, left.output)
        case _ if define_view(scope, op) or scan(scope, op):
            pass
        case _:
            emit_plain(scope, op)


def add_to_item(scope: Scope, op: Op) -> bool:
    """Emit `xs[i] = xs[i] + v` for arrays, as a loop that computes the sum."""
    xs, v, *indices = op.inputs
    item = op.output.type
    for _ in indices:
        item = item.item if isinstance(item, List) else None
    if not isinstance(item, Array) or not isinstance(v.type, Array) or item.rank != v.type.rank:
        return False
    xs, indices, added = scope.whole(xs), [scope.whole(i) for i in indices], scope.elements(v)
    old = in_memory(list_get(xs, *indices), added.lengths)
    total = Elements(Array(item.dtype, v.type.dims), added.lengths,
                     lambda index: op_named("add", old.at(index), added.at(index)))
    scope.define(op.output, list_set(xs, fill(v, total, scope.counters), *indices))
    return True


def read_element(scope, op: Op) -> bool:
    """Emit `x[i]` for an array that aliases memory as a read of it.

    With index arithmetic, an index out of the view's range would read beside it.
    """
    elements = scope.env[op.inputs[0]]
    if not isinstance(elements, Elements) or elements.value is not None or elements.same_as is None:
        return False
    operands = [scope.env[x] for x in op.inputs[1:]]
    if any(isinstance(x, Elements) for x in operands) or isinstance(op.output.type, Array):
        return False
    scope.env[op.output] = emit(op.record, elements.same_as, *operands, **op.attrs)
    return True


def product(lengths: Sequence[Value]) -> Value:
    """The number of elements."""
    result = value(1)
    for n in lengths:
        result = op_named("multiply", result, n)
    return result


def contiguous_item(x: Value) -> Value:
    """A contiguous array to put into a list: arrays of all lists that may meet have one type."""
    if not isinstance(x.type, Array):
        return x
    is_item = x.op is not None and x.op.record.views and isinstance(x.op.inputs[0].type, List)
    return x if is_item else contiguous(x)


def emit_plain(scope: Scope, op: Op) -> None:
    """Emit the op unchanged, on numbers and arrays in memory."""
    inputs = [scope.shape_giver(x) if k in op.record.shapes and isinstance(x.type, Array)
              else scope.whole(x) for k, x in enumerate(op.inputs)]
    if any(isinstance(y.type, List) for y in op.outputs):
        inputs = [contiguous_item(x) if k in op.record.moves else x for k, x in enumerate(inputs)]
    if op.record.elementwise and all(not isinstance(x.type, Array)
                                     for x in op.inputs) and is_native(op):
        if scope.asked is not None:
            check_operands(op, inputs, scope.asked, scope.pythons)
        outputs = [compute(op.record, *inputs, **op.attrs)]
        if scope.asked is not None:
            check_result(op, inputs, outputs[0], scope.asked, scope.pythons)
    elif op.record.outward:
        outputs = add_op(outward_call(op), inputs, {}, []).outputs
    elif is_native(op):
        outputs = add_op(op.record, inputs, op.attrs, [o.type for o in op.outputs]).outputs
    else:
        outputs = add_op(python_call(op), inputs, {}, [o.type for o in op.outputs]).outputs
    for old, new in zip(op.outputs, outputs):
        if not new.name and new.op is not None and new.op.record is op.record:
            new.name = old.name
        scope.define(old, new)


def emit_control(scope: Scope, op: Op) -> None:
    """Emit an op with blocks: the same op, with its blocks lowered and its carries in memory."""
    for x in needed_whole(op):
        found = scope.env.get(x)
        if isinstance(found, Elements) and found.value is None:
            scope.whole(x)
    inputs = [scope.whole(x) for x in op.inputs]
    inits = inputs[3:] if op.name == "for" else inputs
    wanted = [o.type for o in op.outputs]
    if op.name != "if":
        inits = [converted(x, t) for x, t in zip(inits, wanted)]
        inputs = [*inputs[:3], *inits] if op.name == "for" else inits
    blocks = []
    for old in op.blocks:
        block = Block(params=[Value(p.type, p.name) for p in old.params])
        with Builder(block):
            inner = scope.inner(block.params[0].name if op.name == "for" else None, op.name != "if")
            if op.name == "for":
                inner.loops[block.params[0]] = Op(op.record, inputs[:3])
                if inner.asked is not None:
                    inner.asked.update(implied_by_trips(*inputs[:3]))
            for p, q in zip(old.params, block.params):
                inner.define(p, q)
            if op.name == "if":
                for y, *others in zip(old.yields,
                                      *(each.yields for each in op.blocks if each is not old)):
                    inner.instead.setdefault(y, []).extend(others)
            block.yields = lower_block(inner, old)
            skip = len(block.yields) - len(wanted)  # the `stop` of a loop that breaks, a condition
            if skip >= 0 and not (op.name == "while" and not blocks):
                block.yields[skip:] = [converted(y, t) for y, t in zip(block.yields[skip:], wanted)]
        blocks.append(block)
    new = add_op(op.record, inputs, op.attrs, wanted, blocks, [o.name for o in op.outputs])
    for a, b in zip(op.outputs, new.outputs):
        scope.define(a, b)


def needed_whole(op: Op) -> list[Value]:
    """The arrays that the blocks of `op` need in memory, materialised once before it."""
    found: dict[Value, None] = {}
    inside = [inner for block in op.blocks for inner in walk(block)]
    carried = {x for inner in inside if inner.blocks for x in inner.inputs}
    for inner in inside:
        if inner.name == "getitem" and (not isinstance(inner.output.type, Array)
                                        or inner.output in carried) or is_opaque(inner):
            found.update(dict.fromkeys(content_of(inner)))
    return list(found)


def content_of(op: Op) -> list[Value]:
    """The arrays whose elements `op` itself reads."""
    return [x for k, x in enumerate(op.inputs) if k not in op.record.shapes
            and isinstance(x.type, Array)]


def converted(x: Value, type) -> Value:
    """`x` with the dtype of a carry: an array may start as integers and become floats."""
    if isinstance(type, Scalar) and type.dtype == "float64" and isinstance(x.constant, int):
        return value(float(x.constant))  # a list of it would be typed as integers
    match x.type, type:
        case Scalar(have), Scalar(want) if have != want and (want not in PLAIN
                                                             or want == "complex128"):
            return as_dtype(in_range(x, want), want)
        case Array(have), Array(want) if have != want:
            lengths = [length(x, axis=k) for k in range(x.type.rank)]
            elements = in_memory(x, lengths)
            cast_type = Array(want, x.type.dims)
            return fill(x, Elements(cast_type, tuple(lengths), elements.at))
    return x


def manner(record: Record) -> str:
    """A word for the way in which an op is lowered."""
    if record.rebuild is not None:
        return "blocks"
    if record.elementwise or record in REDUCTIONS or record.same_elements:
        return "fused"
    if record in KINDS:
        return "an index"
    if record in SCANS or record.writes is not None:
        return "a loop"
    if record.native == "matrix":
        return "BLAS, LAPACK"
    return "as printed" if record.lower is None else "rewritten"
