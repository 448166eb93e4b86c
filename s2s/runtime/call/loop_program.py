"""The loop form of a function before printing: its requirements, its amount of work, and its text,
new or from the on-disk store.
"""

from __future__ import annotations

from collections.abc import Callable

from ...analysis.index_ranges import requirements
from ...back.arrays.assume_equal_lengths import assume_lengths, has_assumptions
from ...back.loop_pipeline import lower
from ...back.print.printer import Draft, Module
from ...ir.compile_lock import cached_in_turn
from ...ir.graph import Function
from ..cache.program_store import Program, StoredText
from ..kernels.runtime_calls import spelled
from ..numba.native_module import NATIVE_NAMES


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
        return Draft(spelled(lower(self.known, supposes=self.supposes)), native=True,
                     taken=NATIVE_NAMES)

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
