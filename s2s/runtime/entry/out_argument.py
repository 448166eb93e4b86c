"""Implement `out=`: native code that writes its results into the caller's arrays and allocates none
for them.

    def f_grad(x):                            def f_grad(x, out):
        x_bar = np.zeros(len(x))                  x_bar = cleared(out, len(x))
        ...                          becomes      ...
        return x_bar                              return ()

A returned array that the function allocates once, unconditionally, is replaced by the caller's;
other results are copied into it. The function raises, having written nothing, where the caller's
array has another shape than the first allocation, or shares memory with an argument or another
result; then results are allocated and copied (`written`), which is right whatever shares memory.

Considered: marking in the IR which parameter is a result: every pass that reasons about ownership
would have to know of it. Allocating in Python and always calling this form: that costs more than
Numba's own allocation for few results, and lengths known only at run time cannot be allocated
before it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from ...back.print.printer import Module
from ...back.syntax.ast_names import nodes_in
from ...ir.types import Array, Type
from ..threads.parallel_for import apart  # noqa: F401, one of the HELPERS

FEW = 12  # arrays compared pairwise
HELPERS = ("taken", "cleared", "copied", "apart", "low", "high", "overlapping")


def into_form(module: Module, parameters: Sequence[Type],
              results: Sequence[Type]) -> tuple[Module, str]:
    """`module`, whose entry gets an extra parameter per array among its `results`, and returns a
    tuple of the numbers alone.

    Also return the condition on its parameters `a0`, `a1`, ... under which it must not run: its
    arguments share memory.
    """
    tree = ast.parse(module.text)
    (entry,) = (node
                for node in tree.body
                if isinstance(node, ast.FunctionDef) and node.name == module.entry)
    names = ({node.id for node in nodes_in(tree) if isinstance(node, ast.Name)}
             | {a.arg for a in entry.args.args})
    outs = {k: free(f"out_{k}", names) for k, type in enumerate(results) if isinstance(type, Array)}
    places = [f"a{k}" for k, type in enumerate(parameters) if isinstance(type, Array)]
    entry.args.args += [ast.arg(name) for name in outs.values()]
    last = entry.body[-1]
    returns = [node for node in nodes_in(entry) if isinstance(node, ast.Return)]
    made = (takers(entry.body[:-1], values_of(last, len(results)), outs) if returns == [last]
            else set())
    Returning(outs, made, len(results)).visit(entry)
    ast.fix_missing_locations(tree)
    made = Module(ast.unparse(tree) + "\n", module.entry, given=module.given)
    return made, overlap_test(places, [f"a{len(parameters) + k}" for k in range(len(outs))])


def free(name: str, taken: set[str]) -> str:
    """`name`, or a variant of it that is not in use."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def values_of(node: ast.Return, count: int) -> list[ast.expr]:
    """The expressions for the results in a return statement of a function with `count` results."""
    if isinstance(node.value, ast.Tuple):
        return node.value.elts
    return [node.value] if count == 1 else []


class Returning(ast.NodeTransformer):
    """Rewrite `return`: return only the numbers, after copying arrays that were not built in `out`.
    """

    def __init__(self, outs: dict[int, str], made: set[int], count: int):
        self.outs, self.made, self.count = outs, made, count

    def visit_Return(self, node: ast.Return):
        values = values_of(node, self.count)
        copies = [ast.Expr(call("copied", ast.Name(self.outs[k], ast.Load()), values[k]))
                  for k in self.outs if k not in self.made]
        rest = [x for k, x in enumerate(values) if k not in self.outs]
        return [*copies, ast.Return(ast.Tuple(rest, ast.Load()))]


def takers(body: list[ast.stmt], values: list[ast.expr], outs: dict[int, str]) -> set[int]:
    """Rewrite the allocations of the arrays among `values` to use the `out` arrays; return the
    rewritten results.
    """
    done, made = set(), set()
    for k, out in outs.items():
        found = maker(body, values[k].id) if isinstance(values[k], ast.Name) else None
        if found is None or id(found) in done:
            continue
        taking = allocation_in_out(found.value, ast.Name(out, ast.Load()))
        if taking is not None:
            done.add(id(found))
            made.add(k)
            found.value = taking
    return made


def maker(body: list[ast.stmt], name: str) -> ast.Assign | None:
    """The unconditional statement of `body` that allocates the final value of `name`; None if there
    is none.
    """
    for stmt in reversed(body):
        match stmt:
            case ast.Assign([ast.Name(target)], value) if target == name:
                if not isinstance(value, ast.Name):
                    return stmt
                name = value.id
            case _ if name in bound_by(stmt):
                return None
    return None


def bound_by(stmt: ast.stmt) -> set[str]:
    """The names bound by a statement, including nested ones."""
    return {node.id
            for node in nodes_in(stmt)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def allocation_in_out(value: ast.expr, out: ast.expr) -> ast.expr | None:
    """The expression that uses `out` in place of the allocation `value`; None if `value` allocates
    nothing.
    """
    match value:
        # the caller's array is noalias, too: that was checked
        case ast.Call(ast.Name("unshared_empty"), [shape, *_]):
            return call("apart", call("taken", out, shape))
        case ast.Call(ast.Name("unshared_zeros"), [shape, *_]):
            return call("apart", call("cleared", out, shape))
        case ast.Call(ast.Attribute(ast.Name("np"), "empty"), [shape, *_]):
            return call("taken", out, shape)
        case ast.Call(ast.Attribute(ast.Name("np"), "zeros"), [shape, *_]):
            return call("cleared", out, shape)
        case ast.Call(ast.Attribute(ast.Name("np"), "empty_like"), [x]):
            return call("taken", out, ast.Attribute(x, "shape", ast.Load()))
        case ast.Call(ast.Attribute(ast.Name("np"), "zeros_like"), [x]):
            return call("cleared", out, ast.Attribute(x, "shape", ast.Load()))
        case ast.Call(ast.Attribute(x, "copy"), []):
            return call("copied", out, x)
    return None


def call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(f"into_{name}", ast.Load()), list(args), [])


def overlap_test(arrays: Sequence[str], outs: Sequence[str]) -> str:
    """Whether arrays named by `outs` share memory with each other, or with those named by `arrays`.
    """
    lows, highs = ("".join(f"into_{side}({name}), " for name in (*outs, *arrays))
                   for side in ("low", "high"))
    return f"into_overlapping({len(outs)}, ({lows}), ({highs}))"


# ----------------------------------------------------------------------------------- in native code


@njit
def taken(out, shape):
    """`out` in place of np.empty(shape); TypeError if its shape differs."""
    if not has_shape(out, shape):
        raise TypeError
    return out


@njit
def cleared(out, shape):
    """`out`, zeroed, in place of np.zeros(shape)."""
    if not has_shape(out, shape):
        raise TypeError
    out.fill(0)
    return out


@njit
def copied(out, x):
    """`out`, in place of x.copy()."""
    if out.shape != x.shape:
        raise TypeError
    for index in np.ndindex(x.shape):
        out[index] = x[index]
    return out


@register_jitable
def has_shape(out, shape):
    return out.shape == as_shape(shape)


def as_shape(shape):
    """A shape tuple, from a shape or from the length of a vector."""
    return shape if isinstance(shape, tuple) else (shape,)


@overload(as_shape)
def _as_shape(shape):
    if isinstance(shape, types.BaseTuple):
        return lambda shape: shape
    return lambda shape: (shape,)


@njit
def low(x):
    """The lowest address of the memory of `x`."""
    address = 0
    if x.size:
        address = int(x.ctypes.data)
        for n, step in zip(x.shape, x.strides):
            if step < 0:
                address += (n - 1) * step
    return address


@njit
def high(x):
    """The address after the memory of `x`."""
    address = 0
    if x.size:
        address = int(x.ctypes.data) + x.itemsize
        for n, step in zip(x.shape, x.strides):
            if step > 0:
                address += (n - 1) * step
    return address


def overlapping(count, lows, highs):
    """Whether one of the first `count` memory ranges overlaps any other."""
    for i in range(count):
        for j in range(i + 1, len(lows)):
            if lows[i] < highs[j] and lows[j] < highs[i]:
                return True
    return False


@overload(overlapping)
def _overlapping(count, lows, highs):
    return overlapping if len(lows) <= FEW else overlapping_in_order


def overlapping_in_order(count, lows, highs):
    """The same for many ranges: sort by address and compare each with all previous ones at once.

    Insertion sort, because successive allocations are mostly in order.
    """
    begins, ends, are_given = (np.empty(len(lows), np.int64), np.empty(len(lows), np.int64),
                               np.empty(len(lows), np.bool_))
    filled = n = 0
    for low, high in zip(lows, highs):
        if low < high:
            k = filled
            while k and begins[k - 1] > low:
                begins[k], ends[k], are_given[k] = begins[k - 1], ends[k - 1], are_given[k - 1]
                k -= 1
            begins[k], ends[k], are_given[k] = low, high, n < count
            filled += 1
        n += 1
    end_of_given = end_of_all = 0
    for k in range(filled):
        if begins[k] < (end_of_all if are_given[k] else end_of_given):
            return True
        end_of_all = max(end_of_all, ends[k])
        if are_given[k]:
            end_of_given = max(end_of_given, ends[k])
    return False
