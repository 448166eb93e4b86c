"""Jacobians and Hessians: one sweep that carries every direction at once.

    f(*xs) -> y    becomes    f_jacfwd(*xs) -> J    the tangents of all columns, beside the primal
                              f_jacrev(*xs) -> J    the primal once, then the cotangents of all rows

J has the tree of y, each leaf a tree like the argument, each leaf of that of shape y.shape +
x.shape.

Note [One sweep for all directions]
A loop over the directions would be least text, but would do the primal's work again in each.  One
sweep for each leaf of the arguments would carry fewer zeros, but repeats the program once for each.
So the directions of all leaves are one batch: `transform/batch/vmap` of the jvp, or of the vjp, in
which only the directions have the axis of lanes.  What does not depend on them (the primal, its
tapes, its branches and numbers of trips) stays as it was and is done once.  A function of one
number, or one that returns one, needs no batch at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import pipeline
from ..analysis.divergence import batched_results
from ..errors import DerivativeError, RankError, TypeMismatchError
from ..ir.builder import Builder, at
from ..ir.graph import Block, Function, Value, ops_behind
from ..ir.reemit import emit_op
from ..ir.types import Array, Extent, Scalar, Static, Tuple, Type, carries_derivative, has_unknown
from ..ops.arrays.axes import moveaxis
from ..ops.arrays.create import eye, zeros
from ..ops.arrays.index import take
from ..ops.arrays.reshape import reshape
from ..ops.core.control import Known, if_, never_returns, packed
from ..ops.core.elementwise import real
from ..ops.core.record import RECORDS, array_type, dims_of, dtype_of, rank, value
from ..ops.core.shape import length
from ..ops.core.stop_gradient import taken_back
from ..ops.program.pytree import leaf_types, leaves_of
from .assemble import (
    always_raising,
    check_arguments,
    describe,
    describe_arguments,
    first_line,
    flat_arguments,
    flatten_arguments,
    line_of_result,
    place,
    regrouped,
    with_constant_aux,
    with_ranks,
)


@dataclass(frozen=True)
class JacobianOptions:
    """The requested derivative: its arguments, auxiliary results and kind."""

    argnums: int | tuple[int, ...]
    has_aux: bool = False
    holomorphic: bool = False
    allow_int: bool = False

    @property
    def wrt(self) -> list[int]:
        return [self.argnums] if isinstance(self.argnums, int) else list(self.argnums)


# ------------------------------------------------------------------------------------ the two modes


def columns(function: Function, asked: JacobianOptions, name: str = "") -> Function:
    """Transform f(*xs) -> y to f_jacfwd(*xs) -> J, by forward mode."""
    name = name or f"{function.name}_jacfwd"
    function = check_jacobian(function, asked, "jacfwd")
    if never_returns(function):
        return always_raising(function, [], name)
    function = pipeline.with_captures_of_rules(function, asked.wrt, "jvp")
    flat, leaves = flatten_arguments(function, asked.wrt)
    wanted = [k for ks in leaves.values() for k in ks]
    inner = pipeline.finish(pipeline.push_forward(flat, wanted))
    plain, count = len(flat.params) - len(flat.captures), len(flat.results)
    dots = inner.params[plain:plain + len(wanted)]
    one = len(dots) == 1 and not dims_of(dots[0].type)
    if not one:
        inner = batched(inner, range(plain, plain + len(wanted)), count)
    block, params = open_block(function)
    with Builder(block):
        xs = flat_arguments(function, params, asked.wrt)
        given = [xs[k] for k in wanted]
        seeds, parts = (([one_like(given[0])], [0]) if one
                        else basis(given, [x.name and f"{x.name}_dot" for x in given]))
        found = emit_parts(inner, [*xs, *seeds, *params[len(params) - len(flat.captures):]], [])
        ys, y_dots = found[:count], iter(found[count:])
        y_dots = [next(y_dots) if carries_derivative(y.type) else None for y in flat.results]
        blocks = {}
        for j, (y, y_dot) in enumerate(zip(ys, y_dots)):
            for k, x, part in zip(wanted, given, parts):
                if y_dot is not None:
                    blocks[j, k] = y_dot if one else column_block(y_dot, part, y, x)
        block.yields, tupled = results(function, asked, ys, xs, leaves, blocks)
    return finish_jacobian(function, block, name, tupled, asked)


def rows(function: Function, asked: JacobianOptions, name: str = "") -> Function:
    """Transform f(*xs) -> y to f_jacrev(*xs) -> J, by reverse mode."""
    name = name or f"{function.name}_jacrev"
    function = check_jacobian(function, asked, "jacrev")
    if never_returns(function):
        return always_raising(function, [], name)
    function = pipeline.with_captures_of_rules(function, asked.wrt, "vjp")
    flat, leaves = flatten_arguments(with_constant_aux(function) if asked.has_aux else function,
                                     asked.wrt)
    wanted = [k for ks in leaves.values() for k in ks]
    number = len(leaf_types(function.results[0].type)) if asked.has_aux else len(flat.results)
    seeded = [j for j, y in enumerate(flat.results) if carries_derivative(y.type)]
    inner, plain, count = (pipeline.differentiate(flat, wanted),
                           len(flat.params) - len(flat.captures), len(flat.results))
    inner.late = frozenset(range(plain, plain + len(seeded)))
    inner = pipeline.finish(inner)
    of_y = [n for n, j in enumerate(seeded) if j < number]
    bars = inner.params[plain:plain + len(seeded)]
    one = len(of_y) == 1 and not dims_of(bars[of_y[0]].type)
    if not one and of_y:
        inner = batched(inner, [plain + n for n in of_y], count)
    block, params = open_block(function)
    with Builder(block):
        xs = flat_arguments(function, params, asked.wrt)
        parts: list = []

        def seeds(ys: Sequence[Value]) -> list[Value]:
            given = [ys[j] for j in seeded[:len(of_y)]]
            if given:
                found, parts[:] = (([one_like(given[0])], [0]) if one
                                   else basis(given, [bar.name for bar in bars]))
            return [*(found if given else []), *(value(0.0) for _ in seeded[len(of_y):])]

        args = [*xs, *([None] * len(seeded)), *params[len(params) - len(flat.captures):]]
        found = emit_parts(inner, args, range(count), seeds)
        ys, x_bars = list(map(taken_back, found[:count])), found[count:]
        blocks = {}
        for j, part in zip(seeded, parts):
            for k, x_bar in zip(wanted, x_bars):
                blocks[j, k] = in_dtype(x_bar if one else row_block(x_bar, part, ys[j], xs[k]),
                                        xs[k])
        block.yields, tupled = results(function, asked, ys, xs, leaves, blocks)
    return finish_jacobian(function, block, name, tupled, asked)


def hessian(function: Function, asked: JacobianOptions) -> Function:
    """Transform f(*xs) -> y to f_hessian(*xs) -> H: forward over reverse."""
    first = rows(function, asked)
    if never_returns(first):
        return first
    made = columns(first, asked, f"{function.name}_hessian")
    made.doc = made.doc.replace(f"The Jacobian of {first.name}", "The second derivatives of "
                                f"{function.name}", 1)
    return made


def cheaper_mode(function: Function, asked: JacobianOptions) -> Function:
    """Transform f(*xs) -> y to f_jacobian(*xs) -> J, by whichever mode has fewer directions.

    Where lengths decide that, and code is not specialised on lengths, the generated code holds both
    and asks.
    """
    name = f"{function.name}_jacobian"
    function = check_jacobian(function, asked, "jacobian")
    if never_returns(function):
        return always_raising(function, [], name)
    ys = (leaf_types(function.results[0].type) if asked.has_aux
          else [t for y in function.results for t in leaf_types(y.type)])
    xs = [leaf for k in asked.wrt for leaf in leaf_types(function.params[k].type)]
    ways = [side for side in (xs, ys) if not all(isinstance(t, (Scalar, Static)) for t in side)]
    complex_arguments, complex_results = (any((dtype_of(t) or "").startswith("complex")
                                              for t in side) and not asked.holomorphic
                                          for side in (xs, ys))
    if complex_results:
        return columns(function, asked, name)
    if ys not in ways and len(ys) <= len(xs) or complex_arguments or asked.allow_int:
        return rows(function, asked, name)
    try:
        forward = columns(function, asked, name)
    except DerivativeError:  # it calls a function with a rule for reverse mode only
        return rows(function, asked, name)
    if xs not in ways or extents_of(xs) == extents_of(ys) or not known_before(function, ys):
        return forward
    try:
        ways = forward, rows(function, asked, name)
    except DerivativeError:
        return forward
    block, params = open_block(function)
    with Builder(block):
        n, m = total_size(params, xs), total_size(params, ys)
        block.yields = list(
            if_(m < n, *(lambda way=way: emit_parts(way, params, []) for way in ways[::-1])))
    return finish_jacobian(function, block, name, ways[0].tupled, asked)


# ------------------------------------------------------------------------------- emitting the sweep


def batched(function: Function, positions: Sequence[int], count: int) -> Function:
    """Batch `function` over directions: the parameters at `positions`, and its results beyond the
    first `count`, have a leading axis of them.
    """
    positions = set(positions)
    lanes = Extent("directions")
    plain = len(function.params) - len(function.captures)
    types = [array_type(p.type.dtype, (lanes, *dims_of(p.type))) if k in positions else p.type
             for k, p in enumerate(function.params[:plain])]
    axes = [0 if k in positions else None for k in range(plain)]
    flags = tuple(k in positions for k in range(len(function.params)))
    differ = batched_results(Known(function), flags, tuple(p.type for p in function.params))
    outs = [0 if k >= count or flag else None for k, flag in enumerate(differ)]
    made = pipeline.batch(function, axes, outs, types)
    if any(differ[:count]):  # the auxiliary results of a loop over lanes, all alike
        with Builder(made.block):
            made.block.yields[:count] = [take(y, 0) if flag else y
                                         for y, flag in zip(made.results[:count], differ)]
    made.late = function.late
    return pipeline.finish(made)


def open_block(function: Function) -> tuple[Block, list[Value]]:
    """Open a block with the parameters of `function`."""
    params = [Value(p.type, p.name) for p in function.params]
    return Block(params), params


def emit_parts(function: Function, args: Sequence[Value | None], early: Sequence[int],
               late: Callable[[Sequence[Value]], list[Value]] | None = None) -> list[Value]:
    """Emit `function` on `args`; those that are None are computed by `late` from the results
    numbered `early`.

    What does not depend on them comes first.
    """
    env = {p: x for p, x in zip(function.params, args, strict=True) if x is not None}
    missing = [p for p, x in zip(function.params, args) if x is None]
    behind = ops_behind(function.block, missing)
    for op in function.block.ops:
        if op not in behind:
            with at(op.line):
                emit_op(op, env)
    if missing:
        env.update(zip(missing,
                       late([env.get(function.results[j], function.results[j]) for j in early]),
                       strict=True))
    for op in function.block.ops:
        if op in behind:
            with at(op.line):
                emit_op(op, env)
    return [env.get(y, y) for y in function.results]


# --------------------------------------------------------------------------------------- directions


def one_like(x: Value) -> Value:
    """Return the only direction of a number."""
    return value(1.0 + 0j if (dtype_of(x.type) or "").startswith("complex") else 1.0)


def basis(xs: Sequence[Value], names: Sequence[str]) -> tuple[list[Value], list]:
    """Return all directions of the values `xs` together, for each value with a leading axis of
    them; and which belong to it.

    What is new is called by `names`.
    """
    sizes = [size_of(x) for x in xs]
    dtypes = [dtype_of(x.type) or "float64" for x in xs]
    common = np.result_type(*dtypes).name
    if len(xs) == 1:
        every = eye(sizes[0], dtype=None if common == "float64" else np.dtype(common))
        found = reshape_second_axis(every, sizes[0], xs[0])
        found.name = found.name or names[0]
        return [found], [slice(None)]
    ends = [value(0)]
    for size in sizes:
        ends.append(ends[-1] + size)
    every = eye(ends[-1], dtype=None if common == "float64" else np.dtype(common))
    every.name = "basis"
    found, parts = [], []
    for x, dtype, name, start, end in zip(xs, dtypes, names, ends, ends[1:]):
        part = slice(start, end) if dims_of(x.type) else start
        own = reshape_second_axis(take(every, (slice(None), part)), ends[-1], x)
        found.append(own if dtype == common else RECORDS["astype"](own, dtype=dtype))
        found[-1].name = found[-1].name or name
        parts.append(part)
    return found, parts


def reshape_second_axis(x: Value, count: Value, like: Value) -> Value:
    """Reshape the second axis of `x` to the shape of `like`."""
    return x if rank(like) < 2 else reshape(x, count, *lengths(like))


def lengths(x: Value) -> list[Value]:
    """Emit the lengths of the axes of `x`."""
    return [length(x, axis=k) for k in range(rank(x))]


def size_of(x: Value) -> Value:
    """Emit the number of elements of `x`."""
    count = value(1)
    for n in lengths(x):
        count = count * n
    return count


def column_block(y_dot: Value, part, y: Value, x: Value) -> Value:
    """Return ∂y/∂x from the tangents in all directions, of which `part` are those of x."""
    columns_last = moveaxis(y_dot, 0, rank(y))
    if not isinstance(part, slice) or part != slice(None):
        columns_last = take(columns_last, (*[slice(None)] * rank(y), part))
    return columns_last if rank(x) < 2 else reshape(columns_last, *lengths(y), *lengths(x))


def row_block(x_bar: Value, part, y: Value, x: Value) -> Value:
    """Return ∂y/∂x from the cotangents in all directions, of which `part` are those of y."""
    own = x_bar if isinstance(part, slice) and part == slice(None) else take(x_bar, part)
    return own if rank(y) < 2 else reshape(own, *lengths(y), *lengths(x))


def in_dtype(bar: Value, x: Value) -> Value:
    """Convert a derivative to the dtype of the variable that it is with respect to."""
    own, wanted = dtype_of(bar.type), dtype_of(x.type)
    if own is None or wanted is None or own == wanted:
        return bar
    if own.startswith("complex") and not wanted.startswith("complex"):
        bar, own = real(bar), {"complex128": "float64", "complex64": "float32"}[own]
    return bar if own == wanted else RECORDS["astype"](bar, dtype=wanted)


# ------------------------------------------------------------------------------------------ results


def results(function: Function, asked: JacobianOptions, ys: Sequence[Value], xs: Sequence[Value],
            leaves: dict[int, list[int]],
            blocks: dict[tuple[int, int], Value]) -> tuple[list[Value], bool]:
    """Return the results of the Jacobian, and whether they are a tuple: the tree of y, with trees
    like the arguments as leaves.
    """
    starts = argument_starts(function, asked.wrt)

    def of_arguments(j: int) -> Value:
        trees = [of_argument(function.params[k].type, j, iter(range(starts[k], len(xs))))
                 for k in asked.wrt]
        return trees[0] if isinstance(asked.argnums, int) else packed(trees, None)

    def of_argument(type: Type, j: int, numbers) -> Value:
        if isinstance(type, Tuple):
            return packed([of_argument(t, j, numbers) for t in type.items], type.form)
        k = next(numbers)
        if (j, k) in blocks:
            return blocks[j, k]
        return (value(type.value) if isinstance(type, Static)
                else zeros(value((*lengths(ys[j]), *lengths(xs[k])))))

    def of_result(type: Type, numbers) -> Value:
        if isinstance(type, Tuple):
            return packed([of_result(t, numbers) for t in type.items], type.form)
        j = next(numbers)
        return value(type.value) if isinstance(type, Static) else of_arguments(j)

    numbers = iter(range(len(ys)))
    if asked.has_aux:
        found = of_result(function.results[0].type, numbers)
        aux = regrouped(function, ys)[1:]
        return [found, aux[0] if len(aux) == 1 else value(tuple(aux))], True
    return [of_result(y.type, numbers) for y in function.results], function.tupled


def argument_starts(function: Function, wrt: Sequence[int]) -> dict[int, int]:
    """Return the number of the first leaf of each argument, where those in `wrt` are flattened."""
    starts, count = {}, 0
    for k, p in enumerate(function.params):
        starts[k] = count
        count += len(leaf_types(p.type)) if k in wrt else 1
    return starts


def finish_jacobian(function: Function, block: Block, name: str, tupled: bool,
                    asked: JacobianOptions) -> Function:
    """Clean up the Jacobian and describe it."""
    subject = " and ".join(function.params[k].name for k in asked.wrt)
    doc = f"The Jacobian of {function.name}{place(function)} with respect to {subject}."
    return describe_arguments(
        pipeline.finish(function.remade(block, name=name, doc=doc, tupled=tupled)))


# ----------------------------------------------------------------------------------------- checking


def check_jacobian(function: Function, asked: JacobianOptions, what: str) -> Function:
    """Check that `function` has the requested Jacobian, with ranks as far as they are known;
    TypeMismatchError otherwise.
    """
    check_arguments(function, asked.wrt, asked.allow_int, what)
    function = with_ranks(function)
    if never_returns(function):
        return function
    if asked.has_aux:
        if len(function.results) < 2 or not function.tupled:
            raise TypeMismatchError(f"has_aux=True, and {function.name} returns "
                                    f"{describe(function.results[0].type)}",
                                    line_of_result(function), "return a tuple: the result first, "
                                    "and more beside it")
    ys = function.results[:1] if asked.has_aux else function.results
    types = [p.type for k, p in enumerate(function.params) if k in asked.wrt] + [y.type for y in ys]
    if any(map(has_unknown, types)):
        raise RankError(f"{what} of {function.name}, before the ranks of its arguments are known",
                        first_line(function), "call it, annotate its arguments, or give .lower() "
                        "arguments like those it is for")
    for k in asked.wrt:
        for leaf in leaf_types(function.params[k].type):
            check_kind(leaf, function.params[k].name, asked, what, function)
    for leaf in (leaf for y in ys for leaf in leaf_types(y.type)):
        check_result(leaf, asked, what, function)
    return function


def check_kind(type: Type, name: str, asked: JacobianOptions, what: str,
               function: Function) -> None:
    """Raise TypeMismatchError where an argument is complex and should not be, or the other way
    round.
    """
    is_complex = (dtype_of(type) or "").startswith("complex")
    if asked.holomorphic and carries_derivative(type) and not is_complex:
        raise TypeMismatchError(f"{what} with holomorphic=True, and {name} is {describe(type)}",
                                first_line(function), "pass a complex number, or leave "
                                "holomorphic=True out")
    if what == "jacfwd" and is_complex and not asked.holomorphic:
        raise TypeMismatchError(f"{what} with respect to {name}, which is {describe(type)}",
                                first_line(function), "say holomorphic=True if the function is, "
                                "use s2s.jacrev for real results, or s2s.jvp")


def check_result(type: Type, asked: JacobianOptions, what: str, function: Function) -> None:
    """Raise TypeMismatchError where a result has no Jacobian."""
    line = line_of_result(function)
    if not isinstance(type, Static) and not carries_derivative(type):
        raise (TypeMismatchError(f"{what} of a result that is {describe(type)}: it has no "
                                 "derivative", line, "return floats, and the rest beside them with "
                                 "has_aux=True, or use s2s.vjp"))
    is_complex = (dtype_of(type) or "").startswith("complex")
    if asked.holomorphic and carries_derivative(type) and not is_complex:
        raise TypeMismatchError(
            f"{what} with holomorphic=True of a result that is {describe(type)}", line,
            "return complex numbers, or leave holomorphic=True out")
    if what == "jacrev" and is_complex and not asked.holomorphic:
        raise TypeMismatchError(f"{what} of a result that is {describe(type)}", line,
                                "say holomorphic=True if the function is, or use s2s.vjp")


def extents_of(types: Sequence[Type]) -> list:
    """Return the extents of arrays; those of a single array sorted, since their order does not
    change the number of elements.
    """
    return (sorted((d for t in types for d in dims_of(t)), key=str) if len(types) == 1
            else [dims_of(t) for t in types])


def known_before(function: Function, types: Sequence[Type]) -> bool:
    """Test whether the lengths in `types` are known from the arguments."""
    known = {d for p in function.params for leaf in leaf_types(p.type) for d in dims_of(leaf)}
    return all(isinstance(d, int) or d in known or source_extent(d) in known for t in types
               for d in dims_of(t))


def source_extent(d: Extent) -> Extent:
    """Return the extent from which `d` is sliced."""
    return replace(d, offset=0)


def total_size(params: Sequence[Value], types: Sequence[Type]) -> Value:
    """Emit the number of elements in values of `types`, computed from the arguments."""
    found = {d: length(leaf, axis=k) for p in params for leaf in leaves_of(p)
             if isinstance(leaf.type, Array) for k, d in reversed(list(enumerate(leaf.type.dims)))
             if isinstance(d, Extent)}
    total = value(0)
    for t in types:
        if isinstance(t, Static):
            continue
        size = value(1)
        for d in dims_of(t):
            size = size * (d if isinstance(d, int) else found[d] if d in found
                           else found[source_extent(d)] + d.offset)
        total = total + size
    return total
