"""Carries that swap are one parallel assignment, forwards and backwards."""


def f(x, y, n):
    for i in range(n):
        x, y = y, x + y
    return x * y


ARGS = (0.3, 0.4, 5)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def f_ssa(x: "float64", y: "float64", n: "int64"):
    for i in range(n):
        y_1: "float64" = x + y
        x = y
        y = y_1
    t: "float64" = x * y
    return t


# ------------------------------ what s2s makes of it


def f_grad(x, y, n):
    """The derivative of f (swap_in_loop.py, line 4) with respect to x and y, for x: float,
    y: float, n: int.
    """
    for i in range(n):
        x, y = y, x + y
    x_bar = y
    y_bar = x
    for i in range(n - 1, -1, -1):
        x_bar, y_bar = y_bar, x_bar + y_bar
    return x_bar, y_bar
