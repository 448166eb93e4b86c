"""Name, after an `if`, the array that its condition chose, so that it can be read and written
there.

After `c = a if s else b[k:]`, where the arms say so, c is a cell that is `a` where s holds and
`b[k:]` elsewhere. The numbers that an arm computes for it (k) become results of the `if`; an array
that an arm makes becomes one, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ...ir.builder import current
from ...ir.graph import MISSING, Block, Value
from ...ir.types import Scalar
from ...ops.core.record import value
from ..domain.heap import Cell, Container, Heap, place_of_view
from ..values.subscript import part_of


class ChosenCells:
    """Cells that the arms of one `if` leave, in terms of values available after the `if`.

    `pair(arm, x, otherwise)` makes x, a Value or the content of a cell, with the placeholder
    `otherwise` in the other arm, a result of the `if`, and returns its position among the outputs.
    """

    def __init__(self, heap: Heap, arms: list[Block], before: dict, pair: Callable):
        self.heap, self.arms, self.before, self.pair = heap, arms, before, pair
        self.found: dict[tuple[int, Cell], Callable | None] = {}
        self.uses: Counter[tuple[int, Cell]] = Counter()

    def choice(self, condition: Value, cells: tuple[Cell, Cell], output: int) -> Callable | None:
        """A function from the outputs to the chosen cell, whose content is `output`; None if there
        is no such cell.
        """
        arms = [self.cell(cell, k, output, cells[1 - k]) for k, cell in enumerate(cells)]
        for k, cell in enumerate(cells):
            self.uses.update((k, root) for root in cell.roots)
        if None in arms:
            return None

        def place(outputs):
            if all(self.is_fresh(cell) and self.uses[k, cell] == 1 for k, cell in enumerate(cells)):
                return None
            return self.heap.choose(condition, *(arm(outputs) for arm in arms), outputs[output])

        return place

    def is_fresh(self, cell: Cell) -> bool:
        """Whether a cell is an array allocated in an arm."""
        return (cell.base is None and cell.choice is None and not cell.owner
                and cell not in self.before)

    def cell(self, cell: Cell, arm: int, output: int | None = None,
             other: Cell | None = None) -> Callable | None:
        """A function from the outputs to what `cell` is after the `if`, or None.

        `output` is the position of the arm's whole array among the outputs, if it is one; for an
        array that is none yet, `other` is one like it in the other arm.
        """
        key = arm, cell
        if self.found.get(key) is None:
            self.found[key] = self._cell(cell, arm, output, other)
        return self.found[key]

    def container(self, x: Container, arm: int) -> Callable | None:
        """A function from the outputs to what `x`, an object or a dict that existed before the
        `if`, is after it; None if it did not.
        """
        if x.choice is not None:
            parts = [self._number(x.choice[0], arm, False),
                     *(self.container(each, arm) for each in x.choice[1:])]

            def changed(parts):
                return {"choice": parts}
        elif x.place is not None:
            parts = [self.cell(x.place.xs, arm), self._number(x.place.index, arm, 0)]

            def changed(parts):
                return {"place": replace(x.place, xs=parts[0], index=parts[1])}
        else:
            return (lambda outputs: x) if x in self.before else None
        if None in parts:
            return None
        return lambda outputs: replace(x, initial=dict.fromkeys(x.initial), **changed(
            tuple(part(outputs) for part in parts)))

    def _cell(self, cell: Cell, arm: int, output: int | None,
              other: Cell | None) -> Callable | None:
        made: list[Cell] = []
        if cell.choice is not None:
            parts = [
                self._number(cell.choice[0], arm, False),
                *(self.cell(c, arm, None, other) for c in cell.choice[1:])
            ]

            def make(outputs):
                return Cell(choice=tuple(part(outputs) for part in parts))
        elif cell.base is None:
            if not self.is_fresh(cell):
                return lambda outputs: cell
            if output is None and other is not None:
                output = self.pair(arm, cell, other)
            parts = [output]

            def make(outputs):
                new = self.heap.new(outputs[output], cell.origins | {cell})
                new.contiguous = cell.contiguous
                return new
        elif cell.index is not None:
            parts = [self.cell(cell.base, arm), *(self._number(x, arm, 0) for x in cell.index[1])]

            def make(outputs):
                base, *operands = (part(outputs) for part in parts)
                return part_of(base, cell.index[0], operands)
        elif (lies := place_of_view(cell)) is not None:
            parts = [self.cell(lies.xs, arm), self._number(lies.index, arm, 0)]

            def make(outputs):
                xs, index = (part(outputs) for part in parts)
                place = replace(lies, xs=xs, index=index)
                return self.heap.in_place(place, place.read(self.heap.read(xs)))
        else:
            parts = [self.cell(cell.base, arm)]
            inside = {y for op in self.arms[arm].ops for y in op.outputs}
            if not all(x not in inside or self._hoist_constant(x, arm) for x in cell.reads):
                return None

            def make(outputs):
                base = parts[0](outputs)
                return cell if base is cell.base else replace(cell, base=base)
        if None in parts:
            return None

        def place(outputs):
            if not made:
                made.append(make(outputs))
            return made[0]

        return place

    def _hoist_constant(self, x: Value, arm: int) -> bool:
        """Hoist a constant of the arm above the `if`; returns whether it is a constant."""
        if x.constant is MISSING or x.op.inputs:
            return False
        self.arms[arm].ops.remove(x.op)
        current().block.ops.append(x.op)
        return True

    def _number(self, x: Value, arm: int, otherwise) -> Callable | None:
        """A function from the outputs to a number computed in the arm; `otherwise` is its value in
        the other arm.
        """
        if x.constant is not MISSING:
            return lambda outputs: value(x.constant)
        if all(x not in op.outputs for op in self.arms[arm].ops):
            return lambda outputs: x
        if not isinstance(x.type, Scalar):
            return None
        output = self.pair(arm, x, otherwise)
        return lambda outputs: outputs[output]
