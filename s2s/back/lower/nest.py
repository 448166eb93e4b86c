"""Emit one loop nest: the computation of a group of ops at each element of their index space.

Inside the nest, arrays of the group are numbers. Those with readers outside are stored into
buffers; a reduction over the last axes is a number that is live during the loops over those axes; a
reduction over other axes accumulates into a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...analysis.alias import versions
from ...ir.builder import Builder, add_op, at
from ...ir.graph import Block, Op, Value
from ...ir.types import INT, Array, Extent, Scalar
from ...ops.core.control import for_record
from ...ops.core.elementwise import add, logical_and, logical_or, select
from ...ops.core.record import value
from ...ops.core.shape import shape_source
from ...ops.math.special import is_scipys_of_complex
from ..loopir.elements import Elements, read
from ..loopir.extent_equalities import Equalities
from ..loopir.loop_builder import counter_name, loop, multiply, op_named, put
from ..loopir.ops import (
    as_dtype,
    broadcast_length_op,
    compute,
    new_buffer,
    nonempty_length_op,
    spread_length_op,
)
from ..loopir.reductions import Reduction, reduction, start, sum_step
from .fusion_groups import Group, reads
from .gather import (
    NONE,
    checked_indices,
    gather,
    gather_lengths,
    gather_parts,
    in_step,
    is_gather,
    span,
)
from .slice_writes import is_place_of, region, write_space

# ------------------------------------------------------------------------------------- index spaces


def is_pointwise(op: Op) -> bool:
    """Whether each element of the result depends on one element of each operand."""
    if op.record.is_broadcast:
        return isinstance(op.inputs[0].type, Array)
    if is_scipys_of_complex(op):
        return False
    return op.record.elementwise or is_gather(op) or op.record.same_elements


def index_space(op: Op, equal: Equalities) -> tuple | None:
    """The index space that `op` visits once, if it can be part of a nest."""
    if len(op.outputs) != 1:
        return None
    if isinstance(op.output.type, Array) and is_pointwise(op):
        return equal.canonical(op.output.type.dims)
    if reduction(op) is not None:
        return equal.canonical(op.inputs[0].type.dims)
    return write_space(op, equal, lambda made: is_pointwise(made) and reduction(made) is None)


def ends_nest(op: Op) -> bool:
    """Whether the result of `op` is complete only when its nest ends."""
    return reduction(op) is not None or is_write(op)


def is_write(op: Op) -> bool:
    """Whether `op` overwrites part of an array."""
    return op.record.writes is not None


# ----------------------------------------------------------------------------------------- the nest


@dataclass(eq=False)
class Stored:
    """A result of the nest that is stored in an array."""

    op: Op
    buffer: Value
    index: Callable[[Sequence[Value]], list[Value]]


@dataclass(eq=False)
class Running:
    """A reduction that is a number while its loops run."""

    op: Op
    level: int  # of the outermost loop it sums over
    how: Reduction
    dtype: str


def emit_nest(scope, group: Group, block: Block) -> None:
    """Emit the nest of `group`, ops of `block`, and define its results in `scope`."""
    Nest(scope, group, block).emit()


class Nest:
    """The state of one nest while it is emitted."""

    def __init__(self, scope, group: Group, block: Block):
        self.scope, self.group, self.block = scope, group, block
        self.inside = {op.output for op in group.ops if is_pointwise(op) and reduction(op) is None}
        self.needed = needed_outside(group, block)
        self.line = group.ops[-1].line
        with at(self.line):
            self.regions = {op: region(scope, op) for op in group.ops if is_write(op)}
            self.lengths = self.find_lengths()
            self.plans: dict[Value, Plan] = {}
            self.places: dict[Op, list[Value]] = {}  # indices of gathered elements
            # positions by (index, length), which no other trip shares
            self.checked: dict[tuple[Value, Value], Value] = {}
            # an operand -> the op whose result is stored in its memory
            self.reused: dict[Value, Op] = {}
            for op in group.ops:
                for k, x in enumerate(op.inputs):
                    if (isinstance(x.type, Array) and x not in self.inside
                            and self.reads_elements(op, k)):
                        self.plans.setdefault(x, self.plan(x))

    @staticmethod
    def reads_elements(op: Op, k: int) -> bool:
        if is_write(op):
            return k == 1
        if is_gather(op):
            return k > 0 and in_step(op)
        return k not in op.record.shapes

    # lengths and broadcasting

    def find_lengths(self) -> list[Value]:
        """The length of each loop: an operand's with this extent, or that of the broadcast."""
        lengths: list[Value | None] = [value(d) if isinstance(d, int) else None
                                       for d in self.group.dims]
        rank = len(lengths)
        for op in self.group.ops:
            if op.name == "spread" and shape_source(op.inputs[1]) in self.inside:
                # its shape is that of another op of this nest, which has the lengths
                continue
            found = (self.regions[op].lengths if op in self.regions
                     else stated_lengths(self.scope, op))
            if found is not None:
                lengths = [m if n is None else n for n, m in zip(lengths, found)]
                continue
            for k, x in enumerate(op.inputs):
                if (isinstance(x.type, Array) and x not in self.inside
                        and self.reads_elements(op, k)):
                    for axis, d in enumerate(x.type.dims, rank - x.type.rank):
                        if (lengths[axis] is None and self.scope.equal.find(d)
                                == self.group.dims[axis]):
                            lengths[axis] = self.scope.lengths(x)[axis - rank + x.type.rank]
        for axis in range(rank):
            if lengths[axis] is None:
                lengths[axis] = self.broadcast(axis)
        return lengths

    def broadcast(self, axis: int) -> Value:
        """A length known only at run time: each operand has it or is 1."""
        rank, result = len(self.group.dims), value(1)
        for x in self.group.ops[0].inputs:
            if isinstance(x.type, Array) and x.type.rank >= rank - axis:
                result = broadcast_length_op(result, self.scope.lengths(x)[axis - rank])
        return result

    def plan(self, x: Value) -> Callable[[Sequence[Value]], Value]:
        """Plan how to read operand `x` at an index; check its lengths once, before the loops."""
        elements = self.scope.elements(x)
        rank, own = len(self.lengths), x.type.rank
        maps: list = []
        for axis, (d, m) in enumerate(zip(x.type.dims, elements.lengths), rank - own):
            n = self.lengths[axis]
            if m is n:
                maps.append(axis)
            elif d == 1:
                maps.append(None)
            elif (isinstance(d, Extent) and self.scope.equal.find(d) != self.group.dims[axis]
                  and d.may_be_one):
                self.lengths[axis] = spread_length_op(n, m)
                maps.append((axis, select(op_named("equal", m, 1), value(0), value(1))))
            else:
                self.lengths[axis] = self.scope.same(n, m)
                maps.append(axis)

        def index_of(index):
            return [value(0) if a is None else multiply(index[a[0]], a[1]) if isinstance(a, tuple)
                    else index[a] for a in maps]

        return Plan(elements, index_of, maps == list(range(rank)))

    # emission

    def emit(self) -> None:
        with at(self.line):
            stored, running = self.results()
            rank = len(self.lengths)
            for how, axes in filter(None, map(reduction, self.group.ops)):
                for axis in axes if how.needs_some else ():
                    self.lengths[axis] = nonempty_length_op(self.lengths[axis])
            names = [s.op.output.name or (s.op.inputs[0].name if s.op in self.regions else "")
                     for s in stored]
            final: dict[Op, Value] = {}

            def level(k: int, index: list[Value], buffers: list[Value], sums: dict[Op, Value]):
                """Emit loops k, k+1, ...; return the buffers and running reductions after them."""
                # the index of a row is looked up once for all its elements
                for op in self.group.ops:
                    if (is_gather(op) and not in_step(op)
                            and span(gather_parts(op))[1] == k):
                        with at(op.line):
                            self.places[op] = self.gather_index(op, index)
                if k == rank:
                    return self.element(index, stored, buffers, running, sums)
                starting = [r for r in running if r.level == k]
                sums = {**sums, **{r.op: start(r.how.identity(r.dtype), r.dtype) for r in starting}}
                active = list(sums)
                if self.lengths[k].constant == 1:
                    buffers, sums = level(k + 1, [*index, value(0)], buffers, sums)
                    return finished(starting, index, list(buffers), sums)
                kinds = {r.op: r for r in running}
                types = [*(b.type for b in buffers), *(Scalar(kinds[op].dtype) for op in active)]
                labels = [*names, *(op.output.name or "total" for op in active)]
                params = [Value(INT,
                                counter_name((*self.scope.counters, *(i.name for i in index)))),
                          *(Value(t, n) for t, n in zip(types, labels))]
                inner = Block(params=params)
                with Builder(inner):
                    after, totals = level(k + 1, [*index, params[0]], params[1:1 + len(buffers)],
                                          dict(zip(active, params[1 + len(buffers):])))
                    inner.yields = [*after, *(totals[op] for op in active)]
                op = add_op(for_record, [value(0), self.lengths[k], value(1), *buffers,
                                         *sums.values()], {"breaks": False}, types, [inner], labels)
                return finished(starting, index, list(op.outputs[:len(buffers)]),
                                dict(zip(active, op.outputs[len(buffers):])))

            def finished(starting: list[Running], index: list[Value], buffers: list[Value],
                         sums: dict[Op, Value]):
                """Store the results of reductions whose loops have ended."""
                for r in starting:
                    total = as_dtype(sums.pop(r.op), r.op.output.type.dtype)
                    where = [j for j, s in enumerate(stored) if s.op is r.op]
                    if not where:
                        final[r.op] = total
                    for j in where:
                        target = stored[j].index(index)
                        buffers[j] = put(buffers[j], total, target)
                return buffers, sums

            buffers, _ = level(0, [], [s.buffer for s in stored], {})
            for op in self.group.ops:
                if op.output in self.inside:
                    self.scope.set(op.output,
                                   Elements(op.output.type, tuple(self.lengths), _fused_away(op)))
            for s, array in zip(stored, buffers):
                if s.op in self.regions:
                    self.scope.define(s.op.output, array, self.regions[s.op].own)
                    continue
                lengths = [value(d) if isinstance(d, int) else None for d in s.op.output.type.dims]
                known = self.output_lengths(s.op)
                self.scope.define(s.op.output, array,
                                  [m if n is None else n for n, m in zip(lengths, known)])
            for op, total in final.items():
                if isinstance(op.output.type, Array):  # keepdims
                    ones = [value(1)] * op.output.type.rank
                    self.scope.set(op.output, Elements(op.output.type, tuple(ones),
                                                       lambda index, t=total: t, generated=True))
                else:
                    if not total.name and total.op is not None and total.op.name != "constant":
                        total.name = op.output.name
                    self.scope.define(op.output, total)

    def gather_index(self, op: Op, index: Sequence[Value],
                  numbers: Mapping[Value, Value] = NONE) -> list[Value]:
        """The index of the element, or row, that `op` gathers at `index`."""
        return checked_indices(self.scope, self.scope.elements(op.inputs[0]).lengths,
                         gather_parts(op), index, numbers, self.checked)

    def output_lengths(self, op: Op) -> list[Value]:
        found = reduction(op)
        if found is None:
            return list(self.lengths)
        axes = found[1]
        keep = op.output.type.rank == len(self.lengths)
        return [value(1) if k in axes else n for k, n in enumerate(self.lengths) if keep
                or k not in axes]

    def results(self) -> tuple[list[Stored], list[Running]]:
        """The results to store in arrays, and the reductions to keep as running numbers."""
        stored, running = [], []
        rank = len(self.lengths)
        for op in self.group.ops:
            y = op.output
            if op in self.regions:
                stored.append(Stored(op, self.regions[op].array, self.regions[op].place))
                continue
            found = reduction(op)
            if found is None:
                if y in self.needed:
                    stored.append(self.output_buffer(op))
                continue
            how, axes = found
            dtype = how.accumulator(y.type.dtype)
            suffix = axes == tuple(range(rank - len(axes), rank))
            keep = isinstance(y.type, Array) and y.type.rank == rank

            def target(index, axes=axes, keep=keep):
                return [value(0) if k in axes else i for k, i in enumerate(index) if keep
                        or k not in axes]

            if suffix:
                level = rank - len(axes)
                if level > 0 and axes:
                    def spread_target(index, target=target, missing=rank - level):
                        return target([*index, *[None] * missing])

                    buffer = new_buffer(y.type.dtype, y.type.dims, self.output_lengths(op))
                    buffer.name = y.name
                    stored.append(Stored(op, buffer, spread_target))
                running.append(Running(op, level, how, dtype))
            else:
                identity = how.identity(y.type.dtype)
                zero = identity == 0
                buffer = new_buffer(y.type.dtype, y.type.dims, self.output_lengths(op), zero=zero)
                buffer.name = y.name
                if not zero:
                    buffer = self.filled(buffer, identity, self.output_lengths(op), y)
                stored.append(Stored(op, buffer, target))
        return stored, running

    def filled(self, buffer: Value, identity, lengths, y: Value) -> Value:
        def body(index, carries):
            return [put(carries[0], start(identity, y.type.dtype), index)]

        return loop(lengths, [buffer], [buffer.type], [y.name], body, self.scope.counters)[0]

    def output_buffer(self, op: Op) -> Stored:
        """A new buffer, or the memory of an operand that is dead afterwards."""
        y = op.output
        old = self.dying_operand(op)
        if old is not None:
            self.reused[old] = op
            return Stored(op, self.scope.whole(old), lambda index: list(index))
        buffer = new_buffer(y.type.dtype, y.type.dims, self.lengths)
        buffer.name = y.name
        return Stored(op, buffer, lambda index: list(index))

    def dying_operand(self, op: Op) -> Value | None:
        """An operand that the result may overwrite: `x_bar + t` where x_bar is dead afterwards.

        A loop's carry is preferred, so that the loop continues in the same memory, however long the
        sum is; for the result of a branch, what other branches return in its place.
        """
        y = op.output
        before = ([self.block.params[k - len(self.block.yields)]
                   for k, end in enumerate(self.block.yields) if end is y] if self.scope.nested
                  and len(self.block.params) >= len(self.block.yields)
                  else self.scope.instead.get(y, []))
        for x in (*before, *op.inputs):
            if (x not in self.plans or x in self.reused or x in self.scope.alive
                    or x.type.dtype != y.type.dtype):
                continue
            if self.scope.equal.canonical(x.type.dims) != self.scope.equal.canonical(y.type.dims):
                continue
            plan = self.plans[x]
            made = x.op is None or not x.op.record.views or x.op.record.writes is not None
            others = [v for v in self.plans if v is not x and x in self.view_sources(v)]
            gathered = any(is_gather(o) and x in versions(o.inputs[0]) for o in self.group.ops)
            written = any(set(versions(x)) & set(versions(o.inputs[0])) for o in self.regions)
            if (made and not written and not others and not gathered and plan.identity
                    and plan.elements.value is not None and self.scope.owns(x, self.block)):
                return x
        return None

    def view_sources(self, x: Value) -> list[Value]:
        """`x`, the array it is a view of, and operands of index arithmetic on it (np.roll)."""
        found = [x]
        for v in found:
            if v.op is None:
                continue
            elements = self.scope.env.get(v)
            is_arithmetic = isinstance(elements, Elements) and elements.value is None
            found += [y for k, y in enumerate(v.op.inputs) if k in v.op.record.views
                      or is_arithmetic and k not in v.op.record.shapes
                      and isinstance(y.type, Array)]
        return found

    def element(self, index, stored, buffers, running, sums):
        """Emit one trip: every op of the group at `index`."""
        memo: dict[Value, Value] = {}

        def number_of(x: Value) -> Value:
            if not isinstance(x.type, Array):
                return self.scope.env[x]
            if x not in memo:
                places = [j for j, s in enumerate(stored) if s.op is self.reused.get(x) or
                          s.op in self.regions and is_place_of(x, s.op)]
                if places:
                    memo[x] = read(buffers[places[0]], stored[places[0]].index(index))
                else:
                    memo[x] = self.plans[x](index)
            return memo[x]

        sums = dict(sums)
        kinds = {r.op: r for r in running}
        buffers = list(buffers)
        for op in self.group.ops:
            if op in self.regions:
                number_of(op.inputs[1])
                continue
            with at(op.line):
                found = reduction(op)
                if found is None:
                    result = self.compute(op, number_of, index)
                    nameless = (not result.name and result.op is not None
                                and result.op.name not in ("constant", "getitem"))
                    if nameless and op.output not in self.needed:
                        result.name = op.output.name
                    memo[op.output] = result
                elif op in kinds:
                    r = kinds[op]
                    sums[op] = compute(r.how.step, sums[op],
                                       as_dtype(number_of(op.inputs[0]), r.dtype))
                else:
                    (j,) = [j for j, s in enumerate(stored) if s.op is op]
                    target = stored[j].index(index)
                    dtype = op.output.type.dtype
                    old = read(buffers[j], target)
                    step = found[0].step
                    new = compute(add if step is sum_step else step, old,
                                  as_dtype(number_of(op.inputs[0]), dtype))
                    buffers[j] = put(buffers[j], new, target)
        for j, s in enumerate(stored):
            if s.op in self.regions:
                with at(s.op.line):
                    full = s.index(index)
                    buffers[j] = s.op.record(buffers[j], number_of(s.op.inputs[1]), *full,
                                             pattern=("i",) * len(full))
            elif reduction(s.op) is None:
                with at(s.op.line):
                    buffers[j] = put(
                        buffers[j], as_dtype(memo[s.op.output], s.op.output.type.dtype),
                        s.index(index))
        return buffers, sums

    def compute(self, op: Op, number_of: Callable, index) -> Value:
        """Emit the op's result at one index, from numbers."""
        dtype = op.output.type.dtype
        if is_gather(op):
            if in_step(op):
                numbers = {x: number_of(x) for x in op.inputs[1:] if isinstance(x.type, Array)}
                self.places[op] = self.gather_index(op, index, numbers)
            return gather(self.scope, op, index, self.places[op])
        operands = [x for k, x in enumerate(op.inputs) if k not in op.record.shapes]
        xs = list(map(number_of, operands))
        if op.name == "astype" or op.record.same_elements:
            return as_dtype(xs[0], dtype)
        if op.name == "where":
            return select(xs[0], as_dtype(xs[1], dtype), as_dtype(xs[2], dtype))
        if dtype == "bool" and op.record.of_truths is not None:
            return compute(logical_or if op.record is add else logical_and, *xs)
        return compute(op.record, *xs, of=operands, **op.attrs)


def stated_lengths(scope, op: Op) -> list[Value] | None:
    """The lengths of the result, for ops that do not take them from the operands they read."""
    if is_gather(op):
        return None if in_step(op) else gather_lengths(scope, op)
    match op.name:
        case "spread":
            return list(scope.lengths(op.inputs[1]))
        case "broadcast_to":
            return [scope.env[n] for n in op.inputs[1:]]
    return None


@dataclass(eq=False)
class Plan:
    """The way in which a nest reads one operand."""

    elements: Elements
    index_of: Callable
    identity: bool

    def __call__(self, index) -> Value:
        return self.elements.at(self.index_of(index))


def _fused_away(op: Op) -> Callable:
    def at_index(index):
        raise AssertionError(
            f"{op.output} exists only inside a loop nest, and is read outside: {op}")

    return at_index


def needed_outside(group: Group, block: Block) -> set[Value]:
    """The results of `group` that are read element by element outside of it."""
    needed = set(block.yields)
    for op in block.ops:
        if op not in group:
            needed.update(reads(op))
    return needed
