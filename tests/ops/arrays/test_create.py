"""Making arrays: values and dtypes as NumPy's, extents that are known to be equal, derivatives,
spelling.
"""

import ast

import numpy as np
import pytest

import s2s
from s2s.errors import S2SError, TypeMismatchError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import Array, Extent, Scalar, Unknown
from s2s.ir.verify import verify
from s2s.ops.arrays.index import take
from s2s.ops.core.derivative_rules import cotangents_of, tangent_of
from s2s.ops.core.record import FUNCTIONS, METHODS, value
from s2s.ops.core.shape import length, zeros_of

INT, FLOAT = Scalar("int64", True), Scalar("float64", True)
N = Extent("n", 0, False)
VECTOR, MATRIX = Array("float64", (N,)), Array("float64", (N, Extent("m", 0, False)))


def traced(kinds, rule):
    block = Block([Value(k, n) for k, n in zip(kinds, "xyzwv")])
    with Builder(block):
        results = rule(*block.params)
        block.yields = [value(r) for r in (results if isinstance(results, list) else [results])]
    return verify(Function("f", block, tupled=isinstance(results, list)))


def call(function, *args, **keywords):
    """np.function as the front end calls it."""
    return FUNCTIONS[function](*map(value, args), **{k: value(x) for k, x in keywords.items()})


def text(v):
    def expression(v):
        if v.op is None or v.name:
            return ast.Name(v.name, ast.Load())
        found = v.op.record.syntax(*map(expression, v.op.inputs), **v.op.attrs)
        if v.op.name == "length":
            found.lengths = v.op.inputs[0].type.rank  # as the printer says it
        return found

    return ast.unparse(expression(v))


def matches(f, args, expected):
    result = interpret(f, *args)
    np.testing.assert_allclose(result, expected)
    assert np.asarray(result).dtype == np.asarray(expected).dtype == f.results[0].type.dtype
    assert np.shape(result) == np.shape(expected)


FIXED = [
    (np.zeros, (3,), {}),
    (np.zeros, ((2, 3),), {}),
    (np.zeros, (3,), {"dtype": np.int32}),
    (np.ones, ((2,),), {}),
    (np.ones, (3, bool), {}),
    (np.full, (3, 2.5), {}),
    (np.full, ((2, 2), 7), {}),
    (np.full, (3, 1), {"dtype": float}),
    (np.full, (3, 1), {"dtype": np.float32}),
    (np.arange, (5,), {}),
    (np.arange, (2, 7), {}),
    (np.arange, (2, 9, 3), {}),
    (np.arange, (7, 2, -2), {}),
    (np.arange, (0.0, 1.0, 0.25), {}),
    (np.arange, (4,), {"dtype": float}),
    (np.linspace, (0.0, 1.0, 5), {}),
    (np.linspace, (0, 1, 4), {"endpoint": False}),
    (np.linspace, (-1.0, 1.0), {}),
    (np.eye, (3,), {}),
    (np.eye, (2, 3), {"k": 1}),
    (np.eye, (2,), {"dtype": int}),
    (np.identity, (2,), {}),
    (np.zeros, ((),), {}),
    (np.array, ((1, 2, 3),), {}),
    (np.array, ((1, 2.5),), {}),
    (np.array, (((1, 2), (3, 4)),), {}),
    (np.array, ((1, 2),), {"dtype": np.float32}),
    (np.asarray, ((True, False),), {}),
    (np.array, (2.0,), {}),
    (np.array, ((None, 1),), {"dtype": float}),
    (np.array, (((None,) * 3,),), {"dtype": np.float32}),
    (np.full, (2, None), {"dtype": float}),
    (np.array, ((),), {}),
]


@pytest.mark.parametrize("function, args, keywords", FIXED)
def test_value_dtype_and_shape_are_numpys(function, args, keywords):
    f = traced([], lambda: call(function, *args, **keywords))
    matches(f, [], function(*args, **keywords))
    kind = f.results[0].type
    if isinstance(kind, Array) and all(isinstance(d, int) for d in kind.dims):
        assert kind.dims == function(*args, **keywords).shape


def test_runtime_lengths():
    matches(traced([INT], lambda n: call(np.zeros, n)), [4], np.zeros(4))
    matches(
        traced([INT, INT], lambda n, m: FUNCTIONS[np.ones](value((n, m + 1)))),
        [2, 2],
        np.ones((2, 3)),
    )
    matches(traced([INT], lambda n: call(np.arange, n)), [4], np.arange(4))
    matches(traced([INT, INT], lambda a, b: call(np.arange, a, b)), [2, 5], np.arange(2, 5))
    matches(traced([INT], lambda n: call(np.linspace, 0.0, 1.0, n)), [4], np.linspace(0, 1, 4))
    matches(traced([INT], lambda n: call(np.eye, n)), [3], np.eye(3))


def test_extents_are_known():
    with Builder():
        n, x = Value(INT, "n"), Value(VECTOR, "x")
        assert (
            call(np.zeros, n).type
            == call(np.empty, n).type
            == Array("float64", call(np.arange, n).type.dims)
        )
        assert call(np.zeros, length(x, axis=0)).type == VECTOR
        inner = call(np.zeros, length(x, axis=0) - 2).type
        assert inner.dims == (Extent("n", -2, False),)
        assert FUNCTIONS[np.arange](value(1), length(x, axis=0)).type.dims == (
            Extent("n", -1, False),
        )
        assert call(np.zeros, n).type != call(np.zeros, n + 1).type
        longer = call(np.zeros, length(x, axis=0) + 2)
        for part in (slice(1, -1), slice(2, None), slice(None, -2)):
            assert take(longer, part).type == VECTOR
        assert (
            not longer.type.dims[0].may_be_one
            and take(longer, slice(1, None)).type.dims[0].may_be_one
        )


def test_like():
    x = np.array([[1, 2], [3, 4]])
    kind = Array("int64", (2, 2))
    for function in (np.zeros_like, np.ones_like):
        matches(traced([kind], lambda v: call(function, v)), [x], function(x))
        matches(
            traced([kind], lambda v: call(function, v, dtype=float)), [x], function(x, dtype=float)
        )
        assert interpret(traced([FLOAT], lambda v: call(function, v)), 2.0) == function(2.0)
    matches(traced([kind], lambda v: call(np.full_like, v, 7)), [x], np.full_like(x, 7))
    matches(
        traced([VECTOR], lambda v: call(np.full_like, v, 7)),
        [np.ones(2)],
        np.full_like(np.ones(2), 7),
    )
    assert traced([kind], lambda v: call(np.empty_like, v)).results[0].type == kind
    g = traced([Unknown("s")], lambda v: call(np.ones_like, v))
    assert interpret(g, np.zeros(2)).tolist() == [1, 1] and interpret(g, 3.0) == 1.0


def test_copies_and_conversions():
    x = np.arange(3.0)
    for rule in (METHODS["copy"], lambda v: call(np.copy, v), lambda v: call(np.array, v)):
        result = interpret(traced([VECTOR], rule), x)
        assert result is not x and result.tolist() == x.tolist()
    with Builder():
        v = Value(VECTOR, "v")
        assert call(np.asarray, v) is v
        assert call(np.asarray, v, dtype=np.float32).type.dtype == "float32"
    g = traced([Unknown("s")], lambda v: call(np.array, v))
    assert interpret(g, 2.0) == 2.0 and interpret(g, x).tolist() == x.tolist()


def test_array_of_runtime_numbers_and_rows():
    f = traced(
        [FLOAT, Scalar("float32")], lambda a, b: FUNCTIONS[np.array](value(((a, b), (b, a))))
    )
    matches(f, [1.0, np.float32(2)], np.array([[1.0, np.float32(2)], [np.float32(2), 1.0]]))
    g = traced([VECTOR, VECTOR], lambda a, b: FUNCTIONS[np.array](value((a, b))))
    matches(g, [np.ones(3), np.zeros(3)], np.array([np.ones(3), np.zeros(3)]))
    assert g.results[0].type.dims == (2, N)


@pytest.mark.parametrize(
    "rule, kinds, args",
    [
        (lambda a: call(np.full, 3, a), [FLOAT], [2.0]),
        (
            lambda a: FUNCTIONS[np.full](value((2, 3)), a),
            [Array("float64", (3,))],
            [np.arange(3.0)],
        ),
        (lambda a, s: FUNCTIONS[np.full_like](a, s), [VECTOR, FLOAT], [np.arange(3.0), 2.5]),
        (lambda a, b: call(np.linspace, a, b, 5), [FLOAT, FLOAT], [0.5, 2.0]),
        (lambda a, b: call(np.linspace, a, b, 5, endpoint=False), [FLOAT, FLOAT], [0.5, 2.0]),
        (lambda a, s: call(np.arange, a, 3.1, s), [FLOAT, FLOAT], [0.5, 0.7]),
        (lambda a, b: FUNCTIONS[np.array](value(((a, b), (b, 1.0)))), [FLOAT, FLOAT], [0.5, 0.7]),
        (
            lambda a, b: FUNCTIONS[np.array](value((a, b))),
            [VECTOR, VECTOR],
            [np.arange(3.0), np.ones(3)],
        ),
        (lambda a: METHODS["copy"](a), [VECTOR], [np.arange(3.0)]),
        (lambda a: call(np.array, a), [Unknown("s", "float64")], [np.arange(3.0)]),
    ],
)
def test_derivatives_in_both_modes(rule, kinds, args):
    """The dot-product identity, with tangents from central differences."""
    rng = np.random.default_rng(0)
    f = traced(kinds, rule)
    y = interpret(f, *args)
    bar = rng.normal(size=np.shape(y))
    dots = [rng.normal(size=np.shape(x))[()] for x in args]
    h = 1e-6
    up, down = ([x + s * h * d for x, d in zip(args, dots)] for s in (1, -1))
    y_dot = (interpret(f, *up) - interpret(f, *down)) / (2 * h)

    def reverse(*values):
        xs, bar = values[:-1], values[-1]
        op = rule(*xs).op
        bars = {}
        bars_of = cotangents_of(op.record, bar, op.output, *op.inputs, **op.attrs)
        for x, c in zip(op.inputs, bars_of):
            if c is not None:
                bars[x] = c if x not in bars else bars[x] + c
        return [bars.get(x, zeros_of(x)) for x in xs]

    def forward(*values):
        xs, x_dots = values[:len(args)], values[len(args):]
        op = rule(*xs).op
        dots = [dict(zip(xs, x_dots)).get(x) for x in op.inputs]
        dot = tangent_of(op.record, dots, op.output, *op.inputs, **op.attrs)
        return zeros_of(op.output) if dot is None else dot

    x_bars = interpret(traced([*kinds, Array("float64", np.shape(y))], reverse), *args, bar)
    np.testing.assert_allclose(
        interpret(traced([*kinds, *kinds], forward), *args, *dots), y_dot, atol=1e-8
    )
    for x_bar, x in zip(x_bars, args):
        assert np.shape(x_bar) == np.shape(x)
    np.testing.assert_allclose(
        sum(np.sum(b * d) for b, d in zip(x_bars, dots)), np.sum(bar * y_dot), atol=1e-7
    )


@pytest.mark.parametrize(
    "rule, expected",
    [
        (lambda n, x: call(np.zeros, n), "np.zeros(n)"),
        (lambda n, x: FUNCTIONS[np.zeros](value((n, 3))), "np.zeros((n, 3))"),
        (lambda n, x: call(np.zeros, n, np.float32), "np.zeros(n, np.float32)"),
        (lambda n, x: call(np.ones, n, bool), "np.ones(n, bool)"),
        (
            lambda n, x: FUNCTIONS[np.empty](value((length(x, axis=0), length(x, axis=1)))),
            "np.empty(x.shape)",
        ),
        (lambda n, x: call(np.zeros, length(x, axis=0)), "np.zeros(len(x))"),
        (lambda n, x: call(np.full, n, 1.5), "np.full(n, 1.5)"),
        (lambda n, x: call(np.arange, n), "np.arange(n)"),
        (lambda n, x: call(np.arange, 1, n), "np.arange(1, n)"),
        (lambda n, x: call(np.arange, 0, n, 2), "np.arange(0, n, 2)"),
        (lambda n, x: call(np.linspace, 0.0, 1.0, n), "np.linspace(0.0, 1.0, n)"),
        (lambda n, x: call(np.eye, n), "np.eye(n)"),
        (lambda n, x: call(np.ones_like, x), "np.ones_like(x)"),
        (lambda n, x: FUNCTIONS[np.array](value(((n, 1), (2, n)))), "np.array([[n, 1], [2, n]])"),
    ],
)
def test_spelling(rule, expected):
    with Builder():
        assert text(rule(Value(INT, "n"), Value(MATRIX, "x"))) == expected


def test_unknown_shapes():
    f = traced([Unknown("s")], lambda v: FUNCTIONS[np.zeros](FUNCTIONS[np.shape](v)))
    assert f.results[0].type == Unknown("s", "float64")
    assert interpret(f, np.ones((2, 3))).shape == (2, 3)
    assert interpret(traced([Unknown()], lambda n: call(np.zeros, n)), 3).shape == (3,)
    assert interpret(traced([Unknown()], lambda n: call(np.arange, n)), 3).tolist() == [0, 1, 2]
    assert interpret(traced([Unknown()], lambda n: call(np.eye, n)), 2).shape == (2, 2)


def test_refusals():
    with Builder():
        with pytest.raises(TypeMismatchError, match="a shape of type float64"):
            call(np.zeros, 2.0)
        with pytest.raises(S2SError, match="'nonsense' is not a dtype"):
            call(np.zeros, 2, dtype="nonsense")
        with pytest.raises(TypeMismatchError, match="a ragged array"):
            call(np.array, ((1, 2), (3,)))
        with pytest.raises(S2SError, match="np.linspace between arrays"):
            call(np.linspace, Value(VECTOR, "x"), 1.0, 3)


def table_of_the_first_axes(u):
    b = np.zeros(u.shape[:2]) + 1.0
    c = np.ones((u.shape[0], u.shape[1], 2))
    v = np.einsum("ij,ijd->jd", b, u)
    b += np.einsum("ijd,jd->ij", u, v)
    return np.sum(b * b) * np.mean(c) * c.size + np.sum(
        np.full((len(u), u.shape[1]), 2.0) * u[..., 0]
    )


@pytest.mark.lengthy
def test_a_table_as_long_as_the_first_axes_of_an_array_of_more():
    """np.zeros(u.shape[:2]) was printed as np.zeros(u.shape)."""
    u = np.cos(np.arange(24.0)).reshape(3, 2, 4)
    value, slope = s2s.value_and_grad(table_of_the_first_axes)(u)
    np.testing.assert_allclose(value, table_of_the_first_axes(u))
    step = 1e-6 * np.sin(np.arange(24.0)).reshape(3, 2, 4)
    np.testing.assert_allclose(
        2 * np.sum(slope * step),
        table_of_the_first_axes(u + step) - table_of_the_first_axes(u - step),
        rtol=1e-7,
    )
    text = s2s.grad(lambda a: np.sum(np.zeros(a.shape) + a * a))
    text(u[0])
    assert "u.shape[" not in text.source and "len(" not in text.source
