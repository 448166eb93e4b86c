"""Re-emission of a function with better-known inputs: the one mechanism behind most passes.

Specialising to a signature, inlining a call, propagating constants and simplifying are all this,
because the builder infers types and folds as it emits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .builder import Builder, at, current, emit
from .graph import Block, Function, Op, Value

Rule = Callable[[Op, list[Value]], "Sequence[Value] | None"]


def rebuild(function: Function, types: Sequence | None = None,
            rule: Rule | None = None) -> Function:
    """Emit `function` again, with parameters of `types` if these are given.

    `rule(op, inputs)` may emit something else for an op and return its outputs; None keeps the op.
    """
    types = [p.type for p in function.params] if types is None else types
    block = Block(params=[Value(type, p.name)
                          for p, type in zip(function.params, types, strict=True)])
    with Builder(block):
        block.yields = emit_block(function.block, block.params, {}, rule)
    return function.remade(block)


def emit_block(block: Block, args: Sequence[Value], env: dict[Value, Value],
               rule: Rule | None = None) -> list[Value]:
    """Emit the ops of `block` into the current builder; return the values of its yields.

    `env` maps values of the old program to values of the new one; it is extended.
    """
    env.update(zip(block.params, args, strict=True))
    for op in block.ops:
        with at(op.line):
            emit_op(op, env, rule)
    return [env.get(y, y) for y in block.yields]


def emit_op(op: Op, env: dict[Value, Value], rule: Rule | None = None) -> None:
    """Emit one op again, reading its inputs through `env`, to which its outputs are added."""
    inputs = [env.get(x, x) for x in op.inputs]
    emitted = current().block.ops
    before = len(emitted)
    outputs = rule(op, inputs) if rule is not None else None
    if outputs is None:
        if op.record.rebuild is not None:
            outputs = op.record.rebuild(op, inputs,
                                        lambda block, args=(): emit_block(block, args, env, rule))
        else:
            outputs = emit(op.record, *inputs, **op.attrs)
    if isinstance(outputs, Value):
        outputs = (outputs,)
    for old, new in zip(op.outputs, outputs, strict=True):
        if old.name and not new.name and new.op in emitted[before:]:
            new.name = old.name  # unless it folded to an existing value, which has other readers
        env[old] = new


def clone(function: Function) -> Function:
    """Copy `function`, op by op, for a pass to change, without folding or inference."""
    env: dict[Value, Value] = {}

    def again(value: Value, op: Op | None = None) -> Value:
        env[value] = Value(value.type, value.name, op)
        return env[value]

    def copy(block: Block) -> Block:
        new = Block([again(p) for p in block.params])
        for op in block.ops:
            inputs = [env.get(x, x) for x in op.inputs]
            made = Op(op.record, inputs, dict(op.attrs), [copy(inner) for inner in op.blocks], [],
                      op.line)
            made.outputs = [again(out, made) for out in op.outputs]
            new.ops.append(made)
        new.yields = [env.get(y, y) for y in block.yields]
        return new

    return function.remade(copy(function.block))
