"""Writes that are refused: the message with the user's line, and the program with the remedy
followed, which works.
"""

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.linspace(0.3, 1.7, 6)
A = np.sin(np.arange(12.0) + 1).reshape(3, 4)
REFUSED = []


def refused(*args, message, remedy):
    """Record the program below, and by its `instead`, the one that follows the remedy."""
    def record(function):
        REFUSED.append(pytest.param(function, args, message, remedy, id=function.__name__))
        return function
    return record


def instead(program):
    """The program before, with the remedy followed."""
    REFUSED[-1] = pytest.param(*REFUSED[-1].values, program, id=REFUSED[-1].id)
    return program


@refused(
    A,
    message="this writes into an array that NumPy marks read-only",
    remedy="write into the array that it is a view of",
)
def writes_into_a_diagonal(a):
    a = a.copy()
    d = np.diagonal(a)
    d[0] = 1.0
    return a


@instead
def _(a):
    a = a.copy()
    a[0, 0] = 1.0
    return a


@refused(A, message="may or may not share memory with x", remedy="take a copy (`.copy()`)")
def writes_into_a_reshape_of_a_transpose(x):
    y = x.T.reshape(-1)
    y[0] = 1.0
    return x * y[1]


@instead
def _(x):
    x = x.copy()
    y = x.reshape(-1)
    y[0] = 1.0
    return x * y[1]


@refused(
    X,
    3,
    message="may or may not share memory with s",
    remedy="take a copy (`.copy()`) of one of the two first",
)
def items_that_become_one_array(x, n):
    s = [x.copy(), x * 2]
    for _ in range(n):
        s[0][0] = s[1][1] * 2
        s[1][1] = s[0][0] + 1
        s[0] = s[1]
    return s[0] * s[1]


@instead
def _(x, n):
    s = [x.copy(), x * 2]
    for _ in range(n):
        s[0][0] = s[1][1] * 2
        s[1][1] = s[0][0] + 1
        s[0] = s[1].copy()
    return s[0] * s[1]


@refused(X, message="out= with several arrays", remedy="assign the result instead")
def several_outs(x):
    y, z = np.zeros(6), np.zeros(6)
    np.sin(x, out=(y, z))
    return y


@instead
def _(x):
    y = np.zeros(6)
    y[:] = np.sin(x)
    return y


@refused(X, message="out= with something that is not an array", remedy="assign the result instead")
def out_is_a_number(x):
    y = np.sin(x[0], out=x[1])
    return y


@instead
def _(x):
    y = np.sin(x[0])
    return y


@refused(X, message="where= along with other keywords", remedy="write it in two steps")
def where_and_dtype(x):
    y = np.zeros(6)
    np.sqrt(x, out=y, where=x > 1, dtype=np.float64)
    return y


@instead
def _(x):
    y = np.zeros(6)
    np.sqrt(x, out=y, where=x > 1)
    return y


@refused(X, True, message="where= with a single truth value", remedy="write an if")
def where_is_one_truth(x, b):
    y = np.zeros(6)
    np.sqrt(x, out=y, where=b)
    return y


@instead
def _(x, b):
    y = np.zeros(6)
    if b:
        np.sqrt(x, out=y)
    return y


@refused(
    X, message="float64 values cannot be written into an array of int64 in place", remedy=".astype"
)
def copies_floats_into_integers(x):
    k = np.zeros(6, dtype=np.int64)
    np.copyto(k, x)
    return k * x


@instead
def _(x):
    k = np.zeros(6)
    np.copyto(k, x)
    return k * x


@refused(X, message="np.copyto with casting=", remedy="write dst[...] = src")
def copies_unsafely(x):
    y = np.zeros(6)
    np.copyto(y, x, casting="unsafe")
    return y


@instead
def _(x):
    y = np.zeros(6)
    y[...] = x
    return y


@refused(X, message="np.copyto of something that is not an array", remedy="pass an array")
def copies_into_a_number(x):
    y = 1.0
    np.copyto(y, x[0])
    return y * x


@instead
def _(x):
    y = np.ones(1)
    np.copyto(y, x[0])
    return y * x


@refused(X, message="np.putmask with values of another shape", remedy="write a[mask] = ...")
def puts_fewer_values(x):
    y = np.zeros(6)
    np.putmask(y, x > 1.2, x[:2])
    return y


@instead
def _(x):
    y = np.zeros(6)
    y[x > 1.2] = x[:2]
    return y


@refused(X, message="np.put with mode=", remedy="put the index into range first")
def puts_around(x):
    y = np.zeros(6)
    np.put(y, [1, 7], x[:2], mode="wrap")
    return y


@instead
def _(x):
    y = np.zeros(6)
    np.put(y, np.array([1, 7]) % 6, x[:2])
    return y


@refused(
    A, message="np.fill_diagonal of more than a matrix, or with wrap", remedy="write a[k, k] = val"
)
def fills_a_wrapped_diagonal(a):
    a = a.copy()
    np.fill_diagonal(a, 2.0, wrap=True)
    return a


@instead
def _(a):
    a = a.copy()
    k = np.arange(3)
    a[k, k] = 2.0
    return a


@refused(A, message="np.put_along_axis along no axis known", remedy="pass an axis")
def puts_along_no_axis(a):
    a = a.copy()
    np.put_along_axis(a, np.array([1, 2]), a[0, :2] * 2, axis=None)
    return a


@instead
def _(a):
    a = a.copy()
    np.put_along_axis(a, np.array([[1], [2], [0]]), a[:, :1] * 2, axis=1)
    return a


@refused(
    A,
    message="np.multiply.at with an index that is not one array of integers",
    remedy="write the loop",
)
def multiplies_at_pairs(a):
    a = a.copy()
    i, j = np.array([0, 1, 0]), np.array([2, 2, 2])
    np.multiply.at(a, (i, j), 2.0)
    return a


@instead
def _(a):
    a = a.copy()
    i, j = np.array([0, 1, 0]), np.array([2, 2, 2])
    for k in range(3):
        a[i[k], j[k]] *= 2.0
    return a


@refused(X, message="sort called like this", remedy="use the arguments that s2s knows")
def sorts_by_another_name(x):
    y = x.copy()
    y.sort(0, "heapsort")
    return y


@instead
def _(x):
    y = x.copy()
    y.sort(0)
    return y


@refused(X, message="7 does not divide into 5 equal parts", remedy="use np.array_split")
def unequal_parts(x):
    p = np.split(np.ones(7), 5)
    return x * p[0][0]


@instead
def _(x):
    p = np.array_split(np.ones(7), 5)
    return x * p[0][0]


@refused(X, message="imag part of an array that is not known to be complex",
         remedy="z = x.astype(complex)")
def writes_imaginary_parts_of_real_numbers(x):
    z = np.exp(x)
    z.imag = 2 * x
    return np.abs(z)


@instead
def _(x):
    z = np.exp(x).astype(complex)
    z.imag = 2 * x
    return np.abs(z)


@refused(X, message="setting the shape of an array that is a view, or has one",
         remedy="y = x.reshape(...)")
def sets_the_shape_of_an_array_with_a_view(x):
    y = x.copy()
    v = y[1:3]
    y.shape = (2, 3)
    return y[0, :2] * v


@instead
def _(x):
    y = x.copy()
    v = y[1:3]
    y = y.reshape(2, 3)
    return y[0, :2] * v


@refused(
    X,
    3,
    message="y may be a number or an array, and a may share its memory",
    remedy="`y = y + ...`",
)
def adds_to_an_element_or_a_number(x, n):
    a, y = x.copy(), 1.0
    if n > 2:
        y = a[..., 0]
    y += 2.0
    return a * y


@instead
def _(x, n):
    a, y = x.copy(), 1.0
    if n > 2:
        y = a[..., 0]
    y = y + 2.0
    return a * y


@refused(
    X,
    3,
    message="this writes into an array that may or may not share memory with z",
    remedy="take a copy",
)
def adds_to_an_item_that_may_have_another_name(x, n):
    z, rows = 2 * x, []
    for _ in range(n):
        rows.append(z)
    rows[0] += 1.0
    return z + rows[1]


@instead
def _(x, n):
    z, rows = 2 * x, []
    for _ in range(n):
        rows.append(z.copy())
    rows[0] += 1.0
    return z + rows[1]


@pytest.mark.parametrize("function, args, message, remedy, good", REFUSED)
def test_refused(function, args, message, remedy, good):
    with pytest.raises(S2SError) as caught:
        s2s.jvp(function)(*args, *args)
    text = str(caught.value)
    assert (
        message in text
        and f"Instead: {caught.value.remedy}" in text
        and remedy in caught.value.remedy
    ), text
    assert __file__ in text and "^" in text and f"in {function.__name__}" in text
    judge(good, *args, second=False)


def put_whole(w, M):
    w = w + 0.0
    w[:] = M
    return np.sum(w * w)


def put_in_turns(w, M):
    w = w + 0.0
    for i in range(len(M) + 1):
        w[:2] = np.sin(M[:i, :2])
    return np.sum(w * w)


def put_picked(w, M):
    w = w + 0.0
    w[np.array([2, 0, 1])] = M * w
    return np.sum(w * w)


@pytest.mark.compile
@pytest.mark.parametrize("f", [put_whole, put_in_turns, put_picked], ids=lambda f: f.__name__)
def test_leading_axes_of_what_is_written_have_length_one(f):
    """NumPy drops them, and raises where they are longer, or empty."""
    for shape in ((1, 3), (2, 3), (0, 3), (3, 3)):
        args = np.arange(1.0, 4.0), np.ones(shape)
        gradient = s2s.grad(f, argnums=(0, 1))
        for g, plain in ((s2s.jit(f), f), (gradient, f), (s2s.jit(gradient), gradient)):
            try:
                expected = plain(*args)
            except ValueError:
                with pytest.raises(ValueError):
                    g(*args)
            else:
                found = g(*args)
                if plain is gradient:
                    for a, b in zip(found, expected):
                        np.testing.assert_allclose(a, b, rtol=1e-12)
                elif g is not gradient:
                    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 3), (2, 3)])
def test_an_operator_in_place_does_not_drop_axes(shape):
    """`w += M` raises in NumPy where M has more axes than w, of whatever lengths."""
    def names(w, M):
        w = w + 0.0
        w += M
        return np.sum(w)

    def parts(w, M):
        w = w + 0.0
        w[1:] *= M[:, 1:]
        return np.sum(w)

    def members(w, M):
        held = {"w": w + 0.0}
        held["w"] -= M
        return np.sum(held["w"])

    for f in (names, parts, members):
        with pytest.raises(ValueError):
            f(np.ones(3), np.ones(shape))
        for g in (s2s.grad(f), s2s.jit(f)):
            with pytest.raises(
                s2s.S2SError, match="2 axes cannot be written in place into an array of 1"
            ):
                g(np.ones(3), np.ones(shape))
