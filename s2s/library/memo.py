"""functools.cache and lru_cache of functions that a program defines: a dict of the results."""

from __future__ import annotations

import functools

import numpy as np

from .declarations import implements


@implements(functools.cache)
def cached(user_function, /):
    """Results are kept for whole numbers and strings; of other arguments a result has a derivative,
    which a result that was kept of others equal to them has not.
    """
    _results = {}

    def call(*key):
        if not all(isinstance(each, (int, np.integer, str)) for each in key):
            return user_function(*key)
        at = key[0] if len(key) == 1 else key
        if at in _results:
            return _results[at]
        result = user_function(*key)
        _results[at] = result
        return result

    return call


@implements(functools.lru_cache)
def lru_cached(maxsize=128, typed=False):
    """What has been kept is not forgotten: functions of programs give the same result again."""
    if callable(maxsize):
        return cached(maxsize)
    return cached
