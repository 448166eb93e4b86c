"""Sparse against dense derivatives: time and memory for the Jacobians and Hessians that large
problems have.

    python tools/bench/sparse.py [--quick]

Each line is one problem of one size: the matrix and its pattern, the sweeps (colours), how long it
took to find the pattern and to colour it, once, and then how long each further call takes, in the
interpreter and compiled; dense, the same by `s2s.jacobian` or `s2s.hessian`, where the matrix fits.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import s2s

DENSE = 5e7  # bytes: larger matrices are not made dense


def residual_1d(u, nu, dt, old):
    """Burgers' equation, implicit, on a line: three points."""
    r = u - old
    r[1:-1] += dt * (u[1:-1] * (u[2:] - u[:-2]) / 2 - nu * (u[2:] - 2 * u[1:-1] + u[:-2]))
    return r


def residual_loop(u, nu, dt, old):
    """The same, point by point."""
    r = u - old
    for i in range(1, len(u) - 1):
        r[i] += dt * (u[i] * (u[i + 1] - u[i - 1]) / 2 - nu * (u[i + 1] - 2 * u[i] + u[i - 1]))
    return r


def residual_2d(u, lam):
    """Bratu's equation on a square: five points."""
    r = u.copy()
    r[1:-1, 1:-1] = (4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
                     - lam * np.exp(u[1:-1, 1:-1]))
    return r


def reprojection(cameras, points, camera_of, point_of, seen):
    """Bundle adjustment: rotate (Rodrigues), move, project, distort; two residuals for each
    observation.
    """
    c, p = cameras[camera_of], points[point_of]
    axis = c[:, :3]
    square = np.sum(axis * axis, axis=1) + 1e-12
    theta = np.sqrt(square)
    k = axis / theta[:, None]
    cos, sin = np.cos(theta)[:, None], np.sin(theta)[:, None]
    cross = np.stack([k[:, 1] * p[:, 2] - k[:, 2] * p[:, 1], k[:, 2] * p[:, 0] - k[:, 0] * p[:, 2],
                      k[:, 0] * p[:, 1] - k[:, 1] * p[:, 0]], axis=1)
    x = p * cos + cross * sin + k * (np.sum(k * p, axis=1)[:, None] * (1 - cos)) + c[:, 3:6]
    q = -x[:, :2] / x[:, 2:]
    r2 = np.sum(q * q, axis=1)
    scale = c[:, 6] * (1 + c[:, 7] * r2 + c[:, 8] * r2 * r2)
    return (q * scale[:, None] - seen).ravel()


def separable(x):
    """Rosenbrock's function of many numbers: a sum of terms of two neighbours."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def separable_loop(x):
    """The same, term by term."""
    total = 0.0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def adjustment(rng, cameras: int, points: int, per_point: int) -> tuple:
    """Cameras around a cloud of points, each of which some of them see."""
    c = np.zeros((cameras, 9))
    c[:, :3] = rng.normal(size=(cameras, 3)) * 0.2
    c[:, 3:6] = rng.normal(size=(cameras, 3)) * 0.1 + np.array([0.0, 0.0, -8.0])
    c[:, 6:] = np.array([500.0, -0.01, 0.001])
    camera_of = np.concatenate(
        [rng.choice(cameras, per_point, replace=False) for _ in range(points)])
    point_of = np.repeat(np.arange(points), per_point)
    p = rng.normal(size=(points, 3))
    seen = rng.normal(size=(points * per_point, 2))
    return c, p, camera_of, point_of, seen


def problems(quick: bool):
    """(name, function, arguments, argnums, whether it is a Hessian)."""
    rng = np.random.default_rng(0)
    for n in (200, 1000) if quick else (200, 2000, 100_000):
        u = np.sin(np.linspace(0, 3, n))
        yield f"Burgers, {n} points", residual_1d, (u, 0.1, 0.01, u), 0, False
    for n in (200,) if quick else (200, 2000, 20_000):
        u = np.sin(np.linspace(0, 3, n))
        yield f"Burgers in a loop, {n} points", residual_loop, (u, 0.1, 0.01, u), 0, False
    for n in (20,) if quick else (20, 45, 300):
        yield f"Bratu, {n} x {n} points", residual_2d, (rng.normal(size=(n, n)), 1.0), 0, False
    for cameras, points in ((5, 30),) if quick else ((5, 30), (10, 200), (100, 10_000)):
        yield (f"bundle adjustment, {cameras} cameras, {points} points", reprojection,
               adjustment(rng, cameras, points, 4), (0, 1), False)
    for n in (200,) if quick else (200, 2000, 100_000):
        yield f"Rosenbrock, {n} numbers", separable, (rng.normal(size=n),), 0, True
    for n in (200,) if quick else (200, 2000, 20_000):
        yield f"Rosenbrock in a loop, {n} numbers", separable_loop, (rng.normal(size=n),), 0, True


def seconds(run, enough: float = 0.3) -> float:
    """The least time of a few calls."""
    best, start = np.inf, time.perf_counter()
    while True:
        before = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - before)
        if now - start > enough:
            return best


def shown(t: float | None) -> str:
    """A time."""
    if t is None:
        return "-"
    return f"{t:.1f} s" if t >= 1 else f"{t * 1e3:.1f} ms" if t >= 1e-3 else f"{t * 1e6:.0f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    print(
        f"{'':44} {'matrix':>16} {'entries':>8} {'sweeps':>6} {'pattern':>9} {'sparse':>9} {'compiled':>9} {'dense':>9} {'compiled':>9} {'dense/sparse':>12}"
    )
    for name, f, args, argnums, second in problems(quick):
        transform = s2s.hessian if second else s2s.jacobian
        sparse = transform(f, argnums, sparse=True)
        sparse(*args)  # code is generated
        again = transform(f, argnums, sparse=True)
        again.sweeps = sparse.sweeps
        start = time.perf_counter()
        plan = again.plan(*args)
        found = time.perf_counter() - start
        fast = s2s.jit(transform(f, argnums, sparse=True))
        fast(*args)
        times = [seconds(lambda: sparse(*args)), seconds(lambda: fast(*args))]
        if 8 * plan.pattern.shape[0] * plan.pattern.shape[1] <= DENSE:
            dense, native = transform(f, argnums), s2s.jit(transform(f, argnums))
            dense(*args), native(*args)
            times += [seconds(lambda: dense(*args)), seconds(lambda: native(*args))]
        else:
            times += [None, None]
        gain = "-" if times[3] is None else f"{times[3] / times[1]:.1f}"
        size = "{} x {}".format(*plan.pattern.shape)
        print(f"{name:44} {size:>16} {plan.pattern.nnz:>8} {plan.sweeps:>6} {shown(found):>9} "
              f"{' '.join(f'{shown(t):>9}' for t in times)} {gain:>12}", flush=True)


if __name__ == "__main__":
    main()
