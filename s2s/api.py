"""The public functions: what they are called, what they take, what they return.  JAX's names and conventions.

Transformations (`grad`, `value_and_grad`, `jit`, ...) return a `Transformed` and do nothing yet; `jvp`, `vjp`
and `linearize` take the arguments along and run.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from . import pipeline, tree
from .arguments import FIRST, numbers, resolved, static_names
from .errors import S2SError, TypeMismatchError, UnsupportedError
from .front import beginning, from_text
from .front.target import Keyworded
from .ir.types import Type
from .jacobians import Jacobian
from .ops.record import MACROS, Macro
from .signature import bind, signature_of, type_of
from .transformed import Transformed

# ------------------------------------------------------------------------------------------- reverse mode


Argnums = int | str | Sequence[int | str]


def decorator(transform: Callable) -> Callable:
    """`transform(f, ...)`, which may be written above class and static methods, and be given its options first."""

    @functools.wraps(transform)
    def transformation(f: Callable | None = None, *args, **options):
        match f:
            case None:
                return functools.partial(transformation, **options)
            case classmethod() | staticmethod():
                return type(f)(transformation(f.__func__, *args, **options))
            case property():
                raise UnsupportedError(f"{transform.__name__} of a property", None,
                                       f"write @property above @s2s.{transform.__name__}")
        return transform(f, *args, **options)

    return transformation


@decorator
def grad(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False, allow_int: bool = False) -> Transformed:
    """The derivative of the number that `f` returns, with respect to the arguments `argnums`.

    `argnums` are numbers, from 0, or from -1 backwards, or names; of a method, the default is the first argument after
    `self`.  Returns a function of the arguments of `f`, whose result has the structure and the shapes of the
    argument, or is a tuple of such where `argnums` is one.  With `has_aux`, `f` returns (number, aux) and the
    result is (derivative, aux).  The function refuses integer arguments among `argnums`, and results that are not
    one real number, with TypeMismatchError; with `allow_int`, what is differentiated may hold integers, and the
    result has 0.0 in their places.  Members that are no data (None, strings) stay what they are.
    """
    return Transformed("grad", f, {"argnums": numbers(argnums), "has_aux": has_aux, "allow_int": allow_int})


@decorator
def value_and_grad(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False,
                   allow_int: bool = False) -> Transformed:
    """`grad`, and the value: a function that returns (y, derivative), or ((y, aux), derivative)."""
    return Transformed("value_and_grad", f, {"argnums": numbers(argnums), "has_aux": has_aux, "allow_int": allow_int})


def vjp(f: Callable, *primals, has_aux: bool = False):
    """(y, pullback): `pullback(y_bar)` is a tuple with the cotangent of each of `primals`.

    Without primals, the Transformed f_vjp(*xs, y_bar) -> x_bars that the pullback calls.
    """
    if not primals:
        return Transformed("vjp", f)
    if has_aux:
        y, aux = with_aux(f(*copies(undrawn(primals))), f)
        _, pull = vjp(first_of(f), *primals)
        return y, pull, aux
    args = with_defaults(f, primals)
    before = undrawn(args)
    back = cached(f, "vjp", len(args))
    y = by_position(cached(f, "value", None))(*args)

    def pullback(y_bar):
        same_structure(y_bar, y, "the cotangent given to the pullback", f)
        return back(*undrawn(before), y_bar)[:len(primals)]  # it draws what the value has drawn

    return y, pullback


# ------------------------------------------------------------------------------------------- forward mode


def jvp(f: Callable, primals: Sequence | None = None, tangents: Sequence | None = None, has_aux: bool = False):
    """(y, y_dot): the value of `f` at `primals`, and its derivative in the direction `tangents`.

    Without primals, the Transformed f_jvp(*xs, *x_dots) -> (y, y_dot) that computes them.
    """
    if primals is None:
        return Transformed("jvp", f)
    primals, tangents = tuple(primals), tuple(tangents)
    if len(primals) != len(tangents):
        raise TypeMismatchError(f"jvp was given {len(primals)} primals and {len(tangents)} tangents", _beginning(f),
                                "give one tangent for each primal")
    for x, x_dot in zip(primals, tangents):
        same_structure(x_dot, x, "a tangent given to jvp", f)
    args = with_defaults(f, primals)
    rest = [zeros(x) for x in args[len(primals):]]
    y, y_dot = cached(f, "jvp", len(args))(*args, *tangents, *rest)
    if has_aux:
        (y, aux), (y_dot, _) = with_aux(y, f), y_dot
        return y, y_dot, aux
    return y, y_dot


def linearize(f: Callable, *primals):
    """(y, pushforward): `pushforward(*x_dots)` is the derivative of `f` at `primals` in that direction."""
    y = cached(f, "value", None)(*primals)

    def pushforward(*tangents):
        return jvp(f, primals, tangents)[1]

    return y, pushforward


# -------------------------------------------------------------------------------------- whole derivatives


@decorator
def jacfwd(f: Callable, argnums: Argnums = FIRST) -> Jacobian:
    """The Jacobian of `f`, a column at a time by forward mode: shape y.shape + x.shape.

    Of containers, a container like the result, whose leaves are containers like the argument; so does `jacrev`.
    `argnums` are those of `grad`.
    """
    return Jacobian(by_columns, f, argnums)


@decorator
def jacrev(f: Callable, argnums: Argnums = FIRST) -> Jacobian:
    """The Jacobian of `f`, a row at a time by reverse mode: shape y.shape + x.shape."""
    return Jacobian(by_rows, f, argnums)


jacobian = jacrev


def by_columns(f: Callable, argnums, args: tuple, keywords: dict):
    """The Jacobian of `f` at these arguments, by forward mode."""
    f, args = spread(f, args, keywords)
    argnums = resolved(argnums, f, types_of(args))

    def one(k: int):
        leaves, structure = tree.flatten(args[k])
        zeros_of_rest = [zeros(a) for a in args]
        found = []  # for each leaf of x, the result's leaves with the axes of that leaf behind theirs
        for n, leaf in enumerate(leaves):
            x, columns = np.asarray(leaf, dtype=float_of(leaf)), []
            for direction in basis(x):
                inside = [direction if m == n else zeros(other) for m, other in enumerate(leaves)]
                tangents = [tree.unflatten(structure, inside) if i == k else z for i, z in enumerate(zeros_of_rest)]
                columns.append(jvp(f, args, tangents)[1])
            found.append(tree.map(lambda *cs: np.stack(cs, -1).reshape(np.shape(cs[0]) + x.shape)[()], *columns) if columns
                         else tree.map(lambda y: np.zeros(np.shape(y) + x.shape), cached(f, "value", None)(*args)))
        return each_leaf_a_tree(found, structure)

    return one(argnums) if isinstance(argnums, int) else tuple(map(one, argnums))


def by_rows(f: Callable, argnums, args: tuple, keywords: dict):
    """The Jacobian of `f` at these arguments, by reverse mode."""
    f, args = spread(f, args, keywords)
    argnums = resolved(argnums, f, types_of(args))
    for k in [argnums] if isinstance(argnums, int) else argnums:
        tree.map(float_of, args[k])
    y, pull = vjp(f, *args)
    leaves, structure = tree.flatten(y)
    rows = []  # for each leaf of the result, one row for each of its elements
    for n, leaf in enumerate(leaves):
        given = [[direction if m == n else zeros(other) for m, other in enumerate(leaves)]
                 for direction in basis(np.asarray(leaf))]
        rows.append([pull(tree.unflatten(structure, y_bar)) for y_bar in given])

    def one(k: int):
        found = [tree.map(lambda *bars: np.stack(bars).reshape(np.shape(leaf) + np.shape(bars[0]))[()],
                          *(row[k] for row in each)) if each else
                 tree.map(lambda x: np.zeros(np.shape(leaf) + np.shape(x)), args[k]) for leaf, each in zip(leaves, rows)]
        return tree.unflatten(structure, found)

    return one(argnums) if isinstance(argnums, int) else tuple(map(one, argnums))


def each_leaf_a_tree(found: list, structure):
    """Trees like the result, one for each leaf of the argument: a tree like the result, whose leaves are like the argument."""
    columns = [tree.flatten(each) for each in found]
    if not columns:
        return tree.unflatten(structure, [])
    rows = [tree.unflatten(structure, list(row)) for row in zip(*(leaves for leaves, _ in columns))]
    return tree.unflatten(columns[0][1], rows)


@decorator
def hessian(f: Callable, argnums: int | str = FIRST) -> Jacobian:
    """The second derivatives of the number that `f` returns: shape x.shape + x.shape; forward over reverse."""
    return jacfwd(grad(f, argnums), argnums)


def hvp(f: Callable, primals: Sequence, tangents: Sequence):
    """The Hessian of the number `f(*primals)` in the first argument, applied to `tangents`."""
    return jvp(grad(f), primals, tangents)[1]


# ---------------------------------------------------------------------------------------------- batching


@decorator
def vmap(f: Callable, in_axes: int | Sequence[int | None] = 0,
         out_axes: int | Sequence[int | None] = 0) -> Transformed:
    """`f` for many lanes at once: each argument has one more axis, where `in_axes` says, and so has the result.

    `in_axes` is one axis for all arguments, or one per argument, None for what all lanes share.
    """
    if in_axes is None:
        raise TypeMismatchError("in_axes=None: vmap over no argument", None, "say which axis of which argument has the lanes")
    return Transformed("vmap", f, {"in_axes": in_axes if isinstance(in_axes, int) else tuple(in_axes),
                                   "out_axes": out_axes})


# -------------------------------------------------------------------------------------------- native code


@decorator
def jit(f: Callable, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
        **options) -> Transformed:
    """`f`, compiled by Numba the first time it meets arguments of one kind.

    Options: target="cpu", parallel=None, fastmath=False, cache=True; for target="cuda" also threads, of a block.
    Arguments named by `static_argnums` and `static_argnames` are known when code is generated, and each of their values
    has code of its own: lengths of new arrays, numbers of trips to unroll.  They must be hashable.
    """
    unknown = set(options) - {"target", "parallel", "fastmath", "cache"} - ({"threads"} if options.get("target") == "cuda" else set())
    if unknown:
        raise TypeMismatchError(f"jit has no option {', '.join(sorted(unknown))}", None,
                                "its options are static_argnums, static_argnames, target, parallel, fastmath and cache")
    static = static_names(f, static_argnums, static_argnames)
    if static:
        options["static"] = static
    return Transformed("jit", f, options)


# ------------------------------------------------------------------------------------------------ looking


def source(t: Callable, *args) -> str:
    """The generated Python of `t`, for arguments like `args` if they are given."""
    t = as_transformed(t)
    return t.lower(*args).source if args else t.source


def stages(t: Callable, *args) -> list[tuple[str, str]]:
    """Every stage on the way to the code of `t` for arguments like `args`: (name of the pass, Python)."""
    t = fresh(as_transformed(t))
    with pipeline.recorded() as found:
        t.lower(*args)
    return [(name, pipeline.render(function, annotate=True).text) for name, function in found]


def dump(t: Callable, directory: str | Path, *args) -> Path:
    """Write every stage on the way to the code of `t`, each as a file that runs; returns the directory."""
    with mock.patch.dict(os.environ, {"S2S_DUMP": str(directory)}):
        fresh(as_transformed(t)).lower(*args)
    return Path(directory)


def from_source(text: str, globals: dict | None = None, filename: str | None = None) -> Callable:
    """The last function that `text` defines, with `def`, decorated, or assigned, as if it had been in a file.

    The text is run in `globals`, which is the function's own module then, as for `exec`: names are looked up there at
    each call, and what the text defines is put there, so that `from_source(text, globals())` defines it here.  Without
    `globals` it has a module of its own with `np` in it.  Tracebacks show the text, as that of `filename`.
    """
    if globals is None:
        globals = {"np": np}
    if filename is None:  # the same for the same text, in another process too
        filename = f"<text {hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}>"
    return from_text(text, globals, filename)


# ----------------------------------------------------------------------------------------------- checking


def check_grads(f: Callable, args: Sequence, order: int = 2, modes: Sequence[str] = ("fwd", "rev"),
                atol: float = 1e-4, rtol: float = 1e-4, eps: float = 1e-5) -> None:
    """Compare derivatives of `f` at `args`, up to `order`, with central differences along random directions.

    Raises AssertionError where they disagree.  Every derivative is checked by checking the function that
    computes it, so second order is tested by the same lines as first.
    """
    args = with_defaults(f, tuple(args))
    rng = np.random.default_rng(0)
    directions = tuple(random_like(rng, x) for x in args)
    numeric = central_difference(by_position(f), args, directions, eps)
    if "fwd" in modes:
        _, y_dot = jvp(f, args, directions)
        assert_close(y_dot, numeric, atol, rtol, "forward mode", f)
    if "rev" in modes:
        y, pull = vjp(f, *args)
        y_bar = tree.map(lambda leaf: random_like(rng, leaf), y)
        x_bars = pull(y_bar)
        assert_close(inner(x_bars, directions), inner(y_bar, numeric), atol, rtol, "reverse mode", f)
    if order > 1:
        if "fwd" in modes:
            check_grads(jvp(f), (*args, *directions), order - 1, modes, atol, rtol, eps)
        if "rev" in modes:
            check_grads(vjp(f), (*args, y_bar), order - 1, modes, atol, rtol, eps)


def central_difference(f: Callable, args: tuple, directions: tuple, eps: float):
    """(f(x + eps d) - f(x - eps d)) / 2 eps."""
    def moved(sign: float) -> list:
        return [tree.map(lambda x, d: x + sign * eps * d if is_inexact(x) else x, x, d)
                for x, d in zip(args, directions)]

    return tree.map(lambda a, b: (a - b) / (2 * eps), f(*copies(moved(1.0))), f(*copies(moved(-1.0))))


def inner(a, b) -> float:
    """The sum of the products of the leaves of two trees."""
    pairs = zip(tree.leaves(a), tree.leaves(b), strict=True)
    return math.fsum(float(np.sum(np.real(x * y))) for x, y in pairs)


def assert_close(got, wanted, atol: float, rtol: float, mode: str, f: Callable) -> None:
    """AssertionError, with both values, if two trees differ."""
    for a, b in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        if not np.allclose(a, b, atol=atol, rtol=rtol):
            name = getattr(f, "__name__", f)
            raise AssertionError(f"{mode} of {name} gives {a}, central differences {b}")


# ---------------------------------------------------------------------------------------------- arguments


def with_defaults(f: Callable, args: tuple, keywords: dict | None = None) -> tuple:
    """The arguments of a call of `f` in order, with the defaults of the parameters that it leaves open."""
    signature = signature_of(f)
    if not keywords and len(args) == len(signature.parameters):
        return tuple(args)  # those that have to be named as well, from a caller who bound them before
    return bind(signature, args, keywords or {})


def spread(f: Callable, args: tuple, keywords: dict) -> tuple[Callable, tuple]:
    """`f` and its arguments in order; what a `**` parameter takes by names has parameters of its own."""
    parameters = signature_of(f).parameters.values()
    names = tuple(name for name in keywords if all(p.name != name for p in parameters))
    if names and any(p.kind is p.VAR_KEYWORD for p in parameters):
        f = f.named_by(keywords) if isinstance(f, Transformed) else Keyworded(f, names)
    return f, with_defaults(f, args, keywords)


def types_of(args: tuple) -> list[Type]:
    """The types of arguments, for who asks which of them are meant."""
    return [type_of(x, f"x{k}") for k, x in enumerate(args)]


def by_position(f: Callable) -> Callable:
    """`f`, taking every argument by position, as what is generated from it does."""
    signature = f.signature if isinstance(f, Transformed) else signature_of(f)
    named = [name for name, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
    return f if not named else lambda *xs: f(*xs[:-len(named)], **dict(zip(named, xs[-len(named):])))


def zeros(x):
    """A tangent or cotangent of zero for `x`."""
    return tree.map(lambda leaf: np.zeros(np.shape(leaf)) if np.ndim(leaf) else 0.0, x)


def cached(f: Callable, kind: str, count: int | None) -> Transformed:
    """The Transformed behind `jvp(f, ...)` and `vjp(f, ...)`, kept with `f` so that code is generated once."""
    options = {} if count is None else {"count": count}
    try:
        kept = f.__dict__.setdefault("__s2s__", {})
    except AttributeError:  # a method, a partial, a class with slots
        return Transformed(kind, f, options)
    if (kind, count) not in kept:
        kept[kind, count] = Transformed(kind, f, options)
    return kept[kind, count]


def as_transformed(t: Callable) -> Transformed:
    """`t` itself if it is a Transformed, else the function as s2s understands it."""
    return t if isinstance(t, Transformed) else Transformed("value", t)


def fresh(t: Transformed) -> Transformed:
    """`t` with nothing generated yet, at any depth."""
    inner = fresh(t.inner) if isinstance(t.inner, Transformed) else t.inner
    return Transformed(t.kind, inner, t.options)


def copies(args: Sequence) -> tuple:
    """Arguments that a function may write into."""
    return tuple(tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, x) for x in args)


def undrawn(args: Sequence) -> tuple:
    """Arguments whose random generators are copies: what is drawn from these moves none of the caller's on."""
    return tuple(tree.map(lambda x: copy.deepcopy(x) if isinstance(x, np.random.Generator) else x, x) for x in args)


def first_of(f: Callable) -> Callable:
    """f(*xs) -> (y, aux) becomes (*xs) -> y."""
    return Transformed("first", f)


def with_aux(result, f: Callable) -> tuple:
    """`result`, if it is (y, aux)."""
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise TypeMismatchError(f"has_aux=True, and {getattr(f, '__name__', 'f')} returns no pair (result, more)", _beginning(f),
                            "return a tuple of two")


def is_inexact(x) -> bool:
    """Whether `x` can carry a derivative."""
    return np.asarray(x).dtype.kind in "fc"


def float_of(x):
    """The dtype of a derivative with respect to `x`."""
    if not is_inexact(x):
        kind = "an integer" if isinstance(x, (int, np.integer)) else "no float"
        raise TypeMismatchError(f"a derivative with respect to {x!r}, which is {kind}", None,
                                "pass a float, e.g. 2.0")
    return np.asarray(x).dtype


def scalar(x):
    """A number instead of an array of rank 0."""
    return x if np.ndim(x) else float(x)


def basis(x: np.ndarray):
    """The unit vectors of the space of `x`, in its shape."""
    for k in range(x.size):
        unit = np.zeros(x.size, x.dtype)
        unit[k] = 1
        yield unit.reshape(x.shape)[()]


def random_like(rng: np.random.Generator, x):
    """A random direction for `x`, zero where it is an integer."""
    def leaf(v):
        if not is_inexact(v):
            return np.zeros(np.shape(v))[()]
        return rng.normal(size=np.shape(v)) if np.ndim(v) else float(rng.normal())

    return tree.map(leaf, x)


def _beginning(f: Callable):
    """Where the function inside all transformations of `f` begins."""
    return beginning(f.base if isinstance(f, Transformed) else f)


def same_structure(given, like, what: str, f: Callable) -> None:
    """TypeMismatchError unless two trees have the same structure and shapes."""
    (a, own), (b, wanted) = tree.flatten(given), tree.flatten(like)
    shapes = [np.shape(x) for x in a], [np.shape(x) for x in b]
    name = getattr(f, "__name__", "f")
    try:
        nested = not (a or b) or all(tree.structure(x).is_leaf() for x in wanted.flatten_up_to(given))
    except (S2SError, TypeError, ValueError, LookupError, AttributeError):
        nested = False
    if not nested:
        raise TypeMismatchError(f"{what} for {name} has the shapes {tree.unflatten(own, shapes[0])}, and "
                                f"{tree.unflatten(wanted, shapes[1])} is needed", _beginning(f),
                                "nest it as what it goes with is nested")
    if len(a) != len(b) or shapes[0] != shapes[1]:
        raise TypeMismatchError(f"{what} for {name} has shapes {shapes[0]}, and {shapes[1]} is needed", _beginning(f),
                                "make it as long and as deep as what it goes with")


# ------------------------------------------------------------------------------------- inside a program


def _jvp_inside(call: Callable, f, primals, tangents):
    return call(Transformed("jvp", f, {"count": len(primals)}), *primals, *tangents)


def _vjp_inside(call: Callable, f, *primals):
    back = Transformed("vjp", f, {"count": len(primals)})
    return call(f, *primals), Macro(lambda call, y_bar: call(back, *primals, y_bar))


def _linearize_inside(call: Callable, f, *primals):
    return call(f, *primals), Macro(lambda call, *tangents: _jvp_inside(call, f, primals, tangents)[1])


def _refused(name: str) -> Macro:
    def expand(call: Callable, *args, **keywords):
        raise UnsupportedError(f"{name} inside a function that s2s reads", None, "use hvp, jvp or vjp there")

    return Macro(expand)


MACROS.update({
    **{f: Macro(lambda call, *args, f=f, **options: f(*args, **options)) for f in (grad, value_and_grad, vmap, jit)},
    jvp: Macro(_jvp_inside),
    vjp: Macro(_vjp_inside),
    linearize: Macro(_linearize_inside),
    hvp: Macro(lambda call, f, primals, tangents: _jvp_inside(call, grad(f), primals, tangents)[1]),
    **{f: _refused(f.__name__) for f in (jacfwd, jacrev, hessian, check_grads, source, stages, dump)},
})
