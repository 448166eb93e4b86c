"""Find the batch axis of each value, so that one strip of the batch can be computed alone.

    def f(x, K, rows):                        batch axis                where it is computed
        P = x[:, rows].reshape(-1, 9)         0, several rows each      in the loop over strips
        h = np.maximum(P @ K, 0)              0, several rows each      in the loop
        K_bar = P.T @ h                       none: a sum over members  in the loop, accumulated
        return K_bar / np.max(K_bar)          none                      after the loop

This is an abstract interpretation of straight-line code. Each op has a rule: its result has the
members of the batch in rows, each computed independently; or it is a sum over them; or nothing is
known, and it is computed after the loop over strips (strip_mine_batch.py). An array that is sliced
by strips is an argument, or was computed before the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...ir.builder import Builder
from ...ir.graph import Function, Op, Value, op_free_values
from ...ir.types import Array, Dim, Extent, Scalar
from ...ops.arrays.index import getitem
from ...ops.arrays.index_pattern import expand, is_advanced, paired
from ...ops.core.axis_numbers import normal_axes
from ...ops.core.control import at_least_zero
from ...ops.core.record import Record, dims_of, rank, value
from ...ops.core.shape import length
from ..loopir.elements import stride
from ..loopir.loop_builder import op_named
from ..loopir.reductions import REDUCTIONS

MOST_PADDED = 3  # operands of a concatenation that may be an array and its padding


@dataclass(frozen=True)
class Lane:
    """The batch axis of an array, with one index for each member or, by `rows`, several."""

    axis: int = 0
    rows: Extent | None = None  # the length of that axis, if it is not the batch's


def counts_elements(op: Op) -> bool:
    """Whether `op` is a length of an array, or the product of all of them."""
    return op.record.asks_extents and op.record.natural


def lengths_read(op: Op) -> tuple[Dim, ...]:
    """The lengths that `op`, which counts elements, multiplies."""
    dims = op.inputs[0].type.dims
    return (dims[op.attrs["axis"]],) if op.name == "length" else dims


def is_by_element(record: Record) -> bool:
    """Whether each element of the result depends on that element of the operands, if on any, and
    the shape on theirs: np.zeros_like(x), not np.zeros(n).
    """
    moves = record.same_elements and (bool(record.shapes) or not record.broadcasts)
    fills = record.fill is not None and record.allocates is None
    return record.elementwise or moves or fills


def gathers_patches(op: Op) -> bool:
    """Whether `op` gathers parts that may overlap: by index arrays, or from many views."""
    if op.name == "concatenate":
        return len(op.inputs) > MOST_PADDED
    return (op.name == "getitem" and isinstance(op.inputs[0].type, Array)
            and is_advanced(op.attrs["pattern"], op.inputs[1:]))


class Plan:
    """The ops of a function that are computed member by member, and the sums over members."""

    def __init__(self, function: Function, extents: set[Extent], batch: Extent):
        self.function = function
        self.extents, self.batch = extents, batch  # all of one length
        self.aligned: set[Extent] = set()  # lengths of arrays from outside that are read in step
        self.lanes: dict[Value, Lane] = {}
        self.sliced: dict[Value, None] = {}  # arrays from outside that strips slice
        self.sums: set[Value] = set()
        self.deferred: set[Value] = set()  # results of ops after the loop
        # lengths known before the loop
        self.lengths: dict[Extent, Callable[[Lengths], Value]] = {}
        self.elementwise: set[Value] = set()  # by member, and elementwise in the arguments
        # an array whose members must be whole rows of so many elements
        self.whole_rows: list[tuple[Value, list[Value]]] = []
        self.before, self.inside, self.after = [], [], []
        for p in function.params:
            self.record_lengths(p)
            if isinstance(p.type, Array) and p.type.dims[0] in extents:
                self.lanes[p] = Lane()
                self.sliced[p] = None
                self.elementwise.add(p)
        for op in function.block.ops:
            self.place(op)

    def record_lengths(self, x: Value) -> None:
        """Record the lengths of `x`, which is defined before the loop."""
        for k, d in enumerate(dims_of(x.type)):
            if isinstance(d, Extent) and not d.accepts_any:
                self.lengths.setdefault(d, lambda known, k=k: length(known.env[x], axis=k))

    def is_known(self, dims: Sequence[Dim]) -> bool:
        return all(isinstance(d, int) or d in self.lengths or replace(d, offset=0) in self.lengths
                   for d in dims)

    def place(self, op: Op) -> None:
        """Place `op` before the loop, in it, or after it."""
        inside = [x for x in op_free_values(op) if x not in op.inputs] if op.blocks else []
        if any(x in self.sums or x in self.deferred for x in (*op.inputs, *inside)):
            self.defer(op)
        elif (op.record.allocates is not None
              and self.is_batch(op.inputs[op.record.allocates])):
            self.lanes[op.output] = Lane()
            self.inside.append(op)
        elif not any(x in self.lanes for x in op.inputs) and all(x in self.sliced for x in inside
                                                                 if x in self.lanes):
            self.before.append(op)
            for o in op.outputs:
                self.record_lengths(o)
        elif counts_elements(op) and self.is_known(lengths_read(op)):
            self.before.append(op)
        elif op.blocks or len(op.outputs) != 1 or not isinstance(op.output.type, (Array, Scalar)):
            self.defer(op)
        else:
            self.place_by_axis(op, self.batch_axis(op))

    def place_by_axis(self, op: Op, axis: Lane | str | None) -> None:
        """Place `op`, whose result has this batch axis."""
        if axis is None:
            self.defer(op)
        elif axis == "sum" and op.inputs[0] in self.elementwise and op.name == "sum":
            self.hoist(op)
        elif axis == "sum":
            self.sums.add(op.output)
            self.inside.append(op)
        else:
            self.lanes[op.output] = axis
            self.inside.append(op)
            if op.record.elementwise and not any(x in self.lanes and x not in self.elementwise
                                                 for x in op.inputs):
                self.elementwise.add(op.output)

    def hoist(self, op: Op) -> None:
        """Hoist `op` and its operands before the loop, as a sum of weights that divides each part.
        """
        wanted, found = set(op.inputs), [op]
        for each in reversed(self.inside):
            if each.output in wanted:
                wanted.update(each.inputs)
                found.append(each)
        self.before += [each for each in reversed(found) if each not in self.before]
        self.record_lengths(op.output)

    def defer(self, op: Op) -> None:
        self.after.append(op)
        self.deferred.update(op.outputs)

    def batch_axis(self, op: Op) -> Lane | str | None:
        """The batch axis of the result of `op`, "sum" for a sum over members, None if unknown."""
        x = op.inputs[0]
        lane = self.lanes.get(x)
        match op.name:
            case "shaped_like" if (x in self.lanes or isinstance(op.output.type, Array)
                                   and op.output.type.dims[0] in self.extents):
                return lane or (Lane() if self.slice_by_strips([x]) else None)
            case "matmul":
                return self.lane_of_product(op)
            case "transpose" if lane and rank(x) == 2 and op.attrs["axes"] in (None, (1, 0)):
                return Lane(1 - lane.axis, lane.rows)
        if is_by_element(op.record):
            return self.lane_of_elements(op)
        return self.lane_of_rows(op, lane) if lane and lane.axis == 0 else None

    def lane_of_rows(self, op: Op, lane: Lane) -> Lane | str | None:
        """The batch axis for an op on an array whose first axis that is."""
        x = op.inputs[0]
        match op.name:
            case "expand_dims" if 0 not in normal_axes(op.attrs["axis"], op.attrs["count"]):
                return lane
            case _ if op.record in REDUCTIONS:
                if 0 not in normal_axes(op.attrs["axis"], rank(x)):
                    return lane
                return self.sum_of(op) if op.name == "sum" else None
            case "getitem" if self.leaves_members(op, 1):
                self.record_slice_lengths(op)
                return lane
            case _ if op.record.writes_elements and self.leaves_members(op, 2):
                added = op.inputs[1]
                is_by_member = (self.lanes.get(added) == lane
                                and rank(added) == len(self.region(op)))
                return lane if isinstance(added.type, Scalar) or is_by_member else None
            case "reshape" if all(n not in self.lanes for n in op.inputs[1:]):
                return self.lane_of_reshaped(op, lane)
            case "reshape_like":
                like = self.lanes.get(op.inputs[1])
                return like if like and like.axis == 0 else None
            case "sum_to" if rank(x) == rank(op.output):
                return lane if self.lanes.get(op.inputs[1]) == lane else None
            case "concatenate" if op.attrs["axis"] % rank(x) != 0:
                return lane if all(self.lanes.get(each) == lane for each in op.inputs) else None
            case "transpose" if op.attrs["axes"] and op.attrs["axes"][0] == 0:
                return lane
        return None

    def sum_of(self, op: Op) -> str | None:
        """The batch axis of a sum over members, which must have known lengths."""
        return "sum" if self.is_known(dims_of(op.output.type)) else None

    def lane_of_elements(self, op: Op) -> Lane | None:
        """The batch axis for an op whose results each depend on one element of each operand."""
        mine = {self.lanes[x] for x in op.inputs if x in self.lanes}
        if len(mine) != 1 or next(iter(mine)).axis != 0 or not isinstance(op.output.type, Array):
            return None
        (lane,) = mine
        if any(x in self.lanes and rank(x) != rank(op.output) for x in op.inputs):
            return None
        others = [x for x in op.inputs if x not in self.lanes and rank(x) == rank(op.output)
               and x.type.dims[0] != 1]
        return lane if not others or not lane.rows and self.slice_by_strips(others) else None

    def slice_by_strips(self, arrays: Sequence[Value]) -> bool:
        """Slice these arrays from outside by strips, if they are surely as long as the batch."""
        lengths = [x.type.dims[0] for x in arrays]
        if any(not isinstance(d, Extent) or d.accepts_any or d.may_be_one for d in lengths):
            return False
        self.sliced.update(dict.fromkeys(arrays))
        self.aligned.update(lengths)
        return True

    def region(self, op: Op) -> tuple:
        """The extents of the region that `op` writes."""
        with Builder():
            return getitem.infer(op.inputs[0], *op.inputs[2:], pattern=op.attrs["pattern"]).dims

    def leaves_members(self, op: Op, skip: int) -> bool:
        """Whether an index leaves the first axis unchanged."""
        lane, pattern = self.lanes.get(op.inputs[0]), op.attrs["pattern"]
        if lane is None or lane.axis != 0 or any(x in self.lanes for x in op.inputs[skip:]):
            return False
        if not pattern or pattern[0] not in (..., "..."):
            return False
        if pattern[0] is ... and sum(p is not None and p is not ...
                                     for p in pattern) >= rank(op.inputs[0]):
            return False
        with Builder():
            dims = dims_of(getitem.infer(op.inputs[0], *op.inputs[skip:], pattern=pattern))
        return bool(dims) and dims[0] == op.inputs[0].type.dims[0]

    def record_slice_lengths(self, op: Op) -> None:
        """Record the lengths of other axes of a slice with known bounds."""
        dims, parts = (op.inputs[0].type.dims,
                       list(paired(expand(op.attrs["pattern"], rank(op.inputs[0])), op.inputs[1:])))
        if rank(op.output) != len(dims) or any(p in (None, "i") or bounds[2] is not None
                                               for p, bounds in parts):
            return
        for (_, bounds), d, e in zip(parts, dims, op.output.type.dims):
            if isinstance(e, Extent) and not self.is_known([e]) and self.is_known([d]):
                self.lengths[e] = lambda known, d=d, bounds=bounds: stride(
                    known.of(d), *(None if b is None else known.env[b] for b in bounds)).length

    def lane_of_reshaped(self, op: Op, lane: Lane) -> Lane | None:
        """The batch axis of x.reshape(...): members become several rows each, or as many as before.
        """
        x, sizes, dims = op.inputs[0], op.inputs[1:], op.output.type.dims
        if not isinstance(dims[0], Extent):
            return None
        self.record_reshaped_lengths(x, sizes, dims)
        if dims[0] in self.extents:
            return Lane()
        if lane.rows or not self.is_known((*x.type.dims, *dims)):
            return None
        if sizes[0].constant == -1:
            self.whole_rows.append((x, list(sizes[1:])))
        elif not self.counts_members(sizes[0]):
            return None
        return Lane(0, dims[0])

    def record_reshaped_lengths(self, x: Value, sizes: Sequence[Value],
                                dims: Sequence[Dim]) -> None:
        """Record the lengths `dims` of x.reshape(*sizes)."""
        whole = x.type.dims

        def left(known: Lengths, k: int) -> Value:
            """The length that -1 in position `k` means."""
            others = product([known.env[n] for j, n in enumerate(sizes) if j != k])
            return op_named("floor_divide", product(known.all_of(whole)),
                            op_named("max_", others, value(1)))

        for k, (n, d) in enumerate(zip(sizes, dims)):
            if (isinstance(d, Extent) and d not in self.lengths
                    and (n.constant != -1 or self.is_known(whole))):
                self.lengths[d] = ((lambda known, n=n: known.env[n]) if n.constant != -1
                                   else lambda known, k=k: left(known, k))

    def counts_members(self, n: Value) -> bool:
        """Whether `n` is a multiple of the length of the batch."""
        return (self.is_batch(n) or n.op is not None and n.op.name == "multiply"
                and any(map(self.counts_members, n.op.inputs)))

    def is_batch(self, n: Value) -> bool:
        """Whether `n` is the length of the batch."""
        return (n.op is not None and n.op.name == "length"
                and isinstance(n.op.inputs[0].type, Array)
                and n.op.inputs[0].type.dims[n.op.attrs["axis"]] in self.extents)

    def in_strip(self, n: Value, count: Value, env: dict[Value, Value]) -> Value:
        """`n`, a multiple of the length of the batch, for one strip."""
        if self.is_batch(n):
            return count
        if n.op.name != "multiply":
            return env[n]
        k = next(k for k, factor in enumerate(n.op.inputs) if self.counts_members(factor))
        return op_named("multiply", self.in_strip(n.op.inputs[k], count, env),
                        env[n.op.inputs[1 - k]])

    def lane_of_product(self, op: Op) -> Lane | str | None:
        """The batch axis of a @ b: "sum" where the members are multiplied with one another."""
        a, b = op.inputs
        left, right = self.lanes.get(a), self.lanes.get(b)
        if left and right:
            if (left.rows == right.rows and left.axis == rank(a) - 1 and right.axis == 0
                    and rank(a) <= 2 and rank(b) <= 2):
                return self.sum_of(op)
            return left if left == right and left.axis == 0 and rank(a) == rank(b) > 2 else None
        return left if left and left.axis == 0 and rank(a) > 1 and rank(b) == 2 else None

    def indices(self) -> list[Op]:
        """The ops before the loop that compute index arrays.

        Inside the loop, where they are read, they are index arithmetic.
        """
        wanted = {x for op in self.inside if op.record.indices is not None
                  for x in op.inputs[1:]}
        found = []
        for op in reversed(self.before):
            if (len(op.outputs) == 1 and op.output in wanted
                    and isinstance(op.output.type, Array) and op.output.type.dtype == "int64"
                    and (op.record.elementwise or op.name in ("arange", "expand_dims"))):
                found.append(op)
                wanted.update(op.inputs)
        return found[::-1]

    # profitability

    @property
    def products(self) -> int:
        return sum(op.name == "matmul" for op in self.inside)

    def is_profitable(self) -> bool:
        """Whether the loop has products of patches, larger than the arrays that leave it whole."""
        made = {op.output for op in self.inside if gathers_patches(op)}
        for op in self.inside:
            if (op.record.reshapes or op.name == "transpose") and op.inputs[0] in made:
                made.add(op.output)
        multiplied = [op for op in self.inside if op.name == "matmul" and made & set(op.inputs)]
        return bool(multiplied) and len(self.leaving_values()) < self.products

    def leaving_values(self) -> list[Value]:
        """The values of members that ops after the loop read as whole arrays."""
        read = dict.fromkeys([*(x for op in self.after for x in op_free_values(op)),
                              *self.function.results])
        return [x for x in read if x in self.lanes and x not in self.sliced]


class Lengths:
    """The lengths that are known before the loop, as numbers."""

    def __init__(self, plan: Plan, env: dict[Value, Value]):
        self.plan, self.env = plan, env
        self.asked: dict[Extent, Value] = {}

    def of(self, d: Dim) -> Value:
        if isinstance(d, int):
            return value(d)
        if d not in self.asked:
            known = self.plan.lengths
            self.asked[d] = (known[d](self) if d in known
                             else at_least_zero(op_named("add", self.of(replace(d, offset=0)),
                                                         value(d.offset))))
        return self.asked[d]

    def all_of(self, dims: Sequence[Dim]) -> list[Value]:
        return [self.of(d) for d in dims]

    def bytes_of(self, dtype: str, dims: Sequence[Dim]) -> Value:
        return product([*self.all_of(dims), value(np.dtype(dtype).itemsize)])


def product(numbers: Sequence[Value]) -> Value:
    return functools.reduce(lambda a, b: op_named("multiply", a, b), numbers, value(1))
