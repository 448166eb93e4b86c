"""Loops whose trips do not need one another go forwards and backwards in each trip, and only
those.
"""

import ast

import numpy as np
import pytest
from judge import judge

import s2s

RNG = np.random.default_rng(0)
W, V = RNG.normal(size=(4, 3)) / 2, RNG.normal(size=4)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=5)


def data_points(W, V, X, Y):
    total = 0.0
    for i in range(len(X)):
        h = np.tanh(W @ X[i])
        total = total + (h @ V - Y[i]) ** 2
    return total / len(X)


def nested(W, V, X, Y):
    total = 0.0
    for i in range(len(X)):
        for j in range(len(V)):
            s = 0.0
            for k in range(X.shape[1]):
                s += W[j, k] * X[i, k]
            total += V[j] * np.exp(-s * s) * Y[i]
    return total


def backwards_and_from_one(W, V, X, Y):
    total = 0.0
    for i in range(len(X) - 1, 0, -1):
        total += np.sin(X[i] @ X[i - 1]) * np.exp(Y[i])
    return total


def decides(W, V, X, Y):
    total = 0.0
    for i in range(len(Y)):
        r = X[i, 0] - Y[i]
        if np.abs(r) < 1.0:
            total += 0.5 * r * r * np.exp(r)
        elif r > 0.0:
            total += V[0] * np.log1p(r)
        else:
            total -= V[1] * np.sin(r)
    return total


def iterates(W, V, X, Y):
    """A loop of its own in each trip, as long as the numbers say: its tape is emptied in the
    trip.
    """
    total = 0.0
    for i in range(len(Y)):
        z = 1.0 + Y[i] * Y[i]
        while z > 0.1:
            z = np.sin(z) * 0.7
        total += z * V[0]
    return total


def fills(W, V, X, Y):
    out = np.zeros((len(X), 4))
    for i in range(len(X)):
        h = W @ X[i]
        out[i] = np.tanh(h * h)
    return np.sum(out)


def machine(W, V, X, Y):
    state, total = "idle", 0.0
    for y in Y:
        if state == "idle":
            if y > 0.0:
                state = "run"
                total += y * V[0]
        else:
            total += y * y * V[1]
            if y < 0.0:
                state = "idle"
    return total


def several_sums(W, V, X, Y):
    a = b = 0.0
    g = np.zeros(3)
    for i in range(len(X)):
        t = np.tanh(X[i])
        a += t @ t
        b -= np.exp(Y[i])
        g += t * Y[i]
    return 2.0 * a + b + np.sum(g)


def one_unit(x, W, V):
    h = np.tanh(W @ x)
    return np.sum(h * h * V), h


def calls(W, V, X, Y):
    total = 0.0
    for i in range(len(X)):
        value, h = one_unit(X[i] * Y[i], W, V)
        total += value * np.max(h)
    return total


def predicts(W, V, X, Y):
    """What the way back waits for is an array, made of all that the loop has filled; of which it
    wants elements.
    """
    found = np.zeros(len(X))
    for i in range(len(X)):
        found[i] = V[0] * np.exp(-V[1] * X[i, 0]) + np.tanh(W @ X[i]) @ V
    return np.mean((found - Y) ** 2 * 0.5)


def predicts_rows(W, V, X, Y):
    found = np.zeros((len(X), 4))
    for i in range(len(X)):
        found[i] = np.tanh(W @ X[i]) * V
    return np.sum(np.where(found > 0.0, found**2, 0.25 * found**3))


def likelihood(W, V, X, Y):
    p = np.zeros(len(X))
    for i in range(len(X)):
        z = 0.0
        for k in range(X.shape[1]):
            z += W[0, k] * X[i, k]
        p[i] = 1.0 / (1.0 + np.exp(-z))
    return -np.mean(Y * p + (1.0 - Y) * (p * p + 2.0))


JOINED = [
    data_points,
    nested,
    backwards_and_from_one,
    decides,
    iterates,
    fills,
    machine,
    several_sums,
    calls,
    predicts,
    predicts_rows,
    likelihood,
]


@pytest.mark.parametrize("f", JOINED, ids=lambda f: f.__name__)
def test_right(f):
    judge(f, W, V, X, Y)


@pytest.mark.parametrize("f", [f for f in JOINED if f is not iterates], ids=lambda f: f.__name__)
def test_nothing_is_saved(f):
    text = s2s.value_and_grad(f, argnums=(0, 1, 2, 3)).lower(W, V, X, Y).source
    assert "_tape" not in text
    assert text.count("for i in range(") == 1


@pytest.mark.lengthy
def test_the_value_is_what_it_was_bit_for_bit():
    X, Y = RNG.normal(size=(400, 3)), RNG.normal(size=400) * 10.0 ** RNG.integers(-8, 1, 400)
    for f in JOINED:
        assert s2s.value_and_grad(f)(W, V, X, Y)[0] == f(W, V, X, Y)


def changes_in_place(W, V, X, Y):
    y, total = Y.copy(), 0.0
    for i in range(len(Y)):
        y[i] = np.sin(y[i]) * y[i]
        total += np.exp(y[i]) * V[0]
    return total


@pytest.mark.lengthy
def test_what_only_the_reverse_sweep_would_read_is_not_stored():
    judge(changes_in_place, W, V, X, Y)
    text = s2s.grad(changes_in_place, argnums=3).lower(W, V, X, Y).source
    assert "_tape" not in text and "y[i] = " not in text


@pytest.mark.lengthy
def test_empty_and_single_loops():
    for n in (0, 1):
        for f in JOINED:
            if f in (data_points, predicts, likelihood) and n == 0:
                continue  # divides by the number of trips
            value, gradient = s2s.value_and_grad(f)(W, V, X[:n], Y[:n])
            assert value == f(W, V, X[:n], Y[:n])
            assert gradient.shape == W.shape and (n or not gradient.any())


def root(W, V, X, Y):
    """The cotangent of the sum needs the sum."""
    total = 0.0
    for i in range(len(X)):
        total += np.tanh(W @ X[i]) @ V
    return np.sqrt(1.0 + total * total)


def recurrent(W, V, X, Y):
    h = np.zeros(3)
    for i in range(len(X)):
        h = np.tanh(X[i] + h * V[0])
    return np.sum(h)


def product(W, V, X, Y):
    p = 1.0
    for i in range(len(Y)):
        p = p * np.cos(Y[i])
    return p


def reads_the_last(W, V, X, Y):
    u = np.ones(len(Y) + 1)
    for i in range(len(Y)):
        u[i + 1] = np.sin(Y[i] * V[0]) * u[i] * u[i]
    return np.sum(u)


def found_behind(W, V, X, Y):
    """A row that a later trip writes again."""
    u = np.zeros(3)
    total = 0.0
    for i in range(len(Y)):
        u[i % 3] = u[i % 3] * Y[i] + np.exp(Y[i])
        total += u[i % 3] ** 2
    return total


def dear(W, V, X, Y):
    """The exponentials would be computed in the trips, and for the value."""
    u = np.zeros(len(Y))
    for i in range(len(Y)):
        u[i] = Y[i] * V[0]
    return np.sum(np.exp(u))


def neighbours(W, V, X, Y):
    u = np.zeros(len(Y))
    for i in range(len(Y)):
        u[i] = Y[i] * V[0]
    return np.sum((u[1:] - u[:-1]) ** 2)


def of_another_length(W, V, X, Y):
    u = np.zeros(X.size // 3)
    for i in range(len(Y)):
        u[i] = Y[i] * V[0]
    return np.sum((u - Y) ** 2)


@pytest.mark.parametrize(
    "f",
    [root, recurrent, product, reads_the_last, found_behind, dear, neighbours, of_another_length],
    ids=lambda f: f.__name__,
)
def test_what_needs_the_whole_sweep_goes_back_afterwards(f):
    judge(f, W, V, X, Y)
    text = s2s.value_and_grad(f, argnums=(0, 1, 2, 3)).lower(W, V, X, Y).source
    assert ", -1, -1):" in text


@pytest.mark.lengthy
def test_lengths_are_asked_for_though_no_array_is_made():
    for n in (4, 6, 9):
        for f in (predicts, s2s.grad(predicts, argnums=1)):
            with pytest.raises(ValueError):
                f(W, V, X, np.ones(n))
    for f in (s2s.grad(predicts, argnums=1), s2s.jit(s2s.grad(predicts, argnums=1))):
        # which is broadcast
        np.testing.assert_allclose(f(W, V, X, np.ones(1)), f(W, V, X, np.ones(5)), rtol=1e-12)


def test_halves_stay_two():
    """A pullback is called when the function has been."""
    value, pull = s2s.vjp(data_points, W, V, X, Y)
    assert value == data_points(W, V, X, Y)
    for a, b in zip(pull(1.0), s2s.grad(data_points, argnums=(0, 1, 2, 3))(W, V, X, Y)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_prints_in_order(capsys):
    def f(x):
        total = 0.0
        for i in range(len(x)):
            print(i, x[i])
            total += x[i] ** 3
        print(total)
        return total

    f(Y)
    expected = capsys.readouterr().out
    s2s.grad(f)(Y)
    assert capsys.readouterr().out == expected


def test_an_error_in_a_trip_is_raised():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            if x[i] < 0.0:
                raise ValueError(f"negative at {i}")
            total += np.sqrt(x[i])
        return total

    with pytest.raises(ValueError, match="negative at 2"):
        s2s.grad(f)(np.array([1.0, 2.0, -1.0, 3.0]))


def test_the_state_machine_reads_as_one_would_write_it():
    text = s2s.value_and_grad(machine, argnums=3).lower(W, V, X, Y).source
    assert text.count("if state == 0:") == 1 and text.count("for i in range(len(Y)):") == 1


@pytest.mark.compile
@pytest.mark.parametrize(
    "f", [data_points, nested, iterates, fills, calls], ids=lambda f: f.__name__
)
def test_compiled(f):
    judge(f, W, V, X, Y, compiled=True, second=f is data_points)


def shifted_sum(x, s):
    total = 0.0
    for i in range(len(x)):
        z = np.sin(x[i] * s)
        total += z * z * np.exp(z)
    return total


def called_twice(W, V, X, Y):
    return shifted_sum(Y, 1.0) * 2.0 + shifted_sum(V, 3.0)


def called_twice_and_multiplied(W, V, X, Y):
    return shifted_sum(Y, 1.0) * shifted_sum(V, 3.0)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [called_twice, called_twice_and_multiplied], ids=lambda f: f.__name__)
def test_each_call_meets_its_own_way_back(f):
    judge(f, W, V, X, Y)
    judge(f, W, Y, X, Y)


def test_calls_that_are_compiled_are_one_function():
    """In the source a call has a way forth and a way back; compiled, both stand in one function."""
    text = s2s.value_and_grad(called_twice, argnums=(1, 3)).lower(W, V, X, Y).loops
    assert text.count("for i in range(") == 2 and ", -1, -1):" not in text


def largest_row(X):
    best = None
    for row in X:
        r = np.sin(row) * row
        if best is None or np.sum(r) > np.sum(best):
            best = r
    return np.sum(best ** 3)


def nearest_of_each(x):
    total = 0.0
    for i in range(len(x)):
        best = None
        for j in range(len(x)):
            if j != i and (best is None or abs(x[i] - x[j]) < best):
                best = abs(x[i] - x[j])
        if best is None:
            best = 0.0
        total += best ** 2
    return total


@pytest.mark.compile
def test_an_array_that_a_branch_puts_in_the_place_of_a_carry_ties_trips_together():
    """The last trip that does it counts: its order is not that of a sum."""
    def of_slopes(X):
        return 0.5 * np.sum(s2s.grad(largest_row)(X) ** 2)

    for x in (np.random.RandomState(0).randn(4, 3), X):
        np.testing.assert_allclose(
            s2s.jit(s2s.grad(of_slopes))(x), s2s.grad(of_slopes)(x), rtol=1e-12
        )
    for derivative in (s2s.hessian(nearest_of_each), s2s.jacrev(s2s.grad(nearest_of_each))):
        np.testing.assert_allclose(
            s2s.jit(derivative)(np.array([0.3, 0.9, 0.4, 1.2, 0.1])),
            [
                [6, 0, -4, 0, -2],
                [0, 4, 0, -4, 0],
                [-4, 0, 4, 0, 0],
                [0, -4, 0, 4, 0],
                [-2, 0, 0, 0, 2],
            ],
            rtol=0,
            atol=1e-12,
        )


@pytest.mark.lengthy
def test_powers_are_not_computed_twice():
    """The way back waits for what the value needs as well: in its trips, each power would be
    computed once more.
    """
    def f(w, x):
        found = np.zeros(len(x))
        for i in range(len(x)):
            found[i] = w * np.exp(-x[i])
        root = found ** 1.5
        return np.sum(root * root)

    judge(f, 0.3, V * V)
    assert s2s.value_and_grad(f).lower(0.3, V).source.count("1.5") == 1


def windowed(w, x):
    """Each cotangent is read in all trips of the inner loop."""
    out = np.zeros(len(x) - len(w) + 1)
    for i in range(len(out)):
        for j in range(len(w)):
            out[i] += x[i + j] * w[j]
    return np.sum(np.tanh(out))


def halved(w, x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        s = x[i]
        while s > 0.2:
            s = s * w[0] * w[1]
            out[i] += s * w[2]
    return np.sum(np.exp(-out))


def of_pairs(w, x):
    """Each cotangent of an element is read in all trips of the innermost loop."""
    out = np.zeros((len(x), len(w)))
    for i in range(len(x)):
        for j in range(len(w)):
            for k in range(3):
                out[i, j] += x[i] * w[j] ** k
    return np.sum(np.sin(out))


@pytest.mark.parametrize(
    "f, name, most",
    [(windowed, "tanh", 1), (halved, "exp", 1), (of_pairs, "cos", 2)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_inner_loops_compute_nothing_dear_again(f, name, most):
    """What a cotangent waits for is computed once for each element, whether in a trip or before the
    loop.
    """
    w, x = np.array([0.8, 0.7, 0.4]), np.array([1.3, 0.9, 0.5, 2.0, 1.1])
    judge(f, w, x)
    tree = ast.parse(s2s.grad(f, argnums=(0, 1)).lower(w, x).source)

    def depths(node, depth=0):
        if isinstance(node, ast.Attribute) and node.attr == name:
            yield depth
        for child in ast.iter_child_nodes(node):
            yield from depths(child, depth + isinstance(node, (ast.For, ast.While)))

    found = list(depths(tree))
    assert found and max(found) <= most
