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


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]"):
    n: "int64" = len(x)
    product = 1.0
    for i in range(n):
        t: "float64" = x[i]
        t_1: "bool" = t < 0.0
        if not t_1:
            product: "float64" = product * t
    return product


# ------------------------------ what s2s makes of it


def f_grad(x):
    """The derivative of f (continue_skips_the_rest.py, line 6) with respect to x, for
    x: float64[:].
    """
    n = len(x)
    product_tape = np.empty(n)
    product = 1.0
    for i in range(n):
        product_tape[i] = product
        if x[i] < 0.0:
            continue
        product = product * x[i]
    product_bar = 1.0
    x_bar = np.zeros_like(x)
    for i in range(n - 1, -1, -1):
        product = product_tape[i]
        if x[i] < 0.0:
            t = 0.0
        else:
            t = product_bar * product
            product_bar = product_bar * x[i]
        x_bar[i] += t
    return x_bar
