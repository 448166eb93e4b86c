"""Programs written another way: s2s makes the same of them (tools/fuzz --rewrite asks it of
many).
"""

import numpy as np
import pytest
import rewrites
from rewrites import KINDS, Changed, compare, loaded, rewritten

ARGS = np.array([0.4, 0.7, 1.1]), np.array([0.3, -0.2]), 3
PROGRAMS = {
    "recurrence": """
import numpy as np

def part(w, b):
    return np.exp(-w * w) + b

def f(b, w, n):
    y = b * 2.0
    for i in range(n):
        z = y[1:]
        z[i % 2] = z[i % 2] * np.sum(w) + part(b[i], y[0])
        y = y * 0.9 + np.sin(b) * w[0]
    return np.sum(y * y) + y[0]
""",
    "search": """
import numpy as np

def f(x, a, n):
    rows = [x[k] * a for k in range(n) if k != 1]
    total = 0.0
    for i in range(n):
        if total > 1.5:
            break
        total = total + np.sum(rows[i % 2] * x[i]) + x[i] ** 2
    else:
        total = total * 2.0
    v = np.zeros(4)
    v[1:3] = a * total
    return total + np.sum(v * v)
"""}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_program_written_another_way(kind, program):
    text = PROGRAMS[program]
    other = rewritten(text, "f", kind)
    if other is None:
        return  # the program has nothing of the kind: the next test asks that one has
    f, g = loaded(text, f"before_{program}", "f"), loaded(other, f"{kind}_{program}", "f")
    assert other != text and compare(
        f, g, ARGS, (0, 1), exact=kind == "rename", second=program == "recurrence"
    )


def test_each_kind_rewrites_something():
    assert all(any(rewritten(text, "f", kind) for text in PROGRAMS.values()) for kind in KINDS)


@pytest.mark.compile
@pytest.mark.parametrize("kind", ["rename", "crosswise", "statements"])
def test_native_code_of_the_same_program(kind):
    text = PROGRAMS["recurrence"]
    g = loaded(rewritten(text, "f", kind, 3), f"native_{kind}", "f")
    assert compare(loaded(text, "before_native", "f"), g, ARGS, (0, 1), exact=False, compiled=True)


@pytest.mark.lengthy
def test_a_derivative_that_changes_is_told(monkeypatch):
    text = PROGRAMS["search"]
    f, g = loaded(text, "before", "f"), loaded(rewritten(text, "f", "rename"), "after", "f")
    plain = rewrites.s2s.grad
    monkeypatch.setattr(
        rewrites.s2s,
        "grad",
        lambda h, **more: plain(h, **more) if h is f else lambda *xs: plain(f, **more)(*xs)[:1] * 2,
    )
    with pytest.raises(Changed, match="reverse"):
        compare(f, g, ARGS, (0, 1), exact=True)


def test_what_python_gives_another_value_for_is_no_case():
    f, g = (loaded(f"def f(x):\n    return x * {k}.0\n", f"times_{k}", "f") for k in (2, 3))
    assert not compare(f, g, (0.5,), (0,), exact=True)
