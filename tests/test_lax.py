"""scan, cond and their kin, s2s.tree inside programs, and the shapes of results."""

import numpy as np
import pytest
from judge import judge

import s2s

RNG = np.random.default_rng(8)
W, H, XS, US = (
    RNG.normal(size=(3, 3)),
    RNG.normal(size=3),
    RNG.normal(size=(5, 3)),
    RNG.normal(size=5),
)
X = RNG.normal(size=6)


def recurrent(W, h, xs, us):
    def step(h, x):
        h = np.tanh(W @ h + x["a"] * x["b"])
        return h, (h, {"sum": np.sum(h)})

    h, (hs, more) = s2s.scan(step, h, {"a": xs, "b": us})
    return np.sum(hs ** 2) + np.sum(h) + np.sum(more["sum"] * us)


def backwards(x, us):
    """The last first; the ys stand as the xs do."""
    last, ys = s2s.scan(lambda c, u: (np.sin(c) * u, c * u), x, us, reverse=True)
    return last + np.sum(ys * np.arange(5.0))


def without_xs(x, n):
    last, nothing = s2s.scan(lambda c, _: (np.sin(c) * x, None), x, None, length=n)
    assert nothing is None
    return last


def loops(x, n):
    a = s2s.fori_loop(1, n, lambda i, v: v * x + i, 1.0)
    b, c = s2s.while_loop(lambda s: s[0] < 10, lambda s: (s[0] * 2, s[1] * x), (1.0, x))
    return a + b * c


def choices(x, k):
    y = s2s.switch(k, [lambda v: v, lambda v: v * v, lambda v: np.sin(v)], x)
    return s2s.cond(y > 0.2, lambda v: v * y, lambda v: np.exp(v), x)


def recurrence(a, b):
    """y[k] = a[k] y[k - 1] + b[k], by an associative operation."""
    def after(first, then):
        return first[0] * then[0], then[0] * first[1] + then[1]

    products, y = s2s.associative_scan(after, (a, b))
    return np.sum(y ** 2) + np.sum(products)


def from_the_end(m):
    return np.sum(s2s.associative_scan(lambda a, b: a * b, m, reverse=True, axis=1) ** 2)


def raveled(x):
    p = {"w": x[:4].reshape(2, 2), "b": (x[4:6], np.sum(x))}
    v, unravel = s2s.ravel_pytree(p)
    q = unravel(v * v)
    return np.sum(q["w"] ** 2) + np.sum(q["b"][0]) * q["b"][1]


def weighted(x):
    p = s2s.tree.map(
        lambda u, v: u * v,
        {"a": x, "b": [x[0], (x[1], None)]},
        {"a": np.sin(x), "b": [2.0, (3.0, None)]},
    )
    leaves, whole = s2s.tree.flatten(p)
    again = s2s.tree.unflatten(whole, [leaf * leaf for leaf in leaves])
    return np.sum(again["a"]) + again["b"][0] * again["b"][1][0] + len(s2s.tree.leaves(p))


PROGRAMS = [
    (recurrent, (W, H, XS, US)),
    (backwards, (0.3, US)),
    (without_xs, (0.7, 4)),
    (without_xs, (0.7, 0)),
    (loops, (1.2, 4)),
    (choices, (0.4, 0)),
    (choices, (0.4, 1)),
    (choices, (-0.4, 7)),
    (choices, (0.4, -1)),
    (recurrence, (US, XS[:, 0])),
    (recurrence, (US[:1], XS[:1, 0])),
    (recurrence, (US[:4], XS[:4, 0])),
    (from_the_end, (XS,)),
    (raveled, (X,)),
    (weighted, (X,)),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("f, args", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_programs(f, args):
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args", [PROGRAMS[k] for k in (0, 1, 4, 5, 9)], ids=lambda x: getattr(x, "__name__", "")
)
def test_programs_compiled(f, args):
    judge(f, *args, compiled=True, second=f not in (recurrence, recurrent))


def test_a_scan_is_a_loop_over_arrays():
    gradient = s2s.grad(recurrent)
    gradient(W, H, XS, US)
    assert (
        "hs = np.empty((n, len(W)))" in gradient.source
        or "ys = np.empty((n, len(W)))" in gradient.source
    )
    assert "scan" not in gradient.source.split('"""')[2].replace("# scan", "").replace(
        '"scan over', ""
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9])
def test_associative_scan_is_the_sequential_one(n):
    a = RNG.normal(size=(n, 2))
    np.testing.assert_allclose(
        s2s.associative_scan(lambda x, y: x + y, a), np.cumsum(a, axis=0), rtol=1e-13
    )
    matrices = RNG.normal(size=(n, 2, 2))
    found, expected = s2s.associative_scan(np.matmul, matrices), np.eye(2)
    for k in range(n):
        expected = expected @ matrices[k]
        np.testing.assert_allclose(found[k], expected, rtol=1e-12)


def test_associative_scan_calls_little():
    calls = []
    s2s.associative_scan(lambda a, b: calls.append(len(a)) or a + b, np.ones(1024))
    assert len(calls) == 20 and sum(calls) < 2048


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="scan over arrays of different lengths"):
        s2s.scan(lambda c, x: (c, x[0]), 0.0, (np.ones(3), np.ones(4)))
    with pytest.raises(ValueError, match="scan over arrays of different lengths"):
        s2s.grad(
            lambda a, b: np.sum(s2s.scan(lambda c, x: (c + x[0] * x[1], None), 0.0, (a, b))[0])
        )(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="scan needs xs, or a length"):
        s2s.scan(lambda c, x: (c, x), 0.0)


def test_unlike_trees_are_refused():
    with pytest.raises(s2s.TypeMismatchError, match="tree.map over trees of different structure"):
        s2s.grad(lambda x: s2s.tree.map(lambda a, b: a * b, (x, (x, x)), (x, x))[0])(1.0)


# ------------------------------------------------------------------------------------------- shapes


def made(A, x, n):
    rows = []
    for _ in range(n):
        x = np.tanh(A @ x)
        rows.append(x)
    return (
        {"last": x, "all": np.stack(rows), "sum": np.sum(x)},
        np.zeros(2 * n + 1, np.complex64),
        "text",
    )


def test_shapes_of_what_does_not_exist():
    big = 10 ** 9
    result, more, text = s2s.eval_shape(
        made, s2s.ShapeDtype((big, big), "float64"), s2s.ShapeDtype((big,), "float64"), 7
    )
    assert result["last"] == s2s.ShapeDtype((big,), "float64")
    assert result["all"] == s2s.ShapeDtype((7, big), np.float64) and result["sum"].shape == ()
    assert more == s2s.ShapeDtype((15,), "complex64") and text == "text"


def test_shapes_of_derivatives():
    gradient = s2s.grad(lambda p: np.sum(p[0] ** 2) * p[1])
    found = s2s.eval_shape(gradient, (s2s.ShapeDtype((3, 4), "float64"), 2.0))
    assert found == (s2s.ShapeDtype((3, 4), "float64"), s2s.ShapeDtype((), "float64"))


def test_shapes_that_depend_on_data():
    assert s2s.eval_shape(lambda x: x[x > 0], np.array([1.0, -1.0, 2.0])).shape == (2,)
    with pytest.raises(s2s.UnsupportedError, match="a shape that depends on what x holds"):
        s2s.eval_shape(lambda x: x[x > 0], s2s.ShapeDtype((3,), "float64"))


@pytest.mark.lengthy
def test_cond_of_an_operand_by_name():
    def f(x):
        return s2s.cond(x > 0, lambda z: z * z, lambda z: -z, operand=x) + s2s.cond(
            x < 1, lambda _: x**3, lambda _: x, operand=None
        )

    judge(f, 0.4)
    judge(f, -0.4)
    with pytest.raises(TypeError, match="cond takes its operands in their places, or one by name"):
        s2s.cond(True, np.sin, np.cos, 1.0, operand=2.0)


@pytest.mark.parametrize(
    "xs, length", [(np.zeros((0, 3)), None), ({"a": np.zeros((0, 3), np.float32)}, None), (None, 0)]
)
def test_scan_over_nothing_says_what_its_ys_would_be(xs, length):
    def step(c, x):
        x = np.ones(3) if x is None else x["a"] if isinstance(x, dict) else x
        return c + np.sum(x), {"outer": np.outer(x, x), "more": (c, x / np.sum(x), None)}

    last, ys = s2s.scan(step, 1.5, xs, length=length, reverse=True)
    assert last == 1.5
    assert ys["outer"].shape == (0, 3, 3)
    assert ys["outer"].dtype == (np.float32 if isinstance(xs, dict) else np.float64)
    assert ys["more"][0].shape == (0,) and ys["more"][1].shape == (0, 3) and ys["more"][2] is None
