"""What the two halves of a called function's derivative hand to one another."""

import math

import numpy as np
import pytest
from judge import judge

import s2s

V = np.array([0.7, -0.4, 1.1])


def drag(v, k):
    s = np.sqrt(v @ v)
    return -k * s * v


def fly(v, k, n):
    p = np.zeros_like(v)
    for _ in range(n):
        v = v + 0.1 * (drag(v, k) - 0.8)
        p = p + 0.1 * v
    return p @ p


def burgers_rhs(u_hat, k, nu):
    u = np.real(np.fft.ifft(u_hat))
    slope = np.real(np.fft.ifft(1j * k * u_hat))
    return -np.fft.fft(u * slope) - nu * k**2 * u_hat


def burgers(u, nu, n):
    k = np.arange(len(u)) - 1.0
    u_hat = np.fft.fft(u)
    for _ in range(n):
        u_hat = u_hat + 0.05 * burgers_rhs(u_hat, k, nu)
    return np.sum(np.abs(u_hat) ** 2)


def primitive(state, gamma):
    u = state[1] / state[0]
    return u, (gamma - 1) * (state[2] - 0.5 * state[0] * u**2)


def signal_speed(state, gamma, n):
    for _ in range(n):
        u, p = primitive(state, gamma)
        state = state * (1.0 + 0.05 * np.sqrt(gamma * p / state[0]) + 0.01 * u)
    return np.sum(state)


def step(u, i, k):
    d = u[i - 1] - 2 * u[i] + u[i + 1]
    while abs(d) > 1.0:
        d = 0.5 * d
    return k * d * d


def overwritten(u, k, n):
    u = u.copy()
    for _ in range(n):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + step(u, i, k)
    return np.sum(u * u)


def series(z):
    if z > 1e-6:
        return (1 - math.cos(math.sqrt(z))) / z
    return 0.5 - z / 24 + z**2 / 720


def anomaly(x):
    y = series(x) * series(x) + x * series(x)
    while y > 0.5:
        y = y - 0.1 * np.sin(y)
    return y


def orbit(x, n):
    for _ in range(n):
        x = anomaly(x) + 0.3
    return x


def settled(x, flag):
    while x > 1.0:
        x = 0.5 * x
    if flag:
        y = np.exp(x) * x
    else:
        y = x
    return y * np.sin(y)


def branches(x, n):
    for k in range(n):
        x = x + settled(x, k % 2 == 0)
    return x


PROGRAMS = [(fly, (V, 0.3, 4), (0, 1)), (burgers, (V, 0.2, 3), (0, 1)),
            (overwritten, (np.array([0.2, 0.9, -0.3, 0.5, 0.1]), 0.3, 2), (0, 1)),
            (orbit, (0.4, 3), (0,)), (branches, (2.7, 3), (0,)),
            (signal_speed, (np.array([1.0, 0.2, 2.5]), 1.4, 3), (0, 1))]


@pytest.mark.parametrize("program, args, wrt", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_right(program, args, wrt, compiled):
    judge(program, *args, wrt=wrt, compiled=compiled, second=program in (fly, branches))


def text_of(program):
    args, wrt = next((args, wrt) for f, args, wrt in PROGRAMS if f is program)
    return s2s.grad(program, argnums=wrt).lower(*args).source


def test_what_is_cheap_is_computed_again():
    text = text_of(fly)
    assert "return -k * s * v, s\n" in text and text.count("_tape = np.empty") == 2


def test_what_depends_on_arguments_that_no_trip_changes_is_not_taped():
    text = text_of(burgers)
    assert "def burgers_rhs_bwd(u_hat, k, nu, u, slope, y_bar)" in text


def test_a_function_that_hands_over_arguments_alone_has_no_forward_half():
    assert "series_fwd" not in text_of(orbit) and "_fwd" not in text_of(signal_speed)


def test_calls_in_called_functions_are_shared():
    text = text_of(orbit)
    forward = text[text.index("def anomaly_fwd("):text.index("def series_bwd")]
    assert forward.count("series(") == 1


def root(x, a):
    while abs(x * x - a) > 1e-9:
        x = 0.5 * (x + a / x)
    return x * np.sin(a) / np.cos(x)


def test_what_is_read_first_makes_no_other_function():
    def f(a, b):
        return root(1.0, a) * root(b, 2.0) * root(b, a)

    text = s2s.grad(f, argnums=(0, 1)).lower(2.0, 1.5).source
    assert text.count("def root_fwd") == 1
    judge(f, 2.0, 1.5, wrt=(0, 1), second=False)
