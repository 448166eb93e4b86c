"""Lengths that a function cannot do without are numbers in its loops, and are asked of its
arguments.
"""

import numpy as np
import pytest

import s2s
from s2s import passes


def walk(A, ys):
    x = np.zeros(3)
    total = 0.0
    for t in range(len(ys)):
        x = A @ x + ys[t]
        total += np.sum(x * x)
    return total


def shifted(x, w):
    return np.sum(x[1:] * np.ones(4)) + np.sum(x * w)


def in_a_branch(x, c):
    if c > 0.0:
        return np.sum(x * np.ones(3))
    return np.sum(x)


def in_a_while(x):
    p = np.ones(3)
    while np.sum(p) < 50.0:
        p = p + x * p
    return p[0]


A, YS = 0.1 * np.arange(9.0).reshape(3, 3), np.arange(12.0).reshape(4, 3)


def loops(t, *args):
    return s2s.jit(t).lower(*args).loops


def run(text, *args):
    names = {}
    exec(text, names)
    return names[
        [line for line in text.splitlines() if line.startswith("def ")][-1][4:].partition("(")[0]
    ](*args)


def test_what_a_loop_needs_is_a_number():
    gradient = s2s.grad(walk, argnums=(0, 1))
    text = loops(gradient, A, YS)
    assert text.count("needs_length(") == 4  # with its definition
    assert all(
        f"needs_length({place}, 3)" in text for place in ("A.shape[0]", "A.shape[1]", "ys.shape[1]")
    )
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    assert "range(3)" in text and "@" not in code and "same_length" not in text
    for found, expected in zip(run(text, A, YS), gradient(A, YS)):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_one_array_that_a_loop_carries_is_as_long_in_each_trip():
    def last(A, ys):
        x = np.zeros(3)
        for t in range(len(ys)):
            x = A @ x + ys[t]
        return np.sum(x * x)

    text = loops(last, A, YS)
    assert "needs_length(A.shape[1], 3)" in text and "@" not in text
    np.testing.assert_allclose(run(text, A, YS), last(A, YS), rtol=1e-14)


def test_part_of_an_array_does_not_say_how_long_it_is():
    """It may be one element, which goes with any number."""
    assert "needs_length" not in loops(shifted, np.ones(5), np.ones(5))


def test_branches_need_nothing():
    assert "needs_length" not in loops(in_a_branch, np.ones(3), 1.0)


def test_while_loops_need_what_their_trips_do():
    text = loops(in_a_while, np.ones(3))
    assert "needs_length(x.shape[0], 3)" in text
    assert run(text, np.ones(3)) == in_a_while(np.ones(3))


def test_long_lengths_are_asked_for_where_they_were():
    assert "needs_length" not in loops(lambda x: np.sum(x * np.zeros(40)), np.ones(40))


@pytest.mark.compile
def test_other_lengths_raise_or_run_as_before():
    fast = s2s.jit(s2s.value_and_grad(walk))
    for args in ((A, YS), (A.T, YS[:, ::-1]), (np.ones((5, 5)), np.ones((0, 7)))):
        for found, expected in zip(fast(*args), s2s.value_and_grad(walk)(*args)):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
            assert np.shape(found) == np.shape(expected)
    for args in ((np.ones((5, 5)), YS), (A, np.ones((4, 2)))):
        with pytest.raises(ValueError):
            fast(*args)


def sorted_in_place(a, c):
    a = a + np.zeros(5)
    if c > 0.0:
        a[1:] += a[:1]
    a.sort()
    return a[2] if c > 0.0 else 0.4


def test_what_a_loop_asks_first_stands_before_it():
    """The length of a result of branches was a number in the loop that read it first, which a loop
    after it read, too.
    """
    gradient = s2s.value_and_grad(sorted_in_place)
    a = np.array([0.3, -0.2, 0.9, 0.1, 0.5])
    with passes.checked():
        text = loops(gradient, a, 1.0)
    for c in (1.0, -1.0):
        for found, expected in zip(run(text, a.copy(), c), gradient(a, c)):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
