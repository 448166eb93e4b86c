"""The loop form's own invariants: each is broken by hand here, and refused."""

import numpy as np
import pytest
from compositions import X, recurrence, scanned
from programs import PROGRAMS

import s2s
from s2s import passes
from s2s.back import loop_pipeline
from s2s.back.loopir.ops import checked_place, new_buffer, stays_inside_op
from s2s.back.loops.loop_bounds import check_loops
from s2s.back.print.insert_copies import copies_in_innermost_loops
from s2s.back.print.printer import render
from s2s.back.verify_loops import verify_loops
from s2s.errors import VerifyError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Op, Value, blocks_of, walk
from s2s.ir.types import INT, Array, Extent, Scalar
from s2s.ops.arrays.index import getitem, put, take
from s2s.ops.core.control import for_loop
from s2s.ops.core.elementwise import sin
from s2s.ops.core.record import value
from s2s.ops.core.shape import length


def vector(name, extent):
    return Value(Array("float64", (Extent(extent, 0, False),)), name)


def loop_form(params, body):
    block = Block(params=params)
    with Builder(block):
        results = body(*params)
        block.yields = list(results) if isinstance(results, tuple) else [results]
    return Function("f", block)


def added_up(n, term, start=0, step=1):
    return for_loop(
        start, n, step, [value(0.0)], lambda i, total: [total + term(i)], names=["total"]
    )[0]


def filled(n, term, y=None):
    """An array of n elements, written by a loop."""
    y = new_buffer("float64", (Extent("d1", 0, False),), [n]) if y is None else y
    return for_loop(0, n, 1, [y], lambda i, y: [put(y, i, term(i))], names=["y"])[0]


# --------------------------------------------------------------------------------------- arithmetic


def test_arithmetic_on_arrays_is_no_loop_form():
    function = loop_form([vector("x", "n")], lambda x: sin(x))
    with pytest.raises(VerifyError, match="sin.* is left in the loops of f"):
        verify_loops(function)


def test_nor_is_a_gather_of_many_elements():
    index = Value(Array("int64", (Extent("k", 0, False),)), "index")
    function = loop_form([vector("x", "n"), index], lambda x, index: take(x, index))
    with pytest.raises(VerifyError, match="getitem.* is left in the loops of f"):
        verify_loops(function)


def test_elements_views_and_products_are():
    matrix = Value(Array("float64", (Extent("n", 0, False), Extent("n", 0, False))), "a")
    function = loop_form(
        [matrix, vector("x", "n")],
        lambda a, x: (filled(length(x, axis=0), lambda i: sin(take(x, i))), take(a, 0) @ x),
    )
    assert verify_loops(function) is function


# ------------------------------------------------------------------------------------------- writes


def kept_in_each_trip(x):
    """The array as it was is read after a write to it, in each trip."""
    n = length(x, axis=0)
    y = filled(n, lambda i: take(x, i))
    return for_loop(
        0,
        n,
        1,
        [value(0.0)],
        lambda i, total: [total + take(put(y, i, total), 0) + take(y, i)],
        names=["total"],
    )[0]


def test_a_copy_in_each_trip_of_an_innermost_loop_is_refused():
    function = loop_form([vector("x", "n")], kept_in_each_trip)
    assert copies_in_innermost_loops(function) == 1
    with pytest.raises(VerifyError, match="f copies 1 arrays more than before the passes over "
                                          "loops, in each trip of an innermost loop"):
        verify_loops(function)
    verify_loops(function, 1)  # as the program does itself


def test_a_copy_beside_loops_is_not():
    def body(x, m):
        n = length(x, axis=0)
        y = filled(n, lambda i: take(x, i))

        def trip(k, total):
            z = filled(n, lambda i: total, y)
            return [total + added_up(n, lambda i: take(y, i) * take(z, i))]

        return for_loop(0, m, 1, [value(0.0)], trip, names=["total"], index="k")[0]

    function = check_loops(loop_form([vector("x", "n"), Value(INT, "m")], body))
    assert "copy" in render(function).text and copies_in_innermost_loops(function) == 0
    verify_loops(function)


def test_what_is_written_in_place_is_not_copied():
    function = loop_form(
        [vector("x", "n")], lambda x: filled(length(x, axis=0), lambda i: take(x, i))
    )
    assert "copy" not in render(function).text
    verify_loops(function)


# ------------------------------------------------------------------------------------------ indices


def sums():
    """Loop forms whose accesses nothing proves, by what is wrong with them."""
    x, y, n = vector("x", "n"), vector("y", "n"), Value(INT, "m")
    return {
        "another length": loop_form(
            [x, y], lambda x, y: added_up(length(x, axis=0), lambda i: take(x, i) * take(y, i))
        ),
        "one too far": loop_form(
            [vector("x", "n")], lambda x: added_up(length(x, axis=0), lambda i: take(x, i + 1))
        ),
        "a number of trips": loop_form(
            [vector("x", "n"), n], lambda x, n: added_up(n, lambda i: take(x, i))
        ),
        "downwards": loop_form(
            [vector("x", "n"), Value(INT, "m")],
            lambda x, m: added_up(-1, lambda i: take(x, i + 1), m - 1, -1),
        ),
        "in two loops": loop_form(
            [vector("x", "n"), Value(INT, "m")],
            lambda x, m: added_up(m, lambda i: added_up(m, lambda j: take(x, i + j))),
        ),
        "a write": loop_form(
            [vector("x", "n"), vector("y", "n")],
            lambda x, y: filled(length(x, axis=0), lambda i: take(x, i), y),
        ),
    }


@pytest.mark.parametrize("name", sums())
def test_an_index_that_nothing_proves_is_refused_until_it_is_checked(name):
    function = sums()[name]
    with pytest.raises(VerifyError, match="an index of .*item.* may be out of bounds"):
        verify_loops(function)
    verify_loops(check_loops(function))
    assert any(op.record is stays_inside_op for op in walk(function.block))


def test_a_check_of_something_else_is_none():
    """The bound of the loop compares x, and y is read."""
    def body(x, y):
        n = length(x, axis=0)
        checked = stays_inside_op(n, n, length(x, axis=0))
        return added_up(checked, lambda i: take(x, i) * take(y, i))

    function = loop_form([vector("x", "n"), vector("y", "n")], body)
    with pytest.raises(VerifyError, match="an index of .*getitem.* may be out of bounds"):
        verify_loops(function)


def picked(compare):
    """The sum of the elements of x at the indices in another array, which are compared, or not."""
    index = Value(Array("int64", (Extent("k", 0, False),)), "index")

    def body(x, index):
        return added_up(
            length(index, axis=0), lambda i: take(x, compare(take(index, i), length(x, axis=0)))
        )

    return loop_form([vector("x", "n"), index], body)


def test_an_index_that_is_data_is_compared_where_it_is_read():
    function = picked(lambda k, n: k)
    verify_loops(function)  # native code compares every index
    function.bounded = True
    with pytest.raises(VerifyError, match="an index of .*getitem.* is read from an array, and "
                                          "not compared"):
        verify_loops(function)
    function = picked(checked_place)
    function.bounded = True
    verify_loops(function)


def test_kernels_check_no_indices():
    verify_loops(sums()["another length"], guarded=False)


def test_the_verifier_changes_nothing():
    function = check_loops(sums()["another length"])
    before = [(op, op.record, list(op.inputs)) for op in walk(function.block)]
    verify_loops(function)
    assert before == [(op, op.record, list(op.inputs)) for op in walk(function.block)]


# ----------------------------------------------------------------------------------------- programs


def test_a_store_that_is_overwritten_at_once_is_gone_at_once():
    """Forwarding left it there, beside the one that overwrites it, which then copied the array."""
    with passes.checked():
        _ = s2s.jit(s2s.value_and_grad(scanned)).lower(X).loops


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.function.__name__)
def test_every_stage_of_programs_and_their_gradients_is_legal(program, target):
    result = program.function(*program.args)
    with passes.checked():
        _ = s2s.jit(program.function, target=target).lower(*program.args).loops
        if program.wrt and np.ndim(result) == 0 and not isinstance(result, tuple):
            _ = (
                s2s.jit(s2s.value_and_grad(program.function, program.wrt), target=target)
                .lower(*program.args)
                .loops
            )


def test_a_pass_that_loses_a_check_is_found(monkeypatch):
    def loses(function):
        for op in walk(function.block):
            for k, x in enumerate(op.inputs):
                if x.op is not None and x.op.record is stays_inside_op:
                    op.inputs[k] = x.op.inputs[0]
        return function

    with passes.checked():
        assert "range(stays_inside(" in s2s.jit(recurrence).lower(np.ones(4)).loops
        monkeypatch.setattr(
            loop_pipeline, "LOOPS", [*loop_pipeline.LOOPS, passes.Pass(loses, "it is broken")]
        )
        with pytest.raises(VerifyError, match="an index of .*getitem.* may be out of bounds"):
            _ = s2s.jit(recurrence).lower(np.ones(4)).loops


def test_a_pass_that_writes_to_what_is_read_is_found():
    """Two stores to one version of an array: the second needs a copy of all of it, in each trip."""
    def forks(function):
        writes = [op for op in walk(function.block) if op.name == "setitem"]
        first = next(op for op in writes if op.inputs[0].op is None)
        for block in blocks_of(function.block):
            if first in block.ops:
                again = Op(first.record, list(first.inputs), dict(first.attrs), [], [], first.line)
                again.outputs.append(Value(first.output.type, "", again))
                read = Op(
                    getitem,
                    [again.output, *first.inputs[2:]],
                    {"pattern": ("i",)},
                    [],
                    [],
                    first.line,
                )
                read.outputs.append(Value(Scalar("float64"), "", read))
                place = block.ops.index(first)
                block.ops[place:place] = [again, read]
                first.inputs[1] = read.output
        return function

    function = check_loops(
        loop_form([vector("x", "n")], lambda x: filled(length(x, axis=0), lambda i: take(x, i)))
    )
    verify_loops(function)
    with pytest.raises(VerifyError, match="copies 1 arrays more than before the passes over loops"):
        verify_loops(forks(function))
