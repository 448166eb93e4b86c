"""Batching (vmap): turn a function of one lane into a function of many lanes.

    f(*xs) -> *ys    becomes    f_vmap(*xs) -> *ys    with one more axis on the batched xs and ys

In two manners that meet.  *Array style*: a batched value is an array with one more, leading, axis;
each op is emitted once, for all lanes, as its record's `batch` says; loops and branches that all
lanes take alike stay as they are.  *Lane style*: what lanes do differently runs in `for lane in
range(lanes)`, as the user wrote it, each lane taking its own branch and its own number of trips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from ...analysis.divergence import (
    Lanes,
    batched_results,
    has_results_of_unknown_length,
    lanes_are_threads,
)
from ...analysis.side_effects import maybe_unbound, without_shape
from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import Builder, at, current, emit, in_scope
from ...ir.graph import (
    MISSING,
    Block,
    Function,
    Meeting,
    Op,
    Value,
    free_values,
    op_free_values,
    walk,
)
from ...ir.reemit import clone, emit_block, emit_op, rebuild
from ...ir.types import (
    Array,
    Extent,
    Generator,
    List,
    Scalar,
    Static,
    Tape,
    Tuple,
    Type,
    Undefined,
    Unknown,
    carries_derivative,
)
from ...ops.arrays.axes import moveaxis
from ...ops.arrays.create import arange, empty, zeros
from ...ops.arrays.index import put, take
from ...ops.arrays.reduce import sum_
from ...ops.core.batch_rules import align, batched_over, same_lanes
from ...ops.core.control import (
    call,
    for_loop,
    if_,
    item,
    make_undefined,
    packed,
    tape_push,
    while_loop,
)
from ...ops.core.elementwise import max_
from ...ops.core.record import RECORDS, dims_of, dtype_of, rank, value
from ...ops.core.shape import extent_of, length, shaped_like
from ...ops.program.checkpoint import Rerun
from ...ops.program.collectives import axis_extent, first_collective
from ...ops.program.custom_rules import Halves, differentiable_arguments, is_ruled
from ...ops.program.list_arrays import list_stack, one_shape
from ...ops.program.list_ops import list_get, list_of
from ...ops.program.outside_writes import write_outside
from ...ops.program.recursive_callee import Recursive, calls_itself
from ...ops.program.workers import (
    Share,
    between_workers,
    by_leaf,
    from_lanes,
    of_one_worker,
    to_lanes,
)
from ...ops.program.workers import gathered as all_lanes
from ...ops.program.workers import mine as my_lanes
from ..cleanup.inline import inline_all, inline_where
from ..cleanup.tables import finished_callee


def vmap(function: Function, in_axes: Sequence[int | None], out_axes,
         types: Sequence[Type] | None = None, each_writes: bool = False,
         axis_name: Hashable | None = None, axis_size: int | None = None,
         workers: Hashable | None = None, calls: Callable | None = None) -> Function:
    """Transform `f(*xs) -> *ys` to `f_vmap(*xs) -> *ys`, in which each x has its axis in `in_axes`
    in addition.

    `function` is typed for one lane; parameters that `in_axes` does not reach are shared by all
    lanes.  `out_axes` is one axis, or one per result; None for a result that is the same in every
    lane.  `types` are those of the arguments, all lanes together, where they are known.  With
    `each_writes`, each lane writes into captured objects, also what is the same in all of them.
    Collectives over `axis_name` are over the lanes, of which there are `axis_size`, if it is given.
    Arrays of which only a run tells the shape are gathered in lists: as long in all lanes, or a
    ValueError.  With `workers`, each of so many takes some of the lanes, and all have the results
    (ops/program/workers.py).  `calls(callee, flags)` is what computes all lanes' calls of a
    recursive function, where these arguments are batched (recursive_calls.py), or None: each lane
    makes its own.
    """
    if any(op.name == "call" and (lanes_are_threads() or has_results_of_unknown_length(op))
           for op in walk(function.block)):
        # its results may be ragged: analysis/divergence.py, Note [Ragged values]
        function = inline_all(function)
    if axis_name is not None:
        function = inline_meetings(function, axis_name)
    if workers is not None:
        function = with_one_worker(function)
    if each_writes:
        require_no_turns(function)
    axes = [*in_axes, *[None] * (len(function.params) - len(in_axes))]
    if isinstance(out_axes, int) or out_axes is None:
        out_axes = [out_axes] * len(function.results)
    if len(out_axes) != len(function.results):
        raise TypeMismatchError(f"{function.name} has {len(function.results)} results and out_axes "
                                f"{len(out_axes)} entries",
                                remedy="give one entry, or one for each result")
    roots = [p for p, axis in zip(function.params, axes) if axis is not None]
    if not roots and axis_size is None:
        raise TypeMismatchError("vmap with no batched argument",
                                remedy="give in_axes at least one axis, or say axis_size")
    if types is None:
        extent = lane_extent([function])
        types = [p.type if axis is None else batched_type(p.type, extent, axis)
                 for p, axis in zip(function.params, axes)]
    types = [*types, *(p.type for p in function.params[len(types):])]

    def batches(op: Op, flags: tuple[bool, ...]) -> bool:
        return calls is not None and calls(op.attrs["callee"], flags) is not None

    lanes = Lanes(function, roots, each_writes, axis_name, batches)
    if lanes.unlike_draw is not None:
        raise UnsupportedError("lanes that draw differently from one generator, in a Jacobian or "
                               "in a rule", lanes.unlike_draw.line,
                               "draw before the call, and pass what was drawn")
    return Batched(function, lanes, axis_size, workers, calls).function(types, axes, out_axes)


def inline_meetings(function: Function, name: Hashable) -> Function:
    """Inline the calls of functions in which lanes meet: their lanes are the caller's."""
    def wanted(callee: Function, *_) -> bool:
        return first_collective(callee.block.ops, name) is not None

    found = inline_where(function, wanted)
    for op in walk(found.block):
        if (op.name == "call" and calls_itself(op.attrs["callee"])
                and first_collective([op], name) is not None):
            raise UnsupportedError(f"a collective over {name!r} in a function that calls itself",
                                   op.line, "write a loop")
    return found


def with_one_worker(function: Function) -> Function:
    """Let each worker that has lanes of `function` do all the work of a pmap inside."""
    if next(between_workers(function), None) is None:
        return function
    found = inline_where(function, lambda callee, *_: next(between_workers(callee), None)
                         is not None)
    return rebuild(found, rule=of_one_worker)


def require_no_turns(function: Function) -> None:
    """Refuse a function that reads what it writes outside: lanes would take turns."""
    for op in walk(function.block):
        if op.record is write_outside and op.attrs["write"].carries:
            raise UnsupportedError(
                "vmap of a function that writes to an object outside what it has read there: each "
                "lane would go on from the one before", op.line,
                "return the new value of each lane, and write after the call")


AS_MANY = "give all batched arguments equally many lanes"


def lane_extent(functions: Iterable[Function], name: str = "lanes") -> Extent:
    """Create the extent of the lane axis: a symbol that the functions' parameters do not use yet.
    """
    used = {d.symbol for function in functions for p in function.params for d in dims_of(p.type)
            if isinstance(d, Extent)}
    symbol, k = name, 1
    while symbol in used:
        k += 1
        symbol = f"{name}_{k}"
    return Extent(symbol)


class Batched:
    """The emitter of a function for all lanes.  `env` maps values of one lane to arrays of all
    lanes.
    """

    def __init__(self, lane: Function, lanes: Lanes, axis_size: int | None = None,
                 workers: Hashable | None = None, calls: Callable | None = None):
        self.lane, self.lanes, self.axis_size, self.workers = lane, lanes, axis_size, workers
        self.calls = calls
        self.env: dict[Value, Value] = {}
        self.count: Value | None = None  # of lanes: those of one worker, if `workers` share them
        self.share: Share | None = None
        self.sources: dict[Extent, Value] = {}  # a value that has the extent
        self.shapeless = without_shape(lane.block, maybe_unbound(lane))

    def function(self, types: Sequence[Type], in_axes: Sequence[int | None],
                 out_axes: Sequence[int | None]) -> Function:
        lane = self.lane
        params = [Value(type, p.name) for p, type in zip(lane.params, types, strict=True)]
        block, counts, first = Block(params), [], None
        with Builder(block):
            for old, new, axis in zip(lane.params, params, in_axes):
                if axis is not None:
                    new = to_front(new, axis)
                    counts.append(lane_count(new))
                    if first is None:
                        first = new
                    else:
                        require_as_many(counts[0], counts[-1], new)
                        # their results have as many lanes
                        if isinstance(first.type, Array) and isinstance(new.type, Array):
                            new = shaped_like(new, first, leading=1)
                self.env[old] = new
            self.count = counts[0] if counts else None
            if self.axis_size is not None:
                given, self.count = self.count, value(self.axis_size)
                if given is not None:
                    require_size(given, self.count)
            if self.workers is not None:
                self.share_lanes([p for p, axis in zip(lane.params, in_axes) if axis is not None])
            self.emit_ops(lane.block, lane.results)
            block.yields = [self.result(y, axis)
                            for y, axis in zip(lane.results, out_axes, strict=True)]
            meetings = [Meeting(extent_of(counts[0]), extent_of(n), False, None, AS_MANY)
                        for n in counts[1:]]
        suffix = "_vmap" if self.workers is None else "_pmap"
        return lane.remade(block, name=f"{lane.name}{suffix}",
                           meetings=(*meetings, *lane.meetings))

    def share_lanes(self, batched: Sequence[Value]) -> None:
        """Take the lanes of this worker of the `batched` parameters; all workers share others."""
        count = self.count
        for x in self.lane.params:
            self.env[x] = by_leaf(self.env[x], lambda leaf, x=x: (
                my_lanes(leaf, workers=self.workers, inside=False) if x in batched
                else to_lanes(leaf, count, workers=self.workers)))
        mine = (lane_count(self.env[batched[0]]) if batched else
                length(my_lanes(arange(count), workers=self.workers, inside=False), axis=0))
        self.share, self.count = Share(count, mine, self.workers), mine

    def gathered(self, y: Value, axis: int | None) -> Value:
        """Emit a result of all lanes, of what each worker has of it."""
        if self.share is None:
            return y
        own = {"workers": self.workers}
        return by_leaf(y, lambda x: from_lanes(x, self.share.all, **own) if axis is None
                       else all_lanes(x, self.share.all, inside=False, **own))

    def result(self, y: Value, axis: int | None) -> Value:
        if isinstance(y.type, Undefined):  # it raises
            return self.env[y]
        if axis is None:
            if y in self.lanes.batched:
                raise TypeMismatchError(f"{y.name or 'a result'} differs from lane to lane and has "
                                        "out_axes None", remedy="give it an axis in out_axes")
            return self.gathered(self.env[y], None)
        found = self.for_all_lanes(y)
        if y in self.lanes.handed_on and not isinstance(y.type, List):
            found = self.stacked(found)
        return from_front(self.gathered(found, axis), axis)

    def for_all_lanes(self, x: Value, type: Type | None = None) -> Value:
        """Broadcast `x` along the axis of lanes if it lacks it; `type` is its type in one lane."""
        new = self.env[x]
        if x in self.lanes.batched or x in self.lanes.handed_on:
            return new
        if isinstance(new.type, Undefined) and isinstance(type, Scalar):
            # a tape may have a row of all lanes for it, as it has a number in one lane
            return zeros(self.count, dtype=type.dtype)
        return spread_over_lanes(new, self.count, dtype_of(type or x.type))

    # ops in order

    def block(self, block: Block, args: Sequence[Value]) -> list[Value]:
        self.env.update(zip(block.params, args, strict=True))
        self.emit_ops(block, block.yields)
        return [self.env[y] for y in block.yields]

    def emit_ops(self, block: Block, yields: Sequence[Value]) -> None:
        regions = self.lanes.regions(block)
        last: dict[Value, float] = {}  # the index of the last op that reads each value
        for k, op in enumerate(op for region in regions for op in region.ops):
            last.update(dict.fromkeys(op_free_values(op), k))
        last.update(dict.fromkeys(yields, math.inf))
        done = 0
        for region in regions:
            if region.divergent:
                done += len(region.ops)
                self.lane_loop(region.ops, lambda v: last.get(v, -1) >= done)
                continue
            for op in region.ops:
                done += 1
                with at(op.line):
                    if not self.op(op):  # no rule for these operands
                        self.lane_loop([op], lambda v: last.get(v, -1) >= done)

    # array style

    def op(self, op: Op) -> bool:
        """Emit one op for all lanes; return False if it has no batching rule for these operands."""
        if not self.lanes.is_batched(op):
            emit_op(op, self.env)
            return True
        match op.name:
            case _ if self.lanes.is_collective(op):
                outs = self.collective(op)
            case "if":
                outs = self.branch(op)
            case "for" | "while":
                outs = self.loop(op)
            case "call":
                outs = self.call(op)
            case "tuple":
                outs = packed([self.for_all_lanes(x) for x in op.inputs], op.output.type.form)
            case "item":
                outs = item(self.env[op.inputs[0]], **op.attrs)
            case _ if op.record.asks_extents:
                outs = self.shape_of_lane(op)
            case "tape_push":
                outs = tape_push(self.env[op.inputs[0]], self.for_all_lanes(op.inputs[1]))
            case _ if op.record.on_tapes or op.name == "tape_len":
                emit_op(op, self.env)
                return True
            case _:
                outs = self.simple(op)
        if outs is None:
            return False
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        for old, new in zip(op.outputs, outs, strict=True):
            if old.name and not new.name and new.op is not None:
                new.name = old.name
            self.env[old] = new
        return True

    def simple(self, op: Op):
        flags = tuple(x in self.lanes.batched for x in op.inputs)
        inputs = [self.env[x] for x in op.inputs]
        if not op.record.elementwise:
            if any(isinstance(x.type, Unknown) for x in op.inputs):
                return None  # rules count axes
            return op.record.batch(flags, *inputs, **op.attrs)
        ranks = [rank(x) for x in op.inputs]
        if None in ranks:
            return None
        aligned = [align(x, own, max(ranks)) if flag else x
                   for x, flag, own in zip(inputs, flags, ranks)]
        out = (op.record.batch or op.record)(*aligned, **op.attrs)
        if out is None:
            return None
        dtype = dtype_of(op.output.type)
        if dtype is not None and dtype != dtype_of(out.type) and out.constant is MISSING:
            # a Python number is weaker in promotion than a batch of them
            return RECORDS["astype"](out, dtype=dtype)
        return out

    def collective(self, op: Op):
        """Emit what an op over the axis of lanes is for all of them."""
        flags = tuple(x in self.lanes.batched for x in op.inputs)
        if self.share is not None:
            return self.share.across(op, flags, [self.env[x] for x in op.inputs])
        attrs = {key: x for key, x in op.attrs.items() if key != "name"}
        return op.record.across(self.count, flags, *(self.env[x] for x in op.inputs), **attrs)

    def shape_of_lane(self, op: Op):
        """Emit the shape of one lane, which all lanes share."""
        (x,) = op.inputs
        lengths = tuple(self.length(x, k) for k in range(rank(x)))
        if op.name == "length":
            return lengths[op.attrs["axis"]]
        if op.name == "shape":
            return value(lengths)
        product = value(1)
        for n in lengths:
            product = product * n
        return product

    def length(self, x: Value, axis: int) -> Value:
        """Emit a length that all lanes share; `x` may be emitted later, in the loop over lanes
        being gathered.
        """
        if x in self.env:
            return length(self.env[x], axis=axis + (x in self.lanes.batched))
        extent = x.type.dims[axis]
        return value(extent) if isinstance(extent, int) else self.extent(extent, x.name)

    def branch(self, op: Op):
        """Emit a branch that all lanes take alike."""
        def emitted(branch: Block) -> Callable:
            def run() -> list[Value]:
                self.block(branch, [])
                return [self.for_all_lanes(y, out.type) if out in self.lanes.batched
                        else self.env[y] for y, out in zip(branch.yields, op.outputs)]
            return run

        return if_(self.env[op.inputs[0]], emitted(op.blocks[0]), emitted(op.blocks[1]),
                   [o.name for o in op.outputs])

    def loop(self, op: Op):
        """Emit a loop with the same trips in all lanes."""
        body = op.blocks[-1]
        skip, extra = (3, 1) if op.name == "for" else (0, 0)
        params, stops = body.params[extra:], 1 if op.attrs["breaks"] else 0
        starts = [self.for_all_lanes(x, p.type) if p in self.lanes.batched else self.env[x]
                  for x, p in zip(op.inputs[skip:], params)]

        def step(*args: Value) -> list[Value]:
            self.block(body, args)
            ends = [self.for_all_lanes(y, p.type) if p in self.lanes.batched else self.env[y]
                    for y, p in zip(body.yields[stops:], params)]
            return [self.env[y] for y in body.yields[:stops]] + ends

        names, breaks, plan = [p.name for p in params], op.attrs["breaks"], op.attrs.get("plan")
        if op.name == "for":
            bounds = [self.env[x] for x in op.inputs[:3]]
            return for_loop(*bounds, starts, step, breaks, names, body.params[0].name, plan)
        return while_loop(starts, lambda *c: self.block(op.blocks[0], c)[0], step, breaks, names,
                          plan)

    def call(self, op: Op):
        """Emit a call of the callee's own batched version."""
        flags = tuple(x in self.lanes.batched for x in op.inputs)
        callee = op.attrs["callee"]
        if isinstance(callee, Recursive):
            return self.recursive_call(self.calls(callee, flags), op)
        kind = BatchedRules if is_ruled(callee) else BatchedCallee
        types = tuple(x.type for x in op.inputs)
        if kind is BatchedRules and self.lanes.name is not None:
            callee = BatchedRules(callee, flags, types, self.lanes.name, self.calls)
        elif isinstance(callee, Rerun):
            callee = Rerun(kind(callee.callee, flags, types, calls=self.calls))
        else:
            callee = kind(callee, flags, types, calls=self.calls)
        return emit(call, *(self.env[x] for x in op.inputs), callee=callee)

    def recursive_call(self, found, op: Op):
        """Emit the call of a recursive function for all lanes: `found` computes it."""
        inputs = [self.env[x] if role == "shared" else self.for_all_lanes(x, p.type)
                  for x, role, p in zip(op.inputs, found.roles, op.attrs["callee"].function.params,
                                        strict=True)]
        return emit(call, *inputs, *([arange(self.count)] if found.numbered else []),
                    callee=found.callee)

    # lane style

    def lane_loop(self, ops: list[Op], is_needed: Callable[[Value], bool]) -> None:
        """Emit `for lane in range(lanes)` around `ops` unchanged; results needed later are stored
        in arrays.
        """
        inside = Block(ops=ops)
        outs = [v for op in ops for v in op.outputs if is_needed(v)
                and (v in self.lanes.handed_on
                     or not isinstance(v.type, (Tape, Undefined, Static, Generator)))]
        read = [v for v in free_values(inside)
                if v in self.lanes.batched or v in self.lanes.handed_on and v in self.env]
        with at(ops[0].line):
            starts = [emit(list_of) if v in self.lanes.handed_on else self.results_of_lanes(type)
                      for v in outs for type in member_types(v.type)]

        unbound = values_to_bind(outs)

        def body(lane: Value, *results: Value) -> list[Value]:
            def rule(op: Op, inputs: list[Value]):
                return self.bound(op, inputs, unbound, env,
                                  rule) if unbound.intersection(op.outputs) else None

            env = dict(self.env)
            for v in read:
                env[v] = self.one_lane(self.env[v], lane)
                env[v].name = env[v].name or v.name
            emit_block(inside, (), env, rule)
            made = [x for v in outs for x in members(env[v])]
            return [tape_push(r, x) if isinstance(r.type, List) else put(r, lane, x)
                    for r, x in zip(results, made, strict=True)]

        names = [v.name for v in outs for _ in member_types(v.type)]
        handed = [v in self.lanes.handed_on for v in outs for _ in member_types(v.type)]
        results = for_loop(0, self.count, 1, starts, body, names=names, index="lane")
        found = iter([self.stacked(x) if isinstance(x.type, List) and not kept else x
                      for x, kept in zip(results, handed, strict=True)])
        self.env.update((v, assemble(v.type, found)) for v in outs)

    def bound(self, op: Op, inputs: list[Value], unbound: set[Value], env: dict[Value, Value],
              rule) -> Sequence[Value]:
        """Emit an op with blocks, and bind its `unbound` outputs on every path: to zeros where no
        statement binds them.
        """
        def filled(values: Sequence[Value], wanted: Sequence[Value]) -> list[Value]:
            return [self.zeros(w.type, w.name) if isinstance(v.type, Undefined) and w in unbound
                    else v for v, w in zip(values, wanted, strict=True)]

        if op.name == "if":
            branches = [lambda branch=branch: filled(emit_block(branch, (), env, rule), op.outputs)
                        for branch in op.blocks]
            return if_(inputs[0], *branches, [o.name for o in op.outputs])
        skip = len(op.inputs) - len(op.outputs)
        return op.record.rebuild(op, inputs[:skip] + filled(inputs[skip:], op.outputs),
                                 lambda block, args=(): emit_block(block, args, env, rule))

    def zeros(self, type: Type, name: str) -> Value:
        """Emit zeros of `type`, or nothing where the type has no zeros."""
        if not isinstance(type, (Scalar, Array)):
            return make_undefined()
        sizes = tuple(d if isinstance(d, int) else self.extent(d, name) for d in dims_of(type))
        return (zeros(value(sizes), dtype=type.dtype) if sizes
                else value(np.dtype(type.dtype).type(0).item()))

    def one_lane(self, x: Value, lane: Value) -> Value:
        """Read one lane of a batched value."""
        if isinstance(x.type, Tuple):
            return packed([self.one_lane(item(x, index=k), lane) for k in range(len(x.type.items))],
                          x.type.form)
        return list_get(x, lane) if isinstance(x.type, List) else take(x, lane)

    def stacked(self, rows: Value) -> Value:
        """Stack arrays of which only a run tells that they are as long in all lanes, and check
        that.
        """
        one_shape(rows)
        return list_stack(rows)

    def results_of_lanes(self, type: Type) -> Value:
        """Allocate an array for the results of this type of all lanes; or begin a list of them, if
        only a lane tells their shape.
        """
        if not isinstance(type, (Scalar, Array)):
            raise UnsupportedError(f"lanes that each make {type}", current().line,
                                   "let each lane make numbers or arrays of known rank")
        sizes = [d if isinstance(d, int) else self.known_extent(d) for d in dims_of(type)]
        if any(size is None for size in sizes):
            return emit(list_of)
        return empty(value((self.count, *sizes)), dtype=type.dtype)

    def extent(self, extent: Extent, name: str) -> Value:
        """Emit the number that `extent` stands for; refuse one that is known only to each lane."""
        found = self.known_extent(extent)
        if found is None:
            raise UnsupportedError(f"the shape of {name or 'a result'} is known only to each lane",
                                   current().line, "let every lane make arrays of the shape of an "
                                   "argument")
        return found

    def known_extent(self, extent: Extent) -> Value | None:
        """Emit the number that `extent` stands for, from a value that has it and is known before
        the loop; None if there is none.
        """
        if self.lanes.name is not None and extent == axis_extent(self.lanes.name):
            return self.count if self.share is None else self.share.all
        found = self.sources.get(extent)
        for old in self.env if found is None or not in_scope(self.env[found]) else (found,):
            if (isinstance(old.type, Array) and extent in old.type.dims and in_scope(self.env[old])
                    and old not in self.shapeless and old not in self.lanes.handed_on):
                self.sources[extent] = old
                return length(self.env[old],
                              axis=old.type.dims.index(extent) + (old in self.lanes.batched))
        if extent.offset:
            whole = self.known_extent(replace(extent, offset=0))
            return None if whole is None else max_(whole + extent.offset, 0)
        if self.env.get(self.lanes.allocated.get(extent.symbol)) is not None:
            return self.env[self.lanes.allocated[extent.symbol]]
        if extent.symbol in self.lanes.sources:
            op, k, axis = self.lanes.sources[extent.symbol]
            return op.record.lengths(self.length, *op.inputs, **op.attrs)[k][axis]
        return None


# so that one function has one name in the text
_batched: WeakKeyDictionary[Function, dict[tuple, Function]] = WeakKeyDictionary()


class BatchedCallee:
    """The target of a batched `call`: a user function over lanes."""

    def __init__(self, callee, flags: tuple[bool, ...], types: tuple[Type, ...],
                 calls: Callable | None = None):
        self.callee, self.flags, self.types, self.calls = callee, flags, types, calls
        self.name = f"{callee.name}_vmap"

    def function_for(self, values: Sequence[Value]) -> Function:
        lane = self.callee.function_for([Value(t) for t in self.types])
        out_axes = [0 if flag else None
                    for flag in batched_results(self.callee, self.flags, self.types)]
        kept, key = _batched.setdefault(lane, {}), (self.flags, tuple(out_axes), self.calls,
                                                    tuple(v.type for v in values),
                                                    lanes_are_threads())
        if key not in kept:
            kept[key] = finished_callee(vmap(lane, [0 if flag else None for flag in self.flags],
                                             out_axes, [v.type for v in values], calls=self.calls))
        return kept[key]

    def __eq__(self, other) -> bool:
        return isinstance(other, BatchedCallee) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> tuple:
        """Return what two equal ones have in common."""
        return self.callee, self.flags, self.types, self.calls


class BatchedRules(BatchedCallee):
    """A function with derivative rules, over lanes, whose rules are batched too.

    All its results have the axis of lanes.  Where an argument is the same in every lane, so is its
    tangent, and its cotangent is the sum of those of the lanes.
    """

    def __init__(self, callee, flags: tuple[bool, ...], types: tuple[Type, ...],
                 axis_name: Hashable | None = None, calls: Callable | None = None):
        super().__init__(callee, flags, types, calls)
        self.axis_name = axis_name
        self.count, self.own, self.fixed = callee.count, callee.own, callee.fixed
        self.lane = [Value(t) for t in types]

    def key(self) -> tuple:
        return *super().key(), self.axis_name

    def missing(self, mode: str):
        return self.callee.missing(mode)

    def getters(self, values: Sequence[Value]) -> tuple:
        return self.callee.getters(self.lane)

    def function_for(self, values: Sequence[Value]) -> Function:
        lane = self.callee.function_for(self.lane)
        return self.over_lanes(lane, self.flags, values)

    def jvp(self, values: Sequence[Value]) -> Function | None:
        rule = self.callee.jvp(self.lane[:self.count])
        if rule is None:
            return None
        wanted = differentiable_arguments(self.callee, self.lane)
        flags = [*self.flags[:self.count], *(self.flags[k] for k in wanted)]
        return self.over_lanes(rule, flags, [*values[:self.count], *(values[k] for k in wanted)])

    def vjp(self, values: Sequence[Value]) -> Halves | None:
        rule = self.callee.vjp(self.lane[:self.count])
        if rule is None:
            return None
        results = len(self.callee.function_for(self.lane).results)
        forward = self.over_lanes(rule.forward, self.flags[:self.count], values[:self.count])
        count = len(rule.backward.params) - len(rule.backward.captures)
        flags = [self.flags[k] for k in rule.arguments] + [True] * (count - len(rule.arguments))
        given = [(values[k] if k < self.count else Value(rule.forward.params[k].type)).type
                 for k in rule.arguments]
        kept = [y.type for y in forward.results[results:]]
        bars = [y.type for y in forward.results[:results] if carries_derivative(y.type)]
        backward = self.over_lanes(rule.backward, flags, [Value(t) for t in (*given, *kept, *bars)])
        return Halves(forward, self.summed(backward, rule), rule.arguments, rule.covers)

    def summed(self, backward: Function, rule: Halves) -> Function:
        """Batch the backward part, whose cotangents of arguments that all lanes share are sums."""
        made = clone(backward)
        with Builder(made.block):
            made.block.yields = [y if self.flags[k] else sum_(y, axis=0)
                                 for k, y in zip(rule.covers, made.block.yields)]
        return made

    def over_lanes(self, function: Function, flags: Sequence[bool],
                   values: Sequence[Value]) -> Function:
        """Batch `function`, with a lane axis on the arguments in `flags` and on all results."""
        kept, key = _batched.setdefault(function, {}), (tuple(flags), self.axis_name, self.calls,
                                                        tuple(v.type for v in values),
                                                        lanes_are_threads())
        if key not in kept:
            kept[key] = vmap(function, [0 if flag else None for flag in flags],
                             [0] * len(function.results), [v.type for v in values],
                             axis_name=self.axis_name, calls=self.calls)
        return kept[key]


# ------------------------------------------------------------------------------------------ axes


def batched_type(type: Type, extent: Extent, axis: int) -> Type:
    """Return the type of a value of `type` over all lanes, with the lane axis at `axis`."""
    match type:
        case Scalar(dtype):
            return Array(dtype, (extent,))
        case Array(dtype, dims):
            k = axis if axis >= 0 else axis + len(dims) + 1
            return Array(dtype, (*dims[:k], extent, *dims[k:]))
        case Tuple(items):
            return replace(type, items=tuple(batched_type(t, extent, axis) for t in items))
    raise UnsupportedError(f"vmap over an argument that is {type}",
                           remedy="call the vmapped function, or annotate its arguments, so that "
                           "their ranks are known")


def values_to_bind(outs: Sequence[Value]) -> set[Value]:
    """Return `outs`, and the values inside their branches and loops that must be bound on every
    path with them.

    A name that one branch leaves unbound is read only where that branch was not taken; an array
    over all lanes is written in every lane.
    """
    found: set[Value] = set()
    pending = [v for v in outs if v.op is not None and v.op.blocks]
    while pending:
        v = pending.pop()
        if v in found:
            continue
        found.add(v)
        k = v.op.outputs.index(v) - len(v.op.outputs)
        sources = [block.yields[k] for block in v.op.blocks
                   if len(block.yields) >= len(v.op.outputs)]
        sources += v.op.inputs[k:][:1] if v.op.name != "if" else []
        pending += [x for x in sources if x.op is not None and x.op.blocks]
    return found


def member_types(type: Type) -> list[Type]:
    """Return the types of the numbers and arrays in a value of `type`."""
    return ([t for inner in type.items for t in member_types(inner)] if isinstance(type, Tuple)
            else [type])


def members(x: Value) -> list[Value]:
    """Return the numbers and arrays in `x`."""
    if isinstance(x.type, Tuple):
        return [m for k in range(len(x.type.items)) for m in members(item(x, index=k))]
    return [x]


def assemble(type: Type, found: Iterator[Value]) -> Value:
    """Assemble a value of `type`, over all lanes, from its members in order."""
    if isinstance(type, Tuple):
        return packed([assemble(t, found) for t in type.items], type.form)
    return next(found)


def lane_count(x: Value) -> Value:
    """Read the number of lanes from a batched value."""
    while isinstance(x.type, Tuple):
        x = item(x, index=0)
    return length(x, axis=0)


def require_as_many(count: Value, other: Value, x: Value) -> None:
    """Emit the check that two arguments have equally many lanes; refuse those known not to."""
    if (count.constant == 1) != (other.constant == 1):
        raise TypeMismatchError(f"{x.name or 'an argument'} has another number of lanes than the "
                                "arguments before it", remedy=AS_MANY)
    same_lanes(count, other)


def require_size(count: Value, size: Value) -> None:
    """Emit the check that there are as many lanes as `axis_size` says; refuse those known not to.
    """
    if (count.constant == 1) != (size.constant == 1):
        raise TypeMismatchError(f"axis_size is {size.constant}, and an argument has another number "
                                "of lanes", remedy="leave axis_size out")
    same_lanes(count, size)


def to_front(x: Value, axis: int) -> Value:
    if isinstance(x.type, Tuple):
        return packed([to_front(item(x, index=k), axis) for k in range(len(x.type.items))],
                      x.type.form)
    return moveaxis(x, axis % rank(x), 0)


def from_front(x: Value, axis: int) -> Value:
    if isinstance(x.type, Tuple):
        return packed([from_front(item(x, index=k), axis) for k in range(len(x.type.items))],
                      x.type.form)
    if not -rank(x) <= axis < rank(x):
        raise TypeMismatchError(f"out_axes {axis}, and the result has {rank(x)} axes, that of the "
                                "lanes included", remedy="name an axis that is there")
    return moveaxis(x, 0, axis % rank(x))


def spread_over_lanes(x: Value, count: Value, dtype: str | None) -> Value:
    """Broadcast `x` to all lanes."""
    if isinstance(x.type, (Static, Undefined, Tape)):
        return x
    if isinstance(x.type, Tuple):
        return packed([spread_over_lanes(item(x, index=k), count, None)
                       for k in range(len(x.type.items))], x.type.form)
    return batched_over(x, count, dtype)
