"""Second derivatives of native code, forward over reverse, against differences of gradients that
ran in plain Python.

Adjoints are fused, reordered and summed apart when they are compiled, and the tangents of adjoints
go through all of that once more, where gradients alone do not show what got lost.  Each function is
compiled once and runs with short axes, long ones, and every other element of larger arrays.
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s

STEP = 2e-4
PROGRAMS: dict = {}


def program(*shapes):
    """Record a function of arrays, with the shapes of their arguments for each run."""
    def record(f):
        PROGRAMS[f.__name__] = f, shapes
        return f
    return record


@program([(2, 3)], [(7, 40)], [(40, 7)])
def standardised(x):
    z = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 0.1)
    return np.sum(np.sin(z) * np.arange(x.shape[1])) + np.sum((x / np.linalg.norm(x, axis=0)) ** 3)


@program([(2, 3), (3, 3)], [(7, 20), (20, 20)])
def attention(x, w):
    s = x @ w @ x.T / np.sqrt(x.shape[1])
    s = np.where(np.tril(np.ones(s.shape)) > 0, s, -np.inf)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.sum((p @ x) ** 2)


@program([(3, 2), (2,)], [(40, 7), (7,)])
def normalised_with_running_state(x, gain):
    mean, total = np.zeros(x.shape[1]), 0.0
    for k in range(3):
        batch = x * (1 + 0.1 * k)
        mean = 0.9 * mean + 0.1 * batch.mean(axis=0)
        total += np.mean(np.tanh(gain * (batch - mean) / np.sqrt(batch.var(axis=0) + 0.1)))
    return total + np.sum(mean**2)


@program([(3, 3), (2, 3), (3,)], [(7, 7), (40, 7), (7,)])
def scan(w, xs, h):
    states = np.empty((len(xs), len(h)))
    for t in range(len(xs)):
        h = np.tanh(0.3 * (w @ h) + xs[t])
        states[t] = h
    share = np.exp(states.sum(axis=1))
    share /= share.sum()
    return np.sum((share @ states) ** 2)


@program([(3, 4)], [(9, 40)])
def stencil(u):
    u = u.copy()
    for _ in range(3):
        flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.1 * flow * (1 + u[1:-1, 1:-1] ** 2)
        u[0], u[:, -1] = u[1], 0.5 * u[:, -2]
    return np.sum(u**3)


@program([(3,), (2,)], [(7,), (40,)], [(40,), (7,)])
def gathers_and_scatters(x, w):
    source, target = np.arange(len(w)) % len(x), (3 * np.arange(len(w)) + 1) % len(x)
    x = np.exp(x) / np.exp(x).sum()
    for _ in range(3):
        y = np.zeros(len(x))
        np.add.at(y, target, w**2 * x[source])
        x = 0.85 * y / (1 + np.sum(w**2)) + 0.15 / len(x)
        x = x / x.sum()
    return np.sum(x * np.log(x))


@program([(2, 2), (2,)], [(3, 3), (3,)], [(12, 12), (12,)])
def solves(a, b):
    k = a @ a.T + len(b) * np.eye(len(b))
    x = np.linalg.solve(k, b)
    return x @ np.sin(b) + np.sum(np.log(np.diag(np.linalg.cholesky(k))))


@program([(2,), (2,)], [(3,), (3,)], [(12,), (12,)])
def transposes_written_into(a, b):
    outer = np.outer(a, b)
    gram = outer @ outer.T
    return np.einsum("ii", gram) + np.einsum("ij,ji->", gram, np.sin(outer))


@program([(3,), (2,)], [(7,), (12,)])
def shortest_soft_path(a, b):
    n, m = len(a), len(b)
    r = np.full((n + 1, m + 1), np.inf)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            z = -np.array([r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]])
            top = np.max(z)
            r[i, j] = (a[i - 1] - b[j - 1]) ** 2 - top - np.log(np.sum(np.exp(z - top)))
    return r[n, m]


@program([(3,), ()], [(40,), ()])
def steps_that_adapt(y, a):
    t, h = 0.0, 0.1
    while t < 1.0:
        h = min(h, 1.0 - t)
        k = a * np.sin(y) - y
        middle = y + h * (a * np.sin(y + 0.5 * h * k) - y - 0.5 * h * k)
        if np.max(np.abs(middle - y - h * k)) < 1e-2 or h < 1e-3:
            t, y, h = t + h, middle, min(0.3, 1.5 * h)
        else:
            h *= 0.5
    return np.sum(y**2)


@program([(2, 3)], [(7, 40)])
def balanced(c):
    k = np.exp(-c)
    n, m = k.shape
    u, v = np.ones(n), np.ones(m)
    for _ in range(8):
        u = 1 / n / (k @ v)
        v = 1 / m / (k.T @ u)
    plan = u[:, None] * k * v
    return np.sum(plan * c) + 0.1 * np.sum(plan * np.log(plan))


@program([(3, 2), (2, 2)], [(40, 2), (3, 2)])
def mixture(x, centres):
    for _ in range(2):
        p = -0.5 * np.sum((x[:, None] - centres[None]) ** 2, axis=-1)
        top = p.max(axis=1, keepdims=True)
        share = np.exp(p - top)
        share /= share.sum(axis=1, keepdims=True)
        centres = (share.T @ x) / share.sum(axis=0)[:, None]
    return np.sum(centres**2) + np.sum(top)


@program([(8,), ()], [(32,), ()])
def waves(u, g):
    psi = u + 0.2j * u**2
    turn = np.exp(-0.05j * (2 * np.pi * np.fft.fftfreq(len(u))) ** 2)
    for _ in range(3):
        psi = np.fft.ifft(turn * np.fft.fft(psi))
        real = psi.real
        psi = psi * np.exp(-0.1j * g * np.abs(psi) ** 2)
        psi = psi + 0.01 * real
    return np.sum(np.abs(psi[:3]) ** 4)


def every_other(x):
    """The same numbers, two apart in memory, which nobody may write."""
    if np.ndim(x) == 0:
        return x
    apart = np.zeros([2 * n for n in x.shape])[tuple(slice(None, None, 2) for _ in x.shape)]
    apart[...] = x
    apart.flags.writeable = False
    return apart


@pytest.mark.compile
@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_over_reverse(name):
    f, runs = PROGRAMS[name]
    argnums = tuple(range(len(runs[0])))
    compiled, slope = s2s.jit(s2s.hvp(f, argnums=argnums)), s2s.grad(f, argnums=argnums)
    rng = np.random.default_rng(0)
    for shapes in runs:
        args = [0.5 * rng.normal(size=s) if s else 0.7 for s in shapes]
        dots = [rng.normal(size=s) if s else 0.3 for s in shapes]
        moved = [
            slope(*(x + h * d for x, d in zip(args, dots)))
            for h in (STEP, -STEP, 2 * STEP, -2 * STEP)
        ]
        for found, apart, up, down, above, below in zip(
            compiled(*args, *dots), compiled(*map(every_other, args), *dots), *moved
        ):
            expected = (8 * (up - down) - (above - below)) / (12 * STEP)
            np.testing.assert_allclose(
                found, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)) + 1e-9
            )
            np.testing.assert_allclose(
                apart, found, rtol=1e-9, atol=1e-11 * np.max(np.abs(expected))
            )
