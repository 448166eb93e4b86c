"""Sets, deques, counters, and dicts with run-time keys as plain Python classes, whose methods the
front end inlines.

A set is the list of its members, a deque that of its items, a dict those of its keys and of its
values; lists have derivatives, go through branches and loops, and vanish where they are known when
code is generated.  So a key is looked for among all keys: a table of places by key would need a
type of its own in the IR, in print and in native code, to be worth more than the comparison of a
few hundred integers, which is what programs keep so.
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


class Keyed:
    """A dict; `factory` makes what a defaultdict puts where there is nothing.

    `d[key] += x` and `d[key].append(x)` look for the `place` of the key once.
    """

    def __init__(self, factory=None):
        self._keys = []
        self._values = []
        self._factory = factory

    def __len__(self):
        return len(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def place(self, key):
        if key not in self._keys:
            if self._factory is None:
                raise KeyError(key)
            self._keys.append(key)
            self._values.append(self._factory())
        return self._keys.index(key)

    def place_or(self, key, default):
        if key not in self._keys:
            self._keys.append(key)
            self._values.append(default)
        return self._keys.index(key)

    def __getitem__(self, key):
        return self._values[self.place(key)]

    def __setitem__(self, key, x):
        if key in self._keys:
            self._values[self._keys.index(key)] = x
        else:
            self._keys.append(key)
            self._values.append(x)

    def get(self, key, default=None):
        return self._values[self._keys.index(key)] if key in self._keys else default

    def setdefault(self, key, default=None):
        if key not in self._keys:
            self._keys.append(key)
            self._values.append(default)
        return self._values[self._keys.index(key)]

    def pop(self, key):
        if key not in self._keys:
            raise KeyError(key)
        k = self._keys.index(key)
        self._keys.pop(k)
        return self._values.pop(k)

    def keys(self):
        return self._keys

    def values(self):
        return self._values

    def items(self):
        return list(zip(self._keys, self._values))

    def clear(self):
        self._keys = []
        self._values = []


class Tally(Keyed):
    """collections.Counter(source)."""

    def __init__(self, source=()):
        self._keys = []
        self._values = []
        self._factory = None
        for x in source:
            self[x] = self[x] + 1

    def place(self, key):
        if key not in self._keys:
            self._keys.append(key)
            self._values.append(0)
        return self._keys.index(key)

    def __getitem__(self, key):
        return self._values[self._keys.index(key)] if key in self._keys else 0

    def most_common(self, n=None):
        found = sorted(self.items(), key=lambda item: item[1], reverse=True)
        return found if n is None else found[:n]


STANDS_FOR = {Set: set, Deque: deque, Keyed: dict, Tally: Counter}  # their names in a program
