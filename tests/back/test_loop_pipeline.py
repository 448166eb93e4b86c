"""The passes from arrays to native code: their tables, what is verified, and what is dumped."""

import numpy as np
import pytest

import s2s
from s2s import passes
from s2s.back import loop_pipeline
from s2s.back.arrays.specialise_lengths import specialise_lengths
from s2s.back.loop_pipeline import ENTER, LEAVE, LEGALISE, LOOPS, LOWER, lower
from s2s.errors import VerifyError
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, walk
from s2s.ops.core.elementwise import sin
from s2s.ops.core.record import value
from s2s.passes import Pass, ordered, run
from s2s.pipeline import flattened
from s2s.runtime.call.loop_program import NATIVE, LoopProgram

X = np.linspace(0.1, 0.9, 5)


def squares(x):
    y = np.sin(x) * 2.0
    return np.sum(y * y)


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def flat(f, *args):
    """The function that is lowered for a call of `f`."""
    return specialise_lengths(flattened(s2s.jit(f).lower(*args).function))


def names_of(*tables, target="cpu"):
    return [each.name for table in tables for each in table if each.target in (None, target)]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_lowering_runs_the_tables(target):
    function = flat(squares, X)
    with passes.recorded() as stages:
        lower(function, target)
    assert [name for name, _ in stages] == names_of(
        ENTER, LEGALISE, LOWER, LOOPS, LEAVE, target=target
    )


def test_native_code_runs_them_too():
    """And only what it alone needs comes after them."""
    function = flat(squares, X)
    with passes.recorded() as stages:
        _ = LoopProgram(lambda: function, (), False, None).draft
    assert [name for name, _ in stages] == names_of(ENTER, LEGALISE, LOWER, LOOPS, LEAVE, NATIVE)


def test_recursive_callees_go_through_the_same_tables():
    function = flat(power, 0.5, 3)
    with passes.recorded() as stages:
        lower(function)
    each = names_of(LEGALISE, LOWER, LOOPS)
    assert [name for name, _ in stages] == [*names_of(ENTER), *each, *each, *names_of(LEAVE)]


def test_what_is_given_is_not_changed():
    function = flat(squares, X)
    before = s2s.pipeline.render(function, annotate=True).text
    lower(function)
    assert s2s.pipeline.render(function, annotate=True).text == before and not function.required


def test_dead_code_is_dropped_where_the_table_says_so():
    function = flat(squares, X)
    kept = []

    def forgets(function):
        function.block.yields = function.block.yields[:0]
        return function

    def sweeps(function):
        kept.append(len(list(walk(function.block))))
        return loop_pipeline.drop_unused(function)

    swept = run(ordered(Pass(forgets, "nothing is returned", then=sweeps)), function)
    assert kept == [len(list(walk(function.block)))] and not swept.block.ops


def test_a_pass_is_for_its_target_alone():
    done = []

    def notes(function):
        done.append(function.name)
        return function

    table = ordered(Pass(notes, "for kernels", target="cuda"))
    function = flat(squares, X)
    run(table, function)
    assert not done
    run(table, function, "cuda")
    assert done == [function.name]


def test_a_broken_pass_over_loops_is_named(monkeypatch):
    def breaks(function):
        function.block.ops.reverse()
        return function

    function = flat(squares, X)
    monkeypatch.setattr(loop_pipeline, "LOOPS", [Pass(breaks, "it is broken"), *LOOPS])
    with (
        passes.checked(),
        pytest.raises(VerifyError, match="after breaks: .* before it is defined"),
    ):
        lower(function)


def test_a_pass_whose_loops_a_later_one_mends_is_named(monkeypatch):
    """Invariants of loops hold after each pass, not only after all."""
    function, taken_out = flat(squares, X), []

    def puts_arrays_back(function):
        with Builder(function.block):
            sin(function.params[0])
        taken_out.append(function.block.ops[-1])
        return function

    def mends(function):
        function.block.ops.remove(taken_out[-1])
        return function

    broken = [Pass(puts_arrays_back, "it is broken"), Pass(mends, "it comes too late"), *LOOPS]
    monkeypatch.setattr(loop_pipeline, "LOOPS", broken)
    lower(function)
    with (
        passes.checked(),
        pytest.raises(VerifyError, match="after puts_arrays_back: .* is left in the loops"),
    ):
        lower(function)


def test_indices_are_guarded_from_then_on(monkeypatch):
    def forgets(function):
        front = Block()
        with Builder(front):
            seven = value(7)
        for op in walk(function.block):
            if op.name == "for":
                op.inputs[1] = seven
        function.block.ops[:0] = front.ops
        return function

    function = flat(squares, X)
    monkeypatch.setattr(loop_pipeline, "LOOPS", [*LOOPS, Pass(forgets, "it is broken")])
    with passes.checked(), pytest.raises(VerifyError, match="after forgets: an index of"):
        lower(function)


def test_stages_of_loops_are_files_that_run(tmp_path, monkeypatch):
    monkeypatch.setenv("S2S_DUMP", str(tmp_path))
    _ = s2s.jit(s2s.value_and_grad(squares)).lower(X).loops
    files = sorted(tmp_path.glob("*.py"))
    wanted = np.sum((np.sin(X) * 2.0) ** 2), 8.0 * np.sin(X) * np.cos(X)
    found = {}
    for path in files:
        found[path.stem.split("_", 1)[1]] = path
    for name in ("legalise", "lower_function", "fuse_loops", "check_loops", "guard_depth"):
        (path,) = [path for stem, path in found.items() if stem.endswith(f"_{name}")]
        names = {}
        exec(path.read_text(), names)
        entry = next(
            x
            for key, x in names.items()
            if key.endswith("value_and_grad") or key.startswith("squares")
        )
        value, gradient = entry(X)
        np.testing.assert_allclose(value, wanted[0], rtol=1e-14)
        np.testing.assert_allclose(gradient, wanted[1], rtol=1e-14)


@pytest.mark.compile
def test_what_is_compiled_is_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv("S2S_DUMP", str(tmp_path))
    compiled = s2s.jit(squares, cache=False)
    np.testing.assert_allclose(compiled(X), np.sum((np.sin(X) * 2.0) ** 2), rtol=1e-14)
    (path,) = tmp_path.glob("*_native.py")
    assert "@njit" in path.read_text() and "for i in range(" in path.read_text()
