"""Deoptimisation: native code without assumptions on lengths, for calls that violate them:
ir/length_assumptions.py, Note [Supposed lengths].
"""

from __future__ import annotations

from collections.abc import Callable

from ...back.loopir.ops import supposed_alike, supposed_length
from ...compile_lock import cached_in_turn
from ...ir.length_assumptions import depends_on_long_axes, tracking_long_axes
from ..intrinsics.inline_checks import raised
from ..threads.parallel_for import RAISED


class Deoptimised:
    """Code that `make` generates on first use, in the state of this moment."""

    def __init__(self, make: Callable[[], Callable]):
        self.make, self.has_asked = make, depends_on_long_axes()

    @property
    def is_made(self) -> bool:
        return "code" in self.__dict__

    @cached_in_turn
    def code(self) -> Callable:
        with tracking_long_axes() as asked:
            asked.about_lengths = self.has_asked
            return self.make()

    @staticmethod
    def is_wanted(error: Exception) -> bool:
        """Whether native code may have raised this error because an assumption on lengths was
        violated.
        """
        return error.args in (raised(supposed_length)[1], raised(supposed_alike)[1], (RAISED,))
