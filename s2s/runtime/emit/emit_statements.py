"""Emit LLVM IR for the statements of a function, in execution order, after type inference.

Note [Long functions]
LLVM computes what is known at the entry of a loop by walking back through all blocks that dominate
it: in a function of consecutive loops, through all previous loops, so the time of LLVM's passes is
quadratic in their number. So after a number of loops comes an artificial join, one of whose two
predecessors is never taken and opaque to all passes; it costs a jump. For 400 loops LLVM then takes
2.8 s instead of 15.7. Considered: a function for each stretch of loops, whose arrays would be
arguments, of which LLVM knows less, passed together with their references. See
runtime/numba/compiler.py for machine code.

Ownership of references to arrays: the result of a call is `owned`, the value of a name belongs to
the name. A value releases its reference after its last use, a slot when it is bound again or the
function returns. A parameter belongs to the caller.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from llvmlite import ir
from numba import types

from ...back.syntax.ast_names import stored_in
from ..intrinsics.element_access import count_of, field, item
from ..intrinsics.noalias_alloc import laid_out
from ..llvm.helper_functions import raised_in
from ..llvm.split_module import LOOP
from ..numba_internals import Loc, callconv, cgutils
from .collapse_nests import Nest
from .emit_expressions import Expressions, ExprValue
from .infer_expressions import BINARY, MIXED, SCALARS, Types
from .outline_loops import LoopArguments, Reads, Sources, promise_of
from .stack_arrays import on_stack
from .unroll_hints import leave
from .unwind import Unwinding

ALIGNED = 32  # bytes of a vector, to which short arrays are aligned
STRETCH = 32  # consecutive loops and branches between two artificial joins


class Bound(NamedTuple):
    """The binding of a name: a value, or else a slot of this type."""

    kind: types.Type
    value: ir.Value | None = None
    lasting: bool = False


class LoopTargets(NamedTuple):
    """The targets of `continue` and `break` of a loop, the types at these points, and the block
    depth.
    """

    next: ir.Block
    after: ir.Block
    head: Types
    end: Types | None
    depth: int


class Statements(Expressions):
    """Emit the code of a function: `emit()`."""

    def __init__(self, lower, function: ast.FunctionDef, inference, left: Container[ast.For],
                 nests: dict[int, Nest], extracted: Container[ast.For] = ()):
        super().__init__(lower.context, lower.builder, inference)
        self.lower, self.function, self.bindings, self.left = (lower, function, inference.bindings,
                                                               left)
        self.known: dict[str, Bound] = {}
        self.slots: dict[tuple[str, types.Type], ir.Value] = {}
        self.trips: list[LoopTargets] = []
        self.nests = nests
        self.on_stack = on_stack(function, inference.kinds)
        self.bounds: dict[int, list[ir.Value]] = {}  # loops of nests that may run as one
        self.extracted = extracted
        self.done: set[ast.For] = set()  # of these
        self.latest: dict[str, ExprValue] = {}  # known contents of array slots
        # noalias promises of the arrays bound to each name (outline_loops.py)
        self.promises: dict[str, set[int]] = {}
        self.sources = Sources(function) if extracted else None
        self.place = (0, 0)  # (block, statement in the block)

    # ---------------------------------------------------------------------------------------- names

    def emit(self) -> None:
        for name, kind in self.inference.kept():  # every return releases these
            if self.is_counted(kind):
                self.slot(name, kind)
        self.failing = Unwinding(self.builder,
                                 lambda: (each for held in self.held for each in held.items()),
                                 self.counters)
        for a, kind, value in zip(self.function.args.args, self.lower.fndesc.argtypes,
                                  self.lower.fnargs):
            self.bind(a, a.arg, ExprValue(value, kind, lasting=True))
        if self.block(self.function.body):
            self.leave(ExprValue(self.context.get_dummy_value(), types.none))
        self.failing.finish(lambda: [self.release(each) for each in self.in_slots()])

    def slot(self, name: str, kind: types.Type) -> ir.Value:
        """The stack slot of the name for values of this type."""
        if (name, kind) not in self.slots:
            of = self.context.get_value_type(kind)
            # zero-initialised
            self.slots[name, kind] = cgutils.alloca_once(self.builder, of)
        return self.slots[name, kind]

    def bind(self, node: ast.AST, name: str, given: ExprValue) -> None:
        kind = self.kinds[id(node)]
        value = self.as_type(given, kind)
        is_value = id(node) in self.bindings.values
        if self.sources is not None and isinstance(kind, types.Array):
            promise = promise_of(field(self.context, self.builder, kind, value, "data"))
            if promise is not None:
                self.promises.setdefault(name, set()).add(id(promise))
        counts = self.is_counted(kind) and not (is_value and given.lasting)
        if counts and not given.owned:
            self.count("NRT_incref", kind, value)
        if is_value:
            self.known[name] = Bound(kind, value, given.lasting)
            if counts:
                self.held[-1][id(node)] = ExprValue(value, kind)
                self.failing.keep(id(node), ExprValue(value, kind))
            return
        self.put(name, kind, value)
        self.known[name] = Bound(kind)
        if self.sources is not None:
            self.latest[name] = ExprValue(value, kind)

    def put(self, name: str, kind: types.Type, value: ir.Value) -> None:
        """Store the value into the name's slot, which takes over its reference."""
        place = self.slot(name, kind)
        if self.is_counted(kind):
            self.count("NRT_decref", kind, self.builder.load(place))
        self.builder.store(value, place)

    def read(self, name: str) -> ExprValue:
        kind, value, lasting = self.known[name]
        if (value is None and isinstance(kind, types.Array)
            and (latest := self.latest.get(name)) is not None and latest.kind == kind):
            value = latest.value
        return ExprValue(self.builder.load(self.slot(name, kind)) if value is None else value, kind,
                     lasting=lasting)

    def forget(self, stmt: ast.stmt) -> None:
        """Forget the known contents of all slots that the statement binds."""
        if self.latest:
            for name in self.latest.keys() & set(stored_in([stmt])):
                del self.latest[name]

    def fit(self, wanted: Types | None) -> None:
        """Convert slots to the types expected at the join where this path ends."""
        for name, (kind, value, _) in self.known.items():
            if (value is None and wanted is not None and wanted.get(name, kind) not in (kind, MIXED)
                and kind is not MIXED):
                moved = self.context.cast(self.builder, self.builder.load(self.slot(name, kind)),
                                          kind, wanted[name])
                if self.is_counted(wanted[name]):
                    self.count("NRT_incref", wanted[name], moved)
                self.put(name, wanted[name], moved)

    def meet(self, before: dict[str, Bound], end: Types) -> None:
        """Continue at a join of paths that started with `before`."""
        self.known = {name: b if (b := before.get(name)) is not None and b.value is not None
                      else Bound(kind) for name, kind in end.items()}

    def give_up(self, blocks: Sequence[dict[int, ExprValue]]) -> None:
        for held in blocks:
            for given in held.values():
                self.release(given)

    def in_slots(self) -> Iterator[ExprValue]:
        """The values in the slots."""
        for (_, of), place in self.slots.items():
            if self.is_counted(of):
                yield ExprValue(self.builder.load(place), of)

    # ----------------------------------------------------------------------------------- statements

    def block(self, body: list[ast.stmt]) -> bool:
        """Emit the statements; return whether control reaches their end."""
        compound = 0
        for k, stmt in enumerate(body):
            self.line = stmt.lineno
            self.place = id(body), k
            is_compound = isinstance(stmt, (ast.For, ast.While, ast.If))
            if is_compound:
                self.forget(stmt)
            if not self.statement(stmt):
                return False
            if is_compound:
                self.forget(stmt)
            compound += is_compound
            if compound == STRETCH and k + 1 < len(body):
                compound = 0
                self.rest()
            for node in self.bindings.ends.get((id(body), k), ()):
                given = self.held[-1].pop(node, None)
                self.failing.forget(node)
                if given is not None:
                    self.release(given)
            for name in self.bindings.over.get((id(body), k), ()):
                self.known.pop(name, None)
        return True

    def rest(self) -> None:
        """Emit an artificial join point.  Note [Long functions]"""
        builder = self.builder
        byte = ir.IntType(8)
        never = builder.asm(ir.FunctionType(byte, [byte]), "", "=r,0", [byte(0)], True)
        other, after = builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.icmp_unsigned("==", never, byte(0)), after, other)
        builder.position_at_end(other)
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
        builder.branch(after)
        builder.position_at_end(after)

    @contextmanager
    def inside(self, body: list[ast.stmt]):
        """Emit a nested block; return whether control reaches its end."""
        self.held.append({})
        try:
            yield
        finally:
            for key in self.held.pop():
                self.failing.forget(key)

    def statement(self, stmt: ast.stmt) -> bool:
        """Emit the statement; return whether control reaches its end."""
        match stmt:
            case ast.Assign([target], value):
                self.assign(target, value)
            case ast.AugAssign(target, op, value):
                self.add_to(stmt, target, BINARY[type(op)], value)
            case ast.For():
                return stmt in self.extracted and self.extract(stmt) or self.counted(stmt)
            case ast.While():
                return self.repeated(stmt)
            case ast.If(test, body, others):
                return self.chosen(stmt, test, body, others)
            case ast.Return(value):
                self.leave(ExprValue(self.context.get_dummy_value(), types.none) if value is None
                           else self.expression(value))
                return False
            case ast.Raise(exc):
                self.raised(exc)
                return False
            case ast.Break() | ast.Continue():
                trip = self.trips[-1]
                ends = isinstance(stmt, ast.Break)
                self.fit(trip.end if ends else trip.head)
                self.give_up(self.held[trip.depth:])
                self.builder.branch(trip.after if ends else trip.next)
                return False
            case ast.Expr(ast.Call() as call):
                self.drop(self.expression(call))
        return True

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(targets), ast.Tuple(values):
                given = self.expressions(values)
                # a name bound earlier may hold the only reference to another's array
                if any(self.is_counted(x.kind) for x in given):
                    given = [x if x.lasting else self.own(x) for x in given]
                for t, x in zip(targets, given):
                    self.bind_to(t, x)
            case ast.Tuple(targets), _:
                whole = self.expression(value)
                for k, (t, kind) in enumerate(zip(targets, whole.kind.types)):
                    self.bind_to(t, ExprValue(self.builder.extract_value(whole.value, k), kind))
                self.drop(whole)
            case ast.Name(name), _ if id(value) in self.on_stack:
                self.bind(target, name,
                          self.short(self.kinds[id(value)], *self.on_stack[id(value)]))
            case _:
                self.bind_to(target, self.expression(value))

    def bind_to(self, target: ast.Name | ast.Subscript, x: ExprValue) -> None:
        """Assign to a name, element or slice."""
        if isinstance(target, ast.Name):
            self.bind(target, target.id, x)
            return
        with self.holding(x):
            of = self.expression(target.value)
        if id(target) in self.calls:
            self.call(target, operator.setitem, [of, self.whole(target.slice), x], {})
        else:
            self.put_element(of, self.indices(target.slice), x)
            self.drop(of)

    def short(self, kind: types.Array, shape: Sequence[int], zero: bool) -> ExprValue:
        """Allocate a short array on the stack."""
        item_type = self.context.get_data_type(kind.dtype)
        size = math.prod(shape)
        memory = cgutils.alloca_once(self.builder, ir.ArrayType(item_type, size))
        memory.align = ALIGNED
        if zero:
            self.builder.store(ir.Constant(memory.type.pointee, None), memory)
        word = self.context.get_value_type(types.intp)
        null = ir.Constant(cgutils.voidptr_t, None)
        data = self.builder.bitcast(memory, item_type.as_pointer())
        made = laid_out(self.context, self.builder, kind, [word(n) for n in shape], null, data)
        return ExprValue(made.value, kind, lasting=True)

    def add_to(self, stmt: ast.AugAssign, target: ast.expr, function, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            left = self.read(target.id)
            self.bind(target, target.id,
                      self.operation(stmt, function, [left, self.expression(value)]))
            return
        of, indices = self.expression(target.value), self.indices(target.slice)
        if isinstance(of.kind, types.List):
            with self.holding(of):
                left = self.call(target, operator.getitem, [of._replace(owned=False), *indices], {})
                changed = self.operation(stmt, function, [left, self.expression(value)])
                self.call(target, operator.setitem, [of._replace(owned=False), *indices, changed],
                          {}, signature=self.inference.puts[id(stmt)])
            self.drop(of)
            return
        left = self.element(of, indices)
        self.put_element(of, indices,
                         self.operation(stmt, function, [left, self.expression(value)]))
        self.drop(of)

    def leave(self, given: ExprValue) -> None:
        """Return the value."""
        kind = self.inference.result
        given = self.own(given)
        value = self.as_type(given, kind) if kind != types.none else given.value
        self.give_up(self.held)
        for each in self.in_slots():
            self.release(each)
        call_conv = self.context.call_conv
        call_conv.return_value(self.builder,
                               self.context.get_return_value(self.builder, kind, value))

    def raised(self, exc: ast.expr) -> None:
        made, args = (exc.func, exc.args) if isinstance(exc, ast.Call) else (exc, None)
        of = self.inference.static(made)
        where = Loc(self.filename, self.line)
        call_conv, name = self.context.call_conv, self.function.name
        if args is None or all(isinstance(x, ast.Constant) for x in args):
            given = None if args is None else tuple(x.value for x in args)
            call_conv.return_user_exc(self.builder, of, given, loc=where, func_name=name)
            return
        given = [(x.value, None) if isinstance(x, ast.Constant) else self.expression(x)[:2]
                 for x in args]
        call_conv.return_dynamic_user_exc(self.builder, of, tuple(x for x, _ in given),
                                          tuple(k for _, k in given), loc=where, func_name=name)

    # ---------------------------------------------------------------------------------------- paths

    def chosen(self, stmt: ast.If, test: ast.expr, body: list[ast.stmt],
               others: list[ast.stmt]) -> bool:
        end, before = self.inference.ends[id(stmt)], self.known
        builder = self.builder
        condition = self.expression(test).value
        first = builder.append_basic_block()
        second = builder.append_basic_block() if others else None
        after = builder.append_basic_block() if end is not None or not others else None
        needs_fit = second is None and self.has_to_fit(end)
        if needs_fit:
            second = builder.append_basic_block()
        builder.cbranch(condition, first, after if second is None else second)
        latest = self.latest
        for block, statements in ((first, body), (second, others)):
            if block is None:
                continue
            builder.position_at_end(block)
            self.known, self.latest = dict(before), dict(latest)
            with self.inside(statements):
                if self.block(statements):
                    self.fit(end)
                    builder.branch(after)
        if end is None:
            return False
        builder.position_at_end(after)
        self.meet(before, end)
        return True

    def has_to_fit(self, wanted: Types | None) -> bool:
        return (wanted is not None
                and any(value is None and wanted.get(name, kind) != kind
                        for name, (kind, value, _) in self.known.items()))

    def counted(self, stmt: ast.For) -> bool:
        builder = self.builder
        if id(stmt) in self.bounds:
            given = self.bounds[id(stmt)]
        else:
            given = [self.as_type(self.expression(x), types.intp) for x in stmt.iter.args]
        word = given[0].type
        start, stop, step = {1: (word(0), *given, word(1)), 2: (*given, word(1)), 3: tuple(given)}[
            len(given)]
        if id(stmt) in self.nests and isinstance(step, ir.Constant) and step.constant == 1:
            stop = self.collapse(self.nests[id(stmt)], start, stop)
        by = step.constant if isinstance(step, ir.Constant) else None
        head, before = self.inference.heads[id(stmt)], self.known
        self.fit(head)
        self.meet(before, head)
        if by in (1, -1):
            left, more = None, builder.icmp_signed("<" if by == 1 else ">", start, stop)
        else:
            left = count_of(self.context, builder, start, stop, step)
            more = builder.icmp_signed(">", left, word(0))
        entry = builder.block
        body, latch, done, after = (builder.append_basic_block() for _ in range(4))
        builder.cbranch(more, body, done)
        builder.position_at_end(body)
        counter = builder.phi(word)
        counter.add_incoming(start, entry)
        if left is not None:
            trips = builder.phi(word)
            trips.add_incoming(left, entry)
        if (by is not None
            and (by > 0 and self.is_natural(start)
                 or by < 0 and isinstance(stop, ir.Constant) and stop.constant >= -1)):
            self.naturals[id(counter)] = counter
        self.trip(stmt, latch, after, counter)
        builder.position_at_end(latch)
        if left is None:
            following = builder.add(counter, step, flags=["nsw"])
            more = builder.icmp_signed("<" if by == 1 else ">", following, stop)
        else:
            following = builder.add(counter, step)
            rest = builder.sub(trips, word(1))
            trips.add_incoming(rest, latch)
            more = builder.icmp_signed(">", rest, word(0))
        counter.add_incoming(following, latch)
        again = builder.cbranch(more, body, done)
        if stmt in self.left:
            leave(again)
        return self.finish(stmt, before, head, done, after)

    def collapse(self, nest: Nest, start: ir.Value, stop: ir.Value) -> ir.Value:
        """Run a nest as one loop where its arrays are contiguous (collapse_nests.py); return the
        bound of the outermost loop.
        """
        builder, word = self.builder, start.type
        arrays = [(self.read(name), axis) for name, axis in nest.accesses]
        if not all(isinstance(array.kind, types.Array) for array, _ in arrays):
            return stop
        lengths = [self.natural(builder.sub(stop, start) if not self.is_zero(start) else stop),
                   *(self.natural(self.as_type(self.expression(loop.iter.args[0]), types.intp))
                     for loop in nest.loops[1:])]
        trips, whole, length = list(lengths), None, lengths[-1]
        for k in range(len(lengths) - 2, -1, -1):
            for array, axis in arrays:
                fits = self.is_in_a_row(array, axis + k, lengths[k + 1])
                whole = fits if whole is None else builder.and_(whole, fits)
            length = builder.select(whole, builder.mul(lengths[k], length), length)
            trips[k] = builder.select(whole, word(1), lengths[k])
        trips[-1] = length
        for loop, n in zip(nest.loops[1:], trips[1:]):
            self.note(ExprValue(n, types.intp), True)
            self.bounds[id(loop)] = [n]
        return builder.add(start, trips[0]) if not self.is_zero(start) else trips[0]

    def is_in_a_row(self, array: ExprValue, axis: int, length: ir.Value) -> ir.Value:
        """Whether a step along an axis equals `length` steps along the next one."""
        builder, context = self.builder, self.context
        if array.kind.layout == "C":
            shape = field(context, builder, array.kind, array.value, "shape")
            return builder.icmp_signed("==", item(builder, shape, axis + 1), length)
        strides = field(context, builder, array.kind, array.value, "strides")
        return builder.icmp_signed("==", item(builder, strides, axis),
                                   builder.mul(length, item(builder, strides, axis + 1)))

    def natural(self, n: ir.Value) -> ir.Value:
        return (n if self.is_natural(n)
                else self.builder.select(self.builder.icmp_signed(">", n, n.type(0)), n, n.type(0)))

    @staticmethod
    def is_zero(x: ir.Value) -> bool:
        return isinstance(x, ir.Constant) and x.constant == 0

    def extract(self, stmt: ast.For) -> bool:
        """Outline a loop into a function of its own (outline_loops.py) if everything that it reads
        can be passed; return whether it was.
        """
        head, end, after = (self.inference.heads[id(stmt)], self.inference.ends[id(stmt)],
                            self.bindings.over.get(self.place, ()))
        if end is None:
            return False
        before, builder, context = self.known, self.builder, self.context
        self.fit(head)
        reads, handed = (Reads.of(stmt, self.bindings.values),
                         LoopArguments(context, builder, self.sources, self.promises))
        results = {name: end[name]
                   for name in reads.names
                   if name in reads.bound and name in end and name not in after}
        starts = {name: head[name]
                  for name in reads.names
                  if name in reads.bound and name in head
                  and (name in results or name not in reads.own)}
        if not all(isinstance(kind, (*SCALARS, types.Array)) and head.get(name, kind) == kind
                   for name, kind in (*results.items(), *starts.items())):
            return False
        for name in reads.names:
            if name in self.known and (name in starts or name not in reads.bound | reads.own):
                if ((kind := self.known[name].kind) is MIXED
                    or not handed.takes(name, kind, self.read(name).value)):
                    return False
        if not handed.is_sure():
            return False
        word = callconv.RETCODE_OK.type
        held = ir.LiteralStructType([context.get_value_type(kind) for kind in results.values()])
        raised = raised_in(builder)
        function = ir.Function(builder.module,
                               ir.FunctionType(word,
                                               [held.as_pointer(), raised.type,
                                                *(x.type for x in handed.given.values())]),
                               builder.module.get_unique_name(
                                   f"{self.lower.fndesc.mangled_name}{LOOP}"))
        function.linkage = "internal"
        for attribute in ("nounwind", "noinline"):
            function.attributes.add(attribute)
        place = cgutils.alloca_once(builder, held)
        code = builder.call(function, [place, raised, *handed.given.values()])
        with builder.if_then(builder.icmp_signed("!=", code, word(0)), likely=False):
            builder.ret(code)
        self.outside(stmt, function, handed, reads.bound, results)
        for k, (name, kind) in enumerate(results.items()):
            self.put(name, kind, builder.load(cgutils.gep_inbounds(builder, place, 0, k)))
        self.known = before
        self.meet(before, end)
        self.done.add(stmt)
        return True

    def outside(self, stmt: ast.For, function: ir.Function, handed: LoopArguments,
                bound: Container[str], results: dict[str, types.Type]) -> None:
        """Emit a loop as a function that stores `results`."""
        outer = (self.builder, self.known, self.slots, self.held, self.trips, self.naturals,
                 self.extracted, self.failing, self.latest)
        place, raised, *args = function.args
        entry, body = function.append_basic_block("entry"), function.append_basic_block()
        self.builder = builder = ir.IRBuilder(body)
        self.known, self.slots, self.held, self.trips, self.extracted, self.latest = ({}, {}, [{}],
                                                                                      [], (), {})
        self.failing = Unwinding(builder,
                                 lambda: (each for held in self.held for each in held.items()),
                                 self.counters)
        naturals = self.naturals
        self.naturals = {id(arg): arg for key, arg in zip(handed.given, args) if key in naturals}
        for name, kind, value in handed.values(builder, args):
            if name in bound:
                if self.is_counted(kind):
                    self.count("NRT_incref", kind, value)
                self.put(name, kind, value)
            self.known[name] = Bound(kind, None if name in bound else value, True)
        self.counted(stmt)
        for k, (name, kind) in enumerate(results.items()):
            slot = self.slot(name, kind)
            builder.store(builder.load(slot), cgutils.gep_inbounds(builder, place, 0, k))
            if self.is_counted(kind):  # with its reference
                builder.store(ir.Constant(slot.type.pointee, None), slot)
        for each in self.in_slots():
            self.release(each)
        builder.ret(callconv.RETCODE_OK)
        self.failing.finish(lambda: [self.release(each) for each in self.in_slots()])
        builder.position_at_end(entry)
        builder.branch(body)
        (self.builder, self.known, self.slots, self.held, self.trips, self.naturals, self.extracted,
         self.failing, self.latest) = outer

    def repeated(self, stmt: ast.While) -> bool:
        builder = self.builder
        head, before = self.inference.heads[id(stmt)], self.known
        self.fit(head)
        self.meet(before, head)
        test, body, done, after = (builder.append_basic_block() for _ in range(4))
        builder.branch(test)
        builder.position_at_end(test)
        builder.cbranch(self.expression(stmt.test).value, body, done)
        builder.position_at_end(body)
        self.trip(stmt, test, after)
        return self.finish(stmt, before, head, done, after)

    def trip(self, stmt: ast.For | ast.While, following: ir.Block, after: ir.Block,
             counter: ir.Value | None = None) -> None:
        """Emit one iteration of a loop."""
        head = self.inference.heads[id(stmt)]
        self.trips.append(LoopTargets(following, after, head, self.inference.ends[id(stmt)],
                                      len(self.held)))
        with self.inside(stmt.body):
            if counter is not None:
                self.bind(stmt.target, stmt.target.id, ExprValue(counter, types.intp))
            if self.block(stmt.body):
                self.fit(head)
                self.builder.branch(following)
        self.trips.pop()

    def finish(self, stmt: ast.For | ast.While, before: dict[str, Bound], head: Types,
               done: ir.Block, after: ir.Block) -> bool:
        """Emit the exit of a loop, from its head on."""
        end, builder = self.inference.ends[id(stmt)], self.builder
        builder.position_at_end(done)
        if end is None:
            builder.unreachable()
            builder.position_at_end(after)
            builder.unreachable()
            return False
        self.meet(before, head)
        self.fit(end)
        builder.branch(after)
        builder.position_at_end(after)
        self.meet(before, end)
        return True
