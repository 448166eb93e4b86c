"""Masks that select what is zero elsewhere are dropped; all others stay."""

from itertools import product

import pytest

from s2s.front import annotated_types, build, load_text
from s2s.ir.graph import walk
from s2s.ir.interpret import interpret
from s2s.transform.cleanup.dce import dce
from s2s.transform.cleanup.redundant_masks import drop_redundant_masks

HEAD = """
def f(c: 'bool', d: 'bool', e: 'bool'):
    if c:
        y, held = 0.0, False
    elif d:
        y, held = 3.0, e
    else:
        y, held = 0.0, not e
"""
CHOICES = {  # of y: how many are left
    "np.where(d, y, 0.0)": 0,
    "np.where(c, 0.0, y)": 0,
    "np.where(not c, y, 0.0)": 0,
    "np.where(d or e, y, 0.0)": 0,
    "np.where(d and not c, y, 0.0)": 0,
    "np.where(held, y, 0.0)": 1,
    "np.where(e, y, 0.0)": 1,
    "np.where(d and e, y, 0.0)": 1,
    "np.where(d, y, 1.0)": 1,
    "np.where(d, np.where(e, y, 0.0), 0.0)": 1,
    "np.where(held, np.where(not c, y + 1.0, 0.0), 0.0)": 1,
    "np.where(e, np.where(d, y + 1.0, 0.0), 0.0)": 2,
}


@pytest.mark.parametrize("choice", CHOICES)
def test_only_masks_without_effect_are_dropped(choice):
    function = load_text(HEAD + f"    return {choice}\n", filename="<masks>")
    ir = dce(drop_redundant_masks(build(function, annotated_types(function))))
    assert sum(op.record.selects for op in walk(ir.block)) == CHOICES[choice]
    for given in product([False, True], repeat=3):
        assert interpret(ir, *given) == function(*given), given
