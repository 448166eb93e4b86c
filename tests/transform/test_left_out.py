"""What np.where does not choose has no part in a derivative, whatever comes between: sums, loops,
calls, derivatives of derivatives.
"""

import numpy as np
import pytest

import s2s

X = np.array([-1.3, 0.5, 2.0, 3.0])
AT = np.array([0.3, -0.7, 1.1, 0.4])


def two_choices(x):
    u = np.sqrt(x)
    return np.where(x > 0, u, 0.0) - np.where(x > 1, u**3, 0.0)


def a_choice_of_what_was_chosen(x):
    u = np.sqrt(x)
    a = np.where(x > 0, u, 0.0)
    b = np.where(x < 1, a, np.sin(u * u))
    return a * b + np.sin(b)


def squares_of_roots(x):
    u = x**0.5
    return np.where(x > 0, np.cos(u**2) * u - np.exp(-np.square(u)), 0.0)


def a_fourth_power_of_a_root(x):
    u = np.sqrt(x)
    a = np.where(x > 0, 3 * u, 1.0)
    return np.where(x < 1, a, -np.sin(u**4)) * a


def one_takes_what_the_other_leaves(x):
    u = np.exp(-x)
    return np.where(x > 0, u, 0.0) + np.where(x > 0, 0.0, u * u)


def numbers_left_out(x):
    u = np.log(x)
    return np.nan_to_num(u * np.sin(u)) + np.where(np.isnan(u), 0.0, u)


def a_loop(x):
    u = np.sqrt(x)
    c = np.exp(u)
    for k in range(3):
        c = c * u + np.sin(c) / (k + 1.0)
        if k == 1:
            c = c + u
    return np.where(x > 0, c * 1e-2, x)


def of_five_steps(x):
    a = np.sqrt(x)
    b = np.log(x) * a
    c = np.exp(-x) + a * np.cos(b)
    for _ in range(3):
        c = np.sin(c) * a + b * np.cos(a)
    return c * a + b * np.tanh(a), a


def a_call(x):
    return np.where(x > 0, of_five_steps(x)[0], of_five_steps(-x)[0])


def two_results_of_a_call(x):
    c, a = of_five_steps(x)
    return np.where(x > 0, c, 0.0) + np.where(x > 1, a, 0.0)


def a_call_of_numbers(x):
    c = x.copy()
    for k in range(len(x)):
        c[k] = np.where(x[k] > 0, of_five_steps(x[k])[0], 1.0)
    return c


def newton(x):
    y = np.sqrt(x)
    k = 0
    while k < 3:
        y = y + 0.15 * (x - y * y) / y
        k += 1
    return y * np.log(x)


def two_calls_that_loop(x):
    return np.where(x > 0.6, newton(x), x) + np.where(x > 0, newton(x) * 0.1, 0.0)


def of_complex_numbers(x):
    u = np.sqrt(x)
    return np.real(np.where(x > 0, (1.0 + 2.0j) * u, 0.0) + np.where(x > 1, u**2 * 1j, 0.0))


def roots_below_zero(x):
    return np.where(x > 0, np.sqrt(x) + x**1.5 + np.log(x), np.exp(-x) / x)


WITHOUT_LOOPS = [
    two_choices,
    a_choice_of_what_was_chosen,
    squares_of_roots,
    a_fourth_power_of_a_root,
    one_takes_what_the_other_leaves,
    numbers_left_out,
    roots_below_zero,
]
WITH_LOOPS = [
    a_loop,
    a_call,
    two_results_of_a_call,
    a_call_of_numbers,
    two_calls_that_loop,
    of_complex_numbers,
]


def along(f):
    """The derivative of `f` along AT, by a function that calls it and its gradient."""
    def loss(x):
        return np.sum(f(x) * AT)

    def slope(x):
        return np.sum(s2s.grad(loss, argnums=(0,))(x)[0] * AT)

    return loss, slope


def differences(f, x, step=1e-5):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("f", WITHOUT_LOOPS + WITH_LOOPS)
def test_what_is_left_out_has_no_influence(f):
    loss, _ = along(f)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.grad(loss)(X), differences(loss, X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("f", WITHOUT_LOOPS)
def test_what_is_left_out_has_none_on_slopes(f):
    _, slope = along(f)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.grad(slope)(X), differences(slope, X), rtol=1e-5, atol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", [two_choices, a_loop, a_call, a_call_of_numbers])
def test_what_is_left_out_in_native_code(f):
    loss, slope = along(f)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.jit(s2s.grad(loss))(X), s2s.grad(loss)(X), rtol=1e-12)
        if f in WITHOUT_LOOPS:
            np.testing.assert_allclose(s2s.jit(s2s.grad(slope))(X), s2s.grad(slope)(X), rtol=1e-10)


def test_lengths_that_meet_hide_no_choice():
    def loss(x, w):
        return np.sum(np.where(x > 0, np.sqrt(w * x) * w, 0.0))

    with np.errstate(all="ignore"):
        found = s2s.grad(loss, argnums=(0, 1))(X, np.ones(4))
    np.testing.assert_allclose(found, ([0.0, *0.5 / np.sqrt(X[1:])], [0.0, *1.5 * np.sqrt(X[1:])]))


def mixes(x):
    u = np.log(x)
    for _ in range(2):
        u = u * np.sum(x) - np.cumsum(x)[::-1]
    return u


def attraction(r, s):
    q = (s / r) ** 6
    return 4 * (q * q - q) + np.exp(-r) * 0.1 / r + np.sqrt(r) * np.log(r)


def test_pairs_of_which_some_are_left_out():
    def energy(p, s):
        r = np.linalg.norm(p[:, None] - p[None], axis=-1)
        return np.sum(np.where((r > 0) & (r < 2.5), attraction(r, s), 0.0))

    def each_pair(p, s):
        total = 0.0
        for i in range(len(p)):
            for j in range(len(p)):
                r = np.sqrt(np.sum((p[i] - p[j]) ** 2)) if i != j else 0.0
                if 0 < r < 2.5:
                    total += attraction(r, s)
        return total

    p = np.random.default_rng(0).normal(size=(5, 3))
    with np.errstate(all="ignore"):
        found = s2s.grad(energy, argnums=(0, 1))(p, 0.8)
    for x, y in zip(found, s2s.grad(each_pair, argnums=(0, 1))(p, 0.8)):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def test_what_is_mixed_is_not_left_out():
    def loss(x):
        return np.sum(np.where(x > 1, mixes(x), 0.0))

    s2s.check_grads(loss, (np.array([0.2, 0.5, 2.0, 3.0]),), order=1)


def test_a_slope_that_is_infinite_is_not_hidden():
    def loss(x):
        u = np.sqrt(x)
        return np.sum(u**3 + np.where(x > 1, u, 0.0))

    with np.errstate(all="ignore"):
        assert np.isnan(s2s.grad(loss)(np.array([-1.0, 2.0]))[0])


def picked(x):
    r = np.sqrt(x)
    return np.sum(r[x > 0] ** 3) + np.sum(np.sin(r * x)[x > 1])


KEEP = X > 0


def picked_by_another(x):
    return np.sum(np.sqrt(x)[KEEP] * AT[KEEP])


def rows_picked(x):
    rows = np.log(x)[:, None] * np.ones(2) / x[:, None]
    rows = np.sqrt(rows * rows + 1.0)
    return np.sum(np.sin(rows[x > 0]))


def overwritten(x):
    r = np.log(x) * x
    r[x <= 0] = 1.0
    return np.sum(r * r * AT)


def picked_of_a_call(x):
    return np.sum(of_five_steps(x)[0][x > 0] * 1e-2)


def read_on_some_paths(x):
    total = 0.0
    for k in range(len(x)):
        r = np.sqrt(x[k]) * np.cos(x[k])
        w = np.log(x[k]) / r
        if x[k] > 1:
            total = total + r * w
        elif x[k] > 0:
            total = total + 2 * r - w
    return total


def chosen_by_number(x):
    total = 0.0
    for k in range(len(x)):
        r = np.sqrt(x[k]) + of_five_steps(x[k])[0] * 1e-2
        total += r * AT[k] if x[k] > 0 else 0.0
    return total


PICKED = [
    picked,
    picked_by_another,
    rows_picked,
    overwritten,
    picked_of_a_call,
    read_on_some_paths,
    chosen_by_number,
]


@pytest.mark.parametrize("f", PICKED)
def test_what_is_not_picked_or_not_read_has_no_influence(f):
    with np.errstate(all="ignore"):
        slope = s2s.grad(f)(X)
        np.testing.assert_allclose(slope, differences(f, X), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(np.stack([X, X]))[1], slope, rtol=1e-12)
        small = s2s.grad(f)(X.astype("float32"))
        np.testing.assert_allclose(small, slope, rtol=1e-4, atol=1e-6)
        if f in (picked, picked_by_another, overwritten, read_on_some_paths):
            second = s2s.grad(lambda x: np.sum(s2s.grad(f)(x) * AT))(X)
            np.testing.assert_allclose(
                second, differences(lambda x: np.sum(s2s.grad(f)(x) * AT), X), rtol=1e-5, atol=1e-8
            )


@pytest.mark.compile
@pytest.mark.parametrize("f", PICKED)
def test_what_is_not_picked_or_not_read_in_native_code(f):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(s2s.jit(s2s.grad(f))(X), s2s.grad(f)(X), rtol=1e-12)


def test_what_both_masks_pick_is_left_as_it_is():
    def loss(x):
        r = np.sqrt(x)
        return np.sum(r[x > 1]) + np.sum(r[~(x > 1)] ** 2)

    with np.errstate(all="ignore"):
        assert np.isnan(s2s.grad(loss)(X)[0])
