"""tools/replay: what it takes for the same text, and for the same case at two commits."""

import argparse
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "replay"
loader = importlib.machinery.SourceFileLoader("replay", str(TOOL))
replay = importlib.util.module_from_spec(importlib.util.spec_from_loader("replay", loader))
loader.exec_module(replay)

NATIVE = """from numba import njit
from s2s.{module} import {name}
from s2s.{module} import larger as max
@njit(pipeline_class={name})
def f(x):
    {name}_of_mine = max(x, 1.0)
    return {name}_of_mine
"""


def normalised(text: str, checkout: str = "/tmp/a", tests: bool = False) -> str:
    options = argparse.Namespace(checkout=checkout, tests=tests)
    return replay.normalised(text, {checkout: "<checkout>"}, options)


def native(module: str, name: str) -> list[list[str]]:
    return [["native", normalised(NATIVE.format(module=module, name=name))]]


def status(a, b) -> int:
    return replay.Comparison(a, b).report(("a", "b"), 3)


def test_one_character_is_seen(capsys):
    one = {"p, gradient": [["generated", "def f(x):\n    return 2 * x\n"]]}
    other = {"p, gradient": [["generated", "def f(x):\n    return 3 * x\n"]]}
    assert status(one, one) == 0
    assert "1 texts of 1 cases: none differ" in capsys.readouterr().out
    assert status(one, other) == 1
    said = capsys.readouterr().out
    assert "-    return 2 * x\n+    return 3 * x\n" in said and "1 differ" in said


def test_a_text_that_is_missing_is_seen():
    assert status({"p": [["ssa", "a"], ["native", "b"]]}, {"p": [["ssa", "a"]]}) == 1
    assert status({"p": [["ssa", "a"]], "q": [["ssa", "a"]]}, {"p": [["ssa", "a"]]}) == 1
    assert status({"p": [["ssa", "a"]]}, {"p": [["ssa", "a"]], "q": [["ssa", "a"]]}) == 0
    assert status({}, {}) == 2


def test_native_code_may_import_by_other_names(capsys):
    one = {"p": native("runtime.effort", "Effort"), "q": native("runtime.effort", "Effort")}
    moved = {
        "p": native("runtime.numba.effort", "Effort"),
        "q": native("runtime.numba.effort", "Effort"),
    }
    renamed = {"p": native("emit", "Pipeline"), "q": native("emit", "Pipeline")}
    assert status(one, moved) == 0
    capsys.readouterr()
    assert status(one, one | {"p": native("emit", "Pipeline")}) == 1, "replaced in one place only"
    capsys.readouterr()
    assert status(one, renamed) == 1, "variables of the program have other names, too"
    plain = {
        name: [[k, t.replace("Effort_of_mine", "y")] for k, t in texts]
        for name, texts in one.items()
    }
    other = {
        name: [[k, t.replace("Pipeline_of_mine", "y")] for k, t in texts]
        for name, texts in renamed.items()
    }
    capsys.readouterr()
    assert status(plain, other) == 0
    assert "renamed in native code: Effort -> Pipeline, in 2 texts" in capsys.readouterr().out


def test_two_names_do_not_become_one():
    one = {"p": native("a", "Plain"), "q": native("a", "Guarded")}
    other = {"p": native("a", "Guarded"), "q": native("a", "Guarded")}
    one, other = (
        {
            name: [
                [k, t.replace("Plain_of_mine", "y").replace("Guarded_of_mine", "y")]
                for k, t in texts
            ]
            for name, texts in side.items()
        }
        for side in (one, other)
    )
    assert status(one, other) == 1


def test_paths_and_addresses_are_no_part_of_a_text():
    one = 'File "/tmp/a/s2s/back/x.py", line 7: <object at 0x7f00aa11bb22> of /tmp/a/tests/x.py'
    other = 'File "/tmp/b/s2s/y.py", line 70: <object at 0x7f00aa11cc33> of /tmp/b/tests/x.py'
    assert normalised(one) == normalised(other, "/tmp/b")


def test_where_a_test_lies_is_no_part_of_its_texts():
    one = ('def f(u):\n    """The derivative of f (test_a.py, line 6) with\n    respect to u.\n'
           '    """\n')
    other = (
        'def f(u):\n    """The derivative of f (test_b.py,\n    line 16) with respect to u."""\n'
    )
    assert normalised(one) != normalised(other)
    assert normalised(one, tests=True) == normalised(other, tests=True)


@pytest.mark.parametrize(
    "name, twin",
    [
        ("tests/test_loops.py::test_sum[1]", "tests/back/loops/test_loops.py::test_sum[1]"),
        ("tests/test_loops.py::test_sum[1]", "tests/back/test_fusion.py::test_sum[1]"),
        ("tests/a/test_loops.py::Sums::test_sum", "tests/test_all.py::Sums::test_sum"),
    ],
)
def test_tests_that_were_moved_are_found(name, twin):
    text, more = [["ssa", "a"]], [["ssa", "b"]]
    assert (
        status(
            {name: text, "tests/test_x.py::test_y": more},
            {"tests/test_x.py::test_y": more, twin: text},
        )
        == 0
    )
    assert status({name: text}, {twin: more}) == 1


def test_of_moved_tests_with_one_name_those_with_the_same_texts_belong_together():
    a = {"tests/test_a.py::test": [["ssa", "a"]], "tests/test_b.py::test": [["ssa", "b"]]}
    b = {"tests/one/test_c.py::test": [["ssa", "b"]], "tests/two/test_d.py::test": [["ssa", "a"]]}
    assert status(a, b) == 0
