"""Fuse the forward and reverse sweeps of loops with independent trips (II-loops), which then need
no tape.

    for i in range(n):                                    for i in range(n):
        h = np.tanh(W @ X[i])                                 h = np.tanh(W @ X[i])
        h_tape[i] = h                                         loss += np.sum(h)
        loss += np.sum(h)                     becomes         W_bar += np.outer(1 - h * h, X[i])
    for i in range(n - 1, -1, -1):
        h = h_tape[i]
        W_bar += np.outer(1 - h * h, X[i])

Hascoët, Fidanova and Held call loops with independent iterations II-loops ("Adjoining independent
computations", AD 2000), and Tapenade asks its user for them.  Here they are recognised in the two
sweeps: the reverse sweep reads from the forward sweep only what the same trip has saved, and what
it carries from trip to trip is only added to, so its order is that of a sum.  Its other inputs, the
cotangent of the loss above all, must not depend on the results of the loop: `loss / n` will do,
`np.sqrt(loss)` not.  The forward sweep keeps its order, and with it every bit of the function's
value.

Considered: to decide when the sweeps are emitted (sweeps.py), before the cotangents are known and
cleaned up, so that their dependences would be guessed; or to fuse compiled loops only
(back/loops/fuse.py), which leaves the tapes in the source, and cannot take apart lists of arrays on
tapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...analysis.dependence import Place, Trip, access_position, least_index, runs_back
from ...ir.graph import Block, Function, Op, Value, blocks_of, op_free_values, walk
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import Array, Extent, List, Scalar, Tape, may_be_one
from ...ops.core.identities import base_offset
from ..cleanup.cse import cse
from ..cleanup.dce import dce
from ..cleanup.simplify import simplify
from .deferred_cotangents import deferrable_reads, take_elements


def fuse_sweeps(function: Function) -> Function:
    """Fuse the two sweeps of independent loops where the reverse sweep can begin at once."""
    found: Function | None = function
    while found is not None:
        function = found
        while _fuse_in_block(function.block):
            function = dce(cse(simplify(function)))
        found = _with_deferred_cotangents(function)
    return function


def has_ii_loops(function: Function) -> bool:
    """Test whether `fuse_sweeps` would fuse a loop."""
    return (any(next(_pairs(block), None) is not None for block in blocks_of(function.block))
            or _with_deferred_cotangents(function) is not None)


def _with_deferred_cotangents(function: Function) -> Function | None:
    """Remove the wait of a reverse sweep for whole-array arithmetic (deferred_cotangents.py), if
    its loop can then be fused.
    """
    asked = {d.symbol for p in function.params if isinstance(p.type, Array) for d in p.type.dims
             if isinstance(d, Extent)}
    equal = {frozenset((m.a, m.b)) for m in function.meetings
             if not (m.broadcasts and (may_be_one(m.a) or may_be_one(m.b)))
             and all(isinstance(d, int) or d.symbol in asked for d in (m.a, m.b))}
    for k, (block, forth, back) in enumerate(_sweeps(function)):
        if deferrable_reads(forth, back, block, equal) is None:
            continue
        changed = clone(function)  # a loop that cannot start at once stays as it is
        block, forth, back = next(itertools.islice(_sweeps(changed), k, None))
        take_elements(back, *deferrable_reads(forth, back, block, equal))
        if _pair(forth, back, block) is not None:
            return changed
    return None


def _sweeps(function: Function) -> Iterator[tuple[Block, Op, Op]]:
    """Return the loops of `function` that reverse other loops, with these, in their blocks."""
    return ((block, forth, back) for block in blocks_of(function.block)
            for back, before in _reversed(block) for forth in before)


def _fuse_in_block(block: Block) -> bool:
    """Fuse the loops of `block`, or else of its nested blocks; return whether there were any."""
    joined = False
    while (pair := next(_pairs(block), None)) is not None:
        _fuse(block, pair)
        joined = True
    if not joined:
        for op in block.ops:
            for inner in op.blocks:
                joined |= _fuse_in_block(inner)
    return joined


@dataclass(frozen=True)
class Pair:
    """The two sweeps of a loop, and the ops between them that the second needs."""

    forth: Op
    back: Op
    needed: list[Op]
    # carry of `back` that pops a tape -> carry of `forth` that is the tape
    stacks: dict[int, int]


def _pairs(block: Block) -> Iterator[Pair]:
    """Find pairs of loops from one source line, and one call, of which one reverses the other, if
    it reads a tape.
    """
    for back, before in _reversed(block):
        read = set(op_free_values(back))
        for forth in [forth for forth in before if read.intersection(forth.outputs)] or before:
            if (pair := _pair(forth, back, block)) is not None:
                yield pair


def _reversed(block: Block) -> Iterator[tuple[Op, list[Op]]]:
    """Yield loops, the last first, each with the earlier loops that it may reverse."""
    loops: dict[tuple, list[Op]] = {}
    for op in block.ops:
        if (op.name == "for" and not op.attrs["breaks"] and op.attrs.get("plan") is None
                and op.line is not None):
            before = loops.setdefault((op.line.source, op.line.number), [])
            found = [forth for forth in before[::-1] if runs_back(forth, op)]
            if found:
                yield op, found
            before.append(op)


def _pair(forth: Op, back: Op, block: Block) -> Pair | None:
    """Return what fusing `back` into the trips of `forth` takes; None if that is not possible."""
    (body_back,) = back.blocks
    carry_of = {out: k for k, out in enumerate(forth.outputs)}
    stacks = {k: carry_of[x] for k, x in enumerate(back.inputs[3:]) if x in carry_of
              and isinstance(x.type, List)}
    taken = {forth.outputs[j] for j in stacks.values()}
    saved = [x for x in op_free_values(back) if x in carry_of and x not in taken]
    if any(x in back.inputs for x in saved):
        return None
    if (not all(_is_in_step(x, forth, back) for x in saved)
            or not all(_is_stack(forth.outputs[j], back, k, block) for k, j in stacks.items())):
        return None
    trip = Trip(body_back, least_index(back))
    carries = [(p, end) for k, (p, end) in enumerate(zip(body_back.params[1:], body_back.yields))
               if k not in stacks]
    if not all(p is end or trip.is_added_to(p, end) or trip.role(p, end) == "own"
               for p, end in carries):
        return None
    if not all(op.record.pure for op in walk(body_back)):
        return None
    needed = _needed(forth, back, block, {*saved, *taken})
    return None if needed is None else Pair(forth, back, needed, stacks)


def _is_in_step(x: Value, forth: Op, back: Op) -> bool:
    """Test whether a trip of the reverse sweep reads, of an array written by `forth`, only what the
    same trip alone has accessed.
    """
    if not isinstance(x.type, Array):
        return False
    (body,), (body_back,) = forth.blocks, back.blocks
    trip, trip_back, carry = Trip(body), Trip(body_back), forth.outputs.index(x)
    if not trip.becomes(body.params[1 + carry], body.yields[carry]):
        return False
    touching = [(op, k, body.params[0])
                for op, k in trip.touching(trip.versions(body.params[1 + carry]))]
    for user, k in trip_back.uses.get(x, ()):
        if not isinstance(user, Op) or user.name != "getitem" and k not in user.record.shapes:
            return False
        if k not in user.record.shapes:
            touching.append((user, k, body_back.params[0]))
    return any(_is_one_place({access_position(op, k, axis, index) for op, k, index in touching},
                             forth) for axis in range(x.type.rank))


def _is_one_place(places: set[Place | None], forth: Op) -> bool:
    """Test whether all accesses are at one position, a different one in each trip, counted from the
    front.
    """
    if len(places) != 1 or None in places:
        return False
    ((times, others, number),) = places
    lo, _, step = forth.inputs[:3]
    if times == 1 and not others:
        least = least_index(forth)
        return least is not None and least + number >= 0
    if times == -1 and step.constant == -1:  # lo - i is the number of the trip
        base, offset = base_offset(lo)
        return (others == (frozenset() if base is None else frozenset([(base, 1)]))
                and number >= offset)
    return False


def _is_stack(tape: Value, back: Op, k: int, block: Block) -> bool:
    """Test whether a tape is only used as carry `k` of `back`, which empties it."""
    users = [op for op in block.ops if tape in op_free_values(op)]
    left = back.outputs[k]
    return (isinstance(tape.type, Tape) and users == [back] and back.inputs.count(tape) == 1
            and tape not in block.yields and left not in block.yields
            and not any(left in op_free_values(op) for op in block.ops))


def _needed(forth: Op, back: Op, block: Block, tapes: set[Value]) -> list[Op] | None:
    """Return the ops between the two loops that `back` depends on, to be moved before both; None if
    they depend on `forth`.
    """
    between = block.ops[block.ops.index(forth) + 1:block.ops.index(back)]
    wanted = set(op_free_values(back)) - tapes
    if wanted & set(forth.outputs):
        return None
    found = []
    for op in reversed(between):
        if wanted.intersection(op.outputs):
            _query_shape_before(forth, op)
            read = op_free_values(op)
            if (set(forth.outputs).intersection(read)
                    or not all(each.record.pure
                               for each in (op, *(x for b in op.blocks for x in walk(b))))):
                return None
            wanted.update(read)
            found.append(op)
    return found[::-1]


def _query_shape_before(forth: Op, op: Op) -> None:
    """Let `op` query the shape of an array before `forth` instead of after it, if that is the same.
    """
    for k in op.record.shapes:
        x = op.inputs[k]
        if (x in forth.outputs and isinstance(x.type, Array)
                and not any(getattr(d, "accepts_any", False) for d in x.type.dims)):
            start = forth.inputs[3 + forth.outputs.index(x)]
            op.inputs[k] = start if start.type == x.type else x


def _fuse(block: Block, pair: Pair) -> None:
    """Append the trips of the reverse sweep to those of the forward sweep."""
    forth, back = pair.forth, pair.back
    (body,), (body_back,) = forth.blocks, back.blocks
    own = [k for k in range(len(back.outputs)) if k not in pair.stacks]
    now = dict(zip(forth.outputs, body.yields))
    now[body_back.params[0]] = body.params[0]
    now.update((body_back.params[1 + k], body.yields[j]) for k, j in pair.stacks.items())
    substitute(body_back, now)
    taken = {j: body_back.yields[k] for k, j in pair.stacks.items()}
    body.params += [body_back.params[1 + k] for k in own]
    body.ops += body_back.ops
    body.yields = ([taken.get(j, y) for j, y in enumerate(body.yields)]
                   + [body_back.yields[k] for k in own])
    forth.inputs += [back.inputs[3 + k] for k in own]
    for k in own:
        back.outputs[k].op = forth
        forth.outputs.append(back.outputs[k])
    _forward_tape_items(body,
                        [y for x, y in zip(forth.outputs, body.yields)
                         if isinstance(x.type, Array)])
    block.ops = [op for op in block.ops if op is not back and op not in pair.needed]
    at = block.ops.index(forth)
    block.ops[at:at] = pair.needed


def _forward_tape_items(block: Block, tapes: Sequence[Value]) -> None:
    """Forward what a trip pushes on a tape to its pop in the same trip (store-to-load forwarding);
    `tapes` are the arrays among them, at its end.
    """
    same: dict[Value, Value] = {}
    kept = []
    for op in block.ops:
        tape = same.get(op.inputs[0], op.inputs[0]) if op.inputs else None
        made = None if tape is None else tape.op
        if op.name == "tape_pop" and made is not None and made.name == "tape_push" and made in kept:
            (before, put), (left, x) = made.inputs, op.outputs
            same[left], same[x] = same.get(before, before), same.get(put, put)
        elif (op.name == "getitem" and tape in tapes and made is not None and made.name == "setitem"
              and made in kept and op.inputs[1:] == made.inputs[2:]
              and set(op.attrs["pattern"]) == {"i"} and _is_of_its_dtype(made.inputs[1], tape)):
            same[op.output] = same.get(made.inputs[1], made.inputs[1])
        else:
            kept.append(op)
    block.ops = kept
    substitute(block, same)


def _is_of_its_dtype(x: Value, array: Value) -> bool:
    """Test whether an element of `array` is `x` unconverted: a stored number may have been
    Python's.
    """
    return isinstance(x.type, (Scalar, Array)) and x.type.dtype == array.type.dtype
