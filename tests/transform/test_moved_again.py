"""What only moves numbers about is done again by the reverse sweep; what they came from is saved,
which takes no more room.
"""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.3, 0.9, -0.4, 1.2, 0.7])
W = np.cos(np.arange(35.0)).reshape(7, 5)


def limited(u, c):
    for _ in range(4):
        left = u - np.roll(u, 1)
        right = np.roll(u, -1) - u
        slope = np.where(left * right > 0.0, 2.0 * left * right / (left + right + 1e-30), 0.0)
        flux = c * (u + 0.5 * (1.0 - c) * slope)
        u = u - (flux - np.roll(flux, 1))
    return np.sum(u**3)


def gated(h, w):
    for k in range(3):
        both = np.concatenate([np.array([0.1 * k, 0.5]), h])
        g = np.tanh(both @ w)
        h = (1.0 - g) * h + g * g
    return np.sum(h * h)


def stacked(x, c):
    for _ in range(3):
        pairs = np.stack([x, c * x], axis=1)
        x = np.sin(pairs[:, 0] * pairs[:, 1]) + np.append(x[1:], c)
    return np.sum(x)


def triangular(x, c):
    for _ in range(3):
        a = np.tril(np.outer(x, np.tile(x[:1], 5)) + np.repeat(x[:1], 5))
        x = np.tanh(a * a @ x) + c
    return np.sum(x * x)


PROGRAMS = [(limited, 0.4), (gated, W), (stacked, 0.8), (triangular, 0.3)]


@pytest.mark.lengthy
@pytest.mark.parametrize("program, c", PROGRAMS, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_right(program, c, compiled):
    judge(program, X, c, wrt=(0, 1), compiled=compiled)


@pytest.mark.parametrize(
    "program, c, tapes",
    [(limited, 0.4, ["u"]), (gated, W, ["h", "g"]), (stacked, 0.8, ["x"])],
    ids=["limited", "gated", "stacked"],
)
def test_what_they_came_from_is_saved(program, c, tapes):
    source = s2s.grad(program, argnums=(0, 1)).lower(X, c).source
    assert [
        line.split("_tape")[0].strip() for line in source.splitlines() if "_tape = " in line
    ] == tapes


def joined(x, h, w):
    c = np.concatenate([x, h], axis=1)
    d = np.concatenate([x, h], axis=1)
    return np.sum(np.tanh(c @ w) * np.cos(d @ w)) + np.sum(c * d)


def test_arrays_put_end_to_end_have_a_length():
    """A product of them has no axis that might have been spread, and a part of them begins and ends
    where it does.
    """
    x, h, w = np.ones((3, 2)), np.full((3, 5), 0.3), W
    lowered = s2s.grad(joined, argnums=(0, 1, 2)).lower(x, h, w)
    assert "sum_to_shape" not in lowered.source and "0 if" not in lowered.loops
    judge(joined, x, h, w, wrt=(0, 1, 2))


def test_parts_of_what_is_end_to_end():
    def f(x, y):
        c = np.concatenate([x, y])
        return np.sum(np.sin(c[len(x):])) + np.sum(c[: len(x)] ** 2)

    loops = s2s.jit(s2s.grad(f, argnums=(0, 1))).lower(X, W[0]).loops
    assert "slice_bound" not in loops and "max(" not in loops
    judge(f, X, W[0], wrt=(0, 1))


def edged(u, c):
    for _ in range(5):
        p = np.concatenate([u[:1], u, u[-1:]])
        u = u + c * (p[2:] - 2 * p[1:-1] * p[:-2])
    return np.sum(u**2)


def listed(u, c):
    rows = []
    for k in range(4):
        rows.append(np.append(u * k, c))
    table = np.array(rows)
    return np.sum((table @ table.T) ** 2)


def test_a_state_with_its_edges_has_a_tape_as_long():
    u = np.sin(np.arange(12.0))
    lowered = s2s.jit(s2s.grad(edged, argnums=(0, 1))).lower(u, 0.3)
    assert (
        "p_tape = np.empty((5, n + 2))" in lowered.loops
        and "slice_bound" not in lowered.loops
        and "min(" not in lowered.loops
    )
    assert "rows = np.empty((4, n + 1))" in s2s.jit(listed).lower(u, 0.3).loops


@pytest.mark.lengthy
@pytest.mark.parametrize("program", [edged, listed], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [12, 8, 7, 2, 1])
def test_edges_of_any_length(program, n):
    judge(program, np.sin(np.arange(float(n))), 0.3, wrt=(0, 1))


@pytest.mark.compile
def test_edges_of_any_length_compiled():
    gradients = [
        (s2s.jit(s2s.grad(f, argnums=(0, 1))), s2s.grad(f, argnums=(0, 1))) for f in (edged, listed)
    ]
    for n in (12, 3, 1, 0):
        for compiled, interpreted in gradients:
            for found, wanted in zip(
                compiled(np.sin(np.arange(float(n))), 0.3),
                interpreted(np.sin(np.arange(float(n))), 0.3),
            ):
                np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)
