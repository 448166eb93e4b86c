"""What records state of ops beside their derivatives, against NumPy and Python themselves."""

from __future__ import annotations

import inspect
import itertools
import warnings

import numpy as np
import pytest

import s2s
from s2s.back.loopir import ops  # noqa: F401  (those of the loop form)
from s2s.ops.core.record import ALWAYS_ARRAYS, ATTRIBUTES, COPIES, METHODS, RECORDS, VIEWS

NUMBERS = (-np.inf, -2.0, -0.0, 0.0, 0.5, 3.0, 1e308, np.inf, np.nan)
INTEGERS = (-7, -3, 0, 1, 2, 5)


def arity(record) -> int:
    if record.elementwise:
        return len(record.partials)
    return len(
        [
            p
            for p in inspect.signature(record.evaluate).parameters.values()
            if p.kind is not p.KEYWORD_ONLY
        ]
    )


def stating(**facts) -> list:
    """The records that state this."""
    return [record for record in RECORDS.values()
            if all(getattr(record, name) == fact for name, fact in facts.items())]


def results(record, samples):
    """What Python computes of each combination of the samples that does not raise."""
    for xs in itertools.product(samples, repeat=arity(record)):
        try:
            yield xs, record.evaluate(*xs)
        except (ArithmeticError, ValueError, IndexError):
            continue


QUIET = [r for r in stating(warns="never", elementwise=True) if r.name not in ("astype", "convert")]


@pytest.mark.parametrize("record", QUIET, ids=repr)
def test_what_never_warns_does_not(record):
    scalars = record.name in ("and_", "or_", "not_", "float_", "select")
    logical = record.name.startswith("bitwise")
    values = [True, False] if logical else list(NUMBERS)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for xs in itertools.product(values, repeat=len(record.partials)):
            record.evaluate(*(xs if scalars else [np.array([x]) for x in xs]))


WARNING = {
    "exp": 1e4,
    "exp2": 1e4,
    "expm1": 1e4,
    "sinh": 1e4,
    "cosh": 1e4,
    "sqrt": -1.0,
    "square": 1e200,
    "floor_divide": (1.0, 0.0),
}


@pytest.mark.parametrize("name", WARNING)
def test_what_may_warn_does(name):
    assert RECORDS[name].warns == "overflow"
    with pytest.raises(FloatingPointError), np.errstate(all="raise"):
        RECORDS[name].evaluate(*map(np.float64, np.atleast_1d(WARNING[name])))


@pytest.mark.parametrize("record", stating(keeps_dtype=True), ids=repr)
def test_choices_return_an_operand(record):
    for xs, y in results(record, NUMBERS):
        assert any(y is x or np.array_equal(y, x, equal_nan=True) for x in xs), xs


@pytest.mark.parametrize("record", stating(quick=True), ids=repr)
def test_what_is_quick_is_one_instruction(record):
    assert record.elementwise and record.cost == 1
    assert (
        record.ring
        or record.signs
        or record.extreme
        or record.converts
        or record.size
        and record.exact
    )


X = np.arange(1.0, 7.0).reshape(2, 3)
SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])
# inputs and attributes of each op whose result has the shape of one of them
OF_LIKE_SHAPE = {
    **{name: ((X, 2), {"workers": 1})
       for name in ("workers_total", "of_first_worker", "to_lanes", "from_lanes")},
    "copy": ((X,), {"order": "C"}),
    "stop_gradient": ((X,), {}),
    "contiguous": ((X.T,), {}),
    "argsort": ((X,), {"axis": 1}),
    "setitem": ((X, 1.0, 0, 1), {"pattern": ("i", "i")}),
    "additem": ((X, 1.0, 0, 1), {"pattern": ("i", "i")}),
    "inv": ((SQUARE,), {}),
    "cholesky": ((SQUARE,), {}),
    "spread": ((1.0, X), {}),
    "sum_to": ((X, X[:1]), {}),
    "zeros_like": ((X,), {"dtype": "float64"}),
    "ones_like": ((X,), {"dtype": None}),
    "empty_like": ((X,), {"dtype": None}),
    "reshape_like": ((X, X.T), {}),
    "unrepeat": ((np.repeat(X, 2, 1), X, 2), {"axis": 1}),
    "untile": ((np.tile(X, (2, 1)), X, 2, 1), {}),
    "add_along_axis": ((X[:, :1], np.array([[0], [2]]), X), {"axis": 1}),
}


@pytest.mark.parametrize(
    "record", [r for r in RECORDS.values() if r.same_shape is not None and r.across is None],
    ids=repr
)
def test_shapes_that_are_kept(record):
    inputs, attrs = OF_LIKE_SHAPE[record.name]
    assert np.shape(record.evaluate(*inputs, **attrs)) == np.shape(inputs[record.same_shape])


@pytest.mark.parametrize("record", stating(returns=0), ids=repr)
def test_checks_return_their_operand(record):
    found = list(results(record, INTEGERS))
    assert found and all(y == xs[0] for xs, y in found)


def in_the_shape_of(record, x, other):
    """The result of an op that gives an array the shape of another, in whatever way it is told that
    shape.
    """
    return record.evaluate(x, other) if record.shapes else record.evaluate(x, *other.shape)


@pytest.mark.parametrize("record", stating(reshapes=True), ids=repr)
def test_reshaped_elements_keep_their_order(record):
    y = in_the_shape_of(record, np.arange(6.0).reshape(2, 3), np.zeros((3, 1, 2)))
    assert y.shape == (3, 1, 2) and np.array_equal(y.ravel(), np.arange(6.0))


@pytest.mark.parametrize("record", stating(broadcasts=True), ids=repr)
def test_broadcasts_repeat_elements_or_add_up_repeated_ones(record):
    column, matrix = np.arange(2.0)[:, None], np.ones((2, 3))
    if record.is_broadcast:
        np.testing.assert_array_equal(in_the_shape_of(record, column, matrix), column * matrix)
    else:
        np.testing.assert_array_equal(
            in_the_shape_of(record, column * matrix, column), 3.0 * column
        )


OF_LOOPS = [
    r for r in RECORDS.values() if r.helper is not None and r.helper.__module__ == ops.__name__
]


@pytest.mark.parametrize("record", OF_LOOPS, ids=repr)
def test_checks_raise(record):
    def raises(*xs):
        try:
            record.helper(*xs)
        except (ValueError, IndexError, OverflowError):
            return True

    count = len(inspect.signature(record.helper).parameters)
    assert any(raises(*xs) for xs in itertools.product(INTEGERS, repeat=count)) == record.checks


LISTS = {
    "tape_push": ([1.0, 2.0], 3.0),
    "tape_pop": ([1.0, 2.0],),
    "list_insert": ([1.0, 2.0], 3.0, 0),
    "list_pop_at": ([1.0, 2.0], 0),
}


@pytest.mark.parametrize("record", [r for r in RECORDS.values() if r.growth], ids=repr)
def test_lists_grow_by_what_is_stated(record):
    xs, *others = LISTS[record.name]
    y = record.evaluate(xs, *others)
    assert len(y[0] if record.growth < 0 else y) == len(xs) + record.growth


@pytest.mark.parametrize("record", stating(accumulates=True), ids=repr)
def test_accumulating_adds(record):
    kind = {"pattern": ("i",)} if record.indices is not None else {"kind": "number"}
    y = record.evaluate(
        np.array([1.0, 2.0]) if record.indices is not None else [1.0, 2.0], 5.0, 1, **kind
    )
    assert list(y) == [1.0, 7.0]


OF_ARRAYS = ("length", "size")


@pytest.mark.parametrize(
    "record", [r for r in stating(natural=True)
               if r.name not in OF_ARRAYS and r.across is None], ids=repr
)
def test_natural_numbers_are_not_negative(record):
    # all of these but at_least_zero are asked for lengths
    lengths = [n for n in INTEGERS if n >= 0]
    for xs, y in results(record, INTEGERS if record.name == "at_least_zero" else lengths):
        assert y >= 0, xs


@pytest.mark.parametrize(
    "record", [r for r in RECORDS.values() if r.of_truths is not None], ids=repr
)
def test_arithmetic_of_truths(record):
    for a, b in itertools.product(np.array([False, True]), repeat=2):
        y, expected = record.evaluate(a, b), record.of_truths.evaluate(a, b)
        assert type(y) is type(expected) is np.bool_ and y == expected


@pytest.mark.parametrize("record", [r for r in RECORDS.values() if r.python], ids=repr)
def test_operators_compute_what_they_spell(record):
    xs = (
        [np.array([[3, 2], [1, 2]]) for _ in "ab"]
        if record.name == "matmul"
        else [3, 2, 1][: len(record.partials)]
    )
    expected = eval(record.python, {}, dict(zip("abc", xs)))
    assert np.array_equal(record.evaluate(*xs), expected)


# what NumPy is called with, besides the array; matrices of 3 x 3
ARGUMENTS = {
    "reshape": (9,),
    "broadcast_to": ((2, 3, 3),),
    "swapaxes": (0, 1),
    "moveaxis": (0, 1),
    "expand_dims": (0,),
    "split": (3,),
    "array_split": (2,),
    "hsplit": (3,),
    "vsplit": (3,),
    "dsplit": (1,),
    "astype": (np.float64,),
}


def called(name: str, x: np.ndarray):
    """NumPy's function, method or attribute of this name, of `x`."""
    if name in ATTRIBUTES and not hasattr(np, name):
        return np.asarray(getattr(x, name)) if name != "flat" else x.reshape(-1)  # as s2s reads it
    function = getattr(np, name, None)
    if function is None or not callable(function) or name == "astype":
        return getattr(x, name)(*ARGUMENTS.get(name, ()))
    return function(x, *ARGUMENTS.get(name, ()))


SHARED = [n for n, view in VIEWS.items() if view != "maybe"]


@pytest.mark.parametrize("name", SHARED)
def test_views_share_memory(name):
    x = np.arange(9.0).reshape(3, 3)
    x = x[:, :, None] if name == "dsplit" else x * 1j if VIEWS[name] == "component" else x
    y = called(name, x)
    parts = y if isinstance(y, (list, tuple)) else [y]
    assert all(np.shares_memory(part, x) for part in parts)
    match VIEWS[name]:
        case "involution":
            assert np.array_equal(called(name, y), x) and np.shares_memory(called(name, y), x)
        case "reshape":
            assert [n for n in y.shape if n != 1] == [n for n in x.shape if n != 1]
        case "transpose":
            assert sorted(y.shape) == sorted(x.shape)
        case "contiguous":
            assert not np.shares_memory(called(name, x.T), x) or name == "flat"
        case "read-only":
            assert not y.flags.writeable
        case "component":
            assert y.dtype == float
        case view:
            assert view == "parts"


@pytest.mark.parametrize("name", sorted(COPIES))
def test_copies_share_nothing(name):
    x = np.arange(9.0).reshape(3, 3)
    y = called(name, x) if name not in ("conj", "conjugate") else np.conjugate(x)
    assert not np.shares_memory(y, x)
    assert name in METHODS or hasattr(np, name)


@pytest.mark.parametrize("name", sorted(ALWAYS_ARRAYS))
def test_arrays_of_one_number(name):
    arguments = {
        "reshape": (1.0, ()),
        "full": ((), 1.0),
        "full_like": (1.0, 2.0),
        "zeros": ((),),
        "ones": ((),),
        "empty": ((),),
    }.get(name, (1.0,))
    assert isinstance(getattr(np, name)(*arguments), np.ndarray)


def test_a_natural_number_is_not_cut_off_at_zero():
    """The length of x[:n] was max(slice_bound(n, len(x)), 0), although `slice_bound` is never
    negative.
    """
    def f(x, y):
        return x[:len(y)] + y

    x, y = np.arange(5.0), np.array([1.0, 2.0, 4.0])
    loops = s2s.jit(f).lower(x, y).loops
    assert "slice_bound(" in loops and "max(slice_bound" not in loops
    namespace = {}
    exec(str(loops), namespace)
    assert np.array_equal(namespace["f"](x, y), x[:3] + y)
