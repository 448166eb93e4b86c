"""Dependence analysis: find the loops whose trips are independent and may run in parallel.

A loop is independent if each trip writes only its own elements, `a[i, ...]` for the loop's index i,
reads nothing that another trip writes, and carries nothing else but sums.  `roles(loop)` says so:

    "own"     an array of which each trip accesses only the elements at its index, or at a fixed
              distance from it
    "sum"     a number to which each trip adds
    "gather"  an array to which trips add anywhere, and which none of them reads

An index that may be negative counts from the end, where another trip may be: what is not proved to
be an index from the start is not a trip's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ..ir.graph import Block, Op, Value, walk
from ..ir.types import Array, Scalar
from ..ops.arrays.index import additem
from ..ops.core.elementwise import subtract
from ..ops.core.identities import base_offset
from ..ops.core.record import same_shape
from .affine import lower_bound


def least_index(loop: Op, counters: Mapping[Value, Op] = MappingProxyType({})) -> int | None:
    """Return a lower bound of the counter of `loop`, None where none is known; `counters` are those
    of the loops around.
    """
    lo, hi, step = loop.inputs[:3]
    bound = lower_bound(lo if step.constant == 1 else hi, counters)
    return bound if bound is None or step.constant == 1 else bound + 1


def counts_from_zero(loop: Op) -> bool:
    """Prove that the counter of `loop` is never negative, so that different indices name different
    elements.
    """
    least = least_index(loop) if loop.inputs[2].constant in (1, -1) else None
    return least is not None and least >= 0


def roles(loop: Op) -> list[str] | None:
    """Return the role of each carry of a `for`; None if its trips depend on one another."""
    if loop.name != "for" or loop.attrs["breaks"] or loop.inputs[2].constant not in (1, -1):
        return None
    (body,) = loop.blocks
    if any(not (op.record.pure or op.record.only_raises) or op.name == "call" for op in walk(body)):
        return None
    trip = Trip(body, least_index(loop))
    found = [trip.role(param, end) for param, end in zip(body.params[1:], body.yields)]
    return None if None in found else found


Place = tuple[int, frozenset, int]  # c * i + the sum of these, so many times each, + a number


def access_position(op: Op, k: int, axis: int, index: Value) -> Place | None:
    """Return the position along an axis at which `op` accesses its input `k`, in terms of the
    counter `index`; None where it is not known.
    """
    if (k != 0 or op.record.indices is None
            or op.attrs["pattern"][:axis + 1] != ("i",) * (axis + 1)):
        return None
    operands = op.inputs[op.record.indices:][:axis + 1]
    if not all(isinstance(x.type, Scalar) for x in operands):
        return None
    found: Counter[Value] = Counter()
    number = 0
    pending = [(operands[-1], 1)]
    while pending:
        x, times = pending.pop()
        if type(x.constant) is int:
            number += times * x.constant
        elif x is not index and x.op is not None and x.op.record.is_sum:
            a, b = x.op.inputs
            pending += [(a, times), (b, times * x.op.record.signs[1])]
        else:
            found[x] += times
    times = found.pop(index, 0)
    return times, frozenset((x, n) for x, n in found.items() if n), number


def runs_back(forth: Op, back: Op) -> bool:
    """Test whether the trips of `back` are those of `forth` in reverse."""
    lo, hi, step = forth.inputs[:3]
    if step.constant not in (1, -1) or back.inputs[2].constant != -step.constant:
        return False

    def is_before(a: Value, b: Value) -> bool:
        (x, m), (y, n) = base_offset(a), base_offset(b)
        return x is y and m == n - step.constant

    return is_before(back.inputs[0], hi) and is_before(back.inputs[1], lo)


class Trip:
    """The body of a loop whose counter is never below `least`, with the readers of each value."""

    def __init__(self, body: Block, least: int | None = 0):
        self.body, self.index, self.least = body, body.params[0], least
        self.uses: dict[Value, list[tuple[Op | Block, int]]] = {}
        self.owner: dict[Block, Op] = {}
        self.counted: dict[Value, Op] = {}  # counter -> its `for`, for each inside
        self.home: dict[Op, Block] = {}
        self.carrier: dict[Value, Op] = {}  # parameter -> the op with its block, for each inside
        self._note(body)

    def _note(self, block: Block) -> None:
        for op in block.ops:
            self.home[op] = block
            for k, x in enumerate(op.inputs):
                self.uses.setdefault(x, []).append((op, k))
            if op.name == "for":
                self.counted[op.blocks[0].params[0]] = op
            for inner in op.blocks:
                self.owner[inner] = op
                self.carrier.update(dict.fromkeys(inner.params, op))
                self._note(inner)
        for k, y in enumerate(block.yields):
            self.uses.setdefault(y, []).append((block, k))

    def role(self, param: Value, end: Value) -> str | None:
        """Return the role of the carry `param`, whose value at the end of a trip is `end`."""
        match param.type:
            case Array():
                return self.array_role(param, end)
            case Scalar() if self.is_sum(param, end):
                return "sum"
        return None

    # arrays

    def array_role(self, param: Value, end: Value) -> str | None:
        if not self.becomes(param, end):
            return None
        touching = self.touching(self.versions(param))
        if self.is_own(touching):
            return "own"
        if self.only_adds(param):
            return "gather"
        return None

    def touching(self, versions: Iterable[Value]) -> list[tuple[Op, int]]:
        """Return the ops on elements of an array's versions, each with the input that is the array.
        """
        return [(user, k) for v in versions for user, k in self.uses.get(v, ())
                if isinstance(user, Op) and not user.blocks and k not in user.record.shapes]

    def is_own(self, touching: list[tuple[Op, int]], axis: int = 0) -> bool:
        """Test whether no two trips access the same element, by their index in this axis."""
        distances = {self.distance(op, k, axis) for op, k in touching}
        return not touching or (len(distances) == 1 and None not in distances
                                and self.least is not None and self.least + min(distances) >= 0)

    def is_disjoint(self, param: Value, end: Value) -> bool:
        """Test whether trips access disjoint elements of the carry `param`, `a[:, j]` say:
        independent, though not contiguous rows.
        """
        if not isinstance(param.type, Array) or not self.becomes(param, end):
            return False
        touching = self.touching(self.versions(param))
        return any(self.is_own(touching, axis) for axis in range(len(param.type.dims)))

    def distance(self, op: Op, k: int, axis: int = 0) -> int | None:
        """Return how far from the trip's index `op` accesses its input `k` along this axis; None
        where it is not known.
        """
        if (k != 0 or op.record.indices is None
                or op.attrs["pattern"][:axis + 1] != ("i",) * (axis + 1)):
            return None
        first, offset = op.record.indices, 0
        *before, x = op.inputs[first:first + axis + 1]
        if not all(isinstance(y.type, Scalar) for y in before):  # a mask may index several axes
            return None
        while (x.op is not None and x.op.record.is_sum
               and type(x.op.inputs[1].constant) is int):
            offset += x.op.inputs[1].constant * x.op.record.signs[1]
            x = x.op.inputs[0]
        return offset if x is self.index or self.is_in_strip(x) else None

    def is_in_strip(self, x: Value) -> bool:
        """Test whether `x` is i * 256 + j, where j counts up to 256 or less: different in each trip
        (back/loops/distribute_gathers.py).

        In the place of 256 there may be any number that no trip changes: where it is not positive,
        j counts nothing.
        """
        if (x.op is None or x.op.name != "add" or x.op.inputs[0].op is None
                or x.op.inputs[1] not in self.counted):
            return False
        start, loop = x.op.inputs[0].op, self.counted[x.op.inputs[1]]
        width, (lo, hi, step) = start.inputs[-1], loop.inputs[:3]
        if not (start.name == "multiply" and start.inputs[0] is self.index and lo.constant == 0
                and step.constant == 1 and hi.op is not None and hi.op.name == "min_"):
            return False
        if isinstance(width.constant, int):
            return hi.op.inputs[1].constant == width.constant
        return hi.op.inputs[1] is width and width.op is not None and width.op not in self.home

    def stays_in_row(self, array: Value) -> bool:
        """Test whether a trip accesses only `array[i, ...]` of the array and of its later versions.
        """
        return all(self.distance(user, k) == 0 for v in self.versions(array)
                   for user, k in self.uses.get(v, ()) if isinstance(user, Op) and not user.blocks
                   and k not in user.record.shapes)

    def only_adds(self, array: Value) -> bool:
        """Test whether a trip only adds numbers to elements of the array and of its later versions.
        """
        return all(op.name == "additem" and k == 0
                   and all(isinstance(x.type, Scalar) for x in op.inputs[1:])
                   for op, k in self.touching(self.versions(array)))

    def only_accumulates(self, param: Value, end: Value) -> bool:
        """Test whether a trip only adds to elements of the array `param`, also by reading them and
        writing them back.
        """
        if not isinstance(param.type, Array) or not self.becomes(param, end):
            return False
        touching = dict(self.touching(self.versions(param)))
        read = {op.inputs[1].op.inputs[k] for op in touching
                if (k := self.old_term(op)) is not None}
        return all(k == 0
                   and (op.name == "additem"
                        and all(isinstance(x.type, Scalar) for x in op.inputs[1:])
                        or op.name == "getitem" and op.output in read or op.name == "setitem"
                        and self.old_term(op) is not None) for op, k in touching.items())

    def old_term(self, op: Op) -> int | None:
        """Return the index of the summand that is the old element in an op like
        `a[i, j] = a[i, j] + x`, if nothing else reads it.
        """
        total = op.inputs[1].op if op.name == "setitem" else None
        if (total is None or not total.record.is_sum
                or len(self.uses[total.output]) != 1):
            return None
        for k, x in enumerate(total.inputs[:1] if total.name == "subtract" else total.inputs):
            if (x.op is not None and x.op.name == "getitem"
                    and x.op.attrs["pattern"] == op.attrs["pattern"] == ("i",)
                    * op.inputs[0].type.rank
                    and [x.op.inputs[0], *x.op.inputs[1:]] == [op.inputs[0], *op.inputs[2:]]
                    and x.type == total.output.type and isinstance(x.type, Scalar)
                    and x.type.dtype != "bool" and len(self.uses[x]) == 1):
                return k
        return None

    def versions(self, param: Value) -> Iterator[Value]:
        """Return `param` and its later versions by writes, branches and inner loops, on some path
        at least.
        """
        seen: set[Value] = set()
        pending = [param]
        while pending:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            yield v
            for user, k in self.uses.get(v, ()):
                if isinstance(user, Op):
                    pending += (self.carried(user, k) if user.blocks else user.outputs
                                if user.record.writes == k else [])
                elif user in self.owner:
                    owner = self.owner[user]
                    if owner.name == "if":
                        pending.append(owner.outputs[k])
                    elif user is owner.blocks[-1] and k >= len(user.yields) - len(owner.outputs):
                        pending += self.carried(owner, k - len(user.yields) + len(owner.inputs))

    def becomes(self, param: Value, end: Value) -> bool:
        """Test whether `end` is a later version of `param` on every path: a branch may replace it
        by another array.
        """
        seen: set[Value] = {param}
        pending = [end]
        while pending:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            owner = self.carrier.get(v, v.op)
            if owner is None:
                return False
            if not owner.blocks:
                if owner.record.writes is None:
                    return False
                pending.append(owner.inputs[owner.record.writes])
                continue
            k = (owner.outputs.index(v) if v in owner.outputs
                 else next(b.params.index(v) - len(b.params) for b in owner.blocks
                           if v in b.params)) % len(owner.outputs)
            if owner.name == "if":
                pending += [block.yields[k] for block in owner.blocks]
            else:
                before = len(owner.inputs) - len(owner.outputs)
                pending += [owner.inputs[before + k],
                            owner.blocks[-1].yields[k - len(owner.outputs)]]
        return True

    def carried(self, op: Op, k: int) -> list[Value]:
        """Return the parameter and the output of the carry that starts as input `k` of a loop."""
        k -= len(op.inputs) - len(op.outputs)
        if op.name == "if" or k < 0:
            return []
        return [op.outputs[k],
                *(block.params[k + len(block.params) - len(op.outputs)] for block in op.blocks)]

    # sums

    def is_sum(self, param: Value, end: Value) -> bool:
        """Test whether `end` is `param` plus terms independent of it, added in one place, inside
        loops or not.
        """
        if len(self.uses.get(param, ())) != 1 or len(self.uses.get(end, ())) != 1 or end.op is None:
            return False
        op = end.op
        match op.name:
            case "add" | "added_in_any_order":
                return any(x is param or self.is_sum(param, x) for x in op.inputs)
            case "subtract":
                return op.inputs[0] is param or self.is_sum(param, op.inputs[0])
            case "for" if not op.attrs["breaks"]:
                k = op.outputs.index(end)
                (body,) = op.blocks
                return op.inputs[3 + k] is param and self.is_sum(body.params[1 + k], body.yields[k])
        return False

    # accumulators

    def is_added_to(self, param: Value, end: Value) -> bool:
        """Test whether `end` is `param` plus terms independent of it, in whole or in parts, so that
        trips may run in any order.
        """
        return self._grown(self.body, param) is end

    def _grown(self, block: Block, v: Value) -> Value | None:
        """Return the value of `v` at the end of `block`, if it is only added to; None otherwise."""
        while True:
            users = [(user, k, around) for user, k in self.uses.get(v, ())
                     if not (isinstance(user, Op) and k in user.record.shapes) and user is not block
                     and (around := self._around(user, block)) is not None]
            if not users:
                return v
            op = users[0][2]
            if v in block.yields or any(around is not op for _, _, around in users):
                return None
            v = self._grown_by(op, v, users)
            if v is None:
                return None

    def _around(self, user: Op | Block, block: Block) -> Op | None:
        """Return the op of `block` that is, or contains, `user`."""
        while True:
            if isinstance(user, Block):
                if user not in self.owner:
                    return None
                user = self.owner[user]
            found = self.home.get(user)
            if found is block:
                return user
            if found is None:
                return None
            user = found

    def _grown_by(self, op: Op, v: Value, users: list) -> Value | None:
        match op.name:
            case "add" | "added_in_any_order" if (len(users) == 1
                                                  and same_shape(op.output.type, v.type)):
                return op.output
            case _ if op.record in (subtract, additem) and (len(users) == 1 and users[0][1] == 0
                                            and same_shape(op.output.type, v.type)):
                return op.output
            case "for" if len(users) == 1 and users[0][1] >= 3:
                (body,) = op.blocks
                k = users[0][1] - 3
                return (op.outputs[k]
                        if self._grown(body, body.params[1 + k])
                        is body.yields[k + op.attrs["breaks"]] else None)
            case "if":
                ends = [self._grown(block, v) for block in op.blocks]
                found = [out for k, out in enumerate(op.outputs) if None not in ends
                         and [b.yields[k] for b in op.blocks] == ends]
                return found[0] if len(found) == 1 else None
        return None
