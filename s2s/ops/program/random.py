"""Random draws from a `numpy.random.Generator` or a legacy `RandomState`: ops with a side effect,
since each draw changes the generator.

So a draw happens once, in the forward sweep, in the user's order, and the caller's generator ends
in the same state as in plain Python. Derivatives treat draws as constants: `loc + scale * z`, with
z drawn from the standard distribution, is what `rng.normal(loc, scale)` computes, and is
differentiated as such. A draw that depends on its parameters in another way has no derivative in
them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import TypeMismatchError, UnsupportedError
from ...ir.builder import current, emit
from ...ir.graph import Function, Op, Value, walk
from ...ir.types import (
    FLOAT,
    GENERATOR,
    INT,
    RANDOM_STATE,
    Array,
    Generator,
    Scalar,
    Type,
    Unknown,
)
from ..arrays.create import extents_of, shaped
from ..arrays.index import take
from ..core.control import if_
from ..core.define_elementwise import is_none
from ..core.record import FUNCTIONS, Record, define, no_jvp, no_vjp, numpy_function, value
from ..core.shape import length
from .effects import Made, Plain, raise_record

# name -> (rng, *arguments) -> the draw
METHODS_OF_GENERATORS: dict[str, Callable] = {}
METHODS_OF_RANDOM_STATES: dict[str, Callable] = {}


def _name_of(method: str) -> str:
    return f"rng.{method}"


def _draw(method: str, params: int, number: Type, dtype: str, native: bool = True,
          first: bool = False) -> Record:
    """Define the record of `rng.method(*params, size=extents)`; `first`: the size is its first
    parameter.
    """

    def size(extents: Sequence):
        return None if not extents else extents[0] if len(extents) == 1 else tuple(extents)

    def evaluate(rng, *xs, **attrs):
        extents = size(xs[params:])
        return getattr(rng, method)(*xs[:params], **({} if extents is None else {"size": extents}),
                                    **attrs)

    def infer(rng: Value, *xs: Value, **attrs) -> Type:
        if not isinstance(rng.type, Generator):
            raise TypeMismatchError(f"a draw from {rng.type}", current().line,
                                    "draw from a np.random.Generator")
        kind = attrs.get("dtype", dtype)
        return number if len(xs) == params else shaped(kind, xs[params:])

    def syntax(rng: ast.expr, *xs: ast.expr, **attrs) -> ast.expr:
        given, extents = list(xs[:params]), xs[params:]
        keywords = []
        if extents:
            spelled = extents[0] if len(extents) == 1 else ast.Tuple(list(extents), ast.Load())
            if first:
                given.append(spelled)
            else:
                keywords.append(ast.keyword("size", spelled))
        for name, content in attrs.items():
            spelled = ast.parse(f"np.{content}" if name == "dtype" else repr(content),
                                mode="eval").body
            keywords.append(ast.keyword(name, spelled))
        return ast.Call(ast.Attribute(rng, method, ast.Load()), given, keywords)

    constant = params == 0 or number in (INT, INTEGER)
    return define(_name_of(method), evaluate=evaluate, infer=infer, syntax=syntax, pure=False,
                  native="compiled" if native else "python", contiguous="operands",
                  vjp=no_vjp if constant else None, jvp=no_jvp if constant else None)


INTEGER = Scalar("int64")
standard_normal = _draw("standard_normal", 0, FLOAT, "float64", first=True)
random = _draw("random", 0, FLOAT, "float64", first=True)
standard_exponential = _draw("standard_exponential", 0, FLOAT, "float64", first=True)
standard_cauchy = _draw("standard_cauchy", 0, FLOAT, "float64", first=True)
laplace = _draw("laplace", 2, FLOAT, "float64")
logistic = _draw("logistic", 2, FLOAT, "float64")
gumbel = _draw("gumbel", 2, FLOAT, "float64", native=False)
rayleigh = _draw("rayleigh", 1, FLOAT, "float64")
integers = _draw("integers", 2, INTEGER, "int64")
permuted_range = define(_name_of("permutation"), evaluate=lambda rng, n: rng.permutation(n),
                        infer=lambda rng, n: shaped("int64", [n]),
                        syntax=lambda rng, n: ast.Call(ast.Attribute(rng, "permutation",
                                                                     ast.Load()), [n], []),
                        pure=False, vjp=no_vjp,
                        jvp=no_jvp, native="compiled",
                        contiguous="operands")
chosen = _draw("choice", 1, INT, "int64", native=False)
chosen_by = define(
    "rng.choice_by_p",
    evaluate=lambda rng, n, p, *extents, replace: rng.choice(
        n, None if not extents else extents[0] if len(extents) == 1 else extents, replace, p),
    infer=lambda rng, n, p, *extents, replace: shaped("int64", extents) if extents else INT,
    syntax=lambda rng, n, p, *extents, replace: ast.Call(
        ast.Attribute(rng, "choice", ast.Load()),
        [n,
         *([] if not extents
           else [extents[0] if len(extents) == 1 else ast.Tuple(list(extents), ast.Load())])],
        [ast.keyword("p", p), *([] if replace else [ast.keyword("replace", ast.Constant(False))])]),
    pure=False, vjp=no_vjp,
    jvp=no_jvp, native="python", contiguous="operands")

OF_NUMBERS = {"standard_gamma": 1, "chisquare": 1, "standard_t": 1, "beta": 2, "f": 2, "pareto": 1,
              "weibull": 1, "power": 1, "lognormal": 2, "wald": 2}
OF_COUNTS = {"poisson": 1, "binomial": 2, "geometric": 1, "negative_binomial": 2}
DRAWS = {name: _draw(name, n, FLOAT, "float64") for name, n in OF_NUMBERS.items()}
DRAWS.update({name: _draw(name, n, INT, "int64") for name, n in OF_COUNTS.items()})


def first_draw(function: Function, seen: frozenset = frozenset()) -> Op | None:
    """A draw in `function`, or in a function that it calls; None if there is none."""
    for op in walk(function.block):
        if any(isinstance(x.type, Generator) for x in op.inputs) and op.name.startswith("rng."):
            return op
        if op.name == "call" and op.attrs["callee"] not in seen:
            callee = op.attrs["callee"]
            if first_draw(callee.function_for(op.inputs), seen | {callee}) is not None:
                return op
    return None


# --------------------------------------------------------------------------------------- generators

default_rng_record = define(
    "default_rng", evaluate=np.random.default_rng, infer=lambda seed: GENERATOR, pure=False,
    syntax=lambda seed: ast.Call(ast.parse("np.random.default_rng", mode="eval").body, [seed], []),
    vjp=no_vjp, jvp=no_jvp,
    native="python", contiguous="operands")


@numpy_function(np.random.default_rng)
def default_rng(seed=None) -> Value:
    """np.random.default_rng(seed), with an integer seed, so that each run draws the same numbers.
    """
    if is_none(seed):
        raise UnsupportedError("np.random.default_rng() without a seed", current().line,
                               "pass a generator as an argument, or give it a seed")
    seed = value(seed)
    if isinstance(seed.type, Generator):
        return seed
    if not isinstance(seed.type, Scalar) or np.dtype(seed.type.dtype).kind not in "iu":
        raise UnsupportedError(f"np.random.default_rng of {seed.type}", current().line,
                               "seed it with an integer")
    return default_rng_record(seed)


# ------------------------------------------------------------------------------------------ methods


def _method(*names: str):
    def register(rule: Callable) -> Callable:
        for name in names:
            METHODS_OF_GENERATORS[name] = rule
        return rule

    return register


def _extents(size) -> tuple[Value, ...]:
    return () if is_none(size) else extents_of(size)


def _size_for(size, *params: Value) -> tuple[Value, ...]:
    """The extents of a draw: the requested ones, or those of array parameters, broadcast."""
    if not is_none(size):
        return extents_of(size)
    arrays = [p for p in params if isinstance(p.type, (Array, Unknown))]
    if not arrays:
        return ()
    whole = arrays[0] if len(arrays) == 1 else sum(arrays[1:], arrays[0])
    if isinstance(whole.type, Unknown):
        raise UnsupportedError("a draw whose parameter may be a number or an array", current().line,
                               "call the function first, or give the draw a size")
    return tuple(length(whole, axis=k) for k in range(whole.type.rank))


def _scalars(method: str, params: Sequence[Value]) -> None:
    if not all(isinstance(p.type, Scalar) for p in params):
        raise UnsupportedError(f"rng.{method} with array parameters", current().line,
                               "draw for each number in a loop")


def _standard(record: Record):
    def draw(rng: Value, size=None, dtype=None) -> Value:
        extents = _extents(size)
        if is_none(dtype) or np.dtype(getattr(dtype, "constant", dtype)) == np.float64:
            return record(rng, *extents)
        if not extents:
            return record(rng, dtype="float32")
        return record(rng, *extents, dtype=np.dtype(getattr(dtype, "constant", dtype)).name)

    return draw


for _record in (standard_normal, random, standard_exponential):
    METHODS_OF_GENERATORS[_record.name.removeprefix("rng.")] = _standard(_record)
METHODS_OF_GENERATORS["standard_cauchy"] = lambda rng, size=None: standard_cauchy(rng,
                                                                                  *_extents(size))


@_method("normal")
def normal(rng: Value, loc=0.0, scale=1.0, size=None) -> Value:
    """loc + scale * z: NumPy's own formula."""
    loc, scale = value(loc), _not_negative(value(scale))
    return _located(loc, scale, standard_normal(rng, *_size_for(size, loc, scale)))


NEVER_NEGATIVE = ("exp", "exp2", "absolute", "abs_", "sqrt", "root", "square", "logaddexp")


def _not_negative(scale: Value) -> Value:
    """`scale`, with NumPy's error if it is negative."""
    made_by = scale.op.name if scale.op is not None else ""
    if (made_by not in NEVER_NEGATIVE
        and not (isinstance(scale.constant, (int, float)) and scale.constant >= 0)):
        below = scale < 0 if isinstance(scale.type, Scalar) else FUNCTIONS[np.any](scale < 0)

        def complain() -> tuple:
            emit(raise_record, thrown=Made(ValueError, (Plain("scale < 0"),)), cause=None)
            return ()

        if_(below, complain, lambda: ())
    return scale


def _located(loc: Value, scale: Value, z: Value) -> Value:
    stretched = z if scale.constant == 1.0 else scale * z
    return stretched if loc.constant == 0.0 else loc + stretched


@_method("uniform")
def uniform(rng: Value, low=0.0, high=1.0, size=None) -> Value:
    """low + (high - low) * u."""
    low, high = value(low), value(high)
    return _located(low, high - low, random(rng, *_size_for(size, low, high)))


@_method("exponential")
def exponential(rng: Value, scale=1.0, size=None) -> Value:
    """scale * e."""
    scale = _not_negative(value(scale))
    return _located(value(0.0), scale, standard_exponential(rng, *_size_for(size, scale)))


@_method("gamma")
def gamma(rng: Value, shape, scale=1.0, size=None) -> Value:
    """scale * g, with g drawn for that shape parameter."""
    shape, scale = value(shape), _not_negative(value(scale))
    _scalars("gamma", [shape])
    return _located(value(0.0), scale, DRAWS["standard_gamma"](rng, shape, *_size_for(size, scale)))


def _of_location(record: Record):
    def draw(rng: Value, loc=0.0, scale=1.0, size=None) -> Value:
        loc, scale = value(loc), _not_negative(value(scale))
        return _located(loc, scale,
                        record(rng, value(0.0), value(1.0), *_size_for(size, loc, scale)))

    return draw


for _record in (laplace, logistic, gumbel):
    METHODS_OF_GENERATORS[_record.name.removeprefix("rng.")] = _of_location(_record)


@_method("rayleigh")
def rayleigh_(rng: Value, scale=1.0, size=None) -> Value:
    """scale * r."""
    scale = _not_negative(value(scale))
    return _located(value(0.0), scale, rayleigh(rng, value(1.0), *_size_for(size, scale)))


def _of_params(name: str, record: Record, count: int):
    def draw(rng: Value, *params, size=None) -> Value:
        if len(params) == count + 1:
            *params, size = params
        params = [value(p) for p in params]
        _scalars(name, params)
        if len(params) != count:
            raise TypeMismatchError(f"rng.{name} of {len(params)} parameters", current().line,
                                    f"give it {count}")
        return record(rng, *params, *_extents(size))

    return draw


for _name, _record in DRAWS.items():
    METHODS_OF_GENERATORS[_name] = _of_params(_name, _record, {**OF_NUMBERS, **OF_COUNTS}[_name])


@_method("integers")
def integers_(rng: Value, low, high=None, size=None, dtype=np.int64, endpoint=False) -> Value:
    """rng.integers, of numbers, as int64."""
    if np.dtype(getattr(dtype, "constant", dtype)) != np.int64:
        raise UnsupportedError("rng.integers of another dtype than int64", current().line,
                               "convert with .astype")
    low, high = (value(0), value(low)) if is_none(high) else (value(low), value(high))
    _scalars("integers", [low, high])
    ending = {"endpoint": True} if getattr(endpoint, "constant", endpoint) else {}
    return integers(rng, low, high, *_extents(size), **ending)


@_method("permutation")
def permutation(rng: Value, x, axis=0) -> Value:
    """A permuted range, or an array with permuted rows."""
    x = value(x)
    if isinstance(x.type, Scalar):
        return permuted_range(rng, x)
    _first_axis("permutation", axis)
    return take(x, permuted_range(rng, length(x, axis=0)))


@_method("choice")
def choice(rng: Value, a, size=None, replace=True, p=None, axis=0, shuffle=True) -> Value:
    """Random indices, or rows of an array at random indices."""
    a = value(a)
    _first_axis("choice", axis)
    if not getattr(shuffle, "constant", shuffle):
        raise UnsupportedError("rng.choice with shuffle=False", current().line, "leave shuffle out")
    replace = bool(getattr(replace, "constant", replace))
    n = a if isinstance(a.type, Scalar) else length(a, axis=0)
    extents = _extents(size)
    if is_none(p):
        k = chosen(rng, n, *extents) if replace else chosen(rng, n, *extents, replace=False)
    else:
        k = chosen_by(rng, n, value(p), *extents, replace=replace)
    return k if isinstance(a.type, Scalar) else take(a, k)


def _first_axis(name: str, axis) -> None:
    if getattr(axis, "constant", axis) != 0:
        raise UnsupportedError(f"rng.{name} along another axis than the first", current().line,
                               "transpose the array")


def shuffled(rng: Value, x: Value) -> Value:
    """The result of `rng.shuffle(x)` as a new array."""
    return take(x, permuted_range(rng, length(x, axis=0)))


# ----------------------------------------------------------------------------- legacy random states

random_state_record = define(
    "random_state", evaluate=np.random.RandomState, infer=lambda seed: RANDOM_STATE, pure=False,
    syntax=lambda seed: ast.Call(ast.parse("np.random.RandomState", mode="eval").body, [seed], []),
    vjp=no_vjp, jvp=no_jvp, native="python", contiguous="operands")
seed_record = define(
    "rng.seed", evaluate=lambda rng, seed: rng.seed(seed) or (), infer=lambda rng, seed: [],
    syntax=lambda rng, seed: ast.Call(ast.Attribute(rng, "seed", ast.Load()), [seed], []),
    pure=False, vjp=no_vjp, jvp=no_jvp, native="python", contiguous="operands")
MAKE_GENERATORS = (default_rng_record, random_state_record)
randint = _draw("randint", 2, INT, "int64", native=False)


@numpy_function(np.random.RandomState)
def random_state(seed=None) -> Value:
    """np.random.RandomState(seed), with an integer seed, so that each run draws the same numbers.
    """
    return random_state_record(_seed("np.random.RandomState", seed))


def _seed(what: str, seed) -> Value:
    if is_none(seed):
        raise UnsupportedError(f"{what}() without a seed", current().line, "give it a seed")
    seed = value(seed)
    if not isinstance(seed.type, Scalar) or np.dtype(seed.type.dtype).kind not in "iu":
        raise UnsupportedError(f"{what} of {seed.type}", current().line, "seed it with an integer")
    return seed


def _legacy(*names: str):
    def register(rule: Callable) -> Callable:
        for name in names:
            METHODS_OF_RANDOM_STATES[name] = rule
        return rule

    return register


# both kinds have these; a random state draws other numbers, and floats of double precision alone
METHODS_OF_RANDOM_STATES.update({name: METHODS_OF_GENERATORS[name] for name in (
    "normal", "uniform", "exponential", "gamma", "laplace", "logistic", "gumbel", "rayleigh",
    "standard_cauchy", *DRAWS)})
for _record in (standard_normal, standard_exponential):
    METHODS_OF_RANDOM_STATES[_record.name.removeprefix("rng.")] = (
        lambda rng, size=None, record=_record: record(rng, *_extents(size)))


@_legacy("random", "random_sample", "sample", "ranf")
def random_sample(rng: Value, size=None) -> Value:
    """Numbers from 0 to 1."""
    return random(rng, *_extents(size))


@_legacy("rand")
def rand(rng: Value, *extents) -> Value:
    """Numbers from 0 to 1, of these extents."""
    return random(rng, *_extents(extents or None))


@_legacy("randn")
def randn(rng: Value, *extents) -> Value:
    """Normal numbers, of these extents."""
    return standard_normal(rng, *_extents(extents or None))


@_legacy("randint")
def randint_(rng: Value, low, high=None, size=None, dtype=int) -> Value:
    """Integers below `high`, or below `low` alone, as int64."""
    if np.dtype(getattr(dtype, "constant", dtype)) != np.int64:
        raise UnsupportedError("randint of another dtype than int64", current().line,
                               "convert with .astype")
    low, high = (value(0), value(low)) if is_none(high) else (value(low), value(high))
    _scalars("randint", [low, high])
    return randint(rng, low, high, *_extents(size))


@_legacy("permutation")
def legacy_permutation(rng: Value, x) -> Value:
    """A permuted range, or an array with permuted rows."""
    return permutation(rng, x)


@_legacy("choice")
def legacy_choice(rng: Value, a, size=None, replace=True, p=None) -> Value:
    """Random indices, or rows of an array at random indices."""
    return choice(rng, a, size, replace, p)


@_legacy("seed")
def seed(rng: Value, seed=None) -> None:
    """Start anew from a seed."""
    emit(seed_record, rng, _seed("seed", seed))
