"""What a call runs is written for arguments of one kind: it is taken for these alone, and never for
what has changed.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import s2s
from s2s.runtime.entry import out_argument
from s2s.runtime.numba.native_module import statistics

rng = np.random.default_rng(0)
Layer = namedtuple("Layer", "w b")


@dataclass
class Params:
    w: np.ndarray
    b: float


def loss(p, x, y):
    z = x @ p["w"] + p["b"]
    return np.sum((z - y) ** 2)


def chain(x):
    return np.sin(x) * x


def mixed(u, k):
    return np.sum(np.sin(u) * k * u)


def relax(u, k, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


# -------------------------------------------------------------------------------- like the last one

scale = 3.0


def scaled(x):
    return scale * x * x


def helper(x):
    return x * x


def calling(x):
    return helper(x) * 2.0


both = pytest.mark.parametrize(
    "way",
    [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)],
    ids=["interpreted", "compiled"],
)


TABLE = np.ones((2, 2))


def test_a_global_that_only_decided_what_is_generated_is_asked_at_each_call(monkeypatch):
    def f(x):
        return x * x if TABLE.ndim == 2 else x * x * x

    for t in (s2s.grad(f), s2s.jit(s2s.grad(f)), s2s.grad(lambda x: f(x) + 0.0)):
        monkeypatch.setitem(f.__globals__, "TABLE", np.ones((2, 2)))
        assert [t(2.0), t(2.0)] == [4.0, 4.0]
        monkeypatch.setitem(f.__globals__, "TABLE", np.ones(2))
        assert [t(2.0), t(2.0)] == [12.0, 12.0]


def test_a_global_with_the_name_of_one_of_pythons_own_functions_is_seen(monkeypatch):
    def f(x):
        return abs(x) * x

    def own(x):
        return x * x

    for t in (s2s.grad(f), s2s.jit(s2s.grad(f)), s2s.grad(lambda x: f(x) + 0.0)):
        assert [t(2.0), t(2.0)] == [4.0, 4.0]
        with monkeypatch.context() as inside:
            inside.setitem(f.__globals__, "abs", own)
            assert [t(2.0), t(2.0)] == [12.0, 12.0]
        assert t(2.0) == 4.0



@both
def test_a_global_is_read_at_each_call(way, monkeypatch):
    slope = way(s2s.grad(scaled))
    assert [slope(2.0), slope(2.0)] == [12.0, 12.0]
    monkeypatch.setitem(globals(), "scale", 5.0)
    assert [slope(2.0), slope(2.0)] == [20.0, 20.0]
    monkeypatch.setitem(globals(), "scale", np.array([1.0, 2.0]))  # another kind
    with pytest.raises(s2s.TypeMismatchError):
        slope(2.0)
    monkeypatch.setitem(globals(), "scale", 1.0)
    assert slope(2.0) == 4.0


@both
def test_a_function_that_is_rebound_is_seen(way, monkeypatch):
    slope = way(s2s.grad(calling))
    assert [slope(3.0), slope(3.0)] == [12.0, 12.0]
    monkeypatch.setitem(globals(), "helper", lambda x: x * x * x)
    assert [slope(3.0), slope(3.0)] == [54.0, 54.0]
    monkeypatch.undo()
    assert slope(3.0) == 12.0


@both
def test_a_closed_over_name_that_is_rebound_is_seen(way):
    k = 1.0

    def f(x):
        return k * x * x

    slope = way(s2s.grad(f))
    found = [slope(1.0), slope(1.0)]
    for k in (2.0, 3, np.float64(4.0)):
        found += [slope(1.0), slope(1.0)]
    assert found == [2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 8.0, 8.0]


@both
def test_kinds_in_turns(way):
    f = way(s2s.grad(mixed))
    u, k = rng.normal(size=4), 0.7
    expected = np.sin(u) * k + np.cos(u) * k * u
    for _ in range(3):
        assert np.allclose(f(u, k), expected)
        assert f(u.astype(np.float32), np.float32(k)).dtype == np.float32
        assert f(u[:1], k).shape == (1,)
        assert np.allclose(f(np.repeat(u, 2)[::2], k), expected)  # another layout
        assert np.allclose(f(u, np.full(4, k)), expected)
        assert f(np.zeros(0), k).shape == (0,)
        assert np.allclose(f(u, k=k), expected)
        with pytest.raises(s2s.ShapeMismatchError, match="pass arrays whose lengths go together"):
            f(u, np.ones(3))
        with pytest.raises(s2s.UnsupportedError, match="whose arithmetic is its own"):
            f(np.ma.masked_array(u, [1, 0, 0, 0]), k)


@both
def test_integers_and_truth_are_no_floats(way):
    f = way(lambda x: x + x)
    for _ in range(2):
        assert repr([f(1.5), f(2), f(True), f(1j), f(np.float32(2.0))]) == repr(
            [3.0, 4, 2, 2j, np.float32(4.0)]
        )


def with_default(x, /, n=2, *, k=1.0):
    return k * x**n


@both
def test_arguments_as_python_takes_them(way):
    slope = way(s2s.grad(with_default))
    for _ in range(2):
        assert [
            slope(3.0),
            slope(3.0, 3),
            slope(3.0, n=3),
            slope(3.0, k=2.0),
            slope(3.0, 2, k=2.0),
        ] == [6.0, 27.0, 27.0, 12.0, 12.0]
        for args, keywords in (
            ((), {}),
            ((1.0, 2, 3.0), {}),
            ((1.0,), {"m": 1}),
            ((), {"x": 1.0}),
            ((1.0, 2), {"n": 2}),
        ):
            with pytest.raises(TypeError):
                slope(*args, **keywords)


def by_keywords(x, *rest, scale=1.0, **weights):
    total = sum(rest)
    for name, weight in weights.items():
        total = total * x + weight * len(name)
    return scale * total


@both
def test_keywords_of_two_stars(way):
    slope = way(s2s.grad(by_keywords))
    for _ in range(3):  # the function that runs calls of one kind meets those of another
        assert slope(3.0, a=1.0, bc=2.0) == 1.0
        assert slope(3.0, bc=2.0, a=1.0) == 4.0  # their order counts
        assert slope(x=3.0, a=1.0, bc=2.0, scale=2.0) == 2.0
        assert slope(3.0, 5.0, a=1.0, bc=2.0) == 31.0
        assert slope(3.0, a=np.float64(1.0), bc=2) == 1.0
        assert slope(3.0, 5.0) == 0.0
        with pytest.raises(TypeError):
            slope(a=1.0, bc=2.0)
    slope(3.0, a=1.0, bc=2.0)
    assert slope.__call__.__name__ == "by_keywords_grad", "calls by keywords take the slow way"


def test_parameters_that_have_names_of_builtins():
    def f(type, float, len, ndarray, max, rest, out):
        return np.sum(type * float + len * ndarray) * max * rest * out

    slope = s2s.grad(f, argnums=(0, 6))
    args = (np.ones(2), 2.0, 3.0, np.ones(2), 4.0, 5.0, 6.0)
    for _ in range(3):
        a, b = slope(*args)
        assert a.tolist() == [240.0, 240.0] and b == 200.0
    assert slope(*args[:-1], out=7.0)[1] == 200.0


@pytest.mark.compile
def test_trees_of_every_form():
    def f(p, q):
        return np.sum(p["a"][0] * q.w) * q.b + p["b"].b * np.sum(p["b"].w) + p["c"][1]

    w = rng.normal(size=3)
    slope = s2s.jit(s2s.grad(f, argnums=(0, 1)))
    args = {"a": [w], "b": Layer(w, 2.0), "c": (1.0, 2.0)}, Params(w, 3.0)
    for _ in range(3):
        p, q = slope(*args)
        assert np.allclose(p["a"][0], 3 * w) and isinstance(p["b"], Layer) and p["c"] == (0.0, 1.0)
        assert (
            isinstance(q, Params) and np.allclose(q.w, 3 * w * (w != 0)) and np.isclose(q.b, w @ w)
        )
    # in another order
    q = slope({"b": Layer(w, 2.0), "a": [w], "c": (1.0, 2.0)}, Params(w, 3.0))[1]
    assert np.isclose(q.b, w @ w)
    ordered = s2s.jit(s2s.grad(lambda d: d["x"] * d["y"]))
    for kind in (dict, OrderedDict, dict):
        found = ordered(kind(x=2.0, y=3.0))
        assert type(found) is kind and found["x"] == 3.0


def tree_times(tree, rate):
    return s2s.tree.map(lambda x: x * rate, tree)


@pytest.mark.compile
def test_trees_of_many_leaves():
    """They are asked and made at once; what is of another kind, or in another order, is what it is
    all the same.
    """
    arrays = [np.full(3, float(k)) for k in range(40)]
    trees = [
        arrays,
        tuple(arrays),
        {f"w{k}": x for k, x in enumerate(arrays)},
        {k: float(k) for k in range(40)},
        [np.float32(k) for k in range(40)],
        {"a": arrays, "b": (1.0, {"c": [float(k) for k in range(30)]})},
        {f"w{k}": x if k % 2 else float(k) for k, x in enumerate(arrays)},
    ]
    native = s2s.jit(tree_times)

    def judged(tree):
        for found, wanted in zip(
            s2s.tree.leaves(native(tree, 2.0)), s2s.tree.leaves(tree_times(tree, 2.0)), strict=True
        ):
            assert type(found) is type(wanted) and np.array_equal(found, wanted)

    for tree in (*trees, *trees):
        judged(tree)
        assert s2s.tree.map(type, native(tree, 2.0)) == s2s.tree.map(type, tree_times(tree, 2.0))
    by_name = trees[2]
    turned = dict(reversed(by_name.items()))
    judged(turned)
    assert list(native(turned, 2.0)) == list(turned)
    native(by_name, 2.0)
    assert native(by_name, 2.0) is not native(by_name, 2.0)
    judged({**by_name, "w3": 3.0})
    judged({**by_name, "more": 3.0})
    judged({**by_name, "w3": np.ones((2, 2))})
    judged({**by_name, "w3": np.ones(3, np.float32)})
    judged({**by_name, "w3": np.ones(6)[::2]})


def test_an_error_in_a_program_names_its_line_each_time():
    def f(x, i):
        return x[i] * 2.0

    slope = s2s.grad(f)
    x = np.ones(3)
    for _ in range(2):
        slope(x, 1)
        with pytest.raises(IndexError) as error:
            slope(x, 7)
        assert "return x[i] * 2.0" in "".join(
            getattr(error.value, "__notes__", [str(error.value.__cause__)])
        )


@pytest.mark.compile
def test_an_error_in_compiled_code_names_its_line_each_time():
    def f(x, i):
        if i < 0:
            raise ValueError(f"no element {i}")
        return x[i] * 2.0

    slope = s2s.jit(s2s.grad(f))
    x = np.ones(3)
    for _ in range(2):
        assert slope(x, 1).tolist() == [0.0, 2.0, 0.0]
        with pytest.raises(IndexError) as error:
            slope(x, 7)
        assert "return x[i] * 2.0" in "".join(
            getattr(error.value, "__notes__", [str(error.value.__cause__)])
        )
        with pytest.raises(ValueError, match="no element -2"):
            slope(x, -2)


@pytest.mark.compile
def test_what_acts_acts_once(capsys):
    def f(x, i):
        print("at", i)
        return x[i] * 2.0

    fast = s2s.jit(f)
    for _ in range(3):
        fast(np.ones(3), 1)
    with pytest.raises(IndexError):
        fast(np.ones(3), 5)
    assert capsys.readouterr().out == "at 1\n" * 3 + "at 5\n"


@pytest.mark.compile
def test_arguments_are_left_as_they_are():
    u = rng.normal(size=6)
    before = u.copy()
    slope = s2s.jit(s2s.grad(relax))
    for _ in range(3):
        slope(u, 0.2, 3)
    u.flags.writeable = False
    slope(u, 0.2, 3)
    assert np.array_equal(u, before)


@pytest.mark.compile
def test_a_dispatcher_is_not_asked_for_other_dtypes():
    """What was written for float64 hands integers on, and does not have them compiled as its
    own.
    """
    fast = s2s.jit(lambda x: x[0] / 2)
    assert fast(np.ones(3)) == 0.5
    code = fast.last.call.native.dispatcher
    assert fast(np.arange(1, 4)) == 0.5
    assert len(code.signatures) == 1
    fast(np.ones(6)[::2])
    fast(np.ones(3))
    assert fast(np.ones(6)[::2]) == 0.5 and len(code.signatures) == 2


@pytest.mark.compile
def test_a_method_and_its_object():
    class Model:
        def __init__(self, k):
            self.k = k

        @s2s.jit
        @s2s.grad
        def slope(self, x):
            return self.k * x * x

    a, b = Model(1.0), Model(2.0)
    assert [a.slope(1.0), b.slope(1.0), a.slope(1.0), a.slope(1.0)] == [2.0, 4.0, 2.0, 2.0]
    a.k = 5.0
    assert [a.slope(1.0), a.slope(1.0)] == [10.0, 10.0]


def test_source_is_of_the_last_call():
    slope = s2s.grad(mixed)
    slope(np.ones(3), 1.0)
    slope(np.ones(3), 1.0)
    vector = slope.source
    slope(1.0, 1.0)
    assert slope.source != vector
    slope(np.ones(3), 1.0)
    assert slope.source == vector
    with pytest.raises(s2s.TypeMismatchError, match="what is saved depends on the arguments\n"
                                                    "Instead: give them to lower"):
        slope.lower().memory  # noqa: B018


# --------------------------------------------------------------------------------------------- out=


@both
def test_results_are_written_into_what_is_given(way):
    u = rng.normal(size=5)
    slope, plain = (
        way(s2s.value_and_grad(mixed, argnums=(0, 1))),
        s2s.value_and_grad(mixed, argnums=(0, 1)),
    )
    u_bar = np.full(5, np.nan)
    out = None, (u_bar, None)
    for k in (1.0, 2.0, 3.0):
        out = slope(u, k, out=out)
        assert out[1][0] is u_bar
        value, (expected, k_bar) = plain(u, k)
        assert (
            np.allclose(u_bar, expected)
            and np.isclose(out[0], value)
            and np.isclose(out[1][1], k_bar)
        )
    fresh = slope(u, 1.0)
    assert fresh[1][0] is not u_bar and np.allclose(u_bar, plain(u, 3.0)[1][0])


@pytest.mark.lengthy
@both
def test_out_that_shares_memory_with_an_argument(way):
    u = rng.normal(size=6)
    slope = way(s2s.grad(relax))
    expected = s2s.grad(relax)(u, 0.2, 3)
    for _ in range(3):
        x = u.copy()
        assert slope(x, 0.2, 3, out=x) is x
        assert np.allclose(x, expected)
        memory = np.concatenate([u, np.zeros(2)])
        assert np.allclose(slope(memory[:6], 0.2, 3, out=memory[2:]), expected) and np.allclose(
            memory[2:], expected
        )
        backwards = u.copy()
        assert np.allclose(slope(backwards, 0.2, 3, out=backwards[::-1]), expected)
        assert np.allclose(backwards[::-1], expected)
        apart = np.zeros(12)
        slope(u, 0.2, 3, out=apart[::2])
        assert np.allclose(apart[::2], expected) and not apart[1::2].any()


REFUSED = [
    (lambda u: np.zeros(4), "out has the shape (4,), and the result there (5,)\n"
                            "Instead: give arrays of the results' shapes"),
    (lambda u: np.zeros((5, 1)), "out has the shape (5, 1), and the result there (5,)"),
    (lambda u: np.zeros(5, np.float32), "out is of float32, and the result there of float64\n"
                                        "Instead: give arrays of the results' dtypes"),
    (lambda u: (np.zeros(5),), "out is a tuple of 1, and the result there is an array\n"
                               "Instead: give an array, such as the last result"),
    (lambda u: np.zeros(5).view(np.matrix), "out is a matrix"),
    (lambda u: np.broadcast_to(0.0, 5), "out is read-only\n"
                                        "Instead: give an array that can be written"),
]


@both
@pytest.mark.parametrize("made, message", REFUSED, ids=range(len(REFUSED)))
def test_out_that_does_not_fit(way, made, message):
    u = np.ones(5)
    slope = way(s2s.grad(relax))
    slope(u, 0.2, 2, out=np.zeros(5))
    for _ in range(2):
        with pytest.raises(s2s.TypeMismatchError) as error:
            slope(u, 0.2, 2, out=made(u))
        assert message in str(error.value)


def test_out_that_has_another_structure():
    slope = s2s.value_and_grad(loss)
    args = {"w": np.ones(2), "b": 0.0}, np.ones((3, 2)), np.ones(3)
    w = np.zeros(2)
    for out, message in (
        (
            (None, {"w": w}),
            "out[1] is a dict with the keys 'w', and the result is a dict with the keys 'w', 'b'",
        ),
        ((None, {"w": None, "b": None}), "out[1]['w'] is None, and the result there is an array"),
        (
            (None, {"w": w, "b": np.zeros(())}),
            "out[1]['b'] is an array, and the result there is a number\n"
            "Instead: give None there: it is returned",
        ),
        ([None, None, None], "out is a list of 3, and the result is a tuple of 2"),
        ((None,), "out is a tuple of 1, and the result is a tuple of 2"),
    ):
        with pytest.raises(s2s.TypeMismatchError) as error:
            slope(*args, out=out)
        assert message in str(error.value)
    assert not w.any()


@both
def test_out_that_holds_two_results_in_one_place(way):
    slope = way(s2s.grad(lambda x, y: np.sum(x * y), argnums=(0, 1)))
    x, y, memory = np.ones(3), np.ones(3), np.zeros(6)
    slope(x, y, out=(np.zeros(3), np.zeros(3)))
    for a, b in ((memory[:3], memory[:3]), (memory[:3], memory[1:4])):
        with pytest.raises(s2s.TypeMismatchError, match="two arrays of out share memory"):
            slope(x, y, out=(a, b))
    y[:] = [1.0, 2.0, 3.0]
    a, b = slope(x, y, out=(memory[::2], memory[1::2]))  # woven into one another, and apart
    assert a.tolist() == [1.0, 2.0, 3.0] and b.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_what_overlaps_is_found_among_many_as_among_few(seed):
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, 400, 30)
    highs = lows + rng.integers(1, 12, 30)
    lows[::7] = highs[::7] = 0  # arrays without elements
    for count in (0, 1, 15, 30):
        expected = out_argument.overlapping(count, tuple(lows), tuple(highs))
        assert out_argument.overlapping_in_order(count, tuple(lows), tuple(highs)) == expected
        kept = [
            k
            for k in range(30)
            if not any(max(lows[k], lows[j]) < min(highs[k], highs[j]) for j in range(30) if j != k)
        ]
        assert not out_argument.overlapping_in_order(
            len(kept), tuple(lows[kept]), tuple(highs[kept])
        )


@pytest.mark.lengthy
def test_out_for_many_results():
    def total(tree, x):
        found = 0.0
        for leaf in tree:
            found = found + np.sum(leaf * leaf) * x
        return found

    leaves = [np.arange(3.0) + k for k in range(30)]
    gradient = s2s.jit(s2s.grad(total))
    out = [np.full(3, np.nan) for _ in leaves]
    assert gradient(leaves, 2.0, out=out)[7] is out[7]
    np.testing.assert_array_equal(out, [4.0 * x for x in leaves])
    # each result shares memory with an argument
    assert gradient(leaves, 2.0, out=leaves)[7] is leaves[7]
    np.testing.assert_array_equal(leaves, out)


@pytest.mark.compile
def test_a_training_loop_allocates_no_results():
    """Numba counts one allocation for each array that it is handed, the note of whose it is, for as
    long as the call.
    """
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)

    def squares(p, X, y):
        total = 0.0
        for i in range(len(y)):
            z = p["b"] - y[i]
            for j in range(len(p["w"])):
                z += p["w"][j] * X[i, j]
            total += z * z
        return total

    p = {"w": np.zeros(4), "b": np.zeros(2)[0]}
    step = s2s.jit(s2s.grad(squares))
    slope = {"w": np.empty(4), "b": None}
    for _ in range(3):
        slope = step(p, X, y, out=slope)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    for _ in range(200):
        slope = step(p, X, y, out=slope)
        p["w"] -= 1e-3 * slope["w"]
        p["b"] -= 1e-3 * slope["b"]
    after = rtsys.get_allocation_stats().alloc
    _nrt_python.memsys_disable_stats()
    assert after - before == 200 * 4  # w, X, y, the array for the derivative in w
    assert np.allclose(slope["w"], s2s.grad(squares)(p, X, y)["w"], atol=1e-2)


@pytest.mark.compile
def test_out_where_a_result_is_made_in_a_branch():
    def f(x, n):
        if n > 2:
            return x * 2.0
        y = np.zeros(len(x) + n)
        y[:len(x)] = x
        return y

    fast = s2s.jit(f)
    x = rng.normal(size=3)
    for n in (1, 3, 1, 3):
        expected = f(x, n)
        out = np.full(expected.shape, np.nan)
        for _ in range(2):
            assert fast(x, n, out=out) is out and np.array_equal(out, expected)


@pytest.mark.compile
def test_out_of_a_result_that_is_an_argument():
    fast = s2s.jit(lambda x, y: (x, y, x))
    x, y = np.ones(2), np.full(2, 2.0)
    out = np.zeros(2), np.zeros(2), np.zeros(2)
    for _ in range(3):
        found = fast(x, y, out=out)
        assert all(a is b for a, b in zip(found, out)) and [a.tolist() for a in out] == [
            [1, 1],
            [2, 2],
            [1, 1],
        ]


# ---------------------------------------------------------------------------- threads and processes


@pytest.mark.compile
def test_concurrent_first_calls_compile_once():
    def f(x):
        y = x
        for i in range(7):
            y = y * np.cos(x) + 0.125
        return y

    slope = s2s.jit(s2s.grad(f), cache=False)
    compiled, _ = statistics()
    expected, found, begin = s2s.grad(f)(0.3), [], threading.Barrier(8)

    def run():
        begin.wait()
        found.extend(slope(0.3) for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert len(found) == 160 and np.allclose(found, expected)
    assert statistics()[0] == compiled + 1


def test_concurrent_calls_of_several_kinds():
    slope = s2s.grad(mixed)
    u = rng.normal(size=5)
    kinds = [(u, 0.5), (0.3, 0.5), (u, u), (u[:1], 0.5), (u.astype(np.float32), np.float32(0.5))]
    expected = [s2s.grad(mixed)(*args) for args in kinds]
    wrong = []

    def run(k):
        for i in range(60):
            j = (i + k) % len(kinds)
            if not np.array_equal(slope(*kinds[j]), expected[j]):
                wrong.append(j)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not wrong


@pytest.mark.compile
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_compiles():
    """The child calls what is compiled, and compiles what is not: no lock is held by a thread that
    it does not have.
    """
    ready = s2s.jit(s2s.grad(chain))
    assert np.isclose(ready(1.0), np.sin(1.0) + np.cos(1.0))
    stop = threading.Event()

    def compiling():
        k = 0
        while not stop.is_set():
            k += 1
            s2s.jit(s2s.from_source(f"def f(x):\n    return x * {k}.5 + np.sin(x)"), cache=False)(
                1.0
            )

    worker = threading.Thread(target=compiling)
    worker.start()
    try:
        for k in range(3):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                fine = (
                    np.isclose(ready(1.0), np.sin(1.0) + np.cos(1.0))
                    and s2s.jit(lambda x: x * 3.0, cache=False)(2.0) == 6.0
                )
                os._exit(0 if fine else 1)
            until = time.monotonic() + 60
            while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
                time.sleep(0.02)
            if done[0] == 0:
                os.kill(child, 9)
                os.waitpid(child, 0)
                pytest.fail("the child waits for ever")
            assert os.waitstatus_to_exitcode(done[1]) == 0
    finally:
        stop.set()
        worker.join()


def slope_in_a_child(x):
    return float(s2s.jit(s2s.grad(chain))(x))


@pytest.mark.compile
@pytest.mark.skipif(sys.platform == "win32", reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_processes_of_a_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(slope_in_a_child, [0.5, 1.0, 1.5])
    assert np.allclose(found, [np.sin(x) + x * np.cos(x) for x in (0.5, 1.0, 1.5)])


@pytest.mark.lengthy
def test_halves_are_handed_arrays_of_known_lengths():
    def f(x):
        rows = np.stack([np.sin(x), x * x])
        return np.sum(rows * rows, axis=1)

    x = np.array([0.3, 0.7, -0.2])
    y, pullback = s2s.vjp(s2s.jit(f), x)
    expected, interpreted = s2s.vjp(f, x)
    np.testing.assert_allclose(y, expected, rtol=1e-14)
    for bar in (np.array([1.0, 0.0]), np.array([0.5, -2.0])):
        np.testing.assert_allclose(pullback(bar)[0], interpreted(bar)[0], rtol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize(
    "kind",
    [lambda f: f, s2s.grad, s2s.jit, lambda f: s2s.jit(s2s.value_and_grad(f))],
    ids=["plain", "grad", "jit", "jit of value_and_grad"],
)
def test_calls_of_one_kind_do_not_look_again(kind, monkeypatch):
    """The function that stands for a call may have the user's name, and asks the user's function
    for its code.
    """
    def f(p):
        return np.sum(p["w"]) * p["b"]

    transformed = kind(f)
    if transformed is f:
        transformed = s2s.jit(f)
    args = {"w": np.ones(3), "b": 2.0},
    expected = transformed(*args)
    monkeypatch.setattr(type(transformed), "specialise", None)  # what looks again asks for this
    again = transformed(*args)
    if isinstance(again, dict):
        np.testing.assert_array_equal(again["w"], expected["w"])
    else:
        assert repr(again) == repr(expected)


def last_of(x, y):
    total = 0.0
    for i in range(len(y)):
        total += np.exp(np.sin(y[i])) * x[min(i, len(x) - 1)]
    return total


@pytest.mark.compile
def test_long_calls_of_another_kind_run_what_is_for_them():
    """Threads are chosen by lengths before anybody asks whether an axis is 1, as the code
    expects.
    """
    fast, y = s2s.jit(last_of), np.linspace(0.1, 1.0, 100_000)
    for n in (1, 1, len(y), 1):
        x = np.linspace(0.5, 1.0, n)
        np.testing.assert_allclose(fast(x, y), last_of(x, y))


# ------------------------------------------------------------------------------- *args and **named


def of_any_number(x, *args, **named):
    return np.sum(x * x) * sum(args) * named.get("w", 1.0)


def of_any_number_after_a_default(x, a=2.0, *args, k=1.0):
    return np.sum(x * x) * a * k + sum(args)


def is_direct(t) -> bool:
    return t.__call__ is not t.call and t.__call__ != t.call


@pytest.mark.parametrize("way", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_any_number_of_arguments_takes_the_fast_path(way):
    t, x = way(s2s.grad(of_any_number)), np.ones(3)
    for args, named in (
        ((2.0,), {}), ((2.0,), {}), ((2.0, 3.0), {}), ((2.0,), {"w": 3.0}), ((2.0,), {}),
        ((2.0,), {"out": 3.0}), ((2, 3), {}), ((2.0, np.float64(3.0)), {}), ((2.0,), {"w": 3.0}),
    ):
        wanted = 2 * x * sum(args) * named.get("w", 1.0)
        np.testing.assert_array_equal(t(x, *args, **named), wanted)
    np.testing.assert_array_equal(t(x, 2.0), 4 * x)
    assert is_direct(t)


@pytest.mark.parametrize("way", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)])
def test_arguments_before_and_after_any_number_of_others(way):
    t, x = way(s2s.grad(of_any_number_after_a_default)), np.ones(3)
    for args, named in (
        ((), {}), ((3.0,), {}), ((3.0, 1.0), {}), ((3.0, 1.0), {"k": 2.0}), ((), {"k": 2.0}),
        ((), {"a": 5.0}), ((3.0, 1.0, 2.0), {"k": 3.0}), ((), {"a": 5.0, "k": 3.0}), ((3.0,), {}),
    ):
        a = named.get("a", args[0] if args else 2.0)
        np.testing.assert_array_equal(t(x, *args, **named), 2 * x * a * named.get("k", 1.0))
    np.testing.assert_array_equal(t(x=x, a=3.0), 6 * x)
    for wrong in ({"args": 1.0}, {"args_0": 1.0}, {"zz": 1.0}):
        t(x, 3.0, 1.0)
        with pytest.raises(TypeError):
            t(x, 3.0, **wrong)
