"""vmap of recursive functions whose calls run as batches: against lanes that run as plain Python,
and differences of those.
"""

import sys

import numpy as np
import pytest

import s2s
from s2s.errors import UnsupportedError

rng = np.random.default_rng(1)
LANES, LEAVES, WIDTH = 5, 5, 3


def random_tree(leaves):
    """The children of each node of a random binary tree, whose root is the last."""
    left, right, roots = [-1] * leaves, [-1] * leaves, list(range(leaves))
    while len(roots) > 1:
        k = rng.integers(len(roots) - 1)
        left.append(roots[k])
        right.append(roots[k + 1])
        roots[k:k + 2] = [len(left) - 1]
    return left, right


LEFT, RIGHT = np.array([random_tree(LEAVES) for _ in range(LANES)]).transpose(1, 0, 2)
NODES = LEFT.shape[1]
ROOT = np.array([NODES - 1, NODES - 2, 0, NODES - 1, NODES - 1])
WORDS = rng.normal(size=(LANES, NODES, WIDTH))
W, V = rng.normal(size=(2, WIDTH, WIDTH))
X, N = rng.normal(size=(LANES, WIDTH)) / 2, np.array([0, 3, 6, 9, 4])


def encode(node, left, right, words, W):
    if left[node] < 0:
        return np.tanh(W @ words[node])
    a = encode(left[node], left, right, words, W)
    b = encode(right[node], left, right, words, W)
    return np.tanh(W @ (a + b))


def cell_and_output(node, left, right, words, W, V):
    if left[node] < 0:
        c = np.tanh(W @ words[node])
        return c, np.tanh(c)
    c_left, h_left = cell_and_output(left[node], left, right, words, W, V)
    c_right, h_right = cell_and_output(right[node], left, right, words, W, V)
    gate = 1 / (1 + np.exp(-V @ (h_left + h_right)))
    c = gate * c_left + (1 - gate) * c_right
    return c, np.tanh(c)


def tree_lstm(node, left, right, words, W, V):
    return cell_and_output(node, left, right, words, W, V)[1]


def power(x, n):
    if n == 0:
        return np.ones_like(x)
    if n % 2 == 0:
        return power(x * x, n // 2)
    return x * power(x, n - 1)


def even(x, n):
    if n == 0:
        return np.sin(x)
    return odd(2 * x, n - 1)


def odd(x, n):
    if n == 0:
        return np.cos(x)
    return even(x + 1, n - 1) * x


def accumulated(node, left, right, words, depth, total):
    if left[node] < 0:
        return total + depth * words[node]
    if depth > 2:
        t = accumulated(left[node], left, right, words, depth + 1, total * 0.5)
    else:
        t = accumulated(right[node], left, right, words, depth + 1, total + words[node])
    return accumulated(right[node], left, right, words, depth + 1, t)


def closed_over(node, left, right, words, W):
    def go(k):
        if left[k] < 0:
            return words[k]
        return W @ (go(left[k]) * go(right[k]))
    return np.sum(go(node))


def three_ways(x, n):
    if n < 1:
        return x
    elif n < 3:
        return three_ways(np.sin(x), n - 1)
    elif n < 5:
        s = np.zeros_like(x)
        for k in range(n):
            s = s + x / (k + 1)
        return three_ways(s, n - 2) + x.sum()
    return three_ways(x, n - 3) * three_ways(-x, n - 4)


def of_its_result(x, n):
    if n > 20:
        return x, n - 3
    y, m = of_its_result(x * 1.1, n + 4)
    return of_its_result(y + 1, m)


def ninety_one(x, n):
    return of_its_result(x, n)[0]


def optional(node, left, right, words):
    t = np.tanh(words[node])
    if left[node] >= 0:
        t = t + optional(left[node], left, right, words)
    if right[node] >= 0:
        t = t * optional(right[node], left, right, words)
    return t


def gates_and_output(node, left, right, words, W, U):
    d = len(U) // 5
    if left[node] < 0:
        g = W @ words[node]
        c = np.tanh(g[:d]) * g[d:2 * d]
        return c, np.tanh(g[2 * d:]) * c
    c_left, h_left = gates_and_output(left[node], left, right, words, W, U)
    c_right, h_right = gates_and_output(right[node], left, right, words, W, U)
    g = np.tanh(U @ np.concatenate((h_left, h_right)))
    c = g[:d] * g[d:2 * d] + g[2 * d:3 * d] * c_left + g[3 * d:4 * d] * c_right
    return c, g[4 * d:] * np.tanh(c)


def gates_in_one_product(node, left, right, words, W, U):
    return gates_and_output(node, left, right, words, W, U)[1]


TREES = (ROOT, LEFT, RIGHT, WORDS)
OWN = W * np.arange(1.0, 6.0)[:, None, None]
# function, in_axes, arguments, the argument to differentiate in
PROGRAMS = [
    (encode, (0, 0, 0, 0, None), (*TREES, W), 4),
    (tree_lstm, (0, 0, 0, 0, 0, None), (*TREES, OWN, V), 4),
    (power, 0, (X, N), 0),
    (even, 0, (X, N), 0),
    (accumulated, (0, 0, 0, 0, None, None), (*TREES, 0, np.zeros(WIDTH)), 3),
    (closed_over, (0, 0, 0, 0, None), (*TREES, W), 4),
    (closed_over, (0, None, None, None, None), (ROOT, LEFT[0], RIGHT[0], WORDS[0], W), 3),
    (three_ways, 0, (X, N), 0),
    (ninety_one, 0, (X, N + 10), 0),
    (optional, 0, TREES, 3),
    (gates_in_one_product, (0, 0, 0, 0, None, None),
     (*TREES, rng.normal(size=(3 * WIDTH, WIDTH)), rng.normal(size=(5 * WIDTH, 2 * WIDTH))), 5),
]
NAMES = [f"{f.__name__}_{k}" for k, (f, *_) in enumerate(PROGRAMS)]


def lane_by_lane(f, in_axes, args):
    """Each lane, run by Python."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    return np.array([f(*(x if axis is None else x[k] for x, axis in zip(args, axes)))
                     for k in range(LANES)])


def slope(f, in_axes, args, wrt, bar):
    """The derivative of the sum of `bar` times the results, by central differences."""
    found = np.zeros_like(args[wrt])
    for k in np.ndindex(found.shape):
        ends = []
        for step in (1e-6, -1e-6):
            x = args[wrt].copy()
            x[k] += step
            ends.append(np.sum(bar * lane_by_lane(f, in_axes, (*args[:wrt], x, *args[wrt + 1:]))))
        found[k] = (ends[0] - ends[1]) / 2e-6
    return found


def check(f, in_axes, args, wrt, run):
    """Compare values and both modes, as `run` makes functions of transformed ones."""
    batched = s2s.vmap(f, in_axes)
    want = lane_by_lane(f, in_axes, args)
    np.testing.assert_allclose(run(batched)(*args), want, rtol=1e-9)
    assert "_calls(" in source(batched, *args)  # no loop over lanes
    bar = rng.normal(size=want.shape)
    by_differences = slope(f, in_axes, args, wrt, bar)
    close = {"rtol": 2e-5, "atol": 1e-7 * np.abs(by_differences).max()}
    gradient = s2s.grad(lambda *args: np.sum(batched(*args) * bar), wrt)
    np.testing.assert_allclose(run(gradient)(*args), by_differences, **close)
    dots = [np.zeros_like(x) if isinstance(x, np.ndarray) else 0 for x in args]
    dots[wrt] = rng.normal(size=args[wrt].shape)
    _, moves = s2s.jvp(batched)(*args, *dots)
    np.testing.assert_allclose(np.sum(moves * bar), np.sum(by_differences * dots[wrt]), rtol=2e-5)


@pytest.mark.parametrize("f, in_axes, args, wrt", PROGRAMS, ids=NAMES)
def test_calls_of_all_lanes_are_batches(f, in_axes, args, wrt):
    check(f, in_axes, args, wrt, lambda t: t)


@pytest.mark.compile
@pytest.mark.parametrize("f, in_axes, args, wrt", [PROGRAMS[7], PROGRAMS[10]],
                         ids=[NAMES[7], NAMES[10]])
def test_compiled_calls_of_all_lanes_are_batches(f, in_axes, args, wrt):
    check(f, in_axes, args, wrt, s2s.jit)


def score(words, node, left, right, W):
    return np.sum(encode(node, left, right, words, W) ** 2)


GRADIENTS = [
    (s2s.grad(score), (0, 0, 0, 0, None), 0, True),
    (s2s.grad(score), (1, 0, 0, 0, None), 2, True),
    (s2s.grad(score, (0, 4)), (0, 0, 0, 0, 0), 0, True),
    (s2s.grad(score, 4), (0, 0, 0, 0, None), 0, False),
    (s2s.value_and_grad(score, (0,)), (0, 0, 0, 0, None), 0, True),
]


@pytest.mark.parametrize("gradient, in_axes, out_axes, batches, run", [
    *((*each, lambda t: t) for each in GRADIENTS),
    pytest.param(*GRADIENTS[2], s2s.jit, marks=pytest.mark.compile)])
def test_gradients_of_lanes(gradient, in_axes, out_axes, batches, run):
    args = WORDS, ROOT, LEFT, RIGHT, OWN if in_axes[4] == 0 else W
    of_lanes = [gradient(*(x if axis is None else x[k] for x, axis in
                           zip(args, (0, 0, 0, 0, in_axes[4])))) for k in range(LANES)]
    args = np.moveaxis(WORDS, 0, in_axes[0]).copy(), *args[1:]
    t = s2s.vmap(gradient, in_axes, out_axes)
    found = run(t)(*args)
    assert ("_calls_bwd(" in source(t, *args)) == batches
    for got, want in zip(s2s.tree.leaves(found), zip(*map(s2s.tree.leaves, of_lanes))):
        np.testing.assert_allclose(got, np.stack(want, out_axes), rtol=1e-9, atol=1e-14)


@pytest.mark.lengthy
def test_second_derivatives_of_lanes():
    slopes = s2s.vmap(s2s.grad(score), (0, 0, 0, 0, None))

    def length(words):
        return np.sum(slopes(words, ROOT, LEFT, RIGHT, W) ** 2)

    step = 1e-6 * rng.normal(size=WORDS.shape)
    np.testing.assert_allclose(np.sum(s2s.grad(length)(WORDS) * step),
                               (length(WORDS + step) - length(WORDS - step)) / 2, rtol=1e-6)


def test_batches_in_batches():
    batched = s2s.vmap(encode, (0, 0, 0, 0, None))
    pairs = [np.stack([x, x[::-1]]) for x in TREES]
    both = s2s.vmap(batched, (0, 0, 0, 0, None))(*pairs, W)
    np.testing.assert_allclose(both, [batched(*(x[k] for x in pairs), W) for k in range(2)])
    step = np.zeros_like(W)
    step[1, 2] = 1e-6
    columns = s2s.jacfwd(lambda W: batched(*TREES, W))(W)
    by_differences = (batched(*TREES, W + step) - batched(*TREES, W - step)) / 2e-6
    np.testing.assert_allclose(columns[..., 1, 2], by_differences, rtol=1e-6, atol=1e-8)
    assert batched(*(x[:0] for x in TREES), W).shape == (0, WIDTH)


def calls_made(function, *args):
    """The calls of each Python function while `function` runs."""
    counts = {}

    def note(frame, event, _):
        if event == "call":
            counts[frame.f_code.co_name] = counts.get(frame.f_code.co_name, 0) + 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = function(*args)
    finally:
        sys.setprofile(before)
    return result, counts


def fib(n):
    if n < 2:
        return 1
    return fib(n - 1) + fib(n - 2)


def test_fibonacci_adds_once_for_each_depth():
    batched, module = s2s.vmap(fib, lanes="together"), {}
    n = np.array([6, 7, 8, 7])
    batched(n)
    exec(batched.source, module)
    result, counts = calls_made(module["fib_vmap"], n)
    assert list(result) == [13, 21, 34, 21]
    # a call for each n from 8 to 1, and each adds, but the last
    assert counts["fib_vmap"] == 8
    assert batched.source.count("+") == 1
    _, counts = calls_made(lambda: [fib(int(k)) for k in n])
    assert counts["fib"] - (13 + 21 + 34 + 21) == 85  # additions, lane by lane


def test_trees_make_a_call_for_each_depth():
    batched = s2s.vmap(encode, (0, 0, 0, 0, None))
    batched(*TREES, W)

    def depth(lane, node):
        children = LEFT[lane, node], RIGHT[lane, node]
        return 1 + max(depth(lane, k) if k >= 0 else 0 for k in children)

    _, counts = calls_made(batched, *TREES, W)
    assert counts["encode_calls"] == max(depth(k, ROOT[k]) for k in range(LANES))
    assert batched.source.count("@") == 2  # of leaves, and of inner nodes


def test_numbers_are_computed_lane_by_lane_unless_told():
    assert "for lane in range(" in source(s2s.vmap(fib), N)
    assert "for lane in range(" not in source(s2s.vmap(fib, lanes="together"), N)
    assert "for lane in range(" in source(s2s.vmap(power, lanes="apart"), X, N)
    for lanes in ("together", "apart", None):
        assert list(s2s.vmap(fib, lanes=lanes)(N)) == [1, 3, 13, 55, 5]


def source(t, *args):
    t(*args)
    return t.source


def with_an_error(n):
    if n < 0:
        raise ValueError("a negative number")
    if n < 2:
        return np.ones(2)
    return with_an_error(n - 1) + with_an_error(n - 2)


def over_children(n):
    s = np.ones(2)
    for k in range(n):
        s = s + over_children(k)
    return s


def writes(n, x):
    x[0] = n
    if n < 2:
        return 1.0
    return writes(n - 1, x) + writes(n - 2, x)


def ever_longer(n, x):
    if n < 2:
        return x
    return np.concatenate((ever_longer(n - 1, x), ever_longer(n - 2, x)))


def as_deep_as_long(n, x):
    if n < 1:
        return x[:1] * 2.0
    return as_deep_as_long(n - 1, x)[:n] + x[:n]


@pytest.mark.parametrize("f, args, message", [
    (as_deep_as_long, (N * 0 + 2, X), "arrays of as_deep_as_long that have another length in each"),
    (with_an_error, (N,), "with_an_error has an effect, raise, whose order matters"),
    (over_children, (N,), "a call in a loop whose trips differ from lane to lane"),
    (writes, (N, np.ones((LANES, 2))), "writes writes into an array that it is given"),
    (ever_longer, (N * 0 + 4, X), "a branch that makes an array of a length that no argument has"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_lanes_that_cannot_run_together_run_apart(f, args, message):
    np.testing.assert_allclose(s2s.vmap(f)(*[x.copy() for x in args]),
                               lane_by_lane(f, 0, [x.copy() for x in args]))
    with pytest.raises(UnsupportedError, match=message):
        s2s.vmap(f, lanes="together")(*args)


def test_calls_whose_results_differ_in_length():
    def narrower(n, x, W):
        if n < 1:
            return x
        return W @ x

    def chosen(n, x, W):
        if n > 5:
            return chosen(n - 1, x, W)
        return narrower(n, x, W)

    args = N, X, W[:2]
    with pytest.raises(ValueError, match="make arrays of lengths 3 and 2: say vmap.*lanes='apart'"):
        s2s.vmap(chosen, (0, 0, None))(*args)
    with pytest.raises(s2s.TypeMismatchError, match="vmap with lanes='alike'"):
        s2s.vmap(fib, lanes="alike")
