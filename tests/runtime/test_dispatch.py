"""Calls like the last one are recognised as such, and only those."""

import numpy as np
import pytest

from s2s.runtime.dispatch import matcher
from s2s.signature import key_of

KINDS = [1, 1.0, True, 1j, np.ones(3), np.ones(1), np.ones((3, 1)), np.ones((3, 3)), np.ones(3, np.float32),
         np.arange(3), np.zeros(0), np.ones((1, 1))]


@pytest.mark.parametrize("first", KINDS, ids=repr)
def test_same_kind_as_key_of_says(first):
    matches = matcher((first,))
    for other in KINDS:
        assert matches(other) == (key_of(other) == key_of(first) and np.ndim(other) == np.ndim(first)), other


@pytest.mark.parametrize("x", [(1.0, 2.0), None, "a", np.float64(1), np.array(1.0), np.ones(3).view(np.matrix)], ids=repr)
def test_kinds_that_take_a_longer_look(x):
    assert matcher((x, 1.0)) is None


def test_no_arguments():
    assert matcher(())()
