"""Gradients of array programs are those of JAX and of autograd, by which the fixtures are tested,
too.
"""

import numpy as np

import s2s


def logistic(w, x, y):
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z) + 0.1 * np.sum(w * w)


def data():
    rng = np.random.default_rng(3)
    return rng.normal(size=4), rng.normal(size=(20, 4)), (rng.random(20) < 0.5).astype(float)


def test_logistic_regression_against_jax(jax):
    jnp = jax.numpy

    def theirs(w, x, y):
        z = x @ w
        return jnp.sum(jnp.logaddexp(0.0, z) - y * z) + 0.1 * jnp.sum(w * w)

    expected = jax.grad(theirs, argnums=(0, 1))(*data())
    for got, wanted in zip(s2s.grad(logistic, argnums=(0, 1))(*data()), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_logistic_regression_against_autograd(autograd):
    import autograd.numpy as anp

    def theirs(w, x, y):
        z = anp.dot(x, w)
        return anp.sum(anp.logaddexp(0.0, z) - y * z) + 0.1 * anp.sum(w * w)

    expected = autograd.grad(theirs, argnum=[0, 1])(*data())
    for got, wanted in zip(s2s.grad(logistic, argnums=(0, 1))(*data()), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
