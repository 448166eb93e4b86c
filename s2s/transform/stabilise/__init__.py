"""Rewrites before differentiation that keep derivatives finite wherever they exist, and real where
they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Function
from .complex_powers import refuse_complex_powers
from .spectral_functions import mark_matrix_functions
from .square_roots import mark_squares


def stabilised(function: Function, wrt: Sequence[int]) -> Function:
    """Prepare `function` to be differentiated in the parameters numbered `wrt`."""
    return mark_matrix_functions(mark_squares(refuse_complex_powers(function, wrt)), wrt)
