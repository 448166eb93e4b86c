"""Run both arms of a run-time condition and join their states (phi nodes as results of one `if`).

Each side starts from the same state and is run into a block of its own.  Names and cells on which
the two disagree become results of one `if` op; a name that nothing reads afterwards is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...errors import S2SError, TypeMismatchError
from ...ir.builder import Builder, current
from ...ir.graph import MISSING, Block, Value
from ...ir.types import Array, Undefined
from ...ops.core.control import if_, make_undefined
from ...ops.core.record import value
from ...ops.program.effects import has_effects
from ..domain.disjoint_arrays import disjoint_cells
from ..domain.frame import (
    EXIT,
    IN_WORDS,
    OUT,
    RAISED,
    RESULT,
    RESULT_OF,
    RETURNED,
    STOP,
    UNBOUND,
    Frame,
    Object,
    PathEnded,
    Text,
    like,
)
from ..domain.functions import ConditionalFunction, ConditionalObject, FunctionValue
from ..domain.heap import UNSURE, Cell, Container, flat_choice, insider
from ..domain.item_places import line_site
from ..domain.optional import Maybe, assume, resolve_optional
from ..values.dicts import unlike_keys
from ..values.exceptions import map_leaves
from ..values.lists import as_list
from ..values.maybe_unbound import go_on_bound, note_arms
from ..values.strings import (
    choices,
    code_of,
    common_words,
    conditional_text,
    is_member,
    is_word,
    with_conditions,
    word,
    words_of,
)
from .choice_cells import ChosenCells
from .escaping_closures import EscapingClosures

NUMBERS = (bool, int, float, complex)


def branch(frame: Frame, condition: Value, then: Callable, otherwise: Callable, live: frozenset,
           assumes: bool = True):
    """Run `then()` or `otherwise()` by a run-time condition; returns the join of their results.

    `live` are the names live after the `if`.  With `assumes`, the condition is assumed to hold in
    the first arm and to fail in the second.  An error names the condition: where that is a flag
    whose value is known elsewhere, only one arm counts (front/eval/build.py).
    """
    if condition.constant is not MISSING:
        return then() if condition.constant else otherwise()
    try:
        return _branch(frame, condition, then, otherwise, live, assumes)
    except S2SError as error:
        error.conditions = (*error.conditions, condition)
        raise


def _branch(frame: Frame, condition: Value, then: Callable, otherwise: Callable, live: frozenset,
            assumes: bool):
    before = frame.snapshot()
    place, filters = (frame.live, frame.pending, frame.kept), frame.session.filters
    arms, states, ended, facts, held = [], [], [], [], []
    assumed = frame.session.assumed
    shared = {cell: (cell.held, cell.alike) for cell in before[1]}
    for body in (then, otherwise):
        frame.restore(before)
        for cell, (own, alike) in shared.items():
            cell.held, cell.alike = own, alike
        frame.session.assumed = dict(assumed)
        if assumes:
            assume(frame.session.assumed, condition, body is then)
        frame.session.filters = filters
        block = Block()
        with Builder(block):
            try:
                frame.env[RESULT_OF] = body()
                ended.append(False)
            except PathEnded:
                frame.live, frame.pending, frame.kept = place
                ended.append(True)
        arms.append(block)
        states.append(frame.snapshot())
        facts.append(frame.session.assumed)
        held.append({cell: (cell.held, cell.alike) for cell in frame.heap.contents})
    frame.session.assumed, frame.session.filters = assumed, filters
    for cell in shared:
        cell.held = frozenset().union(*(after[cell][0] for after in held))
        cell.alike = frozenset().union(*(after[cell][1] for after in held))
    if any(ended):
        assumed.update(facts[ended.index(False)] if False in ended else {})
        return _continue_after(frame, condition, arms, states, ended)
    frame.restore(before)
    join = Join(frame, condition, arms, states, before[1], facts)
    first, second = states[0][0], states[1][0]
    note_arms(frame, first, second, live)
    pairs = {name: (first.get(name, UNBOUND), second.get(name, UNBOUND))
             for name in dict.fromkeys((*before[0], *first, *second)) if frame.is_live(name, live)}
    join.parted = disjoint_cells(frame, [*pairs.values()], join.heaps, [{
        cell: own
        for cell, (own, _) in arm.items()
    } for arm in held])
    joined = {
        name: join.bindings(a, b, name)
        for name, (a, b) in pairs.items() if a is not UNBOUND or b is not UNBOUND
    }
    cells = [cell for cell in before[1] if states[0][1].get(cell) is not states[1][1].get(cell)
             or states[0][1].get(cell) is not before[1][cell]]
    waiting = () if frame.caller is None else frame.caller.reachable(True)
    needed = join.needed.union(frame.session.given,
                               (root for name, cell in waiting for root in cell.roots))
    changed = join.changed(cells, needed)
    outputs = join.emit(condition)
    for cell, place in changed:
        frame.heap.contents[cell] = place(outputs)
    frame.env = {name: place(outputs) for name, place in joined.items()}
    frame.env.update(_keep_unread(before[0], states, frame.env))
    return frame.env.pop(RESULT_OF)


def _keep_unread(before: dict, states: list[tuple], joined: dict) -> dict:
    """Keep the former bindings of numbers and arrays that are not read after these arms: they are
    not unbound.

    Otherwise an enclosing `if`, after whose other arm they are read, would need a flag: `if done:
    (if x > 0: m = 2 * m); break` inside a loop.
    """
    return {
        name: binding
        for name, binding in before.items()
        if name not in joined and isinstance(binding, (Value, Cell, *NUMBERS)) and all(
            name in env for env, *_ in states)
    }


def _continue_after(frame: Frame, condition: Value, arms: list[Block], states: list,
                    ended: list[bool]):
    """Emit the raising arms inside the `if`; the other arm continues after it."""
    def splice(k: int) -> tuple:
        if ended[k]:
            current().block.ops.extend(arms[k].ops)
        return ()

    if_(condition, lambda: splice(0), lambda: splice(1))
    if all(ended):
        raise PathEnded
    k = ended.index(False)
    current().block.ops.extend(arms[k].ops)
    frame.restore(states[k])
    return frame.env.pop(RESULT_OF)


def with_either(frame: Frame, chosen: ConditionalObject, use: Callable):
    """The join of `use(x)` of the one object and of the other, by the condition."""
    first, second = chosen.objects
    return branch(frame, chosen.condition, lambda: use(first), lambda: use(second),
                  frame.live | frame.pending)


def unless_left(frame: Frame, leaving: Value, rest: Callable, live: frozenset) -> None:
    """Run `rest()` unless the flag `leaving` is set: an earlier statement has left the block."""

    def go_on() -> None:
        clear_flags(frame)
        rest()

    branch(frame, leaving, lambda: has_left(frame, leaving), go_on, live)


def has_left(frame: Frame, leaving: Value) -> None:
    """Note that the flag `leaving` is set on this side."""
    for flag in (EXIT, STOP, RETURNED, RAISED):
        if frame.env[flag] is leaving:
            frame.env[flag] = True


def clear_flags(frame: Frame) -> None:
    """Clear the flags of early exit."""
    for flag in (EXIT, STOP, OUT, RETURNED, RAISED):
        frame.env[flag] = False
    frame.env.pop(RESULT, None)
    go_on_bound(frame.env)


class Join:
    """The pairs of Values in which two arms differ, and how to rebuild the joined bindings from the
    results of the `if`.
    """

    def __init__(self, frame: Frame, condition: Value, arms: list[Block], states: list[tuple],
                 before: dict, facts: list[dict]):
        self.condition, self.facts = condition, facts
        self.frame, self.arms = frame, arms
        self.heaps, self.seen = [contents
                                 for _, contents, _ in states], [seen for _, _, seen in states]
        self.pairs: list[tuple[Value, Value]] = []
        self.names: list[str] = []
        self.cells: dict[tuple[Cell, Cell], Callable] = {}
        self.needed: set[Cell] = set()
        self.parted: frozenset[tuple[Cell, Cell]] = frozenset()
        self.constants: dict[tuple, Value] = {}
        self.outside = ChosenCells(frame.heap, arms, before, self._pair_of_arm)

    def bindings(self, a, b, name: str) -> Callable:
        """A function from the outputs of the `if` to the join of the bindings `a` and `b`."""
        if a is b:
            self.needed.update(root for cell in self.frame.reachable_cells(a)
                               for root in cell.roots)
            return lambda outputs: a
        a, b = resolve_optional(self.facts[0], a), resolve_optional(self.facts[1], b)
        # reads test whether it is bound first
        if (a is None or b is None) and (a is UNBOUND or b is UNBOUND):
            return lambda outputs: None
        if (a is None) is not (b is None) and words_of(b if a is None else a) is not None:
            return self._words(a, b, name)
        if isinstance(a, Maybe) or isinstance(b, Maybe) or (a is None) is not (b is None):
            return self.maybe(a, b, name)
        for join in (self._sequences, self._objects, self._mutables, self._constants, self._texts,
                     self._numbers, self._functions):
            place = join(a, b, name)
            if place is not None:
                return place
        raise self._mismatch(a, b, name)

    def _mismatch(self, a, b, name: str) -> TypeMismatchError:
        name = {RESULT: "the result", RESULT_OF: "this"}.get(name, name)
        return TypeMismatchError(
            f"{name} is {describe(a)} on one path and {describe(b)} on another",
            current().line, "give it one kind of value on all paths")

    # Each of these joins bindings of some kinds, and returns None for others.

    def _sequences(self, a, b, name: str) -> Callable | None:
        if isinstance(a, (tuple, list)) and type(a) is type(b) and len(a) == len(b):
            items = [self.bindings(x, y, name) for x, y in zip(a, b)]
            return lambda outputs: like(a, [item(outputs) for item in items])
        if isinstance(a, slice) and isinstance(b, slice) and _slice_bounds(a) == _slice_bounds(b):
            bounds = [self.bindings(*pair, name) for pair in zip(_bounds(a), _bounds(b))]
            return lambda outputs: slice(*(bound(outputs) for bound in bounds))
        if a is UNBOUND and isinstance(b, (tuple, list)):
            return self.bindings(like(b, [UNBOUND for _ in b]), b, name)
        if b is UNBOUND and isinstance(a, (tuple, list)):
            return self.bindings(a, like(a, [UNBOUND for _ in a]), name)
        return None

    def _mutables(self, a, b, name: str) -> Callable | None:
        """The join of containers, or of cells: of arrays and lists.  Where only one arm binds one,
        and it existed before, it stays the same.
        """
        if UNBOUND in (a, b) and (place := self._existing_object(a, b)) is not None:
            return place
        if (isinstance(a, Container) and isinstance(b, Container)
                or UNBOUND in (a, b) and isinstance(a if b is UNBOUND else b, Container)):
            new = self._new_container
        elif all(isinstance(x, Cell) or x is UNBOUND and isinstance(self.known(y), tuple)
                 for x, y in ((a, b), (b, a))):
            new = self._new_cell
        else:
            return None
        if (a, b) not in self.cells:
            self.cells[a, b] = new(a, b, name)
        return self.cells[a, b]

    def _objects(self, a, b, name: str) -> Callable | None:
        """The join of objects of unlike classes, each of which stays what it is."""
        given = [x for x in (a, b) if x is not UNBOUND]
        if (not all(isinstance(x, (Container, ConditionalObject)) for x in given)
            or not any(isinstance(x, ConditionalObject) for x in given)
                and (len(given) < 2 or a.cls is b.cls or a.is_dict or b.is_dict
                     or any(insider(x) is not None for x in given))):
            return None
        made = [None if x is UNBOUND else self.object(x, side, name)
                for side, x in enumerate((a, b))]
        if None in made:
            return made[0] or made[1]
        return lambda outputs: ConditionalObject(self.condition,
                                                 tuple(x(outputs) for x in made))

    def object(self, x, side: int, name: str) -> Callable:
        """A function from the outputs to the object `x`, valid after the `if`."""
        if isinstance(x, ConditionalObject):
            which = self.one(x.condition, side, "")
            each = [self.object(y, side, name) for y in x.objects]
            return lambda outputs: ConditionalObject(which(outputs),
                                                     tuple(y(outputs) for y in each))
        made = self.one(x, side, name)
        if self.outside.container(x, side) is not None:
            return made

        def joined(outputs) -> Container:
            found = made(outputs)
            found.origins |= x.family()
            return found

        return joined

    def _existing_object(self, a, b) -> Callable | None:
        """A function from the outputs to the object or the list of known length that one arm binds,
        where it existed before the `if`, and the other arm binds nothing.
        """
        side = 0 if b is UNBOUND else 1
        x = (a, b)[side]
        if isinstance(x, Container):
            place = self.outside.container(x, side)
        else:
            is_list = isinstance(self.known(x), tuple) and x in self.outside.before
            place = (lambda outputs: x) if is_list else None
        if place is not None:
            self.needed.update(root for cell in self.frame.reachable_cells(x)
                               for root in cell.roots)
        return place

    def _constants(self, a, b, name: str) -> Callable | None:
        if not _same_object(a, b):
            return None
        known = a if not isinstance(a, Value) else a.constant
        return lambda outputs: value(known) if isinstance(known, NUMBERS) else known

    def _texts(self, a, b, name: str) -> Callable | None:
        blank = [is_blank(x) for x in (a, b)]
        words = words_of((b, a)[blank[1]]) if any(blank) else None
        if words is not None:
            number = self._pair(*(self._leaf(x, side) if blank[side] else code_of(x, words)
                                  for side, x in enumerate((a, b))), name)
            return lambda outputs: word(outputs[number], words)
        if ((is_word(a) or is_word(b) or is_member(a) or is_member(b))
                and (place := self._words(a, b, name)) is not None):
            return place
        flags = choices(a), choices(b)
        if None not in flags:
            first, second = ([self._pair(*pair, name) for pair in pairs] for pairs in (
                [(flag, value_in(self.arms[1], False)) for flag in flags[0]],
                [(value_in(self.arms[0], False), flag) for flag in flags[1]]))
            return lambda outputs: conditional_text(
                self.condition, with_conditions(a, iter([outputs[k] for k in first])),
                with_conditions(b, iter([outputs[k] for k in second])))
        if isinstance(a, (str, Text)) and isinstance(b, (str, Text)):
            first, second = self._escaping_text(a, 0), self._escaping_text(b, 1)
            return lambda outputs: conditional_text(self.condition, first(outputs), second(outputs))
        return None

    def _words(self, a, b, name: str) -> Callable | None:
        words = common_words(a, b)
        if words is None:
            return None
        codes = []
        for arm, x in zip(self.arms, (a, b)):
            with Builder(arm):
                codes.append(code_of(x, words))
        code = self._pair(*codes, name)
        return lambda outputs: word(outputs[code], words)

    def _numbers(self, a, b, name: str) -> Callable | None:
        if not (_is_number(a) and _is_number(b)):
            return None
        if UNBOUND in (a, b) and (place := self._existing(a, b)) is not None:
            return place
        output = self._pair(self._leaf(a, 0), self._leaf(b, 1), name)
        return lambda outputs: self.frame.either(outputs[output], a, b)

    def _existing(self, a, b) -> Callable | None:
        """A function from the outputs to the array that one arm binds, where it existed before the
        `if`, and the other arm binds nothing: whoever reads it has come through the first.
        """
        side = 0 if b is UNBOUND else 1
        cell = (a, b)[side]
        if not isinstance(cell, Cell) or not isinstance(self._leaf(cell, side).type, Array):
            return None
        place = self.outside.cell(cell, side)
        if place is not None:
            self.needed.update(cell.roots)
        return place

    def _functions(self, a, b, name: str) -> Callable | None:
        if not (is_function(a) and is_function(b)) or any(
                isinstance(x, ConditionalObject) for x in (a, b)):
            return None
        self.needed.update(root for x in (a, b) for cell in self.frame.reachable_cells(x)
                           for root in cell.roots)
        first, second = EscapingClosures(self, 0), EscapingClosures(self, 1)
        made = first.function(a), second.function(b)
        return lambda outputs: ConditionalFunction(
            self.condition, tuple(function(outputs) for function in made))

    def _escaping_text(self, text, side: int) -> Callable:
        """A function from the outputs to a text of one arm; the values it shows become outputs of
        the `if`.
        """
        places: list[int | None] = []

        def place(x: Value) -> Value:
            made = x.op is not None and x.op in self.arms[side].ops
            pair = (x, self._leaf(UNBOUND, 1)) if side == 0 else (self._leaf(UNBOUND, 0), x)
            places.append(self._pair(*pair, x.name) if made else None)
            return x

        def text_after(outputs):
            rest = iter(places)
            return map_leaves(text, lambda x: x if (k := next(rest)) is None else outputs[k])

        map_leaves(text, place)
        return text_after

    def one(self, x, side: int, name: str) -> Callable:
        """A function from the outputs to `x`, which only this arm has."""
        if not isinstance(x, (Value, Cell, Container, ConditionalObject, Maybe, tuple, list)):
            return lambda outputs: x
        return self.bindings(*((x, UNBOUND) if side == 0 else (UNBOUND, x)), name)

    def maybe(self, a, b, name: str) -> Callable:
        """A function from the outputs to the join of bindings of which one may be None."""
        for x in (a, b):
            if not may_be_none(x):
                raise self._mismatch(a, b, name)
        sides = [
            x if isinstance(x, Maybe) else
            Maybe(False, UNBOUND) if x is None or x is UNBOUND else Maybe(True, x) for x in (a, b)
        ]
        flags = [
            x.is_set if isinstance(x.is_set, Value) else value_in(arm, x.is_set)
            for x, arm in zip(sides, self.arms)
        ]
        flag = (flags[0] if flags[0] is flags[1]
                else self._pair(*flags, f"has_{self.frame.label(name) or 'result'}"))
        content = self.bindings(sides[0].content, sides[1].content, name)
        return lambda outputs: Maybe(flag if isinstance(flag, Value) else outputs[flag],
                                     content(outputs))

    def contents(self, cell: Cell) -> Callable:
        """A function from the outputs to the joined content of `cell`."""
        name = next((n for n, binding in self.frame.env.items() if binding is cell), "")
        a, b = (heap[cell] for heap in self.heaps)
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return self.lists(a, b, name)
        output = self._pair(self._leaf(cell, 0), self._leaf(cell, 1), name)
        return lambda outputs: outputs[output]

    def lists(self, a, b, name: str) -> Callable | None:
        """A function from the outputs to the items of two joined lists of equal known length."""
        a, b = (None if x is UNBOUND else x for x in (a, b))
        first, second = a or (UNBOUND,) * len(b or ()), b or (UNBOUND,) * len(a or ())
        if len(first) != len(second):
            return None
        items = [self.bindings(x, y, name) for x, y in zip(first, second)]
        return lambda outputs: tuple(item(outputs) for item in items)

    def changed(self, cells: list, needed: set) -> list[tuple]:
        """(cell, joined content) for each of `cells` that is needed, members of containers
        included.
        """
        found: dict = {}
        while True:
            more = [
                cell for cell in cells
                if cell not in found and (cell in needed or cell in self.needed)
            ]
            if not more:
                return list(found.items())
            for cell in more:
                found[cell] = (self.members(cell) if isinstance(cell, Container)
                               else self.contents(cell))

    def members(self, container: Container) -> Callable:
        """A function from the outputs to the joined members of `container`."""
        a, b = (heap[container] for heap in self.heaps)
        outside = self.frame.session.outside
        if container is outside.state:
            for place in a.keys() ^ b.keys():
                raise self.frame.refuse(
                    f"{outside.tracked[place][1]}, which lives outside the function, has a value "
                    "on some paths only", None, "give it a value before the call")
            b = {place: b[place] for place in a}
        if a.keys() != b.keys() and (error := unlike_keys(container, a, b)) is not None:
            raise error
        name = next((n for n, binding in self.frame.env.items() if binding is container),
                    f"a {container.cls.__name__}")
        return self._joined_members(a, b, container.form_with(a), container.form_with(b), name)

    def _joined_members(self, a: dict, b: dict, form_a, form_b, name: str) -> Callable:
        if form_a.cls is form_b.cls and form_a.kind == form_b.kind == "attributes":
            if set(a) != set(b):
                every = dict.fromkeys((*a, *b), UNSURE)
                a, b = {**every, **a}, {**every, **b}
                form_a = form_b
        if form_a != form_b:
            raise TypeMismatchError(
                f"{name} is {form_a} on one path and {form_b} on another",
                current().line,
                "give it the same keys or attributes, in the same order, on all paths")
        places = {
            key: (lambda outputs: UNSURE) if a[key] is UNSURE or b[key] is UNSURE else
            self.bindings(a[key], b[key], f"{name}_{key}" if str(key).isidentifier() else name)
            for key in a
        }
        return lambda outputs: {key: place(outputs) for key, place in places.items()}

    def _new_container(self, a, b, name: str) -> Callable:
        """A container that is `a` or `b`, each UNBOUND or a container."""
        one = b if a is UNBOUND else a
        site = line_site("chosen")
        if (site in self.frame.session.one_of and UNBOUND not in (a, b)
            and (place := self._chosen_container(a, b)) is not None):
            return place
        held = [
            None if x is UNBOUND else self._members(x, side) for side, x in enumerate((a, b))
        ]
        blank = dict.fromkeys(held[0] if held[1] is None else held[1], UNBOUND)
        first, second = (blank if members is None else members for members in held)
        forms = [
            one.form_with(first) if x is UNBOUND else x.form_with(m)
            for x, m in ((a, first), (b, second))
        ]
        place = self._joined_members(first, second, *forms, IN_WORDS.get(name, name))
        origins = frozenset().union(*(x.family() for x in (a, b) if x is not UNBOUND))
        made: list[Container] = []

        def joined(outputs):
            if not made:
                made.append(self.frame.heap.new_container(one.cls, place(outputs), one.factory))
                made[0].origins = origins if UNBOUND not in (a, b) else frozenset()
                made[0].carriers |= {site}
            return made[0]

        return joined

    def _chosen_container(self, a: Container, b: Container) -> Callable | None:
        """A function from the outputs to the container that is one of two that existed before the
        `if`, or lies at one of two places of the same list; None if there is no such container.
        """
        if a.cls is not b.cls:
            return None
        arms = [self.outside.container(x, k) for k, x in enumerate((a, b))]
        if None in arms:
            return None
        self.needed.update((*a.roots, *b.roots))
        first, second = a.place, b.place
        if (first is not None and second is not None and first.xs is second.xs
            and first.path == second.path):
            output = self._pair(first.index, second.index, "")
            fixed = first.is_fixed and second.is_fixed
            return lambda outputs: replace(
                arms[0](outputs), place=replace(first, index=outputs[output], is_fixed=fixed))
        return lambda outputs: Container(a.heap, a.cls, a.factory, choice=flat_choice(
            self.condition, *(arm(outputs) for arm in arms)))

    def _members(self, x: Container, side: int) -> dict:
        """The members of a container at the end of an arm."""
        if x.place is None and x.choice is None:
            return self.heaps[side].get(x, x.initial)
        with self._at_end(side):
            return x.members

    @contextmanager
    def _at_end(self, arm: int) -> Iterator[None]:
        """A context in which ops are emitted at the end of an arm, and the heap is as it is there.
        """
        heap = self.frame.heap
        kept = heap.contents, heap.seen
        with Builder(self.arms[arm]):
            heap.contents, heap.seen = dict(self.heaps[arm]), self.seen[arm]
            try:
                yield
            finally:
                heap.contents, heap.seen = kept

    def emit(self, condition: Value) -> tuple[Value, ...]:
        """Emit the `if` op from the ops of the arms."""
        if not self.pairs and not any(has_effects(op) for arm in self.arms for op in arm.ops):
            return ()

        def splice(k: int) -> list[Value]:
            current().block.ops.extend(self.arms[k].ops)
            return [pair[k] for pair in self.pairs]

        return if_(condition, lambda: splice(0), lambda: splice(1), self.names)

    def _pair(self, a: Value, b: Value, name: str) -> int:
        if (a, b) not in self.pairs:
            self.pairs.append((a, b))
            self.names.append(self.frame.label(name))
        return self.pairs.index((a, b))

    def _pair_of_arm(self, arm: int, x: Value | Cell, otherwise) -> int:
        pair = [self._leaf(x, arm), self._leaf(otherwise, 1 - arm)]
        return self._pair(*(pair if arm == 0 else pair[::-1]), "")

    def _new_cell(self, a: Cell, b: Cell, name: str) -> Callable:
        known = [heap.get(x) if isinstance(x, Cell) else x for heap, x in zip(self.heaps, (a, b))]
        if (all(isinstance(x, tuple) or x is UNBOUND for x in known)
            and (UNBOUND in known or len(known[0]) == len(known[1]))):
            items = self.lists(*known, name)
            return self._joined_cell(items, (a, b))
        leaves = self._leaf(a, 0), self._leaf(b, 1)
        output = self._pair(*leaves, name)
        if (a, b) in self.parted:
            return self._joined_cell(lambda outputs: outputs[output], ())
        choice = None
        if all(isinstance(leaf.type, Array) for leaf in leaves):
            choice = self.outside.choice(self.condition, (a, b), output)
        if choice is not None:
            self.needed.update((*a.roots, *b.roots))
        return self._joined_cell(lambda outputs: outputs[output], (a, b), choice)

    def _joined_cell(self, content: Callable, sources: tuple,
                     choice: Callable | None = None) -> Callable:
        """A function from the outputs to one new cell that is, or may be, one of the two at the
        ends of the arms.
        """
        made = []

        def place(outputs):
            chosen = choice(outputs) if choice is not None and not made else None
            if chosen is not None:
                made.append(chosen)
            elif not made:
                made.append(
                    self.frame.heap.new(
                        content(outputs),
                        [c for x in sources if isinstance(x, Cell) for c in x.family()]))
                for x in sources:
                    if isinstance(x, Cell):
                        made[0].held |= x.root.held
                        made[0].alike |= x.root.alike
            return made[0]

        return place

    def known(self, binding):
        """The items of a list at the end of an arm, if its length is known."""
        return next(
            (heap[binding] for heap in self.heaps
             if isinstance(heap.get(binding), tuple)), None) if isinstance(binding, Cell) else None

    def _leaf(self, binding, arm: int) -> Value:
        """The Value of a leaf at the end of an arm."""
        if isinstance(binding, Value):
            return binding
        with Builder(self.arms[arm]):
            if binding is UNBOUND:
                return make_undefined()
            if not isinstance(binding, Cell):
                key = arm, type(binding), repr(binding)
                if key not in self.constants:
                    self.constants[key] = value(binding)
                return self.constants[key]
        with self._at_end(arm):
            items = self.frame.heap.items(binding)
            return self.frame.heap.read(binding) if items is None else as_list(self.frame, binding)


def value_in(arm: Block, constant) -> Value:
    """A constant at the end of an arm."""
    with Builder(arm):
        return value(constant)


def _is_number(binding) -> bool:
    return isinstance(binding, (Value, Cell, *NUMBERS)) or binding is UNBOUND


def may_be_none(binding) -> bool:
    """Whether a binding can be joined with None: data, or None."""
    if isinstance(binding, (tuple, list)):
        return all(map(may_be_none, binding))
    return (binding is None or isinstance(binding, (Container, ConditionalObject))
            or _is_number(binding))


def is_function(binding) -> bool:
    """Whether a binding is a function, of the program or from outside."""
    return (isinstance(binding, FunctionValue)
            or not isinstance(binding, (type, Value, Cell, Object)) and callable(binding))


def _bounds(part: slice) -> tuple:
    return part.start, part.stop, part.step


def _slice_bounds(part: slice) -> list[str]:
    """The names of the bounds that a slice has."""
    return [
        name for name, bound in zip(("start", "stop", "step"), _bounds(part)) if bound is not None
    ]


def is_blank(binding) -> bool:
    """Whether nothing is bound yet, or nothing was before a loop that carries the name."""
    return binding is UNBOUND or (isinstance(binding, Value)
                                  and isinstance(binding.type, Undefined))


def _same_object(a, b) -> bool:
    """Whether two compile-time objects are identical."""
    a, b = (x.constant if isinstance(x, Value) and x.constant is not MISSING else x for x in (a, b))
    if isinstance(a, (Value, Cell, FunctionValue)) or isinstance(b, (Value, Cell, FunctionValue)):
        return False
    if isinstance(a, Object) and isinstance(b, Object):
        return a.content is b.content
    return (type(a) is type(b) and isinstance(a, (str, *NUMBERS, type(None))) and (a == b)
            and repr(a) == repr(b))


def describe(binding) -> str:
    """A binding in words, for messages."""
    match binding:
        case Cell():
            return "an array"
        case Value():
            return f"a number ({binding.type})"
        case tuple() | list():
            return f"a {type(binding).__name__} of {len(binding)}"
        case ConditionalObject(_, (a, b)):
            return f"{describe(a)} or {describe(b)}"
        case FunctionValue():
            return "a function"
        case Object():
            return f"a {type(binding.content).__name__}"
        case Container():
            return str(binding.form)
        case None | str():
            return repr(binding)
        case slice():
            return f"a slice with {' and '.join(_slice_bounds(binding)) or 'no bounds'}"
    return "unbound" if binding is UNBOUND else f"a {type(binding).__name__}"
