"""What s2s prints runs: before any call and after, and as a file without s2s."""

import subprocess
import sys

import numpy as np
import pytest
from oracles import gradient, is_close
from programs import MORE_RESULTS, PROGRAMS

import s2s
from s2s import pipeline
from s2s.front import build_from_text
from s2s.specialisation import type_of

SCALARS = [
    p for p in PROGRAMS if all(np.ndim(x) == 0 for x in p.args) and p.name != "several_results"
]
GALLERY = [p for p in PROGRAMS if p.name in ("straight_line", "logistic_loss", "relax", "settle")]


def run(text: str, name: str):
    scope = {}
    exec(compile(text, f"<{name}>", "exec"), scope)
    return scope[name]


@pytest.mark.parametrize("program", GALLERY + SCALARS, ids=lambda p: p.name)
def test_source_before_any_call_is_rank_generic_and_runs(program):
    function = program.function
    text = s2s.grad(function, argnums=program.wrt[0]).source
    if "slope" in text or "SCALE" in text:  # reads what it closes over
        return
    result = run(text, f"{function.__name__}_grad")(*program.args)
    assert is_close(result, gradient(function, program.args, program.wrt[0]), 1e-8)


def test_rank_generic_source_takes_numbers_and_arrays():
    def f(x, y):
        return np.sum(np.sin(x) * y)

    g = run(s2s.grad(f).source, "f_grad")
    for x, y in [
        (0.3, 0.5),
        (np.array([0.3, 0.5]), 2.0),
        (np.array([0.1, 0.2]), np.array([[1.0, 2.0], [3.0, 4.0]])),
    ]:
        assert is_close(g(x, y), gradient(f, (x, y), 0))


@pytest.mark.parametrize("program", GALLERY, ids=lambda p: p.name)
def test_source_after_a_call_is_specialised_and_stable(program):
    def again():
        t = s2s.grad(program.function, argnums=program.wrt)
        t(*program.args)
        return t.source

    text = again()
    assert text == again()
    assert "import s2s" not in text
    results = run(text, f"{program.name}_grad")(*program.args)
    for k, result in zip(program.wrt, results):
        assert is_close(result, gradient(program.function, program.args, k), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grad", "value_and_grad", "jvp"])
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.name not in MORE_RESULTS], ids=lambda p: p.name
)
def test_the_dump_of_a_derivative_prints_as_itself_once_it_is_parsed(program, kind):
    """Parsing folds what the dump spells out, `np.ones(a.shape)` where a is of three, and after
    that nothing changes.
    """
    if kind == "jvp":
        t, args = (
            s2s.jvp(program.function),
            [*program.args, *(np.zeros(np.shape(x))[()] for x in program.args)],
        )
    else:
        t, args = getattr(s2s, kind)(program.function, argnums=program.wrt), program.args
    text = t.lower(*args).ssa
    once = pipeline.render(build_from_text(text, {"np": np}), annotate=True).text
    assert pipeline.render(build_from_text(once, {"np": np}), annotate=True).text == once


@pytest.mark.lengthy
def test_a_flag_that_is_also_why_a_loop_ends_is_set_in_the_dump():
    """Whether the loop breaks is read after it, too, by the `else`."""
    def first_above(t, c):
        for i in range(t.shape[0]):
            for j in range(t.shape[1]):
                if t[i, j] > c:
                    return t[i, j] * 0.5 + 0.1 * j
            if i == 2:
                break
        else:
            return np.tanh(c)
        return np.mean(t) * c

    def f(t):
        return first_above(t, 1.5)

    t = np.random.default_rng(0).normal(size=(3, 2))
    text = pipeline.render(pipeline.build(f, [type_of(t, "t")]), annotate=True).text
    for rows in (2, 3, 4):
        for bound in (1.0, 2.0):
            t = np.linspace(0.0, bound, 2 * rows).reshape(rows, 2)
            assert run(text, "f")(t) == f(t)


@pytest.mark.parametrize("program", GALLERY, ids=lambda p: p.name)
def test_an_exported_module_runs_without_s2s(program, tmp_path):
    path = tmp_path / "exported.py"
    s2s.grad(program.function, argnums=program.wrt).export(path, *program.args)
    arguments = ", ".join(
        f"np.array({x.tolist()!r})" if isinstance(x, np.ndarray) else repr(x) for x in program.args
    )
    script = (
        f"import sys; sys.modules['s2s'] = None\nimport numpy as np\nimport exported\n"
        f"print(*[np.asarray(y).tolist() for y in exported.{program.name}_grad({arguments})], "
        "sep=';')"
    )
    result = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{script}",
        ],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    for k, text in zip(program.wrt, result.stdout.strip().split(";")):
        assert is_close(
            np.array(eval(text)), np.asarray(gradient(program.function, program.args, k)), 1e-8
        )
