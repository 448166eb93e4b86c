"""Bundle adjustment: half the squared error of points seen by cameras with radial distortion, from
Snavely's model.

By hand, one observation after the other in scalars, scattered into the cotangents of its camera and
its point.
"""

import math

import numpy as np
from numba import njit

WRT = (0, 1)
SIZE = 20_000
KIND = "elementwise"
GROWTH = (500, 500_000)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    n, m, p = 50, 2000, size
    cameras = np.concatenate([
        0.2 * rng.normal(size=(n, 3)),
        rng.normal(size=(n, 2)), 6 + rng.normal(size=(n, 1)), 1 + 0.1 * rng.random(
            (n, 1)), 0.01 * rng.normal(size=(n, 2))
    ], axis=1)
    points = rng.normal(size=(m, 3))
    return cameras, points, rng.integers(0, n, p), rng.integers(0, m, p), rng.normal(size=(p, 2))


def program(cameras, points, which, seen, pixels):
    c, p = cameras[which], points[seen]
    rx, ry, rz = c[:, 0], c[:, 1], c[:, 2]
    x, y, z = p[:, 0], p[:, 1], p[:, 2]
    theta2 = rx * rx + ry * ry + rz * rz + 1e-12
    theta = np.sqrt(theta2)
    cos, sinc, cosc = np.cos(theta), np.sin(theta) / theta, (1 - np.cos(theta)) / theta2
    along = (rx * x + ry * y + rz * z) * cosc
    u = x * cos + (ry * z - rz * y) * sinc + rx * along + c[:, 3]
    v = y * cos + (rz * x - rx * z) * sinc + ry * along + c[:, 4]
    w = z * cos + (rx * y - ry * x) * sinc + rz * along + c[:, 5]
    u, v = -u / w, -v / w
    r2 = u * u + v * v
    scale = c[:, 6] * (1 + c[:, 7] * r2 + c[:, 8] * r2 * r2)
    du, dv = u * scale - pixels[:, 0], v * scale - pixels[:, 1]
    return 0.5 * np.sum(du * du + dv * dv)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(cameras, points, which, seen, pixels):
        cameras_bar = np.zeros(cameras.shape)
        points_bar = np.zeros(points.shape)
        value = 0.0
        for i in range(len(which)):
            k, l = which[i], seen[i]
            r0, r1, r2 = cameras[k, 0], cameras[k, 1], cameras[k, 2]
            X0, X1, X2 = points[l, 0], points[l, 1], points[l, 2]
            th2 = r0 * r0 + r1 * r1 + r2 * r2 + 1e-12
            th = math.sqrt(th2)
            co, si = math.cos(th), math.sin(th)
            sinc, cosc = si / th, (1 - co) / th2
            c0, c1, c2 = r1 * X2 - r2 * X1, r2 * X0 - r0 * X2, r0 * X1 - r1 * X0
            d = r0 * X0 + r1 * X1 + r2 * X2
            dc = d * cosc
            P0 = X0 * co + c0 * sinc + r0 * dc + cameras[k, 3]
            P1 = X1 * co + c1 * sinc + r1 * dc + cameras[k, 4]
            P2 = X2 * co + c2 * sinc + r2 * dc + cameras[k, 5]
            iz = 1.0 / P2
            p0, p1 = -P0 * iz, -P1 * iz
            q = p0 * p0 + p1 * p1
            f, k1, k2 = cameras[k, 6], cameras[k, 7], cameras[k, 8]
            g = 1 + k1 * q + k2 * q * q
            D = f * g
            e0, e1 = p0 * D - pixels[i, 0], p1 * D - pixels[i, 1]
            value += 0.5 * (e0 * e0 + e1 * e1)
            D_bar = e0 * p0 + e1 * p1
            q_bar = D_bar * f * (k1 + 2 * k2 * q)
            p0_bar, p1_bar = e0 * D + 2 * q_bar * p0, e1 * D + 2 * q_bar * p1
            P0_bar, P1_bar = -p0_bar * iz, -p1_bar * iz
            P2_bar = -(p0_bar * p0 + p1_bar * p1) * iz
            co_bar = P0_bar * X0 + P1_bar * X1 + P2_bar * X2
            sinc_bar = P0_bar * c0 + P1_bar * c1 + P2_bar * c2
            dc_bar = P0_bar * r0 + P1_bar * r1 + P2_bar * r2
            d_bar, cosc_bar = dc_bar * cosc, dc_bar * d
            c0_bar, c1_bar, c2_bar = P0_bar * sinc, P1_bar * sinc, P2_bar * sinc
            th2_bar = -cosc_bar * cosc / th2
            co_bar2 = co_bar - cosc_bar / th2
            th_bar = sinc_bar * (co - sinc) / th - co_bar2 * si
            th2_bar += th_bar / (2 * th)
            points_bar[l, 0] += P0_bar * co + d_bar * r0 + c1_bar * r2 - c2_bar * r1
            points_bar[l, 1] += P1_bar * co + d_bar * r1 + c2_bar * r0 - c0_bar * r2
            points_bar[l, 2] += P2_bar * co + d_bar * r2 + c0_bar * r1 - c1_bar * r0
            cameras_bar[
                k, 0] += P0_bar * dc + d_bar * X0 + 2 * th2_bar * r0 + c2_bar * X1 - c1_bar * X2
            cameras_bar[
                k, 1] += P1_bar * dc + d_bar * X1 + 2 * th2_bar * r1 + c0_bar * X2 - c2_bar * X0
            cameras_bar[
                k, 2] += P2_bar * dc + d_bar * X2 + 2 * th2_bar * r2 + c1_bar * X0 - c0_bar * X1
            cameras_bar[k, 3] += P0_bar
            cameras_bar[k, 4] += P1_bar
            cameras_bar[k, 5] += P2_bar
            cameras_bar[k, 6] += D_bar * g
            cameras_bar[k, 7] += D_bar * f * q
            cameras_bar[k, 8] += D_bar * f * q * q
        return value, (cameras_bar, points_bar)

    return gradient


def of_all_at_once(xp):
    """The same with arrays of all observations, in a library that names its functions as NumPy
    does.
    """
    def program(cameras, points, which, seen, pixels):
        c, p = cameras[which], points[seen]
        rx, ry, rz = c[:, 0], c[:, 1], c[:, 2]
        x, y, z = p[:, 0], p[:, 1], p[:, 2]
        theta2 = rx * rx + ry * ry + rz * rz + 1e-12
        theta = xp.sqrt(theta2)
        cos, sinc, cosc = xp.cos(theta), xp.sin(theta) / theta, (1 - xp.cos(theta)) / theta2
        along = (rx * x + ry * y + rz * z) * cosc
        u = x * cos + (ry * z - rz * y) * sinc + rx * along + c[:, 3]
        v = y * cos + (rz * x - rx * z) * sinc + ry * along + c[:, 4]
        w = z * cos + (rx * y - ry * x) * sinc + rz * along + c[:, 5]
        u, v = -u / w, -v / w
        r2 = u * u + v * v
        scale = c[:, 6] * (1 + c[:, 7] * r2 + c[:, 8] * r2 * r2)
        du, dv = u * scale - pixels[:, 0], v * scale - pixels[:, 1]
        return 0.5 * xp.sum(du * du + dv * dv)

    return program


def in_jax():
    import jax.numpy as jnp

    return of_all_at_once(jnp)


def in_torch():
    import torch

    return of_all_at_once(torch)


def in_autograd():
    import autograd.numpy as anp

    return of_all_at_once(anp)
