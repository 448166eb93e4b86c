"""The text of a constant, and the modules that it names."""

import math

import numpy as np
import pytest

from s2s.back.syntax.literals import literal, modules_said


@pytest.mark.parametrize("x, modules", [
    (np.sin, {"np"}), (math.erf, {"math"}), (2.5, set()), ((1, np.float32), {"np"}), (int, set())
])
def test_modules_that_a_text_names(x, modules):
    assert modules_said(x) == modules
    names = {"np": np, "math": math}
    assert eval(literal(x), {name: names[name] for name in modules}) == x


def test_what_has_no_text_names_none():
    assert modules_said(object()) == set()
