"""Loops that add to elements where other trips add, compiled: they compute in strips, and add in
order.
"""

import numpy as np
import pytest

import s2s

SIZES = [0, 1, 7, 255, 256, 257, 1000]


def both_ends(x):
    total = 0.0
    for i in range(len(x)):
        total += np.tanh(1.5 * x[i]) * np.tanh(x[-1 - i])
    return total


def chain(x):
    energy = 0.0
    for i in range(1, len(x) - 1):
        stretch = np.exp(x[i + 1] - x[i]) - x[i - 1]
        energy = energy + stretch * stretch
    return energy


def picked(x, y, indices):
    total = 0.0
    for i in range(len(indices)):
        total += np.sin(x[indices[i]] * y[i]) * y[indices[i]]
    return total


def counted_down(x, k):
    total = 0.0
    for i in range(len(x) - 1, 0, -1):
        total += np.exp(-k * x[i]) * np.sin(x[len(x) - i])
    return total


def wave(n, phase=0.0):
    return np.sin(1.7 * np.arange(n) + phase)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", [
    (both_ends, lambda n: (wave(n),)),
    (chain, lambda n: (wave(n),)),
    (picked, lambda n: (wave(n), wave(n, 0.3), (np.arange(n) * 7) % max(n, 1) - n // 2)),
    (counted_down, lambda n: (wave(n), 0.7)),
], ids=lambda x: getattr(x, "__name__", ""))
def test_strips_add_what_the_loop_adds(f, args):
    wrt = tuple(k for k, x in enumerate(args(3)) if np.asarray(x).dtype.kind == "f")
    plain, compiled = s2s.grad(f, argnums=wrt), s2s.jit(s2s.grad(f, argnums=wrt))
    second = s2s.jvp(plain), s2s.jit(s2s.jvp(plain))
    for n in SIZES:
        xs = args(n)
        along = [
            np.ones_like(x) if isinstance(x, np.ndarray) else type(x)(k in wrt)
            for k, x in enumerate(xs)
        ]
        for a, b in zip(plain(*xs), compiled(*xs)):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        for as_, bs in zip(second[0](*xs, *along), second[1](*xs, *along)):
            for a, b in zip(as_, bs):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.compile
def test_an_index_out_of_range_is_still_refused():
    compiled = s2s.jit(s2s.grad(picked))
    indices = np.arange(600)
    with pytest.raises(IndexError):
        compiled(wave(599), wave(600), indices)


def test_what_is_compiled_computes_apart_from_adding():
    text = s2s.grad(both_ends).lower(wave(10)).loops
    assert "for i in range((n + 255) // 256):" in text
    assert text.count("np.tanh") == 2


@pytest.mark.parametrize("f", [
    lambda x: sum(x[i] * x[-1 - i] for i in range(len(x))),  # nothing that is dear to compute
    lambda x: np.sum(np.exp(x)),  # no element is added to twice
], ids=["products", "no element twice"])
def test_other_loops_stay_in_one_piece(f):
    assert "256" not in s2s.grad(f).lower(wave(10)).loops


def columns(points):
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    return np.sum(np.exp(-x * x) * np.sin(y) + np.tanh(z))


def edges(x, a, b):
    out = np.zeros(len(x))
    for e in range(len(a)):
        pull = np.exp(-(x[a[e]] - x[b[e]]) ** 2)
        out[a[e]] += pull
        out[b[e]] -= 2 * pull
    return np.sum(out * out * x)


def twice_picked(points, indices):
    out = np.zeros(len(indices))
    for i in range(len(indices)):
        k = indices[indices[i]]
        out[i] = np.log1p(points[k, 1] ** 2) * points[i, k % 2]
    return np.sum(out ** 2)


def overwritten(x, indices):
    y = x * 1.0
    for i in range(len(indices)):
        y[i] = np.sin(x[indices[i]])
        y[i] = y[i] * 2 + np.cos(x[indices[i]])
    return np.sum(y ** 2)


def largest(points, j):
    found = 0.0
    for i in range(len(points)):
        found = max(found, np.exp(points[i, j]) * np.cos(points[i, 0]))
    return found


@pytest.mark.compile
@pytest.mark.parametrize("f, args", [
    (columns, lambda n: (wave(3 * n).reshape(n, 3),)),
    (edges, lambda n: (wave(n), (np.arange(n) * 7) % max(n, 1) - n // 2, np.arange(n)[::-1])),
    (twice_picked, lambda n: (wave(3 * n).reshape(n, 3), (np.arange(n) * 5) % max(n, 1))),
    (overwritten, lambda n: (wave(n), np.arange(n) // 2)),
    (largest, lambda n: (wave(3 * n).reshape(n, 3), -1)),
], ids=lambda x: getattr(x, "__name__", ""))
def test_strips_read_and_write_what_the_loop_does(f, args):
    plain = s2s.value_and_grad(f)
    compiled = s2s.jit(plain)
    for n in (0, 1, 255, 256, 257, 600):
        for a, b in zip(plain(*args(n)), compiled(*args(n))):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_what_is_picked_is_read_before_it_is_computed_with():
    text = s2s.value_and_grad(columns).lower(wave(9).reshape(3, 3)).loops.splitlines()
    places = [k for k, line in enumerate(text) if "for j in" in line]
    reads, computes = (
        [k for k, line in enumerate(text) if part in line] for part in ("points[", "np.tanh")
    )
    assert (
        places[0]
        < min(reads)
        <= max(reads)
        < places[1]
        < min(computes)
        <= max(computes)
        < places[2]
    )


def test_what_several_statements_pick_is_read_once():
    def f(x, y, a, b):
        r = np.exp(-(x[a, 0] - y[b, 0]) ** 2 - (x[a, 1] - y[b, 1]) ** 2)
        return np.sum(r * np.sin(x[a, 0] * y[b, 1]) + np.tanh(x[a, 1] * y[b, 0]) / r)

    args = wave(12).reshape(6, 2), wave(10).reshape(5, 2), np.arange(700) % 6, np.arange(700) % 5
    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    text = gradient.lower(*args).loops
    first = text.split("range((t + 255) // 256)")[1].split("for j")[1]
    assert [first.count(part) for part in ("= x[", "= y[")] == [2, 2], text
    (_, slopes), expected = (
        gradient(*args),
        [
            central(lambda v: f(v, *args[1:]), args[0]),
            central(lambda v: f(args[0], v, *args[2:]), args[1]),
        ],
    )
    for a, b in zip(slopes, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def central(f, x, h=1e-5):
    """Central differences."""
    found = np.empty_like(x)
    for k in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[k] = h
        found[k] = (f(x + step) - f(x - step)) / (2 * h)
    return found


def test_strips_are_shared_among_threads():
    def f(x, indices):
        v = x[indices]
        return np.exp(-v * v)

    text = s2s.jit(f, parallel=True).lower(wave(9), np.zeros(1_000_000, int)).loops
    assert "in_parts(f_part" in text and "// 256" in text
