"""What is decided in the sweep forward is decided alike in the sweep back, however the two are
compiled.
"""

import re

import numpy as np
import pytest

import s2s

RNG = np.random.default_rng(0)


def largest(x, w, c):
    s = 0.0
    for t in range(len(w)):
        x = x * w[t] + 0.1 * np.sin(x)
        a, b = x * x, c * x
        s += np.sum(np.sqrt(a)) + np.max(a + b) + np.min(b * x + a * x)
    return s


def chosen_by_the_user(x, w, c):
    s = 0.0
    for t in range(len(w)):
        x = x * w[t] + 0.1 * np.sin(x)
        h = x * x + c * x
        s += np.sum(np.where(h == np.max(h), x * np.exp(h), 0.0))
    return s


def clipped(x, w, c):
    s = 0.0
    for t in range(len(w)):
        x = x * w[t] + 0.1 * np.sin(x)
        h = x * x + c * x
        y = np.clip(h, -0.1, 0.3)
        s += np.sum(y * np.cumsum(y) * x)
    return s


def in_rows(x, w, c):
    s = 0.0
    for t in range(len(w)):
        x = x * w[t] + 0.1 * np.sin(x)
        h = x[:, None] * x + c
        s += np.sum(
            np.log(np.sum(np.exp(h - np.max(h, axis=1, keepdims=True)), axis=1))
            * np.max(h * x, axis=0)
        )
    return s


def integrated(x, w, c):
    h, t = 0.01, 0.0
    y = x[0]
    while t < 1.0:
        k = c[0] * y - y * y * y
        z = y + h * k
        e = 0.5 * h * abs(c[0] * z - z * z * z - k)
        if e < 1e-3:
            y, t, h = z, t + h, 1.3 * h
        else:
            h = 0.5 * h
    return y * np.sum(x * w[0])


@pytest.mark.compile
@pytest.mark.parametrize("f", [largest, chosen_by_the_user, clipped, in_rows, integrated])
def test_compiled_gradients_are_those_of_the_interpreter(f):
    gradient = s2s.grad(f, argnums=(0, 1, 2))
    compiled = s2s.jit(gradient)
    for _ in range(25):
        x, w, c = RNG.normal(size=37), RNG.normal(size=3), RNG.normal(size=37)
        for a, b in zip(compiled(x, w, c), gradient(x, w, c)):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10 * np.max(np.abs(b)))


def test_decisions_of_what_may_come_out_different_are_saved():
    x = RNG.normal(size=5)
    source = s2s.grad(integrated).lower(x, x, x).source
    assert "abs(" not in source[source.index("in reversed("):]
    # the array, and the largest of it
    assert "append((t_1, np.max(t_1), " in s2s.grad(largest).lower(x, x, x).source


def test_decisions_of_what_is_the_same_are_made_again():
    def stepped(x, w):
        for t in range(len(w)):
            if x - w[t] > 0.5:
                x = x * w[t]
            else:
                x = np.sin(x)
        return x

    source = s2s.grad(stepped).lower(0.3, RNG.normal(size=4)).source
    assert source.count(" > 0.5:") == 2 and source.count("_tape = ") == 1


def test_a_list_of_nothing_is_made_of_nothing():
    def f(x, n):
        empty, seen = [], set()
        s = sum(r for r in empty)
        for k in range(n):
            if seen:
                continue
            seen.add(k % 3)
            x = 0.5 * x
        return np.maximum(x, np.exp(-s) + 0.3771)

    assert s2s.grad(f)(4.0, 3) == 0.5


def test_what_is_compared_through_a_view_is_saved():
    """The largest of an array turned round is compared with that array: the same numbers, which one
    product may give otherwise.
    """
    def turned(x, w):
        s = 0.0
        for t in range(len(w)):
            x = x * w[t] + 0.1 * np.sin(x)
            h = x[:, None] * x + w[0] * x
            s += np.sum(np.max(h.T, axis=0)) * s + np.min(h[::-1])
        return s

    source = s2s.grad(turned).lower(RNG.normal(size=4), RNG.normal(size=3)).source
    assert re.search(r"append\(.*\bh\b", source), source
