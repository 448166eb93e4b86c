"""Functions whose results have another length than their arguments, under vmap: against stacked
calls of NumPy.
"""

import numpy as np
import pytest

import s2s

rng = np.random.default_rng(3)
V, W, M = rng.normal(size=(3, 6)), rng.normal(size=(3, 4)), rng.normal(size=(3, 5, 4))


def singular_values(v, w, m):
    return np.linalg.svd(m, compute_uv=False)


def best_of_rank_one(v, w, m):
    u, s, vh = np.linalg.svd(m, full_matrices=False)
    return s[0] * np.outer(u[:, 0], vh[0])


def projected(v, w, m):
    q, r = np.linalg.qr(m)
    return q @ (q.T @ v[:5]) + np.abs(r @ w)[0]


def upright(v, w, m):
    return np.abs(np.linalg.qr(m.T)[1])


def least_squares(v, w, m):
    return np.linalg.lstsq(m, v[:5], rcond=None)[0]


def convolved(v, w, m):
    return np.convolve(v, w) * np.sum(v)


def convolved_inside(v, w, m):
    return np.convolve(v, w, "valid"), np.convolve(v, w, "same"), np.correlate(v, w, "full")


def inserted(v, w, m):
    return np.insert(v, 2, w[0])


def deleted(v, w, m):
    return np.delete(v, 2) * w[0], np.delete(v, [1, 3]), np.delete(m, 1, axis=0), np.delete(m, 0, 1)


def deleted_elsewhere(v, w, m):
    return np.delete(v, np.argmax(v))


def appended(v, w, m):
    return np.append(v, w[0])


def polynomial(v, w, m):
    return np.poly(v)


def of_its_length(v, w, m):
    y = np.convolve(v, w)
    z = np.zeros(len(y))
    for k in range(len(y)):
        z[k] = y[k] * k if y[k] > 0 else 0.0
    return z


def product_of_polynomials(v, w, m):
    return np.polymul(v, w)


def counted(v, w, m):
    return np.bincount((4 * np.abs(np.tanh(v))).astype(int), weights=v, minlength=5) * w[0]


def larger_half(v, w, m):
    y = v[v > np.median(v)]
    return y * w[0], np.sort(y)


def zeros_of_polynomial(v, w, m):
    return np.sort(np.abs(np.roots(v)))


PROGRAMS = (singular_values, best_of_rank_one, projected, upright, least_squares, convolved,
            convolved_inside, inserted, deleted, deleted_elsewhere, appended, polynomial,
            of_its_length, product_of_polynomials, counted, larger_half, zeros_of_polynomial)


def agree(got, expected, tolerance=1e-10):
    for a, b in zip(s2s.tree.leaves(got), s2s.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def stacked(f):
    lanes = [f(*args) for args in zip(V, W, M)]
    return s2s.tree.map(lambda *xs: np.stack(xs), *lanes)


@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_gradients(f):
    agree(s2s.vmap(f)(V, W, M), stacked(f))
    if f in (polynomial, zeros_of_polynomial):  # steep slopes
        return
    gradient = s2s.grad(lambda *xs: sum(np.sum(np.sin(y)) for y in s2s.tree.leaves(f(*xs))),
                        (0, 1, 2))
    agree(s2s.vmap(gradient)(V, W, M), stacked(gradient))


@pytest.mark.compile
def test_compiled():
    for f in (projected, convolved, larger_half):
        agree(s2s.jit(s2s.vmap(f))(V, W, M), stacked(f))


def test_without_lanes():
    found = s2s.vmap(convolved)(V[:0], W[:0], M[:0])
    assert found.shape == (0, 9)
