"""Reductions: value, type, both modes and second order, ranks known and unknown; and how adjoints
read.
"""

import builtins
import itertools

import numpy as np
import pytest
from judge import judge as judge_program
from judging import array, judge, traced
from scipy import special

import s2s
from s2s.errors import S2SError, TypeMismatchError, UnsupportedError
from s2s.ir.interpret import interpret
from s2s.ops.core.record import FUNCTIONS, METHODS
from s2s.transform.reverse.vjp import vjp

X, V, S = array(3, 4), array(5), array(2, 3, 4)
AXES = [
    (None, False),
    (0, False),
    (1, False),
    (-1, False),
    (0, True),
    (None, True),
    ((0, 1), False),
    ((0, 1), True),
]


@pytest.mark.parametrize("axis, keepdims", AXES)
@pytest.mark.parametrize("function", [np.sum, np.mean, np.max, np.min, np.var, np.std, np.ptp])
def test_along_axes(function, axis, keepdims):
    judge(
        lambda x: FUNCTIONS[function](x, axis=axis, keepdims=keepdims),
        lambda x: function(x, axis=axis, keepdims=keepdims),
        X,
    )


@pytest.mark.parametrize(
    "function",
    [np.sum, np.mean, np.prod, np.max, np.cumsum, np.cumprod, np.linalg.norm, special.logsumexp],
)
def test_of_a_vector(function):
    judge(FUNCTIONS[function], function, V)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_of_a_stack_of_matrices(axis):
    judge(lambda x: FUNCTIONS[np.sum](x, axis), lambda x: np.sum(x, axis), S)
    judge(lambda x: FUNCTIONS[np.mean](x, axis=(0, 2)), lambda x: np.mean(x, axis=(0, 2)), S)


@pytest.mark.parametrize(
    "name",
    ["sum", "mean", "max", "min", "var", "std", "prod", "cumsum", "any", "all", "argmax", "argmin"],
)
def test_methods(name):
    judge(lambda x: METHODS[name](x), lambda x: getattr(x, name)(), V, derivative=False)


@pytest.mark.parametrize("function", [np.argmax, np.argmin, np.any, np.all, np.count_nonzero])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_without_derivative(function, axis):
    judge(
        lambda x: FUNCTIONS[function](x, axis=axis),
        lambda x: function(x, axis=axis),
        X,
        derivative=False,
    )


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("function", [np.cumsum, np.cumprod, np.prod])
def test_running_along_an_axis(function, axis):
    judge(
        lambda x: FUNCTIONS[function](x, axis=axis),
        lambda x: function(x, axis=axis),
        X,
        tolerance=1e-4,
        second=False,
    )


@pytest.mark.parametrize("function", [np.prod, np.cumprod])
def test_products_with_zeros_have_their_derivative(function):
    judge(FUNCTIONS[function], function, np.array([1.5, 0.0, 2.0]))
    judge(FUNCTIONS[function], function, np.array([1.5, 0.0, 2.0, 0.0]))


@pytest.mark.parametrize("function", [np.prod, np.cumprod, np.cumsum])
@pytest.mark.parametrize("shape, axis", [((0, 3), 0), ((3, 0), 1), ((0, 0), 0), ((0,), 0)])
def test_products_of_nothing(function, shape, axis):
    def f(x):
        return np.sum(function(x, axis=axis))

    assert s2s.grad(f)(np.zeros(shape)).shape == shape
    assert s2s.jvp(f, (np.zeros(shape),), (np.zeros(shape),)) == (f(np.zeros(shape)), 0.0)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("function", [np.sum, np.max, np.mean, np.prod, np.cumsum])
def test_dtypes(function, dtype):
    judge(FUNCTIONS[function], function, np.array([1, 0, 1]).astype(dtype), derivative=False)


def test_extremes_of_single_precision_have_derivatives_in_it():
    """How often the maximum occurs is an integer, by which a number of NumPy's would become one of
    double precision.
    """
    x, w = np.array([[1, 2], [2, 2]], np.float32), np.array([1, 3], np.float32)
    derivative = s2s.grad(lambda x, w: np.sum(w * np.max(x, axis=1)))
    np.testing.assert_array_equal(derivative(x, w), np.array([[0, 1], [1.5, 1.5]], np.float32))
    assert "astype(np.float32)" in derivative.source
    assert "float64" not in s2s.jit(derivative).lower(x, w).loops


def test_dtype_argument():
    judge(
        lambda x: FUNCTIONS[np.sum](x, dtype=np.float64),
        lambda x: np.sum(x, dtype=np.float64),
        np.arange(4),
        derivative=False,
    )


def test_ddof():
    judge(lambda x: FUNCTIONS[np.var](x, ddof=1), lambda x: np.var(x, ddof=1), V)


@pytest.mark.parametrize("axis", [None, 1])
def test_average(axis):
    judge(
        lambda x, w: FUNCTIONS[np.average](x, axis=axis, weights=w),
        lambda x, w: np.average(x, axis=axis, weights=w),
        X,
        np.abs(array(3, 4)) + 1,
    )


def test_average_with_weights_of_one_axis():
    judge(
        lambda x, w: FUNCTIONS[np.average](x, axis=0, weights=w),
        lambda x, w: np.average(x, axis=0, weights=w),
        X,
        np.abs(array(3)) + 1,
        modes=(True,),
    )


@pytest.mark.parametrize(
    "keywords", [{}, {"ord": 2}, {"ord": 1}, {"ord": np.inf}, {"ord": 2, "keepdims": True}]
)
def test_norms_of_a_vector(keywords):
    judge(
        lambda x: FUNCTIONS[np.linalg.norm](x, **keywords),
        lambda x: np.linalg.norm(x, **keywords),
        V,
        modes=(True,),
    )


@pytest.mark.parametrize("keywords", [{}, {"ord": "fro"}, {"axis": 1}, {"axis": 0, "ord": 1}])
def test_norms_of_a_matrix(keywords):
    judge(
        lambda x: FUNCTIONS[np.linalg.norm](x, **keywords),
        lambda x: np.linalg.norm(x, **keywords),
        X,
    )


@pytest.mark.parametrize("axis, keepdims", AXES)
def test_logsumexp(axis, keepdims):
    judge(
        lambda x: FUNCTIONS[special.logsumexp](x, axis=axis, keepdims=keepdims),
        lambda x: special.logsumexp(x, axis=axis, keepdims=keepdims),
        X,
    )


def test_builtin_sum():
    judge(FUNCTIONS[builtins.sum], builtins.sum, V)
    judge(FUNCTIONS[builtins.sum], builtins.sum, X)
    judge(
        lambda x, y: FUNCTIONS[builtins.sum]((x, y, x)),
        lambda x, y: sum((x, y, x)),
        2.0,
        3.0,
        modes=(True,),
    )


def test_ties_share_equally():
    x = np.array([1.0, 3.0, 3.0, 2.0])
    f = traced(FUNCTIONS[np.max], [x])
    np.testing.assert_array_equal(interpret(vjp(f, [0]), x, 1.0)[1], [0, 0.5, 0.5, 0])


def test_sum_of_numbers_in_a_tuple():
    judge(
        lambda x, y: FUNCTIONS[np.sum]((x, y)), lambda x, y: np.sum((x, y)), 2.0, 3.0, modes=(True,)
    )


def test_an_axis_that_is_not_there():
    with pytest.raises(TypeMismatchError, match="axis 2 of an array of 2 axes"):
        traced(lambda x: FUNCTIONS[np.sum](x, axis=2), [X])


def test_arguments_not_supported():
    with pytest.raises(UnsupportedError, match="the argument out= of a reduction"):
        traced(lambda x: FUNCTIONS[np.sum](x, out=x), [X])


# ------------------------------------------------------------------------------------- Python's sum


def moments(x):
    return sum(x) * sum(x * x, 0.5) + np.sum(np.sqrt(abs(sum(x.reshape(-1, 3)))))


@pytest.mark.lengthy
@pytest.mark.parametrize("through", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_sum_adds_one_after_another(through):
    """np.sum adds in pairs, so its last bits are others."""
    x = np.random.default_rng(0).normal(size=300) ** 3
    assert sum(x) != np.sum(x)
    assert through(s2s.value_and_grad(lambda x: sum(x)))(x)[0] == sum(x)
    single = x.astype(np.float32)
    assert through(s2s.value_and_grad(lambda x: sum(x)))(single)[0] == sum(single)
    judge_program(moments, x, compiled=through is s2s.jit)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.int32, np.uint8, np.int64, np.float32, np.complex64]
)
def test_sum_has_pythons_dtype(dtype):
    x = (np.arange(90) % 7).astype(dtype)
    found = s2s.jvp(
        lambda x, t: (sum(x), t), (x, 1.0), (x.astype(float) if dtype != np.complex64 else x, 1.0)
    )[0][0]
    assert (found, type(found)) == (sum(x), type(sum(x)))


def test_sum_of_a_number():
    with pytest.raises(TypeMismatchError, match="sum of a number"):
        s2s.grad(lambda x: sum(x))(1.0)


@pytest.mark.parametrize("function", [max, min])
def test_python_s_extreme_of_rows(function):
    """Of one row it is the row; rows are compared as a whole, which Python refuses, too."""
    row = np.array([[0.3, 2.0, -1.0]])
    np.testing.assert_array_equal(s2s.jvp(lambda a: function(a), (row,), (0 * row,))[0], row[0])
    with pytest.raises(UnsupportedError, match="as a whole"):
        s2s.grad(lambda a: np.sum(function(a)))(np.ones((2, 3)))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_means_of_integers_whose_sum_is_none(dtype):
    x = np.full((2, 3), np.iinfo(dtype).max // 2 + 1, dtype)
    for f in (lambda x: np.mean(x), lambda x: np.mean(x, axis=0)[1], lambda x: x.mean(axis=1)[0]):
        for found in (
            s2s.jvp(lambda x, t: f(x) * t, (x, 1.0), (np.zeros(x.shape), 0.0))[0],
            s2s.value_and_grad(lambda t: t * f(x))(1.0)[1],
        ):
            np.testing.assert_allclose(found, f(x), rtol=1e-15)


ALONG_NO_AXIS = (np.sum, np.max, np.min, np.any, np.all, np.mean)


@pytest.mark.parametrize(
    "through",
    [
        lambda f: s2s.value_and_grad(lambda x: (0.0, f(x)), has_aux=True),
        pytest.param(s2s.jit, marks=pytest.mark.compile),
    ],
)
@pytest.mark.parametrize("function", ALONG_NO_AXIS)
def test_along_no_axis_are_the_elements(function, through):
    x = np.array([[0.5, -1.25], [2.0, 0.0]])
    for v in (x, x.astype(np.float32)):
        found = through(lambda x: function(x, axis=()))(v)
        found = found[0][1] if isinstance(found, tuple) else found
        assert (
            np.array_equal(found, function(v, axis=()))
            and found.dtype == function(v, axis=()).dtype
            and not np.shares_memory(found, v)
        )


@pytest.mark.compile
@pytest.mark.parametrize("x", [np.array([True, False]), np.array([3, 0, -2])])
def test_truth_values_and_integers_along_no_axis(x):
    for function in ALONG_NO_AXIS:
        found = s2s.jit(lambda x, function=function: function(x, axis=()))(x)
        assert (
            np.array_equal(found, function(x, axis=()))
            and found.dtype == function(x, axis=()).dtype
        )


@pytest.mark.parametrize("function", (np.sum, np.max, np.min, np.mean))
def test_slopes_along_no_axis(function):
    x = np.array([[0.5, -1.25], [2.0, 0.25]])
    found = s2s.grad(lambda x: np.sum(function(np.sin(x), axis=()) ** 2))(x)
    np.testing.assert_allclose(found, np.sin(2 * x), rtol=1e-14)


@pytest.mark.parametrize("axis", [(1, 2), (0, 2), (2, 0), (0, 1, 2), (1,), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_product_along_several_axes(axis, keepdims):
    x = np.sin(np.arange(24.0).reshape(2, 3, 4)) + 0.3
    x[1, 1, 2] = 0.0

    def f(x):
        return np.sum(np.prod(x, axis=axis, keepdims=keepdims) ** 2)

    h, d = 1e-6, np.cos(np.arange(24.0).reshape(2, 3, 4))
    slope = (f(x + h * d) - f(x - h * d)) / (2 * h)
    np.testing.assert_allclose(np.sum(s2s.grad(f)(x) * d), slope, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(s2s.jvp(f, (x,), (d,))[1], slope, rtol=1e-5, atol=1e-8)
    lanes = s2s.grad(lambda x: np.sum(s2s.vmap(np.prod)(x)))(x)
    np.testing.assert_allclose(lanes, [s2s.grad(lambda m: np.prod(m))(m) for m in x], rtol=1e-12)


# ------------------------------------------------------------------------------- dtype= and out=

OPTIONS = [
    *(f"dtype={kind}{more}" for kind in ("int", "np.int32", "np.float32", "bool", "complex")
      for more in ("", ", axis=0", ", keepdims=True", ", where=x > 0")),
    *(f"out=np.zeros({shape}){more}" for shape in ("3", "(2, 3)", "(1, 3)", "1", "(3, 1)")
      for more in ("", ", axis=0", ", dtype=np.float32", ", keepdims=True")),
    "axis=0, out=np.zeros(3, int)", "axis=0, out=np.zeros(3, np.float32)", 
    "keepdims=True, where=x > 0", "ddof=1, dtype=np.float32",
]  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "prod",
        "mean",
        "var",
        "std",
        "cumsum",
        "cumprod",
        "nancumsum",
        "nansum",
        "nanvar",
        "max",
    ],
)
def test_what_it_adds_up_in_and_writes_to(name):
    """NumPy's value, shape and dtype, or both raise; what only NumPy takes is refused when code is
    generated.
    """
    rows = np.array([[1.7, 2.9, -3.6], [4.4, 0.5, -1.5]])
    for option, x in itertools.product(
        OPTIONS, (rows, rows.astype(np.float32), np.arange(6).reshape(2, 3), rows > 0)
    ):
        text = f"np.{name}(x, {option})"
        f = s2s.from_source(f"def f(x):\n    return {text}\n", {"np": np})
        try:
            found = s2s.vmap(f)(x[None])[0]
        except (S2SError, ValueError, TypeError):
            continue
        wanted = eval(text, {"np": np, "x": x})
        assert np.asarray(found).dtype == np.asarray(wanted).dtype, f"{text} of {x.dtype}"
        np.testing.assert_allclose(
            found, wanted, rtol=1e-6, err_msg=f"{text} of {x.dtype}", strict=True
        )


def test_a_variance_in_single_precision_rounds_only_its_mean():
    x = 1e8 + np.arange(6.0)
    for f in (lambda x: np.var(x, dtype=np.float32), lambda x: np.std(x, dtype=np.float32, ddof=1)):
        assert s2s.value_and_grad(f)(x)[0] == f(x)


def test_an_array_for_a_sum_of_another_shape():
    def repeated(x):
        y = np.zeros((4, 3))
        np.sum(x, axis=0, out=y)
        return y

    def as_long(x, n):
        y = np.zeros(n)
        np.sum(x, axis=0, out=y)
        return y

    with pytest.raises(
        TypeMismatchError,
        match="(?s)np.sum with out= of 2 axes, where the result has 1.*y\\[...\\] = the result",
    ):
        s2s.vmap(repeated)(np.ones((1, 2, 3)))
    with pytest.raises(TypeMismatchError, match="(?s)np.sum with out= of int64, where the result "
                                                "is float64.*of that dtype"):
        s2s.vmap(lambda x: np.sum(x, axis=0, out=np.zeros(3, int)))(np.ones((1, 2, 3)))
    for n in (1, 4):
        with pytest.raises(ValueError):
            s2s.vmap(as_long, in_axes=(0, None))(np.ones((1, 2, 3)), n)
    assert np.array_equal(s2s.vmap(as_long, in_axes=(0, None))(np.ones((1, 2, 3)), 3), [[2, 2, 2]])


KEPT_AXES = {
    "norm": lambda M: np.sum(np.linalg.norm(M, axis=1, keepdims=True)),
    "norm along all axes": lambda M: np.mean(np.linalg.norm(M, keepdims=True)),
    "norm of order 3": lambda M: np.sum(np.linalg.norm(M, 3, axis=0, keepdims=True)),
    "norm of order 1": lambda M: np.sum(np.linalg.norm(M, 1, axis=1, keepdims=True)),
    "sum": lambda M: np.sum(np.sum(np.sin(M), axis=1, keepdims=True)),
    "root": lambda M: np.sum(np.sqrt(np.sum(M * M, axis=0, keepdims=True))),
    "mean": lambda M: np.sum(-3.0 * np.mean(np.abs(M) * M, axis=1, keepdims=True)),
    "std": lambda M: np.mean(np.std(M, axis=1, keepdims=True)),
    "logsumexp": lambda M: np.sum(special.logsumexp(M, axis=1, keepdims=True)),
    "twice": lambda M: np.sum(np.sum(np.sum(M**3, axis=1, keepdims=True), axis=0, keepdims=True)),
}


@pytest.mark.parametrize("name", KEPT_AXES)
def test_sums_of_reductions_that_keep_their_axes(name):
    f, M = KEPT_AXES[name], np.arange(6.0).reshape(2, 3) ** 1.3 + 0.3
    h, wanted = 1e-5, np.zeros((2, 3))
    for k in np.ndindex(2, 3):
        D = np.zeros((2, 3))
        D[k] = h
        wanted[k] = (f(M + D) - f(M - D)) / (2 * h)
    np.testing.assert_allclose(s2s.grad(f)(M), wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(s2s.jacfwd(f)(M), wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        s2s.vmap(s2s.grad(f))(np.stack([M, M]))[1], wanted, rtol=1e-8, atol=1e-8
    )


@pytest.mark.compile
@pytest.mark.parametrize("name", ["norm", "norm of order 1"])
def test_sums_of_reductions_that_keep_their_axes_compiled(name):
    f, M = KEPT_AXES[name], np.arange(6.0).reshape(2, 3) ** 1.3 + 0.3
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(M), s2s.jacfwd(f)(M), rtol=1e-13)
