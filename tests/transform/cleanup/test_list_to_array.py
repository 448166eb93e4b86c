"""Lists that counted loops fill and that are made arrays: they are arrays, and everything else
stays a list.
"""

import numpy as np
import pytest
from judge import judge

from s2s import passes
from s2s.transformed import Transformed

RNG = np.random.default_rng(5)
W, H, XS = RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=(5, 3))
X = np.array([0.3, -0.7, 1.2])


def recurrent(W, h, xs):
    hs = []
    for k in range(len(xs)):
        h = np.tanh(W @ h + xs[k])
        hs.append(h)
    total = hs[0][1] + len(hs)
    for row in hs:
        total = total + row[0] * row[2]
    return np.sum(np.stack(hs) ** 2) + total


def table(x, n):
    return np.sum(
        np.array([[x[i] * np.sin(0.1 * j * x[i]) for j in range(n)] for i in range(len(x))]) ** 2
    )


def backwards(x, n):
    ys, times = [], []
    for k in range(n, 2, -2):
        ys.append(x[k % 3] * x)
        times.append(0.1 * k)
    return np.sum(np.array(ys)[1:] ** 2) + np.sum(np.array(times)) * len(times)


def blocks(x, n):
    """A list for every trip of a loop around, of which only the last is kept."""
    total = 0.0
    for s in range(1, n):
        row = []
        for i in range(s):
            row.append(x[i % 3] ** s)
        last = np.array(row)
        total += np.sum(last * last)
    return total + np.sum(last)


def windows(x, n):
    """Items whose extents are those of a slice, and a list that a comprehension makes."""
    return np.sum(np.stack([np.sin(x[1:] * k) + x[:-1] for k in range(n)]) ** 3)


def records(W, h, xs, us):
    """A list of tuples, taken apart into arrays."""
    def step(h, x, u):
        h = np.tanh(W @ h + x * u)
        return h, (h, (np.sum(h), len(h)))

    ys = []
    for x, u in zip(xs, us):
        h, y = step(h, x, u)
        ys.append(y)
    sums = np.array([total for _, (total, _) in ys])
    return (
        np.sum(np.stack([y[0] for y in ys]) ** 2)
        + np.sum(h)
        + np.sum(sums * sums) * np.sum(np.array([y[1][1] for y in ys]))
    )


def rows_of_run_time_length(x):
    """Three rows, which are written out, each as long as the array is."""
    return np.sum(np.array([[p * q for p in x] for q in x[:3]]) ** 2) + np.mean(
        np.stack([np.array([v * k for v in x]) for k in range(2)])
    )


FILLED = [
    (recurrent, (W, H, XS)),
    (table, (X, 4)),
    (table, (X, 0)),
    (backwards, (X, 9)),
    (backwards, (X, 4)),
    (blocks, (X, 5)),
    (windows, (X, 4)),
    (records, (W, H, XS, XS[:, 0])),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("f, args", FILLED, ids=lambda x: getattr(x, "__name__", ""))
def test_filled_lists_are_arrays(f, args):
    with passes.checked():
        judge(f, *args)
    assert "append" not in printed(f, *args)


def printed(f, *args):
    value = Transformed("value", f)
    value(*args)
    return value.source


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args", [FILLED[0], FILLED[1], FILLED[5]], ids=lambda x: getattr(x, "__name__", "")
)
def test_filled_lists_compiled(f, args):
    judge(f, *args, compiled=True, second=f.__name__ != "recurrent")


def test_arrays_of_rows_that_are_lists():
    judge(rows_of_run_time_length, X)


def skipping(x):
    ys = []
    for v in x:
        if v > 0:
            ys.append(v * v)
    return np.sum(np.array(ys))


def reading_numbers(x):
    """A number of a list is Python's: dividing it by zero raises, which NumPy's number would
    not.
    """
    ys = []
    for v in x:
        ys.append(float(v))
    return np.sum(np.array(ys)) + ys[0] ** 2


def looking_back(x):
    ys = []
    for k in range(len(x)):
        ys.append(x[k] * (ys[-1] if k > 0 else 1.0))
    return np.sum(np.array(ys))


def leaving_early(x):
    ys = []
    for v in x:
        if v > 1.0:
            break
        ys.append(v * v)
    return np.sum(np.array(ys))


def added_to_afterwards(x):
    ys = []
    for v in x:
        ys.append(v * v)
    ys.append(3.0)
    return np.sum(np.array(ys))


def measured_inside(x):
    ys = []
    for v in x:
        ys.append(v * len(ys))
    return np.sum(np.array(ys))


def numbers_of_tuples(x):
    ys = []
    for v in x:
        ys.append((v, v * v))
    return np.sum(np.array([a * b for a, b in ys]))


@pytest.mark.parametrize(
    "f",
    [
        numbers_of_tuples,
        skipping,
        reading_numbers,
        looking_back,
        leaving_early,
        added_to_afterwards,
        measured_inside,
    ],
)
def test_what_stays_a_list(f):
    judge(f, X)
    assert ".append(" in printed(f, X)
