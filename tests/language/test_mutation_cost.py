"""What reads and writes through views cost in a derivative: no more than elements, counted one by
one.

The generated text is run on arrays that count what is computed, copied and written.  Twice the
length is then at most twice the count: a view that were copied in each trip of a loop would make it
four times as much.
"""

import numpy as np
import pytest
from judge import judge

import s2s

PROGRAMS = []


class Counted(np.ndarray):
    """An array that counts the elements of all that is made of it."""

    total = 0

    @classmethod
    def add(cls, x):
        cls.total += np.size(x)
        return x.view(cls) if isinstance(x, np.ndarray) else x

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **keywords):
        plain = [x.view(np.ndarray) if isinstance(x, Counted) else x for x in inputs]
        if out:
            keywords["out"] = tuple(x.view(np.ndarray) for x in out)
        Counted.total += sum(map(np.size, inputs)) if method == "reduce" else 0
        made = Counted.add(getattr(ufunc, method)(*plain, **keywords))
        return out[0] if out else made

    def __setitem__(self, key, v):
        Counted.total += np.size(self.view(np.ndarray)[key])
        super().__setitem__(key, v)

    def copy(self, *args, **keywords):
        return Counted.add(super().copy(*args, **keywords))


class Counting:
    """NumPy, whose new arrays count themselves."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if name in (
            "zeros",
            "ones",
            "full",
            "zeros_like",
            "ones_like",
            "full_like",
            "copy",
            "array",
        ):
            return lambda *args, **keywords: Counted.add(found(*args, **keywords))
        if name in ("empty", "empty_like", "reshape", "ravel", "flip", "transpose", "asarray"):
            return lambda *args, **keywords: found(*args, **keywords).view(Counted)
        return found


def work(transformed, *args):
    """How many elements the text of `transformed` computes, copies and writes."""
    transformed(*args)
    namespace = {}
    exec(transformed.source, namespace)
    namespace["np"] = Counting()
    Counted.total = 0
    namespace[transformed.source.rpartition("\ndef ")[2].partition("(")[0]](
        *(x.view(Counted) if isinstance(x, np.ndarray) else x for x in args))
    return Counted.total


def vector(n):
    return np.cos(np.arange(float(n)))


def square(n):
    return 0.3 * np.sin(np.arange(float(n * n))).reshape(n, n)


def case(make, power=1):
    def record(function):
        PROGRAMS.append(pytest.param(function, make, power, id=function.__name__))
        return function
    return record


def relax(u, k):
    for i in range(1, len(u)):
        u[i] += k * u[i - 1]


@case(vector)
def reversed_view_in_a_callee(x, k):
    u = x * x
    relax(u, k)
    relax(u[::-1], k)
    return np.sum(u)


@case(vector)
def tail(x, k):
    u = x * x
    v = u[2:]
    for i in range(1, len(v)):
        v[i] = v[i - 1] * np.sin(k * v[i])
    return np.sum(u) * v[0]


@case(vector)
def inside_of_ghost_cells(x, k):
    u = x * x
    inner = u[1:-1]
    for i in range(len(inner) - 1):
        inner[i] = k * inner[i + 1] * u[i]
    return np.sum(u)


@case(vector)
def even_and_odd(x, k):
    u = x * x
    even, odd = u[::2], u[1::2]
    for i in range(len(odd) - 1):
        odd[i] = even[i] * k + even[i + 1] * odd[i]
        even[i + 1] *= odd[i]
    return np.sum(u)


@case(vector)
def tails_made_in_the_loop(x, k):
    s = 0.0
    for i in range(len(x) - 3):
        t = x[i:]
        s += t[0] * t[1] * k + t[-1] * t[-2]
    return s


@case(vector)
def read_at_an_index_that_nothing_is_known_of(x, k):
    s = 0.0
    for i in range(1, len(x) - 1):
        t = x[i:]
        s += t[(7 * i) % (len(x) - i)] * k
    return s


@case(vector)
def chosen_of_two(x, k):
    a = x * x
    b = x * k
    c = a if k > 0 else b
    for i in range(1, len(c)):
        c[i] = c[i - 1] * k + a[i] * b[i]
    return np.sum(a) + np.sum(b)


@case(vector)
def chosen_in_each_trip(x, k):
    a = x * x
    b = x * k
    for i in range(1, len(a)):
        c = a if a[i - 1] > b[i] else b
        c[i] = c[i - 1] * k + a[i] * b[i]
    return np.sum(a) + np.sum(b)


@case(vector)
def elements_by_x_flat(x, k):
    a = (x * x).reshape(2, -1)
    for i in range(1, a.size):
        a.flat[i] += k * a.flat[i - 1]
    return np.sum(a * a)


@case(square, 2)
def rows(a, k):
    a = a * a
    for i in range(1, a.shape[0]):
        row, above = a[i], a[i - 1]
        for j in range(1, a.shape[1]):
            row[j] = row[j] * np.cos(k * row[j - 1]) + above[j]
    return np.sum(a)


@case(square, 2)
def few_elements_of_rows(a, k):
    s = 0.0
    for r in a:
        s += r[0] * np.sin(k * r[1]) * r[-1]
    for j in range(a.shape[1]):
        c = a[:, j]
        s += c[0] * c[j] + a.T[j, 1]
    return s


@case(square, 2)
def transpose(a, k):
    t = (a * a).T
    for i in range(1, t.shape[0]):
        for j in range(t.shape[1]):
            t[i, j] = k * t[i - 1, j] * t[i, j]
    return np.sum(t)


@case(square, 2)
def flattened(a, k):
    a = a.copy()
    f = a.reshape(-1)
    for i in range(1, f.size):
        f[i] = f[i] * k + f[i - 1] * f[i]
    return np.sum(a)


@case(square, 2)
def flipped(a, k):
    a = a.copy()
    f = np.flip(a, 1)
    for i in range(1, f.shape[0]):
        for j in range(f.shape[1]):
            f[i, j] = f[i, j] * k + f[i - 1, j] * f[i, j]
    return np.sum(a)


@case(vector)
def points_of_a_vector(x, k):
    q = np.repeat(x, 3)
    p = q.reshape(-1, 3)
    for i in range(1, len(p)):
        p[i, 0] = p[i - 1, 0] * p[i, 1] * k
        p[i, 2] += p[i, 0]
    return np.sum(q)


@pytest.mark.parametrize("function, make, power", PROGRAMS)
def test_cost_is_linear(function, make, power):
    gradient = s2s.grad(function, argnums=(0, 1))
    few, many, more = (work(gradient, make(n), 0.7) for n in (16, 32, 64))
    assert more - many < 1.2 * 2 ** power * (many - few), (few, many, more, gradient.source)
    judge(function, make(8), 0.7, second=False)


def test_copies_in_each_trip_are_noticed():
    def prefixes(x, k):
        s = 0.0
        for i in range(len(x)):
            s += np.sum(x * i) * k
        return s

    gradient = s2s.grad(prefixes)
    few, many, more = (work(gradient, vector(n), 0.7) for n in (16, 32, 64))
    assert more - many > 3 * (many - few)
