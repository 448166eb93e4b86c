"""How hard Numba works on generated code, and on nothing else."""

import numba
import numpy as np
import pytest
from numba.core import config

import s2s
from s2s.runtime.numba.compiler import Library, at_level, instructions


def test_levels_are_put_back():
    before = config.OPT
    with pytest.raises(KeyError), at_level(1):
        assert config.OPT == 1 and type(config.OPT) is type(before)
        raise KeyError
    assert config.OPT is before


def test_straight_lines_become_vectors_where_that_is_asked_for():
    before = config.SLP_VECTORIZE
    with at_level(3, joins_lines=True):
        assert config.SLP_VECTORIZE == 1
    with at_level(1):
        assert config.SLP_VECTORIZE == before
    assert config.SLP_VECTORIZE == before


def three(x):
    total = 0.0
    for i in range(3):
        total += x[i] * 1.25
    return total


def many(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * 1.25
    return total


@pytest.mark.compile
@pytest.mark.parametrize("f", [three, many])
def test_what_is_unrolled_becomes_vectors(f, monkeypatch):
    met = []
    builder = numba.core.codegen.CPUCodegen._pass_builder

    def watched(codegen, **options):
        met.append(config.SLP_VECTORIZE)
        return builder(codegen, **options)

    monkeypatch.setattr(numba.core.codegen.CPUCodegen, "_pass_builder", watched)
    assert s2s.jit(f, cache=False)(np.ones(3)) == 3.75
    assert any(met) == (f is three)


def test_a_lower_level_that_the_user_set_stays(monkeypatch):
    monkeypatch.setattr(config, "OPT", type(config.OPT)(0))
    with at_level(2):
        assert config.OPT == 0


@pytest.mark.compile
def test_only_generated_code_has_levels_of_its_own():
    def stretched(x, k):
        return np.sum(x[k:] * 2.0)

    native = s2s.jit(stretched, cache=False)
    assert native(np.arange(4.0), 1) == 12.0
    own = numba.njit(lambda x: x + 1.0)
    assert own(1.0) == 2.0
    (library,) = [overload.library for overload in own.overloads.values()]
    assert not isinstance(library, Library)
    libraries = [
        overload.library
        for entry in s2s.runtime.numba.native_module._entries
        for overload in entry.overloads.values()
    ]
    for module in libraries[-1].modules()[:-1]:  # behind the pieces there is nothing left
        counted = sum(
            1
            for function in module.functions
            for block in function.blocks
            for _ in block.instructions
        )
        assert (
            isinstance(libraries[-1], Library)
            and 0 < counted <= instructions(module) <= counted + 10
        )
