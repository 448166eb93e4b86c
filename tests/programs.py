"""The programs that s2s is judged by: plain numerical Python, with arguments to call them on.

Nothing here knows of s2s.  `PROGRAMS` holds each function with example arguments, the arguments to
differentiate with respect to, and whether the compiled tests run it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Program:
    function: Callable
    args: tuple
    wrt: tuple[int, ...]  # positions of the arguments to differentiate
    compiled: bool  # one of the programs that must also run under jit

    @property
    def name(self) -> str:
        return self.function.__name__


PROGRAMS: list[Program] = []


def program(*args, wrt: tuple[int, ...] | None = None, compiled: bool = False):
    """Record the function below with these arguments; by default every float argument is
    differentiated.
    """
    def record(function):
        floats = tuple(k for k, x in enumerate(args) if np.asarray(x).dtype.kind == "f")
        PROGRAMS.append(Program(function, args, floats if wrt is None else wrt, compiled))
        return function
    return record


def wave(*shape: int, phase: float = 0.1) -> np.ndarray:
    """An array of distinct, harmless numbers."""
    return np.sin(1.7 * np.arange(np.prod(shape)) + phase).reshape(shape)


# -------------------------------------------------------------------------- the four of the gallery


@program(0.7, 1.3, compiled=True)
def straight_line(x, y):
    a = np.sin(x) * y
    return a + np.exp(-x)


@program(wave(3), 0.2, wave(5, 3), np.array([0.0, 1.0, 1.0, 0.0, 1.0]), compiled=True)
def logistic_loss(w, b, X, y):
    p = 1 / (1 + np.exp(-(X @ w + b)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


@program(wave(6), 0.21, 3, compiled=True)
def relax(u, k, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


@program(1.9, 0.8, compiled=True)
def settle(x, rate):
    n = 0
    while abs(x) > 1e-3:
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
        n += 1
    return x + n


# ----------------------------------------------------------------------- the others that issue asks


@program(wave(5, 5), wave(5, 5, phase=1.0), 3, compiled=True)
def gauss_seidel(u, f, sweeps):
    u = u.copy()
    n, m = u.shape
    for s in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return np.sum(u * u)


@program(wave(7), 0.1, 4, compiled=True)
def heat_equation(u, nu, steps):
    for t in range(steps):
        new = u.copy()
        new[1:-1] = u[1:-1] + nu * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = new
    return np.sum(np.sin(u))


@program(1.1, 0.9, 0.6, 0.4, 0.3, 0.5, 5, compiled=True)
def lotka_volterra(x, y, a, b, c, d, steps):
    h = 0.1

    def slope(x, y):
        return a * x - b * x * y, c * x * y - d * y

    for i in range(steps):
        k1x, k1y = slope(x, y)
        k2x, k2y = slope(x + h / 2 * k1x, y + h / 2 * k1y)
        k3x, k3y = slope(x + h / 2 * k2x, y + h / 2 * k2y)
        k4x, k4y = slope(x + h * k3x, y + h * k3y)
        x = x + h / 6 * (k1x + 2 * k2x + 2 * k3x + k4x)
        y = y + h / 6 * (k1y + 2 * k2y + 2 * k3y + k4y)
    return x * y


@program(2.7, 1.5, compiled=True)
def newton(a, x):
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x * x * x


@program(0.3, 2.0, 2.2, compiled=True)
def bisection(lo, hi, target):
    while hi - lo > 1e-2:
        mid = 0.5 * (lo + hi)
        if mid * mid > target:
            hi = mid
        else:
            lo = mid
    return 0.5 * (lo + hi) * target


@program(wave(5), compiled=True)
def triangular(x):
    total = 0.0
    n = len(x)
    for i in range(n):
        for j in range(i):
            total += np.sin(x[i] * x[j]) / (1.0 + i + j)
    return total


@program(wave(4), wave(5, phase=0.4), 0.7, compiled=True)
def soft_edit_distance(a, b, gap):
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        table[i, 0] = i * gap
    for j in range(1, m + 1):
        table[0, j] = j * gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            match = table[i - 1, j - 1] + (a[i - 1] - b[j - 1]) ** 2
            delete = table[i - 1, j] + gap
            insert = table[i, j - 1] + gap
            table[i, j] = -np.log(np.exp(-match) + np.exp(-delete) + np.exp(-insert))
    return table[n, m]


@program(wave(5), 0.8, compiled=True)
def horner(coefficients, x):
    y = 0.0
    for c in coefficients:
        y = y * x + c
    return y


@program(wave(3, 2), wave(2, 4, phase=0.5), compiled=True)
def matmul_loops(A, B):
    n, k = A.shape
    m = B.shape[1]
    C = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            for p in range(k):
                C[i, j] += A[i, p] * B[p, j]
    return np.sum(C * C * C)


@program(
    wave(3, 4),
    wave(4),
    wave(4, 2, phase=0.3),
    wave(2),
    wave(5, 3, phase=1.0),
    wave(5, 2, phase=2.0),
    compiled=True,
)
def perceptron(W1, b1, W2, b2, X, Y):
    hidden = np.tanh(X @ W1 + b1)
    output = hidden @ W2 + b2
    return np.mean((output - Y) ** 2)


@program(0.3, 0.4, 6, compiled=True)
def swap_in_loop(x, y, n):
    for i in range(n):
        x, y = y, x + y
    return x * y


@program(wave(6), 0.9, compiled=True)
def break_in_loop(x, limit):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
        if total > limit:
            break
    return np.sin(total)


@program(wave(6), compiled=True)
def continue_in_loop(x):
    total = 1.0
    for i in range(len(x)):
        if x[i] < 0.0:
            continue
        total = total * (1.0 + x[i])
    return total


@program(wave(6), 1.2, compiled=True)
def return_from_loop(x, limit):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i]
        if total > limit:
            return total * x[i]
    return -total


@program(wave(4), compiled=True)
def written_twice(x):
    a = np.zeros(3)
    a[0] = np.sin(x[0])
    y = a[0] * x[1]
    a[0] = x[2] * y
    a[1] = a[0] * a[0] + y
    return a[0] * a[1] * x[3] + np.sum(a)


# ------------------------------------------------------------------------------------------ our own


@program(wave(3, 3), 0.5)
def return_from_nest(x, limit):
    n, m = x.shape
    total = 1.0
    for i in range(n):
        for j in range(m):
            total = total + x[i, j] ** 2
            if total > 2.0 + limit:
                return total * x[i, j]
        total = total * 0.9
    return total


@program(0.9)
def while_with_break(x):
    n = 0
    y = x
    while True:
        y = np.cos(y * x)
        n += 1
        if n > 6 or y < 0.2:
            break
    return y


@program(1.2, 0.4)
def nested_functions(x, y):
    def square(t):
        return t * t

    def both(s, t):
        return square(s) + square(t), square(s * t)

    total, product = both(x, y)
    return np.log(total) * product


SCALE = 1.5


def squash(t):
    return np.tanh(SCALE * t)


@program(wave(4))
def call_and_global(x):
    total = 0.0
    for i in range(len(x)):
        total += squash(x[i]) * squash(x[-1 - i])
    return total


@program(wave(3, 4), wave(4), wave(3))
def broadcasting(A, row, column):
    B = A * row + column[:, None]
    return np.sum(np.exp(B) / (1.0 + row))


@program(wave(3, 4))
def softmax_rows(A):
    e = np.exp(A - np.max(A, axis=1, keepdims=True))
    p = e / np.sum(e, axis=1, keepdims=True)
    return np.sum(p * p * A)


@program(wave(5))
def log_sum_exp(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


@program(wave(6))
def masked_where(x):
    safe = np.where(x > 0.0, x, 1.0)
    return np.sum(np.where(x > 0.0, np.log(safe), -(x**2)))


@program(0.8, 5)
def integer_sum(x, n):
    count = 0
    total = 0.0
    for i in range(n):
        count += i
        total += x**2 * count
    return total / count


@program(wave(4))
def alias(x):
    y = x.copy()
    z = y
    z[1] = y[0] * y[2]
    y[2] += z[1]
    return np.sum(y * z)


@program(wave(2, 3), 3)
def write_through_view(x, n):
    a = x * 1.0
    for k in range(n):
        row = a[k % 2]
        row[0] = row[1] * row[2] + a[0, 0]
    return np.sum(a * a)


@program(wave(3, 3, phase=0.2), wave(4, 3), wave(4, phase=0.1))
def softmax_regression(W, X, y):
    scores = X @ W
    top = scores.max(axis=1)
    normaliser = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return np.mean(normaliser - scores[:, 1] * y)


@program(wave(7), wave(3, phase=0.5))
def convolution(signal, kernel):
    n = len(signal) - len(kernel) + 1
    out = np.zeros(n)
    for i in range(n):
        for j in range(len(kernel)):
            out[i] += signal[i + j] * kernel[j]
    return np.sum(np.tanh(out))


@program(wave(6))
def prefix_sums(x):
    s = x.copy()
    for i in range(1, len(s)):
        s[i] += s[i - 1]
    return np.sum(s * np.cos(s))


@program(0.2, 1.4, 0.7)
def simpson(a, b, k):
    n = 6
    h = (b - a) / n
    total = np.exp(-k * a) + np.exp(-k * b)
    for i in range(1, n):
        total += (4 if i % 2 == 1 else 2) * np.exp(-k * (a + i * h))
    return total * h / 3


@program(wave(6), 0.3, 0.5)
def kalman(z, q, r):
    x, p, loss = 0.0, 1.0, 0.0
    for k in range(len(z)):
        p = p + q
        gain = p / (p + r)
        innovation = z[k] - x
        loss += innovation**2 / (p + r) + np.log(p + r)
        x = x + gain * innovation
        p = (1 - gain) * p
    return loss


@program(wave(4, 8), wave(2, 8, phase=0.7), wave(3, 4, phase=0.3))
def lstm(W, U, xs):
    h = np.zeros(2)
    c = np.zeros(2)
    for t in range(xs.shape[0]):
        z = xs[t] @ W + h @ U
        i = 1.0 / (1.0 + np.exp(-z[0:2]))
        f = 1.0 / (1.0 + np.exp(-z[2:4]))
        o = 1.0 / (1.0 + np.exp(-z[4:6]))
        c = f * c + i * np.tanh(z[6:8])
        h = o * np.tanh(c)
    return np.sum(h * h)


@program(wave(3, 2), wave(3, phase=0.4))
def n_body_energy(q, m):
    energy = 0.0
    for i in range(len(m)):
        for j in range(i + 1, len(m)):
            d = q[i] - q[j]
            energy -= m[i] * m[j] / np.sqrt(np.sum(d * d) + 0.1)
    return energy


@program(0.4, 1.3)
def early_return(x, y):
    if x * y < 0.0:
        return x
    if x > 1.0:
        y = x * y
    elif y > 1.0:
        y = np.sin(y)
    else:
        return y**3
    return x * y + x


@program(0.9, 0.3)
def short_circuit(x, y):
    total = 0.0
    for k in range(4):
        if (k > 0 and x / k < 0.5) or y > 1.0:
            total += x * y
        elif not k == 2 and 0.0 < x <= 1.0:
            total += x - y
        y = y + 0.4
    return total


@program(wave(4), wave(4, phase=0.9))
def zip_and_enumerate(x, y):
    total = 0.0
    for k, (a, b) in enumerate(zip(x, y)):
        total += (k + 1) * a * b
    return total


@program(0.6)
def math_module(x):
    return math.exp(math.sin(x)) * math.sqrt(x) + math.pi * x


@program(wave(3), 0.4)
def closure_over_array(x, k):
    weights = np.array([1.0, 2.0, 3.0])

    def energy(t):
        return np.sum(weights * t * t)

    return energy(x) * energy(k * x)


@program(wave(8), 0.3)
def strided_slices(x, k):
    a = np.zeros(8)
    a[::2] = x[::2] * k
    a[1::2] = x[::-1][::2] + a[::2]
    a[2:5] *= k
    return np.sum(a * a * x)


@program(wave(4, 4))
def reductions(A):
    rows = A.sum(axis=0) * A.mean(axis=1)
    return rows.max() - A.min() + np.sum(A.T @ A) + np.prod(rows)


@program(wave(6), wave(6, phase=0.2))
def dynamic_time_warping(a, b):
    n = len(a)
    D = np.full((n + 1, n + 1), 1e6)
    D[0, 0] = 0.0
    for i in range(n):
        for j in range(n):
            cost = (a[i] - b[j]) ** 2
            D[i + 1, j + 1] = cost + min(D[i, j + 1], D[i + 1, j], D[i, j])
    return D[n, n]


@program(np.array([0.2, 0.3, 0.5]), wave(3, 3), np.array([0, 2, 1, 1, 0]))
def hidden_markov(start, logits, observed):
    rows = np.exp(logits)
    transition = rows / np.sum(rows, axis=1, keepdims=True)
    alpha = start * transition[:, observed[0]]
    total = 0.0
    for t in range(1, len(observed)):
        scale = np.sum(alpha)
        total += np.log(scale)
        alpha = (alpha / scale) @ transition * transition[:, observed[t]]
    return total + np.log(np.sum(alpha))


@program(0.7, 2.0)
def while_else_and_ternary(x, y):
    n = 0
    while n < 5:
        x = x * y if x < 3.0 else x / 3.0
        n += 1
    else:
        x = x + 1.0
    return x


@program(wave(3, 3), wave(3))
def power_iteration(A, v):
    S = A @ A.T
    for k in range(4):
        v = S @ v
        v = v / np.sqrt(v @ v)
    return v @ S @ v


@program(0.5, 0.8)
def several_results(x, y):
    a = x * y
    return a + np.sin(x), a * a, y


@program(wave(4), 0.5)
def array_result(x, k):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] = y[i] * k + np.tanh(y[i - 1])
    return y


MORE_RESULTS = {"several_results", "array_result"}  # those whose result is not one number
