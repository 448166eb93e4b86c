"""`.lower(*args).memory`: what is saved for the reverse sweep, by name and by the user's line, is
what is there.
"""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import s2s
from s2s.runtime.debug.tape_bytes import ListContents


def relax(u, k, sweeps):
    u = u.copy()
    for _ in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def settle(x, rate):
    while abs(x) > 1e-3:
        x = x * rate if x > 1.0 else np.sin(x) * rate
    return x


def replayed(x, r, n):
    for _ in s2s.checkpoint(range(n), snapshots=20):
        y = x
        for _ in range(5):
            y = np.sin(y) * r
        x = r * x * (1 - y)
    return x


@s2s.checkpoint
def layer(x, w):
    for _ in range(10):
        x = np.tanh(w @ x)
    return x


def net(x, w):
    for _ in range(5):
        x = layer(x, w)
    return np.sum(x)


def test_a_table_by_line():
    memory = s2s.grad(relax, argnums=(0, 1)).lower(np.ones(50), 0.1, 30).memory
    assert memory == 30 * 48 * 8
    (tape,) = memory.saved
    assert (tape.name, tape.bytes, tape.type) == ("t_tape", 30 * 48 * 8, "float64[30, 48]")
    assert tape.line.text == "u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])"
    assert str(memory).splitlines() == [
        "        11,520  bytes saved for the reverse sweep",
        "        11,520  t_tape: float64[30, 48]  line 5: u[i] = u[i] + k * (u[i - 1] - 2 * u[i] "
        "+ u[i + 1])"]


def test_tapes_that_grow_are_counted():
    trips, x = 0, 30.0
    while abs(x) > 1e-3:
        x, trips = x * 0.9 if x > 1.0 else np.sin(x) * 0.9, trips + 1
    (tape,) = s2s.grad(settle).lower(30.0, 0.9).memory.saved
    assert (tape.bytes, tape.type) == (8 * trips, f"{trips} float64")


def eliminated(A):
    A = A.copy()
    for k in range(len(A)):
        for i in range(k + 1, len(A)):
            m = A[i, k] / A[k, k]
            for j in range(k, len(A)):
                A[i, j] = A[i, j] * np.cos(A[i, j]) - m * A[k, j]
    return A[-1, -1]


def test_tapes_that_grow_are_looked_at_once(monkeypatch):
    """However many loops there are to look at before and after: the time is that of what is
    pushed.
    """
    asked, kind_of = [], s2s.runtime.debug.tape_bytes.kind_of
    monkeypatch.setattr(
        "s2s.runtime.debug.tape_bytes.kind_of", lambda item: (asked.append(item), kind_of(item))[1]
    )
    memory = s2s.grad(eliminated).lower(np.eye(20) + 0.1).memory
    items = sum(int(tape.type.split()[0]) for tape in memory.saved)
    assert (
        all(tape.type.endswith(" float64") for tape in memory.saved)
        and memory == 8 * items > 20_000
    )
    assert len(asked) == 2 * items  # when they come, and when they go


def test_lists_of_arrays_and_of_lists_that_grow_and_shrink():
    x, inner = [], []
    held = ListContents(x)

    def look():
        held.look()
        return held.bytes, held.described()

    assert look() == (0, "0 ")
    x += [np.zeros(3), np.zeros((2, 2))]
    assert look() == (56, "2 arrays of float64")
    x[1:] = [np.zeros(5, np.float32), inner]
    assert look() == (44, "3 float32 and float64 and lists")
    inner += [1.0, 2]
    assert look() == (60, "3 float32 and float64 and lists")
    inner[1:] = [np.zeros(4), (1.0, 2.0)]
    x.append(np.float32(1))
    assert look() == (104, "4 float32 and float64 and lists")
    del x[1:]
    assert look() == (24, "1 arrays of float64")


def test_snapshots_and_the_tapes_of_one_trip():
    memory = s2s.grad(replayed).lower(0.3, 0.7, 1000).memory
    assert {each.name: each.bytes for each in memory.saved} == {
        "x_kept": 160,
        "i_kept": 160,
        "y_tape": 40,
    }


def test_what_callers_and_callees_hold_at_once():
    memory = s2s.grad(net).lower(np.ones(3), np.eye(3)).memory
    # four layers are still to come when one runs
    assert sorted(each.bytes for each in memory.saved) == [4 * 24, 10 * 24]


def test_nothing_is_changed_or_printed_or_drawn(capsys):
    def f(x, u, rng):
        for _ in range(3):
            u[0] = u[0] * x * rng.normal()
            print(x)
        return u[0]

    u, rng = np.ones(2), np.random.default_rng(0)
    assert s2s.grad(f).lower(0.5, u, rng).memory > 0
    assert np.array_equal(u, np.ones(2)) and rng.normal() == np.random.default_rng(0).normal()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("n", [200, 800])
def test_it_is_what_python_allocates(n):
    def f(u, k, n):
        for _ in range(n):
            u = u + k * np.sin(u)
        return np.sum(u)

    u, gradient = np.linspace(0, 1, 1000), s2s.grad(f)
    memory = gradient.lower(u, 0.1, n).memory
    gradient(u, 0.1, n)
    tracemalloc.start()
    gradient(u, 0.1, n)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert memory == n * 8000 and memory <= peak <= memory + 20 * 8000


MILLION = """
import numpy as np
import s2s

def oscillator(x, v, drive, n):
    h = 1e-5
    for i in {trips}:
        a = drive * np.cos(1.2 * i * h) + x - x * x * x - 0.3 * v
        w, y = v + h * a, x + h * v
        b = drive * np.cos(1.2 * (i + 1) * h) + y - y * y * y - 0.3 * w
        x, v = x + h / 2 * (v + w), v + h / 2 * (a + b)
    return x * v

gradient = s2s.jit(s2s.grad(oscillator, argnums=(0, 1, 2){option}))
gradient(0.5, 0.1, 0.3, 10)
def peak():
    # in kB; getrusage would count what the process that started this one has had
    lines = open("/proc/self/status")
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


before = peak()
print(*gradient(0.5, 0.1, 0.3, 4_000_000))
print(peak() - before)
"""


@pytest.mark.compile
def test_compiled_loops_of_millions_of_steps_fit_into_what_is_given(tmp_path):
    found = {}
    for name, trips, option in (
        ("plain", "range(n)", ""),
        ("kept", "s2s.checkpoint(range(n), snapshots=500)", ""),
        ("limited", "range(n)", ", tape_limit='20MB'"),
    ):
        path = tmp_path / f"{name}.py"
        path.write_text(MILLION.format(trips=trips, option=option))
        gradient, grown = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        found[name] = [float(x) for x in gradient.split()], int(grown) * 1024
    assert found["plain"][1] > 60e6
    assert found["kept"][1] < 4e6 and found["limited"][1] < 24e6
    for name in ("kept", "limited"):
        np.testing.assert_allclose(found[name][0], found["plain"][0], rtol=1e-12)
