"""Recognise the helper functions that the printer emits beside generated code, and read them back
as ops.

`sum_to_shape(y_bar, np.shape(x))` in generated text is a call of a function printed above it.  Run
as the user's own it would be taken apart; it is one op, `sum_to(y_bar, x)`.
"""

from __future__ import annotations

import functools
import inspect
import types

import gast

from ...ops.core.record import RECORDS, Record


def record_of_helper(function) -> Record | None:
    """The op that a helper function stands for; None for a user's function."""
    if not isinstance(function, types.FunctionType):
        return None
    record = _helped(len(RECORDS)).get(function.__name__)
    if record is None or function.__code__.co_code != record.helper.__code__.co_code:
        return None
    return record if _operands(record) is not None else None


@functools.cache
def _helped(count: int) -> dict[str, Record]:
    """The records that have helpers, by the helpers' names, of a table of so many records."""
    found: dict[str, Record] = {}
    for record in RECORDS.values():
        if record.helper is not None:
            found.setdefault(record.helper.__name__, record)
    return found


def _operands(record: Record) -> list[tuple[str, str]] | None:
    """For each parameter of the helper: ("input", which), ("shape", which), ("attribute", its
    name), or last ("inputs", "") for any number.
    """
    signature = inspect.signature(record.evaluate).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in signature):
        *first, last = inspect.signature(record.helper).parameters.values()
        named = [p.name for p in signature if p.kind is p.KEYWORD_ONLY]
        fits = last.kind is last.VAR_POSITIONAL and [p.name for p in first] == named
        return [*(("attribute", name) for name in named), ("inputs", "")] if fits else None
    inputs = [p.name for p in signature if p.kind is p.POSITIONAL_OR_KEYWORD]
    attributes = [p.name for p in signature if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    parameters = list(inspect.signature(record.helper).parameters)
    shaped = "shape" in parameters
    rest = [name for name in inputs if not (shaped and name == "x")]
    spare = len(parameters) - len(inputs) - sum(name in parameters for name in attributes)
    operands = []
    for name in parameters:
        if name == "shape":
            operands.append(("shape", "x"))
        elif name in attributes:
            operands.append(("attribute", name))
        elif spare and attributes and name not in inputs:
            operands.append(("attribute", attributes[0]))
            spare -= 1
        elif rest:
            operands.append(("input", rest.pop(0)))
        else:
            return None
    complete = {name for kind, name in operands} >= {*inputs, *attributes}
    return operands if complete else None


def operands_of(record: Record,
                nodes: list[gast.AST]) -> tuple[list[gast.AST], dict[str, gast.AST]] | None:
    """The syntax of the op's inputs, in order, and of its attributes; None if the call does not
    match.
    """
    plan = _operands(record)
    if plan[-1][0] == "inputs":
        *plan, _ = plan
        return list(nodes[len(plan):]), {name: node for (_, name), node in zip(plan, nodes)}
    if len(plan) != len(nodes):
        return None
    inputs, attributes = {}, {}
    for (kind, name), node in zip(plan, nodes):
        if kind == "attribute":
            attributes[name] = node
            continue
        inputs[name] = node if kind == "input" else _shaped(node)
        if inputs[name] is None:
            return None
    order = [p for p in inspect.signature(record.evaluate).parameters if p in inputs]
    return [inputs[name] for name in order], attributes


def _shaped(node: gast.AST) -> gast.AST | None:
    """The array whose shape an expression is."""
    match node:
        case gast.Call(func=gast.Attribute(attr="shape"), args=[array]):
            return array
        case gast.Attribute(attr="shape"):
            return node.value
    return None
