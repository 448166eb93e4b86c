"""A small convolutional network in single precision: three layers of 3 x 3 kernels, the second with
stride 2, the mean over positions, and the cross-entropy of a softmax, for 64 images of 28 x 28
points (an all-convolutional net, Springenberg et al., 2015).

By hand, one image after the other, forwards and at once backwards, so that all it needs stays in
the cache: patches are gathered into the rows of a matrix, which BLAS multiplies, and scattered back
for the cotangents of the points.

This is how hand-written code wins: CPU time of one thread, least of 12 in turns, 7.0 ms by hand,
12.6 in PyTorch (oneDNN), 18.7 in JAX.  The matrix of patches of one image has 83 or 115 KB, that of
the batch 5 or 7 MB, and is read three times. s2s computes such batches in strips
(back/arrays/strip_mine_batch.py): 1.15 times the hand-written, where it was 2.5 with patches of the
whole batch in memory.  Before that the products alone took 10 to 11 ms of 15; of one image at a
time the same eight take three quarters, because BLAS packs narrow products that are large, and
because patches come from memory, not from the cache. What is left: the masks of `np.maximum` are
arrays of their own, and sums are begun in each strip.  Biases are added, and their cotangents
summed, in the nests around the products (back/arrays/move_reshapes.py): 0.97 of the time before.
"""

import math

import numpy as np
from numba import njit
from scipy.special import log_softmax

WRT = (0,)
SIZE = 64  # images
GROWTH = (1, 1_000)
TOLERANCE = 1e-4  # single precision


def arguments(size=SIZE):
    rng = np.random.default_rng(0)

    def layer(inputs, outputs):
        W = rng.normal(size=(3, 3, inputs, outputs)) * (2 / (9 * inputs)) ** 0.5
        return W.astype(np.float32), np.zeros(outputs, np.float32)

    images = rng.normal(size=(size, 28, 28, 1)).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[rng.integers(0, 10, size)]
    return (layer(1, 16), layer(16, 32), layer(32, 10)), images, labels


def convolved(x, W, b, stride):
    """Images of several channels by k x k kernels: the patch around each place, times the kernels.
    """
    k, _, inputs, outputs = W.shape
    rows = np.arange(0, x.shape[1] - k + 1, stride)[:, None] + np.arange(k)
    columns = np.arange(0, x.shape[2] - k + 1, stride)[:, None] + np.arange(k)
    patches = x[:, rows[:, None, :, None], columns[None, :, None, :]]
    y = patches.reshape(-1, k * k * inputs) @ W.reshape(k * k * inputs, outputs) + b
    return y.reshape(len(x), len(rows), len(columns), outputs)


def program(layers, images, labels):
    (W1, b1), (W2, b2), (W3, b3) = layers
    h = np.maximum(convolved(images, W1, b1, 1), 0.0)
    h = np.maximum(convolved(h, W2, b2, 2), 0.0)
    scores = np.mean(convolved(h, W3, b3, 1), axis=(1, 2))
    return -np.sum(labels * log_softmax(scores, axis=1)) / len(images)


def by_hand():
    flags = dict(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)

    @njit(**flags)
    def gather(x, stride, m, patches):
        """The 3 x 3 patches of one image, m in a row: a row of `patches` each."""
        c = x.shape[2]
        for i in range(m):
            for j in range(m):
                row = patches[i * m + j]
                for p in range(3):
                    for q in range(3):
                        for l in range(c):
                            row[(3 * p + q) * c + l] = x[stride * i + p, stride * j + q, l]

    @njit(**flags)
    def scatter(patches_bar, stride, m, x_bar):
        """The cotangent of the image from that of its patches."""
        c = x_bar.shape[2]
        x_bar[:] = 0
        for i in range(m):
            for j in range(m):
                row = patches_bar[i * m + j]
                for p in range(3):
                    for q in range(3):
                        for l in range(c):
                            x_bar[stride * i + p, stride * j + q, l] += row[(3 * p + q) * c + l]

    @njit(**flags)
    def activate(z, b):
        for i in range(len(z)):
            for j in range(len(b)):
                z[i, j] = max(z[i, j] + b[j], np.float32(0))

    @njit(**flags)
    def back(z_bar, h, b_bar):
        """Through the activation, of which h is the result."""
        for i in range(len(h)):
            for j in range(len(b_bar)):
                t = z_bar[i, j] if h[i, j] > 0 else np.float32(0)
                z_bar[i, j] = t
                b_bar[j] += t

    @njit(**flags)
    def add(total, part):
        for i in range(total.shape[0]):
            for j in range(total.shape[1]):
                total[i, j] += part[i, j]

    @njit(**flags)
    def gradient(layers, images, labels):
        (W1, b1), (W2, b2), (W3, b3) = layers
        K1, K2, K3 = W1.reshape(9, 16), W2.reshape(144, 32), W3.reshape(288, 10)
        T2, T3 = K2.T.copy(), K3.T.copy()
        p1, p2, p3 = np.empty((676, 9), np.float32), np.empty((144, 144), np.float32), np.empty(
            (100, 288), np.float32)
        z1, z2, z3 = np.empty((676, 16), np.float32), np.empty((144, 32), np.float32), np.empty(
            (100, 10), np.float32)
        p2_bar, p3_bar = np.empty((144, 144), np.float32), np.empty((100, 288), np.float32)
        h1_bar, h2_bar = np.empty((676, 16), np.float32), np.empty((144, 32), np.float32)
        K1_bar, K2_bar, K3_bar = np.zeros((9, 16), np.float32), np.zeros(
            (144, 32), np.float32), np.zeros((288, 10), np.float32)
        k1, k2, k3 = np.empty((9, 16), np.float32), np.empty((144, 32), np.float32), np.empty(
            (288, 10), np.float32)
        b1_bar, b2_bar, b3_bar = np.zeros(16, np.float32), np.zeros(32, np.float32), np.zeros(
            10, np.float32)
        scores = np.empty(10)
        value, n = 0.0, len(images)
        for image in range(n):
            gather(images[image], 1, 26, p1)
            np.dot(p1, K1, z1)
            activate(z1, b1)
            gather(z1.reshape(26, 26, 16), 2, 12, p2)
            np.dot(p2, K2, z2)
            activate(z2, b2)
            gather(z2.reshape(12, 12, 32), 1, 10, p3)
            np.dot(p3, K3, z3)
            top = -np.inf
            for c in range(10):
                total = 0.0
                for i in range(100):
                    total += z3[i, c]
                scores[c] = total / 100 + b3[c]
                top = max(top, scores[c])
            total = 0.0
            for c in range(10):
                total += math.exp(scores[c] - top)
            lse = top + math.log(total)
            for c in range(10):
                value -= labels[image, c] * (scores[c] - lse)
                score_bar = (math.exp(scores[c] - lse) - labels[image, c]) / n
                b3_bar[c] += score_bar
                for i in range(100):
                    z3[i, c] = score_bar / 100
            np.dot(p3.T, z3, k3)
            add(K3_bar, k3)
            np.dot(z3, T3, p3_bar)
            scatter(p3_bar, 1, 10, h2_bar.reshape(12, 12, 32))
            back(h2_bar, z2, b2_bar)
            np.dot(p2.T, h2_bar, k2)
            add(K2_bar, k2)
            np.dot(h2_bar, T2, p2_bar)
            scatter(p2_bar, 2, 12, h1_bar.reshape(26, 26, 16))
            back(h1_bar, z1, b1_bar)
            np.dot(p1.T, h1_bar, k1)
            add(K1_bar, k1)
        return value / n, ((K1_bar.reshape(3, 3, 1, 16), b1_bar),
                           (K2_bar.reshape(3, 3, 16, 32), b2_bar), (K3_bar.reshape(3, 3, 32,
                                                                                   10), b3_bar))

    return gradient


def in_jax():
    import jax
    import jax.numpy as jnp
    from jax import lax

    def convolved(x, W, b, stride):
        return lax.conv_general_dilated(x, W, (stride, stride), "VALID",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC")) + b

    def program(layers, images, labels):
        (W1, b1), (W2, b2), (W3, b3) = layers
        h = jax.nn.relu(convolved(images, W1, b1, 1))
        h = jax.nn.relu(convolved(h, W2, b2, 2))
        scores = jnp.mean(convolved(h, W3, b3, 1), axis=(1, 2))
        return -jnp.sum(labels * jax.nn.log_softmax(scores)) / len(images)

    return program


def in_torch():
    import torch
    from torch.nn.functional import conv2d

    def convolved(x, W, b, stride):
        return conv2d(x, W.permute(3, 2, 0, 1), b, stride)

    def program(layers, images, labels):
        (W1, b1), (W2, b2), (W3, b3) = layers
        h = torch.relu(convolved(images.permute(0, 3, 1, 2), W1, b1, 1))
        h = torch.relu(convolved(h, W2, b2, 2))
        scores = convolved(h, W3, b3, 1).mean((2, 3))
        return -(labels * torch.log_softmax(scores, 1)).sum() / len(images)

    return program


def in_autograd():
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    def convolved(x, W, b, stride):
        k, _, inputs, outputs = W.shape
        rows = np.arange(0, x.shape[1] - k + 1, stride)[:, None] + np.arange(k)
        columns = np.arange(0, x.shape[2] - k + 1, stride)[:, None] + np.arange(k)
        patches = x[:, rows[:, None, :, None], columns[None, :, None, :]]
        y = anp.dot(anp.reshape(patches,
                                (-1, k * k * inputs)), anp.reshape(W,
                                                                   (k * k * inputs, outputs))) + b
        return anp.reshape(y, (len(x), len(rows), len(columns), outputs))

    def program(layers, images, labels):
        (W1, b1), (W2, b2), (W3, b3) = layers
        h = anp.maximum(convolved(images, W1, b1, 1), 0.0)
        h = anp.maximum(convolved(h, W2, b2, 2), 0.0)
        scores = anp.mean(convolved(h, W3, b3, 1), axis=(1, 2))
        return -anp.sum(labels * (scores - logsumexp(scores, axis=1, keepdims=True))) / len(images)

    return program
