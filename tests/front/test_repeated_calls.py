"""Inlined calls that leave the same ops are calls of one function (front/domain/repeated_calls.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, check_compiled, differences

import s2s


class Spring:
    """A spring that softens, with a list of what it has been asked."""

    def __init__(self, stiffness, rest):
        self.stiffness, self.rest = stiffness, rest

    def force(self, a, b):
        d = b - a
        length = np.sqrt(d @ d + 1e-3)
        stretch = length - self.rest
        soft = np.tanh(stretch) / (1.0 + stretch**2)
        return self.stiffness * soft * d / length

    def push(self, v, a, b):
        """Write into what it is given."""
        d = b - a
        length = np.sqrt(d @ d + 1e-3)
        stretch = length - self.rest
        v[:1] += self.stiffness * np.tanh(stretch) / (1.0 + stretch**2) * d[:1] / length


A, B, C = np.array([0.1, 0.2]), np.array([1.3, -0.4]), np.array([0.5, 2.1])


def net(k):
    spring = Spring(k, 0.8)
    a, b, c = A * k, B, C
    total = spring.force(a, b) + 2.0 * spring.force(b, c) - spring.force(c, a)
    total = total + spring.force(a, total) * spring.force(total, c)
    return total @ total


def pushed(k):
    spring = Spring(k, 0.8)
    v = np.zeros(2)
    for a, b in ((A, B), (B, C), (C, A), (A, C), (B, A)):
        spring.push(v, a * k, b)
    return v @ v


def closed(x):
    offset = x * x

    def bump(c):
        d = offset - c
        t = np.exp(-d * d) * np.cos(3.0 * d)
        return t / (1.0 + t * t) + np.log(1.0 + d * d)

    a = bump(x)
    b = bump(a) * bump(a + x)
    return bump(b) - bump(b * x) * bump(a - b)


def largest(rows, x):
    """A list of run-time length is given."""
    best = 0.0
    for row in rows:
        t = np.sin(row @ row * x) / (1.0 + x * x)
        if t > best:
            best = t * np.exp(-best)
    return best


def of_lists(x):
    rows = [A * x]
    first = largest(rows, x)
    rows.append(B * first)
    second = largest(rows, x + first)
    rows.append(C)
    third = largest(rows, second)
    return first + second * third + largest(rows, third + x)


def definitions(f, x=0.7):
    """The names of the functions that the gradient of `f` defines."""
    return [line[4:].split("(")[0] for line in s2s.grad(f).lower(x).source.splitlines()
            if line.startswith("def ")]


@pytest.mark.lengthy
@pytest.mark.parametrize(("f", "name"), [(net, "force"), (closed, "bump"), (of_lists, "largest")])
def test_calls_alike_are_calls_of_one_function(f, name):
    found = [each for each in definitions(f) if each.startswith(name) and "_bwd" not in each]
    assert found in ([f"{name}_fwd"], [name])
    check(f)


@pytest.mark.lengthy
def test_what_writes_into_its_arguments_stays_inlined():
    assert definitions(pushed) == ["pushed_grad"]
    check(pushed)


@pytest.mark.lengthy
def test_calls_that_differ_in_constants_stay_inlined():
    def f(x):
        springs = [Spring(2.0, 0.5), Spring(3.0, 0.25), Spring(5.0, 0.125)]
        return sum(s.force(A * x, B) @ C for s in springs)

    assert definitions(f) == ["f_grad"]
    check(f)


def test_results_of_another_length_call_the_same_function():
    """The lengths of arrays have other names in each call."""
    def f(x):
        spring = Spring(x[0], 0.8)
        a, b, c = x[1:3], x[3:5], x[5:]
        near = spring.force(a, b) + spring.force(b, a * b) + spring.force(b * b, a)
        return near @ near + spring.force(c, c * c) @ c + spring.force(c * c, c) @ c

    x = np.linspace(0.4, 1.5, 8)
    np.testing.assert_allclose(s2s.grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-8)


def test_lanes():
    found = s2s.vmap(net)(np.array([0.3, 0.7]))
    np.testing.assert_allclose(found, [net(0.3), net(0.7)], rtol=1e-13)


@pytest.mark.compile
def test_native_code():
    check_compiled(of_lists)
