"""A root of squares is a size: 0 has slope 0, as for a norm, so the distance of a particle from itself is no trouble."""

import numpy as np


def f(x):
    z = x[:, None] - x
    r = np.sqrt(np.sum(z * z, axis=-1))
    return np.sum(np.triu(r * np.exp(-r), 1))


ARGS = (np.array([[0.3, -0.8], [0.1, 0.9], [1.2, 0.4]]),)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0, x.1]"):
    t: "float64[x.0, 1, x.1]" = x[:, None, :]
    z: "float64[x.0, x.0, x.1]" = t - x
    t_1: "float64[x.0, x.0, x.1]" = z * z
    t_2: "float64[x.0, x.0]" = np.sum(t_1, axis=-1)
    r: "float64[x.0, x.0]" = np.sqrt(t_2)
    t_3: "float64[x.0, x.0]" = -r
    t_4: "float64[x.0, x.0]" = np.exp(t_3)
    t_5: "float64[x.0, x.0]" = r * t_4
    t_6: "float64[x.0, x.0]" = np.triu(t_5, 1)
    t_7: "float64" = np.sum(t_6)
    return t_7


# ------------------------------ what s2s makes of it


def f_grad(x):
    """The derivative of f (distances_of_pairs.py, line 6) with respect to x, for
    x: float64[:, :].
    """
    # line 2: z = x[:, None] - x
    z = x[:, None, :] - x
    r = np.sqrt(np.sum(z * z, axis=-1))
    # line 4: return np.sum(np.triu(r * np.exp(-r), 1))
    t = np.exp(-r)
    # line 4, backwards
    t_1 = np.triu(np.ones(np.triu(r * t, 1).shape), 1)
    r_bar = t_1 * t - t_1 * r * t
    # line 3, backwards: r = np.sqrt(np.sum(z * z, axis=-1))
    z_bar = r_bar[:, :, None] / np.where(r == 0, 1, r)[:, :, None] * z
    # line 2, backwards
    x_bar = np.sum(z_bar, axis=1) - np.sum(z_bar, axis=0)
    return x_bar
