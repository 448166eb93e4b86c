"""Sets, deques, counters, and dicts with run-time keys as plain Python classes, whose methods the
front end inlines.

A deque is the list of its items, a dict that of its values, and a hash table of the place of each
key among these; lists have derivatives, go through branches and loops, and vanish where they are
known when code is generated.  Hash tables, and the sets that are made of them, do so, too, but have
no derivatives, and nothing but numbers, and tuples of them, for keys; sets and counters of anything
else are made of lists.
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from .records import Fields, Record, Records

# What the front end does with a hash table, of places or a set, is an op each
# (ops/program/hash_tables.py).


def new_table():
    return {}


def find(table, key):
    """The place of a key; -1 if it is not there."""
    return table.get(key, -1)


def is_there(place):
    """Whether a place that `find` has found is that of a key which is there."""
    return place >= 0


def is_missing(place):
    return place < 0


def put(table, key, place):
    table[key] = place


def remove(table, key):
    del table[key]


def new_set():
    return set()


def is_in(members, x):
    return x in members


def add(members, x):
    members.add(x)


def discard(members, x):
    members.discard(x)


def copied(members):
    return members.copy()


def count_keys(table):
    return len(table)


def keys_in(table):
    """The keys of a table, or the members of a set, which may come in any order."""
    return list(table)


def last_in(table):
    """The key that was put last into a table."""
    return list(table)[-1]


def places_in(table):
    return list(table.values())


def view(of, listed):
    """What the method `listed` of the dict `of` shows, whenever it is read."""
    return getattr(of, listed)()


def in_any_order(source):
    """What is in a collection; the members of a set, in any order."""
    return source


class Set:
    """set(source), of anything."""

    def __init__(self, source=()):
        self._items = []
        for x in in_any_order(source):
            self.add(x)

    def __len__(self):
        return len(self._items)

    def __contains__(self, x):
        return x in self._items

    def members(self):
        return self._items

    def add(self, x):
        if x not in self._items:
            self._items.append(x)

    def discard(self, x):
        if x in self._items:
            self._items.remove(x)

    def remove(self, x):
        if x not in self:
            raise KeyError(x)
        self.discard(x)

    def clear(self):
        self._items = []

    def copy(self):
        made = Set()
        made._items = self._items.copy()
        return made

    def update(self, *sources):
        for source in sources:
            for x in in_any_order(source):
                self.add(x)

    def union(self, *others):
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others):
        made = self.copy()
        for other in others:
            for x in self.members():
                if x not in other:
                    made.discard(x)
        return made

    def difference(self, *others):
        made = self.copy()
        for other in others:
            for x in self.members():
                if x in other:
                    made.discard(x)
        return made

    def symmetric_difference(self, other):
        made = self.union(other)
        for x in self.members():
            if x in other:
                made.discard(x)
        return made

    def issubset(self, other):
        return all(x in other for x in self.members())

    def issuperset(self, other):
        return all(x in self for x in in_any_order(other))

    def isdisjoint(self, other):
        return not any(x in other for x in self.members())

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


class HashSet(Set):
    """set(source), of numbers and of tuples of numbers."""

    def __init__(self, source=()):
        self._members = new_set()
        for x in in_any_order(source):
            self.add(x)

    def __len__(self):
        return count_keys(self._members)

    def __contains__(self, x):
        return is_in(self._members, x)

    def members(self):
        return keys_in(self._members)

    def add(self, x):
        add(self._members, x)

    def discard(self, x):
        discard(self._members, x)

    def clear(self):
        self._members = new_set()

    def copy(self):
        made = HashSet()
        made._members = copied(self._members)
        return made


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
        return is_there(self.find(key))

    def find(self, key):
        return find(self._places, key)

    def append(self, key, x):
        put(self._places, key, len(self._values))
        self._values.append(x)

    def place(self, key):
        if is_missing(self.find(key)):
            if self._factory is None:
                raise KeyError(key)
            self.append(key, self._factory())
        return self.find(key)

    def place_or(self, key, default):
        if is_missing(self.find(key)):
            self.append(key, default)
        return self.find(key)

    def __getitem__(self, key):
        return self._values[self.place(key)]

    def __setitem__(self, key, x):
        k = self.find(key)
        if is_there(k):
            self._values[k] = x
        else:
            self.append(key, x)

    def get(self, key, default=None):
        k = self.find(key)
        return self._values[k] if is_there(k) else default

    def setdefault(self, key, default=None):
        return self._values[self.place_or(key, default)]

    def pop(self, key):
        k = self.find(key)
        if is_missing(k):
            raise KeyError(key)
        remove(self._places, key)
        self._has_gaps = True
        return self._values[k]

    def keys(self):
        return view(self, "listed_keys")

    def values(self):
        return view(self, "listed_values")

    def items(self):
        return view(self, "listed_items")

    def listed_keys(self):
        return keys_in(self._places)

    def listed_values(self):
        if self._has_gaps:
            return [self._values[k] for k in places_in(self._places)]
        return self._values

    def listed_items(self):
        return list(zip(self.listed_keys(), self.listed_values()))

    def listed_places(self):
        return places_in(self._places)

    def last_key(self):
        return last_in(self._places)

    def count_places(self):
        return len(self._values)

    def copy(self):
        made = Keyed(self._factory)
        made._places = copied(self._places)
        made._values = self._values.copy()
        made._has_gaps = self._has_gaps
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
            key in other and self[key] == other[key] for key in self.listed_keys())

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def popitem(self):
        if len(self) == 0:
            raise KeyError("popitem(): dictionary is empty")
        key = self.last_key()
        return key, self.pop(key)

    def clear(self):
        self._places = new_table()
        self._values = []
        self._has_gaps = False


def from_dict(other):
    """dict(other), of a dict with run-time keys."""
    made = other.copy()
    made._factory = None
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
    """collections.Counter(source) of numbers and of tuples of numbers."""

    def __init__(self, source=()):
        self._places = new_table()
        self._values = []
        self._has_gaps = False
        self._factory = None
        for x in source:
            self[x] += 1

    def copy(self):
        made = Tally()
        made._places = copied(self._places)
        made._values = self._values.copy()
        made._has_gaps = self._has_gaps
        return made

    def place(self, key):
        return self.place_or(key, 0)

    def __getitem__(self, key):
        return self.get(key, 0)

    def most_common(self, n=None):
        found = sorted(self.listed_items(), key=lambda item: item[1], reverse=True)
        return found if n is None else found[:n]


class ListedTally(Tally):
    """collections.Counter(source) of anything."""

    def __init__(self, source=()):
        self._keys = []
        self._values = []
        for x in source:
            self[x] += 1

    def copy(self):
        made = ListedTally()
        made._keys = self._keys.copy()
        made._values = self._values.copy()
        return made

    def __len__(self):
        return len(self._keys)

    def find(self, key):
        return self._keys.index(key) if key in self._keys else -1

    def append(self, key, x):
        self._keys.append(key)
        self._values.append(x)

    def pop(self, key):
        if key not in self._keys:
            raise KeyError(key)
        k = self._keys.index(key)
        self._keys.pop(k)
        return self._values.pop(k)

    def listed_keys(self):
        return self._keys

    def last_key(self):
        return self._keys[-1]

    def listed_values(self):
        return self._values

    def clear(self):
        self._keys = []
        self._values = []


STANDS_FOR = {Set: set, HashSet: set, Deque: deque, Keyed: dict, Tally: Counter,
              ListedTally: Counter, Records: np.ndarray, Record: np.void,
              Fields: np.dtype}  # their names in a program
