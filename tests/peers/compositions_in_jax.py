"""The programs and transformations of tests/compositions.py as JAX has them.

Loops are `fori_loop`, `scan`, or Python's where they run over the elements; branches are `cond` or
`where`; what leaves a loop carries a flag on; writes are `.at[...].set`.  JAX's custom_vjp has no
rule for forward mode: where one of the transformations around it is forward, a custom_jvp with the
same derivative stands for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import compositions
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

TWINS: dict[str, Callable] = {}


def twin(f):
    TWINS[f.__name__] = f
    return f


@twin
def logistic_map(x):
    r = 3.0 + 0.5 * jnp.tanh(x[1])
    u = lax.fori_loop(0, 6, lambda _, u: r * u * (1.0 - u), x[0])
    return u + x[2] * u


@twin
def rosenbrock(x):
    def step(i, total):
        return total + 10.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2

    return lax.fori_loop(0, len(x) - 1, step, 0.0)


@twin
def relaxation(x):
    def point(i, u):
        return u.at[i].add(0.3 * jnp.sin(u[i - 1] - 2.0 * u[i] + u[i + 1]))

    u = lax.fori_loop(0, 3, lambda _, u: lax.fori_loop(1, len(x) - 1, point, u), x)
    return jnp.sum(u * u * u)


@twin
def oscillator(x):
    h = 0.1

    def force(q):
        return -q - x[2] * q * q * q

    def step(_, state):
        q, p = state
        k1, l1 = p, force(q)
        k2, l2 = p + 0.5 * h * l1, force(q + 0.5 * h * k1)
        return q + h * k2, p + h * l2

    q, p = lax.fori_loop(0, 3, step, (x[0], x[1]))
    return q * q + p * x[3]


@twin
def horner(x):
    t = x[0] * x[1]
    return lax.scan(lambda y, c: (y * t + c, None), 0.0, x[::-1])[0]


@twin
def newton_root(x):
    a = 1.0 + x[0] * x[0] + x[1] * x[1]
    return lax.fori_loop(0, 12, lambda _, y: 0.5 * (y + a / y), 0.5 * (1.0 + a)) * x[2]


@twin
def branches(x):
    def step(total, v):
        small = functools.partial(
            lax.cond, v > 0.0, lambda: total + jnp.sin(v) * x[0], lambda: total - v * v * total
        )
        return lax.cond(v > 0.3, lambda: total * jnp.exp(0.3 * v), small), None

    return lax.scan(step, 1.0, x)[0]


@twin
def leaving(x):
    total, left, result = 0.0, False, 0.0
    for v in x:
        total = jnp.where(left, total, total + v * v * (1.0 + total))
        leaves = jnp.logical_and(jnp.logical_not(left), total > 0.9)
        result, left = jnp.where(leaves, total * v, result), jnp.logical_or(left, leaves)
    return jnp.where(left, result, -total)


@twin
def skipping(x):
    s, p, left = 0.0, 1.0, False
    for v in x:
        runs = jnp.logical_and(jnp.logical_not(left), v >= 0.0)
        s, p = jnp.where(runs, s + jnp.cos(v) * p, s), jnp.where(runs, p * (1.0 + 0.5 * v), p)
        left = jnp.logical_or(left, jnp.logical_and(runs, p > 2.5))
    return jnp.where(left, s, s * s) * p


@twin
def stencil(x):
    u = jnp.outer(x, x) + 0.1 * x[:, None]
    u = u.at[1:-1, 1:-1].set(
        0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) * u[1:-1, 1:-1]
    )
    return jnp.sum(u * u)


@twin
def recurrence(x):
    w = jnp.array([[0.3, -0.4], [0.5, 0.2]])
    h = lax.fori_loop(0, 3, lambda _, h: jnp.tanh(w @ h + x[2:4] * h), x[:2])
    return jnp.sum(h * h)


@twin
def stacked(x):
    table = jnp.stack([jnp.sin(x * (k + 1)) * x[k] for k in range(3)])
    return jnp.sum(table[0] * table[1] * table[2]) + jnp.sum(table)


@twin
def prefix_products(x):
    y = lax.fori_loop(1, len(x), lambda i, y: y.at[i].multiply(y[i - 1] + 1.0), x)
    y = y.at[0].set(y[-1]).at[-1].set(y[0])
    return jnp.sum(y[::2]) * y[0]


@twin
def through_a_view(x):
    u = x * x
    for i in range(len(x) - 1):
        u = u.at[i + 1].set(u[i + 1] * u[i] + jnp.sin(x[i]))
    return jnp.sum(u * x)


@twin
def logsumexp(x):
    m = lax.scan(lambda m, v: (lax.cond(v > m, lambda: v, lambda: m), None), x[0], x)[0]
    return m + jnp.log(lax.scan(lambda total, v: (total + jnp.exp(v - m), None), 0.0, x)[0])


@twin
def predator_and_prey(x):
    def step(_, state):
        a, b = state
        return a + 0.1 * a * (1.0 - b * x[2]), b - 0.1 * b * (x[3] - a)

    a, b = lax.fori_loop(0, 4, step, (1.0 + x[0] * x[0], 1.0 + x[1] * x[1]))
    return a * b


@twin
def tridiagonal(x):
    n, d, b = len(x), 4.0 + x * x, jnp.sin(x)

    def down(i, state):
        d, b = state
        f = -1.0 / d[i - 1]
        return d.at[i].add(f), b.at[i].add(-f * b[i - 1])

    d, b = lax.fori_loop(1, n, down, (d, b))
    b = b.at[n - 1].divide(d[n - 1])
    for i in range(n - 2, -1, -1):
        b = b.at[i].set((b[i] + b[i + 1]) / d[i])
    return jnp.sum(b * x)


@twin
def scanned(x):
    last, ys = lax.scan(lambda c, v: (jnp.sin(c) * v + c, c * v), x[0], x)
    return last + jnp.sum(ys * ys)


@twin
def nested_calls(x):
    def step(i, total):
        return total * jnp.exp(0.2 * x[i] * x[i + 1]) + x[i] ** 3 * x[i + 1]

    return lax.fori_loop(0, len(x) - 1, step, 0.0)


@twin
def parameters(x):
    h = x[2:4]
    for w, b in ((x[:2], x[2]), (x[1:3], x[3])):
        h = jnp.tanh(h * w + b)
        h = h.at[0].multiply(h[1])
    return h[0] + h[1] * h[1]


# ---------------------------------------------------------------------------------- transformations

FORWARD = {"jvp", "jacfwd", "hessian"}


def _custom_vjp(f):
    ruled = jax.custom_vjp(f)
    ruled.defvjp(lambda x: (f(x), x), lambda x, y_bar: (y_bar * jax.grad(f)(x),))
    return ruled


def _custom_jvp(f):
    ruled = jax.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return ruled


MAKERS: dict[str, Callable] = {
    "grad": lambda f, d: lambda x: jnp.sum(d * jax.grad(f)(x)),
    "jvp": lambda f, d: lambda x: jax.jvp(f, (x,), (jnp.asarray(d),))[1],
    "vjp": lambda f, d: lambda x: jnp.sum(d * jax.vjp(f, x)[1](1.0)[0]),
    "jacfwd": lambda f, d: lambda x: jnp.sum(d * jax.jacfwd(f)(x)),
    "jacrev": lambda f, d: lambda x: jnp.sum(d * jax.jacrev(f)(x)),
    "hessian": lambda f, d, e: lambda x: jnp.sum(d * (jax.hessian(f)(x) @ e)),
    "checkpoint": jax.checkpoint, "jit": jax.jit,
}


def value_in_jax(f: Callable, names: Sequence[str], seed: int) -> float:
    """What JAX finds for `names[0]` of `names[1]` of ... `f`, along the directions that
    `compositions.composed` takes.
    """
    rng, g = np.random.default_rng(seed), TWINS[f.__name__]
    for k, name in reversed(list(enumerate(names))):
        directions = [
            rng.normal(size=len(compositions.X))
            for _ in range(compositions.TRANSFORMATIONS[name][1])
        ]
        if name == "custom_vjp":
            g = _custom_jvp(g) if FORWARD.intersection(names[:k]) else _custom_vjp(g)
        else:
            g = MAKERS[name](g, *directions)
    return float(jax.jit(g)(jnp.asarray(compositions.X)))


def check(f: Callable, names: Sequence[str], seed: int = 0) -> None:
    """AssertionError unless s2s and JAX find the same, to nine digits."""
    jax.config.update("jax_enable_x64", True)
    got, wanted = (
        compositions.composed(f, names, seed)[0](compositions.X.copy()),
        value_in_jax(f, names, seed),
    )
    assert abs(got - wanted) <= 1e-9 * max(1.0, abs(wanted)), (
        f"{' of '.join(names)} of {f.__name__}: {got!r}, JAX: {wanted!r}"
    )
