"""Sets, deques, counters, and dicts with run-time keys as plain Python classes, whose methods the
front end inlines.

A set is the list of its members, a deque that of its items, a dict that of its values, and a hash
table of the place of each key among these; lists have derivatives, go through branches and loops,
and vanish where they are known when code is generated, and so do hash tables, but that they have no
derivatives.
"""

from __future__ import annotations

from collections import Counter, deque


class Set:
    """set(source)."""

    def __init__(self, source=()):
        self._items = []
        for x in source:
            self.add(x)

    def __len__(self):
        return len(self._items)

    def __contains__(self, x):
        return x in self._items

    def add(self, x):
        if x not in self._items:
            self._items.append(x)

    def discard(self, x):
        if x in self._items:
            self._items.remove(x)

    def remove(self, x):
        if x not in self._items:
            raise KeyError(x)
        self._items.remove(x)

    def clear(self):
        self._items = []

    def copy(self):
        made = Set()
        made._items = self._items.copy()
        return made

    def update(self, source):
        for x in source:
            self.add(x)

    def union(self, other):
        made = self.copy()
        made.update(other)
        return made

    def intersection(self, other):
        return Set([x for x in self._items if x in other])

    def difference(self, other):
        return Set([x for x in self._items if x not in other])

    def symmetric_difference(self, other):
        return self.difference(other).union(Set(other).difference(self))

    def issubset(self, other):
        return all(x in other for x in self._items)

    def issuperset(self, other):
        return all(x in self for x in other)

    def isdisjoint(self, other):
        return not any(x in other for x in self._items)

    def __or__(self, other):
        return self.union(other)

    def __and__(self, other):
        return self.intersection(other)

    def __sub__(self, other):
        return self.difference(other)

    def __xor__(self, other):
        return self.symmetric_difference(other)

    def __le__(self, other):
        return self.issubset(other)

    def __ge__(self, other):
        return self.issuperset(other)

    def __eq__(self, other):
        return len(self) == len(other) and self.issubset(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None


class Deque:
    """collections.deque(source, maxlen)."""

    def __init__(self, source=(), maxlen=None):
        self._items = []
        self.maxlen = maxlen
        self.extend(source)

    def __len__(self):
        return len(self._items)

    def __contains__(self, x):
        return x in self._items

    def __getitem__(self, k):
        return self._items[k]

    def __setitem__(self, k, x):
        self._items[k] = x

    def append(self, x):
        if self.maxlen is not None and len(self._items) == self.maxlen:
            self._items.pop(0)
        self._items.append(x)

    def appendleft(self, x):
        if self.maxlen is not None and len(self._items) == self.maxlen:
            self._items.pop()
        self._items.insert(0, x)

    def pop(self):
        return self._items.pop()

    def popleft(self):
        return self._items.pop(0)

    def extend(self, source):
        for x in source:
            self.append(x)

    def extendleft(self, source):
        for x in source:
            self.appendleft(x)

    def rotate(self, n=1):
        k = len(self._items) - n % len(self._items)
        self._items = self._items[k:] + self._items[:k]

    def clear(self):
        self._items = []

    def copy(self):
        return Deque(self._items, self.maxlen)

    def reverse(self):
        self._items.reverse()

    def index(self, x):
        return self._items.index(x)

    def count(self, x):
        return self._items.count(x)

    def remove(self, x):
        self._items.remove(x)

    def __eq__(self, other):
        return len(self) == len(other) and all(x == y for x, y in zip(self._items, other))

    def __ne__(self, other):
        return not self == other

    __hash__ = None


# A hash table: what the front end does with one is an op each (ops/program/hash_tables.py).


def new_table():
    return {}


def find(table, key):
    """The place of a key; -1 if it is not there."""
    return table.get(key, -1)


def put(table, key, place):
    table[key] = place


def remove(table, key):
    del table[key]


def count_keys(table):
    return len(table)


def keys_in(table):
    return list(table)


def places_in(table):
    return list(table.values())


class Keyed:
    """A dict; `factory` makes what a defaultdict puts where there is nothing.

    `d[key] += x` and `d[key].append(x)` look for the `place` of the key once.  A value whose key is
    deleted stays in its place, which is used no more: so no other value moves, and a derivative
    that comes back finds each where it was.
    """

    def __init__(self, factory=None):
        self._places = new_table()
        self._values = []
        self._has_gaps = False
        self._factory = factory

    def __len__(self):
        return count_keys(self._places)

    def __contains__(self, key):
        return find(self._places, key) >= 0

    def append(self, key, x):
        put(self._places, key, len(self._values))
        self._values.append(x)

    def place(self, key):
        if find(self._places, key) < 0:
            if self._factory is None:
                raise KeyError(key)
            self.append(key, self._factory())
        return find(self._places, key)

    def place_or(self, key, default):
        if find(self._places, key) < 0:
            self.append(key, default)
        return find(self._places, key)

    def __getitem__(self, key):
        return self._values[self.place(key)]

    def __setitem__(self, key, x):
        k = find(self._places, key)
        if k >= 0:
            self._values[k] = x
        else:
            self.append(key, x)

    def get(self, key, default=None):
        k = find(self._places, key)
        return self._values[k] if k >= 0 else default

    def setdefault(self, key, default=None):
        return self._values[self.place_or(key, default)]

    def pop(self, key):
        k = find(self._places, key)
        if k < 0:
            raise KeyError(key)
        remove(self._places, key)
        self._has_gaps = True
        return self._values[k]

    def keys(self):
        return keys_in(self._places)

    def values(self):
        if self._has_gaps:
            return [self._values[k] for k in places_in(self._places)]
        return self._values

    def items(self):
        return list(zip(self.keys(), self.values()))

    def copy(self):
        made = Keyed(self._factory)
        made._keys = self._keys.copy()
        made._values = self._values.copy()
        return made

    def update(self, other):
        for key in other:
            self[key] = other[key]

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        made = Keyed()
        made.update(other)
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def __eq__(self, other):
        return len(self) == len(other) and all(
            key in other and self[key] == other[key] for key in self._keys)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def popitem(self):
        if len(self._keys) == 0:
            raise KeyError("popitem(): dictionary is empty")
        return self._keys.pop(), self._values.pop()

    def clear(self):
        self._places = new_table()
        self._values = []
        self._has_gaps = False


def from_dict(other):
    """dict(other), of a dict with run-time keys."""
    made = Keyed()
    made._keys = other._keys.copy()
    made._values = other._values.copy()
    return made


def from_pairs(pairs):
    """dict(pairs)."""
    made = Keyed()
    for key, value in pairs:
        made[key] = value
    return made


def from_keys(keys, value):
    """dict.fromkeys(keys, value)."""
    made = Keyed()
    for key in keys:
        made[key] = value
    return made


class Tally(Keyed):
    """collections.Counter(source)."""

    def __init__(self, source=()):
        self._places = new_table()
        self._values = []
        self._has_gaps = False
        self._factory = None
        for x in source:
            self[x] = self[x] + 1

    def place(self, key):
        return self.place_or(key, 0)

    def __getitem__(self, key):
        return self.get(key, 0)

    def most_common(self, n=None):
        found = sorted(self.items(), key=lambda item: item[1], reverse=True)
        return found if n is None else found[:n]


STANDS_FOR = {Set: set, Deque: deque, Keyed: dict, Tally: Counter}  # their names in a program
