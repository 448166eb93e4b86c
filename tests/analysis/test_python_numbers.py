"""Numbers of NumPy's type that a run leaves Python's: compiled code raises where Python does, and
nowhere else.
"""

import numpy as np
import pytest

import s2s


def mean_of_the_rest(x):
    return sum(x[5:]) / len(x[5:])


def floor_of_the_rest(x):
    return divmod(sum(x[5:]), len(x[5:]))[0] + sum(x[5:]) % len(x[5:])


def mean_of_squares(x):
    return sum([v * v for v in x[5:]]) / len(x[5:])


def inverse_of_a_total(x):
    total = 0.0
    for v in x[5:]:
        total += v
    return 1.0 / total


def power_of_the_rest(x):
    return sum(x[5:]) ** -1


def mean_in_a_while(x):
    total, n = 0.0, 0
    while n < len(x) - 5:
        total = total + x[n]
        n += 1
    return total / n


def one_of_two(x):
    scale = x[0] if len(x) > 5 else 0.0
    return 1.0 / scale


def smaller(x):
    return 1.0 / min(x[-1], 0.0)


def begins_with_pythons(x):
    total, last = 0.0, 0.0
    for v in x:
        last = 1.0 / total
        total = total + v
    return last


def in_rows(x):
    y = np.zeros(3)
    for i in range(3):
        total = 0.0
        for j in range(i + len(x) - 3):
            total = total + x[j]
        y[i] = total / i if len(x) < 6 else total
    return np.sum(y)


RAISING = [mean_of_the_rest, floor_of_the_rest, mean_of_squares, inverse_of_a_total,
           power_of_the_rest, mean_in_a_while, one_of_two, smaller, begins_with_pythons,
           in_rows]
SHORT, LONG = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0, 0.5, 3.0, 5.0, 7.0, -1.0])


def outcome(f, x):
    try:
        with np.errstate(all="ignore"):
            return f(x)
    except ZeroDivisionError:
        return "ZeroDivisionError"


@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_the_loops_ask(f):
    assert outcome(f, SHORT) == "ZeroDivisionError"
    assert (
        "raise ZeroDivisionError" in s2s.jit(f).lower(LONG).loops
        or "raise ArithmeticError" in s2s.jit(f).lower(LONG).loops
    )


@pytest.mark.compile
@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_compiled(f):
    fast = s2s.jit(f)
    assert outcome(fast, SHORT) == "ZeroDivisionError"
    wanted = outcome(f, LONG)
    assert (
        outcome(fast, LONG) == wanted
        if isinstance(wanted, str)
        else np.isclose(fast(LONG), wanted, rtol=1e-14)
    )


def zero_of_numpys(x):
    total = 0.0
    for v in x:
        total += v - v
    return 1.0 / total


def never_zero(x):
    return 1.0 / max(x[0], 1e-12)


def of_numpys(x):
    total = x[0]
    for v in x:
        total += v
    return 1.0 / (2.0 * total)


@pytest.mark.parametrize("f", [never_zero, of_numpys], ids=lambda f: f.__name__)
def test_nothing_is_asked(f):
    assert "raise" not in s2s.jit(f).lower(SHORT).loops


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")
def test_a_zero_of_numpys_is_divided_by():
    assert s2s.jit(zero_of_numpys)(SHORT) == np.inf == zero_of_numpys(SHORT)
