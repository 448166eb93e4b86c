"""A graph of unions that represents sets of inputs: an element of an array holds the number of the
node for its dependences.

Node 0 is the empty set, nodes 1 to n are the n inputs, and every later node is the union of earlier
ones.  So an array of dependences is an array of integers of the same shape: what moves elements
moves the integers, `sin` passes them on, and only where two different sets meet is there a new
node.  The sets themselves are worked out once, at the end, for the nodes that the outputs reach:
all nodes of one depth in one array operation.

Other designs that were considered: an object with a Python set in each element (a scalar program
costs the same, an array program a hundred times more); a sparse Boolean matrix for each array (an
array program costs the same, a scalar program ten times more, for each element written is a row
replaced); bits packed in words, as a tangent of a program of its own (compiles, but takes n² / 8
bytes: 1.2 GB for 100,000 inputs).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..lazy_import import later

sparse = later("scipy.sparse")
NONE = 0  # depends on no input


class Unions:
    """A growing graph over `count` inputs.  `edges` are pairs (node, member); members are older
    than the node.
    """

    def __init__(self, count: int):
        self.count = count
        self.size = count + 1
        self.nodes: list[int] = []  # edges of numbers, one by one
        self.members: list[int] = []
        self.chunks: list[tuple[np.ndarray, np.ndarray]] = []  # edges of arrays, whole
        self.known: dict[tuple[int, int], int] = {}

    def new(self, shape: tuple[int, ...]) -> np.ndarray:
        """Create nodes, without members yet."""
        count = int(np.prod(shape, dtype=np.int64))
        self.size += count
        return np.arange(self.size - count, self.size).reshape(shape)

    def connect(self, nodes: np.ndarray, members: np.ndarray) -> None:
        """Add members to new nodes, pair by pair."""
        kept = members != NONE
        self.chunks.append((nodes[kept], members[kept]))

    def both(self, a: int, b: int) -> int:
        """Return the union of two sets."""
        if a == b or b == NONE:
            return a
        if a == NONE:
            return b
        pair = (a, b) if a < b else (b, a)
        found = self.known.get(pair)
        if found is None:
            found = self.known[pair] = self.size
            self.size += 1
            self.nodes += (found, found)
            self.members += pair
        return found

    def union(self, *parts):
        """Return the elementwise union of numbers and arrays that broadcast."""
        found = parts[0]
        for part in parts[1:]:
            if type(found) is int and type(part) is int:
                found = self.both(found, part)
            elif np.ndim(found) == np.ndim(part) == 0:
                found = self.both(int(found), int(part))
            elif np.ndim(part) == 0 and part == NONE:
                continue
            else:
                found = self._meet(*np.broadcast_arrays(found, part))
        return found

    def _meet(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the elementwise union of two arrays of one shape."""
        found = np.maximum(a, b)  # correct where one is empty, or both are the same set
        meet = (a != b) & (a != NONE) & (b != NONE)
        nodes = self.new((int(np.count_nonzero(meet)),))
        if nodes.size:
            left, right = a[meet], b[meet]
            self.chunks.append((np.concatenate([nodes, nodes]), np.concatenate([left, right])))
            found[meet] = nodes
        return found

    def along(self, x: np.ndarray, axis: int | Sequence[int] | None, keepdims: bool = False):
        """Return the union along the axes that NumPy's argument `axis` names."""
        x = np.asarray(x)
        axes = range(x.ndim) if axis is None else [int(k) % x.ndim for k in np.atleast_1d(axis)]
        kept = [n for k, n in enumerate(x.shape) if k not in axes]
        rows = np.moveaxis(x, tuple(axes), range(x.ndim - len(axes), x.ndim)).reshape(*kept, -1)
        found = self.rows(rows)
        return np.expand_dims(found, tuple(axes)) if keepdims else found

    def rows(self, x: np.ndarray):
        """Return the union along the last axis: no new node where only one set, besides the empty
        one, occurs in it.
        """
        if x.shape[-1] == 0:
            return _number_if_so(np.zeros(x.shape[:-1], np.int64))
        most = x.max(-1)
        several = (np.where(x == NONE, most[..., None], x) != most[..., None]).any(-1)
        if not np.any(several):
            return _number_if_so(most)
        most = np.array(most)
        nodes = self.new((int(np.count_nonzero(several)),))
        members = x[several]
        self.connect(np.repeat(nodes, members.shape[-1]), members.ravel())
        most[several] = nodes
        return _number_if_so(most)

    def all_of(self, *parts):
        """Return the union of everything in `parts`, as one node."""
        flat = [distinct(np.asarray(part).ravel()) for part in parts]
        return int(self.rows(np.concatenate(flat))) if flat else NONE

    def grouped(self, groups: np.ndarray, members: np.ndarray, count: int) -> np.ndarray:
        """Return, for each of `count` groups, the union of those of `members` whose entry in
        `groups` is the group.
        """
        groups, members = groups[members != NONE], members[members != NONE]
        found = np.zeros(count, np.int64)
        np.maximum.at(found, groups, members)
        several = np.zeros(count, bool)
        several[groups[found[groups] != members]] = True
        nodes = self.new((int(np.count_nonzero(several)),))
        if nodes.size:
            found[several] = nodes
            meet = several[groups]
            self.connect(found[groups[meet]], members[meet])
        return found

    # ------------------------------------------------------------------------------------- the sets

    def matrix(self, nodes: np.ndarray) -> sparse.csr_array:
        """Return a Boolean matrix: row k has a True in the column of each input that is in the set
        of `nodes[k]`.
        """
        nodes = np.asarray(nodes, np.int64).ravel()
        parents, members = self._edges()
        wanted = self._reached(nodes, parents, members)
        keep = wanted[parents]
        parents, members = parents[keep], members[keep]
        start, length, found = self._sets(parents, members)
        made = _rows(found[_ranges(start[nodes], length[nodes])],
                     np.append(0, np.cumsum(length[nodes])), self.count)
        made.sort_indices()
        return made

    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all edges, in the order of the nodes that have them."""
        parts = [(np.array(self.nodes, np.int64), np.array(self.members, np.int64)), *self.chunks]
        parents, members = (np.concatenate(column) for column in zip(*parts))
        order = np.argsort(parents, kind="stable")
        return parents[order], members[order]

    def _reached(self, nodes: np.ndarray, parents: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return which nodes the outputs need."""
        graph = sparse.csr_array((np.ones(parents.size, bool), (parents, members)),
                                 shape=(self.size, self.size))
        wanted = np.zeros(self.size, bool)
        front = distinct(nodes)
        while front.size:
            wanted[front] = True
            row_length = np.diff(graph.indptr)[front]
            front = distinct(graph.indices[_ranges(graph.indptr[front], row_length)])
            front = front[~wanted[front]]
        return wanted

    def _sets(self, parents: np.ndarray,
              members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the inputs of every node: where they start in one long array, how many they are,
        and that array.
        """
        start, length = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        start[1:self.count + 1] = np.arange(self.count)
        length[1:self.count + 1] = 1
        pool, used = np.arange(self.count), self.count
        for nodes, inside in _by_depth(parents, members, self.size):
            first = np.flatnonzero(np.diff(nodes, prepend=-1))
            of_node = _rows(np.arange(inside.size), np.append(first, nodes.size), inside.size)
            sets = _rows(pool[_ranges(start[inside], length[inside])],
                         np.append(0, np.cumsum(length[inside])), self.count)
            found = of_node @ sets
            start[nodes[first]], length[nodes[first]] = (used + found.indptr[:-1],
                                                         np.diff(found.indptr))
            while used + found.nnz > pool.size:
                pool = np.concatenate([pool, np.empty(max(pool.size, found.nnz), np.int64)])
            pool[used:used + found.nnz] = found.indices
            used += found.nnz
        return start, length, pool


def _rows(columns: np.ndarray, starts: np.ndarray, count: int) -> sparse.csr_array:
    """Return a Boolean matrix whose rows hold True in these columns."""
    return sparse.csr_array((np.ones(columns.size, bool), columns, starts),
                            shape=(starts.size - 1, count))


def distinct(x: np.ndarray) -> np.ndarray:
    """Return the sorted distinct elements of a vector: np.unique, which is ten times slower for
    integers (NumPy 2.3, by hashing).
    """
    x = np.sort(x)
    return x[np.diff(x, prepend=x[:1] - 1) != 0]


def _number_if_so(x):
    return int(x) if np.ndim(x) == 0 else x


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenate the ranges start, start + 1, ..."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def _by_depth(parents: np.ndarray, members: np.ndarray, size: int):
    """Yield the edges grouped by the depth of their nodes: a node is deeper than its members."""
    depth = _depths(parents, members, size)[parents]
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 2))
    for low, high in zip(bounds, bounds[1:]):
        yield parents[order[low:high]], members[order[low:high]]


def _depths(parents: np.ndarray, members: np.ndarray, size: int) -> np.ndarray:
    """Return one more than the deepest member, for each node; `parents` is sorted, and members are
    older than their node.
    """
    depth = np.zeros(size, np.int64)
    waiting = np.bincount(parents, minlength=size)
    order = np.argsort(members, kind="stable")
    first = np.searchsorted(members[order], np.arange(size + 1))
    front = np.flatnonzero(waiting == 0)
    level = 0
    while front.size:
        depth[front] = level
        done = parents[order[_ranges(first[front], first[front + 1] - first[front])]]
        np.subtract.at(waiting, done, 1)
        front = distinct(done[waiting[done] == 0])
        level += 1
    return depth
