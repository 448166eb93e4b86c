"""Where the number of trips differs from lane to lane, each lane runs the user's own loop."""

import numpy as np


def f(a, x):
    while abs(x * x - a) > 1e-9:
        x = 0.5 * (x + a / x)
    return x


ARGS = (np.float64(2.7), 1.5)
OF = "vmap"
IN_AXES = (0, None)


# ------------------------------ the same, as the compiler sees it


def f_ssa(a: "float64", x: "float64"):
    while True:
        t: "float64" = x * x
        t_1: "float64" = t - a
        t_2: "float64" = abs(t_1)
        t_3: "bool" = t_2 > 1e-9
        if not t_3:
            break
        t_4: "float64" = a / x
        t_5: "float64" = x + t_4
        x: "float64" = 0.5 * t_5
    return x


# ------------------------------ what s2s makes of it


def f_vmap(a, x):
    """f for many lanes at once (vmap_where_each_lane_stops_by_itself.py, line 6), for
    a: float64[:], x: float.
    """
    x_1 = np.empty(len(a))
    for lane in range(len(a)):
        a_1 = a[lane]
        x_2 = x
        while abs(x_2 * x_2 - a_1) > 1e-9:
            x_2 = 0.5 * (x_2 + a_1 / x_2)
        x_1[lane] = x_2
    return x_1
