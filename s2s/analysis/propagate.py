"""Propagate facts about values through a program: through its ops, by a rule, and through branches
and the carries of loops, in which values are handed on, to a fixed point.

    y = f(x)                 transfer: what does the fact about x say of y?
    for i in range(n):
        y = g(y, z)          handed on: the first y, and that of the trip before, is the y of a trip

An analysis is a lattice of facts and a rule for ops: a result is varied if an operand is
(activity.py), or may be infinite if an operand may be (infinite_factors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..ir.graph import Block, Op, Value

Fact = TypeVar("Fact")


def propagate(block: Block, facts: dict[Value, Fact],
              transfer: Callable[[Op], Iterable[tuple[Value, Fact]]], *,
              join: Callable[[Fact, Fact], Fact] | None = None,
              accepts: Callable[[Value], bool] | None = None,
              backwards: bool = False, in_conditions: bool = False,
              decided: Fact | None = None) -> dict[Value, Fact]:
    """Add to `facts`, and return, what follows from them in `block`: forwards in program order, or
    `backwards`, from results to what they are computed from.

    transfer       of an op without blocks: the facts that follow from those that are there
    join           of two facts about one value; without, the first stays
    accepts        the values that have facts, of those that blocks hand on
    in_conditions  whether those of `while` loops are part of the program
    decided        the fact about what a branch or loop results in if it depends, by a condition or
                   a number of trips, on something that has a fact; None: it says nothing
    """
    changes = 0

    def note(x: Value, fact: Fact) -> None:
        nonlocal changes
        if x not in facts:
            facts[x] = fact
            changes += 1
        elif join is not None and (both := join(facts[x], fact)) != facts[x]:
            facts[x] = both
            changes += 1

    def hand_on(op: Op, pairs: Sequence[tuple[Value, Value]]) -> None:
        for source, target in pairs:
            if source in facts and (accepts is None or accepts(target)):
                note(target, facts[source])
        if decided is not None and any(x in facts for x in conditions_of(op)):
            for x in (*op.outputs, *(loop_parts(op)[1] if op.name != "if" else ())):
                note(x, decided)

    def visit_blocks(op: Op) -> None:
        skips_condition = op.name == "while" and not in_conditions
        for inner in op.blocks[1 if skips_condition else 0:]:
            visit(inner)

    def visit(block: Block) -> None:
        for op in reversed(block.ops) if backwards else block.ops:
            if not op.blocks:
                for x, fact in transfer(op):
                    note(x, fact)
                continue
            pairs = control_flow_edges(op, in_conditions)
            if backwards:
                pairs = [(target, source) for source, target in pairs]
            if op.name != "if":
                if backwards:  # what a trip is for, the loop is for
                    pairs += zip(loop_parts(op)[1], op.outputs)
                before = -1
                while changes != before:
                    before = changes
                    hand_on(op, pairs)
                    visit_blocks(op)
            elif backwards:
                hand_on(op, pairs)
                visit_blocks(op)
            else:
                visit_blocks(op)
                hand_on(op, pairs)

    visit(block)
    return facts


def control_flow_edges(op: Op, in_conditions: bool = True) -> list[tuple[Value, Value]]:
    """Return the pairs of values of which the second may be the first, as a branch or loop hands it
    on.
    """
    if op.name == "if":
        return [(y, out) for arm in op.blocks for out, y in zip(op.outputs, arm.yields)]
    inits, params, ends, _ = loop_parts(op)
    heads = op.blocks[0].params if op.name == "while" and in_conditions else ()
    handed = ((inits, params), (ends, params), (inits, heads), (ends, heads), (inits, op.outputs),
              (ends, op.outputs), (params, op.outputs))
    return [pair for sources, targets in handed for pair in zip(sources, targets)]


def conditions_of(op: Op) -> list[Value]:
    """Return the values on which it depends what a branch or loop runs."""
    if op.name == "if":
        return op.inputs[:1]
    *_, body = loop_parts(op)
    stops = body.yields[:1] if op.attrs["breaks"] else []
    return [*(op.inputs[:3] if op.name == "for" else op.blocks[0].yields), *stops]


def loop_parts(op: Op) -> tuple[list[Value], list[Value], list[Value], Block]:
    """Return the initial values, parameters and yields of the carries of a `for` or `while`, and
    its body.
    """
    body = op.blocks[-1]
    skip = 3 if op.name == "for" else 0
    return (op.inputs[skip:], body.params[1 if op.name == "for" else 0:],
            body.yields[1 if op.attrs["breaks"] else 0:], body)
