"""Checks of lengths and indices that native code has in place of the functions of the same
names.
"""

import inspect
import itertools

import numba
import numpy as np
import pytest

import s2s
from s2s.back.loopir import ops
from s2s.runtime.intrinsics import inline_checks
from s2s.runtime.numba.compiler import Effort


def outcome(f, *args):
    try:
        return f(*args)
    except (ValueError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.compile
@pytest.mark.parametrize("of", inline_checks.CHECKS, ids=lambda of: of.__name__)
def test_they_do_what_the_functions_do(of):
    names = ", ".join(inspect.signature(of).parameters)
    fast = numba.njit(
        eval(f"lambda {names}: check({names})", {"check": getattr(inline_checks, of.__name__)}),
        pipeline_class=Effort,
    )
    for args in itertools.product(range(-3, 5), repeat=names.count(",") + 1):
        assert outcome(fast, *args) == outcome(of, *args), args


@pytest.mark.compile
def test_indices_of_any_width():
    fast = numba.njit(lambda k, n: inline_checks.place_in(k, n), pipeline_class=Effort)
    for kind in ("int8", "uint8", "int32", "uint32", "uint64"):
        k = np.dtype(kind).type(5)
        assert fast(k, 6) == 5 and outcome(fast, k, 5) == outcome(ops.place_in, 5, 5)
    assert outcome(fast, np.uint64(2**64 - 1), 4) == outcome(ops.place_in, 2**64 - 1, 4)
    assert fast(np.int8(-2), 4) == 2


@pytest.mark.compile
def test_a_function_of_the_users_that_has_such_a_name_stays():
    def same_length(n, m):
        return n * 10.0 + m

    def f(x, y):
        return np.sum(x + y) * same_length(len(x), len(y)) + same_length(1, 2)

    x, y = np.arange(3.0), np.ones(3)
    assert s2s.jit(f)(x, y) == f(x, y)
    with pytest.raises(ValueError, match="lengths go together"):
        s2s.jit(f)(x, np.ones(4))


def test_text_without_them_is_left_alone():
    assert inline_checks.written_in_place("def place_in(k, n):\n    return k\n") == ([], set())
    text = (f"import numpy as np\n\n\n{inline_checks.source(ops.place_in)}\n\n\ndef f(x):\n"
            f"    return x\n")
    assert inline_checks.written_in_place(text) == (
        ["from s2s.runtime.intrinsics.inline_checks import place_in"],
        {4, 5, 6, 7},
    )
