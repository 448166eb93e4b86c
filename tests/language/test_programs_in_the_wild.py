"""Whole programs of many fields, written as their authors would, each judged in every mode and
order.
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import numpy as np
import pytest
from judge import judge

import s2s

CASES = []


def case(*args, wrt=None, compiled=False, quick=False):
    def keep(f):
        marks = [] if quick else [pytest.mark.slow]
        CASES.append(pytest.param(f, args, wrt, id=f.__name__, marks=marks))
        if compiled:
            COMPILED.append(pytest.param(f, args, wrt, id=f.__name__))
        return f

    return keep


COMPILED = []
rng = np.random.default_rng(42)


# --- mechanics ------------------------------------------------------------------------------------

class Body:
    def __init__(self, mass, position, velocity):
        self.mass = mass
        self.position = position
        self.velocity = velocity
        self.force = np.zeros(2)

    def kinetic(self):
        return 0.5 * self.mass * np.dot(self.velocity, self.velocity)

    def kick(self, dt):
        self.velocity = self.velocity + dt * self.force / self.mass

    def drift(self, dt):
        self.position += dt * self.velocity


class Gravity:
    def __init__(self, bodies, G=1.0, softening=0.05):
        self.bodies = bodies
        self.G = G
        self.eps2 = softening**2
        self.history = []

    def forces(self):
        for body in self.bodies:
            body.force = np.zeros(2)
        energy = 0.0
        for i, one in enumerate(self.bodies):
            for other in self.bodies[i + 1:]:
                r = other.position - one.position
                d2 = r @ r + self.eps2
                pull = self.G * one.mass * other.mass * r / d2**1.5
                one.force += pull
                other.force -= pull
                energy -= self.G * one.mass * other.mass / np.sqrt(d2)
        return energy

    def run(self, dt, steps):
        self.forces()
        for _ in range(steps):
            for body in self.bodies:
                body.kick(dt / 2)
                body.drift(dt)
            potential = self.forces()
            for body in self.bodies:
                body.kick(dt / 2)
            self.history.append(potential + sum(body.kinetic() for body in self.bodies))
        return self.history


@case(
    np.array([1.0, 0.5, 0.2]),
    np.array([[0.0, 0.0], [1.0, 0.1], [-0.4, 1.3]]),
    np.array([[0.0, 0.1], [0.2, 0.9], [-0.8, 0.0]]),
    0.02,
    4,
)
def n_body(masses, positions, velocities, dt, steps):
    bodies = [Body(masses[k], positions[k].copy(), velocities[k].copy()) for k in range(3)]
    system = Gravity(bodies, G=1.1)
    history = system.run(dt, steps)
    drift = max(history) - min(history)
    return drift + bodies[0].position[0] + 0.1 * sum(b.kinetic() for b in system.bodies)


def lj_pairs(x, box, cutoff):
    """The pairs within the cutoff, by minimum image."""
    pairs = []
    n = len(x)
    for i in range(n - 1):
        for j in range(i + 1, n):
            d = x[i] - x[j]
            d = d - box * np.round(d / box)
            if np.sum(d * d) < cutoff**2:
                pairs.append((i, j))
    return pairs


@case(rng.uniform(0.0, 3.0, (6, 2)) + np.arange(6)[:, None] * 0.2, 3.4, 1.0, 0.9, compiled=True)
def lennard_jones(x, box, epsilon, sigma):
    energy = 0.0
    virial = 0.0
    pairs = lj_pairs(x, box, 1.6)
    for i, j in pairs:
        d = x[i] - x[j]
        d -= box * np.round(d / box)
        r2 = d[0]**2 + d[1]**2
        s6 = (sigma**2 / r2)**3
        energy += 4 * epsilon * s6 * (s6 - 1)
        virial += 24 * epsilon * s6 * (2 * s6 - 1)
    return math.tanh(1e-3 * energy) + 1e-3 * virial / max(len(pairs), 1)


@case(rng.uniform(0.0, 1.0, (5, 2)), 0.6, 1.2, 7.0)
def sph_density_and_pressure(x, h, stiffness, gamma):
    n = x.shape[0]
    norm = 10.0 / (7.0 * np.pi * h**2)

    def W(q):
        if q < 1.0:
            return norm * (1 - 1.5 * q**2 + 0.75 * q**3)
        elif q < 2.0:
            return norm * 0.25 * (2 - q)**3
        return 0.0

    rho = np.zeros(n)
    for i in range(n):
        rho[i] += norm
        for j in range(i):
            q = np.linalg.norm(x[i] - x[j]) / h
            w = W(q)
            rho[i] += w
            rho[j] += w
    p = stiffness * ((rho / rho.mean())**gamma - 1.0)
    return np.sum(p / rho**2) / n


@case(np.array([0.3, -0.5, 0.8]), rng.uniform(0.0, 1.0, (3, 3)), 1.3, 2)
def ewald(charges, x, alpha, kmax):
    n = len(charges)
    real = 0.0
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            d = x[i] - x[j]
            r = np.sqrt(np.sum(d**2))
            real += 0.5 * charges[i] * charges[j] * math.erfc(alpha * r) / r
    reciprocal = 0.0
    for nx in range(-kmax, kmax + 1):
        for ny in range(-kmax, kmax + 1):
            for nz in range(-1, 2):
                if nx == ny == nz == 0:
                    continue
                k = 2 * np.pi * np.array([nx, ny, nz])
                k2 = k @ k
                S = np.sum(charges * np.exp(1j * (x @ k)))
                reciprocal += 2 * np.pi / k2 * np.exp(-k2 / (4 * alpha**2)) * abs(S)**2
    self_energy = -alpha / np.sqrt(np.pi) * np.sum(charges**2)
    return real + reciprocal + self_energy


@case(np.array([0.4, 0.2]), 0.0, 9.81, 1.0, 0.8, 0.01, 12)
def double_pendulum(theta, omega0, g, l1, l2, dt, steps):
    def rhs(s):
        t1, t2, w1, w2 = s
        c, s12 = np.cos(t1 - t2), np.sin(t1 - t2)
        den = 2.0 - c * c
        a1 = (g * (np.sin(t2) * c - 2 * np.sin(t1)) - (l2 * w2**2 + l1 * w1**2 * c) * s12) / (
            l1 * den
        )
        a2 = (
            2 * (l1 * w1**2 * s12 - g * np.sin(t2) + g * np.sin(t1) * c) + l2 * w2**2 * s12 * c
        ) / (l2 * den)
        return np.array([w1, w2, a1, a2])

    state = np.array([theta[0], theta[1], omega0, omega0])
    trajectory = [state]
    for _ in range(steps):
        k1 = rhs(state)
        k2 = rhs(state + dt / 2 * k1)
        k3 = rhs(state + dt / 2 * k2)
        k4 = rhs(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        trajectory.append(state)
    trajectory = np.array(trajectory)
    x = l1 * np.sin(trajectory[:, 0]) + l2 * np.sin(trajectory[:, 1])
    return x.mean() + trajectory[-1] @ trajectory[-1]


# --- ordinary differential equations --------------------------------------------------------------

class StepTooSmall(Exception):
    pass


def rk45_step(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 4, y + h * k1 / 4)
    k3 = f(t + 3 * h / 8, y + h * (3 * k1 + 9 * k2) / 32)
    k4 = f(t + 12 * h / 13, y + h * (1932 * k1 - 7200 * k2 + 7296 * k3) / 2197)
    k5 = f(t + h, y + h * (439 * k1 / 216 - 8 * k2 + 3680 * k3 / 513 - 845 * k4 / 4104))
    new = y + h * (25 * k1 / 216 + 1408 * k3 / 2565 + 2197 * k4 / 4104 - k5 / 5)
    k6 = f(
        t + h / 2,
        y + h * (-8 * k1 / 27 + 2 * k2 - 3544 * k3 / 2565 + 1859 * k4 / 4104 - 11 * k5 / 40),
    )
    other = y + h * (
        16 * k1 / 135 + 6656 * k3 / 12825 + 28561 * k4 / 56430 - 9 * k5 / 50 + 2 * k6 / 55
    )
    return new, np.max(np.abs(new - other))


def solve_ivp(f, span, y0, tol=1e-6, h=0.1, h_min=1e-8):
    t, end = span
    y = y0
    ts, ys = [t], [y]
    while t < end:
        h = min(h, end - t)
        new, error = rk45_step(f, t, y, h)
        if error <= tol:
            t += h
            y = new
            ts.append(t)
            ys.append(y)
        factor = 0.9 * (tol / max(error, 1e-14))**0.2
        h = h * min(2.0, max(0.3, factor))
        if h < h_min:
            raise StepTooSmall(f"step {h} at t = {t}")
    return np.array(ts), np.array(ys)


@case(np.array([1.0, 0.5]), {"alpha": 1.1, "beta": 0.4, "delta": 0.1, "gamma": 0.4}, 1.5)
def lotka_volterra(y0, p, end):
    def rhs(t, y):
        prey, predator = y
        return np.array([p["alpha"] * prey - p["beta"] * prey * predator,
                         p["delta"] * prey * predator - p["gamma"] * predator])

    try:
        ts, ys = solve_ivp(rhs, (0.0, end), y0, tol=1e-4)
    except StepTooSmall:
        return np.inf
    return 0.5 * np.sum((ys[1:, 0] + ys[:-1, 0]) * np.diff(ts)) + ys[-1, 1]


class StepRejected(Exception):
    pass


@case(1.0, 2.0, 0.4, compiled=True, quick=True)
def step_control_by_exceptions(y, k, h):
    def step(y, h):
        full = y / (1 + h * k * y)
        half = y / (1 + 0.5 * h * k * y)
        half = half / (1 + 0.5 * h * k * half)
        if abs(full - half) > 0.01:
            raise StepRejected
        return half

    t = 0.0
    rejected = 0
    while t < 1.0:
        try:
            y = step(y, h)
        except StepRejected:
            h = h / 2
            rejected += 1
            continue
        t += h
        h *= 1.2
    return y * (1 + 0.01 * rejected)


@case(
    {"r1": 0.04, "r2": 3.0, "r3": 1.5},
    np.array([1.0, 0.0, 0.0]),
    0.05,
    10,
    compiled=True,
    quick=True,
)
def chemical_kinetics(rates, c0, dt, steps):
    reactions = [
        ("r1", [0], [1]),
        ("r2", [1, 1], [1, 2]),
        ("r3", [1, 2], [0, 2]),
    ]
    c = c0.copy()
    for _ in range(steps):
        dc = np.zeros_like(c)
        for name, left, right in reactions:
            rate = rates[name]
            for s in left:
                rate = rate * c[s]
            for s in left:
                dc[s] -= rate
            for s in right:
                dc[s] += rate
        c += dt * dc
    return c[0] * 2.0 + c[1] * 3.0 - c[2]


SIR = namedtuple("SIR", "S I R")


@case(SIR(0.99, 0.01, 0.0), 1.4, 0.3, 40)
def sir_with_lockdown(state, beta, gamma, days):
    locked = False
    peak = state.I
    day_locked = -1
    for day in range(days):
        b = beta * 0.2 if locked else beta
        infected = b * state.S * state.I * 0.25
        recovered = gamma * state.I * 0.25
        state = SIR(state.S - infected, state.I + infected - recovered, state.R + recovered)
        if not locked and state.I > 0.1:
            locked = True
            day_locked = day
        elif locked and state.I < 0.05:
            locked = False
        peak = max(peak, state.I)
    total = state.S + state.I + state.R
    assert abs(total - 1.0) < 1e-9, f"lost people: {total}"
    return peak + 0.5 * state.R + (0.0 if day_locked < 0 else 0.001 * day_locked)


@case(np.array([-1.0, 0.3]), 2.0, 0.1, 5)
def van_der_pol_implicit(y, mu, dt, steps):
    """Backward Euler, Newton's method at each step."""
    y = np.array(y)
    for _ in range(steps):
        z = y.copy()
        for _ in range(20):
            F = np.array(
                [z[0] - y[0] - dt * z[1], z[1] - y[1] - dt * (mu * (1 - z[0] ** 2) * z[1] - z[0])]
            )
            J = np.array(
                [[1.0, -dt], [dt * (2 * mu * z[0] * z[1] + 1), 1 - dt * mu * (1 - z[0] ** 2)]]
            )
            dz = np.linalg.solve(J, -F)
            z += dz
            if np.max(np.abs(dz)) < 1e-13:
                break
        else:
            raise RuntimeError("Newton did not converge")
        y = z
    return y[0] * y[1]


# --- linear algebra -------------------------------------------------------------------------------

A4 = rng.normal(size=(4, 4)) + 4 * np.eye(4)
S4 = A4 @ A4.T
b4 = rng.normal(size=4)


@case(S4, b4, 1e-24, None, wrt=(0, 1), compiled=True)
def conjugate_gradients(A, b, tol=1e-24, maxiter=None):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    if maxiter is None:
        maxiter = 10 * len(b)
    residuals = [rs]
    for _ in range(maxiter):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        residuals.append(new)
        if new < tol:
            break
        p = r + (new / rs) * p
        rs = new
    return x @ x + residuals[0] + 0.1 * residuals[1]


@case(A4[[2, 0, 3, 1]], b4)
def gaussian_elimination(A, b):
    A = A.copy()
    b = b.astype(float)
    n = len(b)
    sign = 1
    for k in range(n):
        pivot = k + np.argmax(np.abs(A[k:, k]))
        if A[pivot, k] == 0:
            raise np.linalg.LinAlgError("singular")
        if pivot != k:
            A[[k, pivot]] = A[[pivot, k]]
            b[k], b[pivot] = b[pivot], b[k]
            sign = -sign
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - A[i, i + 1:] @ x[i + 1:]) / A[i, i]
    det = sign * np.prod(np.diag(A))
    return np.sum(x**2) + 1e-3 * det


@case(rng.normal(size=(4, 3)))
def gram_schmidt_in_place(V):
    Q = V.copy()
    m, n = Q.shape
    R = np.zeros((n, n))
    for j in range(n):
        for i in range(j):
            R[i, j] = Q[:, i].dot(Q[:, j])
            Q[:, j] -= R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(Q[:, j])
        Q[:, j] /= R[j, j]
    return np.sum(Q[0]) + np.trace(R) + R[0, -1]


@case(rng.normal(size=(4, 3)), rng.normal(size=4))
def householder_least_squares(A, b):
    A, b = A.copy(), b.copy()
    m, n = A.shape
    for k in range(n):
        x = A[k:, k]
        v = x.copy()
        v[0] += np.copysign(np.linalg.norm(x), x[0])
        v /= np.linalg.norm(v)
        A[k:, k:] -= 2.0 * np.outer(v, v @ A[k:, k:])
        b[k:] -= 2.0 * v * (v @ b[k:])
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    return x.sum() + np.sum(b[n:]**2)


@case(S4[:3, :3])
def jacobi_eigenvalues(A):
    A = np.array(A)
    n = A.shape[0]
    for sweep in range(30):
        off = sum(A[i, j]**2 for i in range(n) for j in range(n) if i != j)
        if off < 1e-26:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) < 1e-18:
                    continue
                theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                t = (1.0 if theta >= 0 else -1.0) / (abs(theta) + math.sqrt(theta * theta + 1))
                c = 1 / math.sqrt(t * t + 1)
                s = t * c
                for k in range(n):
                    akp, akq = A[k, p], A[k, q]
                    A[k, p], A[k, q] = c * akp - s * akq, s * akp + c * akq
                for k in range(n):
                    apk, aqk = A[p, k], A[q, k]
                    A[p, k], A[q, k] = c * apk - s * aqk, s * apk + c * aqk
    values = sorted(A[i, i] for i in range(n))
    return values[0] * 3 + values[-1]


@case(0.3 * A4[:3, :3], 8)
def expm_scaling_squaring(A, order=8):
    norm = np.abs(A).sum(axis=0).max()
    squarings = max(0, int(np.ceil(np.log2(norm))) + 1) if norm > 0 else 0
    X = A / 2**squarings
    term = np.eye(len(A))
    total = np.eye(len(A))
    for k in range(1, order + 1):
        term = term @ X / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return np.trace(total) + total[0, 1]


@case(rng.uniform(0.1, 1.0, (5, 5)), 0.85, quick=True)
def pagerank(weights, damping):
    n = len(weights)
    P = weights / weights.sum(axis=0, keepdims=True)
    rank = np.full(n, 1.0 / n)
    iterations = 0
    while True:
        new = damping * P @ rank + (1 - damping) / n
        change = np.abs(new - rank).sum()
        rank = new
        iterations += 1
        if change < 1e-14 or iterations >= 200:
            break
    return rank[0] - 2 * rank[3] + np.max(rank)


def thomas(lower, diag, upper, rhs):
    """Solves the tridiagonal system; diag and rhs are overwritten."""
    n = len(diag)
    for i in range(1, n):
        w = lower[i - 1] / diag[i - 1]
        diag[i] -= w * upper[i - 1]
        rhs[i] -= w * rhs[i - 1]
    rhs[-1] /= diag[-1]
    for i in range(n - 2, -1, -1):
        rhs[i] = (rhs[i] - upper[i] * rhs[i + 1]) / diag[i]
    return rhs


@case(np.sin(np.linspace(0, 3, 9)), 0.7, 0.1, 5)
def crank_nicolson(u, D, dt, steps):
    n = len(u) - 2
    dx = 1.0 / (n + 1)
    r = D * dt / (2 * dx**2)
    u = u.copy()
    for _ in range(steps):
        rhs = u[1:-1] + r * (u[2:] - 2 * u[1:-1] + u[:-2])
        rhs[0] += r * u[0]
        rhs[-1] += r * u[-1]
        u[1:-1] = thomas(np.full(n - 1, -r), np.full(n, 1 + 2 * r), np.full(n - 1, -r), rhs)
    return np.sum(u**2) * dx


@case(np.array([1.0, 2.0, 0.5, 1.5]), 3.0, np.array([0.1, 0.0, -0.2, 0.3, 0.0]))
def fem_assembly(k, load, offsets):
    nodes = np.linspace(0.0, 1.0, len(k) + 1) + 0.1 * offsets
    elements = np.array([[e, e + 1] for e in range(len(k))])
    K = np.zeros((len(nodes), len(nodes)))
    f = np.zeros(len(nodes))
    for e, (i, j) in enumerate(elements):
        h = nodes[j] - nodes[i]
        local = k[e] / h * np.array([[1.0, -1.0], [-1.0, 1.0]])
        np.add.at(K, (elements[e][:, None], elements[e][None, :]), local)
        np.add.at(f, elements[e], load * h / 2)
    fixed = [0, len(nodes) - 1]
    free = np.array([i for i in range(len(nodes)) if i not in fixed])
    u = np.zeros(len(nodes))
    u[free] = np.linalg.solve(K[free][:, free], f[free])
    return u @ f + np.max(u)


# --- optimisation ---------------------------------------------------------------------------------

def rosenbrock_and_slope(x, a, b):
    value = (a - x[0])**2 + b * (x[1] - x[0]**2)**2
    slope = np.array([-2 * (a - x[0]) - 4 * b * x[0] * (x[1] - x[0]**2), 2 * b * (x[1] - x[0]**2)])
    return value, slope


@case(np.array([-0.5, 0.8]), 1.0, 5.0, 4)
def lbfgs_two_loop(x, a, b, iterations):
    memory = 3
    S, Y = [], []
    f, g = rosenbrock_and_slope(x, a, b)
    for _ in range(iterations):
        q = g.copy()
        alphas = []
        for s, y in zip(reversed(S), reversed(Y)):
            alpha = (s @ q) / (y @ s)
            q = q - alpha * y
            alphas.append(alpha)
        if S:
            q = q * ((S[-1] @ Y[-1]) / (Y[-1] @ Y[-1]))
        for s, y, alpha in zip(S, Y, reversed(alphas)):
            beta = (y @ q) / (y @ s)
            q = q + s * (alpha - beta)
        step = 1.0
        while True:
            new = x - step * q
            f_new, g_new = rosenbrock_and_slope(new, a, b)
            if f_new <= f - 1e-4 * step * (g @ q) or step < 1e-6:
                break
            step *= 0.5
        S.append(new - x)
        Y.append(g_new - g)
        if len(S) > memory:
            S.pop(0)
            Y.pop(0)
        x, f, g = new, f_new, g_new
    return f + x[0]


@case(np.array([0.5, -0.3]), 0.1, 6)
def adam(w, lr, steps):
    config = dict(lr=lr, betas=(0.9, 0.999), eps=1e-8)
    state = {"m": np.zeros_like(w), "v": np.zeros_like(w), "t": 0}

    def update(w, g, state, lr, betas, eps=1e-8):
        b1, b2 = betas
        state["t"] += 1
        state["m"] = b1 * state["m"] + (1 - b1) * g
        state["v"] = b2 * state["v"] + (1 - b2) * g**2
        m_hat = state["m"] / (1 - b1**state["t"])
        v_hat = state["v"] / (1 - b2**state["t"])
        return w - lr * m_hat / (np.sqrt(v_hat) + eps)

    for _ in range(steps):
        g = np.array([2 * w[0] + w[1], w[0] + 4 * w[1]**3])
        w = update(w, g, state, **config)
    return np.sum(w * w)


@case(np.array([0.2, -0.1, 0.4]), np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 2.0]]))
def nelder_mead(x0, A):
    def f(x):
        return np.sum((A @ x - 1.0)**2) + 0.1 * np.sum(x**4)

    simplex = [x0]
    for i in range(len(x0)):
        p = x0.copy()
        p[i] += 0.3
        simplex.append(p)
    for _ in range(6):
        simplex = sorted(simplex, key=f)
        best, worst, second = simplex[0], simplex[-1], simplex[-2]
        centre = sum(simplex[:-1]) / (len(simplex) - 1)
        reflected = centre + (centre - worst)
        if f(reflected) < f(best):
            expanded = centre + 2 * (centre - worst)
            simplex[-1] = expanded if f(expanded) < f(reflected) else reflected
        elif f(reflected) < f(second):
            simplex[-1] = reflected
        else:
            simplex[-1] = centre + 0.5 * (worst - centre)
    return min(f(p) for p in simplex)


class Bisection:
    def __init__(self, f, tol=1e-10, maxiter=60):
        self.f = f
        self.tol = tol
        self.maxiter = maxiter
        self.evaluations = 0

    def __call__(self, lo, hi):
        f_lo = self.f(lo)
        if f_lo * self.f(hi) > 0:
            raise ValueError("no change of sign")
        mid = 0.5 * (lo + hi)
        for _ in range(self.maxiter):
            mid = 0.5 * (lo + hi)
            f_mid = self.f(mid)
            self.evaluations += 1
            if abs(f_mid) < self.tol:
                return mid
            if f_lo * f_mid < 0:
                hi = mid
            else:
                lo, f_lo = mid, f_mid
        return mid


@case(0.1, 1.3, 2.0)
def bisection_then_newton(lo, hi, c):
    f = lambda t: t * math.exp(t) - c
    root = Bisection(f, tol=1e-6)(lo, hi)
    for _ in range(3):
        root -= f(root) / (math.exp(root) * (1 + root))
    return root**2


# --- statistics and learning ----------------------------------------------------------------------

@case(
    {
        "F": np.array([[1.0, 0.1], [0.0, 0.95]]),
        "H": np.array([[1.0, 0.0]]),
        "Q": 0.01 * np.eye(2),
        "R": np.array([[0.2]]),
    },
    rng.normal(size=5),
)
def kalman_filter(model, observations):
    F, H, Q, R = (model[k] for k in ("F", "H", "Q", "R"))
    state = {"x": np.zeros(2), "P": np.eye(2)}
    loglik = 0.0
    for z in observations:
        state["x"] = F @ state["x"]
        state["P"] = F @ state["P"] @ F.T + Q
        innovation = z - H @ state["x"]
        S = H @ state["P"] @ H.T + R
        K = state["P"] @ H.T @ np.linalg.solve(S, np.eye(1))
        state = {"x": state["x"] + K @ innovation, "P": (np.eye(2) - K @ H) @ state["P"]}
        loglik += -0.5 * (innovation @ np.linalg.solve(S, innovation) + np.log(2 * np.pi * S[0, 0]))
    return loglik


@case(rng.normal(size=(3, 3)), rng.normal(size=(3, 4)), np.zeros(3), [0, 2, 1, 3, 3, 0])
def hmm_forward_backward(transition_logits, emission_logits, start_logits, observed):
    def softmax(z):
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    T, E, pi = softmax(transition_logits), softmax(emission_logits), softmax(start_logits)
    alphas, scales = [], []
    alpha = pi * E[:, observed[0]]
    for t, o in enumerate(observed):
        if t > 0:
            alpha = (alpha @ T) * E[:, o]
        scale = alpha.sum()
        alpha = alpha / scale
        alphas.append(alpha)
        scales.append(scale)
    beta = np.ones(3)
    gammas = [alphas[-1]]
    for t in range(len(observed) - 2, -1, -1):
        beta = T @ (E[:, observed[t + 1]] * beta) / scales[t + 1]
        gammas.insert(0, alphas[t] * beta)
    gammas = np.stack(gammas)
    return sum(map(math.log, scales)) + gammas[2, 1]


@case(
    [(rng.normal(size=(4, 3)), np.zeros(4)), (rng.normal(size=(2, 4)), np.zeros(2))],
    rng.normal(size=(5, 3)),
    [0, 1, 1, 0, 1],
)
def mlp_cross_entropy(params, X, labels):
    def forward(x):
        *hidden, last = params
        for W, b in hidden:
            x = np.tanh(W @ x + b)
        W, b = last
        return W @ x + b

    loss = 0.0
    for x, label in zip(X, labels):
        logits = forward(x)
        top = logits.max()
        loss -= logits[label] - top - np.log(np.sum(np.exp(logits - top)))
    penalty = sum(np.sum(W**2) for W, _ in params)
    return loss / len(X) + 1e-3 * penalty


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@dataclass
class LSTMState:
    h: np.ndarray
    c: np.ndarray


@dataclass
class LSTMCell:
    W: np.ndarray
    U: np.ndarray
    b: np.ndarray

    @property
    def size(self):
        return self.U.shape[1]

    def initial(self):
        return LSTMState(np.zeros(self.size), np.zeros(self.size))

    def step(self, state, x):
        i, f, o, g = np.split(self.W @ x + self.U @ state.h + self.b, 4)
        c = sigmoid(f) * state.c + sigmoid(i) * np.tanh(g)
        return LSTMState(sigmoid(o) * np.tanh(c), c)


@case(
    LSTMCell(rng.normal(size=(8, 3)), rng.normal(size=(8, 2)), np.zeros(8)), rng.normal(size=(4, 3))
)
def lstm(cell, xs):
    state = cell.initial()
    outputs = []
    for x in xs:
        state = cell.step(state, x)
        outputs.append(state.h)
    return np.mean(np.stack(outputs)**2) + state.c.sum()


@case(rng.normal(size=(6, 6)), rng.normal(size=(2, 3, 3)))
def convolution_and_pooling(image, kernels):
    H, W = image.shape
    padded = np.zeros((H + 2, W + 2))
    padded[1:-1, 1:-1] = image
    maps = []
    for kernel in kernels:
        out = np.zeros((H, W))
        for i in range(H):
            for j in range(W):
                s = 0.0
                for di in range(3):
                    for dj in range(3):
                        s += padded[i + di, j + dj] * kernel[di, dj]
                out[i, j] = max(s, 0.0)
        pooled = out.reshape(H // 2, 2, W // 2, 2).max(axis=3).max(axis=1)
        maps.append(pooled)
    return np.sum(np.array(maps)**2)


@case(rng.normal(size=(8, 2)), np.array([[-0.5, 0.1], [0.6, -0.2]]), 3)
def em_for_a_mixture(X, means, iterations):
    K, d = means.shape
    weights = np.ones(K) / K
    variances = np.ones(K)
    loglik = []
    for it in range(iterations):
        logp = np.empty((len(X), K))
        for k in range(K):
            d2 = ((X - means[k])**2).sum(axis=1)
            logp[:, k] = (
                np.log(weights[k])
                - 0.5 * d2 / variances[k]
                - 0.5 * d * np.log(2 * np.pi * variances[k])
            )
        norm = np.logaddexp.reduce(logp, axis=1) if False else np.log(np.sum(np.exp(logp), axis=1))
        loglik.append(norm.sum())
        resp = np.exp(logp - norm[:, None])
        Nk = resp.sum(axis=0)
        weights = Nk / len(X)
        means = resp.T @ X / Nk[:, None]
        variances = np.array(
            [(resp[:, k] * ((X - means[k]) ** 2).sum(1)).sum() / (d * Nk[k]) for k in range(K)]
        )
    return loglik[-1] - loglik[0] + variances[0]


@case(rng.normal(size=(10, 2)), 3, 4, quick=True)
def k_means(X, k, iterations):
    centres = X[:k].copy()
    labels = np.zeros(len(X), dtype=int)
    for _ in range(iterations):
        distances = ((X[:, None, :] - centres[None, :, :])**2).sum(-1)
        new_labels = np.argmin(distances, axis=1)
        if _ > 0 and np.all(new_labels == labels):
            break
        labels = new_labels
        for j in range(k):
            members = X[labels == j]
            if len(members):
                centres[j] = members.mean(axis=0)
    return np.sum((X - centres[labels])**2)


@case(0.3, np.array([0.1, 0.4]), np.random.default_rng(3))
def metropolis(sigma, mu, rng):
    def energy(x):
        return 0.5 * np.sum((x - mu)**2) / sigma

    x = np.zeros(2)
    e = energy(x)
    accepted = 0
    samples = []
    for _ in range(8):
        proposal = x + sigma * rng.normal(size=2)
        e_new = energy(proposal)
        if np.log(rng.uniform()) < e - e_new:
            x, e = proposal, e_new
            accepted += 1
        samples.append(x)
    return np.mean(samples) + 0.1 * accepted / 8 + e


@case(
    np.linspace(0, 1, 6),
    np.sin(np.linspace(0, 1, 6)),
    {"length": 0.3, "amplitude": 1.2, "noise": 0.1},
)
def gaussian_process(x, y, theta):
    def kernel(a, b, *, length, amplitude, **_):
        return amplitude**2 * np.exp(-0.5 * (a - b)**2 / length**2)

    K = kernel(x[:, None], x[None, :], **theta) + theta["noise"]**2 * np.eye(len(x))
    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        L = np.linalg.cholesky(K + 1e-6 * np.eye(len(x)))
    z = np.linalg.solve(L, y)
    return 0.5 * z @ z + np.sum(np.log(np.diag(L))) + 0.5 * len(x) * np.log(2 * np.pi)


# --- finance --------------------------------------------------------------------------------------

class Kind(Enum):
    CALL = auto()
    PUT = auto()


def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@case(100.0, 95.0, 0.02, 0.3, 0.5, Kind.PUT)
def black_scholes(S, K, r, sigma, T, kind):
    if T <= 0:
        return max(S - K, 0.0) if kind is Kind.CALL else max(K - S, 0.0)
    d1 = (math.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    match kind:
        case Kind.CALL:
            return S * normal_cdf(d1) - K * math.exp(-r * T) * normal_cdf(d2)
        case Kind.PUT:
            return K * math.exp(-r * T) * normal_cdf(-d2) - S * normal_cdf(-d1)
    raise ValueError(kind)


@case(100.0, 105.0, 0.03, 0.25, 1.0, 6)
def american_put(S, K, r, sigma, T, n):
    dt = T / n
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(r * dt) - d) / (u - d)
    disc = math.exp(-r * dt)
    if not 0 < p < 1:
        raise ValueError(f"p = {p} is no probability")
    values = [max(K - S * u**j * d**(n - j), 0.0) for j in range(n + 1)]
    for step in range(n - 1, -1, -1):
        values = [max(disc * (p * up + (1 - p) * down), K - S * u**j * d**(step - j))
                  for j, (down, up) in enumerate(zip(values, values[1:]))]
    return values[0]


@case(100.0, 0.2, 0.01, np.random.default_rng(8), 100.0, 6, 4)
def asian_option(S0, sigma, r, rng, K, paths, steps):
    dt = 1.0 / steps
    payoffs = []
    for _ in range(paths):
        S, total = S0, 0.0
        for z in rng.standard_normal(steps):
            S *= np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z)
            total += S
        payoffs.append(max(total / steps - K, 0.0))
    return np.exp(-r) * np.mean(payoffs)


# --- signals, images, numbers ---------------------------------------------------------------------

def fft(x):
    n = len(x)
    if n == 1:
        return x
    even, odd = fft(x[::2]), fft(x[1::2])
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    return np.concatenate([even + w * odd, even - w * odd])


@case(rng.normal(size=8))
def power_spectrum(x):
    X = fft(x.astype(complex))
    power = np.abs(X)**2
    return np.log(1 + power[1:5]).sum()


@case([1.0, -2.5, 0.3, 1.7], 30)
def durand_kerner(coefficients, iterations):
    n = len(coefficients)
    roots = [(0.4 + 0.9j)**k for k in range(n)]

    def poly(z):
        value = 1.0
        for c in coefficients:
            value = value * z + c
        return value

    for _ in range(iterations):
        for i in range(n):
            denominator = 1.0
            for j in range(n):
                if j != i:
                    denominator *= roots[i] - roots[j]
            roots[i] -= poly(roots[i]) / denominator
    largest = max(abs(z) for z in roots)
    return largest + sum(z.imag**2 for z in roots)


@case(-0.1, 0.7, 50, quick=True)
def mandelbrot_smooth(re, im, limit):
    c = complex(re, im)
    z = 0j
    for n in range(limit):
        z = z * z + c
        if abs(z) > 10.0:
            return n + 1 - math.log(math.log(abs(z))) / math.log(2)
    return float(limit)


@case(0.3 + 0.2j, 2.5, 6, quick=True)
def complex_logistic_map(z, r, n):
    orbit = []
    for _ in range(n):
        z = r * z * (1 - z)
        orbit.append(z)
        if abs(z) > 1e6:
            break
    return sum(abs(w) for w in orbit) / len(orbit) + orbit[-1].imag


def adaptive_simpson(f, a, b, tol, depth=0):
    def rule(lo, hi):
        return (hi - lo) / 6 * (f(lo) + 4 * f((lo + hi) / 2) + f(hi))

    m = (a + b) / 2
    whole, left, right = rule(a, b), rule(a, m), rule(m, b)
    if depth >= 10 or abs(left + right - whole) < 15 * tol:
        return left + right + (left + right - whole) / 15
    return adaptive_simpson(f, a, m, tol / 2, depth + 1) + adaptive_simpson(
        f, m, b, tol / 2, depth + 1
    )


def bump(t, centre, width):
    return math.exp(-((t - centre) / width)**2)


@case(0.3, 0.2, 1.0)
def quadrature(centre, width, end):
    return adaptive_simpson(partial(bump, centre=centre, width=width), 0.0, end, 1e-5)


@case(
    np.array([0.0, 0.4, 1.0, 1.7, 2.0]),
    np.array([1.0, 0.2, -0.5, 0.3, 0.9]),
    np.array([0.1, 0.9, 1.2, 1.95]),
)
def natural_spline(x, y, at):
    n = len(x)
    h = np.diff(x)
    A = np.zeros((n, n))
    r = np.zeros(n)
    A[0, 0] = A[-1, -1] = 1.0
    for i in range(1, n - 1):
        A[i, i - 1:i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        r[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    M = np.linalg.solve(A, r)
    k = np.clip(np.searchsorted(x, at) - 1, 0, n - 2)
    a, b = x[k + 1] - at, at - x[k]
    s = (
        (M[k] * a**3 + M[k + 1] * b**3) / (6 * h[k])
        + (y[k] / h[k] - M[k] * h[k] / 6) * a
        + (y[k + 1] / h[k] - M[k + 1] * h[k] / 6) * b
    )
    return np.sum(s**2)


@case(rng.uniform(size=(5, 6)), 0.8, 0.3)
def bilateral_filter(image, sigma_s, sigma_r):
    r = 1
    padded = np.vstack([image[:1], image, image[-1:]])
    padded = np.hstack([padded[:, :1], padded, padded[:, -1:]])
    out = np.empty_like(image)
    for i, j in itertools.product(range(image.shape[0]), range(image.shape[1])):
        centre = image[i, j]
        window = padded[i:i + 2 * r + 1, j:j + 2 * r + 1]
        xx = np.arange(-r, r + 1)[None, :]
        yy = xx.T
        w = np.exp(-(xx**2 + yy**2) / (2 * sigma_s**2)) * np.exp(
            -((window - centre) ** 2) / (2 * sigma_r**2)
        )
        out[i, j] = np.sum(w * window) / np.sum(w)
    return np.mean((out - image.mean())**2)


@dataclass(frozen=True)
class Sphere:
    centre: np.ndarray
    radius: float
    albedo: float = 0.8

    def hit(self, origin, direction):
        oc = origin - self.centre
        b = oc @ direction
        disc = b * b - (oc @ oc - self.radius**2)
        if disc < 0:
            return math.inf
        t = -b - math.sqrt(disc)
        return t if t > 1e-6 else math.inf


@case(
    [Sphere(np.array([0.0, 0.0, 3.0]), 1.0), Sphere(np.array([0.7, 0.5, 2.0]), 0.4, 0.5)],
    np.array([1.0, 1.0, -1.0]),
)
def ray_tracer(scene, light):
    light = light / np.linalg.norm(light)
    total = 0.0
    for px in np.linspace(-0.4, 0.4, 3):
        for py in (-0.3, 0.2):
            direction = np.array([px, py, 1.0])
            direction = direction / np.linalg.norm(direction)
            nearest, found = np.inf, scene[0]
            for sphere in scene:
                t = sphere.hit(np.zeros(3), direction)
                if t < nearest:
                    nearest, found = t, sphere
            if nearest == np.inf:
                total += 0.1
                continue
            normal = (nearest * direction - found.centre) / found.radius
            total += found.albedo * max(normal @ light, 0.0)
    return total


def encoded(text):
    return np.array(["ACGT".index(c) for c in text])


# --- dynamic programming, search, automata --------------------------------------------------------

@case(encoded("GATTACA"), encoded("GCATGC"), 1.0, -0.7, -0.9, 0.5)
def needleman_wunsch_soft(a, b, match, mismatch, gap, temperature):
    def softmax(*scores):
        top = max(scores)
        return top + temperature * math.log(sum(math.exp((s - top) / temperature) for s in scores))

    D = np.zeros((len(a) + 1, len(b) + 1))
    D[:, 0] = gap * np.arange(len(a) + 1)
    D[0, :] = gap * np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            score = match if a[i - 1] == b[j - 1] else mismatch
            D[i, j] = softmax(D[i - 1, j - 1] + score, D[i - 1, j] + gap, D[i, j - 1] + gap)
    return D[-1, -1]


@case(np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 0]), 3, 0.4, 1.1, 6, quick=True)
def traffic(road, vmax, cost, gain, steps):
    """Nagel-Schreckenberg without noise; -1 is an empty cell."""
    n = len(road)
    cells = np.where(road == 1, 0, -1)
    flow = 0.0
    for step in range(steps):
        new = -np.ones(n, dtype=int)
        for i in range(n):
            if cells[i] < 0:
                continue
            gap = 1
            while cells[(i + gap) % n] < 0 and gap <= vmax:
                gap += 1
            v = min(cells[i] + 1, vmax, gap - 1)
            new[(i + v) % n] = v
            flow += gain * v - cost * (v - cells[i])**2
        cells = new
    return flow / (n * steps)


@case(np.array([0.3, 0.1, 0.5]), np.array([0.2, 0.2, 0.6]), 0.1, 30)
def sinkhorn(a, b, epsilon, iterations):
    n, m = len(a), len(b)
    C = np.abs(np.arange(n)[:, None] - np.arange(m)[None, :])**1.5
    K = np.exp(-C / epsilon / 10)
    a, b = a / a.sum(), b / b.sum()
    u, v = np.ones(n), np.ones(m)
    for _ in range(iterations):
        u = a / (K @ v)
        v = b / (K.T @ u)
    P = u[:, None] * K * v
    return np.sum(P * C)


@pytest.mark.lengthy
@pytest.mark.parametrize("f, args, wrt", CASES)
def test_programs(f, args, wrt):
    judge(f, *args, wrt=wrt)


@pytest.mark.compile
@pytest.mark.parametrize("f, args, wrt", COMPILED)
def test_compiled_programs(f, args, wrt):
    judge(f, *args, wrt=wrt)


def squashed(x, n):
    for _ in range(n):
        x = np.sin(x) * x
    return x


def gridded(x):
    r = 1
    yy, xx = np.mgrid[-r:r + 1, -r:r + 1]
    return np.sum(x * yy * xx)


def test_an_index_that_is_read_is_not_called_as_what_nothing_reads():
    gradient = s2s.grad(squashed)
    gradient(0.3, 2)
    assert "tape[_]" not in gradient.source


def test_objects_that_are_indexed_for_what_they_make_are_read():
    step = 1e-6
    np.testing.assert_allclose(
        s2s.grad(gridded)(2.0),
        (gridded(2.0 + step) - gridded(2.0 - step)) / (2 * step),
        rtol=1e-8,
        atol=1e-9,
    )
