"""Short arrays that stay in a function lie on its stack, and loops around short loops are made
vectors.
"""

import ast
import re

import numpy as np
import pytest
from numba.core import types

import s2s
from s2s.runtime.emit.stack_arrays import on_stack
from s2s.runtime.numba import native_module


def arrays_on_stack(body: str, rank: int = 1) -> list[str]:
    """The names that are bound there to arrays on the stack; arrays are those called `x`, all else
    numbers.
    """
    (function,) = ast.parse(
        "def f(x, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    ).body
    kinds = {
        id(node): types.Array(types.float64, rank, "C")
        if isinstance(node, ast.Call) or isinstance(node, ast.Name) and node.id == "x"
        else types.intp
        for node in ast.walk(function)
        if not isinstance(node, ast.Slice)
    }
    found = on_stack(function, kinds)
    return [
        node.targets[0].id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and id(node.value) in found
    ]


@pytest.mark.parametrize(
    "body",
    [
        "t = unshared_empty(3)\nt[0] = 1.0\nreturn t[n]",
        "for i in range(n):\n    t = unshared_zeros(3)\n    t[i] += 1.0",
        "t = apart(unshared_empty(3))\nt[n] = t[n - 1]",
        "t = unshared_empty(3)\ny = unshared_empty(3)\ny[0] = t[0]\nx[:] = y",
    ],
)
def test_arrays_of_which_elements_alone_are_asked(body):
    assert arrays_on_stack(body) == ["t"]


@pytest.mark.parametrize(
    "body",
    [
        "t = unshared_empty(3)\nreturn t",
        "t = unshared_empty(3)\ny = t\ny[0] = 1.0",
        "t = unshared_empty(n)\nt[0] = 1.0",
        "t = unshared_empty(300)\nt[0] = 1.0",
        "t = unshared_empty(3)\nt[:2] = 1.0",
        "t = unshared_empty(3)\ng(t)",
        "t = unshared_empty(3)\nt[0] = 1.0\nt = g(n)",
        "t = unshared_empty(3)\nreturn t[x]",
        "x = unshared_empty(3)\nx[0] = 1.0",
        "t = unshared_empty(3)\nl = [t]",
        "t = unshared_empty((7, 7, 7))\nt[0] = 1.0",
    ],
)
def test_arrays_that_others_may_see(body):
    assert arrays_on_stack(body) == []


def softmax(x, mu):
    d = x[:, None] * mu - mu**2
    m = np.max(d, axis=1, keepdims=True)
    p = np.exp(d - m)
    return p / np.sum(p, axis=1, keepdims=True)


def scratch(x, mu):
    """Short arrays of a trip: numbers, truths, and one that begins with zeros in each."""
    total = 0.0
    for i in range(len(x)):
        t, is_large, seen = np.empty(3), np.empty(3, dtype=np.bool_), np.zeros(3)
        for j in range(3):
            t[j] = np.exp(x[i] * mu[j])
            is_large[j] = t[j] > 1.0
        for j in range(3):
            if is_large[j]:
                seen[j] += t[j] * x[i]
            seen[(i + j) % 3] += 1.0
        total += np.log(1.0 + seen[0] ** 2 + seen[1] ** 2 + seen[2] ** 2)
    return total


def mixture(x, mu):
    s, w = np.ones(len(mu)), np.ones(len(mu)) / len(mu)
    for _ in range(3):
        d = x[:, None] - mu
        logp = np.log(w) - 0.5 * (d / s) ** 2 - np.log(s)
        m = np.max(logp, axis=1, keepdims=True)
        p = np.exp(logp - m)
        r = p / np.sum(p, axis=1, keepdims=True)
        n = np.sum(r, axis=0)
        mu = np.sum(r * x[:, None], axis=0) / n
        s = np.sqrt(np.sum(r * (x[:, None] - mu) ** 2, axis=0) / n)
        w = n / len(x)
    return np.sum(mu * s) + np.sum(np.log(w))


def squared(x, mu):
    return np.sum(softmax(x, mu) ** 2)


@pytest.mark.compile
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("f", [squared, scratch, mixture], ids=lambda f: f.__name__)
def test_values_and_gradients(f, parallel):
    rng = np.random.default_rng(0)
    for n, k in ((500, 3), (3001, 3), (2, 3), (3, 2), (1000, 2), (1000, 9), (400, 3)):
        if f is scratch and k != 3:
            continue
        x, mu = rng.normal(size=n), np.linspace(-1.0, 1.2, k)
        value, found = s2s.jit(s2s.value_and_grad(f, argnums=(0, 1)), parallel=parallel)(x, mu)
        expected, wanted = s2s.value_and_grad(f, argnums=(0, 1))(x, mu)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for p, q in zip(found, wanted):
            np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-11)
    s2s.check_grads(lambda x: f(x, mu), (rng.normal(size=6),), order=1)


def vectors(*args) -> int:
    """How many instructions on vectors a compiled function has for these arguments."""
    f, *given = args
    compiled = s2s.jit(f, parallel=False, cache=False)
    compiled(*given)
    (code,) = native_module._entries[-1].overloads.values()
    return len(re.findall(r"fmul contract <\d+ x double>", code.library.get_llvm_str()))


@pytest.mark.compile
@pytest.mark.machine_code
def test_rows_of_three_are_made_vectors():
    """Twenty products of the exponential and more, of several rows at a time."""
    x = np.random.default_rng(1).normal(size=2000)
    assert vectors(softmax, x, np.arange(3.0) + 0.125) > 40
    assert vectors(mixture, x, np.arange(3.0) + 0.25) > 40


@pytest.mark.compile
def test_parts_have_short_arrays_of_their_own():
    f = s2s.jit(mixture, parallel=True)
    x, mu = np.random.default_rng(1).normal(size=100_000), np.arange(3.0)
    np.testing.assert_allclose(f(x, mu), mixture(x, mu), rtol=1e-12)
    texts = [
        made.__s2s_text__
        for made in native_module._modules.values()
        if "def mixture(" in made.__s2s_text__ and "in_parts(" in made.__s2s_text__
    ]
    assert any("= apart(unshared_empty(3))" in text for text in texts)
