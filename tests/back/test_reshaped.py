"""Reshapes stand before what is computed element by element from products, and sums before them: one nest where there were two."""

import numpy as np
import pytest

import s2s
from s2s.back.loops import lower
from s2s.ir.graph import Function, walk
from s2s.ir.interpret import interpret
from s2s.ir.verify import verify
from s2s.ops.index import take
from s2s.ops.reshape import reshape, reshape_like
from s2s.ops.shape import length

from .test_loops import call, copied, count, program, run_text

RNG = np.random.default_rng(0)
X, W, B = RNG.normal(size=(6, 40)), RNG.normal(size=(40, 5)), RNG.normal(size=5)  # large enough for BLAS
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
    return any(op.name in ("reshape", "reshape_like") and op.inputs[0].op is not None and op.inputs[0].op.name == "for" for op in walk(function.block))


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
    return reshape(call(np.transpose, x @ w) + call(np.transpose, reshape(like, 6, 5)), 2, 3, 5) * like


def with_a_bias_for_each_row(x, w, b, like):
    return reshape(x @ w + call(np.sum, x, axis=1, keepdims=True), 2, 3, 5) * like


def with_one_row_for_all(x, w, b, like):
    return reshape(x @ w + take(b, (None, slice(None))) @ (call(np.transpose, w) @ w), 2, 3, length(w, axis=1)) * like


@pytest.mark.parametrize("body", [with_one_row_for_all, read_before_as_well, along_another_axis, of_a_transpose, with_a_bias_for_each_row])
def test_what_cannot_move_stays(body):
    check(body, X, W, B, LIKE)


def rows(x, *lengths):
    return reshape(call(np.sin, x), *lengths, length(x, axis=2))


SUMMED = {
    "of the first": (lambda x: call(np.sum, rows(x, 6), axis=0), True),
    "of all": (lambda x: call(np.sum, rows(x, 6), axis=(0, 1)), True),
    "greatest": (lambda x: call(np.max, rows(x, -1), axis=0), True),
    "more axes": (lambda x: call(np.sum, rows(x, 3, 2, 1), axis=(0, 1, 2)), True),
    "of the second": (lambda x: call(np.sum, rows(x, 6), axis=1), False),
    "of a part": (lambda x: call(np.sum, rows(x, 3, 2), axis=0), False),
    "kept": (lambda x: call(np.sum, rows(x, 6), axis=0, keepdims=True), False),
    "of other rows": (lambda x: call(np.sum, reshape(call(np.sin, x), 5, 6), axis=0), False),
}


@pytest.mark.parametrize("body, moves", SUMMED.values(), ids=SUMMED)
def test_sums_of_reshapes(body, moves):
    assert written_to_be_reshaped(check(body, LIKE)) != moves


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_of_no_elements(shape):
    rows, columns = shape[0] * shape[1], shape[2]
    check(lambda x, w, b, like: reshape(x @ w + b, length(like, axis=0), length(like, axis=1), length(w, axis=1)) * like, np.ones((rows, 4)), np.ones((4, columns)), np.ones(columns), np.ones(shape))
    check(lambda x, y: call(np.sum, reshape(call(np.sin, x), length(y, axis=0), length(y, axis=1)), axis=0), np.ones(shape), np.ones((rows, columns)))


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
