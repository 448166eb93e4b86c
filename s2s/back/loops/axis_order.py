"""Permute the axes of local arrays to the order in which loops traverse them (data layout).

    x_tape = np.empty((lanes, n))               x_tape = np.empty((n, lanes))
    for t in range(n):                          for t in range(n):
        for i in range(lanes):      becomes         for i in range(lanes):
            x_tape[i, t] = x[i]                         x_tape[t, i] = x[i]

A batch has its lanes in the first axis of all that it saves, and loops traverse the lanes
innermost: the elements that one trip touches are then a whole row of steps apart, each in a cache
line of its own, where they could be adjacent. Parameters of an equation, a thousand at once, took
1.6 times as long. So do columns in programs that fill a table one after the other.

An axis is moved last if most accesses traverse it in the innermost loop that their indices name.
Only arrays whose layout is not observable are permuted: those allocated here, accessed by elements,
and carried by loops and branches only.

Considered: batching with the lanes last. It is right here, but wrong where rows are multiplied;
only the loops show which order is best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...ir.graph import Block, Function, Op, Value
from ...ir.types import Array, Scalar
from ...ops.core.identities import base_offset
from ..loopir.ops import buffer

DEEP = 16  # weight of an access in an inner loop, compared with one outside


def permute_axes(function: Function) -> Function:
    """Permute, in place, the axes of local arrays of `function`, a loop form."""
    arrays = Arrays(function)
    for allocation in arrays.made:
        group = arrays.group(allocation)
        if group is not None:
            axis, rank = arrays.dominant_axis(group), allocation.output.type.rank
            if axis not in (None, rank - 1):
                arrays.reorder(group, [*(k for k in range(rank) if k != axis), axis])
    return function


class Arrays:
    """The arrays allocated in a function, and all their uses."""

    def __init__(self, function: Function):
        self.made: list[Op] = []
        self.users: dict[Value, list[tuple[Op | Block, int]]] = {}
        # by op, the counters of the loops around, outermost first
        self.loops: dict[Op, tuple[Value, ...]] = {}
        self.owner: dict[Block, Op] = {}
        # by block parameter: its op, and the number of the carry, counted from the last
        self.carried: dict[Value, tuple[Op, int]] = {}
        self._note(function.block, ())
        self.results = set(function.block.yields)

    def _note(self, block: Block, counters: tuple[Value, ...]) -> None:
        for op in block.ops:
            self.loops[op] = counters
            if op.record is buffer and op.output.type.rank > 1:
                self.made.append(op)
            for k, x in enumerate(op.inputs):
                self.users.setdefault(x, []).append((op, k))
            for inner in op.blocks:
                self.owner[inner] = op
                self.carried.update((p, (op, k - len(inner.params)))
                                    for k, p in enumerate(inner.params))
                self._note(inner, (*counters, inner.params[0]) if op.name == "for" else counters)
        for k, y in enumerate(block.yields):
            self.users.setdefault(y, []).append((block, k))

    def group(self, allocation: Op) -> set[Value] | None:
        """All versions and aliases of the array of `allocation`; None if its layout is visible."""
        found: set[Value] = set()
        pending = [allocation.output]
        while pending:
            v = pending.pop()
            if v in found:
                continue
            if (v in self.results or not isinstance(v.type, Array)
                    or v.type.rank != allocation.output.type.rank):
                return None
            found.add(v)
            origin = self._origin(v)
            if origin is None:
                return None
            pending += origin
            for user, k in self.users.get(v, ()):
                handed = self._handed(user, k)
                if handed is None:
                    return None
                pending += handed
        return found

    def _origin(self, v: Value) -> list[Value] | None:
        """The array that `v` is a later version of; None if it is not allocated here."""
        op = v.op
        if op is not None and not op.blocks:
            return ([] if op.record is buffer else [op.inputs[0]]
                    if op.record.writes_elements else None)
        if op is None:
            return self._carried(*self.carried[v]) if v in self.carried else None
        return self._carried(op, op.outputs.index(v) - len(op.outputs))

    def _carried(self, op: Op, k: int) -> list[Value] | None:
        """All names of output `k`, counted from the last, of a loop or branch."""
        if op.name not in ("for", "while", "if"):
            return None
        found = [op.outputs[k],
                 *(block.yields[k] for block in (op.blocks if op.name == "if" else op.blocks[-1:]))]
        if op.name != "if":
            if -k > len(op.outputs):
                return None  # the trip count
            found += [op.inputs[k], *(block.params[k] for block in op.blocks)]
        return found

    def _handed(self, user: Op | Block, k: int) -> list[Value] | None:
        """The values that input `k` of `user` becomes there; None if `user` observes its layout."""
        if isinstance(user, Block):
            owner = self.owner.get(user)
            if owner is None:
                return None
            at = k - len(user.yields)
            return (self._carried(owner, at) if -at <= len(owner.outputs)
                    and (owner.name == "if" or user is owner.blocks[-1]) else None)
        if user.blocks:
            at = k - len(user.inputs)
            return (self._carried(user, at) if user.name in ("for", "while")
                    and -at <= len(user.outputs) else None)
        if user.name == "length":
            return []
        if (k != 0 or user.record.indices is None
                or user.attrs["pattern"] != ("i",) * user.inputs[0].type.rank
                or not all(isinstance(i.type, Scalar) for i in user.inputs[1:])):
            return None
        return list(user.outputs) if user.name != "getitem" else []

    def accesses(self, group: set[Value]) -> Iterator[Op]:
        for v in group:
            for user, _ in self.users.get(v, ()):
                if isinstance(user, Op) and user.record.indices is not None:
                    yield user

    def dominant_axis(self, group: set[Value]) -> int | None:
        """The axis that most accesses traverse in their innermost loops; None if unclear."""
        votes: Counter[int] = Counter()
        for op in self.accesses(group):
            named = {base_offset(i)[0]: axis
                     for axis, i in enumerate(op.inputs[1 if op.name == "getitem" else 2:])}
            innermost = next((c for c in reversed(self.loops[op]) if c in named), None)
            if innermost is not None:
                votes[named[innermost]] += DEEP ** len(self.loops[op])
        (axis, most), *others = votes.most_common() or [(None, 0)]
        return axis if all(2 * n <= most for _, n in others) else None

    def reorder(self, group: set[Value], order: list[int]) -> None:
        """Permute the axes of the arrays of `group` into this order."""
        done: set[Op] = set()
        for v in group:
            v.type = Array(v.type.dtype, tuple(v.type.dims[k] for k in order))
            if v.op is not None and v.op.record is buffer:
                v.op.inputs = [v.op.inputs[k] for k in order]
                v.op.attrs = {**v.op.attrs, "dims": v.type.dims}
            for user, _ in self.users.get(v, ()):
                if isinstance(user, Op) and user.name == "length":
                    user.attrs = {**user.attrs, "axis": order.index(user.attrs["axis"])}
        for op in self.accesses(group):
            if op not in done:
                done.add(op)
                first = 1 if op.name == "getitem" else 2
                op.inputs = [*op.inputs[:first], *(op.inputs[first + k] for k in order)]
