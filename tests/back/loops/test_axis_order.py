"""Arrays of the function's own lie in the order in which loops go through them."""

import numpy as np
import pytest

import s2s
from s2s.ir.graph import Function, walk
from s2s.ops.arrays.index import put, take
from s2s.ops.core.control import for_loop
from s2s.ops.core.shape import length

from ..arrays.test_move_reshapes import check
from ..test_lowering import call

X = np.random.default_rng(0).normal(size=(6, 4))


def shapes(function: Function) -> list[tuple]:
    """The extents of the matrices that a loop form makes."""
    return [
        op.output.type.dims
        for op in walk(function.block)
        if op.name == "buffer" and op.output.type.rank == 2
    ]


def by_columns(x):
    """Row after row of x, put into columns, and added up again."""
    n, m = length(x, axis=0), length(x, axis=1)
    saved = for_loop(0, n, 1, [call(np.zeros, (m, n))], lambda t, y: [for_loop(
        0, m, 1, [y], lambda i, y: [put(y, (i, t), take(x, (t, i)) * 2.0)])[0]])[0]
    return for_loop(0, n, 1, [0.0], lambda t, s: [for_loop(
        0, m, 1, [s], lambda i, s: [s + take(saved, (i, t)) * take(x, (t, i))])[0]])[0]


def test_columns_become_rows():
    lowered = check(by_columns, X)
    assert [tuple(str(d) for d in dims) for dims in shapes(lowered)] == [("x.0", "x.1")]


def given_back(x):
    n, m = length(x, axis=0), length(x, axis=1)
    return for_loop(
        0,
        n,
        1,
        [call(np.zeros, (m, n))],
        lambda t, y: [for_loop(0, m, 1, [y], lambda i, y: [put(y, (i, t), take(x, (t, i)))])[0]],
    )[0]


def multiplied(x):
    return given_back(x) @ x


def either(x):
    """In some trips the argument takes its place."""
    n, m = length(x, axis=0), length(x, axis=1)
    y = for_loop(
        0,
        n,
        1,
        [call(np.zeros, (n, m))],
        lambda t, y: [for_loop(0, m, 1, [y], lambda i, y: [put(y, (t, i), 1.0)])[0]],
    )[0]
    y = for_loop(
        0,
        m,
        1,
        [x],
        lambda i, z: [for_loop(0, n, 1, [y], lambda t, y: [put(y, (t, i), take(z, (t, i)))])[0]],
    )[0]
    return for_loop(
        0, m, 1, [0.0], lambda i, s: [for_loop(0, n, 1, [s], lambda t, s: [s + take(y, (t, i))])[0]]
    )[0]


@pytest.mark.parametrize("body", [given_back, multiplied, either])
def test_where_somebody_sees_the_order_it_stays(body):
    check(body, X)


def lotka(p, n):
    x, y = 1.0, 0.5
    for _ in range(n):
        dx = p[0] * x - p[1] * x * y
        dy = p[2] * x * y - p[3] * y
        x = x + 0.01 * dx
        y = y + 0.01 * dy
    return x * y


def table(x, n):
    """Filled one column after the other, each from the one before."""
    t = np.zeros((len(x), n))
    for i in range(len(x)):
        t[i, 0] = x[i]
    for j in range(1, n):
        for i in range(len(x)):
            t[i, j] = np.sin(t[i, j - 1]) * x[i]
    return np.sum(t * t)


P = 1.0 + 0.2 * np.cos(np.arange(28.0)).reshape(7, 4)


def test_lanes_of_a_tape_lie_side_by_side():
    text = s2s.vmap(s2s.grad(lotka), (0, None)).lower(P, 9).loops
    places = {part.split("]")[0] for line in text.splitlines() for part in line.split("_tape[")[1:]}
    assert len(places) == 2 and all(place.endswith(", i") for place in places), places
    # one pass for each step, back as well
    assert text.count("for i in range") == 4 and text.count("np.empty(n_1)") == 4, text


@pytest.mark.compile
@pytest.mark.parametrize("n", [0, 1, 9])
def test_lanes(n):
    gradient = s2s.grad(lotka)
    found = s2s.jit(s2s.vmap(gradient, (0, None)))(P, n)
    np.testing.assert_allclose(found, [gradient(p, n) for p in P], rtol=1e-13, atol=1e-15)
    second = s2s.vmap(s2s.jvp(gradient), (0, None, 0, None))
    for a, b in zip(s2s.jit(second)(P, n, np.sin(P), 0), second(P, n, np.sin(P), 0)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.compile
@pytest.mark.parametrize("parallel", [False, True])
def test_tables(parallel):
    gradient, x = s2s.value_and_grad(table), 0.5 + 0.3 * np.sin(np.arange(40.0))
    for a, b in zip(s2s.jit(gradient, parallel=parallel)(x, 6), gradient(x, 6)):
        np.testing.assert_allclose(a, b, rtol=1e-13)
