"""Indices that are data are checked once, where they are used, and no others are
(back/arrays/index_checks.py).
"""

import numpy as np
import pytest

import s2s
from s2s.analysis.index_ranges import requirements
from s2s.pipeline import build, flatten_calls
from s2s.specialisation import type_of

from ..loops.test_scalar_replace import loops_of

X, E = np.linspace(-0.7, 0.9, 7), np.arange(20.0).reshape(4, 5) / 10


def of_rows(table, which):
    total = 0.0
    for t in range(len(which)):
        k = which[t]
        for j in range(table.shape[1]):
            total += table[k, j] * table[k, j] * (j + 1)
    return total


def of_columns(table, which):
    a = table[:, 0]
    for t in range(len(which)):
        a = a * table[:, which[t]] + np.sum(table[which[t]])
    return np.sum(a * a)


def sparse(data, columns, starts, x):
    total = 0.0
    for i in range(len(starts) - 1):
        row = 0.0
        for p in range(starts[i], starts[i + 1]):
            row += data[p] * x[columns[p]]
        total += np.sin(row)
    return total


def histogram(x, which, m):
    out = np.zeros(m)
    for i in range(len(x)):
        out[which[i]] += x[i] * x[i]
    return np.sum(out ** 3)


def tree(x, parent):
    out = np.zeros(len(x))
    for i in range(len(x)):
        p = parent[i]
        if p >= 0:
            out[i] = out[p] * x[i] + x[p]
        else:
            out[i] = x[i]
    return np.sum(out)


def interpolated(x, grid, values):
    total = 0.0
    for i in range(len(x)):
        k = 0
        while k < len(grid) - 2 and grid[k + 1] < x[i]:
            k += 1
        w = (x[i] - grid[k]) / (grid[k + 1] - grid[k])
        total += (1 - w) * values[k] + w * values[k + 1]
    return total


def permuted(x, places):
    y = x.copy()
    for i in range(len(places)):
        y[places[i]] = y[places[i]] * y[i] + 1.0
    return np.sum(np.sin(y))


def diagonal(table, which):
    total = 0.0
    for t in range(len(which)):
        total += table[which[t], which[t]] ** 2
    return total


def one_row(table, k, m):
    total = 1.0
    for j in range(m):
        total += table[k, j]
    return total


def ends(x, k):
    return x[-1] * x[-2] + x[k] * x[-k]


def lines(f, *args) -> list[str]:
    return s2s.jit(f).lower(*args).loops.splitlines()


def indented(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_a_check_stands_before_the_loops_that_do_not_change_the_index():
    text = lines(of_rows, E, np.array([0, 3, -4]))
    (check,) = (line for line in text if "place_in(" in line and "def " not in line)
    (inner,) = (line for line in text if "for j in" in line)
    assert indented(check) == indented(inner)
    assert text.index(check) < text.index(inner)


def test_what_the_program_asks_is_asked_first():
    text = lines(tree, X, np.array([-1, 0, 0, 1, 2, -9, 3]))
    guard = next(
        line
        for line in text
        if line.lstrip().startswith("if ") and " 0" in line and "k" not in line
    )
    checks = [line for line in text if "place_in(" in line and "def " not in line]
    assert checks and all(indented(check) > indented(guard) for check in checks)


def test_an_index_is_checked_once_for_an_axis():
    text = "\n".join(lines(diagonal, E, np.array([0, 3])))
    assert text.count("place_in(") == 3  # its definition, and one for each axis


@pytest.mark.parametrize(
    "f, args",
    [
        (of_rows, (E, np.array([1]))),
        (histogram, (X, np.zeros(7, int), 3)),
        (ends, (X, 3)),
        (sparse, (X, np.zeros(7, int), np.array([0, 7]), X)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_no_other_index_is_asked(f, args):
    """What decides about Numba's boundscheck: whether there are requirements, all of them asked at
    the call.
    """
    found = requirements(flatten_calls(build(f, [type_of(x, "x") for x in args])))
    assert found is not None


def beyond(x, n):
    total = 0.0
    for i in range(n):
        total += x[i] * x[i + 1]
    return total


def behind(x, n):
    total = 0.0
    for i in range(2, len(x)):
        total += x[i - 2] * x[i - 3]
    return total


def last(x, n):
    total = 0.0
    for i in range(len(x)):
        if i < n:
            total += x[i] * x[i + 1]
    return total


@pytest.mark.parametrize("f", [beyond, behind, last])
def test_an_index_that_leaves_the_array_is_checked(f):
    """x[-1] is the last element, and what is not read raises nothing: the loop form does as Python
    does.
    """
    loops, _ = loops_of(s2s.jit(f), X, 3)
    for x, n in ((X, 3), (X, 6), (X, 7), (X[:2], 1), (X[:3], 2), (X[:0], 0)):
        expected = outcome(f, (x, n))
        found = outcome(loops, (x, n))
        if isinstance(expected, tuple):
            assert found[0] is expected[0] is IndexError
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_one_index_too_far_is_asked_at_each_use():
    text = "\n".join(lines(last, X, 3))
    assert "place_in(i + 1" in text and "stays_inside" not in text


def outcome(f, args):
    try:
        return s2s.tree.leaves(f(*args))
    except Exception as error:
        return type(error), str(error).splitlines()[0]


VARIANTS = [
    (of_rows, (0,), [(E, w) for w in ([0, 3, -4], [0, 4], [-5], [])]),
    (of_columns, (0,), [(E, w) for w in ([0, 3, -1], [0, 4], [-5], [])]),
    (
        sparse,
        (0, 3),
        [
            (X[:6], np.array(c), np.array(s), X)
            for c, s in (
                ([0, 3, 1, 1, 6, 2], [0, 2, 2, 6]),
                ([0, 3, -1, 1, -7, 2], [0, 6]),
                ([0, 3, 1, 1, 7, 2], [0, 6]),
                ([0] * 6, [0, 7]),
            )
        ],
    ),
    (
        histogram,
        (0,),
        [(X, w, 3) for w in ([0, 1, 2, 2, 1, 0, -1], [0, 1, 2, 3, 1, 0, 0], [0, -4, 2, 2, 1, 0, 0])]
        + [
            (X, np.array([0, 1, 2, 2, 1, 0, 1], "uint8"), 3),
            (X, np.array([0, 1, 2, -3, 1, 0, 1], "int32"), 3),
        ],
    ),
    (tree, (0,), [(X, p) for p in ([-1, 0, 0, 1, 2, -(10**9), 3], [-1, 0, 0, 1, 2, 10**9, 3])]),
    (interpolated, (0, 2), [(abs(X), np.linspace(0, 1, 6), v) for v in (X[:6], X[:3])]),
    (permuted, (0,), [(X, p) for p in ([3, 1, 1, 0, -1], [3, -8], [7])]),
    (diagonal, (0,), [(E, w) for w in ([0, 3, -1, 2], [4], [-5])]),
    (one_row, (0,), [(E, 2, 3), (E, 77, 0), (E, 77, 1), (E, 2, 9)]),
    (ends, (0,), [(X, 2), (X, 0), (X, 7), (X[:2], 1)]),
]


@pytest.mark.compile
@pytest.mark.parametrize("f, wrt, variants", VARIANTS, ids=lambda x: getattr(x, "__name__", ""))
def test_compiled_code_does_what_python_does(f, wrt, variants):
    gradient = s2s.value_and_grad(f, argnums=wrt)
    native = s2s.jit(gradient)
    for args in variants:
        args = [np.array(x, int) if isinstance(x, list) else x for x in args]
        found, expected = outcome(native, args), outcome(gradient, args)
        if isinstance(expected, tuple):
            assert found == expected
        else:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
