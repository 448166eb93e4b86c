"""Replace a list that a counted loop fills, and that is then made an array, by a preallocated
array.

    >>> show(lists_to_arrays(read('''
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

The adjoint of an array that a loop fills once reads what it needs from the finished array, where a
list would be saved beside it; and native code, GPUs and batches have arrays, but no lists.  Three
ways were thought of: to make it in the front end (which does not know yet what becomes of the
list), to lower it for native code only (which leaves the tapes), and this: a pass before
differentiation.

The conditions on the list: it starts empty; each trip of a loop with a known trip count, or of a
nest of such loops that builds lists of lists, appends to it once, and does nothing else with it;
the items are numbers, arrays whose extents are known before the loop, or tuples of such, for which
there is one array each; afterwards it is only stacked, measured and, where the items are arrays,
read.  (A number read from a Python list is a Python number, and one from an array is NumPy's: from
a list of tuples it may be read only to be stored in an array.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...ir.builder import Builder
from ...ir.graph import (
    MISSING,
    Block,
    Function,
    Op,
    Readers,
    Value,
    blocks_of,
    defined_values,
    readers_of,
    walk,
)
from ...ir.reemit import rebuild
from ...ir.substitute import substitute
from ...ir.types import Array, Extent, List, Scalar, Tuple, Type
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.core.control import at_least_zero, item, longer_by
from ...ops.core.record import value
from ...ops.core.shape import length
from .dce import dce


@dataclass
class Nest:
    """A loop nest that fills a list: its loops from the outermost in, each with its output that is
    the list; the append; and the readers of the list.
    """

    loops: list[tuple[Op, Value]]
    push: Op
    reads: list[Read]

    @property
    def list(self) -> Value:
        """The list after the nest."""
        return self.loops[0][1]

    @property
    def leaves(self) -> list[tuple[tuple[int, ...], Type]]:
        """The positions and types of the numbers and arrays in one item."""
        return list(_leaves(self.push.inputs[1].type))


@dataclass
class Read:
    """An op that reads the list, its block, and the part of an item that it reads."""

    op: Op
    block: Block
    path: tuple[int, ...] = ()
    at: Value | None = None  # the index of the item


def lists_to_arrays(function: Function) -> Function:
    """Replace lists that counted loops fill by preallocated arrays."""
    changed = False
    while True:
        readers = readers_of(function.block)
        found = next(_nests(function.block, [*function.params], readers), None)
        if found is None:
            break
        changed = True
        substitute(function.block, _make_arrays(function, *found))
    if changed:
        # items read from the list, of which only parts are read now
        function = rebuild(dce(function))
        _drop_copies(function)
    return function


def _leaves(type: Type, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Type]]:
    if isinstance(type, Tuple):
        for k, inner in enumerate(type.items):
            yield from _leaves(inner, (*path, k))
    else:
        yield path, type


# ------------------------------------------------------------------------------------ finding lists


def _nests(block: Block, scope: list[Value],
           readers: Readers) -> Iterator[tuple[Block, list[Value], Nest]]:
    """Find the nests that fill such a list, each with its block and the values known before it."""
    scope = list(scope)
    for op in block.ops:
        for out in op.outputs if op.name == "for" else ():
            nest = _nest(op, out, readers)
            if nest is not None and _extents(nest, scope) is not None:
                yield block, list(scope), nest
        for inner in op.blocks:
            yield from _nests(inner, scope + list(inner.params), readers)
        scope += op.outputs


def _nest(op: Op, out: Value, readers: Readers) -> Nest | None:
    """Match the nest whose outermost loop `op` fills the list `out`, if arrays can replace it."""
    loops = _loops(op, out, readers)
    if loops is None:
        return None
    push = loops[-1][0].blocks[0].yields[loops[-1][0].outputs.index(loops[-1][1])].op
    reads = list(_reads(out, push.inputs[1].type, len(loops), readers))
    if None in reads or not any(r.op.name == "list_stack" or r.at is not None and r.path
                                for r in reads):
        return None
    return Nest(loops, push, reads)


def _loops(op: Op, out: Value, readers: Readers) -> list[tuple[Op, Value]] | None:
    """Match the loops that fill the list, if each trip appends to it once and does not read it."""
    if op.attrs["breaks"] or op.inputs[2].constant is MISSING or not isinstance(out.type, List):
        return None
    k = op.outputs.index(out)
    init, param, end = op.inputs[3 + k], op.blocks[0].params[1 + k], op.blocks[0].yields[k]
    push = end.op
    if not (init.op is not None and init.op.name == "list_of" and not init.op.inputs
            and push is not None and push.name == "tape_push" and push in op.blocks[0].ops
            and push.inputs[0] is param and len(readers[param]) == len(readers[end]) == 1):
        return None
    pushed = push.inputs[1]
    if not isinstance(pushed.type, List):
        return [(op, out)]
    inner = pushed.op
    if (inner is None or inner.name != "for" or inner not in op.blocks[0].ops
            or len(readers[pushed]) != 1):
        return None
    deeper = _loops(inner, pushed, readers)
    own = set(defined_values(op.blocks[0]))
    if deeper is None or any(x in own and x.constant is MISSING for loop, _ in deeper
                             for x in loop.inputs[:3]):
        return None
    return [(op, out), *deeper]


def _reads(xs: Value, kind: Type, depth: int, readers: Readers) -> Iterator[Read | None]:
    """Collect the reads of the list; None if an array does not support one of them."""
    for op, block in readers[xs]:
        if op is not None and (op.name == "tape_len" or op.name == "list_stack"
                               and not isinstance(kind, Tuple)):
            yield Read(op, block)
        elif (op is None or op.name != "list_get" or len(op.inputs) != 2 or depth > 1
              or op.inputs[1] is xs):
            yield None
        else:
            yield from _parts(op, block, kind, (), op.inputs[1], readers)


def _parts(op: Op, block: Block, kind: Type, path: tuple[int, ...], at: Value,
           readers: Readers) -> Iterator[Read | None]:
    """Collect the reads of the numbers and arrays in an item, which `op` returns."""
    match kind:
        case Array():
            yield Read(op, block, path, at)
        case Tuple(items):
            for user, where in readers[op.output]:
                if user is None or user.name != "item":
                    yield None
                else:
                    k = user.attrs["index"]
                    yield from _parts(user, where, items[k], (*path, k), at, readers)
        case _:
            stored = path and all(user is not None and user.name == "setitem"
                                  and user.inputs[1] is op.output
                                  and user.inputs.count(op.output) == 1
                                  for user, _ in readers[op.output])
            yield Read(op, block, path, at) if stored else None


def _extents(nest: Nest, scope: list[Value]) -> list[list[Callable[[], Value]]] | None:
    """For each leaf, emitters of its extents from values known before the nest; None where an
    extent is not known.
    """
    found = []
    for _, type in nest.leaves:
        match type:
            case Scalar(dtype) if dtype is not None:
                found.append([])
            case Array(dtype, dims) if dtype is not None:
                found.append([_extent(d, scope) for d in dims])
            case _:
                return None
    return None if any(None in sizes for sizes in found) or not found else found


def _extent(dim: int | Extent, scope: list[Value]) -> Callable[[], Value] | None:
    if isinstance(dim, int):
        return lambda: value(dim)
    found = _known_length(dim, scope) if not dim.accepts_any else None
    if found is None and dim.offset:
        whole = _known_length(replace(dim, offset=0), scope)
        found = whole and (lambda: longer_by(whole(), dim.offset))
    return found


def _known_length(dim: Extent, scope: list[Value]) -> Callable[[], Value] | None:
    """Return the length of an array in `scope` that has this extent."""
    for v in scope:
        if isinstance(v.type, Array) and dim in v.type.dims:
            return lambda: length(v, axis=v.type.dims.index(dim))
    return None


# ------------------------------------------------------------------------------------ making arrays


def _make_arrays(function: Function, block: Block, scope: list[Value],
                 nest: Nest) -> dict[Value, Value]:
    """Replace the list by arrays; return the replacements of the values read from it."""
    everything = [v for inner in blocks_of(function.block) for v in defined_values(inner)]
    outermost, innermost = nest.loops[0][0], nest.loops[-1][0]
    name = nest.list.name
    with Builder(Block(), outermost.line, above=everything) as builder:
        trips = [_trips(op) for op, _ in nest.loops]
        held = [empty(value((*trips, *(make() for make in sizes))), dtype=type.dtype)
                for sizes, (_, type) in zip(_extents(nest, scope), nest.leaves)]
        for array in held:
            array.name = name
    _insert(block, outermost, builder.block.ops)
    types = [array.type for array in held]
    for op, out in nest.loops:
        k = op.outputs.index(out)
        op.inputs[3 + k:4 + k] = held
        held = [Value(type, name) for type in types]
        op.blocks[0].params[1 + k:2 + k] = held
    with Builder(Block(), nest.push.line, above=everything) as builder:
        index = tuple(_trip(op) for op, _ in nest.loops)
        written = [put(array, index, _member(nest.push.inputs[1], path))
                   for array, (path, _) in zip(held, nest.leaves)]
    _replace(innermost.blocks[0], nest.push, builder.block.ops)
    for op, out in reversed(nest.loops):
        k = op.outputs.index(out)
        op.blocks[0].ops = [inner for inner in op.blocks[0].ops
                            if inner is not op.blocks[0].yields[k].op]
        op.blocks[0].yields[k:k + 1] = written
        written = [Value(type, name, op) for type in types]
        op.outputs[k:k + 1] = written
    results = dict(zip([path for path, _ in nest.leaves], written))
    return dict(_replacement(read, results, trips[0], everything) for read in nest.reads)


def _replacement(read: Read, results: dict[tuple[int, ...], Value], trips: Value,
                 everything: list[Value]) -> tuple[Value, Value]:
    """Return the value of a read of the list, and its replacement."""
    with Builder(Block(), read.op.line, above=everything) as builder:
        match read.op.name:
            case "list_stack":
                (found,) = results.values()
            case "tape_len":
                found = trips
            case _:
                found = take(results[read.path], read.at)
    _replace(read.block, read.op, builder.block.ops)
    if not found.name and found.op in builder.block.ops:
        found.name = read.op.output.name
    return read.op.output, found


def _member(v: Value, path: tuple[int, ...]) -> Value:
    for k in path:
        v = item(v, index=k)
    return v


def _trips(op: Op) -> Value:
    """Emit the trip count of a loop."""
    lo, hi, step = op.inputs[0], op.inputs[1], op.inputs[2].constant
    span = hi - lo if step > 0 else lo - hi
    return at_least_zero(span if abs(step) == 1 else (span + (abs(step) - 1)) // abs(step))


def _trip(op: Op) -> Value:
    """Emit the number of the current trip."""
    lo, step, k = op.inputs[0], op.inputs[2].constant, op.blocks[0].params[0]
    offset = k - lo if step > 0 else lo - k
    return offset if abs(step) == 1 else offset // abs(step)


def _insert(block: Block, before: Op, ops: Sequence[Op]) -> None:
    k = block.ops.index(before)
    block.ops[k:k] = ops


def _replace(block: Block, op: Op, ops: Sequence[Op]) -> None:
    """Replace `op` by `ops`."""
    k = block.ops.index(op)
    block.ops[k:k + 1] = ops


# ------------------------------------------------------------------------------- copies that remain


def _drop_copies(function: Function) -> None:
    """Replace a copy loop `for k in range(n): a[k] = b[k]` over the whole length of both by b."""
    same = {}
    for op in walk(function.block):
        if (op.name != "for" or op.attrs["breaks"] or op.inputs[0].constant != 0
                or op.inputs[2].constant != 1):
            continue
        counter = op.blocks[0].params[0]
        for param, init, end, out in zip(op.blocks[0].params[1:], op.inputs[3:],
                                         op.blocks[0].yields, op.outputs):
            write = end.op
            read = (write.inputs[1].op if write is not None and write.name == "setitem"
                    and write.inputs[0] is param else None)
            if (read is not None and read.name == "getitem"
                    and write.attrs["pattern"] == read.attrs["pattern"] == ("i",)
                    and write.inputs[2:] == read.inputs[1:] == [counter]
                    and init.type.dtype == read.inputs[0].type.dtype
                    and _is_as_long(init, op.inputs[1])
                    and _is_as_long(_before(read.inputs[0]), op.inputs[1])):
                same[out] = read.inputs[0]
    substitute(function.block, same)


def _before(filled: Value) -> Value | None:
    """Return the initial value of what a loop filled."""
    op = filled.op
    return op.inputs[3 + op.outputs.index(filled)] if op is not None and op.name == "for" else None


def _is_as_long(array: Value | None, n: Value) -> bool:
    """Test whether an array was allocated for `n` items."""
    if array is None or array.op is None or array.op.name != "empty":
        return False
    size = array.op.inputs[0]
    size, n = (x.op.inputs[0] if x.op is not None and x.op.name == "at_least_zero" else x
               for x in (size, n))
    return size is n or _extent_measured(size) == _extent_measured(n) is not None


def _extent_measured(n: Value) -> int | Extent | None:
    if n.op is None or n.op.name != "length" or not isinstance(n.op.inputs[0].type, Array):
        return None
    extent = n.op.inputs[0].type.dims[n.op.attrs["axis"]]
    return None if getattr(extent, "accepts_any", False) else extent
