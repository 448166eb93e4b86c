"""Split loops whose indices wrap around, as in `np.roll`, at the wrap (index-set splitting).

    for j in range(n):                            lo = 0
        y[j] = x[(j - 1) % n] + x[(j + 1) % n]    while lo < n:
                                                      k = (lo - 1) % n
                                      becomes         k_1 = (lo + 1) % n
                                                      hi = min(n, lo + n - k, lo + n - k_1)
                                                      for j in range(lo, hi):
                                                          y[j] = x[j + (k - lo)] + x[j + (k_1 - lo)]
                                                      lo = hi

A remainder is a division, which takes as long as twenty additions, and an index that is a remainder
prevents vector loads. A five-point stencil of rolls over rows of 120 took 3.5 ns an element, with
indices that are compared and moved back 1.5, and takes 0.6 after splitting. (Over rows of 3, whose
pieces are one element long, it takes 1.4 times as long as with remainders.) Peeling the first and
last trips instead would duplicate the body for each piece, and requires the shifts to be known when
code is generated.

Loops that count down end their pieces where an index is 0. Within a piece a quotient `(j + e) // n`
is constant, too. Remainders that depend only on outer counters are hoisted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.affine import lower_bound
from ...ir.builder import Builder, add_op
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.substitute import substitute
from ...ir.types import INT
from ...ops.core.control import for_record, while_record
from ...ops.core.elementwise import (
    add,
    floor_divide,
    greater,
    less,
    max_,
    min_,
    remainder,
    subtract,
)
from ...ops.core.record import Record, define, value

MOST = 8  # most wrapping indices of one loop
# Least trip count between wraps, where it is known: LLVM divides by 2 quickly, and pieces of two
# trips would be slow.
LONG = 32
WHOLE = (remainder, floor_divide)

# The remainder within a piece.
turned = define("turned", evaluate=lambda i, by: i + by, infer=lambda i, by: INT, syntax=add.syntax,
                signs=(1, 1), natural=True)


def split_at_wraparound(function: Function) -> Function:
    """Split the loops of `function`, a loop form, where their indices wrap around, in place."""
    _Loops().block(function.block, {})
    return function


@dataclass(eq=False)
class WrappingIndex:
    """A wrapping index (counter + terms + offset) % n, and its remainder and quotient ops."""

    terms: tuple[tuple[Record, Value], ...]  # (add or subtract, a loop-invariant number)
    offset: int
    n: Value
    ops: list[Op]

    def at(self, start: Value) -> Value:
        """The dividend in the trip whose counter is `start`."""
        for combine, x in self.terms:
            start = combine(start, x)
        return add(start, self.offset)


class _Loops:
    """A walk over a function from the innermost loops outwards."""

    def block(self, block: Block, counters: dict[Value, Op]) -> None:
        for op in list(block.ops):
            for inner in op.blocks:
                self.block(inner, {**counters, op.blocks[0].params[0]: op} if op.name == "for"
                           else counters)
            if op.name != "for":
                continue
            position = block.ops.index(op)
            block.ops[position:position] = taken_out(op)
            turns = turns_of(op, counters)
            if turns:
                with Builder(Block(), op.line) as builder:
                    outputs = in_pieces(op, turns, counters)
                position = block.ops.index(op)
                block.ops[position:position + 1] = builder.block.ops
                substitute(block, dict(zip(op.outputs, outputs)))


def taken_out(loop: Op) -> list[Op]:
    """Remove loop-invariant remainders and their operands from the loop; return them."""
    (body,) = loop.blocks
    inside = {x for op in body.ops for x in op.outputs} | set(body.params)
    out: dict[Op, None] = {}

    def is_free(x: Value) -> bool:
        """Whether `x` may be computed before the loop."""
        op = x.op
        if x not in inside or op in out:
            return True
        if (op is None or not (op.name == "constant" or op.record.is_sum or op.record in WHOLE)
                or x.type.dtype != "int64" or not all(map(is_free, op.inputs))):
            return False
        out[op] = None
        return True

    for op in [op for op in body.ops if op.record in WHOLE and op.output.type.dtype == "int64"]:
        before = dict(out)
        if not is_free(op.output):
            out = before
    body.ops = [op for op in body.ops if op not in out]
    return list(out)


def turns_of(loop: Op, counters: dict[Value, Op]) -> list[WrappingIndex]:
    """The wrapping indices of an innermost loop that counts up or down by one."""
    (body,) = loop.blocks
    if loop.attrs["breaks"] or "plan" in loop.attrs or loop.inputs[2].constant not in (1, -1):
        return []
    if not _is_natural(body.params[0], {**counters, body.params[0]: loop}):
        return []
    if any(op.blocks and op.name != "if" for op in walk(body)):
        return []
    inside = {x for op in body.ops for x in op.outputs} | set(body.params)
    found: dict[tuple, WrappingIndex] = {}
    for op in body.ops:
        if op.record not in WHOLE or op.output.type.dtype != "int64":
            continue
        x, n = op.inputs
        line = _line(x, body.params[0], inside)
        known = n.constant if type(n.constant) is int else None
        if line is None or (n in inside or not _is_natural(n, counters) if known is None
                            else known < LONG):
            continue
        found.setdefault((*line, n if known is None else known),
                         WrappingIndex(*line, n, [])).ops.append(op)
    return list(found.values()) if len(found) <= MOST else []


def _is_natural(n: Value, counters: dict[Value, Op]) -> bool:
    """Whether `n` is known not to be negative."""
    least = lower_bound(n, counters)
    return least is not None and least >= 0


def _line(x: Value, counter: Value,
          inside: set[Value]) -> tuple[tuple[tuple[Record, Value], ...], int] | None:
    """`x` as counter + loop-invariant terms + constant; None if it is no such sum."""
    if x is counter:
        return (), 0
    if x.op is None or x.op.record not in (add, subtract) or x not in inside:
        return None
    a, b = x.op.inputs
    if x.op.record is add and a not in inside:
        a, b = b, a
    found = _line(a, counter, inside)
    if found is None or b in inside and type(b.constant) is not int:
        return None
    terms, offset = found
    if type(b.constant) is int:
        return terms, offset + x.op.record.signs[1] * b.constant
    return (*terms, (x.op.record, b)), offset


def in_pieces(loop: Op, turns: list[WrappingIndex], counters: dict[Value, Op]) -> list[Value]:
    """Emit the split loop; return the final values of its carries."""
    (body,), (begin, end, step) = loop.blocks, loop.inputs[:3]
    is_up = step.constant == 1
    types, names = [INT, *(y.type for y in loop.outputs)], ["lo" if is_up else "hi",
                                                            *(p.name for p in body.params[1:])]
    head, piece = (Block([Value(t, n) for t, n in zip(types, names)]) for _ in range(2))
    with Builder(head):
        head.yields = [(less if is_up else greater)(head.params[0], end)]
    with Builder(piece):
        start, stop = piece.params[0], end
        for turn in turns:
            is_known = type(turn.n.constant) is int
            n = value(turn.n.constant) if is_known else turn.n
            first = turn.at(start)
            place = remainder(first, n)
            if is_up:
                left = subtract(n, place)
                # n is at least 1 if the loop makes a trip; if n is 0, the program may raise
                # elsewhere
                if n is not end and not is_known:
                    left = max_(left, 1)
                stop = min_(stop, add(start, left))
            else:
                stop = max_(stop, subtract(subtract(start, place), 1))
            by = subtract(place, start) if any(op.record is remainder for op in turn.ops) else None
            for op in turn.ops:
                if op.record is remainder:
                    new = Op(turned, [body.params[0], by], {}, [], op.outputs, op.line)
                    body.ops[body.ops.index(op)] = op.output.op = new
                else:
                    body.ops.remove(op)
                    substitute(body, {op.output: floor_divide(first, n)})
        stop.name = "hi" if is_up else "lo"
        inner = add_op(for_record, [start, stop, value(step.constant), *piece.params[1:]],
                       {**loop.attrs, "least": 0}, types[1:], [body], names[1:])
        piece.yields = [stop, *inner.outputs]
    return list(add_op(while_record, [begin, *loop.inputs[3:]], {"breaks": False}, types,
                       [head, piece], names).outputs[1:])
