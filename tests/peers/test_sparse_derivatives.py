"""Sparse derivatives of bundle adjustment, a PDE and a partially separable objective against JAX's
dense ones.
"""

import types

import numpy as np

import s2s


def with_jax(jax, f):
    """`f`, on JAX's arrays."""
    return types.FunctionType(f.__code__, {"np": jax.numpy})


def arrays(seed: int, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def reprojection(cameras, points, camera_of, point_of, seen):
    c, p = cameras[camera_of], points[point_of]
    axis = c[:, :3]
    theta = np.sqrt(np.sum(axis * axis, axis=1) + 1e-12)
    k = axis / theta[:, None]
    cos, sin = np.cos(theta)[:, None], np.sin(theta)[:, None]
    cross = np.stack([k[:, 1] * p[:, 2] - k[:, 2] * p[:, 1], k[:, 2] * p[:, 0] - k[:, 0] * p[:, 2],
                      k[:, 0] * p[:, 1] - k[:, 1] * p[:, 0]], axis=1)
    x = p * cos + cross * sin + k * (np.sum(k * p, axis=1)[:, None] * (1 - cos)) + c[:, 3:6]
    q = -x[:, :2] / x[:, 2:]
    r2 = np.sum(q * q, axis=1)
    return (q * (c[:, 6] * (1 + c[:, 7] * r2 + c[:, 8] * r2 * r2))[:, None] - seen).ravel()


def bratu(u):
    inside = (
        4 * u[1:-1, 1:-1]
        - u[:-2, 1:-1]
        - u[2:, 1:-1]
        - u[1:-1, :-2]
        - u[1:-1, 2:]
        - np.exp(u[1:-1, 1:-1])
    )
    return inside * u[1:-1, 1:-1]


def separable(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2) + np.sum(
        np.logaddexp(x[2:], x[:-2])
    )


def test_bundle_adjustment(jax):
    cameras, points, seen = arrays(0, (4, 9), (10, 3), (40, 2))
    points[:, 2] += 10.0
    args = cameras, points, np.repeat(np.arange(4), 10), np.tile(np.arange(10), 4), seen
    jacobian = s2s.jacobian(reprojection, (0, 1), sparse=True)
    wanted = jax.jacfwd(with_jax(jax, reprojection), (0, 1))(*args)
    for found, w in zip(jacobian(*args), wanted):
        np.testing.assert_allclose(
            found.toarray(), np.asarray(w).reshape(80, -1), rtol=1e-9, atol=1e-9
        )
    plan = jacobian.plan(*args)
    assert plan.pattern.nnz == 80 * 12 and plan.sweeps <= 12


def test_a_pde(jax):
    (u,) = arrays(1, (9, 8))
    found = s2s.jacobian(bratu, sparse=True)(u)
    np.testing.assert_allclose(
        found.toarray(),
        np.asarray(jax.jacrev(with_jax(jax, bratu))(u)).reshape(42, 72),
        rtol=1e-12,
        atol=1e-13,
    )


def test_a_partially_separable_objective(jax):
    (x,) = arrays(2, (30,))
    hessian = s2s.hessian(separable, sparse=True)
    np.testing.assert_allclose(
        hessian(x).toarray(),
        np.asarray(jax.hessian(with_jax(jax, separable))(x)),
        rtol=1e-10,
        atol=1e-11,
    )
    assert hessian.plan(x).pattern.nnz == 30 + 2 * 29 + 2 * 28
