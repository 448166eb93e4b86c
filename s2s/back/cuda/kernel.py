"""Emit one nest of loops as a CUDA kernel with a thread, or a team of threads, for each trip.

    for lane in range(n):            @cuda.jit
        x[lane] = f(a[lane])         def f_kernel(n, a, x):
                                         n = uint32(n)
                           becomes       lane = uint32(cuda.grid(1))
                                         stride = uint32(cuda.gridsize(1))
                                         while lane < n:
                                             x[lane] = f(a[lane])
                                             lane = uint32(lane + stride)

The loop's body is emitted again as a function of what it reads, in the spelling that numba.cuda
compiles, printed by the printer, and its head replaced. Indices are unsigned and of 32 bits: signed
ones cost ten times the instructions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Set
from dataclasses import dataclass, field

from ...analysis.alias import Memory
from ...analysis.dependence import Trip
from ...ir.builder import Builder, add_op, emit
from ...ir.graph import Block, Function, Op, Value, free_values, walk
from ...ir.types import INT, Array, Extent, Scalar, Type
from ...ops.core.control import for_loop
from ...ops.core.record import RECORDS, Record, value
from ..print.printer import definition
from .block_reductions import STEPS, identity_value, reduction_by
from .device_ops import (
    given,
    index_quotient,
    index_remainder,
    lane_row,
    local_array,
    signed,
    team_number,
    unsigned,
)
from .grid_stride import spread_over_threads
from .nests import Nest, Roles, is_single, private_arrays, team_loops
from .thread_body import (
    Body,
    Team,
    arrays_made,
    growing_arrays,
    is_argument,
    item_of,
    known,
    lengths_outside,
    placeable,
)

# names used by the kernels' module: host.py, grid_stride.py
CUDA_NAMES = frozenset({"cuda", "boolean", "float32", "float64", "int64", "uint32", "THREADS",
                        "BLOCKS", "TEAMS", "ROOM", "STREAM",
                        "blocks_of", "teams_of", "number", "to_numpy", "cp", "config", "given",
                        "teams_in", "room_for", "add_parts", "meet",
                        *(f"{reduction_by(step)[0]}_of" for step in STEPS)})
LOCAL = 64  # most numbers in arrays that a thread has of its own
THREADS = 128  # threads in a block; sums are added up in a tree, so a power of two


@dataclass
class Kernel:
    """A kernel: its syntax tree, its arguments on the host, and its results."""

    name: str
    tree: ast.FunctionDef
    reads: list[Value]  # values of the host that are its first arguments
    types: list[Type]  # of all its arguments
    writes: dict[str, Value] = field(default_factory=dict)  # by key: the arrays it writes, in order
    grows: bool = False  # whether it has tapes, of a capacity that may turn out too small
    # by carry that is a tape of lanes: what trips do with it, "push" or "pop"
    lane_tapes: dict[int, str] = field(default_factory=dict)
    shared: list[Op] = field(default_factory=list)  # loops that the threads of a team share
    has_local: bool = False  # whether a thread has arrays of its own
    private: list[int] = field(default_factory=list)  # carries of which each team has an array
    # by carry: the op that combines what blocks make of it, and its dtype
    parts: dict[int, tuple[Record, str]] = field(default_factory=dict)
    steps: set[tuple[Record, str]] = field(default_factory=set)  # what threads combine numbers by
    # by key: the lengths of an array that has one of each lane's, None for the number of lanes
    rooms: dict[str, list[Value | int | tuple[Value, int] | None]] = field(default_factory=dict)


def parallel_kernel(nest: Nest, name: str, roles: Roles, memory: Memory,
                    device: Set[Value] = frozenset()) -> Kernel:
    """The kernel whose threads make the trips of a nest; numbers of `device` are in arrays of one.

    Its arguments: the number of trips, the values the nest reads, the arrays it writes, and for
    each number that trips combine an array for what each block makes of it; for tapes, their
    capacity and the room needed.
    """
    outer, body = nest.loops[0], nest.loops[0].blocks[0]
    bounds = [outer.inputs[0], *(x for loop in nest.loops[1:] for x in loop.inputs[:2])]
    read = [v for v in dict.fromkeys([*free_values(body), *bounds]) if is_argument(v)]
    count = Value(INT, "n")
    params = [Value(Array(v.type.dtype, (1,)) if v in device else v.type, v.name) for v in read]
    env = dict(zip(read, params))
    block = Block([count, *params])
    kernel = Kernel(name, None, read, [INT, *(p.type for p in params)])
    with Builder(block):
        env.update(numbers_in(env, device))
        work = Body(env)
        env.update((v, known(v)) for v in {*free_values(body), *bounds} if not is_argument(v))
        tapes = [op.output for op in walk(body) if op.name == "tape_new"]
        work.host_values.update(free_values(nest.body))
        kernel.lane_tapes = {k: role for k, role in enumerate(nest.roles)
                             if role in ("push", "pop")}
        kernel.grows = (bool(tapes) or "push" in kernel.lane_tapes.values()
                        or bool(growing_arrays(nest.body)))
        if kernel.grows:
            work.capacity = Value(INT, "capacity")
            block.params.append(work.capacity)
            kernel.types.append(INT)
            work.needed = _given(kernel, "needed", Array("int64", (1,)), "needed")
        inner = [tape for tape in tapes if tape.op not in nest.body.ops]
        for k, tape in enumerate(tapes):
            label = f"{tape.name or 'tape'}{'_columns' if tape in inner else ''}"
            work.columns[tape] = _given(kernel, f"tape {k}", columns_of(item_of(body, tape)), label)
        tapes = [tape for tape in tapes if tape not in inner]
        counts = [_given(kernel, counts_key(k), Array("int64", (Extent("n"),)),
                         f"{outer.outputs[k].name or 'tape'}_counts") for k in kernel.lane_tapes]
        add_rooms(kernel, work, nest.body)
        if not (kernel.grows or kernel.lane_tapes or kernel.rooms or kernel.has_local
                or is_single(outer)):
            kernel.shared = team_loops(nest.body, roles, set(read))
        if kernel.shared:
            work.team = Team({loop: roles.of(loop) for loop in kernel.shared}, memory)
            team = emit(team_number)
            team.name = "team"
            kernel.private = private_arrays(nest, kernel.shared, roles)
        starts = [*(work.columns[tape] for tape in tapes), *counts]
        own = len(starts)
        for k, (role, param) in enumerate(zip(nest.roles, body.params[1:])):
            label = param.name or "out"
            if isinstance(role, Record):
                starts.append(identity_value(role, param.type.dtype))
            elif k in kernel.lane_tapes:
                tape = outer.outputs[k] if role == "push" else param
                starts.append(_given(kernel, tape_key(k), columns_of(tape.type.item),
                                     tape.name or "tape"))
            elif k in kernel.private:
                type = Array(param.type.dtype, (Extent("teams"), *param.type.dims))
                starts.append(_given(kernel, k, type, f"{label}_parts"))
            else:
                starts.append(_given(kernel, k, param.type, label))
                if role == "gather":
                    work.gather_into(Trip(body), param)
        for k in kernel.private:  # all arrays have names of their own now
            row = starts[own + k] = emit(lane_row, starts[own + k], team)
            row.name = body.params[1 + k].name
        trips = [unsigned(trip_count(loop, env)) for loop in nest.loops[1:]]
        carried = nest.carried

        def trip(index: Value, *carries: Value) -> list[Value]:
            work.lane = lane = (count - 1 - index if "pop" in kernel.lane_tapes.values()
                                else index)  # the one that its tapes have been filled by
            work.columns.update(zip(tapes, carries))
            counts = dict(zip(kernel.lane_tapes, carries[len(tapes):]))
            indices: list[Value] = []
            for n in reversed(trips):
                indices.insert(0, signed(index_remainder(index, n)))
                index = index_quotient(index, n)
            for loop, i in zip(nest.loops, [signed(index) if trips else index, *indices]):
                counter = loop.blocks[0].params[0]
                env[counter] = first_plus(loop, env, i)
                if not env[counter].name:
                    env[counter].name = counter.name
            inner = dict(zip(carried, carries[own:]))
            args = [inner[k] for k in range(len(carried))]
            for loop in nest.loops[:-1]:  # whose arrays only lengths are read of
                env.update(zip(loop.blocks[0].params[1:], carries[own:]))
            for k, role in kernel.lane_tapes.items():
                tape, start = body.params[1 + k], value(0)
                if role == "pop":
                    start = RECORDS["getitem"](counts[k], lane, pattern=("i",))
                    start.name = f"{tape.name or 'tape'}_count"
                work.version(tape, tape, (args[k], start))
            ends = work.block(Block(nest.body.params[1:], [*nest.before, *nest.body.ops],
                                    nest.body.yields), args)
            for k, role in kernel.lane_tapes.items():
                ends[k], left = work.tapes[body.yields[k]]
                if role == "push":
                    counts[k] = RECORDS["setitem"](counts[k], left, lane, pattern=("i",))
            return [*(work.latest[tape] for tape in tapes), *counts.values(),
                    *(ends[k] for k in carried)]

        names = [start.name for start in starts[:own]] + [p.name for p in body.params[1:]]
        outs = for_loop(0, count, 1, starts, trip, names=names,
                        index="thread" if trips else body.params[0].name or "i")[own:]
        sums = [k for k, role in enumerate(nest.roles) if isinstance(role, Record)]
        block.yields = [*(outs[k] for k in sums),
                        *(out for k, out in enumerate(outs) if k not in sums)]
    tree = definition(Function(name, block, tupled=True), native=True, reserved=CUDA_NAMES)
    kernel.parts = {k: (nest.roles[k], outer.outputs[k].type.dtype) for k in sums}
    kernel.tree = spread_over_threads(tree, kernel, bool(trips))
    kernel.types += [Array(dtype, (Extent("blocks"),)) for _, dtype in kernel.parts.values()]
    kernel.steps = {*kernel.parts.values(), *((role, p.type.dtype) for loop in kernel.shared
                                              for role, p in zip(roles.of(loop), loop.outputs)
                                              if isinstance(role, Record))}
    return kernel


def trip_count(loop: Op, env: dict[Value, Value]) -> Value:
    """How many trips `loop` makes."""
    low, high = (env.get(x, x) for x in loop.inputs[:2])
    if loop.inputs[2].constant == -1:
        low, high = high, low
    return high if low.constant == 0 else high - low


def first_plus(loop: Op, env: dict[Value, Value], k: Value) -> Value:
    """The counter of `loop` in trip `k`."""
    low = env.get(loop.inputs[0], loop.inputs[0])
    if loop.inputs[2].constant == -1:
        return low - k
    return k if low.constant == 0 else k + low


def add_rooms(kernel: Kernel, work: Body, body: Block) -> None:
    """Give `work` memory for each array that a lane allocates: a thread's own if it is short, or
    one of the kernel's arguments, of which the last axis is that of the lanes if possible.
    """
    made = arrays_made(body)
    in_columns = placeable(body, made)
    short = 0
    for k, op in enumerate(made):
        type, name = op.output.type, op.output.name or "t"
        size = math.prod(d if isinstance(d, int) else LOCAL + 1 for d in type.dims)
        if short + size <= LOCAL:
            short += size
            work.rooms[op.output] = emit(local_array, type=type)
            work.rooms[op.output].name = f"{name}_own"
            kernel.has_local = True
            continue
        lengths = lengths_outside(op, body)
        if lengths is None:  # as much as on a tape
            work.columns_of[op.output] = _given(kernel, f"growing {k}", columns_of(type),
                                                f"{name}_columns")
            continue
        if op in in_columns:
            dims, kernel.rooms[f"room {k}"] = (*type.dims, Extent("n")), [*lengths, None]
        else:
            dims, kernel.rooms[f"room {k}"] = (Extent("n"), *type.dims), [None, *lengths]
        room = _given(kernel, f"room {k}", Array(type.dtype, dims),
                      f"{name}_columns" if op in in_columns else f"{name}_rows")
        (work.columns_of if op in in_columns else work.rooms)[op.output] = room


def numbers_in(env: dict[Value, Value], device: Set[Value]) -> dict[Value, Value]:
    """Read the numbers that kernels are passed in arrays of one, those of `device`."""
    found = {v: RECORDS["getitem"](cell, value(0), pattern=("i",)) for v, cell in env.items()
             if v in device}
    for v, x in found.items():
        x.name = v.name
    return found


def columns_of(item: Scalar) -> Array:
    """The type of an array that has a tape of such items of each lane as a column."""
    return Array(item.dtype, (Extent("capacity"), Extent("n")))


def tape_key(k: int) -> str:
    """The key of the array of tapes that are carry `k` of a loop."""
    return f"lane tape {k}"


def counts_key(k: int) -> str:
    """The key of the array that says how much each lane has on those tapes."""
    return f"counts {k}"


def _given(kernel: Kernel, key, type: Type, name: str) -> Value:
    op = add_op(given, [], {"type": type, "key": key}, [type], names=[name])
    kernel.writes[key] = op.output
    return op.output
