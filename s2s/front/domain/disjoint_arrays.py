"""Alias analysis at an `if`: the arrays that share memory with nothing else, whichever arm runs.

`if swap: a, b = b, a` leaves two arrays that are never one, though each name may hold either.  So
do arms that bind a name to an array which nothing else leads to.  The name's array after the `if`
is then like a new one: a write to it need not be decided again by the condition, and nothing else
has to see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Value
from ...ir.types import Array, List
from .heap import Cell, cells_in

Pair = tuple[Cell, Cell]  # the binding of a name after either arm


def disjoint_cells(frame, pairs: Sequence[tuple], heaps: Sequence[dict],
                   held: Sequence[dict]) -> frozenset[Pair]:
    """The `pairs`, of the bindings of all live names, that share memory with nothing else.

    `heaps` are the contents of the cells after either arm, `held` what their lists share memory
    with.
    """
    candidates, others = set(), []
    for pair in pairs:
        if pair[0] is not pair[1] and all(_is_plain(frame, *arm) for arm in zip(pair, heaps, held)):
            candidates.add(pair)
        else:
            others.append(pair)
    if not candidates:
        return frozenset()
    elsewhere: list[set[Cell]] = [
    ]  # for each arm: the cells reached otherwise than as the whole array of a name
    for k, heap in enumerate(heaps):
        kept, frame.heap.contents = frame.heap.contents, heap
        cells = [cell for pair in others for cell in frame.reachable_cells(pair[k])]
        cells += [] if frame.caller is None else [cell for _, cell in frame.caller.reachable(True)]
        elsewhere.append({root for cell in cells for root in cell.roots})
        frame.heap.contents = kept

    def meet(k: int, a: Cell, b: Cell) -> bool:
        return bool(a.family() & (b.family() | held[k].get(b, b.held)))

    while True:
        left = {pair for pair in candidates if all(
            cell is other[k] if pair == other else not meet(k, pair[k], other[k])
            for k, cell in enumerate(pair) for other in candidates)
            and not any(meet(k, cell, root) for k, cell in enumerate(pair) for root in elsewhere[k])
            and not any(cell in roots for cell in pair for roots in elsewhere)}
        if left == candidates:
            return frozenset(candidates)
        for pair in candidates - left:
            for k, cell in enumerate(pair):
                elsewhere[k].add(cell)
        candidates = left


def _is_plain(frame, cell, heap: dict, held: dict) -> bool:
    """Whether a binding is an array, or a list of numbers, that is no view and that no caller
    holds.
    """
    if (not isinstance(cell, Cell) or cell.base is not None or cell.choice is not None or cell.owner
        or cell.flat):
        return False
    if held.get(cell, cell.held) or cell.family() & frame.session.given:
        return False
    content = heap.get(cell)
    if isinstance(content, tuple):
        return not any(True for _ in cells_in(content))
    return isinstance(content, Value) and isinstance(content.type, (Array, List))
