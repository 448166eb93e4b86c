"""`s2s.jax_function` against the same programs in jax.numpy, to second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import s2s


def network(np):
    def f(p, x):
        h = np.tanh(p["W"] @ x + p["b"])
        for _ in range(2):
            h = h * np.sin(h + p["b"])
        return {"y": h, "s": np.sum(h**2)}

    return f


def arguments(jnp):
    rng = np.random.default_rng(0)
    p = {"W": jnp.asarray(rng.normal(size=(2, 3))), "b": jnp.array([0.1, 0.2])}
    return p, jnp.asarray(rng.normal(size=3)), jnp.asarray(rng.normal(size=(4, 3)))


def agree(jax, found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)


def root(a):
    """The square root, by a loop in which JAX has no reverse mode."""
    x = a
    while abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)
    return x


@pytest.mark.parametrize("name", ["value", "jacrev", "hessian"])
def test_as_jax(jax, name):
    f, g = s2s.jax_function(network(np)), network(jax.numpy)
    p, x, xs = arguments(jax.numpy)
    of = getattr(jax, name, lambda f: f)
    expected = jax.jit(of(g))(p, x)
    agree(jax, of(f)(p, x), expected)
    agree(jax, jax.jit(of(f))(p, x), expected)
    lanes = [jax.jit(jax.vmap(of(h), in_axes=(None, 0)))(p, xs) for h in (f, g)]
    agree(jax, *lanes)


def test_derivatives_of_lanes(jax):
    p, _, xs = arguments(jax.numpy)

    def total(f):
        def of_lanes(b):
            return jax.numpy.sum(jax.vmap(lambda x: f({**p, "b": b}, x)["y"])(xs) ** 3)

        return jax.grad(of_lanes)(p["b"])

    agree(jax, total(s2s.jax_function(network(np))), total(network(jax.numpy)))


def test_reverse_mode_through_a_loop_that_decides_when_to_stop(jax):
    f = s2s.jax_function(root)
    a = jax.numpy.array([1.5, 2.0, 5.0])
    assert np.allclose(jax.jit(jax.vmap(jax.grad(f)))(a), 0.5 * a**-0.5)
    assert np.allclose(jax.vmap(jax.jacfwd(jax.jacrev(jax.grad(f))))(a), 0.375 * a**-2.5)


def test_what_is_no_array_passes_and_integers_have_no_derivative(jax):
    jnp = jax.numpy

    @s2s.jax_function
    def f(x, n, how):
        y = x ** n if how == "power" else x
        return y, np.argmax(y), how

    y, which, how = f(jnp.array([1.0, 3.0, 2.0], jnp.float32), 2, "power")
    assert (y.dtype, which.dtype, how) == ("float32", "int64", "power") and which == 1
    slope = jax.grad(lambda x: f(x, jnp.array(3), "power")[0].sum())(jnp.array([1.0, 2.0]))
    assert np.allclose(slope, [3.0, 12.0])
    assert np.allclose(f(np.ones(2), n=1, how="")[0], 1.0)


@pytest.mark.compile
def test_native_code(jax):
    f = s2s.jax_function(s2s.jit(lambda x: np.sum(np.sin(x) * x)))
    x = jax.numpy.linspace(0.0, 1.0, 50)
    found = jax.jit(lambda x: jax.grad(f)(x) + jax.lax.fori_loop(0, 2, lambda _, y: f(y) * y, x))(x)

    def g(x):
        return jax.numpy.sum(jax.numpy.sin(x) * x)

    assert np.allclose(found, jax.grad(g)(x) + g(g(x) * x) * g(x) * x)


def test_shapes_that_data_decides_are_refused(jax):
    with pytest.raises(s2s.UnsupportedError, match="a shape that depends on what x holds"):
        s2s.jax_function(lambda x: x[x > 0])(jax.numpy.ones(3))
