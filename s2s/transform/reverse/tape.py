"""Decide for each primal value that the reverse sweep reads (TBR) whether to save it on a tape or
to recompute it, by a minimum cut.

The reverse sweep is first written as if every value of the primal were in its scope.  For each
primal block that it runs through backwards (a `Region`), this module then decides, of the values of
that block that the adjoint reads, which are saved and which are recomputed from those: a minimum
cut of the block's data flow (Note [The cut]).  What a loop saves goes to a tape
(Note [Two kinds of tape]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...analysis.exit_conditions import ExitCondition, carry_of
from ...analysis.final_elements import FinalElement
from ...analysis.min_cut import sink_side
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.types import Array, List, Scalar, Tuple, Type, Unknown
from ...ir.types import Tape as GrowingTape
from ...ops.program.checkpoint import is_plain
from .whole_array_tapes import replaced_arrays

# Note [The cut]
# Nodes are the values of one block.  A value that the adjoint reads is a sink; a value that cannot
# be recomputed (a loop's carry, what an inner loop or a call of more than arithmetic produced, an
# element of an array that is overwritten later) is a source; a cheap op connects its operands to
# its result.  The price of cutting a value is what it costs to save: 1 for a scalar, AXIS for a
# vector, and so on.  The cheapest cut is what is saved, and everything between the cut and the
# sinks is recomputed.  Of equally cheap cuts the one nearest to the sinks is taken: least is
# recomputed.  Values from outside the block are not nodes: they become needs of the block around
# it.
#
# Note [Two kinds of tape]
# Where every loop around a value is counted, with bounds known before the outermost of them, its
# tape is one array, allocated there and indexed by the loops' counters.  Otherwise it is a growing
# buffer, last in, first out (ops/core/control.py, Note [Tapes are values]): the reverse sweep runs
# through the iterations in exactly the opposite order.
#
# Note [What a trip begins with and ends with]
# What a loop carries, each trip ends with and the next begins with.  Where the reverse sweep reads
# both, and they go to an array, one tape has them: as long as the loop and one more, x_tape[t]
# before the trip and x_tape[t + 1] after it.  So once it is saved what a trip begins with, what it
# ends with is there, too, and not recomputed, however cheap: the loop is cut a second time, with
# its price at 0.  The gradient of a hidden Markov model, whose state is divided by its sum in each
# trip, takes 0.77 of the time, a recurrence of np.exp of numbers 0.56.
#
# Note [Elements of arrays that change]
# `a[i]` can be read again in the reverse sweep only if that version of `a` is still there.  Keeping
# a version of an array that a loop overwrites would cost a copy per trip, so such elements are
# saved one by one; a version made outside all loops is kept as it is (at most one copy in all), and
# so is one that a trip makes anew and reads again and again (whole_array_tapes.py).  Elements that
# a loop writes once are not saved either (analysis/final_elements.py).
#
# Note [What crosses a call]
# A function that is called becomes two, and other code runs between them.  Its own block is cut
# like that of a loop: what is saved is handed from the one to the other.  Its arguments may be
# handed to both.  The caller has them, though in a loop it may have to save them: they cost half.
# Sums and products of vectors that give a number, such as v @ v, are computed again if then nothing
# but arguments is handed over: there is no forward half, and the caller calls the function itself.
#
# Note [The trip that leaves]
# The reverse sweep through a loop knows its last trip, and that only this one can have left it
# (analysis/exit_conditions.py).  What is read only where the loop was left, `total` in `if total >
# limit: return total * x[i]`, is read once: it goes to no tape, but comes out of the loop as it was
# in the last trip, as another carry if it is not one.

SHORT = 50  # the most ops of a function whose calls are repeated
FEW = 16  # the most numbers in an array that it creates
AXIS = 64  # the price of saving a vector, in scalars: many, but finite
MOST_AXES = 3  # axes that count in the price
INFINITE = AXIS ** (MOST_AXES + 3)


@dataclass(eq=False)
class Region:
    """A primal block that the reverse sweep runs through backwards."""

    primal: Block
    op: Op | None = None  # the primal op that owns the block; None for the function itself
    parent: Region | None = None
    adjoint: Block | None = None
    trips: Value | None = None  # stand-in for the trip count, where it is counted at run time
    saved: list[Value] = field(default_factory=list)
    # or read from finished arrays; operands first
    recomputed: list[Value] = field(default_factory=list)
    # values needed from the blocks around it
    outer: dict[Value, None] = field(default_factory=dict)
    # the loops that are left where it runs, innermost first
    leaves: list[Region] = field(default_factory=list)
    # values needed only where that many enclosing loops are left
    once: dict[Value, int] = field(default_factory=dict)
    # for a loop: value -> the stand-in for it in the last trip
    lasts: dict[Value, Value] = field(default_factory=dict)
    # values of the enclosing block, recomputed here: nothing else reads them
    again: list[Value] = field(default_factory=list)
    # end state of a trip -> start state of the next, whose tape holds both
    ends: dict[Value, Value] = field(default_factory=dict)

    @property
    def is_loop(self) -> bool:
        return self.op is not None and self.op.name != "if"

    def path(self) -> list[Region]:
        """The regions from the outermost below the function down to this one."""
        return [] if self.parent is None else [*self.parent.path(), self]

    def last(self, v: Value, asked: dict[Value, ExitCondition] | None = None) -> Value:
        """Return the stand-in for `v` in the last trip of this loop: Note [The trip that leaves].
        """
        carried = carry_of(self.op, asked or {}, v)
        return self.lasts.setdefault(v, Value(v.type, v.name, self.op) if carried is None
                                     else carried)


@dataclass(eq=False)
class Tape:
    """The tape of one saved value of a region."""

    value: Value
    region: Region
    kind: str  # "array", "stack", or "result": an extra result of the primal `if`
    stand_in: Value | None = None  # "result": the value in the enclosing region


def cut(region: Region, needed: list[Value], unstable: set[Value], kept: dict[Value, FinalElement],
        made_again: Container[Op] = (), given: set[Value] | None = None,
        handed_on: Container[Value] = (),
        firm: Container[Value] = ()) -> tuple[list[Value], list[Value]]:
    """Split what the adjoint of `region` needs of it into saved and recomputed values, operands
    first.

    Values `given` to the adjoint need not be saved, those `handed_on` to the next trip are saved
    there; calls in `made_again` are as cheap as cheap ops.  `firm` values are not recomputed
    (analysis/bit_exact.py).
    """
    def is_computed(v: Value) -> bool:
        return v in kept or v not in firm and recomputable(v, unstable, made_again)

    block = region.primal
    own = {v for op in block.ops for v in op.outputs} | set(block.params) | set(needed)
    arguments = set(block.params) if region.op is None else ()
    free = {block.params[0]} if region.is_loop and region.op.name == "for" else set()
    free |= given or set()
    needed = [v for v in needed if v not in free]
    nodes: dict[Value, int] = {}
    edges: list[tuple[int, int, int]] = []
    source, sink = 0, 1
    reached = list(needed)
    for v in reached:
        if v not in nodes:
            nodes[v] = 2 + 2 * len(nodes)
            if is_computed(v):
                reached += [x for x in operands(v, kept) if x in own and x not in free]
    for v, entry in nodes.items():
        edges.append((entry, entry + 1, 0 if v in handed_on else
                      price(v) if v in arguments else 2 * price(v)))
        if is_computed(v):
            edges += [(nodes[x] + 1, entry, INFINITE) for x in operands(v, kept) if x in nodes]
        else:
            edges.append((source, entry, INFINITE))
    edges += [(nodes[v] + 1, sink, INFINITE) for v in needed]
    inside = sink_side(edges, source, sink)
    saved = _in_order(block,
                      [v for v, entry in nodes.items() if entry not in inside
                       and entry + 1 in inside])
    recomputed = operands_first(_in_order(block, needed), {*saved, *free},
                                lambda v: [x for x in operands(v, kept) if x in own])
    return saved, list(recomputed)


def operands_first(roots: Iterable[Value], done: set[Value],
                   inner: Callable[[Value], Iterable[Value]]) -> Iterator[Value]:
    """Sort the roots and their dependencies by `inner` topologically, without what is `done`.

    A program may be a chain of thousands of statements, longer than Python's stack is deep.
    """
    for root in roots:
        path = [] if root in done else [(root, iter(inner(root)))]
        done.add(root)
        while path:
            v, rest = path[-1]
            x = next((x for x in rest if x not in done), None)
            if x is None:
                path.pop()
                yield v
            else:
                done.add(x)
                path.append((x, iter(inner(x))))


def operands(v: Value, kept: dict[Value, FinalElement]) -> Sequence[Value]:
    """Return the values from which the reverse sweep recomputes `v`, where it does not read it from
    a tape.
    """
    if v in kept:
        return (kept[v].array, *kept[v].indices)
    return v.op.inputs if v.op.record.stands_for is None else [v.op.record.stands_for(v.op, v)]


def _in_order(block: Block, values: Iterable[Value]) -> list[Value]:
    """Sort `values` by definition order in the block; stand-ins and lengths last, those of one op
    and name as they come.
    """
    values = dict.fromkeys(values)
    inside = dict.fromkeys(v for v in [*block.params, *(v for op in block.ops for v in op.outputs)]
                           if v in values)
    others = [v for v in values if v not in inside]
    places = {op: k for k, op in enumerate(block.ops)} if others else {}
    return [*inside] + sorted(others, key=lambda v: (places.get(v.op, len(places)), v.name))


def price(v: Value) -> int:
    """Return the cost of saving `v`, in scalars."""
    match v.type:
        case Scalar():
            return 1
        case Array(_, dims):
            return max(1,
                       math.prod(min(d, AXIS) if isinstance(d, int) else AXIS
                                 for d in dims[-MOST_AXES:]))
    return AXIS


def known_trips(op: Op) -> int | None:
    """Return the trip count of a loop; None where it is not known."""
    bounds = [x.constant for x in op.inputs[:3]] if op.name == "for" else [None]
    return len(range(*bounds)) if all(isinstance(b, int) for b in bounds) else None


def recomputable(v: Value, unstable: set[Value], made_again: Container[Op] = ()) -> bool:
    """Test whether the reverse sweep may recompute `v` from the op's operands."""
    op = v.op
    if op is None or op.blocks or v not in op.outputs or not (op.record.cheap or op in made_again):
        return False
    return not (op.record.views and op.inputs and op.inputs[0] in unstable)


def calls_made_again(function: Function, alone: bool = True) -> set[Op]:
    """Return the calls that the reverse sweep of `function` repeats: of cheap scalar arithmetic.

    `rhs(u, p)` of a state u of few numbers, which each step of an integrator makes anew, is one: u
    is saved, and not each product in rhs.  Not so where a loop writes into u: to have it again
    would cost a copy each time.  Nor in a function that calls itself: is it not `alone`, its
    arguments may be written into between its sweeps.
    """
    calls = [op for op in walk(function.block) if op.name == "call"
             and is_plain(op.attrs["callee"])]
    unstable = (unstable_values(function.block) - replaced_arrays(function) if calls and alone
                else set())
    return {op for op in calls if is_arithmetic(op.attrs["callee"].function_for(op.inputs)) or alone
            and unstable.isdisjoint(op.inputs)
            and is_arithmetic(op.attrs["callee"].function_for(op.inputs), of_elements=True)}


def is_arithmetic(function: Function, of_elements: bool = False) -> bool:
    """Test whether `function` is a short straight line of cheap scalar ops.

    Or `of_elements`: numbers that it may read from arrays, and give in an array of few.
    """
    ops = function.block.ops
    if not of_elements:
        return len(ops) <= SHORT and all(op.record.cheap and not op.blocks
                                         and all(isinstance(x.type, Scalar)
                                                 for x in (*op.inputs, *op.outputs)) for op in ops)
    return len(ops) <= SHORT and all(op.record.cheap and not op.blocks and op.record.writes is None
                                     and all(map(is_few, op.outputs))
                                     and (op.name == "getitem"
                                          and isinstance(op.output.type, Scalar)
                                          or all(map(is_few, op.inputs))) for op in ops)


def is_short(op: Op) -> bool:
    """Test whether `op` makes a number of vectors, as a sum or a product does, in one pass."""
    return (bool(op.record.linear or op.record.multilinear) and op.record.pure and not op.blocks
            and all(isinstance(y.type, Scalar) for y in op.outputs)
            and all(getattr(x.type, "rank", 0) <= 1 for x in op.inputs))


def is_few(v: Value) -> bool:
    """Test whether `v` is a number, or an array or a tuple of a few."""
    match v.type:
        case Scalar():
            return True
        case Array(_, dims):
            return all(isinstance(d, int) for d in dims) and int(np.prod(dims)) <= FEW
        case Tuple(items):
            return all(isinstance(item, Scalar) for item in items)
    return False


def unstable_values(block: Block, in_loop: bool = False,
                    stable: frozenset | set = frozenset()) -> set[Value]:
    """Return the versions of arrays that a loop overwrites.  Note [Elements of arrays that change].

    With `in_loop` the block may run again and again.  What is `stable` is saved as it is there,
    before anything writes into it.
    """
    found: set[Value] = set()

    def visit(block: Block, in_loop: bool) -> None:
        if in_loop:
            found.update(v for v in block.params if _changes(v.type) and v not in stable)
        for op in block.ops:
            for inner in op.blocks:
                visit(inner, in_loop or op.name != "if")
            for v in op.outputs:
                written = in_loop and (op.blocks or op.record.writes is not None)
                view = any(op.inputs[k] in found for k in op.record.views if k < len(op.inputs))
                if _changes(v.type) and (written and v not in stable or view):
                    found.add(v)

    visit(block, in_loop)
    return found


def _changes(type: Type) -> bool:
    """Test whether a value of this type may be overwritten in place."""
    return isinstance(type, (Array, Unknown, List)) and not isinstance(type, GrowingTape)
