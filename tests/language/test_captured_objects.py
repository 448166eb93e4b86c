"""Loops over captured objects that write into them, or ask which is which: what is written through
a table of them must not be lost.  The oracles are Python itself and differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import s2s


@dataclass
class P:
    x: float
    v: float


@dataclass
class Q:
    a: np.ndarray
    items: list


class B:
    def __init__(self, q, flows):
        self.q, self.flows = q, flows


def objects_in_several_lists():
    p = P(0.5, 1.0)
    return [Q(np.array([0.1 * k, 0.3]), [p, P(0.2 * k, 0.1)]) for k in range(5)]


MADE = {
    "ps": lambda: [P(0.3 + 0.1 * k, 1.0 - 0.2 * k) for k in range(5)],
    "rows": lambda: [np.array([0.1 * k, 0.3, 0.5]) for k in range(5)],
    "lists": lambda: [[0.1 * k, 0.2] for k in range(1, 6)],
    "qs": lambda: [Q(np.array([0.1 * k, 0.3]), [1.0]) for k in range(5)],
    "nums": lambda: [0.1, 0.2, 0.3, 0.4, 0.5],
    "gs": objects_in_several_lists,
    "bs": lambda: [B(0.3 + 0.1 * k, [[1.0, 2.0 * k], [0.5]]) for k in range(5)],
}


def scales_attributes(ps, x):
    for p in ps:
        p.x = p.x * x
    return ps[0].x + ps[4].x * ps[2].x


def updates_attributes_in_place(ps, x):
    for p in ps:
        p.x += x
        p.v = p.x * p.v
    s = 0.0
    for p in ps:
        s += p.x * p.v
    return s


def writes_rows(rows, x):
    for r in rows:
        r[0] = r[1] * x
    return sum((r[0] * r[1] for r in rows))


def appends_to_lists(lists, x):
    for l in lists:
        l.append(x * l[0])
    return sum((sum(l) for l in lists))


def writes_items_and_the_last(lists, x):
    last = None
    for l in lists:
        l[0] = x * l[0]
        last = l
    last[0] = last[0] * 2
    return sum((l[0] for l in lists))


def writes_arrays_and_lists_of_objects(qs, x):
    for q in qs:
        q.a[0] = q.a[1] * x
        q.items.append(x)
    return sum((q.a[0] * q.items[-1] for q in qs))


def writes_the_best(ps, x):
    best = ps[0]
    for p in ps:
        if p.x * x > best.x:
            best = p
    best.v = best.v * 3 * x
    return sum((p.v for p in ps))


def writes_the_one_before(ps, x):
    prev = None
    s = 0.0
    for p in ps:
        if prev is not None:
            s += prev.x * p.v * x
            prev.x = 5.0 * x
        prev = p
    return s + sum((p.x for p in ps))


def writes_one_while_reading_all(rows, x):
    a = rows[2]
    s = 0.0
    for r in rows:
        a[0] = a[0] + x * r[1]
        s += r[0]
    return s


def writes_the_next_number(nums, x):
    s = 0.0
    for k, n in enumerate(nums):
        s += n * x
        if k + 1 < len(nums):
            nums[k + 1] = nums[k + 1] * x
    return s


def tells_items_apart(ps, x):
    s = 0.0
    for p in ps:
        for q in ps:
            if p is not q:
                s += p.x * q.v * x
    return s


def writes_those_selected(ps, x):
    out = [p for p in ps if p.x > 0.3]
    for p in out:
        p.x = p.x * x
    return sum((p.x for p in ps))


def writes_a_collected_object(ps, x):
    made = []
    for p in ps:
        made.append(p)
    made[1].x = x
    return sum((p.x * p.v for p in ps))


def writes_a_collected_row(rows, x):
    made = []
    for r in rows:
        made.append(r)
    made[1][0] = x
    return sum((r[0] * r[1] for r in rows))


def writes_an_object_in_a_dict(ps, x):
    d = {}
    for k, p in enumerate(ps):
        d[k] = p
    d[2].x = x * 2
    return sum((p.x for p in ps))


def writes_objects_in_lists_of_objects(gs, x):
    s = 0.0
    for g in gs:
        for p in g.items:
            p.x = p.x * x
            s += p.x
    return s + gs[2].items[0].x


def writes_objects_met_twice(gs, x):
    for g in gs:
        for p in g.items:
            p.x = p.x * x
    return gs[2].items[0].x + gs[2].a[0]


def finds_an_object_in_other_lists(gs, x):
    s = 0.0
    for g in gs:
        for p in gs[1].items:
            if p is g.items[0]:
                s += x
            s += p.x * x
    return s


def appends_to_lists_of_objects(gs, x):
    s = 0.0
    for g in gs:
        g.items.append(g.items[0])
        s += len(g.items) * x
    return s


def writes_arrays_of_objects(gs, x):
    s = 0.0
    for g in gs:
        g.a[1] += x
        s += g.a[1]
    return s


def tells_the_first_apart(bs, x):
    s = 0.0
    first = bs[0]
    for b in bs:
        if b is first:
            s += x * b.q
        b.q = b.q * x
        s += b.q
    return s


def compares_pairs(bs, x):
    s = 0.0
    for b in bs:
        for c in bs:
            if b is not c:
                s += b.q * c.q * x
            if b != c:
                s += b.q * x
    return s


def looks_objects_up(bs, x):
    seen = []
    s = 0.0
    for b in bs:
        if b not in seen:
            seen.append(b)
            s += b.q * x
    for b in bs:
        if b in seen:
            s += x
    return s


def writes_lists_in_lists_of_objects(bs, x):
    s = 0.0
    for b in bs:
        for t in b.flows:
            t[0] = t[0] * x
            s += t[0]
    return s + bs[1].flows[0][0]


def appends_to_lists_in_lists(bs, x):
    s = 0.0
    for b in bs:
        f = b.flows[0]
        f.append(x)
        s += sum(f)
    return s + sum(bs[1].flows[0])


def writes_rows_kept(rows, x):
    keep = []
    for r in rows:
        keep.append(r)
    for k in keep:
        k[1] = k[0] * x
    return sum((r[1] for r in rows))


def writes_the_best_found(bs, x):
    best = None
    for b in bs:
        if best is None or b.q * x > best.q:
            best = b
    best.q = best.q * x
    return sum((b.q for b in bs))


def writes_in_a_function(bs, x):

    def change(b):
        b.q = b.q * x
    for b in bs:
        change(b)
    return sum((b.q for b in bs))


def writes_the_first_of_each(gs, x):
    s = 0.0
    for g in gs:
        p = g.items[0]
        p.v += x
        s += p.v
    return s


def reads_items_of_lists_by_index(lists, x):
    s = 0.0
    for i in range(len(lists)):
        for j in range(len(lists[i])):
            s += lists[i][j] * x * j
    return s


def appends_by_index(lists, x):
    s = 0.0
    for i in range(len(lists)):
        lists[i].append(x)
        s += len(lists[i]) * x
    return s


def writes_rows_by_index(rows, x):
    s = 0.0
    for i in range(len(rows)):
        rows[i][0] = rows[i][1] * x
        s += rows[i][0]
    return s


def scales_rows(rows, x):
    for r in rows:
        r *= x
    return rows[1].sum() * rows[3][0]


RIGHT = [
    scales_rows,
    reads_items_of_lists_by_index,
    scales_attributes,
    updates_attributes_in_place,
    writes_items_and_the_last,
    writes_the_one_before,
    writes_one_while_reading_all,
    tells_items_apart,
    writes_a_collected_object,
    writes_an_object_in_a_dict,
    writes_objects_in_lists_of_objects,
    writes_objects_met_twice,
    finds_an_object_in_other_lists,
    writes_arrays_of_objects,
    tells_the_first_apart,
    compares_pairs,
    looks_objects_up,
    writes_lists_in_lists_of_objects,
    writes_in_a_function,
    writes_the_first_of_each,
]
REFUSED = [
    appends_by_index,
    writes_rows_by_index,
    writes_rows,
    appends_to_lists,
    writes_arrays_and_lists_of_objects,
    writes_the_best,
    writes_the_next_number,
    writes_those_selected,
    writes_a_collected_row,
    appends_to_lists_of_objects,
    appends_to_lists_in_lists,
    writes_rows_kept,
    writes_the_best_found,
]


def state(x):
    """All that is in a container, as lists and dicts of numbers."""
    if isinstance(x, (list, tuple)):
        return [state(y) for y in x]
    if isinstance(x, np.ndarray):
        return x.tolist()
    return {k: state(v) for k, v in vars(x).items()} if hasattr(x, "__dict__") else float(x)


def of_captured(f):
    name = f.__code__.co_varnames[0]
    data = MADE[name]()

    def g(x):
        return f(data, x)

    return g, data, lambda x: f(MADE[name](), x)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_what_is_written_is_seen(f):
    g, data, plain = of_captured(f)
    y, found = s2s.value_and_grad(g)(0.7)
    assert y == pytest.approx(plain(0.7), rel=1e-14)
    assert found == pytest.approx((plain(0.7 + 1e-6) - plain(0.7 - 1e-6)) / 2e-6, rel=1e-7)
    expected = MADE[f.__code__.co_varnames[0]]()
    f(expected, 0.7)
    assert repr(state(data)) == repr(state(expected))


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_cannot_be_followed_is_refused(f):
    g, _, _ = of_captured(f)
    with pytest.raises(s2s.S2SError, match="Instead"):
        s2s.value_and_grad(g)(0.7)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compile)])
def test_derivatives_read_what_a_captured_array_was(jit):
    weights = np.array([0.1, 0.3, 0.5])

    def f(x):
        nonlocal weights
        weights *= x
        return np.sum(weights * weights)

    through = s2s.jit if jit else lambda g: g
    x = np.array([1.0, 2.0, 3.0])
    for transform, expected in [
            (s2s.grad, [0.02, 0.36, 1.5]), (s2s.value_and_grad, [0.02, 0.36, 1.5])]:
        weights[:] = [0.1, 0.3, 0.5]
        found = through(transform(f))(x)
        np.testing.assert_allclose(found if transform is s2s.grad else found[1], expected)
        np.testing.assert_allclose(weights, [0.1, 0.6, 1.5])


def test_a_derivative_that_is_the_captured_array_is_a_copy():
    weights = np.array([0.1, 0.3, 0.5])

    def f(x):
        nonlocal weights
        weights *= x
        return weights.sum()

    found = s2s.grad(f)(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [0.1, 0.3, 0.5])
    np.testing.assert_allclose(weights, [0.1, 0.6, 1.5])
