"""The sweep back runs over the trips that were made, and no more."""

import numpy as np


def f(x, limit):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
        if total > limit:
            break
    return np.sin(total)


ARGS = (np.array([0.3, 0.8, 0.5, 0.9]), 0.9)
WRT = 0
