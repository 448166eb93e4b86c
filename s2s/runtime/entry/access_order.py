"""Find the array arguments that a native function traverses row by row, so that copying one to C
order is cheap compared with its use.

    for i in range(len(x)):               for i in range(len(x)):       for i in range(len(x)):
        for j in range(x.shape[1]):           y[i] = x[i, 0]                for j in range(n):
            y[i, j] = x[i, j] * c                                               y[i] += x[j, i]

The first loop traverses x by rows: the innermost counter is the last index, and the loops cover all
of x. The second reads one column, and copying the others might cost any multiple of that; the third
traverses columns, which are contiguous in Fortran order. Products and other library routines take
their arguments in any layout.

The analysis reads the generated text, which shows the final loops. A loop covers an axis if its
bound is the axis's length up to a constant: a trip count from another argument may be smaller.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...back.syntax.ast_names import nodes_in
from ...ops.core.record import returns_its_operand
from ..kernels.runtime_calls import NATURAL

Axes = frozenset  # (argument, axis) pairs of that length
DEEP = 8  # calls


class Trip(NamedTuple):
    """A loop: its counter, and the axes that it traverses."""

    counter: str
    axes: Axes


def read_in_rows(text: str, entry: str, count: int) -> frozenset[int]:
    """The positions, among the first `count` parameters of `entry` in the module `text`, that are
    read along rows.
    """
    functions = {node.name: node
                 for node in Plain().visit(ast.parse(text)).body
                 if isinstance(node, ast.FunctionDef)}
    names = [a.arg for a in functions[entry].args.args]
    reader = Reader(functions)
    reader.function(functions[entry], {name: k for k, name in enumerate(names[:count])}, {}, ())
    return frozenset(k for k in range(count) if reader.rows[k] > reader.columns[k])


class Plain(ast.NodeTransformer):
    """Strip calls that only assert that a number is not negative."""

    def visit_Assign(self, node: ast.Assign):
        match node:
            case ast.Assign([ast.Name(name)],
                            ast.Call(ast.Name(function),
                                     [ast.Name(same)])) if function == NATURAL and same == name:
                return None
        return node


class Reader:
    """Visit the text and count, per argument, accesses along rows and along columns."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef]):
        self.functions = functions
        self.rows, self.columns = Counter(), Counter()

    def function(self, node: ast.FunctionDef, arrays: Mapping[str, int],
                 lengths: Mapping[str, Axes], trips: tuple[Trip, ...], depth: int = 0) -> None:
        """Visit a function whose parameters `arrays` are these arguments, and whose parameters
        `lengths` are lengths of these axes.
        """
        stored = Counter(each.id
                         for each in nodes_in(node)
                         if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
        inside = Body(self, {x: k for x, k in arrays.items() if not stored[x]},
                      {x: a for x, a in lengths.items() if not stored[x]}, stored, depth)
        inside.block(node.body, trips)


class Body:
    """Visit the body of a function, tracking what its names refer to."""

    def __init__(self, reader: Reader, arrays: dict[str, int], lengths: dict[str, Axes],
                 stored: Mapping[str, int], depth: int):
        self.reader, self.arrays, self.lengths, self.stored, self.depth = (reader, arrays, lengths,
                                                                           stored, depth)

    def block(self, body: Sequence[ast.stmt], trips: tuple[Trip, ...]) -> None:
        for stmt in body:
            match stmt:
                case ast.For(ast.Name(counter), ast.Call(ast.Name("range"), args), inner):
                    self.expressions(args, trips)
                    is_whole = len(args) < 3 or ast.unparse(args[2]) in ("1", "-1")
                    self.block(inner,
                               (*trips,
                                Trip(counter,
                                     Axes().union(*map(self.axes, args[:2])) if is_whole
                                     else Axes())))
                case ast.For(_, counted, inner):
                    self.expressions([counted], trips)
                    self.block(inner, (*trips, Trip("", Axes())))
                case ast.While(test, inner):
                    self.expressions([test], trips)
                    self.block(inner, (*trips, Trip("", Axes())))
                case ast.If(test, inner, others):
                    self.expressions([test], trips)
                    self.block(inner, trips)
                    self.block(others, trips)
                case _:
                    self.expressions([stmt], trips)
                    self.note(stmt)

    def note(self, stmt: ast.stmt) -> None:
        """Record names that are bound only once."""
        match stmt:
            case ast.Assign([ast.Name(name)], value) if self.stored[name] == 1:
                if isinstance(value, ast.Name) and value.id in self.arrays:
                    self.arrays[name] = self.arrays[value.id]
                elif axes := self.axes(value):
                    self.lengths[name] = axes
            case ast.Assign([ast.Tuple(targets)],
                            ast.Attribute(ast.Name(array), "shape")) if array in self.arrays:
                for axis, target in enumerate(targets):
                    if isinstance(target, ast.Name) and self.stored[target.id] == 1:
                        self.lengths[target.id] = Axes([(self.arrays[array], axis)])

    def axes(self, node: ast.expr) -> Axes:
        """The axes whose length, up to a constant, is this number."""
        match node:
            case ast.Name(name):
                return self.lengths.get(name, Axes())
            case ast.Call(ast.Name("len"), [ast.Name(array)]) if array in self.arrays:
                return Axes([(self.arrays[array], 0)])
            case ast.Subscript(ast.Attribute(ast.Name(array), "shape"),
                               ast.Constant(axis)) if array in self.arrays:
                return Axes([(self.arrays[array], axis)])
            case ast.BinOp(number, ast.Add() | ast.Sub(), ast.Constant()):
                return self.axes(number)
            case ast.Call(ast.Name("max"), [number, ast.Constant()]):
                return self.axes(number)
            case ast.Call(ast.Name(name), args) if (name == "natural"
                                                        or returns_its_operand(name)):
                return Axes().union(*map(self.axes, args))
        return Axes()

    def expressions(self, nodes: Sequence[ast.AST], trips: tuple[Trip, ...]) -> None:
        for node in (each for whole in nodes for each in nodes_in(whole)):
            match node:
                case ast.Subscript(ast.Name(array), index, ast.Load()) if array in self.arrays:
                    self.element(self.arrays[array],
                                 index.elts if isinstance(index, ast.Tuple) else [index], trips)
                case ast.Call(ast.Name("in_parts"),
                              [ast.Name(name), _, count,
                               ast.Tuple(args)]) if name in self.reader.functions:
                    self.call(self.reader.functions[name],
                              [ast.Constant(0), ast.Constant(0), count, *args], trips)
                case ast.Call(ast.Name(name), args) if name in self.reader.functions:
                    self.call(self.reader.functions[name], args, trips)

    def call(self, function: ast.FunctionDef, args: Sequence[ast.expr],
             trips: tuple[Trip, ...]) -> None:
        if self.depth == DEEP:
            return
        arrays, lengths = {}, {}
        for a, given in zip(function.args.args, args):
            if isinstance(given, ast.Name) and given.id in self.arrays:
                arrays[a.arg] = self.arrays[given.id]
            elif axes := self.axes(given):
                lengths[a.arg] = axes
        if arrays:
            self.reader.function(function, arrays, lengths,
                                 tuple(Trip("", trip.axes) for trip in trips), self.depth + 1)

    def element(self, k: int, index: Sequence[ast.expr], trips: tuple[Trip, ...]) -> None:
        """Record a read of an element of argument `k`."""
        along = [next(
            (n for n in range(len(trips) - 1, -1, -1) if trips[n].counter == counter_of(x)), None)
                 for x in index]
        if (None in along or len({*along}) < len(along)
            or any((k, axis) not in trips[n].axes for axis, n in enumerate(along))):
            return
        if along[-1] == len(trips) - 1:
            self.reader.rows[k] += 1
        elif len(trips) - 1 in along:
            self.reader.columns[k] += 1


def counter_of(index: ast.expr) -> str | None:
    """The loop counter in an index, up to a constant."""
    match index:
        case ast.Name(name):
            return name
        case ast.BinOp(number, ast.Add() | ast.Sub(), ast.Constant()):
            return counter_of(number)
        case ast.BinOp(_, ast.Sub(), ast.Name(name)):  # backwards
            return name
    return None
