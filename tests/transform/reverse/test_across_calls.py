"""What the two halves of a called function's derivative hand to one another."""

import math

import numpy as np
import pytest
from judge import judge

import s2s

V = np.array([0.7, -0.4, 1.1])


def drag(v, k):
    s = np.sqrt(v @ v)
    if s > 4.0:
        return -4 * k * v
    return -k * s * v


def fly(v, k, n):
    p = np.zeros_like(v)
    for _ in range(n):
        v = v + 0.1 * (drag(v, k) - 0.8)
        p = p + 0.1 * v
    return p @ p


def pull(v, k):
    s = np.sqrt(v @ v)
    return -k * s * v * np.exp(-s) + np.sin(k * v) * s + np.tanh(s * v)


def pulled(v, k, n):
    for _ in range(n):
        v = v + 0.1 * pull(v, k)
    return np.sum(v)


def decided(v, k, n):
    for _ in range(n):
        s = np.sum(v)
        v = v + 0.1 * limited(v, k)
    return np.sum(v) * s


def limited(v, k):
    s = np.sum(np.exp(v))
    if s > 3.0:
        return -k * s * v * np.exp(-s) + np.sin(k * v) * s
    return np.sin(k * v) * s + np.tanh(s * v)


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
            (pulled, (V, 0.3, 3), (0, 1)), (decided, (V, 0.3, 3), (0, 1)),
            (signal_speed, (np.array([1.0, 0.2, 2.5]), 1.4, 3), (0, 1))]


@pytest.mark.lengthy
@pytest.mark.parametrize("program, args, wrt", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_right(program, args, wrt):
    judge(program, *args, wrt=wrt, second=program in (fly, branches))


@pytest.mark.compile
@pytest.mark.parametrize("program, args, wrt", PROGRAMS[:2], ids=["fly", "burgers"])
def test_right_compiled(program, args, wrt):
    judge(program, *args, wrt=wrt, compiled=True, second=False)


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


def test_a_sum_over_an_argument_is_computed_again_if_nothing_else_is_saved():
    text = text_of(pulled)
    assert "pull_fwd" not in text and "pull_bwd(v, k, " in text


def test_a_sum_that_decides_is_not_computed_again():
    assert "s > 3.0" in text_of(decided).split("def limited_fwd")[1].split("def ")[0]


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


def solver(x, a, n):
    y, z, w = x, a, x * a
    k = 0
    while abs(y * y - a) > 1e-6 and k < n:
        y = 0.5 * (y + a / y)
        z = np.sin(z) * y
        w = np.cos(w) + z
        k += 1
    return y * z * w


def twice(a, b, n):
    return solver(1.0, a, n) * solver(b, a + 1.0, n)


def in_a_branch(a, b, n):
    r = solver(1.0, a, n)
    if b > 0.0:
        return r * solver(b, a, n)
    return r


def in_a_loop(a, b, n):
    for _ in range(2):
        a = 1.0 + solver(b, a, n) ** 2
    return a


WHOLE = [(twice, (2.0, 1.4, 5)), (in_a_branch, (2.0, 1.4, 5)), (in_a_branch, (2.0, -1.4, 5)),
         (in_a_loop, (2.0, 1.4, 3))]


@pytest.mark.lengthy
@pytest.mark.parametrize("program, args", WHOLE, ids=[f"{f.__name__}{k}" for k, (f, _)
                                                      in enumerate(WHOLE)])
def test_what_is_handed_over_as_one_is_right(program, args):
    judge(program, *args, wrt=(0, 1), second=program is twice)


@pytest.mark.compile
def test_what_is_handed_over_as_one_is_right_compiled():
    judge(in_a_loop, 2.0, 1.4, 3, wrt=(0, 1), compiled=True, second=False)


def test_what_crosses_is_one_thing():
    text = s2s.grad(twice, argnums=(0, 1)).lower(2.0, 1.4, 5).source
    assert text.count("def solver_fwd") == text.count("def solver_bwd") == 1
    assert "return y * z * w, (y, z, w, " in text
    assert ", saved_1 = solver_fwd(" in text and "y, z, w, y_tape, z_tape, w_tape = saved" in text
    assert "_, a_bar_1 = solver_bwd(" in text  # what one of the calls does not want


@pytest.mark.lengthy
def test_what_a_loop_saves_stays_apart():
    text = s2s.grad(in_a_loop, argnums=(0, 1)).lower(2.0, 1.4, 3).source
    assert "t, y, z, w, y_tape_1, z_tape_1, w_tape_1 = solver_fwd(b, a, n)" in text


def many(x):
    def below(x, limit):
        while x > limit:
            x = 0.5 * np.sin(x) * x
        return 2.0 * x

    x = below(below(below(below(below(x, 0.9), 0.8), 0.7), 0.6), 0.5)
    x = below(below(below(below(below(x, 0.9), 0.8), 0.7), 0.6), 0.5)
    return below(below(below(below(below(x, 0.9), 0.8), 0.7), 0.6), 0.5)


@pytest.mark.lengthy
def test_no_line_binds_more_than_twelve_names():
    def f(x):
        return many(x) * many(x + 1.0)

    text = s2s.grad(f).lower(0.7).source
    lines = [line for line in text.splitlines() if " = saved" in line]
    assert len(lines) > 1 and all(line.count(",") < 12 and len(line) <= 100 for line in lines)
    judge(f, 0.7, wrt=0, second=False)


@pytest.mark.lengthy
def test_derivatives_of_derivatives_and_lanes():
    second = s2s.grad(s2s.grad(twice))
    e = 1e-5
    expected = (s2s.grad(twice)(2.0 + e, 1.4, 5) - s2s.grad(twice)(2.0 - e, 1.4, 5)) / (2 * e)
    assert second(2.0, 1.4, 5) == pytest.approx(expected, rel=1e-6)
    xs = np.array([1.5, 2.0, 2.5])
    lanes = s2s.vmap(s2s.grad(twice), (0, None, None))(xs, 1.4, 5)
    assert np.allclose(lanes, [s2s.grad(twice)(x, 1.4, 5) for x in xs], rtol=1e-13)


def warped(a, b):
    rows = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(len(a)):
        for j in range(len(b)):
            least = min(rows[i, j], rows[i, j + 1], rows[i + 1, j])
            rows[i + 1, j + 1] = (a[i] - b[j]) ** 2 + np.exp(-least) + 0.1 * least
    k = 0
    while k < len(a) and rows[k, -1] < 2.0:
        k += 1
    return rows[-1, -1] + 0.1 * rows[k, -1]


@pytest.mark.lengthy
def test_two_arguments_that_are_one_array_make_no_other_function():
    def f(a, b):
        return warped(a, b) - 0.5 * warped(a, a) * warped(b, a)

    args = np.array([0.3, -0.2, 0.9]), np.array([0.1, 0.5])
    text = s2s.grad(f).lower(*args).source
    assert text.count("def warped") == text.count("def warped_fwd") + text.count("def warped_bwd")
    assert text.count("def warped_bwd") == text.count("def warped_fwd") == 1
    judge(f, *args, wrt=(0, 1), second=False)


def test_what_one_call_alone_wants_at_a_price_makes_another():
    def f(w, x):
        y = net(w, x)
        for _ in range(3):
            y = net(np.eye(len(x)), y)
        return np.sum(y)

    text = s2s.grad(f).lower(np.eye(3) + 0.1, np.array([0.4, 2.0, 3.0])).source
    assert text.count("def net_bwd") == 2


def net(w, x):
    y = w @ x
    while np.sum(y) > 4.0:
        y = 0.5 * np.tanh(y)
    return y
