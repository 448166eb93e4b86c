"""`Transformed`: a function made from another, its source, and what stands between the two.

A chain of transformations is data: each Transformed holds the callable inside it, the kind of
transformation and its options.  For arguments of given types it asks the callable inside for its IR, or
builds it, and transforms that; nothing is traced, and nothing is kept but what was generated.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import assemble, pipeline
from .display import side_by_side
from .errors import S2SError, TypeMismatchError, UnsupportedError
from .front import annotated_types, callee_of
from .front.enclosed import Enclosed, Enclosing
from .ir.graph import Function, Value
from .ir.types import Type
from .names import Named, functions_named, names_in
from .runtime.load import load, measure_tapes
from .signature import (
    accepted_by_kernels,
    bind,
    key_of,
    lane_type,
    normalised,
    parameters_of,
    type_of,
)


@dataclass(eq=False)
class Specialised:
    """The generated code for arguments of one kind."""

    function: Function
    capture_key: tuple
    call: Callable
    named: list[Named]
    getters: list[Callable] = field(init=False)

    def __post_init__(self):
        self.getters = list(self.function.captures.values())

    def is_current(self) -> bool:
        """Whether captured values have the types, and names stand for the functions, that the code is for."""
        for name in self.named:
            if name.read() is not name.content:
                return False
        return not self.getters or tuple(key_of(get()) for get in self.getters) == self.capture_key


@dataclass(eq=False)
class Lowered:
    """A transformed function for arguments of one kind, stage by stage."""

    transformed: Transformed = field(repr=False)
    function: Function = field(repr=False)
    args: tuple = field(repr=False)

    @property
    def ssa(self) -> str:
        """The IR, as Python with types in annotations."""
        return pipeline.render(self.function, annotate=True).text

    @property
    def source(self) -> str:
        """The generated Python."""
        return pipeline.render(self.function).text

    @property
    def loops(self) -> str:
        """What is compiled: fused scalar loops, or CUDA kernels."""
        return pipeline.loops_text(self.function, self.transformed.target)

    def compile(self) -> Callable:
        """Native code: a function of the same arguments."""
        return self.transformed.compiled(self.function)

    @property
    def memory(self) -> int:
        """How many bytes one run on these arguments saves for its reverse sweep, at most at once."""
        module = pipeline.render(self.function)
        values = [get() for get in self.function.captures.values()]
        return measure_tapes(module.text, module.entry, (*map(normalised, self.args), *values))


class Transformed:
    """A callable: `inner`, transformed.  `kind` names the transformation, `options` say how."""

    def __init__(self, kind: str, inner: Callable, options: dict | None = None):
        functools.update_wrapper(self, inner, updated=())
        self.kind, self.inner, self.options = kind, inner, options or {}
        self.derive = KINDS[kind]
        self.signature = self.derive.signature(self)
        self.__signature__ = self.signature
        self.specialised: dict[tuple, list[Specialised]] = {}
        self.functions: dict[tuple, Function] = {}
        self.named: list[Named] = []  # what the program calls its functions, when code was last generated
        self.last: Specialised | None = None
        self.last_args: tuple = ()
        self.arity = self._arity()
        self.accept = accepted_by_kernels if self.target == "cuda" else normalised

    def _arity(self) -> int | None:
        """The number of arguments of a call that needs no binding."""
        kinds = [p.kind for p in self.signature.parameters.values()]
        simple = all(k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in kinds)
        return len(kinds) if simple else None

    @property
    def name(self) -> str:
        """What generated code calls this function."""
        inner = getattr(self.inner, "name", None) or getattr(self.inner, "__name__", type(self.inner).__name__)
        return f"{'f' if inner == '<lambda>' else inner}{self.derive.suffix}"

    def __repr__(self) -> str:
        return f"<s2s.{self.kind} of {getattr(self.inner, '__name__', self.inner)!r}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    # ------------------------------------------------------------------------------------------ calling

    def __call__(self, *args, **kwargs):
        if kwargs or len(args) != self.arity:
            args = bind(self.signature, args, kwargs)
        found = self.specialise(args)
        self.last, self.last_args = found, args
        return found.call(*map(self.accept, args), *[get() for get in found.getters])

    def specialise(self, args: tuple) -> Specialised:
        """The generated code for arguments like these, generated now if it is not there yet."""
        key = tuple(map(key_of, args))
        for found in self.specialised.get(key, ()):
            if found.is_current():
                return found
        self.forget_if_rebound()
        function = self.function_for_types(self.types_of(args))
        capture_key = tuple(key_of(get()) for get in function.captures.values())
        made = Specialised(function, capture_key, self.derive.callable(self, function), self.named)
        self.specialised.setdefault(key, []).insert(0, made)
        return made

    def types_of(self, args: tuple) -> tuple[Type, ...]:
        """The types of these arguments, named after the parameters."""
        names = self.parameter_names(len(args))
        try:
            return tuple(type_of(self.accept(x), name) for x, name in zip(args, names))
        except S2SError as error:
            raise type(error)(f"{self.name}: {error.message}", error.line, error.remedy) from None

    def parameter_names(self, count: int) -> list[str]:
        """One name for each of `count` arguments."""
        names = []
        for name, p in self.signature.parameters.items():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{name}_{k}" for k in range(count - len(self.signature.parameters) + 1)]
            else:
                names.append(name)
        return names[:count] + [f"x{k}" for k in range(len(names), count)]

    # --------------------------------------------------------------------------------------- generating

    def function_for(self, values: Sequence[Value]) -> Function:
        """The IR of this function for arguments like these: what a call of it inside another program means."""
        types = tuple(v.type for v in values)
        return self.function_for_types(types if self.arity is None else types[:self.arity])

    def function_for_types(self, types: Sequence[Type]) -> Function:
        """The IR of this function for arguments of these types."""
        types = tuple(types)
        found = self.functions.get(types)
        if found is None or not captures_have_their_types(found):
            found = self.functions[types] = self.derive.function(self, types)
        return found

    def forget_if_rebound(self) -> None:
        """Forget what was generated if a function that the program names is another one now."""
        if isinstance(self.inner, Transformed):
            self.inner.forget_if_rebound()
        functions = functions_named(self.base)
        if any(name.read() is not name.content for name in self.named):
            self.functions.clear()
            for function in functions:
                callee_of(function).built.clear()
        self.named = [name for function in functions for name in names_in(function)]

    @property
    def base(self) -> Callable:
        """The function inside all transformations."""
        return self.inner.base if isinstance(self.inner, Transformed) else self.inner

    def inner_function(self, types: Sequence[Type]) -> Function:
        """The IR of the function that is transformed, for arguments of these types."""
        if isinstance(self.inner, Transformed):
            return self.inner.function_for_types(types)
        if isinstance(self.inner, Enclosed):
            made = self.inner.function_for([Value(type) for type in types])
            return pipeline.run(pipeline.PREPARE, pipeline.stage(made, "front"))
        return pipeline.build(self.inner, types)

    def generic(self) -> Function:
        """The IR for whatever the annotations say, and nothing where they say nothing."""
        return self.function_for_types(annotated_types(self))

    def compiled(self, function: Function) -> Callable:
        """Native code of `function`."""
        return pipeline.compiled(function, self.options if self.kind == "jit" else {})

    # ------------------------------------------------------------------------------------------ looking

    @property
    def source(self) -> str:
        """The generated Python: for the last call's arguments, or for any before the first call."""
        return pipeline.render(self.current).text

    @property
    def current(self) -> Function:
        """The IR that `source` shows."""
        return self.last.function if self.last is not None else self.generic()

    def lower(self, *args, **kwargs) -> Lowered:
        """The stages of the code for arguments like these; without arguments, of `source`."""
        if not args and not kwargs and self.arity != 0:
            return Lowered(self, self.current, self.last_args)
        args = bind(self.signature, args, kwargs)
        return Lowered(self, self.specialise(args).function, args)

    def export(self, path: str | Path, *args, **kwargs) -> Path:
        """Write a module that runs without s2s: it needs NumPy, and Numba where this is compiled code.

        Without arguments, the module is what `source` shows.  Raises UnsupportedError where the function
        reads captured values that a file cannot hold.
        """
        lowered = self.lower(*args, **kwargs)
        path = Path(path)
        path.write_text(pipeline.export_text(lowered.function, self.is_compiled(), self.target))
        return path

    @property
    def target(self) -> str:
        """What native code is for: "cpu" or "cuda"."""
        return self.options.get("target", "cpu") if self.kind == "jit" else "cpu"

    def is_compiled(self) -> bool:
        """Whether calling this runs native code."""
        return self.kind == "jit"

    def _repr_html_(self) -> str:
        """The user's function and the generated one side by side, lines linked."""
        return side_by_side(pipeline.render(self.current))


def captures_have_their_types(function: Function) -> bool:
    """Whether the captured values that `function` reads are still what it was generated for."""
    captured = function.params[len(function.params) - len(function.captures):]
    for param, (name, get) in zip(captured, function.captures.items()):
        if isinstance(get, Enclosing):
            continue
        try:
            if type_of(normalised(get()), name) != param.type:
                return False
        except UnsupportedError:
            return False
    return True


# ------------------------------------------------------------------------------------------ the kinds


@dataclass(frozen=True)
class Kind:
    """One transformation: what its name adds, its signature, its IR, and what runs when it is called."""

    suffix: str
    function: Callable[[Transformed, tuple], Function]
    signature: Callable[[Transformed], inspect.Signature]
    callable: Callable[[Transformed, Function], Callable]


def interpreted(transformed: Transformed, function: Function) -> Callable:
    """The generated source, run by Python."""
    module = pipeline.render(function)
    return load(module.text, module.entry, module.lines)


def same_signature(transformed: Transformed) -> inspect.Signature:
    """That of the function inside."""
    return inspect.signature(transformed.inner)


def doubled_signature(transformed: Transformed) -> inspect.Signature:
    """(x, y) becomes (x, y, x_dot, y_dot)."""
    if "count" in transformed.options:
        names = spread_names(transformed.inner, transformed.options["count"])
    else:
        names = [p.name for p in parameters_of(transformed.inner)]
    dots = [f"{n}_dot" for n in names]
    return positional(names + dots)


def pullback_signature(transformed: Transformed) -> inspect.Signature:
    """(x, y) becomes (x, y, y_bar)."""
    if "count" in transformed.options:
        return positional([*spread_names(transformed.inner, transformed.options["count"]), "y_bar"])
    return positional([*(p.name for p in parameters_of(transformed.inner)), "y_bar"])


def spread_names(function: Callable, count: int) -> list[str]:
    """A name for each of the first `count` arguments of `function`."""
    names: list[str] = []
    for p in parameters_of(function):
        names += [f"{p.name}_{k}" for k in range(count)] if p.kind is p.VAR_POSITIONAL else [p.name]
    return names[:count]


def positional(names: Sequence[str]) -> inspect.Signature:
    """The signature of a function of these positional arguments."""
    unique: list[str] = []
    for n in names:
        while n in unique:
            n = f"{n}_1"
        unique.append(n)
    return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in unique])


def gradient_of(t: Transformed, types: tuple) -> Function:
    function = t.inner_function(types)
    return assemble.gradient(function, t.options["argnums"], t.options["has_aux"], with_value=t.kind == "value_and_grad")


def first_of(t: Transformed, types: tuple) -> Function:
    function = t.inner_function(types)
    return assemble.first_result(function)


def batch_of(t: Transformed, types: tuple) -> Function:
    in_axes, out_axes = t.options["in_axes"], t.options["out_axes"]
    axes = [in_axes] * len(types) if isinstance(in_axes, int) else list(in_axes)
    if len(axes) != len(types):
        raise TypeMismatchError(f"{t.name} has {len(types)} arguments and in_axes {len(axes)} entries", None,
                                "give one entry, or one for each argument")
    lanes = [lane_type(type, axis, name) for type, axis, name in zip(types, axes, t.parameter_names(len(types)))]
    return assemble.batch(t.inner_function(lanes), axes, out_axes)


def tangent_of(t: Transformed, types: tuple) -> Function:
    return assemble.tangent(t.inner_function(types[:len(types) // 2]))


def pullback_of(t: Transformed, types: tuple) -> Function:
    return assemble.pullback(t.inner_function(types[:-1]))


KINDS: dict[str, Kind] = {
    "grad": Kind("_grad", gradient_of, same_signature, interpreted),
    "value_and_grad": Kind("_value_and_grad", gradient_of, same_signature, interpreted),
    "jvp": Kind("_jvp", tangent_of, doubled_signature, interpreted),
    "vjp": Kind("_vjp", pullback_of, pullback_signature, interpreted),
    "first": Kind("", first_of, same_signature, interpreted),
    "vmap": Kind("_vmap", batch_of, same_signature, interpreted),
    "value": Kind("", lambda t, types: assemble.value_of(t.inner_function(types)), same_signature, interpreted),
    "jit": Kind("", lambda t, types: assemble.value_of(t.inner_function(types)), same_signature,
                lambda t, function: t.compiled(function)),
}
