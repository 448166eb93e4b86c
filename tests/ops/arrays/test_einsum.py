"""Cotangents of np.einsum where an axis of length 1 is spread along those of others."""

import numpy as np
import pytest

import s2s

SPREAD = {
    "mil,im->iml": ((1, 2, 2), (1, 4)),
    "kji,ijk->": ((2, 4, 4), (4, 4, 1)),
    "jlk,l,mlj->mk": ((4, 4, 3), (1,), (2, 1, 1)),
    "lk,jmk->": ((4, 1), (2, 3, 4)),
    "l,mjl->jlm": ((1,), (2, 4, 4)),
    "ij,ljk,m->": ((2, 4), (3, 1, 3), (4,)),
    "ij,jk->ik": ((2, 1), (3, 4)),
}


@pytest.mark.parametrize("subscripts", SPREAD)
def test_axes_of_length_1(subscripts):
    rng = np.random.default_rng(0)
    args = tuple(rng.normal(size=shape) for shape in SPREAD[subscripts])

    def f(*xs):
        return np.sum(np.einsum(subscripts, *xs) ** 2)

    for k, x in enumerate(args):
        slope, expected = s2s.grad(f, argnums=k)(*args), np.zeros_like(x)
        for place in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[place] = 1e-6
            ends = [f(*args[:k], x + sign * step, *args[k + 1:]) for sign in (1, -1)]
            expected[place] = (ends[0] - ends[1]) / 2e-6
        assert slope.shape == x.shape
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


def test_lengths_that_only_a_run_tells():
    def f(x, y, mask):
        return np.sum(np.einsum("ij,j->ij", x[mask], y) ** 2)

    x, y = np.arange(6.0).reshape(3, 2), np.array([0.5, 2.0])
    for mask in ([True, False, False], [True, True, False]):
        mask = np.array(mask)
        x_bar, y_bar = s2s.grad(f, argnums=(0, 1))(x, y, mask)
        np.testing.assert_allclose(x_bar, np.where(mask[:, None], 2 * x * y**2, 0.0))
        np.testing.assert_allclose(y_bar, 2 * y * np.sum(x[mask] ** 2, axis=0))


def test_a_transpose_said_by_einsum_shares_memory():
    def f(a, b):
        A = np.outer(a, b)  # noqa: N806
        B = A @ A.T  # noqa: N806
        # the cotangent of B is a transpose, and written into
        return np.einsum("ii", B) + np.einsum("ij,ji->", B, np.sin(A))

    x, dots = (
        (np.array([0.3, -0.7]), np.array([1.1, 0.4])),
        (np.array([1.0, 0.5]), np.array([-0.6, 0.8])),
    )
    moved = [
        s2s.grad(f, argnums=(0, 1))(*(u + h * d for u, d in zip(x, dots))) for h in (1e-5, -1e-5)
    ]
    for found, up, down in zip(s2s.hvp(f, x, dots, argnums=(0, 1)), *moved):
        np.testing.assert_allclose(found, (up - down) / 2e-5, rtol=1e-7)
