"""Choose which loops LLVM may unroll fully, and mark the others as not to be unrolled.

    for l in range(3):                       not unrolled: it would make nine copies of the inner
        for m in range(3):                   loop, each with vector body, prologue and epilogue
            for n in range(len(b)):          not unrolled: one vector at a time
                y[l, m, n] += x[n]

    for i in range(4):                       unrolled: only arithmetic is left, and the loop around
        for j in range(i):                   it can be vectorised (runtime/numba/compiler.py)
            total += L[i, j] * z[j]

In the gradient of a network of three convolutions with 3 x 3 kernels, half of the machine code was
such copies; it runs as fast without. For some processors LLVM unrolls loops up to hundreds of
instructions, with inner loops, whatever the trip count.

In loops without carried values LLVM interleaves four vectors per trip, followed by a vector
remainder and a scalar remainder. A processor has several trips in flight in any case, and an axis
of 16 channels never fills four vectors: without interleaving the benchmarks take 0.97 of the time,
and compiling that network a tenth less. Reductions keep their interleaving, which shortens their
dependence chain; and so do functions with unrolled loops.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Sequence

from llvmlite import ir

from ...back.arrays.specialise_lengths import SHORT
from ...back.syntax.ast_names import nodes_in
from ...ops.core.record import is_check
from .collapse_nests import Nest


class Unrolling:
    """The loops of a function that must not be unrolled (`left`), those with `few` trips, and
    whether it has `short` loops to unroll.

    `values` are the bindings of names that are read in the same trip only (ssa_names.py).
    """

    def __init__(self, function: ast.FunctionDef, values: Container[int] = (),
                 nests: Iterable[Nest] = ()):
        # unknown trip counts
        self.collapsed = {loop for nest in nests for loop in nest.loops}
        self.left: set[ast.For] = set()
        self.others: set[ast.For] = set()  # not unrolled, unless something else is
        self.few: set[ast.For] = set()  # with few trips
        self.short = False
        self.values = values
        self.visit(function.body, frozenset())
        if not self.short:
            self.left |= self.others

    def visit(self, body: Sequence[ast.stmt], known: frozenset[str]) -> bool:
        """Visit statements inside loops whose counters are `known`; return whether there is a loop
        with an unknown trip count.
        """
        return any([self.is_long(stmt, known) for stmt in body])

    def is_long(self, stmt: ast.stmt, known: frozenset[str]) -> bool:
        match stmt:
            case ast.If(_, first, second):
                return any([self.visit(first, known), self.visit(second, known)])
            case ast.While(_, inner):
                self.visit(inner, known)
                return True
            case ast.For(ast.Name(counter), ast.Call(ast.Name("range"), bounds), inner):
                is_asked = stmt in self.collapsed
                is_known = (not is_asked
                            and all(isinstance(n,
                                               (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator,
                                                ast.unaryop, ast.expr_context))
                                    or isinstance(n, ast.Name) and n.id in known for bound in bounds
                                    for n in nodes_in(bound)))
                is_short = not is_asked and has_few_trips(bounds)
                if is_short or is_known:
                    self.few.add(stmt)
                has_long = self.visit(inner, known | {counter} if is_known else known - {counter})
                if is_known and has_long:
                    self.left.add(stmt)
                elif has_long or not is_known and not is_short and self.is_plain(inner):
                    self.others.add(stmt)
                self.short = self.short or not has_long and is_short and not raises(inner)
                return has_long or not is_known and not is_short
            case ast.For(_, _, inner):
                self.visit(inner, known)
                return True
        return False

    def is_plain(self, body: Sequence[ast.stmt]) -> bool:
        """Whether a loop contains no loop and carries no number from trip to trip."""
        found = [n for stmt in body for n in nodes_in(stmt)]
        return (not any(isinstance(n, (ast.For, ast.While)) for n in found)
                and all(id(n) in self.values
                        for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)))


def has_few_trips(bounds: Sequence[ast.expr]) -> bool:
    """Whether a range with these bounds is always short: wherever it starts, it ends at a small
    number.
    """
    match bounds:
        case [ast.Constant(n)] | [_, ast.Constant(n)]:
            return 1 < n <= SHORT
        case [ast.Constant(n), ast.UnaryOp(ast.USub()), _]:
            return 0 < n < SHORT
    return False


def raises(body: Sequence[ast.stmt]) -> bool:
    """Whether an exception may be raised here: then no enclosing loop is vectorised."""
    return any(isinstance(n, ast.Raise)
               or isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
               and (n.func.id == "checked_place" or is_check(n.func.id))
               for stmt in body for n in nodes_in(stmt))


def leave(branch: ir.Instruction) -> None:
    """Mark the back edge of a loop with `llvm.loop.unroll.disable`."""
    module = branch.module
    said = module.add_metadata(["llvm.loop.unroll.disable"])
    loop = ir.MDValue(module, (), name=str(len(module.metadata)))
    loop.operands = (loop, said)  # a distinct node, by self-reference
    branch.set_metadata("llvm.loop", loop)
