"""Draws under vmap: a lane that makes its generator draws what every lane draws."""

import numpy as np
import pytest
from differences import STEP, differences

import s2s
from s2s.errors import UnsupportedError

X = np.linspace(0.1, 1.3, 12).reshape(3, 4)


def made_inside(x):
    rng = np.random.default_rng(3)
    z = rng.normal(size=4)
    return np.sum(np.exp(x * z)) + rng.random() * x[0]


def walk(x, rng):
    for _ in range(3):
        x = x + rng.normal() * np.sin(x)
    return np.sum(x)


def handed_on(x):
    return walk(x * 2, np.random.default_rng(1))


def in_a_branch(x):
    if x[0] > 0.5:
        rng = np.random.default_rng(3)
        return rng.normal() * x[0]
    return x[1]


def legacy(x):
    return np.sum(np.exp(x * np.random.RandomState(3).randn(4)))


def seeded(x, k):
    return np.random.default_rng(k).normal() * x[0]


@pytest.mark.parametrize("f", [made_inside, handed_on, in_a_branch, legacy])
def test_each_lane_draws_the_same(f):
    slopes = np.array([differences(f, x) for x in X])
    np.testing.assert_allclose(s2s.vmap(f)(X), [f(x) for x in X], rtol=1e-13)
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(X), slopes, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(s2s.jacfwd(f)(X[2]), slopes[2], rtol=1e-6, atol=1e-9)
    second = np.array([(s2s.grad(f)(X[2] + e) - s2s.grad(f)(X[2] - e)) / (2 * STEP)
                       for e in STEP * np.eye(4)])
    np.testing.assert_allclose(s2s.hessian(f)(X[2]), second, rtol=1e-5, atol=1e-8)


def test_lanes_seed_their_own():
    seeds = np.array([4, 9, 1])
    np.testing.assert_array_equal(s2s.vmap(seeded)(X, seeds),
                                  [seeded(x, k) for x, k in zip(X, seeds)])


def test_a_jacobian_draws_as_often_as_its_primal():
    def f(x, rng):
        return x * rng.normal(size=4) * rng.random()

    expected = np.random.default_rng(7)
    scales = expected.normal(size=4) * expected.random()
    rng = np.random.default_rng(7)
    np.testing.assert_allclose(s2s.jacfwd(f)(X[0], rng), np.diag(scales), rtol=1e-14)
    assert rng.bit_generator.state == expected.bit_generator.state


def of_the_callers(x):
    return x[0] * GENERATOR.normal()


def under_a_condition(x):
    rng = np.random.default_rng(3)
    return rng.normal() * x[0] if x[0] > 0.5 else x[1]


def of_its_own_rate(x):
    rng = np.random.default_rng(3)
    return rng.poisson(np.exp(x[0])) * x[1]


def in_a_helper(x):
    return walk(x, GENERATOR)


GENERATOR = np.random.default_rng(5)


@pytest.mark.parametrize("f", [of_the_callers, in_a_helper, under_a_condition, of_its_own_rate])
def test_lanes_that_would_take_turns_are_refused(f):
    before = GENERATOR.bit_generator.state
    with pytest.raises(UnsupportedError, match="lanes would take turns"):
        s2s.vmap(f)(X)
    assert GENERATOR.bit_generator.state == before


@pytest.mark.compile
@pytest.mark.parametrize("f", [made_inside, handed_on, in_a_branch])
def test_compiled_lanes_draw_the_same(f):
    np.testing.assert_allclose(s2s.jit(s2s.vmap(s2s.grad(f)))(X), [differences(f, x) for x in X],
                               rtol=1e-6, atol=1e-9)
