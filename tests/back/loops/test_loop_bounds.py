"""Loops stay inside the arrays that they index: proved where it can be, checked before the loop
elsewhere.
"""

import re

import numpy as np
import pytest
from programs import PROGRAMS

import s2s
from s2s.back.loops.loop_bounds import check_unproved
from s2s.back.print.printer import render
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.types import INT, Array, Extent
from s2s.ops.arrays.index import put, take
from s2s.ops.core.control import for_loop
from s2s.ops.core.elementwise import floor_divide, minimum
from s2s.ops.core.record import value
from s2s.ops.core.shape import length

OUTSIDE = "a loop would leave an array: its lengths differ from those of others"


def vector(name, extent):
    return Value(Array("float64", (Extent(extent, 0, False),)), name)


def loop_form(params, body):
    """The function of these parameters, as a loop form, after `check_unproved`, and what that
    found.
    """
    block = Block(params=params)
    with Builder(block):
        block.yields = [body(*params)]
    function = Function("f", block)
    found = check_unproved(function)
    return function, found


def run(function, *args):
    module = render(function)
    names = dict(module.given)
    exec(module.text, names)
    return names[module.entry](*args)


def added_up(n, term):
    return for_loop(0, n, 1, [value(0.0)], lambda i, total: [total + term(i)], names=["total"])[0]


def test_trips_that_are_the_length_are_proved():
    function, found = loop_form(
        [vector("x", "n")], lambda x: added_up(length(x, axis=0), lambda i: take(x, i))
    )
    assert not found
    assert run(function, np.arange(4.0)) == 6.0


def test_trips_of_another_array_are_checked_before_the_loop():
    """Two arrays of one extent, by their types: which is no proof."""
    x, y = vector("x", "n"), vector("y", "n")
    function, found = loop_form(
        [x, y], lambda x, y: added_up(length(x, axis=0), lambda i: take(x, i) * take(y, i))
    )
    assert [gap.is_checked for gap in found] == [True]
    assert re.search(r"for i in range\(stays_inside\(.*\)\):", render(function).text)
    assert run(function, np.arange(3.0), np.ones(3)) == 3.0
    assert run(function, np.arange(3.0), np.ones(4)) == 3.0
    with pytest.raises(IndexError, match=OUTSIDE):
        run(function, np.arange(3.0), np.ones(2))


def test_the_least_of_two_lengths_is_inside_both():
    x, y = vector("x", "n"), vector("y", "m")
    _, found = loop_form(
        [x, y],
        lambda x, y: added_up(
            minimum(length(x, axis=0), length(y, axis=0)), lambda i: take(x, i) * take(y, i)
        ),
    )
    assert not found


@pytest.mark.parametrize("shift, inside", [(-1, True), (0, True), (1, False)])
def test_a_shifted_index_is_checked_where_its_end_may_be_outside(shift, inside):
    _, found = loop_form(
        [vector("x", "n")],
        lambda x: for_loop(
            1,
            length(x, axis=0),
            1,
            [value(0.0)],
            lambda i, total: [total + take(x, i + shift)],
            names=["total"],
        )[0],
    )
    assert (not found) is inside


@pytest.mark.parametrize("by, inside", [(2, True), (4, False)])
def test_twice_a_half_is_at_most_the_whole(by, inside):
    _, found = loop_form(
        [vector("x", "n")],
        lambda x: added_up(
            floor_divide(length(x, axis=0), 2), lambda i: take(x, i * by) + take(x, i * by + 1)
        ),
    )
    assert (not found) is inside


def test_a_sum_of_counters_is_checked_before_the_inner_loop():
    x, n = vector("x", "n"), Value(INT, "n")
    function, found = loop_form(
        [x, n],
        lambda x, n: for_loop(
            0,
            n,
            1,
            [value(0.0)],
            lambda i, total: for_loop(
                0,
                n,
                1,
                [total],
                lambda j, total: [total + take(x, i + j)],
                names=["total"],
                index="j",
            ),
            names=["total"],
        )[0],
    )
    assert [gap.is_checked for gap in found] == [True]
    assert run(function, np.ones(5), 3) == 9.0
    with pytest.raises(IndexError, match=OUTSIDE):
        run(function, np.ones(4), 3)


@pytest.mark.parametrize("n, fails", [(0, False), (1, True), (3, True)])
def test_no_trip_leaves_no_array(n, fails):
    """Down to 0, and from a start that may be negative: what makes no trip is not checked."""
    x, m = vector("x", "n"), Value(INT, "m")
    down, found = loop_form(
        [x, m],
        lambda x, m: for_loop(
            m - 1, -1, -1, [value(0.0)], lambda i, total: [total + take(x, i + 1)], names=["total"]
        )[0],
    )
    up, others = loop_form(
        [x, m],
        lambda x, m: for_loop(
            -m, 0, 1, [value(0.0)], lambda i, total: [total + take(x, i + m)], names=["total"]
        )[0],
    )
    assert [gap.is_checked for gap in (*found, *others)] == [True, True]
    for function in (down, up):
        if fails:
            with pytest.raises(IndexError, match=OUTSIDE):
                run(function, np.ones(max(n - 1, 0)), n)
        else:
            assert run(function, np.ones(0), n) == 0.0


def test_an_array_that_trips_make_shorter_is_asked_for_its_length():
    """What a loop carries keeps its length only where each trip ends with what it began with."""
    x = vector("x", "any1")

    def body(x):
        (y,) = for_loop(0, 2, 1, [x], lambda i, y: [take(y, slice(1, None))], names=["y"])
        return added_up(length(x, axis=0), lambda i: take(y, i))

    function, found = loop_form([x], body)
    assert [gap.is_checked for gap in found] == [True]
    with pytest.raises(IndexError, match=OUTSIDE):
        run(function, np.ones(4))


def test_writes_are_checked_as_reads_are():
    x, y = vector("x", "n"), vector("y", "n")
    function, found = loop_form(
        [x, y],
        lambda x, y: for_loop(
            0, length(x, axis=0), 1, [y], lambda i, y: [put(y, i, take(x, i))], names=["y"]
        )[0],
    )
    assert [gap.is_checked for gap in found] == [True]
    with pytest.raises(IndexError, match=OUTSIDE):
        run(function, np.ones(4), np.ones(3))


@pytest.mark.lengthy
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_loops_of_ordinary_programs_need_no_check(program):
    """What nothing proves costs a comparison: of these programs, and their derivatives, everything
    is proved.
    """
    transformed = [s2s.jit(program.function)]
    if (
        program.wrt
        and np.ndim(program.function(*program.args)) == 0
        and not isinstance(program.function(*program.args), tuple)
    ):
        transformed.append(s2s.jit(s2s.value_and_grad(program.function, program.wrt)))
    for t in transformed:
        assert "stays_inside" not in t.lower(*program.args).loops


def normalised(a, p, most):
    k = 0
    while k <= most:
        p = p * np.dot(p, a @ p)
        if p[0] < 1e-3:
            return p
        k += 1
    return p


def of_columns(b, g):
    x = np.zeros((3, 2))
    for z in range(2):
        x[:, z] = normalised(np.eye(3) * b[4], g[:, z], 1)
    return np.sum(x ** 2)


@pytest.mark.compile
def test_an_array_that_some_paths_leave_unbound():
    """What a loop carries for an early return begins as nothing, which has no lengths."""
    b, g = np.full(5, 0.4), np.ones((3, 2))
    steps = 1e-6 * np.eye(5)
    expected = [(of_columns(b + e, g) - of_columns(b - e, g)) / 2e-6 for e in steps]
    np.testing.assert_allclose(s2s.jit(s2s.grad(of_columns))(b, g), expected, rtol=1e-6, atol=1e-9)


def gates(W, U, xs):
    h, c = np.zeros(U.shape[1]), np.zeros(U.shape[1])
    n = U.shape[1]
    for x in xs:
        z = W @ x + U @ h
        c = np.tanh(z[:n]) * c + z[n:2 * n] * z[2 * n:3 * n]
        h = z[3 * n:] * np.tanh(c)
    return np.sum(h)


def test_slices_that_a_sum_of_lengths_cuts_need_no_check():
    """Each is as long as the next, which the bound of the loop over all of them has asked."""
    rng = np.random.default_rng(0)
    args = rng.normal(size=(48, 5)), rng.normal(size=(48, 12)), rng.normal(size=(3, 5))
    assert "stays_inside" not in s2s.jit(s2s.value_and_grad(gates, (0, 1))).lower(*args).loops
