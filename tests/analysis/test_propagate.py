"""Facts follow values through ops, branches and the carries of loops, in both directions."""

import numpy as np
import pytest

import s2s
from s2s.analysis.propagate import propagate

X = np.linspace(0.1, 0.9, 4)


def program(f, *args):
    """The function as IR."""
    return s2s.jit(f).lower(*args).function


def reached(function, roots, **options):
    """All that is computed from `roots`, or with `backwards` what they are computed from."""
    facts = dict.fromkeys(roots, True)

    def transfer(op):
        sources, targets = op.inputs, op.outputs
        if options.get("backwards"):
            sources, targets = targets, sources
        return [(y, True) for y in targets] if any(x in facts for x in sources) else []

    return set(propagate(function.block, facts, transfer, **options))


def passed_on(x, y, z):
    """What y is after two trips is in `a` after one more."""
    a, b, c = x, y, z
    for _ in range(3):
        a, b = b, b * 2.0
        c = c + 1.0
    return a, c


def test_carries_of_loops_hand_on():
    function = program(passed_on, X, X, X)
    x, y, z = function.params
    a, c = function.results
    assert a in reached(function, [x]) and c not in reached(function, [x])
    assert a in reached(function, [y]) and c not in reached(function, [y])
    assert c in reached(function, [z]) and a not in reached(function, [z])


def test_and_backwards():
    function = program(passed_on, X, X, X)
    x, y, z = function.params
    a, c = function.results
    assert {x, y} <= reached(function, [a], backwards=True)
    assert z not in reached(function, [a], backwards=True)
    assert z in reached(function, [c], backwards=True)


def chosen(x, y, z):
    return x * 2.0 if z > 0.0 else y + 1.0


def test_branches_hand_on_what_either_returns():
    function = program(chosen, 0.1, 0.2, 0.3)
    (result,) = function.results
    x, y, z = function.params
    assert result in reached(function, [x]) and result in reached(function, [y])
    assert result not in reached(function, [z])
    assert result in reached(function, [z], decided=True)


def halved(x, n):
    count = 0.0
    while x * n > 1.0:
        x = x * 0.5
        count = count + 1.0
    return count


def test_conditions_of_whiles_are_entered_if_asked():
    function = program(halved, 3.0, 2.0)
    x, _ = function.params
    (count,) = function.results
    (loop,) = [op for op in function.block.ops if op.name == "while"]
    inside = set(loop.blocks[0].params)
    assert not inside & reached(function, [x])
    assert inside & reached(function, [x], in_conditions=True)
    assert count not in reached(function, [x], in_conditions=True)
    assert count in reached(function, [x], in_conditions=True, decided=True)


def test_facts_that_meet_are_joined():
    """The parity of a sum of products with 2: known only where both arms agree."""
    function = program(chosen, 0.1, 0.2, 0.3)
    x, y, _ = function.params
    facts = {x: {"even"}, y: {"odd"}}

    def transfer(op):
        known = [facts[z] for z in op.inputs if z in facts]
        return [(out, set.union(*known)) for out in op.outputs] if known else []

    propagate(function.block, facts, transfer, join=set.union)
    assert facts[function.results[0]] == {"even", "odd"}


@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_not_accepted_is_not_handed_on(backwards):
    function = program(passed_on, X, X, X)
    roots = function.results if backwards else function.params
    found = reached(function, roots, accepts=lambda x: False, backwards=backwards)
    loops = [op for op in function.block.ops if op.name == "for"]
    ends = [x for op in loops for x in (op.inputs[3:] if backwards else op.outputs)]
    assert ends and not found.intersection(ends) - set(roots)
