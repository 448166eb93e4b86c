"""Fluids and waves on grids: lattice Boltzmann, Euler with limiters, shallow water, spectra."""

import numpy as np

# lattice Boltzmann, D2Q9

VELOCITIES = np.array(
    [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]]
)
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]


class LatticeBoltzmann:
    def __init__(self, nx, ny, viscosity, obstacle=None):
        self.nx, self.ny = nx, ny
        self.omega = 1.0 / (3.0 * viscosity + 0.5)
        self.obstacle = np.zeros((nx, ny), dtype=bool) if obstacle is None else obstacle
        self.f = np.empty((9, nx, ny))

    def initialise(self, rho, ux, uy):
        self.f = self.equilibrium(rho, ux, uy)

    def equilibrium(self, rho, ux, uy):
        feq = np.zeros((9, self.nx, self.ny))
        usq = 1.5 * (ux**2 + uy**2)
        for i, (cx, cy) in enumerate(VELOCITIES):
            cu = 3 * (cx * ux + cy * uy)
            feq[i] = WEIGHTS[i] * rho * (1 + cu + 0.5 * cu**2 - usq)
        return feq

    def macroscopic(self):
        rho = self.f.sum(axis=0)
        ux = np.tensordot(VELOCITIES[:, 0], self.f, axes=1) / rho
        uy = np.tensordot(VELOCITIES[:, 1], self.f, axes=1) / rho
        return rho, ux, uy

    def collide(self):
        rho, ux, uy = self.macroscopic()
        bounced = [self.f[OPPOSITE[i]].copy() for i in range(9)]
        self.f += self.omega * (self.equilibrium(rho, ux, uy) - self.f)
        for i in range(9):
            self.f[i][self.obstacle] = bounced[i][self.obstacle]

    def stream(self):
        for i, (cx, cy) in enumerate(VELOCITIES):
            self.f[i] = np.roll(np.roll(self.f[i], cx, axis=0), cy, axis=1)


def flow_past_obstacle(p):
    """Drag-like loss of momentum in a periodic channel with an obstacle, by viscosity and speed."""
    nx, ny = 6, 5
    obstacle = np.zeros((nx, ny), dtype=bool)
    obstacle[2, 1:3] = True
    solver = LatticeBoltzmann(nx, ny, viscosity=p[0], obstacle=obstacle)
    y = np.arange(ny)
    profile = p[1] * (1 + 0.1 * np.sin(2 * np.pi * y / ny))
    solver.initialise(np.ones((nx, ny)), np.tile(profile, (nx, 1)), np.zeros((nx, ny)))
    drag = 0.0
    for step in range(5):
        before = solver.macroscopic()[1].sum()
        solver.collide()
        solver.stream()
        after = solver.macroscopic()[1].sum()
        if step >= 1:
            drag += before - after
    rho, ux, uy = solver.macroscopic()
    vorticity = np.gradient(uy, axis=0) - np.gradient(ux, axis=1)
    return drag + np.sum(vorticity**2)


# the Euler equations in one dimension, with ghost cells

GAMMA = 1.4


def minmod(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)


def van_leer(a, b):
    p = a * b
    s = a + b
    out = np.zeros_like(p)
    mask = p > 0
    out[mask] = 2 * p[mask] / s[mask]
    return out


LIMITERS = {"minmod": minmod, "vanleer": van_leer}


def primitive(U):
    rho = U[0]
    u = U[1] / rho
    p = (GAMMA - 1) * (U[2] - 0.5 * rho * u**2)
    return np.array([rho, u, p])


def conserved(W):
    rho, u, p = W
    return np.stack([rho, rho * u, p / (GAMMA - 1) + 0.5 * rho * u**2])


def flux(U):
    rho, u, p = primitive(U)
    return np.array([rho * u, rho * u**2 + p, u * (U[2] + p)])


def hll(UL, UR):
    rhoL, uL, pL = primitive(UL)
    rhoR, uR, pR = primitive(UR)
    cL, cR = np.sqrt(GAMMA * pL / rhoL), np.sqrt(GAMMA * pR / rhoR)
    SL = np.minimum(uL - cL, uR - cR)
    SR = np.maximum(uL + cL, uR + cR)
    FL, FR = flux(UL), flux(UR)
    middle = (SR * FL - SL * FR + SL * SR * (UR - UL)) / (SR - SL)
    return np.where(SL > 0, FL, np.where(SR < 0, FR, middle))


class Grid1D:
    """Cells with two ghosts on each side."""

    ng = 2

    def __init__(self, n, xmin=0.0, xmax=1.0):
        self.n = n
        self.dx = (xmax - xmin) / n
        self.x = xmin + (np.arange(n + 2 * self.ng) - self.ng + 0.5) * self.dx
        self.U = np.zeros((3, n + 2 * self.ng))

    @property
    def interior(self):
        return self.U[:, self.ng : -self.ng]

    def fill_ghosts(self, kind="outflow"):
        ng = self.ng
        if kind == "outflow":
            for g in range(ng):
                self.U[:, g] = self.U[:, ng]
                self.U[:, -1 - g] = self.U[:, -ng - 1]
        elif kind == "reflect":
            for g in range(ng):
                self.U[:, g] = self.U[:, 2 * ng - 1 - g]
                self.U[:, -1 - g] = self.U[:, -2 * ng + g]
                self.U[1, g] *= -1
                self.U[1, -1 - g] *= -1
        else:
            raise ValueError("unknown boundary " + kind)

    def cfl_step(self, cfl=0.4):
        rho, u, p = primitive(self.interior)
        return cfl * self.dx / np.max(np.abs(u) + np.sqrt(GAMMA * p / rho))


def muscl_rhs(grid, limiter="minmod", boundary="outflow"):
    grid.fill_ghosts(boundary)
    U = grid.U
    limit = LIMITERS[limiter]
    d = np.diff(U, axis=1)
    slope = np.zeros_like(U)
    slope[:, 1:-1] = limit(d[:, :-1], d[:, 1:])
    left = U + 0.5 * slope
    right = U - 0.5 * slope
    F = hll(left[:, 1:-2], right[:, 2:-1])
    return -(F[:, 1:] - F[:, :-1]) / grid.dx


def evolve(grid, t_end, limiter="minmod", boundary="outflow"):
    t, steps = 0.0, 0
    while t < t_end:
        dt = min(grid.cfl_step(), t_end - t)
        start = grid.interior.copy()
        k1 = muscl_rhs(grid, limiter, boundary)
        grid.interior[:] = start + dt * k1
        k2 = muscl_rhs(grid, limiter, boundary)
        grid.interior[:] = start + 0.5 * dt * (k1 + k2)
        t += dt
        steps += 1
        if steps > 100:
            raise RuntimeError("too many steps")
    return t


def shock_tube(q):
    """Mean square density behind a diaphragm, by the states on both sides of it."""
    grid = Grid1D(12)
    rho = np.where(grid.x < 0.5, q[0], q[2])
    p = np.where(grid.x < 0.5, q[1], q[3])
    grid.U[:] = conserved([rho, np.zeros_like(rho), p])
    evolve(grid, 0.08, limiter="vanleer", boundary="reflect")
    rho, u, p = primitive(grid.interior)
    return np.mean(rho[6:] ** 2) + np.mean(u * p)


# shallow water in two dimensions


class ShallowWater:
    def __init__(self, h, g=9.81, dx=1.0, drag=0.0):
        self.h = h
        self.u = np.zeros_like(h)
        self.v = np.zeros_like(h)
        self.g, self.dx, self.drag = g, dx, drag

    def ddx(self, a):
        out = np.zeros_like(a)
        out[1:-1, :] = (a[2:, :] - a[:-2, :]) / (2 * self.dx)
        return out

    def ddy(self, a):
        out = np.zeros_like(a)
        out[:, 1:-1] = (a[:, 2:] - a[:, :-2]) / (2 * self.dx)
        return out

    def apply_walls(self):
        self.u[0, :] = self.u[-1, :] = 0.0
        self.v[:, 0] = self.v[:, -1] = 0.0
        self.h[0, :] = self.h[1, :]
        self.h[-1, :] = self.h[-2, :]
        self.h[:, 0], self.h[:, -1] = self.h[:, 1], self.h[:, -2]

    def step(self, dt):
        speed = np.hypot(self.u, self.v)
        du = -self.g * self.ddx(self.h) - self.u * self.ddx(self.u) - self.v * self.ddy(self.u)
        dv = -self.g * self.ddy(self.h) - self.u * self.ddx(self.v) - self.v * self.ddy(self.v)
        self.u += dt * (du - self.drag * speed * self.u)
        self.v += dt * (dv - self.drag * speed * self.v)
        self.h -= dt * (self.ddx(self.h * self.u) + self.ddy(self.h * self.v))
        self.apply_walls()

    def energy(self):
        kinetic = 0.5 * np.sum(self.h * (self.u**2 + self.v**2))
        return kinetic + 0.5 * self.g * np.sum(self.h**2)


def sloshing(bump):
    """Misfit of gauge readings in a basin, by the shape of the first wave in it."""
    nx, ny = 6, 7
    x, y = np.mgrid[0:nx, 0:ny]
    amplitude, cx, cy, width = bump
    h = 1.0 + amplitude * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))
    model = ShallowWater(h, drag=0.02)
    gauges = [(1, 1), (4, 5), (2, 3)]
    readings = {gauge: [] for gauge in gauges}
    for n in range(8):
        model.step(0.05)
        for i, j in gauges:
            readings[(i, j)].append(model.h[i, j])
    misfit = 0.0
    for gauge, series in readings.items():
        misfit += np.sum((np.array(series) - 1.05) ** 2)
    return misfit + 1e-3 * model.energy()


# spectral methods


class KdV:
    """u_t + 6 u u_x + u_xxx = 0, with an integrating factor and dealiasing."""

    def __init__(self, n, length):
        self.n = n
        self.x = np.arange(n) * length / n
        self.k = 2 * np.pi * np.fft.rfftfreq(n, length / n)
        self.mask = self.k < 2 / 3 * self.k.max()

    def nonlinear(self, v, t):
        factor = np.exp(1j * self.k**3 * t)
        u = np.fft.irfft(v / factor.conj().conj() * self.mask, self.n)
        return -3j * self.k * factor * np.fft.rfft(u**2) * self.mask

    def rk4(self, v, t, dt):
        a = self.nonlinear(v, t)
        b = self.nonlinear(v + dt / 2 * a, t + dt / 2)
        c = self.nonlinear(v + dt / 2 * b, t + dt / 2)
        d = self.nonlinear(v + dt * c, t + dt)
        return v + dt / 6 * (a + 2 * (b + c) + d)

    def solve(self, u0, t_end, steps):
        dt = t_end / steps
        v = np.fft.rfft(u0)
        t = 0.0
        snapshots = [u0]
        for i in range(steps):
            v = self.rk4(v, t, dt)
            t += dt
            if (i + 1) % 2 == 0:
                u = np.fft.irfft(v * np.exp(-1j * self.k**3 * t), self.n)
                snapshots.append(u)
        return snapshots


def soliton(speed):
    """How far two solitons are from one another's mirror image, by their speeds."""
    model = KdV(16, 12.0)
    u0 = np.zeros(16)
    for i, c in enumerate(speed):
        u0 += c / 2 / np.cosh(np.sqrt(c) / 2 * (model.x - 4.0 - 4.0 * i)) ** 2
    snapshots = model.solve(u0, 0.1, 6)
    invariant = [np.sum(s**3) for s in snapshots]
    return sum((s - s[::-1]) @ s for s in snapshots) + max(invariant)


def burgers_rhs(u_hat, k, nu):
    u = np.fft.ifft(u_hat).real
    ux = np.fft.ifft(1j * k * u_hat).real
    return -np.fft.fft(u * ux) - nu * k**2 * u_hat


def etd_coefficients(L, h, M=8):
    """Kassam and Trefethen's contour integrals."""
    r = np.exp(1j * np.pi * (np.arange(1, M + 1) - 0.5) / M)
    LR = h * L[:, None] + r[None, :]
    Q = h * np.real(np.mean((np.exp(LR / 2) - 1) / LR, axis=1))
    f1 = h * np.real(np.mean((-4 - LR + np.exp(LR) * (4 - 3 * LR + LR**2)) / LR**3, axis=1))
    f2 = h * np.real(np.mean((2 + LR + np.exp(LR) * (-2 + LR)) / LR**3, axis=1))
    f3 = h * np.real(np.mean((-4 - 3 * LR - LR**2 + np.exp(LR) * (4 - LR)) / LR**3, axis=1))
    return Q, f1, f2, f3


def kuramoto_sivashinsky(a):
    """Energy of a flame front after a few steps of ETDRK4, by the modes it starts from."""
    n, h = 16, 0.2
    x = 22.0 * np.arange(n) / n
    k = np.concatenate([np.arange(0, n // 2), [0], np.arange(-n // 2 + 1, 0)]) * 2 * np.pi / 22.0
    L = k**2 - k**4
    E, E2 = np.exp(h * L), np.exp(h * L / 2)
    Q, f1, f2, f3 = etd_coefficients(L, h)
    g = -0.5j * k
    u = sum(amp * np.cos(2 * np.pi * (m + 1) * x / 22.0 + m) for m, amp in enumerate(a))
    v = np.fft.fft(u)

    def N(w):
        return g * np.fft.fft(np.real(np.fft.ifft(w)) ** 2)

    energy = []
    for _ in range(5):
        Nv = N(v)
        a_ = E2 * v + Q * Nv
        Na = N(a_)
        b_ = E2 * v + Q * Na
        Nb = N(b_)
        c_ = E2 * a_ + Q * (2 * Nb - Nv)
        Nc = N(c_)
        v = E * v + Nv * f1 + 2 * (Na + Nb) * f2 + Nc * f3
        energy.append(np.sum(np.abs(v) ** 2) / n**2)
    return energy[-1] + np.std(energy)


def burgers(p):
    """Steepest slope of a decaying wave, by viscosity and amplitude; forward Euler with a check."""
    nu, amplitude = p
    n = 16
    x = np.linspace(0, 2 * np.pi, n, endpoint=False)
    k = np.fft.fftfreq(n, 1 / n)
    u_hat = np.fft.fft(amplitude * np.sin(x) + 0.2 * np.cos(2 * x))
    t, dt = 0.0, 0.05
    while t < 0.4 - 1e-9:
        u_hat = u_hat + dt * burgers_rhs(u_hat, k, nu)
        t += dt
        if not np.all(np.isfinite(u_hat)):
            raise FloatingPointError("blew up")
    return np.max(np.fft.ifft(1j * k * u_hat).real)


PROGRAMS = [
    (flow_past_obstacle, np.array([0.05, 0.1])),
    (shock_tube, np.array([1.0, 1.0, 0.125, 0.1])),
    (sloshing, np.array([0.2, 2.3, 3.1, 1.2])),
    (soliton, np.array([2.0, 1.1])),
    (kuramoto_sivashinsky, np.array([1.0, -0.5, 0.3])),
    (burgers, np.array([0.1, 1.0])),
]
