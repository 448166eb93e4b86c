"""Compile recursive functions: a recursive call is a `call` op of a function that is still under
construction.

    def fact(n):
        if n <= 1:
            return 1.0
        return n * fact(n - 1)

The inner call of `fact` is an op whose callee is the function under construction.  Its result type
is the fixed point that the types of a loop's carries are, too: first from the paths without a
recursive call (here 1.0), then from all paths, until it settles.

The activation runs in a block of its own, on the caller's heap.  What it reads from outside, and
what it changes there, become parameters and results of their own once the outermost of the
functions is done (Note [Closing]).

Note [What a call changes]
A function may write into arrays that it is given, or that it closes over, and it may set members
of objects around it, or variables, to other numbers.  Each of these is a parameter and, in its
final state, one more result; the call writes the result back to the caller's array, or member.

Note [Closing]
While functions that call one another are under construction, their blocks read the values of the
program around.  Each such value becomes a trailing parameter of every function that reads it, or
calls one that does, and an operand of every call.

Note [Recursion through methods]
Names tell which functions may call themselves (front/eval/call_graph.py), but not those that do so
through a method of an object that they are given, as a ray tracer calls what it hits.  They
are inlined, and where that has been done AGAIN_AT_MOST times inside of one another, the program is
built again with the outermost of them as a recursive function.

Note [Unrolled recursion]
What follows known data, such as a tree of dicts or a depth that is a literal, ends when code is
generated.  Where a function that calls itself cannot be one op, as it appends to a list of the
program around, or is given other types at every depth, the program is built again with each of its
calls inlined.  If that does not end, as with a call inside that is known to be like the one around
it, the first error stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import gast

from ...errors import Line, S2SError, Source, UnsupportedError
from ...ir.builder import Builder, at, current, emit, fresh_extent, record_effect
from ...ir.graph import MISSING, Block, Function, Op, Value, defined_values, free_values, walk
from ...ir.substitute import substitute
from ...ir.types import UNDEFINED, List, Scalar, Type, join
from ...ops.core.control import call as call_record
from ...ops.core.control import say_what_fills
from ...ops.core.record import value
from ...ops.program.recursive_callee import Recursive
from ..domain.frame import Frame, PathEnded
from ..domain.functions import Local
from ..domain.heap import Cell, Container, Heap
from ..domain.result_aliases import identities, rebind, sharing_pairs
from ..syntax.liveness import outline_of
from ..values.activation import Diverges, run
from ..values.dicts import store
from ..values.lists import as_list
from ..values.nonlocals import require_holders
from .join import NUMBERS
from .recursion_keys import (
    ConstantArgument,
    Names,
    common,
    join_binding,
    key_of,
    refuse_functions,
    rename_symbols,
    same_structure,
    split_binding,
)

ROUNDS = 12  # attempts to find the result type of a function
INLINED_AT_MOST = 400  # calls of functions that are unrolled
AGAIN_AT_MOST = 24  # inlined calls inside of one another, of functions not known to be recursive
KINDS = 16  # argument types for which one function may be under construction


@dataclass(frozen=True, eq=False)
class Definition:
    """A callee: its text, and the scope in which its names are looked up."""

    identity: tuple
    name: str
    node: gast.FunctionDef | gast.Lambda
    body: list
    source: Source
    globals: dict
    closure: dict = field(default_factory=dict)
    lexical: Frame | None = None
    doc: str = ""
    function: Callable | None = None  # of a module-level function


@dataclass(frozen=True)
class Member:
    """A member of an object of the enclosing program that is a number."""

    container: Container
    key: object

    def read(self, heap: Heap) -> Value:
        """Its value now."""
        return value(heap.contents[self.container][self.key])

    def set(self, heap: Heap, new: Value) -> None:
        """Set it while the function is made."""
        heap.contents[self.container] = {**heap.contents[self.container], self.key: new}


@dataclass(frozen=True, eq=False)
class Signature:
    """The effect of a call: types of its results and of the arrays that it changes.  Note [What a
    call changes]
    """

    structure: object
    types: list[Type]  # of all results
    changed: tuple[int, ...]  # number of arguments
    # arrays of the enclosing program, and members of its objects
    outer: tuple[Cell | Member, ...]
    shares: bool  # whether the result may share memory with them
    identities: object = None  # which of the results are one object: front/domain/result_aliases.py
    # positions of leaves of the result that may share memory
    pairs: tuple[tuple[int, int], ...] = ()
    items: tuple[int, ...] = ()  # those of `changed` that are lists, of which items are changed


@dataclass(eq=False)
class Recursion:
    """A function under construction, for arguments of one structure."""

    definition: Definition
    structure: object
    types: list[Type | ConstantArgument]
    names: list[str]
    callee: Recursive
    given: list[Cell | Container]  # the lists and objects of the first call
    signature: Signature | None = None
    active: bool = True
    # where this attempt has called a function without a known result yet
    diverged: Line | None = None
    closed: bool = False
    lifted: list[Value] = field(default_factory=list)  # operands that every call passes on


class GrowingLists(Exception):
    """Signal that the function changes lists of its caller, which are of known length there."""

    def __init__(self, cells: list[Cell]):
        self.cells = cells


class WiderArguments(Exception):
    """Signal that the function calls itself with arguments of a wider type."""

    def __init__(self, recursion: Recursion, types: list):
        self.recursion, self.types = recursion, types


class CallsItself(Exception):
    """Signal that a function calls itself through methods of objects that it is given."""

    def __init__(self, node: gast.AST):
        super().__init__(node)
        self.node = node


def calls_itself(frame: Frame, definition: gast.AST) -> bool:
    """Whether a function, which its names do not tell, has turned out to be recursive."""
    session, around, chain = frame.session, frame, [definition]
    if definition in session.recursive:
        return True
    while around is not None and around.node not in session.recursive:
        chain.append(around.node)
        around = around.caller
    if definition in chain[1:]:
        session.called_again += 1
        if session.called_again > AGAIN_AT_MOST:
            raise CallsItself(next(x for x in reversed(chain) if chain.count(x) > 1))
    return False


def is_open(frame: Frame, functions) -> bool:
    """Whether one of `functions` is under construction here."""
    return any(r.active and r.definition.function in functions for r in frame.session.recursions)


def call_recursive(frame: Frame, definition: Definition, bindings: dict, node: gast.AST | None):
    """The binding that a call of a possibly recursive function returns."""
    try:
        return _call(frame, definition, bindings, node)
    except S2SError as error:
        error.unrolled |= {definition.node}
        leaves = split_binding(frame, tuple(bindings.values()))[1]
        error.conditions = (*error.conditions, *(  # which the caller may know
            x for x in leaves if isinstance(x, Value) and isinstance(x.type, Scalar)
            and x.type.dtype in ("bool", "int64")))
        raise


def is_unrolled(frame: Frame, definition: gast.AST, bindings: dict, node: gast.AST | None,
                lexical: Frame | None = None) -> bool:
    """Whether calls of a recursive function, defined in `lexical`, are inlined.  Note [Unrolled
    recursion]
    """
    session = frame.session
    if definition not in session.unrolled:
        return False
    structure, leaves = split_binding(frame, tuple(bindings.values()))
    keys = rename_symbols([key_of(frame.value(leaf)) for leaf in leaves], Names())
    around = frame
    while around is not None:
        if (around.node is definition and around.lexical is lexical
                and (around.caller, definition) in session.inlined):
            known, with_keys = session.inlined[around.caller, definition]
            if same_structure(known, structure) and with_keys == keys:
                raise frame.refuse("recursion", node, "write a loop")
        around = around.caller
    session.inlined[frame, definition] = structure, keys
    session.calls_inlined += 1
    if session.calls_inlined > INLINED_AT_MOST:
        raise frame.refuse("recursion", node, "write a loop")
    return True


def _call(frame: Frame, definition: Definition, bindings: dict, node: gast.AST | None):
    if frame.session.tries:
        raise frame.refuse(f"{definition.name}, which calls itself, inside `try`", node,
                           "call it before the `try`")
    require_holders(frame, definition.lexical, outline_of(definition.node, definition.body), node)
    while True:
        try:
            return _call_known(frame, definition, bindings, node)
        except GrowingLists as lists:  # which have been of known length
            for cell in lists.cells:
                as_list(frame, cell)


def _call_known(frame: Frame, definition: Definition, bindings: dict, node: gast.AST | None):
    """The same, of lists that the function does not change, or that are of the run."""
    met: dict = {}
    structure, leaves = split_binding(frame, tuple(bindings.values()), met)
    values = [frame.value(leaf) for leaf in leaves]
    keys = rename_symbols(list(map(key_of, values)), Names())
    open_ones = 0
    for known in reversed(frame.session.recursions):
        if known.definition.identity != definition.identity:
            continue
        open_ones += known.active
        if not same_structure(known.structure, structure):
            continue
        joined = common(known.types, keys)
        if joined is None:
            continue
        if known.active:
            if joined != known.types:
                raise WiderArguments(known, joined)
            return _emit(frame, known, leaves, bindings, node)
        if joined == known.types and _is_reusable(frame, known):
            return _emit(frame, known, leaves, bindings, node)
    if open_ones >= KINDS:
        raise frame.refuse(f"{definition.name} calls itself with arguments of ever other types",
                           node, "give it arguments of one type at every depth, or write a loop")
    seen: dict = {}
    counts = {name: len(split_binding(frame, x, seen)[1]) for name, x in bindings.items()}
    names = [name if count == 1 else f"{name}_{k}" for name, count in counts.items()
             for k in range(count)]
    made = Recursion(definition, structure, keys, names, Recursive(definition.name), list(met))
    _make(frame, made, list(bindings), node)
    return _emit(frame, made, leaves, bindings, node)


def _is_reusable(frame: Frame, known: Recursion) -> bool:
    """Whether a function built before may be called here: everything it reads from outside is read
    at each call.
    """
    captured = {param for param, _ in frame.session.captures.values()}
    return (not known.signature.outer and known.definition.lexical is None
            and all(v in captured for v in _read_around(frame, known, set())))


def _read_around(frame: Frame, known: Recursion, seen: set[Recursion]) -> Iterator[Value]:
    """What a function that has been built reads from around, and those that it calls do."""
    if known.closed:
        yield from known.lifted
        return
    seen.add(known)
    block = known.callee.function.block
    yield from (v for v in free_values(block) if v.constant is MISSING)
    called = {op.attrs["callee"] for op in walk(block) if "callee" in op.attrs}
    for other in frame.session.recursions:
        if other.callee in called and other not in seen and not other.active:
            yield from _read_around(frame, other, seen)


# ------------------------------------------------------------------------------------------- calls


def _emit(frame: Frame, made: Recursion, leaves: list, bindings: dict, node: gast.AST | None):
    """Emit a `call` op and apply its effects to the caller's arrays."""
    signature = made.signature
    if signature is None:
        for each in frame.session.recursions:
            each.diverged = each.diverged or current().line
        raise Diverges
    arguments = [
        leaf for leaf, type in zip(leaves, made.types) if not isinstance(type, ConstantArgument)
    ]
    _refuse_two_names(frame, made, arguments, node)
    outer = [x.read(frame.heap) if isinstance(x, Member) else frame.heap.read(x)
             for x in signature.outer]
    inputs = [*map(frame.value, arguments), *outer, *made.lifted]
    for x, param in zip(inputs, made.callee.function.params):
        say_what_fills(x, param.type)
    outputs = list(emit(call_record, *inputs, callee=made.callee))
    record_effect()
    count = len(outputs) - len(signature.changed) - len(signature.outer)
    frame.live |= frame.pending  # the rest of the statement is still to be evaluated
    for k, out in zip(signature.changed, outputs[count:]):
        frame.write(arguments[k], out)
    for k in signature.items:
        _refuse_items_elsewhere(frame, made, arguments[k], node)
        frame.heap.written_in.update(arguments[k].roots)
    for x, out in zip(signature.outer, outputs[count + len(signature.changed):]):
        if isinstance(x, Member):
            store(frame, x.container, {**x.container.members, x.key: out})
        else:
            frame.write(x, out)
    returned = [frame.wrap(out) for out in outputs[:count]]
    for j, k in signature.pairs:
        both = frozenset([Cell()])
        returned[j].origins |= both
        returned[k].origins |= both
    result = rebind(frame.heap, join_binding(frame, signature.structure, returned),
                    signature.identities)
    if signature.shares:
        given = (*frame.reachable_cells(tuple(bindings.values())), *arrays_of(signature))
        families = frozenset().union(*(cell.family() for cell in given))
        for cell in list(frame.reachable_cells(result)):
            cell.origins |= families
    return result


def arrays_of(signature: Signature) -> list[Cell]:
    """The arrays of the enclosing program that a call changes."""
    return [x for x in signature.outer if not isinstance(x, Member)]


def _refuse_items_elsewhere(frame: Frame, made: Recursion, xs: Cell,
                            node: gast.AST | None) -> None:
    """Refuse a call that writes into items of the list `xs`, of which there is another name: they
    are handed over in a copy.
    """
    held = frozenset().union(*(root.held for root in xs.roots))
    for name, other in frame.reachable():
        if any(root not in xs.roots and held & (root.family() | root.held)
               for root in other.roots):
            raise frame.refuse(f"{made.definition.name}, which calls itself, writes into items of "
                               f"a list that may share memory with {name}", node,
                               "pass the whole list, and the place in it")


def _refuse_two_names(frame: Frame, made: Recursion, arguments: list,
                      node: gast.AST | None) -> None:
    """Refuse a call that changes an array which it also reaches under another name."""
    signature, definition = made.signature, made.definition
    cells = {k: leaf for k, leaf in enumerate(arguments) if isinstance(leaf, Cell)}
    changed = {k: cells[k] for k in signature.changed if k in cells}
    outer = arrays_of(signature)
    if not changed and not outer:
        return
    read = set()
    if definition.lexical is not None:
        read = {
            root
            for c in frame.reachable_cells(Local(definition.node, definition.lexical, {}))
            for root in c.roots
        }
    for k, cell in changed.items():
        others = [c for j, c in cells.items() if j != k] + outer
        if (any(cell.family() & other.family() for other in others)
            or cell.family() & read - set(outer)):
            raise frame.refuse(
                f"{definition.name} writes into an array that it is given by two names", node,
                "pass the array once")
    for cell in outer:
        if any(cell.family() & other.family() for other in cells.values()):
            raise frame.refuse(f"{definition.name} writes into an array that it is also given",
                               node, "use the argument only")


# ------------------------------------------------------------------------------------- construction


def _make(frame: Frame, made: Recursion, names: list[str], node: gast.AST | None) -> None:
    """Build the function of `made`, repeatedly until its result types reach a fixed point."""
    recursions = frame.session.recursions
    recursions.append(made)
    count, state, live = len(recursions), frame.snapshot(), (frame.live, frame.pending)
    try:
        for _ in range(ROUNDS):
            made.diverged = None
            try:
                found = _infer_signature(frame, made, names, node)
            except WiderArguments as wider:
                if wider.recursion is not made:
                    raise
                made.types, made.signature = wider.types, None
                continue
            except PathEnded:
                if made.diverged is None:
                    raise frame.refuse(
                        f"{made.definition.name}, which calls itself, raises on every path", node,
                        "let one path return") from None
                if any(r.active and r is not made for r in recursions):
                    raise Diverges from None
                raise UnsupportedError(f"{made.definition.name} calls itself on every path",
                                       made.diverged,
                                       "let one path return without calling it") from None
            finally:
                frame.restore(state)
                frame.live, frame.pending = live
            joined = _join_signatures(made.signature, found)
            if made.signature is not None and _is_same(made.signature, joined):
                break
            made.signature = joined
            del recursions[count:]
        else:
            raise frame.refuse(f"what {made.definition.name} returns cannot be worked out", node,
                               "let it return values of one kind on all paths")
    except BaseException:
        del recursions[count - 1:]
        raise
    made.active = False
    if not any(r.active for r in recursions):
        _close([r for r in recursions if not r.closed])


def _infer_signature(frame: Frame, made: Recursion, names: list[str],
                     node: gast.AST | None) -> Signature:
    """Run the function on fresh parameters; returns the signature found."""
    definition, session, heap = made.definition, frame.session, frame.heap
    symbols = Names(fresh=True)
    types = rename_symbols([t for t in made.types if not isinstance(t, ConstantArgument)], symbols)
    params = [
        Value(type, name) for type, name in zip(types, (n for n, t in zip(made.names, made.types)
                                                        if not isinstance(t, ConstantArgument)))
    ]
    block, before = Block(list(params)), dict(heap.contents)
    with Builder(block), at(current().line):
        rest = iter(params)
        leaves = [
            value(t.value) if isinstance(t, ConstantArgument) else frame.wrap(next(rest))
            for t in made.types
        ]
        arguments = [
            leaf for leaf, t in zip(leaves, made.types) if not isinstance(t, ConstantArgument)
        ]
        inside: list = []
        bindings = dict(zip(names, join_binding(frame, made.structure, list(leaves), inside)))
        for here, there in zip(inside, made.given):
            here.site = there.site
        for cell in frame.reachable_cells(tuple(bindings.values())):
            cell.parameter_of = block
        given = made.signature.outer if made.signature is not None else ()
        for k, x in enumerate(given):
            if isinstance(x, Member):
                old = x.read(heap)
                wider = join(old.type, made.signature.types[k - len(given)], fresh_extent)
                block.params.append(Value(wider or old.type, str(x.key)))
                x.set(heap, block.params[-1])
            else:
                type = before[x].type
                if isinstance(type, List) and type.item == UNDEFINED:
                    (type,) = rename_symbols([made.signature.types[k - len(given)]], symbols)
                heap.contents[x] = Value(type, before[x].name)
                block.params.append(heap.contents[x])
        started, heap.seen = dict(heap.contents), {}
        held = list(frame.reachable_cells(tuple(bindings.values())))
        made.callee.function = _stub(made, block.params, symbols)
        holder = Frame(definition.node, definition.body, definition.source, session,
                       definition.globals, caller=frame)
        holder.env.update(bindings)  # the caller reads the final state of its arrays
        holder.kept = (frozenset(bindings),)
        inner = Frame(definition.node, definition.body, definition.source, session,
                      definition.globals, definition.closure, definition.lexical, holder)
        result = run(inner, bindings, node)
        refuse_functions(result)
        structure, returned = split_binding(frame, result)
        changed = tuple(k for k, leaf in enumerate(arguments)
                        if isinstance(leaf, Cell) and heap.read(leaf) is not params[k])
        items = tuple(k for k in changed if not heap.written_in.isdisjoint(arguments[k].roots))
        members, lists, callers = [], [], dict(zip(inside, made.given))
        for cell in (*before, *held):
            content, after = started.get(cell), heap.contents.get(cell)
            if content is None or isinstance(content, Value) or after is content:
                continue
            if isinstance(cell, Cell):
                lists.append(callers.get(cell, cell))
                continue
            found = _changed_members(cell, content, after) if cell in before else None
            if found is None:
                raise frame.refuse(
                    f"{definition.name}, which calls itself, changes a list or an object from "
                    "outside",
                    node, "return what is new, or write it into an array")
            members += found
        if lists:
            raise GrowingLists(lists)
        outer = tuple(cell for cell in before if isinstance(started[cell], Value)
                      and heap.contents.get(cell) is not started[cell])
        outer = (*given, *(x for x in (*outer, *members) if x not in given))
        block.yields = [*map(frame.value, returned), *(heap.read(arguments[k]) for k in changed),
                        *(x.read(heap) if isinstance(x, Member) else heap.contents[x]
                          for x in outer)]
        own = {root for cell in (*held, *before) for root in cell.roots}
        shares = any(cell.family() & own for cell in frame.reachable_cells(result))
    made.callee.function = Function(definition.name, block, definition.source, definition.doc,
                                    len(block.yields) != 1)
    back = {(kind, new): old for (kind, old), new in symbols.known.items()}
    return Signature(structure,
                     rename_symbols([y.type for y in block.yields], Names(known=_Back(back))),
                     changed, outer, shares, identities(frame.heap, result),
                     sharing_pairs(returned), items)


def _changed_members(container: Cell | Container, before, after) -> list[Member] | None:
    """The members of an object that now are other numbers; None if it has changed otherwise."""
    if not isinstance(container, Container) or before.keys() != after.keys():
        return None
    keys = [key for key in before if after[key] is not before[key]]
    if not all(isinstance(x[key], (Value, *NUMBERS)) for x in (before, after) for key in keys):
        return None
    return [Member(container, key) for key in keys]


class _Back(dict):
    """A mapping back to the parameters' own symbols; other symbols in a result are numbered."""

    def __missing__(self, key):
        self[key] = f"result.{len(self)}"
        return self[key]

    def __contains__(self, key) -> bool:
        return True


def _stub(made: Recursion, params: list[Value], symbols: Names) -> Function:
    """The function as far as its callers must know it."""
    types = [] if made.signature is None else rename_symbols(made.signature.types, symbols)
    return Function(made.definition.name, Block(list(params), [], [Value(type) for type in types]),
                    made.definition.source, "", len(types) != 1)


def _join_signatures(known: Signature | None, found: Signature) -> Signature:
    """The join of two signatures of one structure; else the one found last."""
    if known is None or not same_structure(known.structure, found.structure) or (
            (known.changed, known.outer, known.items) != (found.changed, found.outer,
                                                           found.items)):
        return found
    types = [join(a, b, fresh_extent) for a, b in zip(known.types, found.types, strict=True)]
    if None in types:
        return found
    same = known.identities if known.identities == found.identities else None
    return Signature(known.structure, types, known.changed, known.outer, known.shares
                     or found.shares, same, tuple(dict.fromkeys((*known.pairs, *found.pairs))),
                     found.items)


def _is_same(a: Signature, b: Signature) -> bool:
    return (same_structure(a.structure, b.structure) and
            (a.changed, a.outer, a.items, a.shares, a.identities, set(a.pairs))
            == (b.changed, b.outer, b.items, b.shares, b.identities, set(b.pairs))
            and _number_symbols(a.types) == _number_symbols(b.types))


def _number_symbols(types: list[Type]) -> list[Type]:
    """`types`, with symbols that no parameter has replaced by numbers."""
    return rename_symbols(types, Names())


# ------------------------------------------------------------------------------------------ closing


def _close(made: list[Recursion]) -> None:
    """Turn the captured values of the functions into parameters.  Note [Closing]"""
    by_callee = {r.callee: r for r in made}
    blocks = {r: r.callee.function.block for r in made}
    own = {r: _defined(block) for r, block in blocks.items()}
    calls = {r: [op for op in walk(block) if op.name == "call" and op.attrs["callee"] in by_callee]
             for r, block in blocks.items()}
    lifted = {
        r: dict.fromkeys(v for v in free_values(block) if v.constant is MISSING)
        for r, block in blocks.items()
    }
    while True:
        before = sum(map(len, lifted.values()))
        for r in made:
            for op in calls[r]:
                lifted[r].update(
                    dict.fromkeys(v for v in lifted[by_callee[op.attrs["callee"]]]
                                  if v not in own[r]))
        if sum(map(len, lifted.values())) == before:
            break
    for r in made:
        for v in [v for v in free_values(blocks[r]) if v.constant is not MISSING]:
            again = Op(v.op.record, [], dict(v.op.attrs), [], [], v.op.line)
            again.outputs = [Value(v.type, v.name, again)]
            blocks[r].ops.insert(0, again)
            substitute(blocks[r], {v: again.output})
    for r in made:
        taken = {p.name for p in blocks[r].params}
        inner = {}
        for k, v in enumerate(lifted[r]):
            name = v.name if v.name and v.name not in taken else f"{v.name or 'captured'}_{k}"
            taken.add(name)
            inner[v] = Value(v.type, name)
        for op in calls[r]:
            op.inputs += lifted[by_callee[op.attrs["callee"]]]
        substitute(blocks[r], inner)
        blocks[r].params += inner.values()
        r.lifted, r.closed = list(lifted[r]), True


def _defined(block: Block) -> set[Value]:
    found = set(defined_values(block))
    for op in walk(block):
        found.update(op.outputs)
        for inner in op.blocks:
            found.update(inner.params)
    return found
