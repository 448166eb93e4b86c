"""Minimum cut of a network, the one nearest to its sink, by maximum flow (Dinic 1970, levels
counted from the sink).

The flow is pushed along shortest ways until the sink cannot be reached from the source.  The last
search, backwards from the sink, has then found its side of the cut: of equally cheap cuts the one
with fewest nodes on that side, whatever flow was found.

scipy.sparse.csgraph has a maximum flow, too.  It takes a quarter of a second to import, more than
to generate most derivatives, and wants the network as a matrix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


def sink_side(edges: Iterable[tuple[int, int, int]], source: int, sink: int) -> set[int]:
    """Return the nodes on the side of `sink`; `edges` are (from, to, capacity), and capacities of
    parallel ones add up.
    """
    # residual capacities
    room: dict[int, dict[int, int]] = defaultdict(dict)
    for a, b, capacity in edges:
        room[a][b] = room[a].get(b, 0) + capacity
        room[b].setdefault(a, 0)
    neighbours = {a: list(into) for a, into in room.items()}
    while source in (distance := distances(room, neighbours, sink)):
        push(room, neighbours, distance, source, sink)
    return set(distance)


def distances(room: dict[int, dict[int, int]], neighbours: dict[int, list[int]],
              sink: int) -> dict[int, int]:
    """Count the edges with residual capacity between each node and the sink; nodes from which it
    cannot be reached are left out.
    """
    distance, reached = {sink: 0}, [sink]
    for b in reached:
        for a in neighbours.get(b, ()):
            if a not in distance and room[a][b] > 0:
                distance[a] = distance[b] + 1
                reached.append(a)
    return distance


def push(room: dict[int, dict[int, int]], neighbours: dict[int, list[int]],
         distance: dict[int, int], source: int, sink: int) -> None:
    """Augment the flow along paths on which each edge leads one nearer to the sink (a blocking
    flow).
    """
    tried = dict.fromkeys(neighbours, 0)  # how many neighbours of each node are exhausted
    way = [source]
    while True:
        a = way[-1]
        if a == sink:
            amount = min(room[x][y] for x, y in zip(way, way[1:]))
            for x, y in zip(way, way[1:]):
                room[x][y] -= amount
                room[y][x] += amount
            del way[next(k for k, (x, y) in enumerate(zip(way, way[1:]), 1) if room[x][y] == 0):]
            continue
        onward = neighbours[a]
        while tried[a] < len(onward) and not (distance.get(onward[tried[a]], -1) == distance[a] - 1
                                              and room[a][onward[tried[a]]] > 0):
            tried[a] += 1
        if tried[a] < len(onward):
            way.append(onward[tried[a]])
        elif a == source:
            return
        else:
            way.pop()
            tried[way[-1]] += 1
