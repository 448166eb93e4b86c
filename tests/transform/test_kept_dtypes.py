"""Every cotangent has its primal's dtype, and every tangent: float32, complex64 and mixed programs,
in each mode and compiled.
"""

import numpy as np
import pytest
from scipy import special

import s2s

RNG = np.random.default_rng(3)


def single(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def complex_single(*shape):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)


def dtypes(x):
    """The dtypes of all leaves."""
    return [np.asarray(leaf).dtype.name for leaf in s2s.tree.leaves(x)]


def ones_like(x):
    return s2s.tree.map(
        lambda leaf: np.ones_like(leaf)[()] if isinstance(leaf, (np.ndarray, np.generic)) else 1.0,
        x,
    )


def keeps_dtypes(f, *args, compiled=False):
    """`f` returns a real number: its gradient, tangent, second derivatives both ways and the
    gradients of many lanes keep the dtypes.
    """
    argnums = tuple(range(len(args)))
    gradient = s2s.grad(f, argnums=argnums)
    assert dtypes(gradient(*args)) == dtypes(args)
    if compiled:
        value = s2s.jit(f)(*args)
        assert dtypes(value) == dtypes(f(*args))
        assert dtypes(s2s.jit(gradient)(*args)) == dtypes(args)
        return
    y, y_dot = s2s.jvp(f, args, ones_like(args))
    assert dtypes(y_dot) == dtypes(y) == dtypes(f(*args))
    assert dtypes(s2s.jvp(gradient, args, ones_like(args))[1]) == dtypes(args)
    assert dtypes(s2s.vjp(gradient, *args)[1](ones_like(args))) == dtypes(args)
    lanes = s2s.tree.map(lambda x: np.stack([x, x]), args)
    assert dtypes(s2s.vmap(gradient)(*lanes)) == dtypes(lanes)


# ----------------------------------------------------------------------------------------- networks


def rows(x, w, b):
    out = np.empty((len(x), w.shape[1]), dtype=np.float32)
    for i in range(len(x)):
        out[i] = x[i] @ w
    return np.sum(out + b)


def convnet(image, kernel, dense, bias):
    n, m = image.shape[0] - kernel.shape[0] + 1, image.shape[1] - kernel.shape[1] + 1
    hidden = np.empty((n, m), dtype=np.float32)
    for i in range(n):
        for j in range(m):
            hidden[i, j] = np.sum(image[i:i + kernel.shape[0], j:j + kernel.shape[1]] * kernel)
    hidden = np.maximum(hidden, 0)
    pooled = np.max(hidden.reshape(n // 2, 2, m // 2, 2), axis=(1, 3))
    logits = pooled.reshape(-1) @ dense + bias
    return -special.log_softmax(logits)[1]


def normalised(x, scale, shift):
    mean = np.mean(x, axis=0)
    return scale * (x - mean) / np.sqrt(np.var(x, axis=0) + 1e-5) + shift


def residual(x, first, second, scale, shift):
    for _ in range(2):
        hidden = np.maximum(normalised(x @ first, scale, shift), 0.0)
        x = x + hidden @ second
    return np.mean(x ** 2) + 0.5 * np.linalg.norm(first)


def attention(x, query, key, output):
    heads = []
    for h in range(2):
        q, k = x @ query[h], x @ key[h]
        scores = q @ k.T / np.sqrt(q.shape[1])
        weights = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        heads.append(weights / np.sum(weights, axis=1, keepdims=True) @ x)
    return np.sum(np.tanh(np.concatenate(heads, axis=1) @ output))


def recurrent(w, u, xs):
    h, total = np.zeros(3, np.float32), 0.0
    for t in range(len(xs)):
        h = np.tanh(w @ h + u @ xs[t])
        if h[0] > 0.2:
            total += h[0] * h[1]
    return total


def of_numbers(a, b, c):
    s = 0.0
    for k in range(3):
        if k == 1:
            s = s + a * b
        else:
            s = s + np.sin(a) / (k + 1)
    return s + c


def unused(a, x):
    return np.sum(x * x) if x[0] > 100.0 else 3.0 * x[1]


def step(w, x, y, rate):
    """A step of gradient descent, whose rate is a number of Python's."""
    e = x @ w - y
    w = w - rate * (x.T @ e) / len(y)
    return np.sum((x @ w - y) ** 2) / len(y)


def dictionary(p, x):
    return np.sum(np.tanh(x @ p["w"] + p["b"]) * p["scale"])


def mixed(x, y, a):
    """Single and double precision."""
    z = x * y + a
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = z[i] * x[i]
    return np.sum(out) + np.sum(x.astype(np.float64) ** 2) + float(x[0]) * 2.0


def power(z, h):
    z = z * h + 1j * np.real(h)
    return np.sum(np.abs(np.fft.fft(z)) ** 2) + np.real(np.vdot(z, h))


def half_complex(z, x):
    out = np.zeros(len(z), np.complex64)
    for i in range(len(z)):
        out[i] = z[i] * x[i] + np.exp(1j * x[i])
    return np.sum(np.real(out) ** 2 + np.imag(out))


def helper(w, c):
    return np.exp(w * (c - 0.5 * c))


def helped(w, c):
    for _ in range(2):
        c = c * np.sum(helper(w, c)) * 0.1
    return np.sum(c)


def while_loop(x, tol):
    k = 0
    while np.sum(x * x) > tol and k < 5:
        x = x * 0.5
        k += 1
    return np.sum(x)


def of_lists(x, a):
    numbers, rows = [], []
    for i in range(len(x)):
        numbers.append(x[i] * a)
    for i in range(3):
        rows.append(x * numbers[i])
    s = np.float32(0)
    for i in range(2):
        s = s + np.sum(rows[i] * rows[i + 1]) + numbers[i]
    return s


def of_complex_lists(z):
    doubled = []
    for i in range(len(z)):
        doubled.append(z[i] * 2)
    s = 0.0
    for i in range(len(doubled) - 1):
        s = s + np.abs(doubled[i] * doubled[i + 1]) ** 2
    return s


PROGRAMS = {
    "rows": (rows, single(3, 4), single(4, 2), single(2)),
    "convnet": (convnet, single(6, 6), single(3, 3), single(4, 3), single(3)),
    "residual": (residual, single(4, 3), single(3, 5), single(5, 3), single(5), single(5)),
    "attention": (attention, single(4, 3), single(2, 3, 2), single(2, 3, 2), single(6, 2)),
    "recurrent": (recurrent, single(3, 3), single(3, 2), single(4, 2)),
    "numbers": (of_numbers, np.float32(0.3), np.float32(0.7), np.float32(1.0)),
    "numbers, doubles and Python's": (of_numbers, np.float32(0.3), np.float64(0.7), 1.0),
    "unused": (unused, np.float32(0.3), single(3)),
    "step": (step, single(3), single(5, 3), single(5), 0.1),
    "dictionary": (
        dictionary,
        {"w": single(3, 2), "b": single(2), "scale": np.float32(2.0)},
        single(4, 3),
    ),
    "mixed": (mixed, single(4), RNG.normal(size=4), 0.5),
    "complex": (power, complex_single(5), complex_single(5)),
    "complex and real": (half_complex, complex_single(4), single(4)),
    "complex and double": (half_complex, complex_single(4), RNG.normal(size=4)),
    "lists": (of_lists, single(4), np.float32(2.0)),
    "complex lists": (of_complex_lists, complex_single(4)),
    "complex lists of doubles": (of_complex_lists, complex_single(4).astype(complex)),
    "helped": (helped, np.float32(0.3), single(3)),
    "while": (while_loop, single(4), 0.25),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_keep_dtypes(name):
    keeps_dtypes(*PROGRAMS[name])


@pytest.mark.compile
@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_keep_dtypes_compiled(name):
    keeps_dtypes(*PROGRAMS[name], compiled=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_a_number_has_a_number_of_its_dtype(dtype):
    """Also where the derivative is 0 or 1 throughout, which Python's number would say as well."""
    for f in (
        lambda x: x,
        lambda x: 3.0 + 0 * x,
        lambda x: x * x,
        lambda x: x if np.real(x) > 0 else 2.0 * x,
        lambda x: -x,
        lambda x: np.sum(np.ones(3) * x),
        lambda x: sum([x, x]),
    ):
        bar = s2s.grad(f, holomorphic=dtype is np.complex64)(dtype(0.5))
        assert np.asarray(bar).dtype == dtype
        y, y_dot = s2s.jvp(f, (dtype(0.5),), (dtype(1),))
        assert np.asarray(y_dot).dtype == np.asarray(y).dtype


@pytest.mark.parametrize(
    "f",
    [
        special.expit,
        special.gamma,
        special.gammaln,
        special.erf,
        special.digamma,
        special.ndtr,
        special.log_expit,
    ],
)
def test_special_functions_of_single_numbers_are_single(f):
    a = np.float32(0.6)
    y, y_dot = s2s.jvp(lambda a: f(a), (a,), (a,))
    assert (
        dtypes([y, y_dot, s2s.grad(lambda a: f(a))(a), s2s.vmap(lambda a: f(a))(np.array([a, a]))])
        == ["float32"] * 4
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(special.digamma(x)),
        lambda x: np.sum(special.gammaln(x)),
        lambda x: np.sum(special.gamma(x)),
        lambda x: special.betaln(x[0], x[1]),
        lambda x: np.sum(np.linspace(x[0], x[1], 4) ** 2),
        lambda x: np.sum(np.geomspace(x[0], x[1], 4)),
    ],
    ids=["digamma", "gammaln", "gamma", "betaln", "linspace", "geomspace"],
)
def test_derivatives_of_what_is_wider_keep_dtypes(f):
    x = np.array([0.5, 1.5], np.float32)
    lanes = np.stack([x, x])
    assert s2s.vmap(f)(lanes).dtype == s2s.jvp(f, (x,), (x,))[0].dtype == f(x).dtype
    for t in (s2s.grad, s2s.hessian, lambda f: s2s.jacrev(s2s.jacrev(f))):
        assert s2s.vmap(t(f))(lanes).dtype == t(f)(x).dtype == np.float32
    right = s2s.grad(f)(x.astype(float))
    np.testing.assert_allclose(s2s.grad(f)(x), right, rtol=1e-5)


@pytest.mark.lengthy
def test_jacobians_and_pushforwards_keep_dtypes():
    x, w = single(3), single(2, 3)

    def f(x):
        return np.tanh(w @ x) * 2.0

    assert (
        dtypes([s2s.jacrev(f)(x), s2s.jacfwd(f)(x), s2s.hessian(lambda x: np.sum(f(x)))(x)])
        == ["float32"] * 3
    )
    y, back = s2s.vjp(f, x)
    assert dtypes(back(np.ones(2, np.float32))) == dtypes(y) == ["float32"]
    _, forward = s2s.linearize(f, x)
    assert dtypes(forward(x)) == ["float32"]


def test_text_of_doubles_says_no_dtypes():
    x = np.ones((3, 4))

    def by_rows(x, w, b):
        out = np.empty((len(x), w.shape[1]))
        for i in range(len(x)):
            out[i] = x[i] @ w
        return np.sum(out + b)

    for t, args in ((s2s.grad(by_rows, argnums=(0, 1, 2)), (x, np.ones((4, 2)), np.ones(2))),
                    (s2s.grad(step, argnums=(0, 3)), (np.ones(4), x, np.ones(3), 0.1)),
                    (s2s.grad(of_numbers, argnums=(0, 1, 2)), (np.float64(0.3), 0.7, 1.0))):
        t(*args)
        assert "float64" not in t.source.partition('"""')[2].rpartition('"""')[2]
