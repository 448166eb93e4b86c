"""Scalar replacement of aggregates: pass tuples to and from called functions member by member, so
that each member has a cotangent of its own.

    scaled((a, 2.0), x)    becomes    scaled(a, 2.0, x)    and scaled has the parameters p_0, p_1, x

A tuple as a cotangent would be rebuilt by each of its readers; the cotangent of an array is
accumulated in place.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...ir.builder import Builder
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.reemit import emit_block, rebuild
from ...ir.types import Tuple
from ...ops.core.control import Known, call
from ...ops.core.record import value
from ...ops.program.checkpoint import Rerun
from ...ops.program.pytree import leaves_of, parameter_tree, result_tree

_spread: WeakKeyDictionary[Function, Function] = WeakKeyDictionary()


def split_aggregates(function: Function) -> Function:
    """Split the tuple arguments and results of the calls in `function`, and of the functions they
    call, recursively.
    """
    return _members(function, frozenset())


def _members(function: Function, open_calls: frozenset) -> Function:
    if not any(op.name == "call" for op in walk(function.block)):
        return function

    def rule(op: Op, inputs: list[Value]):
        if op.name != "call" or op.attrs["callee"] in open_calls:
            return None
        if not any(isinstance(x.type, Tuple) for x in [*inputs, *op.outputs]):
            return None
        callee = op.attrs["callee"].function_for(inputs)
        if callee not in _spread:
            _spread[callee] = _spread_out(callee, open_calls | {op.attrs["callee"]})
        made = Known(_spread[callee])
        made = Rerun(made) if isinstance(op.attrs["callee"], Rerun) else made
        results = call(*(leaf for x in inputs for leaf in leaves_of(x)), callee=made)
        rest = iter(results if isinstance(results, tuple) else (results,))
        return [value(result_tree(y.type, rest)) for y in callee.results]

    return rebuild(function, rule=rule)


def _spread_out(function: Function, open_calls: frozenset) -> Function:
    """Rewrite `function` with one parameter per tuple member, and one result per member."""
    params: list[Value] = []
    block = Block(params)
    with Builder(block):
        args = [value(parameter_tree(p.type, p.name, params)) for p in function.params]
        block.yields = [leaf for y in emit_block(function.block, args, {}) for leaf in leaves_of(y)]
    made = function.remade(block, tupled=len(block.yields) != 1, defaults={})
    return _members(made, open_calls)
