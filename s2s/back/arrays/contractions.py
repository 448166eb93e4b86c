"""Rewrite matrix products and `np.einsum` as sums, for loops, and as matrix products, for BLAS.

    a @ b, of vectors                    np.sum(a * b)
    a @ b, of a stack and one matrix     np.reshape(np.reshape(a, (n, k)) @ b, ...): one product
    a @ b, of two stacks of matrices     a loop of products, c[i] = a[i] @ b[i]
    np.convolve(a, v)                    for j in range(m):
                                             for i in range(n): y[i + j] += a[i] * v[j]
    a @ b, of integers, or short         np.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)

    np.einsum("ij,jk->ik", a, b)         a @ b
    np.einsum("ni,ij,nj->n", x, A, x)    np.sum((x @ A) * x, axis=1)
    np.einsum("nij,nj->ni", R, x)        np.sum(R * x[:, None, :], axis=2)
    np.einsum("td,hde->hte", x, w)       one product of x and w, whose axis d is moved first, and
                                         a transposition of the result

An einsum contracts two operands at a time, first the pair that leaves the fewest axes; an axis that
occurs in one operand only, and not in the result, is summed first. Where both share axes of the
result, each index along these is a product of its own, computed by loops whose innermost axis is
contiguous in both operands if there is such an axis.

Considered: one nest for the product of all operands, which is what NumPy does: three matrices of n
x n take n^4 steps where pairs take 2 n^3. Or calling NumPy, as for ops that Numba does not know: a
call takes as long as some 2,000 steps, and 0.2 s to compile.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Sequence

from ...ir.builder import in_scope
from ...ir.graph import Function, Op, Value
from ...ir.reemit import rebuild
from ...ir.types import Array, may_be_one
from ...ops.arrays.axes import expand_dims, transpose_record
from ...ops.arrays.create import empty, zeros
from ...ops.arrays.einsum import einsum, split
from ...ops.arrays.index import additem, put, take
from ...ops.arrays.products import matmul
from ...ops.arrays.reduce import any_record, sum_record
from ...ops.arrays.reshape import reshape
from ...ops.arrays.sampled_functions import convolve_record, correlate_record
from ...ops.core.cast import astype
from ...ops.core.control import for_loop, if_
from ...ops.core.copy import copy
from ...ops.core.elementwise import multiply
from ...ops.core.record import dims_of, lowers, rank, value
from ...ops.core.shape import length, matched
from ..loopir.ops import contiguous, nonempty_length_op, same_length_op
from .specialise_lengths import SHORT

BLAS = ("float32", "float64", "complex64", "complex128")

Term = tuple[str, Value]  # an operand, and the names of its axes
# results so far, by the pair of operands and the orders of their axes
Products = dict[tuple, Value]


@lowers(matmul, cuda=lambda op, a, b: expand_matmul(a, b, op.output.type.dtype, has_blas=False))
def _lower_matmul(op: Op, a: Value, b: Value) -> Value | None:
    return expand_matmul(a, b, op.output.type.dtype)


def expand_matmul(a: Value, b: Value, dtype: str, has_blas: bool = True) -> Value | None:
    """`a @ b` of that dtype, expanded; None leaves it to BLAS, which device kernels lack."""
    # not for BLAS, which would have to test that
    if not (has_blas and max(rank(a), rank(b)) <= 2 and dtype in BLAS and rank(a) + rank(b) > 2
            and not is_short(a, b)):
        a = matched(a, b, -1, 0 if rank(b) == 1 else -2)
    match rank(a), rank(b):
        case 1, 1:
            return sum_of_products(a * b, None, dtype)
        case (1 | 2), (1 | 2) if dtype in BLAS and not is_short(a, b):
            if a.type.dtype == b.type.dtype == dtype:
                return None
            return matmul(of_dtype(dtype, a), of_dtype(dtype, b))
        case m, 2 if dtype in BLAS and m > 2:
            return product_of_rows(of_dtype(dtype, a), of_dtype(dtype, b))
        case m, n if (has_blas and min(m, n) > 1 and dtype in BLAS and not is_short(a, b)
                      and (above := broadcast_axes(a, b)) is not None):
            return product_of_stacks(of_dtype(dtype, a), of_dtype(dtype, b), above)
        case m, n:
            left = expand_dims(a, -1) if n > 1 else a  # (..., i, k, 1)
            right = b if n == 1 else b if m == 1 else expand_dims(b, -3)  # (..., 1, k, j)
            return sum_of_products(left * right, -2 if n > 1 else -1, dtype)


def sum_of_products(x: Value, axis: int | None, dtype: str) -> Value:
    """The sum of products; for small integers in their own dtype, for booleans a logical or."""
    if dtype == "bool":
        return any_record(x, axis=axis, keepdims=False)
    return of_dtype(dtype, sum_record(x, axis=axis, keepdims=False))


def is_short(a: Value, b: Value) -> bool:
    """Whether a product is known to take fewer steps than a call of BLAS costs."""
    dims = (*a.type.dims[-2:], *b.type.dims[-2:])
    return (all(isinstance(d, int) for d in dims)
            and math.prod(dims) <= SHORT**3 * b.type.dims[-2 if rank(b) > 1 else 0])


def of_dtype(dtype: str, x: Value) -> Value:
    return x if x.type.dtype == dtype else astype(x, dtype=dtype)


def product_of_rows(a: Value, b: Value) -> Value:
    """A stack of matrices times one matrix, as one product of all rows."""
    *above, inner = (length(a, axis=k) for k in range(rank(a)))
    product = matmul(reshape(a, functools.reduce(multiply, above), inner), b)
    return reshape(product, *above, length(b, axis=1))


def broadcast_axes(a: Value, b: Value) -> list[tuple[Value, bool, bool]] | None:
    """Each axis of two stacks: its length, and which vary along it; None if only the run knows."""
    found = []
    for k in range(max(rank(a), rank(b)) - 3, -1, -1):
        axes = [rank(x) - 3 - k for x in (a, b)]
        dims = [x.type.dims[axis] if axis >= 0 else 1 for x, axis in zip((a, b), axes)]
        if 1 not in dims and dims[0] != dims[1] and any(map(may_be_one, dims)):
            return None
        first = 0 if dims[0] != 1 else 1
        n = length((a, b)[first], axis=axes[first]) if axes[first] >= 0 else value(1)
        if 1 not in dims and dims[0] != dims[1]:
            n = same_length_op(n, length(b, axis=axes[1]))
        found.append((n, axes[0] >= 0 and (dims[0] != 1 or dims == [1, 1]),
                      axes[1] >= 0 and (dims[1] != 1 or dims == [1, 1])))
    return found


def product_of_stacks(a: Value, b: Value, above: Sequence[tuple[Value, bool, bool]]) -> Value:
    """The products of the matrices of two stacks, which BLAS requires contiguous, in a loop."""
    a, b = contiguous(a), contiguous(b)
    lengths = [n for n, _, _ in above]
    made = empty((*lengths, length(a, axis=rank(a) - 2), length(b, axis=rank(b) - 1)),
                 dtype=a.type.dtype)
    made.type = matmul.infer(a, b)  # with lengths that other values have

    def along(made: Value, index: tuple[Value, ...]) -> Value:
        if len(index) == len(above):
            places = [[i if goes[k] else 0 for i, (_, *goes) in zip(index, above)]
                      for k in range(2)]
            return put(made, index,
                       matmul(*(take(x, tuple(place[len(place) + 2 - rank(x):])) if rank(x) > 2
                                else x for x, place in zip((a, b), places))))
        (made,) = for_loop(0, lengths[len(index)], 1, [made],
                           lambda i, made: [along(made, (*index, i))], names=[""])
        return made

    return along(made, ())


@lowers(convolve_record)
def expand_convolve(op: Op, a: Value, v: Value) -> Value | None:
    """np.convolve in full mode: a sum of shifted copies of a, weighted by v."""
    dtype = op.output.type.dtype
    if dtype not in BLAS:
        return None
    a, v = of_dtype(dtype, a), of_dtype(dtype, v)
    n, m = (nonempty_length_op(length(x, axis=0)) for x in (a, v))
    return nested_loops(m, n, zeros((n + m - 1,), dtype=dtype),
                      lambda j, i, y: added(y, take(a, i) * take(v, j), i + j))


@lowers(correlate_record)
def expand_correlate(op: Op, a: Value, v: Value) -> Value | None:
    """Correlation of v and a, with the longer of v and the result in the innermost loop."""
    dtype = op.output.type.dtype
    if dtype not in BLAS:
        return None
    a, v = of_dtype(dtype, a), of_dtype(dtype, v)
    m = nonempty_length_op(length(v, axis=0))
    n = length(a, axis=0) - m + 1
    made = zeros((n,), dtype=dtype)

    def add(i: Value, j: Value, y: Value) -> Value:
        return added(y, take(a, i + j) * take(v, j), i)

    return if_(n < m,
               lambda: [nested_loops(n, m, made, add)],
               lambda: [nested_loops(m, n, made, lambda j, i, y: add(i, j, y))])[0]


def nested_loops(n: Value, m: Value, made: Value,
               body: Callable[[Value, Value, Value], Value]) -> Value:
    """Emit a loop in a loop around `body`; return the last value of `made`."""
    (made,) = for_loop(
        0, n, 1, [made],
        lambda i, y: for_loop(0, m, 1, [y], lambda j, y: [body(i, j, y)], names=["y"], index="j"),
        names=["y"])
    return made


def added(array: Value, x: Value, place: Value) -> Value:
    return additem(array, x, place, pattern=("i",))


def expand_einsums(function: Function) -> Function:
    """`function` with its einsums expanded into pairwise products, common prefixes shared.

    The adjoint of an einsum of n operands is n others, each of all but one of these and of the
    cotangent.
    """
    products: Products = {}

    def rule(op: Op, inputs: Sequence[Value]) -> list[Value] | None:
        made = expand_einsum(op, inputs, products) if op.record is einsum else None
        return None if made is None else [made]

    return rebuild(function, rule=rule)


@lowers(einsum)
def _lower_einsum(op: Op, *inputs: Value) -> Value | None:
    return expand_einsum(op, inputs, {})


def expand_einsum(op: Op, inputs: Sequence[Value], products: Products) -> Value | None:
    """`op`, an einsum of `inputs`, expanded; None if broadcasting is known only at run time."""
    operands, result = split(op.attrs["subscripts"])
    dtype = op.output.type.dtype
    if dtype not in BLAS or any(len(set(names)) < len(names) for names in operands):
        return None
    terms = with_equal_lengths([(names, of_dtype(dtype, x)) for names, x in zip(operands, inputs)])
    if terms is None:
        return None
    if len(terms) == 1 and set(result) == set(terms[0][0]):
        # einsum's result is a view of x, which must not be written to while x is read
        return copy(permute(*terms[0], result))
    while len(terms) > 1:
        i, j = min(itertools.combinations(range(len(terms)), 2),
                   key=lambda pair: cost(pair, terms, result))
        first, second = terms[i], terms[j]
        rest = [term for k, term in enumerate(terms) if k not in (i, j)]
        kept = set(result).union(*(names for names, _ in rest))
        terms = [paired(first, second, kept, result, products), *rest]
    return permute(*sum_out(*terms[0], result), result)


def with_equal_lengths(terms: list[Term]) -> list[Term] | None:
    """The terms without broadcast axes of length 1; None if those are not known."""
    dims: dict[str, list] = {}
    for names, x in terms:
        for name, d in zip(names, dims_of(x.type)):
            dims.setdefault(name, []).append(d)
    longer = {name for name, found in dims.items() if any(d != 1 for d in found)}
    if any(len(set(dims[name]) - {1}) > 1 and any(d != 1 and may_be_one(d) for d in dims[name]) or 1
           in dims[name] and any(d != 1 and may_be_one(d) for d in dims[name]) for name in longer):
        return None
    found = []
    for names, x in terms:
        spread = tuple(k for k, d in enumerate(dims_of(x.type)) if d == 1 and names[k] in longer)
        found.append(("".join(name for k, name in enumerate(names) if k not in spread),
                      take(x, tuple(0 if k in spread else slice(None) for k in range(len(names))))
                      if spread else x))
    return found


def cost(pair: tuple[int, int], terms: Sequence[Term], result: str) -> tuple[bool, int, int]:
    """A sort key for pairs: outer products last, then the number of axes left and of axes moved."""
    first, second = (terms[k][0] for k in pair)
    kept = set(result).union(*(names for k, (names, _) in enumerate(terms) if k not in pair))
    inner = "".join(name for name in first if name in second and name not in kept)
    left, right = ("".join(name for name in names if name in kept) for names in (first, second))
    moved = sum(len(names) for names, wanted in ((first, left + inner), (second, inner + right))
                if names != wanted)
    return not set(first) & set(second), len({*first, *second} & kept), moved


def paired(first: Term, second: Term, kept: Collection[str], result: str,
           products: Products) -> Term:
    """The product of two operands, summed over the axes that are not `kept`."""
    (m, a), (n, b) = sum_out(*first, {*kept, *second[0]}), sum_out(*second, {*kept, *first[0]})
    inner = "".join(name for name in m if name in n and name not in kept)
    stacked = "".join(name for name in result + m if name in m and name in n and name in kept)
    stacked = "".join(dict.fromkeys(stacked))
    left, right = ("".join(name for name in names if name not in others)
                   for names, others in ((m, n), (n, m)))
    if not inner:
        order = "".join(name for name in dict.fromkeys(result + m + n) if name in m or name in n)
        return order, align(m, a, order) * align(n, b, order)
    if not stacked and (left or right):
        key = (a, tuple(m.index(name) for name in left + inner), b,
               tuple(n.index(name) for name in inner + right))
        # their lengths have names of their own, which keeps them apart for cse
        if key not in products or not in_scope(products[key]):
            products[key] = product(permute(m, a, left + inner), permute(n, b, inner + right),
                                    len(inner))
        return left + right, products[key]
    if right and not left:
        left, right, m, a, n, b = right, left, n, b, m, a
    along = m[-1] if not right or m[-1] == n[-1] else n[-1]
    order = stacked + left + (right + inner if along in inner else inner + right)
    if not right and along in left:
        order = stacked + inner + left
    where = tuple(order.index(name) for name in inner)
    return "".join(name for name in order if name not in inner), \
        sum_record(align(m, a, order) * align(n, b, order), axis=where, keepdims=False)


def product(a: Value, b: Value, count: int) -> Value:
    """The matrix product of a and b, summed over the last `count` axes of a, the first of b."""
    above, beyond = ([length(a, axis=k) for k in range(a.type.rank - count)],
                     [length(b, axis=k) for k in range(count, b.type.rank)])
    inner = [length(a, axis=k) for k in range(a.type.rank - count, a.type.rank)]
    a, b = (reshape(a, *product_of_lengths(above), *product_of_lengths(inner)),
            reshape(b, *product_of_lengths(inner), *product_of_lengths(beyond)))
    made = expand_matmul(a, b, a.type.dtype)
    made = matmul(a, b) if made is None else made
    return reshape(made, *above, *beyond) if len(above) > 1 or len(beyond) > 1 else made


def product_of_lengths(lengths: Sequence[Value]) -> list[Value]:
    """The product of the lengths, as a list; empty if there are none."""
    return [functools.reduce(multiply, lengths)] if lengths else []


def sum_out(names: str, x: Value, kept: Collection[str]) -> Term:
    """An operand summed over the axes that are not `kept`."""
    alone = tuple(k for k, name in enumerate(names) if name not in kept)
    return ("".join(name for name in names if name in kept),
            sum_record(x, axis=alone, keepdims=False)) if alone else (names, x)


def permute(names: str, x: Value, wanted: str) -> Value:
    """An operand with its axes in this order."""
    axes = tuple(names.index(name) for name in wanted)
    return transpose_record(x, axes=axes) if isinstance(x.type, Array) else x


def align(names: str, x: Value, order: str) -> Value:
    """An operand with its axes in this order, and an axis of length 1 for each that it lacks."""
    x = permute(names, x, "".join(name for name in order if name in names))
    missing = tuple(k for k, name in enumerate(order) if name not in names)
    return expand_dims(x, missing) if missing else x
