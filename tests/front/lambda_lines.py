"""Groups of lambdas of which several stand on a line, however long, to be told apart.

Run as a program, it prints which derivatives are not what differences say.
"""

# fmt: off
import functools

import numpy as np

import s2s

GROUPS = []


def add(*functions):
    GROUPS.append(functions)


def powers(x, n): return x if n == 0 else x * powers(x, n - 1) + 1
def twice(f): return lambda x: f(x) + f(x)
K=3.0
add(lambda x: s2s.vjp(lambda x: s2s.jvp(lambda x: powers(x, 3), (x,), (1.0,))[1], x)[1](1.0)[0])
add(lambda x: x + 1, lambda x: x * 2, lambda x: x ** 3, lambda x: x * x, lambda y: y * y)
add(*[lambda x: x * k for k in (2.0, 3.0)], *[lambda x, k=k: x * k for k in (5.0, 7.0)])
add(*[(lambda k: lambda x: x * k)(k) for k in (2.0, 3.0)], *[(lambda k: lambda x: x ** k)(k) for k in (2.0, 3.0)])
add(lambda x: (lambda x: (lambda x: x * 2)(x) * x)(x) * x)
def inner_of(x, f=lambda x: x * 2.0, g=lambda x: x * 5.0): return f(x) + g(x) * x
add(inner_of, *inner_of.__defaults__)
add(lambda x, f=lambda x: x * 2.0, g=lambda x: x * 5.0: f(x) - g(x) * x); add(*GROUPS[-1][0].__defaults__)
@twice
@(lambda f: lambda x: f(x) * x)
def decorated(x): return x * x
add(decorated)
@(lambda f: lambda x: f(x) * x) if K else (lambda f: lambda x: f(x) + x)
def decorated2(x): return x * x
add(decorated2)
add(lambda x: x * 2 +
    x ** 3, lambda x: x * 2 +
    x ** 2)
add(lambda x: (x * 2
    + x), lambda x: (x * 2
    - x * 5), (lambda x:
    x * 7))
D = {"a": lambda x: x * 2, "b": lambda x: x / 2, "c": lambda x: 2 / x, "d": lambda x: 2 - x, "e": lambda x: x - 2}; add(*D.values())
add(lambda x: x if x > 0 else -x, lambda x: -x if x > 0 else x, lambda x: x if x < 0 else -x, lambda x: 2*x if not x < 0 else x)
class C:
    k = 2.0
    f = lambda self, x: x * self.k; g = lambda self, x: x / self.k; h = staticmethod(lambda x: x * 9)
    fs = (lambda x: x * 4, lambda x: x * 6); p = property(lambda self: lambda x: x * 3 + self.k * x * x)
    def m(self, x): return (lambda y: y * self.k)(x) + (lambda y: y / self.k)(x)
add(C().f, C().g, C.h, *C.fs, C().p, C().m)
add(lambda *x: x[0] * 2, lambda x, *y: x * 3, lambda x, /: x * 4, lambda x, *, y=2.0: x * y, lambda x, y=3.0: x * y, lambda x, **y: x * 6)
add(lambda x, *y: x * 2 + len(y), lambda x, y=(): x * 2 + len(y) * x)
add(lambda x: x * K, lambda x: x * (K), lambda x:x * K, lambda x: (x * K))
add(lambda x: 2 * 3 * x, lambda x: 6 * x, lambda x: 6.0 * x, lambda x: True * x, lambda x: 1 * x, lambda x: 1.0 * x, lambda x: -0.0 + x, lambda x: 0.0 + x)
add(*map(lambda k: lambda x: k * x, (1.0, 2.0)), *map(lambda k: lambda x: k / x, (1.0, 2.0)))
def closures(a, b): return (lambda x: x * a, lambda x: x * b, lambda x: x * a, lambda x: x + a * x * x if a else b)
add(*closures(2.0, 3.0))
add(functools.partial(lambda k, x: k * x, 2.0), functools.partial(lambda k, x: k / x, 2.0), functools.partial(lambda x, k: k * x, k=5.0))
add((lambda x: lambda y: x * y)(3.0), (lambda x: lambda y: y ** x)(3.0), (lambda y: lambda x: y / x)(3.0))
add(s2s.grad(lambda x: x**3), s2s.grad(lambda x: x**4), s2s.grad(s2s.grad(lambda x: x**5)))
add(lambda x: s2s.grad(lambda x: x**3)(x) * s2s.grad(lambda x: x**4)(x))
add(lambda x: s2s.grad(lambda y: x * y ** 2)(x) + s2s.grad(lambda y: x * x * y ** 3)(x))
add(lambda x: s2s.grad(lambda x: s2s.grad(lambda x: s2s.grad(lambda x: x ** 5)(x))(x))(x))
add(lambda x: np.sum(s2s.vmap(lambda v: v * v)(np.array([1.0, 2.0]) * x)), lambda x: np.sum(s2s.vmap(lambda v: v * 3)(np.array([1.0, 2.0]) * x)))
add(*(f for f in (lambda x: np.sin(x), lambda x: np.cos(x), lambda x: np.exp(x), lambda x: np.sin(np.cos(x)), lambda x: np.cos(np.sin(x)))))
add(functools.reduce(lambda f, g: lambda x: f(g(x)), [lambda x: x * 2, lambda x: x ** 2, lambda x: x + 3]))
add([f := lambda x: x * 2, lambda x: f(x) * x][1], [lambda x: (y := x * 2) * y, lambda x: (y := x * 3) * y][1])
add(f"{(add(lambda x: x * 11), add(lambda x: x * 12))}" and (lambda x: x * 13))
def finals():
    fs = []
    try: fs.append(lambda x: x * 2); fs.append(lambda x: x * 3)
    finally: fs.append(lambda x: x * 5); fs.append(lambda x: x * 7)
    return fs
add(*finals())
def early(c):
    if c: return lambda x: x * 21, lambda x: x * 22
    return lambda x: x * 23, lambda x: x * 24
add(*early(1), *early(0))
if 0: z = lambda x: x * 100
else: z = lambda x: x * 101; z2 = lambda x: x * 102
add(z, z2)
add((lambda x: x * 31) if K > 100 else (lambda x: x * 32), (lambda x: x * 33) and (lambda x: x * 34), (lambda x: x * 35) or (lambda x: x * 36))
add(lambda x: [(lambda y: y * k)(x) for k in (2.0, 3.0)][1], lambda x: [(lambda y: y * k)(x) for k in (2.0, 3.0)][0])
add(lambda x: sum((lambda y: y * k)(x) for k in (2.0, 3.0)), lambda x: sum((lambda y: y / k)(x) for k in (2.0, 3.0)))
add(lambda x: sum([k * x for k in (1., 2.)]), lambda x: sum([k / x for k in (1., 2.)]), lambda x: sum([x - k for k in (1., 2.)]))
add(lambda x: x[0] if isinstance(x, tuple) else x * 2, lambda x: x[0] if isinstance(x, tuple) else x * 4)
add(lambda x: max(x, 1.0), lambda x: min(x, 1.0), lambda x: max(x * x, 0.1), lambda x: min(x * x, 100))
add(lambda x: x * 2 if x in {1, 2} else x * 3, lambda x: x * 3 if x in {1, 2} else x * 2, lambda x: x * 4 if x in {2, 3} else x * 5)
add(lambda x: \
  x * 41, lambda x: \
  x * 42)
add((lambda x: x * 43), (
  lambda x: x * 44), (lambda x:
 x * 45), lambda x: x * 46)
add(lambda x: (1 if True else 2) * x, lambda x: (2 if True else 1) * x, lambda x: (2 if False else 3) * x)
add(lambda x: x < 1 and x * 2 or x * 3, lambda x: x < 1 and x * 3 or x * 2, lambda x: x > 1 and x * 2 or x * 3)
T = lambda f: (lambda x: f(x) * 2, lambda x: f(x) * 3, lambda x: f(x * 2)); add(*T(lambda x: x * x), *T(lambda x: x ** 3))
add((lambda x: (lambda: x * 3)() * (lambda: x * 4)()), lambda x: (lambda: x * 4)() * (lambda: x + 3)())


def wrong(function, at):
    """What is wrong with the derivative of `function` there, "" for nothing."""
    slope, difference = s2s.grad(function)(at), (function(at + 1e-5) - function(at - 1e-5)) / 2e-5
    return "" if np.isclose(slope, difference, rtol=1e-5) else f"{slope} is not {difference}"


if __name__ == "__main__":
    for functions in GROUPS:
        for function in functions:
            for at in (0.6, 1.7):
                if said := wrong(function, at):
                    print(function, at, said)
