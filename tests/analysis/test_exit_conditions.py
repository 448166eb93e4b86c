"""Loops that are left early: the sweep back knows which trip left them, and saves nothing to decide
that again.
"""

import numpy as np
import pytest
from judge import judge
from programs import return_from_loop

import s2s

X = np.array([0.3, 0.8, 0.5, 0.9, 0.4, 0.7])


def middle_of_three(x, a, b):
    total = 0.5
    for i in range(len(x)):
        total = total * x[i] + 0.4
        if total > a:
            total = total * np.sin(x[i])
            break
        total = total + x[i] * x[i]
        if total > b:
            total = np.exp(total) * x[i]
            break
        total = np.sqrt(total)
        if x[i] > 0.85:
            return total * total * x[i]
        total = total * 1.1
    return total * 2.0


def continue_and_break(x, a, b):
    total = 1.0
    for i in range(len(x)):
        if x[i] < a:
            total = total * x[i]
            continue
        total = np.sin(total) + x[i]
        if total > b:
            total = total * total
            break
        total = total * x[i]
    return total


def while_with_two_ends(x, a, b):
    k, y = 0, x[0]
    while y < 3.0:
        y = y * (1.0 + x[k])
        k = k + 1
        if y > a:
            return y * y
        if k == len(x):
            y = np.cos(y)
            break
        y = y + b * 0.01
    return y * 3.0


def endless(x, a, b):
    y, n = a, 0
    while True:
        step = np.sin(y) - x[n % len(x)] * 0.1
        y = y - 0.5 * step
        n += 1
        if abs(step) < 0.05:
            return y * step
        if n > 9:
            break
    return y


def goes_on_in_the_first_side(x, a, b):
    y = 1.0
    for i in range(len(x)):
        y = y * x[i] + a * 0.1
        if y < b:
            y = y + np.sin(x[i])
        else:
            y = y * y * x[i]
            break
    else:
        y = y * 7.0
    return y


def triple_nest(x, a, b):
    total = 1.0
    for i in range(3):
        for j in range(len(x)):
            for k in range(j):
                total = total + x[j] * x[k] * 0.1
                if total > b:
                    return total * x[j] * total
            total = total * (1.0 + 0.01 * x[j])
        total = np.sqrt(total)
    return total


def inner_break_only(x, a, b):
    total = 1.0
    for i in range(4):
        for j in range(len(x)):
            total = total * (0.8 + x[j] * 0.3)
            if total > a:
                total = total * 0.3 * x[i]
                break
            total = total + 0.1 * x[j]
        total = np.sin(total)
    return total


def both_levels_break(x, a, b):
    total = 1.0
    for i in range(4):
        for j in range(len(x)):
            total = total * (0.8 + x[j] * 0.3)
            if total > a:
                total = total * 0.3
                break
        if total < b:
            total = total * total * x[i]
            break
        total = np.sin(total) * 1.5
    return total


def reads_an_array_on_leaving(x, a, b):
    u = x * 1.0
    for k in range(5):
        u = u * 0.9 + 0.1 * np.roll(u, 1)
        if np.sum(u * u) < a:
            return np.sum(np.sin(u) * x)
        u = u * u
    return np.sum(u)


def writes_before_it_leaves(x, a, b):
    u = x.copy()
    for k in range(5):
        for i in range(1, len(u)):
            u[i] = u[i] * u[i - 1] + 0.2
            if u[i] > a:
                u[0] = u[i] * u[i]
                return np.sum(u * x)
            u[i - 1] = u[i] * 0.5
    return np.sum(u)


def loop_where_it_leaves(x, a, b):
    y = 1.0
    for i in range(len(x)):
        y = y + x[i]
        if y > b:
            for j in range(i):
                y = y * (0.5 + x[j])
                if y > a:
                    break
            return y * np.sin(y)
    return y


def backwards_in_steps(x, a, b):
    y = a
    for i in range(len(x) - 1, -1, -2):
        y = y * x[i] + 0.3
        if y > b:
            return y * x[i] * i
        y = np.cos(y)
    return y


def no_trip(x, a, b):
    y = a
    for i in range(0, len(x) - 6):
        y = y * x[i]
        if y > b:
            return y * y
    return y * x[0]


def asked_twice(x, a, b):
    y = 1.0
    for i in range(len(x)):
        y = y * (1.0 + x[i])
        late = y > b
        if late:
            y = y * y
        z = np.sin(y) if late else y * x[i]
        y = y + z
        if late:
            break
    return y


def either(x, a, b):
    y = 1.0
    for i in range(len(x)):
        y = y * (1.0 + x[i])
        if y > b or x[i] > 0.85:
            return np.log(y) * x[i]
        if not (y < 50.0 and x[i] < a):
            y = y * 0.5
    return y


def behind_a_condition(x, a, b):
    y = 1.0
    for i in range(len(x)):
        if x[i] > 0.45:
            y = y * (1.0 + x[i])
            w = np.sin(y)
            if w < a:
                y = w * y
                break
            y = y + w
        y = y * 0.9
    return y


def caught(x, a, b):
    y = 1.0
    for i in range(len(x)):
        try:
            y = y * x[i] + 0.4
            if y > b:
                raise ValueError("late")
            y = y * 1.5
        except ValueError:
            y = y * y * x[i]
            break
    return y


def returns_in_both(x, a, b):
    y = 0.0
    for i in range(len(x)):
        y = y + x[i]
        if y > b:
            if x[i] > a:
                return y * y
            else:
                return np.sin(y) * x[i]
        y = y * 0.95
    return y


def newton(x, a, b):
    z = 1.0 + a
    for k in range(30):
        step = (z * z * z - x[0] - b) / (3.0 * z * z)
        z = z - step
        if abs(step) < 1e-9:
            break
    return z * x[1]


def nest_in_while(x, a, b):
    y, n = 0.5, 0
    while n < 3:
        for i in range(len(x)):
            y = y + x[i] * y * 0.3
            if y > a:
                break
        else:
            y = np.sin(y)
            n += 1
            continue
        y = y * 0.3 * x[n]
        n += 1
        if y < 0.05:
            return y * y * 100.0
    return y


PROGRAMS = [
    middle_of_three,
    continue_and_break,
    while_with_two_ends,
    endless,
    goes_on_in_the_first_side,
    triple_nest,
    inner_break_only,
    both_levels_break,
    reads_an_array_on_leaving,
    writes_before_it_leaves,
    loop_where_it_leaves,
    backwards_in_steps,
    no_trip,
    asked_twice,
    either,
    behind_a_condition,
    caught,
    returns_in_both,
    newton,
    nest_in_while,
]
ENDS = [(0.7, 1.1), (1.3, 0.6), (9.0, 2.1)]


@pytest.mark.lengthy
@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives_of_loops_that_are_left(f, ends):
    judge(f, X, *ends)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f", [middle_of_three, triple_nest, nest_in_while], ids=lambda f: f.__name__
)
def test_they_compile(f):
    judge(f, X, 1.3, 2.1, compiled=True)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f", [middle_of_three, triple_nest, nest_in_while, either], ids=lambda f: f.__name__
)
def test_each_lane_leaves_by_itself(f):
    lanes = X * np.linspace(0.5, 1.5, 7)[:, None]
    found = s2s.vmap(s2s.grad(f), in_axes=(0, None, None))(lanes, 1.3, 2.1)
    np.testing.assert_allclose(found, [s2s.grad(f)(x, 1.3, 2.1) for x in lanes], rtol=1e-13)


def test_what_decides_whether_to_leave_is_not_saved():
    lowered = s2s.grad(return_from_loop).lower(X, 1.2)
    assert lowered.memory == 0
    assert "tape" not in lowered.source
    assert "if i == trips - 1 and done:" in lowered.source


def test_single_precision_stays_single():
    def f(x, limit):
        total = np.float32(0.0)
        for i in range(len(x)):
            before = total * x[i]
            total = total + x[i] * x[i]
            if total > limit:
                return before * x[i]
            total = total * np.float32(0.9)
        return total

    for limit in (0.5, 9.0):
        x = X.astype(np.float32)
        found = s2s.grad(f)(x, np.float32(limit))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, s2s.grad(f)(X, limit), rtol=1e-5)
