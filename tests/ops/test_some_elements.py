"""Reductions of some of the elements (where=, initial=), partitions, diagonals along any axes, and
functions of each element.
"""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, check_compiled

import s2s
from s2s.errors import S2SError

M = np.array([[0.5, -1.5, 2.5], [3.5, 0.25, -0.75]])
T = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.3
WHERE = np.array([[True, False, True], [True, True, False]])
COLUMN = np.array([[True], [False]])
V = np.array([2.5, -1.0, 0.5, 4.0, 3.0])


@np.vectorize
def bent(t, least=0.0):
    return t * t if t > least else -t


def later_of(t):
    return t**3 if t > 0 else t


FUNCTIONS = {
    "sum": lambda x: (
        np.sum(M * x, where=WHERE, initial=x**2)
        + np.sum((M * x * M).sum(axis=1, where=COLUMN) ** 2)
    ),
    "prod": lambda x: (
        np.prod(M * x, where=WHERE, initial=2.0)
        + np.sum(np.prod(M * x, axis=0, where=WHERE, initial=x))
    ),
    "mean": lambda x: (
        np.mean(M * x**2, where=WHERE)
        + np.sum(np.mean(M * x, axis=1, where=WHERE, keepdims=True) * M)
    ),
    "var": lambda x: (
        np.var(M * x, where=WHERE)
        + np.sum(np.std(M * x, axis=1, where=WHERE, ddof=1, keepdims=True) * M)
        + np.sum((M * x).var(axis=1, where=WHERE))
    ),
    "max": lambda x: (
        np.max(M * x, initial=0.3)
        + np.max(M * x, initial=9 * x)
        + np.sum(np.max(M * x, axis=0, initial=0.3))
        + np.max(M[:0] * x, initial=x)
    ),
    "max of some": lambda x: (
        np.max(M * x, where=WHERE, initial=-9.0)
        + np.sum((M * x).max(axis=1, where=WHERE, initial=-x, keepdims=True))
    ),
    "min": lambda x: (
        np.min(M * x, initial=0.3)
        + np.sum(np.min(M * x, axis=-1, where=WHERE, initial=2 * x))
        + np.min(V[:0] * x, initial=3.0, keepdims=True)[0]
    ),
    "any": lambda x: (
        x * np.any(M * x > 3, where=WHERE)
        + np.sum(np.all(M * x > 0, axis=1, where=WHERE) * M[:, 0] * x)
    ),
    "partition": lambda x: (
        np.partition(V * x, 2)[2]
        + np.sum(np.partition(V * x, (1, 3)) ** 2)
        + np.sum(np.partition(M * x, 1, axis=0)[1] * M[0])
    ),
    "argpartition": lambda x: (V * x)[np.argpartition(-V * x, 1)[:2]].sum() ** 2,
    "diagonal": lambda x: (
        np.sum(np.diagonal(T * x, axis1=0, axis2=2) ** 2 * T[0, :, :2])
        + np.sum((T * x).diagonal(1, 2, 1)[0] ** 3)
        + np.sum(np.diagonal(T * x, -1, -1, 1) ** 2)
        + np.sum(np.diagonal(M * x, 1, 1, 0) ** 2)
    ),
    "trace": lambda x: (
        np.sum(np.trace(T * x, 1, 1, 2) ** 2)
        + np.sum(np.trace(T * x, axis1=0, axis2=2) ** 3)
        + np.trace(M * x, -1) ** 2
    ),
    "vectorize": lambda x: (
        np.sum(bent(M * x) * M)
        + np.sum(bent(M * x, V[:3]))
        + bent(x) ** 2
        + np.sum(np.vectorize(later_of, otypes=[float])(V * x))
        + np.sum(np.vectorize(lambda t: t * x)(V))
    ),
    "bin": lambda x: x ** bin(5).count("1") * len(hex(255)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    check(FUNCTIONS[name], exactly=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled(name):
    check_compiled(FUNCTIONS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batched(name):
    xs = np.array([0.4, 0.6, 0.9])
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(FUNCTIONS[name]))(xs),
        [s2s.grad(FUNCTIONS[name])(x) for x in xs],
        rtol=1e-11,
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x, where=WHERE, initial=0.5),
        lambda x: np.mean(x, where=WHERE, axis=0),
        lambda x: np.std(x, where=WHERE),
        lambda x: np.max(x, initial=1.0),
        lambda x: np.max(x, axis=1, where=WHERE, initial=-5, keepdims=True),
        lambda x: np.partition(x, 1),
        lambda x: np.diagonal(x, axis1=1, axis2=0),
        lambda x: np.prod(x, initial=2),
    ],
)
def test_dtypes_and_shapes_are_numpys(f):
    for x in (M, M.astype(np.float32)):
        found, expected = s2s.jvp(f, (x,), (x,))[0], f(x)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if x.dtype == np.float32 else 1e-14)
        assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected)


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda x: np.max(x * M, where=WHERE), "np.max with where= and without initial="),
        (
            lambda x: np.max(x * T, axis=(0, 1), initial=0.0)[0],
            "initial= of a reduction along several axes",
        ),
        (
            lambda x: np.sum(np.vectorize(later_of, excluded={int(x)})(x * V)),
            "excluded= must be known when code is generated",
        ),
        (lambda x: np.sum(np.diagonal(x * T, 0, 1, 1)), "the diagonal along axes 1 and 1"),
    ],
)
def test_what_is_left_is_refused(f, text):
    with pytest.raises(S2SError, match=text):
        s2s.grad(f)(0.7)


def test_arrays_of_no_elements_are_reshaped_in_lanes():
    slope = s2s.vmap(s2s.grad(lambda x: np.sum(np.append(np.ravel(M[:0] * x), x * x))))
    np.testing.assert_array_equal(slope(np.array([1.0, 2.0])), [2.0, 4.0])
