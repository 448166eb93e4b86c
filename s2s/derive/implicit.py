"""Implicit differentiation: `custom_root`, `custom_fixed_point`, `custom_linear_solve`.

A solver stops when a condition holds, f(x, θ) = 0.  The derivative of what it returns follows from
the condition alone, whatever the solver did:

    root            ∂f/∂x x_dot = -∂f/∂θ θ_dot                  solved by `tangent_solve`
    linear solve    A x_dot = b_dot - A_dot x                   solved like the first
                    Aᵀ λ = x_bar,  b_bar = λ,  A_bar = -λ xᵀ    and its transpose

(Griewank & Walther, Evaluating Derivatives, 2nd ed., section 15; the interface is that of jax.lax.)
θ is what the functions given close over.  Each is a function with rules for its derivatives that is
made inside the program (front/domain/rule_closures.py): the solver is read, or, where s2s cannot
read it, called as it is, and is not differentiated.  The rules call the function itself, so
derivatives of any order follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from .. import pipeline
from ..errors import SourceError, UnsupportedError
from ..front.domain.functions import FunctionValue, Intrinsic
from ..front.domain.rule_closures import ClosedCallee, Group, closed_function
from ..front.eval.apply import apply
from ..front.eval.opaque_calls import foreign_inside
from ..front.eval.python_builtins import BUILTINS
from ..front.rules.call_custom import code_name
from ..ir.builder import Builder, current
from ..ir.graph import Block, Function, Value, walk
from ..ir.reemit import emit_block
from ..ir.types import FLOAT, Array, Scalar, Static, Tuple, Type, carries_derivative
from ..ops.core.cast import float_
from ..ops.core.chain_rule import like_operand
from ..ops.core.control import item, packed
from ..ops.core.elementwise import negative
from ..ops.core.record import rank, value
from ..ops.core.shape import shaped_like, zeros_of
from ..ops.core.stop_gradient import stopped
from ..ops.program.opaque_call import functions_in
from ..ops.program.pytree import leaf_types, leaves_of
from ..transform.reverse.custom_rule_calls import invoke

ONE = inspect.Signature([inspect.Parameter("v", inspect.Parameter.POSITIONAL_OR_KEYWORD)])


def custom_root(f: Callable, initial_guess, solve: Callable, tangent_solve: Callable | None = None,
                has_aux: bool = False):
    """Find x with f(x) = 0 by `solve(f, initial_guess)`; differentiable in what `f` closes over.

    `x` is like `initial_guess`, and so is f(x).  `solve` may be any program, or a function that s2s
    cannot read, which calls SciPy: it is not differentiated.  `tangent_solve(g, y)` returns v with
    g(v) = y, for the linear function g that is the derivative of f at x; for a number it is `lambda
    g, y: y / g(1.0)`, and without it the matrix of g is made and solved with.  With `has_aux`,
    `solve` returns (x, aux), and so does this; aux has no derivative.
    """
    return solve(f, initial_guess)


def custom_fixed_point(f: Callable, initial_guess, solve: Callable,
                       tangent_solve: Callable | None = None):
    """Find x with f(x) = x by `solve(f, initial_guess)`; differentiable in what `f` closes over.

    `tangent_solve(g, y)` is that of `custom_root` for x - f(x), whose derivative is v - (∂f/∂x) v.
    """
    return solve(f, initial_guess)


def custom_linear_solve(matvec: Callable, b, solve: Callable,
                        transpose_solve: Callable | None = None, symmetric: bool = False,
                        has_aux: bool = False):
    """Find x with matvec(x) = b by `solve(matvec, b)`; differentiable in b and in what `matvec`
    closes over.

    `matvec` is linear, and x is like b.  `transpose_solve(vecmat, y)` solves with the transpose of
    matvec, which reverse mode needs; with `symmetric`, `solve` serves for both.  With `has_aux`,
    the solvers return (x, aux), and so does this; aux has no derivative.  The solvers are not
    differentiated.
    """
    return solve(matvec, b)


# ------------------------------------------------------------------------- functions of the program


class Inner:
    """A function of the program, of one tree of data: its IR, and the leaves that it closes over.
    """

    def __init__(self, frame, node, function, x: Type, name: str):
        def make(given: Sequence[Value]) -> list[Value]:
            y = frame.value(apply(frame, function, [frame.wrap(tree_of(x, iter(given)))], {}, node))
            self.y = y.type
            return leaves_of(y)

        params = [Value(t, "x") for t in leaf_types(x)]
        made, self.given = closed_function(frame, name, params, make)
        self.x, self.count = x, len(params)
        self.function = pipeline.run(pipeline.PREPARE, made)

    def along_x(self) -> Function:
        """Emit the tangents in x: (*x, *given, *x_dots) -> (*ys, *y_dots)."""
        return pipeline.push_forward(self.function, self.inexact_x)

    def along_closure(self) -> Function:
        """Emit the tangents in the closure: (*x, *given, *given_dots) -> (*ys, *y_dots)."""
        return pipeline.push_forward(self.function, self.inexact_given)

    def back_to_closure(self) -> Function:
        """Emit the cotangents of the closure: (*x, *given, *y_bars) -> (*ys, *given_bars)."""
        return pipeline.differentiate(self.function, self.inexact_given)

    @property
    def inexact_x(self) -> list[int]:
        return [k for k in range(self.count) if carries_derivative(self.function.params[k].type)]

    @property
    def inexact_given(self) -> list[int]:
        """The parameters that stand for closed-over values that carry a derivative."""
        return [k for k in range(self.count, len(self.function.params))
                if carries_derivative(self.function.params[k].type)]

    @property
    def differentiable(self) -> list[Value]:
        """The closed-over values that carry a derivative."""
        return [self.given[k - self.count] for k in self.inexact_given]

    def transpose(self) -> Inner:
        """Transpose this linear function, for arguments like its result."""
        # (*x, *given, *y_bars) -> (*ys, *x_bars)
        whole = pipeline.differentiate(self.function, self.inexact_x)
        made = Inner.__new__(Inner)
        made.x, made.y, made.count, made.given = self.y, self.x, len(leaf_types(self.y)), self.given
        given = [Value(p.type, p.name) for p in self.function.params[self.count:]]
        ys = [Value(y.type, "y") for y in self.function.results]
        block = Block([*ys, *given])
        with Builder(block):
            xs = [zeros_of(y) for y in ys]
            block.yields = in_place(whole, [*xs, *given, *ys])[len(ys):]
        name = f"{self.function.name}_transposed"
        made.function = pipeline.run(pipeline.PREPARE,
                                     Function(name, block, self.function.source, "",
                                              len(block.yields) != 1))
        return made

    def applied(self, name: str) -> Intrinsic:
        """This function, as the program calls it."""
        def run(frame, node, v):
            found = in_place(self.function, [*leaves_of(frame.value(v)), *self.given])
            return frame.wrap(tree_of(self.y, iter(found)))

        return Intrinsic(run, signature=ONE, name=name)

    def derivative_at(self, xs: Sequence[Value]) -> Intrinsic:
        """The derivative in x at `xs`, a linear function, as the program calls it."""
        function = self.along_x()

        def run(frame, node, v):
            dots = [like_operand(dot, x) for dot, x in zip(leaves_of(frame.value(v)), xs)]
            found = in_place(function, [*xs, *self.given, *dots])
            return frame.wrap(tree_of(self.y, iter(found[len(self.function.results):])))

        return Intrinsic(run, signature=ONE, name="g")


def in_place(function: Function, args: Sequence[Value]) -> list[Value]:
    """Inline a straight-line function; call any other."""
    if any(op.blocks for op in function.block.ops):
        return invoke(function, args)
    return emit_block(function.block, args, {})


def tree_of(type: Type, rest: Iterator[Value]) -> Value:
    """Build a tree like `type` from the next of `rest`."""
    if isinstance(type, Tuple):
        return packed([tree_of(t, rest) for t in type.items], type.form)
    return value(type.value) if isinstance(type, Static) else next(rest)


def emit_solve(frame, node, solve, function, start: Value, like: Type, inner: Callable) -> Value:
    """Emit `solve(function, start)`; where its source is not available, it is called as it is, and
    its result is like `like`.

    `inner()` is `function` as IR, which is handed to it then.
    """
    state, count = frame.snapshot(), len(current().block.ops)
    try:
        return frame.value(apply(frame, solve, [function, frame.wrap(start)], {}, node))
    except (SourceError, UnsupportedError) as refused:
        if isinstance(solve, FunctionValue):
            refused.remedy = (f"{refused.remedy}; or define the solver outside the program, and it "
                              "is called as it is")
            raise
        if isinstance(like, Tuple):
            raise frame.refuse(f"{code_name(solve, 'solve')}, which s2s does not read, solves for "
                               f"a {like}", node,
                               "let it solve for one number or array") from refused
        frame.restore(state)
        del current().block.ops[count:]
        return foreign_inside(solve, inner(), function, start, like, refused.message)


def values_like(leaves: Sequence[Value], name: str) -> list[Value]:
    """Create values like `leaves`, with `name` for those without a name."""
    return [Value(leaf.type, leaf.name or name) for leaf in leaves]


def named(xs: Sequence[Value], name: str) -> Sequence[Value]:
    """Name those of `xs` `name` that have no name."""
    for x in xs:
        x.name = x.name or name
    return xs


def call_it(name: str, made: ClosedCallee, start: str) -> None:
    """Name a function and its initial value, if it only calls the user's solver, which has a name
    of its own.
    """
    if any(functions_in(op) for op in walk(made.blocks["function"])):
        made.name = made.functions["function"].name = name
        named(made.blocks["function"].params, start)


def inexact(type: Type) -> Type:
    """Return the type of a solution like a value of `type`."""
    if isinstance(type, Tuple):
        return replace(type, items=tuple(map(inexact, type.items)))
    return FLOAT if isinstance(type, Scalar) and not carries_derivative(type) else type


def split_aux(y: Value, has_aux: bool, frame, node) -> tuple[Value, Value | None]:
    """Split (x, aux), or x alone."""
    if not has_aux:
        return y, None
    if not isinstance(y.type, Tuple) or len(y.type.items) != 2:
        raise frame.refuse(f"has_aux=True, and the solver returns {y.type}", node,
                           "return a pair: the solution, and more")
    return item(y, index=0), item(y, index=1)


# -------------------------------------------------------------------------------------------- roots


def solve_by_division(g, y):
    """Solve g(v) = y for a number v."""
    return y / g(1.0)


def solve_by_columns(g, y):
    """Solve g(v) = y for a vector v, by the matrix of g."""
    n = len(y)
    matrix = np.empty((n, n))
    for k in range(n):
        unit = np.zeros(n)
        unit[k] = 1.0
        matrix[:, k] = g(unit)
    return np.linalg.solve(matrix, y)


def solve_by_matrix(g, y):
    """Solve g(v) = y for arrays of any shape, by the matrix of g."""
    n = np.size(y)
    matrix = np.empty((n, n))
    for k in range(n):
        unit = np.zeros(n)
        unit[k] = 1.0
        matrix[:, k] = np.ravel(g(np.reshape(unit, np.shape(y))))
    return np.reshape(np.linalg.solve(matrix, np.ravel(y)), np.shape(y))


def default_solver(y: Type) -> Callable:
    """Return the default solver of a linear system for a value of type `y`."""
    if isinstance(y, Scalar):
        return solve_by_division
    return solve_by_columns if getattr(y, "rank", 0) == 1 else solve_by_matrix


def root_inside(frame, node, f, initial_guess, solve, tangent_solve=None, has_aux=False,
                handed=None):
    """Expand a call of `custom_root` in a program; `solve` is passed `f`, unless it is something
    else.
    """
    has_aux = frame.static(has_aux, "has_aux", node)
    guess = stopped(frame.value(initial_guess))
    leaves, group, types = leaves_of(guess), Group(frame), []
    handed = f if handed is None else handed
    root = ClosedCallee(code_name(solve, "solve"), leaves, group, frame.line(node), frame.source)
    root.is_constant = False

    def function(params):
        start = tree_of(guess.type, iter(params))
        like = inexact(guess.type)
        found = emit_solve(frame, node, solve, handed, start, like,
                           lambda: Inner(frame, node, handed, like, code_name(handed, "residual")))
        x, aux = split_aux(found, has_aux, frame, node)
        types[:] = [x.type, *([] if aux is None else [aux.type])]
        return [leaf for part in (x, aux) if part is not None for leaf in leaves_of(part)]

    root.add("function", leaves, function)
    call_it("root", root, "x0")
    residual = Inner(frame, node, f, types[0], code_name(f, "residual"))
    if len(leaf_types(residual.y)) != residual.count:
        raise frame.refuse(f"f(x) is {residual.y}, and x is {types[0]}", node,
                           "let f return what is like x")
    root.dots = {leaf: Value(leaf.type, f"{leaf.name}_dot") for leaf in residual.differentiable}

    def jvp(params):
        ys = root.call(params[:len(leaves)])
        xs = named(ys[:residual.count], "x")
        if not root.dots:
            return [*ys, *(zeros_of(y) for y in ys if carries_derivative(y.type))]
        f_dots = in_place(residual.along_closure(),
                          [*xs, *residual.given, *root.dots.values()])[len(xs):]
        rhs = tree_of(residual.y, iter([negative(dot) for dot in f_dots]))
        way = tangent_solve or default_solver(residual.y)
        if tangent_solve is None and isinstance(residual.y, Tuple):
            raise frame.refuse("custom_root of a container, without tangent_solve", node,
                               "give it a tangent_solve")
        found = leaves_of(
            frame.value(apply(frame, way, [residual.derivative_at(xs), frame.wrap(rhs)], {}, node)))
        if len(found) != len(xs) or any(None not in (rank(dot), rank(x)) and rank(dot) != rank(x)
                                        for dot, x in zip(found, xs)):
            raise frame.refuse("tangent_solve returns what is not like x", node,
                               "return v with g(v) = y")
        x_dots = [shaped_like(dot, x) if isinstance(x.type, Array) else dot
                  for dot, x in zip(found, xs)]
        return [*ys, *x_dots, *(zeros_of(y) for y in ys[len(xs):] if carries_derivative(y.type))]

    root.add("jvp", [*leaves, *(Value(leaves[k].type, "x_dot") for k in root.dotted)], jvp)
    group.finish()
    return frame.wrap(result_of(root.call(leaves), types, has_aux))


def result_of(found: Sequence[Value], types: Sequence[Type], has_aux: bool) -> Value:
    rest = iter(found)
    parts = [tree_of(t, rest) for t in types]
    return packed(parts, None) if has_aux else parts[0]


def fixed_point_inside(frame, node, f, initial_guess, solve, tangent_solve=None):
    """Expand a call of `custom_fixed_point` in a program: a root of x - f(x)."""
    def residual(frame, node, x):
        before = frame.value(x)
        after = leaves_of(frame.value(apply(frame, f, [x], {}, node)))
        return frame.wrap(tree_of(before.type,
                                  iter([a - b
                                        for a, b in zip(leaves_of(before), after, strict=True)])))

    return root_inside(frame, node, Intrinsic(residual, (f,), ONE, "residual"), initial_guess,
                       solve, tangent_solve, handed=f)


# ----------------------------------------------------------------------------------- linear systems


def linear_solve_inside(frame, node, matvec, b, solve, transpose_solve=None, symmetric=False,
                        has_aux=False):
    """Expand a call of `custom_linear_solve` in a program."""
    symmetric, has_aux = (frame.static(symmetric, "symmetric", node),
                          frame.static(has_aux, "has_aux", node))
    b = frame.value(b)
    if inexact(b.type) != b.type:
        b = tree_of(inexact(b.type),
                    iter([float_(x) if not carries_derivative(x.type) else x
                          for x in leaves_of(b)]))
    leaves, group = leaves_of(b), Group(frame)
    matrix = Inner(frame, node, matvec, b.type, code_name(matvec, "matvec"))
    if len(leaf_types(matrix.y)) != matrix.count:
        raise frame.refuse(f"matvec(x) is {matrix.y}, and b is {b.type}", node,
                           "let matvec return what is like b")
    types: dict[ClosedCallee, list[Type]] = {}

    def system(way, function, inner: Inner, name: str) -> ClosedCallee:
        made = ClosedCallee(name, leaves, group, frame.line(node), frame.source)
        made.is_constant = False

        def run(params):
            found = emit_solve(frame, node, way, function, tree_of(b.type, iter(params)), b.type,
                               lambda: inner)
            x, aux = split_aux(found, has_aux, frame, node)
            if len(leaf_types(x.type)) != len(leaves):
                raise frame.refuse(f"the solver returns {x.type}, and b is {b.type}", node,
                                   "return x with matvec(x) = b")
            types[made] = [x.type, *([] if aux is None else [aux.type])]
            return [leaf for part in (x, aux) if part is not None for leaf in leaves_of(part)]

        made.add("function", leaves, run)
        call_it("linear_solve" if way is solve else "transpose_solve", made, "b")
        return made

    name, count = code_name(solve, "solve"), len(leaves)
    straight = system(solve, matvec, matrix, name)
    pairs = [(straight, matrix, straight if symmetric else None)]
    if transpose_solve is not None and not symmetric:
        other = matrix.transpose()
        transposed = system(transpose_solve, other.applied("vecmat"), other, f"{name}_transposed"
                            if code_name(transpose_solve, "transpose_solve") == name
                            else code_name(transpose_solve, "transpose_solve"))
        pairs = [(straight, matrix, transposed), (transposed, other, straight)]
    for made, inner, turned in pairs:
        rules_of_system(made, inner, turned, count)
    group.finish()
    return frame.wrap(result_of(straight.call(leaves), types[straight], has_aux))


def rules_of_system(made: ClosedCallee, inner: Inner, turned: ClosedCallee | None,
                    count: int) -> None:
    """Return the derivative rules of x with A x = b: `inner` is A, `turned` solves with its
    transpose.
    """
    made.asked = "give custom_linear_solve a transpose_solve, or say symmetric=True"
    made.dots = {leaf: Value(leaf.type, f"{leaf.name}_dot") for leaf in inner.differentiable}
    leaves = made.leaves

    def jvp(params):
        ys = made.call(params[:count])
        rhs = list(params[count:])
        if made.dots:
            lag = in_place(inner.along_closure(),
                           [*ys[:count], *inner.given, *made.dots.values()])[count:]
            rhs = [b_dot - x for b_dot, x in zip(rhs, lag)]
        x_dots = made.call(rhs)[:count]
        return [*ys, *x_dots, *(zeros_of(y) for y in ys[count:] if carries_derivative(y.type))]

    def forward(params):
        ys = made.call(params)
        return [*ys, *named(ys[:count], "x")]

    def backward(params):
        xs, bars = params[count:2 * count], params[2 * count:3 * count]
        found = turned.call(bars)[:count]
        if not made.barred:
            return found
        seeds = [negative(bar) for bar in found]
        return [*found, *in_place(inner.back_to_closure(), [*xs, *inner.given, *seeds])[count:]]

    leaves = values_like(leaves, "b")
    made.add("jvp", [*leaves, *(Value(leaf.type, "b_dot") for leaf in leaves)], jvp)
    if turned is None:
        made.errors["vjp"] = made.missing("vjp")
    else:
        made.covered, made.barred = list(range(count)), list(inner.differentiable)
        ys = made.functions["function"].results
        made.add("forward", leaves, forward)
        bars = [Value(y.type, "x_bar") for y in ys if carries_derivative(y.type)]
        made.add("backward", [*leaves, *(Value(y.type, "x") for y in ys[:count]), *bars], backward)


BUILTINS.update({custom_root: root_inside, custom_fixed_point: fixed_point_inside,
                 custom_linear_solve: linear_solve_inside})
