"""Functions of plain arithmetic are called again by the reverse sweep; what they compute is not saved."""

import numpy as np
import pytest
from judge import judge

import s2s


def slope(x, v, drag):
    return v * (1.0 - 0.1 * v * v), -np.sin(x) - drag * v * abs(v)


def heun(x, v, drag, steps):
    for _ in range(steps):
        a, b = slope(x, v, drag)
        c, d = slope(x + 0.1 * a, v + 0.1 * b, drag)
        x = x + 0.05 * (a + c)
        v = v + 0.05 * (b + d)
    return x * v


def until_it_turns(x, v, drag, steps):
    while v > 0.0:
        a, b = slope(x, v, drag)
        if a > 0.5:
            x, v = x + 0.3 * a, v + 0.3 * b
        else:
            x, v = x + 0.2 * slope(x, v + b, drag)[0], v + 0.4 * b
    return x * drag + v


def along_an_array(x, v, drag, steps):
    states = np.zeros(steps + 1)
    states[0] = x
    for k in range(steps):
        a, b = slope(states[k], v, drag)
        states[k + 1] = states[k] + 0.1 * a
        v += 0.1 * b
    return np.sum(states * states)


@pytest.mark.parametrize("program", [heun, until_it_turns, along_an_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_right(program, compiled):
    judge(program, 0.5, 0.9, 0.2, 5, wrt=(0, 1, 2), compiled=compiled)


def test_only_the_state_is_saved():
    text = s2s.grad(heun, argnums=(0, 1, 2)).lower(0.5, 0.9, 0.2, 5).source
    assert text.count("_tape = np.empty") == 2 and "slope_fwd" not in text
    back = text[text.rindex("for "):]
    assert back.count("slope(") == 1 and back.count("slope_bwd(") == 2  # the last stage itself is not needed


def test_what_is_more_than_arithmetic_is_not():
    def settled(x):
        while x > 1.0:
            x = 0.5 * x
        return x * x

    def f(x, n):
        for _ in range(n):
            x = settled(x) + 0.7
        return x

    text = s2s.grad(f).lower(3.0, 4).source
    assert "settled_fwd" in text
    judge(f, 3.0, 4, wrt=0)
