"""Collectives over named axes, against lanes that are threads of Python."""


import functools
import types

import named_axes
import numpy as np
import pytest
from lanes_in_threads import Lanes, with_modules
from named_axes import PROGRAMS, ROWS, M, N, X

import s2s
from s2s import lax
from s2s.errors import TypeMismatchError, UnboundAxisError, UnsupportedError

SIZES = {"i": N}, {"i": N, "j": M}


def over_lanes(f, in_axes, grid):
    """`f` over the axis "i", or over "i" and "j"."""
    if grid:
        f = s2s.vmap(f, in_axes, axis_name="j")
    return s2s.vmap(f, in_axes, axis_name="i")


def in_threads(name, args):
    _, _, in_axes, grid, _ = PROGRAMS[name]
    lanes = Lanes(SIZES[grid])
    f = with_modules(named_axes.__file__, np, lanes).PROGRAMS[name][0]
    return lanes.run(f, args, [in_axes] * len(args) if isinstance(in_axes, int) else in_axes)


def agree(got, expected, tolerance=1e-12):
    for a, b in zip(s2s.tree.leaves(got), s2s.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    f, args, in_axes, grid, _ = PROGRAMS[name]
    agree(over_lanes(f, in_axes, grid)(*args), in_threads(name, args))


@pytest.mark.lengthy
def test_a_gradient_is_that_of_the_sum_of_all_lanes():
    """By differences of what threads compute."""
    for name in ("normalised", "exchanged_to_last", "in_called_functions", "between_branches"):
        f, args, in_axes, grid, _ = PROGRAMS[name]
        gradient = over_lanes(s2s.grad(lambda *xs, f=f: np.sum(f(*xs))), in_axes, grid)(*args)
        x, step = args[0], 1e-6
        for k in np.ndindex(x.shape):
            if sum(k) % 4:
                continue
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[k] += sign * step
                ends.append(np.sum(in_threads(name, (moved, *args[1:]))))
            assert abs((ends[0] - ends[1]) / (2 * step) - gradient[k]) < 1e-7, name


# ---------------------------------------------------------------------------------- number of lanes


def test_lanes_without_an_argument():
    numbers = s2s.vmap(lambda: lax.axis_index("i") * 2.0, axis_name="i", axis_size=4)
    agree(numbers(), 2.0 * np.arange(4))
    agree(s2s.vmap(lambda x: x * np.ones(2), in_axes=None, axis_size=3)(2.0), np.full((3, 2), 2.0))
    with pytest.raises(TypeMismatchError, match="say which axis of which argument has the"):
        s2s.vmap(lambda x: x, in_axes=None)
    with pytest.raises(TypeMismatchError, match="vmap with no batched argument"):
        s2s.vmap(lambda x: x, in_axes=(None,))(1.0)
    with pytest.raises(TypeMismatchError, match="axis_size is -1"):
        s2s.vmap(lambda x: x, axis_size=-1)


def test_number_of_lanes_and_arguments():
    agree(s2s.vmap(lambda x: 2 * x, axis_size=3)(X), 2 * X)
    with pytest.raises(ValueError, match="each must have as many lanes"):
        s2s.vmap(lambda x: 2 * x, axis_size=4)(X)
    with pytest.raises(TypeMismatchError, match="axis_size is 1, and an argument has"):
        s2s.vmap(lambda x: 2 * x, axis_size=1)(X)
    with pytest.raises(TypeMismatchError, match="out_axes 2, and the result has 2 axes"):
        s2s.vmap(lambda x: x, out_axes=2)(ROWS)


def test_one_lane_and_no_lanes():
    f = s2s.vmap(lambda x: x - lax.psum(x, "i") + lax.all_gather(x, "i"), axis_name="i")
    agree(f(np.array([2.0])), np.array([[2.0]]))
    assert f(np.zeros(0)).shape == (0, 0)


# ----------------------------------------------------------------------------------- inner meetings


def test_inner_axis_hides_an_outer_one_of_its_name():
    f = s2s.vmap(s2s.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")
    agree(f(ROWS), np.broadcast_to(np.sum(ROWS, axis=1, keepdims=True), ROWS.shape))


def test_axis_bound_inside_the_program():
    def f(x):
        rows = s2s.vmap(lambda v: v / lax.psum(v, "j") + lax.axis_index("i"), axis_name="j")(x)
        return np.sum(rows) * lax.psum(1.0, "i")

    agree(s2s.vmap(f, axis_name="i")(ROWS), 3.0 * (1 + 4 * np.arange(3)))


@s2s.custom_vjp
def copied(x):
    """The same in all lanes, whose cotangents add up."""
    return x


copied.defvjp(lambda x: (x, None), lambda kept, bar: (lax.psum(bar, "i"),))


def test_rule_in_which_lanes_meet():
    def f(x):
        return copied(x) * lax.axis_index("i")

    agree(s2s.vmap(s2s.grad(f), axis_name="i")(X), np.full(3, 3.0))
    over = s2s.vmap(f, axis_name="i")
    agree(s2s.grad(lambda x: np.sum(over(x)))(X), np.full(3, 3.0))


def test_checkpointed_collective():
    def f(x):
        return s2s.checkpoint(lambda v: np.sin(lax.psum(np.sin(v), "i")))(x) * x

    def plain(x):
        return np.sin(lax.psum(np.sin(x), "i")) * x

    agree(s2s.vmap(s2s.grad(f), axis_name="i")(X), s2s.vmap(s2s.grad(plain), axis_name="i")(X))


def test_partial_permutation_leaves_zeros():
    f = s2s.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")
    agree(f(X), np.array([0.0, X[0], X[1]]))
    gradient = s2s.grad(lambda x: np.sum(f(x) * np.array([5.0, 6.0, 7.0])))
    agree(gradient(X), np.array([6.0, 7.0, 0.0]))


def test_lanes_that_tie_share_the_derivative_of_an_extreme():
    f = s2s.vmap(s2s.value_and_grad(lambda x: lax.pmax(x, "i")), axis_name="i")
    agree(f(np.array([2.0, 1.0, 2.0])), (np.full(3, 2.0), np.array([1.5, 0.0, 1.5])))


def test_permutation_over_two_axes():
    perm = [(k, (5 * k + 1) % 12) for k in range(12)]
    moved = over_lanes(lambda x: lax.ppermute(x, ("i", "j"), perm), 0, True)(ROWS)
    expected = np.empty(12)
    expected[[b for _, b in perm]] = ROWS.ravel()[[a for a, _ in perm]]
    agree(moved, expected.reshape(3, 4))


# --------------------------------------------------------- what has another length in each lane


def halved(x):
    while abs(x) > 1.1:
        x = 0.9 * np.sqrt(abs(x))
    return lax.psum(x * x, "i") * x


def list_across(x):
    found = []
    v = abs(x)
    while v > 0.1:
        found.append(v * v)
        v = v * 0.5
    total = lax.psum(x, "i")
    y = 0.0
    for v in found:
        y += v * total
    return y


def array_across(x):
    z = np.arange(int(abs(x)) + 1.0) * x
    return np.sum(np.sin(z)) * lax.psum(np.sum(z * z), "i")


def halved_in_a_loop(x):
    for _ in range(3):
        while abs(x) > 1.1:
            x = 0.9 * np.sqrt(abs(x))
        x = x + lax.pmean(x * x, "i")
    return x


@pytest.mark.parametrize("f", [halved, list_across, array_across, halved_in_a_loop])
def test_lanes_hand_on_what_has_another_length_in_each(f):
    x = np.array([1.3, 2.5, 3.7])
    over = s2s.vmap(f, axis_name="i")
    lanes = Lanes({"i": 3})

    def in_threads(x):
        return lanes.run(types.FunctionType(f.__code__, {"lax": lanes, "np": np}), (x,), (0,))

    agree(over(x), in_threads(x))
    slopes = np.array([np.sum(in_threads(x + e) - in_threads(x - e)) for e in 1e-6 * np.eye(3)])
    agree(s2s.grad(lambda x: np.sum(over(x)))(x), slopes / 2e-6, 1e-7)
    agree(s2s.vmap(s2s.grad(f), axis_name="i")(x), slopes / 2e-6, 1e-7)


def test_draws_in_a_loop_of_meetings():
    def f(x, rng):
        for _ in range(2):
            x = x + rng.normal() * lax.pmean(x, "i")
        return x

    z, expected = np.random.default_rng(4).normal(size=(2, 3)), X
    for row in z:
        expected = expected + row * np.mean(expected)
    agree(s2s.vmap(f, (0, None), axis_name="i")(X, np.random.default_rng(4)), expected)


def test_as_in_the_tests_of_jax():
    """What tests/batching_test.py of JAX asks of collectives, beside what named_axes.py has."""
    x, y = np.arange(10.0), np.arange(15.0).reshape(3, 5)
    rng = np.random.default_rng(1)
    for _ in range(3):
        order = rng.permutation(10)
        pairs = rng.permutation(np.stack([np.arange(10), order], axis=-1))
        expected = np.empty(10)
        expected[order] = x
        agree(s2s.vmap(lambda v, p: v - lax.ppermute(v, "i", p), (0, None), axis_name="i")(
            x, pairs), x - expected)

    def rows(v):
        return lax.all_gather(v, "i")

    agree(s2s.vmap(rows, in_axes=1, out_axes=None, axis_name="i")(y), y.T)
    agree(s2s.vmap(s2s.vmap(rows, out_axes=None, axis_name="i"), axis_name="j")(y), y)
    agree(s2s.vmap(s2s.vmap(rows, axis_name="j"), out_axes=None, axis_name="i")(y), y.T)
    both = s2s.vmap(lambda v: (rows(np.ones_like(v)), rows(1)), 1, None, axis_name="i")(y)
    agree(both, (np.ones((5, 3)), np.ones(5, int)))

    def pulled(v, bar):
        return s2s.vjp(rows, v)[1](bar)[0]

    bars = rng.normal(size=(3, 3, 4))
    agree(s2s.vmap(pulled, axis_name="i")(ROWS, bars), np.sum(bars, axis=0))
    cube = rng.normal(size=(3, 3, 2))
    agree(s2s.vmap(lambda v: lax.pswapaxes(v, "i", 0), axis_name="i")(cube), cube.swapaxes(0, 1))
    s2s.check_grads(over_lanes(lambda v: v - lax.psum(v * v, ("j", "i")), 0, True), (ROWS,))


def test_collectives_as_functions_to_transform():
    agree(s2s.vmap(functools.partial(lax.psum, axis_name="i"), axis_name="i")(X),
          np.full(3, np.sum(X)))
    agree(s2s.vmap(lax.pmean, in_axes=(0, None), axis_name="i")(X, "i"), np.full(3, np.mean(X)))


def test_source_reads_as_array_code():
    f = s2s.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")
    f(X)
    assert "return x - np.sum(x, axis=0) / len(x)" in f.source
    f = s2s.vmap(lambda x: x * lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i", axis_size=3)
    f(X)
    assert "return x * x[np.array([2, 0, 1])]" in f.source


@pytest.mark.compile
def test_compiled():
    for name in ("scattered_tiled", "laplacian", "between_branches", "grid_shift"):
        f, args, in_axes, grid, _ = PROGRAMS[name]
        agree(s2s.jit(over_lanes(f, in_axes, grid))(*args), in_threads(name, args), 1e-10)


# ----------------------------------------------------------------------------------------- refusals


def refused(kind, text, f, *args, **options):
    with pytest.raises(kind, match=text) as caught:
        s2s.vmap(f, axis_name="i", **options)(*args)
    return str(caught.value)


def in_a_branch(x):
    if x > 0:
        return lax.psum(x, "i")
    return x


def in_a_long_loop(x):
    while x < 3.0:
        x = x * x + lax.pmean(x, "i")
    return x


def draws_before_and_behind(x):
    rng = np.random.default_rng(3)
    y = rng.poisson(np.exp(x))
    return lax.psum(y, "i") + rng.normal()


def again(x, n):
    return lax.psum(x, "i") if n == 0 else again(x * 2, n - 1)


def test_where_lanes_do_not_meet():
    text = refused(UnsupportedError, "psum over 'i' in a place that only some lanes may reach",
                   in_a_branch, X)
    assert 'return lax.psum(x, "i")' in text
    refused(UnsupportedError, "pmean over 'i' in a place that only some lanes", in_a_long_loop, X)
    refused(UnsupportedError, "psum over 'i' between the making and the use of generator",
            draws_before_and_behind, X)
    refused(UnsupportedError, "a collective over 'i' in a function that calls itself", again, X, 2,
            in_axes=(0, None))


def test_names_that_nobody_binds():
    def f(x):
        return lax.psum(x, "k") * 2

    for t, x in ((f, 1.0), (s2s.grad(f), 1.0), (s2s.vmap(f), X), (s2s.jit(f), X),
                 (s2s.vmap(f, axis_name="i"), X)):
        with pytest.raises(UnboundAxisError, match="unbound axis name 'k'"):
            t(x)
    with pytest.raises(NameError):
        s2s.vjp(f, 1.0)
    with pytest.raises(UnboundAxisError, match=r"return lax.psum\(x, \"k\"\) \* 2"):
        print(s2s.vmap(f).source)


@pytest.mark.lengthy
def test_conventions_in_lanes_that_meet():
    def f(x):
        return abs(x) * lax.pmax(x, "i")

    over = s2s.vmap(f, axis_name="i")
    ties = np.array([1.0, 0.0, 1.0])
    found = s2s.conventions(s2s.grad(lambda x: np.sum(over(x))), ties)
    assert ["size" in each.what or "tie" in each.what for each in found] == [True, True]
    with pytest.raises(UnsupportedError, match="of a derivative in lanes that meet"):
        s2s.conventions(s2s.vmap(s2s.grad(f), axis_name="i"), ties)


def test_arguments_of_collectives():
    refused(TypeMismatchError, "axis_name is or has 0", lambda x: lax.psum(x, 0), ROWS)
    refused(UnsupportedError, "axis_index_groups",
            lambda x: lax.psum(x, "i", axis_index_groups=[[0], [1, 2]]), X)
    refused(TypeMismatchError, "ppermute names a source twice",
            lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), X)
    refused(ValueError, "ppermute names a lane twice",
            lambda x, k: lax.ppermute(x, "i", [(k, 1), (k, 2)]), X, 0, in_axes=(0, None))
    refused(UnsupportedError, "a permutation that differs from lane to lane",
            lambda x: lax.ppermute(x, "i", [(lax.axis_index("i"), 0)]), X)
    refused(TypeMismatchError, "perm of pshuffle is no permutation",
            lambda x: lax.pshuffle(x, "i", [0, 0, 1]), X)
    refused(ValueError, "6 rows are handed out to 3 lanes",
            lambda x: lax.psum_scatter(x, "i"), np.ones((3, 6)))
    refused(TypeMismatchError, "axis 0 of an array of 0 axes",
            lambda x: lax.all_gather(x, "i", tiled=True), X)
    with pytest.raises(TypeMismatchError, match="axis_name is 3"):
        s2s.vmap(lambda x: x, axis_name=3)
