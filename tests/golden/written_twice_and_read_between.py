"""An element that is read, overwritten and read again has two cotangents, one after the other."""

import numpy as np


def f(x):
    a = np.zeros(2)
    a[0] = np.sin(x)
    y = a[0] * x
    a[0] = y * y
    a[1] = a[0] * y
    return a[0] * a[1]


ARGS = (0.8,)
WRT = 0
