"""Lower bounds: each that a record states, or implies, against what NumPy computes of operands that
are NaN, infinite, -0.0, tiny or the least integer; and which tests are left out for them.
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import s2s
from s2s.analysis.affine import lower_bound
from s2s.back.loopir import ops  # noqa: F401  (those of the loop form)
from s2s.errors import TypeMismatchError
from s2s.ir.builder import Builder
from s2s.ir.graph import MISSING, Block, Op, Value
from s2s.ir.types import FLOAT, INT, Array, Scalar, Unknown
from s2s.ops.core.elementwise import absolute, exp, max_, multiply, power, select, square
from s2s.ops.core.record import RECORDS, value
from s2s.ops.core.signs import (
    Least,
    is_never_negative,
    is_nonzero,
    least,
    rule_of,
    sure_least,
)

FLOATS = (-math.inf, -2.5, -1.0, -1e-300, -0.0, 0.0, 5e-324, 1e-200, 0.1, 0.5, 1.0, 2.0, 3.5, 1e300,
          math.inf, math.nan)
WORDS = (-2**63, -2**62, -129, -7, -1, 0, 1, 2, 3, 127, 3037000500, 2**62, 2**63 - 1)
PYTHONS = (-2**63 + 1, -129, -7, -1, 0, 1, 2, 3, 2**63 - 1)
BYTES = (-128, -127, -100, -1, 0, 1, 2, 12, 100, 127)
UNSIGNED = (0, 1, 2, 100, 200, 255)
SAMPLES = {
    Scalar("float64", weak=True): FLOATS,
    Scalar("int64", weak=True): PYTHONS,
    Array("float64", (1,)): FLOATS,
    Array("float32", (1,)): FLOATS,
    Array("int64", (1,)): WORDS,
    Array("int8", (1,)): BYTES,
    Array("uint8", (1,)): UNSIGNED,
    Array("bool", (1,)): (False, True),
    Scalar("bool", weak=True): (False, True),
    Scalar("float32"): FLOATS,
    Scalar("int8"): BYTES,
    Scalar("uint8"): UNSIGNED,
}
BOUNDS = (None, -1, -0.5, 0, 0.1, 1, 2)
CONSTANTS = (-1, 0, 2, 0.1, 2.0, 3.0)


def rules(elementwise: bool):
    return [record for record in RECORDS.values()
            if record.elementwise == elementwise and rule_of(record) is not None]


def numbers(type, samples) -> list:
    if isinstance(type, Scalar):
        return list(samples) if type.weak else list(np.array(samples).astype(type.dtype))
    return [np.array([x]).astype(type.dtype) for x in samples]


def operands(types, bounds=BOUNDS, constants=CONSTANTS):
    """For these types: operands of which a bound is known, or that are constants, these bounds, and
    numbers that they may be.
    """
    choices = []
    for type in types:
        samples = numbers(type, SAMPLES[type])
        choices.append([
            *((None, bound, [x for x in samples if bound is None or not (x < bound)])
              for bound in bounds),
            *((c, None, [c]) for c in constants)])
    for chosen in itertools.product(*choices):
        xs = [Value(type) if c is None else value(c) for type, (c, _, _) in zip(types, chosen)]
        known = {x: Least(bound) for x, (_, bound, _) in zip(xs, chosen) if bound is not None}
        yield xs, known, [samples for *_, samples in chosen]


def computed(record, attrs, types, samples) -> np.ndarray:
    """What NumPy, or Python, computes of all combinations of these samples."""
    arrays = [k for k, x in enumerate(samples) if x and isinstance(x[0], np.ndarray)]
    grids = np.meshgrid(*(np.stack(samples[k]).ravel() for k in arrays), indexing="ij")
    xs, found = [None] * len(types), []
    for k, grid in zip(arrays, grids if arrays else []):
        xs[k] = grid
    alone = [k for k in range(len(types)) if k not in arrays]
    for numbers in itertools.product(*(samples[k] for k in alone)):
        for k, x in zip(alone, numbers):
            xs[k] = x
        try:
            found.append(np.ravel(record.evaluate(*xs, **attrs)))
        except (ArithmeticError, TypeError, ValueError):
            continue
    found = [x for x in found if x.size and x.dtype.kind != "c"]
    return np.array([x for several in found for x in several.tolist()], dtype=object)


def check(record, types, attrs, **which) -> int:
    """The number of results of operands of these types that have a bound, which all keep."""
    told = 0
    with Builder(Block()), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for xs, known, samples in operands(types, **which):
            if record.name == "power":  # Python's would be long
                samples[-1] = [n for n in samples[-1] if not np.all(np.abs(n) > 200)]
            if not any(isinstance(x.type, Array) or x.constant is MISSING for x in xs):
                continue
            try:
                y = record(*xs, **attrs)
            except (TypeMismatchError, ArithmeticError, ValueError):
                continue
            low = sure_least(y, lambda x, bound, known=known: known.get(x))
            if low is not None and (results := computed(record, attrs, types, samples)).size:
                told += results.size
                assert not np.any(results < low), (types, samples, known, low)
    return told


CASTS = [{"dtype": d} for d in ("int8", "int64", "uint8", "float32")]
ATTRS = {"astype": CASTS, "convert": CASTS}
PYTHONS_FLOAT, PYTHONS_INT, TRUTH = (Scalar(d, weak=True) for d in ("float64", "int64", "bool"))
ONE = {d: Array(d, (1,)) for d in ("float64", "float32", "int64", "int8", "uint8", "bool")}
PAIRS = [
    *((t, t) for t in SAMPLES),
    *((ONE[d], PYTHONS_FLOAT) for d in ("float64", "float32")),
    (ONE["float32"], ONE["int8"]), (ONE["float64"], ONE["int64"]), (PYTHONS_INT, PYTHONS_FLOAT),
    (PYTHONS_FLOAT, PYTHONS_INT), (ONE["uint8"], ONE["int8"])]


@pytest.mark.parametrize("record", rules(elementwise=True), ids=str)
def test_no_result_is_less(record):
    few = {"bounds": (None, 0, 2), "constants": (0, 0.1, -1)}
    match len(record.partials):
        case 1:
            kinds, which = [(t,) for t in SAMPLES], {}
        case 2:
            kinds, which = PAIRS, {}
        case 3:
            first = [TRUTH, ONE["bool"]] if record.selects else [None]
            kinds = [(t if c is None else c, t, t) for t in SAMPLES for c in first
                     if c is None or isinstance(c, Scalar) == isinstance(t, Scalar)]
            which = few
    told = sum(check(record, types, attrs, **which)
               for types in kinds
               if not record.returns_operand or all(isinstance(t, Scalar) for t in types)
               for attrs in ATTRS.get(record.name, [{}]))
    assert told


# of each op on arrays: the operands after the first, and attributes
REDUCED = {"axis": 1, "keepdims": False}
OTHER = np.arange(6.0).reshape(3, 2)
OF_ARRAYS = {
    "item": ((), {"index": 1}), "spread": ((OTHER.T,), {}), "shaped_like": ((OTHER.T,), {}),
    "as_long_as": ((OTHER.T,), {"axis": 0, "other": 0}), "zeros_like": ((), {"dtype": "float64"}),
    "copy": ((), {"order": "C"}), "getitem": ((1,), {"pattern": ("i",)}),
    "reshape": ((3, 2), {}), "reshape_like": ((OTHER,), {}), "ravel": ((), {}),
    "expand_dims": ((), {"axis": 0}), "squeeze": ((), {"axis": None}), "atleast_1d": ((), {}),
    "atleast_2d": ((), {}), "atleast_3d": ((), {}), "transpose": ((), {"axes": (1, 0)}),
    "swapaxes": ((), {"a": 0, "b": 1}),
    "moveaxis": ((), {"a": 0, "b": 1}), "flip": ((), {"axis": 0}),
    "roll": ((1,), {"axis": 0}), "zeros": ((3,), {"dtype": "float64"}),
    "ones": ((3,), {"dtype": "float64"}), "ones_like": ((), {"dtype": None}),
    "full": ((2, 2), {}), "full_like": ((OTHER,), {}), "as_array": ((), {"function": "asarray"}),
    "concatenate": (("same",), {"axis": 0}), "append": (("same",), {}),
    "stack": (("same",), {"axis": 0}), "stop_gradient": ((), {}), "aside": ((), {}),
    "root": ((1, OTHER), REDUCED), "norm_of": ((OTHER,), {"ord": 3, **REDUCED}),
    "sum": ((), REDUCED), "max": ((), REDUCED), "min": ((), REDUCED), "prod": ((), REDUCED),
    "nanmax": ((), REDUCED), "nanmin": ((), REDUCED), "added_up": ((), {"axis": 0}),
    "added_up_lanes": ((), {"axis": 0}), "cumsum": ((), {"axis": 1}), "cumprod": ((), {"axis": 1}),
    "matmul": (("same",), {}), "repeat": ((2,), {"axis": 1}), "tile": ((2, 2), {}),
    "broadcast_to": ((2, 2, 3), {}), "finite": ((), {}),
    "take_along_axis": ((np.array([[0], [2]]),), {"axis": 1}), "diagonal": ((), {"k": 0}),
    "triu": ((), {"k": 0}), "tril": ((), {"k": 0}), "fitted": ((5,), {"axis": 1}),
    "delete": ((1,), {"axis": 0}), "insert": ((1, 2), {}), "hypotenuse": ((1.5, -2.0), {}),
    "narrow": ((), {"dtype": "int8"}),
    **dict.fromkeys(("to_lanes", "from_lanes"), ((2,), {"workers": 1})),
    **{f"within_{what}": ((True,), {}) for what in ("bounds", "axes", "one", "hundred")},
}
# `stands_for` says what these equal, if anything; the operand of `again` is one of a trace
OTHERWISE = {"complex_as_if", "listed", "matrix_function", "matrix_function_along", "again",
             "tuple"}


@pytest.mark.parametrize(
    "record", [r for r in rules(elementwise=False)
               if not (r.natural or r.checks or r.on_tapes or r.name.startswith(("list_", "hash_"))
                       or r.name in OTHERWISE or r.name in ("tape_len", "supposed_length",
                                                            "nonempty_length"))], ids=str)
def test_no_element_is_less(record):
    others, attrs = OF_ARRAYS[record.name]
    told = 0
    for dtype, bound in itertools.product(("float64", "float32", "int8", "int64", "uint8", "bool"),
                                          BOUNDS):
        samples = np.array(SAMPLES[Array(dtype, (1,))]).astype(dtype)
        samples = samples[~(samples < bound)] if bound is not None else samples
        a = np.resize(samples, (2, 3) if record.name != "matmul" else 3) if len(samples) else None
        a = a[0, 0] if record.name in ("full", "full_like", "hypotenuse") and a is not None else a
        if a is None or record.name == "finite" and not np.isfinite(a).all():
            continue
        a = np.float64(a) if record.name == "hypotenuse" else a
        rest = [a if isinstance(x, str) else x for x in others]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = np.asarray(record.evaluate(*([] if record.fill is not None and record.allocates
                                             is not None else [a]), *rest, **attrs))
        x = Value(Array(a.dtype.name, np.shape(a)))
        inputs = [x, *(x if v is a else Value(Array(v.dtype.name, v.shape))
                       if isinstance(v, np.ndarray) else number(v) for v in rest)]
        op = Op(record, inputs, attrs, [], [])
        op.outputs.append(Value(Array(y.dtype.name, y.shape), "", op))
        low = sure_least(op.outputs[0], lambda v, _, x=x, bound=bound:
                         Least(bound) if v is x and bound is not None else None)
        if low is not None:
            told += 1
            assert not np.any(y.astype(object) < low), (dtype, bound, low, y)
    assert told


def number(x) -> Value:
    with Builder(Block()):
        return value(x)


def test_of_huge_numbers_nothing_is_computed():
    """A bound is a number of one word, although the square of 3, squared 30 times, is none."""
    n = max_in(Value(INT), 3)
    with Builder(Block()):
        for _ in range(20):
            n = multiply(n, n)
    assert 0 < sure_least(n) <= 2**63


def max_in(*xs) -> Value:
    with Builder(Block()):
        return RECORDS["max_"](*map(value, xs))


def test_signs_of_real_numbers_and_of_what_is_computed():
    x, n, k = Value(FLOAT), Value(INT), Value(Scalar("int64"))
    with Builder(Block()):
        assert is_nonzero(exp(x)) and sure_least(exp(x)) == 0  # it underflows
        assert is_never_negative(multiply(k, k)) and sure_least(multiply(k, k)) is None  # it wraps
        assert sure_least(multiply(n, n)) == 0 and sure_least(absolute(k)) is None
        assert is_never_negative(1 / multiply(x, x)) and sure_least(1 / exp(x)) is None  # -0.0?
        assert least(1 + multiply(x, x)) == Least(1)
        of_any = Value(Unknown(None, None))
        assert is_never_negative(square(of_any)) and sure_least(square(of_any)) is None
        z = Value(Scalar("complex128"))
        assert least(multiply(z, z)) is None and least(power(z, 2)) is None


def test_counters():
    """Bounds of what is computed from counters of loops, through ops."""
    i, n = Value(INT), Value(INT)
    with Builder(Block()):
        loop = Op(RECORDS["for"], [value(2), n, value(1)], {}, [], [])
        counters = {i: loop}
        assert lower_bound(max_(i - 5, 0), counters) == 0
        assert lower_bound(i - 1, counters) == 1
        assert lower_bound(select(Value(Scalar("bool", weak=True)), i, i + 1), counters) == 2
        assert lower_bound(n, counters) is None


def redundant(x, n):
    t = max(n, 0)
    if t < 0:
        raise ValueError("t is negative")
    if len(x) < 0 or np.sum(x * x) < 0:
        raise ValueError("x is negative")
    assert t >= 0
    y = np.zeros(t)
    for i in range(t):
        y[i] = x[i % len(x)]
    return np.repeat(y, abs(n))


def needed(x, k, n):
    if n - 1 < 0:
        raise ValueError("n")
    if k[0] * k[0] < 0:
        raise ValueError("wrapped around")
    if np.abs(k[1]) < 0:
        raise ValueError("wrapped around")
    if np.sqrt(x[0]) >= 0:
        return np.sum(x) * n
    return np.nan


def test_tests_of_what_is_never_negative_are_left_out():
    args = np.array([1.0, 2.0, 4.0]), 2
    found = s2s.jit(redundant).lower(*args)
    assert "raise" not in str(found.source)
    assert "< 0" not in str(found.loops) and "count_of" not in str(found.loops)
    namespace = {}
    exec(str(found.loops), namespace)
    assert np.array_equal(namespace["redundant"](*args), redundant(*args))


def test_tests_of_what_may_wrap_around_or_be_nan_stay():
    x, k = np.array([1.0, 2.0]), np.array([2, 3])
    source = str(s2s.jit(needed).lower(x, k, 1).source)
    assert source.count("raise ValueError") == 3 and ">= 0" in source
    namespace = {}
    exec(source, namespace)
    for a, b, n in ((x, k, 1), (-x, k, 1), (x, k, 0), (x, np.array([3037000500, 1]), 1),
                    (x, np.array([1, -2**63]), 1)):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = needed(a, b, n)
            except ValueError as error:
                with pytest.raises(ValueError, match=str(error)):
                    namespace["needed"](a, b, n)
            else:
                np.testing.assert_array_equal(namespace["needed"](a, b, n), expected)
