"""Collect what runs in order on elements of arrays into regions, which one thread runs.

    for k in range(1, n):                      out = np.empty(1)
        x[k] += x[k - 1]                       for lane in range(1):
    s = x[n - 1] + 1.0            becomes          for k in range(1, n):
    while s > x[0]:                                    x[k] += x[k - 1]
        s = s * 0.5                                s = x[n - 1] + 1.0
                                                   while s > x[0]:
                                                       s = s * 0.5
                                                   out[0] = s
                                               s = out[0]

The host would launch a kernel for the first loop, and read an element of a device array in each
trip of the second. As the trips of a loop, one, they are a lane like others: with its tapes in a
kernel's memory, and its numbers there from one loop to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builder import Builder, add_op
from ...ir.graph import Block, Function, Op, Value, op_free_values, walk
from ...ir.types import INT, Array, Scalar, Tape, Undefined
from ...ops.core.control import for_record
from ...ops.core.record import value
from ..loopir.elements import read
from ..loopir.loop_builder import put
from ..loopir.ops import new_buffer
from ..loops.contract_arrays import replace_uses
from .nests import SHORT, Roles
from .thread_body import is_device_code


def collect_regions(function: Function) -> Function:
    """Wrap the serial regions of `function`, a loop form whose copies are made, in place."""
    roles = Roles(function)
    pending = [function.block]
    for block in pending:
        for region in regions(block, roles):
            wrap(block, region)
        pending += [inner for op in block.ops if roles.of(op) is None
                    for inner in op.blocks]
    return function


def regions(block: Block, roles: Roles) -> list[list[Op]]:
    """The ops of each region of `block`."""
    found: list[list[Op]] = []
    current: list[Op] = []
    inside: set[Value] = set()
    for op in [*block.ops, None]:
        if op is not None and (is_serial(op, roles) or current and is_number_code(op) and (
                touches_elements(op) or not inside.isdisjoint(op.inputs))):
            current.append(op)
            inside.update(op.outputs)
        elif current and (op is None or not inside.isdisjoint(op_free_values(op))
                          or op.blocks or not op.record.pure or op.record.writes is not None):
            while is_number_code(current[-1]) and not touches_elements(current[-1]):
                current.pop()  # the host does as well
            if is_worthwhile(block, current):
                found.append(current)
            current, inside = [], set()
    return found


def is_number_code(op: Op) -> bool:
    """Whether `op` is arithmetic on numbers, or reads or writes one element."""
    return (not op.blocks and is_device_code(Block([], [op]))
            and not any(map(may_be_unbound, op.inputs)))


def may_be_unbound(x: Value) -> bool:
    """Whether some path leaves `x` unbound: it cannot be passed to a kernel, nor stored by it."""
    if isinstance(x.type, Undefined):
        return True
    if x.op is None or not x.op.blocks:
        return False
    k = x.op.outputs.index(x) - len(x.op.outputs)
    return any(map(may_be_unbound, [b.yields[k] for b in x.op.blocks] if x.op.name == "if"
                   else [x.op.inputs[k]]))


def touches_elements(op: Op) -> bool:
    return op.record.indices is not None or any(isinstance(v.type, Tape)
                                                for v in (*op.inputs, *op.outputs))


def is_serial(op: Op, roles: Roles) -> bool:
    """Whether one thread should run `op`: on elements of arrays, or tapes, in order."""
    if not op.blocks:
        return any(isinstance(v.type, Tape) for v in op.outputs) and is_number_code(op)
    return (roles.of(op) is None and all(map(is_device_code, op.blocks))
            and not has_independent_loop(op, roles)
            and not any(map(may_be_unbound, op_free_values(op)))
            and any(isinstance(v.type, (Array, Tape)) for inner in (op, *walk_in(op))
                    for v in (*inner.inputs, *inner.outputs)))


def walk_in(op: Op) -> list[Op]:
    return [inner for block in op.blocks for inner in walk(block)]


def has_independent_loop(op: Op, roles: Roles) -> bool:
    """Whether some loop inside `op` could be a kernel: it is not short, and fills arrays, or is in
    no loop.
    """
    return any(inner.name == "for" and (op.name == "if" or any(isinstance(v.type, Array)
                                                               for v in inner.outputs))
               and roles.of(inner) is not None and not is_short(inner) for inner in walk_in(op))


def is_short(loop: Op) -> bool:
    low, high = (x.constant for x in loop.inputs[:2])
    return type(low) is type(high) is int and abs(high - low) < SHORT


def is_worthwhile(block: Block, region: list[Op]) -> bool:
    """Whether the region has a loop or a branch that touches arrays, and all uses of its tapes."""
    inside = set(region)
    tapes = {v for op in region for v in (*op.outputs, *op_free_values(op))
             if isinstance(v.type, Tape)}
    arrays = any(isinstance(v.type, Array) for op in region if op.blocks
                 for inner in (op, *walk_in(op)) for v in inner.inputs)
    outside = {*block.yields, *(x for op in block.ops if op not in inside
                                for x in op_free_values(op))}
    return (arrays and all(t.op in inside for t in tapes)
            and not any(y in outside and may_be_unbound(y) for op in region for y in op.outputs)
            and tapes.isdisjoint(block.yields)
            and not any(t in op_free_values(op) for op in block.ops if op not in inside
                        for t in tapes)
            and latest_versions(region) is not None)


def latest_versions(region: Sequence[Op]) -> dict[Value, Value] | None:
    """By array that the region writes to, what it is in the end; None if that is not known."""
    roots: dict[Value, Value] = {}
    latest: dict[Value, Value] = {}

    def root(x: Value) -> Value:
        return roots.get(x, x)

    for op in region:
        skip = len(op.inputs) - len(op.outputs)
        for k, y in enumerate(op.outputs):
            if not isinstance(y.type, Array):
                continue
            if op.name == "if":
                ends = {root(origin(b.yields[k], b)) for b in op.blocks}
            elif op.blocks:
                param = op.blocks[-1].params[k - len(op.outputs)]
                end = origin(op.blocks[-1].yields[k - len(op.outputs)], op.blocks[-1])
                ends = {root(op.inputs[skip + k])} if end is param else set()
            else:
                ends = set() if op.record.writes is None else {root(op.inputs[op.record.writes])}
            if len(ends) != 1:
                return None
            roots[y] = ends.pop()
            latest[roots[y]] = y
    return latest


def origin(x: Value, block: Block) -> Value:
    """The array, of outside or a parameter of `block`, of which `x` is a version."""
    inside = {y: op for op in block.ops for y in op.outputs}
    while x in inside:
        op = inside[x]
        k = op.outputs.index(x)
        if op.name == "if":
            ends = {origin(b.yields[k], b) for b in op.blocks}
            if len(ends) != 1:
                return x
            x = ends.pop()
        elif op.blocks:
            x = op.inputs[len(op.inputs) - len(op.outputs) + k]
        elif op.record.writes is None:
            return x
        else:
            x = op.inputs[op.record.writes]
    return x


def wrap(block: Block, region: list[Op]) -> None:
    """Make the region one trip of a loop."""
    latest = latest_versions(region)
    first, inside = block.ops.index(region[0]), set(region)
    after = [op for op in block.ops[first:] if op not in inside]
    used = {*block.yields, *(x for op in after for x in op_free_values(op))}
    numbers = [y for op in region for y in op.outputs
               if isinstance(y.type, Scalar) and y in used and y.op.name != "constant"]
    with Builder(Block()) as before:
        bounds = [value(0), value(1), value(1)]
        cells = [new_buffer(y.type.dtype, (1,), [bounds[1]]) for y in numbers]
        for cell, y in zip(cells, numbers):
            cell.name = f"{y.name or 'out'}_out"
    starts = [*latest, *cells]
    params = [Value(x.type, latest[x].name if x in latest else x.name) for x in starts]
    body = Block([Value(INT, "lane"), *params], list(region))
    replace_uses(body, dict(zip(starts, params)))
    new_latest = list(latest.values())
    with Builder(Block()) as ends:
        stored = [put(cell, y, [value(0)]) for cell, y in zip(params[len(latest):], numbers)]
    body.ops += ends.block.ops
    body.yields = [*new_latest, *stored]
    loop = Op(for_record, [*bounds, *starts], {"breaks": False, "is_region": True}, [body], [],
              region[0].line)
    loop.outputs = [Value(p.type, p.name, loop) for p in params]
    with Builder(Block()) as behind:
        read_back = [read(cell, [value(0)]) for cell in loop.outputs[len(latest):]]
    for y, new in zip(numbers, read_back):
        new.name = y.name
    rest = Block([], after, list(block.yields))
    replace_uses(rest, {**dict(zip(new_latest, loop.outputs)), **dict(zip(numbers, read_back))})
    early = [op for op in block.ops[first:block.ops.index(region[-1])] if op not in inside]
    late = [op for op in after if op not in early]
    constants = [op for op in region if op.name == "constant" and op.output in used]
    block.ops = [*block.ops[:first], *early, *constants_again(constants, rest), *before.block.ops,
                 loop, *behind.block.ops, *late]
    block.yields = rest.yields


def constants_again(constants: list[Op], rest: Block) -> list[Op]:
    """The constants of a region that what follows reads, for that."""
    new = [add_constant(op) for op in constants]
    replace_uses(rest, {op.output: again.output for op, again in zip(constants, new)})
    return new


def add_constant(op: Op) -> Op:
    with Builder(Block()):
        return add_op(op.record, [], op.attrs, [op.output.type], names=[op.output.name])
