"""Batch recursive functions: all calls at one depth of the recursion are one call, on arrays.

    def encode(node, left, right, words, W):
        if left[node] < 0:
            return np.tanh(W @ words[node])
        return np.tanh(W @ (encode(left[node], ...) + encode(right[node], ...)))

    def encode_calls(node, left, right, words, W, lane):     # call k is of lane[k]
        t = np.empty((len(node), len(W)))
        is_leaf = left[lane, node] < 0
        some = np.flatnonzero(is_leaf)
        t[some] = np.tanh(words[lane[some], node[some]] @ W.T)
        others = np.flatnonzero(~is_leaf)
        if len(others) > 0:
            ...
            both = encode_calls(np.concatenate((left[lane, node], right[lane, node])), ...)
            t[others] = np.tanh((both[:n] + both[n:]) @ W.T)
        return t

What runs side by side are calls, not lanes.  Where they take different branches, each branch runs
on those that take it, and a branch that calls on is left out where none does: so the recursion ends
when that of the last lane does.  Calls that do not need one another's results are one call, of all
their arguments.  The result is an ordinary recursive function, which is differentiated, compiled
and batched like any other.

Note [Roles of parameters]
A parameter that is the same in all lanes, through all calls, is "shared".  One that differs from
lane to lane but which every call hands on as it got it (the tree, the words) is "whole": it keeps
the axis of lanes, and `lane` says which row is a call's.  All others have a row for each call.

Considered: program counters, a stack for each variable, and masks (Radul et al. 2019).  That
batches lanes, each of which makes its calls one after another: a tree of n nodes takes n steps, not
as many as it is deep; nothing of the user's program can be read in it; and its loop is
differentiated step by step, saving all stacks.  An agenda that runs whatever ops are ready (DyNet):
the lanes run as Python, an op at a time, and nothing of it can be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ...analysis.divergence import Lanes
from ...analysis.side_effects import is_total
from ...errors import Line, S2SError, UnsupportedError
from ...ir.builder import Builder, at, emit, in_scope
from ...ir.graph import MISSING, Block, Function, Op, Value, free_values, op_free_values, walk
from ...ir.reemit import clone
from ...ir.types import Array, Extent, Scalar, Type
from ...ops.arrays.batched_index import getitem_in_rows
from ...ops.arrays.concatenate import concatenate_record
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.arrays.index_pattern import paired
from ...ops.arrays.search import flatnonzero_record
from ...ops.core.batch_rules import same_in_calls
from ...ops.core.control import call, if_
from ...ops.core.elementwise import equal, invert
from ...ops.core.record import dims_of, value
from ...ops.core.shape import length, shaped_like
from ...ops.program.effects import has_effects
from ...ops.program.recursive_callee import Recursive, recursive_callees
from .vmap import Batched, batched_type, lane_extent


class CallsTogether(Recursive):
    """A function for many calls at once."""


@dataclass(eq=False)
class BatchedCalls:
    """What computes many calls of a recursive function: `callee` takes its arguments, by the
    `roles` of the parameters, and if they are `numbered` the lane of each call.
    """

    callee: Recursive
    roles: list[str]
    numbered: bool


class CannotBatch(UnsupportedError):
    """The reason why each lane makes its own calls."""

    def __init__(self, what: str, line: Line | None):
        super().__init__(what, line, 'leave lanes="together" out: each lane makes its own calls')


class Policy:
    """A choice of the recursive functions whose calls are batched: those with work on arrays, or if
    they run `together` all, and a refusal where that is impossible.
    """

    def __init__(self, together: bool | None = None):
        self.together = together
        self.found: WeakKeyDictionary[Recursive, dict] = WeakKeyDictionary()

    def __call__(self, callee: Recursive, flags: Sequence[bool]) -> BatchedCalls | None:
        if self.together is False:
            return None
        known = self.found.setdefault(callee, {})
        if tuple(flags) not in known:
            known[tuple(flags)] = self.choose(callee, flags)
        return known[tuple(flags)]

    def choose(self, callee: Recursive, flags: Sequence[bool]) -> BatchedCalls | None:
        if self.together:
            return batched_calls(callee, flags, self)
        if not has_work(callee):
            return None
        try:
            return batched_calls(callee, flags, self)
        except S2SError:
            return None


def has_work(callee: Recursive) -> bool:
    """Test whether calls of `callee` compute with arrays, so that one for many costs much less."""
    return any(isinstance(out.type, Array) and not (op.record.structural or op.record.moves)
               for member in cycle_of(callee) for op in walk(member.function.block)
               if op.name != "call" and not op.blocks for out in op.outputs)


def cycle_of(callee: Recursive) -> list[Recursive]:
    """Return the functions that are mutually recursive with `callee`, itself first."""
    return [callee, *(other for other in recursive_callees(callee.function)
                      if other is not callee and callee in recursive_callees(other.function))]


def batched_calls(callee: Recursive, flags: Sequence[bool], policy: Policy) -> BatchedCalls:
    """Batch a recursive function, of which the flagged arguments differ from lane to lane.  Raises
    UnsupportedError where calls cannot run side by side.
    """
    members = cycle_of(callee)
    for member in members:
        require_calls_apart(member)
    functions = {member: clone(member.function) for member in members}
    groups = {member: Siblings(function, members) for member, function in functions.items()}
    batched, lanes = flags_of_calls(callee, flags, functions, policy)
    roles, steady = roles_of(callee, flags, functions, batched)
    numbered = any("whole" in each for each in roles.values())
    made = {member: BatchedCalls(CallsTogether(f"{member.name}_calls"), roles[member], numbered)
            for member in members}
    extents = {"call": lane_extent(functions.values(), "calls"),
               "whole": lane_extent(functions.values())}
    for member, each in made.items():
        lengths = Lengths(functions[member], made, steady)
        each.callee.function = stub(functions[member], each, lengths, extents)
    for member, each in made.items():
        emitter = CallEmitter(functions[member], lanes[member], each, made, groups[member], policy,
                              Lengths(functions[member], made, steady))
        each.callee.function = emitter.of_calls()
    return made[callee]


def require_calls_apart(callee: Recursive) -> None:
    """Refuse a function whose calls do not commute: it writes, draws, prints or raises."""
    function = callee.function
    if callee.changes.written:
        raise CannotBatch(f"{callee.name} writes into an array that it is given", None)
    for op in walk(function.block):
        if op.name != "call" and has_effects(op) and not op.blocks:
            raise CannotBatch(f"{callee.name} has an effect, {op.name}, whose order matters",
                              op.line)
    for v in (*function.params, *(x for op in walk(function.block) for x in op.outputs),
              *function.results):
        if not isinstance(v.type, (Scalar, Array)) and not is_known(v):
            raise CannotBatch(f"{v.name or 'a value'} of {callee.name}, which is {v.type}",
                              v.op.line if v.op is not None else None)


def is_known(v: Value) -> bool:
    """Test whether a value is a constant, such as None or a tuple of numbers."""
    return v.constant is not MISSING


# ---------------------------------------------------------------------------------------- analysis


class CallLanes(Lanes):
    """Lanes of one of mutually recursive functions: where calls part at a branch, they run each
    side together.
    """

    def __init__(self, function: Function, roots, members, policy: Policy):
        self.members = members
        self.handed: dict[Recursive, set[int]] = {member: set() for member in members}
        self.parted: set[Op] = set()

        def batches(op: Op, flags: tuple[bool, ...]) -> bool:
            return policy(op.attrs["callee"], flags) is not None

        super().__init__(function, roots, batches=batches)

    def call(self, op: Op) -> None:
        callee = op.attrs["callee"]
        if callee not in self.members:
            super().call(op)
            return
        self.handed[callee].update(k for k, x in enumerate(op.inputs) if x in self.batched)
        for out in op.outputs:
            self.mark(out)

    def part(self, op: Op) -> None:
        if op.name == "if":
            self.parted.add(op)
            for out in op.outputs:
                self.mark(out)
        elif any(inner.name == "call" and inner.attrs["callee"] in self.members
                 for block in op.blocks for inner in walk(block)):
            raise CannotBatch("a call in a loop whose trips differ from lane to lane", op.line)
        else:
            super().part(op)


def flags_of_calls(callee: Recursive, flags: Sequence[bool], functions: dict[Recursive, Function],
                   policy: Policy) -> tuple[dict[Recursive, set[int]], dict[Recursive, CallLanes]]:
    """Return which parameters of each function differ from call to call, and the lanes of each."""
    batched: dict[Recursive, set[int]] = {member: set() for member in functions}
    batched[callee].update(k for k, flag in enumerate(flags) if flag)
    while True:
        before = sum(map(len, batched.values()))
        lanes = {}
        for member, function in functions.items():
            roots = [function.params[k] for k in sorted(batched[member])]
            lanes[member] = CallLanes(function, roots, functions, policy)
            for other, ks in lanes[member].handed.items():
                batched[other].update(ks)
        if sum(map(len, batched.values())) == before:
            break
    for member, each in lanes.items():
        if each.ragged or each.ragged_extents or each.turns or each.handed_on:
            raise CannotBatch(f"arrays of {member.name} that have another length in each lane",
                              None)
    return batched, lanes


def roles_of(callee: Recursive, flags: Sequence[bool], functions: dict[Recursive, Function],
             batched: dict[Recursive, set[int]]) -> tuple[dict[Recursive, list[str]], set[Value]]:
    """Return the role of each parameter, and those that all calls of all lanes have in common.
    Note [Roles of parameters]
    """
    # the argument of the first call that each parameter is; None: none, or not always the same
    origins: dict[tuple[Recursive, int], int | None] = {
        (callee, k): k for k in range(len(flags))}
    changed = True
    while changed:
        changed = False
        for member, function in functions.items():
            numbers = {p: k for k, p in enumerate(function.params)}
            for op in walk(function.block):
                if op.name != "call" or op.attrs["callee"] not in functions:
                    continue
                for k, x in enumerate(op.inputs):
                    key = op.attrs["callee"], k
                    if x in numbers and (member, numbers[x]) not in origins:
                        continue
                    origin = origins[member, numbers[x]] if x in numbers else None
                    if key not in origins or origins[key] not in (origin, None):
                        origins[key] = origin if key not in origins else None
                        changed = True
    roles = {member: ["shared" if k not in batched[member]
                      else "call" if origins.get((member, k)) is None else "whole"
                      for k in range(len(function.params))]
             for member, function in functions.items()}
    if not any(role == "whole" and isinstance(p.type, Array) for member, function in
               functions.items() for role, p in zip(roles[member], function.params)):
        # rows of numbers are as short to hand on as the lanes' numbers
        roles = {member: ["call" if role == "whole" else role for role in each]
                 for member, each in roles.items()}
    steady = {p for member, function in functions.items() for k, p in enumerate(function.params)
              if k not in batched[member] and origins.get((member, k)) is not None}
    return roles, steady


class Siblings:
    """The calls in a function that do not need one another: `of` has those that join each call."""

    def __init__(self, function: Function, members):
        self.members, self.of, self.joined = members, {}, set()
        self.gather(function.block)

    def gather(self, block: Block) -> None:
        for op in block.ops:
            for inner in op.blocks:
                self.gather(inner)
        for first in [op for op in block.ops if self.is_call(op)]:
            if first not in self.joined:
                self.join(block, first)

    def is_call(self, op: Op) -> bool:
        return op.name == "call" and op.attrs["callee"] in self.members

    def join(self, block: Block, first: Op) -> None:
        """Move what later calls like `first` need in front of it, where it does not need `first`.
        """
        self.of[first] = [first]
        for op in block.ops[block.ops.index(first) + 1:]:
            if not self.is_call(op) or op.attrs["callee"] is not first.attrs["callee"]:
                continue
            start = block.ops.index(first)
            between = block.ops[start + 1:block.ops.index(op)]
            needed = needed_for(op, between)
            if any(x in each.outputs for inner in (*needed, op) for x in op_free_values(inner)
                   for each in self.of[first]):
                continue
            if any(inner.blocks or inner.name == "call" or inner.record.writes is not None
                   for inner in needed):
                continue
            rest = [inner for inner in between if inner not in needed]
            block.ops[start:start + len(between) + 2] = [*needed, first, op, *rest]
            self.of[first].append(op)
            self.joined.add(op)


def needed_for(op: Op, ops: Sequence[Op]) -> list[Op]:
    """Return those of `ops`, which precede `op`, whose results it needs."""
    needed: list[Op] = []
    wanted = set(op_free_values(op))
    for inner in reversed(ops):
        if wanted.intersection(inner.outputs):
            needed.insert(0, inner)
            wanted.update(op_free_values(inner))
    return needed


# ---------------------------------------------------------------------------------------- emitting


def stub(function: Function, found: BatchedCalls, lengths: Lengths,
         extents: dict[str, Extent]) -> Function:
    """Return the batched function without its ops; `extents` are those of the new axes, by role."""
    params = [Value(p.type if role == "shared" else batched_type(p.type, extents[role], 0), p.name)
              for p, role in zip(function.params, found.roles)]
    if found.numbered:
        params.append(Value(Array("int64", (extents["call"],)), "lane"))
    results = []
    for y in function.results:
        if not isinstance(y.type, (Scalar, Array)):
            raise CannotBatch(f"{function.name} returns {y.type}", None)
        dims = [next((n for n in lengths.of(y, axis) if isinstance(n, (int, Extent))), dim)
                for axis, dim in enumerate(dims_of(y.type))]
        results.append(Value(Array(y.type.dtype, (extents["call"], *dims))))
    place = function.source.place if function.source is not None else ""
    doc = (f"{function.name}{place} for many calls at once"
           f"{', of which call k is in lane[k]' if found.numbered else ''}.")
    return Function(found.callee.name, Block(params, [], results), function.source, doc,
                    len(results) != 1)


class CallEmitter(Batched):
    """The emitter of a function for many calls, which part at branches."""

    def __init__(self, function: Function, lanes: CallLanes, found: BatchedCalls, made: dict,
                 siblings: Siblings, policy: Callable, lengths: Lengths):
        super().__init__(function, lanes, calls=policy)
        self.found, self.made, self.siblings, self.lengths = found, made, siblings, lengths
        self.whole = {p for p, role in zip(function.params, found.roles) if role == "whole"}
        self.number: Value | None = None  # of each call's lane
        self.like: Value | None = None  # an array with a row for each call
        self.rows: dict[Value, Value] = {}  # what whole values are in each call
        self.compared: frozenset[tuple] = frozenset()  # lengths that are equal, or it has raised

    def of_calls(self) -> Function:
        """Emit the whole function."""
        made = self.found.callee.function
        block = Block([Value(p.type, p.name) for p in made.params])
        with Builder(block), at(next((op.line for op in self.lane.block.ops if op.line), None)):
            self.env.update(zip(self.lane.params, block.params))
            if self.found.numbered:
                self.number = block.params[-1]
            first = self.number if self.found.numbered else next(
                p for p, role in zip(block.params, self.found.roles) if role == "call")
            self.like, self.count = first, length(first, axis=0)
            for old, role in zip(self.lane.params, self.found.roles):
                if role == "call" and self.env[old] is not first:
                    self.env[old] = shaped_like(self.env[old], first, leading=1)
            self.emit_ops(self.lane.block, self.lane.results)
            block.yields = [self.for_all_lanes(y, y.type) for y in self.lane.results]
        for y, expected in zip(block.yields, made.results, strict=True):
            if (getattr(y.type, "dtype", None), len(getattr(y.type, "dims", ()))) != (
                    expected.type.dtype, len(expected.type.dims)):
                raise CannotBatch(f"a result that is {y.type}, not {expected.type}", None)
        return made.remade(block)

    # values that every call hands on

    def row(self, x: Value) -> Value:
        """Emit what the whole value `x` is in each call."""
        found = self.rows.get(x)
        if found is None or not in_scope(found):
            found = self.rows[x] = take(self.env[x], self.number)
            found.name = found.name or x.name
        return found

    def for_all_lanes(self, x: Value, type: Type | None = None) -> Value:
        return self.row(x) if x in self.whole else super().for_all_lanes(x, type)

    def op(self, op: Op) -> bool:
        if op in self.siblings.joined:
            return True
        read = self.whole.intersection(op.inputs)
        if not read or op.record.asks_extents or op.name == "call" or op.blocks:
            return super().op(op)
        if op.name == "getitem" and op.inputs[0] in read and len(read) == 1:
            x, *operands = op.inputs
            found = getitem_in_rows(self.env[x], self.number,
                                    [o in self.lanes.batched for o in operands],
                                    *(self.env[o] for o in operands), **op.attrs)
            if found is not None:
                found.name = found.name or op.output.name
                self.env[op.output] = found
                return True
        return self.on_rows(read, lambda: super(CallEmitter, self).op(op))

    def on_rows(self, read, run: Callable):
        """Run an emitter with rows in place of the whole values that it reads."""
        rows = {x: self.row(x) for x in read}
        before = {x: self.env[x] for x in read}
        self.env.update(rows)
        found = run()
        self.env.update(before)
        return found

    def lane_loop(self, ops: list[Op], is_needed: Callable[[Value], bool]) -> None:
        self.on_rows(self.whole.intersection(free_values(Block(ops=ops))),
                     lambda: super(CallEmitter, self).lane_loop(ops, is_needed))

    # branches

    def branch(self, op: Op):
        if op not in self.lanes.parted:
            return super().branch(op)
        condition = self.for_all_lanes(op.inputs[0])
        results = [self.results_of_calls(out, op) for out in op.outputs]
        for block, name in zip(op.blocks, ("some", "others")):
            if block.ops or any(map(is_made, block.yields)):
                some = flatnonzero_record(condition if name == "some" else invert(condition))
                some.name = some.name or name
                results = self.on_some(block, some, results, op)
        return results

    def results_of_calls(self, out: Value, op: Op) -> Value | Pending:
        """Allocate an array for what both sides of a branch result in, or leave that to the first
        of them, which has its lengths.
        """
        if not isinstance(out.type, (Scalar, Array)) or out in self.lanes.ragged:
            raise CannotBatch(f"a branch that results in {out.type}", op.line)
        sizes = []
        for axis in range(len(dims_of(out.type))):
            found = list(self.lengths.of(out, axis))
            if not found or None in found:
                raise CannotBatch("a branch that makes an array of a length that no argument has",
                                  op.line)
            size = next((n for n in found if n is not STEADY), None)
            sizes.append(self.extent(size, out.name) if isinstance(size, Extent) else size)
        pending = Pending(self.count, sizes, out.type.dtype)
        return pending if None in sizes else pending.allocate()

    def store(self, results: Value | Pending, some: Value, y: Value) -> Value:
        """Emit the writing of what one side of a branch results in to the rows of `some` calls."""
        v = self.row(y) if y in self.whole else self.env[y]
        if isinstance(results, Pending):
            results = results.allocate(v, len(dims_of(v.type)) - len(dims_of(y.type)))
        first = len(dims_of(v.type)) - len(dims_of(y.type))
        for axis, (m, n) in enumerate(zip(results.type.dims[1:], dims_of(v.type)[first:])):
            if m != n and (m, n) not in self.compared:
                same_in_calls(length(results, axis=axis + 1), length(v, axis=axis + first))
                self.compared = self.compared | {(m, n)}
        return put(results, some, v)

    def on_some(self, block: Block, some: Value, results: list[Value], op: Op) -> list[Value]:
        """Emit one side of a branch for the calls that take it, and store what it results in."""
        def run() -> list[Value]:
            kept = self.env, self.like, self.count, self.number, self.rows, self.compared
            self.env, self.rows = dict(self.env), {}
            for v in free_values(block):
                if v in self.lanes.batched and v not in self.whole:
                    self.env[v] = self.one_lane(self.env[v], some)
                    self.env[v].name = self.env[v].name or v.name
            for v in block.yields:
                if v in self.lanes.batched and v not in self.whole and v in kept[0] and (
                        self.env[v] is kept[0][v]):
                    self.env[v] = self.one_lane(self.env[v], some)
            self.like, self.count = some, length(some, axis=0)
            if self.number is not None:
                self.number = take(self.number, some)
                self.number.name = "lane"
            self.emit_ops(block, block.yields)
            found = [self.store(r, some, y) if is_made(y) else r
                     for r, y in zip(results, block.yields, strict=True)]
            self.env, self.like, self.count, self.number, self.rows, self.compared = kept
            return found

        if not self.needs_guard(block):
            return run()
        if any(isinstance(r, Pending) for r in results):
            raise CannotBatch("a branch that makes an array of a length that no argument has",
                              op.line)
        nobody = equal(length(some, axis=0), 0)
        return if_(nobody, lambda: results, run, [o.name for o in op.outputs])

    def needs_guard(self, block: Block) -> bool:
        """Test whether one side of a branch must not run for no calls: it calls on, or computes
        what is the same in all of them, and might raise.
        """
        return any(op.name == "call" or op.name in ("for", "while")
                   or not self.lanes.is_batched(op) and not is_total(op)
                   for op in walk(block) if op.name != "constant")

    # calls

    def call(self, op: Op):
        if op.attrs["callee"] not in self.made:
            return self.on_rows(self.whole.intersection(op.inputs),
                                lambda: super(CallEmitter, self).call(op))
        found, ops = self.made[op.attrs["callee"]], self.siblings.of[op]
        inputs = []
        for k, role in enumerate(found.roles):
            xs = [each.inputs[k] for each in ops]
            if role == "call":
                inputs.append(self.joined([self.for_all_lanes(x, xs[0].type) for x in xs]))
            else:
                if any(self.env[x] is not self.env[xs[0]] for x in xs):
                    raise CannotBatch("calls that share different arguments", op.line)
                inputs.append(self.env[xs[0]])
        if found.numbered:
            inputs.append(self.joined([self.number] * len(ops)))
        outs = emit(call, *inputs, callee=found.callee)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        if len(ops) == 1:
            return outs
        for k, each in enumerate(ops):
            for old, all_ in zip(each.outputs, outs, strict=True):
                self.env[old] = self.part_of(all_, k, len(ops))
                self.env[old].name = old.name
        return [self.env[out] for out in op.outputs]

    def joined(self, xs: list[Value]) -> Value:
        """Emit the arguments of all sibling calls, one after another."""
        return xs[0] if len(xs) == 1 else concatenate_record(*xs, axis=0)

    def part_of(self, x: Value, k: int, count: int) -> Value:
        """Emit the results of the sibling calls numbered `k`, of `count`."""
        start = self.count * k if k > 1 else self.count if k else None
        stop = self.count * (k + 1) if k else self.count
        part = take(x, slice(start, None if k == count - 1 else stop))
        return shaped_like(part, self.like, leading=1)


@dataclass(eq=False)
class Pending:
    """An array for the results of so many calls, allocated when its lengths (None) are known."""

    count: Value
    sizes: list[int | Value | None]
    dtype: str

    def allocate(self, v: Value | None = None, first: int = 0) -> Value:
        """Emit the allocation, with the lengths of `v`, in which a call's axes begin at `first`."""
        sizes = [length(v, axis=axis + first) if n is None else n
                 for axis, n in enumerate(self.sizes)]
        return empty(value((self.count, *sizes)), dtype=self.dtype)


STEADY = "steady"  # a length that follows from what all calls of all lanes have in common


class Lengths:
    """The lengths of the arrays in one of the functions `members` that call one another, of whose
    parameters the `steady` are the same in all calls of all lanes.
    """

    def __init__(self, function: Function, members, steady: set[Value]):
        self.members, self.steady = members, steady
        self.known = {d.symbol for p in function.params for d in dims_of(p.type)
                      if isinstance(d, Extent)}

    def of(self, v: Value, axis: int) -> Iterator[int | Extent | str | None]:
        """Yield the lengths among those of arguments that an axis of `v` may have, STEADY where it
        may have another one, but not in each call, and None where nothing is known.  What the
        functions result in has those that they yield otherwise.
        """
        dim, op = v.type.dims[axis], v.op
        if isinstance(dim, int) or dim.symbol in self.known:
            yield dim
        elif op is None:
            yield None
        elif op.name == "if":
            k = op.outputs.index(v)
            for block in op.blocks:
                if is_made(block.yields[k]):
                    yield from self.of(block.yields[k], axis)
        elif op.record.elementwise:
            for x in op.inputs:
                own = axis - len(v.type.dims) + len(dims_of(x.type))
                if own >= 0:
                    yield from self.of(x, own)
        elif op.name == "getitem" and self.is_steady_part(op):
            yield STEADY
        elif op.name != "call" or op.attrs["callee"] not in self.members:
            yield None

    def is_steady_part(self, op: Op) -> bool:
        """Test whether `op` takes as long a part of an array in each call."""
        x, *operands = op.inputs
        return self.has_steady_shape(x) and all(
            isinstance(o.type, Scalar) and o.type.dtype != "bool" if p == "i"
            else all(self.is_steady(bound) for bound in o if bound is not None)
            for p, o in paired(op.attrs["pattern"], operands) if o is not None)

    def has_steady_shape(self, x: Value) -> bool:
        """Test whether the lengths of `x` are the same in each call."""
        return not any(n is None for axis in range(len(dims_of(x.type)))
                       for n in self.of(x, axis))

    def is_steady(self, x: Value) -> bool:
        """Test whether the number `x` follows from what all calls have in common."""
        if x.constant is not MISSING or x in self.steady:
            return True
        op = x.op
        if op is None or op.blocks or op.name == "call" or not isinstance(x.type, Scalar):
            return False
        if op.record.asks_extents:
            return self.has_steady_shape(op.inputs[0])
        return op.record.elementwise and all(map(self.is_steady, op.inputs))


def is_made(y: Value) -> bool:
    """Test whether one side of a branch binds a result."""
    return isinstance(y.type, (Scalar, Array))
