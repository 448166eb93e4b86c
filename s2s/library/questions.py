"""Questions of functions of the library that the front end answers when code is generated; here,
as Python runs them, of arguments all of which are known.
"""

from __future__ import annotations

import numpy as np


def may_be_empty(x, axis=0):
    """Test whether an axis, or any axis, may have length 0, for all that is known when code is
    generated.
    """
    return np.size(x) == 0 if axis is None else np.shape(x)[axis] == 0


def kind_of(x):
    """Return the kind of the dtype, "f" of floats, or "" where it is not known when code is
    generated.
    """
    return np.asarray(x).dtype.kind


def is_known(x):
    """Test whether a number is known when code is generated."""
    return True
