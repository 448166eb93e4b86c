"""np.einsum: a product of arrays whose axes have names, summed over the names that the result
lacks.

It is linear in each operand, and the cotangent of an operand is an einsum again:

    y = einsum("ij,jk->ik", a, b)      a_bar = einsum("ik,jk->ij", y_bar, b)
"""

from __future__ import annotations

import ast
import string

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, meet
from ...ir.graph import Value
from ...ir.types import Dim, Type, Unknown, may_be_one
from ..core.chain_rule import like_operand
from ..core.dependence_rules import anything, follows, spread_as
from ..core.record import (
    ALL,
    array_type,
    broadcast_dim,
    common_dtype,
    define,
    dims_of,
    dtype_of,
    numpy_function,
    rank,
    static,
    value,
)
from ..core.shape import length, named_extent, numpy_call, shaped_like, spread, sum_to
from .axes import expand_dims, transpose_record
from .create import arange, ones_like
from .index import take
from .reshape import reshape
from .selection import diagonal


def split(subscripts: str) -> tuple[list[str], str]:
    """The axis names of each operand and of the result."""
    operands, _, result = subscripts.partition("->")
    return operands.split(","), result


def canonical(subscripts: str, ranks: list[int | None]) -> str:
    """Normalise subscripts: no spaces, an explicit result, and a name for each axis of an ellipsis.

    `ranks` are those of the operands.
    """
    subscripts = subscripts.replace(" ", "")
    operands, arrow, result = subscripts.partition("->")
    operands = operands.split(",")
    if len(operands) != len(ranks):
        raise TypeMismatchError(
            f"np.einsum of {len(ranks)} operands, of which the subscripts name {len(operands)}",
            current().line,
            "name the axes of each operand",
        )
    if not arrow:
        names = "".join(operands).replace("...", "")
        dots = "..." if "..." in subscripts else ""
        result = dots + "".join(sorted(name for name in set(names) if names.count(name) == 1))
    if "." in subscripts:
        if None in ranks:
            raise UnsupportedError("np.einsum with an ellipsis of an array of unknown rank",
                                   current().line, "call the function once, or name all axes")
        free = [letter for letter in string.ascii_letters if letter not in subscripts]
        counts = [n - len(names) + 3 if "..." in names else 0 for names, n in zip(operands, ranks)]
        spare = "".join(free[: max(counts)])
        if min(counts) < 0 or "." in "".join([*operands, result]).replace("...", ""):
            raise TypeMismatchError(
                f"np.einsum of {subscripts!r}: more axes are named than there are", current().line,
                "name each axis once, or let `...` stand for several")
        if max(counts) and "..." not in result:
            raise TypeMismatchError(
                f"np.einsum of {subscripts!r}: the result lacks the axes of the ellipsis",
                current().line, "put `...` into the result, or name the axes that are summed over")
        operands = [names.replace("...", spare[len(spare) - n :])
                    for names, n in zip(operands, counts)]
        result = result.replace("...", spare)
    return f"{','.join(operands)}->{result}"


def without_twins(names: str, x: Value) -> tuple[str, Value]:
    """Replace an operand with a repeated axis name by its diagonal."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            m, n = dims_of(x.type)[first], dims_of(x.type)[second]
            meet(m, n)
            if m != n:  # checked at run time: NumPy raises where they differ
                x = reshape(x,
                            *(length(x, axis=first if k == second else k)
                              for k in range(len(names))))
            rest = [k for k in range(len(names)) if k not in (first, second)]
            if rest:
                places = arange(length(x, axis=first))
                x = take(transpose_record(x, axes=(first, second, *rest)), (places, places))
            else:
                x = diagonal(x)
            names = name + "".join(names[k] for k in rest)
    return names, x


def _infer(*xs: Value, subscripts: str) -> Type:
    operands, result = split(subscripts)
    dtype = common_dtype(*(dtype_of(x.type) for x in xs))
    extents: dict[str, object] = {}
    for names, x in zip(operands, xs):
        if rank(x) is None:
            return Unknown(None, dtype)
        if rank(x) != len(names):
            raise TypeMismatchError(
                f"np.einsum: {names!r} names the axes of {x.type}",
                current().line,
                "name each axis once",
            )
        for name, d in zip(names, dims_of(x.type)):
            known = extents.setdefault(name, d)
            if isinstance(known, int) and isinstance(d, int) and known != d and 1 not in (known, d):
                raise TypeMismatchError(
                    f"np.einsum: the axis {name!r} is of length {known} and of length {d}",
                    current().line,
                    "make the lengths equal",
                )
            joined = broadcast_dim(known, d)
            extents[name] = named_extent(("broadcast", known, d)) if joined is None else joined
    return array_type(dtype or "float64", tuple(extents[name] for name in result))


def _fold(*xs: Value, subscripts: str):
    """Turn a scalar operand into a factor, and a single operand with all its axes into itself or a
    transpose.

    NumPy returns a view for it, and a record declares aliasing for all its results alike: a
    cotangent np.einsum("ji->ij", A) was written into, and A with it.
    """
    operands, result = split(subscripts)
    if len(xs) == 1:
        names = operands[0]
        if (len(set(names)) < len(names) or set(names) != set(result)
            or rank(xs[0]) not in (None, len(names))):
            return None
        return (xs[0] if names == result and rank(xs[0]) is not None
                else transpose_record(xs[0], axes=tuple(map(names.index, result))))
    for k, (names, x) in enumerate(zip(operands, xs)):
        if not names and rank(x) == 0:
            rest = [*operands[:k], *operands[k + 1 :]]
            return x * einsum(*xs[:k], *xs[k + 1 :], subscripts=f"{','.join(rest)}->{result}")
    return None


def _vjp(bar, y, *xs, subscripts):
    return tuple(like_operand(_cotangent(bar, y, xs, k, subscripts), x) for k, x in enumerate(xs))


def _cotangent(bar: Value, y: Value, xs: tuple, k: int, subscripts: str) -> Value:
    """The cotangent of the k-th operand; axes summed in it alone, or of another length elsewhere,
    are broadcast.
    """
    operands, result = split(subscripts)
    others, rest = [*operands[:k], *operands[k + 1 :]], [*xs[:k], *xs[k + 1 :]]
    elsewhere = _elsewhere([result, *others], [y, *rest])
    is_same = {name: None if elsewhere is None else _is_as_long(d, elsewhere[name])
               for name, d in zip(operands[k], dims_of(xs[k].type))
               if elsewhere is None or name in elsewhere}
    if rank(xs[k]) is None or None in is_same.values():  # known only at run time
        every = einsum(bar, *rest, ones_like(xs[k]),
                       subscripts=f"{','.join([result, *others, operands[k]])}->{operands[k]}")
        return sum_to(every, xs[k])
    found = "".join(name for name in operands[k] if is_same.get(name))
    bar = einsum(bar, *rest, subscripts=f"{','.join([result, *others])}->{found}")
    alone = tuple(axis for axis, name in enumerate(operands[k]) if name not in found)
    if alone or not found:
        return spread(expand_dims(bar, alone) if found else bar, xs[k])
    return shaped_like(bar, xs[k])


def _elsewhere(names: list[str], xs: list[Value]) -> dict[str, list[Dim]] | None:
    """The lengths of the axes of each name in the other operands; None if unknown."""
    if any(rank(x) is None for x in xs):
        return None
    found: dict[str, list[Dim]] = {}
    for own, x in zip(names, xs):
        for name, d in zip(own, dims_of(x.type)):
            found.setdefault(name, []).append(d)
    return found


def _is_as_long(d: Dim, others: list[Dim]) -> bool | None:
    """Whether an axis of length d equals all of these lengths that are longer than 1; None if known
    only at run time.
    """
    longer = [e for e in others if e != 1]
    if all(e == d for e in longer):
        return d == 1 or (bool(longer) or (None if may_be_one(d) else False))
    if all(map(may_be_one, longer)) or may_be_one(d) and d != 1:
        return None
    return d != 1


def _batch(flags, *xs, subscripts):
    operands, result = split(subscripts)
    lane = next(letter for letter in string.ascii_letters if letter not in subscripts)
    names = [lane * flag + name for flag, name in zip(flags, operands)]
    return einsum(*xs, subscripts=f"{','.join(names)}->{lane + result}")


@follows()
def _depends_einsum(unions, y, deps, *xs, subscripts):
    """Rule: of each operand the elements along the summed axes."""
    terms, result = subscripts.replace(" ", "").split("->")
    if "." in subscripts:
        return anything(unions, y, deps, *xs)
    found = 0
    for term, dep, x in zip(terms.split(","), deps, xs, strict=True):
        dep = spread_as(dep, x)
        for letter in sorted(set(term)):  # a repeated letter means the diagonal
            while term.count(letter) > 1:
                first, second = term.index(letter), term.rindex(letter)
                dep = np.moveaxis(np.diagonal(dep, axis1=first, axis2=second), -1, first)
                term = term[:second] + term[second + 1:]
        dep = np.asarray(unions.along(
            dep, tuple(k for k, letter in enumerate(term) if letter not in result)))
        term = "".join(letter for letter in term if letter in result)
        dep = np.transpose(dep, sorted(range(len(term)), key=lambda k: result.index(term[k])))
        found = unions.union(found,
                             dep.reshape([dep.shape[sorted(term, key=result.index).index(letter)]
                                          if letter in term else 1 for letter in result]))
    return np.broadcast_to(found, np.shape(y)).copy() if np.ndim(y) else int(found)


einsum = define(
    "einsum",
    evaluate=lambda *xs, subscripts: np.einsum(subscripts, *xs),
    infer=_infer,
    fold=_fold,
    vjp=_vjp,
    multilinear=ALL,
    batch=_batch,
    syntax=lambda *xs, subscripts: numpy_call("einsum", ast.Constant(subscripts), *xs),
    depends=_depends_einsum, warns="overflow",
)


@numpy_function(np.einsum)
def einsum_(subscripts, *operands, optimize=False) -> Value:
    """np.einsum with static subscripts."""
    text = static(subscripts, "the subscripts of np.einsum")
    if not isinstance(text, str):
        raise UnsupportedError(
            "np.einsum without a string of subscripts", current().line, 'write "ij,jk->ik"'
        )
    xs = list(map(value, operands))
    names, result = split(canonical(text, [rank(x) for x in xs]))
    for k, (own, x) in enumerate(zip(names, xs)):
        if len(set(own)) < len(own) and rank(x) == len(own):
            names[k], xs[k] = without_twins(own, x)
        elif len(set(own)) < len(own):
            raise UnsupportedError("np.einsum with an axis named twice of an array of unknown rank",
                                   current().line,
                                   "call the function once, or use np.diagonal first")
    return einsum(*xs, subscripts=f"{','.join(names)}->{result}")
