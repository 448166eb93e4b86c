"""Dicts and sets whose keys are known at run time: what Python finds under which key, in which
order, and what it raises; and that finding it takes one step.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from differences import differences

import s2s
from s2s.errors import S2SError

X = np.array([0.3, 0.9, 0.4, 1.2, 0.1, 0.7])
NEGATIVE = np.array([-1, 3, -1, 0, -2, 3])
HUGE = np.array([2**62, -2**63, 2**63 - 1, 2**62, 0, -2**63])
COLLIDING = np.array([0, 2**32, 2**61 - 1, 2**32, 2 * (2**61 - 1), 0])
REALS = np.array([0.5, -0.0, 1e300, 0.0, np.nan, 0.5])


def totals(x, keys):
    d = {}
    for i in range(len(x)):
        d[keys[i]] = d.get(keys[i], 0.0) + x[i] ** 2
    total = 0.0
    for i in range(len(x)):
        if keys[i] in d:
            total = 0.9 * total + d[keys[i]] * x[i]
    return total * len(d)


def of_pairs(x, keys):
    d = {}
    for i in range(len(x)):
        for j in range(2):
            if (keys[i], keys[i] * j) in d:
                d[keys[i], keys[i] * j] *= x[i]
            else:
                d[keys[i], keys[i] * j] = x[i] + j
    total = 0.0
    for i, j in d:
        total = np.sin(total) + d[i, j] ** 2
    return total


def deleted_and_put_back(x, keys):
    """The order of the items is that in which they were put in last."""
    d = {}
    for i in range(len(x)):
        if keys[i] in d and i % 2 == 1:
            del d[keys[i]]
        d[keys[i]] = d.setdefault(keys[i], x[i]) * x[i]
    d[7] = d.pop(keys[0]) * x[1]
    total = 0.0
    for v in d.values():
        total = total * 0.7 + v
    for k, v in d.items():
        total = total * 0.7 + v * (k % 5)
    return total + len(d)


def emptied(x, keys):
    d = {}
    total = 0.0
    for i in range(len(x)):
        d[keys[i]] = x[i]
        if len(d) == 3:
            total += sum(d.values()) ** 2
            d.clear()
    return total + 3.0 * sum(d.values())


def handled(x, keys):
    d = {keys[0]: x[0]}
    total = 0.0
    for i in range(len(x)):
        try:
            total += d[keys[i]] * x[i]
        except KeyError:
            d[keys[i]] = x[i] ** 2
    return total


def equal_numbers(x, keys):
    d = {keys[1]: x[0], 1: x[1], 0: x[2]}
    d[True] = d[1] * x[3]
    d[keys[3]] = d[False] * x[4]
    return d[1.0] + d[0] ** 2 + d.get(0.5, x[5]) * len(d)


def integers_and_floats(x, keys):
    """An integer that no float is equal to is a key of its own."""
    d = {}
    for i in range(len(x)):
        d[keys[i]] = x[i]
    for i in range(len(x)):
        d[i * 0.5] = d.get(i * 1.0, 0.5) * x[i]
    total = 0.0
    for v in d.values():
        total = total * 0.7 + v
    return total * len(d)


def grouped(x, keys):
    d = {}
    for i in range(len(x)):
        d.setdefault(keys[i], []).append(x[i])
    total = 0.0
    for rows in d.values():
        total = total * 0.7 + sum(rows) ** 2
    return total


def seen(x, keys):
    some = set()
    total = 0.0
    for i in range(len(x)):
        if keys[i] not in some:
            some.add(keys[i])
            total += x[i] ** 2
        if i * 0.25 in some:
            total *= x[i]
            some.discard(keys[i - 1])
    return total * len(some)


def joined_sets(x, keys):
    some, both, pairs = set(keys), {1, keys[1]}, set()
    total = x[5]
    for i in range(len(x)):
        pairs.add((keys[i], i % 2))
    both |= some
    total *= len(both) + 10 * len(some & both) + 100 * len(pairs - {(keys[1], 1)})
    for k in sorted(both):
        total = np.sin(total) + x[k % 6]
    if both >= some and not both <= some and keys[0] in both ^ {0}:
        total *= x[1]
    return total


def counted(x, keys):
    counts = Counter(keys)
    counts[keys[1]] += 2
    for i in range(len(x)):
        counts[i] += 1
    counts = counts.copy()
    total = counts[3.0] * x[1]
    for k in counts:
        total = total * 0.7 + x[k % 6] * counts[k]
    return total * counts[100] * x[0] + total


def known_before(x, n, memo):
    if n in memo:
        return memo[n]
    if n < 2:
        found = x[n]
    else:
        found = known_before(x, n - 1, memo) * 0.5 + np.sin(known_before(x, n - 2, memo) * x[2])
    memo[n] = found
    return found


def with_a_memo(x, keys):
    memo = {keys[0]: x[3]}
    return known_before(x, keys[1] + 4, memo) * len(memo) + known_before(x, 3, memo)


def paths_in_a_grid(x, keys):
    memo = {}

    def paths(i, j):
        if i == 0 or j == 0:
            return x[0]
        if (i, j) not in memo:
            memo[i, j] = paths(i - 1, j) * x[1] + paths(i, j - 1) * x[2]
        return memo[i, j]

    return paths(keys[1], 4) * len(memo)


GRAPH = {0: [1, 2], 1: [3], 2: [3, 4], 3: [5], 4: [5], 5: []}
LENGTHS = {(0, 1): 0.5, (0, 2): 1.5, (1, 3): 2.0, (2, 3): 1.0, (2, 4): 0.7, (3, 5): 1.2}


def through_a_graph_outside(x, keys):
    stack, reached = [keys[3]], set()
    total = 0.0
    while stack:
        u = stack.pop()
        if u in reached:
            continue
        reached.add(u)
        total = 0.9 * total + x[u] ** 2
        for v in GRAPH[u]:
            stack.append(v)
            total += LENGTHS.get((u, v), 0.25) * x[v]
            if (v, u + 4) in LENGTHS:
                total *= x[u]
    return total


def counted_words(x, keys):
    counts, known = Counter("ABBA"), set()
    for k, word in enumerate(["A", "C", "A"]):
        counts[word] += 1
        if word in known:
            x = x * (k + 1)
        known.add(word)
    return x[0] * counts["A"] + x[1] * counts["C"] + x[2] * counts["D"] + len(known) * x[3]


PROGRAMS = [
    (totals, NEGATIVE),
    (totals, HUGE),
    (totals, COLLIDING),
    (totals, REALS),
    (totals, NEGATIVE % 2 == 1),
    (totals, NEGATIVE.astype(np.int8)),
    (of_pairs, NEGATIVE),
    (deleted_and_put_back, NEGATIVE),
    (emptied, NEGATIVE),
    (handled, NEGATIVE),
    (equal_numbers, NEGATIVE),
    (integers_and_floats, NEGATIVE),
    (integers_and_floats, HUGE),
    (grouped, COLLIDING),
    (seen, NEGATIVE),
    (seen, COLLIDING),
    (joined_sets, NEGATIVE),
    (counted, NEGATIVE),
    (counted_words, NEGATIVE),
    (with_a_memo, NEGATIVE),
    (paths_in_a_grid, NEGATIVE),
    (through_a_graph_outside, NEGATIVE),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("f, keys", PROGRAMS)
def test_derivatives_are_those_of_differences(f, keys):
    value, slope = s2s.value_and_grad(f)(X, keys)
    np.testing.assert_allclose(value, f(X, keys), rtol=1e-14)
    np.testing.assert_allclose(slope, differences(f, X, keys), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(s2s.jacfwd(f)(X, keys), slope, rtol=1e-11, atol=1e-12)
    lanes = np.stack([X, 2 * X])
    np.testing.assert_allclose(s2s.vmap(s2s.grad(f), (0, None))(lanes, keys)[1],
                               s2s.grad(f)(lanes[1], keys), rtol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("f, keys", [
    (totals, HUGE),
    (totals, COLLIDING),
    (totals, REALS),
    (deleted_and_put_back, NEGATIVE),
    (equal_numbers, NEGATIVE),
    (integers_and_floats, HUGE),
    (seen, NEGATIVE),
    (with_a_memo, NEGATIVE),
    (through_a_graph_outside, NEGATIVE),
])
def test_compiled_derivatives_are_those_of_python(f, keys):
    value, slope = s2s.jit(s2s.value_and_grad(f))(X, keys)
    expected = s2s.value_and_grad(f)(X, keys)
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-11)


@pytest.mark.lengthy
def test_second_derivatives():
    slope = s2s.grad(deleted_and_put_back)
    direction = np.cos(np.arange(6.0))
    np.testing.assert_allclose(
        s2s.hvp(lambda x: deleted_and_put_back(x, NEGATIVE))(X, direction),
        differences(lambda x: direction @ slope(x, NEGATIVE), X), rtol=1e-6, atol=1e-6)


def test_lanes_have_dicts_of_their_own():
    keys = np.stack([NEGATIVE, NEGATIVE[::-1], HUGE])
    lanes = np.stack([X, X + 1.0, 2 * X])
    found = s2s.vmap(s2s.grad(totals))(lanes, keys)
    for k in range(3):
        np.testing.assert_allclose(found[k], s2s.grad(totals)(lanes[k], keys[k]), rtol=1e-13)


def test_nothing_is_searched_for_and_no_table_is_copied():
    source = s2s.grad(deleted_and_put_back).lower(X, NEGATIVE).source
    assert ".get(" in source
    assert ".index(" not in source and ".copy()" not in source


def test_a_memo_is_handed_on_and_not_copied():
    source = s2s.grad(paths_in_a_grid).lower(X, NEGATIVE).source
    assert "def paths_fwd(" in source and ".copy()" not in source


def missing(x, keys):
    d = {}
    for i in range(len(x)):
        d[keys[i]] = x[i]
    d.pop(keys[1])
    return d[keys[1]] * x[0]


def test_a_missing_key_raises_what_python_raises():
    with pytest.raises(KeyError) as plain:
        missing(X, NEGATIVE)
    with pytest.raises(KeyError) as caught:
        s2s.grad(missing)(X, NEGATIVE)
    assert caught.value.args == plain.value.args


def not_in_the_graph(x, keys):
    u = keys[1]
    while u != 5:
        u = GRAPH[u + 4][0]
    return x[u]


def test_a_key_that_is_not_outside_raises_what_python_raises():
    with pytest.raises(KeyError) as caught:
        s2s.grad(not_in_the_graph)(X, NEGATIVE)
    assert caught.value.args == (7,)


def array_as_key(x, keys):
    d = {}
    for i in range(len(x)):
        d[keys[i]] = x[i]
    return d[keys] * x[0]


def pairs_of_two_kinds(x, keys):
    d = {}
    for i in range(len(x)):
        d[keys[i], 0] = x[i]
        d[keys[i] * 0.5, 0] = x[i]
    return sum(d.values())


@pytest.mark.parametrize("f, message, remedy", [
    (array_as_key, "int64[keys.0] as a key of a dict", "use integers"),
    (pairs_of_two_kinds, "tuples of integers and tuples with floats as keys", "int(k)"),
])
def test_what_is_refused(f, message, remedy):
    with pytest.raises(S2SError) as caught:
        s2s.grad(f)(X, NEGATIVE)
    assert message in str(caught.value) and remedy in str(caught.value) and "^" in str(caught.value)
