"""Where no branch asks for a lane, a batch is one more axis: many products of a matrix and a vector are one of matrices."""

import numpy as np


def f(W, x, b):
    return np.sum(np.tanh(W @ x + b))


ARGS = (np.array([[0.1, 0.5], [0.4, 0.9]]), np.array([0.3, 0.2]), np.array([0.6, -0.5]))
OF = "vmap"
IN_AXES = (None, 0, None)


# ------------------------------ the same, as the compiler sees it


def f_ssa(W: "float64[W.0, W.1]", x: "float64[x.0]", b: "float64[b.0]"):
    t: "float64[W.0]" = W @ x
    t_1: "float64[W.0]" = t + b
    t_2: "float64[W.0]" = np.tanh(t_1)
    t_3: "float64" = np.sum(t_2)
    return t_3


# ------------------------------ what s2s makes of it


def f_vmap(W, x, b):
    """f for many lanes at once (vmap_of_a_matrix_product.py, line 6), for W: float64[:, :],
    x: float64[:, :], b: float64[:].
    """
    return np.sum(np.tanh(x @ W.T + b), axis=1)
