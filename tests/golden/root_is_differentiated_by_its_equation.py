"""A root found by any solver: the derivative follows from the equation that it solves, not from the steps that found it."""

import s2s


def f(a, b):
    def newton(g, x):
        while abs(g(x)) > 1e-12:
            slope = (g(x + 1e-6) - g(x - 1e-6)) / 2e-6
            x = x - g(x) / slope
        return x

    x = s2s.custom_root(lambda x: x**3 + a * x - b, 1.0, newton)
    return x * x


ARGS = (1.5, 2.0)
WRT = (0, 1)


# ------------------------------ the same, as the compiler sees it


def newton(x: "float64", a: "float64", b: "float64"):
    while True:
        t: "float64" = x**3
        t_1: "float64" = a * x
        t_2: "float64" = t + t_1
        t_3: "float64" = t_2 - b
        t_4: "float64" = abs(t_3)
        t_5: "bool" = t_4 > 1e-12
        if not t_5:
            break
        t_6: "float64" = x + 1e-6
        t_7: "float64" = t_6**3
        t_8: "float64" = a * t_6
        t_9: "float64" = t_7 + t_8
        t_10: "float64" = t_9 - b
        t_11: "float64" = x - 1e-6
        t_12: "float64" = t_11**3
        t_13: "float64" = a * t_11
        t_14: "float64" = t_12 + t_13
        t_15: "float64" = t_14 - b
        t_16: "float64" = t_10 - t_15
        slope: "float64" = t_16 / 2e-6
        t_17: "float64" = x**3
        t_18: "float64" = a * x
        t_19: "float64" = t_17 + t_18
        t_20: "float64" = t_19 - b
        t_21: "float64" = t_20 / slope
        x: "float64" = x - t_21
    return x


def f_ssa(a: "float64", b: "float64"):
    t: "float64" = 1.0
    x: "float64" = newton(t, a, b)
    t_1: "float64" = x * x
    return t_1


# ------------------------------ what s2s makes of it


def newton(x, a, b):
    while abs(x**3 + a * x - b) > 1e-12:
        t = x + 1e-6
        t_1 = x - 1e-6
        slope = (t**3 + a * t - b - (t_1**3 + a * t_1 - b)) / 2e-6
        x = x - (x**3 + a * x - b) / slope
    return x


def f_grad(a, b):
    """The derivative of f (root_is_differentiated_by_its_equation.py, line 6) with respect to a
    and b, for a: float, b: float.
    """
    x = newton(1.0, a, b)
    x_bar = 2.0 * x
    b_bar = x_bar / (3 * x**2 + a)
    a_bar = -b_bar * x
    return a_bar, b_bar
