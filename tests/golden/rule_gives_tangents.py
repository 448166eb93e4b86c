"""A function with a rule for tangents: its value is a call as ever, its derivative what the rule says, in either mode."""

import numpy as np

import s2s


def f(x, w):
    @s2s.custom_jvp
    def log1pexp(x):
        return np.log(1.0 + np.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        x, = primals
        x_dot, = tangents
        y = log1pexp(x)
        return y, (1.0 - np.exp(-y)) * x_dot

    return w * log1pexp(x * w)


ARGS = (0.7, 1.3)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def log1pexp(x: "float64"):
    t: "float64" = np.exp(x)
    t_1: "float64" = 1.0 + t
    t_2: "float64" = np.log(t_1)
    return t_2


def f_ssa(x: "float64", w: "float64"):
    t: "float64" = x * w
    t_1: "float64" = log1pexp(t)
    t_2: "float64" = w * t_1
    return t_2


# ------------------------------ what s2s makes of it


def log1pexp(x):
    return np.log(1.0 + np.exp(x))


def f_grad(x, w):
    """The derivative of f (rule_gives_tangents.py, line 8) with respect to x and w, for
    x: float, w: float.
    """
    y = log1pexp(x * w)
    t = w * (1.0 - np.exp(-y))
    x_bar = t * w
    w_bar = y + t * x
    return x_bar, w_bar
