"""A dict of parameters has a dict of cotangents."""

import numpy as np


def f(params, x, y):
    hidden = np.tanh(params["W"] @ x + params["b"])
    return np.sum((hidden * params["scale"] - y) ** 2)


ARGS = ({"W": np.array([[0.3, -0.2], [0.5, 0.1]]), "b": np.zeros(2), "scale": 1.5}, np.ones(2), np.array([0.2, 0.4]))
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(params: "dict(W: float64[params.W.0, params.W.1], b: float64[params.b.0], scale: float64)", x: "float64[x.0]", y: "float64[y.0]"):
    t: "float64[params.W.0, params.W.1]" = params["W"]
    t_1: "float64[params.b.0]" = params["b"]
    t_2: "float64" = params["scale"]
    t_3: "float64[params.W.0]" = t @ x
    t_4: "float64[params.W.0]" = t_3 + t_1
    hidden: "float64[params.W.0]" = np.tanh(t_4)
    t_5: "float64[params.W.0]" = hidden * t_2
    t_6: "float64[params.W.0]" = t_5 - y
    t_7: "float64[params.W.0]" = t_6**2
    t_8: "float64" = np.sum(t_7)
    return t_8


# ------------------------------ what s2s makes of it


def f_grad(params, x, y):
    """The derivative of f (dict_of_parameters.py, line 6) with respect to params, for
    params: (W: float64[:, :], b: float64[:], scale: float), x: float64[:], y: float64[:].
    """
    params_W = params["W"]
    params_b = params["b"]
    params_scale = params["scale"]
    # line 2: hidden = np.tanh(params["W"] @ x + params["b"])
    hidden = np.tanh(params_W @ x + params_b)
    # line 3, backwards: return np.sum((hidden * params["scale"] - y) ** 2)
    t = 2 * (hidden * params_scale - y)
    hidden_bar = t * params_scale
    params_scale_bar = np.sum(t * hidden)
    # line 2, backwards
    params_b_bar = hidden_bar * (1 - hidden * hidden)
    params_W_bar = np.outer(params_b_bar, x)
    return {"W": params_W_bar, "b": params_b_bar, "scale": params_scale_bar}
