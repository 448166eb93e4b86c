"""Alias analysis and liveness: find the values that may share memory, and those read after a write.

A *root* is a place where memory comes from: an argument, an op that allocates, a copy.  Every value
that may hold arrays has a set of roots; two values may share memory only if their sets meet.  A
root is a pair (site, old): `old` marks memory that the site allocated in an earlier trip of a loop
around it, which is never the memory that it allocated in this one.

A list has memory of two kinds: its own, in which it keeps its items, and that of the items.  Its
own has the site (site, "list", depth), where a list of lists has depth 2: appending to a list
concerns only that.

A list may hold one list twice: `[row, row]`, which the IR may make of two equal rows, as it may of
any two equal values.  What is written into one item of it would be written into the other, so what
`repeats` an item is copied, with the lists in it, first.

`copied` holds the places where a copy is to be inserted: (op, k) copies the op's input k on its way
in, (block, k) the block's yield k on its way out, and a value itself is copied where it is defined.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from ..ir.graph import Block, Function, Op, Value, free_values, walk
from ..ir.types import Array, List, Tape, Tuple, Type, Unknown
from ..ops.arrays.index_pattern import is_advanced
from ..ops.core.copy import copy_record
from ..ops.program.list_ops import list_add, list_set
from ..ops.program.recursive_callee import Recursive, recursive_callees
from .alias_in_trip import layers

Site = object
Roots = frozenset  # of (site, old)
NOTHING: Roots = frozenset()


def holds_memory(type: Type) -> bool:
    """Test whether a value of `type` may be, or contain, an array."""
    match type:
        case Array() | Unknown() | List():
            return True
        case Tuple(items):
            return any(map(holds_memory, items))
    return False


def content_inputs(op: Op) -> list[Value]:
    """Return the inputs whose elements `op` reads, and not only their shape."""
    return [x for k, x in enumerate(op.inputs) if k not in op.record.shapes]


def read_values(block: Block) -> list[Value]:
    """Return the outside values whose elements the ops of `block`, and of nested blocks, read."""
    free = set(free_values(block))
    found: dict[Value, None] = {}

    def visit(inner: Block) -> None:
        for op in inner.ops:
            found.update(dict.fromkeys(x for x in content_inputs(op) if x in free))
            for child in op.blocks:
                visit(child)
        found.update(dict.fromkeys(y for y in inner.yields if y in free))

    visit(block)
    return list(found)


class Memory:
    """The roots of every value of `function`, assuming copies at `copied` and in-place writes by
    the `in_place` ops.
    """

    def __init__(self, function: Function, copied: frozenset = frozenset(),
                 in_place: frozenset = frozenset(), like: Memory | None = None):
        """Compute the roots; `like` is the memory of the same function with other copies, whose
        loop analysis is reused.
        """
        self.copied, self.in_place = copied, in_place
        self.inside: dict[Op, set[int]] = {} if like is None else like.inside
        self.roots: dict[Value, Roots] = {}
        self.repeating: set[Value] = set()  # lists that may hold one list twice
        self.borrowed: set[Site] = {"read-only"}  # sites whose memory is not the function's own
        for k, param in enumerate(function.params):
            if holds_memory(param.type):
                self.roots[param] = frozenset((site, False)
                                              for site in _sites_of(param, param.type))
                if k not in function.given:
                    self.borrowed.update(_sites_of(param, param.type))
        self.visit(function.block)
        self.layers = layers(self, function)
        # by root, computed on first use
        self.holders: dict[tuple, list[Value]] | None = None

    def alike(self) -> Memory:
        """Create a memory with the same copies and no roots yet."""
        other = Memory.__new__(Memory)
        other.copied, other.in_place, other.roots, other.layers, other.inside = (
            self.copied, self.in_place, {}, [], self.inside)
        other.borrowed, other.holders, other.repeating = set(self.borrowed), None, set()
        return other

    def apart(self, a: Value, b: Value) -> bool:
        """Test whether two values that meet inside a loop are never one array, though each may be
        either of two.
        """
        return any(a in layer and b in layer and not layer[a] & layer[b] for layer in self.layers)

    def of(self, value: Value) -> Roots:
        """Return the roots of `value`."""
        return self.roots.get(value, NOTHING)

    def sharing(self, roots: Roots) -> list[Value]:
        """Return the values that may share this memory, in the order in which they were found."""
        if self.holders is None:
            self.holders = {}
            for value, own in self.roots.items():
                for root in own:
                    self.holders.setdefault(root, []).append(value)
        lists = [self.holders[root] for root in roots if root in self.holders]
        return (lists[0] if len(lists) == 1
                else list(dict.fromkeys(x for each in lists for x in each)))

    def entering(self, op: Op, k: int) -> Roots:
        """Return the roots of the op's input k, after a copy of it, if any."""
        if (op, k) in self.copied:
            return self._copy((op, k), op.inputs[k].type, self.of(op.inputs[k]))
        return self.of(op.inputs[k])

    def leaving(self, block: Block, k: int) -> Roots:
        """Return the roots of the block's yield k, after a copy of it, if any."""
        if (block, k) in self.copied:
            return self._copy((block, k), block.yields[k].type, self.of(block.yields[k]))
        return self.of(block.yields[k])

    def _copy(self, site: Site, type: Type, roots: Roots) -> Roots:
        """Return the roots of a copy of what has these: a copied list holds the same items."""
        own = frozenset() if _is_list(type) else frozenset({(site, False)})
        if not depth_of(type):
            return own
        roots |= own
        for depth in range(1, depth_of(type) + 1):
            roots = _items(roots, depth) | {((site, "list", depth), False)}
        return roots

    def overwritten(self, op: Op, k: int) -> Roots:
        """Return the memory that `op`, which overwrites its input k, writes into."""
        roots = self.entering(op, k)
        if not _is_list(op.inputs[k].type):
            return roots
        inner = len(op.inputs) - 3 if op.record in (list_set, list_add) else 0
        return roots - _items(roots, depth_of(op.inputs[k].type) - inner)

    def repeats(self, op: Op, k: int) -> bool:
        """Test whether the op's input k may hold one list twice, after a copy of it, if any."""
        return (op, k) not in self.copied and op.inputs[k] in self.repeating

    def _made_repeating(self, op: Op, output: Value) -> bool:
        """Test whether a list built by an op without blocks may hold one list twice."""
        if depth_of(output.type) < 2:
            return False
        if op.name == "list_full" or any(k < len(op.inputs) and self.repeats(op, k)
                                         for k in op.record.views):
            return True
        met: set[tuple] = set()
        for k in (range(len(op.inputs)) if op.name == "list_of" else (0, 1) if op.record.stores
                  else ()):
            items = {root for root in self.entering(op, k) if isinstance(root[0], tuple)
                     and root[0][1:2] == ("list",)}
            if met & items:
                return True
            met |= items
        return False

    def written(self, op: Op) -> tuple[int, ...]:
        """Return the inputs that `op` overwrites."""
        if op.name == "call" and isinstance(op.attrs["callee"], Recursive):
            return tuple(sorted(op.attrs["callee"].given))
        if op in self.in_place:
            return (0,)
        return () if op.record.writes is None else (op.record.writes,)

    def _define(self, value: Value, roots: Roots, repeating: bool = False) -> None:
        if repeating and value not in self.copied:
            self.repeating.add(value)
        if value in self.copied:
            roots = self._copy((value, "copy"), value.type, roots)
        if holds_memory(value.type):
            self.roots[value] = roots

    def visit(self, block: Block) -> None:
        """Find the roots of what the ops of `block` define."""
        for op in block.ops:
            match op.name:
                case "if":
                    for branch in op.blocks:
                        self.visit(branch)
                    for k, output in enumerate(op.outputs):
                        self._define(
                            output,
                            self.leaving(op.blocks[0], k) | self.leaving(op.blocks[1], k),
                            any(self._leaves_repeating(arm, k) for arm in op.blocks),
                        )
                case "for" | "while":
                    self._visit_loop(op)
                case _:
                    for output in op.outputs:
                        self._define(output, self._made(op, output),
                                     self._made_repeating(op, output))

    def _visit_loop(self, op: Op) -> None:
        first = 3 if op.name == "for" else 0
        body = op.blocks[-1]
        params, skip = (
            body.params[1 if op.name == "for" else 0 :],
            len(body.yields) - len(op.outputs),
        )
        if op not in self.inside:
            self.inside[op] = {id(site) for site in _sites(op)}
        inside = self.inside[op]

        def older(roots: Roots) -> Roots:
            return frozenset((site, old or id(_owner(site)) in inside) for site, old in roots)

        for k, param in enumerate(params):
            self._define(param, self.entering(op, first + k), self.repeats(op, first + k))
        while True:
            for head in op.blocks[:-1]:
                for k, param in enumerate(head.params):
                    self._define(param, self.of(params[k]), params[k] in self.repeating)
                self.visit(head)
            self.visit(body)
            grown = [self.of(p) | older(self.leaving(body, skip + k)) for k, p in enumerate(params)]
            more = ({p for k, p in enumerate(params) if self._leaves_repeating(body, skip + k)}
                    - self.repeating - self.copied)
            if not more and all(new == self.of(p) or not holds_memory(p.type)
                                for p, new in zip(params, grown)):
                break
            self.repeating |= more
            for param, new in zip(params, grown):
                if holds_memory(param.type):
                    self.roots[param] = new
        for k, output in enumerate(op.outputs):
            self._define(output, self.of(params[k]) | self.leaving(body, skip + k),
                         params[k] in self.repeating)

    def _leaves_repeating(self, block: Block, k: int) -> bool:
        """Test whether the block's yield k may hold one list twice, after a copy of it, if any."""
        return (block, k) not in self.copied and block.yields[k] in self.repeating

    def _made(self, op: Op, output: Value) -> Roots:
        """Return the roots of the outputs of an op without blocks."""
        views = (0,) if op in self.in_place else op.record.views
        if (
            op.name == "getitem"
            and isinstance(op.inputs[0].type, Array)
            and is_advanced(op.attrs["pattern"], op.inputs[1:])
        ):
            views = ()
        if op.name == "call":
            shared, borrowed = results_of_call(op)[0 if "unpacked" in op.attrs
                                                   else op.outputs.index(output)]
            own = _sites_of(output, output.type)
            if borrowed:
                self.borrowed.update(own)
            return frozenset((site, False)
                             for site in own).union(*(self.entering(op, _operand(op, k))
                                                      for k in shared))
        if op.name == "foreign":
            self.borrowed.add(output)
            views = tuple(range(len(op.inputs)))
        elif op.name == "constant":
            self.borrowed.add(output)
        roots = NOTHING
        for k in views:
            if k < len(op.inputs):
                roots |= self.entering(op, k)
        depth = depth_of(output.type)
        if op.record is copy_record and depth:
            return self._copy(output, op.inputs[0].type, self.of(op.inputs[0]))
        if (op.record.writes is None and op.name != "call" and not op.record.structural
                and (depth or has_lists(op))):
            deepest = max(depth_of(x.type) for x in (*op.inputs, output))
            part = op.name == "list_get"
            for inner in range(depth + part or 1, deepest + 1):
                roots = _items(roots, inner)
            if depth and not part:
                own = range(depth if views else 1, depth + 1)
                roots |= {((output, "list", inner), False) for inner in own}
            return roots if views else roots | {(output, False)}
        if (op.record.writes is not None and _is_list(op.inputs[0].type)
                and output is not op.outputs[0]):
            return _items(roots, depth_of(op.inputs[0].type))
        if op.record.read_only:
            roots |= {("read-only", False)}
        if not views or op.name == "foreign":
            roots |= {(output, False)}
        return roots

    def is_owned(self, roots: Roots) -> bool:
        """Test whether all of this memory was allocated by the function itself."""
        return not any(site in self.borrowed for site, old in roots)


def depth_of(type: Type) -> int:
    """Return the nesting depth of a list type: 2 for a list of lists of numbers, or of tuples in
    which such lists are.
    """
    if isinstance(type, Tuple):
        return max(map(depth_of, type.items), default=0)
    return 1 + depth_of(type.item) if isinstance(type, List) else 0


def _is_list(type: Type) -> bool:
    return isinstance(type, List) and not isinstance(type, Tape)


def has_lists(op: Op) -> bool:
    """Test whether some input of `op` is a list."""
    for x in op.inputs:
        if _is_list(x.type):
            return True
    return False


def _sites_of(site: Site, type: Type) -> list[Site]:
    """Return the sites of a value that comes from outside."""
    return [site, *((site, "list", depth) for depth in range(1, depth_of(type) + 1))]


def _items(roots: Roots, depth: int) -> Roots:
    """Filter out of `roots` those in which lists of this depth keep their items."""
    return frozenset(root for root in roots if not (
        isinstance(root[0], tuple) and len(root[0]) == 3 and root[0][1:] == ("list", depth)))


def _owner(site: Site):
    """Return the value, op or block under which `_sites` lists a site."""
    while isinstance(site, tuple):
        site = site[0]
    return site


def _sites(loop: Op) -> Iterator:
    """Yield everything inside `loop` that a site can belong to."""
    for block in loop.blocks:
        yield block
        yield from block.params
        for op in walk(block):
            yield op
            yield from op.outputs
            for inner in op.blocks:
                yield inner
                yield from inner.params


def live_after_writes(memory: Memory, function: Function) -> dict[Op, frozenset[Value]]:
    """For each op that overwrites an input, in program order, return the values holding memory that
    are read after it.

    Copies change nothing of it, and it holds for fewer ops that overwrite.
    """
    found: dict[Op, frozenset[Value]] = {}

    def keep(values) -> set[Value]:
        return {x for x in values if holds_memory(x.type)}

    def visit(block: Block, after: set[Value]) -> set[Value]:
        live = after | keep(block.yields)
        for op in reversed(block.ops):
            live = live - set(op.outputs)
            match op.name:
                case "if":
                    live = visit(op.blocks[0], live) | visit(op.blocks[1], live)
                case "for" | "while":
                    around = live | keep(x for inner in op.blocks for x in read_values(inner))
                    for inner in op.blocks[:-1]:
                        visit(inner, around | keep(inner.params))
                    visit(op.blocks[-1], around)
                    live = around | keep(op.inputs)
                case _:
                    if memory.written(op):
                        found[op] = frozenset(live)
                    live |= keep(content_inputs(op))
        return live

    visit(function.block, set())
    return {op: found[op] for op in walk(function.block) if op in found}


_results: WeakKeyDictionary[Function, list[tuple[frozenset[int], bool]]] = WeakKeyDictionary()


def results_of(callee: Recursive) -> list[tuple[frozenset[int], bool]]:
    """For each result, return the parameters that it may share memory with, and whether it may be
    other memory.
    """
    if callee.function not in _results:
        members = [m for m in dict.fromkeys([callee, *recursive_callees(callee.function)])
                   if m.function not in _results]
        for member in members:
            _results[member.function] = [(frozenset(), False)] * len(member.function.results)
        while True:
            before = [_results[member.function] for member in members]
            for member in members:
                _results[member.function] = _results_in(member.function)
            if before == [_results[member.function] for member in members]:
                break
    return _results[callee.function]


def results_of_call(op: Op) -> list[tuple[frozenset[int], bool]]:
    """Apply `results_of` to the callee of a `call`."""
    callee = op.attrs["callee"]
    if isinstance(callee, Recursive):
        return results_of(callee)
    function = callee.function_for(op.inputs)
    if function not in _results:
        _results[function] = _results_in(function)
    return _results[function]


def _operand(call: Op, k: int) -> int:
    """Return which operand of `call` is, or holds, the argument `k` of its callee
    (back/print/pack_saved.py).
    """
    first, count = call.attrs.get("packed", (k, 1))
    return k if k < first else max(first, k - count + 1)


def _results_in(function: Function) -> list[tuple[frozenset[int], bool]]:
    memory, number = Memory(function), {p: k for k, p in enumerate(function.params)}
    found = []
    for y in function.results:
        sites = [(site, _owner(site)) for site, _ in memory.of(y)]
        shared = frozenset(number[owner] for _, owner in sites if isinstance(owner, Value)
                           and owner in number)
        found.append((shared,
                      any(site in memory.borrowed and owner not in number
                          for site, owner in sites)))
    return found


def versions(x: Value) -> list[Value]:
    """Return `x` and the arrays that it is a view of, which share its memory."""
    found = [x]
    for v in found:
        found += viewed_inputs(v.op)
    return found


def viewed_inputs(op: Op | None) -> list[Value]:
    """Return the inputs of `op` of which its results are views or later versions."""
    return [] if op is None else [op.inputs[k] for k in op.record.views if k < len(op.inputs)]
