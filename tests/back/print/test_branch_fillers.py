"""Variables stay unbound on paths on which nothing reads them, and only there."""

from itertools import product

import numpy as np
import pytest

from s2s.back.print.printer import render
from s2s.front import annotated_types, build, load_text

TEXT = """
def f(x: 'float64', c: 'bool', d: 'bool'):
    z = 1.0
    if c:
        y, e = 0.0, False
    else:
        y, e = np.sin(x), d
        z = y * y
    {read}
    return z
"""
UNREAD = ["if not c:\n        z = z * y",  # where the branch was taken, nothing reads y
          "if e:\n        z = z * y",
          "if not c and d:\n        z = z * y",
          "z = z * y if not c else z",
          "z = z + np.where(c, z, y)",
          "if c:\n        z = 2.0\n    else:\n        if d:\n            z = y"]
READ = ["z = z * y", "if d:\n        z = z * y", "z = z + np.where(d, z, y)",
        "for k in range(2):\n        if not e:\n            z = z + y"]


@pytest.mark.parametrize("read", UNREAD + READ)
def test_only_what_may_be_read_is_bound(read):
    function = load_text(TEXT.format(read=read), {"np": np}, "<fillers>")
    text = render(build(function, annotated_types(function))).text
    assert ("y = 0.0" in text) == (read in READ), text
    printed = load_text(text, {"np": np}, "<printed>")
    for c, d in product([False, True], repeat=2):
        assert printed(0.3, c, d) == function(0.3, c, d)


TAPES = """
def f(x: 'float64[n]', c: 'bool'):
    tape = np.empty((3, 2))
    total = 0.0
    for i in range(3):
        if c:
            y = np.array([x[0], x[1] * x[i]])
            tape[i] = y
            {between}
        if c:
            total = total + tape[i, 0] * np.sum(tape[{index}])
    return total
"""


@pytest.mark.parametrize("between, index, stays", [
    ("pass", "i", False), ("tape[i] = y + 1.0", "i", False), ("tape[0] = y + 1.0", "i", True),
    ("y[0] = 7.0", "i", False), ("pass", "i - 1", True)])
def test_a_tape_is_forwarded_where_the_trip_has_filled_it(between, index, stays):
    function = load_text(TAPES.format(between=between, index=index).replace("tape[i, 0]", "x[i]"),
                         {"np": np}, "<tapes>")
    text = render(build(function, annotated_types(function))).text
    assert ("np.empty" in text) == stays, text
    if index == "i":
        printed = load_text(text, {"np": np}, "<printed>")
        x = np.array([0.3, 0.7, -1.2])
        for c in (False, True):
            assert printed(x, c) == function(x, c)
