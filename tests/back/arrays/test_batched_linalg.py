"""Linear algebra of stacks of matrices is a loop over them in compiled code: no call of NumPy is
left.
"""

import numpy as np
import pytest
import split

import s2s

RNG = np.random.default_rng(5)


def matrices(*shape, dtype=np.float64):
    a = RNG.normal(size=shape)
    return (a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


def right_sides(*shape, dtype=np.float64):
    return RNG.normal(size=shape).astype(dtype)


PROGRAMS = {
    "solve": (lambda a, b: np.linalg.solve(a, b), (matrices(5, 3, 3), right_sides(5, 3, 2))),
    "solve-of-vectors": (
        lambda a, b: np.linalg.solve(a, b[:, :, None])[:, :, 0],
        (matrices(5, 3, 3), right_sides(5, 3)),
    ),
    "solve-one-right-side": (
        lambda a, b: np.linalg.solve(a, b[None]),
        (matrices(5, 3, 3), right_sides(3, 2)),
    ),
    "solve-one-vector": (lambda a, b: np.linalg.solve(a, b), (matrices(5, 3, 3), right_sides(3))),
    "solve-two-axes": (
        lambda a, b: np.linalg.solve(a, b),
        (matrices(2, 4, 3, 3), right_sides(2, 4, 3, 1)),
    ),
    "solve-larger": (
        lambda a, b: np.linalg.solve(a, b),
        (matrices(4, 12, 12), right_sides(4, 12, 3)),
    ),
    "inv": (lambda a, b: np.linalg.inv(a) * b, (matrices(5, 4, 4), 2.0)),
    "det": (lambda a, b: np.linalg.det(a) * b, (matrices(5, 3, 3), right_sides(5))),
    "slogdet": (
        lambda a, b: np.linalg.slogdet(a)[1] * b + np.linalg.slogdet(a)[0],
        (matrices(5, 4, 4), right_sides(5)),
    ),
    "cholesky": (lambda a, b: np.linalg.cholesky(a) * b, (matrices(5, 3, 3), 2.0)),
    "no-matrices": (
        lambda a, b: np.linalg.solve(a, b),
        (matrices(3, 3, 3)[:0], right_sides(0, 3, 2)),
    ),
    "float32": (
        lambda a, b: np.linalg.solve(a, b),
        (matrices(5, 3, 3, dtype=np.float32), right_sides(5, 3, 2, dtype=np.float32)),
    ),
}


@pytest.mark.compile
@pytest.mark.parametrize("name", PROGRAMS)
def test_computes_what_numpy_computes(name):
    f, args = PROGRAMS[name]
    found, wanted = s2s.jit(f)(*args), f(*args)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(
        found,
        wanted,
        rtol=1e-4 if found.dtype == np.float32 else 1e-11,
        atol=1e-5 if found.dtype == np.float32 else 1e-13,
    )
    assert "objmode" not in s2s.jit(f).lower(*args).loops


@pytest.mark.compile
@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if name not in ("float32", "no-matrices")]
)
def test_derivatives(name):
    f, args = PROGRAMS[name]
    gradient = s2s.grad(
        lambda a, b: np.sum(np.sin(f(a @ np.swapaxes(a, -1, -2), b))), argnums=(0, 1)
    )
    for found, wanted in zip(s2s.jit(gradient)(*args), gradient(*args)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
    assert name == "det" or "objmode" not in s2s.jit(gradient).lower(*args).loops


@pytest.mark.compile
@pytest.mark.parametrize(
    "f",
    [np.linalg.inv, lambda a: np.linalg.solve(a, np.ones((3, 3, 1))), np.linalg.cholesky],
    ids=["inv", "solve", "cholesky"],
)
def test_one_that_is_singular_is_refused(f):
    a = matrices(3, 3, 3)
    a[1] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        s2s.jit(lambda a: f(a))(a)
    assert np.linalg.slogdet(a)[1][1] == s2s.jit(lambda a: np.linalg.slogdet(a)[1])(a)[1] == -np.inf


@pytest.mark.compile
def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError):
        s2s.jit(lambda a, b: np.linalg.solve(a, b))(matrices(3, 3, 3), right_sides(4, 3, 2))


@pytest.mark.compile
def test_one_matrix_for_all():
    a, b = matrices(1, 3, 3), right_sides(4, 3, 2)
    np.testing.assert_allclose(
        s2s.jit(lambda a, b: np.linalg.solve(a, b))(a, b), np.linalg.solve(a, b), rtol=1e-12
    )


def test_what_is_made_for_each_is_done_in_the_same_loop():
    def f(a, b):
        s = a @ np.swapaxes(a, 1, 2) + np.eye(4)
        return np.sum(b * np.linalg.solve(s, b[:, :, None])[:, :, 0]) + np.sum(
            np.linalg.slogdet(s)[1]
        )

    text = s2s.jit(f).lower(matrices(50, 4, 4), right_sides(50, 4)).loops
    assert text[text.index("def f"):].count("\n    for ") <= 2 and text.count("eliminate(t") == 2


def test_the_loops_compute_what_numpy_computes_in_python():
    """The same without a compiler: stacks of one matrix go with stacks of many."""
    one_of_each = {
        "one-matrix": (
            lambda a, b: np.linalg.solve(a, b),
            (matrices(1, 3, 3), right_sides(5, 3, 2)),
        )
    }
    for name in ("solve", "solve-one-right-side", "solve-two-axes", "inv", "slogdet", "one-matrix"):
        f, args = (PROGRAMS | one_of_each)[name]
        whole, _ = split.modules(s2s.jit(f), *args)
        np.testing.assert_allclose(split.run(whole, *args), f(*args), rtol=1e-11, atol=1e-13)


@pytest.mark.lengthy
def test_one_length_that_may_be_one_is_a_loop_as_well():
    def f(a, k):
        rest = a[k:]
        return np.linalg.solve(rest, rest[:, :, :1] * 2.0)

    a, module = matrices(40, 3, 3), {}
    text = s2s.jit(f).lower(a, 3).loops
    assert "linalg.solve(" not in text
    exec(text, module)
    for k in (30, 39):
        np.testing.assert_allclose(module["f"](a, k), f(a, k), rtol=1e-11, atol=1e-13)
