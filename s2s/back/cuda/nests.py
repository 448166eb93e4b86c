"""Find what the threads of a kernel share: the trips of a nest, and of the loops inside a trip.

    for i in range(n):                     for i in range(n):
        for j in range(m):                     s = 0.0
            y[i, j] = f(x[i, j])               for j in range(m):
                                                   s += x[i, j]
                                               for j in range(m):
                                                   y[i, j] = x[i, j] / s

On the left the grid is the index space of both loops (`Nest`). On the right it is that of the
outer one, and the threads of a team share the inner loops of each of its trips (`team_loops`): what
is not in these loops all of them compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...analysis.dependence import Trip, least_index
from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ir.types import Array, Scalar, Tape
from ...ops.core.elementwise import add
from ...ops.core.record import Record, constant
from ..lower.fusion_groups import is_little
from ..parallel.outline_parallel import extreme_of
from .block_reductions import STEPS

LANE_TAPES = "has_lane_tapes"  # the mark of a loop of lanes with tapes (lane_tapes.py)
SHORT = 8  # trips of a loop that one thread makes alone


class Roles:
    """The roles of the carries of each loop of one function.

        own     trips touch elements of their own
        gather  trips only add to elements, of others too: atomically
        Record  a number by which trips combine numbers: `add`, `maximum` and so on
        push    a tape that each trip fills, for its counterpart in a later loop (lane_tapes.py)
        pop     a tape that each trip empties
    """

    def __init__(self, function: Function):
        self.counters = {op.blocks[0].params[0]: op for op in walk(function.block)
                         if op.name == "for"}
        self.found: dict[Op, list[str | Record] | None] = {}

    def of(self, loop: Op) -> list[str | Record] | None:
        """The role of each carry of `loop`; None if its trips depend on one another."""
        if loop not in self.found:
            self.found[loop] = self._roles(loop)
        return self.found[loop]

    def forget(self, loop: Op) -> None:
        """Forget the roles of `loop`, whose mark has changed."""
        self.found.pop(loop, None)

    def _roles(self, loop: Op) -> list[str | Record] | None:
        if loop.name != "for" or loop.attrs["breaks"] or loop.inputs[2].constant not in (1, -1):
            return None
        (body,) = loop.blocks
        if any(not (op.record.pure or op.record.only_raises) or op.name == "call"
               for op in walk(body)):
            return None
        if is_single(loop):
            return ["own"] * len(loop.outputs)
        trip = Trip(body, least_index(loop, self.counters))
        has_tapes = LANE_TAPES in loop.attrs
        found = [tape_role(body, k) if has_tapes and isinstance(param.type, Tape)
                 else _role(trip, param, end)
                 for k, (param, end) in enumerate(zip(body.params[1:], body.yields))]
        return None if None in found else found


def is_single(loop: Op) -> bool:
    """Whether `loop` is a serial region (serial_regions.py), of one trip."""
    return "is_region" in loop.attrs


def _role(trip: Trip, param: Value, end: Value) -> str | Record | None:
    match param.type:
        case Array():
            if trip.is_disjoint(param, end):
                return "own"
            return trip.array_role(param, end) or (
                "gather" if trip.only_accumulates(param, end) else None)
        case Scalar() if trip.is_sum(param, end):
            return add
    step = extreme_of(trip, param, end)
    return step if step in STEPS else None


def tape_role(body: Block, k: int) -> str | None:
    """What the trips of a loop do with the tape that is their carry `k`: "push", "pop", or "both";
    None if they do anything else.
    """
    family = {body.params[1 + k]}
    kinds = [kind for op in body.ops for kind in tape_moves(op, family)]
    if not kinds or None in kinds or body.yields[k] not in family or any(
            y in family for j, y in enumerate(body.yields) if j != k):
        return None
    found = set(kinds)
    return found.pop() if len(found) == 1 else "both" if kinds[0] != "pop" else None


def tape_moves(op: Op, family: set[Value]) -> list[str | None]:
    """In order, what `op` does with tapes of `family`, to which it adds their later versions; None
    for what is neither a push nor a pop.
    """
    if not op.blocks:
        if family.isdisjoint(op.inputs) or op.name == "tape_len":
            return []
        family.update(y for y in op.outputs if isinstance(y.type, Tape))
        kind = op.name.removeprefix("tape_")
        return [kind if kind in ("push", "pop") and op.inputs[0] in family else None]
    carried = [k for k in range(-len(op.outputs), 0)
               if op.name != "if" and op.inputs[k] in family]
    for k in carried:
        family.update((op.outputs[k], *(block.params[k] for block in op.blocks)))
    found = [kind for block in op.blocks for inner in block.ops
             for kind in tape_moves(inner, family)]
    for block in op.blocks if op.name == "if" else ():
        family.update(y for y, end in zip(op.outputs, block.yields) if end in family)
    return found


@dataclass
class Nest:
    """Loops that are one index space, the outermost first, and the roles of their carries.

    `before` are the ops between their heads, which each trip carries out again.
    """

    loops: list[Op]
    before: list[Op]
    roles: list[str | Record]

    @property
    def body(self) -> Block:
        return self.loops[-1].blocks[0]

    @property
    def carried(self) -> list[int]:
        """By carry of the outermost loop, the number of that carry in the innermost."""
        numbers = list(range(len(self.roles)))
        for outer, inner in zip(self.loops, self.loops[1:]):
            params = outer.blocks[0].params[1:]
            numbers = [inner.inputs[3:].index(params[k]) for k in numbers]
        return numbers


def nest_of(loop: Op, roles: Roles) -> Nest | None:
    """The largest nest whose outermost loop is `loop`; None if its trips depend on one another."""
    found = roles.of(loop)
    if found is None:
        return None
    nest = Nest([loop], [], found)
    if is_single(loop):
        return nest
    inside: set[Value] = set()
    while True:
        body = nest.body
        inner = body.ops[-1] if body.ops else None
        inside.update((body.params[0], *(y for op in body.ops[:-1] for y in op.outputs)))
        more = None if inner is None or not inner.blocks else roles.of(inner)
        if more is None or not is_perfect(body, inner) or any(
                x in inside and x.constant is MISSING for x in inner.inputs[:3]):
            return nest
        both = [more[inner.inputs[3:].index(body.params[1 + k])] for k in nest.carried]
        # what only the outer trips share, teams of threads add to rows of their own
        joined = [a if a == b else "gather" if (a, b) == ("own", "gather") else None
                  for a, b in zip(nest.roles, both)]
        if None in joined:
            return nest
        nest.before += body.ops[:-1]
        nest.loops.append(inner)
        nest.roles = joined


def private_arrays(nest: Nest, shared: list[Op], roles: Roles) -> list[int]:
    """The carries that trips add to, of which each team may have an array of its own: in the loops
    that it shares each thread has its own elements, at indices that are those of every trip.
    """
    trip, found = Trip(nest.body), []
    changing = {loop.blocks[0].params[0] for loop in nest.loops}
    changing = dependents([*nest.before, *nest.body.ops], changing)
    for k, role in enumerate(nest.roles):
        param = nest.body.params[1 + nest.carried[k]]
        versions = set(trip.versions(param))
        if (role == "gather"
                and all(changing.isdisjoint(op.inputs[op.record.indices:])
                        for op, _ in trip.touching(versions))
                and all(how == "own" for loop in shared
                        for x, how in zip(loop.inputs[3:], roles.of(loop)) if x in versions)):
            found.append(k)
    return found


def dependents(ops: list[Op], changing: set[Value]) -> set[Value]:
    """These numbers, and what `ops` and their blocks compute of them."""
    found = set(changing)

    def visit(op: Op) -> None:
        for block in op.blocks:
            for inner in block.ops:
                visit(inner)
        skip, count = len(op.inputs) - len(op.outputs), len(op.outputs)
        if op.name == "if" or not op.blocks:
            skip = len(op.inputs)
        if not found.isdisjoint(op.inputs[:skip]) or (
                op.name == "while" and not found.isdisjoint(op.blocks[0].yields)):
            found.update(op.outputs, op.blocks[-1].params[:1] if op.name == "for" else ())
        for k, y in enumerate(op.outputs if op.blocks else ()):
            carried = [] if op.name == "if" else [block.params[k - count] for block in op.blocks]
            ends = [*op.inputs[skip + k:skip + k + 1], *(block.yields[k - count]
                                                         for block in op.blocks[-2:]
                                                         if len(block.yields) >= count)]
            if not found.isdisjoint(ends):
                found.update((y, *carried))

    size = 0
    while len(found) > size:  # what a loop carries changes from trip to trip
        size = len(found)
        for op in ops:
            visit(op)
    return found


def is_perfect(body: Block, inner: Op) -> bool:
    """Whether a trip is the loop `inner`, and little arithmetic before it, which does not read what
    the loop carries.
    """
    before = body.ops[:-1]
    return (sorted(inner.inputs[3:], key=id) == sorted(body.params[1:], key=id)
            and all(y is inner.outputs[inner.inputs[3:].index(param)]
                    for param, y in zip(body.params[1:], body.yields))
            and all(map(is_light, before))
            and set(body.params[1:]).isdisjoint(x for op in before for x in op.inputs))


def is_light(op: Op) -> bool:
    """Whether `op` reads one element, or is so little that other trips may do it again."""
    return (is_little(op) or op.record is constant
            or op.record.indices is not None and op.record.writes is None
            and isinstance(op.output.type, Scalar))


def team_loops(body: Block, roles: Roles, known: Mapping[Value, object] | set[Value]) -> list[Op]:
    """The loops in a trip that threads may share; none if the trip has others without such.

    Their bounds are among the values that are `known` to the host, or constants.
    """
    found: list[Op] = []

    def visit(block: Block) -> bool:
        """Whether each loop of the block is shared, or has one inside that is."""
        for op in block.ops:
            if any(isinstance(y.type, Tape) for y in op.outputs):
                return False
            if op.name == "for" and is_shared(op):
                found.append(op)
            elif op.blocks:
                before = len(found)
                if not all(map(visit, op.blocks)) or (op.name != "if" and len(found) == before):
                    return False
        return True

    def is_shared(loop: Op) -> bool:
        low, high = loop.inputs[:2]
        if roles.of(loop) is None or not all(x in known or x.constant is not MISSING
                                             for x in (low, high)):
            return False
        return MISSING in (low.constant, high.constant) or abs(
            high.constant - low.constant) >= SHORT

    return found if visit(body) else []
