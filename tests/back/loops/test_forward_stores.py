"""Stored elements are passed on to later reads of them, and stores that are overwritten at once are
gone.

The ops are added one by one, as fusion leaves them: the builder itself would fold them.
"""

import numpy as np

from s2s.back.loopir.ops import new_buffer
from s2s.back.loops.forward_stores import forward_stores
from s2s.ir.builder import Builder, add_op
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.interpret import interpret
from s2s.ir.types import Array, Extent, Scalar
from s2s.ir.verify import verify
from s2s.ops.arrays.index import getitem, setitem
from s2s.ops.core.control import for_loop
from s2s.ops.core.record import value
from s2s.ops.core.shape import length

VECTOR = Array("float64", (Extent("n", 0, False),))
X = np.array([0.5, -1.0, 2.0])


def read(array, i):
    return add_op(getitem, [array, i], {"pattern": ("i",)}, [Scalar("float64")]).output


def store(array, x, i):
    return add_op(setitem, [array, value(x), i], {"pattern": ("i",)}, [VECTOR]).output


def loop_of(trip):
    """A loop over the elements of x that fills y and adds up a total."""
    x = Value(VECTOR, "x")
    block = Block(params=[x])
    with Builder(block):
        n = length(x, axis=0)
        y = new_buffer("float64", VECTOR.dims, [n])
        block.yields = list(for_loop(0, n, 1, [y, value(0.0)],
                                     lambda i, y, total: trip(x, i, y, total),
                                     names=["y", "total"], index="i"))
    return Function("f", block, tupled=True)


def forwarded(trip):
    """The reads and stores that are left of a trip; the results stay the same."""
    function = loop_of(trip)
    before = interpret(function, X)
    function = verify(forward_stores(function), lengths=False)
    for a, b in zip(interpret(function, X), before, strict=True):
        np.testing.assert_array_equal(a, b)
    return [op.name for op in walk(function.block) if op.name in ("getitem", "setitem")]


def test_a_read_of_what_was_stored_is_the_value():
    def trip(x, i, y, total):
        y = store(y, read(x, i) * 2.0, i)
        return [y, total + read(y, i)]

    assert forwarded(trip) == ["getitem", "setitem"]


def test_a_store_that_is_overwritten_at_once_is_gone():
    def trip(x, i, y, total):
        y = store(y, read(x, i) * 2.0, i)
        y = store(y, read(y, i) + 1.0, i)
        return [y, total + read(y, i)]

    assert forwarded(trip) == ["getitem", "setitem"]


def test_a_store_that_is_read_elsewhere_stays():
    def trip(x, i, y, total):
        y = store(y, 2.0, i)
        first = read(y, value(0))
        y = store(y, 3.0, i)
        return [y, total + first]

    assert forwarded(trip) == ["setitem", "getitem", "setitem"]


def test_another_element_is_read_from_memory():
    def trip(x, i, y, total):
        y = store(y, 2.0, value(0))
        y = store(y, read(x, i), i)
        return [y, total + read(y, value(0))]

    assert forwarded(trip) == ["setitem", "getitem", "setitem", "getitem"]


def test_equal_literal_indices_are_one_element():
    def trip(x, i, y, total):
        y = store(y, read(x, i), value(1))
        return [y, total + read(y, value(1))]

    assert forwarded(trip) == ["getitem", "setitem"]


def test_nothing_is_carried_to_the_next_trip():
    def trip(x, i, y, total):
        before = read(y, value(0))
        y = store(y, read(x, i), value(0))
        return [y, total + 0.0 * before]

    assert forwarded(trip) == ["getitem", "getitem", "setitem"]
