"""Assembly of grad, vjp, jvp, hvp and vmap functions from the transformations.

Every function here takes the IR of `f`, prepared, and returns the IR of the function wanted,
finished.  Captured values stay trailing parameters throughout.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from .. import pipeline
from ..analysis.rank_inference import must_be_array, types_from_results
from ..errors import Line, TypeMismatchError
from ..ir.builder import Builder
from ..ir.graph import Block, Function, Value, walk
from ..ir.reemit import clone, emit_block, rebuild
from ..ir.types import UNKNOWN, Array, Scalar, Static, Tuple, Type, Unknown, carries_derivative
from ..ops.arrays.create import ones
from ..ops.core.chain_rule import like_operand
from ..ops.core.control import item, member_syntax, never_returns, packed
from ..ops.core.record import value
from ..ops.core.stop_gradient import put_aside, taken_back
from ..ops.program.pytree import leaf_types, leaves_of, parameter_tree, result_tree
from ..specialisation import members_of_axes

MOST_IN_RETURN = 3  # the most leaves of a container to print inline in the `return`
MOST_NAMED = 4  # members of one type that a docstring names one by one
LONGEST_NAMED = 100  # characters for the types of the members of a list


def value_of(function: Function) -> Function:
    """Finish f itself."""
    return pipeline.finish(with_ranks(function))


def gradient(function: Function, argnums: int | tuple[int, ...], has_aux: bool = False,
             with_value: bool = False, allow_int: bool = False, tape_limit: int | None = None,
             holomorphic: bool = False) -> Function:
    """Transform f(*xs) -> y to f_grad(*xs) -> x_bar, the derivatives of the number y in the
    arguments `argnums`.

    With `with_value`, f_value_and_grad(*xs) -> (y, x_bar).  With `has_aux`, y comes with something
    more, which is returned beside.  Raises TypeMismatchError where y is not a number or an argument
    is not inexact, and where one of them is not complex although the function is `holomorphic`.
    """
    wrt = [argnums] if isinstance(argnums, int) else list(argnums)
    check_arguments(function, wrt, allow_int)
    if holomorphic:
        check_complex(function, wrt)
    if never_returns(function):
        return always_raising(function, [],
                              f"{function.name}_{'value_and_grad' if with_value else 'grad'}")
    function = with_scalar_result(function, has_aux, holomorphic)
    if has_aux:
        function = with_constant_aux(function)

    def seeds() -> list[Value]:
        y = function.results[0].type
        first = ones(y.dims, y.dtype) if isinstance(y, Array) else value(1.0)
        return [first, *(value(0.0) for _ in differentiable(function)[1:])]

    def results(ys, bars):
        found = [bars[k] for k in wrt]
        bars = found[0] if isinstance(argnums, int) else tuple(found)
        aux = () if not has_aux else tuple(ys[1:]) if len(ys) > 2 else ys[1]
        if with_value:
            return [(ys[0], aux) if has_aux else ys[0], bars], True
        if has_aux:
            return [bars, aux], True
        return ([bars], False) if isinstance(argnums, int) else (found, True)

    subject = " and ".join(function.params[k].name for k in wrt)
    what = "value and the derivative" if with_value else "derivative"
    doc = f"The {what} of {function.name}{place(function)} with respect to {subject}."
    name = f"{function.name}_{'value_and_grad' if with_value else 'grad'}"
    made = pipeline.in_one_sweep(reverse(function, wrt, seeds, results, name, doc,
                                         tape_limit=tape_limit))
    if not with_value and not has_aux:
        name_results(made, [f"{function.params[k].name}_bar" for k in wrt])
    return made


def pullback(function: Function) -> Function:
    """Transform f(*xs) -> y to f_vjp(*xs, y_bar) -> x_bars, one for each argument; integers get
    zeros, non-numeric arguments None.
    """
    function = with_ranks(function)
    if never_returns(function):
        return always_raising(function, ["y_bar"], f"{function.name}_vjp")
    plain = function.params[:len(function.params) - len(function.captures)]
    y_bar = Value(cotangent_of([y.type for y in function.results], function.tupled), "y_bar")

    doc = (f"The cotangents of the arguments of {function.name}{place(function)} for a cotangent "
           "y_bar of its result.")
    made = reverse(function, differentiable_arguments(function), lambda: seeds_of(function, y_bar),
                   lambda ys, bars: (bars, True), f"{function.name}_vjp", doc, [y_bar])
    name_results(made, [f"{p.name}_bar" for p in plain])
    return made


def pullback_of_leaves(function: Function, wanted: Sequence[int]) -> Function:
    """Transform f(*xs) -> y to f_vjp(*xs, *y_bars) -> x_bars, of leaves.

    `y_bars` are the cotangents of the leaves of y that carry derivatives, `x_bars` those of the
    leaves of xs that are numbered in `wanted`; what only others need is not computed.
    """
    function = with_ranks(function)
    bars = [Value(t, f"y_bar_{k}" if k else "y_bar")
            for k, t in enumerate(differentiable(function))]
    name = f"{function.name}_vjp"
    if never_returns(function):
        return always_raising(function, [bar.name for bar in bars], name)
    numbered = numbers_of_leaves(function)
    wrt = [k for k, numbers in enumerate(numbered) if not {*numbers}.isdisjoint(wanted)]

    def results(ys, found):
        leaves = {number: leaf for k in wrt
                  for number, leaf in zip(numbered[k], leaves_of(value(found[k])))}
        return [leaves[number] for number in wanted], True

    doc = (f"Some cotangents of the arguments of {function.name}{place(function)} for the "
           "cotangents of its results.")
    return reverse(function, wrt, lambda: bars, results, name, doc, bars)


def tangent_of_leaves(function: Function, wanted: Sequence[int]) -> Function:
    """Transform f(*xs) -> y to f_jvp(*xs, *x_dots) -> y_dots, of leaves.

    `x_dots` are the tangents of the leaves of xs that are numbered in `wanted`, those of others are
    zeros; `y_dots` are the tangents of the leaves of y that carry derivatives.
    """
    function = with_ranks(function)
    name, numbered = f"{function.name}_jvp", numbers_of_leaves(function)
    wrt = [k for k, numbers in enumerate(numbered) if not {*numbers}.isdisjoint(wanted)]
    types = [t for p in function.params for t in leaf_types(p.type)]
    names = [f"{p.name}_dot" for p in function.params for _ in leaf_types(p.type)]
    dots = [Value(types[number], names[number]) for number in wanted]
    if never_returns(function):
        return always_raising(function, [dot.name for dot in dots], name)
    function = pipeline.with_captures_of_rules(function, wrt, "jvp")
    flat, _ = flatten_arguments(function, wrt)
    # the parameters of `flat`: a leaf of an argument in `wrt`, or another argument
    places = [number for k, numbers in enumerate(numbered)
              for number in (numbers if k in wrt else [None])]
    inner = pipeline.push_forward(flat, [places.index(number) for number in wanted])
    plain = len(numbered)
    params = [Value(p.type, p.name) for p in function.params]
    block = Block([*params[:plain], *dots, *params[plain:]])
    with Builder(block):
        found = emit_block(inner.block, [*flat_arguments(function, params, wrt), *dots,
                                         *params[plain:]], {})
        block.yields = found[len(flat.results):]
    doc = (f"The tangents of the results of {function.name}{place(function)} for some of its "
           "arguments'.")
    return describe_arguments(pipeline.finish(function.remade(block, name=name, doc=doc,
                                                              tupled=True, defaults={})))


def numbers_of_leaves(function: Function) -> list[range]:
    """Number the leaves of all arguments of `function` from 0; return those of each argument."""
    found, first = [], 0
    for p in function.params[:len(function.params) - len(function.captures)]:
        found.append(range(first, first + len(leaf_types(p.type))))
        first = found[-1].stop
    return found


def seeds_of(function: Function, y_bar: Value, has_aux: bool = False) -> list[Value]:
    """Return the cotangents of the result leaves: those of `y_bar`, and zeros for the auxiliary
    ones.
    """
    bars = ([item(y_bar, index=k) for k in range(len(function.results))] if function.tupled
            and not has_aux else [y_bar])
    found = [leaf for bar in bars for leaf in leaves_of(bar) if carries_derivative(leaf.type)]
    return [*found, *(value(0.0) for _ in range(len(differentiable(function)) - len(found)))]


def tangent(function: Function, sweep: Callable = pipeline.push_forward) -> Function:
    """Transform f(*xs) -> y to f_jvp(*xs, *x_dots) -> (y, y_dot); the x_dot of an integer is not
    read.
    """
    function = with_ranks(function)
    if never_returns(function):
        plain = function.params[:len(function.params) - len(function.captures)]
        return always_raising(function, [f"{p.name}_dot" for p in plain], f"{function.name}_jvp")
    wrt = differentiable_arguments(function)
    function = pipeline.with_captures_of_rules(function, wrt, "jvp")
    flat, leaves = flatten_arguments(function, wrt)
    inner = sweep(flat, [k for ks in leaves.values() for k in ks])
    plain, count = len(function.params) - len(function.captures), len(flat.results)
    params = [Value(p.type, p.name) for p in function.params]
    dots = [Value(p.type, f"{p.name}_dot") for p in params[:plain]]
    block = Block([*params[:plain], *dots, *params[plain:]])
    with Builder(block):
        given = [leaf for k in wrt for leaf in leaves_of(dots[k]) if carries_derivative(leaf.type)]
        found = emit_block(inner.block,
                           [*flat_arguments(function, params, wrt), *given, *params[plain:]], {})
        ys, y_dots = regrouped(function, found[:count]), iter(found[count:])
        y_dots = [tree_like(y.type, y_dots, zero_of) for y in function.results]
        block.yields = ([value(tuple(ys)), value(tuple(y_dots))] if function.tupled
                        else [ys[0], y_dots[0]])
    doc = (f"The value of {function.name}{place(function)} and its tangent, for the tangents of "
           "its arguments.")
    return describe_arguments(pipeline.finish(function.remade(block, name=f"{function.name}_jvp",
                                                              doc=doc, tupled=True, defaults={})))


def curvature(function: Function, argnums: int | tuple[int, ...]) -> Function:
    """Transform f(*xs) -> y to f_hvp(*xs, *x_dots) -> the derivative of its gradient in that
    direction.
    """
    made = clone(tangent(gradient(function, argnums)))
    if never_returns(made):
        return made
    made.name, made.tupled = f"{function.name}_hvp", False
    made.doc = (f"The Hessian of {function.name}{place(function)}, times the tangents of its "
                "arguments.")
    del made.block.yields[0]
    return describe_arguments(pipeline.finish(made))


def batch(function: Function, in_axes: Sequence[int | None], out_axes,
          types: Sequence[Type] | None = None, **axis) -> Function:
    """Transform f(*xs) -> *ys for one lane to f_vmap(*xs) -> *ys for many."""
    made = pipeline.batch(function, in_axes, out_axes, types, each_writes=True, **axis)
    made.doc = f"{function.name} for many lanes at once{place(function)}."
    return describe_arguments(pipeline.finish(made))


def always_raising(function: Function, extra: Sequence[str], name: str) -> Function:
    """Build the derivative of a function that always raises: the same, with more arguments."""
    function = clone(function)
    plain = len(function.params) - len(function.captures)
    params = function.params
    function.block.params = [*params[:plain], *(Value(UNKNOWN, n) for n in extra), *params[plain:]]
    doc = f"{function.name}{place(function)} raises, whatever it is given."
    return describe_arguments(pipeline.finish(Function(name, function.block, function.source, doc,
                                                       False, dict(function.captures),
                                                       dict(function.defaults))))


def batch_leaves(function: Function, axes: Sequence, out_axes, types: Sequence[Type],
                 **axis) -> Function:
    """Apply `batch` where arguments or results are containers: an axis may be a tree of axes, like
    the argument or a prefix of it.

    `axes` and `types` are those of the arguments, all lanes together.
    """
    plain = len(function.params) - len(function.captures)
    flat, _ = flatten_arguments(function, list(range(plain)))
    found = [axis for p, axis in zip(function.params, axes)
             for axis in leaf_axes(p.type, axis, p.name)]
    result = cotangent_of([y.type for y in function.results], function.tupled)
    outs = leaf_axes(result, out_axes, "the result")
    inner = pipeline.batch(flat, found, outs, [leaf for type in types for leaf in leaf_types(type)],
                           **axis)
    params = [Value(type, p.name) for p, type in zip(function.params, types)]
    captured = [Value(p.type, p.name)
                for p in inner.params[len(inner.params) - len(function.captures):]]
    block = Block([*params, *(captured if function.captures else [])])
    with Builder(block):
        leaves = [leaf for p in params for leaf in leaves_of(p)]
        block.yields = regrouped(function,
                                 emit_block(inner.block, [*leaves, *block.params[plain:]], {}))
    made = inner.remade(block, tupled=function.tupled)
    made.doc = f"{function.name} for many lanes at once{place(function)}."
    return describe_arguments(pipeline.finish(made))


def leaf_axes(type: Type, axes, name: str) -> list[int | None]:
    """Return the axis of each leaf of `type`; `axes` is one for all, or a tree of axes that is a
    prefix of `type`.
    """
    if isinstance(type, Static) or axes is None:
        return [None] * len(leaf_types(type))
    if isinstance(axes, int):
        return [None if isinstance(t, Static) else axes for t in leaf_types(type)]
    return [axis for t, inner in zip(type.items, members_of_axes(type, axes, name))
            for axis in leaf_axes(t, inner, name)]


def reverse(function: Function, wrt: Sequence[int], seeds: Callable, results: Callable, name: str,
            doc: str, extra: Sequence[Value] = (), tape_limit: int | None = None) -> Function:
    """Emit f_vjp with given cotangents: a function of the arguments of f and of `extra`.

    `seeds()` emits the cotangents of the results; `results(ys, bars)` says what is returned, from
    the values of f and the cotangents of its arguments, and whether that is a tuple.
    """
    function = pipeline.with_captures_of_rules(function, wrt, "vjp")
    flat, leaves = flatten_arguments(function, wrt)
    inner = pipeline.differentiate(flat, [k for ks in leaves.values() for k in ks], tape_limit)
    plain, count = len(function.params) - len(function.captures), len(flat.results)
    params = [Value(p.type, p.name) for p in function.params]
    block = Block([*params[:plain], *extra, *params[plain:]])
    with Builder(block):
        found = emit_block(inner.block,
                           [*flat_arguments(function, params, wrt), *seeds(), *params[plain:]], {})
        bars = iter(found[count:])
        bars = [tree_of_cotangents(p.type, bars) if k in leaves else None
                if isinstance(p.type, Static) else zero_of(p.type)
                for k, p in enumerate(params[:plain])]
        yields, tupled = results(regrouped(function, list(map(taken_back, found[:count]))), bars)
        block.yields = [value(y) for y in yields]
    return describe_arguments(
        pipeline.finish(function.remade(block, name=name, doc=doc, tupled=tupled)))


# ------------------------------------------------------------------------------ tuples of arguments


def flatten_arguments(function: Function,
                      wrt: Sequence[int]) -> tuple[Function, dict[int, list[int]]]:
    """Flatten the containers among the arguments `wrt` of `function`, and among its results, to
    leaves.

    Also, for each of `wrt`, which arguments of the new function are the members that carry
    derivatives.
    """
    leaves: dict[int, list[int]] = {}
    params: list[Value] = []
    block = Block(params)
    with Builder(block):
        args = []
        for k, p in enumerate(function.params):
            if k in wrt:
                before = len(params)
                args.append(value(parameter_tree(p.type, p.name, params)))
                leaves[k] = [n for n in range(before, len(params))
                             if carries_derivative(params[n].type)]
            else:
                params.append(Value(p.type, p.name))
                args.append(params[-1])
        if not any(isinstance(x.type, Tuple)
                   for x in (*(function.params[k] for k in wrt), *function.results)):
            return function, leaves
        block.yields = [leaf for y in emit_block(function.block, args, {}) for leaf in leaves_of(y)]
    return (function.remade(block, tupled=function.tupled or len(block.yields) != 1, defaults={}),
            leaves)


def regrouped(function: Function, leaves: Sequence[Value]) -> list:
    """Assemble the results of `function` from their leaves."""
    rest = iter(leaves)
    return [result_tree(y.type, rest) for y in function.results]


def tree_like(type: Type, rest: Iterator[Value], otherwise: Callable):
    """Build a tree like `type` from the next of `rest`, with `otherwise(type)` where it carries no
    derivative.
    """
    if isinstance(type, Tuple):
        return packed([tree_like(t, rest, otherwise) for t in type.items], type.form)
    return next(rest) if carries_derivative(type) else value(otherwise(type))


def flat_arguments(function: Function, params: Sequence[Value], wrt: Sequence[int]) -> list[Value]:
    """Return the arguments of the flattened function, without captures, from those of `function`.
    """
    plain = len(params) - len(function.captures)
    return [leaf for k, p in enumerate(params[:plain])
            for leaf in (leaves_of(p) if k in wrt else [p])]


def tree_of_cotangents(type: Type, bars: Iterator[Value]):
    """Build a tree like `type` from the next of `bars`, in its precision; zeros where it carries no
    derivative.
    """
    if isinstance(type, Tuple):
        return packed([tree_of_cotangents(t, bars) for t in type.items], type.form)
    return of_kind(next(bars), type) if carries_derivative(type) else zero_of(type)


def of_kind(bar: Value, type: Type) -> Value:
    """Convert `bar` to the precision of an argument of `type`; for a Python number, to a Python
    number.
    """
    return like_operand(bar, Value(type), firm=True)


def name_results(function: Function, names: Sequence[str]) -> None:
    """Give the results these names, where they are used for nothing else and have none."""
    read = {x for op in walk(function.block) for x in op.inputs}
    for y, name in zip(function.results, names):
        if y.op is not None and not y.name and y not in read and y.op.name != "constant" \
                and not (y.op.name == "tuple" and len(leaf_types(y.type)) <= MOST_IN_RETURN):
            y.name = name


# ----------------------------------------------------------------------------------------- checking


def with_ranks(function: Function, scalars: Sequence[Value] = ()) -> Function:
    """Settle the ranks in `function` that its loops and branches determine, given that `scalars`
    are numbers.
    """
    if not any(isinstance(p.type, Unknown) for p in function.params):
        return function
    types = types_from_results(function, [y for y in scalars if isinstance(y.type, Unknown)])
    if types == [p.type for p in function.params]:
        return function
    return pipeline.run(pipeline.PREPARE, rebuild(function, types))


def with_scalar_result(function: Function, has_aux: bool = False,
                       holomorphic: bool = False) -> Function:
    """Check that the (first) result of `function` is a real number, or an array of one, or complex
    if it is `holomorphic`, and settle the ranks that this determines.

    Raises TypeMismatchError if it cannot be one.
    """
    y = function.results[0] if function.results else None
    indexed = y is not None and isinstance(y.type, Unknown) and must_be_array(function, y)
    if not indexed:
        function = with_ranks(function, function.results[:1])
        y = function.results[0] if function.results else None
    if has_aux and y is not None and len(function.results) < 2 and not isinstance(y.type, Unknown):
        raise TypeMismatchError(f"has_aux=True, and {function.name} returns "
                                f"{describe_result(function)}", line_of_result(function),
                                "return a tuple: the number first, and " "more beside it")
    several = function.tupled and not (has_aux and len(function.results) >= 2)
    fits = is_holomorphic if holomorphic else is_real
    if y is None or several or indexed or not may_be_one_number(y.type) or not fits(y.type):
        said = "nothing" if y is None else describe_result(function)
        wanted = "complex number, with holomorphic=True," if holomorphic else "real number"
        raise TypeMismatchError(
            f"grad needs a function that returns one {wanted}, and {function.name} returns {said}"
            .replace(",, and", ", and"), line_of_result(function),
            "say has_aux=True, if it returns the number first and more beside it" if several
            and not indexed else
            "leave holomorphic=True out" if holomorphic and not indexed and y is not None
            and is_real(y.type) else
            "say holomorphic=True, if the function is, or reduce the result to a real number"
            if isinstance(getattr(y, "type", None), Scalar) and is_holomorphic(y.type) else
            "reduce the result to a number, e.g. with np.sum, or use s2s.jacrev")
    return function


def may_be_one_number(type: Type) -> bool:
    """Test whether `type` is that of a number, or of an array of one, or may be."""
    return (isinstance(type, (Scalar, Unknown))
            or isinstance(type, Array) and all(dim == 1 for dim in type.dims))


def is_holomorphic(type: Type) -> bool:
    """Test whether numbers of `type` may be complex."""
    return carries_derivative(type) and (type.dtype or "complex").startswith("complex")


def check_complex(function: Function, wrt: Sequence[int]) -> None:
    """Raise TypeMismatchError if an argument of a holomorphic function is not complex."""
    for k in wrt:
        param = function.params[k]
        for type in leaf_types(param.type):
            if carries_derivative(type) and not (getattr(type, "dtype", None)
                                                 or "complex").startswith("complex"):
                raise TypeMismatchError(f"grad with holomorphic=True, and {param.name} is "
                                        f"{describe(param.type)}", first_line(function),
                                        "pass a complex number, or leave holomorphic=True out")


def is_real(type: Type) -> bool:
    """Test whether numbers of `type` may be real, and carry a derivative."""
    return carries_derivative(type) and not (type.dtype or "").startswith("complex")


def check_arguments(function: Function, wrt: Sequence[int], allow_int: bool = False,
                    what: str = "grad") -> None:
    """Raise TypeMismatchError if a derivative is requested in an argument that is not inexact, and
    that is not allowed.
    """
    count = len(function.params) - len(function.captures)
    for k in wrt:
        if not 0 <= k < count:
            raise TypeMismatchError(f"{function.name} has {count} arguments, and argnums names "
                                    f"argument {k}", first_line(function), "number them from 0")
        param = function.params[k]
        if not allow_int and not wholly_differentiable(param.type):
            whole = isinstance(param.type, (Scalar, Array))
            place = "" if whole else f"; {first_integer(param)} is no float"
            raise TypeMismatchError(f"{what} with respect to {param.name}, which is "
                                    f"{describe(param.type)}: it has no derivative{place}",
                                    first_line(function), f"pass a float, e.g. `{param.name} = 2.0`"
                                    if whole else "pass floats and arrays of floats, or "
                                    "allow_int=True, which gives zeros for the rest")


def first_integer(param: Value) -> str:
    """Return the path, as Python, to the first member of a container that is data and carries no
    derivative.
    """
    type, where = param.type, ast.Name(param.name, ast.Load())
    while isinstance(type, Tuple):
        k = next(k for k, t in enumerate(type.items) if not isinstance(t, Static)
                 and not wholly_differentiable(t))
        type, where = type.items[k], member_syntax(where, type.form, k)
    return ast.unparse(where)


def wholly_differentiable(type: Type) -> bool:
    """Test whether `type`, or every member of it that is data, carries a derivative."""
    if isinstance(type, Tuple):
        return all(isinstance(t, Static) or wholly_differentiable(t) for t in type.items)
    return carries_derivative(type)


def differentiable_arguments(function: Function) -> list[int]:
    """Return the positions of the arguments that carry derivatives."""
    return [k for k, p in enumerate(function.params[:len(function.params) - len(function.captures)])
            if carries_derivative(p.type)]


def differentiable(function: Function) -> list[Type]:
    """Return the types of the result leaves that have a cotangent."""
    return [t for y in function.results for t in leaf_types(y.type) if carries_derivative(t)]


def zero_of(type: Type):
    """Emit zeros of `type`, a number or a container of numbers, whose extents are not needed.

    Non-numeric members stay as they are.
    """
    match type:
        case Tuple(items, form):
            return packed(list(map(zero_of, items)), form)
        case Static(content):
            return content
    return 0.0


def with_pair(function: Function, has_aux: bool) -> Function:
    """Check that `function` returns a pair (result, aux) if that is required."""
    if has_aux and not never_returns(function) and not (function.tupled
                                                        and len(function.results) == 2):
        raise TypeMismatchError(f"has_aux=True, and {function.name} returns no pair (result, more)",
                                line_of_result(function), "return a tuple of two")
    return function


def with_constant_aux(function: Function) -> Function:
    """Move the results of `function` beyond the first aside: `reverse` takes them back."""
    function = clone(function)
    with Builder(function.block):
        function.block.yields[1:] = [put_aside(y) for y in function.results[1:]]
    return function


def cotangent_of(types: Sequence[Type], tupled: bool) -> Type:
    """Return the type of the cotangent of a function's result."""
    return Tuple(tuple(types)) if tupled else types[0]


# --------------------------------------------------------------------------------------- describing


def first_line(function: Function) -> Line | None:
    """Return the line on which `function` begins."""
    return function.source.begins if function.source is not None else None


def line_of_result(function: Function) -> Line | None:
    """Return the line that computed the result of `function`, or the one on which it begins."""
    for y in function.results:
        if y.op is not None and y.op.line is not None:
            return y.op.line
    return first_line(function)


def describe_result(function: Function) -> str:
    """Describe the result of `function`."""
    kinds = ", ".join(describe(y.type) for y in function.results)
    return f"a tuple ({kinds})" if function.tupled else kinds


def describe(type: Type) -> str:
    """Describe `type`."""
    match type:
        case Scalar("int64", True):
            return "an integer"
        case Scalar(dtype, weak):
            return f"a {_short(dtype)}" if weak else f"a number ({dtype})"
        case Array():
            return f"an array {short(type)}"
        case Unknown():
            return "a number or an array"
        case Tuple(_, None):
            return f"a tuple {short(type)}"
        case Tuple(_, form):
            return f"a {form.cls.__name__}" + ("" if form.kind == "attributes"
                                               else f" {short(type)}")
    return short(type)


def short(type: Type) -> str:
    """Return `type` as a docstring names it: float, float64, float64[:, 1], (float, int)."""
    match type:
        case Scalar(dtype, weak):
            return _short(dtype) if weak else dtype
        case Array(dtype, dims):
            extents = ", ".join(str(d) if isinstance(d, int) else ":" for d in dims)
            return f"{dtype}[{extents}]"
        case Tuple(items, None):
            return _members(items, "()")
        case Tuple(items, form):
            if form.kind == "list":
                return _members(items, "[]")
            entries = ", ".join(map(_entry, form.keys, items))
            return f"({entries})" if form.kind == "dict" else f"{form.cls.__name__}({entries})"
        case Static(content):
            return repr(content)
    return str(type)


def _members(items: Sequence[Type], brackets: str) -> str:
    """Return the types of the members of a tuple or list: [float] * 5, [[float], ..., [float]]."""
    texts, (left, right) = [*map(short, items)], brackets
    if len(texts) > MOST_NAMED and len({*texts}) == 1:
        return f"{left}{texts[0]}{',' if left == '(' else ''}{right} * {len(texts)}"
    if len(texts) > 2 and sum(map(len, texts)) > LONGEST_NAMED:
        texts[1:-1] = ["..."]
    return f"{left}{', '.join(texts)}{right}"


def _entry(key, type: Type) -> str:
    return f"{key}: {short(type)}"


def _short(dtype: str) -> str:
    """Return Python's names of its own number types."""
    return dtype.rstrip("0123456789")


def place(function: Function) -> str:
    """Return the location of `function`, for a docstring: " (model.py, line 12)"."""
    return "" if function.source is None else function.source.place


def describe_arguments(function: Function) -> Function:
    """Extend the docstring of `function` by a description of its arguments."""
    known = [f"{p.name}: {short(p.type)}" for p in function.params
             if not isinstance(p.type, (Unknown, Static))]
    open_ones = [p.name for p in function.params if isinstance(p.type, Unknown)
                 and p.type.dtype is None]
    if open_ones:  # of complex numbers, derivatives are conjugated
        known.append(f"real {', '.join(open_ones)}")
    if known:
        function.doc = f"{function.doc.rstrip('.')}, for {', '.join(known)}."
    return function
