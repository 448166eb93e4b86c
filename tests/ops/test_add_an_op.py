"""An op is its record: what CONTRIBUTING says under "Add an op" is done here, and nothing else
knows these ops.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pytest

import s2s
from s2s.ops.arrays.index import take
from s2s.ops.core.batch_rules import on_all_lanes
from s2s.ops.core.define_elementwise import called, elementwise, python_syntax
from s2s.ops.core.dependence_rules import follows
from s2s.ops.core.elementwise import absolute
from s2s.ops.core.record import FUNCTIONS, RECORDS, define, its_operand, lowers
from s2s.ops.core.shape import shaped_like

X = np.array([-2.0, -0.5, 0.3, 1.7, 4.0])
ROWS = np.array([[0.5, -1.0, 2.0, 0.1], [3.0, 0.2, -0.7, 1.1], [-2.5, 0.4, 0.9, -0.3]])


def soft_sign(x):
    """What users call; nothing reads its body."""
    raise AssertionError("not the op")


def pair_sums(x):
    """What users call; nothing reads its body."""
    raise AssertionError("not the op")


def sums_of_neighbours(x):
    """The sums of neighbours along the last axis."""
    return x[..., 1:] + x[..., :-1]


def split_to_neighbours(y_bar):
    """The transpose of sums_of_neighbours."""
    x_bar = np.zeros(y_bar.shape[:-1] + (y_bar.shape[-1] + 1,))
    x_bar[..., 1:] += y_bar
    x_bar[..., :-1] += y_bar
    return x_bar


def helper_syntax(helper):
    return lambda x: ast.Call(ast.Name(helper.__name__, ast.Load()), [x], [])


def longer_by(offset):
    """The type of a result whose last axis is longer by an offset."""
    def infer(x):
        *rows, n = x.type.dims
        return replace(
            x.type,
            dims=(
                *rows,
                n + offset if isinstance(n, int) else replace(n, offset=n.offset + offset),
            ),
        )

    return infer


@follows(0)
def depends_on_neighbours(unions, y, deps, x):
    return unions.union(deps[0][..., 1:], deps[0][..., :-1])


@pytest.fixture(autouse=True)
def ops():
    """An elementwise op, a linear op and its transpose, for the time of a test."""
    elementwise(
        "soft_sign",
        lambda y, x: (1 - absolute(y)) ** 2,
        also=(soft_sign,),
        slope="finite",
        evaluate=lambda x: x / (1.0 + np.abs(x)),
        syntax=python_syntax("a / (1.0 + abs(a))"),
    )
    sums = define(
        "pair_sums",
        evaluate=sums_of_neighbours,
        infer=longer_by(-1),
        linear=(0,),
        vjp=lambda bar, y, x: (shaped_like(split(bar), x),),
        syntax=helper_syntax(sums_of_neighbours),
        helper=sums_of_neighbours,
        batch=on_all_lanes,
        depends=depends_on_neighbours,
        lower=lambda op, x: take(x, (..., slice(1, None))) + take(x, (..., slice(None, -1))),
    )
    split = define("pair_split", evaluate=split_to_neighbours, infer=longer_by(1), linear=(0,),
                   vjp=lambda bar, y, x: (shaped_like(sums(bar), x),),
                   syntax=helper_syntax(split_to_neighbours), helper=split_to_neighbours,
                   batch=on_all_lanes)
    FUNCTIONS[pair_sums] = called(sums, 1)
    yield
    for name in ("soft_sign", "pair_sums", "pair_split"):
        del RECORDS[name]
    for function in (soft_sign, pair_sums):
        del FUNCTIONS[function]


def f(x):
    return np.sum(soft_sign(x) ** 2)


def g(x):
    total = 0.0
    for k in range(3):
        total += np.sum(pair_sums(x * x) ** 2) * soft_sign(x[k])
    return total


# ------------------------------------------------------------- the same by hand, and by differences


def f_by_hand(x):
    return np.sum((x / (1 + np.abs(x))) ** 2)


def f_gradient(x):
    return 2 * x / (1 + np.abs(x)) ** 3


def f_second(x):
    return (2 - 4 * np.abs(x)) / (1 + np.abs(x)) ** 4


def g_by_hand(x):
    pairs = x[1:] ** 2 + x[:-1] ** 2
    return np.sum(pairs ** 2) * np.sum(x[:3] / (1 + np.abs(x[:3])))


def g_gradient(x):
    """Complex steps cannot see abs, so the size is written as a product with the sign."""
    def complex_g(z):
        pairs = z[1:] ** 2 + z[:-1] ** 2
        return np.sum(pairs ** 2) * np.sum(z[:3] / (1 + z[:3] * np.sign(x[:3])))

    return np.array([complex_g(x + 1e-30j * e).imag / 1e-30 for e in np.eye(len(x))])


def test_values():
    for function, by_hand in ((f, f_by_hand), (g, g_by_hand)):
        assert s2s.value_and_grad(function)(X)[0] == pytest.approx(by_hand(X), rel=1e-14)


def test_reverse_and_forward():
    v = np.array([0.3, -1.0, 0.5, 2.0, 0.1])
    np.testing.assert_allclose(s2s.grad(f)(X), f_gradient(X), rtol=1e-14)
    np.testing.assert_allclose(s2s.grad(g)(X), g_gradient(X), rtol=1e-13)
    np.testing.assert_allclose(s2s.jvp(f, (X,), (v,))[1], f_gradient(X) @ v, rtol=1e-14)
    np.testing.assert_allclose(s2s.jvp(g, (X,), (v,))[1], g_gradient(X) @ v, rtol=1e-13)


def test_second_derivatives():
    np.testing.assert_allclose(s2s.hessian(f)(X), np.diag(f_second(X)), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(
        s2s.grad(lambda x: s2s.grad(f)(x) @ np.ones(5))(X), f_second(X), rtol=1e-13, atol=1e-14
    )
    h = 1e-6
    wanted = [(g_gradient(X + h * e) - g_gradient(X - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(s2s.hessian(g)(X), wanted, rtol=1e-6, atol=1e-6)


def test_in_lanes():
    np.testing.assert_allclose(s2s.vmap(f)(ROWS), [f_by_hand(x) for x in ROWS], rtol=1e-14)
    np.testing.assert_allclose(s2s.vmap(g)(ROWS), [g_by_hand(x) for x in ROWS], rtol=1e-13)
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(g))(ROWS), [g_gradient(x) for x in ROWS], rtol=1e-13
    )
    wanted = np.sum([g_gradient(x) for x in ROWS])
    np.testing.assert_allclose(
        np.sum(s2s.grad(lambda rows: np.sum(s2s.vmap(g)(rows)))(ROWS)), wanted, rtol=1e-13
    )


def test_lanes_are_one_call():
    """With the batching rule, vmap calls the op once."""
    source = s2s.vmap(lambda x: pair_sums(x)).lower(ROWS).source
    assert source.rstrip().endswith("    return sums_of_neighbours(x)")


def test_pattern():
    jacobian = s2s.jacobian(lambda x: pair_sums(soft_sign(x)), sparse=True)
    wanted = np.diag(np.ones(5))[:4] + np.diag(np.ones(4), 1)[:4]
    np.testing.assert_array_equal(jacobian.pattern(X).toarray(), wanted != 0)
    np.testing.assert_allclose(jacobian(X).toarray(), wanted / (1 + np.abs(X)) ** 2, rtol=1e-14)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_in_native_code_it_is_other_ops(target):
    """`pair_sums`, which says by which, is fused with what reads it; `pair_split`, which does not,
    calls its helper.
    """
    def loss(x):
        return np.sum(pair_sums(x) ** 2)

    loops = str(s2s.jit(loss, target=target).lower(X).loops)
    assert "sums_of_neighbours" not in loops and " + 1]" in loops
    assert "split_to_neighbours(" in s2s.jit(s2s.grad(loss)).lower(X).loops


def test_an_op_is_lowered_once():
    with pytest.raises(ValueError, match="the op pair_sums is lowered twice"):
        lowers(RECORDS["pair_sums"])(its_operand)


@pytest.mark.compile
def test_compiled():
    for function, by_hand, gradient in ((f, f_by_hand, f_gradient), (g, g_by_hand, g_gradient)):
        assert s2s.jit(function)(X) == pytest.approx(by_hand(X), rel=1e-13)
        np.testing.assert_allclose(s2s.jit(s2s.grad(function))(X), gradient(X), rtol=1e-13)
    np.testing.assert_allclose(
        s2s.jit(s2s.vmap(s2s.grad(g)))(ROWS), [g_gradient(x) for x in ROWS], rtol=1e-13
    )
