"""Names that hold one of several arrays, as a run decides, and are written through: which of them
share memory is known exactly (s2s/front/control/one_of.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.5, 0.7, -0.3])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


@program
def exchanged(x, n):
    p, q = x.copy(), 2 * x
    cur = p
    for i in range(10 * n):
        cur[0] += 0.1 * x[1]
        cur = q if i % 2 == 0 else p
    return np.sum(p) + np.sum(q * q)


@program
def written_after_the_loop(x, n):
    a, b = x * x, x + 1.0
    best = a
    for i in range(n):
        if x[i] < 0:
            best = b
    best[0] = x[1] * 3
    return np.sum(a * x) + np.sum(b * b)


@program
def one_of_three(x, n):
    u, v, w = x.copy(), x * x, x + 2
    cur, k = u, 0
    while k < n + 2:
        cur[k % 3] *= x[1]
        if k == 1:
            cur = v
        elif k == 3:
            cur = w
        k += 1
    return np.sum(u) + np.sum(v * v) + np.sum(w)


@program
def member_of_a_tuple(x, n):
    """The array that a trip leaves was taken for one that trips make, which nothing shares."""
    p = x * 1.0
    pair = (p, x * 0.5)
    cur = p
    for i in range(n):
        cur[i % 3] += x[1]
        cur = pair[i % 2]
    return np.sum(p * p) + np.sum(pair[1])


@program
def no_trip(x, n):
    a, b = x * 1.0, x * x
    s = a
    for _ in range(n - 3):
        s = b
    s[1] = x[0] ** 2
    return np.sum(a) + np.sum(b * x)


@program
def names_that_change_places(x, n):
    a, b = x * 1.0, x * 2.0
    keep = a
    for _ in range(n + 1):
        a[0] += b[1]
        a, b = b, a
    return np.sum(a * x) + np.sum(keep)


@program
def changed_by_a_helper(x, n):
    def step(a, b):
        a[0] += b[1] * x[2]
        return b, a

    a, b = x * 1.0, x * 2.0
    first = a
    for _ in range(n):
        a, b = step(a, b)
    return np.sum(a * x) + np.sum(first * b)


@program
def rows_of_the_trip(x, n):
    g = np.outer(x, x)
    r = g[0]
    for k in range(n):
        r[1] *= 2.0
        r = g[:, k]
    r[0] += x[0]
    return np.sum(g * x)


@program
def rows_of_two_matrices(x, n):
    g = np.outer(x, x)
    h = g * 2
    r = g[0]
    for k in range(n):
        r[1] *= 2.0
        r = h[k] if k % 2 else g[k]
    r[0] += x[0]
    return np.sum(g * x) + np.sum(h * h)


@program
def new_or_old(x, n):
    a = x * 1.0
    z = a
    for _ in range(n - 2):
        z = np.sin(z) * a
        a = a + z
    z[0] += x[1]
    return np.sum(z) + np.sum(a * x)


@program
def the_better_of_new_ones(x, n):
    keep = x * 1.0
    best, least = keep, np.sum(keep**2)
    for i in range(n):
        trial = 0.9 * best + 0.1 * x[i]
        loss = np.sum(trial**2)
        if loss < least:
            best, least = trial, loss
    best[0] *= x[2]
    return np.sum(best) * least + np.sum(keep * x)


@program
def nothing_at_first(x, n):
    a, best = x * 1.0, None
    for i in range(n):
        if x[i] > 0.6:
            best = a
    if best is not None:
        best[0] += x[1]
    return np.sum(a * a)


@program
def bound_in_an_inner_loop(x, n):
    p, q = x + 2.0, x * 1.0
    c = p
    for i in range(n):
        q[0] *= x[i]
        for _ in range(n - 1):
            c = q
    c[:] *= x[2]
    return np.sum(p) + np.sum(q * x) + np.sum(c)


@program
def a_part_of_what_is_chosen(x, n):
    p, q = x + 2.0, x * x
    cur, part = p, q
    for i in range(n):
        part[0] += 0.5 * x[0]
        cur = q if i % 2 else p
        part = cur[1:]
    return np.sum(p * x) + np.sum(q)


@program
def states_of_layers(w, n):
    """The LSTM of ADBench, as people write it."""
    state, total = np.full((n + 1, 3), 0.1), 0.0
    for t in range(5):
        x = np.array([0.1, 0.2, 0.3]) * t
        for i in range(0, len(state), 2):
            state[i + 1] = state[i + 1] * w[0] + np.tanh(x * w[1])
            state[i] = np.tanh(state[i + 1] * w[2])
            x = state[i]
        total += np.sum(x**2)
    return total


@program
def members_of_a_dict(x, n):
    s = {"u": x.copy(), "v": x * 2}
    for _ in range(n):
        s["u"][0] = s["v"][1] * 2
        s["v"][1] = s["u"][0] + 1
        s["u"] = s["v"]
    return np.sum(s["u"] * s["v"])


@program
def another_array_from_some_trip_on(x, n):
    y = x.copy()
    z = y
    for i in range(n - 1):
        z[i] = 2.0 * z[i + 1]
        z = z * 2
    return np.sum(y * x) + np.sum(z)


@program
def two_names_of_new_arrays(x, n):
    c = d = x * 1.0
    for _ in range(n):
        c = d = c * 0.5
        c[0] += x[1]
    d[1] += x[0]
    return np.sum(c * c) + np.sum(d * x)


@program
def new_arrays_that_names_hand_on(x, n):
    """A name keeps what the one before it has left, which then has a new one."""
    p = x * 1.0
    c = d = e = p
    for i in range(n + 3):
        c[0] += 0.1 * d[1]
        if i % 3 == 0:
            e = d
        elif x[i % 3] > 0:
            d = c
        c = np.sin(c) if i % 2 == 0 else c + x[0] * e
        d[2] *= 0.9
    e[1:] -= c[1]
    return np.sum(c * x) + np.sum(d * d) + np.sum(e) * x[2] + np.sum(p)


@program
def parts_of_new_arrays(x, n):
    g = np.outer(x, x)
    a = b = g[0]
    for i in range(n):
        m = g * (1.0 + i)
        a, b = m[1], (m[1, 1:] if i % 2 else b)
        b[0] += x[0]
        a[2] *= a[1]
    return np.sum(a * a[::-1]) + np.sum(b) * x[1] + np.sum(g * g)


@program
def reversed_again(x, n):
    g = np.outer(x, x)
    r, s = g[1], x
    for i in range(n):
        r[0] = r[1] * 0.5 + x[2]
        s = s[:]
        r = r[::-1]
    s[0] *= x[1]
    r[0] += np.sin(s[0])
    return np.sum(g * g) + r[1]


@program
def items_by_turns(x, n):
    b = x * 1.0
    if x[0] < n:
        b = x
    h = [b, b.copy()]
    c = b
    for i in range(n):
        h[i % 2][1:] *= np.exp(-x[0])
        c[i % 3] += x[1]
        c = h[(i + 1) % 2]
    c[2] = x[1] * b[0]
    return np.sum(c * b) + np.sum(h[1] * h[0]) + np.sum(x)


@program
def inner_loops_make_new_ones(x, n):
    p = x * 2.0
    c = d = p
    for i in range(n):
        for j in range(i + 1):
            c, d = (c * x[j], c) if d[0] > 0.5 else (d, d * 0.5)
            c[1] += 0.2
        d[i] -= x[0]
    c *= x[2]
    return np.sum(c) + np.sum(d * d) + np.sum(p * x)


class State:
    def __init__(self, u, t=0.0):
        self.u, self.t = u, t


@program
def one_of_two_objects(x, n):
    a, b = State(x * 1.0), State(x * 2.0, 0.5)
    c = a if x[0] * n > 0.1 else b
    c.u[1] *= 3
    c.t = x[2]
    return np.sum(a.u * x) + a.t + np.sum(b.u * x) * b.t


@program
def objects_that_change_places(x, n):
    a, b = State(x * 1.0), State(x * 0.0)
    first = a
    for _ in range(n + 1):
        b.u[1:] = a.u[:-1] * x[0]
        b.u[0] = a.u[2]
        b.t = a.t + x[1] * b.u[0]
        a, b = b, a
    return np.sum(a.u * x) + a.t + np.sum(first.u) * first.t


@program
def objects_by_turns(x, n):
    a, b = State(x * 1.0), State(x * 2.0)
    c = a
    for i in range(2 * n):
        c.u[0] += x[2] * i
        c.t = c.t * x[0] + 1
        if i % 3 < 2:
            c = b if i % 2 == 0 else a
    return np.sum(a.u) * a.t + np.sum(b.u**2) * b.t


@program
def an_object_that_is_the_other_one(x, n):
    b, c = State(x * 2.0, x[1]), State(x * x, 2.5)
    c1, c2 = b, c
    for i in range(n + 2):
        if i % 3 == 1:
            c1 = c2
        c1.t = c1.t * 0.5 + x[i % 3] * 0.3
    c1.t += x[2]
    c1.u[0] *= x[1]
    c2.t += x[2]
    c2.u[0] *= x[1]
    return np.sum(b.u) * b.t + np.sum(c.u * x) * c.t + np.sum(c1.u) * c2.t


@program
def the_best_of_a_list(x, n):
    states = []
    for i in range(n):
        states.append(State(x * i, x[i]))
    best, least = states[0], None
    for state in states:
        if state.t > best.t:
            best = state
        if least is None or state.t < least.t:
            least = state
    best.u[0] += x[1]
    best.t *= 2
    if least is not None:
        least.t = least.t * x[0]
    return sum([np.sum(state.u * x) + state.t for state in states])


@program
def one_after_the_other(x, n):
    nodes = []
    for i in range(n + 1):
        nodes.append([x[i % 3], float((3 * i + 1) % (n + 1))])
    node = nodes[0]
    for _ in range(2 * n):
        node[0] = node[0] * 1.5 + x[0]
        node = nodes[int(node[1])]
    node[0] += x[1]
    return sum([node[0] ** 2 for node in nodes])


@program
def the_last_so_far(x, n):
    bodies = []
    for k in range(n + 2):
        bodies.append(Body(np.sin(x + k), x[k % 3]))
    last, before = bodies[-1], bodies[-2]
    bodies.append(Body(x * 2.0, x[0]))
    last.x[1:] *= x[2]
    before.v += last.x[0]
    bodies[-1].x[0] += before.v
    return sum(np.sum(body.x) * body.v for body in bodies)


@program
def members_that_become_one_array(x, n):
    """Of the trip, by two names of a dict."""
    s = {"u": x.copy(), "v": x * 2}
    for _ in range(n):
        s["u"][0] = s["v"][1] * 2
        s["u"] = s["v"] = s["u"] + s["v"]
    return np.sum(s["u"] * s["v"])


@program
def an_array_of_the_trip_by_two_names(x, n):
    y = z = x.copy()
    for _ in range(n):
        y = z = z * 2
    z[0] = 5 * x[1]
    return np.sum(y * z)


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs(f):
    judge(f, X, 3)
    judge(f, X, 3 if f is states_of_layers else 1, second=False)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_compiled(f):
    judge(f, X, 3, compiled=True, second=False)


@pytest.mark.parametrize("f", PROGRAMS)
def test_lanes(f):
    lanes = np.stack([X, X[::-1], 2 * X])
    found = s2s.vmap(s2s.grad(f), in_axes=(0, None))(lanes, 3)
    right = [s2s.grad(f)(x, 3) for x in lanes]  # which test_programs judges
    np.testing.assert_allclose(found, right, rtol=1e-12)


def swapped(swaps: int):
    """A function that swaps two names this many times, each time under another condition."""
    lines = ["def f(x):", "    c, d = x * 1.0, x * 2.0"]
    for k in range(swaps):
        lines += [f"    c, d = (c, d) if x[{k % 3}] > {0.3 - 0.17 * k} else (d, c)",
                  f"    c[{k % 3}] += x[1]"]
    lines.append("    return np.sum(c**2) + np.sum(d**3)")
    return s2s.from_source("\n".join(lines) + "\n", {"np": np})


def of_three(x):
    a, b, c = x * 1.0, x * 2.0, x * 3.0
    if x[0] > 0:
        a, b = b, a
    a[0] += x[1]
    if x[1] > 0:
        b, c = c, b
    b[1] += x[2]
    if x[2] > 0:
        a, c = c, a
    c[2] *= x[1]
    if x[0] > x[1]:
        a, b, c = c, a, b
    a[1:] += x[2]
    if x[0] + x[2] > 1:
        a, b = b, a
    b[1] += x[2]
    return np.sum(a**2) + np.sum(b**3) + c @ a


def best_of_three(x):
    a, b, c = x * 1.0, x * 2.0, x * 3.0
    best = a
    for other in (b, c, a):
        if np.sum(other) < np.sum(best):
            best = other
        best[0] += x[1]
        best[1:] *= x[0]
    return np.sum(a**2) + np.sum(b**3) + c @ a + best[0]


class Body:
    def __init__(self, x, v):
        self.x, self.v = x, v


def objects_swapped_again(x):
    a, b = Body(x * 1.0, 1.0), Body(x * 2.0, 2.0)
    for t in (0.1, 0.6, -0.5):
        if x[0] * x[1] > t:
            a, b = b, a
        a.x[0] += x[1] * b.v
        a.v = np.sum(b.x) * 0.1
    return np.sum(a.x**2) + np.sum(b.x**3) * a.v + b.v


def new_in_a_branch_of_a_branch(x):
    c, k = x, 0.5
    if x[1] > 0.2:
        if x[0] > 0.6:
            c = c * 2.0
        elif x[0] > 0.4:
            k = 0.7
        else:
            c = np.sin(c)
    c[2] += k * x[0]
    x[1:] = np.sin(x[:2])
    return np.sum(c * c) + np.sum(x)


def new_in_both_branches(x):
    a, b = x * 1.0, x * 2.0
    c = a
    if x[0] * x[1] > 0.3:
        if x[2] > 0.0:
            c = b
        else:
            c = a * b
    else:
        if x[2] > 0.1:
            c = np.cos(b)
    c[:2] *= x[1]
    a[0] -= c[1]
    b[1] += a[0] * c[0]
    return np.sum(a * a) + np.sum(b) * c[2]


def one_of_the_items(x):
    w = [x, x * 0.5, np.sin(x)]
    n = 4 if x[0] > 0.6 else 3
    w[n % 3][1:] -= 0.1 * x[0]
    w[2] = w[0]
    w[(n + 1) % 3][1] *= x[2]
    return np.sum(w[1] * w[2]) + np.sum(x)


CHOSEN_AGAIN = [of_three, best_of_three, objects_swapped_again, new_in_a_branch_of_a_branch,
                new_in_both_branches, one_of_the_items]


@pytest.mark.parametrize("f", CHOSEN_AGAIN)
@pytest.mark.parametrize("x", [X, np.array([0.9, 0.4, 0.2])], ids=str)
def test_choices_of_what_was_chosen(f, x):
    judge(f, x.copy())


@pytest.mark.compile
@pytest.mark.parametrize("f", CHOSEN_AGAIN)
def test_compiled_choices_of_what_was_chosen(f):
    judge(f, X, compiled=True, second=False)


@pytest.mark.lengthy
@pytest.mark.parametrize("swaps", [2, 5])
def test_names_that_are_swapped_again(swaps):
    f = swapped(swaps)
    judge(f, X)
    lanes = np.stack([X, X[::-1], 2 * X])
    right = [s2s.grad(f)(x) for x in lanes]
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f))(lanes), right, rtol=1e-12)


@pytest.mark.lengthy
def test_swaps_do_not_double_the_text():
    few, many = (len(s2s.grad(swapped(n)).lower(X).source) for n in (4, 8))
    assert many < 3 * few


def test_the_text_names_the_choice():
    source = s2s.grad(exchanged).lower(X, 3).source
    assert "which_cur = 0\n" in source
    assert "which_cur = 1 if i % 2 == 0 else 0\n" in source


@pytest.mark.lengthy
def test_a_loop_of_few_trips_is_a_loop():
    def few(x):
        p, q = x * 1.0, x * x
        cur = p
        for i in range(6):
            cur[0] += x[1]
            cur = q if i % 2 == 0 else p
        return np.sum(p * x) + np.sum(q)

    judge(few, X)
    assert "for i in range(6)" in s2s.grad(few).lower(X).source
