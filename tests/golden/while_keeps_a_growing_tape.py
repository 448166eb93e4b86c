"""How often a `while` turns is not known on entry: what the sweep back needs is appended, and popped."""

import numpy as np


def f(x, rate):
    n = 0
    while abs(x) > 1e-3:
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
        n += 1
    return x + n


ARGS = (1.9, 0.8)
WRT = (0, 1)
