"""The programs that the CUDA tests run in the simulator and compile to PTX, with arguments for
each.
"""

import numpy as np

import s2s

rng = np.random.default_rng(3)
N = 37


def fused(x, y):
    a = np.sin(x) * y
    return np.sum(a + np.exp(-x) * np.tanh(y))


def total(x):
    return np.sum(x * x)


def newton(a, tolerance):
    x = a + 1.0
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
    return x


def slow(a, rate):
    x = a
    while x > 1.0:
        x = x * rate
    return x


def pieces(x):
    if x > 0.5:
        y = x * x
    elif x > 0.0:
        y = math_free(x)
    else:
        y = -x
    return y


def math_free(x):
    s = 0.0
    for k in range(1, 6):
        s = s + x ** k / k
    return s


def smoothed(u, k):
    u = u.copy()
    for i in range(1, len(u) - 1):
        u[i] = u[i] + k * (u[i - 1] - 2.0 * u[i] + u[i + 1])
    return u


def heat(u, k, steps):
    for _ in range(steps):
        v = u.copy()
        v[1:-1] = u[1:-1] + k * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        u = v
    return u


def relaxed(v, tolerance):
    v = v.copy()
    while np.sum(v * v) > tolerance:
        for i in range(1, len(v)):
            v[i] = 0.5 * (v[i] + 0.1 * v[i - 1])
        v[0] = 0.5 * v[0]
    return v


def size_of_relaxed(v, tolerance):
    v = relaxed(v, tolerance)
    return np.sum(v * v)


def distances(a, b, gap):
    table = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, len(a) + 1):
        table[i, 0] = i * gap
    for j in range(1, len(b) + 1):
        table[0, j] = j * gap
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i, j] = min(
                table[i - 1, j] + gap,
                table[i, j - 1] + gap,
                table[i - 1, j - 1] + abs(a[i - 1] - b[j - 1]),
            )
    return table[len(a), len(b)]


def looked_up(table, places):
    s = 0.0
    for i in range(len(places)):
        s += table[places[i]] ** 2
    return s


def row_sums(m, w):
    return np.sum(m * w, axis=1)


def product(m, w):
    return np.tanh(m @ w)


def single(x):
    y = np.float32(2.0) * np.sqrt(x) + 1.5 * x + (1 - x**2) / 3 - np.sign(x)
    return np.where(y > 0, y, 0.1 * y) + np.maximum(x, 1) + np.logaddexp(x, 0) + np.clip(y, -1, 1)


def softmax(x, w):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum(e / np.sum(e, axis=1, keepdims=True) * w)


def layer_norm(x, scale, shift):
    centred = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(centred * centred, axis=1, keepdims=True)
    return np.sum(np.tanh(centred / np.sqrt(variance + 1e-5) * scale + shift))


def plane(u, k, steps):
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + k * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2]
                                             + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1])
        u = v
    return np.sum(u * u)


def linear_system(A, b):
    x = np.linalg.solve(A, b)
    return np.sum(x * x) + np.max(np.abs(x)) + np.argmin(x)


def powers(x, n):
    y = x
    for _ in range(n):
        y = y * y * x + x
    return y


X, Y, POSITIVE = rng.normal(size=N), rng.normal(size=N), rng.uniform(0.5, 9.0, size=N)
M = rng.normal(size=(5, 7))

def unpacked(start, h, steps):
    x, y = start  # of two numbers, or an error
    for _ in range(steps):
        x, y = x + h * y, y - h * np.sin(x)
    return x


def renamed(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        n = 1.0
        for stride in range(3):
            n = n * x[i] + stride
        y[i] = n
    return y


def read_at(x, places, w):
    return np.sum(np.tanh(x[places]) * w)


# name -> (the function to compile, its arguments)
EXAMPLES = {
    "fused elementwise gradient": (s2s.grad(fused, (0, 1)), (X, Y)),
    "value and gradient": (s2s.value_and_grad(fused, (0, 1)), (X, Y)),
    "sum reduction": (total, (X,)),
    "gradient of a sum": (s2s.grad(total), (X,)),
    "newton, lane by lane": (s2s.vmap(newton, (0, None)), (POSITIVE, 1e-12)),
    "gradient of newton, lane by lane": (
        s2s.vmap(s2s.value_and_grad(newton, (0, 1)), (0, None)),
        (POSITIVE, 1e-12),
    ),
    "tangent of newton, lane by lane": (
        s2s.vmap(s2s.jvp(newton), (0, None, 0, None)),
        (POSITIVE, 1e-12, X, 0.0),
    ),
    "tapes longer than expected": (
        s2s.vmap(s2s.grad(slow, (0, 1)), (0, None)),
        (POSITIVE**4, 0.97),
    ),
    "branches, lane by lane": (s2s.vmap(s2s.value_and_grad(pieces), 0), (X,)),
    "a loop in order": (smoothed, (X, 0.1)),
    "a loop of kernels": (heat, (X, 0.1, 4)),
    "vectors, lane by lane": (s2s.vmap(relaxed, (0, None)), (M, 0.01)),
    "gradient of vectors, lane by lane": (
        s2s.vmap(s2s.grad(size_of_relaxed), (0, None)),
        (M, 0.01),
    ),
    "a table": (s2s.value_and_grad(distances, (0, 1, 2)), (M[0], M[1], 0.4)),
    "gradient of elements looked up": (s2s.grad(looked_up), (X, rng.integers(0, N, size=50))),
    "gradient of rows looked up": (
        s2s.grad(read_at, (0, 2)),
        (M, np.array([4, 1, 1, 0, 4, 4]), M[0]),
    ),
    "names that kernels use": (renamed, (X,)),
    "sums along rows": (row_sums, (M, M[0])),
    "a matrix product": (product, (M, M[0])),
    "softmax": (s2s.grad(softmax), (M, M * M)),
    "layer norm": (s2s.grad(layer_norm, (0, 1, 2)), (M, M[0], M[1])),
    "heat in a plane": (s2s.grad(plane, (0, 1)), (M, 0.1, 2)),
    "linear system": (
        s2s.value_and_grad(linear_system, (0, 1)),
        (M[:, :5] + 4.0 * np.eye(5), M[0, :5]),
    ),
    "powers, lane by lane": (s2s.vmap(s2s.grad(powers), (0, None)), (0.1 * X, 3)),
    "steps, lane by lane": (
        s2s.vmap(s2s.value_and_grad(unpacked), (0, None, None)),
        (M[:, :2], 0.1, 3),
    ),
    "single precision": (single, (POSITIVE.astype(np.float32),)),
}
