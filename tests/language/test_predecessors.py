"""Programs on which other systems are known to have failed."""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

import s2s

PROGRAMS = []
COMPILED = []


def program(*args, compiled=False):
    def record(f):
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        if compiled:
            COMPILED.append(PROGRAMS[-1])
        return f
    return record


@program(np.array([0.3, -0.2, 0.9, 0.4]))
def range_from_an_index(x):  # Tangent #31
    s = 0.0
    for i in range(len(x)):
        for j in range(i, len(x)):
            for k in range(j, i, -1):
                s += x[i] * x[j] * np.sin(x[k])
    return s


@program(np.array([0.3, -0.2, 0.9]), np.array([1.0, 2.0, 3.0]))
def if_over_an_indexed_augmented_assignment(x, y):  # Tangent #69
    y = y.copy()
    for i in range(len(x)):
        if x[i] > 0.0:
            y[i] += x[i] * x[i]
        else:
            y[i] *= x[i]
    return np.sum(y * y)


@program(np.array([0.3, -0.2, 0.9, 0.4, 0.1]))
def slice_operators(x):  # Tangent #62
    d = x[1:] - x[:-1]
    e = x[::-1] * x[::2].sum()
    return np.sum(d * d) + np.sum(e[1:3] ** 3) + x[-1] * d[-2]


@program(0.7, 3.0, compiled=True)
def return_in_a_while(x, limit):  # Myia #29
    while x < limit:
        x = x * x + 1.0
        if x > 2.0:
            return x * limit
    return x


@program(0.7)
@program(-0.7)
def second_order_through_if(x):  # Myia
    if x > 0.0:
        y = x * x * x
    else:
        y = np.sin(x)
    if y > 0.2:
        return y * x
    return y


@program(np.array([3.0, 1.0, 2.0]), 5, compiled=True)
def permuted_carries(x, n):  # Zygote #1198
    a, b, c = x[0], x[1], x[2]
    for _ in range(n):
        a, b, c = b, c, a
    for _ in range(n):
        a, b, c = b, c, a * 0.5 + b
    return a * b * b * c * c * c


@program(0.3, 0.1, 4, compiled=True)
def overwritten_in_its_own_update(x, y, n):  # NVIDIA Warp
    for _ in range(n):
        y = y * y * x + x
    return y


@program(2.5, compiled=True)
def newton_in_a_while(a):  # NVIDIA Warp
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_program(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args", COMPILED)
def test_compiled_program(f, args):
    judge(f, *args, compiled=True)


# --------------------------------------- JAX #347, #1052, #2947, #5798: nan from the side not taken


def log_or_zero(x):
    return np.sum(np.where(x > 0.0, np.log(x), 0.0))


def log_by_branches(x):
    s = 0.0
    for v in x:
        s += np.log(v) if v > 0.0 else 0.0
    return s


def length_or_zero(x):
    s = np.sum(x * x)
    return np.where(s > 0.0, np.sqrt(s), 0.0)


def length_by_branches(x):
    s = np.sum(x * x)
    if s == 0.0:
        return 0.0 * s
    return np.sqrt(s)


def sinc(x):
    return np.sum(np.where(x == 0.0, 1.0, np.sin(x) / x))


def softplus(x):
    return np.sum(np.where(x > 30.0, x, np.log1p(np.exp(x))))


def finite_inverses(x):
    y = 1.0 / x
    return np.sum(np.where(np.isfinite(y), y * x * x, 0.0))


def roots_of_positive(x):
    return np.sum(np.where(x > 0.0, x, 0.0) ** 1.5 + np.where(x < 0.0, (-x) ** 0.5, 0.0))


def entropy(p):
    return -np.sum(np.where(p > 0.0, p * np.log(p), 0.0))


def angle_or_zero(x):
    return np.where((x[0] == 0.0) & (x[1] == 0.0), 0.0, np.arctan2(x[0], x[1]))


def shifted_logsumexp(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


EXPECTED = [
    (log_or_zero, [-1.0, 0.0, 2.0], [0.0, 0.0, 0.5], [0.0, 0.0, -0.25]),
    (log_by_branches, [-1.0, 0.0, 2.0], [0.0, 0.0, 0.5], [0.0, 0.0, -0.25]),
    (length_or_zero, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    (length_by_branches, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    (sinc, [0.0, np.pi], [0.0, -1 / np.pi], [0.0, 2 / np.pi**2]),
    (softplus, [1000.0, 0.0], [1.0, 0.5], [0.0, 0.25]),
    (finite_inverses, [0.0, 2.0], [0.0, 1.0], [0.0, 0.0]),
    (roots_of_positive, [4.0, 0.0, -4.0], [3.0, 0.0, -0.25], [0.375, 0.0, -0.03125]),
    (entropy, [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]),
    (angle_or_zero, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    (shifted_logsumexp, [1000.0, 1000.0, -np.inf], [0.5, 0.5, 0.0], [0.25, 0.25, 0.0]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "through",
    [lambda t: t, pytest.param(s2s.jit, marks=pytest.mark.compile)],
    ids=["python", "jit"],
)
@pytest.mark.parametrize("f, x, first, second", EXPECTED)
def test_what_is_not_taken_makes_no_nan(f, x, first, second, through):
    x = np.array(x)
    assert np.allclose(through(s2s.grad(f))(x), first, atol=1e-12)
    along = [through(s2s.jvp(f))(x, e)[1] for e in np.eye(len(x))]
    assert np.allclose(along, first, atol=1e-12)
    if f is not shifted_logsumexp:
        hessian = [through(s2s.jvp(s2s.grad(f)))(x, e)[1] for e in np.eye(len(x))]
        assert np.allclose(np.diag(hessian), second, atol=1e-12)
