"""`Transformed`: a transformed function with its source and its stages of compilation.

A chain of transformations is data: each Transformed holds the callable inside it, the kind of
transformation and its options.  For arguments of given types it asks the callable inside for its
IR, or builds it, and transforms that; nothing is traced, and nothing is kept but what was
generated.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MethodType

from . import pipeline
from .analysis.divergence import as_threads, lanes_are_threads
from .call.argnums import FirstArgument, as_method, fixed_key, is_choice, is_flag
from .call.fast_path import direct, repeated, written
from .check_flags import is_requested
from .compile_lock import in_turn
from .conventions import warn_of, without_writes
from .derive.linear_maps import LinearMap
from .errors import RankError, S2SError, TypeMismatchError, UndecidedError, UnsupportedError
from .front import annotated_types, at_definition_line, definition_line
from .front.domain.nested_functions import EnclosingValue, NestedFunction
from .front.domain.rank_promotion import fixed_ranks, has_ranks, needs_fixed_ranks
from .front.eval.unwrap_callable import WithKeywords, names_of
from .front.syntax.captures import Saved
from .front.syntax.dependencies import LENGTHS, collect_dependencies, is_current, note_dependencies
from .ir.graph import Function, Recalled, Value, Writes, identifier, whole
from .ir.types import Static, Type
from .notebook import side_by_side
from .ops.program.workers import workers_of
from .persist.pickled_sources import place_of, register_texts, texts_of
from .persist.recall import keep, recall, stored_programs
from .runtime.debug.progress import telling
from .runtime.debug.tape_bytes import Memory, measure
from .runtime.entry.length_agreement import agreements, checker
from .runtime.entry.shared_arguments import condition, sharing_checker
from .runtime.threads.worker_threads import in_workers
from .specialisation import (
    accepted_by_kernels,
    bind,
    key_of,
    normalised,
    ranks_to_try,
    shapes_of,
    short_axes,
    type_of,
)
from .transformations import KINDS


@dataclass(eq=False)
class Specialised:
    """The generated code for arguments of one kind."""

    function: Function | Recalled
    capture_key: tuple
    call: Callable
    consulted: dict[Callable, object]
    # which axes of the arguments are short, where the code depends on it
    short: tuple | None = None
    # raises where the lengths of arguments do not fit together
    check: Callable[..., None] | None = None
    # raises where an argument that the program writes to shares memory with another
    apart: Callable[..., None] | None = None
    # runs calls like the first, and passes on others (call/fast_path.py)
    direct: Callable | None = None
    into: Callable | None = None  # runs calls like one with arrays for the results
    # runs calls that give such arguments as keywords of a `**`
    by_keywords: Callable | None = None
    is_met: bool = False  # whether there has been a call
    getters: list[Callable] = field(init=False)

    def __post_init__(self):
        self.getters = list(self.function.captures.values())

    def is_current(self) -> bool:
        """Whether captured values still have the types, and names still refer to the functions,
        that the code was generated for.
        """
        if not is_current(self.consulted):
            return False
        return not self.getters or captured_key(self.function) == self.capture_key

    def is_for(self, args: tuple) -> bool:
        """Whether the code is current, and for arguments with axes as short or long as these have,
        if it depends on that.
        """
        return self.is_current() and (self.short is None or self.short == short_axes(args))


@dataclass(eq=False)
class Lowered:
    """A transformed function for arguments of one kind, stage by stage."""

    transformed: Transformed = field(repr=False)
    function: Function = field(repr=False)
    args: tuple | None = field(repr=False)
    consulted: dict[Callable, object] = field(repr=False, default_factory=dict)

    @property
    @in_turn
    def ssa(self) -> str:
        """The IR, as Python with types in annotations."""
        return pipeline.render(self.function, annotate=True).text

    @property
    @in_turn
    def source(self) -> str:
        """The generated Python."""
        return pipeline.text(self.function)

    @property
    @in_turn
    def loops(self) -> str:
        """The compiled form, as Python: fused scalar loops, those that threads share for these
        arguments in parts; or CUDA kernels.
        """
        if self.transformed.target == "cuda" or not self.transformed.is_compiled() or not self.args:
            return pipeline.loops_text(self.function, self.transformed.target)
        return pipeline.loops_text(self.function, "cpu", self.values,
                                   self.transformed.options.get("parallel"))

    @in_turn
    def compile(self) -> Callable:
        """Compile to native code: a function of the same arguments."""
        with collect_dependencies():
            note_dependencies(self.consulted)
            return self.transformed.compiled(self.function)

    @property
    def memory(self) -> Memory:
        """The peak memory that one run on these arguments saves for its reverse sweep: a number of
        bytes, and a table.

        It is found by running the generated Python; compiled code saves as much, or less.
        """
        if self.args is None:
            raise TypeMismatchError(f"{self.function.name}: what is saved depends on the arguments",
                                    None, "give them to lower")
        module = pipeline.render(without_writes(self.function))
        return measure(module.text, module.entry, self.values, module.lines, module.given)

    @property
    def values(self) -> tuple:
        """The arguments, and the captured values, that generated code is called with."""
        return *map(normalised, self.args), *(get() for get in self.function.captures.values())


class Transformed:
    """A callable that is `inner`, transformed.  `kind` names the transformation, `options` its
    options.

    What a call runs stands in the slot `__call__`: at first, and where kinds take a longer look,
    the method `call`; after a call, what was written for arguments like those (call/fast_path.py).
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, kind: str, inner: Callable, options: dict | None = None):
        functools.update_wrapper(self, inner, updated=())
        self.kind, self.inner, self.options = kind, inner, options or {}
        self.derive = KINDS[kind]
        self.signature = self.__signature__ = self.derive.signature(self)
        self.specialised: dict[tuple, list[Specialised]] = {}
        # types -> the IR, and the dependencies consulted for it
        self.functions: dict[tuple, tuple[Function, dict]] = {}
        self.writes = Writes()  # those of the function inside, of the IR made last
        self.begun: set[tuple] = set()  # types for which the IR is being generated
        self.method: Transformed | None = None  # this as a bound method
        # number of arguments -> which of them are static
        self.fixed: dict[int, tuple[int, ...]] = {}
        self.measured: dict[int, tuple[int, ...]] = {}
        # names passed to a `**` parameter -> this, taking them
        self.keyworded: dict[tuple[str, ...], Transformed] = {}
        self.last: Specialised | None = None
        self.arity = self._arity()
        self.__call__ = self.call
        self.accept = accepted_by_kernels if self.target == "cuda" else normalised

    def _arity(self) -> int | None:
        """The number of arguments of a call that needs no binding."""
        kinds = [p.kind for p in self.signature.parameters.values()]
        simple = all(k in (inspect.Parameter.POSITIONAL_ONLY,
                           inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in kinds)
        return len(kinds) if simple else None

    @property
    def name(self) -> str:
        """The name by which generated code calls this function."""
        inner = getattr(self.inner, "name", None) or getattr(self.inner, "__name__",
                                                             type(self.inner).__name__)
        return f"{identifier(inner)}{self.derive.suffix}"

    def __repr__(self) -> str:
        return f"<s2s.{self.kind} of {getattr(self.inner, '__name__', self.inner)!r}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self.as_method(), instance)

    def as_method(self) -> Transformed:
        """Bind this as a method: what it differentiates by default is not `self`."""
        if self.method is None:
            inner = self.inner.as_method() if isinstance(self.inner, Transformed) else self.inner
            options = {name: as_method(x) if name == "argnums" else x
                       for name, x in self.options.items()}
            if self.kind in ("vmap", "pmap") and isinstance(options["in_axes"], int):
                options["shared"] = 1  # the object, however it is constructed
            unchanged = (inner is self.inner and options == self.options
                         and not isinstance(self.options.get("argnums"), FirstArgument))
            self.method = self if unchanged else Transformed(self.kind, inner, options)
        return self.method

    def __reduce__(self):
        return place_of(self) or (restored,
                                  (self.kind, self.inner, self.options, texts_of(self.base)))

    # -------------------------------------------------------------------------------------- calling

    def call(self, *args, **kwargs):
        """Run a call whose arguments may differ in kind from those of the last one."""
        out = kwargs.pop("out", None) if self.takes_out else None
        if kwargs or len(args) != self.arity:
            named = self.named_by(kwargs)
            if named is not self:
                result = named(*args, **kwargs)
                self.last = named.last
                self.__call__ = self.direct_by_keywords(named, args, kwargs)
                return result
            args = self.bound(args, kwargs)
        with at_definition_line(self.base):
            found = self.specialise(args)
            accepted, captured = [*map(self.accept, args)], [get() for get in found.getters]
            if found.apart is not None:
                found.apart(*args, *captured)
            if found.check is not None:
                found.check(*accepted, *captured)
        self.last = found
        if is_requested("conventions"):
            warn_of(self, args)
            return (found.call(*accepted, *captured) if out is None
                    else written(found.call(*accepted, *captured), out))
        result = found.call(*accepted, *captured)
        if out is not None:
            with at_definition_line(self.base):
                result = written(result, out)
            found.into = found.into or self.direct(found, args, out)
        elif not found.is_met:
            found.is_met, found.direct = True, self.direct(found, args)
        self.__call__ = (found.direct if out is None else found.into) or self.call
        return result

    def direct(self, found: Specialised, args: tuple, out=None, again: Callable | None = None,
               keywords: Sequence[str] = ()) -> Callable | None:
        """Return the function that runs calls with arguments like these, of which a `**` holds the
        `keywords`; None where their lengths decide.
        """
        if self.measured_positions(len(args)):
            return None
        agreed = [a.text for a in agreements(found.function)]
        apart = condition(found.function)
        again = again or repeated(self.call, self.signature, len(args))
        return direct(self.name, self.signature, args, found.call, found.getters, found.consulted,
                      agreed, apart, again, self.static_positions(len(args)), out, keywords)

    def direct_by_keywords(self, named: Transformed, args: tuple, kwargs: dict) -> Callable:
        """Return the function that runs calls like this one, whose keywords `named` takes by names
        of their own; `call` where lengths decide.
        """
        found = named.last
        if found.by_keywords is None:
            values = named.bound(args, kwargs)
            keywords = [name for name in kwargs if name not in self.signature.parameters]
            again = repeated(self.call, self.signature, len(values) - len(keywords))
            found.by_keywords = named.direct(found, values, again=again,
                                             keywords=keywords) or self.call
        return self.call if is_requested("conventions") else found.by_keywords

    @property
    def takes_out(self) -> bool:
        """Whether the keyword `out` means arrays to write into, and is not a parameter."""
        return all(name != "out" and p.kind is not p.VAR_KEYWORD
                   for name, p in self.signature.parameters.items())

    def named_by(self, kwargs: dict) -> Transformed:
        """Return this function, taking those of `kwargs` that its `**` parameter takes by names of
        their own.
        """
        names = tuple(name for name in kwargs if name not in self.signature.parameters)
        if not names or not any(p.kind is p.VAR_KEYWORD
                                for p in self.signature.parameters.values()):
            return self
        if names not in self.keyworded:
            inner = (self.inner.named_by(kwargs) if isinstance(self.inner, Transformed)
                     else WithKeywords(self.inner, names))
            self.keyworded[names] = Transformed(self.kind, inner, self.options)
        return self.keyworded[names]

    def bound(self, args: tuple, kwargs: dict) -> tuple:
        """Return the arguments in the order of the parameters; TypeMismatchError where they do not
        fit them.
        """
        try:
            return bind(self.signature, args, kwargs)
        except TypeError as error:
            raise TypeMismatchError(f"{self.name}{self.signature}: {error}",
                                    definition_line(self.base),
                                    "pass the arguments that it takes") from None

    def specialise(self, args: tuple) -> Specialised:
        """Return the generated code for arguments like these, generated now if necessary."""
        fixed, measured = self.static_positions(len(args)), self.measured_positions(len(args))
        key = (tuple(map(key_of, args)) if not fixed
               else tuple(fixed_key(x, self.parameter_names(len(args))[k]) if k in fixed
                          else key_of(x) for k, x in enumerate(args)))
        if measured:
            key = *key, *(shapes_of(args[k]) for k in measured)
        return self.known(args, key) or self.generated(args, key)

    def known(self, args: tuple, key: tuple) -> Specialised | None:
        """Return the existing generated code for these arguments, if it is current."""
        return next((found for found in self.specialised.get(key, ()) if found.is_for(args)), None)

    @in_turn
    def generated(self, args: tuple, key: tuple) -> Specialised:
        """Generate the code for arguments like these, unless another thread has just done so."""
        with telling(self.name):
            return self.known(args, key) or self.generate(args, key)

    def generate(self, args: tuple, key: tuple) -> Specialised:
        """Generate code for arguments like these, or recall what an earlier process has stored of
        it.

        An argument that must be known, such as an axis, is static from now on: each of its values
        has code of its own.  So is a flag that decides whether something is refused.
        """
        try:
            return self.generate_for(args, key)
        except S2SError as error:
            measured = self.measured_positions(len(args))
            if not set(error.lengths) <= set(measured):
                return self.generate_for_lengths(args, error)
            fixed = self.static_positions(len(args))
            fits = is_choice if isinstance(error, UndecidedError) else is_flag
            if not error.parameters or not all(k < len(args) and k not in fixed
                                               and fits(args[k]) for k in error.parameters):
                raise
            self.fixed[len(args)] = tuple(sorted({*fixed, *error.parameters}))
            try:
                return self.specialise(args)
            except S2SError:
                self.fixed[len(args)] = fixed
                raise error from None

    def generate_for_lengths(self, args: tuple, error: S2SError) -> Specialised:
        """Generate code for the very lengths of those arguments that `error` asks for; such
        arguments have code of their own for each length from now on.
        """
        before = self.measured_positions(len(args))
        self.measured[len(args)] = tuple(sorted({*before, *error.lengths}))
        try:
            return self.specialise(args)
        except S2SError:
            self.measured[len(args)] = before
            raise error from None

    def generate_for(self, args: tuple, key: tuple) -> Specialised:
        types = self.types_of(args)
        before = stored_programs(self, types)
        again = before and recall(self, types, before)
        with collect_dependencies() as found:
            if again:
                function, consulted, kept = again
                note_dependencies(consulted)
            else:
                with as_threads(self.target == "cuda"):
                    function = (self.of_known_ranks(types) if self.is_compiled()
                                else self.function_for_types(types))
                found.pop(needs_fixed_ranks, None)
                found.pop(lanes_are_threads, None)
                workers = workers_of(function)
                kept = (before and workers is None and keep(self, function, found, before)) or None
            capture_key = captured_key(function)
            call = (self.compiled(function, kept) if kept else
                    self.in_workers(function, workers) if not again and workers is not None else
                    self.derive.callable(self, function))
            check = checker(function, lambda: definition_line(self.base))
            apart = sharing_checker(function, lambda: definition_line(self.base))
        if kept:
            kept.save(LENGTHS in found)
        made = Specialised(function, capture_key, call, found, short_axes(args) if LENGTHS in found
                           else None, check, apart)
        self.specialised.setdefault(key, []).insert(0, made)
        return made

    def of_known_ranks(self, types: Sequence[Type]) -> Function:
        """Build the IR for native code, in which what a loop turns into an array starts as one:
        front/domain/rank_promotion.py.
        """
        function = self.function_for_types(types)
        if has_ranks(function):
            return function
        try:
            with fixed_ranks():
                found = self.function_for_types(types)
        except S2SError:
            return function
        return found if has_ranks(found) else function

    def types_of(self, args: tuple) -> tuple[Type, ...]:
        """Return the types of these arguments, named after the parameters."""
        names = self.parameter_names(len(args))
        fixed, measured = self.static_positions(len(args)), self.measured_positions(len(args))
        try:
            return tuple(Static(x) if k in fixed else type_of(x, None if k in measured else name)
                         for k, (x, name) in enumerate(zip(args, names)))
        except S2SError as error:
            raise type(error)(f"{self.name}: {error.message}", error.line, error.remedy) from None

    def static_positions(self, count: int) -> tuple[int, ...]:
        """Return which of `count` arguments are static: of this function, or of one inside."""
        if count not in self.fixed:
            inside = (self.inner.static_positions(count) if isinstance(self.inner, Transformed)
                      else ())
            names = self.options.get("static", ())
            own = [k for k, name in enumerate(names_of(self.inner, count)) if k in names
                   or name in names] if names else ()
            self.fixed[count] = tuple(sorted({*inside, *own}))
        return self.fixed[count]

    def measured_positions(self, count: int) -> tuple[int, ...]:
        """Return of which of `count` arguments the lengths are known when code is generated: of
        this function, or of one inside.
        """
        inside = (self.inner.measured_positions(count) if isinstance(self.inner, Transformed)
                  else ())
        return tuple(sorted({*inside, *self.measured.get(count, ())}))

    def parameter_names(self, count: int) -> list[str]:
        """Return a name for each of `count` arguments."""
        return self.derive.names(self, count)

    # ----------------------------------------------------------------------------------- generating

    def function_for(self, values: Sequence[Value]) -> Function:
        """Return the IR of this function for arguments like these, for a call of it inside another
        program.
        """
        types = tuple(v.type for v in values)
        if self.arity is not None:
            return self.function_for_types(types[:self.arity])
        # captured values may follow a variable number of arguments
        for count in range(len(types), -1, -1):
            found, _ = self.functions.get(types[:count], (None, None))
            if found is not None and count + len(found.captures) == len(types) != count:
                return self.function_for_types(types[:count])
        return self.function_for_types(types)

    @in_turn
    def function_for_types(self, types: Sequence[Type]) -> Function:
        """Return the IR of this function for arguments of these types."""
        types = tuple(types)
        found, depends = self.functions.get(types, (None, {}))
        if found is None or not is_current(depends) or not captures_have_their_types(found):
            if types in self.begun:
                raise UnsupportedError(f"{self.name}, which is needed to generate itself",
                                       remedy="call the function that it is made of")
            self.begun.add(types)
            try:
                with collect_dependencies() as depends:
                    found = self.derive.function(self, types)
                found.writes = self.writes
            finally:
                self.begun.remove(types)
            self.functions[types] = found, depends
        else:
            note_dependencies(depends)
        return found

    @property
    def means(self) -> Callable | None:
        """Return the function with the same results, where this transformation only changes how it
        is run.
        """
        return self.inner if self.kind == "jit" else None

    @property
    def base(self) -> Callable:
        """The function inside all transformations."""
        return self.inner.base if isinstance(self.inner, Transformed) else self.inner

    def inner_function(self, types: Sequence[Type]) -> Function:
        """Return the IR of the function inside, for arguments of these types."""
        made = self.made_inside(types)
        self.writes = made.writes
        return made

    def made_inside(self, types: Sequence[Type]) -> Function:
        """Return the IR of the function inside."""
        if isinstance(self.inner, Transformed):
            return self.inner.function_for_types(types)
        if isinstance(self.inner, (NestedFunction, LinearMap)):
            made = self.inner.function_for([Value(type) for type in types])
            return pipeline.run(pipeline.PREPARE, pipeline.stage(made, "front"))
        return pipeline.build(self.inner, types)

    def generic(self) -> Function:
        """Return the IR for the annotated types, and unknown types where there are none."""
        types = annotated_types(self)
        try:
            return self.function_for_types(types)
        except RankError as refused:
            for guess in ranks_to_try(types):
                try:
                    return self.function_for_types(guess)
                except S2SError:
                    continue
            raise refused

    def compiled(self, function: Function, kept=None) -> Callable:
        """Compile `function`, of which something may be `kept` on disk."""
        options = ({k: v for k, v in self.options.items() if k != "static"} if self.kind == "jit"
                   else {})
        return pipeline.compiled(function, options, kept)

    def in_workers(self, function: Function, workers) -> Callable:
        """Compile `function`, which so many workers run at once."""
        options = {**(self.options if self.kind == "jit" else {}), "parallel": False}
        options.pop("static", None)
        if options.get("target", "cpu") != "cpu":
            raise UnsupportedError("pmap on a GPU", definition_line(self.base),
                                   'leave target="cuda" away, or use vmap')
        call = pipeline.compiled(function, options)
        return in_workers(call, workers) if pipeline.has_workers() else call

    # ----------------------------------------------------------------------------------- inspection

    @property
    @in_turn
    def source(self) -> str:
        """The generated Python: for the last call's arguments, or for any before the first call."""
        return pipeline.text(self.current)

    @property
    def current(self) -> Function:
        """The IR that `source` shows."""
        return whole(self.last.function) if self.last is not None else self.generic()

    def lower(self, *args, **kwargs) -> Lowered:
        """Return the stages of the code for arguments like these; without arguments, of `source`.
        """
        if not args and not kwargs and self.arity != 0:
            return Lowered(self, self.current, None)
        named = self.named_by(kwargs)
        if named is not self:
            return named.lower(*args, **kwargs)
        args = self.bound(args, kwargs)
        with at_definition_line(self.base):
            found = self.specialise(args)
            return Lowered(self, whole(found.function), args, found.consulted)

    @in_turn
    def export(self, path: str | Path, *args, **kwargs) -> Path:
        """Write a module that runs without s2s: it needs NumPy, and Numba where this is compiled
        code.

        Without arguments, the module is what `source` shows.  Raises UnsupportedError where the
        function reads captured values that a file cannot hold.
        """
        lowered = self.lower(*args, **kwargs)
        path = Path(path)
        path.write_text(pipeline.export_text(lowered.function, self.is_compiled(), self.target))
        return path

    @property
    def target(self) -> str:
        """The target of native code: "cpu" or "cuda"."""
        return self.options.get("target", "cpu") if self.kind == "jit" else "cpu"

    def is_compiled(self) -> bool:
        """Whether calling this runs native code."""
        return self.kind == "jit"

    def _repr_html_(self) -> str:
        """The user's function and the generated one side by side, lines linked."""
        return side_by_side(pipeline.render(self.current))


def restored(kind: str, inner: Callable, options: dict, texts: dict[str, str]) -> Transformed:
    """Rebuild a Transformed that another process has pickled, with the texts of functions that no
    file here has.
    """
    register_texts(texts)
    return Transformed(kind, inner, options)


def captured_key(function: Function) -> tuple:
    """Return the part of the captured values that selects the generated code."""
    captured = [get() for get in function.captures.values() if not isinstance(get, Saved)]
    return (*map(key_of, captured), *map(short_axes, captured))


def captures_have_their_types(function: Function) -> bool:
    """Test whether the captured values that `function` reads still have the types it was generated
    for.
    """
    captured = function.params[len(function.params) - len(function.captures):]
    for param, (name, get) in zip(captured, function.captures.items()):
        if isinstance(get, (EnclosingValue, Saved)):
            continue
        try:
            if type_of(normalised(get()), name) != param.type:
                return False
        except UnsupportedError:
            return False
    return True
