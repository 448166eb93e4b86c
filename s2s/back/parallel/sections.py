"""Run long sequential loops that are independent of one another at the same time, as sections.

    for i in range(len(x)):                   a_own, b_own = np.empty(1), np.empty(1)
        a = 0.9 * a + np.sin(x[i] * a)        in_parts(f_sections, 2, 2, (a, x, b, y, a_own, b_own))
    b = 0.2                         becomes   a = a_own[0]
    for j in range(len(y)):                   b = b_own[0]
        b = 0.8 * b + np.cos(y[j] + b)

where f_sections runs the first loop as part 0, the second as part 1. Examples are two recurrences,
their reverse sweeps, a forward and a backward filter: loops that cannot be fused
(back/loops/fuse.py), because the ranges differ, or run in opposite directions.

Like outline_parallel.py, this works on the printed trees of a function's own statements. Statements
between two loops are moved before both or after both, if they are independent of what they pass:
neither binds a name that the other mentions, or writes to an array. The loops themselves may use
the same names, where neither value is live into the other loop or after it. The arrays that they
write and read are known from the ops. A check stays before everything that it precedes.

Considered: one op in the IR with several blocks: every pass that knows `for` and `if` would have to
know it, for a decision that is made last. Or submitting statements to the pool as they come, and
waiting where a result is read: whether one is worth it is known only before it begins.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Container, Sequence

from ...ir.graph import Op, Value, free_values
from ...ir.types import Array, Scalar
from ..syntax.ast_builders import dtype_argument
from ..syntax.ast_names import exposed, names_in, nodes_in, stored_in
from ..syntax.unparse import Comment
from .cost import is_length, parsed

# memory of unknown origin, and memory of arguments
ANYTHING, ARGUMENT = "anything", "argument"
# loops: with more, each has a small share of the work, and comparing all pairs takes long
FEW = 16
# functions of np, as the text names them, that allocate
NEW = frozenset({"zeros", "empty", "ones", "full", "zeros_like", "empty_like"})
OF_NUMBERS = frozenset({"unshared_zeros", "unshared_empty", "unshared_like", "len", "float", "int",
                        "bool", "abs", "max", "min"})


class Facts:
    """A cache of facts about statements, valid while nobody changes them."""

    def __init__(self, body: Sequence[ast.stmt]):
        self.body = body
        self.stored = functools.cache(lambda statement: frozenset(stored_in([statement])))
        self.names = functools.cache(names_in)
        self.written = functools.cache(written)
        self.is_plain = functools.cache(is_plain)
        self.checks = functools.cache(checks)
        self.left_by = functools.cache(self.find_left)
        self.section = functools.cache(lambda loop: [*beginning(body, loop), loop])
        self.memory = functools.cache(memory_of)

    def find_left(self, loop: ast.For) -> set[str]:
        """The names that are live after a loop."""
        return set(exposed(self.body[self.body.index(loop) + 1:], set(self.stored(loop))))

    def are_apart(self, loop: ast.For, other: ast.For) -> bool:
        """Whether neither of two loops writes to memory that the other uses."""
        (changed, used), (others, also) = self.memory(loop.op), self.memory(other.op)
        return not (ANYTHING in used | also or ARGUMENT in changed | others or changed & also
                    or others & used)

    def passes(self, statement: ast.stmt, other: ast.stmt) -> bool:
        """Whether two statements may be exchanged."""
        if not self.is_plain(statement) or not (self.is_plain(other) or isinstance(other, ast.For)):
            return False
        read = self.names(statement)
        # A plain statement reads no elements of an array that the other writes to, and only binds a
        # new name to it.
        return not (self.stored(statement) & self.names(other) or self.stored(other) & read
                    or self.written(other) & read)

    def leaves_numbers(self, loop: ast.For) -> bool:
        """Whether the live results of a loop are numbers that it carries."""
        return self.left_by(loop) <= {name
                                      for name, p in zip(loop.carried, loop.op.blocks[0].params[1:])
                                      if isinstance(p.type, Scalar)}


def groups(body: Sequence[ast.stmt], is_in_order: Callable[[ast.For], bool]) -> list[list[ast.For]]:
    """The groups of loops, among those `is_in_order`, that can run at the same time."""
    found: list[list[ast.For]] = []
    loops = [s for s in body if isinstance(s, ast.For) and hasattr(s, "op") and is_in_order(s)
             and carries_little(s)]
    facts = Facts(body)
    for loop in loops if len(loops) <= FEW else ():
        group = next((g for g in found if order(facts, [*g, loop]) is not None), None)
        if group is None:
            found.append([loop])
        else:
            group.append(loop)
    return [group for group in found if len(group) > 1]


def carries_little(loop: ast.For) -> bool:
    """Whether a loop carries only numbers and arrays, and does not break."""
    return not loop.op.attrs["breaks"] and all(isinstance(p.type, (Array, Scalar))
                                               for p in loop.op.blocks[0].params)


def beginning(body: Sequence[ast.stmt], loop: ast.For) -> list[ast.stmt]:
    """The constant assignments above a loop that initialise its carries: they move with it."""
    found: list[ast.stmt] = []
    stored, mentioned = set(stored_in([loop])), set()
    for statement in reversed(body[:body.index(loop)]):
        match statement:
            case ast.Assign([ast.Name(name)], value) if (is_new(value) and names_in(value) <= {"np"}
                                                         and name in stored - mentioned):
                found.insert(0, statement)
            case _ if not is_plain(statement):
                break
        mentioned |= names_in(statement)
    return found


def order(
    facts: Facts, group: Sequence[ast.For],
) -> tuple[list[ast.stmt], list[list[ast.stmt]], list[ast.stmt]] | None:
    """Statements before a group of loops, a section for each, and statements after.

    None if the loops cannot run at once.
    """
    body = facts.body
    first, last = body.index(group[0]), body.index(group[-1])
    sections = [facts.section(loop) for loop in group]
    inside = [statement for section in sections for statement in section]
    for k, loop in enumerate(group):
        for j, other in enumerate(group[k + 1:], k + 1):
            if (not facts.are_apart(loop, other)
                    or any(facts.left_by(loop) & facts.stored(s) for s in sections[j])
                    or any(exposed(sections[j], set(facts.stored(loop))))):
                return None
    if not all(map(facts.leaves_numbers, group)):
        return None
    before, after = [s for s in body[:first] if s not in inside], []
    for statement in body[first:last]:
        if statement in inside:
            continue
        if all(facts.passes(statement, other)
               for other in [*after, *(g for g in group if body.index(g) < body.index(statement))]):
            before.append(statement)
        else:
            after.append(statement)
    for statement in after:
        if facts.checks(statement) or not all(facts.passes(statement, g) for g in group
                                              if body.index(g) > body.index(statement)):
            return None
    return before, sections, [*after, *body[last + 1:]]


def is_plain(statement: ast.stmt) -> bool:
    """Whether a statement only binds a name to a number or a new array."""
    match statement:
        case Comment() | ast.Expr(ast.Constant()):
            return True
        case ast.Assign([ast.Name()], value):
            return is_new(value) and not any(isinstance(node, ast.Call) and not is_known(node)
                                             for node in nodes_in(value))
    return False


def is_new(value: ast.expr) -> bool:
    """Whether an expression is a number or a new array, computed from numbers and lengths."""
    match value:
        case ast.Constant():
            return True
        case ast.Name() | ast.Attribute(ast.Name(), "shape"):
            return True
        case ast.Subscript(ast.Attribute(ast.Name(), "shape"), ast.Constant()):
            return True
        case ast.UnaryOp(_, x):
            return is_new(x)
        case ast.BinOp(a, _, b):
            return is_new(a) and is_new(b)
        case ast.Tuple(items):
            return all(map(is_new, items))
        case ast.Attribute(ast.Name("np")):
            return True
        case ast.Call(_, args, keywords):
            return is_known(value) and all(map(is_new, [*args, *(k.value for k in keywords)]))
    return False


def is_known(call: ast.Call) -> bool:
    """Whether the callee returns numbers or new arrays of numbers, or checks them."""
    match call.func:
        case ast.Name(name):
            return name in OF_NUMBERS or is_length(name)
        case ast.Attribute(ast.Name("np"), name):
            return name in NEW
    return False


def checks(statement: ast.stmt) -> bool:
    """Whether a statement may raise: later statements may rely on its check."""
    return any(isinstance(node, ast.Raise) or isinstance(node, ast.Call)
               and isinstance(node.func, ast.Name) and is_length(node.func.id)
               for node in nodes_in(statement))


def written(statement: ast.stmt) -> set[str]:
    """The names of arrays to whose elements a statement writes."""
    targets = [node for node in nodes_in(statement) if isinstance(node, ast.Subscript)
               and isinstance(node.ctx, ast.Store)]
    return {name for target in targets for name in names_in(target.value)}


# ------------------------------------------------------------------------------------------- memory


def memory_of(loop: Op) -> tuple[set[object], set[object]]:
    """The origins of the memory that a loop writes to, and of the memory that it uses."""
    return origins(loop.inputs[3:]), origins([*loop.inputs, *free_values(loop.blocks[0])])


def origins(values: Sequence[Value]) -> set[object]:
    """The origins of arrays: the ops that allocate them, an ARGUMENT, or ANYTHING."""
    found: set[object] = set()
    seen: set[Value] = set()
    waiting = [x for x in values if not isinstance(x.type, Scalar)]
    while waiting:
        x = waiting.pop()
        if x in seen:
            continue
        seen.add(x)
        if x.op is None:
            found.add(ARGUMENT)
        elif not isinstance(x.type, Array) or x.op.blocks and x.op.name != "for":
            found.add(ANYTHING)
        else:
            found.add(x.op)
            if x.op.record.allocates is None:
                waiting += [y for y in (*x.op.inputs,
                                        *(y for block in x.op.blocks for y in free_values(block)))
                            if not isinstance(y.type, Scalar)]
    return found


# --------------------------------------------------------------------------------------- the kernel


def in_sections(body: Sequence[ast.stmt], group: Sequence[ast.For], name: str,
                unused: Callable[[str], str], locals: Container[str],
                is_own: Callable[[Value], bool]) -> tuple[ast.FunctionDef, list[ast.stmt]] | None:
    """The kernel `name`, with a section for each loop of the group, and its call.

    None if the loops cannot run at once. Arrays for which `is_own` holds are the function's own.
    """
    facts = Facts(body)
    found = order(facts, group)
    if found is None:
        return None
    before, sections, after = found
    ends = [sorted(facts.left_by(loop)) for loop in group]
    part, section, start, stop = (unused(x) for x in ("part", "section", "start", "stop"))
    own: dict[str, str] = {}
    made: list[str] = []
    kernel: list[ast.stmt] = []
    arguments: dict[str, None] = {}
    for k, (loop, statements, left) in enumerate(zip(group, sections, ends)):
        dtypes = {each: p.type.dtype for each, p in zip(loop.carried, loop.op.blocks[0].params[1:])}
        arguments.update(dict.fromkeys(exposed(statements, set(locals))))
        others = {name for other in sections if other is not statements for each in other
                  for name in names_in(each)}
        renamed = {each: unused(each) for each in sorted(set(stored_in(statements)) & others)}
        begun = [parsed(f"{renamed[each]} = {each}")[0]
                 for each in exposed(statements, set(renamed))]
        begun += [parsed(f"{each} = apart({each})")[0]
                  for each, x in zip(loop.carried, loop.op.inputs[3:]) if each in arguments
                  and each not in renamed and is_own(x)]
        for each in left:
            own[each] = unused(f"{each}_own")
            made.append(f"{own[each]} = np.empty(1{dtype_argument(dtypes[each])})")
        for node in [node for each in statements for node in nodes_in(each)] if renamed else ():
            if isinstance(node, ast.Name):
                node.id = renamed.get(node.id, node.id)
        ended = [parsed(f"{own[each]}[0] = {renamed.get(each, each)}")[0] for each in left]
        kernel.append(ast.If(parsed(f"{section} == {k}")[0].value, [*begun, *statements, *ended],
                             []))
    if not arguments:
        return None
    given = ", ".join([*arguments, *own.values()])
    (tree,) = parsed(f"def {name}({part}, {start}, {stop}, {given}):\n"
                     f"    for {section} in range({start}, {stop}): pass")
    tree.body[0].body = kernel
    n = len(group)
    call = parsed("\n".join([*made, f"in_parts({name}, {n}, {n}, ({given},))",
                             *(f"{each} = {place}[0]" for each, place in own.items())]))
    return tree, [*before, *call, *after]
