"""Suppress floating-point warnings of a derivative that the program itself would not give.

    y = np.sqrt(x)                                      y = np.sqrt(x)
    x_bar = 0.5 / y * x                  becomes        with np.errstate(all="ignore"):
    return x_bar                                            x_bar = 0.5 / y * x
                                                        return x_bar

np.sqrt(0.0) gives no warning; its slope, 0.5 / 0.0, does, and so does a product with an infinite
slope. np.arctan(1e200) gives none, but 1 / (1 + x * x) does, whose value is 0. The statements that
compute slopes of such functions (Note [Slopes] and `slope_warns`, ops/core/record.py) or discarded
values (transform/cleanup/strong_products.py), and those that depend on them, if they may be
infinite, are put into blocks that ignore all floating-point errors: as few blocks as possible, and
around whole loops. The program's own computations, which may warn, stay outside, under the caller's
settings. Where the program warns itself whenever its derivative does (1 / x, np.log, but for
numbers so small that the slope overflows), nothing is done, unless it ignores some of those errors
(front/values/context_managers.py). Compiled code gives no warnings.

Considered: the decorator that replaces the user's own `np.errstate`, which would silence the
program, too; settings around the call, which an exported file would lack; replacing divisors by 1
where the quotient is not used, which is more text, and work, and would change slopes that are
rightly infinite.
"""

from __future__ import annotations

import ast

from ...errors import Line
from ...ir.graph import Function, Op, Value, blocks_of, walk
from ...ir.types import Array, Scalar, Unknown, is_inexact
from ...ops.core.signs import is_nonzero
from ...ops.program.recursive_callee import Recursive
from ..syntax.ast_names import nodes_in
from ..syntax.unparse import Comment

SILENT = 'np.errstate(all="ignore")'


def is_derived(line: Line | None) -> bool:
    """Whether a derivative computes this, not the program."""
    return line is not None and (line.backwards or line.tangent)


def computes(op: Op) -> bool:
    """Whether NumPy might warn about the computation of `op`."""
    return (op.record.warns != "never" if op.record.elementwise
            else op.record.warns == "overflow")


class SilencedOps:
    """The ops of `function` to silence, and the program's own, which may warn."""

    def __init__(self, function: Function):
        self.made: set[Value] = set()  # values that may be infinite or NaN in a derivative only
        self.quiet: set[Op] = set()
        self.loud = {op for op in walk(function.block) if warns_itself(op)}
        self.block = {op: block for block in blocks_of(function.block) for op in block.ops}
        self.divisors = {(op.inputs[1], self.block[op])
                         for op in self.loud if op.record.divides
                         # the program warns where these are 0
                         and not (op.line is not None and op.line.source.silent)}
        while True:
            before = len(self.made), len(self.quiet)
            for op in walk(function.block):
                self.look(op)
            if before == (len(self.made), len(self.quiet)):
                break

    def look(self, op: Op) -> None:
        for block in op.blocks:
            for outs, ends in ((op.outputs, block.yields), (block.params, op.inputs),
                               (block.params, block.yields)):
                if op.name == "if" and outs is block.params:
                    continue
                self.made.update(out for out, end in zip(reversed(outs), reversed(ends))
                                 if end in self.made)
        if op.blocks:
            return
        reads = not self.made.isdisjoint(op.inputs)
        if op.name == "call":
            if reads or calls_quiet(op):
                self.made.update(y for y in op.outputs if _is_float(y))
                if not is_mixed(op):
                    self.quiet.add(op)
            return
        if not is_derived(op.line) or op.line.again:
            return
        begins = computes(op) and (op.line.steep or bool(op.line.source.silent))
        if op.record.divides:
            a, b = op.inputs
            begins = (begins or b.op is not None and b.op.record.elementwise
                      and b.op.record.slope_at(b.op.inputs)
                      == "steep") and (b, self.block[op]) not in self.divisors and not is_nonzero(b)
        if begins or reads:
            self.made.update(y for y in op.outputs if _is_float(y))
        if computes(op) and (begins or reads or op.line.overflows and not _is_pythons(op)):
            self.quiet.add(op)


def warns_itself(op: Op) -> bool:
    """Whether this is the program's own op and may warn: poles, domains, overflow.

    Overflow of sums and products is not considered.
    """
    if is_derived(op.line) or not op.record.elementwise or not any(map(_is_float, op.outputs)):
        return False
    return op.record.warns == "overflow" or op.record.slope_at(op.inputs) != "finite"


def calls_quiet(op: Op) -> bool:
    """Whether the callee computes slopes that may be infinite."""
    callee = op.attrs["callee"]
    if isinstance(callee, Recursive):
        return False
    return any(each.name == "call" and calls_quiet(each)
               or is_derived(each.line) and (each.line.steep or each.line.overflows)
               and computes(each)
               for each in walk(callee.function_for(op.inputs).block))


def is_mixed(op: Op) -> bool:
    """Whether the callee suppresses warnings itself, because it also computes what may warn."""
    callee = op.attrs["callee"]
    return isinstance(callee, Recursive) or not is_wholly_derived(callee.function_for(op.inputs))


def is_wholly_derived(function: Function) -> bool:
    """Whether `function` computes nothing about which the program itself would warn."""
    return not any(warns_itself(op) or op.name == "call" and is_mixed(op)
                   for op in walk(function.block))


def _is_pythons(op: Op) -> bool:
    """Whether this is arithmetic of Python's own numbers, or a function of math, which do not warn.
    """
    return bool(op.record.python or op.record.of_numbers) and all(
        isinstance(x.type, Scalar) and x.type.weak for x in op.inputs)


def _is_float(y: Value) -> bool:
    return (not isinstance(y.type, (Scalar, Array, Unknown)) or y.type.dtype is None
            or is_inexact(y.type.dtype))


# --------------------------------------------------------------------------------------- statements


def mark(node: ast.AST, op: Op, hushed: SilencedOps | None) -> ast.AST:
    """Mark `node`, the text of `op`, as loud or quiet."""
    if hushed is not None and (op in hushed.quiet or op in hushed.loud):
        setattr(node, "quiet" if op in hushed.quiet else "loud", True)
    return node


def _says(statement: ast.stmt, what: str) -> bool:
    return any(hasattr(node, what) for node in nodes_in(statement))


def silence(body: list[ast.stmt]) -> list[ast.stmt]:
    """`body`, with quiet statements in blocks that ignore floating-point errors."""
    result: list[ast.stmt] = []
    k = 0
    while k < len(body):
        statement = body[k]
        if not _says(statement, "quiet"):
            result.append(statement)
        elif getattr(statement, "body", None) and _says(statement, "loud"):
            for part in ("body", "orelse"):
                setattr(statement, part, silence(getattr(statement, part, [])))
            result.append(statement)
        else:
            last = k
            for n in range(k + 1, len(body)):
                if _says(body[n], "loud") or not isinstance(body[n],
                                                            (ast.Assign, ast.AugAssign, ast.Expr,
                                                             ast.For, ast.While, ast.If, ast.Return,
                                                             Comment)):
                    break
                if _says(body[n], "quiet"):
                    last = n
            block = ast.With([ast.withitem(ast.parse(SILENT, mode="eval").body)], body[k:last + 1])
            block.line = getattr(statement, "line", None)
            result.append(block)
            k = last
        k += 1
    return result
