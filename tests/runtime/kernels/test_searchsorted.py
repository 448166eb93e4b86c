"""Searches in native code: where NumPy says that values belong, in short and long vectors, of NaN
too.
"""

import numpy as np
import pytest

import s2s

pytestmark = pytest.mark.compile


def places(a, v):
    found = np.zeros((2, len(v)), dtype=np.int64)
    for i in range(len(v)):
        found[0, i] = np.searchsorted(a, v[i])
        found[1, i] = np.searchsorted(a, v[i], side="right")
    return found


@pytest.mark.parametrize(
    "dtypes",
    [
        ("float64", "float64"),
        ("float32", "float64"),
        ("float64", "float32"),
        ("int64", "float64"),
        ("int64", "int64"),
        ("float64", "int64"),
    ],
)
def test_places_are_numpys(dtypes):
    fast, rng = s2s.jit(places), np.random.default_rng(0)
    for n in (0, 2, 3, 7, 20, 47, 48, 49, 300):
        a = np.sort(rng.integers(-9, 9, size=n)).astype(dtypes[0])
        v = np.concatenate((a, np.arange(-10, 11))).astype(dtypes[1])
        if dtypes[0] != "int64" and n > 3:
            a[0], a[-3:] = -np.inf, [np.inf, np.nan, np.nan]
        if dtypes[1] != "int64":
            v[:3], v[3:6] = [np.nan, np.inf, -np.inf], v[3:6] + 0.5
        np.testing.assert_array_equal(
            fast(a, v), [np.searchsorted(a, v), np.searchsorted(a, v, side="right")]
        )


def test_vectors_are_searched_for_as_they_were():
    a, v = np.linspace(0.0, 1.0, 11), np.random.default_rng(1).uniform(size=(4, 5))
    np.testing.assert_array_equal(
        s2s.jit(lambda a, v: np.searchsorted(a, v))(a, v), np.searchsorted(a, v)
    )
