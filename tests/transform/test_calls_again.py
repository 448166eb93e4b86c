"""Functions of plain arithmetic are called again by the reverse sweep; what they compute is not
saved.
"""

import re

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


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "program", [heun, until_it_turns, along_an_array], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_right(program, compiled):
    judge(program, 0.5, 0.9, 0.2, 5, wrt=(0, 1, 2), compiled=compiled)


def test_only_the_state_is_saved():
    text = s2s.grad(heun, argnums=(0, 1, 2)).lower(0.5, 0.9, 0.2, 5).source
    assert text.count("_tape = np.empty") == 2 and "slope_fwd" not in text
    back = text[text.rindex("for "):]
    # the last stage itself is not needed
    assert back.count("slope(") == 1 and back.count("slope_bwd(") == 2


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


# states that are arrays


def predators(u, p):
    return np.array([p[0] * u[0] - p[1] * u[0] * u[1], p[2] * u[0] * u[1] - p[3] * u[1]])


def integrated(p, u, data, h):
    loss = 0.0
    for observed in data:
        for _ in range(2):
            k1 = predators(u, p)
            k2 = predators(u + h / 2 * k1, p)
            u = u + h * k2
        loss += np.sum((u - observed) ** 2)
    return loss


def integrated_while(p, u, data, h):
    while u[0] < 2.5:
        u = u + h * predators(u + h / 2 * predators(u, p), p)
    return np.sum(u * data[0])


def integrated_in_place(p, u, data, h):
    u = u.copy()
    for observed in data:
        u += h * predators(u, p)
        u[0] = 0.9 * u[0] + 0.1 * observed[0]
    return np.sum(u * u)


def table_of_states(p, u, data, h):
    states = np.zeros((4, 2))
    states[0] = u
    for k in range(3):
        states[k + 1] = states[k] + h * predators(states[k], p)
    return np.sum(states * states)


def swapped(p, u, data, h):
    v = u * 0.5
    for _ in range(3):
        u, v = v + h * predators(u, p), u
    return np.sum(u * v)


STATE = (
    np.array([1.1, 0.4, 0.1, 0.4]),
    np.array([2.0, 1.0]),
    1 + np.arange(6.0).reshape(3, 2) / 5,
    0.1,
)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "program",
    [integrated, integrated_while, integrated_in_place, table_of_states, swapped],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_right_of_arrays(program, compiled):
    judge(program, *STATE, wrt=(0, 1), compiled=compiled, second=not compiled)


def test_of_a_state_that_is_an_array_only_that_is_saved():
    text = s2s.grad(integrated).lower(*STATE).source
    assert text.count("_tape = np.empty") == 2 and "predators_fwd" not in text


def test_a_sum_of_cotangents_goes_on_where_it_lies():
    text = s2s.jit(s2s.grad(integrated)).lower(*STATE).loops
    back = text[text.index("range(1, -1, -1)"):]
    assert "np.zeros" not in back and "np.empty" not in back


# functions that look into arrays


def mean(u, i):
    return 0.5 * (u[i - 1] * u[i] + u[i + 1])


def swept(u):
    u = u.copy()
    for i in range(1, len(u) - 1):
        u[i] = mean(u, i)
    return np.sum(u)


def product(a, i, x):
    s = 0.0
    for j in range(a.shape[1]):
        s += a[i, j] * x[j]
    return s


def applied(a, x):
    return np.array([product(a, i, x) for i in range(len(a))])


def quadratic(a, x):
    y = applied(a, x)
    total = 0.0
    for i in range(len(a)):
        total += y[i] * product(a, i, x)
    return total


def of_pair(positions, i, j):
    d = positions[i] - positions[j]
    return 1 / np.sqrt(d @ d + 0.1)


def of_one(positions, pairs, i):
    return of_pair(positions, pairs[i, 0], pairs[i, 1])


def energy(positions, pairs):
    e, i = 0.0, 0
    while i < len(pairs):
        e += of_one(positions, pairs, i)
        i += 1
    return e


def potential(positions, pairs):
    return energy(positions, pairs) * energy(2 * positions, pairs)


POSITIONS, PAIRS = np.sin(np.arange(12.0)).reshape(4, 3), np.array([[0, 1], [2, 1], [3, 0], [0, 1]])


@pytest.mark.parametrize(
    "program, args",
    [
        (swept, (np.arange(5.0),)),
        (quadratic, (POSITIONS, np.ones(3))),
        (potential, (POSITIONS, PAIRS)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_functions_that_look_into_an_array_add_to_one_cotangent(program, args, compiled):
    """As calls they would each make an array of zeros, as long as the one that they look into."""
    judge(program, *args, wrt=0, compiled=compiled, second=not compiled)
    text = s2s.grad(program).lower(*args).source
    # those two run through all of it
    assert set(re.findall(r"(\w+)_bwd\(", text)) <= {"applied", "energy"}


def filtered(Q, x, obs):
    P, loss = np.eye(len(x)), 0.0
    for k in range(len(obs)):
        F = np.eye(len(x)) + 0.1 * np.outer(x, np.ones(len(x)))
        places = np.arange(len(Q))
        P = F @ P @ F.T
        P[places, places] += Q
        x = np.tanh(F @ x)
        loss = loss + np.sum(P * P) + x @ obs[k]
    return loss


@pytest.mark.lengthy
def test_what_is_made_of_lengths_alone_is_made_again():
    rng = np.random.default_rng(0)
    args = 0.1 + rng.random(4), 0.2 * rng.normal(size=4), rng.normal(size=(3, 4))
    judge(filtered, *args, wrt=(0, 1))
    text = s2s.grad(filtered, argnums=(0, 1)).lower(*args).source
    # once each way, on no tape
    assert "np.int64" not in text and text.count("places = np.arange(n") == 2
