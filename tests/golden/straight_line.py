"""What the derivative does not need is gone; what it needs is said once."""

import numpy as np


def f(x, y):
    a = np.sin(x) * y
    return a + np.exp(-x)


ARGS = (0.7, 1.3)
WRT = (0, 1)
