"""Nests of loops over what lies in a row run as one loop, and come to the same."""

import ast

import numpy as np
import pytest

import s2s
from s2s.runtime.emit.collapse_nests import nests_of

NESTS = {  # loops, and the counters of those that may run as one
    "two": (
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = x[i, j] * x[i, j]",
        ["i", "j"],
    ),
    "three": (
        "for i in range(n):\n    for j in range(m):\n        for k in range(3):\n"
        "            y[i, j, k] += x[i, j, k]",
        ["i", "j", "k"],
    ),
    "the inner two": (
        "for i in range(n):\n    for j in range(m):\n        for k in range(l):\n"
        "            y[i, j, k] = h[j, k]",
        ["j", "k"],
    ),
    "of a part": (
        "for i in range(start, stop):\n    for j in range(m):\n        y[i, j] = x[i, j]",
        ["i", "j"],
    ),
    "a sum": (
        "for i in range(n):\n    for j in range(m):\n        total = total + x[i, j]",
        ["i", "j"],
    ),
    "inside another": (
        "while more:\n    for i in range(n):\n        for j in range(m):\n"
        "            y[t, i, j] = x[i, j, 0]",
        ["i", "j"],
    ),
    "a row for all": (
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = x[i, j] + b[j]",
        None,
    ),
    "transposed": ("for i in range(n):\n    for j in range(m):\n        y[i, j] = x[j, i]", None),
    "a counter as a number": (
        "for i in range(n):\n    for j in range(m):\n        y[i, j] = x[i, j] * j",
        None,
    ),
    "more in a trip": (
        "for i in range(n):\n    s = 0.0\n    for j in range(m):\n        s += x[i, j]",
        None,
    ),
    "a length of the trip's": (
        "for i in range(n):\n    for j in range(i):\n        y[i, j] = x[i, j]",
        None,
    ),
    "another array each time": (
        "for i in range(n):\n    for j in range(m):\n        s = s + x[i, j]\n        x = z",
        None,
    ),
    "left early": (
        "for i in range(n):\n    for j in range(m):\n        if x[i, j] > 0:\n            break",
        None,
    ),
    "not from 0": (
        "for i in range(n):\n    for j in range(1, m):\n        y[i, j] = x[i, j]",
        None,
    ),
    "small and known": (
        "for i in range(3):\n    for j in range(3):\n        y[i, j] = x[i, j]",
        None,
    ),
}


@pytest.mark.parametrize("name", NESTS)
def test_which_nests_may_run_as_one(name):
    text, counters = NESTS[name]
    found = [
        [loop.target.id for loop in nest.loops] for nest in nests_of(ast.parse(text).body).values()
    ]
    assert found == ([] if counters is None else [counters])


def f(A, B):
    h = np.maximum(A * B + A, 0.0)
    return np.sum(h * h * A)


def df(A, B):
    h = np.maximum(A * B + A, 0.0)
    return (2 * h * (h > 0) * A * (B + 1) + h * h, 2 * h * (h > 0) * A * A)


def arrays(shape):
    """Pairs of this shape, in all orders in memory that there are."""
    rng = np.random.default_rng(0)
    wide = [rng.normal(size=(*shape[:-1], 2 * shape[-1])) for _ in range(2)]
    long = [rng.normal(size=(2 * shape[0], *shape[1:])) for _ in range(2)]
    plain = [rng.normal(size=shape) for _ in range(2)]
    yield "rows", plain
    yield "columns", [np.asfortranarray(x) for x in plain]
    yield "both", [plain[0], np.asfortranarray(plain[1])]
    yield "every other number", [x[..., ::2] for x in wide]
    yield "half of each row", [x[..., :shape[-1]] for x in wide]
    yield "every other row", [x[::2] for x in long]
    yield "backwards", [x[::-1] for x in plain]
    yield "one row", [np.broadcast_to(rng.normal(size=shape[-1]), shape), plain[1]]
    yield "one column", [np.broadcast_to(rng.normal(size=(*shape[:-1], 1)), shape), plain[1]]
    yield "one number", [np.broadcast_to(rng.normal(), shape), plain[1]]


@pytest.mark.compile
def test_arrays_with_gaps_and_without():
    """The same code runs with the strides of each call: all arguments of one kind, and then those
    of another.
    """
    gradient = s2s.jit(s2s.grad(f, (0, 1)))
    for shape in ((4, 3), (1, 5), (5, 1), (3, 10), (0, 4), (4, 0), (2, 3, 5), (2, 1, 4)):
        for name, given in arrays(shape):
            for found, wanted in zip(gradient(*given), df(*given)):
                np.testing.assert_allclose(
                    found, wanted, rtol=1e-13, atol=1e-15, err_msg=f"{shape} {name}"
                )


@pytest.mark.compile
def test_loops_of_the_program():
    def g(x, n, m):
        y = np.zeros_like(x)
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j] * x[i, j]
        return np.sum(y * y)

    gradient, x = s2s.jit(s2s.grad(g)), np.arange(12.0).reshape(4, 3)
    for n, m in ((4, 3), (4, 2), (2, 3), (-1, -2), (0, 3), (-3, 2)):
        wanted = np.zeros_like(x)
        wanted[:max(n, 0), :max(m, 0)] = 4 * x[:max(n, 0), :max(m, 0)] ** 3
        np.testing.assert_allclose(gradient(x, n, m), wanted, rtol=1e-14)
