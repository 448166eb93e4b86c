"""Factors that all trips share, multiplied after the loop in compiled adjoints
(back/loops/reassociate/sink_factors.py).
"""

import re

import numpy as np
import pytest

import s2s

from ..test_scalar_replace import loops_of

RNG = np.random.default_rng(8)


def payments(cash, rate):
    value, slope, factor = 0.0, 0.0, 1.0
    for k in range(len(cash)):
        factor = factor * rate
        value = value + cash[k] * factor
        slope = slope - (k + 1) * cash[k] * factor * rate
    return value / slope


def one_term(x, a):
    total = 0.0
    for k in range(len(x)):
        total += a * x[k] * np.sin(x[k])
    return np.exp(total)


def taken_off(x, a, b):
    total, other = 0.0, 1.0
    for k in range(len(x) - 1, -1, -1):
        total -= a * x[k] * np.cos(x[k])
        other = other * b - a * b * x[k] * x[k]
    return total * other


def two_groups(x, a, b):
    u, v, w = 0.0, 0.0, 0.0
    for k in range(len(x)):
        u += a * x[k] * np.sin(x[k])
        v += a * b * np.cos(x[k]) * x[k]
        w += a * a * x[k]
    return u * v * w


def in_a_branch(x, a):
    total = 0.0
    for k in range(len(x)):
        if x[k] > 0.0:
            total += a * x[k] * np.sin(x[k])
        else:
            total -= a * x[k]
    return total * total


def rows(x, a, b):
    total = 0.0
    for i in range(len(x)):
        inner = 1.0
        for k in range(i):
            inner += a * x[k] * x[i] * np.sin(x[k])
        total = total * b + inner * np.cos(inner)
    return total


def left_early(x, a):
    total = 0.0
    for k in range(len(x)):
        if total > 2.0:
            break
        total += a * a * x[k] * x[k]
    return total


def lanes(x, a):
    return np.sum(a * x * np.sin(x)) * np.sum(a * x)


ARGS = {
    payments: 1,
    one_term: 1,
    taken_off: 2,
    two_groups: 2,
    in_a_branch: 1,
    rows: 2,
    left_early: 1,
    lanes: 1,
}


@pytest.mark.compile
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("f", ARGS, ids=lambda f: f.__name__)
def test_the_derivative_is_the_same(f, single):
    wrt = tuple(range(ARGS[f] + 1))
    plain = s2s.value_and_grad(f, argnums=wrt)
    compiled = s2s.jit(plain)
    for n in (1, 2, 7, 64):
        x = RNG.normal(size=n)
        args = (x.astype("float32") if single else x, 0.9, 0.7)[:ARGS[f] + 1]
        for a, b in zip(
            s2s.tree.leaves(compiled(*args)), s2s.tree.leaves(plain(*args)), strict=True
        ):
            np.testing.assert_allclose(
                a, b, rtol=2e-4 if single else 1e-11, atol=1e-4 if single else 1e-12
            )


def test_each_trip_has_a_product_less():
    text = s2s.grad(payments, argnums=(0, 1)).lower(np.ones(5), 0.9).loops
    assert "rate_bar_1 += (k + 1) * cash[k] * factor" in text, text


def test_of_a_sum_whose_terms_all_have_the_factor_there_is_one():
    text = s2s.grad(one_term, argnums=1).lower(np.ones(5), 0.9).loops
    assert (
        "a_bar += np.sin(x[k]) * x[k]" in text
        and "a_bar = np.exp(total) * a_bar" in text
        and "a_bar_1" not in text
    ), text


def test_the_users_sums_stay():
    text = s2s.jit(one_term).lower(np.ones(5), 0.9).loops
    assert (
        "total += a * x[k] * np.sin(x[k])" in text
        or "total = total + a * x[k] * np.sin(x[k])" in text
    ), text


@pytest.mark.lengthy
def test_a_loop_without_trips_adds_nothing():
    """Not infinity times the sum of nothing."""

    def f(x, a):
        total = 0.0
        for k in range(len(x)):
            total += a * x[k] * x[k]
        return np.sqrt(total)

    run, _ = loops_of(s2s.grad(f, argnums=1), np.ones(0), 2.0)
    with np.errstate(all="ignore"):
        assert s2s.tree.leaves(run(np.ones(0), 2.0)) == [0.0]


def unit_rows(A, b):
    return np.sum(A / np.sqrt(np.sum(A * A, axis=1, keepdims=True)) * b) ** 2


def of_each(A, c):
    return np.sum(np.sum(np.tanh(A / c[:, None]), axis=1) ** 2)


def mixed(A, c):
    return np.sum((np.sin(A) * A / c[:, None] + A * c[:, None]) ** 3)


@pytest.mark.parametrize("f, second", [(unit_rows, 4), (of_each, 5), (mixed, 5)])
@pytest.mark.compile
def test_what_is_divided_by_the_same_is_divided_after_the_loop(f, second):
    A, b = RNG.normal(size=(5, 4)), 1.0 + RNG.random(second)
    gradient = s2s.jit(s2s.grad(f, (0, 1)))
    for found, wanted in zip(gradient(A, b), s2s.grad(f, (0, 1))(A, b)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    for empty in ((0, 4), (5, 0)):
        given = RNG.normal(size=empty), 1.0 + RNG.random(empty[0] if second == 5 else empty[1])
        for found, wanted in zip(gradient(*given), s2s.grad(f, (0, 1))(*given)):
            np.testing.assert_array_equal(found, wanted)
    text = gradient.lower(A, b).loops
    assert "total += " in text or "total -= " in text, text
    assert not re.search(r"[+-]= .* / ", text), text


def shares(A):
    return np.sum((A / A.sum(axis=1, keepdims=True)) ** 2)


def softmax(A):
    w = np.exp(A - A.max(axis=1, keepdims=True))
    w /= w.sum(axis=-1, keepdims=True)
    return np.sum(w**3)


def squashed(A):
    n = np.sum(A * A, axis=1, keepdims=True)
    return np.sum((A * n / (1 + n)) ** 2)


@pytest.mark.parametrize("f", (shares, softmax, squashed))
def test_terms_that_are_taken_off_a_sum_in_any_order(f):
    A, along, h = RNG.uniform(0.5, 2.0, (4, 3)), RNG.normal(size=(4, 3)), 1e-6
    gradient = s2s.grad(f)
    wanted = (gradient(A + h * along) - gradient(A - h * along)) / (2 * h)

    def along_of(A, along):
        return s2s.jvp(gradient, (A,), (along,))[1]

    text = s2s.jit(along_of).lower(A, along).loops
    module = {}
    exec(text, module)
    np.testing.assert_allclose(module["along_of"](A, along), wanted, rtol=1e-6, atol=1e-8)
    assert f is not shares or "-= " in text
