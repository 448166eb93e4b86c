"""Statistical models: Gaussian processes, mixtures, topics, generalised linear models, survival."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln


# Gaussian process regression with kernels that are added and multiplied
class Kernel:
    def __call__(self, A, B):
        raise NotImplementedError

    def __add__(self, other):
        return Sum(self, other)

    def __mul__(self, other):
        return Product(self, other)


class Sum(Kernel):
    def __init__(self, *parts):
        self.parts = parts

    def __call__(self, A, B):
        return sum(k(A, B) for k in self.parts)


class Product(Kernel):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def __call__(self, A, B):
        return self.left(A, B) * self.right(A, B)


class RBF(Kernel):
    def __init__(self, variance=1.0, lengthscale=1.0):
        self.variance = variance
        self.lengthscale = lengthscale

    def __call__(self, A, B):
        d2 = np.sum(A**2, 1)[:, None] + np.sum(B**2, 1)[None, :] - 2 * A @ B.T
        return self.variance * np.exp(-0.5 * np.maximum(d2, 0.0) / self.lengthscale**2)


class Periodic(Kernel):
    def __init__(self, period, lengthscale=1.0):
        self.period = period
        self.lengthscale = lengthscale

    def __call__(self, A, B):
        d = A[:, None, 0] - B[None, :, 0]
        return np.exp(-2 * np.sin(np.pi * d / self.period) ** 2 / self.lengthscale**2)


class White(Kernel):
    def __init__(self, variance):
        self.variance = variance

    def __call__(self, A, B):
        if A is B:
            return self.variance * np.eye(len(A))
        return np.zeros((len(A), len(B)))


class GPRegressor:
    def __init__(self, kernel, jitter=1e-8):
        self.kernel = kernel
        self.jitter = jitter
        self.L = None
        self.alpha = None

    def fit(self, X, y):
        K = self.kernel(X, X)
        K[np.diag_indices_from(K)] += self.jitter
        self.X, self.y = X, y
        self.L = np.linalg.cholesky(K)
        self.alpha = np.linalg.solve(self.L.T, np.linalg.solve(self.L, y))
        return self

    def log_marginal_likelihood(self):
        if self.L is None:
            raise RuntimeError("call fit first")
        n = len(self.y)
        return (
            -0.5 * self.y @ self.alpha
            - np.sum(np.log(np.diag(self.L)))
            - 0.5 * n * math.log(2 * math.pi)
        )

    def predict(self, X_new, return_std=False):
        K_s = self.kernel(X_new, self.X)
        mean = K_s @ self.alpha
        if not return_std:
            return mean
        v = np.linalg.solve(self.L, K_s.T)
        var = np.diag(self.kernel(X_new, X_new)) - np.sum(v**2, axis=0)
        return mean, np.sqrt(np.clip(var, 1e-12, None))


GP_X = np.linspace(0.0, 4.0, 9)[:, None]
GP_Y = np.sin(3 * GP_X[:, 0]) + 0.3 * GP_X[:, 0]


def gp_objective(theta):
    variance, length, period, noise = np.exp(theta)
    kernel = RBF(variance, length) + Periodic(period) * RBF(lengthscale=3.0) + White(noise)
    gp = GPRegressor(kernel).fit(GP_X, GP_Y)
    mean, std = gp.predict(np.array([[0.3], [4.5]]), return_std=True)
    target = np.array([0.9, 2.0])
    predictive = np.sum(((target - mean) / std) ** 2 + 2 * np.log(std))
    return -gp.log_marginal_likelihood() + 0.1 * predictive


# A Gaussian mixture: iterations of EM from given means, then the log-likelihood
@dataclass
class Component:
    weight: float
    mean: np.ndarray
    cov: np.ndarray

    def log_density(self, X):
        d = len(self.mean)
        L = np.linalg.cholesky(self.cov)
        z = np.linalg.solve(L, (X - self.mean).T)
        log_det = 2 * np.sum(np.log(np.diag(L)))
        return -0.5 * (np.sum(z**2, axis=0) + log_det + d * np.log(2 * np.pi))


@dataclass
class Mixture:
    components: list = field(default_factory=list)

    def joint(self, X):
        return np.stack([np.log(c.weight) + c.log_density(X) for c in self.components], axis=1)

    def responsibilities(self, X):
        joint = self.joint(X)
        top = joint.max(axis=1, keepdims=True)
        norm = top + np.log(np.exp(joint - top).sum(axis=1, keepdims=True))
        return np.exp(joint - norm), norm.sum()

    def m_step(self, X, r, reg=1e-3):
        updated = []
        for k, c in enumerate(self.components):
            nk = r[:, k].sum()
            mean = r[:, k] @ X / nk
            diff = X - mean
            cov = (r[:, k][:, None] * diff).T @ diff / nk
            cov.flat[:: len(mean) + 1] += reg
            updated.append(Component(nk / len(X), mean, cov))
        self.components = updated


def fit_em(model, X, max_iter=20, tol=1e-2):
    previous = -np.inf
    for it in range(max_iter):
        r, loglik = model.responsibilities(X)
        if abs(loglik - previous) < tol:
            break
        previous = loglik
        model.m_step(X, r)
    return loglik, it


GMM_RNG = np.random.default_rng(1)
GMM_X = np.vstack([GMM_RNG.normal(-1, 0.6, (8, 2)), GMM_RNG.normal(1.5, 0.8, (9, 2))])


def gmm_em_log_likelihood(means):
    model = Mixture([Component(0.5, m, np.eye(2)) for m in means])
    loglik, iterations = fit_em(model, GMM_X, max_iter=4, tol=1e-9)
    return loglik / len(GMM_X)


# The log-likelihood of a topic model, given the assignments of words to topics
LDA_DOCS = [[0, 1, 1, 2], [2, 3, 3, 0, 2], [4, 4, 1]]
LDA_TOPICS = [[0, 0, 1, 0], [1, 1, 0, 0, 1], [1, 0, 0]]


def count_topics(docs, topics, n_words, n_topics):
    word_topic = {}
    doc_topic = np.zeros((len(docs), n_topics))
    for d, (words, zs) in enumerate(zip(docs, topics)):
        for w, z in zip(words, zs):
            word_topic[w, z] = word_topic.get((w, z), 0) + 1
            doc_topic[d, z] += 1
    table = np.zeros((n_words, n_topics))
    for (w, z), count in word_topic.items():
        table[w, z] = count
    return table, doc_topic


def log_beta_function(a):
    return np.sum(gammaln(a)) - gammaln(np.sum(a))


def lda_collapsed_log_likelihood(log_params):
    alpha, beta = np.exp(log_params[:2]), np.exp(log_params[2:])
    word_topic, doc_topic = count_topics(LDA_DOCS, LDA_TOPICS, n_words=5, n_topics=2)
    total = 0.0
    for d in range(len(LDA_DOCS)):
        total += log_beta_function(doc_topic[d] + alpha) - log_beta_function(alpha)
    for k in range(2):
        total += log_beta_function(word_topic[:, k] + beta) - log_beta_function(beta)
    return total


# Generalised linear models fitted by iteratively reweighted least squares
class Family:
    def __init__(self, link, inverse, variance, deviance):
        self.link = link
        self.inverse = inverse
        self.variance = variance
        self.deviance = deviance


def poisson_deviance(y, mu):
    return 2 * np.sum(np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mu), 0.0) - (y - mu))


def binomial_deviance(y, mu):
    return -2 * np.sum(y * np.log(mu) + (1 - y) * np.log(1 - mu))


FAMILIES = {
    "poisson": Family(np.log, np.exp, lambda mu: mu, poisson_deviance),
    "binomial": Family(
        lambda mu: np.log(mu / (1 - mu)),
        lambda eta: 1 / (1 + np.exp(-eta)),
        lambda mu: mu * (1 - mu),
        binomial_deviance,
    ),
}


def irls(X, y, family="poisson", ridge=0.0, max_iter=25, tol=1e-10, weights=None):
    fam = FAMILIES[family]
    n, p = X.shape
    if weights is None:
        weights = np.ones(n)
    mu = (y + y.mean()) / 2
    eta = fam.link(mu)
    beta = np.zeros(p)
    deviance = np.inf
    for iteration in range(max_iter):
        V = fam.variance(mu)
        z = eta + (y - mu) / V
        W = weights * V
        XtW = X.T * W
        beta = np.linalg.solve(XtW @ X + ridge * np.eye(p), XtW @ z)
        eta = X @ beta
        mu = fam.inverse(eta)
        new_deviance = fam.deviance(y, mu)
        if abs(new_deviance - deviance) < tol * (abs(new_deviance) + 0.1):
            deviance = new_deviance
            break
        deviance = new_deviance
    else:
        raise RuntimeError("IRLS did not converge")
    return dict(coef=beta, mu=mu, deviance=deviance, iterations=iteration + 1)


GLM_RNG = np.random.default_rng(2)
GLM_X = np.column_stack([np.ones(12), GLM_RNG.normal(size=(12, 2))])
GLM_COUNTS = GLM_RNG.poisson(np.exp(GLM_X @ [0.5, 0.4, -0.3])).astype(float)
GLM_LABELS = (GLM_X @ [0.2, 1.0, -1.0] + GLM_RNG.logistic(size=12) > 0).astype(float)


def poisson_fit_sensitivity(log_weights):
    fit = irls(GLM_X, GLM_COUNTS, weights=np.exp(log_weights), ridge=0.1)
    return fit["coef"][1] + 0.1 * fit["deviance"]


def logistic_validation_loss(log_ridge):
    fit = irls(GLM_X[:9], GLM_LABELS[:9], family="binomial", ridge=np.exp(log_ridge[0]))
    scores = GLM_X[9:] @ fit["coef"]
    losses = [math.log(1 + math.exp(-s if y else s)) for s, y in zip(scores, GLM_LABELS[9:])]
    return sum(losses) / len(losses)


# The partial likelihood of Cox's model, with Efron's treatment of ties
@dataclass
class Subject:
    time: float
    event: bool
    covariates: np.ndarray


def make_cohort(seed=7, n=10):
    rng = np.random.default_rng(seed)
    times = np.round(rng.exponential(3.0, n))
    return [Subject(t, rng.random() < 0.7, rng.normal(size=3)) for t in times]


def group_by_time(cohort):
    groups = {}
    for s in cohort:
        if s.event:
            groups.setdefault(s.time, []).append(s)
    return groups


COHORT = make_cohort()
FAILURES = sorted(group_by_time(COHORT).items())


def cox_negative_partial_likelihood(beta, penalty=0.1):
    loglik = 0.0
    for t, failures in FAILURES:
        risk = sum(np.exp(s.covariates @ beta) for s in COHORT if s.time >= t)
        tied = sum(np.exp(s.covariates @ beta) for s in failures)
        d = len(failures)
        for j, s in enumerate(failures):
            loglik += s.covariates @ beta - np.log(risk - j / d * tied)
    return -loglik + penalty * np.linalg.norm(beta) ** 2


# Penalised splines: a basis by the recursion of Cox and de Boor
def bspline(x, knots, i, degree):
    if degree == 0:
        return 1.0 if knots[i] <= x < knots[i + 1] else 0.0
    total = 0.0
    width = knots[i + degree] - knots[i]
    if width > 0:
        total += (x - knots[i]) / width * bspline(x, knots, i, degree - 1)
    width = knots[i + degree + 1] - knots[i + 1]
    if width > 0:
        total += (knots[i + degree + 1] - x) / width * bspline(x, knots, i + 1, degree - 1)
    return total


def design_matrix(xs, knots, degree=2):
    n_basis = len(knots) - degree - 1
    B = np.zeros((len(xs), n_basis))
    for r, x in enumerate(xs):
        for c in range(n_basis):
            B[r, c] = bspline(x, knots, c, degree)
    return B


SPLINE_X = np.linspace(0.02, 0.98, 11)
SPLINE_Y = np.cos(5 * SPLINE_X)


def free_knot_spline_loss(inner):
    knots = np.concatenate([np.zeros(3), np.sort(inner), np.ones(3)])
    B = design_matrix(SPLINE_X, knots)
    D = np.diff(np.eye(B.shape[1]), n=2, axis=0)
    lhs = B.T @ B + 1e-3 * D.T @ D
    coef = np.linalg.solve(lhs, B.T @ SPLINE_Y)
    residual = SPLINE_Y - B @ coef
    edf = np.trace(np.linalg.solve(lhs, B.T @ B))
    n = len(SPLINE_X)
    return n * residual @ residual / (n - edf) ** 2


PROGRAMS = [
    (gp_objective, np.log([1.2, 0.8, 2.1, 0.05])),
    (gmm_em_log_likelihood, np.array([[-0.5, -0.4], [0.9, 1.0]])),
    (lda_collapsed_log_likelihood, np.array([-0.5, 0.1, -1.0, 0.0, -0.5, 0.2, -0.2])),
    (poisson_fit_sensitivity, np.linspace(-0.3, 0.3, 12)),
    (logistic_validation_loss, np.array([-0.5])),
    (cox_negative_partial_likelihood, np.array([0.3, -0.2, 0.1])),
    (free_knot_spline_loss, np.array([0.31, 0.55, 0.78])),
]
LONG = {cox_negative_partial_likelihood}
