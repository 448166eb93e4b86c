"""The tools run, and say what they are for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each starts a Python of its own
ROOT = Path(__file__).parent.parent


def run(*words: str, status: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert result.returncode == status, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize(
    "name",
    [
        "run",
        "fuzz",
        "extents",
        "stages",
        "ops",
        "ulps",
        "fit.py",
        "mutate",
        "replay",
        "bench/run.py",
        "bench/growth.py",
        "bench/keyed.py",
    ],
)
def test_help_is_the_docstring(name):
    said = run(f"tools/{name}", "--help")
    text = (ROOT / "tools" / name).read_text()
    assert text.split('"""')[1].split("\n")[0] in said


def test_ops_lists_every_op():
    table = run("tools/ops")
    assert "| sin " in table and "| for " in table and "| setitem " in table


def test_extents_asks_one_form():
    said = run(
        "tools/extents",
        "--match",
        "np.cumsum(x, axis=0)",
        "--interpreted",
        "--manners",
        "slices",
        "known",
    )
    assert said.startswith("1 forms, 0 combinations fail")


def test_stages_shows_source_and_derivative():
    said = run("tools/stages", "tests/programs.py:swap_in_loop")
    assert "front" in said and "vjp" in said and "x_bar" in said


def test_vector_math_is_exact_on_numbers_of_single_precision():
    assert "tanh" in run("tools/ulps", "--every", "65537")  # fails above 4 ulp


def test_fuzz_shows_one_program():
    said = run("tools/fuzz", "--seed", "5", "--count", "2", "--numba", "0")
    assert "2 programs, 0 fail" in said


def test_fuzz_of_one_family_of_idioms():
    said = run("tools/fuzz", "--idioms", "mutation", "--count", "2", "--numba", "0")
    assert "2 programs, 0 fail" in said


def test_fuzz_compares_rewritten_programs():
    said = run("tools/fuzz", "--rewrite", "rename", "while", "--count", "2", "--numba", "0")
    assert "compared" in said and "changed" not in said


MUTANT = """
import importlib.machinery, importlib.util
loader = importlib.machinery.SourceFileLoader("mutate", "tools/mutate")
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)
import s2s

def f(x, y):
    return x * y

mutants = [m for m in mutate.mutants("rules") if m.before.startswith("multiply = ")]
before = s2s.grad(f, argnums=(0, 1))(2.0, 3.0)
assert before == (3.0, 2.0) and len(mutants) == 2
for k, m in enumerate(mutants):
    assert mutate.replace_code(m) == 1, str(m)
    after = s2s.grad(f, argnums=(0, 1))(2.0, 3.0)
    print(after[k] != before[k], m.before, m.after)
"""


def test_a_mutant_computes_something_else(tmp_path):
    (tmp_path / "mutant.py").write_text(MUTANT)
    said = run(str(tmp_path / "mutant.py"))
    assert said.count("True multiply") == 2, said


NAMES = """
import importlib.machinery, importlib.util
loader = importlib.machinery.SourceFileLoader("mutate", "tools/mutate")
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)
for area in mutate.AREAS:
    mutants = mutate.mutants(area)
    names = [m.name for m in mutants]
    mutate.mutated(mutants[0])  # says what the line is then
    print(area, mutants[0].name == names[0], len(names) - len(set(names)))
"""


def test_each_mutant_has_a_name_of_its_own(tmp_path):
    (tmp_path / "names.py").write_text(NAMES)
    said = run(str(tmp_path / "names.py"))
    assert said.count("True 0") == 6, said


def test_mutants_are_killed_by_the_tests_of_their_ops():
    said = run(
        "tools/mutate",
        "--area",
        "rules",
        "--count",
        "2",
        "--jobs",
        "1",
        "--only",
        "nothing",
        status=2,
    )
    assert "no such mutant" in said
    said = run(
        "tools/mutate",
        "--area",
        "types",
        "--count",
        "2",
        "--jobs",
        "1",
        "tests/test_layers.py",
        status=0,
    )
    assert "2 mutants: 0 killed, 0 too slow, 0 survived, 2 reached by no test" in said


def test_replay_sees_one_character_of_a_printer(tmp_path):
    shutil.copytree(ROOT / "s2s", tmp_path / "s2s", ignore=shutil.ignore_patterns("__pycache__"))
    words = ["tools/replay", ".", str(tmp_path), "--only", "^programs.horner$"]
    assert "none differ" in run(*words)
    (printer,) = (
        p for p in (tmp_path / "s2s").rglob("*.py") if 'Comment("backwards")' in p.read_text()
    )
    printer.write_text(printer.read_text().replace('Comment("backwards")', 'Comment("backward")'))
    said = run(*words, status=1)
    assert "-    # backwards\n+    # backward\n" in said and "programs.horner, gradient: " in said


@pytest.mark.compile
@pytest.mark.slow
def test_main_job():
    pytest.importorskip("sklearn", reason="the main job reads its data from scikit-learn's files")
    said = run("tools/fit.py", "--quick")
    assert "3 of 3 gradients agree with central differences" in said and "_bar" in said
