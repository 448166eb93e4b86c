"""Where one derivative rule is the transpose of the other it is stated once.

An op that is linear states its transpose alone, one with partial derivatives has both rules by the
chain rule, and one that equals another expression those of that (ops/core/derivative_rules.py).
An op that states both all the same says why, in `states_both`; they become fewer.
"""

from __future__ import annotations

import functools

import pytest

import s2s  # noqa: F401  (fills the table)
from s2s.ops.core.chain_rule import (
    elementwise_jvp,
    elementwise_vjp,
    jvp_by_partial,
    vjp_by_partial,
)
from s2s.ops.core.record import RECORDS, Record, no_jvp, no_vjp

STATE_BOTH = 47  # lower it when an op states one rule only
DERIVED = [(elementwise_vjp, elementwise_jvp), (vjp_by_partial, jvp_by_partial), (no_vjp, no_jvp)]


def rule(f):
    """The rule without the record that it is given."""
    return rule(f.func) if isinstance(f, functools.partial) else f


def states_both(record: Record) -> bool:
    rules = rule(record.vjp), rule(record.jvp)
    return None not in rules and rules not in DERIVED


def test_ops_that_state_both_rules_become_fewer():
    both = sorted(name for name, record in RECORDS.items() if states_both(record))
    assert len(both) <= STATE_BOTH, f"state one of both rules, as the other follows: {both}"
    assert len(both) == STATE_BOTH, f"only {len(both)} are left: lower STATE_BOTH"


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_an_op_that_states_both_says_why(name):
    record = RECORDS[name]
    if states_both(record):
        assert record.states_both, f"{name}: does its vjp not follow from its jvp, or vice versa?"
    else:
        assert not record.states_both, f"{name} states one rule, and says why two"


def test_a_copied_rule_is_seen():
    """What the ratchet is for."""
    twice = Record("twice", None, None, vjp=lambda bar, y, x: (2.0 * bar,),
                   jvp=lambda dots, y, x: 2.0 * dots[0])
    assert states_both(twice)
    assert not states_both(Record("once", None, None, vjp=twice.vjp, linear=(0,)))
    assert not states_both(RECORDS["sin"]) and not states_both(RECORDS["setitem"])
