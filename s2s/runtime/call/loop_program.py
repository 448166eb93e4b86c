"""The loop form of a function before printing: its requirements, its amount of work, and its text,
new or from the on-disk store.

NATIVE are the passes from the loops that users read (back/loop_pipeline.py) to those that are
compiled.  Which loops threads share is decided for each call, on the text that is then compiled
(back/parallel/outline_parallel.py); it is decorated by runtime/numba/native_module.py, and emitted
as LLVM IR by runtime/emit/emit_function.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...analysis.index_ranges import requirements
from ...back.arrays.assume_equal_lengths import assume_lengths, has_assumptions
from ...back.loop_pipeline import lower
from ...back.loops.vectorise_calls import vectorise_calls
from ...back.print.printer import Draft, Module
from ...compile_lock import cached_in_turn
from ...ir.graph import Function
from ...ir.verify import verify
from ...passes import Pass, apply, observe, ordered
from ..cache.program_store import Program, StoredText
from ..kernels.runtime_calls import call_runtime
from ..kernels.share_factorisations import share_factorisations
from ..numba.native_module import NATIVE_NAMES

NATIVE = ordered(
    Pass(vectorise_calls, "which loops LLVM vectorises can be read off the final loops"),
    Pass(share_factorisations, "its calls of LAPACK are the runtime's"),
    Pass(call_runtime, "ops are what the passes above know, until here"),
)


def native_stage(function: Function, name: str) -> Function:
    """Verify and record `function`, a loop form, if requested; its text is dumped when compiled."""
    return observe(function, name, partial(verify, lengths=False), dumps=False)


class LoopProgram:
    """The loop form that `make` generates for the function, specialised for arguments of these
    `lengths`.

    They may assume something of lengths if that is `allowed`; `supposes` lists the actual
    assumptions.  Parts stored in `kept` are not generated again.
    """

    def __init__(self, make: Callable[[], Function], lengths: tuple[int, ...], allowed: bool,
                 kept: Program | None):
        self.make, self.kept, self.place = make, kept, (lengths, allowed)
        found = kept.read("loops", *self.place) if kept is not None else None
        if found is None:
            self.supposes = allowed and has_assumptions(self.known)
            found = (self.supposes, self.draft.sizes,
                     requirements(assume_lengths(self.known) if self.supposes else self.known))
            if kept is not None:
                kept.write(found, "loops", *self.place)
        self.supposes, self.sizes, self.required = found

    @cached_in_turn
    def known(self) -> Function:
        """The function itself."""
        return self.make()

    @cached_in_turn
    def draft(self) -> Draft:
        lowered = lower(self.known, supposes=self.supposes)
        return Draft(apply(NATIVE, lowered, look=native_stage), native=True, taken=NATIVE_NAMES)

    def module(self, parts: frozenset[int]) -> Module:
        """The text, with these loops (by number) run in parallel parts."""
        return self.draft.module(parts)

    def native(self, parts: frozenset[int], form: str,
               make: Callable[[], Module]) -> Module | StoredText:
        """The text to compile, in the form that `make` generates."""
        place = "text", *self.place, tuple(sorted(parts)), form
        found = self.kept.read(*place) if self.kept is not None else None
        if found is not None:
            return StoredText(*found, make)
        made = make()
        if self.kept is not None and not made.given:
            self.kept.write((made.text, made.entry, bool(made.raises)), *place)
        return made
