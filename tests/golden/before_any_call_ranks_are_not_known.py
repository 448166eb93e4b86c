"""Before any call nothing is known of the arguments: what was broadcast is summed back at run time."""

import numpy as np


def f(x, y):
    return np.sum(np.sin(x) * y)


ARGS = (np.array([0.1, 0.5, 0.4]), 2.0)
WRT = (0, 1)
OF = "grad before any call"


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64[x.0]", y: "float64"):
    t: "float64[x.0]" = np.sin(x)
    t_1: "float64[x.0]" = t * y
    t_2: "float64" = np.sum(t_1)
    return t_2


# ------------------------------ what s2s makes of it


def sum_to_shape(x_bar, shape):
    """x_bar summed over the axes along which an operand of this shape was broadcast."""
    x_bar = np.asarray(x_bar)
    extra = x_bar.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        k + extra for k, n in enumerate(shape) if n == 1 != x_bar.shape[k + extra]
    )
    return (np.sum(x_bar, axis=axes) if axes else x_bar).reshape(shape)


def f_grad(x, y):
    """The derivative of f (before_any_call_ranks_are_not_known.py, line 6) with respect to x and
    y, for real x, y.
    """
    t = np.sin(x)
    t_1 = t * y
    y_bar = sum_to_shape(np.full(np.shape(t_1), t), np.shape(y))
    x_bar = sum_to_shape(np.full(np.shape(t_1), 1.0 * y), np.shape(x)) * np.cos(x)
    return x_bar, y_bar
