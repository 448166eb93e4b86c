"""A `return` inside a loop ends the loop and carries the result out."""

import numpy as np


def f(x, limit):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i]
        if total > limit:
            return total * x[i]
    return -total


ARGS = (np.array([0.3, 0.8, 0.5, 0.9]), 0.9)
WRT = 0
