"""In compiled adjoints, what a trip hands on is added last: the loop form is run as Python, and
compared.
"""

import numpy as np
import pytest

import s2s

from ..test_scalar_replace import loops_of


def recurrence(p, d):
    total, x = 0.0, 1.0
    for k in range(len(p)):
        x = x * d
        total = total + p[k] * x
        total = total - (k + 1) * p[k] * x * d
    return total


def coupled(p, d):
    x, y = 1.0, 0.5
    for k in range(len(p)):
        x, y = x * d + y * p[k] + np.sin(x), y - x * d - p[k] * x * y
    return x * y


def subtracted(p, d):
    x, total = 1.0, 0.0
    for k in range(len(p)):
        total -= x * p[k] + x * x * d - p[k] / x
        x = d - x * p[k]
    return total


def through_an_inner_loop(p, d):
    x, total = 1.0, 0.0
    for k in range(len(p)):
        for j in range(3):
            x = x * d + 0.1 * j * x
        total += x * p[k] + x * x
    return total * x


def in_an_array(p, d):
    u = p.copy()
    for k in range(1, len(u)):
        u[k] = u[k] * d + u[k - 1] * p[k] - u[k - 1] * u[k - 1]
    return np.sum(u * u)


@pytest.mark.parametrize(
    "f",
    [recurrence, coupled, subtracted, through_an_inner_loop, in_an_array],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_the_order_changes_the_rounding_alone(f, n):
    args = np.random.default_rng(n).random(n) + 0.5, 0.9
    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    loops, _ = loops_of(gradient, *args)
    (value, (p_bar, d_bar)), (found, p_found, d_found) = gradient(*args), loops(*args)
    np.testing.assert_allclose(found, value, rtol=1e-15)
    np.testing.assert_allclose(p_found, p_bar, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(d_found, d_bar, rtol=1e-12, atol=1e-14)


def test_what_is_handed_on_is_added_last():
    _, text = loops_of(s2s.grad(recurrence, argnums=(0, 1)), np.ones(4), 0.9)
    (line,) = (line.strip() for line in text.split("\n") if "= x_bar + " in line)
    assert line.split("= x_bar + ")[1].startswith("(") and line.endswith(")")


def test_what_hangs_on_another_chain_alone_is_not_added_last():
    """The cotangent of c needs that of x, but not the other way round: to the first, only its own
    carry is late.
    """
    def f(c, p, d):
        x, total = 1.0, 0.0
        for k in range(len(p)):
            x = x * d + c * p[k]
            total = total + x * c * p[k] + x * x
        return total

    gradient = s2s.value_and_grad(f, argnums=(0, 2))
    args = 0.3, np.array([1.5, 0.5, 2.0]), 0.9
    loops, text = loops_of(gradient, *args)
    value, c_bar, d_bar = loops(*args)
    np.testing.assert_allclose(
        [value, c_bar, d_bar], [gradient(*args)[0], *gradient(*args)[1]], rtol=1e-13
    )
    (line,) = (line.strip() for line in text.splitlines() if "c_bar" in line and "p[k]" in line)
    assert line.startswith("c_bar += ") and " + " in line


def test_sums_of_the_program_are_added_as_they_are_written():
    def f(p, d):
        x = 0.0
        for k in range(len(p)):
            x = x + p[k] * d + p[k] * p[k]
        return x

    _, text = loops_of(s2s.jit(f), np.ones(4), 0.9)
    assert "x = x + p[k] * d + p[k] * p[k]" in text
