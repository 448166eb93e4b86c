"""Lengths of arguments that loops exchange are assumed equal, and each call is asked whether."""

from s2s.back.arrays.assume_equal_lengths import axes_alike
from s2s.ir.graph import Block, Function, Value
from s2s.ir.types import FLOAT, Array, Extent

N, M, K = (Extent(name, 0, False) for name in "nmk")


def test_the_axes_of_extents_assumed_equal_are_paired():
    params = [
        Value(FLOAT, "a"),
        Value(Array("float64", (K, N)), "x"),
        Value(Array("float64", (M,)), "y"),
        Value(Array("float64", (M, K)), "z"),
    ]
    found = list(axes_alike(Function("f", Block(params=params)), {M: N}))
    assert found == [((1, 1), (2, 0)), ((1, 1), (3, 0))]
