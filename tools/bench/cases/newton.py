"""The rate at which payments are worth their price: one `while` loop of Newton's steps, each a sum
over all payments.

The more payments there are, the smaller is the rate, so that as many of them count: what is far
beyond is below the smallest normal number, and some processors take a hundred times as long for
such.  The adjoint by hand keeps the rate of each step, and runs the sums again, but for steps that
were halved, whose sums had no part; so does the generated one (analysis/zero_cotangents.py).
"""

import numpy as np
from numba import njit

WRT = (0, 1)
SIZE = 1000  # payments
KIND = "loops"
GROWTH = (100, 1_000_000)


def arguments(size=SIZE):
    rng = np.random.default_rng(0)
    payments = rng.uniform(0.5, 1.5, size)
    return payments, float(payments @ (1.0 + 30.0 / size) ** -np.arange(1.0, size + 1))


def program(payments, price):
    rate = 100.0 / len(payments)
    step = 1.0
    while abs(step) > 1e-12:
        value = 0.0
        slope = 0.0
        discount = 1.0 / (1.0 + rate)
        factor = 1.0
        for k in range(len(payments)):
            factor = factor * discount
            value = value + payments[k] * factor
            slope = slope - (k + 1) * payments[k] * factor * discount
        step = (value - price) / slope
        if rate - step < 0.5 * rate:
            step = 0.5 * rate
        rate = rate - step
    return rate


def by_hand():
    @njit(error_model="numpy", fastmath={"contract"}, nogil=True)
    def gradient(payments, price):
        n = len(payments)
        rates, values, slopes = np.empty(64), np.empty(64), np.empty(64)
        rate, step, count = 100.0 / n, 1.0, 0
        while abs(step) > 1e-12:
            value, slope, factor, discount = 0.0, 0.0, 1.0, 1.0 / (1.0 + rate)
            for k in range(n):
                factor *= discount
                t = payments[k] * factor
                value += t
                slope -= (k + 1) * t
            slope *= discount
            rates[count], values[count], slopes[count] = rate, value, slope
            count += 1
            step = (value - price) / slope
            if rate - step < 0.5 * rate:
                step = 0.5 * rate
            rate -= step
        rate_bar, price_bar = 1.0, 0.0
        payments_bar = np.zeros(n)
        for trip in range(count - 1, -1, -1):
            r, value, slope = rates[trip], values[trip], slopes[trip]
            step = (value - price) / slope
            if r - step < 0.5 * r:
                rate_bar *= 0.5
                continue
            value_bar = -rate_bar / slope
            slope_bar = -step * value_bar
            price_bar -= value_bar
            # value and slope are sums over k of p[k] d^k and -k p[k] d^(k + 1)
            discount = 1.0 / (1.0 + r)
            factor, second = 1.0, 0.0
            for k in range(1, n + 1):
                factor *= discount
                payments_bar[k - 1] += factor * (value_bar - k * discount * slope_bar)
                second += k * (k + 1) * payments[k - 1] * factor
            # d value / d rate is slope; d slope / d rate is sum of k (k + 1) p[k] d^(k + 2)
            rate_bar += value_bar * slope + slope_bar * second * discount * discount
        return rate, payments_bar, price_bar

    return gradient


def in_jax():
    """JAX's reverse mode refuses `while_loop`; a root is differentiated by what it solves."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def program(payments, price):
        k = jnp.arange(1, payments.shape[0] + 1)

        def excess(rate):
            return jnp.sum(payments * (1.0 + rate) ** -k) - price

        def solve(excess, rate):
            def body(state):
                rate, _ = state
                value, slope = jax.value_and_grad(excess)(rate)
                step = value / slope
                step = jnp.where(rate - step < 0.5 * rate, 0.5 * rate, step)
                return rate - step, step

            return lax.while_loop(lambda state: jnp.abs(state[1]) > 1e-12, body,
                                  (rate, jnp.ones_like(rate)))[0]

        return lax.custom_root(excess, 100.0 / payments.shape[0], solve,
                               lambda linear, y: y / linear(jnp.ones_like(y)))

    return program


def in_torch():
    import torch

    def program(payments, price):
        k = torch.arange(1, len(payments) + 1, dtype=torch.float64)
        rate, step = torch.tensor(100.0 / len(payments), dtype=torch.float64), 1.0
        while abs(step) > 1e-12:
            terms = payments * (1.0 + rate) ** -k
            step = (terms.sum() - price) / -((k * terms).sum() / (1.0 + rate))
            if rate - step < 0.5 * rate:
                step = 0.5 * rate
            rate = rate - step
        return rate

    return program


def in_autograd():
    import autograd.numpy as anp

    def program(payments, price):
        k = np.arange(1.0, len(payments) + 1)
        rate, step = 100.0 / len(payments), 1.0
        while abs(step) > 1e-12:
            terms = payments * (1.0 + rate) ** -k
            step = (anp.sum(terms) - price) / -(anp.sum(k * terms) / (1.0 + rate))
            if rate - step < 0.5 * rate:
                step = 0.5 * rate
            rate = rate - step
        return rate

    return program
