"""Reverse and forward mode on hand-built IR: against each other, and against central differences.

What the front end can write down is tested by tests/test_programs.py; here stand the shapes of
control flow that decide how tapes are made.
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s.errors import DerivativeError
from s2s.ir.builder import Builder, emit
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.interpret import interpret
from s2s.ir.types import INT, Array, Extent, Scalar
from s2s.ir.verify import verify
from s2s.ops.arrays.create import zeros
from s2s.ops.arrays.index import additem, put, take
from s2s.ops.arrays.reduce import sum_
from s2s.ops.core.control import (
    Known,
    call,
    for_loop,
    if_,
    tape_new,
    tape_pop,
    tape_push,
    while_loop,
)
from s2s.ops.core.elementwise import absolute, exp, real, sign, sin
from s2s.ops.core.record import define, value
from s2s.ops.core.shape import length
from s2s.pipeline import finish
from s2s.transform.cleanup.store_merging import merge_stores
from s2s.transform.forward.jvp import jvp
from s2s.transform.reverse.vjp import vjp

F = Scalar("float64")
V = Array("float64", (Extent("u.0", 0, False),))


def function(name, types, body):
    params = [Value(type, name) for name, type in types.items()]
    block = Block(params)
    with Builder(block):
        block.yields = [value(y) for y in body(*params)]
    return verify(Function(name, block))


def relax(u, k, sweeps):
    n = length(u, axis=0)

    def sweep(s, u):
        def point(i, u):
            t = take(u, i - 1) - 2 * take(u, i) + take(u, i + 1)
            return [put(u, i, take(u, i) + k * t)]

        return for_loop(1, n - 1, 1, [u], point, names=["u"])

    (u,) = for_loop(0, sweeps, 1, [u], sweep, names=["u"], index="s")
    return [sum_(u * u)]


def settle(x, rate):
    def body(x, n):
        (y,) = if_(x > 1.0, lambda: [x * rate], lambda: [sin(x) * rate], ["x"])
        return [y, n + 1]

    x, n = while_loop([x, 0], lambda x, n: x * x > 1e-6, body, names=["x", "n"])
    return [x + n]


def triangle(x):
    def outer(i, s, p):
        return for_loop(
            0,
            i,
            1,
            [s, p],
            lambda j, s, p: [s + p * x, p * sin(x + p)],
            names=["s", "p"],
            index="j",
        )

    s, p = for_loop(0, 5, 1, [0.0, x], outer, names=["s", "p"])
    return [s + p]


def breaks(x, n):
    def body(i, y):
        z = y * y + x
        return if_(z > 2.0, lambda: [True, sin(z)], lambda: [False, z])

    (y,) = for_loop(2, n, 2, [x], body, breaks=True, names=["y"])
    return [y * x]


def array_steps(u, k, n):
    (u,) = for_loop(0, n, 1, [u], lambda i, u: [sin(u) * k + u], names=["u"])
    return [sum_(u)]


def swap(x, n):
    a, b = for_loop(0, n, 1, [x, x * x], lambda i, a, b: [b, sin(a) * b], names=["a", "b"])
    return [a + b]


def branch_outside_loops(x, k):
    (y,) = if_(
        x > 1.0, lambda: [for_loop(0, 3, 1, [x], lambda i, y: [sin(y) * k])[0]], lambda: [x * x * k]
    )
    return [y * y]


def branch_with_loop_in_loop(x, n):
    def body(i, y):
        return if_(
            y > 0.5,
            lambda: [while_loop([y], lambda z: z > 0.3, lambda z: [z * sin(z)])[0] + x],
            lambda: [y * x + 0.4],
        )

    (y,) = for_loop(n, 0, -1, [x], body, names=["y"])
    return [y * x]


def strided(x, n):
    (y,) = for_loop(1, n, 3, [x], lambda i, y: [sin(y) + x * i], names=["y"])
    return [y]


INNER = function(
    "inner",
    {"a": F, "b": F},
    lambda a, b: for_loop(0, 3, 1, [a], lambda i, p: [p * sin(a + p) * b]),
)


def calls(x, n):
    (y,) = for_loop(0, n, 1, [x], lambda i, y: call(y, x, callee=Known(INNER)), names=["y"])
    return [y * x]


PROGRAMS = [
    (relax, {"u": V, "k": F, "sweeps": INT}, [0, 1], (np.arange(6.0) ** 2, 0.1, 3)),
    (relax, {"u": V, "k": F, "sweeps": INT}, [0, 1], (np.arange(2.0), 0.1, 3)),
    (settle, {"x": F, "rate": F}, [0, 1], (1.7, 0.6)),
    (triangle, {"x": F}, [0], (0.7,)),
    (breaks, {"x": F, "n": INT}, [0], (0.3, 20)),
    (breaks, {"x": F, "n": INT}, [0], (0.9, 20)),
    (breaks, {"x": F, "n": INT}, [0], (0.9, 0)),
    (array_steps, {"u": V, "k": F, "n": INT}, [0, 1], (np.arange(4.0), 0.3, 3)),
    (swap, {"x": F, "n": INT}, [0], (0.8, 5)),
    (branch_outside_loops, {"x": F, "k": F}, [0, 1], (1.4, 0.9)),
    (branch_outside_loops, {"x": F, "k": F}, [0, 1], (0.4, 0.9)),
    (branch_with_loop_in_loop, {"x": F, "n": INT}, [0], (0.9, 4)),
    (strided, {"x": F, "n": INT}, [0], (0.9, 11)),
    (calls, {"x": F, "n": INT}, [0], (1.3, 4)),
]


def moved(args, wrt, directions, step):
    shifted = list(args)
    for k, direction in zip(wrt, directions):
        shifted[k] = shifted[k] + step * direction
    return shifted


@pytest.mark.parametrize(
    "body, types, wrt, args", PROGRAMS, ids=lambda x: getattr(x, "__name__", "")
)
def test_both_modes_to_second_order(body, types, wrt, args):
    f = function(body.__name__, types, body)
    reverse, forward = verify(vjp(f, wrt)), verify(jvp(f, wrt))
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=np.shape(args[k])) for k in wrt]
    primal, *bars = interpret(reverse, *args, 1.0)
    assert primal == interpret(f, *args)[0] if f.tupled else primal == interpret(f, *args)
    slope = sum(np.sum(bar * d) for bar, d in zip(bars, directions))
    np.testing.assert_allclose(interpret(forward, *args, *directions)[1], slope, rtol=1e-12)
    eps = 1e-6
    ahead, behind = (
        interpret(reverse, *moved(args, wrt, directions, s * eps), 1.0) for s in (1, -1)
    )
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * eps), slope, rtol=1e-6)
    # Hessian times direction: reverse over reverse, forward over reverse, differences of gradients
    twice = verify(vjp(reverse, wrt))
    over_reverse = interpret(twice, *args, 1.0, 0.0, *directions)[len(reverse.results):]
    mixed = verify(jvp(reverse, wrt))
    over_forward = interpret(mixed, *args, 1.0, *directions)[len(reverse.results) + 1:]
    for a, b, p, m in zip(over_reverse, over_forward, ahead[1:], behind[1:]):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(a, (p - m) / (2 * eps), rtol=1e-4, atol=1e-6)


def test_linear_updates_save_nothing_but_what_the_factor_reads():
    reverse = vjp(function("relax", {"u": V, "k": F, "sweeps": INT}, relax), [0, 1])
    assert [op.outputs[0].name for op in walk(reverse.block) if op.name == "empty"] == ["t_tape"]
    only_u = vjp(function("relax", {"u": V, "k": F, "sweeps": INT}, relax), [0])
    assert not [op for op in walk(only_u.block) if op.name in ("empty", "tape_push")]


def test_a_while_saves_the_one_value_from_which_its_body_is_replayed():
    reverse = vjp(function("settle", {"x": F, "rate": F}, settle), [0, 1])
    assert sum(op.name == "tape_push" for op in walk(reverse.block)) == 1


def test_an_op_without_a_rule_is_an_error():
    opaque = define("opaque_for_this_test", evaluate=lambda x: x, infer=lambda x: x.type)
    f = function("f", {"x": F}, lambda x: [emit(opaque, x)])
    with pytest.raises(DerivativeError, match="opaque_for_this_test has no derivative"):
        vjp(f, [0])
    with pytest.raises(DerivativeError, match="custom_jvp"):
        jvp(f, [0])


def test_clearing_an_element_and_adding_to_it_is_one_write():
    reverse = finish(vjp(function("relax", {"u": V, "k": F, "sweeps": INT}, relax), [0]))
    verify(reverse)
    assert [op.name for op in walk(reverse.block) if op.record.writes is not None] == [
        "setitem"
    ] + ["additem"] * 3
    u, k = np.arange(6.0) ** 2, 0.1
    before = vjp(function("relax", {"u": V, "k": F, "sweeps": INT}, relax), [0])
    np.testing.assert_allclose(
        interpret(reverse, u, k, 3, 1.0)[1], interpret(before, u, k, 3, 1.0)[1], rtol=1e-14
    )


def test_writes_that_may_meet_through_negative_indices_stay_in_order():
    def body(u, n):
        def step(i, u):  # i - 1 and i + 1 are the same element for n = 2, i = 0
            t = take(u, i - 1)
            u = put(u, i - 1, 0.0)
            u = additem(u, 3.0 * t, i + 1, pattern=("i",))
            return [additem(u, t, i - 1, pattern=("i",))]

        return for_loop(0, n, 1, [u], step, names=["u"])

    f = function("f", {"u": V, "n": INT}, body)
    g = verify(merge_stores(f))
    for size, n in ((2, 1), (3, 2), (4, 3)):
        u = np.arange(1.0, size + 1)
        np.testing.assert_array_equal(interpret(f, u, n), interpret(g, u, n))


def prefix_table(x):
    def outer(i, d):
        def inner(j, d):
            return [
                put(
                    d,
                    (i, j),
                    sin(take(d, (i - 1, j)) * take(d, (i, j - 1)) + take(d, (i - 1, j - 1))),
                )
            ]

        return for_loop(1, 4, 1, [d], inner, names=["d"], index="j")

    (d,) = for_loop(
        0, 4, 1, [np_zeros(4, 4)], lambda k, d: [put(put(d, (0, k), x * k), (k, 0), x)], names=["d"]
    )
    (d,) = for_loop(1, 4, 1, [d], outer, names=["d"])
    return [take(d, (3, 3))]


def np_zeros(*shape):
    return zeros(value(tuple(shape)))


def saved_values(f):
    return sum(op.name in ("tape_push", "empty") for op in walk(f.block))


def test_a_table_written_once_needs_no_tape():
    f = function("prefix_table", {"x": F}, prefix_table)
    assert saved_values(vjp(f, [0])) == 0
    check_first_order(f, (0.4,))


def test_elements_that_are_written_later_are_saved():
    def forwards(u):  # reads u[i + 1], which a later trip overwrites
        n = length(u, axis=0)
        (u,) = for_loop(
            0,
            n - 1,
            1,
            [u],
            lambda i, u: [put(u, i, sin(take(u, i + 1)) * take(u, i))],
            names=["u"],
        )
        return [sum_(u * u)]

    f = function("forwards", {"u": V}, forwards)
    assert saved_values(vjp(f, [0])) > 0
    check_first_order(f, (np.arange(1.0, 6.0),))


def test_elements_from_the_end_are_saved():
    def wraps(u):  # for i = 0, u[i - 1] is the last element, which the last trip overwrites
        n = length(u, axis=0)
        (u,) = for_loop(
            0, n, 1, [u], lambda i, u: [put(u, i, sin(take(u, i - 1)) + take(u, i))], names=["u"]
        )
        return [sum_(u * u)]

    check_first_order(function("wraps", {"u": V}, wraps), (np.arange(1.0, 6.0),))


def test_a_second_derivative_reads_the_tapes_of_the_first():
    f = function(
        "array_steps",
        {"x": F, "n": INT},
        lambda x, n: for_loop(0, n, 1, [x], lambda i, y: [sin(y) * y * x]),
    )
    once = finish(vjp(f, [0]))
    assert saved_values(once) == 1
    assert saved_values(vjp(once, [0])) == 2  # y of the first sweep, and y_bar of the second


def check_first_order(f, args):
    x, *rest = args
    direction = np.cos(np.arange(np.size(x), dtype=float)).reshape(np.shape(x))
    _, bar = interpret(verify(vjp(f, [0])), *args, 1.0)
    eps = 1e-6
    slope = (
        interpret(f, x + eps * direction, *rest) - interpret(f, x - eps * direction, *rest)
    ) / (2 * eps)
    np.testing.assert_allclose(np.sum(bar * direction), slope, rtol=1e-7)
    np.testing.assert_allclose(
        interpret(verify(jvp(f, [0])), *args, direction)[1], slope, rtol=1e-7
    )


def test_the_sign_of_a_complex_number_is_refused():
    complex128 = Scalar("complex128")
    f = function("f", {"z": complex128}, lambda z: [real(sign(z))])
    for mode in (vjp, jvp):
        with pytest.raises(DerivativeError, match="sign of complex numbers has no derivative"):
            mode(f, [0])


@pytest.mark.lengthy
def test_abs_of_a_complex_number_to_second_order():
    f = function("f", {"x": F}, lambda x: [absolute(exp(1j * x) + x)])
    first = finish(vjp(f, [0]))
    second = vjp(Function("g", Block(first.params, first.block.ops, first.results[1:])), [0])
    x, eps = 0.3, 1e-4
    values = [abs(np.exp(1j * a) + a) for a in (x - eps, x, x + eps)]
    np.testing.assert_allclose(
        interpret(second, x, 1.0, 1.0)[1],
        (values[0] - 2 * values[1] + values[2]) / eps**2,
        rtol=1e-6,
    )


def filled(x):
    """A tape of x, 2 x, 3 x."""
    return for_loop(
        0, 3, 1, [emit(tape_new)], lambda i, xs: [tape_push(xs, x * (i + 1))], names=["xs"]
    )


def drained(xs, y):
    """y, times the lengths of what is on the tape: not what it holds, as when a derivative asks for
    shapes only.
    """

    def step(i, xs, y):
        xs, x = tape_pop(xs)
        return [xs, y * length(x, axis=0)]

    return for_loop(2, -1, -1, [xs, y], step, names=["xs", "y"])[1:]


def in_halves(x, y):
    (xs,) = call(x, callee=Known(function("filled", {"x": V}, filled)))
    (z,) = call(xs, y, callee=Known(function("drained", {"xs": xs.type, "y": F}, drained)))
    return [sum_(x * x) * z]


def in_halves_many_times(x, y):
    fill = Known(function("filled", {"x": V}, filled))
    (tapes,) = for_loop(
        0,
        2,
        1,
        [emit(tape_new)],
        lambda i, tapes: [tape_push(tapes, *call(x, callee=fill))],
        names=["tapes"],
    )

    def step(i, tapes, y):
        tapes, xs = tape_pop(tapes)
        return [
            tapes,
            *call(xs, y, callee=Known(function("drained", {"xs": xs.type, "y": F}, drained))),
        ]

    return [sum_(x * x) * for_loop(1, -1, -1, [tapes, y], step, names=["tapes", "y"])[1]]


@pytest.mark.parametrize(
    "body, factor",
    [(in_halves, 8.0), (in_halves_many_times, 64.0)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_tape_of_which_only_shapes_are_read_has_no_cotangent(body, factor):
    """One function fills it, another empties it: both must know."""
    f, x, y = function("f", {"x": V, "y": F}, body), np.array([0.3, -0.7]), 1.5
    found, x_bar, y_bar = interpret(finish(vjp(f, (0, 1))), x, y, 1.0)
    assert found == pytest.approx(factor * y * (x @ x))
    np.testing.assert_allclose(x_bar, 2 * factor * y * x)
    assert y_bar == pytest.approx(factor * (x @ x))


def test_the_tangents_of_a_branch_in_a_loop_are_run_apart():
    def f(x, a):
        y = a
        for k in range(3):
            if y > 0.3:
                y = np.sin(y * x[k]) * a
            else:
                y = y + x[k] * y
        return y

    x, x_dot, h = np.array([0.4, 0.8, 0.5]), np.array([0.3, -0.2, 0.9]), 1e-30
    value, tangents = s2s.linearize(f, x, 0.6)
    assert value == f(x, 0.6)

    def steps(x, a):
        """The same with complex numbers, of which the real parts decide."""
        y = a
        for k in range(3):
            y = np.sin(y * x[k]) * a if y.real > 0.3 else y + x[k] * y
        return y

    for a_dot in (0.7, -1.3):
        assert tangents(x_dot, a_dot) == pytest.approx(
            steps(x + 1j * h * x_dot, 0.6 + 1j * h * a_dot).imag / h, rel=1e-13
        )
