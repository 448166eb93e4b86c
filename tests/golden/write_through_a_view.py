"""A row is a view: what is written into it is written into its array."""

import numpy as np


def f(x):
    a = x * 1.5
    row = a[1]
    row[0] = row[1] * a[0, 0]
    return np.sum(a * a)


ARGS = (np.array([[0.1, 0.5], [0.4, 0.9]]),)
WRT = 0
