"""Functions with rules of their own, feature by feature, against JAX: one program, run with both.

Each feature is a function of a namespace with the transformations and of one with NumPy's
functions; it returns a tree of results, which must agree.  docs/rules.md has the table.
"""

import functools
import types

import numpy as np
import pytest

import s2s

FEATURES = []


def feature(f):
    FEATURES.append(f)
    return f


def of_s2s():
    return s2s, np


def of_jax(jax):
    names = types.SimpleNamespace(
        custom_jvp=jax.custom_jvp,
        custom_vjp=jax.custom_vjp,
        grad=jax.grad,
        jvp=jax.jvp,
        vjp=jax.vjp,
        vmap=jax.vmap,
        jit=jax.jit,
        jacfwd=jax.jacfwd,
        jacrev=jax.jacrev,
        hessian=jax.hessian,
        value_and_grad=jax.value_and_grad,
        stop_gradient=jax.lax.stop_gradient,
        custom_root=jax.lax.custom_root,
        custom_linear_solve=jax.lax.custom_linear_solve,
        linearize=jax.linearize,
        checkpoint=jax.checkpoint,
        scan=jax.lax.scan,
        cond=jax.lax.cond,
        while_loop=jax.lax.while_loop,
        fori_loop=jax.lax.fori_loop,
    )
    return names, jax.numpy


# --------------------------------------------------------------------------------------- custom_jvp


def _doubled(s, np):
    """sin, with twice its derivative: a rule that shows where it was used."""
    @s.custom_jvp
    def f(x):
        return np.sin(x)

    def rule(primals, tangents):
        x, = primals
        t, = tangents
        return f(x), 2 * np.cos(x) * t

    f.defjvp(rule)
    return f


@feature
def jvp_basic(s, np):
    f = _doubled(s, np)
    return f(3.0), s.jvp(f, (3.0,), (1.0,)), s.grad(f)(3.0)


@feature
def jvp_invariance(s, np):
    @s.custom_jvp
    def f(x):
        return np.cos(2 * x) / 2.0

    def rule(primals, tangents):
        x, = primals
        t, = tangents
        return f(x), 3 * t

    f.defjvp(rule)

    def first(x):
        return s.jvp(f, (x,), (x,))

    def second(x):
        return s.jvp(first, (x,), (x,))

    return first(3.0), second(3.0), s.jvp(second, (3.0,), (3.0,))


@feature
def jvp_rule_is_asked_at_each_level(s, np):
    f = _doubled(s, np)
    return (
        s.grad(s.grad(f))(0.7),
        s.grad(s.grad(s.grad(f)))(0.7),
        s.jvp(s.grad(f), (0.7,), (1.0,)),
        s.hessian(f)(0.7),
    )


@feature
def jvp_of_a_composition(s, np):
    f = _doubled(s, np)

    def g(x):
        return f(f(x) * x) + f(x + 1.0)

    return s.grad(g)(0.3), s.grad(s.grad(g))(0.3), s.jvp(g, (0.3,), (2.0,))


@feature
def jvp_python_control_flow(s, np):
    @s.custom_jvp
    def f(x):
        if x > 0:
            return np.sin(x)
        else:
            return np.cos(x)

    def rule(primals, tangents):
        x, = primals
        t, = tangents
        if x > 0:
            return f(x), 2 * t
        else:
            return f(x), 3 * t

    f.defjvp(rule)
    return [s.jvp(f, (x,), (1.0,)) for x in (2.0, -2.0)], [s.grad(f)(x) for x in (2.0, -2.0)]


@feature
def jvp_vmap(s, np):
    f = _doubled(s, np)
    x = np.arange(3.0)
    xx = np.arange(6.0).reshape(2, 3)
    return (
        s.vmap(f)(x),
        s.vmap(s.vmap(f))(xx),
        s.vmap(lambda y: s.jvp(f, (y,), (y,)))(x),
        s.jvp(s.vmap(f), (x,), (x,)),
        s.vmap(s.grad(f))(x),
        s.grad(lambda y: np.sum(s.vmap(f)(y)))(x),
    )


@feature
def jvp_vmap_of_some_arguments(s, np):
    @s.custom_jvp
    def f(x, y):
        return np.sin(x) * y

    def rule(primals, tangents):
        x, y = primals
        a, b = tangents
        return f(x, y), 2 * np.cos(x) * y * a + 3 * np.sin(x) * b

    f.defjvp(rule)
    xs = np.arange(3.0)

    def total(x, y):
        return np.sum(s.vmap(f, (0, None))(x, y))

    return (
        s.grad(total, (0, 1))(xs, 2.0),
        s.jvp(total, (xs, 2.0), (xs, 1.0)),
        s.vmap(s.grad(f, 1), (0, None))(xs, 2.0),
    )


@feature
def jvp_jit(s, np):
    f = _doubled(s, np)
    return (
        s.jit(f)(3.0),
        s.jit(s.grad(f))(3.0),
        s.grad(s.jit(f))(3.0),
        s.jvp(s.jit(f), (3.0,), (1.0,)),
    )


@feature
def jvp_pytrees(s, np):
    @s.custom_jvp
    def f(x):
        return {"b": np.sin(x["a"])}

    def rule(primals, tangents):
        x, = primals
        t, = tangents
        return f(x), {"b": 2 * np.cos(x["a"]) * t["a"]}

    f.defjvp(rule)
    x = {"a": 3.0}
    return f(x), s.jvp(f, (x,), ({"a": 1.0},)), s.grad(lambda y: f(y)["b"])(x)


@feature
def jvp_kwargs_and_defaults(s, np):
    @s.custom_jvp
    def f(x, y=2.0, scale=1.0):
        return np.sin(x) * y * scale

    def rule(primals, tangents):
        x, y, scale = primals
        t, u, v = tangents
        return f(x, y, scale), 2 * np.cos(x) * t + 5 * u + 7 * v

    f.defjvp(rule)
    return (
        s.grad(lambda x: f(x))(1.0),
        s.grad(lambda x: f(x, y=x))(1.0),
        s.grad(lambda x: f(y=x, x=3.0))(1.0),
        s.grad(lambda x: f(1.0, scale=x))(2.0),
        f(1.0, scale=3.0),
    )


@feature
def jvp_closed_over_constants(s, np):
    c = np.arange(3.0)
    d = 4.0

    @s.custom_jvp
    def f(x):
        return np.sum(c * x)

    def rule(primals, tangents):
        x, = primals
        t, = tangents
        return f(x), np.sum(d * c * t)

    f.defjvp(rule)
    x = np.ones(3)
    return (
        s.grad(f)(x),
        s.jvp(f, (x,), (x,)),
        s.jit(s.grad(f))(x),
        s.vmap(s.grad(f))(np.ones((2, 3))),
    )


@feature
def jvp_nondiff_function(s, np):
    f = s.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))

    def rule(g, primals, tangents):
        (x,), (t,) = primals, tangents
        return f(g, x), 3.0 * t

    f.defjvp(rule)
    return (
        f(lambda y: 2 * y, 1.0),
        s.jvp(lambda x: f(lambda y: 2 * y, x), (1.0,), (2.0,)),
        s.grad(lambda x: f(np.sin, x))(1.0),
    )


@feature
def jvp_nondiff_data(s, np):
    @s.custom_jvp
    def power(x):
        return x ** 3

    from functools import partial

    @partial(s.custom_jvp, nondiff_argnums=(1,))
    def f(x, n):
        return x ** n

    @f.defjvp
    def rule(n, primals, tangents):
        x, = primals
        t, = tangents
        return f(x, n), 10.0 * n * x ** (n - 1) * t

    return s.grad(lambda x: f(x, 3))(2.0), s.jvp(lambda x: f(x, 2) * x, (2.0,), (1.0,))


@feature
def jvp_nondiff_several(s, np):
    from functools import partial

    @partial(s.custom_jvp, nondiff_argnums=(0, 2))
    def app2(f, x, g):
        return f(g(x))

    def rule(f, g, primals, tangents):
        x, = primals
        t, = tangents
        return app2(f, x, g), 5.0 * t

    app2.defjvp(rule)
    return s.grad(lambda x: app2(np.sin, x, np.cos))(1.0), s.vmap(
        s.grad(lambda x: app2(np.sin, x, np.cos))
    )(np.arange(3.0))


@feature
def defjvps(s, np):
    @s.custom_jvp
    def f(x, y):
        return np.sin(x) * y

    f.defjvps(lambda t, ans, x, y: 2 * np.cos(x) * y * t, lambda t, ans, x, y: ans * t)
    return (
        s.grad(f, (0, 1))(1.0, 2.0),
        s.jvp(f, (1.0, 2.0), (1.0, 3.0)),
        s.grad(s.grad(f))(1.0, 2.0),
    )


@feature
def defjvps_none(s, np):
    @s.custom_jvp
    def f(x, y):
        return np.sin(x) * y

    f.defjvps(lambda t, ans, x, y: np.cos(x) * t, None)
    return s.grad(f, (0, 1))(1.0, 2.0), s.jvp(f, (1.0, 2.0), (1.0, 3.0))


@feature
def jvp_rule_without_tangents(s, np):
    @s.custom_jvp
    def f(x):
        return np.sin(x)

    f.defjvp(lambda primals, tangents: (f(primals[0]), 0.0 * tangents[0]))
    return s.grad(lambda x: f(x) * x)(1.0), s.jvp(f, (1.0,), (1.0,))


@feature
def jvp_several_results(s, np):
    @s.custom_jvp
    def f(x, y):
        return x * y, x + y

    def rule(primals, tangents):
        x, y = primals
        a, b = tangents
        return f(x, y), (2 * (a * y + x * b), 3 * (a + b))

    f.defjvp(rule)

    def g(x, y):
        p, q = f(x, y)
        return p * q

    return s.grad(g, (0, 1))(2.0, 3.0), s.jvp(f, (2.0, 3.0), (1.0, 0.0)), s.hessian(g)(2.0, 3.0)


@feature
def jvp_rules_of_one_another(s, np):
    @s.custom_jvp
    def my_sin(x):
        return np.sin(x)

    @s.custom_jvp
    def my_cos(x):
        return np.cos(x)

    my_sin.defjvp(lambda p, t: (my_sin(p[0]), my_cos(p[0]) * t[0]))
    my_cos.defjvp(lambda p, t: (my_cos(p[0]), -my_sin(p[0]) * t[0]))
    d = my_sin
    found = []
    for _ in range(4):
        d = s.grad(d)
        found.append(d(0.4))
    return found


@feature
def jvp_numerically_better_log1pexp(s, np):
    @s.custom_jvp
    def log1pexp(x):
        return np.log(1.0 + np.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        x, = primals
        t, = tangents
        return log1pexp(x), (1 - 1 / (1 + np.exp(x))) * t

    return (
        s.grad(log1pexp)(3.0),
        s.grad(log1pexp)(100.0),
        s.vmap(s.grad(log1pexp))(np.arange(4.0)),
        s.grad(s.grad(log1pexp))(1.0),
    )


@feature
def jvp_in_loops_and_branches(s, np):
    f = _doubled(s, np)

    def g(x):
        total = 0.0
        for i in range(4):
            total = total + f(x * (i + 1.0)) * x
            x = f(x)
        return total

    return s.grad(g)(0.3), s.jvp(g, (0.3,), (1.0,)), s.grad(s.grad(g))(0.3)


@feature
def jvp_of_vectors(s, np):
    @s.custom_jvp
    def norm(x):
        return np.sqrt(np.sum(x * x))

    def rule(primals, tangents):
        x, = primals
        t, = tangents
        y = norm(x)
        return y, np.sum(x * t) / np.where(y > 0, y, 1.0)

    norm.defjvp(rule)
    x = np.arange(3.0)
    return (
        s.grad(norm)(x),
        s.grad(norm)(np.zeros(3)),
        s.jacfwd(s.grad(norm))(x),
        s.vmap(s.grad(norm))(np.stack([x, 0 * x])),
    )


# --------------------------------------------------------------------------------------- custom_vjp


def _tripled(s, np):
    @s.custom_vjp
    def f(x):
        return np.sin(x)

    def fwd(x):
        return f(x), np.cos(x)

    def bwd(c, g):
        return (3 * c * g,)

    f.defvjp(fwd, bwd)
    return f


@feature
def vjp_basic(s, np):
    f = _tripled(s, np)
    y, pull = s.vjp(f, 3.0)
    return f(3.0), s.grad(f)(3.0), s.value_and_grad(f)(3.0), y, pull(2.0)


@feature
def vjp_invariance(s, np):
    @s.custom_vjp
    def f(x):
        return np.cos(2 * x) / 2.0

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 3,))
    d = f
    found = []
    for _ in range(3):
        d = s.grad(d)
        found.append(d(3.0))
    return found


@feature
def vjp_rules_are_differentiated(s, np):
    f = _tripled(s, np)
    return (
        s.grad(s.grad(f))(0.4),
        s.grad(lambda x: s.grad(f)(x) * f(x))(0.4),
        s.jacrev(s.grad(f))(0.4),
    )


@feature
def vjp_forward_over_reverse(s, np):
    @s.custom_vjp
    def f(x):
        return np.sin(x)

    f.defvjp(lambda x: (np.sin(x), x), lambda x, g: (np.cos(x) * g * 2,))
    return s.jvp(s.grad(f), (0.4,), (1.0,)), s.hessian(f)(0.4)


@feature
def vjp_python_control_flow(s, np):
    @s.custom_vjp
    def f(x):
        if x > 0:
            return np.sin(x)
        else:
            return np.cos(x)

    def fwd(x):
        if x > 0:
            return f(x), x
        else:
            return f(x), x

    def bwd(x, g):
        if x > 0:
            return (2 * g,)
        else:
            return (3 * g,)

    f.defvjp(fwd, bwd)
    return s.grad(f)(2.0), s.grad(f)(-2.0)


@feature
def vjp_vmap(s, np):
    f = _tripled(s, np)
    x = np.arange(3.0)
    xx = np.arange(6.0).reshape(2, 3)
    return (
        s.vmap(f)(x),
        s.vmap(s.vmap(f))(xx),
        s.grad(lambda x: np.sum(s.vmap(f)(x)))(x),
        s.vmap(s.grad(f))(x),
        s.vmap(s.vmap(s.grad(f)))(xx),
        s.vmap(s.grad(s.grad(f)))(x),
    )


@feature
def vjp_vmap_of_some_arguments(s, np):
    @s.custom_vjp
    def f(x, y):
        return np.sin(x) * y

    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda res, g: (2 * np.cos(res[0]) * res[1] * g, 3 * np.sin(res[0]) * g),
    )
    xs = np.arange(3.0)

    def total(x, y):
        return np.sum(s.vmap(f, (0, None))(x, y))

    return (
        s.grad(total, (0, 1))(xs, 2.0),
        s.vmap(s.grad(f, 1), (0, None))(xs, 2.0),
        s.vmap(s.grad(f), (None, 0))(2.0, xs),
    )


@feature
def vjp_jit(s, np):
    f = _tripled(s, np)
    return (
        s.jit(f)(3.0),
        s.jit(s.grad(f))(3.0),
        s.grad(s.jit(f))(3.0),
        s.jit(s.grad(s.grad(f)))(3.0),
    )


@feature
def vjp_pytrees(s, np):
    @s.custom_vjp
    def f(x):
        return {"b": np.sin(x["a"])}

    def fwd(x):
        return f(x), {"r": np.cos(x["a"]), "more": (x, 2.0)}

    def bwd(res, g):
        return ({"a": res["more"][1] * res["r"] * g["b"]},)

    f.defvjp(fwd, bwd)
    return s.grad(lambda y: f(y)["b"])({"a": 3.0})


@feature
def vjp_kwargs_and_defaults(s, np):
    @s.custom_vjp
    def f(x, y=2.0, scale=1.0):
        return np.sin(x) * y * scale

    f.defvjp(
        lambda x, y, scale: (f(x, y, scale), (x, y)),
        lambda res, g: (2 * np.cos(res[0]) * g, 5 * g, 7 * g),
    )
    return (
        s.grad(lambda x: f(x))(1.0),
        s.grad(lambda x: f(x, y=x))(1.0),
        s.grad(lambda x: f(1.0, scale=x))(2.0),
    )


@feature
def vjp_none_cotangents(s, np):
    @s.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, g: (None, res[0] * g))
    return s.grad(f, (0, 1))(2.0, 3.0), s.vmap(s.grad(f, (0, 1)), (0, None))(np.arange(3.0), 2.0)


@feature
def vjp_none_inside_a_tree(s, np):
    @s.custom_vjp
    def f(p, y):
        return p[0] * p[1] * y

    f.defvjp(lambda p, y: (f(p, y), (p, y)), lambda res, g: ((None, g * 2.0), None))
    return s.grad(f, (0, 1))((2.0, 3.0), 4.0)


@feature
def vjp_nondiff_function(s, np):
    from functools import partial

    @partial(s.custom_vjp, nondiff_argnums=(0,))
    def app(f, x):
        return f(x)

    app.defvjp(lambda f, x: (app(f, x), np.cos(x)), lambda f, c, g: (c * g * 4,))
    return s.grad(lambda x: app(np.sin, x))(1.0), s.grad(lambda x: app(lambda y: y * y, x))(1.0)


@feature
def vjp_clip_gradient(s, np):
    @s.custom_vjp
    def clip_gradient(lo, hi, x):
        return x

    clip_gradient.defvjp(
        lambda lo, hi, x: (x, (lo, hi)), lambda res, g: (None, None, np.clip(g, res[0], res[1]))
    )

    def f(x):
        return np.sum(np.sin(clip_gradient(-0.75, 0.75, x)))

    t = np.arange(5.0)
    return f(t), s.grad(f)(t), s.vmap(s.grad(lambda x: 10 * clip_gradient(-0.75, 0.75, x)))(t)


@feature
def vjp_closed_over_arrays(s, np):
    w = np.arange(3.0)

    @s.custom_vjp
    def f(x):
        return np.sum(w * x)

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * w * 2,))
    x = np.ones(3)
    return (
        s.grad(f)(x),
        s.jit(s.grad(f))(x),
        s.grad(lambda x: np.sum(s.vmap(f)(x)))(np.ones((2, 3))),
    )


@feature
def vjp_no_residuals(s, np):
    @s.custom_vjp
    def f(x):
        return x ** 2

    f.defvjp(lambda x: (x ** 2, ()), lambda _, g: (g * 5,))
    return s.grad(f)(2.0), s.grad(s.grad(f))(2.0)


@feature
def vjp_several_results(s, np):
    @s.custom_vjp
    def f(x, y):
        return x * y, x + y

    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda res, g: (res[1] * g[0] * 2 + g[1], res[0] * g[0] + g[1] * 3),
    )

    def g(x, y):
        p, q = f(x, y)
        return p * q

    def one(x, y):
        return f(x, y)[1]

    return s.grad(g, (0, 1))(2.0, 3.0), s.grad(one, (0, 1))(2.0, 3.0), s.grad(s.grad(g))(2.0, 3.0)


@feature
def vjp_in_loops_and_branches(s, np):
    f = _tripled(s, np)

    def g(x):
        for i in range(5):
            x = f(x) * 0.5 + 0.1 * i
        return x

    return s.grad(g)(0.3), s.grad(s.grad(g))(0.3)


@feature
def vjp_straight_through(s, np):
    @s.custom_vjp
    def hard_round(x):
        return np.round(x)

    hard_round.defvjp(lambda x: (np.round(x), None), lambda _, g: (g,))

    def loss(w):
        return np.sum((hard_round(w) - w * 0.5) ** 2)

    return s.grad(loss)(np.array([0.3, 1.7, -2.2]))


@feature
def vjp_reversed_gradient(s, np):
    @s.custom_vjp
    def reverse(x):
        return x

    reverse.defvjp(lambda x: (x, None), lambda _, g: (-g,))
    return s.grad(lambda x: np.sum(reverse(x) ** 2 + x))(np.arange(3.0))


@feature
def vjp_fixed_point_by_hand(s, np):
    from functools import partial

    @partial(s.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x):
        for _ in range(60):
            x = f(a, x)
        return x

    def fwd(f, a, x):
        star = fixed_point(f, a, x)
        return star, (a, star)

    def bwd(f, res, g):
        a, star = res
        _, pull_x = s.vjp(lambda x: f(a, x), star)
        u = g
        for _ in range(60):
            u = g + pull_x(u)[0]
        _, pull_a = s.vjp(lambda a: f(a, star), a)
        return pull_a(u)[0], np.zeros_like(star)

    fixed_point.defvjp(fwd, bwd)

    def newton_sqrt(a):
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    return newton_sqrt(2.0), s.grad(newton_sqrt)(2.0), s.grad(s.grad(newton_sqrt))(2.0)


@feature
def stop_gradient(s, np):
    def f(x):
        return x * s.stop_gradient(np.sin(x)) + s.stop_gradient(x) ** 2

    def tree(x):
        a, b = s.stop_gradient((x, x * x))
        return a * x + b

    return s.grad(f)(0.5), s.grad(s.grad(f))(0.5), s.grad(tree)(0.5), s.jvp(f, (0.5,), (1.0,))


# ------------------------------------------------------------------------- implicit differentiation


def _newton(np):
    def solve(f, x):
        for _ in range(40):
            x = x - (f(x)) / (2.0 * np.abs(x) + 0.1)
        return x

    return solve


@feature
def root_scalar(s, np):
    newton = _newton(np)

    def sqrt_cubed(x, tangent_solve=lambda g, y: y / g(1.0)):
        return s.custom_root(lambda y: y ** 2 - x ** 3, x + 1.0, newton, tangent_solve)

    return (
        sqrt_cubed(5.0),
        s.grad(sqrt_cubed)(5.0),
        s.jvp(sqrt_cubed, (5.0,), (2.0,)),
        s.grad(s.grad(sqrt_cubed))(5.0),
        s.jvp(s.grad(sqrt_cubed), (5.0,), (1.0,)),
        s.vmap(s.grad(sqrt_cubed))(np.array([4.0, 5.0])),
    )


@feature
def root_vector(s, np):
    def oracle(func, x0):
        x = x0
        for _ in range(60):
            x = x - 0.2 * func(x)
        return x

    def linear_solve(g, y):
        matrix = s.jacfwd(g)(y)
        return np.linalg.solve(matrix, y)

    def root(a, b):
        return s.custom_root(
            lambda x: np.dot(a, x) + 0.1 * x**3 - b, np.zeros(3), oracle, linear_solve
        )

    a = np.array([[4.0, 1.0, 0.2], [0.5, 3.0, 0.1], [0.3, 0.2, 5.0]])
    b = np.array([1.0, -2.0, 0.5])

    def loss(a, b):
        return np.sum(root(a, b) ** 2)

    return s.grad(loss, (0, 1))(a, b), s.jvp(loss, (a, b), (a, b)), s.hessian(loss, 1)(a, b)


@feature
def root_with_aux(s, np):
    def solve(f, x):
        for _ in range(40):
            x = x - f(x) / (2.0 * x)
        return x, np.cos(x) * 2

    def root(t):
        x, aux = s.custom_root(
            lambda y: y**2 - t, 1.0, solve, lambda g, y: y / g(1.0), has_aux=True
        )
        return x + s.stop_gradient(aux)

    return root(2.0), s.grad(root)(2.0)


@feature
def root_in_a_function_that_is_differentiated(s, np):
    def f(theta):
        def residual(x):
            return x + 0.3 * np.sin(x * theta) - theta ** 2

        def solve(f, x):
            for _ in range(80):
                x = x - 0.7 * f(x)
            return x

        return np.exp(s.custom_root(residual, theta, solve, lambda g, y: y / g(1.0))) * theta

    return s.value_and_grad(f)(0.8), s.grad(s.grad(f))(0.8), s.grad(s.grad(s.grad(f)))(0.8)


MATRIX = np.array([[4.0, 1.0, 0.2], [0.5, 3.0, 0.1], [0.3, 0.2, 5.0]])
RIGHT = np.array([1.0, -2.0, 0.5])


@feature
def linear_solve(s, np):
    def explicit(a, b):
        return s.custom_linear_solve(lambda x: np.dot(a, x), b, lambda mv, b: np.linalg.solve(a, b),
                                     lambda vm, b: np.linalg.solve(a.T, b))

    def loss(a, b):
        return np.sum(np.sin(explicit(a, b)))

    a, b = np.asarray(MATRIX), np.asarray(RIGHT)
    return (
        explicit(a, b),
        s.grad(loss, (0, 1))(a, b),
        s.jvp(loss, (a, b), (a, b)),
        s.jit(s.grad(loss))(a, b),
        s.hessian(loss, 1)(a, b),
        s.jacrev(s.grad(loss, 1), 0)(a, b),
    )


@feature
def linear_solve_symmetric_and_iterative(s, np):
    def conjugate_gradient(mv, b):
        x = np.zeros_like(b)
        r = b
        p = r
        for _ in range(3):
            q = mv(p)
            a = np.dot(r, r) / np.dot(p, q)
            x = x + a * p
            new = r - a * q
            p = new + np.dot(new, new) / np.dot(r, r) * p
            r = new
        return x

    def solve(a, b):
        m = np.dot(a, a.T)
        return s.custom_linear_solve(lambda x: np.dot(m, x), b, conjugate_gradient, symmetric=True)

    def loss(a, b):
        return np.sum(solve(a, b) ** 2)

    a, b = np.asarray(MATRIX), np.asarray(RIGHT)
    return s.grad(loss, (0, 1))(a, b), s.jvp(loss, (a, b), (a, b)), s.hessian(loss, 1)(a, b)


@feature
def linear_solve_zeros(s, np):
    def solve(a, b):
        return s.custom_linear_solve(lambda x: a * x, b, lambda mv, b: b / a, symmetric=True)

    return (
        s.grad(solve, (0, 1))(3.0, 2.0),
        s.grad(lambda b: solve(3.0, b))(2.0),
        s.jvp(lambda a: solve(a, 2.0), (3.0,), (1.0,)),
    )


@feature
def linear_solve_with_aux(s, np):
    a, b = np.asarray(MATRIX), np.asarray(RIGHT)

    def loss(b):
        x, aux = s.custom_linear_solve(
            lambda x: np.dot(a, x),
            b,
            lambda mv, b: (np.linalg.solve(a, b), 7.0),
            lambda vm, b: (np.linalg.solve(a.T, b), 7.0),
            has_aux=True,
        )
        return np.sum(x) * aux

    return loss(b), s.grad(loss)(b)


# ------------------------------------------------------------------------- in the company of others


@feature
def nondiff_by_name(s, np):
    @functools.partial(s.custom_jvp, nondiff_argnames=("how", "n"))
    def f(x, how, n=2):
        return how(x) ** n

    def rule(how, n, primals, tangents):
        return f(*primals, how, n), 5.0 * tangents[0]

    f.defjvp(rule)
    return (
        f(0.5, np.sin),
        s.jvp(lambda x: f(x, np.sin, 3), (0.5,), (2.0,)),
        s.grad(lambda x: f(x, how=np.cos))(0.5),
    )


@feature
def wrapped_functions(s, np):
    def decorated(f):
        @functools.wraps(f)
        def inner(*args):
            return 2.0 * f(*args)
        return inner

    @decorated
    def g(x, y):
        return x * np.sin(y)

    f = s.custom_vjp(g)
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda kept, bar: (kept[0] * bar, kept[1] * bar))
    h = functools.partial(f, 0.3)
    return f(0.3, 0.7), s.grad(f, argnums=(0, 1))(0.3, 0.7), s.grad(h)(0.7)


@feature
def rules_that_return_constants(s, np):
    @s.custom_vjp
    def f(x):
        return 3.0

    f.defvjp(lambda x: (3.0, None), lambda _, bar: (7.0,))

    @s.custom_jvp
    def g(x):
        return x * x

    g.defjvp(lambda primals, tangents: (g(*primals), 5.0 * tangents[0]))
    return (
        s.grad(f)(2.0),
        s.grad(g)(2.0),
        s.grad(s.grad(g))(2.0),
        s.grad(lambda x: f(x) * g(x))(2.0),
    )


@feature
def unused_and_repeated_arguments(s, np):
    @s.custom_vjp
    def f(x, y):
        return x * x

    f.defvjp(lambda x, y: (f(x, y), x), lambda x, bar: (2 * x * bar, 4.0 * bar))
    return (
        s.grad(lambda x: f(x, x))(0.7),
        s.grad(f, argnums=1)(0.7, 0.3),
        s.jacrev(s.grad(lambda x: f(x, x)))(0.7),
    )


@feature
def third_derivatives(s, np):
    f, g = _doubled(s, np), _tripled(s, np)
    return (
        s.grad(s.grad(s.grad(f)))(0.7),
        s.grad(s.grad(s.grad(g)))(0.7),
        s.grad(s.grad(s.grad(lambda x: f(g(x)) * x)))(0.7),
    )


@feature
def modes_in_any_order(s, np):
    f, g = _doubled(s, np), _tripled(s, np)
    x = np.array([0.3, 0.7])

    def total(x):
        return np.sum(f(x) * f(x))

    return (
        s.jvp(s.grad(total), (x,), (x,)),
        s.vjp(lambda x: s.jvp(total, (x,), (x,))[1], x)[1](1.0),
        s.hessian(total)(x),
        s.jacrev(s.grad(total))(x),
        s.vjp(s.grad(lambda x: np.sum(g(x) ** 2)), x)[1](x),
    )


@feature
def linearized(s, np):
    f = _doubled(s, np)
    y, push = s.linearize(lambda x: f(x) * x, 0.7)
    return y, push(1.0), push(2.0), s.grad(lambda x: s.linearize(f, x)[1](x))(0.7)


@feature
def checkpointed(s, np):
    f, g = _doubled(s, np), _tripled(s, np)
    both = s.checkpoint(lambda x: g(f(x)) * x)
    return s.grad(both)(0.7), s.grad(s.grad(both))(0.7)


@feature
def in_a_scan(s, np):
    f, g = _doubled(s, np), _tripled(s, np)

    def run(x, xs):
        last, ys = s.scan(lambda c, v: (g(f(c) * v), f(c)), x, xs)
        return last + np.sum(ys)

    xs = np.array([0.3, -0.7, 1.2])
    return (
        run(0.5, xs),
        s.grad(run, argnums=(0, 1))(0.5, xs),
        s.vmap(s.grad(run), in_axes=(0, None))(xs, xs),
    )


def test_in_a_scan_the_rule_is_asked_at_each_level(jax):
    """JAX's second derivative of a scan asks it once, and that of the loop written out twice, as
    s2s does of both.
    """
    def second(s, np, loop):
        f = _doubled(s, np)

        def step(c, v):
            return f(c) * v, f(c)

        def run(x, xs):
            if loop:
                last, ys = s.scan(step, x, xs)
                return last + np.sum(ys)
            total = 0.0
            for k in range(3):
                x, y = step(x, xs[k])
                total = total + y
            return x + total

        return s.grad(s.grad(run))(0.5, np.array([0.3, -0.7, 1.2]))

    expected = second(*of_jax(jax), loop=False)
    assert abs(second(*of_jax(jax), loop=True) - expected) > 0.1
    for loop in (True, False):
        np.testing.assert_allclose(second(*of_s2s(), loop), expected, rtol=1e-12)


@feature
def in_cond_while_and_fori(s, np):
    f = _doubled(s, np)

    def run(x):
        x = s.cond(x > 0, f, lambda x: 3 * x, x)
        x, _ = s.while_loop(lambda p: p[1] < 3, lambda p: (f(p[0]), p[1] + 1), (x, 0))
        return s.fori_loop(0, 2, lambda i, v: f(v) * v, x)

    return run(0.4), s.jvp(run, (0.4,), (1.0,)), s.jvp(run, (-0.4,), (1.0,)), s.jacfwd(run)(0.4)


@feature
def integers_beside_floats(s, np):
    @s.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (f(x, n), n), lambda n, bar: (10.0 * n * bar, None))
    return (
        s.grad(f)(2.0, 3),
        s.jit(s.grad(f))(2.0, 3),
        s.vmap(s.grad(f), in_axes=(None, 0))(2.0, np.array([1, 2])),
    )


@feature
def of_an_object(s, np):
    class Scale:
        def __init__(self, by):
            self.by = by

        @functools.partial(s.custom_jvp, nondiff_argnums=(0,))
        def __call__(self, x):
            return self.by * x

    Scale.__call__.defjvp(lambda self, primals, tangents: (self.by * primals[0], 7.0 * tangents[0]))
    scale = Scale(3.0)
    f = Scale.__call__
    return (
        f(scale, 2.0),
        s.grad(lambda x: f(scale, x))(2.0),
        s.jvp(lambda x: f(scale, x * x), (2.0,), (1.0,)),
    )


@feature
def a_rule_that_maps(s, np):
    """vmap and grad inside of rules."""
    @s.custom_vjp
    def f(x, w):
        return np.sum(np.sin(x * w))

    def backward(kept, bar):
        x, w = kept
        return bar * s.vmap(s.grad(lambda v: np.sin(v * w)))(x), None

    f.defvjp(lambda x, w: (f(x, w), (x, w)), backward)
    x = np.array([0.3, 0.7])
    return s.grad(f)(x, 2.0), s.jacrev(s.grad(f))(x, 2.0), s.grad(f, argnums=1)(x, 2.0)


def leaves_of(x):
    if isinstance(x, dict):
        return [leaf for key in sorted(x) for leaf in leaves_of(x[key])]
    return (
        [leaf for part in x for leaf in leaves_of(part)]
        if isinstance(x, (tuple, list))
        else [np.asarray(x, float)]
    )


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.__name__)
def test_as_in_jax(feature, jax):
    got, wanted = leaves_of(feature(*of_s2s())), leaves_of(feature(*of_jax(jax)))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


# ------------------------------------------------------------------------------------------ refused


def _refusals(s, np):
    """Programs that both refuse, by name."""
    @s.custom_vjp
    def only_reverse(x):
        return np.sin(x)

    only_reverse.defvjp(lambda x: (np.sin(x), x), lambda x, g: (g,))

    def jvp_with(rule):
        f = s.custom_jvp(lambda x: np.sin(x))
        f.defjvp(rule)
        return lambda: s.jvp(f, (1.0,), (1.0,))

    def vjp_with(fwd, bwd, x=1.0):
        f = s.custom_vjp(lambda x: np.sum(np.sin(x)))
        f.defvjp(fwd, bwd)
        return lambda: s.grad(f)(x)

    closing = s.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
    closing.defjvp(lambda f, p, t: (closing(f, p[0]), t[0]))
    return {
        "forward_mode_of_custom_vjp": lambda: s.jvp(only_reverse, (1.0,), (1.0,)),
        "no_rule": lambda: s.grad(s.custom_jvp(lambda x: np.sin(x)))(1.0),
        "no_rule_vjp": lambda: s.grad(s.custom_vjp(lambda x: np.sin(x)))(1.0),
        "rule_without_pair": jvp_with(lambda p, t: np.cos(p[0]) * t[0]),
        "tangent_of_other_structure": jvp_with(lambda p, t: (np.sin(p[0]), (t[0], t[0]))),
        "tangent_of_other_shape": jvp_with(lambda p, t: (np.sin(p[0]), np.ones(3) * t[0])),
        "fwd_without_pair": vjp_with(lambda x: np.sum(np.sin(x)), lambda res, g: (g,)),
        "bwd_without_tuple": vjp_with(lambda x: (np.sum(np.sin(x)), x), lambda x, g: g),
        "bwd_of_other_length": vjp_with(lambda x: (np.sum(np.sin(x)), x), lambda x, g: (g, g)),
        "cotangent_of_other_shape": vjp_with(
            lambda x: (np.sum(np.sin(x)), x), lambda x, g: (g * np.ones(2),)
        ),
        "closes_over_what_is_differentiated": lambda: s.grad(
            lambda a: closing(lambda y: y * a, 2.0)
        )(1.0),
    }


@pytest.mark.parametrize("name", sorted(_refusals(*of_s2s())))
def test_refused_as_in_jax(name, jax):
    with pytest.raises(s2s.S2SError):
        _refusals(*of_s2s())[name]()
    with pytest.raises(Exception):  # noqa: B017 of many classes
        _refusals(*of_jax(jax))[name]()
