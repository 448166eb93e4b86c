"""Rows with labels, columns of rows, and dicts of a run-time number of keys, as programs sort, turn
and copy them.
"""

# ruff: noqa: E701, E702

from __future__ import annotations

import operator
from collections import defaultdict, deque
from functools import reduce

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.7, -1.3, 2.1])


def ranking(x):
    scores = {"ann": x[0] * x[1], "bea": x[2], "cleo": x[1] ** 2, "dora": x[2]}
    top = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    weighted = sum(k * v for k, (_, v) in enumerate(top))
    worst = [name for name, _ in sorted(scores.items(), key=lambda pair: pair[1])]
    rows = [(x[2], "c"), (x[0], "a"), (x[1], "b")]
    rows.sort()
    return weighted * scores[top[1][0]] + scores[worst[0]] + sum(
        v if name == "a" else v * v for v, name in rows)


def row_of_a_label(x):
    rows = [("a", x[0]), ("b", x[1] * x[2]), ("c", 2.0)]
    k = int(x[2]) % 3
    name, v = rows[k]
    return v * (3 if name == "c" else 5) + x[0]


def columns(x):
    n = len(x)
    a = [[x[i] * x[j] + j for j in range(n)] for i in range(n)]
    b = [[x[i] + i * j for j in range(n)] for i in range(n)]
    product = [[sum(p * q for p, q in zip(row, column)) for column in zip(*b)] for row in a]
    turned = [list(row) for row in zip(*a[::-1])]
    turned[0][1] += x[0]
    most = [max(column) for column in zip(*np.outer(x, x + 1))]
    first, *rest = zip(*a)
    return (product[1][2] * turned[0][1] + sum(most) + len(first) * first[1]
            + sum(reduce(operator.mul, r, 1) for r in rest))


def spread(*xs):
    xs = list(xs) or [0]
    return sum(xs) * max(xs) + len(xs)


def arguments_of_an_iterator(x):
    return spread(*(v * v for v in x)) * spread(*map(np.sin, x)) + spread(1.0, *reversed(x))


def tables(x):
    """Copies of dicts are dicts of their own, whatever they are copied with."""
    d = {2 * i: x[i % 3] * i + x[1] for i in range(len(x) + 1)}
    plain, spelled, merged, copied = dict(d), {7: x[0], **d, 2: x[1]}, d | {9: x[2]}, d.copy()
    plain[2] *= 3
    copied.update({4: x[0], 5: x[1]})
    copied |= {5: 2.0}
    key, last = copied.popitem()
    blank = dict.fromkeys([k for k in d if k > 0], 1.0)
    blank[2] = x[1]
    pairs = dict(zip(range(len(x)), x))
    tally = defaultdict(float)
    for i in range(5):
        tally[i % 2] += x[i % 3]
    again = tally.copy()
    again[3] += x[0]
    return (plain[2] * d[2] + sum(spelled.values()) + merged[9] * merged[4] + copied[4] + key * last
            + sum(blank.values()) + pairs[1] * pairs[2] + tally[0] * again[3] + len(tally))


def equal_or_not(x):
    """`==` of dicts and deques compares what is in them."""
    made = {}
    for i in range(len(x)):
        made[2 * i] = x[i]
    turned = {2 * i: x[i] for i in reversed(range(len(x)))}
    queue, other = deque(x), deque([x[0], x[1]])
    total = x[0] if made == turned and turned == made else x[1]
    turned[0] = x[1]
    total = total + (x[2] if made != turned else 5.0 * x[1])
    total = total * (x[0] if queue == other else x[1])
    other.append(x[2])
    return total + (x[0] if queue == other else 3.0)


class Grid:
    def __init__(self, n, walls):
        self.n, self.walls = n, set(walls)

    @property
    def cells(self):
        return [(r, c) for r in range(self.n) for c in range(self.n) if (r, c) not in self.walls]

    def around(self, cell):
        yield 0.8, cell
        side = (cell[0], cell[1] + 1)
        if side not in self.walls: yield 0.1, side


def values_of_a_grid(x):
    grid = Grid(2, [(1, 1)])
    v = dict.fromkeys(grid.cells, 0.0)
    v[0, 2] = v[1, 2] = x[0]
    for _ in range(2):
        old = v.copy()
        for cell in grid.cells:
            v[cell] = x[1] + sum(p * old[other] for p, other in grid.around(cell)) * x[2]
    return sum(v.values())


PROGRAMS = [ranking, row_of_a_label, columns, arguments_of_an_iterator, tables, equal_or_not,
            values_of_a_grid]


@pytest.mark.lengthy
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_rows_and_tables(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("f", [ranking], ids=lambda f: f.__name__)
def test_rows_and_tables_compiled(f):
    judge(f, X, compiled=True, second=False)


def columns_of_what_is_replaced(x):
    rows = [[v * k for k in range(3)] for v in x]
    turned = zip(*rows)
    rows[0] = [x[0], 2.0, 3.0]
    return sum(i * sum(column) for i, column in enumerate(turned))


def written(xs, k):
    xs[0] = 5.0
    yield xs[k]
    yield xs[k] * 2


def list_that_becomes_one_of_the_run_when_written(x):
    xs, k = [x[0], x[1]], int(x[2]) % 2
    pending = written(xs, k)
    before = xs[0]
    return sum(pending) * xs[0] + before


def filtered_before_a_write(x):
    xs, k = [x[0], x[1]], int(x[2]) % 2
    chosen = filter(lambda v: v > 0, xs)
    xs[0] = x[1] * 7
    return sum(chosen) + xs[k]


@pytest.mark.parametrize("f, message", [
    (columns_of_what_is_replaced, "reads changes before it is run over to its end"),
    (list_that_becomes_one_of_the_run_when_written, "writes into what was there before it"),
    (filtered_before_a_write, "reads changes before it is run over to its end"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_iterators_of_what_changes_are_refused(f, message):
    with pytest.raises(S2SError, match=message) as caught:
        s2s.grad(f)(X)
    assert "^" in str(caught.value)
