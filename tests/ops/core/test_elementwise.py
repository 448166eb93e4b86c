"""Every elementwise op: value, dtype, both modes, second order, and the points where calculus is
silent.
"""

import ast
import cmath
import fractions
import itertools
import math
import operator
import warnings

import numpy as np
import pytest

import s2s
from s2s.errors import Line, Source, TypeMismatchError, UnsupportedError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value
from s2s.ir.interpret import interpret
from s2s.ir.types import Array, Extent, Scalar, Unknown
from s2s.ir.verify import verify
from s2s.ops.core import cast, define_elementwise
from s2s.ops.core import elementwise as ew
from s2s.ops.core.cast import astype
from s2s.ops.core.chain_rule import times
from s2s.ops.core.derivative_rules import cotangents_of, tangent_of
from s2s.ops.core.record import FUNCTIONS, METHODS, RECORDS, value
from s2s.ops.core.shape import sum_to_shape, zeros_of

# not complex_of, which makes complex numbers of real ones, and other casts that rules of the module
# use: tests/language/test_dtypes.py
TABLE = {
    r.name: r
    for r in vars(ew).values()
    if getattr(r, "elementwise", False)
    and r.name != "complex_of"
    and r not in vars(cast).values()
}
MATH = {m.name: m for r, m in define_elementwise.IN_MATH.items() if r in TABLE.values()}
N = Extent("n", 0, False)
VECTOR, MATRIX, FLOAT = Array("float64", (N,)), Array("float64", (2, N)), Scalar("float64")

# ---------------------------------------------------------------------------- running rules by hand


def traced(types, rule):
    """The Function of parameters of these types that yields what `rule` emits."""
    block = Block([Value(t, f"x{k}") for k, t in enumerate(types)])
    with Builder(block):
        results = rule(*block.params)
        block.yields = [
            value(r) for r in (results if isinstance(results, (list, tuple)) else [results])
        ]
    return verify(Function("f", block, tupled=isinstance(results, (list, tuple))))


def contributions(record, bar, y, xs):
    return [
        zeros_of(x) if c is None else c
        for x, c in zip(xs, cotangents_of(record, bar, y, *xs), strict=True)
    ]


def pushed(params, y, dots):
    """The tangent of `y`, by walking the ops that made it."""
    known = dict(zip(params, dots, strict=True))

    def dot(v):
        if v not in known:
            known[v] = None
            if v.op is not None:
                tangents = [dot(x) for x in v.op.inputs]
                if any(t is not None for t in tangents):
                    known[v] = tangent_of(v.op.record, tangents, v, *v.op.inputs,
                                          **v.op.attrs)
        return known[v]

    return dot(y)


def text(v):
    """The expression of a value, as Python."""

    def expression(v):
        if v.op is None or v.name:
            return ast.Name(v.name, ast.Load())
        return v.op.record.syntax(*map(expression, v.op.inputs), **v.op.attrs)

    return ast.unparse(expression(v))


# ------------------------------------------------------------------------------------------- points

UNIT = [0.2, 0.55, 0.9]
POINTS = {
    "arccosh": [1.1, 2.0, 5.0],
    "log": [0.1, 1.0, 7.0],
    "log2": [0.1, 1.0, 7.0],
    "log10": [0.1, 1.0, 7.0],
    "log1p": [-0.5, 0.1, 7.0],
    "sqrt": [0.1, 1.0, 7.0],
    "cbrt": [0.3, 2.0, 9.0],
    "reciprocal": [-0.4, 0.5, 3.0],
    "arcsin": UNIT,
    "arccos": UNIT,
    "arctanh": UNIT,
    "sinc": [-1.3, 0.01, 0.4],
}
ANYWHERE = [-1.3, 0.4, 2.1]
PAIRS = {
    "ldexp": ([0.3, -1.7, 2.5], [2, -1, 3]),
    "power": ([0.3, 1.7, 2.5], [1.5, -2.2, 3.0]),
    "floor_divide": ([5.3, -4.7, 2.2], [2.0, 3.1, -0.7]),
    "remainder": ([5.3, -4.7, 2.2], [2.0, 3.1, -0.7]),
    "fmod": ([5.3, -4.7, 2.2], [2.0, 3.1, -0.7]),
    "copysign": ([5.3, -4.7, -2.2], [-2.0, 3.1, -0.7]),
}
TWO = ([0.3, -1.7, 2.5], [1.5, -2.2, 0.7])
SCALARS_ONLY = {"max_", "min_", "abs_", "select", "not_", "and_", "or_"}
# what is in single precision is judged by its twin, whose differences have digits
WIDE = {"single_quotient": "divide"}
HOLOMORPHIC = {
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "negative",
    "positive",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "square",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
}


def operands(name):
    """Test points for the op, one array an operand."""
    count = len(TABLE[name].partials)
    if count == 1:
        points = (POINTS.get(name, ANYWHERE),)
    elif count == 2:
        points = PAIRS.get(name, TWO)
    else:
        points = ([0.5, -1.7, 2.5], [0.2, -1.0, -0.3], [1.5, 2.2, 0.7])
    points = [np.array(p) for p in points]
    if name in ("where", "select"):
        points[0] = points[0] > 0
    return points


def differentiable():
    return sorted(n for n, r in TABLE.items() if any(p is not None for p in r.partials))


def wiggled(record, xs, k):
    """dy/dx_k by complex step where the op allows it, else by central differences."""
    record = TABLE[WIDE.get(record.name, record.name)]
    if record.name in HOLOMORPHIC:
        shifted = [x + 1e-25j if j == k else x for j, x in enumerate(xs)]
        return np.imag(record.evaluate(*shifted)) / 1e-25
    h = 1e-6
    up, down = ([x + s * h if j == k else x for j, x in enumerate(xs)] for s in (1, -1))
    return (record.evaluate(*up) - record.evaluate(*down)) / (2 * h)


def tolerance(name):
    """Four units in the last place of single precision, or what central differences are good
    for.
    """
    return 4 * np.finfo(np.float32).eps if name in WIDE else 1e-7


def close(a, b, tolerance=1e-7):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# -------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", differentiable())
def test_derivative_in_reverse_and_forwards(name):
    record, xs = TABLE[name], operands(name)
    lanes = [tuple(x[k] for x in xs) for k in range(3)] if name in SCALARS_ONLY else [tuple(xs)]
    for xs in lanes:
        types = [Scalar(x.dtype.name) if np.ndim(x) == 0 else Array(x.dtype.name, (N,)) for x in xs]
        reverse = traced(
            [*types, types[-1]], lambda *v: contributions(record, v[-1], record(*v[:-1]), v[:-1])
        )
        bar = np.full(np.shape(xs[-1]), 1.5)
        x_bars = interpret(reverse, *xs, bar[()])
        for k, x in enumerate(xs):
            if record.partials[k] is None or x.dtype == bool:
                continue
            expected = wiggled(record, xs, k)
            close(x_bars[k], 1.5 * expected, tolerance(name))
            forward = traced([*types, types[k]], lambda *v: tangent_of(record,
                [v[-1] if j == k else None for j in range(len(types))], record(*v[:-1]), *v[:-1]))
            close(interpret(forward, *xs, bar[()]), 1.5 * expected, tolerance(name))


@pytest.mark.parametrize("name", differentiable())
def test_second_order(name):
    """The tangent of the rule is the slope of the rule."""
    if name == "conjugate":
        return
    record, xs = TABLE[name], [x[1] for x in operands(name)]
    for k, x in enumerate(xs):
        if record.partials[k] is None:
            continue
        types = [Scalar(x.dtype.name) for x in xs]

        def rule(*v, k=k):
            return contributions(record, value(1.0), record(*v), v)[k]

        wide = TABLE[WIDE.get(name, name)]
        first = traced(types, lambda *v, k=k: contributions(wide, value(1.0), wide(*v), v)[k])

        def slope(*v, k=k):
            dot = pushed(
                v[:-1], rule(*v[:-1]), [v[-1] if j == k else None for j in range(len(types))]
            )
            return value(0.0) if dot is None else dot

        h = 1e-6
        up, down = ([float(x) + s * h if j == k else x for j, x in enumerate(xs)] for s in (1, -1))
        expected = (interpret(first, *up) - interpret(first, *down)) / (2 * h)
        close(interpret(traced([*types, FLOAT], slope), *xs, 1.0), expected, 1e-6)


@pytest.mark.parametrize("name", [n for n in differentiable() if n not in SCALARS_ONLY])
@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3,), ()), ((3,), (2, 3), (1, 3)), ((1, 3), (2, 1), (2, 3)), ((), (3,), (2, 3))],
)
def test_dot_product_identity_under_broadcasting(name, shapes):
    record, columns = TABLE[name], operands(name)
    xs = [np.resize(c, shape)[()] for c, shape in zip(columns, shapes)]
    rng = np.random.default_rng(0)
    for symbolic in (False, True):
        types = [_type(x, symbolic) for x in xs]
        y = record.evaluate(*xs)
        bar = rng.normal(size=np.shape(y))[()]
        dots = [rng.normal(size=np.shape(x))[()] for x in xs]
        reverse = traced(
            [*types, _type(bar, symbolic)],
            lambda *v: contributions(record, v[-1], record(*v[:-1]), v[:-1]),
        )
        forward = traced(
            [*types, *types],
            lambda *v: tangent_of(record, v[len(xs) :], record(*v[: len(xs)]),
                                  *v[: len(xs)]),
        )
        x_bars = interpret(reverse, *xs, bar)
        y_dot = interpret(forward, *xs, *[d if x.dtype != bool else x for d, x in zip(dots, xs)])
        assert np.shape(y_dot) == np.shape(y)
        for x_bar, x in zip(x_bars, xs):
            assert np.shape(x_bar) == np.shape(x)
        close(
            np.sum(bar * y_dot),
            sum(np.sum(b * d) for b, d, x in zip(x_bars, dots, xs) if x.dtype != bool),
        )


def _type(x, symbolic):
    dtype = np.asarray(x).dtype.name
    if symbolic:
        return Unknown(f"s{np.shape(x)}", dtype) if np.ndim(x) else Unknown("s", dtype)
    return Array(dtype, np.shape(x)) if np.ndim(x) else Scalar(dtype)


@pytest.mark.parametrize("name", sorted(MATH))
def test_math_is_numpy_of_one_number(name):
    twin = MATH[name]
    record = next(r for r, m in define_elementwise.IN_MATH.items() if m is twin)
    for xs in zip(*operands(record.name)):
        xs = [float(x) for x in xs]
        f = traced([Scalar("float64", True)] * len(xs), lambda *v: twin(*v))
        y = interpret(f, *xs)
        assert type(y) in (float, int, bool) and f.results[0].type.weak
        close(y, record.evaluate(*xs))
        ours, theirs = (
            traced(
                [Scalar("float64", True)] * len(xs),
                lambda *v: contributions(r, value(1.0), r(*v), v),
            )
            for r in (twin, record)
        )
        close(interpret(ours, *xs), interpret(theirs, *xs))


def test_math_derivatives_stay_in_math():
    with Builder():
        x, bar = Value(FLOAT, "x"), Value(FLOAT, "bar")
        sin = RECORDS["math.sin"]
        assert text(sin.vjp(bar, sin(x), x)[0]) == "bar * math.cos(x)"


# ------------------------------------------------------------------------------------------- dtypes

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "float32", "float64", "complex64", "complex128")
WEAK = (True, 1, 1.0, 1j)
STRONG = (Scalar("float32"), Scalar("int64"), Scalar("bool"))
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.3.0"


@pytest.mark.parametrize("name", sorted(set(TABLE) - SCALARS_ONLY - {"round"}))
def test_dtype_is_numpys(name):
    record, count = TABLE[name], len(TABLE[name].partials)
    arrays = [np.ones(2, d) for d in DTYPES]
    if count == 3:
        arrays = [np.ones(2, d) for d in ("bool", "int64", "float32", "float64", "complex128")]
    kinds = [*arrays, *WEAK, *(np.float32(1), np.int64(1), np.bool_(True))]
    for xs in itertools.product(*[kinds] * count):
        types = [
            Scalar(np.result_type(type(x)).name, True)
            if type(x) in (bool, int, float, complex)
            else Scalar(x.dtype.name)
            if np.ndim(x) == 0
            else Array(x.dtype.name, (2,))
            for x in xs
        ]
        if name == "power" and OLD_NUMPY and isinstance(types[0], Array) and types[1] in STRONG:
            # there the dtype of `array ** np.float32(1)` depends on the number, not on its type
            continue
        with Builder(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = record.evaluate(*xs)
            except TypeError:
                with pytest.raises(TypeMismatchError, match="is not defined for"):
                    record.infer(*[Value(t, "x") for t in types])
                continue
            inferred = record.infer(*[Value(t, "x") for t in types])
        assert inferred.dtype == np.asarray(expected).dtype.name, (name, types)
        assert isinstance(inferred, Array) == (np.ndim(expected) > 0)
        if isinstance(inferred, Scalar):
            assert inferred.weak == (type(expected) in (bool, int, float, complex)), (name, types)


def test_cotangents_have_the_operands_precision():
    with Builder():
        x, w = Value(Array("float32", (N,)), "x"), Value(Array("float64", (N,)), "w")
        y = x * w
        x_bar, w_bar = ew.multiply.vjp(Value(y.type, "bar"), y, x, w)
        assert (x_bar.type.dtype, w_bar.type.dtype) == ("float32", "float64")


def test_integer_operands_have_no_cotangent():
    with Builder():
        x, n = Value(FLOAT, "x"), Value(Scalar("int64"), "n")
        assert ew.multiply.vjp(Value(FLOAT, "bar"), x * n, x, n)[1] is None
        assert ew.multiply.jvp([None, value(1.0)], x * n, x, n) is None


def test_complex_operands_follow_the_holomorphic_rule():
    z = np.array([0.3 + 0.4j, -1.2 + 0.5j])
    kind = Array("complex128", (2,))
    for name in sorted(HOLOMORPHIC - {"power"}):
        record = TABLE[name]
        xs = [z, z[::-1] * 1j][:len(record.partials)]
        bars = interpret(
            traced(
                [kind] * (len(xs) + 1),
                lambda *v: contributions(record, v[-1], record(*v[:-1]), v[:-1]),
            ),
            *xs,
            np.full(2, 2.0 - 1j),
        )
        for k, x_bar in enumerate(bars):
            up, down = ([x + s * 1e-6 if j == k else x for j, x in enumerate(xs)] for s in (1, -1))
            close(x_bar, (2.0 - 1j) * (record.evaluate(*up) - record.evaluate(*down)) / 2e-6, 1e-6)


def test_real_parts_where_real_meets_complex():
    kind = Array("complex128", (2,))
    z = np.array([0.3 + 0.4j, -1.2 + 0.5j])
    dot = np.array([1.0 - 2j, 0.5j])
    for record, expected in (
        (ew.absolute, np.real(dot * np.conj(z)) / np.abs(z)),
        (ew.real, dot.real),
        (ew.imag, dot.imag),
    ):
        forward = traced([kind, kind], lambda x, d: tangent_of(record, [d], record(x), x))
        close(interpret(forward, z, dot), expected)
        assert forward.results[0].type.dtype == "float64"
        reverse = traced(
            [kind, Array("float64", (2,))], lambda x, b: cotangents_of(record, b, record(x), x)[0]
        )
        assert reverse.results[0].type.dtype == "complex128"
        bar = np.array([1.0, 3.0])
        close(np.sum(interpret(reverse, z, bar) * dot).real, np.sum(bar * expected))
    x, c = Value(Array("float64", (2,)), "x"), Value(kind, "c")
    with Builder():
        y = x * c
        assert ew.multiply.vjp(Value(kind, "bar"), y, x, c)[0].type.dtype == "float64"


# ------------------------------------------------------------------------- where calculus is silent


def gradient(record, *xs):
    types = [Scalar("float64") for _ in xs]
    return interpret(
        traced(types, lambda *v: contributions(record, value(1.0), record(*v), v)),
        *map(np.float64, xs),
    )


def test_ties_are_halved():
    for op in (ew.maximum, ew.minimum, ew.fmax, ew.fmin):
        assert gradient(op, 2.0, 2.0) == (0.5, 0.5)
    assert gradient(ew.fmax, np.nan, 2.0) == (0.0, 1.0)


def test_python_max_and_min_follow_the_operand_they_return():
    assert gradient(ew.max_, 2.0, 2.0) == gradient(ew.min_, 2.0, 2.0) == (1.0, 0.0)


def test_abs_at_zero():
    assert gradient(ew.absolute, 0.0) == (0.0,) and gradient(ew.abs_, 0.0) == (0.0,)


def test_power_at_zero_and_below():
    with np.errstate(all="raise"):
        assert gradient(ew.power, 0.0, 2.0) == (0.0, 0.0)
        assert gradient(ew.power, 0.0, 0.0) == (0.0, 0.0)
        assert gradient(ew.power, -2.0, 3.0) == (12.0, 0.0)
        assert gradient(ew.power, 0.0, 1.0) == (1.0, 0.0)


def test_power_series_at_zero_in_python():
    f = traced(
        [Scalar("float64", True), Scalar("int64", True)],
        lambda x, n: contributions(ew.power, value(1.0), x**n, (x, n))[0],
    )
    assert [interpret(f, 0.0, n) for n in range(3)] == [0.0, 1.0, 0.0]


def test_where_masks_before_it_multiplies():
    c, bar = np.array([True, False]), np.array([2.0, np.inf])
    kind = Array("float64", (2,))
    f = traced(
        [Array("bool", (2,)), kind, kind, kind],
        lambda c, a, b, bar: ew.where.vjp(bar, ew.where(c, a, b), c, a, b)[1:],
    )
    a_bar, b_bar = interpret(f, c, bar, bar, bar)
    assert a_bar.tolist() == [2.0, 0.0] and b_bar.tolist() == [0.0, np.inf]


def test_sqrt_at_zero_is_infinite():
    with np.errstate(divide="ignore"):
        assert gradient(ew.sqrt, 0.0) == (np.inf,)


def test_sinc_at_zero_to_second_order():
    def slope(x, d):
        return pushed([x], contributions(ew.sinc, value(1.0), ew.sinc(x), (x,))[0], [d])

    close(interpret(traced([FLOAT, FLOAT], slope), np.float64(0.0), 1.0), -math.pi ** 2 / 3)


@pytest.mark.parametrize(
    "x, lo, hi, expected",
    [
        (-1.0, 0.0, 2.0, (0, 1, 0)),
        (3.0, 0.0, 2.0, (0, 0, 1)),
        (1.0, 0.0, 2.0, (1, 0, 0)),
        (1.0, 3.0, 2.0, (0, 0, 1)),
        (0.0, 0.0, 2.0, (0.5, 0.5, 0)),
        (2.0, 0.0, 2.0, (0.5, 0, 0.5)),
    ],
)
def test_clip_follows_what_it_returns_and_halves_ties(x, lo, hi, expected):
    kind = Array("float64", (1,))
    f = traced([kind] * 4, lambda *v: ew.clip.vjp(v[-1], ew.clip(*v[:-1]), *v[:-1]))
    bars = interpret(f, *map(np.atleast_1d, (x, lo, hi, 1.0)))
    assert tuple(b.item() for b in bars) == expected


# ------------------------------------------------------------------------------------- how it reads


@pytest.mark.parametrize("record, expected", [
    (ew.divide, ["bar / b", "-(bar * y / b)"]),
    (ew.multiply, ["bar * b", "bar * a"]),
    (ew.sin, ["bar * np.cos(a)"]),
    (ew.cos, ["-(bar * np.sin(a))"]),
    (ew.tanh, ["bar * (1 - y * y)"]),
    (ew.log, ["bar / a"]),
    (ew.where, [None, "np.where(a, bar, 0.0)", "np.where(a, 0.0, bar)"]),
])
def test_contributions_read_well(record, expected):
    with Builder():
        xs = [Value(VECTOR, n) for n in "abc"[:len(record.partials)]]
        if record is ew.where:
            xs[0] = Value(Array("bool", (N,)), "a")
        y = record(*xs)
        y.name = "y"
        assert [
            None if v is None else text(v) for v in cotangents_of(
                record, Value(y.type, "bar"), y, *xs)
        ] == expected


@pytest.mark.parametrize(
    "n, expected",
    [
        (2, "2 * bar * x"),
        (3, "3 * bar * x ** 2"),
        (0.5, "0.5 * bar / y"),
        (1, "bar"),
        (-1, "-(bar * x ** -2)"),
        (2.5, "2.5 * bar * x ** 1.5"),
    ],
)
def test_powers_read_well(n, expected):
    with Builder():
        x = Value(VECTOR, "x")
        y = x ** n
        if y is not x:
            bar = ew.exp(x)
            bar.name, y.name = "bar", "y"
            assert text(ew.power.vjp(bar, y, x, value(n))[0]) == expected


def test_the_seed_is_multiplied_away():
    with Builder():
        x = Value(FLOAT, "x")
        assert text(times(value(1.0), 2 * x)) == "2 * x"
        assert text(times(value(1.0), ew.cos(x))) == "np.cos(x)"
        # y_bar may become 1.0
        assert text(times(Value(FLOAT, "y_bar"), 2 * x)) == "y_bar * (2 * x)"


def test_numbers_are_multiplied_out():
    with Builder():
        x, z, y = Value(VECTOR, "x"), Value(FLOAT, "z"), Value(FLOAT, "y")
        assert text(times(0.5 * ew.exp(z) / y, 2 * x)) == "np.exp(z) / y * x"
    with Builder(Block(), Line(Source("program.py", 1, "x / y"), 1).reversed()):
        assert text(2 * (0.5 * x / y / z)) == "x / y / z" and text(3 * (x / y)) == "3 * (x / y)"


def test_minus_a_number_below_zero_is_plus():
    with Builder():
        x, y = Value(VECTOR, "x"), Value(Array("float32", (N,)), "y")
        assert text(x - -1.0) == "x + 1.0" and text(y - -1.0) == "y + 1.0"
        assert text(-x - -1.0) == "1.0 - x"


def test_masks_stay_outermost():
    with Builder():
        c, x, bar = Value(Array("bool", (N,)), "c"), Value(VECTOR, "x"), Value(VECTOR, "bar")
        masked = ew.where(c, bar, 0.0)
        assert text(times(masked, ew.log(x))) == "np.where(c, bar * np.log(x), 0.0)"
        assert text(masked + ew.where(c, x, 0.0)) == "np.where(c, bar + x, 0.0)"
        assert text(ew.where(c, 0.0, bar) + ew.where(c, 0.0, x)) == "np.where(c, 0.0, bar + x)"


def test_the_side_not_taken_makes_no_nan():
    """The gradient of where(x > 0, x * log(x), 0) at 0, with no second `where` around the
    logarithm.
    """
    with Builder(Block([Value(VECTOR, "x")])) as builder, np.errstate(all="ignore"):
        (x,) = builder.block.params
        c, log = x > 0, ew.log(x)
        t = x * log
        t_bar = ew.where.vjp(value(1.0) * ew.exp(0 * x), ew.where(c, t, 0.0), c, t, 0.0)[1]
        x_bar, log_bar = ew.multiply.vjp(t_bar, t, x, log)
        builder.block.yields = [x_bar + ew.log.vjp(log_bar, log, x)[0]]
        assert interpret(Function("f", builder.block), np.array([0.0, 1.0, -1.0])).tolist() == [
            0,
            1,
            0,
        ]


def test_forward_mode_chooses_between_tangents():
    with Builder():
        c, x, y = Value(Array("bool", (N,)), "c"), Value(VECTOR, "x"), Value(VECTOR, "y")
        y_dot = tangent_of(ew.where, [None, x, y], ew.where(c, x, y), c, x, y)
        assert text(y_dot) == "np.where(c, x, y)"


def test_user_values_stay_whole():
    """times(bar, u * v) is bar * t where t = u * v was the operand: it is not computed again."""
    with Builder():
        u, v, w, bar = (Value(VECTOR, n) for n in ("u", "v", "w", "bar"))
        t = u * v
        t.name = "t"
        assert text(ew.multiply.vjp(bar, w * t, w, t)[0]) == "bar * t"


# -------------------------------------------------------------------------------------------- folds

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]


def bits(x):
    return np.asarray(x).dtype.str, np.asarray(x).tobytes()


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, y: x * 1,
        lambda x, y: 1 * x,
        lambda x, y: x * 1.0,
        lambda x, y: x * -1,
        lambda x, y: x / 1,
        lambda x, y: x - 0,
        lambda x, y: x - (-y),
        lambda x, y: x + (-y),
        lambda x, y: (-x) + y,
        lambda x, y: (-x) * y,
        lambda x, y: x * (-y),
        lambda x, y: (-x) * (-y),
        lambda x, y: (-x) / y,
        lambda x, y: ew.negative(ew.negative(x)),
        lambda x, y: x**1,
        lambda x, y: x + 0,
        lambda x, y: x * 0,
        lambda x, y: 0 - x,
        lambda x, y: x - 0.0,
        lambda x, y: x - (-0.0),
        lambda x, y: x - (-1.5),
        lambda x, y: x / -y - (-1.0),
    ],
)
def test_folds_are_exact(rule):
    grid = [np.array(p) for p in zip(*itertools.product(SPECIAL, SPECIAL))]
    with np.errstate(all="ignore"):
        assert_same(interpret(traced([VECTOR, VECTOR], rule), *grid), rule(*grid))
        small = np.arange(-3, 4).astype("int8"), np.arange(1, 8).astype("uint8")
        kinds = [Array("int8", (7,)), Array("uint8", (7,))]
        try:
            expected, swapped = rule(*small), rule(*small[::-1])
        except (TypeError, ValueError, OverflowError):
            return
        assert_same(interpret(traced(kinds, rule), *small), expected)
        assert_same(interpret(traced(kinds[::-1], rule), *small[::-1]), swapped)


def assert_same(a, b):
    assert a.dtype == b.dtype
    assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if a.dtype.kind == "f":
        assert np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))


def test_index_arithmetic_folds():
    with Builder():
        i = Value(Scalar("int64", True), "i")
        assert i + 1 - 1 is i and i + 0 is i and (i + 3) - (i + 1) is not None
        assert ((i + 3) - (i + 1)).constant == 2
        assert text(i + 1 + 2) == "i + 3" and text(i - 1 - 2) == "i - 3" and text(1 + i) == "1 + i"


def test_python_numbers_fold_as_python_computes_them():
    with Builder():
        a, b = value(7), value(2)
        assert [(a / b).constant, (a // b).constant, (a % b).constant, (a**b).constant] == [
            3.5,
            3,
            1,
            49,
        ]
        assert type((a / b).constant) is float and type((a // b).constant) is int
        assert (value(1) / value(0)).op.name == "divide"  # the run raises it
        assert value(-7) // 2 is not None and (value(-7) // 2).constant == -4
        assert (value(2) ** -1).constant == 0.5
        assert (value(10) ** value(30)).op.name == "power"
        assert text(Value(Scalar("int64", True), "n") ** -2) == "float(n) ** -2"


def test_functions_of_constants_do_not_fold():
    with Builder():
        assert ew.sin(value(1.0)).op.name == "sin"


def test_python_operators_keep_python_numbers():
    INT, REAL = Scalar("int64", True), Scalar("float64", True)
    for rule, kinds, args in (
        (lambda a, b: a // b, [INT, INT], (-7, 2)),
        (lambda a, b: a % b, [INT, INT], (-7, 2)),
        (lambda a, b: a**b, [INT, INT], (3, 4)),
        (lambda a, b: a / b, [INT, INT], (1, 2)),
        (lambda a, b: a * b, [INT, REAL], (2, 1.5)),
    ):
        f = traced(kinds, rule)
        y = interpret(f, *args)
        assert y == rule(*args) and type(y) is type(rule(*args))
        assert f.results[0].type.weak and f.results[0].type.dtype == np.dtype(type(y)).name


# ---------------------------------------------------------------------------- calls and conversions


def called(function, *args, **keywords):
    xs = [a for a in args if not isinstance(a, tuple)]
    kinds = [
        Scalar("float64", True)
        if type(x) is float
        else Scalar("int64", True)
        if type(x) is int
        else Array(x.dtype.name, x.shape)
        for x in xs
    ]
    return interpret(
        traced(
            kinds, lambda *v: FUNCTIONS[function](*v, **{k: value(x) for k, x in keywords.items()})
        ),
        *xs,
    )


def test_calls_with_optional_arguments():
    x = np.array([-1.0, 0.26, 3.0])
    close(called(np.clip, x, 0.0, 1.0), np.clip(x, 0, 1))
    close(called(np.clip, x, a_max=1.0), np.minimum(x, 1))
    close(called(np.clip, x, 0.0), np.maximum(x, 0))
    close(called(np.round, x, decimals=1), np.round(x, 1))
    assert called(round, 2.6) == 3 and called(round, 2.64, 1) == 2.6
    assert called(max, 1.0, 3.0, 2.0) == 3.0 and called(min, 1.0, 3.0, 2.0) == 1.0
    assert called(math.log, 8.0, 2.0) == pytest.approx(3) and called(math.pow, 2, 3) == 8.0
    assert called(np.isclose, x, x + 1e-9).all() and not called(np.isclose, x, x + 1e-3).any()
    assert type(interpret(traced([Scalar("float64")], METHODS["item"]), np.float64(2))) is float
    assert called(operator.add, 2, 3) == 5 and called(np.nan_to_num, x).tolist() == x.tolist()
    assert (
        called(divmod, 7, 2) == (3, 1) and called(abs, -2.0) == 2.0 and type(called(abs, -2)) is int
    )


def test_conversions():
    assert (
        type(called(float, 2)) is float
        and type(called(int, 2.7)) is int
        and called(bool, 0.0) is False
    )
    assert type(called(np.float32, 2.0)) is np.float32 and type(called(np.float64, 2)) is np.float64
    x = np.array([1.0, 2.0], "float32")
    f = traced([Array("float32", (2,))], lambda v: METHODS["astype"](v, value(np.float64)))
    assert interpret(f, x).dtype == np.float64 and f.results[0].type.dtype == "float64"
    with Builder():
        v = Value(Array("float32", (2,)), "v")
        bar = Value(Array("float64", (2,)), "bar")
        y = astype(v, dtype="float64")
        assert text(y) == "v.astype(np.float64)"
        assert text(astype.vjp(bar, y, v, dtype="float64")[0]) == "bar.astype(np.float32)"
        assert astype.vjp(bar, y, v, dtype="int64") == (None,)


def test_refusals():
    with Builder():
        x = Value(VECTOR, "x")
        with pytest.raises(UnsupportedError, match="with the argument out="):
            FUNCTIONS[np.sin](x, out=x)
        with pytest.raises(UnsupportedError, match="np.where of two arguments"):
            FUNCTIONS[np.where](x, x)
        with pytest.raises(UnsupportedError, match="compares them as a whole") as refusal:
            FUNCTIONS[max](x, x)
        assert "use np.maximum" in str(refusal.value)
        with pytest.raises(TypeMismatchError, match="math.sin of an array"):
            FUNCTIONS[math.sin](x)
        with pytest.raises(TypeMismatchError, match="invert is not defined for float64"):
            ew.invert(x)
        with pytest.raises(TypeMismatchError, match="a number or an array is needed"):
            ew.sin(value(None))


def test_unknown_ranks_need_no_summing_where_shapes_are_the_same():
    with Builder():
        x, w = Value(Unknown("s", None), "x"), Value(Unknown("r", None), "w")
        y = ew.sin(x)
        y.name = "y"
        assert (
            y.type == Unknown("s")
            and text(ew.sin.vjp(Value(y.type, "bar"), y, x)[0]) == "bar * np.cos(x)"
        )
        z = x * w
        assert z.type == Unknown("r|s") and (x < w).type.dtype == "bool"
        assert (
            text(ew.multiply.jvp([Value(x.type, "x_dot"), Value(w.type, "w_dot")], z, x, w))
            == "x_dot * w + w_dot * x"
        )


def test_sum_to_shape():
    assert sum_to_shape(np.ones((2, 3)), (3,)).tolist() == [2, 2, 2]


def test_gradients_keep_the_precision_of_the_argument():
    x = np.array([1, 2, 3], "float32")
    gradient = s2s.grad(_of_single_precision)(x)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, 2 * np.cos(x) + 2 * x / 3 + 1, rtol=1e-5)


def _of_single_precision(x):
    return np.sum(np.sin(x) * 2.0 + x**2 / 3 + np.maximum(x, 0.5))


@pytest.mark.compile
def test_rounding_to_integers_is_one_instruction():
    def rounded(x):
        return np.round(x) + 0 * x

    x = np.array([-2.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, 1e16, np.nan])
    assert "np.rint(" in s2s.jit(rounded).lower(x).loops
    np.testing.assert_array_equal(
        s2s.jit(lambda x: np.round(x))(x).view(np.int64), np.round(x).view(np.int64)
    )
    for dtype in (np.float32, np.int64, np.complex128):
        y = x[:-1].astype(dtype)
        got = s2s.jit(lambda y: np.round(y))(y)
        assert got.dtype == y.dtype
        np.testing.assert_array_equal(got, np.round(y))
    assert s2s.jit(lambda x: np.round(x, 1))(2.55) == np.round(2.55, 1)


RANGE = (1e-170, 3e-160, 1e-8, 2.0, 1e8, 3e155, 1e170)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.arctan2, math.atan2])
def test_slopes_of_an_angle_over_the_whole_range(function):
    """x / (x * x + y * y), where the squares overflow or underflow and their quotient does not."""
    def angle(y, x):
        return function(y, x)

    slopes = s2s.grad(angle, argnums=(0, 1))
    for size in RANGE:
        for y, x in (
            (size, size),
            (-3 * size, 2 * size),
            (size, -1e-3 * size),
            (0.0, size),
            (size, 0.0),
        ):
            exact = fractions.Fraction(x) ** 2 + fractions.Fraction(y) ** 2
            wanted = float(fractions.Fraction(x) / exact), float(-fractions.Fraction(y) / exact)
            np.testing.assert_allclose(slopes(y, x), wanted, rtol=1e-14)
            forward = [s2s.jvp(angle, (y, x), dots)[1] for dots in ((1.0, 0.0), (0.0, 1.0))]
            np.testing.assert_allclose(forward, wanted, rtol=1e-14)
            if 1e-100 < size < 1e100:
                second = -2 * fractions.Fraction(x) * fractions.Fraction(y) / exact**2
                np.testing.assert_allclose(
                    s2s.grad(lambda y, x: slopes(y, x)[0])(y, x), float(second), rtol=1e-13
                )


def test_slopes_of_math_fmod_do_not_raise():
    slopes = s2s.grad(lambda x, y: math.fmod(x, y), argnums=(0, 1))
    for x, y, wanted in (
        (7.5, 2.0, -3.0),
        (3.0, math.nan, math.nan),
        (1e308, 1e-10, -math.inf),
        (math.nan, 2.0, math.nan),
    ):
        np.testing.assert_array_equal(slopes(x, y), (1.0, wanted))
        np.testing.assert_array_equal(
            s2s.jvp(lambda x, y: math.fmod(x, y), (x, y), (0.0, 1.0))[1], wanted
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_of_np_angle_over_the_whole_range():
    z = np.array([1.0 + 2.0j, -3.0 + 1.0j])
    for size in RANGE:
        wanted = s2s.grad(lambda z: np.sum(np.angle(z)))(z)
        np.testing.assert_allclose(
            s2s.grad(lambda z: np.sum(np.angle(z)))(z * size) * size, wanted, rtol=1e-13
        )
        assert s2s.grad(lambda z: cmath.phase(z))(complex(z[0]) * size) * size == pytest.approx(
            complex(wanted[0]), rel=1e-13
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_of_sinc_arcsinh_and_expm1_are_mpmaths():
    mp = pytest.importorskip("mpmath")
    tiny = [1e-300, 1e-20, 1e-9, 1e-5, 0.09, 0.11, 0.5, 3.3]
    points = {
        np.sinc: (lambda x: mp.sinc(mp.pi * x), [0.0, *tiny]),
        np.arcsinh: (mp.asinh, [0.0, 1e-9, 2.0, 1e100, 1e170, 1e300]),
        np.expm1: (mp.expm1, [-700.0, -300.0, -40.0, -20.0, -1e-9, 0.0, 1e-300, 3.0]),
    }
    for function, (exact, at) in points.items():
        at = np.array([*(-x for x in at if x and function is not np.expm1), *at])

        def of_arrays(x):
            return np.sum(function(x))  # noqa: B023

        def of_number(x):
            return function(x)  # noqa: B023

        with mp.workdps(50):
            if function is np.sinc:
                first = [
                    float(-mp.pi * mp.sqrt(1 / (2 * x)) * mp.besselj(1.5, mp.pi * x))
                    if x > 0
                    else 0.0
                    for x in map(mp.mpf, abs(at))
                ] * np.sign(at)
                second = [float(mp.diff(exact, mp.mpf(x), 2, h=mp.mpf(10) ** -12)) for x in at]
            else:
                first = [
                    float(1 / mp.hypot(x, 1) if function is np.arcsinh else mp.exp(x)) for x in at
                ]
                second = [
                    float(-mp.mpf(x) / mp.hypot(x, 1) ** 3 if function is np.arcsinh else mp.exp(x))
                    for x in at
                ]
        slope, slopes = s2s.grad(of_number), s2s.grad(of_arrays)
        np.testing.assert_allclose(slopes(at), first, rtol=1e-13)
        np.testing.assert_allclose([slope(x) for x in at], first, rtol=1e-13)
        np.testing.assert_allclose(s2s.vmap(slope)(at), first, rtol=1e-13)
        np.testing.assert_allclose(
            [s2s.jvp(of_number, (x,), (1.0,))[1] for x in at], first, rtol=1e-13
        )
        np.testing.assert_allclose(
            s2s.grad(lambda x: np.sum(slopes(x)))(at), second, rtol=1e-11, atol=1e-300
        )  # noqa: B023
        np.testing.assert_allclose(
            [s2s.jvp(slope, (x,), (1.0,))[1] for x in at], second, rtol=1e-11, atol=1e-300
        )


@pytest.mark.compile
def test_such_slopes_in_native_code():
    x = np.array([0.0, 1e-300, 1e-9, 0.09, 0.5, -1e-5])
    for of_arrays, at in (
        (lambda x: np.sum(np.sinc(x)), x),
        (
            lambda x: np.sum(np.arctan2(x[:3], x[3:])),
            np.array([1e-170, 1e170, 2.0, 1e-170, 2e170, 1.0]),
        ),
        (
            lambda x: np.sum(np.logaddexp(x[:3], x[3:])),
            np.array([np.inf, -np.inf, 1.0, 0.0, -np.inf, -np.inf]),
        ),
    ):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                s2s.jit(s2s.grad(of_arrays))(at), s2s.grad(of_arrays)(at), rtol=1e-13
            )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_slopes_of_logaddexp_of_infinities(function):
    """The limits; that at two of -inf is 0, as of a sum of nothing, and at two of inf there is
    none.
    """
    inf, nan = np.inf, np.nan
    pairs = {
        (inf, 0.0): (1.0, 0.0),
        (0.0, inf): (0.0, 1.0),
        (inf, -inf): (1.0, 0.0),
        (-inf, inf): (0.0, 1.0),
        (-inf, 0.0): (0.0, 1.0),
        (0.0, -inf): (1.0, 0.0),
        (-inf, -inf): (0.0, 0.0),
        (inf, inf): (nan, nan),
        (0.0, 0.0): (0.5, 0.5),
        (nan, 0.0): (nan, nan),
    }
    a, b = np.array(list(pairs)).T
    slopes = s2s.grad(lambda a, b: function(a, b), argnums=(0, 1))
    for found in (
        s2s.grad(lambda a, b: np.sum(function(a, b)), argnums=(0, 1))(a, b),
        s2s.vmap(slopes)(a, b),
        np.array([slopes(*pair) for pair in pairs]).T,
    ):
        np.testing.assert_allclose(np.transpose(found), list(pairs.values()), rtol=1e-15)
    for pair, wanted in pairs.items():
        forward = s2s.jvp(lambda a, b: function(a, b), pair, (1.0, 0.0))
        np.testing.assert_array_equal(forward[0], function(*pair))
        np.testing.assert_allclose(forward[1], wanted[0], rtol=1e-15)
        if pair not in ((0.0, 0.0), (inf, inf)):
            second = s2s.grad(lambda a, b: slopes(a, b)[0])(*pair)
            np.testing.assert_array_equal(second, 0.0 * wanted[0])
    for x, wanted in ((inf, 1.0), (-inf, 0.0), (800.0, 1.0)):
        to_number = s2s.grad(lambda x: function(0.0, x))
        assert to_number(x) == wanted and s2s.grad(to_number)(x) == 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forward_algorithm_with_impossible_steps():
    """A hidden Markov model whose logarithms of probabilities are -inf in places: slopes are those
    of the sum of the products.
    """
    def forward(log_step, log_seen):
        state = log_seen[0]
        for t in range(1, len(log_seen)):
            after = np.full(2, -np.inf)
            for j in range(2):
                for i in range(2):
                    after[j] = np.logaddexp(after[j], state[i] + log_step[i, j])
            state = after + log_seen[t]
        return np.logaddexp(state[0], state[1])

    step, seen = np.array([[0.7, 0.3], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.2, 0.4], [0.0, 0.9]])

    def plain(step):
        state = seen[0]
        for t in range(1, len(seen)):
            state = state @ step * seen[t]
        return np.log(np.sum(state))

    with np.errstate(divide="ignore"):
        value, slope = s2s.value_and_grad(forward)(np.log(step), np.log(seen))
    wanted = [
        [
            (plain(step * (1 + h * unit)) - plain(step * (1 - h * unit))) / (2 * h)
            for unit in np.eye(4)[2 * i : 2 * i + 2].reshape(2, 2, 2)
        ]
        for i in range(2)
        for h in (1e-6,)
    ]
    assert value == pytest.approx(plain(step), rel=1e-14)
    np.testing.assert_allclose(slope, wanted, rtol=1e-8, atol=1e-10)
