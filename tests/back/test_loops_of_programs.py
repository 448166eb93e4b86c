"""Loops that are run by Python give what the program gives, in type and number: programs with what
few others have.
"""

import numpy as np
import pytest

import s2s

NUMBERS = np.array([[-3, -5], [-2, -9], [-7, 4]])


def largest_integers(x):
    return np.max(x, axis=0), np.min(x, axis=0)


def largest_of_truths(x):
    return np.max(x > 0, axis=0), np.min(x > -3, axis=0)


def sums_of_truths(x):
    high, low = x > -4, x < -2
    return (high + low) * 1.5, (high * low) - 2.5, (np.ones(x.shape, dtype=bool) + high) * 0.5


def wider_than_a_word(x):
    return x * 2**70 + 2.0


def small_integers(k, n):
    y = np.zeros(n, dtype=np.int8)
    for i in range(n):
        y[i] = k + i
    return y


def leaves_two_loops(a, limit):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > limit:
                return a[i, j] * i
    return -1.0


def written_where_told(x, k):
    for _ in range(3):
        x = np.sin(x)
        x[k[0]] = 2.0
        x = x + x[k[1]]
    return x


def chosen(k, x):
    return np.choose(k, [x, 2.0, x * x])


def where_in_a_table(x, v):
    return np.searchsorted(x, v), np.interp(v, x, x * x)


def rows_of_numbers(x):
    return np.array([x, x * 2.0, x[::-1]])


def smallest_integers(x, k):
    return x + k


def down(x, n):
    if n == 0:
        return np.sum(x * x)
    for _ in range(n):
        x = np.sin(x * x)
    return down(x, n - 1)


PROGRAMS = [
    (largest_integers, (NUMBERS,)),
    (largest_of_truths, (NUMBERS,)),
    (sums_of_truths, (NUMBERS,)),
    (wider_than_a_word, (np.array([1.5, -2.0]),)),
    (small_integers, (3, 5)),
    (leaves_two_loops, (NUMBERS * 1.0, 3.5)),
    (leaves_two_loops, (NUMBERS * 1.0, 9.5)),
    (written_where_told, (np.arange(4.0), np.array([-1, 2]))),
    (chosen, (np.array([2, 0, 1]), np.array([0.5, 1.5, 2.5]))),
    (where_in_a_table, (np.arange(4.0), 2.5)),
    (rows_of_numbers, (np.array([0.5, 1.5]),)),
    (smallest_integers, (np.array([1, -2], dtype=np.int8), 3)),
    (s2s.grad(down), (np.array([0.9, 1.2]), 2)),
]


@pytest.mark.parametrize("f, args", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_loops_give_what_the_program_gives(f, args):
    def copies():
        return [x.copy() if isinstance(x, np.ndarray) else x for x in args]

    lowered, module = s2s.jit(f).lower(*args), {}
    exec(lowered.loops, module)
    found, expected = module[lowered.function.name](*copies()), f(*copies())
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-14)
