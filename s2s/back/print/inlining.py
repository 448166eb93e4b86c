"""Decide which values are printed inside the expression that uses them, not as statements.

A value with one use is printed there if its evaluation at the use gives the same: no array that it
reads is overwritten in between, no name that it reads is reassigned, and no loop evaluates it
again. A value that the user named stays a statement; constants, and `i + 1`, may be repeated.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ...analysis.alias import Memory
from ...errors import VerifyError
from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ir.types import Array, List, Scalar, Tape, Tuple, Unknown, is_inexact
from ...ops.core.control import member_syntax
from ...ops.core.shape import is_said_by_lengths, numpy_call
from ...ops.program.effects import is_pure
from ...ops.program.list_ops import copy_syntax
from ...ops.program.opaque_call import functions_in, printed_op
from ...ops.program.recursive_callee import Recursive
from ..syntax.ast_names import nodes_in
from ..syntax.unparse import expression_text
from .errstate import SilencedOps, mark
from .placeholders import placeholder
from .prepare import in_place_results

LONGEST = 60  # columns of an inlined expression
LONGEST_OF_USER = 84  # the same where the user wrote it on one line
MOST_SHAPES = 2  # copies of `len(u)` before it gets a name
MOST_READS = 3  # uses of `u[i]` that may each read it
NEVER_STATEMENTS = ("constant", "undefined")


def tapes_changed(op: Op) -> list[int]:
    """The tapes among the inputs of a recursive call, which changes them in place."""
    if op.name != "call" or not isinstance(op.attrs["callee"], Recursive):
        return []
    return [k for k, x in enumerate(op.inputs) if isinstance(x.type, Tape)]


class Layout:
    """The position of every op in the text, and the ops that are printed inside others."""

    def __init__(
        self,
        function: Function,
        one_per_line: bool = False,
        spelled: Mapping[Function, str] = MappingProxyType({}),
        native: bool = False,
    ):
        self.function, self.one_per_line, self.spelled = function, one_per_line, spelled
        self.native = native
        self.hushed = None if one_per_line or native else SilencedOps(function)
        self.position: dict[Op, int] = {}
        self.end: dict[Block, int] = {}
        self.loops: dict[object, tuple] = {}  # op or block -> the loops around it
        self.uses: dict[Value, list[tuple[object, int]]] = {}
        self.ops: list[Op] = []
        self.inlined: set[Op] = set()
        self.inlined_owner: dict[
            object, Op
        ] = {}  # block of an `if` printed as an expression -> that op
        self.target: dict[Op, int] = {}  # where an inlined op is evaluated
        self.definitions: dict[
            str, list[tuple[int, Value]]
        ] = {}  # the user's name -> positions of its assignments
        self._number(function.block, (), 0)
        self.memory = Memory(function)
        self.writes = [
            (self.position[op], self.memory.overwritten(op, k))
            for op in self.ops
            for k in (*self.memory.written(op), *tapes_changed(op))
        ]
        self.impure = [self.position[op] for op in self.ops if not op.record.pure]
        for op in reversed(self.ops):
            if self._may_be_inlined(op):
                self.inline(op)
        self._break_long_ones()
        if self.hushed is not None and self.hushed.quiet:
            self._set_loud_ones_apart()

    def _number(self, block: Block, loops: tuple, clock: int) -> int:
        self.loops[block] = loops
        for param in block.params:
            self._names(param, clock)
        for op in block.ops:
            clock += 1
            self.position[op], self.loops[op] = clock, loops
            self.ops.append(op)
            for k, x in enumerate(op.inputs):
                self.uses.setdefault(x, []).append((op, k))
            for inner in op.blocks:
                clock = self._number(inner, loops + (op,) if op.name != "if" else loops, clock + 1)
            clock += 1
            for y in op.outputs:
                self._names(y, clock)
        clock += 1
        self.end[block] = clock
        for k, y in enumerate(block.yields):
            self.uses.setdefault(y, []).append((block, k))
        return clock

    def _names(self, value: Value, clock: int) -> None:
        if value.name:
            self.definitions.setdefault(value.name, []).append((clock, value))

    # ------------------------------------------------------------------------------------ decisions

    def inline(self, op: Op) -> None:
        """Print `op` inside the expressions that use it."""
        self.inlined.add(op)
        place = self.target[op] = max(self._targets(op), default=self.position[op])
        for block in op.blocks:
            self.inlined_owner[block] = op
            for inner in walk(block):  # which moves with it, and what is inlined there
                self.target[inner] = place

    def _targets(self, op: Op) -> list[int]:
        return [self.place(user) for user, _ in self.uses.get(op.output, [])]

    def place(self, user: Op | Block) -> int:
        """The position at which a user of a value evaluates it."""
        user = self.inlined_owner.get(user, user)
        if isinstance(user, Block):
            return self.end[user]
        return self.target[user] if user in self.inlined else self.position[user]

    def is_inlined(self, value: Value) -> bool:
        """Whether `value` has no statement of its own."""
        return value.op is not None and value.op in self.inlined

    def leaves(self, value: Value) -> dict[Value, None]:
        """The named values that the expression for `value` reads."""
        if not self.is_inlined(value):
            return {value: None}
        found: dict[Value, None] = {}
        for x in _operands(value.op):
            found.update(self.leaves(x))
        return found

    def _may_be_inlined(self, op: Op) -> bool:
        if op.name in NEVER_STATEMENTS:
            return True
        if self.one_per_line or len(op.outputs) != 1 or op.record.writes is not None:
            return False
        if not is_pure(op) or not self.uses.get(op.output):
            return False
        if any(isinstance(user, Op) and k in in_place_results(user).values()
               for user, k in self.uses[op.output]):
            return False
        if op.name == "if":
            if _choice(op) is None or any(
                inner not in self.inlined for block in op.blocks for inner in block.ops
            ):
                return False
        elif op.record.syntax is None and op.name != "call":
            return False
        if _is_offset(op):
            return not op.output.name and self.can_move(op)
        if op.output.name and not self._is_only_added(op):
            return False
        if len(self.uses[op.output]) == 1:
            return (
                self.is_evaluated_once(op) and self.can_move(op) and not self.is_forward_result(op)
            )
        if op.record.asks_extents:
            return self._occurrences(op) <= MOST_SHAPES and self.can_move(op)
        return self._is_element_read(op) and self.can_move(op)

    def _is_only_added(self, op: Op) -> bool:
        """Whether this is a cotangent `v_bar` whose only use is `x_bar[i] += v_bar`."""
        (user, k), *more = self.uses[op.output]
        return (
            not more
            and op.line is not None
            and op.line.backwards
            and isinstance(user, Op)
            and user.record.accumulates
            and k == 1
        )

    def _occurrences(self, op: Op) -> int:
        """The number of copies of `op` in expressions that are evaluated once."""
        count = 0
        for user, _ in self.uses.get(op.output, []):
            user = self.inlined_owner.get(user, user)
            if self.loops[user] != self.loops[op]:
                return MOST_SHAPES + 1
            count += self._occurrences(user) if user in self.inlined else 1
        return count

    def is_forward_result(self, op: Op) -> bool:
        """Whether this is a result of the user's function, in code that also has a reverse sweep.

        It keeps its place above the reverse sweep.
        """
        if op.line is None or op.line.backwards or self.loops[op] or len(op.outputs) != 1:
            return False
        users = [user for user, _ in self.uses.get(op.output, [])]
        while len(users) == 1 and users[0] in self.inlined and users[0].name == "tuple":
            users = [user for user, _ in self.uses.get(users[0].output, [])]
        return users == [self.function.block] and any(
            inner.line is not None and inner.line.backwards for inner in self.function.block.ops
        )

    def _is_element_read(self, op: Op) -> bool:
        """Whether this is `u[i]`, read so few times that a person would repeat it."""
        if (
            op.name != "getitem"
            or not isinstance(op.output.type, Scalar)
            or len(self.uses[op.output]) > MOST_READS
        ):
            return False
        simple = all(
            x.name or x.constant is not MISSING or _is_offset(x.op)
            for x in op.inputs[1:]
            if x.op or x.name
        )
        users = [self.inlined_owner.get(user, user) for user, _ in self.uses[op.output]]
        return (
            bool(op.inputs[0].name)
            and simple
            and all(
                self.loops[user] == self.loops[op]
                and (user not in self.inlined or self.is_evaluated_once(user))
                for user in users
            )
        )

    def is_evaluated_once(self, op: Op) -> bool:
        """Whether the only user of `op` evaluates it once, in the loops around `op`."""
        while True:
            uses = self.uses.get(op.output, [])
            if len(uses) != 1:
                return False
            user = uses[0][0]
            user = self.inlined_owner.get(user, user)
            if self.loops[user] != self.loops[op]:
                return False
            if user not in self.inlined:
                return True
            op = user

    def can_move(self, op: Op, stop: int | None = None) -> bool:
        """Whether `op` has the same value when evaluated at its users, or at `stop` if given."""
        start, stop = self.position[op], self._last_evaluation(op) if stop is None else stop
        for inner in (op, *(inner for block in op.blocks for inner in walk(block))):
            for k, x in enumerate(inner.inputs):
                if x.name and any(
                    start < p < stop and y not in op.outputs and not self.is_inlined(y)
                    for p, y in self.definitions.get(x.name, ())
                ):
                    return False
                if k not in inner.record.shapes and self._is_overwritten(x, start, stop):
                    return False
        sharing = op.name in ("call", "if") or op.record.views
        return not (sharing and self._is_overwritten(op.output, start, stop))

    def _last_evaluation(self, op: Op) -> int:
        """The last evaluation of `op`: at the loop's end, for a loop that it is moved into."""
        stop = self.position[op]
        for user, _ in self.uses.get(op.output, []):
            user = self.inlined_owner.get(user, user)
            stop = max(stop, self.place(user))
            extra = self.loops[user][len(self.loops[op]) :]
            if extra:
                stop = max(stop, self.end[extra[0].blocks[-1]])
        return stop

    def _is_overwritten(self, value: Value, start: int, stop: int) -> bool:
        roots = self.memory.of(value)
        first = bisect_right(self.writes, start, key=lambda write: write[0])
        last = bisect_left(self.writes, stop, key=lambda write: write[0])
        return bool(roots) and any(roots & written for _, written in self.writes[first:last])

    def _break_long_ones(self) -> None:
        """Give statements of their own to operands that make an expression too long."""

        def visit(block: Block) -> None:
            for op in block.ops:
                if (
                    op not in self.inlined or not op.blocks
                ):  # an operand of `a and b` has no position of its own
                    for inner in op.blocks:
                        visit(inner)
                returned = op.name == "tuple" and self._is_returned(op)  # a line that may be broken
                if (op in self.inlined and op.name not in NEVER_STATEMENTS and not _is_offset(op)
                        and not returned):
                    text = expression_text(self.expression(op.output, lambda x: x.name or "t"))
                    if len(text) > (LONGEST_OF_USER if self._is_on_one_line(op) else LONGEST):
                        self.inlined.discard(op)
                        for inner in op.blocks:
                            self.inlined_owner.pop(inner)

        visit(self.function.block)

    def _set_loud_ones_apart(self) -> None:
        """Give ops that may warn in silenced expressions their own statements: errstate.py."""
        def inside(values: Sequence[Value]) -> list[Op]:
            found = [x.op for x in values if x.op is not None and x.op in self.inlined]
            for op in found:
                found += [x.op for x in _operands(op)
                          if x.op is not None and x.op in self.inlined]
            return found

        roots = [(op, inside(op.inputs)) for op in self.ops if op not in self.inlined
                 and not op.blocks]
        for root, tree in (*roots, (None, inside(self.function.results))):
            if root in self.hushed.quiet or any(op in self.hushed.quiet for op in tree):
                self.inlined.difference_update(op for op in tree if op in self.hushed.loud
                                               and not op.blocks)

    def _is_returned(self, op: Op) -> bool:
        """Whether the only use of `op`'s result is that the function returns it."""
        return all(user is self.function.block for user, _ in self.uses.get(op.output, []))

    def _is_on_one_line(self, op: Op) -> bool:
        """Whether the user wrote `op` and its user on one line."""
        return (
            op.line is not None
            and not op.line.backwards
            and all(
                isinstance(user, Block) or user.line == op.line for user, _ in self.uses[op.output]
            )
        )

    def inline_moved(self, names) -> bool:
        """Inline values that cannot have their carry's name into the assignment of the carry.

        Returns whether there was any such value: then the names have to be chosen again.
        """
        found = False
        for op in reversed(self.ops):
            if op in self.inlined:
                continue
            for block in op.blocks[-1:] if op.name != "if" else op.blocks:
                outputs = op.outputs
                for y, output in zip(block.yields[len(block.yields) - len(outputs) :], outputs):
                    if self._moves_to_end(y, block) and names[y] != names[output]:
                        self.inline(y.op)
                        found = True
        return found

    def _moves_to_end(self, y: Value, block: Block) -> bool:
        op = y.op
        return (
            op is not None
            and op not in self.inlined
            and op in block.ops
            and len(op.outputs) == 1
            and op.record.writes is None
            and is_pure(op)
            and not op.blocks
            and (op.record.syntax is not None or op.name == "call")
            and self.uses[y] == [(block, block.yields.index(y))]
            and self._tree_can_move(op, self.end[block])
        )

    def _tree_can_move(self, op: Op, stop: int) -> bool:
        """Whether `op`, with all that is inlined into it, has the same value at `stop`."""
        return self.can_move(op, stop) and all(
            self._tree_can_move(x.op, stop) for x in _operands(op) if self.is_inlined(x)
        )

    # --------------------------------------------------------------------------------- verification

    def verify(self) -> None:
        """Raise a VerifyError if a value that is printed inside an expression may be another there.

        The places are found again, from all decisions together.
        """
        found: dict[Op, int] = {}

        def place(user: Op | Block) -> int:
            user = self.inlined_owner.get(user, user)
            if isinstance(user, Block):
                return self.end[user]
            return evaluated(user) if user in self.inlined else self.position[user]

        def evaluated(op: Op) -> int:
            if op not in found:
                found[op] = self.position[op]
                for user, _ in self.uses.get(op.output, []):
                    around = self.inlined_owner.get(user, user)
                    extra = self.loops[around][len(self.loops[op]):]
                    found[op] = max(found[op], place(user),
                                    self.end[extra[0].blocks[-1]] if extra else 0)
            return found[op]

        for op in self.inlined:
            if op.name not in NEVER_STATEMENTS and not self.can_move(op, evaluated(op)):
                raise VerifyError(f"{op} is printed where what it reads has been written to",
                                  op.line)

    # ---------------------------------------------------------------------------------------- trees

    def expression(self, value: Value, name: Callable[[Value], str]) -> ast.expr:
        """The expression for `value`; `name` gives the names of values that have one."""
        if not self.is_inlined(value):
            return ast.Name(name(value), ast.Load())
        op = value.op
        if op.name == "if":
            return self._choice_expression(op, name)
        return self.operation(op, name)

    def operation(self, op: Op, name: Callable[[Value], str]) -> ast.expr:
        """The expression for the computation of `op`."""
        return mark(self._operation(op, name), op, self.hushed)

    def _operation(self, op: Op, name: Callable[[Value], str]) -> ast.expr:
        inputs = [self.expression(x, name) for x in op.inputs]
        if op.name == "call":
            inside = printed_op(op)
            if inside is not None:
                return inside.record.syntax(*inputs, **inside.attrs)
            callee = op.attrs["callee"].function_for(op.inputs)
            return ast.Call(ast.Name(self.spelled.get(callee, callee.name), ast.Load()), inputs, [])
        if op.name == "copy" and isinstance(op.inputs[0].type, Unknown) and not _has_copy(op, self):
            return ast.UnaryOp(
                ast.UAdd(), inputs[0]
            )  # for a number it is the number, for an array a copy
        if op.name == "copy" and isinstance(op.output.type, (List, Tuple)):
            return copy_syntax(op.output.type, *inputs)
        if (
            op.name == "zeros_like"
            and isinstance(op.inputs[0].type, Array)
            and (op.inputs[0].type.dtype == op.attrs["dtype"])
            and not is_said_by_lengths(inputs[0])
        ):
            return numpy_call(
                "zeros_like", *inputs
            )  # shorter than np.zeros(np.shape(x)), and as good here
        if op.name == "item":
            return member_syntax(inputs[0], getattr(op.inputs[0].type, "form", None),
                                 op.attrs["index"])
        found = op.record.syntax(*inputs, **op.attrs)
        if op.name == "length":
            # over all axes: they may be read together
            found.lengths = getattr(op.inputs[0].type, "rank", None)
        if functions_in(op):
            for node in nodes_in(found):
                if hasattr(node, "function"):
                    node.id = self.spelled.get(node.function, node.id)
        return found

    def _choice_expression(self, op: Op, name: Callable[[Value], str]) -> ast.expr:
        test = self.expression(op.inputs[0], name)
        first, second = (self._side(op, block.yields[0], name) for block in op.blocks)
        match _choice(op):
            case "test":
                return test
            case "and":
                return ast.BoolOp(
                    ast.And(), [*_sides(test, ast.And), *_sides(first, ast.And)]
                )
            case "or":
                return ast.BoolOp(ast.Or(), [*_sides(test, ast.Or), *_sides(second, ast.Or)])
            case "not":
                return ast.UnaryOp(ast.Not(), test)
        return ast.IfExp(test, first, second)

    def _side(self, op: Op, value: Value, name: Callable[[Value], str]) -> ast.expr:
        """One side of a choice: where nobody reads it, something of the type of the other, for
        native code knows no None that a number may be.
        """
        if self.native and value.op is not None and value.op.name == "undefined":
            return placeholder(op.output.type, True)
        return self.expression(value, name)


def _operands(op: Op) -> list[Value]:
    """The values that the expression for `op` is made of: of a choice, its sides, too."""
    return [*op.inputs, *(y for block in op.blocks for y in block.yields)]


def _sides(tree: ast.expr, kind: type) -> list[ast.expr]:
    """The operands of `a and b`, if `tree` is such an expression."""
    return tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, kind) else [tree]


def _choice(op: Op) -> str | None:
    """The expression for an `if` with one output and no statements."""
    if len(op.outputs) != 1:
        return None
    first, second = (block.yields[0] for block in op.blocks)
    boolean = all(
        isinstance(x.type, (Scalar, Unknown)) and x.type.dtype == "bool"
        for x in (op.inputs[0], first, second)
    )
    if boolean and first.constant is True and second.constant is False:
        return "test"
    if boolean and second.constant is False:
        return "and"
    if boolean and first.constant is True:
        return "or"
    if boolean and first.constant is False and second.constant is True:
        return "not"
    line = op.line.text if op.line is not None else ""
    return "choice" if " if " in line and " else " in line else None


def _is_offset(op: Op | None) -> bool:
    """Whether this is `n - 1` or the like: a named integer and a constant."""
    if op is None or not op.record.is_sum or not isinstance(op.output.type, Scalar):
        return False
    x, offset = op.inputs
    return (
        isinstance(x.type, Scalar)
        and not is_inexact(x.type.dtype)
        and isinstance(offset.constant, int)
        and offset.constant is not MISSING
    )


def _has_copy(op: Op, layout: Layout) -> bool:
    """Whether the source has a method `copy` although its rank is unknown.

    It has if it is a part of an array, or written to.
    """
    return (
        bool(op.output.name)
        or op.inputs[0].op is not None
        and op.inputs[0].op.name == "getitem"
        or any(
            isinstance(user, Op) and user.record.writes is not None
            for user, _ in layout.uses.get(op.output, [])
        )
    )
