"""Rigid and celestial motion, light: pendulums, orbits, quaternions, robot arms, spheres seen."""

import math
from collections import deque, namedtuple
from dataclasses import dataclass, field

import numpy as np

# adaptive Runge-Kutta

BUTCHER = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
NODES = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


class StepSizeTooSmall(Exception):
    pass


class RK45:
    """Dormand and Prince's pair, with a PI controller."""

    def __init__(self, fun, t0, y0, rtol=1e-4, atol=1e-6, h0=0.05, args=()):
        self.fun = lambda t, y: fun(t, y, *args)
        self.t, self.y = t0, np.asarray(y0)
        self.rtol, self.atol = rtol, atol
        self.h = h0
        self.nfev = 0
        self.accepted, self.rejected = 0, 0
        self.last_error = 1.0
        self.k = [None] * 7

    def attempt(self, h):
        self.k[0] = self.fun(self.t, self.y)
        for s in range(1, 7):
            dy = sum(a * k for a, k in zip(BUTCHER[s], self.k[:s]))
            self.k[s] = self.fun(self.t + NODES[s] * h, self.y + h * dy)
        self.nfev += 7
        y_new = self.y + h * sum(b * k for b, k in zip(BUTCHER[6], self.k))
        error = h * sum(e * k for e, k in zip(ERROR, self.k))
        scale = self.atol + self.rtol * np.maximum(np.abs(self.y), np.abs(y_new))
        return y_new, np.sqrt(np.mean((error / scale) ** 2))

    def step(self, t_bound):
        while True:
            h = min(self.h, t_bound - self.t)
            if h < 1e-10:
                raise StepSizeTooSmall(f"at t = {self.t}")
            y_new, err = self.attempt(h)
            if err <= 1.0:
                factor = 0.9 * max(err, 1e-10) ** -0.14 * self.last_error**0.08
                self.t += h
                self.y = y_new
                self.h = h * min(5.0, max(0.2, factor))
                self.last_error = max(err, 1e-4)
                self.accepted += 1
                return
            self.rejected += 1
            self.h = h * max(0.2, 0.9 * err**-0.2)

    def integrate(self, t_bound, callback=None):
        while self.t < t_bound - 1e-12:
            self.step(t_bound)
            if callback is not None and callback(self.t, self.y):
                break
        return self.y


def double_pendulum(t, y, m1=1.0, m2=1.0, l1=1.0, l2=1.0, g=9.81):
    th1, th2, w1, w2 = y
    d = th1 - th2
    den = 2 * m1 + m2 - m2 * np.cos(2 * d)
    a1 = (
        -g * (2 * m1 + m2) * np.sin(th1)
        - m2 * g * np.sin(th1 - 2 * th2)
        - 2 * np.sin(d) * m2 * (w2**2 * l2 + w1**2 * l1 * np.cos(d))
    ) / (l1 * den)
    a2 = (
        2 * np.sin(d)
        * (w1**2 * l1 * (m1 + m2) + g * (m1 + m2) * np.cos(th1) + w2**2 * l2 * m2 * np.cos(d))
    ) / (l2 * den)
    return np.array([w1, w2, a1, a2])


def pendulum(p):
    """Where a double pendulum's end is after half a second, by its angles and second mass."""
    path = []

    def watch(t, y):
        path.append((np.sin(y[0]) + np.sin(y[1]), -np.cos(y[0]) - np.cos(y[1])))
        return len(path) > 50

    solver = RK45(double_pendulum, 0.0, np.array([p[0], p[1], 0.0, 0.0]), args=(1.0, p[2]))
    y = solver.integrate(0.5, callback=watch)
    x_end, y_end = path[-1]
    return x_end + 0.5 * y_end + 0.1 * y[2] * y[3]


# orbits


def stumpff_c(z):
    if z > 1e-6:
        return (1 - math.cos(math.sqrt(z))) / z
    if z < -1e-6:
        return (math.cosh(math.sqrt(-z)) - 1) / -z
    return 1 / 2 - z / 24 + z**2 / 720


def stumpff_s(z):
    if z > 1e-6:
        s = math.sqrt(z)
        return (s - math.sin(s)) / s**3
    if z < -1e-6:
        s = math.sqrt(-z)
        return (math.sinh(s) - s) / s**3
    return 1 / 6 - z / 120 + z**2 / 5040


def propagate(r0, v0, dt, mu=1.0, tol=1e-13, max_iter=50):
    """Kepler's problem by universal variables."""
    r = np.linalg.norm(r0)
    vr = np.dot(r0, v0) / r
    alpha = 2 / r - v0 @ v0 / mu
    chi = math.sqrt(mu) * abs(alpha) * dt
    for _ in range(max_iter):
        z = alpha * chi**2
        C, S = stumpff_c(z), stumpff_s(z)
        F = r * vr / math.sqrt(mu) * chi**2 * C + (1 - alpha * r) * chi**3 * S + r * chi
        F -= math.sqrt(mu) * dt
        dF = r * vr / math.sqrt(mu) * chi * (1 - z * S) + (1 - alpha * r) * chi**2 * C + r
        ratio = F / dF
        chi -= ratio
        if abs(ratio) < tol:
            break
    else:
        raise RuntimeError("universal anomaly did not converge")
    z = alpha * chi**2
    C, S = stumpff_c(z), stumpff_s(z)
    f = 1 - chi**2 / r * C
    g = dt - chi**3 / math.sqrt(mu) * S
    position = f * r0 + g * v0
    rn = np.linalg.norm(position)
    fdot = math.sqrt(mu) / (r * rn) * (z * S - 1) * chi
    gdot = 1 - chi**2 / rn * C
    return position, fdot * r0 + gdot * v0


def lambert(r1, r2, tof, mu=1.0, prograde=True, tol=1e-12):
    """Velocities at both ends of an arc, by bisection and Newton's method on z."""
    n1, n2 = np.linalg.norm(r1), np.linalg.norm(r2)
    cross = np.cross(r1, r2)
    angle = np.arccos(np.dot(r1, r2) / (n1 * n2))
    if (prograde and cross[2] < 0) or (not prograde and cross[2] >= 0):
        angle = 2 * np.pi - angle
    A = np.sin(angle) * np.sqrt(n1 * n2 / (1 - np.cos(angle)))
    y = lambda z: n1 + n2 + A * (z * stumpff_s(z) - 1) / np.sqrt(stumpff_c(z))  # noqa: E731

    def F(z):
        return (y(z) / stumpff_c(z)) ** 1.5 * stumpff_s(z) + A * np.sqrt(y(z)) - np.sqrt(mu) * tof

    z = -2.0
    while F(z) < 0:
        z += 0.1
    iterations = 0
    while iterations < 40:
        h = 1e-6
        slope = (F(z + h) - F(z - h)) / (2 * h)
        step = F(z) / slope
        z -= step
        iterations += 1
        if abs(step) < tol:
            break
    f = 1 - y(z) / n1
    g = A * np.sqrt(y(z) / mu)
    gdot = 1 - y(z) / n2
    return (r2 - f * r1) / g, (gdot * r2 - r1) / g


State = namedtuple("State", "r v t")


@dataclass
class Leg:
    start: State
    end: State
    dv: float = 0.0


@dataclass
class Mission:
    legs: list = field(default_factory=list)
    budget: float = 0.0

    def burn(self, leg):
        self.legs.append(leg)
        self.budget += leg.dv
        return self


def transfer(p):
    """Cost of going from one planet to another, by departure time, time of flight and orbit."""
    departure, tof, speed = p
    earth = State(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.02]), 0.0)
    mars = State(np.array([0.0, 1.5, 0.1]), np.array([-speed, 0.05, 0.0]), 0.0)
    r1, v1 = propagate(earth.r, earth.v, departure)
    r2, v2 = propagate(mars.r, mars.v, departure + tof)
    va, vb = lambert(r1, r2, tof)
    mission = Mission()
    start = State(r1, va, departure)
    half = State(*propagate(start.r, start.v, tof / 2), departure + tof / 2)
    mission.burn(Leg(start, half, np.linalg.norm(va - v1)))
    mission.burn(Leg(half, State(r2, vb, departure + tof), dv=np.linalg.norm(v2 - vb)))
    swing = min(np.linalg.norm(leg.start.r) for leg in mission.legs)
    return mission.budget + 0.1 * swing + 0.01 * mission.legs[-1].start.v[2]


# quaternions


class Quaternion:
    def __init__(self, w, x, y, z):
        self.q = np.array([w, x, y, z])

    @classmethod
    def from_axis_angle(cls, axis, angle):
        axis = np.asarray(axis) / np.linalg.norm(axis)
        return cls(np.cos(angle / 2), *(np.sin(angle / 2) * axis))

    def __mul__(self, other):
        if isinstance(other, Quaternion):
            w1, x1, y1, z1 = self.q
            w2, x2, y2, z2 = other.q
            return Quaternion(
                w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
                w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
                w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
            )
        return Quaternion(*(other * self.q))

    __rmul__ = __mul__

    def __add__(self, other):
        return Quaternion(*(self.q + other.q))

    def conjugate(self):
        return Quaternion(self.q[0], *-self.q[1:])

    def normalized(self):
        return Quaternion(*(self.q / np.linalg.norm(self.q)))

    def rotate(self, v):
        return (self * Quaternion(0.0, *v) * self.conjugate()).q[1:]

    def __abs__(self):
        return np.linalg.norm(self.q)


class RigidBody:
    def __init__(self, inertia, omega, attitude=None):
        self.inertia = np.diag(inertia)
        self.omega = np.array(omega)
        self.attitude = attitude or Quaternion(1.0, 0.0, 0.0, 0.0)

    def derivatives(self, omega, attitude, torque):
        gyro = np.cross(omega, self.inertia @ omega)
        alpha = np.linalg.solve(self.inertia, torque - gyro)
        return alpha, 0.5 * (attitude * Quaternion(0.0, *omega))

    def step(self, torque_body, dt):
        a1, q1 = self.derivatives(self.omega, self.attitude, torque_body)
        a2, q2 = self.derivatives(self.omega + dt * a1, self.attitude + dt * q1, torque_body)
        self.omega = self.omega + 0.5 * dt * (a1 + a2)
        self.attitude = (self.attitude + (0.5 * dt) * (q1 + q2)).normalized()


def tumbling(inertia):
    """Pointing error of a tumbling satellite with thrusters and a dead band, by its inertia."""
    axis = [0.0, 0.6, 0.8]
    body = RigidBody(inertia, [0.3, 1.2, -0.1], Quaternion.from_axis_angle(axis, 0.4))
    target = np.array([0.0, 0.0, 1.0])
    fuel, error = 0.0, 0.0
    for _ in range(8):
        torque = np.zeros(3)
        for axis in range(3):
            rate = body.omega[axis]
            if abs(rate) > 0.2:
                torque[axis] = -0.3 * np.sign(rate) - 0.1 * rate
                fuel += abs(torque[axis])
        body.step(torque, 0.1)
        error += 1 - body.attitude.rotate(target) @ target
    return error + 0.05 * fuel + abs(body.attitude)


# a robot arm


class Link:
    def __init__(self, length, angle, limits=(-2.5, 2.5)):
        self.length, self.angle, self.limits = length, angle, limits

    def clamp(self):
        low, high = self.limits
        self.angle = min(max(self.angle, low), high)


class Arm:
    def __init__(self, lengths):
        self.links = [Link(l, 0.3) for l in lengths]

    def joints(self):
        points = [np.zeros(2)]
        heading = 0.0
        for link in self.links:
            heading += link.angle
            tip = points[-1] + link.length * np.array([np.cos(heading), np.sin(heading)])
            points.append(tip)
        return points

    @property
    def end(self):
        return self.joints()[-1]

    def jacobian(self):
        *points, tip = self.joints()
        J = np.zeros((2, len(self.links)))
        for i, p in enumerate(points):
            r = tip - p
            J[:, i] = -r[1], r[0]
        return J

    def reach(self, target, damping=0.1, tol=1e-6, max_iter=8):
        for iteration in range(max_iter):
            e = target - self.end
            if np.linalg.norm(e) < tol:
                return iteration
            J = self.jacobian()
            dq = J.T @ np.linalg.solve(J @ J.T + damping**2 * np.eye(2), e)
            biggest = np.abs(dq).max()
            if biggest > 0.5:
                dq *= 0.5 / biggest
            for link, d in zip(self.links, dq):
                link.angle += d
                link.clamp()
        return max_iter


def reaching(p):
    """Bending of an arm that has reached for three targets, by its links and the last target."""
    arm = Arm(p[:3])
    targets = deque([np.array([1.0, 1.2]), np.array([-0.5, 1.5])])
    targets.append(p[3:])
    cost = 0.0
    while targets:
        target = targets.popleft()
        arm.reach(target)
        cost += np.sum((arm.end - target) ** 2)
    return cost + 0.1 * sum(link.angle**2 for link in arm.links)


# light


class Ray:
    def __init__(self, origin, direction):
        self.origin = origin
        self.direction = direction / np.linalg.norm(direction)

    def at(self, t):
        return self.origin + t * self.direction


class Sphere:
    def __init__(self, center, radius, colour, reflectivity=0.0):
        self.center, self.radius = np.array(center), radius
        self.colour, self.reflectivity = np.array(colour), reflectivity

    def intersect(self, ray):
        oc = ray.origin - self.center
        b = oc @ ray.direction
        c = oc @ oc - self.radius**2
        disc = b * b - c
        if disc < 0:
            return None
        root = np.sqrt(disc)
        for t in (-b - root, -b + root):
            if t > 1e-4:
                return t
        return None

    def normal(self, point):
        return (point - self.center) / self.radius


class Plane:
    reflectivity = 0.1

    def __init__(self, height):
        self.height = height

    def intersect(self, ray):
        if abs(ray.direction[1]) < 1e-9:
            return None
        t = (self.height - ray.origin[1]) / ray.direction[1]
        return t if t > 1e-4 else None

    def normal(self, point):
        return np.array([0.0, 1.0, 0.0])

    @property
    def colour(self):
        return np.array([0.5, 0.5, 0.5])


class Scene:
    def __init__(self, objects, light, ambient=0.1):
        self.objects, self.light, self.ambient = objects, light, ambient

    def hit(self, ray):
        nearest, best = None, float("inf")
        for thing in self.objects:
            t = thing.intersect(ray)
            if t is not None and t < best:
                nearest, best = thing, t
        return nearest, best

    def trace(self, ray, depth=0, max_depth=2):
        thing, t = self.hit(ray)
        if thing is None:
            return 0.2 + 0.1 * ray.direction[1] * np.ones(3)
        point = ray.at(t)
        n = thing.normal(point)
        to_light = self.light - point
        distance = np.linalg.norm(to_light)
        shade = self.ambient
        blocker, s = self.hit(Ray(point, to_light))
        if blocker is None or s > distance:
            shade += max(0.0, n @ to_light / distance)
        colour = shade * thing.colour
        if depth < max_depth and thing.reflectivity > 0:
            d = ray.direction
            bounced = Ray(point, d - 2 * (d @ n) * n)
            r = thing.reflectivity
            colour = (1 - r) * colour + r * self.trace(bounced, depth + 1, max_depth)
        return colour


def render(scene, width, height):
    image = np.zeros((height, width, 3))
    for j in range(height):
        for i in range(width):
            x, y = (i + 0.5) / width - 0.5, 0.5 - (j + 0.5) / height
            image[j, i] = scene.trace(Ray(np.array([0.0, 0.3, -3.0]), np.array([x, y, 1.0])))
    return image


def picture(p):
    """Mean squared brightness of a small scene, by a sphere's place and radius, and the light."""
    scene = Scene(
        [
            Sphere([p[0], 0.2, 0.3], p[1], [0.9, 0.2, 0.1], reflectivity=0.3),
            Sphere([0.7, 0.1, 0.0], 0.4, [0.1, 0.6, 0.9]),
            Plane(-0.4),
        ],
        light=np.array([2.0, 3.0, p[2]]),
    )
    return np.mean(render(scene, 4, 4) ** 2)


PROGRAMS = [
    (pendulum, np.array([1.2, 0.7, 0.8])),
    (transfer, np.array([0.4, 2.2, 0.8])),
    (tumbling, np.array([1.0, 1.4, 0.7])),
    (picture, np.array([-0.3, 0.6, -2.0])),
    (reaching, np.array([0.9, 0.7, 0.5, 0.8, -0.9])),
]
