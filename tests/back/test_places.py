"""Indices that are data: each is checked once where it is known, and what reads there shares the
loop that computes it.
"""

import numpy as np
import pytest

import s2s
from s2s.analysis.index_ranges import requirements
from s2s.pipeline import build, flatten_calls
from s2s.specialisation import type_of

RNG = np.random.default_rng(0)
TABLE, POINTS, WHERE = RNG.normal(size=(7, 9)), 6 * RNG.random(20), RNG.integers(-7, 7, 20)


def loops(f, *args, wrt=(0,)):
    return s2s.jit(s2s.value_and_grad(f, argnums=wrt), parallel=False).lower(*args).loops


def interpolated(table, x):
    k = np.floor(x).astype(int)
    t = x - k
    return np.sum((table[k, k] * (1 - t) + table[k + 1, k + 1] * t) ** 2)


def of_rows(table, rows):
    d = table[rows] - table[rows[::-1]]
    r = np.sum(d**2, axis=1)
    return np.sum(np.where(r < 9, r**2, 0.0))


def learns(table, rows, x):
    table = table.copy()
    total = 0.0
    for k, step in zip(rows, x):
        total += table[k] @ table[k] * step
        table[k] += 0.1 * step * table[k]
    return total + np.sum(table)


def counted(x, rows):
    found = np.zeros(7)
    np.add.at(found, np.floor(x).astype(int), x)
    np.add.at(found, rows, x * x)
    return np.sum(found**2)


def test_what_is_looked_up_shares_the_loop_that_computes_where():
    text = loops(interpolated, TABLE, POINTS, wrt=(0, 1))
    assert text.count("for i in range") == 1
    assert text.count("np.empty") == 1  # the gradient


def test_a_row_is_looked_up_once_for_all_its_elements():
    text = loops(of_rows, TABLE, WHERE)
    inner = [
        line
        for line in text.splitlines()
        if line.startswith(" " * 12) and "place_in" in line and "def" not in line
    ]
    assert not inner


def test_loops_that_only_add_to_one_array_are_one():
    text = loops(of_rows, TABLE, WHERE)
    assert text.count("table_bar[") == 2 and text.count("for i in range") == 1


@pytest.mark.lengthy
def test_data_in_one_index_has_no_other_index_checked():
    flat = flatten_calls(
        build(
            learns,
            [type_of(x, name) for x, name in ((TABLE, "table"), (WHERE, "rows"), (POINTS, "x"))],
        )
    )
    assert requirements(flat) is not None


def test_exp_is_not_looked_up_beside():
    def f(table, x):
        k = np.floor(np.exp(x)).astype(int) % 7
        return np.sum(table[k, k])

    assert loops(f, TABLE, POINTS).count("for i in range") > 1


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args, wrt",
    [
        (interpolated, (TABLE, POINTS), (0, 1)),
        (of_rows, (TABLE, WHERE), (0,)),
        (learns, (TABLE, WHERE, POINTS), (0, 2)),
        (counted, (POINTS, WHERE), (0,)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_native_code_finds_what_python_finds(f, args, wrt):
    derivative = s2s.value_and_grad(f, argnums=wrt)
    native = s2s.jit(derivative)
    for part in (1, 2, 0):
        given = [x[part:] if x.ndim == 1 else x for x in args]
        (value, bars), (expected, expected_bars) = native(*given), derivative(*given)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for bar, other in zip(bars, expected_bars):
            np.testing.assert_allclose(bar, other, rtol=1e-12, atol=1e-13)
    if f is not counted:
        for off in (9, -17):
            beside = [
                x + off if x is WHERE or f is interpolated and x is POINTS else x for x in args
            ]
            for run in (f, derivative, native):
                with pytest.raises(IndexError):
                    run(*beside)
