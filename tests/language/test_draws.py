"""Random numbers: drawn once, in the forward sweep, in the user's order, from the caller's own
generator, or from one of NumPy's legacy states.
"""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.3, -0.7, 1.2])


def walk(x, rng):
    total = 0.0
    for _ in range(4):
        z = rng.standard_normal()
        if z > 0:
            total = total + np.sum(x * z) ** 2
        else:
            total = total + np.sum(np.sin(x) * rng.random(3))
    return total


def reparametrised(x, rng):
    mean, spread = x[:2], np.exp(x[1:])
    z = rng.normal(mean, spread)
    noise = rng.uniform(-1.0, x[0], size=(2, 3))
    return (
        np.sum(z**2)
        + np.sum(noise @ x)
        + rng.exponential(x[2]) * rng.laplace(x[0], 2.0)
        + rng.gumbel(scale=abs(x[1]))
    )


def stochastic_descent(x, rng):
    w = x.copy()
    data = np.linspace(0.0, 1.0, 10)
    for _ in range(2):
        for i in rng.permutation(10):
            w = w - 0.1 * np.sin(w * data[i])
    few = data[rng.choice(10, 4, replace=False)]
    return (
        np.sum(w**2) * w[rng.integers(0, 3)]
        + np.sum(few * rng.choice(x, 4))
        + rng.choice(4, p=np.full(4, 0.25)) * x[0]
    )


def shuffles(x, rng):
    y = x * 2
    rng.shuffle(y)
    return (
        y[0] * y[1] ** 2
        + rng.poisson(3.0) * x[0]
        + rng.standard_gamma(2.0) * np.sum(rng.permutation(x)[:2])
    )


def stops_by_itself(x, rng):
    v = x[0]
    while rng.random() < 0.8:
        v = v * np.sin(x[1]) + rng.normal()
    return v * v


def passes_it_on(x, rng):
    def draw(generator, n):
        return generator.standard_normal(n)

    normal = rng.normal
    rng.random()
    rows = [draw(rng, 3) for _ in range(2)]
    return np.sum(rows[0] * x) ** 2 + np.sum(rows[1] * x) * normal(x[0], 2.0)


def own_generator(x):
    rng = np.random.default_rng(5)
    return np.sum(x * rng.standard_normal(3)) ** 2 * rng.random()


PROGRAMS = [walk, reparametrised, stochastic_descent, shuffles, stops_by_itself, passes_it_on]
named = {"ids": lambda f: f.__name__}


def seeded(f):
    """`f`, with a generator of its own."""
    return lambda x: f(x, np.random.default_rng(3))


def states(f, *args):
    rng = np.random.default_rng(3)
    result = f(X.copy(), rng, *args)
    return result, rng.bit_generator.state


@pytest.mark.parametrize("f", PROGRAMS, **named)
def test_draws_follow_python(f):
    expected, state = states(f)
    (value, slope), after = states(s2s.value_and_grad(f))
    assert value == expected and after == state
    (value, value_dot), after = states(s2s.jvp(f), np.ones(3), 0.0)
    assert value == expected and after == state
    assert np.isclose(value_dot, np.sum(slope))
    assert states(s2s.jvp(s2s.grad(f)), np.ones(3), 0.0)[1] == state
    differences = [
        (states(lambda x, rng: f(x + d, rng))[0] - states(lambda x, rng: f(x - d, rng))[0]) / 2e-6
        for d in 1e-6 * np.eye(3)
    ]
    assert np.allclose(slope, differences, rtol=1e-5)


def test_a_generator_made_inside_is_made_anew_in_each_call():
    slope = s2s.grad(own_generator)
    assert np.array_equal(slope(X), slope(X))
    assert s2s.value_and_grad(own_generator)(X)[0] == own_generator(X)


def test_second_order_of_draws():
    differences = [
        (
            states(s2s.grad(walk))[0] * 0
            + s2s.grad(walk)(X + d, np.random.default_rng(3))
            - s2s.grad(walk)(X - d, np.random.default_rng(3))
        )
        / 2e-6
        for d in 1e-6 * np.eye(3)
    ]
    assert np.allclose(
        states(s2s.jvp(s2s.grad(walk)), np.ones(3), 0.0)[0][1],
        np.sum(differences, axis=0),
        rtol=1e-5,
    )


GLOBAL = np.random.default_rng(1)


@pytest.mark.lengthy
def test_a_global_generator_is_drawn_from():
    def noisy(x):
        return np.sum(x * GLOBAL.standard_normal(3))

    slope = s2s.grad(noisy)
    reference = np.random.default_rng(1)
    for _ in range(2):
        assert np.array_equal(slope(X), reference.standard_normal(3))
    assert GLOBAL.bit_generator.state == reference.bit_generator.state


@pytest.mark.compile
@pytest.mark.parametrize("f", [reparametrised, stochastic_descent, stops_by_itself], **named)
def test_compiled_draws_follow_python(f):
    (value, slope), after = states(s2s.jit(s2s.value_and_grad(f)))
    expected, state = states(f)
    assert np.isclose(value, expected, rtol=1e-13) and after == state
    assert np.allclose(slope, states(s2s.grad(f))[0])


@pytest.mark.compile
def test_a_generator_made_in_compiled_code():
    assert np.isclose(s2s.jit(own_generator)(X), own_generator(X), rtol=1e-13)


# ----------------------------------------------------------------------------- legacy random states

LEGACY = np.random.RandomState(4)


def shared_state(x):
    np.random.seed(3)
    y = x + np.random.randn(3) * np.random.rand()
    return np.sum(y**2) * np.random.normal(x[0], 2.0) + np.random.uniform(0.0, x[1])


def shared_state_unseeded(x):
    total = 0.0
    while np.random.random_sample() < 0.8:
        total += x[np.random.randint(3)] ** 2 * np.random.exponential(abs(x[0]))
    return total + x[0] * np.random.sample() + x[1] * np.random.ranf()


def random_state_of_its_own(x):
    rng = np.random.RandomState(5)
    kept = x[rng.permutation(3)]
    for _ in range(4):
        z = rng.randn()
        if z > 0:
            kept = kept * z
        else:
            kept = kept + np.sin(x) * rng.random_sample(3) * rng.choice(5)
    return np.sum(kept**2) + np.sum(x * rng.choice(x, 3)) * rng.poisson(2.0)


def captured_state(x):
    y = x * 2
    LEGACY.shuffle(y)
    return y[0] * y[1] ** 2 * LEGACY.randn(2, 3)[0, 1] * LEGACY.gamma(2.0) + LEGACY.beta(2.0, 1.0)


def draws_from(x, rng):
    return np.sum(x * rng.standard_normal(3)) ** 2 * rng.laplace(x[0], 2.0) + rng.gumbel()


def handed_on(x):
    return draws_from(x, LEGACY) + draws_from(x, np.random)


OF_STATES = [
    shared_state,
    shared_state_unseeded,
    random_state_of_its_own,
    captured_state,
    handed_on,
]


def from_seeds(f, *args):
    """What `f` returns, with the states that it leaves."""
    np.random.seed(1)
    LEGACY.seed(2)
    result = f(X.copy(), *args)
    return result, repr(np.random.get_state()), repr(LEGACY.get_state())


@pytest.mark.parametrize("f", OF_STATES, **named)
def test_draws_of_legacy_states_follow_python(f):
    expected, *states = from_seeds(f)
    (value, slope), *after = from_seeds(s2s.value_and_grad(f))
    assert value == expected and after == states
    (value, value_dot), *after = from_seeds(s2s.jvp(f), np.ones(3))
    assert value == expected and after == states and np.isclose(value_dot, np.sum(slope))
    near = [(from_seeds(lambda x: f(x + d))[0] - from_seeds(lambda x: f(x - d))[0]) / 2e-6
            for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, near, rtol=1e-5, atol=1e-8)
    curved = from_seeds(s2s.hvp(f), np.ones(3))[0]
    near = (from_seeds(lambda x: s2s.grad(f)(x + 1e-6))[0]
            - from_seeds(lambda x: s2s.grad(f)(x - 1e-6))[0]) / 2e-6
    np.testing.assert_allclose(curved, near, rtol=1e-5, atol=1e-8)


@pytest.mark.compile
@pytest.mark.parametrize("f", OF_STATES, **named)
def test_compiled_draws_of_legacy_states_follow_python(f):
    expected, *states = from_seeds(f)
    (value, slope), *after = from_seeds(s2s.jit(s2s.value_and_grad(f)))
    assert np.isclose(value, expected, rtol=1e-13) and after == states
    np.testing.assert_allclose(slope, from_seeds(s2s.grad(f))[0], rtol=1e-12)


@pytest.mark.lengthy
def test_a_legacy_state_is_an_argument():
    given, same = np.random.RandomState(8), np.random.RandomState(8)
    value, slope = s2s.value_and_grad(draws_from)(X, given)
    assert value == draws_from(X, same) and repr(given.get_state()) == repr(
        same.get_state())


def test_legacy_draws_are_shown_by_the_methods_of_a_state():
    text = s2s.grad(shared_state).lower(X).source
    assert "np_random.seed(3)" in text and "np_random.standard_normal(3)" in text


REFUSED = [
    (
        lambda x, rng: np.sum(x * np.random.zipf(3.0, 3)),
        "the method zipf of a generator",
        "draw numbers with normal, uniform",
    ),
    (
        lambda x, rng: x[0] * np.random.RandomState().rand(),
        "np.random.RandomState() without a seed",
        "give it a seed",
    ),
    (
        lambda x, rng: np.random.seed(None) or x[0] * np.random.rand(),
        "seed() without a seed",
        "give it a seed",
    ),
    (
        lambda x, rng: np.sum(x * np.random.randint(3, size=3, dtype=np.int32)),
        "randint of another dtype than int64",
        "convert with .astype",
    ),
    (
        lambda x, rng: rng.standard_gamma(x[0]),
        "rng.standard_gamma has no derivative",
        "s2s.stop_gradient",
    ),
    (
        lambda x, rng: rng.bytes(3),
        "the method bytes of a generator",
        "draw numbers with normal, uniform",
    ),
    (
        lambda x, rng: np.random.default_rng().normal() * x[0],
        "default_rng() without a seed",
        "pass a generator as an argument",
    ),
    (
        lambda x, rng: np.sum(rng.poisson(x) * x),
        "rng.poisson with array parameters",
        "draw for each number in a loop",
    ),
]


@pytest.mark.parametrize("f, message, remedy", REFUSED)
def test_what_cannot_be_drawn_is_refused(f, message, remedy):
    with pytest.raises(s2s.S2SError) as caught:
        s2s.grad(f)(np.abs(X), np.random.default_rng(0))
    assert message in str(caught.value) and remedy in str(caught.value) and "^" in str(caught.value)


def test_the_remedies_work():
    rng = np.random.default_rng(0)
    assert (
        s2s.grad(lambda x, rng: rng.standard_gamma(s2s.stop_gradient(x[0])) * x[1])(np.abs(X), rng)[
            1
        ]
        > 0
    )

    def counted(x, rng):
        total = 0.0
        for v in x:
            total = total + rng.poisson(v) * v
        return total

    counts = s2s.grad(counted)(np.abs(X), rng)
    reference = np.random.default_rng(0)
    reference.standard_gamma(0.3)
    assert np.array_equal(counts, [reference.poisson(v) for v in np.abs(X)])


def test_judged_with_a_generator_of_its_own():
    judge(lambda x: own_generator(x) + np.sum(x), X, second=False)


def test_a_negative_scale_raises_as_numpy_says():
    def noisy(x, rng):
        return rng.normal(0.0, x[0]) + np.sum(rng.exponential(x))

    for f in (noisy, s2s.grad(noisy)):
        with pytest.raises(ValueError, match="scale < 0"):
            f(-X, np.random.default_rng(0))
        with pytest.raises(ValueError, match="scale < 0"):
            f(X, np.random.default_rng(0))
    assert np.all(np.isfinite(s2s.grad(noisy)(np.abs(X), np.random.default_rng(0))))


def test_a_pullback_draws_what_the_value_has_drawn():
    value, pullback = s2s.vjp(lambda x, rng: x * rng.normal(), 2.0, np.random.default_rng(1))
    drawn = np.random.default_rng(1).normal()
    assert value == 2.0 * drawn
    assert pullback(1.0)[0] == pullback(1.0)[0] == drawn
