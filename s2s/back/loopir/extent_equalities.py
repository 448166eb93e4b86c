"""Equalities of extents that hold because an op would have raised otherwise."""

from __future__ import annotations

from dataclasses import replace

from ...ir.types import Extent
from ...ops.core.record import dims_of


class Equalities:
    """Classes of extents that are equal because they meet in an elementwise op that has run.

    Two lengths of which neither can be 1 are equal or the op raises, and every nest checks the
    lengths of what it reads, so they may share an index space. Of x[1:-1] and y[1:-1] either can be
    1, so these are equal only where x and y are known to meet: in the same block, or in an
    enclosing one.
    """

    def __init__(self, blocks_ops, around: Equalities | None = None):
        self.parent: dict[Extent, Extent | int] = {} if around is None else dict(around.parent)
        # equalities of the ops that dominate the block in question
        self.met: Equalities | None = None
        self.add(blocks_ops)

    def add(self, ops) -> None:
        """Add the equalities that `ops` imply."""
        for op in ops:
            if op.record.elementwise:
                self._meet([dims_of(x.type) for x in op.inputs])
            elif op.record.is_broadcast:
                self._meet([dims_of(op.inputs[0].type), dims_of(op.output.type)])
            elif op.name == "matmul":  # the axis that it sums over
                first, second = (dims_of(x.type) for x in op.inputs)
                self._meet([first[-1:], second[-2:][:1]])
            elif op.name == "shaped_like":
                for d, e in zip(dims_of(op.inputs[0].type), dims_of(op.output.type)):
                    self.unite(d, e)

    def _meet(self, shapes: list[tuple]) -> None:
        for axis in range(1, max(map(len, shapes), default=0) + 1):
            here = list(dict.fromkeys(s[-axis] for s in shapes if len(s) >= axis and s[-axis] != 1))
            if len(here) > 1:
                here = [d for d in here if isinstance(d, int) or self.tells(d)]
            for d in here[1:]:
                self.unite(here[0], d)

    def tells(self, d: Extent) -> bool:
        """Whether an op that `d` meets in determines its length."""
        return not d.may_be_one and not d.accepts_any

    def unite(self, d, e) -> None:
        """Merge the classes of `d` and `e`."""
        a, b = self.find(d), self.find(e)
        if a == b or isinstance(a, int) and isinstance(b, int):
            return
        if isinstance(b, int):
            a, b = b, a
        self.parent[b] = a

    def within(self, ops) -> Equalities:
        """These equalities extended by those of a nested block with these ops."""
        inner = Equalities(())
        inner.parent, inner.met = self.parent, Equalities(ops, self.met)
        return inner

    def find(self, dim):
        while dim in self.parent:
            dim = self.parent[dim]
        if isinstance(dim, Extent) and dim.offset and self.met is not None:
            whole = self.met.find(replace(dim, offset=0))
            if isinstance(whole, Extent) and not whole.offset:
                return replace(whole, offset=dim.offset)
        return dim

    def canonical(self, dims: tuple) -> tuple:
        return tuple(map(self.find, dims))
