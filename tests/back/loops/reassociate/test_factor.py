"""Sums of adjoints with what their terms have in common in front of brackets
(back/loops/reassociate/factor.py).
"""

import numpy as np
import pytest

import s2s

RNG = np.random.default_rng(4)


def pulls(x, m):
    energy = 0.0
    for i in range(len(x)):
        for j in range(i):
            dx = x[i, 0] - x[j, 0]
            dy = x[i, 1] - x[j, 1]
            pull = 1.0 / (dx * dx + dy * dy + 0.1)
            energy += m[i] * dx * pull * x[j, 1] - m[j] * dy * pull * x[i, 0]
    return energy


def payments(cash, rate):
    value = 0.0
    slope = 0.0
    factor = 1.0
    for k in range(len(cash)):
        factor = factor * rate
        value = value + cash[k] * factor
        slope = slope - (k + 1) * cash[k] * factor * rate
    return value / slope


def compensated(x):
    total, lost = 0.0, 0.0
    for i in range(len(x)):
        y = x[i] * x[i] - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


def signs(a, b, c):
    total = 0.0
    for i in range(len(a)):
        u = a[i] * b[i] - b[i] * c[i]
        v = c[i] * b[i] - a[i] * b[i]
        total += u * v * a[i] - u * c[i] * v
    return total


ARGS = {pulls: (RNG.normal(size=(6, 2)), RNG.random(6) + 0.5), payments: (RNG.random(9) + 0.5, 0.9),
        compensated: (RNG.normal(size=9),), signs: tuple(RNG.normal(size=(3, 7)))}


@pytest.mark.compile
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("f", ARGS, ids=lambda f: f.__name__)
def test_the_derivative_is_the_same(f, single):
    args = [x.astype("float32") if single and isinstance(x, np.ndarray) else x for x in ARGS[f]]
    wrt = tuple(range(len(args)))
    plain = s2s.value_and_grad(f, argnums=wrt)
    found, expected = (s2s.tree.leaves(g(*args)) for g in (s2s.jit(plain), plain))
    for a, b in zip(found, expected):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(
            a, b, rtol=1e-4 if single else 1e-11, atol=1e-4 if single else 1e-12
        )


def test_what_terms_share_is_multiplied_once():
    text = s2s.value_and_grad(payments, argnums=(0, 1)).lower(*ARGS[payments]).loops
    (line,) = (line for line in text.splitlines() if "cash_bar[" in line)
    assert line.count("*") == 1  # a factor, times what the rate's cotangent needs as well
    assert "+" in line


def test_the_program_keeps_its_own_brackets():
    text = s2s.value_and_grad(signs).lower(*ARGS[signs]).loops
    assert "u = t - t_1" in text and "v = t_1 - t" in text
    assert "* a[i] - u * c[i] * v" in text


def test_text_is_the_same_each_time():
    texts = {s2s.value_and_grad(pulls, argnums=(0, 1)).lower(*ARGS[pulls]).loops for _ in range(3)}
    assert len(texts) == 1
