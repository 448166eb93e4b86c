"""Evaluate `for` and `while`: run the body repeatedly until the loop-carried variables settle.

The carries are the names that the body binds and that may be read later, and the arrays that it
writes into.  The body is run by `for_loop` and `while_loop` until the types settle.
"""

from __future__ import annotations

from dataclasses import dataclass

import gast

from ...errors import S2SError, TypeMismatchError, UndecidedError, UnsupportedError
from ...ir.builder import at
from ...ir.graph import MISSING, OPERATORS, Value
from ...ir.types import Extent
from ...ops.core.control import for_loop, while_loop
from ...ops.core.record import value
from ...ops.core.shape import extent_of
from ...ops.program.checkpoint import Plan
from ..control.generators import TOTAL, EndlessLoop
from ..control.iterables import Iterable, iterable
from ..control.iterators import OneShotIterator
from ..control.join import branch, clear_flags, unless_left
from ..control.loop_carries import (
    LoopCarries,
    RunAgain,
    asks_choices,
    binding_after,
    carrier,
    cell_after,
    enter_binding,
    enter_cell,
    find_choices,
    is_supposed,
    label,
    leaf_value,
    leave,
    leaves,
    rebind,
    suppose_chosen,
    suppose_more,
)
from ..domain.checkpoint_plans import test_and_plan as planned_test
from ..domain.frame import (
    BOUND,
    EXIT,
    OUT,
    RAISED,
    RESULT,
    RETURNED,
    STOP,
    UNBOUND,
    Frame,
    PathEnded,
)
from ..domain.functions import CarriesFunction, MixedMembers, UnstableCarry
from ..domain.heap import Cell, Container, SharedError
from ..domain.rank_promotion import broadcast_init
from ..syntax.liveness import (
    bound_names,
    changed_names,
    inside,
    may_leave,
    may_stop,
    names_in,
    parts_of_try,
    read_names,
)
from ..syntax.one_raise_per_statement import is_quiet, test_in_body
from ..values.dict_views import TripCheck
from ..values.dicts import RuntimeKeys
from ..values.exceptions import forget, is_flag
from ..values.lists import as_list, is_list, known_range
from ..values.maybe_unbound import is_bound, note_bound
from .assignment import assign
from .expressions import condition, evaluate

UNROLL_AT_MOST = 256
# most trips of an unrolled loop: one that makes keys, that writes an array of a list whose index is
# static in each trip (of a level, say), or that runs over the axes of an array
FOLLOWED_AT_MOST = {RuntimeKeys: 64, SharedError: 16, UndecidedError: 16}


# --------------------------------------------------------------------------------------- statements


def run_for(frame: Frame, node: gast.For) -> None:
    """`for target in iterable: body`."""
    binding = evaluate(frame, node.iter)
    source = iterable(frame, binding, node.iter)
    if source.is_endless and TOTAL in frame.env and not may_stop(
            node.body):
        raise EndlessLoop(frame.refuse("a generator that may go on for ever", node.iter,
                                       "write the loop where its values are used"))
    watch = (binding.watch.again(frame)
             if isinstance(binding, OneShotIterator) and binding.is_early else None)
    frame.env[_holder(node)] = source.held
    outer = frame.session.run_over
    frame.session.run_over = [*outer, *(x for x in source.held if is_list(frame, x))]
    try:
        _run_through(frame, node, source)
    finally:
        frame.session.run_over = outer
    if watch is not None and watch.changed(frame):
        binding.refuse(frame)
    frame.env.pop(_holder(node), None)


def _run_through(frame: Frame, node: gast.For, source: Iterable) -> None:
    if source.trips is not None:
        if not _run_tabulated(frame, node, source):
            _run_unrolled(frame, node, source)
    else:
        before = Before(frame)
        try:
            _run_loop(frame, Loop(node, node.body, source))
        except (CarriesFunction, RuntimeKeys, SharedError, UndecidedError, MixedMembers,
                UnstableCarry) as error:
            indices = known_range(source.bounds)
            if isinstance(error, SharedError) and not error.carriers <= frame.session.one_of:
                raise  # there is something better to try: front/eval/build.py
            if indices is None:
                _ask_for_length(error, source)
            if indices is None or len(indices) > FOLLOWED_AT_MOST.get(type(error), UNROLL_AT_MOST):
                raise
            if (isinstance(error, MixedMembers) and error.ranges
                    and not any(r is source.bounds for r in error.ranges)):
                raise
            before.restore(frame)
            _run_unrolled(
                frame, node,
                Iterable(lambda k: source.get(indices[k]), trips=len(indices), held=source.held))
        except TypeMismatchError as error:
            _ask_for_length(error, source)
            raise


def _ask_for_length(error: S2SError, source: Iterable) -> None:
    """Note that the trips of a loop may be followed one by one where a length is known."""
    extent = extent_of(value(source.bounds[1]))
    if error.extent is None and isinstance(extent, Extent):
        error.extent = extent


# Note [Loops over tables]
# A loop whose members are known one by one, `for t in times`, could always be unrolled; it is a
# loop over a table of them if they are alike and if its body takes them so.  What a body asks for
# shows when it is run: one that uses a member as a key or an axis, or that writes into members, is
# refused with the table, and unrolled.  Lines that were refused once are not tried again, as loops
# inside loops would be tried twice for each loop around them.  What is refused later, as what the
# loop leaves behind (a list that has grown, say) is used, has the whole function built without
# tables: see `_build` in front/eval/build.py.


def _run_tabulated(frame: Frame, node: gast.For, source: Iterable) -> bool:
    """Run the loop over a table of its members; False if that cannot be done."""
    tables = frame.session.tables
    here = (frame.source.filename, node.lineno, node.col_offset)
    if not tables.allowed or here in tables.refused or source.tabulate is None:
        return False
    before, one_of = Before(frame), set(frame.session.one_of)
    cells = {root for held in source.held for cell in frame.reachable_cells(held)
             for root in cell.roots}
    contents = {cell: frame.heap.contents.get(cell) for cell in cells}
    try:
        table = source.tabulate()
        if table is None:
            return False
        frame.env[_holder(node)] = table.held
        _run_loop(frame, Loop(node, node.body, table))
        if all(frame.heap.contents.get(cell) is content for cell, content in contents.items()):
            tables.used = True
            return True
    except S2SError:
        pass
    tables.refused.add(here)
    before.restore(frame)
    frame.session.one_of.intersection_update(one_of)
    frame.env[_holder(node)] = source.held
    return False


def run_while(frame: Frame, node: gast.While) -> None:
    """`while test: body`."""
    if frame.session.tries and not is_quiet(node.test):
        _run_loop(
            frame,
            Loop(node, [test_in_body(frame.outline, node)], test=gast.Constant(True, None),
                 tests_itself=True))
    else:
        _run_while(frame, node)


def _run_while(frame: Frame, node: gast.While) -> None:
    test, plan = planned_test(frame, node.test, evaluate)
    before = Before(frame)
    try:
        _run_loop(frame,
                  _printed_loop(frame, node) or Loop(node, node.body, None, (), test, plan=plan))
    except (CarriesFunction, RuntimeKeys, MixedMembers, TypeMismatchError) as error:
        if plan is not None:
            raise
        before.restore(frame)
        try:
            _run_unrolled_while(frame, node)
        except (UnknownTest, UnsupportedError, TypeMismatchError):
            raise error from None


class UnknownTest(Exception):
    """Signal that the test of a `while` is not known when code is generated."""


# Note [Loops over structure]
# `while node is not None: ...; node = node.next`, `while stack: item = stack.pop(); ...`: such a
# loop carries what has another structure in each trip, and ends when the structure does.  Its test
# is known in each trip, and it is unrolled.  Considered: to ask for that first, before the loop is
# tried as one, which would unroll loops that need not be.


def _run_unrolled_while(frame: Frame, node: gast.While) -> None:
    """Unroll a `while` whose test is known in each trip; raises UnknownTest for others."""
    live, after = frame.liveness.heads[id(node)], _after_else(frame, node)
    outer = frame.kept
    frame.kept = (*outer, live)

    def trips_from(k: int) -> None:
        with at(frame.line(node.test)):
            go_on = condition(frame, node.test).constant
        if go_on is MISSING or k > UNROLL_AT_MOST:
            raise UnknownTest
        if not go_on:
            run_else(frame, node)
            return
        frame.session.execute(frame, node.body, live)
        stop = frame.env[EXIT] = frame.env[STOP]
        if stop is False:
            trips_from(k + 1)
        elif stop is not True:
            if isinstance(node.test, gast.Constant):
                raise UnknownTest
            unless_left(frame, stop, lambda: trips_from(k + 1), after)

    trips_from(0)
    frame.kept = outer
    frame.env[STOP] = frame.env[EXIT] = frame.env[RETURNED]


class Before:
    """The state of a frame before a loop is tried, which may have to be unrolled."""

    def __init__(self, frame: Frame):
        self.state, self.place = frame.snapshot(), (frame.live, frame.pending, frame.kept)
        self.shared = {cell: (cell.held, cell.alike) for cell in self.state[1]}

    def restore(self, frame: Frame) -> None:
        frame.restore(self.state)
        for cell, held in self.shared.items():
            cell.held, cell.alike = held
        frame.live, frame.pending, frame.kept = self.place


@dataclass(frozen=True)
class Loop:
    """The parts of a loop: `setup` are statements that a `while` runs before each test."""

    node: gast.For | gast.While
    body: list
    source: Iterable | None = None
    setup: tuple = ()
    test: gast.AST | None = None
    # the body tests the condition itself, and breaks with OUT where it fails
    tests_itself: bool = False
    plan: Plan | None = None  # the checkpointing plan of a `while`


def _printed_loop(frame: Frame, node: gast.While) -> Loop | None:
    """Recognise the printed form of a `while` with a setup: `while True: <setup>; if not t: break;
    <body>`.
    """
    if not (isinstance(node.test, gast.Constant) and node.test.value is True and not node.orelse):
        return None
    for k, stmt in enumerate(node.body):
        match stmt:
            case gast.If(test=gast.UnaryOp(op=gast.Not(), operand=gast.Name(id=name)),
                         body=[gast.Break()], orelse=[]):
                setup = node.body[:k]
                made = set(bound_names(setup))
                if (name in made and made <= frame.outline.temporaries
                    and not made & frame.liveness.after[id(stmt)]):
                    return Loop(node, node.body[k + 1:], None, tuple(setup), stmt.test.operand)
                return None
    return None


def _holder(node: gast.AST) -> str:
    return f"<iterable {node.lineno} {node.col_offset}>"


def _run_unrolled(frame: Frame, node: gast.For, source: Iterable) -> None:
    """Unroll a loop of known trip count."""
    if source.trips > UNROLL_AT_MOST:
        raise frame.refuse(f"a loop over a tuple of {source.trips} members", node.iter,
                           "loop over an array instead")
    live = frame.liveness.heads[id(node)]
    outer = frame.kept
    frame.kept = (*outer, live)

    def trips_from(k: int) -> None:
        if k == source.trips:
            run_else(frame, node)
            return
        assign(frame, node.target, source.get(k), node.target)
        checked, filters = TripCheck(frame, source.held), frame.session.filters
        frame.session.execute(frame, node.body, live)
        frame.session.filters = filters
        stop = frame.env[EXIT] = frame.env[STOP]
        if stop is not True:
            unless_left(frame, value(stop), lambda: go_on(k + 1, checked), live)

    def go_on(k: int, checked: TripCheck) -> None:
        checked.run(frame, node.iter, live, branch)
        stop = frame.env[STOP]  # where that is thrown inside of a `try`
        if stop is not True:
            unless_left(frame, value(stop), lambda: trips_from(k), live)

    trips_from(0)
    frame.kept = outer
    frame.env[STOP] = frame.env[EXIT] = frame.env[RETURNED]


def _run_loop(frame: Frame, loop: Loop) -> None:
    node, source = loop.node, loop.source
    live = frame.liveness.heads[id(node)]
    targets = names_in(node.target) if source is not None else []
    before, kept, assumed = frame.snapshot(), frame.kept, frame.session.assumed
    carried = LoopCarries(node, breaks=may_stop(loop.body),
                          exposed=frame.liveness.exposed[id(node)])
    counted = known_range(source.bounds) if source is not None else None
    carried.is_counted = counted is not None and len(counted) <= UNROLL_AT_MOST
    carried.test_inside = (source is None
                           and any(isinstance(n, gast.NamedExpr) for n in inside(loop.test)))
    if carried.test_inside:
        carried.breaks = True
    order = {name: k for k, name in enumerate(frame.env)}
    for name in sorted(bound_names([node]), key=lambda name: order.get(name, len(order))):
        if frame.is_live(
                name, live) and (name not in targets or name in frame.liveness.after[id(node)] or
                                 name in frame.liveness.always or name in read_names(node.orelse)):
            carried.names[name] = frame.env.get(name, UNBOUND)
    for name in sorted(changed_names([node]), key=lambda name: order.get(name, len(order))):
        binding = frame.env.get(name, UNBOUND)
        if name in carried.names:
            continue
        if isinstance(binding, Container):
            continue  # the members bound by a trip are found when it is run
        if isinstance(binding, Cell):
            carried.cells.update(dict.fromkeys(binding.roots))
        elif name in frame.locals and frame.is_live(name, live):
            carried.names[name] = binding
    start, carried.held_before = before, {cell: (cell.held, cell.alike) for cell in before[1]}
    _note_unbound(frame, loop, carried)
    if may_leave(loop.body, returns_only=True):
        carried.names[RETURNED], carried.names[RESULT] = False, UNBOUND
    wished: frozenset = frozenset()
    for _ in range(50):
        frame.restore(before)
        frame.kept = kept
        frame.session.assumed = dict(assumed)
        try:
            _attempt(frame, loop, carried, live)
            return
        except RunAgain:
            if carried.grow:
                frame.restore(before)
                for cell in carried.grow:
                    with at(frame.line(node)):
                        as_list(frame, cell)
                carried.grow = {}
                before = frame.snapshot()
            if carried.renewed:
                frame.restore(before)
                frame.heap.contents.update(carried.renewed)
                carried.renewed = {}
                before = frame.snapshot()
            continue
        except SharedError as error:
            frame.session.one_of |= error.carriers & {
                carrier(node, name) for name in (*carried.names, *carried.cells)}
            wished |= error.carriers
            if not (asks_choices(frame, carried) or suppose_more(carried)):
                error.carriers = wished  # of all attempts: front/eval/build.py
                raise
            before = start
            for cell, held in carried.held_before.items():  # the findings of a failed attempt
                cell.held, cell.alike = held
    raise UnstableCarry("what this loop carries from trip to trip cannot be worked out",
                        frame.line(node), "give its variables one kind of value before the loop")


def _note_unbound(frame: Frame, loop: Loop, carried: LoopCarries) -> None:
    """Prepare the flags of carried names that may be unbound before the loop."""
    if frame.outline.is_dump:
        return
    for name in [n for n in carried.names if isinstance(n, str) and not n.startswith("<")]:
        flag = is_bound(frame.env, name)
        if flag is False and loop.source is not None:
            carried.bind_always[name] = None
        elif flag is not True:
            carried.names[BOUND.format(name)] = flag


# -------------------------------------------------------------------------------------- one attempt


def _attempt(frame: Frame, loop: Loop, carried: LoopCarries, live: frozenset) -> None:
    node, source = loop.node, loop.source
    if node.orelse and carried.breaks:
        carried.names.setdefault(OUT if carried.test_inside or loop.tests_itself else STOP, False)
    before = frame.snapshot()
    outer_kept = frame.kept
    find_choices(frame, carried, before)
    inits, names = _initial_values(frame, carried)
    carried.before = before[1]
    carried.held = {cell: (cell.held, cell.alike) for cell in before[1]}
    ends: dict = {}  # by name; of lists by cell
    assumed, filters = frame.session.assumed, frame.session.filters
    ended: list[bool] = []  # whether the test always raises

    def enter(params: list[Value]) -> dict[str, object]:
        """Set the state at the head of the loop; returns the bindings of the carried names."""
        frame.restore(before)
        frame.session.assumed, frame.session.filters = dict(assumed), filters
        frame.kept = (*outer_kept, live)
        rest = params
        entered = {}
        for name, binding in carried.names.items():
            entered[name] = enter_binding(frame, binding, rest, carried, name)
            if not is_flag(name):
                rebind(frame, name, entered[name])
        for cell in carried.cells:
            frame.heap.contents[cell] = enter_cell(frame, cell, rest, carried)
        clear_flags(frame)
        forget(frame)
        frame.live, frame.pending = live | frame.liveness.always, frame.liveness.reads[id(node)]
        return entered

    def body(*params: Value) -> list[Value]:
        params = list(params)
        index = params.pop(0) if source is not None else None
        entered = enter(list(params))
        try:
            if source is not None:
                frame.session.counters[index] = source.bounds
                for name in carried.bind_always:
                    note_bound(frame, name, OPERATORS["not_equal"](index, value(source.bounds[0])))
                assign(frame, node.target, source.get(index), node.target)
                checked = TripCheck(frame, source.held)
            if carried.test_inside:
                branch(frame, condition(frame, loop.test),
                       lambda: frame.session.execute(frame, loop.body, live),
                       lambda: run_out(frame), live)
            else:
                frame.session.execute(frame, loop.body, live)
            if source is not None:
                _check_sizes(frame, node, checked, live)
        except PathEnded:  # there is no next trip: any value will do
            entered = enter(params)
        return leave(frame, carried, before, entered, ends, live)

    def test(*params: Value) -> Value:
        if carried.test_inside:
            return value(True)
        enter(list(params))
        contents = dict(frame.heap.contents)
        try:
            frame.session.execute(frame, list(loop.setup), live, tail=False)
            go_on = condition(frame, loop.test)
        except PathEnded:
            ended.append(True)
            return value(False)
        if any(frame.heap.contents[cell] is not contents[cell] for cell in contents):
            carried.test_inside = carried.breaks = True
            raise RunAgain
        return go_on

    frame.session.loops.append(before[2])
    choosing = frame.session.choosing
    frame.session.choosing = choosing or is_supposed(carried, suppose_chosen)
    try:
        if source is not None:
            index = (node.target.id if isinstance(node.target, gast.Name) and source.is_range
                     else source.index_name(frame))
            outputs = for_loop(
                *source.bounds, inits, body, carried.breaks, names, index,
                source.plan, spread=lambda init, type, block, name: broadcast_init(
                    init, type, source.bounds, block, name))
        else:
            outputs = while_loop(inits, test, body, carried.breaks, names, loop.plan)
    finally:
        frame.session.loops.pop()
        frame.session.choosing = choosing
    if ended:
        raise PathEnded
    frame.restore(before)
    frame.session.assumed, frame.session.filters = assumed, filters
    frame.kept = outer_kept
    _after(frame, loop, carried, ends, list(outputs))


def _check_sizes(frame: Frame, node: gast.For, checked: TripCheck, live: frozenset) -> None:
    """Check after a trip, unless it has left the loop, that what the loop runs over has its size.
    """
    stop = frame.env[STOP]
    if checked and stop is not True:
        exits = frame.env[EXIT]
        frame.env[EXIT] = stop
        if stop is False:
            checked.run(frame, node.iter, live, branch)
        else:
            unless_left(frame, stop, lambda: checked.run(frame, node.iter, live, branch), live)
        if frame.env[EXIT] is stop:
            frame.env[EXIT] = exits


def _initial_values(frame: Frame, carried: LoopCarries) -> tuple[list[Value], list[str]]:
    """The values with which the carries enter the loop, and their names."""
    inits, names = [], []
    for name, binding in carried.names.items():
        for leaf, called in leaves(frame, binding, label(frame, name)):
            inits.append(leaf_value(frame, leaf))
            names.append(called)
    for cell in carried.cells:
        called = next((frame.label(n) for n, b in frame.env.items() if b is cell), "")
        for leaf, _ in leaves(frame, cell):
            inits.append(leaf_value(frame, leaf))
            names.append(called or inits[-1].name)
    return inits, names


def run_else(frame: Frame, node: gast.For | gast.While) -> None:
    """Run the `else` of a loop that was not left by `break`."""
    frame.session.execute(frame, node.orelse, _after_else(frame, node), tail=False)


def _after_else(frame: Frame, node: gast.For | gast.While) -> frozenset:
    """The names live after the `else` of a loop, which may be followed by the next trip of an outer
    loop.
    """
    return frame.liveness.after[id(node)].union(*frame.kept[-1:])


def run_out(frame: Frame) -> None:
    """Handle a failing test inside a trip: end the loop and run its `else`."""
    frame.env[OUT] = frame.env[STOP] = frame.env[EXIT] = True


def _after(frame: Frame, loop: Loop, carried: LoopCarries, ends: dict,
           outputs: list[Value]) -> None:
    """Set the state after the loop."""
    node = loop.node
    if carried.bind_always:
        lo, hi, step = map(value, loop.source.bounds)
        ran = OPERATORS["less"](lo * step, hi * step)
        for name in carried.bind_always:
            note_bound(frame, name, ran)
    for name, binding in carried.names.items():
        after = binding_after(frame, binding, ends.get(name, binding), outputs, carried, name)
        if after is not UNBOUND:
            rebind(frame, name, after)
        else:
            frame.env.pop(name, None)
    for cell in carried.cells:
        frame.heap.contents[cell] = cell_after(frame, cell, ends, outputs, carried)
    endless = isinstance(node, gast.While) and not loop.setup and not may_stop_by_break(node.body) \
        and not (frame.env[RETURNED] is False and frame.env[RAISED] is False) \
        and isinstance(node.test, gast.Constant) and bool(node.test.value)
    if endless:
        frame.env[RETURNED] = True
    if RAISED in carried.names and RETURNED not in carried.names:
        frame.env[RETURNED] = frame.env[RAISED] = endless or frame.env[RAISED]
    returned = frame.env[RETURNED]
    stopped = frame.env[STOP] if STOP in carried.names else returned
    ran_out, frame.env[OUT] = frame.env[OUT], False
    frame.env[EXIT] = frame.env[STOP] = returned

    def go_on() -> None:
        clear_flags(frame)
        run_else(frame, node)

    if node.orelse and OUT in carried.names:
        branch(frame, value(ran_out), go_on, lambda: None, _after_else(frame, node))
    elif node.orelse:
        branch(frame, value(stopped), lambda: None, go_on, _after_else(frame, node))


def may_stop_by_break(body: list) -> bool:
    """Whether a `break` in `body` leaves this very loop."""
    for stmt in body:
        match stmt:
            case gast.Break():
                return True
            case gast.If():
                if may_stop_by_break(stmt.body) or may_stop_by_break(stmt.orelse):
                    return True
            case gast.Try():
                if any(map(may_stop_by_break, parts_of_try(stmt))):
                    return True
            case gast.For() | gast.While():
                if may_stop_by_break(stmt.orelse):
                    return True
    return False
