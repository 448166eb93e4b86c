"""Native code supposes that slices whose bounds do not tell their length do not have length 1, and
is not what runs where one has: ir/length_assumptions.py, Note [Supposed lengths].
"""

import numpy as np
import pytest
from judge import outcome

import s2s
from s2s.runtime.call.native_function import Native
from s2s.runtime.numba.native_module import statistics


def halves(y, n):
    a, b = y[:n], y[n:]
    return np.sum(np.sin(a) * b + a)


def gates(W, h, steps):
    n = len(h)
    for _ in range(steps):
        z = W @ h
        h = np.tanh(z[:n]) * h + z[n:2 * n] * z[2 * n:]
    return h @ h


def written(y, n, k):
    u = np.zeros(len(y))
    u[:n] = y[k:k + n] * np.cos(y[n:])
    u[n:] += y[n:] * y[:n]
    return np.sum(u * u * y)


def matrix(A, n):
    left, right = A[:, :n], A[:, n:]
    rows = A[:n] * A[n:]
    return np.sum(left * right) + np.sum(rows[0]) + np.mean(left + right, axis=0) @ np.ones(1)


def in_a_branch(y, n, k):
    if k > 0:
        return np.sum(y[:n] * y[n:])
    return np.sum(np.exp(y[:k] + y[-n:]))


def numbers(y, w):
    return (
        np.sum(np.sin(y[:3]) * w[2:5] + y[-3:])
        + np.sum(w[1:4] * y[4:7])
        + np.sum(y[:1] * w[:2])
        + np.sum(y[-1:] - w[-2:-1])
    )


def caught(y, n):
    try:
        return np.sum(y[:n] / y[n:])
    except ValueError:
        return np.sum(y * y)


RNG = np.random.default_rng(0)
CALLS = [
    (f, args)
    for f, calls in [
        (halves, [(m, n) for m in (0, 2, 3, 4, 9, 12) for n in (-2, -1, 0, 1, 2, 3, 8, 20)]),
        (
            written,
            [
                (m, n, k)
                for m in (2, 3, 6, 8)
                for n, k in [(1, 0), (2, 1), (3, 3), (4, 0), (5, -1), (7, 0)]
            ],
        ),
        (
            in_a_branch,
            [
                (m, n, k)
                for m in (2, 3, 6)
                for n, k in [(1, 1), (3, 1), (5, 1), (3, -3), (2, -4), (1, -1), (4, -5)]
            ],
        ),
        (caught, [(m, n) for m in (2, 3, 6) for n in (1, 2, 3, 5)]),
    ]
    for m, *rest in calls
    for args in [(m, *rest)]
]


def leaves(x):
    return (
        [leaf for member in x for leaf in leaves(member)] if isinstance(x, (tuple, list)) else [x]
    )


def agree(found, expected):
    if isinstance(expected, type):
        assert found is expected
        return
    assert not isinstance(found, type), found
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.compile
@pytest.mark.parametrize("f", [halves, written, in_a_branch, caught], ids=lambda f: f.__name__)
def test_any_lengths(f):
    gradient = s2s.value_and_grad(f)
    fast = s2s.jit(gradient)
    for each, (m, *rest) in CALLS:
        if each is f:
            y = RNG.normal(size=m)
            agree(outcome(fast, y, *rest), outcome(gradient, y, *rest))
            if m > 1:  # lengths as before
                agree(outcome(fast, y, *rest), outcome(gradient, y, *rest))


@pytest.mark.compile
def test_bounds_that_are_numbers():
    gradient = s2s.value_and_grad(numbers, argnums=(0, 1))
    fast = s2s.jit(gradient)
    for n in range(8):
        for m in range(8):
            y, w = RNG.normal(size=n), RNG.normal(size=m)
            agree(outcome(fast, y, w), outcome(gradient, y, w))


def test_gates_are_one_loop_where_short_lengths_are_numbers():
    fast = s2s.jit(s2s.grad(gates, argnums=(0, 1)))
    text = fast.lower(RNG.normal(size=(12, 4)), RNG.normal(size=4), 300).loops
    assert (
        "needs_length(W.shape[1], 4)" in text
        and "supposed_length(" in text
        and "== 1 else 1" not in text
    )


@pytest.mark.compile
def test_several_axes():
    gradient = s2s.value_and_grad(matrix)
    fast = s2s.jit(gradient)
    for rows, columns, n in [
        (4, 4, 2),
        (4, 3, 2),
        (2, 2, 1),
        (6, 6, 3),
        (6, 6, 5),
        (6, 4, 1),
        (5, 5, 2),
    ]:
        A = RNG.normal(size=(rows, columns))
        agree(outcome(fast, A, n), outcome(gradient, A, n))


@pytest.mark.lengthy
def test_gates_are_one_loop():
    args = RNG.normal(size=(12, 4)), RNG.normal(size=4), 3
    text = s2s.jit(s2s.grad(gates, argnums=(0, 1))).lower(*args).loops
    assert "== 1" not in text.split("def gates_grad")[1]
    general = s2s.grad(gates, argnums=(0, 1)).lower(*args).loops  # a file to keep has no other code
    assert "== 1 else 1" in general and "supposed_length" not in general
    assert text.count("for ") < 0.7 * general.count("for ")


@pytest.mark.compile
def test_gates():
    gradient, rng = s2s.value_and_grad(gates, argnums=(0, 1)), np.random.default_rng(2)
    fast, lanes = s2s.jit(gradient), s2s.jit(s2s.vmap(gradient, in_axes=(None, 0, None)))
    for n in (4, 9, 1, 2):
        W, h = 0.3 * rng.normal(size=(3 * n, n)), rng.normal(size=n)
        agree(fast(W, h, 3), gradient(W, h, 3))
        hs = rng.normal(size=(3, n))
        agree(lanes(W, hs, 2), s2s.vmap(gradient, in_axes=(None, 0, None))(W, hs, 2))
    W, h = 0.3 * rng.normal(size=(12, 4)), rng.normal(size=4)
    out = (0.0, (np.empty_like(W), np.empty_like(h)))
    for _ in range(3):
        agree(fast(W, h, 3, out=out), gradient(W, h, 3))
    for rows in (9, 11, 13):  # of 9 the last gate has length 1
        W = 0.3 * rng.normal(size=(rows, 4))
        agree(outcome(fast, W, h, 2), outcome(gradient, W, h, 2))


@pytest.mark.compile
def test_second_derivatives():
    for n, m in [(3, 6), (1, 6), (5, 6)]:
        y = RNG.normal(size=m)
        agree(s2s.jit(s2s.hessian(halves))(y, n), s2s.hessian(halves)(y, n))


@pytest.mark.compile
def test_what_supposes_nothing_is_made_when_it_is_needed_and_no_sooner():
    fast = s2s.jit(s2s.grad(halves), cache=False)
    before = statistics()[0]
    fast(RNG.normal(size=10), 5)
    fast(RNG.normal(size=12), 6)
    assert outcome(fast, RNG.normal(size=12), 5) is ValueError
    assert statistics()[0] - before == 1
    for _ in range(2):
        agree(fast(np.arange(10.0), 1), s2s.grad(halves)(np.arange(10.0), 1))
        agree(fast(np.arange(10.0), 5), s2s.grad(halves)(np.arange(10.0), 5))
    assert statistics()[0] - before == 2


@pytest.mark.compile
def test_what_cannot_run_twice_supposes_nothing():
    def shown(y, n):
        print("once")
        return halves(y, n)

    fast = s2s.jit(s2s.grad(shown))
    y = np.arange(6.0)
    fast(y, 3)
    native = fast.last.call.native.whole
    assert isinstance(native, Native) and native.otherwise is None


@pytest.mark.compile
def test_in_parts(monkeypatch):
    def each(ys, n):
        total = 0.0
        for k in range(len(ys)):
            total = total + np.sum(np.sin(ys[k, :n]) * ys[k, n:])
        return total

    monkeypatch.setattr("s2s.runtime.threads.parallel_threshold.LARGE", 1)
    monkeypatch.setattr("s2s.runtime.threads.parallel_for.GRAIN", 1)
    gradient = s2s.value_and_grad(each)
    fast = s2s.jit(gradient, parallel=True)
    for m, n in [(8, 4), (9, 1), (9, 8)]:
        ys = RNG.normal(size=(300, m))
        agree(fast(ys, n), gradient(ys, n))


def growing(x, w):
    total = 0.0
    for i in range(len(x)):
        total = total + np.sum(np.sin(x[:i + 1]) * w[:i + 1]) * x[i]
    return total


def shrinking(x, w):
    total = 0.0
    for i in range(len(x)):
        total = total + np.sum(np.sin(x[i:]) * w[:len(x) - i]) * x[i]
    return total


def shrinking_backwards(x, w):
    total = 0.0
    for i in range(len(x) - 1, -1, -1):
        total = total + np.sum(np.sin(x[i:]) * np.sum(w[:i + 1])) * x[i]
    return total


def longer(x, w):
    total = 0.0
    for i in range(1, len(x)):
        total = total + np.sum(np.sin(x[:i + 1]) * w[:i + 1]) * x[i]
    return total


def lagged(x, w):
    total = 0.0
    for k in range(1, 3):
        total = total + np.tanh(np.sum(x[k:] * w[:-k]))
    return total


@pytest.mark.parametrize(
    "f, supposes",
    [
        (growing, False),
        (shrinking, False),
        (shrinking_backwards, False),
        (longer, True),
        (lagged, True),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_of_a_slice_that_comes_to_length_one_nothing_is_supposed(f, supposes):
    """In one of the trips its length is 1: the code would be made twice."""
    text = s2s.jit(s2s.grad(f, argnums=(0, 1))).lower(RNG.normal(size=9), RNG.normal(size=9)).loops
    assert ("supposed_length(" in text) == supposes


@pytest.mark.compile
@pytest.mark.parametrize(
    "f", [growing, shrinking, shrinking_backwards, longer, lagged], ids=lambda f: f.__name__
)
def test_slices_that_grow_or_shrink(f):
    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    fast = s2s.jit(gradient)
    for n, m in ((9, 9), (9, 12), (2, 2), (1, 1), (3, 1), (9, 8), (0, 0)):
        x, w = RNG.normal(size=n), RNG.normal(size=m)
        agree(outcome(fast, x, w), outcome(gradient, x, w))


def swapped(c, u, steps):
    n = len(c)
    up, u, un = u.copy(), u.copy(), np.zeros(n)
    total = 0.0
    for t in range(steps):
        for i in range(1, n - 1):
            un[i] = 2 * u[i] - up[i] + 0.5 * c[i] ** 2 * (u[i + 1] - 2 * u[i] + u[i - 1])
        up, u, un = u, un, up
        total += u[n // 2] ** 2
    return total + np.sum(u**2) + c[len(up) - 1]


def recurrent(W, h, steps):
    for t in range(steps):
        h = np.tanh(W @ h)
    return np.sum(h**2)


def shortened(c, u, steps):
    for t in range(steps):
        u = u[1:]
        if t > 2:
            u = c * 2
    return np.sum(u**2) * c[0]


@pytest.mark.lengthy
def test_arguments_that_a_loop_carries_in_turns_are_supposed_to_be_equally_long():
    text = s2s.jit(s2s.grad(swapped, argnums=(0, 1))).lower(np.ones(20), np.ones(20), 3).loops
    assert "supposed_alike(c.shape[0], u.shape[0])" in text
    assert not any("place_in(i" in line for line in text.splitlines())
    text = (
        s2s.jit(s2s.grad(recurrent, argnums=(0, 1))).lower(np.ones((20, 20)), np.ones(20), 3).loops
    )
    assert (
        "supposed_alike(W.shape[0], h.shape[0])" in text
        and "h_tape = np.empty((" in text
        and "[]" not in text
    )
    # a file to keep has no other code
    for general in (s2s.grad(swapped).lower(np.ones(20), np.ones(20), 3).loops,
                    s2s.jit(s2s.grad(shortened)).lower(np.ones(20), np.ones(20), 3).loops):
        assert "supposed_alike" not in general


@pytest.mark.compile
@pytest.mark.parametrize("f", [swapped, shortened], ids=lambda f: f.__name__)
def test_arguments_that_are_not_equally_long(f):
    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    for lengths in [
        ((12, 12), (12, 15), (12, 12), (15, 12), (9, 15), (2, 15)),
        ((9, 20), (20, 9), (20, 20), (3, 4)),
    ]:
        fast = s2s.jit(gradient)
        for n, m in lengths:
            for steps in (0, 1, 2, 4):
                c, u = RNG.normal(size=n), RNG.normal(size=m)
                agree(outcome(fast, c, u, steps), outcome(gradient, c, u, steps))


@pytest.mark.compile
def test_matrices_that_are_not_square():
    gradient = s2s.value_and_grad(recurrent, argnums=(0, 1))
    fast = s2s.jit(gradient)
    for n, m, steps in [
        (9, 9, 3),
        (9, 12, 1),
        (12, 9, 1),
        (9, 12, 2),
        (9, 12, 0),
        (9, 9, 2),
        (1, 9, 1),
        (4, 4, 3),
    ]:
        W, h = 0.3 * RNG.normal(size=(n, m)), RNG.normal(size=m)
        agree(outcome(fast, W, h, steps), outcome(gradient, W, h, steps))
