"""Kernels as npbench has them, in NumPy's words and in place: each written anew, against dual
numbers, or against differences where those cannot be run through it or NumPy adds up in another
order.
"""

import numpy as np
import pytest
from differences import check, check_compiled
from judge import judge

RNG = np.random.default_rng(8)
PROGRAMS, COMPILED = [], []


def kernel(*args, compiled=False, rounded=False):
    def record(f):
        PROGRAMS.append(pytest.param(f, args, rounded, id=f.__name__))
        if compiled:
            COMPILED.append(PROGRAMS[-1])
        return f

    return record


def loss(f, args):
    """`f`, as a function of a number."""
    weights = [np.sin(np.arange(1.0, np.size(a) + 1)).reshape(np.shape(a)) for a in args]

    def of_number(c):
        y = f(
            *[
                a + 0.1 * (c - 0.7) * w if np.asarray(a).dtype.kind == "f" else a
                for a, w in zip(args, weights)
            ]
        )
        return np.sum(np.sin(y))

    return of_number


def some(*shape):
    return RNG.random(shape) + 0.1


@kernel(some(5, 5), 2)
def alternating_directions(u, steps):
    n = u.shape[0]
    v, p, q = np.empty(u.shape), np.empty(u.shape), np.empty(u.shape)
    a, b, d, e = -0.6, 2.2, -0.4, 1.8
    for _ in range(1, steps + 1):
        v[0, 1:n - 1] = 1.0
        p[1:n - 1, 0] = 0.0
        q[1:n - 1, 0] = v[0, 1:n - 1]
        for j in range(1, n - 1):
            p[1:n - 1, j] = -a / (a * p[1:n - 1, j - 1] + b)
            q[1 : n - 1, j] = (
                -d * u[j, 0 : n - 2]
                + (1.0 + 2.0 * d) * u[j, 1 : n - 1]
                - d * u[j, 2:n]
                - a * q[1 : n - 1, j - 1]
            ) / (a * p[1 : n - 1, j - 1] + b)
        v[n - 1, 1:n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:n - 1] = p[1:n - 1, j] * v[j + 1, 1:n - 1] + q[1:n - 1, j]
        u[1:n - 1, 0] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:n - 1, j] = e * v[1:n - 1, j] * u[1:n - 1, j + 1] + q[1:n - 1, j]
    return np.sum(np.sin(u))


@kernel(some(6), compiled=True, rounded=True)
def durbin(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@kernel(0.25, some(4, 5))
def deriche(alpha, image):
    k = (
        (1.0 - np.exp(-alpha))
        * (1.0 - np.exp(-alpha))
        / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    )
    a1 = a5 = k
    a3 = a7 = k * np.exp(-alpha) * (alpha + 1.0)
    b1, b2 = 2.0 ** (-alpha), -np.exp(-2.0 * alpha)
    y1, y2 = np.empty_like(image), np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + b1 * y1[:, 0]
    for j in range(2, image.shape[1]):
        y1[:, j] = a1 * image[:, j] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * image[:, -1]
    for j in range(image.shape[1] - 3, -1, -1):
        y2[:, j] = a3 * image[:, j + 1] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = y1 + y2
    y1[0, :] = a5 * out[0, :]
    for i in range(1, image.shape[0]):
        y1[i, :] = a7 * out[i, :] + b1 * y1[i - 1, :]
    out[:] = y1 * y2
    return out


@kernel(some(4, 4), rounded=True)
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
    return path


@kernel(some(5, 3))
def gram_schmidt(a):
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@kernel(5, np.array([0, 3, 1, 2, 0]), 1.5)
def nussinov(n, bases, bonus):
    table = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if j - 1 >= 0 and i + 1 < n:
                paired = bonus * (1 if bases[i] + bases[j] == 3 else 0) if i < j - 1 else 0.0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + paired)
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@kernel(some(3, 4, 5), some(3, 4, 5), some(4, 4, 5), 0.15, compiled=True, rounded=True)
def vertical_advection(stage, u, w, rate):
    rows, columns, levels = stage.shape[0], stage.shape[1], stage.shape[2]
    c = np.ndarray((rows, columns, levels), dtype=stage.dtype)
    d = np.ndarray((rows, columns, levels), dtype=stage.dtype)
    for k in range(1):
        after = 0.25 * (w[1:, :, k + 1] + w[:-1, :, k + 1])
        c[:, :, k] = after * 0.5
        d[:, :, k] = (
            rate * u[:, :, k] + stage[:, :, k] - after * 0.5 * (u[:, :, k + 1] - u[:, :, k])
        )
        divided = 1.0 / (1.0 + rate - c[:, :, k])
        c[:, :, k] = c[:, :, k] * divided
        d[:, :, k] = d[:, :, k] * divided
    for k in range(1, levels):
        before = -0.25 * (w[1:, :, k] + w[:-1, :, k])
        divided = 1.0 / (1.0 + rate - before * 0.5 - c[:, :, k - 1] * before)
        c[:, :, k] = before * divided
        d[:, :, k] = (rate * u[:, :, k] + stage[:, :, k] - d[:, :, k - 1] * before) * divided
    last = np.ndarray((rows, columns))
    for k in range(levels - 1, levels - 2, -1):
        column = d[:, :, k]
        last[:] = column
        stage[:, :, k] = rate * (column - u[:, :, k])
    for k in range(levels - 2, -1, -1):
        column = d[:, :, k] - c[:, :, k] * last[:, :]
        last[:] = column
        stage[:, :, k] = rate * (column - u[:, :, k])
    return stage


@kernel(some(9), some(9), 4)
def azimuthal_means(data, radius, count):
    largest, found = radius.max(), np.zeros(count)
    for i in range(count):
        inside = np.logical_and(largest * i / count <= radius, radius < largest * (i + 1) / count)
        found[i] = data[inside].mean() if data[inside].size else 0.0
    return found


@kernel(some(9), np.array([0.3, 0.9, 0.1, 0.5, 0.45, 0.7, 0.8, 0.2, 1.1]), 4, rounded=True)
def azimuthal_means_by_histograms(data, radius, count):
    return np.histogram(radius, count, weights=data)[0] / np.maximum(
        np.histogram(radius, count)[0], 1
    )


@kernel(np.array([0, 2, 3, 6]), np.array([0, 2, 1, 0, 1, 3]), some(6), some(4))
def sparse_product(starts, columns, values, x):
    y = np.empty(starts.size - 1, values.dtype)
    for i in range(starts.size - 1):
        y[i] = values[starts[i]:starts[i + 1]] @ x[columns[starts[i]:starts[i + 1]]]
    return y


@pytest.mark.parametrize("f, args, rounded", PROGRAMS)
def test_kernels(f, args, rounded):
    if rounded:
        check(loss(f, args), exactly=1e-13)
    else:
        judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args, rounded", COMPILED)
def test_compiled_kernels(f, args, rounded):
    check_compiled(loss(f, args))
