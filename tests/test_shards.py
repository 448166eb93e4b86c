"""Arrays split over workers, and programs on their parts: against NumPy on the whole array."""

import numpy as np
import pytest

import s2s
from s2s import lax

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gather_puts_together_what_shard_cuts(axis):
    x = RNG.normal(size=(4, 6, 8))
    parts = s2s.shard(x, 2, axis)
    np.testing.assert_array_equal(np.concatenate(list(parts), axis), x)
    np.testing.assert_array_equal(s2s.gather(parts, axis), x)
    assert parts.flags.c_contiguous
    gradient = s2s.grad(lambda x: np.sum(s2s.gather(s2s.shard(x, 2, axis) ** 2, axis) * x))(x)
    np.testing.assert_allclose(gradient, 3 * x ** 2, rtol=1e-13)


def test_along_the_first_axis_nothing_is_copied():
    x = np.zeros((4, 3))
    assert np.shares_memory(s2s.shard(x, 2), x) and np.shares_memory(s2s.gather(s2s.shard(x, 2)), x)


def test_unequal_parts():
    with pytest.raises(ValueError, match="5 rows are split over 2 workers: as many for each"):
        s2s.shard(np.zeros(5), 2)


@pytest.mark.compile
def test_matrix_product():
    """Of blocks of columns by blocks of rows; each worker gets its rows of the sum."""
    def product(columns, rows):
        return lax.psum_scatter(columns @ rows, "i", tiled=True)

    A, B = RNG.normal(size=(6, 4)), RNG.normal(size=(4, 5))
    found = s2s.pmap(product, "i", workers=2)(s2s.shard(A, 2, 1), s2s.shard(B, 2))
    np.testing.assert_allclose(s2s.gather(found), A @ B, rtol=1e-12)


@pytest.mark.compile
def test_stencil_with_halo():
    """Each worker sends its ends to its neighbours, in each step; the gradient comes back so."""
    def diffused(u, steps):
        n = lax.axis_size("i")
        for _ in range(steps):
            left = lax.ppermute(u[-1:], "i", [(k, (k + 1) % 2) for k in range(2)])
            right = lax.ppermute(u[:1], "i", [(k, (k - 1) % 2) for k in range(2)])
            wide = np.concatenate((left, u, right))
            u = u + 0.25 * (wide[2:] - 2 * u + wide[:-2]) * (n - 1)
        return u

    over = s2s.pmap(diffused, "i", in_axes=(0, None), workers=2)

    def whole(u, steps):
        for _ in range(steps):
            u = u + 0.25 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        return u

    u, weight = RNG.normal(size=8), RNG.normal(size=8)
    np.testing.assert_allclose(s2s.gather(over(s2s.shard(u, 2), 5)), whole(u, 5), rtol=1e-12)
    slope = s2s.grad(lambda u: np.sum(s2s.gather(over(s2s.shard(u, 2), 5)) * weight))
    np.testing.assert_allclose(slope(u), whole(weight, 5), rtol=1e-11)  # it is symmetric
