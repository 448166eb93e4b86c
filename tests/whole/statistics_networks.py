"""Neural networks from scratch: recurrent cells, attention, convolutions, trees, meta-learning."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np


def unflatten(theta, shapes):
    params, start = OrderedDict(), 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        params[name] = theta[start : start + size].reshape(shape)
        start += size
    assert start == len(theta), "wrong number of parameters"
    return params


def total_size(shapes):
    return sum(int(np.prod(s)) for s in shapes.values())


def initial(n, seed, scale=0.3):
    return scale * np.random.default_rng(seed).normal(size=n)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


# A character model: embedding, LSTM, softmax, trained on a string
VOCAB = {c: i for i, c in enumerate("abc ")}
LSTM_SHAPES = dict(E=(4, 3), Wx=(3, 12), Wh=(3, 12), b=(12,), Wy=(3, 4), by=(4,))


class LSTMCell:
    def __init__(self, Wx, Wh, b):
        self.Wx, self.Wh, self.b = Wx, Wh, b
        self.hidden = Wh.shape[0]

    def initial_state(self):
        return np.zeros(self.hidden), np.zeros(self.hidden)

    def __call__(self, x, state):
        h, c = state
        n = self.hidden
        gates = x @ self.Wx + h @ self.Wh + self.b
        i, f, o = (sigmoid(gates[k * n : (k + 1) * n]) for k in range(3))
        g = np.tanh(gates[3 * n :])
        c = f * c + i * g
        return o * np.tanh(c), c


def lstm_character_loss(theta, text="abba cab"):
    p = unflatten(theta, LSTM_SHAPES)
    cell = LSTMCell(p["Wx"], p["Wh"], p["b"])
    state = cell.initial_state()
    tokens = [VOCAB[c] for c in text]
    loss = 0.0
    for current, following in zip(tokens[:-1], tokens[1:]):
        state = cell(p["E"][current], state)
        logits = state[0] @ p["Wy"] + p["by"]
        loss -= np.log(softmax(logits)[following])
    return loss / (len(tokens) - 1)


# A stack of gated recurrent units over a batch of sequences of unequal lengths
class GRULayer:
    def __init__(self, params, reverse=False):
        self.params = params
        self.reverse = reverse

    def step(self, x, h):
        P = self.params
        z = sigmoid(x @ P["Wz"] + h @ P["Uz"])
        r = sigmoid(x @ P["Wr"] + h @ P["Ur"])
        candidate = np.tanh(x @ P["Wh"] + (r * h) @ P["Uh"])
        return (1 - z) * h + z * candidate

    def __call__(self, xs):
        h = np.zeros(self.params["Uz"].shape[0])
        outputs = []
        for x in reversed(xs) if self.reverse else xs:
            h = self.step(x, h)
            outputs.append(h)
        if self.reverse:
            outputs.reverse()
        return outputs


GRU_SHAPES = {f"{w}{g}": (2, 2) for w in "WU" for g in "zrh"}
GRU_BATCH = [list(np.random.default_rng(k).normal(size=(n, 2))) for k, n in enumerate((2, 3))]
GRU_TARGETS = [1.0, -0.5]


def bidirectional_gru_loss(theta):
    n = total_size(GRU_SHAPES)
    layers = [
        GRULayer(unflatten(theta[:n], GRU_SHAPES)),
        GRULayer(unflatten(theta[n : 2 * n], GRU_SHAPES), reverse=True),
    ]
    read_out = theta[2 * n :]
    loss = 0.0
    for sequence, target in zip(GRU_BATCH, GRU_TARGETS):
        forward, backward = [layer(sequence) for layer in layers]
        features = [np.concatenate(pair) for pair in zip(forward, backward)]
        pooled = np.mean(features, axis=0)
        loss += (pooled @ read_out - target) ** 2
    return loss


# A multilayer perceptron of layer objects, with backpropagation written out by its author
class Layer:
    def parameters(self):
        return []

    def gradients(self):
        return []


class Dense(Layer):
    def __init__(self, W, b):
        self.W, self.b = W, b
        self.dW, self.db = np.zeros_like(W), np.zeros_like(b)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad):
        self.dW += self.x.T @ grad
        self.db += grad.sum(axis=0)
        return grad @ self.W.T

    def parameters(self):
        return [self.W, self.b]

    def gradients(self):
        return [self.dW, self.db]


class Tanh(Layer):
    def forward(self, x):
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad):
        return grad * (1 - self.y**2)


class Sequential:
    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad):
        for layer in reversed(self.layers):
            grad = layer.backward(grad)

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]

    def gradients(self):
        return [g for layer in self.layers for g in layer.gradients()]

    def zero_grad(self):
        for g in self.gradients():
            g[...] = 0.0


class Adam:
    def __init__(self, params, lr=0.05, betas=(0.9, 0.99), eps=1e-6):
        self.params = params
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.t = 0
        self.m = [np.zeros_like(p) for p in params]
        self.v = [np.zeros_like(p) for p in params]

    def step(self, grads):
        self.t += 1
        b1, b2 = self.betas
        for p, g, m, v in zip(self.params, grads, self.m, self.v):
            m *= b1
            m += (1 - b1) * g
            v *= b2
            v += (1 - b2) * g * g
            m_hat = m / (1 - b1**self.t)
            v_hat = v / (1 - b2**self.t)
            p -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


MAML_X = np.linspace(-1, 1, 6)[:, None]


def maml_loss(theta, inner_steps=3):
    shapes = dict(W1=(1, 3), b1=(3,), W2=(3, 1), b2=(1,))
    total = 0.0
    for phase in (0.0, 0.7):
        p = unflatten(theta.copy(), shapes)
        net = Sequential(Dense(p["W1"], p["b1"]), Tanh(), Dense(p["W2"], p["b2"]))
        optimiser = Adam(net.parameters())
        support, query = MAML_X[::2], MAML_X[1::2]
        for _ in range(inner_steps):
            net.zero_grad()
            error = net.forward(support) - np.sin(2 * support + phase)
            net.backward(2 * error / len(support))
            optimiser.step(net.gradients())
        total += np.mean((net.forward(query) - np.sin(2 * query + phase)) ** 2)
    return total / 2


# A transformer block in plain dictionaries
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(var + eps) + bias


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    return softmax(scores) @ v


def multi_head(x, c_attn, c_proj, n_head):
    T, d = x.shape
    qkv = np.split(x @ c_attn, 3, axis=-1)
    heads = list(map(lambda m: np.split(m, n_head, axis=-1), qkv))
    mask = np.tri(T, dtype=bool)
    out = [attention(q, k, v, mask) for q, k, v in zip(*heads)]
    return np.hstack(out) @ c_proj


def transformer_block(x, attn, mlp, ln_1, ln_2, n_head):
    x = x + multi_head(layer_norm(x, **ln_1), **attn, n_head=n_head)
    return x + gelu(layer_norm(x, **ln_2) @ mlp["up"]) @ mlp["down"]


GPT_SHAPES = dict(wte=(5, 4), wpe=(6, 4), c_attn=(4, 12), c_proj=(4, 4), up=(4, 6), down=(6, 4))


def gpt_loss(theta, tokens=(0, 3, 1, 4, 2), n_head=2):
    p = unflatten(theta, GPT_SHAPES)
    block = {
        "attn": {"c_attn": p["c_attn"], "c_proj": p["c_proj"]},
        "mlp": {"up": p["up"], "down": p["down"]},
        "ln_1": {"gain": np.ones(4), "bias": np.zeros(4)},
        "ln_2": {"gain": np.ones(4), "bias": np.zeros(4)},
    }
    blocks = [block, block]
    inputs, targets = list(tokens[:-1]), list(tokens[1:])
    x = p["wte"][inputs] + p["wpe"][range(len(inputs))]
    for b in blocks:
        x = transformer_block(x, **b, n_head=n_head)
    logits = x @ p["wte"].T
    probabilities = softmax(logits)
    return -np.mean(np.log(probabilities[np.arange(len(targets)), targets]))


# A convolutional network: by loops, and by strides
def conv2d_loops(image, kernels, stride=1, padding=0):
    if padding:
        image = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    out_c, in_c, kh, kw = kernels.shape
    H = (image.shape[1] - kh) // stride + 1
    W = (image.shape[2] - kw) // stride + 1
    out = np.zeros((out_c, H, W))
    for o in range(out_c):
        for i in range(H):
            for j in range(W):
                window = image[:, i * stride : i * stride + kh, j * stride : j * stride + kw]
                out[o, i, j] = np.sum(window * kernels[o])
    return out


def conv2d_strides(image, kernels):
    kh, kw = kernels.shape[2:]
    windows = np.lib.stride_tricks.sliding_window_view(image, (kh, kw), axis=(1, 2))
    return np.einsum("chwij,ocij->ohw", windows, kernels)


def max_pool(x, size=2):
    c, h, w = x.shape
    x = x[:, : h // size * size, : w // size * size]
    return x.reshape(c, h // size, size, w // size, size).max(axis=(2, 4))


CNN_SHAPES = dict(k1=(2, 1, 3, 3), k2=(2, 2, 2, 2), W=(2, 3))
CNN_IMAGES = np.random.default_rng(8).normal(size=(2, 1, 6, 6))


def convolutional_loss(theta, labels=(2, 0)):
    p = unflatten(theta, CNN_SHAPES)
    loss = 0.0
    for image, label in zip(CNN_IMAGES, labels):
        x = np.maximum(conv2d_loops(image, p["k1"], padding=1), 0)
        x = max_pool(x)
        x = np.tanh(conv2d_strides(x, p["k2"]))
        logits = x.mean(axis=(1, 2)) @ p["W"]
        loss += np.log(np.sum(np.exp(logits))) - logits[label]
    return loss


# A recursive network over parse trees
class Node:
    def __init__(self, word=None, left=None, right=None, label=None):
        self.word = word
        self.left = left
        self.right = right
        self.label = label

    @property
    def is_leaf(self):
        return self.word is not None


def parse(tokens):
    token = tokens.pop(0)
    if token != "(":
        return Node(word=token)
    left, right = parse(tokens), parse(tokens)
    tokens.pop(0)
    return Node(left=left, right=right)


SENTENCES = [
    (parse("( ( not good ) film )".split()), 0),
    (parse("( very ( good film ) )".split()), 1),
]
WORDS = ["not", "good", "film", "very"]


class TreeNet:
    def __init__(self, params):
        self.params = params
        self.vectors = {}

    def encode(self, node):
        if node.is_leaf:
            return self.params["words"][WORDS.index(node.word)]
        children = np.concatenate([self.encode(node.left), self.encode(node.right)])
        return np.tanh(self.params["W"] @ children + self.params["b"])

    def loss(self, tree, label):
        score = self.params["u"] @ self.encode(tree)
        return np.logaddexp(0.0, -score if label else score)


def tree_net_loss(theta):
    net = TreeNet(unflatten(theta, dict(words=(4, 2), W=(2, 4), b=(2,), u=(2,))))
    return sum(net.loss(tree, label) for tree, label in SENTENCES) + 0.01 * np.sum(theta**2)


# A variational autoencoder, its noise drawn beforehand
VAE_RNG = np.random.default_rng(9)
VAE_X, VAE_EPS = VAE_RNG.random((5, 4)), VAE_RNG.normal(size=(3, 5, 2))
VAE_SHAPES = [("enc", (4, 3)), ("mu", (3, 2)), ("ls", (3, 2)), ("dec", (2, 3)), ("out", (3, 4))]


class VAE:
    def __init__(self, theta):
        self.w = unflatten(theta, OrderedDict(VAE_SHAPES))

    def encode(self, x):
        h = np.tanh(x @ self.w["enc"])
        return h @ self.w["mu"], h @ self.w["ls"]

    def decode(self, z):
        return sigmoid(np.tanh(z @ self.w["dec"]) @ self.w["out"])

    def elbo(self, x, eps, beta=1.0):
        mu, log_sigma = self.encode(x)
        z = mu + np.exp(log_sigma) * eps
        p = self.decode(z)
        reconstruction = np.sum(x * np.log(p) + (1 - x) * np.log1p(-p), axis=1)
        kl = -0.5 * np.sum(1 + 2 * log_sigma - mu**2 - np.exp(2 * log_sigma), axis=1)
        return np.mean(reconstruction - beta * kl)


def vae_negative_elbo(theta):
    vae = VAE(theta)
    return -np.mean([vae.elbo(VAE_X, eps, beta=0.5) for eps in VAE_EPS])


PROGRAMS = [
    (lstm_character_loss, initial(total_size(LSTM_SHAPES), 0)),
    (bidirectional_gru_loss, initial(2 * total_size(GRU_SHAPES) + 4, 1)),
    (maml_loss, initial(10, 2)),
    (gpt_loss, initial(total_size(GPT_SHAPES), 3)),
    (convolutional_loss, initial(total_size(CNN_SHAPES), 4)),
    (tree_net_loss, initial(20, 5)),
    (vae_negative_elbo, initial(total_size(dict(VAE_SHAPES)), 6)),
]
LONG = {lstm_character_loss, bidirectional_gru_loss, convolutional_loss, maml_loss}
