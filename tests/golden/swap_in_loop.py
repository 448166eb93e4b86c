"""Carries that swap are one parallel assignment, forwards and backwards."""


def f(x, y, n):
    for i in range(n):
        x, y = y, x + y
    return x * y


ARGS = (0.3, 0.4, 5)
WRT = (0, 1)
