"""Programs, transformations to be applied one after the other in any order, and what must come out.

Each transformation here makes of a number-valued function of a vector another one: `grad` the
derivative along a direction, computed by s2s.grad, `hessian` the second derivative along two, `jit`
the function itself.  So any sequence of them is a mixed directional derivative of the program,
d/de1 ... d/dek f(x + e1 d1 + ... + ek dk) at 0, which the oracle finds by running the program on
numbers with k nilpotent parts: v + sum over subsets S of c_S times the product of the e's in S,
where each e squares to zero (hyper-dual numbers are those with two).
"""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections.abc import Callable, Sequence

import numpy as np

import s2s

# ----------------------------------------------------------------------------------------- programs


def logistic_map(x):
    u, r = x[0], 3.0 + 0.5 * np.tanh(x[1])
    for _ in range(6):
        u = r * u * (1.0 - u)
    return u + x[2] * u


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 10.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


def relaxation(x):
    """Gauss-Seidel: each element is written from its neighbours, in place."""
    u = x.copy()
    for _ in range(3):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + 0.3 * np.sin(u[i - 1] - 2.0 * u[i] + u[i + 1])
    return np.sum(u * u * u)


def oscillator(x):
    """Runge-Kutta steps of a nonlinear system of two."""
    q, p = x[0], x[1]
    h = 0.1

    def force(q):
        return -q - x[2] * q * q * q

    for _ in range(3):
        k1, l1 = p, force(q)
        k2, l2 = p + 0.5 * h * l1, force(q + 0.5 * h * k1)
        q, p = q + h * k2, p + h * l2
    return q * q + p * x[3]


def horner(x):
    y, t = 0.0, x[0] * x[1]
    for k in range(len(x) - 1, -1, -1):
        y = y * t + x[k]
    return y


def newton_root(x):
    """A while loop that stops when it has converged."""
    a = 1.0 + x[0] * x[0] + x[1] * x[1]
    y = 0.5 * (1.0 + a)
    n = 0
    while n < 12:
        y = 0.5 * (y + a / y)
        n += 1
    return y * x[2]


def branches(x):
    total = 1.0
    for i in range(len(x)):
        if x[i] > 0.3:
            total = total * np.exp(0.3 * x[i])
        elif x[i] > 0.0:
            total = total + np.sin(x[i]) * x[0]
        else:
            total = total - x[i] * x[i] * total
    return total


def leaving(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i] * (1.0 + total)
        if total > 0.9:
            return total * x[i]
    return -total


def skipping(x):
    s, p = 0.0, 1.0
    for i in range(len(x)):
        if x[i] < 0.0:
            continue
        s += np.cos(x[i]) * p
        p *= 1.0 + 0.5 * x[i]
        if p > 2.5:
            break
    else:
        s = s * s
    return s * p


def stencil(x):
    u = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            u[i, j] = x[i] * x[j] + 0.1 * x[i]
    u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) * u[1:-1, 1:-1]
    return np.sum(u * u)


def recurrence(x):
    w = np.array([[0.3, -0.4], [0.5, 0.2]])
    h = x[:2]
    for k in range(3):
        h = np.tanh(w @ h + x[2:4] * h)
    return np.sum(h * h)


def stacked(x):
    rows = []
    for k in range(3):
        rows.append(np.sin(x * (k + 1)) * x[k])
    table = np.stack(rows)
    return np.sum(table[0] * table[1] * table[2]) + np.sum(table)


def prefix_products(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] *= y[i - 1] + 1.0
    y[0], y[-1] = y[-1], y[0]
    return np.sum(y[::2]) * y[0]


def through_a_view(x):
    u = x * x
    v = u[1:]
    for i in range(len(v)):
        v[i] = v[i] * u[i] + np.sin(x[i])
    return np.sum(u * x)


def logsumexp(x):
    m = x[0]
    for v in x:
        if v > m:
            m = v
    total = 0.0
    for v in x:
        total += np.exp(v - m)
    return m + np.log(total)


def predator_and_prey(x):
    a, b = 1.0 + x[0] * x[0], 1.0 + x[1] * x[1]
    steps = 0
    while steps < 4:
        a, b = a + 0.1 * a * (1.0 - b * x[2]), b - 0.1 * b * (x[3] - a)
        steps += 1
    return a * b


def tridiagonal(x):
    """The Thomas algorithm, in place."""
    n = len(x)
    d, b = np.zeros(n), np.zeros(n)
    for i in range(n):
        d[i] = 4.0 + x[i] * x[i]
        b[i] = np.sin(x[i])
    for i in range(1, n):
        f = -1.0 / d[i - 1]
        d[i] = d[i] + f
        b[i] = b[i] - f * b[i - 1]
    b[n - 1] = b[n - 1] / d[n - 1]
    for i in range(n - 2, -1, -1):
        b[i] = (b[i] + b[i + 1]) / d[i]
    return np.sum(b * x)


def scanned(x):
    last, ys = s2s.scan(lambda c, v: (np.sin(c) * v + c, c * v), x[0], x)
    return last + np.sum(ys * ys)


def nested_calls(x):
    def power(v, n):
        y = 1.0
        for _ in range(n):
            y = y * v
        return y

    def pair(u, v):
        return power(u, 3) * v, np.exp(0.2 * u * v)

    total = 0.0
    for i in range(len(x) - 1):
        a, b = pair(x[i], x[i + 1])
        total = total * b + a
    return total


def parameters(x):
    layers = [{"w": x[:2], "b": x[2]}, {"w": x[1:3], "b": x[3]}]
    h = x[2:4] * 1.0
    for layer in layers:
        h = np.tanh(h * layer["w"] + layer["b"])
        h[0] = h[0] * h[1]
    return h[0] + h[1] * h[1]


PROGRAMS = [
    logistic_map,
    rosenbrock,
    relaxation,
    oscillator,
    horner,
    newton_root,
    branches,
    leaving,
    skipping,
    stencil,
    recurrence,
    stacked,
    prefix_products,
    through_a_view,
    logsumexp,
    predator_and_prey,
    tridiagonal,
    scanned,
    nested_calls,
    parameters,
]
X = np.array([0.5, -0.4, 0.7, 0.2])

# ---------------------------------------------------------------------------------- transformations


def _grad(f, d):
    return lambda x: np.sum(d * s2s.grad(f)(x))


def _jvp(f, d):
    return lambda x: s2s.jvp(f, (x,), (d,))[1]


def _vjp(f, d):
    return lambda x: np.sum(d * s2s.vjp(f, x)[1](1.0)[0])


def _jacfwd(f, d):
    return lambda x: np.sum(d * s2s.jacfwd(f)(x))


def _jacrev(f, d):
    return lambda x: np.sum(d * s2s.jacrev(f)(x))


def _hessian(f, d, e):
    return lambda x: np.sum(d * (s2s.hessian(f)(x) @ e))


def _custom_vjp(f):
    """`f` with rules of its own, for both modes."""
    ruled = s2s.custom_vjp(lambda x: f(x))
    ruled.defvjp(lambda x: (f(x), x), lambda x, y_bar: (y_bar * s2s.grad(f)(x),))
    ruled.defjvp(lambda primals, tangents: (f(primals[0]), s2s.jvp(f, primals, tangents)[1]))
    return ruled


# what it makes of a function, and along how many directions
TRANSFORMATIONS: dict[str, tuple[Callable, int]] = {
    "grad": (_grad, 1),
    "jvp": (_jvp, 1),
    "vjp": (_vjp, 1),
    "jacfwd": (_jacfwd, 1),
    "jacrev": (_jacrev, 1),
    "hessian": (_hessian, 2),
    "checkpoint": (s2s.checkpoint, 0),
    "jit": (s2s.jit, 0),
    "custom_vjp": (_custom_vjp, 0),
}
PAIRS = list(itertools.product(TRANSFORMATIONS, repeat=2))
TRIPLES = list(itertools.product(TRANSFORMATIONS, repeat=3))


def composed(f: Callable, names: Sequence[str], seed: int = 0) -> tuple[Callable, list[np.ndarray]]:
    """`names[0]` of `names[1]` of ... `f`, and the directions along which that differentiates."""
    rng, used = np.random.default_rng(seed), []
    for name in reversed(names):
        make, count = TRANSFORMATIONS[name]
        directions = [rng.normal(size=len(X)) for _ in range(count)]
        f = make(f, *directions)
        used += directions
    return f, used


def check(f: Callable, names: Sequence[str], seed: int = 0) -> None:
    """AssertionError unless the composition is the derivative that the oracle finds, to nine
    digits.
    """
    g, directions = composed(f, names, seed)
    got, (value, scale) = g(X.copy()), mixed_derivative(f, X, directions)
    assert abs(got - value) <= 1e-9 * max(1.0, scale), (
        f"{' of '.join(names)} of {f.__name__}: {got!r}, expected {value!r}"
    )


# ------------------------------------------------------------------------------------------- oracle


@functools.cache
def _products(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of disjoint subsets of k parts, and their unions."""
    found = [(a, b, a | b) for a in range(2 ** k) for b in range(2 ** k) if a & b == 0]
    return tuple(np.array(column) for column in zip(*found))


class Number:
    """A number with nilpotent parts: one coefficient for each subset of them."""

    def __init__(self, c: np.ndarray):
        self.c = c

    def of(self, derivatives: Callable[[float, int], float]) -> Number:
        """A function of this number, from its derivatives (at, order)."""
        k, v = len(self.c).bit_length() - 1, self.c[0]
        rest = Number(np.concatenate(([0.0], self.c[1:])))
        total, power = Number(np.zeros(len(self.c))) + derivatives(v, 0), 1.0
        for m in range(1, k + 1):
            power = rest * power
            total = total + power * (derivatives(v, m) / math.factorial(m))
        return total

    def __mul__(self, o):
        if not isinstance(o, Number):
            return Number(self.c * o) if not isinstance(o, np.ndarray) else NotImplemented
        a, b, union = _products(len(self.c).bit_length() - 1)
        return Number(np.bincount(union, self.c[a] * o.c[b], len(self.c)))

    def __add__(self, o):
        if isinstance(o, np.ndarray):
            return NotImplemented
        return (
            Number(self.c + o.c)
            if isinstance(o, Number)
            else Number(np.concatenate(([self.c[0] + o], self.c[1:])))
        )

    def __pow__(self, n):
        y = 1.0
        for _ in range(n):
            y = self * y
        return y

    def __neg__(self): return Number(-self.c)
    def __sub__(self, o): return self + -o
    def __rsub__(self, o): return -self + o
    def __truediv__(self, o): return self * (o.inverse() if isinstance(o, Number) else 1.0 / o)
    def __rtruediv__(self, o): return self.inverse() * o
    def __gt__(self, o): return self.c[0] > value_of(o)
    def __lt__(self, o): return self.c[0] < value_of(o)
    __rmul__, __radd__ = __mul__, __add__

    def inverse(self): return self.of(lambda v, m: (-1) ** m * math.factorial(m) / v ** (m + 1))
    def exp(self): return self.of(lambda v, m: math.exp(v))
    def sin(self): return self.of(lambda v, m: math.sin(v + m * math.pi / 2))
    def cos(self): return self.of(lambda v, m: math.cos(v + m * math.pi / 2))

    def log(self):
        return self.of(
            lambda v, m: math.log(v) if m == 0 else -((-1) ** m) * math.factorial(m - 1) / v**m
        )

    def tanh(self):
        e = (self * 2.0).exp()
        return (e - 1.0) / (e + 1.0)


def value_of(x) -> float:
    return x.c[0] if isinstance(x, Number) else x


class _NumPy(types.SimpleNamespace):
    """NumPy, whose new arrays can hold Numbers."""

    zeros = staticmethod(lambda shape: np.zeros(shape, object))

    def __getattr__(self, name):
        return getattr(np, name)


def mixed_derivative(
    f: Callable, x: np.ndarray, directions: Sequence[np.ndarray]
) -> tuple[float, float]:
    """The derivative of `f` along all `directions`, and the size of what it is added up from."""
    k = len(directions)
    numbers = np.empty(len(x), object)
    for i in range(len(x)):
        c = np.zeros(2 ** k)
        c[0] = x[i]
        for j, d in enumerate(directions):
            c[1 << j] = d[i]
        numbers[i] = Number(c)
    plain = types.FunctionType(
        f.__code__, {**f.__globals__, "np": _NumPy()}, f.__name__, f.__defaults__, f.__closure__
    )
    y = plain(numbers).c
    return float(y[-1]), float(np.max(np.abs(y)))
