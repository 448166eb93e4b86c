"""Black and Scholes's price of European calls, with all first Greeks: the gradient of the sum of
the prices.

By hand, one loop that shares the normal density between the Greeks.
"""

import math

import numpy as np
from numba import njit
from scipy.special import ndtr

WRT = (0, 1, 2, 3, 4)
SIZE = 1_000_000
KIND = "elementwise"
GROWTH = (1_000, 1_000_000)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    return (rng.uniform(50, 150, size), rng.uniform(50, 150, size), rng.uniform(0.1, 2, size),
            rng.uniform(0, 0.1, size), rng.uniform(0.1, 0.5, size))


def program(spot, strike, years, rate, vol):
    s = vol * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * vol * vol) * years) / s
    price = spot * ndtr(d1) - strike * np.exp(-rate * years) * ndtr(d1 - s)
    return np.sum(price)


def by_hand():
    @njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)
    def gradient(spot, strike, years, rate, vol):
        n = len(spot)
        spot_bar = np.empty(n)
        strike_bar = np.empty(n)
        years_bar = np.empty(n)
        rate_bar = np.empty(n)
        vol_bar = np.empty(n)
        value = 0.0
        for i in range(n):
            S, K, T, r, v = spot[i], strike[i], years[i], rate[i], vol[i]
            q = math.sqrt(T)
            s = v * q
            d1 = (math.log(S / K) + (r + 0.5 * v * v) * T) / s
            d2 = d1 - s
            N1, N2 = 0.5 * math.erfc(-d1 * 0.7071067811865476), 0.5 * math.erfc(
                -d2 * 0.7071067811865476)
            D = math.exp(-r * T)
            KD = K * D
            value += S * N1 - KD * N2
            density = 0.3989422804014327 * math.exp(-0.5 * d1 * d1) * S
            spot_bar[i] = N1
            strike_bar[i] = -D * N2
            rate_bar[i] = T * KD * N2
            vol_bar[i] = density * q
            years_bar[i] = density * v / (2 * q) + r * KD * N2
        return value, (spot_bar, strike_bar, years_bar, rate_bar, vol_bar)

    return gradient


def of_all_at_once(xp, cdf):
    """The same in a library that names its functions as NumPy does; `cdf` is the normal
    distribution's.
    """
    def program(spot, strike, years, rate, vol):
        s = vol * xp.sqrt(years)
        d1 = (xp.log(spot / strike) + (rate + 0.5 * vol * vol) * years) / s
        price = spot * cdf(d1) - strike * xp.exp(-rate * years) * cdf(d1 - s)
        return xp.sum(price)

    return program


def in_jax():
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    return of_all_at_once(jnp, ndtr)


def in_torch():
    import torch

    return of_all_at_once(torch, torch.special.ndtr)


def in_autograd():
    import autograd.numpy as anp
    from autograd.scipy.stats.norm import cdf

    return of_all_at_once(anp, cdf)
