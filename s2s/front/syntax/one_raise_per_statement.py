"""Split statements inside a `try` so that each has one operation that may raise, before any effect
of its own.

`y = g(a / b) + c[i]` becomes `part 0 = a / b`, `part 1 = g(part 0)`, `part 2 = c[i]`, `y = part 1 +
part 2`: Python's evaluation order.  Conditionally evaluated operands become an `if`.  The names of
the parts are no identifiers, so no program can have them.
"""

from __future__ import annotations

import gast

from .desugar import copy_position
from .liveness import COMPREHENSIONS, Outline, inside, read_names

RAISING = (gast.Div, gast.FloorDiv, gast.Mod, gast.Pow, gast.LShift, gast.RShift, gast.MatMult)
HARMLESS = {
    "range", "len", "enumerate", "zip", "reversed", "abs", "isinstance", "tuple", "list", "bool"
}
PART = "part {}"


def split(outline: Outline, stmt: gast.AST) -> list:
    """The statements that replace `stmt`, or just itself; cached."""
    if id(stmt) not in outline.parts:
        outline.parts[id(stmt)] = _Split(outline, stmt).statements()
    return outline.parts[id(stmt)]


def test_in_body(outline: Outline, node: gast.While) -> gast.If:
    """The body of a `while` with its test moved inside: `if test: <body> else: break`; cached."""
    key = "tested", id(node)
    if key not in outline.parts:
        out = copy_position(gast.Break(), node.test)
        out.ran_out = True
        new = copy_position(gast.If(node.test, node.body, [out]), node.test)
        liveness, after = outline.liveness, outline.liveness.heads[id(node)]
        for stmt in (out, new):
            liveness.after[id(stmt)] = liveness.arms[id(stmt)] = after
            liveness.caught[id(stmt)] = liveness.caught[id(node)]
            liveness.reads[id(stmt)] = frozenset(read_names([node.test]))
        outline.parts[key] = [new]
    return outline.parts[key][0]


def can_raise(node: gast.AST) -> bool:
    """Whether the operation at the root of an expression may raise, given its operands."""
    match node:
        case gast.BinOp(op=op):
            return isinstance(op, RAISING)
        case gast.Call(func=gast.Name(id="range"), args=[_, _, step]):
            return not isinstance(step, gast.Constant)
        case gast.Call(func=gast.Name(id=name)) if name in HARMLESS:
            return False
        case gast.Subscript() | gast.Call():
            return True
        case gast.IfExp(body=body, orelse=orelse):  # the arrays may not broadcast
            return any(isinstance(n, gast.BinOp) for side in (body, orelse) for n in inside(side))
    return isinstance(node, COMPREHENSIONS)


def is_quiet(node: gast.AST) -> bool:
    """Whether an expression neither raises nor binds a name."""
    return not any(can_raise(n) or isinstance(n, gast.NamedExpr) for n in inside(node))


class _Split:

    def __init__(self, outline: Outline, stmt: gast.AST):
        self.outline, self.stmt, self.out = outline, stmt, []

    def statements(self) -> list:
        stmt, liveness = self.stmt, self.outline.liveness
        last = self.last(stmt)
        if last is stmt and not self.out:
            return [stmt]
        if last is None:
            last = []
        elif isinstance(last, (gast.If, gast.For)):
            for table in (liveness.after, liveness.arms, liveness.heads, liveness.exposed,
                          liveness.caught):
                if id(stmt) in table:
                    table[id(last)] = table[id(stmt)]
            head = last.test if isinstance(last, gast.If) else last.iter
            liveness.reads[id(last)] = liveness.reads[id(stmt)] | read_names([head])
            read = liveness.reads[id(last)].union(*(t.get(id(stmt), ())
                                                    for t in (liveness.arms, liveness.heads)))
            liveness.add(self.out, liveness.after[id(stmt)] | read, stmt)
            last = [last]
        else:
            liveness.add([*self.out, last], liveness.after[id(stmt)], stmt)
            last = [last]
        parts = [*self.out, *last]
        for part in parts:
            self.outline.parts[id(part)] = [part]
        return parts

    # statements

    def last(self, stmt: gast.AST):
        """The rest of `stmt` after the parts in `self.out`; None if nothing is left."""
        match stmt:
            case gast.Assign(targets=targets, value=value):
                return self.assignment(stmt, targets, value)
            case gast.AnnAssign(target=target, value=value) if value is not None:
                return self.assignment(stmt, [target], value)
            case gast.AugAssign(target=target, op=op, value=value):
                if isinstance(target, gast.Subscript):
                    base, key, value = self.ordered([target.value, target.slice, value])
                    target = copy_position(gast.Subscript(base, key, gast.Store()), target)
                elif not is_quiet(value):
                    value = self.operand(value)
                return copy_position(gast.AugAssign(target, op, value), stmt)
            case gast.Expr(value=value) if not is_quiet(value):
                return copy_position(gast.Expr(self.root(value)), stmt)
            case gast.Return(value=value) if value is not None and not is_quiet(value):
                return copy_position(gast.Return(self.root(value)), stmt)
            case gast.If(test=test, body=body, orelse=orelse) if not is_quiet(test):
                return copy_position(gast.If(self.operand(test), body, orelse), stmt)
            case gast.For(target=target, iter=source, body=body,
                          orelse=orelse) if not is_quiet(source):
                return copy_position(gast.For(target, self.operand(source), body, orelse, None),
                                     stmt)
            case gast.Assert(test=test, msg=message) if not is_quiet(test):
                return copy_position(gast.Assert(self.operand(test), message), stmt)
            case gast.Raise(exc=gast.Call(func=function, args=args, keywords=[]), cause=cause):
                call = copy_position(gast.Call(function, self.ordered(args), []), stmt.exc)
                return copy_position(gast.Raise(call, cause), stmt)
        return stmt

    def assignment(self, stmt: gast.AST, targets: list, value: gast.AST):
        simple = not any(
            isinstance(n, (gast.Subscript, gast.Attribute)) for t in targets for n in inside(t))
        if simple:
            return (stmt if is_quiet(value) else copy_position(
                gast.Assign(targets, self.root(value), None), stmt))
        if len(targets) == 1 and isinstance(targets[0], gast.Subscript) and is_quiet(value):
            held = value
        else:
            held = self.hold(self.simplified(value), value)
        for target in targets:
            self.store(target, held)
        return self.out.pop()

    def store(self, target: gast.AST, value: gast.AST) -> None:
        """`target = value` as statements that store one thing each."""
        match target:
            case gast.Subscript(value=base, slice=key):
                base, key = self.ordered([base, key])
                target = copy_position(gast.Subscript(base, key, gast.Store()), target)
            case gast.Attribute(value=base, attr=name):
                target = copy_position(gast.Attribute(self.operand(base), name, gast.Store()),
                                       target)
            case gast.Tuple(elts=items) | gast.List(elts=items):
                names = [self.name() for _ in items]
                stores = [
                    copy_position(gast.Name(n, gast.Store(), None, None), target) for n in names
                ]
                stores = [
                    copy_position(gast.Starred(s, gast.Store()), target)
                    if isinstance(item, gast.Starred) else s for s, item in zip(stores, items)
                ]
                self.out.append(
                    copy_position(gast.Assign([gast.Tuple(stores, gast.Store())], value, None),
                                  self.stmt))
                for name, item in zip(names, items):
                    self.store(item.value if isinstance(item, gast.Starred) else item,
                               self.load(name, item))
                return
        self.out.append(copy_position(gast.Assign([target], value, None), self.stmt))

    # expressions

    def name(self) -> str:
        self.outline.part_count += 1
        return PART.format(self.outline.part_count)

    def load(self, name: str, node: gast.AST) -> gast.Name:
        return copy_position(gast.Name(name, gast.Load(), None, None), node)

    def hold(self, node: gast.AST, place: gast.AST, name: str = "") -> gast.Name:
        """Evaluate `node` in a statement of its own; returns its name."""
        name = name or self.name()
        self.out.append(
            copy_position(gast.Assign([gast.Name(name, gast.Store(), None, None)], node, None),
                          place))
        return self.load(name, place)

    def operand(self, node: gast.AST) -> gast.AST:
        """An expression with the value of `node` that cannot raise."""
        if is_quiet(node):
            return node
        new = self.simplified(node)
        return self.hold(new, node) if can_raise(new) else new

    def root(self, node: gast.AST) -> gast.AST:
        """The same, but the operation at the root may raise, unless it is a call, which may raise
        anywhere inside.
        """
        new = self.simplified(node)
        return self.hold(new, node) if isinstance(new, gast.Call) and can_raise(new) else new

    def ordered(self, nodes: list) -> list:
        """Operands in evaluation order."""
        loud = [k for k, node in enumerate(nodes) if not is_quiet(node)]
        last = loud[-1] if loud else -1
        return [
            self.operand(node) if k >= last
            or isinstance(node, (gast.Constant, gast.Slice)) and is_quiet(node) else self.held(node)
            for k, node in enumerate(nodes)
        ]

    def held(self, node: gast.AST) -> gast.AST:
        if isinstance(node, gast.Starred):
            return copy_position(gast.Starred(self.held(node.value), gast.Load()), node)
        if isinstance(node, gast.Tuple) and any(isinstance(x, gast.Slice) for x in node.elts):
            # a key, `x[i, 1:3]`: Python has no other name for a slice
            return copy_position(gast.Tuple(list(map(self.held, node.elts)), gast.Load()), node)
        new = self.operand(node)
        if (isinstance(new, (gast.Slice, gast.Constant))
                or isinstance(new, gast.Name) and new.id.startswith("part ")):
            return new
        return self.hold(new, node)

    def simplified(self, node: gast.AST) -> gast.AST:
        """`node` with operands that cannot raise."""
        if is_quiet(node):
            return node
        match node:
            case gast.BinOp(left=left, op=op, right=right):
                left, right = self.ordered([left, right])
                new = gast.BinOp(left, op, right)
            case gast.UnaryOp(op=op, operand=operand):
                new = gast.UnaryOp(op, self.operand(operand))
            case gast.Compare(left=left, ops=[op], comparators=[right]):
                left, right = self.ordered([left, right])
                new = gast.Compare(left, [op], [right])
            case gast.Compare(left=left, ops=[op, *ops], comparators=[right, *others]):
                left, right = self.held(left), self.held(right)
                first = copy_position(gast.Compare(left, [op], [right]), node)
                rest = copy_position(gast.Compare(right, ops, others), node)
                return self.decided(gast.And, [first, rest], node)
            case gast.BoolOp(op=op, values=values):
                return self.decided(type(op), values, node)
            case gast.IfExp(test=test, body=body, orelse=orelse):
                return self.conditional(self.operand(test), body, orelse, node)
            case gast.Call(func=function, args=args, keywords=keywords):
                match function:
                    case gast.Attribute(value=base, attr=attr):
                        base, *rest = self.ordered([base, *args, *(k.value for k in keywords)])
                        function = copy_position(gast.Attribute(base, attr, gast.Load()), function)
                    case _:
                        function, *rest = self.ordered(
                            [function, *args, *(k.value for k in keywords)])
                named = [gast.keyword(k.arg, v) for k, v in zip(keywords, rest[len(args):])]
                new = gast.Call(function, rest[:len(args)], named)
            case gast.Subscript(value=base, slice=key):
                base, key = self.ordered([base, key])
                new = gast.Subscript(base, key, gast.Load())
            case gast.Slice(lower=lower, upper=upper, step=step):
                parts = iter(self.ordered([p for p in (lower, upper, step) if p is not None]))
                new = gast.Slice(*(None if p is None else next(parts)
                                   for p in (lower, upper, step)))
            case gast.Attribute(value=base, attr=attr):
                new = gast.Attribute(self.operand(base), attr, gast.Load())
            case gast.Tuple(elts=items):
                new = gast.Tuple(self.ordered(items), gast.Load())
            case gast.List(elts=items):
                new = gast.List(self.ordered(items), gast.Load())
            case gast.Dict(keys=keys, values=values) if None not in keys:
                flat = self.ordered([n for pair in zip(keys, values) for n in pair])
                new = gast.Dict(flat[::2], flat[1::2])
            case gast.Starred(value=value):
                new = gast.Starred(self.operand(value), gast.Load())
            case gast.NamedExpr(target=target, value=value):
                self.out.append(copy_position(gast.Assign([target], self.root(value), None), node))
                if isinstance(target, gast.Attribute):
                    new = gast.Attribute(target.value, target.attr, gast.Load())
                    return copy_position(new, node)
                return self.load(target.id, node)
            case _:
                return node
        return copy_position(new, node)

    def decided(self, op: type, values: list, node: gast.AST) -> gast.AST:
        """`a and b`, `a or b`: the deciding operand."""
        first, rest = values[0], values[1:]
        if all(map(is_quiet, rest)):
            return copy_position(gast.BoolOp(op(), [self.operand(first), *rest]), node)
        held = self.held(first)
        rest = rest[0] if len(rest) == 1 else copy_position(gast.BoolOp(op(), rest), node)
        sides = (rest, held) if op is gast.And else (held, rest)
        return self.conditional(held, *sides, node)

    def conditional(self, test: gast.AST, body: gast.AST, orelse: gast.AST,
                    node: gast.AST) -> gast.AST:
        name, around, sides = self.name(), self.out, []
        for side in (body, orelse):
            self.out = []
            self.hold(self.simplified(side), side, name)
            sides.append(self.out)
        self.out = around
        self.out.append(copy_position(gast.If(test, *sides), node))
        return self.load(name, node)
