"""The activation (frame) of one of the user's functions while it is run on abstract Values.

A binding, the abstract value of a name, is a Cell (an array, see heap.py), a Value (a number), a
tuple or list of bindings, a function that the program made (functions.py), or any other Python
object, which is static.  Names that no program can have, such as "<exit>", hold the flags of
control flow, so that branches and loops join them like any other variable.
"""

from __future__ import annotations

import builtins
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import CellType, FunctionType, ModuleType

import gast
import numpy as np

from ...errors import Line, Source, TypeMismatchError, UndecidedError, UnsupportedError
from ...ir.builder import current
from ...ir.graph import MISSING, Block, Value
from ...ir.treedef import Form, form_of, list_form
from ...ir.types import Array, Extent, Static, Tuple, Undefined, with_own_extents
from ...library.records import Records
from ...ops.core.control import item, packed
from ...ops.core.record import value
from ..syntax.captures import (
    Closed,
    Fixed,
    Global,
    Item,
    Keys,
    Length,
    Member,
    is_data,
    is_structured,
    type_of_data,
)
from ..syntax.cell_variables import (
    holder_of,
    variables_written_inside,
    with_held_variables,
)
from ..syntax.dependencies import Absent, Inside, Kind, kind_of, note_dependency
from ..syntax.liveness import Liveness, Outline, outline_of, read_names
from ..syntax.outer_variables import CELL, OWN_MODULE
from .functions import ConditionalObject, FunctionValue, Local, NeedsInlining
from .heap import Cell, Container, Heap, Variables, cells_in, insider, is_shared, require_sure
from .optional import Maybe
from .outside import ALL, Outside, module_of, place_of
from .warning_filters import ComplexWarning, is_ignored

EXIT, STOP, RETURNED, RESULT, RESULT_OF = "<exit>", "<stop>", "<returned>", "<result>", "<value>"
# an exception is in flight, and its code: front/values/exceptions.py
RAISED, CODE = "<raised>", "<code>"
OUT = "<out>"  # set where a trip has found that the loop's own test failed
# whether a name is bound, where that is uncertain: front/values/maybe_unbound.py
BOUND = "<bound {}>"
REST = "<rest>"  # the values that `a, b = c, d` has still to assign
IN_WORDS = {RESULT: "the result", RESULT_OF: "this value",
            REST: "what is still to be assigned", "<outside>": "an object outside"}
UNBOUND = type("Unbound", (), {"__repr__": lambda self: "unbound"})()


class PathEnded(Exception):
    """Signal that a path has ended by raising: nothing after it is run."""


class NeedsHolder(Exception):
    """Signal that functions inside the one defined at `place` write its variables where it does not
    know it: they have to be held by an object (front/syntax/cell_variables.py).
    """

    def __init__(self, place: tuple):
        super().__init__(place)
        self.place = place


@dataclass(frozen=True, eq=False)
class Text:
    """A string with run-time data in it: strings and Pieces (front/values/messages.py)."""

    parts: object


@dataclass(frozen=True, eq=False)
class ExceptionObject:
    """An exception object created by the program."""

    kind: type
    args: tuple
    keywords: dict


@dataclass(frozen=True)
class Object:
    """A Python object that data is read from, with the getter by which generated code reaches it.
    """

    content: object
    getter: Callable
    name: str

    def __repr__(self) -> str:
        return f"the {type(self.content).__name__} {self.name}"


@dataclass(eq=False)
class Tables:
    """Which loops over members that are known one by one may be loops over tables of them:
    Note [Loops over tables] in front/eval/loops.py.
    """

    allowed: bool = True
    used: bool = False
    refused: set = field(default_factory=set)  # the places of loops that need their members apart
    # of captured lists that are one parameter -> the getter of that
    getters: dict = field(default_factory=dict)


MOST_MET = 50  # values to look at for a length


@dataclass(eq=False, repr=False)
class Session:
    """The state shared by all activations of one `build`."""

    execute: Callable  # (frame, statements, live names) -> None
    callee: Callable  # (function) -> Callee
    comprehension: Callable  # (frame, node) -> binding
    listed: Callable  # (frame, binding) -> the list of its members
    block: Block  # of the function that is built
    call: Callable  # (frame, function, args, keywords, node) -> binding
    # the same of a definition that is a part of the function's
    part: Callable  # (frame, function, part, args, keywords, node) -> binding
    default: Callable  # (frame, default of a parameter, its name) -> binding
    attribute: Callable  # (frame, binding, name, node) -> binding
    demand: Callable  # (frame, Maybe) -> its value
    heap: Heap = field(default_factory=Heap)
    active: object = None  # the innermost activation that is not inlined
    # the active `try`s, the innermost last: front/values/exceptions.py
    tries: list = field(default_factory=list)
    point: object = None  # the current statement, where it may be left
    thrown: list = field(default_factory=list)  # the exceptions that have a code
    handling: list = field(default_factory=list)  # the exceptions caught by the active handlers
    # getter -> parameter, binding
    captures: dict[Callable, tuple[Value, object]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # names not available to captures
    # loop counter -> (lo, hi, step) of its range
    counters: dict[Value, tuple] = field(default_factory=dict)
    # the views that existed before each enclosing loop, outermost first
    loops: list[dict] = field(default_factory=list)
    # the argument of a call that consumes it to its end at once, if it is a generator
    consumed: object = None
    choosing: bool = False  # whether items of lists are chosen arrays: see `take_item`
    given: set = field(default_factory=set)  # the cells of the arguments, visible to the caller
    run_over: list = field(default_factory=list)  # the lists that the active loops run over
    filters: tuple = ()  # of warnings, the newest first: values/warning_filters.py
    filters_left: tuple = ()  # those of the activation that has ended last
    entering: list = field(default_factory=list)  # the activations that enter managers of their own
    # where the keys of a dict lie over which a loop runs: (its hash table, key) -> place
    key_places: dict = field(default_factory=dict)
    # whether one of them may have been changed through an array that may share its memory
    doubtful: bool = False
    # conditions known to hold here, or not to hold: optional.py
    assumed: dict[Value, bool] = field(default_factory=dict)
    # the ops of checkpointed functions: checkpoint_calls.py
    marked: list = field(default_factory=list)
    # the ops of inlined calls: repeated_calls.py
    inlined_calls: list = field(default_factory=list)
    # the places that create dicts with run-time keys
    keyed: set = field(default_factory=set)
    # the keys and items of dicts from outside -> (their hash table, the list of their items)
    lookups: dict[tuple, tuple[Value, Value]] = field(default_factory=dict)
    # the error to raise if the result leaves the program
    leaving: UnsupportedError | None = None
    # functions with derivative rules under construction: front/rules/custom_derivatives.py
    closing: list = field(default_factory=list)
    # recursive functions under construction, outermost first
    recursions: list = field(default_factory=list)
    # the functions whose variables are held by an object, and their text
    # definitions of recursive functions whose calls are inlined, all of them: recursion.py
    unrolled: set = field(default_factory=set)
    # the functions that have turned out to call themselves, and how often others have done so
    recursive: set = field(default_factory=set)
    called_again: int = 0
    # (activation, definition) -> what is known of the arguments of its last such call
    inlined: dict = field(default_factory=dict)
    calls_inlined: int = 0
    holding: set = field(default_factory=set)
    held: dict = field(default_factory=dict)
    # places of captured values that must be known, as they decide what is refused
    flags: set = field(default_factory=set)
    outside: Outside = field(default_factory=Outside)  # what it writes to captured objects
    # the names carried by loops that hold one of several arrays: front/control/one_of.py
    one_of: set = field(default_factory=set)
    tables: Tables = field(default_factory=Tables)


@dataclass(eq=False, repr=False)
class Frame:
    """The activation of one function."""

    node: gast.FunctionDef | gast.Lambda
    body: list
    source: Source
    session: Session
    globals: dict
    closure: dict = field(default_factory=dict)  # name -> closure cell
    lexical: Frame | None = None  # the enclosing activation, for nested functions
    caller: Frame | None = None
    env: dict[str, object] = field(default_factory=dict)
    live: frozenset = frozenset()  # names live after the current statement
    pending: frozenset = frozenset()  # names that the current statement reads
    kept: tuple[frozenset, ...] = ()  # names live at the exits of the enclosing loops
    # variables of enclosing functions that it borrows, see front/values/nonlocals.py
    borrowed: frozenset = frozenset()
    outline: Outline = None
    # the scope that nested functions close over, if not this one
    # (front/values/comprehension_scope.py)
    making: Frame | None = None
    # the name of the object that holds the variables that functions inside it write, and these
    holder: str = ""
    held_names: frozenset = frozenset()
    place: Line | None = None  # the user's line, where the body is s2s's own
    # the entry of BUILTINS that it is; what it implements is an op inside: library/declarations.py
    meaning: Callable | None = None
    # the values of the program's that it was given, which it does not name
    foreign: frozenset = frozenset()

    def __post_init__(self):
        self.outline = outline_of(self.node, self.body)
        self._hold_variables()
        self.env.update({
            EXIT: False,
            STOP: False,
            OUT: False,
            RETURNED: False,
            RAISED: False,
            CODE: 0
        })

    def _hold_variables(self) -> None:
        """Let an object hold the variables that functions inside this one write, if they do so
        where it does not know it.
        """
        if self.definition not in self.session.holding or not (names := self.holdable()):
            return
        if self.node not in self.session.held:
            self.session.held[self.node] = with_held_variables(self.node, names)
        self.holder = holder_of(self.node)
        self.node = self.session.held[self.node]
        self.body = self.node.body
        self.outline = outline_of(self.node, self.body)
        self.env[self.holder] = self.heap.new_container(Variables, {})
        self.held_names = names

    def holdable(self) -> frozenset[str]:
        """The variables that functions inside this one write, and that an object could hold."""
        if self.definition is None or self.node.body is not self.body:
            return frozenset()
        return variables_written_inside(self.outline)

    @property
    def definition(self) -> tuple | None:
        """Where the function is defined: the same for copies of its definition."""
        if not isinstance(self.node, gast.FunctionDef) or not hasattr(self.node, "lineno"):
            return None
        return self.source.filename, self.node.name, self.node.lineno, self.node.col_offset

    def __repr__(self) -> str:
        """A short text for error messages: the whole state of an activation and its enclosing ones
        takes seconds to write.
        """
        return f"<activation of {getattr(self.node, 'name', '<lambda>')}>"

    @property
    def liveness(self) -> Liveness:
        return self.outline.liveness

    @property
    def locals(self) -> set[str]:
        """The parameters and the names that the body binds."""
        return self.outline.locals

    @property
    def heap(self) -> Heap:
        return self.session.heap

    # ------------------------------------------------------------------------------------- places

    def line(self, node: gast.AST) -> Line | None:
        """The source line of `node`."""
        if self.place is not None:
            return self.place
        number = getattr(node, "lineno", None)
        if number is None:
            return None
        end = node.end_col_offset if node.end_lineno == number else None
        return Line(self.source, number, node.col_offset, end,
                    casts_quietly=bool(self.session.filters)
                    and is_ignored(self.session.filters, ComplexWarning))

    def refuse(self, message: str, node: gast.AST | None = None,
               remedy: str = "") -> UnsupportedError:
        """The error for an unsupported construct at `node`."""
        return UnsupportedError(message,
                                self.line(node) if node is not None else current().line, remedy)

    def in_loop(self) -> bool:
        """Whether the current code is inside a loop of this function or of one of its callers."""
        return bool(self.kept) or self.caller is not None and self.caller.in_loop()

    def label(self, name: str) -> str:
        """The name in generated code of a value bound to `name`."""
        if name.startswith(BOUND[:7]):
            return f"{label}_bound" if (label := self.label(name[7:-1])) else ""
        if self.place is not None and name.startswith("_"):  # as its function wants it
            return ""
        return "" if name in self.outline.temporaries or not name.isidentifier() else name

    # ------------------------------------------------------------------------------------ bindings

    def bind(self, name: str, binding) -> None:
        """`name = binding`."""
        if isinstance(binding, (bool, int, float, complex)):
            binding = value(binding)
        content = self.peek(binding)
        bound_already = any(other is binding for other in self.env.values())
        self.env[name] = binding
        if BOUND.format(name) in self.env:
            self.env[BOUND.format(name)] = True
        if (content is not None and not content.name and content.op is not None
            and not bound_already and content not in self.foreign):
            content.name = self.label(name)

    def values_in(self, bindings) -> Iterator[Value]:
        """The Values in bindings, also of the members of tuples and lists."""
        left = list(bindings)
        for binding in left:
            members = (binding if isinstance(binding, (tuple, list))
                       else self.heap.items(binding) if isinstance(binding, Cell) else None)
            if members is not None:
                left += members
            elif (content := self.peek(binding)) is not None:
                yield content

    def peek(self, binding) -> Value | None:
        """The up-to-date Value of a leaf, or None."""
        match binding:
            case Value():
                return binding
            case Cell() if self.heap.is_current(binding) and self.heap.items(binding) is None:
                return self.heap.read(binding)
        return None

    def name_member(self, container: Container, key, binding) -> None:
        """Name a stored member after its container and key, if it has no name yet."""
        content = self.peek(binding)
        if (content is None or content.name or content.op is None or not isinstance(key, str)
            or not key.isidentifier()):
            return
        frame = self
        while frame is not None:
            held = [
                name for name, b in frame.env.items()
                if b is container and name != "self" and name.isidentifier()
            ]
            if held:
                content.name = self.label(f"{held[0]}_{key}")
                return
            frame = frame.caller
        content.name = self.label(key)

    def wrap(self, x):
        """The binding of a freshly computed Value, as a new object."""
        if not isinstance(x, Value):
            return x
        match x.type:
            case Tuple(items, form):
                return self.container_like(form,
                                           [self.wrap(item(x, index=k)) for k in range(len(items))])
            case Static(content):
                return (Object(content, Fixed(content), type(content).__name__.lower())
                        if has_data(content)
                        else content)
        if x.op is not None and x.op.name == "tuple":
            return tuple(map(self.wrap, x.op.inputs))
        return self.heap.new(x) if is_shared(x.type) else x

    def either(self, x: Value, *sides) -> object:
        """The binding of a Value that is one of `sides`, depending on the path taken; arrays among
        the sides are aliased.
        """
        binding = self.wrap(x)
        cells = [side for side in sides if isinstance(side, Cell)]
        if isinstance(binding, Value) and cells:
            binding = self.heap.new(x)
            binding.doubtful = any(not isinstance(side, Cell) or side.doubtful for side in sides
                                   if side is not UNBOUND)
        if isinstance(binding, Cell):
            binding.origins = frozenset(cell for side in cells for cell in side.family())
        return binding

    def run_time_length(self, binding) -> Extent | None:
        """The length of the array, or of one that the list is made from, where only a run knows it.
        """
        left = [self.peek(binding)]
        for x in left:
            if isinstance(x, Value) and isinstance(x.type, Array):
                if x.type.dims and isinstance(x.type.dims[0], Extent):
                    return x.type.dims[0]
            elif isinstance(x, Value) and x.op is not None and len(left) < MOST_MET:
                left += x.op.inputs
        return None

    def container_like(self, form: Form | None, members: list):
        """The binding of a new container of this form."""
        if form is None:
            return tuple(members)
        if form.kind == "list":
            return self.heap.new(tuple(members))
        if form.kind == "namedtuple":
            return form.cls._make(members)
        return self.heap.new_container(form.cls, dict(zip(form.keys, members)), form.factory)

    def value(self, binding) -> Value:
        """The Value of a binding, as an operand of ops."""
        match binding:
            case Value():
                if isinstance(binding.type, Undefined):
                    raise self.unbound(binding.name or "this name")
                return binding
            case Cell() if self.heap.items(binding) is not None:
                items = self.heap.items(binding)
                return packed([self.value(b) for b in items], list_form(len(items)))
            case Cell():
                return self.heap.read(binding)
            case Maybe():
                return self.value(self.session.demand(self, binding))
            case tuple() | list():
                return packed([self.value(b) for b in binding], form_of(binding))
            case Container():
                if (error := insider(binding)) is not None:
                    raise error
                require_sure(binding)
                return packed([self.value(b) for b in binding.members.values()], binding.form)
            case ConditionalObject():
                raise NeedsInlining(
                    "an object of one class or another is stored, or returned to outside the "
                    "program", current().line, "return what is computed of it")
            case FunctionValue():
                raise self.refuse(
                    "a function defined inside this one cannot be stored, returned or passed on "
                    "here",
                    None, "call it directly, or define it at module level")
            case Text():
                raise self.refuse(
                    "a text that shows run-time data can be printed and raised, and nothing else",
                    None, "return the data, and make the text after the call")
            case ExceptionObject():
                raise self.refuse("an exception can be raised, and nothing else", None,
                                  "raise it here")
            case slice() if not self.is_static(binding):
                raise self.refuse(
                    "a slice whose bounds are run-time data can index, and nothing else", None,
                    "pass its bounds on")
            case slice():  # of constants, and not of Values of this block
                return value(self.static(binding, "a slice"))
            case Object():
                if (opened := self.contents_of(binding)) is not binding:
                    return self.value(opened)
                raise self.refuse(
                    f"{binding.name} is an object of type {type(binding.content).__name__}", None,
                    "use its number and array attributes one by one")
        return value(binding)

    def static(self, binding, what: str, node: gast.AST | None = None):
        """The Python object of a binding that must be known at compile time."""
        match binding:
            case tuple() | list():
                return like(binding, [self.static(b, what, node) for b in binding])
            case Cell() if self.heap.items(binding) is not None:
                return [self.static(b, what, node) for b in self.heap.items(binding)]
            case Container():
                return binding.form.build(
                    [self.static(b, what, node) for b in binding.members.values()])
            case slice():
                return slice(*(self.static(b, what, node)
                               for b in (binding.start, binding.stop, binding.step)))
            case Value() if binding.constant is not MISSING:
                return binding.constant
            case Value() if (known := self.read_now(binding)) is not MISSING:
                return known
            case Value() | Cell() | FunctionValue() | Text() | ExceptionObject():
                error = UndecidedError(
                    f"{what} must be known when code is generated, and depends on run-time data",
                    self.line(node) if node is not None else current().line,
                    "write it as a literal")
                error.value = binding if isinstance(binding, Value) else None
                raise error
            case Object():
                return binding.content
        return binding

    def read_now(self, x: Value):
        """The number, or tuple of numbers, of a captured variable that must be known at compile
        time; else MISSING.
        """
        path = []
        while x.op is not None and x.op.name == "item":
            path.append(x.op.attrs["index"])
            x = x.op.inputs[0]
        for getter, (param, _) in self.session.captures.items():
            if param is x:
                for k in reversed(path):
                    getter = Item(getter, k)
                content = getter()
                if all(
                        isinstance(n, (int, float))
                        for n in (content if isinstance(content, tuple) else (content,))):
                    note_dependency(getter, content)
                    return content
        return MISSING

    def is_from_outside(self, cell: Cell) -> bool:
        """Whether an array may be an argument, or one that the program reads from outside."""
        return not cell.family().isdisjoint(self.session.given) or any(
            root.getter is not None or root.parameter_of is not None for root in cell.roots)

    def is_static(self, binding, seen: frozenset = frozenset()) -> bool:
        """Whether `static` would succeed; `seen` are the lists and objects in which it lies."""
        match binding:
            case Cell() | Container() if binding in seen:
                return True
            case tuple() | list():
                return all(self.is_static(x, seen) for x in binding)
            case Cell() if self.heap.items(binding) is not None:
                return all(self.is_static(x, seen | {binding}) for x in self.heap.items(binding))
            case Container():
                return all(self.is_static(x, seen | {binding}) for x in binding.members.values())
            case slice():
                return all(map(self.is_static, (binding.start, binding.stop, binding.step)))
            case Value():
                return binding.constant is not MISSING
        return not isinstance(binding, (Cell, FunctionValue, Text, ExceptionObject))

    # --------------------------------------------------------------------------------------- names

    def lookup(self, name: str, node: gast.AST | None = None):
        """The binding of `name`."""
        if name in self.env:
            binding = self.env[name]
            if isinstance(binding, Value) and isinstance(binding.type, Undefined):
                raise self.unbound(name, node)
            # for example a view of a dict
            return binding.refreshed() if hasattr(binding, "refreshed") else binding
        if name in self.locals:
            raise self.unbound(name, node)
        if self.lexical is not None:
            return self.lexical.lookup(name, node)
        if name in self.closure:
            getter = Closed(self.closure[name])
            try:
                return self.outside(getter(), getter, name)
            except ValueError:
                raise self.unbound(name, node) from None
        if name in self.globals:
            return self.outside(self.globals[name], Global(self.globals, name), name)
        if name == OWN_MODULE:
            module = module_of(self.globals)
            if module is None:
                raise self.refuse("writing to a global variable of no module", node,
                                  "return the new value")
            return Object(module, Fixed(module), module.__name__)
        if name.startswith(CELL):
            cell = self.closure[name[len(CELL):]]
            return Object(cell, Fixed(cell), name[len(CELL):])
        if hasattr(builtins, name):
            note_dependency(Absent(self.globals, name), False)
            return getattr(builtins, name)
        raise TypeMismatchError(f"the name {name} is not defined",
                                self.line(node) if node else None, "define it, or import it")

    def unbound(self, name: str, node: gast.AST | None = None) -> TypeMismatchError:
        """The error for a read of `name` before it is bound."""
        return TypeMismatchError(f"{name} is read before it is bound",
                                 self.line(node) if node else current().line,
                                 "bind it on every path that leads here")

    def outside(self, content, getter: Callable, name: str):
        """The binding of an object that lives outside the function."""
        kept = self.kept_outside(getter, name)
        if kept is not MISSING:
            return kept
        if is_structured(content):
            return self.records(content, getter, name)
        if is_data(content) and not self.is_read_now(content, getter):
            return self.captured(type_of_data(content, name), getter, name)
        if isinstance(content, tuple) and are_integers(content):
            note_dependency(getter, content)
            return content
        if isinstance(content, (dict, list, deque, set)) or has_data(content):
            note_dependency(Inside(getter), content)
            return Object(content, getter, name)
        if isinstance(content, tuple) and not _is_fixed(content):
            note_dependency(Length(getter), len(content))
            return like(
                content,
                [self.outside(x, Item(getter, k), f"{name}_{k}") for k, x in enumerate(content)])
        note_dependency(getter, content)
        return content

    def is_read_now(self, content, getter: Callable) -> bool:
        """Whether data outside has to be known when code is generated: the flags that decide
        whether a program is understood, and integers that are keys, and those beside them.
        """
        place, flags = place_of(getter), self.session.flags
        return place in flags or (place is not None and (place[0], ALL) in flags
                                  and are_integers(content))

    def records(self, content: np.ndarray, getter: Callable, name: str) -> Container:
        """A structured array from outside, by its fields of numbers; others are never read."""
        note_dependency(Member(getter, "dtype"), content.dtype)
        fields = {field: self.outside(content[field], Item(getter, field),
                                      re.sub(r"\W", "_", f"{name}_{field}"))
                  for field in content.dtype.names if content.dtype[field].base.kind in "biufc"}
        inner = len(content.dtype[next(iter(fields))].shape) if fields else 0
        return self.heap.new_container(Records, {"_fields": self.heap.new_container(dict, fields),
                                                 "_inner": inner})

    def kept_outside(self, getter: Callable, name: str):
        """The binding of a place outside that the program writes to, too; else MISSING."""
        place, state = place_of(getter), self.session.outside.state
        if place is None:
            return MISSING
        if state is not None and place in state.members:
            return state.members[place]
        if self.session.outside.note_read(place, getter, name):
            raise self.refuse_both(name)
        return MISSING

    def elements_of(self, binding: Object) -> set:
        """A set from outside, on whose elements the code depends."""
        keys = Keys(binding.getter)
        if self.session.outside.note_read(place_of(keys), keys, binding.name):
            raise self.refuse_both(binding.name)
        note_dependency(keys, tuple(binding.content))
        return binding.content

    def refuse_both(self, name: str) -> UnsupportedError:
        """The error for a container outside that is read and written."""
        return self.refuse(f"{name}, which lives outside the function, is read in a call that "
                           "writes into it", None, "copy it before, or return what is new")

    def captured(self, type, getter: Callable, name: str, own: Callable = with_own_extents):
        """The binding of captured data, which is read at each call; `own(type, name)` gives its
        type the extents of the parameter `name`.
        """
        session = self.session
        note_dependency(Kind(getter), kind_of(type))
        if getter not in session.captures:
            unique, k = name, 0
            while unique in session.taken:
                k += 1
                unique = f"{name}_{k}"
            session.taken.add(unique)
            # the caller may have an array of this name, too
            param = Value(own(type, unique), unique)
            binding = self.heap.new(param, owner=name) if is_shared(type) else param
            if isinstance(binding, Cell) and place_of(getter) is not None:
                binding.getter = getter
            session.captures[getter] = (param, binding)
        param, binding = session.captures[getter]
        if isinstance(param.type, Tuple):
            binding = self.wrap(param)
            for cell in cells_in(binding):
                cell.owner = name
            return binding
        if isinstance(binding, Cell):
            self.heap.contents.setdefault(binding, param)
        return binding

    def attribute_of(self, owner: Object, name: str):
        """An attribute of an object that lives outside the function."""
        label = name if isinstance(owner.content, ModuleType) else f"{owner.name}_{name}"
        if isinstance(owner.content, CellType):
            label = owner.name  # of the variable
        getter = Member(owner.getter, name)
        kept = self.kept_outside(getter, label)  # the object itself may have none yet
        return self.outside(getter(), getter, label) if kept is MISSING else kept

    def item_of(self, owner: Object, key):
        """An item of a dict or list that lives outside the function."""
        name, getter = re.sub(r"\W", "_", f"{owner.name}_{key}"), Item(owner.getter, key)
        kept = self.kept_outside(getter, name)
        if kept is not MISSING:
            return kept
        try:
            content = owner.content[key]
        except (LookupError, TypeError) as error:
            raise TypeMismatchError(f"{owner.name}: {type(error).__name__}: {error}",
                                    current().line, "use a key that it has") from None
        return self.outside(content, getter, name)

    def contents_of(self, binding, through: bool = False):
        """The contents of a list or dict from outside as a read-only binding of the program, or of
        an iterator, which is consumed; any other binding unchanged.  With `through`, members are
        opened, too.

        Not done when a name is bound to one: most programs read an item or two, and then depend on
        nothing else of it.
        """
        if hasattr(binding, "consumed"):  # an iterator: front/control/iterators.py
            return binding.consumed(self)
        if hasattr(binding, "refreshed"):  # a view of a dict: front/values/dicts.py
            return binding.refreshed()
        if hasattr(binding, "shown"):  # the same, of one with run-time keys: values/dict_views.py
            return binding.shown(self)
        if isinstance(binding, Object) and type(binding.content) is set:
            return self.elements_of(binding)
        if (not isinstance(binding, Object)
            or type(binding.content) not in (list, dict, OrderedDict, deque)):
            return binding
        if self.session.outside.note_read(place_of(Length(binding.getter)),
                                          Length(binding.getter), binding.name):
            raise self.refuse_both(binding.name)
        keys = (range(len(binding.content)) if isinstance(binding.content, (list, deque))
                else tuple(binding.content))
        note_dependency(*((Length(binding.getter),
                           len(keys)) if isinstance(keys, range) else (Keys(binding.getter), keys)))
        members = {key: self.item_of(binding, key) for key in keys}
        if through:
            members = {key: self.contents_of(member, through) for key, member in members.items()}
        if isinstance(keys, range):
            made = self.heap.new(tuple(members.values()), owner=binding.name)
            made.outside = binding
            return made
        made = self.heap.new_container(type(binding.content), members)
        made.owner = binding.name
        return made

    # ---------------------------------------------------------------------------------------- state

    def snapshot(self) -> tuple:
        return dict(self.env), dict(self.heap.contents), dict(self.heap.seen)

    def restore(self, state: tuple) -> None:
        env, contents, seen = state
        self.env, self.heap.contents, self.heap.seen = dict(env), dict(contents), dict(seen)

    def is_live(self, name: str, live: frozenset) -> bool:
        return (name in live or name in self.liveness.always or name in self.borrowed
                or name.startswith("<"))

    def reachable(self, pending: bool = False) -> Iterator[tuple[str, Cell]]:
        """The live cells, of this activation and of those that wait, with a name for each.

        With `pending`, also those that the rest of the current statement may read.
        """
        frame = self
        while frame is not None:
            live = frame.live.union(*frame.kept, frame.pending if pending else ())
            for name, binding in frame.env.items():
                if frame.is_live(name, live):
                    for cell in self.reachable_cells(binding):
                        yield IN_WORDS.get(name, name), cell
            frame = frame.caller

    def reachable_cells(self, binding) -> Iterator[Cell]:
        """The cells reachable from a binding, through lists, objects and functions, too."""
        return held_cells(binding, self.heap)

    def members(self, binding) -> Sequence | None:
        """The members of a tuple or a list of known length; else None."""
        return binding if isinstance(binding, (tuple, list)) else self.heap.items(binding)

    def write(self, cell: Cell, content: Value | tuple, through: Cell | None = None,
              update: Callable | None = None) -> None:
        """Set the content of `cell`, and update everything that shares its memory; see Heap.write.
        """
        if any(root.origins & self.session.given for root in cell.roots):
            self.session.doubtful = True
        for root in cell.roots:
            if root.getter is not None:
                self.session.outside.note_array(root.getter, root.owner)
        captured = [(binding.owner, binding) for _, binding in self.session.captures.values()
                    if isinstance(binding, Cell)]
        self.heap.write(cell, content, [*self.reachable(), *captured], through or cell, update)
        root = cell.root
        if isinstance(content, Value) and not content.name and content.op is not None:
            content.name = (next((self.label(name) for name, other in self.reachable()
                                  if other is cell and name != "self"), "")
                            or next((self.label(name) for name, binding in self.env.items()
                                     if binding is root), ""))


def like(binding: tuple | list, items: list):
    """A tuple, namedtuple or list of these items, of the type of `binding`."""
    return binding._make(items) if hasattr(binding, "_make") else type(binding)(items)


def held_cells(binding, heap: Heap | None = None, seen: set | None = None) -> Iterator[Cell]:
    """The cells reachable from a binding: through objects, and through functions, which hold what
    they are bound to and what they close over.  With `heap`, through lists of known length, too.

    An array or a list that is there twice is found twice, for two items of a list may be one array.
    What is in it, and in the objects and functions in `seen`, is found once.
    """
    seen = set() if seen is None else seen
    inner = ()
    match binding:
        case tuple() | list():
            inner = binding
        case Cell():
            yield binding
            inner = (heap and binding not in seen and heap.items(binding)) or ()
        case Container() | FunctionValue() if binding in seen:
            return
        case Container():
            yield binding
            inner = (binding.choice[1:] if binding.choice is not None else
                     () if binding.place is not None else binding.members.values())
        case Local():
            inner = (*binding.held(), *_closed_over(binding))
        case FunctionValue():
            inner = binding.held()
    if isinstance(binding, (Cell, Container, FunctionValue)):
        seen.add(binding)
    for held in inner:
        yield from held_cells(held, heap, seen)


def _closed_over(function: Local) -> Iterator:
    """The bindings of the names that a local function reads around it."""
    read, seen = read_names([function.node]), set()
    frame = function.frame
    while frame is not None:
        for name in read - seen:
            if name in frame.env:
                seen.add(name)
                yield frame.env[name]
        frame = frame.lexical


def _is_fixed(content) -> bool:
    """Whether a tuple is immutable throughout: texts, types, functions, and tuples of them."""
    return all(
        _is_fixed(x) if isinstance(x, tuple) else not (
            is_data(x) or isinstance(x, (dict, list, deque)) or has_data(x)) for x in content)


def are_integers(content) -> bool:
    """Whether `content` is an integer of Python's, or a tuple of such."""
    return (bool(content) and all(map(are_integers, content)) if isinstance(content, tuple)
            else isinstance(content, int))


def has_data(content) -> bool:
    """Whether `content` is a user's object with attributes of its own; it may be callable."""
    kind = type(content)
    if isinstance(content, (type, Enum)):
        return False
    if hasattr(kind, "__dataclass_fields__"):
        return True
    if callable(content) and (not isinstance(kind.__call__, FunctionType)  # noqa: B004
                              or any(
                                  hasattr(content, name)
                                  for name in ("__wrapped__", "py_func", "function_for"))):
        return False  # a function, or a proxy of one
    has_attributes = hasattr(content, "__dict__") or any(
        "__slots__" in vars(cls) and not cls.__module__.startswith("numpy.")
        for cls in kind.__mro__)
    return has_attributes and kind.__module__ not in ("builtins", "numpy")
