"""Find arrays that each trip of a loop computes anew, which are cheaper to tape whole than element
by element.

    for t in range(n):                              alpha_tape = np.empty((n + 1, S))
        new = np.zeros(S)                           for t in range(n):
        for j in range(S):                              alpha_tape[t] = alpha
            for i in range(S):            saves         ...
                new[j] += alpha[i] * A[i, j]        alpha_tape[n] = alpha
        alpha = new

Elements of an array that is overwritten are saved one by one (tape.py,
Note [Elements of arrays that change]): here S * S of them in a trip, each element S times.  Where
more loops are around a read than its indices count, `x[j, 0] - x[i, 0]` of all pairs, and a trip
makes all of the array, a copy of it takes less memory, and no longer than what the trip does
anyway.  All of it is made by `x = x + h * v`, by `x += h * v`, and by what is written wherever as
many loops go as it has axes, which are taken to reach its ends.  Where a trip writes a few elements
of it, a copy would be of another order.

Where as many loops as the array has axes go all through it, `u[i + 1] - 2 * u[i] + u[i - 1]` for
each i, it depends on how many numbers are computed of an element and saved: sweeps.py tries both,
and takes what is fewer bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ir.types import Array, Scalar
from ...ops.arrays.index import additem, getitem, setitem
from ...ops.arrays.index_pattern import expand
from ...ops.core.identities import base_offset


def replaced_arrays(function: Function) -> set[Value]:
    """Return the loop-carried arrays that each trip replaces by a new one, and never writes into.
    """
    loops = [op for op in walk(function.block) if op.name in ("for", "while")]
    carries = {param: (op, k) for op in loops
               for k, param in enumerate(op.blocks[-1].params[op.name == "for":])}
    written = {op.inputs[op.record.writes] for op in walk(function.block)
               if op.record.writes is not None}
    found = {param for param in carries if isinstance(param.type, Array) and param not in written}

    def end(param: Value) -> Value:
        op, k = carries[param]
        return op.blocks[-1].yields[k - len(op.outputs)]

    def is_new(v: Value) -> bool:
        if v in found or v.op is None:
            return v in found
        if v.op.name in ("for", "while"):
            params = v.op.blocks[-1].params
            return params[v.op.outputs.index(v) - len(v.op.outputs)] in found
        return (not v.op.blocks and not v.op.record.views and v.op.record.writes is None
                and v not in written)

    while gone := {param for param in found if not is_new(end(param))}:
        found -= gone
    return found


def reread_arrays(function: Function) -> set[Value]:
    """Return arrays that a trip computes whole, or the trip before has, with element reads inside
    more loops than they have indices.
    """
    found = set()
    for body, carried in loop_bodies(function):
        ends = carried | {v: v for op in body.ops for v in op.outputs if isinstance(v.type, Array)
                          and (op.blocks or op.record.writes is not None)}
        reads = element_reads(body) if ends else ()
        often = {op.inputs[0] for op, depth in reads
                 if depth > sum(i.constant is MISSING for i in op.inputs[1:])}
        found |= {x for x in often if x in ends and is_made_in(body, ends[x])}
    return found


def read_throughout(function: Function) -> set[Value]:
    """Return loop-carried arrays that each trip computes whole, and all of whose elements it reads,
    in as many loops as they have axes.
    """
    return {param for body, carried in loop_bodies(function) for param, end in carried.items()
            if reads_throughout(body, param, ()) and is_made_in(body, end)}


def loop_bodies(function: Function) -> Iterator[tuple[Block, dict[Value, Value]]]:
    """Yield the loop bodies, each with the arrays that it carries and their values at the end of a
    trip.
    """
    for loop in walk(function.block):
        if loop.name in ("for", "while"):
            body, count = loop.blocks[-1], len(loop.outputs)
            carried = zip(body.params[len(body.params) - count:],
                          body.yields[len(body.yields) - count:])
            yield body, {param: end for param, end in carried if isinstance(param.type, Array)}


def reads_throughout(block: Block, array: Value, loops: tuple[Op, ...]) -> bool:
    """Test whether `block`, in these `loops`, or a loop in it reads an element of `array` inside as
    many loops as it has axes, each as long as an axis.
    """
    for op in block.ops:
        if (op.record is getitem and op.inputs[0] is array and isinstance(op.output.type, Scalar)
                and len(loops) == array.type.rank):
            counters = {each.blocks[0].params[0]: each for each in loops}
            places = [base_offset(i)[0] for i in op.inputs[1:]]
            if set(places) == counters.keys() and all(is_as_long(counters[i], array, k)
                                                      for k, i in enumerate(places)):
                return True
        if (op.name == "for" and len(loops) < array.type.rank
                and reads_throughout(op.blocks[0], array, (*loops, op))):
            return True
    return False


def is_as_long(loop: Op, array: Value, axis: int) -> bool:
    """Test whether the trip count of `loop` is the length of the axis, up to a constant."""
    ends = [base_offset(x) for x in loop.inputs[:2]]
    dim = array.type.dims[axis]
    if sum(base is None for base, _ in ends) != 1 or loop.inputs[2].constant not in (1, -1):
        return isinstance(dim, int) and all(base is None for base, _ in ends)
    ((base, _),) = (end for end in ends if end[0] is not None)
    return (base.op is not None and base.op.name == "length"
            and base.op.inputs[0].type.dims[base.op.attrs["axis"]] == dim)


def element_reads(body: Block, depth: int = 0) -> Iterator[tuple[Op, int]]:
    """Yield the element reads of an array in `body`, with the number of loops around each."""
    for op in body.ops:
        if op.record is getitem and isinstance(op.output.type, Scalar):
            yield op, depth
        for inner in op.blocks:
            yield from element_reads(inner, depth + (op.name != "if"))


def is_made_in(body: Block, v: Value, loops: tuple[Op, ...] = ()) -> bool:
    """Test whether `body`, in these `loops` of a trip, computes all of the array `v`: by allocating
    it, or by writing all of it.
    """
    own = {x for op in walk(body) for x in op.outputs}
    while v in own:
        op = v.op
        if op.record.writes is not None:
            if is_of_all(op, loops):
                return True
            v = op.inputs[op.record.writes]
        elif op.name in ("for", "while"):
            k, inner = op.outputs.index(v), op.blocks[-1]
            if (op.name == "for" and not op.attrs["breaks"]
                    and is_made_in(inner, inner.yields[k], (*loops, op))):
                return True
            v = op.inputs[len(op.inputs) - len(op.outputs) + k]
        elif op.name == "if":
            k = op.outputs.index(v)
            return all(is_made_in(body, block.yields[k], loops) for block in op.blocks)
        else:
            return not op.blocks and not op.record.views and op.name != "call"
    return False


def is_of_all(write: Op, loops: tuple[Op, ...]) -> bool:
    """Test whether these loops write all of the array, each along one axis, as far as their indices
    can reach.

    A slice of an axis needs no loop; three columns are as good as one, but three elements of a
    vector are not all of it.
    """
    if write.record not in (setitem, additem):
        return False
    counters = {loop.blocks[0].params[0]: loop for loop in loops}
    dims, places = write.output.type.dims, [base_offset(i)[0] for i in write.inputs[2:]]
    moving = [place for place in places if place is not None]
    axes = expand(write.attrs["pattern"], len(dims))
    if (not set(axes) <= {"i", "..."} or len(set(moving)) < len(moving)
            or not counters.keys() >= set(moving)):
        return False
    few = [place is None or all(x.constant is not MISSING for x in counters[place].inputs[:2])
           for place in places]
    along = [dim for axis, dim in zip(axes, dims, strict=True) if axis == "i"]
    return (sum(is_one and not isinstance(dim, int) for is_one, dim in zip(few, along, strict=True))
            < len(dims))
