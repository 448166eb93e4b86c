"""Solvers of equations on grids: multigrid, Stokes, conjugate gradients, GMRES, Newton."""

import numpy as np

# multigrid


def smooth(u, f, h, sweeps=2, omega=0.8):
    """Damped Jacobi."""
    for _ in range(sweeps):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + h * h * f[1:-1, 1:-1]
        )
        u = (1 - omega) * u + omega * new
    return u


def residual(u, f, h):
    r = np.zeros_like(u)
    r[1:-1, 1:-1] = f[1:-1, 1:-1] - (
        4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
    ) / (h * h)
    return r


def restrict(r):
    n = (r.shape[0] - 1) // 2 + 1
    coarse = np.zeros((n, n))
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            block = r[2 * i - 1 : 2 * i + 2, 2 * j - 1 : 2 * j + 2]
            kernel = np.outer([1, 2, 1], [1, 2, 1]) / 16
            coarse[i, j] = np.sum(kernel * block)
    return coarse


def prolong(c):
    n = 2 * (c.shape[0] - 1) + 1
    fine = np.zeros((n, n))
    fine[::2, ::2] = c
    fine[1::2, ::2] = 0.5 * (c[:-1] + c[1:])
    fine[:, 1::2] = 0.5 * (fine[:, :-2:2] + fine[:, 2::2])
    return fine


def v_cycle(u, f, h, levels=None):
    if u.shape[0] <= 3:
        u = u.copy()
        u[1, 1] = h * h * f[1, 1] / 4
        return u
    u = smooth(u, f, h)
    coarse = v_cycle(np.zeros(((len(u) - 1) // 2 + 1,) * 2), restrict(residual(u, f, h)), 2 * h)
    u = u + prolong(coarse)
    return smooth(u, f, h)


def poisson(source):
    """Flux out of a square heated by point sources, after V cycles to a tolerance."""
    n = 9
    h = 1.0 / (n - 1)
    f = np.zeros((n, n))
    for (i, j), s in zip([(2, 2), (4, 6), (6, 3)], source):
        f[i, j] += s / h**2
    u = np.zeros((n, n))
    first = np.linalg.norm(residual(u, f, h))
    cycles = 0
    while np.linalg.norm(residual(u, f, h)) > 1e-3 * first and cycles < 6:
        u = v_cycle(u, f, h)
        cycles += 1
    return u[1, :].sum() + u[-2, :].sum() + np.max(u) ** 2


# Stokes flow in a driven cavity, by artificial compressibility on a staggered grid


class Cavity:
    def __init__(self, n, viscosity, lid):
        self.n, self.nu, self.lid = n, viscosity, lid
        self.h = 1.0 / n
        self.u = np.zeros((n + 1, n + 2))
        self.v = np.zeros((n + 2, n + 1))
        self.p = np.zeros((n, n))

    def boundaries(self):
        self.u[:, 0] = -self.u[:, 1]
        self.u[:, -1] = 2 * self.lid - self.u[:, -2]
        self.v[0, :] = -self.v[1, :]
        self.v[-1, :] = -self.v[-2, :]

    @staticmethod
    def laplace(a):
        inner = a[1:-1, 1:-1]
        return a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * inner

    def divergence(self):
        return (np.diff(self.u[:, 1:-1], axis=0) + np.diff(self.v[1:-1], axis=1)) / self.h

    def iterate(self, dt, beta=1.0):
        self.boundaries()
        h = self.h
        self.u[1:-1, 1:-1] += dt * (
            self.nu * self.laplace(self.u) / h**2 - np.diff(self.p, axis=0) / h
        )
        self.v[1:-1, 1:-1] += dt * (
            self.nu * self.laplace(self.v) / h**2 - np.diff(self.p, axis=1) / h
        )
        div = self.divergence()
        self.p -= dt * beta * div
        return np.abs(div).max()

    def solve(self, dt, tol, max_iterations):
        history = []
        for k in range(max_iterations):
            history.append(self.iterate(dt))
            if history[-1] < tol:
                break
        return history


def cavity(p):
    """Circulation of a cavity, by viscosity and the speed of its lid."""
    flow = Cavity(4, p[0], p[1])
    history = flow.solve(0.02, 1e-3, 12)
    stream = np.cumsum(flow.u[:, 1:-1], axis=1) * flow.h
    return stream.min() + history[-1] + np.sum(flow.p**2)


# Krylov methods, with operators as functions


def conjugate_gradient(apply, b, x0=None, tol=1e-8, max_iter=None, precondition=None):
    x = np.zeros_like(b) if x0 is None else x0.copy()
    r = b - apply(x)
    z = r if precondition is None else precondition(r)
    p = z.copy()
    rz = r @ z
    if max_iter is None:
        max_iter = 2 * len(b)
    for k in range(max_iter):
        Ap = apply(p)
        alpha = rz / (p @ Ap)
        x += alpha * p
        r = r - alpha * Ap
        if np.linalg.norm(r) < tol * np.linalg.norm(b):
            return x, k + 1
        z = r if precondition is None else precondition(r)
        rz, old = r @ z, rz
        p = z + rz / old * p
    return x, max_iter


class Diffusion:
    """-(k u')' with k on the faces, as an operator without a matrix."""

    def __init__(self, k):
        self.k = k
        self.h = 1.0 / len(k)

    def __call__(self, u):
        padded = np.concatenate(([0.0], u, [0.0]))
        flux = self.k * np.diff(padded) / self.h
        return -np.diff(flux) / self.h

    def diagonal(self):
        return (self.k[:-1] + self.k[1:]) / self.h**2


def conductor(log_k):
    """Misfit of temperatures to data, by the logarithm of the conductivity on each face."""
    A = Diffusion(np.exp(log_k))
    b = np.ones(len(log_k) - 1)
    M = A.diagonal()
    u, iterations = conjugate_gradient(A, b, precondition=lambda r: r / M)
    warm, _ = conjugate_gradient(A, 2 * b, x0=u, tol=1e-6)
    data = np.linspace(0.05, 0.1, len(u))
    return np.sum((u - data) ** 2) + 0.1 * np.max(warm)


def givens(a, b):
    if b == 0:
        return 1.0, 0.0
    r = np.hypot(a, b)
    return a / r, b / r


def gmres(A, b, x0, restart=5, tol=1e-10, max_restarts=3):
    x = x0.copy()
    n = len(b)
    bnorm = np.linalg.norm(b)
    for _ in range(max_restarts):
        r = b - A @ x
        beta = np.linalg.norm(r)
        if beta < tol * bnorm:
            break
        V = np.zeros((restart + 1, n))
        H = np.zeros((restart + 1, restart))
        cs, sn = np.zeros(restart), np.zeros(restart)
        g = np.zeros(restart + 1)
        g[0] = beta
        V[0] = r / beta
        m = restart
        for j in range(restart):
            w = A @ V[j]
            for i in range(j + 1):
                H[i, j] = w @ V[i]
                w = w - H[i, j] * V[i]
            H[j + 1, j] = np.linalg.norm(w)
            if H[j + 1, j] > 1e-14:
                V[j + 1] = w / H[j + 1, j]
            for i in range(j):
                t = cs[i] * H[i, j] + sn[i] * H[i + 1, j]
                H[i + 1, j] = -sn[i] * H[i, j] + cs[i] * H[i + 1, j]
                H[i, j] = t
            cs[j], sn[j] = givens(H[j, j], H[j + 1, j])
            H[j, j] = cs[j] * H[j, j] + sn[j] * H[j + 1, j]
            H[j + 1, j] = 0.0
            g[j + 1] = -sn[j] * g[j]
            g[j] = cs[j] * g[j]
            if abs(g[j + 1]) < tol * bnorm:
                m = j + 1
                break
        y = np.zeros(m)
        for i in range(m - 1, -1, -1):
            y[i] = (g[i] - H[i, i + 1 : m] @ y[i + 1 : m]) / H[i, i]
        x = x + V[:m].T @ y
    return x


def advection(p):
    """Outflow of an advected tracer, by velocity, diffusivity and reaction rate, by GMRES."""
    velocity, nu, rate = p
    n = 8
    h = 1.0 / (n + 1)
    A = np.zeros((n, n))
    for i in range(n):
        A[i, i] = 2 * nu / h**2 + velocity / h + rate
        if i > 0:
            A[i, i - 1] = -nu / h**2 - velocity / h
        if i < n - 1:
            A[i, i + 1] = -nu / h**2
    b = np.zeros(n)
    b[0] = nu / h**2 + velocity / h
    x = gmres(A, b, np.zeros(n))
    return x[-1] + 0.1 * np.sum(x**2)


# Newton's method with a line search and a cache of Jacobians


class Newton:
    def __init__(self, fun, jac=None, tol=1e-10, verbose=False):
        self.fun, self.jac = fun, jac or self.numerical
        self.tol, self.verbose = tol, verbose
        self.cache = None
        self.log = []

    def numerical(self, x, h=1e-7):
        f0 = self.fun(x)
        J = np.empty((len(f0), len(x)))
        for j in range(len(x)):
            xp = x.copy()
            xp[j] += h
            J[:, j] = (self.fun(xp) - f0) / h
        return J

    def solve(self, x, max_iter=25):
        f = self.fun(x)
        for it in range(max_iter):
            norm = np.max(np.abs(f))
            self.log.append((it, norm))
            if self.verbose:
                print(f"{it:3d}  {norm:.3e}")
            if norm < self.tol:
                return x
            if self.cache is None or it % 2 == 0:
                self.cache = self.jac(x)
            dx = np.linalg.solve(self.cache, -f)
            lam = 1.0
            while lam > 1e-4:
                trial = x + lam * dx
                f_trial = self.fun(trial)
                if np.max(np.abs(f_trial)) < norm:
                    break
                lam *= 0.5
            x, f = trial, f_trial
        raise RuntimeError("Newton did not converge")


def bratu(p):
    """Peak of a thermal runaway problem, by its parameter and the temperatures at its ends."""
    lam, left, right = p
    n = 7
    h = 1.0 / (n + 1)

    def fun(u):
        full = np.hstack([left, u, right])
        return (full[:-2] - 2 * full[1:-1] + full[2:]) / h**2 + lam * np.exp(full[1:-1])

    def jac(u):
        J = np.diag(-2 / h**2 + lam * np.exp(u))
        for i in range(n - 1):
            J[i, i + 1] = J[i + 1, i] = 1 / h**2
        return J

    exact = Newton(fun, jac).solve(np.zeros(n))
    solver = Newton(fun)
    rough = solver.solve(np.full(n, 0.1))
    return np.max(exact) + np.sum(rough) / len(solver.log)


PROGRAMS = [
    (poisson, np.array([1.0, -0.4, 0.7])),
    (cavity, np.array([0.3, 1.1])),
    (conductor, 0.3 * np.sin(2.0 * np.arange(8.0))),
    (advection, np.array([1.0, 0.2, 0.5])),
    (bratu, np.array([1.5, 0.1, 0.2])),
]
