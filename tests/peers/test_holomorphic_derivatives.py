"""Complex derivatives are those of JAX: of holomorphic functions, and of real functions of complex
numbers.
"""

import numpy as np
import pytest

import s2s


def programs(np):
    def polynomial(z):
        return np.sum(z ** 3) * z[0] + np.sin(z[1])

    def quotient(z):
        return np.exp(z[0] * 0.3) / (z[1] + 2.0) * np.tanh(z[0])

    def modulus(z):
        return np.sum(np.abs(z) ** 2) + np.abs(z[0])

    def parts(z):
        return z[0].real * z[1].imag + np.angle(z[0]) + np.real(np.conj(z[0]) * z[1])

    return {"polynomial": polynomial, "quotient": quotient, "modulus": modulus, "parts": parts}


@pytest.mark.parametrize(
    "name, holomorphic",
    [("polynomial", True), ("quotient", True), ("modulus", False), ("parts", False)],
)
def test_gradients(jax, name, holomorphic):
    z = np.array([0.4 - 0.3j, 0.2 + 0.9j])
    ours, theirs = programs(np)[name], programs(jax.numpy)[name]
    np.testing.assert_allclose(
        s2s.grad(ours, holomorphic=holomorphic)(z),
        jax.grad(theirs, holomorphic=holomorphic)(z),
        rtol=1e-12,
    )
    if holomorphic:
        np.testing.assert_allclose(
            s2s.hessian(ours, holomorphic=True)(z),
            jax.hessian(theirs, holomorphic=True)(z),
            rtol=1e-11,
            atol=1e-14,
        )
