"""Loops that nothing reads are dropped, unless they act or may not end."""

import numpy as np
import pytest

import s2s
from s2s.back.loops.drop_unused import drop_unused
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.types import Array, Extent
from s2s.ops.arrays.index import take
from s2s.ops.core.control import for_loop, while_loop
from s2s.ops.core.record import value
from s2s.ops.core.shape import length


def left_of(emit):
    """The names of the ops that are left of those that `emit` adds to a function that returns a
    length.
    """
    x = Value(Array("float64", (Extent("n", 0, False),)), "x")
    block = Block(params=[x])
    with Builder(block):
        n = length(x, axis=0)
        emit(x, n)
        block.yields = [n]
    return [op.name for op in drop_unused(Function("f", block)).block.ops]


def test_a_loop_that_only_computes_is_dropped():
    assert left_of(lambda x, n: for_loop(
        0, n, 1, [value(0.0)], lambda i, total: [total + take(x, i)])) == ["length"]


def test_a_loop_that_may_not_end_is_left():
    def emit(x, n):
        def search(i, _):
            return while_loop([value(0)], lambda k: k < n, lambda k: [k + i])
        return for_loop(0, n, 1, [value(0)], search)

    assert "for" in left_of(emit)


def test_a_loop_that_raises_is_left():
    def refuses(x):
        for v in x:
            if v < 0.0:
                raise ValueError("negative")
        return x * 2.0

    module = {}
    exec(s2s.jit(refuses).lower(np.ones(3)).loops, module)
    np.testing.assert_array_equal(module["refuses"](np.ones(3)), 2 * np.ones(3))
    with pytest.raises(ValueError, match="negative"):
        module["refuses"](np.array([1.0, -1.0]))
