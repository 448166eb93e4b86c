"""maximum and minimum with NumPy's NaN propagation, in the form in which LLVM vectorises
reductions.
"""

from __future__ import annotations

import numpy as np

from .lanes import Lanes


def maximum(a, b):
    """The larger."""
    return a.code.call("maximum", a, b) if isinstance(a, Lanes) else np.maximum(a, b)


def minimum(a, b):
    """The smaller."""
    return a.code.call("minimum", a, b) if isinstance(a, Lanes) else np.minimum(a, b)
