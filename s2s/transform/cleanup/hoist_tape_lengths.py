"""Replace taped lengths that no trip changes by the length read before the loop.

    n_tape = np.empty(trips, np.int64)
    for t in range(trips):                              for t in range(trips):
        n_tape[t] = len(u)                                  ...
        ...                               becomes       for t in range(trips - 1, -1, -1):
    for t in range(trips - 1, -1, -1):                      p_bar = np.zeros(len(u))
        p_bar = np.zeros(n_tape[t])

Where a derivative needs of a value only how long it is, the trip saves that
(transform/reverse/shape_only_reads.py).  Often it is known to be always the same only when the
loop's own lengths are, which may be as late as the types of a call (ir/length_assumptions.py).
"""

from __future__ import annotations

from itertools import zip_longest

from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import clone, emit_op, rebuild
from ...ir.substitute import substitute
from ...ir.types import Scalar

MOVED = 4  # the most ops to repeat for a length


def hoist_tape_lengths(function: Function) -> Function:
    """Replace taped lengths that no trip changes by the lengths themselves, now that types are
    known better.
    """
    return (rebuild(again) if _saves_integers(function) and hoist_in_place(again := clone(function))
            else function)


def _saves_integers(function: Function) -> bool:
    return any(op.name == "empty" and op.attrs["dtype"] == "int64" for op in function.block.ops)


def hoist_in_place(function: Function) -> bool:
    """Replace, in place, reads of a tape of equal lengths by the length itself; return whether
    there is such a tape.
    """
    if not _saves_integers(function):
        return False
    versions = _Versions(function.block)
    known = set(function.params)
    said: dict[Value, Value] = {}
    for op in function.block.ops:
        for block in (inner for around in walk(Block(ops=[op])) for inner in around.blocks):
            for read in [inner for inner in block.ops if inner in versions.reads]:
                kind = versions.kinds[read.inputs[0]]
                n = None if kind.refused or len(kind.stored) != 1 else next(iter(kind.stored))
                made = None if n is None else _ops_of(n, known)
                if made is not None:
                    env: dict[Value, Value] = {}
                    with Builder(Block(), read.line) as builder:
                        for each in made:
                            emit_op(each, env)
                    k = block.ops.index(read)
                    block.ops[k:k + 1] = builder.block.ops
                    said[read.output] = env.get(n, n)
        known.update(op.outputs)
    substitute(function.block, said)
    return bool(said)


def _computes_length(op: Op) -> bool:
    return op.name == "constant" or op.record.is_sum or op.record.natural


def _ops_of(n: Value, known: set[Value]) -> list[Op] | None:
    """Return the few ops, operands first, that compute the length `n` from what is `known`; None if
    it takes others.
    """
    found: dict[Op, None] = {}

    def visit(x: Value) -> bool:
        if x in known or x.op in found:
            return True
        if (len(found) == MOVED or x.op is None or not _computes_length(x.op)
                or not all(map(visit, x.op.inputs))):
            return False
        found[x.op] = None
        return True

    return list(found) if visit(n) else None


class _Kind:
    """The versions of one array: what is stored in it, and whether it is used for more than element
    reads and writes.
    """

    def __init__(self):
        self.stored: set[Value] = set()
        self.refused = False


class _Versions:
    """The empty integer arrays that a block allocates, and the ops of the reverse sweep that read
    their elements.
    """

    def __init__(self, block: Block):
        self.kinds: dict[Value, _Kind] = {}
        self.reads: set[Op] = set()
        self.visit(block, [])

    def visit(self, block: Block, ends: list[_Kind | None]) -> None:
        """Visit the ops of `block`, which ends with versions of these arrays, or with none."""
        for op in block.ops:
            kind = self.kinds.get(op.inputs[0]) if op.inputs else None
            match op.name:
                case "empty" if op.attrs["dtype"] == "int64":
                    self.kinds[op.output] = _Kind()
                case "setitem" if kind is not None and set(
                    op.attrs["pattern"]) == {"i"} and op.inputs[1] not in self.kinds:
                    self.kinds[op.output] = kind
                    kind.stored.add(op.inputs[1])
                case "getitem" if (kind is not None and op.line is not None and op.line.backwards
                                   and isinstance(op.output.type, Scalar)):
                    self.reads.add(op)
                case "for":
                    carried = [self.kinds.get(x) for x in op.inputs[3:]]
                    params = op.blocks[0].params[1:]
                    self.kinds.update((x, kind) for xs in (params, op.outputs)
                                      for x, kind in zip(xs, carried) if kind is not None)
                    self.visit(op.blocks[0], [None] * op.attrs["breaks"] + carried)
                case _:
                    for x in op.inputs:
                        self.refuse(x)
                    for inner in op.blocks:
                        self.visit(inner, [])
        for y, kind in zip_longest(block.yields, ends):
            if self.kinds.get(y) is not kind:
                self.refuse(y)
                if kind is not None:
                    kind.refused = True

    def refuse(self, x: Value) -> None:
        if x in self.kinds:
            self.kinds[x].refused = True
