"""Programs of one lane each, which loop and branch as their numbers say: over many lanes each is
one kernel, and so is its gradient.
"""

import math

import numpy as np


def powers(x, n):
    """The program that NVIDIA Warp differentiates wrongly: it keeps no values of earlier trips."""
    y = x
    for k in range(n):
        y = y * y * x + x
    return y


def collatz(n, x):
    """As many trips as the lane's integer takes."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        x = np.sin(x) + 0.1 * x
        steps += 1
    return steps * x


def runge_kutta(y, v, h, steps):
    """Steps of a pendulum."""
    for _ in range(steps):
        k1, l1 = v, -np.sin(y)
        k2, l2 = v + 0.5 * h * l1, -np.sin(y + 0.5 * h * k1)
        k3, l3 = v + 0.5 * h * l2, -np.sin(y + 0.5 * h * k2)
        k4, l4 = v + h * l3, -np.sin(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        v = v + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    return y + v


def adaptive(y, rate, end):
    """Steps whose length follows from their error, which are taken again with `continue`."""
    t, h = 0.0, 0.1
    while t < end:
        if t + h > end:
            h = end - t
        big = y - h * rate * y * y
        half = y - 0.5 * h * rate * y * y
        small = half - 0.5 * h * rate * half * half
        if abs(small - big) > 1e-3:
            h = 0.5 * h
            continue
        t, y = t + h, small
        h = 1.2 * h
    return y


def predators(state, h, steps):
    """Steps in an array of the lane's own, in place."""
    x = state.copy()
    for _ in range(steps):
        a, b = x[0], x[1]
        x[0] = a + h * (a - a * b)
        x[1] = b + h * (a * b - b)
    return x[0] * x[1]


def until_rejected(x, seeds):
    """A loop that data end."""
    s = 0.0
    k = 0
    while seeds[k] > x * x:
        s = s + seeds[k] * x
        k = k + 1
        if k == len(seeds):
            break
    return s + x


def monte_carlo(x, seed, n):
    """A mean over random numbers, of a generator that is arithmetic on a counter."""
    total = 0.0
    state = seed
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        u = state / 2147483648
        total += math.exp(-x * u)
    return total / n


def rejection(x, seed, n):
    """The same with numbers drawn until they are in a disc."""
    state = seed
    inside = 0.0
    for _ in range(n):
        while True:
            state = (1103515245 * state + 12345) % 2147483648
            u = state / 2147483648
            state = (1103515245 * state + 12345) % 2147483648
            v = state / 2147483648
            if u * u + v * v < 1.0:
                break
        inside += math.sin(x * u) * v
    return inside / n


def escape(c, d):
    """A loop with two conditions, and an integer in the result."""
    x = y = 0.0
    k = 0
    while x * x + y * y < 4.0 and k < 8:
        x, y = x * x - y * y + c, 2 * x * y + d
        k += 1
    return k + x


def nested_loops(x, n):
    """Loops in loops, left early."""
    s = 0.0
    for i in range(n):
        t = x
        for j in range(i):
            t = t * x + j
            if t > 10.0:
                break
        s = s + t
    return s


def polynomial(x, n):
    """An array that the lane makes."""
    c = np.zeros(4)
    for i in range(4):
        c[i] = x + i
    for _ in range(n):
        for i in range(3):
            c[i] = c[i] * 0.5 + c[i + 1] * x
    return c[0] + c[3]


def bisection(a):
    """A branch in a loop of constant length."""
    lo, hi = 0.0, a + 1.0
    for _ in range(6):
        mid = 0.5 * (lo + hi)
        if mid * mid * mid < a:
            lo = mid
        else:
            hi = mid
    return 0.5 * (lo + hi)


def barrier(s0, z, mu, sigma):
    """A path that ends where it meets a barrier, over a row of the lane's own."""
    s = s0
    m = s0
    for k in range(len(z)):
        s = s * np.exp(mu + sigma * z[k])
        m = max(m, s)
        if s < 0.5:
            return s - 1.0
    return m - s


rng = np.random.default_rng(5)
X, P = rng.uniform(0.2, 1.2, size=3), rng.uniform(0.5, 9.0, size=3)
M, COUNTS = rng.normal(size=(3, 6)), np.array([1, 6, 7])

# the program, the axis of lanes of each argument, the arguments, and those with a derivative
LANES = [
    (powers, (0, None), (0.5 * X, 3), (0,)),
    (collatz, (0, 0), (COUNTS, X), (1,)),
    (runge_kutta, (0, 0, None, None), (X, X[::-1].copy(), 0.1, 4), (0, 1, 2)),
    (adaptive, (0, 0, None), (P, X, 1.0), (0, 1)),
    (predators, (0, None, None), (M[:, :2].copy(), 0.1, 4), (0, 1)),
    (until_rejected, (0, None), (X, np.array([0.9, 0.8, 0.3, 0.7])), (0, 1)),
    (monte_carlo, (0, 0, None), (X, COUNTS, 6), (0,)),
    (rejection, (0, 0, None), (X, COUNTS, 4), (0,)),
    (escape, (0, 0), (0.4 * X, 0.3 * X[::-1]), (0, 1)),
    (nested_loops, (0, None), (X + 0.5, 5), (0,)),
    (polynomial, (0, None), (X, 3), (0,)),
    (bisection, (0,), (P,), (0,)),
    (barrier, (0, 0, None, None), (X, M, 0.01, 0.3), (0, 1, 3)),
]
