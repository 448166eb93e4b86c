"""Every kind of derivative is JAX's: what it takes, the shapes and the nesting of what it returns,
and the numbers.
"""

from __future__ import annotations

import types

import numpy as np
import pytest

import s2s

X = np.array([0.3, -0.7, 1.1])
M = np.arange(6.0).reshape(2, 3) / 7 + 0.1


def through(jax, f):
    """`f` as JAX runs it: with its numpy in the place of NumPy, in what it calls as well."""
    names = {name: f.__globals__.get(name) for name in f.__code__.co_names}
    called = {
        name: through(jax, g) for name, g in names.items() if isinstance(g, types.FunctionType)
    }
    return types.FunctionType(
        f.__code__,
        {**f.__globals__, "np": jax.numpy, **called},
        f.__name__,
        f.__defaults__,
        f.__closure__,
    )


def assert_same(got, wanted, rtol=1e-11):
    """The same nesting, the same shapes, the same numbers."""
    if isinstance(wanted, dict):
        assert isinstance(got, dict) and set(got) == set(wanted)  # JAX sorts the keys
        for key in wanted:
            assert_same(got[key], wanted[key], rtol)
    elif isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted) and len(got) == len(wanted)
        for a, b in zip(got, wanted):
            assert_same(a, b, rtol)
    elif wanted is None:
        assert got is None
    else:
        assert np.shape(got) == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-13)


# ---------------------------------------------------------------------------------------- functions


def vector(x):
    return np.sin(x) * np.sum(x**2)


def fewer(x):
    return x[1:] * x[:-1]


def number(x):
    return np.sum(np.tanh(x) ** 2) + x[0] * x[1]


def of_number(t):
    return np.stack([t, t**2, np.exp(t)])


def number_to_number(t):
    return np.sin(t) * t


def matrix(a):
    return a @ a.T


def two(x, t):
    return np.sin(x) * t, np.sum(x * x) * t


def three(x, t, a):
    return np.sum(a @ x) * t * x


def named(p):
    return {"u": p["w"] @ p["b"] * p["s"], "v": [p["s"] ** 2, np.sum(p["w"] ** 3)]}


def energy(p):
    return np.sum(np.tanh(p["w"] @ p["b"]) ** 2) * p["s"]


def nested(p, q):
    (a, b), c = p
    return a * b * c[0] + q, (c[1] * q, {"n": a - b})


def constant(x):
    return np.ones(2)


def half_constant(x):
    return np.ones(2), x * 2.0


def identity(x):
    return x


def looped(x):
    y = x
    for i in range(4):
        y = np.sin(y) * x + 0.1 * i
    return y


def called(x):
    return number(vector(x)) * fewer(x)


P = {"w": M, "b": X, "s": 1.7}
NEST = (((X, 2 * X), (X + 1, 0.4)), 1.3)
SINGLE = [
    (vector, (X,)),
    (fewer, (X,)),
    (number, (X,)),
    (of_number, (0.7,)),
    (number_to_number, (0.7,)),
    (matrix, (M,)),
    (two, (X, 0.7)),
    (three, (X, 0.7, M)),
    (named, (P,)),
    (energy, (P,)),
    (nested, NEST),
    (constant, (X,)),
    (half_constant, (X,)),
    (identity, (X,)),
    (looped, (X,)),
    (called, (X,)),
    (vector, (np.zeros(0),)),
    (vector, (np.ones(1),)),
]


@pytest.mark.parametrize("kind", ["jacfwd", "jacrev", "jacobian"])
@pytest.mark.parametrize("f, args", SINGLE, ids=lambda x: getattr(x, "__name__", ""))
def test_jacobian(jax, kind, f, args):
    got = getattr(s2s, kind)(f)(*args)
    assert_same(got, jax.jacrev(through(jax, f))(*args))


@pytest.mark.parametrize(
    "f, args",
    [case for case in SINGLE if case[0] not in (constant, half_constant, called, nested)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_hessian(jax, f, args):
    assert_same(s2s.hessian(f)(*args), jax.hessian(through(jax, f))(*args), rtol=1e-9)


@pytest.mark.parametrize("kind", ["jacfwd", "jacrev", "jacobian", "hessian"])
@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (0, 1), (2, 0), (-1, 0), [0, 2]], ids=str)
def test_argnums(jax, kind, argnums):
    args = X, 0.7, M
    theirs = getattr(jax, "jacrev" if kind == "jacobian" else kind)(
        through(jax, three), argnums=argnums
    )
    assert_same(getattr(s2s, kind)(three, argnums=argnums)(*args), theirs(*args))


@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (0, 1), (2, 0), (0, 2)], ids=str)
def test_argnums_of_grad(jax, argnums):
    def f(x, t, p):
        return np.sum(np.sin(x) * t) * p["a"][0] + np.sum(p["b"])

    args = X, 0.7, {"a": (1.2, X), "b": M}
    assert_same(
        s2s.grad(f, argnums=argnums)(*args), jax.grad(through(jax, f), argnums=argnums)(*args)
    )
    assert_same(
        s2s.value_and_grad(f, argnums=argnums)(*args),
        jax.value_and_grad(through(jax, f), argnums=argnums)(*args),
    )


@pytest.mark.parametrize(
    "kind", ["jacfwd", "jacrev", "jacobian", "hessian", "grad", "value_and_grad"]
)
def test_has_aux(jax, kind):
    def f(x, t):
        y = np.sin(x) * t
        return np.sum(y * x), {"y": y, "more": (t, x[0])}

    theirs = getattr(jax, "jacrev" if kind == "jacobian" else kind)(
        through(jax, f), argnums=(0, 1), has_aux=True
    )
    assert_same(getattr(s2s, kind)(f, argnums=(0, 1), has_aux=True)(X, 0.7), theirs(X, 0.7))


def test_what_is_beside_a_derivative_has_derivatives_of_its_own(jax):
    def f(x):
        return np.sum(x**3), x * x

    def outer(g):
        def both(x):
            slope, beside = g(x)
            return np.sum(slope * beside)
        return both

    ours = s2s.grad(f, has_aux=True)
    theirs = jax.grad(through(jax, f), has_aux=True)
    assert_same(s2s.grad(outer(ours))(X), jax.grad(through(jax, outer(theirs)))(X))


# -------------------------------------------------------------------------------- vjp and linearize


@pytest.mark.parametrize("f, args", SINGLE, ids=lambda x: getattr(x, "__name__", ""))
def test_pullback(jax, f, args):
    y, pull = s2s.vjp(f, *args)
    their_y, their_pull = jax.vjp(through(jax, f), *args)
    assert_same(y, their_y)
    for scale in (1.0, -0.5, 1.0):  # as often as one likes
        y_bar = s2s.tree.map(lambda leaf: scale * np.cos(leaf), y)
        assert_same(pull(y_bar), their_pull(jax.tree.map(jax.numpy.asarray, y_bar)))


@pytest.mark.parametrize("f, args", SINGLE, ids=lambda x: getattr(x, "__name__", ""))
def test_pushforward(jax, f, args):
    y, push = s2s.linearize(f, *args)
    their_y, their_push = jax.linearize(through(jax, f), *args)
    assert_same(y, their_y)
    for scale in (1.0, -0.5, 1.0):
        x_dots = s2s.tree.map(lambda leaf: scale * np.cos(leaf), args)
        assert_same(push(*x_dots), their_push(*jax.tree.map(jax.numpy.asarray, x_dots)))


def test_has_aux_of_vjp_jvp_and_linearize(jax):
    def f(x, t):
        return np.sin(x) * t, {"aux": x * x, "n": t}

    y, pull, aux = s2s.vjp(f, X, 0.7, has_aux=True)
    theirs = jax.vjp(through(jax, f), X, 0.7, has_aux=True)
    assert_same((y, pull(X), aux), (theirs[0], theirs[1](X), theirs[2]))
    assert_same(
        s2s.jvp(f, (X, 0.7), (X, 1.0), has_aux=True),
        jax.jvp(through(jax, f), (X, 0.7), (X, 1.0), has_aux=True),
    )
    y, push, aux = s2s.linearize(f, X, 0.7, has_aux=True)
    theirs = jax.linearize(through(jax, f), X, 0.7, has_aux=True)
    assert_same((y, push(X, 1.0), aux), (theirs[0], theirs[1](X, 1.0), theirs[2]))


def test_linear_maps_are_transformed(jax):
    _, pull = s2s.vjp(looped, X)
    _, their_pull = jax.vjp(through(jax, looped), X)
    assert_same(s2s.vmap(pull)(np.eye(3)), jax.vmap(their_pull)(np.eye(3)))
    _, push = s2s.linearize(looped, X)
    _, their_push = jax.linearize(through(jax, looped), X)
    assert_same(s2s.vmap(push)(np.eye(3)), jax.vmap(their_push)(np.eye(3)))
    assert_same(s2s.jacrev(push)(X), jax.jacrev(their_push)(X))
    assert_same(
        s2s.grad(lambda v: np.sum(pull(v)[0] ** 2))(X),
        jax.grad(lambda v: jax.numpy.sum(their_pull(v)[0] ** 2))(X),
    )
    # the transpose of the pushforward is the pullback
    assert_same(s2s.vjp(push, X)[1](X), jax.vjp(their_push, X)[1](X))
    assert_same(s2s.linearize(pull, X)[1](X), jax.linearize(their_pull, X)[1](X))


def test_nested(jax):
    theirs = through(jax, looped)
    assert_same(
        s2s.jacfwd(s2s.jacrev(s2s.jacfwd(looped)))(X),
        jax.jacfwd(jax.jacrev(jax.jacfwd(theirs)))(X),
        rtol=1e-9,
    )
    assert_same(s2s.jacrev(s2s.jacrev(looped))(X), jax.jacrev(jax.jacrev(theirs))(X), rtol=1e-9)
    assert_same(s2s.vmap(s2s.jacrev(looped))(M), jax.vmap(jax.jacrev(theirs))(M))
    assert_same(
        s2s.vmap(s2s.hessian(number), in_axes=1)(M.T),
        jax.vmap(jax.hessian(through(jax, number)), in_axes=1)(M.T),
    )
    assert_same(s2s.jacfwd(s2s.vmap(looped))(M), jax.jacfwd(jax.vmap(theirs))(M))
    assert_same(s2s.jvp(s2s.jacfwd(looped), (X,), (X,)), jax.jvp(jax.jacfwd(theirs), (X,), (X,)))


def test_functions_inside_programs(jax):
    def ours(x):
        for _ in range(3):
            y, pull = s2s.vjp(vector, x)
            _, push = s2s.linearize(vector, x)
            x = x - 0.01 * pull(y)[0] - 0.02 * push(y)
            x = x - 0.01 * np.linalg.solve(s2s.jacfwd(vector)(x) + 5.0 * np.eye(3), y)
        return np.sum(s2s.hessian(number)(x) @ x)

    def theirs(x):
        jnp, v, n = jax.numpy, through(jax, vector), through(jax, number)
        for _ in range(3):
            y, pull = jax.vjp(v, x)
            _, push = jax.linearize(v, x)
            x = x - 0.01 * pull(y)[0] - 0.02 * push(y)
            x = x - 0.01 * jnp.linalg.solve(jax.jacfwd(v)(x) + 5.0 * jnp.eye(3), y)
        return jnp.sum(jax.hessian(n)(x) @ x)

    assert_same(s2s.value_and_grad(ours)(X), jax.value_and_grad(theirs)(X), rtol=1e-9)


def test_complex(jax):
    z = np.array([0.3 + 0.2j, -0.4 + 0.9j])

    def f(z):
        return np.sin(z) * z[0] * z

    for kind in ("jacfwd", "jacrev"):
        assert_same(
            getattr(s2s, kind)(f, holomorphic=True)(z),
            getattr(jax, kind)(through(jax, f), holomorphic=True)(z),
        )

    def real(z):
        return np.abs(z) ** 2 * np.real(z[0])

    assert_same(s2s.jacrev(real)(z), jax.jacrev(through(jax, real))(z))
    y, pull = s2s.vjp(f, z)
    their_y, their_pull = jax.vjp(through(jax, f), z)
    assert_same((y, pull(z)), (their_y, their_pull(z)))
    y, push = s2s.linearize(f, z)
    their_y, their_push = jax.linearize(through(jax, f), z)
    assert_same((y, push(1j * z)), (their_y, their_push(1j * z)))
    for kind, args in (("jacfwd", (z,)), ("jacrev", (z,))):
        for module, error in ((s2s, s2s.TypeMismatchError), (jax, TypeError)):
            with pytest.raises(error):
                getattr(module, kind)(f if module is s2s else through(jax, f))(*args)


def test_float32(jax):
    x = X.astype(np.float32)
    for kind in ("jacfwd", "jacrev", "hessian"):
        got = getattr(s2s, kind)(vector)(x)
        assert got.dtype == np.float32
        assert_same(got, getattr(jax, kind)(through(jax, vector))(x), rtol=2e-5)
    mixed = {"w": M.astype(np.float32), "b": X, "s": 1.7}
    for kind in ("jacfwd", "jacrev"):
        got = getattr(s2s, kind)(lambda p: p["w"] @ p["b"] * p["s"])(mixed)
        wanted = getattr(jax, kind)(lambda p: p["w"] @ p["b"] * p["s"])(mixed)
        assert_same(got, wanted, rtol=1e-6)
        assert got["w"].dtype == wanted["w"].dtype and got["b"].dtype == wanted["b"].dtype


@pytest.mark.parametrize("kind", ["jacfwd", "jacrev", "hessian"])
def test_empty_trees(jax, kind):
    def nothing(p):
        return {"a": (), "b": p["x"] * 2.0, "c": [p["x"]]}

    p = {"x": X, "none": None, "empty": ()}
    got = getattr(s2s, kind)(nothing)(p)
    assert_same(got, getattr(jax, kind)(through(jax, nothing))(p))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, f: m.jacfwd(f)(3),
        lambda m, f: m.jacrev(f)(3),
        lambda m, f: m.hessian(f)(3),
        lambda m, f: m.jacfwd(f, argnums=2)(X),
        lambda m, f: m.jacrev(f, argnums=(0, 4))(X),
        lambda m, f: m.jacrev(lambda x: 3)(X),
        lambda m, f: m.jacrev(f, holomorphic=True)(X),
        lambda m, f: m.jacfwd(f, holomorphic=True)(X),
        lambda m, f: m.jacfwd(f, has_aux=True)(X),
        lambda m, f: m.vjp(f, X, has_aux=True),
        lambda m, f: m.vjp(f, X)[1](np.ones(2)),
        lambda m, f: m.vjp(f, X)[1]((X, X)),
        lambda m, f: m.vjp(f, X)[1](X, X),
        lambda m, f: m.linearize(f, X)[1](np.ones(2)),
        lambda m, f: m.linearize(f, X)[1](X, X),
        lambda m, f: m.linearize(f, X)[1](),
        lambda m, f: m.linearize(f, X)[1]([X]),
        lambda m, f: m.jvp(f, (X,), (X, X)),
        lambda m, f: m.jvp(f, (X,), (np.ones(2),)),
        lambda m, f: m.grad(f)(X),
    ],
)
def test_both_refuse(jax, call):
    with pytest.raises((TypeError, ValueError)):
        call(jax, lambda x: x * 2)
    with pytest.raises(s2s.S2SError):
        call(s2s, lambda x: x * 2)
