"""Python's operators: their syntax, their special methods, and the ops that they mean.

    a + b      gast.Add      a.__add__(b)      add

An op says which operator it is: `python="a + b"` in its record.
"""

from __future__ import annotations

import ast
import operator

import gast

from ...ops.core.record import RECORDS

SPECIAL_METHODS = {
    "a + b": "add", "a - b": "sub", "a * b": "mul", "a / b": "truediv", "a // b": "floordiv",
    "a % b": "mod", "a ** b": "pow", "a @ b": "matmul", "a & b": "and", "a | b": "or",
    "a ^ b": "xor", "a << b": "lshift", "a >> b": "rshift", "-a": "neg", "+a": "pos",
    "~a": "invert", "a < b": "lt", "a <= b": "le", "a > b": "gt", "a >= b": "ge", "a == b": "eq",
    "a != b": "ne",
}
# by the class of the operator in a syntax tree: the name of the op, and what computes it
BINARY, UNARY, COMPARE = {}, {}, {}
# by the name of the op: the operator's special method, and its symbol
OPERATOR_METHODS: dict[str, str] = {}
SYMBOLS: dict[str, str] = {}


def _register(name: str, python: str) -> None:
    method = SPECIAL_METHODS[python]
    match ast.parse(python, mode="eval").body:
        case ast.BinOp(op=op):
            table = BINARY
        case ast.UnaryOp(op=op):
            table = UNARY
        case ast.Compare(ops=[op]):
            table = COMPARE
    table[getattr(gast, type(op).__name__)] = name, getattr(operator, f"__{method}__")
    OPERATOR_METHODS[name] = method
    SYMBOLS[name] = python.strip("ab ")


for _record in RECORDS.values():
    if _record.python in SPECIAL_METHODS:
        _register(_record.name, _record.python)
