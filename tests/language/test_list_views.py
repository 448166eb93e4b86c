"""Lists whose items are parts of something: rows of an array, or items of another list, are written
into through either name (s2s/front/values/list_views.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.7, -0.4, 1.3])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


def arrays(x):
    """A list of run-time length."""
    found = []
    for k in range(len(x)):
        found.append(x * (k + 1.0))
    return found


@program
def rows_of_an_array(x):
    g = np.outer(x, x)
    rows = [r for r in g]
    rows[0][:2] *= 2
    rows[-1][0] = x[1] * 3
    return np.sum(g**2) + np.sum(rows[0])


@program
def rows_in_loops(x):
    g = np.outer(x, x)
    rows = list(g)
    for i in range(len(x)):
        rows[i][1:] += i * x[0]
    for r in rows:
        r[0] *= r[1]
    g[0, 1] = 3.0 * x[1]
    return np.sum(g**2) + np.sum(rows[0] ** 3)


@program
def elimination_by_rows(x):
    g = np.outer(x, x) + 3 * np.eye(len(x))
    rows = [r for r in g]
    n = len(rows)
    for k in range(n):
        for i in range(k + 1, n):
            rows[i] -= rows[k] * (rows[i][k] / rows[k][k])
    return np.prod(np.diag(g))


@program
def columns(x):
    g = np.outer(x, x)
    cols = [c for c in g.T]
    cols[0][1] = x[2] * 5
    cols[2] *= x[0]
    return np.sum(g**2) + np.sum(g[0])


@program
def items_that_grow_in_pairs(x):
    """The list that runs is a part of another; no item is that list."""
    xs = [[x[i], 0.3 * i] for i in range(len(x))]
    for i, (a, b) in enumerate(zip(xs, xs[1:])):
        a.append(np.tanh(xs[i % len(xs)][-1]))
        b.append(np.sin(b[-1]))
    return sum([sum([v**2 for v in a]) * (k + 1) for k, a in enumerate(xs)])


@program
def pairs_of_items(x):
    xs = arrays(x)
    for a, b in zip(xs, xs[1:]):
        b += a * a
        a[0] = 1.0
    total = 0.0
    for a in xs:
        total += np.sum(a**2)
    return total


@program
def all_but_the_first(x):
    xs = arrays(x)
    for a in xs[1:]:
        a *= x[0]
        a[1] = 2.0
    total = 0.0
    for a in xs:
        total += np.sum(a**2)
    return total


class Body:
    def __init__(self, m, v):
        self.m, self.v = m, v


@program
def neighbouring_objects(x):
    bodies = []
    for i in range(len(x)):
        bodies.append(Body(x[i] * 1.0, x * i))
    for a, b in zip(bodies[:-1], bodies[1:]):
        b.v += a.v * a.m
        a.m += 2.0
    for body in bodies[1:]:
        body.m *= x[0]
        body.v[0] = body.m
    total = 0.0
    for body in bodies:
        total += np.sum(body.v**2) * body.m
    return total


@program
def copies_of_a_list(x):
    xs = arrays(x)
    ys, zs = [y for y in xs], list(xs)
    for i in range(len(x)):
        ys[i][0] *= 2
        zs[i][1] += xs[i][0]
    return sum([np.sum(a**2) for a in xs])


def scaled_rows(rows, v):
    for r in rows:
        r[0] = v
    rows[1][1] *= 2


@program
def handed_to_a_function(x):
    g = np.outer(x, x)
    scaled_rows([r for r in g], x[2])
    scaled_rows(list(g)[1:], x[1])
    return np.sum(g**2)


@program
def rows_of_rows(x):
    g = np.outer(x, x)
    rows = [r for r in g]
    for a, b in zip(rows, rows[1:]):
        b += a
    for i, r in enumerate(reversed(rows)):
        r[0] += i * x[1]
    largest = sorted(rows, key=np.sum)[-1]
    return np.sum(g**2) + np.sum(largest * x)


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    judge(f, X, compiled=True, second=f in (rows_in_loops, pairs_of_items))


@pytest.mark.parametrize("f", PROGRAMS)
def test_lanes(f):
    lanes = np.stack([X, X[::-1], 2 * X])
    right = [s2s.grad(f)(x) for x in lanes]  # which test_programs judges
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(lanes), right, rtol=1e-12)


def test_the_text_writes_into_the_array():
    source = s2s.jit(rows_of_an_array).lower(X).source
    assert "g[0, :2] = g[0, :2] * 2" in source or "g[0, :2] *= 2" in source


def more_rows(x):
    g = np.outer(x, x)
    rows = [r for r in g]
    rows.append(x)
    rows[0][0] = 2.0
    return np.sum(g)


def other_order(x):
    g = np.outer(x, x)
    rows = [r for r in g]
    rows.reverse()
    rows[0][0] = 2.0
    return np.sum(g)


def grown_base(x):
    xs = arrays(x)
    ys = xs[1:]
    for y in ys:
        y[0] *= 2
    xs.append(x)
    return sum([np.sum(y) for y in ys]) + len(xs)


def one_item_twice(x):
    xs = arrays(x)
    xs.append(xs[0])
    for a, b in zip(xs, xs[1:]):
        b += a
    return sum([np.sum(a) for a in xs])


REFUSED = [
    (more_rows, "this changes a list of parts of something that is written into through it"),
    (other_order, "this changes a list of parts of something that is written into through it"),
    (grown_base, "this changes the order of a list of which ys is an item"),
    (one_item_twice, "may or may not write into another item of it, too"),
]


@pytest.mark.parametrize("f, message", REFUSED)
def test_what_would_lose_the_parts_is_refused(f, message):
    with pytest.raises(S2SError, match=message):
        s2s.grad(f)(X)
