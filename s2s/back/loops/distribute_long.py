"""Distribute a loop of very many statements into shorter loops that alternate strip by strip.

    for i in range(n):                          for s in range((n + 63) // 64):
        t = np.sin(x[i])                            m = min(n - s * 64, 64)
        ...  500 statements                         for j in range(m):
        y[i] = t * u                 becomes            kept[0, j] = np.sin(x[s * 64 + j])
                                                        ...
                                                    for j in range(m):
                                                        ...
                                                        y[s * 64 + j] = kept[0, j] * u

LLVM's vectoriser infers the type of each value of a loop anew from its operands, and from theirs;
over a chain of a thousand statements, forwards and back, that took 6 s, of two thousand 40 s,
beside 2 and 5 s for all the rest of LLVM. The machine's registers hold a dozen numbers anyhow: what
is read hundreds of statements later is spilled to memory in either case, here explicitly, in rows
that stay in the nearest caches. Only loops with independent trips are vectorised, and only those
can be distributed; any other long loop compiles in time linear in its length.

Considered: not vectorising such loops, which then run five times as long; fusing fewer statements
into one loop, which does not help a loop that the user wrote, or one that goes forwards and back in
each trip.

Values that take one addition, or one element of an array that is not written, are recomputed where
they are read instead of saved.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.dependence import roles
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value
from ...ir.substitute import substitute
from ...ir.types import Array
from ...ops.arrays.index import getitem
from ...ops.core.record import value
from ..loopir.loop_builder import loop, op_named, put
from ..loopir.ops import new_buffer
from .distribute_gathers import emit_strip_loop, emit_trip, is_simple

# Operations of a trip from which on its loop is distributed: compile time saved then outweighs
# saving numbers.
MANY = 3_000
PIECE = 500  # operations of each of the new loops, about
WIDTH = 64  # trips of a strip
KEPT = ("float64", "float32", "int64", "bool")


def divide_long_loops(function: Function) -> Function:
    """Distribute the long loops with independent trips of `function`, a loop form, in place."""
    _divide(function.block)
    return function


def _divide(block: Block) -> None:
    kept: list[Op] = []
    same: dict[Value, Value] = {}
    for op in block.ops:
        pieces = pieces_of(op)
        if pieces is None:
            for inner in op.blocks:
                _divide(inner)
            kept.append(op)
            continue
        with Builder(Block(), op.line) as builder:
            same.update(zip(op.outputs, _emit(op, pieces)))
        kept += builder.block.ops
    block.ops = kept
    substitute(block, same)


def pieces_of(op: Op) -> list[list[Op]] | None:
    """The statements of each loop that `op` is distributed into; None to leave it alone."""
    if (op.name != "for" or len(op.blocks[0].ops) < MANY
            or not all(map(is_simple, op.blocks[0].ops))):
        return None
    if not set(roles(op) or ["none"]) <= {"own", "sum"}:
        return None
    (body,) = op.blocks
    last = _sums(body)  # a carried sum must be updated within one loop
    ops = [each for each in body.ops if each not in last]
    cuts = _cuts(ops)
    pieces = [ops[a:b] for a, b in zip([0, *cuts], [*cuts, len(ops)])]
    pieces[-1] += [each for each in body.ops if each in last]
    crossing = {x.type.dtype for x in _crossing(pieces, set())}
    return pieces if crossing <= set(KEPT) else None


def _sums(body: Block) -> set[Op]:
    """The ops that update the carried sums."""
    found: set[Op] = set()
    grown = {p for p in body.params[1:] if not isinstance(p.type, Array)}
    for op in body.ops:
        if any(x in grown for x in op.inputs):
            found.add(op)
            grown.update(op.outputs)
    return found


def _cuts(ops: Sequence[Op]) -> list[int]:
    """The places to cut: near each multiple of PIECE, where the fewest numbers are live."""
    made_at = {y: k for k, op in enumerate(ops) for y in op.outputs}
    read_last = {x: k for k, op in enumerate(ops) for x in op.inputs if x in made_at}
    change = [0] * (len(ops) + 1)
    for x, k in read_last.items():
        change[made_at[x] + 1] += 1
        change[k + 1] -= 1
    waiting, count = [], 0
    for each in change:
        count += each
        waiting.append(count)
    around = PIECE // 4
    return [min(range(k - around, k + around + 1), key=lambda j: (waiting[j], abs(j - k)))
            for k in range(PIECE, len(ops) - PIECE + 1, PIECE)]


def _crossing(pieces: list[list[Op]], cheap: set[Value]) -> dict[Value, None]:
    """The numbers live from one piece to another, except those that are `cheap`."""
    home = {y: k for k, piece in enumerate(pieces) for op in piece for y in op.outputs}
    found = {x: None for k, piece in enumerate(pieces) for op in piece for x in op.inputs
             if home.get(x, k) != k and not isinstance(x.type, Array)}
    return {x: None for x in found if x not in cheap}


def _cheap(body: Block) -> set[Value]:
    """Indices, and elements of arrays that the loop does not write."""
    made, found = {y for op in body.ops
                   for y in op.outputs} | set(body.params[1:]), {body.params[0]}
    for op in body.ops:
        is_index = op.record.ring and op.output.type.dtype == "int64"
        if (is_index or op.name == "getitem") and all(x in found or x not in made
                                                      for x in op.inputs):
            found.update(op.outputs)
    return found


def _emit(op: Op, pieces: list[list[Op]]) -> list[Value]:
    """Emit the distributed loop; return the final values of its carries."""
    (body,) = op.blocks
    cheap = _cheap(body)
    crossing = _crossing(pieces, cheap)
    rows = {dtype: {x: k for k, x in enumerate(y for y in crossing if y.type.dtype == dtype)}
            for dtype in KEPT}

    def strip(start: Value, length: Value, carries: list[Value]) -> list[Value]:
        # arrays, and sums, are carried directly
        now: dict[Value, Value] = dict(zip(body.params[1:], carries))
        kept = {dtype: new_buffer(dtype, (len(xs), WIDTH), [value(len(xs)), value(WIDTH)])
                for dtype, xs in rows.items() if xs}
        for piece in pieces:
            _emit_piece(op, piece, start, length, now, kept, rows, cheap)
        return [now[y] for y in body.yields]

    return emit_strip_loop(op, WIDTH, strip)


def _emit_piece(op: Op, piece: list[Op], start: Value, length: Value, now: dict[Value, Value],
           kept: dict[str, Value], rows: dict[str, dict[Value, int]], cheap: set[Value]) -> None:
    """Emit the loop of one piece; update `now` and `kept`."""
    (body,) = op.blocks
    made = {y for each in piece for y in each.outputs}
    ends = _ends(piece, now)
    given = dict.fromkeys(x for each in piece for x in each.inputs if x not in made
                          and x not in now)
    saved = [x for xs in rows.values() for x in xs if x in made]
    written = [dtype for dtype in kept if any(x.type.dtype == dtype for x in saved)]
    first = _recomputed([x for x in given if x in cheap], cheap, body)
    starts = [*ends, *written]

    def trip(index: list[Value], carries: list[Value]) -> list[Value]:
        env = {**now, **dict(zip(ends, carries))}
        memory = {**kept, **dict(zip(written, carries[len(ends):]))}
        for x in given:
            if x.op is not None and x in rows.get(getattr(x.type, "dtype", ""), ()):
                env[x] = getitem(memory[x.type.dtype], value(rows[x.type.dtype][x]), index[0],
                                 pattern=("i", "i"))
                env[x].name = x.name or "t"
        env = emit_trip(op, [*first, *piece], op_named("add", start, index[0]), env)
        for x in saved:
            memory[x.type.dtype] = put(memory[x.type.dtype], env[x],
                                       [value(rows[x.type.dtype][x]), index[0]])
        return [*(env[y] for y in ends.values()), *(memory[dtype] for dtype in written)]

    values = [now[x] if x in now else kept[x] for x in starts]
    after = loop([length], values, [x.type for x in values],
                 [*(x.name for x in ends), *("kept" for _ in written)], trip, ("i",))
    for y, x in zip(ends.values(), after):
        now[y] = x
    kept.update(zip(written, after[len(ends):]))


def _ends(piece: Sequence[Op], now: dict[Value, Value]) -> dict[Value, Value]:
    """The carries that a piece changes, and their final values."""
    ends: dict[Value, Value] = {}
    root = {x: x for x in now}
    for op in piece:
        k = op.record.writes
        for x in op.inputs if k is None else [op.inputs[k]]:
            if x in root and (k is not None or not isinstance(x.type, Array)):
                root[op.output] = root[x]
                ends[root[x]] = op.output
    return ends


def _recomputed(values: list[Value], cheap: set[Value], body: Block) -> list[Op]:
    """The ops that recompute these values, in order."""
    wanted, pending = set(), list(values)
    while pending:
        x = pending.pop()
        if x in cheap and x.op is not None and x.op not in wanted:
            wanted.add(x.op)
            pending += x.op.inputs
    return [op for op in body.ops if op in wanted]
