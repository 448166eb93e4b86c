"""Printed code computes what the reference interpreter computes, and leaves its arguments alone."""

from __future__ import annotations

import numpy as np
import pytest

from s2s.back.print.insert_copies import insert_copies
from s2s.back.print.printer import render
from s2s.ir.graph import Function
from s2s.ir.interpret import interpret
from s2s.ir.verify import verify
from tests.back.random_ir import Maker

pytestmark = pytest.mark.slow

SEEDS = range(90)


def arguments() -> list:
    return [0.7, np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, -1.0, 0.5, 2.0]), 3]


def run(function: Function, **form: bool) -> tuple:
    """What the printed function returns; checks that it does not change its arguments."""
    module = render(function, **form)
    namespace: dict = {}
    exec(module.text, namespace)
    args = arguments()
    results = namespace[module.entry](*args)
    for mine, fresh in zip(args, arguments()):
        assert np.array_equal(mine, fresh), f"an argument was overwritten:\n{module.text}"
    assert render(function, **form).text == module.text
    return args, results


@pytest.mark.parametrize("form", ["plain", "annotate", "native"])
@pytest.mark.parametrize("seeds", [SEEDS[k : k + 30] for k in range(0, len(SEEDS), 30)], ids=str)
def test_printed_code_computes_what_the_ir_means(seeds, form):
    with np.errstate(all="ignore"):
        for seed in seeds:
            function = verify(Maker(seed).function())
            expected = interpret(function, *arguments())
            args, results = run(function, **({} if form == "plain" else {form: True}))
            for want, got in zip(expected, results, strict=True):
                assert np.array_equal(want, got, equal_nan=True), f"seed {seed}"


def test_own_results_share_no_memory():
    with np.errstate(all="ignore"):
        for seed in SEEDS:
            args, results = run(insert_copies(Maker(seed).function(), results=True))
            arrays = [x for x in (*args, *results) if isinstance(x, np.ndarray)]
            for k, x in enumerate(arrays):
                for y in arrays[:k]:
                    assert not np.shares_memory(x, y), f"seed {seed}"
