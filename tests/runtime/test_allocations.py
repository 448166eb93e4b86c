"""What native code makes itself where Numba would compile a function: arrays, products, the larger
of two numbers.
"""

import ast
import itertools

import numba
import numpy as np
import pytest

import s2s
from s2s.errors import S2SError
from s2s.runtime.entry.length_guards import head_of, some_length_is_one, some_length_is_short
from s2s.runtime.intrinsics.minmax import shadowing

pytestmark = pytest.mark.compile
RANDOM = np.random.default_rng(0)
A, B, v, w = (
    RANDOM.normal(size=(4, 3)),
    RANDOM.normal(size=(3, 5)),
    RANDOM.normal(size=3),
    RANDOM.normal(size=4),
)


def product(a, b):
    return a @ b


MATRICES = (A, np.asfortranarray(A), A[:0], A[:, :0], A[::-1])


@pytest.mark.parametrize(
    "a, b",
    [
        *(
            (a, b)
            for a in (A, np.asfortranarray(A))
            for b in (B, np.asfortranarray(B), B[:, :0], B[:, ::2])
        ),
        *((a, v[: a.shape[1]]) for a in MATRICES),
        *((w[: a.shape[0]], a) for a in MATRICES),
        (A[:, :0], B[:0]),
        (A[:0], B),
        (A.astype(np.float32), B.astype(np.float32)),
        (A.astype(np.float32), v.astype(np.float32)),
        (w[::-1], A),
    ],
    ids=lambda x: (
        f"{x.dtype}{x.shape}{'C' if x.flags.c_contiguous else 'F' if x.flags.f_contiguous else 'A'}"
    ),
)
def test_product(a, b, native=s2s.jit(product)):  # noqa: B008
    made = native(a, b)
    assert made.dtype == (a @ b).dtype and made.shape == (a @ b).shape and made.flags.c_contiguous
    np.testing.assert_allclose(made, a @ b, rtol=1e-13 if a.dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("a, b", [(A, w), (v, A), (A, A)])
def test_product_of_unequal_lengths(a, b, native=s2s.jit(product)):  # noqa: B008
    with pytest.raises(S2SError, match="matmul|shape|length"):
        native(a, b)


def test_arrays_of_every_kind():
    def made(n, m):
        x, y, k, z, b = (
            np.zeros((n, m)),
            np.full(m, 3, np.float32),
            np.zeros(n, np.int64),
            np.zeros(n, np.complex128),
            np.zeros(n, bool),
        )
        for i in range(n):
            k[i], z[i], b[i] = i, 1j * i, i % 2 == 0
            for j in range(m):
                x[i, j] = i * j + y[j]
        return x, y, k, z, b

    native = s2s.jit(made)
    for n, m in ((3, 4), (0, 2), (2, 0), (1, 1)):
        for ours, theirs in zip(native(n, m), made(n, m), strict=True):
            assert (
                ours.dtype == theirs.dtype
                and ours.shape == theirs.shape
                and (ours.size == 0 or ours.strides == theirs.strides)
            )
            np.testing.assert_array_equal(ours, theirs)
    for n, m in ((-1, 2), (2, -1), (1 << 62, 4)):
        with pytest.raises((ValueError, MemoryError)):
            native(n, m)


def test_the_larger_is_that_of_python():
    def extremes(a, b, i, j):
        return max(a, b), min(a, b), max(i, j), min(i, j), max(min(i, 3), 0)

    native = s2s.jit(extremes)
    for args in (
        (1.0, 2.0, 3, 4),
        (2.0, 1.0, -4, 3),
        (np.nan, 1.0, 1, 1),
        (1.0, np.nan, 0, 0),
        (0.0, -0.0, 0, 0),
        (-0.0, 0.0, 5, 2),
    ):
        assert list(map(repr, native(*args))) == list(map(repr, extremes(*args)))


def test_only_calls_of_two_arguments_are_replaced():
    assert len(shadowing("y = max(a, b) + min(c, d)")) == 2
    for text in (
        "max(a)",
        "max(*a)",
        "max(a, b) + max(a, b, c)",
        "max(a, b, key=f)",
        "np.max(a, b)",
    ):
        assert shadowing(text) == []
    assert shadowing("y = (a +\n     max(a,\n         b,\n         c))\nz = 1") == []
    assert len(shadowing("def f():\n    if (a and\n            max(a, b)):\n        return [0,\n"
                         "  min(c, d)]")) == 2


@pytest.mark.parametrize("length", [1, 15, 16, 17, 40, 70])
def test_the_head_of_a_function_is_read_and_not_the_rest(length):
    head = "def f(a,\n" + "\n".join(f"      b{k}," for k in range(length)) + "\n      c):\n"
    for doc in ("", '    """A line."""\n', '    """Some\n    lines.\n    """\n'):
        found = head_of(
            f"{head}{doc}    return [a,\n            c]\n" + "    x = 1\n" * 100 + "    y = (\n"
        )
        whole = ast.parse(f"{head}{doc}    return [a,\n            c]\n").body[0]
        assert ast.dump(found.args) == ast.dump(whole.args) and ast.get_docstring(
            found
        ) == ast.get_docstring(whole)
        assert (
            found.body[0].lineno == whole.body[0].lineno
            and found.body[0].end_lineno == whole.body[0].end_lineno
        )


def test_lengths_of_one():
    assert some_length_is_one(A, A[:1]) and not some_length_is_one(A, v)


@pytest.mark.compile
def test_short_lengths():
    native = numba.njit(lambda a, b: some_length_is_short(a, b))
    for lengths in itertools.product((0, 1, 2, 7, 8, 9), repeat=3):
        args = np.ones(lengths[:2]), np.ones(lengths[2])
        assert native(*args) == some_length_is_short(*args) == any(n < 8 for n in lengths)
