"""A branch is not recorded: the sweep back decides it again from the same values."""

import numpy as np


def f(x, y):
    if x * y > 0.5:
        z = np.sin(x) * y
    elif y > 0.0:
        z = x**3
    else:
        return x
    return z * z


ARGS = (0.7, 1.3)
WRT = (0, 1)
