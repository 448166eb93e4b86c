"""scan, cond and their kin against those of JAX: values, gradients, Jacobians, second
derivatives.
"""

import numpy as np
import pytest

import s2s

RNG = np.random.default_rng(11)
W, H, XS, US = (
    RNG.normal(size=(3, 3)),
    RNG.normal(size=3),
    RNG.normal(size=(5, 3)),
    RNG.normal(size=5),
)


def programs(np, lax):
    """The same programs for s2s and NumPy, and for JAX."""
    def recurrent(W, h, xs, us):
        def step(h, x):
            h = np.tanh(W @ h + x[0] * x[1])
            return h, (h, np.sum(h))
        h, ys = lax.scan(step, h, (xs, us))
        return np.sum(ys[0] ** 2) + np.sum(h) + np.sum(ys[1] * us)

    def backwards(x, us):
        last, ys = lax.scan(lambda c, u: (np.sin(c) * u, c * u), x, us, reverse=True)
        return last + np.sum(ys * us)

    def nested(x, us):
        def outer(c, u):
            c, ys = lax.scan(lambda d, v: (d * v, np.sin(d)), c, us)
            return c + u, np.sum(ys)
        c, ys = lax.scan(outer, x, us)
        return c * np.sum(ys ** 2)

    def loops(x, us):
        a = lax.fori_loop(0, 4, lambda i, v: v * x + np.sin(i), 1.0)
        return (
            a
            * lax.cond(x > 0, lambda v: v * v, lambda v: -v, x)
            * lax.switch(2, [np.sin, np.cos, np.tanh], x)
        )

    def linear(x, us):
        def after(a, b):
            return a[0] * b[0], b[0] * a[1] + b[1]
        a, b = lax.associative_scan(after, (us, us * x))
        return np.sum(a) + np.sum(b ** 2)

    return {
        "recurrent": (recurrent, (W, H, XS, US)),
        "backwards": (backwards, (0.3, US)),
        "nested": (nested, (0.3, US)),
        "loops": (loops, (0.7, US)),
        "linear": (linear, (0.3, US)),
    }


@pytest.mark.parametrize("name", ["recurrent", "backwards", "nested", "loops", "linear"])
def test_derivatives(jax, name):
    f, args = programs(np, s2s)[name]
    theirs, _ = programs(jax.numpy, jax.lax)[name]
    np.testing.assert_allclose(f(*args), theirs(*args), rtol=1e-12)
    wrt = tuple(range(len(args)))
    for got, expected in zip(s2s.grad(f, wrt)(*args), jax.grad(theirs, wrt)(*args)):
        np.testing.assert_allclose(got, expected, rtol=1e-10)
    got, expected = s2s.hessian(f)(*args), jax.hessian(theirs)(*args)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
