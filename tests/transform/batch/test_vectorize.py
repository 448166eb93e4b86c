"""vectorize against np.vectorize, which calls the function itself for each element."""

import numpy as np
import pytest

import s2s
from s2s.errors import ShapeMismatchError, TypeMismatchError, UnsupportedError

rng = np.random.default_rng(11)
A, B, C = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=(4, 1, 3))
STACK = rng.normal(size=(2, 1, 4, 3))


def agree(f, *args, **options):
    got, expected = s2s.vectorize(f, **options)(*args), np.vectorize(f, **options)(*args)
    for a, b in zip(s2s.tree.leaves(got), s2s.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def dot(x, y):
    return x @ y


def moments(x):
    return np.mean(x), np.var(x)


def matvec(m, x, scale=2.0):
    return (m @ x) * scale, x * scale


def outer(x, y):
    return np.outer(x, y) + np.sum(x)


def clipped(x, y):
    if x > y:
        return x - y
    return np.sin(x) * y


def settled(x):
    while abs(x) > 0.1:
        x = 0.5 * x
    return x


def polynomial(p, x):
    r = 0.0
    for c in p:
        r = r * x + c
    return r


def test_core_dimensions_and_loop_axes():
    for x in (A, B, C):
        for y in (A, B, C):
            agree(dot, x, y, signature="(n),(n)->()")
    agree(moments, STACK, signature="(n)->(),()")
    agree(matvec, STACK, A, signature="(n,m),(m)->(n),(m)")
    agree(outer, C, A[:, :2], signature="(n),(m)->(n,m)")
    agree(np.linalg.inv, rng.normal(size=(2, 5, 3, 3)), signature="(n,n)->(n,n)")
    agree(dot, np.zeros((2, 0)), np.zeros(0), signature=" (n), (n) -> () ")


def test_numbers():
    for x, y in ((A, B), (1.0, 2.0), (A, 0.3), (A[:, :1], B[None]), (C, A), (A[:1], B[:1])):
        agree(clipped, x, y)
    agree(settled, C)
    assert s2s.vectorize(settled)(np.zeros((0, 2))).shape == (0, 2)


def test_excluded_arguments():
    p = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(s2s.vectorize(polynomial, excluded={0})(p, A), np.polyval(p, A))
    np.testing.assert_allclose(s2s.vectorize(polynomial, excluded=["p"])([1.0, 2.0], A), A + 2.0)
    shift = s2s.vectorize(lambda x, k: np.concatenate([x[k:], x[:k]]), "(n)->(n)", {"k"})
    np.testing.assert_array_equal(shift(A, 1), np.roll(A, -1, axis=1))


def test_decorator_and_native_code():
    @s2s.vectorize(signature="(n)->()")
    def size(x):
        return np.sqrt(x @ x)

    np.testing.assert_allclose(size(C), np.linalg.norm(C, axis=-1))
    assert "np.sum(x * x, axis=2)" in size.source


@pytest.mark.compile
def test_compiled():
    np.testing.assert_allclose(s2s.jit(s2s.vectorize(clipped))(C, A),
                               np.vectorize(clipped)(C, A))


def test_derivatives():
    dots = s2s.vectorize(dot, signature="(n),(n)->()")
    x_bar, y_bar = s2s.grad(lambda x, y: np.sum(dots(x, y) ** 2), (0, 1))(A, C)
    d = 2 * np.einsum("an,bcn->ba", A, C)
    np.testing.assert_allclose(x_bar, np.einsum("ba,bcn->an", d, C))
    np.testing.assert_allclose(y_bar, np.einsum("ba,an->bn", d, A)[:, None])
    slopes = s2s.vectorize(s2s.grad(settled))(A)
    np.testing.assert_allclose(slopes, np.vectorize(s2s.grad(settled))(A))
    each = s2s.vectorize(s2s.grad(dot), signature="(n),(n)->(n)")(A, C)
    np.testing.assert_allclose(each, np.broadcast_to(C, (4, 5, 3)))
    inside = s2s.grad(lambda x: np.sum(s2s.vectorize(dot, signature="(n),(n)->()")(x, x[0])))
    np.testing.assert_allclose(inside(A), np.concatenate([[np.sum(A, axis=0) + A[0]],
                                                          np.broadcast_to(A[0], (4, 3))]))


def test_conventions_are_reported_with_their_place():
    found = s2s.conventions(s2s.vectorize(s2s.grad(abs)), np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert [each.lane for each in found] == [(1, 0)]


@pytest.mark.parametrize("text", ["(n)", "n->()", "->()", "(n?)->()", "(n),->()", "(n)->(", "", 3])
def test_malformed_signatures(text):
    with pytest.raises(TypeMismatchError, match="is no signature"):
        s2s.vectorize(dot, signature=text)


def test_arguments_that_do_not_fit():
    dots = s2s.vectorize(dot, signature="(n),(n)->()")
    with pytest.raises(ShapeMismatchError, match="x.shape.1. is 3 and y.shape.0. is 4"):
        dots(A, np.ones(4))
    with pytest.raises(TypeMismatchError, match="the core dimension n has the lengths x.1 and 1"):
        dots(A, np.ones(1))
    with pytest.raises(ShapeMismatchError, match="x.shape.0. is 5 and y.shape.0. is 4"):
        dots(A, np.ones((4, 3)))
    with pytest.raises(TypeMismatchError, match=r"x is float64, and has the core dimensions \(n\)"):
        dots(1.0, B)
    with pytest.raises(ShapeMismatchError, match="x.shape.1. is 3, and 4 is needed"):
        s2s.vectorize(dot, signature="(4),(4)->()")(A, B)
    with pytest.raises(UnsupportedError, match="vectorize over x, which is list"):
        s2s.vectorize(clipped)([1.0, 2.0], 1.0)


def test_functions_that_do_not_fit():
    with pytest.raises(TypeMismatchError, match=r"2 arguments to vectorize, and .* has 1"):
        s2s.vectorize(dot, signature="(n)->(n)")(A, A)
    with pytest.raises(TypeMismatchError, match="dot has 1 results, and the signature"):
        s2s.vectorize(dot, signature="(n),(n)->(),()")(A, A)
    with pytest.raises(TypeMismatchError, match=r"a result of dot is float64, .* \(n\) for it"):
        s2s.vectorize(dot, signature="(n),(n)->(n)")(A, A)
    with pytest.raises(ValueError, match="the core dimension n has the lengths 3 and 2"):
        s2s.vectorize(lambda x: x[1:], signature="(n)->(n)")(A)
    with pytest.raises(ValueError, match="the core dimension k has the lengths 2 and 3"):
        s2s.vectorize(lambda x: (x[1:], x), signature="(n)->(k),(k)")(A)
