"""Replace growing tapes by arrays with a count: a push to a list is slow, in Numba doubly so.

    x_tape = []                                x_tape = np.empty(64)
    while abs(x) > 1e-3:                       x_count = 0
        x_tape.append(x)                       while abs(x) > 1e-3:
        x = np.sin(x)              becomes         if len(x_tape) < x_count + 1:
    for k in range(len(x_tape)):                       x_tape = with_room(x_tape, x_count + 1)
        x = x_tape.pop()                           x_tape[x_count] = x
                                                   x_count += 1
                                                   x = np.sin(x)
                                               for k in range(x_count):
                                                   x_count -= 1
                                                   x = x_tape[x_count]

In the IR the tape becomes its count, and the array is carried from one push to the next, through
the enclosing loops and branches. It is allocated before the outermost of these, so the lanes of a
batch, each of which starts a tape of its own, share one array; threads that share the lanes
allocate one each (back/parallel/outline_parallel.py, "scratch"). That is legal where two tapes of
one array are never live at once: where each tape is made from the one before, used once (or once on
each of two paths), and created empty at one place (or at one on each of two paths). The others stay
lists. A count is not negative where an element is pushed or popped, which LLVM does not see
(`on_tape`; runtime/kernels/runtime_calls.py): it tested each for an index from the end. Tapes of
arrays of one shape, which is known before them, become arrays with one axis more, while the program
is still in array form: what is pushed is then computed in place, and what is popped is read in
place. Only tapes created outside of loops are treated so: the lanes of a batch that share an array
of numbers need scalars. (A list per lane was 1.7 times the adjoint by hand, an array per lane 1.2,
one array 1.0; an array that is allocated for all trips would need their number.) A counted loop
that pushes once a trip reserves room once, before it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import numpy as np

from ...analysis.alias_in_trip import parts
from ...ir.builder import Builder, add_op, at, emit, fresh_extent
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import INT, Array, Extent, Scalar, Tape, Type
from ...ops.arrays.create import empty
from ...ops.arrays.index import put, take
from ...ops.core.control import at_least_zero, if_
from ...ops.core.record import RECORDS, define, value
from ...ops.core.shape import length
from ..loopir.ops import new_buffer

FEW = 8  # least number of rows
# Initial capacity. It grows by a factor of eight, four, and at last two: untouched pages of the
# system take no memory.
ROOM = 64


def with_room(tape, n):
    times = 8 if n < 100_000 else 4 if n < 1_000_000 else 2
    longer = np.empty(times * n + 1000, tape.dtype)
    for i in range(len(tape)):
        longer[i] = tape[i]
    return longer


def with_room_for_rows(tape, n):
    m = max(tape.shape[1], 1)
    times = 8 if n * m < 100_000 else 4 if n * m < 1_000_000 else 2
    longer = np.empty((times * n + 1000 // m, tape.shape[1]), tape.dtype)
    for i in range(len(tape)):
        for j in range(tape.shape[1]):
            longer[i, j] = tape[i, j]
    return longer


def with_room_for_matrices(tape, n):
    m = max(tape.shape[1] * tape.shape[2], 1)
    times = 8 if n * m < 100_000 else 4 if n * m < 1_000_000 else 2
    longer = np.empty((times * n + 1000 // m, tape.shape[1], tape.shape[2]), tape.dtype)
    for i in range(len(tape)):
        for j in range(tape.shape[1]):
            for k in range(tape.shape[2]):
                longer[i, j, k] = tape[i, j, k]
    return longer


# capacity for at least n numbers
with_room_op = define("with_room", evaluate=with_room, infer=lambda tape, n: tape.type,
                      helper=with_room,
                      syntax=lambda *xs: ast.Call(ast.Name("with_room", ast.Load()), list(xs), []))

with_room_for = {
    1: with_room_op,
    2: define("with_room_for_rows", evaluate=with_room_for_rows,
              infer=lambda tape, n: tape.type, helper=with_room_for_rows,
              syntax=lambda *xs: ast.Call(ast.Name("with_room_for_rows", ast.Load()),
                                          list(xs), [])),
    3: define("with_room_for_matrices", evaluate=with_room_for_matrices,
              infer=lambda tape, n: tape.type, helper=with_room_for_matrices,
              syntax=lambda *xs: ast.Call(ast.Name("with_room_for_matrices", ast.Load()),
                                          list(xs), [])),
}  # by the axes of the tape

# index of a tape element
on_tape = define("on_tape", evaluate=lambda k: k, infer=lambda k: INT, syntax=lambda k: k)


def stack_rows(function: Function) -> Function:
    """Replace tapes of arrays in `function`, not yet a loop form, by arrays where possible."""
    if any(op.name == "tape_push" and isinstance(op.inputs[1].type, Array)
           for op in walk(function.block)):
        function = clone(function)
        _stack(_TapeClasses(function, of_rows=True))
    return function


def stack_tapes(function: Function) -> Function:
    """Replace tapes of numbers in `function`, a loop form, by arrays in place, where possible."""
    _stack(_TapeClasses(function))
    return function


def _stack(kinds: _TapeClasses) -> None:
    function, chosen = kinds.function, kinds.chosen()
    if chosen:
        stacks = _Rewrite(kinds, chosen)
        for op in walk(function.block):
            for x in (*op.outputs, *(p for inner in op.blocks for p in inner.params)):
                if stacks.kind(x) is not None:
                    stacks.names.setdefault(stacks.kind(x), x.name or "tape")
                    x.type, x.name = INT, x.name.replace("_tape", "_count")
        with Builder(Block(list(function.params)),
                     above=[v for op in walk(function.block) for v in op.outputs]):
            stacks.block(function.block, {})


class _TapeClasses:
    """Classes of tapes that must share an array: joined by pushes, pops, carries and branches."""

    def __init__(self, function: Function, of_rows: bool = False):
        self.function, self.of_rows = function, of_rows
        self.one: dict[Value, Value] = {}
        self.home: dict[Value, Block] = {}  # the block that defines a value
        # the op that owns a block, and the block around it
        self.place: dict[Block, tuple[Op, Block]] = {}
        self.consumers: dict[Value, list[Block]] = {}  # the blocks that consume a tape
        self.refused: set[Value] = set()
        self.made: list[tuple[Op, Block]] = []
        # dtypes and extents of items; None if unsupported
        self.items: dict[Value, set[tuple[str, tuple] | None]] = {}
        self._visit(function.block)
        for x in (*function.params, *function.results):
            self._refuse(x)

    def root(self, tape: Value) -> Value:
        while self.one.get(tape, tape) is not tape:
            tape = self.one[tape]
        return tape

    def _same(self, *tapes: Value) -> None:
        if not any(isinstance(x.type, Tape) for x in tapes):
            return
        for x in tapes:
            if not isinstance(x.type, Tape):
                self._refuse(*tapes)
                return
            self.one[self.root(x)] = self.root(tapes[0])

    def _refuse(self, *tapes: Value) -> None:
        self.refused.update(x for x in tapes if isinstance(x.type, Tape))

    def _use(self, tape: Value, block: Block) -> None:
        if isinstance(tape.type, Tape):
            self.consumers.setdefault(tape, []).append(block)

    def _visit(self, block: Block) -> None:
        for x in block.params:
            self.home[x] = block
        for op in block.ops:
            for y in op.outputs:
                self.home[y] = block
            for inner in op.blocks:
                self.place[inner] = (op, block)
                self._visit(inner)
            self._op(op, block)

    def _op(self, op: Op, block: Block) -> None:
        match op.name:
            case "tape_new":
                self.made.append((op, block))
            case _ if op.record.growth and isinstance(op.inputs[0].type, Tape):
                self._same(op.inputs[0], op.outputs[0])
                self._use(op.inputs[0], block)
                item = (op.inputs if op.record.growth > 0 else op.outputs)[1]
                self._refuse(item)  # a tape of tapes
                self.items.setdefault(op.outputs[0], set()).add(self._item(item.type))
            case "tape_len":
                pass
            case "if":
                for a, b, y in zip(op.blocks[0].yields, op.blocks[1].yields, op.outputs):
                    self._same(a, b, y)
                    self._use(a, op.blocks[0])
                    self._use(b, op.blocks[1])
            case "for" | "while":
                first, params, skip = parts(op)
                for k, (init, param, end, y) in enumerate(zip(op.inputs[first:],
                                                              params, op.blocks[-1].yields[skip:],
                                                              op.outputs)):
                    self._same(init, param, end, y, *(head.params[k] for head in op.blocks[:-1]))
                    self._use(init, block)
                    self._use(end, op.blocks[-1])
            case _:
                self._refuse(*op.inputs, *op.outputs)

    def _item(self, type: Type) -> tuple[str, tuple] | None:
        match type:
            case Scalar(dtype) if not self.of_rows:
                return dtype, ()
            case Array(dtype, dims) if (self.of_rows and len(dims) + 1 in with_room_for
                                        and not any(isinstance(d, Extent) and d.accepts_any
                                                    for d in dims)):
                return dtype, dims
        return None

    def chosen(self) -> dict[Value, tuple[str, tuple]]:
        """The classes with one live tape at a time, and the types of their items."""
        found: dict[Value, tuple[str, tuple]] = {}
        items: dict[Value, set[tuple[str, tuple] | None]] = {}
        for tape, held in self.items.items():
            items.setdefault(self.root(tape), set()).update(held)
        refused = {self.root(x) for x in self.refused} | {self.root(x) for x in self.consumers
                                                          if not self._once(x)}
        for kind, held in items.items():
            made = [(op, block) for op, block in self.made if self.root(op.output) is kind]
            if (kind not in refused and len(held) == 1 and None not in held
                    and made and self._exclusive([b for _, b in made])
                    and (not self.of_rows or all(isinstance(d, int) or self.with_extent(d, made)
                                                 for d in next(iter(held))[1]))):
                found[kind] = next(iter(held))
        return found

    def with_extent(self, dim: Extent, made: list[tuple[Op, Block]]) -> tuple[Value, int] | None:
        """An array that has this extent and is defined before the tapes `made`, and its axis."""
        block = self.function.block
        before = list(block.params)
        if len(made) != 1 or made[0][1] is not block:
            return None
        for op in block.ops[:block.ops.index(made[0][0])]:
            before += op.outputs if not op.blocks else ()
        return next(((x, x.type.dims.index(dim)) for x in before if isinstance(x.type, Array)
                     and dim in x.type.dims), None)

    def _once(self, tape: Value) -> bool:
        """Whether `tape` is consumed at most once on each path."""
        blocks = self.consumers[tape]
        return all(self._only_branches(block, self.home[tape])
                   for block in blocks) and self._exclusive(blocks)

    def _only_branches(self, block: Block, around: Block) -> bool:
        """Whether `block` is `around`, or inside it with no loop between."""
        while block is not around:
            op, block = self.place[block]
            if op.name != "if":
                return False
        return True

    def _exclusive(self, blocks: list[Block]) -> bool:
        """Whether no path goes through two of these."""
        return all(self._apart(a, b) for k, a in enumerate(blocks) for b in blocks[:k])

    def _apart(self, a: Block, b: Block) -> bool:
        arms = {self.place[x][0]: x for x in self._around(a)}
        met = next((x for x in self._around(b) if self.place[x][0] in arms), None)
        return (met is not None and self.place[met][0].name == "if"
                and arms[self.place[met][0]] is not met)

    def _around(self, block: Block) -> Iterator[Block]:
        """`block` and the enclosing ones, innermost first, without the function's own."""
        while block in self.place:
            yield block
            block = self.place[block][1]


class _Rewrite:
    """The rewrite of a function; `chosen` maps classes of tapes to the types of their items."""

    def __init__(self, kinds: _TapeClasses, chosen: dict[Value, tuple[str, tuple]]):
        self.kinds, self.chosen = kinds, chosen
        self.names: dict[Value, str] = {}
        # classes for which room is reserved for all pushes of the loop around
        self.reserved: set[Value] = set()

    def kind(self, x: Value) -> Value | None:
        """The class of `x`, if it is a tape that becomes an array."""
        root = self.kinds.root(x) if x in self.kinds.one or x in self.chosen else None
        return root if root in self.chosen else None

    def block(self, block: Block, arrays: dict[Value, Value]) -> dict[Value, Value]:
        """Rewrite `block`, which is entered with these arrays; return the arrays at its end."""
        arrays, ops, block.ops = dict(arrays), block.ops, []
        lengths: dict[Value, Value] = {}
        with Builder(block):
            for op in ops:
                with at(op.line):
                    self.op(op, block, arrays, lengths)
        substitute(block, lengths)
        return arrays

    def op(self, op: Op, block: Block, arrays: dict[Value, Value],
           lengths: dict[Value, Value]) -> None:
        for kind in self.classes_used(op):
            if kind not in arrays:
                needed = self.final_count(op, kind) if op.blocks else None
                arrays[kind] = self.made(kind, needed)
                arrays[kind].name = self.names[kind]
                if needed is not None and self.chosen[kind][1]:
                    self.reserved |= {kind}
        tape = op.inputs[0] if op.inputs else None
        match op.name:
            case "tape_new" if self.kind(op.output) is not None:
                op.record, op.attrs = RECORDS["constant"], {"value": 0}
                block.ops.append(op)
            case "tape_push" if self.kind(op.output) is not None:
                kind, count, x = self.kind(op.output), *op.inputs
                if kind not in self.reserved:
                    arrays[kind] = self.ensure_room(arrays[kind], count + 1, kind)
                arrays[kind] = put(arrays[kind], (on_tape(count),), x)
                arrays[kind].name = self.names[kind]
                self.emit_count(op, "add", count)
            case "tape_pop" if self.kind(op.outputs[0]) is not None:
                kind, item = self.kind(op.outputs[0]), op.outputs[1]
                left = self.emit_count(op, "subtract", tape)
                read = take(arrays[kind], (on_tape(left),)).op
                read.outputs, item.op = [item], read
            case "tape_len" if self.kind(tape) is not None:
                lengths[op.output] = tape
            case "if" if self.classes_used(op):
                arms = [self.block(inner, arrays) for inner in op.blocks]
                block.ops.append(op)
                for kind in list(arrays):
                    if any(ends[kind] is not arrays[kind] for ends in arms):
                        for inner, ends in zip(op.blocks, arms):
                            inner.yields.append(ends[kind])
                        arrays[kind] = _output(op, arrays[kind])
            case "for" | "while" if self.classes_used(op):
                self.loop(op, block, arrays)
            case _:
                block.ops.append(op)

    def made(self, kind: Value, needed: Value | None) -> Value:
        """Allocate an array for a tape of this class, of `needed` rows if their number is known."""
        dtype, dims = self.chosen[kind]
        if not dims:
            return new_buffer(dtype, (fresh_extent(),), (value(ROOM),))
        made = [each for each in self.kinds.made if self.kinds.root(each[0].output) is kind]
        few = max(ROOM // max(math.prod(dims), 1),
                  FEW) if all(isinstance(d, int) for d in dims) else FEW
        if needed is not None:
            few = at_least_zero(needed)
        lengths = [d if isinstance(d, int) else length(x[0], axis=x[1])
                   if (x := self.kinds.with_extent(d, made)) else None for d in dims]
        array = empty(value((few, *lengths)), dtype=dtype)
        array.type = Array(dtype, (fresh_extent("any"), *dims))  # its extent changes as it grows
        return array

    def emit_count(self, op: Op, how: str, count: Value) -> Value:
        """The count that replaces the tape that `op` defines."""
        changed = add_op(RECORDS[how], [count, value(1)], {}, [INT])
        changed.outputs, op.outputs[0].op = [op.outputs[0]], changed
        return op.outputs[0]

    def classes_used(self, op: Op) -> list[Value]:
        """The classes of tapes that are pushed to or popped from in `op`."""
        inside = (op, *(x for block in op.blocks for x in walk(block)))
        kinds = [self.kind(x.outputs[0]) for x in inside if x.record.growth]
        return list(dict.fromkeys(kind for kind in kinds if kind is not None))

    def loop(self, op: Op, block: Block, arrays: dict[Value, Value]) -> None:
        """Rewrite a loop that fills arrays so that it carries them."""
        filled = {self.kind(inner.output): None for body in op.blocks for inner in walk(body)
                  if inner.name == "tape_push" and self.kind(inner.output) in arrays}
        reserved = self.reserved
        self.reserved = reserved & set(filled)
        for kind in filled:
            needed = self.final_count(op, kind)
            if needed is not None:
                if kind not in reserved:
                    arrays[kind] = self.ensure_room(arrays[kind], needed, kind)
                self.reserved |= {kind}
        carried = dict(arrays)
        for kind in filled:
            array = arrays[kind]
            op.inputs.append(array)
            for inner in op.blocks:
                inner.params.append(Value(array.type, array.name))
        for position, inner in enumerate(op.blocks):
            at_start = len(inner.params) - len(filled)
            carried.update(zip(filled, inner.params[at_start:]))
            ends = self.block(inner, carried)
            if position == len(op.blocks) - 1:
                inner.yields += [ends[kind] for kind in filled]
        block.ops.append(op)
        self.reserved = reserved
        for kind in filled:
            arrays[kind] = _output(op, arrays[kind])

    def ensure_room(self, array: Value, needed: Value, kind: Value) -> Value:
        """`array`, grown if necessary to hold `needed` numbers."""
        lacks = length(array, axis=0) < needed
        return if_(lacks, lambda: [emit(with_room_for[array.type.rank], array,
                                        needed)], lambda: [array], [self.names[kind]])[0]

    def final_count(self, op: Op, kind: Value) -> Value | None:
        """The count after a loop with equally many pushes on each trip; None if not yet known."""
        if op.name != "for" or op.attrs["breaks"] or op.inputs[2].constant not in (1, -1):
            return None
        inside = [x for x in walk(op.blocks[0])
                  if x.record.growth and self.kind(x.outputs[0]) is kind]
        if any(x.record.growth < 0 or x not in op.blocks[0].ops for x in inside):
            return None
        count = next(init for init, y in zip(op.inputs[3:], op.outputs) if self.kind(y) is kind)
        lo, hi = op.inputs[:2] if op.inputs[2].constant == 1 else op.inputs[1::-1]
        trips = hi if lo.constant == 0 else hi - lo
        return count + (trips if len(inside) == 1 else trips * len(inside))


def _output(op: Op, like: Value) -> Value:
    op.outputs.append(Value(like.type, like.name, op))
    return op.outputs[-1]
