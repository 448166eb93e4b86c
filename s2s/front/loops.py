"""`for` and `while`: what a loop carries, and the trips that find out.

The names that a trip hands on are those that the body binds and that may be read later; the arrays are
those that the body writes into.  The body is run by `for_loop` and `while_loop` until the types settle.
Where a run shows that the loop carries more than was thought (an alias written through another name, a
tuple where nothing was bound before), it is run again with that knowledge: `Again`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import gast

from ..errors import TypeMismatchError
from ..ir.graph import MISSING, Value
from ..ir.types import UNKNOWN, Undefined
from ..ops.control import for_loop, make_undefined, while_loop
from ..ops.record import value
from .alias import Cell, SharedError, cells_in
from .branches import NUMBERS, branch
from .expressions import assign, condition, evaluate
from .frame import EXIT, RESULT, RETURNED, STOP, UNBOUND, Frame
from .iterables import Iterable, iterable
from .scope import bound_names, changed_names, inside, may_leave, may_stop, names_in, read_names

UNROLL_AT_MOST = 256


class Again(Exception):
    """The loop carries more than was known: run it again."""


@dataclass
class Carried:
    """What is known of a loop so far."""

    names: dict[str, object] = field(default_factory=dict)  # name -> binding on entry
    cells: dict[Cell, None] = field(default_factory=dict)
    origins: dict[str, frozenset] = field(default_factory=dict)  # name -> cells its array may share memory with
    tokens: dict[frozenset, Cell] = field(default_factory=dict)  # two names -> what says that they may share
    guesses: dict[str, object] = field(default_factory=dict)  # name -> type, where it is unbound on entry
    breaks: bool = False
    settled_breaks: bool = False
    test_inside: bool = False
    same_arrays: bool = False  # names keep their arrays until a trip shows otherwise


# ------------------------------------------------------------------------------------------- statements


def run_for(frame: Frame, node: gast.For) -> None:
    """`for target in iterable: body`."""
    source = iterable(frame, evaluate(frame, node.iter), node.iter)
    frame.env[_holder(node)] = source.held
    if source.trips is not None:
        _run_unrolled(frame, node, source)
    else:
        _run_loop(frame, Loop(node, node.body, source))
    frame.env.pop(_holder(node), None)


def run_while(frame: Frame, node: gast.While) -> None:
    """`while test: body`."""
    _run_loop(frame, _printed_loop(frame, node) or Loop(node, node.body, None, (), node.test))


@dataclass(frozen=True)
class Loop:
    """A loop's parts: `setup` are statements that a `while` runs before each test."""

    node: gast.For | gast.While
    body: list
    source: Iterable | None = None
    setup: tuple = ()
    test: gast.AST | None = None


def _printed_loop(frame: Frame, node: gast.While) -> Loop | None:
    """The loop that the printer writes, one op a line, as `while True: <setup>; if not t: break; <body>`."""
    if not (isinstance(node.test, gast.Constant) and node.test.value is True and not node.orelse):
        return None
    for k, stmt in enumerate(node.body):
        match stmt:
            case gast.If(test=gast.UnaryOp(op=gast.Not(), operand=gast.Name(id=name)), body=[gast.Break()], orelse=[]):
                setup = node.body[:k]
                made = set(bound_names(setup))
                if name in made and made <= frame.temporaries and not made & frame.liveness.after[id(stmt)]:
                    return Loop(node, node.body[k + 1:], None, tuple(setup), stmt.test.operand)
                return None
    return None


def _holder(node: gast.AST) -> str:
    return f"<iterable {node.lineno} {node.col_offset}>"


def _run_unrolled(frame: Frame, node: gast.For, source: Iterable) -> None:
    """A loop over something of known length: its body, once for each member."""
    if source.trips > UNROLL_AT_MOST:
        raise frame.refuse(f"a loop over a tuple of {source.trips} members", node.iter, "loop over an array instead")
    live = frame.liveness.heads[id(node)]
    outer = frame.kept
    frame.kept = (*outer, live)

    def trips_from(k: int) -> None:
        if k == source.trips:
            run_else(frame, node)
            return
        assign(frame, node.target, source.get(k), node.target)
        frame.session.execute(frame, node.body, live)
        _continue_unless_stopped(frame, lambda: trips_from(k + 1), live)

    trips_from(0)
    frame.kept = outer
    frame.env[STOP] = frame.env[EXIT] = frame.env[RETURNED]


def _continue_unless_stopped(frame: Frame, rest: Callable, live: frozenset) -> None:
    stop = frame.env[STOP]
    frame.env[EXIT] = stop
    if stop is False:
        rest()
    elif stop is not True:

        def go_on():
            frame.env[EXIT] = frame.env[STOP] = frame.env[RETURNED] = False
            frame.env.pop(RESULT, None)
            rest()

        branch(frame, stop, lambda: None, go_on, live)


def _run_loop(frame: Frame, loop: Loop) -> None:
    node, source = loop.node, loop.source
    live = frame.liveness.heads[id(node)]
    targets = names_in(node.target) if source is not None else []
    before, kept = frame.snapshot(), frame.kept
    carried = Carried(breaks=may_stop(loop.body))
    carried.test_inside = source is None and any(isinstance(n, gast.NamedExpr) for n in inside(loop.test))
    if carried.test_inside:
        carried.breaks = True
    order = {name: k for k, name in enumerate(frame.env)}
    for name in sorted(bound_names([node]), key=lambda name: order.get(name, len(order))):
        if frame.is_live(name, live) and (name not in targets or name in frame.liveness.after[id(node)]
                                          or name in frame.liveness.always):
            carried.names[name] = frame.env.get(name, UNBOUND)
    for name in sorted(changed_names([node]), key=lambda name: order.get(name, len(order))):
        binding = frame.env.get(name, UNBOUND)
        if name in carried.names:
            continue
        if isinstance(binding, Cell):
            carried.cells[binding.root] = None
        elif name in frame.locals and frame.is_live(name, live):
            carried.names[name] = binding
    if may_leave(loop.body, returns_only=True):
        carried.names[RETURNED], carried.names[RESULT] = False, UNBOUND
    if node.orelse and carried.breaks:
        carried.names[STOP] = False
    for _ in range(50):
        frame.restore(before)
        frame.kept = kept
        try:
            return _attempt(frame, loop, carried, live)
        except Again:
            continue
        except SharedError:
            if carried.same_arrays:
                raise
            _suppose_same_arrays(carried)
    raise frame.refuse("what this loop carries from trip to trip cannot be worked out", node,
                       "give its variables one kind of value before the loop")


# --------------------------------------------------------------------------------------------- one attempt


def _attempt(frame: Frame, loop: Loop, carried: Carried, live: frozenset) -> None:
    node, source = loop.node, loop.source
    before = frame.snapshot()
    outer_kept = frame.kept
    inits, names = [], []
    for name, binding in carried.names.items():
        for leaf in _leaves(binding):
            inits.append(_leaf_value(frame, leaf))
            names.append(frame.label(name))
    for cell in carried.cells:
        inits.append(frame.heap.read(cell))
        names.append(next((frame.label(n) for n, b in frame.env.items() if b is cell), inits[-1].name))
    ends: dict[str, object] = {}

    def enter(params: list[Value]) -> dict[str, object]:
        """The state at the head of the loop; returns the carried names' bindings."""
        frame.restore(before)
        frame.kept = (*outer_kept, live)
        rest = params
        entered = {}
        for name, binding in carried.names.items():
            entered[name] = _enter(frame, binding, rest, carried, name)
            if name in (RETURNED, STOP, RESULT):
                continue
            frame.env[name] = entered[name]
        for cell in carried.cells:
            frame.heap.contents[cell] = rest.pop(0)
        frame.heap.seen = {}
        frame.env[EXIT] = frame.env[STOP] = frame.env[RETURNED] = False
        frame.env.pop(RESULT, None)
        frame.live, frame.pending = live | frame.liveness.always, frozenset(read_names([node]))
        return entered

    def body(*params: Value) -> list[Value]:
        params = list(params)
        index = params.pop(0) if source is not None else None
        entered = enter(params)
        if source is not None:
            assign(frame, node.target, source.get(index), node.target)
        if carried.test_inside:
            branch(frame, condition(frame, loop.test), lambda: frame.session.execute(frame, loop.body, live),
                   lambda: _stop(frame), live)
        else:
            frame.session.execute(frame, loop.body, live)
        return _leave(frame, carried, before, entered, ends, live)

    def test(*params: Value) -> Value:
        if carried.test_inside:
            return value(True)
        enter(list(params))
        contents = dict(frame.heap.contents)
        frame.session.execute(frame, list(loop.setup), live, tail=False)
        go_on = condition(frame, loop.test)
        if any(frame.heap.contents[cell] is not contents[cell] for cell in contents):
            carried.test_inside = carried.breaks = True
            raise Again
        return go_on

    if source is not None:
        index = node.target.id if isinstance(node.target, gast.Name) and source.is_range else source.index_name(frame)
        outputs = for_loop(*source.bounds, inits, body, carried.breaks, names, index)
    else:
        outputs = while_loop(inits, test, body, carried.breaks, names)
    frame.restore(before)
    frame.kept = outer_kept
    frame.heap.seen = {}
    _after(frame, loop, carried, ends, list(outputs))


def run_else(frame: Frame, node: gast.For | gast.While) -> None:
    """The `else` of a loop that has not been left."""
    frame.session.execute(frame, node.orelse, frame.liveness.after[id(node)], tail=False)


def _suppose_same_arrays(carried: Carried) -> None:
    """Names that hold an array before the loop may hold that very one in each trip: then nothing is in doubt."""
    carried.same_arrays = True
    for name, binding in list(carried.names.items()):
        if isinstance(binding, Cell):
            del carried.names[name]
            carried.cells[binding.root] = None


def _stop(frame: Frame) -> None:
    frame.env[STOP] = frame.env[EXIT] = True


def _enter(frame: Frame, binding, rest: list[Value], carried: Carried, name: str):
    """The binding of a carried name inside the loop, from the next parameters."""
    match binding:
        case tuple() | list():
            return type(binding)(_enter(frame, item, rest, carried, name) for item in binding)
    if not _is_carried(binding):
        return binding
    param = rest.pop(0)
    if isinstance(param.type, Undefined) and not name.startswith("<"):
        # stands in for a value that the first trip cannot read; a type found later replaces this attempt
        param = Value(carried.guesses.get(name, UNKNOWN), name)
    inside = frame.wrap(param)
    if isinstance(inside, Cell):
        family = binding.family() if isinstance(binding, Cell) else frozenset()
        inside.origins = family | carried.origins.get(name, frozenset())
    return inside


def _leave(frame: Frame, carried: Carried, before: tuple, entered: dict, ends: dict, live: frozenset) -> list[Value]:
    """What the body yields; raises Again where the loop turns out to carry more."""
    stop = frame.env[STOP]
    if carried.breaks and stop is False and not carried.settled_breaks:
        carried.breaks, carried.settled_breaks = False, True
        raise Again
    if not carried.breaks and stop is not False:
        carried.breaks, carried.settled_breaks = True, True
        raise Again
    _find_more(frame, carried, before, live)
    yields = []
    for name, binding in carried.names.items():
        end = frame.env.get(name, UNBOUND)
        if end is entered.get(name) and _stands_in(end):
            raise frame.unbound(name, None)
        yields += _yielded(frame, binding, end, carried, name)
        ends[name] = end
    yields += [frame.heap.contents[cell] for cell in carried.cells]
    _find_sharing(frame, carried, entered, ends)
    return [value(stop), *yields] if carried.breaks else yields


def _stands_in(binding) -> bool:
    return isinstance(binding, Value) and isinstance(binding.type, Undefined)


def _find_more(frame: Frame, carried: Carried, before: tuple, live: frozenset) -> None:
    env, contents, _ = before
    more = False
    for name in {**env, **frame.env}:
        if name not in carried.names and not name.startswith("<") and frame.is_live(name, live):
            if frame.env.get(name, UNBOUND) is not env.get(name, UNBOUND) and name in env:
                carried.names[name] = env[name]
                more = True
    reachable = {cell.root for _, cell in frame.reachable(True)}
    for cell, content in contents.items():
        if cell not in carried.cells and frame.heap.contents.get(cell, content) is not content and cell in reachable:
            carried.cells[cell] = None
            more = True
    if more:
        raise Again


def _yielded(frame: Frame, binding, end, carried: Carried, name: str) -> list[Value]:
    """The Values of a carried name at the end of a trip, laid out as on entry."""
    if binding is UNBOUND and isinstance(end, (tuple, list)):
        carried.names[name] = _unbound_like(end)
        raise Again
    if isinstance(binding, (tuple, list)):
        if end is UNBOUND:
            end = _unbound_like(binding)
        if type(end) is not type(binding) or len(end) != len(binding):
            raise TypeMismatchError(f"{name} is a {type(binding).__name__} of {len(binding)} before the loop and "
                                    "something else after a trip", None, "keep its length and kind the same")
        return [y for a, b in zip(binding, end) for y in _yielded(frame, a, b, carried, name)]
    if not _is_carried(binding):
        if end is binding or (type(end) is type(binding) and end == binding):
            return []
        raise TypeMismatchError(f"{_called(name)} is {binding!r} before the loop and something else after a trip", None,
                                "give it a number or an array before the loop")
    if end is UNBOUND:
        return [make_undefined()]
    if not _is_carried(end):
        if binding is UNBOUND and end is None and name == RESULT:
            carried.names[name] = None
            raise Again
        raise TypeMismatchError(f"{_called(name)} is a number or an array before the loop, or nothing, and "
                                f"{end!r} after a trip", None, "give it one kind of value")
    leaf = _leaf_value(frame, end)
    if binding is UNBOUND and name not in carried.guesses and not isinstance(leaf.type, Undefined) \
            and not name.startswith("<"):
        carried.guesses[name] = leaf.type
        raise Again
    return [leaf]


def _called(name: str) -> str:
    return "the result" if name == RESULT else name


def _unbound_like(binding):
    if isinstance(binding, (tuple, list)):
        return type(binding)(map(_unbound_like, binding))
    return UNBOUND if _is_carried(binding) else binding


def _find_sharing(frame: Frame, carried: Carried, entered: dict, ends: dict) -> None:
    """Record what the arrays of the next trip may share memory with."""
    inner = {cell.root for binding in entered.values() for cell in cells_in(binding)}
    others = {cell.root for name, cell in frame.reachable() if name not in carried.names}
    families = {name: _family(end) for name, end in ends.items()}
    more = False
    for name, family in families.items():
        shared = {cell for cell in family - inner if cell in others}
        for other, its in families.items():
            if other != name and family & its:
                shared.add(carried.tokens.setdefault(frozenset((name, other)), Cell()))
        known = carried.origins.get(name, frozenset())
        if shared - known - _family(entered.get(name)):
            carried.origins[name] = known | shared
            more = True
    if more:
        raise Again


def _family(binding) -> frozenset:
    return frozenset().union(*(cell.family() for cell in cells_in(binding)))


def _after(frame: Frame, loop: Loop, carried: Carried, ends: dict, outputs: list[Value]) -> None:
    """The state after the loop."""
    node = loop.node
    for name, binding in carried.names.items():
        frame.env[name] = _after_one(frame, binding, ends.get(name, binding), outputs, carried, name)
        if frame.env[name] is UNBOUND:
            del frame.env[name]
    for cell in carried.cells:
        frame.heap.contents[cell] = outputs.pop(0)
    endless = isinstance(node, gast.While) and not loop.setup and not may_stop_by_break(node.body) and frame.env[RETURNED] is not False \
        and isinstance(node.test, gast.Constant) and bool(node.test.value)
    if endless:
        frame.env[RETURNED] = True
    returned = frame.env[RETURNED]
    stopped = frame.env[STOP] if STOP in carried.names else returned
    frame.env[EXIT] = frame.env[STOP] = returned
    if node.orelse:
        if stopped is False or (isinstance(stopped, Value) and stopped.constant is False):
            run_else(frame, node)
        else:
            live = frame.liveness.after[id(node)]
            branch(frame, value(stopped), lambda: None, lambda: run_else(frame, node), live)


def may_stop_by_break(body: list) -> bool:
    """Whether a `break` in `body` belongs to the loop around."""
    for stmt in body:
        match stmt:
            case gast.Break():
                return True
            case gast.If():
                if may_stop_by_break(stmt.body) or may_stop_by_break(stmt.orelse):
                    return True
            case gast.For() | gast.While():
                if may_stop_by_break(stmt.orelse):
                    return True
    return False


def _after_one(frame: Frame, binding, end, outputs: list[Value], carried: Carried, name: str):
    if isinstance(binding, (tuple, list)):
        ends = end if isinstance(end, (tuple, list)) else [UNBOUND] * len(binding)
        return type(binding)(_after_one(frame, a, b, outputs, carried, name) for a, b in zip(binding, ends))
    if not _is_carried(binding):
        return binding
    result = outputs.pop(0)
    if name == RETURNED and result.constant is not MISSING:
        return bool(result.constant)
    after = frame.wrap(result)
    if isinstance(after, Cell):
        family = [cell for x in (binding, end) if isinstance(x, Cell) for cell in x.family()]
        after.origins = frozenset(family) | carried.origins.get(name, frozenset())
    return after


# ------------------------------------------------------------------------------------------------ leaves


def _is_carried(leaf) -> bool:
    """Whether a leaf is a run-time value, which a loop can carry."""
    return leaf is UNBOUND or isinstance(leaf, (Value, Cell, *NUMBERS))


def _leaves(binding):
    if isinstance(binding, (tuple, list)):
        for item in binding:
            yield from _leaves(item)
    elif _is_carried(binding):
        yield binding


def _leaf_value(frame: Frame, leaf) -> Value:
    if leaf is UNBOUND:
        return make_undefined()
    return frame.heap.read(leaf) if isinstance(leaf, Cell) else value(leaf)
