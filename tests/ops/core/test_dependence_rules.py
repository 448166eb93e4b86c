"""What records say of dependences, for sparsity patterns: no rule leaves out an element that is
read.
"""

from __future__ import annotations

import numpy as np
import pytest

import s2s  # noqa: F401  (fills the table)
from s2s.ops.core.dependence_rules import followed, moved, nothing
from s2s.ops.core.record import ALL, RECORDS
from s2s.sparse.union_graph import Unions

rng = np.random.default_rng(0)
A, B = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
SQUARE, V, W = rng.normal(size=(3, 3)) + 4 * np.eye(3), rng.normal(size=5), rng.normal(size=3)

CALLS = [  # op, operands, attributes
    ("sum", (A,), {"axis": 1, "keepdims": False}),
    ("sum", (A,), {"axis": None, "keepdims": True}),
    ("max", (A,), {"axis": -2, "keepdims": True}),
    ("prod", (A,), {"axis": (0, 1), "keepdims": False}),
    ("cumsum", (A,), {"axis": 0}),
    ("cumprod", (V,), {"axis": None}),
    ("matmul", (A, B), {}),
    ("matmul", (W, A), {}),
    ("matmul", (W, W), {}),
    ("outer", (V, W), {}),
    ("einsum", (A, B), {"subscripts": "ij,jk->ki"}),
    ("einsum", (SQUARE, W), {"subscripts": "ii,i->i"}),
    ("convolve", (V, W), {}),
    ("correlate", (V, W), {"conj": False}),
    ("solve", (SQUARE, W), {}),
    ("solve", (SQUARE, A), {}),
    ("inv", (SQUARE,), {}),
    ("det", (SQUARE,), {}),
    ("fft", (A,), {"axes": (-1,), "norm": None, "library": "np"}),
    ("dct", (A,), {"type": 2, "axis": 0, "norm": None}),
    ("transpose", (A,), {"axes": None}),
    ("concatenate", (A, A[:1]), {"axis": 0}),
    ("repeat", (A, 2), {"axis": 1}),
    ("unrepeat", (np.repeat(A, 2, 1), A, 2), {"axis": 1}),
    ("tile", (V, 3), {}),
    ("untile", (np.tile(V, 3), V, 3), {}),
    ("sum_to", (A, A[:1]), {}),
    ("getitem", (V, np.array([3, 0, 3])), {"pattern": ("i",)}),
    ("setitem", (V, W, np.array([3, 0, 1])), {"pattern": ("i",)}),
    ("additem", (V, W, np.array([3, 0, 3])), {"pattern": ("i",)}),
    ("linspace", (0.5, 2.0, 4), {"endpoint": True}),
    ("array", (0.5, 2.0), {"shape": (2,), "dtype": None}),
    ("bincount", (np.array([1, 0, 1]), 0, W), {}),
    ("take_along_axis", (A, np.array([[1, 0]] * 3)), {"axis": 1}),
    ("add_along_axis", (A[:, :2], np.array([[1, 1]] * 3), A), {"axis": 1}),
]

# not all of it: a maximum of some elements, both ends, cosines of which some are 0
MORE = ("max", "linspace", "dct")

@pytest.mark.parametrize(
    "name, xs, attrs", CALLS, ids=[f"{name}-{k}" for k, (name, *_) in enumerate(CALLS)]
)
def test_dependences_are_what_changes_a_result(name, xs, attrs):
    """Each element of each operand is changed in turn: the elements of the result that differ then
    depend on it.
    """
    record = RECORDS[name]
    tracked = (
        [k for k in followed(record) if k < len(xs)]
        if followed(record) is not ALL
        else range(len(xs))
    )
    tracked = [k for k in tracked if np.asarray(xs[k]).dtype.kind == "f" and k not in record.shapes]
    unions, deps, columns = Unions(sum(np.size(xs[k]) for k in tracked)), [0] * len(xs), 1
    for k in tracked:
        deps[k] = np.arange(columns, columns + np.size(xs[k])).reshape(np.shape(xs[k]))[()]
        columns += np.size(xs[k])
    y = record.evaluate(*xs, **attrs)
    found = (
        moved(record, deps, xs, attrs)
        if record.depends is None
        else record.depends(unions, y, deps, *xs, **attrs)
    )
    changed = []
    for k in tracked:
        for place in np.ndindex(np.shape(xs[k])):
            other = np.array(xs[k])
            other[place] += 0.37
            changed.append(
                np.ravel(record.evaluate(*xs[:k], other[()], *xs[k + 1 :], **attrs)) != np.ravel(y)
            )
    pattern = unions.matrix(np.ravel(found)).toarray()
    assert tracked and not np.any(np.transpose(changed) & ~pattern)
    if name not in MORE:
        np.testing.assert_array_equal(pattern, np.transpose(changed))


def test_a_reader_of_shapes_depends_on_nothing():
    """ones_like(x) is the same for all x."""
    assert RECORDS["ones_like"].depends is nothing
    np.testing.assert_array_equal(
        RECORDS["ones_like"].evaluate(A, dtype=None),
        RECORDS["ones_like"].evaluate(2 * A, dtype=None),
    )
