"""Solids and structures: trusses, beams, topology optimisation, heat, phases, cloth, level sets."""

import numpy as np

# a plane truss of element objects


class Node:
    def __init__(self, number, x, y):
        self.number = number
        self.x = x
        self.y = y
        self.fixed = [False, False]
        self.load = [0.0, 0.0]

    def dofs(self):
        return [2 * self.number, 2 * self.number + 1]


class Bar:
    def __init__(self, start, end, area, modulus=10.0):
        self.start, self.end = start, end
        self.area = area
        self.modulus = modulus

    @property
    def length(self):
        return np.hypot(self.end.x - self.start.x, self.end.y - self.start.y)

    def direction(self):
        L = self.length
        return (self.end.x - self.start.x) / L, (self.end.y - self.start.y) / L

    def stiffness(self):
        c, s = self.direction()
        k = self.modulus * self.area / self.length
        block = np.array([[c * c, c * s], [c * s, s * s]])
        return k * np.block([[block, -block], [-block, block]])

    def dofs(self):
        return self.start.dofs() + self.end.dofs()

    def stress(self, u):
        c, s = self.direction()
        du = u[self.end.dofs()] - u[self.start.dofs()]
        return self.modulus / self.length * (c * du[0] + s * du[1])


class Truss:
    def __init__(self):
        self.nodes = []
        self.bars = []

    def add_node(self, x, y, fixed=None, load=None):
        node = Node(len(self.nodes), x, y)
        if fixed is not None:
            node.fixed = list(fixed)
        if load is not None:
            node.load = list(load)
        self.nodes.append(node)
        return node

    def connect(self, i, j, area):
        bar = Bar(self.nodes[i], self.nodes[j], area)
        self.bars.append(bar)
        return bar

    def assemble(self):
        n = 2 * len(self.nodes)
        K = np.zeros((n, n))
        F = np.zeros(n)
        for bar in self.bars:
            dofs = bar.dofs()
            K[np.ix_(dofs, dofs)] += bar.stiffness()
        for node in self.nodes:
            F[node.dofs()] += node.load
        return K, F

    def solve(self):
        K, F = self.assemble()
        free = []
        for node in self.nodes:
            for d in range(2):
                if not node.fixed[d]:
                    free.append(2 * node.number + d)
        u = np.zeros(len(F))
        u[free] = np.linalg.solve(K[np.ix_(free, free)], F[free])
        return u, F

    def weight(self, rho=0.1):
        return rho * sum(bar.area * bar.length for bar in self.bars)


def bridge(areas):
    """Compliance, weight and penalised stresses of a truss, by the areas of its bars."""
    truss = Truss()
    truss.add_node(0, 0, fixed=(True, True))
    truss.add_node(1, 0, load=(0.0, -1.0))
    truss.add_node(2, 0, fixed=(False, True))
    truss.add_node(0.5, 0.8)
    truss.add_node(1.5, 0.9, load=(0.3, 0.0))
    connections = [(0, 1), (1, 2), (0, 3), (3, 1), (1, 4), (4, 2), (3, 4)]
    for (i, j), area in zip(connections, areas):
        truss.connect(i, j, area)
    u, F = truss.solve()
    penalty = 0.0
    for bar in truss.bars:
        over = abs(bar.stress(u)) - 0.5
        if over > 0:
            penalty += over**2
    return F @ u + truss.weight() + 10 * penalty


# topology optimisation, after the 88 lines of Andreassen et al.


def element_stiffness(E=1.0, nu=0.3):
    A11 = np.array([[12, 3, -6, -3], [3, 12, 3, 0], [-6, 3, 12, -3], [-3, 0, -3, 12]])
    A12 = np.array([[-6, -3, 0, 3], [-3, -6, -3, -6], [0, -3, -6, 3], [3, -6, 3, -6]])
    B11 = np.array([[-4, 3, -2, 9], [3, -4, -9, 4], [-2, -9, -4, -3], [9, 4, -3, -4]])
    B12 = np.array([[2, -3, 4, -9], [-3, 2, 9, -2], [4, 9, 2, 3], [-9, -2, 3, 2]])
    A = np.vstack([np.hstack([A11, A12]), np.hstack([A12.T, A11])])
    B = np.vstack([np.hstack([B11, B12]), np.hstack([B12.T, B11])])
    return E / (1 - nu**2) / 24 * (A + nu * B)


def density_filter(nelx, nely, rmin):
    n = nelx * nely
    H = np.zeros((n, n))
    for i in range(nelx):
        for j in range(nely):
            row = i * nely + j
            for k in range(max(i - int(rmin), 0), min(i + int(rmin) + 1, nelx)):
                for l in range(max(j - int(rmin), 0), min(j + int(rmin) + 1, nely)):
                    H[row, k * nely + l] = max(0.0, rmin - np.sqrt((i - k) ** 2 + (j - l) ** 2))
    return H / H.sum(1)[:, np.newaxis]


def topology(x):
    """Compliance of a cantilever after two steps of optimality criteria, by the first densities."""
    nelx, nely, penal, volfrac, Emin = 3, 2, 3.0, 0.5, 1e-3
    ndof = 2 * (nelx + 1) * (nely + 1)
    KE = element_stiffness()
    H = density_filter(nelx, nely, 1.5)
    edof = np.zeros((nelx * nely, 8), dtype=int)
    for elx in range(nelx):
        for ely in range(nely):
            el = ely + elx * nely
            n1 = (nely + 1) * elx + ely
            n2 = (nely + 1) * (elx + 1) + ely
            edof[el, :] = np.array(
                [2 * n1 + 2, 2 * n1 + 3, 2 * n2 + 2, 2 * n2 + 3, 2 * n2, 2 * n2 + 1, 2 * n1,
                 2 * n1 + 1]
            )
    f = np.zeros(ndof)
    f[-1] = -1.0
    fixed = np.arange(2 * (nely + 1))
    free = np.setdiff1d(np.arange(ndof), fixed)
    compliance = 0.0
    for loop in range(2):
        xPhys = H @ x
        K = np.zeros((ndof, ndof))
        for el in range(nelx * nely):
            K[np.ix_(edof[el], edof[el])] += (Emin + xPhys[el] ** penal * (1 - Emin)) * KE
        u = np.zeros(ndof)
        u[free] = np.linalg.solve(K[free, :][:, free], f[free])
        ce = np.array([u[edof[el]] @ KE @ u[edof[el]] for el in range(nelx * nely)])
        compliance = ((Emin + xPhys**penal * (1 - Emin)) * ce).sum()
        dc = H.T @ (-penal * xPhys ** (penal - 1) * (1 - Emin) * ce)
        dv = H.T @ np.ones(nelx * nely)
        l1, l2, move = 0.0, 1e4, 0.2
        while (l2 - l1) / (l1 + l2) > 1e-2:
            lmid = 0.5 * (l2 + l1)
            step = np.minimum(x + move, x * np.sqrt(-dc / dv / lmid))
            xnew = np.maximum(0.0, np.maximum(x - move, np.minimum(1.0, step)))
            if (H @ xnew).mean() > volfrac:
                l1 = lmid
            else:
                l2 = lmid
        x = xnew
    return compliance


# heat, by Thomas' algorithm


def thomas(a, b, c, d):
    """Solve a tridiagonal system: lower, main and upper diagonals, right-hand side."""
    n = len(d)
    cp, dp = np.zeros(n), np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m if i < n - 1 else 0.0
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in reversed(range(n - 1)):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


class Rod:
    """Heat conduction with a conductivity that depends on temperature."""

    def __init__(self, T, length=1.0, k0=1.0, beta=0.0, left=("fixed", 1.0), right=("flux", 0.0)):
        self.T = np.array(T, dtype=float)
        self.dx = length / (len(T) - 1)
        self.k0, self.beta = k0, beta
        self.left, self.right = left, right
        self.iterations = 0

    def conductivity(self, T):
        return self.k0 * (1 + self.beta * T)

    def assemble(self, T, dt):
        n = len(T)
        k = self.conductivity(0.5 * (T[1:] + T[:-1]))
        r = dt / self.dx**2 * k
        a, b, c = np.zeros(n), np.ones(n), np.zeros(n)
        a[1:-1], c[1:-1] = -r[:-1], -r[1:]
        b[1:-1] += r[:-1] + r[1:]
        d = self.T.copy()
        for end, (kind, value) in ((0, self.left), (-1, self.right)):
            if kind == "fixed":
                d[end] = value
            else:
                b[end] = 1.0
                (c if end == 0 else a)[end] = -1.0
                d[end] = value * self.dx
        return a, b, c, d

    def step(self, dt, tol=1e-8, max_iter=20):
        T = self.T.copy()
        for it in range(max_iter):
            new = thomas(*self.assemble(T, dt))
            change = np.max(np.abs(new - T))
            T = new
            self.iterations += 1
            if change < tol:
                break
        else:
            raise RuntimeError("no convergence")
        self.T = T


def rod(p):
    """Misfit of a heated rod's temperatures, by conductivity, nonlinearity and temperature left."""
    n = 9
    model = Rod(np.zeros(n), k0=p[0], beta=p[1], left=("fixed", p[2]), right=("flux", 0.2))
    records = {}
    for i in range(4):
        model.step(0.05)
        if i % 2:
            records[i] = (model.T[n // 2], model.T[-1])
    return sum((mid - 0.3) ** 2 + (end - 0.1) ** 2 for mid, end in records.values())


# phase fields


def laplacian(u, h=1.0):
    up, down = np.roll(u, 1, axis=0), np.roll(u, -1, axis=0)
    left, right = np.roll(u, 1, axis=1), np.roll(u, -1, axis=1)
    return (up + down + left + right - 4 * u) / h**2


class CahnHilliard:
    def __init__(self, c, kappa, mobility=1.0, barrier=1.0):
        self.c, self.kappa = c, kappa
        self.mobility, self.barrier = mobility, barrier

    def df(self, c):
        return 2 * self.barrier * c * (1 - c) * (1 - 2 * c)

    def step(self, dt):
        mu = self.df(self.c) - self.kappa * laplacian(self.c)
        self.c += dt * self.mobility * laplacian(mu)
        return self.c

    def free_energy(self):
        gx = self.c - np.roll(self.c, 1, axis=0)
        gy = self.c - np.roll(self.c, 1, axis=1)
        bulk = self.barrier * self.c**2 * (1 - self.c) ** 2
        return np.sum(bulk + 0.5 * self.kappa * (gx**2 + gy**2))


def kobayashi(phi, T, dt, eps=0.1, delta=0.1, tau=0.5):
    """One step of dendritic growth: anisotropic gradient energy, by centred differences."""
    px = 0.5 * (np.roll(phi, -1, 0) - np.roll(phi, 1, 0))
    py = 0.5 * (np.roll(phi, -1, 1) - np.roll(phi, 1, 1))
    theta = np.arctan2(py, px + 1e-9)
    e = eps * (1 + delta * np.cos(4 * theta))
    de = -4 * eps * delta * np.sin(4 * theta)
    t1 = 0.5 * (np.roll(e * de * px, -1, 1) - np.roll(e * de * px, 1, 1))
    t2 = -0.5 * (np.roll(e * de * py, -1, 0) - np.roll(e * de * py, 1, 0))
    m = 0.9 / np.pi * np.arctan(10.0 * (1.0 - T))
    dphi = (t1 + t2 + e**2 * laplacian(phi) + phi * (1 - phi) * (phi - 0.5 + m)) * dt / tau
    return phi + dphi, T + dt * laplacian(T) + 1.5 * dphi


def spinodal(c0):
    """Free energy and solidified part after some steps, by the initial composition."""
    rows = cols = 5
    model = CahnHilliard(c0.reshape(rows, cols).copy(), kappa=0.5)
    energies = [model.free_energy()]
    while len(energies) < 6:
        model.step(0.02)
        energies.append(model.free_energy())
        if abs(energies[-1] - energies[-2]) < 1e-12:
            break
    phi, T = model.c, np.zeros((rows, cols))
    for _ in range(3):
        phi, T = kobayashi(phi, T, 0.01)
    return energies[-1] + np.sum(phi**2) + T.mean()


# cloth


class Particle:
    def __init__(self, position, mass=1.0, pinned=False):
        self.position = position
        self.previous = position.copy()
        self.mass, self.pinned = mass, pinned
        self.force = np.zeros(3)

    def integrate(self, dt, damping=0.01):
        if self.pinned:
            self.force = np.zeros(3)
            return
        velocity = self.position - self.previous
        self.previous = self.position.copy()
        self.position = self.position + (1 - damping) * velocity + dt**2 * self.force / self.mass
        self.force = np.zeros(3)


class Spring:
    def __init__(self, a, b, stiffness, rest=None):
        self.a, self.b, self.k = a, b, stiffness
        self.rest = np.linalg.norm(a.position - b.position) if rest is None else rest

    def apply(self):
        d = self.b.position - self.a.position
        length = np.linalg.norm(d)
        f = self.k * (length - self.rest) * d / length
        self.a.force += f
        self.b.force -= f


class Cloth:
    def __init__(self, nx, ny, stiffness):
        self.particles = {}
        self.springs = []
        for i in range(nx):
            for j in range(ny):
                pinned = j == 0 and i in (0, nx - 1)
                self.particles[i, j] = Particle(np.array([0.2 * i, 0.0, -0.2 * j]), 0.1, pinned)
        structural, shear = stiffness[0], stiffness[1]
        for (i, j), p in self.particles.items():
            for di, dj in [(1, 0), (0, 1), (1, 1), (1, -1)]:
                q = self.particles.get((i + di, j + dj))
                if q is not None:
                    k = shear if di and dj else structural
                    self.springs.append(Spring(p, q, k))

    def step(self, dt, wind):
        for p in self.particles.values():
            p.force += p.mass * np.array([0.0, 0.0, -9.81]) + wind
        for s in self.springs:
            s.apply()
        for p in self.particles.values():
            p.integrate(dt)
            if p.position[2] < -0.42:
                p.position[2] = -0.42


def cloth(p):
    """Sag of a small cloth pinned at two corners, by stiffnesses and wind."""
    sheet = Cloth(3, 2, p[:2])
    for _ in range(6):
        sheet.step(0.03, np.array([0.0, p[2], 0.0]))
    sag = [q.position[2] for q in sheet.particles.values() if not q.pinned]
    blown = sum(q.position[1] ** 2 for q in sheet.particles.values())
    return min(sag) + 10 * blown + sum(sag)


# level sets


def godunov(phi, h, sign):
    """Upwind |grad phi|."""
    p = np.pad(phi, 1, mode="edge")
    dxm = (p[1:-1, 1:-1] - p[:-2, 1:-1]) / h
    dxp = (p[2:, 1:-1] - p[1:-1, 1:-1]) / h
    dym = (p[1:-1, 1:-1] - p[1:-1, :-2]) / h
    dyp = (p[1:-1, 2:] - p[1:-1, 1:-1]) / h
    pos = lambda a: np.maximum(a, 0.0) ** 2  # noqa: E731
    neg = lambda a: np.minimum(a, 0.0) ** 2  # noqa: E731
    outward = np.sqrt(np.maximum(pos(dxm), neg(dxp)) + np.maximum(pos(dym), neg(dyp)) + 1e-12)
    inward = np.sqrt(np.maximum(neg(dxm), pos(dxp)) + np.maximum(neg(dym), pos(dyp)) + 1e-12)
    return np.where(sign > 0, outward, inward)


def reinitialise(phi, h, iterations=3):
    sign = phi / np.sqrt(phi**2 + h**2)
    for _ in range(iterations):
        phi = phi - 0.3 * h * sign * (godunov(phi, h, sign) - 1)
    return phi


def smoothed_heaviside(phi, eps):
    H = np.zeros_like(phi)
    inside = np.abs(phi) <= eps
    H[phi > eps] = 1.0
    x = phi[inside] / eps
    H[inside] = 0.5 * (1 + x + np.sin(np.pi * x) / np.pi)
    return H


def burning_front(p):
    """Burnt area after a front has moved normal to itself, by centre, radius and speed."""
    n = 9
    h = 1.0 / (n - 1)
    X, Y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
    phi = np.sqrt((X - p[0]) ** 2 + (Y - p[1]) ** 2) - p[2]
    speed = p[3] * (1 + 0.3 * np.sin(3 * X))
    t = 0.0
    while t < 0.1:
        dt = min(0.4 * h / np.max(np.abs(speed)), 0.1 - t)
        phi -= dt * speed * godunov(phi, h, speed)
        t += dt
        phi = reinitialise(phi, h)
    return np.sum(1 - smoothed_heaviside(phi, 1.5 * h)) * h**2


PROGRAMS = [
    (bridge, np.array([1.0, 0.8, 1.2, 0.6, 0.7, 1.1, 0.9])),
    (topology, np.array([0.5, 0.45, 0.55, 0.4, 0.6, 0.52])),
    (rod, np.array([0.8, 0.3, 1.1])),
    (spinodal, 0.5 + 0.2 * np.sin(1.7 * np.arange(25.0) ** 1.3)),
    (cloth, np.array([30.0, 12.0, 0.4])),
    (burning_front, np.array([0.47, 0.52, 0.21, 0.9])),
]
