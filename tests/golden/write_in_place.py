"""An update in place is undone in place; of the overwritten elements only what the sweep reads is saved."""

import numpy as np


def f(u, k, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


ARGS = (np.array([0.1, 0.5, 0.4, 0.9, 1.2]), 0.2, 3)
WRT = (0, 1)
