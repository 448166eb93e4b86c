"""Jacobians, Hessians, pullbacks and pushforwards of whole programs, entry by entry against
hyper-dual numbers.

And what they cost: the work of the primal once, whatever the number of directions.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from judge import Case, close, same
from programs import MORE_RESULTS, PROGRAMS

import s2s
from s2s import tree

MOST = 12  # directions: programs with more inputs are looked at in some of them
RTOL, ATOL = 1e-8, 1e-9


def case_of(program) -> Case:
    return Case(program.function, program.args, program.wrt)


def units(case: Case) -> list[tuple[int, int]]:
    """Some of the inputs that are varied: which leaf, and which of its elements."""
    every = [(k, n) for k, v in enumerate(case.varied) if v for n in range(np.size(case.leaves[k]))]
    return every[::max(1, -(-len(every) // MOST))]


def unit(case: Case, at: tuple[int, int]) -> list:
    """The direction of one input."""
    found = [np.zeros(np.shape(x)) for x in case.leaves]
    found[at[0]].reshape(-1)[at[1]] = 1.0
    return [t if t.shape else t.item() for t in found]


def entry(case: Case, block, at: tuple[int, int], y):
    """The column of a block that belongs to one input: shape y.shape."""
    return np.asarray(block).reshape(np.shape(y) + (-1,))[..., at[1]]


def blocks(case: Case, jacobian) -> list[list]:
    """For each leaf of the result, the blocks of the leaves of all arguments differentiated, by
    number of the leaf.
    """
    inputs = [k for j in case.wrt for k, owner in enumerate(case.owners) if owner == j]
    ys = tree.structure(case.plain).flatten_up_to(jacobian)
    return [dict(zip(inputs, tree.leaves(found), strict=True)) for found in ys]


# the others are slow together
QUICK = ("settle", "written_twice", "return_from_loop", "several_results")
EVERY = pytest.mark.parametrize(
    "program",
    [
        pytest.param(p, id=p.name, marks=() if p.name in QUICK else pytest.mark.slow)
        for p in PROGRAMS
    ],
)


@pytest.mark.parametrize("kind", ["jacfwd", "jacrev", "jacobian"])
@EVERY
def test_jacobian(program, kind):
    case = case_of(program)
    args = case.copies()
    found = blocks(case, getattr(s2s, kind)(case.f, argnums=case.wrt)(*args))
    case.untouched(args)
    for at in units(case):
        expected = case.oracle(unit(case, at), unit(case, at))["a"]
        for block, y, e in zip(found, tree.leaves(case.plain), expected, strict=True):
            assert close(entry(case, block[at[0]], at, y), e, RTOL, ATOL)


@EVERY
def test_pullback_and_pushforward(program):
    """Each is called again and again, and neither sees what is written into arguments and results
    later.
    """
    case = case_of(program)
    args = case.copies()
    y, pull = s2s.vjp(case.f, *args)
    value, push = s2s.linearize(case.f, *args)
    assert same(y, case.plain) and same(value, case.plain)
    case.untouched(args)
    for x in tree.leaves((args, y, value)):
        if isinstance(x, np.ndarray):
            x[...] = 7
    for seed in (0, 1, 0):
        d = case.direction(seed)
        expected = case.oracle(d, d)["a"]
        for got, e in zip(tree.leaves(push(*case.tangents(d))), expected, strict=True):
            assert close(got, e, RTOL, ATOL)
        y_bar = [
            np.cos(seed + np.arange(np.size(v))).reshape(np.shape(v))
            for v in tree.leaves(case.plain)
        ]
        bars = pull(
            tree.unflatten(tree.structure(case.plain), [b if b.shape else b.item() for b in y_bar])
        )
        slope = sum(float(np.sum(np.asarray(b) * e)) for b, e in zip(y_bar, expected))
        assert close(case.pair(tuple(bars[k] for k in case.wrt), d), slope, RTOL, ATOL)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(p, id=p.name, marks=() if p.name in QUICK else pytest.mark.slow)
        for p in PROGRAMS
        if p.name not in MORE_RESULTS
    ],
)
def test_hessian(program):
    case = case_of(program)
    h = s2s.hessian(case.f, argnums=case.wrt)(*case.copies())
    inputs = [k for j in case.wrt for k, owner in enumerate(case.owners) if owner == j]
    rows = dict(zip(inputs, tree.structure(tuple(case.args[k] for k in case.wrt)).flatten_up_to(h)))
    some = units(case)[::4]
    for at in some:
        columns = dict(zip(inputs, tree.leaves(rows[at[0]])))
        for other in some:
            x, z = case.leaves[at[0]], case.leaves[other[0]]
            got = np.asarray(columns[other[0]]).reshape(np.size(x), np.size(z))[at[1], other[1]]
            assert close(
                got, case.oracle(unit(case, at), unit(case, other))["ab"][0], 10 * RTOL, 10 * ATOL
            )


# ------------------------------------------------------------------------ any three, one of another


def branching(x):
    y = x
    n = 0
    while n < 2:
        if x > 0.0:
            y = y * y * 0.5 + x
        else:
            y = y * x
        n += 1
    return y


KINDS = {  # of a function of one number: which transformation, and how often it differentiates
    "grad": (s2s.grad, 1),
    "jacfwd": (s2s.jacfwd, 1),
    "jacrev": (s2s.jacrev, 1),
    "jacobian": (s2s.jacobian, 1),
    "hessian": (s2s.hessian, 2),
    "jvp": (lambda g: lambda x: s2s.jvp(g, (x,), (1.0,))[1], 1),
    "vjp": (lambda g: lambda x: s2s.vjp(g, x)[1](1.0)[0], 1),
    "linearize": (lambda g: lambda x: s2s.linearize(g, x)[1](1.0), 1),
    "hvp": (lambda g: lambda x: s2s.hvp(g, (x,), (1.0,)), 2),
}
TRIPLES = random.Random(3).sample(list(itertools.product(KINDS, repeat=3)), 60)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(names, id="-".join(names), marks=pytest.mark.slow if k > 2 else ())
        for k, names in enumerate(TRIPLES)
    ],
)
def test_any_three_kinds_one_of_another(names):
    """Against the derivatives of the polynomial that the program computes."""
    polynomial = start = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(2):
        polynomial = polynomial * polynomial * 0.5 + start
    g = branching
    for name in names:
        transform, order = KINDS[name]
        g, polynomial = transform(g), polynomial.deriv(order)
    assert np.isclose(g(0.7), polynomial(0.7), rtol=1e-10)


# ------------------------------------------------------------------------------------ what it costs


def simulated(x, steps):
    """Steps that cost something: the function of them is evaluated once, whoever asks how often."""
    for i in range(steps):
        x = x + 0.1 * np.sin(x) * np.exp(-x)
    return x


def settled(x):
    while np.sum(x * x) > 0.5:
        x = np.tanh(x) * 0.9
    return x * np.sum(x)


@pytest.fixture
def evaluations(monkeypatch):
    """How often np.exp, or np.tanh, has been evaluated, in all."""
    count = {"exp": 0, "tanh": 0}

    def watched(name):
        plain = getattr(np, name)

        def run(x):
            count[name] += 1
            return plain(x)

        return run

    class Watched:
        exp, tanh = staticmethod(watched("exp")), staticmethod(watched("tanh"))

        def __getattr__(self, name):
            return getattr(np, name)

    import s2s.runtime.debug.load_source as load_module

    plain_load = load_module.load

    def load(text, entry, lines, check=None, given=None):
        return plain_load(
            text.replace("import numpy as np\n", ""),
            entry,
            lines,
            check,
            {**(given or {}), "np": Watched()},
        )

    for module in ("s2s.pipeline", "s2s.derive.linear_maps"):
        monkeypatch.setattr(f"{module}.load", load)
    return count


@pytest.mark.parametrize("kind", ["jacfwd", "jacrev"])
def test_a_jacobian_does_the_work_of_the_primal_once_for_all_directions(evaluations, kind):
    few, many = np.linspace(0.1, 1.0, 3), np.linspace(0.1, 1.0, 50)
    found = []
    for x in (few, many):
        before = evaluations["exp"]
        getattr(s2s, kind)(simulated)(x, 4)
        found.append(evaluations["exp"] - before)
    # at most forwards and backwards, whatever the number of directions
    assert found[0] == found[1] <= 8


def test_linearize_does_the_work_of_the_primal_once(evaluations):
    x = np.linspace(0.1, 1.0, 5)

    def program(x):
        for i in range(4):
            x = x + 0.1 * np.exp(-x)
        return x

    y, push = s2s.linearize(program, x)
    y, pull = s2s.vjp(program, x)
    assert evaluations["exp"] == 8
    for _ in range(10):
        push(x), pull(x)
    assert evaluations["exp"] == 8
    y, push = s2s.linearize(settled, x)
    before = evaluations["tanh"]
    assert before > 0
    push(x), push(x)
    assert evaluations["tanh"] == before


def of_a_slice(x, k):
    first = x[:k]
    out = np.zeros(len(first))
    out[np.arange(len(first))] = first * first
    return out


def of_a_loop(x, k):
    out = np.zeros(len(x[:k]))
    for i in range(len(out)):
        out[i] = x[i] ** 2
    return out


def of_a_matrix(x, k):
    return np.diag(x[:k]) @ x[:k, None]


def of_some(x, k):
    some = x[x < x[k]]
    return np.eye(len(some)) @ (some * some)


@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("f", [of_a_slice, of_a_loop, of_a_matrix, of_some])
def test_as_many_rows_as_something_inside_is_long(f, k):
    x = np.arange(1.0, 6.0)
    for t in (s2s.jacrev, s2s.jacfwd):
        assert np.array_equal(t(f)(x, k).reshape(k, 5), 2 * np.eye(k, 5) * x)


def test_hvp_is_generated_once():
    x = np.linspace(0.1, 1.0, 5)

    def program(x):
        return np.sum(simulated(x, 3) ** 2)

    s2s.hvp(program, (x,), (x,))
    (t,) = [t for key, t in program.__dict__["__s2s__"].items() if key[0] == "hvp"]
    found = t.last
    s2s.hvp(program, (2 * x,), (x,))
    assert t.last is found


@pytest.mark.parametrize("kind", ["jacfwd", "jacrev", "hessian"])
def test_no_loop_over_directions_is_written(kind):
    f = simulated if kind != "hessian" else lambda x, n: np.sum(simulated(x, n))
    text = getattr(s2s, kind)(f).lower(np.ones(4), 3).source
    loops = 1 if kind == "jacfwd" else 2
    assert (
        text.count("for ")
        - text.count("for x")
        - text.count("for lambda")
        - text.count("for simulated")
        >= loops
    )
    assert text.count("range(") == loops and "np.eye(" in text and "lane" not in text


# -------------------------------------------------------------------------------------- native code


@pytest.mark.compile
@pytest.mark.parametrize("kind", ["jacfwd", "jacrev", "hessian"])
def test_compiled(kind):
    def f(u, k):
        u = u.copy()
        for s in range(3):
            for i in range(1, len(u) - 1):
                if u[i] > 0.0:
                    u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
                else:
                    u[i] = np.sin(u[i]) * k
        return u if kind != "hessian" else np.sum(u * u)

    t, args = getattr(s2s, kind)(f, argnums=(0, 1)), (np.sin(np.arange(6.0)), 0.2)
    for got, wanted in zip(s2s.jit(t)(*args), t(*args), strict=True):
        for g, w in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-11, atol=1e-13)


@pytest.mark.compile
def test_halves_of_a_compiled_function_are_compiled():
    def f(x):
        n = 0
        while np.sum(x * x) > 0.5:
            for i in range(len(x)):
                if x[i] > 0.0:
                    x[i] = np.sin(x[i]) * 0.9
                else:
                    x[i] = x[i] * x[i - 1] * 0.5
            n += 1
        return x * n

    x = np.array([0.9, -0.4, 1.3])
    y, pull = s2s.vjp(s2s.jit(f), x)
    value, push = s2s.linearize(s2s.jit(f), x)
    for _ in range(2):
        np.testing.assert_allclose(pull(y)[0], s2s.vjp(f)(x, y)[0], rtol=1e-12)
        np.testing.assert_allclose(push(y), s2s.jvp(f, (x,), (y,))[1], rtol=1e-12)
    np.testing.assert_allclose(
        s2s.jit(s2s.vmap(pull))(np.eye(3))[0], s2s.jacrev(f)(x), rtol=1e-12, atol=1e-14
    )


@pytest.mark.compile
def test_newton_cg_as_one_program():
    """Two nested `while` loops around a Hessian-vector product, compiled as one."""
    A = np.array([[3.0, 0.4, 0.1], [0.4, 2.0, 0.3], [0.1, 0.3, 1.5]])

    def objective(x):
        return 0.5 * x @ A @ x - np.sum(x) + 0.05 * np.sum(x**4)

    def newton(x):
        g = s2s.grad(objective)(x)
        trips = 0
        while np.sum(g * g) > 1e-20 and trips < 20:
            _, push = s2s.linearize(s2s.grad(objective), x)
            d, r = np.zeros_like(x), -g
            p, rr = r, np.sum(r * r)
            k = 0
            while rr > 1e-24 and k < 10:
                h = push(p)
                a = rr / (p @ h)
                d = d + a * p
                r = r - a * h
                new = np.sum(r * r)
                p, rr = r + new / rr * p, new
                k += 1
            x = x + d
            g = s2s.grad(objective)(x)
            trips += 1
        return x

    x = newton(np.ones(3))
    np.testing.assert_allclose(s2s.grad(objective)(x), 0.0, atol=1e-9)
    np.testing.assert_allclose(s2s.jit(newton)(np.ones(3)), x, rtol=1e-9)
