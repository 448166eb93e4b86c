"""A derivative warns of nothing that the program itself would not have warned of.

    y = np.sqrt(x)                                      y = np.sqrt(x)
    x_bar = 0.5 / y * x                  becomes        with np.errstate(all="ignore"):
    return x_bar                                            x_bar = 0.5 / y * x
                                                        return x_bar

np.sqrt(0.0) warns of nothing; its slope, 0.5 / 0.0, does, and so does what an infinite slope is
multiplied by. The statements that compute slopes of such functions (Note [Slopes],
ops/core/record.py), what is thrown away (transform/cleanup/strong_products.py), and what is made of
them stand in a block that ignores all floating-point errors, as few blocks as may be, and around
whole loops. What the program itself computes and may warn of stays outside, under the settings of
whoever calls. Where it warns itself wherever its derivative does (1 / x, np.log), nothing is done,
unless it ignores some of those errors (front/values/context_managers.py). Compiled code warns of
nothing.

Considered: the decorator that stands for the user's own `np.errstate`, which silences the program,
too; settings around the call, which an exported file would lack; divisors that are 1 where nothing
is asked, which is more text, and work, and leaves slopes that are infinite by right.
"""

from __future__ import annotations

import ast

from ...errors import Line
from ...ir.graph import Function, Op, Value, blocks_of, walk
from ...ir.types import Array, Scalar, Unknown, is_inexact
from ...ops.core.signs import is_nonzero
from ...ops.program.recursive_callee import Recursive
from ..syntax.ast_names import nodes_in
from ..syntax.unparse import Blank, Comment

_COMPARES = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "where",
             "select", "logical_not", "not_", "and_", "or_", "bitwise_and", "bitwise_or", "isnan",
             "isinf", "isfinite", "astype", "convert", "float_", "sign", "negative", "positive",
             "real", "imag", "conjugate"}
_SUMS = {"sum", "matmul", "dot", "dot_left", "dot_right", "inner", "outer", "einsum", "additem",
         "cumsum", "prod"}
# of the program's own, besides poles
_OVERFLOWS = {"exp", "exp2", "expm1", "sinh", "cosh", "sqrt", "cbrt", "square", "floor_divide"}
_QUOTIENTS = {"divide", "quotient", "single_quotient"}
SILENT = 'np.errstate(all="ignore")'


def is_derived(line: Line | None) -> bool:
    """Whether a derivative computes this, not the program."""
    return line is not None and (line.backwards or line.tangent)


def computes(op: Op) -> bool:
    """Whether NumPy might warn of what `op` computes."""
    return op.record.elementwise and op.name not in _COMPARES or op.name in _SUMS


class Hushed:
    """Which ops of `function` are to warn of nothing, and which are the program's own and may warn.
    """

    def __init__(self, function: Function):
        self.made: set[Value] = set()  # what may be infinite, or NaN, in a derivative alone
        self.quiet: set[Op] = set()
        self.loud = {op for op in walk(function.block) if warns_itself(op)}
        self.block = {op: block for block in blocks_of(function.block) for op in block.ops}
        self.divisors = {(op.inputs[1], self.block[op]) for op in self.loud if op.name in _QUOTIENTS
                         and not (op.line is not None and op.line.source.silent)}  # the program warns where these are 0
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
        if op.name in _QUOTIENTS:
            a, b = op.inputs
            begins = (begins or b.op is not None and b.op.record.elementwise
                      and b.op.record.slope_at(b.op.inputs)
                      == "steep") and (b, self.block[op]) not in self.divisors and not is_nonzero(b)
        if begins or reads:
            self.made.update(y for y in op.outputs if _is_float(y))
            if computes(op):
                self.quiet.add(op)


def warns_itself(op: Op) -> bool:
    """Whether this is the program's own and may warn: at poles, outside domains, where it
    overflows; sums and products are passed over.
    """
    if is_derived(op.line) or not op.record.elementwise or not any(map(_is_float, op.outputs)):
        return False
    return op.name in _OVERFLOWS or op.record.slope_at(op.inputs) != "finite"


def calls_quiet(op: Op) -> bool:
    """Whether a function that is called computes slopes that may be infinite."""
    callee = op.attrs["callee"]
    if isinstance(callee, Recursive):
        return False
    return any(each.name == "call" and calls_quiet(each)
               or is_derived(each.line) and each.line.steep and computes(each)
               for each in walk(callee.function_for(op.inputs).block))


def is_mixed(op: Op) -> bool:
    """Whether a function that is called sees to it itself: what the program computes, and may warn
    of, is computed there, too.
    """
    callee = op.attrs["callee"]
    return isinstance(callee, Recursive) or not is_wholly_derived(callee.function_for(op.inputs))


def is_wholly_derived(function: Function) -> bool:
    """Whether `function` computes nothing of which the program itself would warn."""
    return not any(warns_itself(op) or op.name == "call" and is_mixed(op)
                   for op in walk(function.block))


def _is_float(y: Value) -> bool:
    return (not isinstance(y.type, (Scalar, Array, Unknown)) or y.type.dtype is None
            or is_inexact(y.type.dtype))


# ------------------------------------------------------------------------------------- statements


def mark(node: ast.AST, op: Op, hushed: Hushed | None) -> ast.AST:
    """`node`, the text of `op`, which from now on says what it is."""
    if hushed is not None and (op in hushed.quiet or op in hushed.loud):
        setattr(node, "quiet" if op in hushed.quiet else "loud", True)
    return node


def _says(statement: ast.stmt, what: str) -> bool:
    return any(hasattr(node, what) for node in nodes_in(statement))


def hush(body: list[ast.stmt]) -> list[ast.stmt]:
    """`body`, of which what is quiet ignores floating-point errors."""
    result: list[ast.stmt] = []
    k = 0
    while k < len(body):
        statement = body[k]
        if not _says(statement, "quiet"):
            result.append(statement)
        elif getattr(statement, "body", None) and _says(statement, "loud"):
            for part in ("body", "orelse"):
                setattr(statement, part, hush(getattr(statement, part, [])))
            result.append(statement)
        else:
            last = k
            for n in range(k + 1, len(body)):
                if _says(body[n],
                         "loud") or not isinstance(body[n],
                                                   (ast.Assign, ast.AugAssign, ast.Expr, ast.For,
                                                    ast.While, ast.If, ast.Return, Comment, Blank)):
                    break
                if _says(body[n], "quiet"):
                    last = n
            block = ast.With([ast.withitem(ast.parse(SILENT, mode="eval").body)], body[k:last + 1])
            block.line = getattr(statement, "line", None)
            result.append(block)
            k = last
        k += 1
    return result
