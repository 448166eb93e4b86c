"""Select the calls of exp, sin and the like that are spelled so that LLVM vectorises their loop.

    for i in range(n):                     for i in range(n):
        y[i] = np.exp(x[i]) * a    ->          y[i] = vector_exp(x[i]) * a

In an innermost loop with independent trips throughput counts, and the functions of
runtime/kernels/vector_math are faster; likewise in a loop with only short loops inside, which LLVM
unrolls: rows of three exponentials took eight times as long one number at a time. Elsewhere, as in
`x = np.sin(x) + 1`, latency counts, and libm's tables answer sooner; so they do where an index
check may end the loop: those calls are left alone.

Considered: leaving the choice to LLVM (a call that stays libm's where the loop is not vectorised).
But then the last few elements of an array, which fill no vector, would use libm, and a result would
depend on its position.
"""

from __future__ import annotations

import ast
from functools import cache

from ...analysis.dependence import Trip
from ...ir.graph import Function, Op, Value, walk
from ...ir.types import Array
from ...ops.core.control import call, while_record
from ...ops.core.record import Record
from ...ops.program.recursive_callee import whole_program
from ..loopir.ops import place_in_op
from ..loopir.vector_support import SHORT, is_extreme, is_of_reals, is_short
from ..parallel.outline_parallel import Roles

FASTER_ALONE = ("tanh",)  # libm's scalar version takes twice as long


def vectorise_calls(lowered: Function) -> Function:
    """Use vector math in loops of `lowered`, a loop form, that can be vectorised; it is changed."""
    for each in whole_program(lowered):
        roles = Roles(each)
        for op in walk(each.block):
            if op.name == "for" and may_be_vectorised(op, roles):
                for inner in walk(op.blocks[0]):
                    if (inner.record.vector and is_of_reals(inner)
                            and (not is_short(op) or inner.record.vector in FASTER_ALONE)):
                        inner.record = vector_record(inner.record)
    return lowered


def may_be_vectorised(loop: Op, roles: Roles) -> bool:
    """Whether trips are independent but for sums and extremes, without checks or long loops."""
    (body,) = loop.blocks
    if loop.attrs["breaks"] or loop.inputs[2].constant not in (1, -1):
        return False
    # a check may end the loop
    if any(op.record in (while_record, call, place_in_op) or op.name == "for" and not is_short(op)
           or not op.record.pure for op in walk(body)):
        return False
    trip = Trip(body)
    return all(trip.role(p, y) in ("own", "sum") or trip.is_disjoint(p, y)
               or is_extreme(trip, p, y) or is_short_array(p) and roles.is_scratch(loop, k)
               for k, (p, y) in enumerate(zip(body.params[1:], body.yields)))


def is_short_array(x: Value) -> bool:
    """Whether `x` is an array of few numbers, held in registers (runtime/emit/stack_arrays.py)."""
    return isinstance(x.type, Array) and all(isinstance(d, int) and d < SHORT for d in x.type.dims)


@cache
def vector_record(record: Record) -> Record:
    """The op as a call of vector math."""
    name = f"vector_{record.vector}"
    return Record(name, evaluate=record.evaluate, infer=record.infer,
                  elementwise=True, cheap=True, vector=record.vector,
                  syntax=lambda *xs: ast.Call(ast.Name(name, ast.Load()), list(map(_real, xs)), []))


def _real(x: ast.expr) -> ast.expr:
    """Convert an integer literal to a float literal."""
    return (ast.Constant(float(x.value)) if isinstance(x, ast.Constant)
            and type(x.value) in (bool, int) else x)
