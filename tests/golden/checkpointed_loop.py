"""Of the trips of a checkpointed loop three states are kept; the reverse sweep runs the others again, by a binomial schedule."""

import numpy as np

import s2s


def f(x, r, n):
    for _ in s2s.checkpoint(range(n), snapshots=3):
        x = r * x * (1 - np.sin(x))
    return x


ARGS = (0.3, 0.9, 9)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", r: "float64", n: "int64"):
    for _ in range(n):
        t: "float64" = r * x
        t_1: "float64" = np.sin(x)
        t_2: "float64" = 1 - t_1
        x: "float64" = t * t_2
    return x


# ------------------------------ what s2s makes of it


def gap(trips, free):
    """How many of `trips` to run to where the next snapshot is best left, with room for `free` more."""
    if free == 0:
        return trips
    if trips <= free + 2:
        return 1
    again, reach, before = 1, free + 2, 1
    while reach < trips:
        again += 1
        before, reach = reach, reach * (free + 1 + again) // again
    return min(before, trips - before * (free + 1) // (free + again))


def f_grad(x, r, n):
    """The derivative of f (checkpointed_loop.py, line 8) with respect to x and r, for x: float,
    r: float, n: int.
    """
    used = 0
    i_kept = np.empty(3, np.int64)
    x_kept = np.empty(3)
    stop = 0
    for i in range(n):
        if i == stop:
            x_kept[used] = x
            i_kept[used] = i
            stop = i + gap(n - i, 2 - used)
            used += 1
        x = r * x * (1 - np.sin(x))
    x_bar = 1.0
    r_bar = 0.0
    for k in range(n - 1, -1, -1):
        x = x_kept[used - 1]
        stop = i_kept[used - 1] + gap(k + 1 - i_kept[used - 1], 3 - used)
        for i in range(i_kept[used - 1], k):
            if i == stop:
                x_kept[used] = x
                i_kept[used] = i
                stop = i + gap(k + 1 - i, 2 - used)
                used += 1
            x = r * x * (1 - np.sin(x))
        t = x_bar * (1 - np.sin(x))
        r_bar += t * x
        x_bar = t * r - x_bar * (r * x) * np.cos(x)
        if i_kept[used - 1] == k:
            used -= 1
    return x_bar, r_bar
