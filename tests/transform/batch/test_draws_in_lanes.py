"""Draws under vmap: lanes draw one after another; a lane that makes its generator draws what every
lane draws.
"""

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


def once(x, rng):
    return x[0] * rng.normal()


def twice(x, rng):
    a = rng.normal(size=3) * x[0]
    return np.sum(np.sin(a) * a) * rng.random() + x[1]


def in_some_lanes(x, rng):
    if x[0] > 0.5:
        return rng.normal() * x[0]
    return x[1] * (rng.random() + rng.random())


def at_a_rate(x, rng):
    return rng.poisson(np.exp(x[0])) * x[1] + rng.normal(x[2], np.exp(x[3]))


def as_many_as_there_are(x, rng):
    return rng.normal(size=len(x)) * x


def in_a_helper(x, rng):
    return walk(x, rng) * walk(x + 1.0, rng)


def made_in_some_lanes(x, rng):
    rng = np.random.default_rng(3)
    y = rng.normal()
    return rng.poisson(np.exp(x[0])) * x[1] + y * rng.normal() if x[0] > 0.5 else x[1] * y


TURNS = (once, twice, in_some_lanes, at_a_rate, as_many_as_there_are, in_a_helper,
         made_in_some_lanes)


@pytest.mark.parametrize("f", TURNS)
def test_lanes_draw_one_after_another(f):
    """As a loop over lanes does, in both modes; the generator ends where it ends there."""
    def total(x, rng):
        return np.sum(f(x, rng))

    over, gradient = s2s.vmap(f, (0, None)), s2s.grad(total)
    for lane, lanes in ((f, over), (gradient, s2s.vmap(gradient, (0, None))),
                        (gradient, s2s.grad(lambda x, rng: np.sum(over(x, rng))))):
        rng, other = np.random.default_rng(1), np.random.default_rng(1)
        expected = np.stack([lane(x, other) for x in X])
        np.testing.assert_allclose(lanes(X, rng), expected, rtol=1e-12, atol=1e-13)
        assert rng.bit_generator.state == other.bit_generator.state


GENERATOR = np.random.default_rng(5)


def of_the_module(x):
    return x * GENERATOR.normal()


def test_generators_of_the_module_and_axes_of_their_own():
    numbers = np.random.default_rng(5).normal(size=12)
    np.testing.assert_array_equal(s2s.vmap(of_the_module)(X[:, 0]), X[:, 0] * numbers[:3])
    draw = s2s.vmap(lambda rng: rng.normal(), in_axes=None, axis_size=4)
    np.testing.assert_array_equal(draw(np.random.default_rng(5)), numbers[:4])
    found = s2s.vectorize(lambda x, rng: x * rng.normal())(X, np.random.default_rng(5))
    np.testing.assert_array_equal(found, X * numbers.reshape(3, 4))


def test_lanes_draw_before_and_after_they_meet():
    def f(x, rng):
        return s2s.lax.psum(x * rng.normal(), "i") * rng.normal()

    z = np.random.default_rng(2).normal(size=6)
    np.testing.assert_allclose(
        s2s.vmap(f, (0, None), axis_name="i")(X[:, 0], np.random.default_rng(2)),
        np.sum(X[:, 0] * z[:3]) * z[3:])


def test_a_jacobian_whose_directions_would_draw_differently():
    @s2s.custom_jvp
    def rule(x, rng):
        return x

    rule.defjvp(lambda xs, dots: (xs[0], dots[0] * xs[1].poisson(np.exp(dots[0]))))
    with pytest.raises(UnsupportedError, match="lanes that draw differently from one generator"):
        s2s.jacfwd(lambda x, rng: np.sum(x) * rule(x[0], rng))(X[0], np.random.default_rng(1))


@pytest.mark.compile
@pytest.mark.parametrize("f", [made_inside, handed_on, in_a_branch])
def test_compiled_lanes_draw_the_same(f):
    np.testing.assert_allclose(s2s.jit(s2s.vmap(s2s.grad(f)))(X), [differences(f, x) for x in X],
                               rtol=1e-6, atol=1e-9)
