"""What docs/non-smooth.md says of JAX is what JAX does."""

import numpy as np
import pytest
from non_smooth import POINTS


@pytest.mark.parametrize(
    "point", [p for p in POINTS if p.jax is not None], ids=lambda p: f"{p.text} at {p.at}"
)
def test_jax(jax, point):
    def f(x):
        return jax.numpy.sum(eval(point.text, {"np": jax.numpy, "x": x}))

    at = jax.numpy.array(point.at)
    slope = jax.grad(f)(at)
    np.testing.assert_allclose(slope, point.jax, rtol=1e-12)
