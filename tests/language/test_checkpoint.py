"""Functions and loops that are checkpointed: the same derivatives, from less memory, at the price
that theory says.
"""

import functools
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.ops.program.checkpoint import bytes_of, gap

U = np.linspace(0.1, 1.0, 5)
A = np.array([[0.1, 0.2, 0.3], [0.4, 0.6, 0.7]])


# -------------------------------------------------------------------------------------------- loops


def logistic(x, r, n):
    for _ in s2s.checkpoint(range(n), snapshots=3):
        x = r * x * (1 - x)
    return x


def oscillator(x, v, drive, n):
    h = 0.05
    for i in s2s.checkpoint(range(n)):
        a = drive * np.cos(1.2 * i * h) + x - x**3 - 0.1 * v
        x, v = x + h * v, v + h * a
    return x * v


def stencil(u, k, n):
    u = u.copy()
    for _ in s2s.checkpoint(range(n), snapshots=2):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * u[i] * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def whole_arrays(u, k, n):
    for _ in s2s.checkpoint(range(n), memory=150):
        u = u + k * np.sin(np.roll(u, 1) - u)
    return np.sum(u * u)


def in_place_rows(a, k, n):
    a = a.copy()
    for _ in s2s.checkpoint(range(n), snapshots=2):
        a[0, :] += k * a[1] * a[0]
        a[1][a[1] > 0.5] *= 0.9
        a *= np.cos(a)
    return np.sum(a)


def two_buffers(u, k, n):
    v = np.zeros_like(u)
    for _ in s2s.checkpoint(range(n), snapshots=2):
        u, v = v, u
        for i in range(len(u)):
            u[i] = v[i] * np.sin(k * v[i]) + 0.1
    return np.sum(u)


def left_early(x, k, n):
    for i in s2s.checkpoint(range(n), snapshots=2):
        x = x * k
        if x > 50.0:
            break
        if i % 3 == 1:
            continue
        x = x + 0.1 * np.sin(x)
    return x


def returned_from(x, k, n):
    for _ in s2s.checkpoint(range(n), snapshots=2):
        x = x * np.cos(x + k) + 1
        if x > 1.7:
            return x * x
    return x


def backwards_by_three(x, k, n):
    for i in s2s.checkpoint(range(2 * n, 1, -3), snapshots=2):
        x = np.sin(x * k) + 0.1 * i
    return x


def in_each_other(x, k, n):
    s = 0.0
    for j in s2s.checkpoint(range(4), snapshots=2):
        for i in s2s.checkpoint(range(n), snapshots=2):
            x = np.sin(x * k) + 0.1 * i * j
        s = s + x * x
    return s


def inside_a_loop(x, k, n):
    s = 0.0
    for j in range(3):
        if j != 1:
            for i in s2s.checkpoint(range(n)):
                x = np.sin(x * k) + 0.1 * i * j
        s = s + x * x
    return s


def around_loops_of_many_kinds(x, k, n):
    for i in s2s.checkpoint(range(1, n), snapshots=2):
        if x > 0.5:
            y = x * k
            for _ in range(i):
                y = y * np.cos(y)
            x = y
        else:
            while x < 2.0:
                x = x * 1.5 + np.sin(k)
            x = x * 0.3
    return x


def over_an_array(x, w):
    for v in s2s.checkpoint(w, snapshots=2):
        x = np.tanh(x * v) + v
    return x


def enumerated(x, w):
    for j, v in s2s.checkpoint(enumerate(w), snapshots=2):
        x = np.sin(x + v) * x + 0.1 * j
    return x


def inside_enumerate(x, w):
    for j, v in enumerate(s2s.checkpoint(w, snapshots=2)):
        x = np.sin(x + v) * x + 0.1 * j
    return x


def list_in_the_state(x, k, n):
    xs = [x]
    for _ in s2s.checkpoint(range(n), snapshots=2):
        xs.append(np.sin(xs[-1]) * k)
    return sum(xs)


def array_that_grows(u, k, n):
    for _ in s2s.checkpoint(range(n), snapshots=2):
        u = np.concatenate((u, np.sin(u[:1]) * k))
    return np.sum(u * u)


def integers_and_containers(x, k, n):
    m, pair, named = 1, (x, k), {"a": x}
    for _ in s2s.checkpoint(range(n), snapshots=2):
        m = (m * 5 + 3) % 17
        pair = (pair[0] * np.cos(pair[1]) + m, pair[1] + pair[0])
        named["a"] = named["a"] * np.sin(pair[0])
    return pair[0] + pair[1] + named["a"]


def bound_late(x, k, n):
    for i in s2s.checkpoint(range(n), snapshots=2):
        if i > 0:
            x = x + np.sum(w) * k  # noqa: F821
        w = np.sin(x) * np.ones(3)  # noqa: F841
    return x


def matrix_recurrence(w, k, n):
    v = np.ones(3)
    for _ in s2s.checkpoint(range(n), snapshots=3):
        v = np.tanh(w @ v * k)
    return np.sum(v)


def settled(x, rate):
    n = 0
    while s2s.checkpoint(abs(x) > 0.1, snapshots=2):
        x = x * rate if x > 1.0 else np.sin(x) * rate
        n += 1
    return x * n


def settled_inside(x, rate):
    s = 0.0
    for _ in range(2):
        y = x + s
        while s2s.checkpoint((z := y * rate) > 0.3):
            y = z * np.cos(0.3 * z)
            if y < 0.35:
                break
        s = s + y * y
    return s


LOOPS = [
    (settled, 3.0, 0.7),
    (settled_inside, 3.0, 0.9),
    (logistic, 0.3, 3.2, 11),
    (logistic, 0.3, 3.2, 0),
    (logistic, 0.3, 3.2, 1),
    (oscillator, 0.5, 0.1, 0.3, 12),
    (stencil, U, 0.1, 7),
    (whole_arrays, U, 0.1, 9),
    (in_place_rows, A, 0.7, 5),
    (two_buffers, U, 0.7, 6),
    (left_early, 1.1, 1.4, 20),
    (left_early, 1.1, 1.4, 3),
    (returned_from, 0.3, 0.7, 9),
    (returned_from, 0.3, 0.1, 2),
    (backwards_by_three, 0.3, 0.7, 9),
    (in_each_other, 0.3, 0.7, 4),
    (inside_a_loop, 0.3, 0.7, 5),
    (around_loops_of_many_kinds, 0.3, 0.6, 6),
    (over_an_array, 0.3, U),
    (enumerated, 0.3, U),
    (inside_enumerate, 0.3, U),
    (list_in_the_state, 0.3, 0.7, 6),
    (array_that_grows, U, 0.7, 5),
    (integers_and_containers, 0.3, 0.7, 5),
    (bound_late, 0.3, 0.7, 5),
    (matrix_recurrence, np.full((3, 3), 0.3), 0.7, 6),
]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in LOOPS], ids=lambda x: getattr(x, "__name__", "")
)
def test_checkpointed_loops(f, args):
    judge(
        f,
        *args,
        second=f
        not in (in_each_other, inside_a_loop, integers_and_containers, around_loops_of_many_kinds),
    )


@pytest.mark.compile
@pytest.mark.parametrize("f, args", [(f, args) for f, *args in LOOPS[3:] if f is not bound_late],
                         ids=lambda x: getattr(x, "__name__", ""))
def test_checkpointed_loops_compiled(f, args):
    judge(f, *args, compiled=True, second=f in (logistic, stencil, left_early))


# ---------------------------------------------------------------------------------------- functions


@s2s.checkpoint
def layer(x, w):
    return np.tanh(w @ x)


def deep(x, w):
    for _ in range(3):
        x = layer(x, w)
    return np.sum(x * x)


@s2s.checkpoint
def written_into(a, k):
    for i in range(1, len(a)):
        a[i] = a[i] * np.sin(a[i - 1] * k)


def argument_written_twice(x, k):
    a = x * 2
    written_into(a, k)
    written_into(a, k)
    return np.sum(a * x)


def closures(x, k):
    def inner(y):
        return np.sin(y * k) * x

    f = s2s.checkpoint(inner)
    g = s2s.checkpoint(lambda y: np.exp(-y) * k)
    return np.sum(f(g(x))) + np.sum(f(x * 2))


@s2s.checkpoint
def product(x, n):
    return x if n <= 1 else np.sin(x) * product(x * 0.9, n - 1)


def of_a_recursive_function(x, n):
    return product(x, n) * x


@s2s.checkpoint
def nested(x, k):
    y = layer(x, MATRIX) * k
    for _ in s2s.checkpoint(range(4), snapshots=2):
        y = np.sin(y) * k
    return y


MATRIX = np.array([[0.1, -0.4, 0.3], [0.2, 0.5, -0.6], [0.7, 0.1, 0.2]])
V = np.array([0.3, -0.2, 0.9])


def of_what_is_checkpointed_inside(x, k):
    return np.sum(nested(x, k) * nested(x * 2, k))


class Affine:
    def __init__(self, w, b):
        self.w, self.b = w, b

    @s2s.checkpoint
    def __call__(self, x):
        return np.tanh(self.w @ x + self.b)

    @s2s.checkpoint
    def other(self, x, scale=2.0):
        return np.sin(x * self.b) * scale


def methods(x, w):
    made = Affine(w, x * 0.1)
    return np.sum(made(x) ** 2) + np.sum(made.other(x, scale=3.0))


@s2s.checkpoint
def many_ways_out(x, k):
    if x > 0.5:
        return x * k
    while x < 2.0:
        x = x * 1.5 + 0.1
    return x * np.sin(k)


def called_in_a_loop(x, k):
    s = 0.0
    for i in range(4):
        s = s + many_ways_out(x * (i * 0.3), k)
    return s


@s2s.checkpoint
def of_containers(p, d):
    a, b = p
    return {"s": a * np.sin(b), "t": (b * d["q"], a)}


def containers(x, k):
    r = of_containers((x, k), {"q": x * k})
    r = of_containers(r["t"], {"q": r["s"]})
    return r["s"] * r["t"][0] + r["t"][1]


def list_appended_to(x, k):
    xs = [x]

    @s2s.checkpoint
    def grow(y):
        xs.append(np.sin(y))
        return y * 2

    z = grow(x) + grow(x * 3)
    return z * xs[1] * xs[2] * k


def in_branches(x, k):
    u = np.ones(3) * x
    g = s2s.checkpoint(lambda v: v * np.sum(v))
    if x > 0:
        u = g(u)
    else:
        u = g(u * k)
    return np.sum(u) * k


def that_may_raise(x, k):
    @s2s.checkpoint
    def guarded(y):
        if np.sum(y) > 100:
            raise ValueError("big")
        if y[0] > 0:
            return y * k
        return y * y

    return np.sum(guarded(x)) + np.sum(guarded(-x))


FUNCTIONS = [
    (deep, V, MATRIX),
    (argument_written_twice, V, 0.7),
    (closures, V, 0.7),
    (of_a_recursive_function, 0.7, 4),
    (of_what_is_checkpointed_inside, V, 0.7),
    (methods, V, MATRIX),
    (called_in_a_loop, 0.4, 0.7),
    (containers, 0.4, 0.7),
    (list_appended_to, 0.4, 0.7),
    (in_branches, 0.4, 0.7),
    (that_may_raise, V, 0.7),
    (layer, V, MATRIX),
    (many_ways_out, 0.4, 0.7),
    (product, 0.4, 3),
]


@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in FUNCTIONS], ids=lambda x: getattr(x, "__name__", "")
)
def test_checkpointed_functions(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args", [(f, args) for f, *args in FUNCTIONS], ids=lambda x: getattr(x, "__name__", "")
)
def test_checkpointed_functions_compiled(f, args):
    judge(f, *args, compiled=True, second=f is argument_written_twice)


@pytest.mark.lengthy
def test_other_transformations_of_checkpointed_functions():
    def batched(x, k):
        return np.sum(
            s2s.vmap(s2s.checkpoint(lambda v, q: np.sin(v) * q), in_axes=(0, None))(x, k) ** 2
        )

    def differentiated(x, k):
        return np.sum(s2s.grad(s2s.checkpoint(lambda v: np.sum(np.sin(v * k) ** 3)))(x))

    for f, plain in (
        (batched, lambda x, k: np.sum((np.sin(x) * k) ** 2)),
        (differentiated, lambda x, k: np.sum(3 * np.sin(x * k) ** 2 * np.cos(x * k) * k)),
    ):
        np.testing.assert_allclose(s2s.grad(f)(V, 0.7), s2s.grad(plain)(V, 0.7), rtol=1e-12)
        np.testing.assert_allclose(s2s.hessian(f)(V, 0.7), s2s.hessian(plain)(V, 0.7), rtol=1e-12)
    xs = np.array([0.1, 0.5, 0.9])
    gradient = s2s.grad(called_in_a_loop)
    np.testing.assert_allclose(
        s2s.vmap(gradient, in_axes=(0, None))(xs, 0.7), [gradient(x, 0.7) for x in xs], rtol=1e-14
    )


@pytest.mark.parametrize(
    "f, args", [(logistic, (0.3, 3.2, 11)), (stencil, (U, 0.1, 7)), (left_early, (1.1, 1.4, 20))]
)
def test_lanes_of_checkpointed_loops(f, args):
    gradient = s2s.grad(f)
    lanes = np.stack([args[0], args[0] * 0.9, args[0] * 0.5])
    expected = [gradient(x, *args[1:]) for x in lanes]
    np.testing.assert_allclose(
        s2s.vmap(gradient, in_axes=(0, None, None))(lanes, *args[1:]), expected, rtol=1e-13
    )


# --------------------------------------------------------------------------- what it is without s2s


def test_python_runs_what_is_inside():
    numbers = range(4)
    assert s2s.checkpoint(numbers, snapshots=2) is numbers
    assert layer.__name__ == "layer" and layer.__wrapped__ is layer.function
    assert s2s.checkpoint(lambda x: x + 1)(2) == 3
    assert pickle.loads(pickle.dumps(layer)) is layer
    assert pickle.loads(pickle.dumps(s2s.checkpoint(np.sum))).function is np.sum
    assert repr(layer) == "<s2s.checkpoint of 'layer'>"


def test_what_prints_does_so_once(capsys):
    @s2s.checkpoint
    def said(x):
        print("called", x > 0)
        return np.sin(x)

    def f(x, n):
        for i in s2s.checkpoint(range(n), snapshots=2):
            x = x * np.sin(x + 1)
            print("trip", i)
        return said(x)

    s2s.grad(f)(0.7, 4)
    assert capsys.readouterr().out == "trip 0\ntrip 1\ntrip 2\ntrip 3\ncalled True\n"


SNAPSHOTS = 3


@pytest.mark.lengthy
def test_the_number_of_snapshots_may_be_a_variable_outside(monkeypatch):
    def f(x, n):
        for _ in s2s.checkpoint(range(n), snapshots=SNAPSHOTS):
            x = x * np.sin(x)
        return x

    gradient = s2s.grad(f)
    gradient(0.7, 9)
    assert "np.empty(3)" in gradient.source
    monkeypatch.setitem(globals(), "SNAPSHOTS", 4)
    gradient(0.7, 9)
    assert "np.empty(4)" in gradient.source


# ------------------------------------------------------------------------------------ what is drawn


def langevin(x, k, n, rng):
    for _ in s2s.checkpoint(range(2, n), snapshots=3):
        z = rng.normal()
        x = x - 0.1 * k * np.sin(x) + 0.3 * z * np.cos(x)
    return x


def until_it_stops(x, k, n, rng):
    for _ in s2s.checkpoint(range(n), snapshots=2):
        x = x * np.sin(x) + rng.normal()
        if rng.random() < 0.1:
            break
    return x


def noisy(x, rng):
    return x * np.exp(0.1 * rng.normal()) + np.sum(rng.random(3))


def drawn_in_a_callee(x, k, n, rng):
    for j in range(2):
        for _ in s2s.checkpoint(range(n), snapshots=2):
            x = np.sin(noisy(x, rng)) * k
        x = x + j * rng.normal()
    return x


@s2s.checkpoint
def dropout(u, k, rng):
    z = rng.random(3)
    return np.tanh(u * k) * z * np.sin(u * rng.normal())


def of_functions_that_draw(x, k, n, rng):
    u = np.ones(3) * x
    for _ in range(n):
        u = dropout(u, k, rng) + u
    return np.sum(dropout(u, k, rng))


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [langevin, until_it_stops, drawn_in_a_callee, of_functions_that_draw])
def test_what_is_drawn_is_drawn_once(f):
    """Trapezoids of the derivative are differences of the function, for the same numbers."""
    def at(x, k):
        rng = np.random.default_rng(3)
        y, bars = s2s.value_and_grad(f, argnums=(0, 1))(x, k, 6, rng)
        plain = np.random.default_rng(3)
        assert y == f(x, k, 6, plain) and rng.random() == plain.random()
        return y, np.array(bars)

    h = 1e-5
    (y0, b0), (y1, b1) = at(0.3 - h, 0.7 - h), at(0.3 + h, 0.7 + h)
    assert abs((b0 + b1) @ [h, h] - (y1 - y0)) < 1e-12
    second = s2s.grad(s2s.grad(f))(0.3, 0.7, 6, np.random.default_rng(3))
    forward = s2s.jvp(s2s.grad(f))(0.3, 0.7, 6, np.random.default_rng(3), 1.0, 0.0, 0, None)[1]
    assert second == pytest.approx(forward, rel=1e-10)


def test_a_function_that_draws_runs_again_with_what_it_drew():
    def f(x, k, rng):
        return np.sum(dropout(np.ones(3) * x, k, rng))

    def at(x, k):
        return f(x, k, np.random.default_rng(3))

    for found, wanted in zip(
        s2s.grad(f, (0, 1))(0.3, 0.7, np.random.default_rng(3)),
        (
            (at(0.3 + 1e-5, 0.7) - at(0.3 - 1e-5, 0.7)) / 2e-5,
            (at(0.3, 0.7 + 1e-5) - at(0.3, 0.7 - 1e-5)) / 2e-5,
        ),
    ):
        assert found == pytest.approx(wanted, rel=1e-8)


@s2s.checkpoint
def drawn_in_a_loop(u, rng):
    t = 0.0
    for _ in range(3):
        t += np.sin(u * rng.normal())
    return t


@s2s.checkpoint
def drawn_in_a_loop_that_it_calls(u, rng):
    return np.sin(u * noisy_walk(u, rng))


def noisy_walk(u, rng):
    z = u
    for _ in range(3):
        z = np.sin(z * rng.normal()) * np.exp(-z) + np.tanh(z * z) * np.cos(u * z)
    return z * np.sin(u) + np.exp(-z * z) * np.cos(z)


def test_draws_in_loops_of_what_runs_again_are_refused():
    for f in (drawn_in_a_loop, drawn_in_a_loop_that_it_calls):
        with pytest.raises(s2s.S2SError, match="a draw in a loop or a branch of what is "
                                               "checkpointed"):
            s2s.grad(lambda u, rng, f=f: f(u * 2.0, rng))(0.3, np.random.default_rng(0))


# ---------------------------------------------------------------------------------------- the price


def fewest(trips, snapshots):
    """The fewest trips to run forwards to reverse so many (Griewank & Walther 2000, theorem 2)."""
    again = 0
    while math.comb(snapshots + again, snapshots) < trips:
        again += 1
    return again * trips - math.comb(snapshots + again, snapshots + 1)


@functools.cache
def by_search(trips, snapshots):
    """The same, by trying every place for the next snapshot."""
    if trips == 1 or snapshots == 1:
        return trips * (trips - 1) // 2
    return min(
        m + by_search(m, snapshots) + by_search(trips - m, snapshots - 1) for m in range(1, trips)
    )


def by_gap(trips, snapshots):
    """The same, where `gap` says the place."""
    if trips == 1 or snapshots == 1:
        return trips * (trips - 1) // 2
    m = gap(trips, snapshots - 1)
    return m + by_gap(m, snapshots) + by_gap(trips - m, snapshots - 1)


def test_the_schedule_is_optimal():
    for snapshots in range(1, 8):
        for trips in range(1, 60):
            assert (
                by_gap(trips, snapshots) == by_search(trips, snapshots) == fewest(trips, snapshots)
            )


@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("trips", [1, 2, 5, 20, 40])
def test_trips_run_again_as_often_as_theory_says(trips, snapshots):
    """The forward sweep makes one trip more than theory, whose last trip is its adjoint's; so it
    loses the state before it.
    """
    text = f"""
def f(x, n):
    for i in s2s.checkpoint(range(n), snapshots={snapshots}):
        x = np.sin(x) * 1.1
    return x
"""
    source = (
        s2s.value_and_grad(s2s.from_source(text, {"np": np, "s2s": s2s})).lower(0.3, trips).source
    )
    count = 0

    def sin(x):
        nonlocal count
        count += 1
        return np.sin(x)

    module: dict = {}
    exec(source, module)
    module["np"] = SimpleNamespace(sin=sin, cos=np.cos, empty=np.empty, int64=np.int64)
    module["f_value_and_grad"](0.3, trips)
    last, free = 0, snapshots - 1
    while free and trips - last > 1:
        last, free = last + gap(trips - last, free), free - 1
    assert count == fewest(trips, snapshots) + 1 + (trips - 1 - last)


@pytest.mark.slow
def test_memory_is_that_of_the_snapshots():
    u = np.linspace(0, 1, 1000)
    few = s2s.grad(whole_arrays).lower(u, 0.1, 100).memory
    assert few == 8000 + 8  # 150 bytes hold no state: there is always one

    def f(u, k, n):
        for _ in s2s.checkpoint(range(n), memory="80 kB"):
            u = u + k * np.sin(u)
        return np.sum(u)

    assert s2s.grad(f).lower(u, 0.1, 100).memory == 9 * 8008
    assert s2s.grad(f).lower(u, 0.1, 4).memory == 4 * 8008

    def numbers(x, k, n):
        for _ in s2s.checkpoint(range(n)):
            x = np.sin(x) * k
        return x

    assert s2s.grad(numbers).lower(0.5, 0.9, 5000).memory == 101 * 16  # 5000 <= C(101 + 2, 2)


# ---------------------------------------------------------------------------- a limit for all loops


def plain_map(x, r, n):
    for _ in range(n):
        x = r * x * (1 - x)
    return x


def plain_array(u, k, n):
    for _ in range(n):
        u = u + k * np.sin(u)
    return np.sum(u)


def plain_sweeps(u, k, n):
    u = u.copy()
    for _ in range(n):
        for i in range(1, len(u)):
            u[i] = u[i] * np.sin(u[i - 1]) * k
    return np.sum(u)


def plain_while(x, k, n):
    while x < 3.0:
        x = x + k * np.sin(x) * x
    return x


def plain_callee(x, k, n):
    return plain_map(x, k, n) * plain_while(k, 0.01, n)


def plain_nest(x, k, n):
    for _ in range(3):
        for _ in range(n):
            x = np.sin(x) * k
    return x


def plain_state(p, k, n):
    for _ in range(n):
        p = {"a": p["a"] * np.sin(k), "b": p["b"] * p["a"]}
    return p["b"]


@pytest.mark.parametrize(
    "f, args, loops",
    [
        (plain_map, (0.3, 3.1, 500), 1),
        (plain_array, (U, 0.1, 500), 1),
        (plain_sweeps, (U, 0.9, 200), 1),
        (plain_while, (0.3, 0.01, 0), 1),
        (plain_callee, (0.3, 0.4, 400), 2),
        (plain_nest, (0.3, 0.9, 300), 1),
        (plain_state, ({"a": 0.3, "b": 0.4}, 0.7, 300), 1),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_tape_limit(f, args, loops):
    plain, held = (
        s2s.value_and_grad(f, argnums=(0, 1), **options) for options in ({}, {"tape_limit": 1000})
    )
    assert plain.lower(*args).memory > 3000
    assert held.lower(*args).memory <= loops * 1000 + 100
    for a, b in zip(s2s.tree.leaves(plain(*args)), s2s.tree.leaves(held(*args)), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.lengthy
def test_tape_limit_leaves_what_is_known_to_run_few_times():
    def few(x, n):
        for _ in range(20):
            x = np.sin(x) * 1.1
        return x

    def as_many_as_told(x, n):
        for _ in range(n):
            x = np.sin(x) * 1.1
        return x

    for f, is_left in ((few, True), (as_many_as_told, False)):
        limited, plain = (
            s2s.grad(f, **options).lower(0.3, 20).source for options in ({"tape_limit": 64}, {})
        )
        assert (limited == plain) == is_left
        assert s2s.grad(f, tape_limit=64)(0.3, 20) == pytest.approx(s2s.grad(f)(0.3, 20), rel=1e-14)


def test_tape_limit_leaves_what_saves_nothing_or_elements():
    def linear(x, k, n):
        for i in range(n):
            x = x * 0.5 + i
        return x * k

    def table(u, k, n):
        u = u.copy()
        for i in range(1, len(u)):
            u[i] = u[i] * np.sin(u[i - 1])
        return np.sum(u)

    for f, x in ((linear, 0.3), (table, U)):
        assert (
            s2s.grad(f, tape_limit=64).lower(x, 0.1, 50).source
            == s2s.grad(f).lower(x, 0.1, 50).source
        )


# ---------------------------------------------------------------------------------- what is refused


def test_numbers_of_bytes():
    assert [bytes_of(x) for x in (64, "64", "64kB", "1.5 MB", "2GiB")] == [
        64,
        64,
        64000,
        1500000,
        2**31,
    ]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"snapshots": 0}, "checkpoint with snapshots=0"),
        ({"snapshots": 2.5}, "checkpoint with snapshots=2.5"),
        ({"snapshots": 2, "memory": 64}, "checkpoint with snapshots and memory"),
        ({"memory": "many"}, "'many' is no number of bytes"),
        ({"memory": -1}, "-1 is no number of bytes"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(s2s.TypeMismatchError, match=message):
        s2s.checkpoint(range(3), **options)

    def f(x):
        for _ in s2s.checkpoint(range(3), **options):
            x = x * np.sin(x)
        return x

    with pytest.raises(s2s.S2SError):
        s2s.grad(f)(0.3)


def test_functions_take_no_options():
    with pytest.raises(
        s2s.TypeMismatchError, match="checkpoint of a function with snapshots or memory"
    ):
        s2s.checkpoint(np.sum, snapshots=3)


def test_what_jax_marks_is_accepted_and_a_policy_refused():
    f = s2s.checkpoint(
        lambda x, n: np.sin(x) ** n, static_argnums=(1,), policy=None, prevent_cse=False
    )
    judge(lambda x: f(x, 3), 0.3)
    with pytest.raises(s2s.TypeMismatchError, match="checkpoint with a policy") as error:
        s2s.checkpoint(np.sin, policy=lambda *_: True)
    assert "leave it out" in str(error.value)


def test_enumerate_zip_and_reversed_of_what_is_checkpointed_are_so():
    text = """
def f(x, w):
    for {0} in {1}:
        x = np.sin(x * v)
    return x
"""
    for target, source in (
        ("j, v", "enumerate({})"),
        ("j, v", "zip(w, {})"),
        ("v", "reversed({})"),
    ):
        f = s2s.from_source(
            text.format(target, source.format("s2s.checkpoint(w, snapshots=2)")),
            {"np": np, "s2s": s2s},
        )
        assert "x_kept" in s2s.grad(f).lower(0.3, U).source


def test_compiled_code_runs_functions_again():
    def twice(x, w):
        y = layer(layer(x, w), w)
        return np.sum(y * y)

    loops = s2s.jit(s2s.value_and_grad(twice)).lower(V, MATRIX).loops
    assert loops.count(" = np.tanh(") == 4
    assert "np.empty((" not in loops


@pytest.mark.slow
def test_a_compiled_function_inside():
    """A checkpoint, or a wrapper of the user's, is not the compiled function that it wraps,
    whatever it says of itself.
    """
    fast = s2s.jit(lambda x: np.sum(np.sin(x) * x))
    x = np.array([0.3, 0.7])
    expected = np.cos(x) * x + np.sin(x)

    @functools.wraps(fast)
    def wrapped(x):
        return 2.0 * fast(x)

    for f, factor in ((s2s.checkpoint(fast), 1.0), (wrapped, 2.0)):
        value, pullback = s2s.vjp(f, x)
        np.testing.assert_allclose(pullback(1.0)[0], factor * expected, rtol=1e-12)
        np.testing.assert_allclose(s2s.grad(f)(x), factor * expected, rtol=1e-12)
        np.testing.assert_allclose(s2s.linearize(f, x)[1](x), factor * expected @ x, rtol=1e-12)


def test_a_checkpointed_call_of_a_part_within_another():
    """The call of `norm` stays one, since it is given a view: it is among what the function around
    does again.
    """
    def norm(v):
        return np.sum(v * v)

    def scaled(x, y):
        return s2s.checkpoint(norm)(y[1:]) * x[0] + norm(x)

    def twice(x, y):
        return 2.0 * s2s.checkpoint(scaled)(x, y) - s2s.checkpoint(scaled)(y, x)

    for f in (s2s.checkpoint(scaled), twice):
        judge(f, np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 4.0]))
