"""Find values with entries that a program discards: their cotangents are 0 there.
Note [Strong zeros], ops/core/chain_rule.py

    d = np.sqrt(z * z)                 thrown away: what np.triu leaves out
    e = np.sum(np.triu(d, 1))
    d = np.sqrt(z * z)                 nothing is: the second use reads it all
    e = np.sum(np.triu(d, 1)) + np.sum(d)

A cotangent is the sum of the contributions of all uses, so an entry is discarded if every use
discards it.  A use discards entries itself (an index, np.triu, an overwrite), or passes them on to
a value whose entries are discarded (elementwise ops, sums over some axes, copies, an array that is
filled).  Entries that a mask, np.where or a branch leaves out are known by its condition, and are
left to that (Note [Masks stay outermost]), unless the results are discarded as well, or the
condition is not visible any more:

    for k in range(n):                 s_bar and y_bar come from the two arms of the branch.  Where
        s = s + x[k]                   that took s, y_bar is 0.0, and all trips hand it on as they
        y = y + 1 / x[k]               would any other: strong zeros, unless both are under the same
    return s if y > limit else y       condition, under which the whole loop is swept back

Considered: to pass the condition into the loop, where it holds only if no carry adds to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

from ..ir.graph import MISSING, Block, Function, Op, Value, readers_of, walk
from ..ir.types import Array, List, Scalar, Tuple, is_inexact
from ..ops.arrays.create import array_record
from ..ops.arrays.index import setitem
from ..ops.arrays.index_pattern import expand, paired
from ..ops.core.record import same_shape
from ..ops.core.signs import is_nonzero
from ..ops.program.checkpoint import is_plain
from ..ops.program.list_ops import list_add
from .activity import passes_derivative
from .infinite_factors import infinite_factors
from .propagate import loop_parts
from .side_effects import is_steep, reachable_values

# how much of a cotangent there is; SCALED: 0 where a factor is
WHOLE, MASKED, SCALED, DISCARDED = range(4)
MOST_ROUNDS = 8  # of an analysis of loops, which settles in two or three
MOST_TERMS = 32  # of a sum that is looked through


class Discarded:
    """The values of `function` with entries that may be discarded; `seeded` are the results whose
    cotangents may be partly 0.

    With `doubted`, what the function is given may be infinite or NaN.
    """

    def __init__(self, function: Function, active: set[Value], seeded: Iterable[Value] = (),
                 doubted: bool = False):
        self.active, self.seeded = active, set(seeded)
        self.doubted = function.params if doubted else ()
        # levels that have been asked for
        self.asked: set[tuple[Value, Op | None]] = set()
        # loops of whose results branches have thrown away some, and not the others
        self.blind: set[Op] = set()
        self.block = function.block
        self.readers = readers_of(function.block)
        self.owner: dict[Block, tuple[Op, Block]] = {}
        pending = [function.block]
        while pending:
            block = pending.pop()
            for op in block.ops:
                for inner in op.blocks:
                    self.owner[inner] = op, block
                    pending.append(inner)
        self.home = {y: block for block in (function.block, *self.owner)
                     for y in [*block.params, *(y for op in block.ops for y in op.outputs)]}

    @cached_property
    def factors(self) -> set[Value]:
        """The values that the program itself treats as possibly infinite or NaN."""
        return infinite_factors(self.block, self.active, self.doubted)

    @cached_property
    def products(self) -> set[Value]:
        """The results of ops whose slopes are computed from `factors`."""
        return {y for op in (walk(self.block) if self.factors else ())
                if multiplies(op) and not self.factors.isdisjoint(op.inputs) for y in op.outputs}

    @cached_property
    def unbounded(self) -> set[Value]:
        """The values of which some entries may be infinite, or NaN, for finite inputs."""
        poles = {y for op in walk(self.block) if self.slope(op) == "pole" for y in op.outputs}
        poles |= self.products
        poles.update(op.outputs[k] for op in walk(self.block)
                     if op.name == "call" and is_plain(op.attrs["callee"])
                     for k in unbounded_results(op.attrs["callee"].function_for(op.inputs)))
        return reachable_values(self.block, poles, through=True) if poles else poles

    def slope(self, op: Op) -> str:
        """Return the kind of slope of `op`, as in Note [Slopes]: a quotient by one number, the same
        in all trips of loops, is infinite everywhere, or nowhere.
        """
        if op.blocks or not is_steep(op):
            return "finite"
        slope = op.record.slope_at(op.inputs)
        is_one = (op.record.divides
                  and isinstance(op.inputs[1].type, Scalar)
                  and self.home.get(op.inputs[1]) is self.block)
        return "finite" if is_one else slope

    def asks_strong_zeros(self, op: Op) -> bool:
        """Test whether a slope of `op`, or of an op behind its operands, may be infinite where its
        results are discarded.
        """
        if not op.record.elementwise or not (self.steep or self.unbounded):
            return False
        level = together(map(self.level_in_loops, op.outputs))
        return (level == DISCARDED and self.may_be_steep(op) or level == SCALED
                and self.may_be_steep(op) and not self.may_be_unbounded(op))

    def level_in_loops(self, y: Value) -> int | None:
        """Return the level of `y`, with DISCARDED for MASKED in `blind` loops, which do not see the
        masks.
        """
        level, block = self.level(y), self.home.get(y)
        while level == MASKED and block in self.owner:
            loop, block = self.owner[block]
            level = DISCARDED if loop in self.blind else level
        return level

    def may_be_unbounded(self, op: Op) -> bool:
        return any(x in self.unbounded for x in (*op.inputs, *op.outputs))

    def may_be_steep(self, op: Op) -> bool:
        return any(x in self.steep for x in op.outputs) or self.may_be_unbounded(op)

    @cached_property
    def steep(self) -> set[Value]:
        """The values computed with a slope that may be infinite, unless by an op that mixes
        elements.
        """
        steep = {y for op in walk(self.block) if self.slope(op) != "finite" for y in op.outputs}
        return reachable_values(self.block, steep, through=_keeps_apart) if steep else steep

    def level(self, x: Value, via: Op | None = None) -> int | None:
        """Return how much of the cotangent of `x` there is; None if there is none at all.  `via` is
        the loop that carries it from trip to trip.
        """
        self.asked.add((x, via))
        return self.levels.get((x, via))

    @cached_property
    def levels(self) -> dict[tuple[Value, Op | None], int | None]:
        """The level of each active value, by the loop that carries it from trip to trip, or None;
        computed against program order.
        """
        found: dict[tuple[Value, Op | None], int | None] = {}
        self.levels = found  # what is asked meanwhile is what is known so far
        order = list(self.values_backwards(self.block, (None,)))
        loops = any(op.name in ("for", "while") for op in walk(self.block))
        readers: dict[tuple[Value, Op | None], set[tuple[Value, Op | None]]] = {}
        stale = set(order)
        for _ in range(MOST_ROUNDS if loops else 1):
            for key in order if stale else ():
                if key in stale:
                    self.asked.clear()
                    level = self.level_by_uses(*key)
                    stale.discard(key)
                    for asked in self.asked:
                        readers.setdefault(asked, set()).add(key)
                    if level != found.get(key):
                        stale |= readers.get(key, set())
                    found[key] = level
        return found

    def values_backwards(self, block: Block,
                         vias: tuple[Op | None, ...]) -> Iterator[tuple[Value, Op | None]]:
        """Yield the active values, those defined last first, with each of the loops around them."""
        for op in reversed(block.ops):
            yield from ((y, via) for y in op.outputs if y in self.active for via in vias)
            for inner in op.blocks:
                yield from self.values_backwards(inner, (*vias, op) if op.name in ("for", "while")
                                                 else vias)
        yield from ((y, via) for y in block.params if y in self.active for via in vias)

    def level_by_uses(self, x: Value, via: Op | None) -> int | None:
        """Return the level of `x` from those of its uses."""
        levels = [self.use(x, user, block, k, via)
                  for user, block in dict.fromkeys(self.readers.get(x, ()))
                  for k, y in enumerate(user.inputs if user is not None else block.yields)
                  if y is x]
        return together([*levels, DISCARDED if x in self.seeded else None])

    def use(self, x: Value, user: Op | None, block: Block, k: int, via: Op | None) -> int | None:
        """Return the level that one use gives `x`."""
        level = self.level_of_yield(block, k, via) if user is None else self.through(user, k, via)
        if level is None or self.home.get(x) is block:
            return level
        inner = block
        while inner is not self.home.get(x) and inner in self.owner:
            op, inner = self.owner[inner]
            if op.name == "if":
                return max(level, MASKED)
        return level

    def level_of_yield(self, block: Block, k: int, via: Op | None) -> int | None:
        """Return the level of the yield `k` of `block`."""
        if block not in self.owner:
            return WHOLE if block.yields[k] not in self.seeded else None
        op, _ = self.owner[block]
        via = None if via is op else via
        if op.name == "if":
            return self.level(op.outputs[k], via)
        carry = k - (1 if op.attrs["breaks"] else 0)
        if carry < 0 or block is not op.blocks[-1]:
            return None
        return self.into_loop(op, carry, via, op)

    def into_loop(self, loop: Op, carry: int, via: Op | None,
                  inside: Op | None = None) -> int | None:
        """Return the level of what is handed to the first trip, or by a trip to the next, which
        the loop returns where there is no such trip.
        """
        param = loop_parts(loop)[1][carry]
        levels = [level for level in (self.level(loop.outputs[carry], via),
                                      self.level(param, inside or via))
                  if level is not None]
        if levels and not self.readers.get(param):
            return DISCARDED  # each trip writes over what it is given
        return max(levels, default=None)

    def through(self, op: Op, k: int, via: Op | None) -> int | None:
        """Return the level that an op gives its input `k`."""
        x = op.inputs[k]
        if op.name in ("for", "while"):
            first = 3 if op.name == "for" else 0
            return None if k < first else self.into_loop(op, k - first, via)
        if op.name == "if" or not any(y in self.active for y in op.outputs):
            return None
        if op.name == "call":
            return self.through_call(op, k, via)
        if not passes_derivative(op, k):
            return None
        level = together(self.level(y, via) for y in op.outputs)
        if level is None:
            return None
        if op.name == "getitem":
            return self.picked(op, level)
        if op.name == "setitem" and k == 0:
            return self.overwritten(op, level, via)
        if op.name == "strong_product" and k == 1:
            return DISCARDED
        leaves_out = op.record.leaves_out
        if ((leaves_out(*op.inputs) if callable(leaves_out) else leaves_out)
                or isinstance(x.type, (List, Tuple))
                or any(isinstance(y.type, (List, Tuple)) for y in op.outputs)
                and len(op.outputs) == 1):
            return DISCARDED
        if isinstance(x.type, Scalar) and any(isinstance(y.type, Array) and y.type.rank
                                              for y in op.outputs) and op.record.elementwise:
            return WHOLE  # the sum over all of them
        if op.record.chooses:  # half at a tie is no choice with 0
            return DISCARDED if op.record.halves_ties else max(level, MASKED)
        if level == MASKED and op.name != "sum" and not (op.record.elementwise
                                                         and all(same_shape(x.type, y.type)
                                                                 for y in op.outputs)):
            return DISCARDED  # who reads the cotangent does not see the mask any more
        if op.record.multilinear and any(self.scales(y) for n, y in enumerate(op.inputs) if n != k):
            return max(level, SCALED)
        return level

    def scales(self, factor: Value) -> bool:
        """Test whether `factor` may be a mask, an array of zeros and ones: it has no derivative,
        and is not certainly positive.
        """
        is_entry = factor.op is not None and factor.op.name == "getitem"
        return (factor not in self.active and (is_entry or isinstance(factor.type, Array))
                and factor.constant is MISSING and not is_nonzero(factor))

    def picked(self, op: Op, level: int) -> int | None:
        """Return the level that an index gives the array that it reads."""
        pattern = (expand(op.attrs["pattern"], op.inputs[0].type.rank)
                   if isinstance(op.inputs[0].type, Array) else op.attrs["pattern"])
        operands = op.inputs[1:]
        if _is_mask(op, operands):
            return max(level, MASKED)
        if self.is_rewritten(op):
            return None
        counters = [o for entry, o in paired(pattern, operands) if entry == "i"]
        if all(entry in (None, "...", ...) or _is_whole(entry, o) or entry == "i"
               and self.counts_all(op, o, axis, counters)
               for (entry, o), axis in zip(paired(pattern, operands), _axes(pattern))):
            return DISCARDED if level == MASKED else level
        return DISCARDED

    def overwritten(self, op: Op, level: int, via: Op | None) -> int:
        """Return the level that `x[index] = v` gives x."""
        operands = op.inputs[2:]
        if _is_mask(op, operands):
            return max(level, MASKED)
        if (via is not None and via.name == "for"
                and via.blocks[0].params[0]
                in [o for entry, o in paired(op.attrs["pattern"], operands) if entry == "i"]):
            return level  # each trip has elements of its own
        if any(user is not None and user.name == "getitem" and self.is_rewritten(user, op)
               for user, _ in self.readers[op.inputs[0]]):
            return level
        return DISCARDED

    def is_rewritten(self, read: Op, write: Op | None = None) -> bool:
        """Test whether `write`, or another write, replaces the elements that are read:
        `x[i] = x[i] + v`.
        """
        return any(user is not None and user.name == "setitem" and user.inputs[0] is read.inputs[0]
                   and write in (None, user) and user.attrs["pattern"] == read.attrs["pattern"]
                   and list(user.inputs[2:]) == list(read.inputs[1:])
                   and _is_term(read.output, user.inputs[1])
                   for user, _ in self.readers[read.inputs[0]])

    def counts_all(self, op: Op, index: Value, axis: int, counters: list[Value]) -> bool:
        """Test whether `index` counts through all of an axis, in a loop around `op` without exits
        and outside of branches.
        """
        if counters.count(index) > 1 or not isinstance(op.inputs[0].type, Array):
            return False
        block = self.home[op.outputs[0]]
        while block in self.owner:
            loop, outer = self.owner[block]
            if loop.name != "for" or loop.attrs["breaks"]:
                return False
            if block.params[0] is index:
                lo, hi, step = loop.inputs[:3]
                return (lo.constant == 0 and step.constant == 1
                        and _is_length(hi, op.inputs[0].type.dims[axis]))
            block = outer
        return False

    def through_call(self, op: Op, k: int, via: Op | None) -> int | None:
        """Return the level that a call gives its argument."""
        after = together(self.level(y, via) for y in op.outputs)
        if after is None or not is_plain(op.attrs["callee"]):
            return None if after is None else DISCARDED
        function = op.attrs["callee"].function_for(op.inputs)
        inside = Discarded(function,
                           set(function.params)
                           | {y for each in walk(function.block) for y in each.outputs}
                           | {y for each in walk(function.block) for inner in each.blocks
                              for y in inner.params})
        found = inside.level(function.params[k])
        return after if found == WHOLE else found


_unbounded: WeakKeyDictionary[Function, tuple[int, ...]] = WeakKeyDictionary()


def unbounded_results(function: Function) -> tuple[int, ...]:
    """Return the results of a called function of which entries may be infinite, or NaN."""
    if function not in _unbounded:
        inside = Discarded(function, set()).unbounded
        _unbounded[function] = tuple(k for k, y in enumerate(function.results) if y in inside)
    return _unbounded[function]


def together(levels: Iterable[int | None]) -> int | None:
    """Return the level of a sum: nothing is discarded of entries that one term has in full."""
    found = {level for level in levels if level is not None}
    return None if not found else WHOLE if WHOLE in found else max(found)


def multiplies(op: Op) -> bool:
    """Test whether a cotangent is multiplied by a factor computed from the operands of `op`, other
    than by selections among them.
    """
    if op.record.elementwise:
        return not op.record.chooses and any(map(callable, op.record.partials))
    floats = [k for k, x in enumerate(op.inputs) if isinstance(x.type, (Scalar, Array))
              and is_inexact(x.type.dtype)]
    return (not op.blocks and not _moves(op)
            and not all(k in op.record.linear for k in floats))


def _keeps_apart(op: Op) -> bool:
    """Test whether `op` computes each element of its result from one of each operand."""
    return op.record.elementwise and not op.record.chooses or _moves(op)


def _moves(op: Op) -> bool:
    """Test whether `op` moves elements of one operand, or puts elements among those of another."""
    return bool(op.record.moves) or op.record in (array_record, setitem, list_add)


def _is_mask(op: Op, operands) -> bool:
    """Test whether the whole index is one mask of the first axes."""
    return (op.attrs["pattern"] == ("i",) and isinstance(operands[0].type, Array)
            and operands[0].type.dtype == "bool")


def _is_term(x: Value, total: Value) -> bool:
    """Test whether `total` is `x` with something added or subtracted."""
    terms = [total]
    for y in terms:
        if y is x:
            return True
        if y.op is not None and y.op.record.is_sum and len(terms) < MOST_TERMS:
            terms += y.op.inputs
    return False


def _is_whole(entry, bounds) -> bool:
    """Test whether a slice leaves nothing out: `:` or `::-1`."""
    if not isinstance(entry, str) or len(entry) != 3:
        return False
    return entry[:2] == ".." and (entry[2] == "." or bounds[2].constant in (1, -1))


def _axes(pattern) -> list[int]:
    """Return the axis of the array for each entry of an expanded pattern; for a new axis the next.
    """
    axes, axis = [], 0
    for entry in pattern:
        axes.append(axis)
        axis += entry is not None
    return axes


def _is_length(x: Value, dim) -> bool:
    """Test whether the number `x` is the length `dim`."""
    if x.constant is not MISSING:
        return x.constant == dim
    if x.op is None or x.op.name != "length" or not isinstance(x.op.inputs[0].type, Array):
        return False
    return x.op.inputs[0].type.dims[x.op.attrs.get("axis", 0)] == dim
