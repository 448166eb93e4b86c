"""A length belongs to the function that has it: parameters, globals and what calls save are never
taken for one by their names.
"""

import random
import weakref

import numpy as np
import pytest
from differences import STEP

import s2s
from s2s.front.eval import build
from s2s.ir.builder import Builder

X = np.array([0.3, 0.5, 0.9])
b = np.array([0.5, 2.0])
w = np.array([0.5, 2.0])


def differences(f, x):
    return np.array([(f(x + e) - f(x - e)) / (2 * STEP) for e in STEP * np.eye(len(x))])


def half(w):
    return w * 0.5


def part(w, c):
    return np.exp(w * (c - half(c)))


def inner(b, w):
    return np.exp(b * np.sum(w)) * np.sin(w[0] * b)


def outer(w, b):
    y = inner(w, b)
    return np.tanh(y * np.sum(y)) * b[0]


def settle(A, b, n):
    p = b + 0.0
    k = 0
    while k <= n:
        p = p * np.dot(p, A @ p)
        if p[0] < 1e-3:
            return p
        k += 1
    return p


def shrink(b, n):
    if n == 0:
        return b * 2.0
    return np.sin(shrink(b[1:], n - 1) * np.sum(b))


def of_global(k):
    return k * b


def total_of_global():
    return np.sum(w * w)


def spread(*a, a_0):
    return np.outer(a[0], a_0) + np.sum(np.exp(a[1]))


def powers(x2):
    return np.exp(x2 * np.sum(w)) * w[0]


@s2s.custom_jvp
def ruled(x):
    return np.exp(w * x)


ruled.defjvp(lambda primals, tangents: (ruled(*primals), w * ruled(*primals) * tangents[0]))


def f_of_a_helper_of_a_helper(c, z=np.ones(2), w=0.3, n=3):
    for _ in range(n):
        d = np.sum(z[:, None] * c, axis=1)
        c = c * np.sum(part(w, d)) * 0.1
    return np.sum(c)


def f_of_what_a_call_leaves_unbound(b, M=np.eye(3), G=np.ones((3, 2))):
    X = np.zeros((3, 2))
    for z in range(2):
        X[:, z] = settle(M * b[2], G[:, z], 1)
    return np.sum(X**2)


def f_crosswise(b, w=np.array([0.2, 0.3])):
    for _ in range(2):
        b = b * np.sum(outer(w, b)) + np.sum(outer(b, w))
    return np.sum(b)


def f_crosswise_checkpointed(b, w=np.array([0.2, 0.3])):
    for _ in range(2):
        b = b * np.sum(s2s.checkpoint(outer)(w, b)) + np.sum(outer(b, w))
    return np.sum(b)


def f_recursive(b, w=np.ones(4)):
    for k in range(2):
        b = b * np.sum(shrink(w * b[k], 2))
    return np.sum(b)


def f_beside_a_global_of_its_name(b):
    for k in range(3):
        b = b * np.sum(of_global(b[k])) * 0.1
    return np.sum(b)


def f_beside_a_global_that_a_call_reads(w):
    return np.sum(w * total_of_global()) + np.sum(w[1:] * total_of_global())


def f_beside_a_global_that_a_rule_reads(w):
    for k in range(3):
        w = w * np.sum(ruled(w[k])) * 0.1
    return np.sum(w)


def f_of_parameters_named_as_lengths_are(
    anything, saved0=np.ones(2), lanes=np.ones(2), supposed=np.ones(2), d1=np.ones(2)
):
    for k in range(3):
        anything = anything * np.sum(np.exp(saved0 * anything[k]) * lanes + supposed * d1)
        anything = anything * 0.1
    return np.sum(anything)


def f_of_spread_arguments(x):
    y = x[:2] * 2.0
    return np.sum(spread(x, y, a_0=y[:1]) ** 2) + np.sum(powers(x))


PROGRAMS = [f for name, f in sorted(globals().items()) if name.startswith("f_")]


@pytest.mark.parametrize("f", PROGRAMS)
def test_names_say_nothing_of_lengths(f):
    value, slope = s2s.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(slope, differences(f, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(s2s.jacfwd(f)(X), slope, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS)
def test_names_say_nothing_of_lengths_in_second_order(f):
    slope = s2s.grad(f)(X)
    v = np.array([0.2, -0.4, 0.7])
    second = (s2s.grad(f)(X + STEP * v) - s2s.grad(f)(X - STEP * v)) / (2 * STEP)
    np.testing.assert_allclose(s2s.hvp(f, (X,), (v,)), second, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        s2s.grad(lambda x: np.sum(s2s.grad(f)(x) * v))(X), second, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(s2s.linearize(f, X)[1](v), np.dot(slope, v), rtol=1e-10)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS[:3])
def test_names_say_nothing_of_lengths_in_native_code(f):
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(X), s2s.grad(f)(X), rtol=1e-11)


@pytest.mark.lengthy
def test_the_text_does_not_depend_on_what_lengths_are_called(monkeypatch):
    before = [s2s.grad(f).lower(X).source for f in PROGRAMS]
    plain, names, numbers = Builder.__init__, build.names_of, random.Random(0)

    def far_apart(self, *args, **keywords):
        plain(self, *args, **keywords)
        if self.counter == [0]:
            self.counter[0] = numbers.randrange(1000, 10**6)

    monkeypatch.setattr(Builder, "__init__", far_apart)
    monkeypatch.setattr(
        build, "names_of", lambda f, count: [f"{id(f)} {name}" for name in names(f, count)]
    )
    monkeypatch.setattr(build, "_callees", weakref.WeakKeyDictionary())
    assert [s2s.grad(f).lower(X).source for f in PROGRAMS] == before
