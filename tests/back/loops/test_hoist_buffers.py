"""Arrays that each trip of a loop fills anew are allocated once, and others in each trip."""

import re

import numpy as np
import pytest

import s2s
from s2s import passes
from s2s.back.print.printer import render

X, M = np.array([0.5, -1.0, 2.0, 0.25]), np.arange(160.0).reshape(4, 40) / 7.0


def run(text, *args):
    """What the last function of a text returns."""
    module = {}
    exec(text, module)
    return module[re.findall(r"^def (\w+)", text, re.M)[-1]](*args)


def around_the_pass(f, *args):
    """The loops of `f` before and after buffers are hoisted for the first time; both compute what
    `f` does.
    """
    with passes.recorded() as stages:
        _ = s2s.jit(f).lower(*args).loops
    k = [name for name, _ in stages].index("hoist_buffers")
    texts = [render(function).text for _, function in stages[k - 1:k + 1]]
    for text in texts:
        np.testing.assert_allclose(run(text, *map(np.copy, args)), f(*map(np.copy, args)),
                                   rtol=1e-14)
    return texts


def allocated_in_loops(text):
    """How many arrays are allocated inside of loops."""
    depth, count = [], 0
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        depth = [d for d in depth if d < indent] if line.strip() else depth
        count += bool(depth) and "np.empty(" in line or bool(depth) and "np.zeros(" in line
        if re.match(r"\s*(for|while) ", line):
            depth.append(indent)
    return count


def written_by_hand(x, n):
    """A row of work for each trip, of which the next needs nothing."""
    total = 0.0
    for t in range(int(n)):
        work = np.empty(len(x))
        for i in range(len(x)):
            work[i] = x[i] * (t + 1.0) + total
        total += work[0] - work[len(x) - 1] * work[1]
    return total


def begins_with_zeros(x, n):
    total = 0.0
    for _ in range(int(n)):
        counts = np.zeros(len(x))
        for i in range(len(x)):
            counts[(i * i) % len(x)] += x[i] + total
        total += counts[0] * 0.5
    return total


def until_small(x, n):
    size = n + 0.0
    while size > 0.1:
        y = np.empty(len(x))
        for i in range(len(x)):
            y[i] = size * x[i]
        size = 0.5 * abs(y[0])
    return size


@pytest.mark.parametrize("f", [written_by_hand, begins_with_zeros, until_small])
def test_one_array_serves_all_trips(f):
    before, after = around_the_pass(f, X, 3)
    assert allocated_in_loops(before) == 1 and allocated_in_loops(after) == 0


def in_a_branch(x, n):
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:
                r = np.empty(2)
                r[0], r[1] = x[i] - x[j], x[i] * x[j]
                s = 0.0
                for k in range(2):
                    s += r[k] ** int(n)
                total += s * r[0]
    return total


def test_a_short_one_leaves_branches_as_well():
    before, after = around_the_pass(in_a_branch, X, 2)
    assert allocated_in_loops(after) == 0 <= allocated_in_loops(before)


def returned_by_the_last(m, n):
    y = np.zeros(40)
    for i in range(int(n)):
        y = np.empty(len(m[0]))
        for j in range(len(m[0])):
            y[j] = m[i, j] * 2.0
    return y


def of_a_length_of_its_own(x, n):
    total = 0.0
    for t in range(1, len(x) + 1):
        work = np.empty(t)
        for i in range(t):
            work[i] = x[i] * n
        for i in range(t):
            total += work[i] * work[t - 1 - i]
    return total


@pytest.mark.parametrize("f, x", [(returned_by_the_last, M), (of_a_length_of_its_own, X)])
def test_what_outlives_a_trip_or_has_another_length_stays(f, x):
    before, after = around_the_pass(f, x, 3)
    assert allocated_in_loops(after) == allocated_in_loops(before) == 1


def state_of_three(x, n):
    """The next trip begins with the array that this one has filled."""
    s = np.ones(3)
    for _ in range(int(n)):
        new = np.empty(3)
        for k in range(3):
            new[k] = s[k] + 0.1 * s[(k + 1) % 3] * x[k]
        s = new
    return s


def test_a_short_state_is_copied_back():
    before, after = around_the_pass(state_of_three, X, 4)
    assert allocated_in_loops(before) == 1 and allocated_in_loops(after) == 0
