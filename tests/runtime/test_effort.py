"""How hard Numba works on generated code, and on nothing else."""

import numba
import numpy as np
import pytest
from numba.core import config

import s2s
from s2s.runtime.effort import Library, at_level, instructions


def test_levels_are_put_back():
    before = config.OPT
    with pytest.raises(KeyError), at_level(1):
        assert config.OPT == 1 and type(config.OPT) is type(before)
        raise KeyError
    assert config.OPT is before


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
    libraries = [overload.library for entry in s2s.runtime.compile._entries for overload in entry.overloads.values()]
    assert isinstance(libraries[-1], Library) and instructions(libraries[-1]._final_module) > 0
