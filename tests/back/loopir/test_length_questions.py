"""Questions about lengths and uses: which lengths are equal, and which ops only read an array."""

import pytest

from s2s.back.loopir.extent_equalities import Equalities
from s2s.back.loopir.length_checks import is_same_number
from s2s.back.loopir.only_reads import only_reads
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Value
from s2s.ir.types import BOOL, Array, Extent
from s2s.ops.arrays.index import take
from s2s.ops.core.control import for_loop, if_
from s2s.ops.core.record import value
from s2s.ops.core.shape import length

N, M = Extent("n", 0, False), Extent("m", 0, False)
ONE_OR_MORE = Extent("k", 0, True)


def vector(name, extent):
    return Value(Array("float64", (extent,)), name)


def equalities(*extents):
    """What the sum of vectors of these lengths says about the lengths."""
    vectors = [vector(f"x{k}", d) for k, d in enumerate(extents)]
    block = Block(params=vectors)
    with Builder(block):
        total = vectors[0]
        for x in vectors[1:]:
            total = total + x
    return Equalities(block.ops)


def test_lengths_that_meet_are_equal_where_none_may_be_one():
    found = equalities(N, M)
    assert found.find(N) == found.find(M)
    assert equalities(N, 3).find(N) == 3


@pytest.mark.parametrize("other", [N, 3])
def test_a_length_that_may_be_one_is_equal_to_none_that_it_meets(other):
    found = equalities(other, ONE_OR_MORE)
    assert found.find(ONE_OR_MORE) != found.find(other)


def test_numbers_are_the_same_if_they_are_equal():
    x, y = vector("x", N), vector("y", N)
    with Builder(Block(params=[x, y])):
        assert is_same_number(value(3), value(3))
        assert not is_same_number(value(3), value(4))
        assert is_same_number(length(x, axis=0), length(x, axis=0))
        assert not is_same_number(length(x, axis=0), length(y, axis=0))
        assert not is_same_number(length(x, axis=0), value(3))


def test_a_branch_that_gives_an_array_back_does_more_than_read_it():
    x, y, condition = vector("x", N), vector("y", N), Value(BOOL, "condition")
    block = Block(params=[x, y, condition])
    with Builder(block):
        if_(condition, lambda: [x], lambda: [y])
        for_loop(0, length(x, axis=0), 1, [value(0.0)], lambda i, s: [s + take(x, i)])
    (branch,) = [op for op in block.ops if op.name == "if"]
    (loop,) = [op for op in block.ops if op.name == "for"]
    assert not only_reads(branch, x) and not only_reads(branch, y)
    assert only_reads(loop, x) and only_reads(loop, y)
    assert all(only_reads(op, x) for op in block.ops if op.name == "length")
