"""The cut is a cheapest one, and of these the one nearest to the sink: judged by trying all cuts,
and by SciPy.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from s2s.analysis.min_cut import sink_side


def crossing(edges, inside: set[int]) -> int:
    """What the edges hold that lead into `inside`."""
    return sum(c for a, b, c in edges if a not in inside and b in inside)


def network(seed: int, count: int, density: float, most: int) -> list[tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    return [
        (a, b, int(rng.integers(1, most)))
        for a, b in product(range(count), repeat=2)
        if a != b and rng.random() < density
    ]


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_is_the_smallest_side_of_all_cheapest_cuts(seed):
    count = 3 + seed % 6
    edges = network(seed, count, 0.2 + 0.6 * (seed % 7) / 7, 4)
    sides = [
        {1, *(k for k, chosen in enumerate(chosen, 2) if chosen)}
        for chosen in product((False, True), repeat=count - 2)
    ]
    least = min(crossing(edges, side) for side in sides)
    assert sink_side(edges, 0, 1) == set.intersection(
        *(side for side in sides if crossing(edges, side) == least)
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_cut_holds_what_scipys_maximum_flow_carries(seed):
    count = 40 + 10 * seed
    edges = network(seed, count, 4 / count, 60)
    capacity = np.zeros((count, count), np.int32)
    for a, b, c in edges:
        capacity[a, b] += c
    side = sink_side(edges, 0, 1)
    assert 1 in side and 0 not in side
    assert crossing(edges, side) == maximum_flow(csr_array(capacity), 0, 1).flow_value


def test_parallel_edges_add_up():
    assert sink_side([(0, 2, 1), (0, 2, 1), (2, 1, 2)], 0, 1) == {1}
    assert sink_side([(0, 2, 1), (0, 2, 1), (2, 1, 3)], 0, 1) == {1, 2}


def test_a_sink_that_nothing_reaches_stands_alone():
    assert sink_side([], 0, 1) == {1}
    assert sink_side([(0, 2, 1), (1, 2, 1)], 0, 1) == {1}


def test_a_long_chain_is_cut_at_the_cheapest_edge_nearest_to_the_sink():
    count = 20_000
    edges = [(0, 2, 9), *((k, k + 1, 5 + (k % 7 > 0)) for k in range(2, count)), (count, 1, 9)]
    last = max(k for k in range(2, count) if k % 7 == 0)
    assert sink_side(edges, 0, 1) == {1, *range(last + 1, count + 1)}
