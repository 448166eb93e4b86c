"""Graph colouring of sparsity patterns: columns of one colour share one sweep.

    columns(pattern)     no two columns of one colour have an entry in one row: every entry stands
                         alone in the compressed matrix (Curtis, Powell and Reid 1974)
    symmetric(pattern)   a star colouring of a symmetric matrix: of every entry and its mirror
                         image one stands alone (Coleman and Moré 1984; Gebremedhin, Manne and
                         Pothen 2005, algorithm 4.1)

Both are greedy, in several orders, and keep what needs fewest colours.  A set of colours is the
bits of an integer, so that what a column may not have is an `or` over its rows: the cost is that of
the entries, not of pairs of them.
"""

from __future__ import annotations

import numpy as np

from ..lazy_import import later

sparse = later("scipy.sparse")


def columns(pattern: sparse.csr_array) -> np.ndarray:
    """Colour the columns of a Boolean matrix from 0, so that columns with a common row differ; -1
    for an empty one.
    """
    by_column = sparse.csc_array(pattern)
    members = [by_column.indices[a:b].tolist()
               for a, b in zip(by_column.indptr, by_column.indptr[1:])]
    counts = np.diff(by_column.indptr)
    found = [_columns(order, members, pattern.shape[0]) for order in _orders(counts)]
    return min(found, key=lambda colours: colours.max(initial=-1))


def _orders(counts: np.ndarray) -> list[list[int]]:
    """Return the orders to try: as they stand, and those with most entries first."""
    return [list(range(counts.size)), np.argsort(-counts, kind="stable").tolist()]


def _columns(order: list[int], members: list[list[int]], rows: int) -> np.ndarray:
    taken = [0] * rows  # the colours used in each row
    colours = np.zeros(len(order), np.int64)
    for column in order:
        forbidden = 0
        for row in members[column]:
            forbidden |= taken[row]
        bit = ~forbidden & (forbidden + 1) if members[column] else 0
        for row in members[column]:
            taken[row] |= bit
        colours[column] = bit.bit_length() - 1
    return colours


def symmetric(pattern: sparse.csr_array) -> np.ndarray:
    """Star-colour the rows and columns of a symmetric Boolean matrix: no path of four vertices has
    only two colours.
    """
    off = _off_diagonal(pattern)
    near = [off.indices[a:b].tolist() for a, b in zip(off.indptr, off.indptr[1:])]
    found = [_star(order, near) for order in _orders(np.diff(off.indptr))]
    found = min(found, key=lambda colours: colours.max(initial=-1))
    return np.where(np.diff(pattern.indptr) == 0, -1, found)


def _off_diagonal(pattern: sparse.csr_array) -> sparse.csr_array:
    entries = sparse.coo_array(pattern)
    row, column = entries.coords
    off = row != column
    return sparse.csr_array((np.ones(np.count_nonzero(off), bool), (row[off], column[off])),
                            shape=pattern.shape)


def _star(order: list[int], near: list[list[int]]) -> np.ndarray:
    """Star-colour greedily: v may not have the colour of a neighbour w; nor that of a neighbour x
    of w, unless w has a colour and no neighbour of x but w has it.
    """
    count = len(near)
    bits = [0] * count  # of the colour of each vertex; 0: none yet
    around = [0] * count  # the colours of its neighbours
    # the colours of those of its neighbours that have another neighbour of its colour
    twice = [0] * count
    # colour -> the first neighbour that has it
    first: list[dict[int, int]] = [{} for _ in range(count)]
    # colour -> the neighbours, where they are several
    shared: list[dict[int, list[int]]] = [{} for _ in range(count)]
    for v in order:
        forbidden = 0
        for w in near[v]:
            forbidden |= (bits[w] | twice[w]) if bits[w] else around[w]
        bit = ~forbidden & (forbidden + 1)
        bits[v] = bit
        for same in shared[v].values():
            for w in same:
                twice[w] |= bit
        for x in near[v]:
            around[x] |= bit
            other = first[x].setdefault(bit, v)
            if other != v:
                group = shared[x].setdefault(bit, [other])
                if bits[x]:
                    twice[v] |= bits[x]
                    if len(group) == 1:
                        twice[other] |= bits[x]
                group.append(v)
    return np.array([bit.bit_length() - 1 for bit in bits], np.int64)
