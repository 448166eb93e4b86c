"""What records say is linear in each of its inputs (`multilinear`) is, by numbers."""

from __future__ import annotations

import numpy as np
import pytest

import s2s  # noqa: F401  (fills the table)
from s2s.ops.core.record import RECORDS

rng = np.random.default_rng(0)
A, B, Y, V, W = (rng.normal(size=shape) for shape in ((3, 4), (4, 2), (3, 2), (5,), (3,)))

OPERANDS = {  # op -> operands, attributes
    "multiply": ((A, A[0]), {}),
    "matmul": ((A, B), {}),
    "dot": ((A, B), {}),
    "dot_left": ((Y, A, B), {}),
    "dot_right": ((Y, A, B), {}),
    "outer": ((V, W), {}),
    "inner": ((A, A[:2]), {}),
    "einsum": ((A, B, Y), {"subscripts": "ij,jk,ik->k"}),
    "convolve": ((V, W), {}),
    "correlate": ((V, W), {"conj": False}),
    "weighted": ((A, A[0]), {}),
    "selected_product": ((A, A[1], B), {}),
}


def test_all_are_tested():
    assert {name for name, record in RECORDS.items() if record.multilinear} == set(OPERANDS)


@pytest.mark.parametrize("name", OPERANDS)
def test_each_input_is_linear(name):
    """f(.., 2x - 3z, ..) is 2 f(.., x, ..) - 3 f(.., z, ..), and not so for several inputs at
    once.
    """
    record, (xs, attrs) = RECORDS[name], OPERANDS[name]
    inputs = [k for k in range(len(xs)) if k in record.multilinear]
    others = [rng.normal(size=x.shape) for x in xs]

    def at(places, values):
        return record.evaluate(
            *(values[k] if k in places else x for k, x in enumerate(xs)), **attrs
        )

    for k in inputs:
        found = at([k], [2 * x - 3 * z for x, z in zip(xs, others)])
        np.testing.assert_allclose(
            found, 2 * at([k], xs) - 3 * at([k], others), rtol=1e-12, atol=1e-12
        )
    assert len(inputs) > 1
    both = at(inputs, [2 * x for x in xs])
    np.testing.assert_allclose(both, 2 ** len(inputs) * at(inputs, xs), rtol=1e-12)
