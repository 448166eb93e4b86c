"""Linear algebra straight from LAPACK: as the interpreted program has it, each matrix factored
once, and nothing kept where one is singular.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from judge import outcome

import s2s
from s2s.runtime.call.native_function import InterpretedWarning
from s2s.runtime.kernels import lapack_routines

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.compile


def solutions(A, b, B):
    x, y, z = np.linalg.solve(A, b), np.linalg.solve(A.T, B), np.linalg.solve(A, np.sin(B))
    return np.sum(x * x) + np.sum(np.cos(y)) + np.sum(z * B)


def inverse_and_determinants(A, b, B):
    size = np.linalg.slogdet(A)[1] * np.linalg.slogdet(A.T)[0]
    return b @ np.linalg.inv(A) @ b + size + np.sum(np.linalg.inv(A.T) @ B)


def triangles(A, b, B):
    L = np.linalg.cholesky(A @ A.T + np.eye(len(b)))
    x, y = np.linalg.solve(L, b), np.linalg.solve(L.T, np.linalg.solve(L, B))
    return x @ x + np.sum(y * y) + np.sum(np.log(np.diag(L)))


def orthogonal(A, b, B):
    q, r = np.linalg.qr(A)
    return (
        np.sum(0.3 * r * r)
        + b @ q @ b
        + np.sum(np.linalg.solve(r, q.T @ B))
        + np.sum(np.linalg.solve(r.T, b))
    )


def views(A, b, B):
    return np.sum(np.linalg.solve(A[::-1], B[:, ::2])) + np.sum(
        np.linalg.solve(A.T[::-1, ::-1], b[::-1]) ** 2
    )


def in_a_loop(A, b, B):
    total = 0.0
    for k in range(B.shape[1]):
        moved = A + k * np.eye(len(b))
        total = (
            total
            + np.sum(np.linalg.solve(A, B[:, k]) ** 2)
            + np.sum(np.linalg.solve(moved, b) * B[:, k])
        )
    return total


def caught(A, b, B):
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        x = 2 * b
    try:
        y = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        y = A
    return np.sum(x * x) + np.sum(y * y) + np.sum(B)


PROGRAMS = [solutions, inverse_and_determinants, triangles, orthogonal, views, in_a_loop, caught]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_interpreted(f):
    gradient = s2s.value_and_grad(f, argnums=(0, 1, 2))
    fast = s2s.jit(gradient)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 2e-2)):
        for n, m in ((9, 4), (17, 17), (1, 3), (33, 1)):
            A = (RNG.normal(size=(n, n)) + 3 * np.sqrt(n) * np.eye(n)).astype(dtype)
            args = A, RNG.normal(size=n).astype(dtype), RNG.normal(size=(n, m)).astype(dtype)
            (value, found), (expected, wanted) = fast(*args), gradient(*args)
            for x, y in zip((value, *found), (expected, *wanted), strict=True):
                assert np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * np.max(np.abs(y)))


def complex_solutions(A, b, B):
    x, y = np.linalg.solve(A, b), np.linalg.solve(A.T, B[:, ::2])
    return np.sum(np.abs(x) ** 2) + np.sum(
        np.abs(y + np.linalg.solve(np.conj(A).T, np.conj(B[:, ::2]))) ** 2
    )


def complex_inverse_and_determinants(A, b, B):
    sign, size = np.linalg.slogdet(A / len(b))
    return (
        np.real(b @ np.linalg.inv(A) @ b)
        + size
        + np.imag(sign)
        + np.abs(np.linalg.det(A / len(b)) - 1.0) ** 2
        + np.sum(np.real(np.linalg.inv(A.T) @ B))
    )


def complex_triangles(A, b, B):
    L = np.linalg.cholesky(A @ np.conj(A).T + np.eye(len(b)))
    y = np.linalg.solve(np.conj(L).T, np.linalg.solve(L, B))
    return (
        np.sum(np.abs(np.linalg.solve(L, b)) ** 2)
        + np.sum(np.abs(y) ** 2)
        + np.sum(np.log(np.real(np.diag(L))))
    )


def complex_loop(A, b, B):
    total = 0.0
    for k in range(B.shape[1]):
        total = total + np.abs(
            np.sum(np.linalg.solve(A, B[:, k]) * np.linalg.solve(A.T[::-1, ::-1], b))
        )
    return total


@pytest.mark.parametrize(
    "f",
    [complex_solutions, complex_inverse_and_determinants, complex_triangles, complex_loop],
    ids=lambda f: f.__name__,
)
def test_complex_matrices_as_interpreted(f):
    def of_parts(A, C, b, d, B, D):
        return f(A + 1j * C, b + 1j * d, B + 1j * D)

    gradient = s2s.value_and_grad(of_parts, argnums=(0, 1, 2, 3, 4, 5))
    fast = s2s.jit(gradient)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 2e-2)):
        for n, m in ((9, 4), (17, 17), (1, 3), (33, 1)):
            args = [
                RNG.normal(size=shape).astype(dtype)
                for shape in ((n, n), (n, n), n, n, (n, m), (n, m))
            ]
            args[0] += 3 * np.sqrt(n).astype(dtype) * np.eye(n, dtype=dtype)
            (value, found), (expected, wanted) = fast(*args), gradient(*args)
            for x, y in zip((value, *found), (expected, *wanted), strict=True):
                assert np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * np.max(np.abs(y)))


def test_complex_matrices_that_are_singular_indefinite_or_empty():
    programs = [
        lambda A: np.linalg.solve(A, np.ones(len(A)) + 0j),
        np.linalg.inv,
        np.linalg.cholesky,
        np.linalg.det,
        lambda A: tuple(np.linalg.slogdet(A)),
    ]
    for f in programs:
        fast = s2s.jit(f)
        for A in (
            SINGULAR * (1 - 2j),
            -np.eye(12) + 0j,
            HUGE * 1j,
            np.zeros((0, 0)) + 0j,
            np.zeros((1, 1)) + 0j,
            np.array([[2j]]),
            np.diag([1j, 0, 3]),
        ):
            found, expected = outcome(fast, A), outcome(f, A)
            if isinstance(expected, type):
                assert found is expected
            else:
                for x, y in zip(
                    found if isinstance(found, tuple) else [found],
                    expected if isinstance(expected, tuple) else [expected],
                    strict=True,
                ):
                    np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-300)


SINGULAR = RNG.normal(size=(12, 12))
SINGULAR[3] = 0
HUGE = np.diag([1e200, 1e200, 1e-300, *np.ones(9)])
UNKNOWN = RNG.normal(size=(12, 12))
UNKNOWN[2, 3] = np.nan


def solution(A):
    return np.sum(np.linalg.solve(A, np.ones(len(A))))


def inverse(A):
    return np.sum(np.linalg.inv(A))


def factor(A):
    return np.sum(np.linalg.cholesky(A))


def of_factor(A):
    return np.sum(np.linalg.solve(np.linalg.cholesky(A).T, np.ones(len(A))))


def determinant(A):
    return np.linalg.det(A)


def parts(A):
    s, size = np.linalg.slogdet(A)
    return s, size


def tried(A):
    return caught(A, np.ones(len(A)), A)


@pytest.mark.parametrize(
    "f", [solution, inverse, factor, of_factor, determinant, parts, tried], ids=lambda f: f.__name__
)
def test_matrices_that_are_singular_indefinite_huge_unknown_or_empty(f):
    fast = s2s.jit(f)
    for A in (
        SINGULAR,
        -np.eye(12),
        HUGE,
        UNKNOWN,
        np.zeros((0, 0)),
        np.zeros((1, 1)),
        np.array([[2.0]]),
        np.zeros((12, 12)),
        np.arange(144.0).reshape(12, 12),
    ):
        found, expected = outcome(fast, A), outcome(f, A)
        if isinstance(expected, type):
            assert found is expected
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_matrix_is_factored_once():
    A, b = RNG.normal(size=(9, 9)), RNG.normal(size=9)

    def likelihood(A, b):
        return 0.5 * b @ np.linalg.solve(A, b) + 0.5 * np.linalg.slogdet(A)[1]

    fast = s2s.jit(s2s.grad(likelihood, argnums=(0, 1)))
    assert "lapack_" not in fast.lower(A, b).loops  # to read, and to keep
    fast(A, b)
    (text,) = fast.last.call.native.whole.modules.values()
    assert (
        text.text.count("= lapack_factors(") == 1 and "lapack_solution_of_transposed(" in text.text
    )

    def whitened(A, b):
        L = np.linalg.cholesky(A @ A.T)
        x = np.linalg.solve(L, b)
        return x @ x

    fast = s2s.jit(s2s.grad(whitened, argnums=(0, 1)))
    fast(A, b)
    (text,) = fast.last.call.native.whole.modules.values()
    assert "lapack_factors(" not in text.text


def heated(A, u, n):
    for k in range(n):
        if k % 2 == 0:
            u = np.linalg.solve(A, u)
        else:
            for j in range(2):
                u = np.linalg.solve(A.T, np.sin(u))
    return np.sum(u * u)


def stepped(A, u, n):
    for _ in range(n):
        for _ in range(n):
            u = np.sin(np.linalg.solve(A, u)) + np.linalg.solve(A.T, u)
    return np.sum(u * u)


def changing(A, u, n):
    for k in range(n):
        u = np.linalg.solve(A, u)
        A = A + np.eye(len(u))
    return np.sum(u * u)


@pytest.mark.parametrize(
    "f, times",
    [(stepped, 1), (heated, None), (changing, None)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_matrix_that_no_trip_changes_is_factored_before_the_loop(f, times):
    A, u = RNG.normal(size=(12, 12)) + 9 * np.eye(12), RNG.normal(size=12)
    gradient = s2s.value_and_grad(f, argnums=(0, 1))
    fast = s2s.jit(gradient)
    for n in (3, 1, 0):
        (value, slopes), (found, others) = gradient(A, u, n), fast(A, u, n)
        np.testing.assert_allclose(found, value, rtol=1e-10)
        for a, b in zip(others, slopes):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-14)
    (text,) = fast.last.call.native.whole.modules.values()
    made = [line for line in text.text.splitlines() if "= lapack_factors(" in line]
    if times:
        assert len(made) == times and made[0].startswith("    t"), made
    fast = s2s.jit(f)
    # where no trip asks for a solution nothing is wrong with them
    for B in (np.ones((12, 12)), np.ones((12, 11))):
        assert fast(B, u, 0) == pytest.approx(f(B, u, 0), rel=1e-13) and outcome(
            fast, B, u, 2
        ) is outcome(f, B, u, 2)


def test_nothing_is_kept_where_a_matrix_is_singular():
    resource = pytest.importorskip("resource")  # of Unix
    for f, A in (
        (solution, np.zeros((400, 400))),
        (of_factor, -np.eye(400)),
        (tried, np.zeros((400, 400))),
        (inverse, np.zeros((400, 400))),
    ):
        fast = s2s.jit(f)
        outcome(fast, A)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(25):
            outcome(fast, A)
        # kilobytes; each matrix has 1,250
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


@pytest.mark.parametrize("dtype", ("float64", "float32", "complex128", "complex64"))
def test_cofactors(dtype):
    def real_part(a):
        return np.real(np.linalg.det(a))

    fast, slow = s2s.jit(s2s.grad(real_part)), s2s.grad(real_part)
    for n, rank in ((0, 0), (1, 1), (4, 4), (4, 3), (9, 9), (9, 8), (9, 5)):
        x, y = (
            RNG.normal(size=(n, rank))
            + (1j if dtype.startswith("complex") else 0) * RNG.normal(size=(n, rank))
            for _ in range(2)
        )
        a = (x @ y.T).astype(dtype)
        if 0 < rank < n:  # for certain
            a[-1] = a[0]
        for layout in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
            found, wanted = fast(layout), slow(a)
            size = max(1.0, np.linalg.norm(a)) ** max(n - 1, 0)
            assert found.dtype == wanted.dtype == dtype and found.shape == a.shape
            np.testing.assert_allclose(found, wanted, rtol=0, atol=100 * np.finfo(dtype).eps * size)


def test_cofactors_of_a_singular_matrix_in_any_memory():
    a = np.outer(np.arange(1.0, 21), np.arange(2.0, 22)) / 100
    fast, wanted = s2s.jit(s2s.grad(np.linalg.det)), s2s.grad(np.linalg.det)(a)
    for layout in (
        np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
        np.ascontiguousarray(a[::-1])[::-1],
        np.repeat(np.repeat(a, 3, 0), 2, 1)[::3, ::2],
    ):
        np.testing.assert_allclose(fast(layout), wanted, rtol=0, atol=1e-10)


def test_whatever_python_raises_on_cofactors_is_an_error(monkeypatch):
    """What ctypes tells its caller where Python raises must not say that they are there: the call
    is made again in Python.
    """
    def out_of_memory(det, a):
        raise MemoryError

    a = np.diag(np.arange(20.0) / 5)
    fast = s2s.jit(s2s.grad(np.linalg.det))
    monkeypatch.setattr(lapack_routines, "cofactors", out_of_memory)
    with pytest.warns(InterpretedWarning, match="native code has raised what Python does not"):
        np.testing.assert_allclose(fast(a), s2s.grad(np.linalg.det)(a), rtol=1e-12)


def test_from_the_cache(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np, s2s
from s2s.runtime.numba.native_module import statistics

def f(A, b):
    solved = np.sum(np.linalg.solve(A @ A.T, b) ** 2)
    return solved + np.linalg.slogdet(A)[1] + np.linalg.det(A * (1 - b))

fast = s2s.jit(s2s.grad(f))
A, b = np.linspace(-1, 2, 100).reshape(10, 10) + 3 * np.eye(10), np.ones(10)
assert np.allclose(fast(A, b), s2s.grad(f)(A, b), rtol=1e-9)
print(*statistics())
""")
    env = {**os.environ, "S2S_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, str(program)], env=env, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["1", "0"], ["0", "1"]]
