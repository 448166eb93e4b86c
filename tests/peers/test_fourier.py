"""Derivatives of Fourier transforms are those of JAX, of real and of complex numbers."""

import numpy as np
import pytest

import s2s

RNG = np.random.default_rng(4)


def programs(np):
    def filtered(x):
        return np.sum(
            np.tanh(
                np.fft.irfft(np.fft.rfft(x) * np.exp(-np.arange(x.shape[-1] // 2 + 1)), x.shape[-1])
            )
        )

    def spectrum(x):
        return np.sum(np.log1p(np.abs(np.fft.rfft(x, 5, axis=0, norm="ortho")) ** 2))

    def padded(z):
        return np.sum(np.abs(np.fft.fft(z, 9) - np.fft.ifft(z, 9, norm="forward")) ** 3)

    def image(z):
        return np.sum(np.abs(np.fft.fft2(z)) ** 2 * np.abs(np.fft.ifftn(z, axes=(0,))[0]))

    def bins(z):
        return np.sum(np.fft.irfft2(z, (5, 6)) ** 3) + np.sum(np.fft.hfft(z, 7, axis=0) ** 2)

    def mirrored(x):
        return np.sum(np.abs(np.fft.ihfft(x, 3)) ** 4) + np.sum(
            np.abs(np.fft.rfftn(x, axes=(1, 0))) ** 3
        )

    def turned(z):
        return np.real(
            np.fft.fftshift(z * z)[0, 1]
            * np.sum(np.fft.fftfreq(z.shape[1], 0.3) * np.fft.ifftshift(z, 1))
        )

    return {f.__name__: f for f in (filtered, spectrum, mirrored, padded, image, bins, turned)}


@pytest.mark.parametrize("name", programs(np))
def test_gradients(jax, name):
    x = RNG.normal(size=(4, 5))
    if name in ("padded", "image", "bins", "turned"):
        x = x + 1j * RNG.normal(size=x.shape)
    d = RNG.normal(size=x.shape).astype(x.dtype)
    ours, theirs = programs(np)[name], programs(jax.numpy)[name]
    np.testing.assert_allclose(s2s.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        s2s.jvp(s2s.grad(ours), (x,), (d,))[1],
        jax.jvp(jax.grad(theirs), (x,), (d,))[1],
        rtol=1e-9,
        atol=1e-9,
    )
