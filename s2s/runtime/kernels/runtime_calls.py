"""Replace ops of the loop form by calls of runtime functions, for code that is compiled in this
process.

`.loops` and exported modules contain the same program in plain Python: `a @ b`, `total += x`,
`np.empty(n)`, `np.exp(x)`. So an exported module needs NumPy and Numba only, and computes exp at
the speed of libm; it does not contain the text of vector math, three times as long as the program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from ...analysis.affine import lower_bound
from ...back.loopir.ops import buffer, place_in_op
from ...back.loopir.reductions import sum_step
from ...back.loops.tape_arrays import on_tape
from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ir.types import INT
from ...ops.arrays.products import matmul
from ...ops.arrays.search import searchsorted_record
from ...ops.core.copy import copy_record
from ...ops.core.record import Record
from ...ops.math.special import SCIPYS_ALONE, polygamma_of_number
from ...ops.program.recursive_callee import whole_program
from ..intrinsics import checked_index, noalias_alloc, reassociable_add
from ..intrinsics.checked_index import checked_place, from_front
from ..intrinsics.noalias_alloc import unshared_empty, unshared_like, unshared_zeros
from ..intrinsics.reassociable_add import added_in_any_order
from ..workers import exchange
from . import (
    array_layout,
    blas,
    lapack,
    scipy_special,
    searchsorted,
    share_factorisations,
    vector_math,
)
from .array_layout import native_copy, native_in_order, native_permuted, native_reshaped
from .blas import blas_product
from .searchsorted import place_before, place_behind


def _called(function: Callable, of: Record) -> Record:
    """A twin of the op `of` that prints as a call of `function`."""
    return Record(name_of(function), evaluate=of.evaluate, infer=of.infer,
                  syntax=lambda *xs, **attrs: ast.Call(ast.Name(name_of(function), ast.Load()),
                                                       list(xs), []))


def _of_scipys(op: Op) -> Record:
    """A twin of the op that prints as a call of SciPy's function, with its order, if any, as first
    argument.
    """
    of = _called(scipy_special.FUNCTIONS[op.name], op.record)
    orders = [ast.Call(ast.Attribute(ast.Name("np", ast.Load()), op.output.type.dtype, ast.Load()),
                       [ast.Constant(k)], []) for k in op.attrs.values()]
    return replace(of, syntax=lambda *xs, **attrs: of.syntax(*orders, *xs))


def _unshared(of: Record) -> Record:
    """A twin of the allocating op `of` whose result is noalias."""
    def syntax(*lengths, zero: bool, **attrs) -> ast.expr:
        plain = of.syntax(*lengths, zero=zero, **attrs)
        return ast.Call(ast.Name(name_of(unshared_zeros if zero else unshared_empty), ast.Load()),
                        plain.args, plain.keywords)

    return replace(of, syntax=syntax)


def name_of(function: Callable) -> str:
    """The name of a runtime function in native text."""
    return getattr(function, "__name__", None) or function.name


RUNTIME = {blas_product: blas.__name__, checked_place: checked_index.__name__,
           from_front: checked_index.__name__, place_before: searchsorted.__name__,
           place_behind: searchsorted.__name__, added_in_any_order: reassociable_add.__name__,
           unshared_empty: noalias_alloc.__name__, unshared_zeros: noalias_alloc.__name__,
           unshared_like: noalias_alloc.__name__, native_copy: array_layout.__name__,
           native_in_order: array_layout.__name__, native_reshaped: array_layout.__name__,
           native_permuted: array_layout.__name__,
           **dict.fromkeys(share_factorisations.FUNCTIONS, lapack.__name__),
           **dict.fromkeys(exchange.FUNCTIONS.values(), exchange.__name__),
           **dict.fromkeys(scipy_special.FUNCTIONS.values(), scipy_special.__name__)}
product, addition, allocation = (_called(blas_product, matmul),
                                 _called(added_in_any_order, sum_step), _unshared(buffer))
copying = _called(native_copy, copy_record)
place = _called(checked_place, place_in_op)
counted = Record(name_of(from_front), evaluate=lambda k: k, infer=lambda k: INT,
                 syntax=lambda k: ast.Call(ast.Name(name_of(from_front), ast.Load()), [k], []))
digamma = _called(scipy_special.FUNCTIONS[scipy_special.DIGAMMA], polygamma_of_number)
between_workers = {  # whose results share memory, and which stay in order, as before
    record: replace(_called(function, record), views=record.views, pure=record.pure)
    for record, function in exchange.FUNCTIONS.items()}
searches = {"left": _called(place_before, searchsorted_record),
            "right": _called(place_behind, searchsorted_record)}


def call_runtime(lowered: Function) -> Function:
    """Replace products, sums, buffers, searches, index checks and functions of `lowered`, a loop
    form, by runtime calls, in place.
    """
    for each in whole_program(lowered):
        for op in walk(each.block):
            if op.record is matmul:
                op.record = product
            elif op.record is sum_step and op.output.type.dtype in ("float64", "float32"):
                op.record = addition
            elif op.record is buffer:
                op.record = allocation
            elif op.record is copy_record and op.attrs["order"] == "C":
                op.record = copying
            elif op.record is place_in_op:
                op.record = place
            elif op.record is on_tape:
                op.record = counted
            elif op.name == "for" and "least" in op.attrs:
                count_from_front(op)
            elif op.record in between_workers:
                op.record = between_workers[op.record]
            elif op.name in SCIPYS_ALONE:
                op.record = _of_scipys(op)
            elif op.record is polygamma_of_number and op.attrs["order"] == 0:
                op.record = digamma
            elif op.record is searchsorted_record:
                op.record = searches[op.attrs["side"]]
    return lowered


def count_from_front(loop: Op) -> None:
    """Mark the indices in a piece of a loop (back/loops/split_at_wraparound.py) as not negative.

    LLVM then vectorises the loads: five times as fast.
    """
    counters = {loop.blocks[0].params[0]: loop}

    def block(inner: Block) -> None:
        ops = []
        for op in inner.ops:
            for nested in op.blocks:
                block(nested)
            for k in (range(1 if op.name == "getitem" else 2, len(op.inputs))
                      if op.record.indices is not None else ()):
                x = op.inputs[k]
                least = (lower_bound(x, counters) if x.type == INT and x.constant is MISSING
                         else None)
                if least is not None and least >= 0:
                    ops.append(Op(counted, [x], {}, [], [], op.line))
                    ops[-1].outputs.append(Value(INT, "", ops[-1]))
                    op.inputs[k] = ops[-1].output
            ops.append(op)
        inner.ops = ops

    block(loop.blocks[0])


_MADE = {"np.empty(": unshared_empty, "np.zeros(": unshared_zeros, "np.empty_like(": unshared_like,
         "np.ascontiguousarray(": native_in_order, "np.reshape(": native_reshaped,
         "np.transpose(": native_permuted}


def allocating(line: str) -> str:
    """A line of native text, with NumPy's allocations in it (tapes that grow, parts of sums)
    replaced as buffers are.

    A line with a string or a comment is left as it is.
    """
    if "np." in line and not any(mark in line for mark in "\"'#"):
        for plain, function in _MADE.items():
            line = re.sub(rf"(?<![\w.]){re.escape(plain)}(?!\(\))", f"{name_of(function)}(", line)
    return line


def imports(text: str) -> list[str]:
    """The import statements for the functions that the native text calls."""
    found = [f"from {where} import {name_of(function)}"
             for function, where in RUNTIME.items() if f"{name_of(function)}(" in text]
    functions = sorted(
        set(re.findall(r"\bvector_[a-z0-9]+(?=\()", text)) & set(vector_math.__all__))
    return found + [f"from {vector_math.__name__} import {', '.join(functions)}"] * bool(functions)


NATURAL = "natural_number"
_DOWN = re.compile(r"( *)for (\w+) in range\(.+, (?:-1|\d+), -\d+\):$")


def not_negative(line: str) -> str | None:
    """The statement that marks the counter of a loop that counts down to 0 or more as not negative.

    LLVM does not infer it, and tests each index for wrap-around: two nested reverse sweeps took 2.1
    ns a trip, and 0.85 with this.
    """
    match = _DOWN.match(line)
    return f"{match[1]}    {match[2]} = {NATURAL}({match[2]})" if match else None
