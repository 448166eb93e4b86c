"""Arrays that are read for the last time are overwritten: where that is right, and nowhere else."""

import numpy as np
import pytest
from oracles import gradient

import s2s

rng = np.random.default_rng(0)
X, W, V, B = (
    rng.normal(size=(6, 4)),
    rng.normal(size=(4, 5)),
    rng.normal(size=(5, 3)),
    rng.normal(size=5),
)
S = rng.normal(size=(4, 4))


def layer(x, w, b, v):
    return np.tanh(x @ w + b) @ v


def read_again(x, w, b, v):
    z = x @ w
    return (z + b) @ v + np.sum(z)


def read_by_a_product_afterwards(x, w, b, v):
    z = x @ w
    return np.exp(z) @ v, z.T @ z


def turned(s):
    z = s @ s
    return (np.sin(z.T) * z) @ s


def neighbours(s):
    z = s @ s
    y = np.zeros(z.shape)
    y[:, 1:] = z[:, :-1] + z[:, 1:]
    return np.exp(z[::-1] - z) @ s + y @ s


def shifted(s):
    z = s @ s
    y = np.empty(z.shape)
    for i in range(4):
        for j in range(4):
            y[i, j] = z[i, j - 1] + z[i, j]
    return y @ s


def from_the_end(s):
    z = s @ s
    y = np.empty(z.shape)
    for i in range(3, -1, -1):
        for j in range(-1, -5, -1):
            y[i, j] = z[i, j] * z[i, 0]
    return y @ s


def result(x, w, b, v):
    return np.tanh(x @ w + b)


def viewed_result(x, w, b, v):
    return np.tanh(x @ w + b).T


def of_an_argument(x, w, b, v):
    return np.exp(x) @ w @ v


def in_a_loop(s):
    y = s
    for _ in range(3):
        y = np.tanh(y @ s) @ s
    return y


def view_kept(s):
    z = s @ s
    row = z[1]
    y = np.sin(z)
    return (y @ s) + row


def twice(s):
    z = s @ s
    return (np.sin(z) @ s) + (np.cos(z) @ s)


def in_turns(s):
    z = s @ s
    a = np.sin(z)
    b = a @ s + np.cos(a)
    return np.exp(-b * b) @ (b - a)


def one_row_of_all(s):
    z = s @ s
    return (z - z[0]) @ s


def other_precision(x, w, b, v):
    return (x @ w).astype(np.float32) @ v.astype(np.float32)


def partly(s):
    z = s @ s
    y = np.empty(z.shape)
    for i in range(4):
        for j in range(4):
            y[i, j] = z[i, j] if s[i, j] > 0 else 2 * z[i, 3]
    return y @ s


def of_loops(s):
    z = np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            z[i, j] = s[j, i] ** 2
    t = z @ z
    y = np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            y[i, j] = np.sin(z[i, j]) + t[i, j]
    return y @ y


def in_a_branch(x, w, b, v):
    z = x @ w
    if b[0] > 0:
        z = np.tanh(z)
    else:
        z = np.exp(z) + b
    return z @ v


def of_a_product_with_a_vector(s):
    z = s @ s[0]
    return s @ np.exp(z - z * z)


LAYER = (X, W, B, V)
PROGRAMS = [
    (layer, LAYER),
    (read_again, LAYER),
    (read_by_a_product_afterwards, LAYER),
    (turned, (S,)),
    (neighbours, (S,)),
    (shifted, (S,)),
    (from_the_end, (S,)),
    (result, LAYER),
    (viewed_result, LAYER),
    (of_an_argument, LAYER),
    (in_a_loop, (S,)),
    (view_kept, (S,)),
    (twice, (S,)),
    (in_turns, (S,)),
    (one_row_of_all, (S,)),
    (other_precision, LAYER),
    (partly, (S,)),
    (of_loops, (S,)),
    (in_a_branch, LAYER),
    (of_a_product_with_a_vector, (S,)),
]


def loops(t, *args):
    """The text of the loops of `t`, and what they give, run as Python."""
    text, names = s2s.jit(t).lower(*args).loops, {}
    exec(text, names)
    name = [line for line in text.splitlines() if line.startswith("def ")][-1][4:].partition("(")[0]
    return text, names[name](*(x.copy() for x in args))


def leaves(x):
    return [y for member in x for y in leaves(member)] if isinstance(x, tuple) else [x]


def assert_same(found, wanted, single=False):
    assert len(leaves(found)) == len(leaves(wanted))
    for a, b in zip(leaves(found), leaves(wanted)):
        np.testing.assert_allclose(
            a,
            b,
            rtol=1e-6 if single or b.dtype == np.float32 else 1e-10,
            atol=1e-5 if single else 1e-12,
        )


@pytest.mark.parametrize("program, args", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_loops_give_what_the_program_gives(program, args):
    before = [x.copy() for x in args]
    assert_same(loops(program, *args)[1], program(*args))
    for x, y in zip(args, before):
        np.testing.assert_array_equal(x, y)


@pytest.mark.lengthy
@pytest.mark.parametrize("program, args", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_gradient(program, args):
    def loss(*args):
        found = program(*args)
        return (
            np.sum(found[0] ** 2) + np.sum(found[1])
            if isinstance(found, tuple)
            else np.sum(found**2)
        )

    gradient = s2s.value_and_grad(loss, argnums=tuple(range(len(args))))
    assert_same(loops(gradient, *args)[1], gradient(*args), single=program is other_precision)


def test_layer_reads_well():
    # lengths that are no numbers in the code
    text = loops(layer, np.ones((60, 40)), np.ones((40, 50)), np.ones(50), np.ones((50, 40)))[0]
    assert "np.empty" not in text
    assert "    t_1 = x @ w\n" in text and "t_1[i, j] = np.tanh(t_1[i, j] + b[j])" in text


@pytest.mark.parametrize(
    "program", [result, viewed_result, turned, read_by_a_product_afterwards, of_an_argument]
)
def test_results_arguments_and_what_is_read_afterwards_keep_their_memory(program):
    args = dict((p, a) for p, a in PROGRAMS)[program]
    assert "np.empty" in loops(program, *args)[0]


@pytest.mark.compile
@pytest.mark.parametrize("program", [layer, in_turns])
def test_compiled(program):
    args = dict((p, a) for p, a in PROGRAMS)[program]

    def loss(*args):
        return np.sum(program(*args) ** 2)

    gradient = s2s.value_and_grad(loss, argnums=tuple(range(len(args))))
    assert_same(s2s.jit(gradient, cache=False)(*args), gradient(*args))


def test_what_a_later_nest_alone_reads_is_computed_there():
    """1 - h * h needs no array of its own next to h, which the last product reads."""
    def loss(w, v, x):
        h = np.tanh(x @ w)
        return np.sum((h @ v) ** 2)

    args = W, V, X
    gradient = s2s.grad(loss, argnums=(0, 1))
    text = gradient.lower(*args).loops
    assert "np.empty" not in text
    namespace = {}
    exec(text, namespace)
    for found, expected in zip(namespace["loss_grad"](*args), gradient(*args)):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def test_what_is_overwritten_in_between_is_computed_before():
    def f(x, w):
        h = x * 2.0
        t = 1.0 - h * h
        h[0] = 5.0
        return np.sum(t * (h @ w @ w.T)), h

    args = X.copy(), W
    text = s2s.jit(f).lower(*args).loops
    namespace = {}
    exec(text, namespace)
    for found, expected in zip(namespace["f"](*args), f(*args)):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def steps_of_descent(U, V, rows, cols):
    U, V = U.copy(), V.copy()
    loss = 0.0
    for t in range(len(rows)):
        i, j = rows[t], cols[t]
        e = 1.0 - U[i] @ V[j]
        loss += e * e
        old = U[i].copy()
        U[i] = U[i] + 0.1 * e * V[j]
        V[j] = V[j] + 0.1 * e * old
    return loss + np.sum(U**3) + np.sum(V)


def turned_rows(U, V, rows, cols):
    U = U.copy()
    for t in range(len(rows)):
        i, j = rows[t], cols[t]
        first, second = U[i].copy(), U[j].copy()
        U[i] = 0.8 * first + 0.6 * second
        U[j] = 0.8 * second - 0.6 * first + V[0]
        U[0] = U[0] + first * 0.1
    return np.sum(U**3)


@pytest.mark.parametrize("f", [steps_of_descent, turned_rows])
def test_a_row_is_copied_not_its_matrix(f):
    """What is read of a copy after its row is overwritten was read before, or is kept: the loop
    copies no matrix.
    """
    U, V = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    rows, cols = np.array([0, 1, 1, 3, 0, 2, 2]), np.array([1, 1, 0, 2, 0, 3, 1])
    for transformed, expected in (
        (s2s.jit(f), f(U, V, rows, cols)),
        (s2s.grad(f), gradient(f, (U, V, rows, cols), 0)),
    ):
        text = transformed.lower(U, V, rows, cols).loops
        namespace: dict = {}
        exec(text, namespace)
        np.testing.assert_allclose(
            namespace[transformed.name](U, V, rows, cols), expected, rtol=1e-9, atol=1e-12
        )
        inside = [line for line in text.splitlines() if line.startswith(" " * 8)]
        assert not any(
            f"np.copy({name})" in line or f"= {name}.copy()" in line
            for line in inside
            for name in ("U", "V", "U_1", "U_bar")
        )
