"""The reference interpreter: it defines the meaning of the IR, one op at a time.

It shares no code with the printer, and is what the fuzzer compares printed and compiled code with.
"""

from __future__ import annotations

from collections.abc import Callable

from .graph import Block, Function, Op, Value


def interpret(function: Function, *args,
              watch: Callable[[Op, list, list], None] = lambda op, inputs, results: None,
              enter: Callable[[Op], None] = lambda op: None):
    """Run `function` on NumPy arguments; return a tuple if it has several results, else one value.

    `enter(op)` is called before each op, `watch(op, inputs, results)` after it.
    """
    results = _run(function.block, list(args), {}, watch, enter)
    return tuple(results) if function.tupled else results[0]


def _run(block: Block, args: list, outer: dict[Value, object], watch: Callable,
         enter: Callable) -> list:
    env = dict(outer)
    env.update(zip(block.params, args, strict=True))
    for op in block.ops:
        inputs = [env[x] for x in op.inputs]
        enter(op)
        if op.record.run is not None:
            results = op.record.run(op, inputs,
                                    lambda inner, values: _run(inner, values, env, watch, enter))
        else:
            result = op.record.evaluate(*inputs, **op.attrs)
            results = [result] if len(op.outputs) == 1 else result
        watch(op, inputs, results)
        env.update(zip(op.outputs, results, strict=True))
    return [env[y] for y in block.yields]
