"""Programs in the ways of different authors: registries and properties, nested dicts, numbers of
lines from 1, `with` and exceptions, functions of functions, trees of parameters, old NumPy.
"""

# ruff: noqa: E741, F821, F841

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, auto
from functools import partial, reduce, wraps
from itertools import accumulate, starmap, takewhile

import numpy as np


# A book of bonds, whose classes register themselves
class Instrument(ABC):
    _registry: dict = {}

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        Instrument._registry[cls.__name__.lower()] = cls

    @classmethod
    def create(cls, kind, *args, **options):
        return cls._registry[kind](*args, **options)

    @property
    @abstractmethod
    def maturity(self): ...

    @abstractmethod
    def npv(self, model): ...

    def dv01(self, model):
        return self.npv(model.bumped(1e-4)) - self.npv(model)


class ZeroBond(Instrument):
    def __init__(self, maturity, notional=1.0):
        self._maturity, self.notional = maturity, notional

    @property
    def maturity(self):
        return self._maturity

    def npv(self, model):
        return self.notional * model.discount(self._maturity)


class CouponBond(ZeroBond):
    def __init__(self, maturity, coupon, freq=2, notional=1.0):
        super().__init__(maturity, notional)
        self._coupon, self._freq = coupon, freq

    @property
    def schedule(self):
        return [i / self._freq for i in range(1, int(self.maturity * self._freq) + 1)]

    def npv(self, model):
        legs = sum(self._coupon / self._freq * model.discount(t) for t in self.schedule)
        return self.notional * legs + super().npv(model)


class Portfolio(Instrument):
    def __init__(self, *positions):
        self.positions = list(positions)

    def __iter__(self):
        return iter(self.positions)

    def __len__(self):
        return len(self.positions)

    @property
    def maturity(self):
        return max(each.maturity for _, each in self)

    def npv(self, model):
        return sum(count * each.npv(model) for count, each in self)


class Vasicek:
    def __init__(self, r0, a, b, sigma):
        self.r0, self.a, self.b, self.sigma = r0, a, b, sigma

    def bumped(self, h):
        return type(self)(self.r0 + h, self.a, self.b, self.sigma)

    @staticmethod
    def _B(a, T):
        return (1 - math.exp(-a * T)) / a

    def discount(self, T):
        B = self._B(self.a, T)
        A = math.exp((self.b - self.sigma**2 / (2 * self.a**2)) * (B - T)
                     - self.sigma**2 * B**2 / (4 * self.a))
        return A * math.exp(-B * self.r0)


def bond_book(p):
    model = Vasicek(*p)
    book = Portfolio(
        (2.0, Instrument.create("zerobond", 3)),
        (-1.0, Instrument.create("couponbond", 5, coupon=0.04, freq=2)),
        (0.5, Instrument.create("couponbond", 2, 0.03, notional=10.0)),
    )
    return book.npv(model) + 100 * book.dv01(model) * book.maturity / len(book)


# Numerical Recipes' splines, with arrays that begin at 1
def spline(x, y, n, yp1, ypn):
    y2 = np.zeros(n + 1)
    u = np.zeros(n + 1)
    if yp1 > 0.99e30:
        y2[1] = u[1] = 0.0
    else:
        y2[1] = -0.5
        u[1] = (3.0 / (x[2] - x[1])) * ((y[2] - y[1]) / (x[2] - x[1]) - yp1)
    for i in range(2, n):
        sig = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1])
        p = sig * y2[i - 1] + 2.0
        y2[i] = (sig - 1.0) / p
        u[i] = (y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1])
        u[i] = (6.0 * u[i] / (x[i + 1] - x[i - 1]) - sig * u[i - 1]) / p
    if ypn > 0.99e30:
        qn = un = 0.0
    else:
        qn = 0.5
        un = (3.0 / (x[n] - x[n - 1])) * (ypn - (y[n] - y[n - 1]) / (x[n] - x[n - 1]))
    y2[n] = (un - qn * u[n - 1]) / (qn * y2[n - 1] + 1.0)
    for k in range(n - 1, 0, -1):
        y2[k] = y2[k] * y2[k + 1] + u[k]
    return y2


def splint(xa, ya, y2a, n, x):
    klo, khi = 1, n
    while khi - klo > 1:
        k = (khi + klo) >> 1
        if xa[k] > x:
            khi = k
        else:
            klo = k
    h = xa[khi] - xa[klo]
    if h == 0.0:
        raise ValueError("Bad xa input to routine splint")
    a = (xa[khi] - x) / h
    b = (x - xa[klo]) / h
    return (a * ya[klo] + b * ya[khi]
            + ((a**3 - a) * y2a[klo] + (b**3 - b) * y2a[khi]) * (h * h) / 6.0)


def interpolated(p):
    n = len(p)
    xa, ya = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(1, n + 1):
        xa[i] = 0.5 * (i - 1) + 0.05 * (i - 1) ** 2
        ya[i] = p[i - 1]
    y2 = spline(xa, ya, n, 1e30, 0.5)
    s = 0.0
    for x in (0.2, 0.77, 1.3, 2.1):
        s += splint(xa, ya, y2, n, x) ** 2
    return s


# An epidemic on a graph of named nodes
EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("b", "e")]


class State(Enum):
    S = auto()
    I = auto()
    R = auto()


def build_graph(edges):
    graph = defaultdict(set)
    for a, b in edges:
        graph[a].add(b)
        graph[b].add(a)
    return graph


def outbreak(p):
    beta, gamma, leak = p
    graph = build_graph(EDGES)
    state = {n: {State.S: 1.0, State.I: 0.0, State.R: 0.0} for n in sorted(graph)}
    state["a"].update({State.S: 0.9, State.I: 0.1})
    peak = {n: 0.0 for n in state}
    for _ in range(6):
        force = {n: sum(state[m][State.I] for m in sorted(graph[n])) for n in state}
        for n, s in state.items():
            infected = s[State.S] * (1 - math.exp(-beta * force[n] * 0.3))
            recovered = gamma * s[State.I] * 0.3
            s[State.S] -= infected
            s[State.I] += infected - recovered
            s[State.R] += recovered - leak * s[State.R]
            peak[n] = max(peak[n], s[State.I])
    worst = sorted(peak.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    return sum(v * v for _, v in worst) + sum(s[State.R] for s in state.values())


# Forward-backward and Viterbi over dicts of dicts, as an encyclopedia has them
STATES = ("Healthy", "Fever")
OBSERVATIONS = ("normal", "cold", "dizzy")


def forward_backward(observations, states, start, trans, emit, end):
    forward = []
    for i, seen in enumerate(observations):
        f_curr = {}
        for st in states:
            if i == 0:
                prev_sum = start[st]
            else:
                prev_sum = sum(f_prev[k] * trans[k][st] for k in states)
            f_curr[st] = emit[st][seen] * prev_sum
        forward.append(f_curr)
        f_prev = f_curr
    p_forward = sum(f_curr[k] * trans[k][end] for k in states)
    backward = []
    for i, seen in enumerate(reversed(observations[1:] + (None,))):
        b_curr = {}
        for st in states:
            if i == 0:
                b_curr[st] = trans[st][end]
            else:
                b_curr[st] = sum(trans[st][k] * emit[k][seen] * b_prev[k] for k in states)
        backward.insert(0, b_curr)
        b_prev = b_curr
    return [{st: forward[i][st] * backward[i][st] / p_forward for st in states}
            for i in range(len(observations))], p_forward


def viterbi(observations, states, start, trans, emit):
    V = [{st: {"prob": start[st] * emit[st][observations[0]], "prev": None} for st in states}]
    for t in range(1, len(observations)):
        V.append({})
        for st in states:
            best, came_from = V[t - 1][states[0]]["prob"] * trans[states[0]][st], states[0]
            for prev in states[1:]:
                prob = V[t - 1][prev]["prob"] * trans[prev][st]
                if prob > best:
                    best, came_from = prob, prev
            V[t][st] = {"prob": best * emit[st][observations[t]], "prev": came_from}
    return max(last["prob"] for last in V[-1].values())


def diagnosis(p):
    a, b, c = (1 / (1 + math.exp(-z)) for z in p)
    start = {"Healthy": 0.6, "Fever": 0.4}
    trans = {"Healthy": {"Healthy": a, "Fever": 0.99 - a, "E": 0.01},
             "Fever": {"Healthy": b, "Fever": 0.99 - b, "E": 0.01}}
    emit = {"Healthy": {"normal": c, "cold": 0.4, "dizzy": 0.6 - c},
            "Fever": {"normal": 0.1, "cold": 0.3, "dizzy": 0.6}}
    posterior, likelihood = forward_backward(OBSERVATIONS, STATES, start, trans, emit, "E")
    entropy = -sum(q * math.log(q) for each in posterior for q in each.values())
    return (entropy + math.log(likelihood)
            + 50 * viterbi(OBSERVATIONS, STATES, start, trans, emit))


# A controller with its limits, a plant that is replaced at each step, and a recorder
class Saturated(RuntimeError):
    def __init__(self, value, limit):
        super().__init__(f"{value} over {limit}")
        self.value, self.limit = value, limit


@dataclass
class PID:
    kp: float
    ki: float
    kd: float
    limit: float = 3.0
    integral: float = field(default=0.0, init=False)
    _previous: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self):
        if self.limit <= 0:
            raise ValueError("limit must be positive")

    def __call__(self, error, dt):
        self.integral += error * dt
        slope = 0.0 if self._previous is None else (error - self._previous) / dt
        self._previous = error
        u = self.kp * error + self.ki * self.integral + self.kd * slope
        if abs(u) > self.limit:
            raise Saturated(u, self.limit)
        return u


@dataclass(frozen=True)
class Plant:
    tau: float = 0.5
    y: float = 0.0
    v: float = 0.0

    def step(self, u, dt):
        a = (u - self.v - self.y) / self.tau
        return replace(self, y=self.y + dt * self.v, v=self.v + dt * a)


class Recorder:
    def __init__(self):
        self.log: dict[str, list[float]] = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.closed = True
        return False

    def add(self, **values):
        for name, v in values.items():
            self.log.setdefault(name, []).append(v)

    @property
    def absolute_error(self):
        return sum(abs(e) for e in self.log["error"])


def tuning(p):
    control, plant = PID(*p), Plant()
    saturations = 0
    with Recorder() as recorder:
        for _ in range(8):
            e = 1.0 - plant.y
            try:
                u = control(e, 0.2)
            except Saturated as error:
                u = error.limit if error.value > 0 else -error.limit
                control.integral -= e * 0.2
                saturations += 1
            recorder.add(error=e, u=u)
            plant = plant.step(u, 0.2)
    return (0.1 * recorder.absolute_error + 0.01 * sum(u * u for u in recorder.log["u"])
            + saturations + asdict(plant)["y"] ** 2)


# A pipeline of curried functions
def compose(*functions):
    return reduce(lambda f, g: lambda x: g(f(x)), functions, lambda x: x)


def curry(f):
    @wraps(f)
    def go(*args):
        return f(*args) if len(args) >= f.__code__.co_argcount else partial(go, *args)

    return go


@curry
def scale(k, x):
    return k * x


@curry
def clamp(lo, hi, x):
    return min(max(x, lo), hi)


def running(f, start):
    return lambda xs: list(accumulate(xs, f, initial=start))[1:]


def smoothed(p):
    gain, leak, bias = p
    signal = [math.sin(0.7 * i) for i in range(8)]
    stages = compose(
        partial(map, scale(gain)),
        partial(map, lambda x: x + bias),
        list,
        running(lambda s, x: (1 - leak) * s + leak * x, 0.0),
        partial(map, clamp(-0.8)(0.8)),
        tuple,
    )
    out = stages(signal)
    variation = sum(starmap(lambda a, b: (a - b) ** 2, zip(out, out[1:])))
    return variation + sum(takewhile(lambda v: v < 0.6, out)) + reduce(max, out)


# A neural differential equation with a tree of parameters
def tree_map(f, *trees):
    first = trees[0]
    if isinstance(first, dict):
        return {k: tree_map(f, *(t[k] for t in trees)) for k in first}
    if isinstance(first, (list, tuple)):
        return type(first)(tree_map(f, *each) for each in zip(*trees))
    return f(*trees)


def unravel(v):
    i = 0

    def take(*shape):
        nonlocal i
        n = int(np.prod(shape))
        out = v[i:i + n].reshape(shape)
        i += n
        return out

    return {"layers": [{"W": take(3, 2), "b": take(3)}, {"W": take(2, 3), "b": take(2)}],
            "tau": take(1)}


def velocity(params, y):
    for k, layer in enumerate(params["layers"]):
        y = layer["W"] @ y + layer["b"]
        if k < len(params["layers"]) - 1:
            y = np.tanh(y)
    return y / np.exp(params["tau"])


def rk4(f, y, h):
    k1 = f(y)
    k2 = f(y + h / 2 * k1)
    k3 = f(y + h / 2 * k2)
    k4 = f(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def neural_ode(v):
    params = unravel(v)
    mean = tree_map(lambda a, b: (a + b) / 2, params, tree_map(lambda a: 0.9 * a, params))
    y = np.array([1.0, 0.5])
    ys = [y]
    for _ in range(3):
        y = rk4(partial(velocity, mean), y, 0.3)
        ys.append(y)
    norms = []
    tree_map(lambda a: norms.append((a**2).sum()), params)
    return ((np.stack(ys) - np.linspace(1, 0, 4)[:, None]) ** 2).mean() + 1e-3 * sum(norms)


# What NumPy had before comprehensions were common
@np.vectorize
def bump(x, w):
    return math.exp(-x * x / w) if abs(x) < 1 else 0.2 * x * x


def row_statistic(r):
    return np.sqrt(((r - r.mean()) ** 2).sum()) + r.max()


def old_numpy(p):
    x = np.linspace(-1.5, 1.5, 7)
    g = bump(x, p[0])
    beta = np.linalg.lstsq(np.c_[np.ones(7), x, x**2], g * p[1], rcond=None)[0]
    M = np.outer(x[:3], g[:3]) + np.diag(np.r_[p, 1.0][:3])
    s = np.apply_along_axis(row_statistic, 1, M)
    t = np.select([x < -0.5, x > 0.5], [g * p[2], x * p[1]], default=p[0])
    q = np.piecewise(x, [x < 0, x >= 0], [lambda v: p[0] * v**2, lambda v: np.sin(p[1] * v)])
    tail = np.interp(0.3, x, g) + np.ptp(q) + np.prod(s) + np.cumsum(np.diff(g, n=2))[-2]
    return (float(beta.dot(beta)) + s.sum() + t.std() + q.sum() + np.triu(M, 1).sum()
            - 0.1 * np.trace(M.T.dot(M)) + tail + np.polyval(p, 0.3))


PROGRAMS = [
    (bond_book, np.array([0.03, 0.4, 0.05, 0.02])),
    (interpolated, np.array([0.1, 0.7, -0.3, 0.4, 1.2])),
    (outbreak, np.array([0.8, 0.4, 0.05])),
    (diagnosis, np.array([0.8, -0.4, 0.1])),
    (tuning, np.array([2.0, 1.0, 0.3])),
    (smoothed, np.array([1.3, 0.4, 0.2])),
    (neural_ode, 0.5 * np.sin(np.arange(18.0))),
    (old_numpy, np.array([0.7, 1.3, 0.4])),
]
