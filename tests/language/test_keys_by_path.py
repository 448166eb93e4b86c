"""Dicts of which a run decides which integers, or tuples of them, are keys: put in by branches, and
first in a loop.
"""

import heapq
import math

import numpy as np
import pytest
from differences import differences

import s2s

LENGTHS = np.array([1.0, 2.5, 1.2, 0.7, 3.0, 1.1, 0.9])


def shortest_path(w, n):
    roads = {0: [(1, 0), (2, 1)], 1: [(3, 2), (2, 3)], 2: [(3, 4), (4, 5)], 3: [(4, 6)], 4: []}
    distance, heap = {0: 0.0}, [(0.0, 0)]
    while heap:
        d, here = heapq.heappop(heap)
        if d > distance.get(here, math.inf):
            continue
        for there, road in roads[here]:
            new = d + w[road]
            if new < distance.get(there, math.inf):
                distance[there] = new
                heapq.heappush(heap, (new, there))
    return distance[4] + distance[3] ** 2


def sparse_product(w, n):
    entries = {}
    for i in range(n):
        entries[i, i] = 2 * w[0]
        if i > 0:
            entries[i, i - 1] = -w[1] * w[2]
        if i < n - 1:
            entries[i, i + 1] = -1.0
    v = np.ones(n)
    for _ in range(3):
        new = np.zeros(n)
        for (i, j), a in entries.items():
            new[i] += a * v[j]
        v = new
    return np.sum(v)


def grouped(w, n):
    found = {}
    for k in range(n):
        key = (k * k) % 5
        if key in found:
            found[key] = found[key] * w[0]
        else:
            found[key] = w[k % 7] + key
    return sum(v * (k + 1) for k, v in found.items())


def chain(w, n):
    seen, k, steps = {}, n, 0
    while k != 1:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        seen[k] = seen.get(k, 0) + w[0] * steps
        steps += 1
    return sum(seen.values()) + len(seen)


def of_one_branch(w, n):
    found = {1: w[0]}
    if n > 3:
        found[2] = w[1] ** 2
    return found.get(2, w[2]) * found[1]


PROGRAMS = [shortest_path, sparse_product, grouped, chain, of_one_branch]


@pytest.mark.lengthy
@pytest.mark.parametrize("n", [1, 3, 6])
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_are_those_of_differences(f, n):
    value, slope = s2s.value_and_grad(f)(LENGTHS, n)
    expected = differences(f, LENGTHS, n)
    np.testing.assert_allclose(value, f(LENGTHS, n), rtol=1e-14)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(s2s.jacfwd(f)(LENGTHS, n), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_derivatives_are_those_of_differences(f):
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(LENGTHS, 6), differences(f, LENGTHS, 6),
                               rtol=1e-6, atol=1e-7)


def test_a_tape_has_no_copies_of_the_keys():
    gradient = s2s.grad(sparse_product)
    gradient(LENGTHS, 6)
    assert "entries = {}" in gradient.source
    assert "entries.copy()" not in gradient.source
