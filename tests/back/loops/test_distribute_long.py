"""Loops of very many statements, divided into several (back/loops/distribute_long.py): here from a
few statements on.
"""

import numpy as np
import pytest

import s2s
from s2s.back.loops import distribute_long

SIZES = [0, 1, 63, 64, 65, 300]


@pytest.fixture
def short(monkeypatch, tmp_path):
    monkeypatch.setattr(distribute_long, "MANY", 6)
    monkeypatch.setattr(distribute_long, "PIECE", 4)
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path))


def fitted(x, y, which, a, b):
    total, worst = 0.0, 0.0
    for i in range(len(x)):
        u = np.sin(a * x[i]) + b
        v = np.exp(-u * u) * x[i]
        w = u / (1.0 + v * v)
        high = np.logical_and(v > 0.3, w < 0.9)
        total += (w - y[i]) ** 2
        worst -= np.where(high, np.cos(w) * u, which[i] * v)
    return total + 0.1 * worst


def in_place(x, y, which, a, b):
    z = np.zeros(len(x))
    for i in range(len(x) - 1, -1, -1):
        z[i] = np.tanh(x[i] * a)
        t = z[i] * y[i] + b
        z[i] = t * t + z[i]
        u = np.sin(t) / (2.0 + z[i])
        z[i] += u * which[i]
    return np.sum(z * x)


def arrays(x, y, which, a, b):
    u = np.sin(a * x) + y
    v = u * u + b
    w = np.where(which > 1, v * np.exp(-u), u / (1.0 + v))
    return np.sum(w * np.cos(v) - w * u)


def swept(x, y, which, a, b):
    x = x.copy()
    for k in range(3):
        for i in range(len(x)):
            u = np.sin(x[i] * a) + y[i]
            v = u * u + b * which[i]
            x[i] = x[i] + 0.1 * np.tanh(v - u) * np.cos(u)
    return np.sum(x)


def arguments(n):
    k = np.arange(n)
    return np.sin(1.7 * k), np.cos(0.9 * k), k % 3, 0.7, 0.4


@pytest.mark.compile
@pytest.mark.parametrize("f", [fitted, in_place, arrays, swept])
def test_pieces_do_what_the_loop_does(f, short):
    plain = s2s.value_and_grad(f, argnums=(0, 1, 3, 4))
    compiled = s2s.jit(plain)
    for n in SIZES:
        expected, found = plain(*arguments(n)), compiled(*arguments(n))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-13)
        for a, b in zip(expected[1], found[1]):
            np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


@pytest.mark.compile
def test_threads_share_the_strips(short):
    plain = s2s.value_and_grad(fitted, argnums=(0, 1, 3, 4))
    compiled = s2s.jit(plain, parallel=True)
    given = arguments(100_000)
    assert "kept[" in compiled.lower(*given).loops and "in_parts" in compiled.lower(*given).loops
    expected, found = s2s.jit(plain, parallel=False)(*given), compiled(*given)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-11)
    for a, b in zip(expected[1], found[1]):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12)


def test_a_loop_is_divided_where_its_trips_are_independent(short):
    def pieces(f):
        return s2s.jit(s2s.value_and_grad(f, argnums=0)).lower(*arguments(3)).loops.count("kept[")

    def recurrence(x, y, which, a, b):
        u = 0.1
        for i in range(len(x)):
            v = np.sin(u + x[i])
            w = np.cos(v * u) + b
            u = v * w + np.exp(-v * v) * u
        return u

    def branch_inside(x, y, which, a, b):
        total = 0.0
        for i in range(len(x)):
            u = np.sin(a * x[i]) + b
            if u > 0.5:
                v = np.exp(-u * u) * x[i]
            else:
                v = u
            total += (v / (1.0 + u * u) - y[i]) ** 2
        return total

    assert pieces(fitted) > 0 and pieces(arrays) > 0
    assert pieces(recurrence) == 0 and pieces(branch_inside) == 0


def test_numbers_of_before_the_loop_are_read_where_they_are(short):
    def scaled(x, y, which, a, b):
        c, total = np.sin(a) * b, 0.0
        for i in range(len(x)):
            u = np.sin(a * x[i]) + c
            v = np.exp(-u * u) * x[i]
            w = u / (1.0 + v * v)
            total += (w - y[i]) ** 2 - np.cos(w) * u * c
        return total

    module, given = {}, arguments(65)
    exec(s2s.jit(scaled).lower(*given).loops, module)
    assert "kept[" in s2s.jit(scaled).lower(*given).loops
    np.testing.assert_allclose(module["scaled"](*given), scaled(*given), rtol=1e-12)
