"""Parameters that can only be numbers, or integers, before any call tells."""

import numpy as np
import pytest

import s2s
from s2s.analysis.rank_inference import types_from_results
from s2s.front import build
from s2s.ir.types import Scalar, Unknown


def product(n, x):
    result = x
    for _ in range(abs(n)):
        result = result * x
    return result


def of_numpy(n, x):
    result = x
    for _ in range(np.abs(n)):
        result = result * x
    return result


@pytest.mark.parametrize("f", [product, of_numpy])
def test_the_size_of_an_integer_is_asked_of_an_integer(f):
    function = build(f, [Unknown(), Unknown()])
    assert types_from_results(function, function.results) == [
        Scalar("int64", weak=True),
        Scalar("float64", weak=True),
    ]
    assert s2s.grad(f, argnums=1)(-2, 1.5) == pytest.approx(3 * 1.5**2)
