"""Forward mode: each line is followed by its tangent."""

import numpy as np


def f(x, y):
    a = np.sin(x) * y
    return a + np.exp(-x)


ARGS = (0.7, 1.3)
OF = "jvp"
