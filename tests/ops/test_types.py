"""What is said of a result before anything runs, its dtype, its rank and its lengths, is what NumPy
and Python make of it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
from judging import same, type_of

from s2s.errors import S2SError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import UNDEFINED, Array, Extent, List, Unknown
from s2s.ir.verify import verify
from s2s.ops.core.elementwise import select
from s2s.ops.core.record import FUNCTIONS, value
from s2s.ops.program.list_arrays import list_stack, list_unstack
from s2s.transform.forward.jvp import jvp
from s2s.transform.reverse.vjp import vjp

RNG = np.random.default_rng(5)
DTYPES = ("int64", "float32", "float64", "complex64", "complex128")
PAIRS = list(itertools.permutations(("float32", "float64", "complex64"), 2))


def some(dtype: str, *shape: int):
    """Numbers of this dtype, as NumPy has them; a matrix of them has an inverse."""
    x = RNG.integers(1, 9, shape) + (
        1j * RNG.integers(1, 9, shape) if dtype.startswith("complex") else 0
    )
    x = x + 20 * np.eye(*shape) if len(shape) == 2 else x
    return np.asarray(x).astype(dtype)[()]


def kind_of(x, name: str, manner: str):
    """The type of an argument, with lengths that are known, that are not, or of which all but the
    first are.
    """
    if not isinstance(x, np.ndarray) or manner == "named":
        return type_of(x, name, True)
    first = () if manner == "known" else (Extent(f"{name}.0", 0, False),)
    return Array(x.dtype.name, (*first, *x.shape[len(first):]))


def traced(function, kinds) -> Function:
    """What `function`, of Python's names, becomes for arguments of these types."""
    block = Block([Value(kind, name) for kind, name in zip(kinds, "xyzw")])
    with Builder(block):
        block.yields = [value(function(*block.params))]
    return verify(Function("f", block))


def agrees(rule, function, *args) -> None:
    for manner in ("known", "named", "mixed"):
        f = traced(rule, [kind_of(x, name, manner) for x, name in zip(args, "xyzw")])
        same(interpret(f, *args), function(*args), f.results[0].type)


OF_TWO = {  # name -> function, and the shapes of its operands
    "dot": (np.dot, ((2, 3), (3, 2))),
    "dot of vectors": (np.dot, ((3,), (3,))),
    "dot with a stack": (np.dot, ((2, 4), (3, 4, 5))),
    "dot of stacks": (np.dot, ((2, 1, 4), (3, 4, 5))),
    "dot of a vector with a stack": (np.dot, ((4,), (3, 4, 5))),
    "matmul": (np.matmul, ((5, 2, 4), (4, 3))),
    "outer": (np.outer, ((2,), (3,))),
    "inner": (np.inner, ((2, 3), (4, 3))),
    "kron": (np.kron, ((2, 2), (2, 3))),
    "solve for a vector": (np.linalg.solve, ((3, 3), (3,))),
    "solve for a matrix": (np.linalg.solve, ((3, 3), (3, 2))),
    "append": (np.append, ((3,), ())),
    "convolve": (np.convolve, ((4,), (3,))),
    "linspace": (lambda a, b: FUNCTIONS[np.linspace](a, b, value(5)), ((), ())),
}


@pytest.mark.parametrize("first, second", PAIRS)
@pytest.mark.parametrize("name", OF_TWO)
def test_operands_of_two_dtypes(name, first, second):
    function, shapes = OF_TWO[name]
    rule, numpys = (
        (FUNCTIONS[function], function)
        if function in FUNCTIONS
        else (function, lambda a, b: np.linspace(a, b, 5))
    )
    agrees(rule, numpys, some(first, *shapes[0]), some(second, *shapes[1]))


@pytest.mark.parametrize(
    "first, second",
    [
        ("float64", "complex128"),
        ("complex128", "float64"),
        ("float32", "float64"),
        ("float32", "complex64"),
    ],
)
@pytest.mark.parametrize("name", OF_TWO)
def test_derivatives_of_operands_of_two_dtypes(name, first, second):
    """A cotangent is of its operand's dtype, also where the result's is wider, a tangent of the
    result's; and the modes agree.
    """
    function, shapes = OF_TWO[name]
    args = [some(first, *shapes[0]), some(second, *shapes[1])]
    f = traced(
        FUNCTIONS.get(function, function),
        [kind_of(x, name, "named") for x, name in zip(args, "xy")],
    )
    y = interpret(f, *args)
    y_bar = some(y.dtype.name, *np.shape(y))
    for wrt in ([0], [1], [0, 1]):
        dots = [some(args[k].dtype.name, *np.shape(args[k])) for k in wrt]
        bars = interpret(verify(vjp(f, wrt)), *args, y_bar)[1:]
        y_dot = interpret(verify(jvp(f, wrt)), *args, *dots)[-1]
        assert y_dot.dtype == y.dtype and [bar.dtype for bar in bars] == [
            args[k].dtype for k in wrt
        ]
        moved = [
            [x + step * dots[wrt.index(k)] if k in wrt else x for k, x in enumerate(args)]
            for step in (1e-5, -1e-5)
        ]
        if min(x.dtype.type(0).real.itemsize for x in args) == 8:
            np.testing.assert_allclose(
                y_dot,
                (interpret(f, *moved[0]) - interpret(f, *moved[1])) / 2e-5,
                rtol=1e-6,
                atol=1e-7,
            )
        along = np.sum(y_bar * y_dot).real
        np.testing.assert_allclose(
            sum(np.sum(bar * dot).real for bar, dot in zip(bars, dots)),
            along,
            rtol=2e-4 if "32" in first else 1e-9,
        )


@pytest.mark.parametrize("complex_one", [None, 0, 1, 2])
def test_equations_of_which_one_matrix_is_complex(complex_one):
    args = [
        some("complex128" if k == complex_one else "float64", *shape)
        for k, shape in enumerate(((2, 2), (3, 3), (2, 3)))
    ]
    agrees(FUNCTIONS[scipy.linalg.solve_sylvester], scipy.linalg.solve_sylvester, *args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [-3, -1, 0, 1, 2, 5])
def test_diagonals_that_are_cut_off(k, dtype):
    for shape in ((3, 3), (2, 4), (4, 2)):
        agrees(
            lambda x: FUNCTIONS[np.diagonal](x, k), lambda x: np.diagonal(x, k), some(dtype, *shape)
        )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lengths_without_what_is_deleted(axis):
    for places in (0, -2, [0, 1]):
        agrees(
            lambda x: FUNCTIONS[np.delete](x, value(places), axis=value(axis)),
            lambda x: np.delete(x, places, axis),
            some("float64", 3, 4),
        )


@pytest.mark.parametrize("x", [2.625, np.float32(2.625), True, 17, np.int64(17)], ids=repr)
def test_rounded_to_decimals(x):
    agrees(lambda x, n: FUNCTIONS[round](x, n), round, x, 1)


@pytest.mark.parametrize("kind", [int, float])
def test_numbers_of_python_yield_to_those_of_numpy(kind):
    for x in (np.float64(2.5), np.float32(2.5), np.int64(2), 2, 2.5, True):
        agrees(lambda x, y: FUNCTIONS[kind](x) * y, lambda x, y: kind(x) * y, x, some("float32", 3))


@pytest.mark.parametrize("first, second", PAIRS)
def test_a_choice_is_wide_enough_for_both(first, second):
    a, b = some(first), some(second)
    f = traced(select, [type_of(x, "", True) for x in (True, a, b)])
    assert f.results[0].type.dtype == np.result_type(a, b).name


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_repeated_as_often_as_counts_say(dtype):
    for shape, axis in (((3,), None), ((3,), 0), ((3, 4), 0), ((2, 3), 1), ((2, 3), None)):
        x, counts = (
            some(dtype, *shape),
            np.array([2, 0, 3] * (2 if axis is None and len(shape) == 2 else 1)),
        )
        agrees(
            lambda x, n: FUNCTIONS[np.repeat](x, n, value(axis)),
            lambda x, n: np.repeat(x, n, axis),
            x,
            counts,
        )
        agrees(
            lambda x, n: FUNCTIONS[np.repeat](x, n, value(axis)),
            lambda x, n: np.repeat(x, n, axis),
            x,
            2,
        )
    for counts in ("float64", (3,)), ("int64", (3, 1)):
        with pytest.raises(S2SError, match="np.repeat with counts"):
            traced(lambda x, n: FUNCTIONS[np.repeat](x, n), [Array(dtype, (3,)), Array(*counts)])


def test_lists_of_which_no_item_is_known():
    f = traced(lambda xs: list_stack(xs), [List(UNDEFINED)])
    same(interpret(f, []), np.array([]), f.results[0].type)
    assert traced(lambda x: list_unstack(x, depth=1), [Unknown("x", "float32")]).results[
        0
    ].type == List(Unknown(dtype="float32"))


def test_einsum_spreads_axes_of_length_1_and_refuses_others():
    spread, other = some("float64", 2, 1), some("float64", 3, 4)
    agrees(
        lambda x, y: FUNCTIONS[np.einsum](value("ij,jk->ik"), x, y),
        lambda x, y: np.einsum("ij,jk->ik", x, y),
        spread,
        other,
    )
    known = [Array("float64", shape) for shape in ((2, 4), (3, 4))]
    with pytest.raises(S2SError, match="np.einsum: the axis 'j' is of length 4 and of length 3"):
        traced(lambda x, y: FUNCTIONS[np.einsum](value("ij,jk->ik"), x, y), known)


def test_results_of_what_is_not_known_yet():
    """Before the first call nothing is known of an argument, and nothing is claimed of what depends
    on it.
    """
    for rule in (
        lambda x: FUNCTIONS[np.linspace](value(0.0), x, value(5)),
        lambda x: FUNCTIONS[np.linspace](x, value(1.0), value(5)),
        lambda x: FUNCTIONS[np.sin](x),
        lambda x: x * 2.0,
        lambda x: FUNCTIONS[np.maximum](x, value(1.0)),
    ):
        assert traced(rule, [Unknown()]).results[0].type.dtype is None
    # which floats do not have
    for rule in (
        lambda x: FUNCTIONS[np.bitwise_and](x, value(1)),
        lambda x: FUNCTIONS[np.invert](x),
    ):
        assert traced(rule, [Unknown()]).results[0].type.dtype is None
    assert traced(lambda x: x < 1.0, [Unknown()]).results[0].type.dtype == "bool"
