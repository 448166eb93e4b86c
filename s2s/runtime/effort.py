"""How hard Numba works on generated code: the same passes of LLVM, at levels that its size can bear.

Note [What compiling costs]
Numba runs LLVM three times over a function: function by function before linking, cheaply after it, and then in full, all at
level 3.  Its Python part is linear in the number of statements; LLVM's is not.  A truncated Newton-CG on a hidden Markov
model (631 lines of loops, 50,000 LLVM instructions, one core):

    levels of the first and the last run     first    cheap     full   code   seconds
    3 and 3, as Numba does                    22.4      0.2      3.9    1.8      28.3
    1 and 2                                    5.2      0.3      1.8    1.0       8.3

and a stencil of 275 lines 6.1 and 2.5 s.  Level 3 differs from 2 by unswitching loops on conditions that they do not
change, and with every `for` inside a `for` comes one: is its range empty?  Each nest is doubled, and again by the
nest around it, before the vectoriser or the register allocator sees it.  The first run has nothing to lose at level 1: what it
leaves undone, the last does, after inlining.  In a small function unswitching is cheap, and a test that a loop makes
again and again is worth it, so those keep level 3 in the last run.
Considered as well: leaving the first run out (the cheap one then drags 50,000 instructions along: 4 % slower), and a list of
passes of our own in place of it (SROA, CFG simplification, combining: 15 % slower, and bound to one version of llvmlite).
The levels are Numba's own setting, changed for the time of a run under the lock that every compilation holds; so nothing
here depends on how a version of Numba builds its passes, and no other function of the process is compiled differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from .boxes import with_boxes

FIRST, LARGE = 1, 2  # levels: of the run before linking, and of the last one over what is large
MANY = 2_500  # instructions after the first run: from here on a function is large


class Effort(Compiler):
    """Numba's compiler, for `@njit(pipeline_class=Effort)`."""

    def compile_extra(self, func):
        self._own_library(func.__qualname__)
        return super().compile_extra(func)

    def compile_ir(self, func_ir, lifted=(), lifted_from=None):
        self._own_library(func_ir.func_id.func_qualname)
        return super().compile_ir(func_ir, lifted, lifted_from)

    def _own_library(self, name: str) -> None:
        self.state.targetctx = with_boxes(self.state.targetctx)
        self.state.library = Library(self.state.targetctx.codegen(), name)
        self.state.library.enable_object_caching()


class Library(JITCodeLibrary):
    """The machine code of one function.  Note [What compiling costs]"""

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout
        with at_level(FIRST):
            super()._optimize_functions(Definitions([f for f in ll_module.functions if not f.is_declaration]))

    def _optimize_final_module(self):
        if instructions(self._final_module) < MANY:
            super()._optimize_final_module()
            return
        with at_level(LARGE):
            super()._optimize_final_module()


@dataclass
class Definitions:
    """What a module defines: for a function that it only declares Numba would build a manager of passes, too, half a millisecond each."""

    functions: list
    data_layout: str = ""


@contextmanager
def at_level(level: int) -> Iterator[None]:
    """Inside this, LLVM's passes are those of `level`, or of NUMBA_OPT if that is lower."""
    before = config.OPT
    config.OPT = type(before)(min(level, before))
    try:
        yield
    finally:
        config.OPT = before


def instructions(module) -> int:
    """How many instructions the functions of an LLVM module have, counted up to MANY."""
    count = 0
    for function in module.functions:
        for block in function.blocks:
            count += sum(1 for _ in block.instructions)
            if count >= MANY:
                return count
    return count
