"""Alignment, transport, sampling, graphs and populations: dynamic programmes and simulations."""

from __future__ import annotations

import heapq
import itertools
from functools import reduce
from typing import NamedTuple

import numpy as np

NEG_INF = -1e30


# The loss of connectionist temporal classification, in logarithms
def log_add(*values):
    top = max(values)
    if top <= NEG_INF:
        return NEG_INF
    return top + np.log(sum(np.exp(v - top) for v in values))


def extend_with_blanks(labels, blank=0):
    extended = [blank]
    for label in labels:
        extended += [label, blank]
    return extended


def ctc_log_likelihood(log_probs, labels):
    z = extend_with_blanks(labels)
    T, S = len(log_probs), len(z)
    alpha = [[NEG_INF] * S for _ in range(T)]
    alpha[0][0] = log_probs[0, z[0]]
    alpha[0][1] = log_probs[0, z[1]]
    for t in range(1, T):
        for s in range(S):
            terms = [alpha[t - 1][s]]
            if s > 0:
                terms.append(alpha[t - 1][s - 1])
            if s > 1 and z[s] != 0 and z[s] != z[s - 2]:
                terms.append(alpha[t - 1][s - 2])
            alpha[t][s] = log_add(*terms) + log_probs[t, z[s]]
    return log_add(alpha[-1][-1], alpha[-1][-2])


def ctc_loss(logits):
    log_probs = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    return -ctc_log_likelihood(log_probs, [1, 2, 2])


# Dynamic time warping: hard, with the path; and soft
def dtw(a, b, window=None, cost=lambda x, y: (x - y) ** 2):
    n, m = len(a), len(b)
    w = max(window or max(n, m), abs(n - m))
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - w), min(m, i + w) + 1):
            D[i, j] = cost(a[i - 1], b[j - 1]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    i, j, path = n, m, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        moves = {(i - 1, j - 1): D[i - 1, j - 1], (i - 1, j): D[i - 1, j], (i, j - 1): D[i, j - 1]}
        i, j = min(moves, key=moves.get)
    return D[n, m], path[::-1]


def soft_min(*args, gamma=0.1):
    z = [-a / gamma for a in args]
    top = max(z)
    return -gamma * (top + np.log(sum(np.exp(v - top) for v in z)))


def soft_dtw(a, b, gamma=0.1):
    R = {(-1, -1): 0.0}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            before = [R[p] for p in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if p in R]
            R[i, j] = (x - y) ** 2 + soft_min(*before, gamma=gamma)
    return R[len(a) - 1, len(b) - 1]


REFERENCE = np.array([0.0, 0.4, 1.0, 0.6, 0.1])


def warping_distance(series):
    hard, path = dtw(series, REFERENCE, window=2)
    slack = sum(abs(i - j) for i, j in path)
    return hard + 0.1 * slack * np.mean(series**2)


def soft_warping_distance(series):
    return soft_dtw(series, REFERENCE[:4]) - 0.5 * soft_dtw(series, series)


# Optimal transport with entropy, until the marginals fit
class SinkhornResult(NamedTuple):
    plan: np.ndarray
    cost: float
    iterations: int
    converged: bool


def pairwise_cost(X, Y, p=2):
    return np.sum(np.abs(X[:, None, :] - Y[None, :, :]) ** p, axis=-1)


def sinkhorn(a, b, C, reg=0.3, tol=1e-6, max_iter=200):
    K = np.exp(-C / reg)
    u, v = np.ones_like(a), np.ones_like(b)
    converged = False
    for it in itertools.count(1):
        u = a / (K @ v)
        v = b / (K.T @ u)
        P = u[:, None] * K * v
        err = np.linalg.norm(P.sum(axis=1) - a, ord=1)
        if err < tol:
            converged = True
        if converged or it >= max_iter:
            break
    return SinkhornResult(P, (P * C).sum(), it, converged)


CLOUD = np.random.default_rng(12).normal(size=(5, 2))


def sinkhorn_divergence(points):
    a, b = np.full(len(points), 1 / len(points)), np.full(len(CLOUD), 1 / len(CLOUD))
    across = sinkhorn(a, b, pairwise_cost(points, CLOUD))
    within = sinkhorn(a, a, pairwise_cost(points, points))
    if not across.converged:
        return np.nan
    return across.cost - 0.5 * within.cost


# One trajectory of Hamiltonian Monte Carlo on a banana, with its acceptance probability
class Banana:
    def __init__(self, curvature=0.5, scale=1.0):
        self.curvature = curvature
        self.scale = scale
        self.evaluations = 0

    def log_density(self, q):
        self.evaluations += 1
        x, y = q
        return -0.5 * (x / self.scale) ** 2 - 0.5 * (y - self.curvature * x**2) ** 2

    def gradient(self, q):
        x, y = q
        r = y - self.curvature * x**2
        return np.array([-x / self.scale**2 + 2 * self.curvature * x * r, -r])


def leapfrog(q, p, target, step, n_steps, mass):
    q, p = q.copy(), p.copy()
    p += 0.5 * step * target.gradient(q)
    for i in range(n_steps):
        q += step * p / mass
        if i != n_steps - 1:
            p += step * target.gradient(q)
    p += 0.5 * step * target.gradient(q)
    return q, -p


def hmc_chain(q, target, momenta, uniforms, step, mass, n_steps=4):
    samples, accept_rate = [], 0.0
    for p, u in zip(momenta, uniforms):
        h0 = -target.log_density(q) + 0.5 * np.sum(p**2 / mass)
        q_new, p_new = leapfrog(q, p, target, step, n_steps, mass)
        h1 = -target.log_density(q_new) + 0.5 * np.sum(p_new**2 / mass)
        accept = min(1.0, np.exp(h0 - h1))
        accept_rate += accept
        if u < accept:
            q = q_new
        samples.append(q)
    return np.array(samples), accept_rate / len(momenta)


HMC_RNG = np.random.default_rng(13)
MOMENTA, UNIFORMS = HMC_RNG.normal(size=(5, 2)), HMC_RNG.random(5)


def hmc_expected_jump(tuning):
    step, mass = np.exp(tuning[0]), np.exp(tuning[1:3])
    samples, rate = hmc_chain(
        tuning[3:], Banana(), MOMENTA, UNIFORMS, step=step, mass=mass, n_steps=3
    )
    jumps = np.sum(np.diff(samples, axis=0) ** 2, axis=1)
    return jumps.mean() + rate


# Sum-product message passing on a tree of discrete variables
class Variable:
    def __init__(self, name, size):
        self.name = name
        self.size = size
        self.factors = []


class Factor:
    def __init__(self, variables, table):
        self.variables = variables
        self.table = table
        for v in variables:
            v.factors.append(self)


def variable_message(variable, target):
    message = np.ones(variable.size)
    for factor in variable.factors:
        if factor is not target:
            message = message * factor_message(factor, variable)
    return message


def factor_message(factor, target):
    result = factor.table
    axis = factor.variables.index(target)
    for k, v in enumerate(factor.variables):
        if v is not target:
            shape = [1] * len(factor.variables)
            shape[k] = v.size
            result = result * variable_message(v, factor).reshape(shape)
    others = tuple(k for k in range(len(factor.variables)) if k != axis)
    return result.sum(axis=others)


def marginal(variable):
    messages = [factor_message(f, variable) for f in variable.factors]
    belief = reduce(np.multiply, messages)
    return belief / belief.sum()


def bayesian_network_query(logits):
    rain = Variable("rain", 2)
    sprinkler = Variable("sprinkler", 2)
    wet = Variable("wet", 2)
    p = 1 / (1 + np.exp(-logits))
    Factor([rain], np.array([1 - p[0], p[0]]))
    Factor([rain, sprinkler], np.array([[1 - p[1], p[1]], [1 - p[2], p[2]]]))
    Factor([sprinkler, wet], np.array([[1 - p[3], p[3]], [1 - p[4], p[4]]]))
    Factor([wet], np.array([0.1, 0.9]))
    beliefs = {v.name: marginal(v) for v in (rain, sprinkler, wet)}
    return np.log(beliefs["rain"][1]) + beliefs["sprinkler"] @ np.log(beliefs["sprinkler"])


# An epidemic in age groups that are objects, with a vaccination campaign
class AgeGroup:
    def __init__(self, name, population, infected=0.0):
        self.name = name
        self.N = population
        self.S = population - infected
        self.E = 0.0
        self.I = infected
        self.R = 0.0

    def force(self, contacts, groups, beta):
        return beta * sum(c * g.I / g.N for c, g in zip(contacts, groups))

    def advance(self, infection, sigma, gamma, dt):
        new_e = infection * self.S * dt
        new_i = sigma * self.E * dt
        new_r = gamma * self.I * dt
        self.S -= new_e
        self.E += new_e - new_i
        self.I += new_i - new_r
        self.R += new_r
        return new_i

    def vaccinate(self, doses):
        given = min(doses, self.S)
        self.S -= given
        self.R += given
        return doses - given


class Epidemic:
    contacts = {"child": [3.0, 1.0], "adult": [1.0, 2.0]}

    def __init__(self, beta, sigma, gamma, **populations):
        self.groups = [AgeGroup(n, pop, infected=0.01 * pop) for n, pop in populations.items()]
        self.beta, self.sigma, self.gamma = beta, sigma, gamma
        self.day = 0

    @property
    def prevalence(self):
        return sum(g.I for g in self.groups) / sum(g.N for g in self.groups)

    def run(self, days, dt=0.5, campaign=None):
        incidence = []
        peak = 0.0
        while self.day < days:
            today = 0.0
            for _ in range(int(1 / dt)):
                forces = [g.force(self.contacts[g.name], self.groups, self.beta)
                          for g in self.groups]
                for g, f in zip(self.groups, forces):
                    today += g.advance(f, self.sigma, self.gamma, dt)
            if campaign and self.day >= campaign["start"]:
                left = campaign["doses"]
                for g in self.groups:
                    left = g.vaccinate(left)
            peak = max(peak, self.prevalence)
            incidence.append(today)
            self.day += 1
        return np.array(incidence), peak


CASES = np.array([0.4, 0.5, 0.7, 0.8, 1.0, 1.1, 1.2, 1.2])


def epidemic_misfit(log_rates):
    beta, sigma, gamma = np.exp(log_rates[:3])
    model = Epidemic(beta, sigma, gamma, child=30.0, adult=70.0)
    incidence, peak = model.run(len(CASES), campaign=dict(start=4, doses=np.exp(log_rates[3])))
    return np.sum((np.sqrt(incidence) - np.sqrt(CASES)) ** 2) + 10 * peak


# Annealing: the expected energy of tours under a temperature, with a schedule and a heap
class Schedule:
    def __init__(self, t0, cooling):
        self.t0 = t0
        self.cooling = cooling

    def __iter__(self):
        t = self.t0
        while t > 0.05:
            yield t
            t *= self.cooling


def tour_length(cities, order):
    return sum(
        np.linalg.norm(cities[order[k]] - cities[order[k - 1]]) for k in range(len(order))
    )


def anneal(cities, schedule, swaps, uniforms):
    order = list(range(len(cities)))
    energy = tour_length(cities, order)
    accepted = []
    for t, (i, j), u in zip(schedule, itertools.cycle(swaps), uniforms):
        order[i], order[j] = order[j], order[i]
        proposal = tour_length(cities, order)
        if proposal < energy or u < np.exp((energy - proposal) / t):
            energy = proposal
            accepted.append(energy)
        else:
            order[i], order[j] = order[j], order[i]
    return energy, accepted


CITIES_RNG = np.random.default_rng(14)


def annealed_tour(cities):
    schedule = Schedule(1.0, 0.7)
    energy, accepted = anneal(
        cities, schedule, [(0, 2), (1, 3), (0, 4)], np.linspace(0.05, 0.95, 20)
    )
    best = heapq.nsmallest(2, accepted)
    return energy + 0.5 * sum(best)


# A population with stages, harvest and a juvenile delay
class Stage:
    survival = 1.0

    def __init__(self, count):
        self.count = count

    def step(self, model):
        self.count = self.count * self.survival


class Juvenile(Stage):
    def __init__(self, count, delay):
        super().__init__(count)
        self.queue = [count / delay] * delay
        self.survival = 0.9

    def step(self, model):
        self.queue.insert(0, model.births())
        matured = self.queue.pop() * self.survival ** len(self.queue)
        self.count = sum(self.queue)
        model.adults.count += matured


class Adult(Stage):
    def __init__(self, count, survival):
        super().__init__(count)
        self.survival = survival


class Fishery:
    def __init__(self, fertility, survival, harvest, capacity=50.0):
        self.juveniles = Juvenile(6.0, delay=3)
        self.adults = Adult(10.0, survival)
        self.fertility = fertility
        self.harvest = harvest
        self.capacity = capacity
        self.catch = []

    def births(self):
        return self.fertility * self.adults.count * np.exp(-self.adults.count / self.capacity)

    def year(self):
        for stage in (self.juveniles, self.adults):
            stage.step(self)
        quota = self.harvest * self.adults.count if self.adults.count > 5.0 else 0.0
        self.adults.count -= quota
        self.catch.append(quota)


def fishery_value(controls):
    fishery = Fishery(np.exp(controls[0]), survival=0.8, harvest=controls[1])
    price, value = 1.0, 0.0
    for year in range(8):
        fishery.year()
        value += price * fishery.catch[-1] * controls[2] ** year
    return value + 0.5 * np.log(fishery.adults.count)


# Bundle adjustment with robust loss, and a hand of bones that is posed and skinned
def rodrigues(w):
    theta = np.sqrt(np.sum(w**2))
    if theta < 1e-12:
        return np.eye(3)
    k = w / theta
    K = np.array([[0.0, -k[2], k[1]], [k[2], 0.0, -k[0]], [-k[1], k[0], 0.0]])
    return np.eye(3) + np.sin(theta) * K + (1 - np.cos(theta)) * K @ K


class Camera:
    N_PARAMS = 9

    def __init__(self, params):
        self.rotation = params[0:3]
        self.translation = params[3:6]
        self.focal = params[6]
        self.distortion = params[7:9]

    def distort(self, p):
        r2 = np.sum(p * p)
        k1, k2 = self.distortion
        return p * (1 + k1 * r2 + k2 * r2**2)

    def project(self, X):
        Y = rodrigues(self.rotation) @ X + self.translation
        return self.focal * self.distort(Y[:2] / Y[2])


OBSERVATIONS = [
    {"camera": 0, "point": 0, "xy": (0.1, 0.2), "weight": 1.0},
    {"camera": 0, "point": 1, "xy": (-0.2, 0.1), "weight": 0.5},
    {"camera": 1, "point": 0, "xy": (0.15, 0.18)},
    {"camera": 1, "point": 1, "xy": (-0.3, 0.4)},
]


def huber(r, delta=0.2):
    n = np.linalg.norm(r)
    return 0.5 * n**2 if n <= delta else delta * (n - 0.5 * delta)


def bundle_adjustment(theta, n_cameras=2):
    cameras = [Camera(c) for c in theta[: n_cameras * Camera.N_PARAMS].reshape(n_cameras, -1)]
    points = theta[n_cameras * Camera.N_PARAMS :].reshape(-1, 3)
    total = 0.0
    for obs in OBSERVATIONS:
        predicted = cameras[obs["camera"]].project(points[obs["point"]])
        residual = obs.get("weight", 1.0) * (predicted - np.asarray(obs["xy"]))
        total += huber(residual)
    return total


def bundle_start():
    camera = [0.1, -0.05, 0.02, 0.0, 0.1, 0.3, 1.1, 0.01, -0.02]
    other = [-0.1, 0.08, 0.05, 0.2, -0.1, 0.1, 0.9, -0.03, 0.01]
    return np.array(camera + other + [0.2, 0.1, 1.5, -0.3, 0.2, 2.0])


class Bone:
    def __init__(self, name, parent, offset):
        self.name = name
        self.parent = parent
        self.offset = np.array(offset)


SKELETON = [
    Bone("palm", None, [0.0, 0.0, 0.0]),
    Bone("index1", 0, [0.0, 1.0, 0.0]),
    Bone("index2", 1, [0.0, 0.5, 0.0]),
    Bone("thumb", 0, [0.7, 0.3, 0.0]),
]
SKIN = np.array([[0.7, 0.3, 0.0, 0.0], [0.0, 0.4, 0.6, 0.0], [0.2, 0.0, 0.0, 0.8]])
VERTICES = np.array([[0.1, 0.6, 0.0], [0.0, 0.3, 0.1], [0.2, 0.1, 0.0]])
SEEN = np.array([[0.2, 1.0, 0.1], [0.1, 1.7, 0.2], [0.9, 0.5, 0.0]])


def homogeneous(R, t):
    T = np.eye(4)
    T[:3, :3] = R
    T[:3, 3] = t
    return T


def pose_bones(angles):
    absolute = []
    for bone, angle in zip(SKELETON, angles):
        local = homogeneous(rodrigues(angle), bone.offset)
        if bone.parent is None:
            absolute.append(local)
        else:
            absolute.append(absolute[bone.parent] @ local)
    return absolute


def hand_tracking(pose):
    transforms = pose_bones(pose[:12].reshape(4, 3))
    scale, shift = pose[12], pose[13:]
    points = []
    for v, weights in zip(VERTICES, SKIN):
        vh = np.append(v, 1.0)
        blended = np.zeros(3)
        for w, T in zip(weights, transforms):
            if w > 0:
                blended += w * (T @ vh)[:3]
        points.append(scale * blended + shift)
    err = np.array(points) - SEEN
    return np.sum(err**2) + 0.01 * np.sum(pose[:12] ** 2)


PROGRAMS = [
    (ctc_loss, np.random.default_rng(15).normal(size=(6, 4))),
    (warping_distance, np.array([0.12, 0.25, 0.71, 1.13, 0.52, 0.33])),
    (soft_warping_distance, np.array([0.1, 0.6, 1.1, 0.3])),
    (sinkhorn_divergence, np.random.default_rng(16).normal(size=(4, 2))),
    (hmc_expected_jump, np.array([-1.2, 0.1, -0.1, 0.5, 0.8])),
    (bayesian_network_query, np.array([-0.5, 0.3, -1.0, 0.2, 1.5])),
    (epidemic_misfit, np.array([-1.2, -1.0, -1.5, 0.5])),
    (annealed_tour, CITIES_RNG.normal(size=(5, 2))),
    (fishery_value, np.array([0.3, 0.2, 0.95])),
    (bundle_adjustment, bundle_start()),
    (hand_tracking, 0.1 + 0.05 * np.arange(16.0)),
]
LONG = {annealed_tour, soft_warping_distance}
