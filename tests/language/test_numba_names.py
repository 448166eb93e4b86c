"""Programs as Numba's users write them: what Numba's own names mean (library/numba_functions.py),
beside @njit, which is the function inside.
"""

import numba
import numpy as np
import pytest
from differences import check, check_compiled
from numba import typed

X = np.array([0.3, -0.7, 1.1, 0.4])


@numba.njit(parallel=True)
def shared(x, n):
    s = 0.0
    for i in numba.prange(1, n):
        s += np.sin(x[i]) * x[i - 1]
    return s


def in_a_prange(x):
    return shared(x, len(x)) ** 2


@numba.vectorize
def larger_squared(a, b):
    if a > b:
        return a * a
    return a * b


def of_each_element(x, c):
    return np.sum(larger_squared(x, c) * larger_squared(2.0, x)) + larger_squared(c, 0.1)


def typed_lists(x):
    xs, ys = typed.List(), typed.List.empty_list(numba.float64)
    for v in x:
        xs.append(v * v)
        if v > 0:
            ys.append(v)
    return sum(xs) * len(ys) + sum(ys) * sum(typed.List([x[0], 2.0]))


def typed_dicts(x):
    d = typed.Dict.empty(key_type=numba.int64, value_type=numba.float64)
    names = typed.Dict()
    for i in range(len(x)):
        d[i % 2] = d.get(i % 2, 0.0) + x[i] ** 2
    names["a"] = d[0] * d[1]
    return names["a"] * len(d)


@numba.experimental.jitclass([("total", numba.float64)])
class Sum:
    def __init__(self, total):
        self.total = total

    def add(self, v):
        self.total += v * v


def compiled_classes(x):
    s = Sum(0.5)
    for v in x:
        s.add(v)
    return s.total ** 2


def unrolled_tuples(x):
    s = 0.0
    for factor in numba.literal_unroll((1, 2.5, 3)):
        s += factor * x[1] ** 2
    return s


PROGRAMS = {
    f.__name__: f
    for f in (in_a_prange, typed_lists, typed_dicts, compiled_classes, unrolled_tuples)
}
PROGRAMS = {name: lambda c, f=f: f(X * c) for name, f in PROGRAMS.items()} | {
    "of_each_element": lambda c: of_each_element(X * c, 0.2)
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    """Against what Numba runs."""
    check(PROGRAMS[name], exactly=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["in_a_prange", "typed_lists", "of_each_element"])
def test_compiled_programs(name):
    check_compiled(PROGRAMS[name])
