"""Calls that do much run code that knows the short lengths of their arguments; the others run code
for any lengths.
"""

import numpy as np
import pytest

import s2s
from s2s.runtime.entry import length_versions
from s2s.runtime.numba.native_module import statistics


def filtered(A, ys, h):
    x = np.zeros(len(A))
    for t in range(len(ys)):
        x = x + h * (A @ x) + ys[t]
    return np.sum(x * x)


def scaled(x, k):
    return np.sum(np.sin(k * x))


def arguments(n, steps):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, n)), rng.normal(size=(steps, n)), 1e-3


def loops(*args):
    return s2s.jit(s2s.grad(filtered, argnums=(0, 1))).lower(*args).loops


def test_lengths_are_numbers_where_a_call_does_much():
    text = loops(*arguments(3, 1000))
    code = "\n".join(line for line in text.splitlines() if "#" not in line)
    assert "needs_length(A.shape[0], 3)" in code and "range(3)" in code and "@" not in code
    assert loops(*arguments(3, 5)) == loops(*arguments(4, 3))
    assert "needs_length" not in loops(*arguments(3, 5))
    assert "needs_length" not in loops(*arguments(length_versions.SHORT + 1, 1000))


def test_of_one_axis_and_no_loop_nothing_is_to_be_known():
    text = s2s.jit(scaled).lower(np.ones(2), 10_000).loops
    assert "needs_length" not in text


def agree(found, expected):
    for x, y in zip(found, expected):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


@pytest.mark.compile
def test_each_call_runs_what_is_for_it(monkeypatch):
    monkeypatch.setattr(length_versions, "FEW", 2)
    gradient = s2s.grad(filtered, argnums=(0, 1))
    fast = s2s.jit(gradient, cache=False)
    before = statistics()[0]
    for count, sizes in [
        (1, (3, 500)),
        (1, (3, 900)),
        (2, (2, 500)),
        (3, (2, 5)),
        (3, (4, 500)),
        (3, (3, 500)),
        (3, (20, 500)),
        (3, (2, 6)),
        (3, (2, 0)),
    ]:
        args = arguments(*sizes)
        for _ in range(2):
            agree(fast(*args), gradient(*args))
        assert statistics()[0] - before == count
    with pytest.raises(ValueError):
        fast(np.ones((3, 3)), np.ones((500, 2)), 0.1)
    with pytest.raises(ValueError):
        fast(np.ones((3, 2)), np.ones((500, 3)), 0.1)


@pytest.mark.compile
def test_thirty_steps_are_much():
    """Optimisers call such small programs thousands of times."""
    def damped(A, ys, h):
        x = np.ones(len(A))
        for t in range(len(ys)):
            x = 0.9 * x + h * (A @ x) + ys[t]
        return np.sum(x * x)

    gradient = s2s.grad(damped, argnums=(0, 1))
    fast = s2s.jit(gradient, cache=False)
    before = statistics()[0]
    for count, sizes in [(1, (3, 4)), (2, (3, 30)), (2, (3, 20)), (3, (4, 30))]:
        args = arguments(*sizes)
        for _ in range(2):
            agree(fast(*args), gradient(*args))
        assert statistics()[0] - before == count, sizes
    assert "range(3)" in loops(*arguments(3, 30))


@pytest.mark.compile
def test_what_runs_is_remembered(monkeypatch):
    """By all that it depends on: another number of steps may be worth threads, another length has
    its own code.
    """
    monkeypatch.setattr(length_versions, "MANY", 3)
    fast, chosen, asked = s2s.jit(scaled), length_versions.ByLengths.chosen, []
    monkeypatch.setattr(
        length_versions.ByLengths,
        "chosen",
        lambda self, args: asked.append(args[0].shape) or chosen(self, args),
    )
    shapes = [(4, 100), (4, 100), (4, 101), (101, 4), (4, 100), (5, 100), (4, 100), (3, 4), (3, 4)]
    for shape in shapes:
        x = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_allclose(fast(x, 0.5), scaled(x, 0.5), rtol=1e-14)
    assert (
        asked.count((4, 100)) == 2
        and asked.count((3, 4)) <= 2
        and len(fast.last.call.native.remembered) <= 3
    )


@pytest.mark.compile
def test_results_go_where_they_are_wanted():
    gradient = s2s.grad(filtered, argnums=(0, 1))
    fast = s2s.jit(gradient)
    for sizes in [(3, 500), (3, 5), (2, 500), (12, 500)]:
        args = arguments(*sizes)
        out = tuple(np.empty_like(x) for x in args[:2])
        for _ in range(3):
            found = fast(*args, out=out)
            assert all(x is y for x, y in zip(found, out))
            agree(found, gradient(*args))


@pytest.mark.compile
def test_containers_and_layouts():
    def loss(p, ys):
        x = p["x"]
        for y in ys:
            x = p["A"] @ x + y
        return x @ x

    fast, rng = s2s.jit(s2s.value_and_grad(loss)), np.random.default_rng(0)
    for order in "CF":
        p = {"A": np.asarray(0.1 * rng.normal(size=(3, 3)), order=order), "x": rng.normal(size=3)}
        ys = rng.normal(size=(600, 3))
        (value, slopes), (expected, others) = fast(p, ys), s2s.value_and_grad(loss)(p, ys)
        np.testing.assert_allclose(value, expected)
        agree(slopes.values(), others.values())
