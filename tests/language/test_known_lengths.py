"""Loops that have no common form for all trips are followed trip by trip, for each length of an
argument.
"""

import math

import numpy as np
import pytest
from differences import differences

import s2s
from s2s.errors import S2SError

P = np.array([0.4, -0.7, 1.2])


class Number:
    """A number that knows what it was computed from, as small libraries of derivatives have it."""

    def __init__(self, data, parents=(), how="leaf"):
        self.data, self.parents, self.how = data, parents, how
        self.backward = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data + other.data, (self, other), "+")

    def __mul__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data * other.data, (self, other), "*")

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        return Number(math.tanh(self.data), (self,), "tanh")


def of_expression(p):
    a, b, c = map(Number, p)
    e = (a * b + c).tanh() * a + 2 * c
    count, stack = 0, [e]
    while stack:
        top = stack.pop()
        count += 1
        stack.extend(top.parents)
    return e.data + 0.01 * count


def of_leaves(p):
    leaves = [Number(x) for x in p]
    total = leaves[0]
    for leaf in leaves[1:]:
        total = (total * leaf).tanh() + leaf
    return total.data


def of_functions(p):
    layers = []
    for k in range(len(p)):
        layers.append(lambda x, k=k: np.sin(x * p[k]) if k % 2 else x * x + p[k])
    x = 0.3
    for layer in layers:
        x = layer(x)
    return x


def of_nested(p):
    tree = p[0]
    for x in p[1:]:
        tree = (tree, x)
    total = 0.0
    while isinstance(tree, tuple):
        tree, x = tree
        total = total * x + np.cos(x)
    return total * tree


PROGRAMS = [of_expression, of_leaves, of_functions, of_nested]


@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f):
    np.testing.assert_allclose(s2s.grad(f)(P), differences(f, P), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(s2s.jacfwd(f)(P), differences(f, P), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", PROGRAMS[1:])
def test_each_length_has_its_own_code(f):
    gradient = s2s.grad(f)
    for x in P, P[:2], np.append(P, 0.9), P + 0.1:
        np.testing.assert_allclose(gradient(x), differences(f, x), rtol=1e-6, atol=1e-8)


def test_another_length_raises_what_python_raises():
    gradient = s2s.grad(of_expression)
    gradient(P)
    with pytest.raises((ValueError, S2SError), match="3|names"):
        gradient(P[:2])


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(P), differences(f, P), rtol=1e-6, atol=1e-8)
