"""Finance and time series: options by simulation and trees, curves, portfolios, ARMA and GARCH."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from functools import partial
from math import erf, exp, log, sqrt

import numpy as np


# Monte Carlo prices under Black-Scholes and Heston, from drawn numbers
class Payoff(ABC):
    def __init__(self, strike):
        self.strike = strike

    @abstractmethod
    def __call__(self, path):
        ...


class Call(Payoff):
    def __call__(self, path):
        return np.maximum(path[-1] - self.strike, 0.0)


class AsianCall(Payoff):
    def __call__(self, path):
        return np.maximum(np.mean(path, axis=0) - self.strike, 0.0)


class DownAndOut(Payoff):
    def __init__(self, strike, barrier):
        super().__init__(strike)
        self.barrier = barrier

    def __call__(self, path):
        alive = np.min(path, axis=0) > self.barrier
        return np.where(alive, np.maximum(path[-1] - self.strike, 0.0), 0.0)


def black_scholes_path(spot, rate, vol, maturity, normals):
    dt = maturity / len(normals)
    prices = [spot * np.ones(normals.shape[1])]
    for z in normals:
        growth = np.exp((rate - 0.5 * vol**2) * dt + vol * np.sqrt(dt) * z)
        prices.append(prices[-1] * growth)
    return np.array(prices)


def heston_path(spot, rate, v0, kappa, theta, xi, rho, maturity, normals_s, normals_v):
    steps, n = normals_s.shape
    dt = maturity / steps
    S = np.empty((steps + 1, n))
    v = np.empty_like(S)
    S[0], v[0] = spot, v0
    for t in range(steps):
        v_plus = np.maximum(v[t], 0.0)
        w = rho * normals_s[t] + np.sqrt(1 - rho**2) * normals_v[t]
        S[t + 1] = S[t] * np.exp((rate - 0.5 * v_plus) * dt + np.sqrt(v_plus * dt) * normals_s[t])
        v[t + 1] = v[t] + kappa * (theta - v_plus) * dt + xi * np.sqrt(v_plus * dt) * w
    return S


def price(payoffs, path, discount=1.0, control=None):
    values = {}
    for name, payoff in payoffs.items():
        sample = payoff(path)
        if control is not None:
            c, expected = control
            b = np.cov(sample, c)[0, 1] / np.var(c, ddof=1)
            sample = sample - b * (c - expected)
        values[name] = discount * sample.mean()
    return values


MC_RNG = np.random.default_rng(11)
Z1, Z2 = MC_RNG.normal(size=(2, 6, 40))


def black_scholes_book(market):
    spot, rate, vol = market
    book = {"call": Call(1.0), "asian": AsianCall(0.95), "barrier": DownAndOut(1.0, 0.8)}
    path = black_scholes_path(spot, rate, vol, 1.0, Z1)
    values = price(book, path, np.exp(-rate), control=(path[-1], spot * np.exp(rate)))
    return sum(q * values[name] for q, name in [(1.0, "call"), (-0.5, "asian"), (2.0, "barrier")])


def heston_calibration(params):
    v0, kappa, theta, xi, rho = params
    path = heston_path(1.0, 0.02, v0, kappa, theta, xi, rho, 1.0, Z1, Z2)
    quotes = {0.9: 0.16, 1.0: 0.10, 1.1: 0.06}
    error = 0.0
    for strike, quote in quotes.items():
        model = price({"c": Call(strike)}, path, discount=exp(-0.02))["c"]
        error += (model - quote) ** 2
    return 1e3 * error + max(0.0, xi**2 - 2 * kappa * theta)


# American puts: on a binomial tree, and by regression (Longstaff and Schwartz)
def american_put_tree(inputs, steps=12):
    spot, strike, vol, rate = inputs
    dt = 1.0 / steps
    up = np.exp(vol * np.sqrt(dt))
    down = 1 / up
    p = (np.exp(rate * dt) - down) / (up - down)
    if not 0 < p < 1:
        raise ValueError("arbitrage")
    disc = np.exp(-rate * dt)
    values = [max(strike - spot * up**j * down ** (steps - j), 0.0) for j in range(steps + 1)]
    for n in range(steps - 1, -1, -1):
        for j in range(n + 1):
            hold = disc * (p * values[j + 1] + (1 - p) * values[j])
            exercise = strike - spot * up**j * down ** (n - j)
            values[j] = max(hold, exercise)
        values.pop()
    return values[0]


def american_put_lsm(inputs, degree=2):
    spot, strike, vol, rate = inputs
    paths = black_scholes_path(spot, rate, vol, 1.0, Z1)
    steps = len(Z1)
    df = np.exp(-rate / steps)
    cash = np.maximum(strike - paths[-1], 0.0)
    for t in range(steps - 1, 0, -1):
        cash = cash * df
        S = paths[t]
        itm = S < strike
        if itm.sum() <= degree:
            continue
        A = np.vander(S[itm] / strike, degree + 1)
        coef = np.linalg.lstsq(A, cash[itm], rcond=None)[0]
        continuation = A @ coef
        exercise = strike - S[itm]
        updated = cash.copy()
        updated[itm] = np.where(exercise > continuation, exercise, cash[itm])
        cash = updated
    return max(strike - spot, np.mean(cash * df))


# Bootstrapping a curve of discount factors from swap rates, by Newton's method at each maturity
Swap = namedtuple("Swap", "maturity rate")


class DiscountCurve:
    def __init__(self):
        self.times = [0.0]
        self.log_df = [0.0]

    def add(self, t, log_df):
        self.times.append(t)
        self.log_df.append(log_df)

    def __call__(self, t, extra=None):
        times, logs = self.times, self.log_df
        if extra is not None:
            times, logs = times + [extra[0]], logs + [extra[1]]
        for i in range(1, len(times)):
            if t <= times[i]:
                w = (t - times[i - 1]) / (times[i] - times[i - 1])
                return np.exp((1 - w) * logs[i - 1] + w * logs[i])
        return np.exp(logs[-1])


def swap_value(curve, swap, trial):
    extra = (swap.maturity, trial)
    annuity = 0.0
    t = 1.0
    while t <= swap.maturity + 1e-9:
        annuity += curve(t, extra)
        t += 1.0
    return swap.rate * annuity + curve(swap.maturity, extra) - 1.0


def newton(f, x0, tol=1e-12, max_iter=50, h=1e-6):
    x = x0
    for _ in range(max_iter):
        fx = f(x)
        slope = (f(x + h) - f(x - h)) / (2 * h)
        step = fx / slope
        x = x - step
        if abs(step) < tol:
            return x
    raise ArithmeticError("no convergence")


def bootstrap(swaps):
    curve = DiscountCurve()
    for swap in sorted(swaps, key=lambda s: s.maturity):
        guess = -swap.rate * swap.maturity
        curve.add(swap.maturity, newton(partial(swap_value, curve, swap), guess))
    return curve


def forward_rate_of_bootstrapped_curve(rates):
    curve = bootstrap([Swap(m, r) for m, r in zip([1.0, 2.0, 3.0, 5.0], rates)])
    return np.log(curve(2.5) / curve(4.5)) / 2.0 + 0.1 * curve(1.5)


# Nelson-Siegel-Svensson: bonds priced with a parametric curve
class NelsonSiegelSvensson:
    def __init__(self, b0, b1, b2, b3, tau1, tau2):
        self.__dict__.update(b0=b0, b1=b1, b2=b2, b3=b3, tau1=tau1, tau2=tau2)

    @staticmethod
    def _slope(m, tau):
        return (1 - np.exp(-m / tau)) / (m / tau)

    def zero_rate(self, m):
        s1, s2 = self._slope(m, self.tau1), self._slope(m, self.tau2)
        return (
            self.b0
            + self.b1 * s1
            + self.b2 * (s1 - np.exp(-m / self.tau1))
            + self.b3 * (s2 - np.exp(-m / self.tau2))
        )


class Bond:
    def __init__(self, maturity, coupon, quote, frequency=2):
        self.cashflows = []
        n = int(maturity * frequency)
        for i in range(1, n + 1):
            amount = 100 * coupon / frequency + (100.0 if i == n else 0.0)
            self.cashflows.append((i / frequency, amount))
        self.quote = quote

    def price(self, curve):
        return sum(cf * np.exp(-t * curve.zero_rate(t)) for t, cf in self.cashflows)

    def duration(self, curve):
        weighted = [t * cf * np.exp(-t * curve.zero_rate(t)) for t, cf in self.cashflows]
        return sum(weighted) / self.price(curve)


BONDS = [Bond(1, 0.02, 99.5), Bond(2, 0.03, 100.4), Bond(3, 0.025, 98.0), Bond(5, 0.04, 103.0)]


def nelson_siegel_fit(params):
    curve = NelsonSiegelSvensson(*params)
    total = 0.0
    for bond in BONDS:
        weight = 1.0 / bond.duration(curve)
        total += weight * (bond.price(curve) - bond.quote) ** 2
    return total


# Mean-variance portfolios: projected gradient steps, with costs and a benchmark
def project_to_simplex(v):
    u = np.sort(v)[::-1]
    css = np.cumsum(u)
    rho = 0
    for i in range(len(v)):
        if u[i] + (1 - css[i]) / (i + 1) > 0:
            rho = i
    theta = (css[rho] - 1) / (rho + 1)
    return np.maximum(v - theta, 0.0)


def optimise_portfolio(mu, cov, w0, risk_aversion=4.0, lr=0.1, tol=1e-7, max_iter=30):
    w = w0.copy()
    history = []
    while len(history) < max_iter:
        gradient = mu - risk_aversion * cov @ w
        new = project_to_simplex(w + lr * gradient)
        change = np.abs(new - w).sum()
        w[:] = new
        history.append(change)
        if change < tol:
            break
    return w, history


ASSET_COV = np.array([[0.10, 0.02, 0.01], [0.02, 0.08, 0.03], [0.01, 0.03, 0.20]])


def portfolio_regret(mu):
    w, history = optimise_portfolio(mu, ASSET_COV, np.ones(3) / 3)
    true_mu = np.array([0.06, 0.05, 0.12])
    risk = sqrt(w @ ASSET_COV @ w)
    var95 = 1.645 * risk - w @ true_mu
    turnover = sum(abs(a - 1 / 3) for a in w)
    return var95 + 0.01 * turnover - 0.5 * (1 + erf(w @ true_mu / risk))


# Likelihoods of time series
class ARMA:
    def __init__(self, ar, ma, const=0.0, log_sigma=0.0):
        self.ar = list(ar)
        self.ma = list(ma)
        self.const = const
        self.log_sigma = log_sigma

    def residuals(self, y):
        p, q = len(self.ar), len(self.ma)
        e = []
        for t in range(len(y)):
            pred = self.const
            for i, phi in enumerate(self.ar, start=1):
                if t - i >= 0:
                    pred += phi * y[t - i]
            for j in range(1, q + 1):
                if t - j >= 0:
                    pred += self.ma[j - 1] * e[t - j]
            e.append(y[t] - pred)
        return np.array(e[p:])

    def loglik(self, y):
        e = self.residuals(y)
        s2 = exp(2 * self.log_sigma)
        return -0.5 * len(e) * log(2 * np.pi * s2) - 0.5 * np.sum(e**2) / s2


SERIES = np.array([0.1, 0.5, 0.2, -0.4, -0.1, 0.3, 0.9, 0.4, 0.1, -0.2])


def arma_negative_log_likelihood(theta):
    model = ARMA(theta[:2], theta[2:4], const=theta[4], log_sigma=theta[5])
    return -model.loglik(SERIES)


def garch_negative_log_likelihood(theta, y=10 * SERIES):
    mu, omega, alpha, beta, gamma = theta
    if omega <= 0 or alpha < 0 or beta < 0 or alpha + beta + 0.5 * gamma >= 1:
        return 1e10
    eps = y - mu
    h = np.zeros_like(y)
    h[0] = np.var(eps)
    for t in range(1, len(y)):
        leverage = gamma * eps[t - 1] ** 2 * (eps[t - 1] < 0)
        h[t] = omega + alpha * eps[t - 1] ** 2 + leverage + beta * h[t - 1]
    return 0.5 * np.sum(np.log(2 * np.pi) + np.log(h) + eps**2 / h)


def companion(A_list):
    k, p = A_list[0].shape[0], len(A_list)
    C = np.zeros((k * p, k * p))
    C[:k] = np.hstack(A_list)
    C[k:, :-k] = np.eye(k * (p - 1))
    return C


VAR_DATA = np.random.default_rng(4).normal(size=(8, 2)).cumsum(axis=0) * 0.3


def var_negative_log_likelihood(theta, lags=2, horizon=3):
    k = 2
    A = [theta[i * k * k : (i + 1) * k * k].reshape(k, k) for i in range(lags)]
    L = np.zeros((k, k))
    L[np.tril_indices(k)] = theta[lags * k * k :]
    sigma = L @ L.T
    total = 0.0
    for t in range(lags, len(VAR_DATA)):
        forecast = sum(A[i] @ VAR_DATA[t - 1 - i] for i in range(lags))
        u = VAR_DATA[t] - forecast
        sign, logdet = np.linalg.slogdet(sigma)
        total += 0.5 * (logdet + u @ np.linalg.solve(sigma, u))
    C = companion(A)
    response, power = 0.0, np.eye(len(C))
    for _ in range(horizon):
        power = power @ C
        response += np.sum((power[:k, :k] @ L) ** 2)
    return total + response


PROGRAMS = [
    (black_scholes_book, np.array([1.0, 0.03, 0.25])),
    (heston_calibration, np.array([0.05, 1.5, 0.06, 0.4, -0.6])),
    (american_put_tree, np.array([1.0, 1.05, 0.3, 0.04])),
    (american_put_lsm, np.array([1.0, 1.05, 0.3, 0.04])),
    (forward_rate_of_bootstrapped_curve, np.array([0.02, 0.023, 0.026, 0.03])),
    (nelson_siegel_fit, np.array([0.04, -0.015, -0.01, 0.005, 1.5, 4.0])),
    (portfolio_regret, np.array([0.06, 0.05, 0.12])),
    (arma_negative_log_likelihood, np.array([0.4, -0.1, 0.3, 0.1, 0.05, -0.9])),
    (garch_negative_log_likelihood, np.array([0.5, 1.0, 0.1, 0.6, 0.2])),
    (
        var_negative_log_likelihood,
        np.array([0.5, 0.1, -0.2, 0.6, 0.1, 0.0, 0.05, 0.1, 0.8, 0.2, 0.6]),
    ),
]
LONG = {forward_rate_of_bootstrapped_curve, nelson_siegel_fit}
