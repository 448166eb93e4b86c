"""What used to be accepted and computed as something else is refused, or does as Python."""

from dataclasses import dataclass

import numpy as np
import pytest

import s2s
from s2s.errors import ShapeMismatchError, TypeMismatchError, UnsupportedError

# ---------------------------------------------------------------------------------- shapes of rules


def with_rule(backward):
    """The sum of squares, with this backward rule."""

    @s2s.custom_vjp
    def h(q):
        return np.sum(q * q)

    h.defvjp(lambda q: (np.sum(q * q), q), backward)
    return h


def shorter(r, y_bar):
    return (y_bar * 2.0 * r[:1],)


def longer(r, y_bar):
    return (y_bar * np.concatenate([r, r]),)


def picked(r, y_bar):
    return (y_bar * 2.0 * r[r > 1.0],)


def pieced(r, y_bar):
    return (y_bar * 2.0 * np.concatenate([r[:1], r[1:]]),)


ADDED = {
    "alone": lambda h: lambda q: h(q),
    "beside_another": lambda h: lambda q: h(q) + np.sum(q),
    "of_a_view": lambda h: lambda q: h(q[1:]) + q[0],
    "in_a_loop": lambda h: lambda q: sum([h(q * k) for k in range(2)]),
}


@pytest.mark.parametrize("rule", [shorter, longer, picked], ids=lambda f: f.__name__)
@pytest.mark.parametrize("use", ADDED)
def test_a_backward_rule_gives_another_length(rule, use):
    with pytest.raises(ShapeMismatchError, match="(?s)a rule gives an array of another "
                                                 "length.*Instead: give it the shape"):
        s2s.grad(ADDED[use](with_rule(rule)))(np.array([1.0, 2.0, 0.5]))


@pytest.mark.compile
@pytest.mark.parametrize("rule", [shorter, picked], ids=lambda f: f.__name__)
def test_a_backward_rule_gives_another_length_to_native_code(rule):
    h = with_rule(rule)
    with pytest.raises(ShapeMismatchError, match="another length"):
        s2s.jit(s2s.grad(lambda q: h(q) + np.sum(q)))(np.array([1.0, 2.0, 0.5]))


def test_lengths_of_rules_that_only_the_run_knows_may_be_right():
    x = np.array([1.0, 2.0, 0.5])
    h = with_rule(pieced)
    assert np.array_equal(s2s.grad(lambda q: h(q) + np.sum(q))(x), 2 * x + 1)
    assert np.array_equal(s2s.vmap(s2s.grad(h))(np.stack([x, -x])), np.stack([2 * x, -2 * x]))
    assert np.array_equal(s2s.grad(with_rule(picked))(x + 3), 2 * (x + 3))


@pytest.mark.parametrize(
    "cut", [lambda t: t[:1], lambda t: np.concatenate([t, t])], ids=["shorter", "longer"]
)
def test_a_rule_for_tangents_gives_another_length(cut):
    @s2s.custom_jvp
    def h(q):
        return q * q

    @h.defjvp
    def rule(primals, tangents):
        return primals[0] * primals[0], cut(2 * primals[0] * tangents[0])

    x = np.array([1.0, 2.0, 3.0])
    with pytest.raises(ShapeMismatchError, match="another length"):
        s2s.jvp(h, (x,), (x,))
    with pytest.raises(ShapeMismatchError, match="another length"):
        s2s.grad(lambda q: np.sum(h(q)))(x)


# -------------------------------------------------------------------- arrays with ways of their own


class Scaled(np.ndarray):
    def __mul__(self, other):
        return 1000.0 * np.asarray(self) * np.asarray(other)


class Counted(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return 7 * getattr(ufunc, method)(*map(np.asarray, inputs), **options)


class Averaged(np.ndarray):
    def sum(self, *args, **options):
        return np.asarray(self).mean()


class Transposing(np.ndarray):
    @property
    def T(self):
        return np.asarray(self)[::-1]


class Labelled(np.ndarray):
    """Carries a label and computes as any array does."""

    def __array_finalize__(self, made):
        self.label = getattr(made, "label", "")

    def __repr__(self):
        return self.label


@dataclass
class Holder:
    a: object


@pytest.mark.parametrize(
    "kind", [Scaled, Counted, Averaged, Transposing], ids=lambda kind: kind.__name__
)
def test_arrays_that_compute_in_their_own_way(kind):
    x, plain = np.ones(3).view(kind), np.ones(3)

    def square(x):
        return np.sum(x * x)

    after_plain = s2s.grad(square)
    after_plain(plain)
    for call in (
        lambda: s2s.grad(square)(x),
        lambda: after_plain(x),
        lambda: s2s.jvp(square, (x,), (plain,)),
        lambda: s2s.grad(lambda h: square(h.a))(Holder(x)),
        lambda: s2s.grad(lambda y: np.sum(x * y))(plain),
    ):
        with pytest.raises(
            UnsupportedError,
            match=f"(?s){kind.__name__}, whose arithmetic is its own.*with np.asarray",
        ):
            call()


def test_arrays_that_only_carry_more():
    x = np.arange(3.0).view(Labelled)
    assert np.array_equal(s2s.grad(lambda x: np.sum(x * x))(x), 2 * np.arange(3.0))
    assert np.array_equal(
        s2s.grad(lambda x: np.sum(x * x))(np.arange(3.0).view(np.recarray)), 2 * np.arange(3.0)
    )


# ------------------------------------------------------------------------------------------ options


def test_a_complex_tangent_of_a_real_argument():
    def cube(x):
        return x * x * x

    for call in (
        lambda: s2s.jvp(cube, (1.0,), (1j,)),
        lambda: s2s.jvp(cube, (np.ones(2),), (1j * np.ones(2),)),
        lambda: s2s.hvp(cube, (1.0,), (1j,)),
        lambda: s2s.linearize(cube)(1.0, 1j),
        lambda: s2s.jvp(lambda d: cube(d["a"]), ({"a": 1.0},), ({"a": 1j},)),
    ):
        with pytest.raises(
            TypeMismatchError,
            match="(?s)the tangent of .* is .*complex128.*Instead: give its real part",
        ):
            call()
    assert s2s.jvp(cube, (1j,), (1j,)) == (-1j, -3j)


@pytest.mark.parametrize(
    "transform", [s2s.grad, s2s.value_and_grad, s2s.jacrev, s2s.jacfwd, s2s.hessian]
)
@pytest.mark.parametrize("nothing", [(), []], ids=["tuple", "list"])
def test_no_argument_to_differentiate(transform, nothing):
    with pytest.raises(TypeMismatchError, match="(?s)argnums names no argument.*Instead: name one"):
        transform(lambda x: x * x, argnums=nothing)


@pytest.mark.parametrize("axis", [2, -3, 5])
def test_axes_of_results_that_are_not_there(axis):
    with pytest.raises(
        TypeMismatchError,
        match=f"(?s)out_axes {axis}, and the result has 2 axes.*Instead: name an axis",
    ):
        s2s.vmap(lambda x: 2 * x, out_axes=axis)(np.ones((2, 3)))
    with pytest.raises(TypeMismatchError, match=f"out_axes {axis}, and the result has 2 axes"):
        s2s.vmap(lambda x: (x[0], 2 * x), out_axes=(0, axis))(np.ones((2, 3)))
    with pytest.raises(TypeMismatchError, match=f"out_axes {axis}, and the result has 2 axes"):
        s2s.vmap(lambda x: {"a": x, "b": x[0]}, out_axes={"a": axis, "b": 0})(np.ones((2, 3)))


def test_axes_of_results_that_are_there():
    x = np.arange(6.0).reshape(2, 3)
    for axis, expected in ((0, x), (-2, x), (1, x.T), (-1, x.T)):
        assert np.array_equal(s2s.vmap(lambda x: x + 0, out_axes=axis)(x), expected)
    assert np.array_equal(s2s.vmap(lambda x: np.sum(x), out_axes=-1)(x), x.sum(1))


@pytest.mark.parametrize("axes", ["a", 1.5, (0, "b"), {"x": 0.0}])
def test_axes_that_are_no_numbers(axes):
    for options in ({"in_axes": axes}, {"out_axes": axes}):
        with pytest.raises(
            TypeMismatchError, match="(?s)_axes is or has .*Instead: give the number of an axis"
        ):
            s2s.vmap(lambda x: x, **options)


def test_more_axes_than_results():
    with pytest.raises(TypeMismatchError, match="(?s)1 results and out_axes 2 entries.*one for "
                                                "each result"):
        s2s.vmap(lambda x: 2 * x, out_axes=(0, 1))(np.ones((2, 3)))


@pytest.mark.parametrize("shape", [(3,), (7,), (0,), (2, 2), ()])
def test_unravel_of_another_length(shape):
    vector, unravel = s2s.ravel_pytree({"a": np.ones(3), "b": 1.0})
    x = np.ones(shape)
    for call in (lambda: unravel(x), lambda: s2s.jvp(lambda z: unravel(z)["a"], (x,), (x,))):
        with pytest.raises(ValueError, match="unravel of something else than a vector of length 4"):
            call()
    assert np.array_equal(
        s2s.grad(lambda z: np.sum(unravel(z)["a"]) * unravel(z)["b"])(vector), [1, 1, 1, 3]
    )


# ----------------------------------------------------------------------------------- large integers


def scaled_by(x, n):
    return x * n


def scaled_in_a_loop(x):
    for k in range(3):
        x = x * 2**70 if k > 1 else x + 2**66
    return x


@pytest.mark.compile
def test_integers_of_more_than_64_bits_do_as_python():
    f = s2s.jit(scaled_by)
    for n in (3, 2**70, -2**64, 5):
        assert f(1.5, n) == 1.5 * n
    assert s2s.jit(s2s.grad(scaled_by))(1.0, 2**70) == 2.0**70
    assert s2s.jit(lambda x: np.sum(x * 2**70 + x / 2**65))(np.ones(3)) == 3 * (2.0**70 + 2.0**-65)
    assert s2s.jit(scaled_in_a_loop)(1.0) == scaled_in_a_loop(1.0)


@pytest.mark.compile
def test_integers_of_more_than_64_bits_that_stay_integers():
    for f in (lambda n: n * 2**70, lambda n: (n, 2**70)):
        with pytest.raises(
            UnsupportedError,
            match="(?s)2\\*\\*70.*the integer 1180591620717411303424.*Instead: write it as a float",
        ):
            s2s.jit(f)(1)


# ----------------------------------------------------------------------- unequal lengths and halves


def interpolated(u, v):
    return np.sum(np.interp(np.array([0.5, 0.7]), u, v))


def dropped(u, v):
    u * v
    return np.sum(u) + np.sum(v)


def padded(u, v):
    return np.sum(np.pad(u, 1) * np.pad(v, 1))


@pytest.mark.parametrize("f", [interpolated, dropped, padded], ids=lambda f: f.__name__)
@pytest.mark.parametrize("halve", [s2s.vjp, s2s.linearize], ids=lambda f: f.__name__)
def test_halves_of_derivatives_ask_for_lengths(f, halve):
    u, v = np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0])
    with pytest.raises(ShapeMismatchError, match="pass arrays whose lengths go together"):
        halve(f, u, v)
    with pytest.raises(ValueError):
        halve(lambda u: f(u, v), u)
    assert halve(f, u, u)[0] == f(u, u)


# ----------------------------------------------------------------- directions given inside programs


def squares(q):
    return q**2


def total(q):
    return np.sum(q**2)


INSIDE = {
    "jvp": lambda q, t: s2s.jvp(squares, (q,), (t,))[1],
    "vjp": lambda q, t: s2s.vjp(squares, q)[1](t)[0],
    "linearize": lambda q, t: s2s.linearize(squares, q)[1](t),
    "hvp": lambda q, t: s2s.hvp(total, (q,), (t,)),
    "jvp of grad": lambda q, t: s2s.jvp(s2s.grad(total), (q,), (t,))[1],
    "of a dict": lambda q, t: s2s.jvp(lambda d: d["a"] * 2.0, ({"a": q},), ({"a": t},))[1],
    "of a tuple": lambda q, t: s2s.vjp(lambda a: (a, a * 2.0), q)[1]((t, q))[0],
}


@pytest.mark.parametrize("f", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("lengths", [(3, 1), (3, 2), (1, 3)])
def test_a_direction_of_another_length(f, lengths):
    n, m = lengths
    with pytest.raises((ShapeMismatchError, TypeMismatchError)):
        s2s.jacfwd(f)(np.ones(n), np.ones(m))


@pytest.mark.compile
@pytest.mark.parametrize("f", [INSIDE["jvp"], INSIDE["hvp"]], ids=["jvp", "hvp"])
def test_a_direction_of_another_length_in_native_code(f):
    compiled = s2s.jit(f)
    assert np.array_equal(compiled(np.full(3, 2.0), np.ones(3)), f(np.full(3, 2.0), np.ones(3)))
    for m in (1, 2):
        with pytest.raises((ShapeMismatchError, TypeMismatchError)):
            compiled(np.ones(3), np.ones(m))


@pytest.mark.parametrize("f", INSIDE.values(), ids=INSIDE)
def test_a_complex_direction_of_what_is_real(f):
    with pytest.raises(TypeMismatchError, match="(?s)complex.*real|Instead: give"):
        s2s.jacfwd(f)(np.ones(3), np.full(3, 1j))


def test_a_rule_gives_a_complex_tangent_of_what_is_real():
    @s2s.custom_jvp
    def h(q):
        return q * q

    h.defjvp(lambda primals, tangents: (primals[0] ** 2, 2j * primals[0] * tangents[0]))
    for t in (s2s.grad, s2s.jacfwd):
        with pytest.raises(
            TypeMismatchError,
            match="(?s)gives a tangent as complex128.*Instead: give "
            "it the dtype of what it belongs to",
        ):
            t(lambda q: np.sum(h(q)))(np.ones(3))
