"""Particles: planets as objects, smoothed hydrodynamics, molecules in cells, charges on a mesh."""

import numpy as np

G = 6.674e-1


class Body:
    """A point mass that remembers where it has been."""

    def __init__(self, mass, position, velocity, name="body"):
        self.mass = mass
        self.position = position
        self.velocity = velocity
        self.name = name
        self.force = np.zeros(2)
        self.trail = []

    def distance_to(self, other):
        return np.sqrt(np.sum((self.position - other.position) ** 2))

    def attract(self, other, softening=1e-2):
        if self is other:
            return
        offset = other.position - self.position
        r = np.sqrt(offset @ offset + softening**2)
        pull = G * self.mass * other.mass / r**3 * offset
        self.force += pull
        other.force -= pull

    def kick(self, dt):
        self.velocity = self.velocity + dt * self.force / self.mass

    def drift(self, dt):
        self.position = self.position + dt * self.velocity
        self.trail.append(self.position.copy())

    @property
    def kinetic_energy(self):
        return 0.5 * self.mass * np.dot(self.velocity, self.velocity)


class SolarSystem:
    def __init__(self, bodies):
        self.bodies = bodies
        self.time = 0.0

    def compute_forces(self):
        for body in self.bodies:
            body.force[:] = 0.0
        for i, a in enumerate(self.bodies):
            for b in self.bodies[i + 1 :]:
                a.attract(b)

    def step(self, dt):
        self.compute_forces()
        for body in self.bodies:
            body.kick(dt / 2)
            body.drift(dt)
        self.compute_forces()
        for body in self.bodies:
            body.kick(dt / 2)
        self.time += dt

    def potential_energy(self):
        total = 0.0
        for i in range(len(self.bodies)):
            for j in range(i):
                a, b = self.bodies[i], self.bodies[j]
                total -= G * a.mass * b.mass / a.distance_to(b)
        return total

    def energy(self):
        return sum(b.kinetic_energy for b in self.bodies) + self.potential_energy()


def planets(v):
    """Energy and closest approach of four bodies after a few leapfrog steps, by initial speeds."""
    masses = [10.0, 1.0, 0.5, 0.1]
    bodies = [
        Body(masses[0], np.zeros(2), np.zeros(2), name="sun"),
        Body(masses[1], np.array([2.0, 0.0]), np.array([0.1, v[0]]), name="a"),
        Body(masses[2], np.array([0.0, 3.5]), np.array([v[1], 0.0]), name="b"),
        Body(masses[3], np.array([-5.0, 0.5]), np.array([0.0, v[2]]), name="c"),
    ]
    system = SolarSystem(bodies)
    closest = {body.name: 1e9 for body in bodies if body.name != "sun"}
    while system.time < 1.0 - 1e-12:
        system.step(0.125)
        for body in system.bodies[1:]:
            d = body.distance_to(system.bodies[0])
            if d < closest[body.name]:
                closest[body.name] = d
    length = 0.0
    for body in system.bodies:
        for p, q in zip(body.trail[:-1], body.trail[1:]):
            length += np.linalg.norm(q - p)
    return system.energy() + sum(closest.values()) + 0.1 * length


# smoothed particle hydrodynamics


def cubic_spline(q, h):
    sigma = 10.0 / (7.0 * np.pi * h**2)
    if q < 1.0:
        return sigma * (1 - 1.5 * q**2 + 0.75 * q**3)
    elif q < 2.0:
        return sigma * 0.25 * (2 - q) ** 3
    return 0.0


def cubic_spline_slope(q, h):
    sigma = 10.0 / (7.0 * np.pi * h**2)
    if q < 1.0:
        return sigma * (-3 * q + 2.25 * q**2) / h
    elif q < 2.0:
        return -sigma * 0.75 * (2 - q) ** 2 / h
    return 0.0


def find_neighbours(positions, radius):
    neighbours = []
    for i in range(len(positions)):
        mine = []
        for j in range(len(positions)):
            if i != j and np.linalg.norm(positions[i] - positions[j]) < radius:
                mine.append(j)
        neighbours.append(mine)
    return neighbours


def density(positions, masses, neighbours, h):
    rho = np.empty(len(positions))
    for i, mine in enumerate(neighbours):
        rho[i] = masses[i] * cubic_spline(0.0, h)
        for j in mine:
            r = np.linalg.norm(positions[i] - positions[j])
            rho[i] += masses[j] * cubic_spline(r / h, h)
    return rho


def sph_accelerations(positions, velocities, masses, h, stiffness=1.0, rho0=1.0, alpha=0.1):
    neighbours = find_neighbours(positions, 2 * h)
    rho = density(positions, masses, neighbours, h)
    pressure = stiffness * ((rho / rho0) ** 7 - 1)
    pressure = np.maximum(pressure, 0.0)
    acc = np.zeros_like(positions)
    acc[:, 1] -= 1.0
    for i in range(len(positions)):
        for j in neighbours[i]:
            rij = positions[i] - positions[j]
            vij = velocities[i] - velocities[j]
            r = np.linalg.norm(rij)
            slope = cubic_spline_slope(r / h, h)
            viscosity = 0.0
            approach = rij @ vij
            if approach < 0:
                mu = h * approach / (r**2 + 0.01 * h**2)
                viscosity = -alpha * mu / (0.5 * (rho[i] + rho[j]))
            factor = pressure[i] / rho[i] ** 2 + pressure[j] / rho[j] ** 2 + viscosity
            acc[i] -= masses[j] * factor * slope * rij / r
    return acc


def bounce(positions, velocities, damping=0.5):
    for i in range(len(positions)):
        if positions[i, 1] < 0.0:
            positions[i, 1] = -damping * positions[i, 1]
            velocities[i, 1] *= -damping


def dam_break(masses):
    """Spread of a small column of fluid, by the masses of its particles."""
    n = 3
    x, y = np.meshgrid(0.31 * np.arange(n), 0.05 + 0.33 * np.arange(n))
    positions = np.column_stack([x.ravel(), y.ravel()])
    positions[:, 0] += 0.02 * np.sin(7 * np.arange(n * n))
    velocities = np.zeros_like(positions)
    dt = 0.03
    for _ in range(4):
        velocities += dt * sph_accelerations(positions, velocities, masses, h=0.4)
        positions += dt * velocities
        bounce(positions, velocities)
    return np.mean(positions[:, 0] ** 2) + np.mean(velocities**2)


# molecules, in cells


class CellList:
    """Which molecules lie in which cell of a periodic box."""

    def __init__(self, box, cutoff):
        self.box = box
        self.n = max(int(box // cutoff), 1)
        self.size = box / self.n
        self.cells = {}

    def index(self, r):
        return tuple(int(np.floor(c / self.size)) % self.n for c in r)

    def rebuild(self, positions):
        self.cells = {}
        for i, r in enumerate(positions):
            self.cells.setdefault(self.index(r), []).append(i)

    def pairs(self):
        found = []
        for (cx, cy), inside in self.cells.items():
            seen = set()
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    key = ((cx + dx) % self.n, (cy + dy) % self.n)
                    if key in seen or key not in self.cells:
                        continue
                    seen.add(key)
                    for i in inside:
                        for j in self.cells[key]:
                            if i < j:
                                found.append((i, j))
        return found


def minimum_image(d, box):
    return d - box * np.round(d / box)


def lennard_jones(r2, epsilon=1.0, sigma=1.0):
    s6 = (sigma**2 / r2) ** 3
    return 4 * epsilon * (s6**2 - s6), 24 * epsilon * (2 * s6**2 - s6) / r2


class Fluid:
    def __init__(self, positions, velocities, box, cutoff=1.8):
        self.positions = positions
        self.velocities = velocities
        self.box = box
        self.cutoff = cutoff
        self.cell_list = CellList(box, cutoff)
        self.potential = 0.0

    def forces(self):
        self.cell_list.rebuild(self.positions)
        forces = np.zeros_like(self.positions)
        self.potential = 0.0
        for i, j in self.cell_list.pairs():
            d = minimum_image(self.positions[i] - self.positions[j], self.box)
            r2 = np.dot(d, d)
            if r2 > self.cutoff**2:
                continue
            u, f = lennard_jones(r2)
            self.potential += u
            forces[i] += f * d
            forces[j] -= f * d
        return forces

    def run(self, steps, dt):
        forces = self.forces()
        for _ in range(steps):
            self.velocities += 0.5 * dt * forces
            self.positions = (self.positions + dt * self.velocities) % self.box
            forces = self.forces()
            self.velocities += 0.5 * dt * forces

    def temperature(self):
        return np.sum(self.velocities**2) / (2 * len(self.velocities))


def liquid(kicks):
    """Energies of nine molecules in a periodic box after some velocity Verlet steps."""
    box = 5.5
    grid = (np.arange(3) + 0.4) * box / 3
    positions = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    positions += 0.1 * np.cos(np.arange(18.0)).reshape(9, 2)
    velocities = np.zeros((9, 2))
    velocities[:3, 0] = kicks[:3]
    velocities[3:6, 1] = kicks[3:]
    fluid = Fluid(positions, velocities, box)
    fluid.run(5, 0.02)
    return fluid.temperature() + 0.1 * fluid.potential


# particle in cell


def deposit(x, weight, ngrid, length):
    """Charge density by linear weighting."""
    dx = length / ngrid
    cell = np.floor(x / dx).astype(int)
    right = x / dx - cell
    rho = np.zeros(ngrid)
    np.add.at(rho, cell % ngrid, weight * (1 - right))
    np.add.at(rho, (cell + 1) % ngrid, weight * right)
    return rho / dx


def solve_field(rho, length):
    n = len(rho)
    k = 2 * np.pi * np.fft.fftfreq(n, d=length / n)
    rho_k = np.fft.fft(rho)
    phi_k = np.zeros(n, dtype=complex)
    nonzero = k != 0
    phi_k[nonzero] = rho_k[nonzero] / k[nonzero] ** 2
    return np.real(np.fft.ifft(-1j * k * phi_k))


def gather(field, x, length):
    n = len(field)
    dx = length / n
    cell = np.floor(x / dx).astype(int)
    right = x / dx - cell
    return field[cell % n] * (1 - right) + field[(cell + 1) % n] * right


class Plasma:
    def __init__(self, x, v, length=2 * np.pi, ngrid=8):
        self.x, self.v = x, v
        self.length, self.ngrid = length, ngrid
        self.weight = length / len(x)
        self.history = {"field": [], "kinetic": []}

    def diagnostics(self, field):
        dx = self.length / self.ngrid
        self.history["field"].append(0.5 * np.sum(field**2) * dx)
        self.history["kinetic"].append(0.5 * self.weight * np.sum(self.v**2))

    def step(self, dt):
        rho = deposit(self.x, -self.weight, self.ngrid, self.length) + 1.0
        field = solve_field(rho, self.length)
        self.v -= dt * gather(field, self.x, self.length)
        self.x = np.mod(self.x + dt * self.v, self.length)
        self.diagnostics(field)


def two_stream(v0):
    """Field energy of two counter-streaming electron beams, by their velocities."""
    n = len(v0)
    x = np.linspace(0, 2 * np.pi, n, endpoint=False) + 0.05 * np.sin(np.arange(n)) + 0.2
    sign = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    plasma = Plasma(x, sign * v0)
    for _ in range(6):
        plasma.step(0.2)
    field = np.array(plasma.history["field"])
    return np.log(field[-1]) + field.sum() + plasma.history["kinetic"][-1]


PROGRAMS = [
    (planets, np.array([1.9, -1.3, 0.9])),
    (dam_break, 0.15 + 0.01 * np.sin(np.arange(9.0))),
    (liquid, np.array([0.5, -0.3, 0.2, 0.4, -0.6, 0.1])),
    (two_stream, 1.0 + 0.1 * np.cos(3.0 * np.arange(12.0))),
]
