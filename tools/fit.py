#!/usr/bin/env python3
"""Fit three models by gradients that s2s generates, and check each gradient by central differences.

    logistic regression     on the breast-cancer data that ships with scikit-learn (569 cases, 30 features)
    a Gaussian mixture      on sampled points; the log-likelihood and Wishart prior of the ADBench suite
    a hidden Markov model   on a sampled sequence; the forward algorithm, a `for` loop over time

usage: tools/fit.py [--quick]      (python3 tools/run main makes the environment first)
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import s2s

# ------------------------------------------------------------ the models: nothing here knows of s2s


def logistic_loss(w, b, X, y):
    """Mean negative log-likelihood, with a little weight decay; y is 0 or 1."""
    z = X @ w + b
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.001 * np.sum(w * w)


def log_sum_exp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def mixture_loss(alphas, means, factors, points, gamma, m):
    """Minus the log posterior of a Gaussian mixture, per point.

    A component has the weight softmax(alphas)[k], the mean means[k], and an inverse covariance L^T
    L, where row k of `factors` holds the logarithms of L's diagonal, then its strictly lower
    triangle, column by column. `gamma` and `m` are those of the Wishart prior (Srajer, Kukelova,
    Fitzgibbon 2018, section 4.1; constants left out).
    """
    n, d = points.shape
    count = len(alphas)
    total = 0.0
    terms = np.zeros(count)
    for i in range(n):
        for k in range(count):
            square = 0.0
            log_determinant = 0.0
            for r in range(d):
                log_determinant += factors[k, r]
                t = np.exp(factors[k, r]) * (points[i, r] - means[k, r])
                for c in range(r):
                    t += factors[k, d + c *
                                 (2 * d - c - 1) // 2 + r - c - 1] * (points[i, c] - means[k, c])
                square += t * t
            terms[k] = alphas[k] + log_determinant - 0.5 * square
        total += log_sum_exp(terms)
    log_likelihood = total - n * log_sum_exp(alphas) - 0.5 * n * d * np.log(2 * np.pi)
    diagonal = np.exp(factors[:, :d])
    penalty = 0.5 * gamma ** 2 * (np.sum(diagonal ** 2) + np.sum(factors[:, d:] ** 2)) - m * np.sum(
        factors[:, :d])
    return (penalty - log_likelihood) / n


def markov_loss(start, transition, emission, observed):
    """Minus the log-likelihood per observation; rows of logits give start, transition and emission
    probabilities.
    """
    p = np.exp(start - np.max(start))
    p = p / np.sum(p)
    A = np.exp(transition)
    A = A / np.sum(A, axis=1, keepdims=True)
    B = np.exp(emission)
    B = B / np.sum(B, axis=1, keepdims=True)
    alpha = p * B[:, observed[0]]
    total = 0.0
    for t in range(1, len(observed)):
        scale = np.sum(alpha)
        total += np.log(scale)
        alpha = (alpha / scale) @ A * B[:, observed[t]]
    return -(total + np.log(np.sum(alpha))) / len(observed)


# ----------------------------------------------------------------------------------------- the data


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """(X, y): standardised features, and 1 for a benign case."""
    package = importlib.util.find_spec("sklearn")
    if package is None:
        sys.exit("scikit-learn, whose data this fits, is not installed: pip install -e .[examples]")
    path = Path(package.origin).parent / "datasets" / "data" / "breast_cancer.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    return (X - X.mean(axis=0)) / X.std(axis=0), np.ascontiguousarray(y)


def mixture_points(n: int, d: int, count: int, rng) -> np.ndarray:
    centres = rng.normal(0.0, 3.0, (count, d))
    shapes = rng.normal(0.0, 0.5, (count, d, d)) + np.eye(d)
    chosen = rng.integers(count, size=n)
    return centres[chosen] + np.einsum("nij,nj->ni", shapes[chosen], rng.normal(size=(n, d)))


def markov_sequence(length: int, states: int, symbols: int, rng) -> np.ndarray:
    A = rng.dirichlet(np.full(states, 0.3), states)
    B = rng.dirichlet(np.full(symbols, 0.3), states)
    state, observed = 0, np.empty(length, int)
    for t in range(length):
        observed[t] = rng.choice(symbols, p=B[state])
        state = rng.choice(states, p=A[state])
    return observed


# -------------------------------------------------------------------------------------- the fitting


def flatten(parts) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in parts])


def unflatten(vector: np.ndarray, like) -> list:
    """`vector` cut into arrays (and floats) shaped as those of `like`."""
    parts, begin = [], 0
    for part in like:
        size = np.size(part)
        piece = vector[begin: begin + size]
        parts.append(piece.reshape(np.shape(part)).copy() if np.ndim(part) else float(piece[0]))
        begin += size
    return parts


def central_differences(function, x: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """The gradient by central differences of two widths, extrapolated."""
    slopes = np.empty_like(x)
    for k in range(len(x)):
        unit = np.zeros_like(x)
        unit[k] = step
        wide = (function(x + unit) - function(x - unit)) / (2 * step)
        narrow = (function(x + unit / 2) - function(x - unit / 2)) / step
        slopes[k] = (4 * narrow - wide) / 3
    return slopes


def median_seconds(call, count: int = 15) -> float:
    """How long `call()` takes: the median of `count` runs."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[count // 2]


def fit(name: str, loss, start: list, data: tuple, iterations: int, say) -> tuple[bool, list]:
    """Minimise `loss(*parameters, *data)`; returns whether its gradient agreed, and the parameters
    found.
    """
    say(f"\n== {name}: {sum(map(np.size, start))} parameters")
    argnums = tuple(range(len(start)))
    fast, slope = s2s.jit(loss), s2s.jit(s2s.value_and_grad(loss, argnums=argnums))

    def value(vector):
        return float(fast(*unflatten(vector, start), *data))

    def value_and_gradient(vector):
        y, bars = slope(*unflatten(vector, start), *data)
        return float(y), flatten(bars)

    x = flatten(start)
    began = time.perf_counter()
    value_and_gradient(x)
    say(f"   generated and compiled the gradient in {time.perf_counter() - began:.2f} s")
    began, seen = time.perf_counter(), []

    def progress(intermediate_result):
        seen.append(intermediate_result.fun)
        if len(seen) in (1, 2, 5) or len(seen) % 10 == 0:
            say(f"   iteration {len(seen):4d}   loss {seen[-1]:.6f}   {time.perf_counter() - began:6.2f} s"
                )

    found = minimize(value_and_gradient, x, jac=True, method="L-BFGS-B", callback=progress,
                     options={"maxiter": iterations, "maxcor": 20})
    seconds = time.perf_counter() - began
    say(f"   loss {value(x):.6f} -> {found.fun:.6f} in {found.nit} iterations, {found.nfev} evaluations, {seconds:.2f} s"
        )
    alone, both = median_seconds(lambda: value(x)), median_seconds(lambda: value_and_gradient(x))
    say(f"   the loss takes {1e3 * alone:.3f} ms, loss and gradient {1e3 * both:.3f} ms: {both / alone:.1f} times as long"
        )

    agreed = True
    for place, point in (("start", x), ("end", found.x)):
        # away from the optimum, where all slopes are nil
        point = point + 0.01 * np.cos(np.arange(len(point)))
        exact, approximate = value_and_gradient(point)[1], central_differences(value, point)
        error = np.max(np.abs(exact - approximate)) / max(np.max(np.abs(exact)), 1e-3)
        fine = bool(error < 1e-6)
        agreed = agreed and fine
        say(f"   near the {place}, the gradient {'agrees' if fine else 'DISAGREES'} with central differences: "
            f"relative error {error:.1e}")
    return agreed, unflatten(found.x, start)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less data and fewer iterations")
    quick = parser.parse_args(arguments).quick
    rng = np.random.default_rng(7)
    began = time.perf_counter()

    def say(line: str) -> None:
        print(line, flush=True)

    X, y = breast_cancer()
    checks = []
    agreed, (w, b) = fit("logistic regression, breast cancer", logistic_loss,
                         [np.zeros(X.shape[1]), 0.0], (X, y), 20 if quick else 200, say)
    say(f"   {np.mean((X @ w + b > 0) == (y > 0.5)):.1%} of the {len(y)} cases classified as they are"
        )
    checks.append(agreed)
    gradient = s2s.grad(logistic_loss, argnums=(0, 1))
    gradient(w, b, X, y)
    say("\n   Its derivative, as s2s generated it:\n")
    say("\n".join("   | " + line for line in gradient.source.strip().splitlines()))

    d, count, n = (2, 3, 200) if quick else (3, 4, 2000)
    points = mixture_points(n, d, count, rng)
    guess = [
        np.zeros(count), points[rng.choice(n, count, replace=False)],
        np.zeros((count, d * (d + 1) // 2))
    ]
    agreed, _ = fit(f"Gaussian mixture of {count}, {n} points", mixture_loss, guess,
                    (points, 1.0, 0.0), 20 if quick else 150, say)
    checks.append(agreed)

    states, symbols, length = (2, 3, 200) if quick else (4, 6, 3000)
    observed = markov_sequence(length, states, symbols, rng)
    guess = [
        rng.normal(0, 0.3, states),
        rng.normal(0, 0.3, (states, states)),
        rng.normal(0, 0.3, (states, symbols))
    ]
    agreed, _ = fit(f"hidden Markov model of {states} states, {length} observations", markov_loss,
                    guess, (observed,), 20 if quick else 150, say)
    checks.append(agreed)

    say(f"\n{sum(checks)} of {len(checks)} gradients agree with central differences; {time.perf_counter() - began:.1f} s in all"
        )
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
