"""Functions of the library call one another, but none itself: the front end inlines them."""

from __future__ import annotations

import inspect

import pytest

from s2s.front.eval.call_graph import may_call_itself
from s2s.library import (
    containers,
    numba_functions,
    numpy_functions,
    questions,
    scipy_functions,
    sequences,
)

MODULES = [containers, numba_functions, numpy_functions, questions, scipy_functions, sequences]


def functions_of(module):
    for each in vars(module).values():
        if getattr(each, "__module__", None) == module.__name__:
            yield from (f for f in (vars(each).values() if inspect.isclass(each) else (each,))
                        if inspect.isfunction(f))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_function_of_the_library_calls_itself(module):
    assert [f.__name__ for f in functions_of(module) if may_call_itself(f)] == []


def test_one_that_does_is_found():
    assert may_call_itself(factorial)


def factorial(n):
    return n * factorial(n - 1) if n > 1 else 1
