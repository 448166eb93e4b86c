"""Functions and loops that are checkpointed: the same derivatives, from less memory, at the price that theory says."""

import numpy as np
import pytest
from judge import judge

import s2s

U = np.linspace(0.1, 1.0, 5)
A = np.array([[0.1, 0.2, 0.3], [0.4, 0.6, 0.7]])


# ------------------------------------------------------------------------------------------------------- loops


def logistic(x, r, n):
    for _ in s2s.checkpoint(range(n), snapshots=3):
        x = r * x * (1 - x)
    return x


def oscillator(x, v, drive, n):
    h = 0.05
    for i in s2s.checkpoint(range(n)):
        a = drive * np.cos(1.2 * i * h) + x - x**3 - 0.1 * v
        x, v = x + h * v, v + h * a
    return x * v


def stencil(u, k, n):
    u = u.copy()
    for _ in s2s.checkpoint(range(n), snapshots=2):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * u[i] * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def whole_arrays(u, k, n):
    for _ in s2s.checkpoint(range(n), memory=150):
        u = u + k * np.sin(np.roll(u, 1) - u)
    return np.sum(u * u)


def in_place_rows(a, k, n):
    a = a.copy()
    for _ in s2s.checkpoint(range(n), snapshots=2):
        a[0, :] += k * a[1] * a[0]
        a[1][a[1] > 0.5] *= 0.9
        a *= np.cos(a)
    return np.sum(a)


def two_buffers(u, k, n):
    v = np.zeros_like(u)
    for _ in s2s.checkpoint(range(n), snapshots=2):
        u, v = v, u
        for i in range(len(u)):
            u[i] = v[i] * np.sin(k * v[i]) + 0.1
    return np.sum(u)


def left_early(x, k, n):
    for i in s2s.checkpoint(range(n), snapshots=2):
        x = x * k
        if x > 50.0:
            break
        if i % 3 == 1:
            continue
        x = x + 0.1 * np.sin(x)
    return x


def returned_from(x, k, n):
    for _ in s2s.checkpoint(range(n), snapshots=2):
        x = x * np.cos(x + k) + 1
        if x > 1.7:
            return x * x
    return x


def backwards_by_three(x, k, n):
    for i in s2s.checkpoint(range(2 * n, 1, -3), snapshots=2):
        x = np.sin(x * k) + 0.1 * i
    return x


def in_each_other(x, k, n):
    s = 0.0
    for j in s2s.checkpoint(range(4), snapshots=2):
        for i in s2s.checkpoint(range(n), snapshots=2):
            x = np.sin(x * k) + 0.1 * i * j
        s = s + x * x
    return s


def inside_a_loop(x, k, n):
    s = 0.0
    for j in range(3):
        if j != 1:
            for i in s2s.checkpoint(range(n)):
                x = np.sin(x * k) + 0.1 * i * j
        s = s + x * x
    return s


def around_loops_of_many_kinds(x, k, n):
    for i in s2s.checkpoint(range(1, n), snapshots=2):
        if x > 0.5:
            y = x * k
            for _ in range(i):
                y = y * np.cos(y)
            x = y
        else:
            while x < 2.0:
                x = x * 1.5 + np.sin(k)
            x = x * 0.3
    return x


def over_an_array(x, w):
    for v in s2s.checkpoint(w, snapshots=2):
        x = np.tanh(x * v) + v
    return x


def enumerated(x, w):
    for j, v in s2s.checkpoint(enumerate(w), snapshots=2):
        x = np.sin(x + v) * x + 0.1 * j
    return x


def list_in_the_state(x, k, n):
    xs = [x]
    for _ in s2s.checkpoint(range(n), snapshots=2):
        xs.append(np.sin(xs[-1]) * k)
    return sum(xs)


def array_that_grows(u, k, n):
    for _ in s2s.checkpoint(range(n), snapshots=2):
        u = np.concatenate((u, np.sin(u[:1]) * k))
    return np.sum(u * u)


def integers_and_containers(x, k, n):
    m, pair, named = 1, (x, k), {"a": x}
    for _ in s2s.checkpoint(range(n), snapshots=2):
        m = (m * 5 + 3) % 17
        pair = (pair[0] * np.cos(pair[1]) + m, pair[1] + pair[0])
        named["a"] = named["a"] * np.sin(pair[0])
    return pair[0] + pair[1] + named["a"]


def bound_late(x, k, n):
    for i in s2s.checkpoint(range(n), snapshots=2):
        if i > 0:
            x = x + np.sum(w) * k  # noqa: F821
        w = np.sin(x) * np.ones(3)  # noqa: F841
    return x


def matrix_recurrence(w, k, n):
    v = np.ones(3)
    for _ in s2s.checkpoint(range(n), snapshots=3):
        v = np.tanh(w @ v * k)
    return np.sum(v)


LOOPS = [
    (logistic, 0.3, 3.2, 11), (logistic, 0.3, 3.2, 0), (logistic, 0.3, 3.2, 1), (oscillator, 0.5, 0.1, 0.3, 12),
    (stencil, U, 0.1, 7), (whole_arrays, U, 0.1, 9), (in_place_rows, A, 0.7, 5), (two_buffers, U, 0.7, 6),
    (left_early, 1.1, 1.4, 20), (left_early, 1.1, 1.4, 3), (returned_from, 0.3, 0.7, 9), (returned_from, 0.3, 0.1, 2),
    (backwards_by_three, 0.3, 0.7, 9), (in_each_other, 0.3, 0.7, 4), (inside_a_loop, 0.3, 0.7, 5),
    (around_loops_of_many_kinds, 0.3, 0.6, 6), (over_an_array, 0.3, U), (enumerated, 0.3, U), (list_in_the_state, 0.3, 0.7, 6),
    (array_that_grows, U, 0.7, 5), (integers_and_containers, 0.3, 0.7, 5), (bound_late, 0.3, 0.7, 5),
    (matrix_recurrence, np.full((3, 3), 0.3), 0.7, 6)]


@pytest.mark.parametrize("f, args", [(f, args) for f, *args in LOOPS], ids=lambda x: getattr(x, "__name__", ""))
def test_checkpointed_loops(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", [(f, args) for f, *args in LOOPS[3:] if f is not bound_late],
                         ids=lambda x: getattr(x, "__name__", ""))
def test_checkpointed_loops_compiled(f, args):
    judge(f, *args, compiled=True, second=f in (logistic, stencil, left_early))
