"""The adjoint of a Fourier transform is one: that of rfft is irfft, in which bins that stand for two are divided by 2."""

import numpy as np


def f(u, c):
    n = len(u)
    k = 2 * np.pi * np.fft.rfftfreq(n, 1 / n)
    slope = np.fft.irfft(1j * k * np.fft.rfft(u), n)
    return np.sum(c * u * slope * slope)


ARGS = (np.array([0.3, 1.2, -0.4, 0.8, 0.1]), 0.7)
WRT = 0


# ------------------------------ the same, as the compiler sees it


def f_ssa(u: "float64[u.0]", c: "float64"):
    n: "int64" = len(u)
    t: "float64" = 1 / n
    t_1: "float64[d1]" = np.fft.rfftfreq(n, t)
    k: "float64[d1]" = 6.283185307179586 * t_1
    t_2: "complex128[d1]" = 1j * k
    t_3: "complex128[d1]" = np.fft.rfft(u)
    t_4: "complex128[d1]" = t_2 * t_3
    slope: "float64[u.0]" = np.fft.irfft(t_4, n)
    t_5: "float64[u.0]" = c * u
    t_6: "float64[u.0]" = t_5 * slope
    t_7: "float64[u.0]" = t_6 * slope
    t_8: "float64" = np.sum(t_7)
    return t_8


# ------------------------------ what s2s makes of it


def bin_counts(n):
    """How many of the n bins of a whole transform each bin of np.fft.rfft stands for: 1, or 2 with its mirror image."""
    counts = np.full(n // 2 + 1, 2, np.int8)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return counts


def f_grad(u, c):
    """The derivative of f (fourier_transform_backwards.py, line 6) with respect to u, for
    u: float64[:], c: float.
    """
    n = len(u)
    # line 3: k = 2 * np.pi * np.fft.rfftfreq(n, 1 / n)
    k = 6.283185307179586 * np.fft.rfftfreq(n, 1 / n)
    # line 4: slope = np.fft.irfft(1j * k * np.fft.rfft(u), n)
    t = 1j * k
    slope = np.fft.irfft(t * np.fft.rfft(u), n)
    # line 5: return np.sum(c * u * slope * slope)
    t_1 = c * u * slope
    # line 5, backwards
    slope_bar = t_1 + t_1
    # line 4, backwards
    t_2 = bin_counts(n)
    t_3 = np.conj(t_2 * np.conj(np.fft.rfft(slope_bar, norm="forward")) * t)
    u_bar = slope * slope * c + np.fft.irfft(t_3 / t_2, n, norm="forward")
    return u_bar
