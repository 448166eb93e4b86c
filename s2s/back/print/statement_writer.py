"""Write blocks as Python statements: assignments, in-place writes, `if`, `for`, `while`, `return`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from ...errors import Line
from ...ir.graph import MISSING, Block, Op, Value
from ...ir.types import Array, List, Scalar, Tape, Type
from ...ops.arrays.index_pattern import index_operands, index_syntax
from ...ops.core.control import tape_len, tape_source
from ...ops.core.record import Record
from ...ops.program.list_cotangents import list_zeros
from ..parallel.outline_parallel import mark as mark_loop
from ..syntax.ast_builders import (
    LONG_REST,
    Body,
    assignment,
    choose,
    do,
    end_of,
    leaves,
    method_call,
    negated,
    placed,
    range_call,
    unnested,
)
from ..syntax.ast_names import nodes_in
from .errstate import mark
from .inlining import Layout
from .insert_copies import AUGMENTED
from .list_statements import list_statement
from .out_of_ssa import Names
from .placeholders import must_be_bound, placeholder
from .prepare import in_place_results
from .raises import raise_statement, restore_asserts

_FRESH = re.compile(r"\b(?:d|any|s)\d+\b")


def _operator(record: Record) -> ast.operator:
    """The operator of an op that is one of Python's."""
    return ast.parse(record.python, mode="eval").body.op


class Writer:
    """The writer of one function's statements."""

    def __init__(self, layout: Layout, names: Names, native: bool = False):
        self.layout, self.names, self.native = layout, names, native
        self.annotate = layout.one_per_line
        self.lengths: dict[str, str] = {}  # unnamed lengths, as the dump form calls them
        self.skipped: set[Op] = set()  # printed by the statement around them
        self.must_be_bound = must_be_bound(layout.function, layout.leaves, names.find)
        self.reads = {x: len(uses) for x, uses in layout.uses.items()}

    # ------------------------------------------------------------------------------- expressions

    def expression(self, value: Value) -> ast.expr:
        return self.layout.expression(value, self.name)

    def name(self, value: Value) -> str:
        return self.names[value]

    def target(self, value: Value) -> ast.expr:
        return ast.Name(self.names[value] if self.reads.get(value) else "_", ast.Store())

    # -------------------------------------------------------------------------------- statements

    def function_body(self, block: Block, tupled: bool) -> Body:
        """All statements of a function, `return` included."""
        return self.returning(block, block.yields, tupled) or [ast.Pass()]

    def returning(self, block: Block, results: Sequence[Value], tupled: bool) -> Body:
        """The statements of `block` and the `return`, in each branch of a final `if`."""
        printed = [op for op in block.ops if op not in self.layout.inlined]
        last = printed[-1] if printed else None
        if (
            last is not None
            and last.name == "if"
            and not self.annotate
            and self.is_returned(last, results)
        ):
            bodies = [
                self.returning(inner, [end_of(x, last, inner) for x in results], tupled)
                for inner in last.blocks
            ]
            test, (first, second) = self.expression(last.inputs[0]), bodies
            if not second:
                return self.statements(block, printed[:-1]) + [
                    placed(ast.If(test, first, []), last.line)
                ]
            if len(second) == 1 and len(first) > LONG_REST:
                test, first, second = negated(test), second, first
            return self.statements(block, printed[:-1]) + [
                placed(ast.If(test, first, []), last.line),
                *second,
            ]
        body = self.statements(block)
        if not results:
            return body
        if (not tupled and results[0].constant is None) or leaves(body):
            return body
        value = (
            ast.Tuple([self.expression(x) for x in results], ast.Load())
            if tupled
            else self.expression(results[0])
        )
        lines = [x.op.line for x in results if x.op is not None] + [
            last.line if last is not None else None
        ]
        return [
            *body,
            placed(ast.Return(value), next((line for line in lines if line is not None), None)),
        ]

    def is_returned(self, op: Op, results: Sequence[Value]) -> bool:
        """Whether outputs of an `if` are only returned at once, and not named by the user."""
        made = [x for x in results if x in op.outputs]
        return (
            bool(made)
            and all(
                y in made and self.reads.get(y) == made.count(y) and not y.name
                for y in op.outputs
                if self.reads.get(y)
            )
            and all(
                x in op.outputs or not self.layout.is_inlined(x) or x.constant is not MISSING
                for x in results
            )
        )

    def statements(self, block: Block, ops: Sequence[Op] | None = None) -> Body:
        """The statements for the ops of `block`, except computations for its yields."""
        body: Body = []
        for op in block.ops if ops is None else ops:
            if op not in self.layout.inlined and op not in self.skipped:
                body += [placed(mark(statement, op, self.layout.hushed if not op.blocks else None),
                                op.line) for statement in self.statement(op)]
                if op.name == "raise":
                    break
        return body

    def statement(self, op: Op) -> Body:
        """The statements for one op."""
        match op.name:
            case "if":
                return self.branch(op)
            case "for" | "while":
                return loop(self, op)
            case "raise":
                return [raise_statement(op, [self.expression(x) for x in op.inputs], self.native)]
            case "tape_push":
                return self.alias(op) + [
                    do(method_call(self.names[op.output], "append", self.expression(op.inputs[1])))
                ]
            case "tape_pop":
                popped = method_call(self.names[op.outputs[0]], "pop")
                if op.attrs.get("unpacked") == 1:
                    popped = ast.Subscript(popped, ast.Constant(0), ast.Load())
                is_read = any(self.reads.get(x) for x in op.outputs[1:])
                return self.alias(op) + [self.assign_all(op.outputs[1:], popped) if is_read
                                         else do(popped)]
        if any(map(_is_copied_tape, op.outputs)) and is_read_as_it_is(self, op):
            return []
        if op.record.writes_elements:
            return self.write(op)
        if op.record.writes is not None and isinstance(op.inputs[0].type, List):
            return self.alias(op) + [list_statement(self, op)]
        if op.record.writes is not None and op.record.helper is not None:
            return (self.alias(op)
                    + [do(op.record.syntax(ast.Name(self.names[op.output], ast.Load())))])
        if op.record.writes is not None:
            return self.alias(op) + [
                ast.AugAssign(
                    self.target(op.output),
                    _operator(op.record),
                    self.expression(op.inputs[1]),
                )
            ]
        value = self.layout.operation(op, self.name)
        if isinstance(value, ast.stmt):
            return [value]
        if in_place_results(op):
            return self.call_in_place(op, value)
        if len(op.outputs) > 1 or op.attrs.get("unpacked"):
            return [self.assign_all(op.outputs, value)]
        if not op.outputs or not self.reads.get(op.output):
            return [do(value)]
        return [self.assign(op.output, value)]

    def call_in_place(self, op: Op, value: ast.expr) -> Body:
        """A call that changes its arguments: `y = f_fwd(x, tape)`."""
        changed = in_place_results(op)
        moved = self.moves([op.outputs[k] for k in changed],
                           [op.inputs[k] for k in changed.values()])
        outputs = [y for k, y in enumerate(op.outputs) if k not in changed]
        if not any(self.reads.get(y) for y in outputs):
            return [*moved, do(value)]
        return [*moved, self.assign_all(outputs, value)]

    def assign_all(self, outputs: Sequence[Value], value: ast.expr) -> ast.stmt:
        targets = [self.target(y) for y in outputs]
        return ast.Assign(
            [targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())], value
        )

    def assign(self, output: Value, value: ast.expr) -> ast.stmt:
        """`x = value`, or `x += y` for numbers; with its type in the dump form."""
        if self.annotate:
            return ast.AnnAssign(
                ast.Name(self.names[output], ast.Store()),
                ast.Constant(self.spelled(output.type)),
                value,
                1,
            )
        return assignment(self.names[output], value, self.operators(output, output.op.line))

    def spelled(self, type: Type) -> str:
        """`type` as an annotation, with unnamed lengths numbered in order of appearance."""
        return _FRESH.sub(
            lambda match: self.lengths.setdefault(match[0], f"d{len(self.lengths) + 1}"), str(type)
        )

    def operators(self, target: Value, line: Line | None) -> str:
        """The augmented operators for `target`: the user's own; else `+=` and `-=`."""
        if self.annotate or not isinstance(target.type, Scalar):
            return ""
        if line is None or line.backwards or line.text.startswith(("for ", "while ")):
            return "+-"
        return "".join(sign for sign in "+-*/" if f"{sign}= " in line.text)

    def alias(self, op: Op) -> Body:
        """`b = a`, where the version after a write has another name."""
        return self.moves([op.outputs[0]], [op.inputs[op.record.writes]])

    def write(self, op: Op) -> Body:
        """`a[i] = v`, `a[i] += v`."""
        value, operands = op.inputs[1], op.inputs[2:]
        body = self.alias(op)
        place = ast.Name(self.names[op.output], ast.Load())
        index = index_syntax(op.attrs["pattern"], [self.expression(x) for x in operands])
        target = ast.Subscript(place, index, ast.Store())
        if op.name == "setitem":
            update = None if self.annotate else self.update_of(op)
            if update is None:
                return body + [ast.Assign([target], self.expression(value))]
            combined, other = update
            return body + [ast.AugAssign(target, _operator(combined), self.expression(other))]
        pattern = op.attrs["pattern"]
        if (
            self.annotate
            and set(pattern) == {"i"}
            or any(
                p == "i"
                and not isinstance(x.type, Scalar)
                and getattr(x.type, "dtype", None) != "bool"
                for p, x in index_operands(pattern, operands)
            )
        ):
            function = ast.Attribute(
                ast.Attribute(ast.Name("np", ast.Load()), "add", ast.Load()), "at", ast.Load()
            )
            return body + [
                do(ast.Call(function, [place, _as_argument(index), self.expression(value)], []))
            ]
        added = self.expression(value)
        match added:
            case ast.UnaryOp(ast.USub(), positive):
                return body + [ast.AugAssign(target, ast.Sub(), positive)]
            case ast.BinOp(
                ast.UnaryOp(ast.USub(), positive), (ast.Mult() | ast.Div()) as kind, right
            ):
                return body + [ast.AugAssign(target, ast.Sub(), ast.BinOp(positive, kind, right))]
        return body + [ast.AugAssign(target, ast.Add(), added)]

    def update_of(self, op: Op) -> tuple[Record, Value] | None:
        """(operation, v) if `op` stores `a[i] op v` in a[i]."""
        array, value, operands = op.inputs[0], op.inputs[1], op.inputs[2:]
        if not self.layout.is_inlined(value) or value.op.record.python not in AUGMENTED:
            return None
        old, other = value.op.inputs
        if (
            not self.layout.is_inlined(old)
            or old.op.name != "getitem"
            or old.op.inputs[0] is not array
        ):
            return None
        if (
            op.line is not None
            and not op.line.backwards
            and f"{value.op.record.python.strip('ab ')}= " not in op.line.text
        ):
            return None
        same = (
            len(old.op.inputs) == len(op.inputs) - 1
            and old.op.attrs["pattern"] == op.attrs["pattern"]
            and all(
                x is y
                or (
                    x.constant is not MISSING
                    and x.constant is not None
                    and x.constant == y.constant
                )
                for x, y in zip(old.op.inputs[1:], operands)
            )
        )
        exact = isinstance(old.type, Scalar) or (
            isinstance(array.type, Array)
            and getattr(value.type, "dtype", None) == array.type.dtype
            and isinstance(value.type, Array)
            and value.type == old.type
        )
        if (
            not same
            or not exact
            or array in self.layout.leaves(other)
            and not isinstance(old.type, Scalar)
        ):
            return None
        return value.op.record, other

    def moves(
        self,
        targets: Sequence[Value],
        values: Sequence[Value],
        line: Line | None = None,
        bound: bool = False,
    ) -> Body:
        """A parallel assignment of the values to the targets, some already `bound`."""
        pending = []
        for target, value in zip(targets, values, strict=True):
            if value.op is not None and value.op.name == "undefined":
                if not bound and self.names.find(target) in self.must_be_bound:
                    pending.append((self.names[target], placeholder(target.type, self.native),
                                    set(), ""))
                continue
            name, expression = self.names[target], self.expression(value)
            if isinstance(expression, ast.Name) and expression.id == name:
                continue
            reads = {self.names[x] for x in self.layout.leaves(value) if x in self.names.order}
            place = (
                value.op.line if value.op is not None and self.layout.is_inlined(value) else None
            )
            pending.append((name, expression, reads, self.operators(target, place)))
        body: Body = []
        while pending:
            for move in pending:
                if not any(move[0] in other[2] for other in pending if other is not move):
                    break
            else:
                targets_ = ast.Tuple(
                    [ast.Name(name, ast.Store()) for name, *_ in pending], ast.Store()
                )
                body.append(
                    ast.Assign([targets_], ast.Tuple([e for _, e, *_ in pending], ast.Load()))
                )
                break
            pending.remove(move)
            body.append(assignment(move[0], move[1], move[3]))
        return [placed(statement, line) for statement in body]

    # ------------------------------------------------------------------------------------- branches

    def branch(self, op: Op) -> Body:
        """`if`, `elif`, `else`."""
        bodies = [self.statements(block) for block in op.blocks]
        bodies = [
            body if leaves(body) else body + self.moves(op.outputs, block.yields)
            for body, block in zip(bodies, op.blocks)
        ]
        test = self.expression(op.inputs[0])
        if (all(bodies) and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
                and not _is_negated(op)):
            test, bodies = test.operand, bodies[::-1]
        body = choose(test, *bodies)
        return body if self.native else restore_asserts(body)


def _is_negated(op: Op) -> bool:
    """Whether the user wrote this branch with a `not`."""
    return (op.line is not None and not op.line.backwards
            and op.line.text.startswith(("if not ", "elif not ")))


def _as_argument(index: ast.expr) -> ast.expr:
    """The index between the brackets of `a[...]`, as an expression of its own."""
    match index:
        case ast.Slice(lower, upper, step):
            bounds = [b if b is not None else ast.Constant(None) for b in (lower, upper, step)]
            bounds = (
                bounds if step is not None else bounds[:2] if lower is not None else bounds[1:2]
            )
            return ast.Call(ast.Name("slice", ast.Load()), bounds, [])
        case ast.Tuple(entries):
            return ast.Tuple([_as_argument(entry) for entry in entries], ast.Load())
    return index


# -------------------------------------------------------------------------------------------- loops

# values of outputs on a path, whether the path may leave the loop, and whether it does -> the
# assignments at its end
Finish = Callable[..., Body]


def loop(writer: Writer, op: Op) -> Body:
    """`for` and `while`."""
    is_for = op.name == "for"
    inits = op.inputs[3:] if is_for else op.inputs
    body = op.blocks[-1]
    params = body.params[1:] if is_for else body.params
    yields = body.yields
    stop = None
    if op.attrs["breaks"]:
        stop, yields = yields[0], yields[1:]
    popped = _popped(writer, op) if is_for and not writer.native and not writer.annotate else None
    if popped is not None:
        pop, k = popped
        writer.skipped.add(pop)
        targets = [writer.target(y) for y in pop.outputs[1:]]
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        trips = _items(writer, inits[k])
        params, inits, yields = ([*xs[:k], *xs[k + 1 :]] for xs in (params, inits, yields))
    elif is_for:
        target = ast.Name(writer.names[body.params[0]], ast.Store())
        trips = range_call(*map(writer.expression, op.inputs[:3]))
    before = writer.moves(params, inits, op.line)
    unread = {p for p, y in zip(params, op.outputs) if stop is not None and not writer.annotate
              and not writer.reads.get(y)}
    if is_for:
        inner = _loop_body(writer, body, params, yields, stop, inits, unread)
        tree = ast.For(target, trips, inner or [ast.Pass()], [])
        return before + [mark_loop(tree, op, [writer.names[p] for p in params]) if writer.native
                         else tree]
    head, test = op.blocks[0], op.blocks[0].yields[0]
    inner = _loop_body(writer, body, params, yields, stop, inits, unread)
    preparation = writer.statements(head)
    if preparation:
        leave = ast.If(negated(writer.expression(test)), [ast.Break()], [])
        return before + [ast.While(ast.Constant(True), [*preparation, leave, *inner], [])]
    return before + [ast.While(writer.expression(test), inner or [ast.Pass()], [])]


def _popped(writer: Writer, op: Op) -> tuple[Op, int] | None:
    """The pop by which a loop takes one item a trip from the end of a tape, and the tape's carry.

    Such a loop prints as `for x in reversed(x_tape)`.
    """
    body, (lo, hi, step) = op.blocks[0], op.inputs[:3]
    first = next((inner for inner in body.ops if inner not in writer.layout.inlined), None)
    if (
        first is None
        or first.name != "tape_pop"
        or first.inputs[0] not in body.params
        or op.attrs["breaks"]
    ):
        return None
    k = body.params.index(first.inputs[0]) - 1
    if writer.reads.get(body.params[0]) or writer.reads.get(op.outputs[k]) or k < 0:
        return None
    if body.yields[k] is not first.outputs[0] or writer.reads[first.outputs[0]] != 1:
        return None
    tape = tape_source(op.inputs[3 + k])
    forwards = lo.constant == 0 and step.constant == 1 and _is_length(hi, tape, 0)
    backwards = hi.constant == -1 and step.constant == -1 and _is_length(lo, tape, -1)
    return (first, k) if forwards or backwards else None


def _is_copied_tape(x: Value) -> bool:
    """Whether `x` is a copy of a tape, in any order."""
    return isinstance(x.type, Tape) and tape_source(x) is not x


def is_read_as_it_is(writer: Writer, op: Op) -> bool:
    """Whether a copied or reversed tape is only iterated over by such a loop, so needs no copy."""
    users = writer.layout.uses.get(op.output, [])
    if len(users) != 1 or writer.native or writer.annotate:
        return False
    ((loop, k),) = users
    if not isinstance(loop, Op) or loop.name != "for":
        return False
    popped = _popped(writer, loop)
    return (popped is not None and popped[1] == k - 3
            and all(isinstance(user, Op) and (user.record in (tape_len, list_zeros)
                                              or any(map(_is_copied_tape, user.outputs)))
                    for user, _ in writer.layout.uses[op.inputs[0]]))


def _items(writer: Writer, tape: Value) -> ast.expr:
    """The iterable of a loop that takes its items from the end of `tape`."""
    whole = tape.op if tape_source(tape) is not tape and is_read_as_it_is(writer, tape.op) else None
    source = writer.expression(tape if whole is None else whole.inputs[0])
    if whole is not None and whole.name == "tape_reversed":
        return source
    return ast.Call(ast.Name("reversed", ast.Load()), [source], [])


def _loop_body(
    writer: Writer,
    body: Block,
    params: Sequence[Value],
    yields: Sequence[Value],
    stop: Value | None,
    inits: Sequence[Value],
    unread: set[Value],
) -> Body:
    """A loop's statements and the updates of its carries; `unread` are dead after it."""
    if stop is None or stop.constant is False:
        return unnested(writer.statements(body) + writer.moves(params, yields, bound=True))
    flags = [
        k
        for k, init in enumerate(inits)
        if isinstance(init.constant, (bool, int, float))
        and all(
            y is params[k] or repr(y.constant) == repr(init.constant)
            for y in _continuing(body, stop, yields[k])
        )
    ]

    def finish(ends: dict[Value, Value], stops: bool, leaves: bool = False) -> Body:
        carried = [k for k in range(len(params)) if stops or k not in flags]
        carried = [k for k in carried if not (leaves and params[k] in unread)]
        ends = [ends.get(yields[k], yields[k]) for k in carried]
        return writer.moves([params[k] for k in carried], ends, bound=True)

    return _breaking(writer, body, stop, finish)


def _breaking(writer: Writer, block: Block, stop: Value, finish: Finish, once: bool = True) -> Body:
    """The statements of `block`, those of its end, and `break` if `stop` holds.

    `once` says that the enclosing blocks use `stop` only to break.
    """
    once = once and block.yields.count(stop) == 1
    if stop.constant is not MISSING:
        return (
            writer.statements(block)
            + finish({}, bool(stop.constant), bool(stop.constant))
            + ([ast.Break()] if stop.constant else [])
        )
    printed = [
        op for op in block.ops if op not in writer.layout.inlined and op not in writer.skipped
    ]
    if once and _is_question(stop.op) and printed and stop.op is printed[-1]:
        test = stop.op.inputs[0]  # as if `stop` were the condition itself
        return writer.statements(block, printed[:-1]) + _tested(writer, writer.expression(test),
                                                                writer.layout.leaves(test), finish)
    if stop.op is not None and printed and stop.op is printed[-1] and stop.op.name == "if":
        return writer.statements(block, printed[:-1]) + _breaking_branches(
            writer, stop.op, block, stop, finish, once
        )
    return writer.statements(block) + _tested(
        writer, writer.expression(stop), writer.layout.leaves(stop), finish
    )


def _is_question(op: Op | None) -> bool:
    """Whether `op` is an `if` whose only result is whether its condition holds."""
    return (op is not None and op.name == "if" and len(op.outputs) == 1
            and all(x.name == "constant" for inner in op.blocks for x in inner.ops)
            and [inner.yields[0].constant for inner in op.blocks] == [True, False])


def _breaking_branches(writer: Writer, op: Op, block: Block, stop: Value, finish: Finish,
                       once: bool) -> Body:
    """The `if` at the end of `block` that decides whether to leave the loop."""
    k = op.outputs.index(stop)
    carried = [all(user is block for user, _ in writer.layout.uses.get(y, [])) for y in op.outputs]
    bodies = []
    for inner in op.blocks:

        def finish_branch(ends: dict[Value, Value], stops: bool, leaves: bool = False,
                          inner=inner) -> Body:
            last = {y: ends.get(x, x) for y, x in zip(op.outputs, inner.yields)}
            kept = [y for y, direct in zip(op.outputs, carried) if not direct]
            direct = {y: last[y] for y in op.outputs if y not in kept}
            return writer.moves(kept, [last[y] for y in kept]) + finish(direct, stops, leaves)

        bodies.append(_breaking(writer, inner, inner.yields[k], finish_branch, once))
    test = writer.expression(op.inputs[0])
    first, second = bodies
    if leaves(first):
        return [placed(ast.If(test, first, []), op.line), *second]
    if leaves(second):
        return [placed(ast.If(negated(test), second, []), op.line), *first]
    return [placed(statement, op.line) for statement in choose(test, first, second)]


def _tested(writer: Writer, test: ast.expr, read, finish) -> Body:
    """`finish`, then `if test: break`, where finishing may overwrite operands of the test."""
    after = finish({}, True)
    overwritten = {
        node.id
        for statement in after
        for node in nodes_in(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if any(writer.names[x] in overwritten for x in read if x in writer.names.order):
        if not after:
            return [ast.If(test, [ast.Break()], [])]
        return [ast.If(test, [*after, ast.Break()], []), *finish({}, True)]
    return [*after, ast.If(test, [ast.Break()], [])]


def _continuing(block: Block, stop: Value, y: Value) -> list[Value]:
    """Possible values of `y`, read at the end of `block`, where `stop` does not hold."""
    if stop.constant is not MISSING:
        return [] if stop.constant else [y]
    op = stop.op
    if op is None or op.name != "if" or op not in block.ops:
        return [y]
    k = op.outputs.index(stop)
    return [
        end
        for inner in op.blocks
        for end in _continuing(inner, inner.yields[k], end_of(y, op, inner))
    ]


def _is_length(value: Value, tape: Value, offset: int) -> bool:
    """Whether `value` is the number of items on `tape`, plus `offset`."""
    if (
        offset
        and value.op is not None
        and value.op.name == "subtract"
        and value.op.inputs[1].constant == -offset
    ):
        return _is_length(value.op.inputs[0], tape, 0)
    return (
        not offset
        and value.op is not None
        and value.op.name == "tape_len"
        and value.op.inputs[0] is tape
    )
