"""The kinds of transformation: for each its name suffix, signature, IR, and what a call runs.

These functions are called by a `Transformed`, which is their argument: `t.inner_function(types)` is
the IR of the function inside, `t.options` are the options of the transformation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import pipeline
from .call.argnums import resolve_argnums
from .derive import assemble, batched_seeds, jacobians, linear_maps
from .derive.gradients_of_lanes import gradients_of_lanes
from .derive.vectorized import vectorized
from .errors import TypeMismatchError
from .front.eval.unwrap_callable import names_of
from .ir.graph import Function
from .ir.types import Generator, Static, Tuple, Type, Unknown, carries_derivative, has_unknown
from .ops.program.checkpoint import Checkpointed
from .ops.program.pytree import leaf_types
from .specialisation import lane_type, parameters_of, signature_of, type_of


@dataclass(frozen=True)
class Kind:
    """One transformation: its name suffix, its signature, its IR, and what a call runs."""

    suffix: str
    function: Callable[[object, tuple], Function]
    signature: Callable[[object], inspect.Signature]
    callable: Callable[[object, Function], Callable]
    # (t, number of arguments) -> their names
    names: Callable[[object, int], list[str]] = names_of


def interpreted(transformed, function: Function) -> Callable:
    """Load the generated source, run by Python."""
    return pipeline.loaded(pipeline.readable(function))


def run_like_inside(transformed, function: Function) -> Callable:
    """Compile where the function inside is compiled, interpret otherwise."""
    native = native_inside(transformed)
    return native(function) if native is not None else interpreted(transformed, function)


def native_inside(transformed) -> Callable | None:
    """Return the compiler of the function inside; None if it is not compiled."""
    inner = transformed.inner
    while isinstance(inner, Checkpointed):
        inner = inner.function
    if not hasattr(inner, "function_for"):  # a wrapper that has copied the attributes of one
        return None
    if not hasattr(inner, "kind"):  # the result of vjp or linearize
        return inner.native
    return inner.compiled if inner.kind == "jit" else None


def same_signature(transformed) -> inspect.Signature:
    """Return the signature of the function inside."""
    return signature_of(transformed.inner)


def doubled(transformed, count: int) -> list[str]:
    """Extend x, y to x, y, x_dot, y_dot."""
    names = names_of(transformed.inner, count // 2)
    return names + [f"{n}_dot" for n in names]


def doubled_signature(transformed) -> inspect.Signature:
    """Extend (x, y) to (x, y, x_dot, y_dot)."""
    count = number_of_arguments(transformed)
    return ANY_NUMBER if count is None else positional(doubled(transformed, 2 * count))


def pulled_back(transformed, count: int) -> list[str]:
    """Extend x, y to x, y, y_bar."""
    return [*names_of(transformed.inner, count - 1), "y_bar"]


def pullback_signature(transformed) -> inspect.Signature:
    """Extend (x, y) to (x, y, y_bar)."""
    count = number_of_arguments(transformed)
    return ANY_NUMBER if count is None else positional(pulled_back(transformed, count + 1))


ANY_NUMBER = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])


def number_of_arguments(transformed) -> int | None:
    """Return the number of arguments of the function inside; None where it takes any number."""
    if "count" in transformed.options:
        return transformed.options["count"]
    kinds = [p.kind for p in parameters_of(transformed.inner)]
    return (None if inspect.Parameter.VAR_POSITIONAL in kinds
            else len(kinds) - kinds.count(inspect.Parameter.VAR_KEYWORD))


def positional(names: Sequence[str]) -> inspect.Signature:
    """Return the signature of a function of these positional arguments."""
    unique: list[str] = []
    for n in names:
        while n in unique:
            n = f"{n}_1"
        unique.append(n)
    return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY)
                              for n in unique])


def gradient_of(t, types: tuple) -> Function:
    function = t.inner_function(types)
    return assemble.gradient(function, resolve_argnums(t.options["argnums"], t.inner, types),
                             t.options["has_aux"], with_value=t.kind == "value_and_grad",
                             allow_int=t.options.get("allow_int", False),
                             tape_limit=t.options.get("tape_limit"),
                             holomorphic=t.options.get("holomorphic", False))


def batch_of(t, types: tuple) -> Function:
    in_axes, out_axes = t.options["in_axes"], t.options["out_axes"]
    named = {key: t.options[key] for key in ("axis_name", "axis_size", "workers", "together")
             if key in t.options}
    parameters = list(t.signature.parameters.values())
    if len(parameters) != len(types) or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
                                            for p in parameters):
        parameters = [inspect.Parameter("_", inspect.Parameter.POSITIONAL_ONLY)] * len(types)
    # all lanes share non-numeric arguments, such as the object of a method
    if in_axes is None:
        axes = [None] * len(types)
    elif isinstance(in_axes, int):
        shared = t.options.get("shared", 0)
        axes = [None if k < shared or isinstance(type, (Static, Generator))
                else axis_left_open(t, p, type, in_axes)
                for k, (p, type) in enumerate(zip(parameters, types))]
    else:
        rest = list(zip(parameters, types))[len(in_axes):]
        are_open = all(p.default is not p.empty or p.kind is p.KEYWORD_ONLY for p, _ in rest)
        axes = [*in_axes, *(axis_left_open(t, p, type, 0) for p, type in rest if are_open)]
    if len(axes) != len(types):
        raise TypeMismatchError(f"{t.name} has {len(types)} arguments and in_axes {len(axes)} "
                                "entries", None, "give one entry, or one for each argument")
    lanes = [lane_type(type, axis, name)
             for type, axis, name in zip(types, axes, t.parameter_names(len(types)))]
    known = not any(isinstance(type, Unknown) for type in types)
    inner = t.inner
    if (known and getattr(inner, "kind", None) in ("grad", "value_and_grad")
            and not named.keys() & {"axis_name", "workers"}
            and not any(x for key, x in inner.options.items() if key != "argnums")):
        found = gradients_of_lanes(
            inner.inner_function(lanes), resolve_argnums(inner.options["argnums"], inner.inner,
                                                         lanes),
            inner.kind == "value_and_grad", axes, out_axes, types, **named)
        if found is not None:
            return found
    function = t.inner_function(lanes)
    if known and any(isinstance(x.type, Tuple) for x in (*function.params, *function.results)):
        return assemble.batch_leaves(function, axes, out_axes, types, **named)
    return assemble.batch(function, axes, out_axes, types if known else None, **named)


def axis_left_open(t, p: inspect.Parameter, type: Type, axis: int) -> int | None:
    """Return the lane axis of a parameter without an entry in `in_axes`: None for shared ones, such
    as defaults.

    The function is generated for its arguments, among which a default looks no different from what
    a caller passes.  A number has no lanes; an array has them where the default is none, or has an
    axis less.
    """
    if p.default is p.empty:
        return axis
    given, own = _ranks(type), _ranks(type_of(p.default, p.name))
    if not any(given):
        return None
    if any(own) and not (len(given) == len(own) and all(a == b + 1 for a, b in zip(given, own))):
        raise TypeMismatchError(f"{t.name}: whether lanes share {p.name} or have one each, in_axes "
                                "does not say", None, "give in_axes an entry for each argument, "
                                f"with None for {p.name} if they share it")
    return axis


def _ranks(type: Type) -> list:
    """Return the number of axes of each leaf of a type, in one list."""
    return ([n for x in type.items for n in _ranks(x)] if isinstance(type, Tuple)
            else [len(getattr(type, "dims", ()))])


def tangent_of(t, types: tuple) -> Function:
    check_tangents(t, types)
    return assemble.tangent(t.inner_function(types[:len(types) // 2]))


def linearized_of(t, types: tuple) -> Function:
    check_tangents(t, types)
    return assemble.tangent(t.inner_function(types[:len(types) // 2]), pipeline.linearize)


def check_tangents(t, types: tuple) -> None:
    """Raise TypeMismatchError where one of the tangents, which follow the primals, does not fit its
    primal.
    """
    names = t.parameter_names(len(types))
    for name, type, dot in zip(names, types, types[len(types) // 2:]):
        if not carries_derivative(type) or has_unknown(type) or has_unknown(dot):
            continue
        if _axes(type) != _axes(dot):
            raise TypeMismatchError(f"{t.name}: the tangent of {name}, which is {type}, is {dot}",
                                    None, "make it as long and as deep as what it goes with")
        if any(is_complex(d) and not is_complex(x)
               for x, d in zip(leaf_types(type), leaf_types(dot)) if carries_derivative(x)):
            raise TypeMismatchError(f"{t.name}: the tangent of {name}, which is {type}, is {dot}",
                                    None, "give its real part")


def is_complex(type: Type) -> bool:
    """Test whether numbers of this type are complex."""
    return (getattr(type, "dtype", None) or "").startswith("complex")


def pullback_of(t, types: tuple) -> Function:
    return assemble.pullback(t.inner_function(types[:-1]))


def jacobian_of(t, types: tuple) -> Function:
    options = {**t.options, "argnums": resolve_argnums(t.options["argnums"], t.inner, types)}
    return JACOBIANS[t.kind](t.inner_function(types), jacobians.JacobianOptions(**options))


def curvature_of(t, types: tuple) -> Function:
    check_tangents(t, types)
    inner = types[:len(types) // 2]
    return assemble.curvature(t.inner_function(inner),
                              resolve_argnums(t.options["argnums"], t.inner, inner))


JACOBIANS = {"jacfwd": jacobians.columns, "jacrev": jacobians.rows,
             "jacobian": jacobians.cheaper_mode, "hessian": jacobians.hessian}


def extended_by(name: str) -> Callable[[object, int], list[str]]:
    """Return the function that extends the names x, y to x, y, name, name_1, ..."""
    def names(transformed, count: int) -> list[str]:
        own = transformed.options["count"]
        return [*names_of(transformed.inner, own),
                *(f"{name}_{k}" if k else name for k in range(count - own))]

    return names


def pullback_of_leaves(t, types: tuple) -> Function:
    return assemble.pullback_of_leaves(t.inner_function(types[:t.options["count"]]),
                                       t.options["wanted"])


def tangent_of_leaves(t, types: tuple) -> Function:
    return assemble.tangent_of_leaves(t.inner_function(types[:t.options["count"]]),
                                      t.options["wanted"])


def columns_of(t, types: tuple) -> Function:
    return batched_seeds.columns(t.inner_function(types[:t.options["count"]]), t.options["argnums"],
                                 types, t.options["lanes"])


def rows_of(t, types: tuple) -> Function:
    return batched_seeds.rows(t.inner_function(types[:t.options["count"]]), t.options["argnums"],
                              types, t.options["lanes"])


def _axes(type: Type):
    """Return the number of axes of each leaf of a type."""
    return tuple(map(_axes, type.items)) if isinstance(type,
                                                       Tuple) else len(getattr(type, "dims", ()))


KINDS: dict[str, Kind] = {
    "grad": Kind("_grad", gradient_of, same_signature, interpreted),
    "value_and_grad": Kind("_value_and_grad", gradient_of, same_signature, interpreted),
    "jvp": Kind("_jvp", tangent_of, doubled_signature, interpreted, names=doubled),
    "hvp": Kind("_hvp", curvature_of, doubled_signature, interpreted, names=doubled),
    "vjp": Kind("_vjp", pullback_of, pullback_signature, interpreted, names=pulled_back),
    **{kind: Kind(f"_{kind}", jacobian_of, same_signature, interpreted) for kind in JACOBIANS},
    "linearize": Kind("_jvp", linearized_of, doubled_signature, interpreted, names=doubled),
    "reverse half": Kind(
        "_fwd", lambda t, types: linear_maps.reverse_halves(t.inner_function(types),
                                                            t.options.get("has_aux", False)),
        same_signature, run_like_inside),
    "forward half": Kind(
        "_fwd", lambda t, types: linear_maps.forward_halves(t.inner_function(types),
                                                            t.options.get("has_aux", False)),
        same_signature, run_like_inside),
    "vjp of leaves": Kind("_vjp", pullback_of_leaves, lambda t: ANY_NUMBER, interpreted,
                          names=extended_by("y_bar")),
    "jvp of leaves": Kind("_jvp", tangent_of_leaves, lambda t: ANY_NUMBER, interpreted,
                          names=extended_by("x_dot")),
    "columns": Kind("_columns", columns_of, lambda t: ANY_NUMBER, interpreted,
                    names=extended_by("seed")),
    "rows": Kind("_rows", rows_of, lambda t: ANY_NUMBER, interpreted,
                 names=extended_by("seed")),
    "vmap": Kind("_vmap", batch_of, same_signature, interpreted),
    "pmap": Kind("_pmap", batch_of, same_signature, interpreted),
    "vectorize": Kind("_vectorized", vectorized, same_signature, interpreted),
    "value": Kind("", lambda t, types: assemble.value_of(t.inner_function(types)), same_signature,
                  interpreted),
    "jit": Kind("", lambda t, types: assemble.value_of(t.inner_function(types)), same_signature,
                lambda t, function: t.compiled(function)),
}
