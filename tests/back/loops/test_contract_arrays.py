"""Arrays of which each trip uses its own row are numbers, or rows of a trip, and no others are."""

import numpy as np
import pytest

from s2s.back.loopir.ops import buffer, new_buffer
from s2s.back.loops.contract_arrays import contract_arrays
from s2s.back.print.printer import render
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.interpret import interpret
from s2s.ir.types import INT, Array, Extent
from s2s.ir.verify import verify
from s2s.ops.arrays.index import getitem, setitem
from s2s.ops.core.control import for_loop
from s2s.ops.core.elementwise import exp
from s2s.ops.core.record import value
from s2s.ops.core.shape import length

N, M = Extent("n", 0, False), Extent("m", 0, False)
X, A = np.array([0.5, -1.0, 2.0]), np.arange(6.0).reshape(3, 2)


def at(array, *indices):
    return getitem(array, *map(value, indices), pattern=("i",) * len(indices))


def put(array, x, *indices):
    return setitem(array, value(x), *map(value, indices), pattern=("i",) * len(indices))


def contracted(param, args, body):
    """A function that computes what `body` emits, before and after; both results are equal."""
    texts = []
    for is_contracted in (False, True):
        x = Value(param.type, param.name)
        block = Block(params=[x])
        with Builder(block):
            results = body(x)
            block.yields = list(results) if isinstance(results, tuple) else [results]
        function = Function("f", block, tupled=isinstance(results, tuple))
        before = interpret(function, *args)
        if is_contracted:
            contract_arrays(block)
            verify(function, lengths=False)
            np.testing.assert_allclose(interpret(function, *args), before, rtol=1e-15)
        left = sum(op.record is buffer for op in walk(function.block))
        texts.append((left, render(function).text))
    return texts


VECTOR, MATRIX = Value(Array("float64", (N,)), "x"), Value(Array("float64", (N, M)), "a")


def over(x, trip, *starts, step=1):
    n = length(x, axis=0)
    low, high = (0, n) if step == 1 else (n - 1, -1)
    return for_loop(low, high, step, list(starts), trip, index="i")


def vector_like(x):
    return new_buffer("float64", (N,), [length(x, axis=0)])


def squares(x, i, t, total):
    """t[i] = exp(x[i]), used twice in the trip."""
    t = put(t, exp(at(x, i)), i)
    return [t, total + at(t, i) * at(t, i)]


def test_an_element_of_each_trip_is_a_number():
    def body(x):
        return over(x, lambda i, t, total: squares(x, i, t, total), vector_like(x), value(0.0))[1]

    (before, _), (after, text) = contracted(VECTOR, (X,), body)
    assert (before, after) == (1, 0) and "np.empty" not in text


@pytest.mark.lengthy
def test_a_row_of_each_trip_is_an_array_of_one_axis_less():
    def body(a):
        n, m = length(a, axis=0), length(a, axis=1)
        rows = new_buffer("float64", (N, M), [n, m])

        def trip(i, rows, total):
            (rows,) = for_loop(0, m, 1, [rows],
                               lambda j, rows: [put(rows, at(a, i, j) * 2.0, i, j)], index="j")
            (total,) = for_loop(0, m, 1, [total],
                                lambda j, total: [total + at(rows, i, j)], index="j")
            return [rows, total]

        return for_loop(0, n, 1, [rows, value(0.0)], trip, index="i")[1]

    (_, before), (after, text) = contracted(MATRIX, (A,), body)
    assert after == 1
    assert "np.empty((" in before and "np.empty((" not in text and "np.empty(" in text


def read_afterwards(x):
    t, total = over(x, lambda i, t, total: squares(x, i, t, total), vector_like(x), value(0.0))
    return t, total


def read_in_the_next_trip(x):
    def trip(i, t, total):
        t = put(t, at(x, i), i)
        return [t, total + at(t, 0)]

    return over(x, trip, vector_like(x), value(0.0))[1]


def used_by_two_loops(x):
    t, total = over(x, lambda i, t, total: squares(x, i, t, total), vector_like(x), value(0.0))
    (more,) = over(x, lambda i, total: [total + at(t, i)], total)
    return more


@pytest.mark.parametrize("body", [read_afterwards, read_in_the_next_trip, used_by_two_loops])
def test_what_outlives_the_trip_is_an_array(body):
    x = Value(VECTOR.type, "x")
    block = Block(params=[x])
    with Builder(block):
        results = body(x)
        block.yields = list(results) if isinstance(results, tuple) else [results]
    before = len([op for op in walk(block) if op.record is buffer])
    contract_arrays(block)
    assert [op.record is buffer for op in walk(block)].count(True) == before == 1


def test_a_loop_backwards_is_one_as_well():
    def body(x):
        return over(x, lambda i, t, total: squares(x, i, t, total), vector_like(x), value(0.0),
                    step=-1)[1]

    (_, _), (after, _) = contracted(VECTOR, (X,), body)
    assert after == 0


def test_a_trip_that_may_be_the_last_keeps_its_array():
    """What a loop that ends early leaves of it is not known."""
    x = Value(VECTOR.type, "x")
    block = Block(params=[x, Value(INT, "k")])
    with Builder(block):
        n = length(x, axis=0)
        block.yields = [for_loop(
            0, n, 1, [vector_like(x), value(0.0)],
            lambda i, t, total: [at(x, i) > 1.0, *squares(x, i, t, total)], True, index="i")[1]]
    contract_arrays(block)
    assert any(op.record is buffer for op in walk(block))
