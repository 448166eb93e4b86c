"""A list that a counted loop fills, and that is then made an array, is that array from the start.

    >>> show(arrays(read('''
    ... def f(x: 'float64[n]'):
    ...     ys = []
    ...     for i in range(len(x)):
    ...         ys.append(np.sin(x[i]))
    ...     return np.sum(np.array(ys))
    ... ''')))
    def f(x):
        ys = np.empty(len(x))
        for i in range(len(x)):
            ys[i] = np.sin(x[i])
        return np.sum(ys)

The adjoint of an array that a loop fills once reads what it needs from the finished array, where a list would be saved
beside it; and native code, GPUs and batches have arrays, but no lists.  Three ways were thought of: to make it in
the front end (which does not know yet what becomes of the list), to lower it for native code only (which leaves the
tapes), and this: a pass before differentiation.

What is asked of the list: it starts empty; each trip of a loop with a known number of trips, or of a nest of such
loops that makes lists of lists, appends to it once, and nothing else is done with it there; the items are numbers or
arrays whose extents are known before the loop; afterwards it is only stacked, measured and, where the items are arrays,
read.  (A number read from a list of Python's is one of Python's, and one from an array is NumPy's.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..ir.builder import Builder
from ..ir.graph import MISSING, Block, Function, Op, Value, defined_values, walk
from ..ir.rebuild import rebuild
from ..ir.substitute import substitute
from ..ir.types import Array, Extent, List, Scalar, Type
from ..ops.control import at_least_zero
from ..ops.create import empty
from ..ops.index import put, take
from ..ops.record import value
from ..ops.shape import length


@dataclass
class Nest:
    """Loops, from the outermost in, each with the number of the carry that holds its list; and the append inside."""

    loops: list[tuple[Op, int]]
    push: Op

    @property
    def list(self) -> Value:
        """What the program calls the list, once it is filled."""
        op, k = self.loops[0]
        return op.outputs[k]


def arrays(function: Function) -> Function:
    """`function`, in which such lists are arrays."""
    same: dict[Value, Value] = {}
    readers = _readers(function.block)
    found = list(_nests(function.block, [*function.params], readers))
    for block, scope, nest in found:
        _make_array(function, block, scope, nest, readers, same)
    substitute(function.block, same)
    return rebuild(function) if found else function


def _readers(block: Block) -> dict[Value, list[tuple[Op | None, Block]]]:
    """Who reads each value: an op, or None for the yields, and the block in which it stands."""
    found: dict[Value, list[tuple[Op | None, Block]]] = defaultdict(list)
    for inner in _blocks(block):
        for op in inner.ops:
            for x in op.inputs:
                found[x].append((op, inner))
        for y in inner.yields:
            found[y].append((None, inner))
    return found


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in walk(block):
        yield from op.blocks


def _nests(block: Block, scope: list[Value], readers: dict) -> Iterator[tuple[Block, list[Value], Nest]]:
    """The nests that fill such a list, with the block in which they stand and the values known before them."""
    scope = list(scope)
    for op in block.ops:
        for k in range(len(op.outputs)) if op.name == "for" else ():
            nest = _nest(op, k, readers)
            if nest is not None and _extents(nest, scope) is not None and all(
                    _is_array_use(user, nest) for user, _ in readers[nest.list]) and any(
                    user.name == "list_stack" for user, _ in readers[nest.list]):
                yield block, list(scope), nest
        for inner in op.blocks:
            yield from _nests(inner, scope + list(inner.params), readers)
        scope += op.outputs


def _nest(op: Op, k: int, readers: dict) -> Nest | None:
    """The nest whose outermost loop `op` fills its carry `k`, if it is one."""
    if op.attrs["breaks"] or op.inputs[2].constant is MISSING:
        return None
    init, param, end, out = op.inputs[3 + k], op.blocks[0].params[1 + k], op.blocks[0].yields[k], op.outputs[k]
    push = end.op
    if not (isinstance(out.type, List) and init.op is not None and init.op.name == "list_of" and not init.op.inputs
            and push is not None and push.name == "tape_push" and push in op.blocks[0].ops and push.inputs[0] is param
            and len(readers[param]) == len(readers[end]) == 1):
        return None
    item = push.inputs[1]
    if not isinstance(item.type, List):
        return Nest([(op, k)], push)
    inner = item.op
    if inner is None or inner.name != "for" or inner not in op.blocks[0].ops or len(readers[item]) != 1:
        return None
    deeper = _nest(inner, inner.outputs.index(item), readers)
    own = set(defined_values(op.blocks[0]))
    if deeper is None or any(x in own and x.constant is MISSING for loop, _ in deeper.loops for x in loop.inputs[:3]):
        return None
    return Nest([(op, k), *deeper.loops], deeper.push)


def _is_array_use(user: Op | None, nest: Nest) -> bool:
    """Whether `user` does with the list what it can do with an array."""
    if user is None:
        return False
    if user.name == "list_get":
        return len(user.inputs) == 2 and isinstance(nest.push.inputs[1].type, Array) and len(nest.loops) == 1
    return user.name in ("list_stack", "tape_len")


def _extents(nest: Nest, scope: list[Value]) -> list[Callable[[], Value]] | None:
    """What makes the extents of an item, of values that are known before the nest; None where they are not."""
    match nest.push.inputs[1].type:
        case Scalar(dtype) if dtype is not None:
            return []
        case Array(dtype, dims) if dtype is not None:
            found = [_extent(d, scope) for d in dims]
            return None if None in found else found
    return None


def _extent(dim: int | Extent, scope: list[Value]) -> Callable[[], Value] | None:
    if isinstance(dim, int):
        return lambda: value(dim)
    found = _measured(dim, scope) if not dim.accepts_any else None
    if found is None and dim.offset < 0:
        whole = _measured(replace(dim, offset=0, may_be_one=False), scope)
        found = whole and (lambda: at_least_zero(whole() - -dim.offset))
    return found


def _measured(dim: Extent, scope: list[Value]) -> Callable[[], Value] | None:
    """The length of an array of `scope` that has this extent."""
    for v in scope:
        if isinstance(v.type, Array) and dim in v.type.dims:
            return lambda: length(v, axis=v.type.dims.index(dim))
    return None


def _make_array(function: Function, block: Block, scope: list[Value], nest: Nest, readers: dict,
                same: dict[Value, Value]) -> None:
    everything = [v for inner in _blocks(function.block) for v in defined_values(inner)]
    outermost = nest.loops[0][0]
    with Builder(Block(), outermost.line, above=everything) as builder:
        trips = [_trips(op) for op, _ in nest.loops]
        sizes = (*trips, *(make() for make in _extents(nest, scope)))
        held = empty(value(sizes), dtype=nest.push.inputs[1].type.dtype)
        held.name = nest.list.name
    _insert(block, outermost, builder.block.ops)
    for op, k in nest.loops:
        op.inputs[3 + k] = held
        held = op.blocks[0].params[1 + k]
        _retype(held, nest.list.name, builder.block.ops[-1].output.type)
    inside = nest.loops[-1][0].blocks[0]
    with Builder(Block(), nest.push.line, above=everything) as builder:
        index = tuple(_trip(op) for op, _ in nest.loops)
        written = put(held, index, nest.push.inputs[1])
    _replace(inside, nest.push, builder.block.ops, written, same)
    for (op, k), (inner, j) in zip(nest.loops, nest.loops[1:]):
        end = op.blocks[0].yields[k].op
        op.blocks[0].ops.remove(end)
        op.blocks[0].yields[k] = inner.outputs[j]
        _retype(inner.outputs[j], nest.list.name, held.type)
    _retype(nest.list, nest.list.name, held.type)
    for user, where in readers[nest.list]:
        with Builder(Block(), user.line, above=everything) as builder:
            match user.name:
                case "list_stack":
                    result = nest.list
                case "tape_len":
                    result = trips[0]
                case "list_get":
                    result = take(nest.list, user.inputs[1])
        _replace(where, user, builder.block.ops, result, same)


def _retype(v: Value, name: str, type: Type) -> None:
    v.name, v.type = name, type


def _trips(op: Op) -> Value:
    """How often a loop runs."""
    lo, hi, step = op.inputs[0], op.inputs[1], op.inputs[2].constant
    span = hi - lo if step > 0 else lo - hi
    return at_least_zero(span if abs(step) == 1 else (span + (abs(step) - 1)) // abs(step))


def _trip(op: Op) -> Value:
    """The number of this trip."""
    lo, step, k = op.inputs[0], op.inputs[2].constant, op.blocks[0].params[0]
    offset = k - lo if step > 0 else lo - k
    return offset if abs(step) == 1 else offset // abs(step)


def _insert(block: Block, before: Op, ops: Sequence[Op]) -> None:
    k = block.ops.index(before)
    block.ops[k:k] = ops


def _replace(block: Block, op: Op, ops: Sequence[Op], result: Value, same: dict[Value, Value]) -> None:
    """Put `ops` in the place of `op`, and `result` in that of its output."""
    k = block.ops.index(op)
    block.ops[k:k + 1] = ops
    if not result.name and result.op in ops:
        result.name = op.output.name
    same[op.output] = result
