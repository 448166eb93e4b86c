"""Keep inlined calls of one function as calls, where their bodies came out alike.

    t = self.stress(a)              inlined: both bodies        def stress(x, modulus): ...
    u = self.stress(b)              differ in names alone       t = stress(a, modulus)
                                                                u = stress(b, modulus)

A function that takes objects, or closes over the caller's names, is inlined on the caller's own
cells (front/eval/apply.py).  What it leaves are ops on values, which are a function of the values
that they read.  Where several calls leave the same, it is called, differentiated, printed once.

A call stays inlined if it writes into what it is given (a `call` op takes values and returns
others, so that it would have to copy), or if so few others are like it that a function would be no
shorter.

Considered: values instead of constants where two calls differ in those alone.  They would have to
be computed with at run time where they are folded now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...analysis.alias import Memory
from ...errors import Line
from ...ir.builder import Builder, current, emit
from ...ir.graph import Block, Function, Op, Source, Value, blocks_of, free_values, walk
from ...ir.reemit import clone
from ...ir.substitute import substitute
from ...ir.types import Array, Extent, List, Scalar, Tuple, Type, Undefined, carries_derivative
from ...ops.core.control import call
from ...ops.program.checkpoint import Outlined
from .heap import Cell

# Ops of a function, and of the calls that are not printed any more, from which on programs get
# shorter, as measured for tests/whole.  A block counts as three: it is printed with a header.
LEAST, LEAST_SAVED, BLOCK = 10, 44, 3
MOST = 12  # parameters, and results


@dataclass(eq=False)
class InlinedCall:
    """The ops of one inlined call of a function, and what it is called."""

    ops: list[Op]
    definition: object
    name: str
    source: Source
    line: Line | None
    names: dict[Value, str]  # of its parameters


@dataclass(eq=False)
class Region:
    """The ops of an inlined call as they stand in a finished block: a function of what they read.
    """

    call: InlinedCall
    block: Block
    ops: list[Op]
    constants: list[Op]
    given: list[Value]

    @property
    def values(self) -> list[Value]:
        """All that its ops compute, which the function may return."""
        return [y for op in self.ops for y in op.outputs]

    @property
    def read(self) -> list[int]:
        """Those of its values, by number, that are read after it."""
        after = self.block.ops[self.block.ops.index(self.ops[-1]) + 1:]
        read = {*free_values(Block([], after, self.block.yields))}
        return [k for k, y in enumerate(self.values) if y in read]

    def function(self, results: Iterable[int]) -> Function:
        """The function that returns the values of these numbers."""
        values = self.values
        found = [values[k] for k in results]
        function = clone(Function(self.call.name,
                                  Block(self.given, [*self.constants, *self.ops], found),
                                  self.call.source, tupled=len(found) != 1))
        for p, x in zip(function.params, self.given):
            p.name = self.call.names.get(x, p.name)
        return function


def note(session, definition: object, name: str, source: Source, bindings: Mapping[str, object],
         run: Callable):
    """Run `run()`, an inlined call with these arguments, and note the ops that it emits; returns
    its result.
    """
    builder = current()
    names = {session.heap.contents.get(x, x): name for name, x in bindings.items()
             if isinstance(x, (Value, Cell))}
    block, start = builder.block, len(builder.block.ops)
    result = run()
    if not session.recursions and not session.tries and current().block is block:
        session.inlined_calls.append(InlinedCall(block.ops[start:], definition, name, source,
                                                 builder.line, names))
    return result


def share_repeated(top: Block, session, prepare: Callable[[Function], Function]) -> None:
    """Replace inlined calls in the finished block `top` by calls of functions that several of them
    share, in place; `prepare` cleans such a function up.
    """
    by_definition: dict[object, list[InlinedCall]] = {}
    for each in session.inlined_calls:
        by_definition.setdefault(each.definition, []).append(each)
    groups = [calls for calls in by_definition.values() if len(calls) > 1]
    shared: list[Outlined] = []
    for calls in sorted(groups, key=_size):  # those inside others first
        home = {op: block for block in blocks_of(top) for op in block.ops}
        alike: dict[tuple, list[InlinedCall]] = {}
        for each in calls:
            region = region_of(each, home)
            if region is not None:
                alike.setdefault(key_of(region.function(range(0))), []).append(each)
        for members in alike.values():
            regions = [region_of(each, home) for each in members]
            read = sorted(set().union(*(region.read for region in regions)))
            function = regions[0].function(read)
            if is_worth(function, len(members)):
                shared.append(Outlined(function))
                for each in members:  # again, as its operands may be results of others
                    region = region_of(each, home)
                    made = replace(region, shared[-1], read)
                    home[made] = region.block
                    _follow(session.inlined_calls, region, made, read)
    for callee in shared:
        callee.made = {types: prepare(function) for types, function in callee.made.items()}


def _size(calls: list[InlinedCall]) -> int:
    return max(len([*walk(Block([], each.ops, []))]) for each in calls)


def _is_unbound(op: Op) -> bool:
    return len(op.outputs) == 1 and isinstance(op.output.type, Undefined)


def _stays(op: Op) -> bool:
    """Test whether `op` is repeated where it is needed: a constant."""
    return op.name == "constant" or _is_unbound(op)


def region_of(each: InlinedCall, home: dict[Op, Block]) -> Region | None:
    """The region of an inlined call, if its ops are still together and a function of few values.
    """
    ops = [op for op in each.ops if op in home and not _stays(op)]
    if not ops or len({home[op] for op in ops}) > 1:
        return None
    block, chosen = home[ops[0]], set(ops)
    first, last = block.ops.index(ops[0]), block.ops.index(ops[-1])
    if any(op not in chosen and not _stays(op) for op in block.ops[first:last + 1]):
        return None
    free = free_values(Block([], ops, []))
    constants = [x.op for x in free if x.op is not None and _stays(x.op)]
    given = [x for x in free if x.op is None or not _stays(x.op)]
    return Region(each, block, ops, constants, given)


def is_cheap(type: Type) -> bool:
    """Test whether a `call` op may hand values of this type over: numbers and arrays, tuples of
    them, and lists without a derivative, as the cotangent of a list is made anew by each call.
    """
    match type:
        case Array() | Scalar():
            return True
        case List(item):
            return is_cheap(item) and not carries_derivative(item)
        case Tuple(items):
            return all(map(is_cheap, items))
    return False


def is_worth(function: Function, count: int) -> bool:
    """Test whether the ops of `count` calls may be, and are worth, this function: it writes into
    nothing that it is given, and no two of its results are one memory.
    """
    ops = [op for op in walk(function.block) if not op.record.structural]
    size = len(ops) + BLOCK * sum(len(op.blocks) for op in ops)
    if (size < LEAST or (count - 1) * size < LEAST_SAVED
            or len(function.params) > MOST or not 0 < len(function.results) <= MOST
            or not all(is_cheap(x.type) for x in (*function.params, *function.results))):
        return False
    memory = Memory(function)
    written = [memory.overwritten(op, k) for op in walk(function.block) for k in memory.written(op)]
    own = [{site for site, _ in memory.of(y)} - memory.borrowed for y in function.results]
    return (not any(site in memory.borrowed for found in written for site, _ in found)
            and sum(map(len, own)) == len(set().union(*own)))


def replace(region: Region, callee: Outlined, results: Iterable[int]) -> Op:
    """Replace the ops of `region` by a call of `callee`, which returns the values of these numbers,
    in place.
    """
    block, chosen = region.block, set(region.ops)
    last = block.ops.index(region.ops[-1])
    with Builder(Block(), region.call.line) as builder:
        outputs = emit(call, *region.given, callee=callee)
    outputs = (outputs,) if isinstance(outputs, Value) else outputs
    values = region.values
    replaced = dict(zip((values[k] for k in results), outputs, strict=True))
    for old, new in replaced.items():
        new.name = old.name
    block.ops = [*(op for op in block.ops[:last + 1] if op not in chosen), *builder.block.ops,
                 *block.ops[last + 1:]]
    substitute(block, replaced)
    return builder.block.ops[-1]


def _follow(calls: Iterable[InlinedCall], region: Region, made: Op, results: Iterable[int]) -> None:
    """Let other calls hold `made` in place of the ops of `region`, and its results."""
    chosen, values = set(region.ops), region.values
    for each in calls:
        each.names.update((new, each.names[values[k]]) for k, new in zip(results, made.outputs)
                          if values[k] in each.names)
        if chosen.issubset(each.ops):
            at = each.ops.index(region.ops[0])
            each.ops[at:at] = [made]
            each.ops = [op for op in each.ops if op not in chosen]


def key_of(function: Function) -> tuple:
    """A key that functions have in common which differ in the names of values and lengths alone."""
    numbers: dict[object, int] = {}

    def number(x: object) -> int:
        return numbers.setdefault(x, len(numbers))

    def plain(x: object) -> object:
        match x:
            case Extent():
                return "extent", number(x.symbol), x.offset, x.symbol_may_be_one, x.symbol_is_long
            case Array(dtype, dims):
                return "array", dtype, *map(plain, dims)
            case Tuple(items, form):
                return "tuple", form, *map(plain, items)
            case tuple() | list():
                return type(x), *map(plain, x)
            case float() | complex():
                return type(x), repr(x)
        try:
            hash(x)
        except TypeError:
            return "object", id(x)
        return type(x), x

    def key(block: Block) -> tuple:
        params = [(number(p), plain(p.type)) for p in block.params]
        ops = [(op.record.name, *map(number, op.inputs),
                *((name, plain(x)) for name, x in sorted(op.attrs.items())),
                *map(key, op.blocks), *((number(y), plain(y.type)) for y in op.outputs))
               for op in block.ops]
        return (*params, *ops, *map(number, block.yields))

    return key(function.block)
