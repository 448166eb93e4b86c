"""Products and systems: value, type, both modes and second order, ranks known and unknown; and how
they read.
"""

import ast
import operator

import numpy as np
import pytest
from judge import judge as judge_program
from judging import array, judge, traced

import s2s
from s2s.errors import TypeMismatchError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Value
from s2s.ir.types import Array, Extent
from s2s.ops.arrays.products import matmul
from s2s.ops.core.record import FUNCTIONS, METHODS, value

V, W, M, A, B = array(3), array(4), array(3, 4), array(4, 2), array(5, 3, 4)
WELL = array(3, 3) + 5 * np.eye(3)


@pytest.mark.parametrize(
    "a, b",
    [
        (V, V),
        (M, W),
        (V, M),
        (M, A),
        (B, A),
        (B, W),
        (V, B),
        (B, array(5, 4, 2)),
        (M, array(5, 4, 2)),
    ],
    ids=lambda x: str(x.shape),
)
def test_matmul(a, b):
    judge(operator.matmul, operator.matmul, a, b)


@pytest.mark.parametrize(
    "a, b",
    [(V, V), (M, W), (V, M), (M, A), (2.5, M), (M, 2.5), (B, W)],
    ids=lambda x: str(np.shape(x)),
)
def test_dot(a, b):
    judge(FUNCTIONS[np.dot], np.dot, a, b)


def test_dot_as_a_method():
    judge(METHODS["dot"], lambda a, b: a.dot(b), M, W)


@pytest.mark.parametrize("function", [np.outer, np.vdot])
def test_raveled_products(function):
    judge(FUNCTIONS[function], function, V, array(3))
    judge(FUNCTIONS[function], function, array(2, 3), array(2, 3))


@pytest.mark.parametrize("a, b", [(V, V), (M, W), (M, array(2, 4))], ids=lambda x: str(np.shape(x)))
def test_inner(a, b):
    judge(FUNCTIONS[np.inner], np.inner, a, b)


@pytest.mark.parametrize("axes", [0, 1, 2, ((1,), (0,)), ((0, 1), (1, 0)), ((-1,), (-2,))])
def test_tensordot(axes):
    judge(
        lambda a, b: FUNCTIONS[np.tensordot](a, b, axes=axes),
        lambda a, b: np.tensordot(a, b, axes=axes),
        array(3, 3),
        array(3, 3),
        modes=(True,),
    )


def test_tensordot_of_three_axes():
    judge(
        lambda a, b: FUNCTIONS[np.tensordot](a, b, axes=((0, 2), (1, 2))),
        lambda a, b: np.tensordot(a, b, axes=((0, 2), (1, 2))),
        array(2, 3, 4),
        array(5, 2, 4),
        modes=(True,),
    )


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("ij,jk->ik", [(3, 4), (4, 2)]),
        ("ij,jk", [(3, 4), (4, 2)]),
        ("ij->ji", [(3, 4)]),
        ("ij->i", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("i,i->", [(3,), (3,)]),
        ("i,j->ij", [(3,), (4,)]),
        ("bij,bjk->bik", [(5, 3, 4), (5, 4, 2)]),
        ("nd,de,ne->n", [(5, 3), (3, 4), (5, 4)]),
        ("ij,k->k", [(3, 4), (2,)]),
    ],
)
def test_einsum(subscripts, shapes):
    xs = [array(*shape) for shape in shapes]
    judge(
        lambda *xs: FUNCTIONS[np.einsum](subscripts, *xs),
        lambda *xs: np.einsum(subscripts, *xs),
        *xs,
    )


def slopes(f, xs):
    """The gradient of f, of second degree in each element, by central differences."""
    for k, x in enumerate(xs):
        slope = np.zeros(x.shape)
        for i in np.ndindex(x.shape):
            ends = []
            for h in (0.5, -0.5):
                moved = x.copy()
                moved[i] += h
                ends.append(f(*xs[:k], moved, *xs[k + 1:]))
            slope[i] = ends[0] - ends[1]
        yield slope


@pytest.mark.parametrize("subscripts, shapes", [
    ("a,a->a", [(1,), (3,)]),
    ("a,abd->dab", [(1,), (3, 3, 2)]),
    ("a,a->", [(3,), (1,)]),
    ("ab,ab->", [(1, 2), (3, 1)]),
    ("ab,bc->ac", [(2, 1), (4, 3)]),
    ("cab,bc,cab->", [(5, 2, 3), (3, 1), (5, 1, 3)]),
    ("abc,a->a", [(1, 2, 3), (4,)]),
    ("...i,...i->...", [(1, 3), (4, 3)]),
])
def test_axes_of_length_one_of_an_einsum_are_spread(subscripts, shapes):
    def f(*xs):
        return np.sum(np.einsum(subscripts, *xs) ** 2)

    xs = [array(*shape) for shape in shapes]
    for x_bar, expected in zip(
        s2s.grad(f, argnums=tuple(range(len(xs))))(*xs), slopes(f, xs), strict=True
    ):
        assert x_bar.shape == expected.shape
        np.testing.assert_allclose(x_bar, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shapes", [((1, 2), (3,)), ((3, 2), (1,)), ((3, 2), (3,))], ids=str)
def test_before_any_call_the_run_tells_which_axes_of_an_einsum_are_spread(shapes):
    def f(x, y):
        return np.sum(np.einsum("ab,a->b", x, y) ** 2)

    names = {}
    exec(s2s.grad(f, argnums=(0, 1)).source, names)
    xs = [array(*shape) for shape in shapes]
    for x_bar, expected in zip(names["f_grad"](*xs), slopes(f, xs)):
        np.testing.assert_allclose(x_bar, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("x", [[-1.0, -2.0, 3.0], [1.0, 2.0, 3.0]], ids=["one", "three"])
def test_a_run_tells_which_axes_of_an_einsum_are_spread(x):
    def f(x, y):
        return np.sum(np.einsum("a,a->", x[x > 0], y) ** 2)

    x, y = np.array(x), np.array([1.0, -2.0, 0.5])
    for x_bar, expected in zip(s2s.grad(f, argnums=(0, 1))(x, y), slopes(f, [x, y])):
        np.testing.assert_allclose(x_bar, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 2, 2), (1, 2, 1)),
        ((1, 2, 2), (4, 2, 3)),
        ((4, 2, 2), (2,)),
        ((2, 2), (4, 2, 3)),
        ((2, 1, 2, 2), (1, 3, 2, 2)),
    ],
    ids=str,
)
def test_stacks_of_systems_are_spread(shapes):
    a, b = array(*shapes[0]) + 3 * np.eye(2), array(*shapes[1])
    a_bar, b_bar = s2s.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), argnums=(0, 1))(a, b)
    y = np.linalg.solve(a, b if b.ndim > 1 else b[:, None])
    # by hand, before what was spread is summed
    full = np.linalg.solve(np.swapaxes(a, -1, -2), 2 * y)
    for x_bar, x, whole in (
        (b_bar, b if b.ndim > 1 else b[:, None], full),
        (a_bar, a, -full @ np.swapaxes(y, -1, -2)),
    ):
        extra = whole.ndim - x.ndim
        whole = whole.sum(axis=tuple(range(extra)))
        expected = whole.sum(
            axis=tuple(k for k in range(x.ndim) if x.shape[k] == 1 < whole.shape[k]), keepdims=True
        )
        np.testing.assert_allclose(x_bar, expected.reshape(x_bar.shape), rtol=1e-10)
        assert x_bar.size == x.size


def test_einsum_that_is_not_supported():
    with pytest.raises(TypeMismatchError, match="the result lacks the axes of the ellipsis"):
        traced(lambda x: FUNCTIONS[np.einsum]("...i->i", x), [WELL])
    with pytest.raises(TypeMismatchError, match="more axes are named than there are"):
        traced(lambda x: FUNCTIONS[np.einsum]("ijk...->i...", x), [WELL])
    with pytest.raises(TypeMismatchError, match="'i' names the axes of float64"):
        traced(lambda x: FUNCTIONS[np.einsum]("i->", x), [WELL])


@pytest.mark.parametrize("function", [np.linalg.inv, np.linalg.det])
def test_of_a_square_matrix(function):
    judge(FUNCTIONS[function], function, WELL)
    judge(FUNCTIONS[function], function, np.stack([WELL, WELL + 1]), modes=(True,))


def test_slogdet():
    judge(
        lambda a: FUNCTIONS[np.linalg.slogdet](a).op.inputs[1],
        lambda a: np.linalg.slogdet(a)[1],
        WELL,
    )


@pytest.mark.parametrize("b", [V, M], ids=["vector", "matrix"])
def test_solve(b):
    judge(FUNCTIONS[np.linalg.solve], np.linalg.solve, WELL, b)


def test_solve_of_a_stack():
    judge(
        FUNCTIONS[np.linalg.solve],
        np.linalg.solve,
        np.stack([WELL, WELL + 1]),
        array(2, 3, 4),
        modes=(True,),
    )


def test_cholesky():
    judge(
        lambda a: FUNCTIONS[np.linalg.cholesky](
            a @ a.T if isinstance(a, np.ndarray) else a @ FUNCTIONS[np.transpose](a)
        ),
        lambda a: np.linalg.cholesky(a @ a.T),
        WELL,
        modes=(True,),
    )


@pytest.mark.parametrize("f", [
    lambda a: np.linalg.cholesky(a @ a.conj().T + np.eye(3)),
    lambda a: np.linalg.slogdet(a)[0],
    lambda a: np.linalg.slogdet(a)[1],
    lambda a: np.linalg.slogdet(np.stack([a, 2j * a]))[0],
], ids=["cholesky", "sign", "logarithm", "signs"])
def test_of_a_complex_matrix(f):
    """Against differences; forward mode gives the types of the result, reverse mode is its
    transpose, and so are second derivatives.
    """
    a, d, e = (array(3, 3) + 1j * array(3, 3) + shift * np.eye(3) for shift in (4, 0, 0))
    y, y_dot = s2s.jvp(f, (a,), (d,))
    np.testing.assert_array_equal(y, f(a))
    np.testing.assert_allclose(
        y_dot, (f(a + 1e-5 * d) - f(a - 1e-5 * d)) / 2e-5, rtol=1e-7, atol=1e-9
    )
    assert np.asarray(y_dot).dtype == np.asarray(y).dtype
    y_bar = (1 - 2j) * np.conj(y) if np.iscomplexobj(y) else 3 * y
    pull = s2s.vjp(f)

    def back(a):
        return pull(a, y_bar)[0]

    np.testing.assert_allclose(np.sum(back(a) * d).real, np.sum(y_bar * y_dot).real, rtol=1e-12)
    np.testing.assert_allclose(
        s2s.jvp(back, (a,), (e,))[1],
        (back(a + 1e-5 * e) - back(a - 1e-5 * e)) / 2e-5,
        rtol=1e-6,
        atol=1e-7,
    )


@pytest.mark.parametrize(
    "a, b, dtype",
    [
        ("float32", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("int64", "float32", "float64"),
        ("int64", "int64", "int64"),
    ],
)
def test_dtypes_of_products(a, b, dtype):
    f = traced(matmul, [M.astype(a), W.astype(b)])
    assert f.results[0].type.dtype == dtype
    judge(matmul, operator.matmul, M.astype(a), W.astype(b), derivative=False)


def test_products_with_numbers_are_refused():
    with pytest.raises(TypeMismatchError, match="a matrix product with a number"):
        traced(matmul, [M, 2.0])


def test_known_lengths_must_agree():
    block = Block([Value(Array("float64", (3, 4)), "a"), Value(Array("float64", (3,)), "b")])
    with Builder(block), pytest.raises(TypeMismatchError, match="lengths 4 and 3"):
        matmul(*block.params)


@pytest.mark.lengthy
def test_dot_with_a_stack_on_the_right():
    """Its matrices are summed over by their rows, one stack beside the other, which is not what @
    does.
    """
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    for a in (left, left[0], left[0, 0]):
        judge_program(lambda a, b: np.sum(np.dot(a, b) ** 2), a, right)
    block = Block([Value(Array("float64", (2, 3)), "a"), Value(Array("float64", (2, 4, 5)), "b")])
    with Builder(block), pytest.raises(TypeMismatchError, match="dot of axes of lengths 3 and 4"):
        FUNCTIONS[np.dot](*block.params)


def spelled(v: Value) -> str:
    def expression(v):
        if v.op is None:
            return ast.Name(v.name, ast.Load())
        return v.op.record.syntax(*map(expression, v.op.inputs), **v.op.attrs)

    return ast.unparse(expression(v))


@pytest.mark.parametrize(
    "a, b, left, right",
    [
        (1, 1, "y_bar * b", "y_bar * a"),
        (2, 1, "np.outer(y_bar, b)", "y_bar @ a"),
        (1, 2, "b @ y_bar", "np.outer(a, y_bar)"),
        (2, 2, "y_bar @ b.T", "a.T @ y_bar"),
        (3, 2, "y_bar @ b.T", "rows(a).T @ rows(y_bar)"),
    ],
)
def test_cotangents_of_products_read_as_products(a, b, left, right):
    n = [Extent(f"n{k}", 0, False) for k in range(4)]
    dims = {1: (n[1],), 2: (n[0], n[1]), 3: (n[3], n[0], n[1])}[a], {1: (n[1],), 2: (n[1], n[2])}[b]
    block = Block([Value(Array("float64", d), name) for d, name in zip(dims, "ab")])
    with Builder(block):
        y = matmul(*block.params)
        y_bar = Value(y.type, "y_bar")
        bars = y.op.record.vjp(y_bar, y, *block.params)
    assert spelled(bars[0]) == left
    said = spelled(bars[1])
    # one product, where a sum of the stack's products would take as much memory as they all
    for name in ("a", "y_bar"):
        said = said.replace(
            f"np.reshape({name}, (len({name}) * {name}.shape[1], {name}.shape[2]))", f"rows({name})"
        )
    assert said == right


def test_value_of_numbers():
    with Builder(Block()):
        assert FUNCTIONS[np.dot](value(2.0), value(3.0)).constant == 6.0


@pytest.mark.parametrize(
    "rule", [matmul, FUNCTIONS[np.outer], lambda a, b: FUNCTIONS[np.concatenate]((a, b))]
)
def test_cotangents_have_the_precision_of_their_operands(rule):
    a, b = Value(Array("float32", (3,)), "a"), Value(Array("float64", (3,)), "b")
    with Builder(Block([a, b])):
        y = rule(a, b)
        bars = y.op.record.vjp(Value(y.type), y, a, b, **y.op.attrs)
    assert y.type.dtype == "float64" and [bar.type.dtype for bar in bars] == ["float32", "float64"]


@pytest.mark.parametrize("rule", [matmul, FUNCTIONS[np.outer]])
def test_cotangents_of_real_operands_are_real(rule):
    a, b = Value(Array("float64", (3,)), "a"), Value(Array("complex128", (3,)), "b")
    with Builder(Block([a, b])):
        y = rule(a, b)
        bars = y.op.record.vjp(Value(y.type), y, a, b)
    assert [bar.type.dtype for bar in bars] == ["float64", "complex128"]
