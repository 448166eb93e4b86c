"""Kernels written by hand, with which those of examples and of lanes are compared: contiguous
arrays, unsigned indices, no tests that the generated ones have not.
"""

import math

import numpy as np
from numba import cuda, float32, float64, int64, uint32


def fused_gradient(n, x, y, y_bar, x_bar):
    i = uint32(cuda.grid(1))
    while i < uint32(n):
        e, h = math.exp(-x[i]), math.tanh(y[i])
        x_bar[i] = math.cos(x[i]) * y[i] - e * h
        y_bar[i] = math.sin(x[i]) + e * (1.0 - h * h)
        i = uint32(i + cuda.gridsize(1))


def single(n, x, two, out):
    i = uint32(cuda.grid(1))
    one, zero = float32(1), float32(0)
    while i < uint32(n):
        v = x[i]
        sign = one if v > zero else -one if v < zero else v * zero
        y = two * math.sqrt(v) + float32(1.5) * v + (one - v * v) / float32(3) - sign
        s = y if y > zero else float32(0.1) * y
        s += v if not v < one else one
        s += max(v, zero) + math.log1p(math.exp(-abs(v)))
        s += y if y != y else min(max(y, -one), one)
        out[i] = s
        i = uint32(i + cuda.gridsize(1))


def softmax_gradient(n, m, x, w, e, ratio, is_largest):
    """One block for each row; sums by a tree in shared memory."""
    shared = cuda.shared.array(128, float64)
    t = uint32(cuda.threadIdx.x)
    i = uint32(cuda.blockIdx.x)
    while i < uint32(n):
        largest = -np.inf
        j = t
        while j < uint32(m):
            largest = max(largest, x[i, j])
            j = uint32(j + cuda.blockDim.x)
        shared[t] = largest
        cuda.syncthreads()
        half = uint32(cuda.blockDim.x // 2)
        while half > 0:
            if t < half:
                shared[t] = max(shared[t], shared[t + half])
            cuda.syncthreads()
            half = uint32(half // 2)
        largest = shared[0]
        cuda.syncthreads()
        total = 0.0
        j = t
        while j < uint32(m):
            e[i, j] = math.exp(x[i, j] - largest)
            total += e[i, j]
            j = uint32(j + cuda.blockDim.x)
        shared[t] = total
        cuda.syncthreads()
        half = uint32(cuda.blockDim.x // 2)
        while half > 0:
            if t < half:
                shared[t] += shared[t + half]
            cuda.syncthreads()
            half = uint32(half // 2)
        total = shared[0]
        cuda.syncthreads()
        dot = 0.0
        j = t
        while j < uint32(m):
            ratio[i, j] = w[i, j] / total
            dot -= w[i, j] * (e[i, j] / total) / total
            j = uint32(j + cuda.blockDim.x)
        shared[t] = dot
        cuda.syncthreads()
        half = uint32(cuda.blockDim.x // 2)
        while half > 0:
            if t < half:
                shared[t] += shared[t + half]
            cuda.syncthreads()
            half = uint32(half // 2)
        dot = shared[0]
        cuda.syncthreads()
        slope, count = 0.0, 0.0
        j = t
        while j < uint32(m):
            bar = (ratio[i, j] + dot) * e[i, j]
            slope += bar
            is_largest[i, j] = x[i, j] == largest
            count += 1.0 if is_largest[i, j] else 0.0
            e[i, j] = bar
            j = uint32(j + cuda.blockDim.x)
        shared[t] = slope
        cuda.syncthreads()
        half = uint32(cuda.blockDim.x // 2)
        while half > 0:
            if t < half:
                shared[t] += shared[t + half]
            cuda.syncthreads()
            half = uint32(half // 2)
        slope = shared[0]
        cuda.syncthreads()
        shared[t] = count
        cuda.syncthreads()
        half = uint32(cuda.blockDim.x // 2)
        while half > 0:
            if t < half:
                shared[t] += shared[t + half]
            cuda.syncthreads()
            half = uint32(half // 2)
        slope /= shared[0]
        cuda.syncthreads()
        j = t
        while j < uint32(m):
            if is_largest[i, j]:
                e[i, j] -= slope
            j = uint32(j + cuda.blockDim.x)
        i = uint32(i + cuda.gridDim.x)


def newton(n, a, tolerance, out):
    i = uint32(cuda.grid(1))
    while i < uint32(n):
        v = a[i]
        x = v + 1.0
        while abs(x * x - v) > tolerance:
            x = 0.5 * (x + v / x)
        out[i] = x
        i = uint32(i + cuda.gridsize(1))


def newton_gradient(n, a, tolerance, capacity, needed, tape, out, a_bar):
    i = uint32(cuda.grid(1))
    while i < uint32(n):
        v = a[i]
        x = v + 1.0
        count = 0
        while abs(x * x - v) > tolerance:
            if count < capacity:
                tape[count, i] = x
            count += 1
            x = 0.5 * (x + v / x)
        if count > capacity:
            cuda.atomic.max(needed, 0, count)
        out[i] = x
        x_bar, bar = 1.0, 0.0
        while count > 0:
            count -= 1
            x = tape[min(count, capacity - 1), i]
            t = 0.5 * x_bar
            s = t / x
            bar += s
            x_bar = t - s * (v / x)
        a_bar[i] = bar + x_bar
        i = uint32(i + cuda.gridsize(1))


def monte_carlo(n, x, seed, draws, out):
    i = uint32(cuda.grid(1))
    while i < uint32(n):
        v, state, total = x[i], seed[i], 0.0
        for _ in range(draws):
            state = (1103515245 * state + 12345) % 2147483648
            total += math.exp(-v * (state / 2147483648))
        out[i] = total / draws
        i = uint32(i + cuda.gridsize(1))


D, F, I, B = float64[::1], float32[::1], int64[::1], cuda.types.boolean[:, ::1]
M = float64[:, ::1]

# by the name of an example or of a lane program: the kernel, and the types of its arguments
BY_HAND = {
    "fused elementwise gradient": (fused_gradient, (int64, D, D, D, D)),
    "single precision": (single, (int64, F, float32, F)),
    "softmax": (softmax_gradient, (int64, int64, M, M, M, M, B)),
    "newton, lane by lane": (newton, (int64, D, float64, D)),
    "monte_carlo": (monte_carlo, (int64, D, I, int64, D)),
    "newton with gradient": (newton_gradient, (int64, D, float64, int64, I, M, D, D)),
}
