"""Indices: value, type, both modes, ranks known and unknown; identities; and errors."""

import numpy as np
import pytest
from judging import array, judge, traced

from s2s.errors import Line, Source, TypeMismatchError, UnsupportedError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Value
from s2s.ir.types import INT, Array, Extent, Scalar
from s2s.ops.arrays.index import additem, getitem, put, setitem, take
from s2s.ops.arrays.index_pattern import parse_index
from s2s.ops.core.elementwise import exp
from s2s.ops.core.record import FUNCTIONS, METHODS, value
from s2s.ops.core.shape import length, spread, zeros_of

V, X, S = array(6), array(4, 5), array(2, 3, 4)
ROWS, COLUMNS = np.array([2, 0, 2]), np.array([1, 1, 3])
MASK = np.array([True, False, True, True])
FULL = slice(None)

KEYS = [
    (V, 2),
    (V, -1),
    (V, slice(1, 4)),
    (V, slice(1, -1)),
    (V, slice(None, None, -1)),
    (V, slice(None, None, 2)),
    (V, slice(-3, None)),
    (V, slice(4, 1, -1)),
    (V, slice(2, 100)),
    (V, None),
    (V, ...),
    (V, (None, slice(2, None))),
    (X, 1),
    (X, (1, 2)),
    (X, (-1, -2)),
    (X, (FULL, 0)),
    (X, (0, FULL)),
    (X, (slice(1, 3), slice(None, -2))),
    (X, (..., 0)),
    (X, (0, ...)),
    (X, (FULL, None, 2)),
    (X, (FULL, None)),
    (S, (1, ..., 2)),
    (S, (..., None)),
    (S, (0, 1)),
    (S, (FULL, 0, slice(1, 3))),
    (S, 1),
]
ARRAY_KEYS = [
    (V, (ROWS,)),
    (X, (ROWS,)),
    (X, (ROWS, COLUMNS)),
    (X, (FULL, COLUMNS)),
    (X, (ROWS, 1)),
    (X, (1, COLUMNS)),
    (X, (MASK,)),
    (X, (MASK, 0)),
    (S, (0, FULL, COLUMNS)),
    (S, (FULL, ROWS, COLUMNS)),
    (X, (ROWS[:, None], COLUMNS)),
    (V, (np.array([[0, 1], [5, 0]]),)),
    (X, (X > 0,)),
    (S, (slice(1), ROWS[:2])),
]


@pytest.mark.parametrize("x, key", KEYS, ids=str)
def test_basic_reads(x, key):
    judge(lambda x: exp(take(x, key)), lambda x: np.exp(x[key]), x)


@pytest.mark.parametrize("x, key", KEYS, ids=str)
def test_basic_writes(x, key):
    def write(x, v):
        y = x.copy()
        y[key] = v
        return y

    judge(
        lambda x, v: put(x, key, v),
        write,
        x,
        array(*x[key].shape) if x[key].shape else 2.5,
        second=False,
    )
    judge(lambda x, v: put(x * x, key, exp(v)), lambda x, v: write(x * x, np.exp(v)), x, 0.5)


def repeats(x, key) -> bool:
    """Whether an index names an element twice."""
    places = np.arange(x.size).reshape(x.shape)[key]
    return len(np.unique(places)) < places.size


def with_arrays(key, function):
    """`function` of x, v and the arrays of an index, which become arguments too."""
    arrays = [k for k in key if isinstance(k, np.ndarray)]

    def call(x, v, *rest):
        rest = list(rest)
        return function(x, tuple(rest.pop(0) if isinstance(k, np.ndarray) else k for k in key), v)

    return call, arrays


@pytest.mark.parametrize("x, key", ARRAY_KEYS, ids=str)
def test_reads_by_arrays(x, key):
    rule, arrays = with_arrays(key, lambda x, key, v: take(x, key) * v)
    function, _ = with_arrays(key, lambda x, key, v: x[key] * v)
    judge(rule, function, x, 2.0, *arrays)


@pytest.mark.parametrize(
    "x, key", [(x, key) for x, key in ARRAY_KEYS if not repeats(x, key)], ids=str
)
def test_writes_by_arrays(x, key):
    def write(x, key, v):
        y = x.copy()
        y[key] = v
        return y

    rule, arrays = with_arrays(key, lambda x, key, v: put(x, key, v))
    function, _ = with_arrays(key, write)
    judge(
        rule,
        function,
        x,
        array(*x[key].shape) if x[key].dtype != bool else 1.0,
        *arrays,
        second=False,
    )
    judge(rule, function, x, 2.0, *arrays, second=False)


@pytest.mark.parametrize(
    "x, key", [(V, (ROWS,)), (X, (ROWS, COLUMNS * 0)), (X, (ROWS, slice(1, 3)))], ids=str
)
def test_of_writes_that_meet_the_last_remains(x, key):
    def write(x, key, v):
        y = x.copy()
        y[key] = v
        return y

    rule, arrays = with_arrays(key, put)
    function, _ = with_arrays(key, write)
    judge(rule, function, x, array(*x[key].shape), *arrays, second=False)


@pytest.mark.parametrize("x, key", ARRAY_KEYS, ids=str)
def test_additions_count_repeated_indices(x, key):
    def add(x, key, v):
        y = x.copy()
        np.add.at(y, key, v)
        return y

    def rule(x, key, v):
        pattern, operands = parse_index(key)
        return additem(x, v, *operands, pattern=pattern)

    rule, arrays = with_arrays(key, rule)
    function, _ = with_arrays(key, add)
    judge(rule, function, x, array(*x[key].shape), *arrays, second=False)


def test_run_time_indices():
    judge(lambda x, i: take(x, i), lambda x, i: x[i], V, 3, second=False)
    judge(lambda x, i: take(x, (i, i + 1)), lambda x, i: x[i, i + 1], X, 2, second=False)
    judge(lambda x, i: take(x, slice(i, i + 2)), lambda x, i: x[i : i + 2], V, 2)
    judge(
        lambda x, i: take(x, slice(None, i)) * take(x, slice(None, i)),
        lambda x, i: x[:i] * x[:i],
        V,
        1,
    )
    judge(
        lambda x, i: put(x, i, 2.0),
        lambda x, i: np.where(np.arange(6) == i, 2.0, x),
        V,
        3,
        second=False,
    )


def test_writes_that_broadcast():
    def write(x, v):
        y = x.copy()
        y[1:3] = v
        return y

    for v in (2.0, array(5), array(1, 5), array(2, 1), array(2, 5)):
        judge(lambda x, v: put(x, slice(1, 3), v), write, X, v, second=False)
    judge(
        lambda x, v: put(x, slice(1, 3), v), write, X, array(1, 2, 5), modes=(True,), second=False
    )


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(axis):
    judge(
        lambda x, k: FUNCTIONS[np.take](x, k, axis=axis),
        lambda x, k: np.take(x, k, axis=axis),
        X,
        ROWS,
        second=False,
    )


def test_take_along_axis():
    order = np.argsort(X, axis=1)
    judge(
        lambda x, k: FUNCTIONS[np.take_along_axis](x, k, 1),
        lambda x, k: np.take_along_axis(x, k, 1),
        X,
        order,
    )


@pytest.mark.parametrize("function", [np.diagonal, np.diag, np.trace, np.triu, np.tril])
@pytest.mark.parametrize("k", [0, 1, -1])
def test_parts_of_a_matrix(function, k):
    judge(lambda x: FUNCTIONS[function](x, k), lambda x: function(x, k), X, second=False)


@pytest.mark.parametrize("k", [0, 2, -1])
def test_diag_of_a_vector(k):
    judge(
        lambda x: FUNCTIONS[np.diag](x, k), lambda x: np.diag(x, k), V, modes=(True,), second=False
    )


@pytest.mark.parametrize("n, axis", [(1, -1), (1, 0), (2, -1)])
def test_diff(n, axis):
    judge(lambda x: FUNCTIONS[np.diff](x, n, axis), lambda x: np.diff(x, n, axis), X, second=False)


@pytest.mark.parametrize("axis", [-1, 0])
def test_sort(axis):
    judge(lambda x: FUNCTIONS[np.sort](x, axis), lambda x: np.sort(x, axis), X)


# --------------------------------------------------------------------------------------- identities

N = Extent("x.0", 0, False)
VECTOR = Array("float64", (N,))


class building:
    """A builder whose lines run forwards, or backwards."""

    def __init__(self, backwards: bool = False):
        line = Line(Source("program.py", 1, "a[i] = v"), 1)
        self.builder = Builder(Block(), line.reversed() if backwards else line)
        self.a, self.i, self.j, self.v = (
            Value(VECTOR, "a"),
            Value(INT, "i"),
            Value(INT, "j"),
            Value(Scalar("float64"), "v"),
        )

    def __enter__(self):
        self.builder.__enter__()
        return self.a, self.i, self.j, self.v

    def __exit__(self, *exc):
        self.builder.__exit__(*exc)


def test_what_was_just_written_is_read():
    with building() as (a, i, j, v):
        assert take(put(a, i, v), i) is v
        assert take(put(a, i + 1, v), j).op.record is getitem
        row = Value(Array("float64", (Extent("x.0", -2, False),)))
        assert take(put(a, slice(1, -1), row), slice(1, -1)) is row
        assert take(put(a, slice(1, -1), v), slice(1, -1)).op.record is getitem


def test_a_python_number_is_read_as_numpys():
    with building() as (a, i, j, v):
        read = take(put(a, i, 2.0), i)
        assert isinstance(read.constant, np.float64) and read.constant == 2.0
        assert take(put(a, i, Value(Scalar("float64", weak=True))), i).op.record is getitem


def test_writing_back_what_was_read_does_nothing():
    with building() as (a, i, j, v):
        assert put(a, i, take(a, i)) is a
        assert put(a, j, take(a, i)) is not a


def test_overwritten_at_once():
    with building() as (a, i, j, v):
        assert put(put(a, i, 1.0), i, v).op.inputs[0] is a
        kept = put(a, i, 1.0)
        exp(kept)
        assert put(kept, i, v).op.inputs[0] is kept


def test_elements_of_zeros_and_spreads():
    with building(backwards=True) as (a, i, j, v):
        assert take(zeros_of(a), i).constant == 0.0
        assert take(spread(v, a), i) is v


def test_adding_to_zero_is_storing_in_reverse_sweeps_only():
    for backwards in (True, False):
        with building(backwards) as (a, i, j, v):
            pattern, operands = parse_index(i)
            assert additem(put(a, i, 0.0), v, *operands, pattern=pattern).op.record is (
                setitem if backwards else additem
            )
            assert additem(zeros_of(a), v, *operands, pattern=pattern).op.record is (
                setitem if backwards else additem
            )


@pytest.mark.parametrize(
    "first, second, is_stored",
    [(0, 1, True), (3, 0, True), (-1, -2, True), (1, 1, False), (0, -1, False), (-2, 3, False)],
)
def test_an_element_of_zeros_is_zero_until_it_is_written(first, second, is_stored):
    for backwards in (True, False):
        with building(backwards) as (a, i, j, v):
            pattern, operands = parse_index(second)
            written = additem(put(zeros_of(a), first, v), v, *operands, pattern=pattern)
            assert written.op.record is (setitem if backwards and is_stored else additem)
            assert (
                additem(put(zeros_of(a), i, v), v, *operands, pattern=pattern).op.record is additem
            )


def test_whole_slices_are_the_array():
    with building() as (a, i, j, v):
        assert take(a, FULL) is a
        assert take(a, ...) is a


def test_members_of_tuples():
    with building() as (a, i, j, v):
        pair = value((a, v))
        assert take(pair, 1) is v and take(pair, -2) is a
        assert take(value((i, j, v)), slice(1, None)).op.inputs == [j, v]


def test_slices_of_equal_bounds_are_of_equal_length():
    with building() as (a, i, j, v):
        assert take(a, slice(i, j)).type == take(a, slice(i, j)).type
        assert take(a, slice(i, j)).type != take(a, slice(j, i)).type
        assert take(a, slice(1, length(a, axis=0) - 1)).type == take(a, slice(1, -1)).type


# ------------------------------------------------------------------------------------------- errors


def refused(dims, key, message, error=TypeMismatchError):
    x = Value(Array("float64", dims), "x")
    with Builder(Block([x])), pytest.raises(error, match=message):
        take(x, key)


def test_errors():
    refused((3,), (0, 0), "2 indices for an array of 1 axes")
    refused((3,), 3, "index 3 is out of range for an axis of length 3")
    refused((3,), 1.5, "an index of type float64")
    refused((3,), slice(None, 1.5), "a slice bound of type float64")
    refused((3,), slice(None, None, 0), "step 0")
    refused((3,), True, "a truth value as an index", UnsupportedError)
    refused((3,), Value(Array("bool", (4,))), "a mask of length 4 for an axis of length 3")
    refused((3,), "k", "an index of type static k", UnsupportedError)


def test_writes_that_do_not_fit():
    x, v = Value(Array("float64", (3, 4)), "x"), Value(Array("float64", (3,)), "v")
    with Builder(Block([x, v])):
        with pytest.raises(
            TypeMismatchError,
            match=r"an array of shape \(3,\) does not fit a place of shape \(4,\)",
        ):
            put(x, 0, v)
        with pytest.raises(TypeMismatchError, match="cannot be written into"):
            put(value(1.0), 0, 2.0)


def test_method_of_a_read():
    judge(lambda x: METHODS["sum"](take(x, 1)), lambda x: x[1].sum(), X)
    assert traced(lambda x: take(x, 1), [X]).results[0].type.rank == 1
