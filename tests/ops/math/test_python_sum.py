"""sum() of numbers that stand one by one: to the last bit what this Python gives."""

import numpy as np
import pytest

import s2s


def mixed(x):
    xs = [x, x * x, 3.0 * x, 0.1]
    return sum(xs) * len(xs)


def with_start(x):
    return sum([x, 1, 0.1, x**3, 0.7], 0.1)


def known(x):
    return sum([0.1, 0.1, 0.1, 0.1]) * x


def numpy_in_between(x):
    return sum((x, x, x, np.float64(0.1), x, x, x))


def two(x):
    return sum([x, 0.1]) + sum([0.3 * x])


def comprehension(x):
    return sum([x * c for c in (0.1, 0.2, 0.3, 0.7)])


def huge(x):
    return sum([1e16, x, -1e16, x * x])


PROGRAMS = [mixed, with_start, known, numpy_in_between, two, comprehension, huge]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_adds_up_as_this_python_does(f):
    for x in (0.3, 0.7, 1.9, 123.456, 1e-9):
        assert s2s.value_and_grad(f)(x)[0] == f(x)
    if f is not huge:  # whose differences have no digits
        s2s.check_grads(f, (0.7,), order=2)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_lanes_agree(f):
    xs = np.array([0.3, 0.7, 1.9])
    np.testing.assert_allclose(
        s2s.vmap(f)(xs), [f(x) for x in xs.tolist()], rtol=1e-15, atol=2.0 if f is huge else 0
    )


def test_cotangents_do_not_see_the_cancellation():
    assert s2s.grad(huge)(0.5) == 2.0


def test_numpys_numbers_are_added_plainly():
    x = np.float64(0.1)
    assert s2s.value_and_grad(lambda x: sum([x, x, x]))(x)[0] == 0 + x + x + x


@pytest.mark.compile
def test_compiled():
    np.testing.assert_allclose(
        s2s.jit(s2s.value_and_grad(mixed))(0.7), s2s.value_and_grad(mixed)(0.7), rtol=1e-15
    )
