"""Tapes that functions hand on, as native code wants them: Numba must know the type of an empty list.

    f_fwd(x, n, [])    becomes    f_fwd(x, n, [0.0][:0])
"""

from __future__ import annotations

import ast

import numpy as np

from ..ir.builder import Builder, add_op
from ..ir.graph import Block, Function, walk
from ..ir.types import Array, Scalar, Tape, Type
from ..ops.copy import copy
from ..ops.record import Record


def type_tapes(function: Function) -> None:
    """Say, in place, what the tapes hold that `function` makes for others; arrays on a tape it is given are copies."""
    for op in walk(function.block):
        if op.name == "call":
            params = op.attrs["callee"].function_for(op.inputs).params
            for x, param in zip(op.inputs, params):
                if x.op is not None and x.op.name == "tape_new" and isinstance(param.type, Tape):
                    x.op.record, x.op.attrs = empty_tape, {"item": param.type.item}
    if any(isinstance(p.type, Tape) for p in function.params):
        _copy_arrays(function.block)


def _copy_arrays(block: Block) -> None:
    ops, block.ops = block.ops, []
    for op in ops:
        if op.name == "tape_push" and isinstance(op.inputs[1].type, Array):
            with Builder(Block(), op.line) as builder:
                op.inputs[1] = add_op(copy, [op.inputs[1]], {}, [op.inputs[1].type]).output
            block.ops += builder.block.ops
        for inner in op.blocks:
            _copy_arrays(inner)
        block.ops.append(op)


def _spelled(type: Type) -> str:
    match type:
        case Scalar("float64" | "int64" | "bool" | "complex128" as dtype):
            return {"float64": "0.0", "int64": "0", "bool": "False", "complex128": "0j"}[dtype]
        case Scalar(dtype):
            return f"np.{np.dtype(dtype).name}(0)"
        case Array(dtype, dims):
            return f"np.empty({(0,) * len(dims)}, np.{np.dtype(dtype).name})"
        case Tape(item):
            return f"[{_spelled(item)}][:0]"
    return "0.0"


empty_tape = Record("empty_tape", evaluate=lambda *, item: (), infer=lambda *, item: Tape(item),
                    syntax=lambda *, item: ast.parse(f"[{_spelled(item)}][:0]", mode="eval").body)
