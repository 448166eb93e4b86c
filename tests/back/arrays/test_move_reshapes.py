"""Reshapes stand before what is computed element by element from products, and sums before them:
one nest where there were two.
"""

import numpy as np
import pytest

import s2s
from s2s.back.loop_pipeline import lower
from s2s.ir.graph import Function, walk
from s2s.ir.interpret import interpret
from s2s.ir.verify import verify
from s2s.ops.arrays.index import take
from s2s.ops.arrays.reshape import reshape, reshape_like
from s2s.ops.core.shape import length

from ..test_lowering import call, copied, count, program, run_text

RNG = np.random.default_rng(0)
# large enough for BLAS
X, W, B = RNG.normal(size=(6, 40)), RNG.normal(size=(40, 5)), RNG.normal(size=5)
LIKE = RNG.normal(size=(2, 3, 5))


def check(body, *args, rtol=1e-12) -> Function:
    """Interpreted and printed, the loop form gives what the array form gives."""
    function = program(body, *args)
    lowered = verify(lower(function))
    expected = interpret(function, *copied(args))
    for got in (interpret(lowered, *copied(args)), run_text(lowered, *copied(args))):
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-14)
            assert np.asarray(b).dtype == np.asarray(a).dtype
    return lowered


def written_to_be_reshaped(function: Function) -> bool:
    """Whether a nest makes an array that is only looked at in another shape."""
    return any(
        op.name in ("reshape", "reshape_like")
        and op.inputs[0].op is not None
        and op.inputs[0].op.name == "for"
        for op in walk(function.block)
    )


def layer(x, w, b, like):
    return call(np.tanh, reshape(x @ w + b, 2, 3, length(w, axis=1))) * like


def two_products(x, w, b, like):
    return reshape(x @ w * 2.0 + (call(np.sin, x) @ w - b), 2, 3, length(w, axis=1)) * like


def with_an_open_length(x, w, b, like):
    return reshape(b * (x @ w), -1, 3, length(w, axis=1)) - like


def of_the_rows_again(x, w, b, like):
    y = reshape(like, 6, length(like, axis=2))
    return reshape(x @ w + b, 3, 2, length(w, axis=1)) * 2.0, y * 3.0


@pytest.mark.parametrize("body", [layer, two_products, with_an_open_length, of_the_rows_again])
def test_the_bias_is_added_in_the_nest_that_reads_it(body):
    lowered = check(body, X, W, B, LIKE)
    assert count(lowered, "matmul") and not written_to_be_reshaped(lowered)


def test_one_nest_of_three_loops():
    assert count(check(layer, X, W, B, LIKE), "for") == 3


def read_before_as_well(x, w, b, like):
    y = x @ w + b
    return reshape_like(y, like) * like, call(np.sum, y, axis=1)


def along_another_axis(x, w, b, like):
    return reshape(x @ w + b, 5, 6) * 2.0


def of_a_transpose(x, w, b, like):
    return (
        reshape(call(np.transpose, x @ w) + call(np.transpose, reshape(like, 6, 5)), 2, 3, 5) * like
    )


def with_a_bias_for_each_row(x, w, b, like):
    return reshape(x @ w + call(np.sum, x, axis=1, keepdims=True), 2, 3, 5) * like


def with_one_row_for_all(x, w, b, like):
    return (
        reshape(
            x @ w + take(b, (None, slice(None))) @ (call(np.transpose, w) @ w),
            2,
            3,
            length(w, axis=1),
        )
        * like
    )


@pytest.mark.parametrize(
    "body",
    [
        with_one_row_for_all,
        read_before_as_well,
        along_another_axis,
        of_a_transpose,
        with_a_bias_for_each_row,
    ],
)
def test_what_cannot_move_stays(body):
    check(body, X, W, B, LIKE)


LAYERS = {
    "open": lambda x, w, c: np.sin(
        (x.reshape(-1, x.shape[2]) @ w + c).reshape(x.shape[0], x.shape[1], -1)
    ),
    "mean": lambda x, w, c: (
        (x.reshape(-1, x.shape[2]) @ w + c)
        .reshape(x.shape[0], x.shape[1], len(c))
        .mean(axis=(0, 1))
    ),
    "rows": lambda x, w, c: np.sin(
        np.reshape(x.reshape(-1, x.shape[2]) @ w + c, (x.shape[1], x.shape[0], w.shape[1]))
    ),
    "all": lambda x, w, c: np.sin((x.reshape(-1, x.shape[2]) @ w + c[0]).reshape(x.shape[0], -1)),
}
LENGTHS = [(2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 40, 33), (2, 3, 4, 1)]
EMPTY = {"mean", "rows"}  # NumPy does not say what -1 is, of no elements


def slopes(layer):
    return s2s.grad(lambda x, w, c: np.sum(LAYERS[layer](x, w, c) ** 2), (0, 1, 2))


@pytest.mark.compile
@pytest.mark.parametrize("layer", LAYERS)
def test_cotangents_of_biases(layer):
    gradient = slopes(layer)
    for n, m, k, o in [*LENGTHS, *([(0, 3, 4, 5)] if layer in EMPTY else [])]:
        args = RNG.normal(size=(n, m, k)), RNG.normal(size=(k, o)), RNG.normal(size=o)
        with np.errstate(all="ignore"):
            for a, b in zip(s2s.jit(gradient)(*args), gradient(*args)):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_cotangents_of_biases_are_summed_in_the_nest_that_makes_them():
    # lengths that are no numbers in the code
    args = RNG.normal(size=(2, 30, 40)), RNG.normal(size=(40, 50)), RNG.normal(size=50)
    lines = s2s.jit(slopes("rows")).lower(*args).loops.splitlines()
    # inside of three loops
    assert [
        len(line) - len(line.lstrip())
        for line in lines
        if line.lstrip().startswith("c_bar[") and "+=" in line
    ] == [16]


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_of_no_elements(shape):
    rows, columns = shape[0] * shape[1], shape[2]
    check(
        lambda x, w, b, like: (
            reshape(x @ w + b, length(like, axis=0), length(like, axis=1), length(w, axis=1)) * like
        ),
        np.ones((rows, 4)),
        np.ones((4, columns)),
        np.ones(columns),
        np.ones(shape),
    )


ONE = {
    "row": lambda x: np.sum(np.reshape(x, (1, len(x))), axis=0),
    "mean": lambda x: np.mean(x.reshape(1, -1), axis=0),
    "greatest": lambda x: np.max(np.reshape(x, (1, 1) + x.shape), axis=(0, 1)),
    "any": lambda x: np.sum(np.reshape(x > 0, (1, len(x))), axis=0),
}


@pytest.mark.compile
@pytest.mark.parametrize("f", ONE.values(), ids=ONE)
def test_sums_over_axes_of_length_1(f):
    x = RNG.normal(size=7)
    found = s2s.jit(f)(x)
    np.testing.assert_allclose(found, f(x), rtol=1e-15)
    assert found.dtype == f(x).dtype
    gradient = s2s.grad(lambda x: np.sum(f(np.sin(x)) * 1.5))
    np.testing.assert_allclose(s2s.jit(gradient)(x), gradient(x), rtol=1e-14)


@pytest.mark.compile
def test_reshapes_to_shapes_that_do_not_fit_raise():
    rows = s2s.jit(lambda x, n: np.sum(np.reshape(x, (n, x.shape[1])), axis=0))
    np.testing.assert_array_equal(rows(np.ones((4, 3)), 4), 4.0 * np.ones(3))
    with pytest.raises(ValueError, match="reshape"):
        rows(np.ones((4, 3)), 3)
    with pytest.raises(ValueError, match="reshape"):
        s2s.jit(lambda y: np.sum(np.reshape(y, (-1, y.shape[2])), axis=0))(np.ones((4, 2, 0)))
    layers = s2s.jit(lambda a, b, c, n: np.reshape(a @ b + c, (n, 3, b.shape[1])) * 2.0)
    with pytest.raises(ValueError, match="reshape"):
        layers(np.ones((4, 7)), np.ones((7, 5)), np.ones(5), 2)


def one_column(a, b, c):
    return np.reshape(a @ b + c, (a.shape[0], len(c), 1))


def one_column_of_one(a, b, c):
    return np.reshape(a @ b + c, (-1, 1))


@pytest.mark.compile
@pytest.mark.parametrize("f", [one_column, one_column_of_one])
def test_a_bias_that_widens_the_product(f):
    args = RNG.normal(size=(50, 13)), RNG.normal(size=(13, 1)), RNG.normal(size=40)
    np.testing.assert_allclose(
        s2s.jit(f).lower(*args).compile().native.run(*args), f(*args), rtol=1e-12, atol=1e-14
    )


def dense(x, W, b, V, c):
    """Two layers for each place of each member, and what is left of them."""
    n, m, k = x.shape
    h = np.tanh(x.reshape(n * m, k) @ W + b).reshape(n, m, -1)
    h = h * (1.0 + np.mean(h, axis=1, keepdims=True))
    y = (h.reshape(-1, h.shape[2]) @ V - c).reshape(n, m, V.shape[1])
    return np.sum(y * y) + np.sum(np.sin(y).max(axis=(0, 1)))


@pytest.mark.compile
@pytest.mark.parametrize("lengths", [(2, 3, 4, 5, 6), (1, 3, 40, 33, 1), (2, 1, 40, 1, 33)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layers_for_places(lengths, dtype):
    n, m, k, h, o = lengths
    args = [RNG.normal(size=shape).astype(dtype) for shape in ((n, m, k), (k, h), h, (h, o), o)]
    gradient = s2s.value_and_grad(dense, argnums=(0, 1, 2, 3, 4))
    value, bars = gradient(*args)
    found, found_bars = s2s.jit(gradient)(*args)
    tolerance = 1e-12 if dtype is np.float64 else 2e-4
    np.testing.assert_allclose(found, value, rtol=tolerance)
    for a, b in zip(found_bars, bars):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    with pytest.raises(ValueError):
        s2s.jit(gradient)(*args[:2], np.ones(h + 2, dtype), *args[3:])
