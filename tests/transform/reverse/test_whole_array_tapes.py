"""Arrays that each trip makes anew are saved whole where their elements are read again and
again.
"""

import numpy as np
import pytest
from judge import judge

import s2s

RNG = np.random.default_rng(0)


def filtered(A, x, n):
    for _ in range(n):
        new = np.zeros(len(x))
        for j in range(len(x)):
            for i in range(len(x)):
                new[j] += x[i] * A[i, j]
        total = 0.0
        for j in range(len(x)):
            total += new[j] ** 2
        x = new / np.sqrt(total)
    return x[0] + 2 * x[1]


def multiplied(A, P, n):
    for _ in range(n):
        new = np.zeros(P.shape)
        for i in range(len(P)):
            for j in range(len(P)):
                for k in range(len(P)):
                    new[i, j] += P[i, k] * np.sin(A[k, j])
        if new[0, 0] > 2.0:
            new[0, 0] = 1.0
        P = new
    return np.sum(P * P)


def in_place(w, u, n):
    for t in range(2, n):
        s = 0.0
        for a in range(2):
            for b in range(2):
                s += u[t - a - 1] * w[b] * u[t - a - 1]
        u[t] = np.sin(s)
    return np.sum(u)


def of_one_element(A, x, n):
    total = 0.0
    for _ in range(n):
        x = A @ x
        total += x[0] ** 2
    return total


def stepped(w, u, n):
    for _ in range(n):
        v = np.zeros(len(u))
        for i in range(len(u)):
            left, right = u[i] - u[i - 1], u[(i + 1) % len(u)] - u[i]
            v[i] = u[i] + w[0] * left * right + w[1] * np.tanh(right)
        u = v
    return np.sum(u * u)


def stepped_inside(w, u, n):
    for _ in range(n):
        v = np.zeros(u.shape)
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = (
                    u[i, j]
                    + w[0] * u[i - 1, j] * u[i + 1, j]
                    - w[1] * u[i, j - 1] * u[i, j + 1] * u[i, j]
                )
        u = v
    return np.sum(u * u)


def few_of_many(w, u, n):
    total = 0.0
    for _ in range(n):
        v = np.zeros(len(u))
        for i in range(3):
            v[i] = u[i] * u[i + 1] * w[0] - np.sin(u[i]) * w[1]
            total += v[i]
        u = v
    return total


def of_all_pairs(x, v, n):
    x, v = x.copy(), v.copy()
    for _ in range(n):
        near = np.zeros(len(x))
        for i in range(len(x)):
            for j in range(len(x)):
                near[i] += np.exp(-(x[i, 0] - x[j, 0]) ** 2 - (x[i, 1] - x[j, 1]) ** 2)
        for i in range(len(x)):
            for j in range(len(x)):
                if i != j:
                    push = 0.1 / (near[i] * near[j] + 1.0)
                    v[i, 0] += push * (x[i, 0] - x[j, 0])
                    v[i, 1] += push * (x[i, 1] - x[j, 1])
        for i in range(len(x)):
            for k in range(2):
                x[i, k] += 0.1 * v[i, k]
    return np.sum(x * x) + np.sum(v)


def by_columns(x, v, n):
    x = x.copy()
    for _ in range(n):
        force = np.zeros(v.shape)
        for i in range(len(x)):
            for j in range(len(x)):
                force[i] += (x[j, 0] - x[i, 0]) * np.exp(-np.abs(x[i, 1] - x[j, 1]))
        x[:, 0] += 0.1 * force
        x[:, 1] += 0.1 * v
    return np.sum(x * x)


def as_a_whole(x, v, n):
    x, v = x.copy(), v.copy()
    for _ in range(n):
        force = np.zeros(v.shape)
        for i in range(len(x)):
            for j in range(len(x)):
                force[i] += np.sin(x[j] - x[i]) * x[i]
        v += 0.1 * force
        x[:] = x + 0.1 * v
    return np.sum(x * x)


def three_of_many(x, v, n):
    x = x.copy()
    for _ in range(n):
        total = 0.0
        for i in range(3):
            for j in range(3):
                total += np.sin(x[j] - x[i]) * x[i] * v[i]
        for i in range(3):
            x[i] += 0.1 * total * v[i]
    return np.sum(x * x)


def of_a_vector(x, m, n):
    for _ in range(n):
        z = x[:, None] - m
        p = np.exp(-z * z)
        m = np.sum(p * z, axis=0) / np.sum(p, axis=0) + m
    return np.sum(m * m)


SQUARE = RNG.normal(size=(3, 3))
CASES = {
    filtered: ((SQUARE, RNG.normal(size=3), 4), "x_tape = np.empty((t + 1, n_1))"),
    multiplied: ((SQUARE, RNG.normal(size=(3, 3)), 4), "P_tape = np.empty((t, n_1, n_2))"),
    stepped: ((np.array([0.4, 0.7]), RNG.normal(size=6), 4), "u_tape = np.empty((max(n, 0), n_1))"),
    stepped_inside: (
        (np.array([0.4, 0.7]), RNG.normal(size=(5, 4)), 3),
        "u_tape = np.empty((max(n, 0), n_1, n_2))",
    ),
    of_all_pairs: (
        (RNG.normal(size=(4, 2)), RNG.normal(size=(4, 2)), 3),
        "near_tape = np.empty((t, n_1))",
    ),
    by_columns: (
        (RNG.normal(size=(4, 2)), RNG.normal(size=4), 3),
        "x_tape = np.empty((max(n, 0), n_1, x.shape[1]))",
    ),
    as_a_whole: (
        (RNG.normal(size=4), RNG.normal(size=4), 3),
        "x_tape = np.empty((max(n, 0), n_2))",
    ),
    three_of_many: ((RNG.normal(size=9), RNG.normal(size=9), 3), "np.empty((t, 3, 3))"),
    of_a_vector: ((RNG.normal(size=7), RNG.normal(size=3), 3),
                  "saved.append((m, t, t_1))"),  # and no matrix
    few_of_many: ((np.array([0.4, 0.7]), RNG.normal(size=9), 3), "np.empty((t, 3))"),
    # u is long, and what a trip reads of it has come to stay
    in_place: ((np.array([0.4, 0.7]), RNG.normal(size=9), 9), "s_tape = np.empty(max(n - 2, 0))"),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("f", CASES)
def test_what_is_saved(f):
    args, tape = CASES[f]
    slopes = s2s.grad(f, argnums=(0, 1))
    source = slopes.lower(*args).source
    assert tape in source and ", n_1, n_1" not in source.replace("(n_1, n_1)", "")
    assert f not in (stepped, stepped_inside) or source.count("_tape = ") == 1
    # `_` that is read has a name that the user's loops have not
    assert f is not stepped or "    for j in range(n):\n        u_tape[j] = u\n" in source
    for a, b in zip(slopes(*args), differences(f, args)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def differences(f, args) -> list[np.ndarray]:
    """Central differences in the first two arguments."""
    found = []
    for k in range(2):
        slope = np.zeros_like(args[k])
        for place in np.ndindex(slope.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
                moved[k][place] += step
                ends.append(f(*moved))
            slope[place] = (ends[0] - ends[1]) / 2e-6
        found.append(slope)
    return found


def test_arrays_that_the_arms_of_a_branch_make():
    def f(A, x, n):
        for _ in range(n):
            new = np.zeros(len(x)) if x[0] > 0.5 else np.ones(len(x))
            for j in range(len(x)):
                for i in range(len(x)):
                    new[j] += x[i] * A[i, j]
            if new[0] > 1.0:
                x = new * 0.5
            else:
                x = np.sin(new)
        return x[0] + 2 * x[1]

    judge(f, np.cos(np.arange(9.0).reshape(3, 3)), np.array([0.3, 0.6, 0.1]), 4)
