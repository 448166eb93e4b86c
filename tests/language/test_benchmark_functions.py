"""Test functions of global optimisation, as benchmarks state them: methods of objects that count
their calls and hold their tables.  Formulas: Jamil and Yang, "A literature survey of benchmark
functions for global optimisation problems", 2013.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy import (
    abs,
    arange,
    arctan2,
    asarray,
    atleast_2d,
    ceil,
    cos,
    exp,
    floor,
    log,
    pi,
    prod,
    sign,
    sin,
    sqrt,
    sum,
    where,
    zeros_like,
)
from numpy.random import uniform

import s2s


class Benchmark:
    def __init__(self, n=3):
        self.nfev, self.N = 0, n


class Ackley(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        u, v = sum(x**2), sum(cos(2 * pi * x))
        return -20.0 * exp(-0.2 * sqrt(u / self.N)) - exp(v / self.N) + 20.0 + exp(1.0)


class Damavandi(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        numerator = sin(pi * (x[0] - 2.0)) * sin(pi * (x[1] - 2.0))
        denominator = pi**2 * (x[0] - 2.0) * (x[1] - 2.0)
        factor1 = 1.0 - (abs(numerator / denominator)) ** 5.0
        return factor1 * (2 + (x[0] - 7.0) ** 2.0 + 2 * (x[1] - 7.0) ** 2.0)


class Hartmann(Benchmark):
    def __init__(self, n=3):
        Benchmark.__init__(self, n)
        self.a = asarray([[3.0, 0.1, 3.0, 0.1], [10.0, 10.0, 10.0, 10.0], [30.0, 35.0, 30.0, 35.0]])
        self.p = asarray([[3.6, 4.7, 1.1, 0.4], [1.2, 4.4, 8.7, 5.7], [2.7, 7.5, 5.5, 8.8]]) / 10
        self.c = asarray([1.0, 1.2, 3.0, 3.2])

    def fun(self, x, *args):
        self.nfev += 1
        return -sum(self.c * exp(-sum(self.a * (atleast_2d(x).T - self.p) ** 2, axis=0)))


class HelicalValley(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        r, theta = sqrt(x[0] ** 2 + x[1] ** 2), 1 / (2 * pi) * arctan2(x[1], x[0])
        return x[2] ** 2 + 100 * ((x[2] - 10 * theta) ** 2 + (r - 1) ** 2)


class Langermann(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        a, b, c = [3, 5, 2, 1, 7], [5, 2, 1, 4, 9], [1, 2, 5, 2, 3]
        d = [(x[0] - a[i]) ** 2 + (x[1] - b[i]) ** 2 for i in range(5)]
        return -sum([c[i] * exp(-d[i] / pi) * cos(pi * d[i]) for i in range(5)])


class Levy(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        z = 1 + (x - 1) / 4
        inner = sum((z[:-1] - 1) ** 2 * (1 + 10 * sin(pi * z[1:]) ** 2))
        return sin(pi * z[0]) ** 2 + inner + (z[-1] - 1) ** 2 * (1 + sin(2 * pi * z[-1]) ** 2)


class Michalewicz(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        i = arange(1, self.N + 1)
        return -sum(sin(x) * sin(i * x**2 / pi) ** (2 * 10.0))


class NeedleEye(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        f = fp = 0.0
        eye = 0.0001
        for val in x:
            if abs(val) >= eye:
                fp = 1.0
                f += 100.0 + abs(val)
            else:
                f += 1.0
        if fp < 1e-6:
            f = f / self.N
        return f


class Paviani(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        return sum(log(x - 2) ** 2.0 + log(10.0 - x) ** 2.0) - prod(x) ** 0.2


class Penalty(Benchmark):
    @staticmethod
    def u(x, a, k, m):
        return where(x > a, k * (x - a) ** m, where(x < -a, k * (-x - a) ** m, 0))

    def fun(self, x, *args):
        self.nfev += 1
        y = 1 + (x + 1) / 4
        penalty = sum(self.u(x, 1.0, 100.0, 4.0))
        return 10 * sin(pi * y[0]) ** 2 + sum((y[:-1] - 1) ** 2 * y[1:]) + penalty


class PowerSum(Benchmark):
    def __init__(self, n=3):
        Benchmark.__init__(self, n)
        self.b = [8.0, 18.0, 44.0]

    def fun(self, x, *args):
        self.nfev += 1
        k = atleast_2d(arange(1, self.N + 1)).T
        return sum((sum(x**k, axis=1) - self.b) ** 2)


class Quintic(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        return sum(abs(x**5 - 3 * x**4 + 4 * x**3 + 2 * x**2 - 10 * x - 4))


class Rana(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        t1, t2 = sqrt(abs(x[1:] + x[:-1] + 1)), sqrt(abs(x[1:] - x[:-1] + 1))
        return sum((x[1:] + 1) * cos(t2) * sin(t1) + x[:-1] * cos(t1) * sin(t2))


class SchwefelByMask(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        high, low = x[x > 1.0], x[x <= 1.0]
        return sum(high * sin(sqrt(abs(high)))) + sum(low**4) + high.size


class Shekel(Benchmark):
    def __init__(self, n=3):
        Benchmark.__init__(self, n)
        self.A = asarray([[4.0, 4, 4], [1, 1, 1], [8, 8, 8], [6, 6, 6], [3, 7, 3]])
        self.C = asarray([0.1, 0.2, 0.2, 0.4, 0.4])

    def fun(self, x, *args):
        self.nfev += 1
        return -sum(1 / (sum((x - self.A) ** 2, axis=1) + self.C))


class Stochastic(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        rnd = uniform(0.0, 1.0, size=(self.N,))
        i = arange(1, self.N + 1)
        return sum(rnd * abs(x - 1.0 / i))


class StretchedV(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        t = x[1:] ** 2 + x[:-1] ** 2
        return sum(t**0.25 * (sin(50.0 * t**0.1 + 1) ** 2))


class Trid(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        return sum((x - 1.0) ** 2) - sum(x[1:] * x[:-1])


class Tripod(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        p1, p2 = float(x[0] >= 0), float(x[1] >= 0)
        return (p2 * (1.0 + p1) + abs(x[0] + 50.0 * p2 * (1.0 - 2.0 * p1))
                + abs(x[1] + 50.0 * (1.0 - 2.0 * p2)))


class Watson(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        i = atleast_2d(arange(30.0)).T
        a = i / 29.0
        j, k = arange(self.N - 1.0), arange(float(self.N))
        t1 = sum((j + 1) * a**j * x[1:], axis=1)
        t2 = sum(a**k * x, axis=1)
        return x[0] ** 2 + sum((t1 - t2**2 - 1) ** 2) + (x[1] - x[0] ** 2 - 1) ** 2


class Weierstrass(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        k = atleast_2d(arange(4.0)).T
        t1 = 0.5**k * cos(2 * pi * 3.0**k * (x + 0.5))
        return sum(sum(t1, axis=0)) - self.N * sum(0.5**k.T * cos(pi * 3.0**k.T))


class Whitley(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        xi, xj = x, atleast_2d(x).T
        temp = 100.0 * ((xi**2.0) - xj) + (1.0 - xj) ** 2.0
        return sum(sum(temp**2.0 / 4000.0 - cos(temp) + 1.0, axis=0))


class XinSheYang(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        i = arange(1.0, self.N + 1.0)
        return sum(np.random.random(self.N) * (abs(x) ** i))


class Xor(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        F11 = x[2] / (1.0 + exp(-x[0] - x[1]))  # noqa: N806
        F12 = x[1] / (1.0 + exp(-x[0] * x[2]))  # noqa: N806
        return (1.0 + exp(-F11 - F12 - x[0])) ** (-2) + (1.0 - F11) ** 2


class ZeroSum(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        if abs(sum(x)) < 3e-16:
            return 0.0
        return 1.0 + (10000.0 * abs(sum(x))) ** 0.5


class Zimmerman(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        zh1 = lambda x: 9.0 - x[0] - x[1]  # noqa: E731
        zh2 = lambda x: (x[0] - 3.0) ** 2.0 + (x[1] - 2.0) ** 2.0  # noqa: E731
        zp = lambda t: 100.0 * (1.0 + t)  # noqa: E731
        px = [zh1(x), zp(zh2(x)) * sign(zh2(x)), zp(-x[0]) * sign(x[0])]
        return max(px[0], max(px[1], px[2]))


class Steps(Benchmark):
    def fun(self, x, *args):
        self.nfev += 1
        y = zeros_like(x)
        y[0] = floor(x[0]) * x[1]
        y[-1] = ceil(x[-1]) * x[0]
        return sum(y) + sum(x) ** 2


X = np.array([2.3, 3.1, 4.2])
FUNCTIONS = [kind() for kind in Benchmark.__subclasses__()]
named = {"ids": lambda b: type(b).__name__}


def seeded(f):
    """`f`, after seeding NumPy's state."""
    def run(*args):
        np.random.seed(7)
        return f(*args)

    return run


@pytest.mark.parametrize("b", FUNCTIONS, **named)
def test_gradient_of_a_benchmark_function(b):
    expected, before = seeded(b.fun)(X.copy()), b.nfev
    value, slope = seeded(s2s.value_and_grad(b.fun))(X)
    assert value == expected and b.nfev == before + 1
    by_differences = [(seeded(b.fun)(X + d) - seeded(b.fun)(X - d)) / 2e-6
                      for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, by_differences, rtol=1e-5, atol=1e-5)
    direction = np.array([0.5, -1.0, 0.3])
    value_dot = seeded(s2s.jvp(b.fun))(X, direction)[1]
    np.testing.assert_allclose(value_dot, slope @ direction, rtol=1e-10, atol=1e-12)
    curved = seeded(s2s.hvp(b.fun))(X, direction)
    near = (seeded(s2s.grad(b.fun))(X + 1e-6 * direction)
            - seeded(s2s.grad(b.fun))(X - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(curved, near, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("b", [b for b in FUNCTIONS if type(b) not in (Stochastic, XinSheYang)],
                         **named)
def test_batched_benchmark_function(b):
    rows, before = np.stack([X, X * 0.9, X + 0.05]), b.nfev
    slopes = s2s.vmap(s2s.grad(b.fun))(rows)
    assert b.nfev == before + 3
    np.testing.assert_allclose(slopes, [s2s.grad(b.fun)(row) for row in rows], rtol=1e-10)


@pytest.mark.compile
@pytest.mark.parametrize("b", FUNCTIONS, **named)
def test_compiled_benchmark_function(b):
    expected, before = seeded(b.fun)(X.copy()), b.nfev
    value, slope = seeded(s2s.jit(s2s.value_and_grad(b.fun)))(X)
    assert b.nfev == before + 1
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, seeded(s2s.grad(b.fun))(X), rtol=1e-9, atol=1e-12)
