"""The public API: names, arguments and results, with JAX's names and conventions.

Transformations (`grad`, `value_and_grad`, `jit`, ...) return a `Transformed` and do nothing yet;
`jvp`, `vjp` and `linearize` take the arguments along and run.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from types import MethodType

import numpy as np

from . import pipeline, tree
from .call.argnums import (
    FIRST,
    checked_axes,
    checked_name,
    checked_processes,
    checked_size,
    checked_workers,
    numbers,
    static_names,
)
from .derive.linear_maps import FirstHalf, LinearMap, SecondHalf, halves_of, unshared
from .derive.vectorized import Signature
from .errors import S2SError, TypeMismatchError, UnsupportedError
from .front import definition_line, from_text
from .front.domain.functions import Intrinsic
from .front.domain.heap import Cell, Container
from .front.eval.apply import apply
from .ir.builder import in_scope
from .ir.graph import MISSING, Value
from .ir.types import Array, Scalar, Unknown
from .ops.arrays.reduce import is_complex
from .ops.core.cast import float_
from .ops.core.chain_rule import like_operand
from .ops.core.record import MACROS, Macro, dtype_of
from .ops.program.checkpoint import bytes_of
from .ops.program.custom_rules import direction_length, in_shape
from .passes import dumping, recorded
from .process_map import ProcessMap
from .sparse.derivative import SparseJacobian
from .specialisation import bind, normalised, signature_of
from .transformations import native_inside, positional
from .transformed import Transformed

# ------------------------------------------------------------------------------------- reverse mode


Argnums = int | str | Sequence[int | str]


def decorator(transform: Callable) -> Callable:
    """Make `transform(f, ...)` usable as a decorator, on class and static methods too, and with
    options first.
    """

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
def grad(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, tape_limit: int | str | None = None) -> Transformed:
    """The derivative of the number that `f` returns, with respect to the arguments `argnums`.

    An array of one element is a number here, as for the optimisers of SciPy.

    `argnums` are numbers, from 0, or from -1 backwards, or names; of a method, the default is the
    first argument after `self`.  Returns a function of the arguments of `f`, whose result has the
    structure and the shapes of the argument, or is a tuple of such where `argnums` is one.  With
    `has_aux`, `f` returns (number, aux) and the result is (derivative, aux).  The function refuses
    integer arguments among `argnums`, and results that are not one real number, with
    TypeMismatchError; with `allow_int`, what is differentiated may hold integers, and the result
    has 0.0 in their places.  Members that are no data (None, strings) stay what they are.

    With `holomorphic`, arguments and result are complex, and the result is f'(z), as of any complex
    function that has a derivative; without it the derivative of a real result by z = u + iv is that
    by u minus i times that by v, as in JAX.

    With `tape_limit`, a number of bytes or a text such as "64MB", loops whose tapes would be larger
    are checkpointed, as `checkpoint(range(n), memory=tape_limit)` does it; `.lower(*args).memory`
    says what is saved.  Left as they are: loops that save single elements of arrays that they
    write, that draw, or whose state has no size known before them.
    """
    return Transformed("grad", f,
                       gradient_options(argnums, has_aux, holomorphic, allow_int, tape_limit))


def gradient_options(argnums: Argnums, has_aux: bool, holomorphic: bool, allow_int: bool,
                     tape_limit: int | str | None) -> dict:
    """Collect the options of `grad` and `value_and_grad`."""
    options = {"argnums": numbers(argnums), "has_aux": has_aux, "allow_int": allow_int}
    if holomorphic:
        options["holomorphic"] = True
    return options if tape_limit is None else {**options, "tape_limit": bytes_of(tape_limit)}


@decorator
def value_and_grad(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False,
                   tape_limit: int | str | None = None) -> Transformed:
    """Transform `f` like `grad`, and return the value too: (y, derivative), or ((y, aux),
    derivative).
    """
    return Transformed("value_and_grad", f,
                       gradient_options(argnums, has_aux, holomorphic, allow_int, tape_limit))


def vjp(f: Callable, *primals, has_aux: bool = False):
    """(y, pullback): `pullback(y_bar)` is a tuple with the cotangent of each of `primals`.

    Without primals, the Transformed f_vjp(*xs, y_bar) -> x_bars that the pullback calls.
    """
    if not primals:
        return Transformed("vjp", f)
    args = with_defaults(f, primals)
    (y, *aux), back = linear_map(f, "reverse half", args, has_aux, lambda y: [y],
                                 "the cotangent given to the pullback",
                                 lambda bars: (bars if len(args) != 1 else (bars,))[:len(primals)])
    return y, back, *aux


def linear_map(f: Callable, kind: str, args: tuple, has_aux: bool, like: Callable, what: str,
               finish: Callable, rest: Sequence = ()) -> tuple:
    """Return the results of the first half of a derivative, without its saved values, and the
    second half as a function.

    `like(y)` are trees like the directions that it takes, each called `what`; `rest` are directions
    that are always the same; `finish` is run on its result.
    """
    first = cached(f, kind, None, has_aux=has_aux)
    halves = halves_of(first.specialise(args).function)
    # the first half may write to what it has captured
    captured = [np.copy(x) if isinstance(x, np.ndarray) else x
                for x in (get() for get in halves.second.captures.values())]
    found = by_position(first)(*args)
    results = found[:1 + has_aux]
    wanted = like(results[0])

    def accept(directions: tuple) -> list:
        if len(directions) != len(wanted):
            name = getattr(f, "__name__", "f")
            raise TypeMismatchError(f"{len(directions)} directions are given to {name}, "
                                    f"linearized, and {len(wanted)} are needed", _beginning(f),
                                    "give one for each")
        for direction, x in zip(directions, wanted):
            same_structure(direction, x, what, f)
        return [tree.map(functools.partial(direction_like, f=f), x, direction)
                for direction, x in zip(directions, wanted)] + [*rest]

    held = [*(args[k] for k in halves.arguments), *(found[j] for j in halves.saved)]
    held = [*unshared(held, [args, results]), *captured]
    return results, LinearMap(halves, map(normalised, held), accept, finish, native_inside(first))


def direction_like(x, direction, f: Callable):
    """Convert a tangent or cotangent to the dtype of its variable."""
    if not is_inexact(x):
        return direction
    if np.iscomplexobj(direction) and not np.iscomplexobj(x):
        raise TypeMismatchError("a tangent or cotangent is complex, and what it goes with is real",
                                _beginning(f), "give its real part")
    if isinstance(x, np.ndarray) and x.ndim:
        return np.asarray(direction, x.dtype)
    return (type(x)(direction) if isinstance(x, (float, complex))
            else np.asarray(x).dtype.type(direction))


# ------------------------------------------------------------------------------------- forward mode


def jvp(f: Callable, primals: Sequence | None = None, tangents: Sequence | None = None,
        has_aux: bool = False):
    """(y, y_dot): the value of `f` at `primals`, and its derivative in the direction `tangents`.

    Without primals, the Transformed f_jvp(*xs, *x_dots) -> (y, y_dot) that computes them.
    """
    if primals is None:
        return Transformed("jvp", f)
    args, dots = directions(f, primals, tangents, "jvp")
    y, y_dot = cached(f, "jvp", len(args))(*args, *dots)
    if has_aux:
        (y, aux), (y_dot, _) = with_aux(y, f), y_dot
        return y, y_dot, aux
    return y, y_dot


def directions(f: Callable, primals: Sequence, tangents: Sequence | None,
               what: str) -> tuple[tuple, tuple]:
    """Return all arguments of a call of `f`, and a tangent for each: zeros for the defaults;
    TypeMismatchError if they do not fit.
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise (TypeMismatchError(f"{what} takes the arguments, and a tangent for each, as two "
                                 "tuples", _beginning(f), f"write {what}(f, (x, y), (x_dot, "
                                 f"y_dot)), or {what}(f, (x,), (x_dot,)) of one argument"))
    primals, tangents = tuple(primals), tuple(tangents)
    if len(primals) != len(tangents):
        raise TypeMismatchError(f"{what} was given {len(primals)} primals and {len(tangents)} "
                                "tangents", _beginning(f), "give one tangent for each primal")
    for x, x_dot in zip(primals, tangents):
        same_structure(x_dot, x, f"a tangent given to {what}", f)
    tangents = [tree.map(lambda v, d: d if np.iscomplexobj(d) and not np.iscomplexobj(v)
                         else direction_like(v, d, f), x, x_dot)
                # a complex tangent of a real argument is refused later
                for x, x_dot in zip(primals, tangents)]
    args = with_defaults(f, primals)
    return args, (*tangents, *(zeros(x) for x in args[len(primals):]))


def linearize(f: Callable, *primals, has_aux: bool = False):
    """(y, pushforward): `pushforward(*x_dots)` is the derivative of `f` at `primals` in that
    direction.

    What does not depend on the direction is done once, now; `pushforward` may be called many times,
    and is transformed like any function.  With `has_aux`, `f` returns (result, aux), and aux comes
    last.  Without primals, the Transformed f_jvp(*xs, *x_dots) -> (y, y_dot) in which the primal
    comes first and the tangents after it.
    """
    if not primals:
        return Transformed("linearize", f)
    args = with_defaults(f, primals)
    rest = [zeros(x) for x in args[len(primals):]]
    (y, *aux), push = linear_map(f, "forward half", args, has_aux, lambda y: list(primals),
                                 "a tangent given to the pushforward", lambda y_dot: y_dot, rest)
    return y, push, *aux


# -------------------------------------------------------------------------------- whole derivatives


@decorator
def jacfwd(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False,
           holomorphic: bool = False) -> Transformed:
    """The Jacobian of `f`, all columns in one sweep of forward mode: shape y.shape + x.shape.

    Of containers, a container like the result, whose leaves are containers like the argument, or
    tuples of such where `argnums`, which are those of `grad`, is a tuple; so do `jacrev`,
    `jacobian` and `hessian`.  With `has_aux`, `f` returns (result, aux), and what is returned is
    (Jacobian, aux).  Arguments and results are floats, or, with `holomorphic`, complex; anything
    else is refused with TypeMismatchError.
    """
    return jacobian_of("jacfwd", f, argnums, has_aux, holomorphic)


@decorator
def jacrev(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False) -> Transformed:
    """The Jacobian of `f`, all rows in one sweep of reverse mode: shape y.shape + x.shape.  See
    `jacfwd`.

    Arguments may be complex where results are real, as for `grad`; with `allow_int`, integers have
    zeros.
    """
    return jacobian_of("jacrev", f, argnums, has_aux, holomorphic, allow_int)


@decorator
def jacobian(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False,
             holomorphic: bool = False, allow_int: bool = False,
             sparse: bool = False) -> Transformed | SparseJacobian:
    """The Jacobian of `f`, by `jacfwd` or `jacrev`, whichever has fewer directions at these shapes.

    With `sparse`, a scipy.sparse.csr_array with a row for each element of the result and a column
    for each of the argument, in the order of `tree.leaves` and of `ravel`; of a tuple of `argnums`,
    a tuple of such.  The pattern is found from the program, and it takes as many sweeps as the
    pattern has colours: see `SparseJacobian`, whose `plan(*args)`, `pattern(*args)` and
    `colours(*args)` tell them.  `jit` compiles the sweeps.  Arguments and results are real.
    """
    if sparse:
        only_real("jacobian", has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
        return SparseJacobian(f, argnums)
    return jacobian_of("jacobian", f, argnums, has_aux, holomorphic, allow_int)


@decorator
def hessian(f: Callable, argnums: Argnums = FIRST, has_aux: bool = False, holomorphic: bool = False,
            sparse: bool = False) -> Transformed | SparseJacobian:
    """The second derivatives of `f`: shape y.shape + x.shape + x.shape; forward over reverse.  See
    `jacfwd`.

    With `sparse`, of a number that `f` returns: a symmetric scipy.sparse.csr_array, as of
    `jacobian`; of a tuple of `argnums`, a tuple of tuples of blocks.
    """
    if sparse:
        only_real("hessian", has_aux=has_aux, holomorphic=holomorphic)
        return SparseJacobian(f, argnums, hessian=True)
    return jacobian_of("hessian", f, argnums, has_aux, holomorphic)


def only_real(what: str, **options: bool) -> None:
    """Raise TypeMismatchError where a sparse derivative is requested for anything but a matrix of
    real numbers.
    """
    for name, given in options.items():
        if given:
            raise TypeMismatchError(f"{what} with sparse=True and {name}=True", None,
                                    f"leave {name}=True out, or sparse=True")


def jacobian_of(kind: str, f: Callable, argnums, has_aux: bool, holomorphic: bool,
                allow_int: bool = False) -> Transformed:
    """Build a Jacobian or Hessian of one kind."""
    return Transformed(kind, f,
                       {"argnums": numbers(argnums), "has_aux": has_aux, "holomorphic": holomorphic,
                        "allow_int": allow_int})


def hvp(f: Callable, primals: Sequence | None = None, tangents: Sequence | None = None,
        argnums: Argnums = FIRST):
    """The Hessian of the number `f(*primals)` in the arguments `argnums`, times the direction
    `tangents`.

    `tangents` has one entry for each of `primals`: with other directions than zero for arguments
    beside `argnums`, what is returned is the derivative of the whole gradient in that direction.
    Forward over reverse: the cost is that of a few gradients.  Without primals, the Transformed
    f_hvp(*xs, *x_dots) that computes it.
    """
    if primals is None:
        return Transformed("hvp", f, {"argnums": numbers(argnums)})
    args, dots = directions(f, primals, tangents, "hvp")
    return cached(f, "hvp", len(args), argnums=numbers(argnums))(*args, *dots)


# ----------------------------------------------------------------------------------------- batching


@decorator
def vmap(f: Callable, in_axes: int | Sequence[int | None] = 0,
         out_axes: int | Sequence[int | None] = 0, axis_name: Hashable | None = None,
         axis_size: int | None = None, lanes: str | None = None) -> Transformed:
    """Transform `f` to work on many lanes at once: each argument has one more axis, where `in_axes`
    says, and so has the result.

    `in_axes` is one axis for all arguments, or one per argument, None for what all lanes share;
    `out_axes` is one axis for all results, or one per result, from `-n` to `n - 1` for results of
    `n` axes, that of the lanes included.  Where an argument or a result is a container, its entry
    may be a container of axes like it.  TypeMismatchError for axes that are not there.

    `axis_name` names the axis of lanes for the collectives of `s2s.lax`, over which lanes of `f`
    tell each other what they have.  `axis_size` is the number of lanes, which arguments with lanes
    tell, too; without any, it has to be given.

    Calls of a function that calls itself run as one batch for all lanes, each depth of the
    recursion at once, if that works on arrays; in Python's numbers each lane makes its own calls,
    which compiled code has sooner.  `lanes` says it for both: "together", which is refused where
    lanes cannot, or "apart".
    """
    options = lane_options("vmap", in_axes, out_axes, axis_name, axis_size)
    if lanes is not None:
        if lanes not in ("together", "apart"):
            raise TypeMismatchError(f"vmap with lanes={lanes!r}", None,
                                    'say "together" or "apart", or leave it out')
        options["together"] = lanes == "together"
    return Transformed("vmap", f, options)


def lane_options(what: str, in_axes, out_axes, axis_name, axis_size) -> dict:
    """Check and collect the options of `vmap` and `pmap`."""
    in_axes, out_axes = checked_axes(in_axes, "in_axes"), checked_axes(out_axes, "out_axes")
    if in_axes is None and axis_size is None:
        raise TypeMismatchError(f"in_axes=None: {what} over no argument", None,
                                "say which axis of which argument has the lanes, or axis_size")
    options = {"in_axes": in_axes if in_axes is None or isinstance(in_axes, int)
               else tuple(in_axes), "out_axes": out_axes}
    if axis_name is not None:
        options["axis_name"] = checked_name(axis_name)
    if axis_size is not None:
        options["axis_size"] = checked_size(axis_size)
    return options


@decorator
def pmap(f: Callable, axis_name: Hashable | None = None,
         in_axes: int | Sequence[int | None] = 0, out_axes: int | Sequence[int | None] = 0,
         axis_size: int | None = None,
         workers: int | str | tuple[str, int] | None = None) -> Transformed | ProcessMap:
    """Transform `f` like `vmap`, with lanes that workers share: threads, which run native code.

    Each of `workers` threads, by default `s2s.threads()`, takes as many lanes as the others, or one
    more; more lanes than workers are as good as equally many.  Axes, `axis_name` and `axis_size`
    are those of `vmap`, and so are results, errors and derivatives; the collectives of `s2s.lax`
    are called in native code, in loops as well.  `psum` adds lanes in order, so that all workers
    have the same bits, however many they are.

    A function that calls a `pmap`, under `jit` or differentiated, is run by all workers, each of
    which takes its lanes where the `pmap` stands.  One that prints, writes to objects outside, or
    draws from a generator of the caller's, is run by one worker, as with `vmap`.

    With workers="processes", or ("processes", n), lanes are calls of `f` itself, by Python, in
    processes: of functions that s2s does not read, or that are to stay apart.  Collectives are the
    same; what `f` and `pmap` make is not differentiated from outside: differentiate inside, as in
    `pmap(grad(f), workers="processes")`.
    """
    options = lane_options("pmap", in_axes, out_axes, axis_name, axis_size)
    if isinstance(workers, (str, tuple)):
        return ProcessMap(f, **options, count=checked_processes(workers))
    return Transformed("pmap", f, {**options, "workers": checked_workers(workers)})


@decorator
def vectorize(f: Callable, signature: str | None = None,
              excluded: Iterable[int | str] = frozenset()) -> Transformed:
    """Transform `f`, a function of numbers or of small arrays, to work on stacks of them, which
    broadcast against one another as in a NumPy ufunc.

    `signature` has the core dimensions of each argument and result, "(n,m),(m)->(n)"; without it,
    `f` is one of numbers.  Axes in front of these are loop axes.  `excluded` are the numbers or
    names of arguments that are passed on as they are.  Core dimensions of one name have the same
    length, and do not broadcast: ValueError.  TypeMismatchError for a malformed signature.
    """
    return Transformed("vectorize", f, {
        "signature": None if signature is None else Signature.parse(signature),
        "excluded": frozenset(excluded)})


# -------------------------------------------------------------------------------------- native code


@decorator
def jit(f: Callable, static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (), **options) -> Transformed:
    """Compile `f` by Numba, on its first call with arguments of one kind.

    As every transformed function it leaves its caller's arrays as they are, also where `f` writes
    to its arguments: what is written is to be returned, and an `f` that returns nothing is refused.

    Options: target="cpu", parallel=None, fastmath=False, cache=True; for target="cuda" also
    threads, of a block, and the stream, of CuPy, Numba or PyTorch, that calls are on.  Threads
    share the loops whose trips do not depend on one another, and run loops at once that do not need
    one another: with parallel=None those that the arguments make long (some 200 us), with True also
    shorter ones, with False none; `set_threads` says how many.  A sum is then added up part by
    part, in an order that follows from the lengths alone.  Arguments named by `static_argnums` and
    `static_argnames` are known when code is generated, and each of their values has code of its
    own: lengths of new arrays, numbers of trips to unroll.  They must be hashable.

    As every transformed function, unless it has a parameter of that name, the result takes `out`: a
    tree of the structure of what it returns, whose arrays, of the same shapes and dtypes, results
    are written into and which are returned; for a number anything may stand there.  They may share
    memory with arguments, not with one another: TypeMismatchError, as for a tree that is none such;
    ShapeMismatchError for shapes.  What they hold after an error is not said.  Results are written
    directly where native code makes them in the body of a function; others, and those whose memory
    is shared, are copied.
    """
    unknown = set(options) - {"target", "parallel", "fastmath",
                              "cache"} - ({"threads", "stream"} if options.get("target") == "cuda"
                                          else set())
    if unknown:
        raise TypeMismatchError(f"jit has no option {', '.join(sorted(unknown))}", None,
                                "its options are static_argnums, static_argnames, target, "
                                "parallel, fastmath and cache")
    if isinstance(f, SparseJacobian):
        return f.jitted(options)
    static = static_names(f, static_argnums, static_argnames)
    if static:
        options["static"] = static
    return Transformed("jit", f, options)


# --------------------------------------------------------------------------------------- inspection


def source(t: Callable, *args) -> str:
    """Return the generated Python of `t`, for arguments like `args` if they are given."""
    t = as_transformed(t)
    return t.lower(*args).source if args else t.source


def stages(t: Callable, *args) -> list[tuple[str, str]]:
    """Return every stage on the way to the code of `t` for arguments like `args`: (name of the
    pass, Python).
    """
    t = fresh(as_transformed(t))
    with recorded() as found:
        t.lower(*args)
    return [(name, pipeline.render(function, annotate=True).text) for name, function in found]


def dump(t: Callable, directory: str | Path, *args) -> Path:
    """Write every stage on the way to the code of `t`, each as a file that runs; return the
    directory.
    """
    with dumping(str(directory)):
        fresh(as_transformed(t)).lower(*args)
    return Path(directory)


def from_source(text: str, globals: dict | None = None, filename: str | None = None) -> Callable:
    """Return the last function that `text` defines, with `def`, decorated, or assigned, as if it
    had been in a file.

    The text is run in `globals`, which is the function's own module then, as for `exec`: names are
    looked up there at each call, and what the text defines is put there, so that `from_source(text,
    globals())` defines it here.  Without `globals` it has a module of its own with `np` in it.
    Tracebacks show the text, as that of `filename`.
    """
    if globals is None:
        globals = {"np": np}
    if filename is None:  # the same for the same text, in another process too
        filename = f"<text {hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}>"
    return from_text(text, globals, filename)


# ----------------------------------------------------------------------------------------- checking


def check_grads(f: Callable, args: Sequence, order: int = 2, modes: Sequence[str] = ("fwd", "rev"),
                atol: float = 1e-4, rtol: float = 1e-4, eps: float = 1e-5) -> None:
    """Compare derivatives of `f` at `args`, up to `order`, with central differences along random
    directions.

    Raises AssertionError where they disagree, and ValueError where `modes` names no mode.  Every
    derivative is checked by checking the function that computes it, so second order is tested by
    the same lines as first.
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"check_grads with modes={modes}: there are 'fwd' and 'rev'")
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
        assert_close(inner(x_bars, directions), inner(y_bar, numeric), atol, rtol, "reverse mode",
                     f)
    if order > 1:
        if "fwd" in modes:
            check_grads(jvp(f), (*args, *directions), order - 1, modes, atol, rtol, eps)
        if "rev" in modes:
            check_grads(vjp(f), (*args, y_bar), order - 1, modes, atol, rtol, eps)


def central_difference(f: Callable, args: tuple, directions: tuple, eps: float):
    """Compute (f(x + eps d) - f(x - eps d)) / 2 eps."""
    def moved(sign: float) -> list:
        return [tree.map(lambda x, d: x + sign * eps * d if is_inexact(x) else x, x, d)
                for x, d in zip(args, directions)]

    return tree.map(lambda a, b: (a - b) / (2 * eps), f(*copies(moved(1.0))),
                    f(*copies(moved(-1.0))))


def inner(a, b) -> float:
    """Return the sum of the products of the leaves of two trees."""
    pairs = zip(tree.leaves(a), tree.leaves(b), strict=True)
    return math.fsum(float(np.sum(np.real(x * y))) for x, y in pairs)


def assert_close(got, wanted, atol: float, rtol: float, mode: str, f: Callable) -> None:
    """Raise AssertionError, with both values, if two trees differ."""
    for a, b in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        if not np.allclose(a, b, atol=atol, rtol=rtol):
            name = getattr(f, "__name__", f)
            raise AssertionError(f"{mode} of {name} gives {a}, central differences {b}")


# ---------------------------------------------------------------------------------------- arguments


def with_defaults(f: Callable, args: tuple, keywords: dict | None = None) -> tuple:
    """Return the arguments of a call of `f` in order, with the defaults of omitted parameters."""
    signature = signature_of(f)
    if not keywords and len(args) == len(signature.parameters):
        # keyword-only ones too, from a caller who has bound them
        return tuple(args)
    try:
        return bind(signature, args, keywords or {})
    except TypeError as error:
        name = getattr(f, "__name__", type(f).__name__)
        raise TypeMismatchError(f"{'f' if name == '<lambda>' else name}{signature}: {error}",
                                _beginning(f), "pass the arguments that it takes") from None


def by_position(f: Callable) -> Callable:
    """Wrap `f` to take every argument by position, as the code generated from it does."""
    signature = f.signature if isinstance(f, Transformed) else signature_of(f)
    named = [name for name, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
    return f if not named else lambda *xs: f(*xs[:-len(named)],
                                             **dict(zip(named, xs[-len(named):])))


def zeros(x):
    """Return a zero tangent or cotangent for `x`."""
    def leaf(v):
        if np.ndim(v):
            return np.zeros(np.shape(v), v.dtype if isinstance(v, np.ndarray) and is_inexact(v)
                            else float)
        return type(v)(0) if isinstance(v, np.inexact) else 0.0

    return tree.map(leaf, x)


def cached(f: Callable, kind: str, count: int | None, **options) -> Transformed:
    """Return the Transformed behind `jvp(f, ...)` and `vjp(f, ...)`, cached with `f` so that code
    is generated once.

    What is kept with a method is kept with its function, for the object that asked last; and
    functools.wraps copies what is kept with the function inside.
    """
    key = (kind, count, *options.values())
    options = options if count is None else {"count": count, **options}
    try:
        kept = f.__dict__.setdefault("__s2s__", {})
    except AttributeError:  # a class with slots
        return Transformed(kind, f, options)
    inner = kept[key].inner if key in kept else None
    if inner is not f and not (isinstance(f, MethodType) and inner == f):
        kept[key] = Transformed(kind, f, options)
    return kept[key]


def as_transformed(t: Callable) -> Transformed:
    """Return `t` itself if it is a Transformed, else the function as s2s resolves it."""
    return t if isinstance(t, Transformed) else Transformed("value", t)


def fresh(t: Transformed) -> Transformed:
    """Copy `t` without generated code, at any depth."""
    inner = fresh(t.inner) if isinstance(t.inner, Transformed) else t.inner
    return Transformed(t.kind, inner, t.options)


def copies(args: Sequence) -> tuple:
    """Copy arguments that a function may write into."""
    return tuple(tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, x) for x in args)


def with_aux(result, f: Callable) -> tuple:
    """Check that `result` is (y, aux), and return it."""
    if isinstance(result, tuple) and len(result) == 2:
        return result
    raise TypeMismatchError(f"has_aux=True, and {getattr(f, '__name__', 'f')} returns no pair "
                            "(result, more)", _beginning(f), "return a tuple of two")


def is_inexact(x) -> bool:
    """Test whether `x` can carry a derivative."""
    return np.asarray(x).dtype.kind in "fc"


def random_like(rng: np.random.Generator, x):
    """Return a random direction for `x`, zero where it is an integer."""
    def leaf(v):
        if not is_inexact(v):
            return np.zeros(np.shape(v))[()]
        return rng.normal(size=np.shape(v)) if np.ndim(v) else float(rng.normal())

    return tree.map(leaf, x)


def _beginning(f: Callable):
    """Return the line on which the function inside all transformations of `f` begins."""
    return definition_line(f.base if isinstance(f, Transformed) else f)


def same_structure(given, like, what: str, f: Callable) -> None:
    """Raise TypeMismatchError unless two trees have the same structure and shapes."""
    (a, own), (b, wanted) = tree.flatten(given), tree.flatten(like)
    shapes = [np.shape(x) for x in a], [np.shape(x) for x in b]
    name = getattr(f, "__name__", "f")
    try:
        nested = not (a or b) or all(tree.structure(x).is_leaf()
                                     for x in wanted.flatten_up_to(given))
    except (S2SError, TypeError, ValueError, LookupError, AttributeError):
        nested = False
    if not nested:
        raise TypeMismatchError(f"{what} for {name} has the shapes "
                                f"{tree.unflatten(own, shapes[0])}, and "
                                f"{tree.unflatten(wanted, shapes[1])} is needed", _beginning(f),
                                "nest it as what it goes with is nested")
    if len(a) != len(b) or shapes[0] != shapes[1]:
        raise TypeMismatchError(f"{what} for {name} has shapes {shapes[0]}, and {shapes[1]} is "
                                "needed", _beginning(f), "make it as long and as deep as what it "
                                "goes with")


# --------------------------------------------------------------------------------- inside a program


def _jvp_inside(call: Callable, f, primals, tangents, has_aux: bool = False):
    args, dots = _directions_inside(call, f, primals, tangents)
    found = call(cached(f, "jvp", len(args)), *args, *dots)
    if has_aux:
        (y, aux), (y_dot, _) = found
        return y, y_dot, aux
    return found


def _vjp_inside(call: Callable, f, *primals, has_aux: bool = False):
    return _halves_inside(call, f, primals, "reverse half", has_aux)


def _linearize_inside(call: Callable, f, *primals, has_aux: bool = False):
    return _halves_inside(call, f, primals, "forward half", has_aux)


def _halves_inside(call: Callable, f, primals: tuple, kind: str, has_aux: bool) -> tuple:
    """Expand vjp or linearize inside a program: a call of the first half, and a function that calls
    the second.
    """
    first = FirstHalf(cached(f, kind, None, has_aux=has_aux))
    args, rest = _directions_inside(call, f, primals, ())
    named = [p for p in signature_of(f).parameters.values() if p.kind is p.KEYWORD_ONLY]
    found = call(first, *args[:len(args) - len(named)])
    halves = first.halves
    given = [*(args[k] for k in halves.arguments), *(found[j] for j in halves.saved)]
    # in case they are written into later
    now = Intrinsic(lambda frame, node, *bindings: [frame.value(x) for x in bindings])
    given = call(now, *given)

    def run(frame, node, *directions):
        if not all(in_scope(x) or x.constant is not MISSING for x in given):
            raise frame.refuse(f"{halves.second.name} outside the branch or loop in which it was "
                               "made", node, "call it there")
        wanted = args if halves.together else found[:1]
        directions = ([like_primal(frame, x, y) for x, y in zip(directions, wanted)]
                      + [*directions[len(wanted):]])
        if halves.together:
            return apply(frame, SecondHalf(halves), [*directions, *rest, *given], {}, node)
        bars = apply(frame, SecondHalf(halves), [*directions, *given], {}, node)
        return (bars if len(args) != 1 else (bars,))[:len(primals)]

    names = [f"x{k}_dot" for k in range(len(primals))] if halves.together else ["y_bar"]
    return found[0], Intrinsic(run, tuple(given), positional(names)), *found[1:1 + has_aux]


def _hvp_inside(call: Callable, f, primals, tangents, argnums=FIRST):
    args, dots = _directions_inside(call, f, primals, tangents)
    return call(cached(f, "hvp", len(args), argnums=numbers(argnums)), *args, *dots)


def _directions_inside(call: Callable, f, primals: Sequence,
                       tangents: Sequence) -> tuple[tuple, tuple]:
    """Return all arguments of a call of `f`, and a tangent for each: zeros for the defaults."""
    args = with_defaults(f, tuple(primals))
    if tangents:
        pairs = Intrinsic(lambda frame, node, *all_: [
            like_primal(frame, *pair)
            for pair in zip(all_[:len(primals)], all_[len(primals):])
        ])
        tangents = call(pairs, *tangents, *primals)
    return args, (*tangents, *(zeros(x) for x in args[len(primals):]))


def like_primal(frame, dot, x):
    """Convert a tangent or cotangent given inside a program to the dtype and length of its
    variable.
    """
    if not isinstance(dot, (Value, Cell)) or not isinstance(x, (Value, Cell)):
        if isinstance(dot, (tuple, list)) and isinstance(x, (tuple, list)) and len(dot) == len(x):
            return (type(dot)([like_primal(frame, *pair) for pair in zip(dot, x)])
                    if type(dot) in (tuple, list) else dot)
        if isinstance(dot, Container) and isinstance(x, Container):
            for name in x.members:
                like_primal(frame, dot.members.get(name), x.members[name])  # only for its checks
        return dot
    given, x = frame.value(dot), frame.value(x)
    numbers = (Scalar, Array, Unknown)
    if not isinstance(given.type, numbers) or not isinstance(x.type, numbers):
        return dot
    if is_complex(given) and (dtype_of(x.type) or "").startswith("float"):
        raise TypeMismatchError("a complex tangent or cotangent of what is real", None,
                                "give its real part")
    found = like_operand(in_shape(given, x, direction_length), x)
    if (isinstance(x.type, Scalar) and x.type.weak and isinstance(found.type, Scalar)
            and found.type.dtype == "float64" and not found.type.weak):
        found = float_(found)  # which would raise single precision to double
    return dot if found is given else found


def _refused(name: str) -> Macro:
    def expand(call: Callable, *args, **keywords):
        raise UnsupportedError(f"{name} inside a function that s2s reads", None, "call it outside")

    return Macro(expand)


MACROS.update({
    **{f: Macro(lambda call, *args, f=f, **options: f(*args, **options))
       for f in (grad, value_and_grad, jacfwd, jacrev, jacobian, hessian, vmap, pmap, vectorize,
                 jit)},
    jvp: Macro(_jvp_inside, ("primals", "tangents")),
    vjp: Macro(_vjp_inside, (...,)),
    linearize: Macro(_linearize_inside, (...,)),
    hvp: Macro(_hvp_inside, ("primals", "tangents")),
    **{f: _refused(f.__name__) for f in (check_grads, source, stages, dump)},
})
