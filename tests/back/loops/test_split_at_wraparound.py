"""Loops whose indices go round run from one turn to the next: back/loops/split_at_wraparound.py."""

import itertools

import numpy as np
import pytest
from oracles import gradient

import s2s

RNG = np.random.default_rng(0)


def loops_of(transformed, *args):
    """The text of the loop form, and what it computes, run as Python."""
    text = transformed.lower(*args).loops
    namespace: dict = {}
    exec(text, namespace)
    return text, namespace[transformed.name](*args)


def ring(u, by):
    return np.sum(np.sin(u) * np.roll(u, by) + np.roll(u * u, -by))


def lattice(m, by, steps):
    for _ in range(steps):
        h = (
            np.roll(m, by, axis=0)
            + np.roll(m, -1, axis=0)
            + np.roll(m, 1, axis=1)
            + np.roll(m, -by, axis=1)
        )
        m = 0.5 * m + np.tanh(h)
    return np.sum(m**2)


def both_axes(m, by, k):
    return np.sum(np.roll(m, (by, 1), axis=(0, 1)) * m**2 + np.roll(m, k))


def by_hand(u, n, by):
    total = 0.0
    for i in range(len(u)):
        total += u[i] * u[(i + by) % len(u)] ** 2 + u[(i - 1) % len(u)] * u[i]
    return total


def longer_than_a_turn(u, n, by):
    total = 0.0
    for i in range(n):
        total += u[(i + by) % len(u)] ** 2 * i
    return total


def of_both(u, n, by):
    out = np.zeros((len(u), n + 1))
    for i in range(len(u)):
        for j in range(n):
            out[(i + 1) % len(u), j] = u[(i * 2 + j + by) % len(u)] + ((i + j) // len(u)) * u[i]
    return np.sum(out**3)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 0])
@pytest.mark.parametrize("by", [1, -1, 0, 3, 11, -20])
def test_rolls_of_a_vector(n, by):
    u = RNG.normal(size=n)
    text, value = loops_of(s2s.jit(ring), u, by)
    np.testing.assert_allclose(value, ring(u, by), atol=1e-12)
    np.testing.assert_allclose(
        loops_of(s2s.grad(ring), u, by)[1], gradient(ring, (u, by), 0), atol=1e-12
    )
    assert n == 1 or "while lo < " in text


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [lattice, both_axes])
@pytest.mark.parametrize("shape", [(4, 5), (2, 3), (1, 4), (5, 1), (3, 2), (0, 3), (3, 0)])
def test_rolls_of_a_matrix(f, shape):
    m = RNG.normal(size=shape)
    for by in (1, -2, 9):
        np.testing.assert_allclose(loops_of(s2s.jit(f), m, by, 2)[1], f(m, by, 2), atol=1e-12)
        np.testing.assert_allclose(
            loops_of(s2s.grad(f), m, by, 2)[1], gradient(f, (m, by, 2), 0), atol=1e-12
        )


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [by_hand, longer_than_a_turn, of_both])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_remainders_in_loops(f, n):
    u = RNG.normal(size=n)
    for trips, by in itertools.product((0, 1, 4, 13), (0, 1, -1, -9)):
        np.testing.assert_allclose(
            loops_of(s2s.jit(f), u, trips, by)[1], f(u, trips, by), atol=1e-12
        )
        np.testing.assert_allclose(
            loops_of(s2s.grad(f), u, trips, by)[1], gradient(f, (u, trips, by), 0), atol=1e-12
        )


def test_a_remainder_by_nothing_is_refused_as_ever():
    with pytest.raises(ZeroDivisionError):
        loops_of(s2s.jit(longer_than_a_turn), np.zeros(0), 3, 1)
    assert loops_of(s2s.jit(longer_than_a_turn), np.zeros(0), 0, 1)[1] == 0.0


def in_turns(u, n, by):
    total = 0.0
    for i in range(len(u)):
        total += u[i] * (4.0 if (i + by) % 2 == 1 else 2.0)
    return total


@pytest.mark.lengthy
def test_a_number_that_is_known_makes_no_pieces():
    u = RNG.normal(size=9)
    text, value = loops_of(s2s.jit(in_turns), u, 0, -3)
    np.testing.assert_allclose(value, in_turns(u, 0, -3))
    assert "while" not in text


def around_a_table(u, n, by):
    table = np.linspace(0.0, 1.0, 50)
    total = 0.0
    for i in range(n):
        total += table[(i + by) % 50] * u[0]
    return total + np.sum(np.roll(table, by) * np.roll(table, 1)) * u[0]


@pytest.mark.lengthy
def test_a_large_number_that_is_known_does():
    u = RNG.normal(size=1)
    for n, by in ((120, 7), (120, -70), (0, 1), (3, 49)):
        text, value = loops_of(s2s.jit(around_a_table), u, n, by)
        np.testing.assert_allclose(value, around_a_table(u, n, by))
        np.testing.assert_allclose(
            loops_of(s2s.grad(around_a_table), u, n, by)[1], gradient(around_a_table, (u, n, by), 0)
        )
    assert "while" in text


def test_no_remainder_is_left_in_the_innermost_loop():
    text, _ = loops_of(s2s.grad(lattice), RNG.normal(size=(4, 5)), 1, 2)
    inside = [line for line in text.splitlines() if "%" in line and "[" in line]
    assert inside == [] and "for j in range(lo, hi):" in text


def of_two(u):
    v = np.sin(u)
    return np.sum(np.roll(u, 1) * np.roll(v, 1) - np.roll(u, -1) * np.roll(v, -1))


def test_how_far_away_an_index_is_is_said_once():
    u = RNG.normal(size=7)
    text, value = loops_of(s2s.jit(of_two), u)
    assert text.count(" - lo\n") == 2
    np.testing.assert_allclose(value, of_two(u))


@pytest.mark.compile
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_compiled(n):
    m, u = RNG.normal(size=(n, n + 1)), RNG.normal(size=n)
    for f, args in (
        (lattice, (m, 3, 2)),
        (both_axes, (m, -2, 5)),
        (ring, (u, 2)),
        (of_both, (u, 7, -2)),
        (longer_than_a_turn, (u, 90, 1)),
    ):
        np.testing.assert_allclose(COMPILED[f](*args), s2s.grad(f)(*args), rtol=1e-11, atol=1e-11)


COMPILED = {
    f: s2s.jit(s2s.grad(f)) for f in (lattice, both_axes, ring, of_both, longer_than_a_turn)
}
