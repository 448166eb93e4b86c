"""Partition the ops of a block into groups that share one loop nest (array-level loop fusion).

Ops that visit the same index space, element by element, go into one group: elementwise ops of equal
shape, and reductions over that shape. A value with all its readers in its group is never stored.
Data dependence keeps the order of effects: two ops may share a nest unless something between them
must run after one and before the other.

A value that only a later nest reads, and that is a little arithmetic on one array that is stored
anyway, is computed there (`postpone`): the `1 - h * h` of an adjoint needs no array of its own next
to h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...analysis.alias import versions, viewed_inputs
from ...ir.graph import Block, Op, Value, op_free_values
from ...ir.types import Array
from ...ops.core.shape import shape_source
from ...ops.program.effects import is_pure

# Note [Shape-only reads] `spread(s, x)` reads the shape of x and no element. If it counted as a
# reader of x, a value that exists only inside a nest would have to be stored, so such operands are
# replaced by another array of the same shape that is in memory anyway (`shape_source`).

@dataclass(eq=False)
class Group:
    """Ops that are emitted together: one op, or several that share the index space `dims`."""

    ops: list[Op]
    dims: tuple | None = None
    position: int = 0
    after: set[Group] = field(default_factory=set)  # groups that must be emitted before

    def __contains__(self, op: Op | None) -> bool:
        return op is not None and any(o is op for o in self.ops)


def reads(op: Op) -> list[Value]:
    """The values whose elements `op`, with its blocks, reads; shape-only reads are traced back."""
    if op.record.shapes:
        return [shape_source(x) if k in op.record.shapes else x for k, x in enumerate(op.inputs)]
    return op_free_values(op)


def partition(block: Block, space: Callable[[Op], tuple | None], reduces: Callable[[Op], bool],
              clashes: Callable[[Op, list[Op]], bool] = lambda op, others: False) -> list[Group]:
    """The groups of a block in an order in which they can run.

    `space(op)` is the index space that the op visits, if any; the result of an op that `reduces` is
    known only after the nest; an op that `clashes` with others does not join them.
    """
    groups: list[Group] = []
    home: dict[Op, Group] = {}
    readers: dict[Value, list[Op]] = {}
    # the last effect: later effects must follow it
    act: Group | None = None
    for position, op in enumerate(block.ops):
        before = {home[x.op] for x in reads(op) if x.op is not None and x.op in home}
        if op.record.writes is not None:
            for old in versions(op.inputs[op.record.writes]):
                before.update(home[reader] for reader in readers.get(old, ()))
        acts = not is_pure(op)
        before.update(groups if acts else () if act is None else (act,))
        dims = space(op)
        awaited = {home[x.op] for x in op.inputs if x.op in home and reduces(x.op)}
        group = _joinable(groups, op, dims, before, awaited, clashes) if dims is not None else None
        if group is None:
            group = Group([], dims, position)
            groups.append(group)
        group.ops.append(op)
        group.after |= before - {group}
        home[op] = group
        act = group if acts else act
        for x in reads(op):
            readers.setdefault(x, []).append(op)
    ordered = _ordered(groups)
    if postpone(ordered, home, readers, block, clashes):
        # successors of a removed nest must follow its predecessors
        for group in groups:
            while removed := [other for other in group.after if not other.ops]:
                group.after = (group.after.difference(removed).union(*(other.after
                                                                       for other in removed))
                               - {group})
        return _ordered([group for group in groups if group.ops])
    return ordered


def is_little(op: Op) -> bool:
    """Whether `op` is arithmetic so cheap that it is computed where it is read."""
    return op.record.quick and op.record.is_arithmetic


def postpone(groups: list[Group], home: dict[Op, Group], readers: dict[Value, list[Op]],
             block: Block, clashes: Callable[[Op, list[Op]], bool]) -> bool:
    """Sink arithmetic into later nests over the same index space; return success."""
    number = {group: k for k, group in enumerate(groups)}
    kept = {*block.yields, *(x for op in block.ops if op.blocks for x in op_free_values(op))}
    changed = {v for op in block.ops if op.record.writes is not None
               for v in versions(op.inputs[op.record.writes])}
    # a loop may write to what it carries
    changed.update(x for op in block.ops if op.blocks for x in op.inputs)
    found = False
    for group in groups if len(groups) > 1 else ():
        for op in reversed(group.ops if group.dims is not None else ()):
            to = ({home[reader] for reader in readers.get(op.output, ())} if is_little(op)
                  else ())
            if len(to) != 1 or op.output in kept:
                continue
            (target,) = to
            if target.dims != group.dims or number[target] <= number[group]:
                continue
            cone = _cone(op, group, readers, kept)
            operands = {x for each in cone for x in each.inputs if x.op not in cone}
            arrays = {x for x in operands if isinstance(x.type, Array)}
            if (len(arrays) > 1 or any(home.get(x.op) is target for x in operands)
                    or any(clashes(each, target.ops) for each in cone)
                    or not all(_is_stored(x, home, readers, cone, kept) and x not in changed
                               for x in arrays)):
                continue
            moved = [each for each in group.ops if each in cone]
            group.ops, target.ops = [each for each in group.ops
                                     if each not in cone], moved + target.ops
            target.after |= {home[x.op] for x in operands if x.op in home}
            home.update(dict.fromkeys(moved, target))
            found = True
    return found


def _cone(op: Op, group: Group, readers: dict[Value, list[Op]], kept: set[Value]) -> set[Op]:
    """`op` and the arithmetic in its group that nothing else reads."""
    cone, pending = {op}, [op]
    while pending:
        for x in pending.pop().inputs:
            if (x.op in group and x.op not in cone and is_little(x.op) and x not in kept
                    and cone.issuperset(readers[x])):
                cone.add(x.op)
                pending.append(x.op)
    return cone


def _is_stored(x: Value, home: dict[Op, Group], readers: dict[Value, list[Op]], cone: set[Op],
               kept: set[Value]) -> bool:
    """Whether the array `x` is in memory, also without the ops of `cone`."""
    if x.op is None or x.op.name == "matmul":
        return True
    if not x.op.record.elementwise:
        return False
    # none for an array of an enclosing block, which is stored because inner blocks read it
    made = home.get(x.op)
    return made is None or x in kept or any(home[reader] is not made and reader not in cone
                                            for reader in readers[x])


def last_reads(groups: list[Group], block: Block) -> dict[Value, int]:
    """The number of the last group that reads each value, or a view of it; yields read last."""
    last: dict[Value, int] = {}

    def read(x: Value, k: int) -> None:
        waiting = [x]
        # A use of a view is a use of its array.
        for v in waiting:
            if v not in last:
                last[v] = k
                waiting += viewed_inputs(v.op)

    for y in block.yields:
        read(y, len(groups))
    for k in reversed(range(len(groups))):
        for op in groups[k].ops:
            for x in (*op.inputs, *reads(op)):
                read(x, k)
    return last


@dataclass
class ReadAfter:
    """The values that the groups after number `k` read, and the arrays of which those are views."""

    last: dict[Value, int]
    k: int

    def __contains__(self, x: Value) -> bool:
        return self.last.get(x, -1) > self.k


def overwritten_views(groups: list[Group], last: dict[Value, int]) -> dict[int, list[Value]]:
    """Views and copies read after a write to their array, by the number of the writing group."""
    # by value that aliases memory: the arrays that own it
    roots: dict[Value, frozenset[Value]] = {}
    taken: dict[Value, list[Value]] = {}  # by root: the views that no write has met yet
    found: dict[int, list[Value]] = {}
    for k, group in enumerate(groups):
        for op in group.ops:
            if op.record.views:
                shared = frozenset().union(*(roots.get(x, {x}) for x in viewed_inputs(op)))
                roots.update(dict.fromkeys(op.outputs, shared))
                if op.record.writes is None:
                    for root in shared:
                        taken.setdefault(root, []).extend(op.outputs)
            elif op.name == "copy":  # which is read in the source array, as a view is
                for root in roots.get(op.inputs[0], {op.inputs[0]}):
                    taken.setdefault(root, []).append(op.output)
        for op in group.ops if taken else ():
            if op.record.writes_elements:
                a = op.inputs[0]
                met = [v for root in roots.get(a, {a}) for v in taken.pop(root, ())]
                found.setdefault(k, []).extend(v for v in met if last.get(v, -1) > k)
    return found


def _joinable(groups: list[Group], op: Op, dims: tuple, before: set[Group], awaited: set[Group],
              clashes: Callable[[Op, list[Op]], bool]) -> Group | None:
    """The last group over `dims` that `op` can join: after `before` and outside `awaited`."""
    for group in reversed(groups):
        if group.dims == dims and group not in awaited and not clashes(op, group.ops) \
                and not any(_must_follow(other, group) for other in before if other is not group):
            return group
    return None


def _must_follow(group: Group, first: Group) -> bool:
    """Whether `group` must run after `first`."""
    seen, stack = set(), [group]
    while stack:
        current = stack.pop()
        if current is first:
            return True
        if current not in seen:
            seen.add(current)
            stack.extend(current.after)
    return False


def _ordered(groups: list[Group]) -> list[Group]:
    """The groups in topological order, otherwise in program order."""
    done: dict[Group, None] = {}

    def visit(group: Group) -> None:
        if group not in done:
            for other in sorted(group.after, key=lambda g: g.position):
                visit(other)
            done[group] = None

    for group in sorted(groups, key=lambda g: g.position):
        visit(group)
    return list(done)
