"""Training by batches that workers share, against a loop of Python; also when it is killed."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import s2s
from s2s.errors import ShapeMismatchError, TypeMismatchError

pytestmark = pytest.mark.compile
PROGRAM = '''
import os, sys
import numpy as np
import s2s

rng = np.random.default_rng(0)
BATCHES = [(x := rng.normal(size=(11, 3)), np.tanh(x @ [0.5, -1.0, 2.0])) for _ in range(6)]
INIT = {"w": np.zeros(3), "v": np.zeros(3), "loss": 0.0}

def loss(w, x, y):
    return np.sum((np.tanh(x @ w) - y) ** 2)

def gradient(i, state, batch):
    x, y = batch
    return {"g": s2s.grad(loss)(state["w"], x, y), "n": len(x), "loss": loss(state["w"], x, y)}

def update(i, total, state):
    v = 0.9 * state["v"] + total["g"] / total["n"]
    return {"w": state["w"] - 0.1 * v / (1 + 0.1 * i), "v": v, "loss": total["loss"] / total["n"]}

def killed_at(k):
    for i, batch in enumerate(BATCHES):
        if i == k:
            os.kill(os.getpid(), 9)
        yield batch
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, as a module of a file that s2s reads."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "trained.py").write_text(PROGRAM)
    sys.path.insert(0, str(folder))
    import trained
    yield trained
    sys.path.remove(str(folder))


def same(a, b):
    for x, y in zip(s2s.tree.leaves(a), s2s.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("workers", [1, 2, 20])
def test_against_a_loop(program, workers):
    found = s2s.iterated_map_reduce(program.INIT, program.gradient, program.update,
                                    iter(program.BATCHES), workers)
    state = {"w": np.zeros(3), "v": np.zeros(3), "loss": 0.0}
    for i, (x, y) in enumerate(program.BATCHES):
        t = np.tanh(x @ state["w"])
        g = 2 * x.T @ ((t - y) * (1 - t * t))
        v = 0.9 * state["v"] + g / 11
        state = {"w": state["w"] - 0.1 * v / (1 + 0.1 * i), "v": v, "loss": np.mean((t - y) ** 2)}
    for name, x in state.items():
        np.testing.assert_allclose(found[name], x, rtol=1e-12, err_msg=name)


def test_a_run_that_is_killed_goes_on_with_the_same_bits(program, tmp_path):
    whole = s2s.iterated_map_reduce(program.INIT, program.gradient, program.update,
                                    program.BATCHES, 2)
    path = tmp_path / "state"
    text = ("import sys; sys.path.insert(0, sys.argv[1]); from trained import *; "
            "s2s.iterated_map_reduce(INIT, gradient, update, killed_at(4), 2, sys.argv[2])")
    run = subprocess.run([sys.executable, "-c", text, str(program.__file__.rpartition("/")[0]),
                          str(path)], capture_output=True, text=True, timeout=300)
    assert run.returncode == -signal.SIGKILL, run.stderr
    fetched = []

    class Remembering(list):
        def __getitem__(self, k):
            fetched.append(k)
            return super().__getitem__(k)

    again = s2s.iterated_map_reduce(program.INIT, program.gradient, program.update,
                                    Remembering(program.BATCHES), checkpoint=path)
    same(again, whole)
    assert fetched[0] in (3, 4) and fetched[-1] == 5  # the next one was fetched when it died
    same(s2s.iterated_map_reduce(program.INIT, program.gradient, program.update,
                                 program.BATCHES, checkpoint=path), whole)
    with pytest.raises(TypeMismatchError, match="is of 2 workers, not of 3"):
        s2s.iterated_map_reduce(program.INIT, program.gradient, program.update, program.BATCHES, 3,
                                path)


def test_the_next_batch_is_fetched_meanwhile():
    fetched, seen = threading.Event(), []

    def batches():
        yield np.ones((2, 1))
        fetched.set()
        yield np.ones((2, 1))

    def slow(i, state, batch):
        if i == 0:
            seen.append(fetched.wait(10))
        return np.sum(batch)

    with pytest.warns(s2s.NotCompiledWarning, match="iterated_map_reduce runs in Python"):
        found = s2s.iterated_map_reduce(0.0, slow, lambda i, total, state: state + total, batches(),
                                        2)
    assert found == 4.0 and all(seen)


def test_errors_come_through():
    def add(i, total, state):
        return state + total

    def rows(i, state, batch):
        if np.sum(batch) < 0:
            raise ValueError("a batch below zero")
        return np.sum(batch)

    def failing():
        yield np.ones(4)
        raise OSError("no more data")

    with pytest.raises(ValueError, match="a batch below zero"):
        s2s.iterated_map_reduce(0.0, rows, add, [np.ones(4), -np.ones(4)], 2)
    with pytest.raises(OSError, match="no more data"):
        s2s.iterated_map_reduce(0.0, rows, add, failing(), 2)
    with pytest.raises(TypeMismatchError, match="a batch has a number in it"):
        s2s.iterated_map_reduce(0.0, rows, add, [(np.ones(4), 2.0)], 2)
    with pytest.raises(ShapeMismatchError, match="of a batch have the lengths 3, 4"):
        s2s.iterated_map_reduce(0.0, rows, add, [(np.ones(4), np.ones(3))], 2)


def test_batches_are_counted(capsys):
    s2s.iterated_map_reduce(0.0, lambda i, state, batch: np.sum(batch),
                            lambda i, total, state: state + total, [np.ones(2)] * 3, 2,
                            progress=True)
    assert "batch 3 of 3" in capsys.readouterr().err
