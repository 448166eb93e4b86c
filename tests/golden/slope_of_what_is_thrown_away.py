"""What is thrown away has a cotangent of 0 and no influence, however steep it is, and nobody is warned of its slope."""

import numpy as np


def f(t, d):
    spread = np.sqrt(2.0 * d * (t - t[0]))
    return np.sum(spread[1:])


ARGS = (np.array([0.3, 0.8, 1.7]), 0.5)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(t: "float64[t.0]", d: "float64"):
    t_1: "float64" = 2.0 * d
    t_2: "float64" = t[0]
    t_3: "float64[t.0]" = t - t_2
    t_4: "float64[t.0]" = t_1 * t_3
    spread: "float64[t.0]" = np.sqrt(t_4)
    t_5: "float64[t.0-1]" = spread[1:]
    t_6: "float64" = np.sum(t_5)
    return t_6


# ------------------------------ what s2s makes of it


def f_grad(t, d):
    """The derivative of f (slope_of_what_is_thrown_away.py, line 6) with respect to t and d, for
    t: float64[:], d: float.
    """
    # line 2: spread = np.sqrt(2.0 * d * (t - t[0]))
    t_1 = 2.0 * d
    t_2 = t - t[0]
    spread = np.sqrt(t_1 * t_2)
    # line 3, backwards: return np.sum(spread[1:])
    spread_bar = np.zeros_like(t)
    spread_bar[1:] = np.ones(spread[1:].shape)
    # line 2, backwards
    with np.errstate(all="ignore"):
        t_3 = np.where(spread_bar != 0.0, 0.5 * spread_bar / spread, 0.0)
        t_bar = t_3 * t_1
        t_bar[0] -= np.sum(t_bar)
        d_bar = 2.0 * np.sum(t_3 * t_2)
    return t_bar, d_bar
