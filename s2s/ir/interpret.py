"""The reference interpreter: what the IR means, one op at a time.

It shares no code with the printer, and is what the fuzzer compares printed and compiled code with.
"""

from __future__ import annotations

from .graph import Block, Function, Value


def interpret(function: Function, *args):
    """The result of `function` on NumPy arguments: a tuple if it returns several values, else one."""
    results = _run(function.block, list(args), {})
    return tuple(results) if function.tupled else results[0]


def _run(block: Block, args: list, outer: dict[Value, object]) -> list:
    env = dict(outer)
    env.update(zip(block.params, args, strict=True))
    for op in block.ops:
        inputs = [env[x] for x in op.inputs]
        if op.record.run is not None:
            results = op.record.run(op, inputs, lambda inner, values: _run(inner, values, env))
        else:
            result = op.record.evaluate(*inputs, **op.attrs)
            results = [result] if len(op.outputs) == 1 else result
        env.update(zip(op.outputs, results, strict=True))
    return [env[y] for y in block.yields]
