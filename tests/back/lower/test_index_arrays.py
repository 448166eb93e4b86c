"""Which sums are computed where they index: those of ranges, and of nothing that is in memory."""

from s2s.back.lower.index_arrays import index_sums
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Value
from s2s.ir.types import INT, Array, Extent
from s2s.ops.arrays.create import arange
from s2s.ops.arrays.index import take

X = Value(Array("float64", (Extent("n", 0, False),)), "x")
PICKED = Value(Array("int64", (Extent("k", 0, False),)), "picked")
COUNT = Value(INT, "count")


def sums(body):
    block = Block(params=[X, PICKED, COUNT])
    with Builder(block):
        block.yields = [body()]
    return sorted(op.name for op in index_sums(block))


def test_sums_of_ranges_are_index_arithmetic():
    assert sums(lambda: take(X, arange(0, COUNT, 1) + 1)) == ["add"]


def test_sums_of_arrays_are_made():
    """The array may be written to before the elements are read."""
    assert sums(lambda: take(X, PICKED + 1)) == []
    assert sums(lambda: take(X, PICKED + arange(0, COUNT, 1))) == []


def test_sums_that_are_used_otherwise_are_made():
    def body():
        index = arange(0, COUNT, 1) + 1
        return take(X, index) * index

    assert sums(body) == []
