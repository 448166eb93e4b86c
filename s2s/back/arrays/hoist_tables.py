"""Hoist row computations that an outer loop repeats into a table.

                                                  t = np.empty(len(w))
    for i in range(len(x)):                       for k in range(len(w)):
        for k in range(len(w)):                       t[k] = np.log(w[k])
            s += np.log(w[k]) * x[i]   becomes    for i in range(len(x)):
                                                      for k in range(len(w)):
                                                          s += t[k] * x[i]

This is loop-invariant code motion of a row of numbers: the gradient of a mixture of 12 Gaussians in
loops over points took 2.4 times as long without it.

The operands are elements `w[k]`, `w[k, j]`, `w[k, 0]` or rows `w[k]`, for counters of inner loops
from 0 to a bound, up or down, that the outer loop does not change. Only what each trip computes is
hoisted, and only if it takes longer than a load. The elements are NumPy's numbers, so nothing
raises but an index out of range: where the outer loop makes no trip native code then raises too
early, and the interpreted form answers (runtime/call/native_function.py).

Considered: hoisting before the program is differentiated, when the logarithm has one derivative for
each element instead of one for each trip. But then a table's cotangent is accumulated in memory,
where other sums are numbers; and where the outer loop makes no trip, a zero is multiplied by that
derivative, which may be infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.definite_assignment import maybe_unbound
from ...ir.builder import Builder
from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ir.reemit import clone
from ...ir.types import Array, Scalar
from ...ops.arrays.create import empty
from ...ops.arrays.index import getitem, put
from ...ops.arrays.reduce import sum_record
from ...ops.core.control import at_least_zero, for_loop
from ...ops.core.record import dims_of, value
from ...ops.core.shape import length

FEW = 3  # trips: an outer loop known to make so few is not worth a table


@dataclass(frozen=True)
class Elements:
    """A computation on the elements, or rows, of `array` at these counters and numbers."""

    array: Value
    index: tuple[Value | int, ...]
    is_slow: bool  # whether it takes longer than a load


def hoist_tables(function: Function) -> Function:
    """`function` with repeated computations of its inner loops hoisted into tables."""
    if not any(inner.name == "for" for op in walk(function.block) if op.name in ("for", "while")
               for block in op.blocks for inner in block.ops):
        return function
    function = clone(function)
    unbound = maybe_unbound(function)

    def visit(block: Block, made: dict[tuple, Value]) -> None:
        ops = []
        for op in block.ops:
            if op.name in ("for", "while") and not _is_short(op):
                ops += Tables(function, op, unbound, made).ops
            for inner in op.blocks:
                visit(inner, dict(made))
            ops.append(op)
        block.ops = ops

    visit(function.block, {})
    return function


def _is_short(loop: Op) -> bool:
    if loop.name == "while":
        return False
    start, stop, step = (x.constant for x in loop.inputs[:3])
    return MISSING not in (start, stop, step) and len(range(start, stop, step)) <= FEW


def _end(loop: Op) -> Value | int | None:
    """The upper bound of all counters of the loop, if they are natural numbers."""
    start, stop, step = loop.inputs[:3]
    if start.constant == 0 and step.constant == 1:
        return stop if stop.constant is MISSING else max(stop.constant, 0)
    if stop.constant == -1 and step.constant == -1:
        if start.constant is not MISSING:
            return max(start.constant + 1, 0)
        if (start.op is not None and start.op.name == "subtract"
                and start.op.inputs[1].constant == 1):
            return start.op.inputs[0]
    return None


class Tables:
    """The tables that one outer loop reads.

    `ops` are to be put before it; `made` has the tables of earlier loops.
    """

    def __init__(self, function: Function, outer: Op, unbound: set[Value],
                 made: dict[tuple, Value]):
        self.function, self.unbound, self.made = function, unbound, made
        self.varies = {v for block in outer.blocks for v in _values(block)}
        self.known: dict[Value, Elements] = {}
        self.stops: dict[Value, Value | int] = {}  # by counter
        self.ops: list[Op] = []
        for block in outer.blocks:
            self.visit_inner(block)

    def visit_inner(self, block: Block) -> None:
        """Visit the inner loops that each run of `block` executes, over ranges known before."""
        for op in block.ops:
            stop = _end(op) if op.name == "for" and not op.attrs["breaks"] else None
            if stop is not None and (isinstance(stop, int) or self.is_invariant(stop)):
                self.stops[op.blocks[0].params[0]] = stop
                self.replace_in(op.blocks[0])
                self.visit_inner(op.blocks[0])

    def replace_in(self, block: Block) -> None:
        """Replace computations on elements in `block`, if used there, by table reads."""
        for op in block.ops:
            found = self.elements(op)
            if found is not None:
                self.known[op.output] = found
        wanted = set(block.yields)
        for op in block.ops:
            if len(op.outputs) != 1 or op.output not in self.known:
                for each in (op, *(each for inner in op.blocks for each in walk(inner))):
                    wanted.update(each.inputs, *(inner.yields for inner in each.blocks))
        for op in block.ops:
            if (len(op.outputs) == 1 and op.output in wanted and op.output in self.known
                    and self.known[op.output].is_slow):
                key = self.key(op.output, counters_of(self.known[op.output]))
                if key not in self.made:
                    self.made[key] = self.table(op.output)
                table = self.made[key]
                counters = counters_of(self.known[op.output])
                op.record, op.inputs, op.attrs = (getitem, [table, *counters],
                                                  {"pattern": ("i",) * len(counters)})

    def elements(self, op: Op) -> Elements | None:
        """The elements that `op` computes with, if its other operands are loop-invariant."""
        if len(op.outputs) != 1 or op.blocks or not _is_float(op.output):
            return None
        if op.record is getitem:
            array, *index = (x if x.constant is MISSING else x.constant for x in op.inputs)
            counters = [i for i in index if not isinstance(i, int)]
            if (set(op.attrs["pattern"]) == {"i"} and isinstance(array.type, Array)
                    and self.is_invariant(array) and _is_float(array)
                    and counters and len(set(counters)) == len(counters)
                    and all(i in self.stops if i in counters else i >= 0 for i in index)):
                return Elements(array, tuple(index), False)
            return None
        of = [x for x in op.inputs if x in self.known]
        if not of or any((self.known[x].array, self.known[x].index, dims_of(x.type)) != (
                self.known[of[0]].array, self.known[of[0]].index, dims_of(of[0].type)) for x in of):
            return None
        found = self.known[of[0]]
        if op.record is sum_record:
            is_whole = (op.attrs["axis"] is None and not op.attrs["keepdims"]
                        and isinstance(of[0].type, Array))
            return Elements(found.array, found.index, True) if is_whole else None
        if (not op.record.elementwise or op.name.startswith("math.")
                or dims_of(op.output.type) != dims_of(of[0].type)
                or not all(x in self.known or isinstance(x.type, Scalar) and self.is_invariant(x)
                           for x in op.inputs)):
            return None
        return Elements(found.array, found.index, not op.record.quick
                        or any(self.known[x].is_slow for x in of))

    def is_invariant(self, x: Value) -> bool:
        return x not in self.varies and x not in self.unbound

    def table(self, x: Value) -> Value:
        """The array of the values of `x` for all counters."""
        found = self.known[x]
        counters = counters_of(found)
        names = [i.name for i in counters]

        def filled(array: Value, places: list[Value]) -> Value:
            if len(places) < len(counters):
                stop = self.stops[counters[len(places)]]
                return for_loop(0, stop, 1, [array],
                                lambda i, inner: [filled(inner, [*places, i])],
                                names=[x.name], index=names[len(places)])[0]
            return put(array, tuple(places), self.recompute(x, dict(zip(counters, places))))

        with Builder(Block(), x.op.line, above=_values(self.function.block)) as builder:
            lengths = [at_least_zero(value(self.stops[i])) for i in counters]
            lengths += [length(found.array, axis=len(found.index) + k)
                        for k in range(len(dims_of(x.type)))]
            table = filled(empty(tuple(lengths), x.type.dtype), [])
        table.name = x.name
        self.ops += builder.block.ops
        return table

    def key(self, x: Value, counters: list[Value]) -> tuple:
        """A key that is equal for equal computations."""
        if x in self.known:
            return (x.op.name, str(x.op.attrs), x.type.dtype,
                    tuple(self.key(y, counters) for y in x.op.inputs))
        if x in counters:
            return counters.index(x), self.stops[x]
        return (x,) if x.constant is MISSING else (type(x.constant), x.constant, x.type)

    def recompute(self, x: Value, places: dict[Value, Value]) -> Value:
        """Recompute `x` at these counters."""
        if x not in self.known:
            return places.get(x, x)
        return x.op.record(*(self.recompute(y, places) for y in x.op.inputs), **x.op.attrs)


def counters_of(found: Elements) -> list[Value]:
    return [i for i in found.index if not isinstance(i, int)]


def _values(block: Block) -> list[Value]:
    """All values that `block` and the blocks inside it define."""
    found = list(block.params)
    for op in walk(block):
        found += [*op.outputs, *(p for inner in op.blocks for p in inner.params)]
    return found


def _is_float(x: Value) -> bool:
    return (isinstance(x.type, (Scalar, Array)) and x.type.dtype in ("float32", "float64")
            and not getattr(x.type, "weak", False))
