"""Imports inside functions: names for what is known when code is generated."""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s.errors import UnsupportedError


def of_all_kinds(x):
    import math as m
    import os.path

    import numpy.linalg
    from numpy import linalg as la
    from numpy import pi, sin
    from scipy import special

    a = numpy.array([x, 2.0 * x])
    return m.exp(x) + sin(x) * pi + la.norm(a) + numpy.linalg.det(numpy.diag(a)) + special.expit(x) + len(os.path.sep)


def on_a_path(x):
    if x > 0:
        from math import cos
        y = cos(x)
    else:
        y = x

    def inner(t):
        import numpy as xp
        return xp.tanh(t)

    for _ in range(3):
        import numpy as xp
        y = xp.sin(y)
    return inner(x) * y


@pytest.mark.parametrize("f", [of_all_kinds, on_a_path], ids=lambda f: f.__name__)
def test_names_that_are_imported(f):
    slope = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    gradient = s2s.grad(f)
    np.testing.assert_allclose(gradient(0.7), slope, rtol=1e-8)
    np.testing.assert_allclose(s2s.jvp(f, (0.7,), (1.0,)), (f(0.7), slope), rtol=1e-8)
    assert "special import" not in gradient.source.partition("def ")[2]


def test_what_is_not_there_is_refused():
    def f(x):
        import nowhere_to_be_found
        return nowhere_to_be_found.sin(x)

    with pytest.raises(UnsupportedError, match="an import of what is not there"):
        s2s.grad(f)(0.7)
