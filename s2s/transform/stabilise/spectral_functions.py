"""Differentiate products of eigenvectors around functions of eigenvalues as functions of a matrix.

    w, Q = np.linalg.eigh(a)         U, s, Vt = np.linalg.svd(a)
    (Q * f(w)) @ Q.T                 U * f(s) @ Vt, U @ Vt, U * f(s) @ U.T, Vt.T * f(s) @ Vt

The factors of a chain of products are looked at one by one, in whatever way it is written:
`np.diag(f(w))`, `f(w)[:, None] * Q.T`, `Q / w`, `Q @ ((Q.T @ b) / w)`, `np.einsum("ij,j,kj->ik", Q,
f(w), Q)`.  Where Q, functions of w and Q^H follow one another, an op beside the product says that
it is f(a) (ops/linalg/matrix_function.py).  So do the derivatives of `eigvalsh` and of singular
values, which are such products.  As for squares (square_roots.py), the value stays what the program
computes, and the op is gone once the function is differentiated.

Other numbers between Q and Q^H, such as the cotangents of eigenvalues, select vectors at least:
those times 0 need no derivative, and may have none.

Considered: limits of the eigenvectors' own derivatives, in which f' would have to be known from
f(w) at two values that are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ...analysis.activity import varied_values
from ...ir.builder import emit
from ...ir.graph import MISSING, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.types import Array
from ...ops.arrays.axes import expand_dims
from ...ops.arrays.concatenate import concatenate_record
from ...ops.arrays.create import full_like_record, full_record, zeros
from ...ops.arrays.index import getitem, setitem, take
from ...ops.arrays.norms import as_if, complex_as_if, no_negative, root
from ...ops.arrays.products import matmul, matrix_transposed
from ...ops.arrays.reduce import is_complex
from ...ops.core.copy import copy_record
from ...ops.core.derivative_rules import tangent_of
from ...ops.core.elementwise import divide, multiply, power, reciprocal, square
from ...ops.core.record import dtype_of, rank, value
from ...ops.core.shape import length, shaped_like, spread
from ...ops.linalg.coinciding_values import selected
from ...ops.linalg.matrix_function import (
    adjoint,
    conjugated,
    matrix_function,
    matrix_function_along,
)


def mark_matrix_functions(function: Function, wrt: Sequence[int]) -> Function:
    """Mark products in `function`, to be differentiated in `wrt`, that are functions of a matrix.
    """
    if not any(op.record.spectrum is not None for op in walk(function.block)):
        return function
    varied = varied_values(function, [function.params[k] for k in wrt])
    now: set[Value] = set()  # the same values, emitted again

    def rule(op: Op, inputs: list[Value]):
        now.update(x for old, x in zip(op.inputs, inputs) if old in varied)
        return _marked(op, inputs, now)

    return rebuild(function, rule=rule)


@dataclass(frozen=True)
class Factor:
    """One factor of a product: a matrix or, at an end, a vector; `values`, on the diagonal; or the
    vectors that `of` returns.

    Of a decomposition, whose vectors may be `chosen`, `kind` is Q, U or V and its columns are the
    vectors, conjugated or not; `turned` if they are rows.
    """

    x: Value
    kind: str = ""
    of: Op | None = None
    conjugate: bool = False
    turned: bool = False
    chosen: tuple | None = None  # the selected vectors: a part of an index, and its operands


def _marked(op: Op, inputs: list[Value], varied: set[Value]) -> Sequence[Value] | None:
    if op.name == "einsum":
        chain = _of_einsum(inputs, **op.attrs)
    elif op.name == "matmul" and {rank(x) for x in inputs} <= {1, 2}:
        a, b = inputs
        left = _turned(_chain(a)) if rank(a) == 1 else _chain(a)
        chain = [*left, *_chain(b)]
    elif op.name == "sum" and rank(inputs[0]) == 1:
        chain = _of_sum(inputs[0])
    else:
        return None
    place = (next((k for k in range(len(chain)) if _ends(chain, k) is not None), None) if chain
             else None)
    if place is None:
        return None
    last = _ends(chain, place)
    first = chain[place]
    if first.of.inputs[0] not in varied:
        return None
    values = [factor.x for factor in chain[place + 1:last]]
    found = _function(first, chain[last], values, varied)
    if found is None and not values:
        return None
    if found is None:
        found = _weighted(_matrix(first), values, _matrix(chain[last]))
    y = emit(op.record, *inputs, **op.attrs)
    under = _multiplied([*chain[:place], Factor(found), *chain[last + 1:]])
    if rank(under) != rank(y) or dtype_of(under.type) != dtype_of(y.type):
        return [y]
    under = under if under.type == y.type or not rank(y) else shaped_like(under, y)
    beside = complex_as_if if is_complex(y) else as_if
    return [beside(y, under)]


# -------------------------------------------------------------------------------- chains of factors


def _chain(x: Value, depth: int = 12) -> list[Factor]:
    """Return the factors whose product is `x`; a vector counts as a column."""
    op = x.op
    if op is None or not depth or rank(x) not in (1, 2):
        return [Factor(x)]
    if op.record.spectrum is not None:
        k = op.outputs.index(x)
        if op.name == "eigh" and k == 1:
            return [Factor(x, "Q", op)]
        if op.name == "svd" and k != 1:
            return [Factor(x, "U", op) if k == 0
                    else Factor(x, "V", op, conjugate=True, turned=True)]
        return [Factor(x)]
    inner = lambda y: _chain(y, depth - 1)  # noqa: E731
    match op.name:
        case _ if op.record in (as_if, complex_as_if, matrix_function, matrix_function_along):
            return [Factor(x)]
        case "matmul" if rank(x) == 2 and all(rank(y) == 2 for y in op.inputs):
            return [*inner(op.inputs[0]), *inner(op.inputs[1])]
        case "matmul" if rank(x) == 1 and rank(op.inputs[0]) == 2:
            return [*inner(op.inputs[0]), *inner(op.inputs[1])]
        case "matmul" if rank(x) == 1 and rank(op.inputs[1]) == 2:
            return [*_turned(inner(op.inputs[1])), *inner(op.inputs[0])]
        case "transpose" if rank(x) == 2 and op.attrs["axes"] in (None, (1, 0)):
            return _turned(inner(op.inputs[0]))
        case "swapaxes" if rank(x) == 2:
            return _turned(inner(op.inputs[0]))
        case "conjugate":
            return [replace(f, conjugate=not f.conjugate) for f in inner(op.inputs[0])]
        case _ if op.record in (shaped_like, copy_record):
            return inner(op.inputs[0])
        case "getitem" if rank(x) == 2:
            return _some(x, inner(op.inputs[0])) or [Factor(x)]
        case _ if op.record in (multiply, divide):
            return _scaled(op, inner) or [Factor(x)]
        case "eye" if len(op.inputs) == 1 or op.inputs[0] is op.inputs[1]:
            return [Factor(spread(value(1.0), take(x, (0,))), "values")]
        case "setitem" if rank(x) == 2 and (d := _on_diagonal(op)) is not None:
            return [Factor(d, "values")]
    return [Factor(x)]


def _some(x: Value, chain: list[Factor]) -> list[Factor] | None:
    """Match a selection of the vectors of a decomposition, by a slice, a mask or indices."""
    pattern, operands = x.op.attrs["pattern"], tuple(x.op.inputs[1:])
    whole = chain[0]
    if len(chain) != 1 or whole.of is None or whole.chosen is not None:
        return None
    entry = (pattern[1] if len(pattern) == 2 and pattern[0] == "..." else pattern[0]
             if pattern[1:] in ((), ("...",)) else None)
    along = 1 if len(pattern) == 2 and pattern[0] == "..." else 0
    if not isinstance(entry, str) or along == whole.turned:
        return None
    return [replace(whole, x=x, chosen=(entry, operands))]


def _are_alike(a: tuple | None, b: tuple | None) -> bool:
    """Test whether the same vectors are selected."""
    if a is None or b is None:
        return a is b
    return a[0] == b[0] and all(x is y or x.constant is not MISSING and x.constant == y.constant
                                for x, y in zip(a[1], b[1], strict=True))


def _scaled(op: Op, inner) -> list[Factor] | None:
    """Match a matrix whose columns or rows are scaled by a vector or by one number."""
    a, b = op.inputs
    y = op.output
    for x, d, swapped in ((a, b, False), (b, a, True)):
        if rank(x) != rank(y) or swapped and op.name == "divide":
            continue
        d = reciprocal(d) if op.name == "divide" and rank(d) in (0, 1) else d
        if rank(d) == 0 and dtype_of(d.type) is not None:
            return [*inner(x), Factor(d, "number")]
        if rank(y) == 1 and rank(d) == 1 and x.op is not None and x.op.name == "matmul":
            return [Factor(d, "values"), *inner(x)]
        if rank(y) == 2 and rank(d) == 1:
            return [*inner(x), Factor(d, "values")]
        if rank(y) == 2 and rank(d) == 2 and (found := _flat(d)) is not None:
            v, axis = found
            v = reciprocal(v) if op.name == "divide" else v
            return ([*inner(x), Factor(v, "values")] if axis == 0
                    else [Factor(v, "values"), *inner(x)])
    return None


def _flat(x: Value) -> tuple[Value, int] | None:
    """Return v and k where `x`, elementwise in vectors, is np.expand_dims(v, k)."""
    op = x.op
    if op is None or rank(x) != 2:
        return None
    if op.name == "expand_dims":
        axis = op.attrs["axis"]
        axis = axis[0] if isinstance(axis, tuple) else axis
        return (op.inputs[0], axis % 2) if rank(op.inputs[0]) == 1 else None
    if not op.record.elementwise:
        return None
    found = [y if rank(y) == 0 else _flat(y) for y in op.inputs]
    axes = {y[1] for y in found if isinstance(y, tuple)}
    if len(axes) != 1 or None in found:
        return None
    return (emit(op.record, *(y[0] if isinstance(y, tuple) else y for y in found), **op.attrs),
            axes.pop())


def _on_diagonal(op: Op) -> Value | None:
    """Match np.diag(d), zeros into which d is written at (k, k); return d."""
    base, d, *places = op.inputs
    is_made = (base.op is not None and base.op.name == "zeros" and op.attrs["pattern"] == ("i", "i")
               and places[0] is places[1])
    return (d if is_made and places[0].op is not None and places[0].op.name == "arange"
            and rank(d) == 1 else None)


def _turned(chain: list[Factor]) -> list[Factor]:
    return [f if f.kind in ("values", "number") else replace(f, turned=not f.turned)
            for f in reversed(chain)]


def _of_sum(x: Value) -> list[Factor]:
    """Return the chain of an elementwise sum of two products with vectors and what stands between
    these.
    """
    factors, ends, between = [x], [], []
    while factors:
        y = factors.pop()
        op = (y.op.inputs[0].op if y.op is not None and y.op.record in (as_if, no_negative)
              else y.op)
        if op is not None and op.name == "multiply":
            factors += op.inputs
        elif op is not None and (op.record is square or op.record is power
                                 and op.inputs[1].constant == 2):
            factors += [op.inputs[0]] * 2
        elif op is not None and op.name == "divide" and rank(op.inputs[0]) == 1:
            factors.append(op.inputs[0])
            between.append(reciprocal(op.inputs[1]))
        elif rank(y) == 1 and op is not None and op.name == "matmul" and len(ends) < 2:
            ends.append(y)
        else:
            between.append(y)
    if len(ends) < 2 or not all(rank(y) in (0, 1) for y in between):
        return []
    return [*_turned(_chain(ends[0])),
            *(Factor(y, "values" if rank(y) else "number") for y in between), *_chain(ends[1])]


def _of_einsum(inputs: list[Value], subscripts: str) -> list[Factor]:
    """Return the chain of an einsum whose subscripts follow one another: ij,jk->ik, with numbers
    for a letter, ij,j,jk->ik.
    """
    terms, result = subscripts.replace(" ", "").split("->") if "->" in subscripts else ("", "")
    terms = terms.split(",")
    if (len(result) not in (1, 2) or len(set(result)) != len(result)
            or any(len(set(s)) != len(s) or len(s) not in (1, 2) for s in terms)):
        return []
    pairs = [(s, x) for s, x in zip(terms, inputs, strict=True) if len(s) == 2]
    singles = {s: [x for r, x in zip(terms, inputs) if r == s] for s in terms if len(s) == 1}
    letter, chain = result[0], []
    chain += [Factor(x, "values") for x in singles.pop(letter, [])]
    while pairs:
        found = [k for k, (s, _) in enumerate(pairs) if letter in s]
        if len(found) != 1:
            return []
        s, x = pairs.pop(found[0])
        chain += _chain(x) if s[0] == letter else _turned(_chain(x))
        letter = s[1] if s[0] == letter else s[0]
        ends_here = not pairs and len(result) == 1
        numbers = singles.pop(letter, [])
        chain += [Factor(x, "values") for x in (numbers[:-1] if ends_here else numbers)]
        chain += [f for x in numbers[-1:] for f in _chain(x)] if ends_here else []
        if ends_here and not numbers:
            return []
    return chain if not singles and (len(result) == 1 or letter == result[1]) else []


def _ends(chain: list[Factor], k: int) -> int | None:
    """Return where the function of a matrix that begins with factor k ends."""
    first = chain[k]
    if first.of is None or first.turned:
        return None
    n = k + 1
    while n < len(chain) and chain[n].kind in ("values", "number"):
        n += 1
    if n == len(chain):
        return None
    last = chain[n]
    if last.of is not first.of or not last.turned or not _are_alike(first.chosen, last.chosen):
        return None
    return n if not is_complex(first.x) or last.conjugate != first.conjugate else None


def _matrix(f: Factor) -> Value:
    x = f.x
    if f.kind == "V":  # x has rows of these
        x = matrix_transposed(x) if not f.turned else x
        return conjugated(x) if f.conjugate != f.turned and is_complex(x) else x
    x = conjugated(x) if f.conjugate else x
    return matrix_transposed(x) if f.turned and rank(x) == 2 else x


def _multiplied(chain: list[Factor]) -> Value:
    """Multiply the factors out, from the right where the last one is a vector."""
    numbers = [f.x for f in chain if f.kind == "number"]
    rest = [f for f in chain if f.kind != "number"]
    backwards = rank(rest[-1].x) == 1 and rest[-1].kind != "values"
    if backwards:
        rest = _turned(rest)
    total = None
    for k, f in enumerate(rest):
        if f.kind == "values" and total is None:
            following = _matrix(rest[k + 1])
            total = expand_dims(f.x, 1) * following if rank(following) == 2 else f.x * following
            rest[k + 1] = Factor(value(1.0), "number")
        elif f.kind == "values":
            total = total * f.x
        elif f.kind != "number":
            total = _matrix(f) if total is None else matmul(total, _matrix(f))
    return reduce(multiply, [total, *numbers])


def _weighted(left: Value, values: list[Value], right: Value) -> Value:
    """Multiply vectors by numbers, and by vectors again, where vectors times 0 do not count."""
    g = reduce(multiply, values)
    g = spread(g, take(left, (0,))) if rank(g) == 0 else g
    return selected(left, g, right)


# ------------------------------------------------------------------------- functions of eigenvalues


class _Values:
    """Functions of eigenvalues, and their derivatives."""

    def __init__(self, op: Op, chosen: tuple | None):
        self.op, self.dots, self.needs, self.others, self.chosen = op, {}, {}, [], chosen
        self.all = self.w = op.outputs[0 if op.name == "eigh" else 1]
        if chosen is not None:
            self.w = getitem(self.all, *chosen[1], pattern=(chosen[0],))
        self.one = spread(value(1.0), self.w)

    def is_values(self, x: Value) -> bool:
        if x is self.w:
            return True
        op = x.op
        if self.chosen is not None:
            return (op is not None and op.name == "getitem" and len(op.attrs["pattern"]) == 1
                    and _are_alike(self.chosen, (op.attrs["pattern"][0], tuple(op.inputs[1:])))
                    and self.is_any(op.inputs[0]))
        return self.is_any(x)

    def is_any(self, x: Value) -> bool:
        """Test whether `x` is all of the eigenvalues."""
        if x is self.all:
            return True
        op = x.op
        return (op is not None and op.record is self.op.record.spectrum
                and op.inputs[0] is self.op.inputs[0]
                and op.attrs.get("upper") == self.op.attrs.get("upper"))

    def reads(self, x: Value) -> bool:
        """Test whether `x` is computed from the eigenvalues."""
        if x not in self.needs:
            self.needs[x] = False
            self.needs[x] = (self.is_any(x) or self.is_values(x) or x.op is not None
                             and any(map(self.reads, x.op.inputs)))
        return self.needs[x]

    def is_function(self, x: Value) -> bool:
        """Test whether each element of `x` is one function of the corresponding eigenvalue, or a
        constant.
        """
        if self.is_values(x):
            return True
        if x.constant is not MISSING:
            return True
        if rank(x) == 0:
            self.others.append(x)
            return True
        op = x.op
        if op is None or rank(x) != 1:
            return False
        if op.record.fill is not None:
            return True
        if op.record in (full_record, full_like_record):
            return all(self.is_function(y) for y in op.inputs[1:] if rank(y) == 0)
        if op.name == "spread":
            return self.is_function(op.inputs[0])
        if op.record is root:
            return False
        if op.record in (shaped_like, copy_record, as_if):
            return self.is_function(op.inputs[0])
        return op.record.elementwise and all(map(self.is_function, op.inputs))

    def slope(self, x: Value) -> Value | None:
        """Return the elementwise derivative of `x` by the eigenvalues; None where there is none."""
        if self.is_values(x):
            return self.one
        if rank(x) != 1 or x.op is None or x.constant is not MISSING or not self.reads(x):
            return None
        if x not in self.dots:
            op = x.op
            dots = tuple(map(self.slope, op.inputs))
            if all(dot is None for dot in dots):
                self.dots[x] = None
            else:
                self.dots[x] = tangent_of(op.record, dots, x, *op.inputs, **op.attrs)
        return self.dots[x]


def _function(first: Factor, last: Factor, values: list[Value], varied: set[Value]) -> Value | None:
    """Build the function of a matrix from these vectors with `values` between them."""
    op, of = first.of, _Values(first.of, first.chosen)
    if not all(map(of.is_function, values)):
        return None
    g = reduce(multiply, values) if values else of.one
    g = spread(g, of.w) if rank(g) == 0 else g
    none = 0.0 * of.w
    slope = of.slope(g)
    second = None if slope is None else of.slope(slope)
    slope, second = (none if x is None else x for x in (slope, second))
    others = [x for x in of.others if x in varied or of.reads(x)]
    attrs = {"apart": bool(others), "alone": not of.others}
    a, w, is_some = op.inputs[0], of.all, first.chosen is not None
    if is_some:
        entry, operands = first.chosen
        g, slope, second = (setitem(0.0 * w, x, *operands, pattern=(entry,))
                            for x in (g, slope, second))
    if op.name == "eigh":
        v = op.outputs[1]
        y = matmul(v * g, adjoint(v))
        y = matrix_function(y, a, w, v, g, slope, second, upper=op.attrs["upper"], complete=True,
                            jumps=is_some, **attrs)
        return conjugated(y) if first.conjugate else y
    return _of_singular_values(first, last, a, w, g, slope, second, attrs)


def _of_singular_values(first: Factor, last: Factor, a, s, g, slope, second, attrs: dict) -> Value:
    """Reduce to a Hermitian matrix: ops/linalg/matrix_function.py,
    Note [Singular values are eigenvalues].
    """
    u, _, vt = first.of.outputs
    v = adjoint(vt)
    m, n = length(a, axis=0), length(a, axis=1)
    dtype = dtype_of(a.type)
    top = concatenate_record(zeros((m, m), dtype=dtype), a, axis=1)
    whole = concatenate_record(top,
                               concatenate_record(adjoint(a), zeros((n, n), dtype=dtype), axis=1),
                               axis=0)
    half = 0.5**0.5
    q = half * concatenate_record(concatenate_record(u, u, axis=1),
                                  concatenate_record(v, -v, axis=1), axis=0)
    is_odd = first.kind != last.kind
    signs = (-1, 1, -1) if is_odd else (1, -1, 1)
    w = concatenate_record(s, -s, axis=0)
    g, slope, second = (concatenate_record(x, x if sign == 1 else -x, axis=0)
                        for x, sign in zip((g, slope, second), signs))
    is_square = isinstance(a.type, Array) and a.type.dims[0] == a.type.dims[1]
    y = matmul(q * g, adjoint(q))
    y = matrix_function(y, whole, w, q, g, slope, second, upper=None, complete=is_square,
                        jumps=True, **attrs)
    parts = {"U": slice(None, m), "V": slice(m, None)}
    y = take(y, (parts[first.kind], parts[last.kind]))
    return conjugated(y) if first.conjugate else y
