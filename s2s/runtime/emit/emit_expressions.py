"""Emit LLVM IR for expressions: element accesses and arithmetic as plain instructions, everything
else through Numba's lowering.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ..intrinsics.checked_index import checked_place
from ..intrinsics.complex_math import of_real
from ..intrinsics.element_access import field, is_element, item, place
from ..intrinsics.inline_checks import slice_bound
from ..intrinsics.minmax import larger, smaller
from ..intrinsics.noalias_alloc import read_before
from ..kernels import array_layout
from ..numba_internals import Loc, load_item, numba_typing, store_item
from ..threads import parallel_for
from ..threads.parallel_for import natural
from .infer_expressions import BINARY, COMPARED, UNARY

AGAIN = {**parallel_for.AGAIN, **array_layout.AGAIN}
ARITHMETIC = {operator.add: ("add", "fadd"), operator.sub: ("sub", "fsub"),
              operator.mul: ("mul", "fmul"), operator.truediv: (None, "fdiv")}
MOST_PRODUCTS = 64
ORDER = {operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=",
         operator.gt: ">", operator.ge: ">="}


class ExprValue(NamedTuple):
    """The value of an expression; `owned` if it comes with a reference that its user must release,
    `lasting` if the caller holds one.
    """

    value: ir.Value
    kind: types.Type
    owned: bool = False
    lasting: bool = False


class Expressions:
    """Emit the expressions of a function whose types are inferred."""

    filename = ""
    line = 0

    def __init__(self, context, builder, inference):
        self.context, self.builder, self.inference = context, builder, inference
        self.kinds, self.calls = inference.kinds, inference.calls
        self.naturals: dict[int, ir.Value] = {}  # values known not to be negative
        # by block, outermost first: owned arrays, and temporaries of calls
        self.held: list[dict[object, ExprValue]] = [{}]
        self.is_counted = functools.cache(
            lambda kind: context.data_model_manager[kind].contains_nrt_meminfo())

    def read(self, name: str) -> ExprValue:
        """The value of a variable."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------- values

    def own(self, given: ExprValue) -> ExprValue:
        """The same value, with a reference of its own."""
        if not given.owned and self.is_counted(given.kind):
            self.count("NRT_incref", given.kind, given.value)
        return given._replace(owned=True, lasting=False)

    def drop(self, given: ExprValue) -> None:
        """Release a value that nothing uses."""
        if given.owned and self.is_counted(given.kind):
            self.release(given)

    def release(self, given: ExprValue) -> None:
        """Release a reference to the value."""
        self.count("NRT_decref", given.kind, given.value)

    def counters(self, given: ExprValue) -> list[ir.Value]:
        """Numba's reference-counted objects (meminfos) inside the value."""
        if isinstance(given.kind, types.BaseTuple):
            return [each for k, kind in enumerate(given.kind.types) if self.is_counted(kind)
                    for each in self.counters(ExprValue(item(self.builder, given.value, k), kind))]
        return [field(self.context, self.builder, given.kind, given.value, "meminfo")]

    @contextmanager
    def holding(self, *given: ExprValue):
        """Keep temporaries alive while something else is computed that may raise."""
        held, before = self.held[-1], len(self.held[-1])
        for x in given:
            if x.owned and self.is_counted(x.kind):
                held[id(x.value), len(held)] = x
        yield
        while len(held) > before:
            held.popitem()

    def expressions(self, nodes: Iterable[ast.expr]) -> list[ExprValue]:
        given: list[ExprValue] = []
        for node in nodes:
            with self.holding(*given):
                given.append(self.expression(node))
        return given

    def count(self, function: str, kind: types.Type, value: ir.Value) -> None:
        """Increment or decrement the reference count of the value."""
        if isinstance(kind, types.BaseTuple):
            for k, each in enumerate(kind.types):
                if self.is_counted(each):
                    self.count(function, each, item(self.builder, value, k))
            return
        if function == "NRT_decref" and isinstance(kind, types.Array):
            read_before(self.builder, field(self.context, self.builder, kind, value, "data"))
        called = self.builder.module.globals.get(function)
        if called is None:  # Numba declares it
            getattr(self.context.nrt, function.removeprefix("NRT_"))(self.builder, kind, value)
        else:
            self.builder.call(called, [field(self.context, self.builder, kind, value, "meminfo")])

    def as_type(self, given: ExprValue, kind: types.Type) -> ir.Value:
        """Cast the value to this type."""
        value, of = given.value, given.kind
        if of == kind:
            return value
        if (isinstance(value, ir.Constant) and isinstance(value.type, ir.IntType)
            and isinstance(types.unliteral(of), types.Integer) and isinstance(kind, types.Float)):
            number = value.constant
            if isinstance(number, int) and abs(number) < 1 << 24:  # exact in both float types
                return ir.Constant(self.context.get_value_type(kind), float(number))
        if isinstance(of, types.IntegerLiteral) and kind == types.unliteral(of):
            return value
        if isinstance(kind, types.Complex) and isinstance(of, (types.Float, types.Integer)):
            real = (value if of == kind.underlying_float
                    else self.context.cast(self.builder, value, of, kind.underlying_float))
            return of_real(self.context, self.builder, kind, real)
        return self.context.cast(self.builder, value, of, kind)

    def is_natural(self, value: ir.Value) -> bool:
        if isinstance(value, ir.Constant):
            return isinstance(value.constant, int) and value.constant >= 0
        return id(value) in self.naturals

    def note(self, given: ExprValue, is_natural: bool) -> ExprValue:
        if is_natural and not isinstance(given.value, ir.Constant):
            self.naturals[id(given.value)] = given.value
        return given

    # ---------------------------------------------------------------------------------- expressions

    def expression(self, node: ast.expr) -> ExprValue:
        kind = self.kinds[id(node)]
        if id(node) in self.inference.statics:
            # only its type matters, and its address is valid in this process only:
            # such code is not cached
            if isinstance(kind, types.Dispatcher):
                return ExprValue(self.context.get_constant_null(kind), kind)
            return ExprValue(self.context.get_constant_generic(self.builder, kind,
                                                               self.inference.statics[id(node)]),
                             kind)
        match node:
            case ast.Constant(value):
                return ExprValue(self.context.get_constant_generic(self.builder, kind, value), kind)
            case ast.Name(name):
                return self.read(name)
            case ast.Tuple(items):
                return self.several(kind, self.expressions(items))
            case ast.BinOp(left, op, right):
                return self.operation(node, BINARY[type(op)],
                                      [self.expression(left), self.expression(right)])
            case ast.UnaryOp(op, operand):
                if id(node) not in self.calls:
                    return ExprValue(self.context.get_constant_generic(self.builder, kind,
                                                                       -operand.value), kind)
                return self.operation(node, UNARY[type(op)], [self.expression(operand)])
            case ast.Compare(left, [op], [right]):
                return self.operation(node, COMPARED[type(op)],
                                      [self.expression(left), self.expression(right)])
            case ast.Compare():
                return self.either(self.inference.pairs[id(node)], False)
            case ast.BoolOp(op, values):
                return self.either(values, isinstance(op, ast.Or))
            case ast.IfExp(test, body, other):
                return self.choice(kind, test, body, other)
            case ast.Attribute(value, attr):
                return self.attribute(kind, self.expression(value), attr)
            case ast.List(items):
                return self.listed(kind, self.expressions(items))
            case ast.Subscript(ast.List(), ast.Slice()) if id(node) not in self.calls:
                return self.listed(kind, [])
            case ast.Subscript(value, index):
                return self.subscript(node, kind, self.expression(value), index)
            case ast.Slice(lower, upper, step):
                none = ExprValue(self.context.get_dummy_value(), types.none)
                return self.call(node, slice,
                                 [none if x is None else self.expression(x)
                                  for x in (lower, upper, *[step] * (step is not None))], {})
            case ast.Call(function, args, keywords):
                return self.called(node, function, args, keywords)
        raise AssertionError(ast.dump(node))

    def several(self, kind: types.BaseTuple, items: list[ExprValue]) -> ExprValue:
        owned = any(x.owned and self.is_counted(x.kind) for x in items)
        if owned:
            items = [self.own(x) for x in items]
        values = [self.as_type(x, k) for x, k in zip(items, kind.types)]
        return ExprValue(self.context.make_tuple(self.builder, kind, values), kind, owned)

    def listed(self, kind: types.List, items: list[ExprValue]) -> ExprValue:
        """A new list of these values."""
        with self.holding(*items):
            made = self.context.build_list(self.builder, kind,
                                           [self.as_type(x, kind.dtype) for x in items])
        for x in items:
            self.drop(x)
        return ExprValue(made, kind, True)

    def operation(self, node: ast.AST, function: Callable, given: list[ExprValue]) -> ExprValue:
        signature = self.calls[id(node)]
        kinds = set(signature.args)
        if len(kinds) == 1 and len(given) == 2:
            (kind,) = kinds
            made = self.instruction(function, kind, [self.as_type(x, kind) for x in given])
            if made is not None:
                given = [x.value for x in given]
                return self.note(ExprValue(made, signature.return_type),
                                 function in (operator.add, operator.mul)
                                 and all(map(self.is_natural, given)))
        values = [x.value for x in given]
        if (function is operator.pow
            and (made := self.power(signature.return_type, *given)) is not None):
            return ExprValue(made, signature.return_type)
        made = self.call(node, function, given, {})
        return self.note(made,
                         function in (operator.floordiv, operator.mod)
                         and all(map(self.is_natural, values)))

    def power(self, kind: types.Type, x: ExprValue, exponent: ExprValue) -> ir.Value | None:
        """Expand a float to a small literal power into the products that Numba would use; its
        general function takes 0.1 s to compile.
        """
        number = (exponent.value.constant
                  if isinstance(exponent.value, ir.Constant)
                  and isinstance(exponent.value.type, ir.IntType) else None)
        if (not isinstance(kind, types.Float) or x.kind != kind or not isinstance(number, int)
            or abs(number) > MOST_PRODUCTS):
            return None
        made, factor, left = None, x.value, abs(number)
        while left:
            if left & 1:
                made = factor if made is None else self.builder.fmul(made, factor)
            left >>= 1
            if left:
                factor = self.builder.fmul(factor, factor)
        one = ir.Constant(x.value.type, 1.0)
        return one if made is None else self.builder.fdiv(one, made) if number < 0 else made

    def instruction(self, function: Callable, kind: types.Type,
                    values: Sequence[ir.Value]) -> ir.Value | None:
        """The single instruction that computes the operation as Numba does, if there is one."""
        is_float = kind in (types.float64, types.float32)
        if not is_float and kind != types.int64:
            return None
        if function in ARITHMETIC:
            name = ARITHMETIC[function][is_float]
            return None if name is None else getattr(self.builder, name)(*values)
        if function in ORDER:
            if not is_float:
                return self.builder.icmp_signed(ORDER[function], *values)
            return (self.builder.fcmp_unordered if function is operator.ne
                    else self.builder.fcmp_ordered)(ORDER[function], *values)
        return None

    def either(self, values: list[ast.expr], is_or: bool) -> ExprValue:
        """Short-circuit `and` and `or` of truth values."""
        builder, ways = self.builder, []
        after = builder.append_basic_block()
        for k, node in enumerate(values):
            value = self.expression(node).value
            ways.append((value, builder.block))
            if k == len(values) - 1:
                builder.branch(after)
            else:
                more = builder.append_basic_block()
                builder.cbranch(value, *((after, more) if is_or else (more, after)))
                builder.position_at_end(more)
        builder.position_at_end(after)
        return ExprValue(self.joined(ways), types.boolean)

    def joined(self, ways: list[tuple[ir.Value, ir.Block]]) -> ir.Value:
        found = self.builder.phi(ways[0][0].type)
        for value, block in ways:
            found.add_incoming(value, block)
        return found

    def choice(self, kind: types.Type, test: ast.expr, body: ast.expr,
               other: ast.expr) -> ExprValue:
        """`body if test else other` of two numbers that depend on data: the branch would be
        mispredicted half of the time.
        """
        builder = self.builder
        condition = self.expression(test).value
        blocks = [builder.append_basic_block() for _ in range(3)]
        self.unpredictable(builder.cbranch(condition, *blocks[:2]))
        ways, naturals = [], []
        for block, node in zip(blocks, (body, other)):
            builder.position_at_end(block)
            given = self.own(self.expression(node))
            value = self.as_type(given, kind)
            naturals.append(self.is_natural(value))
            ways.append((value, builder.block))
            builder.branch(blocks[2])
        builder.position_at_end(blocks[2])
        return self.note(ExprValue(self.joined(ways), kind, True), all(naturals))

    def unpredictable(self, made: ir.Instruction) -> ir.Instruction:
        """The same, marked unpredictable, so that LLVM emits a select where both sides are cheap.
        """
        made.set_metadata("unpredictable", self.builder.module.add_metadata([]))
        return made

    def sign(self, x: ir.Value) -> ir.Value:
        """np.sign of a float: NaN of NaN, 0.0 of both zeros.  Numba's version branches, and returns
        -0.0.
        """
        zero, plus, minus = (ir.Constant(x.type, number) for number in (0.0, 1.0, -1.0))
        found = x
        for order, number in (("==", zero), ("<", minus), (">", plus)):
            found = self.unpredictable(self.builder.select(
                self.builder.fcmp_ordered(order, x, zero), number, found))
        return found

    # --------------------------------------------------------------------------------------- arrays

    def attribute(self, kind: types.Type, of: ExprValue, attr: str) -> ExprValue:
        if attr == "shape" and isinstance(of.kind, types.Array) and not of.owned:
            shape = field(self.context, self.builder, of.kind, of.value, "shape")
            return ExprValue(shape, kind)
        found = self.context.get_getattr(of.kind, attr)(self.context, self.builder, of.kind,
                                                        of.value, attr)
        self.drop(of)
        return ExprValue(found, kind, True)

    def indices(self, node: ast.expr) -> list[ExprValue]:
        return [self.index(x) for x in (node.elts if isinstance(node, ast.Tuple) else [node])]

    def whole(self, node: ast.expr) -> ExprValue:
        """The index of an element or slice as one value, for a call."""
        return self.packed(node, self.indices(node))

    def packed(self, node: ast.expr, indices: list[ExprValue]) -> ExprValue:
        return (self.several(self.kinds[id(node)], indices) if isinstance(node, ast.Tuple)
                else indices[0])

    def index(self, node: ast.expr) -> ExprValue:
        """An index, cast to the type that the array expects."""
        if self.kinds[id(node)] == types.none:
            return ExprValue(self.context.get_dummy_value(), types.none)
        return ExprValue(self.expression(node).value, self.kinds[id(node)])

    def subscript(self, node: ast.Subscript, kind: types.Type, of: ExprValue,
                  index: ast.expr) -> ExprValue:
        if isinstance(of.kind, types.BaseTuple):
            k = self.kinds[id(index)].literal_value % len(of.kind.types)
            found = ExprValue(item(self.builder, of.value, k), kind)
            if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
                self.note(found, True)
            if of.owned:
                found = self.own(found)
            self.drop(of)
            return found
        with self.holding(of):
            indices = self.indices(index)
            if self.is_element(of, indices):
                found = self.element(of, indices)
            else:
                found = self.call(node, operator.getitem,
                                  [of._replace(owned=False), self.packed(index, indices)], {})
        self.drop(of)
        return found

    def is_element(self, of: ExprValue, indices: Sequence[ExprValue]) -> bool:
        kinds = [x.kind for x in indices]
        return is_element(self.context, of.kind,
                          kinds[0] if len(kinds) == 1 else types.Tuple.from_types(kinds))

    def where(self, of: ExprValue, indices: Sequence[ExprValue]) -> ir.Value:
        return place(self.context, self.builder, of.kind, of.value,
                     [(x.value, x.kind) for x in indices], self.is_natural, self.line)

    def element(self, of: ExprValue, indices: Sequence[ExprValue]) -> ExprValue:
        return ExprValue(load_item(self.context, self.builder, of.kind, self.where(of, indices)),
                         of.kind.dtype)

    def put_element(self, of: ExprValue, indices: Sequence[ExprValue], x: ExprValue) -> None:
        store_item(self.context, self.builder, of.kind, self.as_type(x, of.kind.dtype),
                   self.where(of, indices))

    # ---------------------------------------------------------------------------------------- calls

    def called(self, node: ast.Call, function: ast.expr, args: list[ast.expr],
               keywords: list[ast.keyword]) -> ExprValue:
        if not self.inference.is_static(function):
            bound = self.kinds[id(function)]
            of = self.expression(function.value)
            with self.holding(of):
                found = self.call(node, bound, *self.arguments(args, keywords), of)
            self.drop(of)
            return found
        named = self.inference.static(function)
        given, others = self.arguments(args, keywords)
        if len(given) == 1 and not keywords:
            (x,) = given
            if named is len and isinstance(x.kind, types.Array) and not x.owned:
                return self.note(ExprValue(
                    item(self.builder,
                         field(self.context, self.builder, x.kind, x.value, "shape"), 0),
                    types.intp), True)
            if named is np.shape and isinstance(x.kind, types.Array):
                shape = self.attribute(self.kinds[id(node)], x._replace(owned=False), "shape")
                self.drop(x)
                return shape
            if named is np.sign and isinstance(x.kind, types.Float):
                return ExprValue(self.sign(x.value), x.kind)
            if (named in (np.float32, np.float64) and isinstance(args[0], ast.Constant)
                and isinstance(x.kind, types.Float)):
                kind = self.kinds[id(node)]
                return ExprValue(ir.Constant(self.context.get_value_type(kind),
                                             float(named(args[0].value))), kind)
        if named in AGAIN and AGAIN[named][0](*(x.kind for x in given)):
            return self.again(node, AGAIN[named][1], given)
        naturals = [self.is_natural(x.value) for x in given]
        found = self.call(node, named, given, others)
        is_natural = (named in (checked_place, natural, slice_bound)
                      or named is larger and any(naturals) or named is smaller and all(naturals))
        return self.note(found, is_natural and types.unliteral(found.kind) == types.intp)

    def arguments(self, args: list[ast.expr],
                  keywords: list[ast.keyword]) -> tuple[list[ExprValue], dict[str, ExprValue]]:
        given = self.expressions([*args, *(k.value for k in keywords)])
        return given[:len(args)], {k.arg: x for k, x in zip(keywords, given[len(args):])}

    def call(self, node: ast.AST, function: object, given: list[ExprValue],
             keywords: dict[str, ExprValue], of: ExprValue | None = None,
             signature=None) -> ExprValue:
        """Call a function through Numba's lowering."""
        signature = signature or self.calls[id(node)]
        resolve = self.context.typing_context.resolve_value_type
        kind = function if isinstance(function, types.Type) else resolve(function)
        if signature.pysig is None:
            values = [self.as_type(x, k) for x, k in zip(given, signature.args)]
        else:
            values = list(numba_typing.fold_arguments(
                signature.pysig, given, keywords,
                lambda k, _, x: self.as_type(x, signature.args[k]),
                lambda k, _, value: self.context.get_constant_generic(self.builder,
                                                                      signature.args[k], value),
                self.refused))
        if signature.recvr:
            values.insert(0, of.value)
        with self.holding(*given, *keywords.values()):
            found = self.context.get_function(kind, signature)(self.builder, values,
                                                               Loc(self.filename, self.line))
        for x in (*given, *keywords.values()):
            self.drop(x)
        if isinstance(signature.return_type, types.Phantom) or signature.return_type == types.none:
            return ExprValue(self.context.get_dummy_value(), types.none)
        return ExprValue(found, signature.return_type, True)

    def again(self, node: ast.AST, emit: Callable, given: list[ExprValue]) -> ExprValue:
        """Call a function whose result aliases its first argument's memory: take over the
        argument's reference, or add one.
        """
        signature = self.calls[id(node)]
        with self.holding(*given):
            found = emit(self.context, self.builder, signature,
                         [self.as_type(x, k) for x, k in zip(given, signature.args)])
        for x in given[1:]:
            self.drop(x)
        return given[0]._replace(value=found, kind=signature.return_type)

    def refused(self, *_):
        raise NotImplementedError
