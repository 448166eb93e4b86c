"""Arguments that do not lie in C order: what is read in rows is copied at the door, all else stays
as it lies, and results are those of any order.
"""

import ast
import itertools
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import s2s
from s2s.runtime.entry.access_order import read_in_rows
from s2s.runtime.numba import native_module

pytestmark = pytest.mark.compile


def elementwise(a, b):
    return np.sum(np.maximum(a * b + a, 0.0) ** 2 * a)


def rows(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * a[i, j] * b[i, j]
    return total


def stencil(a, b):
    y = np.zeros(a.shape)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            y[i, j] = a[i - 1, j] * a[i, j + 1] + b[i, j]
    return np.sum(y * y)


def each_way(x):
    """`x` as it may lie in memory."""
    yield "rows", x.copy()
    yield "columns", np.asfortranarray(x)
    yield "backwards", x[::-1, ::-1].copy()[::-1, ::-1]
    yield "apart", np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    yield "not to be written", frozen(x)
    # at places that no number would be put
    field = np.zeros(x.shape, [("pad", np.int8), ("x", x.dtype)])["x"]
    field[...] = x
    yield "between bytes", field


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("f", [elementwise, rows, stencil], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(13, 9), (40, 33), (2, 70), (4, 8), (0, 5), (5, 0)], ids=str)
def test_results_are_those_of_any_order(f, shape):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=shape), rng.normal(size=shape)
    grad, compiled = (
        s2s.value_and_grad(f, argnums=(0, 1)),
        s2s.jit(s2s.value_and_grad(f, argnums=(0, 1))),
    )
    value, of = grad(a, b)
    for (name, x), (other, y) in itertools.product(each_way(a), each_way(b)):
        before = x.copy(), y.copy()
        found, of_found = compiled(x, y)
        np.testing.assert_allclose(found, value, rtol=1e-12, err_msg=f"{name}, {other}")
        for p, q in zip(of_found, of):
            np.testing.assert_allclose(p, q, rtol=1e-12, atol=1e-14, err_msg=f"{name}, {other}")
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.complex128, np.int64, np.bool_], ids=lambda d: d.__name__
)
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_numbers_of_all_kinds_and_ranks(dtype, rank):
    rng = np.random.default_rng(2)
    compiled = s2s.jit(lambda x: x * 2 + 1)
    for shape in ((9, 21, 5, 6)[:rank], (7, 4, 17, 3)[:rank]):
        wide = (rng.normal(size=tuple(2 * n for n in shape)) * 9).astype(dtype)
        for steps in itertools.product((2, -2), repeat=rank):
            x = wide[tuple(slice(None, None, k) for k in steps)]
            for given in (
                x,
                np.asfortranarray(x),
                x.transpose(),
                np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
            ):
                expected = given * 2 + 1
                found = compiled(given)
                np.testing.assert_array_equal(found, expected)
                assert found.dtype == expected.dtype


def test_one_code_serves_all_orders():
    """What is compiled for a further layout is a door, which is small: the code is not compiled
    again.
    """
    a, b = np.random.default_rng(3).normal(size=(2, 30, 20))
    compiled = s2s.jit(
        s2s.grad(lambda a, b: elementwise(a, b + 4321.0), argnums=(0, 1)), cache=False
    )
    before = set(native_module._modules)
    compiled(np.asfortranarray(a), b)
    compiled(a[::-1], b[:, ::-1])
    code, door = sorted(
        (native_module._modules[each] for each in set(native_module._modules) - before),
        key=lambda made: "return s2s_behind_" in made.__s2s_text__,
    )
    assert "return s2s_behind_" in door.__s2s_text__ and "for " not in door.__s2s_text__
    entry = next(each for each in vars(door).values() if hasattr(each, "overloads")).__name__
    layouts = {tuple(kind.layout for kind in kinds) for kinds in getattr(code, entry).overloads}
    assert layouts == {("C", "C"), ("F", "C"), ("A", "A")}
    assert {tuple(kind.layout for kind in kinds) for kinds in getattr(door, entry).overloads} == {
        ("F", "C"),
        ("A", "A"),
    }


@pytest.mark.parametrize(
    "given",
    [
        lambda x: np.broadcast_to(x[0], (400, 30)),
        lambda x: np.lib.stride_tricks.sliding_window_view(x.ravel(), 40),
    ],
    ids=["a row that is broadcast", "windows that slide"],
)
def test_what_overlaps_itself_is_not_copied(given):
    x = given(np.random.default_rng(4).normal(size=(40, 30)))
    f = lambda a: np.sum(np.sin(a) * a)  # noqa: E731
    compiled = s2s.jit(f)
    for each in (x, x[::-1], np.asfortranarray(x), x):
        np.testing.assert_allclose(compiled(each), f(each), rtol=1e-12)


def script(path, code, **environment):
    """A process that runs this code, and has ended."""
    path.write_text(textwrap.dedent(code))
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_memory_of_windows_is_not_multiplied(tmp_path):
    """A view of 2 MB with 4 GB of elements is read where it lies."""
    code = """
        import sys
        import numpy as np, s2s
        f = s2s.jit(lambda w: np.sum(w * w), parallel=False)
        x = np.ones(250_000)
        f(np.lib.stride_tricks.sliding_window_view(x[:4000], 500))
        w = np.lib.stride_tricks.sliding_window_view(x, 2000)
        assert f(w) == w.size
        # in kB; getrusage would count what the process that started this one has had
        lines = open("/proc/self/status")
        peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
        sys.exit(peak > 1_500_000)
    """
    ended = script(tmp_path / "windows.py", code)
    assert ended.returncode == 0, ended.stderr


def test_out_may_lie_in_any_order():
    a, b = np.random.default_rng(5).normal(size=(2, 12, 7))
    compiled = s2s.jit(s2s.grad(elementwise, argnums=(0, 1)))
    expected = compiled(a, b)
    for x in (a, np.asfortranarray(a), a[::-1].copy()[::-1]):
        for made in (
            lambda: np.zeros((12, 7)),
            lambda: np.zeros((12, 7), order="F"),
            lambda: np.zeros((24, 14))[::2, ::2],
        ):
            out = made(), made()
            for _ in range(2):  # the second goes the short way
                found = compiled(x, b, out=out)
                assert found[0] is out[0] and found[1] is out[1]
                for p, q in zip(out, expected):
                    np.testing.assert_allclose(p, q, rtol=1e-13)


def test_out_may_be_an_argument():
    """Results are written where the argument lies, which is read before."""
    a, b = np.random.default_rng(6).normal(size=(2, 12, 7))
    compiled = s2s.jit(lambda a, b: np.cumsum(a, axis=0) * b)
    expected = compiled(a, b)
    for x in (a.copy(), np.asfortranarray(a), a[::-1].copy()[::-1], a.T.copy().T):
        for _ in range(2):
            given = x.copy(order="A")
            compiled(given, b, out=given)
            np.testing.assert_allclose(given, expected, rtol=1e-13)
    whole = np.zeros((24, 7))
    whole[:12] = a
    view = np.asfortranarray(whole)
    compiled(view[:12], b, out=view[6:18])
    np.testing.assert_allclose(view[6:18], expected, rtol=1e-13)


def test_arguments_that_share_memory():
    x = np.random.default_rng(7).normal(size=(9, 9))
    compiled = s2s.jit(s2s.grad(elementwise, argnums=(0, 1)))
    for given in ((x, x.T), (x.T, x.T), (x[::-1], x), (x[:8, 1:], x[1:, :8])):
        for p, q in zip(compiled(*given), s2s.grad(elementwise, argnums=(0, 1))(*given)):
            np.testing.assert_allclose(p, q, rtol=1e-12)


def test_writes_into_an_argument_are_the_calls_own():
    def f(x):
        x[1:] = x[:-1] * x[1:]
        return np.sum(x * x)

    x = np.random.default_rng(8).normal(size=(6, 5))
    for given in (np.asfortranarray(x), x[::-1], x.T):
        before = given.copy()
        found = s2s.jit(s2s.grad(f))(given)
        np.testing.assert_array_equal(given, before)
        np.testing.assert_allclose(found, s2s.grad(f)(given), rtol=1e-12)


def test_errors_are_those_of_any_order():
    def f(x, y):
        if np.sum(x * x) > 100.0:
            raise ValueError("too large")
        return np.sum(x * y)

    compiled = s2s.jit(f)
    x = np.asfortranarray(np.ones((5, 4)))
    assert compiled(x, x) == 20.0
    for _ in range(2):
        with pytest.raises(ValueError, match="too large"):
            compiled(x * 10, x)
        with pytest.raises(ValueError):
            compiled(x, x[:, :3])


@pytest.mark.parametrize("parallel", [None, True])
def test_loops_in_parts_are_asked_before_anything_is_copied(parallel):
    a, b = np.random.default_rng(9).normal(size=(2, 700, 600))
    compiled = s2s.jit(s2s.grad(elementwise, argnums=(0, 1)), parallel=parallel)
    for x, y in ((a, b), (np.asfortranarray(a), b), (a[::-1], b[:, ::-1]), (a, b)):
        for p, q in zip(compiled(x, y), s2s.grad(elementwise, argnums=(0, 1))(x, y)):
            np.testing.assert_allclose(p, q, rtol=1e-12, atol=1e-13)
    doors = [
        m.__s2s_text__
        for m in native_module._modules.values()
        if "return s2s_behind_" in m.__s2s_text__ and "elementwise_grad" in m.__s2s_text__
    ]
    assert doors and all(
        "MoreWork" not in text or text.index("raise MoreWork") < text.index("return s2s_behind_")
        for text in doors
    )


def test_a_door_comes_from_the_cache(tmp_path):
    code = """
        import numpy as np, s2s
        from s2s.runtime.numba.native_module import statistics
        f = s2s.jit(s2s.grad(lambda a, b: np.sum(np.tanh(a * b) * a)))
        a = np.arange(12.0).reshape(3, 4) / 7
        for x in (np.asfortranarray(a), a[::-1]):
            slope = s2s.grad(lambda a, b: np.sum(np.tanh(a * b) * a))
            np.testing.assert_allclose(f(x, a), slope(x, a), rtol=1e-12)
        print(*statistics())
    """
    def run():
        return script(
            tmp_path / "doors.py", code, S2S_CACHE_DIR=str(tmp_path / "cache")
        ).stdout.split()

    assert run() == ["3", "0"]
    assert run() == ["0", "3"]


# --------------------------------------------------------------------------- which are read in rows


def found(body: str, count: int = 2) -> set[str]:
    text = textwrap.dedent(body)
    (entry,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == "f"
    )
    return {entry.args.args[k].arg for k in read_in_rows(text, "f", count)}


def test_all_of_it_row_by_row():
    assert found("""
        def f(x, y):
            n = len(x)
            m = x.shape[1]
            for i in range(n):
                for j in range(m):
                    y[i, j] = x[i, j] + x[n - 1 - i, j]
    """) == {"x"}


def test_neighbours():
    assert found("""
        def f(x, y):
            t = 0.0
            for i in range(max(len(x) - 1, 0)):
                for j in range(x.shape[1]):
                    t += x[i + 1, j] - x[i, j]
            return t
    """) == {"x"}


@pytest.mark.parametrize(
    "read", ["x[i, 0]", "x[0, j]", "x[j, i]", "x[i, i]", "x[i, k]", "x[i, j // 2]"]
)
def test_a_part_of_it_or_columns(read):
    assert found(f"""
        def f(x, k):
            t = 0.0
            for i in range(len(x)):
                for j in range(x.shape[1]):
                    t += {read}
            return t
    """) == set()


@pytest.mark.parametrize("ends", ["k", "min(k, len(x))", "0, len(x), 2", "0, k"])
def test_loops_that_may_end_earlier(ends):
    assert found(f"""
        def f(x, k):
            t = 0.0
            for i in range({ends}):
                for j in range(x.shape[1]):
                    t += x[i, j]
            return t
    """) == set()


def test_in_parts_and_in_functions():
    assert found("""
        def part(part, start, stop, m, a, b):
            for i in range(natural(start), natural(stop)):
                for j in range(m):
                    b[i, j] = a[i, j]

        def f(x, y):
            n, m = x.shape
            z = np.empty((n, m))
            in_parts(part, parts_of(n, 3), n, (m, x, z))
            return z
    """) == {"x"}


def test_more_often_in_columns():
    assert found("""
        def f(x, y):
            t = 0.0
            n, m = x.shape
            for i in range(n):
                for j in range(m):
                    t += x[i, j]
            for j in range(m):
                for i in range(n):
                    t += x[i, j] * y[i]
            return t
    """) == set()


def test_a_name_that_is_bound_again_says_nothing():
    assert found("""
        def f(x, k):
            n = len(x)
            n = min(n, k)
            t = 0.0
            for i in range(n):
                for j in range(x.shape[1]):
                    t += x[i, j]
            return t
    """) == set()
