"""A scope of lowering: the values of the original block, and what each is in the loops.

A number is replaced by a value, an array by its Elements (back/loopir/elements.py): in memory, or
as a rule that computes any one of them, which is materialised where a reader needs an array.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from ...analysis.python_numbers import PythonNumbers
from ...ir.builder import at, current
from ...ir.graph import Block, Op, Value
from ...ir.types import Array, Extent
from ...ops.core.raise_conditions import all_of
from ...ops.core.record import value
from ...ops.core.shape import length, shape_source
from ..loopir.elements import Elements, in_memory
from ..loopir.extent_equalities import Equalities
from ..loopir.length_checks import compared, is_same_number
from ..loopir.loop_builder import loop, op_named
from ..loopir.ops import as_dtype, new_buffer, same_length_op, supposed_length_op


class Scope:
    """The values that replace the original ones, in one block and the enclosing ones."""

    def __init__(self, env: dict, extents: dict, equal: Equalities, checked: dict | None = None,
                 roots: dict | None = None, counters: tuple[str, ...] = (), nested: bool = False,
                 asked: set | None = None, loops: dict | None = None, around: Scope | None = None,
                 repeats: bool = False):
        self.env: dict[Value, Value | Elements] = env
        self.extents: dict[Extent, Value] = extents
        self.equal = equal
        # pairs of lengths checked to be equal
        self.checked: dict[frozenset[Value], Value] = {} if checked is None else checked
        # the length that a checked one stands for
        self.roots: dict[Value, Value] = {} if roots is None else roots
        self.counters = counters  # the counter names of enclosing loops
        # tests for Python's errors already made; None: none are emitted
        self.asked = asked
        self.nested = nested  # in a block of an op: its parameters are not the caller's
        # by counter of each enclosing `for`, an op with its bounds
        self.loops: dict[Value, Op] = {} if loops is None else loops
        self.builder = current()
        self.around = around  # the enclosing scope
        # ops that stay as they are, for a library
        self.left: Callable[[Op], bool] = lambda op: False
        self.python_numbers: PythonNumbers | None = around and around.python_numbers
        self.repeats = repeats  # whether it may run several times in one run of the enclosing block
        self.alive: Container[Value] = ()  # values with uses after the current op, in this block
        # by result of a branch, the values that other branches return in its place
        self.instead: dict[Value, list[Value]] = {}

    def inner(self, counter: str | None = None, repeats: bool = False) -> Scope:
        counters = self.counters if counter is None else (*self.counters, counter)
        return Scope(dict(self.env), dict(self.extents), self.equal, dict(self.checked),
                     dict(self.roots), counters, True, None if self.asked is None
                     else set(self.asked), dict(self.loops), self, repeats)

    def pythons(self, xs: Sequence[Value]) -> Callable | None:
        """A function that emits whether all these numbers are Python's; None if they cannot be."""
        numbers = self.python_numbers
        if numbers is None or not numbers.are_possible(xs):
            return None
        return lambda: all_of(*(numbers.asked(x, self.whole,
                                              lambda array: self.elements(array).lengths[0])
                                for x in xs))

    def owns(self, x: Value, block: Block) -> bool:
        """Whether `x` is allocated in `block` or an enclosing arm, and dead afterwards."""
        scope = self
        while not (scope.nested and x in block.params if x.op is None else x.op in block.ops):
            if scope.repeats or scope.around is None or x in scope.around.alive:
                return False
            scope, block = scope.around, scope.around.block
        return True

    def define(self, old: Value, new: Value, lengths: Sequence[Value] | None = None) -> None:
        """Map `old` to the value `new`, an array in memory if it is an array.

        Lengths that are not given are read from it on first use: a name that is unbound on one path
        has none.
        """
        if not isinstance(old.type, Array):
            self.env[old] = new
        elif lengths is None:
            self.env[old] = in_memory(new, (), old.type)
        else:
            self.set(old, in_memory(new, lengths, old.type))

    def set(self, old: Value, elements: Elements) -> None:
        lengths = [self.known(dim, n) if isinstance(dim, Extent) and not dim.accepts_any else n
                   for dim, n in zip(old.type.dims, elements.lengths)]
        elements.lengths = tuple(lengths)
        self.env[old] = elements

    def known(self, dim: Extent, n: Value) -> Value:
        """The first recorded length of this extent, checked to equal `n` unless they are one.

        A type says that two lengths are equal if the program has not raised; the op that would have
        raised may be gone.
        """
        if dim not in self.extents:
            self.extents[dim] = supposed_length_op(n) if dim.is_supposed else n
        first = self.extents[dim]
        return first if is_same_number(first, n) else self.same(first, n)

    def length_of(self, array: Value, axis: int, dim) -> Value:
        if isinstance(dim, int):
            return value(dim)
        if dim in self.extents and not dim.accepts_any:
            return self.extents[dim]
        return length(array, axis=axis)

    def same(self, n: Value, m: Value) -> Value:
        """`n`, checked to equal `m`: the outcome of every check on `n`."""
        key = frozenset((self.roots.get(n, n), self.roots.get(m, m)))
        if len(key) == 1:
            return n
        found = self.checked.get(key)
        if found is not None and compared(found) <= compared(n):
            return n
        if found is None or not compared(n) <= compared(found):
            found = self.checked[key] = same_length_op(n, m)
            self.roots[found] = self.roots.get(n, n)
        return found

    def numbers(self, xs) -> list[Value | None]:
        """The new values of a slice's bounds; None stays None."""
        return [None if x is None else self.env[x] for x in xs]

    def elements(self, x: Value) -> Elements:
        """The elements of the array `x`; its lengths are read before any new loop."""
        found = self.env[x]
        if len(found.lengths) < len(x.type.dims):
            with self.builder:
                lengths = [self.length_of(found.value, k, d) for k, d in enumerate(x.type.dims)]
            self.set(x, in_memory(found.value, lengths, x.type))
        return self.env[x]

    def lengths(self, x: Value) -> tuple[Value, ...]:
        """The lengths of `x`, from an array of the same shape if `x` itself is not in memory."""
        if not isinstance(x.type, Array):
            return ()
        return self.elements(x if x in self.env else shape_source(x)).lengths

    def shape_giver(self, x: Value) -> Value:
        """An array in memory of the shape of `x`, itself or another."""
        return self.whole(x if x in self.env and self.env[x].value is not None else shape_source(x))

    def whole(self, x: Value) -> Value:
        """`x` as a value: a number, or an array in memory."""
        found = self.env[x]
        if not isinstance(found, Elements):
            return found
        if found.value is None:
            home = self.home(x)
            if current() is not home.builder:
                with home.builder, at(x.op.line if x.op else None):
                    home.whole(x)
                found = home.env[x]
            else:
                array = fill(x, found, self.counters) if found.whole is None else found.whole()
                found = in_memory(array, found.lengths, found.type)
            self.env[x] = found
        return found.value

    def home(self, x: Value) -> Scope:
        """The scope that defines `x`, so that code for it runs once, not in each trip inside.

        The ops that own the blocks in between are appended when they are complete, so what is
        emitted there now precedes them.
        """
        home = scope = self
        while scope.around is not None and x in scope.around.env:
            home, scope = scope.around if scope.repeats else home, scope.around
        return home


def fill(x: Value, elements: Elements, counters: tuple[str, ...] = ()) -> Value:
    """A new array with these elements."""
    array = new_buffer(elements.type.dtype, elements.type.dims, elements.lengths)

    def body(index, carries):
        return [op_named("setitem", carries[0], as_dtype(elements.at(index), elements.type.dtype),
                         *index, pattern=("i",) * len(index))]

    (array,) = loop(elements.lengths, [array], [array.type], [x.name], body, counters)
    return array
