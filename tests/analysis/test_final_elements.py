"""What loops have read is read again where it has come to stay, and saved where it has been
overwritten.
"""

import random

import numpy as np
import pytest
from judge import judge

import s2s

RNG = np.random.default_rng(0)
M = RNG.normal(size=(5, 5))
SYMMETRIC, V = M @ M.T + 5 * np.eye(5), RNG.normal(size=5)


def forward_substitution(L, b):
    n = len(b)
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]
    return np.sum(np.sin(x))


def backward_substitution(U, b):
    n = len(b)
    x = b * 1.0
    for i in range(n - 1, -1, -1):
        for j in range(n - 1, i, -1):
            x[i] -= np.sin(U[i, j] * x[j])
        x[i] = x[i] / U[i, i]
    return x @ x


def cholesky(A, b):
    n = len(A)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, j] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return np.sum(L @ b) + np.sum(np.log(np.diag(L)))


def factorised_in_place(A, b):
    """LU without pivots: of its rows each is changed until it is its turn, and read after that."""
    A, x = A.copy(), b.copy()
    n = len(b)
    for k in range(n):
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= m * A[k, j]
            x[i] -= m * x[k]
    return np.sum(x * x) + np.prod(np.diag(A)) ** 0.25


def binomials(A, b):
    """Each row of a triangle from the row above."""
    n = len(b)
    T = np.zeros((n, n))
    for i in range(n):
        T[i, 0] = b[i]
        for j in range(1, i + 1):
            T[i, j] = np.tanh(T[i - 1, j - 1] * T[i - 1, j] + A[i, j])
    return np.sum(T[-1])


def partial_sums(A, b):
    """Each element from all before it: of the row, and of the rows above."""
    S = np.zeros(A.shape)
    for i in range(len(A)):
        for j in range(len(b)):
            s = A[i, j]
            for k in range(i):
                s += 0.1 * S[k, j] * S[k, len(b) - 1 - j]
            for k in range(j):
                s += 0.1 * np.sin(S[i, k])
            S[i, j] = s
    return np.sum(S * S)


def unequal(A, b):
    """The smaller of two indices that a branch has found unequal."""
    x = b.copy()
    n = len(b)
    for i in range(n):
        for j in range(i + 1):
            if j != i:
                x[i] += x[j] * np.sin(x[j]) * A[i, j]
    return x @ x


def every_second(A, b):
    x = np.zeros(2 * len(b) + 1)
    for i in range(0, 2 * len(b), 2):
        x[i + 1] = b[i // 2] * np.cos(x[i])
        x[i + 2] = x[i + 1] * x[i] + A[0, 0]
    return np.sum(np.sin(x))


KEPT = (
    forward_substitution,
    backward_substitution,
    cholesky,
    factorised_in_place,
    binomials,
    partial_sums,
    unequal,
    every_second,
)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", KEPT)
def test_derivatives(f):
    judge(f, SYMMETRIC, V)


@pytest.mark.compile
@pytest.mark.parametrize("f", KEPT)
def test_compiled(f):
    judge(f, SYMMETRIC, V, compiled=True)


def tapes(f) -> int:
    source = s2s.grad(f, (0, 1)).lower(SYMMETRIC, V).source
    return source.count("tape") + source.count("saved")


@pytest.mark.parametrize(
    "f", [forward_substitution, cholesky, factorised_in_place, binomials, partial_sums, unequal]
)
def test_what_comes_to_stay_is_not_saved(f):
    assert tapes(f) == 0


def test_no_memory_but_the_matrices():
    assert s2s.grad(cholesky, (0, 1)).lower(SYMMETRIC, V).memory == 0


# ------------------------------------------------------------------------------ what is overwritten


def read_before_its_turn(A, b):
    """The rows below are changed later."""
    A = A.copy()
    for k in range(len(A)):
        for i in range(k + 1, len(A)):
            for j in range(len(A)):
                A[k, j] += 0.1 * np.sin(A[i, j])
                A[i, j] *= A[k, j]
    return np.sum(A)


def its_own_place(A, b):
    """The element that the trip itself is about to write."""
    x = b.copy()
    for i in range(len(b)):
        for j in range(i + 1):
            x[i] += A[i, j] * x[j] * x[j]
    return x @ x


def one_further(A, b):
    x = b.copy()
    for i in range(len(b) - 1):
        for j in range(i + 2):
            x[i] += A[i, j] * x[j] ** 2
    return x @ x


def swept_twice(A, b):
    x = b.copy()
    for t in range(2):
        for i in range(1, len(b)):
            for j in range(i):
                x[i] -= A[i, j] * np.sin(x[j])
    return x @ x


def from_the_end(A, b):
    """x[j - 2] is one of the last, at first."""
    x = b.copy()
    for i in range(len(b)):
        for j in range(i):
            x[i] += A[i, j] * x[j - 2] ** 2
    return x @ x


def where_it_says(A, b):
    """An index that stands in data."""
    x = b.copy()
    order = np.array([3, 0, 4, 1, 2])
    for i in range(len(b)):
        for j in range(i):
            x[order[i]] += A[i, j] * np.sin(x[order[j]])
        x[i] *= 1.1
    return x @ x


def wrong_arm(A, b):
    x = b.copy()
    for i in range(len(b)):
        for j in range(i + 1):
            if j == i:
                x[i] += x[j] * np.sin(x[j])
            else:
                x[i] += A[i, j]
    return x @ x


OVERWRITTEN = (
    read_before_its_turn,
    its_own_place,
    one_further,
    swept_twice,
    from_the_end,
    where_it_says,
    wrong_arm,
)


@pytest.mark.parametrize("f", OVERWRITTEN)
def test_what_is_overwritten_is_saved(f):
    judge(f, 0.1 * SYMMETRIC, V, second=False)
    assert tapes(f)


# ------------------------------------------------------------------------------- nests by chance


class Nests:
    """Programs of loops that write to a matrix and a vector in place, at indices that are counters,
    or a little more.
    """

    RANGES = (
        "range(n)",
        "range(1, n)",
        "range(n - 1, -1, -1)",
        "range(n, 0, -1)",
        "range(0, n, 2)",
    )
    INNER = (
        "range({})",
        "range({} + 1)",
        "range({} + 1, n)",
        "range({}, n)",
        "range({} - 1, -1, -1)",
        "range(n - 1, {}, -1)",
    )

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def text(self) -> str:
        body = [line for _ in range(2) for line in self.loop(self.rng.choice(self.RANGES), [], 4)]
        return "\n".join(
            [
                "def f(A, x, n):",
                "    A, x, s = A.copy(), x.copy(), 0.1",
                *body,
                "    return np.sum(np.sin(A)) + x @ x + s",
            ]
        )

    def loop(self, trips: str, counters: list[str], indent: int) -> list[str]:
        counters = [*counters, "ijkl"[len(counters)]]
        return [" " * indent + f"for {counters[-1]} in {trips}:", *self.block(counters, indent + 4)]

    def block(self, counters: list[str], indent: int) -> list[str]:
        lines = []
        for _ in range(self.rng.randint(1, 3)):
            chance = self.rng.random()
            if len(counters) < 3 and chance < 0.5:
                trips = self.rng.choice((*self.INNER, *self.RANGES[:3])).format(
                    self.rng.choice(counters)
                )
                lines += self.loop(trips, counters, indent)
            elif len(counters) > 1 and chance < 0.65:
                a, b = self.rng.sample(counters, 2)
                lines += [
                    " " * indent + f"if {a} {self.rng.choice(('==', '!=', '<'))} {b}:",
                    " " * (indent + 4) + self.statement(counters),
                    " " * indent + "else:",
                    " " * (indent + 4) + self.statement(counters),
                ]
            else:
                lines.append(" " * indent + self.statement(counters))
        return lines

    def statement(self, counters: list[str]) -> str:
        a, b = self.place(counters), self.place(counters)
        value = self.rng.choice(
            (
                f"{a} * {b} * 0.5",
                f"np.sin({a})",
                f"0.3 * {a} * np.cos({b})",
                f"0.7 * {a} - 0.2 * {b}",
            )
        )
        written = self.rng.choice((self.place(counters), self.place(counters), "s"))
        return f"{written} {self.rng.choice(('=', '+='))} {value}"

    def place(self, counters: list[str]) -> str:
        i, j = self.index(counters), self.index(counters)
        return self.rng.choice((f"A[{i}, {j}]", f"x[{i}]"))

    def index(self, counters: list[str]) -> str:
        a, b = self.rng.choice(counters), self.rng.choice(counters)
        return self.rng.choice(
            (
                a,
                a,
                a,
                f"{a} + {self.rng.randint(1, 2)}",
                f"{a} + {b}",
                f"n - {a}",
                str(self.rng.randint(0, 2)),
            )
        )


@pytest.mark.lengthy
@pytest.mark.parametrize("seeds", [range(k, k + 4) for k in range(0, 100, 4)], ids=str)
def test_nests(seeds):
    """Reverse mode along a direction is what forward mode gives, which saves nothing."""
    for seed in seeds:
        f, rng = s2s.from_source(Nests(seed).text(), {"np": np}), np.random.default_rng(seed)
        A, x = 0.5 * rng.normal(size=(9, 9)), 0.5 * rng.normal(size=9)
        along = rng.normal(size=A.shape), rng.normal(size=x.shape), 0
        found = sum(np.sum(bar * dot) for bar, dot in zip(s2s.grad(f, (0, 1))(A, x, 4), along))
        np.testing.assert_allclose(
            found, s2s.jvp(f)(A, x, 4, *along)[1], rtol=1e-9, err_msg=Nests(seed).text()
        )


def test_remainders_are_no_places_from_the_end():
    """What a row of an array was made of stays in the rows before, though the columns are
    remainders, of which no sum is known.
    """
    def f(u, w, n):
        u = u.copy()
        for t in range(n):
            for k in range(3):
                u[t + 1, (k * k + t) % 3] = (
                    np.sin(u[t, (k * k) % 3]) * w + u[t, k] ** 2 * u[t, (k + 1) % 3]
                )
        return np.sum(u)

    u = np.linspace(0.1, 0.9, 18).reshape(6, 3)
    judge(f, u, 0.4, 5)
    assert "_tape" not in s2s.grad(f, (0, 1)).lower(u, 0.4, 5).source
