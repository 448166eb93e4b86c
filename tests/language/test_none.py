"""Names that are None on some paths and a number, an array or an object on others."""

# ruff: noqa: B023, E701, E702, E711, SIM114

import math
from dataclasses import dataclass

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.3, 0.9, 0.4, 1.2, 0.1])
ROWS = np.random.RandomState(0).randn(4, 3)

def largest(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best * best


def largest_and_where(x, n):
    best = None
    arg = None
    for i in range(n):
        v = np.sin(x[i]) * x[0]
        if best is None or v > best:
            best, arg = v, i
    if best is None:
        return 0.0
    return best * x[arg]


def find(xs, t):
    for i in range(len(xs)):
        if xs[i] > t:
            return xs[i] * 2.0
    return None


def found_or_first(x, t):
    r = find(x, t)
    if r is None:
        r = x[0]
    return r * r


def found_or_sum(x, t):
    r = find(x, t)
    return np.sum(x) if r is None else r * r


def falls_off_the_end(x):
    def g(v):
        if v > 0.5:
            return v * v
    s = 0.0
    for v in x:
        w = g(v)
        if w is not None:
            s += w
    return s


def default_bound_on_a_path(x):
    scale = None
    if x[0] > 0.2:
        scale = x[1]
    if scale is None:
        scale = 3.0
    return np.sum(x) * scale


def differences(x):
    prev = None
    s = 0.0
    for v in x:
        if prev is not None:
            s += (v - prev) ** 2
        prev = v
    return s


def differences_of_rows(x):
    prev = None
    s = 0.0
    for row in x:
        if prev is not None:
            s += np.sum((row - prev) ** 2)
        prev = row * 2.0
    return s


def best_row(x):
    best = None
    bv = -1e9
    for row in x:
        v = np.sum(np.sin(row))
        if v > bv:
            bv = v
            best = row.copy()
    if best is None:
        return 0.0
    return np.sum(best ** 2) * bv


def reset_to_none(x):
    cur = None
    s = 0.0
    for v in x:
        if v > 0.8:
            cur = None
        elif cur is None:
            cur = v
        else:
            cur = cur * v
            s += cur
    return s


def none_or(x):
    b = None
    for v in x:
        b = (b or 1.0) * v
    return b


def pair_of_nones(x):
    best = (None, None)
    for i, v in enumerate(x):
        if best[0] is None or v < best[0]:
            best = (v, i * v)
    a, b = best
    return a * 2 + b


def pair_or_none(x):
    best = None
    for i, v in enumerate(x):
        if best is None or v < best[0]:
            best = (v, i * v)
    a, b = best
    return a * 2 + b


class Node:
    def __init__(self):
        self.best = None
    def see(self, v):
        if self.best is None or v > self.best:
            self.best = v


def attribute_that_starts_as_none(x):
    n = Node()
    for v in x:
        n.see(np.sin(v))
    return n.best * x[0]


def first_hit(x):
    hit = None
    for v in x:
        if v > 0.5:
            hit = v
            break
    if hit is not None:
        return hit ** 2
    return x[0]


def until_found(x):
    root = None
    a = x[0]
    k = 0
    while root is None:
        a = np.cos(a) * 1.1
        k += 1
        if abs(a) < 0.9 or k > 20:
            root = a
    return root * root


def slots_of_a_list(x):
    slots = [None, None]
    for i in range(len(x)):
        if x[i] > 0.5:
            slots[0] = x[i]
        else:
            slots[1] = x[i] * 2
    s = 0.0
    for q in slots:
        if q is not None:
            s += q * q
    return s


def slots_of_a_dict(x):
    d = {"lo": None, "hi": None}
    for v in x:
        if d["lo"] is None or v < d["lo"]:
            d["lo"] = v
        if d["hi"] is None or v > d["hi"]:
            d["hi"] = v
    return d["hi"] ** 2 - d["lo"]


def caught_none(x):
    r = find(x, 5.0)
    try:
        return r * 2.0
    except TypeError:
        return x[1] * 3


@dataclass
class St:
    v: float
    last: object = None


def field_that_starts_as_none(x):
    s = St(x[0])
    for v in x:
        if s.last is not None and s.last > v:
            s.v = s.v + s.last * v
        s.last = np.sin(v)
    return s.v


def nested(x):
    tot = 0.0
    for i in range(len(x)):
        best = None
        for j in range(len(x)):
            if j != i and (best is None or abs(x[i]-x[j]) < best):
                best = abs(x[i]-x[j])
        if best is None:
            best = 0.0
        tot += best ** 2
    return tot


def none_on_one_of_three_paths(x, k):
    def pick(k):
        if k == 0:
            return x[0]
        elif k == 1:
            return None
        return x[2] * x[1]
    r = pick(k)
    return 1.0 * x[3] if r is None else r * r


def mask_or_none(x, k):
    mask = None
    if k > 2:
        mask = np.where(x > .5, 2.0, 0.5)
    s = x * 2
    if mask is not None:
        s = s * mask * x
    return np.sum(s)


def passed_on_as_an_argument(x):
    def f(v, w=None):
        if w is None:
            w = 2.0
        return v * w
    best = None
    for v in x:
        if v > .8: best = v
    return f(x[0], best) + f(x[1])


def outer_break(x):
    found = None
    for i in range(len(x)):
        for j in range(i):
            if x[i] - x[j] > 0.5:
                found = (i, j)
                break
        if found is not None:
            break
    if found is None:
        return 0.0
    i, j = found
    return x[i] * x[j]


def bracket(x):
    lo = hi = None
    for v in x:
        if v < .5:
            lo = v if lo is None else max(lo, v)
        else:
            hi = v if hi is None else min(hi, v)
    if lo is None or hi is None:
        return x[0]
    return (hi - lo) ** 2


def equal_to_none(x):
    b = None
    for v in x:
        if b == None:
            b = v
        elif b != None and v > 1:
            b = b * v
    return b


def swap(x):
    a, b = None, x[0]
    for v in x:
        a, b = b, a
        if a is None:
            a = v
        if b is None:
            b = v * 2
    return a * b


def newton_from_none(x):
    prev = None
    cur = x[0]
    n = 0
    while prev is None or abs(cur - prev) > 1e-6:
        prev = cur
        cur = cur - (cur ** 2 - x[1]) / (2 * cur)
        n += 1
        if n > 50: break
    return cur


def momentum(x, n):
    p = x.copy()
    m = None
    for k in range(n):
        g = 2 * p + np.sin(p)
        m = g if m is None else 0.9 * m + g
        p = p - 0.1 * m
    return np.sum(p)


def adam_lazy(x, n):
    state = {"m": None, "v": None}
    p = x.copy()
    for k in range(n):
        g = p * 2
        if state["m"] is None:
            state["m"] = np.zeros_like(p)
            state["v"] = np.zeros_like(p)
        state["m"] = 0.9 * state["m"] + 0.1 * g
        state["v"] = 0.99 * state["v"] + 0.01 * g * g
        p = p - 0.1 * state["m"] / (np.sqrt(state["v"]) + 1e-3)
    return np.sum(p ** 2)


def buffer_made_late(x):
    buf = None
    for v in x:
        if buf is None:
            buf = np.zeros(3)
        buf[0] += v
        buf[1] = buf[0] * v
    return np.sum(buf)


def asserted(x):
    best = None
    for v in x:
        if v > 0.35:
            if best is not None:
                if v < best:
                    continue
            best = v ** 2
    assert best is not None
    return best


def raised_for(x):
    best = None
    for v in x:
        if v > 0.35: best = v ** 2
    if best is None:
        raise ValueError("no")
    return best * x[0]


def index_or_none(x):
    k = None
    for i in range(len(x)):
        if x[i] > 1.0:
            k = i
    return x[k] ** 2 if k is not None else 0.0


def named_in_a_condition(x, t):
    def find(t):
        for v in x:
            if v > t: return v
    if (v := find(t)) is not None:
        return v * v
    return x[0]


def not_of_a_maybe(x):
    best = None
    for v in x:
        if not best or best < v:
            best = v
    return best


def recursive_search(x):
    def search(i):
        if i >= len(x): return None
        if x[i] > 1.0: return x[i] * 2
        return search(i + 1)
    r = search(0)
    return 0.0 if r is None else r * r


def roots_or_none(x):
    def roots(a, b, c):
        d = b * b - 4 * a * c
        if d < 0:
            return None
        s = math.sqrt(d)
        return (-b - s) / (2 * a), (-b + s) / (2 * a)
    tot = 0.0
    for v in x:
        r = roots(v, 1.0, x[0])
        if r is None:
            continue
        tot += r[0] * r[1] ** 2
    return tot


def hit(o, d, r):
    b = o @ d
    disc = b * b - (o @ o - r * r)
    if disc < 0:
        return None
    t = -b - np.sqrt(disc)
    if t < 1e-4:
        return None
    return t


def trace(x):
    total = 0.0
    for k in range(5):
        d = np.array([0.1 * k - 0.2, 0.0, 1.0])
        d = d / np.sqrt(d @ d)
        nearest = None
        for j in range(3):
            o = np.array([x[j], 0.0, -5.0])
            t = hit(o, d, x[3])
            if t is not None and (nearest is None or t < nearest):
                nearest = t
        total += 10.0 if nearest is None else nearest
    return total


def in_both(x):
    a = None
    b = None
    for v in x:
        if a is None and b is None:
            a = v
        elif b is None:
            b = v * a
        else:
            a, b = b, a * b
    return a + b


def cached_pair(x):
    cache = None
    s = 0.0
    for v in x:
        if cache is None or abs(cache[0] - v) > 0.3:
            cache = (v, np.exp(v))
        s += cache[1] * v
    return s


def list_made_late(x):
    hist = None
    for v in x:
        if hist is None:
            hist = []
        hist.append(v * v)
    return sum(hist)


def object_made_late(x):
    cur = None
    s = 0.0
    for v in x:
        if cur is None:
            cur = St(v, 2.0)
        else:
            cur.v = cur.v * v
            s += cur.v
    return s


PROGRAMS = [
    (largest, X),
    (largest_and_where, X, 5),
    (largest_and_where, X, 0),
    (found_or_first, X, 0.5),
    (found_or_first, X, 5.0),
    (found_or_sum, X, 0.5),
    (found_or_sum, X, 9.0),
    (falls_off_the_end, X),
    (default_bound_on_a_path, X),
    (differences, X),
    (differences_of_rows, ROWS),
    (best_row, ROWS),
    (reset_to_none, X),
    (none_or, X),
    (pair_of_nones, X),
    (pair_or_none, X),
    (attribute_that_starts_as_none, X),
    (first_hit, X),
    (until_found, X),
    (slots_of_a_list, X),
    (slots_of_a_dict, X),
    (caught_none, X),
    (field_that_starts_as_none, X),
    (nested, X),
    (none_on_one_of_three_paths, X, 0),
    (none_on_one_of_three_paths, X, 1),
    (none_on_one_of_three_paths, X, 2),
    (mask_or_none, X, 1),
    (mask_or_none, X, 3),
    (passed_on_as_an_argument, X),
    (outer_break, X),
    (bracket, X),
    (equal_to_none, X),
    (swap, X),
    (newton_from_none, X),
    (momentum, X, 3),
    (adam_lazy, X, 3),
    (buffer_made_late, X),
    (asserted, X),
    (raised_for, X),
    (index_or_none, X),
    (named_in_a_condition, X, 0.5),
    (named_in_a_condition, X, 5.0),
    (not_of_a_maybe, X),
    (recursive_search, X),
    (roots_or_none, X * 0.5),
    (trace, X),
    (in_both, X),
    (cached_pair, X),
    (list_made_late, X),
    (object_made_late, X),
]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, x, rest",
    [(f, x, rest) for f, x, *rest in PROGRAMS],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_none_on_some_paths(f, x, rest):
    judge(f, x, *rest, wrt=0)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, x",
    [
        (largest, X),
        (differences_of_rows, ROWS),
        (caught_none, X),
        (object_made_late, X),
        (trace, X),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_none_on_some_paths_compiled(f, x):
    judge(f, x, compiled=True)


def read_where_it_may_be_none(x):
    best = None
    for v in x:
        if v > 2.0:
            best = v
    return best * x[0]


def none_is_returned(x):
    if x[0] > 0:
        return None
    return x[0]


@pytest.mark.parametrize(
    "f, text",
    [(read_where_it_may_be_none, "best is None"), (none_is_returned, "the result is None")],
)
def test_reading_none_raises_a_type_error(f, text):
    with pytest.raises(TypeError, match=text):
        s2s.grad(f)(X)


def test_what_follows_from_a_condition_is_not_asked_again():
    t = s2s.grad(bracket)
    t(X)
    assert "TypeError" not in t.source


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [reset_to_none, in_both], ids=lambda f: f.__name__)
def test_second_derivatives_of_numbers_that_are_none_on_some_paths(f):
    """The tangent of a number that is not there is one for each lane, as the tape has it."""
    np.testing.assert_allclose(s2s.hessian(f)(X), s2s.jacrev(s2s.grad(f))(X), rtol=1e-12)


def forgotten_rows(x, m):
    best = None
    s = 0.0
    for i in range(m):
        for _ in range(m):
            best = x * x if best is None else np.tanh(best * x)
            s += np.sum(best)
        if i == 1:
            best = None
    return s


@pytest.mark.lengthy
def test_reverse_over_reverse_of_an_array_that_is_none_on_some_paths():
    """What a tape has of it may have no elements, so what the second sweep reads there has no
    length to make a tape of.
    """
    x = np.array([0.3, 0.5, 0.7])
    g = s2s.grad(forgotten_rows)
    second = s2s.jacfwd(g)(x, 4)
    np.testing.assert_allclose(s2s.jacrev(g)(x, 4), second, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        s2s.grad(lambda x: 0.5 * np.sum(g(x, 4) ** 2))(x), second @ g(x, 4), rtol=1e-12
    )


@pytest.mark.compile
def test_reverse_over_reverse_of_an_array_that_is_none_on_some_paths_compiled():
    x = np.array([0.3, 0.5, 0.7])
    g = s2s.grad(forgotten_rows)
    np.testing.assert_allclose(
        s2s.jit(s2s.jacrev(g))(x, 4), s2s.jacfwd(g)(x, 4), rtol=1e-12, atol=1e-14
    )
