"""Fuse nests whose trips are independent, so that one kernel runs them.

    for i in range(n):                      for i in range(n):
        s = 0.0                                 s = 0.0
        for j in range(m):                      for j in range(m):
            s += x[i, j]            becomes         s += x[i, j]
        t[i] = s                                for j in range(m):
    for i in range(n):                              y[i, j] = x[i, j] / s
        for j in range(m):
            y[i, j] = x[i, j] / t[i]

The rules are those of native code (back/loops/fuse.py), but for what is worthwhile: a launch costs
as much as the arithmetic of thousands of trips, and no loop is made vectors of.
"""

from __future__ import annotations

from ...ir.graph import Function, Op, Value
from ..loops.fuse import Fusion, Lengths, drop_unchanged
from ..print.insert_copies import insert_copies
from .interchange import interchange_loops
from .nests import Roles


class KernelFusion(Fusion):
    """The fusion of the nests of one function."""

    keeps_rows = True  # a kernel allocates nothing

    def __init__(self, function: Function):
        super().__init__(function)
        self.roles = Roles(function)

    def is_worthwhile(self, first: Op, second: Op, handed: list[Value]) -> bool:
        return self.roles.of(first) is not None and self.roles.of(second) is not None


def fuse_nests(function: Function) -> Function:
    """Fuse the independent nests of `function`, a loop form."""
    function = insert_copies(function, results=True, augmented=False)
    drop_unchanged(function.block)
    KernelFusion(function).block(function.block, Lengths())
    while interchange_loops(function):
        KernelFusion(function).block(function.block, Lengths())
    return function
