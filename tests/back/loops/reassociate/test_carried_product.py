"""Products that are handed on and added to, made by the trip that adds
(back/loops/reassociate/carried_product.py).
"""

import numpy as np
import pytest

import s2s

RNG = np.random.default_rng(5)


def decay(u, d):
    x = 0.0
    total = 0.0
    for k in range(len(u)):
        x = (x + u[k]) * d
        total += x * x
    return total


def varying(u, d):
    x = 1.0
    total = 0.0
    for k in range(len(u)):
        x = x * d[k] + u[k]
        total += np.sin(x)
    return total * x


def two_at_once(u, a, b):
    x, y = 0.5, 0.25
    for k in range(len(u)):
        x, y = a * x + u[k] * y, b * y - u[k]
    return x * y


def rows(u, d):
    total = 0.0
    for i in range(u.shape[0]):
        x = 1.0
        for k in range(u.shape[1]):
            x = x * d + u[i, k]
        total += x * d
    return total


CASES = [
    (decay, lambda n: (RNG.normal(size=n), 0.9)),
    (varying, lambda n: (RNG.normal(size=n), RNG.random(n))),
    (two_at_once, lambda n: (RNG.normal(size=n), 0.7, -0.4)),
    (rows, lambda n: (RNG.normal(size=(n, n)), 0.8)),
]


@pytest.mark.compile
@pytest.mark.parametrize("f, args", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_the_derivative_is_the_same(f, args):
    wrt = tuple(range(len(args(2))))
    plain = s2s.value_and_grad(f, argnums=wrt)
    compiled = s2s.jit(plain)
    for n in (0, 1, 2, 9):
        xs = args(n)
        for a, b in zip(s2s.tree.leaves(compiled(*xs)), s2s.tree.leaves(plain(*xs))):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.compile
def test_what_is_multiplied_by_infinity_is_what_it_was():
    plain = s2s.value_and_grad(decay, argnums=(0, 1))
    with np.errstate(all="ignore"):
        for u, d in (
            (np.array([2.0]), np.inf),
            (np.array([0.0]), np.inf),
            (np.array([1.0, np.inf]), 0.5),
        ):
            for a, b in zip(s2s.tree.leaves(s2s.jit(plain)(u, d)), s2s.tree.leaves(plain(u, d))):
                np.testing.assert_array_equal(a, b)


def test_the_factor_goes_along():
    text = s2s.value_and_grad(decay, argnums=(0, 1)).lower(np.ones(3), 0.9).loops
    body = text[text.rindex("for k in"):].splitlines()
    handed = [line.strip() for line in body if line.strip().endswith("= d")]
    assert len(handed) == 1
    assert f"* {handed[0].split(' ')[0]}" in text
