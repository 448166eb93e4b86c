"""What a function that raises gives up on its way out, which is the same wherever it raises while it holds the same.

    y = np.sort(x)                              ...                      error:
    z = np.linalg.cholesky(A)      becomes      if failed: goto b        a: give up y; goto slots
    return y @ z                                ...                      b: give up z; goto a

A caller may catch what a factorisation raises, and try again, as long as a search lasts; Numba's own way keeps all that is held then, for ever.
Each way out is a chain of blocks, from what was bound last to what was bound first, that all places which raise share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from llvmlite import ir
from numba.core import callconv

RETURNS = (callconv.RETCODE_OK.constant, callconv.RETCODE_NONE.constant)
Held = tuple[tuple[object, object], ...]  # by a name for each: what is given up


class Failing:
    """The ways out of a function: `leave(code)` stands where its builder's `ret` stood."""

    def __init__(self, builder: ir.IRBuilder, held: Callable[[], Iterable[tuple[object, object]]], give_up: Callable[[object], None]):
        self.builder, self.held, self.give_up = builder, held, give_up
        self.ways: dict[tuple, tuple[ir.Block, ir.Value]] = {}
        self.returned, builder.ret = builder.ret, self.leave

    def leave(self, code: ir.Value) -> None:
        if isinstance(code, ir.Constant) and code.constant in RETURNS:
            self.returned(code)
        else:
            self.go(code, tuple(self.held()))

    def go(self, code: ir.Value, held: Held) -> None:
        """Go to the block that gives up the last of these, and then the others."""
        names = tuple(name for name, _ in held)
        if names not in self.ways:
            block = self.builder.append_basic_block("failed")
            with self.builder.goto_block(block):
                self.ways[names] = block, self.builder.phi(code.type)
                if held:
                    self.give_up(held[-1][1])
                    self.go(self.ways[names][1], held[:-1])
        block, phi = self.ways[names]
        phi.add_incoming(code, self.builder.block)
        self.builder.branch(block)

    def finish(self, slots: Iterable[object]) -> None:
        """Give up what slots hold last of all, and leave."""
        del self.builder.ret
        if () in self.ways:
            block, phi = self.ways[()]
            with self.builder.goto_block(block):
                for each in slots:
                    self.give_up(each)
                self.builder.ret(phi)
