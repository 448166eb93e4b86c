"""Divergence analysis for vmap: find the values that differ between lanes, and the ops that must
therefore run one lane at a time.

A value is *batched* if it depends on a batched argument.  An op is *divergent* if lanes may take
different paths through it: an `if` on a batched condition, a loop whose trip count is batched, an
op without a batching rule, and whatever touches an array or tape that is *ragged*, of another
length in each lane.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..errors import UnsupportedError
from ..ir.builder import Builder
from ..ir.graph import Block, Function, Op, Value, op_free_values, walk
from ..ir.types import Array, Extent, Generator, List, Scalar, Tape, Tuple, Type
from ..ops.arrays.batched_index import is_ragged
from ..ops.arrays.create import empty_like_record, full_like_record, ones_like_record
from ..ops.core.copy import copy_record
from ..ops.core.record import value
from ..ops.core.shape import spread, zeros_like
from ..ops.program.collectives import first_collective, is_over
from ..ops.program.custom_rules import is_ruled
from ..ops.program.effects import has_effects
from ..ops.program.outside_writes import write_outside
from ..ops.program.random import MAKE_GENERATORS
from ..ops.program.recursive_callee import Recursive
from .dependence import roles
from .propagate import conditions_of, control_flow_edges

# Note [Ragged values]
# A growing tape that a divergent op fills has another length in each lane, and so has `np.empty(n)`
# where n is batched; no array can hold them all.  So everything between the making of such a value
# and its last use is one region, which runs lane by lane.  A tape that such a region touches is
# filled and emptied lane by lane as well, and so becomes one of them.  So is a list of the
# program's that holds what differs from lane to lane.  The versions of a tape are one family:
# whether one of them is batched, or ragged, decides for all.  A ragged array is known by its
# extent, which is new where it is made.
#
# Where lanes meet at a collective, a region ends and another begins.  What is ragged and needed on
# both sides, the tape of a loop that each lane leaves by itself, is kept as a list of those of all
# lanes; a branch or loop in which they meet hands on such lists.

# Note [Draws in lanes]
# vmap means one call for each lane, in order; so lanes draw from a generator of the caller's one
# after another, each what it draws in its turn.  A user of NumPy gets what a loop over lanes gets,
# and one who comes from JAX, where each lane has a key of its own, numbers that differ from lane to
# lane.  Between the first and the last draw from one generator lies a single loop over lanes.
#
# What a lane draws from a generator that it makes itself, from a seed that does not differ, is what
# every lane draws: it is drawn once, unless lanes draw differently, as in a branch that only some
# take.  And the draws of a primal whose directions are the lanes are drawn once, from whatever
# generator: a Jacobian is one evaluation.
#
# Considered: to refuse draws in which lanes take turns, as in a program whose author has not
# thought of them; but the loop is what NumPy's own np.vectorize does.  To draw for all lanes at
# once where a program draws once: the numbers of some distributions would differ from the loop's.

# Note [A thread for each lane]
# Where lanes are threads of a GPU, a loop that is emitted once for all lanes launches kernels in
# each trip; one that each lane runs is in one kernel as a whole.  So a loop of numbers and elements
# diverges there.  A loop of whole arrays does not: its ops are kernels of many threads, or calls of
# a library.  Nor does one in which a loop fills elements of an array, each trip its own: there are
# as many threads as lanes and elements together, if it is not known to be short.

SHORT = 16  # trips that one thread makes

_threads: ContextVar[bool] = ContextVar("threads", default=False)


def lanes_are_threads() -> bool:
    """Whether code is generated in which lanes are threads.  Note [A thread for each lane]"""
    return _threads.get()


@contextmanager
def as_threads(wanted: bool) -> Iterator[None]:
    """A context in which lanes are threads, if so `wanted`."""
    token = _threads.set(wanted)
    try:
        yield
    finally:
        _threads.reset(token)


# allocations, as long as an operand
MADE_FOR_A_LANE = (copy_record, zeros_like, ones_like_record, empty_like_record, full_like_record,
                   spread)


@dataclass
class Region:
    """A run of consecutive ops of one block that are emitted together."""

    ops: list[Op]
    divergent: bool = False


class Lanes:
    """The batched values of `function` and its divergent ops, where the parameters `roots` are
    batched; with `each_writes`, whatever writes into captured objects diverges.  `name` is that of
    the axis of lanes: they meet at collectives over it.  `batches(op, flags)` tests whether a call
    of a recursive function, with these arguments batched, is one for all lanes.  Raises
    UnsupportedError where not all lanes would reach a collective.
    """

    def __init__(self, function: Function, roots: Iterable[Value], each_writes: bool = False,
                 name: Hashable | None = None,
                 batches: Callable[[Op, tuple[bool, ...]], bool] | None = None):
        self.each_writes, self.name, self.batches = each_writes, name, batches
        self.batched: set[Value] = set(roots)
        self.ragged: set[Value] = set()  # tapes
        self.ragged_extents: set[str] = set()  # of arrays
        self.known_extents = {symbol for p in function.params for symbol in symbols_of(p.type)}
        self.divergent: set[Op] = set()
        self.turns: set[Value] = set()  # the generators from which lanes draw one after another
        self.unlike_draw: Op | None = None  # where they would, and each draw is that of all lanes
        # extents of results that follow from lengths of operands: the op, the result, and the axis
        self.sources: dict[str, tuple[Op, int, int]] = {}
        self.families = _tape_families(function.block)
        # allocations that each lane makes for itself, and by symbol the lengths of these
        self.own: set[Op] = set()
        self.allocated: dict[str, Value] = {}
        # of another length in each lane, on both sides of a meeting: kept in a list of all lanes'
        self.handed_on: set[Value] = set()
        while True:
            before = self.size()
            self.visit(function.block)
            if self.size() == before:
                break
        if name is not None:
            self.require_meetings(function.block)

    def size(self) -> tuple[int, ...]:
        return tuple(map(len, (self.batched, self.ragged, self.ragged_extents, self.divergent,
                               self.turns)))

    def mark(self, value: Value) -> None:
        self.batched.update(self.families.get(value, (value,)))

    def visit(self, block: Block) -> None:
        for op in block.ops:
            if op.blocks:
                self.control(op)
            elif self.is_collective(op):
                if not op.record.alike:
                    self.mark(op.output)
            elif op.name == "call":
                self.call(op)
            elif op.name == "tape_len":
                if op.inputs[0] in self.ragged:
                    self.mark(op.output)
            elif not op.record.asks_extents and any(x in self.batched for x in op.inputs):
                self.compute(op)
            self.note_turns(op)
            if (self.touches_ragged(op) and not self.hands_on_lists(op)
                    or self.each_writes and op.record is write_outside):
                self.diverge(op)
            if op in self.divergent:
                known = self.known_extents.union(*(symbols_of(x.type) for x in op_free_values(op)))
                new = {s for out in op.outputs for s in symbols_of(out.type) if s not in known}
                if op.record.lengths is not None and not self.touches_ragged(op):
                    new -= self.note_lengths(op)
                self.ragged_extents.update(new)
        self.separate_lanes(block)
        if lanes_are_threads():
            self.allocate_in_lanes(block)

    def allocate_in_lanes(self, block: Block) -> None:
        """Let each lane make the arrays that are alike in all lanes, where only loops over lanes
        use them: none has to copy them.
        """
        users: dict[Value, list[Op]] = {}
        for op in block.ops:
            for x in op_free_values(op):
                users.setdefault(x, []).append(op)
        for op in block.ops:
            if (op.record.allocates is not None and op.output in users
                    and op.output not in block.yields and self.batched.isdisjoint(op.inputs)
                    and all(map(self.is_by_lane, users[op.output]))):
                self.own.add(op)
                self.mark(op.output)
                lengths = op.inputs[op.record.allocates:]
                self.allocated.update((d.symbol, n) for d, n in zip(op.output.type.dims, lengths)
                                      if isinstance(d, Extent) and not d.offset)

    def is_by_lane(self, op: Op) -> bool:
        """Test whether `op` is, or may be, run in a loop over lanes."""
        return op in self.divergent or self.is_batched(op) and self.may_join(op)

    def note_lengths(self, op: Op) -> set[str]:
        """Note which axes of the results of `op` are as long in each lane, as its record says."""
        found = set()
        with Builder(Block()):
            lengths = op.record.lengths(lambda x, axis: value(1), *op.inputs, **op.attrs)
        for k, given in enumerate(lengths):
            for axis in range(len(given or ())):
                dim = op.outputs[k].type.dims[axis]
                if isinstance(dim, Extent) and not dim.offset:
                    self.sources.setdefault(dim.symbol, (op, k, axis))
                    found.add(dim.symbol)
        return found

    def note_turns(self, op: Op) -> None:
        """Note the generators from which lanes draw in turn at `op`.  Note [Draws in lanes]."""
        drawn = {x for x in (*op_free_values(op), *op.outputs) if isinstance(x.type, Generator)}
        if not drawn:
            return
        foreign = {x for x in drawn if x.op is None or x.op.record not in MAKE_GENERATORS}
        if foreign and not self.each_writes and op in self.divergent:
            self.unlike_draw = op
        if drawn & self.turns or self.each_writes and foreign or op in self.divergent:
            self.turns |= drawn

    def diverge(self, op: Op) -> None:
        """Run `op` one lane at a time."""
        self.divergent.add(op)
        for out in op.outputs:
            self.mark(out)

    def call(self, op: Op) -> None:
        flags = tuple(x in self.batched for x in op.inputs)
        if isinstance(op.attrs["callee"], Recursive):
            if any(flags):
                if self.batches is None or not self.batches(op, flags):
                    self.diverge(op)  # lanes recurse to different depths
                for out in op.outputs:
                    self.mark(out)
            return
        if self.each_writes and any(isinstance(x.type, Generator) for x in op.inputs):
            function = op.attrs["callee"].function_for(op.inputs)
            made = all(x.op is not None and x.op.record in MAKE_GENERATORS for x in op.inputs
                       if isinstance(x.type, Generator))
            if not made or draws_differ(function, flags):
                self.diverge(op)
                return
        results = batched_results(op.attrs["callee"], flags, tuple(x.type for x in op.inputs))
        for out, flag in zip(op.outputs, results):
            if flag:
                self.mark(out)

    def compute(self, op: Op) -> None:
        """Mark the results of an op on batched operands."""
        for out in op.outputs:
            self.mark(out)
        # tuples and tapes of one lane's values hold those of all lanes
        if (not (op.record.elementwise or op.record.batch or op.record.structural
                 or op.record.on_tapes)
                or is_ragged(op, self.batched)):
            self.divergent.add(op)

    # collectives

    def is_collective(self, op: Op) -> bool:
        """Test whether `op` is a collective over the axis of lanes."""
        return self.name is not None and is_over(op, self.name)

    def meets(self, op: Op) -> bool:
        """Test whether lanes meet at `op`, or inside it."""
        return self.name is not None and first_collective([op], self.name) is not None

    def require_meetings(self, block: Block) -> None:
        """Refuse collectives that not all lanes reach; note what has another length in each lane,
        and is needed on both sides of one.
        """
        for op in self.run_by_lane(block):
            if self.meets(op):
                raise UnsupportedError(
                    f"{self.meeting(op)} in a place that only some lanes may reach",
                    self.line_of(op), "call it where all lanes do alike: before the branch or "
                    "loop, with np.where for what only some lanes add")
        for op in block.ops:
            if op.blocks and self.meets(op):
                self.handed_on.update(x for x in self.ragged_in(op)
                                      if isinstance(x, Value) and isinstance(x.type, List))
        made: set[Value] = set()
        for ops in self.between_meetings(block):
            handed = {x for op in ops for x in op_free_values(op) if x in made}
            made.update(x for op in ops for x in op.outputs)
            for x in handed:
                if isinstance(x.type, Generator) or isinstance(x.type, Tuple) and (
                        symbols_of(x.type) & self.ragged_extents):
                    at = next(op for op in block.ops if self.meets(op))
                    raise UnsupportedError(
                        f"{self.meeting(at)} between the making and the use of {x.type} in lanes",
                        self.line_of(at), "make it behind the meeting, or pass it as an argument")
                if x in self.ragged or symbols_of(x.type) & self.ragged_extents:
                    self.handed_on.add(x)
        for op in block.ops:
            for inner in op.blocks:
                self.require_meetings(inner)

    def hands_on_lists(self, op: Op) -> bool:
        """Test whether `op` is a branch or loop in which lanes meet, and of what has another length
        in each lane hands on lists alone: as a list of those of all lanes.
        """
        return (bool(op.blocks) and op not in self.divergent and self.meets(op)
                and all(isinstance(x, Value) and (isinstance(x.type, List) or x.op is None)
                        for x in self.ragged_in(op)))

    def meeting(self, op: Op) -> str:
        """Describe the collective at which lanes meet in `op`."""
        return f"{first_collective([op], self.name).record.name} over {self.name!r}"

    def line_of(self, op: Op):
        """Return the line of that collective."""
        return first_collective([op], self.name).line

    def between_meetings(self, block: Block) -> list[list[Op]]:
        """Partition the ops of `block` at the collectives among them."""
        parts: list[list[Op]] = [[]]
        for op in block.ops:
            if self.meets(op):
                parts.append([])
            else:
                parts[-1].append(op)
        return parts

    def separate_lanes(self, block: Block) -> None:
        """Mark what each lane has of its own because ops run one lane at a time, and the tapes and
        lists that are therefore ragged.
        """
        made: set[Value] = set()
        for op in self.run_by_lane(block):
            self.turns.update(x for x in (*op_free_values(op), *op.outputs)
                              if isinstance(x.type, Generator) and x.op is not None)
            for x in (*op_free_values(op), *op.outputs):
                if isinstance(x.type, List):
                    self.ragged.update(self.families.get(x, (x,)))
            # each lane creates its own, even if all are alike
            if not self.is_shared(op, made):
                made.update(op.outputs)
                self.batched.update(x for x in op.outputs if not isinstance(x.type, List))
        for op in block.ops:
            for x in op.outputs:
                if isinstance(x.type, List) and not isinstance(x.type, Tape) and x in self.batched:
                    self.ragged.update(self.families.get(x, (x,)))

    def control(self, op: Op) -> None:
        for inner in op.blocks:
            self.visit(inner)
        for source, target in control_flow_edges(op):
            if source in self.batched:
                self.mark(target)
        if any(x in self.batched for x in conditions_of(op)) or (
                op.name != "if" and lanes_are_threads() and self.is_batched(op)
                and not self.meets(op) and is_number_code(Block(ops=[op]))
                and not any(map(fills_arrays, walk(Block(ops=[op]))))):
            self.part(op)
        if op in self.divergent:
            for out in op.outputs:
                self.mark(out)
                if isinstance(out.type, List):
                    self.ragged.update(self.families[out])

    def part(self, op: Op) -> None:
        """Note a branch or loop at which lanes part."""
        self.divergent.add(op)

    def touches_ragged(self, op: Op) -> bool:
        return any(True for _ in self.ragged_in(op))

    def ragged_in(self, op: Op) -> Iterator:
        """Yield the ragged tapes, and the extents of ragged arrays, that `op` reads or makes, and
        the generators from which lanes draw in turn.
        """
        for x in (*op_free_values(op), *op.outputs):
            if x in self.turns:
                yield x
            if x in self.ragged:
                yield from self.families.get(x, (x,))
            yield from symbols_of(x.type) & self.ragged_extents

    # regions

    def regions(self, block: Block) -> list[Region]:
        """Partition a block into regions: array style where possible, lane style where necessary,
        together with the user's own scalar lines.

        Numbers computed next to a divergent op, and arrays made for it, join its loop over lanes,
        which then reads as the user's code; a region ends where an op wants whole arrays, a matrix
        product say, unless something ragged spans it.
        """
        together = self.spans(block)
        regions: list[Region] = []
        pending: list[Op] = []  # batched numbers, and divergent ops, that may share a loop
        made: set[Value] = set()  # by those

        def pend(op: Op) -> None:
            pending.append(op)
            made.update(op.outputs)

        def flush() -> None:
            if any(op in self.divergent or op in self.own for op in pending):
                regions.append(Region(list(pending), divergent=True))
            elif pending:
                regions.append(Region(list(pending)))
            pending.clear()
            made.clear()

        for k, op in enumerate(block.ops):
            spanned = any(start <= k <= end for start, end in together)
            if not self.is_batched(op) or self.asks_for_known_shape(op):
                if self.is_shared(op, made):
                    regions.append(Region([op]))  # the same in every lane: before the pending ones
                elif spanned:
                    pend(op)
                else:
                    flush()
                    regions.append(Region([op]))
            elif spanned or op in self.divergent or self.may_join(op):
                pend(op)
            else:
                flush()
                regions.append(Region([op]))
        flush()
        return regions

    def spans(self, block: Block) -> list[tuple[int, int]]:
        """Return the ops from the first to the last that accesses something ragged.
        Note [Ragged values].
        """
        found, first = [], 0
        for ops in self.between_meetings(block):
            touched = [first + k for k, op in enumerate(ops) if self.touches_ragged(op)]
            found += [(touched[0], touched[-1])] if touched else []
            first += len(ops) + 1
        return found

    def run_by_lane(self, block: Block) -> list[Op]:
        """Return the ops to run in a loop over lanes: divergent ones, and those within the span of
        something ragged.
        """
        spans = self.spans(block)
        return [op for k, op in enumerate(block.ops)
                if op in self.divergent or any(start <= k <= end for start, end in spans)]

    def is_batched(self, op: Op) -> bool:
        if op in self.divergent or any(v in self.batched for v in (*op.outputs, *op.inputs)):
            return True
        if self.is_collective(op):
            return True
        return any(self.is_batched(inner) for block in op.blocks for inner in block.ops)

    def is_shared(self, op: Op, made: set[Value]) -> bool:
        """Test whether `op` is the same in every lane, and may be moved before what lanes have
        `made`.
        """
        if not op.record.asks_extents and self.is_batched(op) or has_effects(op):
            return False
        return (not made.intersection(op_free_values(op))
                and not any(isinstance(x.type, List) for x in op.outputs))

    def asks_for_known_shape(self, op: Op) -> bool:
        """Test whether `op` reads only lengths that arguments have."""
        return op.record.asks_extents and isinstance(op.inputs[0].type, Array) and (
            symbols_of(op.inputs[0].type) <= self.known_extents)

    def may_join(self, op: Op) -> bool:
        """Test whether `op` is as cheap lane by lane: scalar code, or an allocation."""
        if op.record in MADE_FOR_A_LANE or op in self.own:
            return True
        if lanes_are_threads() and is_number_code(Block(ops=[op])) and not op.blocks:
            return not op.record.on_tapes
        return not op.blocks and all(isinstance(v.type, Scalar) for v in op.outputs) and (
            op.record.elementwise or op.record.indices is not None or op.name == "item")



def is_number_code(block: Block) -> bool:
    """Test whether `block` computes numbers, and reads and writes elements of arrays."""
    return all(op.blocks or op.record.asks_extents or op.name in ("constant", "undefined")
               or op.record.on_tapes or all(isinstance(x.type, Scalar) for x in elements_of(op))
               and (op.record.elementwise or op.record.indices is not None
                    and set(op.attrs["pattern"]) <= {"i"})
               for op in walk(block))


def fills_arrays(op: Op) -> bool:
    """Test whether `op` is a loop whose trips may be threads, each with elements of its own."""
    if op.name != "for" or "own" not in (roles(op) or ()):
        return False
    low, high = (x.constant for x in op.inputs[:2])
    return not (type(low) is type(high) is int and abs(high - low) <= SHORT)


def elements_of(op: Op) -> list[Value]:
    """Return the operands and results of `op`, but for the arrays that it reads or writes one
    element of.
    """
    if op.record.indices is None:
        return [*op.inputs, *op.outputs]
    return op.inputs[1:] if op.record.writes is not None else [*op.inputs[1:], *op.outputs]


_results: WeakKeyDictionary[Function,
                            dict[tuple, tuple[bool, ...]]] = WeakKeyDictionary()


def batched_results(callee, flags: tuple[bool, ...], types: tuple[Type, ...]) -> tuple[bool, ...]:
    """Return which results of a called function are batched, if these of its arguments are; all,
    for a recursive function.
    """
    function = callee.function_for([Value(t) for t in types])
    # rules of a batched result are batched
    if is_ruled(callee):
        return (any(flags),) * len(function.results)
    known, key = _results.setdefault(function, {}), (flags, lanes_are_threads())
    if key not in known:
        known[key] = (True,) * len(function.results)
        lanes = Lanes(function, [p for p, flag in zip(function.params, flags) if flag])
        known[key] = tuple(y in lanes.batched for y in function.results)
    return known[key]


def draws_differ(function: Function, flags: tuple[bool, ...]) -> bool:
    """Test whether lanes draw differently from a generator that `function` is given, if these of
    its arguments are batched.
    """
    lanes = Lanes(function, [p for p, flag in zip(function.params, flags) if flag])
    return lanes.unlike_draw is not None


def symbols_of(type: Type) -> set[str]:
    """Return the symbols of the extents of an array, or of the members of a tuple."""
    match type:
        case Array(_, dims):
            return {d.symbol for d in dims if isinstance(d, Extent)}
        case Tuple(items):
            return set().union(*map(symbols_of, items))
    return set()


def has_results_of_unknown_length(call: Op) -> bool:
    """Test whether a call returns a tape, or an array of a shape that no argument has."""
    known = set().union(*(symbols_of(x.type) for x in call.inputs))
    return any(isinstance(v.type, List) or symbols_of(v.type) - known
               for v in (*call.inputs, *call.outputs))


def _tape_families(block: Block) -> dict[Value, set[Value]]:
    """Map each tape to all the values that are versions of it."""
    families: dict[Value, set[Value]] = {}

    def join(a: Value, b: Value) -> None:
        if not (isinstance(a.type, List) and isinstance(b.type, List)):
            return
        whole = families.setdefault(a, {a}) | families.setdefault(b, {b})
        for member in whole:
            families[member] = whole

    for op in walk(block):
        match op.name:
            case "for" | "while" | "if":
                for source, target in control_flow_edges(op):
                    join(source, target)
            case "tape_new":
                join(op.output, op.output)
            case _:
                for x in op.inputs:
                    for out in op.outputs:
                        join(x, out)
    return families
