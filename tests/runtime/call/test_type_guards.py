"""Calls like the last one are recognised as such, and only those."""

from collections import defaultdict, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from s2s.runtime.call.type_guards import MANY, Kinds, Names, arguments
from s2s.specialisation import key_of

Pair = namedtuple("Pair", "a b")


@dataclass
class Point:
    x: float


@dataclass
class Fixed:
    n: int = field(metadata={"static": True})


KINDS = [
    1,
    1.0,
    True,
    1j,
    np.ones(3),
    np.ones(1),
    np.ones((3, 1)),
    np.ones((3, 3)),
    np.ones(3, np.float32),
    np.arange(3),
    np.zeros(0),
    np.ones((1, 1)),
    np.float64(1.0),
    np.float32(1.0),
    None,
    "a",
    "b",
    (1.0, 2.0),
    (1.0, 2),
    [1.0, 2.0],
    {"a": 1.0},
    {"b": 1.0},
    {"b": 1.0, "a": 1.0},
    {"a": 1.0, "b": 1.0},
    {"a": np.ones(3)},
    {"a": np.ones(1)},
    {"a": {"b": 1.0}},
    Pair(1.0, 2.0),
    Pair(1.0, 2),
    Point(1.0),
    SimpleNamespace(x=1.0),
    SimpleNamespace(y=1.0),
    {},
    (),
    [1.0] * MANY,
    [1.0] * (MANY + 1),
    [1.0] * (MANY - 1) + [1],
    (1.0,) * MANY,
    [np.float32(1.0)] * MANY,
    [True] * MANY,
    dict.fromkeys(range(MANY), 1.0),
    dict.fromkeys(range(MANY, 0, -1), 1.0),
    dict.fromkeys(range(MANY), 1),
    {"a": [1.0] * MANY},
    {"a": [1.0] * MANY, "b": 1.0},
    [1.0] * (MANY - 1) + [None],
    [np.ones(1)] * MANY,
    [np.ones(2)] * MANY,
]


def matcher(args):
    """Whether other arguments are of the kinds of `args`, as calls ask it; None for kinds that take
    a longer look.
    """
    places = [f"a{k}" for k in range(len(args))]
    names = Names(places)
    kinds = Kinds(names)
    if not all(map(kinds.describe, args, places)):
        return None

    def matches(*others):
        try:
            return eval(
                " and ".join(kinds.conditions) or "True",
                {**names.content, **dict(zip(places, others))},
            )
        except Exception:  # a key or an attribute that is not there
            return False

    return matches


@pytest.mark.parametrize("first", KINDS, ids=repr)
def test_same_kind_as_key_of_says(first):
    matches = matcher((first,))
    for other in KINDS:
        assert matches(other) == (type(other) is type(first) and key_of(other) == key_of(first)), (
            other
        )


@pytest.mark.parametrize(
    "x",
    [np.array(1.0), np.ones(3).view(np.matrix), (np.array(1.0),), defaultdict(list), Fixed(2)],
    ids=repr,
)
def test_kinds_that_take_a_longer_look(x):
    assert matcher((x, 1.0)) is None


def test_no_arguments():
    assert matcher(())()


@pytest.mark.parametrize(
    "several", [list, tuple, lambda xs: {f"w{k}": x for k, x in enumerate(xs)}]
)
def test_many_leaves_are_asked_at_once_and_handed_on_as_they_stand(several):
    """Three conditions at most, and one argument of a call, however many they are."""
    for leaf in (1.0, np.ones(3), np.float32(2.0)):
        kinds = Kinds(names := Names(["a0", "a1"]), shapes=False)
        given = several([leaf] * MANY)
        assert kinds.describe(given, "a0") and kinds.describe(2.0, "a1")
        assert (
            kinds.arguments() == "*x, a1"
            and len(kinds.leaves) == MANY + 1
            and len(kinds.conditions) <= 4
        )
        assert kinds.are_numbers == isinstance(leaf, float)
        names.content.update(a0=given, a1=2.0)
        assert eval(" and ".join(kinds.conditions), names.content)
        assert eval(f"({kinds.arguments()})", names.content) == tuple(
            eval(leaf, names.content) for leaf in kinds.leaves
        )


def test_part_of_a_row_has_no_star():
    rows = {"x": 3, "y": 2}
    assert arguments(["x[0]", "x[1]", "x[2]", "y[0]", "y[1]"], rows) == "*x, *y"
    assert arguments(["x[1]", "x[2]", "a", "x[0]", "x[1]"], rows) == "x[1], x[2], a, x[0], x[1]"
    assert arguments(["y[0]", "z[0]"], rows) == "y[0], z[0]"
