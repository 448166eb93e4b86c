"""Loops that add to elements where other trips add, compiled: they compute in strips, and add in order."""

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
        along = [np.ones_like(x) if isinstance(x, np.ndarray) else type(x)(k in wrt) for k, x in enumerate(xs)]
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
