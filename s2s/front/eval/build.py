"""`build`: compile a Python function for given argument types to IR.  `Callee`: the same, cached
per types.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...errors import S2SError, Source, TypeMismatchError, UndecidedError, UnsupportedError
from ...ir.builder import Builder, at, symbols_of
from ...ir.graph import (
    MISSING,
    Block,
    Function,
    Meeting,
    Value,
    Writes,
    free_values,
    identifier,
    walk,
)
from ...ir.reemit import rebuild
from ...ir.types import Scalar, Static, Tuple, Type, canonical_types
from ...ops.core.control import make_undefined
from ...ops.core.record import MemberTuple
from ...ops.program.checkpoint import Checkpointed
from ...ops.program.custom_rules import rules_given
from ...ops.program.effects import has_effects
from ...transform.cleanup.tables import prepared_callee
from ..control.recursion import CallsItself, call_recursive
from ..domain.checkpoint_calls import mark, outline
from ..domain.frame import Frame, NeedsHolder, PathEnded, Session, Tables
from ..domain.heap import Cell, Container, SharedError, cells_in
from ..domain.optional import has_maybe
from ..domain.outside import ALL, NeedsTracking, Outside, place_of
from ..domain.repeated_calls import share_repeated
from ..domain.result_aliases import identities, is_shared_inside
from ..syntax.captures import Item, Length, Member, is_data, type_of_data
from ..syntax.dependencies import (
    EqualShapes,
    Kind,
    collect_dependencies,
    is_current,
    kind_of,
    note_dependencies,
    note_dependency,
)
from ..syntax.find_source import definition_of
from ..values.activation import run
from ..values.captured_writes import bind_state, mark_carried, store_arrays
from ..values.dicts import RuntimeKeys
from ..values.unwrap import demand
from . import composites, sequence_calls, tree_calls  # noqa: F401
from .apply import apply, bound_arguments, default_binding, outside_definition, run_part
from .attributes import attribute
from .call_graph import may_call_itself
from .comprehensions import comprehension
from .python_builtins import BUILTINS
from .statements import execute
from .unwrap_callable import names_of, signature_of, target_of


def parameters(function: Callable) -> list[inspect.Parameter]:
    """The unbound parameters of `function`, in order."""
    return list(signature_of(function).parameters.values())


def build(function: Callable, types: Sequence[Type]) -> Function:
    """The IR of `function` for arguments of these types, one per parameter (those of `*args`
    spread).

    Parameters beyond `types` have their defaults' types.  Raises SourceError, UnsupportedError and
    TypeMismatchError, each with the user's line.
    """
    built = _build(function, types)
    if built.leaving is not None:
        raise built.leaving
    return built.function


@dataclass(frozen=True)
class BuiltFunction:
    """The IR of a function for some types, with its effects on the caller."""

    function: Function
    # set if no `call` op can express it: it changes its arguments, returns memory of theirs or
    # overlapping views, or may return None
    in_place: bool
    changes: bool  # whether it may change its arguments
    # the error to raise for calls from outside the program
    leaving: UnsupportedError | None
    identities: object  # which of the results are one object: front/domain/result_aliases.py
    # getter -> the function or other object that a name referred to
    consulted: dict[Callable, object]

    def is_current(self) -> bool:
        """Whether captured names still refer to the same objects, and captured data has the same
        types, as at the build.
        """
        try:
            return is_current(self.consulted) and all(
                kind_of(type_of_data(getter(), param.name)) == kind_of(param.type)
                for param, getter in zip(self.captured, self.function.captures.values()))
        except (S2SError, ValueError, KeyError, AttributeError):
            return False

    @property
    def captured(self) -> list[Value]:
        """The parameters for captured data."""
        return self.function.params[len(self.function.params) - len(self.function.captures):]


def _build(function: Callable, types: Sequence[Type]) -> BuiltFunction:
    keyed: set = set()
    tracked: dict = {}
    flags: set = set()
    one_of: set = set()
    holding: set = set()
    unrolled: set = set()
    recursive: set = set()
    in_order: set = set()
    tables = Tables()
    first = None
    while True:
        asked = len(one_of)
        try:
            with collect_dependencies() as found:
                made = _run(function, types, keyed, tracked, flags, one_of, holding, unrolled,
                            recursive, in_order, tables)
                _forget_covered(found, tables.getters, made[0])
                return BuiltFunction(*made, found)
        except NeedsTracking as asked:
            tracked[asked.place] = asked.getter, asked.name
        except NeedsHolder as asked:
            holding.add(asked.place)
        except CallsItself as asked:
            recursive.add(asked.node)
        except RecursionError:
            if first is None:
                raise
            raise first from None
        except RuntimeKeys as error:
            if not flags.issuperset(error.places):  # known when code is generated
                flags.update(error.places)
            elif error.site is not None and error.site not in keyed:
                keyed.add(error.site)
            elif unrolled.issuperset(error.unrolled):
                raise first or error from None
            else:
                first = first or error
                unrolled |= error.unrolled
        except S2SError as error:
            if tables.used:
                tables, one_of = Tables(allowed=False), set()
                continue
            first = first or error
            one_of |= error.carriers
            if not unrolled.issuperset(error.unrolled):
                unrolled |= error.unrolled
                continue
            if getattr(error, "in_order", None) not in (None, *in_order):
                in_order.add(error.in_order)
                continue
            if flags.issuperset(error.flags) and len(one_of) == asked:
                raise first from None
            flags.update(error.flags)
            if len(one_of) > asked:
                first = None  # that write may be understood next time


def _forget_covered(found: dict[Callable, object], tables: dict, function: Function) -> None:
    """Drop the dependencies on members of captured lists that are parameters as a whole, and on
    the lists that are not, in place.
    """
    read = {*function.captures.values()}
    wholes = {*tables.values()}
    for getter in [*found]:
        if not isinstance(getter, (Kind, EqualShapes)) or getter.of in read:
            continue
        owner = getter.of
        while isinstance(owner, (Item, Member, Length)) and owner not in tables:
            owner = owner.owner
        if getter.of in wholes or owner is not getter.of and tables.get(owner) in read:
            del found[getter]


def _run(
    function: Callable, types: Sequence[Type], keyed: set, tracked: dict, flags: set, one_of: set,
    holding: set, unrolled: set, recursive: set, in_order: set, tables: Tables
) -> tuple[Function, bool, bool, UnsupportedError | None, object]:
    target = target_of(function)
    plain = target.function
    definition = definition_of(plain)
    note_dependency(rules_given, rules_given())
    block = Block()
    session = Session(execute, callee_of, comprehension, lambda frame, source: BUILTINS[list]
                      (frame, None, source), block, apply, run_part,
                      default_binding, attribute, demand,
                      keyed=keyed, outside=Outside(tracked), flags=flags, one_of=one_of,
                      holding=holding, unrolled=unrolled, recursive=recursive, tables=tables)
    closure = dict(zip(plain.__code__.co_freevars, plain.__closure__ or ()))
    frame = Frame(definition.node, definition.body, definition.source, session, plain.__globals__,
                  closure)
    session.taken.update(frame.locals)
    meetings: list[Meeting] = []
    with Builder(block, meetings=meetings), at(frame.line(definition.node)):
        args, keywords, params = _arguments(frame, function, types)
        block.params = params
        session.taken.update(p.name for p in params)
        held = [_held(frame, getter, f"arg{k}") for k, getter in enumerate(target.arguments)]
        kept = {
            name: _held(frame, getter, name)
            for name, getter in target.keywords if name not in keywords
        }
        bindings = bound_arguments(frame, signature_of(plain), plain.__name__,
                                   [*held, *args], {**kept, **keywords}, definition.node)
        cells = [cell for binding in bindings.values() for cell in frame.reachable_cells(binding)]
        before = {cell: frame.heap.contents[cell] for cell in cells}
        session.given.update(cells)
        argued = {(p.name, path): cell for p, binding in zip(params, args)
                  for path, cell in _parts_of(binding, before)}
        for place in in_order:
            argued[place].contiguous = True
        bind_state(frame)
        try:
            result = run_activation(frame, function, plain, bindings, definition)
            store_arrays(frame)
            tupled = type(result) is tuple or isinstance(result, MemberTuple)
            optional = has_maybe(result)
            block.yields = [make_undefined()] if session.leaving else [
                frame.value(y)
                for y in (result if tupled else [demand(frame, result, what="the result")])
            ]
        except PathEnded:
            result, tupled, optional, block.yields = None, False, False, [make_undefined()]
        except RuntimeKeys as error:
            error.places = _integers_outside(error.keys, session)
            raise
        except UndecidedError as error:
            error.conditions = () if error.value is None else (error.value,)
            _name_flags(error, params, session)
            raise
        except S2SError as error:
            _name_flags(error, params, session)
            if isinstance(error, SharedError):  # where it is, for the next attempt
                error.in_order = next((place for place, cell in argued.items()
                                       if cell is error.in_order), None)
            raise
    outline(block, session)
    changes = any(frame.heap.contents[cell] is not content for cell, content in before.items())
    captured = {cell for _, binding in session.captures.values() for cell in cells_in(binding)}
    shared = {root for cell in (*cells, *captured) for root in cell.roots}
    shares = any(cell.family() & shared for cell in frame.reachable_cells(result))
    if changes and session.leaving is None and _has_no_effect(block):
        session.leaving = UnsupportedError(
            f"{name_of(function)}, which writes to its arguments and returns nothing: what s2s "
            "makes of a function leaves its caller's arrays as they are",
            frame.line(definition.node),
            "return what is written to")
    _drop_unread_members(block)
    captures = _used_captures(block, session)
    mark_carried(block, captures, session.outside.asked)
    block.params = [*block.params, *(param for param, _ in captures.values())]
    made = Function(name_of(function), block,
                    _source_to_show(function) or definition.source,
                    inspect.cleandoc(plain.__doc__ or ""), tupled, {
                        param.name: getter
                        for getter, (param, _) in captures.items()
                    }, _defaults(function), _length_equalities(meetings, block.params),
                    writes=Writes(frozenset(
                        place for place, cell in argued.items()
                        if frame.heap.contents.get(cell) is not before.get(cell)),
                        frozenset(p.name for p in block.params), frozenset(in_order)))
    share_repeated(block, session, prepared_callee)
    changes = changes or session.doubtful
    inside = (changes or shares or optional or bool(session.outside.written)
              or session.leaving is not None or is_shared_inside(frame.heap, result))
    return made, inside, changes, session.leaving, None if inside else identities(
        frame.heap, result)


def _parts_of(binding, before: dict, path: tuple = (), seen: tuple = ()) -> Iterator[tuple]:
    """The arrays, lists and objects in an argument, each with the path to it; `before` are the
    contents that they are given with.
    """
    if any(binding is other for other in seen):
        return
    if isinstance(binding, (Cell, Container)):
        yield path, binding
    content = before.get(binding) if isinstance(binding, (Cell, Container)) else binding
    members = (content.items() if isinstance(content, dict) else enumerate(content)
               if isinstance(content, (tuple, list)) else ())
    for key, member in members:
        yield from _parts_of(member, before, (*path, key), (*seen, binding))


def _computed_of(x: Value, params: list[Value]) -> tuple[int, ...]:
    """The positions of the parameters that `x` depends on; none if it depends on anything else, or
    on arrays.
    """
    found, left = set(), [] if x is None else [x]
    while left:
        x = left.pop()
        if x in params and isinstance(x.type, (Scalar, Tuple)):
            found.add(params.index(x))
        elif x.op is not None and x.op.inputs:
            left.extend(x.op.inputs)
        elif x.constant is MISSING:
            return ()
    return tuple(sorted(found))


def _name_flags(error: S2SError, params: list[Value], session: Session) -> None:
    """Note in an error which arguments, and which captured values, decide whether it arises."""
    if error.extent is not None:
        error.lengths = tuple(k for k, p in enumerate(params)
                              if error.extent.symbol in symbols_of(p.type))
    error.parameters = tuple(dict.fromkeys(
        k for condition in error.conditions for k in _computed_of(condition, params)))
    read = {param: getter for getter, (param, _) in session.captures.items()
            if isinstance(param.type, Scalar) and param.type.dtype in ("bool", "int64")}
    left, found = [*error.conditions], []
    while left:
        x = left.pop()
        if x in read:
            found.append(read[x])
        elif x.op is not None:
            left.extend(x.op.inputs)
    error.flags = tuple(place for getter in found if (place := place_of(getter)) is not None)


def _integers_outside(values: Sequence[Value], session: Session) -> tuple:
    """The places outside of the integers that these values are computed of, and of those beside
    them; none if they are computed of anything else.
    """
    read = {param: getter for getter, (param, _) in session.captures.items()
            if _is_integral(param.type)}
    left, found, seen = [*values], [], set()
    while left:
        x = left.pop()
        if x in read:
            found.append(read[x])
        elif x.constant is MISSING and x not in seen:
            if x.op is None or any(block.params for block in x.op.blocks):
                return ()
            left += [*x.op.inputs, *(y for block in x.op.blocks for y in block.yields)]
        seen.add(x)
    places = [(place_of(getter), isinstance(getter, Item)) for getter in found]
    return tuple((place[0], ALL) if among else place for place, among in places
                 if place is not None)


def _is_integral(type: Type) -> bool:
    return (all(map(_is_integral, type.items)) if isinstance(type, Tuple)
            else isinstance(type, Scalar) and type.dtype in ("bool", "int64"))


def _has_no_effect(block: Block) -> bool:
    """Whether a function returns None and has no visible effect."""
    return (all(y.type == Static(None) for y in block.yields)
            and not any(has_effects(op) for op in walk(block)))


def _source_to_show(function: Callable) -> Source | None:
    """The source of the function inside one with derivative rules, shown in place of a call of it;
    None for others.
    """
    if not hasattr(type(function), "apply_in"):
        return None
    try:
        return definition_of(target_of(function.function).function).source
    except S2SError:
        return None


def run_activation(frame: Frame, function: Callable, plain: types.FunctionType, bindings: dict,
                   definition):
    """The binding that the function returns, run on its parameters."""
    def run_now():
        if may_call_itself(function):
            return call_recursive(frame, outside_definition(plain), bindings, definition.node)
        return run(frame, bindings)

    return (mark(frame.session, name_of(function), definition.source, run_now)
            if isinstance(function, Checkpointed)
            else run_now())


def _length_equalities(meetings: list[Meeting], params: list[Value]) -> tuple[Meeting, ...]:
    """The equalities of extents that arguments determine, each once, for the checks at a call."""
    own = {symbol for p in params for symbol in symbols_of(p.type)}
    found: dict[tuple, Meeting] = {}
    for m in meetings:
        if all(isinstance(d, int) or d.symbol in own for d in (m.a, m.b)):
            found.setdefault((m.a, m.b, m.broadcasts), m)
    return tuple(found.values())


def name_of(function: Callable) -> str:
    """The name of the function in generated code."""
    plain = target_of(function).function
    return identifier(plain.__name__)


def _arguments(frame: Frame, function: Callable,
               types: Sequence[Type]) -> tuple[list, dict, list[Value]]:
    """Positional and keyword bindings, and the parameters of the block behind them."""
    rest, args, keywords, params = list(types), [], {}, []

    def parameter(name: str, type: Type):
        params.append(Value(type, name))
        return frame.wrap(params[-1])

    open_ones = parameters(function)
    names = names_of(function, len(types))
    for k, p in enumerate(open_ones):
        if p.kind is p.VAR_POSITIONAL:
            count = len(rest) - sum(q.kind is not q.VAR_KEYWORD for q in open_ones[k + 1:])
            args += [parameter(names[len(params)], rest.pop(0)) for _ in range(max(count, 0))]
        elif p.kind is p.VAR_KEYWORD:
            # no keywords arrive here: callers that pass some make them parameters
            # (target.WithKeywords)
            continue
        elif not rest and p.default is p.empty:
            raise TypeMismatchError(f"{name_of(function)} is given no argument {p.name}",
                                    frame.line(frame.node), "pass it")
        else:
            type = rest.pop(0) if rest else _default_type(p.default, p.name)
            binding = parameter(p.name, type)
            if p.kind is p.KEYWORD_ONLY:
                keywords[p.name] = binding
            else:
                args.append(binding)
    if rest:
        raise TypeMismatchError(
            f"{name_of(function)} is given {len(types)} arguments and takes {len(open_ones)}",
            frame.line(frame.node), "pass the arguments that it takes")
    return args, keywords, params


def _default_type(default, name: str) -> Type:
    return type_of_data(default, name) if is_data(default) else Static(default)


def _defaults(function: Callable) -> dict[str, object]:
    return {p.name: p.default for p in parameters(function) if p.default is not p.empty}


def _held(frame: Frame, getter: Callable, name: str):
    content = getter()
    return frame.outside(content, getter, name if is_data(content) else "self")


def _drop_unread_members(block: Block) -> None:
    """Drop reads of the members of containers that nothing reads, in place: what was opened."""
    reads = Counter(block.yields)
    for op in walk(block):
        reads.update(op.inputs)
        for inner in op.blocks:
            reads.update(inner.yields)

    def visit(block: Block) -> None:
        for op in reversed(list(block.ops)):
            for inner in op.blocks:
                visit(inner)
            if op.record.structural and not any(reads[y] for y in op.outputs):
                reads.subtract(op.inputs)
                block.ops.remove(op)

    visit(block)


def _used_captures(block: Block, session: Session) -> dict:
    """The captures that the finished block reads, in order of first use."""
    free = set(free_values(block))
    return {getter: entry for getter, entry in session.captures.items() if entry[0] in free}


# ------------------------------------------------------------------------------------------ callees


class Callee:
    """A Python function as the callee of a `call` op: its IR, built once per argument types.

    `count` is how many arguments it is called with, where its parameters do not say (`*args`): what
    follows them in a call are captured values.
    """

    def __init__(self, function: Callable, count: int | None = None):
        self.function, self.name, self.count = function, name_of(function), count
        self.built: dict[tuple, BuiltFunction] = {}
        self.building: set[tuple] = set()

    def __repr__(self) -> str:
        return f"<callee {self.name}>"

    def function_for(self, values: Sequence[Value]) -> Function:
        """The IR for arguments like `values`, which may be followed by the captured values."""
        return self.built_for(values).function

    def built_for(self, values: Sequence[Value]) -> BuiltFunction:
        """The same as a BuiltFunction."""
        types = tuple(v.type for v in values)
        for count in range(len(types), -1, -1) if self.count is None else (self.count,):
            found = self.built.get(self._key(types[:count]))
            if found is not None and found.is_current():
                note_dependencies(found.consulted)
                own = len(found.function.params) - len(found.captured)
                if len(types) == len(found.function.params):
                    return self._with_captures(found, types, own)
                if len(types) == own:
                    return found
        own = parameters(self.function)
        says = all(x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD) for x in own)
        return self._build(types[:len(own) if self.count is None and says else self.count])

    def _with_captures(self, found: BuiltFunction, types: tuple, count: int) -> BuiltFunction:
        if all(a == p.type for a, p in zip(types[count:], found.captured)):
            return found
        key = self._key(types)
        self.built[key] = replace(found, function=rebuild(found.function, list(key)))
        return self.built[key]

    def _build(self, types: tuple) -> BuiltFunction:
        key = self._key(types)
        if key in self.building:
            raise UnsupportedError(f"{self.name} calls itself", None, "write a loop")
        self.building.add(key)
        try:
            built = _build(self.function, key)
            self.built[key] = replace(built, function=prepared_callee(built.function))
        finally:
            self.building.discard(key)
        return self.built[key]

    def _key(self, types: tuple) -> tuple[Type, ...]:
        """The argument types, with extents named after parameters.

        Names are unique: `*a` may bring an `a_0` beside a parameter of that name.
        """
        places: dict[str, None] = {}
        for name in names_of(self.function, len(types)):
            while name in places:
                name += "'"
            places[name] = None
        return canonical_types(types, places)


_callees: weakref.WeakKeyDictionary[types.FunctionType, dict] = weakref.WeakKeyDictionary()
_other_callees: dict[object, dict] = {}


def callee_of(function: Callable, count: int | None = None) -> Callee:
    """The unique Callee of a function, so that all calls of it have the same callee: where it takes
    any number of arguments, all calls with `count` of them.
    """
    if count is not None and not any(p.kind is p.VAR_POSITIONAL for p in parameters(function)):
        count = None
    kept = _callees if isinstance(function, types.FunctionType) else _other_callees
    try:
        by_count = kept.setdefault(function, {})
    except TypeError:  # neither hashable nor weakly referable
        return Callee(function, count)
    if count not in by_count:
        by_count[count] = Callee(function, count)
    return by_count[count]
