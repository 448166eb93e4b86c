"""Shapes and arrangements: value, type, both modes, ranks known and unknown; and how they read."""

import ast

import numpy as np
import pytest
from judging import array, judge, traced

from s2s.errors import TypeMismatchError, UnsupportedError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import INT, Array, Extent, Scalar, Unknown
from s2s.ops.arrays.index import take
from s2s.ops.core.control import for_loop, item
from s2s.ops.core.elementwise import exp
from s2s.ops.core.record import ATTRIBUTES, FUNCTIONS, METHODS, value
from s2s.ops.core.shape import extent_of, length, shape_of, size_of, spread, sum_to

V, X, S = array(6), array(3, 4), array(2, 3, 4)
N, M = Extent("x.0", 0, False), Extent("x.1", 0, False)
VECTOR, MATRIX = Array("float64", (N,)), Array("float64", (N, M))


def same_as(function, *args, **keywords):
    """A rule and the NumPy function that it is to be like."""
    return lambda *xs: FUNCTIONS[function](*xs, *args, **keywords), lambda *xs: function(
        *xs, *args, **keywords
    )


ARRANGED = [
    (np.reshape, X, ((4, 3),)),
    (np.reshape, X, (-1,)),
    (np.reshape, X, ((2, -1),)),
    (np.reshape, V, ((2, 3),)),
    (np.reshape, X, ((12, 1),)),
    (np.ravel, X, ()),
    (np.ravel, V, ()),
    (np.transpose, X, ()),
    (np.transpose, V, ()),
    (np.transpose, S, ((1, 2, 0),)),
    (np.transpose, S, ((-1, 0, 1),)),
    (np.swapaxes, S, (0, 2)),
    (np.swapaxes, S, (-1, 1)),
    (np.moveaxis, S, (0, -1)),
    (np.moveaxis, S, ((0, 1), (2, 0))),
    (np.expand_dims, X, (0,)),
    (np.expand_dims, X, (-1,)),
    (np.expand_dims, X, ((0, 2),)),
    (np.squeeze, array(1, 3, 1), ()),
    (np.squeeze, array(1, 3, 1), (0,)),
    (np.squeeze, array(1, 3, 1), ((0, -1),)),
    (np.atleast_1d, V, ()),
    (np.atleast_2d, V, ()),
    (np.atleast_2d, X, ()),
    (np.atleast_3d, X, ()),
    (np.flip, X, ()),
    (np.flip, X, (1,)),
    (np.flip, X, ((0, 1),)),
    (np.flipud, X, ()),
    (np.fliplr, X, ()),
    (np.roll, V, (2,)),
    (np.roll, X, (1, 0)),
    (np.roll, X, (-1, -1)),
    (np.roll, X, (3,)),
    (np.roll, X, ((2, -1), (0, 1))),
    (np.roll, X, (1, (1, 0))),
    (np.roll, X, ((1, 2), 1)),
    (np.roll, X, ((1, 2),)),
    (np.repeat, V, (2,)),
    (np.repeat, X, (3, 0)),
    (np.repeat, X, (2, 1)),
    (np.repeat, X, (2,)),
    (np.tile, V, (3,)),
    (np.tile, X, ((2, 1),)),
    (np.tile, V, ((2, 2),)),
    (np.tile, X, (2,)),
    (np.broadcast_to, V, ((4, 6),)),
    (np.broadcast_to, array(3, 1), ((3, 5),)),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("function, x, args", ARRANGED, ids=lambda x: getattr(x, "__name__", None))
def test_arrangements(function, x, args):
    judge(*same_as(function, *args), x, second=False)


@pytest.mark.parametrize("function", [np.atleast_1d, np.atleast_2d, np.ravel])
def test_of_a_number(function):
    judge(FUNCTIONS[function], function, 2.5, modes=(True,), second=False)


def test_methods_and_attributes():
    judge(lambda x: METHODS["reshape"](x, 4, 3), lambda x: x.reshape(4, 3), X, second=False)
    judge(
        lambda x: METHODS["reshape"](x, (4, value(3))), lambda x: x.reshape((4, 3)), X, second=False
    )
    judge(lambda x: METHODS["transpose"](x, 1, 0), lambda x: x.transpose(1, 0), X, second=False)
    judge(lambda x: METHODS["transpose"](x), lambda x: x.T, X, second=False)
    judge(ATTRIBUTES["T"], lambda x: x.T, X, second=False)
    judge(METHODS["flatten"], lambda x: x.flatten(), X, second=False)
    judge(lambda x: METHODS["squeeze"](x), lambda x: x.squeeze(), array(1, 4), second=False)
    judge(lambda x: METHODS["swapaxes"](x, 0, 1), lambda x: x.swapaxes(0, 1), X, second=False)


def test_counts():
    judge(ATTRIBUTES["size"], lambda x: x.size, X, derivative=False)
    judge(ATTRIBUTES["ndim"], lambda x: x.ndim, X, derivative=False)
    judge(FUNCTIONS[len], len, X, derivative=False)
    judge(lambda x: FUNCTIONS[np.size](x, 1), lambda x: np.size(x, 1), X, derivative=False)
    judge(
        lambda x: item(ATTRIBUTES["shape"](x), index=1), lambda x: x.shape[1], X, derivative=False
    )


JOINS = [
    (np.concatenate, 0),
    (np.concatenate, 1),
    (np.stack, 0),
    (np.stack, 1),
    (np.stack, -1),
    (np.concatenate, -1),
    (np.concatenate, None),
]


@pytest.mark.parametrize("function, axis", JOINS)
def test_joins(function, axis):
    judge(
        lambda x, y: FUNCTIONS[function]((x, y), axis=axis),
        lambda x, y: function((x, y), axis=axis),
        X,
        array(3, 4),
        second=False,
    )


@pytest.mark.parametrize("function", [np.hstack, np.vstack, np.column_stack])
@pytest.mark.parametrize("x", [V, X], ids=["vectors", "matrices"])
def test_stacks(function, x):
    judge(
        lambda x, y: FUNCTIONS[function]((x, y)),
        lambda x, y: function((x, y)),
        x,
        2 * x,
        modes=(True,),
        second=False,
    )


def test_joins_of_unequal_lengths():
    judge(
        lambda x, y, z: FUNCTIONS[np.concatenate]((x, y, z)),
        lambda x, y, z: np.concatenate((x, y, z)),
        V,
        array(2),
        array(3),
    )
    judge(lambda x, y: FUNCTIONS[np.append](x, y), np.append, V, 2.0, modes=(True,))
    judge(
        lambda x, y: FUNCTIONS[np.stack]((x, y)),
        lambda x, y: np.stack((x, y)),
        1.0,
        2.0,
        modes=(True,),
    )


@pytest.mark.parametrize(
    "x, y",
    [
        (X, array(4)),
        (X, 2.0),
        (X, array(3, 1)),
        (X, array(1, 4)),
        (S, array(3, 1)),
        (X, array(1, 1)),
        (V, V),
        (S, array(1, 4)),
    ],
    ids=lambda x: str(np.shape(x)),
)
def test_broadcasting_is_undone(x, y):
    judge(lambda x, y: x * exp(y), lambda x, y: x * np.exp(y), x, y, second=False)


def test_broadcasting_of_axes_that_may_be_one():
    """x[k:] may be of length 1 at run time, whatever its type says."""
    for cut in (5, 3):
        judge(
            lambda x, y: take(x, slice(cut, None)) * take(y, slice(cut, None)),
            lambda x, y: x[cut:] * y[cut:],
            V,
            array(6),
            modes=(True,),
        )
    judge(
        lambda x, y: take(x, slice(5, None)) * take(y, slice(1, 4)),
        lambda x, y: x[5:] * y[1:4],
        V,
        array(6),
        modes=(True,),
    )


# ------------------------------------------------------------------------------------ how they read


def params(*types):
    return [Value(t, name) for t, name in zip(types, "xyz")]


def spelled(v: Value) -> str:
    def expression(v):
        if v.op is None:
            return ast.Name(v.name, ast.Load())
        return v.op.record.syntax(*map(expression, v.op.inputs), **v.op.attrs)

    return ast.unparse(expression(v))


def reads(rule, *types) -> str:
    xs = params(*types)
    with Builder(Block(xs)):
        return spelled(value(rule(*xs)))


@pytest.mark.parametrize(
    "type, text",
    [
        (Scalar("float64"), "np.sum(x)"),
        (Array("float64", (M,)), "np.sum(x, axis=0)"),
        (Array("float64", (1, M)), "np.sum(x, axis=0, keepdims=True)"),
        (Array("float64", (N, 1)), "np.sum(x, axis=1, keepdims=True)"),
        (MATRIX, "x"),
        (Array("float64", (1,)), "np.sum(np.sum(x, axis=0), axis=0, keepdims=True)"),
        (Array("float64", (1, 1)), "np.sum(x, axis=(0, 1), keepdims=True)"),
        (Unknown("y"), "sum_to_shape(x, np.shape(y))"),
        (Array("float64", (Extent("d1"),)), "sum_to_shape(x, y.shape)"),
    ],
)
def test_sum_to_is_plain_sums_where_ranks_are_known(type, text):
    assert reads(sum_to, MATRIX, type) == text


def test_spread():
    assert reads(lambda x: spread(value(1.0), x), MATRIX) == "np.ones(x.shape)"
    assert reads(lambda x: spread(value(2.0), x), Unknown("x")) == "np.full(np.shape(x), 2.0)"
    assert reads(spread, VECTOR, VECTOR) == "x"


def test_lengths():
    assert reads(lambda x: length(x, axis=0), MATRIX) == "len(x)"
    assert reads(lambda x: length(x, axis=-1), MATRIX) == "x.shape[1]"
    assert reads(lambda x: length(x, axis=1), Array("float64", (N, 3))) == "3"
    assert reads(size_of, MATRIX) == "x.size"
    assert reads(size_of, Unknown("x")) == "np.size(x)"
    assert reads(lambda x: item(shape_of(x), index=1), Unknown("x")) == "x.shape[1]"


def test_new_axes():
    def at(axis):
        return lambda x: FUNCTIONS[np.expand_dims](x, axis)

    assert reads(at(1), VECTOR) == "x[:, None]"
    assert reads(at(0), VECTOR) == "x[None, :]"
    assert reads(at((0, 2)), VECTOR) == "x[None, :, None]"
    assert reads(at(-1), Unknown("x")) == "np.expand_dims(x, -1)"


def test_shapes_are_asked_of_what_lives():
    assert reads(lambda x: size_of(exp(x) * 2), MATRIX) == "x.size"
    assert reads(lambda x: size_of(exp(x) * 2), Unknown("x")) == "np.size(x)"
    assert (
        reads(lambda x, y: sum_to(y, exp(x)), Unknown("x"), Unknown("y"))
        == "sum_to_shape(y, np.shape(x))"
    )


def test_transposes_cancel():
    def twice(x):
        return FUNCTIONS[np.transpose](FUNCTIONS[np.transpose](x))

    assert reads(twice, MATRIX) == "x" == reads(twice, Unknown("x"))
    assert reads(lambda x: FUNCTIONS[np.swapaxes](x, 0, 1), MATRIX) == "x.T"


def test_reshapes_meet():
    assert (
        reads(lambda x: METHODS["reshape"](METHODS["reshape"](x, -1, 1), -1), MATRIX)
        == "np.reshape(x, -1)"
    )
    assert reads(lambda x: METHODS["reshape"](x, -1), VECTOR) == "x"


def test_lengths_of_what_a_loop_carries_are_asked_before_it():
    x = Value(VECTOR, "x")
    with Builder(Block([x])) as builder:
        for_loop(0, 3, 1, [x, 0], lambda i, u, s: [u * 2, s + length(u, axis=0)], names=["u", "s"])
    *outside, loop = builder.block.ops
    assert [op.inputs for op in outside if op.name == "length"] == [[x]]
    assert "length" not in [op.name for op in loop.blocks[0].ops]


def test_lengths_that_a_loop_changes_are_asked_inside():
    x = Value(VECTOR, "x")
    with Builder(Block([x])) as builder:
        _, total = for_loop(
            0, 3, 1, [x, 0], lambda i, u, s: [take(u, slice(1, None)), s + length(u, axis=0)]
        )
        builder.block.yields = [total]
    loop = total.op
    assert "length" in [op.name for op in loop.blocks[0].ops]
    assert interpret(Function("f", builder.block), np.zeros(5)) == 5 + 4 + 3


def test_a_carry_keeps_its_length_where_extents_meet():
    x, y = params(VECTOR, Array("float64", (Extent("y.0", 0, False),)))
    with Builder(Block([x, y])):
        (same,) = for_loop(0, 3, 1, [x], lambda i, h: [y * 2 + h])
        (other,) = for_loop(0, 3, 1, [x], lambda i, h: [y * 2])
    assert same.type == VECTOR
    assert other.type.dims not in (x.type.dims, y.type.dims)


def test_extents_of_equal_numbers_are_equal():
    n, x = Value(INT, "n"), Value(MATRIX, "x")
    with Builder(Block([n, x])):
        assert extent_of(n) == extent_of(n)
        assert extent_of(length(x, axis=1)) == M
        assert extent_of(length(x, axis=0) - 1) == Extent("x.0", -1, False)
        assert extent_of(value(3)) == 3


def test_errors():
    with pytest.raises(TypeMismatchError, match="12 elements do not fill"):
        traced(lambda: METHODS["reshape"](FUNCTIONS[np.zeros](value((3, 4))), 5, 2), [])
    with pytest.raises(TypeMismatchError, match="do not divide into rows of 5"):
        traced(lambda: METHODS["reshape"](FUNCTIONS[np.zeros](value((3, 4))), 5, -1), [])
    with pytest.raises(TypeMismatchError, match="squeeze of an axis of length 3"):
        traced(lambda: FUNCTIONS[np.squeeze](FUNCTIONS[np.zeros](value((3, 4))), 0), [])
    with pytest.raises(UnsupportedError, match="reshape with order='A'"):
        traced(lambda x: METHODS["reshape"](x, -1, order="A"), [X])
    with pytest.raises(TypeMismatchError, match="is a number and has no length"):
        traced(FUNCTIONS[len], [2.0])
    with pytest.raises(TypeMismatchError, match="concatenate of float64"):
        traced(lambda x, y: FUNCTIONS[np.concatenate]((x, y)), [V, X])
    with pytest.raises(TypeMismatchError, match="np.repeat with counts float64"):
        traced(lambda x, n: FUNCTIONS[np.repeat](x, n), [V, np.arange(6.0)])
