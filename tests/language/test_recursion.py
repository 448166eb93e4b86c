"""Functions that call themselves, or one another: sums over halves, transforms, sorts, trees,
quadrature.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from functools import partial, reduce

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError, UnsupportedError

rng = np.random.default_rng(0)
M = rng.normal(size=(4, 4))
M = M @ M.T + 4 * np.eye(4)
X8, W8 = rng.normal(size=8), rng.normal(size=8)


def fib(n, x):
    if n < 2:
        return x ** n
    return fib(n - 1, x) * np.sin(x) + fib(n - 2, x)


def simpson(f, a, b, eps, whole, depth):
    m = 0.5 * (a + b)
    left = (m - a) / 6 * (f(a) + 4 * f(0.5 * (a + m)) + f(m))
    right = (b - m) / 6 * (f(m) + 4 * f(0.5 * (m + b)) + f(b))
    if depth <= 0 or abs(left + right - whole) <= 15 * eps:
        return left + right + (left + right - whole) / 15
    return simpson(f, a, m, eps / 2, left, depth - 1) + simpson(f, m, b, eps / 2, right, depth - 1)


def bump(x):
    return np.exp(-x * x) * np.sin(3 * x)


def quad_global(a, b):
    return simpson(bump, a, b, 1e-6, 0.0, 12)


def quad_lambda(a, b, k):
    return simpson(lambda x: np.sin(k * x) * x, a, b, 1e-5, 0.0, 10)


def ackermann(m, n, x):
    if m == 0:
        return n + 1 + x
    if n <= 0:
        return ackermann(m - 1, 1.0, x * 0.9)
    return ackermann(m - 1, ackermann(m, n - 1, x) * 0.3, x)


def pairwise(x):
    n = len(x)
    if n <= 2:
        return np.sum(x * x)
    m = n // 2
    return pairwise(x[:m]) + pairwise(x[m:])


def merge(a, b):
    out = np.empty(len(a) + len(b))
    i = j = 0
    for k in range(len(out)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


def mergesort(x):
    if len(x) <= 1:
        return x
    m = len(x) // 2
    return merge(mergesort(x[:m]), mergesort(x[m:]))


def sorted_dot(x, w):
    return np.sum(mergesort(x) * w)


def quicksort(a, lo, hi):
    if lo >= hi:
        return
    p = a[(lo + hi) // 2]
    i, j = lo, hi
    while i <= j:
        while a[i] < p:
            i += 1
        while a[j] > p:
            j -= 1
        if i <= j:
            a[i], a[j] = a[j], a[i]
            i += 1
            j -= 1
    quicksort(a, lo, j)
    quicksort(a, i, hi)


def quick_dot(x, w):
    a = x.copy()
    quicksort(a, 0, len(a) - 1)
    return np.sum(a * w)


def fft_inplace(re, im, lo, n, stride_re):
    if n == 1:
        return
    h = n // 2
    for k in range(h):
        a, b = re[lo + k], re[lo + k + h]
        c, d = im[lo + k], im[lo + k + h]
        re[lo + k] = a + b
        im[lo + k] = c + d
        ang = -2 * math.pi * k / n
        u, v = a - b, c - d
        re[lo + k + h] = u * math.cos(ang) - v * math.sin(ang)
        im[lo + k + h] = u * math.sin(ang) + v * math.cos(ang)
    fft_inplace(re, im, lo, h, 2 * stride_re)
    fft_inplace(re, im, lo + h, h, 2 * stride_re)


def power_spectrum(x, w):
    re, im = x.copy(), np.zeros(len(x))
    fft_inplace(re, im, 0, len(x), 1)
    return np.sum((re * re + im * im) * w)


def cholesky(a):
    n = len(a)
    if n == 1:
        a[0, 0] = np.sqrt(a[0, 0])
        return
    h = n // 2
    cholesky(a[:h, :h])
    for j in range(h):
        for i in range(h, n):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            a[i, j] = s / a[j, j]
    for i in range(h, n):
        for j in range(h, i + 1):
            for k in range(h):
                a[i, j] -= a[i, k] * a[j, k]
    cholesky(a[h:, h:])


def logdet(m):
    a = m.copy()
    cholesky(a)
    s = 0.0
    for i in range(len(a)):
        s += np.log(a[i, i])
    return 2 * s


def tree_value(tree, x):
    if isinstance(tree, tuple):
        left, right = tree
        return np.sin(tree_value(left, x)) + x * tree_value(right, x)
    return tree * x


def expression(a, b, x):
    return tree_value(((a, b), (b, (a, a))), x)


def knap(i, cap, w, v):
    if i == len(v) or cap <= 0:
        return 0.0
    skip = knap(i + 1, cap, w, v)
    take = v[i] * v[i] + knap(i + 1, cap - w[i], w, v)
    return max(skip, take)


class Model:
    def __init__(self, c):
        self.c = c

    def poly(self, n, x):
        if n == 0:
            return self.c
        return self.c + x * self.poly(n - 1, x)


model = Model(0.7)


def with_method(x, n):
    return model.poly(n, x)


def closure_rec(x, n):
    a = np.sin(x)
    def go(k, v):
        if k == 0:
            return v
        return go(k - 1, v * a + x)
    return go(n, x) + go(2, 1.0)


def lambda_rec(x, n):
    f = lambda k: 1.0 if k == 0 else x * f(k - 1)  # noqa: E731
    return f(n)


fact_l = lambda n, x: x if n <= 1 else n * np.cos(x) * fact_l(n - 1, x)  # noqa: E731


def uses_lambda(n, x):
    return fact_l(n, x)


def collatz(n, x):
    if n == 1:
        return x
    if n % 2 == 0:
        return collatz(n // 2, x * 1.1)
    return collatz(3 * n + 1, x + 0.1)


def in_loop(x, n):
    s = 0.0
    for i in range(n):
        s += fib(i, x) * i
        if s > 50:
            break
    return s


def pair_rec(n, x):
    if n == 0:
        return x, 1.0
    a, b = pair_rec(n - 1, x * 0.9)
    return a * b + x, b * np.cos(x)


def uses_pair(n, x):
    a, b = pair_rec(n, x)
    return a - 2 * b


def hanoi(n, a, b, c, x):
    if n == 0:
        return 0.0
    return hanoi(n - 1, a, c, b, x) + x[a] * x[c] + hanoi(n - 1, b, a, c, x)


SCALE = 1.3


def scaled(n, x):
    if n == 0:
        return x
    return SCALE * scaled(n - 1, x * x)


def rec_in_loop(n, x):
    if n == 0:
        return x
    s = 0.0
    for k in range(n):
        s = s + rec_in_loop(k, x * (k + 1)) * x
    return s


def rec_while(n, x):
    s = x
    while n > 0:
        s = s * np.sin(rec_while(n - 2, s)) + x
        n -= 1
    return s


def integrate_rec(y, t, h, n, k):
    if n == 0:
        return y
    y = y + h * np.array([y[1], -k * y[0]])
    return integrate_rec(y, t + h, h, n - 1, k)


def ode_loss(k, y0):
    return np.sum(integrate_rec(y0, 0.0, 0.1, 7, k) ** 2)


def strassen(a, b):
    n = len(a)
    if n == 1:
        return a * b
    h = n // 2
    c = np.zeros((n, n))
    c[:h, :h] = strassen(a[:h, :h], b[:h, :h]) + strassen(a[:h, h:], b[h:, :h])
    c[:h, h:] = strassen(a[:h, :h], b[:h, h:]) + strassen(a[:h, h:], b[h:, h:])
    c[h:, :h] = strassen(a[h:, :h], b[:h, :h]) + strassen(a[h:, h:], b[h:, :h])
    c[h:, h:] = strassen(a[h:, :h], b[:h, h:]) + strassen(a[h:, h:], b[h:, h:])
    return c


def strassen_loss(a, b):
    return np.sum(strassen(a, b) ** 2)


def visit_nodes(left, right, value, root):
    out = np.zeros(len(value))
    def visit(i, acc):
        if i < 0:
            return 0.0
        acc = acc * value[i]
        out[i] = acc
        return acc + visit(left[i], acc) + visit(right[i], acc)
    total = visit(root, 1.0)
    return total * np.sum(out * out)


def hp(n, x):
    if n == 0:
        return 1.0
    if n == 1:
        return 2 * x
    return 2 * x * hp(n - 1, x) - 2 * (n - 1) * hp(n - 2, x)


def mutual3a(n, x):
    return x if n <= 0 else mutual3b(n - 1, x) * 0.5


def mutual3b(n, x):
    return np.sin(x) if n <= 0 else mutual3c(n - 1, x + 1) + mutual3a(n - 2, x)


def mutual3c(n, x):
    return x * x if n <= 0 else mutual3a(n - 1, x) * mutual3b(n - 1, x)


def checked(n, x):
    if n < 0:
        raise ValueError("n is negative")
    if n == 0:
        return x
    return x * checked(n - 1, x) + 1


def fft(x):
    n = len(x)
    if n == 1:
        return x
    e = fft(x[::2])
    o = fft(x[1::2])
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    return np.concatenate((e + w * o, e - w * o))


def spectrum(x, w):
    return np.sum(np.abs(fft(x)) ** 2 * w)


def sum_of_squares(x, lo, hi):
    if hi - lo == 1:
        return x[lo] ** 2
    m = (lo + hi) // 2
    return sum_of_squares(x, lo, m) + sum_of_squares(x, m, hi)


def even(n, x):
    if n == 0:
        return x
    return odd(n - 1, x * 1.5)


def odd(n, x):
    if n == 0:
        return -x
    return even(n - 1, np.sin(x))


def params_rec(p, n):
    if n == 0:
        return p["w"] * p["b"]
    return params_rec({"w": p["w"] + p["b"], "b": p["b"] * 0.5}, n - 1)


def scale_halves(v):
    v *= 1.5
    if len(v) > 1:
        scale_halves(v[:len(v) // 2])


def through_views(x):
    a = np.sin(x)
    scale_halves(a)
    scale_halves(a[1:3])
    return np.sum(a**2)


def merge_parts(a):
    if len(a) <= 1:
        return
    a[0] = a[0] * a[-1]
    i = len(a) // 2
    merge_parts(a[:i])
    merge_parts(a[i:])


def parts_of_other_lengths(x):
    a = np.cos(5 * x)
    merge_parts(a)
    return np.sum(a * np.arange(len(x)))


def sort_parts(a):
    if len(a) <= 1:
        return
    p, i = a[-1], 0
    for j in range(len(a) - 1):
        if a[j] < p:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[-1] = a[-1], a[i]
    sort_parts(a[:i])
    sort_parts(a[i + 1:])


def sorted_by_parts(x):
    a = np.cos(5 * x)
    sort_parts(a)
    return np.sum(a * a * np.arange(len(x)))


def nothing_returned(x, n):
    def halve(k):
        if k == 0:
            return
        out[k - 1] = x / k
        halve(k - 1)

    out = np.zeros(n)
    halve(n)
    return np.sum(out * out)


def flagged(x, n, inverse=False):
    if n == 0:
        return x
    y = flagged(x, n - 1, inverse)
    return y / 1.1 if inverse else y * 1.1 * x


def both_flags(x):
    return flagged(x, 3) + flagged(x, 2, True)


def julia(z, n):
    return z if n == 0 else julia(z * z + 0.1j, n - 1)


def julia_size(x):
    return abs(julia(x + 0.2j, 3))


def spread_out(x, *rest):
    if len(rest) == 0:
        return x
    return x * spread_out(*rest) + 1


def comprehended(x, n):
    if n == 0:
        return x
    return sum(comprehended(x * (k + 1), n - 1) for k in range(2)) * x


def grows(x, n):
    if n == 0:
        return np.sum(x * x)
    return grows(np.concatenate((x, x[:1] * 2)), n - 1)


def matrix_power(a, n):
    if n == 0:
        return np.eye(2)
    if n % 2:
        return a @ matrix_power(a, n - 1)
    h = matrix_power(a, n // 2)
    return h @ h


def sum_of_power(a):
    return np.sum(matrix_power(a, 5))


def collected(x, n):
    found = []

    def collect(k):
        if k == 0:
            return
        found.append(x * k)
        collect(k - 1)

    collect(n)
    return found[0] * found[-1] + len(found)


QUICK = [
    (fib, (5, 0.7), None),
    (pairwise, (X8[:5],), None),
    (hanoi, (2, 0, 1, 2, np.array([1.0, 2.0, 3.0])), None),
    (with_method, (0.8, 3), None),
    (lambda_rec, (0.8, 3), None),
    (collatz, (3, 0.8), None),
    (even, (5, 0.3), None),
    (uses_pair, (3, 0.8), None),
    (scaled, (3, 0.8), None),
    (checked, (3, 0.5), None),
    (both_flags, (0.7,), None),
    (nothing_returned, (0.7, 3), None),
    (parts_of_other_lengths, (X8[:5],), None),
]
SLOW = [
    (quad_global, (0.1, 1.3), None),
    (quad_lambda, (0.1, 1.3, 2.0), None),
    (ackermann, (2, 2.0, 0.4), None),
    (sorted_dot, (X8, W8), None),
    (quick_dot, (X8, W8), None),
    (power_spectrum, (X8, W8), None),
    (logdet, (M,), None),
    (expression, (0.3, 0.8, 1.1), None),
    (knap, (0, 7, np.array([2, 3, 4, 5]), np.array([1.0, 2.0, 2.5, 3.0])), 3),
    (closure_rec, (0.8, 4), None),
    (uses_lambda, (4, 0.8), None),
    (in_loop, (0.8, 6), None),
    (rec_in_loop, (4, 0.8), None),
    (rec_while, (4, 0.8), None),
    (ode_loss, (1.5, np.array([1.0, 0.2])), None),
    (strassen_loss, (M, M.T @ M), None),
    (hp, (5, 0.3), None),
    (mutual3a, (6, 0.4), None),
    (spectrum, (X8, W8), None),
    (
        visit_nodes,
        (np.array([1, 3, -1, -1]), np.array([2, -1, -1, -1]), np.array([1.5, 0.5, 2.0, 0.7]), 0),
        2,
    ),
    (sum_of_squares, (X8, 0, 8), None),
    (params_rec, ({"w": 1.2, "b": 0.4}, 2), None),
    (through_views, (X8[:6],), None),
    (sorted_by_parts, (X8[:6],), None),
    (julia_size, (0.3,), None),
    (spread_out, (1.0, 2.0, 3.0, 0.5), None),
    (comprehended, (0.8, 2), None),
    (collected, (0.5, 3), None),
    (grows, (X8[:2], 3), None),
    (sum_of_power, (0.2 * M[:2, :2],), None),
]
COMPILED = [fib, even, uses_pair, checked, sum_of_squares, visit_nodes]


def named(p):
    return getattr(p, "__name__", "")


@pytest.mark.parametrize("f, args, wrt", QUICK, ids=named)
def test_a_function_that_calls_itself(f, args, wrt):
    judge(f, *args, wrt=wrt)


@pytest.mark.slow
@pytest.mark.parametrize("f, args, wrt", SLOW, ids=named)
def test_a_program_with_functions_that_call_themselves(f, args, wrt):
    judge(f, *args, wrt=wrt)


@pytest.mark.compile
@pytest.mark.parametrize("f, args, wrt", [p for p in QUICK + SLOW if p[0] in COMPILED], ids=named)
def test_a_function_that_calls_itself_compiled(f, args, wrt):
    judge(f, *args, wrt=wrt, compiled=True)


def test_each_function_is_printed_once():
    gradient = s2s.grad(fib, argnums=1)
    gradient(4, 0.7)
    assert [
        line.split("(")[0] for line in gradient.source.splitlines() if line.startswith("def ")
    ] == ["def fib_fwd", "def fib_bwd", "def fib_grad"]


def solve(A, b):
    return np.sum(np.linalg.solve(A, b) ** 2)


@s2s.jit
def decorated(n, x):
    return x if n < 2 else decorated(n - 1, x) + decorated(n - 2, x) * np.sin(x)


@s2s.jit
def decorated_even(n, x):
    return x if n == 0 else decorated_odd(n - 1, x * x)


@s2s.jit
def decorated_odd(n, x):
    return 2 * x if n == 0 else decorated_even(n - 1, np.sin(x))


@pytest.mark.compile
def test_a_function_with_a_decorator_calls_itself_by_its_name():
    def plain(n, x):
        return x if n < 2 else plain(n - 1, x) + plain(n - 2, x) * np.sin(x)

    assert decorated(6, 0.3) == pytest.approx(plain(6, 0.3), rel=1e-14)
    for gradient in (s2s.grad(decorated, argnums=1), s2s.jit(s2s.grad(decorated, argnums=1))):
        assert gradient(6, 0.3) == pytest.approx(plain(6, 0.3 + 1e-20j).imag / 1e-20, rel=1e-12)
    assert decorated_even(3, 0.7) == pytest.approx(2 * np.sin(0.49) ** 2, rel=1e-14)
    assert s2s.grad(decorated_even, argnums=1)(3, 0.7) == pytest.approx(
        2 * np.sin(2 * 0.49) * 2 * 0.7, rel=1e-12
    )


@s2s.jit
def halved(a, n):
    if n == 0:
        return np.sum(a)
    a[0] *= 0.5
    return halved(a, n - 1) + a[0]


@s2s.jit
def added(a, b):
    a += b


def test_what_is_compiled_leaves_the_arrays_of_its_caller():
    with pytest.raises(UnsupportedError, match="halved, which writes to its arguments, by the "
                                               "name of the compiled function"):
        s2s.grad(halved)(X8, 3)

    def f(x):
        y = np.zeros(8)
        added(y, x)
        return np.sum(y * y)

    for call in (f, s2s.grad(f)):
        with pytest.raises(
            UnsupportedError, match="added, which writes to its arguments and returns nothing"
        ):
            call(X8)


def test_what_needs_itself_to_be_generated_is_refused():
    inner = s2s.from_source("def f(x):\n    return np.sum(h(x))\n", {"np": np, "h": None})
    h = s2s.jit(s2s.grad(inner))
    inner.__globals__["h"] = h
    with pytest.raises(UnsupportedError, match="f_grad, which is needed to generate itself"):
        h(np.ones(3))


class Kernel:
    def __call__(self, x):
        return np.sum(x * x)

    def exp(self, x):
        return np.sum(np.exp(-x))

    def again(self, x, n):
        return np.sum(x) if n == 0 else 0.5 * self.again(np.sin(x), n - 1)


def test_a_function_named_like_the_one_of_numpy_that_it_calls_does_not_call_itself():
    b = np.arange(4.0)
    judge(solve, M, b)
    assert "_tape" not in s2s.grad(solve).lower(M, b).source
    assert "def " not in s2s.grad(Kernel().exp).lower(b).source.split("def ", 1)[1]
    assert "again_bwd(" in s2s.grad(Kernel().again).lower(b, 3).source
    np.testing.assert_allclose(s2s.grad(Kernel().again)(b, 2), 0.25 * np.cos(np.sin(b)) * np.cos(b))
    np.testing.assert_array_equal(s2s.grad(Kernel().__call__)(b), 2 * b)


def test_an_array_changed_by_calls_is_changed_in_place():
    gradient = s2s.value_and_grad(quick_dot)
    gradient(X8, W8)
    assert gradient.source.count(".copy()") == 1  # the user's own


def test_reading_elements_makes_no_array_in_each_call():
    gradient = s2s.grad(sum_of_squares)
    gradient(X8, 0, 8)
    assert gradient.source.count("zeros") == 1


@pytest.mark.lengthy
def test_lanes_go_as_deep_as_they_go():
    depths, xs = np.array([3, 1, 2]), np.array([0.3, 0.4, 0.5])
    assert np.array_equal(
        s2s.vmap(scaled)(depths, xs), [scaled(int(n), x) for n, x in zip(depths, xs)]
    )
    slopes = s2s.vmap(s2s.grad(scaled, argnums=1))(depths, xs)
    assert np.allclose(slopes, [s2s.grad(scaled, argnums=1)(int(n), x) for n, x in zip(depths, xs)])


def endless(n, x):
    return x if n == 0 else np.sin(endless(n - 1, x)) + 1


def test_too_deep_is_a_recursion_error():
    with pytest.raises(RecursionError):
        s2s.grad(endless, argnums=1)(5000, 0.5)


@pytest.mark.compile
def test_compiled_code_that_goes_too_deep_raises_and_what_fits_runs():
    native = s2s.jit(s2s.value_and_grad(endless, argnums=1))
    assert native(4000, 0.5)[0] == s2s.jit(endless)(4000, 0.5)
    with pytest.raises(RecursionError):
        native(10**6, 0.5)


@pytest.mark.compile
def test_a_second_process_compiles_it_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import s2s\n\ndef f(n, x):\n    return x if n == 0 else x * f(n - 1, x)\n\n"
                       "print(s2s.jit(s2s.value_and_grad(f, argnums=1))(3, 2.0))\n")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(program)],
            env={**os.environ, "S2S_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "(16.0, 32.0)\n", done.stderr


# ----------------------------------------------------------------------------------------- refusals


def forever(x):
    if x > 1:
        return forever(x - 1)
    return forever(x + 1)


def add_first(a, b, n):
    if n == 0:
        return
    a[n - 1] += b[0]
    add_first(a, b, n - 1)


def two_names(x, n):
    a = x.copy()
    add_first(a, a, n)
    return np.sum(a)


def given_and_closed_over(x, n):
    out = x.copy()

    def double(a, k):
        if k < 0:
            return
        out[k] = a[k] * 2
        double(a, k - 1)

    double(out, n)
    return np.sum(out)


def itself_returned(x, n):
    if n == 0:
        return x
    return itself_returned(x, n - 1)


def written_after(x):
    y = itself_returned(x, 0)
    y[0] = 5.0
    return np.sum(x * y)


def caught(x, n):
    try:
        return checked(n, x)
    except ValueError:
        return x


def nested(tree, x):
    return x if x > 3 else nested((tree, x), x + 1)


REFUSED = [
    (
        forever,
        (1.0,),
        "forever calls itself on every path",
        "let one path return without calling it",
    ),
    (
        two_names,
        (X8[:3], 3),
        "add_first writes into an array that it is given by two names",
        "pass the array once",
    ),
    (
        given_and_closed_over,
        (X8[:3], 2),
        "double writes into an array that it is also given",
        "use the argument only",
    ),
    (written_after, (X8[:3],), "may or may not share memory with x", "take a copy (`.copy()`)"),
    (caught, (0.5, 2), "checked, which calls itself, inside `try`", "call it before the `try`"),
    (
        nested,
        (0.5, 0.7),
        "nested calls itself with arguments of ever other types",
        "give it arguments of one type at every depth, or write a loop",
    ),
]


@pytest.mark.parametrize("f, args, message, remedy", REFUSED, ids=named)
def test_refused_with_a_line_and_a_remedy(f, args, message, remedy):
    wrt = next(k for k, x in enumerate(args) if not isinstance(x, int))
    with pytest.raises(S2SError) as caught:
        s2s.grad(f, argnums=wrt)(*args)
    text = str(caught.value)
    assert message in text and remedy in text and "^" in text and __file__ in text


def test_a_gpu_is_refused():
    with pytest.raises(UnsupportedError, match="fib calls itself, which the threads of a GPU do "
                                               "not") as caught:
        s2s.jit(fib, target="cuda")(4, 0.7)
    assert 'write a loop, or leave target="cuda" away' in str(caught.value)


def two_names_remedied(x):
    a = x.copy()
    add_first(a, x, 3)
    return np.sum(a)


def given_remedied(x):
    out = x.copy()

    def double(a, k):
        if k < 0:
            return
        a[k] = a[k] * 2
        double(a, k - 1)

    double(out, 2)
    return np.sum(out)


def collected_remedied(x, n):
    found = np.zeros(n)

    def collect(k):
        if k == 0:
            return
        found[n - k] = x * k
        collect(k - 1)

    collect(n)
    return found[0]


def written_after_remedied(x):
    y = itself_returned(x, 0).copy()
    y[0] = 5.0
    return np.sum(x * y)


def caught_remedied(x, n):
    y = checked(n, x)
    try:
        return y
    except ValueError:
        return x


@pytest.mark.parametrize(
    "f, args",
    [
        (two_names_remedied, (X8[:3],)),
        (given_remedied, (X8[:3],)),
        (collected_remedied, (0.5, 3)),
        (written_after_remedied, (X8[:3],)),
        (caught_remedied, (0.5, 2)),
    ],
    ids=named,
)
def test_the_remedies_work(f, args):
    judge(f, *args, second=False)


def powers(x, n):
    return x if n == 0 else x * powers(x, n - 1) + 1


def turned(x, n):
    if n == 0:
        return x * x
    return np.sin(turned(x * 0.9, n - 1)) * x


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, at",
    [
        (
            lambda x: s2s.vjp(lambda x: s2s.jvp(lambda x: powers(x, 3), (x,), (1.0,))[1], x)[1](
                1.0
            )[0],
            0.5,
        ),
        (lambda x: s2s.jacrev(lambda x: powers(x[0], 3) * x)(x), np.array([0.3, 0.7])),
        (s2s.grad(lambda x: np.sum(turned(x, 2))), np.array([0.3, 0.7])),
        (
            lambda x: s2s.jvp(s2s.grad(lambda x: np.sum(turned(x, 2))), (x,), (x,))[1],
            np.array([0.3, 0.7]),
        ),
        (lambda x: np.sum(s2s.vmap(lambda v: powers(v, 2) * v)(x)), np.array([0.3, 0.7])),
    ],
)
def test_linearized_derivatives_of_functions_that_call_themselves(f, at):
    """A call that is run again beside its tangents begins with the tapes as they were, as often as
    the map is called.
    """
    d, h = np.ones_like(at)[()] if np.ndim(at) else 1.0, 1e-6
    expected = (np.asarray(f(at + h * d)) - np.asarray(f(at - h * d))) / (2 * h)
    y, forward = s2s.linearize(f, at)
    np.testing.assert_allclose(y, f(at), rtol=1e-12)
    for _ in range(2):
        np.testing.assert_allclose(forward(d), expected, rtol=1e-6, atol=1e-7)
    twice = s2s.linearize(lambda x: s2s.linearize(f, x)[1](d), at)[0]
    np.testing.assert_allclose(twice, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.lengthy
def test_items_of_a_part_of_a_list_are_not_lost():
    """They were: the call was given a copy of the slice, and only that copy was brought back."""
    def shifted(x, depth=2):
        rows = []
        for k in range(len(x)):
            rows.append(x * (k + 1.0))

        def shift(rows, depth):
            if depth > 0:
                rows[0][0] += x[depth]
                shift(rows[1:], depth - 1)

        shift(rows, depth)
        return sum([np.sum(r**2) for r in rows])

    judge(lambda x: shifted(x), np.array([0.7, -0.4, 1.3]))
    with pytest.raises(s2s.S2SError, match="writes into items of a list that may share memory"):
        s2s.grad(shifted)(np.array([0.7, -0.4, 1.3]), 2)

    def by_places(x):
        rows = []
        for k in range(len(x)):
            rows.append(x * (k + 1.0))

        def shift(each, start, depth):
            if depth > 0:
                each[start][0] += x[depth]
                shift(each, start + 1, depth - 1)

        shift(rows, 0, 2)
        return sum([np.sum(r**2) for r in rows])

    judge(by_places, np.array([0.7, -0.4, 1.3]))


def flatten(tree, found):
    if isinstance(tree, dict):
        for key in tree:
            flatten(tree[key], found)
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            flatten(item, found)
    else:
        found.append(tree)
    return found


def tree_map(f, *trees):
    if isinstance(trees[0], dict):
        return {k: tree_map(f, *(t[k] for t in trees)) for k in trees[0]}
    if isinstance(trees[0], list):
        return [tree_map(f, *each) for each in zip(*trees)]
    return f(*trees)


def tree_of_parameters(x):
    tree = {"a": [x[0], [x[1], 2.0 * x[0]]], "b": {"c": x[1] * 3}}
    norms = []
    tree_map(lambda v: norms.append(v * v), tree)
    doubled = tree_map(lambda v, w: v * w, tree, tree_map(lambda v: v + 1.0, tree))
    return sum(norms) + sum(k * v for k, v in enumerate(flatten(doubled, [])))


def leaves_by_name(depth, values):
    values, made = list(values), {}

    def grow(name, depth):
        if depth == 0:
            made[name] = values.pop(0)
            return
        grow(name + "L", depth - 1)
        grow(name + "R", depth - 1)

    grow("", depth)
    return made


def two_names_known(x):
    return two_names(x, 2) * given_and_closed_over(x, 1)


def named_leaves(x):
    made = leaves_by_name(2, [x[0], x[1], x[0] * x[1], 1.0])
    return sum(v * (1 + name.count("R")) for name, v in made.items())


def curried(f):
    def go(*args):
        return f(*args) if len(args) >= f.__code__.co_argcount else partial(go, *args)

    return go


@curried
def clamped(lo, hi, x):
    return min(max(x, lo), hi)


def collected_in_known_steps(x):
    total = 0.0
    for v in x:
        try:
            total = total + collect_known(v, 2, [])
        except ZeroDivisionError:
            total = total - 1.0
    return total * clamped(-1.0)(0.9)(x[0]) * clamped(-2.0, 2.0)(x[1])


def collect_known(x, n, found):
    if n == 0:
        return sum(found) / len(found)
    found.append(x * n)
    return collect_known(x * x, n - 1, found)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f", [tree_of_parameters, named_leaves, two_names_known, collected_in_known_steps],
    ids=named)
def test_recursion_over_what_is_known_is_unrolled(f):
    judge(f, np.array([1.3, 0.6]))


def composed(*functions):
    return reduce(lambda f, g: lambda x: g(f(x)), functions, lambda x: x)


def composition(x):
    pipe = composed(np.sin, lambda v: v * x, np.sum, clamped(-0.5)(1.0))
    return pipe(x) * composed(np.exp, composed(np.sum, np.cos))(x)


def test_a_function_that_calls_others_of_its_text_is_no_recursion():
    judge(composition, np.array([1.3, 0.6]))


# ------------------------------------------------------------------- through methods of objects


class Mirror:
    def __init__(self, place, shine):
        self.place, self.shine = place, shine

    def distance(self, x, v):
        return (self.place - x) / v

    def colour(self, x, v, mirrors, bounce):
        light = 0.1 + self.shine * np.sin(x)
        if bounce < 5:
            light = light + self.shine * seen(x + 0.1 * v, -0.9 * v, mirrors, bounce + 1)
        return light


def seen(x, v, mirrors, bounce=0):
    """What a ray sees, which calls itself through what it hits."""
    light = 0.0
    for mirror in mirrors:
        d = mirror.distance(x, v)
        if d > 0.0:
            light = light + mirror.colour(x + d * v, v, mirrors, bounce)
    return light


def between_mirrors(p):
    mirrors = [Mirror(p[0], 0.5), Mirror(p[1], p[2]), Mirror(-1.0, 0.7)]
    return seen(0.0, 1.0, mirrors) + seen(0.2, -0.5, mirrors)


@pytest.mark.lengthy
def test_recursion_through_methods_is_a_function():
    p = np.array([1.0, 2.0, 0.4])
    gradient = s2s.value_and_grad(between_mirrors)
    value, slope = gradient(p)
    h = 1e-6 * np.eye(3)
    right = [(between_mirrors(p + d) - between_mirrors(p - d)) / 2e-6 for d in h]
    np.testing.assert_allclose(value, between_mirrors(p), rtol=1e-13)
    np.testing.assert_allclose(slope, right, rtol=1e-6)
    np.testing.assert_allclose(s2s.jacfwd(between_mirrors)(p), right, rtol=1e-6)
    assert "def seen_fwd(" in gradient.source
    assert len(gradient.source.splitlines()) < 600


MOVES = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}


def walks(p):
    values = {(i, j): p[i] * (j + 1) for i in range(3) for j in range(3)}
    total = 0.0
    for i, j in values:
        for di, dj in MOVES.values():
            there = i + di, j + dj
            if there in values:
                total = total + values[there] * values[i, j]
    return total


def test_keys_computed_of_integers_outside_are_known(monkeypatch):
    p = np.array([1.0, 2.0, 0.4])
    gradient = s2s.grad(walks)
    h = 1e-6 * np.eye(3)

    def right():
        return [(walks(p + d) - walks(p - d)) / 2e-6 for d in h]

    np.testing.assert_allclose(gradient(p), right(), rtol=1e-6)
    assert ".get(" not in gradient.source
    monkeypatch.setitem(MOVES, "N", (-1, 1))
    np.testing.assert_allclose(gradient(p), right(), rtol=1e-6)
