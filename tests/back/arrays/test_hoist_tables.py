"""What inner loops compute of elements of arrays that stay as they are is computed once, before the
outer loop.
"""

import math
import re

import numpy as np
import pytest

import s2s

X, W = np.array([0.3, -0.8, 1.2, 0.1, 2.0]), np.array([[0.5, 1.5, 2.5], [0.7, 0.2, 1.1]])


def of_elements(x, w):
    n, m = w.shape
    total = 0.0
    for i in range(len(x)):
        for k in range(n):
            s = np.log(w[k, 0])
            for j in range(m):
                s = s + np.exp(-w[k, j] ** 2 / 2.0) * x[i]
            total += s * s
    return total


def of_rows(x, w):
    total = 0.0
    for i in range(len(x)):
        for k in range(len(w)):
            total += x[i] * np.sum(np.log(w[k])) + np.sum(np.sqrt(w[k]) * x[i])
    return total


def until_it_is_small(x, w):
    y = x[0]
    while abs(y) > 0.01:
        for k in range(len(w)):
            y = 0.2 * y * np.cos(w[k, 1])
    return y


def with_numbers_from_outside(x, w):
    a, total = np.float64(x[0]) * 2.0, 0.0
    for i in range(len(x)):
        for k in range(len(w)):
            total += np.tanh(a * w[k, 1] + 0.5) * x[i]
    return total


def loops_of(f, *args) -> str:
    """The loops of `f` from that over all of x on."""
    text = s2s.jit(f).lower(*args).loops
    text = text[text.rindex("\ndef "):]
    starts = [
        text.index(start)
        for start in ("for i in range(len(x)", "while ", "for i in range(2)")
        if start in text
    ]
    return text[min(starts):]


def run(f, *args):
    """What the loops of `f` give, as Python."""
    names: dict = {}
    text = s2s.jit(f).lower(*args).loops
    exec(text, names)
    with np.errstate(all="ignore"):
        found = names[re.findall(r"^def (\w+)", text, re.M)[-1]](*args)
    return found


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, leave",
    [
        (of_elements, "exp"),
        (of_rows, "log"),
        (until_it_is_small, "cos"),
        (with_numbers_from_outside, "tanh"),
    ],
)
def test_it_leaves_the_loops(f, leave):
    slopes = s2s.value_and_grad(f, argnums=(0, 1))
    for derived in (f, slopes):
        assert f"np.{leave}(" in s2s.jit(derived).lower(
            X, W
        ).loops and f"np.{leave}(" not in loops_of(derived, X, W)
    for dtype in (np.float64, np.float32):
        x, w = X.astype(dtype), W.astype(dtype)
        with np.errstate(all="ignore"):
            value, (x_bar, w_bar) = slopes(x, w)
        for found, expected in zip(run(slopes, x, w), (value, x_bar, w_bar), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-12)
            assert np.asarray(found).dtype == np.asarray(expected).dtype


def in_a_branch(x, w):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            for k in range(len(w)):
                total += np.log(w[k, 0]) * x[i]
    return total


def left_early(x, w):
    total = 0.0
    for i in range(len(x)):
        for k in range(len(w)):
            total += np.log(w[k, 0]) * x[i]
            if total > 1.0:
                break
    return total


def of_what_changes(x, w):
    w = w.copy()
    total = 0.0
    for i in range(len(x)):
        for k in range(len(w)):
            total += np.log(w[k, 0]) * x[i]
        w[0, 0] += 1.0
    return total


def of_as_many_as_there_were(x, w):
    total = 0.0
    for i in range(len(x)):
        for k in range(i % 2 + 1):
            total += np.log(w[k, 0]) * x[i]
    return total


def from_behind(x, w):
    total = 0.0
    for i in range(len(x)):
        for k in range(1, len(w) + 1):
            total += np.log(w[-k, 0]) * x[i]
    return total


def of_math(x, w):
    total = 0.0
    for i in range(len(x)):
        for k in range(len(w)):
            total += math.log(w[k, 0]) * x[i]
    return total


def twice(x, w):
    total = 0.0
    for i in range(2):
        for k in range(len(w)):
            total += np.log(w[k, 0]) * x[i]
    return total


@pytest.mark.parametrize(
    "f", [left_early, of_what_changes, of_as_many_as_there_were, from_behind, of_math, twice]
)
def test_it_stays(f):
    assert "log(" in loops_of(f, X, W)
    np.testing.assert_allclose(run(f, X, W), f(X, W), rtol=1e-13)


def test_it_leaves_the_inner_loops_of_a_branch_alone():
    """The branch may be there because the logarithms are infinite."""
    text = loops_of(in_a_branch, X, W)
    assert "log(" in text[text.index(" if "):]


def beyond(x, w, n):
    total = 0.0
    for i in range(len(x)):
        for k in range(n):
            total += np.log(w[k, 0]) * x[i]
    return total


def test_an_index_out_of_range_is_one():
    for n in (3, 7):
        with pytest.raises(IndexError):
            run(beyond, X, W, n)
    np.testing.assert_allclose(run(beyond, X, W, 2), np.log(W[:, 0]).sum() * X.sum())
    assert run(beyond, X, W, -1) == 0.0


def test_what_no_trip_reads_is_as_if_it_were_not_computed():
    slopes = s2s.grad(beyond, argnums=(0, 1))
    for found in run(slopes, X[:0], 0.0 * W, 2):
        assert not np.any(found)


@pytest.mark.compile
def test_compiled():
    for n in (2, 1, 0):
        np.testing.assert_allclose(
            s2s.jit(s2s.grad(beyond, argnums=1))(X, W, n), s2s.grad(beyond, argnums=1)(X, W, n)
        )
    with pytest.raises(IndexError):
        s2s.jit(s2s.grad(beyond))(X, W, 3)
    assert s2s.jit(beyond)(X[:0], W, 7) == 0.0  # no trip comes to it
    np.testing.assert_allclose(
        s2s.jit(s2s.vmap(s2s.grad(of_elements), in_axes=(0, None)))(np.stack([X, 2 * X]), W),
        [s2s.grad(of_elements)(X, W), s2s.grad(of_elements)(2 * X, W)],
    )
