"""Calls like the last one are recognised as such, and only those."""

from collections import defaultdict, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from s2s.runtime.dispatch import Kinds, Names
from s2s.signature import key_of

Pair = namedtuple("Pair", "a b")


@dataclass
class Point:
    x: float


@dataclass
class Fixed:
    n: int = field(metadata={"static": True})


KINDS = [1, 1.0, True, 1j, np.ones(3), np.ones(1), np.ones((3, 1)), np.ones((3, 3)), np.ones(3, np.float32),
         np.arange(3), np.zeros(0), np.ones((1, 1)), np.float64(1.0), np.float32(1.0), None, "a", "b", (1.0, 2.0), (1.0, 2),
         [1.0, 2.0], {"a": 1.0}, {"b": 1.0}, {"b": 1.0, "a": 1.0}, {"a": 1.0, "b": 1.0}, {"a": np.ones(3)}, {"a": np.ones(1)},
         {"a": {"b": 1.0}}, Pair(1.0, 2.0), Pair(1.0, 2), Point(1.0), SimpleNamespace(x=1.0), SimpleNamespace(y=1.0), {}, ()]


def matcher(args):
    """Whether other arguments are of the kinds of `args`, as calls ask it; None for kinds that take a longer look."""
    places = [f"a{k}" for k in range(len(args))]
    names = Names(places)
    kinds = Kinds(names)
    if not all(map(kinds.describe, args, places)):
        return None

    def matches(*others):
        try:
            return eval(" and ".join(kinds.conditions) or "True", {**names.content, **dict(zip(places, others))})
        except Exception:  # a key or an attribute that is not there
            return False

    return matches


@pytest.mark.parametrize("first", KINDS, ids=repr)
def test_same_kind_as_key_of_says(first):
    matches = matcher((first,))
    for other in KINDS:
        assert matches(other) == (type(other) is type(first) and key_of(other) == key_of(first)), other


@pytest.mark.parametrize("x", [np.array(1.0), np.ones(3).view(np.matrix), (np.array(1.0),), defaultdict(list), Fixed(2)], ids=repr)
def test_kinds_that_take_a_longer_look(x):
    assert matcher((x, 1.0)) is None


def test_no_arguments():
    assert matcher(())()
