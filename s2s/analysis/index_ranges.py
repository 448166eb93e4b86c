"""Value-range analysis of indices: prove that they are in bounds, so that compiled code need not
check them.

    for i in range(1, len(u) - 1):
        u[i - 1] + u[i + 1]            proved: 1 <= i < len(u) - 1
        f[i]                           holds if len(u) - 1 <= len(f): checked once, at the call

Bounds are a symbol plus a number, where a symbol is an extent of an argument or an integer
argument: all that loops over `range` need.  An index with no such bounds is checked before it is
used (back/arrays/index_checks.py); those that stand in arrays, `x[rows]`, wherever they are read
(back/lower/gather.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import INT, Array, Extent, Scalar
from ..ops.arrays.index_pattern import expand, is_integer, paired


@dataclass(frozen=True)
class Bound:
    """The sum symbol + offset, or offset alone."""

    symbol: str | None
    offset: int

    def __add__(self, by: int) -> Bound:
        return Bound(self.symbol, self.offset + by)


@dataclass(frozen=True)
class Range:
    """The interval low <= x < high, as far as known; x is also below each of `also`, as the counter
    of a `zip` is.
    """

    low: Bound | None = None
    high: Bound | None = None
    also: tuple[Bound, ...] = ()

    def highs(self) -> tuple[Bound, ...]:
        return self.also if self.high is None else (self.high, *self.also)


@dataclass(frozen=True)
class Requirement:
    """The inequality small <= large."""

    small: Bound
    large: Bound


ZERO = Bound(None, 0)


@dataclass(frozen=True)
class Place:
    """One index of an op: the input that it is, and its axis."""

    operand: int
    axis: int


def requirements(function: Function) -> list[str] | None:
    """Return the conditions under which no index is out of bounds, as Python over the parameters
    a0, a1, ...

    None if there are indices of which that cannot be said: those of lists, and those of functions
    that call themselves.
    """
    found, complete = analyse(function)
    if not complete:
        return None
    spelled, texts = symbols(function), []
    for r in found.required:
        if (r.small.symbol is None and r.small.offset <= r.large.offset
                and "shape" in spelled.get(r.large.symbol, "")):
            continue  # lengths are not negative
        texts.append(f"{spell(r.small, spelled)} <= {spell(r.large, spelled)}")
    return sorted(set(texts))


def unproven_indices(function: Function) -> list[tuple[Op, list[Place]]]:
    """Return the ops of `function` with indices that are not proved in bounds, each with these;
    none if every index has to be checked.
    """
    found, complete = analyse(function)
    return found.unproven if complete else []


def analyse(function: Function) -> tuple[Indices, bool]:
    """Return what is known of the indices of `function`, and whether all of them are covered."""
    spelled = symbols(function)
    made = {dim.symbol: at_least(n) for n, dim in allocation_lengths(function.block)}
    found = Indices(named_integers(function.block, spelled), made, spelled)
    return found, found.block(function.block)


def spell(bound: Bound, spelled: dict[str, str]) -> str:
    if bound.symbol is None:
        return str(bound.offset)
    offset = f" {'+' if bound.offset > 0 else '-'} {abs(bound.offset)}" if bound.offset else ""
    return spelled[bound.symbol] + offset


def symbols(function: Function) -> dict[str, str]:
    """Return expressions over the arguments for the symbols known at a call."""
    spelled: dict[str, str] = {}
    for k, p in enumerate(function.params):
        match p.type:
            case Array(_, dims):
                for axis, d in enumerate(dims):
                    if isinstance(d, Extent) and not d.offset:
                        spelled.setdefault(d.symbol, f"a{k}.shape[{axis}]")
            case Scalar("int64"):
                spelled[f"a{k}"] = f"a{k}"
    return spelled


def named_integers(block: Block, spelled: dict[str, str]) -> dict[Value, Range]:
    """Map integers to their symbols: parameters, and lengths of allocated arrays."""
    known: dict[Value, Range] = {}
    for k, p in enumerate(block.params):
        if p.type == Scalar("int64") or p.type == Scalar("int64", weak=True):
            known[p] = exactly(Bound(f"a{k}", 0))
    for n, dim in allocation_lengths(block):
        inner = without_clamp(n)
        found = Indices(known, {}).range_of(inner)
        if dim.symbol not in spelled and found.high is None:
            # of length max(m, 0): m is at most that, which suffices for the end of a range
            known[inner] = (exactly(Bound(dim.symbol, 0)) if inner is n
                            else Range(None, Bound(dim.symbol, 1)))
        elif inner.op is not None and inner.op.name == "min_":
            known[inner] = replace(found, also=(*found.also, Bound(dim.symbol, 1)))
    return known


def allocation_lengths(block: Block) -> list[tuple[Value, Extent]]:
    """Map integers used as lengths of allocations to the extents that stand for them."""
    found = []
    for op in walk(block):
        if op.record.allocates == 0 and isinstance(op.output.type, Array):
            found += [(n, d) for n, d in zip(op.inputs, op.output.type.dims)
                      if isinstance(d, Extent) and not d.offset]
    return found


def without_clamp(n: Value) -> Value:
    """Match max(m, 0) and return m."""
    return n.op.inputs[0] if n.op is not None and n.op.name == "at_least_zero" else n


def at_least(n: Value) -> tuple[Value, int]:
    """Match max(m, 0) + k, the length of a tape with room for a start state too: at least m + k,
    and at least k; return m and k.
    """
    if (n.op is not None and n.op.name == "add" and type(k := n.op.inputs[1].constant) is int
            and k > 0 and (m := without_clamp(n.op.inputs[0])) is not n.op.inputs[0]):
        return m, k
    return without_clamp(n), 0


def exactly(bound: Bound) -> Range:
    return Range(bound, bound + 1)


def difference(a: Bound | None, b: Bound | None) -> Bound | None:
    """Return a - b, where that is a bound."""
    if a is None or b is None or b.symbol not in (None, a.symbol):
        return None
    return Bound(a.symbol if b.symbol is None else None, a.offset - b.offset)


class Indices:
    """The walk over a function that tracks ranges of its integers, and collects the requirements of
    its indices and those without a range.

    Requirements can be checked only for symbols that are `spelled` at a call.
    """

    def __init__(self, known: dict[Value, Range], made: dict[str, tuple[Value, int]],
                 spelled: Mapping[str, str] = MappingProxyType({})):
        self.known, self.made, self.spelled = known, made, spelled
        self.required: list[Requirement] = []
        self.unproven: list[tuple[Op, list[Place]]] = []
        # upper bounds of s * 256 + j in strip-mined loops (back/loops/distribute_gathers.py)
        self.strips: dict[Value, Value] = {}

    def block(self, block: Block) -> bool:
        """Return whether every index in `block` has bounds, or can be checked before it is used."""
        for op in block.ops:
            if op.record.indices is not None and not self.index(op):
                return False
            if op.name == "call":
                return False
            if op.name == "for":
                self.known[op.blocks[0].params[0]] = self.counter(op)
                self.note_strip(op)
            if not all(map(self.block, op.blocks)):
                return False
        return True

    def note_strip(self, loop: Op) -> None:
        """Record that start + j is below n in `for j in range(min(n - start, 256))`, a strip-mined
        loop (back/loops/distribute_gathers.py).
        """
        rest = (loop.inputs[1].op.inputs[0].op if loop.inputs[1].op is not None
                and loop.inputs[1].op.name == "min_" else None)
        if (rest is None or rest.name != "subtract" or loop.inputs[0].constant != 0
                or loop.inputs[2].constant != 1):
            return
        (n, start), j = rest.inputs, loop.blocks[0].params[0]
        if (start.op is not None and start.op.name == "multiply"
                and self.range_of(start.op.inputs[0]).low == ZERO
                and (isinstance(start.op.inputs[1].constant, int)
                     and start.op.inputs[1].constant > 0)):
            self.strips.update((op.output, n) for op in loop.blocks[0].ops
                               if op.name == "add" and op.inputs[0] is start and op.inputs[1] is j)

    def index(self, op: Op) -> bool:
        array = op.inputs[0]
        if not isinstance(array.type, Array):
            return False
        operands = op.inputs[1 if op.name == "getitem" else 2:]
        dims = list(array.type.dims)
        entries = op.attrs["pattern"]
        advanced = [o for p, o in paired(entries, operands) if p == "i"
                    and isinstance(o.type, Array)]
        if any(o.type.dtype == "bool" for o in advanced):
            return all(o.type.dtype == "bool" for p, o in paired(entries, operands) if p == "i")
        place, axis, open_ = len(op.inputs) - len(operands), 0, []
        for p, operand in paired(expand(entries, len(dims)), operands):
            if p is None:
                continue
            if p == "i" and operand not in advanced and not self.inside(operand, dims[axis]):
                if not is_integer(operand):
                    return False
                open_.append(Place(place, axis))
            place, axis = (place + (p.count("x") if isinstance(p, str) and p != "i" else p == "i"),
                           axis + 1)
        if open_:
            self.unproven.append((op, open_))
        return True

    def from_the_front(self, x: Value) -> Value:
        """Return y, of `a[-1 - y]`, which is as far from the end as y is from the front."""
        return (x.op.inputs[1] if x.op is not None and x.op.name == "subtract"
                and x.op.inputs[0].constant == -1 else x)

    def inside(self, x: Value, dim) -> bool:
        """Prove -dim <= x < dim, if need be under a requirement."""
        if isinstance(dim, Extent) and dim.accepts_any:
            return False
        if type(x.constant) is int and x.constant < 0:
            return self.require((Bound(None, -x.constant),
                                 self.length_at_least(dim, Bound(None, -x.constant))))
        r = self.range_of(self.from_the_front(x))
        if r.low is None or r.high is None:
            return False
        own = dim.symbol if isinstance(dim, Extent) else None
        high = next((high for high in r.also if high.symbol == own
                     and high.offset <= getattr(dim, "offset", 0)), r.high)
        return self.require((ZERO, r.low), (high, self.length_at_least(dim, high)))

    def length_at_least(self, dim, needed: Bound) -> Bound:
        """Return a lower bound of an axis length, for comparison with the required one."""
        large = Bound(None, dim) if isinstance(dim, int) else Bound(dim.symbol, dim.offset)
        if large.symbol in self.made and large.symbol != needed.symbol and not large.offset:
            n, more = self.made[large.symbol]
            if needed.symbol is None and needed.offset <= more:
                return Bound(None, more)
            low = self.range_of(n).low
            # an array of length n has at least n elements
            return large if low is None else low + more
        return large

    def require(self, *pairs: tuple[Bound, Bound]) -> bool:
        """Return whether each pair is in order, if the recorded requirements on the arguments hold.
        """
        asked = [Requirement(small, large) for small, large in pairs
                 if small.symbol != large.symbol]
        if any(small.offset > large.offset for small, large in pairs
               if small.symbol == large.symbol):
            return False
        if any(b.symbol is not None and b.symbol not in self.spelled for r in asked
               for b in (r.small, r.large)):
            return False
        self.required += asked
        return True

    def range_of(self, x: Value) -> Range:
        """Return the known range of the integer `x`."""
        if x in self.known:
            return self.known[x]
        if type(x.constant) is int:
            return exactly(Bound(None, x.constant))
        op = x.op
        if op is None:
            return Range()
        if op.record.is_sum and type(op.inputs[1].constant) is int:
            shift = op.inputs[1].constant * op.record.signs[1]
            r = self.range_of(op.inputs[0])
            return Range(None if r.low is None else r.low + shift, None if r.high is None
                         else r.high + shift, tuple(high + shift for high in r.also))
        if op.name == "min_":  # bounded by the bounds of either
            first, *others = ([high for x in op.inputs for high in self.range_of(x).highs()]
                              or [None])
            return Range(None, first, tuple(others))
        if op.name == "subtract":
            a, b = map(self.range_of, op.inputs)
            return Range(difference(a.low, None if b.high is None else b.high + -1),
                         difference(a.high, b.low))
        if (op.name == "remainder" and op.output.type == INT
                and type(op.inputs[1].constant) is not int):
            # of Python's integers, whose remainder by 0 raises
            r = self.range_of(op.inputs[1])
            is_length = (r.low is not None and r.high == r.low + 1
                         and "shape" in self.spelled.get(r.low.symbol, ""))
            return Range(ZERO, r.low) if is_length and r.low.offset >= 0 else Range()
        if op.name == "add" and op.output in self.strips:
            return self.below(ZERO, self.strips[op.output])
        if op.name == "length" and isinstance(op.inputs[0].type, Array):
            dim = op.inputs[0].type.dims[op.attrs["axis"]]
            if isinstance(dim, Extent) and not dim.accepts_any:
                at_least = Bound(dim.symbol, dim.offset)  # exactly, unless it is negative
                return exactly(at_least) if dim.offset >= 0 else Range(at_least, None)
        return Range()

    def below(self, low: Bound | None, end: Value) -> Range:
        """Return the range from `low` to before the `end` of a loop."""
        first, *others = self.ends(end) or [None]
        return Range(low, first, tuple(others))

    def ends(self, x: Value) -> list[Bound]:
        """Return the bounds of the end of a loop's range, where a negative number is as good as 0.
        """
        if x.op is not None and x.op.name == "at_least_zero":
            return self.ends(x.op.inputs[0])
        if x.op is not None and x.op.name == "min_":
            named = self.known[x].also if x in self.known else ()
            return [*(end for each in x.op.inputs for end in self.ends(each)),
                    *(high + -1 for high in named)]
        if x.op is not None and x.op.name == "length" and isinstance(x.op.inputs[0].type, Array):
            dim = x.op.inputs[0].type.dims[x.op.attrs["axis"]]
            if isinstance(dim, Extent) and not dim.accepts_any:
                return [Bound(dim.symbol, dim.offset)]
        return [high + -1 for high in self.range_of(x).highs()]

    def counter(self, op: Op) -> Range:
        """Return the range of a loop's counter."""
        lo, hi, step = op.inputs[:3]
        if type(step.constant) is not int or step.constant == 0:
            return Range()
        if step.constant > 0:  # lo <= i < hi
            return self.below(self.range_of(lo).low, hi)
        last = self.range_of(hi).low  # hi < i <= lo
        return replace(self.range_of(lo), low=None if last is None else last + 1)
