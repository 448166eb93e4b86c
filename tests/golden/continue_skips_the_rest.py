"""What follows a `continue` stands in the other branch."""

import numpy as np


def f(x):
    product = 1.0
    for i in range(len(x)):
        if x[i] < 0.0:
            continue
        product = product * x[i]
    return product


ARGS = (np.array([0.3, -0.8, 0.5, 0.9]),)
WRT = 0
