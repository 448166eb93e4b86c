"""Threads share large loops: the same results, however many there are, whoever calls, and after a
fork.
"""

import os
import re
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import split
from loops_for_threads import elementwise, heat, logistic, root
from numba import njit
from programs import MORE_RESULTS, PROGRAMS

import s2s
from s2s.runtime.numba.compiler import Effort
from s2s.runtime.threads import pool
from s2s.runtime.threads.parallel_for import add_parts
from s2s.runtime.threads.parallel_threshold import BySize


@pytest.fixture
def several():
    before = s2s.set_threads(4)
    yield
    s2s.set_threads(before)


def data(n=3000, d=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), np.sign(rng.normal(size=n)), rng.normal(size=d)


@pytest.mark.compile
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("shape", [(5,), (3, 0), (3, 2, 4)])
def test_arrays_of_parts_are_added_in_their_order(dtype, shape):
    @njit(error_model="numpy", pipeline_class=Effort)
    def added(array, parts):
        add_parts(array, parts)
        return array

    rng = np.random.default_rng(0)
    array = (rng.normal(size=shape) * 100).astype(dtype) * (
        1 + 2j if dtype is np.complex128 else dtype(1)
    )
    for count in (0, 1, 4):
        parts = (rng.normal(size=(count, *shape)) * 100).astype(dtype)
        wanted = array.copy()
        add_parts(wanted, parts)
        np.testing.assert_array_equal(added(array.copy(), parts), wanted)
        if len(shape) == 1:
            np.testing.assert_array_equal(added(np.repeat(array, 2)[::2], parts), wanted)


CASES = {
    "sums and an array that all trips add to": (s2s.value_and_grad(logistic, argnums=2), data()),
    "elements": (s2s.value_and_grad(elementwise), (np.linspace(-1, 1, 30_000),)),
    "lanes with tapes": (s2s.vmap(s2s.grad(root)), (np.linspace(1, 9, 20_000),)),
    "loops inside a loop in order": (
        s2s.grad(heat),
        (np.random.default_rng(0).random((150, 150)), 2),
    ),
    "lanes of lanes": (
        s2s.vmap(s2s.grad(logistic, argnums=2), in_axes=(None, None, 0)),
        (*data(800, 20)[:2], np.random.default_rng(1).normal(size=(4, 20))),
    ),
}


# ------------------------------------------------------------------------------------ what is split


def check_parts(t, args):
    whole, parts = split.modules(t, *args)
    # the globals that it reads
    args = (*args, *(get() for get in t.lower(*args).function.captures.values()))
    expected = split.run(whole, *args)
    for seed, pieces in ((0, 2), (1, 5)):
        assert split.is_same(split.run(parts, *args, pieces=pieces, seed=seed), expected), (
            parts.text
        )


@pytest.mark.parametrize("name", CASES)
def test_parts_in_any_order_give_what_the_loop_gives(name):
    t, args = CASES[name]
    check_parts(
        t, [x[:9] if isinstance(x, np.ndarray) and len(x) == len(args[0]) else x for x in args]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.wrt and p.name not in MORE_RESULTS], ids=lambda p: p.name
)
def test_parts_of_a_program_in_any_order(program):
    check_parts(s2s.value_and_grad(program.function, argnums=program.wrt), program.args)


def test_the_split_reads_well():
    text = split.modules(s2s.value_and_grad(elementwise), np.ones(3))[1].text
    before, _, after = text[text.index("def "):].split('"""')
    assert before + after == textwrap.dedent('''\
        def elementwise_value_and_grad_part(part, start, stop, x, x_bar, total_parts):
            x_bar = apart(x_bar)
            total = 0.0
            for i in range(natural(start), natural(stop)):
                t = np.exp(-x[i])
                t_1 = np.sin(x[i]) * t
                total = total + t_1
                x_bar[i] = t * np.cos(x[i]) - t_1
            total_parts[part] = total


        def elementwise_value_and_grad(x):
            ____
            x_bar = np.empty(len(x))
            total = 0.0
            parts = parts_of(len(x), 27)
            total_parts = np.empty(parts)
            in_parts(elementwise_value_and_grad_part, parts, len(x), (x, x_bar, total_parts))
            for part in range(parts):
                total += total_parts[part]
            return total, x_bar
        ''').replace("____", "")


def test_what_a_part_makes_or_adds_to_shares_no_memory_with_what_it_reads():
    def scattered(table, x, k):
        rows = table[k] * x[:, None]
        return np.sum(np.exp(-rows[:, 0]) * rows[:, 1] + rows[:, 2] ** 2)

    gradient = s2s.grad(scattered, argnums=(0, 1))
    args = np.ones((5, 3)), np.ones(8), np.arange(8) % 5
    text = split.modules(gradient, *args)[1].text
    kernel = text[text.index("_part("):].split("\n\n\n")[0]
    apart = re.findall(r"(\w+) = apart\(", kernel)
    assert {"table_bar", "x_bar"} <= set(apart) and not {"table", "x", "k"} & set(apart)
    stores = set(re.findall(r"^ +(\w+)\[[^=]*\] [-+]?= ", kernel, re.M)) - {"total_parts"}
    assert stores <= set(apart) and len(apart) == len(set(apart))


@pytest.mark.parametrize("name", CASES)
def test_loops_show_what_runs(name):
    t, args = CASES[name]
    assert "in_parts" not in t.lower(*args).loops
    assert "in_parts" not in s2s.jit(t, parallel=False).lower(*args).loops
    assert "in_parts" in s2s.jit(t, parallel=True).lower(*args).loops


def extremes(x):
    top, first, lowest = -1e9, 5, x[0]
    for i in range(len(x)):
        top = max(top, x[i])
        first = min(first, i)
        lowest = np.minimum(lowest, x[i])
    return top, first, lowest, np.max(x) - np.min(x)


@pytest.mark.parametrize(
    "x",
    [
        np.sin(np.arange(20.0)),
        np.r_[np.ones(7), np.nan, 2.0, 3.0],
        np.r_[-np.inf, np.ones(4)],
        np.arange(9, dtype=np.float32),
        np.ones(1),
    ],
    ids=["numbers", "nan", "inf", "float32", "one"],
)
def test_maxima_and_minima(x):
    whole, parts = split.modules(s2s.jit(extremes), x)
    assert parts.text.count("def extremes_part") == 1
    for pieces in (1, 2, 6):
        np.testing.assert_array_equal(split.run(parts, x, pieces=pieces), split.run(whole, x))


def depends(x):
    for i in range(1, len(x)):
        x[i] = x[i] + np.sin(x[i - 1])
    return np.sum(x)


def neighbours(x):
    y = np.zeros(len(x))
    for i in range(len(x) - 1):
        y[i] += x[i]
        y[i + 1] += 2 * x[i]
    return y


def leaves(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 1e9:
            break
        total += x[i]
    return total


def smooths(x):
    s = 0.0
    y = np.zeros(len(x))
    for i in range(len(x)):
        s = 0.5 * s + x[i]
        y[i] = s
    return y


def reads_what_was_added(x):
    hits = np.zeros(4)
    y = np.zeros(len(x))
    for i in range(len(x)):
        hits[i % 4] += x[i]
        y[i] = hits[0]
    return y


def draws(x):
    rng = np.random.default_rng(3)
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] * rng.normal()
    return y


def same_element(x):
    y = np.zeros(3)
    for i in range(len(x)):
        y[i % 3] = x[i]
    return y


def multiplies(x):
    """0 times what overflows is no 0, so products stay in order."""
    product = 1.0
    for i in range(len(x)):
        product *= x[i]
    return product


def forgets(x):
    """Python's max with the older one last: a NaN is forgotten on the next trip."""
    top = 0.0
    for i in range(len(x)):
        top = max(x[i], top)
    return top


def prints(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 1e9:
            print(i)
        total += x[i]
    return total


@pytest.mark.parametrize(
    "f",
    [
        depends,
        neighbours,
        leaves,
        smooths,
        reads_what_was_added,
        draws,
        same_element,
        prints,
        multiplies,
        forgets,
    ],
)
def test_trips_that_depend_on_one_another_stay_in_order(f):
    _, parts = split.modules(s2s.jit(f), np.linspace(0, 1, 7))
    kernels = [
        part
        for part in parts.text.split("\n\n\n")
        if part.startswith("def ") and "_part" in part.split("(")[0]
    ]
    assert all(f is depends and "total" in kernel for kernel in kernels), parts.text  # np.sum(x)


# ------------------------------------------------------------------------------------------ running


@pytest.mark.compile
@pytest.mark.parametrize("name", CASES)
def test_as_without_threads(name, several):
    t, args = CASES[name]
    shared = s2s.jit(t, parallel=True)
    found = shared(*args)
    assert split.is_same(found, t(*args))
    for n in (1, 2, 3, 7):
        s2s.set_threads(n)
        for _ in range(5):
            again = shared(*args)
            assert all(
                np.array_equal(a, b) for a, b in zip(split.leaves(found), split.leaves(again))
            ), n


@pytest.mark.compile
def test_short_empty_and_long_calls(several):
    shared = s2s.jit(s2s.value_and_grad(elementwise), parallel=True)
    for n in (0, 1, 2, 3, 1000, 4853, 4854, 4855, 100_003):
        x = np.linspace(-1, 1, n)
        value, gradient = shared(x)
        np.testing.assert_allclose(value, elementwise(x), rtol=1e-11)
        np.testing.assert_allclose(
            gradient, (np.cos(x) - np.sin(x)) * np.exp(-x), rtol=1e-12, atol=1e-15
        )


@pytest.mark.compile
def test_long_loops_are_shared_unasked(several):
    fast = s2s.jit(elementwise)
    fast(np.ones(100))
    assert list(fast.last.call.native.made) == [frozenset()]
    fast(np.ones(100_000))
    assert list(fast.last.call.native.made) == [frozenset(), frozenset({0})]


def recurrences(x, y, k):
    a = 0.3
    for i in range(len(x)):
        a = 0.9 * a + np.sin(x[i] * a)
    b = 0.2
    for j in range(len(y) - 1, -1, -1):
        b = 0.8 * b + np.cos(y[j * k] + b)
    return a * b


@pytest.mark.compile
def test_loops_in_order_that_need_not_wait_for_one_another(several):
    gradient = s2s.value_and_grad(recurrences, argnums=(0, 1))
    fast, alone = s2s.jit(gradient), s2s.jit(gradient, parallel=False)
    for n, m in ((5, 7), (100_000, 7), (100_000, 100_001), (5, 7)):
        args = np.linspace(-1, 1, n), np.linspace(-2, 1, m), 1
        for a, b in zip(split.leaves(fast(*args)), split.leaves(alone(*args))):
            np.testing.assert_array_equal(a, b)
    (in_sections,) = (
        native for loops, native in fast.last.call.native.general.made.items() if loops
    )
    assert in_sections.module.text.count("_sections") == 4
    with pytest.raises(IndexError, match=r"b = 0.8 \* b"):
        fast(np.ones(100_000), np.ones(100_000), 2)


@pytest.mark.compile
@pytest.mark.machine_code
def test_only_calls_that_do_much_ask_in_python(several, monkeypatch):
    plain, writing = (s2s.jit(s2s.grad(elementwise)) for _ in range(2))
    outs, asked, code_for = {n: np.empty(n) for n in (100, 100_000)}, [], BySize.code_for
    for n, out in [*outs.items()] * 2:
        plain(np.ones(n)), writing(np.ones(n), out=out)
    monkeypatch.setattr(
        BySize, "code_for", lambda self, args: asked.append(len(args[0])) or code_for(self, args)
    )
    monkeypatch.setattr(type(plain), "specialise", None)  # what looks again asks for this
    for n in (100, 100_000, 100):
        expected = plain(np.ones(n))
        np.testing.assert_allclose(
            expected, (np.cos(1) - np.sin(1)) * np.exp(-np.ones(n)), rtol=1e-12
        )
        assert writing(np.ones(n), out=outs[n]) is outs[n]
        np.testing.assert_array_equal(outs[n], expected)
    assert asked == [100_000, 100_000]


@pytest.mark.compile
@pytest.mark.machine_code
@pytest.mark.parametrize(
    "into", [False, True], ids=["results of its own", "results in given arrays"]
)
def test_code_is_written_for_the_sizes_that_are_met(several, into):
    """After a long call, the first short one has the code in one piece written, compiled, and
    called from then on.
    """
    fast = s2s.jit(s2s.value_and_grad(elementwise), parallel=True)
    long, short = np.linspace(0, 1, 100_000), np.linspace(0, 1, 7)

    def call(x):
        return fast(x, out=(None, np.empty_like(x))) if into else fast(x)

    call(long), call(long)
    whole = fast.last.call.native.whole
    assert not {"module", "dispatcher", "into"} & set(vars(whole))
    expected = s2s.value_and_grad(elementwise)(short)
    for _ in range(3):
        value, slope = call(short)
        assert np.allclose(value, expected[0]) and np.allclose(slope, expected[1])
    assert ("into" if into else "dispatcher") in vars(whole)
    assert (whole.into if into else whole.dispatcher) in fast.__call__.__globals__.values()


@pytest.mark.compile
def test_threads_that_call_at_once(several):
    t, args = CASES["sums and an array that all trips add to"]
    shared = s2s.jit(t, parallel=True)
    together = threading.Barrier(8)

    def first(k):
        together.wait()
        return [shared(args[0], args[1], args[2] * (k + 1)) for _ in range(10)]

    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(first, range(8)))
    for k, results in enumerate(found):
        for value, gradient in results:
            expected = shared(args[0], args[1], args[2] * (k + 1))
            assert value == expected[0]
            np.testing.assert_array_equal(gradient, expected[1])
    by_size = getattr(shared.last.call.native, "general", shared.last.call.native)
    (in_parts,) = (native for loops, native in by_size.made.items() if loops)
    assert len(in_parts.dispatcher.signatures) == 1


@pytest.mark.compile
def test_parts_that_share_loops_themselves(several):
    """A caller's threads, each with a large loop."""
    fast = s2s.jit(elementwise)
    xs = [np.linspace(0, k, 200_000) for k in range(6)]
    alone = [fast(x) for x in xs]
    with ThreadPoolExecutor(6) as callers:
        assert list(callers.map(fast, xs * 5)) == alone * 5


@pytest.mark.compile
def test_an_index_out_of_range_names_the_line(several):
    def gathered(x, rows):
        total = 0.0
        for i in range(len(rows)):
            total += 2.0 * x[rows[i]]
        return total

    shared = s2s.jit(gathered, parallel=True)
    x, rows = np.arange(50.0), np.arange(100_000) % 50  # sums of integers, which are exact
    assert shared(x, rows) == gathered(x, rows)
    rows[77_777] = 50
    for _ in range(3):
        with pytest.raises(IndexError, match="index 50 is out of bounds") as caught:
            shared(x, rows)
        assert any(
            "total += 2.0 * x[rows[i]]" in note
            for note in getattr(caught.value, "__notes__", ["total += 2.0 * x[rows[i]]"])
        )
    rows[77_777] = 3
    assert shared(x, rows) == gathered(x, rows)


@pytest.mark.compile
def test_arguments_that_are_one_array(several):
    def f(x, y):
        z = x.copy()
        for i in range(len(x)):
            z[i] = z[i] * y[len(y) - 1 - i] + x[i]
        return z

    shared = s2s.jit(f, parallel=True)
    x = np.arange(100_000.0)
    np.testing.assert_array_equal(shared(x, x), f(x, x))
    np.testing.assert_array_equal(shared(x[::-1], x), f(x[::-1], x))


@pytest.mark.compile
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_a_fork(several):
    fast = s2s.jit(elementwise)
    x = np.linspace(0, 1, 300_000)
    expected = fast(x)
    child = os.fork()
    if child == 0:
        is_same = fast(x) == expected and pool.state[pool.WORKERS] == 3
        os._exit(0 if is_same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fast(x) == expected


@pytest.mark.compile
def test_machine_code_from_the_cache_in_a_new_process(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import numpy as np, s2s
        from s2s.runtime.numba.native_module import statistics
        def f(x):
            return np.sum(np.sin(x) * x)
        s2s.set_threads(3)
        print(s2s.jit(f)(np.linspace(0, 1, 300_000)), *statistics())
    """))
    environment = {
        **os.environ,
        "S2S_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    runs = [
        subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert runs[0].split()[0] == runs[1].split()[0]
    assert [run.split()[1:] for run in runs] == [["1", "0"], ["0", "1"]]


# --------------------------------------------------------------------------------- how many threads


def test_the_number_of_threads():
    before = s2s.threads()
    assert s2s.set_threads(3) == before
    assert s2s.threads() == 3
    assert s2s.set_threads(None) == 3
    s2s.set_threads(before)
    for wrong in (0, -1, 2.5, "4", True):
        with pytest.raises(ValueError, match="the number of threads is a positive integer or None"):
            s2s.set_threads(wrong)


def test_the_number_of_threads_from_the_environment(monkeypatch):
    monkeypatch.setenv("S2S_THREADS", "5")
    assert pool.usual_threads() == 5
    monkeypatch.setenv("S2S_THREADS", "many")
    assert pool.usual_threads() >= 1
    monkeypatch.delenv("S2S_THREADS")
    assert pool.usual_threads() >= 1


def test_first_calls_at_once_without_jit():
    together = threading.Barrier(6)
    functions = [s2s.grad(logistic, argnums=2), s2s.value_and_grad(elementwise)]

    def first(_):
        together.wait()
        return functions[0](*data(3, 2)), functions[1](np.ones(3))

    with ThreadPoolExecutor(6) as callers:
        found = list(callers.map(first, range(6)))
    for gradient, (value, slope) in found:
        np.testing.assert_array_equal(gradient, found[0][0])
        assert value == found[0][1][0]
        np.testing.assert_array_equal(slope, found[0][1][1])


def angle_of(mean, eccentricity):
    angle, step = mean, 1.0
    while abs(step) > 1e-10:
        step = (angle - eccentricity * np.sin(angle) - mean) / (1.0 - eccentricity * np.cos(angle))
        angle = angle - step
    return angle


@pytest.mark.compile
def test_what_a_part_only_writes_is_there_for_the_next_loop():
    """Each lane reads its eccentricity from an array that a loop in parts has filled: LLVM must not
    take the writing for idle.
    """
    n = 300_000
    mean, eccentricity = np.linspace(0.0, np.pi, n), np.linspace(0.0, 0.9, n)
    angle, (mean_bar, _) = s2s.jit(
        s2s.vmap(s2s.value_and_grad(angle_of, argnums=(0, 1))), parallel=True
    )(mean, eccentricity)
    np.testing.assert_allclose(angle - eccentricity * np.sin(angle), mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean_bar, 1.0 / (1.0 - eccentricity * np.cos(angle)), rtol=1e-10)
