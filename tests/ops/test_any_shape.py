"""Indices, broadcasts, products and reductions of any shape, extents of 0 and 1 among them."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import array, judge

from s2s.ops.arrays.index import put, take
from s2s.ops.core.record import FUNCTIONS

pytestmark = pytest.mark.slow

few = settings(max_examples=40, deadline=None, derandomize=True)


def some(shape):
    """An array, or a number where there are no axes."""
    return array(*shape) if shape else float(array())


@few
@given(st.data())
def test_basic_indices(data):
    x = some(data.draw(hnp.array_shapes(max_dims=3, min_side=0, max_side=4)))
    key = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True, max_dims=5))

    def write(x, v):
        y = x.copy()
        y[key] = v
        return y

    judge(lambda x: take(x, key), lambda x: x[key], x, second=False)
    judge(lambda x, v: put(x, key, v), write, x, 1.5, second=False)


@few
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=3, max_side=3))
def test_broadcasts(shapes):
    a, b = map(some, shapes.input_shapes)
    judge(lambda a, b: a * b + a, lambda a, b: a * b + a, a, b)


@few
@given(hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=1, max_side=3))
def test_matrix_products(shapes):
    a, b = map(some, shapes.input_shapes)
    judge(lambda a, b: a @ b, lambda a, b: a @ b, a, b)


@few
@given(st.data())
def test_reductions(data):
    x = some(data.draw(hnp.array_shapes(max_dims=3, max_side=3)))
    count = x.ndim
    axis = data.draw(
        st.none() | st.integers(-count, count - 1) | hnp.valid_tuple_axes(count, min_size=1)
    )
    keepdims, function = (
        data.draw(st.booleans()),
        data.draw(st.sampled_from([np.sum, np.mean, np.max, np.var])),
    )
    judge(
        lambda x: FUNCTIONS[function](x, axis=axis, keepdims=keepdims),
        lambda x: function(x, axis=axis, keepdims=keepdims),
        x,
    )
