"""Which loops LLVM takes apart, where it knows how many trips they have, and which it is told to leave.

    for l in range(3):                          left: taken apart, there would be nine copies of the loop inside,
        for m in range(3):                      each in vectors, with what is before them and behind
            for n in range(len(b)):
                y[l, m, n] += x[n]

    for i in range(4):                          taken apart: nothing is left but arithmetic, of which
        for j in range(i):                      the loop around it may be made vectors (effort.py)
            total += L[i, j] * z[j]

A gradient of a network of three convolutions, with kernels of 3 x 3, had half of its machine code in such copies, and runs as fast without.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from llvmlite import ir

from ...back.lengths import SHORT

CHECKS = {"checked_place", "same_length", "spread_length", "broadcast_length", "nonempty_length", "needs_length", "count_of"}  # may raise


class Unrolling:
    """The loops of a function that LLVM is told to leave (`left`), and whether there are `short` ones that it takes apart."""

    def __init__(self, function: ast.FunctionDef):
        self.left: set[ast.For] = set()
        self.short = False
        self.visit(function.body, frozenset())

    def visit(self, body: Sequence[ast.stmt], known: frozenset[str]) -> bool:
        """Look at statements in loops whose counters are `known`; whether there is a loop of which LLVM does not know how many trips it has."""
        return any([self.is_long(stmt, known) for stmt in body])

    def is_long(self, stmt: ast.stmt, known: frozenset[str]) -> bool:
        match stmt:
            case ast.If(_, first, second):
                return any([self.visit(first, known), self.visit(second, known)])
            case ast.While(_, inner):
                self.visit(inner, known)
                return True
            case ast.For(ast.Name(counter), ast.Call(ast.Name("range"), bounds), inner):
                is_known = all(isinstance(n, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context))
                               or isinstance(n, ast.Name) and n.id in known for bound in bounds for n in ast.walk(bound))
                has_long = self.visit(inner, known | {counter} if is_known else known - {counter})
                if is_known and has_long:
                    self.left.add(stmt)
                self.short = self.short or not has_long and has_few_trips(bounds) and not raises(inner)
                return has_long or not is_known and not has_few_trips(bounds)
            case ast.For(_, _, inner):
                self.visit(inner, known)
                return True
        return False


def has_few_trips(bounds: Sequence[ast.expr]) -> bool:
    """Whether a range of these bounds has few numbers at most: from wherever it starts, it ends at a small one."""
    match bounds:
        case [ast.Constant(n)] | [_, ast.Constant(n)]:
            return 1 < n <= SHORT
        case [ast.Constant(n), ast.UnaryOp(ast.USub()), _]:
            return 0 < n < SHORT
    return False


def raises(body: Sequence[ast.stmt]) -> bool:
    """Whether an exception may be raised here: then no loop around it is made vectors."""
    return any(isinstance(n, ast.Raise) or isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in CHECKS
               for stmt in body for n in ast.walk(stmt))


def leave(branch: ir.Instruction) -> None:
    """Have LLVM not take the loop apart that this branch repeats."""
    module = branch.module
    said = module.add_metadata(["llvm.loop.unroll.disable"])
    loop = ir.MDValue(module, (), name=str(len(module.metadata)))
    loop.operands = (loop, said)  # what names itself is no other loop's
    branch.set_metadata("llvm.loop", loop)
