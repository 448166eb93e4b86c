"""Value, Block, Op, Function: a program as structured SSA.

A function is a block.  A block has parameters, ops in order, and yields.  An op reads values and
makes values; `if`, `for`, `while` are ops that own blocks, whose ops may also read the values of
the blocks around them.  There is no control-flow graph, and nothing here knows what any op means:
`op.record` does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from operator import attrgetter
from typing import NamedTuple

from ..compile_lock import cached_in_turn
from ..errors import Line, Source
from .types import Dim, Type

OPERATORS: dict[str, Callable] = {}  # Python's operators on Values; the op tables fill it
MISSING = object()  # `Value.constant` where the value is not known


class Value:
    """One value: assigned once, typed.  `name` is its name in the user's program, if any."""

    __slots__ = ("name", "type", "op")
    __array_ufunc__ = None  # so that `array * value` calls the Value's operator

    def __init__(self, type: Type, name: str = "", op: Op | None = None):
        self.type, self.name, self.op = type, name, op  # op: None for a block's parameter

    @property
    def constant(self):
        """The Python constant that this value is, or MISSING."""
        op = self.op
        return op.attrs["value"] if op is not None and op.record.name == "constant" else MISSING

    def __repr__(self) -> str:
        return f"{self.name or 't'}: {self.type}"

    def __bool__(self) -> bool:
        raise TypeError("a Value has no truth while code is generated; emit an `if_` op")

    def __add__(self, other): return OPERATORS["add"](self, other)
    def __radd__(self, other): return OPERATORS["add"](other, self)
    def __sub__(self, other): return OPERATORS["subtract"](self, other)
    def __rsub__(self, other): return OPERATORS["subtract"](other, self)
    def __mul__(self, other): return OPERATORS["multiply"](self, other)
    def __rmul__(self, other): return OPERATORS["multiply"](other, self)
    def __truediv__(self, other): return OPERATORS["divide"](self, other)
    def __rtruediv__(self, other): return OPERATORS["divide"](other, self)
    def __floordiv__(self, other): return OPERATORS["floor_divide"](self, other)
    def __rfloordiv__(self, other): return OPERATORS["floor_divide"](other, self)
    def __mod__(self, other): return OPERATORS["remainder"](self, other)
    def __pow__(self, other): return OPERATORS["power"](self, other)
    def __rpow__(self, other): return OPERATORS["power"](other, self)
    def __matmul__(self, other): return OPERATORS["matmul"](self, other)
    def __rmatmul__(self, other): return OPERATORS["matmul"](other, self)
    def __neg__(self): return OPERATORS["negative"](self)
    def __lt__(self, other): return OPERATORS["less"](self, other)
    def __le__(self, other): return OPERATORS["less_equal"](self, other)
    def __gt__(self, other): return OPERATORS["greater"](self, other)
    def __ge__(self, other): return OPERATORS["greater_equal"](self, other)


@dataclass(eq=False)
class Op:
    """One operation: reads `inputs`, defines `outputs`; `attrs` are fixed when code is generated.
    """

    record: object
    inputs: list[Value]
    attrs: dict = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    line: Line | None = None

    # inlined, as it is called most of all: a third faster than a call
    name = property(attrgetter("record.name"))

    @property
    def output(self) -> Value:
        """The only output."""
        (value,) = self.outputs
        return value

    def __repr__(self) -> str:
        return (f"{', '.join(map(repr, self.outputs))} = "
                f"{self.name}({', '.join(map(repr, self.inputs))})")


@dataclass(eq=False)
class Block:
    """Parameters, ops in order, and the values it yields."""

    params: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Meeting:
    """Two extents that an op on every path compares: the run raises if they are unequal.

    With `broadcasts`, an extent of 1 fits any other, or only `b` does if it is "second": of what is
    written into a place of extent `a`.  A derivative may not need the op that compares them: so
    this is checked on the arguments of a call, independently of what is computed.
    """

    a: Dim
    b: Dim
    broadcasts: bool | str
    line: Line | None
    remedy: str = "pass arrays whose lengths go together"


class Writes(NamedTuple):
    """What a program writes to: `places` are names of parameters and paths in them; `parameters`
    are the names of all that could share memory with those.  It writes to views that are such only
    of the places `in_order`, if these are C-contiguous.
    """

    places: frozenset[tuple[str, tuple]] = frozenset()
    parameters: frozenset[str] = frozenset()
    in_order: frozenset[tuple[str, tuple]] = frozenset()


@dataclass(eq=False)
class Function:
    """A named block whose parameters are arguments and whose yields are results.

    `tupled` says that it returns a tuple, even of one member.  `captures` maps the name of each
    trailing parameter that stands for a closed-over or global value to a function that reads that
    value now.  `defaults` maps a parameter's name to its Python default.  Callers give the
    parameters numbered in `given` away; `handed_on` says which result is which of them, changed in
    place.  Both are for the printer.  It `is_finished` as the last passes have left it
    (pipeline.py).  The parameters numbered in `late` are made of the results (the seeds of a
    Jacobian's rows), so that no pass may ask them for what the results need.  Calls of native code
    check that conditions on the arguments are met: those `required` by its indices
    (analysis/index_ranges.py), and lengths that are `alike`, pairs of (parameter, axis).  If it is
    not `bounded` by the former and by checks of its own, native code compares every index.  The
    program writes to its arguments, or parts of them, in `writes`.
    """

    name: str
    block: Block
    source: Source | None = None
    doc: str = ""
    tupled: bool = False
    captures: dict[str, Callable] = field(default_factory=dict)
    defaults: dict[str, object] = field(default_factory=dict)
    meetings: tuple[Meeting, ...] = ()
    given: frozenset[int] = frozenset()
    handed_on: dict[int, int] = field(default_factory=dict)
    is_finished: bool = False
    late: frozenset[int] = frozenset()
    required: tuple = ()
    bounded: bool = False
    alike: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    writes: Writes = Writes()

    def remade(self, block: Block, **changes) -> Function:
        """Copy this function with another block, and whatever else `changes` name."""
        fields = {"captures": dict(self.captures), "defaults": dict(self.defaults),
                  "is_finished": False, **changes}
        return replace(self, block=block, **fields)

    @property
    def params(self) -> list[Value]:
        return self.block.params

    @property
    def results(self) -> list[Value]:
        return self.block.yields


class Recalled:
    """A function whose parameters and results are known from an earlier process; all else is
    generated on demand.

    It has the `params`, `results`, `captures`, `meetings`, `writes`, `tupled` and `name` of a
    Function, and is not changed.
    """

    def __init__(self, make: Callable[[], Function], name: str, params: list[Value],
                 results: list[Value], tupled: bool, captures: dict[str, Callable],
                 meetings: tuple[Meeting, ...], writes: Writes):
        self.make, self.name, self.params, self.results = make, name, params, results
        self.tupled, self.captures, self.meetings = tupled, captures, meetings
        self.writes = writes

    @cached_in_turn
    def whole(self) -> Function:
        """The function itself."""
        return self.make()


def whole(function: Function | Recalled) -> Function:
    """Return the function itself, generated now where it is only recalled."""
    return function.whole if isinstance(function, Recalled) else function


def identifier(name: str, otherwise: str = "f") -> str:
    """Return a valid identifier for a function: `name`, or `otherwise` for a lambda's, a keyword,
    or anything else invalid.
    """
    return name if name.isidentifier() and not iskeyword(name) else otherwise


def walk(block: Block) -> Iterator[Op]:
    """Yield every op of `block` and of the blocks inside it, outer ops before the ops they own.

    It is what compiling calls most; generators inside generators take twice the time.
    """
    ahead: list[Block | Iterator[Op]] = [block]
    while ahead:
        ops = ahead.pop()
        if isinstance(ops, Block):
            ops = iter(ops.ops)
        for op in ops:
            yield op
            if op.blocks:
                ahead += [ops, *reversed(op.blocks)]
                break


def blocks_of(block: Block) -> Iterator[Block]:
    """Yield `block` and every block inside it."""
    yield block
    for op in block.ops:
        for inner in op.blocks:
            yield from blocks_of(inner)


Readers = dict[Value, list[tuple["Op | None", Block]]]


def readers_of(block: Block) -> Readers:
    """Map each value in `block` and the blocks inside it to its readers: an op, or None for the
    yields, and its block.
    """
    found: Readers = defaultdict(list)
    for inner in blocks_of(block):
        for op in inner.ops:
            for x in op.inputs:
                found[x].append((op, inner))
        for y in inner.yields:
            found[y].append((None, inner))
    return found


def defined_values(block: Block) -> Iterator[Value]:
    """Return the values that `block` itself defines: parameters and outputs, not those of inner
    blocks.
    """
    yield from block.params
    for op in block.ops:
        yield from op.outputs


def free_values(block: Block) -> list[Value]:
    """Return the values that `block`, with its inner blocks, reads and does not define, in order of
    first use.
    """
    bound: set[Value] = set()
    free: dict[Value, None] = {}

    def visit(inner: Block) -> None:
        bound.update(inner.params)
        for op in inner.ops:
            for value in op.inputs:
                if value not in bound:
                    free[value] = None
            for child in op.blocks:
                visit(child)
            bound.update(op.outputs)
        for value in inner.yields:
            if value not in bound:
                free[value] = None

    visit(block)
    return list(free)


def op_free_values(op: Op) -> list[Value]:
    """Return everything that `op` reads from outside itself: its inputs and its blocks' free
    values.
    """
    found = dict.fromkeys(op.inputs)
    for block in op.blocks:
        found.update(dict.fromkeys(free_values(block)))
    return list(found)


def ops_behind(block: Block, values: Sequence[Value]) -> set[Op]:
    """Return the ops of `block` itself that `values` depend on, directly or not."""
    needs, found = set(values), set()
    for op in block.ops:
        if any(x in needs for x in op_free_values(op)):
            found.add(op)
            needs.update(op.outputs)
    return found
