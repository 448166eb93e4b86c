"""Dynamic programming: each entry is written once, so the sweep back reads the table itself, and saves nothing."""

import numpy as np


def f(a, b, gap):
    table = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(len(a)):
        for j in range(len(b)):
            match = table[i, j] + (a[i] - b[j]) ** 2
            skip = table[i, j + 1] + gap
            table[i + 1, j + 1] = -np.log(np.exp(-match) + np.exp(-skip))
    return table[-1, -1]


ARGS = (np.array([0.1, 0.5, 0.4]), np.array([0.3, 0.2]), 0.7)
WRT = (0, 1, 2)


# ------------------------------ the same, as the compiler sees it


def f_ssa(a: "float64[a.0]", b: "float64[b.0]", gap: "float64"):
    n: "int64" = len(a)
    t: "int64" = n + 1
    n_1: "int64" = len(b)
    t_1: "int64" = n_1 + 1
    table: "float64[a.0+1, b.0+1]" = np.zeros((t, t_1))
    for i in range(n):
        t_2: "int64" = i + 1
        for j in range(n_1):
            t_3: "float64" = table[i, j]
            t_4: "float64" = a[i]
            t_5: "float64" = b[j]
            t_6: "float64" = t_4 - t_5
            t_7: "float64" = t_6**2
            match: "float64" = t_3 + t_7
            t_8: "int64" = j + 1
            t_9: "float64" = table[i, t_8]
            skip: "float64" = t_9 + gap
            t_10: "float64" = -match
            t_11: "float64" = np.exp(t_10)
            t_12: "float64" = -skip
            t_13: "float64" = np.exp(t_12)
            t_14: "float64" = t_11 + t_13
            t_15: "float64" = np.log(t_14)
            t_16: "float64" = -t_15
            table[t_2, t_8] = t_16
    t_17: "float64" = table[-1, -1]
    return t_17


# ------------------------------ what s2s makes of it


def f_grad(a, b, gap):
    """The derivative of f (table_filled_from_its_neighbours.py, line 6) with respect to a and b
    and gap, for a: float64[:], b: float64[:], gap: float.
    """
    n = len(a)
    n_1 = len(b)
    table = np.zeros((n + 1, n_1 + 1))
    for i in range(n):
        for j in range(n_1):
            match = table[i, j] + (a[i] - b[j]) ** 2
            skip = table[i, j + 1] + gap
            table[i + 1, j + 1] = -np.log(np.exp(-match) + np.exp(-skip))
    table_bar = np.zeros_like(table)
    table_bar[-1, -1] = 1.0
    a_bar = np.zeros_like(a)
    b_bar = np.zeros_like(b)
    gap_bar = 0.0
    for i in range(n - 1, -1, -1):
        for j in range(n_1 - 1, -1, -1):
            t = a[i] - b[j]
            match = table[i, j] + t**2
            t_1 = np.exp(-match)
            skip = table[i, j + 1] + gap
            t_2 = np.exp(-skip)
            t_3 = table_bar[i + 1, j + 1]
            table_bar[i + 1, j + 1] = 0.0
            t_4 = t_3 / (t_1 + t_2)
            skip_bar = t_4 * t_2
            match_bar = t_4 * t_1
            gap_bar += skip_bar
            table_bar[i, j + 1] += skip_bar
            t_5 = 2 * match_bar * t
            b_bar[j] -= t_5
            a_bar[i] += t_5
            table_bar[i, j] += match_bar
    return a_bar, b_bar, gap_bar
