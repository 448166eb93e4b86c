"""Insert the copies that make every functional write legal in place.

The IR's `setitem` makes a new array; Python's `a[i] = v` changes the old one. The two are
equivalent where the function allocated the old array itself and neither it nor an alias is live
afterwards. `insert_copies(function)` inserts copies until that holds for every write, as few and as
far outside of loops as possible:

    def f(u):                       def f(u):
        for i in range(9):              u = u.copy()
            u = setitem(u, 0.0, i)      for i in range(9):
        return u                            u[i] = 0.0
                                        return u
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...analysis.alias import Memory, holds_memory, live_after_writes
from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import clone
from ...ir.types import Array, List, Scalar, Tape, Unknown
from ...ops.core.copy import copy_again
from ...ops.core.record import Record, same_shape

AUGMENTED = ("a + b", "a - b", "a * b", "a / b")  # printed as `a += b` and the like
TRIALS = 200  # most writes `x += y` that are tried in one function


def _in_place(python: str) -> Record:
    """The record of `x += y` on arrays: overwrites x. Used only between here and the printer."""
    return Record(
        f"{python} in place", evaluate=None, infer=lambda x, y: x.type, writes=0, views=(0,),
        python=python
    )


IN_PLACE = {python: _in_place(python) for python in AUGMENTED}


def insert_copies(function: Function, results: bool = False, augmented: bool = True) -> Function:
    """A copy of `function` in which every write may be printed in place.

    With `results` it does not return an argument, nor the same array twice, either; with
    `augmented` sums like `x = x + y` may become `x += y` on arrays.
    """
    function = clone(function)
    read_latest_shapes(function)
    copied = _copies(function, frozenset())
    if results:
        copied = _copy_results(function, copied)
    in_place = _augmented(function, copied) if augmented else []
    _insert_copies(function, copied)
    for op in in_place:
        op.record = IN_PLACE[op.record.python]
    return function


def _copy_results(function: Function, copied: frozenset) -> frozenset:
    places = list(_result_places(function.block))
    for n, place in enumerate(places):
        memory = Memory(function, copied)
        mine = _roots_at(memory, place)
        shared = any(mine & _roots_at(memory, earlier) for earlier in places[:n])
        if isinstance(_value_at(place).type, Array) and (shared or not memory.is_owned(mine)):
            copied |= {place}
    return copied


def _result_places(holder: Block | Op) -> Iterator[tuple[Block | Op, int]]:
    """The positions of array results: as yields, or as members of yielded tuples."""
    for k, value in enumerate(holder.yields if isinstance(holder, Block) else holder.inputs):
        if value.op is not None and value.op.name == "tuple":
            yield from _result_places(value.op)
        else:
            yield holder, k


def _value_at(place: tuple[Block | Op, int]) -> Value:
    holder, k = place
    return holder.yields[k] if isinstance(holder, Block) else holder.inputs[k]


def _roots_at(memory: Memory, place: tuple[Block | Op, int]):
    holder, k = place
    return memory.leaving(holder, k) if isinstance(holder, Block) else memory.entering(holder, k)


# ------------------------------------------------------------------------------------------- shapes


def read_latest_shapes(function: Function) -> None:
    """Replace shape-only reads of an overwritten array by its latest version.

    `zeros_like(u)` after `u[i] = v` would otherwise keep the old `u` alive, that is, cost a copy.
    """
    family: dict[Value, Value] = {}

    def root(value: Value) -> Value:
        while value in family:
            value = family[value]
        return value

    def visit(block: Block, latest: dict[Value, Value]) -> None:
        for op in block.ops:
            for k in op.record.shapes:
                new = latest.get(root(op.inputs[k]))
                if new is not None and same_shape(new.type, op.inputs[k].type):
                    op.inputs[k] = new
            if op.name in ("for", "while"):
                inits = op.inputs[3:] if op.name == "for" else op.inputs
                for inner in op.blocks:
                    params = inner.params[len(inner.params) - len(inits) :]
                    seen = dict(latest)
                    _join_families(inits, params, seen)
                    visit(inner, seen)
                _join_families(inits, op.outputs, latest)
            elif op.name == "if":
                for inner in op.blocks:
                    visit(inner, dict(latest))
                for k, output in enumerate(op.outputs):
                    sources = {root(inner.yields[k]) for inner in op.blocks}
                    if len(sources) == 1:
                        _join_families(
                            [inner.yields[k] for inner in op.blocks[:1]], [output], latest
                        )
            elif op.record.writes is not None:
                _join_families([op.inputs[op.record.writes]], op.outputs[:1], latest)

    def _join_families(olds: list[Value], news: list[Value], latest: dict[Value, Value]) -> None:
        for old, new in zip(olds, news):
            if (
                isinstance(old.type, (Array, Unknown))
                and same_shape(old.type, new.type)
                and root(old) is not new
            ):
                family[new] = root(old)
                latest[root(old)] = new

    visit(function.block, {})


# ------------------------------------------------------------------------------------------- copies


def _conflicts(memory: Memory,
               live: dict[Op, frozenset[Value]]) -> Iterator[tuple[Op, int, list[Value]]]:
    """The writes that are illegal in place, in program order: op, input, and affected values."""
    for op, read in live.items():
        for k in memory.written(op):
            others = _noticed(memory, op, k, read)
            if others is not None:
                yield op, k, others


def _noticed(memory: Memory, op: Op, k: int, read: frozenset[Value]) -> list[Value] | None:
    """The values in `read` that a write of `op` to its input k would change; None if legal."""
    if isinstance(op.inputs[k].type, Tape):
        return None
    roots = memory.overwritten(op, k)
    others = [x for x in memory.sharing(roots) if x in read and (
        (op, k) in memory.copied or not memory.apart(x, op.inputs[k]))]
    if op.name == "call":
        others += [x for j, x in enumerate(op.inputs) if j != k and memory.entering(op, j) & roots]
    if op.record.writes is not None and len(op.inputs) > 3 and memory.repeats(op, k):
        return others  # xs[i][j] = v is seen in xs[n], too
    return others if others or not memory.is_owned(roots) else None


def _copies(function: Function, in_place: frozenset) -> frozenset:
    """A set of copies that makes every write legal."""
    order = {op: k for k, op in enumerate(walk(function.block))}
    loops = _loops_of_params(function)
    copied: frozenset = frozenset()
    memory = Memory(function, copied, in_place)
    live = live_after_writes(memory, function)
    while (conflict := next(_conflicts(memory, live), None)) is not None:
        op, k, others = conflict
        others.sort(key=lambda x: order.get(x.op, -1))
        for candidate in [*_candidates(op, k, others, memory, loops, function), None]:
            trial = copied | ({(op, k)} if candidate is None else candidate)
            if candidate is not None and trial == copied:
                continue
            after = Memory(function, trial, in_place, memory)
            if candidate is None or _noticed(after, op, k, live[op]) is None:
                copied, memory = trial, after
                break
    return copied


def copies_in_innermost_loops(function: Function) -> int:
    """The number of places in innermost loops where a write needs a copy of its array."""
    function = clone(function)
    read_latest_shapes(function)
    inside: set[Block | Op] = set()  # of an innermost loop
    for loop in walk(function.block):
        if loop.name in ("for", "while"):
            ops = [op for block in loop.blocks for op in walk(block)]
            if not any(op.name in ("for", "while") for op in ops):
                inside.update(ops, loop.blocks, *(op.blocks for op in ops))
    return sum((place[0] if isinstance(place, tuple) else place.op) in inside
               for place in _copies(function, frozenset()))


def _loops_of_params(function: Function) -> dict[Value, tuple[Op, int]]:
    """For each carry's parameter in a loop body: the loop and the input that initialises it."""
    found = {}
    for op in walk(function.block):
        if op.name in ("for", "while"):
            for k, param in enumerate(op.blocks[-1].params):
                if op.name == "while" or k:
                    found[param] = (op, k if op.name == "while" else k + 2)
    return found


def _candidates(
    op: Op, written: int, others: list[Value], memory: Memory, loops: dict, function: Function
) -> list[frozenset]:
    """Copies that may resolve a conflict at `op`, best first."""
    entries = []
    value = op.inputs[written]
    while True:  # from the write back to the loops that carry its array
        if value in loops:
            loop, k = loops[value]
            entries.append(frozenset({(loop, k)}))
            value = loop.inputs[k]
        elif (
            value.op is not None
            and value.op.inputs
            and value.op.name != "call"
            and (memory.written(value.op) or value.op.record.views)
        ):
            value = value.op.inputs[(memory.written(value.op) or (0,))[0]]
        else:
            break
    views = [_viewed(x, memory) for x in others]
    candidates = []
    for entry in entries[::-1]:
        if others and None not in views and _are_made_before(views, entry, function):
            candidates.append(frozenset(views))  # as often as the whole, and smaller
        candidates.append(entry)
    roots = memory.entering(op, written)
    for entry in entries[::-1]:  # a loop that exchanges arrays needs to own all of them
        ((loop, _),) = entry
        skip = len(loop.inputs) - len(loop.outputs)
        foreign = [k for k in range(skip, len(loop.inputs)) if memory.entering(loop, k) & roots
                   and not memory.is_owned(memory.entering(loop, k))]
        candidates.append(entry | {(loop, k) for k in foreign})
        candidates.append(frozenset((loop, k) for k in foreign))
    if others and None not in views:
        candidates.append(frozenset(views))
        # owned by nobody, and viewed
        candidates += [entry | frozenset(views) for entry in entries[::-1]]
    if any(isinstance(x.type, List) for x in others):
        pushes = frozenset(
            (push, 1)
            for push in walk(function.block)
            if push.name == "tape_push"
            and memory.of(push.inputs[1]) & {(s, o) for s, _ in roots for o in (False, True)}
        )
        candidates.append(pushes)
        candidates += [entry | pushes for entry in entries[::-1]]
        candidates.append(frozenset(y for pop in walk(function.block)
                                    for y in _popped(pop) if memory.of(y) & roots))
    return candidates


def _are_made_before(views: list[Value], entry: frozenset, function: Function) -> bool:
    """Whether these parts of arrays are defined where the loop of `entry` stands, or outside."""
    ((loop, _),) = entry
    around = _blocks_around(loop, function.block)
    return all(any(view.op in block.ops for block in around) for view in views)


def _blocks_around(op: Op, block: Block) -> list[Block]:
    """The block of `op` and those around it, from `block` on, outermost first, if any."""
    if op in block.ops:
        return [block]
    for other in block.ops:
        for inner in other.blocks:
            if found := _blocks_around(op, inner):
                return [block, *found]
    return []


def _popped(op: Op) -> list[Value]:
    """The values that `op` takes out of a list."""
    return (op.outputs[1:] if op.record.writes is not None and isinstance(op.inputs[0].type, List)
            else [])


def _viewed(value: Value, memory: Memory) -> Value | None:
    """The part `u[...]` of an array through which `value` aliases it, if that is the reason."""
    while value.op is not None and value.op.inputs:
        if value.op.name == "getitem":
            return value
        sharing = [
            x for k, x in enumerate(value.op.inputs) if k in value.op.record.views and memory.of(x)
        ]
        if len(sharing) != 1 or memory.written(value.op):
            return None
        value = sharing[0]
    return None


def _augmented(function: Function, copied: frozenset) -> list[Op]:
    """Sums like `x = x + y` on arrays that may overwrite x."""
    carried = _carried_on(function)
    for op in walk(function.block):
        if op.record.python in AUGMENTED and op.output in carried:
            param = carried[op.output]
            if param is _before_writes(op.inputs[0]) and op.output.name in ("", param.name):
                op.output.name = param.name
                op.inputs[0].name = op.inputs[0].name or param.name
    candidates = [op for op in walk(function.block) if _looks_augmented(op)]
    if not candidates:
        return []
    found = frozenset(candidates)
    live = live_after_writes(Memory(function, copied, found), function)
    while True:  # most of the time all of them may
        conflicts = {op for op, _, _ in _conflicts(Memory(function, copied, found), live)}
        if not conflicts:
            return [op for op in candidates if op in found]
        if not conflicts & found:
            break
        found -= conflicts
    found = frozenset()
    for op in candidates[:TRIALS]:
        if next(_conflicts(Memory(function, copied, found | {op}), live), None) is None:
            found |= {op}
    return [op for op in candidates if op in found]


def _before_writes(value: Value) -> Value:
    """The version of the array before it was written to."""
    while value.op is not None and value.op.record.writes is not None:
        value = value.op.inputs[value.op.record.writes]
    return value


def _carried_on(function: Function) -> dict[Value, Value]:
    """For each value that a loop's body only yields: the parameter that it is on the next trip."""
    uses: Counter[Value] = Counter(y for y in function.results)
    found: dict[Value, Value] = {}
    for op in walk(function.block):
        uses.update(op.inputs)
        for block in op.blocks:
            uses.update(block.yields)
        if op.name in ("for", "while"):
            body, count = op.blocks[-1], len(op.outputs)
            found.update(
                zip(
                    body.yields[len(body.yields) - count :], body.params[len(body.params) - count :]
                )
            )
    return {y: param for y, param in found.items() if uses[y] == 1}


def _looks_augmented(op: Op) -> bool:
    if (op.record.python not in AUGMENTED or not op.output.name
            or op.output.name != op.inputs[0].name):
        return False
    x, y = op.inputs
    dtype = getattr(y.type, "dtype", None)
    return (
        holds_memory(x.type)
        and x.type.dtype is not None
        and dtype is not None
        and x.type.dtype == op.output.type.dtype
        and same_shape(x.type, op.output.type)
        and (isinstance(y.type, (Array, Unknown, Scalar)))
    )


def _insert_copies(function: Function, copied: frozenset) -> None:
    """Insert the copies: before ops, at the ends of blocks, and after definitions."""

    def made(block: Block, value: Value, name: str, line) -> Value:
        with Builder(Block(), line) as builder:
            copied = copy_again(value)
            copied.name = name
        block.ops += builder.block.ops
        return copied

    def visit(block: Block) -> None:
        ops, block.ops = block.ops, []
        renamed: dict[Value, Value] = {}
        for op in ops:
            for k, x in enumerate(op.inputs):
                if (op, k) in copied:
                    op.inputs[k] = made(block, x, _copy_name(op, k), op.line)
            for inner in op.blocks:
                visit(inner)
            block.ops.append(op)
            for y in op.outputs:
                if y in copied:
                    renamed[y] = made(block, y, y.name, op.line)
                    y.name = ""
        _rename(block, renamed)
        for k, y in enumerate(block.yields):
            if (block, k) in copied:
                block.yields[k] = made(block, y, "", block.ops[-1].line if block.ops else None)

    visit(function.block)


def _copy_name(op: Op, k: int) -> str:
    match op.name:
        case "for":
            return op.blocks[0].params[k - 2].name
        case "while":
            return op.blocks[1].params[k].name
        case "tape_push":
            return ""
    return op.outputs[0].name or op.inputs[k].name


def _rename(block: Block, renamed: dict[Value, Value]) -> None:
    """Replace uses of old values by the new ones, except in the definitions of the new ones."""
    if not renamed:
        return
    for op in walk(block):
        if not (op.name == "copy" and renamed.get(op.inputs[0]) is op.output):
            op.inputs[:] = [renamed.get(x, x) for x in op.inputs]
        for inner in op.blocks:
            inner.yields[:] = [renamed.get(y, y) for y in inner.yields]
    block.yields[:] = [renamed.get(y, y) for y in block.yields]
