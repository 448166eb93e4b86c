"""Programs as functions of leaves, and their derivatives, against complex steps."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import s2s
from s2s.interop.leaf_program import Family, LeafProgram, flatten, unflatten


class Layer(NamedTuple):
    w: np.ndarray
    b: float


@dataclasses.dataclass
class Box:
    inside: object
    name: str = dataclasses.field(default="box", metadata={"static": True})


def layers(first, boxes, k, *, power=2):
    """The leaves that tests give: w, b, two in a box in a dict, and k; `n` is a number of trips."""
    x = first.w * first.b
    for _ in range(boxes["n"]):
        x = x * boxes["box"].inside[0] + k * boxes["box"].inside[1] ** power
    return [x * k, {"total": np.sum(x), "which": boxes["box"].name}]


ARRAYS = np.ndarray, np.inexact
VALUES = [np.array([0.5, -1.5, 2.0]), np.float64(0.7), np.array([1.0, 0.3, -0.2]), np.float64(1.1),
          np.float64(0.4)]


def program(family=None, values=VALUES):
    w, b, x, y, k = values
    args = (Layer(w, b), {"n": 3, "box": Box([x, y])}, k, 2)
    return LeafProgram.of(family or Family(layers), args, ARRAYS)


def directional(k, direction):
    """The derivative of both results as leaf k moves, by a complex step of the function itself."""
    values = [np.asarray(x, complex)[()] for x in VALUES]
    values[k] = values[k] + 1e-30j * direction
    w, b, x, y, scale = values
    y, more = layers(Layer(w, b), {"n": 3, "box": Box([x, y])}, scale)
    return [np.imag(y) / 1e-30, np.imag(more["total"]) / 1e-30]


def test_structures_go_together_again():
    x = (Layer(1, 2), {"b": [3, Box((4, None))], "a": ()}, "text")
    leaves: list = []
    structure = flatten(x, leaves)
    assert leaves == [1, 2, 3, 4, None, "box", "text"]
    assert unflatten(structure, iter(leaves)) == x
    assert unflatten(structure, iter(range(7)), plainly=True) == ((0, 1), ((2, ((3, 4), 5)), ()), 6)


@pytest.mark.parametrize("wanted", [(0,), (1, 3), (2, 4), (4, 3, 2, 1, 0)])
def test_cotangents_and_tangents_of_some_leaves(wanted):
    p, given = program()
    bars = [np.array([0.3, -0.8, 1.2]), np.float64(-0.6)]
    directions = [np.array([0.2, 0.1, -0.7]), np.float64(0.9), np.array([0.4, 0.5, 0.6]),
                  np.float64(-0.3), np.float64(1.3)]
    x_bars, _ = p.pullback(wanted, 2).run([*given, *bars])
    y_dots, _ = p.tangent(wanted).run([*given, *(directions[k] for k in wanted)])
    moved = [directional(k, directions[k]) for k in wanted]
    for x_bar, k, expected in zip(x_bars, wanted, moved, strict=True):
        assert x_bar.dtype == np.float64 and np.shape(x_bar) == np.shape(VALUES[k])
        assert np.isclose(np.sum(x_bar * directions[k]),
                          sum(np.sum(b * e) for b, e in zip(bars, expected)))
    for y_dot, expected in zip(y_dots, map(sum, zip(*moved)), strict=True):
        assert np.allclose(y_dot, expected)


def test_arguments_by_keyword_are_leaves_like_others():
    def f(x, y=2.0, *, k):
        return x * y**2 * k

    family = Family(f)
    p, given = LeafProgram.of(family, family.arguments((np.float64(3.0),), {"k": np.float64(5.0)}),
                              ARRAYS)
    assert given == [3.0, 5.0] and p.fixed[1] == 2.0
    assert p.run(given)[0] == [60.0] and p.pullback((1, 0), 1).run([*given, 1.0])[0] == [12.0, 20.0]


def test_what_only_others_need_is_not_computed():
    def f(x, y):
        return np.sum(np.sin(x) * np.cos(y))

    p, given = LeafProgram.of(Family(f), (np.ones(3), np.ones(3)), ARRAYS)
    p.pullback((0,), 1).run([*given, 1.0])
    source = p.pullback((0,), 1).family.transformed.source
    assert "np.cos(x)" in source and "np.sin" not in source


def test_lanes_of_a_pullback():
    p, (_, b, x, _, k) = program()
    back = p.pullback((0, 3), 2)
    w, y, bars = np.arange(6.0).reshape(2, 3), np.array([1.1, 0.2]), np.array([2.0, 3.0])
    together, _ = back.batched((0, None, None, 0, None, None, 0)).run([w, b, x, y, k, x, bars])
    for lane in range(2):
        alone, _ = back.run([w[lane], b, x, y[lane], k, x, bars[lane]])
        for many, one in zip(together, alone, strict=True):
            assert np.allclose(many[lane], one)


def test_shapes_are_those_of_the_results():
    p, _ = program()
    given = [s2s.ShapeDtype(np.shape(x), "float32") for x in VALUES]
    found, structure = p.shapes(given)
    assert found == [s2s.ShapeDtype((3,), "float32"), s2s.ShapeDtype((), "float32"), "box"]
    assert unflatten(structure, iter("abc")) == ["a", {"total": "b", "which": "c"}]


@pytest.mark.compile
def test_derivatives_of_compiled_functions_are_compiled():
    p, given = LeafProgram.of(Family(s2s.jit(lambda x: np.sum(x * x))), (np.ones(2),), ARRAYS)
    back = p.pullback((0,), 1)
    assert back.family.transformed.is_compiled()
    assert np.allclose(back.run([*given, np.float64(3.0)])[0][0], 6.0)
