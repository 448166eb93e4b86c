"""Derivatives of derivatives are JAX's, in every combination (`tools/compose --jax` compares them
all).
"""

import numpy as np
import pytest
from compositions import PAIRS, PROGRAMS, TRANSFORMATIONS, TRIPLES, X


@pytest.fixture(scope="module")
def twins(jax):
    """JAX's programs, which can be imported where there is a JAX."""
    import compositions_in_jax

    return compositions_in_jax


def cases(combinations, start, step):
    """Every `step`th of the combinations, each with another program."""
    chosen = [names for names in combinations if names[0] != "jit"][start::step]
    return [
        pytest.param(
            PROGRAMS[k % len(PROGRAMS)],
            names,
            id=f"{'-'.join(names)}-{PROGRAMS[k % len(PROGRAMS)].__name__}",
        )
        for k, names in enumerate(chosen)
    ]


def test_every_program_has_a_twin_with_its_value(twins):
    for f in PROGRAMS:
        np.testing.assert_allclose(twins.value_in_jax(f, (), 0), f(X.copy()), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in TRANSFORMATIONS if name != "jit"])
def test_each(twins, name):
    twins.check(PROGRAMS[(5 * list(TRANSFORMATIONS).index(name)) % len(PROGRAMS)], (name,), seed=6)


@pytest.mark.parametrize("f, names", cases(PAIRS, 2, 11))
def test_pairs(twins, f, names):
    twins.check(f, names, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("f, names", cases(PAIRS, 0, 1))
def test_all_pairs(twins, f, names):
    twins.check(f, names, seed=8)


@pytest.mark.slow
@pytest.mark.parametrize("f, names", cases(TRIPLES, 3, 20))
def test_triples(twins, f, names):
    twins.check(f, names, seed=9)


def test_a_wrong_derivative_is_noticed(twins, monkeypatch):
    monkeypatch.setitem(
        TRANSFORMATIONS,
        "grad",
        (lambda f, d: lambda x: 1.0001 * TRANSFORMATIONS["jvp"][0](f, d)(x), 1),
    )
    with pytest.raises(AssertionError, match="grad of horner"):
        twins.check(next(f for f in PROGRAMS if f.__name__ == "horner"), ("grad",))
