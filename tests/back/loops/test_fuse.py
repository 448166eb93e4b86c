"""Loops over one range are joined where trips can be run in turns, and only there."""

import re

import numpy as np
import pytest
import split

import s2s
from s2s import pipeline
from s2s.ir.graph import Function, walk
from s2s.ir.types import Array
from s2s.ir.verify import verify
from s2s.ops.arrays.index import additem, put, take
from s2s.ops.arrays.index_pattern import parse_index
from s2s.ops.core.control import for_loop
from s2s.ops.core.shape import length

from ..test_lowering import call, check, count

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))
V = RNG.normal(size=5)


def outermost(function: Function) -> int:
    """How many loops there are that no loop is around."""
    return sum(op.name == "for" for op in function.block.ops)


def largest_rank(function: Function) -> int:
    """The most axes of an array that the loop form makes."""
    return max(
        (op.output.type.rank for op in walk(function.block) if op.name == "buffer"), default=0
    )


def softmax(z):
    e = call(np.exp, z - call(np.max, z, axis=1, keepdims=True))
    return e / call(np.sum, e, axis=1, keepdims=True)


def test_rows_pass_through_one_loop():
    lowered = check(lambda x, y: call(np.sum, softmax(x * 2.0) * x, axis=0), X, V)
    assert outermost(lowered) == 1
    assert largest_rank(lowered) == 1  # the result, and a row


def test_what_lives_within_a_trip_is_a_number():
    lowered = check(lambda x, y: call(np.sum, call(np.sum, x * x, axis=1) * y), X, V)
    assert outermost(lowered) == 1
    assert count(lowered, "buffer") == 0


def test_loops_inside_are_joined_in_turn():
    def body(x, y):
        t = take(x, np.s_[:, None, :]) - x
        return call(np.max, call(np.sum, t * t, axis=2) + y, axis=1)

    lowered = check(body, X, V)
    assert outermost(lowered) == 1
    assert count(lowered, "for") == 3
    assert largest_rank(lowered) == 1


def test_columns_stay_apart():
    lowered = check(lambda x, y: x - call(np.sum, x, axis=0), X, V)
    assert outermost(lowered) == 2


def test_a_total_is_waited_for():
    lowered = check(lambda x, y: y / call(np.sum, y) + call(np.sum, x, axis=1), X, V)
    assert outermost(lowered) >= 2


@pytest.mark.parametrize(
    "body",
    [
        lambda x, y: take(call(np.cumsum, y * 2.0), np.s_[1:]) - take(y * 3.0, np.s_[:-1]),
        lambda x, y: take(call(np.cumsum, y * 2.0), np.s_[::-1]) + y,
        lambda x, y: call(np.cumsum, x, axis=0) * call(np.cumsum, x, axis=1),
        lambda x, y: (
            take(call(np.cumsum, x, axis=1), np.s_[1:])
            - take(call(np.cumsum, x, axis=1), np.s_[:-1])
        ),
        lambda x, y: softmax(call(np.transpose, softmax(x))),
        lambda x, y: call(np.sum, take(softmax(x), np.s_[:, ::-1]) * x, axis=1) + y,
        lambda x, y: take(call(np.sum, softmax(x), axis=1), np.s_[::-1]) + call(np.sum, x, axis=1),
        lambda x, y: call(np.argmax, softmax(x), axis=1) + call(np.cumsum, y),
        lambda x, y: softmax(x) - call(np.max, softmax(x * 2.0), axis=0),
        lambda x, y: call(
            np.where, softmax(x) > 0.3, call(np.cumsum, x, axis=0), take(y, np.s_[:, None])
        ),
    ],
)
def test_neighbours_and_turned_arrays_are_right(body):
    check(body, X, V)
    check(body, X[:1], V[:1])
    check(body, np.asfortranarray(X), V[::-1])


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_any_number_of_rows(n):
    check(
        lambda x, y: (
            call(np.sum, softmax(x) * take(y, np.s_[:, None]), axis=1),
            call(np.sum, softmax(x), axis=0),
        ),
        RNG.normal(size=(n, 3)),
        RNG.normal(size=n),
    )


def written(x, y, first, second):
    """Two loops, the second of which reads and writes what the first has made, each at indices of
    its own.
    """
    n = length(y, axis=0)
    a = y * 1.0

    def one(i, a):
        return [put(a, (i,), take(a, (first(i),)) + take(y, (i,)))]

    def other(i, a, b):
        return [put(a, (i,), take(a, (second(i),)) * 2.0), additem_at(b, take(a, (second(i),)), i)]

    (a,) = for_loop(0, n - 1, 1, [a], one)
    return for_loop(0, n - 1, 1, [a, y * 0.0], other)


def additem_at(array, x, i):
    return additem(array, x, i, pattern=("i",))


@pytest.mark.parametrize("first", [lambda i: i, lambda i: i + 1, lambda i: i * 0])
@pytest.mark.parametrize("second", [lambda i: i, lambda i: i + 1, lambda i: i * 0])
def test_loops_of_the_program_are_joined_only_in_step(first, second):
    check(lambda x, y: tuple(written(x, y, first, second)), X, V)


def test_a_matrix_product_between_is_waited_for():
    def body(x, y):
        p = softmax(x)
        return softmax(p @ call(np.transpose, x) @ p) * x

    assert all(
        isinstance(op.output.type, Array)
        for op in walk(check(body, X, V).block)
        if op.name == "matmul"
    )


def test_what_a_loop_overwrites_is_read_before():
    def body(x, y):
        n = length(y, axis=0)
        a = y * 3.0
        (t,) = for_loop(0, n, 1, [y * 0.0], lambda i, t: [put(t, (i,), take(a, (n - 1 - i,)))])
        (a,) = for_loop(0, n, 1, [a], lambda i, a: [put(a, (i,), take(t, (i,)) + take(a, (i,)))])
        return a, t

    check(body, X, V)


def pulled(x, w, y):
    z = x @ w
    return call(np.sum, call(np.exp, z) * y), (call(np.exp, z) * y) @ x


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("d", [0, 1, 4])
def test_a_matrix_passes_by_once(n, d):
    args = RNG.normal(size=(n, d)), RNG.normal(size=d), RNG.normal(size=n)
    lowered = check(pulled, *args)
    check(pulled, np.asfortranarray(args[0]), args[1][::-1], args[2])
    if n > 1 < d:
        assert count(lowered, "matmul") == 0
        assert outermost(lowered) == 1


def test_products_that_wait_for_all_rows_are_blas():
    def body(x, w, y):
        e = call(np.exp, x @ w)
        return (e / call(np.sum, e)) @ x

    assert count(check(body, X, RNG.normal(size=3), V), "matmul") == 2


def test_products_of_two_kinds_are_right():
    check(lambda x, w, y: ((x @ w) * y) @ x, X, RNG.normal(size=3).astype("float32"), V)
    check(
        lambda x, w, y: ((x @ w) * y) @ x,
        X.astype("float32"),
        RNG.normal(size=3).astype("float32"),
        V.astype("float32"),
        rtol=1e-5,
    )


def test_columns_of_gathered_rows_are_read_where_they_are():
    rows = np.array([3, 0, -1, 3, 1, 2, 0])

    def body(x, y, i):
        c = take(x, (i,))
        return take(c, np.s_[:, 0]) * take(c, np.s_[:, -1]) + take(y, (i,))

    lowered = check(body, X, V, rows)
    assert outermost(lowered) == 1
    assert count(lowered, "buffer") == 1
    check(body, X, V, rows[:0])
    check(lambda x, y, i: (take(take(x, (i,)), np.s_[:, 1]), take(x, (i,)) * 2.0), X, V, rows)
    check(
        lambda x, y, i: (
            take(put(x * 1.0, np.s_[0], 5.0), (i,)) + take(take(x, (i,)), np.s_[:, 0:1])
        ),
        X,
        V,
        rows,
    )


@pytest.mark.parametrize("n", [0, 1, 6])
def test_rows_of_zeros_are_cleared_for_each_trip(n):
    def body(x, i):
        c = take(x, (i,))
        g = put(call(np.zeros_like, c), np.s_[:, 1], take(c, np.s_[:, 0]) * take(c, np.s_[:, 2]))
        g = additem(
            g,
            take(c, np.s_[:, 1]),
            *parse_index(np.s_[:, 2])[1],
            pattern=parse_index(np.s_[:, 2])[0],
        )
        return additem(x * 0.0, g, *parse_index((i,))[1], pattern=parse_index((i,))[0])

    check(body, X, RNG.integers(0, 5, n))


def test_a_buffer_as_long_as_another_that_loops_reuse():
    """The length of a buffer that has been moved out of a loop is asked where there still is
    one.
    """
    def f(u, k, n):
        u = u.copy()
        for _ in s2s.checkpoint(range(n), snapshots=2):
            for i in range(1, len(u) - 1):
                u[i] = u[i] + k * u[i] * (u[i - 1] - 2 * u[i] + u[i + 1])
        return np.sum(u * u)

    u = np.linspace(0.1, 1.0, 5)
    second = s2s.jvp(s2s.grad(f, argnums=(0, 1)))
    loops = pipeline.loops_of(second.lower(u, 0.1, 7, u, 0.2, 0).function)
    assert verify(loops) is loops


def test_rows_from_the_end_are_other_trips_rows_too():
    """The last element is that of the trip at -1 and of the last: neither may they be exchanged,
    nor run at once.
    """
    def joined(x, lo, n):
        a, b = np.zeros(n), np.zeros(n)
        for i in range(lo, n):
            a[i] = a[i] * 0.5 + x[i]
        for i in range(lo, n):
            b[i] = b[i] * 0.3 + a[i]
        return b

    def shifted(x, lo, n):
        a = np.zeros(n)
        for i in range(n + 1):
            a[i - 1] = 0.5 * a[i - 1] + x[i + lo]
        return a

    x = np.linspace(0.1, 1.0, 7)
    for f, args in ((joined, (x, -3, 7)), (shifted, (x, 0, 6))):
        whole, parts = split.modules(s2s.jit(f), *args)
        assert "in_parts" not in parts.text
        np.testing.assert_allclose(split.run(whole, *args), f(*args), rtol=1e-14)


def wave(u, c, steps):
    prev, now = u.copy(), u.copy()
    for _ in range(steps):
        nxt = now.copy()
        around = (
            now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1]
        )
        nxt[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - prev[1:-1, 1:-1] + c[1:-1, 1:-1] * around
        prev, now = now, nxt
    return np.sum(now**2)


def innermost(text: str) -> list[list[str]]:
    """The statements of each loop that has no loop inside."""
    found, lines = [], text.splitlines()
    for k, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        body = []
        for other in lines[k + 1:]:
            if len(other) - len(other.lstrip()) <= depth:
                break
            body.append(other.strip())
        if line.strip().startswith("for ") and not any(each.startswith("for ") for each in body):
            found.append([each for each in body if not each.startswith("#")])
    return found


def test_what_is_added_to_neighbours_is_added_in_loops_that_may_be_vectors():
    text = s2s.grad(wave, argnums=(0, 1)).lower(np.ones((9, 8)), np.ones((9, 8)), 3).loops
    loops = innermost(text)
    added = [
        [line.split("[")[0] for line in body if " += " in line and "[i" in line.split(" ")[0]]
        for body in loops
    ]
    assert all(len(set(names)) == len(names) for names in added) and sum(map(len, added)) >= 5
    cleared = next(body for body in loops if any(line.endswith("= 0.0") for line in body))
    # read, and cleared, in one pass
    assert len(cleared) == 2 and cleared[0].endswith(cleared[1].removesuffix(" = 0.0"))


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", [(9, 8), (3, 4), (2, 3), (2, 2), (4, 9)])
def test_waves(shape):
    u, c = RNG.normal(size=shape), 0.1 + 0.1 * RNG.random(shape)
    gradient = s2s.grad(wave, argnums=(0, 1))
    whole = split.run(split.modules(gradient, u, c, 3)[0], u, c, 3)
    assert split.is_same(whole, gradient(u, c, 3))
    assert split.is_same(split.run(split.modules(gradient, u, c, 3)[1], u, c, 3), whole)


def shifted(x, y):
    """Rows further on: what one loop writes at i + 1 the other reads at i + 1, at i, or at i +
    2.
    """
    n = len(x) - 2
    for i in range(n):
        x[i + 1] = x[i + 1] * y[i]
    for i in range(n):
        y[i] = x[i + 1] + y[i]
    for i in range(n):
        x[i + 1] = x[i + 1] - y[i]
    for i in range(n):
        y[i] = x[i] * y[i]
    for i in range(n):
        x[i + 1] = x[i + 2] + y[i]
    return x, y


def columns(x, y, k):
    n, m = y.shape
    for j in range(m):
        x[k, j + 1] = x[k, j + 1] * y[0, j]
    for j in range(m):
        y[0, j] = x[k, j + 1] + 1.0
    for j in range(m):
        x[k + 1, j + 1] = y[0, j] * x[k, j]
    for j in range(m):
        x[k, j + 1] = x[k + 1, j + 1] - x[-1, j + 1]
    return x, y


@pytest.mark.parametrize(
    "f, args, most",
    [
        (shifted, (RNG.normal(size=7), RNG.normal(size=7)), 3),
        (columns, (RNG.normal(size=(3, 5)), RNG.normal(size=(2, 4)), 1), 3),
        (columns, (RNG.normal(size=(3, 5)), RNG.normal(size=(2, 4)), -2), 3),
    ],
)
def test_trips_that_touch_elements_further_on(f, args, most):
    t = s2s.jit(f)
    whole, _ = split.modules(t, *args)
    assert whole.text.split(f"def {f.__name__}")[1].count("for ") <= most
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    assert split.is_same(split.run(whole, *args), f(*copies))


def grown(r):
    p = np.cumprod(1.0 + 0.01 * np.tanh(r))
    return np.sum(np.log1p(p * p))


def test_what_goes_step_by_step_has_a_loop_without_exponentials():
    """In one loop with it, they would be computed one at a time: 7 times as long."""
    r = np.linspace(-1.0, 2.0, 9)
    text = s2s.jit(s2s.value_and_grad(grown)).lower(r).loops
    loops = re.split(r"^    for ", re.sub(r"#.*", "", text), flags=re.M)[1:]
    assert len([loop for loop in loops if "product * " in loop]) == 1
    assert not any(
        "product * " in loop and ("np.tanh(" in loop or "np.log1p(" in loop) for loop in loops
    )
    module: dict = {}
    exec(text, module)
    for a, b in zip(module["grown_value_and_grad"](r), s2s.value_and_grad(grown)(r)):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def written_with_itself(x):
    a = np.zeros(5)
    a[:] = a * x + a
    m = np.zeros((3, 2))
    m[:, :] = m + x
    return np.sum(a * a + x) + np.sum(m * m)


def zeros_written_with_themselves(x):
    a = np.zeros(5)
    a[:] = a
    return np.sum(a * a) + x


@pytest.mark.parametrize(
    "f", [written_with_itself, zeros_written_with_themselves], ids=lambda f: f.__name__
)
def test_trips_that_read_what_an_array_was_before_them_keep_it(f):
    function = s2s.jit(s2s.value_and_grad(f)).lower(1.5).function
    loops = pipeline.render(pipeline.lower(pipeline.flattened(function)), native=True)
    value, slope = pipeline.loaded(loops)(1.5)
    assert value == f(1.5) and abs(slope - (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6) < 1e-6
