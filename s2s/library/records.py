"""Structured arrays of NumPy as a plain Python class, whose methods the front end inlines: an array
for each field, of one shape at the front.

An element is a view here as there: `p[k]["m"] = 2.0` writes into `p`.
"""

from __future__ import annotations

import numpy as np


class Records:
    """np.zeros(n, dtype=[("x", float), ("v", float, 3)]), of the arrays `fields`; elements of the
    first have `inner` axes.
    """

    def __init__(self, fields, inner):
        self._fields = fields
        self._inner = inner

    def __getitem__(self, key):
        if isinstance(key, str):
            return self._fields[key]
        if np.ndim(self._first()[key]) == self._inner:
            return Record(self._fields, key)
        return Records({name: field[key] for name, field in self._fields.items()}, self._inner)

    def _first(self):
        for field in self._fields.values():
            return field

    def __setitem__(self, key, x):
        if isinstance(key, str):
            self._fields[key][...] = x
        elif isinstance(x, tuple):
            for name, member in zip(self._fields, x):
                self._fields[name][key] = member
        elif hasattr(x, "_fields"):
            for name in self._fields:
                self._fields[name][key] = x[name]
        else:
            for name in self._fields:
                self._fields[name][key] = x

    def __len__(self):
        return len(self._first())

    def __eq__(self, other):
        raise NotImplementedError("s2s: comparing structured arrays: compare their fields")

    def __bool__(self):
        raise NotImplementedError("s2s: the truth of a structured array: ask for its len()")

    @property
    def shape(self):
        return self._first().shape[:self.ndim]

    @property
    def size(self):
        return int(np.prod(self.shape))

    @property
    def dtype(self):
        return Fields(tuple(self._fields))

    @property
    def ndim(self):
        return self._first().ndim - self._inner

    def copy(self):
        return Records({name: field.copy() for name, field in self._fields.items()}, self._inner)


class Fields:
    """What is asked of the dtype of a structured array: the names of its fields."""

    def __init__(self, names):
        self.names = names

    def __eq__(self, other):
        raise NotImplementedError("s2s: comparing structured dtypes: compare their names")


class Record:
    """An element of a structured array."""

    def __init__(self, fields, at):
        self._fields = fields
        self._at = at

    def __getitem__(self, key):
        if isinstance(key, str):
            return self._fields[key][self._at]
        return self._fields[list(self._fields)[key]][self._at]

    def __setitem__(self, key, x):
        self._fields[key][self._at] = x

    def __iter__(self):
        for field in self._fields.values():
            yield field[self._at]

    def __len__(self):
        return len(self._fields)

    def __eq__(self, other):
        raise NotImplementedError("s2s: comparing records: compare their fields")


def filled(create, shape, fields):
    """What `create`, np.zeros or the like, makes of a structured dtype: its `fields` are (name,
    dtype, shape of an element).
    """
    shape = shape if isinstance(shape, tuple) else (shape,)
    return Records({name: create(shape + inner, dtype) for name, dtype, inner in fields},
                   len(fields[0][2]))


def from_rows(rows, fields):
    """np.array([(1.0, 2.0), ...], dtype) of a structured dtype."""
    return Records({field[0]: np.array([row[k] for row in rows], field[1])
                    for k, field in enumerate(fields)}, len(fields[0][2]))
