"""What records state of ops is so: each fact, of each op that states it, on numbers."""

import itertools
import math

import numpy as np
import pytest

import s2s  # noqa: F401  it fills RECORDS
from s2s.back.loopir import ops  # noqa: F401  (those of the loop form)
from s2s.ops.core.record import RECORDS

NUMBERS = (-2.5, -1.0, -0.5, 0.5, 1.0, 1.5, 3.0)


def that(state: str, elementwise: bool = True):
    """A parameter for each op that states this; of the elementwise ones alone, unless asked for
    all.
    """
    return pytest.mark.parametrize(
        "op",
        [
            op
            for op in RECORDS.values()
            if getattr(op, state) and (op.elementwise or not elementwise)
        ],
        ids=str,
    )


def operands(op, numbers=NUMBERS):
    return itertools.product(numbers, repeat=len(op.partials))


@that("signs")
def test_sums(op):
    for xs in operands(op):
        assert op(*xs) == sum(sign * x for sign, x in zip(op.signs, xs, strict=True))


@that("divides")
def test_quotients(op):
    for a, b in operands(op):
        assert op(a, b) == pytest.approx(a / b, rel=1e-6)


@that("is_arithmetic")
def test_arithmetic(op):
    for a, *b in operands(op):
        assert op(a, *b) in (
            [a + b[0], a - b[0], a * b[0], pytest.approx(a / b[0], rel=1e-6)] if b else [a, -a]
        )


@that("contracts")
def test_products_that_may_be_fused(op):
    for xs in operands(op):
        if len(xs) == 1 or op.multilinear:
            assert op(*xs) == math.prod(xs * (2 if len(xs) == 1 else 1))
        else:
            assert op(xs[0], 2) == xs[0] * xs[0]


@that("commutes")
def test_operands_may_be_exchanged(op):
    for a, b in operands(op, (*NUMBERS, 0.0, -0.0, math.inf)):
        np.testing.assert_array_equal(np.signbit(op(a, b)), np.signbit(op(b, a)))
        np.testing.assert_array_equal(op(a, b), op(b, a))


@that("root")
def test_roots(op):
    for x in (0.0, 0.5, 1.0, 27.0):
        assert op(x) ** op.root == pytest.approx(x)


@that("size")
def test_sizes(op):
    for xs in operands(op) if op.elementwise else ((3.0, 4.0), (1.0, 2.0, 2.0)):
        assert op(*xs) == pytest.approx(math.sqrt(sum(x * x for x in xs)))


@that("chooses")
def test_choices(op):
    for xs in operands(op):
        assert op(*xs) in xs


@that("extreme")
def test_larger_and_smaller_operands(op):
    for xs in operands(op):
        assert op(*xs) == (max if op.extreme > 0 else min)(xs)


@that("extreme")
def test_operands_that_are_nan(op):
    first, second = op(math.nan, 2.0), op(2.0, math.nan)
    if op.skips_nan:
        assert first == second == 2.0
    # as Python does: the first, unless the second compares as larger or smaller
    elif op.returns_operand:
        assert math.isnan(first) and second == 2.0
    else:
        assert math.isnan(first) and math.isnan(second)


@that("selects")
def test_selections(op):
    assert op(True, 2.0, 3.0) == 2.0 and op(False, 2.0, 3.0) == 3.0


@that("returns_operand")
def test_operands_that_are_returned(op):
    xs = [object() if op.selects else float(k + 1.5) for k in range(len(op.partials))]
    assert any(op(*xs) is x for x in xs)


@that("negates")
def test_negations(op):
    assert not op(True) and op(False)


@that("compares")
def test_comparisons(op):
    found = [bool(op(a, b)) for a, b in ((1, 2), (2, 2), (3, 2))]
    assert (
        found == [bool(op(a, b)) for a, b in ((0.1, 0.7), (0.7, 0.7), (9.0, 0.7))]
        and len(set(found)) == 2
    )
    assert op.is_equality == (found[0] == found[2])


@that("tests_finite")
def test_what_asks_for_finite_numbers(op):
    answers = [bool(op(x)) for x in (1.5, math.inf, math.nan)]
    assert answers in ([True, False, False], [False, True, False], [False, False, True])


@that("integral")
def test_integers_of_integers_only(op):
    for xs in operands(op, (-3, 1, 2)):
        assert isinstance(op(*xs), (int, np.integer))
        assert not isinstance(op(*map(float, xs)), (int, np.integer))


@that("converts", elementwise=False)
def test_conversions(op):
    attrs = {"dtype": "float32"} if op.name != "float_" else {}
    assert op(np.float64(1.5), **attrs) == 1.5


@that("tame_at_one")
def test_values_and_slopes_at_one(op):
    ones = [1.0] * len(op.partials)
    y = op(*ones)
    assert math.isfinite(y)
    h = 1e-6
    for k in range(len(ones)):
        near = op(*ones[:k], 1 + h, *ones[k + 1:])
        assert abs(near - y) < 10 * h


@that("fill", elementwise=False)
def test_filled_arrays(op):
    shape = (2, 3) if op.allocates is not None else (np.ones((2, 3)),)
    assert (op(*shape, dtype="float64") == op.fill).all()


@pytest.mark.parametrize("op", [op for op in RECORDS.values() if op.allocates is not None], ids=str)
def test_lengths_of_new_arrays(op):
    attrs = {"buffer": {"dtype": "float64", "dims": (2, 3), "zero": False}, "full": {}}.get(
        op.name, {"dtype": "float64"}
    )
    assert op(*(1.5,) * op.allocates, 2, 3, **attrs).shape == (2, 3)


@that("asks_extents", elementwise=False)
def test_extents(op):
    a, b = np.zeros((3, 2)), np.full((3, 2), np.nan)
    attrs = {"axis": 0} if op.name == "length" else {}
    assert op(a, **attrs) == op(b, **attrs)
